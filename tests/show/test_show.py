import io
import re
from dataclasses import replace
from unittest.mock import patch
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    CertifiedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
)
from certree.certificates import Guarantees, Monitor
from certree.explain import Explanation, Interactions, interaction_fractions
from certree.interface.formatting import format_bound, format_percent
from certree.paper import plot_figure2, plot_rates, plot_table2
from certree.paper.curves import COLOURS
from certree.paper.figure2 import Curve
from certree.paper.protocol import EXPANDED, GIBBS, PRUNING, UNPRUNED
from certree.paper.rates import RULES, Rate, compute_log_n_over_n
from certree.paper.table2 import PAPER, Line, Mean
from certree.show import (
    plot_adaboost,
    plot_calibration,
    plot_certificate,
    plot_explanation,
    plot_importance,
    plot_interactions,
    plot_loss,
    plot_monitor,
    plot_ranking,
    plot_selective,
    plot_thresholds,
    plot_tree,
)
from certree.show.calibration import compute_reliability_curve
from certree.show.certificate_picture import draw_bound_by_rows
from certree.show.style import set_title

X, Y = load_iris(return_X_y=True, as_frame=True)


def line(dataset, grower, ratios):
    return Line(
        dataset=dataset,
        grower=grower,
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


def curve(dataset, grower, method, first=0.5):
    errors = (Mean(first, 0.02), Mean(first / 2, NO_ERROR), Mean(first / 4, 0.01))
    return Curve(dataset, grower, method, (100, 150, 200), errors)


CURVES = [
    curve(dataset, grower, method, 0.1 + 0.1 * k)
    for grower in ("dyadic", EXPANDED, "kd")
    for dataset in ("iris", "cancer", "wine")
    for k, method in enumerate([PRUNING, "PAC-Bayes joint", UNPRUNED, GIBBS, "HS-vote"])
    if method != "HS-vote" or dataset == "cancer"
]


def drawn(figure):
    """Draw a figure and return the bytes of the PNG; a warning is an error."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=50)
    return file.getvalue()


def legend_of(figure):
    (legend,) = figure.findobj(Legend)
    return [text.get_text() for text in legend.get_texts()]


def points(ax, hollow):
    """Return the filled or hollow markers of a panel as (value, row)."""
    return {
        (round(float(x), 9), round(float(y)))
        for mark in ax.lines
        if mark.get_marker() == "o" and (mark.get_markerfacecolor() == "none") == hollow
        for x, y in zip(mark.get_xdata(), mark.get_ydata(), strict=True)
    }


# -- Table 2 ---------------------------------------------------------------------------------------


def test_table2_has_a_panel_per_grower_and_a_row_per_set():
    figure = plot_table2(TABLE)
    assert isinstance(figure, Figure)
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        f"{grower} tree" for grower in ("dyadic", "kd", EXPANDED)
    ]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["wine", "mine"]
    for ax in figure.axes:
        assert "error of the optimal pruning" in ax.get_xlabel()
    assert drawn(figure)


def test_table2_marks_our_ratios_filled_and_the_paper_s_hollow():
    dyadic, kd, expanded = plot_table2(TABLE).axes
    assert points(expanded, hollow=False) == {(7.0, 1)}
    assert points(dyadic, hollow=False) == {(1.1, 0), (0.9, 0), (1.2, 1), (0.8, 1)}
    assert points(kd, hollow=False) == {(1.0, 0), (0.95, 0), (1.3, 1), (1.4, 1)}
    for ax, grower in ((dyadic, "dyadic"), (kd, "kd")):
        sn, pac_bayes, _ = PAPER[grower]["wine"]
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


def test_table2_of_one_grower_has_one_panel():
    figure = plot_table2(TABLE[:1])
    assert len(figure.axes) == 1
    assert drawn(figure)


def test_table2_draws_a_set_whose_ratios_are_not_defined():
    nothing = line("mine", "kd", {"SN-pruning": (NO_ERROR, NO_ERROR)})
    assert drawn(plot_table2([nothing]))


# -- Figure 2 --------------------------------------------------------------------------------------


def test_figure2_has_a_panel_per_grower_and_set():
    figure = plot_figure2(CURVES)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [
        f"{dataset}, {grower}"
        for grower in ("dyadic", EXPANDED, "kd")
        for dataset in ("iris", "cancer", "wine")
    ]
    assert [ax.get_xlabel() for ax in figure.axes] == [""] * 6 + ["training rows"] * 3
    assert [ax.get_ylabel() for ax in figure.axes] == ["test error", "", ""] * 3
    assert drawn(figure)


def test_figure2_draws_the_errors_of_each_method_in_its_colour():
    figure = plot_figure2(CURVES)
    for ax in figure.axes:
        dataset, grower = ax.get_title(loc="left").split(", ")
        expected = {
            each.method: [error.value for error in each.errors]
            for each in CURVES
            if (each.dataset, each.grower) == (dataset, grower) and each.method != GIBBS
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
    excess = tuple(Mean(float(error), 0.001) for error in compute_log_n_over_n(rows) ** power)
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
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
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
            assert np.diff(np.log(y)) == pytest.approx(
                0.5 * np.diff(np.log(compute_log_n_over_n(x)))
            )
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*(rule.name for rule in RULES), "theory's rate"]


@pytest.mark.slow
def test_a_rate_that_could_not_be_fitted_has_no_exponent():
    few = [replace(each, fitted=Mean(NO_ERROR, NO_ERROR)) for each in RATES[:4]]
    figure = plot_rates(few)
    assert figure.axes[0].get_legend() is None
    assert drawn(figure)


# -- a tree ----------------------------------------------------------------------------------------

SOME = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.05)


def texts(figure, kind):
    (ax,) = figure.axes
    return [text for text in ax.texts if text.get_gid() == kind]


def boxes(figure):
    (ax,) = figure.axes
    return list(ax.patches)


def predictions(figure):
    return [text.get_text() for text in texts(figure, "prediction")]


@pytest.mark.parametrize(
    "model",
    [
        SOME,
        PACBayesTreeClassifier("dyadic", random_state=0),
        PrunedTreeClassifier(alpha=0.1),
        HelmboldSchapireTreeClassifier(random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.grower}",
)
@pytest.mark.parametrize("max_leaves", [1, 2, 3, 8, 12])
def test_a_tree_has_a_box_per_node_and_at_most_max_leaves_leaves(model, max_leaves):
    model.fit(X, Y == 1)
    figure = plot_tree(model, max_leaves)
    n_leaves = (len(boxes(figure)) + 1) // 2
    assert 1 <= n_leaves <= max_leaves
    assert len(boxes(figure)) == len(model.export_text(max_leaves).splitlines())
    assert len(boxes(figure)) == len(texts(figure, "rule")) == len(predictions(figure))
    (ax,) = figure.axes
    assert len(ax.lines) == len(boxes(figure)) - 1  # an edge to each node but the root
    assert drawn(figure)


def test_a_tree_shows_rules_rows_and_predictions():
    classes = np.array(["one", "two", "three"])
    model = clone(SOME).fit(X, classes[Y])
    figure = plot_tree(model, 6)
    rules = [text.get_text().replace("\n", " ") for text in texts(figure, "rule")]
    lines = {line.lstrip("|- ").split(":")[0] for line in model.export_text(6).splitlines()}
    assert set(rules) == lines
    place = rules.index("all rows")
    share = model.predict_proba(X).mean(axis=0)
    best = share.argmax()
    assert (
        predictions(figure)[place]
        == f"{model.classes_[best]}: {100 * share[best]:.0f} % · 150 rows"
    )
    # The root's first child holds the rows that its rule says.
    below = X.iloc[:, model.tree_.feature[0]] <= model.tree_.threshold[0]
    share = model.predict_proba(X)[below].mean(axis=0)
    expected = (
        f"{model.classes_[share.argmax()]}: {format_percent(share.max())} · {below.sum()} rows"
    )
    assert expected in predictions(figure)


def test_dashed_boxes_show_how_many_leaves_are_below_them():
    model = clone(SOME).fit(X, Y)
    for max_leaves in (2, 5, 1000):
        lines = model.export_text(max_leaves).splitlines()
        figure = plot_tree(model, max_leaves)
        dashed = [box.get_linestyle() in ("--", "dashed") for box in boxes(figure)]
        assert sum(dashed) == sum(text.endswith("...") for text in lines)
        hidden = [
            int(text.get_text().split(" lea")[0])
            for text in figure.axes[0].texts
            if text.get_text().endswith(" below")
        ]
        assert len(hidden) == sum(dashed)
        n_shown = (len(dashed) + 1) // 2
        assert n_shown - sum(dashed) + sum(hidden) == model.get_n_leaves()


@pytest.mark.parametrize(
    "model", [clone(SOME), CertifiedTreeClassifier(random_state=0)], ids=["plain", "certified"]
)
def test_texts_do_not_overlap_and_stay_on_the_figure(model):
    long = X.rename(columns=lambda name: f"{name} of a plant that grows in the garden" * 3)
    model = model.fit(long, Y)
    figure = plot_tree(model, 10)
    assert figure.get_size_inches()[0] == 11
    drawn(figure)
    (ax,) = figure.axes
    places = [text.get_window_extent() for text in ax.texts]
    for i, one in enumerate(places):
        assert one.x1 <= figure.bbox.x1
        for other in places[:i]:
            # Lines of a font touch by less than a pixel.
            assert min(one.x1, other.x1) - max(one.x0, other.x0) < 1 or (
                min(one.y1, other.y1) - max(one.y0, other.y0) < 2.5
            )


def test_leaves_of_a_certified_tree_show_bounds_on_their_error(tmp_path):
    rows, y = coins(800)
    model = CertifiedTreeClassifier(random_state=0).fit(rows, y)
    for max_leaves in (1, 4):
        figure = plot_tree(model, max_leaves)
        cells = model.conditional_guarantees("cells").cells
        expected = {
            f"error <= {format_bound(cells[one.node].bound)} · {one.calibration_rows} calibration rows"
            for one in model.rules(max_leaves)
        }
        bounds = texts(figure, "bound")
        assert {text.get_text() for text in bounds} == expected
        assert len(bounds) == len(model.rules(max_leaves))
        (ax,) = figure.axes
        assert ax.get_title(loc="left").endswith(model.rules(1).title.rstrip("."))
        drawn(figure)
        heights = [text.get_window_extent().y1 for text in bounds]
        assert max(heights) < figure.bbox.y1
    certree.save(model, tmp_path / "model.certree", calibration_samples=False)
    figure = plot_tree(certree.load(tmp_path / "model.certree"), 4)
    assert not texts(figure, "bound")
    title = figure.axes[0].get_title(loc="left")
    assert title.endswith(
        "\nRules have no error bounds of their own: the model file does not hold the "
        "calibration set"
    )
    figure = plot_tree(clone(SOME).fit(rows, y), 4)
    assert not texts(figure, "bound")
    assert "\n" not in figure.axes[0].get_title(loc="left")


def test_line_widths_are_proportional_to_rows():
    model = clone(SOME).fit(X, Y)
    figure = plot_tree(model, 2)
    rows = sorted(int(text.split(" · ")[1].split(" row")[0]) for text in predictions(figure))[:2]
    narrow, wide = sorted(line.get_linewidth() for line in figure.axes[0].lines)
    assert (wide - 0.6) / (narrow - 0.6) == pytest.approx(rows[1] / rows[0])


def test_a_tree_of_one_leaf_is_one_plain_box():
    model = PACBayesTreeClassifier(random_state=0).fit(X, ["only"] * len(X))
    figure = plot_tree(model)
    (box,) = boxes(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == [
        "all rows",
        "only: 100 % · 150 rows",
    ]
    assert box.get_linestyle() in ("-", "solid")
    assert figure.axes[0].lines[:] == []
    assert figure.axes[0].get_title(loc="left") == "No feature has any importance · 1 leaf"
    assert drawn(figure)


def test_each_class_has_its_own_colour():
    model = PrunedTreeClassifier(alpha=0.5).fit(X, Y)
    figure = plot_tree(model, 30)
    strong = {}
    for box, words in zip(boxes(figure), predictions(figure), strict=True):
        label, share = words.split(" · ")[0].split(": ")
        if share == "100 %":
            strong.setdefault(label, set()).add(tuple(np.round(box.get_facecolor(), 6)))
    assert set(strong) == {"0", "1", "2"}
    assert all(len(colours) == 1 for colours in strong.values())
    assert len(set.union(*strong.values())) == 3


def test_the_title_names_the_most_important_feature():
    model = clone(SOME).fit(X, Y)
    share = model.feature_importances_.max()
    name = X.columns[model.feature_importances_.argmax()]
    (ax,) = plot_tree(model, 3).axes
    assert ax.get_title(loc="left") == (
        f"{name} is most important: {100 * share:.0f} % of the total · "
        f"3 of {model.get_n_leaves()} leaves"
    )


@pytest.mark.parametrize("name", ["a_b^c", "$_$", "price ($)", r"\alpha", "50 % & more"])
def test_names_with_characters_special_to_matplotlib_are_drawn(name):
    rng = np.random.default_rng(0)
    frame = X.iloc[:, :1].set_axis([name], axis=1)
    model = clone(SOME).fit(frame, np.array(["$", "_"])[rng.integers(0, 2, len(X))])
    figure = plot_tree(model, 4)
    assert any(text.get_text().startswith(name) for text in texts(figure, "rule"))
    for each in (
        figure,
        plot_importance(model),
        plot_calibration(model, frame, model.predict(frame)),
    ):
        assert drawn(each)


def test_max_leaves_below_one_is_refused():
    model = PACBayesTreeClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="max_leaves must be at least 1"):
        plot_tree(model, 0)


def test_models_without_a_tree_are_refused():
    with pytest.raises(NotFittedError):
        plot_tree(PACBayesTreeClassifier())
    with pytest.raises(NotFittedError):
        plot_tree(BoostedTreesClassifier())
    for model in (None, certree.NaiveBayesClassifier().fit(X, Y), LogisticRegression()):
        with pytest.raises(TypeError, match="model must be an estimator of certree that"):
            plot_tree(model)


def test_a_regression_tree_is_coloured_by_its_predictions():
    X = np.arange(40.0)[:, None]
    model = certree.PrunedTreeRegressor(alpha=1.0).fit(X, np.repeat([1.0, 123456.7], 20))
    figure = plot_tree(model)
    assert len({box.get_facecolor() for box in boxes(figure)}) == 3
    assert predictions(figure) == ["1 · 20 rows", "61,729 · 40 rows", "123,457 · 20 rows"]


@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesClassifier(max_iter=3, random_state=0),
        TreeForestClassifier(3, random_state=0),
        AdaBoostTreeClassifier(n_estimators=3, max_depth=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_tree_of_an_ensemble_counts_given_rows(model):
    model.fit(X, Y == 1)
    figure = plot_tree(model, 3, number=1, X=X[:90])
    (ax,) = figure.axes
    assert ax.get_title(loc="left").startswith("Tree 2 of 3 splits on ")
    tree = model.trees_.tree(1)
    value = tree.value
    mean = value[tree.apply(X[:90].to_numpy(), n_jobs=1), 0].mean()
    share = f"{100 * mean:.0f} %" if isinstance(model, TreeForestClassifier) else f"{mean:+.3g}"
    assert f"True: {share} · 90 rows" in predictions(figure)
    with pytest.raises(
        ValueError, match=r"number must lie in -3 .. 2, as the model has 3 trees, got 3"
    ):
        plot_tree(model, number=3, X=X)
    with pytest.raises(ValueError, match="X must be given for an ensemble"):
        plot_tree(model)


def test_a_tree_is_drawn_on_the_given_axes():
    model = clone(SOME).fit(X, Y)
    figure = Figure(figsize=(14, 5))
    left, right = figure.subplots(1, 2)
    assert plot_tree(model, 4, right) is figure
    assert len(right.patches) == 7
    assert not left.patches
    assert drawn(figure)


def test_a_notebook_displays_a_figure():
    model = clone(SOME).fit(X, Y)
    assert plot_tree(model, 2)._repr_png_().startswith(b"\x89PNG")


def test_figures_have_one_style_whatever_the_settings_of_matplotlib():
    model = clone(SOME).fit(X, Y)
    with matplotlib.rc_context({"font.size": 30, "axes.spines.top": True}):
        (ax,) = plot_importance(model).axes
        assert matplotlib.rcParams["font.size"] == 30
    assert ax.title.get_fontsize() < 12
    assert not ax.spines["top"].get_visible()


# -- calibration -----------------------------------------------------------------------------------


class IdentityClassifier:
    """A classifier that takes the only feature as the probability of its second class."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        return np.column_stack([1 - np.ravel(X), np.ravel(X)])


def test_calibration_compares_predicted_and_observed_frequencies():
    predicted = np.repeat([0.1, 0.4, 0.9], 100)
    came_true = np.concatenate([np.arange(100) < k for k in (10, 60, 90)])
    figure = plot_calibration(
        IdentityClassifier(), predicted[:, None], np.where(came_true, "yes", "no")
    )
    (ax,) = figure.axes
    dots = ax.containers[0][0]
    np.testing.assert_allclose(dots.get_xdata(), [0.1, 0.4, 0.9])
    np.testing.assert_allclose(dots.get_ydata(), [0.1, 0.6, 0.9])
    assert ax.get_title(loc="left") == (
        "Mean calibration error: 6.7 percentage points.\n1 of 3 groups are outside their 95 % interval"
    )
    assert ax.get_xlabel() == "predicted probability of yes"
    (low, high), *_ = ax.containers[0][2][0].get_segments()
    expected = binomtest(10, 100).proportion_ci(0.95, "exact")
    np.testing.assert_allclose([low[1], high[1]], expected, rtol=1e-9)
    assert drawn(figure)


def test_calibration_can_be_that_of_the_first_class():
    predicted = np.repeat([0.1, 0.4, 0.9], 100)
    came_true = np.concatenate([np.arange(100) < k for k in (10, 60, 90)])
    labels = np.where(came_true, "yes", "no")
    (ax,) = plot_calibration(IdentityClassifier(), predicted[:, None], labels, pos_label="no").axes
    dots = ax.containers[0][0]
    np.testing.assert_allclose(dots.get_xdata(), [0.1, 0.6, 0.9])
    np.testing.assert_allclose(dots.get_ydata(), [0.1, 0.4, 0.9])
    assert ax.get_xlabel() == "predicted probability of no"
    with pytest.raises(ValueError, match="pos_label must be one of the classes 'no' and 'yes'"):
        plot_calibration(IdentityClassifier(), predicted[:, None], labels, pos_label="maybe")


def test_calibration_of_several_classes_is_that_of_the_predicted_class():
    model = clone(SOME).fit(X, Y)
    (ax,) = plot_calibration(model, X, Y, bins=4).axes
    shares = model.predict_proba(X)
    mean = np.average(ax.containers[0][0].get_xdata(), weights=None)
    assert ax.get_xlabel() == "predicted probability of the predicted class"
    assert shares.max(axis=1).min() <= mean <= 1


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_similar_probability_contain_all_rows(seed):
    rng = np.random.default_rng(seed)
    predicted = np.round(rng.random(200), 1)
    came_true = rng.random(200) < predicted
    curve = compute_reliability_curve(came_true, predicted, bins=7)
    assert curve.n_rows.sum() == 200
    assert curve.n_rows @ curve.observed == pytest.approx(came_true.sum())
    assert curve.n_rows @ curve.predicted == pytest.approx(predicted.sum())
    assert (curve.low <= curve.observed).all()
    assert (curve.observed <= curve.high).all()


def test_calibration_refuses_invalid_arguments():
    with pytest.raises(TypeError, match="model must have predict_proba"):
        plot_calibration(certree.PACBayesTreeRegressor(), X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        plot_calibration(IdentityClassifier(), [[0.5]], [1, 0])
    with pytest.raises(ValueError, match="bins must be at least 1"):
        plot_calibration(IdentityClassifier(), [[0.5]], ["yes"], bins=0)


# -- certificates ----------------------------------------------------------------------------------


def coins(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 10, (n, 2))
    return rows, (rows.sum(axis=1) > 10) ^ (rng.random(n) < 0.1)


def test_bounds_and_test_errors_are_drawn_against_rows_of_the_fit():
    rows, y = coins(400)
    model = CertifiedTreeClassifier(train_size=0.35, random_state=0)
    figure = plot_certificate(model, rows, y, sizes=[300, 100], random_state=7)
    (ax,) = figure.axes
    bounds, errors = ax.lines
    order = np.random.RandomState(7).permutation(400)
    for i, n in enumerate((100, 300)):
        fitted = clone(model).fit(rows[order[:n]], y[order[:n]])
        assert bounds.get_xdata()[i] == n
        assert bounds.get_ydata()[i] == fitted.certificate_.bound
        wrong = fitted.predict(rows[order[300:]]) != y[order[300:]]
        assert errors.get_ydata()[i] == wrong.mean()
    bound = f"the certified bound is {format_bound(fitted.certificate_.bound)}"
    assert bound in " ".join(ax.get_title(loc="left").split())
    assert legend_of(figure) == ["certified bound, holds with 95 %", "error on 100 test rows"]
    assert drawn(figure)


def test_a_bound_is_drawn_against_calibration_rows():
    rows, y = coins(400)
    certificate = CertifiedTreeClassifier(random_state=0).fit(rows, y).certificate_
    figure = draw_bound_by_rows(certificate)
    (ax,) = figure.axes
    bounds, own, error = ax.lines
    for n, bound in zip(*bounds.get_data(), strict=True):
        assert bound == certificate.bound_by(int(n))
    assert bounds.get_xdata()[[0, -1]].tolist() == [round(certificate.n / 8), 64 * certificate.n]
    assert (own.get_xdata(), own.get_ydata()) == ([certificate.n], [certificate.bound])
    assert set(error.get_ydata()) == {certificate.risk}
    assert ax.get_title(loc="left").endswith(format_bound(bounds.get_ydata()[-1]))
    assert ax.get_xlabel() == "rows in the calibration set"
    assert drawn(figure)


def test_a_monitor_is_drawn_with_its_alarm_and_the_likely_change():
    rng = np.random.default_rng(0)
    losses = np.r_[rng.random(2000) < 0.07, rng.random(301) < 0.4]
    monitor = Monitor(0.1).update(losses)
    figure = plot_monitor(monitor)
    (ax,) = figure.axes
    bars = ax.patches
    assert len(bars) == 36
    for i, bar in enumerate(bars):
        rows = losses[64 * i : 64 * (i + 1)]
        assert bar.get_height() == pytest.approx(rows.mean())
        assert (bar.get_x(), bar.get_width()) == (64 * i, len(rows))
    lines = {line.get_label(): line.get_xdata()[0] for line in ax.lines[1:]}
    assert lines == {"likely change": monitor.likely_change - 1, "alarm": monitor.first_alarm}
    assert 1980 < monitor.likely_change < monitor.first_alarm < 2100
    assert legend_of(figure)[0] == "certified bound, 10.0 %"
    title = " ".join(ax.get_title(loc="left").split())
    assert title.startswith(f"Alarm after row {monitor.first_alarm:,}: the losses probably rose at")
    assert drawn(figure)


def test_a_monitor_of_costs_is_drawn_in_their_unit():
    monitor = Monitor(0.1, unit=10.0)
    with pytest.raises(ValueError, match="monitor must have seen at least one row"):
        plot_monitor(monitor)
    (ax,) = plot_monitor(monitor.update([0, 0.2, 0.1])).axes
    assert [bar.get_height() for bar in ax.patches] == [0, 2, 1]
    assert ax.lines[0].get_ydata()[0] == 1
    assert ax.get_title(loc="left").startswith("No alarm after 3 rows (e-value ")
    with pytest.raises(TypeError, match="monitor must be"):
        plot_monitor(0.1)


def test_sizes_grow_to_three_quarters_of_the_rows():
    rows, y = coins(160)
    (ax,) = plot_certificate(CertifiedTreeClassifier(random_state=0), rows, y).axes
    assert ax.lines[0].get_xdata().tolist() == [15, 30, 60, 120]
    for sizes in ([121], [7], [0.5], []):
        with pytest.raises(ValueError, match=r"sizes must hold integers in 8 .. 120"):
            plot_certificate(CertifiedTreeClassifier(), rows, y, sizes=sizes)
    with pytest.raises(TypeError, match="model must be a Certified"):
        plot_certificate(PACBayesTreeClassifier(), rows, y)


def test_selective_certificates_are_drawn_against_coverage():
    rows, y = coins(1000)
    y ^= (rows[:, 0] < 4) & (np.random.default_rng(1).random(1000) < 0.4)
    model = CertifiedTreeClassifier(train_size=0.35, random_state=0).fit(rows, y)
    certificates = model.selective_certificates(0.1)
    figure = plot_selective(model, 0.1)
    (ax,) = figure.axes
    bounds, risks = ax.lines[:2]
    np.testing.assert_array_equal(bounds.get_xdata(), [each.coverage for each in certificates])
    np.testing.assert_array_equal(
        bounds.get_ydata(), [each.certificate.bound for each in certificates]
    )
    np.testing.assert_array_equal(
        risks.get_ydata(), [each.certificate.risk for each in certificates]
    )
    best = min(certificates, key=lambda each: each.certificate.bound)
    title = " ".join(ax.get_title(loc="left").split())
    assert title.startswith(
        f"Predicting only {format_percent(best.coverage)} of the rows lowers the bound"
    )
    assert title.endswith(f"to {format_bound(best.certificate.bound)}")
    assert "hold with 90 %" in legend_of(figure)[0]
    assert drawn(figure)


def test_every_threshold_is_drawn_with_its_guarantees():
    rows, y = coins(1000)
    y ^= np.random.default_rng(1).random(1000) < 0.1
    model = CertifiedTreeClassifier(train_size=0.35, random_state=0).fit(rows, y)
    thresholds = model.guarantees_.thresholds(costs=(5, 1))
    figure = plot_thresholds(thresholds, 5, 1)
    roc, precision, cost = figure.axes
    certified, observed = roc.lines[:2]
    np.testing.assert_array_equal(observed.get_xdata(), thresholds.false_positive_rate.observed)
    for x, y_low in zip(certified.get_xdata(), certified.get_ydata(), strict=True):
        lowest_recalls = thresholds.recall.lowest[thresholds.false_positive_rate.highest <= x]
        assert y_low == lowest_recalls.max(initial=0.0)
    np.testing.assert_array_equal(precision.lines[0].get_ydata(), thresholds.precision.lowest)
    np.testing.assert_array_equal(cost.lines[0].get_ydata(), thresholds.cost(5, 1).highest[1:])
    point = thresholds.lowest_cost(5, 1)
    chosen = cost.lines[-1]
    assert (chosen.get_xdata()[0], chosen.get_ydata()[0]) == (point.threshold, point.cost_at_most)
    title = figure.get_suptitle()
    assert f"costs at most {point.certificate.promised} (5 for a missed True, 1 for" in title
    assert title.endswith("hold together with 95 %")
    assert drawn(figure)
    assert drawn(plot_thresholds(thresholds))


# -- importances -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        SOME,
        TreeForestClassifier(5, random_state=0),
        BoostedTreesClassifier(max_iter=5, random_state=0),
        RandomForestClassifier(5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_importances_are_bars_with_the_largest_on_top(model):
    model = clone(model).fit(X, Y)
    figure = plot_importance(model, max_features=2)
    (ax,) = figure.axes
    values = np.sort(model.feature_importances_)[::-1]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [*values[:2], values[2:].sum()])
    names = [text.get_text() for text in ax.get_yticklabels()]
    best = X.columns[model.feature_importances_.argmax()]
    assert names[0] == best
    assert names[-1] == "2 others"
    bottom, top = ax.get_ylim()
    assert top < bottom
    assert ax.get_title(loc="left").startswith(
        f"{best} is most important: {format_percent(values[0])}"
    )
    assert drawn(figure)


def test_permutation_importance_needs_rows_and_uses_the_score():
    model = clone(SOME).fit(X, Y)
    (ax,) = plot_importance(model, X, Y, "permutation", random_state=3).axes
    found = permutation_importance(model, X, Y, n_repeats=5, random_state=3, max_samples=150)
    expected = np.sort(found.importances_mean)[::-1]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], expected)
    assert ax.get_title(loc="left").endswith(f"lowers the score by {expected[0]:.3g}")
    with pytest.raises(ValueError, match="X and y must be given"):
        plot_importance(model, kind="permutation")
    with pytest.raises(ValueError, match="kind must be"):
        plot_importance(model, kind="shapley")
    with pytest.raises(ValueError, match="max_features must be at least 1"):
        plot_importance(model, max_features=0)
    with pytest.raises(TypeError, match="must have feature_importances_"):
        plot_importance(LogisticRegression(max_iter=1000).fit(X, Y))
    with pytest.raises(NotFittedError):
        plot_importance(PACBayesTreeClassifier())


