"""Scores of the rounds of boosting while they are made, early stopping, and callbacks."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from certree._core import compute_mean_ranking_loss, count_rounds_without_gain
from certree.ensembles.rounds import UNWATCHED, Rounds, Watch, advance
from certree.interface.arrays import Float64
from certree.interface.signatures import COUNT, NONNEGATIVE
from certree.rows.folds import split_by_content
from certree.rows.training import Training

# early_stopping="auto" means True for more rows than this, as in scikit-learn.
_MANY_ROWS = 10_000
# A scorer gets at most so many training rows, as in scikit-learn.
_SCORED_ROWS = 10_000

# Function from the scores of all rows, (n_outputs, n), to a number, the higher the better.
Score = Callable[[Float64], float]

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
        round; the higher the better, so a loss is negated. Empty if there is no validation set.
    """

    n_iter: int
    train_score: Float64
    validation_score: Float64


Callback = Callable[[Iteration], Any]


def checked_callbacks(callbacks: Any) -> Sequence[Callback]:
    """Check the parameter `callbacks` of `fit`, and return it as a sequence; None becomes ().

    Raise TypeError unless it is a list or tuple of callables, or None.
    """
    if callbacks is None:
        return ()
    if not isinstance(callbacks, list | tuple) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks must be a list of callables or None, got {callbacks!r}")
    return callbacks


def stops_early(early_stopping: Any, n: int) -> bool:
    """Return whether a fit to n rows stops early: `early_stopping`, or n > 10,000 if it is "auto"."""
    return n > _MANY_ROWS if isinstance(early_stopping, str) else bool(early_stopping)


