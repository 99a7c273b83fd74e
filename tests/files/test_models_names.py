"""The names by which model files hold their contents: they outlive renamed fields.

After a deliberate change of what files hold, `python tests/files/test_models_names.py` writes the list
anew.
"""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import certree
from certree import (
    Cart,
    Grid,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from certree.certificates import Monitor
from certree.files.models import _MODELS
from certree.interface.arrays import ArrayRecord
from certree.interface.stored_state import StoredState
from certree.tables.table import attach_format
from certree.tables.table_source import TableFormat
from model_files import read_arrays, read_header

RECORD = Path(__file__).with_name("stored_names.json")
# A tree with models in its leaves holds estimators of scikit-learn and is not saved.
UNSAVED = {"DecoratedTreeClassifier", "DecoratedTreeRegressor"}


def tables():
    """Rows with a category and a missing value, two classes, and numbers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=160), "b": rng.integers(0, 9, 160).astype(float)})
    X["c"] = pd.Categorical(np.array(["x", "y", "z"])[rng.integers(0, 3, 160)])
    score = X["a"] + X["b"] / 4 + (X["c"] == "x") + rng.normal(size=160) / 2
    X.loc[::11, "a"] = np.nan
    return X, (score > 1).astype(int), score


X, Y, NUMBERS = tables()
WEIGHTS = np.arange(len(X)) % 3 + 1.0
SMALL = {"random_state": 0}
# A grid in a box that is known before, at fixed parameters, takes further rows.
UPDATED = {"grower": Grid([[0.0], [8.0]]), "max_depth": 4}
UPDATED |= {"lambda_error": 1.0, "lambda_penalty": 0.1}
FITS = {
    **{
        name: lambda name=name: fit(_MODELS[name]())
        for name in sorted(_MODELS.keys() - UNSAVED)
        if "Ranker" not in name
    },
    "BoostedTreesRanker": lambda: certree.BoostedTreesRanker(max_iter=3, random_state=0).fit(
        X, np.arange(len(X)) % 3, group=[40] * 4
    ),
    "weighted PACBayesTreeClassifier": lambda: fit(PACBayesTreeClassifier(), WEIGHTS),
    "weighted PACBayesTreeRegressor": lambda: fit(PACBayesTreeRegressor(), WEIGHTS),
    "updated PACBayesTreeClassifier": lambda: PACBayesTreeClassifier(**UPDATED).partial_fit(
        X[["b"]], Y, sample_weight=WEIGHTS
    ),
    "updated PACBayesTreeRegressor": lambda: PACBayesTreeRegressor(**UPDATED).partial_fit(
        X[["b"]], NUMBERS
    ),
    "two targets PACBayesTreeClassifier": lambda: PACBayesTreeClassifier(**SMALL).fit(
        X, np.column_stack([Y, 1 - Y])
    ),
    "two targets PrunedTreeRegressor": lambda: PrunedTreeRegressor(**SMALL).fit(
        X, np.column_stack([NUMBERS, -NUMBERS])
    ),
    "two targets TreeForestClassifier": lambda: certree.TreeForestClassifier(3, **SMALL).fit(
        X, np.column_stack([Y, 1 - Y])
    ),
    "many classes PrunedTreeClassifier": lambda: PrunedTreeClassifier(Cart(), **SMALL).fit(
        X, np.arange(len(X)) // 2
    ),
    "histograms NaiveBayesClassifier": lambda: NaiveBayesClassifier("histogram").fit(
        X[["a", "b"]], Y
    ),
    "errors BoostedTreesRegressor": lambda: fit(
        certree.BoostedTreesRegressor(max_iter=3, standard_errors=True)
    ),
    "offset BoostedTreesClassifier": lambda: certree.BoostedTreesClassifier(
        max_iter=3, **SMALL
    ).fit(X, Y, offset=np.zeros(len(X))),
    "early BoostedTreesClassifier": lambda: fit(
        certree.BoostedTreesClassifier(max_iter=9, early_stopping=True)
    ),
    "columns BoostedTreesClassifier": lambda: certree.BoostedTreesClassifier(
        max_iter=3, **SMALL
    ).fit(X, np.column_stack([Y, 1 - Y])),
    "groups CertifiedTreeClassifier": lambda: certree.CertifiedTreeClassifier(**SMALL).fit(
        X, Y, groups=np.arange(len(X)) // 2
    ),
    "numbers in leaves CertifiedTreeRegressor": lambda: certree.CertifiedTreeRegressor(
        widths="leaf", **SMALL
    ).fit(X, NUMBERS),
    "Monitor": lambda: Monitor(0.2, model_hash="a").update([0, 1], batch="May", model_hash="a"),
    "files BoostedTreesClassifier": lambda: certree.BoostedTreesClassifier(max_iter=3, **SMALL).fit(
        attach_format(pa.Table.from_pandas(X), TableFormat(separator=";")), Y
    ),
}


def fit(model, weight=None):
    """Fit a model to the table, small where it can be."""
    known = model.get_params()
    few = {"n_estimators": 3, "max_iter": 3, "random_state": 0}
    if known.get("early_stopping") is True:
        del few["max_iter"]
    model.set_params(**{name: value for name, value in few.items() if name in known})
    y = NUMBERS if "Regressor" in type(model).__name__ else Y
    return model.fit(X, y, sample_weight=weight) if weight is not None else model.fit(X, y)


def names_in_file(kind, path):
    """The names of arrays, and those of the other entries, in the file of a model."""
    certree.save(FITS[kind](), path)
    header = read_header(path)
    arrays = sorted(read_arrays(path).keys() - {"header"})
    return {"arrays": arrays, "entries": sorted(header.keys() - {"parameters"})}


@pytest.mark.parametrize("kind", FITS)
def test_files_hold_what_is_listed_by_the_same_names(kind, tmp_path):
    expected = json.loads(RECORD.read_text())
    assert names_in_file(kind, tmp_path / "model") == expected[kind]


def test_all_kinds_of_models_are_listed():
    assert json.loads(RECORD.read_text()).keys() == FITS.keys()


def test_a_renamed_field_is_stored_by_its_earlier_name():
    @dataclass(frozen=True, eq=False)
    class Columns(ArrayRecord):
        leaves: int = field(metadata={"stored_as": "cells"})
        rows: int = 0

    stored = Columns(3, 5).to_stored()
    assert stored == {"cells": 3, "rows": 5}
    assert Columns.from_stored(StoredState(stored, {})).leaves == 3
    assert Columns.from_stored(StoredState({"cells": 3}, {})).rows == 0
    assert Columns.from_stored(StoredState({"rows": 7}, {}), leaves=4).rows == 7
    with pytest.raises(ValueError, match="lacks cells"):
        Columns.from_stored(StoredState({"leaves": 3}, {}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = {kind: names_in_file(kind, Path(folder) / "model") for kind in FITS}
    RECORD.write_text(json.dumps(found, indent=1) + "\n")
