"""The builders of the report's sections, in order; the larger ones have modules of their own.

A builder takes an `EvaluatedModel` and returns a `Section`, or None if the section does not apply.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.certificates.subsets.families import FEWEST_ROWS
from certree.ensembles import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain import interaction_fractions
from certree.interface.fitted_state import (
    find_drawn_groups_column,
    find_groups_column,
    find_time_column,
    get_snapshot,
)
from certree.interface.formatting import format_percent, format_quantity
from certree.rows.time_order import has_independent_period
from certree.show.calibration import compute_classifier_reliability, draw_reliability
from certree.show.importance import name_importance, plot_importance
from certree.show.interactions_picture import compute_interaction_sizes, create_interaction_panels
from certree.show.loss import plot_loss
from certree.show.model_description import describe_size
from certree.show.page.binary_scores import BinaryPredictions
from certree.show.page.certificate_section import build_certificate_section
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.explanation_sections import build_explanation_section, build_shapley_section
from certree.show.page.explorer_section import build_explorer_section
from certree.show.page.group_section import build_group_section
from certree.show.page.markup import (
    Html,
    collapse,
    concatenate,
    embed_figure,
    embed_figures,
    table,
    tag,
)
from certree.show.page.ranking_section import build_ranking_section
from certree.show.page.scores import compute_scores, describe_verdict
from certree.show.page.section import Section
from certree.show.style import PANEL, draw_separately
from certree.show.threshold_picture import create_threshold_panels
from certree.show.training_error import plot_adaboost

# What the intervals of a page need if the model was fitted with groups.
_NEEDS_INDEPENDENT_ROWS = (
    "The model was fitted with groups of rows that may depend on each other: intervals and guarantees "
    "of this page need rows of different groups. "
)
_ONE_ROW_OF_EACH_GROUP = (
    "The model was fitted to one row of each group of {name!r}, drawn at random: intervals and "
    "guarantees of this page need rows of different groups. "
)
_COVERS_NO_LATER_PERIOD = (
    "The model was fitted to rows in time order{name}: intervals and guarantees computed from the rows "
    "of this page {assumption}cover no later period. "
)
# Most classes of a confusion matrix; with more classes, the most frequent errors are listed.
_MAX_CLASSES, _MAX_ERRORS = 30, 20
# Most features in the figure of importances.
_MAX_FEATURES = 15
# Most rows for the loss by round and for interactions.
_MAX_ROWS = 1000
# Most letters of a parameter's value, or of a class.
_MAX_LETTERS = 80


def build_model_section(evaluated: EvaluatedModel) -> Section:
    """Return the report's section with the class of the model, its size and its parameters.

    evaluated: the fitted model, the rows of the report and their predictions.
    """
    model = evaluated.model
    estimator = type(model)
    summary = (inspect.getdoc(estimator) or estimator.__name__).split("\n")[0]
    text = f"{summary} {' '.join(describe_model(evaluated))}"
    signature = inspect.signature(estimator).parameters.items()
    defaults = {name: parameter.default for name, parameter in signature}
    rows = []
    for name, value in get_snapshot(model).get_params(deep=False).items():
        is_default = repr(value) == repr(defaults.get(name))
        text_value = _shorten(repr(value))
        cell = text_value if is_default else tag("b", text_value)
        rows.append((name, cell, "" if is_default else "not the default"))
    rows.sort(key=lambda row: row[2] == "")
    caption = "Parameters; those that differ from the default come first"
    parameters = table(("parameter", "value", ""), rows, caption)
    content = tag("p", tag("b", estimator.__name__), ": ", text)
    return Section("model", "The model", content + collapse("All parameters", parameters))


def _shorten(text: str) -> str:
    """Return a text with at most 80 letters and "..." if it is longer, else unchanged."""
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]} ..."


def describe_model(evaluated: EvaluatedModel) -> list[str]:
    """Return sentences about a fitted model: numbers of classes and features, and its size.

    evaluated: the fitted model, the rows of the report and their predictions. Some models also have
    an effective sample size or an out-of-bag score.
    """
    model, sentences = evaluated.model, []
    features = format_quantity(model.n_features_in_, "feature")
    n_classes = format_quantity(len(evaluated.classes), "class", "classes")
    target = f"one of {n_classes}" if evaluated.classes else "a number"
    sentences.append(f"It predicts {target} from {features}.")
    size_text = describe_size(model)
    if isinstance(model, TreeVoteEstimator):
        mean = model.weights_.expected_leaves
        prunings = f"; its prunings have {mean:,.1f} leaves on average"
        if model._number_rules() is not None:
            prunings = ", and each leaf is a rule"
        size_text = f"a {size_text} and depth {model.get_depth()}{prunings}"
    sentences.append(f"It has {size_text}.")
    if (size := getattr(model, "effective_sample_size_", None)) is not None:
        sentences.append(
            f"The effective sample size of the fit is {format_quantity(round(size), 'row')}."
        )
    if hasattr(model, "oob_score_"):
        sentences.append(f"Its out-of-bag score is {model.oob_score_:.4g}.")
    return [*sentences, *_describe_last_dates(model)]


def _describe_last_dates(model: Any) -> list[str]:
    """Return a warning that predictions do not change after the last training date.

    model: the fitted model. The result is a list with one sentence, which names each feature of dates
    and its last date in the fit; [] if no feature holds dates.
    """
    names = model._feature_names()
    lasts = [
        f"{names[j]} ({one.format(one.last)})"
        for j, one in (getattr(model, "dates_", None) or {}).items()
        if one.last is not None and one.kind != "span"
    ]
    if not lasts:
        return []
    return [
        "Trees continue no trend: predictions do not change after the last training date of "
        f"{', '.join(lasts)}."
    ]


def build_score_section(evaluated: EvaluatedModel) -> Section:
    """Return the report's section with scores, their intervals, and a baseline to compare with.

    The baseline is the score of a constant prediction for these rows: their most frequent class
    (error), the frequencies of their classes (log loss), or the mean of their targets (root mean
    squared error). R2 has none, nor have, with two classes, recall and precision of the positive
    class and the area under the ROC curve. evaluated: the fitted model, the rows of the report and
    their predictions.
    """
    binary = BinaryPredictions.from_evaluation(evaluated)
    scores = [*compute_scores(evaluated), *([] if binary is None else binary.scores())]
    rows = [
        (
            score.name,
            tag("b", score.format_value(score.value)),
            f"{score.format_value(score.low)} to {score.format_value(score.high)}",
            score.method,
            *(
                ("", "")
                if score.baseline is None
                else (score.format_value(score.baseline.value), score.baseline.name)
            ),
        )
        for score in scores
    ]
    n_rows = format_quantity(evaluated.n, "row")
    text = f"Measured on the {n_rows} of this page. {describe_known_rows(evaluated)}"
    verdict = describe_verdict(scores)
    if verdict is not None:
        text += f" On these rows {verdict}."
    if evaluated.classes:
        text += f" {evaluated.prediction_rule}"
    headings = ("score", "value", "95 % interval", "method", "baseline", "which predicts")
    return Section("scores", "Scores", tag("p", text) + table(headings, rows, "Scores"))


def describe_known_rows(evaluated: EvaluatedModel) -> str:
    """Return a text that says how many rows of the report also occur in the fit of the model.

    Rows are compared by the hashes of their features; if the model has no hashes of its training
    rows, the text says so. If the model was fitted with groups, or to one row of each group, it begins
    with a sentence that intervals need rows of different groups; if it was fitted to rows in time
    order, with a sentence that intervals cover no later period. evaluated: the fitted model, the
    rows of the report and their predictions.
    """
    n_known, groups = evaluated.n_known_rows, find_groups_column(evaluated.model)
    text = "" if groups is None else _NEEDS_INDEPENDENT_ROWS
    if (column := find_drawn_groups_column(evaluated.model)) is not None:
        text += _ONE_ROW_OF_EACH_GROUP.format(name=column)
    if (column := find_time_column(evaluated.model)) is not None:
        is_declared = has_independent_period(evaluated.model)
        text += _COVERS_NO_LATER_PERIOD.format(
            name=f" of {column!r}" if column else "",
            assumption="" if is_declared else "take them as independent, and ",
        )
    if n_known is None:
        return text + (
            "The model has no hashes of its training rows. If the rows of this page are among them, "
            "the scores are too optimistic."
        )
    if n_known == 0:
        return text + "None of these rows occurs in the fit."
    return text + (
        f"{n_known:,} of these rows also {'occurs' if n_known == 1 else 'occur'} in the fit. If this "
        "is not by chance, the scores are too optimistic."
    )


def build_calibration_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section that compares predicted probabilities with observed frequencies.

    It has a figure and a table with a line for each of at most ten groups of rows of similar
    probability: of the positive one of two classes, or of the predicted class of more. evaluated: the
    fitted model, the rows of the report and their predictions. None for a regressor, and for a
    model of one class.
    """
    if evaluated.probabilities is None or len(evaluated.classes) < 2:
        return None
    subject, curve = compute_classifier_reliability(
        evaluated.model.classes_,
        evaluated.probabilities,
        evaluated.y,
        pos_label=evaluated.pos_label,
    )
    figure = draw_reliability(subject, curve)
    description = f"The mean calibration error is {100 * curve.error:.1f} percentage points."
    columns = (curve.predicted, curve.observed, curve.low, curve.high, curve.n_rows)
    rows = [
        (
            format_percent(predicted),
            format_percent(observed),
            f"{format_percent(low)} to {format_percent(high)}",
            f"{n:,.0f}",
        )
        for predicted, observed, low, high, n in zip(*columns, strict=True)
    ]
    headings = ("mean predicted probability", "observed frequency", "95 % interval", "rows")
    numbers = table(headings, rows, "Predicted probabilities and observed frequencies")
    content = embed_figure(figure, description) + collapse("Table", numbers)
    return Section("calibration", "Calibration of probabilities", content)


