"""Certificates of classifiers by rows that are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.certificates.certificate import Certificate
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
