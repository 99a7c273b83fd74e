"""What is promised with more and more rows, and what is found."""

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
from certree.interface.formatting import format_bound, format_percent
from certree.interface.signatures import validate_arguments
from certree.rows.columns import rows_at
from certree.show.style import BLUE, GREEN, ORANGE, Figure, axes_of, styled, titled

# Share of the rows that no fit sees, and how many sizes of fits there are.
_TEST, _SIZES = 0.25, 6
# Fewer rows have no two sides that learn and certify.
_FEWEST = 8
# How far the planned numbers of rows go, in multiples of those that certify, and how many there are.
_FROM, _TO, _POINTS = 1 / 8, 64, 46


@styled
@validate_arguments
def plot_certificate(
    model: CertifiedTreeClassifier | CertifiedBoostedTreesClassifier | CertifiedForestClassifier,
    X: ArrayLike,
    y: ArrayLike,
    sizes: ArrayLike | None = None,
    random_state: Any = 0,
    ax: Any = None,
) -> Figure:
    """Draw the certified bound and the error on other rows against the number of rows of the fit.

    Copies of the model are fitted to the first rows of a random order, each to more of them. The error
    is that on the last quarter of the rows, which no fit sees. Where a promise is broken, the error
    lies above the bound; that may happen to one fit in 1 / delta.

    Parameters
    ----------
    model : certified classifier
        Its parameters are those of the fits; it need not be fitted.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Their classes.
    sizes : array-like of int, or None
        Numbers of rows of the fits; None: six, each about half of the next, up to three quarters of
        all.
    random_state : int, RandomState or None, default=0
        Draws the order of the rows.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError
        If rows and classes do not go together, or a size is out of range.
    """
    classes: NDArray[Any] = column_or_1d(y)
    check_consistent_length(X, classes)
    order = check_random_state(random_state).permutation(len(classes))
    most = len(order) - int(np.ceil(_TEST * len(order)))
    given = most // 2 ** np.arange(_SIZES) if sizes is None else np.asarray(sizes)
    used = np.unique(given[given >= _FEWEST] if sizes is None else given)
    if not len(used) or used.dtype.kind != "i" or used[0] < _FEWEST or used[-1] > most:
        raise ValueError(
            f"sizes must hold numbers of rows in {_FEWEST} .. {most}, got {given.tolist()}"
        )
    X_test, y_test = rows_at(X, order[most:]), classes[order[most:]]
    bounds, errors = np.empty((2, len(used)))
    for i, n in enumerate(used):
        fitted = clone(model).fit(rows_at(X, order[:n]), classes[order[:n]])
        bounds[i] = fitted.certificate_.bound
        errors[i] = np.mean(fitted.predict(X_test) != y_test)
    return _drawn(used, bounds, errors, len(y_test), model.delta, axes_of(ax))


def _drawn(
    sizes: NDArray[np.integer], bounds: Float64, errors: Float64, n_test: int, delta: float, ax: Any
) -> Figure:
    label = f"certified bound, holds with {format_percent(1 - delta)}"
    ax.plot(sizes, bounds, "o-", color=BLUE, label=label)
    ax.plot(sizes, errors, "o-", color=GREEN, label=f"error on {n_test:,} other rows")
    ax.fill_between(sizes, errors, bounds, color=BLUE, alpha=0.1, lw=0)
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.set_xlabel("rows of the fit")
    ax.set_ylabel("error")
    ends = float(min(bounds.min(), errors.min())), float(max(bounds.max(), errors.max()))
    # Room above for the legend, which lies on no curve there.
    height = max(ends[1] - ends[0], 0.01)
    ax.set_ylim(max(ends[0] - 0.1 * height, 0.0), ends[1] + 0.35 * height)
    ax.legend(loc="upper right")
    titled(
        ax,
        f"With {sizes[-1]:,} rows at most {format_bound(bounds[-1])} is promised, "
        f"{100 * errors[-1]:.1f} % is found",
    )
    drawn: Figure = ax.figure
    return drawn


@styled
def draw_by_rows(certificate: Certificate) -> Figure:
    """The bound that other numbers of rows would give, if the error stayed as observed."""
    n = certificate.n
    sizes = np.unique(
        np.round(np.geomspace(max(1.0, _FROM * n), _TO * n, _POINTS)).astype(np.int64)
    )
    bounds = np.array([certificate.bound_by(size) for size in sizes.tolist()])
    units = "groups" if certificate.grouped else "rows"
    ax = axes_of(None, (6.4, 2.8))
    ax.plot(sizes, bounds, color=BLUE, label="bound")
    ax.plot(n, certificate.bound, "o", color=BLUE, label=f"the {n:,} {units} of this fit")
    ax.axhline(certificate.risk, color=ORANGE, label="observed error")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel(f"{units} that certify")
    ax.set_ylabel("error")
    # The curve falls to the observed error: what is below would be empty, and the top right is.
    ends = certificate.risk, float(bounds.max())
    margin = 0.08 * max(ends[1] - ends[0], 0.01)
    ax.set_ylim(ends[0] - margin, ends[1] + margin)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    ax.legend(loc="upper right")
    titled(ax, f"{_TO} times as many {units} would bring the bound to {format_bound(bounds[-1])}")
    drawn: Figure = ax.figure
    return drawn
