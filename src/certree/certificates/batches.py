"""Certificates of classifiers by rows that are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.certificates.certificate import Certificate
from certree.certificates.hold_out import compute_look_fraction, expect_known_labels, hold_out
from certree.certificates.leakage_check import LeakageCheck
from certree.interface.fitted_state import check_one_target
from certree.parts.sources import FileRows
from certree.rows.columns import copy_raw_values
from certree.rows.duplicates import Duplicates


def certify_batches(
    classifier: Any,
    batches: Iterable[tuple[Any, NDArray[Any]]],
    delta: float,
    *,
    look: int | None = None,
    duplicates: Duplicates = "auto",
) -> Certificate:
    """Certify a fitted classifier as `certify` does, by rows of which a hash and a truth are kept.

    Parameters
    ----------
    classifier : fitted classifier
        With ``classes_``.
    batches : iterable of (array-like of shape (n, p), ndarray of shape (n,))
        Rows and their classes.
    delta, look, duplicates
        As there.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        As there.
    """
    check_one_target("a certificate", classifier)
    share = compute_look_fraction(look)
    judging, wrong, labels = LeakageCheck(classifier, duplicates), [], []
    for X, truth in batches:
        judging.add(X, truth)
        wrong.append(np.asarray(classifier.predict(X)) != truth)
        labels.append(np.unique(truth))
    expect_known_labels("y", np.unique(np.concatenate(labels)), np.asarray(classifier.classes_))
    judged = judging.select_rows()
    errors = judged.count_errors(np.concatenate(wrong))
    found = hold_out(errors, len(judged.rows), delta, share)
    return replace(found, **judged.drawn)


def read_batches(classifier: Any, X: Any, y: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Read the rows of files as a classifier takes them, and their classes, batch by batch.

    Parameters
    ----------
    classifier : fitted classifier
        Where it knows names of features, columns are found by these; else all columns but y are.
    X : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of them.
    y : str
        Name of the column that holds the classes.

    Yields
    ------
    X : pyarrow.Table or ndarray of shape (n, p)
        Features, without names where the classifier knows none.
    y : ndarray of shape (n,)
        Classes.

    Raises
    ------
    TypeError
        If y is no name, or the classifier has no ``classes_``.
    ValueError
        As in fits of rows in files, if the files lack a feature, or if they have no rows.
    """
    if not isinstance(y, str):
        raise TypeError(
            f"y must be the name of a column where X names files, got {type(y).__name__}"
        )
    if not hasattr(classifier, "classes_"):
        raise TypeError(
            "rows in files certify classifiers that have classes_, got "
            f"{type(classifier).__name__}: read the rows into memory"
        )
    rows = FileRows(X, y)
    if not rows.n_rows:
        raise ValueError("X must name files that hold at least one row, got files without any")
    names = getattr(classifier, "feature_names_in_", None)
    columns = rows.features if names is None else list(names)
    if missing := [name for name in columns if name not in rows.features]:
        raise ValueError(
            f"the files of X have no column {missing[0]!r}, which the classifier was fitted with"
        )
    for chunk in rows.chunks():
        X = chunk.X.select(columns)
        yield copy_raw_values(X) if names is None else X, np.asarray(chunk.y)
