"""The section of the report on the ranking of rows by the probability of the positive class."""

import numpy as np

from certree.interface.formatting import format_percent
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.markup import Html, collapse, embed_figures, table, tag
from certree.show.page.section import Section
from certree.show.ranking import Ranking, create_ranking_panels, rank_rows
from certree.show.style import PANEL, draw_separately

# Number of groups into which the rows are divided by score.
_N_GROUPS = 10


def build_ranking_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section on how well the probability of the positive class ranks the rows.

    It has the area under the ROC curve, average precision, the Kolmogorov-Smirnov statistic, and the
    lowest mean cost of a row over all thresholds. evaluated: the fitted model, the rows of the
    report, their predictions, and the costs of wrong predictions. None unless the model has two
    classes, and both occur among the rows.
    """
    if evaluated.probabilities is None or len(evaluated.classes) != 2:
        return None
    try:
        ranking = rank_rows(
            evaluated.model, evaluated.probabilities, evaluated.y, evaluated.pos_label
        )
    except ValueError:  # Rows of a single class cannot be ranked.
        return None
    positive = evaluated.positive_class
    low, high = ranking.auc_interval
    distance, threshold = ranking.ks
    lines = [
        (
            "Area under the ROC curve",
            f"{ranking.auc:.3f}",
            f"95 % interval {low:.3f} to {high:.3f} (DeLong)",
        ),
        ("Gini coefficient, 2 area - 1", f"{2 * ranking.auc - 1:.3f}", ""),
        (
            "Average precision",
            f"{ranking.average_precision:.3f}",
            f"a random ranking has {ranking.prevalence:.3f}",
        ),
        ("Kolmogorov-Smirnov statistic", f"{distance:.3f}", f"at threshold {threshold:.3g}"),
        _describe_lowest_cost(ranking, evaluated),
    ]
    text = (
        f"Rows are predicted {positive} if its probability is at least the threshold. All values are "
        "measured on the rows of this page. A threshold that is best on these rows is usually a "
        "little worse on new rows."
    )
    content = tag("p", text) + table(("", "value", ""), lines)
    panels = create_ranking_panels(ranking, str(positive), evaluated.costs)
    figures = draw_separately(panels, [PANEL] * len(panels))
    content += embed_figures(figures, "ROC curve, precision, Kolmogorov-Smirnov or cost")
    summary = f"Tenths of the rows, by decreasing probability of {positive}"
    content += collapse(summary, _tabulate_tenths(ranking))
    return Section("ranking", "Ranking", content)


def _describe_lowest_cost(ranking: Ranking, evaluated: EvaluatedModel) -> tuple[str, str, str]:
    """Return the cells of a line of a table: the lowest mean cost of a row over all thresholds.

    They are three texts: a name with the costs, the lowest mean cost, and the threshold that has it
    (rows are predicted to be of the positive class if its probability is at least the threshold).
    ranking: numbers of true and false positives at each threshold. evaluated: the fitted model and
    its rows; only the costs of a missed row and of a false alarm, and the class names, are used.
    """
    false_negative, false_positive = evaluated.costs
    cost = ranking.cost(false_negative, false_positive)
    cheapest = int(np.argmin(cost))
    name = (
        f"Lowest mean cost, with {false_negative:g} for a missed {evaluated.positive_class} and "
        f"{false_positive:g} for a false alarm"
    )
    return name, f"{cost[cheapest]:.4g}", f"at threshold {ranking.threshold[cheapest]:.3g}"


def _tabulate_tenths(ranking: Ranking) -> Html:
    """Return a table as HTML with a line for each tenth of the rows, by decreasing score.

    A line has the range of scores, the number of rows and the fraction of positive rows. It also
    has the recall, and recall minus false positive rate (the Kolmogorov-Smirnov distance), if this
    line and those above are predicted positive. Rows of equal score are in one line, so there may
    be fewer than ten. ranking: numbers of true and false positives at each threshold.
    """
    n_predicted = ranking.true_positives + ranking.false_positives
    targets = np.arange(1, _N_GROUPS + 1) / _N_GROUPS * n_predicted[-1]
    lines, previous = [], -1
    for end in np.unique(np.searchsorted(n_predicted, targets)).tolist():
        n_hits, n_rows = ranking.true_positives[end], n_predicted[end]
        if previous >= 0:
            n_hits = n_hits - ranking.true_positives[previous]
            n_rows = n_rows - n_predicted[previous]
        span = f"{ranking.threshold[end]:.3g} to {ranking.threshold[previous + 1]:.3g}"
        distance = ranking.recall[end] - ranking.false_positive_rate[end]
        cells = (
            format_percent(n_hits / n_rows),
            format_percent(ranking.recall[end]),
            f"{distance:.3f}",
        )
        lines.append((span, f"{n_rows:,.0f}", *cells))
        previous = end
    headings = ("probability", "rows", "positive", "cumulative recall", "Kolmogorov-Smirnov")
    return table(headings, lines)
