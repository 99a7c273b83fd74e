"""Cases that damage a model file: truncate, flip bits, splice, or write it again with changed
members.
"""

import io
import json
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

import certree
from certree import Cart, Grid
from fuzz.hostile import NUMBERS, OTHERS, spoilt
from model_files import encode_header, encode_npy

# A flipped header may say that there are millions: nobody makes rows for those.
_MOST_FEATURES = 100


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Return the directory for files of this process, which is removed at exit."""
    return tempfile.TemporaryDirectory(prefix="certree-fuzz-")


@cache
def originals() -> tuple[bytes, ...]:
    """Return undamaged model files of several kinds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    named = pd.DataFrame({"letter": rng.choice(["a", "b", "c"], 60), "number": X[:, 1]})
    y, words = (X[:, 0] > 0).astype(int), np.array(["no", "yes"])[(X[:, 1] > 0).astype(int)]
    dates = y.astype("datetime64[s]")
    box = (-10 * np.ones(3), 10 * np.ones(3))
    models = [
        certree.PACBayesTreeClassifier(cv=2).fit(X, y),
        certree.PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1).fit(X, dates),
        certree.PACBayesTreeClassifier(Cart(max_leaf_nodes=5), cv=2).fit(named, words),
        certree.PACBayesTreeRegressor(cv=2, monotonic_cst=[1, 0, 0]).fit(X, X[:, 0]),
        certree.PrunedTreeClassifier(rule="depth", cv=2).fit(X, words),
        certree.PrunedTreeClassifier(categorical_features=[1, 2], max_depth=3).fit(X.round(), y),
        certree.HelmboldSchapireTreeClassifier(cv=2).fit(X, y),
        certree.CertifiedTreeClassifier().fit(X, y),
        certree.CertifiedTreeRegressor(widths="leaf", coverage=0.5).fit(X, y),
        certree.CertifiedTreeClassifier(Grid(box)).fit(X, y, classes=[0, 1]),
        certree.PrunedTreeClassifier(Grid(box), max_depth=4, alpha=1.0).fit(X, words),
        certree.PACBayesTreeRegressor(
            Grid(box), max_depth=3, lambda_error=1.0, lambda_penalty=0.1
        ).fit(np.where(X > 1, np.nan, X), X[:, 0], y + 1.0),
        certree.NaiveBayesClassifier().fit(X, words),
        certree.NaiveBayesClassifier(["normal", "histogram", "categorical"]).fit(X.round(), y),
        certree.TreeForestClassifier(3, max_depth=3).fit(named, words),
        certree.TreeForestRegressor(2, max_depth=3).fit(X, X[:, 0]),
        certree.CertifiedForestClassifier(3, max_depth=3).fit(X, words),
        certree.BoostedTreesClassifier(max_iter=2, max_depth=3).fit(named, words),
        certree.BoostedTreesClassifier(max_iter=2, max_depth=3).fit(
            X, np.column_stack([words, words[::-1]])
        ),
        certree.CertifiedBoostedTreesClassifier(max_iter=2, max_depth=3).fit(named, words),
        certree.CertifiedBoostedTreesRegressor(max_iter=2, coverage=0.5).fit(X, X[:, 0]),
        certree.BoostedTreesRegressor("tweedie", max_iter=2).fit(X, X[:, 0] ** 2, offset=X[:, 0]),
        certree.BoostedTreesRegressor("poisson", max_iter=2, max_depth=3).fit(X, X[:, 0] ** 2),
        certree.AdaBoostTreeClassifier(n_estimators=3).fit(named, words),
    ]
    path = Path(folder().name) / "whole"
    files = []
    for model in models:
        certree.save(model, path)
        files.append(path.read_bytes())
    return tuple(files)


