"""Files of models and monitors: NumPy arrays and a JSON header, never code.

A model file is a zip archive of NumPy arrays. The array "header" holds JSON: format, version,
class, parameters, and fitted values that are not arrays. Nothing in a file is executed, and every
value is checked before a model is created from it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from reprlib import repr as shortened
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
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
from certree.certificates.adaptive_intervals import AdaptiveIntervals
from certree.certificates.monitor import Monitor
from certree.estimators import PACBayesPosteriors
from certree.files.archive import HEADER, open_archive, write_archive
from certree.files.output_paths import expect_path
from certree.files.pipelines import (
    MODEL,
    get_model,
    is_pipeline_file,
    read_pipeline,
    replace_model,
    write_pipeline,
)
from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.grid import Grid
from certree.grow.kd import KD
from certree.interface.atomic_write import write_atomically
from certree.interface.fitted_state import get_snapshot, keep_parameters
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.prunings.rule_names import RULES
from certree.tree import Trees
from certree.votes import Voting

FORMAT, VERSION = "certree model", 4
_REMEDY = "save the model again by certree.save, or restore the file from a copy"
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
# All classes whose objects can be saved.
_SAVED = {**_MODELS, "AdaptiveIntervals": AdaptiveIntervals, "Monitor": Monitor}

# Classes whose objects may be parameters, by name. They have `get_params` or are dataclasses. A
# file can name no other class, so loading a file runs no foreign code.
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


class _OtherVersionError(ValueError):
    """Error: a model file was written by another version of certree. The message says what to do."""


def save(
    model: BaseEstimator | Monitor | AdaptiveIntervals,
    path: str | os.PathLike[str],
    *,
    sample_hashes: bool = True,
    calibration_samples: bool = True,
    seen_rows: bool = True,
) -> None:
    """Write a fitted model, or its monitor or adaptive intervals, to a file, atomically.

    The file holds the fitted state and the parameters of the fit. Parameters that were set after
    the fit are not saved, except `n_jobs` and `verbose`. Long category names of features that no
    tree splits on are replaced by digests.

    Parameters
    ----------
    model : fitted estimator of certree, Pipeline that ends in one, Monitor or AdaptiveIntervals
        The model. A tree with models in its leaves, and AdaBoost with learners that are not
        certree's trees, cannot be saved. The other steps of a pipeline must be transformers of
        scikit-learn without functions of your own; their file needs ``certree[pipelines]``, and
        scikit-learn may not load it in another version. A monitor, or adaptive intervals, are saved
        with what they have seen, and must have a `model_hash`; the other parameters do not concern
        them.
    path : path
        The file.
    sample_hashes : bool
        Whether to save hashes of a classifier's training rows. `certify` needs them to refuse these
        rows. Anyone who has the file and a row can test whether the row was among them. If False,
        `seen_rows` are not saved either.
    calibration_samples : bool
        Whether to save leaf, class and index of each calibration row of a
        `CertifiedTreeClassifier`. Without them the loaded model has its certificates but no
        `guarantees_`.
    seen_rows : bool
        Whether to save what the methods `partial_fit`, `forget` and `merge` need of the training
        rows, if the model has them: a hash of the features, the leaf, the target and the weight of
        each row.

    Raises
    ------
    TypeError
        If the model is not an estimator of certree, holds fitted estimators of other libraries, or
        has a parameter that a file cannot hold, such as a splitter or a random generator. Allowed
        are numbers, strings, arrays, dictionaries of these, growers, pruning rules, votes,
        posteriors and custom losses of certree, and decision trees of scikit-learn.
    ValueError
        If `load` would refuse the file, for instance because a class ends in a NUL, which NumPy
        drops; or if a monitor or adaptive intervals have no `model_hash`.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    expect_path(path)
    if isinstance(model, Pipeline):
        options = {"calibration_samples": calibration_samples, "seen_rows": seen_rows}
        with TemporaryDirectory() as folder:
            file_of_model = Path(folder) / MODEL
            save(get_model(model), file_of_model, sample_hashes=sample_hashes, **options)
            content = file_of_model.read_bytes()
        write_atomically(path, lambda file: write_pipeline(file, model, content))
        return
    if _SAVED.get(type(model).__name__) is not type(model):
        best = getattr(model, "best_estimator_", None)  # of a search by scikit-learn
        remedy = ": pass its best_estimator_" if isinstance(best, BaseEstimator) else ""
        raise TypeError(f"model must be a fitted estimator of certree, got {model!r}{remedy}")
    if isinstance(model, Monitor | AdaptiveIntervals):
        _expect_model_hash(model)
    else:
        model = _select_stored_state(model, sample_hashes, calibration_samples, seen_rows)
    parameters = _constructor_arguments(model).items()
    encoded = {name: _encode_parameter(name, value) for name, value in parameters}
    entries, arrays = _collect_stored_values(model)
    text = _to_json({**entries, "parameters": encoded}).encode()
    _expect_loadable(text, arrays)
    write_atomically(path, lambda file: write_archive(file, text, arrays))


