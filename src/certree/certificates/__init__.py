"""6 CERTIFICATES: upper bounds on the error on new rows, which overfitting cannot break.

`certify` bounds the error of any classifier by rows that it has never seen. To let the same rows
choose among the prunings of a tree and certify the choice, four steps:

1. grow a tree on some rows, and let `held_out` count them and the others, the calibration samples,
apart; 2. make a `Prior` of the tree and the training samples: `count_prior`, `branching_prior`,
`mix_priors`; 3. weigh by the calibration samples: `gibbs_posterior` or any other posterior, and vote;
4. certify: `occam_vote` the labels of the vote, `certify_posterior` it and its majority vote,
   `occam_pruning` one pruning. All posteriors, votes and prunings are covered at once.

In a box that is known without the rows two classes need none of this: `fixed_box` counts all of
them, and `certify_fixed_box` certifies what they choose. Of numbers, `absolute_error` bounds the
mean error, and `parts.place_to_cover` says which order statistic of scores holds a share of new
rows.

`select_model` does steps 2 to 4 for many posteriors and says which predictor to take. `METHODS` lists
what may be certified, what it needs and where it is proved. `conditional_guarantees` speaks of
classes and groups as well as of all rows. The formulas are in `inequalities`, what is promised of
parts of the rows in `parts`.
"""

from certree.certificates.calibration_set import HeldOut, HeldOutNumbers, held_out
from certree.certificates.certificate import Certificate, tightest
from certree.certificates.fixed_box import certify_fixed_box, fixed_box, lowest_fixed_box
from certree.certificates.guarantees import Guarantees, certify, conditional_guarantees
from certree.certificates.hold_out import hold_out, hold_out_best, hold_out_mean
from certree.certificates.majority import certify_ensemble, certify_posterior
from certree.certificates.methods import METHODS
from certree.certificates.model_selection import (
    LabelledSelection,
    ModelSelection,
    select_labelled,
    select_model,
)
from certree.certificates.occam import (
    absolute_error,
    absolute_error_pruning,
    occam_answers,
    occam_mean,
    occam_pruning,
    occam_vote,
    selective_certificates,
    single_draw,
)
from certree.certificates.posteriors import gibbs_posterior, labelled_posterior
from certree.certificates.priors import (
    Prior,
    add_candidate_labels,
    allow_abstention,
    branching_prior,
    centred_prior,
    count_prior,
    doubted_prior,
    mix_priors,
    pruning_prior,
    size_prior,
    trust_labels,
)
from certree.certificates.shift import Monitor, Shift
from certree.certificates.subsets.families import ConditionalGuarantees

# fmt: off
__all__ = [
    "METHODS",
    "Certificate",
    "ConditionalGuarantees",
    "Guarantees",
    "HeldOut",
    "HeldOutNumbers",
    "LabelledSelection",
    "ModelSelection",
    "Monitor",
    "Prior",
    "Shift",
    "absolute_error",
    "absolute_error_pruning",
    "add_candidate_labels",
    "allow_abstention",
    "branching_prior",
    "centred_prior",
    "certify",
    "certify_ensemble",
    "certify_fixed_box",
    "certify_posterior",
    "conditional_guarantees",
    "count_prior",
    "doubted_prior",
    "fixed_box",
    "gibbs_posterior",
    "held_out",
    "hold_out",
    "hold_out_best",
    "hold_out_mean",
    "labelled_posterior",
    "lowest_fixed_box",
    "mix_priors",
    "occam_answers",
    "occam_mean",
    "occam_pruning",
    "occam_vote",
    "pruning_prior",
    "select_labelled",
    "select_model",
    "selective_certificates",
    "single_draw",
    "size_prior",
    "tightest",
    "trust_labels",
]
# fmt: on
