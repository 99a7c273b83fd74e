"""Races: seconds of certree over seconds of another library for the same task, in turn.

`docs/compare/speed.md` has all races; each writes its own result file:

* cart: exact greedy growth to full depth on noisy rows, against scikit-learn's tree;
* categorical: one tree over categories, from codes to tree, against the trees of gradient boosting;
* counts: one tree of 63 leaves from histograms of gradients, and its bins, against LightGBM (CPU time);
* forest_growth: forests of full trees from bins, against scikit-learn's forests (CPU time);
* grow: KD and dyadic trees down to single rows, against SciPy's cKDTree;
* predict: predictions of one tree of up to 100,000 leaves, against scikit-learn's equal tree;
* predict_boosted: predictions of 100 boosted trees, against LightGBM and CatBoost (CPU time);
* shapley: Shapley values of 1000 rows and a forest of 100 trees, against shap;
* explain: explanations of 100,000 rows of adult by one tree, one thread.
"""

import os
import time
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import typer
from sklearn import ensemble
from sklearn.datasets import make_friedman1
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import certree
from benchmarks.peers import make_catboost, make_lightgbm
from benchmarks.results import Row, report
from benchmarks.tables import find_directory, load_tables
from benchmarks.timing import measure_in_turn, measure_median, measure_seconds
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor, TreeForestRegressor
from certree.explain import shap_trees, shapley_values
from certree.grow import BinnedGrower, Bins

