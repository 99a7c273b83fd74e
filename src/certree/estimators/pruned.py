"""Estimators that keep one pruning."""

from collections.abc import Callable, Collection
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from certree import _core
from certree.estimators.tree_vote import TreeVoteClassifier, TreeVoteEstimator, TreeVoteRegressor
from certree.grow.dyadic import Resolution
from certree.grow.partition import Grower, Partition
from certree.grow.stopping import MaxDepth
from certree.prunings.paths import sibling_merge_path
from certree.prunings.penalties import (
    Tunable,
    cost_complexity_family,
    depth_penalised_family,
    description_length_family,
    pessimistic_family,
)
from certree.prunings.scott_nowak import PublishedRule
from certree.rows.training import _Training
from certree.stats import Stats
from certree.tree import Tree
from certree.tune import Candidate, Mixture
from certree.votes import Vote, Voting
from certree.weights.family import Scoring
from certree.weights.node_weights import NodeWeights

Rules = dict[str, Callable[[Tree, Any], Tunable]]


_PRUNING_RULES: Rules = {
    "cost-complexity": cost_complexity_family,
    "depth": depth_penalised_family,
    "polynomial": PublishedRule(3),
    "sibling-merge": sibling_merge_path,
    "spatially-adaptive": PublishedRule(2),
    "square-root": PublishedRule(1),
}


# These read the counts of classes.
CLASS_RULES: Rules = {
    **_PRUNING_RULES,
    "description-length": description_length_family,
    "pessimistic": pessimistic_family,
}


# What only some rules take, as it must be left with the others; the first two are for dyadic trees.
_SETTINGS = {"count_empty": False, "resolution": None, "smoothness": 2}


def given_settings(model: Any, defaults: dict[str, Any], taken: Collection[str]) -> list[str]:
    """Names of the settings that are not left at their defaults: the model's rule must take them."""
    given = [name for name, default in defaults.items() if getattr(model, name) != default]
    for name in given:
        if name not in taken:
            value = getattr(model, name)
            raise ValueError(f"rule={model.rule!r} takes no {name}, got {name}={value!r}")
    return given


class PrunedVote(TreeVoteEstimator):
    """Estimators that keep one pruning, whatever the target is."""

    _temperatures = ("lambda_penalty",)
    _rules: ClassVar[Rules] = _PRUNING_RULES
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
        "rule": [StrOptions(set(_PRUNING_RULES))],
        "lambda_penalty": [Interval(Real, 0, None, closed="left"), None],
        "count_empty": ["boolean"],
        "resolution": [StrOptions({"paper"}), None],
        "smoothness": [Interval(Integral, 1, None, closed="left")],
    }

    rule: str
    count_empty: bool
    resolution: Resolution
    smoothness: int

    def _rule(self) -> Callable[[Tree, Any], Tunable]:
        """The rule with its settings."""
        rule = self._rules[self.rule]
        taken = rule.settings if isinstance(rule, PublishedRule) else ()
        for name in given_settings(self, _SETTINGS, taken):
            if name != "smoothness" and self.partition != "dyadic":
                raise ValueError(
                    f'{name} takes partition="dyadic", got partition={self.partition!r}'
                )
        if not isinstance(rule, PublishedRule):
            return rule
        return replace(rule, **{name: getattr(self, name) for name in taken})

    def _grower(self, seed: int) -> Grower:
        rule, grower = self._rule(), super()._grower(seed)
        if not isinstance(rule, PublishedRule):
            return grower
        exponent = rule.exponent(self.n_features_in_)
        return replace(grower, resolution=rule.resolution, exponent=exponent)

    def _methods(self) -> list[Candidate]:
        return [Candidate(self._rule(), Voting("mean", 0.0, self._slopes()))]

    def _vote(self, rows: _Training, tree: Tree, method: Candidate, laws: Mixture) -> None:
        super()._vote(rows, tree, method, laws)
        self._set_fitted(*collapsed(self.tree_, self.stats_, self.weights_, self.vote_))


