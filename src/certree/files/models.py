"""Model files: arrays and a JSON header, never code.

A model file is a zip archive of NumPy arrays. The array "header" holds JSON: format, version, class,
parameters and what else is no array. Nothing in a file is ever executed, and every part is checked
before a model is made of it.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
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

from certree.ensembles import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedForestClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.estimators.certified_regressor import CertifiedTreeRegressor
from certree.estimators.decorated import DecoratedTree
from certree.estimators.helmbold_schapire import HelmboldSchapireTreeClassifier
from certree.estimators.naive_bayes.classifier import NaiveBayesClassifier
from certree.estimators.pac_bayes import PACBayesLaws, PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.pruned import PrunedTreeClassifier, PrunedTreeRegressor
from certree.files.adaboost_form import parts_of_adaboost, restore_adaboost, shapes_of_adaboost
from certree.files.archive import Shapes, expect_shapes, opened, write_archive
from certree.files.boosting_form import (
    ENTRIES_OF_BOOSTING,
    parts_of_boosting,
    restore_boosting,
    shapes_of_boosting,
)
from certree.files.certified_forest_form import (
    ENTRIES_OF_CERTIFIED_FOREST,
    parts_of_certified_forest,
    restore_certified_forest,
    shapes_of_certified_forest,
)
from certree.files.forest_form import (
    ENTRIES_OF_FOREST,
    parts_of_forest,
    restore_forest,
    shapes_of_forest,
)
from certree.files.naive_bayes_form import (
    ENTRIES,
    parts_of_naive_bayes,
    restore_naive_bayes,
    shapes_of_naive_bayes,
)
from certree.files.places import expect_path
from certree.files.tree_form import entries_of_tree, parts_of_tree, restore_tree, shapes_of_tree
from certree.grow.cart import Cart
from certree.grow.dyadic import Dyadic
from certree.grow.grid import Grid
from certree.grow.kd import KD
from certree.interface.fitted import keep_parameters, state_of
from certree.interface.whole import write_whole
from certree.prunings.shorthand import RULES
from certree.rows.categories import Categories
from certree.votes import Voting

FORMAT, VERSION = "certree model", 3
# Kinds of dtypes that arrays among the parameters may have, and those of dates and time spans, which
# files hold as whole numbers of their unit.
_NUMBERS, _TIMES = "biuf", "mM"
# More features than any table has; what is said of each of them takes memory.
_MOST_FEATURES = 2**24
_ENTRIES = {
    "format",
    "version",
    "model",
    "parameters",
    "n_features",
    "categories",
    "feature_names",
}
_ENTRIES_OF_CLASSES = {"classes", "object_classes", "row_hashes"}
_Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Form:
    """A class of models, and how one is taken apart and put together again."""

    model: type[Any]
    parts: Callable[[Any], tuple[dict[str, Any], _Arrays]]
    # Entries of the header, and arrays, that it has besides those of all models.
    entries: frozenset[str]
    shapes: Callable[[Any, dict[str, Any]], Shapes]
    restore: Callable[[Any, dict[str, Any], _Arrays], None]


_TREES = (
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)


_FORMS: dict[str, _Form] = {
    **{
        model.__name__: _Form(
            model, parts_of_tree, entries_of_tree(model), shapes_of_tree, restore_tree
        )
        for model in _TREES
    },
    **{
        model.__name__: _Form(
            model, parts_of_boosting, ENTRIES_OF_BOOSTING, shapes_of_boosting, restore_boosting
        )
        for model in (BoostedTreesClassifier, BoostedTreesRegressor)
    },
    AdaBoostTreeClassifier.__name__: _Form(
        AdaBoostTreeClassifier,
        parts_of_adaboost,
        frozenset(),
        shapes_of_adaboost,
        restore_adaboost,
    ),
    **{
        model.__name__: _Form(
            model, parts_of_forest, ENTRIES_OF_FOREST, shapes_of_forest, restore_forest
        )
        for model in (TreeForestClassifier, TreeForestRegressor)
    },
    CertifiedForestClassifier.__name__: _Form(
        CertifiedForestClassifier,
        parts_of_certified_forest,
        ENTRIES_OF_CERTIFIED_FOREST,
        shapes_of_certified_forest,
        restore_certified_forest,
    ),
    NaiveBayesClassifier.__name__: _Form(
        NaiveBayesClassifier,
        parts_of_naive_bayes,
        ENTRIES,
        shapes_of_naive_bayes,
        restore_naive_bayes,
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

    What is written is the fit, with the parameters that it was made with: those that were set after it
    are not, but for `n_jobs` and `verbose`.

    Parameters
    ----------
    model : fitted estimator of certree
        The model; not a decorated tree, nor AdaBoost of other learners than certree's trees.
    path : path
        The file.
    row_hashes : bool
        Whether a classifier's file holds hashes of the rows of its fit. By them `certify` refuses
        these rows; who has a row and the file can tell whether it was one of them.

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
        classes = np.asarray(model.classes_)
        arrays["classes"], header["classes"] = _plain_classes(classes)
        header["object_classes"] = bool(classes.dtype == object)
        header["row_hashes"] = None
        if row_hashes and model.row_hashes_ is not None:
            arrays["row_hashes"] = model.row_hashes_
            header["row_hashes"] = len(model.row_hashes_)
    text = json.dumps(header).encode()
    _expect_readable(text, arrays)
    write_whole(path, lambda file: write_archive(file, text, arrays))


def _expect_readable(text: bytes, arrays: _Arrays) -> None:
    """Never write what `load` refuses."""
    try:
        _model(text, partial(_of_these, arrays))
    except Exception as error:
        raise ValueError(f"this model cannot be saved: {_reason(error)}") from error


def _of_these(arrays: _Arrays, shapes: Shapes) -> _Arrays:
    """What reading the same arrays from a file would give."""
    expect_shapes(shapes, {name: (arrays[name].dtype, arrays[name].shape) for name in shapes})
    return {name: arrays[name] for name in shapes}


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
    expect_path(path)
    try:
        with opened(path) as archive:
            text = archive.header()
            return _model(text, archive.arrays, archive.expect_names)
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


def _plain_classes(classes: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Classes as an array of numbers or strings, and the type that they have."""
    if classes.dtype == object:
        if not all(isinstance(label, str) for label in classes):
            raise TypeError("classes must be numbers, booleans, strings or dates to be saved")
        if any(label.endswith("\0") for label in classes):
            raise ValueError("classes must not end in a NUL to be saved, as NumPy drops it")
        classes = classes.astype(str)
    stored = classes.astype(np.int64) if classes.dtype.kind in _TIMES else classes
    return stored, classes.dtype.str


