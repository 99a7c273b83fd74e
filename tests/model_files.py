"""Model files taken apart, changed and written again."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import certree
from certree import Voting


def expect_same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def save_and_load(model, path):
    certree.save(model, path)
    return certree.load(path)


def read_arrays(path):
    with np.load(path) as archive:
        return dict(archive)


def read_header(path):
    return json.loads(read_arrays(path)["header"].tobytes())


def encode_header(content):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return np.frombuffer(text, dtype=np.uint8)


def encode_npy(values):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values))
    return file.getvalue()


def encode_npy_header(header):
    """A .npy file of any header, without data."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def write_members(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def rewrite(path, changed=None, without=(), **header):
    """Write a model file again with other arrays, or other entries of the header."""
    arrays = {**read_arrays(path), **(changed or {})}
    if header:
        arrays["header"] = encode_header({**read_header(path), **header})
    members = {
        name: values if isinstance(values, bytes) else encode_npy(values)
        for name, values in arrays.items()
        if name not in without
    }
    write_members(path, members)


def read_parameter(path, name):
    """A parameter as it stands in the header of a file."""
    return read_header(path)["parameters"][name]


def replace_string(form, old, new):
    """The same JSON with another string in one place."""
    text, quoted = json.dumps(form), json.dumps(old)
    assert text.count(quoted) == 1
    return json.loads(text.replace(quoted, json.dumps(new)))


def iterate_damages(form):
    """The JSON of an object without each of its entries, and with something else in each of them."""
    for key in form:
        yield {name: value for name, value in form.items() if name != key}
        for other in (None, 5, ["x"], [], ""):
            yield {**form, key: other}


def make_comparable(value):
    """A parameter as what can be compared: objects by their class and their own parameters."""
    if isinstance(value, Voting):
        slopes = None if value.slopes is None else (value.slopes.dtype, value.slopes.tolist())
        return Voting, value.kind, value.smoothing, slopes
    if isinstance(value, BaseEstimator):
        own = value.get_params(deep=False)
        return type(value), {name: make_comparable(inner) for name, inner in own.items()}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    return list(value) if isinstance(value, tuple) else value


def expect_refusal(path, match=None):
    """Check that loading raises ValueError, as such and not as a warning, and names the file."""
    with pytest.raises(ValueError, match=match) as error:
        certree.load(path)
    assert not isinstance(error.value, Warning)
    assert path.name in str(error.value)


def replace_value(values, place, value):
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


def list_wrong_shapes(names, but=()):
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


# What files hold since weights are relative.
_OF_WEIGHTS = ("weight_unit", "squared_weight", "n_rows", "effective_sample_size")


def make_earlier(path):
    """Take out of a model file what those of earlier versions do not hold."""
    new = [name for name in read_arrays(path) if name.rpartition(".")[2] in _OF_WEIGHTS]
    header = read_header(path)
    header = {k: held for k, held in header.items() if k.rpartition(".")[2] not in _OF_WEIGHTS}
    rewrite(path, {"header": encode_header(header)}, without=new)
