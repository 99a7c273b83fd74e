"""Estimators that keep one pruning."""

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
    """Estimators that keep one pruning, whatever the target is."""

    _temperatures = ("alpha",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rule": [StrOptions(set(RULES)), HasMethods(["family", "get_params"])],
        "alpha": [NONNEGATIVE, None],
    }

    def _get_string_converters(self) -> dict[str, Callable[[Any], Any]]:
        return {**super()._get_string_converters(), "rule": resolve_rule}

    def _get_grower(self) -> Grower:
        return resolve_rule(self.rule).match_grower(super()._get_grower(), self.n_features_in_)[1]

    def _get_candidates(self) -> dict[str, Candidate]:
        if resolve_rule(self.rule).reads_classes:
            self._expect_one_target(f"rule={self.rule!r}")
        family, _ = resolve_rule(self.rule).match_grower(super()._get_grower(), self.n_features_in_)
        return {"pruning": Candidate(family, self._get_voting())}

    def _get_voting(self) -> Voting:
        return Voting("mean", 0.0, self._get_monotonic_signs())

    def _finish_fit(self, tree: Tree, stats: Stats, posteriors: Mixture) -> None:
        super()._finish_fit(tree, stats, posteriors)
        self._set_fitted(
            *collapse_to_pruning(self.tree_, self.stats_, self.weights_, self._get_voting())
        )


