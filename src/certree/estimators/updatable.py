"""Trees in a fixed box, which rows join and leave as if they had always been there, or never."""

from __future__ import annotations

from math import isclose
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from certree.estimators.tree_vote import TreeVoteEstimator
from certree.grow.grid import Grid
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import check_codes
from certree.interface.fitted_state import (
    available_unless,
    check_parameters_of_fit,
    check_same_parameters,
    fit_method,
    get_snapshot,
)
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads
from certree.rows.categories import Categories
from certree.rows.seen import SeenRows
from certree.rows.training import Training, compute_mean_weight
from certree.tree import Tree

# Parameters that say nothing where nothing is drawn and nothing tuned.
_IGNORED_PARAMETERS = ("cv", "random_state")


def _explain_no_updates(model: Any) -> str | None:
    """What makes a fit more than sums over cells that no row has a part in, and what to say instead."""
    grower, depth = model.grower, model.max_depth
    if not isinstance(grower, Grid) or grower.resolution is not None:
        return (
            "its tree is grown by the rows; expected grower=Grid(box) without a resolution, a box that "
            f"is known without them, got grower={grower!r}"
        )
    if not isinstance(depth, Integral):
        return (
            "its depth follows the number of rows; expected max_depth to be a whole number, got "
            f"max_depth={depth!r}"
        )
    values = zip(model._temperatures, model._get_temperatures(), strict=True)
    if left := [name for name, value in values if value is None]:
        return f"cross-validation chooses {' and '.join(left)}; expected a number, got None"
    if isinstance(getattr(model, "class_weight", None), str):
        return (
            "weights of classes follow their numbers of rows; expected class_weight to be None or a "
            f"dict, got {model.class_weight!r}"
        )
    if model._has_several_targets():
        return f"rows join fits of one target, and this one is of {model.n_outputs_}"
    return None


