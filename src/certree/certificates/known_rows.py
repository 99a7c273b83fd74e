"""Which rows a classifier has seen: those of its fit, or of the fits of its members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from certree.interface.arrays import UInt64, to_array
from certree.rows.columns import frame_of, given_values
from certree.rows.duplicates import (
    AlikeRows,
    Duplicates,
    distinct_rows,
    expect_few_repeats,
    first_of,
    n_repeats,
)
from certree.rows.folds import Indices
from certree.rows.hashes import known_rows

# Classifiers of scikit-learn whose member takes some of the features.
_SELECTORS = {"RFE", "RFECV"}
# Those that are what one member is.
_OF_ONE = {"FixedThresholdClassifier", "FrozenEstimator", *_SELECTORS}
# Those of whose rows some member has seen each, unless members were fitted before.
_OF_ALL_ROWS = {
    "BaggingClassifier",
    "CalibratedClassifierCV",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
    "StackingClassifier",
    "TunedThresholdClassifierCV",
    "VotingClassifier",
}


def rows_that_judge(
    classifier: Any, X: Any, y: ArrayLike, duplicates: Duplicates
) -> tuple[Indices, int | None]:
    """Which rows may judge a classifier, and how many of them repeat others.

    Parameters
    ----------
    classifier : fitted classifier
        Of any library.
    X : array-like of n rows
        Rows.
    y : array-like of shape (n,)
        Their classes.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        What rows are that are alike; see `certify`.

    Returns
    -------
    rows : ndarray of intp
        All of them, or the distinct ones.
    repeats : int or None
        How many are like a row of the fit or another one of them; None: nobody knows the rows of the
        fit.

    Raises
    ------
    ValueError
        If rows occur in the fit as well, nobody knows any more whether they do, or they are alike, and
        nothing is said of it.
    """
    truth = to_array("y", y)
    judging = JudgingRows(classifier, duplicates)
    judging.add(X, truth)
    return judging.judged()


# What lets rows judge in any case.
_WAYS = 'give duplicates="genuine" (on the command line --duplicates genuine) if'


class JudgingRows:
    """Rows that are to judge a classifier, some after others; of each a hash is kept.

    Parameters
    ----------
    classifier, duplicates
        See `rows_that_judge`.
    """

    def __init__(self, classifier: Any, duplicates: Duplicates) -> None:
        self._classifier, self._duplicates = classifier, duplicates
        self._alike, self._told = AlikeRows(), True
        self._hashes: list[UInt64] = []
        self._exact: list[NDArray[np.bool_]] = []
        self._rounded: list[NDArray[np.bool_]] = []

    def add(self, X: Any, truth: NDArray[Any]) -> None:
        """Look at some more rows and their classes."""
        exact, rounded, told = _seen(self._classifier, X, len(truth), self._duplicates)
        self._told &= told
        self._exact.append(exact)
        self._rounded.append(rounded)
        self._hashes.append(self._alike.hashes(X, truth))

    def judged(self) -> tuple[Indices, int | None]:
        """Which of all these rows may judge, and how many repeat others; see `rows_that_judge`."""
        exact, rounded = np.concatenate(self._exact), np.concatenate(self._rounded)
        seen, told = exact | rounded, self._told
        if seen.any() and self._duplicates != "genuine":
            as_float32 = np.sum(seen & ~exact)
            how = f" ({as_float32:,} of them as float32 holds them)" if as_float32 else ""
            raise ValueError(
                f"{np.sum(seen):,} of {len(seen):,} rows also occur among those of the fit{how}, by "
                f"which nothing can be certified: give new rows, or {_WAYS} they were drawn anew and "
                "happen to be alike"
            )
        first = first_of(np.concatenate(self._hashes))
        every = np.arange(len(first))
        if self._duplicates == "copies":
            return distinct_rows(first, None)[0], 0 if told else None
        repeats = n_repeats(first, every[:0], every)
        expect_few_repeats(repeats, len(every), self._duplicates)
        return every, int(np.sum(seen | (first != every))) if told else None


def _seen(
    classifier: Any, X: Any, n: int, duplicates: Duplicates
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], bool]:
    """Which rows some fit has seen, as they are and as float32; whether that is known of all fits."""
    exact, rounded, told = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), True
    for model, rows in _fits(classifier, X):
        hashes = getattr(model, "sample_hashes_", None)
        if hashes is None:
            told = False
            if hasattr(model, "sample_hashes_") and duplicates != "genuine":
                raise ValueError(
                    "the model was saved without hashes of the rows of its fit, so that nothing tells "
                    f"whether those given are new: {_WAYS} they are"
                )
            continue
        of_model = known_rows(model._new_rows(rows), hashes)
        exact, rounded = exact | of_model[0], rounded | of_model[1]
    return exact, rounded, told


def _fits(classifier: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """The fitted models inside a classifier, with the rows as they come in there.

    One that says nothing of the rows of its fit stands for all that cannot be told.
    """
    if hasattr(classifier, "sample_hashes_"):
        yield classifier, X
    elif hasattr(classifier, "best_estimator_"):
        yield from _fits(classifier.best_estimator_, X)
    elif hasattr(classifier, "named_steps"):
        rows = classifier[:-1].transform(X) if len(classifier.steps) > 1 else X
        yield from _fits(classifier[-1], rows)
    else:
        members = [*_members(classifier, X)]
        found = [one for member in members for one in _fits(*member)]
        known = [one for one in found if hasattr(one[0], "sample_hashes_")]
        yield from known
        # Members of one fit have seen the same rows, so that one that tells speaks for the others.
        if not known or not _sees_all_rows(classifier, [one for one, _ in members]):
            yield None, X


def _members(classifier: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Fitted members of a classifier of scikit-learn, with the rows as they come in there."""
    if type(classifier).__name__ == "FrozenEstimator":
        yield classifier.estimator, X
    for one in getattr(classifier, "calibrated_classifiers_", ()):
        yield one.estimator, X
    # Beside its members a bag has the one that it was given, which may be fitted to anything.
    if hasattr(classifier, "estimator_") and not hasattr(classifier, "estimators_"):
        selects = type(classifier).__name__ in _SELECTORS
        yield classifier.estimator_, classifier.transform(X) if selects else X
    features = getattr(classifier, "estimators_features_", None)
    for place, one in enumerate(np.ravel(getattr(classifier, "estimators_", ()))):
        if features is None:
            named = hasattr(one, "feature_names_in_") or hasattr(one, "named_steps")
            yield one, X if named or frame_of(X) is None else given_values(X)
        else:
            yield one, _safe_indexing(given_values(X), features[place], axis=1)


def _sees_all_rows(classifier: Any, members: list[Any]) -> bool:
    """Whether no row has served the classifier that none of its members has seen."""
    name = type(classifier).__name__
    if name in _OF_ONE:
        return True
    if name not in _OF_ALL_ROWS or any(type(one).__name__ == "FrozenEstimator" for one in members):
        return False
    cv = getattr(classifier, "cv", None)
    return bool(getattr(classifier, "refit", True)) and (cv is None or isinstance(cv, int))
