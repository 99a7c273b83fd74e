"""What a model says of the rows of tables, from files to a file."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certree.certificates.certified_numbers import CertifiedNumbers
from certree.ensembles.boosting import BoostedTrees
from certree.estimators.tree_vote import TreeVoteRegressor
from certree.files import tables
from certree.files.rows_of_models import named_rows_for, types_of
from certree.interface.extras import import_extra
from certree.interface.fitted_state import check_one_target
from certree.interface.progress import RowRate, show_progress
from certree.interface.signatures import validate_arguments

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that are told at a time.
BATCH = 2**17


def answers(model: Any, X: Any, threshold: float | None = None) -> dict[str, Any]:
    """What a model says of rows (n, p), column by column; see `predict_files`."""
    beside: dict[str, Any] = {}
    predicted = model.predict(X) if threshold is None else None
    if is_classifier(model):
        check_one_target("a file of predictions", model)
    if is_classifier(model) and hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        beside = {f"probability_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
    elif isinstance(model, TreeVoteRegressor):
        beside = dict(zip(("between", "within"), model.predict_std(X).T, strict=True))
    if threshold is not None:
        predicted = by_threshold(model, beside, threshold)
    if isinstance(model, BoostedTrees) and hasattr(model, "predict_std"):
        names = [name.replace("probability", "std", 1) for name in beside] or ["std"]
        beside |= dict(zip(names, np.atleast_2d(model.predict_std(X).T), strict=True))
    if isinstance(model, CertifiedNumbers) and len(model.certificates_) > 1:
        beside |= dict(zip(("lower", "upper"), model.predict_interval(X).T, strict=True))
    said: NDArray[Any] = np.asarray(predicted)
    if said.ndim > 1:
        numbered = {f"prediction_{k}": one for k, one in enumerate(said.T)}
        return {**numbered, **beside}
    return {"prediction": said, **beside}


def by_threshold(model: Any, shares: dict[Any, Any], threshold: float) -> NDArray[Any]:
    """The second class where its probability, the last of the shares, is at least a threshold."""
    second = [*shares.values()][-1] if is_classifier(model) and len(model.classes_) == 2 else None
    if second is None:
        raise ValueError("threshold is for two classes")
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie in [0, 1], got {threshold}")
    taken: NDArray[Any] = np.asarray(model.classes_)[(second >= threshold).astype(np.intp)]
    return taken


@validate_arguments
def predict_files(
    model: Any,
    source: Any,
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] = (),
    threshold: float | None = None,
    batch_size: int = BATCH,
    verbose: int = 0,
) -> int:
    """Predict the rows of files, and write what is said of them to a file.

    Rows are read, predicted and written batch by batch, so that tables of any size are told in little
    memory. What is said of a row is what `predict` and `predict_proba` say of it in memory. Parquet and
    Arrow are read by columns, of which others than features and those to keep cost nothing.

    Parameters
    ----------
    model : fitted estimator of certree
        The model. Where it knows names of features, columns are found by these.
    source : path, list of paths, or pyarrow.dataset.Dataset
        Parquet, Arrow or CSV files, or folders of them, whose files are taken in the order of their
        names; a single one may be "-", CSV from standard input.
    target : path
        File to write, ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet``, whole or not at all; "-" prints
        CSV. Rows stand in the order of the source. Columns are those of `keep`; "prediction"; of
        classes ``probability_`` and its name for each. Single trees for numbers add "between" and
        "within", certified ones "lower" and "upper", and boosted trees "std" where they tell standard
        errors. Of several outputs there is ``prediction_0`` and so on.
    keep : sequence of str
        Columns of the source that are written in front, such as a key; of CSV as they are written.
    threshold : float or None
        The second of two classes is predicted where its probability is at least this; None: the
        likelier one.
    batch_size : int
        Rows of a batch.
    verbose : int
        Whether progress is shown.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    OSError
        If there are no such files, or the target cannot be written.
    ValueError
        If a file lacks a column, holds other types than the fit, cannot be read, or changes while it
        is read; if there are no rows; if the target lies in a folder of the source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> from certree import BoostedTreesClassifier, predict_files
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = pa.table({"key": np.arange(99), "x": np.arange(99) / 7})
    >>> model = BoostedTreesClassifier(max_iter=5).fit(rows.select(["x"]), np.arange(99) > 50)
    >>> parquet.write_table(rows, folder / "new.parquet")
    >>> predict_files(model, folder / "new.parquet", folder / "told.csv", keep=["key"])
    99
    >>> (folder / "told.csv").read_text().splitlines()[0]
    '"key","prediction","probability_False","probability_True"'
    """
    check_is_fitted(model)
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if isinstance(keep, str):
        raise TypeError(f"keep must be a sequence of names of columns, got {keep!r}")
    tables.expect_table_place(target)
    _expect_beside(source, target)
    told = _told(model, source, [*keep], threshold, batch_size, verbose)
    n = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal n
        for one in told:
            n += len(one)
            yield one

    tables.write_all(counted(), target)
    return n


def _expect_beside(source: Any, target: str | os.PathLike[str]) -> None:
    """Refuse to write into a folder that is read: the next time its predictions would be rows."""
    if str(target) == tables.STANDARD_STREAM:
        return
    place = Path(os.path.realpath(target))
    given = source if isinstance(source, list | tuple) else [source]
    for one in given:
        is_folder = isinstance(one, str | os.PathLike) and os.path.isdir(one)
        if is_folder and Path(os.path.realpath(one)) in place.parents:
            raise ValueError(f"{target} lies in the folder {one}, which is read")


def _told(
    model: Any,
    source: Any,
    keep: list[str],
    threshold: float | None,
    batch_size: int,
    verbose: int,
) -> Iterator[pa.Table]:
    """Tables of what is said, batch by batch; of no rows at all what the model says of these."""
    schema: Any = None
    read = rows_of_files(model, source, beside=keep, n_rows=batch_size)
    with closing(shown_batches("predicting", read, verbose > 0)) as batches:
        for batch in batches:
            if len(batch.table) or (batch.is_last and schema is None):
                told = _table(model, batch, keep, threshold)
                schema = told.schema if schema is None else schema
                yield _cast(told, schema, batch.where)


def shown_batches(
    what: str, batches: Iterator[tables.Batch], shown: bool
) -> Generator[tables.Batch, None, None]:
    """The same batches; of several it is shown how much is done, how fast, and what is left."""
    first = next(batches)
    with show_progress(shown and not first.is_last, 100, f"{what}, %") as show:
        pace, done = RowRate(), 0
        for batch in chain([first], batches):
            yield batch
            percent = int(100 * batch.share)
            show(percent - done, pace.update(len(batch.table)))
            done = percent


def rows_of_files(
    model: Any, source: Any, target: str | None = None, *, beside: Sequence[str] = (), n_rows: int
) -> Iterator[tables.Batch]:
    """Batches of what a model reads of files, of a target, and of other columns."""
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else [*names, *([] if target is None else [target]), *beside]
    types = partial(types_of, model, target, beside=beside)
    return tables.read_batches(source, types, n_rows, columns)


def _table(model: Any, batch: tables.Batch, keep: list[str], threshold: float | None) -> pa.Table:
    pa = import_extra("pyarrow", "files")
    missing = [name for name in keep if name not in batch.table.column_names]
    if missing:
        raise ValueError(f"{batch.where} has no column {tables.listed(map(repr, missing))}")
    rows = batch.table
    if getattr(model, "feature_names_in_", None) is None:
        rows = rows.drop_columns(keep)
    said = answers(model, named_rows_for(model, rows, batch.where), threshold)
    twice = [name for name in keep if name in said]
    if twice:
        raise ValueError(f"keep={twice[0]!r} is the name of what is said: give the column another")
    kept = {name: batch.table[name] for name in keep}
    return pa.table({**kept, **{name: pa.array(one) for name, one in said.items()}})


def _cast(told: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """The same with the types of the first batch."""
    if told.schema == schema:
        return told
    try:
        return told.cast(schema)
    except import_extra("pyarrow", "files").ArrowInvalid as error:
        raise ValueError(
            f"a column to keep has other types in {where} than before: {error}"
        ) from None
