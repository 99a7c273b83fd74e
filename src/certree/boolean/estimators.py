"""Estimators in scikit-learn's interface: sparse polynomials over two-valued features."""

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

from certree.boolean.bits import Bits, infer_coding
from certree.boolean.low_degree import low_degree
from certree.boolean.selection import (
    Examples,
    SparsePolynomial,
    propose_by_trees,
    propose_small_sets,
    select,
)
from certree.boolean.spectrum import Spectrum
from certree.interface.arrays import MAX_SETTING, Float64, UInt64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import COUNT
from certree.interface.threads import N_JOBS
from certree.rows.training import RowInputMixin

Method = Literal["trees", "lasso", "omp", "low_degree", "low_degree_threshold"]

_METHODS = {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}


class FourierEstimator(RowInputMixin, BaseEstimator, metaclass=ABCMeta):
    """Abstract base of `FourierClassifier` and `FourierRegressor`.

    `fit` fits one sparse polynomial (a sum of products of two-valued features) for each target that
    the subclass derives from y by its method `_encode_targets`.

    Parameters
    ----------
    method : {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}, default="trees"
        How products are chosen. "trees": among sets of features that boosted trees propose, and
        small sets that correlate with the target. "lasso", "omp": among all sets of at most
        `degree` features, by the Lasso or orthogonal matching pursuit. "low_degree": all such sets,
        each with the mean of the target times its product as coefficient. "low_degree_threshold":
        the same without the coefficients that a target of pure noise could produce.
    degree : int, default=3
        Largest number of features of a searched product.
    max_terms : int or None, default=None
        Largest number of products besides the constant, for each polynomial; None: no limit.
    random_state : int, RandomState or None, default=None
        Draws the validation set, and seeds the boosted trees.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Attributes
    ----------
    spectrum_ : Spectrum
        The fitted polynomials, one output for each.
    validation_score_ : float
        R2 on the validation set, averaged over the polynomials; NaN for methods without a
        validation set.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions(_METHODS)],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "max_terms": [COUNT, None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    spectrum_: Spectrum
    validation_score_: float
    # Features are two numbers, never categories, so this is no parameter of the constructor.
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
        self._set_parameters(locals())

    @fit_method
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose products of two-valued features and fit their coefficients to the target.

        Set `spectrum_` and `validation_score_`. Give a UserWarning if, on the validation set, no
        polynomial is better than the mean of its target.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features with the values 0 and 1, or -1 and 1.
        y : array-like of shape (n,)
            Target of each row: a class for a classifier, or a number for a regressor.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        training = self._prepare_training(X, y)
        rows, rng = training.X, check_random_state(self.random_state)
        bits = Bits.two_valued(rows.shape[1], infer_coding(rows))
        outputs = [
            self._fit_output(Examples(rows, target, bits, self.n_jobs), rng)
            for target in self._encode_targets(training.y)
        ]
        if all(terms.score == 0 for terms in outputs) and training.y.min() < training.y.max():
            warnings.warn(
                "no product of features explains y better than the mean of y does: y is noise, or "
                f"depends on more than degree={self.degree} features together, as a parity does; "
                "try a larger degree",
                stacklevel=5,
            )
        unit = np.eye(len(outputs))
        columns = [np.outer(terms.coefficients, unit[k]) for k, terms in enumerate(outputs)]
        masks = np.concatenate([terms.masks for terms in outputs])
        self.spectrum_ = Spectrum.from_terms(masks, np.concatenate(columns), bits)
        self.validation_score_ = float(np.mean([terms.score for terms in outputs]))
        return self

    def _takes_missing_values(self) -> bool:
        """Return False: `fit` and `predict` reject rows with missing values."""
        return False

    @abstractmethod
    def _encode_targets(self, y: NDArray[Any]) -> list[Float64]:
        """Convert checked targets, (n,), to the numeric targets (n,) to which polynomials are fitted.

        Subclasses define it. y: numbers of a regressor, or class codes 0 .. K - 1 of a classifier.
        Return one array for each polynomial, hence for each output of the spectrum.
        """

    def _fit_output(self, examples: Examples, rng: np.random.RandomState) -> SparsePolynomial:
        """Choose the terms of one polynomial and fit their coefficients, as `method` says.

        "trees", "lasso" and "omp" search sets of features and choose their number on a validation
        set; "low_degree" and "low_degree_threshold" use means over all rows. examples: the rows,
        and the numeric target of this polynomial; rng: draws the validation set and the seed of the
        boosted trees. Return the terms with the score on the validation set, which is NaN for
        methods that have none.
        """
        if self.method in ("low_degree", "low_degree_threshold"):
            return self._fit_by_averages(examples)
        seed = rng.randint(2**31 - 1)

        def propose(rows: Examples) -> UInt64:
            """Return the masks, (k, W), of the sets of features that may become terms.

            rows: examples outside the validation set, from which sets are proposed. Variables of
            the enclosing call are the estimator `self` and `seed`, a random integer. If
            `self.method` is "trees", take the sets with the largest coefficients in boosted trees
            that are fitted with this seed, and the sets of at most `self.degree` features whose
            products correlate most with the target; otherwise all sets of at most `self.degree`
            features. W = ceil(p / 64): bit j % 64 of word j // 64
            of a mask is 1 if feature j belongs to the set.
            """
            if self.method == "trees":
                return propose_by_trees(rows, self.degree, seed)
            return propose_small_sets(rows, self.degree)

        search: Any = "omp" if self.method == "omp" else "lasso"
        return select(examples, propose, search, self.max_terms, rng)

    def _fit_by_averages(self, examples: Examples) -> SparsePolynomial:
        """Estimate the coefficient of each small set as the mean of y times the set's product of signs.

        The mean is over all rows of `examples`. Sets have at most `degree` features. If `method` is
        "low_degree_threshold", drop coefficients that are smaller than ``sqrt(2 ln(N) / m)`` times
        the root mean square of y, for N sets and m rows: noise alone could produce them. Keep at
        most `max_terms` products beside the constant, those with the largest coefficients. The
        score of the result is NaN, as there is no validation set.
        """
        coding: Any = examples.bits.coding
        spectrum = low_degree(
            examples.X,
            examples.y,
            self.degree,
            keep="all" if self.method == "low_degree" else "practical",
            coding=coding,
            largest=float(np.abs(examples.y).max()),
            n_jobs=self.n_jobs,
        ).spectrum
        is_constant: NDArray[np.bool_] = ~np.any(spectrum.masks, axis=1)
        by_size = np.argsort(-spectrum.squares, kind="stable")
        products = by_size[~is_constant[by_size]][: self.max_terms]
        kept = spectrum.select_terms(np.union1d(np.flatnonzero(is_constant), products))
        return SparsePolynomial(kept.masks, kept.coefficients[:, 0], np.nan)

    def _evaluate(self, X: ArrayLike) -> Float64:
        """Check the rows X, (n, p), and return the fitted polynomials' values, (n, n_outputs).

        The polynomials are the outputs of `spectrum_`. Raise ValueError if X has another number of
        features than the fit, missing values, or other values than the two of the fit.
        """
        rows = self._encode_new_rows(X)
        return self.spectrum_.evaluate(rows, n_jobs=self.n_jobs)


class FourierRegressor(RegressorMixin, FourierEstimator):
    """A regressor that predicts a sparse polynomial: a sum of products of two-valued features.

    Parameters
    ----------
    method : {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}, default="trees"
        How products are chosen.

        - "trees": boosted trees propose sets of features of any size; sets of at most `degree`
          features that correlate most with y are added. The Lasso orders these candidates, least
          squares fits them, and a validation set, a fifth of the rows, chooses how many are kept.
        - "lasso", "omp": as "trees", but the candidates are all sets of at most `degree` features,
          and the Lasso, or orthogonal matching pursuit, orders them.
        - "low_degree": the polynomial has all sets of at most `degree` features. The coefficient of
          each is the mean of y times its product, which is the true coefficient if features are
          independent and both values are equally frequent.
        - "low_degree_threshold": as "low_degree", but terms are dropped if their coefficients are
          not larger than the largest would be if y were independent of X: ``sqrt(2 ln(N) / m)``
          times the root mean square of y, for N sets and m rows.
    degree : int, default=3
        Largest number of features of a searched set. Boosted trees may propose larger sets.
    max_terms : int or None, default=None
        Largest number of products besides the constant; None: no limit.
    random_state : int, RandomState or None, default=None
        Draws the validation set, and seeds the boosted trees.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Attributes
    ----------
    spectrum_ : Spectrum
        The polynomial.
    validation_score_ : float
        R2 on the validation set of the polynomial fitted to all other rows; its baseline is the
        mean target of these rows. NaN for "low_degree" and "low_degree_threshold", which have no
        validation set. The number of terms was chosen by it, so it is optimistic: `held_out_error`
        bounds the error on rows that had no part in the fit.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Linial, Mansour and Nisan, 1993, for means; Stobbe and Krause, "Learning Fourier sparse set
    functions", 2012, for sparse recovery; Butler, Agarwal, Kang, Erginbas, Ramchandran and Yu,
    "ProxySPEX", 2025, for sets proposed by trees. Choosing the number of terms on a validation set
    is ours.

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

    def _encode_targets(self, y: NDArray[Any]) -> list[Float64]:
        """Return [y], as one polynomial is fitted to the target itself.

        Raise ValueError if a number is larger than 1e150 in size, as its square would overflow.
        """
        if not np.abs(y).max() <= MAX_SETTING:
            raise ValueError(
                f"y must have absolute values of at most {MAX_SETTING:g}, got {np.abs(y).max():g}: "
                "rescale it, as "
                "squares of larger numbers are infinite"
            )
        return [y]

    @snapshot_method
    def predict(self, X: ArrayLike) -> Float64:
        """Predict the number of each row: the value of the fitted polynomial.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features with the two values of the fit.

        Returns
        -------
        ndarray of shape (n,)
            Numbers in units of the target.
        """
        return self._evaluate(X)[:, 0]