@dataclass(slots=True)
class Evaluation:
    """Scores of the rounds of a fit, the decision to stop, and calls of callbacks.

    Parameters
    ----------
    scored : sequence of callables
        Functions from the scores of all rows, (n_outputs, n), to a score, the higher the better:
        one for the training rows and, if there is one, one for the validation set. Empty if rounds
        are not scored.
    is_wanted : bool
        Whether the fit sets `train_score_` and `validation_score_`.
    of_loss : bool
        Whether the scores are negated losses.
    is_custom : bool
        Whether the loss is written in Python, so that the core cannot compute it.
    n_runs : int
        Number of runs whose scores are averaged.
    n_iter_no_change : int
        The fit stops after so many rounds without an improvement, and drops the rounds after the
        best one. 0: the fit makes and keeps all rounds.
    tol : float
        Smallest improvement that counts.
    callbacks : sequence of callables
        Called with an `Iteration` after each round; the fit stops if one returns True.
    scores : tuple of two lists of float
        Scores so far of the training rows and of the validation set.
    is_over : bool
        Whether the fit is to stop.
    """

    scored: Sequence[Score] = ()
    is_wanted: bool = False
    of_loss: bool = True
    is_custom: bool = False
    n_runs: int = 1
    n_iter_no_change: int = 0
    tol: float = 0.0
    callbacks: Sequence[Callback] = ()
    scores: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    is_over: bool = False

    @property
    def decides(self) -> bool:
        """Whether scores or callbacks may change the number of rounds."""
        return self.n_iter_no_change > 0 or bool(self.callbacks)

    @property
    def one_by_one(self) -> bool:
        """Whether rounds are made one at a time, as callbacks or scores in Python follow each."""
        return bool(self.callbacks) or (bool(self.scored) and not self.by_core)

    @property
    def by_core(self) -> bool:
        """Whether the C++ core computes the scores while it makes several rounds."""
        return self.of_loss and not self.is_custom and self.n_runs == 1

    @property
    def note(self) -> str:
        """Text for the progress bar: last score of the validation set, or else of the training rows."""
        if not self._judging:
            return ""
        score = self._judging[-1]
        return f"loss {-score:.4g}" if self.of_loss else f"score {score:.4g}"

    def recorded(self) -> dict[str, Float64]:
        """Return `train_score_` and `validation_score_`, each (n_rounds + 1,), in a dict by name.

        Scores are left out that do not exist, and all of them if they are not wanted.
        """
        names = "train_score_", "validation_score_"
        pairs = zip(names, self.scores, strict=True)
        return {name: np.array(scores) for name, scores in pairs if scores and self.is_wanted}

    @property
    def _judging(self) -> list[float]:
        """Scores so far that decide when to stop.

        They are those of the validation set, or else of the training rows.
        """
        return self.scores[max(len(self.scored) - 1, 0)]

    def begin(self, stages: Iterable[Float64]) -> None:
        """Append the scores before the first new round, and after each previous round.

        stages: scores of all rows, (n_outputs, n), before the first round and after each previous one.
        """
        for said in stages if self.scored else ():
            self._append_scores(said)

    def advance(self, runs: Sequence[Rounds], first: int, last: int) -> int:
        """Make rounds first, ..., last - 1 of all runs, score them, and decide whether to stop.

        runs: runs that are averaged, after round first - 1. Return the number of rounds after the
        last one that was made, which is less than `last` if the fit stops early.
        """
        scores = advance(runs, first, last, self._watch())
        if not self.scored:
            return last
        if self.by_core:
            for row in scores:
                self._append(row)
            last = first + len(scores)
        else:
            self._append_scores(scores_together(runs))
        self._look(last)
        return last

    def take(self, said: Float64, n_iter: int) -> None:
        """Append the scores of a round that was made elsewhere, and decide whether to stop.

        said: scores of all rows, (n_outputs, n), or whatever `scored` takes; n_iter: number of
        rounds so far.
        """
        self._append_scores(said)
        self._look(n_iter)

    def _append_scores(self, said: Float64) -> None:
        """Append the scores of the training rows and of the validation set after a round.

        said: scores of all rows, (n_outputs, n), from which the functions in `scored` compute them.
        """
        self._append([score(said) for score in self.scored])

    def _look(self, n_iter: int) -> None:
        """Set `is_over` by the scores so far, and call the callbacks.

        n_iter: number of rounds so far.
        """
        n_without_gain = count_rounds_without_gain(np.array(self._judging), self.tol)
        self.is_over = 0 < self.n_iter_no_change <= n_without_gain
        if self.callbacks:
            self._call(n_iter)

    def best(self, first: int, made: int) -> int:
        """Return how many rounds are kept.

        first: number of previous rounds, which are all kept; made: number of rounds with the new
        ones. Without early stopping this is `made`, else the number up to the best round, at least
        1.
        """
        if not self.n_iter_no_change:
            return made
        least = max(first, 1)
        scores = np.array(self._judging[least : made + 1])
        return least + int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))

    def _watch(self) -> Watch:
        """Return how the core scores rounds and stops, see `Watch`; `UNWATCHED` if it does neither."""
        if not (self.scored and self.by_core):
            return UNWATCHED
        return True, self.n_iter_no_change, self.tol, np.array(self._judging)

    def _append(self, row: Iterable[float]) -> None:
        """Append the scores after a round.

        row: score of the training rows and, if there is one, of the validation set; further entries
        are ignored.
        """
        for scores, score in zip(self.scores[: len(self.scored)], row, strict=False):
            scores.append(float(score))

    def _call(self, n_iter: int) -> None:
        """Call all callbacks after round `n_iter`, and set `is_over` if one of them returns True.

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
            self.is_over |= bool(wants_end)


def scores_together(runs: Sequence[Rounds]) -> Float64:
    """Return the mean of the scores of several runs on the same rows, (n_outputs, n)."""
    if len(runs) == 1:
        return runs[0].scores
    mean: Float64 = np.mean([run.scores for run in runs], axis=0)
    return mean


def scores_by_loss(run: Rounds) -> list[Score]:
    """Make functions that compute the negated mean loss of the training rows and of the validation set.

    run: run on training rows, followed by the validation set if there is one. Return one or two
    functions from the scores of all rows, (n_outputs, n), to a float.
    """
    loss = run.settings.loss

    def score(rows: slice, said: Float64) -> float:
        """Return the negated mean loss of some rows of `run` of the enclosing function.

        rows: which rows; said: scores of all rows by the trees so far, (n_outputs, n).
        """
        weight = None if run.weight is None else run.weight[rows]
        said = np.ascontiguousarray(said[:, rows])
        if run.query is not None:
            ranked = run.query[rows], *loss.cutoffs
            return -compute_mean_ranking_loss(ranked, run.y[rows], said[0], weight)
        return -loss.compute_mean(run.y[..., rows], said, weight)

    n, n_all = len(run.keys), run.scores.shape[1]
    return [partial(score, rows) for rows in (slice(n), slice(n, n_all)) if rows.start != n_all]


def scorer_of(model: Any) -> Callable[..., Any] | None:
    """Return the scorer of a model's parameter `scoring`, ``scorer(model, X, y)``; None for "loss"."""
    if isinstance(model.scoring, str) and model.scoring == "loss":
        return None
    from sklearn.metrics import check_scoring  # takes a while, and most fits need no scorer

    scorer: Callable[..., Any] = check_scoring(model, model.scoring)
    return scorer


