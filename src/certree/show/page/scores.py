"""Scores of a model on rows, with 95 % intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from certree.certificates.baseline import Baseline, find_most_frequent
from certree.interface.arrays import Float64
from certree.interface.formatting import format_four_digits
from certree.show.calibration import compute_clopper_pearson_interval
from certree.show.page.evaluated_model import EvaluatedModel

# Half the width of a 95 % interval, in standard errors.
_STANDARD_ERRORS = 1.96
# Number of bootstrap samples.
_N_BOOTSTRAP = 200


@dataclass(frozen=True, slots=True)
class Score:
    """A score measured on some rows, with a 95 % interval for its expected value on new rows.

    Parameters
    ----------
    key : str
        Short name of the score for programs, such as "error".
    name : str
        Name of the score for readers, such as "Error".
    value : float
        The score on the rows.
    low, high : float
        Ends of the interval.
    is_fraction : bool
        Whether the score is a fraction of the rows, which is printed in percent.
    method : str
        How the interval is computed, such as "1.96 standard errors".
    baseline : Baseline or None
        What a constant prediction is called, and its score on the same rows; None: a constant has no
        such score.
    """

    key: str
    name: str
    value: float
    low: float
    high: float
    is_fraction: bool
    method: str
    baseline: Baseline | None = None

    def format_value(self, number: float) -> str:
        """Return the value of the score, or an end of its interval, as text.

        A fraction is written in percent, such as "1.2 %", another number with four digits. number:
        the value or the end.
        """
        return f"{100 * number:.1f} %" if self.is_fraction else format_four_digits(number)

    def __str__(self) -> str:
        """Return name, value, interval and baseline as one line.

        An example is "Error 1.2 % (0.8 % to 1.7 %), always No 6.0 %".
        """
        value, low, high = map(self.format_value, (self.value, self.low, self.high))
        line = f"{self.name} {value} ({low} to {high})"
        if self.baseline is not None:
            line += f", {self.baseline.name} {self.format_value(self.baseline.value)}"
        return line


@dataclass(frozen=True, slots=True, eq=False)
class RowErrors:
    """The loss of each row that a model has predicted, from which its scores are computed.

    The rows themselves are not needed, so losses of batches of rows can be concatenated.

    Parameters
    ----------
    losses : ndarray of float64, shape (n,)
        Log losses (nats) of a classifier; squared errors of a regressor.
    is_wrong : ndarray of bool, shape (n,), or None
        Which rows are misclassified; None for a regressor.
    y : ndarray of float64, shape (n,), or None
        True numbers; None for a classifier.
    class_counts : Counter or None
        Number of rows of each true class; None for a regressor.
    n_known_rows : int or None
        Number of the n rows that also occur in the fit; None if the model has no hashes of the rows
        of its fit.
    """

    losses: Float64
    is_wrong: NDArray[np.bool_] | None
    y: Float64 | None
    class_counts: Counter[Any] | None
    n_known_rows: int | None

    @classmethod
    def from_evaluation(cls, evaluated: EvaluatedModel) -> Self:
        """Return an object with the loss of each row on which a model was evaluated.

        These are log losses, or squared errors of a regressor. evaluated: the fitted model, the rows,
        their targets and their predictions.
        """
        if evaluated.probabilities is not None:
            is_wrong = np.asarray(evaluated.predicted != evaluated.y)
            counts = Counter(evaluated.y.tolist())
            return cls(evaluated.row_losses, is_wrong, None, counts, evaluated.n_known_rows)
        y, predicted = evaluated.y, evaluated.predicted.astype(np.float64)
        return cls((y - predicted) ** 2, None, y, None, evaluated.n_known_rows)

    @classmethod
    def concatenate(cls, batches: Sequence[Self]) -> Self:
        """Return the losses of several batches of rows as one object, in the order of the batches.

        batches: losses of one model on different rows, at least one batch. The field `n_known_rows`,
        the number of rows that occur in the fit, is the sum over the batches in which it is not None,
        and None if it is None in all.
        """

        def concatenate_field(name: str) -> Any:
            values = [getattr(batch, name) for batch in batches]
            return None if values[0] is None else np.concatenate(values)

        counts = [batch.n_known_rows for batch in batches if batch.n_known_rows is not None]
        has_classes = batches[0].class_counts is not None
        return cls(
            concatenate_field("losses"),
            concatenate_field("is_wrong"),
            concatenate_field("y"),
            sum((batch.class_counts or Counter() for batch in batches), Counter())
            if has_classes
            else None,
            sum(counts) if counts else None,
        )

    def scores(self) -> list[Score]:
        """Compute scores from losses of rows: error and log loss, or root mean squared error and R2.

        The first two are those of a classifier, the others those of a regressor.

        Returns
        -------
        list of Score
            The scores in this order, each with a 95 % interval. R2 is left out if all true numbers are
            equal. Error, log loss and root mean squared error have baselines, which predict the
            most frequent class, the frequencies of the classes, or the mean, all of the same rows.
        """
        if self.y is not None:
            return _compute_regression_scores(self.y, self.losses)
        assert self.is_wrong is not None
        assert self.class_counts is not None
        n_wrong, n = float(self.is_wrong.sum()), len(self.losses)
        low, high = compute_clopper_pearson_interval(n_wrong, n)
        always = find_most_frequent(self.class_counts)
        entropy = float(scipy.stats.entropy([*self.class_counts.values()]))
        error = Score(
            "error", "Error", n_wrong / n, low, high, True, "exact, Clopper and Pearson", always
        )
        log_loss = _compute_mean_score("log_loss", "Log loss (nats)", self.losses)
        return [error, replace(log_loss, baseline=Baseline("class frequencies", entropy))]


def compute_scores(evaluated: EvaluatedModel) -> list[Score]:
    """Return the scores of a model on the rows that it was evaluated on, each with its interval.

    evaluated: the model, its rows, and its predictions for them. The scores are error and log loss,
    or root mean squared error and R2 of a regressor. R2 is left out if all true numbers are equal.
    """
    return RowErrors.from_evaluation(evaluated).scores()


def describe_verdict(scores: Sequence[Score]) -> str | None:
    """Return a clause that names the scores in which a constant is at least as good as the model.

    It is such as "the model is no better than a constant in error and log loss", or None if the model
    is better in all. scores: scores of the model on some rows. Those without a baseline, such as R2,
    are ignored; of the others smaller values are better.
    """
    worse = [
        score.name.partition(" (")[0].lower()
        for score in scores
        if score.baseline is not None and score.value >= score.baseline.value
    ]
    return f"the model is no better than a constant in {' and '.join(worse)}" if worse else None


def format_scores(scores: Sequence[Score]) -> list[str]:
    """Format scores as lines of text, one for each score.

    A last line warns if the model is no better than a constant prediction in some score. scores: the
    scores of a model on the same rows.
    """
    verdict = describe_verdict(scores)
    return [*map(str, scores), *([] if verdict is None else [verdict])]


def _compute_mean_score(key: str, name: str, losses: Float64) -> Score:
    """Return the mean of losses as a score, with an interval of 1.96 standard errors to each side.

    key, name: names of the score for programs and readers. losses: loss of each row, (n,), not
    negative, at least one row. A lower end of the interval below 0 is replaced by 0.
    """
    mean, error = float(losses.mean()), _compute_standard_error(losses)
    low, high = max(mean - _STANDARD_ERRORS * error, 0.0), mean + _STANDARD_ERRORS * error
    return Score(key, name, mean, low, high, False, "1.96 standard errors")


def _compute_standard_error(values: Float64) -> float:
    """Return the standard error of the mean of values (n,); 0 for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _compute_regression_scores(y: Float64, squared_errors: Float64) -> list[Score]:
    """Return root mean squared error and R2; R2 is left out if all true numbers are equal.

    The interval of the first is the root of the mean squared error plus and minus 1.96 standard
    errors; that of R2 is from the bootstrap. y: true numbers, (n,). squared_errors: squared
    differences of predicted and true numbers, (n,).
    """
    mean = _compute_mean_score("", "", squared_errors)
    value, low, high = np.sqrt([mean.value, mean.low, mean.high]).tolist()
    constant = Baseline("always the mean", float(y.std()))
    names = "root_mean_squared_error", "Root mean squared error"
    scores = [Score(*names, value, low, high, False, mean.method, constant)]
    if y.std() > 0:
        scores.append(_compute_r2_score(y, squared_errors))
    return scores


def _compute_r2_score(y: NDArray[np.float64], squared_errors: Float64) -> Score:
    """Return R2, with an interval between the 2.5 % and 97.5 % quantiles of 200 bootstrap samples.

    Samples are the same at each call. y: true numbers, (n,), not all equal. squared_errors: squared
    differences of predicted and true numbers, (n,).
    """
    centred = y - y.mean()
    columns = np.column_stack([np.ones(len(y)), centred, centred**2, squared_errors])
    random = np.random.default_rng(0)
    p = np.full(len(y), 1 / len(y))
    # One row for each bootstrap sample: sums of the columns over the rows drawn.
    sums = np.array([random.multinomial(len(y), p) @ columns for _ in range(_N_BOOTSTRAP)])
    n, first_moment, second_moment, error = sums.T
    variation = second_moment - first_moment**2 / n
    r2 = 1 - error[variation > 0] / variation[variation > 0]
    low, high = np.quantile(r2, [0.025, 0.975])
    value = float(1 - squared_errors.sum() / (centred**2).sum())
    names = "r2", "R2, fraction of the variance"
    return Score(*names, value, float(low), float(high), False, "bootstrap")