@copy_descriptions_from(FourierRegressor)
class FourierClassifier(ClassifierMixin, FourierEstimator):
    """A classifier by sparse polynomials in two-valued features.

    With two classes, one polynomial is fitted to a target of -1 and 1. With more, one polynomial is
    fitted for each class, to a target of 0 and 1.

    Parameters
    ----------
    method : {"trees", "lasso", "omp", "low_degree", "low_degree_threshold"}, default="trees"
        How products are chosen. "trees": among sets of features that boosted trees propose, and
        small sets that correlate with the target. "lasso", "omp": among all sets of at most
        `degree` features, by the Lasso or orthogonal matching pursuit. In all three a validation
        set chooses how many are kept. "low_degree": the coefficient of each such set is a mean over
        the rows, and all are kept; "low_degree_threshold": only those that are larger than the
        largest would be if y were independent of X. `FourierRegressor` has the details.
    {degree}
    max_terms : int or None, default=None
        Largest number of products besides the constant, for each polynomial; None: no limit.
    {random_state} {n_jobs}

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    spectrum_ : Spectrum
        The polynomials: one output for two classes, else K outputs.
    validation_score_ : float
        R2 on the validation set, averaged over the polynomials; optimistic, as the number of terms
        was chosen by it. NaN for "low_degree" and "low_degree_threshold", which have no validation
        set.
    sample_hashes_ : ndarray of uint64
        A hash of each row of the fit, by which functions that certify the classifier on new rows
        find those that are equal to a row of the fit.
    {n_features_in_} {feature_names_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from certree.boolean import FourierClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 12))
    >>> y = X[:, 0] & X[:, 1]
    >>> FourierClassifier(random_state=0).fit(X, y).predict(X[:4])
    array([1, 1, 0, 0])
    """

    def _encode_targets(self, y: NDArray[Any]) -> list[Float64]:
        """Convert the class codes y, (n,), to one float target (n,) for each polynomial.

        Two classes: one target, -1 for the first class and 1 for the second. One class: one target
        of ones. More classes: for each class a target of 1 in its rows and 0 in others.
        """
        if self.n_classes_ <= 2:
            return [2.0 * y - 1.0 if self.n_classes_ == 2 else np.ones(len(y))]
        return [(y == k).astype(np.float64) for k in range(self.n_classes_)]

    @snapshot_method
    def decision_function(self, X: ArrayLike) -> Float64:
        """Return the values of the fitted polynomials at rows.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features with the two values of the fit.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            For at most two classes one number for each row, positive if `predict` returns the
            second class. For K > 2 classes one number for each class; `predict` returns the class
            of the largest.
        """
        scores = self._evaluate(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; ties go to the first class in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features with the two values of the fit.

        Returns
        -------
        ndarray of shape (n,)
            Classes, as in the y of the fit.
        """
        scores = self._evaluate(X)
        best = scores.argmax(axis=1)
        if self.n_classes_ == 2:
            best = (scores[:, 0] > 0).astype(np.intp)
        return self.classes_.take(best)

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Compute class probabilities from the polynomials, clipped and scaled to sum to 1.

        With two classes, the second class has the probability (1 + f) / 2, where f is the
        polynomial clipped to -1 .. 1. With more, polynomials are clipped to 0 .. 1 and divided by
        their sum; if all are 0, classes have equal probabilities.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features with the two values of the fit.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of `classes_`; rows sum to 1.
        """
        scores = self._evaluate(X)
        if self.n_classes_ == 2:
            second = (1 + np.clip(scores, -1, 1)) / 2
            return np.hstack([1 - second, second])
        clipped = np.clip(scores, 0, 1)
        total = clipped.sum(axis=1, keepdims=True)
        return np.where(total > 0, clipped / np.where(total > 0, total, 1), 1 / self.n_classes_)
