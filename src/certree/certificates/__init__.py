"""6 CERTIFICATE: upper bounds on the error on new rows, which overfitting cannot break.

`certify` bounds the error of any classifier by rows that it has never seen. To let the same rows choose
among the prunings of a tree and certify the choice, four steps:

1. grow a tree on some rows, and let `held_out` count them and the others, the weighing rows, apart;
2. make a `Prior` of the tree and the growing rows: `count_prior`, `branching_prior`, `mix_priors`;
3. weigh by the weighing rows: `gibbs_posterior` or any other law, and vote;
4. certify: `occam_vote` the labels of the vote, `certify_law` the law and its majority vote,
   `occam_pruning` one pruning. All laws, votes and prunings are covered at once.

In a box that is known without the rows two classes need none of this: `fixed_box` counts all of them,
and `certify_fixed_box` certifies what they choose.
Of numbers, `absolute_error` bounds the mean error, and `place_to_cover` says which order statistic of
scores holds a share of new rows.

`elect` does steps 2 to 4 for many laws and says which predictor to deploy. `METHODS` lists what may be
certified, what it needs and where it is proved; the formulas are in `bounds`. `promises` speaks of
classes and groups as well as of all rows.
"""

from certree.certificates.absolute import (
    HeldOutNumbers,
    absolute_error,
    absolute_error_pruning,
)
from certree.certificates.bands import Bands
from certree.certificates.certificate import METHODS, Certificate, Method, Parts, tightest
from certree.certificates.coverage import Scores, place_to_cover
from certree.certificates.divergence import kl_divergence, log_prior_mass, renyi_divergence
from certree.certificates.election import (
    Deployed,
    Election,
    LabelledElection,
    elect,
    elect_labelled,
)
from certree.certificates.ensemble import certify_ensemble
from certree.certificates.excess import (
    OracleBound,
    excess_bound,
    excess_posterior,
    gibbs_excess_bound,
    oracle_excess,
)
from certree.certificates.family import Family
from certree.certificates.fixed_box import (
    FixedBox,
    certify_fixed_box,
    fixed_box,
    lowest_fixed_box,
)
from certree.certificates.hold_out import certify, hold_out, hold_out_best, hold_out_mean
from certree.certificates.labelled_prunings import LabelledWeights, labelled_posterior
from certree.certificates.majority import certify_law
from certree.certificates.moments import (
    disagreement,
    leaf_mean,
    leaf_variance,
    margin_moments,
    one_wrong,
    tuple_risk,
    wrong_mass,
    wrong_range,
)
from certree.certificates.monitor import Monitor
from certree.certificates.occam import (
    Drawn,
    occam_answers,
    occam_mean,
    occam_pruning,
    occam_vote,
    single_draw,
)
from certree.certificates.priors import (
    Prior,
    Proposal,
    allow_abstention,
    branching_prior,
    centred_prior,
    count_prior,
    doubted_prior,
    gibbs_posterior,
    mix_priors,
    propose,
    pruning_prior,
    size_prior,
    trust_labels,
)
from certree.certificates.promises import Promises, promises
from certree.certificates.selective import Selective, selective_certificates
from certree.certificates.shift import Shift
from certree.certificates.theory import (
    chernoff_oracle_bound,
    deviation_limit,
    deviation_penalty,
    hoelder_rate,
    theorem_bound,
)
from certree.certificates.weighing import HeldOut, held_out

# fmt: off
__all__ = [
    "METHODS", "Bands", "Certificate", "Deployed", "Drawn", "Election", "Family", "FixedBox",
    "HeldOut", "HeldOutNumbers", "LabelledElection", "LabelledWeights", "Method", "Monitor",
    "OracleBound", "Parts", "Prior", "Promises", "Proposal", "Scores", "Selective", "Shift",
    "absolute_error", "absolute_error_pruning", "allow_abstention", "branching_prior",
    "centred_prior", "certify", "certify_ensemble", "certify_fixed_box", "certify_law",
    "chernoff_oracle_bound", "count_prior", "deviation_limit", "deviation_penalty",
    "disagreement", "doubted_prior", "elect", "elect_labelled", "excess_bound",
    "excess_posterior", "fixed_box", "gibbs_excess_bound", "gibbs_posterior", "held_out",
    "hoelder_rate", "hold_out", "hold_out_best", "hold_out_mean", "kl_divergence",
    "labelled_posterior", "leaf_mean", "leaf_variance", "log_prior_mass", "lowest_fixed_box",
    "margin_moments", "mix_priors", "occam_answers", "occam_mean", "occam_pruning",
    "occam_vote", "one_wrong",  "oracle_excess", "place_to_cover", "promises",
    "propose", "pruning_prior", "renyi_divergence", "selective_certificates", "single_draw",
    "size_prior", "theorem_bound", "tightest", "trust_labels", "tuple_risk", "wrong_mass",
    "wrong_range",
]
# fmt: on
