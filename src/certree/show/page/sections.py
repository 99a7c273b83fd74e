"""The sections of a page, in their order; further ones join `SECTIONS`.

A section asks `Judged` and gives a `Section`, or None where it does not apply to the model.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from certree.certificates import Guarantees
from certree.certificates.parts.families import FEWEST_ROWS
from certree.ensembles import AdaBoostTreeClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.forest import Forest
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain import interaction_fractions
from certree.interface.fitted_state import get_snapshot
from certree.interface.formatting import format_four_digits, format_percent, format_quantity
from certree.show.calibration import compared, draw_reliability
from certree.show.importance import plot_importance
from certree.show.interactions_picture import interaction_panels, interaction_sizes
from certree.show.loss import plot_loss
from certree.show.page.certificate_section import certificate
from certree.show.page.explained import explained, shapley
from certree.show.page.explorer import explorer
from certree.show.page.groups import by_group
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, folded, joined, picture, pictures, table, tag
from certree.show.page.ranked import ranked
from certree.show.page.scores import scores_of
from certree.show.page.section import Section
from certree.show.style import PANEL, each_alone
from certree.show.threshold_picture import threshold_panels
from certree.show.training_error import plot_adaboost

# Classes that a confusion matrix is drawn for, pairs that are named of more, bars of importances.
_CLASSES, _PAIRS, _FEATURES = 30, 20, 15
# Rows that rounds are judged by.
_JUDGING = 1000
# Letters of a value.
_LONG = 80


def about(judged: Judged) -> Section:
    """What the model is, in words, and its parameters."""
    model = judged.model
    kind = type(model)
    first = (inspect.getdoc(kind) or kind.__name__).split("\n")[0]
    facts = tag("p", tag("b", kind.__name__), ": ", f"{first} {' '.join(_facts(judged))}")
    defaults = {name: each.default for name, each in inspect.signature(kind).parameters.items()}
    lines = []
    for name, value in get_snapshot(model).get_params(deep=False).items():
        is_default = repr(value) == repr(defaults.get(name))
        words = _shortened(repr(value))
        lines.append((name, words if is_default else tag("b", words), "" if is_default else "set"))
    lines.sort(key=lambda line: line[2] == "")
    parameters = table(("parameter", "value", ""), lines, "Parameters, those that were set first")
    return Section("model", "The model", facts + folded("All parameters", parameters))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]} ..."


def _facts(judged: Judged) -> list[str]:
    """Sentences about the size of what was fitted."""
    model, facts = judged.model, []
    features = format_quantity(judged.coded.shape[1], "feature")
    target = format_quantity(len(judged.classes), "class", "classes")
    facts.append(f"It predicts {target if judged.classes else 'a number'} by {features}.")
    if isinstance(model, TreeVoteEstimator):
        facts.append(
            f"Its tree has {format_quantity(model.get_n_leaves(), 'leaf', 'leaves')}, "
            f"the deepest below {format_quantity(model.get_depth(), 'cell')}; its prunings have "
            f"{model.weights_.expected_leaves:,.1f} leaves on average."
        )
    if isinstance(model, BoostedTrees | Forest):
        leaves = int((model.trees_.left < 0).sum())
        facts.append(f"It has {len(model.trees_):,} trees with {leaves:,} leaves together.")
    if (size := getattr(model, "effective_sample_size_", None)) is not None:
        facts.append(
            f"The effective sample size of the fit is {format_quantity(round(size), 'row')}."
        )
    if hasattr(model, "oob_score_"):
        facts.append(f"Its out-of-bag score is {model.oob_score_:.4g}.")
    return facts


def errors(judged: Judged) -> Section:
    """The scores with their intervals."""
    lines = [
        (
            score.name,
            tag("b", score.said(score.value)),
            f"{score.said(score.low)} to {score.said(score.high)}",
            score.how,
        )
        for score in scores_of(judged)
    ]
    lines += _yardstick(judged)
    told = [
        tag("p", f"On the {format_quantity(judged.n, 'row')} given to this page. {_seen(judged)}")
    ]
    head = ("score", "value", "95 % interval", "by")
    return Section("scores", "How good it is", joined(told) + table(head, lines, "Scores"))


def _yardstick(judged: Judged) -> list[tuple[Any, ...]]:
    """What a model without features would do."""
    if judged.shares is None:
        alone = format_four_digits(float(judged.y.std()))
        return [("The same of the mean alone", alone, "", "of these rows")]
    values, counts = np.unique(judged.y, return_counts=True)
    rest = 1 - counts.max() / judged.n
    words = f"Error of always {_shortened(str(values[counts.argmax()]))}"
    return [(words, f"{100 * rest:.1f} %", "", "of these rows")]


def _seen(judged: Judged) -> str:
    """Whether the model has seen the rows."""
    known = judged.n_repeated
    if known is None:
        return "The model does not know its rows: if these are some of them, it looks too good."
    if known == 0:
        return "None of them occurs among the rows of the fit."
    return (
        f"{known:,} of them also occur among the rows of the fit. Unless they only happen to be "
        "alike, the model looks better here than it is on new rows."
    )


def calibration(judged: Judged) -> Section | None:
    """How often probabilities come true."""
    if judged.shares is None or len(judged.classes) < 2:
        return None
    subject, found = compared(judged.model.classes_, judged.shares, judged.y)
    figure = draw_reliability(subject, found)
    words = f"Predicted probabilities are off by {100 * found.error:.1f} points on average."
    lines = [
        (
            format_percent(p),
            format_percent(q),
            f"{format_percent(low)} to {format_percent(high)}",
            format_quantity(n, "row"),
        )
        for p, q, low, high, n in zip(
            found.said, found.found, found.low, found.high, found.rows, strict=True
        )
    ]
    numbers = table(("said", "found", "95 % interval", "rows"), lines, "Said and found")
    shown = picture(figure, words) + folded("The same as numbers", numbers)
    return Section("calibration", "Whether its probabilities can be believed", shown)


def thresholds(judged: Judged) -> Section | None:
    """What holds at every threshold of two classes, where the rows are new to the model."""
    if judged.shares is None or len(judged.classes) != 2 or judged.n_repeated != 0:
        return None
    if judged.n < FEWEST_ROWS or not np.isin(judged.y, judged.classes).all():
        return None
    try:
        found = Guarantees.by_rows(judged.model, judged.X, judged.y).thresholds(judged.named_costs)
    except ValueError:  # rows repeat each other, and nobody has said why
        return None
    point = found.lowest_cost(*judged.costs)
    words = (
        f"{found.title} Rows are taken for {judged.classes[1]} where its probability is at least the "
        "threshold. All lines hold together, so one may look first and then choose."
    )
    head, lines = found.table()
    shown = tag("p", words) + tag("p", str(point), class_="promise")
    panels = threshold_panels(found, point, judged.costs)
    shown += pictures(each_alone(panels, [PANEL] * len(panels)), str(point))
    shown += folded("The same as numbers", table(head, lines, "Thresholds"))
    return Section("thresholds", "Which threshold to choose", shown)


def confusion(judged: Judged) -> Section | None:
    """Which classes are taken for which."""
    if judged.shares is None:
        return None
    classes = list(dict.fromkeys([*judged.classes, *np.unique(judged.y).tolist()]))
    place = {label: k for k, label in enumerate(classes)}
    true, taken = ([place[one] for one in given.tolist()] for given in (judged.y, judged.predicted))
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (true, taken), 1)
    shown = _matrix(classes, counts) if len(classes) <= _CLASSES else _pairs(classes, counts)
    return Section("confusion", "What it takes for what", shown)


def _matrix(classes: list[Any], counts: Any) -> Html:
    lines = []
    for k, label in enumerate(classes):
        total = max(int(counts[k].sum()), 1)
        cells = [
            tag(
                "span",
                f"{count:,}",
                class_="right" if j == k else "wrong",
                style=f"--share:{count / total:.3f}",
                title=f"{label} taken for {classes[j]}: {format_percent(count / total)}",
            )
            for j, count in enumerate(counts[k].tolist())
        ]
        recall = format_percent(counts[k, k] / total) if counts[k].sum() else "none"
        lines.append((str(label), *cells, recall))
    head = ("true class", *(f"as {label}" for label in classes), "found")
    shown = table(head, lines, "Rows of each class (lines) by what they are taken for (columns)")
    return tag("div", shown, class_="confusion")


def _pairs(classes: list[Any], counts: Any) -> Html:
    wrong = counts * (1 - np.eye(len(classes), dtype=np.int64))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
    found = [(k // len(classes), k % len(classes)) for k in order.tolist()]
    lines = [(classes[a], classes[b], f"{wrong[a, b]:,}") for a, b in found if wrong[a, b]]
    return table(("true class", "taken for", "rows"), lines, "The commonest errors")


def importances(judged: Judged) -> Section | None:
    """Which features decide."""
    model = judged.model
    values = getattr(model, "feature_importances_", None)
    if values is None:
        return None
    figure = plot_importance(model, max_features=_FEATURES)
    order = np.argsort(-np.asarray(values), kind="stable")
    names = model._feature_names()
    lines = [(names[j], format_percent(values[j])) for j in order.tolist()]
    words = f"{names[order[0]]} has {format_percent(values[order[0]])} of what all splits tell."
    numbers = table(("feature", "share"), lines, "Importances")
    shown = picture(figure, words) + folded("The same as numbers", numbers)
    return Section("importances", "Which features decide", shown)


def interactions(judged: Judged) -> Section | None:
    """Which features act together."""
    if not judged.adds_up:
        return None
    shares = interaction_fractions(judged.model, judged.rows(judged.some(_JUDGING)))
    if shares.total <= 0 or judged.coded.shape[1] < 2:
        return None
    together = shares.share(float(shares.paired.sum()))
    words = (
        f"{format_percent(together)} of the variance of what the model says is due to pairs of "
        "features, beyond what each makes alone, and "
        f"{format_percent(shares.share(shares.higher))} to three or more. "
        "Features are taken as independent of each other."
    )
    figures = each_alone(interaction_panels(shares), interaction_sizes(shares))
    shown = tag("p", words) + pictures(figures, words)
    return Section("interactions", "Which features act together", shown)


def rounds(judged: Judged) -> Section | None:
    """How the model got better round by round."""
    model = judged.model
    if isinstance(model, AdaBoostTreeClassifier):
        words = "Training error after each round, and its bound."
        return Section("rounds", "Round by round", picture(plot_adaboost(model), words))
    if not isinstance(model, BoostedTrees):
        return None
    used = judged.some(_JUDGING)
    known = used if judged.shares is None else used[np.isin(judged.y[used], model.classes_)]
    if not len(known):
        return None
    figure = plot_loss(model, judged.rows(known), judged.y[known])
    words = "Loss after each round of boosting."
    return Section("rounds", "Loss, round by round", picture(figure, words))


SECTIONS: tuple[Callable[[Judged], Section | None], ...] = (
    about,
    errors,
    certificate,
    calibration,
    ranked,
    thresholds,
    by_group,
    confusion,
    importances,
    interactions,
    rounds,
    explorer,
    explained,
    shapley,
)