def build_threshold_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with certified rates and costs at all thresholds, or None.

    The rates are the false positive rate, recall and precision if rows are predicted to be of the
    positive class when its probability is at least the threshold. The rows of the report are the
    calibration set. None unless the model has two classes, its hashes show that no row occurs in the
    fit, and there are enough rows for a guarantee, without duplicates.
    evaluated: the fitted model, the rows of the report and their predictions.
    """
    if evaluated.probabilities is None or len(evaluated.classes) != 2:
        return None
    if evaluated.n_known_rows != 0 or evaluated.n < FEWEST_ROWS:
        return None
    try:
        guarantees = evaluated.compute_guarantees()
        thresholds = guarantees.thresholds(evaluated.user_costs, pos_label=evaluated.pos_label)
    except ValueError:  # Rows are duplicates, and the user has not said how to treat them.
        return None
    cheapest = thresholds.lowest_cost(*evaluated.costs)
    point = cheapest if evaluated.threshold is None else thresholds.at(evaluated.threshold)
    points = [point] if evaluated.user_costs is None else [*dict.fromkeys((point, cheapest))]
    text = (
        f"{thresholds.title} Rows are predicted {thresholds.positive} if its probability is at least "
        "the threshold. All bounds hold together, so you may choose a threshold after you see them."
    )
    headings, rows = thresholds.table()
    content = tag("p", text)
    content += concatenate(tag("p", str(one), class_="guarantee") for one in points)
    panels = create_threshold_panels(thresholds, point, evaluated.costs)
    content += embed_figures(draw_separately(panels, [PANEL] * len(panels)), str(point))
    content += collapse("Table", table(headings, rows, "Thresholds"))
    number = point.threshold
    if evaluated.threshold is None and number <= 1:  # Infinity predicts no row as positive.
        content += tag(
            "p",
            "All other sections of this page are about the most probable class, at threshold 0.5. Pass "
            f"threshold={number!r} (--threshold {number!r}) to see them at the threshold of lowest "
            "cost.",
        )
    return Section("thresholds", "Choice of a threshold", content)


def build_confusion_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with the confusion matrix.

    With more than 30 classes it lists the most frequent errors instead. evaluated: the fitted
    model, the rows of the report and their predictions. None for a regressor.
    """
    if evaluated.probabilities is None:
        return None
    content = tag("p", evaluated.prediction_rule) + _build_confusion(evaluated)
    return Section("confusion", "Confusion matrix", content)