# -- rounds ----------------------------------------------------------------------------------------


def test_the_training_error_and_its_bound_are_drawn():
    model = AdaBoostTreeClassifier(n_estimators=15).fit(X, Y)
    (axes,) = plot_adaboost(model).axes
    bound, error = (line.get_ydata() for line in axes.lines)
    np.testing.assert_array_equal(bound, model.error_bounds_)
    np.testing.assert_array_equal(error, model.training_errors_)
    assert axes.get_title(loc="left") == f"Training error {error[-1]:.3g}, bound {bound[-1]:.3g}"
    assert plot_adaboost(model, axes) is axes.figure
    alone = AdaBoostTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    assert plot_adaboost(alone).axes[0].get_title(loc="left") == "Training error 0, bound 0"


def test_the_loss_is_drawn_by_round():
    model = BoostedTreesClassifier(max_iter=15, random_state=0).fit(X[::2], Y[::2])
    with pytest.raises(ValueError, match="fitted without a validation set"):
        plot_loss(model)
    model.fit(X[::2], Y[::2], X_val=X[1::2], y_val=Y[1::2])
    figure = plot_loss(model)
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    best = int(model.validation_score_[1:].argmax()) + 1
    assert f"lowest after {best} of 15 rounds" in axes.get_title(loc="left")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), -model.validation_score_[1:])
    assert plot_loss(model, ax=Figure().add_subplot()).axes


