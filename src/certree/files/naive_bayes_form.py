"""What a model file holds of naive Bayes: densities, and what `partial_fit` goes on from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.estimators.naive_bayes.classifier import NaiveBayesClassifier
from certree.estimators.naive_bayes.densities import (
    CategoricalTable,
    Density,
    Histogram,
    Moments,
    Normal,
)
from certree.estimators.naive_bayes.powers import POWERS, JudgedPowers
from certree.files.archive import Shapes
from certree.interface.arrays import Float64, Int64, can_be_added

Arrays = dict[str, NDArray[Any]]


def parts_of_naive_bayes(model: NaiveBayesClassifier) -> tuple[dict[str, Any], Arrays]:
    """Take a fitted model apart: what goes into the header, and arrays by their names.

    The densities of one kind lie one after the other, in the order of their features; so do the
    moments of all features of numbers.
    """
    n_classes = len(model.classes_)
    normals = [density for density in model.densities_ if isinstance(density, Normal)]
    histograms = [density for density in model.densities_ if isinstance(density, Histogram)]
    tables = [_table(density) for density in model.densities_ if not isinstance(density, Normal)]
    moments = [model._moments[j] for j in sorted(model._moments)]
    header = {
        "densities": [density.kind for density in model.densities_],
        "power": float(model.power_),
        "judged_rows": float(model._judged.rows),
    }
    arrays = {
        "class_count": model.class_count_,
        "class_prior": model.class_prior_,
        "normal.mean": _stacked([one.mean for one in normals], n_classes),
        "normal.deviation": _stacked([one.deviation for one in normals], n_classes),
        "moments.rows": _stacked([one.rows for one in moments], n_classes),
        "moments.mean": _stacked([one.mean for one in moments], n_classes),
        "moments.deviation": _stacked([one.deviation for one in moments], n_classes),
        "histogram.edges": np.concatenate([np.zeros(0), *(one.edges for one in histograms)]),
        "table.size": np.array([one.counts.shape[1] for one in tables], dtype=np.int64),
        "table.alpha": np.array([one.alpha for one in tables], dtype=np.float64),
        "table.counts": np.hstack([np.zeros((n_classes, 0)), *(one.counts for one in tables)]),
        "judged.older": model._judged.older,
        "judged.recent": model._judged.recent,
    }
    return header, arrays


def _table(density: Histogram | CategoricalTable) -> CategoricalTable:
    return density.table if isinstance(density, Histogram) else density


def _stacked(rows: list[Float64], n_classes: int) -> Float64:
    return np.array(rows, dtype=np.float64).reshape(len(rows), n_classes)


# What the header has of naive Bayes.
ENTRIES = frozenset({"densities", "power", "judged_rows"})


def shapes_of_naive_bayes(model: NaiveBayesClassifier, header: dict[str, Any]) -> Shapes:
    """Types and shapes of the arrays; those of features and classes are set."""
    kinds = header["densities"]
    _expect_kinds(model, kinds)
    n_classes, n_tables = len(model.classes_), len(kinds) - kinds.count("normal")
    normal = "<f8", (kinds.count("normal"), n_classes)
    moments = "<f8", (len(kinds) - kinds.count("categorical"), n_classes)
    judged = "<f8", POWERS.shape
    return {
        "class_count": ("<f8", (n_classes,)),
        "class_prior": ("<f8", (n_classes,)),
        "normal.mean": normal,
        "normal.deviation": normal,
        "moments.rows": moments,
        "moments.mean": moments,
        "moments.deviation": moments,
        "histogram.edges": ("<f8", ("edges",)),
        "table.size": ("<i8", (n_tables,)),
        "table.alpha": ("<f8", (n_tables,)),
        "table.counts": ("<f8", (n_classes, "bins")),
        "judged.older": judged,
        "judged.recent": judged,
    }


def restore_naive_bayes(
    model: NaiveBayesClassifier, header: dict[str, Any], arrays: Arrays
) -> None:
    """Check these parts and set the fitted attributes; those of features and classes are set."""
    model.class_count_ = _numbers(arrays, "class_count", 0)
    if not model.class_count_.any() or not can_be_added(model.class_count_):
        raise ValueError("class_count holds no rows, or too many to be added up")
    model.class_prior_ = _numbers(arrays, "class_prior", 0)
    if not np.isclose(model.class_prior_.sum(), 1):
        raise ValueError(f"class_prior must sum to 1, got {model.class_prior_.sum()}")
    if (model.class_count_[model.class_prior_ == 0] > 0).any():
        raise ValueError("class_prior is 0 for a class with rows")
    model.power_ = _number("power", header["power"])
    if not 0 <= model.power_ <= 1:
        raise ValueError(f"power must lie in 0 .. 1, got {model.power_}")
    model._judged = _judged(_number("judged_rows", header["judged_rows"]), arrays)
    model._moments = _moments(model, arrays)
    model.densities_ = _densities(model, header["densities"], arrays)


def _expect_kinds(model: NaiveBayesClassifier, kinds: Any) -> None:
    n_features = model.n_features_in_
    if not isinstance(kinds, list) or len(kinds) != n_features:
        raise ValueError(f"expected densities of {n_features} features, got {kinds!r}")
    for j, kind in enumerate(kinds):
        possible = ("normal", "histogram") if model._category_names(j) is None else ("categorical",)
        if kind not in possible:
            raise ValueError(f"the density of feature {j} must be {' or '.join(possible)}")


def _number(name: str, value: Any) -> float:
    if not isinstance(value, float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return value


def _numbers(arrays: Arrays, name: str, least: float = -np.inf) -> Float64:
    """A column of finite numbers, none of them below the least."""
    values: Float64 = arrays[name]
    if not np.isfinite(values).all() or (values < least).any():
        raise ValueError(f"{name} must hold finite numbers >= {least}")
    return values


def _judged(rows: float, arrays: Arrays) -> JudgedPowers:
    if not 0 <= rows < np.inf:
        raise ValueError(f"judged_rows must be finite and >= 0, got {rows}")
    losses = (_numbers(arrays, f"judged.{name}") for name in ("older", "recent"))
    return JudgedPowers(rows, *losses)


def _moments(model: NaiveBayesClassifier, arrays: Arrays) -> dict[int, Moments]:
    numbers = [j for j in range(model.n_features_in_) if model._category_names(j) is None]
    rows = _numbers(arrays, "moments.rows", 0)
    _expect_rows(model, "moments.rows", rows)
    mean = _numbers(arrays, "moments.mean")
    deviation = _numbers(arrays, "moments.deviation", 0)
    return {j: Moments(rows[i], mean[i], deviation[i]) for i, j in enumerate(numbers)}


def _expect_rows(model: NaiveBayesClassifier, name: str, rows: Float64) -> None:
    """No feature is known of more rows than a class has, but for what rounding adds."""
    if (rows > model.class_count_ * (1 + 1e-6)).any():
        raise ValueError(f"{name} counts more rows than class_count")


def _densities(model: NaiveBayesClassifier, kinds: list[str], arrays: Arrays) -> list[Density]:
    mean = _numbers(arrays, "normal.mean")
    deviation = _numbers(arrays, "normal.deviation", np.finfo(np.float64).smallest_subnormal)
    normals = (Normal(*one) for one in zip(mean, deviation, strict=True))
    tables = iter(_tables(model, arrays))
    edges = _numbers(arrays, "histogram.edges")
    densities: list[Density] = []
    for j, kind in enumerate(kinds):
        if kind == "normal":
            densities.append(next(normals))
            continue
        table = next(tables)
        n_bins = table.counts.shape[1]
        if kind == "categorical":
            names = model._category_names(j)
            if n_bins != max(1, len(names or ())):
                raise ValueError(f"the table of feature {j} has {n_bins} categories")
            densities.append(table)
        else:
            own, edges = edges[: n_bins + 1], edges[n_bins + 1 :]
            _expect_ascending(own, n_bins)
            densities.append(Histogram(own, table))
    if len(edges):
        raise ValueError(f"histogram.edges has {len(edges)} numbers too many")
    return densities


def _expect_ascending(edges: Float64, n_bins: int) -> None:
    if len(edges) != n_bins + 1:
        raise ValueError(f"histogram.edges lacks numbers for {n_bins} bins")
    steps = edges[1:] > edges[:-1]
    # A single value has one bin of no width.
    if not steps.all() and not (n_bins == 1 and edges[0] == edges[1]):
        raise ValueError("histogram.edges must ascend")


def _tables(model: NaiveBayesClassifier, arrays: Arrays) -> list[CategoricalTable]:
    sizes: Int64 = arrays["table.size"]
    alpha = _numbers(arrays, "table.alpha")
    counts = _numbers(arrays, "table.counts", 0)
    # Each size by itself, so that no sum of them can overflow.
    if (sizes < 1).any() or (sizes > counts.shape[1]).any() or sizes.sum() != counts.shape[1]:
        raise ValueError("table.size does not go with table.counts")
    with np.errstate(over="ignore"):
        if not ((alpha > 0) & np.isfinite(alpha * sizes)).all():
            raise ValueError("table.alpha must be positive, and finite for all categories together")
    parts = np.split(counts, np.cumsum(sizes)[:-1], axis=1) if len(sizes) else []
    for part in parts:
        _expect_rows(model, "table.counts", part.sum(axis=1))
    return [CategoricalTable(part, one) for part, one in zip(parts, alpha.tolist(), strict=True)]
