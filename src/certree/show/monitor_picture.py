"""Figure of the losses that a monitor has seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from certree.certificates.monitor import Monitor
from certree.interface.arrays import Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.formatting import format_bound, format_loss_bound, format_quantity
from certree.interface.signatures import validate_arguments
from certree.show.calibration import plot_calibration
from certree.show.style import FAINT, INK, SKY, VERMILLION, Figure, get_axes, set_title, use_style

_MOST_BARS = 40


@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_monitor(monitor: Monitor, ax: Any = None) -> Figure:
    """Draw the mean losses that a monitor has seen, the certified bound, the alarm and the change.

    Each bar is the mean loss of equally many consecutive rows, of which there are at most 40; the
    last bar may have fewer rows. If there was an alarm, a dotted line marks the row at which the
    losses probably rose, and a solid line the row of the alarm.

    Parameters
    ----------
    monitor : Monitor
        A monitor that has seen at least one row.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    ValueError
        If the monitor has not seen any rows.
    """
    if not monitor.rows:
        raise ValueError("monitor must have seen at least one row: pass losses to its update")
    ends, means = _merge_windows(monitor)
    unit = 1.0 if monitor.unit is None else monitor.unit
    starts = np.append(0, ends[:-1])
    ax = get_axes(ax)
    word = "group" if monitor.grouped else "row"
    length = format_quantity(int(ends[0]), word)
    ax.bar(
        starts,
        unit * means,
        ends - starts,
        align="edge",
        color=SKY,
        edgecolor="white",
        linewidth=0.5,
        label=f"mean loss of each {length}",
    )
    bound = unit * monitor.bound
    # The product with the unit may exceed the certified bound by rounding.
    value = format_bound(bound) if monitor.unit is None else format_loss_bound(bound * (1 - 1e-12))
    ax.axhline(bound, color=VERMILLION, label=f"certified bound, {value}")
    if monitor.first_alarm is not None and monitor.likely_change is not None:
        # The lines end below the legend.
        ax.axvline(monitor.likely_change - 1, 0, 0.8, color=FAINT, ls=":", label="likely change")
        ax.axvline(monitor.first_alarm, 0, 0.8, color=INK, label="alarm")
    ax.set_xlim(0, ends[-1])
    ax.set_ylim(0, 1.45 * max(float((unit * means).max()), bound))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    if monitor.unit is None:
        ax.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.3g} %")
    ax.set_xlabel(f"new {word}s, in the order of their labels")
    ax.set_ylabel("error" if monitor.unit is None else "mean loss")
    ax.legend(loc="upper left", ncols=2)
    set_title(ax, _describe_alarm(monitor, word))
    figure: Figure = ax.figure
    return figure


def _merge_windows(monitor: Monitor) -> tuple[Float64, Float64]:
    """Merge the monitor's windows, each of equally many consecutive rows, into at most 40 bars.

    Return two arrays for b bars: the number of rows from the first one up to the end of each bar,
    (b,), and the mean loss of the rows of each bar, (b,).
    """
    window, means = monitor.window_means
    ends = np.minimum(window * np.arange(1.0, len(means) + 1), monitor.rows)
    sums = means * np.diff(ends, prepend=0)
    n_merged = -(-len(means) // _MOST_BARS)
    merged = np.add.reduceat(sums, np.arange(0, len(sums), n_merged))
    ends = np.append(ends[n_merged - 1 : -1 : n_merged], monitor.rows)
    return ends, merged / np.diff(ends, prepend=0)


def _describe_alarm(monitor: Monitor, word: str) -> str:
    """Return the title of the figure: after which row the alarm was, and where losses likely rose.

    Without an alarm the title has the e-value, the monitor's evidence that the bound does not hold
    any more, and the value 1 / alpha from which it raises the alarm. monitor: the monitor; word:
    "row" or "group", what it counts.
    """
    if monitor.first_alarm is not None:
        return (
            f"Alarm after {word} {monitor.first_alarm:,}: the losses probably rose at {word} "
            f"{monitor.likely_change:,}"
        )
    evidence = f"e-value {monitor.e_value:.2g}, alarm from {1 / monitor.alpha:.4g}"
    return f"No alarm after {format_quantity(monitor.rows, word)} ({evidence})"
