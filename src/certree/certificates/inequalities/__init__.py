"""Inequalities that turn observed errors into bounds, and the quantities that enter them.

`bounds` holds the inequalities. Exported here are divergences between distributions over prunings,
prior probabilities of labellings, and moments of the errors of drawn prunings.
"""

from certree.certificates.inequalities.posterior_moments import (
    disagreement,
    kl_divergence,
    leaf_mean,
    leaf_variance,
    log_prior_mass,
    margin_moments,
    one_wrong,
    renyi_divergence,
    tuple_risk,
    wrong_mass,
    wrong_range,
)

__all__ = [
    "disagreement",
    "kl_divergence",
    "leaf_mean",
    "leaf_variance",
    "log_prior_mass",
    "margin_moments",
    "one_wrong",
    "renyi_divergence",
    "tuple_risk",
    "wrong_mass",
    "wrong_range",
]
