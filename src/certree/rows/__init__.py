"""1 ROWS: what a row is, and what it may do."""

from certree.rows.categories import Categories
from certree.rows.folds import Fold, content_folds

__all__ = ["Categories", "Fold", "content_folds"]
