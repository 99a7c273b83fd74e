"""Which rows a classifier has seen: those of its fit, or of the fits of its members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from certree.certificates.certificate import Matches
from certree.certificates.inequalities.good_turing import bound_matches, estimate_matches
from certree.interface.arrays import UInt64, find_positions, to_array
from certree.rows.columns import as_data_frame, copy_raw_values
from certree.rows.duplicates import (
    QUESTION,
    Duplicates,
    RowHasher,
    count_worst,
    decide_worst_case,
    find_first_equal_keys,
    get_allowed_repeats,
    merge_copies,
)
from certree.rows.folds import Indices
from certree.rows.hashes import RowHashes, find_known_rows, hash_samples, merge_hashes
from certree.rows.repeat_counts import RepeatCounts, hash_table_rows
from certree.rows.training import get_first_untrained_code

# Classifiers of scikit-learn whose member takes some of the features.
_SELECTORS = {"RFE", "RFECV"}
# Those that are what one member is.
_WRAPPERS = {"FixedThresholdClassifier", "FrozenEstimator", *_SELECTORS}
# Those of whose rows some member has seen each, unless members were fitted before.
_ENSEMBLES = {
    "BaggingClassifier",
    "CalibratedClassifierCV",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
    "StackingClassifier",
    "TunedThresholdClassifierCV",
    "VotingClassifier",
}


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationRows:
    """Rows that may judge a classifier.

    Parameters
    ----------
    rows : ndarray of intp
        Places of these rows among those that were given.
    drawn : dict
        What is known of their draw, as fields of a `Certificate`: repeats, distinct, matches, worst.
    is_worst : ndarray of bool, or None
        Which of these rows count as the worst case; None: none.
    """

    rows: Indices
    drawn: dict[str, Any]
    is_worst: NDArray[np.bool_] | None = None

    def count_errors(self, wrong: NDArray[np.bool_]) -> int:
        """How many of these rows are errors, by whether each row that was given is one."""
        own = wrong[self.rows]
        return int(np.sum(own if self.is_worst is None else own | self.is_worst))


def select_calibration_rows(
    classifier: Any, X: Any, y: ArrayLike, duplicates: Duplicates
) -> CalibrationRows:
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
    CalibrationRows
        All of them, or the distinct ones.

    Raises
    ------
    ValueError
        If rows occur in the fit as well, nobody knows any more whether they do, or they are alike, and
        nothing is said of it; if they are said to be genuine, and are the table of the fit or match
        more rows of it than new rows would.
    """
    truth = to_array("y", y)
    judging = LeakageCheck(classifier, duplicates)
    judging.add(X, truth)
    return judging.select_rows()


# What lets rows judge in any case.
_USE_GENUINE = 'give duplicates="genuine" (on the command line --duplicates genuine) if'


class _MatchesOfFit:
    """Which of the rows given match rows of one fit.

    Parameters
    ----------
    model : fitted classifier of certree
        The model of the fit, which knows hashes of its rows.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._n = model, 0
        self.counts: RepeatCounts | None = getattr(model, "_sample_counts", None)
        self._table, self._n_matches = 0, 0
        # Hashes of rows one by one, where the fit has kept one row of those that are alike.
        self._distinct: list[UInt64] | None = None
        if hasattr(model, "certificate_") and model.certificate_.distinct:
            self._distinct = []

    def add(self, rows: Any, codes: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Compare some rows with those of the fit: which match exactly, and which as float32."""
        X = self._model._encode_new_rows(rows)
        exact, rounded = find_known_rows(X, self._model.sample_hashes_)
        self._n += len(codes)
        self._n_matches += int(np.sum(exact | rounded))
        if self.counts is not None:
            hashes = hash_table_rows(hash_samples(X), codes)
            self._table = (self._table + int(hashes.sum(dtype=np.uint64))) % 2**64
            if self._distinct is not None:
                self._distinct.append(hashes)
        return exact, rounded

    @property
    def expected(self) -> float | None:
        """How many matches are expected of new rows; None: the model does not know."""
        if self.counts is None:
            return None
        return estimate_matches(self.counts.n, self.counts.n_once, self._n)

    def why_not_genuine(self) -> str | None:
        """Why these rows are no new draws; None: they may be, or nobody knows."""
        counts = self.counts
        if counts is None:
            return None
        if counts.is_fit_table(self._table) or counts.is_fit_table(self._distinct_table()):
            return "the rows are the table of the fit, perhaps in another order"
        most = bound_matches(counts.n, counts.n_once, len(counts.twice), self._n)
        if self._n_matches > most:
            return (
                f"{self._n_matches:,} of {self._n:,} rows match rows of the fit, where at most "
                f"{most:,} new rows would"
            )
        return None

    def _distinct_table(self) -> int:
        """The hash of the table of one row of each that are alike, target included."""
        if not self._distinct:
            return self._table
        return int(merge_hashes(*self._distinct).sum(dtype=np.uint64))


