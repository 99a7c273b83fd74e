"""How much information a feature carries about the class, by the densities of naive Bayes."""

import numpy as np

from certree.estimators.naive_bayes.densities import CategoricalTable, Density, Histogram, Normal
from certree.estimators.naive_bayes.powers import subtract_marginal
from certree.interface.arrays import Float64

# Densities are integrated over this number of standard deviations on both sides of each mean.
_FARTHEST = 9.0
# Largest number of points around the mean of one class, and of all classes together.
_POINTS, _ALL_POINTS = 257, 2**15


def compute_divergences(density: Density, log_prior: Float64) -> Float64:
    """Compute the divergence of each class's density from the mixture of all classes.

    The divergence is Kullback and Leibler's. The weights of the mixture are the prior
    probabilities.

    The mean of the divergences with the prior as weights is the mutual information of the class and
    the feature. It is exact for tables and histograms. For normal densities it is integrated by the
    trapezoidal rule over points around the means of all classes.

    Parameters
    ----------
    density : Normal, Histogram or CategoricalTable
        The density of one feature in each of K classes.
    log_prior : ndarray of shape (K,)
        Log prior probabilities of the classes; -inf for a class of prior 0.

    Returns
    -------
    ndarray of shape (K,)
        Divergences (nats), each between 0 and ``-log_prior``; 0 for a class of prior 0.

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
    limit = np.where(np.isfinite(log_prior), -log_prior, 0.0)
    clipped: Float64 = np.clip(np.nan_to_num(found, nan=0.0), 0.0, limit)
    return clipped


def _integrate_normals(density: Normal, log_prior: Float64) -> Float64:
    """Compute the divergence of each of K normal densities from their mixture, (K,), numerically.

    The divergences are Kullback and Leibler's (nats); the mixture has the prior as weights.
    density: means and standard deviations of the K classes; log_prior: log prior probabilities,
    (K,). The density is scaled first so that no difference overflows. The result is not yet clipped
    to its range, and may be NaN for a class of prior 0.
    """
    unit = max(np.abs(density.mean).max(), density.deviation.max())
    tiny = float(np.finfo(np.float64).tiny)
    scaled = Normal(density.mean / unit, np.maximum(density.deviation / unit, tiny))
    n_points = int(np.clip(_ALL_POINTS // len(log_prior), 9, _POINTS))
    steps = np.linspace(-_FARTHEST, _FARTHEST, n_points)
    points = np.unique(scaled.mean[:, None] + scaled.deviation[:, None] * steps)
    log_density = scaled.log_density(points)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        height = np.exp(log_density)
        # Probability around each point; dividing by the sum makes up for rounding.
        probability = height * np.gradient(points)[:, None] if len(points) > 1 else height
        terms: Float64 = probability * subtract_marginal(log_prior, log_density)
        total: Float64 = terms.sum(axis=0) / probability.sum(axis=0)
    return total
