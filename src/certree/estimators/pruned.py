"""Estimators that keep a single pruning of their tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.certificate import Certificate
from certree.certificates.fixed_box import certify_fixed_box, count_in_box, find_matching_pruning
from certree.estimators.compact import collapse_to_pruning
from certree.estimators.pac_bayes import PACBayesTreeClassifier, PACBayesTreeRegressor
from certree.estimators.tree_vote import (
    WEIGHTS_OF_TARGETS,
    TreeVoteClassifier,
    TreeVoteEstimator,
    TreeVoteRegressor,
)
from certree.estimators.tune import Candidate, Mixture
from certree.estimators.updatable import UpdatableTree
from certree.grow.grid import Grid
from certree.grow.grower import Grower
from certree.grow.training_samples import MaxDepth, TrainingSamples
from certree.interface.arrays import to_array
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import snapshot_method
from certree.interface.signatures import NONNEGATIVE
from certree.interface.threads import get_n_threads
from certree.prunings.rule import PruningRule
from certree.prunings.rule_names import RULES, resolve_rule
from certree.stats import Stats
from certree.tree import Tree
from certree.votes import Voting
from certree.weights.family import Scoring


class PrunedTree(TreeVoteEstimator):
    """Base class of estimators that keep a single pruning of their tree, chosen by a pruning rule.

    A pruning is the grown tree after some nodes have become leaves. After the fit, `tree_`,
    `stats_` and `vote_` are those of the pruned tree. Most rules choose the pruning with the
    smallest sum of training loss and alpha times a penalty, such as its number of leaves.
    Subclasses have the constructor arguments.
    """

    _temperatures = ("alpha",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rule": [StrOptions(set(RULES)), HasMethods(["family", "get_params"])],
        "alpha": [NONNEGATIVE, None],
    }

    def _get_string_converters(self) -> dict[str, Callable[[Any], Any]]:
        return {**super()._get_string_converters(), "rule": resolve_rule}

    def _get_grower(self) -> Grower:
        return resolve_rule(self.rule).match_grower(super()._get_grower(), self._n_encoded)[1]

    def _get_candidates(self) -> dict[str, Candidate]:
        if resolve_rule(self.rule).reads_classes:
            self._expect_one_target(f"rule={self.rule!r}")
        family, _ = resolve_rule(self.rule).match_grower(super()._get_grower(), self._n_encoded)
        return {"pruning": Candidate(family, self._get_voting())}

    def _predicts_by_one_pruning(self) -> bool:
        return True

    def _get_voting(self) -> Voting:
        return Voting("mean", 0.0, self._get_monotonic_signs())

    def _finish_fit(self, tree: Tree, stats: Stats, posteriors: Mixture) -> None:
        super()._finish_fit(tree, stats, posteriors)
        self._set_fitted(
            *collapse_to_pruning(self.tree_, self.stats_, self.weights_, self._get_voting())
        )


@copy_descriptions_from(PACBayesTreeClassifier)
class PrunedTreeClassifier(UpdatableTree, PrunedTree, TreeVoteClassifier):
    """One tree, pruned by a rule whose alpha is chosen by cross-validation.

    There may be several targets, one in each column of y; the loss of a leaf is the mean of their
    errors. See `PACBayesTreeClassifier`.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of impurity; "kd": splits at
        medians; "dyadic": splits at midpoints; or a grower object, see `PACBayesTreeClassifier`.
        With ``Dyadic(resolution="paper")`` each feature is halved equally often, as often as in the
        theorem of Scott and Nowak (2003) on the rule. How often depends on the number of training
        rows, also in each fold. Only with rule "square-root", "spatially-adaptive" or "polynomial".
        ``Grid(box, resolution="paper")`` is the same on a box that is known without the rows; see
        `certify_fit`.
    rule : str or rule, default="cost-complexity"
        Penalty that is added to the errors of a pruning. "cost-complexity": alpha for each leaf;
        "depth": alpha times the penalty C2 of Nguyen and Kpotufe, which is higher for deep leaves;
        see `cost_complexity` and `depth_penalised`. "sibling-merge": sibling leaves merge, the
        cheapest first, as long as a merge adds at most alpha errors; see `sibling_merge_path`.
        "square-root": proportional to the square root of the number of leaves;
        "spatially-adaptive": lower for trees that are fine in few regions only; "polynomial": the
        same for polynomials in the leaves (Scott and Nowak 2003; see `square_root_penalised`,
        `spatially_adaptive` and `polynomial_penalised`). "pessimistic": the errors of each leaf are
        replaced by an upper confidence limit; "description-length": nats that describe the tree and
        its classes; see `pessimistic` and `minimum_description_length`; both for a single target.
        Or a rule of `certree.prunings`, such as ``Polynomial(smoothness=3)``.
    alpha : float or None, default=None
        Errors charged for each leaf or merge ("cost-complexity", "sibling-merge"); for the other
        rules a factor of the penalty. Their publications use 1, except that of "depth", which
        chooses it by cross-validation. None: chosen by cross-validation.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation. An integer is the number of random folds, stratified by
        class; otherwise as in scikit-learn; None: 5 folds.
    scoring : {"error", "log_loss"}, default="error"
        Loss that the cross-validation minimises.
    {max_depth} {categorical_features} {monotonic_cst} {class_weight} {random_state} {n_jobs}
    {verbose}

    Attributes
    ----------
    {classes_} {n_classes_} {n_outputs_} {sample_hashes_}
    best_params_ : dict
        `alpha`, as set or chosen.
    posteriors_ : list of str
        ["pruning"].
    mixture_weights_ : list of float
        [1.0]: a single pruning is used.
    tree_ : Tree
        The pruned tree.
    stats_ : NodeStats or SeveralStats
        Class counts and labels of its nodes; `SeveralStats` for several targets.
    weights_ : NodeWeights
        The pruning: weight 1 at the leaves of `tree_`, 0 at its splits.
    vote_ : Vote
        Class frequencies in the leaves of `tree_`; 0 at its splits.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` need of each training row: hashes of its features,
        leaf, target, weight, and which features are missing. None if the model does not have these
        methods, or was saved without them.
    {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984. Nguyen and
    Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018. Scott and Nowak,
    "Near-minimax optimal classification with dyadic classification trees", NIPS 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certree import PrunedTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> PrunedTreeClassifier(random_state=0).fit(X, y).get_n_leaves()
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        **PrunedTree._parameter_constraints,
        "class_weight": WEIGHTS_OF_TARGETS,
    }

    _takes_outputs = True
    _takes_blocks = True

    def __init__(
        self,
        grower: Any = "cart",
        *,
        rule: str | PruningRule = "cost-complexity",
        alpha: float | None = None,
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

    @snapshot_method
    def certify_fit(self, X: ArrayLike, y: ArrayLike, delta: float = 0.05) -> Certificate:
        """Certify the fitted pruning by its training rows, if its tree was fixed without them.

        With a `Grid` that halves each feature equally often, as ``Grid(box, resolution="paper")``
        does, the rows do not determine the tree, so the rows that label and prune it may certify
        it, too. The bound covers all prunings at once, whatever the rule and its alpha; see
        `certify_fixed_box`. It is loose: it is useful from tens of thousands of rows on. A pruning
        is the tree with some nodes turned into leaves.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The training rows of the fit, all of weight 1.
        y : array-like of shape (n,)
            Their classes; there must be two.
        delta : float
            Probability with which the guarantee may fail.

        Returns
        -------
        Certificate
            An upper bound on the error of this model on new rows.

        Raises
        ------
        ValueError
            If the grower is no `Grid`, or its depth no multiple of the number of features; if
            features are categorical, or there are not two classes or more than one target; if X
            and y are not the rows of the fit; or if delta is out of range.
        """
        check_is_fitted(self)
        self._expect_one_target("a certificate")
        grower = self._get_grower()
        if not isinstance(grower, Grid) or self.categories_ is not None:
            raise ValueError(
                'certify_fit needs numeric features and grower=Grid(box, resolution="paper"), so that '
                f"the rows do not determine the tree, got grower={self.grower!r}: use "
                "CertifiedTreeClassifier, or certify with new rows"
            )
        rows, truth = self._encode_new_rows(X), to_array("y", y)
        if truth.shape != (len(rows),) or self.n_classes_ != 2:
            raise ValueError(
                f"y must have shape ({len(rows)},) and 2 classes, got {truth.shape} and "
                f"{self.n_classes_}"
            )
        is_class = [truth == np.full(len(truth), name) for name in self.classes_]
        if not np.logical_or(*is_class).all():
            raise ValueError(
                f"y must hold classes among {self.classes_}, as in the fit, got others: pass the y "
                "of the fit"
            )
        codes = is_class[1].astype(np.int32)
        tree = grower.grow(TrainingSamples(rows, max_depth=self.max_depth))
        fixed = count_in_box(tree, tree.route(rows, get_n_threads(self.n_jobs)), codes, grower.box)
        certificate = certify_fixed_box(fixed, find_matching_pruning(tree, self.tree_), delta)
        predicted = self.vote_.label.take(self.tree_.route(rows, get_n_threads(self.n_jobs)))
        if fixed.n != self.stats_.n[0] or np.mean(predicted != codes) > certificate.risk + 1e-12:
            raise ValueError(
                f"X and y must be the {float(self.stats_.n[0]):g} training rows of the fit, all of "
                "weight 1, got other rows: pass those of the call of fit"
            )
        return certificate


@copy_descriptions_from(PrunedTreeClassifier, PACBayesTreeRegressor)
class PrunedTreeRegressor(UpdatableTree, PrunedTree, TreeVoteRegressor):
    """One regression tree, pruned by a rule whose alpha is chosen by cross-validation.

    There may be several targets, one in each column of y; the loss of a leaf is the mean over
    targets of the sum of squares divided by the noise variance. See `PACBayesTreeRegressor`.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of the sum of squares; "kd":
        splits at medians; "dyadic": splits at midpoints; or a grower object, see
        `PACBayesTreeRegressor`.
    rule : str or rule, default="cost-complexity"
        Penalty that is added to the sum of squares of a pruning; see `PrunedTreeClassifier`.
        "pessimistic" and "description-length" need classes and are not supported. The constants of
        "square-root", "spatially-adaptive" and "polynomial" were derived for classification errors.
    alpha : float or None, default=None
        Noise variances charged for each leaf or merge; for the other rules a factor of the penalty.
        None: chosen by cross-validation.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation, which minimises the squared error. An integer is the number
        of random folds; otherwise as in scikit-learn; None: 5 folds.
    {max_depth} {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonic constraint of each feature, or a dictionary by name: 1 if predictions must not
        fall as the feature rises, -1 if they must not rise, 0: none. Only with `Cart`.
    {random_state} {n_jobs} {verbose}

    Attributes
    ----------
    {best_params_} {tree_} {n_outputs_}
    stats_ : TargetStats or SeveralStats
        Moments of the target in its nodes; `SeveralStats` for several targets.
    {weights_}
    vote_ : Vote
        Mean of the target in the leaves of `tree_`; 0 at its splits.
    {seen_rows_} {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Chapter 8.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certree import PrunedTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, scaled=False)
    >>> PrunedTreeRegressor(rule="sibling-merge", random_state=0).fit(X, y).get_n_leaves()
    6
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteRegressor._parameter_constraints,
        **PrunedTree._parameter_constraints,
    }

    _takes_outputs = True
    _takes_blocks = True

    def __init__(
        self,
        grower: Any = "cart",
        *,
        rule: str | PruningRule = "cost-complexity",
        alpha: float | None = None,
        cv: Any = 5,
        max_depth: MaxDepth = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _get_candidates(self) -> dict[str, Candidate]:
        if resolve_rule(self.rule).reads_classes:
            raise ValueError(
                f"rule must not need classes, as the target is numeric, got {self.rule!r}: use "
                '"cost-complexity"'
            )
        return super()._get_candidates()