def _expect_model_hash(monitor: Monitor | AdaptiveIntervals) -> None:
    """Raise a ValueError if a monitor, or adaptive intervals, have no `model_hash`.

    The hash states which model they belong to, so that they can refuse data of other models.
    """
    if monitor.model_hash is not None:
        return
    if isinstance(monitor, AdaptiveIntervals):
        raise ValueError(
            "model must be adaptive intervals with a model_hash, so that they refuse those of other "
            "models, got some without: pass model_hash= to AdaptiveIntervals"
        )
    raise ValueError(
        "model must be a monitor with a model_hash, so that it refuses losses of other models, "
        "got one without: pass model_hash= to the method monitor of the certificate"
    )


def _select_stored_state(
    model: Any, sample_hashes: bool, calibration_samples: bool, seen_rows: bool
) -> Any:
    """Return a copy of a fitted estimator without the data that its file shall not hold.

    model: the estimator. sample_hashes: whether to keep hashes of the training rows.
    calibration_samples: whether to keep leaf, class and index of each calibration row. seen_rows:
    whether to keep what updates need of the training rows. Raise NotFittedError if the model is not
    fitted.
    """
    model = get_snapshot(model)
    check_is_fitted(model)
    if is_classifier(model) and not sample_hashes:
        model.sample_hashes_ = None
    if hasattr(model, "seen_rows_") and not (sample_hashes and seen_rows):
        model.seen_rows_ = None
    if hasattr(model, "calibration_") and not calibration_samples:
        model.calibration_ = None
    _digest_unused_texts(model)
    return model


def _digest_unused_texts(model: Any) -> None:
    """Replace long category names by digests (short hashes) in features that no tree splits on.

    This changes `model.categories_`. model: a fitted estimator; it does not change if it has no
    trees or no categorical features. `Categories.digest_texts` decides which names are long.
    """
    forests = [value for value in model.__stored__().values() if isinstance(value, Trees)]
    if model.categories_ is not None and forests:
        is_unused = np.ones(model.n_features_in_, dtype=np.bool_)
        for trees in forests:
            features = trees.feature[~trees.is_leaf]
            is_unused[features[features < len(is_unused)]] = False  # later ones are parts of dates
        model.categories_ = model.categories_.digest_texts(is_unused)


