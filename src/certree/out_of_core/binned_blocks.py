"""The parts that chunks become, whose rows lie in the bins of all rows; and what these add up to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.grow.bins import MISSING, Bins
from certree.interface.arrays import Float64, Int32, UInt64
from certree.out_of_core.binning import (
    BinRanges,
    Sketch,
    bin_rows,
    choose_hash_limit,
    find_category_positions,
    make_bins,
)
from certree.out_of_core.chunks import Chunk, Weighing, get_group_names, training_of
from certree.out_of_core.exact_sums import exact_sum, round_sum, sum_class_weights
from certree.out_of_core.executors import Executor
from certree.out_of_core.fit_hashes import add_hashes
from certree.out_of_core.row_assignment import Division, Mask
from certree.out_of_core.row_block import PartOfRows
from certree.out_of_core.validation_split import FoldAssignment, RowsHeldOut
from certree.rows.categories import warn_if_identifier
from certree.rows.draw_order import ColumnSums
from certree.rows.hashes import hash_samples, hash_target
from certree.rows.training import Training


@dataclass(frozen=True, slots=True, eq=False)
class Sketched:
    """What is known of all rows before they lie in bins.

    Parameters
    ----------
    sketch : Sketch
        What decides the bins.
    weighings : tuple of two Weighings or None
        How rows that train and rows that are held out are weighed; None: each counts once.
    held : RowsHeldOut or None
        Which rows are held out; None: none are.
    order : tuple of int
        In which order several targets tell rows apart; none: as they stand.
    """

    sketch: Sketch
    weighings: tuple[Weighing | None, Weighing | None]
    held: RowsHeldOut | None = None
    order: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """How many rows train."""
        return self.sketch.n

    @property
    def n_held(self) -> int:
        """How many rows are held out."""
        return 0 if self.held is None else self.held.sides.held.n


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What is known of all rows once parts are made; those of more add up.

    Parameters
    ----------
    ends : BinRanges
        Of the bins.
    totals : Counter
        Exact weight of each class by the number of the target and its code; of numbers the weight
        ("weight"), and the weighed sum by the number of the target. Weights of 1 are counted.
    """

    ends: BinRanges
    totals: Counter[Any]

    def __add__(self, other: Self) -> Self:
        """That of both."""
        ends, totals = self.ends + other.ends, Counter(self.totals)
        totals.update(other.totals)  # sums below 0 stay
        return replace(self, ends=ends, totals=totals)


def sketched(
    parts: Executor,
    reader: Any,
    weighing: Weighing | None,
    n: int,
    held: RowsHeldOut | None = None,
    largest: Float64 | None = None,
) -> Sketched:
    """Look at all rows for what decides their bins.

    Parameters
    ----------
    parts : Executor
        Holds the rows.
    reader : object
        Reads them by what is known of all.
    weighing : Weighing or None
        How they are weighed, as far as it is known; None: each counts once.
    n : int
        How many there are.
    held : RowsHeldOut or None
        Which of them are held out; None: none are.
    largest : ndarray of shape (n_targets,), or None
        The largest size of each target, of those that train, where their order is asked for.

    Returns
    -------
    Sketched
    """
    if held is not None:
        known: Sketch = parts.make(_sketch_of_side, reader, held.division, largest, own=held.masks)
        return Sketched(known, held.division.weighings, held)
    known = parts.look(_sketch, reader, weighing, largest, choose_hash_limit(n))
    if not known.is_complete:
        known = parts.look(_sketch, reader, weighing, largest)
    if weighing is not None:
        weighing = replace(weighing, factor=known.n / round_sum(known.weight))
    return Sketched(known, (weighing, None))


def order_of_training(parts: Executor, reader: Any, held: RowsHeldOut) -> Int32:
    """In which order columns are looked at, as the rows tell that are not held out."""
    sums: ColumnSums = parts.make(_sums_of_side, reader, held.division, own=held.masks)
    return sums.order_columns()


def make_parts(
    parts: Executor,
    reader: Any,
    known: Sketched,
    n_bins: int = MISSING,
    dealt: FoldAssignment | None = None,
    *,
    fine_ends: bool = False,
    many: tuple[int, ...] = (),
) -> tuple[Bins, Counter[Any]]:
    """Let an executor make parts of the rows, whose keys are hashes as yet.

    Parameters
    ----------
    parts : Executor
        Holds the rows.
    reader : object
        Reads them.
    known : Sketched
        What is known of them.
    n_bins : int
        Most bins of a feature of numbers.
    dealt : FoldAssignment or None
        Folds of the rows that are not held out; None: there are no folds.
    fine_ends : bool
        Whether bins are fine towards the ends; see `Bins.from_table`.
    many : tuple of int
        Features of categories of which parts know the level of each row beside its bin.

    Returns
    -------
    bins : Bins
        Those of all rows that train, without codes.
    totals : Counter
        See `Made`.
    """
    edges, held = known.sketch.choose_edges(n_bins, fine_ends=fine_ends), known.held
    divisions = None if held is None else held.division, None if dealt is None else dealt.division
    masks: list[Any] = [] if held is None else held.masks
    folds: list[Any] = [] if dealt is None else dealt.folds
    own = [*zip_longest(masks, folds)] or None  # one of the lists may be empty
    given = reader, known.weighings[0], edges, many, known.order, divisions
    made: Made = parts.make(_made_part, *given, own=own)
    bins = make_bins(edges, made.ends, _category(reader))
    return bins.with_dates(reader.dates_), made.totals


