"""Table 1 of the paper: the sizes of its data sets, and those of ours."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from certree.paper.protocol import FIRST_ROWS, draw
from certree.tables.table import Table

# Numbers of features, classes and training rows, as printed in the paper.
PAPER = {
    "spam": (57, 2, 2601),
    "eeg": (14, 2, 12980),
    "epileptic": (178, 2, 9500),
    "crowd": (28, 6, 8546),
    "wine": (12, 11, 4497),
    "digit": (64, 10, 3620),
    "letter": (16, 26, 18000),
}

# A property of the data set that cannot be computed from the table.
_EPILEPTIC = "epileptic: 23 rows of each of 500 recordings, which stand on both sides of the split."


@dataclass(frozen=True, slots=True)
class DatasetSize:
    """The size of a data set, and of the training and test rows that the experiment draws from it.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    features, classes : int
        Number of features, and number of different classes in the rows.
    n_train, n_test : int
        Numbers of training and test rows of a repetition.
    rows : int
        Number of rows of the table.
    repeated : int
        Number of training and test rows that equal an earlier row, class included.
    rarest : int
        Number of training and test rows of the rarest class.
    """

    dataset: str
    features: int
    classes: int
    n_train: int
    n_test: int
    rows: int
    repeated: int
    rarest: int

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of features, classes and training rows of this data set, in this order."""
        return self.features, self.classes, self.n_train

    @property
    def paper(self) -> tuple[int, int, int] | None:
        """Numbers of features, classes and training rows that the paper prints for this data set.

        The paper is Nguyen and Kpotufe (2018), Table 1. None if it does not have this data set.
        """
        return PAPER.get(self.dataset)


def measure_dataset(dataset: str, table: Table) -> DatasetSize:
    """Draw the training and test rows of the first repetition from a table, and measure their size.

    dataset: the name (of "crowd" only the first 10545 rows are used, of others all); table: all
    rows with their target. Return the numbers of features, classes, rows, training and test rows,
    of repeated rows, and of rows of the rarest class.
    """
    sample = draw(dataset, table, repeat=0)
    X = np.vstack([sample.X, sample.X_test])
    y = np.concatenate([sample.y, sample.y_test])
    return DatasetSize(
        dataset=dataset,
        features=X.shape[1],
        classes=sample.n_classes,
        n_train=len(sample.y),
        n_test=len(sample.y_test),
        rows=len(table.X),
        repeated=len(y) - len(np.unique(np.column_stack([X, y]), axis=0)),
        rarest=int(np.bincount(y).min()),
    )


def measure_datasets(tables: Mapping[str, Table]) -> list[DatasetSize]:
    """Measure the sizes of several data sets and of the rows that the experiment draws from them.

    tables: rows and target of each data set, by its name. Return a `DatasetSize` for each, in the
    order of `tables`.
    """
    return [measure_dataset(name, table) for name, table in tables.items()]


def write_notes(sizes: Sequence[DatasetSize]) -> list[str]:
    """Return sentences that explain the differences between these sizes and the paper's Table 1.

    The paper is Nguyen and Kpotufe (2018). Sentences about a data set appear only if `sizes` has
    it.
    """
    notes = [
        "Ours, and in brackets the paper's (Nguyen and Kpotufe, NeurIPS 2018) where it differs."
    ]
    by_name = {size.dataset: size for size in sizes}
    wine, crowd = by_name.get("wine"), by_name.get("crowd")
    if wine and wine.classes < PAPER["wine"][1]:
        notes.append(
            f"wine: of the grades 0 to 10 that the paper counts, {wine.classes} occur, the rarest "
            "in "
            f"{wine.rarest} rows."
        )
    if crowd and crowd.rows > FIRST_ROWS["crowd"]:
        used = crowd.n_train + crowd.n_test
        notes.append(
            f"crowd: the {used} rows of UCI's training file; {crowd.rows - used} of another class "
            "mix "
            "are left out. The paper's number is that of the file's lines, its heading among "
            "them, "
            f"less {crowd.n_test}."
        )
    if "epileptic" in by_name:
        notes.append(_EPILEPTIC)
    repeated = [f"{size.dataset} {size.repeated}" for size in sizes if size.repeated]
    if repeated:
        notes.append(f"Rows that repeat an earlier one: {', '.join(repeated)}.")
    return notes


def to_json(sizes: Sequence[DatasetSize]) -> dict[str, Any]:
    """Return the sizes and the notes on them as a dictionary for a JSON file.

    Keys: "experiment", which is "table1"; "table", a list of dictionaries of the sizes' fields and
    of "paper", the numbers of features, classes and training rows that Nguyen and Kpotufe (2018)
    print, or None; and "notes", the sentences of `write_notes`.
    """
    return {
        "experiment": "table1",
        "table": [asdict(size) | {"paper": size.paper} for size in sizes],
        "notes": write_notes(sizes),
    }
