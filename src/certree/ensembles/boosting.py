"""Boosted trees whose prunings vote, with the interface of scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args
from warnings import catch_warnings, filterwarnings, warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from certree.ensembles.custom_loss import CustomLoss, CustomLossAdapter
from certree.ensembles.evaluation import PARAMETERS as EVALUATION
from certree.ensembles.evaluation import (
    Callback,
    Evaluation,
    Score,
    StopReason,
    average_scores,
    check_callbacks,
    get_scorer,
    make_loss_scores,
    make_scorer_scores,
    stops_early,
)
from certree.ensembles.label_columns import LabelColumns
from certree.ensembles.linear_start import grow_linear_start
from certree.ensembles.losses import (
    GammaLoss,
    HuberLoss,
    LogLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
)
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.offsets import convert_offset
from certree.ensembles.out_of_core_boosting import (
    RoundOptions,
    expect_out_of_core_parameters,
    fit_boosting_out_of_core,
)
from certree.ensembles.round_schedule import (
    CLASS_SCHEDULE,
    NUMBER_SCHEDULE,
    RoundPlan,
    RoundSchedule,
    count_stopped_rounds,
    get_rate_factor,
)
from certree.ensembles.round_selection import choose_rounds, choose_step_factor
from certree.ensembles.rounds import BoostingRun, Settings, add_gain_importances, advance, start_run
from certree.ensembles.staged import (
    StagedClassifier,
    StagedTrees,
    make_constant_scores,
    select_top_class,
    to_prediction_shape,
)
from certree.ensembles.standard_errors import StandardErrors, ThirdFits
from certree.ensembles.time_limit import RoundTimer, TimeLimit
from certree.explain.tree_model import declare_trees
from certree.export.formula import Formula, Link
from certree.grow.binned_grower import BinnedGrower, resolve_interaction_groups
from certree.grow.bins import Bins
from certree.grow.training_samples import resolve_max_features
from certree.interface.arrays import Float64, Int32, Int64, to_array, to_row_order
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import (
    available_if,
    check_parameters_of_fit,
    fit_method,
    get_snapshot,
    snapshot_method,
)
from certree.interface.parameter_aliases import suggests_arguments
from certree.interface.progress import show_progress
from certree.interface.signatures import COUNT, NONNEGATIVE, POSITIVE, ROUNDS, validate_arguments
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import N_JOBS, get_n_threads_or_all
from certree.out_of_core.executors import InMemory
from certree.out_of_core.lazy_predictions import support_dask_collections
from certree.out_of_core.open_rows import open_rows
from certree.out_of_core.time_split import TimeArguments
from certree.out_of_core.validation_set import ExecutorWithValidation
from certree.rows.calendar_parts import add_parts_to_groups
from certree.rows.folds import Fold
from certree.rows.monotonic import MonotonicCst, MonotonicSigns, check_monotonic_cst
from certree.rows.out_of_core import is_out_of_core
from certree.rows.sparse_rows import (
    DenseOrSparseFeatures,
    is_mostly_zero,
    stack_tables,
    to_dense,
)
from certree.rows.training import Training, expect_value_per_row, training_rows
from certree.tree import Trees

# Folds of the cross-validation that chooses the number of rounds; `RoundPlan.n_folds` are used.
_N_FOLDS = 4

# Squared-error regressions of at most so many rows start from a ridge regression, whose trees have so
# many leaves. With more rows some tables lose as much as others gain.
_MAX_LINEAR_ROWS, _N_LINEAR_STEPS = 1000, 64
# The ridge regression needs dense columns: tables of more values start from the mean.
_MAX_LINEAR_VALUES = 2**24

# Seconds between two updates of a progress bar.
_SECONDS_PER_UPDATE = 0.05

# The largest standard deviation of a probability.
_MAX_DEVIATION = 0.5

_FRACTION = Interval(Real, 0, 1, closed="right")

Quality = Literal["fast", "default", "best"]
LossName = Literal[
    "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"
]


def has_standard_errors(model: BoostedTrees) -> bool:
    """Return whether a model has `predict_std`: whether its parameter `standard_errors` is True.

    model: a model; if it is fitted, the value that the parameter had in the fit decides.
    """
    return get_snapshot(model).standard_errors


def _average_members(members: list[Trees]) -> Trees:
    """Combine the trees of several fits with different seeds to one ensemble with their mean score.

    members: trees of each fit, with equally many rounds. Return the first tree of each fit, then
    the second of each fit, and so on, with leaf values divided by the number of fits.
    """
    if len(members) == 1:
        return members[0]
    rounds = zip(*members, strict=True)
    parts = [tree.with_value(tree.value / len(members)) for trees in rounds for tree in trees]
    return Trees.joined(parts, members[0].n_features, members[0].value.shape[1])


def _read_loss_factors(stored: StoredState, name: str, model: BoostedTrees) -> tuple[float, ...]:
    """Read the factor of the loss of each output from a model file.

    A model of several numeric targets minimizes the sum of their losses times these factors.
    stored: content of the file; name: name of the array in it; model: the model that is restored.
    Return one factor >= 0 for each output. Raise `DamagedModelError` if the model has one output,
    as its loss has no factor.
    """
    if model._n_outputs == 1:
        raise DamagedModelError(f"the model file must not have {name}, as its model has one output")
    return tuple(stored.get_numbers(name, (model._n_outputs,), 0).tolist())


class BoostedTrees(StagedTrees):
    """Base class of boosted trees: fit, predictions and inspection for any kind of target.

    A subclass defines the loss (`_make_loss`), the conversion of targets (`_encode_targets`,
    `_decode_targets`) and of scores to predictions (`_predict_from_scores`, and its name for
    exports, `_link`), and sets the class attribute `_SCHEDULE`, a `RoundSchedule`: the values of
    parameters that are "auto". The subclass also has the constructor: this class has none.

    Attributes
    ----------
    trees_ : Trees
        All trees: first those that approximate a ridge regression (linear start), if there are some,
        see `BoostedTreesRegressor`; then those of the rounds.
    start_ : ndarray of shape (n_outputs,)
        Scores before the first tree: the scores of a row are this constant plus the values of its
        leaves in all trees.
    n_iter_ : int
        Number of rounds.
    learning_rate_ : float
        Factor of the step of each tree.
    stopped_by_ : {"max_iter", "early_stopping", "callbacks", "max_time"}
        What ended the rounds.
    thresholds_ : tuple of (int or None)
        Number of random thresholds per feature that the tree of a round may split at; an entry None
        stands for all thresholds. Entries are used in turn, each for one round, or for two if rounds
        alternate between 30 % and all features.
    max_leaf_nodes_ : int or None
        Largest number of leaves of a tree; None: no limit.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quality": [StrOptions({"fast", "default", "best"})],
        "learning_rate": [POSITIVE, StrOptions({"auto"})],
        "max_iter": [ROUNDS, StrOptions({"auto"})],
        "max_time": [POSITIVE, None],
        "max_leaf_nodes": [
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "max_depth": [COUNT, None],
        "min_samples_leaf": [COUNT],
        "l2_regularization": [NONNEGATIVE],
        "max_features": [COUNT, _FRACTION, StrOptions({"auto", "sqrt", "log2"}), None],
        "max_thresholds": [COUNT, StrOptions({"auto"}), None],
        "subsample": [_FRACTION],
        "prunings": [StrOptions({"vote", "none"})],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
        "standard_errors": ["boolean"],
        "warm_start": ["boolean"],
        **EVALUATION,
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    trees_: Trees
    start_: Float64
    n_iter_: int
    learning_rate_: float
    stopped_by_: StopReason
    thresholds_: tuple[int | None, ...]
    max_leaf_nodes_: int | None
    _seed: int
    _n_first_trees: int
    # Factor of the loss of each of several numbers or quantiles; empty for one.
    _loss_factors: tuple[float, ...] = ()
    # Whether the fit had offsets.
    _has_offset: bool = False
    # Whether `fit` accepts offsets.
    _takes_offset: ClassVar[bool] = True
    # Whether the fit prepares `predict_std`, and what that reads.
    standard_errors: bool = False
    _errors: Any = None
    # Seconds for the rounds of a fit; None: no limit, as in subclasses without this parameter.
    max_time: float | None = None

    _takes_columns: ClassVar[bool] = True
    _takes_infinities: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True
    # Numbers of rounds and leaves if parameters are "auto".
    _SCHEDULE: ClassVar[RoundSchedule]

    @abstractmethod
    def _make_loss(self) -> Loss:
        """Return the loss that this model minimizes, by its parameters and the targets of the fit.

        Call it once `fit` has encoded the targets: the number of classes, or of target columns,
        decides how many scores (outputs) the loss has for a row. Raise ValueError if parameters of
        the loss contradict each other.
        """

    @abstractmethod
    def _encode_targets(self, y: Any) -> NDArray[Any]:
        """Check targets of new rows and convert them to the form that the loss reads.

        y: classes or numbers as the user gives them, (n,), or (n, n_targets) for several targets.
        Return class codes or float64 numbers, (n,), or transposed, (n_targets, n). Raise ValueError
        for classes that the fit has not seen, or another number of columns than in the fit.
        """

    @abstractmethod
    def _decode_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """Convert the targets of a fit back to those of the user.

        y: class codes or numbers, (n,) or (n, n_targets). Return classes or numbers of the same shape.
        """

    def _get_automatic_feature_fractions(self) -> tuple[float, ...]:
        """Return the fractions of features that rounds may split on if `max_features` is "auto".

        A round adds one tree. Round i uses the entry at i modulo the length. Here (1.0,): all
        rounds use all features.
        """
        return (1.0,)

    def _convert_errors(self, scores: Float64, errors: Float64) -> Float64:  # noqa: ARG002
        """Convert standard errors of scores to standard errors of predictions; here they are equal.

        A score is the sum of trees, before the link function. scores, errors: scores of rows and
        their standard errors, (n_outputs, n) each. Return (n,) for one output, else (n, n_outputs).
        """
        return to_prediction_shape(errors)

    # -- fit ---------------------------------------------------------------------------------------

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time: Any = None,
        gap: Any = 0,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        offset_val: ArrayLike | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Fit the trees round by round; each round lowers the loss of the sum of all trees so far.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), path, list, Arrow data set or Dask collection
            Training rows; NaN stands for a missing value. Values that a sparse matrix does not
            store are 0; the fit equals that of the dense table. Rows in files (Parquet, Arrow, CSV,
            or folders of them) and on Dask clusters are read block by block and never held in
            memory together; the model is the same as for the rows in memory. Such fits do not
            support callables as `scoring`.
        y : array-like of shape (n,), or (n, n_outputs), str, list of str, or Dask collection
            Class or number of each row; several targets have one column each. For rows in files,
            the name of the target column, or a list of names.
        sample_weight : array-like of shape (n,), str, Dask collection, or None
            Weight of each row in the loss, relative to the mean weight. For rows in files, the name
            of the column. Whatever its weight, a row is in-bag or out-of-bag as a whole,
            and counts once in `min_samples_leaf`. A row of weight zero is ignored.
        groups : array-like of shape (n,), str, Dask collection, or None
            Group of each row, such as a patient, if rows of one group depend on each other. All
            rows of a group are in-bag or out-of-bag together, and belong to the same fold or
            validation set. For rows in files, the name of the column.
        time : array-like of shape (n,), str or None
            Time of each row, numbers or dates with or without a time zone, or the name of such a
            column of X, which stays a feature. The latest fifth of the rows (or groups)
            then chooses the number of rounds, instead of random folds, at any number of rows; with
            `early_stopping` the latest rows are the validation set. Rows of one time stay together.
            The last fit has all rows. For files the name of a column; for Dask collections it may
            be a collection, too. None: rows have no times.
        gap : int or timedelta
            Rows to leave out between the rows that train and those that validate: their number, as
            in scikit-learn's `TimeSeriesSplit`, or the time they span. Only used with `time`.
        X_val, y_val : array-like of shape (n_val, p) and (n_val,), or None
            Validation set, which is scored after each round and grows no tree. With
            `early_stopping` it decides the number of rounds. If X is out-of-core or distributed,
            the validation set may be given in the same ways.
        sample_weight_val : array-like of shape (n_val,), str, Dask collection, or None
            Weight of each validation row in the scores.
        offset, offset_val : array-like of shape (n,) and (n_val,), str, list of str, or None
            Known score of each row, to which the trees add: in units of the target; a logarithm for
            "poisson", "gamma" and "tweedie", such as that of the exposure of counts; the log odds
            of the second of two classes. Shape (n, K) for K > 2 classes, (n, n_outputs) for several
            numbers; not supported for several columns of classes. For rows in files, the name of the
            column, or a list of names for several outputs; or a Dask collection. Give both for
            training and validation rows, or neither. `predict` takes the offsets of new rows.
        callbacks : list of callables, or None
            Functions that are called after each round with an `Iteration`: `n_iter`, the number of
            rounds so far, and `train_score` and `validation_score`, the scores so far. The fit
            stops if one returns True, and continues after False or None; any other result raises
            TypeError. If a callback raises an exception, `fit` raises it and the estimator stays as
            before the fit.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            With ``warm_start=True``, if a parameter of the previous rounds has changed, if only one
            of both fits has an offset, or if out-of-core or distributed rows have other features,
            categories, classes or bins than those of the previous fit; if there are too few rows
            for a validation set; if offsets are given for a single class; for out-of-core or
            distributed rows, if a parameter needs rows in memory, a column is missing, files have
            no common types or change while they are read, or the partitions of X and y differ.
        OSError
            If a file is not found, or there is no space for temporary files.
        """
        limit = TimeLimit.start(self.max_time)
        callbacks, before = check_callbacks(callbacks), self._get_previous_trees()
        if is_out_of_core(X):
            order = TimeArguments.read(X, time, gap)
            rows = X, y, sample_weight, groups, offset
            validation = X_val, y_val, sample_weight_val, offset_val
            options = RoundOptions(before, callbacks, limit, order)
            return self._fit_out_of_core(rows, validation, options)
        training = self._prepare_training(
            X,
            y,
            sample_weight,
            groups=groups,
            time=time,
            gap=gap,
            reuse_encoding=before is not None,
        )
        self._check_offsets_together(offset, offset_val, X_val, before is not None)
        training = self._attach_offset("offset", offset, training)
        validated = self._make_validation_set(X_val, y_val, sample_weight_val, offset_val)
        return self._fit_in_memory(training, before, *validated, callbacks, limit)

    def _fit_in_memory(
        self,
        training: Training,
        before: Trees | None,
        validation: Training | None,
        attributes: dict[str, Any],
        callbacks: Sequence[Callback],
        limit: TimeLimit,
    ) -> Self:
        """Fit to rows in memory, set the fitted attributes, and return self.

        `_prepare_training` has been called before: it has set the attributes of the features, classes
        and hashes of the training rows.

        Parameters
        ----------
        training : Training
            Training rows: encoded features, targets, weights, offsets and groups.
        before : Trees or None
            Trees of the previous fit, to which rounds are added; None for a new fit.
        validation : Training or None
            Validation set of the user; None: there is none.
        attributes : dict
            Values of the fitted attributes `sample_hashes_` and `_sample_counts`, by name, for the
            training and validation rows together. They replace those of the training rows if the
            validation set can influence the number of rounds: with early stopping or callbacks.
        callbacks : sequence of callables
            Called after each round with an `Iteration`.
        limit : TimeLimit
            When the fit must end.
        """
        evaluation = self._fit_rounds(training, before, validation, callbacks, limit)
        if evaluation.may_drop_rounds:
            self.__dict__.update(attributes)
        return self

    def _fit_out_of_core(
        self,
        rows: tuple[Any, Any, Any, Any, Any],
        validation: tuple[Any, Any, Any, Any],
        options: RoundOptions,
    ) -> Self:
        """Fit to rows in files or on a cluster, and return self.

        Tables with so few rows that the fit needs cross-validation (below 30,000), or a ridge
        regression as start, are loaded and fitted in memory.

        Parameters
        ----------
        rows : tuple of (X, y, sample_weight, groups, offset)
            Training rows as in `fit`; weights, groups and offsets may be None.
        validation : tuple of (X_val, y_val, sample_weight_val, offset_val)
            Validation set as in `fit`; each may be None.
        options : RoundOptions
            Trees of the previous fit, callbacks, time limit, and the column of times.
        """
        before, callbacks, order = options.before, options.callbacks, options.order
        X_val, y_val, weight_val, offset_val = validation
        self._check_offsets_together(rows[-1], offset_val, X_val, before is not None)
        has_validation = any(argument is not None for argument in (X_val, y_val, weight_val))
        expect_out_of_core_parameters(self, is_scored=has_validation or bool(callbacks))
        is_distributed = is_out_of_core(X_val)
        if is_distributed and y_val is None:
            raise ValueError(
                "X_val and y_val must be given together, but y_val is None: pass the targets of X_val"
            )
        make_validation = partial(self._make_validation_set, *validation)
        how = {"validation": validation if is_distributed else None, "is_shown": self.verbose > 0}
        how["time"] = None if order is None else order.collection
        X, y, weight, groups, offset = rows
        n_threads = get_n_threads_or_all(self.n_jobs)
        with open_rows(X, y, weight, n_threads, groups=groups, offset=offset, **how) as executor:
            try:
                in_memory = make_validation if has_validation and not is_distributed else None
                fit_boosting_out_of_core(self, executor, in_memory, options)
                return self
            except InMemory:
                loaded = executor.load_rows()
                if isinstance(executor, ExecutorWithValidation):
                    held = executor.get_validation_executor().load_rows()
                    validation = held.X, held.y, held.weight, held.offset
                    make_validation = partial(self._make_validation_set, *validation)
        time, gap = (None, 0) if order is None else (order.column or loaded.raw_time, order.gap)
        how = {"groups": loaded.groups, "time": time, "gap": gap}
        how["reuse_encoding"] = before is not None
        training = self._prepare_training(loaded.X, loaded.y, loaded.weight, **how)
        training = self._attach_offset("offset", loaded.offset, training)
        self._has_offset = offset is not None
        return self._fit_in_memory(training, before, *make_validation(), callbacks, options.limit)

    def _get_previous_trees(self) -> Trees | None:
        """Return the trees of the previous fit, to which this fit adds rounds; None if it starts anew.

        There are none unless `warm_start` is True and the model is fitted. Raise ValueError if a
        parameter has changed that the previous rounds depend on, or if quality is "best".
        """
        before = getattr(self, "trees_", None) if self.warm_start else None
        if self.warm_start and self.quality == "best":
            raise ValueError(
                'quality must be "fast" or "default" with warm_start=True, got "best": set one of '
                "them, or warm_start=False"
            )
        if before is not None:
            check_parameters_of_fit(
                self, "max_iter", "max_time", "warm_start", "scoring", "n_iter_no_change", "tol"
            )
        return before

    def _expect_no_fewer_rounds(self, n_rounds: int) -> None:
        """Raise ValueError if a warm start is to make fewer rounds, n_rounds, than the previous fit."""
        if n_rounds < self.n_iter_:
            raise ValueError(
                f"max_iter must be at least n_iter_={self.n_iter_} with warm_start=True, got "
                f"{n_rounds}: raise it, or set warm_start=False"
            )

    def _check_offsets_together(
        self, offset: Any, offset_val: Any, X_val: Any, continues: bool
    ) -> None:
        """Raise ValueError unless offsets are given for all rows or for none.

        An offset is a known score of a row, to which the trees add. Set `_has_offset`: whether this
        fit has offsets.

        Parameters
        ----------
        offset, offset_val : array-like or None
            Offsets of training and validation rows.
        X_val : array-like or None
            Validation rows.
        continues : bool
            Whether rounds are added to a previous fit; then this fit must have an offset if the
            previous one had one, and none otherwise.
        """
        if (offset is None) != (offset_val is None) and (
            X_val is not None or offset_val is not None
        ):
            missing = "offset" if offset is None else "offset_val"
            raise ValueError(
                f"offset and offset_val must be given together, but {missing} is None: pass zeros for "
                "rows without an offset"
            )
        if continues and self._has_offset != (offset is not None):
            expected = "given" if self._has_offset else "None"
            previous = "an" if self._has_offset else "no"
            raise ValueError(
                f"offset must be {expected} with warm_start=True, as the previous fit had {previous} "
                "offset: set warm_start=False to fit anew"
            )
        self._has_offset = offset is not None

    def _attach_offset(self, name: str, offset: Any, rows: Training) -> Training:
        """Return rows with their offsets, in ascending order of these; `rows` if `offset` is None.

        name: parameter's name for errors; offset: as the user gave it to `fit`, with an entry also
        for rows that were dropped (those of weight zero), or None; rows: encoded training or
        validation rows, which are not changed. Sorting makes the fit independent of the order of
        rows that are equal except for their offsets.
        """
        if offset is None:
            return rows
        n = len(rows.y) if rows.split.n_given is None else rows.split.n_given
        offsets, indices = self._convert_offset(name, offset, n), rows.split.indices
        offsets = offsets if indices is None else offsets[:, indices]
        return replace(rows, offset=offsets).take(np.lexsort(offsets))

    def _convert_offset(self, name: str, offset: Any, n: int) -> Float64:
        """Check the offsets of n rows and convert them to an array (n_outputs, n).

        name: parameter's name for errors; offset: as the user gave it, (n,) or (n, n_outputs).
        Raise ValueError if this model supports no offsets, has one class or several columns of
        classes, if the shape is wrong, or if a number is not finite or out of range: -300 .. 300
        for logarithms and log odds, else -1e100 .. 1e100.
        """
        if not self._takes_offset:
            raise ValueError(
                f"{name} must be None for {type(self).__name__}, as certificates do not cover offsets: "
                "leave it out, or use a model without certificate"
            )
        if is_classifier(self):
            self._expect_one_target(name)
        if is_classifier(self) and len(self.classes_) == 1:
            raise ValueError(
                f"{name} must be None if y has one class only, as there is no score to add it to: "
                "leave it out"
            )
        loss = self._make_loss()
        is_log = loss.is_log or is_classifier(self)
        return convert_offset(name, offset, n, loss.n_outputs, is_log=is_log)

    def _make_validation_set(
        self, X_val: Any, y_val: Any, sample_weight_val: Any, offset_val: Any
    ) -> tuple[Training | None, dict[str, Any]]:
        """Check the validation rows that the user gave, and encode them as the training rows were.

        Call after the training rows were encoded, as their classes and categories are needed.

        Parameters
        ----------
        X_val, y_val, sample_weight_val, offset_val : object
            Rows, targets, weights and offsets of the validation set, as the user has passed them to
            `fit`; None: not passed.

        Returns
        -------
        validation : Training or None
            The validation set; None if `X_val` is None.
        attributes : dict
            Attributes by name, with the hashes of training and validation rows together
            (`sample_hashes_`), by which `certify` recognises rows of the fit, and how often each
            hash occurs (`_sample_counts`). Empty for regressors, and if `X_val` is None. They are
            not set here.
        """
        is_given = X_val is not None, y_val is not None
        if is_given[0] != is_given[1]:
            missing = "y_val" if is_given[0] else "X_val"
            raise ValueError(
                f"X_val and y_val must be given together, but {missing} is None: pass both or neither"
            )
        if sample_weight_val is not None and X_val is None:
            raise ValueError(
                "sample_weight_val requires X_val and y_val, but X_val is None: pass them, or leave "
                "sample_weight_val out"
            )
        if X_val is None:
            return None, {}
        self._encode_targets(y_val)
        rows, learned = self._encode_validation_rows(X_val, y_val, sample_weight_val)
        self._make_loss().check_targets(rows.y.T)
        rows = self._attach_offset("offset_val", offset_val, rows)
        names = ("sample_hashes_", "_sample_counts")
        return rows, {name: learned[name] for name in names if name in learned}

    def _encode_validation_rows(
        self, X_val: Any, y_val: Any, sample_weight_val: Any
    ) -> tuple[Training, dict[str, Any]]:
        """Check and encode validation rows as the training rows were.

        The parameters are those of `fit`; call it after the training rows were encoded. Return the
        encoded rows, and a dictionary of fitted attributes by name, which are not set: for
        classifiers it has `sample_hashes_` and `_sample_counts`, the hashes of training and
        validation rows and how often each occurs. A Pipeline transforms X but not X_val, so an
        error, or the warning that only X_val has names, states what to pass there.
        """
        for argument, values in (("y_val", y_val), ("sample_weight_val", sample_weight_val)):
            expect_value_per_row(argument, values, X_val, "X_val")
        name = type(self).__name__.lower()
        hint = (
            f"in a Pipeline, pass rows that its other steps have transformed as {name}__X_val, or use "
            "transform_input=['X_val'] with metadata routing"
        )
        with catch_warnings():
            filterwarnings("ignore", "X has feature names, but", UserWarning)
            try:
                rows = training_rows(self, X_val, y_val, sample_weight_val, reuse_encoding=True)
            except ValueError as error:
                raise ValueError(
                    f"X_val must hold rows like those of X: {str(error).strip()}; {hint}"
                ) from error
        if not hasattr(self, "feature_names_in_") and _get_feature_names(X_val) is not None:
            warn(f"X_val has names of features, but X had none: {hint}", stacklevel=5)
        return rows

    def _fit_rounds(
        self,
        rows: Training,
        before: Trees | None = None,
        validation: Training | None = None,
        callbacks: Sequence[Callback] = (),
        limit: TimeLimit = TimeLimit(),  # noqa: B008 -- immutable
    ) -> Evaluation:
        """Fit all rounds and set the fitted attributes.

        Parameters
        ----------
        rows : Training
            Training rows; early stopping may hold some out as validation set.
        before : Trees or None
            Trees of the previous fit, to which rounds are added; None for a new fit.
        validation : Training or None
            Validation set of the user.
        callbacks : sequence of callables
            Called after each round with an `Iteration`.
        limit : TimeLimit
            When the fit must end. With `standard_errors`, half of the time is left for three more
            fits, each to a third of the training rows, that standard errors need.

        Returns
        -------
        Evaluation
            Scores of the training rows and of the validation set before the first and after each
            round, if rounds were scored, and what ended the fit.
        """
        limit = limit.take_fraction(0.5) if self.standard_errors else limit
        continues = before is not None
        if not continues:
            self._loss_factors, self._errors = (), None
        loss = self._make_loss()
        training, validation, stops = self._split_validation_set(rows, validation, continues)
        if not continues:
            self._set_learning_rate(stops)
            self._set_automatic_parameters(len(training.y))
        run, start = self._start_run(training, loss)
        self._loss_factors = getattr(run.settings.loss, "factors", ())
        n_rounds, first = self._choose_n_rounds(training, run, stops, limit), 0
        if before is not None:
            self._expect_no_fewer_rounds(n_rounds)
        # Trees do not hold the category statistics of rows, so rounds on these are repeated.
        if before is not None and run.high_cardinality is None:
            first, start = self.n_iter_, self.start_
        else:
            before, n_in_nodes = self._make_initial_trees(run)
            self._n_first_trees = len(before)
            gains = add_gain_importances(before, n_in_nodes, np.zeros(self._n_encoded))
            self._importances = np.square(self._get_initial_factors()).sum() * gains
        thirds = self._make_third_fits(training, run)
        tables = [training.features]
        if validation is not None:
            run = run.with_validation_set(validation, start)
            tables.append(validation.features)
        members = self._make_members(run.with_statistics(), tables, start, before)
        evaluation = self._make_evaluation(run, training, validation, stops, callbacks)
        evaluation.record_previous_scores(
            self._iterate_previous_scores(members, tables, run.offset, first)
        )
        del rows, training, validation, run, tables  # Free the memory of what has been binned.
        last = self._run_rounds(members, first, n_rounds, evaluation, limit)
        self.start_, self.n_iter_ = start, evaluation.count_kept_rounds(first, last)
        self.stopped_by_ = evaluation.stop_reason
        self._append_new_trees(before, members, self.n_iter_ - first)
        if thirds is not None:
            self._set_standard_errors(thirds, members, first)
        self._record(evaluation.get_recorded_scores())
        return evaluation

    def _record(self, scores: Mapping[str, Any]) -> None:
        """Set `train_score_` and `validation_score_` from a dict by these names; delete older ones.

        scores: arrays (n_rounds + 1,); a name that is missing leaves the model without this attribute.
        """
        for name in ("train_score_", "validation_score_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(scores)

    def _split_validation_set(
        self, rows: Training, validation: Training | None, continues: bool
    ) -> tuple[Training, Training | None, bool]:
        """Hold out a validation set if early stopping is on and the user gave none.

        Dense features that are mostly 0 become sparse ones, with which rounds take less time.

        Parameters
        ----------
        rows : Training
            All training rows.
        validation : Training or None
            Validation set of the user.
        continues : bool
            Whether rounds are added to a previous fit, whose seed `_seed` is used; otherwise `_seed`
            is drawn from `random_state`.

        Returns
        -------
        training : Training
            Rows that grow trees.
        validation : Training or None
            Validation set: the user's, or rows that were held out; None if there is neither, as
            with ``validation_fraction=None``.
        stops : bool
            Whether the fit may stop early.
        """
        training, loss = rows, self._make_loss()
        loss.check_targets(training.y.T)
        if not continues:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        stops = stops_early(self.early_stopping, len(training.y))
        if stops and validation is None and self.validation_fraction is not None:
            random_state = np.random.RandomState(self._seed)
            training, validation = training.hold_out_rows(self.validation_fraction, random_state)
            loss.check_targets(training.y.T)
        if self.categories_ is None and is_mostly_zero(training.features):
            training = training.to_sparse()
            validation = None if validation is None else validation.to_sparse()
        return training, validation, stops

    def _append_new_trees(self, before: Trees, members: list[BoostingRun], n_rounds: int) -> None:
        """Set `trees_` to the previous trees followed by the new ones, and update `_importances`.

        `_importances`, (p,), are unnormalised gain importances, to which those of the new trees are
        added. before: trees that precede the new rounds; members: the runs (sequences of rounds
        with different seeds) whose scores are averaged, after their last round; n_rounds: number of
        new rounds that are kept.
        """
        grown = [run.trees().keep_first(n_rounds) for run in members]
        for run, trees in zip(members, grown, strict=True):
            rows = run.get_in_bag_counts()[: trees.n_nodes]
            order = run.settings.loss.output_order
            self._importances = add_gain_importances(trees, rows, self._importances, order)
        self._set_trees(grown, before)

    def _set_trees(self, grown: list[Trees], *before: Trees) -> None:
        """Set `trees_` to the trees of `before`, in order, followed by the averaged new trees.

        grown: new trees of each run; runs differ in their seeds and have equally many rounds.
        """
        ensembles = [*before, _average_members(grown)]
        self.trees_ = Trees.joined(ensembles, self._n_encoded, len(self.start_))

    def _make_third_fits(self, training: Training, run: BoostingRun) -> ThirdFits | None:
        """Prepare the three fits to one third of the training rows each that standard errors need.

        A run is a sequence of boosting rounds: its rows, scores and trees so far. training:
        training rows; run: the run on them before its first round. Return the fits before their
        first round, or None if `standard_errors` is False. They grow no tree here, and share the
        bins of `run`.
        """
        if not self.standard_errors:
            return None
        # Thirds are random also if rows have times.
        unordered = replace(training, split=replace(training.split, times=None))
        folds = unordered.split_folds(3, np.random.RandomState(self._seed))
        fits = partial(self._make_fold_members, run, training.features)
        # Blocks of out-of-core data have weights in units of their mean, too.
        return ThirdFits.start(replace(training, weight=run.weight), folds, fits)

    def _make_fold_members(
        self, run: BoostingRun, features: DenseOrSparseFeatures, fold: Fold
    ) -> list[BoostingRun]:
        """Prepare the runs on the training rows of one fold, before their first round.

        A run is a sequence of boosting rounds with its own seed; the scores of several runs are
        averaged. Start scores, the ridge regression of the linear start, and statistics of
        categories are computed anew from these rows; bins and `thresholds_` are those of `run`.
        Return one run, or with quality "best" several.

        Parameters
        ----------
        run : BoostingRun
            A run on all training rows before its first round.
        features : DenseFeatures or SparseFeatures
            Features of all training rows.
        fold : Fold
            Indices of the rows that train (`train`), and of the rows that get scores only
            (`validation`).
        """
        fold_run = run.make_fold_run(fold).with_statistics()
        rows = features.take(np.concatenate([fold.train, fold.validation]))
        offset = 0.0 if fold_run.offset is None else fold_run.offset[:, 0]
        before = Trees.joined([], self._n_encoded, len(fold_run.scores))
        if self._n_first_trees > 0:
            before, _ = self._make_initial_trees(run.make_fold_run(fold.without_validation()))
        return self._make_members(fold_run, [rows], fold_run.scores[:, 0] - offset, before)

    def _set_standard_errors(
        self, thirds: ThirdFits, members: list[BoostingRun], first: int
    ) -> None:
        """Set `_errors`, a `StandardErrors`, from which `predict_std` computes standard errors.

        thirds: fits to thirds of the rows, of which all rounds are made here; members: the runs of
        the model (one for each seed), after their last round; first: index of the first new round,
        above 0 if rounds were added to a previous fit. Call it once `trees_` and `n_iter_` are set.
        """
        deviation = self._join_deviations(members, first)
        scores, deviations = self._compute_scores_and_deviations(
            deviation, thirds.rows.features.score_in_blocks
        )
        if thirds.rows.offset is not None:
            scores = scores + thirds.rows.offset
        self._errors = thirds.compute_standard_errors(deviation, deviations, scores, self.n_iter_)

    def _join_deviations(self, members: list[BoostingRun], first: int) -> Float64:
        """Return the standard deviation of the value of each node of `trees_`, (n_nodes, n_outputs).

        The deviation is over the prunings of the node's tree (its subtrees with the same root), by
        their weights. members: the runs of the model, after their last round; first: index of the
        first new round; above 0, the deviations of earlier nodes are taken from `_errors`, which
        the previous fit has set. Call it once `trees_` and `n_iter_` are set.
        """
        grown = [run.trees().with_value(run.get_node_deviations()) for run in members]
        kept = [trees.keep_first(self.n_iter_ - first) for trees in grown]
        new = _average_members(kept).value
        zeros = np.zeros((self.trees_.n_nodes - len(new), len(self.start_)))
        return np.concatenate([self._errors.deviation if first > 0 else zeros, new])

    def _compute_scores_and_deviations(
        self, deviation: Float64, by_blocks: Callable[..., Float64]
    ) -> tuple[Float64, Float64]:
        """Sum, for each row, leaf values and deviations over the leaves that the row reaches.

        Parameters
        ----------
        deviation : ndarray of shape (n_nodes, n_outputs)
            Standard deviation of the value of each node of `trees_` over the prunings of its tree,
            that is, over its subtrees with the same root. The leaf values that are added are those
            of `trees_`.
        by_blocks : callable
            ``by_blocks(f)`` calls f with blocks of b encoded rows, (b, p), for which f returns an
            array (2 * n_outputs, b). It returns these arrays side by side, (2 * n_outputs, n), for
            all n rows to score.

        Returns
        -------
        scores, deviations : ndarray of shape (n_outputs, n)
            Scores, `start_` included and offsets not; and sums of `deviation`.
        """
        both = self.trees_.with_value(np.concatenate([self.trees_.value, deviation], axis=1))
        start = np.append(self.start_, np.zeros(len(self.start_)))
        scores, deviations = np.split(by_blocks(partial(self._add_trees, both, start)), 2)
        return scores, deviations

    def _make_plan(self, n: int) -> RoundPlan:
        """Return the numbers that parameters "auto" stand for in a fit to n training rows.

        They are those of rounds and leaves, of the thresholds that rounds draw, and of the folds of
        the cross-validation that chooses the number of rounds.
        """
        return self._SCHEDULE.plan(n, self.quality)

    def _set_learning_rate(self, stops: bool) -> None:
        """Set the attribute `learning_rate_` to the constant learning rate of all rounds.

        It is the parameter `learning_rate`, or the default for the task if that is "auto". stops:
        whether early stopping is on; the default depends on it, and on `max_iter` and `quality`.
        """
        rate = self.learning_rate
        if rate == "auto":
            follows_table = self.max_iter == "auto" and self.quality != "fast" and not stops
            rate = self._SCHEDULE.get_learning_rate(follows_table=follows_table)
        self.learning_rate_ = float(rate)

    def _set_automatic_parameters(self, n: int) -> None:
        """Set `thresholds_` and `max_leaf_nodes_` from the parameters and n, the number of rows.

        `thresholds_` has the numbers of random thresholds per feature at which rounds may split,
        used in turn; an entry None stands for all thresholds. "auto" stands for the values of
        `_make_plan`.
        """
        plan, leaves, most = self._make_plan(n), self.max_leaf_nodes, self.max_thresholds
        self.max_leaf_nodes_ = plan.max_leaf_nodes if leaves == "auto" else leaves
        self.thresholds_ = plan.thresholds if most == "auto" else (most,)

    def _describe_rounds(self) -> str:
        """Describe the rounds of the fit in words, and say whether `max_time` ended them.

        Such as "in 600 rounds of at most 63 leaves, with learning rate 0.1, and 16 drawn and all
        thresholds in turn".
        """
        names = ["all" if most is None else f"{most} drawn" for most in self.thresholds_]
        most = self.max_leaf_nodes_
        leaves = "any number of" if most is None else f"at most {most}"
        turns = " in turn" if len(names) > 1 else ""
        ended = "; max_time ended the fit" if self.stopped_by_ == "max_time" else ""
        return (
            f"in {self.n_iter_:,} rounds of {leaves} leaves, with learning rate "
            f"{self.learning_rate_:g}, and {' and '.join(names)} thresholds{turns}{ended}"
        )

    def _count_members(self) -> int:
        """Return how many runs with different seeds are averaged: 1 unless quality is "best".

        With "best" there are two runs for classes, and four for numbers and rankings.
        """
        return self._SCHEDULE.n_members if self.quality == "best" else 1

    def _get_initial_factors(self) -> Float64:
        """Return the factor of the leaf values of the initial trees in each run, (n_members,).

        The initial trees precede the first round. Each of them approximates half of a feature's term
        in a ridge regression, of which nothing else is kept. The factors do not depend on whether
        the model has such trees. A single run uses the factor 1. With quality "best", several runs
        are averaged, and use 0 and 2 in turn, whose mean is 1.
        """
        n = self._count_members()
        return np.array([1.0 if n == 1 else 2.0 * (member % 2) for member in range(n)])

    def _make_initial_trees(self, run: BoostingRun) -> tuple[Trees, Float64]:
        """Make the initial trees, which precede the first round; here there are none.

        `BoostedTreesRegressor` overrides this: for small tables they approximate half of the terms
        of a ridge regression. run: the run on the training rows before its first round, whose
        targets and features are used. Return the trees, and the number of training rows in each of
        their nodes, (n_nodes,).
        """
        return Trees.joined([], self._n_encoded, len(run.scores)), np.zeros(0)

    def _make_members(
        self,
        run: BoostingRun,
        tables: Sequence[DenseOrSparseFeatures],
        start: Float64,
        before: Trees,
    ) -> list[BoostingRun]:
        """Copy a run before its first new round, once for each seed; scores of copies are averaged.

        There is one copy; with quality "best" there are two for classes, and four for numbers and
        rankings. If trees of a ridge regression (linear start) precede the rounds, copies also
        differ in their start scores: these trees count with the factors 0 and 2 in turn, and with 1
        in a single copy.

        Parameters
        ----------
        run : BoostingRun
            Run on the training rows, followed by the validation set if there is one.
        tables : sequence of DenseFeatures or SparseFeatures
            Features of the training rows and, if there is one, of the validation set.
        start : ndarray of shape (n_outputs,)
            Constant start score.
        before : Trees
            Trees that precede the first new round. Each copy starts from `start`, the offsets, and
            the scores by these trees times its factor, 0, 1 or 2.
        """
        scores = []
        for factor in self._get_initial_factors():
            trees = before.with_value(factor * before.value)
            scores.append(
                self._compute_table_scores(trees, start, tables, run.offset)
                if len(trees)
                else run.scores
            )
        return [
            run.copy_without_trees(seed=self._seed + k, scores=array)
            for k, array in enumerate(scores)
        ]

    def _make_evaluation(
        self,
        run: BoostingRun,
        training: Training,
        validation: Training | None,
        stops: bool,
        callbacks: Sequence[Callback],
    ) -> Evaluation:
        """Make the object that scores rounds and decides when to stop.

        It scores rounds by the parameter `scoring` if early stopping is on, or there is a
        validation set or a callback; else by the loss if `verbose` is positive; else not at all.

        Parameters
        ----------
        run : BoostingRun
            The run on the training rows, followed by the validation set if there is one.
        training : Training
            Training rows.
        validation : Training or None
            Validation set.
        stops : bool
            Whether early stopping is on: the fit ends after `n_iter_no_change` rounds without an
            improvement. Otherwise all rounds are made unless a callback returns True.
        callbacks : sequence of callables
            Called after each round with an `Iteration`.
        """
        scorer = get_scorer(self)
        is_wanted = stops or validation is not None or bool(callbacks)
        scored: Sequence[Score] = ()
        if is_wanted and scorer is not None:
            scored = make_scorer_scores(self, scorer, run, training, validation)
        elif is_wanted or self.verbose > 0:
            scored, scorer = make_loss_scores(run), None
        return Evaluation(
            scored,
            is_wanted=is_wanted,
            is_loss=scorer is None,
            is_custom=run.settings.loss.is_custom,
            n_runs=self._count_members(),
            n_iter_no_change=self.n_iter_no_change if stops else 0,
            tol=float(self.tol),
            callbacks=callbacks,
        )

    def _compute_table_scores(
        self,
        trees: Trees,
        start: Float64,
        tables: Sequence[DenseOrSparseFeatures],
        offset: Float64 | None,
    ) -> Float64:
        """Compute the scores of the n rows of all tables, table after table, (n_outputs, n).

        Parameters
        ----------
        trees : Trees
            Trees whose leaf values are added.
        start : ndarray of shape (n_outputs,)
            Constant that is added.
        tables : sequence of DenseFeatures or SparseFeatures
            Features of the rows.
        offset : ndarray of shape (n_outputs, n), or None
            Offsets that are added.
        """
        if offset is None:
            scores = [
                table.score_in_blocks(partial(self._add_trees, trees, start)) for table in tables
            ]
            return np.concatenate(scores, axis=1)
        rows = stack_tables([table.matrix for table in tables])
        return self._add_trees(trees, start, rows, offset)

    def _iterate_previous_scores(
        self,
        members: list[BoostingRun],
        tables: Sequence[DenseOrSparseFeatures],
        offset: Float64 | None,
        first: int,
    ) -> Iterator[Float64]:
        """Yield the scores of all rows before the first round and after each previous round.

        Yields ``first + 1`` arrays (n_outputs, n), training rows before the validation set. The
        scores of several runs are averaged. Without previous rounds they are the scores of
        `members`, else those of the first trees in `trees_`.

        Parameters
        ----------
        members : list of BoostingRun
            Runs of the model, one for each seed, before their next round.
        tables : sequence of DenseFeatures or SparseFeatures
            Features of the training rows and, if there is one, of the validation set.
        offset : ndarray of shape (n_outputs, n), or None
            Offsets of the rows of all tables; None: no offsets.
        first : int
            Number of previous rounds.
        """
        if first == 0:
            yield average_scores(members)
            return
        X = stack_tables([table.matrix for table in tables])
        yield self._add_trees(self.trees_, self.start_, X, offset, self._n_first_trees)
        yield from self._iterate_scores(X, offset)

    def _run_rounds(
        self,
        members: list[BoostingRun],
        first: int,
        last: int,
        evaluation: Evaluation,
        limit: TimeLimit,
    ) -> int:
        """Make rounds first, ..., last - 1 of all members unless score, callback or time end them.

        At least one round is made, whatever the limit. Shows a progress bar if `verbose` is
        positive. As long as rounds take less than 1/80 of a second, twice as many are made before
        its next update, and before the next reading of the clock. Without a progress bar, callbacks
        and a limit, rounds of at most about `evaluation.seconds_at_once` are made at a time. Return
        the number of rounds made, previous ones included. members: the runs of the model, one for
        each seed, to which trees are appended; evaluation: scores the rounds, and stores what ended
        the fit; limit: when the rounds must end.
        """
        has_blocks = self.verbose > 0 or evaluation.needs_single_rounds or limit.is_set
        seconds = 0.0 if has_blocks else evaluation.seconds_at_once
        at_once, timer = last - first if seconds == inf else 1, RoundTimer(limit)
        with show_progress(self.verbose > 0, last - first, type(self).__name__) as show:
            while first < last and not evaluation.is_over:
                if not timer.has_time_for(1):
                    evaluation.stop_reason = "max_time"
                    break
                at_once, before = at_once if timer.has_time_for(at_once) else 1, first
                timer.start_block()
                first = evaluation.advance(members, first, min(first + at_once, last))
                timer.end_block(first - before)
                show(first - before, evaluation.progress_text)
                is_short = timer.seconds < max(_SECONDS_PER_UPDATE / 4, seconds / 2)
                if is_short and not evaluation.needs_single_rounds:
                    at_once *= 2
        return first

    def _start_run(self, training: Training, loss: Loss) -> tuple[BoostingRun, Float64]:
        """Bin the training rows, compute the start scores, and return a run before its first round.

        training: training rows; loss: loss to minimize. Raise ValueError if the gradients of a
        `CustomLoss` are not the derivatives of its loss. Return the run, and the constant start
        scores without offsets, (n_outputs,).
        """
        n_threads = get_n_threads_or_all(self.n_jobs)
        order = training.draw_order
        bins = Bins.from_table(
            training.features, self._category_mask(), n_jobs=n_threads, feature_order=order
        ).with_dates(self.dates_)
        grower = self._make_grower(bins, order)
        run, start = start_run(
            self._make_settings(loss),
            grower,
            training.features,
            training.y,
            training.weight,
            self.thresholds_,
            self._seed,
            training.offset,
            training.split.groups,
        )
        loss.check_gradients(run.y, run.scores, run.keys)
        return run, start

    def _make_grower(self, bins: Bins, feature_order: Int32) -> BinnedGrower:
        """Make the object that grows trees on binned rows, with the limits of this model's parameters.

        bins: the training rows in bins; feature_order: order in which features are examined for
        splits, (p,) int32: of equal splits the first feature wins.
        """
        return BinnedGrower(
            bins,
            max_leaves=self.max_leaf_nodes_,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            monotonic_cst=self._get_monotonic_constraints(),
            interaction_cst=self._get_interaction_groups(),
            feature_order=feature_order,
            n_jobs=get_n_threads_or_all(self.n_jobs),
        )

    def _make_settings(self, loss: Loss) -> Settings:
        """Make the settings of rounds from the parameters of this model; loss: loss to minimize.

        They are the loss, learning rate, regularization, the fractions of features and of rows that
        a round uses, and whether a round adds the weighted mean of all prunings of its tree
        ("vote") or the tree.
        """
        return Settings(
            loss=loss,
            learning_rate=self.learning_rate_,
            l2_regularization=float(self.l2_regularization),
            feature_fractions=self._get_feature_fractions(),
            subsample=float(self.subsample),
            votes=self.prunings == "vote",
        )

    def _get_feature_fractions(self) -> tuple[float, ...]:
        """Return the fraction of the features that a round may split on, from `max_features`.

        Entries are floats, fractions of the features; an integer `max_features` stays an integer
        entry, the number of features. Round i uses the entry at i modulo the length. "auto" gives
        all features, or for classes 30 % and all in turn.
        """
        max_features = self.max_features
        if isinstance(max_features, Real) and not isinstance(max_features, Integral):
            return (float(max_features),)
        if max_features == "auto":
            return self._get_automatic_feature_fractions()
        return (resolve_max_features(max_features, self._n_encoded) or 1.0,)

    def _get_monotonic_constraints(self) -> MonotonicSigns:
        """Return the monotonic constraint of each feature, (p,) int8: -1, 0 or 1; or None.

        They follow from the parameter `monotonic_cst`. 1: the score must not fall if the feature
        rises; -1: it must not rise; 0: no constraint. None: no feature has one.
        """
        names = getattr(self, "feature_names_in_", None)
        counts = self.n_features_in_, names, self._n_encoded
        return check_monotonic_cst(self.monotonic_cst, *counts, self._category_mask())

    def _get_interaction_groups(self) -> Any:
        """Return the groups of features that may interact, as a list of lists of feature indices.

        They follow from the parameter `interaction_cst`; if it is None, all features may interact,
        and the result is None, too. "pairwise" becomes all pairs of features, "no_interactions"
        each feature by itself. Features without a group are in no list; the grower makes one more
        group of them. Calendar parts of dates (such as the month), which are further features, are
        in the groups of their date columns.
        """
        groups, p = self.interaction_cst, self.n_features_in_
        if groups is None:
            return None
        found: Sequence[Collection[int]]
        if isinstance(groups, str):
            found = [*combinations(range(p), min(p, 2 if groups == "pairwise" else 1))]
        else:
            found = resolve_interaction_groups(groups, p, self.__dict__.get("feature_names_in_"))
        return add_parts_to_groups(found, p, self.dates_)

    def _count_fast_rounds(self) -> int:
        """Return the number of rounds with quality "fast"; a `learning_rate` below 0.1 has more."""
        factor = 1 if self.learning_rate == "auto" else get_rate_factor(self.learning_rate)
        return self._SCHEDULE.count_fast_rounds(self._make_loss().n_outputs) * factor

    def _get_fixed_rounds(self, n: int, stops: bool, has_times: bool = False) -> int | None:
        """Return the number of rounds unless cross-validation must choose it; then return None.

        n: number of training rows; stops: whether the fit may stop early, in which case the result
        is the largest number of rounds. `max_iter` decides if it is a number, then quality "fast",
        then `stops`, then the class attribute `_SCHEDULE`. Call `_set_learning_rate` before a new
        fit. has_times: whether rows have times; if nothing before `_SCHEDULE` decides, the latest
        rows then choose the number of rounds, and None is returned. A single row gets 1 round.
        """
        if self.max_iter != "auto":
            return int(self.max_iter)
        if self.quality == "fast":
            return self._count_fast_rounds()
        factor, plan = get_rate_factor(self.learning_rate_), self._make_plan(n)
        if stops:
            return count_stopped_rounds(self.quality) * factor
        if plan.n_folds == 0 and not has_times:
            return plan.max_rounds * factor
        return 1 if n < 2 else None

    def _has_linear_start(self, n: int) -> bool:  # noqa: ARG002
        """Return whether a fit to n training rows starts from a ridge regression; here False."""
        return False

    def _choose_n_rounds(
        self, training: Training, run: BoostingRun, stops: bool, limit: TimeLimit
    ) -> int:
        """Return the number of rounds: by cross-validation, unless `_get_fixed_rounds` decides it.

        Parameters
        ----------
        training : Training
            Training rows.
        run : BoostingRun
            The run on these rows before its first round: binned rows, start scores and settings.
        stops : bool
            Whether early stopping is on; then the result is the largest number of rounds.
        limit : TimeLimit
            When the fit must end; cross-validation takes at most half of the time.

        Returns
        -------
        int
            Number of rounds, those of a previous fit included.
        """
        n, has_times = len(training.y), training.split.times is not None
        fixed = self._get_fixed_rounds(n, stops, has_times)
        if fixed is not None:
            return fixed
        folds = training.split_folds(min(_N_FOLDS, n), np.random.RandomState(self._seed))
        folds = folds[: max(self._make_plan(n).n_folds, 1)]

        def start_runs(rate_factor: int) -> list[BoostingRun]:
            """Return the boosting runs on all folds, before their first round.

            rate_factor: factor of the learning rate of the runs. Variables of the enclosing method:
            `run`, a run on all training rows, and `folds`.
            """
            return [run.make_fold_run(fold, rate_factor).with_statistics() for fold in folds]

        return self._search_n_rounds(n, has_times, limit, start_runs)

    def _search_n_rounds(
        self,
        n: int,
        has_times: bool,
        limit: TimeLimit,
        start_runs: Callable[[int], list[BoostingRun]],
        advance: Callable[[list[BoostingRun], int, int], Any] = advance,
    ) -> int:
        """Return the number of rounds with the smallest validation loss; `RoundPlan` limits it.

        Parameters
        ----------
        n : int
            Number of training rows.
        has_times : bool
            Whether the latest rows validate; then there is no smallest number of rounds, and more
            rounds with nearly the smallest loss are preferred; see `choose_rounds`.
        limit : TimeLimit
            When the fit must end; the search takes at most half of the time.
        start_runs : callable
            ``start_runs(rate_factor)`` returns a list of runs (sequences of boosting rounds), one
            for each fold, before the first round; their learning rates are multiplied by the factor.
        advance : callable
            ``advance(runs, first, last)`` makes rounds first, ..., last - 1 of the runs, in place,
            and appends their validation losses.
        """
        plan, rate_factor = self._make_plan(n), get_rate_factor(self.learning_rate_)
        factor = choose_step_factor(self.learning_rate_, plan.step_factor)
        limits = plan.max_rounds * rate_factor // factor, limit.take_fraction(0.5)
        n_rounds = choose_rounds(start_runs(factor), *limits, advance, prefers_more=has_times)
        # Of rows whose distribution changes, few rounds may be best.
        least = 0 if has_times else plan.min_rounds * rate_factor
        return max(n_rounds * factor, least)

    # -- files -------------------------------------------------------------------------------------

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        "trees": declare_trees("trees_", "_n_outputs"),
        "start": StoredField.numbers("start_", ("_n_outputs",)),
        "importances": StoredField.numbers("_importances", ("_n_encoded",), 0),
        "n_rounds": StoredField.value("n_iter_", int),
        "learning_rate": StoredField.value("learning_rate_", float),
        "stopped_by": StoredField.value("stopped_by_", StopReason, default="max_iter"),
        "n_first_trees": StoredField.value("_n_first_trees", int),
        "seed": StoredField.value("_seed", int),
        "thresholds": StoredField.value("thresholds_", tuple[int | None, ...], 1),
        "max_leaf_nodes": StoredField.value("max_leaf_nodes_", int | None, 2),
        "has_offset": StoredField("_has_offset", lambda *_: True, default=False),
        "errors": StoredField.record("_errors", StandardErrors, default=None),
        "shares": StoredField(
            "_loss_factors", _read_loss_factors, lambda factors, _: np.array(factors), default=()
        ),
    }

    @property
    def _n_outputs(self) -> int:
        """Number of scores of a row: 1, or one for each of several classes or targets."""
        return self._make_loss().n_outputs

    def _finish_restore(self, stored: StoredState) -> None:
        """Check a restored model: numbers of trees, thresholds and standard errors must fit together.

        Raise ValueError otherwise. stored: content of the model file.
        """
        super()._finish_restore(stored)
        if not self.thresholds_:
            raise DamagedModelError("the model file's thresholds must not be empty")
        expected = self._n_first_trees + self.n_iter_ * self._count_members()
        if len(self.trees_) != expected:
            raise DamagedModelError(
                f"the model file's {self.n_iter_} rounds must have {expected} trees, got "
                f"{len(self.trees_)}"
            )
        shape = None if self._errors is None else self._errors.deviation.shape
        if shape != (self.trees_.value.shape if self.standard_errors else None):
            raise DamagedModelError(
                f"the model file's errors.deviation must have a row for each node, got {shape}"
            )
        self._make_settings(self._make_loss())
        self._get_monotonic_constraints()

    # -- prediction --------------------------------------------------------------------------------

    def _compute_scores(self, X: Any) -> Float64:
        """Return the start scores plus the leaf values of all trees, (n_outputs, n).

        Offsets of rows are not added. X: rows as the user gives them.
        """
        return self._score_in_blocks(X, self._compute_row_scores)

    def _compute_row_scores(self, rows: NDArray[Any]) -> Float64:
        """Return the start scores plus the leaf values of all trees for encoded rows, (n_outputs, n).

        Offsets of rows are not added. rows: features as numbers and category codes, (n, p).
        """
        return self._add_trees(self.trees_, self.start_, rows)

    def _compute_scores_after(self, X: Any, n_iter: int | None, offset: Any) -> Float64:
        """Return the scores of new rows after the first `n_iter` rounds, plus offsets, (n_outputs, n).

        X, offset: rows and offsets as the user gives them, None for no offsets; n_iter: number of
        rounds, None for all.
        """
        if n_iter is None and offset is None:
            return self._compute_scores(X)
        check_is_fitted(self)
        last = None if n_iter is None else self._count_trees(n_iter)
        if offset is None:
            added = partial(self._add_trees, self.trees_, self.start_, last=last)
            return self._score_in_blocks(X, added)
        rows = self._encode_new_rows_or_csr(X)
        return self._add_trees(
            self.trees_, self.start_, rows, self._convert_new_offset(offset, rows), last
        )

    def _convert_new_offset(self, offset: Any, rows: NDArray[Any]) -> Float64 | None:
        """Check the offsets of new rows, and return them as an array (n_outputs, n).

        offset: as the user gives it, or None, for which None is returned; rows: encoded rows, (n, p).
        """
        return None if offset is None else self._convert_offset("offset", offset, rows.shape[0])

    def _count_trees(self, n_iter: Any) -> int:
        """Return the number of trees in `trees_` up to round `n_iter`, initial trees included.

        Raise TypeError or ValueError unless `n_iter` is an integer in 0 .. `n_iter_`.
        """
        if type(n_iter) is bool or not isinstance(n_iter, int | np.integer):
            raise TypeError(
                f"n_iter must be an integer or None, got {n_iter!r}: pass a number of rounds"
            )
        if not 0 <= n_iter <= self.n_iter_:
            raise ValueError(
                f"n_iter must be in 0 .. n_iter_={self.n_iter_}, got {n_iter}: pass a number in this "
                "range, or None for all rounds"
            )
        return self._n_first_trees + int(n_iter) * self._count_members()

    def _add_trees(
        self,
        trees: Trees,
        start: Float64,
        rows: NDArray[Any],
        offset: Float64 | None = None,
        last: int | None = None,
    ) -> Float64:
        """Return start + offset + sum of leaf values for each row, (n_outputs, n).

        Parameters
        ----------
        trees : Trees
            Trees whose leaf values are added.
        start : ndarray of shape (n_outputs,)
            Constant that is added.
        rows : ndarray or csr_array of shape (n, p)
            Encoded rows.
        offset : ndarray of shape (n_outputs, n), or None
            Offsets that are added.
        last : int or None
            Only the first `last` trees are added; None: all.
        """
        n = rows.shape[0]
        n_threads = get_n_threads_or_all(self.n_jobs, n)
        return trees.add(make_constant_scores(start, n, offset), rows, n_threads, 0, last)

    def _iterate_scores(
        self, rows: NDArray[Any], offset: Float64 | None = None
    ) -> Iterator[Float64]:
        """Yield the scores of rows, (n_outputs, n), after 1, 2, ..., `n_iter_` rounds.

        rows: encoded rows, (n, p); offset: (n_outputs, n), or None for no offsets.
        """
        begin, end = self._n_first_trees, len(self.trees_)
        n_threads = get_n_threads_or_all(self.n_jobs, rows.shape[0])
        start = self._add_trees(self.trees_, self.start_, rows, offset, begin)
        rounds = range(begin, end, (end - begin) // self.n_iter_)
        return self.trees_.iterate_stages(start, rows, n_threads, rounds)

    def _iterate_new_scores(self, X: Any, offset: Any) -> Iterator[Float64]:
        """Yield the scores of new rows, (n_outputs, n), after 1, 2, ..., `n_iter_` rounds.

        X, offset: rows and offsets as the user gives them; None: no offsets.
        """
        rows = self._encode_new_rows_or_csr(X)
        return self._iterate_scores(rows, self._convert_new_offset(offset, rows))

    @snapshot_method
    @support_dask_collections
    def predict(
        self, X: ArrayLike, *, n_iter: int | None = None, offset: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict the class of each row, or its number.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        n_iter : int or None
            Use only the first `n_iter` rounds, 0 .. `n_iter_`; None: all.
        offset : array-like of shape (n,) or (n, K), or None
            Offsets of the rows, as in `fit`; None: 0.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            The most probable class, in a tie the first in `classes_`; or the predicted number in
            units of the target. Several targets have one column each, several quantiles one
            ascending column each.
        """
        return self._predict_from_scores(self._compute_scores_after(X, n_iter, offset))

    @snapshot_method
    def staged_predict(
        self, X: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Iterator[NDArray[Any]]:
        """Yield what `predict` returns after 1, 2, ..., `n_iter_` rounds.

        X: rows, array-like of shape (n, p); offset: known score of each row, as in `fit`, or None
        for 0.
        """
        return map(self._predict_from_scores, self._iterate_new_scores(X, offset))

    @available_if(has_standard_errors)
    @snapshot_method
    def predict_std(self, X: ArrayLike, *, offset: ArrayLike | None = None) -> Float64:
        """Estimate standard errors: distances of predictions to the true means or probabilities.

        Available after a fit with ``standard_errors=True``. X: rows, array-like of shape (n, p);
        offset: known score of each row, as in `fit`, or None for 0. Return errors in units of the
        target, (n,), or of the probabilities in the order of `classes_`, (n, K). For several
        numbers (n, n_outputs); for several columns of classes a list of arrays (n, K).

        In simulations about nine tenths of the true means are within 1.645 standard errors of the
        prediction; this is not a guarantee. The noise of the targets around their means is not
        included; `ConformalBandRegressor` covers it.
        """
        check_is_fitted(self)
        by_blocks = partial(self._score_in_blocks, X)
        scores, deviations = self._compute_scores_and_deviations(self._errors.deviation, by_blocks)
        if offset is not None:
            scores = scores + self._convert_offset("offset", offset, scores.shape[1])
        return self._convert_errors(scores, self._errors.compute(deviations))

    @snapshot_method
    def apply(self, X: ArrayLike) -> Int64:
        """Find the leaf of each row in each tree.

        X: rows, (n, p). Return the index of the leaf among the nodes of its tree, for each of the T
        trees of `trees_`, as int64 (n, T). A round has one tree for all classes or targets, or one
        for each averaged fit. Small regressions may start from a ridge regression; the columns of
        its trees come first.
        """
        rows = self._encode_new_rows_or_csr(X)
        leaf = self.trees_.find_leaves(rows, get_n_threads_or_all(self.n_jobs, rows.shape[0]))
        return np.ascontiguousarray(leaf.T - self.trees_.root)

    def _build_formula(self) -> Formula:
        """Return a description of the fitted model for exports: its trees, start, link and classes.

        The link is the function from scores to predictions, such as "softmax".
        """
        check_is_fitted(self)
        return self._make_formula(self.trees_, "boosted", self._link(), start=self.start_)

    # -- inspection --------------------------------------------------------------------------------

    @suggests_arguments
    @snapshot_method
    @validate_arguments
    def importance(
        self,
        kind: Literal["gain", "split", "permutation"] = "gain",
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        n_repeats: int = 5,
        random_state: Any = None,
    ) -> Float64:
        """Compute the importance of each feature.

        Parameters
        ----------
        kind : {"gain", "split", "permutation"}
            "gain": sum over splits by the feature of the squared changes of the scores of the
            in-bag rows; `feature_importances_` is the same divided by its sum. "split": number of
            splits by the feature. "permutation": increase of the mean loss of the given rows if the
            values of the feature are shuffled (Breiman 2001); 0 or less if the model does not need
            the feature. Both may be low for two features with the same information.
        X, y : array-like of shape (n, p) and (n,), or None
            For "permutation" only: rows and their targets, preferably not training rows.
        offset : array-like of shape (n,) or (n, K), or None
            Offsets of these rows; None: 0.
        n_repeats : int
            How often each feature is shuffled; the mean increase is returned.
        random_state : int, RandomState or None
            Seed of the shuffling; None: the seed of the fit.

        Returns
        -------
        ndarray of shape (p,)
            Squared scores, numbers of splits, or increases of the loss (in nats for classes).

        Raises
        ------
        ValueError
            If X or y is missing for "permutation", or passed for another kind, or `n_repeats` is
            below 1.
        """
        check_is_fitted(self)
        if kind == "permutation":
            if X is None or y is None:
                missing = "X" if X is None else "y"
                raise ValueError(
                    f'X and y must be given with kind="permutation", but {missing} is None: pass rows '
                    "and their targets"
                )
            if n_repeats < 1:
                raise ValueError(
                    f"n_repeats must be at least 1, got {n_repeats}: raise it, such as to 5"
                )
            random = check_random_state(self._seed if random_state is None else random_state)
            return self._compute_permutation_importance(X, y, offset, n_repeats, random)
        if X is not None or y is not None or offset is not None:
            raise ValueError(
                f'X, y and offset must be None unless kind="permutation", got kind={kind!r}: leave '
                'them out, or set kind="permutation"'
            )
        if kind == "gain":
            return self._fold_parts(self._importances.copy())
        split_features = self.trees_.feature[~self.trees_.is_leaf]
        counts = np.bincount(split_features, minlength=self._n_encoded)
        return self._fold_parts(counts.astype(np.float64))

    def _compute_permutation_importance(
        self, X: Any, y: Any, offset: Any, n_repeats: int, random_state: np.random.RandomState
    ) -> Float64:
        """Compute by how much the mean loss rises if a feature is shuffled, (p,).

        X, y, offset: rows, targets and offsets as the user gives them; random_state: source of the
        permutations. The increase is the mean over `n_repeats` permutations; features without a
        split have 0.
        """
        loss, encoded, targets = (
            self._make_loss(),
            self._encode_new_rows_or_csr(X),
            self._encode_targets(y),
        )
        check_consistent_length(encoded, targets.T)
        loss.check_targets(targets)
        start = self._convert_new_offset(offset, encoded)
        used = np.unique(self.trees_.feature[~self.trees_.is_leaf])
        if not len(used):
            return np.zeros(self.n_features_in_)
        # Copy only the columns that trees use: all columns of a sparse table may not fit into memory.
        rows, trees = encoded[:, used], self.trees_.select_features(used)
        rows = np.ascontiguousarray(to_dense(rows))

        def mean_loss() -> float:
            """Return the unweighted mean loss of the rows of the enclosing function.

            Variables of that function: `rows`, encoded rows with the features that trees use, of
            which the caller permutes one column in place before the call; `trees`, which take these
            columns; `targets`; `start`, the offsets or None; `loss`; `self`, the model, whose
            `start_` is added.
            """
            scores = self._add_trees(trees, self.start_, rows, start)
            return float(loss.compute_row_losses(targets, scores).mean())

        before, increase = mean_loss(), np.zeros(self.n_features_in_)
        owners = self._get_owners()[used]  # a date is shuffled together with its calendar parts
        for j in np.unique(owners):
            columns = np.flatnonzero(owners == j)
            values = rows[:, columns]
            for _ in range(n_repeats):
                rows[:, columns] = values[random_state.permutation(len(rows))]
                increase[j] += (mean_loss() - before) / n_repeats
            rows[:, columns] = values
        return increase

    @snapshot_method
    def staged_loss(
        self, X: ArrayLike, y: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Float64:
        """Compute the mean loss of rows after each round, ``(n_iter_,)``.

        X: rows, array-like of shape (n, p); offset: known score of each row, as in `fit`, or None
        for 0; y: targets of the rows, (n,), or (n, q) for q targets: classes in `classes_`, or
        numbers. For a numeric target the loss is that of the parameter `loss`; for a target that
        holds classes it is the log loss in nats. The log losses of several class targets are
        summed. For several numeric targets, or several quantiles, the result is the mean of their
        losses, each divided by the loss of the training rows before the first round.
        """
        loss, rows, targets = (
            self._make_loss(),
            self._encode_new_rows_or_csr(X),
            self._encode_targets(y),
        )
        check_consistent_length(rows, targets.T)
        loss.check_targets(targets)
        stages = self._iterate_scores(rows, self._convert_new_offset(offset, rows))
        return np.array([loss.compute_row_losses(targets, scores).mean() for scores in stages])


def _describe_single_output(what: str, given: str) -> str:
    """Return an error message for a parameter that supports one output only.

    what: the parameter, such as "monotonic_cst"; given: why there are several, such as "3 outputs".
    """
    return (
        f"{what} requires one output, got {given}: use sklearn.multioutput.MultiOutputRegressor, which "
        "fits one model for each column"
    )


def _convert_to_probabilities(classes: NDArray[Any], scores: Float64) -> Float64:
    """Convert scores, (n_outputs, n), to the probabilities of `classes`, (n, K).

    A single class has probability 1; two classes have one score, the log odds of the second; more
    classes have K scores, of which the softmax is taken.
    """
    if len(classes) == 1:
        return np.ones((scores.shape[1], 1))
    if len(classes) == 2:
        return np.column_stack([expit(-scores[0]), expit(scores[0])])
    probabilities: Float64 = softmax(to_row_order(scores), axis=1)
    return probabilities


def _compute_probability_errors(classes: NDArray[Any], scores: Float64, errors: Float64) -> Float64:
    """Compute the standard errors of probabilities from those of the scores, at most 0.5, (n, K).

    classes: the classes, (K,); scores, errors: scores and their standard errors, (n_outputs, n)
    each. Probabilities are linearized in the scores (delta method); errors of the K > 2 scores
    of a row are taken to have correlation -1 / (K - 1), as they sum to about 0. A single class has
    standard error 0.
    """
    p, errors, n = _convert_to_probabilities(classes, scores), to_row_order(errors), len(classes)
    if n == 1:
        return np.zeros_like(p)
    if n == 2:
        deviation = p[:, :1] * p[:, 1:] * errors
        return np.minimum(np.repeat(deviation, 2, axis=1), _MAX_DEVIATION)
    # The derivative of a probability p by its own score is p (1 - p), and by the score of a class with
    # probability q it is -p q.
    squares = np.square(p * errors).sum(axis=1, keepdims=True)
    squares = (1 - 2 * p) * np.square(errors) + squares
    sums = errors - (p * errors).sum(axis=1, keepdims=True)
    variance = np.maximum(n * squares - np.square(sums), 0.0) / (n - 1)
    return np.minimum(p * np.sqrt(variance), _MAX_DEVIATION)


class BoostedTreesClassifier(LabelColumns, StagedClassifier, BoostedTrees):
    """Boosted trees for classes, in which all prunings of each tree vote.

    A pruning of a tree is a subtree with the same root. Each round draws in-bag rows and grows a
    tree on the gradients of their log loss. The out-of-bag rows weight all prunings of the tree,
    and the step of the round is the weighted mean of the prunings. A tree that fits noise therefore
    gets a step near 0. The defaults need no tuning; early stopping is available.

    Rows may have several columns of classes, y of shape (n, q). One tree in each round serves all
    columns and classes: it grows on a random mixture of the gradients of all scores. Each column
    has its own vote over the prunings, in which the losses of the other columns count one tenth.
    The loss is the sum of the log losses of the columns.

    Parameters
    ----------
    quality : {"fast", "default", "best"}, default="default"
        "fast", for searches and first looks: 200 rounds without cross-validation; 67 for each class
        if there are more than three, and at most 800. "default", for nearly all models. "best", for
        final models whose fit may take ten times as long: up to three times as many rounds as
        "default", and the mean of two fits with different seeds, stored as one model; not with
        `warm_start`. Early stopping scores their mean. Explicit values of other parameters have
        priority.
    learning_rate : float or "auto", default="auto"
        Factor of the step of each tree. "auto": 0.1; for numbers 0.05 if cross-validation or the
        number of rows decides `max_iter`. Rates below 0.1 get up to twenty times as many rounds.
    max_iter : int or "auto", default="auto"
        Number of rounds, of one tree each. "auto": chosen by four-fold cross-validation below 3000
        rows, at most 1600; by two of the folds below 10,000 rows and by one below 30,000, at least
        200 and at most 1200, fewer towards 30,000 rows; 600 from then on. With early stopping at
        most 1600.
    max_time : float or None, default=None
        Seconds of wall-clock time for a fit, which ends after the last round that fits, but makes at
        least one. Cross-validation of `max_iter` takes at most half of them. If they end it while
        the loss still falls, rounds are made until the time or the largest number is reached. The
        number of rounds then depends on the speed of the computer, so that fits are not
        reproducible. None: no limit.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Largest number of leaves of a tree; leaves with the largest gain are split first. "auto": 31
        to 1000 rows, 63 from 3000 rows on, and in between by interpolation. None: no limit.
    max_depth : int or None, default=None
        Largest depth of a leaf; None: no limit.
    min_samples_leaf : int, default=5
        Smallest number of in-bag rows in a leaf.
    l2_regularization : float, default=2.5
        Regularization of leaf values: the sum of Hessians with which the value of a node is shrunk
        towards the value of its parent.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round may split on: an int is their number, a float a fraction of all;
        "sqrt" and "log2": the square root and the binary logarithm of their number; None: all;
        "auto": 30 % and all of them in turn.
    max_thresholds : int, "auto" or None, default="auto"
        Number of thresholds that are drawn for each tree and each feature with more than 32 values;
        the tree splits at no other thresholds. None: all thresholds. "auto": one for each 500 rows,
        and at least 6. In regression from 3000 rows on, unless quality is "fast", rounds alternate
        between these and all thresholds.
    subsample : float, default=0.75
        Fraction of the rows that are in-bag in a round. The loss on the out-of-bag rows determines the
        weights of the prunings (subtrees) of the round's tree.
    prunings : {"vote", "none"}, default="vote"
        A pruning is a tree with some nodes turned into leaves. "vote": a round adds the mean
        prediction of all prunings of its tree, weighted by their loss on the out-of-bag rows;
        "none": it adds the prediction of the whole tree, for comparison.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories. "from_dtype": columns of a data frame with a category,
        string or object dtype, and columns of an object array that contain a string. Otherwise a
        mask, indices or names; None: no feature.
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by its name: 1 if the probability of the second of two classes must not
        fall if the feature rises, -1 if it must not rise, 0 otherwise. Only for one column of two
        classes.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features, by index or name, that may be used together on a path of a tree.
        Features without a group form one more group. "pairwise": any two features;
        "no_interactions": each feature by itself; None: all features may be used together.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; for several columns one dict each, and the
        weight of a row is multiplied by all of them. None: all classes have weight 1.
    standard_errors : bool, default=False
        Whether the fit prepares `predict_std`, which estimates the standard errors of predictions. This
        needs three more fits to a third of the rows each, which take about as long as the fit. With
        ``prunings="none"`` all rows have the same standard error.
    warm_start : bool, default=False
        Whether a fit adds rounds to those of the previous fit, until there are `max_iter`. Only
        `max_iter`, `max_time`, `n_iter_no_change`, `tol`, `scoring`, `n_jobs`, `verbose` and
        `warm_start` may change between fits. The first fit decides `learning_rate_`.
    early_stopping : bool or "auto", default=False
        Whether a fit stops if new rounds do not improve the score of a validation set; rounds after
        the best one are dropped. This replaces the cross-validation of `max_iter`. "auto": True for
        more than 10,000 rows.
    scoring : str, callable or None, default="loss"
        Score of a round, the higher the better: "loss", the negated loss; a name or scorer of
        scikit-learn; None: the method `score`. A callable gets encoded rows, with category codes.
        Scorers get about 10,000 training rows if there are more.
    validation_fraction : float, int or None, default=0.1
        Fraction (float) or number (int) of the rows that early stopping holds out as validation set
        if `fit` gets no `X_val`. None: training rows are scored instead.
    n_iter_no_change : int, default=10
        The fit stops after so many rounds without an improvement on the best score.
    tol : float, default=1e-7
        Smallest improvement that counts, in units of the score.
    random_state : int, RandomState or None, default=None
        Seed of the rows, features and thresholds that rounds draw. The model depends neither on the
        order of the rows nor on the number of threads.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        If above 0, show progress on standard error: a bar in terminals and notebooks, else lines of
        text. Bars need the package rich; without it there are lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of ndarray
        The classes; for several columns a list with those of each column.
    n_classes_ : int, or list of int
        Number of classes, of each column if there are several.
    n_outputs_ : int
        Number of columns of y; 1 if y is one-dimensional.
    n_iter_ : int
        Number of rounds of each of the fits that are averaged. With early stopping it is the number
        up to the best round, at least 1.
    stopped_by_ : {"max_iter", "early_stopping", "callbacks", "max_time"}
        What ended the rounds; "max_iter" also stands for the number that cross-validation has chosen.
    max_leaf_nodes_ : int or None
        Largest number of leaves of a tree.
    thresholds_ : tuple of (int or None)
        Numbers of thresholds per feature that rounds have drawn in turn; an entry None stands for all
        thresholds.
    trees_ : Trees
        The trees: one for each round, or one for each round and averaged fit.
    start_ : ndarray of shape (1,) or (K,)
        Scores before the first tree: one for two classes, else one for each class; those of several
        columns follow each other.
    feature_importances_ : ndarray of shape (p,)
        Fraction of each feature in the sum over splits of squared changes of the scores of rows.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        Scores, see `scoring`, of the training rows and the validation set: before the first round
        and after each round, dropped rounds included. They exist after a fit with early stopping, a
        validation set or callbacks; model files do not hold them.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` refuses to certify the model with these
        rows; None if the model was loaded from a file that was saved without them.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all features are numbers.
    dates_ : dict of int to DateColumn, or None
        Kind, time zone and last date of the features that hold dates, by index; None if none do.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all features are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had names.

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", 2001, for boosting; Nguyen
    and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, for the vote of
    prunings. The vote in every round is new here.

    Examples
    --------
    >>> from certree.ensembles import BoostedTreesClassifier
    >>> model = BoostedTreesClassifier().fit([[k] for k in range(40)], [0] * 20 + [1] * 20)
    >>> model.predict([[0], [39]])
    array([0, 1])

    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree.ensembles import BoostedTreesClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BoostedTreesClassifier(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedTrees._parameter_constraints,
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
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
        standard_errors: bool = False,
        warm_start: bool = False,
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

    def _make_loss(self) -> Loss:
        losses = [LogLoss(n_outputs=n) for n in self._output_groups.sizes]
        return MultiOutputLoss.combine(losses) if self._has_several_targets() else losses[0]

    _SCHEDULE: ClassVar[RoundSchedule] = CLASS_SCHEDULE
    _takes_outputs: ClassVar[bool] = True

    def _get_automatic_feature_fractions(self) -> tuple[float, ...]:
        # Few features make trees more different; all are needed if few matter or if they interact.
        return (0.3, 1.0)

    def _get_monotonic_constraints(self) -> MonotonicSigns:
        signs = super()._get_monotonic_constraints()
        if signs is not None:
            self._expect_one_target("monotonic_cst")
        if signs is not None and self.n_classes_ > 2:
            raise ValueError(
                f"monotonic_cst must be None for more than two classes, got {self.n_classes_} classes: "
                "leave it out, or fit one model for each class"
            )
        return signs

    def _encode_targets(self, y: Any) -> NDArray[Any]:
        return self._find_class_codes("y_val", y)

    @property
    def _n_outputs(self) -> int:
        return self._output_groups.n_outputs

    def _predict_from_scores(self, scores: Float64) -> NDArray[Any]:
        return self._stack_targets(self._map_targets(select_top_class, scores))

    def _compute_probabilities(self, scores: Float64) -> Any:
        return self._map_targets(_convert_to_probabilities, scores)

    def _convert_errors(self, scores: Float64, errors: Float64) -> Any:
        return self._map_targets(_compute_probability_errors, scores, errors)

    @snapshot_method
    @support_dask_collections
    def decision_function(
        self, X: ArrayLike, *, n_iter: int | None = None, offset: ArrayLike | None = None
    ) -> Float64:
        """Compute the scores of rows, from which `predict` and `predict_proba` follow.

        X: rows, array-like of shape (n, p); n_iter: number of rounds to use, None: all; offset:
        known score of each row, as in `fit`, or None for 0. Return the log odds of the second of
        two classes, (n,), or K scores whose softmax are the probabilities of more classes, (n, K).
        Scores of several columns of classes follow each other: q columns of two classes give (n,
        q).
        """
        return to_prediction_shape(self._compute_scores_after(X, n_iter, offset))

    @snapshot_method
    @support_dask_collections
    def predict_proba(
        self, X: ArrayLike, *, n_iter: int | None = None, offset: ArrayLike | None = None
    ) -> Any:
        """Predict the probabilities of the classes, (n, K), in the order of `classes_`.

        X: rows, array-like of shape (n, p); n_iter: number of rounds to use, None: all; offset:
        known score of each row, as in `fit`, or None for 0. For several columns of classes, return
        a list with one array each.
        """
        return self._compute_probabilities(self._compute_scores_after(X, n_iter, offset))

    @snapshot_method
    def staged_predict_proba(
        self, X: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Iterator[Any]:
        """Yield what `predict_proba` returns after 1, 2, ..., `n_iter_` rounds.

        X: rows, array-like of shape (n, p); offset: known score of each row, as in `fit`, or None
        for 0. Each array has shape (n, K).
        """
        return map(self._compute_probabilities, self._iterate_new_scores(X, offset))

    @snapshot_method
    def staged_decision_function(
        self, X: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Iterator[Float64]:
        """Yield what `decision_function` returns after 1, 2, ..., `n_iter_` rounds.

        X: rows, array-like of shape (n, p); offset: known score of each row, as in `fit`, or None
        for 0. Each array has shape (n,) for two classes, or (n, K).
        """
        return map(to_prediction_shape, self._iterate_new_scores(X, offset))


@copy_descriptions_from(BoostedTreesClassifier)
class BoostedTreesRegressor(RegressorMixin, BoostedTrees):
    """Boosted trees for numbers, in which all prunings of each tree vote.

    A round grows a tree on in-bag rows, and adds the mean of its prunings (subtrees with the same
    root), weighted by their loss on the out-of-bag rows. See `BoostedTreesClassifier` for the
    method and for attributes that are not listed here.

    Rows may have several numeric targets. One tree in each round serves all of them: it grows for
    one target, in turn, and its leaves have values for all. Each target has its own vote over the
    prunings, in which the loss of this target counts fully and those of the others one tenth, in
    units of their dispersions; neither units nor the order of the columns matter. Targets that
    depend on similar features are predicted better than by one model each; for unrelated targets
    `MultiOutputRegressor` is better.

    With at most 1000 rows and loss "squared_error", boosting starts halfway to a ridge regression
    on standardised numbers, indicators of missing values, and categories. One tree for each
    feature, of at most 64 leaves or `max_leaf_nodes`, follows the regression. These trees are the
    first of `trees_` and are not rounds; importances and the first stage include them. Of the fits
    that quality "best" averages, every second starts from the whole regression, the others from the
    mean.

    Parameters
    ----------
    loss : str or CustomLoss, default="squared_error"
        "squared_error"; "absolute_error", whose best prediction is the median; "quantile"; "huber",
        squared for the nine tenths of the rows with the smallest errors and linear beyond;
        "poisson", "gamma" and "tweedie", half of the deviances, for counts, positive targets, and
        nonnegative amounts many of which are 0: with these the logarithm of the prediction is a sum
        of trees. Or a `CustomLoss`.
    quantile : float, array-like of float or None, default=None
        For loss "quantile": the quantile, between 0 and 1; None: the median. Several ascending
        quantiles are outputs of one fit; predictions are sorted, so that they never cross.
    power : float or None, default=None
        For loss "tweedie": the variance is the mean to this power, between 1 (Poisson) and 2
        (gamma); None: 1.5.
    quality : {"fast", "default", "best"}, default="default"
        "fast", for searches and first looks: 300 rounds without cross-validation; 100 for each
        output if there are more than three, and at most 1200. "default", for nearly all models.
        "best", for final models whose fit may take ten times as long: up to twice as many rounds as
        "default", and the mean of four fits with different seeds, stored as one model; not with
        `warm_start`. Early stopping scores their mean. Explicit values of other parameters
        have priority.
    {learning_rate}
    max_iter : int or "auto", default="auto"
        Number of rounds; see `BoostedTreesClassifier`. "auto", at the rate 0.05: by the same folds;
        at most 2400 to 1000 rows, and 1200 from 3000 to 10,000 rows; at least 200 from 3000 rows
        on, and 500 from 10,000 rows on. From 30,000 rows on 1000.
    {max_time}
    max_leaf_nodes : int, "auto" or None, default="auto"
        Largest number of leaves of a tree. "auto": 16 to 1000 rows, 31 from 3000 rows on, and in
        between by interpolation. None: no limit.
    {max_depth}
    min_samples_leaf : int, default=1
        Smallest number of in-bag rows in a leaf.
    l2_regularization : float, default=2.5
        Regularization of leaf values: the sum of Hessians with which the value of a node is shrunk
        towards the value of its parent; a row of "squared_error" has Hessian 1.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round may split on: an int is their number, a float a fraction of all;
        "sqrt" and "log2": the square root and the binary logarithm of their number; None or "auto":
        all.
    {max_thresholds}
    subsample : float, default=0.9
        Fraction of the rows that are in-bag in a round. The loss on the out-of-bag rows determines the
        weights of the prunings (subtrees) of the round's tree.
    {prunings} {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by its name: 1 if predictions must not fall if the feature rises, -1 if
        they must not rise, 0 otherwise. Only for one output.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features that may be used together on a path of a tree. "pairwise": any two
        features; "no_interactions": each feature by itself; see `BoostedTreesClassifier`.
    {standard_errors} {warm_start} {early_stopping} {scoring} {validation_fraction}
    {n_iter_no_change} {tol}
    random_state : int, RandomState or None, default=None
        Seed of the rows, features and thresholds that rounds draw.
    {n_jobs} {verbose}

    Attributes
    ----------
    {n_outputs_}
    trees_ : Trees
        The trees: those of the ridge regression, if there are some, then one for each round, or one
        for each round and averaged fit.

    Examples
    --------
    >>> from certree.ensembles import BoostedTreesRegressor
    >>> model = BoostedTreesRegressor().fit([[k] for k in range(40)], [5.0] * 20 + [9.0] * 20)
    >>> model.predict([[0], [39]]).round()
    array([5., 9.])

    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from certree.ensembles import BoostedTreesRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostedTreesRegressor(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    >>> model.fit(X, np.column_stack([y, X[:, 2] ** 2])).predict(X[:2]).shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedTrees._parameter_constraints,
        "loss": [
            StrOptions(set(get_args(LossName))),
            CustomLoss,
        ],
        "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
        "power": [Interval(Real, 1, 2, closed="neither"), None],
    }

    def __init__(
        self,
        loss: LossName | CustomLoss = "squared_error",
        *,
        quantile: float | ArrayLike | None = None,
        power: float | None = None,
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
        standard_errors: bool = False,
        warm_start: bool = False,
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

    _SCHEDULE: ClassVar[RoundSchedule] = NUMBER_SCHEDULE
    _takes_outputs: ClassVar[bool] = True

    def _has_linear_start(self, n: int) -> bool:
        is_small = n <= _MAX_LINEAR_ROWS and n * self._n_encoded <= _MAX_LINEAR_VALUES
        return self.loss == "squared_error" and is_small

    def _make_initial_trees(self, run: BoostingRun) -> tuple[Trees, Float64]:
        if not self._has_linear_start(run.y.shape[-1]):
            return super()._make_initial_trees(run)
        if run.offset is not None:
            run = run.copy_without_trees(y=run.y - run.offset.reshape(run.y.shape))
        n_steps = _N_LINEAR_STEPS if self.max_leaf_nodes == "auto" else self.max_leaf_nodes
        return grow_linear_start(run, n_steps)

    def _make_loss(self) -> Any:
        for name, loss in (("quantile", "quantile"), ("power", "tweedie")):
            if getattr(self, name) is not None and self.loss != loss:
                raise ValueError(
                    f'{name} must be None unless loss="{loss}", got {name}={getattr(self, name)!r} '
                    f'with loss={self.loss!r}: leave it out, or set loss="{loss}"'
                )
        n, quantiles = self._n_targets, self._get_quantiles()
        for argument, is_given in (
            ("loss=CustomLoss(...)", isinstance(self.loss, CustomLoss)),
            ("quantile=[...]", len(quantiles) > 1),
        ):
            if n > 1 and is_given:
                columns = f"y of {n} columns"
                raise ValueError(_describe_single_output(argument, columns))
        if len(quantiles) > 1:
            losses = [QuantileLoss(quantile=quantile) for quantile in quantiles]
            return MultiOutputLoss.combine(losses, self._loss_factors)
        single = self._make_single_loss(*quantiles)
        return single if n == 1 else MultiOutputLoss.combine([single] * n, self._loss_factors)

    @property
    def _n_targets(self) -> int:
        return int(self.__dict__.get("n_outputs_", 1))

    def _get_monotonic_constraints(self) -> MonotonicSigns:
        signs = super()._get_monotonic_constraints()
        if signs is not None and self._make_loss().n_outputs > 1:
            outputs = f"{self._make_loss().n_outputs} outputs"
            raise ValueError(_describe_single_output("monotonic_cst", outputs))
        return signs

    def _get_quantiles(self) -> list[float]:
        """Return the quantiles that the model predicts, ascending; [0.5] unless `quantile` is set.

        Raise ValueError if the parameter `quantile` is not between 0 and 1, or is not ascending.
        """
        quantile = 0.5 if self.quantile is None else self.quantile
        if isinstance(quantile, Real):
            return [float(quantile)]
        quantiles = to_array("quantile", quantile)
        is_list = quantiles.ndim == 1 and quantiles.dtype.kind in "fiu" and len(quantiles) > 0
        if not is_list or not ((quantiles > 0) & (quantiles < 1)).all():
            raise ValueError(
                f"quantile must hold numbers between 0 and 1, got {quantile!r}: pass, for example, "
                "0.9 or [0.1, 0.9]"
            )
        if not (np.diff(quantiles) > 0).all():
            raise ValueError(
                f"quantile must hold ascending numbers, got {quantile!r}: sort them, and pass each once"
            )
        return [float(number) for number in quantiles]

    def _make_single_loss(self, quantile: float) -> Loss:
        if isinstance(self.loss, CustomLoss):
            return CustomLossAdapter(functions=self.loss)
        if self.loss == "tweedie":
            return TweedieLoss(power=1.5 if self.power is None else float(self.power))
        if self.loss == "quantile":
            return QuantileLoss(quantile=quantile)
        return {
            "squared_error": SquaredLoss,
            "absolute_error": QuantileLoss,
            "huber": HuberLoss,
            "poisson": PoissonLoss,
            "gamma": GammaLoss,
        }[self.loss]()

    def _encode_targets(self, y: Any) -> NDArray[Any]:
        if self._n_targets == 1:
            return np.asarray(column_or_1d(y), dtype=np.float64)
        targets = np.asarray(check_array(y, input_name="y", ensure_2d=False), dtype=np.float64)
        if targets.shape[1:] != (self._n_targets,):
            raise ValueError(
                f"y must have shape (n, {self._n_targets}), as in the fit, got {targets.shape}: pass "
                "the same columns"
            )
        return targets.T

    def _decode_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _link(self) -> Link:
        if self._make_loss().is_log:
            return "exp"
        return "sorted" if self._n_quantiles > 1 else "identity"

    @property
    def _n_quantiles(self) -> int:
        return len(self._get_quantiles())

    def _build_explanation_fields(self, base: Float64, contributions: Float64) -> dict[str, Any]:
        fields = super()._build_explanation_fields(base, contributions)
        if self._n_quantiles > 1:
            fields["output_names"] = [f"quantile {q:g}" for q in self._get_quantiles()]
        return fields

    @snapshot_method
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute R2, the coefficient of determination, averaged over outputs.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,), or (n, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n,), or None
            Weight of each row; None: all are equal.

        Returns
        -------
        float
            1 if all predictions are exact, 0 if they are as good as the mean of y, less if they are
            worse.

        Raises
        ------
        ValueError
            If the model predicts several quantiles.
        """
        if self._n_quantiles > 1:
            raise ValueError(
                "score is not defined for a model of several quantiles: use "
                "sklearn.metrics.mean_pinball_loss for each column of predict(X)"
            )
        return float(super().score(X, y, sample_weight))

    def _predict_from_scores(self, scores: Float64) -> NDArray[Any]:
        predicted = to_prediction_shape(np.exp(scores) if self._make_loss().is_log else scores)
        return np.sort(predicted, axis=1) if self._n_quantiles > 1 else predicted

    def _convert_errors(self, scores: Float64, errors: Float64) -> Float64:
        errors = np.exp(scores) * errors if self._make_loss().is_log else errors
        converted = super()._convert_errors(scores, errors)
        if self._n_quantiles == 1:
            return converted
        return np.take_along_axis(converted, np.argsort(scores.T, axis=1, kind="stable"), axis=1)
