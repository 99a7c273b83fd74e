"""What rows kept apart guarantee of a classifier: one object answers all that they are call_guarantees.

Any fitted classifier has one by rows that it has never seen, a certified fit by its calibration
samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certree.certificates.batches import certify_batches, read_batches
from certree.certificates.calibration_set import (
    CertifyingRows,
    HeldOut,
    check_positions,
    compute_group_weights,
    count_calibration_rows,
    replace_worst_classes,
)
from certree.certificates.certificate import (
    Certificate,
    compute_certificate,
    compute_log_delta,
    get_sampling_facts,
)
from certree.certificates.hold_out import (
    compute_look_fraction,
    expect_known_labels,
    hold_out,
    predict_rows,
)
from certree.certificates.leakage_check import LeakageCheck, select_calibration_rows
from certree.certificates.model_selection import (
    LabelledSelection,
    ModelSelection,
    make_structure_prior,
)
from certree.certificates.occam import (
    Drawn,
    Selective,
    compute_class_margins,
    compute_node_margins,
    occam_pruning,
    selective_certificates,
    single_draw,
)
from certree.certificates.priors import Prior, branching_prior
from certree.certificates.shift import Monitor, Shift, sample_by_weights
from certree.certificates.subsets.coverage import Scores, compute_class_scores, sort_truth_scores
from certree.certificates.subsets.families import (
    FAMILIES,
    FEWEST_ROWS,
    GROUP_FAMILIES,
    TREE_FAMILIES,
    CertificateFamily,
    ConditionalGuarantees,
    Terms,
    check_families,
    encode_groups,
)
from certree.certificates.subsets.row_subsets import (
    CodedLabels,
    RowSubset,
    encode_labels,
    make_label_subsets,
    make_leaf_subsets,
    make_node_subsets,
    make_pair_subsets,
)
from certree.certificates.thresholds import ThresholdGuarantees, check_costs, check_not_nan
from certree.interface.arrays import (
    ADDED_LATER,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_codes,
    check_column,
    check_nonnegative,
    freeze,
    to_array,
)
from certree.interface.fitted_state import (
    Arguments,
    Result,
    check_one_target,
    get_snapshot,
    snapshot_method,
)
from certree.interface.signatures import validate_arguments, validate_settings
from certree.rows.duplicates import Duplicates, count_worst
from certree.rows.folds import Indices
from certree.rows.near_copies import NearCopies
from certree.rows.out_of_core import is_file_source
from certree.stats import NodeStats
from certree.tree import Tree
from certree.votes import Vote
from certree.weights.node_weights import NodeWeights, make_pruning

# Why rows in groups give no sets of classes.
GROUPS_NOT_SUPPORTED = (
    "sets and thresholds are about single rows, and rows of one group depend on each other: expected "
    "a fit without groups"
)
# Margins below which a classifier may be silent, fixed without any row.
_MARGINS = [i / 20 for i in range(20)]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Guarantees:
    """What rows that it has never seen guarantee of a classifier.

    `by_rows` makes it of any fitted classifier; `CertifiedTreeClassifier.guarantees_` are those by
    the calibration samples of the fit. Every promise holds by itself, apart from `certificate`.

    Parameters
    ----------
    classifier : fitted classifier
        What is call_guarantees about new rows.
    certificate : Certificate
        What holds of its error as a whole; its delta is that of the others where none is given.
    y, predicted : ndarray of shape (n,)
        Class of each judging row, and what is predicted.
    shares : ndarray of shape (n, K), or None
        Shares of the classes at these rows; None: the classifier tells none.
    given : ndarray of intp, shape (n,), or None
        Which of the rows that were given these are; None: all.
    n_given : int or None
        How many rows were given; None: these.
    is_worst : ndarray of bool, shape (n,), or None
        Which of these rows count as the worst case of each promise: as errors, and outside of their
        sets; None: none.

    Raises
    ------
    ValueError
        If these do not go together.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import BoostedTreesClassifier
    >>> from certree.certificates import Guarantees
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BoostedTreesClassifier(random_state=0).fit(X[:300], y[:300])
    >>> guarantees = Guarantees.by_rows(model, X[300:], y[300:])
    >>> guarantees.certificate.n, round(guarantees.conditional_guarantees().recall.worst.bound, 3)
    (269, 0.076)
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
        of = f"{type(self.classifier).__name__} by {len(self.y):,} calibration samples"
        return f"<{type(self).__name__} of {of}: {self.certificate!r}>"

    def __post_init__(self) -> None:
        validate_settings(self)
        y, predicted = to_array("y", self.y), to_array("predicted", self.predicted)
        if y.ndim != 1 or y.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}, got {y.shape}")
        if self.shares is not None and len(self.shares) != len(y):
            raise ValueError(f"shares must be of {len(y)} rows, got {len(self.shares)}")

    @classmethod
    def by_rows(
        cls,
        classifier: Any,
        X: Any,
        y: ArrayLike,
        delta: float = 0.05,
        *,
        duplicates: Duplicates = "auto",
    ) -> Guarantees:
        """Let rows judge any fitted classifier; the parameters are those of `certify`.

        Returns
        -------
        Guarantees
            Those that speak of sets and margins need a classifier with ``predict_proba``.

        Raises
        ------
        ValueError
            As in `certify`.
        """
        # What it predicts is that of this fit, whatever it is fitted to later.
        one = get_snapshot(classifier) if isinstance(classifier, BaseEstimator) else classifier
        judged = _evaluate_rows(one, X, y, delta, duplicates=duplicates)
        if not (hasattr(one, "predict_proba") and hasattr(one, "classes_")):
            return judged
        return replace(judged, shares=judged._compute_probabilities(X)[judged._input_positions[0]])

    @classmethod
    def by_batches(
        cls,
        classifier: Any,
        batches: Iterable[tuple[Any, NDArray[Any]]],
        delta: float = 0.05,
        *,
        duplicates: Duplicates = "auto",
    ) -> Guarantees:
        """Let rows that are read batch by batch judge a classifier, as `by_rows` does.

        A hash, the class and the predictions of each row are kept.

        Parameters
        ----------
        classifier : fitted classifier
            With ``classes_`` and ``predict_proba``.
        batches : iterable of (array-like of shape (n, p), ndarray of shape (n,))
            Rows and their classes.
        delta, duplicates
            As in `certify`.

        Returns
        -------
        Guarantees

        Raises
        ------
        ValueError
            As in `certify`.
        """
        check_one_target("a certificate", classifier)
        judging, told = LeakageCheck(classifier, duplicates), []
        for X, truth in batches:
            judging.add(X, truth)
            told.append((truth, np.asarray(classifier.predict(X)), classifier.predict_proba(X)))
        y, predicted, shares = (np.concatenate(one) for one in zip(*told, strict=True))
        expect_known_labels("y", np.unique(y), np.asarray(classifier.classes_))
        judged = judging.select_rows()
        rows = judged.rows
        found = hold_out(judged.count_errors(predicted != y), len(rows), delta)
        return cls(
            classifier=classifier,
            certificate=replace(found, **judged.drawn),
            y=y[rows],
            predicted=predicted[rows],
            shares=shares[rows],
            given=rows,
            n_given=len(y),
            is_worst=judged.is_worst,
        )

    # -- the rows ----------------------------------------------------------------------------------

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        """Which calibration samples are predicted wrongly, or count as the worst case, (n,)."""
        wrong = np.asarray(self.predicted != self.y)
        return wrong if self.is_worst is None else wrong | self.is_worst

    @property
    def _certainly_wrong(self) -> NDArray[np.bool_]:
        """Which are predicted wrongly at the least, (n,)."""
        return self.wrong if self.is_worst is None else self.wrong & ~self.is_worst

    @cached_property
    def _true_labels(self) -> CodedLabels:
        return encode_labels("y", self.y)

    @cached_property
    def _predicted_labels(self) -> CodedLabels:
        return encode_labels("predictions", self.predicted)

    @property
    def _input_positions(self) -> tuple[NDArray[np.integer], int]:
        """Places of the calibration samples among those that were given, and how many these were."""
        given = np.arange(len(self.y)) if self.given is None else self.given
        return given, len(self.y) if self.n_given is None else self.n_given

    @property
    def _classes(self) -> list[Any]:
        classes: list[Any] = np.asarray(self.classifier.classes_).tolist()
        return classes

    def _compute_probabilities(self, X: ArrayLike) -> Float64:
        """What the classifier tells of the classes at some rows, (n, K)."""
        told = self.classifier.predict_proba(X)
        shares: Float64 = check_column("predict_proba", told, "float64", (None, len(self._classes)))
        if np.isnan(shares).any():
            raise ValueError("predict_proba must give probabilities, got NaN")
        return shares

    def _choose_delta(self, given: float | None) -> float:
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
        """Promise more of what predicts than its error as a whole, by the rows that certify it.

        Each family holds for all of its parts at once with probability ``1 - delta``, by itself and
        apart from the certificate. What predicts may have been chosen by the same rows of a fit: it has
        its prior mass's share of delta.

        Parameters
        ----------
        families : str, sequence of str or None
            Which families: "error" of all rows, "recall" of each class, "precision" of each predicted
            class, and of "groups", "gaps" between them; of a certified fit also error in the "leaves"
            of the smallest tree that predicts the same, and in all "cells" of `tree_`, of which any may
            be picked after looking. None: all that there can be. Keys of leaves and cells are numbers
            of nodes of `tree_`, as `rules` has them.
        groups : array-like of shape (n,), or None
            A group of each row that was given, to the fit those that grow and those of weight zero
            included, such as a hospital, that was not chosen by looking at errors. Rows are drawn
            independently all the same.
        weights : array-like of shape (n,), or None
            For new rows from another source, whose density over that of these rows is known: that
            density at each row given, up to a factor. Rows are kept with probability
            ``weight / max_weight``.
        max_weight : float or None
            The most that any weight may be, fixed without the rows.
        random_state : int
            Seed of these draws. To draw again and keep the better promise breaks it.
        delta : float or None
            Probability with which a family may fail; None: that of the certificate.
        jointly : bool
            Whether delta is divided by the number of families, which must then be chosen without
            looking, so that all of them hold together.

        Returns
        -------
        Promises
            A class, group or leaf without calibration samples has the bound 1.

        Raises
        ------
        ValueError
            If there are fewer than 10 calibration samples, also of those kept, a family or a setting is
            unknown, there is only one group, a weight is above `max_weight`, or the model was fitted
            by groups or loaded from a file without its rows.
        """
        given, n_given = self._input_positions
        of_groups = None if groups is None else encode_groups(groups, n_given).take(given)
        if weights is not None:
            weights = check_column("weights", weights, "float64", (n_given,))[given]
        named = check_families(families, self._list_unavailable_families(of_groups))
        if (weights is None) != (max_weight is None):
            raise ValueError(
                "weights come with max_weight, the most that any may be, fixed without the rows"
            )
        kept, shift = np.arange(len(self.y)), None
        if weights is not None and max_weight is not None:
            kept = np.flatnonzero(sample_by_weights(weights, max_weight, len(kept), random_state))
            shift = Shift("weights", max_weight)
        if len(kept) < FEWEST_ROWS:
            left = "" if weights is None else " that the weights keep"
            raise ValueError(
                f"guarantees take at least {FEWEST_ROWS} held-out rows{left}, got {len(kept)}"
            )
        share = 1 / len(named) if jointly else 1.0
        about = get_sampling_facts(self.certificate)
        terms, found = Terms(self._choose_delta(delta), share, shift=shift, **about), {}
        for name in named:
            method, parts = (
                FAMILIES[name] or self._error_method,
                self._make_subsets(name, kept, of_groups),
            )
            found[name] = CertificateFamily(method, parts, terms)
            next(iter(found[name].values()))  # rows in groups and a wrong delta are refused now
        return ConditionalGuarantees(found)

    # The row of METHODS that the error as a whole has.
    _error_method = "hold_out"

    def _list_unavailable_families(self, groups: CodedLabels | None) -> tuple[str, ...]:
        """Families that these rows have no parts for."""
        return TREE_FAMILIES if groups is not None else (*TREE_FAMILIES, *GROUP_FAMILIES)

    def _make_subsets(
        self, name: str, kept: Indices, groups: CodedLabels | None
    ) -> dict[Any, RowSubset]:
        """The parts of a family, by those of the calibration samples that are kept."""
        wrong, nats = self.wrong[kept], self.certificate.complexity
        if name == "error":
            return {"all rows": RowSubset("", (float(wrong.mean()),), len(wrong), nats)}
        if name in GROUP_FAMILIES:
            assert groups is not None  # else the family is refused
            own = groups.take(kept)
            if name == "gaps":
                return make_pair_subsets(own, wrong, self._certainly_wrong[kept], nats)
            return make_label_subsets(own, wrong, nats)
        kinds = self._true_labels if name == "recall" else self._predicted_labels
        return make_label_subsets(kinds.take(kept), wrong, nats)

    def nearby(
        self, *, kl: float | None = None, total_variation: float | None = None
    ) -> Certificate:
        """The certificate for every source of rows near this one; see `Certificate.nearby`."""
        return self.certificate.nearby(kl=kl, total_variation=total_variation)

    def mix(self, shares: dict[Any, float] | ArrayLike, delta: float | None = None) -> Certificate:
        """Bound the error where classes come in other shares; see `ConditionalGuarantees.mix`."""
        return self.conditional_guarantees("recall", delta=delta).mix(shares)

    def monitor(self, alpha: float = 0.05) -> Monitor:
        """Watch over the certificate while labelled rows come in; see `Certificate.monitor`."""
        return self.certificate.monitor(alpha)

    # -- sets of classes ---------------------------------------------------------------------------

    def predict_set(
        self,
        X: ArrayLike,
        coverage: float = 0.9,
        delta: float | None = None,
        *,
        per_class: bool = False,
    ) -> NDArray[np.bool_]:
        """Predict for each row a set of classes that holds the true one for a share of new rows.

        Given the classifier, with probability ``1 - delta`` over the draw of the calibration samples
        and whatever their distribution is. What was known before them alone says in which order classes
        come into a set: of a certified fit the training samples, of any other classifier its
        probabilities; the calibration samples say how far to go. So a set need not hold the class that
        `predict` gives, which in a certified fit both have chosen, and it may be empty where less than
        the usual would be surprising.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        coverage : float
            Share of new rows, between 0 and 1, whose class their set holds.
        delta : float or None
            Probability with which the sets hold fewer; None: that of the certificate.
        per_class : bool
            Whether they hold that share of the rows of every class, of all classes at once. A class of
            too few calibration samples is in every set, and so is one that only calibration samples of
            a fit have, which else is in none.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Which classes are in the set of each row, in the order of `classes_`.

        Raises
        ------
        ValueError
            If a number is not between 0 and 1; if too few rows judge for such a promise, or too many of
            them are of classes that the classifier does not know; if the model was fitted by groups,
            with a `Grid`, or was loaded from a file without its rows.
        TypeError
            If the classifier tells no probabilities.
        """
        score, scores = self._compute_scores(X), self._sort_true_class_scores(per_class)
        held: NDArray[np.bool_] = score <= _find_score_limits(
            scores, coverage, self._choose_delta(delta)
        )
        return self._expand_columns(held, per_class)

    def certify_set(
        self, coverage: float = 0.9, delta: float | None = None, *, per_class: bool = False
    ) -> tuple[Certificate | None, ...]:
        """Say what `predict_set` promises.

        Parameters
        ----------
        coverage, delta, per_class
            As in `predict_set`.

        Returns
        -------
        tuple of Certificate or None
            Of the share of rows whose set lacks their class: one of all rows, or one of the rows of
            each class, which hold together; None for a class that is in every set.

        Raises
        ------
        ValueError, TypeError
            As in `predict_set`.
        """
        scores, promise = (
            self._sort_true_class_scores(per_class),
            (coverage, self._choose_delta(delta)),
        )
        _find_score_limits(scores, *promise)
        drawn = get_sampling_facts(self.certificate)
        if not per_class:
            return scores.certificates("prediction_set", *promise, **drawn)
        parts = [str(one) for one in self._scored_classes.tolist()]
        found = np.array(scores.certificates("class_set", *promise, parts, **drawn), dtype=object)
        return tuple(self._expand_columns(found[None], None)[0])

    def _sort_true_class_scores(self, per_class: bool) -> Scores:
        """What their classes score at the calibration samples."""
        about = self._get_calibration_scores(), self._find_class_codes, self.is_worst
        return sort_truth_scores(*about, per_class=per_class)

    @property
    def _scored_classes(self) -> NDArray[Any]:
        """Classes that scores tell, which sets and thresholds go by."""
        return np.asarray(self.classifier.classes_)

    def _expand_columns(self, values: NDArray[Any], of_others: Any) -> NDArray[Any]:  # noqa: ARG002 -- here none
        """Give values of the classes that scores tell, in columns, those of all classes."""
        return values

    @property
    def _find_class_codes(self) -> NDArray[np.intp]:
        """Place of the class of each row among those that scores tell; their number: another one."""
        place = {name: place for place, name in enumerate(self._scored_classes.tolist())}
        names = [place.get(name, len(place)) for name in self._true_labels.names]
        code: NDArray[np.intp] = np.array([*names, len(place)])[self._true_labels.codes]
        return code

    def _compute_scores(self, X: ArrayLike) -> Float64:
        """1 less the share of every class at new rows, (n, K)."""
        self._get_calibration_probabilities()
        return 1 - self._compute_probabilities(X)

    def _get_calibration_scores(self) -> Float64:
        """The same at the calibration samples."""
        return 1 - self._get_calibration_probabilities()

    def _get_calibration_probabilities(self) -> Float64:
        if self.shares is None:
            raise TypeError(
                "sets of classes, margins and thresholds go by probabilities: expected a classifier "
                f"with predict_proba and classes_, got {type(self.classifier).__name__}"
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
    ) -> ThresholdGuarantees:
        """Guarantee rates and costs at every threshold of the scores of two classes at once.

        One may look first and then choose: the choice is covered. The score is the share of the second
        class that was told before these rows were seen, of a certified fit by the vote of the training
        samples that `predict_set` goes by, and of any other classifier by its probabilities.

        Parameters
        ----------
        costs : pair of float, sequence of pairs, or None
            What a missed row of the second class costs, and a false alarm, named before these rows were
            seen: half of delta is for bounds on them, at five thresholds each. All other costs are
            covered by what holds at every threshold.
        groups : array-like of shape (n,), or None
            A group of each row that was given, as in `conditional_guarantees`, fixed without the
            classes. The promises on all rows and on those of each group share delta, and hold together.
        delta : float or None
            Probability with which any of the promises may fail; None: that of the certificate.
        share : float
            Share of delta: of k models that are looked at by the same rows each has 1 / k.

        Returns
        -------
        ThresholdGuarantees

        Raises
        ------
        ValueError
            If there are not two classes, or rows of another one; if fewer than 10 rows judge, also in a
            group; if costs are no pairs, negative or all 0; if the model was fitted by groups or with a
            `Grid`.
        TypeError
            If the classifier tells no probabilities.

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
        (0.14, 0.865)
        """
        classes = self._check_two_classes().tolist()
        if self.is_worst is not None:
            raise ValueError(
                f"thresholds have limits on both sides, and {np.sum(self.is_worst):,} rows that repeat "
                "others have no worst case for both: leave these rows out of those given, or say what "
                'they are by duplicates="genuine" or "copies"'
            )
        score, code = self._compute_second_class_probabilities(), self._find_class_codes
        others = int((code > 1).sum())
        if others:
            raise ValueError(
                f"thresholds are of two classes, and {others:,} of {len(code):,} rows are of others "
                f"than {classes[0]!r} and {classes[1]!r}"
            )
        terms = Terms(self._choose_delta(delta), share, **get_sampling_facts(self.certificate))
        price = self._score_complexity
        found = ThresholdGuarantees(classes[1], score, code == 1, terms, check_costs(costs), price)
        sizes = [len(score)]
        if groups is not None:
            given, n_given = self._input_positions
            kinds = encode_groups(groups, n_given).take(given)
            found = ThresholdGuarantees.divide_delta(found, kinds.names, kinds.codes)
            sizes += [one.n for one in found.groups.values()]
        if min(sizes) < FEWEST_ROWS:
            of_each = "" if groups is None else " in each group"
            raise ValueError(
                f"thresholds take at least {FEWEST_ROWS} held-out rows{of_each}, got {min(sizes)}"
            )
        compute_log_delta(terms.delta, terms.share)  # a wrong one is refused now
        return found

    @validate_arguments
    def predict_threshold(self, X: ArrayLike, threshold: float) -> NDArray[Any]:
        """Predict the second class where its score is at least a threshold.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        threshold : float
            Such as that of a point of `thresholds`, whose scores these are.

        Returns
        -------
        ndarray of shape (n,)
            Predicted classes.

        Raises
        ------
        ValueError, TypeError
            As in `thresholds`.
        """
        classes = self._check_two_classes()
        taken = self._compute_second_class_probabilities(X) >= check_not_nan("threshold", threshold)
        predicted: NDArray[Any] = classes[taken.astype(np.intp)]
        return predicted

    def _check_two_classes(self) -> NDArray[Any]:
        """The classes that scores tell, if they are two."""
        classes = self._scored_classes
        if len(classes) != 2:
            raise ValueError(
                f"thresholds are of two classes, and this classifier has {len(classes)}"
            )
        return classes

    def _compute_second_class_probabilities(self, X: ArrayLike | None = None) -> Float64:
        """The share of the second class at new rows, or at the calibration samples, (n,)."""
        own = self._get_calibration_probabilities()
        return (own if X is None else self._compute_probabilities(X))[:, 1]

    @property
    def _score_complexity(self) -> float:
        """What was paid for having chosen the classifier by the judging rows, so its scores (nats)."""
        return self.certificate.complexity

    # -- silence -----------------------------------------------------------------------------------

    def selective_certificates(self, delta: float | None = None) -> tuple[Selective, ...]:
        """Certify what predicts where it answers, for several margins below which it is silent.

        Parameters
        ----------
        delta : float or None
            Probability with which any of these promises may fail, apart from that of the certificate;
            None: as much.

        Returns
        -------
        tuple of Selective
            By rising margin; take any of them, such as the first whose bound is low enough, and its
            margin for `predict_selective`.

        Raises
        ------
        ValueError
            If the model was fitted by groups, or was loaded from a file without its rows.
        TypeError
            If the classifier tells no probabilities.
        """
        return self._certify_margins(self._choose_delta(delta))

    def _certify_margins(self, delta: float) -> tuple[Selective, ...]:
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
        """Predict, and say where the prediction is sure enough to answer.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        margin : float
            It answers where the first class is at least so far before the second.

        Returns
        -------
        label : ndarray of shape (n,)
            Predicted classes, also where there is no answer.
        answered : ndarray of bool, shape (n,)
            Whether there is.

        Raises
        ------
        ValueError
            If the margin is negative or not finite.
        TypeError
            If the classifier tells no probabilities.
        """
        smallest = check_nonnegative("margin", margin)
        label, lead = self._predict_margins(X)
        return label, lead >= smallest

    def _predict_margins(self, X: ArrayLike) -> tuple[NDArray[Any], Float64]:
        """What is predicted of new rows, and by how much the first class is before the second."""
        return np.asarray(self.classifier.predict(X)), compute_class_margins(
            1 - self._compute_scores(X)
        )


