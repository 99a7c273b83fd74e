"""The plan of a fit to files: an upper bound of memory and temporary files, and no fit."""

import numpy as np
import pytest

from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    Cart,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    TreeForestRegressor,
)
from certree.out_of_core import plan_fit, resources
from certree.out_of_core.scratch import Scratch
from same_models import make_table, write_files

N = 1500
MODELS = {
    "boosted": BoostedTreesRegressor(max_iter=3, random_state=0),
    "forest": TreeForestRegressor(n_estimators=3, random_state=0),
    "tree": PACBayesTreeRegressor(Cart(max_bins=255), random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_temporary_files_take_no_more_than_the_plan_says(name, tmp_path, monkeypatch, left_nothing):
    files = write_files(tmp_path, make_table(N, "numbers").drop_columns(["w"]))
    plan = plan_fit(MODELS[name], files, "y")
    room, sizes = Scratch.map_file, {}

    def noted(self, name, shape, dtype):
        sizes[name] = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return room(self, name, shape, dtype)

    monkeypatch.setattr(Scratch, "map_file", noted)
    MODELS[name].fit(files, "y")
    assert 0 < sum(sizes.values()) <= plan.scratch_bytes
    assert (plan.n_rows, plan.n_blocks) == (N, 1)
    assert f"{N:,} rows of {plan.n_features} features are read in 1 block by" in str(plan)


def test_a_plan_leaves_the_model_and_keeps_to_the_limit(tmp_path, left_nothing):
    files = write_files(tmp_path, make_table(N, "two").drop_columns(["w"]))
    model = BoostedTreesClassifier(max_iter=3)
    before = dict(vars(model))
    with resources(memory_limit="4GB"):
        plan = plan_fit(model, files, "y")
    assert vars(model) == before
    assert plan.memory_bytes <= 4e9
    too_little = pytest.raises(ValueError, match="memory_limit=10,000,000 is too little")
    with too_little, resources(memory_limit="10MB"):
        plan_fit(model, files, "y")


def test_fits_of_few_rows_for_each_class_are_planned_in_memory(tmp_path, left_nothing):
    rows = make_table(30, "three", seed=1).drop_columns(["w"])
    files = write_files(tmp_path, rows, (0, 30))
    plan = plan_fit(PACBayesTreeClassifier(Cart(max_bins=255), cv=3), files, "y")
    assert (plan.n_rows, plan.n_blocks, plan.scratch_bytes) == (30, 0, 0)
    assert "are read into memory" in str(plan)


def test_tables_in_memory_are_refused():
    with pytest.raises(TypeError, match=r"X must be a path.*got ndarray"):
        plan_fit(BoostedTreesRegressor(), np.zeros((3, 1)), np.zeros(3))