def _build_confusion(evaluated: EvaluatedModel) -> Html:
    """Return the confusion matrix of a classifier as HTML, or its most frequent errors.

    evaluated: the fitted classifier, the rows of the report and their predictions.
    """
    classes = evaluated.classes
    position = {label: k for k, label in enumerate(classes)}
    true, predicted = (
        [position[label] for label in values.tolist()]
        for values in (evaluated.y, evaluated.predicted)
    )
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (true, predicted), 1)
    if len(classes) <= _MAX_CLASSES:
        return _build_confusion_matrix(classes, counts)
    return _list_frequent_errors(classes, counts)


def _build_confusion_matrix(classes: list[Any], counts: NDArray[np.int64]) -> Html:
    """Return the confusion matrix as an HTML table.

    The colour of a field shows which fraction of the rows of the true class it has; the last column
    is the recall. classes: names of the K classes. counts: number of rows, ndarray (K, K); true
    classes are rows, predicted classes are columns.
    """
    rows = []
    for k, label in enumerate(classes):
        total = max(int(counts[k].sum()), 1)
        cells = [
            tag(
                "span",
                f"{count:,}",
                class_="right" if j == k else "wrong",
                style=f"--share:{count / total:.3f}",
                title=f"{label} predicted as {classes[j]}: {format_percent(count / total)}",
            )
            for j, count in enumerate(counts[k].tolist())
        ]
        recall = format_percent(counts[k, k] / total) if counts[k].sum() else "no rows"
        rows.append((str(label), *cells, recall))
    headings = ("true class", *(f"as {label}" for label in classes), "recall")
    caption = "Number of rows by true class (rows of the table) and predicted class (columns)"
    return tag("div", table(headings, rows, caption), class_="confusion")


