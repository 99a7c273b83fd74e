"""Test of row order: whether the errors of calibration rows depend on their place in the table.

A certificate needs independent rows. If rows are in the order of time, errors of rows near each
other are often alike: the model does not know something that changes over time. A permutation test
of the errors detects this. Its result is a note in the certificate. It changes neither the model
nor a bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len, rfft
from scipy.stats import rankdata

from certree.interface.arrays import Float64
from certree.interface.signatures import validate_settings
from certree.rows.folds import Indices

# Number of random orders. The test reports dependence if the statistic of the table's order exceeds
# those of all random orders, which has a probability of at most 1 / (_N_ORDERS + 1) if the order is
# random.
_N_ORDERS = 99
_SEED = 1
# Most numbers (units times columns of residuals) that are tested, and the fewest units that are
# tested even if there are more columns; of larger tables so many stretches of consecutive units.
_MOST_NUMBERS, _FEWEST_UNITS, _N_STRETCHES = 2**13, 2**10, 16
# Differences of this size, relative to the sum of squares of the residuals, are rounding errors.
_ROUNDING = 1e-9


class RowOrderWarning(UserWarning):
    """Category of warnings about rows in time order that are certified as if drawn at random.

    It is issued if errors depend on the order of rows in a table with dates, and if a model that was
    fitted with times is certified without them. The certificate then says nothing about later rows.
    Nothing is wrong if the new rows are drawn at random from the same period as those of the table.

    Examples
    --------
    >>> import warnings
    >>> import certree
    >>> warnings.filterwarnings("ignore", category=certree.RowOrderWarning)
    """


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Result of the test of whether the errors of calibration rows depend on their order.

    The field `row_order` of a certificate. The statistic is the sum, over all pairs of rows, of the
    product of their residuals divided by the distance of their places. Dependence is reported if
    the statistic exceeds those of 99 random orders. If the rows of the table are in random order,
    this has a probability of at most 1 %.

    A residual is the class (1 or 0 for each class) minus its predicted probability, or the rank of
    the target minus the prediction. Only errors are known of the models that `certree.certify`
    gets: their residual is 1 in the column of the true class of an error. The absolute residual of
    a row, its loss, counts as much as the residual, as either may depend on the order. Equal rows,
    and rows of one group, count as one row with their means, at the place of one of them that is
    drawn at random. If there are more than 8,192 rows (4,096 for two classes, fewer for more), only
    16 stretches of consecutive rows are compared.

    Parameters
    ----------
    n : int
        Number of calibration rows, or groups of them, that were compared.
    correlation : float
        Correlation of neighbours, between -1 and 1: the mean of those of residuals and losses. 0 if
        all are equal.
    is_dependent : bool
        Whether errors depend on the order.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import CertifiedTreeClassifier
    >>> X, y = np.random.default_rng(0).random((1000, 2)), np.arange(1000) % 200 < 100
    >>> CertifiedTreeClassifier(random_state=0).fit(X, y).certificate_.row_order.is_dependent
    True
    """

    n: int
    correlation: float
    is_dependent: bool

    def __post_init__(self) -> None:
        validate_settings(self)
        if self.n < 0:
            raise ValueError(f"n must not be negative, got {self.n}")
        if not -1 <= self.correlation <= 1:
            raise ValueError(f"correlation must lie in -1 .. 1, got {self.correlation!r}")

    @property
    def assumption(self) -> str:
        """The sentence on the order of the rows in the assumptions of a certificate.

        Certificates contain it only if `is_dependent` is True.
        """
        return (
            "new rows resemble all parts of the table, not only its end: errors depend on the order "
            f"of the rows (correlation of neighbours {self.correlation:.2f})"
        )


