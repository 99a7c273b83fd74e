"""`BoostedTreesRanker` against LightGBM and CatBoost on simulated queries.

A document has a utility that depends on its features; its relevance (0 to 4) is observed with noise.
250 queries train; NDCG at 10 of 400 new queries by the true relevance ("truth") and by the observed one
("seen"). All at their defaults, one thread; "no vote" is certree without the vote of prunings. Ten
seeds. Fits that the result file has are not repeated.
"""

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import typer
from sklearn.metrics import ndcg_score

from benchmarks.peers import make_catboost, make_lightgbm
from benchmarks.results import run_missing
from benchmarks.timing import measure_seconds
from certree import BoostedTreesRanker

# Relevance 1, 2, 3 and 4 begin at these quantiles of the utility.
GRADES = (0.5, 0.75, 0.9, 0.97)
N_TRAIN, N_NEW = 250, 400

# Features, utility, deviation of its noise, and the number of documents of each query.
World = tuple[np.ndarray, np.ndarray, float, np.ndarray]


def draw_linear(rng: np.random.Generator, n_queries: int) -> World:
    """Draw 20 documents each; a weighted sum of 10 of 20 features."""
    group = np.full(n_queries, 20)
    weights = np.append(1 / np.arange(1, 11), np.zeros(10))
    X = rng.normal(size=(group.sum(), 20))
    return X, X @ weights / np.sqrt(np.sum(weights**2)), 1.0, group


def draw_interactions(rng: np.random.Generator, n_queries: int) -> World:
    """Draw 10 to 40 documents each; a sum of 12 trees of depth 4 on 10 of 20 features."""
    group = rng.integers(10, 41, size=n_queries)
    X = rng.uniform(size=(group.sum(), 20))
    utility = np.zeros(len(X))
    for _ in range(12):
        leaf = np.zeros(len(X), dtype=int)
        features, thresholds = rng.permutation(10)[:4], rng.uniform(0.2, 0.8, size=4)
        for feature, threshold in zip(features, thresholds, strict=True):
            leaf = 2 * leaf + (X[:, feature] > threshold)
        utility += rng.normal(size=16)[leaf]
    return X, (utility - utility.mean()) / utility.std(), np.sqrt(0.5), group


def draw_useless(rng: np.random.Generator, n_queries: int) -> World:
    """Draw 2 to 150 documents each; 5 of 60 features matter, and 5 others show a query's mean."""
    group = np.exp(rng.uniform(np.log(2), np.log(151), size=n_queries)).astype(int)
    X = rng.normal(size=(int(group.sum()), 60))
    a, b, c, d, e = X[:, :5].T
    utility = np.sin(2 * a) + b * c + np.abs(d) + 0.5 * (e > 0) * (a - b)
    utility = (utility - utility.mean()) / utility.std()
    shared = np.repeat(rng.normal(size=n_queries), group)
    X[:, 5:10] += shared[:, None]
    return X, utility + shared, 1.0, group


WORLDS = {"linear": draw_linear, "interactions": draw_interactions, "useless": draw_useless}


def grade(utility: np.ndarray) -> np.ndarray:
    """Return the relevance by quantiles of the utility."""
    return np.searchsorted(np.quantile(utility, GRADES), utility, side="right")


def make_methods() -> dict[str, Callable[[], Any]]:
    """Return functions that make the installed rankers."""
    ours = partial(BoostedTreesRanker, random_state=0, n_jobs=1)
    found = {"certree": ours, "no vote": partial(ours, prunings="none")}
    if find_spec("lightgbm"):
        found["LightGBM"] = partial(make_lightgbm, "Ranker")
    if find_spec("catboost"):
        found["CatBoost"] = partial(make_catboost, "Ranker")
    return found


def compute_ndcg(relevance: np.ndarray, score: np.ndarray, group: np.ndarray) -> float:
    """Return the mean NDCG at 10 with gains 2^y - 1 over queries with several grades."""
    ends = np.cumsum(group)[:-1]
    queries = zip(np.split(relevance, ends), np.split(score, ends), strict=True)
    found = [ndcg_score([2.0**y - 1], [s], k=10) for y, s in queries if y.min() < y.max()]
    return float(np.mean(found))


def measure(make: Callable[[], Any], world: str, seed: int) -> dict[str, float]:
    """Return NDCG of new queries, and CPU seconds of a fit."""
    rng = np.random.default_rng([seed, list(WORLDS).index(world)])
    X, utility, deviation, group = WORLDS[world](rng, N_TRAIN + N_NEW)
    seen, truth = grade(utility + deviation * rng.normal(size=len(X))), grade(utility)
    n, sizes, model = group[:N_TRAIN].sum(), group[:N_TRAIN], make()
    queries = {"group": sizes}
    if type(model).__module__.startswith("catboost"):
        queries = {"group_id": np.repeat(np.arange(N_TRAIN), sizes)}
    fit = partial(model.fit, X[:n], seen[:n], **queries)
    seconds = measure_seconds(fit, time.process_time)
    score = model.predict(X[n:])
    ndcg = [compute_ndcg(one[n:], score, group[N_TRAIN:]) for one in (truth, seen)]
    return {"truth": ndcg[0], "seen": ndcg[1], "seconds": seconds}


def main(seeds: int = 10) -> None:
    """Run the missing fits."""
    fits = (
        ({"world": world, "seed": seed, "method": method}, partial(measure, make, world, seed))
        for seed in range(seeds)
        for world in WORLDS
        for method, make in make_methods().items()
    )
    run_missing("ranking", fits)


if __name__ == "__main__":
    typer.run(main)
