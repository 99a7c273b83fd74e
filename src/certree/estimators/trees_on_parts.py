"""Fits of single trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree.grow.cart import Cart
from certree.grow.growing import limit_of_depth
from certree.interface.threads import threads
from certree.parts.exact_sums import rounded
from certree.parts.executors import Executor
from certree.parts.first_look import learn
from certree.parts.fit_hashes import hashes_of_fit
from certree.parts.made_parts import make_parts, sketched, warn_of_identifiers
from certree.parts.part import PartOfRows
from certree.parts.rows_elsewhere import rows_elsewhere
from certree.parts.tree_of_parts import GrowthOfParts, grow_on_parts
from certree.stats import Stats
from certree.stats.in_any_order import (
    Ask,
    RowsInLeaves,
    counted_in_any_order,
    measured_in_any_order,
)
from certree.tree import Tree


def fit_elsewhere(model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
    """Fit a tree and the vote of its prunings to rows in files or on a cluster.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model.
    X, y, sample_weight
        As `rows_elsewhere` takes them.
    groups : object
        None: rows are dealt to no folds.

    Raises
    ------
    ValueError, TypeError
        If the fit is one that takes rows in memory, or rows are wrong.
    """
    _expect_what_parts_can(model, groups)
    shown = model.verbose > 0
    with rows_elsewhere(X, y, sample_weight, threads(model.n_jobs), shown=shown) as parts:
        fit_tree_on_parts(model, parts)


def fit_tree_on_parts(model: Any, parts: Executor) -> None:
    """The same of rows that an executor holds."""
    grower: Any = _expect_cart(model)
    learned = learn(model, parts)
    learned.teach(model)
    weighing, found = learned.weighing, learned.found
    are_copies = weighing is not None and weighing.are_copies
    # Others count by what they weigh: nothing is in units of their mean.
    known = sketched(parts, learned.reader, weighing if are_copies else None)
    warn_of_identifiers(model, known.sketch)
    bins, _ = make_parts(parts, learned.reader, known, grower.max_bins)
    if is_classifier(model):
        model.sample_hashes_ = hashes_of_fit(parts, known.n)
    is_weighed = weighing is not None and not are_copies
    n = rounded(found.total()) if is_weighed else float(known.n)
    growth = GrowthOfParts(
        limit_of_depth(model.max_depth, model.n_features_in_, n),
        model._slopes(),
        model._category_mask(),
        int(check_random_state(model.random_state).randint(2**31 - 1)),
        model.n_jobs,
    )
    tree, lacking = grow_on_parts(
        grower, parts, found, bins, known.n, growth, is_weighed=is_weighed
    )
    stats = _stats(model, tree, partial(parts.collect, _asked))
    model._vote(tree.lacking_at(lacking), stats, model._tuned([]))


def _asked(part: PartOfRows, f: Any, *given: Any) -> Any:
    """Ask the rows of a part that know their leaves."""
    return f(RowsInLeaves(np.asarray(part.leaf), part.y, part.weight), *given)


def _stats(model: Any, tree: Tree, ask: Ask) -> Stats:
    if not is_classifier(model):
        return measured_in_any_order(tree, ask)
    leaf, y, weight = counted_in_any_order(ask, model._lanes.n_of[0])
    stats: Stats = model._summarise(tree, leaf, y, weight)
    return stats


def _expect_cart(model: Any) -> Cart:
    """The grower, which must be one that sums over bins suffice for."""
    grower = model._grower_of(model.grower)
    if not isinstance(grower, Cart) or grower.max_bins is None:
        raise ValueError(
            "rows that lie elsewhere take grower=Cart(max_bins=255), or fewer bins, got "
            f"grower={model.grower!r}"
        )
    grower.expect_settings_on_bins()
    return grower


def _expect_what_parts_can(model: Any, groups: Any) -> None:
    """Refuse what takes rows in memory, by its name."""
    _expect_cart(model)
    if groups is not None:
        raise ValueError("groups takes rows in memory, got X that lies elsewhere")
    for name, value in zip(model._temperatures, model._given(), strict=True):
        if value is None:
            raise ValueError(
                f"{name}=None is chosen by folds of rows in memory, got X that lies elsewhere: set "
                f"{name}"
            )
