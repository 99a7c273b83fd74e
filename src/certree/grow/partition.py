"""What grows a tree: any object with these."""

from typing import Protocol

from certree.grow.growing import GrowingRows
from certree.tree import Tree


class Partition(Protocol):
    """A way to grow T0; its parameters are the switches of growth."""

    # Whether rows have a part in the tree, so that those that grow it must not certify it.
    sees_rows: bool
    # Whether cuts keep to monotonic constraints.
    keeps_slopes: bool

    def grow(self, rows: GrowingRows) -> Tree:
        """Grow the tree of these rows."""
