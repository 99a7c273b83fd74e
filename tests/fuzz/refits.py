"""Cases that fit an estimator twice, to equivalent tables, and compare the predictions."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import parquet
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import certree
from certree.boolean import FourierClassifier, FourierRegressor
from certree.ensembles import ConformalBandRegressor
from certree.grow import Cart
from fuzz.files import folder
from fuzz.functions import Attempt
from fuzz.relations import Subject, of_rows, same
from fuzz.tables import ARRAYS, FRAMES, WORDS

# What these learn depends on where rows stand, by which they are dealt or added up.
_BY_PLACE = (
    certree.CertifiedTreeClassifier,
    certree.CertifiedTreeRegressor,
    certree.CertifiedForestClassifier,
    certree.CertifiedBoostedTreesClassifier,
    certree.CertifiedBoostedTreesRegressor,
    certree.AdaBoostTreeClassifier,
    ConformalBandRegressor,
    FourierClassifier,
    FourierRegressor,
)
# These promise the same bits.
_SAME_BITS = (
    certree.TreeForestClassifier,
    certree.TreeForestRegressor,
    certree.BoostedTreesClassifier,
    certree.BoostedTreesRegressor,
)
# With these parameters nothing is drawn by what rows hold.
_FIXED = [
    certree.PrunedTreeClassifier(alpha=1e-3),
    certree.PrunedTreeRegressor(alpha=1e-3),
    certree.PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1, prior="leaves"),
    certree.PACBayesTreeRegressor(lambda_error=1.0, lambda_penalty=0.1, prior="leaves"),
    certree.HelmboldSchapireTreeClassifier(inverse_temperature=1.0),
    certree.AdaBoostTreeClassifier(n_estimators=3, max_depth=2),
]


def _compare(found: Any, X: Any, expected: Any, rows: Any, rounding: float = 0.0) -> None:
    same(_predicted(found, X), _predicted(expected, rows), rounding)


def _predicted(model: Any, X: Any) -> dict[str, list[np.ndarray]]:
    """Return all predictions for rows, except numbers of leaves and details of explanations."""
    said = of_rows(model, X)
    return {name: said[name] for name in said.keys() - {"apply", "explain"}}


def _exact_target(subject: Subject) -> np.ndarray:
    """Return a target whose sums are exact; otherwise rounding may decide between two equally good
    splits.
    """
    if hasattr(subject.model, "classes_"):
        return subject.y
    return subject.table.numbers()[:, 0].astype(float)


def another_order(random: Random, subject: Subject) -> None:
    """Assert that the order of the rows does not matter, without weights or with weights whose sums
    are exact.
    """
    model, table = subject.model, subject.table
    # Balanced classes weigh the same in all: rounding alone says which of them a root predicts.
    if isinstance(model, _BY_PLACE) or getattr(model, "class_weight", None) is not None:
        return
    order, y = np.array(random.sample(range(table.n), table.n)), _exact_target(subject)
    given, turned = {}, {}
    if random.random() < 0.5 and has_fit_parameter(model, "sample_weight"):
        weight = np.array(random.choices([0.25, 1.0, 1.75], k=table.n))
        given, turned = {"sample_weight": weight}, {"sample_weight": weight[order]}
    one = clone(model).fit(subject.X, y, **given)
    other = clone(model).fit(table.at(order).X, y[order], **turned)
    _compare(other, subject.X, one, subject.X, 0.0 if isinstance(model, _SAME_BITS) else 1e-9)


def another_order_of_columns(random: Random, subject: Subject) -> None:
    """Assert that the order of several targets of classes changes only the order of their
    predictions.
    """
    model, X, y = subject.model, subject.X, subject.y
    # Products of the weights of classes are rounded as the columns stand.
    if y.ndim == 1 or getattr(model, "class_weight", None) is not None:
        return
    if _are_interchangeable(subject.table.numbers(), y):
        return
    other = clone(model).fit(X, y[:, ::-1])
    same({"predict": [other.predict(X)[:, ::-1]]}, {"predict": [model.predict(X)]})
    told, expected = other.predict_proba(X)[::-1], model.predict_proba(X)
    same({"predict_proba": told}, {"predict_proba": expected})


def _are_interchangeable(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether two columns of classes have the same rows of X with each class, equally often.

    Then only their places in y distinguish them, and these may decide how sums are rounded.
    """
    codes = (np.unique(column, return_inverse=True)[1] for column in y.T)
    tables = [np.unique(np.column_stack((X, code)), axis=0, return_counts=True) for code in codes]
    return any(
        all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*pair, strict=True))
        for pair in combinations(tables, 2)
    )


