"""Data frames of nodes, from which the predictions of the model follow."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    PACBayesTreeRegressor,
    TreeForestRegressor,
)

LIGHTGBM = [
    *("tree_index", "node_depth", "node_index", "left_child", "right_child", "parent_index"),
    *("split_feature", "split_gain", "threshold", "decision_type", "missing_direction"),
    *("missing_type", "value", "weight", "count"),
]


def make_table(n=200, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"a": random.normal(size=n), "b": random.normal(size=n)})
    X.loc[random.random(n) < 0.1, "a"] = np.nan
    X["c"] = pd.Categorical(random.choice(["one", "two", "three", "four"], n))
    X.loc[random.random(n) < 0.1, "c"] = np.nan
    y = X["b"] + (X["c"].isin(["one", "four"])) + X["a"].fillna(2.0) + random.normal(size=n)
    return X, y.to_numpy()


def sum_leaf_values(frame, row):
    """Return the sum of the values of the leaves that a row reaches in the trees of a frame."""
    nodes = frame.set_index("node_index")
    values = [name for name in frame if name.startswith("value")]
    total = 0.0
    for root in frame.node_index[frame.parent_index.isna()]:
        at = nodes.loc[root]
        while not pd.isna(at.split_feature):
            value = row[at.split_feature]
            if pd.isna(value):
                assert at.missing_type == "NaN"
                left = at.missing_direction == "left"
            elif at.decision_type == "==":
                left = value in at.threshold.split("||")
            else:
                left = value <= at.threshold
            at = nodes.loc[at.left_child if left else at.right_child]
        total = total + at[values].to_numpy(dtype=float)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesRegressor(max_iter=5, random_state=0),
        BoostedTreesClassifier(max_iter=5, random_state=0),
        TreeForestRegressor(3, max_depth=4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_walk_through_the_table_is_the_prediction(model):
    X, y = make_table()
    if isinstance(model, BoostedTreesClassifier):
        y = np.digitize(y, [0, 1, 2])
    model.fit(X, y)
    frame = model.trees_to_dataframe()
    assert frame.node_index.is_unique
    sums = np.array([sum_leaf_values(frame, row) for _, row in X.iterrows()])
    if isinstance(model, BoostedTreesClassifier):
        np.testing.assert_allclose(model.start_ + sums, model.decision_function(X), atol=1e-9)
        return
    assert [*frame] == LIGHTGBM
    forest = isinstance(model, TreeForestRegressor)
    sums = sums[:, 0] / 3 if forest else sums[:, 0] + model.start_
    np.testing.assert_allclose(sums, model.predict(X), atol=1e-9)


def test_nodes_know_their_places():
    X, y = make_table()
    model = BoostedTreesRegressor(max_iter=4, random_state=0).fit(X, y)
    frame = model.trees_to_dataframe().set_index("node_index", drop=False)
    inner = frame[frame.left_child.notna()]
    for child in ("left_child", "right_child"):
        below = frame.loc[inner[child]]
        assert (below.parent_index.to_numpy() == inner.node_index.to_numpy()).all()
        assert (below.node_depth.to_numpy() == inner.node_depth.to_numpy() + 1).all()
    assert (frame.node_depth[frame.parent_index.isna()] == 1).all()
    assert frame.value[inner.index].isna().all()
    assert frame.value[frame.left_child.isna()].notna().all()
    # No model has kept these.
    assert frame[["split_gain", "weight", "count"]].isna().all(axis=None)
    leaf = model.apply(X)
    names = {f"{tree}-L{node}" for row in leaf for tree, node in enumerate(row)}
    assert names <= set(frame.node_index)


def test_rows_are_counted_where_they_are_known():
    X, y = load_iris(return_X_y=True)
    frame = PACBayesTreeRegressor(random_state=0).fit(X, y).trees_to_dataframe()
    assert frame["count"][0] == 150
    assert frame["count"][frame.left_child.isna()].sum() == 150
    boosted = AdaBoostTreeClassifier(n_estimators=3, random_state=0).fit(X, y)
    assert boosted.trees_to_dataframe().tree_index.nunique() == len(boosted.trees_)