def test_rounds_after_the_best_are_drawn_and_scores_other_than_the_loss_refused():
    model = BoostedTreesClassifier(early_stopping=True, n_iter_no_change=3, random_state=0)
    (axes,) = plot_loss(model.fit(X, Y)).axes
    n_rounds = len(model.validation_score_) - 1
    assert len(axes.lines[0].get_ydata()) == n_rounds > model.n_iter_
    model.set_params(scoring="accuracy").fit(X, Y)
    with pytest.raises(ValueError, match="fitted with a scoring other than 'loss'"):
        plot_loss(model)


def test_the_loss_of_other_rows_is_drawn_by_round():
    model = BoostedTreesClassifier(max_iter=7, random_state=0).fit(X[::2], Y[::2])
    (axes,) = plot_loss(model, X[1::2], Y[1::2]).axes
    expected = [log_loss(Y[1::2], shares) for shares in model.staged_predict_proba(X[1::2])]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), expected)
    np.testing.assert_array_equal(model.staged_loss(X[1::2], Y[1::2]), axes.lines[0].get_ydata())
    assert axes.get_ylabel() == "loss on 75 rows"
    with pytest.raises(ValueError, match="X and y must both be given"):
        plot_loss(model, X)
    with pytest.raises(TypeError, match="model must be a BoostedTrees"):
        plot_loss(SOME)