class PrunedTreeClassifier(UpdatableTree, PrunedTree, TreeVoteClassifier):
    """One pruning of one tree by a rule, its alpha chosen by cross-validation.

    Rows may have classes of several targets, in columns, which one tree serves: a leaf pays the mean of
    their errors; see `PACBayesTreeClassifier`.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeClassifier`. With ``Dyadic(resolution="paper")`` the
        tree is that of the theorem of the rule, if it has one ("square-root", "spatially-adaptive",
        "polynomial"): in cross-validation a fold has the tree for the number of its own rows.
        ``Grid(box, resolution="paper")`` is the same on a box that is known without the rows; see
        `certify_fit`.
    rule : str or rule, default="cost-complexity"
        What a pruning pays besides its errors. "cost-complexity": a penalty per leaf, "depth": more
        for deep leaves; see `cost_complexity` and `depth_penalised`. "sibling-merge": sibling leaves
        merge, the cheapest first, as long as the errors that a merge adds are within its alpha; see
        `sibling_merge_path`. "square-root", "spatially-adaptive", "polynomial": see
        `square_root_penalised`, `spatially_adaptive` and `polynomial_penalised`. "pessimistic",
        "description-length": see `pessimistic` and `minimum_description_length`; of one target. Objects
        of `certree.prunings` have settings, such as ``Polynomial(smoothness=3)``.
    alpha : float or None, default=None
        What the rule charges: errors per leaf or merge, else a factor of its penalty, 1 as published;
        None: chosen by cross-validation.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeClassifier`.
    scoring : {"error", "log_loss"}, default="error"
        What the cross-validation minimises.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        Constraints on features; see `PACBayesTreeClassifier`.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; of several targets a dict for each.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of them
        The classes; of several targets those of each.
    n_classes_ : int, or list of int
        How many they are.
    n_outputs_ : int
        Number of columns of y; 1 where it is a column itself.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them; None if loaded from a file that
        was saved without.
    best_params_ : dict
        `alpha`, given or chosen.
    posteriors_ : list of str
        ["pruning"].
    mixture_weights_ : list of float
        [1.0]: a single pruning is used.
    tree_ : Tree
        The pruned tree.
    stats_ : NodeStats or SeveralStats
        Class counts and labels of its nodes; the latter of several targets.
    weights_ : NodeWeights
        1 at its leaves.
    vote_ : Vote
        Class frequencies of its leaves.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` go on from, of each row: hashes of its features, leaf,
        target, weight and which features it lacks; None where there are no such methods, and in models
        that were saved without.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984. Scott and Nowak,
    "Minimax-optimal classification with dyadic decision trees", IEEE Trans. Information Theory 2006.

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
        """Certify the pruning by the rows of the fit, in a box that was fixed without them.

        With ``Grid(box, resolution="paper")`` no row has a part in the tree, so that those which label
        and prune it may certify it, too. The bound covers all prunings at once, whatever the rule and
        its alpha; see `certify_fixed_box`. It is loose: expect it to say something from tens of
        thousands of rows on.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The rows of the fit, of weight 1 each.
        y : array-like of shape (n,)
            Their classes, of which there are two.
        delta : float
            Probability with which the promise may fail.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If rows have a part in the tree, by the grower or by the names of categories, if sides
            are not halved equally often, or if the rows are not those of the fit.
        """
        check_is_fitted(self)
        self._expect_one_target("a certificate")
        grower = self._get_grower()
        if not isinstance(grower, Grid) or self.categories_ is not None:
            raise ValueError(
                "rows have a part in the tree, and cannot certify it: expected numbers in a "
                f'Grid(box, resolution="paper"), got grower={self.grower!r}'
            )
        rows, truth = self._encode_new_rows(X), to_array("y", y)
        if truth.shape != (len(rows),) or self.n_classes_ != 2:
            raise ValueError(
                f"y must have shape ({len(rows)},) and 2 classes, got {truth.shape} and "
                f"{self.n_classes_}"
            )
        is_class = [truth == np.full(len(truth), name) for name in self.classes_]
        if not np.logical_or(*is_class).all():
            raise ValueError(f"y must hold classes among {self.classes_}")
        codes = is_class[1].astype(np.int32)
        tree = grower.grow(TrainingSamples(rows, max_depth=self.max_depth))
        fixed = count_in_box(tree, tree.route(rows, get_n_threads(self.n_jobs)), codes, grower.box)
        certificate = certify_fixed_box(fixed, find_matching_pruning(tree, self.tree_), delta)
        predicted = self.vote_.label.take(self.tree_.route(rows, get_n_threads(self.n_jobs)))
        if fixed.n != self.stats_.n[0] or np.mean(predicted != codes) > certificate.risk + 1e-12:
            raise ValueError(
                f"expected the {float(self.stats_.n[0]):g} rows of the fit, of weight 1 each: others "
                "have labelled the leaves"
            )
        return certificate


class PrunedTreeRegressor(UpdatableTree, PrunedTree, TreeVoteRegressor):
    """One pruning of one regression tree by a rule, its alpha chosen by cross-validation.

    Rows may have several numbers, in columns, which one tree serves: a leaf pays the mean of their sums
    of squares over noise variances; see `PACBayesTreeRegressor`.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeRegressor` and `PrunedTreeClassifier`.
    rule : str or rule, default="cost-complexity"
        What a pruning pays besides its sum of squares; see `PrunedTreeClassifier`. The rules that
        read classes, "pessimistic" and "description-length", are not for numbers; the constants of
        "square-root", "spatially-adaptive" and "polynomial" were meant for errors.
    alpha : float or None, default=None
        What the rule charges, in noise variances per leaf or merge, else a factor of its penalty;
        None: chosen by cross-validation.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeRegressor`.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        Constraints on features; see `PACBayesTreeRegressor`.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    best_params_ : dict
        `alpha`, given or chosen.
    tree_ : Tree
        The pruned tree.
    n_outputs_ : int
        Number of columns of y; 1 where it is a column itself.
    stats_ : TargetStats or SeveralStats
        Moments of the target in its nodes; the latter of several numbers.
    weights_ : NodeWeights
        1 at its leaves.
    vote_ : Vote
        Means of its leaves.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` go on from, of each row: hashes of its features, leaf,
        target, weight and which features it lacks; None where there are no such methods, and in models
        that were saved without.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

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
            raise ValueError(f"rule={self.rule!r} reads classes, but the target is a number")
        return super()._get_candidates()
