"""Write the fitted attributes about features and classes to model files, and restore them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import check_column
from certree.interface.fitted_state import (
    DRAWN_GROUPS_ATTRIBUTE,
    GROUPS_ATTRIBUTE,
    TIME_ATTRIBUTE,
    find_drawn_groups_column,
    find_groups_column,
    find_time_column,
)
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows.categories import Categories
from certree.rows.dates import DateColumn
from certree.rows.repeat_counts import RepeatCounts
from certree.tables.fitted_types import FORMAT_ATTRIBUTE, get_model_format
from certree.tables.table_source import TableFormat

# Dtype kinds of classes that are numbers, and of dates and time spans, which files hold as integers.
_NUMBERS, _TIMES = "biuf", "mM"
# Limits the memory that a damaged file can request; no table has so many features.
_MOST_FEATURES = 2**24
# Types of the categories of one feature in model files.
_KINDS_OF_CATEGORIES: tuple[set[type], ...] = (set(), {str}, {float})
# Entries of model files that name a column of the rows of the fit, and the attributes with them.
_COLUMNS_OF_ROWS = {
    "groups": GROUPS_ATTRIBUTE,
    "time": TIME_ATTRIBUTE,
    "one_per_group": DRAWN_GROUPS_ATTRIBUTE,
}
# Entry "unknown_categories" of a model that does not encode unknown categories as missing values.
_HAVE_CODE = "code"


def store_features(model: Any) -> dict[str, Any]:
    """Return the entries of a model file about the features of a fitted model, by name.

    The entries are "n_features", "feature_names", "categories", "digested_categories" (indices of
    features whose texts are stored as hashes) and "dates" (index, kind, time zone, last date and
    calendar parts of features that hold dates) if there are any, "effective_sample_size" if the
    model has it, "n_outputs" for several targets, and "table_format" if it was fitted to CSV files
    in an unusual format; "groups" and "time" are the columns of groups and times of rows, if there
    were any, and "one_per_group" is the column of the groups of which the fit had one row each.
    "unknown_categories" is "code" if unknown categories have a code of their own; the entry is
    missing if they are encoded as missing values.

    model: fitted estimator with `n_features_in_` and `categories_`.
    """
    names = getattr(model, "feature_names_in_", None)
    n_outputs = getattr(model, "n_outputs_", 1)
    size, dates = getattr(model, "effective_sample_size_", None), getattr(model, "dates_", None)
    found = get_model_format(model)
    columns = {
        "groups": find_groups_column(model),
        "time": find_time_column(model),
        "one_per_group": find_drawn_groups_column(model),
    }
    digested = [] if model.categories_ is None else [*model.categories_.digested]
    are_missing = model.categories_ is None or model.categories_.unknown_are_missing
    return {
        "n_features": int(model.n_features_in_),
        **({} if size is None else {"effective_sample_size": float(size)}),
        **({} if n_outputs == 1 else {"n_outputs": n_outputs}),
        "categories": None if model.categories_ is None else [*model.categories_.names],
        **({} if are_missing else {"unknown_categories": _HAVE_CODE}),
        **({"digested_categories": digested} if digested else {}),
        **({} if found is None else {"table_format": found.to_stored()}),
        **{name: column for name, column in columns.items() if column is not None},
        **({} if dates is None else {"dates": [[j, *one.to_stored()] for j, one in dates.items()]}),
        "feature_names": None if names is None else [str(name) for name in names],
    }


def restore_features(stored: StoredState) -> dict[str, Any]:
    """Check the entries that `store_features` wrote, and return the fitted attributes by name.

    The attributes are `n_features_in_`, `categories_` and, if the file has them, `dates_`,
    `feature_names_in_`, `effective_sample_size_`, `n_outputs_`, the format of CSV files, and the
    columns of groups, of times, and of groups of which the fit had one row each. Raise a ValueError
    if an entry is damaged.

    stored: entries of the model file.
    """
    p = stored.get_integer("n_features", 1, _MOST_FEATURES)
    categories, names = _restore_categories(stored, p), stored["feature_names"]
    learned: dict[str, Any] = {"n_features_in_": p, "categories_": categories}
    if "effective_sample_size" in stored:
        learned["effective_sample_size_"] = stored.get_number("effective_sample_size", 0, np.inf)
    if "dates" in stored:
        learned["dates_"] = _restore_dates(stored["dates"], p)
    if "n_outputs" in stored:
        learned["n_outputs_"] = stored.get_integer("n_outputs", 2, _MOST_FEATURES)
    for name, attribute in _COLUMNS_OF_ROWS.items():
        if name in stored:
            learned[attribute] = stored[name]
            if not isinstance(stored[name], str):
                raise DamagedModelError(
                    f"the model file's {name} must be a text, got {stored[name]!r}"
                )
    if "table_format" in stored:
        learned[FORMAT_ATTRIBUTE] = TableFormat.from_stored(stored["table_format"])
    return learned if names is None else {**learned, "feature_names_in_": _restore_names(names, p)}


def _restore_dates(entries: Any, n_features: int) -> dict[int, DateColumn]:
    """Return the `DateColumn` of each column of dates, by its index.

    entries: lists of an index and the entries of `DateColumn.to_stored`, as read from a model file.
    n_features: number of features, p. Raise `DamagedModelError` if entries are not of this form.
    """
    if isinstance(entries, list) and all(isinstance(one, list) and one for one in entries):
        places = [one[0] for one in entries]
        are_indices = all(type(j) is int and 0 <= j < n_features for j in places)
        if places and are_indices and sorted(set(places)) == places:
            return {j: DateColumn.from_stored(rest) for j, *rest in entries}
    raise DamagedModelError(
        f"the model file's dates must have ascending indices of features, got {entries!r}"
    )


def _restore_categories(stored: StoredState, n_features: int) -> Categories | None:
    names, digested = stored["categories"], []
    if "digested_categories" in stored:
        digested = stored["digested_categories"]
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features:
        raise DamagedModelError(
            f"the model file's categories must have {n_features} entries, got {names!r}"
        )
    for known in names:
        if known is None:
            continue
        if (
            not isinstance(known, list)
            or {type(name) for name in known} not in _KINDS_OF_CATEGORIES
        ):
            raise DamagedModelError(
                "the model file's categories must be a list of strings only or of numbers only for "
                f"each feature, got {known!r}"
            )
        if len(set(known)) != len(known):
            raise DamagedModelError(f"the model file's categories must be distinct, got {known!r}")
    if not isinstance(digested, list) or not all(_is_text_feature(names, j) for j in digested):
        raise DamagedModelError(
            "the model file's digested_categories must be indices of features with texts, got "
            f"{digested!r}"
        )
    if sorted(set(digested)) != digested:
        raise DamagedModelError(
            f"the model file's digested_categories must be ascending and distinct, got {digested!r}"
        )
    kept = tuple(None if known is None else tuple(known) for known in names)
    return Categories(kept, tuple(digested), "unknown_categories" not in stored)


def _is_text_feature(names: list[Any], j: Any) -> bool:
    """Return whether j is the index of a feature whose categories are texts.

    names: categories of each feature, a list, or None for a numeric feature. j: an entry of a model
    file; if the file is damaged it may be any object, for which the result is False.
    """
    is_feature = type(j) is int and 0 <= j < len(names)
    return is_feature and bool(names[j]) and isinstance(names[j][0], str)


def _restore_names(names: Any, n_features: int) -> NDArray[Any]:
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not known or len(names) != n_features or len(set(names)) != len(names):
        raise ValueError(
            f"feature_names must be {n_features} different strings, got {names!r}: rename the columns "
            "of X and fit again; if the model was loaded, its file is damaged"
        )
    return np.array(names, dtype=object)


def store_classes(model: Any) -> dict[str, Any]:
    """Return the entries of a model file about classes and row hashes of a classifier, by name.

    model: the fitted classifier. The entries are its classes and their dtypes ("classes" and
    "classes.dtype", or "classes.0", "classes.0.dtype" and so on with several targets),
    "sample_hashes" (`sample_hashes_`, hashes of the rows of the fit), its length "n_sample_hashes",
    and the entries of `RepeatCounts.to_stored` as "sample_counts.n" and so on. Without hashes in
    the model the length is None, and hashes and counts are left out.
    """
    hashes, several = model.sample_hashes_, isinstance(model.classes_, list)
    names = [f"classes.{k}" for k in range(len(model.classes_))] if several else ["classes"]
    stored: dict[str, Any] = {}
    for name, classes in zip(names, model.classes_ if several else [model.classes_], strict=True):
        stored |= _store_class_array(name, np.asarray(classes))
    counts = getattr(model, "_sample_counts", None)
    return {
        **stored,
        **({} if hashes is None or counts is None else {"sample_counts": counts}),
        "n_sample_hashes": None if hashes is None else len(hashes),
        **({} if hashes is None else {"sample_hashes": hashes}),
    }


def _store_class_array(name: str, classes: NDArray[Any]) -> dict[str, Any]:
    """Return two entries of a model file: the array of classes, and its dtype as a string.

    name: name of the first entry; the second one is "<name>.dtype". classes: sorted classes, (K,).
    Dates are stored as integers, objects as strings. Raise a TypeError for objects that are not
    strings, and a ValueError for strings that end in a NUL character.
    """
    dtype = classes.dtype
    if dtype.kind == "O":
        if not all(isinstance(label, str) for label in classes):
            raise TypeError(
                "classes must be numbers, booleans, strings or dates to be saved, got other objects: "
                "convert y to strings and fit again"
            )
        if any(label.endswith("\0") for label in classes):
            raise ValueError(
                "classes must not end in a NUL character to be saved, as NumPy drops it: rename them "
                "and fit again"
            )
        classes = classes.astype(str)
    stored = classes.astype(np.int64) if dtype.kind in _TIMES else classes
    return {name: stored, f"{name}.dtype": dtype.str}


def restore_classes(stored: StoredState) -> dict[str, Any]:
    """Check the entries that `store_classes` wrote, and return the fitted attributes by name.

    The attributes are `classes_`, `n_classes_`, `sample_hashes_` (hashes of the rows of the fit)
    and `_sample_counts` (a `RepeatCounts`); the last two are None if the file does not have them.
    Raise a ValueError if an entry is damaged.

    stored: entries of the model file.
    """
    hashes, counts = None, None
    if stored["n_sample_hashes"] is not None:
        n = stored.get_integer("n_sample_hashes", 1)
        hashes = check_column("sample_hashes", stored["sample_hashes"], "uint64", (n,))
        if not (hashes[1:] > hashes[:-1]).all():
            raise DamagedModelError("the model file's sample_hashes must be ascending and distinct")
        if "sample_counts.n" in stored:
            counts = RepeatCounts.from_stored(stored.get_section("sample_counts"), hashes)
    of_rows = {"sample_hashes_": hashes, "_sample_counts": counts}
    if "n_outputs" not in stored:
        classes = _restore_class_array(stored["classes"], stored["classes.dtype"])
        return {"classes_": classes, "n_classes_": len(classes), **of_rows}
    names = [f"classes.{k}" for k in range(stored.get_integer("n_outputs", 2, _MOST_FEATURES))]
    of_each = [_restore_class_array(stored[name], stored[f"{name}.dtype"]) for name in names]
    n_classes = [len(classes) for classes in of_each]
    return {"classes_": of_each, "n_classes_": n_classes, **of_rows}


def _restore_class_array(given: Any, name: Any) -> NDArray[Any]:
    dtype = np.dtype(name) if isinstance(name, str) else np.dtype("V")
    if dtype.kind not in f"{_NUMBERS}{_TIMES}UO":
        raise DamagedModelError(
            "the model file's classes must be numbers, booleans, strings or dates, got type "
            f"{name!r}"
        )
    held = np.dtype(np.int64) if dtype.kind in _TIMES else dtype
    if dtype.kind != "O" and given.dtype != held:
        raise DamagedModelError(
            f"the model file's classes must have dtype {held}, got {given.dtype}"
        )
    if dtype.kind == "O" and given.dtype.kind != "U":
        raise DamagedModelError(
            "the model file's classes must be strings if its classes.dtype is '|O' (objects), got "
            f"classes of type {given.dtype}"
        )
    classes: NDArray[Any] = given.astype(dtype, copy=False)
    if classes.ndim != 1 or not len(classes):
        raise DamagedModelError(
            "the model file's classes must be a one-dimensional array that is not empty, got shape "
            f"{classes.shape}"
        )
    if not np.array_equal(np.unique(classes), classes):
        raise DamagedModelError("the model file's classes must be sorted and distinct")
    return classes
