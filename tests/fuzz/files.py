"""Cases that break a model file: cut, flip, splice, or pack changed arrays anew."""

import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import certree
from certree import Cart, Grid
from fuzz.hostile import NUMBERS, OTHERS, spoilt


@cache
def _folder() -> Path:
    """Where the files of this process lie, until it ends."""
    _folder.kept = tempfile.TemporaryDirectory(prefix="certree-fuzz-")
    return Path(_folder.kept.name)


@cache
def originals() -> tuple[bytes, ...]:
    """Whole model files of several kinds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y, words = (X[:, 0] > 0).astype(int), np.array(["no", "yes"])[(X[:, 1] > 0).astype(int)]
    mixed = np.column_stack([rng.choice(["a", "b", "c"], 60), X[:, 1].astype(str)])
    box = (-10 * np.ones(3), 10 * np.ones(3))
    models = [
        certree.PACBayesTreeClassifier(cv=2).fit(X, y),
        certree.PACBayesTreeClassifier(Cart(max_leaf_nodes=5), cv=2).fit(mixed, words),
        certree.PACBayesTreeRegressor(cv=2).fit(X, X[:, 0]),
        certree.PrunedTreeClassifier(rule="depth", cv=2).fit(X, words),
        certree.HelmboldSchapireTreeClassifier(cv=2).fit(X, y),
        certree.CertifiedTreeClassifier().fit(X, y),
        certree.CertifiedTreeClassifier(Grid(box)).fit(X, y),
        certree.NaiveBayesClassifier().fit(X, words),
        certree.NaiveBayesClassifier(densities="histogram").fit(X, y),
    ]
    path = _folder() / "whole"
    files = []
    for model in models:
        certree.save(model, path)
        files.append(path.read_bytes())
    return tuple(files)


def load_broken(random: Random) -> None:
    """Load a broken file: refused, or a model that answers whatever it is asked."""
    content = random.choice(originals())
    way = random.choice([_cut, _flip, _splice, _packed_anew, _packed_anew, _other_header])
    path = _folder() / "broken"
    path.write_bytes(way(random, content))
    try:
        model = certree.load(path)
    except ValueError as error:
        if path.name not in str(error):
            raise AssertionError("the error does not name the file") from error
        raise
    _use(model)


def _use(model: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(5, model.n_features_in_))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    elif model.categories_ is not None:
        rows = rows.astype(object)
    try:
        model.predict(rows)
        if is_classifier(model):
            model.predict_proba(rows)
        model.explain(rows[:1])
        if hasattr(model, "export_text"):
            model.export_text()
        if hasattr(model, "report"):
            model.report()
    except (ValueError, TypeError) as error:
        raise AssertionError(f"what was loaded cannot be used: {error}") from error


def _cut(random: Random, content: bytes) -> bytes:
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    return random.choice([content[:end], content[start:], content[:start] + content[end:]])


def _flip(random: Random, content: bytes) -> bytes:
    flipped = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 10])):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _splice(random: Random, content: bytes) -> bytes:
    other = random.choice(originals())
    at, to = random.randrange(len(content)), random.randrange(len(other))
    return random.choice([content[:at] + other[to:], content + other, other[:to] + content])


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(random: Random, members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as z:
        for name, content in members.items():
            z.writestr(name, content)
    return file.getvalue()


def _packed_anew(random: Random, content: bytes) -> bytes:
    """Change an array, leave one out, swap two, add one, or take one of another file."""
    members = _members(content)
    name = random.choice([*members])
    way = random.randrange(6)
    if way < 2:
        array = spoilt(random, np.load(io.BytesIO(members[name])))
        file = io.BytesIO()
        np.save(file, np.asarray(array), allow_pickle=True)
        members[name] = file.getvalue()
    elif way == 2:
        del members[name]
    elif way == 3:
        other = random.choice([*members])
        members[name], members[other] = members[other], members[name]
    elif way == 4:
        members[random.choice(["extra.npy", "../up.npy", "", "header", "x" * 300])] = b"\0" * 99
    else:
        others = _members(random.choice(originals()))
        members[name] = others.get(name, random.choice([*others.values()]))
    return _zipped(random, members)


def _other_header(random: Random, content: bytes) -> bytes:
    """Change one entry of the header, at any depth."""
    members = _members(content)
    header = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
    place: Any = header
    while True:
        key = random.choice([*(place if isinstance(place, dict) else range(len(place)))])
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.7:
            place = place[key]
            continue
        break
    if random.random() < 0.2:
        del place[key]
    else:
        place[key] = _jsonable(random, place)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.save(file, text)
    return _zipped(random, {**members, "header.npy": file.getvalue()})


def _jsonable(random: Random, place: Any) -> Any:
    """What JSON can hold: a hostile value, or that of a neighbour."""
    if random.random() < 0.3:
        return random.choice([*(place.values() if isinstance(place, dict) else place)])
    value = random.choice(NUMBERS + OTHERS)
    try:
        json.dumps(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
    return value