def _find_score_limits(scores: Scores, coverage: float, delta: float) -> Float64:
    """How far sets go, unless the classes of too many rows are in none."""
    reach = scores.find_limits(coverage, delta)
    if len(reach) == 1 and np.isinf(reach).any():
        unknown = int(np.isinf(scores.value).sum())
        raise ValueError(
            f"coverage={coverage!r} is out of reach: {unknown:,} of {len(scores.value):,} "
            "calibration samples are of classes that no training sample has, or repeat other rows, "
            "and no set holds them"
        )
    return reach


# What a file of a fit holds already beside its calibration samples.
_STORED_ELSEWHERE = ("tree", "grown", "near_copies")


@dataclass(frozen=True, eq=False)
class CalibrationSamples(ArrayRecord):
    """The calibration samples of a fit one by one, and what the training samples said before them.

    These columns are all that a model keeps to answer by its calibration samples.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : NodeStats
        Counts of the training samples, whose majority labels the nodes.
    splits : array-like of bool, shape (m,), or None
        Where the likeliest pruning by the training samples goes on; None: no rows grew the tree.
    given : array-like of int, shape (n,)
        Places of the calibration samples among the rows that were given to the fit.
    n_given : int
        How many those were.
    leaf, y : array-like of int, shape (n,)
        Leaf and class of each; the codes of classes that no label names are those after the labels.
    weight : array-like of shape (n,), or None
        Of rows in groups 1 / (calibration samples of its group); None: each row counts by itself.
    repeats : int
        How many of them are like a training sample, or like another one of them.
    distinct : bool
        Whether rows that are alike were taken for copies of one.
    is_worst : array-like of bool, shape (n,), or None
        Which of them count as the worst case; None: none.
    n_others : int
        Number of codes after the labels, one at least.
    near_copies : NearCopies or None
        What a comparison with the training samples beyond equality has found; None: there was none.

    Raises
    ------
    ValueError
        If these do not go together.
    """

    tree: Tree
    grown: NodeStats
    splits: NDArray[np.bool_] | None
    given: Int64
    n_given: int
    leaf: Int32
    y: Int32
    weight: Float64 | None = None
    repeats: int = 0
    distinct: bool = False
    is_worst: NDArray[np.bool_] | None = field(default=None, metadata=ADDED_LATER)
    n_others: int = field(default=1, metadata=ADDED_LATER)
    near_copies: NearCopies | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self.grown.check_tree(self.tree)
        columns, n = check_positions(self.given, self.n_given, self.weight)
        nodes = self.tree.n_nodes
        columns["leaf"] = check_codes("leaf", self.leaf, n, nodes)
        columns["y"] = check_codes("y", self.y, n, self.grown.n_classes + self.n_others)
        if self.splits is not None:
            columns["splits"] = check_column("splits", self.splits, "bool", (nodes,))
        if self.is_worst is not None:
            columns["is_worst"] = check_column("is_worst", self.is_worst, "bool", (n,))
        if not self.tree.is_leaf[columns["leaf"]].all():
            raise ValueError("leaf must hold leaves of the tree")
        for name, values in columns.items():
            object.__setattr__(self, name, values)

    def to_stored(self) -> dict[str, Any]:
        """What a file holds of them beside what others of its entries hold."""
        return {
            name: of for name, of in super().to_stored().items() if name not in _STORED_ELSEWHERE
        }

    @classmethod
    def from_selection(
        cls,
        model_selection: ModelSelection | LabelledSelection,
        certifying: CertifyingRows,
    ) -> Self:
        """Those of a fit, by its selection."""
        held, likeliest = model_selection.held, None
        if isinstance(model_selection, ModelSelection):
            likeliest = model_selection.likeliest
        sides, weight = certifying.sides, None
        if sides.groups is not None:
            weight = compute_group_weights(sides.groups, sides.train, sides.calibration)[0]
        places, n_given = sides.calibration_places
        rows = cls.from_checked(
            held.tree,
            held.grown,
            None if likeliest is None else freeze(likeliest.log_odds > 0),
            freeze(places),
            n_given,
            freeze(certifying.leaf),
            freeze(certifying.y),
            None if weight is None else freeze(weight),
            held.repeats,
            held.distinct,
            None if sides.is_worst is None else freeze(sides.is_worst),
            max(1, int(certifying.y.max(initial=0)) + 1 - held.n_classes),
            held.near_copies,
        )
        # What the selection has counted, and what it expects, are not made a second time.
        vars(rows).update(held=held, structure=model_selection.structure)
        return rows

    @cached_property
    def held(self) -> HeldOut:
        """Both sides of the rows, counted."""
        y = replace_worst_classes(self.y, self.is_worst, self.grown.n_classes)
        stats = count_calibration_rows(self.tree, self.leaf, y, self.weight, self.grown)
        grouped = self.weight is not None
        n = len(self.given) if self.weight is None else round(self.weight.sum())
        worst = count_worst(self.is_worst)
        about = grouped, self.repeats, self.distinct, worst, self.near_copies
        return HeldOut(self.tree, self.grown, stats, self.given[:0], self.given, n, *about)

    @cached_property
    def structure(self) -> Prior:
        """What was expected before the calibration samples."""
        if self.splits is None:
            return branching_prior(self.tree, self.grown.n_classes)
        return make_structure_prior(self.tree, self.grown, make_pruning(self.tree, self.splits))

    def check_training_set(self) -> HeldOut:
        """Both sides of the rows, where there are growing ones.

        Raises
        ------
        ValueError
            If there are none.
        """
        if self.splits is None:
            raise ValueError(
                "no training samples label the prunings of a Grid: expected another grower"
            )
        return self.held

    @cached_property
    def score(self) -> Float64:
        """1 less the share of every class in every cell, by the training samples alone, (m, K)."""
        return compute_class_scores(self.check_training_set())


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FitGuarantees(Guarantees):
    """What the calibration samples of a fit guarantee of what the training samples have fitted.

    `y` and `predicted` are codes of `classes_`; that after them is of all other classes.
    """

    @cached_property
    def _true_labels(self) -> CodedLabels:
        return CodedLabels(self._classes, np.minimum(self.y, len(self._classes)))

    @cached_property
    def _predicted_labels(self) -> CodedLabels:
        return CodedLabels(self._classes, self.predicted)

    @property
    def _is_trained(self) -> NDArray[np.bool_] | slice:
        """Which classes training samples have, which alone have scores, in the order of `classes_`."""
        trained = self.classifier._trained
        return slice(None) if trained is None else trained.is_trained

    @property
    def _scored_classes(self) -> NDArray[Any]:
        return super()._scored_classes[self._is_trained]

    def _expand_columns(self, values: NDArray[Any], of_others: Any) -> NDArray[Any]:
        trained = self.classifier._trained
        return values if trained is None else trained.expand_columns(values, of_others)

    def _compute_probabilities(self, X: ArrayLike) -> Float64:
        return super()._compute_probabilities(X)[:, self._is_trained]

    def _get_calibration_probabilities(self) -> Float64:
        if self.certificate.grouped:
            raise ValueError(GROUPS_NOT_SUPPORTED)
        return super()._get_calibration_probabilities()[:, self._is_trained]

    def explain_missing_guarantees(self) -> str | None:
        """Why there are no promises beside the error as a whole; None: there are."""
        if self.certificate.grouped:
            return "the rows of the fit came in groups, and errors of single rows are counted"
        if len(self.y) < FEWEST_ROWS:
            return f"fewer than {FEWEST_ROWS} rows certify the fit"
        return None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TreeGuarantees(FitGuarantees):
    """What the calibration samples of a fit guarantee of the tree whose prunings they have weighed.

    Parameters
    ----------
    rows : CalibrationSamples
        The rows; `y` and `predicted` are their codes.
    ballot : Vote
        What predicts, in every cell, by the codes of `rows`.
    fixed : bool
        Whether it was fixed without the calibration samples.
    """

    rows: CalibrationSamples
    ballot: Vote
    fixed: bool

    _error_method = "occam_vote"

    def _list_unavailable_families(self, groups: CodedLabels | None) -> tuple[str, ...]:
        return GROUP_FAMILIES if groups is None else ()

    def _make_subsets(
        self, name: str, kept: Indices, groups: CodedLabels | None
    ) -> dict[Any, RowSubset]:
        if name not in TREE_FAMILIES:
            return super()._make_subsets(name, kept, groups)
        rows, nats = self.rows, self.certificate.complexity
        grown, leaf, wrong = rows.grown.n, rows.leaf[kept], self.wrong[kept]
        if name == "cells":
            return make_node_subsets(rows.tree, grown, leaf, wrong, nats)
        return make_leaf_subsets(rows.tree, grown, self.ballot.label, leaf, wrong, nats)

    def cells(self) -> CertificateFamily | None:
        """Certificates of all nodes of the tree; None: there are no promises."""
        return (
            None
            if self.explain_missing_guarantees()
            else self.conditional_guarantees("cells").cells
        )

    def _look_up_scores(self, leaf: Int32) -> Float64:
        return self.rows.score[:, : len(self._scored_classes)][leaf]

    def _compute_scores(self, X: ArrayLike) -> Float64:
        return self._look_up_scores(self.classifier.apply(X))

    def _get_calibration_scores(self) -> Float64:
        if self.rows.check_training_set().grouped:
            raise ValueError(GROUPS_NOT_SUPPORTED)
        return self._look_up_scores(self.rows.leaf)

    def _compute_second_class_probabilities(self, X: ArrayLike | None = None) -> Float64:
        return 1 - (self._get_calibration_scores() if X is None else self._compute_scores(X))[:, 1]

    # The training samples alone tell the scores.
    _score_complexity = 0.0

    def _certify_margins(self, delta: float) -> tuple[Selective, ...]:
        held, prior = self.rows.held, self.rows.structure
        return selective_certificates(held, self.ballot, prior, delta, fixed=self.fixed)

    def _predict_margins(self, X: ArrayLike) -> tuple[NDArray[Any], Float64]:
        leaf = self.classifier.apply(X)
        label: NDArray[Any] = self._scored_classes.take(self.ballot.label.take(leaf))
        return label, compute_node_margins(self.ballot)[leaf]

    def certify_pruning(self, pruning: NodeWeights, delta: float | None = None) -> Certificate:
        """Certify any pruning of the tree with the labels of the training samples, edited by hand, too.

        All prunings are covered at once, so that the lowest bound of any number of them holds.

        Parameters
        ----------
        pruning : NodeWeights
            Weights 0 and 1 over the nodes of `tree_`, such as ``map_pruning(tree_, weights_)``.
        delta : float or None
            As in `selective_certificates`.

        Returns
        -------
        Certificate

        Raises
        ------
        TypeError
            If `pruning` holds no weights of nodes.
        ValueError
            As in `selective_certificates`, if the weights are not 0 and 1, or with a `Grid`: labels are
            weighed there, and a pruning has none of its own.
        """
        held = self.rows.check_training_set()
        if not isinstance(pruning, NodeWeights):
            raise TypeError(f"pruning must be NodeWeights, got {pruning!r}")
        return occam_pruning(held, pruning, self.rows.structure, self._choose_delta(delta))

    def draw_pruning(self, random_state: Any = None, delta: float | None = None) -> Drawn:
        """Draw a single pruning from the posterior of the fit, once, and certify it.

        To draw again and keep the better one breaks the promise; see `single_draw`.

        Parameters
        ----------
        random_state : int, RandomState or None
            Source of the draw, which must not depend on the rows.
        delta : float or None
            As in `selective_certificates`.

        Returns
        -------
        Drawn
            The pruning and its certificate.

        Raises
        ------
        ValueError
            As in `certify_pruning`.
        """
        held, posterior = self.rows.check_training_set(), self.classifier.weights_
        seed = check_random_state(random_state).randint(2**31 - 1)
        return single_draw(
            held, posterior, self.rows.structure, self._choose_delta(delta), rng=seed
        )