def warn_of_identifiers(model: Any, known: Sketch) -> None:
    """Warn of features of categories most of which hardly any two rows share."""
    names = getattr(model, "feature_names_in_", None)
    categories = getattr(model, "categories_", None)
    for j, values in enumerate(known.values):
        if isinstance(values, tuple):
            texts = () if categories is None else categories.names[j] or ()
            warn_if_identifier(j, names, int(values[1].sum()), len(values[0]), texts)


def put_beside(part: PartOfRows, held: Training | None) -> tuple[PartOfRows, int]:
    """A part that has rows beside it which are held out; None: it has none."""
    if held is None:
        return part, 0
    values, y = held.features.matrix.astype(np.float64), held.y.T.astype(np.float64)
    y_held = np.ascontiguousarray(y)
    about: dict[str, Any] = {"weight_held": held.weight, "offset_held": held.offset}
    return replace(part, values=values, y_held=y_held, **about), 0


# -- of one chunk


def _sketch(
    chunk: Chunk,
    reader: Any,
    weighing: Weighing | None,
    largest: Float64 | None,
    below: int | None = None,
) -> Sketch | None:
    """What decides the bins of a chunk, and the sum of its weights in units of the largest one.

    below: of rows whose hashes are below it; None: of all.
    """
    training: Any = training_of(reader, chunk, weighing)
    if training is None:
        return None
    made, weight = _sketch_of_rows(training, reader, largest, below), training.weight
    return made if weight is None else replace(made, weight=exact_sum(weight))


def _sketch_of_side(
    number: int,
    chunk: Chunk,
    reader: Any,
    division: Division,
    largest: Float64 | None,
    mask: Mask,
) -> tuple[PartOfRows, Sketch | None]:
    """What decides the bins: the rows of a chunk that train; the part is an empty one."""
    training: Any = division.read_rows(reader, chunk)
    made = None
    if training is not None and not mask.all():
        train: Any = division.split_rows(training, mask)[0]
        made = _sketch_of_rows(train, reader, largest)
    return without_rows(number, reader, None, reader._n_encoded), made


def _sums_of_side(
    number: int, chunk: Chunk, reader: Any, division: Division, mask: Mask
) -> tuple[PartOfRows, ColumnSums | None]:
    """What rows of a chunk that train add up to by column; the part is an empty one."""
    training, made = division.read_rows(reader, chunk), None
    if training is not None and not mask.all():
        train = division.split_rows(training, mask)[0]
        made = ColumnSums.sum_rows(train.features, train.y, train.n_categories)
    return without_rows(number, reader, None, reader._n_encoded), made


def _sketch_of_rows(
    rows: Any, reader: Any, largest: Float64 | None, below: int | None = None
) -> Sketch:
    """A sketch that has keys of several targets of its rows, if these are asked for."""
    order = rows.draw_order
    made = Sketch.from_rows(rows.features, _category(reader), below, order)
    if largest is None:
        return made
    hashes, targets = hash_samples(*rows.features.tables, order=order), rows.y.T.astype(np.float64)
    told = zip(targets, largest.tolist(), strict=True)
    keys = [hash_target(one, hashes, largest=most) for one, most in told]
    return replace(made, target_keys=np.array(keys, dtype=np.uint64))


def without_rows(
    number: int, reader: Any, weighing: Weighing | None, p: int, n_many: int = 0
) -> PartOfRows:
    """A part that a chunk becomes of which no row weighs anything; p: of so many features."""
    n_targets, codes = getattr(reader, "n_outputs_", 1), np.zeros((p, 0), dtype=np.uint8)
    y = np.zeros(0) if n_targets == 1 else np.zeros((n_targets, 0))
    weight = None if weighing is None else np.zeros(0)
    places, keys = np.zeros((n_many, 0), dtype=np.int32), np.zeros(0, dtype=np.uint64)
    return PartOfRows(number, codes, y, weight, keys, places=places, y_held=y)


def _category(reader: Any) -> Any:
    mask = reader._category_mask()
    return np.zeros(reader._n_encoded, np.uint8) if mask is None else mask.astype(np.uint8)


