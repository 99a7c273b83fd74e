"""Growers: objects that grow a tree from training samples."""

from certree.grow.binned_grower import BinnedGrower, CountedTree, GrownForest
from certree.grow.bins import Bins
from certree.grow.cart import Cart, grow_cart
from certree.grow.dyadic import Dyadic, dyadic_resolution, grow_dyadic
from certree.grow.grid import Grid, dyadic_grid
from certree.grow.grower import Grower
from certree.grow.kd import KD, grow_kd
from certree.grow.sklearn_tree import SklearnTree, from_sklearn
from certree.grow.training_samples import TrainingSamples

# fmt: off
__all__ = [
    "KD",
    "BinnedGrower",
    "Bins",
    "Cart",
    "CountedTree",
    "Dyadic",
    "Grid",
    "Grower",
    "GrownForest",
    "SklearnTree",
    "TrainingSamples",
    "dyadic_grid",
    "dyadic_resolution",
    "from_sklearn",
    "grow_cart",
    "grow_dyadic",
    "grow_kd",
]
# fmt: on