# -- explanations ----------------------------------------------------------------------------------


def explained():
    return Explanation(
        base=np.array([0.75, 0.25]),
        contributions=np.array([[[-0.1, 0.0, 0.02, -0.4], [0.1, 0.0, -0.02, 0.4]]]),
        feature_names=["$a$", "b", "c", "d"],
        output_names=["no", "yes"],
        values=np.array([["<x>", 1, 2.5, None]], dtype=object),
        scale="probability",
    )


def test_bars_lead_from_the_base_to_the_prediction():
    figure = plot_explanation(explained())
    (ax,) = figure.axes
    starts = [bar.get_x() for bar in ax.patches]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [0.4, 0.1, -0.02])
    np.testing.assert_allclose(starts, [0.25, 0.65, 0.75])
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        "base",
        "d = missing",
        "$a$ = <x>",
        "c = 2.5",
    ]
    assert [text.get_text() for text in ax.texts] == ["0.25", "+0.40", "+0.10", "-0.02"]
    up, _, down = (bar.get_facecolor() for bar in ax.patches)
    assert up != down
    assert ax.get_title(loc="left") == "yes: 73 %, mostly due to d = missing"
    assert ax.get_xlabel() == "probability of yes"
    assert drawn(figure)


def test_the_other_features_share_one_bar():
    (ax,) = plot_explanation(explained(), output="no", max_features=1).axes
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [-0.4, -0.08])
    assert ax.get_yticklabels()[-1].get_text() == "2 others"
    assert ax.get_title(loc="left").startswith("no: 27 %")