def scores_by_scorer(
    model: Any, scorer: Callable[..., Any], training: Training, judges: Training | None
) -> list[Score]:
    """Make functions that score the training rows and the validation set by a scorer of scikit-learn.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    scorer : callable
        ``scorer(model, X, y)``, as `scorer_of` returns it.
    training : Training
        Training rows; of more than 10,000 rows 10,000 are drawn.
    judges : Training or None
        Validation set.

    Returns
    -------
    list of callables
        One or two functions from the scores of all rows, (n_outputs, n), to a float.
    """
    places: Any = slice(len(training.y))
    scored = training
    if len(training.y) > _SCORED_ROWS:
        random_state = np.random.RandomState(model._seed)
        rows = training.features.matrix, training.y, _SCORED_ROWS
        share = split_by_content(*rows, random_state, training.weight, training.draw_order)
        places, scored = share.validation, training.take(share.validation)
    found = [_by_scorer(model, scorer, scored, places)]
    if judges is not None:
        found.append(_by_scorer(model, scorer, judges, slice(len(training.y), None)))
    return found


def _by_scorer(model: Any, scorer: Callable[..., Any], rows: Training, places: Any) -> Score:
    """Make a function that scores rows by a scorer of scikit-learn.

    The scorer gets a copy of the model that takes scores as they are given, so that no row is
    routed through the trees again.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    scorer : callable
        ``scorer(model, X, y)``.
    rows : Training
        Rows that are scored.
    places : slice or ndarray
        Their indices among the columns of the scores of all rows.

    Returns
    -------
    callable
        Function from the scores of all rows, (n_outputs, n), to a float.
    """
    table, y = rows.features.matrix, model._decode_targets(rows.y)
    weights = {} if rows.weight is None else {"sample_weight": rows.weight}

    def score(said: Float64) -> float:
        """Return the score of `rows` of the enclosing function.

        said: scores of all rows by the trees so far, (n_outputs, n). Raise ValueError if the scorer
        predicts other rows, or returns no finite number.
        """
        judged, known = copy(model), np.ascontiguousarray(said[:, places])

        def scores_of(X: NDArray[Any]) -> Float64:
            """Return the known scores of X, which must be the table of `rows` itself."""
            if X is not table:
                raise ValueError(
                    "scoring must predict exactly the rows that it gets: scorers that copy, select or "
                    "transform rows are not supported"
                )
            return known

        judged._compute_scores = scores_of
        value = scorer(judged, table, y, **weights)
        if not isinstance(value, Real | Integral):
            raise ValueError(f"scoring must return a number, got {value!r}")
        if not np.isfinite(number := float(value)):
            raise ValueError(
                f"scoring must return a finite number, got {number}: rounds cannot be compared by it"
            )
        return number

    return score