def collapsed(
    tree: Tree, stats: Stats, weights: NodeWeights, ballot: Vote
) -> tuple[Tree, Stats, NodeWeights, Vote]:
    """Cut a tree and its columns down to one pruning, given by weights 0 and 1."""
    kept = np.flatnonzero(_core.reach(tree.left, weights.log_odds) > 0)
    # What is left of the chain of a leaf is the cell at which the pruning stops.
    pruned = tree.restricted(kept, weights.weight[kept] > 0)
    law = NodeWeights(weights.weight[kept], weights.log_odds[kept], 0.0, *2 * [np.zeros(len(kept))])
    return pruned, stats.at(kept), law, Vote(ballot.score[kept])


class PrunedTreeClassifier(PrunedVote, TreeVoteClassifier):
    """One pruning of one tree by a rule, its penalty chosen by cross-validation.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeClassifier`.
    criterion : {"entropy", "gini", "misclassification"}, default="entropy"
        What a cut of the CART partition lowers; see `grow_cart`.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition.
    splitter : {"best", "random"}, default="best"
        Whether the CART partition makes the best cut of a cell, or the best of one random cut for
        each feature; see `grow_cart`.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories: those of a data frame with a dtype of categories, strings or
        objects, or those of a mask, of indices or of names; None: none. The CART partition divides
        categories in two sets, the other partitions take them as numbers in the order of their
        names. Categories that were not seen go where missing values go.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. For the CART partition and two classes only.
    rule : str, default="cost-complexity"
        What a pruning pays besides its errors. "cost-complexity": a price per leaf, "depth": more
        for deep leaves; see `cost_complexity` and `depth_penalised`. "sibling-merge": sibling leaves
        merge, the cheapest first, as long as the errors that a merge adds are within its price; see
        `sibling_merge_path`. "square-root", "spatially-adaptive", "polynomial": see
        `square_root_penalised`, `spatially_adaptive` and `polynomial_penalised`. "pessimistic",
        "description-length": see `pessimistic` and `minimum_description_length`.
    lambda_penalty : float or None, default=None
        Weight of that penalty: errors per leaf or merge, else the `constant` of the rule's function,
        1 as published; None: chosen by cross-validation.
    count_empty : bool, default=False
        Whether leaves without rows count, in "square-root", "spatially-adaptive" and "polynomial" on
        the dyadic tree. `tree_` does not show those inside chains.
    resolution : "paper" or None, default=None
        "paper": the dyadic tree halves all sides as often as the theorem of one of these three rules
        has it, whatever `stop_when_pure` says; see `grow_dyadic` and `dyadic_resolution`. The
        number of its cells then takes the place of the number of its leaves in the penalty. In
        cross-validation a fold has the tree for its own rows, counted by weight.
    smoothness : int, default=2
        How often the boundary between classes can be differentiated, for "polynomial".
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeClassifier`.
    scoring : {"error", "log_loss"}, default="error"
        What the cross-validation minimises.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    max_leaves : int or None, default=None
        The CART partition stops at so many leaves; the cell with the largest gain is cut first.
    min_gain : float, default=0
        The CART partition makes no cut that lowers rows times impurity by less.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features the CART partition looks at in each cell, drawn at random; None: all.
    stop_when_pure : bool, default=True
        Whether a cell whose rows are of one class is a leaf.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    temperatures_ : dict
        `lambda_penalty`, given or chosen.
    shares_ : list of float
        [1.0]: a single law is used.
    tree_ : Tree
        The pruned tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        1 at its leaves.
    vote_ : Vote
        Class frequencies of its leaves.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984. Scott and Nowak,
    "Minimax-optimal classification with dyadic decision trees", IEEE Trans. Information Theory 2006.
    """

    _rules: ClassVar[Rules] = CLASS_RULES
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrunedVote._parameter_constraints,
        **TreeVoteClassifier._parameter_constraints,
        "rule": [StrOptions(set(CLASS_RULES))],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        criterion: str = "entropy",
        axis: str = "spread",
        splitter: str = "best",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        rule: str = "cost-complexity",
        lambda_penalty: float | None = None,
        count_empty: bool = False,
        resolution: Resolution = None,
        smoothness: int = 2,
        cv: Any = 5,
        scoring: Scoring = "error",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
        self.axis = axis
        self.splitter = splitter
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.rule = rule
        self.lambda_penalty = lambda_penalty
        self.count_empty = count_empty
        self.resolution: Resolution = resolution
        self.smoothness = smoothness
        self.cv = cv
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class PrunedTreeRegressor(PrunedVote, TreeVoteRegressor):
    """One pruning of one regression tree by a rule, its penalty chosen by cross-validation.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeRegressor`.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition.
    splitter : {"best", "random"}, default="best"
        Whether the CART partition makes the best cut of a cell, or the best of one random cut for
        each feature; see `grow_cart`.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories: those of a data frame with a dtype of categories, strings or
        objects, or those of a mask, of indices or of names; None: none. The CART partition divides
        categories in two sets, the other partitions take them as numbers in the order of their
        names. Categories that were not seen go where missing values go.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. For the CART partition only.
    rule : str, default="cost-complexity"
        What a pruning pays besides its sum of squares. "cost-complexity": a price per leaf, "depth":
        more for deep leaves; see `cost_complexity` and `depth_penalised`. "sibling-merge": sibling
        leaves merge, the cheapest first, as long as the squares that a merge adds are within its
        price; see `sibling_merge_path`. "square-root", "spatially-adaptive", "polynomial": see
        `square_root_penalised`, `spatially_adaptive` and `polynomial_penalised`, whose constants were
        meant for errors.
    lambda_penalty : float or None, default=None
        Weight of that penalty, in noise variances: the price of a leaf or merge, else the `constant`
        of the rule's function; None: chosen by cross-validation.
    count_empty : bool, default=False
        Whether leaves without rows count, in "square-root", "spatially-adaptive" and "polynomial" on
        the dyadic tree. `tree_` does not show those inside chains.
    resolution : "paper" or None, default=None
        "paper": the dyadic tree halves all sides as often as the theorem of one of these three rules
        has it, whatever `stop_when_pure` says; see `grow_dyadic` and `dyadic_resolution`. The
        number of its cells then takes the place of the number of its leaves in the penalty. In
        cross-validation a fold has the tree for its own rows, counted by weight.
    smoothness : int, default=2
        How often the boundary between classes can be differentiated, for "polynomial".
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeRegressor`.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    max_leaves : int or None, default=None
        The CART partition stops at so many leaves; the cell with the largest gain is cut first.
    min_gain : float, default=0
        The CART partition makes no cut that lowers rows times impurity by less.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features the CART partition looks at in each cell, drawn at random; None: all.
    stop_when_pure : bool, default=True
        Whether a cell whose rows have one value of the target is a leaf.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    temperatures_ : dict
        `lambda_penalty`, given or chosen.
    tree_ : Tree
        The pruned tree.
    stats_ : TargetStats
        Moments of the target in its nodes.
    weights_ : NodeWeights
        1 at its leaves.
    vote_ : Vote
        Means of its leaves.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Chapter 8.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PrunedVote._parameter_constraints

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        axis: str = "spread",
        splitter: str = "best",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        rule: str = "cost-complexity",
        lambda_penalty: float | None = None,
        count_empty: bool = False,
        resolution: Resolution = None,
        smoothness: int = 2,
        cv: Any = 5,
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.axis = axis
        self.splitter = splitter
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.rule = rule
        self.lambda_penalty = lambda_penalty
        self.count_empty = count_empty
        self.resolution: Resolution = resolution
        self.smoothness = smoothness
        self.cv = cv
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
