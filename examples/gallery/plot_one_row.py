"""
Explain one prediction
======================

The picture shows what each feature adds to the score of one biopsy. The contributions add up to the
prediction.
"""

from sklearn.datasets import load_breast_cancer

from certree import BoostedTreesClassifier
from certree.show import plot_explanation

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
tissue = y.map({0: "malignant", 1: "benign"})
model = BoostedTreesClassifier(random_state=0).fit(X[:400], tissue[:400])
why = model.explain(X[400:])
figure = plot_explanation(why, row=5)

# %%
# The same row in words:

print(why[5])