class UpdatableTree(TreeVoteEstimator):
    """Estimators whose fit, in a box that is given, rows may join and leave.

    Then a fit is a function of sums over the rows of each cell, and what is kept of rows suffices to
    take them again. All else is done as in a fit.
    """

    seen_rows_: SeenRows | None
    # Curves that fit anew would ask for it, too, also of models that have no such method.
    __metadata_request__partial_fit: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}

    def _fit(self, training: Training) -> None:
        if _explain_no_updates(self) is None:
            with self._show_progress([]) as advance:
                self._fit_seen_rows(self._make_seen_rows(training))
                advance()
        else:
            self.seen_rows_ = None
            super()._fit(training)

    def _fit_out_of_core(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, Any, Any] | None:
        self.seen_rows_ = None
        return super()._fit_out_of_core(X, y, sample_weight, groups)

    @available_unless(_explain_no_updates)
    @fit_method
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the fit, which then is that of all rows together, bit by bit.

        The first call is a fit; calls after `fit` go on where it ended. There is such a method where
        rows choose nothing but sums: with a `Grid`, a number as `max_depth`, and inverse temperatures
        or `alpha` that are given.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row, or a number.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, relative to the mean weight of all rows that are there then. A row of
            weight zero is as if absent.
        classes : array-like of shape (K,), or None
            All classes that can come up, at the first call; None: those of its rows.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If the rows have other features, classes or categories than those of the first call, or
            parameters have been set since.
        """
        if classes is not None and not is_classifier(self):
            raise ValueError(f"a regressor has no classes, got classes={classes!r}")
        if not hasattr(self, "tree_"):
            training = self._prepare_training(X, y, sample_weight, classes=classes)
            self._expect_one_target("partial_fit")
            self._fit(training)
            return self
        if classes is not None and not np.array_equal(given := np.unique(classes), self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_}, got {given}"
            )
        seen = self._get_seen_rows("partial_fit")
        self._fit_seen_rows(seen.add(self._take_seen_rows(X, y, sample_weight)))
        return self

    @available_unless(_explain_no_updates)
    @fit_method
    def forget(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Take rows out of the fit, which then is that of the rows left, bit by bit.

        Rows are found by their features, target and weight; of equal rows as many go as are given.
        The box, the classes, the categories and the names of features stay. See `partial_fit` for
        which models have this method.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, as the fit was given them.
        y : array-like of shape (n,)
            Class of each row, or a number.
        sample_weight : array-like of shape (n,), or None
            The weight with which each was given; None: 1 each.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If rows are not among those of the fit, and how many, or if none would be left; the fit
            then is as it was.
        """
        check_is_fitted(self)
        seen = self._get_seen_rows("forget")
        self._fit_seen_rows(seen.remove(self._take_seen_rows(X, y, sample_weight)))
        return self

    @available_unless(_explain_no_updates)
    @fit_method
    def merge(self, other: Self) -> Self:
        """Add the rows of another fit to those of this one, bit by bit as in one fit of all of them.

        See `partial_fit` for which models have this method.

        Parameters
        ----------
        other : estimator of the same class
            A fit with the same parameters, features, categories and classes; it does not change.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError
            If the other is an estimator of another class.
        ValueError
            If it is the model itself, or has other parameters, features, categories or classes.
        """
        if type(other) is not type(self):
            raise TypeError(f"merge takes another {type(self).__name__}, got {other!r}")
        check_is_fitted(self)
        check_is_fitted(other)
        other = get_snapshot(other)
        seen, others = self._get_seen_rows("merge"), other._get_seen_rows("merge")
        if others is seen:
            raise ValueError(
                "merge takes a fit to other rows, got the model itself: to count each of its rows "
                "twice, repeat them in fit"
            )
        check_same_parameters(self, other, *_IGNORED_PARAMETERS)
        for said, name in _COMPARED_ATTRIBUTES.items():
            one, two = (getattr(model, name, None) for model in (self, other))
            if not _are_equal(one, two):
                raise ValueError(f"both fits must have the same {said}, got {one} and {two}")
        self._fit_seen_rows(seen.add(others))
        return self

    def _get_seen_rows(self, asked: str) -> SeenRows:
        """The rows of the fit, which must have been made with the parameters that the model has now."""
        if self.seen_rows_ is None:
            raise ValueError(
                f"{asked} needs what the fit keeps of its rows, and this model has none: it was fitted "
                "with other parameters, made by compact, or saved without"
            )
        check_parameters_of_fit(self, *_IGNORED_PARAMETERS, adds=asked, anew="")
        return self.seen_rows_

    def _make_seen_rows(self, training: Training) -> SeenRows:
        """What is kept of some rows."""
        leaf = self._grow_box().route(training.X, get_n_threads(self.n_jobs))
        return SeenRows.from_rows(
            training.X, training.y, training.weight, leaf, is_classifier(self)
        )

    def _grow_box(self) -> Tree:
        """All cells of the box."""
        self._get_monotonic_signs()
        nowhere = np.zeros((1, self.n_features_in_))
        return self._get_grower().grow(TrainingSamples(nowhere, max_depth=self.max_depth))

    def _fit_seen_rows(self, seen: SeenRows) -> None:
        """Fit to rows by what is kept of them alone."""
        tree = self._grow_box()
        about = seen.weight, compute_mean_weight(seen.weight)
        stats = self._compute_node_stats(tree, seen.leaf, seen.y, *about)
        self._finish_fit(
            tree.with_missing_nodes(_find_nodes_with_missing(tree, seen)), stats, self._tune([])
        )
        self.seen_rows_ = seen
        if is_classifier(self):
            self.sample_hashes_, self._sample_counts = seen.known, seen.repeat_counts

    def _take_seen_rows(self, X: Any, y: Any, sample_weight: Any) -> SeenRows:
        """What is kept of rows that join or leave a fit, which knows their categories."""
        if (known := self.categories_) is not None:
            _check_no_new_categories(known, known.add_categories(X), self._feature_names())
        return self._make_seen_rows(
            self._prepare_training(X, y, sample_weight, reuse_encoding=True)
        )

    # -- files -------------------------------------------------------------------------------------

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit, and what updates go on from."""
        seen = {} if self.seen_rows_ is None else {"seen_rows": self.seen_rows_}
        return {**super().__stored__(), **seen}

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        self.seen_rows_ = None
        if "seen_rows.hashes" in stored:
            self.seen_rows_ = self._check_seen_rows(
                SeenRows.from_stored(stored.get_section("seen_rows"))
            )

    def _check_seen_rows(self, seen: SeenRows) -> SeenRows:
        """Check that rows of a file are those of its fit."""
        if reason := _explain_no_updates(self):
            raise ValueError(f"it holds rows of a fit that none can join: {reason}")
        tree, of_classes = self._grow_box(), is_classifier(self)
        leaf = check_codes("seen_rows.leaf", seen.leaf, len(seen.leaf), tree.n_nodes)
        if not len(leaf) or not tree.is_leaf[leaf].all():
            raise ValueError("seen_rows.leaf must be leaves of the box")
        if of_classes != (seen.y.dtype == np.int32) or of_classes != (seen.rounded is not None):
            raise ValueError("seen_rows must hold classes and hashes of a classifier, or numbers")
        if of_classes:
            check_codes("seen_rows.y", seen.y, len(seen.y), self.n_classes_)
            if not np.array_equal(seen.known, self.sample_hashes_):
                raise ValueError("sample_hashes must be those of seen_rows")
        n, expected = float(seen.weights.sum()), float(self.stats_.n[0])
        if not isclose(n, expected, rel_tol=1e-9):  # earlier versions added up in another order
            raise ValueError(f"the fit is of {expected:g} rows, and seen_rows are {n:g}")
        return seen


def _check_no_new_categories(known: Categories, joined: Categories, features: list[str]) -> None:
    """Refuse categories beside those that are known, which stand behind them."""
    for feature, names, all_names in zip(features, known.names, joined.names, strict=True):
        if names is not None and all_names is not None and len(all_names) > len(names):
            raise ValueError(
                f"feature {feature!r} must hold categories among {[*names]}, those of the first rows, "
                f"got {[*all_names[len(names) :]]}"
            )


# What a fit learns of features and target, and what to call it.
_COMPARED_ATTRIBUTES = {
    "number of features": "n_features_in_",
    "names of features": "feature_names_in_",
    "categories": "categories_",
    "classes": "classes_",
}


def _are_equal(one: Any, two: Any) -> bool:
    """Whether two fits have learned the same."""
    if isinstance(one, Categories) and isinstance(two, Categories):
        return one.equals(two)
    kinds = {np.asarray(known).dtype.kind for known in (one, two)}
    return len(kinds) == 1 and np.array_equal(one, two)


def _find_nodes_with_missing(tree: Tree, seen: SeenRows) -> NDArray[np.bool_]:
    """Nodes of a box at which some row lacks the value that is compared there, (m,)."""
    lacking = np.zeros(tree.n_nodes, dtype=bool)
    if seen.lacks is None:
        return lacking
    some = np.flatnonzero(seen.lacks)
    node, lacks, parent = seen.leaf[some], seen.lacks[some], tree.parent
    for _ in range(tree.depth):  # all leaves are as deep
        node = parent[node]
        lacking[node[(lacks >> tree.feature[node]) & 1 > 0]] = True
    return lacking
