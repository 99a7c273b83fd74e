"""Tables for out-of-core fits, and assertions that two models are equal to the bit."""

from dataclasses import fields, is_dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from certree.files import save
from certree.out_of_core.chunks import Chunk
from model_files import encode_npy, read_arrays, read_header

# More than trees order freely in a cell, and one that is missing.
COLOURS = np.array(["red", "blue", "green", *"abcdefghijklm", None], dtype=object)
# What trees are made of.
COLUMNS = (
    *("feature", "threshold", "left", "missing_left", "unseen_left"),
    *("category_start", "categories", "root", "value"),
)


class ChunkedRows:
    """Rows in memory that are delivered in chunks, at the given row numbers."""

    empty_table = n_rows = None

    def __init__(self, X, y, weight, ends, groups=None):
        self.given, self.ends = (X, y, weight, groups), ends
        self.has_weights = weight is not None

    def chunks(self, *, targets_only=False):
        for number, (begin, end) in enumerate(pairwise(self.ends)):
            X, y, weight, groups = (
                one.slice(begin, end - begin)
                if isinstance(one, pa.Table)
                else one[begin:end]
                if one is not None
                else None
                for one in self.given
            )
            X = None if targets_only else X
            yield Chunk(X, y, weight, f"chunk {number}", groups=groups)


def make_table(n, target="two", seed=0, weights="real"):
    """Make a table of numbers and categories, a target and weights.

    It has columns of few and of many distinct numbers, missing values and equal rows.
    """
    rs = np.random.RandomState(seed)
    X = rs.normal(size=(n, 4))
    X[:, 1] = np.round(X[:, 1], 1)
    X[rs.rand(n) < 0.1, 2] = np.nan
    X[rs.rand(n) < 0.05, 3] = -0.0
    colour = COLOURS[rs.randint(0, len(COLOURS), n)]
    copied = rs.rand(n) < 0.2
    X[copied], colour[copied] = X[0], colour[0]
    score = (
        X[:, 0] * X[:, 1]
        + np.nan_to_num(X[:, 2])
        + (colour == "red")
        + np.isin(colour, [*"acegk"])
        + rs.normal(size=n) / 2
    )
    y = score
    if target == "two":
        y = (score > 0).astype(int)
    if target == "three":
        y = np.array(["one", "other", "third"], dtype=object)[np.digitize(score, [-0.5, 0.7])]
    if target != "numbers":
        y[copied] = y[0]
    weight = rs.rand(n) * 2 if weights == "real" else rs.randint(0, 3, n)
    weight[copied] = 1
    columns = {f"x{j}": X[:, j] for j in range(4)}
    return pa.table({"x0": columns["x0"], "y": y, **columns, "colour": colour, "w": weight})


def make_equal_rows(n, target, weights, seed=0):
    """Make rows of few distinct values, where equal rows differ in their weights only: X, targets,
    weights.
    """
    random = np.random.RandomState(seed)
    X = random.randint(0, 3, (n, 3)).astype(float)
    y = X[:, 0] * X[:, 1] + random.randint(0, 2, n)
    if target == "two":
        y = (y > 1).astype(int)
    if target == "three":
        y = np.array(["one", "other", "third"], dtype=object)[np.minimum(y, 2).astype(int)]
    weight = {
        "whole": random.randint(0, 5, n).astype(float),
        "real": random.choice([0.1, 0.25, 0.7, 1.3], n),
        "any": random.uniform(0.5, 3.0, n),
    }[weights]
    return pa.table({f"x{j}": X[:, j] for j in range(3)}), y, weight


def make_groups(rows, kind, n_groups=60, seed=4):
    """Return a group for each row, where all rows of one group have weight 0; and the table with
    the groups.
    """
    number = np.random.RandomState(seed).randint(0, n_groups, len(rows))
    weight = rows["w"].to_numpy().copy()
    weight[number == 7] = 0
    # Of the text "10" comes before "9".
    groups = 7 * number - 100 if kind == "ints" else number.astype(str).astype(object)
    at = rows.column_names.index("w")
    return groups, rows.set_column(at, "w", pa.array(weight)).append_column("g", pa.array(groups))