@pytest.mark.parametrize(
    "model",
    [
        SOME,
        certree.PACBayesTreeRegressor(random_state=0),
        BoostedTreesClassifier(max_iter=5, random_state=0),
        TreeForestClassifier(3, random_state=0),
        certree.NaiveBayesClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_explanations_end_at_the_prediction(model):
    model = clone(model).fit(X, Y)
    explanation = model.explain(X)
    for row in (0, -1):
        figure = plot_explanation(explanation, row)
        (ax,) = figure.axes
        one = explanation.prediction[row]
        end = ax.patches[-1].get_x() + ax.patches[-1].get_width()
        assert end == pytest.approx(one.max())
        assert drawn(figure)


def test_explanations_refuse_invalid_arguments():
    for row in (1, -2):
        with pytest.raises(
            ValueError, match=f"row must lie in -1 .. 0, as the .* 1 rows, got {row}"
        ):
            plot_explanation(explained(), row)
    with pytest.raises(ValueError, match=r"output must be one of \['no', 'yes'\], got 'maybe'"):
        plot_explanation(explained(), output="maybe")
    with pytest.raises(ValueError, match="max_features must be at least 1"):
        plot_explanation(explained(), max_features=0)
    with pytest.raises(TypeError, match="explanation must be an Explanation"):
        plot_explanation(clone(SOME).fit(X, Y))


# -- interactions ----------------------------------------------------------------------------------


def test_interactions_are_bars_and_a_heat_map():
    shares = Interactions(
        np.array([3.0, 0.0, 1.0]), np.array([[0, 2], [1, 2]]), np.array([0.0, 4.0]), 2.0, 0.1, "abc"
    )
    bars, heat = plot_interactions(shares, max_terms=3).axes
    widths = [bar.get_width() for bar in bars.patches]
    assert widths == pytest.approx([0.4, 0.3, 0.1, 0.0, 0.2])
    labels = [label.get_text() for label in bars.get_yticklabels()]
    assert labels == ["b & c", "a", "c", "2 others", "three or more features"]
    assert bars.get_title(loc="left") == "Single features: 40 %, pairs: 40 %"
    # The features with the most variance come first, and the diagonal is empty.
    assert [label.get_text() for label in heat.get_yticklabels()] == ["c", "b", "a"]
    drawn = heat.collections[0].get_array()
    assert drawn.mask.diagonal().all()
    assert drawn.filled(0)[0, 1] == drawn.filled(0)[1, 0] == 0.4
    assert {(one.get_position(), one.get_text()) for one in heat.texts} == {
        ((0, 1), "40.0"),
        ((1, 0), "40.0"),
    }
    two = plot_interactions(shares, max_features=2).axes[1]
    assert len(two.get_xticklabels()) == 2


def test_interactions_of_models():
    model = TreeForestClassifier(5, random_state=0).fit(X, Y)
    bars, heat = plot_interactions(interaction_fractions(model, X)).axes
    assert {one.get_text() for one in heat.get_yticklabels()} == {
        "sepal length (cm)",
        "sepal width (cm)",
        "petal length (cm)",
        "petal width (cm)",
    }
    assert len(bars.patches) == 11
    nothing = Interactions(np.zeros(2), np.zeros((0, 2), int), np.zeros(0), 0.0, 0.0, "ab")
    assert plot_interactions(nothing).axes[0].get_title(loc="left") == "All predictions are equal"
    for name, least in (("max_terms", 1), ("max_features", 2)):
        with pytest.raises(ValueError, match=f"{name} must be at least {least}"):
            plot_interactions(nothing, **{name: 0})


# -- hostile names, labels and numbers ---------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["$\\frac$ \x1b[31m\0two\nlines\u202e --> <b>&]]>", "n" * 5000, ""],
    ids=["odd", "long", "no"],
)
def test_figures_with_any_name_are_valid(name):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=60), "b": rng.normal(size=60)})
    frame["words"] = np.where(frame[name] > 0.5, name, "other")
    y = np.array([name, "z"], dtype=object)[(frame[name] > 0).astype(int)]
    tree = PACBayesTreeClassifier(lambda_error=9.0, lambda_penalty=0.1).fit(frame, y)
    pruned = PrunedTreeClassifier().fit(frame, y)
    for figure in (
        plot_tree(tree),
        plot_tree(pruned),
        plot_importance(tree),
        plot_calibration(tree, frame, y),
        plot_explanation(tree.explain(frame[:1]), output=name),
        plot_interactions(interaction_fractions(tree, frame)),
    ):
        content = io.BytesIO()
        figure.savefig(content, format="svg")
        ElementTree.fromstring(content.getvalue())
        for text in figure.findobj(Text):
            assert not set("\x1b\u202e\0") & set(text.get_text())


