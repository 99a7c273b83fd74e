"""6 CERTIFICATES: upper bounds on the error on new rows, which hold however much a model overfits.

`certify` bounds the error of any fitted classifier by rows that its fit did not use. If the same
rows shall also choose among the prunings of a tree, four steps are needed:

1. grow a tree on the training set, and count training and calibration set in its nodes: `held_out`;
2. make a `Prior` from the tree and the training set: `count_prior`, `branching_prior`,
`mix_priors`;
3. choose a posterior by the calibration set, `gibbs_posterior` or any other, and vote;
4. certify: `occam_vote` the labels of the vote, `certify_posterior` its prunings and its majority
vote, `occam_pruning` one pruning. All posteriors, votes and prunings are covered at once.

`select_model` does steps 2 to 4 for many posteriors, and selects a predictor. `METHODS` lists the
methods with their assumptions and sources. `conditional_guarantees` bounds the error by class and
by group.

In a box that is fixed before the rows are seen, no split is needed for two classes: `fixed_box`
counts all rows, and `certify_fixed_box` certifies what they choose. For numeric targets
`absolute_error` bounds the mean error, and `subsets.place_to_cover` finds the order statistic of
conformity scores that covers a fraction of new rows. The formulas are in `inequalities`, guarantees
on subsets of the rows in `subsets`.
"""

from certree.certificates.adaptive_intervals import AdaptiveIntervals
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
from certree.certificates.monitor import Monitor
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
from certree.certificates.row_order import RowOrder, RowOrderWarning
from certree.certificates.shift import Shift
from certree.certificates.subsets.families import ConditionalGuarantees

# fmt: off
__all__ = [
    "METHODS",
    "AdaptiveIntervals",
    "Certificate",
    "ConditionalGuarantees",
    "Guarantees",
    "HeldOut",
    "HeldOutNumbers",
    "LabelledSelection",
    "ModelSelection",
    "Monitor",
    "Prior",
    "RowOrder",
    "RowOrderWarning",
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