def _list_frequent_errors(classes: list[Any], counts: NDArray[np.int64]) -> Html:
    """Return an HTML table of the 20 most frequent errors: true class, predicted class, and rows.

    Pairs of classes without rows are left out. classes: names of the K classes. counts: number of
    rows, ndarray (K, K); true classes are rows, predicted classes are columns.
    """
    wrong = counts * (1 - np.eye(len(classes), dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_ERRORS]
    pairs = [divmod(k, len(classes)) for k in order.tolist()]
    rows = [(classes[i], classes[j], f"{wrong[i, j]:,}") for i, j in pairs if wrong[i, j]]
    return table(("true class", "predicted class", "rows"), rows, "The most frequent errors")


def build_importance_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with the importance of each feature.

    It has a figure and a table of `feature_importances_`: fractions of the impurity reduction of
    all splits or, of naive Bayes, of the mutual information of single features and the class.
    evaluated: the fitted model, the rows of the report and their predictions. None if the model has
    no `feature_importances_`.
    """
    model = evaluated.model
    values = getattr(model, "feature_importances_", None)
    if values is None:
        return None
    figure = plot_importance(model, max_features=_MAX_FEATURES)
    order = np.argsort(-np.asarray(values), kind="stable")
    names = model._feature_names()
    rows = [(names[j], format_percent(values[j])) for j in order.tolist()]
    first = order[0]
    whole = name_importance(model)
    description = f"{names[first]} has {format_percent(values[first])} of the {whole}."
    numbers = table(("feature", f"fraction of the {whole}"), rows, "Importances")
    content = embed_figure(figure, description) + collapse("Table", numbers)
    return Section("importances", "Feature importances", content)


def build_interaction_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section on how much of the predictions' variance interactions explain.

    Interactions are those of two, or of three and more features. evaluated: the fitted model, the
    rows of the report and their predictions; at most 1000 rows are used. None if predictions are
    not sums of leaf values of trees, there is only one feature, or all predictions are equal.
    """
    if not evaluated.has_additive_trees:
        return None
    rows = evaluated.take_rows(evaluated.sample_indices(_MAX_ROWS))
    fractions = interaction_fractions(evaluated.model, rows)
    if fractions.total <= 0 or evaluated.encoded.shape[1] < 2:
        return None
    paired = format_percent(fractions.share(float(fractions.paired.sum())))
    text = (
        f"Of the variance of the predictions, {paired} is due to interactions of two features and "
        f"{format_percent(fractions.share(fractions.higher))} to interactions of three or more. "
        "Features are treated as independent of each other."
    )
    figures = draw_separately(
        create_interaction_panels(fractions), compute_interaction_sizes(fractions)
    )
    content = tag("p", text) + embed_figures(figures, text)
    return Section("interactions", "Interactions of features", content)


def build_round_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with the loss on the rows of the report by boosting round.

    For AdaBoost it has the training error and its upper bound instead. evaluated: the fitted model,
    the rows of the report, of which at most 1000 are used, and their predictions. None if the model
    does not boost.
    """
    model = evaluated.model
    if isinstance(model, AdaBoostTreeClassifier):
        description = "Training error after each boosting round, and its upper bound."
        content = embed_figure(plot_adaboost(model), description)
        return Section("rounds", "Training error by round", content)
    if not isinstance(model, BoostedTrees):
        return None
    rows = evaluated.sample_indices(_MAX_ROWS)
    figure = plot_loss(model, evaluated.take_rows(rows), evaluated.y[rows])
    content = embed_figure(figure, "Loss after each boosting round.")
    return Section("rounds", "Loss by round", content)


SECTION_BUILDERS: tuple[Callable[[EvaluatedModel], Section | None], ...] = (
    build_model_section,
    build_score_section,
    build_certificate_section,
    build_calibration_section,
    build_ranking_section,
    build_threshold_section,
    build_group_section,
    build_confusion_section,
    build_importance_section,
    build_interaction_section,
    build_round_section,
    build_explorer_section,
    build_explanation_section,
    build_shapley_section,
)
