"""Standard errors have the same bits for rows in files and for the same rows in memory."""

import numpy as np
import pyarrow as pa
import pytest

from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor, CustomLoss
from certree.out_of_core import sources
from certree.out_of_core.row_block import RowBlock
from same_models import add_targets, add_towns, expect_same, make_groups, make_table, write_files

N = 1500
SQUARED = CustomLoss(lambda y, s: (s - y, np.ones(len(y))), lambda y, s: (y - s) ** 2 / 2)
STOPS = {"early_stopping": True, "max_iter": 9, "n_iter_no_change": 2, "learning_rate": 0.5}


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    defaults = {"max_iter": 4, "max_leaf_nodes": 9, "random_state": 0, "n_jobs": 1}
    return made(**{**defaults, "standard_errors": True, **how})


def make_rows(target, kinds=()):
    """Make a table, and the names of its columns by argument of `fit`.

    kinds: further columns: "weight", "offset", "groups", "towns" or "targets".
    """
    rows, names = make_table(N, target), {"y": "y"}
    if "groups" in kinds:
        _, rows = make_groups(rows, "ints")
        names["groups"] = "g"
    if "towns" in kinds:
        rows = add_towns(rows, 60)
    if "targets" in kinds:
        rows, names["y"] = add_targets(rows, target), ["y", "b", "c"]
    if "offset" in kinds:
        n_outputs = 3 if target == "three" or "targets" in kinds else 1
        columns = [f"o{k}" for k in range(n_outputs)]
        for name in columns:
            offset = np.random.RandomState(len(name)).normal(size=N).round(1)
            rows = rows.append_column(name, pa.array(offset))
        names["offset"] = columns[0] if n_outputs == 1 else columns
    if "weight" in kinds:
        names["sample_weight"] = "w"
    else:
        rows = rows.drop_columns(["w"])
    return rows, names


def read_column(rows, names):
    """Return the columns of these names as an array."""
    columns = [
        rows[name].to_numpy(False) for name in ([names] if isinstance(names, str) else names)
    ]
    return columns[0] if isinstance(names, str) else np.column_stack(columns)


def fit_in_memory(model, rows, names):
    every = [one for name in names.values() for one in ([name] if isinstance(name, str) else name)]
    given = {argument: read_column(rows, name) for argument, name in names.items()}
    return model.fit(rows.drop_columns(every), **given)


CASES = [
    ("two", (), {}),
    ("two", ("weight", "offset"), {}),
    ("two", ("weight", "groups"), STOPS),
    ("two", ("towns", "weight"), {}),
    ("three", ("weight",), STOPS),
    ("three", ("offset", "towns"), {}),
    ("two", ("targets",), {}),
    ("numbers", (), {"quality": "best", "max_thresholds": 8}),
    ("numbers", ("weight",), {"loss": "huber"}),
    ("numbers", ("weight", "offset", "groups"), {"loss": "absolute_error"}),
    ("numbers", ("weight", "offset", "towns"), STOPS),
    ("numbers", ("offset", "towns"), {"quality": "best"}),
    ("numbers", ("weight", "targets", "offset"), {}),
    ("numbers", ("weight",), {"loss": "quantile", "quantile": [0.1, 0.7]}),
    ("numbers", ("weight", "offset"), {"loss": SQUARED}),
]


@pytest.mark.filterwarnings("ignore::certree.RepeatedRowsWarning")
@pytest.mark.parametrize(("target", "kinds", "how"), CASES)
def test_standard_errors_of_files_are_those_of_memory(
    target, kinds, how, tmp_path, monkeypatch, left_nothing
):
    rows, names = make_rows(target, kinds)
    here = fit_in_memory(model_of(target, **how), rows, names)
    assert here._errors.scale.min() > 0
    files = write_files(tmp_path, rows.take(np.random.RandomState(1).permutation(N)))
    number = CASES.index((target, kinds, how))
    sizes = [2**19, 170, 37]
    for block_rows in sizes if number == 1 else [sizes[number % 3]]:
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, **names)
        expect_same(here, there, tmp_path)


@pytest.mark.parametrize("lies_in", ["memory", "files"])
def test_validation_sets_are_in_no_third(lies_in, tmp_path, left_nothing):
    rows = make_table(N, "two")
    rest, held = rows.slice(300), rows.slice(0, 300)
    names = {"y": "y", "sample_weight": "w"}
    validation = {
        "X_val": held.drop_columns(["y", "w"]),
        "y_val": held["y"].to_numpy(),
        "sample_weight_val": held["w"].to_numpy(),
    }
    X, y, weight = rest.drop_columns(["y", "w"]), rest["y"].to_numpy(), rest["w"].to_numpy()
    here = model_of("two", **STOPS).fit(X, y, weight, **validation)
    if lies_in == "files":
        (tmp_path / "held").mkdir()
        files = write_files(tmp_path / "held", held, (0, 50, 300))
        validation = {"X_val": files, "y_val": "y", "sample_weight_val": "w"}
    files = write_files(tmp_path, rest, (0, 700, 1200))
    expect_same(here, model_of("two", **STOPS).fit(files, **names, **validation), tmp_path)


@pytest.mark.parametrize("kinds", [(), ("towns",)])
def test_warm_starts_have_standard_errors(kinds, tmp_path, left_nothing):
    rows, names = make_rows("numbers", kinds)
    files = write_files(tmp_path, rows.take(np.arange(N)[::-1]))
    here, there = (model_of("numbers", warm_start=True) for _ in range(2))
    for n_rounds in (3, 6):
        fit_in_memory(here.set_params(max_iter=n_rounds), rows, names)
        there.set_params(max_iter=n_rounds).fit(files, **names)
    expect_same(here, there, tmp_path)


def test_two_groups_have_no_thirds(tmp_path, left_nothing):
    rows = make_table(N, "two").append_column("g", pa.array(np.arange(N) % 2))
    files = write_files(tmp_path, rows)
    with pytest.raises(
        ValueError, match=r"standard_errors=True needs at least three rows, or three"
    ):
        model_of("two").fit(files, "y", "w", groups="g")


def test_some_training_rows_of_a_block_are_selected():
    random, n = np.random.RandomState(0), 9
    block = RowBlock(
        3,
        random.randint(0, 255, (2, n)).astype(np.uint8),
        random.normal(size=(2, n)),
        random.rand(n),
        np.arange(n, dtype=np.uint64),
        fold=(np.arange(n) % 3).astype(np.uint8),
        X_val=np.ones((4, 2)),
        y_val=np.ones((2, 4)),
        offset=random.normal(size=(3, n)),
        group=np.arange(n),
    )
    rows = block.select_training_rows(block.fold == 1)
    assert (rows.number, rows.n, rows.n_val) == (3, 3, 0)
    for name in ("y", "weight", "keys", "offset", "group"):
        assert np.array_equal(getattr(rows, name), getattr(block, name)[..., 1::3]), name
    assert rows.codes.shape == (2, 0)  # a copy of the codes in each pass would take time
    assert rows.categories.shape == (0, 0)
