"""2 TREE: how a partition grows T0."""

from certree.grow.cart import grow_cart
from certree.grow.dyadic import dyadic_grid, dyadic_resolution, grow_dyadic
from certree.grow.kd import grow_kd
from certree.grow.sklearn_tree import from_sklearn

__all__ = [
    "dyadic_grid",
    "dyadic_resolution",
    "from_sklearn",
    "grow_cart",
    "grow_dyadic",
    "grow_kd",
]
