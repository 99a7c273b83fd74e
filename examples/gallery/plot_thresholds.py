"""
Choose a threshold after looking
================================

One in seven loans defaults. A default that is predicted as paid costs as much as six good loans that
are refused. The blue curves are guaranteed at all thresholds at once, so the cheapest threshold may
be chosen after looking.
"""

import numpy as np

from certree import BoostedTreesClassifier
from certree.certificates import Guarantees
from certree.show import plot_thresholds

rng = np.random.default_rng(0)
X = rng.normal(size=(4200, 4))
risk = 1 / (1 + np.exp(2.4 - X[:, 0] - 0.8 * (X[:, 1] > 0) * X[:, 2]))
y = np.where(rng.random(4200) < risk, "default", "paid")

model = BoostedTreesClassifier(random_state=0).fit(X[:3000], y[:3000])
curves = Guarantees.by_rows(model, X[3000:], y[3000:]).thresholds(costs=(1, 6))
print(curves.lowest_cost(1, 6))

# %%
figure = plot_thresholds(curves, 1, 6)
