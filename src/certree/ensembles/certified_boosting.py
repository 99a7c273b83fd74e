"""Boosted trees whose fit certifies: some rows train them, the others bound what they get wrong."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.calibration_set import check_positions, compute_group_weights
from certree.certificates.certificate import (
    Certificate,
    get_sampling_facts,
    restore_certificates,
    serialize_certificates,
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
from certree.certificates.hold_out import hold_out, hold_out_mean
from certree.certificates.model_selection import PILOT, CurvePoint, choose_train_fraction
from certree.certificates.subsets.coverage import Scores
from certree.certificates.trained_classes import TrainedClasses
from certree.ensembles.adaboost_rounds import select_best_classes
from certree.ensembles.boosting import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    LossName,
    Quality,
)
from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.staged import constant_scores
from certree.grow.training_samples import MonotonicCst
from certree.interface.arrays import (
    ADDED_LATER,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_codes,
    check_column,
    freeze,
)
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import validate_settings
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads_or_all
from certree.rows.duplicates import DUPLICATES, Duplicates, count_worst
from certree.rows.folds import Indices
from certree.rows.near_copies import NearCopies
from certree.rows.split import TrainCalibrationSplitter
from certree.rows.training import Training
from certree.tree import Trees

# Of the learning curve of the pilot; and how steep such curves are, by those of ten public tables.
_PILOT_FOLDS, _EXPONENT = 3, 0.25
# Of the cross-validation that says how far predictions lie off.
_FOLDS = 5
# Less than all rows.
_MOST_TRAIN = 1 - 2.0**-53


@dataclass(frozen=True, eq=False)
class CalibrationScores(ArrayRecord):
    """Calibration samples one by one: their scores and classes, never their features.

    Parameters
    ----------
    given : array-like of int, shape (n,)
        Places of the calibration samples among the rows that were given to the fit.
    n_given : int
        How many those were.
    score : array-like of shape (n_outputs, n)
        What the trees say.
    y : array-like of int, shape (n,)
        Code of the class of each; that after the classes of the fit is of all others.
    weight : array-like of shape (n,), or None
        Of rows in groups 1 / (calibration samples of its group); None: each row counts by itself.
    repeats, distinct, near_copies
        What is assumed of rows that are alike; see `Certificate`.
    is_worst : array-like of bool, shape (n,), or None
        Which of them count as the worst case; None: none.

    Raises
    ------
    ValueError
        If these do not go together.
    """

    given: Int64
    n_given: int
    score: Float64
    y: Int32
    weight: Float64 | None = None
    repeats: int = 0
    distinct: bool = False
    is_worst: NDArray[np.bool_] | None = field(default=None, metadata=ADDED_LATER)
    near_copies: NearCopies | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        columns, n = check_positions(self.given, self.n_given, self.weight)
        columns["score"] = check_column("score", self.score, "float64", (None, n))
        columns["y"] = check_codes("y", self.y, n, np.iinfo(np.int32).max)
        if self.is_worst is not None:
            columns["is_worst"] = check_column("is_worst", self.is_worst, "bool", (n,))
        if not np.isfinite(columns["score"]).all():
            raise ValueError("score must hold finite numbers")
        for name, values in columns.items():
            object.__setattr__(self, name, values)

    def to_stored(self) -> dict[str, Any]:
        """What a file holds of them beside the certificate, which knows of near copies."""
        return {name: of for name, of in super().to_stored().items() if name != "near_copies"}


def _quick(model: Any) -> Any:
    """The same estimator, for quick fits to parts of its rows."""
    quick = copy(model)
    if model.early_stopping is not False:
        # Parts of the rows may be too few to hold some out, and the most rounds would be too many.
        quick.early_stopping, most = False, model.max_iter
        quick.max_iter = most if most == "auto" else min(most, model._fast_rounds())
    quick.quality, quick.verbose = "fast", 0
    return quick


class CertifiedBoostedTreesClassifier(BoostedTreesClassifier):
    """Boosted trees with a certificate on their error on new rows.

    Some of the rows train the trees as in `BoostedTreesClassifier`; the others count their errors. With
    probability ``1 - delta`` over the draw of the rows, the error on new rows is at most the bound,
    whatever their distribution is and however much the trees overfit.

    What predicts has been trained on a part of the rows. Of the same model fitted again to all rows
    nothing is promised: it is usually better, and nobody knows whether it is.

    Parameters
    ----------
    train_size : "auto" or float, default="auto"
        Share of the rows, or groups, that train the trees. "auto": as many as the learning curve of a
        pilot of 35 % of them lets expect the lowest bound from, at most 85 %.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        What rows are that are alike, class included; see `CertifiedTreeClassifier`.
    quality : {"fast", "default", "best"}, default="default"
        See `BoostedTreesClassifier`, as for all parameters below.
    learning_rate : float, default=0.1
        Factor of each tree's steps.
    max_iter : int or "auto", default="auto"
        Number of rounds, of a tree each; "auto" by cross-validation among the training samples.
    max_leaf_nodes : int, "auto" or None, default="auto"
        So many leaves a tree at most.
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    min_samples_leaf : int, default=5
        Training samples in each leaf.
    l2_regularization : float, default=5
        Sum of Hessians by which the step of a cell is drawn to that of its parent.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round looks at; see `BoostedTreesClassifier`.
    max_thresholds : int, "auto" or None, default="auto"
        So many thresholds of a feature are drawn for each tree.
    subsample : float, default=0.7
        Share of the training samples that grow the trees of a round; the others weigh their prunings.
        Neither are calibration samples.
    prunings : {"vote", "none"}, default="vote"
        "none": the whole trees step, for comparison.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories, learned from the training samples.
    monotonic_cst : array-like of int, dict or None, default=None
        Constraints on features.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features that may act together in a tree; see `BoostedTreesClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" by the training samples. A certificate does not read them.
    early_stopping : bool or "auto", default=False
        Whether the fit stops by held-out training samples; calibration samples have no part in it.
    scoring : str, callable or None, default="loss"
        What rounds are judged by.
    validation_fraction : float, int or None, default=0.1
        Share or number of the training samples, or of their groups, that early stopping holds out.
    n_iter_no_change : int, default=10
        So many rounds without a gain are the last ones.
    tol : float, default=1e-7
        What a gain must exceed.
    random_state : int, RandomState or None, default=None
        Decides which rows train, and rows and features of the rounds.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    certificate_ : Certificate
        What is promised about the error on new rows.
    certificates_ : tuple of Certificate
        The same, alone.
    train_size_ : float
        Share of the rows, or groups, that have trained the trees.
    calibration_ : CalibrationScores or None
        Scores and classes of the calibration samples; None if loaded from a file that was saved
        without.
    guarantees_ : Guarantees or None
        All that these rows guarantee, which the methods below ask; None if there are none.
    classes_ : ndarray of shape (K,)
        The classes: those given, or all that y has. One that only calibration samples have has
        probability 0, a score of -1e30, and is never predicted, as calibration samples must not choose
        what may be.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them.
    n_iter_, train_score_, validation_score_, max_leaf_nodes_, thresholds_, trees_, start_, \
feature_importances_, n_features_in_, categories_, feature_names_in_
        See `BoostedTreesClassifier`.

    See Also
    --------
    CertifiedTreeClassifier : A single tree, which all calibration samples weigh; often better of a few
        hundred rows.
    certree.certify : A certificate of any model by rows that its fit has not seen.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005, for the bound;
    see `BoostedTreesClassifier` for the trees.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import CertifiedBoostedTreesClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CertifiedBoostedTreesClassifier(quality="fast", random_state=0).fit(X, y)
    >>> model.certificate_.method
    'hold_out'
    """

    certificate_: Certificate
    certificates_: tuple[Certificate, ...]
    calibration_: CalibrationScores | None
    # Classes that calibration samples alone have; and which ones training samples have, None: all.
    _calibration_classes: NDArray[Any]
    _trained: TrainedClasses | None = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedTreesClassifier._parameter_constraints,
        "train_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "duplicates": [StrOptions(set(DUPLICATES))],
    }
    # Further rounds would be added to trees whose calibration samples have been looked at.
    del _parameter_constraints["warm_start"]
    # What is certified holds whatever the mean is.
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
        learning_rate: float = 0.1,
        max_iter: int | Literal["auto"] = "auto",
        max_leaf_nodes: int | Literal["auto"] | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int = 5,
        l2_regularization: float = 5.0,
        max_features: float | Literal["auto", "sqrt", "log2"] | None = "auto",
        max_thresholds: int | Literal["auto"] | None = "auto",
        subsample: float = 0.7,
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

    @fit_method
    def fit(  # type: ignore[override]  # what certifies must not also choose the rounds
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Train the trees on some of the rows, and certify them by the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the trees; only ratios count. A certificate counts every row of
            positive weight once; a row of weight zero is as if absent.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Whole
            groups train or certify, and the certificate is about new groups.
        classes : array-like of shape (K,), or None
            The classes that may be predicted, known without the rows; None: those of the training
            samples. A calibration sample of another class is an error whatever is predicted.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        shuffled = check_random_state(self.random_state)
        if shuffled is self.random_state:
            shuffled = deepcopy(shuffled)

        def dealt(share: float, is_pilot: bool = False) -> Training:
            # The same order for every share: more training samples are those of fewer, and others.
            return self._prepare_training(
                X,
                y,
                sample_weight,
                groups=groups,
                row_splitter=TrainCalibrationSplitter(share, deepcopy(shuffled), is_pilot=is_pilot),
                classes=classes,
            )

        training = self._stopped(dealt)
        self._fit_rounds(training.train_subset or training)
        self._certify(self._naming_all_classes(training))
        return self

    def _naming_all_classes(self, training: Training) -> Training:
        """List classes that calibration samples alone have, and give rows codes among all classes."""
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

    def _stopped(self, dealt: Callable[..., Training]) -> Training:
        """Reveal rows to the trees until it is time to stop; see `certificates.model_selection`."""
        if not isinstance(self.train_size, str):
            self.train_size_ = float(self.train_size)
            return dealt(self.train_size_)
        pilot = dealt(PILOT, is_pilot=True)
        about = self._learning_curve(pilot), pilot.split.n_units, self.delta, pilot.split.grouped
        self.train_size_ = choose_train_fraction(*about, complexity=0.0, exponent=_EXPONENT)
        if self.train_size_ != PILOT:
            return dealt(self.train_size_)
        return pilot.expect_few_near_copies(self.duplicates)

    def _learning_curve(self, pilot: Training) -> list[CurvePoint]:
        """Errors of quick fits to one and two thirds of the training samples of the pilot."""
        training = pilot.train_subset or pilot
        folds = training.split_folds(_PILOT_FOLDS, np.random.RandomState(0))
        curve = []
        for parts in (
            [(fold.validation, fold.train) for fold in folds],
            [(f.train, f.validation) for f in folds],
        ):
            wrong = [self._errors_of(training, *sides) for sides in parts if len(sides[0])]
            judged = sum(map(len, wrong))
            if judged:
                size = sum(len(trains) for trains, _ in parts) / len(parts) / len(pilot.y)
                curve.append(CurvePoint(size, float(np.concatenate(wrong).mean()), judged))
        return curve

    def _errors_of(self, training: Training, trains: Indices, judges: Indices) -> NDArray[np.bool_]:
        """Which rows a quick fit to others gets wrong."""
        quick = _quick(self)
        quick._fit_rounds(training.take(trains))
        said = self._codes_of(quick._scores_of(training.features.take_matrix(judges)))
        return np.asarray(said != training.y[judges])

    def _codes_of(self, scores: Float64) -> Int32:
        """Codes of the classes that scores predict."""
        if self.n_classes_ == 1:
            return np.zeros(scores.shape[1], dtype=np.int32)
        return select_best_classes(scores).astype(np.int32)

    def _certify(self, training: Training) -> None:
        """Set what the calibration samples say of the trees."""
        sides, weigh, weight = training.split, training.split.calibration, None
        if sides.groups is not None:
            weight = compute_group_weights(sides.groups, sides.train, weigh)[0]
        self.calibration_ = CalibrationScores(
            *sides.calibration_places,
            self._scores_of(training.features.take_matrix(weigh)),
            freeze(training.y[weigh]),
            weight,
            sides.repeats,
            sides.distinct,
            None if sides.is_worst is None else freeze(sides.is_worst),
            sides.near_copies,
        )
        self.certificate_ = self._certificate(self.calibration_)
        self.certificates_ = (self.certificate_,)

    def _certificate(self, rows: CalibrationScores) -> Certificate:
        wrong = self._codes_of(rows.score) != rows.y
        if rows.is_worst is not None:
            wrong |= rows.is_worst
        if rows.weight is None:
            made = hold_out(int(wrong.sum()), len(wrong), self.delta)
        else:
            n, risk = round(rows.weight.sum()), float(rows.weight @ wrong)
            made = hold_out_mean(risk / n, n, self.delta, grouped=True)
        about = {name: getattr(rows, name) for name in ("repeats", "distinct", "near_copies")}
        return replace(made, worst=count_worst(rows.is_worst), **about)

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit: of the rows that certify it scores and classes."""
        rows = self.calibration_
        return {
            **super().__stored__(),
            **serialize_certificates(self.certificates_, self.certificate_),
            "train_size": float(self.train_size_),
            **({} if rows is None else {"calibration": rows}),
            **({} if self._trained is None else {"is_trained": self._trained.is_trained}),
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        self._trained = TrainedClasses.from_stored(stored)
        self.train_size_ = stored.get_number("train_size", 0, _MOST_TRAIN)
        self.certificates_, self.certificate_ = restore_certificates(stored)
        self.calibration_ = None
        if "calibration.n_given" in stored:
            near = self.certificate_.near_copies
            rows = CalibrationScores.from_stored(
                stored.get_section("calibration"), near_copies=near
            )
            outputs, most = len(rows.score), int(rows.y.max(initial=0))
            if outputs != self._n_outputs or most > max(2, self.n_classes_):
                raise ValueError("the calibration samples are of other classes than the trees")
            if self._certificate(rows) != self.certificate_:
                raise ValueError("the calibration samples are not those that the certificate is of")
            self.calibration_ = rows

    @property
    @snapshot_method
    def guarantees_(self) -> Guarantees | None:
        """All that calibration samples guarantee: of parts of the rows, of sets, and of silence."""
        check_is_fitted(self)
        rows = self.calibration_
        if rows is None:
            return None
        return FitGuarantees(
            classifier=self,
            certificate=self.certificate_,
            y=rows.y,
            predicted=self._codes_of(rows.score),
            shares=self._shares(rows.score),
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
        """Say what was fitted and what is certified.

        Returns
        -------
        str
            Some sentences.
        """
        check_is_fitted(self)
        return (
            f"{len(self.trees_):,} trees in {self.n_iter_:,} rounds, trained on "
            f"{100 * self.train_size_:.0f} % of the rows. {self.certificate_}"
        )


class CertifiedBoostedTreesRegressor(CertifiedRegressorMixin, BoostedTreesRegressor):
    """Boosted trees for numbers, with bands that hold new targets and a bound on their mean error.

    Some of the rows train the trees as in `BoostedTreesRegressor`; the others certify them. Given the
    fit, with probability ``1 - delta`` over the draw of the calibration samples and whatever their
    distribution is,

    * a share `coverage` of new rows has its target in the band of `predict_interval`,
    * the mean absolute error on new rows is at most ``certificate_.bound``, in units of the target,
      where no error counts as more than ``certificate_.unit``.

    Each promise holds by itself, and speaks of all new rows, not of every kind of them. Of the same
    model fitted again to all rows nothing is promised.

    Parameters
    ----------
    loss : str or CustomLoss, default="squared_error"
        See `BoostedTreesRegressor`; bands and the certificate are about absolute errors.
    quantile : float or None, default=None
        Of the loss "quantile".
    power : float or None, default=None
        Of the loss "tweedie".
    train_size : float, default=0.5
        Share of the rows, or groups, that train the trees.
    coverage : float, default=0.9
        Share of new rows that bands are to hold.
    delta : float, default=0.05
        Probability with which a promise may fail.
    widths : {"scaled", "one"}, default="scaled"
        "scaled": bands are as wide as absolute errors let expect, which further boosted trees learn
        from a cross-validation of the training samples. "one": as wide everywhere.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        What rows are that are alike, target included; see `CertifiedTreeClassifier`.
    quality : {"fast", "default", "best"}, default="default"
        See `BoostedTreesRegressor`, as for all parameters below.
    learning_rate : float, default=0.1
        Factor of each tree's steps.
    max_iter : int or "auto", default="auto"
        Number of rounds.
    max_leaf_nodes : int, "auto" or None, default="auto"
        So many leaves a tree at most.
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    min_samples_leaf : int, default=1
        Training samples in each leaf.
    l2_regularization : float, default=5
        Rows by which the step of a cell is drawn to that of its parent.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round looks at; see `BoostedTreesClassifier`.
    max_thresholds : int, "auto" or None, default="auto"
        So many thresholds of a feature are drawn for each tree.
    subsample : float, default=0.7
        Share of the training samples that grow the tree of a round; the others weigh its prunings.
        Neither are calibration samples.
    prunings : {"vote", "none"}, default="vote"
        "none": the whole trees step, for comparison.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories, learned from the training samples.
    monotonic_cst : array-like of int, dict or None, default=None
        Constraints on features; bands follow them, their widths do not.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features that may act together in a tree; see `BoostedTreesClassifier`.
    early_stopping : bool or "auto", default=False
        Whether the fit stops by held-out training samples; calibration samples have no part in it.
    scoring : str, callable or None, default="loss"
        What rounds are judged by.
    validation_fraction : float, int or None, default=0.1
        Share or number of the training samples, or of their groups, that early stopping holds out.
    n_iter_no_change : int, default=10
        So many rounds without a gain are the last ones.
    tol : float, default=1e-7
        What a gain must exceed.
    random_state : int, RandomState or None, default=None
        Decides which rows train, the folds, and rows and features of the rounds.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    certificate_ : Certificate
        What is promised of the mean absolute error; its ``unit`` is the largest error that counts, the
        largest of the cross-validation among the training samples.
    certificates_ : tuple of Certificate
        The same, and that of the bands at `coverage` and `delta`, if the rows are enough for it; see
        `certify_interval`.
    conformity_scores_ : Scores
        How far the calibration samples lie off, in units of the scale of their rows.
    scale_trees_ : Trees
        Trees that add up to the scale of a row's errors; none if ``widths="one"``.
    scale_start_ : ndarray of shape (1,)
        What they start from.
    least_scale_ : float
        The least scale of a row, in units of the target.
    n_iter_, train_score_, validation_score_, max_leaf_nodes_, thresholds_, trees_, start_, \
feature_importances_, n_features_in_, categories_, feature_names_in_
        See `BoostedTreesRegressor`.

    See Also
    --------
    CertifiedTreeRegressor : A single tree with such promises, also in each of its regions.
    certree.ensembles.ConformalBandRegressor : Bands around quantiles of any regressor.

    References
    ----------
    See `CertifiedTreeRegressor` for the promises, `BoostedTreesClassifier` for the trees.

    Examples
    --------
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
    # What is certified holds whatever the mean is.
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
        learning_rate: float = 0.1,
        max_iter: int | Literal["auto"] = "auto",
        max_leaf_nodes: int | Literal["auto"] | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        l2_regularization: float = 5.0,
        max_features: float | Literal["auto", "sqrt", "log2"] | None = "auto",
        max_thresholds: int | Literal["auto"] | None = "auto",
        subsample: float = 0.7,
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

    @fit_method
    def fit(  # type: ignore[override]  # what certifies must not also choose the rounds
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train the trees on some of the rows, and certify them by the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Numbers.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the trees; only ratios count. A certificate counts every row of
            positive weight once; a row of weight zero is as if absent.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Whole
            groups train or certify, and the certificate is about new groups. There are no bands then.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        random_state = check_random_state(self.random_state)
        if random_state is self.random_state:
            random_state = deepcopy(random_state)
        training = self._prepare_training(
            X,
            y,
            sample_weight,
            groups=groups,
            row_splitter=TrainCalibrationSplitter(self.train_size, random_state),
        )
        trains = training.train_subset or training
        self._fit_rounds(trains)
        self._certify(training, self._learn_errors(trains, random_state))
        return self

    def _learn_errors(self, training: Training, random_state: np.random.RandomState) -> float:
        """Set what errors are about where; returns the largest error of a cross-validation."""
        n, off = len(training.y), np.zeros(len(training.y))
        for fold in training.split_folds(min(_FOLDS, n), random_state) if n > 1 else ():
            quick = _quick(self)
            quick._fit_rounds(training.take(fold.train))
            said = quick._answers_of(training.features.take_matrix(fold.validation))
            off[fold.validation] = np.abs(training.y[fold.validation] - said)
        limit = find_error_limit(off, training.y)
        mean = float(np.average(off, weights=training.weight)) / limit
        scale = _quick(self)
        scale.loss, scale.quantile, scale.power = "squared_error", None, None
        scale.monotonic_cst = None
        if self.widths == "scaled":
            scale._fit_rounds(replace(training, y=off / limit))
        else:
            scale.start_, scale.trees_ = np.ones(1), Trees.joined([], self.n_features_in_, 1)
        self.scale_start_ = limit * scale.start_
        self.scale_trees_ = scale.trees_.with_value(limit * scale.trees_.value)
        self.least_scale_ = limit * (LEAST_SCALE * mean or 1.0)
        return limit

    def _answers_of(self, rows: NDArray[Any]) -> Float64:
        return np.asarray(self._answers(self._scores_of(rows)))

    def _scale_of(self, rows: NDArray[Any]) -> Float64:
        """What errors of rows are about, in units of the target."""
        n = rows.shape[0]
        start = constant_scores(self.scale_start_, n)
        about = self.scale_trees_.add(start, rows, get_n_threads_or_all(self.n_jobs, n))
        return np.maximum(about[0], self.least_scale_)

    def _certify(self, training: Training, limit: float) -> None:
        """Set what the calibration samples say of the trees."""
        sides, weigh, weight, n = training.split, training.split.calibration, None, None
        if sides.groups is not None:
            weight, n = compute_group_weights(sides.groups, sides.train, weigh)
        rows, y = training.features.take_matrix(weigh), training.y[weigh]
        said = self._answers_of(rows)
        about, drawn = (limit, self.delta, weight, n, sides.is_worst), get_sampling_facts(sides)
        self.certificate_ = certify_absolute_error(said, y, *about, **drawn)
        with np.errstate(over="ignore"):
            off = np.abs(y - said) / self._scale_of(rows)
        if sides.is_worst is not None:
            off[sides.is_worst] = np.inf
        self.conformity_scores_ = Scores.from_rows(
            off, np.zeros(len(off), dtype=np.int32), np.ones(1)
        )
        bands = () if n is not None else self._certify_intervals(self.coverage, self.delta)
        self.certificates_ = (self.certificate_, *filter(None, bands))

    def _predict_with_half_width(self, X: ArrayLike, reach: Float64) -> tuple[Float64, Float64]:
        rows = self._encode_new_rows_or_csr(X)
        with np.errstate(over="ignore"):
            return self._answers_of(rows), reach[0] * self._scale_of(rows)

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit: of the rows that certify it, how far they lie off."""
        return {
            **super().__stored__(),
            **serialize_certificates(self.certificates_, self.certificate_),
            "scores": self.conformity_scores_,
            "scale": self.scale_trees_,
            "scale.value": self.scale_trees_.value,
            "scale_start": self.scale_start_,
            "least_scale": float(self.least_scale_),
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        self.conformity_scores_ = Scores.from_stored(stored.get_section("scores"))
        if len(self.conformity_scores_.mass) != 1:
            raise ValueError("scores must be those of one region")
        value = stored.get_numbers("scale.value", (None, 1))
        self.scale_trees_ = self._restore_trees(Trees, stored.get_section("scale"), value=value)
        self.scale_start_ = stored.get_numbers("scale_start", (1,))
        self.least_scale_ = stored.get_number("least_scale", 0, np.finfo(np.float64).max)
        self.certificates_, self.certificate_ = restore_certificates(stored)
