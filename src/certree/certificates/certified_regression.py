"""Certified regressors: prediction intervals with guaranteed coverage, and error bounds."""

from __future__ import annotations

from abc import abstractmethod
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certree.certificates.baseline import compute_median_baseline
from certree.certificates.calibration_set import compute_clipped_losses
from certree.certificates.certificate import Certificate, compute_certificate, get_sampling_facts
from certree.certificates.leakage_check import select_calibration_rows
from certree.certificates.row_order import measure_row_order, warn_of_row_order
from certree.certificates.subsets.coverage import Scores
from certree.interface.arrays import Float64, check_column
from certree.interface.fitted_state import expect_rows, snapshot_method
from certree.interface.parameter_aliases import suggests_arguments
from certree.rows.duplicates import Duplicates
from certree.rows.time_order import RowTimes, has_dependent_rows

# Relative rounding error of computing a score from a target and an interval from a score. Intervals are
# widened by it, so that a target which many rows share is not left out.
_ROUNDING = 4 * np.finfo(np.float64).eps
# Smallest scale of a leaf as a fraction of the mean error: a few rows may have small errors by chance.
LEAST_SCALE = 0.3
# Errors below this fraction of the largest target are rounding errors.
_NOTHING = 1e-12


class CertifiedRegressorMixin:
    """Mixin with the methods of certified regressors: prediction intervals and certificates.

    A subclass sets the attributes below in ``fit`` and defines ``predict`` and
    `_predict_with_half_width`. The mixin has no constructor.

    Attributes
    ----------
    coverage, delta : float
        Parameters of the estimator: coverage of prediction intervals, and probability with which
        guarantees may fail.
    certificate_ : Certificate
        Bound on the mean absolute error, in units of the target; its `unit` is the largest error
        that counts.
    certificates_ : tuple of Certificate
        All certificates of the fit, `certificate_` among them.
    conformity_scores_ : Scores
        Sorted conformity scores of the calibration rows.
    """

    coverage: float
    delta: float
    certificate_: Certificate
    certificates_: tuple[Certificate, ...]
    conformity_scores_: Scores

    @abstractmethod
    def _predict_with_half_width(self, X: ArrayLike, reach: Float64) -> tuple[Float64, Float64]:
        """Return predictions and half widths of prediction intervals, both (n_rows,).

        The half width is in units of the target. X: rows, (n_rows, p). reach: largest conformity
        score (absolute error divided by the scale of the row) that an interval includes, in each of
        R regions of the tree (one if there are no regions), (R,), from `Scores.find_limits`.
        """

    @suggests_arguments
    @snapshot_method
    def predict_interval(
        self, X: ArrayLike, coverage: float | None = None, delta: float | None = None
    ) -> Float64:
        """Return a prediction interval for each row.

        With probability ``1 - delta`` over the draw of the calibration rows, the interval of a new
        row contains its target with probability at least `coverage`.

        Parameters
        ----------
        X : array-like of shape (n_rows, p)
            New rows.
        coverage : float or None
            Fraction of new rows whose interval contains the target; None: `coverage` of the
            estimator.
        delta : float or None
            Probability with which fewer do; None: `delta` of the estimator.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper end, in units of the target. With ``widths="leaf"``, where each region
            of the tree is covered separately, infinite in a region with too few calibration rows.

        Raises
        ------
        ValueError
            If an argument is not between 0 and 1, there are too few calibration rows, the rows of
            the fit came in groups, or rows in time order may depend on each other.
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
        """Return certificates of the coverage of the intervals that `predict_interval` returns.

        Parameters
        ----------
        coverage : float or None
            Fraction of new rows whose interval contains the target; None: `coverage` of the
            estimator.
        delta : float or None
            Probability with which fewer do; None: `delta` of the estimator.

        Returns
        -------
        tuple of (Certificate or None)
            Each bounds the fraction of targets outside their intervals: one certificate for all
            rows. With ``widths="leaf"``, where each region of the tree is covered separately, one
            for each region in the order of the numbers in ``intervals_.region``, which hold
            together. None for a region with infinite intervals.

        Raises
        ------
        ValueError
            If an argument is not between 0 and 1, there are too few calibration rows, the rows of
            the fit came in groups, or rows in time order may depend on each other.
        """
        scores, levels = self._check_scores(), self._fill_in_levels(coverage, delta)
        scores.find_limits(*levels)
        return self._certify_intervals(*levels)

    @snapshot_method
    def certify(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        delta: float | None = None,
        *,
        duplicates: Duplicates | None = None,
        groups: ArrayLike | None = None,
        time: Any = None,
        independent: bool = False,
    ) -> Certificate:
        """Certify the mean absolute error by new rows, or return the certificate of the fit.

        Parameters
        ----------
        X : array-like of shape (n, p), or None
            Calibration rows that no step of the fit or of a parameter search has used; None: return
            the certificate of the fit.
        y : array-like of shape (n,), or None
            Their targets.
        delta : float or None
            Probability with which the bound may be below the true error; None: `delta` of the
            estimator.
        duplicates : {"auto", "genuine", "copies", "refuse"} or None
            "auto": a small number of rows may equal each other or rows of the fit
            (`certree.certify` states it); "genuine": all rows are new draws; "copies": equal rows
            count once; "refuse": no row may equal another or one of the fit. None: "auto". The model
            keeps hashes of the rows of its fit.
        groups : array-like of shape (n,), or None
            Group of each row, such as a customer, if rows of a group depend on each other; the
            bound is then on the mean over groups of each group's mean error. No row of the fit may
            be of these groups, which is not checked. None: rows are independent.
        time : array-like of shape (n,), str or None
            Time of each row, or a column of X, if all rows are later than those of the fit; see
            `certree.certify`. None: rows have no times.
        independent : bool
            Whether rows of the period are independent draws. Only used with `time`.

        Returns
        -------
        Certificate
            Upper bound on the mean absolute error of new rows, in units of the target; errors above
            ``certificate_.unit`` count as that. Without rows ``certificate_``, recomputed for
            `delta`.

        Raises
        ------
        ValueError
            If only one of X and y is passed, `duplicates`, `groups` or `time` is passed without
            rows, y has another length or is not finite, there are no rows, `groups` does not name a
            group for each row, or `duplicates` does not accept the repeated rows.
        """
        check_is_fitted(self)
        level = self.delta if delta is None else delta
        if X is None and y is None:
            if any(one is not None for one in (duplicates, groups, time)) or independent:
                raise ValueError(
                    "time, duplicates, groups and independent describe new rows: pass X and y with "
                    "them"
                )
            return self.certificate_ if delta is None else self.certificate_.at(delta)
        if X is None or y is None:
            raise ValueError(
                "X and y must be passed together, or neither for the certificate of the fit, got "
                f"{'X' if X is None else 'y'}=None: pass both"
            )
        expect_rows(np.size(y), "certify a model")
        model: Any = self
        predicted = model.predict(X)
        truth: Float64 = check_column("y", y, "float64", predicted.shape)
        word: Duplicates = "auto" if duplicates is None else duplicates
        times = RowTimes.read(time, X, len(truth), is_independent=independent)
        selected = select_calibration_rows(self, X, truth, word, groups, times)
        rows, weight = selected.rows, selected.weight
        n = None if weight is None else round(weight.sum())
        order = measure_row_order(selected.units, 1, lambda some: (truth - predicted)[rows[some]])
        warn_of_row_order(order, lambda: bool(model.dates_))
        about = predicted[rows], truth[rows], self._error_limit, level, weight, n
        drawn = {"row_order": order, **selected.drawn}
        return certify_absolute_error(*about, is_worst=selected.is_worst, **drawn)

    @property
    def _error_limit(self) -> float:
        """Largest absolute error that the certificate counts, in units of the target.

        Larger errors are clipped to it, as the mean of unbounded errors has no bound. It is the
        field `unit` of ``certificate_``; the model must be fitted.
        """
        limit = self.certificate_.unit
        assert limit is not None  # certificates of a mean error have a unit
        return limit

    def _certify_intervals(self, coverage: float, delta: float) -> tuple[Certificate | None, ...]:
        """Return the certificates of the prediction intervals' coverage.

        coverage: fraction of new rows whose interval contains the target; delta: probability with
        which fewer do. Each certificate bounds the fraction of new rows whose target is outside its
        interval. Here a tuple of one certificate for all rows (None if the interval is infinite);
        subclasses with regions return one for each region.
        """
        drawn = get_sampling_facts(self.certificate_)
        return self.conformity_scores_.certificates("band", coverage, delta, **drawn)

    def _fill_in_levels(self, coverage: float | None, delta: float | None) -> tuple[float, float]:
        """Return the pair (coverage, delta), with the estimator's parameters in place of None.

        coverage: fraction of new rows whose interval contains the target; delta: probability with
        which fewer do. The estimator's parameter of the same name replaces an argument that is
        None.
        """
        return (
            self.coverage if coverage is None else coverage,
            self.delta if delta is None else delta,
        )

    def _check_scores(self) -> Scores:
        """Return the attribute ``conformity_scores_``, the sorted scores of the calibration rows.

        Raises NotFittedError before ``fit``, and ValueError if the rows of the fit came in groups, or
        rows in time order may depend on each other. `Scores` holds them by region of the tree; there
        is a single region if intervals are not covered leaf by leaf.
        """
        check_is_fitted(self)
        if self.certificate_.grouped:
            raise ValueError(
                "prediction intervals need independent rows, but the rows of this fit came in groups "
                "(parameter groups): keep one row of each group and fit without groups"
            )
        if has_dependent_rows(self.certificate_):
            raise ValueError(
                "prediction intervals need independent rows, but rows in time order (parameter "
                "time) may depend on each other: fit with independent=True if rows of one period do not"
            )
        return self.conformity_scores_


def find_error_limit(absolute_errors: Float64, y: Float64) -> float:
    """Return the limit at which absolute errors are clipped, from errors of the training rows.

    absolute_errors: of the training rows, (n,); y: their targets, (n,), at least one. Return the
    limit in units of the target: the largest of the errors; if that is 0 up to rounding, the range
    of the targets, or 1 if they are all equal.
    """
    largest = float(absolute_errors.max(initial=0.0))
    return compute_error_limit(largest, float(y.min()), float(y.max()))


def compute_error_limit(largest: float, least: float, most: float) -> float:
    """Return the limit at which absolute errors are clipped: the largest error of the training rows.

    largest: largest absolute error of the training rows; least, most: smallest and largest target
    of the training rows. If the error is 0 up to rounding, return the range of the targets, or 1 if
    that is 0.
    """
    if largest > _NOTHING * max(abs(least), abs(most)):
        return largest
    # Without an error to learn from, the range of the target serves, or any positive number.
    return most - least or 1.0


def certify_absolute_error(
    predicted: Float64,
    y: Float64,
    limit: float,
    delta: float,
    weight: Float64 | None = None,
    n: int | None = None,
    is_worst: NDArray[np.bool_] | None = None,
    **drawn: Any,
) -> Certificate:
    """Certify the mean absolute error of predictions that were fixed without the calibration rows.

    Parameters
    ----------
    predicted, y : ndarray of shape (n_rows,)
        Predictions and targets of the calibration rows.
    limit : float
        Absolute error at which larger ones are clipped, fixed without these rows.
    delta : float
        Probability with which the bound may be below the true error.
    weight : ndarray of shape (n_rows,), or None
        For rows in groups 1 / (calibration rows of the row's group); None: rows are independent.
    n : int or None
        Number of groups among the calibration rows; None: rows are independent.
    is_worst : ndarray of bool, shape (n_rows,), or None
        True for rows that equal a row of the fit or another calibration row, and whose error
        therefore counts as the limit; None: no such rows.
    **drawn
        Fields of `Certificate` by name, which describe the calibration rows: `grouped` (whether
        groups count), `period` (of rows with times), `repeats` (number of rows that equal a row of
        the fit or another one), `distinct` (whether equal rows count once), `worst` (number of rows
        with `is_worst`), `matches` and `near_copies` (rows that equal, or nearly equal, rows of the
        fit) and `row_order` (whether errors depend on the order of the rows).

    Returns
    -------
    Certificate
        Bound on the mean absolute error of new rows, in units of the target; errors above `limit`
        count as `limit`.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    loss = compute_clipped_losses(predicted, y, limit, is_worst)
    # fsum rounds once, so that the result does not depend on the order of the rows.
    risk = fsum(loss if weight is None else weight * loss) / (n or len(y))
    entries = (risk,), n or len(y), 0.0, delta, 1.0
    baseline = compute_median_baseline(y, limit, weight)
    return compute_certificate("absolute_error", *entries, unit=limit, baseline=baseline, **drawn)
