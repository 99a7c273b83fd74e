import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
)
from certree.experiments.figure2 import Curve
from certree.experiments.protocol import EXPANDED, GIBBS, PRUNING, UNPRUNED
from certree.experiments.rates import RULES, Rate, shrinking
from certree.experiments.table2 import PAPER, Line, Mean
from certree.show.curves import COLOURS, plot_figure2, plot_rates, plot_table2
from certree.show.loss import plot_loss
from certree.show.training_error import plot_adaboost
from certree.show.tree_picture import plot_tree

X, Y = load_iris(return_X_y=True, as_frame=True)


def line(dataset, partition, ratios):
    return Line(
        dataset=dataset,
        partition=partition,
        errors={PRUNING: Mean(0.1, 0.01)},
        ratios={PRUNING: Mean(1.0, 0.0), **{name: Mean(*r) for name, r in ratios.items()}},
        outside=None,
        n_nodes=11.0,
    )


NO_ERROR = float("nan")
TABLE = [
    line("wine", "dyadic", {"SN-pruning": (1.1, 0.05), "PAC-Bayes joint": (0.9, 0.02)}),
    line("mine", "dyadic", {"SN-pruning": (1.2, NO_ERROR), "PAC-Bayes joint": (0.8, NO_ERROR)}),
    line("wine", "kd", {"SN-pruning": (1.0, 0.05), "PAC-Bayes joint": (0.95, 0.02)}),
    line("mine", "kd", {"SN-pruning": (1.3, 0.05), "HS-vote": (1.4, 0.02)}),
    line("mine", EXPANDED, {"SN-pruning": (7.0, 0.05)}),
]


def curve(dataset, partition, method, first=0.5):
    errors = (Mean(first, 0.02), Mean(first / 2, NO_ERROR), Mean(first / 4, 0.01))
    return Curve(dataset, partition, method, (100, 150, 200), errors)


CURVES = [
    curve(dataset, partition, method, 0.1 + 0.1 * k)
    for partition in ("dyadic", EXPANDED, "kd")
    for dataset in ("iris", "cancer", "wine")
    for k, method in enumerate([PRUNING, "PAC-Bayes joint", UNPRUNED, GIBBS, "HS-vote"])
    if method != "HS-vote" or dataset == "cancer"
]


