"""Boosted trees with certificates: a training set grows the trees, a calibration set certifies them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.baseline import compute_class_baseline
from certree.certificates.calibration_set import CalibrationSet
from certree.certificates.certificate import (
    CERTIFICATE_FIELDS,
    Certificate,
    get_sampling_facts,
)
from certree.certificates.certified_regression import (
    LEAST_SCALE,
    CertifiedRegressorMixin,
    certify_absolute_error,
    find_error_limit,
)
from certree.certificates.guarantees import (
    FitGuarantees,
    Guarantees,
    certify_fitted,
    delegate_to_guarantees,
)
from certree.certificates.hold_out import certify_row_errors
from certree.certificates.model_selection import (
    PILOT,
    CurvePoint,
    choose_train_fraction,
    get_fixed_train_size,
)
from certree.certificates.row_order import compute_class_residuals, note_row_order
from certree.certificates.subsets.coverage import Scores
from certree.certificates.trained_classes import TRAINED_CLASSES_FIELD, TrainedClasses
from certree.ensembles.adaboost_rounds import select_best_classes
from certree.ensembles.boosting import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    LossName,
    Quality,
)
from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.staged import make_constant_scores
from certree.ensembles.time_limit import TimeLimit
from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.explain.tree_model import declare_trees
from certree.interface.arrays import (
    Float64,
    Int32,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import get_n_threads_or_all
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.folds import Indices
from certree.rows.monotonic import MonotonicCst
from certree.rows.split import TrainCalibrationSplitter
from certree.rows.time_order import has_dependent_rows
from certree.rows.training import Training
from certree.tree import Trees

# Folds of the learning curve of the pilot; and its exponent, as measured on ten public tables.
_PILOT_FOLDS, _EXPONENT = 3, 0.25
# Fraction of `max_time` that may choose the size of the training set.
_PILOT_TIME = 0.2
# Fractions of `max_time` at which the rounds of a regressor end, and the cross-validation of errors.
_ROUNDS_TIME, _ERRORS_TIME = 0.6, 0.9
# Folds of the cross-validation that measures absolute errors.
_FOLDS = 5
# The largest float64 below 1.
_MAX_TRAIN_SIZE = 1 - 2.0**-53


@dataclass(frozen=True, eq=False, kw_only=True)
class EnsembleCalibrationSet(CalibrationSet):
    """The calibration set of a classifier that adds up trees, with the scores of its rows.

    The constructor takes by keyword the arguments of `CalibrationSet`, such as `given`, the position
    of each row in the call of ``fit``, `y`, its class code, and `weight`, for rows in groups; and one
    more. The code after those of the classes of the fit stands for all other classes.

    Parameters
    ----------
    score : array-like of shape (n_outputs, n)
        Scores of the rows by all trees.

    Raises
    ------
    ValueError
        If shapes differ, positions or weights are out of range, or scores are not finite.
    """

    score: Float64
    _stored_first = ("given", "n_given", "score")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("float64", (None, len(self.given)), "score")
        if not np.isfinite(self.score).all():
            raise ValueError(
                "score must hold finite numbers, got NaN or an infinite number: pass the scores that "
                "the model computes"
            )


def _read_calibration(stored: StoredState, name: str, model: Any) -> EnsembleCalibrationSet:
    """Return the calibration set of a model file, without checks against the rest of the model.

    stored: content of the file; name: its section that holds the calibration set; model: the model
    that is restored, whose `certificate_` must have been read: two fields are taken from it,
    `near_copies` and `period`, as the section lacks them.
    """
    return EnsembleCalibrationSet.from_stored(
        stored.get_section(name),
        near_copies=model.certificate_.near_copies,
        period=model.certificate_.period,
    )


def _make_quick_copy(model: Any) -> Any:
    """Return a shallow copy of a model with quality "fast" and without early stopping.

    model: the model, during its fit, when the rows are encoded: the copy shares its classes and
    categories. Callers fit the rounds of the copy to subsets of the training set, for learning
    curves and cross-validation. If early stopping is on, an explicit `max_iter` is lowered to the
    number of rounds of quality "fast".
    """
    quick = copy(model)
    if model.early_stopping is not False:
        # Few rows may leave no validation set, and all rounds would take too long.
        quick.early_stopping, max_iter = False, model.max_iter
        quick.max_iter = (
            max_iter if max_iter == "auto" else min(max_iter, model._count_fast_rounds())
        )
    quick.quality, quick.verbose = "fast", 0
    return quick


@copy_descriptions_from(BoostedTreesClassifier)
class CertifiedBoostedTreesClassifier(BoostedTreesClassifier):
    """Boosted trees with a certificate: an upper bound on their error on new rows.

    A training set grows the trees as in `BoostedTreesClassifier`; the errors on the calibration set
    are counted. With probability ``1 - delta`` over the draw of the rows, the error on new rows is
    at most the bound, for every distribution of the rows and however much the trees overfit.

    The certificate is about the model that was trained on the training set alone. It does not hold
    for the same model fitted again to all rows, which is usually better, but without a guarantee.

    Parameters
    ----------
    train_size : "auto" or float, default="auto"
        Fraction of the rows, or groups, in the training set. "auto": the fraction, at most 85 %,
        with the lowest expected bound, by the errors of fits to one and to two thirds of a first
        draw of 35 %.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        How rows count that are equal, class included. "genuine": as separate draws; "copies": as
        copies of one draw, which count once; "refuse": raise an error; "auto": decide by their
        number, see `CertifiedTreeClassifier`.
    quality : {"fast", "default", "best"}, default="default"
        "fast": fewer rounds, without cross-validation; "best": more rounds, and the mean of two
        fits. See `BoostedTreesClassifier`, as for all parameters below.
    {learning_rate}
    max_iter : int or "auto", default="auto"
        Number of rounds, of one tree each; "auto": chosen by cross-validation of the training set.
    max_time : float or None, default=None
        Seconds of wall-clock time for a fit, which ends after the last round that fits, but makes at
        least one. The choice of `train_size` takes at most a fifth of them. Certificates hold, as
        calibration rows do not end a fit; see `BoostedTreesClassifier`. None: no limit.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Largest number of leaves of a tree. "auto": 31 to 63 by the rows in the training set; None:
        no limit.
    {max_depth} {min_samples_leaf} {l2_regularization} {max_features} {max_thresholds}
    subsample : float, default=0.75
        Fraction of the training set that is in-bag in a round. The loss on the out-of-bag rows
        determines the weights of the prunings (subtrees) of the round's tree.
        The calibration set has no part in either.
    {prunings}
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; the categories are those of the training set. "from_dtype":
        columns of a data frame with a category, string or object dtype, and columns of an object
        array that contain a string. Otherwise a mask, indices or names; None: no feature.
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by its name: 1 if the probability of the second of two classes must not
        fall if the feature rises, -1 if it must not rise, 0 otherwise.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features that may be used together on a path of a tree. "pairwise": any two
        features; "no_interactions": each feature by itself; see `BoostedTreesClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced": inversely proportional to their frequencies in the
        training set; None: 1 each. The certificate ignores them.
    early_stopping : bool or "auto", default=False
        Whether the fit stops by the score of a validation set, which is taken from the training
        set. "auto": True for more than 10,000 rows in the training set.
    {scoring}
    validation_fraction : float, int or None, default=0.1
        Fraction (float) or number (int) of the training rows, or of their groups, in the validation
        set. None: training rows are scored instead.
    {n_iter_no_change} {tol}
    random_state : int, RandomState or None, default=None
        Seed of the training set, and of rows, features and thresholds that rounds draw.
    {n_jobs} {verbose}

    Attributes
    ----------
    certificate_ : Certificate
        The bound on the error on new rows.
    certificates_ : tuple of Certificate
        A tuple with `certificate_` alone.
    train_size_ : float
        Fraction of the rows, or groups, in the training set.
    calibration_ : EnsembleCalibrationSet or None
        Scores and classes of the calibration set; None if the model was loaded from a file without
        them.
    guarantees_ : Guarantees or None
        Further guarantees by the calibration set, which the methods below use; None if
        `calibration_` is.
    classes_ : ndarray of shape (K,)
        The classes: those that were passed to `fit`, or all in y. A class of the calibration set
        alone has probability 0 and score -1e30 and is never predicted, as the calibration set must
        not influence predictions.
    {sample_hashes_}
    n_iter_, stopped_by_, learning_rate_, train_score_, validation_score_, max_leaf_nodes_,
    thresholds_, trees_, start_
        See `BoostedTreesClassifier`.
    feature_importances_, n_features_in_, categories_, dates_, feature_names_in_
        See `BoostedTreesClassifier`.

    See Also
    --------
    CertifiedTreeClassifier : A single tree, whose prunings the calibration set weights; often better
        with a few hundred rows.
    certree.certify : A certificate for any model, by rows that are not in its training set.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005, for the bound;
    see `BoostedTreesClassifier` for the trees.

    Examples
    --------
    >>> from certree.ensembles import CertifiedBoostedTreesClassifier
    >>> model = CertifiedBoostedTreesClassifier().fit([[k] for k in range(120)], 60 * [0] + 60 * [1])
    >>> model.certificate_.bound < 0.5
    True

    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import CertifiedBoostedTreesClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CertifiedBoostedTreesClassifier(quality="fast", random_state=0).fit(X, y)
    >>> model.certificate_.method
    'hold_out'
    """

    certificate_: Certificate
    certificates_: tuple[Certificate, ...]
    calibration_: EnsembleCalibrationSet | None
    # Classes of the calibration set alone; and which classes the training set has, None: all.
    _calibration_classes: NDArray[Any]
    _trained: TrainedClasses | None = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedTreesClassifier._parameter_constraints,
        "train_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "duplicates": [StrOptions(set(DUPLICATES))],
    }
    # The calibration set would no longer be independent of rounds that are added after it was used.
    del _parameter_constraints["warm_start"]
    # Certificates do not depend on standard errors.
    del _parameter_constraints["standard_errors"]
    _takes_outputs: ClassVar[bool] = False
    _takes_offset: ClassVar[bool] = False

    def __init__(
        self,
        *,
        train_size: Literal["auto"] | float = "auto",
        delta: float = 0.05,
        duplicates: Duplicates = "auto",
        quality: Quality = "default",
        learning_rate: float | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        max_time: float | None = None,
        max_leaf_nodes: int | Literal["auto"] | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int = 5,
        l2_regularization: float = 2.5,
        max_features: float | Literal["auto", "sqrt", "log2"] | None = "auto",
        max_thresholds: int | Literal["auto"] | None = "auto",
        subsample: float = 0.75,
        prunings: Literal["vote", "none"] = "vote",
        categorical_features: Any = "from_dtype",
        monotonic_cst: MonotonicCst = None,
        interaction_cst: Any = None,
        class_weight: Any = None,
        early_stopping: bool | Literal["auto"] = False,
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    @copy_descriptions_from(CertifiedTreeClassifier.fit)
    @fit_method
    def fit(  # type: ignore[override]  # certificates need rows that choose no rounds
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        time: Any = None,
        gap: Any = 0,
        independent: bool = False,
    ) -> Self:
        """Split the rows into training and calibration set, grow the trees, and certify them.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the growth of the trees; only ratios count. The certificate counts
            every row of positive weight once; a row of weight zero is ignored.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, if rows of one group depend on each other. Whole
            groups are in the training or calibration set, and the certificate is about new groups.
        classes : array-like of shape (K,), or None
            The classes that may be predicted, if they are known without the rows; None: those of
            the training set. A calibration row of another class counts as an error.
        {time} {gap} {independent}

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit, random_state = (
            TimeLimit.start(self.max_time),
            check_random_state(self.random_state),
        )
        if random_state is self.random_state:
            random_state = deepcopy(random_state)

        def split_rows(train_size: float, is_pilot: bool = False) -> Training:
            # The order is the same for each size, so that a larger training set contains a smaller one.
            """Encode the rows of `fit`, and draw a training and a calibration set from them.

            Return all rows with this split. The order of the draw is the same for each size, so
            that larger training sets contain smaller ones. train_size: fraction in the training
            set; is_pilot: whether another split may follow, in which case near copies are not
            searched yet. Sets those fitted attributes of `self` that follow from the rows, such as
            `classes_`. Variables of `fit`: its arguments X, y, sample_weight, groups and classes;
            `self`; and `random_state`, of which each call uses a copy.
            """
            return self._prepare_training(
                X,
                y,
                sample_weight,
                groups=groups,
                time=time,
                gap=gap,
                independent=independent,
                row_splitter=TrainCalibrationSplitter(
                    train_size, deepcopy(random_state), is_pilot=is_pilot
                ),
                classes=classes,
            )

        training = self._choose_training_set(split_rows, time is not None, limit)
        self._fit_rounds(training.train_subset or training, limit=limit)
        self._certify(self._add_calibration_classes(training))
        return self

    def _add_calibration_classes(self, training: Training) -> Training:
        """Add the classes that only the calibration set has to `classes_`, `trees_` and `start_`.

        training: all rows of the fit with their split. Return them with class codes among all
        classes. The score of an added class is -1e30, so that it is never predicted.
        """
        self.classes_, self._trained = TrainedClasses.merge_classes(
            self.classes_, self._calibration_classes
        )
        trained = self._trained
        if trained is None:
            return training
        self.n_classes_ = len(self.classes_)
        self.trees_ = self.trees_.with_value(trained.expand_scores(self.trees_.value))
        self.start_ = trained.expand_scores(self.start_[None], is_start=True)[0]
        return replace(training, y=trained.class_positions[training.y].astype(np.int32))

    def _choose_training_set(
        self, split_rows: Callable[..., Training], has_times: bool, limit: TimeLimit
    ) -> Training:
        """Choose the training set, set `train_size_`, and return all rows with their split.

        With train_size="auto" 35 % of the rows, the pilot, are split off first. The learning curve
        within it predicts the bound for each size of the training set, and the size with the lowest
        predicted bound is used. split_rows: ``split_rows(train_size, is_pilot)`` draws a training
        set of this fraction from the rows of the fit, and returns all rows with their split;
        is_pilot: whether another split may follow. has_times: whether rows are split by time;
        "auto" is then a constant, as no error may choose the size. limit: when the fit must end.
        """
        fixed = get_fixed_train_size(self.train_size, has_times)
        if fixed is not None:
            self.train_size_ = fixed
            return split_rows(fixed)
        pilot = split_rows(PILOT, is_pilot=True)
        curve = self._compute_learning_curve(pilot, limit)
        self.train_size_ = choose_train_fraction(
            curve,
            pilot.split.n_units,
            self.delta,
            pilot.split.grouped,
            complexity=0.0,
            exponent=_EXPONENT,
        )
        if self.train_size_ != PILOT:
            return split_rows(self.train_size_)
        return pilot.expect_few_near_copies(self.duplicates)

    def _compute_learning_curve(self, pilot: Training, limit: TimeLimit) -> list[CurvePoint]:
        """Measure the errors of fits to one third and to two thirds of the pilot's training set.

        Fits have quality "fast", and are tested on the remaining rows of the pilot's training set.
        pilot: all rows of the fit, with the split in which 35 % are for training; limit: when the
        fit must end; these fits take a fifth of the time. Return one point for each of the two
        sizes: mean number of rows fitted as a fraction of all rows, fraction of the tested rows
        with a wrong class, and number of tested rows. A size at which no row can be tested has no
        point.
        """
        training = pilot.train_subset or pilot
        folds = training.split_folds(_PILOT_FOLDS, np.random.RandomState(0))
        curve, limits = [], limit.divide(_PILOT_TIME, 2 * len(folds))
        for splits in (
            [(fold.validation, fold.train) for fold in folds],
            [(fold.train, fold.validation) for fold in folds],
        ):
            wrong = [
                self._find_errors(training, *split, next(limits))
                for split in splits
                if len(split[0])
            ]
            n_tested = sum(map(len, wrong))
            if n_tested:
                size = sum(len(train) for train, _ in splits) / len(splits) / len(pilot.y)
                curve.append(CurvePoint(size, float(np.concatenate(wrong).mean()), n_tested))
        return curve

    def _find_errors(
        self, training: Training, train: Indices, test: Indices, limit: TimeLimit
    ) -> NDArray[np.bool_]:
        """Return which test rows a fit of quality "fast" predicts wrongly, (n_test,) bool.

        training: rows of the fit, with features and class codes; train, test: indices of those that
        are fitted, and of those that are predicted; limit: when the fit must end.
        """
        quick = _make_quick_copy(self)
        quick._fit_rounds(training.take(train), limit=limit)
        codes = self._predict_codes(quick._compute_row_scores(training.features.take_matrix(test)))
        return np.asarray(codes != training.y[test])

    def _predict_codes(self, scores: Float64) -> Int32:
        """Return the code of the class with the largest score in each row, (n,).

        scores: (1, n) for at most two classes, where a positive score predicts code 1; else (K, n);
        ties go to the first class.
        """
        if self.n_classes_ == 1:
            return np.zeros(scores.shape[1], dtype=np.int32)
        return select_best_classes(scores).astype(np.int32)

    def _certify(self, training: Training) -> None:
        """Set `calibration_`, `certificate_` and `certificates_` from the calibration set.

        training: all rows of the fit with their split; call it when the trees are fitted. The
        certificate bounds the error rate on new rows. Warn if errors depend on the order of the
        rows and a feature holds dates.
        """
        calibration = training.split.calibration
        score = self._compute_row_scores(training.features.take_matrix(calibration))
        self.calibration_ = EnsembleCalibrationSet.from_split(
            training.split, training.y[calibration], score=score
        )
        self.certificate_ = self._make_certificate(self.calibration_)
        self.certificates_ = (self.certificate_,)
        note_row_order(
            self,
            training.split.units,
            self.n_classes_,
            lambda rows: compute_class_residuals(
                training.y[calibration[rows]], self._compute_probabilities(score[:, rows])
            ),
        )

    def _make_certificate(self, rows: EnsembleCalibrationSet) -> Certificate:
        """Return the certificate of the error rate on new rows at level `delta`.

        rows: the calibration set with its scores. Repeated rows that are marked in its field
        `is_worst` count as errors, whatever is predicted. The certificate is the exact binomial
        bound of the error of single rows; if `weight` is set, as rows have groups, it bounds the
        mean error per group.
        """
        wrong = self._predict_codes(rows.score) != rows.y
        if rows.is_worst is not None:
            wrong |= rows.is_worst
        certificate = certify_row_errors(wrong, rows.weight, self.delta, period=rows.period)
        baseline = compute_class_baseline(rows.y, self.classes_, rows.weight)
        return replace(certificate, baseline=baseline, **get_sampling_facts(rows))

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        **BoostedTreesClassifier._stored_fields,
        **CERTIFICATE_FIELDS,
        "train_size": StoredField.value("train_size_", float, 0, _MAX_TRAIN_SIZE),
        "calibration": StoredField("calibration_", _read_calibration, default=None),
        "is_trained": TRAINED_CLASSES_FIELD,
    }

    def _finish_restore(self, stored: StoredState) -> None:
        """Check a restored model: its calibration set must fit to its classes and its certificate.

        Raise ValueError otherwise. stored: content of the model file.
        """
        super()._finish_restore(stored)
        if (rows := self.calibration_) is None:
            return
        most = max(2, self.n_classes_)
        if len(rows.score) != self._n_outputs or rows.y.max(initial=0) > most:
            raise DamagedModelError(
                f"the model file's calibration set must have {self._n_outputs} scores per row "
                "and class codes <= "
                f"{most}, got {len(rows.score)} scores and code {rows.y.max(initial=0)}"
            )
        if self._make_certificate(rows) != self.certificate_:
            raise DamagedModelError(
                "the model file's certificate must equal the one that follows from its calibration set"
            )

    @property
    @snapshot_method
    def guarantees_(self) -> Guarantees | None:
        """Further guarantees, computed from the calibration set in addition to the certificate.

        They are about the error in subsets of rows, prediction sets, and predictions with
        abstention; see `Guarantees`. None if `calibration_`, the calibration set, is None.
        """
        check_is_fitted(self)
        rows = self.calibration_
        if rows is None:
            return None
        return FitGuarantees(
            classifier=self,
            certificate=self.certificate_,
            y=rows.y,
            predicted=self._predict_codes(rows.score),
            shares=self._compute_probabilities(rows.score),
            given=rows.given,
            n_given=rows.n_given,
            is_worst=rows.is_worst,
        )

    certify = certify_fitted
    conditional_guarantees = delegate_to_guarantees(Guarantees.conditional_guarantees)
    predict_set = delegate_to_guarantees(Guarantees.predict_set)
    certify_set = delegate_to_guarantees(Guarantees.certify_set)
    selective_certificates = delegate_to_guarantees(Guarantees.selective_certificates)
    predict_selective = delegate_to_guarantees(Guarantees.predict_selective)

    @snapshot_method
    def report(self) -> str:
        """Describe the fit and its certificate in words.

        Returns
        -------
        str
            Number of trees and rounds, leaves, learning rate and thresholds of the rounds, whether
            `max_time` ended them, size of the training set, and the text of the certificate.
        """
        check_is_fitted(self)
        return (
            f"{len(self.trees_):,} trees {self._describe_rounds()}, trained on "
            f"{100 * self.train_size_:.0f} % of the rows. {self.certificate_}"
        )


@copy_descriptions_from(CertifiedBoostedTreesClassifier, BoostedTreesRegressor)
class CertifiedBoostedTreesRegressor(CertifiedRegressorMixin, BoostedTreesRegressor):
    """Boosted trees for numbers with certified prediction intervals and a bound on the mean error.

    A training set grows the trees as in `BoostedTreesRegressor`; a calibration set certifies them.
    For the fitted model, with probability ``1 - delta`` over the draw of the calibration set and
    for every distribution of the rows,

    * the interval of `predict_interval` contains the target of at least a fraction `coverage` of
      new rows,
    * the mean absolute error on new rows is at most ``certificate_.bound``, in units of the target,
      where an error above ``certificate_.unit`` counts as ``certificate_.unit``.

    Each guarantee holds by itself, and is about all new rows together, not about subsets of them.
    They do not hold for the same model fitted again to all rows.

    Parameters
    ----------
    loss : str or CustomLoss, default="squared_error"
        "squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie", or a
        `CustomLoss`; see `BoostedTreesRegressor`. Intervals and the certificate are about absolute
        errors, whatever the loss.
    quantile : float or None, default=None
        The quantile of loss "quantile".
    {power}
    train_size : float, default=0.5
        Fraction of the rows, or groups, in the training set.
    coverage : float, default=0.9
        Fraction of new rows whose interval contains their target.
    delta : float, default=0.05
        Probability with which a guarantee may fail.
    widths : {"scaled", "one"}, default="scaled"
        "scaled": the width of an interval is proportional to the expected absolute error of its
        row, which further boosted trees learn from a cross-validation of the training set. "one":
        all intervals have the same width.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        How rows count that are equal, target included. "genuine": as separate draws; "copies": as
        copies of one draw, which count once; "refuse": raise an error; "auto": decide by their
        number, see `CertifiedTreeClassifier`.
    quality : {"fast", "default", "best"}, default="default"
        "fast": fewer rounds, without cross-validation; "best": more rounds, and the mean of four
        fits. See `BoostedTreesRegressor`, as for all parameters below.
    {learning_rate}
    max_iter : int or "auto", default="auto"
        Number of rounds.
    max_time : float or None, default=None
        Seconds of wall-clock time for a fit, which ends after the last round that fits, but makes at
        least one. The widths of intervals take at most two fifths of them. Certificates hold, as
        calibration rows do not end a fit; see `BoostedTreesRegressor`. None: no limit.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Largest number of leaves of a tree. "auto": 16 to 31 by the rows in the training set; None:
        no limit.
    {max_depth}
    min_samples_leaf : int, default=1
        Smallest number of in-bag rows in a leaf.
    l2_regularization : float, default=2.5
        Number of rows with which the value of a node is shrunk towards the value of its parent.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round may split on: an int is their number, a float a fraction of all;
        "sqrt" and "log2": the square root and the binary logarithm of their number; None or "auto":
        all.
    {max_thresholds}
    subsample : float, default=0.9
        Fraction of the training set that is in-bag in a round. The loss on the out-of-bag rows
        determines the weights of the prunings (subtrees) of the round's tree.
        The calibration set has no part in either.
    {prunings} {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by its name: 1 if predictions must not fall if the feature rises, -1 if
        they must not rise, 0 otherwise. Predictions follow them, the widths of intervals do not.
    {interaction_cst} {early_stopping} {scoring} {validation_fraction} {n_iter_no_change} {tol}
    random_state : int, RandomState or None, default=None
        Seed of the training set, the folds, and rows, features and thresholds that rounds draw.
    {n_jobs} {verbose}

    Attributes
    ----------
    certificate_ : Certificate
        The bound on the mean absolute error. Its ``unit`` is the largest error that counts: the
        largest in a cross-validation of the training set.
    certificates_ : tuple of Certificate
        `certificate_`, and the certificate of the intervals at `coverage` and `delta` if the
        calibration set is large enough for it; see `certify_interval`.
    conformity_scores_ : Scores
        Absolute errors of the calibration rows divided by the scale of each row.
    scale_trees_ : Trees
        Trees whose sum is the scale, the expected absolute error, of a row; no trees if
        ``widths="one"``.
    scale_start_ : ndarray of shape (1,)
        Constant to which these trees add.
    least_scale_ : float
        Smallest scale of a row, in units of the target.
    n_iter_, stopped_by_, learning_rate_, train_score_, validation_score_, max_leaf_nodes_,
    thresholds_, trees_, start_
        See `BoostedTreesRegressor`.
    feature_importances_, n_features_in_, categories_, dates_, feature_names_in_
        See `BoostedTreesRegressor`.

    See Also
    --------
    CertifiedTreeRegressor : A single tree with such guarantees, also for each of its leaf regions.
    certree.ensembles.ConformalBandRegressor : Prediction intervals around quantiles of any regressor.

    References
    ----------
    See `CertifiedTreeRegressor` for the guarantees, `BoostedTreesClassifier` for the trees.

    Examples
    --------
    >>> from certree.ensembles import CertifiedBoostedTreesRegressor
    >>> model = CertifiedBoostedTreesRegressor().fit([[k] for k in range(99)], range(99))
    >>> model.predict_interval([[50]]).shape
    (1, 2)

    >>> import numpy as np
    >>> from certree import CertifiedBoostedTreesRegressor
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(0, 0.1, 1000)
    >>> model = CertifiedBoostedTreesRegressor(quality="fast", random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3]).shape
    (3, 2)
    """

    scale_trees_: Trees
    scale_start_: Float64
    least_scale_: float
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedTreesRegressor._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither"), None],
        "train_size": [Interval(Real, 0, 1, closed="neither")],
        "coverage": [Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "widths": [StrOptions({"scaled", "one"})],
        "duplicates": [StrOptions(set(DUPLICATES))],
    }
    del _parameter_constraints["warm_start"]
    # Certificates do not depend on standard errors.
    del _parameter_constraints["standard_errors"]
    _takes_outputs: ClassVar[bool] = False
    _takes_offset: ClassVar[bool] = False

    def __init__(
        self,
        loss: LossName | CustomLoss = "squared_error",
        *,
        quantile: float | None = None,
        power: float | None = None,
        train_size: float = 0.5,
        coverage: float = 0.9,
        delta: float = 0.05,
        widths: Literal["scaled", "one"] = "scaled",
        duplicates: Duplicates = "auto",
        quality: Quality = "default",
        learning_rate: float | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        max_time: float | None = None,
        max_leaf_nodes: int | Literal["auto"] | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        l2_regularization: float = 2.5,
        max_features: float | Literal["auto", "sqrt", "log2"] | None = "auto",
        max_thresholds: int | Literal["auto"] | None = "auto",
        subsample: float = 0.9,
        prunings: Literal["vote", "none"] = "vote",
        categorical_features: Any = "from_dtype",
        monotonic_cst: MonotonicCst = None,
        interaction_cst: Any = None,
        early_stopping: bool | Literal["auto"] = False,
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    @copy_descriptions_from(CertifiedTreeClassifier.fit)
    @fit_method
    def fit(  # type: ignore[override]  # certificates need rows that choose no rounds
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        time: Any = None,
        gap: Any = 0,
        independent: bool = False,
    ) -> Self:
        """Split the rows into training and calibration set, grow the trees, and certify them.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Target of each row, a number.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the growth of the trees; only ratios count. The certificate counts
            every row of positive weight once; a row of weight zero is ignored.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, if rows of one group depend on each other. Whole
            groups are in the training or calibration set, and the certificate is about new groups.
            Intervals are then not certified.
        {time} {gap} {independent}

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit, random_state = (
            TimeLimit.start(self.max_time),
            check_random_state(self.random_state),
        )
        if random_state is self.random_state:
            random_state = deepcopy(random_state)
        rows = self._prepare_training(
            X,
            y,
            sample_weight,
            groups=groups,
            time=time,
            gap=gap,
            independent=independent,
            row_splitter=TrainCalibrationSplitter(self.train_size, random_state),
        )
        training = rows.train_subset or rows
        self._fit_rounds(training, limit=limit.take_fraction(_ROUNDS_TIME))
        self._certify(rows, self._fit_scale(training, random_state, limit))
        return self

    def _fit_scale(
        self, training: Training, random_state: np.random.RandomState, limit: TimeLimit
    ) -> float:
        """Fit the expected absolute error of a row, the scale, to errors of a cross-validation.

        Sets `scale_start_`, `scale_trees_` and `least_scale_`. training: training set;
        random_state: source of the folds; limit: when the fit must end. Return the largest error
        that the certificate counts: the largest absolute error of the cross-validation; if that is
        0, the range of the targets, or 1. With ``widths="one"`` this number is the scale of all rows.
        """
        n, error = len(training.y), np.zeros(len(training.y))
        folds = training.split_folds(min(_FOLDS, n), random_state) if n > 1 else []
        limits = limit.divide(_ERRORS_TIME, len(folds), begin=_ROUNDS_TIME)
        for fold in folds:
            quick = _make_quick_copy(self)
            quick._fit_rounds(training.take(fold.train), limit=next(limits))
            predicted = quick._predict_rows(training.features.take_matrix(fold.validation))
            error[fold.validation] = np.abs(training.y[fold.validation] - predicted)
        if training.split.times is not None and folds:  # only the latest rows validate
            validated = np.sort(np.concatenate([fold.validation for fold in folds]))
            training, error = training.take(validated), error[validated]
        largest = find_error_limit(error, training.y)
        mean = float(np.average(error, weights=training.weight)) / largest
        scale = _make_quick_copy(self)
        scale.loss, scale.quantile, scale.power = "squared_error", None, None
        scale.monotonic_cst = None
        if self.widths == "scaled":
            scale._fit_rounds(replace(training, y=error / largest), limit=limit)
        else:
            scale.start_, scale.trees_ = np.ones(1), Trees.joined([], self._n_encoded, 1)
        self.scale_start_ = largest * scale.start_
        self.scale_trees_ = scale.trees_.with_value(largest * scale.trees_.value)
        self.least_scale_ = largest * (LEAST_SCALE * mean or 1.0)
        return largest

    def _predict_rows(self, rows: NDArray[Any]) -> Float64:
        """Predict the numbers of encoded rows, (n,). rows: numbers and category codes, (n, p)."""
        return np.asarray(self._predict_from_scores(self._compute_row_scores(rows)))

    def _compute_scale(self, rows: NDArray[Any]) -> Float64:
        """Return the expected absolute error of each row, in units of the target, (n,).

        rows: encoded rows, numbers and category codes, (n, p). The error is `scale_start_` plus the
        leaf values of `scale_trees_`, at least `least_scale_`.
        """
        n = rows.shape[0]
        start = make_constant_scores(self.scale_start_, n)
        scale = self.scale_trees_.add(start, rows, get_n_threads_or_all(self.n_jobs, n))
        return np.maximum(scale[0], self.least_scale_)

    def _certify(self, rows: Training, limit: float) -> None:
        """Set `certificate_`, `certificates_` and `conformity_scores_` from the calibration set.

        rows: all rows of the fit with their split; limit: the largest error that the certificate of
        the mean absolute error counts; larger errors count as `limit`. With groups, or if rows of a
        period may depend on each other, there is no certificate of intervals. Call it when the
        trees and the scale are fitted. Warn if errors depend on the order of the rows and a feature
        holds dates.
        """
        calibration = rows.split.calibration
        features, found = (
            rows.features.take_matrix(calibration),
            CalibrationSet.from_split(rows.split, rows.y[calibration]),
        )
        y, predicted = found.y, self._predict_rows(features)
        self.certificate_ = certify_absolute_error(
            predicted,
            y,
            limit,
            self.delta,
            found.weight,
            found.n,
            found.is_worst,
            **get_sampling_facts(found),
        )
        with np.errstate(over="ignore"):
            score = np.abs(y - predicted) / self._compute_scale(features)
        if found.is_worst is not None:
            score[found.is_worst] = np.inf
        one_region = np.zeros(len(score), dtype=np.int32)
        self.conformity_scores_ = Scores.from_rows(score, one_region, np.ones(1))
        bands = (
            () if has_dependent_rows(found) else self._certify_intervals(self.coverage, self.delta)
        )
        self.certificates_ = (self.certificate_, *filter(None, bands))
        note_row_order(self, rows.split.units, 1, lambda some: (y - predicted)[some])

    def _predict_with_half_width(self, X: ArrayLike, reach: Float64) -> tuple[Float64, Float64]:
        """Return the center (the prediction) and the half width of each row's interval, (n,) each.

        X: rows as the user gives them; reach: half of the width of an interval divided by the scale
        (expected absolute error) of its row, (1,): a quantile of the conformity scores.
        """
        rows = self._encode_new_rows_or_csr(X)
        with np.errstate(over="ignore"):
            return self._predict_rows(rows), reach[0] * self._compute_scale(rows)

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        **BoostedTreesRegressor._stored_fields,
        **CERTIFICATE_FIELDS,
        "scores": StoredField.record("conformity_scores_", Scores),
        "scale": declare_trees("scale_trees_", 1),
        "scale_start": StoredField.numbers("scale_start_", (1,)),
        "least_scale": StoredField.value("least_scale_", float, 0, np.finfo(np.float64).max),
    }

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the restored model: raise ValueError if its conformity scores have several regions.

        A region is a set of rows that has conformity scores of its own; here all rows are one
        region. stored: content of the model file.
        """
        super()._finish_restore(stored)
        if (n_regions := len(self.conformity_scores_.mass)) != 1:
            raise DamagedModelError(
                f"the model file's conformity scores must have one region, got {n_regions}"
            )
