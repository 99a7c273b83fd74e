"""Naive Bayes for numbers and categories: features are independent within each class."""

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
    restore_columns,
    restore_densities,
    store_columns,
    store_densities,
)
from certree.estimators.naive_bayes.divergences import compute_divergences
from certree.estimators.naive_bayes.powers import (
    PowerLosses,
    compute_power_losses,
    subtract_marginal,
)
from certree.explain.explanation import (
    Explanation,
    build_explanation_fields,
    select_positive_class,
)
from certree.interface.arrays import (
    MAX_TOTAL_WEIGHT,
    Float64,
    Int32,
    check_column,
    has_finite_total,
)
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import NONNEGATIVE, POSITIVE
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows.categories import CategoricalFeatures, Categories, CategoryNames, learn_categories
from certree.rows.columns import as_data_frame
from certree.rows.training import (
    RowInputMixin,
)

# Upper limit of `bins`; more bins than rows are never useful.
_MOST_BINS = 10**6

_CHOICES = ("auto", *KINDS)


def resolve_densities(
    densities: Any, n_features: int, names: Sequence[str] | None = None
) -> list[str]:
    """Return the density option of each feature, from a string, a list or a dictionary.

    Parameters
    ----------
    densities : str, sequence of str, or dict from str to str
        An option for all features, one for each feature, or options by feature name; features that
        the dictionary lacks get "auto". "normal": one normal density for each class; "histogram": a
        histogram with bins that all classes share; "categorical": a table of categories; "auto": a
        table for a categorical feature, else the better of the first two by leave-one-out log
        likelihood. This function does not resolve "auto".
    n_features : int
        Number of features.
    names : sequence of str, or None
        Names of the features; None if they have none.

    Returns
    -------
    list of {"auto", "normal", "histogram", "categorical"}
        The option of each feature.

    Raises
    ------
    ValueError
        If an option or a name is unknown, a list has another length than `n_features`, or
        `densities` is a dictionary and there are no feature names.
    """
    if isinstance(densities, str):
        choices = [densities] * n_features
    elif isinstance(densities, dict):
        if names is None:
            raise ValueError(
                f"densities must not be a dict with feature names, got {list(densities)!r}, as X has "
                "no feature names: give a list with one density for each feature"
            )
        unknown = [name for name in densities if name not in names]
        if unknown:
            raise ValueError(
                f"densities must have feature names among {list(names)} as keys, got {unknown}"
            )
        choices = [densities.get(name, "auto") for name in names]
    else:
        choices = list(densities)
        if len(choices) != n_features:
            raise ValueError(
                f"densities must have one entry for each of {n_features} features, got {len(choices)}"
            )
    wrong = [choice for choice in choices if choice not in _CHOICES]
    if wrong:
        raise ValueError(f"densities must be among {list(_CHOICES)}, got {wrong[0]!r}")
    return [str(choice) for choice in choices]


def _get_counts(density: Any) -> Float64:
    """Return the row counts of a density that is a Histogram or CategoricalTable, (K, B).

    They are numbers (or weights) of the rows of each of K classes in each of B bins or categories.
    """
    counts: Float64 = (density.table if isinstance(density, Histogram) else density).counts
    return counts