def measure_row_order(
    units: Indices | None, n_columns: int, compute_residuals: Callable[[Indices], Float64]
) -> RowOrder | None:
    """Test whether residuals depend on the order of the rows, by 99 random orders.

    Parameters
    ----------
    units : ndarray of intp, shape (n,), or None
        Number of the unit of each row, 0, 1, ..., in the order of the table, from `rank_units`. A
        unit is a group, or a set of equal rows. None: the order is not known.
    n_columns : int
        Number of columns of the residuals; 1 for numeric targets. With more columns fewer units are
        tested.
    compute_residuals : callable
        Takes indices, (m,), among the n rows of `units`, which did not train the model: those of
        all rows, or of a sample. Returns the residuals of these rows, (m, n_columns); see
        `RowOrder`. Those of numeric targets have the shape (m,), and are replaced by their ranks.

    Returns
    -------
    RowOrder or None
        Number of units, correlation of neighbours, and whether residuals depend on the order. None
        if `units` is None or there is no row.
    """
    if units is None or not len(units):
        return None
    rows, units = _select_rows(units, max(_FEWEST_UNITS, _MOST_NUMBERS // n_columns))
    residuals = compute_residuals(rows)
    losses = np.abs(residuals).reshape(len(rows), -1).sum(axis=1)
    if residuals.ndim == 1:
        residuals, losses = rankdata(residuals)[:, None], rankdata(losses)
    columns = np.vstack([_scale_units(one, units) for one in (residuals, losses[:, None])])
    squares, n = float((columns**2).sum()), columns.shape[1]
    if squares == 0:
        return RowOrder(n, 0.0, False)
    spectrum, random = _compute_spectrum(n), np.random.default_rng(_SEED)
    observed = _sum_products(columns, spectrum)
    correlation = float((columns[:, 1:] * columns[:, :-1]).sum()) / squares
    # Stops at the first random order that decides: the fifth, on average, if errors are independent.
    is_dependent = all(
        observed > _sum_products(columns[:, random.permutation(n)], spectrum) + _ROUNDING * squares
        for _ in range(_N_ORDERS)
    )
    return RowOrder(n, min(max(correlation, -1.0), 1.0), is_dependent)


def compute_class_residuals(codes: NDArray[Any], probabilities: Float64) -> Float64:
    """Compute the true class, as 1 or 0 for each class, minus its predicted probability, (n, K).

    For two classes the result has the column of the second class only, (n, 1). codes: class code of
    each row, (n,); a code of K or more is a class without probability. probabilities: probability
    of each class, (n, K).
    """
    n_classes = probabilities.shape[1]
    residuals = (codes[:, None] == np.arange(n_classes)) - probabilities
    return residuals[:, 1:] if n_classes == 2 else residuals


def note_row_order(
    model: Any, units: Indices | None, n_columns: int, compute_residuals: Callable[..., Float64]
) -> None:
    """Test the order of the calibration rows of a fit, and note the result in its certificates.

    Replaces the attributes `certificate_`, `certificates_` and, if it has one,
    `full_certificate_` of the model. Issues a `RowOrderWarning` if the order matters and the model
    has a feature of dates.

    model: the estimator, whose certificates have been set; units: number of the unit (group, or set
    of equal rows) of each calibration row in the order of the table, (n,), or None: the order is
    not known, and there is no test; n_columns: number of columns of the residuals, 1 for numeric
    targets; compute_residuals: takes indices among the n calibration rows, (m,), all or some, and
    returns their residuals, (m, n_columns), or (m,) for numeric targets.
    """
    found = measure_row_order(units, n_columns, compute_residuals)
    place = [one is model.certificate_ for one in model.certificates_].index(True)
    model.certificates_ = tuple(replace(one, row_order=found) for one in model.certificates_)
    model.certificate_ = model.certificates_[place]
    if getattr(model, "full_certificate_", None) is not None:
        model.full_certificate_ = replace(model.full_certificate_, row_order=found)
    warn_of_row_order(found, lambda: bool(model.dates_))


def warn_of_row_order(found: RowOrder | None, has_dates: Callable[[], bool]) -> None:
    """Issue a `RowOrderWarning` if errors depend on the order, and a column has dates.

    found: result of the test, or None; has_dates: returns whether a column of the rows holds dates,
    and is called only if errors depend on the order.
    """
    if found is not None and found.is_dependent and has_dates():
        warnings.warn(
            "the errors of calibration rows near each other are alike (correlation of neighbours "
            f"{found.correlation:.2f}), and X has a column of dates: if the rows are in the order of "
            "time, the certificate does not hold for later rows. Pass the times of the rows as time= "
            "to fit or certify, so that the latest rows certify. If new rows come from the same "
            "period, nothing is wrong: ignore the category certree.RowOrderWarning",
            RowOrderWarning,
            stacklevel=2,
        )


def warn_of_missing_times(column: str) -> None:
    """Issue a `RowOrderWarning`: a model that was fitted with times is certified without them.

    column: the column of times in the fit; "" if its name is not known.
    """
    name = f" (column {column!r})" if column else ""
    warnings.warn(
        f"time must be passed for a bound on later rows, as it was in the fit of the model{name}: "
        "without it, the bound takes rows, or groups, as independent draws from one source, and "
        "covers no later period. If new rows come from the same period, nothing is wrong",
        RowOrderWarning,
        stacklevel=2,
    )


def _scale_units(values: Float64, units: Indices) -> Float64:
    """Compute the mean values of each unit, centre them, and scale them to a sum of squares of 1.

    A unit is a group, or a set of equal rows. values: k numbers of each row, (n, k); units: number
    of the unit of each row, 0 .. u - 1, (n,). Return an array (k, u). Each of its k rows has the
    mean 0; all are divided by one number. It is 0 if all means are equal.
    """
    sums = np.stack([np.bincount(units, weights=column) for column in values.T])
    means = sums / np.bincount(units)
    means -= means.mean(axis=1, keepdims=True)
    size = float(np.sqrt((means**2).sum()))
    # Equal values differ from their mean by rounding.
    if size <= _ROUNDING * float(np.abs(sums).sum()):
        return np.zeros_like(means)
    return means / size


def _select_rows(units: Indices, most: int) -> tuple[Indices, Indices]:
    """Select the rows of at most `most` units, in 16 stretches of consecutive units if there are more.

    A unit is a group, or a set of equal rows. The stretches are equally long and at equal
    distances; the first and the last unit are in one. units: number of the unit of each row, (n,).
    Return the indices of the selected rows, and the new numbers of their units, 0, 1, ..., both
    (m,).
    """
    n_units = int(units.max()) + 1
    if n_units <= most:
        return np.arange(len(units)), units
    length = most // _N_STRETCHES
    starts = np.linspace(0, n_units - length, _N_STRETCHES).astype(np.intp)
    is_selected = np.zeros(n_units, dtype=bool)
    is_selected[starts[:, None] + np.arange(length)] = True
    rows = np.flatnonzero(is_selected[units])
    return rows, (np.cumsum(is_selected) - 1)[units[rows]]


def _compute_spectrum(n: int) -> Float64:
    """Return the factors by which `_sum_products` multiplies the power spectrum of n residuals.

    They are the Fourier transform of the weights 1 / distance (0 for distance 0), periodic with an
    even period of at least 2 n. They are scaled so that the products add up to a sum over pairs.
    Return an array (period / 2 + 1,).
    """
    period = 2 * next_fast_len(n, real=True)
    weights = np.zeros(period)
    weights[1:n] = 1 / np.arange(1, n)
    weights[period - n + 1 :] = weights[n - 1 : 0 : -1]
    spectrum: Float64 = rfft(weights).real / period
    spectrum[[0, -1]] /= 2  # all others stand for two conjugate entries
    return spectrum


def _sum_products(columns: Float64, spectrum: Float64) -> float:
    """Sum the products of all pairs of residuals of the same column, divided by their distance.

    columns: k columns of residuals at the places 0 .. u - 1, (k, u); spectrum: result of
    ``_compute_spectrum(u)``. Each pair counts once.
    """
    transform = rfft(columns, 2 * (len(spectrum) - 1))
    power = (transform.real**2 + transform.imag**2).sum(axis=0)
    return float((power * spectrum).sum())
