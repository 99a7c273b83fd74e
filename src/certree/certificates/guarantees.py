"""Guarantees on a fitted classifier from a calibration set: errors, prediction sets, abstention.

`Guarantees` holds the calibration labels and predictions of a fitted classifier, and computes each
guarantee on request. `Guarantees.by_rows` makes it for any classifier from rows that its fit did
not use; certified estimators make it from the calibration set of their fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from typing import Any, Concatenate

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certree.certificates.batches import certify_batches, read_batches, read_partitions
from certree.certificates.certificate import (
    Certificate,
    compute_certificate,
    compute_log_delta,
    get_sampling_facts,
)
from certree.certificates.hold_out import (
    compute_look_fraction,
    expect_classifier,
    expect_known_labels,
    predict_rows,
)
from certree.certificates.leakage_check import LeakageCheck, select_calibration_rows
from certree.certificates.monitor import Monitor
from certree.certificates.occam import (
    Drawn,
    Selective,
    compute_class_margins,
    compute_node_margins,
    occam_pruning,
    selective_certificates,
    single_draw,
)
from certree.certificates.row_order import warn_of_row_order
from certree.certificates.shift import Shift, sample_by_weights
from certree.certificates.subsets.coverage import Scores, sort_truth_scores
from certree.certificates.subsets.families import (
    FAMILIES,
    FEWEST_ROWS,
    GROUP_FAMILIES,
    TREE_FAMILIES,
    CertificateFamily,
    CertificateTerms,
    ConditionalGuarantees,
    check_families,
    encode_groups,
)
from certree.certificates.subsets.node_bounds import NodeBounds
from certree.certificates.subsets.row_subsets import (
    CodedLabels,
    RowSubset,
    count_rows_in_nodes,
    encode_labels,
    make_label_subsets,
    make_leaf_subsets,
    make_node_subsets,
    make_pair_subsets,
    make_rule_subsets,
)
from certree.certificates.thresholds import (
    OperatingPoint,
    ThresholdGuarantees,
    check_costs,
    check_score_threshold,
    read_threshold,
)
from certree.certificates.tree_calibration import TreeCalibrationSet
from certree.interface.arrays import (
    Float64,
    Int32,
    check_column,
    check_nonnegative,
    to_array,
)
from certree.interface.fitted_state import (
    Arguments,
    Result,
    expect_rows,
    get_snapshot,
    snapshot_method,
)
from certree.interface.parameter_aliases import suggests_arguments
from certree.interface.positive_class import find_positive_class
from certree.interface.signatures import validate_arguments, validate_settings
from certree.out_of_core.time_split import TimeArguments
from certree.rows.dates import has_dates
from certree.rows.duplicates import Duplicates
from certree.rows.folds import Indices
from certree.rows.out_of_core import is_file_source, is_out_of_core
from certree.rows.time_order import RowTimes, has_dependent_rows
from certree.votes import Vote
from certree.weights.node_weights import NodeWeights
from certree.weights.rule_numbers import RuleNumbers

# The messages for guarantees other than the certificate if calibration rows may be dependent.
_PERIOD_NOT_SUPPORTED = (
    "conditional guarantees, thresholds, prediction sets and abstention need independent rows, but "
    "rows in time order may depend on each other: pass independent=True with time if rows of one "
    "period do not"
)
_GROUPS_NOT_SUPPORTED = (
    "conditional guarantees, thresholds, prediction sets and abstention need independent rows, but "
    "the calibration rows came in groups, whose rows depend on each other: pass one row of each new "
    "group to Guarantees.by_rows, with groups="
)
# The message for thresholds if the probabilities depend on the calibration rows.
_CHOSEN_NOT_SUPPORTED = (
    "thresholds need probabilities that were fixed before the calibration rows, but these rows have "
    "chosen the vote that predicts: fit with selection='training', or pass new rows to "
    "Guarantees.by_rows"
)
# Margins below which a classifier may abstain, fixed before any row is seen.
_MARGINS = [i / 20 for i in range(20)]


def _expect_independent_rows(source: Any) -> None:
    """Raise ValueError if calibration rows came in groups, or in time order without independence.

    source: object with the attributes `grouped` and `period`, such as a certificate.
    """
    if has_dependent_rows(source):
        raise ValueError(_GROUPS_NOT_SUPPORTED if source.grouped else _PERIOD_NOT_SUPPORTED)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Guarantees:
    """Guarantees on a fitted classifier, computed from a calibration set that its fit did not use.

    One instance holds one classifier with the true and predicted class of each calibration row.
    `by_rows` makes it for any fitted classifier; certified estimators have one for the calibration
    set of their fit (``CertifiedTreeClassifier.guarantees_``). Each method computes another
    guarantee; each guarantee holds by itself with probability ``1 - delta``, not jointly with
    `certificate`.

    Parameters
    ----------
    classifier : fitted classifier
        The classifier that the guarantees are about.
    certificate : Certificate
        Bound on its error on new rows. Its delta is the default of all methods.
    y : ndarray of shape (n,)
        True class of each calibration row.
    predicted : ndarray of shape (n,)
        Predicted class of each calibration row.
    shares : ndarray of shape (n, K), or None
        Predicted probability of each class for each calibration row, columns in the order of
        ``classifier.classes_``; None: the classifier has no ``predict_proba``.
    given : ndarray of intp, shape (n,), or None
        Position of each calibration row in the table that the caller passed; None: 0, ..., n - 1.
    n_given : int or None
        Number of rows of that table; None: n.
    is_worst : ndarray of bool, shape (n,), or None
        True for rows that equal a row of the fit or another calibration row, and therefore count
        in the worst way in each guarantee: as errors, and as not covered by their prediction set;
        None: no such rows.

    Raises
    ------
    ValueError
        If `y` is not one-dimensional, `predicted` has another shape, or `shares` another number of
        rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import BoostedTreesClassifier
    >>> from certree.certificates import Guarantees
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BoostedTreesClassifier(random_state=0).fit(X[:300], y[:300])
    >>> guarantees = Guarantees.by_rows(model, X[300:], y[300:])
    >>> guarantees.certificate.n, round(guarantees.conditional_guarantees().recall.worst.bound, 3)
    (269, 0.082)
    >>> guarantees.predict_set(X[:2], coverage=0.95).sum(axis=1)
    array([1, 1])
    """

    classifier: Any
    certificate: Certificate
    y: NDArray[Any]
    predicted: NDArray[Any]
    shares: Float64 | None = None
    given: Indices | None = None
    n_given: int | None = None
    is_worst: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        of = f"{type(self.classifier).__name__} by {len(self.y):,} calibration rows"
        return f"<{type(self).__name__} of {of}: {self.certificate!r}>"

    def __post_init__(self) -> None:
        validate_settings(self)
        y, predicted = to_array("y", self.y), to_array("predicted", self.predicted)
        if y.ndim != 1 or y.shape != predicted.shape:
            raise ValueError(
                "y and predicted must have one dimension and equal lengths, got shapes "
                f"{y.shape} and {predicted.shape}: pass a class for each row"
            )
        if self.shares is not None and len(self.shares) != len(y):
            raise ValueError(f"shares must have {len(y)} rows, as y has, got {len(self.shares)}")

    @classmethod
    def by_rows(
        cls,
        classifier: Any,
        X: Any,
        y: ArrayLike,
        delta: float = 0.05,
        *,
        duplicates: Duplicates = "auto",
        groups: ArrayLike | None = None,
        time: Any = None,
        independent: bool = False,
    ) -> Guarantees:
        """Predict the rows of a calibration set with a fitted classifier, and collect its guarantees.

        Parameters
        ----------
        classifier : fitted classifier
            Any object with ``predict``. Guarantees on prediction sets, thresholds and abstention
            also need ``predict_proba`` and ``classes_``. A scikit-learn estimator is copied (its
            fitted state is shared), so that later fits do not change the guarantees.
        X : array-like of shape (n, p)
            Calibration rows, which no step of the fit has used.
        y : array-like of shape (n,)
            True class of each row.
        delta : float
            Probability with which each guarantee may fail, over the draw of the rows.
        duplicates : {"auto", "genuine", "copies", "refuse"}
            "auto": a small number of rows may equal each other or rows of the fit
            (`certree.certify` states it); "genuine": all rows are new draws; "copies": equal rows
            count once; "refuse": no row may equal another or one of the fit. Rows of the fit are
            known only for models of certree, which keep their hashes.
        groups : array-like of shape (n,), or None
            Group of each row, such as a customer, if rows of a group depend on each other.
            `certificate` and `nearby` then count groups, as `certree.certify` does, and the other
            methods raise ValueError, as they need independent rows. Groups of one row each are
            independent rows. None: rows are independent, which a model that was fitted with groups
            does not accept. To compare the errors of groups, pass them to `conditional_guarantees`
            instead.
        time : array-like of shape (n,), str or None
            Time of each row, numbers or dates, or the name of such a column of X, if rows are in
            time order and later than those of the fit. `certificate` is then about later rows, as
            that of `certree.certify`. None: rows have no times.
        independent : bool
            True: rows of the period are independent draws, so that all methods are available. False:
            they may depend on earlier rows, and methods other than `certificate` and `nearby` raise
            ValueError. Only used with `time`.

        Returns
        -------
        Guarantees
            Its `certificate` is the bound of `certree.certify` by these rows.

        Raises
        ------
        TypeError, ValueError
            As `certree.certify` for rows in memory.
        """
        # A later fit of the classifier must not change the guarantees.
        is_estimator = isinstance(classifier, BaseEstimator)
        snapshot = get_snapshot(classifier) if is_estimator else classifier
        how: dict[str, Any] = {"duplicates": duplicates, "groups": groups}
        how |= {"time": time, "independent": independent}
        found = _evaluate_rows(snapshot, X, y, delta, **how)
        if not (hasattr(snapshot, "predict_proba") and hasattr(snapshot, "classes_")):
            return found
        return replace(found, shares=found._compute_probabilities(X)[found._input_positions[0]])

    @classmethod
    def by_batches(
        cls,
        classifier: Any,
        batches: Iterable[tuple[Any, NDArray[Any]]],
        delta: float = 0.05,
        *,
        duplicates: Duplicates = "auto",
        groups: Sequence[NDArray[Any]] | None = None,
        times: Sequence[Any] | None = None,
        independent: bool = False,
    ) -> Guarantees:
        """Collect the guarantees of a fitted classifier from calibration rows that arrive in batches.

        Does what `by_rows` does without keeping the rows: of each row it keeps a hash, the true
        class, the predicted class and the predicted probabilities.

        Parameters
        ----------
        classifier : fitted classifier
            With ``predict``, ``predict_proba`` and ``classes_``.
        batches : iterable of (array-like of shape (n_batch, p), ndarray of shape (n_batch,))
            Rows that no step of the fit has used, and their true classes. Empty batches are left
            out.
        delta : float
            Probability with which each guarantee may fail, over the draw of the rows.
        duplicates : {"auto", "genuine", "copies", "refuse"}
            "auto": a small number of rows may equal each other or rows of the fit
            (`certree.certify` states it); "genuine": all rows are new draws; "copies": equal rows
            count once; "refuse": no row may equal another or one of the fit. Rows of the fit are
            known only for models of certree, which keep their hashes.
        groups : sequence of ndarray of shape (n_batch,), or None
            Group of each row of each batch, as of `by_rows`. It is read after the last batch, so that
            `batches` may fill it. None: rows are independent.
        times : sequence of array-like of shape (n_batch,), or None
            Times of the rows of each batch that is not empty, numbers or dates, as of `by_rows`;
            `batches` may fill it, too. None: rows have no times.
        independent : bool
            Whether rows of the period are independent draws, as of `by_rows`.

        Returns
        -------
        Guarantees
            The guarantees of all rows of all batches together.

        Raises
        ------
        ValueError
            As `certree.certify`: if there are no rows, for classes that the classifier does not
            know, and for too many repeated rows.
        """
        expect_classifier(classifier)
        check, outputs = LeakageCheck(classifier, duplicates), []
        for X, truth in batches:
            if not len(truth):
                continue
            check.add(X, truth)
            outputs.append((truth, np.asarray(classifier.predict(X)), classifier.predict_proba(X)))
        expect_rows(len(outputs), "certify a model")
        y, predicted, shares = (np.concatenate(one) for one in zip(*outputs, strict=True))
        expect_known_labels("y", np.unique(y), np.asarray(classifier.classes_))
        selected = check.select_rows(
            None if groups is None else np.concatenate(groups),
            None if times is None else RowTimes.read_batches(times, independent),
        )
        rows = selected.rows
        classes, codes = np.unique(y, return_inverse=True)
        return cls(
            classifier=classifier,
            certificate=selected.certify_errors(predicted != y, codes, classes, delta),
            y=y[rows],
            predicted=predicted[rows],
            shares=shares[rows],
            given=rows,
            n_given=len(y),
            is_worst=selected.is_worst,
        )

    # -- the rows ----------------------------------------------------------------------------------

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        """Whether each calibration row counts as an error, bool array (n,).

        True where `predicted` differs from `y`, and where `is_worst` is True.
        """
        wrong = np.asarray(self.predicted != self.y)
        return wrong if self.is_worst is None else wrong | self.is_worst

    @property
    def _certainly_wrong(self) -> NDArray[np.bool_]:
        """Whether each calibration row is an error if rows of `is_worst` are correct, bool (n,).

        It is `wrong` without these rows, and is used for lower limits of errors.
        """
        return self.wrong if self.is_worst is None else self.wrong & ~self.is_worst

    @cached_property
    def _true_labels(self) -> CodedLabels:
        """True classes of the calibration rows.

        `CodedLabels`: the different classes that occur, sorted, and the index of each row's class,
        (n,), from the field `y`.
        """
        return encode_labels("y", self.y)

    @cached_property
    def _predicted_labels(self) -> CodedLabels:
        """Predicted classes of the calibration rows.

        `CodedLabels`: the different classes that occur, sorted, and the index of each row's class,
        (n,), from the field `predicted`.
        """
        return encode_labels("predictions", self.predicted)

    @property
    def _input_positions(self) -> tuple[NDArray[np.integer], int]:
        """Positions (n,) of the calibration rows in the caller's table, and how many rows it has.

        Replaces None in the fields `given` and `n_given` by their defaults.
        """
        given = np.arange(len(self.y)) if self.given is None else self.given
        return given, len(self.y) if self.n_given is None else self.n_given

    @property
    def _classes(self) -> list[Any]:
        """The K classes of the classifier, ``classes_``, as a list of Python objects."""
        classes: list[Any] = np.asarray(self.classifier.classes_).tolist()
        return classes

    def _compute_probabilities(self, X: ArrayLike) -> Float64:
        """Return ``classifier.predict_proba(X)`` as float64 array (n_rows, K).

        X: n_rows rows, (n_rows, p). Raises ValueError if the result has another shape or contains
        NaN.
        """
        outputs = self.classifier.predict_proba(X)
        shares: Float64 = check_column(
            "predict_proba", outputs, "float64", (None, len(self._classes))
        )
        if np.isnan(shares).any():
            raise ValueError(
                "predict_proba of the classifier must return probabilities, got NaN: check the "
                "classifier on these rows"
            )
        return shares

    def _choose_delta(self, given: float | None) -> float:
        """Return `given`, or if it is None the delta of this object's certificate.

        given: probability with which a guarantee may fail, or None. The certificate is the field
        `certificate`.
        """
        return self.certificate.delta if given is None else given

    # -- parts of the rows, and other sources ------------------------------------------------------

    @validate_arguments
    def conditional_guarantees(
        self,
        families: str | Sequence[str] | None = None,
        *,
        groups: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        max_weight: float | None = None,
        random_state: int = 0,
        delta: float | None = None,
        jointly: bool = False,
    ) -> ConditionalGuarantees:
        """Bound the error on each class, predicted class, group, leaf or node, and on all rows.

        Each family of guarantees holds for all its members at once with probability ``1 - delta``;
        two families, or a family and the certificate, need not hold together (see `jointly`). If
        the calibration rows have chosen the classifier, the bounds include the price of that choice
        (``certificate.complexity``).

        Parameters
        ----------
        families : str, sequence of str or None
            Names of families. "error": the error on all rows; "recall": the error on the rows of
            each true class; "precision": the error on the rows of each predicted class; "groups":
            the error in each group; "gaps": for each ordered pair of groups the error in the first
            minus the error in the second, by the pair as a tuple. For certified trees also
            "leaves": the error in each leaf of the smallest pruning that predicts the same, and
            "cells": the error in each node of ``tree_``; the keys of both are node numbers of
            ``tree_``. If the rules of the tree have numbers (see `rules`), "leaves" has the error
            of each rule instead, and its keys are these numbers, such as "R1". None: all families
            that are possible here, without "cells" if rules have numbers.
        groups : array-like of shape (n_rows,), or None
            Group of each row of the caller's table, such as a hospital; for certified estimators of
            each row passed to ``fit``, whatever its weight and use. Must not be chosen by looking
            at errors. The rows must still be drawn independently of each other.
        weights : array-like of shape (n_rows,), or None
            Importance weights for new rows from another distribution: its density divided by that
            of the calibration rows, up to a constant factor, at each row of the caller's table. A
            calibration row is kept with probability ``weight / max_weight`` (rejection sampling).
        max_weight : float or None
            Upper bound on all weights, fixed without looking at the rows; needed with `weights`.
        random_state : int
            Seed of the rejection sampling. Trying several seeds and keeping the best bound makes it
            invalid.
        delta : float or None
            Probability with which a family may fail; None: that of the certificate.
        jointly : bool
            True: divide delta by the number of families, so that all hold together; the families
            must then be chosen before looking at the results.

        Returns
        -------
        ConditionalGuarantees
            A mapping of family names to families, each a mapping of its members to certificates. A
            class, group or leaf without calibration rows has the bound 1.

        Raises
        ------
        ValueError
            If fewer than 10 calibration rows are there, or kept by the weights; a family is
            unknown, or needs groups or a tree that are not there; there is only one group; a weight
            exceeds `max_weight`; or the calibration rows came in groups or may depend on each
            other.
        """
        _expect_independent_rows(self.certificate)
        given, n_given = self._input_positions
        of_groups = None if groups is None else encode_groups(groups, n_given).take(given)
        if weights is not None:
            weights = check_column("weights", weights, "float64", (n_given,))[given]
        named = check_families(families, self._list_unavailable_families(of_groups))
        if families is None:
            named = [name for name in named if name not in self._list_families_on_request()]
        if (weights is None) != (max_weight is None):
            raise ValueError(
                "weights and max_weight must be passed together, got "
                f"{'weights' if weights is None else 'max_weight'}=None: max_weight is an upper bound "
                "on all weights that is fixed without looking at the rows"
            )
        kept, shift = np.arange(len(self.y)), None
        if weights is not None and max_weight is not None:
            kept = np.flatnonzero(sample_by_weights(weights, max_weight, len(kept), random_state))
            shift = Shift("weights", max_weight)
        if len(kept) < FEWEST_ROWS:
            left = "" if weights is None else " that the weights keep"
            raise ValueError(
                f"guarantees need at least {FEWEST_ROWS} calibration rows{left}, got {len(kept)}: "
                "pass more rows"
            )
        share = 1 / len(named) if jointly else 1.0
        about = {
            "is_single_tree": self.certificate.is_single_tree,
            **get_sampling_facts(self.certificate),
        }
        terms, found = CertificateTerms(self._choose_delta(delta), share, shift=shift, **about), {}
        for name in named:
            method, parts = self._get_method(name), self._make_subsets(name, kept, of_groups)
            found[name] = CertificateFamily(method, parts, terms)
            next(iter(found[name].values()))  # raises for a delta out of range
        return ConditionalGuarantees(found)

    # Key of METHODS for the error on all rows.
    _error_method = "hold_out"

    def _get_method(self, name: str) -> str:
        """Return the key of `METHODS`, the theorem, by which a family of guarantees is computed.

        A family is a set of bounds that hold together. name: its name, a key of `FAMILIES` such as
        "recall" (the error on the rows of each true class).
        """
        return FAMILIES[name] or self._error_method

    def _list_families_on_request(self) -> tuple[str, ...]:
        """Return the names of families that are computed only if the user names them; here none.

        A family is a set of bounds that hold together, such as "recall" with one for each class.
        """
        return ()

    def _list_unavailable_families(self, groups: CodedLabels | None) -> tuple[str, ...]:
        """Return the names of families in `FAMILIES` that cannot be computed here.

        A family is a set of bounds that hold together, such as "recall" with one for each class.
        groups: encoded groups of the rows, or None. "leaves" and "cells" need a certified tree, so
        they are always returned here; "groups" and "gaps" are if `groups` is None.
        """
        return TREE_FAMILIES if groups is not None else (*TREE_FAMILIES, *GROUP_FAMILIES)

    def _make_subsets(
        self, name: str, kept: Indices, groups: CodedLabels | None
    ) -> dict[Any, RowSubset]:
        """Count the rows and errors of each subset that a family of bounds is about.

        A family is a set of bounds that hold together. name: key of `FAMILIES`, such as "recall"
        (one subset for each true class); kept: indices of the calibration rows to count; groups:
        group of each calibration row, needed for "groups" and "gaps". Return a dictionary from each
        member (class, group, pair of groups, node, or "all rows") to its `RowSubset`, which holds
        its number of rows, its observed error, and the complexity of its bound (in PAC-Bayes bounds
        the divergence of posterior from prior, in nats). Errors are those of the attribute `wrong`,
        whether each calibration row is predicted wrongly.
        """
        wrong, nats = self.wrong[kept], self.certificate.complexity
        if name == "error":
            return {"all rows": RowSubset("", (float(wrong.mean()),), len(wrong), nats)}
        if name in GROUP_FAMILIES:
            assert groups is not None  # without groups the family was refused before
            own = groups.take(kept)
            if name == "gaps":
                return make_pair_subsets(own, wrong, self._certainly_wrong[kept], nats)
            return make_label_subsets(own, wrong, nats)
        kinds = self._true_labels if name == "recall" else self._predicted_labels
        return make_label_subsets(kinds.take(kept), wrong, nats)

    def nearby(
        self, *, kl: float | None = None, total_variation: float | None = None
    ) -> Certificate:
        """Return the certificate for new rows from any distribution near that of the calibration rows.

        Parameters
        ----------
        kl : float or None
            Largest Kullback-Leibler divergence KL(calibration || new), in nats.
        total_variation : float or None
            Largest total variation distance. Exactly one of the two distances must be passed.

        Returns
        -------
        Certificate
            With the largest error that a distribution within the distance can have as its bound.

        Raises
        ------
        ValueError
            If not exactly one distance is passed, or it is out of range.
        """
        return self.certificate.nearby(kl=kl, total_variation=total_variation)

    def mix(self, shares: dict[Any, float] | ArrayLike, delta: float | None = None) -> Certificate:
        """Bound the error for new rows in which the classes have other frequencies (label shift).

        Parameters
        ----------
        shares : dict of class to float, or array-like of shape (K,)
            Fraction of each class among the new rows, non-negative, with sum 1. A dictionary may
            leave out fractions of 0. An array is in the order of the members of the family
            "recall": the K sorted classes of the calibration rows, or ``classes_`` of certified
            fits.
        delta : float or None
            Probability with which the bound may fail; None: that of the certificate.

        Returns
        -------
        Certificate
            Its bound is the mean of the bounds on the error of each class, weighted by `shares`.

        Raises
        ------
        ValueError
            If a class is unknown, or `shares` are negative or do not sum to 1; if there are fewer
            than 10 calibration rows, or the calibration rows came in groups or may depend on each
            other.
        """
        return self.conditional_guarantees("recall", delta=delta).mix(shares)

    def monitor(
        self, alpha: float = 0.05, *, block: int = 1, model_hash: str | None = None
    ) -> Monitor:
        """Return a `Monitor` that tests on new labelled rows whether the certificate still holds.

        alpha: probability with which the monitor may ever raise an alarm although the bound holds;
        block: number of losses whose mean counts as one loss, for dependent rows; model_hash: hash
        of the model file, with which losses of other models are refused; None: the monitor accepts
        losses of any model, and cannot be saved. The monitor starts without rows: pass the losses
        of new rows, 1 for an error and else 0, to its method ``update``, and read ``broken``.
        Raises ValueError if the bound is 1.
        """
        return self.certificate.monitor(alpha, block=block, model_hash=model_hash)

    # -- sets of classes ---------------------------------------------------------------------------

    @suggests_arguments
    def predict_set(
        self,
        X: ArrayLike,
        coverage: float = 0.9,
        delta: float | None = None,
        *,
        per_class: bool = False,
        allow_empty: bool = False,
    ) -> NDArray[np.bool_]:
        """Predict a set of classes for each row; a fraction of the sets contain the true class.

        Split conformal prediction, conditional on the calibration set: with probability ``1 -
        delta`` over its draw, a new row's set contains its class with probability at least
        `coverage`, for every distribution of rows. The scores were fixed before the calibration
        rows: of certified trees 1 minus the class probabilities of the training set, of other
        classifiers 1 minus their predicted probabilities. A set contains all classes with a score
        up to an order statistic of the calibration scores, or else the most probable class alone,
        as a larger set covers no fewer rows. It need not contain the class that `predict` returns.

        Parameters
        ----------
        X : array-like of shape (n_rows, p)
            New rows.
        coverage : float
            Fraction of new rows whose set contains their class, between 0 and 1.
        delta : float or None
            Probability with which fewer rows are covered; None: that of the certificate.
        per_class : bool
            True: the coverage holds for the rows of each class, for all classes at once. A class
            with too few calibration rows is then in every set, and so is a class that training rows
            lack; without `per_class` such a class is in no set.
        allow_empty : bool
            True: sets may be empty, for rows of which every class is less probable than the true
            class of nearly all calibration rows. False: such a set contains the most probable
            class, of equally probable ones the first.

        Returns
        -------
        ndarray of bool, shape (n_rows, K)
            Whether each class is in the set of each row; columns in the order of ``classes_``.

        Raises
        ------
        ValueError
            If `coverage` or `delta` is not between 0 and 1; if there are too few calibration rows
            for them, or too many of these have classes that training rows lack or count as the
            worst case; if the calibration rows came in groups or may depend on each other; or if
            the model was fitted with a `Grid` (a fixed grid of cells as tree), as it has no
            training set.
        TypeError
            If the classifier has no ``predict_proba``.
        """
        score, scores = self._compute_scores(X), self._sort_true_class_scores(per_class)
        held: NDArray[np.bool_] = score <= _find_score_limits(
            scores, coverage, self._choose_delta(delta)
        )
        if not allow_empty:
            empty = np.flatnonzero(~held.any(axis=1))
            held[empty, score[empty].argmin(axis=1)] = True
        return self._expand_columns(held, per_class)

    def certify_set(
        self, coverage: float = 0.9, delta: float | None = None, *, per_class: bool = False
    ) -> tuple[Certificate | None, ...]:
        """Return certificates of the coverage of the sets that `predict_set` returns.

        The observed risk is that of the sets with ``allow_empty=True``. Larger sets lack the true
        class no more often, so the bound holds for either.

        Parameters
        ----------
        coverage : float
            Fraction of new rows whose set contains their class, between 0 and 1.
        delta : float or None
            Probability with which fewer rows are covered; None: that of the certificate.
        per_class : bool
            Whether the coverage holds for the rows of each class.

        Returns
        -------
        tuple of (Certificate or None)
            Each bounds the fraction of new rows whose set lacks their class. Without `per_class`
            one certificate for all rows; with it K certificates, in the order of ``classes_``, that
            hold together, where None stands for a class that is in every set.

        Raises
        ------
        ValueError
            If an argument is not between 0 and 1, there are too few calibration rows for it, or the
            calibration rows came in groups or may depend on each other.
        TypeError
            If the classifier has no ``predict_proba``.
        """
        scores, levels = (
            self._sort_true_class_scores(per_class),
            (coverage, self._choose_delta(delta)),
        )
        _find_score_limits(scores, *levels)
        drawn = get_sampling_facts(self.certificate)
        if not per_class:
            return scores.certificates("prediction_set", *levels, **drawn)
        parts = [str(one) for one in self._scored_classes.tolist()]
        found = np.array(scores.certificates("class_set", *levels, parts, **drawn), dtype=object)
        return tuple(self._expand_columns(found[None], None)[0])

    def _sort_true_class_scores(self, per_class: bool) -> Scores:
        """Sort the conformity scores of the true classes of the calibration rows.

        per_class: True: the scores of each class are sorted and covered separately; False: all
        scores together. The score of a row is 1 minus the probability of its true class, infinity
        if that class has no score or the row counts as the worst case. Return `Scores`, which holds
        them by region: one for each class, or one for all rows.
        """
        about = self._get_calibration_scores(), self._class_codes, self.is_worst
        return sort_truth_scores(*about, per_class=per_class)

    @property
    def _scored_classes(self) -> NDArray[Any]:
        """Classes that have conformity scores, array (n_scored,) in the order of ``classes_``.

        Here all classes; certified fits leave out classes that no training row has.
        """
        return np.asarray(self.classifier.classes_)

    def _expand_columns(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:  # noqa: ARG002 -- here none
        """Return `values`, whose columns are the scored classes, with one column for each class.

        values: (n_rows, n_scored), for the n_scored classes that have conformity scores. fill:
        value of the columns of other classes. Here all classes have scores, so `values` is returned
        unchanged; certified fits override this.
        """
        return values

    @property
    def _class_codes(self) -> NDArray[np.intp]:
        """Index of the true class of each calibration row in `_scored_classes`, int array (n,).

        A class that is not among them has the index ``len(_scored_classes)``.
        """
        place = {name: place for place, name in enumerate(self._scored_classes.tolist())}
        names = [place.get(name, len(place)) for name in self._true_labels.names]
        code: NDArray[np.intp] = np.array([*names, len(place)])[self._true_labels.codes]
        return code

    def _compute_scores(self, X: ArrayLike) -> Float64:
        """Return the conformity score of each class for new rows, 1 minus its probability.

        X: the new rows, (n_rows, p). Return float64 array (n_rows, n_scored), a column for each of
        `_scored_classes`. Raises TypeError if the classifier has no ``predict_proba``.
        """
        self._get_calibration_probabilities()
        return 1 - self._compute_probabilities(X)

    def _get_calibration_scores(self) -> Float64:
        """Return the conformity score of each class for each calibration row, (n, n_scored).

        The score is 1 minus the probability of the class, taken from the field `shares`. Columns
        are the n_scored classes of `_scored_classes`.
        """
        return 1 - self._get_calibration_probabilities()

    def _get_calibration_probabilities(self) -> Float64:
        """Return the field `shares`: the probabilities of the calibration rows, (n, n_scored).

        Columns are the n_scored classes of `_scored_classes`. Raises TypeError if it is None, as
        prediction sets, abstention and thresholds need probabilities, and ValueError if the rows
        came in groups or may depend on each other.
        """
        _expect_independent_rows(self.certificate)
        if self.shares is None:
            raise TypeError(
                "prediction sets, abstention and thresholds need probabilities: the classifier must "
                f"have predict_proba and classes_, got {type(self.classifier).__name__}"
            )
        return self.shares

    # -- every threshold ---------------------------------------------------------------------------

    @validate_arguments
    def thresholds(
        self,
        costs: Any = None,
        *,
        groups: ArrayLike | None = None,
        delta: float | None = None,
        share: float = 1.0,
        pos_label: Any = None,
    ) -> ThresholdGuarantees:
        """Bound rates and costs of a binary classifier at every decision threshold simultaneously.

        As all thresholds are covered together, a threshold may be chosen after looking at the
        bounds. A threshold is about the probability of the positive class that ``predict_proba``
        returns, which must have been fixed before the calibration rows. That of a certified tree
        was if the vote of the training set predicts, which selection="training" makes certain.

        Parameters
        ----------
        costs : pair of float, sequence of pairs, or None
            Costs (of a false negative, of a false positive) that were named before the calibration
            rows were seen. Half of delta is then used for tighter bounds on these costs at five
            thresholds each: the best one if scores are true probabilities, and two on either side
            of it. All other costs are covered anyway. None: no costs were named.
        groups : array-like of shape (n_rows,), or None
            Group of each row of the caller's table, as in `conditional_guarantees`, fixed without
            the classes. The guarantees for all rows and for each group share delta equally, and
            hold together. None: there are guarantees for all rows only.
        delta : float or None
            Probability with which any of these guarantees may fail; None: that of the certificate.
        share : float
            Fraction of delta to use, in (0, 1]: pass 1 / k for each of k models that are compared
            on the same calibration rows.
        pos_label : object or None
            The positive class, such as "default": recall, precision and costs are about its rows.
            None: the second of ``classes_``.

        Returns
        -------
        ThresholdGuarantees
            Limits of recall, precision, false positive rate and cost at all thresholds.

        Raises
        ------
        ValueError
            If the classifier does not have two classes, `pos_label` is not one of them, or
            calibration rows have other classes; if fewer than 10 calibration rows are there, or in
            a group; if costs are not pairs of non-negative numbers with a positive one; if some
            rows count as the worst case (field `is_worst`); if the calibration rows came in groups
            or may depend on each other; if calibration rows have chosen the vote of a certified
            tree; or if the model was fitted with a `Grid` (a fixed grid of cells as tree), as it
            has no training set.
        TypeError
            If the classifier has no ``predict_proba``.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from certree import BoostedTreesClassifier
        >>> from certree.certificates import Guarantees
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BoostedTreesClassifier(random_state=0).fit(X[:300], y[:300])
        >>> found = Guarantees.by_rows(model, X[300:], y[300:]).thresholds(costs=(1, 5))
        >>> point = found.lowest_cost(1, 5)
        >>> round(point.cost_at_most, 3), round(point.recall.lowest, 3)
        (0.139, 0.872)
        """
        classes, positive = self._check_two_classes(pos_label)
        if self.is_worst is not None:
            raise ValueError(
                f"{np.sum(self.is_worst):,} calibration rows repeat other rows, and thresholds need "
                "lower and upper limits, for which repeated rows have no common worst case: leave "
                'these rows out, or pass duplicates="genuine" (they are new draws) or "copies"'
            )
        score, code = self._compute_class_probabilities(positive), self._class_codes
        others = int((code > 1).sum())
        if others:
            raise ValueError(
                f"thresholds need calibration rows of the classes {classes[0]!r} and {classes[1]!r} "
                f"only, but {others:,} of {len(code):,} rows have other classes: leave them out"
            )
        terms = CertificateTerms(
            self._choose_delta(delta), share, **get_sampling_facts(self.certificate)
        )
        price = self._score_complexity
        is_positive, named_costs = code == positive, check_costs(costs)
        found = ThresholdGuarantees(
            classes[positive], score, is_positive, terms, named_costs, price
        )
        sizes = [len(score)]
        if groups is not None:
            given, n_given = self._input_positions
            kinds = encode_groups(groups, n_given).take(given)
            found = ThresholdGuarantees.divide_delta(found, kinds.names, kinds.codes)
            sizes += [one.n for one in found.groups.values()]
        if min(sizes) < FEWEST_ROWS:
            of_each = "" if groups is None else " in each group"
            raise ValueError(
                f"thresholds need at least {FEWEST_ROWS} calibration rows{of_each}, got "
                f"{min(sizes)}: pass more rows"
            )
        compute_log_delta(terms.delta, terms.share)  # raises if out of range
        return found

    @validate_arguments
    def predict_threshold(
        self, X: ArrayLike, threshold: float | OperatingPoint, *, pos_label: Any = None
    ) -> NDArray[Any]:
        """Predict the positive class if its probability is at least a threshold, else the other class.

        Parameters
        ----------
        X : array-like of shape (n_rows, p)
            New rows.
        threshold : float or OperatingPoint
            Threshold of the probability of the positive class by ``predict_proba``: a point that
            was chosen by `thresholds`, or a number in [0, 1]. Infinity predicts no row positive.
        pos_label : object or None
            The positive class, the same as in `thresholds`; None: that of the point, or else the
            second of ``classes_``.

        Returns
        -------
        ndarray of shape (n_rows,)
            Predicted class of each row.

        Raises
        ------
        ValueError
            If the threshold is not in [0, 1], the classifier does not have two classes, `pos_label`
            is not one of them or not that of the point, the calibration rows came in groups or may
            depend on each other, or calibration rows have chosen the vote of a certified tree.
        TypeError
            If the classifier has no ``predict_proba``.
        """
        number, pos_label = read_threshold(threshold, pos_label)
        smallest = check_score_threshold(number)
        positive = self._check_two_classes(pos_label)[1]
        taken = self._compute_class_probabilities(positive, X) >= smallest
        predicted: NDArray[Any] = self._scored_classes[np.where(taken, positive, 1 - positive)]
        return predicted

    def _check_two_classes(self, pos_label: Any) -> tuple[list[Any], int]:
        """Return the two classes that have scores, and the index of the positive one.

        pos_label: the positive class; None: the second. Bounds on decision thresholds need a binary
        classifier. The classes with scores are the attribute `_scored_classes`: for certified fits
        those that training rows have, else all. Raises ValueError if they are not two, or
        `pos_label` is not one of them.
        """
        classes = self._scored_classes
        if len(classes) != 2:
            raise ValueError(
                f"thresholds need a classifier with 2 classes, got {len(classes)} classes: fit it to a "
                "binary target, such as y == positive_class"
            )
        return classes.tolist(), find_positive_class(classes, pos_label)

    def _compute_class_probabilities(self, index: int, X: ArrayLike | None = None) -> Float64:
        """Return the score of a class, its probability, for new rows or the calibration rows.

        index: index of the class in `_scored_classes`; X: new rows, (n_rows, p); None: the
        calibration rows. Return float64 array (n_rows,) or (n,).
        """
        own = self._get_calibration_probabilities()
        return (own if X is None else self._compute_probabilities(X))[:, index]

    @property
    def _score_complexity(self) -> float:
        """Complexity (nats) that bounds on the scores must include.

        It is the complexity of the certificate: above 0 if the calibration rows have chosen the
        classifier. A complexity raises bounds, as it is added to log(1 / delta).
        """
        return self.certificate.complexity

    # -- abstention -----------------------------------------------------------------------------------

    def selective_certificates(self, delta: float | None = None) -> tuple[Selective, ...]:
        """Certify the error of the classifier with abstention, for several margins at once.

        With a margin the classifier abstains from rows where the probabilities of its most likely
        and second most likely class differ by less. The margins are 0, 0.05, ..., 0.95; those of
        certified trees are chosen so that at most 100 %, 95 %, ..., 5 % of rows get a prediction.
        All margins hold together, so that any of them may be picked after looking.

        Parameters
        ----------
        delta : float or None
            Probability with which any of these certificates may fail; None: that of the
            certificate.

        Returns
        -------
        tuple of Selective
            One for each margin, by rising margin: the margin, the fraction of calibration rows that
            get a prediction, and the certificate of the error on new rows that get one. Margins at
            which no calibration row gets a prediction are left out. Pass the margin to
            `predict_selective`.

        Raises
        ------
        ValueError
            If the calibration rows came in groups or may depend on each other.
        TypeError
            If the classifier has no ``predict_proba``.
        """
        return self._certify_margins(self._choose_delta(delta))

    def _certify_margins(self, delta: float) -> tuple[Selective, ...]:
        """Compute what `selective_certificates` returns, for margins 0, 0.05, ..., 0.95.

        With a margin the classifier abstains from rows whose two largest class probabilities differ
        by less. Each `Selective` holds a margin, the fraction of calibration rows that get a
        prediction, and the certificate of the error on new rows that get one. delta: probability
        with which any certificate may fail; the margins share it equally. Margins at which no
        calibration row gets a prediction are left out.
        """
        lead, found = compute_class_margins(self._get_calibration_probabilities()), []
        for margin in _MARGINS:
            wrong = self.wrong[lead >= margin]
            if n := len(wrong):
                observed, nats = (int(wrong.sum()) / n,), math.log(len(_MARGINS))
                entries = "hold_out_answers", observed, n, nats, delta, 1.0
                certificate = compute_certificate(*entries, **get_sampling_facts(self.certificate))
                found.append(Selective(margin, n / len(lead), certificate))
        return tuple(found)

    def predict_selective(
        self, X: ArrayLike, margin: float
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Predict rows, and return for which of them the classifier abstains.

        Parameters
        ----------
        X : array-like of shape (n_rows, p)
            New rows.
        margin : float
            Smallest difference between the probabilities of the most likely and the second most
            likely class at which the classifier does not abstain; >= 0.

        Returns
        -------
        label : ndarray of shape (n_rows,)
            Predicted class of each row, also where the classifier abstains.
        answered : ndarray of bool, shape (n_rows,)
            False where the classifier abstains.

        Raises
        ------
        ValueError
            If the margin is negative or not finite.
        TypeError
            If the classifier has no ``predict_proba``.
        """
        smallest = check_nonnegative("margin", margin)
        label, lead = self._predict_margins(X)
        return label, lead >= smallest

    def _predict_margins(self, X: ArrayLike) -> tuple[NDArray[Any], Float64]:
        """Return the predicted class and the margin of new rows, both (n_rows,).

        X: new rows, (n_rows, p). The margin of a row is the probability of its most likely class
        minus that of the second most likely class.
        """
        return np.asarray(self.classifier.predict(X)), compute_class_margins(
            1 - self._compute_scores(X)
        )


