"""Numbers in, number out: what inequalities make of observed errors, and what posteriors say of a vote.

`bounds` holds the inequalities. Here are what they are given: divergences of posteriors over prunings,
masses of labellings, and moments of what drawn prunings get wrong.
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
