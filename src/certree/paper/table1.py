"""Table 1 of the paper: how large its data sets are, and what ours hold."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from certree.files.tables import Table
from certree.paper.protocol import FIRST_ROWS, draw

# Features, classes and training rows, as printed.
PAPER = {
    "spam": (57, 2, 2601),
    "eeg": (14, 2, 12980),
    "epileptic": (178, 2, 9500),
    "crowd": (28, 6, 8546),
    "wine": (12, 11, 4497),
    "digit": (64, 10, 3620),
    "letter": (16, 26, 18000),
}

# What rows cannot tell of themselves.
_EPILEPTIC = "epileptic: 23 rows of each of 500 recordings, which stand on both sides of the split."


@dataclass(frozen=True, slots=True)
class Extent:
    """What a data set holds.

    Parameters
    ----------
    dataset : str
        Its name.
    features, classes : int
        Numbers of features, and of classes that occur.
    n_train, n_test : int
        Rows of a repetition.
    rows : int
        Rows of the table.
    repeated : int
        Rows of the experiment that equal an earlier one, class included.
    rarest : int
        Rows of the rarest class.
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
        """What the paper prints: features, classes and training rows."""
        return self.features, self.classes, self.n_train

    @property
    def paper(self) -> tuple[int, int, int] | None:
        """The paper's, if it has this data set."""
        return PAPER.get(self.dataset)


def extent(dataset: str, table: Table) -> Extent:
    """Look at a table as the experiment draws from it."""
    sample = draw(dataset, table, repeat=0)
    X = np.vstack([sample.X, sample.X_test])
    y = np.concatenate([sample.y, sample.y_test])
    return Extent(
        dataset=dataset,
        features=X.shape[1],
        classes=sample.n_classes,
        n_train=len(sample.y),
        n_test=len(sample.y_test),
        rows=len(table.X),
        repeated=len(y) - len(np.unique(np.column_stack([X, y]), axis=0)),
        rarest=int(np.bincount(y).min()),
    )


def extents(tables: Mapping[str, Table]) -> list[Extent]:
    """Look at tables by their names."""
    return [extent(name, table) for name, table in tables.items()]


def notes(found: Sequence[Extent]) -> list[str]:
    """What a reader of the table must know."""
    said = [
        "Ours, and in brackets the paper's (Nguyen and Kpotufe, NeurIPS 2018) where it differs."
    ]
    of = {line.dataset: line for line in found}
    wine, crowd = of.get("wine"), of.get("crowd")
    if wine and wine.classes < PAPER["wine"][1]:
        said.append(
            f"wine: of the grades 0 to 10 that the paper counts, {wine.classes} occur, the rarest in "
            f"{wine.rarest} rows."
        )
    if crowd and crowd.rows > FIRST_ROWS["crowd"]:
        used = crowd.n_train + crowd.n_test
        said.append(
            f"crowd: the {used} rows of UCI's training file; {crowd.rows - used} of another class mix "
            f"are left out. The paper's number is that of the file's lines, its heading among them, "
            f"less {crowd.n_test}."
        )
    if "epileptic" in of:
        said.append(_EPILEPTIC)
    repeated = [f"{line.dataset} {line.repeated}" for line in found if line.repeated]
    if repeated:
        said.append(f"Rows that repeat an earlier one: {', '.join(repeated)}.")
    return said


def as_json(found: Sequence[Extent]) -> dict[str, Any]:
    """Everything that was seen, for a JSON file."""
    return {
        "experiment": "table1",
        "table": [asdict(line) | {"paper": line.paper} for line in found],
        "notes": notes(found),
    }
