"""Certificates of classifiers that were fixed before the rows were seen, whose fit may certify too."""

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certree.certificates.certificate import Certificate, certificate_of
from certree.interface.arrays import array_of
from certree.interface.fitted import reads_state
from certree.interface.signatures import checked
from certree.rows.hashes import n_known


@checked
def hold_out(errors: int, n: int, delta: float = 0.05, share: float = 1.0) -> Certificate:
    """Certify a classifier by rows that were used for nothing else.

    Parameters
    ----------
    errors : int
        Rows that it gets wrong.
    n : int
        Rows.
    delta : float
        Probability with which the promise may fail.
    share : float
        Share of delta that is used up here.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from certree.certificates import hold_out
    >>> round(hold_out(errors=30, n=1000).bound, 4)
    0.0405
    """
    return hold_out_best([errors], n, delta, share, method="hold_out")


@checked
def hold_out_best(
    errors: Sequence[int],
    n: int,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: Literal["hold_out", "hold_out_best"] = "hold_out_best",
) -> Certificate:
    """Certify the best of several classifiers that were all fixed before the rows were seen.

    Parameters
    ----------
    errors : sequence of int
        Rows that each classifier gets wrong.
    n : int
        Rows.
    delta, share : float
        As in `hold_out`.
    method : {"hold_out_best", "hold_out"}
        Row of `METHODS`; the latter for a single classifier.

    Returns
    -------
    Certificate
        That of the first with the fewest errors.
    """
    counted = list(errors)
    if n < 1 or not counted or min(counted) < 0 or max(counted) > n:
        raise ValueError(
            f"errors must be whole numbers in 0 .. n with n >= 1, got {errors!r}, {n!r}"
        )
    risk = float(min(counted)) / n
    return certificate_of(method, (risk,), n, math.log(len(counted)), delta, share)


@checked
def hold_out_mean(
    risk: float, n: int, delta: float = 0.05, share: float = 1.0, *, grouped: bool = False
) -> Certificate:
    """Certify a classifier like `hold_out` by its mean loss over rows, or over groups of rows.

    Parameters
    ----------
    risk : float
        Mean loss over the rows, or of the mean losses of the groups, between 0 and 1.
    n : int
        Rows, or groups.
    delta, share : float
        As in `hold_out`.
    grouped : bool
        Whether they are groups.

    Returns
    -------
    Certificate
    """
    if n < 1 or not 0 <= risk <= 1:
        raise ValueError(f"expected a risk in 0 .. 1 of n >= 1 rows, got {risk!r}, {n!r}")
    return certificate_of("hold_out_mean", (risk,), n, 0.0, delta, share, grouped=grouped)


def share_of_look(look: Any) -> float:
    """Share of delta that one of any number of looks at growing rows uses up; they sum to 1."""
    if look is None:
        return 1.0
    if isinstance(look, bool) or not isinstance(look, Integral) or look < 1:
        raise ValueError(f"look must be a whole number from 1 on, got {look!r}")
    return 6 / (math.pi * int(look)) ** 2


@checked
def certify(
    classifier: Any,
    X: Any,
    y: ArrayLike,
    delta: float = 0.05,
    *,
    look: int | None = None,
    repeats: Literal["genuine"] | None = None,
) -> Certificate:
    """Certify any fitted classifier by rows that were never used: an upper bound on its test error.

    Unlike a score on test data it is no estimate: it says how high the error on new rows may be, and
    no overfitting of the classifier can break it.

    Parameters
    ----------
    classifier : fitted classifier
        Of certree, scikit-learn or anybody, with ``predict``.
    X : array-like of shape (n, p)
        Rows that neither its fit, nor its choice among others, nor any step before has seen.
    y : array-like of shape (n,)
        Their classes.
    delta : float
        Probability with which the promise may fail.
    look : int or None
        Which look this is, 1, 2, ..., where rows come in and the same ones are looked at again: the
        j-th has a share 6 / (pi^2 j^2) of delta, so that all of them hold together, whenever one
        stops. None: the rows are looked at once.
    repeats : {"genuine"} or None
        A classifier of certree knows the rows of its fit, and refuses to be certified by them. Tables
        may hold a row more than once, though: "genuine" says that rows which occur in the fit as well
        were drawn anew. The certificate then says how many there are.

    Returns
    -------
    Certificate
        The exact binomial bound.

    Raises
    ------
    ValueError
        If there are no rows, not as many classes as rows, the classifier knows none of the classes or
        they are of another kind (text for numbers), or `look` is no number of a look; if rows occur in
        the fit as well, or nobody knows whether they do, and `repeats` is None.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 1934.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from certree import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> certificate = certify(tree, X[300:], y[300:])
    >>> round(certificate.risk, 3), round(certificate.bound, 3)
    (0.108, 0.144)
    """
    predicted, truth = outcomes(classifier, X, y)
    known = repeated(classifier, X, repeats)
    errors = int(np.sum(predicted != truth))
    return replace(hold_out(errors, len(truth), delta, share_of_look(look)), repeats=known)


