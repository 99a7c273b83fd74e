"""Prediction intervals with guaranteed coverage, by split conformal prediction around quantiles."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
)
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    check_is_fitted,
)

from certree.certificates.subsets.coverage import place_to_cover
from certree.ensembles.boosting import BoostedTreesRegressor
from certree.explain.explanation import Explanation
from certree.interface.arrays import Float64, to_array
from certree.interface.fitted_state import (
    available_if,
    get_snapshot,
    meta_fit_method,
    snapshot_method,
)
from certree.rows.columns import take_rows
from certree.rows.out_of_core import expect_collected
from certree.rows.split import train_calibration_split
from certree.rows.training import expect_value_per_row

_INSIDE = Interval(Real, 0, 1, closed="neither")


def _can_explain(model: ConformalBandRegressor) -> bool:
    """Return whether a model has `explain`: its parameter `estimator` is None or has this method.

    model: a model; if it is fitted, the value that the parameter had in the fit decides.
    """
    estimator = get_snapshot(model).estimator
    return estimator is None or hasattr(estimator, "explain")


class ConformalBandRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Prediction intervals that contain a given fraction of new targets, for every distribution.

    Quantiles are fitted to a training set. For each row of a calibration set it is computed how far
    the target is outside of the interval between the lower and the upper quantile (negative
    inside). A quantile of these distances is added to both sides of all intervals.

    With n calibration rows, if these and the new rows are drawn independently from one
    distribution, or are exchangeable:

    * ``delta=None``: a new row is in its interval with probability at least `coverage`, on average over
      calibration set and new row. For one fit the fraction of new rows inside varies, by about
      ``sqrt(coverage (1 - coverage) / n)``.
    * ``delta=0.05``: with probability at least .95 over the calibration set, at least a fraction
      `coverage` of all new rows is in its interval (independent rows only).

    Neither guarantees the same coverage in each subset of rows.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Fits a quantile that its parameter `quantile` names; None:
        ``BoostedTreesRegressor("quantile")``.
    coverage : float, default=0.9
        Fraction of new rows whose interval contains their target.
    delta : float or None, default=None
        Probability with which the guarantee for one fit may fail; None: the guarantee on average.
    calibration_size : float, default=0.25
        Fraction of the rows in the calibration set.
    random_state : int, RandomState or None, default=None
        Seed of the split into training and calibration set.

    Attributes
    ----------
    estimators_ : list of regressors
        Fits of the lower quantile, the median and the upper quantile.
    margin_ : float
        What is added to both sides of the interval between the quantiles, in units of the target;
        negative if the intervals shrink. Infinite if the calibration set is too small for the
        guarantee.
    n_calibration_ : int
        Number of calibration rows.
    feature_importances_ : ndarray of shape (p,)
        Mean of the importances of the three fits, if the estimator has importances.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had names.

    References
    ----------
    Romano, Patterson and Candes, "Conformalized quantile regression", NeurIPS 2019, Theorem 1, for
    the average; Vovk, "Conditional validity of inductive conformal predictors", 2012, Proposition 2a,
    for one fit.

    Examples
    --------
    >>> from certree.ensembles import ConformalBandRegressor
    >>> model = ConformalBandRegressor().fit([[k] for k in range(99)], range(99))
    >>> model.predict_interval([[50]]).shape
    (1, 2)

    >>> import numpy as np
    >>> from certree import BoostedTreesRegressor
    >>> from certree.ensembles import ConformalBandRegressor
    >>> X = np.random.default_rng(0).random((400, 2))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(0, 0.1, 400)
    >>> quantiles = BoostedTreesRegressor("quantile", max_iter=50, random_state=0)
    >>> model = ConformalBandRegressor(quantiles, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3]).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict", "set_params"]), None],
        "coverage": [_INSIDE],
        "delta": [_INSIDE, None],
        "calibration_size": [_INSIDE],
        "random_state": ["random_state"],
    }

    estimators_: list[Any]
    margin_: float
    n_calibration_: int
    n_features_in_: int

    def __init__(
        self,
        estimator: Any = None,
        *,
        coverage: float = 0.9,
        delta: float | None = None,
        calibration_size: float = 0.25,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.delta = delta
        self.calibration_size = calibration_size
        self.random_state = random_state

    @meta_fit_method
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit three quantiles to a training set, and compute the margin from a calibration set.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Target of each row, a number.

        Returns
        -------
        self : object
            The fitted estimator.

        Warns
        -----
        UserWarning
            If the calibration set is too small for the guarantee, so that all intervals are infinite.
        """
        rows, targets = self._check_rows(X, y)
        random = check_random_state(self.random_state)
        split = train_calibration_split(len(targets), 1 - self.calibration_size, random)
        training = take_rows(rows, split.train), targets[split.train]
        outside = (1 - self.coverage) / 2
        self.estimators_ = [
            self._make_quantile_regressor(q, random).fit(*training)
            for q in (outside, 0.5, 1 - outside)
        ]
        low, high = self._predict_quantiles(take_rows(rows, split.calibration))
        truth = targets[split.calibration]
        distance = np.sort(np.maximum(low - truth, truth - high))
        self.n_calibration_ = len(distance)
        rank = place_to_cover(len(distance), self.coverage, self.delta)
        if rank > len(distance):
            warnings.warn(
                f"coverage={self.coverage} with delta={self.delta} needs more than "
                f"{len(distance)} calibration rows: intervals are infinite. Raise calibration_size, "
                "give more rows, or lower coverage",
                stacklevel=3,
            )
        self.margin_ = float(np.append(distance, np.inf)[min(rank, len(distance) + 1) - 1])
        return self

    def _check_rows(self, X: Any, y: Any) -> tuple[Any, Float64]:
        """Check the rows of `fit`, and set `n_features_in_` and `feature_names_in_`.

        X: rows, array-like of shape (n, p); y: target of each row, (n,). Return X as a data frame
        or array, and y as float64, (n,). Raise TypeError or ValueError if y is not numeric, lengths
        differ, or there are fewer than two rows.
        """
        if y is None:
            raise ValueError(
                "fit requires y to be passed, but the target y is None: pass the target of each row"
            )
        expect_collected("X", X)
        expect_collected("y", y)
        if issparse(X):
            to_array("X", X)
        rows = X if hasattr(X, "columns") else np.asarray(X)
        targets = np.asarray(_check_y(y, y_numeric=True, estimator=self), dtype=np.float64)
        expect_value_per_row("y", targets, rows)
        if len(targets) < 2:
            raise ValueError(
                f"X and y must have at least two rows, got n_samples={len(targets)}: pass more rows"
            )
        _check_feature_names(self, rows, reset=True)
        _check_n_features(self, rows, reset=True)
        return rows, targets

    def _make_quantile_regressor(self, quantile: float, random: np.random.RandomState) -> Any:
        """Return an unfitted copy of the estimator for a quantile between 0 and 1.

        random: draws the seed of the copy if its parameter `random_state` is None.
        """
        default = BoostedTreesRegressor("quantile")
        estimator = default if self.estimator is None else self.estimator
        regressor = clone(estimator).set_params(quantile=quantile)
        if getattr(regressor, "random_state", 0) is None:
            regressor.set_params(random_state=random.randint(2**31 - 1))
        return regressor

    def _predict_quantiles(self, X: Any) -> tuple[Float64, Float64]:
        """Return the fitted lower and upper quantile of each row, (n,) each.

        X: rows as the user gives them. `margin_` is not added. The two quantiles of a row may cross.
        """
        low, _, high = self.estimators_
        return low.predict(X), high.predict(X)

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the median.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Medians, in units of the target.
        """
        check_is_fitted(self)
        median: NDArray[np.float64] = self.estimators_[1].predict(X)
        return median

    @snapshot_method
    def predict_interval(self, X: ArrayLike) -> Float64:
        """Compute the prediction interval of each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper end, in units of the target; both are equal if quantiles that cross, or
            a negative `margin_`, would make them cross. Infinite if `margin_` is.
        """
        check_is_fitted(self)
        low, high = self._predict_quantiles(X)
        # The ends may cross if quantiles cross or the margin is negative: the interval is then a point,
        # which covers no less.
        middle = (low + high) / 2
        return np.column_stack(
            [np.minimum(low - self.margin_, middle), np.maximum(high + self.margin_, middle)]
        )

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Mean of the importances of the three fitted quantiles, (p,).

        Raise AttributeError if the estimator has no importances.
        """
        check_is_fitted(self)
        importances = [estimator.feature_importances_ for estimator in self.estimators_]
        mean: Float64 = np.mean(importances, axis=0)
        return mean

    @available_if(_can_explain)
    @snapshot_method
    def explain(self, X: ArrayLike) -> Explanation:
        """Compute how much each feature adds to the three quantiles of each row, without the margin.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        Explanation
            Contributions to three outputs: the lower quantile, the median and the upper quantile.
        """
        check_is_fitted(self)
        parts = [estimator.explain(X) for estimator in self.estimators_]
        return Explanation(
            np.concatenate([part.base for part in parts]),
            np.concatenate([part.contributions for part in parts], axis=1),
            parts[0].feature_names,
            [f"quantile {estimator.quantile:g}" for estimator in self.estimators_],
            parts[0].values,
            parts[0].scale,
            calendar_parts=parts[0].calendar_parts,
        )

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of scikit-learn; missing values are allowed if the estimator allows them."""
        tags: Tags = super().__sklearn_tags__()
        inner = BoostedTreesRegressor() if self.estimator is None else self.estimator
        tags.input_tags.allow_nan = get_tags(inner).input_tags.allow_nan
        return tags
