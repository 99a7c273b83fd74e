"""The methods of certificates: the inequality, the claim, the assumptions and the source of each.

A certificate by one entry of `METHODS` holds with probability ``1 - delta * share``. Several
certificates hold together with probability ``1 - delta`` if their shares sum to at most 1 and were
fixed before the calibration rows were seen. The calibration rows may choose posteriors,
temperatures and prunings, as a method covers all of them at once.
"""

from dataclasses import dataclass

from certree.certificates.inequalities.bounds import INEQUALITIES, Inequality


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table `METHODS`: an inequality with the words of its certificates.

    Parameters
    ----------
    inequality : str
        Key of `inequalities.bounds.INEQUALITIES`, by which the bound is computed.
    subject : str
        What the bound limits, as a phrase, such as "this vote's error".
    needs : str
        Assumptions beside independent rows, as a phrase, such as "the classifier was fixed before
        the calibration rows were seen".
    reference : str
        Author, title or journal, and year of the proof of the inequality.
    rows : str
        Which rows the bound is computed from; "{part}" stands for the name of a subset of the rows.
    where : str
        Which new rows the bound is about, such as " of class {part}"; empty: all. If not empty, the
        subset may have no calibration rows, and the bound is 1 then.
    """

    inequality: str
    subject: str
    needs: str
    reference: str
    rows: str = "calibration rows"
    where: str = ""

    def get_subject(self, is_single_tree: bool) -> str:
        """Return the phrase for what a certificate of this method limits, the field `subject`.

        is_single_tree: whether one small tree predicts instead of a vote; "this vote's error" then
        becomes "this tree's error".
        """
        return self.subject.replace("this vote", "this tree") if is_single_tree else self.subject


_CLASSIFIER = "this classifier's error"
_VOTE = "this vote's error"
_TREE = "this tree's error"
DRAWS = "the error of a tree drawn anew for each row"
_ONE_BEFORE = "the classifier was fixed before the calibration rows were seen"
_BEFORE = "tree, labels and prior were fixed without the calibration rows"
_TREE_BEFORE = "tree and prior were fixed without the calibration rows"
_ORDER_BEFORE = "the probabilities that order the classes were fixed without the calibration rows"
_SCORES_BEFORE = (
    "the scores were fixed before the calibration rows were seen, or chosen by them at the price of "
    "their prior mass"
)
_SAMPLES_BEFORE = (
    "samples were drawn independently of what the rows contain, and each voter, its labels and its "
    "prior were fixed by its sample alone"
)
_EVERY_BEFORE = (
    "the classifier was fixed before the calibration rows were seen, or chosen by them at the price of "
    "its prior mass"
)
_OF_MARTINGALES = (
    "Howard, Ramdas, McAuliffe and Sekhon, Probability Surveys 2020, with Jensen's inequality"
)
_OF_A_VOTER = "rows or more out of each voter's sample"
_OF_A_PAIR = "rows or more out of both samples of each pair of voters"

METHODS: dict[str, Method] = {
    "hold_out": Method(
        "occam",
        _CLASSIFIER,
        _ONE_BEFORE,
        "Clopper and Pearson, Biometrika 1934",
        "calibration rows",
    ),
    "hold_out_best": Method(
        "occam",
        _CLASSIFIER,
        "all classifiers were fixed before the calibration rows were seen",
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "calibration rows",
    ),
    "hold_out_mean": Method(
        "occam_mean", _CLASSIFIER, _ONE_BEFORE, "Hoeffding, JASA 1963", "calibration rows"
    ),
    "hold_out_period": Method(
        "martingale_mean",
        _CLASSIFIER,
        "the classifier was fixed before the first row of the period was seen",
        _OF_MARTINGALES,
    ),
    "hold_out_answers": Method(
        "occam",
        "for all margins at once, this classifier's error, where it does not abstain,",
        "classifier, probabilities and margins were fixed before the calibration rows were seen",
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality, given from which rows "
        "it abstains",
        "calibration rows that it does not abstain from",
    ),
    "occam_vote": Method("occam", _VOTE, _TREE_BEFORE, "Langford, JMLR 2005"),
    "occam_mean": Method(
        "occam_mean",
        _VOTE,
        _TREE_BEFORE,
        "Hoeffding, JASA 1963, with the prior of Langford, JMLR 2005",
    ),
    "occam_period": Method(
        "martingale_mean",
        _VOTE,
        "tree and prior were fixed before the first row of the period was seen",
        f"{_OF_MARTINGALES}, with the prior of Langford, JMLR 2005",
    ),
    "occam_answers": Method(
        "occam",
        "this vote's error, where it does not abstain,",
        _TREE_BEFORE,
        "Langford, JMLR 2005, given from which rows it abstains",
        "calibration rows that it does not abstain from",
    ),
    "occam_pruning": Method("occam", _TREE, _BEFORE, "Langford, JMLR 2005"),
    "every_leaf": Method(
        "occam_leaf",
        f"for all leaves at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; its leaves are the largest nodes with one label of a tree fixed before",
        "Clopper and Pearson, Biometrika 1934, given how many rows each leaf has",
        "calibration rows in leaf {part}",
        where=" in leaf {part}",
    ),
    "every_rule": Method(
        "occam_leaf",
        f"for all rules at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; the rules are the leaves of a tree that was fixed before",
        "Clopper and Pearson, Biometrika 1934, given how many rows each rule has",
        "calibration rows of rule {part}",
        where=" of rule {part}",
    ),
    "every_cell": Method(
        "occam",
        f"for all nodes at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; the nodes are those of a tree that was fixed before",
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "calibration rows in node {part}",
        where=" in node {part}",
    ),
    "every_class": Method(
        "occam",
        f"for all classes at once, {_CLASSIFIER}",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "calibration rows of class {part}",
        where=" of class {part}",
    ),
    "every_prediction": Method(
        "occam",
        f"for all predicted classes at once, {_CLASSIFIER}",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "calibration rows that it predicts as {part}",
        where=" that it predicts as {part}",
    ),
    "every_group": Method(
        "occam",
        f"for all groups at once, {_CLASSIFIER}",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "calibration rows of group {part}",
        where=" of group {part}",
    ),
    "every_gap": Method(
        "occam_gap",
        f"for all pairs of groups at once, {_CLASSIFIER} in the first minus that in the second",
        _EVERY_BEFORE,
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "calibration rows of groups {part}",
        where=" of groups {part}",
    ),
    "every_mix": Method(
        "occam_mix",
        f"for all mixes of classes at once, {_CLASSIFIER}",
        f"{_EVERY_BEFORE}; the distribution of the rows of each class stays the same",
        "the law of total probability, with the bounds of every_class",
        "calibration rows",
        where=" of classes mixed as {part}",
    ),
    "single_draw": Method(
        "single_draw",
        _TREE,
        f"{_BEFORE}; the tree was drawn once, and its draw counts like that of the rows",
        "Rivasplata, Kuzborskij, Szepesvari and Shawe-Taylor, NeurIPS 2020",
        "calibration rows and of the tree",
    ),
    "fixed_box": Method(
        "root_fragment",
        _TREE,
        "the box and the number of its grid cells were fixed without any row; there are two classes",
        "Scott and Nowak, NIPS 2003, Lemma 1",
        "rows that label, prune and certify",
    ),
    "gibbs_kl": Method("pac_bayes_kl", DRAWS, _BEFORE, "Maurer, arXiv:cs/0411099, 2004"),
    "gibbs_lambda": Method(
        "pac_bayes_lambda", DRAWS, _BEFORE, "Thiemann, Igel, Wintenberger and Seldin, ALT 2017"
    ),
    "vote_first_order": Method(
        "first_order", _VOTE, _BEFORE, "Langford and Shawe-Taylor, NeurIPS 2002"
    ),
    "vote_first_order_range": Method(
        "first_order_range", _VOTE, _BEFORE, "Leblanc and Germain, arXiv:2510.25569, 2025"
    ),
    "vote_tandem": Method(
        "tandem", _VOTE, _BEFORE, "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020"
    ),
    "vote_either_wrong": Method(
        "either_wrong",
        _VOTE,
        _BEFORE,
        "Markov's inequality for pairs, as in Lacasse et al., ECML 2010",
    ),
    "vote_tuples": Method(
        "tuples",
        _VOTE,
        f"{_BEFORE}, and so was the list of tuples",
        "Lacasse, Laviolette, Marchand and Turgeon-Boutin, ECML 2010",
    ),
    "vote_c_bound": Method(
        "c_bound", _VOTE, _BEFORE, "Germain, Lacasse, Laviolette, Marchand and Roy, JMLR 2015"
    ),
    "vote_disagreement": Method(
        "disagreement",
        _VOTE,
        f"{_BEFORE}; there are two classes",
        "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020",
    ),
    "absolute_error": Method(
        "occam_mean",
        "this regressor's mean absolute error",
        "the regressor, and the value at which its errors are clipped, were fixed before the "
        "calibration rows were seen",
        "Hoeffding, JASA 1963",
        "calibration rows",
    ),
    "absolute_error_period": Method(
        "martingale_mean",
        "this regressor's mean absolute error",
        "the regressor, and the value at which its errors are clipped, were fixed before the first "
        "row of the period was seen",
        _OF_MARTINGALES,
    ),
    "absolute_error_pruning": Method(
        "occam_mean",
        "this tree's mean absolute error",
        "tree, means, prior and the value at which errors are clipped were fixed without the "
        "calibration rows",
        "Hoeffding, JASA 1963, with the prior of Langford, JMLR 2005",
    ),
    "band": Method(
        "occam",
        "the fraction of targets outside their intervals",
        "the regressor and the proportions of its intervals were fixed before the calibration rows "
        "were seen",
        "Wilks, Annals of Mathematical Statistics 1941",
        "calibration rows",
    ),
    "leaf_band": Method(
        "occam",
        "for all regions of the tree at once, the fraction of targets outside their intervals",
        "the regressor and the regions were fixed before the calibration rows were seen",
        "Wilks, Annals of Mathematical Statistics 1941, given which rows lie in the region",
        "calibration rows in region {part}",
        where=" in region {part}",
    ),
    "every_threshold": Method(
        "threshold_cost",
        "for all thresholds and all costs at once, this classifier's mean cost",
        f"{_SCORES_BEFORE}; there are two classes",
        "Berk and Jones, 1979, for confidence bands of both classes, with the probability of a miss by "
        "Moscovich and Nadler, Statistics and Probability Letters 2017; Clopper and Pearson, "
        "Biometrika 1934, for the prevalence",
        "calibration rows",
        where=" at {part}",
    ),
    "named_cost": Method(
        "named_cost",
        "for all thresholds of a list at once, this classifier's mean cost",
        f"{_SCORES_BEFORE}, and so were costs and thresholds; there are two classes",
        "Buehler, JASA 1957, with Bonferroni's inequality",
        "calibration rows",
        where=" at {part}",
    ),
    "prediction_set": Method(
        "occam",
        "the fraction of rows whose prediction set lacks their class",
        _ORDER_BEFORE,
        "Wilks, Annals of Mathematical Statistics 1941; Vovk, ACML 2012",
    ),
    "class_set": Method(
        "occam",
        "for all classes at once, the fraction of rows whose prediction set lacks their class",
        _ORDER_BEFORE,
        "Wilks, Annals of Mathematical Statistics 1941; Vovk, ACML 2012, given the classes of all rows",
        "calibration rows of class {part}",
        where=" of class {part}",
    ),
    "ensemble_first_order": Method(
        "first_order",
        _VOTE,
        _SAMPLES_BEFORE,
        "Lorenzen, Igel and Seldin, Machine Learning 2019",
        _OF_A_VOTER,
    ),
    "ensemble_tandem": Method(
        "tandem",
        _VOTE,
        _SAMPLES_BEFORE,
        "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020",
        _OF_A_PAIR,
    ),
    "ensemble_either_wrong": Method(
        "either_wrong",
        _VOTE,
        _SAMPLES_BEFORE,
        "Markov's inequality for pairs, as in Lacasse et al., ECML 2010, on rows out of both samples",
        _OF_A_PAIR,
    ),
}


def get_period_method(method: str) -> str:
    """Return the key of `METHODS` that replaces `method` if rows may depend on earlier rows.

    The rows are then the calibration rows of one period, in time order. method: key of `METHODS`
    for independent rows, such as "hold_out", which becomes "hold_out_period". Raises ValueError if
    the method needs independent rows.
    """
    if method not in _PERIOD_METHODS:
        raise ValueError(
            f"method must be one of {', '.join(_PERIOD_METHODS)} for rows in time order, got "
            f"{method!r}, which needs independent rows: use independent=True if they are"
        )
    return _PERIOD_METHODS[method]


_PERIOD_METHODS = {
    "hold_out": "hold_out_period",
    "hold_out_mean": "hold_out_period",
    "occam_vote": "occam_period",
    "occam_mean": "occam_period",
    "absolute_error": "absolute_error_period",
} | {name: name for name in ("hold_out_period", "occam_period", "absolute_error_period")}


def get_inequality(method: str) -> Inequality:
    """Return the inequality that a method computes its bounds by.

    An `Inequality` holds the function that computes the bound, and its limit for infinitely many
    rows. method: key of `METHODS`, such as "hold_out". Raises ValueError if it is unknown.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return INEQUALITIES[METHODS[method].inequality]
