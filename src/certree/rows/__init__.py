"""1 ROWS: what a row is, and what it may do."""

from certree.rows.categories import Categories
from certree.rows.deal import Sides, deal
from certree.rows.folds import Fold, content_folds
from certree.rows.training import Training, training_rows

__all__ = ["Categories", "Fold", "Sides", "Training", "content_folds", "deal", "training_rows"]
