"""Certificates of classifiers by rows that are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.certificates.certificate import Certificate
from certree.certificates.guarantees import Guarantees
from certree.certificates.hold_out import expect_known_labels, hold_out, share_of_look
from certree.certificates.known_rows import JudgingRows
from certree.interface.fitted import expect_one_target
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
    expect_one_target("a certificate", classifier)
    share = share_of_look(look)
    judging, wrong, labels = JudgingRows(classifier, duplicates), [], []
    for X, truth in batches:
        judging.add(X, truth)
        wrong.append(np.asarray(classifier.predict(X)) != truth)
        labels.append(np.unique(truth))
    expect_known_labels("y", np.unique(np.concatenate(labels)), np.asarray(classifier.classes_))
    rows, repeats = judging.judged()
    judged = np.concatenate(wrong)[rows]
    found = hold_out(int(judged.sum()), len(judged), delta, share)
    return replace(found, repeats=repeats, distinct=duplicates == "copies")


def guarantees_by_batches(
    classifier: Any,
    batches: Iterable[tuple[Any, NDArray[Any]]],
    delta: float,
    *,
    duplicates: Duplicates = "auto",
) -> Guarantees:
    """What `Guarantees.by_rows` says, by rows of which a hash, a truth and predictions are kept.

    Parameters
    ----------
    classifier : fitted classifier
        With ``classes_`` and ``predict_proba``.
    batches, delta, duplicates
        As in `certify_batches`.

    Returns
    -------
    Guarantees

    Raises
    ------
    ValueError
        As in `certify`.
    """
    expect_one_target("a certificate", classifier)
    judging, told = JudgingRows(classifier, duplicates), []
    for X, truth in batches:
        judging.add(X, truth)
        told.append((truth, np.asarray(classifier.predict(X)), classifier.predict_proba(X)))
    y, predicted, shares = (np.concatenate(one) for one in zip(*told, strict=True))
    expect_known_labels("y", np.unique(y), np.asarray(classifier.classes_))
    rows, repeats = judging.judged()
    found = hold_out(int(np.sum(predicted[rows] != y[rows])), len(rows), delta)
    return Guarantees(
        classifier=classifier,
        certificate=replace(found, repeats=repeats, distinct=duplicates == "copies"),
        y=y[rows],
        predicted=predicted[rows],
        shares=shares[rows],
        given=rows,
        n_given=len(y),
    )
