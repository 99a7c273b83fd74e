"""What a feature says of the class on average, by the densities that a model has learned."""

import numpy as np

from certree.estimators.naive_bayes.densities import CategoricalTable, Density, Histogram, Normal
from certree.estimators.naive_bayes.powers import subtract_marginal
from certree.interface.arrays import Float64

# Beyond so many standard deviations lies nothing that counts.
_FARTHEST = 9.0
# Points of each density of a feature, and of all of them where classes are many.
_POINTS, _ALL_POINTS = 257, 2**15


def compute_divergences(density: Density, log_prior: Float64) -> Float64:
    """Divergence of the density in each class from that over all classes (nats), (K,).

    Weighed by the prior they sum up to the mutual information of the class and a value that the
    densities draw. Those of tables and histograms are exact; normal densities are integrated by
    trapezoids between points that lie around all of their means.

    Parameters
    ----------
    density : Normal, Histogram or CategoricalTable
        The density of a feature.
    log_prior : ndarray of shape (K,)
        Logarithms of the prior, which may be infinite.

    Returns
    -------
    ndarray of shape (K,)
        Between 0 and minus the logarithm of the prior; 0 for a class of prior 0.

    References
    ----------
    Cover and Thomas, "Elements of information theory", 2006, Section 2.3.
    """
    if isinstance(density, Normal):
        found = _integrate_normals(density, log_prior)
    else:
        table: CategoricalTable = density.table if isinstance(density, Histogram) else density
        log_share = table.log_probability
        found = (np.exp(log_share) * subtract_marginal(log_prior, log_share.T).T).sum(axis=1)
    most = np.where(np.isfinite(log_prior), -log_prior, 0.0)
    clipped: Float64 = np.clip(np.nan_to_num(found, nan=0.0), 0.0, most)
    return clipped


def _integrate_normals(density: Normal, log_prior: Float64) -> Float64:
    """The same of normal densities, in a unit in which no difference overflows."""
    unit = max(np.abs(density.mean).max(), density.deviation.max())
    tiny = float(np.finfo(np.float64).tiny)
    own = Normal(density.mean / unit, np.maximum(density.deviation / unit, tiny))
    n_points = int(np.clip(_ALL_POINTS // len(log_prior), 9, _POINTS))
    steps = np.linspace(-_FARTHEST, _FARTHEST, n_points)
    points = np.unique(own.mean[:, None] + own.deviation[:, None] * steps)
    log_density = own.log_density(points)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        height = np.exp(log_density)
        # Shares of the density around each point; they sum to 1 whatever is rounded.
        share = height * np.gradient(points)[:, None] if len(points) > 1 else height
        said: Float64 = share * subtract_marginal(log_prior, log_density)
        total: Float64 = said.sum(axis=0) / share.sum(axis=0)
    return total
