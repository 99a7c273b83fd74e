"""The classifier in which all prunings vote with Helmbold and Schapire's posterior weights."""

from typing import Any, ClassVar

from sklearn.utils import Tags

from certree.estimators.compact import CompactableTree
from certree.estimators.tree_vote import TreeVoteClassifier
from certree.estimators.tune import Candidate
from certree.estimators.updatable import UpdatableTree
from certree.grow.training_samples import MaxDepth
from certree.interface.signatures import NONNEGATIVE
from certree.rows.training import Training
from certree.votes import Voting
from certree.weights.family import Scoring
from certree.weights.helmbold_schapire_posteriors import helmbold_schapire_family


class HelmboldSchapireTreeClassifier(UpdatableTree, CompactableTree, TreeVoteClassifier):
    """All prunings of one tree vote with Helmbold and Schapire's weights, for two classes.

    A pruning is the grown tree after some nodes have become leaves. Its weight falls exponentially
    with its absolute loss on the training rows; see `helmbold_schapire`.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of impurity; "kd": splits at
        medians; "dyadic": splits at midpoints; or a grower object, see `PACBayesTreeClassifier`.
    inverse_temperature : float or None, default=None
        Factor of the absolute loss in the log weight of a pruning (nats); None: chosen by
        cross-validation.
    smoothing : float, default=0.5
        Number of rows with the class frequencies of its parent that are added to each node in the
        vote; see `Voting`. 0 is the vote of the reference.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation. An integer is the number of random folds, stratified by
        class; otherwise as in scikit-learn; None: 5 folds.
    scoring : {"error", "log_loss"}, default="error"
        Loss that the cross-validation minimises.
    max_depth : int, "log" or None, default=None
        Largest depth of the tree; the root has depth 0. "log": p times floor(log n), for n training
        rows of p features. None: no limit.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features are categorical. "from_dtype": columns with a category, string or object
        dtype; otherwise a boolean mask, indices or names; None: no feature. See
        `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonic constraint of each feature, or a dictionary by name: 1 if the probability of the
        second class must not fall as the feature rises, -1 if it must not rise, 0: none. Only with
        `Cart` and two classes.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of random splits and features, and of a scikit-learn tree as grower.
    n_jobs : int or None, default=None
        Number of threads; None means 1, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether to show a progress bar (> 0).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted; at most two.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the training rows, by which `certify` refuses to certify the model with these
        rows; None if the model was loaded from a file that was saved without them.
    best_params_ : dict
        `inverse_temperature`, as set or chosen.
    posteriors_ : list of str
        ["helmbold-schapire"].
    mixture_weights_ : list of float
        [1.0]: a single posterior is used.
    tree_ : Tree
        The grown tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        Posterior weights of its prunings.
    vote_ : Vote
        Class probabilities (weighted averages over prunings) in the leaves of `tree_`; at its
        splits, the part of them by prunings that stop there or above.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` need of each training row: hashes of its features,
        leaf, target, weight, and which features are missing. None if the model does not have these
        methods, was saved without them, or comes from `compact`.
    n_features_in_ : int
        Number of features, p.
    categories_ : Categories or None
        Names of the categories of each categorical feature; None if all features are numeric.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features are categorical; None if all features are numeric.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features; only if X had column names that are all strings.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree",
    Machine Learning 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import HelmboldSchapireTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HelmboldSchapireTreeClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _temperatures = ("inverse_temperature",)
    _takes_blocks = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        "inverse_temperature": [NONNEGATIVE, None],
        "smoothing": [NONNEGATIVE],
    }

    def __init__(
        self,
        grower: Any = "cart",
        *,
        inverse_temperature: float | None = None,
        smoothing: float = 0.5,
        cv: Any = 5,
        scoring: Scoring = "error",
        max_depth: MaxDepth = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _get_candidates(self) -> dict[str, Candidate]:
        return {"helmbold-schapire": Candidate(helmbold_schapire_family, self._get_voting())}

    def _get_voting(self) -> Voting:
        return Voting("mean", self.smoothing, self._get_monotonic_signs())

    def _check_classes(self) -> None:
        if self.n_classes_ > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({self.n_classes_} classes): use PACBayesTreeClassifier."
            )

    def _fit(self, training: Training) -> None:
        self._check_classes()
        super()._fit(training)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
