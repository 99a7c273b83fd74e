"""Leakage check: whether calibration rows equal rows of a classifier's fit, or of its members' fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from certree.certificates.baseline import compute_class_baseline
from certree.certificates.certificate import Certificate, Matches
from certree.certificates.hold_out import certify_row_errors
from certree.certificates.inequalities.good_turing import bound_matches, estimate_matches
from certree.certificates.row_order import measure_row_order, warn_of_missing_times
from certree.interface.arrays import Float64, UInt64, find_positions, to_array
from certree.interface.fitted_state import expect_rows, find_groups_column, find_time_column
from certree.rows.columns import as_data_frame, copy_raw_values
from certree.rows.duplicates import (
    QUESTION,
    Duplicates,
    RowHasher,
    count_worst,
    decide_worst_case,
    find_first_equal_keys,
    get_allowed_repeats,
    mark_repeats_by_key,
    merge_copies,
)
from certree.rows.folds import Indices, number_groups
from certree.rows.hashes import RowHashes, find_known_rows, hash_samples, merge_hashes
from certree.rows.repeat_counts import RepeatCounts, hash_table_rows
from certree.rows.split import check_groups, compute_group_weights, draw_copies, rank_units
from certree.rows.time_order import RowTimes
from certree.rows.training import get_first_untrained_code

# Classifiers of scikit-learn whose member uses a subset of the features.
_SELECTORS = {"RFE", "RFECV"}
# Wrappers, which have a single member.
_WRAPPERS = {"FixedThresholdClassifier", "FrozenEstimator", *_SELECTORS}
# Ensembles in which each row is seen by some member, unless members were fitted before.
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
    """The calibration rows of a classifier that `select_calibration_rows` returns.

    Parameters
    ----------
    rows : ndarray of intp
        Positions of the rows to use among those that were passed.
    drawn : dict
        Fields of `Certificate` by name. Repeated rows equal a row of the fit or another of the
        rows. "grouped": whether rows have groups; "repeats": number of repeated rows, or None if
        hashes of the fit are unknown; "distinct": whether equal rows count once; "matches": how
        many rows equal rows of the fit, and how many are expected to, a `Matches`, or None if none
        do; "worst": number of rows that count as errors whatever is predicted; "period": a `Period`,
        or None without times.
    units : ndarray of intp, shape (len(rows),), or None
        For the test of whether errors depend on the order of the rows: number of the unit of each
        row, 0, 1, ..., in the order of the rows that were passed. A unit is a group, or a set of
        equal rows. None: rows have times, whose order is known.
    is_worst : ndarray of bool, shape (len(rows),), or None
        True for repeated rows that count as errors whatever is predicted; None: no such rows.
    weight : ndarray of float64, shape (len(rows),), or None
        For rows in groups 1 / (number of these rows of the row's group); None: no groups.
    """

    rows: Indices
    drawn: dict[str, Any]
    units: Indices | None
    is_worst: NDArray[np.bool_] | None = None
    weight: Float64 | None = None

    def certify_errors(
        self,
        is_wrong: NDArray[np.bool_],
        codes: Indices,
        classes: NDArray[Any],
        delta: float,
        share: float = 1.0,
    ) -> Certificate:
        """Bound the error by the rows to use, those of the field `rows`.

        Rows of `is_worst` count as errors whatever is predicted. The bound is that of Clopper and
        Pearson; with groups it is Hoeffding's on the mean over groups of each group's fraction of
        errors. The certificate notes whether errors depend on the order of the rows.

        Parameters
        ----------
        is_wrong : ndarray of bool, shape (n,)
            Whether each row that was passed is predicted wrongly.
        codes : ndarray of int, shape (n,)
            Position of the true class of each row in `classes`.
        classes : ndarray of shape (K,)
            The classes of the rows.
        delta, share : float
            Probability with which certificates may fail, and the fraction of it that this one uses.

        Returns
        -------
        Certificate
            With the error of always predicting the most frequent class of the rows to use.
        """
        wrong, codes = is_wrong[self.rows], codes[self.rows]
        order = measure_row_order(
            self.units,
            len(classes),
            lambda rows: 1.0 * (wrong[rows, None] & (codes[rows, None] == np.arange(len(classes)))),
        )
        if self.is_worst is not None:
            wrong |= self.is_worst
        found = certify_row_errors(wrong, self.weight, delta, share, self.drawn.get("period"))
        baseline = compute_class_baseline(codes, classes, self.weight)
        return replace(found, baseline=baseline, row_order=order, **self.drawn)


def select_calibration_rows(
    classifier: Any,
    X: Any,
    y: ArrayLike,
    duplicates: Duplicates,
    groups: ArrayLike | None = None,
    times: RowTimes | None = None,
) -> CalibrationRows:
    """Check rows for leakage, and select those that may certify a classifier.

    Parameters
    ----------
    classifier : fitted classifier
        A model of any library. Models of certree, also inside scikit-learn's wrappers and
        ensembles, hold hashes of the rows of their fit.
    X : array-like of n rows
        Candidate calibration rows.
    y : array-like of shape (n,)
        Their true classes.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        "auto": a small number of rows may equal each other or rows of the fit (`certify` states
        it); "genuine": all rows are new draws; "copies": equal rows count once; "refuse": no row
        may equal another or one of the fit. Rows of the fit are known only for models of certree,
        which keep their hashes.
    groups : array-like of shape (n,), or None
        Group of each row, if only groups are independent; None: rows are independent.
    times : RowTimes or None
        Time of each row; None: rows have no times.

    Returns
    -------
    CalibrationRows
        All rows, or with "copies" the first of each set of equal rows.

    Raises
    ------
    ValueError
        If more rows equal rows of the fit, or each other, than `duplicates` accepts; if the model
        was saved without its hashes and `duplicates` is not "genuine"; or if "genuine" cannot be
        true, as the rows are the table of the fit, or equal more of its rows than new rows would;
        if `groups` does not name a group for each row; or if all times are equal.
    """
    truth = to_array("y", y)
    check = LeakageCheck(classifier, duplicates)
    check.add(X, truth)
    return check.select_rows(groups, times)


# The part of messages that says how to accept repeated rows.
_USE_GENUINE = 'give duplicates="genuine" (on the command line --duplicates genuine) if'


class _MatchesOfFit:
    """Compares calibration rows with the rows of one fit, batch by batch, and counts equal ones.

    Call `add` for each batch. Then the property `expected` is the number of matches to expect if
    all rows added were new draws (float, or None if unknown), and ``why_not_genuine()`` returns a
    phrase (str) that says why they cannot be new draws, or None if they may be.

    Parameters
    ----------
    model : fitted classifier of certree
        The model, which holds hashes of the rows of its fit (``sample_hashes_``).

    Attributes
    ----------
    counts : RepeatCounts or None
        How often rows repeat within the fit; None: the model does not store it.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._n = model, 0
        self.counts: RepeatCounts | None = getattr(model, "_sample_counts", None)
        self._table, self._n_matches = 0, 0
        # Hashes of all rows added, kept if the fit counted equal rows once; else None.
        self._distinct: list[UInt64] | None = None
        if hasattr(model, "certificate_") and model.certificate_.distinct:
            self._distinct = []

    def add(self, rows: Any, codes: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Compare a batch of rows with the rows of the fit.

        rows: the rows, (n_batch, p); codes: true class of each row as a class code of the model,
        (n_batch,). Return two bool
        arrays (n_batch,): whether a row equals one of the fit exactly, and whether it does after
        rounding to float32. Updates the counts from which `expected` and `why_not_genuine` are
        computed.
        """
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
        """Number of new rows, of as many as were added, that are expected to equal rows of the fit.

        A float, estimated from how often rows of the fit repeat; None if the model does not store
        that.
        """
        if self.counts is None:
            return None
        return estimate_matches(self.counts.n, self.counts.n_once, self._n)

    def why_not_genuine(self) -> str | None:
        """Return why the rows added cannot be new draws, as a phrase (str); None if they may be.

        The reasons are that they are the table of the fit, perhaps in another order, or that more
        of them equal rows of the fit than new rows would, except with probability 1e-6. Also None
        if the model does not store how often rows of its fit repeat.
        """
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
        """Return a hash of the different rows added, with their classes, as int.

        Each different row enters once. The result does not depend on the order of the rows. It is
        compared with the hash of the rows of a fit that dropped copies. If the fit kept all its
        rows, return the hash of all rows added, copies included.
        """
        if not self._distinct:
            return self._table
        return int(merge_hashes(*self._distinct).sum(dtype=np.uint64))


class LeakageCheck:
    """Collects calibration rows in batches, and checks them against each other and the rows of the fit.

    Call `add` for each batch, then `select_rows`, which returns the rows to use as a
    `CalibrationRows`. The object keeps a hash of each row.

    Parameters
    ----------
    classifier : fitted classifier
        A model of any library. Models of certree, also inside scikit-learn's wrappers and
        ensembles, hold hashes of the rows of their fit.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        "auto": a small number of rows may equal each other or rows of the fit (`certify` states
        it); "genuine": all rows are new draws; "copies": equal rows count once; "refuse": no row
        may equal another or one of the fit. Rows of the fit are known only for models of certree,
        which keep their hashes.
    """

    def __init__(self, classifier: Any, duplicates: Duplicates) -> None:
        self._classifier, self._duplicates = classifier, duplicates
        self._alike, self._has_hashes = RowHasher(), True
        # The column of the groups of the classifier's fit, or of the fits inside it.
        self._groups_column = find_groups_column(classifier)
        self._time_column = find_time_column(classifier)
        self._fits: list[_MatchesOfFit] = []
        self._hashes: list[RowHashes] = []
        self._exact: list[NDArray[np.bool_]] = []
        self._rounded: list[NDArray[np.bool_]] = []

    def add(self, X: Any, truth: NDArray[Any]) -> None:
        """Hash a batch of calibration rows, and compare them with the rows of the fit.

        X: rows, (n_batch, p); truth: their true classes, (n_batch,). Returns nothing; the results
        are kept for `select_rows`. Raises ValueError if the model was saved without its hashes and
        `duplicates` is not "genuine".
        """
        exact, rounded = self._match_rows(X, truth)
        self._exact.append(exact)
        self._rounded.append(rounded)
        self._hashes.append(self._alike.hash_rows(X, truth))

    def select_rows(
        self, groups: ArrayLike | None = None, times: RowTimes | None = None
    ) -> CalibrationRows:
        """Return which of the rows added so far may be used as calibration rows.

        At least one row must have been added. groups: group of each row, (n,); equal rows of one
        group count as one repeated row, as in fits. None: rows are independent. times: time of each
        row, or None. Return a `CalibrationRows` with all rows, or with "copies" the first of each
        set of equal rows. Raises ValueError if more rows equal rows of the fit, or each other, than
        `duplicates` accepts, if "copies" are in different groups, if `groups` has another length or
        missing entries, or if all times are equal; or if `groups` is None, but the classifier was
        fitted with groups, and no rows of a period may depend on each other. Issues a
        `RowOrderWarning` if `times` is None, but the classifier was fitted with times. Groups of one
        row each are independent rows.
        """
        if groups is None and (times is None or times.is_independent):
            self._expect_no_groups()
        expect_rows(sum(map(len, self._exact)), "certify a model")
        exact, rounded = np.concatenate(self._exact), np.concatenate(self._rounded)
        seen, has_hashes, word = exact | rounded, self._has_hashes, self._duplicates
        first = find_first_equal_keys(RowHashes.concatenate(self._hashes).keys)
        rows, places = np.arange(len(first)), None
        group = None if groups is None else _number_dependent_groups(groups, len(rows))
        if word == "copies":
            rows = merge_copies(first, None, group)[0]
            places = draw_copies(first, rows)
        group = None if group is None else group[rows]
        units = rank_units(first[rows] if group is None else group, places)
        number = np.arange(len(rows)) if group is None else group
        repeats = mark_repeats_by_key(first[rows], seen[rows], number)
        n_repeats, weight = int(repeats.sum()), None
        if group is not None:
            # Equal rows of one group count as one row.
            pairs = np.stack([first[rows], group])[:, repeats]
            n_repeats, weight = np.unique(pairs, axis=1).shape[1], compute_group_weights(group)
        self._check_new(seen[rows], exact[rows], n_repeats)
        is_worst = repeats if decide_worst_case(n_repeats, len(rows), word) else None
        drawn: dict[str, Any] = {
            "grouped": group is not None,
            "repeats": n_repeats if has_hashes else None,
            "distinct": word == "copies",
            "matches": self._matches(int(seen[rows].sum())) if has_hashes and seen.any() else None,
            "worst": count_worst(is_worst),
            "period": None,
        }
        if times is None:
            if self._time_column is not None:
                warn_of_missing_times(self._time_column)
            return CalibrationRows(rows, drawn, units, is_worst, weight)
        times.expect_order(None)
        times = times.merge(first) if word == "copies" else times
        drawn["period"] = times.take(rows).name_period(group)
        return CalibrationRows(rows, drawn, None, is_worst, weight)

    def _expect_no_groups(self) -> None:
        """Raise ValueError if the classifier was fitted with groups of rows, such as patients.

        It is called if the calibration rows have no groups: they could then be of the groups of the
        fit.
        """
        column = self._groups_column
        if column is not None:
            name = f" of {column!r}" if column else ""
            raise ValueError(
                f"groups must be passed, as the model was fitted with groups{name}, so that rows of a "
                "group may depend on each other: pass the group of each row. If each row is of another "
                "group, groups=range(len(y)) says so, and rows count as independent"
            )

    def _check_new(self, seen: NDArray[np.bool_], exact: NDArray[np.bool_], repeats: int) -> None:
        """Raise ValueError if rows equal rows of the fit and `duplicates` does not accept that.

        seen: whether each row equals one of the fit, bool (n,); exact: whether it does without
        rounding to float32, bool (n,); repeats: number of rows that equal rows of the fit or other
        calibration rows.
        """
        is_genuine, n = self._duplicates == "genuine", len(seen)
        if not seen.any() or not (
            is_genuine or repeats > get_allowed_repeats(n, self._duplicates)[1]
        ):
            return
        reasons = [why for one in self._fits if (why := one.why_not_genuine()) is not None]
        if is_genuine and reasons:
            raise ValueError(
                f'duplicates="genuine" cannot be true: {reasons[0]}, and rows of the fit cannot '
                "certify it. Pass new rows"
            )
        if is_genuine:
            return
        as_float32 = np.sum(seen & ~exact)
        how = f" ({as_float32:,} of them as float32 holds them)" if as_float32 else ""
        may_be = not reasons and all(one.counts is not None for one in self._fits)
        way = f". {QUESTION} If not, {_USE_GENUINE} they are new draws that happen to be equal"
        raise ValueError(
            f"X must hold new rows, but {np.sum(seen):,} of {n:,} rows also occur among those of the "
            f"fit{how}, which cannot certify it: pass new rows{way if may_be else ''}"
        )

    def _matches(self, found: int) -> Matches:
        """Return `found`, the number of rows that equal rows of the fits, with the number expected.

        `Matches` has the fields `found` and `expected`. The expected number is the largest of those
        of several fits inside the classifier; None if it is unknown for any of these fits.
        """
        expected = [one.expected for one in self._fits]
        known = [one for one in expected if one is not None]
        return Matches(found, max(known) if len(known) == len(expected) else None)

    def _match_rows(
        self, X: Any, truth: NDArray[Any]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Compare a batch of rows with the rows of all fits inside the classifier.

        X: rows, (n_batch, p); truth: their true classes, (n_batch,). Return two bool arrays
        (n_batch,): whether a row equals one of a fit exactly, and whether it does after rounding to
        float32. Raises ValueError if a model was saved without its hashes and `duplicates` is not
        "genuine". Records in `self` which fits were compared, whether hashes of one are missing,
        and whether a fit had groups or times.
        """
        exact, rounded = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
        place = 0
        for model, rows in _find_fitted_models(self._classifier, X):
            if self._groups_column is None:
                self._groups_column = find_groups_column(model)
            if self._time_column is None:
                self._time_column = find_time_column(model)
            if getattr(model, "sample_hashes_", None) is None:
                self._has_hashes = False
                if hasattr(model, "sample_hashes_") and self._duplicates != "genuine":
                    raise ValueError(
                        "the model was saved without hashes of the rows of its fit, so that it cannot "
                        f"be checked whether these rows are new: {_USE_GENUINE} they are"
                    )
                continue
            if place == len(self._fits):
                self._fits.append(_MatchesOfFit(model))
            of_model = self._fits[place].add(rows, _encode_classes(model, self._classifier, truth))
            exact, rounded, place = exact | of_model[0], rounded | of_model[1], place + 1
        return exact, rounded


def _number_dependent_groups(groups: ArrayLike, n: int) -> Indices | None:
    """Return the number of each row's group, (n,); None if each group has one row.

    groups: group of each of n rows, such as a customer. Raise ValueError if it has another length,
    or missing entries, and TypeError if it is the name of a column, or cannot be sorted.
    """
    names, codes = number_groups(check_groups(groups, n))
    return None if len(names) == n else codes


def _encode_classes(model: Any, classifier: Any, truth: NDArray[Any]) -> NDArray[Any]:
    """Encode true classes as the integer codes of a model inside a classifier, (n,).

    model: the inner model; classifier: the outer one, such as an ensemble; truth: true class of each
    of n rows. If both models have equally many classes, the classes are those of the outer one, in
    its order, as scikit-learn fits inner models to class numbers; else they are those of the inner
    model. Other classes share one code, which none of these has. All codes are 0 if the inner model
    has several targets, or `truth` has another type than the classes.
    """
    known, given = model.classes_, getattr(classifier, "classes_", None)
    if isinstance(known, list):
        return np.zeros(len(truth))  # certificates take one target
    # Members of scikit-learn's ensembles are fitted to class numbers instead of classes.
    classes = np.asarray(given if given is not None and len(given) == len(known) else known)
    try:
        places, are_known = find_positions(classes, truth)
    except TypeError:  # text instead of numbers, which is refused later
        return np.zeros(len(truth))
    trained = getattr(
        model, "_trained", None
    )  # of certified fits, which number these classes first
    if trained is not None:
        return np.asarray(trained.encode_positions(np.where(are_known, places, len(classes))))
    return np.where(are_known, places, get_first_untrained_code(len(classes)))


def _find_fitted_models(classifier: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fitted models inside a classifier, each with the rows as that model receives them.

    X: rows as the classifier receives them. Pairs (model, rows); models of certree hold
    ``sample_hashes_``. A final pair (None, X) means that some fit cannot be checked, as its rows
    are unknown.
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
        # Members of one fit have seen the same rows, so that one with hashes is enough.
        if not known or not _members_cover_rows(classifier, [one for one, _ in members]):
            yield None, X


def _find_members(classifier: Any, X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fitted members of a scikit-learn classifier, each with the rows that it receives.

    classifier: a wrapper or an ensemble; X: rows as it receives them. Yields pairs (member, rows),
    none if the classifier has no members.
    """
    if type(classifier).__name__ == "FrozenEstimator":
        yield classifier.estimator, X
    for one in getattr(classifier, "calibrated_classifiers_", ()):
        yield one.estimator, X
    # The attribute estimator_ of an ensemble is its unfitted template, so it is no member.
    if hasattr(classifier, "estimator_") and not hasattr(classifier, "estimators_"):
        selects = type(classifier).__name__ in _SELECTORS
        yield classifier.estimator_, classifier.transform(X) if selects else X
    features = getattr(classifier, "estimators_features_", None)
    for place, one in enumerate(_flatten(getattr(classifier, "estimators_", ()))):
        if features is None:
            named = hasattr(one, "feature_names_in_") or hasattr(one, "named_steps")
            yield one, X if named or as_data_frame(X) is None else copy_raw_values(X)
        else:
            yield one, _safe_indexing(copy_raw_values(X), features[place], axis=1)


def _flatten(members: Any) -> Iterator[Any]:
    """Yield the estimators of nested lists and arrays, one by one.

    NumPy would take a Pipeline or an ensemble, which have a length, for a list of its steps.
    members: an estimator, or lists and arrays of them, nested to any depth.
    """
    if isinstance(members, list | tuple | np.ndarray):
        for one in members:
            yield from _flatten(one)
    else:
        yield members


def _members_cover_rows(classifier: Any, members: list[Any]) -> bool:
    """Return whether every row that the classifier was fitted to was also seen by one of its members.

    members: its fitted members. True for known wrappers of a single model, and for known ensembles
    of scikit-learn with an integer `cv` or None and without members that were fitted before
    (``FrozenEstimator``); False for all other classes, as their fits are not known.
    """
    name = type(classifier).__name__
    if name in _WRAPPERS:
        return True
    if name not in _ENSEMBLES or any(type(one).__name__ == "FrozenEstimator" for one in members):
        return False
    cv = getattr(classifier, "cv", None)
    return bool(getattr(classifier, "refit", True)) and (cv is None or isinstance(cv, int))
