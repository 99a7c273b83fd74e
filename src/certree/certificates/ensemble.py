"""Certificates of a vote of many classifiers, each judged by the rows out of its own sample."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr

from certree.arrays import Float64, OfColumns, array_of, column, nonnegative
from certree.certificates.certificate import Certificate, certificate_of
from certree.signatures import checked

OF_PAIRS = ("ensemble_tandem", "ensemble_either_wrong")
OF_ENSEMBLES = ("ensemble_first_order", *OF_PAIRS)

# Rows that are judged at a time, so that tables of voters and rows stay small.
_BLOCK = 2**14
# Of sums of probabilities.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps(OfColumns):
    """Sums over the rows that each pair of T voters is judged by; a voter with itself is a pair, too.

    Parameters
    ----------
    rows : ndarray of float64, shape (T, T)
        Number of rows out of both samples.
    first_wrong : ndarray of float64, shape (T, T)
        Sum over them of the probability that the first voter is wrong.
    both_wrong : ndarray of float64, shape (T, T)
        Sum of the probability that both are.
    """

    rows: Float64
    first_wrong: Float64
    both_wrong: Float64

    @classmethod
    def over(cls, rows: Float64, parts: Iterable[tuple[Float64, Float64]]) -> "Overlaps":
        """Sum over parts of the rows, each by tables (T, n) of who is wrong and who is judged.

        Nobody may be wrong where he is not judged; `rows` are those of `shared_rows`.
        """
        sums = (np.stack([wrong @ judged.T, wrong @ wrong.T]) for wrong, judged in parts)
        return cls(rows, *reduce(np.add, sums))

    @property
    def n(self) -> int:
        """Rows that every voter is judged by, at least."""
        return int(self.rows.diagonal().min())

    @property
    def n_of_pairs(self) -> int:
        """Rows that every pair is judged by, at least."""
        return int(self.rows.min())

    def one(self, weight: Float64) -> float:
        """Risk of a voter that is drawn with these weights."""
        return float(weight @ (self.first_wrong.diagonal() / self.rows.diagonal()))

    def both(self, weight: Float64) -> float:
        """Risk that two voters, drawn each with these weights, are both wrong."""
        return float(weight @ (self.both_wrong / self.rows) @ weight)

    def either(self, weight: Float64) -> float:
        """Risk that one of two voters is wrong, of which the rows that judge them both tell."""
        return float(2 * weight @ (self.first_wrong / self.rows) @ weight) - self.both(weight)

    def certificate(
        self,
        method: str,
        weight: Float64,
        complexity: float,
        risk: float,
        delta: float,
        share: float,
    ) -> Certificate:
        """Certify the vote with these weights; see `certify_ensemble`."""
        pairs = method in OF_PAIRS
        n = self.n_of_pairs if pairs else self.n
        if n < 1:
            least = "pair of voters" if pairs else "voter"
            raise ValueError(f"every {least} must be judged by at least one row")
        observed = {
            "ensemble_first_order": self.one,
            "ensemble_tandem": self.both,
            "ensemble_either_wrong": self.either,
        }[method](weight)
        # Sums of shares may be above 1 by their rounding.
        share_wrong = min(max(observed, 0.0), 1.0)
        return certificate_of(method, (share_wrong,), risk, n, complexity, delta, share)


@checked
def certify_ensemble(
    wrong: ArrayLike,
    judged: ArrayLike,
    weight: ArrayLike | None = None,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: str = "ensemble_tandem",
    complexity: float = 0.0,
    risk: float | None = None,
) -> Certificate:
    """Certify the majority vote of an ensemble by the rows that its members did not learn from.

    Each of T voters is fixed by a sample of the rows, as those of bagging and of forests are, and
    judged by the others; the samples were drawn whatever the rows hold. All weights of the voters are
    covered at once, so that the same rows may choose them.

    Parameters
    ----------
    wrong : array-like of shape (T, n)
        Whether each voter, by its label, gets each row wrong; or the probability of it, 0 .. 1, for
        voters that are drawn themselves. Not read where `judged` is False.
    judged : array-like of bool, shape (T, n)
        Whether the row is out of the voter's sample.
    weight : array-like of shape (T,), or None
        Weights of the voters, which sum to 1, whatever chose them; None: all alike.
    delta : float
        Probability with which the promise may fail.
    share : float
        Share of delta that is used up here.
    method : {"ensemble_first_order", "ensemble_tandem", "ensemble_either_wrong"}
        Twice the risk of a voter; four times the risk that two are both wrong; 4/3 of the risk that
        one of two is.
    complexity : float
        What is added to the divergence of the weights from equal ones (nats): the mean divergence of
        the laws from their priors, for voters that are drawn.
    risk : float or None
        Error of the vote of those voters that a row judges, for the certificate to show; None: the
        share of the rows on which half of these votes or more are wrong.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If shapes differ, numbers are out of range, or a voter, or pair of voters, is judged by no row.

    References
    ----------
    Lorenzen, Igel and Seldin, "On PAC-Bayesian bounds for random forests", Machine Learning 2019;
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from certree.certificates import certify_ensemble
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BaggingClassifier(n_estimators=50, max_samples=0.5, random_state=0).fit(X, y)
    >>> wrong = np.stack([one.predict(X) != y for one in model.estimators_])
    >>> judged = np.ones(wrong.shape, dtype=bool)
    >>> for row, sample in zip(judged, model.estimators_samples_):
    ...     row[sample] = False
    >>> round(certify_ensemble(wrong, judged, method="ensemble_first_order").bound, 3)
    0.472
    """
    if method not in OF_ENSEMBLES:
        raise ValueError(f"method must be one of {', '.join(OF_ENSEMBLES)}, got {method!r}")
    out, shares = _tables(judged, wrong)
    weights = _weights(weight, len(out))
    parts = ((shares[:, part], out[:, part]) for part in blocks(out.shape[1]))
    overlaps = Overlaps.over(shared_rows(out), parts)
    if risk is None:
        risk = _half_wrong(shares, out, weights)
    nats = float(rel_entr(weights, 1 / len(weights)).sum()) + nonnegative("complexity", complexity)
    return overlaps.certificate(method, weights, max(nats, 0.0), float(risk), delta, share)


def blocks(n: int) -> Iterator[slice]:
    """Parts of n rows that are judged at a time."""
    return (slice(first, first + _BLOCK) for first in range(0, n, _BLOCK))


def shared_rows(judged: NDArray[Any]) -> Float64:
    """Number of rows that each pair of voters is judged by, (T, T), by a table (T, n)."""
    parts = (judged[:, part].astype(np.float64) for part in blocks(judged.shape[1]))
    return sum((part @ part.T for part in parts), np.zeros((len(judged), len(judged))))


def _tables(judged: ArrayLike, wrong: ArrayLike) -> tuple[Float64, Float64]:
    out, shares = array_of("judged", judged), array_of("wrong", wrong)
    if out.ndim != 2 or 0 in out.shape or out.dtype != bool:
        raise ValueError(
            f"judged must hold a row of booleans for each voter, got dtype {out.dtype} and shape "
            f"{out.shape}"
        )
    if shares.shape != out.shape or shares.dtype.kind not in "biuf":
        raise ValueError(f"wrong must hold numbers of shape {out.shape}, got {shares.shape}")
    read = np.where(out, shares, 0.0)
    if not ((read >= -_ROUNDING) & (read <= 1 + _ROUNDING)).all():
        raise ValueError("wrong must lie in 0 .. 1 wherever a voter is judged")
    return out.astype(np.float64), np.clip(read, 0.0, 1.0)


def _weights(weight: ArrayLike | None, n_voters: int) -> Float64:
    if weight is None:
        return np.full(n_voters, 1 / n_voters)
    given = column("weight", weight, "float64", (n_voters,))
    if not ((given >= 0) & (given <= 1 + _ROUNDING)).all() or abs(given.sum() - 1) > _ROUNDING:
        raise ValueError(f"weight must hold {n_voters} numbers >= 0 that sum to 1, got {weight!r}")
    return given


def _half_wrong(wrong: Float64, judged: Float64, weight: Float64) -> float:
    """Share of the rows, of those that judge a voter with weight, on which half of these are wrong."""
    votes = weight @ judged
    known = votes > 0
    return float(np.mean((weight @ wrong)[known] >= votes[known] / 2)) if known.any() else 0.0