TEST_ROWS = 50_000
FOREST_TABLES = "adult,letter,satimage,magic04,credit_default,electricity,bank_marketing,\
california_housing,diamonds"
Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def draw_rows(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw normal rows (float32) with test rows at the end, and a noisy response."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + TEST_ROWS, p)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X))).astype(np.float64)


def race_cart(rows: int) -> list[Row]:
    """Grow full trees; errors of both are in the case."""
    found = []
    for n, p, threads in ((rows // 10, 28, [1]), (rows // 20, 200, [1]), (rows, 28, [1, 2])):
        X, signal = draw_rows(n, p)
        y = (signal > 0).astype(np.int32)
        theirs = DecisionTreeClassifier(random_state=0)
        peer = measure_seconds(lambda: theirs.fit(X[:n], y[:n]))  # noqa: B023
        for n_jobs in threads:
            grow = partial(certree.grow_cart, X[:n], y[:n], criterion="gini", n_jobs=n_jobs)
            seconds, tree = measure_seconds(grow), grow()
            label = certree.count(tree, X[:n], y[:n], 2).label
            errors = np.mean(label[tree.apply(X[n:])] != y[n:]), 1 - theirs.score(X[n:], y[n:])
            text = " / ".join(f"{error:.4f}" for error in errors)
            case = f"classes, {n} rows, p = {p}, {n_jobs} threads, errors {text}"
            target = 1 / 8 if n_jobs == 1 else 1 / 15
            found.append(Row(case, seconds, "DecisionTreeClassifier", peer, target))
    X, y = (one[:rows] for one in draw_rows(rows, 10))
    peer = measure_seconds(lambda: DecisionTreeRegressor(random_state=0).fit(X, y))
    ours = measure_seconds(lambda: certree.grow_cart(X, y, criterion="squared", n_jobs=1))
    case = f"numbers, {rows} rows, p = 10, 1 thread"
    return [*found, Row(case, ours, "DecisionTreeRegressor", peer, 0.1)]


def race_categorical(rows: int) -> list[Row]:
    """Grow one tree of 31 and 255 leaves over 20 features with 5 to 100 categories."""
    n, p, rng = rows // 20, 20, np.random.default_rng(0)
    sizes = rng.integers(5, 101, p)
    X = rng.integers(0, sizes, (n, p))
    effects = [rng.normal(size=size) for size in sizes]
    signal = sum(effect[X[:, j]] for j, effect in enumerate(effects[:6]))
    X, y = X.astype(np.float64), (signal + 2 * rng.normal(size=n) > 0).astype(np.int32)

    def fit_histogram(leaves: int, n_jobs: int) -> None:
        options = {"max_iter": 1, "max_leaf_nodes": leaves, "min_samples_leaf": 1}
        with threadpool_limits(n_jobs, "openmp"):
            model = ensemble.HistGradientBoostingClassifier(
                **options, categorical_features=range(p), early_stopping=False
            )
            model.fit(X, y)

    def fit_lightgbm(leaves: int, n_jobs: int) -> None:
        options = {"n_estimators": 1, "num_leaves": leaves, "min_child_samples": 1}
        model = make_lightgbm("Classifier", **options, n_jobs=n_jobs)
        model.fit(X, y, categorical_feature=[*range(p)])

    found, peers = [], {"HistGradientBoosting": fit_histogram}
    if find_spec("lightgbm"):
        peers["LightGBM"] = fit_lightgbm
    for peer, fit in peers.items():
        for leaves in (31, 255):
            for n_jobs in (1, 2):
                options = {"max_leaf_nodes": leaves, "categorical_features": range(p)}
                ours = partial(certree.grow_cart, X, y, criterion="gini", n_jobs=n_jobs, **options)
                times = measure_in_turn(ours, partial(fit, leaves, n_jobs), 9)
                case = f"{n} rows, p = {p}, {leaves} leaves, {n_jobs} threads"
                found.append(Row(case, times[0], peer, times[1], 1.0))
    return found


def race_counts(rows: int) -> list[Row]:
    """Grow one tree from gradients of the log loss; 70 % of the rows grow it, all in the large case."""
    if not find_spec("lightgbm"):
        return []
    cases = []
    for n, p, fraction, repeats in (
        (rows // 25, 28, 0.7, 30),
        (rows // 25, 14, 0.7, 30),
        (rows, 28, 1.0, 4),
    ):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, p))
        signal = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] ** 2 + rng.normal(size=n)
        y = (signal > np.median(signal)).astype(float)
        cases.append(("normal", X[:, rng.permutation(p)], y, fraction, repeats))
    if os.environ.get("CERTREE_DATA"):
        adult = load_tables("adult")["adult"]
        cases.insert(2, ("adult", adult.X, adult.y.astype(float), 0.7, 30))
    return [row for case in cases for row in _compare_histograms(*case)]


def _compare_histograms(
    name: str, X: np.ndarray, y: np.ndarray, fraction: float, repeats: int
) -> list[Row]:
    """Return the shortest times of one tree, and the times of the bins."""
    import lightgbm

    rng = np.random.default_rng(1)
    z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    q = 1 / (1 + np.exp(-z @ rng.normal(size=X.shape[1]) / X.shape[1]))
    g, h = q - y, q * (1 - q)
    order = rng.permutation(len(X))
    parts = np.split(order, [int(fraction * len(X))])
    rows, others = (np.sort(part).astype(np.int32) for part in parts)
    clock = time.process_time
    settings = {"max_bin": 255, "min_data_in_bin": 1, "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X[rows], y[rows], params=settings)
    bin_times = (
        measure_seconds(lambda: Bins.from_table(X), clock),
        measure_seconds(data.construct, clock),
    )
    limits = {"num_leaves": 63, "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0}
    booster = lightgbm.Booster({**settings, **limits, "objective": "none"}, data)
    derivatives = g[rows].astype(np.float32), h[rows].astype(np.float32)
    grower = BinnedGrower(Bins.from_table(X), max_leaves=63, min_samples_leaf=5)
    ours = partial(grower.grow_gradients, g, h, rows=rows, others=others)
    peer = partial(booster.update, fobj=lambda *_: derivatives)
    pairs = [[measure_seconds(run, clock) for run in (ours, peer)] for _ in range(repeats)]
    tree_times, case = np.min(pairs, axis=0), f"{name}, {len(X)} rows, p = {X.shape[1]}"
    return [
        Row(f"tree, {case}", float(tree_times[0]), "LightGBM", float(tree_times[1]), 1.0),
        Row(f"bins, {case}", bin_times[0], "LightGBM", bin_times[1]),
    ]


def _grow_forest(split: Parts, n_trees: int, **options: Any) -> tuple[float, float]:
    """Return the CPU seconds of a forest of full trees, bins included, and its test error."""
    X, X_test, y, y_test = split
    p, is_regression = X.shape[1], y.dtype.kind == "f"
    options = {"bootstrap": True, "order": "depth", **options}
    start = time.process_time()
    bins = Bins.from_table(X, options.pop("categorical", None))
    features = p if is_regression else max(1, int(np.sqrt(p)))
    grower = BinnedGrower(bins, max_features=features, **options)
    if is_regression:
        forest = grower.grow_numbers(y, n_trees)
        trees = forest.trees.with_value(forest.means()[:, None])
    else:
        forest = grower.grow_classes(y, n_classes := int(y.max()) + 1, n_trees)
        table = forest.class_weights(n_classes)
        trees = forest.trees.with_value(table / table.sum(axis=1, keepdims=True))
    seconds = time.process_time() - start
    total = trees.add(np.zeros((trees.value.shape[1], len(X_test))), X_test, 1).T / n_trees
    return seconds, _compute_error(total[:, 0] if is_regression else total, y_test)


def _compute_error(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of errors; for numbers the error over the standard deviation."""
    if predicted.ndim == 2:
        return float(np.mean(predicted.argmax(axis=1) != y))
    return float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y))


def _compare_forests(
    name: str, split: Parts, peer: Any, target: float | None = None, **options: Any
) -> Row:
    """Return the times of both forests; the case has the errors."""
    X, X_test, y, y_test = split
    seconds, error = _grow_forest(split, peer.n_estimators, **options)
    peer_seconds = measure_seconds(lambda: peer.fit(X, y), time.process_time)
    predict = peer.predict if y.dtype.kind == "f" else peer.predict_proba
    errors = f"{error:.4f} / {_compute_error(predict(X_test), y_test):.4f}"
    case = f"{name}, {len(X)} rows, p = {X.shape[1]}, {peer.n_estimators} trees, errors {errors}"
    return Row(case, seconds, type(peer).__name__, peer_seconds, target)


def race_forest_growth(rows: int) -> list[Row]:
    """Grow forests on simulated rows and on public tables with codes of categories as numbers."""
    n, n_trees = rows // 10, 100 if rows >= 1_000_000 else 10
    X, signal = draw_rows(n, 28)
    # In shuffled columns no implementation gains by trying the first column first.
    X = np.ascontiguousarray(X[:, np.random.default_rng(5).permutation(28)], dtype=np.float64)
    y = (signal > 0).astype(np.int32)
    classes = X[:n], X[n:], y[:n], y[n:]
    numbers = X[:n], X[n:], signal[:n], signal[n:]
    forest, extra = ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier
    few = partial(ensemble.RandomForestRegressor, n_trees // 10, random_state=0)
    options = {"bootstrap": False, "random_cuts": True}
    found = [
        _compare_forests("classes", classes, forest(n_trees, random_state=0), 1 / 15),
        _compare_forests("classes", classes, extra(n_trees, random_state=0), **options),
        _compare_forests("numbers", numbers, few(), 1 / 10),
    ]
    tables = load_tables(FOREST_TABLES) if os.environ.get("CERTREE_DATA") else {}
    for name, data in tables.items():
        train, test = data.draw(0, 3 * len(data.y) // 4)
        y = data.y if data.is_regression else data.y.astype(np.int32)
        X = np.ascontiguousarray(np.nan_to_num(data.X, nan=-1.0))
        peer = few() if data.is_regression else forest(n_trees, random_state=0)
        found.append(_compare_forests(name, (X[train], X[test], y[train], y[test]), peer))
    return found


def race_grow(rows: int) -> list[Row]:
    """Grow trees of single rows of 16 features."""
    from scipy.spatial import cKDTree

    X, found = np.random.default_rng(0).standard_normal((rows, 16)), []
    growers = {f"kd, {axis}": partial(certree.grow_kd, axis=axis) for axis in ("cycle", "spread")}
    peer = partial(cKDTree, X, leafsize=1, balanced_tree=True)
    for name, grow in (growers | {"dyadic": certree.grow_dyadic}).items():
        for threads, n_jobs in (("one thread", None), ("all threads", -1)):
            a, b = measure_in_turn(partial(grow, X, n_jobs=n_jobs), peer, 5)
            found.append(Row(f"{name}, {threads}, {rows:.0e} rows", a, "scipy cKDTree", b, 0.7))
    return found


def race_predict(rows: int) -> list[Row]:
    """Predict many rows, and single rows, by a tree of 16 features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows * 55 // 100, 16))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 6 * rng.standard_normal(len(X)) > 0
    peer = DecisionTreeClassifier(max_leaf_nodes=100_000, random_state=0)
    ours = certree.PACBayesTreeClassifier(peer, lambda_error=1.0, lambda_penalty=0.1).fit(X, y)
    peer.fit(X, y)
    new = rng.standard_normal((rows, 16))
    single = [new[i : i + 1] for i in range(min(2000, rows))]

    def predict_singly(model: Any) -> None:
        for row in single:
            model.predict(row)

    cases = {
        f"{rows} rows, {kind}, {peer.get_n_leaves()} leaves": [
            partial(model.predict, new.astype(kind)) for model in (ours, peer)
        ]
        for kind in ("float64", "float32")
    }
    cases[f"{len(single)} calls of one row"] = [
        partial(predict_singly, one) for one in (ours, peer)
    ]
    times = {case: measure_in_turn(*runs, 5) for case, runs in cases.items()}
    return [Row(case, a, "DecisionTreeClassifier", b, 1.0) for case, (a, b) in times.items()]


def race_predict_boosted(rows: int) -> list[Row]:
    """Predict rows of 28 features, none or 10 of them categories, by 100 trees on one thread."""
    n, p, found = rows // 10, 28, []
    for n_categorical in (0, 10):
        rng, where = np.random.default_rng(0), [*range(p - n_categorical, p)]
        X = rng.normal(size=(n, p))
        y = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) + 0.3 * X[:, 4:10].sum(axis=1)
        for j in where:
            size = rng.integers(3, 61)
            X[:, j] = rng.integers(0, size, n)
            y += 0.5 * rng.normal(size=size)[X[:, j].astype(int)]
        y += rng.normal(size=n)
        frame = pd.DataFrame(X).astype(dict.fromkeys(where, int)) if where else X
        for leaves in (31, 63):
            for kind in ("Classifier", "Regressor"):
                target = (y > np.median(y)).astype(int) if kind == "Classifier" else y
                word = "classes" if kind == "Classifier" else "numbers"
                case = f"{n} rows, {n_categorical} categorical, {leaves} leaves, {word}"
                found += _compare_predictions(case, kind, leaves, X, frame, target, where)
    return found


def _compare_predictions(
    case: str, kind: str, leaves: int, X: np.ndarray, frame: Any, y: np.ndarray, where: list[int]
) -> list[Row]:
    """Return the times of predictions of all rows after fits to a fifth of them."""
    train, method = slice(len(X) // 5), "predict_proba" if kind == "Classifier" else "predict"
    ours = {"Classifier": BoostedTreesClassifier, "Regressor": BoostedTreesRegressor}[kind](
        quality="fast", max_iter=100, max_leaf_nodes=leaves, max_features=1.0, max_thresholds=None,
        categorical_features=where, random_state=0, n_jobs=1,
    ).fit(X[train], y[train])  # fmt: skip
    peers = {}
    if find_spec("lightgbm"):
        light = make_lightgbm(kind, n_estimators=100, num_leaves=leaves)
        light.fit(X[train], y[train], categorical_feature=where)
        peers["LightGBM"] = partial(getattr(light, method), X)
    if find_spec("catboost"):
        cat = make_catboost(kind, iterations=100, cat_features=where).fit(frame[train], y[train])
        peers["CatBoost"] = partial(getattr(cat, method), frame, thread_count=1)
    found, goal = [], 3.0 if where else {31: 1.0, 63: 2.0}[leaves]
    for peer, predict in peers.items():
        times = measure_in_turn(partial(getattr(ours, method), X), predict, 9, time.process_time)
        found.append(Row(case, times[0], peer, times[1], goal if peer == "CatBoost" else None))
    return found


def race_shapley(rows: int) -> list[Row]:
    """Explain rows by their paths, against shap, and boosted trees by a background of 100 rows."""
    import shap

    X, y = make_friedman1(3000, 30, random_state=0)
    X = X.astype(np.float32).astype(np.float64)  # as scikit-learn's trees compare them
    asked, found = X[: rows // 1000], []
    forest = ensemble.RandomForestRegressor(100, max_depth=6, random_state=0).fit(X, y)
    ours = TreeForestRegressor(100, max_depth=6, max_features=None, random_state=0).fit(X, y)
    for name, model in (("forest of scikit-learn", forest), ("the same forest", shap_trees(ours))):
        peer = partial(shap.TreeExplainer(model).shap_values, asked, check_additivity=False)
        runs = partial(shapley_values, ours, asked), peer
        wall = measure_in_turn(*runs, 5)
        cpu = [measure_seconds(run, time.process_time) for run in runs]
        found.append(Row(f"path, {name}", wall[0], "shap", wall[1], 1.0, cpu[0] / cpu[1]))
    options = {"max_iter": 100, "max_depth": 6, "max_leaf_nodes": 64, "random_state": 0}
    boosted = BoostedTreesRegressor(**options).fit(X, y)
    run = partial(shapley_values, boosted, asked, X[-100:])
    wall, cpu = measure_median(run, 5), measure_median(run, 5, time.process_time)
    return [*found, Row("background of 100 rows", wall, target=0.8, figure=cpu, unit="s")]


def race_explain(rows: int) -> list[Row]:
    """Explain rows of adult, with categories as texts, by a tree whose prunings vote."""
    table = pd.read_parquet(find_directory() / "more" / "adult.parquet")
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    options = {"lambda_error": 0.5, "lambda_penalty": 0.05, "prior": "leaves"}
    model, n = certree.PACBayesTreeClassifier(**options).fit(X, y), rows // 10
    many = pd.concat([X] * (n // len(X) + 1), ignore_index=True)[:n]
    seconds = measure_median(lambda: model.explain(many), 5)
    return [Row("explain", seconds, target=1.0, figure=seconds, unit="s")]


RACES = {
    name.removeprefix("race_"): race
    for name, race in [*globals().items()]
    if name.startswith("race_")
}


def main(only: str = ",".join(RACES), rows: int = 1_000_000) -> None:
    """Run the races; only: their names, separated by commas; rows: scale of all sizes."""
    warnings.filterwarnings("ignore")
    for name in only.split(","):
        if found := RACES[name](rows):
            report(name, found)


if __name__ == "__main__":
    typer.run(main)
