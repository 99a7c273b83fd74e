"""Bands that hold new numbers, by conformal prediction on rows that are kept apart."""

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
    check_consistent_length,
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

_INSIDE = Interval(Real, 0, 1, closed="neither")


def _explains(model: ConformalBandRegressor) -> bool:
    """Whether the quantiles can be explained."""
    estimator = get_snapshot(model).estimator
    return estimator is None or hasattr(estimator, "explain")


class ConformalBandRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Bands around predictions that hold a given share of new rows, whatever the distribution.

    Quantiles are fitted on some of the rows. How far the targets of the others lie outside the band
    between two quantiles says by how much it is widened (or narrowed), the same everywhere.

    With n rows that calibrate, and rows and new rows drawn independently from one distribution, or
    exchangeable:

    * ``delta=None``: a new row lies in its band with probability at least `coverage`, on average over
      the rows of the fit and the new row. For one fit the share of new rows inside varies, by about
      ``sqrt(coverage (1 - coverage) / n)``.
    * ``delta=0.05``: with probability at least .95 over the rows that calibrate, at least a share
      `coverage` of all new rows lies in its band (independent rows only).

    Neither promises the same share among every kind of row.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Fits a quantile, by its parameter `quantile`; None: ``BoostedTreesRegressor("quantile")``.
    coverage : float, default=0.9
        Share of new rows that bands are to hold.
    delta : float or None, default=None
        Probability with which the promise about one fit may fail; None: the promise on average.
    calibration_size : float, default=0.25
        Share of the rows that calibrate.
    random_state : int, RandomState or None, default=None
        Decides which rows calibrate.

    Attributes
    ----------
    estimators_ : list of regressors
        The lower quantile, the median and the upper quantile.
    margin_ : float
        What the band between the quantiles is widened by on both sides, in units of the target.
        Infinite where too few rows calibrate for the promise.
    n_calibration_ : int
        Number of rows that calibrate.
    feature_importances_ : ndarray of shape (p,)
        Mean of those of the three quantiles, if the estimator has them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Romano, Patterson and Candes, "Conformalized quantile regression", NeurIPS 2019, Theorem 1, for
    the average; Vovk, "Conditional validity of inductive conformal predictors", 2012, Proposition 2a,
    for one fit.

    Examples
    --------
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
        """Fit three quantiles on some rows, and widen the band by the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Numbers.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        rows, numbers = self._checked(X, y)
        random = check_random_state(self.random_state)
        sides = train_calibration_split(len(numbers), 1 - self.calibration_size, random)
        grow = take_rows(rows, sides.train), numbers[sides.train]
        outside = (1 - self.coverage) / 2
        self.estimators_ = [
            self._quantile(q, random).fit(*grow) for q in (outside, 0.5, 1 - outside)
        ]
        low, high = self._quantiles(take_rows(rows, sides.calibration))
        truth = numbers[sides.calibration]
        beyond = np.sort(np.maximum(low - truth, truth - high))
        self.n_calibration_ = len(beyond)
        place = place_to_cover(len(beyond), self.coverage, self.delta)
        if place > len(beyond):
            warnings.warn(
                f"{len(beyond)} rows that calibrate are too few for coverage={self.coverage} and "
                f"delta={self.delta}: bands are infinite",
                stacklevel=3,
            )
        self.margin_ = float(np.append(beyond, np.inf)[min(place, len(beyond) + 1) - 1])
        return self

    def _checked(self, X: Any, y: Any) -> tuple[Any, Float64]:
        """Rows as the estimator takes them, and numbers."""
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        expect_collected("X", X)
        expect_collected("y", y)
        if issparse(X):
            to_array("X", X)
        rows = X if hasattr(X, "columns") else np.asarray(X)
        numbers = np.asarray(_check_y(y, y_numeric=True, estimator=self), dtype=np.float64)
        check_consistent_length(rows, numbers)
        if len(numbers) < 2:
            raise ValueError(f"bands take at least two rows, got n_samples={len(numbers)}")
        _check_feature_names(self, rows, reset=True)
        _check_n_features(self, rows, reset=True)
        return rows, numbers

    def _quantile(self, quantile: float, random: np.random.RandomState) -> Any:
        given = BoostedTreesRegressor("quantile") if self.estimator is None else self.estimator
        one = clone(given).set_params(quantile=quantile)
        if getattr(one, "random_state", 0) is None:
            one.set_params(random_state=random.randint(2**31 - 1))
        return one

    def _quantiles(self, X: Any) -> tuple[Float64, Float64]:
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
        """Give the band of each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper end, in units of the target.
        """
        check_is_fitted(self)
        low, high = self._quantiles(X)
        # Quantiles that cross leave nothing of a narrow band; a single point holds no less.
        middle = (low + high) / 2
        return np.column_stack(
            [np.minimum(low - self.margin_, middle), np.maximum(high + self.margin_, middle)]
        )

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Mean of those of the three quantiles, (p,), if the estimator has them."""
        check_is_fitted(self)
        mean: Float64 = np.mean([one.feature_importances_ for one in self.estimators_], axis=0)
        return mean

    @available_if(_explains)
    @snapshot_method
    def explain(self, X: ArrayLike) -> Explanation:
        """Say how much each feature adds to the three quantiles of each row, before bands are widened.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        Explanation
            Contributions to the lower quantile, the median and the upper quantile.
        """
        check_is_fitted(self)
        parts = [one.explain(X) for one in self.estimators_]
        return Explanation(
            np.concatenate([part.base for part in parts]),
            np.concatenate([part.contributions for part in parts], axis=1),
            parts[0].feature_names,
            [f"quantile {one.quantile:g}" for one in self.estimators_],
            parts[0].values,
            parts[0].scale,
        )

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        inner = BoostedTreesRegressor() if self.estimator is None else self.estimator
        tags.input_tags.allow_nan = get_tags(inner).input_tags.allow_nan
        return tags
