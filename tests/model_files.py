"""Helpers that read, change and write model files, to test how damaged files are refused."""

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
    """Assert that two arrays have the same dtype, shape and bytes."""
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def save_and_load(model, path):
    """Save a model to a file and return what `load` makes of it."""
    certree.save(model, path)
    return certree.load(path)


def read_arrays(path):
    """Return the arrays of a model file by name, the encoded header among them."""
    with np.load(path) as archive:
        return dict(archive)


def read_header(path):
    """Return the header of a model file, as JSON values."""
    return json.loads(read_arrays(path)["header"].tobytes())


def encode_header(content):
    """Return header content, bytes or JSON values, as the array that a model file holds."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return np.frombuffer(text, dtype=np.uint8)


def encode_npy(values):
    """Return an array as the bytes of a .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values))
    return file.getvalue()


def encode_npy_header(header):
    """Return the bytes of a .npy file with any header, without data."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def write_members(path, members):
    """Write members, {name: bytes}, as an uncompressed .npz file."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def rewrite(path, changed=None, without=(), **header):
    """Write a model file again with changed arrays, without some arrays, or with changed entries of
    the header.
    """
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
    """Return a parameter of the model as its JSON value in the header of a file."""
    return read_header(path)["parameters"][name]


def replace_string(form, old, new):
    """Return a JSON value in which one string, which must occur once, is replaced."""
    text, quoted = json.dumps(form), json.dumps(old)
    assert text.count(quoted) == 1
    return json.loads(text.replace(quoted, json.dumps(new)))


def iterate_damages(form):
    """Yield a JSON object without each of its entries, and with another value in each of them."""
    for key in form:
        yield {name: value for name, value in form.items() if name != key}
        for other in (None, 5, ["x"], [], ""):
            yield {**form, key: other}


def make_comparable(value):
    """Return a parameter as a value that can be compared: objects by their class and their
    parameters.
    """
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
    """Assert that loading a file raises ValueError, not as a warning, and that the message names
    the file.
    """
    with pytest.raises(ValueError, match=match) as error:
        certree.load(path)
    assert not isinstance(error.value, Warning)
    assert path.name in str(error.value)


def replace_value(values, place, value):
    """Return a copy of an array in which one value is replaced."""
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
    """Return (array name, key of SHAPES_AND_TYPES) of all wrong shapes and types of these arrays.

    but: pairs that do not change the meaning of the file.
    """
    same = {("header", "2-d or 3-d"), *but}
    return [
        (name, change)
        for name in names
        for change in SHAPES_AND_TYPES
        if (name, change) not in same
    ]


class Touch:
    """An object whose unpickling creates a file, which shows that a pickle was executed."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


# What files hold since weights are relative.
_OF_WEIGHTS = ("weight_unit", "squared_weight", "n_rows", "effective_sample_size")


def make_earlier(path):
    """Remove from a model file the entries that files of earlier versions lack."""
    new = [name for name in read_arrays(path) if name.rpartition(".")[2] in _OF_WEIGHTS]
    header = read_header(path)
    header = {k: held for k, held in header.items() if k.rpartition(".")[2] not in _OF_WEIGHTS}
    rewrite(path, {"header": encode_header(header)}, without=new)