def columns_elsewhere(random: Random, subject: Subject) -> None:
    """Assert that neither the order of the columns nor the names of categories change a model.

    A column of distinct numbers is added, so that no two other columns are equal.
    """
    model, table = subject.model, subject.table
    if isinstance(model, FourierClassifier | FourierRegressor) or _speaks_of_places(model):
        return
    if table.refused or "bytes" in table.kinds:
        return
    # Columns of categories may be equal in the few rows that train, where only places distinguish them.
    if isinstance(model, _HOLD_ROWS_OUT) and not table.is_numeric:
        return
    rng = np.random.default_rng(random.getrandbits(63))
    columns = {**table.columns, "all different": rng.normal(size=table.n)}
    container = random.choice(FRAMES)
    table = replace(table, columns=columns, container=container)
    turned = random.sample([*columns], len(columns))
    # Polars has levels of text alone: those of numbers are numbers there.
    has_names = container != "polars" or "levels of numbers" not in table.kinds
    told = {name: _renamed(columns[name], rng) if has_names else columns[name] for name in turned}
    other = replace(table, columns=told)
    one = clone(model).fit(table.X, subject.y)
    two = clone(model).fit(other.X, subject.y)
    rounding = 1e-9 if isinstance(model, _ADD_COLUMNS_UP) else 0.0
    _compare(two, other.X, one, table.X, rounding)


# What grows trees on a part of the rows.
_HOLD_ROWS_OUT = (
    certree.CertifiedTreeClassifier,
    certree.CertifiedTreeRegressor,
    certree.CertifiedForestClassifier,
    certree.CertifiedBoostedTreesClassifier,
    certree.CertifiedBoostedTreesRegressor,
)
# What adds up over columns is rounded as they stand.
_ADD_COLUMNS_UP = (
    certree.NaiveBayesClassifier,
    certree.DecoratedTreeClassifier,
    certree.DecoratedTreeRegressor,
)


def _speaks_of_places(model: Any) -> bool:
    """Return whether parameters name columns by number, or the grower or learners depend on their
    order.
    """
    given = model.get_params(deep=False)
    names = ("monotonic_cst", "interaction_cst", "densities", "estimator", "preprocessor")
    if any(not isinstance(given.get(name), str | None) for name in names):
        return not isinstance(model, ConformalBandRegressor)
    by_cart = given.get("grower", "cart") == "cart" or isinstance(given["grower"], Cart)
    return not by_cart or isinstance(given.get("categorical_features"), list)


def _renamed(column: Any, rng: np.random.Generator) -> Any:
    """Return a column whose categories, if any, have other names, in another order."""
    if isinstance(column, pd.Categorical):
        names = rng.permutation(len(column.categories))
        told = names + 0.5 if column.categories.dtype.kind == "f" else [f"n{k}" for k in names]
        return column.rename_categories(dict(zip(column.categories, told, strict=True)))
    if column.dtype != object:
        return column
    told = {word: f"n{k}" for word, k in zip(WORDS, rng.permutation(len(WORDS)), strict=True)}
    return np.array([None if word is None else told[word] for word in column], dtype=object)


def rows_of_no_weight(random: Random, subject: Subject) -> None:
    """Assert that a row of weight 0 changes nothing, whatever the weights of other rows."""
    model, table = subject.model, subject.table
    if not has_fit_parameter(model, "sample_weight"):
        return
    weight = _drawn_weights(random, table.n, may_lack=True)
    rows = np.flatnonzero(weight)
    given = None if (weight[rows] == 1).all() and random.random() < 0.5 else weight[rows]
    whole = clone(model).fit(subject.X, subject.y, sample_weight=weight)
    some = clone(model).fit(table.at(rows).X, subject.y[rows], sample_weight=given)
    # Weights of 1 are as if there were none, but for roots of their squares.
    _compare(some, subject.X, whole, subject.X, 1e-12 if given is None else 0.0)


def another_unit_of_weights(random: Random, subject: Subject) -> None:
    """Assert that weights are relative: multiplied by a power of two they change no bit."""
    model = subject.model
    if not has_fit_parameter(model, "sample_weight"):
        return
    weight = _drawn_weights(random, subject.table.n, may_lack=random.random() < 0.3)
    scaled = np.ldexp(weight, random.choice([-30, -7, -1, 1, 2, 40]))
    one = clone(model).fit(subject.X, subject.y, sample_weight=weight)
    other = clone(model).fit(subject.X, subject.y, sample_weight=scaled)
    # Weights of 1 are as if there were none, but for roots of their squares.
    are_ones = any((drawn[drawn > 0] == 1).all() for drawn in (weight, scaled))
    same(of_rows(other, subject.X), of_rows(one, subject.X), 1e-12 if are_ones else 0.0)
    assert other.effective_sample_size_ == one.effective_sample_size_


