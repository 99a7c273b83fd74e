"""Stage 1, rows: check and encode tables, split rows, and find copies."""

from certree.rows.categories import Categories
from certree.rows.dates import DateColumn
from certree.rows.duplicates import RepeatedRowsWarning
from certree.rows.folds import Fold, content_folds
from certree.rows.near_copies import NearCopies, NearCopiesWarning
from certree.rows.split import TrainCalibrationSplit, train_calibration_split
from certree.rows.training import Training, training_rows

__all__ = [
    "Categories",
    "DateColumn",
    "Fold",
    "NearCopies",
    "NearCopiesWarning",
    "RepeatedRowsWarning",
    "TrainCalibrationSplit",
    "Training",
    "content_folds",
    "train_calibration_split",
    "training_rows",
]