class NaiveBayesClassifier(ClassifierMixin, RowInputMixin, BaseEstimator):
    """Naive Bayes for tables of numbers and categories, with missing values.

    The posterior probability of a class is proportional to its prior times the densities of all
    features in the class. A feature has a normal density, a histogram or a table of categories.
    Missing values, and categories that the training rows do not have, are left out of the product.

    Parameters
    ----------
    densities : {"auto", "normal", "histogram", "categorical"}, list or dict of these, default="auto"
        Density of all features, a list with the density of each feature, or a dictionary by feature
        name (features that it lacks are "auto"). "categorical" treats any feature as categorical.
        "auto" is "categorical" for categorical features; for a numeric feature it is the density,
        normal or histogram, with the larger leave-one-out log likelihood.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features are categorical. "from_dtype": columns of a data frame with a category,
        string or object dtype. Otherwise a boolean mask, indices or names. None: no feature.
    bins : int or {"auto", "fd", "sturges"}, default="auto"
        Number of bins of a histogram, all of equal width, or the rule that chooses it: "fd" of
        Freedman and Diaconis, "sturges", or "auto", the larger number of the two, as in NumPy.
    alpha : float, default=1
        Number of rows, of mean weight, that are added to each category and each bin of every class;
        additive smoothing as in CategoricalNB.
    var_smoothing : float, default=1e-9
        Fraction of the largest variance of all numeric features that is added to the variances of
        normal densities, as in GaussianNB.
    power : float in 0 .. 1 or "auto", default="auto"
        Power to which the product of the densities is raised. A power below 1 corrects the
        overconfidence of naive Bayes that comes from dependent features and from few rows. "auto":
        the power with the smallest leave-one-out log loss on the training rows. 1: the usual naive
        Bayes, as in GaussianNB and CategoricalNB.
    priors : array-like of shape (K,), or None, default=None
        Prior probabilities of the classes in the order of `classes_`; None: their fractions of the
        training rows, by weight.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn. They change the priors, so `priors` must be
        None.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the training rows, by which `certify` refuses to certify the model with these
        rows; None if the model was loaded from a file that was saved without them.
    class_count_ : ndarray of shape (K,)
        Number (or total weight) of the training rows of each class.
    class_prior_ : ndarray of shape (K,)
        Prior probability of each class.
    power_ : float
        The power of the densities, as set or chosen.
    densities_ : list of Normal, Histogram or CategoricalTable
        The density of each feature; its attribute `kind` is "normal", "histogram" or "categorical".
    feature_importances_ : ndarray of shape (p,)
        Mutual information of each single feature and the class, divided by the sum over all
        features.
    categories_ : Categories or None
        Names of the categories of each categorical feature; None if all features are numeric.
    dates_ : dict of int to DateColumn, or None
        Kind, time zone and last date of the features that hold dates, by index; None if none do.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features are categorical; None if all features are numeric.
    n_features_in_ : int
        Number of features, p.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features; only if X had column names that are all strings.

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

    # Number of training rows of positive weight; None if a file of an earlier version lacks it.
    _n_rows: int | None

    # A feature of identifiers does no harm here, as it is one factor of a product.
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
        """Choose and estimate the density of each feature in each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Training rows; NaN is a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row. Only ratios of weights matter; None: all rows have weight 1.

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
        """Update the densities by a further batch of rows.

        Normal densities and tables of categories are the same, within rounding, as those of a `fit`
        to all batches together; new categories may occur in any batch. The first batch fixes the
        edges of the histograms, and which density "auto" stands for, so it should be large.

        With power="auto" the power is chosen again after every batch. Each row is scored once, when
        its batch is added, by the densities of all other rows so far. The choice minimises the log
        loss of the more recent rows: losses are dropped that were computed when the model had less
        than a quarter of its present rows. Calls after `fit` update the model of `fit`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of the batch; NaN is a missing value.
        y : array-like of shape (n,)
            Class of each row.
        classes : array-like of shape (K,), or None
            All classes that may occur in any batch. Required in the first call; in later calls
            None, or the same classes.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, in the same unit in all batches; None: all rows have weight 1.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If `classes` is missing in the first call or differs later, class_weight is "balanced",
            or the model was loaded from a file of an earlier version, which lacks the number of
            training rows.
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                'class_weight must be a dict or None in partial_fit, got "balanced", which needs all '
                "rows at once: use fit"
            )
        first = not hasattr(self, "densities_")
        if not first and self._n_rows is None:
            raise ValueError(
                "partial_fit needs the number of training rows, which model files of earlier versions "
                "of certree lack: fit the model again"
            )
        if first and classes is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit, got None: pass all "
                "classes that may occur in any batch"
            )
        if classes is not None:
            classes = np.unique(classes)
            if not first and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {self.classes_}, got {classes}: "
                    "leave classes out, or call fit"
                )
        return self._fit_batch(X, y, sample_weight, first, classes)

    def _fit_batch(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Any, first: bool, classes: Any
    ) -> Self:
        """Fit the model to its first batch (`first`), or update it by a further one; return self.

        X, y, sample_weight and classes are those of `partial_fit`; `fit` passes classes=None and
        first=True. All fitted attributes are set. A further batch keeps the classes, the edges of
        the histograms and the kind of each density.
        """
        if self.priors is not None and self.class_weight is not None:
            raise ValueError(
                "priors must be None if class_weight is set, as both define the prior probabilities: "
                "set one of them to None"
            )
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
        """Return the categories of each categorical feature.

        A feature is categorical by `categorical_features`, or if `densities` sets it to
        "categorical".

        X: the rows; reuse_encoding: whether to append new categories of X to those of earlier
        batches (`categories_`) instead of learning all from X. The result has the names of the
        categories of each feature in the order of their codes, None for a numeric feature. Return
        None if all features are numeric. Raise ValueError if `densities` sets a categorical feature
        to "normal" or "histogram".
        """
        if reuse_encoding:
            return None if self.categories_ is None else self.categories_.add_categories(X)
        categories = learn_categories(X, self.categorical_features)
        if isinstance(self.densities, str) and self.densities == "auto":
            return categories
        frame = as_data_frame(X)
        names = None if frame is None else frame.columns
        table = check_array(X, dtype=None, ensure_all_finite=False) if frame is None else frame
        choices = resolve_densities(self.densities, table.shape[1], names)
        is_chosen = np.array([choice == "categorical" for choice in choices])
        is_categorical = np.zeros_like(is_chosen) if categories is None else categories.mask
        for j in np.flatnonzero(is_categorical):
            if choices[j] not in ("auto", "categorical"):
                raise ValueError(
                    "densities must be 'auto' or 'categorical' for the categorical feature "
                    f"{j if names is None else names[j]!r}, got {choices[j]!r}"
                )
        return (
            Categories.learn(X, is_chosen | is_categorical)
            if (is_chosen & ~is_categorical).any()
            else categories
        )

    def _orders_categories_by_rows(self) -> bool:
        """Return False: category codes follow the sorted names, and do not depend on the rows."""
        return False  # later rows may have more of them, and sums go by no order

    def _fit_first_batch(self, rows: Float64, y: Int32, weight: Float64) -> None:
        """Choose the density of each feature by the first batch, and estimate it.

        rows: encoded features, (n, p); y: class codes, (n,); weight: weights, (n,). Sets
        `class_count_`, `densities_` (from the parameter `densities`), and the moments of numeric
        features. The log losses by which `_set_power` chooses the power of the densities become 0.
        """
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
        """Choose the density of feature j, and estimate it from the first batch.

        Parameters
        ----------
        j : int
            Index of the feature, whose moments have been computed if it is numeric.
        choice : {"auto", "normal", "histogram", "categorical"}
            The option of the user; "auto": a table if the feature is categorical, else normal or
            histogram, whichever has the larger leave-one-out log likelihood.
        floor : float
            Square root of what is added to variances of normal densities, in units of the features.
        x, y, weight : ndarray of shape (n,)
            Value or category code (NaN if missing), class code and weight of each row.

        Returns
        -------
        Normal, Histogram or CategoricalTable
            The density of the feature in each class.
        """
        n_classes, names = len(self.classes_), self._get_category_names(j)
        if names is not None:
            # A table without categories gets one column, which stays empty.
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
        """Update the class counts, moments and densities by a further batch.

        rows: encoded features, (n, p); y: class codes, (n,); weight: weights, (n,). The attributes
        `class_count_` and `densities_`, and the moments of numeric features, change.
        """
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
        """Return the density of feature j with the rows of a batch added; its kind does not change.

        The edges of a histogram do not change either. density: the present density; floor: square
        root of what is added to variances; x, y, weight: value or category code (NaN if missing),
        class code and weight of each row of the batch, (n,) each. The moments of the feature must
        include the batch already.
        """
        if isinstance(density, Normal):
            return self._make_normal(j, floor)
        if isinstance(density, CategoricalTable):
            density = density.pad(len(self._get_category_names(j) or ()))
        return density.with_alpha(self._compute_smoothing()).add_rows(x, y, weight)

    def _compute_smoothing(self) -> float:
        """Return the weight added to each category and bin: `alpha` times the mean row weight.

        `alpha` is the parameter; the mean is over the rows of all batches so far.
        """
        assert self._n_rows is not None
        return float(self.alpha) * float(self.class_count_.sum()) / self._n_rows

    def _check_finite(self) -> None:
        """Raise ValueError if row weights, means or standard deviations are too large for float64.

        Predictions would then be NaN. For means and deviations the message names the feature.
        """
        if not has_finite_total(self.class_count_):
            raise ValueError(
                f"sample_weight must sum to at most {MAX_TOTAL_WEIGHT:g} over all rows, got more: "
                "divide it by a constant"
            )
        names = self._feature_names()
        for j, moments in self._moments.items():
            if not (np.isfinite(moments.mean).all() and np.isfinite(moments.deviation).all()):
                raise ValueError(
                    f"X must have a mean and standard deviation within float64 in each feature, but "
                    f"those of feature {names[j]!r} overflow: divide the feature by a large constant"
                )

    def _compute_floor(self) -> float:
        """Return the square root of what is added to the variances of normal densities.

        It is ``sqrt(var_smoothing)`` times the largest standard deviation of all numeric features.
        """
        spreads = [moments.pool_classes()[1] for moments in self._moments.values()]
        largest = max(spreads, default=0.0)
        # If no feature varies, all classes have the same density whatever its width.
        return sqrt(self.var_smoothing) * (largest or 1.0)

    def _make_normal(self, j: int, floor: float) -> Normal:
        """Return the normal densities of feature j, with ``floor ** 2`` added to their variances.

        Raise ValueError if a standard deviation is still 0. That happens with var_smoothing=0 if
        the feature is constant in a class.
        """
        normal = self._moments[j].make_normal(floor)
        if not normal.deviation.all():
            name, label = self._feature_names()[j], self.classes_[normal.deviation.argmin()]
            raise ValueError(
                "var_smoothing must be positive for normal densities if a feature does not vary "
                f"within a class, got 0, and feature {name!r} is constant in class {label!r}: use "
                '1e-9, or densities="histogram" for this feature'
            )
        return normal

    def _compute_priors(self) -> Float64:
        """Return the prior probability of each class, (K,): `priors`, or fractions of row weight.

        The weights of the classes are those in `class_count_`. Raise ValueError if `priors` has
        another length, is negative, does not sum to 1, or is 0 for a class that has training rows.
        """
        fractions: Float64 = self.class_count_ / self.class_count_.sum()
        if self.priors is None:
            return fractions
        priors: Float64 = check_column("priors", self.priors, "float64", (None,))
        if priors.shape != fractions.shape:
            raise ValueError(
                f"priors must have shape ({len(fractions)},), one entry for each class, got "
                f"{priors.shape}"
            )
        if not (priors >= 0).all():
            raise ValueError(f"priors must be non-negative, got {priors}")
        if not np.isclose(priors.sum(), 1.0):
            raise ValueError(
                f"priors must sum to 1, got the sum {priors.sum():.6g}: divide them by their sum"
            )
        denied = self.classes_[(priors == 0) & (fractions > 0)]
        if len(denied):
            raise ValueError(
                f"priors must be positive for classes with training rows, got 0 for {denied}: drop "
                "the rows of these classes, or raise their priors"
            )
        return priors

    def _set_power(self, rows: Float64, y: Int32, weight: Float64) -> None:
        """Set `power_`: the parameter `power`, or the power of smallest leave-one-out log loss.

        rows: encoded features of the present batch, (n, p), which the densities already include; y:
        class codes, (n,); weight: weights, (n,). With "auto" the log losses of this batch for all
        50 candidate powers (2**-40 to 1) are first added to those of earlier batches; losses of
        much earlier batches are dropped.
        """
        if not isinstance(self.power, str):
            self.power_ = float(self.power)
            return
        product = self._compute_log_product(rows)
        product[np.arange(len(y)), y] = self._compute_left_out(rows, y, weight)
        losses = compute_power_losses(self._log_prior, product, y, weight)
        self._power_losses = self._power_losses.add_batch(losses, float(self._n_rows or 0))
        self.power_ = self._power_losses.best_power

    def _compute_left_out(self, rows: Float64, y: Int32, weight: Float64) -> Float64:
        """Compute the log density of each row's features in its class, without the row itself.

        The row is removed from the counts and moments of its class first (leave-one-out), and the
        log densities of all features are added; a missing value adds 0.

        rows: encoded training rows, (n, p), which the densities include; y: class codes, (n,);
        weight: weights, (n,). Return an array (n,) in nats, before it is multiplied by `power_`.
        """
        floor, total = self._compute_floor(), np.zeros(len(rows))
        for j, density in enumerate(self.densities_):
            row = rows[:, j], y, weight
            if isinstance(density, Normal):
                total += self._moments[j].compute_left_out(*row, floor)
            else:
                total += density.compute_left_out(*row)
        return total

    # -- files -------------------------------------------------------------------------------------

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        "class_count": StoredField.numbers("class_count_", ("n_classes_",), 0),
        # Files of earlier versions do not hold it.
        "n_rows": StoredField.value("_n_rows", int, 1, default=None),
        "class_prior": StoredField.numbers("class_prior_", ("n_classes_",), 0, 1 + 1e-6),
        "power": StoredField.value("power_", float, 0, 1),
        "judged": StoredField.record("_power_losses", PowerLosses),
    }

    def __stored__(self) -> dict[str, Any]:
        """Return what a model file stores of the fit: values by stored name.

        They are entries about features, classes and hashes of the rows, as of every classifier; the
        kind of each density ("densities"), and arrays of their parameters; and what `partial_fit`
        needs: numbers of rows, moments of numeric features, and log losses of candidate powers.
        """
        n_classes = len(self.classes_)
        moments = [self._moments[j] for j in sorted(self._moments)]
        return {
            **super().__stored__(),
            "densities": [density.kind for density in self.densities_],
            **store_columns(Moments, moments, n_classes),
            **store_densities(self.densities_, n_classes),
        }

    def _finish_restore(self, stored: StoredState) -> None:
        """Set `densities_` and the moments of features from a model file, and check all attributes.

        The class counts and priors are set already. stored: the content of the model file. Raise
        ValueError if values are missing, out of range, or inconsistent with each other.
        """
        super()._finish_restore(stored)
        if not self.class_count_.any() or not has_finite_total(self.class_count_):
            raise DamagedModelError(
                "the model file's class_count must be positive for some class, and at most "
                f"{MAX_TOTAL_WEIGHT:g} in total, got {self.class_count_}"
            )
        if not np.isclose(self.class_prior_.sum(), 1):
            raise DamagedModelError(
                f"the model file's class_prior must sum to 1, got {self.class_prior_.sum()}"
            )
        if (self.class_count_[self.class_prior_ == 0] > 0).any():
            raise DamagedModelError(
                "the model file's class_prior must be positive for classes with rows, got 0"
            )
        n_classes, kinds = len(self.classes_), self._check_kinds(stored["densities"])
        of_numbers = [j for j, kind in enumerate(kinds) if kind != "categorical"]
        moments = restore_columns(Moments, stored, (len(of_numbers), n_classes))
        self._moments = dict(zip(of_numbers, moments, strict=True))
        self.densities_ = restore_densities(stored, kinds, n_classes)
        self._check_counts()

    def _check_kinds(self, kinds: Any) -> list[str]:
        """Check the density kinds of a model file, and return them.

        kinds: the list of kinds in the file. There must be one for each feature: "categorical" for
        a categorical feature, else "normal" or "histogram". Raise ValueError otherwise.
        """
        if not isinstance(kinds, list) or len(kinds) != self.n_features_in_:
            raise DamagedModelError(
                f"the model file's densities must be a list of {self.n_features_in_} kinds, got "
                f"{kinds!r}"
            )
        for j, kind in enumerate(kinds):
            held = self._get_category_names(j) is not None
            possible = ("categorical",) if held else ("normal", "histogram")
            if kind not in possible:
                raise DamagedModelError(
                    f"the model file's density of feature {j} must be {' or '.join(possible)}, got "
                    f"{kind!r}"
                )
        return kinds

    def _check_counts(self) -> None:
        """Raise ValueError if restored moments or tables contradict `class_count_` or categories.

        No feature may count more rows of a class than the class has, within rounding, and the table
        of a categorical feature must have one column for each category name.
        """
        # Sums may exceed each other by rounding errors.
        limit = self.class_count_ * (1 + 1e-6)
        for j, density in enumerate(self.densities_):
            names = self._get_category_names(j)
            if j in self._moments and (self._moments[j].rows > limit).any():
                raise DamagedModelError(
                    f"the model file's moments of feature {j} must count at most class_count rows of "
                    "each class"
                )
            if isinstance(density, Normal):
                continue
            counts = _get_counts(density)
            if names is not None and counts.shape[1] != max(1, len(names)):
                raise DamagedModelError(
                    f"the model file's table of feature {j} must have {max(1, len(names))} categories, "
                    f"got {counts.shape[1]}"
                )
            if (counts.sum(axis=1) > limit).any():
                raise DamagedModelError(
                    f"the model file's table of feature {j} must count at most class_count rows of "
                    "each class"
                )

    # -- prediction --------------------------------------------------------------------------------

    def _compute_log_product(self, rows: NDArray[Any]) -> Float64:
        """Compute the log of the product of all feature densities, by row and class, (n, K).

        rows: encoded features, (n, p). The densities are those in `densities_`. The values are in
        nats; a missing value adds 0, so that a row of missing values has 0 in all classes.
        """
        total = np.zeros((len(rows), len(self.classes_)))
        for x, density in zip(rows.T.astype(np.float64), self.densities_, strict=True):
            total += density.log_density(x)
        return total

    def _compute_log_density(self, rows: NDArray[Any]) -> Float64:
        """Compute `power_` times the log of the product of the densities, by row and class, (n, K).

        rows: encoded features, (n, p). The values are in nats; the prior is not included.
        """
        return self.power_ * self._compute_log_product(rows)

    @property
    def _log_prior(self) -> Float64:
        """Log prior probability (nats) of each class, (K,); -inf for a class of prior 0."""
        with np.errstate(divide="ignore"):  # a class may have no rows yet
            log_prior: Float64 = np.log(self.class_prior_)
        return log_prior

    @snapshot_method
    def predict_joint_log_proba(self, X: ArrayLike) -> Float64:
        """Compute the log of prior times powered densities for each class.

        The values differ from the log posterior by one number for each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n, K)
            Logarithms (nats), in the order of `classes_`.
        """
        log_density = self._compute_log_density(self._encode_new_rows(X))
        return self._log_prior + log_density

    @snapshot_method
    def predict_log_proba(self, X: ArrayLike) -> Float64:
        """Compute the log posterior probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n, K)
            Logarithms (nats), in the order of `classes_`.
        """
        log_density = self._compute_log_density(self._encode_new_rows(X))
        return self._log_prior + subtract_marginal(self._log_prior, log_density)

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Compute the posterior probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of `classes_`; rows sum to 1.
        """
        return np.exp(self.predict_log_proba(X))

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of the largest posterior probability, ties to the first class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n,)
            The predicted class of each row.
        """
        joint = self.predict_joint_log_proba(X)
        return self.classes_[joint.argmax(axis=1)]

    # -- inspection --------------------------------------------------------------------------------

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Mutual information of each feature and the class, divided by its sum over features, (p,).

        The information (nats) is that of the class and a value drawn from the densities, with the
        prior probabilities. The term of a class is multiplied by the fraction of its rows that have
        the value. All entries are 0 if no feature carries information. Each feature is measured
        alone, so features that repeat each other all get their full value.
        """
        check_is_fitted(self)
        prior, rows = self.class_prior_, np.maximum(self.class_count_, 1e-300)
        information = np.zeros(self.n_features_in_)
        for j, density in enumerate(self.densities_):
            n_present = (
                self._moments[j].rows if j in self._moments else _get_counts(density).sum(axis=1)
            )
            fraction = np.minimum(n_present / rows, 1.0)
            information[j] = (
                prior * fraction * compute_divergences(density, self._log_prior)
            ).sum()
        total = information.sum()
        return information / (total if total > 0 else 1.0)

    @property
    @snapshot_method
    def class_log_prior_(self) -> Float64:
        """Log prior probability (nats) of each class, (K,), as in CategoricalNB."""
        check_is_fitted(self)
        return self._log_prior

    @property
    @snapshot_method
    def theta_(self) -> Float64:
        """Mean of each feature in each class, (K, p), as in GaussianNB.

        NaN for categorical features.
        """
        check_is_fitted(self)
        means = np.full((len(self.classes_), self.n_features_in_), np.nan)
        for j, moments in self._moments.items():
            means[:, j] = moments.mean
        return means

    def _get_category_names(self, j: int) -> CategoryNames | None:
        """Return the names of the categories of feature j by code, or None if it is numeric."""
        return None if self.categories_ is None else self.categories_.names[j]

    @snapshot_method
    def explain(self, X: ArrayLike, *, pos_label: Any = None) -> Explanation:
        """Compute how much each feature adds to the score of each class, for each row.

        A feature adds ``log P(class | value) - log P(class)``, computed as if it were the only
        feature; a missing value or unknown category adds 0. The base is ``log P(class)``. Base plus
        contributions is the log posterior, up to one number for each row that all classes have in
        common.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.
        pos_label : object or None
            The positive one of two classes; None: the second.

        Returns
        -------
        Explanation
            Contributions (nats) to the log odds of the positive one of two classes; for more
            classes, to K scores whose softmax gives the probabilities.

        Raises
        ------
        ValueError
            If `pos_label` is not one of two classes.
        """
        rows, values = self._encode_with_raw_values(X)
        prior = self._log_prior
        added = np.zeros((len(rows), len(prior), self.n_features_in_))
        for j, density in enumerate(self.densities_):
            log_density = self.power_ * density.log_density(rows[:, j].astype(np.float64))
            added[:, :, j] = subtract_marginal(prior, log_density)
        if len(prior) == 2:
            prior, added = prior[1:] - prior[:1], added[:, 1:] - added[:, :1]
        fields = build_explanation_fields(prior, added, self.classes_, "softmax")
        explanation = Explanation(feature_names=self._feature_names(), values=values, **fields)
        return select_positive_class(explanation, self.classes_, pos_label)
