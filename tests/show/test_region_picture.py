"""Regions in the plane of two features: `plane_regions.py` and `region_picture.py`."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris, make_moons

import certree.show.region_picture as region_picture
from certree import (
    KD,
    Cart,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    Dyadic,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
)
from certree.show import plot_regions
from certree.show.plane_regions import find_plane_regions, list_intervals
from certree.show.tree_summary import summarize_tree


def make_table(n, seed):
    """Rows with a category, a date, a number with missing values, and a second number."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 900, n), "D")
    X = pd.DataFrame(
        {
            "city": pd.Categorical(rng.choice(["Basel", "Bern", "Chur", "Genf", "Zug"], n)),
            "day": pd.Timestamp("2021-01-01") + days,
            "size": rng.lognormal(4, 1, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 50, n)),
        }
    )
    level = X.city.isin(["Basel", "Genf"]) * 3 + X.day.dt.month / 4 + np.log(X["size"])
    return X, (level + (X.age > 20) + rng.normal(size=n) / 3).to_numpy()


def take_from(values, rng, n):
    """Draw n values of an interval or of categories; the upper end of an interval is among them."""
    if isinstance(values, list):
        return rng.choice(values, n).astype(float)
    low, high = values
    inside = high - (high - low) * rng.random(n)
    return np.append(inside[1:], high)


def contains(values, value):
    """Whether an interval, without its lower end, or categories contain a value."""
    return value in values if isinstance(values, list) else values[0] < value <= values[1]


def find_regions(model, X, features, at=None):
    """The regions of a model, the row of the other features, and the window."""
    rows = np.array(model._encode_new_rows(X), dtype=float)
    row, _ = region_picture._fix_other_features(model, rows, features, at)
    window = tuple(region_picture._find_window(model, rows, f, False) for f in features)
    summary = summarize_tree(model)
    return summary, row, window, *find_plane_regions(summary, features, row, window)


MOONS = make_moons(200, noise=0.3, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        PACBayesTreeClassifier(grower=Dyadic(), random_state=0),
        PACBayesTreeClassifier(grower=KD(), random_state=0),
        PACBayesTreeClassifier(grower=Cart(), random_state=0),
        PrunedTreeClassifier(random_state=0),
        PrunedTreeRegressor(random_state=0),
        HelmboldSchapireTreeClassifier(random_state=0),
        CertifiedTreeClassifier(random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.grower}",
)
def test_all_rows_of_a_region_have_its_prediction(model):
    X, y = MOONS
    model.fit(X, y)
    summary, _, window, regions, _ = find_regions(model, X, (0, 1))
    rng = np.random.default_rng(1)
    predict = getattr(model, "predict_proba", model.predict)
    points = [np.column_stack([take_from(s, rng, 3) for s in r.sides]) for r in regions]
    expected = np.repeat(summary.predictions[[r.leaf for r in regions]], 3, axis=0)
    np.testing.assert_allclose(
        predict(np.concatenate(points)).reshape(len(expected), -1), expected, atol=1e-12
    )
    # Every point of the window is in one region.
    for point in np.column_stack([take_from(s, rng, 50) for s in window]):
        inside = [all(map(contains, r.sides, point)) for r in regions]
        assert sum(inside) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("features", [(0, 2), (1, 0), (3, 1), (2, 3)])
def test_regions_of_categories_dates_and_fixed_features_are_exact(features, seed):
    X, y = make_table(150, seed)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    summary, row, window, regions, _ = find_regions(model, X, features)
    rng = np.random.default_rng(seed)
    for _ in range(100):
        encoded = row.copy()
        encoded[[*features]] = [take_from(s, rng, 2)[0] for s in window]
        inside = [r for r in regions if all(map(contains, r.sides, encoded[[*features]]))]
        assert len(inside) == 1
        leaf = summary.tree.apply(encoded[None])[0]
        np.testing.assert_allclose(
            summary.predictions[inside[0].leaf], summary.predictions[leaf], atol=1e-12
        )


def test_a_pruned_tree_has_a_region_per_leaf_of_the_pruning():
    X, y = MOONS
    model = PrunedTreeClassifier(random_state=0).fit(X, y)
    _, _, _, regions, splits = find_regions(model, X, (0, 1))
    n_leaves = int((summarize_tree(model).explainer.weights.weight > 0).sum())
    assert len(regions) == n_leaves == len(splits) + 1
    assert {split.probability for split in splits} == {1.0}


def test_splits_cross_the_region_they_split_and_deeper_ones_are_thinner():
    X, y = MOONS
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    figure = plot_regions(model, X, y)
    lines = next(c for c in figure.axes[0].collections if c.get_gid() == "splits")
    _, _, window, _, splits = find_regions(model, X, (0, 1))
    root = splits[0]
    assert root.depth == 0
    assert root.across == window[1 - root.axis]
    widths = {s.depth: w for s, w in zip(splits, lines.get_linewidths(), strict=True)}
    assert all(widths[a] >= widths[b] for a, b in pairwise(sorted(widths)))
    assert widths[0] > widths[max(widths)]
    opacity = [colour[3] for colour in lines.get_colors()]
    np.testing.assert_allclose(opacity, [split.probability for split in splits])


