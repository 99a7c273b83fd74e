"""Model files: NumPy arrays and a JSON header, never code.

A model file is a zip archive of NumPy arrays. The array "header" holds JSON: format, version, class,
parameters, and fitted values that are not arrays. Nothing in a file is executed, and every value is
checked before a model is created from it.
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
from certree.files.archive import HEADER, open_archive, write_archive
from certree.files.output_paths import expect_path
from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.grid import Grid
from certree.grow.kd import KD
from certree.interface.arrays import ArrayRecord
from certree.interface.atomic_write import write_atomically
from certree.interface.fitted_state import get_snapshot, keep_parameters
from certree.interface.stored_state import StoredState
from certree.prunings.rule_names import RULES
from certree.tree import Trees
from certree.votes import Voting

FORMAT, VERSION = "certree model", 4
# Kinds of dtypes (NumPy's letters) that array parameters may have.
_NUMERIC_KINDS = "biuf"
_Entries = dict[str, Any]
_Arrays = Mapping[str, NDArray[Any]]

# Estimators that can be saved, by the name of their class.
_MODELS: dict[str, type[Any]] = {
    name: getattr(module, name)
    for module in (certree.estimators, certree.estimators.naive_bayes, certree.ensembles)
    for name in module.__all__
    if hasattr(getattr(module, name), "__restore__")
}

# Classes whose objects may be parameters, by name. They have `get_params` or are dataclasses. A file
# can name no other class, so loading a file runs no foreign code.
OBJECTS: dict[str, type[Any]] = {
    allowed.__name__: allowed
    for allowed in (
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
    """Write a fitted model to a file, atomically.

    The file holds the fitted state and the parameters of the fit. Parameters that were set after the
    fit are not saved, except `n_jobs` and `verbose`. Long category names of features that no tree
    splits on are replaced by digests.

    Parameters
    ----------
    model : fitted estimator of certree
        The model. A tree with models in its leaves, and AdaBoost with learners that are not certree's
        trees, cannot be saved.
    path : path
        The file.
    sample_hashes : bool
        Whether to save hashes of a classifier's training rows. `certify` needs them to refuse these
        rows. Anyone who has the file and a row can test whether the row was among them. If False,
        `seen_rows` are not saved either.
    calibration_samples : bool
        Whether to save leaf, class and index of each calibration row of a `CertifiedTreeClassifier`.
        Without them the loaded model has its certificates but no `guarantees_`.
    seen_rows : bool
        Whether to save what `partial_fit`, `forget` and `merge` need of a tree with a fixed box: a hash
        of the features, the leaf, the target and the weight of each row.

    Raises
    ------
    TypeError
        If the model is not an estimator of certree, holds fitted estimators of other libraries, or has
        a parameter that a file cannot hold, such as a splitter or a random generator. Allowed are
        numbers, strings, arrays, dictionaries of these, and objects of the classes in `OBJECTS`.
    ValueError
        If `load` would refuse the file, for instance because a class ends in a NUL, which NumPy drops.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    expect_path(path)
    if _MODELS.get(type(model).__name__) is not type(model):
        raise TypeError(f"model must be a fitted estimator of certree, got {model!r}")
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
    encoded = {name: _encode_parameter(name, value) for name, value in parameters}
    entries, arrays = _collect_stored_values(model)
    text = _to_json({**entries, "parameters": encoded}).encode()
    _expect_loadable(text, arrays)
    write_atomically(path, lambda file: write_archive(file, text, arrays))


def _digest_unused_texts(model: Any) -> None:
    """Replace long category names by digests in features that no tree splits on, in place."""
    forests = [value for value in model.__stored__().values() if isinstance(value, Trees)]
    if model.categories_ is not None and forests:
        is_unused = np.ones(model.n_features_in_, dtype=np.bool_)
        for trees in forests:
            is_unused[trees.feature[~trees.is_leaf]] = False
        model.categories_ = model.categories_.digest_texts(is_unused)