def _expect_loadable(text: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """Raise a ValueError if `load` would refuse a file with these contents.

    text: the JSON header. arrays: the arrays of the file, by name.
    """
    try:
        _create_model(text, arrays)
    except Exception as error:
        raise ValueError(
            f"model cannot be saved, as load would refuse its file: {_describe_error(error)}"
        ) from error


def _to_json(value: Any) -> str:
    """Return numbers, texts, lists and dictionaries of these as JSON text.

    NumPy scalars become numbers; infinities are written as Infinity, as Python's json does.
    """
    return json.dumps(value, default=np.generic.item)


def _collect_stored_values(model: Any) -> tuple[_Entries, dict[str, NDArray[Any]]]:
    """Split what `model.__stored__()` returns into entries of a file's JSON header and arrays.

    If a value is a record with several fields, such as `trees`, its fields get names like
    "trees.left".

    Returns
    -------
    entries : dict of str to object
        Values for the JSON header, with "format", "version" and "model", but without "parameters".
    arrays : dict of str to ndarray
        Arrays by name.
    """
    entries: _Entries = {"format": FORMAT, "version": VERSION, "model": type(model).__name__}
    arrays: dict[str, NDArray[Any]] = {}
    for name, stored in model.__stored__().items():
        columns = stored.to_stored() if hasattr(stored, "to_stored") else {"": stored}
        for field, value in columns.items():
            target: dict[str, Any] = arrays if isinstance(value, np.ndarray) else entries
            target[f"{name}.{field}" if field else name] = value
    return entries, arrays


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model, or its monitor or adaptive intervals, from a file that `save` wrote.

    The predictions equal those of the saved model to the bit. No code from the file is executed.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    fitted estimator of certree, Pipeline, Monitor or AdaptiveIntervals
        An object of the class that was saved, with the parameters of the fit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model file, is damaged, or has a version that this certree does not
        read.
    """
    expect_path(path)
    if is_pipeline_file(path):
        return _load_pipeline(path)
    try:
        with open_archive(path) as archive:
            return _create_model(archive.header(), archive)
    except FileNotFoundError:
        raise
    except Exception as error:  # Parsers raise errors of any type on damaged bytes.
        problem, remedy = "is not a model file, or is damaged: ", f"; {_REMEDY}"
        if isinstance(error, DamagedModelError):
            problem = "cannot be loaded: "
        elif isinstance(error, _OtherVersionError):
            problem, remedy = "cannot be loaded: ", ""
        reason = f"{problem}{_describe_error(error)}{remedy}"
        raise ValueError(f"{os.fspath(path)} {reason}") from error


def _load_pipeline(path: str | os.PathLike[str]) -> Pipeline:
    """Read a pipeline from a file for which `is_pipeline_file` is True.

    Raise ImportError if skops is not installed, ValueError if the file is damaged. path: the file.
    """
    try:
        pipeline, content = read_pipeline(path)
        with TemporaryDirectory() as folder:
            file_of_model = Path(folder) / MODEL
            file_of_model.write_bytes(content)
            return replace_model(pipeline, load(file_of_model))
    except ImportError:
        raise
    except Exception as error:  # Parsers raise errors of any type on damaged bytes.
        reason = _describe_error(error)
        raise ValueError(
            f"{os.fspath(path)} is not the file of a pipeline, or is damaged: {reason}"
        ) from error


def _describe_error(error: Exception) -> str:
    """Return the text of an error about a file's contents, without the name of the file.

    The type of the error, such as "KeyError", is added if certree did not raise it, as its text
    alone may be unclear.
    """
    if isinstance(error, ValueError | OSError) and not isinstance(error, UnicodeError):
        return str(error)
    return f"the file's contents do not match each other ({type(error).__name__}: {error})"


def _create_model(text: bytes, arrays: _Arrays) -> Any:
    """Create a fitted model from the contents of a model file.

    Parameters
    ----------
    text : bytes
        The JSON header.
    arrays : mapping of ndarray
        The arrays by name.

    Returns
    -------
    fitted estimator of certree, Monitor or AdaptiveIntervals

    Raises
    ------
    Exception
        If the contents are not what `save` would write of this model. Damaged contents may raise
        errors of any type.
    """
    header = _parse_header(text)
    stored = StoredState(header, arrays)
    parameters = stored["parameters"].items()
    model = _SAVED[header["model"]](
        **{name: _decode_parameter(value) for name, value in parameters}
    )
    model.__restore__(stored)
    _expect_same_values(header, arrays, stored.replaced, *_collect_stored_values(model))
    if isinstance(model, BaseEstimator):
        keep_parameters(model)
    return model


def _expect_same_values(
    header: _Entries,
    arrays: _Arrays,
    renewed: _Arrays,
    model_entries: _Entries,
    model_arrays: dict[str, NDArray[Any]],
) -> None:
    """Raise a ValueError unless a file has exactly the content that `save` would write for its model.

    Parameters
    ----------
    header : dict
        The parsed JSON header of the file.
    arrays : mapping of str to ndarray
        The arrays of the file, by name.
    renewed : mapping of str to ndarray
        Arrays in a form that replaces the one in which an earlier version of certree wrote them;
        they are compared in place of those of the file.
    model_entries, model_arrays
        The JSON entries, and the arrays by name, that `save` would write for the loaded model.

    Raises
    ------
    ValueError
        If an entry or array is missing, unknown, or differs.
    """
    if unknown := sorted(set(arrays) - {HEADER, *model_arrays}):
        raise DamagedModelError(
            "the model file must not have arrays that save does not write, got "
            f"{', '.join(map(repr, unknown))}"
        )
    if differing := sorted(map(repr, set(header) ^ {"parameters", *model_entries})):
        raise DamagedModelError(
            f"the model file's JSON header lacks, or must not have, the entries {', '.join(differing)}"
        )
    for name, expected in model_arrays.items():
        array = renewed[name] if name in renewed else arrays[name]
        if (array.dtype, array.shape) != (expected.dtype, expected.shape):
            raise DamagedModelError(
                f"the model file's array {name} must have dtype {expected.dtype} and shape "
                f"{expected.shape}, got "
                f"{array.dtype} and {array.shape}"
            )
        if array.tobytes() != expected.tobytes():
            raise DamagedModelError(
                f"the model file's array {name} holds values that no saved model has"
            )
    for name, value in model_entries.items():
        if _to_json(header[name]) != _to_json(value):
            raise DamagedModelError(
                f"the model file's entry {name} must be {shortened(value)}, got "
                f"{shortened(header[name])}"
            )


def _parse_header(text: bytes) -> _Entries:
    """Parse the JSON header of a model file, and return its entries as a dict.

    text: the header. Raise a ValueError if its "format" or "version" is not the one that this
    module writes, or "model" is not the name of a class that can be saved.
    """
    header = json.loads(text, parse_constant=_parse_infinity)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(
            "the file is not a model file of certree: its JSON header must have the format "
            f"{FORMAT!r}"
        )
    version = header.get("version")
    if type(version) is int and 1 <= version < VERSION:
        raise _OtherVersionError(
            f"the model file has version {version} of an unreleased certree, which is no longer "
            "read: fit the model again"
        )
    if version != VERSION:
        raise _OtherVersionError(
            f"the model file has version {version!r}, but this certree reads version {VERSION}: "
            "load it with the version of certree that saved it"
        )
    if not isinstance(header.get("model"), str) or header["model"] not in _SAVED:
        raise _OtherVersionError(
            f"the model file holds a {header.get('model')!r}, which does not exist in this "
            "certree: load it with the version of certree that saved it"
        )
    return header


def _parse_infinity(constant: str) -> float:
    """Return the float of a JSON constant "Infinity" or "-Infinity"; raise ValueError for "NaN".

    json.loads calls it for constants that are not standard JSON.
    """
    if constant == "NaN":
        raise DamagedModelError("the model file's JSON header contains a NaN")
    return float(constant)


def _encode_parameter(name: str, value: Any) -> Any:
    """Convert the value of an estimator's parameter to one that JSON can hold.

    Numbers, strings and lists stay unchanged. Arrays become a dictionary {"array", "dtype"},
    dictionaries {"items"}, and objects, such as growers, {"class", "parameters"}. `OBJECTS` has the
    classes that are allowed (growers, pruning rules, votes, posteriors and losses of certree;
    decision trees of scikit-learn). `_decode_parameter` converts all of them back.

    name: name of the parameter, for the message. value: value of the parameter. Raise a TypeError
    if the value has another type.
    """
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
        f"parameter {name!r} cannot be saved: it must be a number, a string, a grower, pruning "
        f"rule, vote or posteriors of certree, or a decision tree of scikit-learn, got {value!r}. "
        "Model files hold no other objects, as these need code of their own: for your own use, write "
        "the model with pickle, and load such a file only if you trust its source"
    )


def _constructor_arguments(value: Any) -> dict[str, Any]:
    """Return the arguments, by name, with which the constructor of an object creates an equal object.

    The arguments are the fields of a dataclass, except those that hold code, or else the result of
    `get_params`. value: an object of a class in `_SAVED` or `OBJECTS`: estimators, monitors,
    growers, pruning rules, votes, posteriors and losses of certree, and decision trees of
    scikit-learn.
    """
    if is_dataclass(value):
        names = [
            field.name for field in fields(value) if field.init and "is_code" not in field.metadata
        ]
        return {name: getattr(value, name) for name in names}
    parameters: dict[str, Any] = value.get_params(deep=False)
    return parameters


def _decode_parameter(value: Any) -> Any:
    """Convert a JSON value that `_encode_parameter` returned back to the value of the parameter.

    Lists are converted entry by entry; dictionaries become arrays, dictionaries or objects; other
    values stay unchanged. Raise a ValueError if an object's class is not in `OBJECTS`.
    """
    if isinstance(value, list):
        return [_decode_parameter(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "items" in value:
        return {_decode_parameter(key): _decode_parameter(inner) for key, inner in value["items"]}
    if "array" in value:
        return _decode_array(value["array"], value["dtype"])
    if value["class"] not in OBJECTS:
        raise DamagedModelError(
            "the model file's parameters must be of classes that certree.save writes, got an object "
            f"of class {value['class']!r}, so the file is damaged or was changed"
        )
    parameters = {key: _decode_parameter(inner) for key, inner in value["parameters"].items()}
    return OBJECTS[value["class"]](**parameters)


def _decode_array(values: Any, dtype: Any) -> NDArray[Any]:
    """Convert the JSON form of an array parameter back to the array.

    values: values of the array, as nested lists. dtype: text such as "<f8". Raise a ValueError if
    the dtype is not numeric.
    """
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in _NUMERIC_KINDS:
        raise DamagedModelError(
            f"the model file's array parameters must have a numeric dtype, got {dtype!r}"
        )
    return np.array(values, dtype=dtype)