class LeakageCheck:
    """Rows that are to judge a classifier, some after others; of each a hash is kept.

    Parameters
    ----------
    classifier, duplicates
        See `select_calibration_rows`.
    """

    def __init__(self, classifier: Any, duplicates: Duplicates) -> None:
        self._classifier, self._duplicates = classifier, duplicates
        self._alike, self._told = RowHasher(), True
        self._fits: list[_MatchesOfFit] = []
        self._hashes: list[RowHashes] = []
        self._exact: list[NDArray[np.bool_]] = []
        self._rounded: list[NDArray[np.bool_]] = []

    def add(self, X: Any, truth: NDArray[Any]) -> None:
        """Look at some more rows and their classes."""
        exact, rounded = self._match_rows(X, truth)
        self._exact.append(exact)
        self._rounded.append(rounded)
        self._hashes.append(self._alike.hash_rows(X, truth))

    def select_rows(self) -> CalibrationRows:
        """Which of all these rows may judge, and how many repeat others; see `select_calibration_rows`."""
        exact, rounded = np.concatenate(self._exact), np.concatenate(self._rounded)
        seen, told, word = exact | rounded, self._told, self._duplicates
        first = find_first_equal_keys(RowHashes.concatenate(self._hashes).keys)
        rows, repeats = np.arange(len(first)), seen | (first != np.arange(len(first)))
        if word == "copies":
            rows = merge_copies(first, None)[0]
            repeats = seen[rows]
        self._check_new(seen[rows], exact[rows], int(repeats.sum()))
        is_worst = repeats if decide_worst_case(int(repeats.sum()), len(rows), word) else None
        drawn = {
            "repeats": int(repeats.sum()) if told else None,
            "distinct": word == "copies",
            "matches": self._matches(int(seen[rows].sum())) if told and seen.any() else None,
            "worst": count_worst(is_worst),
        }
        return CalibrationRows(rows, drawn, is_worst)

    def _check_new(self, seen: NDArray[np.bool_], exact: NDArray[np.bool_], repeats: int) -> None:
        """Refuse many rows that occur in the fit, unless they may be and are said to be new draws."""
        is_genuine, n = self._duplicates == "genuine", len(seen)
        if not seen.any() or not (
            is_genuine or repeats > get_allowed_repeats(n, self._duplicates)[1]
        ):
            return
        reasons = [why for one in self._fits if (why := one.why_not_genuine()) is not None]
        if is_genuine and reasons:
            raise ValueError(
                f'duplicates="genuine" does not hold of these rows: {reasons[0]}, and by rows of the '
                "fit nothing can be certified. Give new rows"
            )
        if is_genuine:
            return
        as_float32 = np.sum(seen & ~exact)
        how = f" ({as_float32:,} of them as float32 holds them)" if as_float32 else ""
        may_be = not reasons and all(one.counts is not None for one in self._fits)
        way = f". {QUESTION} If not, {_USE_GENUINE} they were drawn anew and happen to be alike"
        raise ValueError(
            f"{np.sum(seen):,} of {n:,} rows also occur among those of the fit{how}, by which nothing "
            f"can be certified: give new rows{way if may_be else ''}"
        )

    def _matches(self, found: int) -> Matches:
        """How many rows match rows of the fits, and how many new ones are expected to."""
        expected = [one.expected for one in self._fits]
        known = [one for one in expected if one is not None]
        return Matches(found, max(known) if len(known) == len(expected) else None)

    def _match_rows(
        self, X: Any, truth: NDArray[Any]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows some fit has seen, as they are and as float32 holds them."""
        exact, rounded = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
        place = 0
        for model, rows in _find_fitted_models(self._classifier, X):
            if getattr(model, "sample_hashes_", None) is None:
                self._told = False
                if hasattr(model, "sample_hashes_") and self._duplicates != "genuine":
                    raise ValueError(
                        "the model was saved without hashes of the rows of its fit, so that nothing "
                        f"tells whether those given are new: {_USE_GENUINE} they are"
                    )
                continue
            if place == len(self._fits):
                self._fits.append(_MatchesOfFit(model))
            of_model = self._fits[place].add(rows, _encode_classes(model, self._classifier, truth))
            exact, rounded, place = exact | of_model[0], rounded | of_model[1], place + 1
        return exact, rounded


def _encode_classes(model: Any, classifier: Any, truth: NDArray[Any]) -> NDArray[Any]:
    """Codes of classes as a model inside a classifier has them; other classes have one more."""
    known, given = model.classes_, getattr(classifier, "classes_", None)
    if isinstance(known, list):
        return np.zeros(len(truth))  # certificates take one target
    # Ensembles of scikit-learn number the classes for their members.
    classes = np.asarray(given if given is not None and len(given) == len(known) else known)
    try:
        places, are_known = find_positions(classes, truth)
    except TypeError:  # words for numbers, which are refused later
        return np.zeros(len(truth))
    trained = getattr(
        model, "_trained", None
    )  # of certified fits, which number these classes first
    if trained is not None:
        return np.asarray(trained.encode_positions(np.where(are_known, places, len(classes))))
    return np.where(are_known, places, get_first_untrained_code(len(classes)))


def _find_fitted_models(classifier: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """The fitted models inside a classifier, with the rows as they come in there.

    One that says nothing of the rows of its fit stands for all that cannot be told.
    """
    if hasattr(classifier, "sample_hashes_"):
        yield classifier, X
    elif hasattr(classifier, "best_estimator_"):
        yield from _find_fitted_models(classifier.best_estimator_, X)
    elif hasattr(classifier, "named_steps"):
        rows = classifier[:-1].transform(X) if len(classifier.steps) > 1 else X
        yield from _find_fitted_models(classifier[-1], rows)
    else:
        members = [*_find_members(classifier, X)]
        found = [one for member in members for one in _find_fitted_models(*member)]
        known = [one for one in found if hasattr(one[0], "sample_hashes_")]
        yield from known
        # Members of one fit have seen the same rows, so that one that tells speaks for the others.
        if not known or not _members_cover_rows(classifier, [one for one, _ in members]):
            yield None, X


def _find_members(classifier: Any, X: Any) -> Iterator[tuple[Any, Any]]:
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
            yield one, X if named or as_data_frame(X) is None else copy_raw_values(X)
        else:
            yield one, _safe_indexing(copy_raw_values(X), features[place], axis=1)


def _members_cover_rows(classifier: Any, members: list[Any]) -> bool:
    """Whether no row has served the classifier that none of its members has seen."""
    name = type(classifier).__name__
    if name in _WRAPPERS:
        return True
    if name not in _ENSEMBLES or any(type(one).__name__ == "FrozenEstimator" for one in members):
        return False
    cv = getattr(classifier, "cv", None)
    return bool(getattr(classifier, "refit", True)) and (cv is None or isinstance(cv, int))
