"""Model files: arrays and a JSON header, never code.

A model file is a zip archive of NumPy arrays. The array "header" holds JSON: format, version, class,
parameters and what else is no array. Nothing in a file is ever executed, and every part is checked
before a model is made of it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from sklearn.utils.validation import check_is_fitted

import certree.ensembles
import certree.estimators
import certree.estimators.naive_bayes
from certree.estimators import PACBayesPosteriors
from certree.files.archive import HEADER, opened, write_archive
from certree.files.places import expect_path
from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.grid import Grid
from certree.grow.kd import KD
from certree.interface.arrays import ArrayRecord
from certree.interface.atomic_write import write_atomically
from certree.interface.fitted_state import get_snapshot, keep_parameters
from certree.interface.stored_state import StoredState
from certree.prunings.shorthand import RULES
from certree.tree import Trees
from certree.votes import Voting

FORMAT, VERSION = "certree model", 4
# Kinds of dtypes that arrays among the parameters may have.
_NUMBERS = "biuf"
_Entries = dict[str, Any]
_Arrays = Mapping[str, NDArray[Any]]

# The models that say what a file holds of them.
_MODELS: dict[str, type[Any]] = {
    name: getattr(room, name)
    for room in (certree.estimators, certree.estimators.naive_bayes, certree.ensembles)
    for name in room.__all__
    if hasattr(getattr(room, name), "__restore__")
}

# What a parameter may be beside numbers and strings: objects of these classes, by name. They have
# `get_params` or are dataclasses. A file can name no other, so no code comes from a file.
OBJECTS: dict[str, type[Any]] = {
    known.__name__: known
    for known in (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreeClassifier,
        ExtraTreeRegressor,
        Cart,
        KD,
        Dyadic,
        Grid,
        *RULES.values(),
        PACBayesPosteriors,
        Voting,
        certree.ensembles.CustomLoss,
    )
}


def save(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    sample_hashes: bool = True,
    calibration_samples: bool = True,
    seen_rows: bool = True,
) -> None:
    """Write a fitted model to a file, whole or not at all.

    What is written is the fit, with the parameters that it was made with: those that were set after it
    are not, but for `n_jobs` and `verbose`. Categories of features that no tree compares are kept as
    digests where their texts are longer.

    Parameters
    ----------
    model : fitted estimator of certree
        The model; not a tree with models in its leaves, nor AdaBoost of other learners than certree's
        trees.
    path : path
        The file.
    sample_hashes : bool
        Whether a classifier's file holds hashes of the rows of its fit. By them `certify` refuses
        these rows; who has a row and the file can tell whether it was one of them. Without them there
        are no `seen_rows`, either.
    calibration_samples : bool
        Whether the file of a `CertifiedTreeClassifier` holds the leaf and the class of each weighing
        row, and its place among the rows given. By them the loaded model answers what the saved one
        does; without them it has its certificates only, and no `guarantees_`.
    seen_rows : bool
        Whether the file of a tree in a given box holds what `partial_fit`, `forget` and `merge` go on
        from: of each row a hash of its features, its leaf, target and weight.

    Raises
    ------
    TypeError
        If the model is none of certree's, if it holds fitted estimators of others, or if a parameter
        is more than numbers, strings, dictionaries of them and objects of `OBJECTS`: a splitter or a
        random generator.
    ValueError
        If `load` would refuse the file, as where a class ends in a NUL, which NumPy drops.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    expect_path(path)
    if _MODELS.get(type(model).__name__) is not type(model):
        raise TypeError(f"expected a fitted model of certree, got {model!r}")
    model = get_snapshot(model)
    check_is_fitted(model)
    if is_classifier(model) and not sample_hashes:
        model.sample_hashes_ = None
    if hasattr(model, "seen_rows_") and not (sample_hashes and seen_rows):
        model.seen_rows_ = None
    if hasattr(model, "calibration_") and not calibration_samples:
        model.calibration_ = None
    _digest_unused_texts(model)
    parameters = model.get_params(False).items()
    plain = {name: _plain(name, value) for name, value in parameters}
    entries, arrays = _taken_apart(model)
    text = _as_json({**entries, "parameters": plain}).encode()
    _expect_readable(text, arrays)
    write_atomically(path, lambda file: write_archive(file, text, arrays))


def _digest_unused_texts(model: Any) -> None:
    """Replace long texts of categories by digests in features that no tree of the model compares."""
    trees = [part for part in model.__stored__().values() if isinstance(part, Trees)]
    if model.categories_ is not None and trees:
        unused = np.ones(model.n_features_in_, dtype=np.bool_)
        for part in trees:
            unused[part.feature[~part.is_leaf]] = False
        model.categories_ = model.categories_.without_texts(unused)


