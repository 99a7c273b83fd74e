"""
A readable tree
===============

All prunings of the tree vote. The picture shows the nodes with the most weight in the vote, and the
vote's prediction for the rows of each node.
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