def _drawn_weights(random: Random, n: int, *, may_lack: bool) -> np.ndarray:
    """Draw weights that are integers, have no common unit, differ much or are equal; some are 0."""
    draw: Callable[[], float] = random.choice(
        [
            lambda: random.choice([1, 2, 3]),
            lambda: 1.0,
            lambda: 0.1,
            lambda: random.choice([0.1, 0.7]),
            lambda: random.uniform(0.5, 2),
            lambda: 10 ** random.uniform(-3, 3),
        ]
    )
    weight = np.array([draw() for _ in range(n)], dtype=float)
    if may_lack:
        weight[1:][np.array(random.choices([False, True], [3, 1], k=n - 1))] = 0.0
    return weight


def another_container(random: Random, subject: Subject) -> None:
    """Assert that the same values in another container give the same model."""
    table = subject.table
    if any(kind in ("bytes", "levels of numbers") for kind in table.kinds):
        return
    arrays = ARRAYS if table.is_numeric else ("objects",)
    X = replace(table, container=random.choice(FRAMES if table.container in FRAMES else arrays)).X
    other = clone(subject.model).fit(X, subject.y)
    _compare(other, X, subject.model, subject.X)


def another_layout(random: Random, subject: Subject) -> None:
    """Assert that the memory layout of an array does not matter, nor whether float32 numbers come
    as float64.
    """
    table = subject.table
    if not table.is_numeric:
        return
    wide = np.asarray(replace(table, container="array").X)
    narrow = _as_float32(wide)
    wide = wide if narrow is None else narrow.astype(float)
    expected = clone(subject.model).fit(wide, subject.y)
    way = random.randrange(4)
    X = [np.asfortranarray(wide), np.repeat(wide, 2, axis=0)[::2], wide.copy(), wide][way]
    if way == 2:
        X.flags.writeable = False
    elif way == 3 and narrow is not None and not hasattr(expected, "leaf_estimators_"):
        X = narrow
    other = clone(subject.model).fit(X, subject.y)
    _compare(other, X, expected, wide)


def _as_float32(wide: np.ndarray) -> np.ndarray | None:
    """Return the same numbers rounded to float32, unless that makes some infinite."""
    numbers = wide.astype(float)
    largest = np.abs(numbers[~np.isnan(numbers)]).max(initial=0.0)
    return numbers.astype(np.float32) if largest < 1e38 else None