def _expect_readable(text: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """Never write what `load` refuses."""
    try:
        _model(text, arrays)
    except Exception as error:
        raise ValueError(f"this model cannot be saved: {_reason(error)}") from error


def _as_json(value: Any) -> str:
    """JSON in which NumPy's numbers are like others."""
    return json.dumps(value, default=np.generic.item)


def _taken_apart(model: Any) -> tuple[_Entries, dict[str, NDArray[Any]]]:
    """What a file holds of a fitted model beside its parameters: the header, and arrays."""
    entries: _Entries = {"format": FORMAT, "version": VERSION, "model": type(model).__name__}
    arrays: dict[str, NDArray[Any]] = {}
    for name, part in model.__stored__().items():
        inner = part.to_stored() if isinstance(part, ArrayRecord) else {"": part}
        for field, value in inner.items():
            kind: dict[str, Any] = arrays if isinstance(value, np.ndarray) else entries
            kind[f"{name}.{field}" if field else name] = value
    return entries, arrays


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote. It predicts what the saved one did, bit by bit.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    fitted estimator of certree

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no model file, is damaged, or is of another version.
    """
    expect_path(path)
    try:
        with opened(path) as archive:
            return _model(archive.header(), archive)
    except FileNotFoundError:
        raise
    except Exception as error:  # parsers of foreign bytes raise anything
        reason = f"{os.fspath(path)} is no model file, or damaged: {_reason(error)}"
        raise ValueError(reason) from error


def _reason(error: Exception) -> str:
    """What is wrong; words of Python's own stand behind the name of their error."""
    if isinstance(error, ValueError | OSError) and not isinstance(error, UnicodeError):
        return str(error)
    return f"its parts do not go together ({type(error).__name__}: {error})"


def _model(text: bytes, arrays: _Arrays) -> Any:
    """Make a model of a header and arrays, which must be all that would be written of it."""
    header = _header(text)
    stored = StoredState(header, arrays)
    given = stored["parameters"].items()
    model = _MODELS[header["model"]](**{name: _restored(value) for name, value in given})
    model.__restore__(stored)
    _expect_all(header, arrays, stored.replaced, *_taken_apart(model))
    keep_parameters(model)
    return model


def _expect_all(
    header: _Entries,
    arrays: _Arrays,
    renewed: _Arrays,
    entries: _Entries,
    columns: dict[str, NDArray[Any]],
) -> None:
    """Check that a file holds what would be written of the model that is made of it, to the bit.

    renewed: arrays that stand for those of a file of an earlier version.
    """
    if unknown := sorted(set(arrays) - {HEADER, *columns}):
        raise ValueError(f"it has the unknown {', '.join(map(repr, unknown))}")
    if differing := sorted(map(repr, set(header) ^ {"parameters", *entries})):
        raise ValueError(f"its header lacks, or should not have, {', '.join(differing)}")
    for name, made in columns.items():
        given = renewed[name] if name in renewed else arrays[name]
        if (given.dtype, given.shape) != (made.dtype, made.shape):
            raise ValueError(
                f"{name} must have dtype {made.dtype} and shape {made.shape}, got {given.dtype} and "
                f"{given.shape}"
            )
        if given.tobytes() != made.tobytes():
            raise ValueError(f"{name} holds what no model has")
    for name, value in entries.items():
        if _as_json(header[name]) != _as_json(value):
            raise ValueError(f"{name} must be {shortened(value)}, got {shortened(header[name])}")


def _header(text: bytes) -> _Entries:
    header = json.loads(text, parse_constant=_infinity)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    version = header.get("version")
    if type(version) is int and 1 <= version < VERSION:
        raise ValueError(
            f"it was written by an earlier, unreleased certree, as version {version}: fit the model "
            "again"
        )
    if version != VERSION:
        raise ValueError(f"its version is {version!r}, this certree reads {VERSION}")
    if not isinstance(header.get("model"), str) or header["model"] not in _MODELS:
        raise ValueError(f"unknown model {header.get('model')!r}")
    return header


def _infinity(constant: str) -> float:
    """A number that JSON has no word for; NaN has no place in a header."""
    if constant == "NaN":
        raise ValueError("its header has a NaN")
    return float(constant)


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON: an object becomes the name of its class and its parameters."""
    if OBJECTS.get(type(value).__name__) is type(value):
        parameters = _parameters(value).items()
        return {
            "class": type(value).__name__,
            "parameters": {key: _plain(key, inner) for key, inner in parameters},
        }
    if isinstance(value, dict):
        return {"items": [[_plain(name, key), _plain(name, inner)] for key, inner in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(name, inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"parameter {name!r} cannot be saved: expected a number, a string, a grower, a rule, a "
        f"vote or posteriors of certree, or a decision tree of scikit-learn, got {value!r}"
    )


def _parameters(value: Any) -> dict[str, Any]:
    """What the constructor of an object was given."""
    if is_dataclass(value):
        held = [one.name for one in fields(value) if one.init and "is_code" not in one.metadata]
        return {name: getattr(value, name) for name in held}
    parameters: dict[str, Any] = value.get_params(deep=False)
    return parameters


def _restored(value: Any) -> Any:
    """What `_plain` made JSON of."""
    if isinstance(value, list):
        return [_restored(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "items" in value:
        return {_restored(key): _restored(inner) for key, inner in value["items"]}
    if "array" in value:
        return _restored_array(value["array"], value["dtype"])
    if value["class"] not in OBJECTS:
        raise ValueError(f"unknown class {value['class']!r} of a parameter")
    parameters = {key: _restored(inner) for key, inner in value["parameters"].items()}
    return OBJECTS[value["class"]](**parameters)


def _restored_array(values: Any, dtype: Any) -> NDArray[Any]:
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in _NUMBERS:
        raise ValueError(f"expected an array of numbers, got one of type {dtype!r}")
    return np.array(values, dtype=dtype)
