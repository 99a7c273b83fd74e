"""
Features that interact
======================

Friedman's function multiplies its first two features and adds the others. The picture shows
which fractions of the variance of boosted trees belong to features and to pairs of features.
"""

from sklearn.datasets import make_friedman1

from certree import BoostedTreesRegressor
from certree.explain import interaction_fractions
from certree.show import plot_interactions

X, y = make_friedman1(1000, n_features=6, noise=0.5, random_state=0)
model = BoostedTreesRegressor(max_iter=100, random_state=0).fit(X, y)
figure = plot_interactions(interaction_fractions(model, X))
