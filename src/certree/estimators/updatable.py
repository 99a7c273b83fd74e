"""Trees on a fixed box, which rows can be added to and removed from exactly."""

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
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import get_n_threads
from certree.out_of_core.time_split import TimeArguments
from certree.rows.categories import Categories
from certree.rows.seen import SeenRows
from certree.rows.training import Training, compute_mean_weight
from certree.tree import Tree

# Parameters that have no effect if nothing is random and nothing tuned.
_IGNORED_PARAMETERS = ("cv", "random_state")


def _explain_no_updates(model: Any) -> str | None:
    """Return why a model lacks `partial_fit`, `forget` and `merge`, or None if it has them.

    It has them if its tree does not depend on the rows, so that a fit only computes sums over rows
    in its nodes: with grower=Grid(box), an integer max_depth, all inverse temperatures (or alpha)
    set to numbers, class weights that do not depend on the rows, and a single target. The text
    names a parameter and what it must be. Inverse temperatures are the factors of loss and size in
    the log weight of a pruning (the tree with some nodes turned into leaves). model: an estimator,
    fitted or not.
    """
    grower, depth = model.grower, model.max_depth
    if not isinstance(grower, Grid) or grower.resolution is not None:
        return (
            "grower must be Grid(box) without a resolution, so that the tree does not depend on the "
            f"rows, got {grower!r}"
        )
    if not isinstance(depth, Integral):
        return (
            "max_depth must be an integer, so that the tree does not depend on the number of rows, got "
            f"{depth!r}"
        )
    values = zip(model._temperatures, model._get_temperatures(), strict=True)
    if free := [name for name, value in values if value is None]:
        names = " and ".join(free)
        return f"{names} must be set to a number, as cross-validation needs all rows, got None"
    if isinstance(getattr(model, "class_weight", None), str):
        return (
            "class_weight must be None or a dict, so that weights do not depend on the rows, got "
            f"{model.class_weight!r}"
        )
    if model._has_several_targets():
        return f"y must have a single target, got {model.n_outputs_} columns"
    return None