def outcomes(classifier: Any, X: Any, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """What any classifier predicts of some rows, and their classes."""
    if not hasattr(classifier, "predict"):
        raise TypeError(f"classifier must be a fitted classifier, got {shortened(classifier)}")
    predicted, truth = np.asarray(classifier.predict(X)), array_of("y", y)
    if truth.ndim != 1 or truth.shape != predicted.shape:
        raise ValueError(f"y must have shape {predicted.shape}, got {truth.shape}")
    classes = getattr(classifier, "classes_", None)
    if classes is None:
        _expect_kinds_of("y", truth, predicted)
    else:
        expect_known_labels("y", truth, np.asarray(classes))
    return predicted, truth


def expect_known_labels(name: str, labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels of another kind than the classes of a model, or of which it knows none.

    All of them would count as errors, and nothing would say that they are those of another table. Some
    that are unknown may well come with new rows.
    """
    _expect_kinds_of(name, labels, classes)
    came, known = _plain(labels), _plain(classes)
    if came and set(came).isdisjoint(known):
        raise ValueError(
            f"{name} must hold classes among {shortened(known)}, got {shortened(came)}"
        )


def _expect_kinds_of(name: str, labels: NDArray[Any], known: NDArray[Any]) -> None:
    """Refuse labels that are text where the known ones are numbers, and the like."""
    kinds = set(map(_kind, _plain(known)))
    strange = [label for label in _plain(labels) if _kind(label) not in kinds]
    if strange:
        raise ValueError(
            f"{name} must hold classes of one kind with {shortened(_plain(known))}, "
            f"got {shortened(strange)}"
        )


def _plain(labels: NDArray[Any]) -> list[Any]:
    """Labels as objects of Python, dates in one unit."""
    values: list[Any] = (labels.astype("M8[us]") if labels.dtype.kind == "M" else labels).tolist()
    return values


def _kind(label: Any) -> type:
    return next((kind for kind in (str, Real) if isinstance(label, kind)), type(label))


def repeated(classifier: Any, X: Any, repeats: Any) -> int | None:
    """How many rows occur in the fit of a classifier as well; None: it does not say."""
    model, rows = _innermost(classifier, X)
    if not hasattr(model, "row_hashes_"):
        return None
    ways = 'give repeats="genuine" (on the command line --repeats genuine) if'
    if model.row_hashes_ is None:
        if repeats is None:
            raise ValueError(
                "the model was saved without hashes of the rows of its fit, so that nothing tells "
                f"whether those given are new: {ways} they are"
            )
        return None
    coded = model._new_rows(rows)
    known = n_known(coded, model.row_hashes_)
    if known and repeats is None:
        raise ValueError(
            f"{known:,} of {len(coded):,} rows also occur among those of the fit, by which nothing "
            f"can be certified: give new rows, or {ways} they were drawn anew and happen to be alike"
        )
    return known


def _innermost(classifier: Any, X: Any) -> tuple[Any, Any]:
    """What a search has chosen, or a pipeline ends with, and the rows as they come in there."""
    if hasattr(classifier, "best_estimator_"):
        return _innermost(classifier.best_estimator_, X)
    if hasattr(classifier, "named_steps"):
        rows = classifier[:-1].transform(X) if len(classifier.steps) > 1 else X
        return _innermost(classifier[-1], rows)
    return classifier, X


class Certified:
    """A classifier with a certificate of its fit."""

    delta: float
    certificate_: Certificate
    certificates_: tuple[Certificate, ...]

    @reads_state
    def certify(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        delta: float | None = None,
        *,
        look: int | None = None,
        repeats: Literal["genuine"] | None = None,
    ) -> Certificate:
        """Certify the fitted model by rows that were never used.

        Parameters
        ----------
        X : array-like of shape (n, p), or None
            Rows that no step of the fit or of a search has seen; None: the certificate of the fit.
        y : array-like of shape (n,), or None
            Their classes.
        delta : float or None
            Probability with which the promise may fail; None: `delta` of the fit.
        look : int or None
            Which look at rows that come in this is; see `certree.certify`.
        repeats : {"genuine"} or None
            Whether rows that occur in the fit as well were drawn anew; see `certree.certify`.

        Returns
        -------
        Certificate
            The exact binomial bound; without rows `certificate_`, at the given delta. What predicts
            was chosen at that of the fit, and all that it was chosen from is covered at any.

        Raises
        ------
        ValueError
            If there are rows without classes, or the other way round, or rows of the fit.
        """
        check_is_fitted(self)
        if X is not None and y is not None:
            return certify(self, X, y, self._delta(delta), look=look, repeats=repeats)
        if (X is None) != (y is None):
            raise ValueError("certify takes both X and y, or neither")
        if look is not None or repeats is not None:
            raise ValueError("look and repeats speak of new rows: certify takes them with X and y")
        return self.certificate_ if delta is None else self.certificate_.at(delta)

    def _delta(self, given: float | None) -> float:
        return self.delta if given is None else given
