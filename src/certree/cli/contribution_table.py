"""The table that the command explain writes: contributions of features, one line per explained row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from certree.explain import Explanation
from certree.files import tables
from certree.tables.column_names import expect_distinct
from certree.tables.integer_text import convert_integer_text


def tabulate_contributions(
    explanation: Explanation,
    rows: NDArray[np.intp],
    keys: Mapping[str, Any],
    predictions: Mapping[str, Any],
) -> pa.Table:
    """Return the contributions of features to the predictions for some rows as a table.

    Parameters
    ----------
    explanation : Explanation
        Contributions for the r rows.
    rows : ndarray of intp, shape (r,)
        Indices of the rows in the table that was read.
    keys : mapping of str to pyarrow.ChunkedArray
        Columns of that table to copy, with all its rows.
    predictions : mapping of str to ndarray of shape (r,)
        Output columns of the model for these rows, as `predict_columns` returns them: "prediction",
        "probability_CLASS" for each class, and others, which are not used.

    Returns
    -------
    pyarrow.Table
        Columns "row", those of `keys`, "prediction", the probability of each explained class,
        "unit" (of base and contributions), and for each output "base", the prediction without any
        feature, and the contribution of each feature. With several outputs the last ones begin with
        "OUTPUT: ". A column gets the suffix "_" if a feature or key has its name.

    Raises
    ------
    ValueError
        If two columns would have the same name.
    """
    outputs = explanation.output_names
    has_one_output = len(outputs) == 1
    names: list[str] = []
    columns: list[Any] = []
    base = _find_free_name("base", explanation.feature_names)
    for k, output in enumerate(outputs):
        prefix = "" if has_one_output else f"{output}: "
        names += (f"{prefix}{name}" for name in (base, *explanation.feature_names))
        columns += (
            np.full(len(explanation), explanation.base[k]),
            *explanation.contributions[:, k].T,
        )
    expect_distinct(names)
    if both := [name for name in keys if name in names]:
        raise ValueError(
            f"--keep must not name a feature, got {both[0]!r}, as the column of a feature's "
            "contribution has the same name: leave it out"
        )
    probabilities = {f"probability_{output}" for output in outputs}
    first = {"row": rows} | {
        name: column
        for name, column in predictions.items()
        if name.startswith("prediction") or name in probabilities
    }
    is_class = explanation.scale != "target" and "prediction" not in outputs
    unit = (
        f"{explanation.scale} of {outputs[0]}" if has_one_output and is_class else explanation.scale
    )
    first["unit"] = pa.array([unit] * len(explanation))
    taken = [*names, *keys]
    first = {_find_free_name(name, taken): column for name, column in first.items()}
    row_name = next(iter(first))
    copied = {name: column.take(pa.array(rows)) for name, column in keys.items()}
    contributions = dict(zip(names, columns, strict=True))
    return pa.table({row_name: first.pop(row_name), **copied, **first, **contributions})


def write_contributions(table: pa.Table, keys: Iterable[str], path: Path) -> None:
    """Write a table of contributions to a file, whose suffix determines the format.

    In a Parquet file, text columns among keys that hold only integers become integers. table: the
    result of `tabulate_contributions`. keys: names of the columns of the table that were copied from
    the input. path: file to write, with the suffix .csv, .csv.gz, .tsv or .parquet.
    """
    if path.suffix.lower() == ".parquet":
        for name in keys:
            place = table.column_names.index(name)
            table = table.set_column(place, name, convert_integer_text(table[name]))
    tables.write(table, path)


def _find_free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name, with as many "_" appended as it takes to differ from other names.

    name: the wanted name, which is returned unchanged if it is free; taken: the other names.
    """
    names = {*taken}
    while name in names:
        name += "_"
    return name
