"""Sparse polynomials over two-valued features, behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from certree.boolean.bits import Bits, coding_of
from certree.boolean.low_degree import low_degree
from certree.boolean.selection import Examples, Selected, all_small, proposed_by_trees, select
from certree.boolean.spectrum import Spectrum
from certree.interface.arrays import MAX_SETTING, Float64, UInt64
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import COUNT
from certree.interface.threads import N_JOBS
from certree.rows.training import TakesRows

Method = Literal["trees", "lasso", "omp", "low_degree", "low_degree_threshold"]

_METHODS = {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}


class FourierEstimator(TakesRows, BaseEstimator, metaclass=ABCMeta):
    """What both share: characters are chosen, and their coefficients fitted, for each output."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions(_METHODS)],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "max_terms": [COUNT, None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    spectrum_: Spectrum
    validation_score_: float
    # Two values are numbers, whatever they stand for: no parameter.
    categorical_features = None

    def __init__(
        self,
        method: Method = "trees",
        *,
        degree: int = 3,
        max_terms: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._store(locals())

    @fit_method
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose characters and fit their coefficients.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features with the values 0 and 1, or -1 and 1.
        y : array-like of shape (n,)
            Target of each row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        training = self._take(X, y)
        rows, rng = training.X, check_random_state(self.random_state)
        bits = Bits.two_valued(rows.shape[1], coding_of(rows))
        parts = [
            self._learned(Examples(rows, target, bits, self.n_jobs), rng)
            for target in self._targets(training.y)
        ]
        if all(one.score == 0 for one in parts) and training.y.min() < training.y.max():
            warnings.warn(
                "no characters that were looked at explain y better than its mean does: it is noise, "
                f"or hangs on more than degree={self.degree} features together, as a parity does",
                stacklevel=4,
            )
        width = len(parts)
        columns = [np.outer(one.coefficients, np.eye(width)[k]) for k, one in enumerate(parts)]
        masks = np.concatenate([one.masks for one in parts])
        self.spectrum_ = Spectrum.of(masks, np.concatenate(columns), bits)
        self.validation_score_ = float(np.mean([one.score for one in parts]))
        return self

    def _takes_missing_values(self) -> bool:
        return False

    @abstractmethod
    def _targets(self, y: NDArray[Any]) -> list[Float64]:
        """The numbers that are learned, one column for each output."""

    def _learned(self, examples: Examples, rng: np.random.RandomState) -> Selected:
        if self.method in ("low_degree", "low_degree_threshold"):
            return self._averaged(examples)
        seed = rng.randint(2**31 - 1)

        def propose(rows: Examples) -> UInt64:
            if self.method == "trees":
                return proposed_by_trees(rows, self.degree, seed)
            return all_small(rows, self.degree)

        search: Any = "omp" if self.method == "omp" else "lasso"
        return select(examples, propose, search, self.max_terms, rng)

    def _averaged(self, examples: Examples) -> Selected:
        coding: Any = examples.bits.coding
        found = low_degree(
            examples.X,
            examples.y,
            self.degree,
            keep="all" if self.method == "low_degree" else "practical",
            coding=coding,
            largest=float(np.abs(examples.y).max()),
            n_jobs=self.n_jobs,
        ).spectrum
        largest = np.argsort(-found.squares, kind="stable")[: self.max_terms]
        kept = found.only(np.sort(largest))
        return Selected(kept.masks, kept.coefficients[:, 0], np.nan)

    def _scores(self, X: ArrayLike) -> Float64:
        rows = self._new_rows(X)
        return self.spectrum_.evaluate(rows, n_jobs=self.n_jobs)


class FourierRegressor(RegressorMixin, FourierEstimator):
    """A sparse polynomial in two-valued features: a sum of products of them.

    Parameters
    ----------
    method : {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}, default="trees"
        How the products are found. "trees": boosted trees propose sets of features, and so do the
        correlations of all sets of at most `degree` features; the Lasso chooses among them, least
        squares fit what is chosen, and a fifth of the rows decides how many are. "lasso", "omp": the
        Lasso, or orthogonal matching pursuit, chooses among all sets of at most `degree` features, and
        the same follows. "low_degree": means of y times each of these products, which are their
        coefficients if features are fair and independent; "low_degree_threshold": those above what
        noise reaches.
    degree : int, default=3
        Size of the sets that are looked through. The sets that trees propose may be larger.
    max_terms : int or None, default=None
        At most so many products besides the constant.
    random_state : int, RandomState or None, default=None
        Draws the rows that judge, and seeds the boosted trees.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Attributes
    ----------
    spectrum_ : Spectrum
        The polynomial.
    validation_score_ : float
        R2 on the rows that judged how many terms there are, by coefficients from the others and
        against their mean; NaN if none judged. `held_out_error` gives a bound on the error, from rows
        that had no part in the fit.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Linial, Mansour and Nisan, 1993, for means; Stobbe and Krause, "Learning Fourier sparse set
    functions", 2012, for sparse recovery; Butler, Agarwal, Kang, Erginbas, Ramchandran and Yu,
    "ProxySPEX", 2025, for proposals of trees. How many terms there are is chosen by other rows here.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.boolean import FourierRegressor
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 12))
    >>> y = 1.0 * (X[:, 0] ^ X[:, 1] ^ X[:, 2]) + X[:, 3]
    >>> print(FourierRegressor(random_state=0).fit(X, y).spectrum_)
    3 terms of degree 3 over 12 bits, squared norm 1.5
      +1  1
      -0.5  x[3]
      -0.5  x[0] x[1] x[2]
    """

    def _targets(self, y: NDArray[Any]) -> list[Float64]:
        if not np.abs(y).max() <= MAX_SETTING:
            raise ValueError(
                f"y must be of size {MAX_SETTING:g} at most: the squares of more are infinite"
            )
        return [y]

    @snapshot_method
    def predict(self, X: ArrayLike) -> Float64:
        """Predict the number of each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Numbers in units of the target.
        """
        return self._scores(X)[:, 0]


class FourierClassifier(ClassifierMixin, FourierEstimator):
    """A sparse polynomial in two-valued features, whose values are probabilities of classes.

    Of two classes, the polynomial is that of a target of -1 and 1; of more, there is one for each
    class, of a target of 0 and 1.

    Parameters
    ----------
    method : {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}, default="trees"
        How products are found; see `FourierRegressor`.
    degree : int, default=3
        Size of the sets that are looked through.
    max_terms : int or None, default=None
        At most so many products, besides the constant, for each polynomial.
    random_state : int, RandomState or None, default=None
        Draws the rows that judge, and seeds the boosted trees.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    spectrum_ : Spectrum
        The polynomial of two classes, or K polynomials.
    validation_score_ : float
        See `FourierRegressor`; the mean of those of all polynomials.
    sample_hashes_ : ndarray of uint64
        Hashes of the rows of the fit.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.boolean import FourierClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 12))
    >>> y = X[:, 0] & X[:, 1]
    >>> FourierClassifier(random_state=0).fit(X, y).predict(X[:4])
    array([1, 1, 0, 0])
    """

    def _targets(self, y: NDArray[Any]) -> list[Float64]:
        if self.n_classes_ <= 2:
            return [2.0 * y - 1.0 if self.n_classes_ == 2 else np.ones(len(y))]
        return [(y == k).astype(np.float64) for k in range(self.n_classes_)]

    @snapshot_method
    def decision_function(self, X: ArrayLike) -> Float64:
        """Give the values of the polynomials.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            Of two classes, what is positive for the second.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row, ties to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        scores = self._scores(X)
        best = scores.argmax(axis=1)
        if self.n_classes_ == 2:
            best = (scores[:, 0] > 0).astype(np.intp)
        return self.classes_.take(best)

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Predict probabilities of the classes: the polynomials, cut off at 0 and 1.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of `classes_`; rows sum to 1.
        """
        scores = self._scores(X)
        if self.n_classes_ == 2:
            second = (1 + np.clip(scores, -1, 1)) / 2
            return np.hstack([1 - second, second])
        shares = np.clip(scores, 0, 1)
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1), 1 / self.n_classes_)