def load_broken(random: Random) -> None:
    """Load a damaged file: it must be refused, or give a model on which every method works."""
    content = random.choice(originals())
    way = random.choice([_cut, _flip, _splice, _packed_anew, _packed_anew, _other_header])
    path = Path(folder().name) / "broken"
    path.write_bytes(way(random, content))
    try:
        model = certree.load(path)
    except ValueError as error:
        if path.name not in str(error):
            raise AssertionError("the error does not name the file") from error
        raise
    if model.n_features_in_ > _MOST_FEATURES:
        return
    rows = _rows_for(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as that rows come without names
            ask_everything(model, rows)
    except (ValueError, TypeError) as error:
        raise AssertionError(f"what was loaded cannot be used: {error}") from error


def _rows_for(model: Any) -> Any:
    """Return rows of numbers for a model, and rows of names if it knows category names."""
    rows = np.random.default_rng(1).normal(size=(5, model.n_features_in_)).round()
    if model.categories_ is None:
        return rows
    columns = {
        j: rows[:, j] if not names or isinstance(names[0], float) else [names[0]] * len(rows)
        for j, names in enumerate(model.categories_.names)
    }
    return pd.DataFrame(columns).set_axis(getattr(model, "feature_names_in_", [*columns]), axis=1)


def ask_everything(model: Any, rows: Any) -> None:
    """Call the methods of a model, and save it."""
    model.predict(rows)
    are_several = getattr(model, "n_outputs_", 1) > 1
    if hasattr(model, "to_dict") and not (are_several and is_classifier(model)):
        assert json.dumps(model.to_dict())
        if _has_names_for_sql(model):
            assert model.to_sql("rows")
        assert model.to_onnx(dtype="auto")  # leaves may be beyond float32
    if hasattr(model, "explain"):
        assert str(model.explain(rows))
    if is_classifier(model):
        told, classes = model.predict_proba(rows), model.classes_
        pairs = zip(told, classes, strict=True) if are_several else [(told, classes)]
        for shares, known in pairs:
            assert shares.shape == (len(rows), len(known))
    if hasattr(model, "apply"):
        model.apply(rows)
    if hasattr(model, "export_text"):
        model.export_text()
        assert model.feature_importances_.shape == (model.n_features_in_,)
    if hasattr(model, "predict_std"):
        model.predict_std(rows)
    if hasattr(model, "report"):
        model.report()


def _has_names_for_sql(model: Any) -> bool:
    """Return whether no feature's name is empty, holds a NUL, or differs from another's by case
    only.
    """
    names = [str(name).casefold() for name in getattr(model, "feature_names_in_", ())]
    return all(names) and "\0" not in "".join(names) and len(set(names)) == len(names)


def _cut(random: Random, content: bytes) -> bytes:
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    return random.choice([content[:end], content[start:], content[:start] + content[end:]])


def _flip(random: Random, content: bytes) -> bytes:
    flipped = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 10])):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _splice(random: Random, content: bytes) -> bytes:
    """Replace a piece of this file, or insert one, by a piece of this file or of another."""
    other = random.choice([content, random.choice(originals())])
    start, end = sorted(random.randrange(len(other)) for _ in range(2))
    at = random.randrange(len(content))
    to = random.choice([at, at + end - start, len(content)])
    return content[:at] + other[start:end] + content[to:]


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(random: Random, members: list[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    packing = random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as archive:
        warnings.simplefilter("ignore")  # names that come twice
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def _packed_anew(random: Random, content: bytes) -> bytes:
    """Change, remove, swap, add or repeat an array, or take that of another file."""
    members = _members(content)
    name = random.choice([*members])
    way = random.randrange(7)
    if way < 2:
        array = spoilt(random, np.load(io.BytesIO(members[name])))
        members[name] = encode_npy(np.asarray(array)) if not isinstance(array, dict) else b""
    elif way == 2:
        members[name] = _flip(random, members[name])
    elif way == 3:
        del members[name]
    elif way == 4:
        other = random.choice([*members])
        members[name], members[other] = members[other], members[name]
    elif way == 5:
        members[random.choice(["extra.npy", "../up.npy", "header", "x" * 300])] = b"\0" * 99
    else:
        others = _members(random.choice(originals()))
        members[name] = others.get(name, random.choice([*others.values()]))
    pairs = [*members.items()]
    if random.random() < 0.1:
        pairs.append(random.choice(pairs))
    return _zipped(random, pairs)


def _other_header(random: Random, content: bytes) -> bytes:
    """Change one entry of the header, at any depth."""
    members = _members(content)
    header = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
    place: Any = header
    while True:
        key = random.choice([*(place if isinstance(place, dict) else range(len(place)))])
        if not (isinstance(place[key], dict | list) and place[key]) or random.random() < 0.3:
            break
        place = place[key]
    if random.random() < 0.2:
        del place[key]
    else:
        place[key] = _for_header(random, place)
    members["header.npy"] = encode_npy(encode_header(header))
    return _zipped(random, [*members.items()])


def _for_header(random: Random, place: Any) -> Any:
    """Return a JSON value: a hostile one, or that of a neighbouring entry."""
    if random.random() < 0.3:
        return random.choice([*(place.values() if isinstance(place, dict) else place)])
    value = random.choice(NUMBERS + OTHERS)
    try:
        json.dumps(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
    return value
