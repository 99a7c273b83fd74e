"""The section on how well two classes are put in order."""

import numpy as np

from certree.interface.formatting import format_percent
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, folded, pictures, table, tag
from certree.show.page.section import Section
from certree.show.ranking import Ranking, ranking_of, ranking_panels
from certree.show.style import PANEL, each_alone

# Parts of the rows by their score.
_TENTHS = 10


def ranked(judged: Judged) -> Section | None:
    """ROC, precision, Kolmogorov-Smirnov and cost, as observed on the rows of the page."""
    if judged.shares is None or len(judged.classes) != 2:
        return None
    if not np.isin(judged.y, judged.classes).all():
        return None
    try:
        found = ranking_of(judged.model, judged.shares, judged.y)
    except ValueError:  # rows of one class have no order
        return None
    positive = judged.classes[1]
    low, high = found.auc_interval
    distance, at = found.ks
    alone = f"a model that knows nothing has {found.prevalence:.3f}"
    lines = [
        ("Area under the ROC curve", f"{found.auc:.3f}", f"{low:.3f} to {high:.3f}, DeLong"),
        ("Gini coefficient, 2 area - 1", f"{2 * found.auc - 1:.3f}", ""),
        ("Average precision", f"{found.average_precision:.3f}", alone),
        ("Kolmogorov-Smirnov", f"{distance:.3f}", f"at threshold {at:.3g}"),
        _cheapest(found, judged),
    ]
    words = (
        f"Rows are taken for {positive} where its probability is at least a threshold. All is observed "
        "on the rows of this page: a threshold that looks best here is a little worse on new rows."
    )
    shown = tag("p", words) + table(("", "value", ""), lines)
    panels = ranking_panels(found, str(positive), judged.costs)
    drawn = each_alone(panels, [PANEL] * len(panels))
    shown += pictures(drawn, "ROC curve, precision, Kolmogorov-Smirnov or cost")
    shown += folded(f"Tenths of the rows, the likeliest {positive} first", _tenths(found))
    return Section("ranking", "How well it ranks", shown)


def _cheapest(found: Ranking, judged: Judged) -> tuple[str, str, str]:
    of_miss, of_alarm = judged.costs
    cost = found.cost(of_miss, of_alarm)
    place = int(np.argmin(cost))
    name = (
        f"Least cost, {of_miss:g} for a missed {judged.classes[1]}, {of_alarm:g} for a false alarm"
    )
    return (name, f"{cost[place]:.4g}", f"at threshold {found.threshold[place]:.3g}")


def _tenths(found: Ranking) -> Html:
    """How the positive class thins out; rows of one score stay together."""
    taken = found.hits + found.alarms
    ends = np.unique(np.searchsorted(taken, np.arange(1, _TENTHS + 1) / _TENTHS * taken[-1]))
    lines, before = [], -1
    for end in ends.tolist():
        last = (found.hits[before], taken[before]) if before >= 0 else (0.0, 0.0)
        hits, rows = found.hits[end] - last[0], taken[end] - last[1]
        span = f"{found.threshold[end]:.3g} to {found.threshold[before + 1]:.3g}"
        apart = found.recall[end] - found.false_positive_rate[end]
        shares = (format_percent(hits / rows), format_percent(found.recall[end]), f"{apart:.3f}")
        lines.append((span, f"{rows:,.0f}", *shares))
        before = end
    head = ("probability", "rows", "positive", "of all positive, so far", "Kolmogorov-Smirnov")
    return table(head, lines)