def test_calibration_refuses_unknown_labels():
    tree = PrunedTreeClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="y must hold classes"):
        plot_calibration(tree, X, np.array(["a", "b", "c"])[Y])
    with pytest.raises(ValueError, match=r"y must hold classes among \[0, 1, 2\]"):
        plot_calibration(tree, X, Y + 3)


@pytest.mark.parametrize(
    ("number", "n_classes"), [(0.0, 2), (np.nan, 2), (np.nan, 1), (1.7e308, 2), (5e-324, 2)]
)
def test_figures_of_extreme_numbers_are_drawn(number, n_classes):
    x = np.full((60, 2), number)
    x[::2] *= -1
    y = np.arange(60) % n_classes
    for model in (
        PACBayesTreeClassifier(lambda_error=9.0, lambda_penalty=0.1),
        BoostedTreesClassifier(max_iter=3),
    ):
        model.fit(x, y)
        for figure in (
            plot_tree(model, X=x),
            plot_importance(model),
            plot_calibration(model, x, y),
            plot_explanation(model.explain(x[:1])),
            plot_interactions(interaction_fractions(model, x)),
        ):
            figure.draw_without_rendering()


# -- names of sixty letters ------------------------------------------------------------------------

WORDY = [
    f"{word}_of_all_that_was_owed_at_the_end_of_the_month_before".ljust(60, "_")
    for word in ("income", "amount", "number", "longer", "shares", "orders")
]
OUTCOMES = [
    f"the_loan_was_{word}".ljust(60, "_")
    for word in ("paid_as_it_was_agreed_on", "not_paid_as_it_was_agreed_on")
]


