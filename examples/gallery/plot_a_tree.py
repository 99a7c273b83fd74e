"""
A tree that can be read
=======================

All prunings of the tree vote; what is drawn are the cells that matter most to them, with what the
vote says there.
"""

from sklearn.datasets import load_breast_cancer

from certree import PACBayesTreeClassifier
from certree.show import plot_tree

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
tissue = y.map({0: "malignant", 1: "benign"})
model = PACBayesTreeClassifier(random_state=0).fit(X, tissue)
figure = plot_tree(model, max_leaves=5)

# %%
# The same as rules:

print(model.rules(max_leaves=5))
