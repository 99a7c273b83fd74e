"""Model files taken apart, changed and written again."""

import io
import json
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import certree
from certree import Voting


def same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def through_file(model, path):
    certree.save(model, path)
    return certree.load(path)


def arrays_of(path):
    with np.load(path) as archive:
        return dict(archive)


def header_of(path):
    return json.loads(arrays_of(path)["header"].tobytes())


def as_header(content):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return np.frombuffer(text, dtype=np.uint8)


def npy(values):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values))
    return file.getvalue()


def raw_npy(header):
    """A .npy file of any header, without data."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def write_archive_of(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def rewrite(path, changed=None, without=(), **header):
    """Write a model file again with other arrays, or other entries of the header."""
    arrays = {**arrays_of(path), **(changed or {})}
    if header:
        arrays["header"] = as_header({**header_of(path), **header})
    members = {
        name: values if isinstance(values, bytes) else npy(values)
        for name, values in arrays.items()
        if name not in without
    }
    write_archive_of(path, members)


def form_of(path, name):
    """A parameter as it stands in the header of a file."""
    return header_of(path)["parameters"][name]


def renamed(form, old, new):
    """The same JSON with another string in one place."""
    text, quoted = json.dumps(form), json.dumps(old)
    assert text.count(quoted) == 1
    return json.loads(text.replace(quoted, json.dumps(new)))


def damaged(form):
    """The JSON of an object without each of its entries, and with something else in each of them."""
    for key in form:
        yield {name: value for name, value in form.items() if name != key}
        for other in (None, 5, ["x"], [], ""):
            yield {**form, key: other}


def plain(value):
    """A parameter as what can be compared: objects by their class and their own parameters."""
    if isinstance(value, Voting):
        slopes = None if value.slopes is None else (value.slopes.dtype, value.slopes.tolist())
        return Voting, value.kind, value.smoothing, slopes
    if isinstance(value, BaseEstimator):
        own = value.get_params(deep=False)
        return type(value), {name: plain(inner) for name, inner in own.items()}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    return list(value) if isinstance(value, tuple) else value


def refuses(path, match=None):
    """Check that loading raises ValueError, as such and not as a warning, and names the file."""
    with pytest.raises(ValueError, match=match) as error:
        certree.load(path)
    assert not isinstance(error.value, Warning)
    assert path.name in str(error.value)


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


SHAPES_AND_TYPES = {
    "empty": lambda values: values[:0],
    "short": lambda values: values[1:],
    "0-d": lambda values: np.zeros((), values.dtype),
    "2-d or 3-d": lambda values: values[None],
    "strings": lambda values: np.full(values.shape, "x"),
    "dates": lambda values: np.zeros(values.shape, "datetime64[s]"),
    "records": lambda values: np.zeros(values.shape, [("a", "f8"), ("b", "i4")]),
    "no array": lambda _: b"no array",
    "nothing": lambda _: b"",
}


def misshapen(names, but=()):
    """Every array with every wrong shape or type, apart from those that say the same."""
    same = {("header", "2-d or 3-d"), *but}
    return [
        (name, change)
        for name in names
        for change in SHAPES_AND_TYPES
        if (name, change) not in same
    ]


class Touch:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


# -- files that a fuzzer breaks, by the draws of a generator -----------------------------------------

HOSTILE = [None, True, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, float("inf")]
HOSTILE += [float("nan"), "", "x", "\0", "O", "<M8[D]", [], [0], [None], {}, {"class": "Cart"}]


def truncated(content, rng):
    return content[: rng.integers(len(content))]


def flipped(content, rng):
    broken = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 9)):
        broken[place] ^= 1 << int(rng.integers(8))
    return bytes(broken)


def spliced(content, rng):
    """A piece of the file in place of another one, or between."""
    first, second, third = np.sort(rng.integers(len(content), size=3))
    piece = content[first:second]
    return [
        content[:first] + content[second:],
        content[:third] + piece + content[third:],
        content[:third] + piece + content[third + len(piece) :],
    ][rng.integers(3)]


def rezipped(content, rng):
    """One part changed, added, repeated or left out, with checksums that are right again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name.removesuffix(".npy"), archive.read(name)) for name in archive.namelist()]
    place = int(rng.integers(len(members)))
    name, values = members[place][0], np.load(io.BytesIO(members[place][1]))
    kind = rng.integers(10)
    if kind < 4:
        place = [known for known, _ in members].index("header")
        header = rewritten(json.loads(np.load(io.BytesIO(members[place][1])).tobytes()), rng)
        members[place] = "header", npy(as_header(header))
    elif kind < 7:
        members[place] = name, npy(with_hostile_number(values, rng))
    elif kind == 7:
        members[place] = name, npy(SHAPES_AND_TYPES[str(rng.choice(HARMLESS_SHAPES))](values))
    elif kind == 8:
        members[place] = name, flipped(members[place][1], rng)
    else:
        members[place:] = [*members[place + 1 :], *members[:1]][: rng.integers(len(members))]
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # names that come twice
        for known, part in members:
            archive.writestr(f"{known}.npy", part)
    return file.getvalue()


HARMLESS_SHAPES = ["empty", "short", "0-d", "2-d or 3-d", "strings", "records"]


def with_hostile_number(values, rng):
    if not values.size or values.dtype.kind not in "biuf":
        return values[::-1]
    values = values.copy()
    limits = [np.nan, np.inf, -np.inf, 1e308] if values.dtype.kind == "f" else [127, 2]
    number = [*limits, -1, 0, 1][rng.integers(len(limits) + 3)]
    with np.errstate(all="ignore"):
        values.flat[rng.integers(values.size)] = np.asarray(number).astype(values.dtype)
    return values


def rewritten(form, rng):
    """JSON with something hostile in one place."""
    if not isinstance(form, (dict, list)) or not form or rng.random() < 0.1:
        return HOSTILE[rng.integers(len(HOSTILE))]
    form = form.copy()
    keys = list(form) if isinstance(form, dict) else range(len(form))
    key = keys[rng.integers(len(keys))]
    if rng.random() < 0.1:
        del form[key]
    else:
        form[key] = rewritten(form[key], rng)
    return form


MUTATORS = [truncated, flipped, spliced, rezipped, rezipped, rezipped]


def mutant(content, seed):
    """A file that is broken in one way; the seed says in which."""
    rng = np.random.default_rng(seed)
    return MUTATORS[rng.integers(len(MUTATORS))](content, rng)


def use(model, rows):
    """Do with a model what may be done with one."""
    model.predict(rows)
    model.explain(rows[:1])
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(rows).shape == (len(rows), len(model.classes_))
    if hasattr(model, "export_text"):
        model.export_text()
        model.apply(rows)
        assert model.feature_importances_.shape == (model.n_features_in_,)
    if hasattr(model, "predict_spread"):
        model.predict_spread(rows)
    if hasattr(model, "report"):
        model.report()


def survives(path, rows):
    """Whether a broken file is refused as it should be; one that is not gives a usable model."""
    try:
        model = certree.load(path)
    except ValueError as error:
        reason = error
    else:
        # Of another number of features the rows have other columns.
        if model.n_features_in_ < 100:
            with np.errstate(all="ignore"):
                use(model, np.resize(rows, (len(rows), model.n_features_in_)))
        return False
    assert not isinstance(reason, Warning)
    assert path.name in str(reason)
    return True