class UpdatableTree(TreeVoteEstimator):
    """Base class of estimators that rows can be added to and removed from, if their tree is fixed.

    With grower=Grid(box), which halves a box whatever the rows are, an integer max_depth, all
    inverse temperatures (or alpha) set, no "balanced" class weights and a single target, a fit is a
    function of sums over the rows of each leaf. The model keeps hash, leaf, target and weight of
    each row in `seen_rows_`, from which these sums are computed again. Other models are fitted as
    usual, and have no `partial_fit`, `forget` and `merge`. Inverse temperatures are the factors of
    loss and size in the log weight of a pruning (the tree with some nodes turned into leaves).

    Attributes
    ----------
    seen_rows_ : SeenRows or None
        What the model keeps of each training row; None if it cannot be updated.
    """

    seen_rows_: SeenRows | None
    # Without this, scikit-learn would request sample_weight of models that lack partial_fit, too.
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
        self, X: Any, y: Any, sample_weight: Any, groups: Any, order: TimeArguments | None
    ) -> tuple[Any, Any, Any, Any, Any] | None:
        self.seen_rows_ = None
        return super()._fit_out_of_core(X, y, sample_weight, groups, order)

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
        """Add rows to the fit; the model is then exactly that of a fit to all rows together.

        The first call is a fit; calls after `fit` add to its rows. The method exists only with
        grower=Grid(box), an integer `max_depth`, all inverse temperatures (or `alpha`) set to
        numbers, class weights that are not "balanced", and a single target, so that rows only enter
        sums.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to add; NaN is a missing value.
        y : array-like of shape (n,)
            Class of each row, or a number.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, in the same unit in all calls; None: 1. Only ratios to the mean
            weight of all rows matter. Rows of weight zero are left out.
        classes : array-like of shape (K,), or None
            For classifiers, all classes that may occur in any call; it has to be passed to the
            first call, or the classes are those of its rows.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If the rows have other features, classes or categories than those of the first call, or
            parameters have changed since then.
        """
        if classes is not None and not is_classifier(self):
            raise ValueError(f"classes must be None for a regressor, got {classes!r}: leave it out")
        if not hasattr(self, "tree_"):
            training = self._prepare_training(X, y, sample_weight, classes=classes)
            self._expect_one_target("partial_fit")
            self._fit(training)
            return self
        if classes is not None and not np.array_equal(present := np.unique(classes), self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_}, got {present}: leave "
                "classes out, or call fit"
            )
        seen = self._get_seen_rows("partial_fit")
        self._fit_seen_rows(seen.add(self._take_seen_rows(X, y, sample_weight)))
        return self

    @available_unless(_explain_no_updates)
    @fit_method
    def forget(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows from the fit; the model is then exactly that of a fit to the other rows.

        Rows are found by their features, target and weight. If several rows of the fit are equal,
        as many of them are removed as X holds. Classes, categories and feature names do not change.
        The method exists under the same conditions as `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to remove, as they were passed to the fit.
        y : array-like of shape (n,)
            Class of each row, or a number.
        sample_weight : array-like of shape (n,), or None
            Weight with which each row was passed to the fit; None: 1.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If some rows are not among those of the fit (the message has their number), or no row
            would be left. The model does not change then.
        """
        check_is_fitted(self)
        seen = self._get_seen_rows("forget")
        self._fit_seen_rows(seen.remove(self._take_seen_rows(X, y, sample_weight)))
        return self

    @available_unless(_explain_no_updates)
    @fit_method
    def merge(self, other: Self) -> Self:
        """Add the rows of another fit; the model is then exactly that of a fit to all rows together.

        The method exists under the same conditions as `partial_fit`.

        Parameters
        ----------
        other : estimator of the same class
            A fitted model with the same parameters, features, categories and classes; it does not
            change.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        TypeError
            If `other` is an estimator of another class.
        ValueError
            If `other` is this model, or has other parameters, features, categories or classes.
        """
        if type(other) is not type(self):
            raise TypeError(f"other must be a fitted {type(self).__name__}, got {other!r}")
        check_is_fitted(self)
        check_is_fitted(other)
        other = get_snapshot(other)
        seen, others = self._get_seen_rows("merge"), other._get_seen_rows("merge")
        if others is seen:
            raise ValueError(
                "other, the model to merge, must be fitted to other rows, got the model itself or a "
                "copy: to count each row twice, repeat the rows in fit"
            )
        check_same_parameters(self, other, *_IGNORED_PARAMETERS)
        for description, name in _COMPARED_ATTRIBUTES.items():
            values = [getattr(model, name, None) for model in (self, other)]
            if not _are_equal(*values):
                raise ValueError(
                    f"other must be a fit with the same {description}, got {values[1]} instead of "
                    f"{values[0]}"
                )
        if self.dates_ is not None and other.dates_ is not None:
            self.dates_ = {j: one + other.dates_[j] for j, one in self.dates_.items()}
        self._fit_seen_rows(seen.add(others))
        return self

    def _get_seen_rows(self, caller: str) -> SeenRows:
        """Return `seen_rows_`: hash, leaf, target, weight, missing features of each training row.

        The hash is that of the row's features. caller: name of the calling method, such as
        "forget", for messages. Raise ValueError if the model keeps nothing, or its parameters have
        changed since the fit.
        """
        if self.seen_rows_ is None:
            raise ValueError(
                f"{caller} needs seen_rows_, but the model has none, as it was fitted with other "
                "parameters, comes from compact, or was saved without it: call fit with all its rows "
                "again, with parameters that allow updates"
            )
        check_parameters_of_fit(self, *_IGNORED_PARAMETERS, extension=caller, refit_hint="")
        return self.seen_rows_

    def _make_seen_rows(self, training: Training) -> SeenRows:
        """Return what the model keeps of each training row.

        That is a hash of its features, its leaf in the tree of ``grower=Grid(box)``, its target,
        its weight and which features are missing.

        training: the encoded rows.
        """
        leaf = self._grow_box().route(training.X, get_n_threads(self.n_jobs))
        return SeenRows.from_rows(
            training.X, training.y, training.weight, leaf, is_classifier(self)
        )

    def _grow_box(self) -> Tree:
        """Return the tree that halves the box of ``grower=Grid(box)`` down to `max_depth`.

        Each split halves the box of its node. The tree does not depend on any rows, and all its
        leaves have the depth `max_depth`.
        """
        self._get_monotonic_signs()
        nowhere = np.zeros((1, self._n_encoded))
        return self._get_grower().grow(TrainingSamples(nowhere, max_depth=self.max_depth))

    def _fit_seen_rows(self, seen: SeenRows) -> None:
        """Set the fitted attributes from what the model keeps of its training rows.

        seen: hash, leaf, target, weight and missing features of all training rows; it becomes
        `seen_rows_`. The attributes are those of `fit`: the tree, its node statistics, the
        posterior weights of its prunings (the tree with some nodes turned into leaves), and their
        vote; classifiers also get `sample_hashes_`.
        """
        tree = self._grow_box()
        unit = compute_mean_weight(seen.weight)
        stats = self._compute_node_stats(tree, seen.leaf, seen.y, seen.weight, unit)
        self._finish_fit(
            tree.with_missing_nodes(_find_nodes_with_missing(tree, seen)), stats, self._tune([])
        )
        self.seen_rows_ = seen
        if is_classifier(self):
            self.sample_hashes_, self._sample_counts = seen.known, seen.repeat_counts

    def _take_seen_rows(self, X: Any, y: Any, sample_weight: Any) -> SeenRows:
        """Check rows that are added or removed, and return what `seen_rows_` would keep of them.

        That is a hash of the features, leaf, target, weight and missing features; `seen_rows_` does
        not change. X: rows as `partial_fit` takes them, (n, p); y: class or number of each row,
        (n,); sample_weight: their weights, (n,), or None for 1 each. Raise ValueError if they have
        other features, classes or categories than the fit.
        """
        if (categories := self.categories_) is not None:
            _check_no_new_categories(
                categories, categories.add_categories(X), self._feature_names()
            )
        return self._make_seen_rows(
            self._prepare_training(X, y, sample_weight, reuse_encoding=True)
        )

    # -- files -------------------------------------------------------------------------------------

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        **TreeVoteEstimator._stored_fields,
        "seen_rows": StoredField.record("seen_rows_", SeenRows, default=None),
    }

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the restored rows of the fit, `seen_rows_`, against the model.

        Raise ValueError if they do not fit together. stored: the content of the model file.
        """
        super()._finish_restore(stored)
        if self.seen_rows_ is not None:
            self._check_seen_rows(self.seen_rows_)

    def _check_seen_rows(self, seen: SeenRows) -> None:
        """Raise ValueError if restored training rows, `seen`, do not fit the model.

        They are hash, leaf, target and weight of each training row. Their leaves must be leaves of
        the tree of ``Grid(box)``, their classes those of the model, their hashes those of
        `sample_hashes_` (of the fitted rows, for leakage checks), and their total weight that of
        the node statistics.
        """
        if reason := _explain_no_updates(self):
            raise DamagedModelError(
                "the model file must not have seen_rows, the rows for updates, with its "
                f"parameters: {reason}"
            )
        tree, has_classes = self._grow_box(), is_classifier(self)
        leaf = check_codes("seen_rows.leaf", seen.leaf, len(seen.leaf), tree.n_nodes)
        if not len(leaf) or not tree.is_leaf[leaf].all():
            raise DamagedModelError(
                "the model file's seen_rows.leaf must hold indices of leaves of the tree that "
                "Grid(box) grows, got other nodes or none"
            )
        if has_classes != (seen.y.dtype == np.int32) or has_classes != (seen.rounded is not None):
            raise DamagedModelError(
                "the model file must have seen_rows.y of int32 and seen_rows.rounded for a classifier, "
                f"or only seen_rows.y of float64 for a regressor, got seen_rows.y of {seen.y.dtype}"
            )
        if has_classes:
            check_codes("seen_rows.y", seen.y, len(seen.y), self.n_classes_)
            if not np.array_equal(seen.known, self.sample_hashes_):
                raise DamagedModelError(
                    "the model file's hashes of the fitted rows (sample_hashes) must equal those of "
                    "the rows stored for updates (seen_rows)"
                )
        n, expected = float(seen.weights.sum()), float(self.stats_.n[0])
        if not isclose(n, expected, rel_tol=1e-9):  # earlier versions added up in another order
            raise DamagedModelError(
                f"the model file's seen_rows must have the total weight {expected:g} of stats, got "
                f"{n:g}"
            )


def _check_no_new_categories(known: Categories, joint: Categories, features: list[str]) -> None:
    """Raise ValueError if a feature has categories that it did not have in the first fit.

    known: names of the categories of each feature in the rows of the first fit; joint: the same
    with new categories of the rows to add or remove appended; features: names of the features, for
    the message.
    """
    for feature, names, all_names in zip(features, known.names, joint.names, strict=True):
        if names is not None and all_names is not None and len(all_names) > len(names):
            raise ValueError(
                f"feature {feature!r} must have categories among {[*names]}, as in the first rows, "
                f"got {[*all_names[len(names) :]]}: fit the model again to all rows"
            )


# Fitted attributes that must be equal in models to merge, by their description in messages.
_COMPARED_ATTRIBUTES = {
    "number of features": "n_features_in_",
    "names of features": "feature_names_in_",
    "categories": "categories_",
    "dates": "dates_",
    "classes": "classes_",
}


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two values of a fitted attribute are equal, in values and kind of dtype.

    Columns of dates are equal if they can replace each other. first, second: arrays, categories,
    columns of dates or None.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        are_same = first.keys() == second.keys()
        return are_same and all(
            one.takes(second[j]) and one.parts == second[j].parts for j, one in first.items()
        )
    if isinstance(first, Categories) and isinstance(second, Categories):
        return first.equals(second)
    kinds = {np.asarray(value).dtype.kind for value in (first, second)}
    return len(kinds) == 1 and np.array_equal(first, second)


def _find_nodes_with_missing(tree: Tree, seen: SeenRows) -> NDArray[np.bool_]:
    """Return the splits at which some training row lacks the value that the split tests, (m,) bool.

    False for all other nodes. tree: the tree that halves the box, with m nodes; seen: node number
    of the leaf, whose ancestors are the splits that a row passes, and missing features of each
    training row.
    """
    has_missing = np.zeros(tree.n_nodes, dtype=bool)
    if seen.lacks is None:
        return has_missing
    rows = np.flatnonzero(seen.lacks)
    node, bits, parent = seen.leaf[rows], seen.lacks[rows], tree.parent
    for _ in range(tree.depth):  # all leaves are as deep
        node = parent[node]
        has_missing[node[(bits >> tree.feature[node]) & 1 > 0]] = True
    return has_missing
