"""
Fewer answers, fewer errors
===========================

A classifier that may stay silent where it is unsure errs less often where it answers. The bound
holds for all margins at once, so that one may be chosen from this picture.
"""

from sklearn.datasets import make_moons

from certree import CertifiedTreeClassifier
from certree.show import plot_selective

X, y = make_moons(4000, noise=0.35, random_state=0)
model = CertifiedTreeClassifier(random_state=0).fit(X, y)
figure = plot_selective(model)