def _find_score_limits(scores: Scores, coverage: float, delta: float) -> Float64:
    """Return the largest score that prediction sets include, float64 array (n_regions,).

    scores: sorted scores of the true classes of the calibration rows, by region: all rows, or the
    rows of each class; coverage: fraction of new rows whose set contains their class; delta:
    probability with which fewer do. With several regions the limit of one with too few rows is
    infinite. Raises ValueError if a single region needs an infinite limit, as too many rows have
    the score infinity.
    """
    reach = scores.find_limits(coverage, delta)
    if len(reach) == 1 and np.isinf(reach).any():
        unknown = int(np.isinf(scores.value).sum())
        raise ValueError(
            f"coverage={coverage!r} cannot be guaranteed: {unknown:,} of {len(scores.value):,} "
            "calibration rows have classes that no training row has, or repeat other rows, and no "
            "prediction set covers them; pass a lower coverage"
        )
    return reach


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FitGuarantees(Guarantees):
    """Guarantees from the calibration set of a certified fit.

    The constructor takes the arguments of `Guarantees` by keyword: classifier, certificate, y,
    predicted, shares (class probabilities of the calibration rows), given, n_given and is_worst.
    Here `y` and `predicted` hold class codes, int arrays (n,): the index of the class in
    ``classifier.classes_``. In `y` larger codes stand for classes that the classifier does not
    know. Classes that only calibration rows have get no score and are never predicted.
    """

    @cached_property
    def _true_labels(self) -> CodedLabels:
        """True classes of the calibration rows.

        `CodedLabels`: the classes of the classifier, and the code of each row's class, (n,), from
        the field `y`. Classes that the classifier does not know all have the code
        ``len(classes_)``.
        """
        return CodedLabels(self._classes, np.minimum(self.y, len(self._classes)))

    @cached_property
    def _predicted_labels(self) -> CodedLabels:
        """Predicted classes of the calibration rows.

        `CodedLabels`: the classes of the classifier, and the code of each row's predicted class,
        (n,), the field `predicted`.
        """
        return CodedLabels(self._classes, self.predicted)

    @property
    def _is_trained(self) -> NDArray[np.bool_] | slice:
        """Index into ``classes_`` of the classes that training rows have.

        A bool mask (K,), or ``slice(None)`` if training rows have all classes.
        """
        trained = self.classifier._trained
        return slice(None) if trained is None else trained.is_trained

    @property
    def _scored_classes(self) -> NDArray[Any]:
        """Classes that training rows have, array (n_scored,) in the order of ``classes_``.

        Only these have conformity scores.
        """
        return super()._scored_classes[self._is_trained]

    def _expand_columns(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return `values` with one column for each class of ``classes_``.

        values: (n_rows, n_scored), columns for the n_scored classes that training rows have. fill:
        value of the columns of the other classes.
        """
        trained = self.classifier._trained
        return values if trained is None else trained.expand_columns(values, fill)

    def _compute_probabilities(self, X: ArrayLike) -> Float64:
        """Return ``classifier.predict_proba(X)`` without the classes that training rows lack.

        X: new rows, (n_rows, p). Return float64 array (n_rows, n_scored), a column for each of
        `_scored_classes`.
        """
        return super()._compute_probabilities(X)[:, self._is_trained]

    def _get_calibration_probabilities(self) -> Float64:
        """Return the calibration rows' probabilities of the classes that training rows have.

        They are n_scored columns of the field `shares`, (n, n_scored). Raises ValueError if the
        calibration rows came in groups or may depend on each other, TypeError if there are no
        probabilities.
        """
        return super()._get_calibration_probabilities()[:, self._is_trained]

    def explain_missing_guarantees(self) -> str | None:
        """Return why the fit has no guarantees beside the error as a whole, or None if it has.

        The reason is a phrase: the rows came in groups, rows in time order may depend on each other,
        or there are fewer than 10 calibration rows.
        """
        if self.certificate.grouped:
            return "the rows of the fit came in groups, and these guarantees need independent rows"
        if has_dependent_rows(self.certificate):
            return "rows in time order may be dependent, and these guarantees need independent rows"
        if len(self.y) < FEWEST_ROWS:
            return f"the fit has fewer than {FEWEST_ROWS} calibration rows"
        return None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TreeGuarantees(FitGuarantees):
    """Guarantees from the calibration set of a certified tree, whose prunings vote.

    A pruning is the tree with some nodes turned into leaves. The constructor takes the arguments of
    `Guarantees` (classifier, certificate, y, predicted, shares, given, n_given and is_worst), and
    the four below. It takes all of them by keyword.

    Parameters
    ----------
    rows : TreeCalibrationSet
        The calibration set. Its leaves and class codes must agree with `y` and `predicted`, which
        the caller passes as well.
    ballot : Vote
        Vote of the prunings in each node, which the classifier predicts by.
    fixed : bool
        Whether the vote was fixed without the calibration set. The margins of abstention are then
        chosen by the training rows, and thresholds of its probabilities can be certified.
    numbers : RuleNumbers or None
        The numbers of the rules, if the model is a single small tree; None: rules have no numbers.
    """

    rows: TreeCalibrationSet
    ballot: Vote
    fixed: bool
    numbers: RuleNumbers | None = None

    _error_method = "occam_vote"

    def _get_method(self, name: str) -> str:
        has_rules = name == "leaves" and self.numbers is not None
        return "every_rule" if has_rules else super()._get_method(name)

    def _list_families_on_request(self) -> tuple[str, ...]:
        # The bounds of a rule and of its node differ, and each rule should show one.
        return () if self.numbers is None else ("cells",)

    def _list_unavailable_families(self, groups: CodedLabels | None) -> tuple[str, ...]:
        """Return the names of families that cannot be computed for this tree.

        A family is a set of bounds that hold together, such as "recall" with one for each class.
        groups: encoded groups of the calibration rows, or None. The result is "groups" and "gaps"
        if `groups` is None, else empty.
        """
        return GROUP_FAMILIES if groups is None else ()

    def _make_subsets(
        self, name: str, kept: Indices, groups: CodedLabels | None
    ) -> dict[Any, RowSubset]:
        """Count the calibration rows and errors of each subset that a family of bounds is about.

        A family is a set of bounds that hold together. name: its name, such as "recall" (one subset
        for each true class). "leaves" has the leaves of the smallest pruning that predicts as the
        vote does, or the rules if these have numbers; "cells" has all nodes of the tree. kept:
        indices of the calibration rows to count; groups: group of each calibration row, needed for
        "groups" and "gaps". Return a dictionary from each member (class, group, pair of groups,
        node number, or "all rows") to its `RowSubset`, which holds its number of rows, its observed
        error, and the complexity of its bound. Errors are taken from the attribute `wrong`.
        """
        if name not in TREE_FAMILIES:
            return super()._make_subsets(name, kept, groups)
        rows, nats = self.rows, self.certificate.complexity
        grown, leaf, wrong = rows.grown.n, rows.leaf[kept], self.wrong[kept]
        if name == "cells":
            return make_node_subsets(rows.tree, grown, leaf, wrong, nats)
        if self.numbers is not None:
            return make_rule_subsets(self.numbers, rows.tree, grown, leaf, wrong, nats)
        return make_leaf_subsets(rows.tree, grown, self.ballot.label, leaf, wrong, nats)

    def bound_nodes(self) -> NodeBounds:
        """Return upper bounds on the error of the classifier on new rows in each node of the tree.

        All bounds hold together with the probability 1 - delta of the fit. If rules have numbers
        there is one for each rule (leaf), else one for each node. If the rows of the fit came in
        groups, or in time order and may depend on each other, or there are fewer than 10
        calibration rows, the `NodeBounds` has no bounds but the reason.
        """
        rows, reason = self.rows, self.explain_missing_guarantees()
        n_rows = count_rows_in_nodes(rows.tree, rows.leaf)
        if reason is not None:
            return NodeBounds(None, self.numbers, reason, n_rows)
        name = "cells" if self.numbers is None else "leaves"
        family = self.conditional_guarantees(name)[name]
        return NodeBounds(family, self.numbers, calibration_rows=n_rows)

    def _look_up_scores(self, leaf: Int32) -> Float64:
        """Return the conformity scores of rows by the leaves that they reach, (n_rows, n_scored).

        leaf: node number of the leaf of each row, (n_rows,). Columns are the n_scored classes of
        `_scored_classes`. The score of a class is 1 minus its probability, by the training rows, in
        the leaf. ``rows.score`` holds these scores for all nodes.
        """
        return self.rows.score[:, : len(self._scored_classes)][leaf]

    def _compute_scores(self, X: ArrayLike) -> Float64:
        """Return the conformity scores of new rows X, (n_rows, p), as array (n_rows, n_scored).

        Columns are the n_scored classes of `_scored_classes`. The score of a class is 1 minus its
        probability, by the training set alone, in the leaf that the row reaches.
        """
        return self._look_up_scores(self.classifier.apply(X))

    def _get_calibration_scores(self) -> Float64:
        """Return the conformity scores of the calibration rows, (n, n_scored).

        Columns are the n_scored classes of `_scored_classes`: those that a training row has. The
        score of a class is 1 minus its probability by the training set alone, in the row's leaf
        (``rows.leaf``), so it is high if the class is unlikely. Raises ValueError if rows came in
        groups or may depend on each other, or there is no training set.
        """
        _expect_independent_rows(self.rows.check_training_set())
        return self._look_up_scores(self.rows.leaf)

    def _get_calibration_probabilities(self) -> Float64:
        """Return what ``predict_proba`` returns for the calibration rows, (n, n_scored).

        Columns are the n_scored classes of `_scored_classes`. Raises ValueError if the calibration
        rows have chosen the vote, so that its probabilities were not fixed before them; if rows
        came in groups or may depend on each other; or if there is no training set.
        """
        _expect_independent_rows(self.rows.check_training_set())
        if not self.fixed:
            raise ValueError(_CHOSEN_NOT_SUPPORTED)
        votes = self.ballot.score[self.rows.leaf, : len(self._scored_classes)]
        return votes / votes.sum(axis=1, keepdims=True)

    # Thresholds are about probabilities that depend on the training rows alone, so no price is paid.
    _score_complexity = 0.0

    def _certify_margins(self, delta: float) -> tuple[Selective, ...]:
        """Return the certificates of the vote with abstention, for up to 20 margins at once.

        With a margin the vote abstains from leaves where the probabilities of the most likely and
        the second most likely class differ by less. Each `Selective` holds a margin, the fraction
        of calibration rows that get a prediction, and the certificate of the error on new rows that
        get one. delta: probability with which any of the certificates may fail. The tree's prior,
        with abstention as a further label, covers all margins together.
        """
        held, prior = self.rows.held, self.rows.structure
        found = selective_certificates(held, self.ballot, prior, delta, fixed=self.fixed)
        kept = {name: getattr(self.certificate, name) for name in ("is_single_tree", "row_order")}
        return tuple(replace(one, certificate=replace(one.certificate, **kept)) for one in found)

    def _predict_margins(self, X: ArrayLike) -> tuple[NDArray[Any], Float64]:
        """Return the predicted class and the margin of new rows, both (n_rows,).

        X: new rows, (n_rows, p). The margin is the probability of the most likely class of the vote
        minus that of the second most likely class.
        """
        leaf = self.classifier.apply(X)
        label: NDArray[Any] = self._scored_classes.take(self.ballot.label.take(leaf))
        return label, compute_node_margins(self.ballot)[leaf]

    def certify_pruning(self, pruning: NodeWeights, delta: float | None = None) -> Certificate:
        """Certify the error of any pruning of the tree, also one that was edited by hand.

        Leaves predict the majority class of their training rows. All prunings are covered at once:
        several may be tried, and the lowest bound holds.

        Parameters
        ----------
        pruning : NodeWeights
            Weights 0 and 1 over the nodes of ``tree_``, where the leaves of the pruning have weight
            1; such as ``map_pruning(tree_, weights_)``, the most likely pruning of the vote.
        delta : float or None
            Probability with which the certificates may fail; None: that of the certificate.

        Returns
        -------
        Certificate
            Occam bound on the error of the pruning on new rows (method "occam_pruning").

        Raises
        ------
        TypeError
            If `pruning` is not a `NodeWeights`.
        ValueError
            If the weights are not those of a pruning; if the calibration rows came in groups or may
            depend on each other; or if the model was fitted with a `Grid` (a fixed grid of cells as
            tree), as no training rows label its nodes.
        """
        held = self.rows.check_training_set()
        if not isinstance(pruning, NodeWeights):
            raise TypeError(
                f"pruning must be a NodeWeights, got {pruning!r}: pass one such as "
                "map_pruning(tree_, weights_)"
            )
        found = occam_pruning(held, pruning, self.rows.structure, self._choose_delta(delta))
        return replace(found, row_order=self.certificate.row_order)

    def draw_pruning(self, random_state: Any = None, delta: float | None = None) -> Drawn:
        """Draw one pruning from the posterior of the fit, and certify its error.

        Call it once: drawing again and keeping the better pruning makes the certificate invalid.
        The bound uses the log of the posterior over the prior probability of the pruning, and holds
        with probability 1 - delta over rows and draw. A pruning is the tree with some nodes turned
        into leaves; the posterior is the distribution of their weights in the vote.

        Parameters
        ----------
        random_state : int, RandomState or None
            Source of the draw, which must not depend on the rows.
        delta : float or None
            Probability with which the certificate may fail; None: that of the certificate of the
            fit.

        Returns
        -------
        Drawn
            The pruning and its certificate.

        Raises
        ------
        ValueError
            If the calibration rows came in groups or may depend on each other, or the model was
            fitted with a `Grid` (a fixed grid of cells as tree), as it has no training set.
        """
        held, posterior = self.rows.check_training_set(), self.classifier.weights_
        seed = check_random_state(random_state).randint(2**31 - 1)
        level = self._choose_delta(delta)
        drawn = single_draw(held, posterior, self.rows.structure, level, rng=seed)
        certificate = replace(drawn.certificate, row_order=self.certificate.row_order)
        return replace(drawn, certificate=certificate)


def delegate_to_guarantees(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Make a method of an estimator from a method of `Guarantees`.

    method: the method of `Guarantees` (or a subclass), whose name, signature and docstring are
    kept. The new method works on a shallow copy of the fitted estimator, with which a fit in
    another thread cannot interfere, and calls the method of the same name of its attribute
    ``guarantees_``. It raises ValueError if that is None, as the model file holds no calibration
    rows.
    """

    @snapshot_method
    @wraps(method)
    def call_guarantees(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Call the method of ``self.guarantees_`` that has the name of `method`, and return its result.

        `method` is the parameter of the enclosing function; self: the fitted estimator; args,
        kwargs: the arguments of `method`. Raises ValueError if ``self.guarantees_`` is None.
        """
        guarantees = self.guarantees_
        if guarantees is None:
            raise ValueError(
                "the model was loaded from a file without its calibration rows, which this method "
                "needs: call it before saving, or save the model with calibration_samples=True"
            )
        answer: Result = getattr(guarantees, method.__name__)(*args, **kwargs)
        return answer

    return suggests_arguments(call_guarantees)


# -- any classifier --------------------------------------------------------------------------------


def _evaluate_rows(
    classifier: Any,
    X: Any,
    y: ArrayLike,
    delta: float,
    share: float = 1.0,
    *,
    duplicates: Duplicates,
    groups: ArrayLike | None = None,
    time: Any = None,
    independent: bool = False,
) -> Guarantees:
    """Predict calibration rows, check them for rows of the fit, and make `Guarantees` of the results.

    classifier: fitted classifier with ``predict``; X: rows, (n_rows, p); y: their true classes,
    (n_rows,); delta: probability with which the certificate may fail; share: fraction of delta that
    it uses; duplicates: whether rows that equal each other or rows of the fit are accepted in a
    small number ("auto"), accepted as new draws ("genuine"), counted once ("copies") or refused
    ("refuse"); groups: group of each row, (n_rows,), or None; time: time of each row, (n_rows,), a
    column of X, or None; independent: whether rows of the period are independent. The certificate is
    the Clopper-Pearson bound on the error; with groups it is Hoeffding's bound on the mean over
    groups of each group's fraction of errors; with times it is the martingale bound unless rows are
    independent. Probabilities are not computed: `Guarantees.shares` is None.
    """
    predicted, truth = predict_rows(classifier, X, y)
    times = RowTimes.read(time, X, len(truth), is_independent=independent)
    selected = select_calibration_rows(classifier, X, truth, duplicates, groups, times)
    rows = selected.rows
    classes, codes = np.unique(truth, return_inverse=True)
    certificate = selected.certify_errors(predicted != truth, codes, classes, delta, share)
    warn_of_row_order(certificate.row_order, partial(has_dates, X))
    return Guarantees(
        classifier=classifier,
        certificate=certificate,
        y=truth[rows],
        predicted=predicted[rows],
        given=rows,
        n_given=len(truth),
        is_worst=selected.is_worst,
    )


@suggests_arguments
@validate_arguments
def certify(
    classifier: Any,
    X: Any,
    y: Any,
    delta: float = 0.05,
    *,
    look: int | None = None,
    duplicates: Duplicates = "auto",
    groups: Any = None,
    time: Any = None,
    independent: bool = False,
) -> Certificate:
    """Compute an upper bound on the error of any fitted classifier, from rows that its fit did not use.

    Unlike the error on test rows, which is an estimate, the bound holds with probability ``1 -
    delta`` over the draw of the rows, however much the classifier overfits its training set.

    Parameters
    ----------
    classifier : fitted classifier
        Any object with ``predict``: of certree, scikit-learn or another library.
    X : array-like of shape (n, p), path, list of paths, pyarrow.dataset.Dataset, or Dask collection
        Calibration rows, which neither the fit, nor the choice among models, nor any preprocessing
        has used. Files, folders and Dask collections are read in batches, as in ``fit``; only a hash
        of each row is kept. Files and Dask data frames may have columns that are no features.
    y : array-like of shape (n,), or str
        True class of each row; if X names files, the name of the column of classes, which a Dask data
        frame may have, too.
    delta : float
        Probability with which the bound may be below the true error.
    look : int or None
        Number of this inspection, 1, 2, ..., if rows arrive over time and old rows are evaluated
        again together with new ones: inspection j uses the fraction 6 / (pi^2 j^2) of delta, so
        that all bounds hold together, whenever one stops. None: the rows are inspected once.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        How rows are treated that equal each other, or equal rows of the fit, classes included.
        Models of certree keep hashes of the rows of their fit, also inside ensembles and pipelines
        of scikit-learn; other models have none to compare with. "auto": up to ``max(1, sqrt(n) /
        4)`` repeated rows of n are accepted as new draws; more, up to 2 % of n, are counted as
        errors, whatever is predicted; still more raise ValueError. If none of these equals a row of
        the fit and n < 40, it warns instead. "genuine": all rows are new draws; raises ValueError
        if they are the table of the fit, or equal more of its rows than new rows would. "copies":
        equal rows are copies of one row, which counts once; rows that equal rows of the fit count
        as errors, up to the same limit. "refuse": no repeated row is accepted. The certificate
        states the assumption.
    groups : array-like of shape (n,), str or None
        Group of each row, such as a customer, if rows of a group depend on each other and only
        groups are independent; if X names files or is a Dask data frame, the name of the column of
        groups, which is no feature. Pass all
        calibration rows of a group. No row of the fit may be of these groups. This is not checked,
        as models do not store the groups of their fit. Equal rows of one group count as one
        repeated row. Groups of one row each are independent rows. None: rows are independent, which
        a model that was fitted with groups does not accept.
    time : array-like of shape (n,), str or None
        Time of each row, numbers or dates, or the name of such a column of X, if rows are in time
        order and all of them are later than the rows of the fit. The certificate then names their
        period, and is about later rows. If X names files, the name of a column, which need not be a
        feature, as in a Dask data frame. None: rows have no times.
    independent : bool
        True: rows (or groups) of the period are independent draws from one source. False: they may
        depend on earlier rows, and the bound is larger. Only used with `time`.

    Returns
    -------
    Certificate
        Upper bound (Clopper-Pearson) on the probability that a new row is predicted wrongly. With
        groups, upper bound (Hoeffding) on the expected fraction of wrong rows of a new group. With
        time, upper bound (by a martingale, unless rows are independent) on the mean risk of later
        rows, provided that it does not exceed the mean risk of the period; `Certificate.nearby`
        adds a drift.

    Raises
    ------
    TypeError
        If `classifier` has no ``predict``, or is a regressor; if X names files and y is not a
        column name; or if X is not in memory and the classifier has no ``classes_``.
    ValueError
        If there are no rows, y does not have one class for each row, files cannot be read or lack a
        column, y has a class that the classifier does not have, or `look` is not a positive
        integer; if `groups` is None, but the classifier was fitted with groups;
        if more rows equal each other or rows of the fit than `duplicates` allows; if the
        model was saved without the hashes of these rows and `duplicates` is not "genuine"; or if
        `groups` does not name a group for each row, or `time` misses a time or all are equal.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 1934. Hoeffding,
    "Probability inequalities for sums of bounded random variables", JASA 1963.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from certree import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> certificate = certify(tree, X[300:], y[300:])
    >>> round(certificate.risk, 3), round(certificate.bound, 3)
    (0.108, 0.144)
    """
    if is_out_of_core(X):
        order = TimeArguments.read(X, time, 0, independent)
        labels, times = list[NDArray[Any]](), list[RowTimes]()
        read = read_batches if is_file_source(X) else read_partitions
        batches = read(classifier, X, y, groups, labels, order, times)
        rule: dict[str, Any] = {"look": look, "duplicates": duplicates}
        rule["groups"] = None if groups is None else labels
        rule |= {"times": None if order is None else times, "independent": independent}
        return certify_batches(classifier, batches, delta, **rule)
    share = compute_look_fraction(look)
    how: dict[str, Any] = {"duplicates": duplicates, "groups": groups}
    how |= {"time": time, "independent": independent}
    return _evaluate_rows(classifier, X, y, delta, share, **how).certificate


@validate_arguments
def conditional_guarantees(
    classifier: Any,
    X: Any,
    y: ArrayLike,
    families: str | Sequence[str] | None = None,
    *,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    max_weight: float | None = None,
    random_state: int = 0,
    delta: float = 0.05,
    jointly: bool = False,
    duplicates: Duplicates = "auto",
) -> ConditionalGuarantees:
    """Bound the error of any fitted classifier on each class, predicted class or group of new rows.

    A family of guarantees, such as those on all classes, holds for all its members at once with
    probability ``1 - delta``.

    Parameters
    ----------
    classifier : fitted classifier
        Any object with ``predict``: of certree, scikit-learn or another library.
    X : array-like of shape (n, p)
        Calibration rows, which neither the fit, nor the choice among models, nor any preprocessing
        has used.
    y : array-like of shape (n,)
        True class of each row.
    families : str, sequence of str or None
        Names of families. "error": the error on all rows; "recall": the error on the rows of each
        true class; "precision": the error on the rows of each predicted class; "groups": the error
        in each group; "gaps": for each ordered pair of groups the error in the first minus the
        error in the second, by the pair as a tuple. None: all that are possible.
    groups : array-like of shape (n,), or None
        Group of each row, such as a hospital; must not be chosen by looking at errors. The rows
        must still be drawn independently of each other.
    weights : array-like of shape (n,), or None
        Importance weights for new rows from another distribution: its density divided by that of
        the calibration rows, up to a constant factor, at each row. A row is kept with probability
        ``weight / max_weight`` (rejection sampling); the rows kept are independent draws from the
        other distribution.
    max_weight : float or None
        Upper bound on all weights, fixed without looking at the rows; needed with `weights`.
    random_state : int
        Seed of the rejection sampling. Trying several seeds and keeping the best bound makes it
        invalid.
    delta : float
        Probability with which a family may fail.
    jointly : bool
        True: divide delta by the number of families, so that all hold together; the families must
        then be chosen before looking at the results.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        "auto": a small number of rows may equal each other or rows of the fit (`certree.certify`
        states it); "genuine": all rows are new draws; "copies": equal rows count once; "refuse": no
        row may equal another or one of the fit. Rows of the fit are known only for models of
        certree, also inside ensembles and pipelines of scikit-learn, which keep their hashes; for
        other models only rows of X are compared with each other.

    Returns
    -------
    ConditionalGuarantees
        A mapping of family names to families, each a mapping of its members to certificates.
        Classes and groups without any row are not among them.

    Raises
    ------
    ValueError
        If the classifier was fitted with groups (use `Guarantees.by_rows`, which takes them); if
        fewer than 10 rows are there, or kept by the weights; a family is unknown, or needs
        groups; there is only one group; a weight exceeds `max_weight`; y has a class that the
        classifier does not have; or too many rows equal each other or rows of the fit.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 1934.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from certree.certificates import conditional_guarantees
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> print(conditional_guarantees(tree, X[300:], y[300:], "recall"))
    With probability at least 95 %, for all classes at once, this classifier's error is at most:
    class  calibration rows  observed error  error at most  recall at least
    0                    66           0.030          0.106            0.894
    1                   203           0.133          0.188            0.812
    """
    selected = _evaluate_rows(classifier, X, y, delta, duplicates=duplicates)
    return selected.conditional_guarantees(
        families,
        groups=groups,
        weights=weights,
        max_weight=max_weight,
        random_state=random_state,
        jointly=jointly,
    )


@snapshot_method
def certify_fitted(
    self: Any,
    X: Any = None,
    y: Any = None,
    delta: float | None = None,
    *,
    look: int | None = None,
    duplicates: Duplicates | None = None,
    groups: Any = None,
    time: Any = None,
    independent: bool = False,
) -> Certificate:
    """Return the certificate of the fit, or certify the fitted model by new rows.

    A method of certified estimators; the model must be fitted.

    Parameters
    ----------
    X : array-like of shape (n, p), path, list of paths, pyarrow.dataset.Dataset, or None
        Calibration rows that no step of the fit or of a parameter search has used; None: return the
        certificate of the fit.
    y : array-like of shape (n,), str or None
        True class of each row; if X names files, the name of the column of classes.
    delta : float or None
        Probability with which the bound may be below the true error; None: `delta` of the fit.
    look : int or None
        Number j = 1, 2, ... of this inspection of rows that arrive over time, which uses the
        fraction 6 / (pi^2 j^2) of delta. None: the only inspection, which uses all of it.
    duplicates : {"auto", "genuine", "copies", "refuse"} or None
        How rows are treated that equal each other or rows of the fit. "auto": up to max(1, sqrt(n)
        / 4) of n count as draws, more, up to 2 % of n, as errors, and more raise ValueError.
        "genuine": all rows are new draws. "copies": equal rows count once. "refuse": no row may
        equal another or one of the fit. None: "auto". Rows of the fit are known only for models of
        certree, which keep their hashes.
    groups : array-like of shape (n,), str or None
        Group of each row, such as a customer, if rows of a group depend on each other; if X names
        files, the name of the column of groups. The certificate then counts groups; see
        `certree.certify`. None: rows are independent.
    time : array-like of shape (n,), str or None
        Time of each row, or a column of X, if all rows are later than those of the fit; see
        `certree.certify`. None: rows have no times.
    independent : bool
        Whether rows of the period are independent draws. Only used with `time`.

    Returns
    -------
    Certificate
        With rows the Clopper-Pearson bound, with groups Hoeffding's. Without rows
        ``certificate_``, recomputed for `delta`; the model that predicts was selected with the
        delta of the fit, and all candidates are covered at any delta.

    Raises
    ------
    ValueError
        If only one of X and y is passed; if `look`, `duplicates`, `groups` or `time` is passed
        without rows; or if more rows equal each other or rows of the fit than `duplicates` allows.
    """
    check_is_fitted(self)
    if X is not None and y is not None:
        word = "auto" if duplicates is None else duplicates
        level = self.delta if delta is None else delta
        how: dict[str, Any] = {"look": look, "duplicates": word, "groups": groups}
        return certify(self, X, y, level, time=time, independent=independent, **how)
    if (X is None) != (y is None):
        raise ValueError(
            "X and y must be passed together, or neither for the certificate of the fit, got "
            f"{'X' if X is None else 'y'}=None: pass both"
        )
    if any(one is not None for one in (look, duplicates, groups, time)) or independent:
        raise ValueError(
            "look, duplicates, time, groups and independent describe new rows: pass X and y with them"
        )
    one: Certificate = self.certificate_
    return one if delta is None else one.at(delta)
