"""Promises of learned polynomials, counted: more often in `make validity` than in `make test`."""

import numpy as np
import pytest

from certree.boolean import held_out_error, kushilevitz_mansour, low_degree, sparsify, spectrum
from run_length import LONG
from strategies import draw_examples, make_complete_tree, make_function


def test_the_promise_of_the_search_holds():
    runs = 200 if LONG else 12
    tree = make_complete_tree(np.random.default_rng(3), 8, 3)
    f = spectrum(tree)
    large = {one for one, square in zip(f.sets(), f.squares, strict=True) if square >= 0.25**2}
    hits = 0
    for seed in range(runs):
        found = kushilevitz_mansour(make_function(tree), 8, 0.25, random_state=seed).spectrum
        near = all(
            abs(value[0] - f.coefficient(one)[0]) <= 0.25 / 4
            for one, value in zip(found.sets(), found.coefficients, strict=True)
        )
        hits += large <= {*found.sets()} and near
    assert len(large) > 3
    assert hits >= 0.92 * runs


@pytest.mark.parametrize("keep", ["all", "proven"])
def test_the_error_of_means_is_below_its_bound(keep):
    runs, wrong = (200 if LONG else 20), 0
    tree = make_complete_tree(np.random.default_rng(5), 10, 3)
    truth = spectrum(tree)
    above = truth.squared_norm - truth.truncate(2).squared_norm
    for seed in range(runs):
        X, y = draw_examples(tree, 3000, seed)
        found = low_degree(X, y, 2, keep=keep)
        bound = found.error_bound(above, truth.truncate(2).l1_norm)
        assert bound <= found.error_bound(above) + 1e-12
        wrong += (found.spectrum - truth).squared_norm > bound
    assert wrong <= 0.08 * runs


def test_the_bound_from_rows_holds():
    runs = 200 if LONG else 30
    tree = make_complete_tree(np.random.default_rng(0), 12, 4)
    kept = sparsify(spectrum(tree), budget=12)
    # Of all rows, as the bound speaks of clipped values.
    cube = ((np.arange(2**12)[:, None] >> np.arange(12)) & 1).astype(float)
    clipped = np.clip(kept.spectrum.evaluate(cube)[:, 0], -1, 1)
    truth = ((clipped - make_function(tree)(cube)) ** 2).mean()
    wrong = 0
    for seed in range(runs):
        X, y = draw_examples(tree, 300, seed)
        wrong += held_out_error(kept.spectrum, X, y, delta=0.05)[1] < truth
    assert wrong <= 0.08 * runs
