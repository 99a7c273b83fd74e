"""
The bound approaches the error
==============================

The picture shows the bound of a certified tree and its error on new rows, by the number of rows in the
fit. The gap between the lines shrinks as the number of rows grows.
"""

from sklearn.datasets import make_moons

from certree import CertifiedTreeClassifier
from certree.show import plot_certificate

X, y = make_moons(8000, noise=0.35, random_state=0)
figure = plot_certificate(
    CertifiedTreeClassifier(random_state=0), X, y, sizes=[125, 250, 500, 1000, 2000, 4000]
)