def test_runs_of_categories_are_intervals():
    assert list_intervals([0, 1, 3, 5, 6]) == [(-0.5, 1.5), (2.5, 3.5), (4.5, 6.5)]
    assert list_intervals((1.0, 2.0)) == [(1.0, 2.0)]


def test_drawn_rectangles_cover_the_axes_once():
    X, y = make_table(150, 0)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    ax = plot_regions(model, X, y, features=("city", "size")).axes[0]
    rectangles = next(c for c in ax.collections if c.get_gid() == "regions")
    sizes = [np.prod(np.ptp(path.vertices, axis=0)) for path in rectangles.get_paths()]
    area = np.prod(np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1))
    assert sum(sizes) == pytest.approx(area)


def test_axes_show_names_of_categories_dates_and_logarithms():
    X, y = make_table(150, 0)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    day = pd.Timestamp("2022-05-01")
    figure = plot_regions(
        model, X, y, features=("city", 2), at={"day": day, "age": 3}, log=["size"]
    )
    assert isinstance(figure, Figure)
    ax = figure.axes[0]
    shown = [text.get_text() for text in ax.get_xticklabels()]
    assert shown == [str(name) for name in model.categories_.names[0]]
    assert (ax.get_xlim(), ax.get_yscale()) == ((-0.5, 4.5), "log")
    title = ax.get_title("left").split("\n")
    assert title[1] == "at day = 2022-05-01, age = 3"
    figure = plot_regions(model, X, features=("day", "age"), show_splits=False)
    figure.canvas.draw()
    ax = figure.axes[0]
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert "2022" in labels
    most = X.city.mode().sort_values().iloc[0]
    assert f"city = {most}, size = " in ax.get_title("left")
    assert [c.get_gid() for c in ax.collections].count("splits") == 0


def test_rows_without_a_value_of_an_axis_are_not_drawn():
    X, y = make_table(150, 0)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    ax = plot_regions(model, X, features=("size", "age")).axes[0]
    assert len(ax.collections[-1].get_offsets()) == X.age.notna().sum()


def test_classes_have_a_legend_or_a_colour_bar():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["$setosa", "versicolor", "virginica"])[y]
    model = PrunedTreeClassifier(random_state=0).fit(X, names)
    figure = plot_regions(model, X, names, features=X.columns[2:])
    figure.canvas.draw()
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["$setosa", "versicolor", "virginica"]
    X, y = MOONS
    figure = plot_regions(PrunedTreeClassifier(random_state=0).fit(X, y), X, y)
    assert figure.axes[1].get_ylabel() == "probability of 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "features must name two features, as the model has 4"),
        ({"features": ("size",)}, "features must have two different names"),
        ({"features": "size"}, "features must have two different names"),
        ({"features": ("size", "size")}, "features must have two different names"),
        ({"features": ("size", "weight")}, "features must have names or indices (0 .. 3)"),
        ({"features": (0, 4)}, "features must have names or indices (0 .. 3)"),
        ({"features": (0, 2), "at": {"size": 3}}, "at must not set 'size', which is on an axis"),
        ({"features": (0, 2), "at": {"agee": 3}}, "at must have names or indices"),
        ({"features": (0, 2), "at": {"age": np.nan}}, "at must have a number for 'age', got nan"),
        (
            {"features": (0, 2), "at": {"day": 3}},
            "at must have a value of the kind of the fit (dates",
        ),
        (
            {"features": (0, 2), "at": {"day": pd.Timestamp("2022", tz="UTC")}},
            "at must have a value",
        ),
        ({"features": (0, 2), "at": {"day": None}}, "at must have a value of the kind"),
        ({"features": (1, 2), "at": {"city": "Rom"}}, "at must have a category of {"),
        ({"features": (1, 2), "at": {"city": None}}, "at must have a category of {"),
        ({"features": (0, 2), "log": ["city"]}, "log must have only features with positive"),
        ({"features": (0, 3), "log": ["age"]}, "log must have only features with positive"),
        ({"features": (0, 3), "log": ["size"]}, "log must have only features of the two axes"),
        ({"features": (0, 2), "y": [1, 2]}, "y must have one entry for each of the 60 rows"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    X, y = make_table(60, 0)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=re.escape(message)):
        plot_regions(model, X, **arguments)


@pytest.mark.parametrize("model", [TreeForestClassifier(2), DecoratedTreeClassifier()])
def test_models_without_constant_predictions_in_the_leaves_of_one_tree_are_refused(model):
    X, y = MOONS
    with pytest.raises(TypeError, match="model must be an estimator of certree with one tree"):
        plot_regions(model.fit(X, y), X, y)
