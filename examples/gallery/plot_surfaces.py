"""
Decision surfaces of a tree, a forest and boosted trees
=======================================================

Two overlapping moons. One pruning has a few flat regions, the vote of all prunings has finer ones, and
ensembles are smoother still. Darker means a probability closer to 0 or 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss

from certree import (
    BoostedTreesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
)

X, y = make_moons(600, noise=0.35, random_state=0)
X_new, y_new = make_moons(5000, noise=0.35, random_state=1)
x0, x1 = np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.6, 2, 120))
points = np.column_stack([x0.ravel(), x1.ravel()])

models = {
    "one pruning": PrunedTreeClassifier(random_state=0),
    "all prunings": PACBayesTreeClassifier(random_state=0),
    "a forest": TreeForestClassifier(random_state=0),
    "boosted trees": BoostedTreesClassifier(random_state=0),
}
_, axes = plt.subplots(2, 2, figsize=(7.5, 6), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(X, y)
    share = model.predict_proba(points)[:, 1].reshape(x0.shape)
    ax.contourf(x0, x1, share, levels=np.linspace(0, 1, 11), cmap="RdBu_r")
    ax.scatter(*X[:300].T, c=y[:300], cmap="RdBu_r", s=6, edgecolors="k", linewidths=0.3)
    ax.set_title(f"{name}: log loss {log_loss(y_new, model.predict_proba(X_new)):.2f}")