def sparse_rows(random: Random, subject: Subject) -> None:
    """Assert that sparse rows give the same bits as the dense table, whichever zeros are stored."""
    table, model = subject.table, subject.model
    if not (table.is_numeric and getattr(model, "_takes_sparse", False)):
        return
    if not isinstance(getattr(model, "categorical_features", None), str | None):
        return
    wide = np.asarray(replace(table, container="array").X).astype(float)
    wide[np.random.default_rng(random.getrandbits(63)).random(wide.shape) < random.random()] = 0.0
    dense = clone(model).fit(wide, subject.y)
    kind = random.choice([sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
    X = kind(wide)
    if random.random() < 0.3 and X.format == "csr":
        X.data[: X.nnz // 4], wide = 0.0, None
        dense = clone(model).fit(X.toarray(), subject.y)
    other = clone(model).fit(X, subject.y)
    _compare(other, X, dense, X.toarray() if wide is None else wide)


_OF_POSITIVE = ("poisson", "gamma", "tweedie")
_LOSSES = ("squared_error", "absolute_error", "quantile", "huber", *_OF_POSITIVE)


def rows_in_files(random: Random, subject: Subject) -> None:
    """Assert that files of the rows, however they are divided, give the bits of the rows in
    memory.
    """
    model, table = subject.model, subject.table
    if "levels of numbers" in table.kinds:  # Parquet keeps none
        return
    takes_files = isinstance(model, _SAME_BITS)
    if getattr(model, "_takes_blocks", False):
        bins = random.choice([2, 7, 255])
        model = clone(model).set_params(
            grower=certree.Cart(max_bins=bins), cv=random.choice([2, 3])
        )
        takes_files = True
    if not takes_files or table.container not in FRAMES or subject.y.ndim > 1:
        return
    y, weight, model = subject.y, None, clone(model)
    if isinstance(model, certree.BoostedTreesRegressor) and random.random() < 0.7:
        model.set_params(loss=random.choice(_LOSSES), quantile=None, power=None)
        y = 1.0 + np.minimum(np.abs(y), 1e6) if model.loss in _OF_POSITIVE else y
    if isinstance(model, certree.TreeForestClassifier | certree.TreeForestRegressor):
        model.set_params(warm_start=False)
    if random.random() < 0.3 and hasattr(model, "early_stopping"):
        model.set_params(early_stopping=True, validation_fraction=0.3, n_iter_no_change=2)
    X = replace(table, container="pyarrow").X
    frame = X.append_column("what to learn", [y])
    if random.random() < 0.5:
        weight = _drawn_weights(random, table.n, may_lack=random.random() < 0.3)
        frame = frame.append_column("how much", [weight])
    at = Path(folder().name) / "rows"
    at.mkdir(exist_ok=True)
    for old in at.iterdir():
        old.unlink()
    cuts = [0, *sorted(random.choices(range(table.n + 1), k=2)), table.n]
    for k, (first, end) in enumerate(pairwise(cuts)):
        parquet.write_table(frame.slice(first, end - first), at / f"{k}.parquet")
    other, weights = clone(model), None if weight is None else "how much"
    there = _repeats_said(lambda: other.fit(at, "what to learn", weights))
    assert there == _repeats_said(lambda: model.fit(X, y, weight))
    _compare(other, X, model, X)


def repeated_rows(random: Random, subject: Subject) -> None:
    """Assert that a table with every row twice causes one warning, unless groups say which rows are
    copies.
    """
    model, table = clone(subject.model), subject.table
    if hasattr(model, "duplicates") or isinstance(model, ConformalBandRegressor):  # of some rows
        return
    rows = np.array(random.sample([*range(table.n)] * 2, 2 * table.n))
    X, y = table.at(rows).X, subject.y[rows]
    said = _repeats_said(lambda: model.fit(X, y))
    assert len(said) == 1, said
    assert f" {len(rows):,} of {len(rows):,} rows " in said[0]
    if has_fit_parameter(model, "groups"):
        assert _repeats_said(lambda: model.fit(X, y, groups=rows)) == []


def _repeats_said(fit: Callable[[], Any]) -> list[str]:
    """Return the warnings of a fit about repeated rows."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", certree.RepeatedRowsWarning)
        fit()
    return [str(one.message) for one in found if one.category is certree.RepeatedRowsWarning]


def another_number_of_threads(random: Random, subject: Subject) -> None:
    """Assert that the number of threads does not change the model."""
    if "n_jobs" in subject.model.get_params(deep=False):
        other = clone(subject.model).set_params(n_jobs=random.choice([None, 1, 2, 3]))
        _compare(other.fit(subject.X, subject.y), subject.X, subject.model, subject.X)


def another_unit(random: Random, subject: Subject) -> None:
    """Assert that a column times a power of two splits rows in the same way.

    A constant column is added. Of equal splits on several columns the values decide, and so do
    their units; the table has no equal ones.
    """
    table = subject.table
    if not table.is_numeric or {"tiny", "huge"} & {*table.kinds}:
        return
    model = clone(random.choice(_FIXED))
    X = np.asarray(replace(table, container="array").X).astype(float)
    X = X[:, [random.randrange(X.shape[1])]]
    scaled = np.ldexp(X, random.randint(-30, 30))
    constant = random.choice([None, None, None, 0.0, -3.0, np.nan])
    if constant is not None:
        scaled = np.column_stack([scaled, np.full(len(X), constant)])
    is_classifier = hasattr(model, "predict_proba")
    y = table.numbers()[:, 0] % 2 if is_classifier else table.numbers()[:, 0] / 8
    one, other = clone(model).fit(X, y), clone(model).fit(scaled, y)
    # Rows that lack a value go by another loop, which may add up the parts of a spread otherwise.
    rounding = 1e-12 if constant is not None and np.isnan(constant) else 0.0
    _compare(other, scaled, one, X, rounding)


REFITS: list[Callable[[Random, Subject], None]] = [
    another_order,
    another_order_of_columns,
    columns_elsewhere,
    rows_of_no_weight,
    another_unit_of_weights,
    another_container,
    another_layout,
    sparse_rows,
    rows_in_files,
    repeated_rows,
    another_number_of_threads,
    another_unit,
]


def refit(random: Random) -> Iterator[Attempt]:
    """Fit, and compare with a fit to an equivalent table."""
    subject = Subject(random)
    yield subject.fit
    if subject.is_fitted:
        yield partial(random.choice(REFITS), random, subject)
