"""Figures of certified bounds against the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d

from certree.certificates.certificate import Certificate
from certree.ensembles import CertifiedBoostedTreesClassifier, CertifiedForestClassifier
from certree.estimators import CertifiedTreeClassifier
from certree.interface.arrays import Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.formatting import format_bound, format_percent
from certree.interface.signatures import validate_arguments
from certree.rows.columns import take_rows
from certree.show.calibration import plot_calibration
from certree.show.style import BLUE, GREEN, ORANGE, Figure, get_axes, set_title, use_style

# Fraction of the rows in the test set, and number of fits.
_TEST_SIZE, _N_SIZES = 0.25, 6
# Fewest rows of a fit, which needs a training and a calibration set.
_MIN_ROWS = 8
# Smallest and largest hypothetical number of calibration rows, as multiples of the actual number, and
# how many numbers are drawn.
_MIN_MULTIPLE, _MAX_MULTIPLE, _N_POINTS = 1 / 8, 64, 46


@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_certificate(
    model: CertifiedTreeClassifier | CertifiedBoostedTreesClassifier | CertifiedForestClassifier,
    X: ArrayLike,
    y: ArrayLike,
    sizes: ArrayLike | None = None,
    random_state: Any = 0,
    ax: Any = None,
) -> Figure:
    """Draw the certified bound and the test error of a model against the number of rows of its fit.

    Copies of the model are fitted to growing numbers of rows in a random order. The test set is the
    last quarter of the rows, which no fit uses. Each bound fails, which means that the true error
    is larger, with probability at most `model.delta`.

    Parameters
    ----------
    model : CertifiedTreeClassifier, CertifiedForestClassifier or CertifiedBoostedTreesClassifier
        The model whose parameters are used; it need not be fitted.
    X : array-like of shape (n, p)
        Rows.
    {y}
    sizes : array-like of int, or None
        Numbers of rows of the fits, from 8 to three quarters of all rows; None: six numbers, each
        about half the next, up to three quarters of all rows.
    random_state : int, RandomState or None, default=0
        Seed or generator of the random order.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    ValueError
        If X and y differ in length, a size is out of range, or there are too few rows.
    """
    labels: NDArray[Any] = column_or_1d(y)
    check_consistent_length(X, labels)
    order = check_random_state(random_state).permutation(len(labels))
    n_most = len(order) - int(np.ceil(_TEST_SIZE * len(order)))
    numbers = n_most // 2 ** np.arange(_N_SIZES) if sizes is None else np.asarray(sizes)
    n_rows = np.unique(numbers[numbers >= _MIN_ROWS] if sizes is None else numbers)
    if sizes is None and not len(n_rows):
        raise ValueError(
            f"X must have at least {_MIN_ROWS} rows besides the test set, which is a quarter of the "
            f"rows, got {len(order)} rows: pass more rows"
        )
    if not len(n_rows) or n_rows.dtype.kind != "i" or n_rows[0] < _MIN_ROWS or n_rows[-1] > n_most:
        raise ValueError(
            f"sizes must hold integers in {_MIN_ROWS} .. {n_most}, numbers of rows that leave a "
            f"quarter of {len(order)} rows for the test set, got {numbers.tolist()}"
        )
    X_test, y_test = take_rows(X, order[n_most:]), labels[order[n_most:]]
    bounds, errors = np.empty((2, len(n_rows)))
    for i, n in enumerate(n_rows):
        fitted = clone(model).fit(take_rows(X, order[:n]), labels[order[:n]])
        bounds[i] = fitted.certificate_.bound
        errors[i] = np.mean(fitted.predict(X_test) != y_test)
    ax = get_axes(ax)
    return _draw_bounds_and_errors(n_rows, bounds, errors, len(y_test), model.delta, ax)


def _draw_bounds_and_errors(
    sizes: NDArray[np.integer], bounds: Float64, errors: Float64, n_test: int, delta: float, ax: Any
) -> Figure:
    """Draw on axes the certified bound and the test error of several fits against their rows.

    Parameters
    ----------
    sizes : ndarray of int, shape (f,)
        Number of rows of each fit, ascending.
    bounds, errors : ndarray of float64, shape (f,)
        Certified bound on the error, and error on the test set, of each fit.
    n_test : int
        Number of rows of the test set.
    delta : float
        Probability with which a bound may fail.
    ax : matplotlib Axes
        Axes to draw on.

    Returns
    -------
    matplotlib Figure
        The figure of the axes.
    """
    label = f"certified bound, holds with {format_percent(1 - delta)}"
    ax.plot(sizes, bounds, "o-", color=BLUE, label=label)
    ax.plot(sizes, errors, "o-", color=GREEN, label=f"error on {n_test:,} test rows")
    ax.fill_between(sizes, errors, bounds, color=BLUE, alpha=0.1, lw=0)
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.set_xlabel("rows of the fit")
    ax.set_ylabel("error")
    ends = float(min(bounds.min(), errors.min())), float(max(bounds.max(), errors.max()))
    # The legend fits into the space above the curves.
    height = max(ends[1] - ends[0], 0.01)
    ax.set_ylim(max(ends[0] - 0.1 * height, 0.0), ends[1] + 0.35 * height)
    ax.legend(loc="upper right")
    set_title(
        ax,
        f"With {sizes[-1]:,} rows the certified bound is {format_bound(bounds[-1])}, "
        f"the test error {100 * errors[-1]:.1f} %",
    )
    figure: Figure = ax.figure
    return figure


@use_style
def draw_bound_by_rows(certificate: Certificate) -> Figure:
    """Draw, on a new figure, the bound on the error for other numbers of calibration rows.

    The curve assumes that the observed error stays the same, so it helps to plan and is no
    guarantee. It runs from an eighth of the calibration rows of the certificate to 64 times as
    many. If the certificate is for groups of rows, such as patients, the axis counts groups.
    certificate: the certified bound on the error of a fitted model.
    """
    n = certificate.n
    sizes = np.unique(
        np.round(np.geomspace(max(1.0, _MIN_MULTIPLE * n), _MAX_MULTIPLE * n, _N_POINTS)).astype(
            np.int64
        )
    )
    bounds = np.array([certificate.bound_by(size) for size in sizes.tolist()])
    units = "groups" if certificate.grouped else "rows"
    ax = get_axes(None, (6.4, 2.8))
    ax.plot(sizes, bounds, color=BLUE, label="bound")
    ax.plot(n, certificate.bound, "o", color=BLUE, label=f"the {n:,} {units} of this fit")
    ax.axhline(certificate.risk, color=ORANGE, label="observed error")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel(f"{units} in the calibration set")
    ax.set_ylabel("error")
    # No curve is below the observed error, so the axis starts there. The top right has no curve.
    ends = certificate.risk, float(bounds.max())
    margin = 0.08 * max(ends[1] - ends[0], 0.01)
    ax.set_ylim(ends[0] - margin, ends[1] + margin)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    ax.legend(loc="upper right")
    set_title(
        ax,
        f"{_MAX_MULTIPLE} times as many {units} would lower the bound to {format_bound(bounds[-1])}",
    )
    figure: Figure = ax.figure
    return figure
