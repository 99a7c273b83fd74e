"""What rounds of boosting are worth while they are made: their scores, and when to stop."""

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

# Early stopping is "auto" from more rows on, as in scikit-learn.
_MANY_ROWS = 10_000
# A scorer looks at so many of the rows that train, as in scikit-learn.
_SCORED_ROWS = 10_000

# Scores of rows (n_outputs, n) become a number that is the higher the better.
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
    """What a callback is told after a round of boosting.

    Parameters
    ----------
    n_iter : int
        Number of rounds so far.
    train_score, validation_score : ndarray of shape (n_iter + 1,) or (0,)
        Scores so far of the rows that train, and of those that judge, if there are some: entry 0
        before the first round, and the higher the better. The loss is negated.
    """

    n_iter: int
    train_score: Float64
    validation_score: Float64


Callback = Callable[[Iteration], Any]


def checked_callbacks(callbacks: Any) -> Sequence[Callback]:
    """Check what is to be called after each round."""
    if callbacks is None:
        return ()
    if not isinstance(callbacks, list | tuple) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks must be a list of callables or None, got {callbacks!r}")
    return callbacks


def stops_early(early_stopping: Any, n: int) -> bool:
    """Whether a fit to n rows stops early."""
    return n > _MANY_ROWS if isinstance(early_stopping, str) else bool(early_stopping)


@dataclass(slots=True)
class Evaluation:
    """Scores of the rounds of a fit.

    Parameters
    ----------
    scored : sequence of callables
        The scores of the rows that train and, if there are some, of those that judge, by what trees
        say of all of them; none: nobody looks.
    is_wanted : bool
        Whether somebody wants to know them when the fit is done.
    of_loss : bool
        Whether they are losses, negated.
    is_custom : bool
        Whether this loss is one that the core does not know.
    n_runs : int
        Number of runs whose scores are averaged.
    n_iter_no_change : int
        So many rounds without a gain are the last ones, and those behind the best one are dropped; 0:
        all are made and stay.
    tol : float
        What a gain must exceed.
    callbacks : sequence of callables
        Are called after each round; the fit stops if one of them returns True.
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
        """Whether scores have a part in the number of rounds."""
        return self.n_iter_no_change > 0 or bool(self.callbacks)

    @property
    def one_by_one(self) -> bool:
        """Whether each round has to be looked at before the next one is made."""
        return bool(self.callbacks) or (bool(self.scored) and not self.by_core)

    @property
    def by_core(self) -> bool:
        """Whether the core takes the scores while it makes rounds."""
        return self.of_loss and not self.is_custom and self.n_runs == 1

    @property
    def note(self) -> str:
        """The last score of the rows that judge, else of those that train, in words."""
        if not self._judging:
            return ""
        score = self._judging[-1]
        return f"loss {-score:.4g}" if self.of_loss else f"score {score:.4g}"

    def recorded(self) -> dict[str, Float64]:
        """Scores that somebody wants to know, by the names of a fit's attributes."""
        names = "train_score_", "validation_score_"
        pairs = zip(names, self.scores, strict=True)
        return {name: np.array(scores) for name, scores in pairs if scores and self.is_wanted}

    @property
    def _judging(self) -> list[float]:
        return self.scores[max(len(self.scored) - 1, 0)]

    def begin(self, stages: Iterable[Float64]) -> None:
        """Score what trees say before the first new round, and after each of those before."""
        for said in stages if self.scored else ():
            self._append_scores(said)

    def advance(self, runs: Sequence[Rounds], first: int, last: int) -> int:
        """Make rounds first, ..., last - 1 of some runs, or less of them; returns where it ended."""
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
        """Score what is said after a round that somebody else has made."""
        self._append_scores(said)
        self._look(n_iter)

    def _append_scores(self, said: Float64) -> None:
        self._append([score(said) for score in self.scored])

    def _look(self, n_iter: int) -> None:
        """See whether rounds are over, and let others see, too."""
        n_without_gain = count_rounds_without_gain(np.array(self._judging), self.tol)
        self.is_over = 0 < self.n_iter_no_change <= n_without_gain
        if self.callbacks:
            self._call(n_iter)

    def best(self, first: int, made: int) -> int:
        """How many rounds stay: those up to the best one, but all of the fit before."""
        if not self.n_iter_no_change:
            return made
        least = max(first, 1)
        scores = np.array(self._judging[least : made + 1])
        return least + int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))

    def _watch(self) -> Watch:
        if not (self.scored and self.by_core):
            return UNWATCHED
        return True, self.n_iter_no_change, self.tol, np.array(self._judging)

    def _append(self, row: Iterable[float]) -> None:
        for scores, score in zip(self.scores[: len(self.scored)], row, strict=False):
            scores.append(float(score))

    def _call(self, n_iter: int) -> None:
        now = Iteration(n_iter, *(np.array(scores) for scores in self.scores))
        for callback in self.callbacks:  # all of them, as each may keep a record
            wants_end = callback(now)
            if not isinstance(wants_end, bool | np.bool_ | None):
                raise TypeError(
                    "callbacks must return True to end the fit, or False or None to go on, got "
                    f"{wants_end!r}"
                )
            self.is_over |= bool(wants_end)


def scores_together(runs: Sequence[Rounds]) -> Float64:
    """What runs whose trees are averaged say, (n_outputs, n)."""
    if len(runs) == 1:
        return runs[0].scores
    mean: Float64 = np.mean([run.scores for run in runs], axis=0)
    return mean


def scores_by_loss(run: Rounds) -> list[Score]:
    """Negated mean losses of the rows of a run that train, and of those that judge."""
    loss = run.settings.loss

    def score(rows: slice, said: Float64) -> float:
        weight = None if run.weight is None else run.weight[rows]
        said = np.ascontiguousarray(said[:, rows])
        if run.query is not None:
            ranked = run.query[rows], *loss.depths
            return -compute_mean_ranking_loss(ranked, run.y[rows], said[0], weight)
        return -loss.mean(run.y[..., rows], said, weight)

    n, n_all = len(run.keys), run.scores.shape[1]
    return [partial(score, rows) for rows in (slice(n), slice(n, n_all)) if rows.start != n_all]


def scorer_of(model: Any) -> Callable[..., Any] | None:
    """What scores a model; None: its loss."""
    if isinstance(model.scoring, str) and model.scoring == "loss":
        return None
    from sklearn.metrics import check_scoring  # takes a while, and most fits need no scorer

    scorer: Callable[..., Any] = check_scoring(model, model.scoring)
    return scorer


def scores_by_scorer(
    model: Any, scorer: Callable[..., Any], training: Training, judges: Training | None
) -> list[Score]:
    """What a scorer says of rows that train, at most 10,000, and of those that judge."""
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
    """What a scorer says of some rows by what trees say of them; none is walked down a tree again."""
    table, y = rows.features.matrix, model._given_targets(rows.y)
    weights = {} if rows.weight is None else {"sample_weight": rows.weight}

    def score(said: Float64) -> float:
        judged, known = copy(model), np.ascontiguousarray(said[:, places])

        def scores_of(X: NDArray[Any]) -> Float64:
            if X is not table:
                raise ValueError("scoring must predict all rows that it is given, as they are")
            return known

        judged._scores = scores_of
        value = scorer(judged, table, y, **weights)
        if not isinstance(value, Real | Integral):
            raise ValueError(f"scoring must return a number, got {value!r}")
        if not np.isfinite(number := float(value)):
            raise ValueError(
                f"scoring must return a finite number, got {number}, by which no round is the best"
            )
        return number

    return score
