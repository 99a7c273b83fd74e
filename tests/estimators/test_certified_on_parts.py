"""The same certified tree, bit by bit, of rows in memory and in files, however these are divided.

Certificates are not simulated here: their numbers are those of fits in memory.
"""

import pytest

from certree import Cart, CertifiedTreeClassifier, PACBayesPosteriors
from certree.interface.fitted import replaces_state
from certree.parts import sources
from certree.parts.executors import Here
from same_models import InChunks, assert_same, expect_same_tree, parted, table, write_parts

N = 900
ENDS = (0, 400, 400, N - 1, N)


def model_of(**how):
    given = {"random_state": 0, "duplicates": "genuine", **how}
    return CertifiedTreeClassifier(Cart(max_bins=255, max_leaf_nodes=60), **given)


@replaces_state
def fit_in_chunks(model, X, y, weight, ends, n_threads=1):
    model._fit_parts(Here(InChunks(X, y, weight, ends), None, n_threads))
    return model


def expect_same_fit(model, other, folder):
    """Two certified trees have the same bits in all that a fit sets, and the same file."""
    expect_same_tree(model, other, folder)
    assert model.certificates_ == other.certificates_
    assert model.full_certificate_ == other.full_certificate_
    expect_same_rows(model.calibration_, other.calibration_)
    for side in ("grow", "weigh"):
        held = (getattr(one.model_selection_.held, side) for one in (model, other))
        assert_same(*held, side)
    assert_same(model.sample_hashes_, other.sample_hashes_, "hashes")


def expect_same_rows(one, other):
    for name in ("given", "leaf", "y"):
        assert_same(getattr(one, name), getattr(other, name), name)
    assert (one.n_given, one.repeats) == (other.n_given, other.repeats)


WAYS = {
    "default": {},
    "share": {"train_size": 0.4},
    "cv": {"posteriors": "cv", "selection": "vote"},
    "given": {"posteriors": PACBayesPosteriors(lambda_error=1.0, lambda_penalty=0.1)},
    "majority": {"vote": "majority"},
    "small": {"max_leaf_nodes": 6},
    "balanced": {"class_weight": "balanced"},
}


@pytest.mark.parametrize("target", ["two", "three"])
@pytest.mark.parametrize("way", WAYS)
def test_files_and_memory_have_the_same_fit(way, target, tmp_path, monkeypatch, left_nothing):
    rows = table(N, target).drop_columns(["w"])
    files = write_parts(tmp_path, rows, ENDS)
    here = model_of(**WAYS[way]).fit(
        rows.drop_columns(["y"]), rows["y"].to_numpy(zero_copy_only=False)
    )
    for part_rows in (2**19, 170, 90):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "part_rows", part_rows)
        expect_same_fit(here, model_of(**WAYS[way]).fit(files, "y"), tmp_path)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"one": 0.5, "third": 0}])
@pytest.mark.parametrize("weights", ["real", "whole"])
@pytest.mark.parametrize("way", ["default", "small"])
def test_weights_mean_the_same(way, weights, class_weight, tmp_path):
    X, y, weight = parted(table(N, "three", weights=weights))
    how = {**WAYS[way], "class_weight": class_weight}
    here = model_of(**how).fit(X, y, weight)
    there = fit_in_chunks(model_of(**how), X, y, weight, [0, 1, 1, 600, N], 2)
    expect_same_fit(here, there, tmp_path)
