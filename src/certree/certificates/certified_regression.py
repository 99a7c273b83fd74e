"""Regressors that certify themselves: bands around what they predict, and a bound on the error."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certree.certificates.calibration_set import compute_clipped_losses
from certree.certificates.certificate import Certificate, compute_certificate, get_sampling_facts
from certree.certificates.leakage_check import select_calibration_rows
from certree.certificates.subsets.coverage import Scores
from certree.interface.arrays import Float64, check_column
from certree.interface.fitted_state import snapshot_method
from certree.rows.duplicates import Duplicates

# Of the few operations from a target to its score and back: one in a place where many are must not fall
# out of its band by that.
_ROUNDING = 4 * np.finfo(np.float64).eps
# What share of the mean error the scale of errors is at least: few rows may happen to have small ones.
LEAST_SCALE = 0.3
# Share of the largest target below which errors are those of sums.
_NOTHING = 1e-12


class CertifiedRegressorMixin:
    """A regressor with a certificate on its mean absolute error, and bands that hold new targets."""

    coverage: float
    delta: float
    certificate_: Certificate
    certificates_: tuple[Certificate, ...]
    conformity_scores_: Scores

    @abstractmethod
    def _predict_with_half_width(self, X: ArrayLike, reach: Float64) -> tuple[Float64, Float64]:
        """What is predicted of rows, and half the widths of their bands that go so far."""

    @snapshot_method
    def predict_interval(
        self, X: ArrayLike, coverage: float | None = None, delta: float | None = None
    ) -> Float64:
        """Give the band of each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        coverage : float or None
            Share of new rows that bands are to hold; None: `coverage` of the fit.
        delta : float or None
            Probability with which they hold fewer; None: `delta` of the fit.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper end, in units of the target. Infinite in a region with too few rows that
            certify, where ``widths="leaf"``.

        Raises
        ------
        ValueError
            If a number is not between 0 and 1, too few rows certify for such a promise, or the model
            was fitted by groups.
        """
        middle, half = self._predict_with_half_width(
            X, self._check_scores().find_limits(*self._fill_in_levels(coverage, delta))
        )
        with np.errstate(over="ignore"):
            half = half + _ROUNDING * (np.abs(middle) + half)
            return np.column_stack([middle - half, middle + half])

    @snapshot_method
    def certify_interval(
        self, coverage: float | None = None, delta: float | None = None
    ) -> tuple[Certificate | None, ...]:
        """Say what the bands promise.

        Parameters
        ----------
        coverage, delta : float or None
            As in `predict_interval`.

        Returns
        -------
        tuple of Certificate or None
            Of the share of targets outside their bands: one of all new rows, or, with
            ``widths="leaf"``, one of each region of ``intervals_``, which hold together; None of one
            whose bands are infinite.

        Raises
        ------
        ValueError
            As in `predict_interval`.
        """
        scores, promise = self._check_scores(), self._fill_in_levels(coverage, delta)
        scores.find_limits(*promise)
        return self._certify_intervals(*promise)

    @snapshot_method
    def certify(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        delta: float | None = None,
        *,
        duplicates: Duplicates | None = None,
    ) -> Certificate:
        """Certify the mean absolute error by rows that were never used.

        Parameters
        ----------
        X : array-like of shape (n, p), or None
            Rows that no step of the fit or of a search has seen; None: the certificate of the fit.
            They are not compared with those of the fit.
        y : array-like of shape (n,), or None
            Their targets.
        delta : float or None
            Probability with which the promise may fail; None: `delta` of the fit.
        duplicates : {"auto", "genuine", "copies", "refuse"} or None
            What rows are that are alike; see `certree.certify`. None: "auto".

        Returns
        -------
        Certificate
            In units of the target; errors beyond ``certificate_.unit`` count as that. Without rows
            `certificate_`, at the given delta.

        Raises
        ------
        ValueError
            If there are rows without targets, or the other way round, or rows that are alike and
            nothing is said of them.
        """
        check_is_fitted(self)
        level = self.delta if delta is None else delta
        if X is None and y is None:
            if duplicates is not None:
                raise ValueError("duplicates speaks of new rows: certify takes it with X and y")
            return self.certificate_ if delta is None else self.certificate_.at(delta)
        if X is None or y is None:
            raise ValueError("certify takes both X and y, or neither")
        model: Any = self
        said = model.predict(X)
        truth: Float64 = check_column("y", y, "float64", said.shape)
        word: Duplicates = "auto" if duplicates is None else duplicates
        judged = select_calibration_rows(self, X, truth, word)
        rows = judged.rows
        about = said[rows], truth[rows], self._error_limit, level
        return certify_absolute_error(*about, is_worst=judged.is_worst, **judged.drawn)

    @property
    def _error_limit(self) -> float:
        """The largest error that counts."""
        limit = self.certificate_.unit
        assert limit is not None  # that of a mean error has one
        return limit

    def _certify_intervals(self, coverage: float, delta: float) -> tuple[Certificate | None, ...]:
        drawn = get_sampling_facts(self.certificate_)
        return self.conformity_scores_.certificates("band", coverage, delta, **drawn)

    def _fill_in_levels(self, coverage: float | None, delta: float | None) -> tuple[float, float]:
        return (
            self.coverage if coverage is None else coverage,
            self.delta if delta is None else delta,
        )

    def _check_scores(self) -> Scores:
        check_is_fitted(self)
        if self.certificate_.grouped:
            raise ValueError(
                "bands are about single rows, and rows of one group depend on each other: expected a "
                "fit without groups"
            )
        return self.conformity_scores_


def find_error_limit(off: Float64, y: Float64) -> float:
    """The largest of some absolute errors of targets, which larger ones are to count as."""
    return compute_error_limit(float(off.max(initial=0.0)), float(y.min()), float(y.max()))


def compute_error_limit(largest: float, least: float, most: float) -> float:
    """The same of the largest error, and the smallest and the largest target."""
    if largest > _NOTHING * max(abs(least), abs(most)):
        return largest
    # Where nothing was judged or missed, the target's own range is as good, or any number.
    return most - least or 1.0


def certify_absolute_error(
    said: Float64,
    y: Float64,
    limit: float,
    delta: float,
    weight: Float64 | None = None,
    n: int | None = None,
    is_worst: NDArray[np.bool_] | None = None,
    **drawn: Any,
) -> Certificate:
    """Certify the mean absolute error of predictions by rows that they were made without.

    Parameters
    ----------
    said, y : ndarray of shape (n,)
        Predictions and targets.
    limit : float
        Absolute error that larger ones count as, fixed without these rows.
    delta : float
        Probability with which the promise may fail.
    weight : ndarray of shape (n,), or None
        Of rows in groups 1 / (rows of its group).
    n : int or None
        Number of groups.
    is_worst : ndarray of bool, shape (n,), or None
        Rows whose error counts as the limit; None: none.
    **drawn
        See `get_sampling_facts`.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    loss = compute_clipped_losses(said, y, limit, is_worst)
    risk = float(loss.mean()) if weight is None else float(weight @ loss) / (n or len(y))
    entries = (risk,), n or len(y), 0.0, delta, 1.0
    return compute_certificate("absolute_error", *entries, unit=limit, **drawn)
