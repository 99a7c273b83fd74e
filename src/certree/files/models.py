"""Model files: arrays and a JSON header, never code.

A model file is a zip archive of NumPy arrays. The array "header" holds JSON: format, version, class,
parameters and what else is no array. Nothing in a file is ever executed, and every part is checked
before a model is made of it.
"""

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, BinaryIO

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

from certree.estimators.certified import CertifiedTreeClassifier
from certree.estimators.decorated import DecoratedTree
from certree.estimators.helmbold_schapire import HelmboldSchapireTreeClassifier
from certree.estimators.pac_bayes import PACBayesLaws, PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor
from certree.files.naive_bayes_form import parts_of_naive_bayes, restore_naive_bayes
from certree.files.tree_form import parts_of_tree, restore_tree
from certree.files.whole import write_whole
from certree.fitted import state_of
from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.grid import Grid
from certree.grow.kd import KD
from certree.naive_bayes.classifier import NaiveBayesClassifier
from certree.prunings.shorthand import RULES
from certree.rows.categories import Categories
from certree.votes import Voting

FORMAT, VERSION = "certree model", 3
# Kinds of dtypes that arrays among the parameters may have.
_NUMBERS = "biuf"


@dataclass(frozen=True, slots=True)
class _Form:
    """A class of models, and how one is taken apart and put together again."""

    model: type[Any]
    parts: Callable[[Any], tuple[dict[str, Any], dict[str, Any]]]
    restore: Callable[[Any, dict[str, Any], dict[str, Any]], None]


_TREES = (
    CertifiedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)


_FORMS: dict[str, _Form] = {
    **{model.__name__: _Form(model, parts_of_tree, restore_tree) for model in _TREES},
    NaiveBayesClassifier.__name__: _Form(
        NaiveBayesClassifier, parts_of_naive_bayes, restore_naive_bayes
    ),
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
        PACBayesLaws,
        Voting,
    )
}


def save(model: BaseEstimator, path: str | os.PathLike[str], *, row_hashes: bool = True) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : fitted estimator of certree
        The model; not a decorated tree.
    path : path
        The file.
    row_hashes : bool
        Whether a classifier's file holds hashes of the rows of its fit. By them `certify` refuses
        these rows; who has a row and the file can tell whether it was one of them.

    Raises
    ------
    TypeError
        If the model is none of certree's, if it is a decorated tree, or if a parameter is more than
        numbers, strings, dictionaries of them and objects of `OBJECTS`: a splitter or a random
        generator.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    form, model = _form_of(model), state_of(model)
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    header, arrays = form.parts(model)
    header |= {
        "format": FORMAT,
        "version": VERSION,
        "model": type(model).__name__,
        "parameters": {
            name: _plain(name, value) for name, value in model.get_params(False).items()
        },
        "n_features": int(model.n_features_in_),
        "categories": None if model.categories_ is None else model.categories_.names,
        "feature_names": None if names is None else [str(name) for name in names],
    }
    if is_classifier(model):
        arrays["classes"] = _plain_classes(np.asarray(model.classes_))
        header["classes"] = arrays["classes"].dtype.str
        header["object_classes"] = bool(np.asarray(model.classes_).dtype == object)
        header["row_hashes"] = None
        if row_hashes and model.row_hashes_ is not None:
            arrays["row_hashes"] = model.row_hashes_
            header["row_hashes"] = len(model.row_hashes_)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)

    def write(file: BinaryIO) -> None:
        np.savez_compressed(file, header=text, **arrays)

    write_whole(path, write)


def _form_of(model: Any) -> _Form:
    if isinstance(model, DecoratedTree):
        raise TypeError(
            f"{type(model).__name__} holds estimators of scikit-learn, and reading them back means "
            "executing code, which no model file of certree asks for: write it with joblib or skops"
        )
    form = _FORMS.get(type(model).__name__)
    if form is None or form.model is not type(model):
        raise TypeError(f"expected a fitted model of certree, got {model!r}")
    return form


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
    arrays = _arrays(path)
    try:
        return _model(arrays)
    except Exception as error:  # whatever goes wrong, the file is the reason
        raise ValueError(f"{os.fspath(path)} is no valid model file: {error}") from error


