"""
Fewer answers, fewer errors
===========================

A classifier that abstains where it is unsure has a smaller error where it answers. The bound holds
for all margins at once, so you may choose a margin from this picture.
"""

from sklearn.datasets import make_moons

from certree import CertifiedTreeClassifier
from certree.show import plot_selective

X, y = make_moons(4000, noise=0.35, random_state=0)
model = CertifiedTreeClassifier(random_state=0).fit(X, y)
figure = plot_selective(model)
