"""
A forest with calibrated probabilities
======================================

The average of a hundred full trees finds the right class, but its probabilities are too close to
1/2. With ``leaves="auto"`` the out-of-bag rows correct the leaves.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from certree import TreeForestClassifier
from certree.show import plot_calibration

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, test_size=0.5)
_, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, leaves in zip(axes, ("plain", "auto"), strict=True):
    forest = TreeForestClassifier(leaves=leaves, random_state=0).fit(X_train, y_train)
    plot_calibration(forest, X_test, y_test, bins=6, ax=ax)
    loss = log_loss(y_test, forest.predict_proba(X_test))
    ax.set_title(f'leaves="{leaves}": log loss {loss:.2f}', loc="left")