def _expect_loadable(text: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """Check that `load` would accept a header and arrays; raise ValueError if not."""
    try:
        _create_model(text, arrays)
    except Exception as error:
        raise ValueError(f"model cannot be saved: {_describe_error(error)}") from error


def _to_json(value: Any) -> str:
    """Return JSON, with NumPy scalars as numbers."""
    return json.dumps(value, default=np.generic.item)


def _collect_stored_values(model: Any) -> tuple[_Entries, dict[str, NDArray[Any]]]:
    """Return the fitted values that a file holds, by name: entries of the header, and arrays.

    The header's entry "parameters" is not among them.
    """
    entries: _Entries = {"format": FORMAT, "version": VERSION, "model": type(model).__name__}
    arrays: dict[str, NDArray[Any]] = {}
    for name, stored in model.__stored__().items():
        columns = stored.to_stored() if isinstance(stored, ArrayRecord) else {"": stored}
        for field, value in columns.items():
            target: dict[str, Any] = arrays if isinstance(value, np.ndarray) else entries
            target[f"{name}.{field}" if field else name] = value
    return entries, arrays


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that `save` wrote. Its predictions equal the saved model's to the bit.

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
        If the file is not a model file, is damaged, or has another version.
    """
    expect_path(path)
    try:
        with open_archive(path) as archive:
            return _create_model(archive.header(), archive)
    except FileNotFoundError:
        raise
    except Exception as error:  # Parsers raise errors of any type on damaged bytes.
        message = f"{os.fspath(path)} is not a model file, or is damaged: {_describe_error(error)}"
        raise ValueError(message) from error


def _describe_error(error: Exception) -> str:
    """Return what is wrong with a file; errors that certree did not raise with their type."""
    if isinstance(error, ValueError | OSError) and not isinstance(error, UnicodeError):
        return str(error)
    return f"its contents do not match each other ({type(error).__name__}: {error})"


def _create_model(text: bytes, arrays: _Arrays) -> Any:
    """Create a fitted model from a header and arrays.

    Raises
    ------
    Exception
        If they are not what `save` would write of this model. Errors of any type may occur.
    """
    header = _parse_header(text)
    stored = StoredState(header, arrays)
    parameters = stored["parameters"].items()
    model = _MODELS[header["model"]](
        **{name: _decode_parameter(value) for name, value in parameters}
    )
    model.__restore__(stored)
    _expect_same_values(header, arrays, stored.replaced, *_collect_stored_values(model))
    keep_parameters(model)
    return model


def _expect_same_values(
    header: _Entries,
    arrays: _Arrays,
    renewed: _Arrays,
    model_entries: _Entries,
    model_arrays: dict[str, NDArray[Any]],
) -> None:
    """Check that a file holds exactly what `save` would write of the model created from it.

    Parameters
    ----------
    header, arrays
        Contents of the file.
    renewed : mapping of ndarray
        Arrays that replace those of a file of an earlier version.
    model_entries, model_arrays
        What `_collect_stored_values` returns for the model.
    """
    if unknown := sorted(set(arrays) - {HEADER, *model_arrays}):
        raise ValueError(f"it has unknown arrays: {', '.join(map(repr, unknown))}")
    if differing := sorted(map(repr, set(header) ^ {"parameters", *model_entries})):
        raise ValueError(f"its header lacks, or should not have, {', '.join(differing)}")
    for name, expected in model_arrays.items():
        array = renewed[name] if name in renewed else arrays[name]
        if (array.dtype, array.shape) != (expected.dtype, expected.shape):
            raise ValueError(
                f"its array {name} must have dtype {expected.dtype} and shape {expected.shape}, got "
                f"{array.dtype} and {array.shape}"
            )
        if array.tobytes() != expected.tobytes():
            raise ValueError(f"its array {name} holds values that no saved model has")
    for name, value in model_entries.items():
        if _to_json(header[name]) != _to_json(value):
            raise ValueError(
                f"its entry {name} must be {shortened(value)}, got {shortened(header[name])}"
            )


def _parse_header(text: bytes) -> _Entries:
    """Parse the JSON header and check format, version and name of the model's class."""
    header = json.loads(text, parse_constant=_parse_infinity)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    version = header.get("version")
    if type(version) is int and 1 <= version < VERSION:
        raise ValueError(
            f"it has version {version} of an unreleased certree, which is no longer read: fit the "
            "model again"
        )
    if version != VERSION:
        raise ValueError(f"it has version {version!r}, but this certree reads version {VERSION}")
    if not isinstance(header.get("model"), str) or header["model"] not in _MODELS:
        raise ValueError(f"its model {header.get('model')!r} is not a class of this certree")
    return header


def _parse_infinity(constant: str) -> float:
    """Return the value of a constant that is not standard JSON: an infinity, but not NaN."""
    if constant == "NaN":
        raise ValueError("its header contains a NaN")
    return float(constant)


def _encode_parameter(name: str, value: Any) -> Any:
    """Return a parameter as JSON values; an object becomes the name of its class and its parameters."""
    if OBJECTS.get(type(value).__name__) is type(value):
        parameters = _constructor_arguments(value).items()
        return {
            "class": type(value).__name__,
            "parameters": {key: _encode_parameter(key, inner) for key, inner in parameters},
        }
    if isinstance(value, dict):
        return {
            "items": [
                [_encode_parameter(name, key), _encode_parameter(name, inner)]
                for key, inner in value.items()
            ]
        }
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMERIC_KINDS:
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_encode_parameter(name, inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"parameter {name!r} cannot be saved: it must be a number, a string, a grower, pruning rule, "
        f"vote or posteriors of certree, or a decision tree of scikit-learn, got {value!r}"
    )


def _constructor_arguments(value: Any) -> dict[str, Any]:
    """Return the arguments with which an object of `OBJECTS` was constructed."""
    if is_dataclass(value):
        names = [
            field.name for field in fields(value) if field.init and "is_code" not in field.metadata
        ]
        return {name: getattr(value, name) for name in names}
    parameters: dict[str, Any] = value.get_params(deep=False)
    return parameters


def _decode_parameter(value: Any) -> Any:
    """Return the parameter that `_encode_parameter` has encoded."""
    if isinstance(value, list):
        return [_decode_parameter(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "items" in value:
        return {_decode_parameter(key): _decode_parameter(inner) for key, inner in value["items"]}
    if "array" in value:
        return _decode_array(value["array"], value["dtype"])
    if value["class"] not in OBJECTS:
        raise ValueError(f"its parameter of class {value['class']!r} is not allowed in model files")
    parameters = {key: _decode_parameter(inner) for key, inner in value["parameters"].items()}
    return OBJECTS[value["class"]](**parameters)


def _decode_array(values: Any, dtype: Any) -> NDArray[Any]:
    """Return an array parameter from nested lists and the name of its dtype."""
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in _NUMERIC_KINDS:
        raise ValueError(f"its array parameter must have a numeric dtype, got {dtype!r}")
    return np.array(values, dtype=dtype)