def _plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype == object:
        if not all(isinstance(label, str) for label in classes):
            raise TypeError("classes must be numbers, booleans or strings to be saved")
        return classes.astype(str)
    return classes


def _arrays(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("not a zip archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # parsers of foreign bytes raise anything
        raise ValueError(f"{os.fspath(path)} is no model file, or damaged: {error}") from error


def _model(arrays: dict[str, NDArray[Any]]) -> Any:
    header = json.loads(arrays["header"].tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if header["version"] in (1, 2):
        raise ValueError("it was written by an earlier, unreleased certree; fit the model again")
    if header["version"] != VERSION:
        raise ValueError(f"its version is {header['version']!r}, this certree reads {VERSION}")
    if header["model"] not in _FORMS:
        raise ValueError(f"unknown model {header['model']!r}")
    form = _FORMS[header["model"]]
    parameters = {name: _restored(value) for name, value in header["parameters"].items()}
    model = form.model(**parameters)
    model._validate_params()
    model.n_features_in_ = _whole("n_features", header["n_features"])
    _set_feature_names(model, header["feature_names"])
    model.categories_ = _categories(header["categories"], model.n_features_in_)
    if is_classifier(model):
        if arrays["classes"].dtype.str != header["classes"]:
            raise ValueError(f"expected classes of type {header['classes']}")
        model.classes_ = _checked_classes(arrays["classes"], header["object_classes"])
        model.row_hashes_ = None
        if header["row_hashes"] is not None:
            model.row_hashes_ = _checked_hashes(arrays["row_hashes"], header["row_hashes"])
    form.restore(model, header, arrays)
    return model


def _checked_classes(classes: NDArray[Any], as_objects: bool) -> NDArray[Any]:
    if classes.ndim != 1 or not len(classes):
        raise ValueError(f"classes must be a list of some, got shape {classes.shape}")
    if classes.dtype.kind not in "biufU" or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes must be sorted and distinct numbers, booleans or strings")
    return classes.astype(object) if as_objects else classes


def _checked_hashes(hashes: NDArray[Any], n_rows: Any) -> NDArray[np.uint64]:
    if hashes.dtype != np.uint64 or hashes.shape != (_whole("row_hashes", n_rows),):
        raise ValueError(
            f"row_hashes must be {n_rows} of type uint64, got {hashes.dtype} of shape {hashes.shape}"
        )
    if not (hashes[1:] > hashes[:-1]).all():
        raise ValueError("row_hashes must be ascending and distinct")
    return hashes


def _categories(names: Any, n_features: int) -> Categories | None:
    if names is None:
        return None
    if len(names) != n_features:
        raise ValueError(f"expected categories of {n_features} features, got {len(names)}")
    for known in names:
        kinds = {type(name) for name in known or ()}
        if known is not None and (kinds - {str} and kinds - {float}):
            raise ValueError(f"categories must be all strings or all numbers, got {known!r}")
        if known is not None and sorted(set(known)) != known:
            raise ValueError(f"categories must be sorted and distinct, got {known!r}")
    return Categories(tuple(None if known is None else tuple(known) for known in names))


def _set_feature_names(model: Any, names: list[str] | None) -> None:
    if names is None:
        return
    if (
        not isinstance(names, list)
        or len(names) != model.n_features_in_
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"expected {model.n_features_in_} feature names, got {names!r}")
    model.feature_names_in_ = np.array(names, dtype=object)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a positive whole number, got {value!r}")
    return value


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
        f"parameter {name!r} cannot be saved: expected a number, a string, a partition, a rule, a "
        f"vote or laws of certree, or a decision tree of scikit-learn, got {value!r}"
    )


def _parameters(value: Any) -> dict[str, Any]:
    """What the constructor of an object was given."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
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
