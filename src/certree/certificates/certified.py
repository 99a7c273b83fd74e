"""Classifiers whose fit certifies: their certificates at any delta, and those by new rows."""

from typing import Literal

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from certree.certificates.certificate import Certificate
from certree.certificates.hold_out import certify
from certree.fitted import reads_state


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
