"""Naive Bayes for numbers and categories: within a class, features are taken as independent."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.estimators.naive_bayes.densities import (
    KINDS,
    RULES,
    CategoricalTable,
    Density,
    Histogram,
    Moments,
    Normal,
    compute_bin_edges,
    prefers_histogram,
    restore_densities,
    restore_moments,
    store_columns,
    store_densities,
)
from certree.estimators.naive_bayes.divergences import compute_divergences
from certree.estimators.naive_bayes.powers import (
    POWERS,
    PowerLosses,
    compute_power_losses,
    subtract_marginal,
)
from certree.explain.explanation import Explanation, build_explanation_fields
from certree.interface.arrays import (
    MAX_TOTAL_WEIGHT,
    Float64,
    Int32,
    check_column,
    has_finite_total,
)
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import NONNEGATIVE, POSITIVE
from certree.interface.stored_state import StoredState
from certree.rows.categories import CategoricalFeatures, Categories, CategoryNames, learn_categories
from certree.rows.columns import as_data_frame
from certree.rows.training import (
    RowInputMixin,
)

# More bins than any table has rows that tell them apart.
_MOST_BINS = 10**6

_CHOICES = ("auto", *KINDS)


def resolve_densities(
    densities: Any, n_features: int, names: Sequence[str] | None = None
) -> list[str]:
    """Say for each feature which density a string, a list or a dictionary asks for.

    Parameters
    ----------
    densities : str, sequence of str, or dict of str
        One for all features, one for each, or by the names of some, "auto" for the others.
    n_features : int
        Number of features.
    names : sequence of str, or None
        Names of the features.

    Returns
    -------
    list of {"auto", "normal", "histogram", "categorical"}

    Raises
    ------
    ValueError
        If a density or a name is unknown, or a list has another length.
    """
    if isinstance(densities, str):
        choices = [densities] * n_features
    elif isinstance(densities, dict):
        if names is None:
            raise ValueError(
                f"densities names features, got {list(densities)!r}, but X has no feature names"
            )
        unknown = [name for name in densities if name not in names]
        if unknown:
            raise ValueError(f"densities must be of features among {list(names)}, got {unknown}")
        choices = [densities.get(name, "auto") for name in names]
    else:
        choices = list(densities)
        if len(choices) != n_features:
            raise ValueError(
                f"densities must be one for each of {n_features} features, got {len(choices)}"
            )
    wrong = [choice for choice in choices if choice not in _CHOICES]
    if wrong:
        raise ValueError(f"densities must be among {list(_CHOICES)}, got {wrong[0]!r}")
    return [str(choice) for choice in choices]


def _get_counts(density: Any) -> Float64:
    """Rows of each class and category, or bin, (K, B)."""
    counts: Float64 = (density.table if isinstance(density, Histogram) else density).counts
    return counts


class NaiveBayesClassifier(ClassifierMixin, RowInputMixin, BaseEstimator):
    """Naive Bayes for tables of numbers and categories, with missing values.

    The posterior of a class is its prior times the densities of the features in it. A feature has a
    normal density, a histogram or a table of categories. Values that are missing and categories that
    were not seen in training are left out of the product.

    Parameters
    ----------
    densities : {"auto", "normal", "histogram", "categorical"}, list or dict of these, default="auto"
        Density of all features, of each feature, or of features by their names (the others are
        "auto"). "categorical" makes any feature one of categories. "auto" is "categorical" for
        features of categories; for numbers it is the density, normal or histogram, with the larger
        leave-one-out log likelihood; see `certree.densities.prefers_histogram`.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories: those of a data frame with a dtype of categories, strings or
        objects, or those of a mask, of indices or of names; None: none.
    bins : int or {"auto", "fd", "sturges"}, default="auto"
        Number of bins of a histogram, all of the same width, or the rule that chooses it: Freedman
        and Diaconis', Sturges', or the larger number of the two, as in NumPy.
    alpha : float, default=1
        Rows of mean weight of each class that every category and every bin is given besides; as in
        CategoricalNB.
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features of numbers that is added to the variances of
        normal densities; as in GaussianNB.
    power : float in 0 .. 1 or "auto", default="auto"
        Power of the product of the densities. Less than 1 makes up for features that say the same
        twice, and for densities learned from few rows, which make naive Bayes too sure of itself.
        "auto": the power with the smallest log loss on the training rows, each left out in its turn.
        1: naive Bayes as in lectures, the product of the prior and the densities; GaussianNB and
        CategoricalNB are this.
    priors : array-like of shape (K,), or None, default=None
        Prior probabilities of the classes in their order; None: their shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn. They change the priors, so priors must be None.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them; None if loaded from a file that
        was saved without.
    class_count_ : ndarray of shape (K,)
        Number (or weight) of the rows of each class.
    class_prior_ : ndarray of shape (K,)
        Prior probability of each class.
    power_ : float
        Power of the densities, given or chosen.
    densities_ : list of Normal, Histogram or CategoricalTable
        The density of each feature; `kind` says which it is.
    feature_importances_ : ndarray of shape (p,)
        Share of each feature in what features say of the class, each by itself: mutual information.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Hand and Yu, "Idiot's Bayes - not so stupid after all?", International Statistical Review 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certree import NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayesClassifier().fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "densities": [StrOptions(set(_CHOICES)), dict, "array-like"],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "bins": [Interval(Integral, 1, _MOST_BINS, closed="both"), StrOptions(set(RULES))],
        "alpha": [POSITIVE],
        "var_smoothing": [NONNEGATIVE],
        "power": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "priors": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    # Rows of positive weight that were learned from; None: not known, as of earlier versions.
    _n_rows: int | None

    # An identifier is one factor of a product here.
    _splits_categories = False

    def __init__(
        self,
        densities: Any = "auto",
        *,
        categorical_features: CategoricalFeatures = "from_dtype",
        bins: int | str = "auto",
        alpha: float = 1.0,
        var_smoothing: float = 1e-9,
        power: float | str = "auto",
        priors: ArrayLike | None = None,
        class_weight: Any = None,
    ) -> None:
        self._set_parameters(locals())

    # -- training ----------------------------------------------------------------------------------

    @fit_method
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose and learn the density of each feature in each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, relative to the mean weight; a row is one draw whatever it weighs.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_batch(X, y, sample_weight, first=True, classes=None)

    @fit_method
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows.

        Normal densities and tables of categories need nothing but the rows: batches give what `fit`
        gives on all rows together, to rounding. Categories that come up later are learned then. The
        first batch decides for good the edges of histograms and which density "auto" means for
        numbers. Make it a large one if there are some.

        The power "auto" is chosen anew with every batch. A row is judged once, with its batch: by
        all rows learned so far but itself. Rows that were judged by less than a quarter of the rows
        learned since are forgotten. Calls after `fit` go on where it ended.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        classes : array-like of shape (K,), or None
            All classes that can come up; needed at the first call.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, relative to the mean weight of all rows that have been learned from.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If the model was read from a file of an earlier version, which does not say of how many rows
            it is.
        """
        if isinstance(self.class_weight, str):
            raise ValueError('class_weight="balanced" needs all rows at once; use fit')
        first = not hasattr(self, "densities_")
        if not first and self._n_rows is None:
            raise ValueError(
                "partial_fit must know the number of rows of the fit, which files of earlier versions "
                "of certree do not hold: fit the model again"
            )
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if classes is not None:
            classes = np.unique(classes)
            if not first and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {self.classes_}, got {classes}"
                )
        return self._fit_batch(X, y, sample_weight, first, classes)

    def _fit_batch(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Any, first: bool, classes: Any
    ) -> Self:
        if self.priors is not None and self.class_weight is not None:
            raise ValueError("priors and class_weight contradict each other: give one of them")
        training = self._prepare_training(
            X, y, sample_weight, classes=classes, reuse_encoding=not first
        )
        rows, codes = training.X.astype(np.float64), training.y
        weight = np.ones(len(codes)) if training.weight is None else training.weight
        self._n_rows = len(codes) + (0 if first or self._n_rows is None else self._n_rows)
        if first:
            self._fit_first_batch(rows, codes, weight)
        else:
            self._add_batch(rows, codes, weight)
        self.class_prior_ = self._compute_priors()
        self._set_power(rows, codes, weight)
        return self

    def _find_categories(self, X: Any, reuse_encoding: bool) -> Categories | None:
        """The categories of the features that hold some, or are to; later rows may have more."""
        if reuse_encoding:
            return None if self.categories_ is None else self.categories_.add_categories(X)
        categories = learn_categories(X, self.categorical_features)
        if isinstance(self.densities, str) and self.densities == "auto":
            return categories
        frame = as_data_frame(X)
        names = None if frame is None else frame.columns
        given = check_array(X, dtype=None, ensure_all_finite=False) if frame is None else frame
        choices = resolve_densities(self.densities, given.shape[1], names)
        asked = np.array([choice == "categorical" for choice in choices])
        held = np.zeros_like(asked) if categories is None else categories.mask
        for j in np.flatnonzero(held):
            if choices[j] not in ("auto", "categorical"):
                raise ValueError(
                    f"feature {j if names is None else names[j]!r} holds categories: its density "
                    f"must be 'auto' or 'categorical', got {choices[j]!r}"
                )
        return Categories.learn(X, asked | held) if (asked & ~held).any() else categories

    def _orders_categories_by_rows(self) -> bool:
        return False  # later rows may have more of them, and sums go by no order

    def _fit_first_batch(self, rows: Float64, y: Int32, weight: Float64) -> None:
        """Choose the densities, and learn them from the first rows."""
        self._power_losses = PowerLosses.empty()
        self.class_count_ = np.bincount(y, weight, len(self.classes_)).astype(np.float64)
        self._moments = {
            j: Moments.from_rows(x, y, weight, len(self.classes_))
            for j, x in enumerate(rows.T)
            if self._get_category_names(j) is None
        }
        self._check_finite()
        floor = self._compute_floor()
        names = getattr(self, "feature_names_in_", None)
        choices = resolve_densities(self.densities, self.n_features_in_, names)
        self.densities_ = [
            self._choose_density(j, choice, floor, rows[:, j], y, weight)
            for j, choice in enumerate(choices)
        ]

    def _choose_density(
        self, j: int, choice: str, floor: float, x: Float64, y: Int32, weight: Float64
    ) -> Density:
        """The density of feature j, learned from the first rows."""
        n_classes, names = len(self.classes_), self._get_category_names(j)
        if names is not None:
            # Where no category is known, the table has a place that no row will ask for.
            table = CategoricalTable.empty(n_classes, max(1, len(names)), self._compute_smoothing())
            return table.add_rows(x, y, weight)
        if choice == "normal":
            return self._make_normal(j, floor)
        empty = Histogram.empty(
            compute_bin_edges(x, self.bins), n_classes, self._compute_smoothing()
        )
        histogram = empty.add_rows(x, y, weight)
        moments = self._moments[j]
        if choice == "histogram" or prefers_histogram(x, y, weight, moments, floor, histogram):
            return histogram
        return self._make_normal(j, floor)

    def _add_batch(self, rows: Float64, y: Int32, weight: Float64) -> None:
        """Add rows to the densities that were chosen."""
        n_classes = len(self.classes_)
        self.class_count_ = self.class_count_ + np.bincount(y, weight, n_classes)
        self._moments = {
            j: moments.merge(Moments.from_rows(rows[:, j], y, weight, n_classes))
            for j, moments in self._moments.items()
        }
        self._check_finite()
        floor = self._compute_floor()
        self.densities_ = [
            self._update_density(j, density, floor, rows[:, j], y, weight)
            for j, density in enumerate(self.densities_)
        ]

    def _update_density(
        self, j: int, density: Density, floor: float, x: Float64, y: Int32, weight: Float64
    ) -> Density:
        """The density of feature j with more rows."""
        if isinstance(density, Normal):
            return self._make_normal(j, floor)
        if isinstance(density, CategoricalTable):
            density = density.pad(len(self._get_category_names(j) or ()))
        return density.with_alpha(self._compute_smoothing()).add_rows(x, y, weight)

    def _compute_smoothing(self) -> float:
        """Weight that every category and every bin of a class is given besides its rows."""
        assert self._n_rows is not None
        return float(self.alpha) * float(self.class_count_.sum()) / self._n_rows

    def _check_finite(self) -> None:
        """Refuse sums that float64 does not hold; predictions by them would be NaN."""
        if not has_finite_total(self.class_count_):
            raise ValueError(f"the weights of all rows must sum to at most {MAX_TOTAL_WEIGHT:g}")
        names = self._feature_names()
        for j, moments in self._moments.items():
            if not (np.isfinite(moments.mean).all() and np.isfinite(moments.deviation).all()):
                raise ValueError(
                    f"the mean or the deviation of feature {names[j]!r} is too large for a "
                    "float64: multiply it by a small constant"
                )

    def _compute_floor(self) -> float:
        """Root of what is added to the variances of normal densities."""
        spreads = [moments.pool_classes()[1] for moments in self._moments.values()]
        largest = max(spreads, default=0.0)
        # Where no feature varies any width will do: the classes have the same density.
        return sqrt(self.var_smoothing) * (largest or 1.0)

    def _make_normal(self, j: int, floor: float) -> Normal:
        normal = self._moments[j].make_normal(floor)
        if not normal.deviation.all():
            name, label = self._feature_names()[j], self.classes_[normal.deviation.argmin()]
            raise ValueError(
                f"feature {name!r} does not vary within class {label!r}: a normal density "
                "needs var_smoothing > 0 there"
            )
        return normal

    def _compute_priors(self) -> Float64:
        shares: Float64 = self.class_count_ / self.class_count_.sum()
        if self.priors is None:
            return shares
        priors: Float64 = check_column("priors", self.priors, "float64", (None,))
        if priors.shape != shares.shape:
            raise ValueError(
                f"priors must be one for each of {len(shares)} classes, got shape {priors.shape}"
            )
        if not (priors >= 0).all():
            raise ValueError(f"priors must be non-negative, got {priors}")
        if not np.isclose(priors.sum(), 1.0):
            raise ValueError(f"priors must sum to 1, got the sum {priors.sum():.6g}")
        denied = self.classes_[(priors == 0) & (shares > 0)]
        if len(denied):
            raise ValueError(f"priors of 0 contradict rows of the classes {denied}")
        return priors

    def _set_power(self, rows: Float64, y: Int32, weight: Float64) -> None:
        if not isinstance(self.power, str):
            self.power_ = float(self.power)
            return
        product = self._compute_log_product(rows)
        product[np.arange(len(y)), y] = self._compute_left_out(rows, y, weight)
        losses = compute_power_losses(self._log_prior, product, y, weight)
        self._power_losses = self._power_losses.add_batch(losses, float(self._n_rows or 0))
        self.power_ = self._power_losses.best_power

    def _compute_left_out(self, rows: Float64, y: Int32, weight: Float64) -> Float64:
        """Log of all densities multiplied, of each row in its class after it was left out, (n,)."""
        floor, total = self._compute_floor(), np.zeros(len(rows))
        for j, density in enumerate(self.densities_):
            row = rows[:, j], y, weight
            if isinstance(density, Normal):
                total += self._moments[j].compute_left_out(*row, floor)
            else:
                total += density.compute_left_out(*row)
        return total

    # -- files -------------------------------------------------------------------------------------

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit, and what `partial_fit` goes on from."""
        n_classes = len(self.classes_)
        moments = [self._moments[j] for j in sorted(self._moments)]
        return {
            **super().__stored__(),
            "class_count": self.class_count_,
            **({} if self._n_rows is None else {"n_rows": self._n_rows}),
            "class_prior": self.class_prior_,
            "power": float(self.power_),
            "judged": self._power_losses,
            "densities": [density.kind for density in self.densities_],
            **store_columns("moments", moments, n_classes),
            **store_densities(self.densities_, n_classes),
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        n_classes = len(self.classes_)
        self.class_count_ = stored.get_numbers("class_count", (n_classes,), 0)
        if not self.class_count_.any() or not has_finite_total(self.class_count_):
            raise ValueError("class_count holds no rows, or too many to be added up")
        # Files of earlier versions do not hold it.
        self._n_rows = stored.get_integer("n_rows", 1) if "n_rows" in stored else None
        self.class_prior_ = stored.get_numbers("class_prior", (n_classes,), 0, 1 + 1e-6)
        if not np.isclose(self.class_prior_.sum(), 1):
            raise ValueError(f"class_prior must sum to 1, got {self.class_prior_.sum()}")
        if (self.class_count_[self.class_prior_ == 0] > 0).any():
            raise ValueError("class_prior is 0 for a class with rows")
        self.power_ = stored.get_number("power", 0, 1)
        judged = stored.get_section("judged")
        losses = (judged.get_numbers(name, POWERS.shape) for name in ("older", "recent"))
        self._power_losses = PowerLosses(judged.get_number("rows", 0, np.inf), *losses)
        kinds = self._check_kinds(stored["densities"])
        of_numbers = [j for j, kind in enumerate(kinds) if kind != "categorical"]
        moments = restore_moments(stored, (len(of_numbers), n_classes))
        self._moments = dict(zip(of_numbers, moments, strict=True))
        self.densities_ = restore_densities(stored, kinds, n_classes)
        self._check_counts()

    def _check_kinds(self, kinds: Any) -> list[str]:
        """The kinds of the densities, which go with what features hold."""
        if not isinstance(kinds, list) or len(kinds) != self.n_features_in_:
            raise ValueError(f"expected densities of {self.n_features_in_} features, got {kinds!r}")
        for j, kind in enumerate(kinds):
            held = self._get_category_names(j) is not None
            possible = ("categorical",) if held else ("normal", "histogram")
            if kind not in possible:
                raise ValueError(f"the density of feature {j} must be {' or '.join(possible)}")
        return kinds

    def _check_counts(self) -> None:
        """No feature is known of more rows than a class has, or has other categories than named."""
        # But for what rounding adds.
        most = self.class_count_ * (1 + 1e-6)
        for j, density in enumerate(self.densities_):
            names = self._get_category_names(j)
            if j in self._moments and (self._moments[j].rows > most).any():
                raise ValueError("moments.rows counts more rows than class_count")
            if isinstance(density, Normal):
                continue
            counts = _get_counts(density)
            if names is not None and counts.shape[1] != max(1, len(names)):
                raise ValueError(f"the table of feature {j} has {counts.shape[1]} categories")
            if (counts.sum(axis=1) > most).any():
                raise ValueError("table.counts counts more rows than class_count")

    # -- prediction --------------------------------------------------------------------------------

    def _compute_log_product(self, rows: NDArray[Any]) -> Float64:
        """Log of the densities of all features multiplied, (n, K)."""
        total = np.zeros((len(rows), len(self.classes_)))
        for x, density in zip(rows.T.astype(np.float64), self.densities_, strict=True):
            total += density.log_density(x)
        return total

    def _compute_log_density(self, rows: NDArray[Any]) -> Float64:
        """That product to the power."""
        return self.power_ * self._compute_log_product(rows)

    @property
    def _log_prior(self) -> Float64:
        with np.errstate(divide="ignore"):  # a class of which there were no rows yet
            log_prior: Float64 = np.log(self.class_prior_)
        return log_prior

    @snapshot_method
    def predict_joint_log_proba(self, X: ArrayLike) -> Float64:
        """Log of prior times densities of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            In the order of `classes_`.
        """
        log_density = self._compute_log_density(self._encode_new_rows(X))
        return self._log_prior + log_density

    @snapshot_method
    def predict_log_proba(self, X: ArrayLike) -> Float64:
        """Log posterior of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            In the order of `classes_`.
        """
        log_density = self._compute_log_density(self._encode_new_rows(X))
        return self._log_prior + subtract_marginal(self._log_prior, log_density)

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Posterior of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            In the order of `classes_`; rows sum to 1.
        """
        return np.exp(self.predict_log_proba(X))

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with the largest posterior, ties to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        joint = self.predict_joint_log_proba(X)
        return self.classes_[joint.argmax(axis=1)]

    # -- inspection --------------------------------------------------------------------------------

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Share of each feature in what features say of the class, each by itself, (p,).

        That is the mutual information (nats) of the class and a value that the densities draw, by the
        prior; a class counts by its share of rows that have the value. All zero if none says anything.
        It does not see that two features say the same.
        """
        check_is_fitted(self)
        prior, rows = self.class_prior_, np.maximum(self.class_count_, 1e-300)
        said = np.zeros(self.n_features_in_)
        for j, density in enumerate(self.densities_):
            known = (
                self._moments[j].rows if j in self._moments else _get_counts(density).sum(axis=1)
            )
            share = np.minimum(known / rows, 1.0)
            said[j] = (prior * share * compute_divergences(density, self._log_prior)).sum()
        total = said.sum()
        return said / (total if total > 0 else 1.0)

    @property
    @snapshot_method
    def class_log_prior_(self) -> Float64:
        """Logarithm of the prior probability of each class, (K,), as in CategoricalNB."""
        check_is_fitted(self)
        return self._log_prior

    @property
    @snapshot_method
    def theta_(self) -> Float64:
        """Mean of each number in each class, (K, p), as in GaussianNB; NaN for categories."""
        check_is_fitted(self)
        means = np.full((len(self.classes_), self.n_features_in_), np.nan)
        for j, moments in self._moments.items():
            means[:, j] = moments.mean
        return means

    def _get_category_names(self, j: int) -> CategoryNames | None:
        return None if self.categories_ is None else self.categories_.names[j]

    @snapshot_method
    def explain(self, X: ArrayLike) -> Explanation:
        """Say how much each feature adds to the score of each row.

        A feature adds ``log P(class | value) - log P(class)``, as if it were the only one, and nothing
        if it is missing or was not seen in training; the base is ``log P(class)``. So sums are log
        posteriors, but for a number that all classes of a row share.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        Explanation
            Contributions to the log odds of the second of two classes, or to K scores whose softmax
            are the probabilities.
        """
        rows, values = self._encode_with_raw_values(X)
        prior = self._log_prior
        added = np.zeros((len(rows), len(prior), self.n_features_in_))
        for j, density in enumerate(self.densities_):
            log_density = self.power_ * density.log_density(rows[:, j].astype(np.float64))
            added[:, :, j] = subtract_marginal(prior, log_density)
        if len(prior) == 2:
            prior, added = prior[1:] - prior[:1], added[:, 1:] - added[:, :1]
        parts = build_explanation_fields(prior, added, self.classes_, "softmax")
        return Explanation(feature_names=self._feature_names(), values=values, **parts)