def figures_with_long_names():
    """Draw every figure for models whose features and classes have names of sixty letters."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(700, len(WORDY))), columns=WORDY)
    odds = 2 * rows[WORDY[0]] * rows[WORDY[1]] + rows[WORDY[2]] + rng.normal(size=700)
    y = np.array(OUTCOMES)[(odds > 1).astype(int)]
    old, new, y_old, y_new = rows[:400], rows[400:], y[:400], y[400:]
    certified = CertifiedTreeClassifier(max_leaf_nodes=8, random_state=0).fit(old, y_old)
    boosted = BoostedTreesClassifier(max_iter=5, random_state=0).fit(old, y_old)
    thresholds = Guarantees.by_rows(boosted, new, y_new).thresholds()
    return {
        "tree": plot_tree(certified),
        "tree of boosting": plot_tree(boosted, X=old),
        "importance": plot_importance(boosted),
        "permutation": plot_importance(boosted, new, y_new, kind="permutation"),
        "calibration": plot_calibration(boosted, new, y_new),
        "ranking": plot_ranking(boosted, new, y_new, 5, 1),
        "thresholds": plot_thresholds(thresholds, 5, 1),
        "selective": plot_selective(CertifiedTreeClassifier(random_state=0).fit(old, y_old)),
        "certificate": plot_certificate(certified, rows, y, sizes=[100, 200, 400]),
        "by rows": draw_bound_by_rows(certified.certificate_),
        "loss": plot_loss(boosted, new, y_new),
        "adaboost": plot_adaboost(AdaBoostTreeClassifier(n_estimators=4).fit(old, y_old)),
        "explanation": plot_explanation(boosted.explain(new[:1])),
        "interactions": plot_interactions(interaction_fractions(boosted, new)),
    }


def overlaps(figure):
    """Return texts that leave the figure, and pairs of texts that overlap."""
    texts, slack = [], 2.0  # dots: letters do not fill their boxes
    # Ticks beyond the ends of an axis are texts that nobody draws.
    with patch.object(Text, "draw", lambda text, _: texts.append(text)):
        figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    found = []
    for i, (words, box) in enumerate(boxes):
        if (box.min < figure.bbox.min - slack).any() or (box.max > figure.bbox.max + slack).any():
            found.append(("outside", words))
        for others, other in boxes[i + 1 :]:
            common = np.minimum(box.max, other.max) - np.maximum(box.min, other.min)
            if (common > slack).all():
                found.append((words, others))
    return found


@pytest.mark.slow
def test_texts_of_figures_with_long_names_do_not_overlap():
    figures = figures_with_long_names()
    assert {name: found for name, figure in figures.items() if (found := overlaps(figure))} == {}
    # What is cut is the name of a feature, and not its value.
    labels = figures["explanation"].axes[0].get_yticklabels()[1:]
    assert all(re.search(r"\.\.\. = -?\d", label.get_text()) for label in labels)


def test_overlaps_are_found():
    figure = plot_explanation(explained())
    assert overlaps(figure) == []
    figure.axes[0].set_title("long " * 100)
    figure.text(0.5, 0.5, "first")
    figure.text(0.5, 0.5, "second")
    found = overlaps(figure)
    assert ("first", "second") in found
    assert any(kind == "outside" for kind, _ in found)


@pytest.mark.parametrize("width", np.arange(1.5, 7, 0.25))
def test_no_line_breaks_between_a_number_and_its_percent_sign(width):
    ax = Figure(figsize=(width, 2)).add_subplot()
    text = "Predicting only 12 % of the rows lowers the bound from 15.1 % to 0.7 %"
    set_title(ax, text)
    title = ax.get_title()
    assert title.split() == text.split()
    assert "\n%" not in title
