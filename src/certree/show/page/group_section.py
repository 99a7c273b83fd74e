"""The section of the report that compares groups of rows."""

import numpy as np
from numpy.typing import NDArray

from certree.interface.formatting import format_four_digits, format_percent
from certree.show.calibration import (
    compute_classifier_reliability,
    compute_clopper_pearson_interval,
)
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.markup import Html, collapse, concatenate, table, tag
from certree.show.page.section import Section

# Most groups that are compared, by number of rows.
_MAX_GROUPS = 30

# Name of a group, and the indices of its rows.
NamedRows = tuple[str, NDArray[np.intp]]


def build_group_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section that compares groups of rows, or None if there are no groups.

    It has the errors of the 30 groups with the most rows. For a classifier it also has their
    calibration and, if the rows are new to the model, certified bounds on the errors of all groups.
    evaluated: the fitted model, the rows of the report, their groups and predictions.
    """
    groups = evaluated.groups
    if groups is None:
        return None
    n_rows = np.bincount(groups.codes, minlength=len(groups.names))
    largest = np.argsort(-n_rows, kind="stable")[:_MAX_GROUPS].tolist()
    named_rows = [(str(groups.names[k]), np.flatnonzero(groups.codes == k)) for k in largest]
    n_hidden = len(groups.names) - len(named_rows)
    note = tag("p", f"{n_hidden:,} smaller groups are not shown.") if n_hidden else Html("")
    compare = _compare_errors if evaluated.probabilities is None else _compare_classification
    content = compare(evaluated, named_rows) + note + _build_guarantees(evaluated)
    return Section("groups", "Comparison of groups", content)


def _compare_classification(evaluated: EvaluatedModel, named_rows: list[NamedRows]) -> Html:
    """Return two tables as HTML: the error, and the calibration, of a classifier in each group.

    evaluated: the fitted classifier, the rows of the report and their predictions. named_rows: the
    name of each group and the indices of its rows. Both tables have a line for each group, and
    exact (Clopper-Pearson) 95 % intervals of the frequencies, each for its own group. The second
    table compares the mean predicted probability of the positive class with its observed frequency.
    With more than two classes it compares that of the predicted class with the accuracy.
    """
    assert evaluated.probabilities is not None  # Call it for classifiers only.
    classes = np.asarray(evaluated.model.classes_)
    is_wrong = evaluated.predicted != evaluated.y
    errors, calibration, subject = [], [], ""
    for name, rows in named_rows:
        n, n_wrong = len(rows), float(is_wrong[rows].sum())
        interval = _format_interval(n_wrong, n)
        errors.append((name, f"{n:,}", f"{100 * n_wrong / n:.1f} %", interval))
        subject, curve = compute_classifier_reliability(
            classes,
            evaluated.probabilities[rows],
            evaluated.y[rows],
            pos_label=evaluated.pos_label,
        )
        hits = round(float(curve.observed @ curve.n_rows))
        predicted = float(np.average(curve.predicted, weights=curve.n_rows))
        low, high = compute_clopper_pearson_interval(hits, n)
        if low <= predicted <= high:
            verdict = "inside the interval"
        else:
            verdict = "too high" if predicted > high else "too low"
        cells = (
            format_percent(predicted),
            format_percent(hits / n),
            _format_interval(hits, n),
            verdict,
        )
        calibration.append((name, *cells, f"{100 * curve.error:.1f} points"))
    error_table = table(
        ("group", "rows", "error", "95 % interval"),
        errors,
        "Error of each group; each interval holds by itself",
    )
    headings = (
        *("group", "mean predicted probability", "observed frequency", "95 % interval"),
        *("prediction is", "calibration error"),
    )
    return error_table + table(headings, calibration, f"Calibration: probability of {subject}")


def _format_interval(hits: float, n: int) -> str:
    """Return the exact 95 % interval of a probability as text, such as "1.2 % to 3.4 %".

    It is the interval of Clopper and Pearson. hits: number of rows in which the event happened,
    such as an error. n: number of all rows, at least 1.
    """
    low, high = compute_clopper_pearson_interval(hits, n)
    return f"{100 * low:.1f} % to {100 * high:.1f} %"


def _compare_errors(evaluated: EvaluatedModel, named_rows: list[NamedRows]) -> Html:
    """Return a table as HTML: root mean squared error and bias of a regressor in each group.

    The bias is the mean of predicted minus true numbers. evaluated: the fitted regressor, the rows
    of the report and their predictions. named_rows: the name of each group, which has a line of the
    table, and the indices of its rows.
    """
    difference = evaluated.predicted.astype(np.float64) - evaluated.y
    lines = [
        (
            name,
            f"{len(rows):,}",
            format_four_digits(float(np.sqrt(np.mean(difference[rows] ** 2)))),
            format_four_digits(float(difference[rows].mean())),
        )
        for name, rows in named_rows
    ]
    headings = ("group", "rows", "root mean squared error", "mean of predicted minus true")
    return table(headings, lines, "Errors, in units of the target")


def _build_guarantees(evaluated: EvaluatedModel) -> Html:
    """Return tables as HTML: certified error of each group, and difference of two groups' errors.

    The tables have upper bounds for new rows, computed from the rows of the report; those of a
    table hold together with the probability in its title. If the model may have seen the rows, or
    they are duplicates or too few, return a sentence that says why. The result is empty for a
    regressor. evaluated: the fitted model, the rows of the report and their predictions; its groups
    must not be None.
    """
    assert evaluated.groups is not None  # Call it only with groups.
    if evaluated.probabilities is None:
        return Html("")
    if evaluated.n_known_rows != 0:
        return tag("p", "There are no guarantees for groups: the model may have seen the rows.")
    try:
        guarantees = evaluated.compute_guarantees()
        names = np.array(evaluated.groups.names, dtype=object)
        families = guarantees.conditional_guarantees(
            ["groups", "gaps"], groups=names[evaluated.groups.codes]
        )
    except ValueError as error:  # Rows are duplicates or too few, or there is a single group.
        return tag("p", f"There are no guarantees for groups: {error}.")
    summaries = {
        "Certified error of each group": families.groups,
        "Certified gaps between groups": families.gaps,
    }
    tables = [
        collapse(summary, table(*family.table(), family.title))
        for summary, family in summaries.items()
    ]
    if evaluated.threshold is None:
        return concatenate(tables)
    text = "These guarantees are about the most probable class, not about the threshold:"
    return tag("p", text) + concatenate(tables)
