"""Polynomials over bits: the fast transform, spectra of forests, and black boxes that are recovered.

Targets: the Walsh-Hadamard transform of 2^24 numbers in 0.15 s with two threads; the spectrum of 100
trees of depth 6 over 30 bits in 0.1 s with one; a random tree of depth 5 over 40 bits (about 155 terms)
exactly from 32,000 queries by hashing, and from 4,000 random examples with terms that boosted trees
propose, for the worst of ten trees. Peers, measured on two cores with other work going on: NumPy's
butterflies take 0.40 s for the transform in float32; SPEX needs 13,824 examples and 49 s; ProxySPEX is
off by a squared error of 0.05 and more from 16,000.
"""

import numpy as np

from benchmarks.timing import Row, median, report, seconds
from certree import Tree, TreeForestRegressor
from certree.boolean import FourierRegressor, Spectrum, sparse_transform, spectrum, walsh_hadamard

REPEATS, SEEDS = 9, 10
N_BITS, DEPTH, EXAMPLES, QUERIES = 40, 5, 4_000, 32_000
# A squared error that is rounding.
EXACT = 1e-20


def random_tree(seed: int) -> tuple[Tree, np.ndarray]:
    """A whole tree that asks for no bit twice on a path, and whose leaves say -1 or 1."""
    rng = np.random.default_rng(seed)
    number = np.arange(2 ** (DEPTH + 1) - 1)
    inner = number < 2**DEPTH - 1
    feature = np.zeros(len(number), dtype=np.int32)
    for v in number[inner].tolist():
        above = [feature[(v + 1) // 2**level - 1] for level in range(1, (v + 1).bit_length())]
        feature[v] = rng.choice(np.setdiff1d(np.arange(N_BITS), above))
    value = np.where(inner, 0.0, rng.choice([-1.0, 1.0], len(number)))[:, None]
    left = np.where(inner, 2 * number + 1, -1).astype(np.int32)
    chain = np.ones(len(number), dtype=np.int32)
    return Tree(feature, np.where(inner, 0.5, 0.0), left, chain, N_BITS), value


def recoveries() -> list[Row]:
    """Time, error and queries of the worst of some random trees."""
    hashed, proposed, errors, queries = [], [], [], []
    for seed in range(SEEDS):
        tree, value = random_tree(seed)
        truth = spectrum((tree, value))

        def ask(X: np.ndarray, tree: Tree = tree, value: np.ndarray = value) -> np.ndarray:
            return value[tree.apply(X), 0]

        found: list[Spectrum] = []

        def by_hashing(seed: int = seed, ask=ask, found=found) -> None:
            result = sparse_transform(ask, N_BITS, budget=QUERIES, random_state=seed)
            queries.append(result.n_queries)
            found.append(result.spectrum)

        X = np.random.default_rng(seed).integers(0, 2, (EXAMPLES, N_BITS)).astype(float)
        model = FourierRegressor(random_state=seed)
        hashed.append(seconds(by_hashing))
        proposed.append(seconds(lambda model=model, X=X, ask=ask: model.fit(X, ask(X))))
        found.append(model.spectrum_)
        errors.append([(one - truth).squared_norm for one in found])
    worst = np.max(errors, axis=0)
    return [
        Row("hashed: squared error", max(hashed), target=EXACT, figure=worst[0], unit=""),
        Row("hashed: queries", None, target=QUERIES, figure=max(queries), unit="rows"),
        Row(
            f"proposals, {EXAMPLES} rows: squared error",
            max(proposed),
            target=EXACT,
            figure=worst[1],
            unit="",
        ),
    ]


def main() -> None:
    """Measure the transform, a spectrum and recoveries."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=2**24)
    transform = median(lambda: walsh_hadamard(values, n_jobs=2), REPEATS)
    X, y = rng.integers(0, 2, (20_000, 30)), rng.normal(size=20_000)
    forest = TreeForestRegressor(100, max_depth=6, random_state=0).fit(X, y)
    expanding = median(lambda: spectrum(forest), REPEATS)
    rows = [
        Row("transform, n = 24, 2 threads", transform, target=0.15, figure=transform, unit="s"),
        Row("spectrum of 100 trees", expanding, target=0.1, figure=expanding, unit="s"),
        *recoveries(),
    ]
    report("boolean", rows)


if __name__ == "__main__":
    main()
