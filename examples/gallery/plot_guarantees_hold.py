"""
Certificates hold
=================

A certificate at level 90 % may fail in one fit of ten. Here 200 fits on new draws are certified, and
each is tested on 20,000 further rows: hardly any point lies above the line. An observed error, which
guarantees nothing, is too low in about half of the fits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from certree import CertifiedTreeClassifier, Grid

X_new, y_new = make_moons(20_000, noise=0.35, random_state=1)
box = Grid([[-3.0, -3.0], [4.0, 4.0]])
bounds, observed, true = [], [], []
for seed in range(200):
    X, y = make_moons(300, noise=0.35, random_state=seed + 10)
    inside = np.clip(X, -3, 4)
    model = CertifiedTreeClassifier(box, delta=0.1, random_state=seed).fit(
        inside, y, classes=[0, 1]
    )
    bounds.append(model.certificate_.bound)
    observed.append(model.certificate_.risk)
    true.append(1 - model.score(np.clip(X_new, -3, 4), y_new))

# %%
# Points above the line are certificates that failed:

_, ax = plt.subplots(figsize=(5.6, 5), layout="constrained")
low, high = 0.05, 0.4
ax.plot(bounds, true, "o", ms=4, color="#0072B2", label="certified bound")
ax.plot(observed, true, "x", ms=4, color="#E69F00", label="observed error")
ax.plot([low, high], [low, high], color="#777777", lw=1)
ax.set(
    xlim=(low, high),
    ylim=(low, high),
    xlabel="certified bound, or observed error",
    ylabel="error on new rows",
)
broken = np.mean(np.array(true) > bounds), np.mean(np.array(true) > observed)
ax.set_title(f"too low: {broken[0]:.0%} of the bounds, {broken[1]:.0%} of the observed errors")
ax.legend(loc="upper left")
