"""Model files taken apart, changed and written again."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import certree


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


def write_archive(path, members):
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
    write_archive(path, members)


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