def add_towns(rows, n_levels, seed=0):
    """Return the table with a feature of n_levels categories that predict the target; some are
    missing.
    """
    random = np.random.RandomState(seed)
    codes = pd.factorize(rows["y"].to_numpy(zero_copy_only=False), sort=True)[0]
    order = np.argsort(codes + random.normal(scale=np.std(codes), size=len(rows)))
    level = np.empty(len(rows), dtype=int)
    level[order] = np.arange(len(rows)) * n_levels // len(rows)
    names = [None if random.rand() < 0.05 else f"town {one}" for one in level]
    chance = [f"street {one}" for one in random.randint(0, 50, len(rows))]
    rows = rows.append_column("street", pa.array(chance))
    return rows.append_column("town", pa.array(names))


def split_table(rows, weighed=True):
    """Return X, y and weights of a table in memory; weights are None if `weighed` is False."""
    y = rows["y"].to_numpy(zero_copy_only=False)
    weight = rows["w"].to_numpy() if weighed else None
    return rows.drop_columns(["y", "w"]), y, weight


def add_targets(rows, target, seed=3):
    """Return the table with two more targets, b and c, one of which hardly depends on the
    features.
    """
    rs, n = np.random.RandomState(seed), len(rows)
    y, x0 = rows["y"].to_numpy(zero_copy_only=False), rows["x0"].to_numpy()
    if target == "numbers":
        more = {"b": 100 * np.exp(y / 2), "c": x0**2}
    else:
        words = np.array(["no", "so", "yes"], dtype=object)
        levels = np.digitize(x0 + rs.normal(size=n), [-0.5, 0.5])
        more = {"b": words[levels], "c": rs.rand(n) < 0.3}
    for name, values in more.items():
        rows = rows.append_column(name, pa.array(values))
    return rows


def write_files(folder, rows, ends=(0, 400, 400, 1499, 1500)):
    """Write the rows between successive `ends` to one Parquet file each; return the paths."""
    files = []
    for number, (begin, end) in enumerate(pairwise(ends)):
        files.append(folder / f"{number}.parquet")
        pq.write_table(rows.slice(begin, end - begin), files[-1], row_group_size=300)
    return files


def expect_same(model, other, folder=None):
    """Assert that two models have the same bits in all fitted attributes, and the same file."""
    for name in COLUMNS:
        assert_same(getattr(model.trees_, name), getattr(other.trees_, name), name)
    skipped = {"trees_", "_fitted_with", "categories_", *model.get_params(deep=False)}
    fitted = set(vars(model)) - skipped
    assert fitted == set(vars(other)) - skipped
    for name in fitted:
        assert_same(getattr(model, name), getattr(other, name), name)
    if folder is not None:
        for name, one in (("one", model), ("other", other)):
            save(one, folder / f"{name}.certree")
        assert (folder / "one.certree").read_bytes() == (folder / "other.certree").read_bytes()


def assert_same(one, other, name):
    """Assert that two fitted values are equal to the bit: arrays, lists of them, or dataclasses of
    them.
    """
    if isinstance(one, list):  # of several targets
        assert len(one) == len(other), name
        for pair in zip(one, other, strict=True):
            assert_same(*pair, name)
        return
    if is_dataclass(one):
        assert_same_fields(one, other, name)
        return
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype, name
    assert one.shape == other.shape, name
    assert one.tobytes() == other.tobytes() if one.dtype != object else (one == other).all(), name


def assert_same_fields(one, other, name):
    """Assert that two dataclasses are of one type and have equal fields."""
    assert type(one) is type(other), name
    for field in fields(one):
        assert_same(getattr(one, field.name), getattr(other, field.name), f"{name}.{field.name}")


def expect_same_tree(model, other, folder):
    """Assert that two single trees have the same bits in all fitted attributes, and the same file.

    Only the certificates' reports of near copies may differ, as only fits to rows in memory look
    for them.
    """
    for part in ("tree_", "stats_", "weights_", "vote_"):
        assert_same_fields(getattr(model, part), getattr(other, part), part)
    assert set(vars(model)) == set(vars(other))
    files = []
    for one in (model, other):
        save(one, folder / "one.certree")
        arrays, header = read_arrays(folder / "one.certree"), read_header(folder / "one.certree")
        for each in (*header.get("certificates", ()), header.get("full_certificate", {})):
            each.pop("near_copies", None)
        files.append(({name: encode_npy(array) for name, array in arrays.items()}, header))
        del files[-1][0]["header"]
    assert files[0] == files[1]
