"""Estimate the memory and disk space of a fit to files, by a dry run without the fit itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from certree.interface.formatting import format_quantity
from certree.rows.out_of_core import is_dask_collection, is_out_of_core

_IS_DRY_RUN: ContextVar[bool] = ContextVar("whether fits to files are dry runs", default=False)


@dataclass(frozen=True, slots=True)
class FitPlan:
    """Memory and disk space that a fit to files needs, as `plan_fit` estimates them.

    Attributes
    ----------
    n_rows, n_features : int
        Size of the table.
    n_blocks : int
        Number of blocks of rows that are read one after the other; 0: all rows are read into memory.
    n_threads : int
        Number of blocks that are read at a time.
    memory_bytes : int
        Upper bound of the anonymous memory of the process during the fit, with what it holds before.
    scratch_bytes : int
        Upper bound of the space for temporary files.
    """

    n_rows: int
    n_features: int
    n_blocks: int
    n_threads: int
    memory_bytes: int
    scratch_bytes: int

    def __str__(self) -> str:
        """Return the plan as a sentence with its numbers of rows, blocks, threads and bytes."""
        size = f"{format_quantity(self.n_rows, 'row')} of {format_quantity(self.n_features, 'feature')}"
        if self.n_blocks == 0:
            return f"{size} are read into memory and fitted there"
        return (
            f"{size} are read in {format_quantity(self.n_blocks, 'block')} by "
            f"{format_quantity(self.n_threads, 'thread')}: at most "
            f"{self.memory_bytes / 1e9:.2f} GB of memory and {self.scratch_bytes / 1e9:.2f} GB of "
            "temporary files"
        )


class DryRunError(Exception):
    """Raised by `fit` inside `plan_fit`, once it has estimated its memory, in place of fitting.

    plan: the estimate.
    """

    def __init__(self, plan: FitPlan) -> None:
        super().__init__(plan)
        self.plan = plan


def is_dry_run() -> bool:
    """Return whether the caller runs within `plan_fit`.

    Fits to files are dry runs then: they find out how much memory they need, and raise
    `DryRunError` with the plan instead of fitting.
    """
    return _IS_DRY_RUN.get()


@contextmanager
def _dry_run() -> Iterator[None]:
    """Return a context in which fits of this thread are dry runs.

    They estimate the memory that a fit needs, and raise `DryRunError` with it. `is_dry_run` returns
    True in the context.
    """
    token = _IS_DRY_RUN.set(True)
    try:
        yield
    finally:
        _IS_DRY_RUN.reset(token)


def plan_fit(model: Any, X: Any, y: Any, **fit_params: Any) -> FitPlan:
    """Estimate memory and disk space of a fit to files, without the fit.

    The files are read once, for their targets and categories. The model is not changed.

    Parameters
    ----------
    model : estimator
        Model that fits files, such as `BoostedTreesClassifier`.
    X : path, list of paths or pyarrow.dataset.Dataset
        Files, as `fit` takes them.
    y : str or list of str
        Names of the columns of the targets.
    **fit_params : object
        Other arguments of `fit`, such as `sample_weight`.

    Returns
    -------
    FitPlan
        The plan, under the limits of `resources`. Its text is a sentence.

    Raises
    ------
    TypeError
        If X is a table in memory or a Dask collection, or `fit` of the model reads no files.
    ValueError, OSError
        As `fit` raises them for wrong columns, targets or files.

    Examples
    --------
    >>> import pathlib, shutil, tempfile
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> from certree import BoostedTreesRegressor
    >>> from certree.out_of_core import plan_fit
    >>> x = np.arange(50_000.0)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.parquet"
    >>> pq.write_table(pa.table({"x": x, "y": np.sin(x)}), file)
    >>> plan = plan_fit(BoostedTreesRegressor(max_iter=100), file, "y")
    >>> print(plan)  # doctest: +ELLIPSIS
    50,000 rows of 1 feature are read in 1 block by ...: at most ... GB of memory and 0.01 GB of ...
    >>> plan.memory_bytes < 2**30  # does it fit into 1 GiB?
    True
    >>> plan.scratch_bytes < shutil.disk_usage(tempfile.gettempdir()).free
    True
    """
    if not is_out_of_core(X) or is_dask_collection(X):
        raise TypeError(
            f"X must be a path, a list of paths or a pyarrow data set, got {type(X).__name__}: "
            "plan_fit estimates the memory of fits to files only, so call fit for tables in memory "
            "and Dask collections"
        )
    with _dry_run():
        try:
            clone(model).fit(X, y, **fit_params)
        except DryRunError as planned:
            return planned.plan
    raise TypeError(
        "model must be an estimator whose fit reads files, such as BoostedTreesClassifier, got "
        f"{type(model).__name__}: pass such a model"
    )
