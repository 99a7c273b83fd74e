"""Scores of the rounds of boosting while they are made, early stopping, and callbacks."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from certree._core import compute_mean_ranking_loss, count_rounds_without_gain
from certree.ensembles.rounds import UNWATCHED, BoostingRun, Watch, advance
from certree.ensembles.scored_sample import (
    compute_key_limits,
    count_classes,
    count_sampled_rows,
    draw_smallest_keys,
    find_sampled_rows,
    get_strata,
)
from certree.interface.arrays import Float64
from certree.interface.parameter_aliases import check_for_unknown_score, expect_positive_label
from certree.interface.signatures import COUNT, NONNEGATIVE
from certree.rows.training import Training

# early_stopping="auto" means True for more rows than this, as in scikit-learn.
_MANY_ROWS = 10_000

# Function from the raw predictions of all rows, (n_outputs, n), to a number, the higher the better.
Score = Callable[[Float64], float]

# What ended the rounds of a fit.
StopReason = Literal["max_iter", "early_stopping", "callbacks", "max_time"]

PARAMETERS: dict[str, list[Any]] = {
    "early_stopping": ["boolean", StrOptions({"auto"})],
    "scoring": [str, callable, None],
    "validation_fraction": [Interval(RealNotInt, 0, 1, closed="neither"), COUNT, None],
    "n_iter_no_change": [COUNT],
    "tol": [NONNEGATIVE],
}


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """State of a fit after a round of boosting, as callbacks get it.

    Parameters
    ----------
    n_iter : int
        Number of rounds so far.
    train_score, validation_score : ndarray of shape (n_iter + 1,) or (0,)
        Scores of the training rows and of the validation set, before the first round and after each
        round; the higher the better, so a loss is negated. `validation_score` is empty, (0,), if
        there is no validation set.
    """

    n_iter: int
    train_score: Float64
    validation_score: Float64


Callback = Callable[[Iteration], Any]


def check_callbacks(callbacks: Any) -> Sequence[Callback]:
    """Check the parameter `callbacks` of `fit`, and return it as a sequence; None becomes ().

    Raise TypeError unless it is a list or tuple of callables, or None.
    """
    if callbacks is None:
        return ()
    if not isinstance(callbacks, list | tuple) or not all(map(callable, callbacks)):
        remedy = "pass it in a list" if callable(callbacks) else "pass functions of an Iteration"
        raise TypeError(
            f"callbacks must be a list of callables or None, got {callbacks!r}: {remedy}"
        )
    return callbacks


def stops_early(early_stopping: Any, n: int) -> bool:
    """Return whether a fit to n rows stops early: `early_stopping`, or n > 10,000 if it is "auto"."""
    return n > _MANY_ROWS if isinstance(early_stopping, str) else bool(early_stopping)


@dataclass(slots=True)
class Evaluation:
    """Score the rounds of a fit after they are made, call callbacks, and decide when to stop.

    A run is a `BoostingRun`: a sequence of boosting rounds with its own seed, on the training rows
    followed by the validation set. The last score function decides when to stop: that of the
    validation set, if there is one. All arguments are optional: by default no round is scored, and
    nothing ends the fit.

    Parameters
    ----------
    scored : sequence of callables
        Functions from the raw predictions of all rows, (n_outputs, n), to a score, the higher the
        better: the first scores the training rows; the second, if there is a validation set, scores
        that. Empty if rounds are not scored.
    is_wanted : bool
        Whether the fit sets `train_score_` and `validation_score_`.
    is_loss : bool
        Whether `scored` are negated losses; False: those of a scorer of scikit-learn.
    is_custom : bool
        Whether the loss is written in Python, so that the C++ core cannot compute it.
    n_runs : int
        Number of runs whose scores are averaged.
    n_iter_no_change : int
        The fit stops after so many rounds without an improvement, and drops the rounds after the
        best one. 0: no early stopping; the fit keeps all rounds.
    tol : float
        Smallest improvement that counts.
    callbacks : sequence of callables
        Called with an `Iteration` after each round; the fit stops if one returns True.
    scores : tuple of two lists of float
        Results so far, before the first round and after each one: of the first function in
        `scored`, and of the second. Both are empty at first; the constructor need not get them.
    stop_reason : {"max_iter", "early_stopping", "callbacks", "max_time"}
        What ends the fit: "max_iter" as long as nothing else does. Early stopping and callbacks set
        it after a round, and the caller sets "max_time".
    """

    scored: Sequence[Score] = ()
    is_wanted: bool = False
    is_loss: bool = True
    is_custom: bool = False
    n_runs: int = 1
    n_iter_no_change: int = 0
    tol: float = 0.0
    callbacks: Sequence[Callback] = ()
    scores: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    stop_reason: StopReason = "max_iter"

    @property
    def is_over(self) -> bool:
        """Whether the fit must stop now, by early stopping, a callback or the caller."""
        return self.stop_reason != "max_iter"

    @property
    def may_drop_rounds(self) -> bool:
        """Whether early stopping is on or there are callbacks, so that fewer rounds may be kept.

        Early stopping drops rounds after the best one; a callback ends the fit.
        """
        return self.n_iter_no_change > 0 or bool(self.callbacks)

    @property
    def needs_single_rounds(self) -> bool:
        """Whether the C++ core may make only one round per call, as Python code must run after each."""
        return bool(self.callbacks) or (bool(self.scored) and not self.is_scored_by_core)

    @property
    def seconds_at_once(self) -> float:
        """Time of the rounds that may be made in one call, if nothing else limits their number."""
        return inf

    @property
    def is_scored_by_core(self) -> bool:
        """Whether the C++ core can compute the scores.

        It can if the scores are losses and not those of a scorer, the loss is no `CustomLoss`, and
        there is a single run, not the mean of several.
        """
        return self.is_loss and not self.is_custom and self.n_runs == 1

    @property
    def progress_text(self) -> str:
        """Text for the progress bar: the last score by which the fit may stop, as "loss 0.12".

        A score of a scorer is shown as "score 0.12". The text is empty if rounds are not scored.
        """
        if not self._stopping_scores:
            return ""
        score = self._stopping_scores[-1]
        return f"loss {-score:.4g}" if self.is_loss else f"score {score:.4g}"

    def get_recorded_scores(self) -> dict[str, Float64]:
        """Return `train_score_` and `validation_score_`, each (n_rounds + 1,), in a dict by name.

        `validation_score_` is missing without a validation set. The dict is empty if rounds were
        not scored, or `is_wanted` is False.
        """
        names = "train_score_", "validation_score_"
        pairs = zip(names, self.scores, strict=True)
        return {name: np.array(scores) for name, scores in pairs if scores and self.is_wanted}

    @property
    def _stopping_scores(self) -> list[float]:
        """Scores so far by which early stopping decides.

        They are those of the validation set, or of the training rows if there is no validation set.
        """
        return self.scores[max(len(self.scored) - 1, 0)]

    def record_previous_scores(self, stages: Iterable[Float64]) -> None:
        """Append the scores before the first new round and after each previous round.

        Call it before `advance`. stages: raw predictions of all rows, (n_outputs, n) each, in this
        order. They are not computed if rounds are not scored.
        """
        for raw in stages if self.scored else ():
            self._append_scores(raw)

    def advance(self, runs: Sequence[BoostingRun], first: int, last: int) -> int:
        """Make rounds first, ..., last - 1 of all runs, score them, and decide whether to stop.

        The scores are appended to `scores`; then callbacks are called, and `stop_reason` is set if
        the fit must end. runs: the runs of the model (one for each seed), with `first` rounds each;
        they are changed. Return the number of rounds that they have then, less than `last` if the
        C++ core stopped early. Without scores by the C++ core only the state after the last round
        is scored, so callers pass ``last = first + 1`` if `needs_single_rounds`.
        """
        scores = self._make_rounds(runs, first, last)
        if not self.scored:
            return last
        if self.is_scored_by_core:
            for row in scores:
                self._append(row)
            last = first + len(scores)
        else:
            self._append_scores(self._predict(runs))
        self._decide(last)
        return last

    def _make_rounds(self, runs: Sequence[BoostingRun], first: int, last: int) -> Float64:
        """Make rounds first, ..., last - 1 of all runs, and return their scores, (n_rounds, 2).

        The scores are negated mean losses of training rows and validation set, and have no rows if
        the C++ core does not score rounds; see `certree.ensembles.rounds.advance`.
        """
        return advance(runs, first, last, self._get_watch())

    def _predict(self, runs: Sequence[BoostingRun]) -> Float64:
        """Return the raw predictions of all rows after the last round, (n_outputs, n).

        They are averaged over the runs (sequences of rounds with different seeds), and are the
        argument of the functions in `scored`.
        """
        return average_scores(runs)

    def record_scores(self, raw: Float64, n_iter: int) -> None:
        """Append the scores of a round that was made by other code, and decide whether to stop.

        Callbacks are called, and `stop_reason` is set if the fit must end. raw: raw predictions of
        all rows, (n_outputs, n), or whatever the functions in `scored` accept; n_iter: number of
        rounds so far, this one included.
        """
        self._append_scores(raw)
        self._decide(n_iter)

    def _append_scores(self, raw: Float64) -> None:
        """Compute the scores of the training rows and of the validation set; append them to `scores`.

        raw: raw predictions of all rows, (n_outputs, n), to which the functions in `scored` are
        applied.
        """
        self._append([score(raw) for score in self.scored])

    def _decide(self, n_iter: int) -> None:
        """Set `stop_reason` if early stopping ends the fit, and call the callbacks.

        It ends the fit after `n_iter_no_change` rounds without an improvement by more than `tol`; 0
        turns it off. n_iter: number of rounds so far.
        """
        n_without_gain = count_rounds_without_gain(np.array(self._stopping_scores), self.tol)
        if 0 < self.n_iter_no_change <= n_without_gain:
            self.stop_reason = "early_stopping"
        if self.callbacks:
            self._call(n_iter)

    def count_kept_rounds(self, first: int, n_made: int) -> int:
        """Return how many rounds the fitted model keeps.

        first: number of previous rounds, which are always kept; n_made: number of rounds that were
        made, previous ones included. Return `n_made` without early stopping, else the number of
        rounds with the best score, at least 1.
        """
        if not self.n_iter_no_change:
            return n_made
        least = max(first, 1)
        scores = np.array(self._stopping_scores[least : n_made + 1])
        return least + int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))

    def _get_watch(self) -> Watch:
        """Return how the C++ core scores rounds and stops early, as a tuple of four.

        They are: whether it does so, `n_iter_no_change`, `tol`, and the scores so far that decide,
        (n_rounds + 1,). The tuple is `UNWATCHED`, (False, 0, 0.0, empty), if the C++ core has to do
        neither.
        """
        if not (self.scored and self.is_scored_by_core):
            return UNWATCHED
        return True, self.n_iter_no_change, self.tol, np.array(self._stopping_scores)

    def _append(self, row: Iterable[float]) -> None:
        """Append the scores after one round to `scores`.

        row: score of the training rows, then that of the validation set, which is ignored if there
        is no validation set.
        """
        for scores, score in zip(self.scores[: len(self.scored)], row, strict=False):
            scores.append(float(score))

    def _call(self, n_iter: int) -> None:
        """Call all callbacks after round `n_iter`, and set `stop_reason` if one of them returns True.

        Raise TypeError if one returns anything but True, False or None.
        """
        now = Iteration(n_iter, *(np.array(scores) for scores in self.scores))
        for callback in self.callbacks:  # Call all of them, as each may keep a record.
            wants_end = callback(now)
            if not isinstance(wants_end, bool | np.bool_ | None):
                raise TypeError(
                    "callbacks must return True to stop the fit, or False or None to continue, got "
                    f"{wants_end!r}"
                )
            if wants_end and not self.is_over:
                self.stop_reason = "callbacks"


def average_scores(runs: Sequence[BoostingRun], columns: Any = ...) -> Float64:
    """Return the mean of the raw predictions of several runs on the same rows, (n_outputs, n).

    runs: sequences of rounds with different seeds; columns: indices of the rows to return, among
    the training rows followed by the validation set; by default all.
    """
    if len(runs) == 1:
        return runs[0].scores[:, columns]
    mean: Float64 = np.mean([run.scores[:, columns] for run in runs], axis=0)
    return mean


def make_loss_scores(run: BoostingRun) -> list[Score]:
    """Make functions for the negated mean loss of the training rows and of the validation set.

    run: a boosting run, whose rows are the training rows followed by the validation set, if there
    is one. Return one function, or two with a validation set; each takes the raw predictions of all
    n rows, (n_outputs, n), and returns a float, the higher the better.
    """
    loss = run.settings.loss

    def score(rows: slice, raw: Float64) -> float:
        """Return the negated mean loss of some rows of a run, or NDCG - 1 for rankings.

        `run`, an argument of the enclosing function, has the targets and weights of all n rows, and
        its settings have the `loss`. rows: slice of these rows, the training rows or the validation
        set; raw: raw predictions of all n rows, (n_outputs, n).
        """
        weight = None if run.weight is None else run.weight[rows]
        raw = np.ascontiguousarray(raw[:, rows])
        if run.query is not None:
            ranked = run.query[rows], *loss.cutoffs
            return -compute_mean_ranking_loss(ranked, run.y[rows], raw[0], weight)
        return -loss.compute_mean(run.y[..., rows], raw, weight)

    n, n_all = len(run.keys), run.scores.shape[1]
    return [partial(score, rows) for rows in (slice(n), slice(n, n_all)) if rows.start != n_all]


def get_scorer(model: Any) -> Callable[..., Any] | None:
    """Return ``scorer(model, X, y)`` for a model's parameter `scoring`; None for "loss".

    `scoring` is a scorer itself, the name of a scorer of scikit-learn, or None for the method
    `model.score`. Raise ValueError if it is another name, or needs the class 1, which y lacks.
    """
    if isinstance(model.scoring, str) and model.scoring == "loss":
        return None
    check_for_unknown_score(model.scoring)
    expect_positive_label(model.scoring, getattr(model, "classes_", None))
    from sklearn.metrics import check_scoring  # takes a while, and most fits need no scorer

    scorer: Callable[..., Any] = check_scoring(model, model.scoring)
    return scorer


def make_scorer_scores(
    model: Any,
    scorer: Callable[..., Any],
    run: BoostingRun,
    training: Training,
    validation: Training | None,
) -> list[Score]:
    """Make functions that score the training rows and the validation set by a scorer.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted, with its `_seed`, which draws the rows.
    scorer : callable
        ``scorer(model, X, y)``, as scikit-learn's.
    run : BoostingRun
        The run on the training rows, followed by the validation set: their keys and weights.
    training : Training
        Training rows; if there are more than 10,000, the scorer gets about 10,000 random ones.
    validation : Training or None
        Validation set.

    Returns
    -------
    list of callables
        One function, or two with a validation set; each takes the raw predictions of all n rows,
        (n_outputs, n), training rows before the validation set, and returns a float.
    """
    n, columns, scored = len(training.y), np.arange(len(training.y)), training
    n_classes = count_strata(model)
    classes = get_strata(training.y, n_classes)
    n_sampled = count_sampled_rows(count_classes(classes, n_classes))
    if n_sampled.sum() < n:
        sample = draw_smallest_keys(run.keys, classes, model._seed, n_sampled)
        limits = compute_key_limits(sample, n_sampled)
        columns = find_sampled_rows(run.keys, classes, model._seed, limits)
        scored = training.take(columns)
    sets = [(scored, columns, run.weight)]
    if validation is not None:
        sets.append((validation, n + np.arange(len(validation.y)), None))
    return [_make_scorer_score(model, scorer, *one) for one in sets]


def count_strata(model: Any) -> int:
    """Return the number of classes by which the sample of rows for a scorer is stratified.

    model: boosted trees. It is 1 (no strata) for numeric targets and for several targets.
    """
    n_classes = getattr(model, "n_classes_", 1)
    return n_classes if isinstance(n_classes, int) else 1


class _NoFeatures:
    """Placeholder for the argument X of a scorer of scikit-learn that does not read features."""


@dataclass(frozen=True, slots=True, eq=False)
class ScorerScore:
    """Function that scores rows by a scorer of scikit-learn.

    The scorer gets a copy of the model that predicts from raw predictions that are known already.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    scorer : callable
        ``scorer(model, X, y)``.
    y : ndarray of shape (n_scored,), or (n_scored, n_targets)
        Classes or numbers of the rows that are scored.
    weight : ndarray of float64, shape (n_scored,), or None
        Their weights; None: 1.
    columns : ndarray of intp, shape (n_scored,)
        Where the raw predictions of all n rows, (n_outputs, n), have these rows: their columns.
    X : ndarray or CSR array of shape (n_scored, p), or None
        Encoded features of these rows. None: the scorer does not read them; it gets the rows in an
        order that depends on their predictions, targets and weights alone.
    """

    model: Any
    scorer: Callable[..., Any]
    y: NDArray[Any]
    weight: Float64 | None
    columns: NDArray[np.intp]
    X: Any = None

    @classmethod
    def from_named_scorer(
        cls,
        model: Any,
        scorer: Callable[..., Any],
        y: NDArray[Any],
        weight: Float64 | None,
        columns: NDArray[np.intp],
    ) -> Self:
        """Make the function for a scorer that reads no features, with rows sorted by target and weight.

        Sums over the rows then do not depend on their order. model: the model that is fitted;
        scorer: ``scorer(model, X, y)``; y: class codes or numbers, (n_scored,) or (n_scored,
        n_targets); weight: weights of the rows, (n_scored,), None: 1; columns: columns of these
        rows in the raw predictions, (n_outputs, n), that the function gets, (n_scored,).
        """
        if weight is not None and (weight == 1).all():  # other blocks may have none
            weight = None
        order = np.lexsort((np.ones(len(y)) if weight is None else weight, *np.atleast_2d(y.T)))
        weight = None if weight is None else weight[order]
        return cls(model, scorer, model._decode_targets(y[order]), weight, columns[order])

    def __call__(self, raw: Float64) -> float:
        """Return the score of the rows.

        raw: raw predictions of all n rows, of the training rows and then of the validation set,
        (n_outputs, n). Raise ValueError if the scorer predicts other rows, or does not return a
        finite number.
        """
        judged, known = copy(self.model), np.ascontiguousarray(raw[:, self.columns])
        X, y, weight = self.X, self.y, self.weight
        if X is None:
            order = np.lexsort(known)
            X, y, known = _NoFeatures(), y[order], known[:, order]
            weight = None if weight is None else weight[order]

        def get_raw_predictions(rows: Any) -> Float64:
            """Return the raw predictions of the scored rows, (n_outputs, n_scored).

            They are `known`, a variable of the enclosing method: the columns of its `raw` that
            belong to these rows. A copy of the model calls this function instead of
            `_compute_scores`. rows: the object `X` itself, which stands for the scored rows. Raise
            ValueError for any other object.
            """
            if rows is not X:
                raise ValueError(
                    "scoring must predict exactly the rows that it gets, got a scorer that copies, "
                    "selects or transforms rows: pass X unchanged to predict, or use scoring='loss'"
                )
            return known

        judged._compute_scores = get_raw_predictions
        weights = {} if weight is None else {"sample_weight": weight}
        value = self.scorer(judged, X, y, **weights)
        if not isinstance(value, Real | Integral):
            raise ValueError(
                f"scoring must return a number, got {value!r}: return a float, the higher the better"
            )
        if not np.isfinite(number := float(value)):
            raise ValueError(
                f"scoring must return a finite number, got {number}, by which rounds cannot be "
                "compared: use another scorer"
            )
        return number


def _make_scorer_score(
    model: Any,
    scorer: Callable[..., Any],
    rows: Training,
    columns: NDArray[np.intp],
    weight: Float64 | None,
) -> ScorerScore:
    """Make a function that scores rows in memory.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    scorer : callable
        ``scorer(model, X, y)``, as scikit-learn's.
    rows : Training
        The n_scored rows.
    columns : ndarray of intp, shape (n_scored,)
        Columns of these rows in the raw predictions of all n rows, (n_outputs, n), which the
        returned function gets.
    weight : ndarray of float64, or None
        Weights of all training rows with a mean of 1, the unit of out-of-core fits, read if the
        model's `scoring` is a name; None: the weights of `rows` are taken.
    """
    if isinstance(model.scoring, str):
        weight = rows.weight if weight is None else weight[columns]
        return ScorerScore.from_named_scorer(model, scorer, rows.y, weight, columns)
    y = model._decode_targets(rows.y)
    return ScorerScore(model, scorer, y, rows.weight, columns, rows.features.matrix)
