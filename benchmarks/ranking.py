"""Ranking documents of queries: `BoostedTreesRanker` against LightGBM and CatBoost.

Three worlds whose truth is known: a document has a utility by its features, of which its relevance,
0 to 4, is seen through noise. Documents of fresh queries are ranked, and NDCG at 10 is taken twice: by
relevance as it is without noise, and as it is seen. Goals count the first. All are at their defaults,
one thread each; "no vote" is ours with whole trees, for comparison. Seconds are those of CPU of a fit.
Every fit is a line of results/ranking.csv; fits that stand there already are not made again. Peers that
are not installed are left out.

Defaults of ours were chosen by seeds from 100 on; those below count.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import ndcg_score

from benchmarks.records import RESULTS, known, store
from certree import BoostedTreesRanker

# Relevance 1, 2, 3 and 4 begin at these quantiles of the utility.
GRADES = (0.5, 0.75, 0.9, 0.97)


@dataclass(frozen=True, slots=True)
class Queries:
    """Documents of queries, those of a query one behind the other.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features.
    seen, truth : ndarray of shape (n,)
        Relevance through noise, and without.
    group : ndarray of shape (n_queries,)
        How many documents each query has.
    """

    X: np.ndarray
    seen: np.ndarray
    truth: np.ndarray
    group: np.ndarray


def graded(utility: np.ndarray) -> np.ndarray:
    """Relevance by quantiles of the utility."""
    return np.searchsorted(np.quantile(utility, GRADES), utility, side="right")


def linear(rng: np.random.Generator, n_queries: int) -> Queries:
    """20 documents each; 10 of 20 features add up, and noise has the same variance as their sum."""
    group = np.full(n_queries, 20)
    weights = np.append(1 / np.arange(1, 11), np.zeros(10))
    X = rng.normal(size=(group.sum(), 20))
    utility = X @ weights / np.sqrt(np.sum(weights**2))
    return Queries(X, graded(utility + rng.normal(size=len(X))), graded(utility), group)


def interactions(rng: np.random.Generator, n_queries: int) -> Queries:
    """10 to 40 documents each; 12 trees of depth 4 on 10 of 20 features add up.

    Noise has half of the variance of their sum.
    """
    group = rng.integers(10, 41, size=n_queries)
    X = rng.uniform(size=(group.sum(), 20))
    utility = np.zeros(len(X))
    for _ in range(12):
        leaf = np.zeros(len(X), dtype=int)
        for feature, threshold in zip(
            rng.permutation(10)[:4], rng.uniform(0.2, 0.8, size=4), strict=True
        ):
            leaf = 2 * leaf + (X[:, feature] > threshold)
        utility += rng.normal(size=16)[leaf]
    utility = (utility - utility.mean()) / utility.std()
    noise = np.sqrt(0.5) * rng.normal(size=len(X))
    return Queries(X, graded(utility + noise), graded(utility), group)


def useless(rng: np.random.Generator, n_queries: int) -> Queries:
    """2 to 150 documents each; 5 of 60 features matter, in curves and products.

    What all documents of a query share moves relevance and is seen in 5 other features; in 50 there is
    nothing to see. Noise has as much variance as the utility within a query.
    """
    group = np.exp(rng.uniform(np.log(2), np.log(151), size=n_queries)).astype(int)
    n = int(group.sum())
    X = rng.normal(size=(n, 60))
    a, b, c, d, e = X[:, :5].T
    utility = np.sin(2 * a) + b * c + np.abs(d) + 0.5 * (e > 0) * (a - b)
    utility = (utility - utility.mean()) / utility.std()
    shared = rng.normal(size=n_queries)
    X[:, 5:10] += np.repeat(shared, group)[:, None]
    utility += np.repeat(shared, group)
    return Queries(X, graded(utility + rng.normal(size=n)), graded(utility), group)


WORLDS: dict[str, Callable[[np.random.Generator, int], Queries]] = {
    "linear": linear,
    "interactions": interactions,
    "useless": useless,
}
N_TRAINING, N_FRESH = 250, 400


def queries_of(world: str, seed: int) -> tuple[Queries, Queries]:
    """Queries to learn from, and fresh ones of the same world."""
    rng = np.random.default_rng([seed, list(WORLDS).index(world)])
    every = WORLDS[world](rng, N_TRAINING + N_FRESH)
    n = every.group[:N_TRAINING].sum()
    columns = every.X, every.seen, every.truth
    return (
        Queries(*(one[:n] for one in columns), every.group[:N_TRAINING]),
        Queries(*(one[n:] for one in columns), every.group[N_TRAINING:]),
    )


SEEDS = 10
OURS = "certree"
# Ours must not be below a peer's by more standard errors of the mean difference.
GOAL = 2.0


def methods() -> dict[str, Callable[[Queries], Any]]:
    """Fits that are compared."""

    def ours(rows: Queries, **how: Any) -> Any:
        model = BoostedTreesRanker(random_state=0, n_jobs=1, **how)
        return model.fit(rows.X, rows.seen, group=rows.group)

    found: dict[str, Callable[[Queries], Any]] = {
        OURS: ours,
        "no vote": lambda rows: ours(rows, prunings="none"),
        "no vote, 100 rounds": lambda rows: ours(rows, prunings="none", max_iter=100),
    }
    if find_spec("lightgbm"):
        import lightgbm

        light = lightgbm.LGBMRanker(verbose=-1, n_jobs=1, random_state=0)
        found["LightGBM"] = lambda rows: light.fit(rows.X, rows.seen, group=rows.group)
    if find_spec("catboost"):
        import catboost

        # YetiRank is its default.
        quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
        found["CatBoost"] = lambda rows: catboost.CatBoostRanker(**quiet).fit(
            rows.X, rows.seen, group_id=np.repeat(np.arange(len(rows.group)), rows.group)
        )
    return found


def mean_ndcg(relevance: np.ndarray, score: np.ndarray, group: np.ndarray) -> float:
    """NDCG at 10 of gains 2^y - 1, as scikit-learn has it; of queries that have one to tell apart."""
    ends = np.cumsum(group)[:-1]
    parts = zip(np.split(relevance, ends), np.split(score, ends), strict=True)
    told = [ndcg_score([2.0**y - 1], [s], k=10) for y, s in parts if y.min() < y.max()]
    return float(np.mean(told))


def judged(fit: Callable[[Queries], Any], world: str, seed: int) -> dict[str, float]:
    """NDCG of fresh queries, and seconds of a fit."""
    rows, fresh = queries_of(world, seed)
    start = time.process_time()
    model = fit(rows)
    seconds = time.process_time() - start
    score = model.predict(fresh.X)
    truth, seen = (mean_ndcg(one, score, fresh.group) for one in (fresh.truth, fresh.seen))
    return {"truth": truth, "seen": seen, "seconds": seconds}


def summary(rows: list[dict[str, Any]]) -> None:
    """Print means, and differences with their standard errors."""
    for world in WORLDS:
        part = [row for row in rows if row["world"] == world and row["seed"] < SEEDS]
        of = {row["method"]: {} for row in part}
        for row in part:
            of[row["method"]][row["seed"]] = row
        for name, cells in of.items():
            seeds = sorted(cells.keys() & of.get(OURS, {}).keys())
            words = f"{world:13} {name:20}"
            for field in ("truth", "seen"):
                words += f" {field} {np.mean([cells[seed][field] for seed in cells]):.4f}"
                if name == OURS or len(seeds) < 2:
                    continue
                apart = np.array([of[OURS][seed][field] - cells[seed][field] for seed in seeds])
                error = apart.std(ddof=1) / np.sqrt(len(seeds))
                words += f" (ours {apart.mean():+.4f} +- {error:.4f})"
                if field == "truth" and name in ("LightGBM", "CatBoost"):
                    words += " met" if apart.mean() >= -GOAL * error else " MISSED"
            ratios = [of[OURS][seed]["seconds"] / cells[seed]["seconds"] for seed in seeds]
            print(f"{words}  our seconds / its {np.exp(np.mean(np.log(ratios))):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[*range(SEEDS)])
    parser.add_argument("--again", action="store_true", help="make our fits again")
    parser.add_argument("--file", type=Path, default=RESULTS / "ranking.csv")
    options = parser.parse_args()
    rows, peers = known(options.file), {"LightGBM", "CatBoost"}
    if options.again:
        rows = [row for row in rows if row["method"] in peers]
    done = {(row["world"], row["seed"], row["method"]) for row in rows}
    for seed in options.seeds:
        for world in WORLDS:
            for name, fit in methods().items():
                if (world, seed, name) not in done:
                    figures = judged(fit, world, seed)
                    rows.append({"world": world, "seed": seed, "method": name, **figures})
                    store(options.file, rows, added=bool(done))
    summary(rows)


if __name__ == "__main__":
    main()