def delegate_to_guarantees(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Make a method of models of one of their guarantees, which answer it."""

    @snapshot_method
    @wraps(method)
    def call_guarantees(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        guarantees = self.guarantees_
        if guarantees is None:
            raise ValueError(
                "This model file does not keep the rows of the fit. Certify before saving, or save "
                "with calibration_samples=True"
            )
        answer: Result = getattr(guarantees, method.__name__)(*args, **kwargs)
        return answer

    return call_guarantees


# -- any classifier --------------------------------------------------------------------------------


def _evaluate_rows(
    classifier: Any,
    X: Any,
    y: ArrayLike,
    delta: float,
    share: float = 1.0,
    *,
    duplicates: Duplicates,
) -> Guarantees:
    """What rows say of a classifier by its predictions alone."""
    predicted, truth = predict_rows(classifier, X, y)
    judged = select_calibration_rows(classifier, X, truth, duplicates)
    rows = judged.rows
    errors = judged.count_errors(predicted != truth)
    n_given, predicted, truth = len(truth), predicted[rows], truth[rows]
    certificate = replace(hold_out(errors, len(truth), delta, share), **judged.drawn)
    return Guarantees(
        classifier=classifier,
        certificate=certificate,
        y=truth,
        predicted=predicted,
        given=rows,
        n_given=n_given,
        is_worst=judged.is_worst,
    )


@validate_arguments
def certify(
    classifier: Any,
    X: Any,
    y: Any,
    delta: float = 0.05,
    *,
    look: int | None = None,
    duplicates: Duplicates = "auto",
) -> Certificate:
    """Certify any fitted classifier by rows that were never used: an upper bound on its test error.

    Unlike a score on test data it is no estimate: it says how high the error on new rows may be, and
    no overfitting of the classifier can break it.

    Parameters
    ----------
    classifier : fitted classifier
        Of certree, scikit-learn or anybody, with ``predict``.
    X : array-like of shape (n, p), path, list of paths, or pyarrow.dataset.Dataset
        Rows that neither its fit, nor its choice among others, nor any step before has seen. Files and
        folders are read batch by batch, as fits read them; a hash of each row is kept.
    y : array-like of shape (n,), or str
        Their classes; of files the name of the column that holds them.
    delta : float
        Probability with which the promise may fail.
    look : int or None
        Which look this is, 1, 2, ..., where rows come in and the same ones are looked at again: the
        j-th has a share 6 / (pi^2 j^2) of delta, so that all of them hold together, whenever one
        stops. None: the rows are looked at once.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        A classifier of certree knows the rows of its fit, also inside one of scikit-learn's, and
        refuses to be certified by them. Tables may hold a row more than once, though. "auto": of n rows
        up to ``sqrt(n) / 4`` that occur in the fit, or repeat others of these, class included, are
        taken for draws. Up to 2 % of n count as errors, whatever is predicted. More are refused; where
        none occurs in the fit, and n is below 40, it warns instead. "genuine": all rows are draws of
        their own, unless they are the table of the fit, or match more rows of it than new rows would.
        "copies": rows that are alike are copies of one, which counts once. "refuse" refuses any. The
        certificate says what is assumed.

    Returns
    -------
    Certificate
        The exact binomial bound.

    Raises
    ------
    TypeError
        If X names files, and y is no name of a column or the classifier has no ``classes_``.
    ValueError
        If there are no rows, not as many classes as rows, files cannot be read or lack a column, the
        classifier knows none of the classes or they are of another kind (text for numbers), or `look`
        is no number of a look; if rows occur in the fit as well, or the model no longer knows whether
        they do, and are not said to be genuine; if many repeat others, and nothing is said of them.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 1934.

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
    if is_file_source(X):
        batches = read_batches(classifier, X, y)
        return certify_batches(classifier, batches, delta, look=look, duplicates=duplicates)
    return _evaluate_rows(
        classifier, X, y, delta, compute_look_fraction(look), duplicates=duplicates
    ).certificate


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
    """Promise more of any fitted classifier, by rows that were never used, than its error as a whole.

    Parameters
    ----------
    classifier : fitted classifier
        Of certree, scikit-learn or anybody, with ``predict``.
    X : array-like of shape (n, p)
        Rows that neither its fit, nor its choice among others, nor any step before has seen.
    y : array-like of shape (n,)
        Their classes.
    families : str, sequence of str or None
        Which families: "error" of all rows, "recall" of each class, "precision" of each predicted
        class, error of "groups", "gaps" between them. None: all that there can be. A class or group
        without any row has no promise.
    groups : array-like of shape (n,), or None
        A group of each row, such as a hospital, that was not chosen by looking at errors. Rows are
        drawn independently all the same.
    weights : array-like of shape (n,), or None
        For new rows from another source, whose density over that of these rows is known: that density
        at each row, up to a factor. Each row is kept with probability ``weight / max_weight``, and
        those that are kept are independent draws of the other source.
    max_weight : float or None
        The most that any weight may be, fixed without the rows.
    random_state : int
        Seed of these draws. To draw again and keep the better promise breaks it.
    delta : float
        Probability with which a family may fail.
    jointly : bool
        Whether delta is divided by the number of families, which must then be chosen without looking,
        so that all of them hold together.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        What rows are that are alike, or like rows of the fit; see `certree.certify`.

    Returns
    -------
    Promises

    Raises
    ------
    ValueError
        If there are fewer than 10 rows, also of those kept, a family or a setting is unknown, there is
        only one group, a weight is above `max_weight`, the classifier can know none of the classes, or
        rows occur in the fit as well.

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
    class  rows  observed error  error at most  recall at least
    0        66           0.030          0.106            0.894
    1       203           0.133          0.188            0.812
    """
    judged = _evaluate_rows(classifier, X, y, delta, duplicates=duplicates)
    return judged.conditional_guarantees(
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
) -> Certificate:
    """Certify the fitted model by rows that were never used.

    Parameters
    ----------
    X : array-like of shape (n, p), path, list of paths, pyarrow.dataset.Dataset, or None
        Rows that no step of the fit or of a search has seen; None: the certificate of the fit.
    y : array-like of shape (n,), str or None
        Their classes; of files the name of the column that holds them.
    delta : float or None
        Probability with which the promise may fail; None: `delta` of the fit.
    look : int or None
        Which look at rows that come in this is; see `certree.certify`.
    duplicates : {"auto", "genuine", "copies", "refuse"} or None
        What rows are that are alike, or like rows of the fit; see `certree.certify`. None: "auto".

    Returns
    -------
    Certificate
        The exact binomial bound; without rows `certificate_`, at the given delta. What predicts
        was chosen at that of the fit, and all that it was chosen from is covered at any.

    Raises
    ------
    ValueError
        If there are rows without classes, or the other way round, or rows of the fit.
    """
    check_is_fitted(self)
    if X is not None and y is not None:
        word = "auto" if duplicates is None else duplicates
        level = self.delta if delta is None else delta
        return certify(self, X, y, level, look=look, duplicates=word)
    if (X is None) != (y is None):
        raise ValueError("certify takes both X and y, or neither")
    if look is not None or duplicates is not None:
        raise ValueError("look and duplicates speak of new rows: certify takes them with X and y")
    one: Certificate = self.certificate_
    return one if delta is None else one.at(delta)
