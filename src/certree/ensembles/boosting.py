"""Boosted trees whose prunings vote, behind scikit-learn's interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from certree.ensembles.custom_loss import CustomLoss, LossOfFunctions
from certree.ensembles.evaluation import PARAMETERS as EVALUATION
from certree.ensembles.evaluation import (
    Callback,
    Evaluation,
    Score,
    checked_callbacks,
    scorer_of,
    scores_by_loss,
    scores_by_scorer,
    scores_together,
    stops_early,
)
from certree.ensembles.fits_on_parts import expect_what_parts_can, fit_on_parts
from certree.ensembles.label_columns import LabelColumns
from certree.ensembles.linear_start import linear_start
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
from certree.ensembles.offsets import checked_offset
from certree.ensembles.round_schedule import CLASS_SCHEDULE, NUMBER_SCHEDULE, RoundSchedule
from certree.ensembles.rounds import Rounds, Settings, importances, started
from certree.ensembles.several_losses import SeveralLosses
from certree.ensembles.staged import (
    StagedClassifier,
    StagedTrees,
    columns_of,
    constant_scores,
    likeliest,
)
from certree.ensembles.standard_errors import StandardErrors, ThirdFits
from certree.ensembles.stopping import best_rounds, longer_steps
from certree.export.formula import Formula, Link
from certree.grow.binned_grower import BinnedGrower, resolve_interaction_groups
from certree.grow.bins import Bins
from certree.grow.training_samples import (
    MonotonicCst,
    MonotonicSigns,
    check_monotonic_cst,
    resolve_max_features,
)
from certree.interface.arrays import Float64, Int32, Int64, to_array, to_row_order
from certree.interface.fitted_state import (
    available_if,
    check_parameters_of_fit,
    fit_method,
    get_snapshot,
    snapshot_method,
)
from certree.interface.progress import show_progress
from certree.interface.signatures import COUNT, NONNEGATIVE, POSITIVE, ROUNDS, validate_arguments
from certree.interface.stored_state import StoredState
from certree.interface.threads import N_JOBS, get_n_threads_or_all
from certree.parts.executors import InMemory
from certree.parts.judging_rows import JudgedParts
from certree.parts.lazy_predictions import support_dask_collections
from certree.parts.rows_elsewhere import rows_elsewhere
from certree.rows.folds import Fold
from certree.rows.out_of_core import is_out_of_core
from certree.rows.sparse_rows import DenseOrSparseFeatures, stack_tables, to_dense
from certree.rows.training import Training, training_rows
from certree.tree import Trees

# Folds into which rows are divided to choose the number of rounds; `RoundSchedule.n_folds` are used.
_N_FOLDS = 4

# A regression of at most so many rows starts from a line, with so many steps along each feature. With
# more rows some tables gain as much as others lose.
_MAX_LINEAR_ROWS, _N_LINEAR_STEPS = 1000, 64
# The linear regression needs dense columns: tables of more values start from the mean.
_MAX_LINEAR_VALUES = 2**24

# Seconds between two updates of a progress bar.
_SECONDS_PER_UPDATE = 0.05

# The largest standard deviation of a probability.
_MAX_DEVIATION = 0.5

_SHARE = Interval(Real, 0, 1, closed="right")

Quality = Literal["fast", "default", "best"]
LossName = Literal[
    "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"
]


def _tells_errors(model: BoostedTrees) -> bool:
    """Whether the fit, or the next one, tells standard errors."""
    return get_snapshot(model).standard_errors


def _together(members: list[Trees]) -> Trees:
    """The trees of fits whose scores are averaged, round by round."""
    if len(members) == 1:
        return members[0]
    rounds = zip(*members, strict=True)
    parts = [tree.with_value(tree.value / len(members)) for trees in rounds for tree in trees]
    return Trees.joined(parts, members[0].n_features, members[0].value.shape[1])


class BoostedTrees(StagedTrees):
    """What boosted trees share, whatever the target is."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quality": [StrOptions({"fast", "default", "best"})],
        "learning_rate": [POSITIVE],
        "max_iter": [ROUNDS, StrOptions({"auto"})],
        "max_leaf_nodes": [
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "max_depth": [COUNT, None],
        "min_samples_leaf": [COUNT],
        "l2_regularization": [NONNEGATIVE],
        "max_features": [COUNT, _SHARE, StrOptions({"auto", "sqrt", "log2"}), None],
        "max_thresholds": [COUNT, StrOptions({"auto"}), None],
        "subsample": [_SHARE],
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
    thresholds_: tuple[int | None, ...]
    max_leaf_nodes_: int | None
    _seed: int
    _n_first_trees: int
    # What the losses of several numbers count in that of a row.
    _loss_shares: tuple[float, ...] = ()
    # Whether scores of the fit started from more than what is the same for all rows.
    _has_offset: bool = False
    # Whether they may.
    _takes_offset: ClassVar[bool] = True
    # Whether a fit tells standard errors, and by what.
    standard_errors: bool = False
    _errors: StandardErrors

    _takes_columns: ClassVar[bool] = True
    _takes_infinities: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True
    # Numbers of rounds and leaves where parameters are "auto".
    _SCHEDULE: ClassVar[RoundSchedule]

    @abstractmethod
    def _loss(self) -> Loss:
        """What is lowered."""

    @abstractmethod
    def _targets(self, y: Any) -> NDArray[Any]:
        """Targets of rows that judge, as the loss takes them."""

    @abstractmethod
    def _given_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets of a fit as they were given."""

    def _feature_shares(self) -> tuple[float, ...]:
        """Shares of the features that rounds look at in turn."""
        return (1.0,)

    def _told_errors(self, scores: Float64, errors: Float64) -> Float64:  # noqa: ARG002
        """Standard errors of what scores predict, here themselves, by theirs, (n_outputs, n) each."""
        return columns_of(errors)

    # -- fit ---------------------------------------------------------------------------------------

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        offset_val: ArrayLike | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Grow trees, each of which lowers the loss of what those before it say.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), path, list of paths, data set of Arrow, \
                or collection of Dask
            Rows; NaN stands for a missing value. What a sparse matrix does not store is 0, and the
            fit is that of the dense table. Rows in files (Parquet, Arrow, CSV, or folders of them)
            and on clusters are never held together, and have the model of the same rows in memory.
            They take no groups and offsets, no `CustomLoss`, and are judged by the loss alone.
        y : array-like of shape (n,), or (n, n_outputs), str, list of str, or collection of Dask
            Class of each row, or a number; of several targets a column each. Of rows in files the name
            of their column, or a list of names.
        sample_weight : array-like of shape (n,), str, collection of Dask, or None
            Weight of each row in the loss, relative to the mean weight; of rows in files the name of
            their column. A row is one draw whatever it weighs: it grows the tree of a round or weighs
            its prunings, and counts once in `min_samples_leaf`. A row of weight zero is as if absent.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Whole
            groups grow the tree of a round or weigh its prunings, are in one of the folds that choose
            `max_iter`, and are held out by early stopping.
        X_val, y_val : array-like of shape (n_val, p) and (n_val,), or None
            Rows that are scored after each round. They grow no tree; with `early_stopping` they say how
            many rounds there are, and without it nothing. Where `X` lies elsewhere they may, too, as
            `X` and `y` are given.
        sample_weight_val : array-like of shape (n_val,), str, collection of Dask, or None
            Weight of each of those in the scores.
        offset, offset_val : array-like of shape (n,) and (n_val,), or None
            What the score of each row starts from, in units of the scores: of the target, of its
            logarithm for "poisson", "gamma" and "tweedie", of log odds for two classes; of shape
            (n, K) for K > 2 classes, and (n, n_outputs) for several numbers. Several columns of classes
            take none. Trees say what is to be added, and `predict` takes the offsets of new rows. For
            counts that is the logarithm of the exposure. It must be given for both sets of rows or for
            neither.
        callbacks : list of callables, or None
            Each is called after each round with an `Iteration`: `n_iter`, the number of rounds so far,
            and `train_score` and `validation_score`, the scores so far. The fit stops where one returns
            True, and goes on after False or None; another result is a TypeError. If one raises an
            exception, this goes through, and the estimator is as before the fit.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            With ``warm_start=True``, if a parameter has changed that made the rounds before, or if
            only one of both fits has an offset; if rows are too few to hold some out; if there are
            offsets and one class; if rows in files or on clusters are fitted in a way that takes them
            in memory, files lack a column, have no common types or change while they are read, or
            collections are not cut alike.
        OSError
            If files cannot be found, or there is no room for what is made of them.
        """
        callbacks = checked_callbacks(callbacks)
        if is_out_of_core(X):
            beside = {
                "groups": groups,
                "offset": offset,
                "offset_val": offset_val,
            }
            validation = X_val, y_val, sample_weight_val
            return self._fit_elsewhere(X, y, sample_weight, beside, validation, callbacks)
        before = self._trees_before()
        training = self._prepare_training(
            X, y, sample_weight, groups=groups, reuse_encoding=before is not None
        )
        self._expect_offsets(offset, offset_val, X_val, before is not None)
        training = self._beside("offset", offset, training)
        judged = self._judges(X_val, y_val, sample_weight_val, offset_val)
        return self._fit_judged(training, before, *judged, callbacks)

    def _fit_judged(
        self,
        training: Training,
        before: Trees | None,
        judges: Training | None,
        of_rows: dict[str, Any],
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Grow trees; where others decide how many, their rows have a part in the fit."""
        evaluation = self._fit_rounds(training, before, judges, callbacks)
        if evaluation.decides:
            self.__dict__.update(of_rows)
        return self

    def _fit_elsewhere(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        beside: dict[str, Any],
        validation: tuple[Any, ...],
        callbacks: Sequence[Callback],
    ) -> Self:
        """Fit to rows in files or on a cluster; so few of them that more can be done in memory."""
        has_judges = any(one is not None for one in validation)
        expect_what_parts_can(self, beside, judges=has_judges or bool(callbacks))
        X_val, y_val, weight_val = validation
        lie_apart = is_out_of_core(X_val)
        if lie_apart and y_val is None:
            raise ValueError("X_val and y_val must be given together, but y_val is None")
        judged = partial(self._judges, X_val, y_val, weight_val, None)
        how = {"judges": validation if lie_apart else None, "shown": self.verbose > 0}
        with rows_elsewhere(X, y, sample_weight, get_n_threads_or_all(self.n_jobs), **how) as parts:
            try:
                given = judged if has_judges and not lie_apart else None
                fit_on_parts(self, parts, given, callbacks)
                return self
            except InMemory:
                *rows, _ = parts.gathered()
                if isinstance(parts, JudgedParts):
                    X_val, y_val, weight_val, _ = parts.judges().gathered()
                    judged = partial(self._judges, X_val, y_val, weight_val, None)
        training = self._prepare_training(*rows)
        self._has_offset = False
        return self._fit_judged(training, None, *judged(), callbacks)

    def _trees_before(self) -> Trees | None:
        """The trees of the fit before, if this one adds to them."""
        before = getattr(self, "trees_", None) if self.warm_start else None
        if self.warm_start and self.quality == "best":
            raise ValueError('warm_start=True takes quality="fast" or "default", got "best"')
        if before is not None:
            check_parameters_of_fit(
                self, "max_iter", "warm_start", "scoring", "n_iter_no_change", "tol"
            )
        return before

    def _expect_offsets(self, offset: Any, offset_val: Any, X_val: Any, goes_on: bool) -> None:
        """Refuse offsets of some rows alone; keeps whether there are any."""
        if (offset is None) != (offset_val is None) and (
            X_val is not None or offset_val is not None
        ):
            missing = "offset" if offset is None else "offset_val"
            raise ValueError(
                f"offset and offset_val must be given together, but {missing} is None: 0 says that "
                "scores start from nothing"
            )
        if goes_on and self._has_offset != (offset is not None):
            fits = ("had", "has") if self._has_offset else ("has", "had")
            raise ValueError(
                f"warm_start=True adds to the fit before: one that {fits[0]} an offset does not go "
                f"with one that {fits[1]} none"
            )
        self._has_offset = offset is not None

    def _beside(self, name: str, offset: Any, rows: Training) -> Training:
        """Rows of a fit beside what their scores start from.

        Their order tells rows apart that are otherwise alike: that of the offsets does then.
        """
        if offset is None:
            return rows
        n = len(rows.y) if rows.split.n_given is None else rows.split.n_given
        known, indices = self._checked_offset(name, offset, n), rows.split.indices
        known = known if indices is None else known[:, indices]
        return replace(rows, offset=known).take(np.lexsort(known))

    def _checked_offset(self, name: str, offset: Any, n: int) -> Float64:
        """What scores of n rows start from, (n_outputs, n)."""
        if not self._takes_offset:
            raise ValueError(f"{name} must be None: what is certified are scores without offsets")
        if is_classifier(self):
            self._expect_one_target(name)
        if is_classifier(self) and len(self.classes_) == 1:
            raise ValueError(f"{name} takes two classes at least, got one")
        loss = self._loss()
        is_log = loss.is_log or is_classifier(self)
        return checked_offset(name, offset, n, loss.n_outputs, is_log=is_log)

    def _judges(
        self, X_val: Any, y_val: Any, sample_weight_val: Any, offset_val: Any
    ) -> tuple[Training | None, dict[str, Any]]:
        """The evaluation set, and the attributes that tell the rows of a fit in which it has a part."""
        given = X_val is not None, y_val is not None
        if given[0] != given[1]:
            missing = "y_val" if given[0] else "X_val"
            raise ValueError(f"X_val and y_val must be given together, but {missing} is None")
        if sample_weight_val is not None and X_val is None:
            raise ValueError("sample_weight_val takes X_val and y_val, which were not provided")
        if X_val is None:
            return None, {}
        self._targets(y_val)
        judges, learned = training_rows(self, X_val, y_val, sample_weight_val, reuse_encoding=True)
        self._loss().expect_domain(judges.y.T)
        judges = self._beside("offset_val", offset_val, judges)
        names = ("sample_hashes_", "_sample_counts")
        return judges, {name: learned[name] for name in names if name in learned}

    def _fit_rounds(
        self,
        given: Training,
        before: Trees | None = None,
        judges: Training | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Evaluation:
        """Grow the trees of some rows, after those of the fit before."""
        goes_on = before is not None
        if not goes_on:
            self._loss_shares = ()
        loss = self._loss()
        training, judges, stops = self._parted(given, judges, goes_on)
        if not goes_on:
            self._choose_parameters(len(training.y))
        run, start = self._started(training, loss)
        self._loss_shares = getattr(run.settings.loss, "shares", ())
        n_rounds, first = self._n_rounds(training, run, not goes_on, stops), 0
        run = run.anew(thresholds=self.thresholds_)
        if before is not None and n_rounds < self.n_iter_:
            raise ValueError(
                f"max_iter={n_rounds} must be at least n_iter_={self.n_iter_} with warm_start=True"
            )
        # Trees do not say what rows saw of their levels: rounds on statistics are made again.
        if before is not None and run.many is None:
            first, start = self.n_iter_, self.start_
        else:
            before, rows = self._first_trees(run)
            self._n_first_trees = len(before)
            worth = importances(before, rows, np.zeros(self.n_features_in_))
            self._importances = np.square(self._factors()).sum() * worth
        thirds = self._thirds(training, run)
        tables = [training.features]
        if judges is not None:
            run = run.judged_by(judges, start)
            tables.append(judges.features)
        members = self._members(run.with_statistics(), tables, start, before)
        evaluation = self._evaluation(run, training, judges, stops, callbacks)
        evaluation.begin(self._stages_before(members, tables, run.offset, first))
        del given, training, judges, run, tables  # what is coded now takes no more memory
        made = self._boost(members, first, n_rounds, evaluation)
        self.start_, self.n_iter_ = start, evaluation.best(first, made)
        self._keep(before, members, self.n_iter_ - first)
        if thirds is not None:
            self._keep_errors(thirds, members, first)
        self._record(evaluation.recorded())
        return evaluation

    def _record(self, scores: Mapping[str, Any]) -> None:
        """Set the scores of the rounds, if they have been taken, in place of those of a fit before."""
        for name in ("train_score_", "validation_score_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(scores)

    def _parted(
        self, given: Training, judges: Training | None, goes_on: bool
    ) -> tuple[Training, Training | None, bool]:
        """Rows that train, those that judge, and whether these stop the fit."""
        training, loss = given, self._loss()
        loss.expect_domain(training.y.T)
        if not goes_on:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        stops = stops_early(self.early_stopping, len(training.y))
        if stops and judges is None and self.validation_fraction is not None:
            random_state = np.random.RandomState(self._seed)
            training, judges = training.hold_out_rows(self.validation_fraction, random_state)
            loss.expect_domain(training.y.T)
        return training, judges, stops

    def _keep(self, before: Trees, members: list[Rounds], n_rounds: int) -> None:
        """Set the trees of the first new rounds behind those before, and what their cuts are worth."""
        grown = [one.trees().keep_first(n_rounds) for one in members]
        for one, trees in zip(members, grown, strict=True):
            rows = one.rows_of_nodes()[: trees.n_nodes]
            outputs = one.settings.loss.outputs
            self._importances = importances(trees, rows, self._importances, outputs)
        self._set_trees(grown, before)

    def _set_trees(self, grown: list[Trees], *before: Trees) -> None:
        """Set the trees of fits that are averaged, behind others."""
        parts = [*before, _together(grown)]
        self.trees_ = Trees.joined(parts, self.n_features_in_, len(self.start_))

    def _thirds(self, training: Training, run: Rounds) -> ThirdFits | None:
        """Fits to thirds of the rows of a run, before their first round, if they are asked for."""
        if not self.standard_errors:
            return None
        folds = training.split_folds(3, np.random.RandomState(self._seed))
        return ThirdFits.start(training, folds, partial(self._members_of, run, training.features))

    def _members_of(self, run: Rounds, features: DenseOrSparseFeatures, fold: Fold) -> list[Rounds]:
        """The fits that are averaged, to some rows of a run, from where those to all of them start."""
        part = run.fold(fold).with_statistics()
        rows = features.take(np.concatenate([fold.train, fold.validation]))
        offset = 0.0 if part.offset is None else part.offset[:, 0]
        before = Trees.joined([], self.n_features_in_, len(part.scores))
        if self._n_first_trees > 0:
            before, _ = self._first_trees(run.fold(fold.without_validation()))
        return self._members(part, [rows], part.scores[:, 0] - offset, before)

    def _keep_errors(self, thirds: ThirdFits, members: list[Rounds], first: int) -> None:
        """Set what standard errors are told by, those of the rounds from `first` on being new."""
        grown = [one.trees().with_value(one.deviations_of_nodes()) for one in members]
        new = _together([one.keep_first(self.n_iter_ - first) for one in grown]).value
        none = np.zeros((self.trees_.n_nodes - len(new), len(self.start_)))
        deviation = np.concatenate([self._errors.deviation if first > 0 else none, new])
        scores, said = self._scores_and_deviations(deviation, thirds.rows.features.score_in_blocks)
        if thirds.rows.offset is not None:
            scores = scores + thirds.rows.offset
        self._errors = thirds.compute_standard_errors(deviation, said, scores, self.n_iter_)

    def _scores_and_deviations(
        self, deviation: Float64, by_blocks: Callable[..., Float64]
    ) -> tuple[Float64, Float64]:
        """What the trees say without offsets, and the sums of deviations, (n_outputs, n) each."""
        both = self.trees_.with_value(np.concatenate([self.trees_.value, deviation], axis=1))
        start = np.append(self.start_, np.zeros(len(self.start_)))
        scores, said = np.split(by_blocks(partial(self._added, both, start)), 2)
        return scores, said

    def _choose_parameters(self, n: int) -> None:
        """Set what quality and the number of rows decide."""
        self.thresholds_ = self._kinds_of_thresholds(n)[0 if self.quality == "fast" else -1]
        leaves = self.max_leaf_nodes
        self.max_leaf_nodes_ = leaves
        if leaves == "auto":
            self.max_leaf_nodes_ = self._SCHEDULE.max_leaf_nodes[n >= self._SCHEDULE.few_rows]

    def _n_members(self) -> int:
        """How many fits of different seeds are averaged."""
        return self._SCHEDULE.n_members if self.quality == "best" else 1

    def _factors(self) -> Float64:
        """How many times each of these fits starts from the first trees: once on average."""
        n = self._n_members()
        return np.array([1.0 if n == 1 else 2.0 * (member % 2) for member in range(n)])

    def _first_trees(self, run: Rounds) -> tuple[Trees, Float64]:
        """Trees that stand before the first round, and how many rows are in their nodes."""
        return Trees.joined([], self.n_features_in_, len(run.scores)), np.zeros(0)

    def _members(
        self, run: Rounds, tables: Sequence[DenseOrSparseFeatures], start: Float64, before: Trees
    ) -> list[Rounds]:
        """The fits that are averaged, before their first round, on tables below each other."""
        scores = []
        for factor in self._factors():
            trees = before.with_value(factor * before.value)
            scores.append(
                self._said(trees, start, tables, run.offset) if len(trees) else run.scores
            )
        return [run.anew(seed=self._seed + k, scores=one) for k, one in enumerate(scores)]

    def _evaluation(
        self,
        run: Rounds,
        training: Training,
        judges: Training | None,
        stops: bool,
        callbacks: Sequence[Callback],
    ) -> Evaluation:
        """What rounds are judged by, if somebody wants to know."""
        scorer = scorer_of(self)
        is_wanted = stops or judges is not None or bool(callbacks)
        scored: Sequence[Score] = ()
        if is_wanted and scorer is not None:
            scored = scores_by_scorer(self, scorer, training, judges)
        elif is_wanted or self.verbose > 0:
            scored, scorer = scores_by_loss(run), None
        return Evaluation(
            scored,
            is_wanted=is_wanted,
            of_loss=scorer is None,
            is_custom=run.settings.loss.is_custom,
            n_runs=self._n_members(),
            n_iter_no_change=self.n_iter_no_change if stops else 0,
            tol=float(self.tol),
            callbacks=callbacks,
        )

    def _said(
        self,
        trees: Trees,
        start: Float64,
        tables: Sequence[DenseOrSparseFeatures],
        offset: Float64 | None,
    ) -> Float64:
        """What trees say beyond a start of tables below each other, (n_outputs, n)."""
        if offset is None:
            said = [one.score_in_blocks(partial(self._added, trees, start)) for one in tables]
            return np.concatenate(said, axis=1)
        rows = stack_tables([one.matrix for one in tables])
        return self._added(trees, start, rows, offset)

    def _stages_before(
        self,
        members: list[Rounds],
        tables: Sequence[DenseOrSparseFeatures],
        offset: Float64 | None,
        first: int,
    ) -> Iterator[Float64]:
        """What trees say of rows before the first new round, and after each of those before."""
        if first == 0:
            yield scores_together(members)
            return
        X = stack_tables([one.matrix for one in tables])
        yield self._added(self.trees_, self.start_, X, offset, self._n_first_trees)
        yield from self._staged(X, offset)

    def _boost(self, members: list[Rounds], first: int, last: int, evaluation: Evaluation) -> int:
        """Make rounds, as many at a time as take about so long as a progress bar may stand still.

        Returns where they ended.
        """
        at_once = 1 if self.verbose > 0 or evaluation.one_by_one else last - first
        with show_progress(self.verbose > 0, last - first, type(self).__name__) as show:
            while first < last and not evaluation.is_over:
                begin, before = perf_counter(), first
                first = evaluation.advance(members, first, min(first + at_once, last))
                show(first - before, evaluation.note)
                if perf_counter() - begin < _SECONDS_PER_UPDATE / 4 and not evaluation.one_by_one:
                    at_once *= 2
        return first

    def _started(self, training: Training, loss: Loss) -> tuple[Rounds, Float64]:
        n_threads = get_n_threads_or_all(self.n_jobs)
        order = training.draw_order
        bins = Bins.from_table(
            training.features, self._category_mask(), n_jobs=n_threads, feature_order=order
        )
        grower = self._grower_in(bins, order)
        rows = training.features, training.y, training.weight
        about: Any = self.thresholds_, self._seed, training.offset, training.split.groups
        run, start = started(self._settings(loss), grower, *rows, *about)
        loss.check_gradients(run.y, run.scores)
        return run, start

    def _grower_in(self, bins: Bins, feature_order: Int32) -> BinnedGrower:
        """What grows the trees of rows in their bins, looking at features in an order."""
        return BinnedGrower(
            bins,
            max_leaves=self.max_leaf_nodes_,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            monotonic_cst=self._slopes(),
            interaction_cst=self._groups(),
            feature_order=feature_order,
            n_jobs=get_n_threads_or_all(self.n_jobs),
        )

    def _settings(self, loss: Loss) -> Settings:
        return Settings(
            loss=loss,
            learning_rate=float(self.learning_rate),
            l2_regularization=float(self.l2_regularization),
            feature_shares=self._shares_of_rounds(),
            subsample=float(self.subsample),
            votes=self.prunings == "vote",
        )

    def _shares_of_rounds(self) -> tuple[float, ...]:
        """Features that rounds look at in turn: shares, or whole numbers of them."""
        given = self.max_features
        if isinstance(given, Real) and not isinstance(given, Integral):
            return (float(given),)
        if given == "auto":
            return self._feature_shares()
        return (resolve_max_features(given, self.n_features_in_) or 1.0,)

    def _slopes(self) -> MonotonicSigns:
        names = getattr(self, "feature_names_in_", None)
        return check_monotonic_cst(self.monotonic_cst, self.n_features_in_, names)

    def _groups(self) -> Any:
        """Features that may act together, by their numbers."""
        given, p = self.interaction_cst, self.n_features_in_
        if isinstance(given, str):
            return [*combinations(range(p), min(p, 2 if given == "pairwise" else 1))]
        return (
            given
            if given is None
            else resolve_interaction_groups(given, self.__dict__.get("feature_names_in_"))
        )

    def _kinds_of_thresholds(self, n: int) -> list[tuple[int | None, ...]]:
        """Numbers of thresholds that rounds may take in turn: the best one first, the safest last."""
        if self.max_thresholds != "auto":
            return [(self.max_thresholds,)]
        few = max(self._SCHEDULE.min_thresholds, n // self._SCHEDULE.rows_per_threshold)
        return [(few,), (None,), (few, None)]

    def _slower(self) -> int:
        """How many times as many rounds steps take that are shorter."""
        factor = self._SCHEDULE.reference_rate / self.learning_rate
        return round(min(max(factor, 1), self._SCHEDULE.max_rate_factor))

    def _fast_rounds(self) -> int:
        """How many rounds the fast quality has: more where many scores share the trees."""
        schedule = self._SCHEDULE
        factor = max(self._loss().n_outputs / schedule.fast_outputs, 1)
        factor = min(factor, schedule.max_fast_factor)
        return round(schedule.fast_rounds * factor) * self._slower()

    def _most_rounds(self) -> int:
        """So many rounds at most where they are chosen."""
        return self._SCHEDULE.max_rounds * self._longer() * self._slower()

    def _longer(self) -> int:
        """How many times as many rounds the quality takes."""
        return self._SCHEDULE.best_factor if self.quality == "best" else 1

    def _known_rounds(self, n: int, stops: bool) -> int | None:
        """How many rounds there are of n rows; None: folds choose."""
        if self.max_iter != "auto":
            return int(self.max_iter)
        if self.quality == "fast":
            return self._fast_rounds()
        if stops:
            return self._most_rounds()
        if n >= self._SCHEDULE.many_rows or not self._SCHEDULE.chooses_rounds:
            return self._SCHEDULE.fixed_rounds * self._longer() * self._slower()
        return 1 if n < 2 else None

    def _starts_from_line(self, n: int) -> bool:  # noqa: ARG002
        """Whether n rows start from trees that stand before the first round."""
        return False

    def _n_rounds(self, training: Training, run: Rounds, choose: bool, stops: bool) -> int:
        """How many rounds there are; by cross-validation where rows are few, as are thresholds."""
        n, schedule = len(training.y), self._SCHEDULE
        are_many = n >= schedule.few_rows
        known = self._known_rounds(n, stops)
        if known is not None:
            return known
        folds = training.split_folds(min(_N_FOLDS, n), np.random.RandomState(self._seed))
        folds = folds[: 1 if are_many else schedule.n_folds]
        longest = schedule.max_step_factor if are_many else schedule.step_factor
        factor = longer_steps(self.learning_rate, longest)
        runs = [run.fold(one, factor).with_statistics() for one in folds]
        kinds = self._kinds_of_thresholds(n) if choose else [self.thresholds_]
        if not are_many:
            kinds = kinds[:1]
        of_kinds = [[one.anew(thresholds=kind) for one in runs] for kind in kinds]
        divisor = 1
        if are_many and self.quality == "default":
            divisor = schedule.max_rounds_divisor
        best, n_rounds = best_rounds(of_kinds, self._most_rounds() // divisor // factor)
        self.thresholds_ = kinds[best]
        return n_rounds * factor

    # -- files -------------------------------------------------------------------------------------

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit."""
        return {
            **super().__stored__(),
            "trees": self.trees_,
            "trees.value": self.trees_.value,
            "start": self.start_,
            "importances": self._importances,
            "n_rounds": self.n_iter_,
            "n_first_trees": self._n_first_trees,
            "seed": self._seed,
            "thresholds": [*self.thresholds_],
            "max_leaf_nodes": self.max_leaf_nodes_,
            **({"has_offset": True} if self._has_offset else {}),
            **(self._errors.to_stored() if self.standard_errors else {}),
            **({"shares": np.array(self._loss_shares)} if self._loss_shares else {}),
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        self._seed, self.n_iter_ = stored.get_integer("seed"), stored.get_integer("n_rounds")
        self.thresholds_ = _stored_thresholds(stored["thresholds"])
        leaves = stored["max_leaf_nodes"]
        self.max_leaf_nodes_ = None if leaves is None else stored.get_integer("max_leaf_nodes", 2)
        n_outputs = self._loss().n_outputs
        if n_outputs > 1 and "shares" in stored:
            self._loss_shares = tuple(stored.get_numbers("shares", (n_outputs,), 0).tolist())
        value = stored.get_numbers("trees.value", (None, n_outputs))
        self.trees_ = self._restore_trees(Trees, stored.get_section("trees"), value=value)
        self._n_first_trees = stored.get_integer("n_first_trees")
        if len(self.trees_) != self._n_first_trees + self.n_iter_ * self._n_members():
            expected = (
                f"{self._n_first_trees}, and {self._n_members()} for each of {self.n_iter_} rounds"
            )
            raise ValueError(f"expected {expected} trees, got {len(self.trees_)}")
        self.start_ = stored.get_numbers("start", (n_outputs,))
        self._has_offset = "has_offset" in stored
        if self.standard_errors:
            self._errors = StandardErrors.from_stored(stored.get_section("errors"), value.shape)
        self._importances = stored.get_numbers("importances", (self.n_features_in_,), 0)
        self._settings(self._loss())
        self._slopes()

    # -- prediction --------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Float64:
        """What all trees say, (n_outputs, n)."""
        return self._score_in_blocks(X, self._scores_of)

    def _scores_of(self, rows: NDArray[Any]) -> Float64:
        return self._added(self.trees_, self.start_, rows)

    def _scores_after(self, X: Any, n_iter: int | None, offset: Any) -> Float64:
        """What the first rounds say beyond offsets, (n_outputs, n); None: all, and none."""
        if n_iter is None and offset is None:
            return self._scores(X)
        check_is_fitted(self)
        last = None if n_iter is None else self._n_trees_of(n_iter)
        if offset is None:
            added = partial(self._added, self.trees_, self.start_, last=last)
            return self._score_in_blocks(X, added)
        rows = self._encode_new_rows_or_csr(X)
        return self._added(self.trees_, self.start_, rows, self._new_offset(offset, rows), last)

    def _new_offset(self, offset: Any, rows: NDArray[Any]) -> Float64 | None:
        return None if offset is None else self._checked_offset("offset", offset, rows.shape[0])

    def _n_trees_of(self, n_iter: Any) -> int:
        """How many trees the first rounds have, those before them included."""
        if type(n_iter) is bool or not isinstance(n_iter, int | np.integer):
            raise TypeError(f"n_iter must be a whole number or None, got {n_iter!r}")
        if not 0 <= n_iter <= self.n_iter_:
            raise ValueError(f"n_iter must be in 0 .. n_iter_={self.n_iter_}, got {n_iter}")
        return self._n_first_trees + int(n_iter) * self._n_members()

    def _added(
        self,
        trees: Trees,
        start: Float64,
        rows: NDArray[Any],
        offset: Float64 | None = None,
        last: int | None = None,
    ) -> Float64:
        """What trees, the first of them, say beyond a start (n_outputs,) and offsets."""
        n = rows.shape[0]
        n_threads = get_n_threads_or_all(self.n_jobs, n)
        return trees.add(constant_scores(start, n, offset), rows, n_threads, 0, last)

    def _staged(self, rows: NDArray[Any], offset: Float64 | None = None) -> Iterator[Float64]:
        """The scores after each round."""
        begin, end = self._n_first_trees, len(self.trees_)
        n_threads = get_n_threads_or_all(self.n_jobs, rows.shape[0])
        start = self._added(self.trees_, self.start_, rows, offset, begin)
        rounds = range(begin, end, (end - begin) // self.n_iter_)
        return self.trees_.iterate_stages(start, rows, n_threads, rounds)

    def _stages(self, X: Any, offset: Any) -> Iterator[Float64]:
        """The scores of rows to predict after each round."""
        rows = self._encode_new_rows_or_csr(X)
        return self._staged(rows, self._new_offset(offset, rows))

    @snapshot_method
    @support_dask_collections
    def predict(
        self, X: ArrayLike, *, n_iter: int | None = None, offset: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict the class of each row, ties to the first in `classes_`, or its number.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        n_iter : int or None
            The first so many rounds predict, 0 .. `n_iter_`; None: all.
        offset : array-like of shape (n,) or (n, K), or None
            What the scores of the rows start from, as in `fit`; None: 0.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Classes, or numbers in units of the target; of several targets a column each, and of several
            quantiles, which ascend.
        """
        return self._answers(self._scores_after(X, n_iter, offset))

    @snapshot_method
    def staged_predict(
        self, X: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Iterator[NDArray[Any]]:
        """Predict after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        offset : array-like of shape (n,) or (n, K), or None
            What the scores of the rows start from; None: 0.

        Yields
        ------
        ndarray of shape (n,)
            What `predict` says of the rounds so far.
        """
        return map(self._answers, self._stages(X, offset))

    @available_if(_tells_errors)
    @snapshot_method
    def predict_std(self, X: ArrayLike, *, offset: ArrayLike | None = None) -> Float64:
        """Say how far predictions may lie from the true means or probabilities.

        It is there after a fit with ``standard_errors=True``. Within 1.645 standard errors of the
        prediction lie about nine tenths of the true means on drawn tables; nothing is promised. How far
        targets lie from their mean is no part of it: `ConformalBandRegressor` tells that.

        Parameters
        ----------
        X, offset
            See `predict`.

        Returns
        -------
        ndarray of shape (n,), or of classes (n, K)
            Standard errors, in units of the target, or of the probabilities in the order of `classes_`;
            of several targets (n, n_outputs), or a list.
        """
        check_is_fitted(self)
        by_blocks = partial(self._score_in_blocks, X)
        scores, said = self._scores_and_deviations(self._errors.deviation, by_blocks)
        if offset is not None:
            scores = scores + self._checked_offset("offset", offset, scores.shape[1])
        return self._told_errors(scores, self._errors.compute(said))

    @snapshot_method
    def apply(self, X: ArrayLike) -> Int64:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of int64, shape (n, T)
            Leaves, numbered among the nodes of their tree, for each tree of `trees_`; one tree serves
            all classes, and all targets. The first columns are those of the linear start of small
            regressions, if there is one; columns of the rounds follow.
        """
        rows = self._encode_new_rows_or_csr(X)
        leaf = self.trees_.find_leaves(rows, get_n_threads_or_all(self.n_jobs, rows.shape[0]))
        return np.ascontiguousarray(leaf.T - self.trees_.root)

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        return self._make_formula(self.trees_, "boosted", self._link(), start=self.start_)

    # -- inspection --------------------------------------------------------------------------------

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
        """Say how much each feature matters.

        Parameters
        ----------
        kind : {"gain", "split", "permutation"}
            "gain": how far steps at cuts by the feature move the rows that grew the trees, squared and
            summed; `feature_importances_` are shares of it. "split": number of cuts. "permutation": by
            how much the mean loss of some rows rises if their values of the feature are shuffled
            (Breiman 2001); 0 or less where the model would be as good without it, of two features that
            say the same both may be low.
        X, y, offset
            Rows, their targets and what their scores start from, for "permutation" only; best rows
            that the fit has not seen.
        n_repeats : int
            So many times each feature is shuffled; the mean is returned.
        random_state : int, RandomState or None
            Decides how; None: the seed of the fit.

        Returns
        -------
        ndarray of shape (p,)
            Squared scores, numbers of cuts, or losses (of classes nats).

        Raises
        ------
        ValueError
            If `kind` is another one, or does not go with what is given.
        """
        check_is_fitted(self)
        if kind == "permutation":
            if X is None or y is None:
                raise ValueError('kind="permutation" takes X and y, got None')
            if n_repeats < 1:
                raise ValueError(f"n_repeats must be at least 1, got {n_repeats}")
            drawn = check_random_state(self._seed if random_state is None else random_state)
            return self._permutation(X, y, offset, n_repeats, drawn)
        if X is not None or y is not None or offset is not None:
            raise ValueError(f'X, y and offset take kind="permutation", got {kind!r}')
        if kind == "gain":
            return self._importances.copy()
        cuts = self.trees_.feature[~self.trees_.is_leaf]
        return np.bincount(cuts, minlength=self.n_features_in_).astype(np.float64)

    def _permutation(
        self, X: Any, y: Any, offset: Any, n_repeats: int, random_state: np.random.RandomState
    ) -> Float64:
        """By how much the mean loss rises where a feature is shuffled, on average, (p,)."""
        loss, given, known = self._loss(), self._encode_new_rows_or_csr(X), self._targets(y)
        check_consistent_length(given, known.T)
        loss.expect_domain(known)
        start = self._new_offset(offset, given)
        used = np.unique(self.trees_.feature[~self.trees_.is_leaf])
        if not len(used):
            return np.zeros(self.n_features_in_)
        # A copy of what trees look at: all of a sparse table might not fit into memory.
        rows, trees = given[:, used], self.trees_.select_features(used)
        rows = np.ascontiguousarray(to_dense(rows))

        def mean_loss() -> float:
            said = self._added(trees, self.start_, rows, start)
            return float(loss.of_rows(known, said).mean())

        before, risen = mean_loss(), np.zeros(self.n_features_in_)
        for place, j in enumerate(used):
            values = rows[:, place].copy()
            for _ in range(n_repeats):
                rows[:, place] = random_state.permutation(values)
                risen[j] += (mean_loss() - before) / n_repeats
            rows[:, place] = values
        return risen

    @snapshot_method
    def staged_loss(
        self, X: ArrayLike, y: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Float64:
        """Mean loss of some rows after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,), or (n, n_outputs)
            Their classes, among those of the fit, or numbers.
        offset : array-like of shape (n,) or (n, K), or None
            What the scores of the rows start from; None: 0.

        Returns
        -------
        ndarray of shape (T,)
            The loss that the rounds lower, of classes the log loss in nats, of several columns of
            classes the sum of theirs. Of several numbers, or quantiles, the mean of their losses, each
            divided by what it was of the rows of the fit before the first round.
        """
        loss, rows, known = self._loss(), self._encode_new_rows_or_csr(X), self._targets(y)
        check_consistent_length(rows, known.T)
        loss.expect_domain(known)
        stages = self._staged(rows, self._new_offset(offset, rows))
        return np.array([loss.of_rows(known, scores).mean() for scores in stages])


def _takes_one(what: str, given: str) -> str:
    """What is said where there are several outputs."""
    return (
        f"{what} takes one number for each row, got {given}: sklearn.multioutput.MultiOutputRegressor "
        "fits one model for each column"
    )


def _stored_thresholds(given: Any) -> tuple[int | None, ...]:
    """Numbers of thresholds as a file holds them."""
    known = isinstance(given, list) and all(
        one is None or (type(one) is int and one >= 1) for one in given
    )
    if not (known and given):
        raise ValueError(f"thresholds must hold whole numbers >= 1 or null, got {given!r}")
    return tuple(given)


def _shares_of(classes: NDArray[Any], scores: Float64) -> Float64:
    """Probabilities of classes by their scores, (n, K)."""
    if len(classes) == 1:
        return np.ones((scores.shape[1], 1))
    if len(classes) == 2:
        return np.column_stack([expit(-scores[0]), expit(scores[0])])
    shares: Float64 = softmax(to_row_order(scores), axis=1)
    return shares


def _errors_of_shares(classes: NDArray[Any], scores: Float64, errors: Float64) -> Float64:
    """Standard errors of probabilities of classes by those of their scores, (n, K)."""
    shares, errors, n = _shares_of(classes, scores), to_row_order(errors), len(classes)
    if n == 1:
        return np.zeros_like(shares)
    if n == 2:
        moves = shares[:, :1] * shares[:, 1:] * errors
        return np.minimum(np.repeat(moves, 2, axis=1), _MAX_DEVIATION)
    # A share p moves by p (1 - p) as its own score does, and by -p q as that of a share q does.
    # Errors of scores sum to about 0, so that any two have a correlation of -1 / (n - 1).
    squares = np.square(shares * errors).sum(axis=1, keepdims=True)
    squares = (1 - 2 * shares) * np.square(errors) + squares
    sums = errors - (shares * errors).sum(axis=1, keepdims=True)
    variance = np.maximum(n * squares - np.square(sums), 0.0) / (n - 1)
    return np.minimum(shares * np.sqrt(variance), _MAX_DEVIATION)


class BoostedTreesClassifier(LabelColumns, StagedClassifier, BoostedTrees):
    """Boosted trees for classes, in which every pruning of every tree votes.

    Each round draws rows, grows a tree on the gradients of their log loss, and lets the other rows
    weigh all prunings of the tree: its step is the average of what the prunings say. So a tree that
    tells noise apart hardly moves: there is nothing to tune, and early stopping is there for who wants
    it.

    Rows may have classes in several columns, y of shape (n, q). One tree a round serves all of them, as
    it serves the scores of more than two classes: it grows on a random mixture of the gradients of all
    scores, and each column has its own vote over the prunings, in which the losses of the other columns
    count a tenth. The loss is the sum of the log losses of the columns.

    Parameters
    ----------
    quality : {"fast", "default", "best"}, default="default"
        "fast": 200 rounds without cross-validation, 67 for each class if there are more than three, and
        800 at most. "best": up to three times as many rounds as else, and the average of two fits of
        different seeds, stored as one model; not with `warm_start`. Early stopping judges what they say
        together. Parameters that are given win.
    learning_rate : float, default=0.1
        Factor of each tree's steps.
    max_iter : int or "auto", default="auto"
        Number of rounds, of a tree each. "auto": by four-fold cross-validation below 3000 rows, by one
        of the folds below 30,000, else 400; 1600 at most, also with early stopping; more at a smaller
        `learning_rate` than .1, up to twenty times as many.
    max_leaf_nodes : int, "auto" or None, default="auto"
        So many leaves a tree at most; those whose cut gains most are divided first. "auto": 31
        below 3000 rows, else 63.
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    min_samples_leaf : int, default=5
        Training samples in each leaf.
    l2_regularization : float, default=5
        Sum of Hessians by which the step of a cell is drawn to that of its parent.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round looks at: a number, a share of them, the root or the logarithm of how many
        there are, or all. "auto": 30 % and all of them in turn.
    max_thresholds : int, "auto" or None, default="auto"
        So many thresholds of each feature that has more than 32 values are drawn for each tree, which
        makes no other cuts; None: all. "auto": few where `max_iter` is chosen by cross-validation, and
        from 3000 rows on all, or few and all in turn, if these are better there; otherwise in turn, but
        few for "fast".
    subsample : float, default=0.7
        Share of the rows that grow the trees of a round; the others weigh their prunings.
    prunings : {"vote", "none"}, default="vote"
        "none": the whole trees step, for comparison.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if the probability of the second of two classes must not
        fall where it rises, -1 if it must not rise, 0 otherwise; of one column of classes only.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features, by numbers or names, that may act together in a tree. Features of no group
        are one more. "pairwise": any two of them; "no_interactions": each by itself.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; of several columns a dict for each, and a row weighs
        the product.
    standard_errors : bool, default=False
        Whether a fit learns what `predict_std` tells: how far predictions may lie from the true mean.
        Three more fits to a third of the rows each take about as long as the fit. With
        ``prunings="none"`` all rows have the same.
    warm_start : bool, default=False
        Whether a fit adds rounds, up to `max_iter`, to those of the fit before. Of the parameters only
        `max_iter`, `n_iter_no_change`, `tol`, `scoring`, `n_jobs`, `verbose` and `warm_start` may
        change between them.
    early_stopping : bool or "auto", default=False
        Whether a fit stops once new rounds gain nothing on rows that have no part in them, and keeps
        those up to the best one. It takes the place of the cross-validation that chooses `max_iter`;
        "auto": from 10,001 rows on.
    scoring : str, callable or None, default="loss"
        What rounds are judged by, the higher the better: "loss", the loss negated; a name or a scorer
        as scikit-learn has them; None: `score`. A scorer takes rows as numbers, categories as codes, of
        those that train at most 10,000.
    validation_fraction : float, int or None, default=0.1
        Share or number of the rows that early stopping holds out if `fit` is given no `X_val`. None:
        the rows that train judge, too.
    n_iter_no_change : int, default=10
        So many rounds without a gain on the best score before are the last ones.
    tol : float, default=1e-7
        What a gain must exceed, in units of the score.
    random_state : int, RandomState or None, default=None
        Decides rows and features of the rounds. The model depends neither on the order of the rows
        nor on the number of threads.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of them
        The classes; of several columns those of each.
    n_classes_ : int, or list of int
        How many they are.
    n_outputs_ : int
        Number of columns of y; 1 where it is a column itself.
    n_iter_ : int
        Number of rounds, of each of the fits that are averaged; with early stopping of those that are
        kept, which end with the best one and are at least one.
    max_leaf_nodes_ : int or None
        Most leaves of a tree.
    thresholds_ : tuple of int or None
        Numbers of thresholds of a feature that rounds have drawn in turn; None: all.
    trees_ : Trees
        The trees, one for each round, or one of each fit that is averaged. Those of the line that few
        rows of numbers start from come before.
    start_ : ndarray of shape (1,) or (K,)
        The scores before the first tree, one of two classes; of several columns one behind the other.
    feature_importances_ : ndarray of shape (p,)
        Share of each feature in how far the steps move rows.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        Scores by `scoring` of the rows that train, and of those that judge, if there were some: before
        the first round and after each that was made, those behind the best one included. They are
        there after a fit with early stopping, with an evaluation set or with callbacks, but not in
        files.
    sample_hashes_ : ndarray of uint64
        Hashes of the rows of the fit.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Friedman, "Greedy function approximation: a gradient boosting machine", 2001, for boosting; Nguyen
    and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, for the vote of
    prunings; the vote in every round is ours.

    Examples
    --------
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

    def _loss(self) -> Loss:
        losses = [LogLoss(n_outputs=n) for n in self._output_groups.sizes]
        return SeveralLosses.each(losses) if self._has_several_targets() else losses[0]

    _SCHEDULE: ClassVar[RoundSchedule] = CLASS_SCHEDULE
    _takes_outputs: ClassVar[bool] = True

    def _feature_shares(self) -> tuple[float, ...]:
        # Few columns tell more trees apart; all are needed where few matter or act together.
        return (0.3, 1.0)

    def _slopes(self) -> MonotonicSigns:
        slopes = super()._slopes()
        if slopes is not None:
            self._expect_one_target("monotonic_cst")
        if slopes is not None and self.n_classes_ > 2:
            raise ValueError(
                f"monotonic_cst takes numbers or two classes, got {self.n_classes_} classes"
            )
        return slopes

    def _targets(self, y: Any) -> NDArray[Any]:
        return self._find_class_codes("y_val", y)

    @property
    def _n_outputs(self) -> int:
        return self._output_groups.n_outputs

    def _answers(self, scores: Float64) -> NDArray[Any]:
        return self._in_columns(self._of_each(likeliest, scores))

    def _shares(self, scores: Float64) -> Any:
        return self._of_each(_shares_of, scores)

    def _told_errors(self, scores: Float64, errors: Float64) -> Any:
        return self._of_each(_errors_of_shares, scores, errors)

    @snapshot_method
    @support_dask_collections
    def decision_function(
        self, X: ArrayLike, *, n_iter: int | None = None, offset: ArrayLike | None = None
    ) -> Float64:
        """Give the scores of rows.

        Parameters
        ----------
        X, n_iter, offset
            See `predict`.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            The log odds of the second of two classes, or scores whose softmax are the probabilities. Of
            several columns of classes those of each, one column behind the other: of q columns of two
            classes (n, q).
        """
        return columns_of(self._scores_after(X, n_iter, offset))

    @snapshot_method
    @support_dask_collections
    def predict_proba(
        self, X: ArrayLike, *, n_iter: int | None = None, offset: ArrayLike | None = None
    ) -> Any:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X, n_iter, offset
            See `predict`.

        Returns
        -------
        ndarray of shape (n, K), or list of them
            Probabilities in the order of `classes_`; of several columns of classes those of each.
        """
        return self._shares(self._scores_after(X, n_iter, offset))

    @snapshot_method
    def staged_predict_proba(
        self, X: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Iterator[Any]:
        """Predict the probabilities of the classes after each round.

        Parameters
        ----------
        X, offset
            See `predict`.

        Yields
        ------
        ndarray of shape (n, K), or list of them
            What `predict_proba` says of the rounds so far.
        """
        return map(self._shares, self._stages(X, offset))

    @snapshot_method
    def staged_decision_function(
        self, X: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Iterator[Float64]:
        """Give the scores of rows after each round.

        Parameters
        ----------
        X, offset
            See `predict`.

        Yields
        ------
        ndarray of shape (n,) or (n, K)
            What `decision_function` says of the rounds so far.
        """
        return map(columns_of, self._stages(X, offset))


class BoostedTreesRegressor(RegressorMixin, BoostedTrees):
    """Boosted trees for numbers, in which every pruning of every tree votes.

    See `BoostedTreesClassifier`, whose attributes it has but for those that speak of classes.

    Rows may have several numbers. One tree serves all of them: each number in turn is the one that a
    round's tree grows for, and its leaves step for all. A number's vote over the prunings counts the
    loss of that number and a tenth of those of the others, in units of their dispersions, so that
    neither units nor the order of the columns matter. Numbers that share much are told better than by a
    model for each; those that share nothing are told better by `MultiOutputRegressor`.

    Of at most 1000 rows, rounds on "squared_error" start halfway to a ridge regression on standardised
    numbers, on whether they are missing, and on categories: a tree of at most 64 leaves, or
    `max_leaf_nodes`, follows it along each feature. These trees are the first of `trees_`, and no
    rounds; importances and the first stage count them. Of the fits that "best" averages every second
    one starts from the whole line, the others from the mean.

    Parameters
    ----------
    loss : str or CustomLoss, default="squared_error"
        "squared_error"; "absolute_error", whose best prediction is the median; "quantile"; "huber",
        which is squared for the nine tenths of the rows that lie nearest; "poisson", "gamma" and
        "tweedie", half of the deviances, for counts, for positive targets, and for amounts many of
        which are 0: trees then add up to the log of the prediction. Or a `CustomLoss`.
    quantile : float, array-like of float or None, default=None
        Of the loss "quantile", between 0 and 1; None: the median. Several ones, which ascend, are
        outputs of one fit; predictions are sorted, so that they never cross.
    power : float or None, default=None
        Of the loss "tweedie", between 1 (Poisson) and 2 (gamma): the variance is this power of the
        mean; None: 1.5.
    quality : {"fast", "default", "best"}, default="default"
        "fast": 300 rounds without cross-validation, 100 for each output if there are more than three,
        and 1200 at most. "best": up to three times as many rounds as else, and the average of four fits
        of different seeds, stored as one model; not with `warm_start`. Early stopping judges what they
        say together. Parameters that are given win.
    learning_rate : float, default=0.1
        Factor of each tree's steps.
    max_iter : int or "auto", default="auto"
        Number of rounds; see `BoostedTreesClassifier`. "auto": by two of the four folds below 3000
        rows; by one of them it chooses 800 at most with ``quality="default"``, as more gain little for
        numbers.
    max_leaf_nodes : int, "auto" or None, default="auto"
        So many leaves a tree at most. "auto": 16 below 3000 rows, else 31.
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    min_samples_leaf : int, default=1
        Training samples in each leaf.
    l2_regularization : float, default=5
        Sum of Hessians by which the step of a cell is drawn to that of its parent; a row of
        "squared_error" has 1.
    max_features : int, float, "auto", "sqrt", "log2" or None, default="auto"
        Features that a round looks at: a number, a share of them, the root or the logarithm of how many
        there are, or all. "auto": all of them.
    max_thresholds : int, "auto" or None, default="auto"
        So many thresholds of each feature that has more than 32 values are drawn for each tree, which
        makes no other cuts; None: all. "auto": see `BoostedTreesClassifier`.
    subsample : float, default=0.7
        Share of the rows that grow the tree of a round; the others weigh its prunings.
    prunings : {"vote", "none"}, default="vote"
        "none": the whole trees step, for comparison.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise; of one output only.
    interaction_cst : list of collections, "pairwise", "no_interactions" or None, default=None
        Groups of features that may act together in a tree; see `BoostedTreesClassifier`.
    standard_errors : bool, default=False
        Whether a fit learns what `predict_std` tells: how far predictions may lie from the true mean.
        Three more fits to a third of the rows each take about as long as the fit. With
        ``prunings="none"`` all rows have the same.
    warm_start : bool, default=False
        Whether a fit adds rounds, up to `max_iter`, to those of the fit before. Of the parameters only
        `max_iter`, `n_iter_no_change`, `tol`, `scoring`, `n_jobs`, `verbose` and `warm_start` may
        change between them.
    early_stopping : bool or "auto", default=False
        Whether a fit stops once new rounds gain nothing on rows that have no part in them, and keeps
        those up to the best one. It takes the place of the cross-validation that chooses `max_iter`;
        "auto": from 10,001 rows on.
    scoring : str, callable or None, default="loss"
        What rounds are judged by, the higher the better: "loss", the loss negated; a name or a scorer
        as scikit-learn has them; None: `score`. A scorer takes rows as numbers, categories as codes, of
        those that train at most 10,000.
    validation_fraction : float, int or None, default=0.1
        Share or number of the rows that early stopping holds out if `fit` is given no `X_val`. None:
        the rows that train judge, too.
    n_iter_no_change : int, default=10
        So many rounds without a gain on the best score before are the last ones.
    tol : float, default=1e-7
        What a gain must exceed, in units of the score.
    random_state : int, RandomState or None, default=None
        Decides rows and features of the rounds.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    n_outputs_ : int
        Number of columns of y; 1 where it is a column itself.

    Examples
    --------
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

    def _starts_from_line(self, n: int) -> bool:
        is_small = n <= _MAX_LINEAR_ROWS and n * self.n_features_in_ <= _MAX_LINEAR_VALUES
        return self.loss == "squared_error" and is_small

    def _first_trees(self, run: Rounds) -> tuple[Trees, Float64]:
        if not self._starts_from_line(run.y.shape[-1]):
            return super()._first_trees(run)
        if run.offset is not None:
            run = run.anew(y=run.y - run.offset.reshape(run.y.shape))
        n_steps = _N_LINEAR_STEPS if self.max_leaf_nodes == "auto" else self.max_leaf_nodes
        return linear_start(run, n_steps)

    def _loss(self) -> Any:
        for name, of in (("quantile", "quantile"), ("power", "tweedie")):
            if getattr(self, name) is not None and self.loss != of:
                raise ValueError(
                    f'{name}={getattr(self, name)!r} takes loss="{of}", got {self.loss!r}'
                )
        n, quantiles = self._n_targets, self._quantiles()
        for what, is_given in (
            ("loss=CustomLoss(...)", isinstance(self.loss, CustomLoss)),
            ("quantile=[...]", len(quantiles) > 1),
        ):
            if n > 1 and is_given:
                raise ValueError(_takes_one(what, f"y of {n} columns"))
        if len(quantiles) > 1:
            losses = [QuantileLoss(quantile=one) for one in quantiles]
            return SeveralLosses.each(losses, self._loss_shares)
        one = self._loss_of_one(*quantiles)
        return one if n == 1 else SeveralLosses.each([one] * n, self._loss_shares)

    @property
    def _n_targets(self) -> int:
        return int(self.__dict__.get("n_outputs_", 1))

    def _slopes(self) -> MonotonicSigns:
        slopes = super()._slopes()
        if slopes is not None and self._loss().n_outputs > 1:
            outputs = f"{self._loss().n_outputs} outputs"
            raise ValueError(_takes_one("monotonic_cst", outputs))
        return slopes

    def _quantiles(self) -> list[float]:
        """The quantiles that are predicted; one for other losses."""
        given = 0.5 if self.quantile is None else self.quantile
        if isinstance(given, Real):
            return [float(given)]
        quantiles = to_array("quantile", given)
        known = quantiles.ndim == 1 and quantiles.dtype.kind in "fiu" and len(quantiles) > 0
        if not known or not ((quantiles > 0) & (quantiles < 1)).all():
            raise ValueError(f"quantile must hold numbers between 0 and 1, got {given!r}")
        if not (np.diff(quantiles) > 0).all():
            raise ValueError(f"quantile must hold ascending numbers, got {given!r}")
        return [float(one) for one in quantiles]

    def _loss_of_one(self, quantile: float) -> Loss:
        if isinstance(self.loss, CustomLoss):
            return LossOfFunctions(given=self.loss)
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

    def _targets(self, y: Any) -> NDArray[Any]:
        if self._n_targets == 1:
            return np.asarray(column_or_1d(y), dtype=np.float64)
        known = np.asarray(check_array(y, input_name="y", ensure_2d=False), dtype=np.float64)
        if known.shape[1:] != (self._n_targets,):
            raise ValueError(
                f"y must have shape (n, {self._n_targets}), as in the fit, got {known.shape}"
            )
        return known.T

    def _given_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _link(self) -> Link:
        if self._loss().is_log:
            return "exp"
        return "sorted" if self._n_quantiles > 1 else "identity"

    @property
    def _n_quantiles(self) -> int:
        return len(self._quantiles())

    def _build_explanation_fields(self, base: Float64, added: Float64) -> dict[str, Any]:
        parts = super()._build_explanation_fields(base, added)
        if self._n_quantiles > 1:
            parts["output_names"] = [f"quantile {one:g}" for one in self._quantiles()]
        return parts

    @snapshot_method
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Give R2, of several outputs on average.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,), or (n, n_outputs)
            Their numbers.
        sample_weight : array-like of shape (n,), or None
            Weight of each row.

        Returns
        -------
        float
            1 for numbers that are predicted exactly, 0 for their mean.

        Raises
        ------
        ValueError
            If several quantiles are predicted, none of which is the prediction.
        """
        if self._n_quantiles > 1:
            raise ValueError(
                "score is that of one prediction, and several quantiles are predicted: use "
                "sklearn.metrics.mean_pinball_loss for each column of predict(X)"
            )
        return float(super().score(X, y, sample_weight))

    def _answers(self, scores: Float64) -> NDArray[Any]:
        said = columns_of(np.exp(scores) if self._loss().is_log else scores)
        return np.sort(said, axis=1) if self._n_quantiles > 1 else said

    def _told_errors(self, scores: Float64, errors: Float64) -> Float64:
        errors = np.exp(scores) * errors if self._loss().is_log else errors
        told = super()._told_errors(scores, errors)
        if self._n_quantiles == 1:
            return told
        return np.take_along_axis(told, np.argsort(scores.T, axis=1, kind="stable"), axis=1)