def _made_part(
    number: int,
    chunk: Chunk,
    reader: Any,
    weighing: Weighing | None,
    edges: tuple[Any, ...],
    many: tuple[int, ...] = (),
    order: tuple[int, ...] = (),
    divisions: tuple[Division | None, Division | None] = (None, None),
    own: tuple[Mask | None, NDArray[np.uint8] | None] = (None, None),
) -> tuple[PartOfRows, Made | None]:
    """Make a block of the rows of a chunk, in bins; its keys are still hashes.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and its rows.
    reader : object
        Copy of the model that encodes rows.
    weighing : Weighing or None
        How weights are scaled if no rows are held out; None: they are not.
    edges : tuple
        Bin edges of each feature.
    many : tuple of int
        Features of which the block keeps the category of each row.
    order : tuple of int
        Order of several targets in hashes.
    divisions : tuple of two (Division or None)
        How the rows are sorted for the mask of held-out rows, and for the folds.
    own : tuple of two (ndarray or None)
        Mask of the held-out rows, and fold of each other row, in the orders of `divisions`; None:
        no rows are held out, or there are no folds.

    Returns
    -------
    part : PartOfRows
        The block.
    made : Made or None
        Ends of its bins, and totals of its targets; None: it has no rows of positive weight.
    """
    (held_division, fold_division), (mask, folds) = divisions, own
    training = training_of(reader, chunk, None)
    if training is None:
        return without_rows(number, reader, weighing, len(edges), len(many)), None
    if held_division is None or mask is None:
        part, made = _coded(number, _scale_weights(training, weighing), reader, edges, many, order)
    else:
        train, held = held_division.split_rows(training, mask)
        part, made = _coded(number, train, reader, edges, many, order)
        part, _ = put_beside(part, held)
        more = digest_of_rows(hashes_of_rows(held, order), held.weight, held.offset)
        part = replace(part, digest=part.digest + more)
    if fold_division is not None and folds is not None:
        unscaled = training
        if held_division is not None and mask is not None:
            unscaled = replace(held_division, weighings=(None, None)).split_rows(training, mask)[0]
        fold_order, fold = fold_division.sort_rows(unscaled)[0], np.empty(part.n, dtype=np.uint8)
        fold_division.expect_rows(len(folds), len(fold_order))
        fold[fold_order] = folds
        part = replace(part, fold=fold)
    return _knowing(part, reader, training), made


def _scale_weights(training: Training, weighing: Weighing | None) -> Training:
    """Return rows whose weights are scaled; `weighing` or their weights may be None."""
    if weighing is None or training.weight is None:
        return training
    return replace(training, weight=weighing(training.weight))


def _knowing(part: PartOfRows, reader: Any, training: Training) -> PartOfRows:
    """A part that knows the hashes by which a classifier knows its rows again."""
    if not is_classifier(reader):
        return part
    return add_hashes(part, training.features.tables, training.y)


def _coded(
    number: int,
    training: Any,
    reader: Any,
    edges: tuple[Any, ...],
    many: tuple[int, ...],
    order: tuple[int, ...],
) -> tuple[PartOfRows, Made]:
    """The part that rows become which train."""
    weight, hashes = training.weight, hashes_of_rows(training, order)
    codes, ends = bin_rows(training.features, edges)
    y = np.ascontiguousarray(training.y.T)
    numbers, digest = y.astype(np.float64), digest_of_rows(hashes, weight, training.offset)
    places = find_category_positions(training.features, {j: edges[j][0] for j in many})
    none_held = numbers[..., :0]
    beside: dict[str, Any] = {"places": places, "y_held": none_held, "offset": training.offset}
    if get_group_names(reader) is not None:
        beside["group"] = training.split.groups
    part = PartOfRows(number, codes, numbers, weight, hashes, digest, **beside)
    return part, Made(ends, sum_targets(part, is_classifier(reader)))


def sum_targets(part: PartOfRows, has_classes: bool) -> Counter[Any]:
    """Sum up the weights and targets of the training rows of a block; see `Made.totals`.

    has_classes: whether targets are class codes.
    """
    totals: Counter[Any] = Counter()
    if has_classes:
        for k, codes in enumerate(np.atleast_2d(part.y)):
            sums = sum_class_weights(codes.astype(np.intp), part.weight)
            totals.update({(k, c): one for c, one in enumerate(sums)})
        return totals
    totals["weight"] = part.n if part.weight is None else exact_sum(part.weight)
    for k, numbers in enumerate(np.atleast_2d(part.y)):
        totals[k] = exact_sum(numbers if part.weight is None else numbers * part.weight)
    return totals


def hashes_of_rows(rows: Training, order: tuple[int, ...]) -> UInt64:
    """Hashes of rows and their targets, of which several stand in an order."""
    y = rows.y[:, list(order)] if order and rows.y.ndim > 1 else rows.y
    return hash_samples(*rows.features.tables, y, order=rows.draw_order)


def digest_of_rows(hashes: UInt64, weight: Float64 | None, offset: Float64 | None = None) -> int:
    """Compute a number by which it is noticed that rows, their weights or offsets have changed."""
    digest = int(hashes.sum(dtype=np.uint64))
    for numbers in (weight, offset):
        if numbers is not None:
            digest += int(numbers.view(np.uint64).sum(dtype=np.uint64))
    return digest
