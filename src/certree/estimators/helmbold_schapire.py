"""The classifier in which all prunings vote with Helmbold and Schapire's posterior weights."""

from typing import Any, ClassVar

from sklearn.utils import Tags

from certree.estimators.compact import CompactableTree
from certree.estimators.pac_bayes import PACBayesTreeClassifier
from certree.estimators.tree_vote import TreeVoteClassifier
from certree.estimators.tune import Candidate
from certree.estimators.updatable import UpdatableTree
from certree.grow.training_samples import MaxDepth
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import NONNEGATIVE
from certree.rows.training import Training
from certree.votes import Voting
from certree.weights.family import Scoring
from certree.weights.helmbold_schapire_posteriors import helmbold_schapire_family


@copy_descriptions_from(PACBayesTreeClassifier)
class HelmboldSchapireTreeClassifier(UpdatableTree, CompactableTree, TreeVoteClassifier):
    """All prunings of one tree vote with Helmbold and Schapire's weights, for two classes.

    A pruning is the grown tree after some nodes have become leaves. Its weight falls exponentially
    with its absolute loss on the training rows; see `helmbold_schapire`.

    Parameters
    ----------
    {grower}
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
    {max_depth} {categorical_features} {monotonic_cst}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    {random_state} {n_jobs} {verbose}

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted; at most two.
    {sample_hashes_}
    best_params_ : dict
        `inverse_temperature`, as set or chosen.
    posteriors_ : list of str
        ["helmbold-schapire"].
    mixture_weights_ : list of float
        [1.0]: a single posterior is used.
    {tree_}
    stats_ : NodeStats
        Class counts and labels of its nodes.
    {weights_}
    vote_ : Vote
        Class probabilities (weighted averages over prunings) in the leaves of `tree_`; at its
        splits, the part of them by prunings that stop there or above.
    {seen_rows_} {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

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