def drawn(figure):
    """Bytes of the picture: drawing must work and bring no warning."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=50)
    return file.getvalue()


def legend_of(figure):
    (legend,) = figure.findobj(Legend)
    return [text.get_text() for text in legend.get_texts()]


def points(ax, hollow):
    """The marks of a panel, filled or hollow, as (value, row)."""
    return {
        (round(float(x), 9), round(float(y)))
        for mark in ax.lines
        if mark.get_marker() == "o" and (mark.get_markerfacecolor() == "none") == hollow
        for x, y in zip(mark.get_xdata(), mark.get_ydata(), strict=True)
    }


# -- Table 2 ---------------------------------------------------------------------------------------


def test_table2_has_a_panel_per_partition_and_a_row_per_set():
    figure = plot_table2(TABLE)
    assert isinstance(figure, Figure)
    assert [ax.get_title() for ax in figure.axes] == ["dyadic tree", "kd tree"]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["wine", "mine"]
    for ax in figure.axes:
        assert "error of the optimal pruning" in ax.get_xlabel()
    assert drawn(figure)


def test_table2_marks_our_ratios_filled_and_the_paper_s_hollow():
    dyadic, kd = plot_table2(TABLE).axes
    assert points(dyadic, hollow=False) == {(1.1, 0), (0.9, 0), (1.2, 1), (0.8, 1)}
    assert points(kd, hollow=False) == {(1.0, 0), (0.95, 0), (1.3, 1), (1.4, 1)}
    for ax, partition in ((dyadic, "dyadic"), (kd, "kd")):
        sn, pac_bayes, _ = PAPER[partition]["wine"]
        assert points(ax, hollow=True) == {(sn, 0), (pac_bayes, 0)}


def test_table2_shows_the_first_set_on_top():
    ax = plot_table2(TABLE).axes[0]
    bottom, top = ax.get_ylim()
    assert top < 0 < 1 < bottom


def test_the_legend_of_table2_names_each_method_once_and_the_paper_if_it_is_there():
    names = ["SN-pruning", "PAC-Bayes joint", "HS-vote"]
    assert sorted(legend_of(plot_table2(TABLE))) == sorted([*names, "open: the paper's"])
    own = [each for each in TABLE if each.dataset == "mine"]
    assert sorted(legend_of(plot_table2(own))) == sorted(names)


def test_table2_of_one_partition_has_one_panel():
    figure = plot_table2(TABLE[:1])
    assert len(figure.axes) == 1
    assert drawn(figure)


def test_table2_draws_a_set_whose_ratios_are_not_defined():
    nothing = line("mine", "kd", {"SN-pruning": (NO_ERROR, NO_ERROR)})
    assert drawn(plot_table2([nothing]))


# -- Figure 2 --------------------------------------------------------------------------------------


def test_figure2_has_a_panel_per_partition_and_set():
    figure = plot_figure2(CURVES)
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [
        f"{dataset}, {partition}"
        for partition in ("dyadic", "kd")
        for dataset in ("iris", "cancer", "wine")
    ]
    assert [ax.get_xlabel() for ax in figure.axes] == [""] * 3 + ["training rows"] * 3
    assert [ax.get_ylabel() for ax in figure.axes] == ["test error", "", ""] * 2
    assert drawn(figure)


def test_figure2_draws_the_errors_of_each_method_in_its_colour():
    figure = plot_figure2(CURVES)
    for ax in figure.axes:
        dataset, partition = ax.get_title().split(", ")
        expected = {
            each.method: [error.value for error in each.errors]
            for each in CURVES
            if (each.dataset, each.partition) == (dataset, partition) and each.method != GIBBS
        }
        assert {shown.get_label() for shown in ax.lines} == set(expected)
        for shown in ax.lines:
            np.testing.assert_array_equal(shown.get_xdata(), [100, 150, 200])
            np.testing.assert_array_equal(shown.get_ydata(), expected[shown.get_label()])
            assert shown.get_color() == COLOURS[shown.get_label()]


def test_the_legend_of_figure2_names_every_method_that_is_drawn():
    figure = plot_figure2(CURVES)
    shown = {each.get_label() for ax in figure.axes for each in ax.lines}
    assert "HS-vote" in shown
    assert sorted(legend_of(figure)) == sorted(shown)


# -- rates -----------------------------------------------------------------------------------------


def rate(dimension, boundary, rule):
    rows = (256, 1024, 4096, 16384)
    power = 0.2 + 0.1 * [each.name for each in RULES].index(rule)
    excess = tuple(Mean(float(error), 0.001) for error in shrinking(rows) ** power)
    theory = NO_ERROR if rule == "(2) as printed" else 0.5
    fitted = Mean(power, NO_ERROR if dimension == 2 else 0.01)
    return Rate(dimension, boundary, rule, rows, excess, (1.0,) * 4, theory, fitted)


RATES = [
    rate(dimension, boundary, rule.name)
    for dimension in (2, 3)
    for boundary in ("Lipschitz", "smooth")
    for rule in RULES
]


def test_rates_have_a_panel_per_dimension_and_boundary():
    figure = plot_rates(RATES)
    assert [ax.get_title() for ax in figure.axes] == [
        f"{boundary} boundary, {dimension} features"
        for dimension in (2, 3)
        for boundary in ("Lipschitz", "smooth")
    ]
    assert all((ax.get_xscale(), ax.get_yscale()) == ("log", "log") for ax in figure.axes)
    assert drawn(figure)
    assert len(plot_rates(RATES[:4]).axes) == 1


def test_rates_name_exponents_and_draw_those_of_the_theory():
    figure = plot_rates(RATES)
    for ax, spread in zip(figure.axes, ["", "", " ±0.01", " ±0.01"], strict=True):
        shown = [text.get_text() for text in ax.get_legend().get_texts()]
        assert shown == [f"{power}{spread} (0.50)" for power in ("0.20", "0.30", "0.50")]
        dotted = [mark for mark in ax.lines if mark.get_linestyle() == ":"]
        assert len(dotted) == 3
        for mark in dotted:
            x, y = mark.get_data()
            assert list(x) == [4096, 16384]
            assert np.diff(np.log(y)) == pytest.approx(0.5 * np.diff(np.log(shrinking(x))))
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*(rule.name for rule in RULES), "theory's rate"]


def test_a_rate_that_could_not_be_fitted_has_no_exponent():
    few = [replace(each, fitted=Mean(NO_ERROR, NO_ERROR)) for each in RATES[:4]]
    figure = plot_rates(few)
    assert figure.axes[0].get_legend() is None
    assert drawn(figure)


# -- a tree ----------------------------------------------------------------------------------------


def boxes(figure):
    (ax,) = figure.axes
    return [text for text in ax.texts if text.get_text()]


@pytest.mark.parametrize(
    "model",
    [
        PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.05),
        PACBayesTreeClassifier("dyadic", random_state=0),
        PrunedTreeClassifier(price=0.1),
        HelmboldSchapireTreeClassifier(random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.partition}",
)
@pytest.mark.parametrize("max_leaves", [1, 2, 3, 8, 12])
def test_a_tree_has_a_box_per_node_and_at_most_max_leaves_leaves(model, max_leaves):
    model.fit(X, Y == 1)
    figure = plot_tree(model, max_leaves)
    n_leaves = (len(boxes(figure)) + 1) // 2
    assert 1 <= n_leaves <= max_leaves
    assert len(boxes(figure)) == len(model.export_text(max_leaves).splitlines())
    (ax,) = figure.axes
    assert len(ax.lines) == len(boxes(figure)) - 1  # an edge to each node but the root
    assert drawn(figure)


def test_boxes_say_what_the_cells_say():
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.05)
    model.fit(X, np.array(["one", "two", "three"])[Y])
    figure = plot_tree(model, 6)
    assert len(boxes(figure)) == 11
    stack, text = [model._explainer().shown(6)], []
    while stack:
        branch = stack.pop()
        text.append(str(branch.cell))
        stack.extend(branch.children)
    for box in boxes(figure):
        rule, rows_and_label, share = box.get_text().split("\n")
        rows, label = rows_and_label.split(" rows: ")
        share = share.removesuffix(" of the vote")
        assert f"{rule}: {rows} rows, votes {label} with {share}" in text


def test_dashed_boxes_are_those_that_are_split_further():
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.05).fit(X, Y)
    for max_leaves in (2, 5, 1000):
        lines = model.export_text(max_leaves).splitlines()
        styles = [
            box.get_bbox_patch().get_linestyle() for box in boxes(plot_tree(model, max_leaves))
        ]
        assert sum(style in ("--", "dashed") for style in styles) == sum(
            text.endswith("...") for text in lines
        )
        assert len(styles) == len(lines)


def test_boxes_do_not_lie_on_each_other():
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.05).fit(X, Y)
    figure = plot_tree(model, 10)
    drawn(figure)
    places = [box.get_bbox_patch().get_window_extent() for box in boxes(figure)]
    for i, one in enumerate(places):
        for other in places[:i]:
            assert not one.overlaps(other)


def test_a_tree_of_one_leaf_is_one_plain_box():
    model = PACBayesTreeClassifier(random_state=0).fit(X, ["only"] * len(X))
    figure = plot_tree(model)
    (box,) = boxes(figure)
    assert box.get_text() == "all rows\n150 rows: only\n100.0 % of the vote"
    assert box.get_bbox_patch().get_linestyle() in ("-", "solid")
    assert figure.axes[0].lines[:] == []
    assert drawn(figure)


def test_classes_have_colours_of_their_own():
    model = PrunedTreeClassifier(price=0.5).fit(X, Y)
    figure = plot_tree(model, 30)
    strong = {}
    for box in boxes(figure):
        if "100.0 %" in box.get_text():
            label = box.get_text().split("rows: ")[1].split("\n")[0]
            strong.setdefault(label, set()).add(tuple(box.get_bbox_patch().get_facecolor()))
    assert set(strong) == {"0", "1", "2"}
    assert all(len(colours) == 1 for colours in strong.values())
    assert len(set.union(*strong.values())) == 3


@pytest.mark.parametrize("name", ["a_b^c", "$_$", "price ($)", r"\alpha", "50 % & more"])
def test_names_with_signs_that_mean_something_to_matplotlib_are_drawn(name):
    rng = np.random.default_rng(0)
    frame = X.iloc[:, :1].set_axis([name], axis=1)
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.05)
    model.fit(frame, np.array(["$", "_"])[rng.integers(0, 2, len(X))])
    assert drawn(plot_tree(model, 4))


def test_no_leaf_at_all_is_refused():
    model = PACBayesTreeClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="max_leaves must be at least 1"):
        plot_tree(model, 0)


def test_an_unfitted_model_has_no_tree_to_draw():
    with pytest.raises(NotFittedError):
        plot_tree(PACBayesTreeClassifier())


def test_a_regression_tree_is_coloured_by_its_numbers():
    X = np.arange(40.0)[:, None]
    model = certree.PrunedTreeRegressor(price=1.0).fit(X, np.repeat([1.0, 9.0], 20))
    figure = plot_tree(model)
    boxes = [text.get_bbox_patch().get_facecolor() for text in figure.axes[0].texts]
    assert len(boxes) == 3
    assert len(set(boxes)) == 3
    assert "20 rows: 9" in "".join(text.get_text() for text in figure.axes[0].texts)


def test_the_training_error_and_its_bound_are_drawn():
    model = AdaBoostTreeClassifier(n_estimators=15).fit(X, Y)
    (axes,) = plot_adaboost(model).axes
    bound, error = (line.get_ydata() for line in axes.lines)
    np.testing.assert_array_equal(bound, model.error_bounds_)
    np.testing.assert_array_equal(error, model.training_errors_)
    assert axes.get_title() == f"Training error {error[-1]:.3g}, bounded by {bound[-1]:.3g}"
    assert plot_adaboost(model, axes) is axes.figure
    alone = AdaBoostTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    assert plot_adaboost(alone).axes[0].get_title() == "Training error 0, bounded by 0"


def test_the_loss_is_drawn_by_round():
    model = BoostedTreesClassifier(max_iter=15, random_state=0).fit(X[::2], Y[::2])
    with pytest.raises(ValueError, match="fitted without X_val and y_val"):
        plot_loss(model)
    model.fit(X[::2], Y[::2], X_val=X[1::2], y_val=Y[1::2])
    figure = plot_loss(model)
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    best = int(model.validation_score_.argmax()) + 1
    assert f"smallest after {best} of 15 rounds" in axes.get_title()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), -model.validation_score_)
    assert plot_loss(model, ax=Figure().add_subplot()).axes