def _model(
    text: bytes,
    read: Callable[[Shapes], _Arrays],
    expect_names: Callable[[set[str]], None] = lambda _: None,
) -> Any:
    """Make a model of a header and of what reads arrays of given types and shapes."""
    header = _header(text)
    form = _FORMS[header["model"]]
    parameters = {name: _restored(value) for name, value in header["parameters"].items()}
    model = form.model(**parameters)
    model._validate_params()
    model.n_features_in_ = _n_features(header["n_features"])
    _set_feature_names(model, header["feature_names"])
    model.categories_ = _categories(header["categories"], model.n_features_in_)
    classes: Shapes = {}
    if is_classifier(model):
        classes["classes"] = _dtype_of(header["classes"])[1].str, ("classes",)
        if header["row_hashes"] is not None:
            classes["row_hashes"] = "<u8", (_n_hashes(header["row_hashes"]),)
        own = read(classes)
        model.classes_ = _checked_classes(own["classes"], header)
        model.n_classes_ = len(model.classes_)
        model.row_hashes_ = _checked_hashes(own.get("row_hashes"))
    shapes = form.shapes(model, header)
    expect_names({*classes, *shapes})
    form.restore(model, header, read(shapes))
    keep_parameters(model)
    return model


def _header(text: bytes) -> dict[str, Any]:
    header = json.loads(text, parse_constant=_infinity)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if header.get("version") in (1, 2):
        raise ValueError("it was written by an earlier, unreleased certree; fit the model again")
    if header.get("version") != VERSION:
        raise ValueError(f"its version is {header.get('version')!r}, this certree reads {VERSION}")
    name = header.get("model")
    if not isinstance(name, str) or name not in _FORMS:
        raise ValueError(f"unknown model {name!r}")
    entries = _ENTRIES | _FORMS[name].entries
    if is_classifier(_FORMS[name].model()):
        entries |= _ENTRIES_OF_CLASSES
    if set(header) != entries:
        differing = ", ".join(sorted(map(repr, entries ^ set(header))))
        raise ValueError(f"its header lacks, or should not have, {differing}")
    return header


def _infinity(constant: str) -> float:
    """A number that JSON has no word for; NaN has no place in a header."""
    if constant == "NaN":
        raise ValueError("its header has a NaN")
    return float(constant)


def _dtype_of(name: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The type of classes and that of the array that holds them."""
    dtype = np.dtype(name if isinstance(name, str) else "O")
    if dtype.kind not in f"{_NUMBERS}{_TIMES}U":
        raise ValueError(f"classes must be numbers, booleans, strings or dates, got type {name!r}")
    return dtype, np.dtype(np.int64) if dtype.kind in _TIMES else dtype


def _checked_classes(stored: NDArray[Any], header: dict[str, Any]) -> NDArray[Any]:
    classes = stored.astype(_dtype_of(header["classes"])[0], copy=False)
    if not len(classes):
        raise ValueError("classes must be some, got none")
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes must be sorted and distinct")
    as_objects = header["object_classes"]
    if not isinstance(as_objects, bool) or (as_objects and classes.dtype.kind != "U"):
        raise ValueError(f"object_classes must be true for strings only, or false: {as_objects!r}")
    return classes.astype(object) if as_objects else classes


def _checked_hashes(hashes: NDArray[Any] | None) -> NDArray[Any] | None:
    if hashes is not None and not (hashes[1:] > hashes[:-1]).all():
        raise ValueError("row_hashes must be ascending and distinct")
    return hashes


def _n_hashes(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"row_hashes must be a number of rows or null, got {value!r}")
    return value


def _categories(names: Any, n_features: int) -> Categories | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features:
        raise ValueError(f"expected categories of {n_features} features, got {names!r}")
    for known in names:
        if known is not None and not isinstance(known, list):
            raise ValueError(f"categories must be a list, got {known!r}")
        kinds = {type(name) for name in known or ()}
        if known is not None and (kinds - {str} and kinds - {float}):
            raise ValueError(f"categories must be all strings or all numbers, got {known!r}")
        if known is not None and len(set(known)) != len(known):
            raise ValueError(f"categories must be distinct, got {known!r}")
    return Categories(tuple(None if known is None else tuple(known) for known in names))


def _set_feature_names(model: Any, names: list[str] | None) -> None:
    if names is None:
        return
    if (
        not isinstance(names, list)
        or len(names) != model.n_features_in_
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != len(names)
    ):
        raise ValueError(f"expected {model.n_features_in_} different feature names, got {names!r}")
    model.feature_names_in_ = np.array(names, dtype=object)


def _n_features(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST_FEATURES:
        raise ValueError(
            f"n_features must be a whole number in 1 .. {_MOST_FEATURES}, got {value!r}"
        )
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
