"""The classifier in which all prunings vote by Helmbold and Schapire's law."""

from numbers import Real
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from certree.estimators.tree_vote import TreeVoteClassifier, TreeVoteEstimator
from certree.grow.partition import Partition
from certree.grow.stopping import MaxDepth
from certree.tune import Candidate
from certree.votes import Voting
from certree.weights.family import Scoring
from certree.weights.helmbold_schapire import helmbold_schapire_family


class HelmboldSchapireClassifier(TreeVoteClassifier):
    """All prunings of one tree vote by Helmbold and Schapire's weights, for two classes.

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
    temperature : float or None, default=None
        Weight of a unit of absolute loss (nats); None: chosen by cross-validation.
    smoothing : float, default=0.5
        Rows with the classes of its parent that every cell is given in the vote, see `vote`; 0 is
        the vote of the reference.
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
        The classes, at most two.
    temperatures_ : dict
        `temperature`, given or chosen.
    shares_ : list of float
        [1.0]: a single law is used.
    tree_ : Tree
        The tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        The law over its prunings.
    vote_ : Vote
        The averaged class frequencies in every cell.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree", Machine
    Learning 1997.
    """

    _temperatures = ("temperature",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
        **TreeVoteClassifier._parameter_constraints,
        "temperature": [Interval(Real, 0, None, closed="left"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
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
        temperature: float | None = None,
        smoothing: float = 0.5,
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
        self.temperature = temperature
        self.smoothing = smoothing
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

    def _methods(self) -> list[Candidate]:
        return [Candidate(helmbold_schapire_family, Voting("mean", self.smoothing, self._slopes()))]

    def _coded(self, y: NDArray[Any]) -> NDArray[Any]:
        codes = super()._coded(y)
        if self.n_classes_ > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({self.n_classes_} classes)."
            )
        return codes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
