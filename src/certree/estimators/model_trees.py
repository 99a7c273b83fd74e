"""Trees with a model in each leaf, pruned by the validation losses of the models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from certree.estimators.compact import collapse_to_pruning
from certree.estimators.tree_vote import TreeVoteClassifier, TreeVoteEstimator, TreeVoteRegressor
from certree.estimators.tune import Candidate, GrownFold, tune
from certree.grow.dyadic import get_resolution
from certree.grow.grower import Grower, resolve_grower
from certree.grow.training_samples import MaxDepth, TrainingSamples
from certree.interface.arrays import Float64, Int32
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import snapshot_method
from certree.interface.signatures import POSITIVE
from certree.interface.threads import get_n_threads
from certree.prunings.leaf_losses import compute_leaf_losses
from certree.prunings.paths import round_to_scale
from certree.prunings.penalties import prune
from certree.prunings.scott_nowak import FragmentPrunings, Polynomial
from certree.rows.categories import UNKNOWN_CODE
from certree.rows.features import DenseFeatures
from certree.rows.folds import Fold, Indices
from certree.rows.relative_weights import compute_relative_weights
from certree.rows.training import Training
from certree.tree import LEAF, Tree
from certree.votes import Voting
from certree.weights.family import ValidationStatistics
from certree.weights.node_weights import NodeWeights

# Number of rows with the frequencies or mean of its parent that are added to a node without a model.
_SMOOTHING = 1.0
# Defaults of a grower that is set by its name, and of max_depth="auto".
_MIN_SAMPLES_SPLIT = 51
_DEPTH = 7


@dataclass(frozen=True, slots=True, eq=False)
class _NodeRows:
    """The training rows that reach one node of the grown tree.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    number : int
        Number of the node in the tree.
    rows : ndarray of intp
        Indices of its rows among all n training rows, ascending.
    is_modelled : bool
        Whether the rows are enough for a model: at least `min_samples_model`, with more than one
        target value.
    """

    number: int
    rows: Indices
    is_modelled: bool

    def restrict_fold(self, fold: Fold, n: int) -> Fold:
        """Return the training and validation rows of a fold that are in this node.

        fold: indices of the training and validation rows of a fold, among all n training rows of
        the fit; n: number of all training rows. The result also has indices among all n rows;
        either set may be empty.
        """
        is_inside = np.zeros(n, dtype=bool)
        is_inside[self.rows] = True
        grow, judge = is_inside[fold.train], is_inside[fold.validation]
        return Fold(fold.train[grow], fold.validation[judge])


def _list_node_rows(tree: Tree, leaf: Int32) -> list[Indices]:
    """Return the indices of the rows in each node of a tree, ascending.

    tree: the tree, with m nodes; leaf: node number of the leaf that each row reaches, (n,) int32. The
    list has one array for each of the m nodes, in the order of their numbers; a row is in all nodes
    on its path.
    """
    order = np.argsort(leaf, kind="stable")
    ends = np.searchsorted(leaf[order], np.arange(tree.n_nodes + 1))
    rows: list[Indices] = [order[ends[v] : ends[v + 1]] for v in range(tree.n_nodes)]
    for v in range(tree.n_nodes - 1, -1, -1):
        if tree.left[v] != LEAF:
            below = int(tree.left[v])
            rows[v] = np.sort(np.concatenate([rows[below], rows[below + 1]]))
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class _GrownTree:
    """The grown tree before pruning, its training rows by node, and the model to fit in its leaves.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    rows : Training
        The n encoded training rows.
    tree : Tree
        The tree, with m nodes.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each training row reaches.
    nodes : list of _NodeRows, length m
        The rows of each node.
    template : estimator
        The unfitted model; it is cloned for each fit.
    """

    rows: Training
    tree: Tree
    leaf: Int32
    nodes: list[_NodeRows]
    template: Any

    def fit_model(self, indices: Indices) -> Any:
        """Fit a clone of the template to some training rows.

        indices: their indices among the rows in the attribute `rows`, (k,). Weights are divided by
        the mean weight of all training rows. Return the fitted model, or None if there are no rows,
        or all have the same target.
        """
        X, y, weight = self.select_rows(indices)
        if not len(y) or not _is_varying(y):
            return None
        # The regularisation of models is relative to the sum of weights.
        relative = None if weight is None else weight / self.rows.weight_unit
        return _fit_model(self.template, X, y, relative)

    def select_rows(self, indices: Indices) -> tuple[NDArray[Any], NDArray[Any], Float64 | None]:
        """Return features (k, p), targets (k,) and weights (k,) of the training rows at k indices.

        indices: indices of the rows among those in the attribute `rows`, (k,). The weights are None
        if all are 1.
        """
        weight = None if self.rows.weight is None else self.rows.weight[indices]
        return self.rows.X[indices], self.rows.y[indices], weight


@dataclass(frozen=True, slots=True, eq=False)
class _AlphaLoss:
    """The validation loss of the pruned tree as a function of alpha, the factor of the penalty.

    The penalty is that of the pruning rule "polynomial" of `DecoratedTreeClassifier` (Scott and
    Nowak 2003). `tune` minimises the loss.

    The constructor takes the attribute.

    Attributes
    ----------
    fold_entries : sequence of (FragmentPrunings, ndarray of float64)
        For each fold: the best pruning for every alpha, by the training rows of the fold; and the
        validation loss of each of the m nodes if it is a leaf, (m,).
    """

    fold_entries: Sequence[tuple[FragmentPrunings, Float64]]

    def compute_losses(self, temperatures: Float64) -> Float64:
        """Compute the validation loss of the pruned tree for each alpha, summed over folds.

        temperatures: the g values of alpha, (g, 1); the name is that of the protocol `TunableLoss`.
        Return the g losses, (g,): weighted errors or log losses (nats).

        The prunings and losses of the folds are taken from the attribute `fold_entries`.
        """
        return np.sum(
            [rule.compute_totals(loss, temperatures) for rule, loss in self.fold_entries], axis=0
        )


class DecoratedTree(TreeVoteEstimator):
    """Base class of trees with a model in each leaf.

    A small tree is grown. The validation loss of each node as a leaf is computed by
    cross-validation: that of its model, or of a constant (class frequencies or the mean) if that is
    lower. The pruning with the smallest sum of losses is kept, and models are fitted in its leaves.
    Classifiers may also be pruned by training errors plus a penalty, with rule="polynomial". A
    subclass has the constructor arguments, and defines `_make_default_leaf` and `_compute_loss`.

    Attributes
    ----------
    leaf_estimators_ : dict from int to estimator
        The fitted model of each leaf of `tree_` that has one, by node number.
    """

    _temperatures = ()
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
        "leaf_estimator": [HasMethods(["fit", "predict"]), None],
        "max_depth": [*TreeVoteEstimator._parameter_constraints["max_depth"], StrOptions({"auto"})],
        "min_samples_model": [Interval(Integral, 2, 2**31 - 1, closed="both")],
        "scale": ["boolean"],
    }

    verbose = 0

    def __stored__(self) -> dict[str, Any]:
        raise TypeError(
            f"{type(self).__name__} cannot be saved as a model file, which holds no code, as its "
            "leaves hold estimators of scikit-learn: use joblib or skops"
        )

    def _resolve_grower(self, value: Any) -> Grower:
        # Leaves must be large enough for a model.
        return resolve_grower(value, min_samples_split=_MIN_SAMPLES_SPLIT)

    def _make_training_samples(
        self, training: Training, random_state: np.random.RandomState
    ) -> TrainingSamples:
        rows = super()._make_training_samples(training, random_state)
        if self.max_depth != "auto":
            return rows
        has_depth = get_resolution(self._get_grower()) is not None
        return replace(rows, max_depth=None if has_depth else _DEPTH)

    @abstractmethod
    def _make_default_leaf(self) -> Any:
        """Return the unfitted model that is fitted in each leaf if `leaf_estimator` is None.

        Classifiers use logistic regression, regressors ridge regression.
        """

    @abstractmethod
    def _compute_loss(
        self, model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None
    ) -> float:
        """Compute the loss of a fitted model on validation rows.

        model: fitted to class codes or numbers. X, y, weight: features (k, p), encoded targets (k,)
        and weights (k,) of the rows; weight=None: 1 each. Return the weighted sum of the losses:
        errors or log losses (nats) of classes, as `scoring` says; squared errors of numbers.
        """

    def _get_candidates(self) -> dict[str, Candidate]:
        return {}  # models are judged, not posteriors

    def _predicts_by_one_pruning(self) -> bool:
        return True

    def _get_voting(self) -> Voting:
        return Voting("mean", _SMOOTHING)

    def _compute_leaf_values(self) -> Float64:
        raise TypeError(
            f"{type(self).__name__} cannot be exported, as its leaves hold models: exports need leaves "
            "with a constant prediction, such as those of PACBayesTreeClassifier"
        )

    def _has_numeric_leaves(self) -> bool:
        return False

    def _make_leaf_model(self) -> Any:
        model = self._make_default_leaf() if self.leaf_estimator is None else self.leaf_estimator
        expected = "classifier" if is_classifier(self) else "regressor"
        is_one = is_classifier if is_classifier(self) else is_regressor
        if not hasattr(model, "__sklearn_tags__") or not is_one(model):
            raise ValueError(f"leaf_estimator must be a {expected}, got {model!r}")
        return make_pipeline(StandardScaler(), clone(model)) if self.scale else clone(model)

    def _takes_missing_values(self) -> bool:
        model = self._make_default_leaf() if self.leaf_estimator is None else self.leaf_estimator
        return hasattr(model, "__sklearn_tags__") and bool(get_tags(model).input_tags.allow_nan)

    def _get_node_notes(self) -> dict[int, str]:
        return dict.fromkeys(self.leaf_estimators_, ", and a model of its own")

    def _check_missing_values(self, X: NDArray[Any]) -> None:
        if not self._takes_missing_values():
            assert_all_finite(X, input_name="X")

    def _fit(self, rows: Training) -> None:
        self._check_missing_values(rows.X)
        # Models of float32 would be rounded to it.
        exact = rows.X.astype(np.float64, copy=False)
        rows = replace(rows, features=DenseFeatures((exact,)))
        random_state = check_random_state(self.random_state)
        template = self._make_leaf_model()
        if rows.weight is not None and not has_fit_parameter(
            _get_last_step(template), "sample_weight"
        ):
            raise ValueError(
                "sample_weight and class_weight must be None, as the leaf_estimator "
                f"{_get_last_step(template)!r} does not support sample_weight: use another one"
            )
        tree = self._get_grower().grow(self._make_training_samples(rows, random_state))
        leaf = tree.route(rows.X, get_n_threads(self.n_jobs))
        # Iterative models turn a last digit of the weights into another model.
        weighted = rows
        if rows.weight is not None:
            weighted = replace(rows, weight=compute_relative_weights(rows.weight))
        grown = _GrownTree(weighted, tree, leaf, self._list_nodes(tree, leaf, rows), template)
        self.best_params_, self.mixture_weights_, self.posteriors_ = {}, [1.0], ["pruning"]
        pruning, models = self._prune(grown, random_state)
        stats = self._compute_node_stats(tree, leaf, rows.y, rows.weight, rows.weight_unit)
        self._set_fitted(*collapse_to_pruning(tree, stats, pruning, self._get_voting()))
        numbers = np.flatnonzero(pruning.weight)
        leaves = np.flatnonzero(self.tree_.is_leaf)
        # Nodes that stay keep their order.
        self.leaf_estimators_ = {
            int(new): models[int(old)]
            for new, old in zip(leaves, numbers, strict=True)
            if int(old) in models
        }

    def _list_nodes(self, tree: Tree, leaf: Int32, rows: Training) -> list[_NodeRows]:
        return [
            _NodeRows(
                number,
                indices,
                len(indices) >= self.min_samples_model and _is_varying(rows.y[indices]),
            )
            for number, indices in enumerate(_list_node_rows(tree, leaf))
        ]

    def _prune(
        self, grown: _GrownTree, random_state: np.random.RandomState
    ) -> tuple[NodeWeights, dict[int, Any]]:
        """Find the pruning with the smallest validation loss, and fit the models of its leaves.

        A pruning is the tree after some nodes have become leaves. A leaf gets a model if the model
        has a smaller validation loss than a constant prediction.

        Parameters
        ----------
        grown : _GrownTree
            The grown tree, its training rows by node, and the unfitted model of a leaf.
        random_state : RandomState
            Source of the folds.

        Returns
        -------
        pruning : NodeWeights
            Weight 1 at the leaves of the pruning, 0 at other nodes.
        models : dict from int to estimator
            Fitted models by node number of the grown tree.
        """
        folds = self._make_folds(grown, random_state)
        constant = self._compute_constant_losses(grown, folds)
        losses = self._compute_leaf_losses(grown, constant, folds)
        largest = float(constant.max())
        if 0 < largest < np.inf:
            losses, constant = (round_to_scale(values, largest) for values in (losses, constant))
        pruning = prune(grown.tree, losses)
        kept = [grown.nodes[v] for v in np.flatnonzero(pruning.weight) if losses[v] < constant[v]]
        fitted = self._run_parallel(self._fit_node_model, grown, kept)
        return pruning, {node.number: model for node, model in zip(kept, fitted, strict=True)}

    def _make_folds(self, grown: _GrownTree, random_state: np.random.RandomState) -> list[Fold]:
        return grown.rows.split_folds(self.cv, random_state)

    def _summarise_fold(self, grown: _GrownTree, fold: Fold) -> GrownFold:
        """Compute statistics of the training and of the validation rows of a fold in each node.

        grown: the tree, the same for all folds, and its rows; fold: indices of the training and
        validation rows. The result has the tree (of m nodes), statistics of the training rows, and
        a table of those of the validation rows: class counts, (m, K), or weight, mean, and sum of
        squared distances from the mean, (m, 3).
        """
        return GrownFold.from_rows(
            fold, grown.tree, self._compute_node_stats, grown.leaf, grown.rows.target
        )

    def _compute_constant_losses(self, grown: _GrownTree, folds: list[Fold]) -> Float64:
        """Compute the validation loss of each node without a model, summed over folds, (m,).

        grown: the tree and its rows; folds: the folds. A node predicts the smoothed class
        frequencies, or mean, of its training rows in the fold: one row with those of its parent is
        added. Losses are weighted sums over the validation rows in the node: errors or log losses,
        as `scoring` says, or squared errors; 0 without such rows.
        """
        losses = np.zeros(grown.tree.n_nodes)
        for fold in folds:
            summary = self._summarise_fold(grown, fold)
            values = summary.stats.averages(grown.tree, _SMOOTHING)
            losses += compute_leaf_losses(
                ValidationStatistics(None, values, summary.validation), self.scoring
            )
        return losses

    def _compute_leaf_losses(
        self, grown: _GrownTree, constant: Float64, folds: list[Fold]
    ) -> Float64:
        """Compute the validation loss of each node as a leaf, summed over folds, (m,).

        grown: the tree and its rows; constant: losses of constant predictions, (m,); folds: the
        folds. A node with enough rows for a model has the smaller of the losses of model and
        constant; any other node keeps that of the constant.
        """
        modelled = [node for node in grown.nodes if node.is_modelled]
        found = self._run_parallel(self._compute_validation_loss, grown, modelled, folds)
        losses = constant.copy()
        for node, loss in zip(modelled, found, strict=True):
            losses[node.number] = min(loss, constant[node.number])
        return losses

    def _run_parallel(
        self, task: Any, grown: _GrownTree, nodes: list[_NodeRows], *others: Any
    ) -> list[Any]:
        jobs = (delayed(task)(grown, node, *others) for node in nodes)
        # Models of few rows gain nothing from threads within them, which get into each other's way.
        with threadpool_limits(1):
            n_threads = min(get_n_threads(self.n_jobs), max(len(nodes), 1))
            results: list[Any] = Parallel(n_jobs=n_threads, prefer="threads")(jobs)
        return results

    def _compute_validation_loss(
        self, grown: _GrownTree, node: _NodeRows, folds: list[Fold]
    ) -> float:
        """Compute the validation loss of a node's models, one for each fold, summed over folds.

        grown: the tree and its rows; node: the node and its rows; folds: the folds. A fold without
        validation rows in the node adds 0. The loss is infinite if there is no fold, or if another
        fold has fewer than two different targets among its training rows in the node.
        """
        rows = grown.rows
        loss = 0.0 if folds else np.inf
        for whole in folds:
            fold = node.restrict_fold(whole, len(rows.y))
            if not len(fold.validation):
                continue
            model = grown.fit_model(fold.train)
            if model is None:
                return np.inf
            loss += self._compute_loss(model, *grown.select_rows(fold.validation))
        return loss

    def _fit_node_model(self, grown: _GrownTree, node: _NodeRows) -> Any:
        return grown.fit_model(node.rows)

    def _group_by_leaf(self, X: ArrayLike) -> tuple[NDArray[Any], Int32, list[tuple[int, Indices]]]:
        """Encode new rows X, (n, p), and group those that reach a leaf with a model.

        Returns
        -------
        rows : ndarray of float64, shape (n, p)
            The encoded rows.
        leaf : ndarray of int32, shape (n,)
            Node number in `tree_` of the leaf that each row reaches.
        groups : list of (int, ndarray of intp)
            Node number of a leaf that has a model in `leaf_estimators_`, and the indices of the
            rows that reach it. Leaves that no row reaches are left out.
        """
        rows = self._encode_new_rows(X).astype(np.float64, copy=False)
        leaf = self.tree_.route(rows, get_n_threads(self.n_jobs))
        if (
            self.categories_ is not None
        ):  # models in leaves get unknown categories as missing values
            is_unknown = self._category_mask() & (rows == UNKNOWN_CODE)
            rows = np.where(is_unknown, np.nan, rows)
        self._check_missing_values(rows)
        order = np.argsort(leaf, kind="stable")
        starts = np.searchsorted(leaf[order], np.arange(self.tree_.n_nodes + 1))
        groups = [
            (v, order[starts[v] : starts[v + 1]])
            for v in self.leaf_estimators_
            if starts[v] < starts[v + 1]
        ]
        return rows, leaf, groups


def _is_varying(y: NDArray[Any]) -> bool:
    """Return whether a target y, (n,) with n > 0, has more than one value."""
    return bool(y.min() < y.max())


def _get_last_step(template: Any) -> Any:
    """Return the last step of a pipeline, also of nested pipelines.

    template: any estimator; if it is no pipeline, it is returned itself.
    """
    return _get_last_step(template.steps[-1][1]) if isinstance(template, Pipeline) else template


def _list_weight_parameters(model: Any) -> list[str]:
    """Return the keywords with which `fit` of a model passes sample weights to all its steps.

    For a pipeline these are "<step>__sample_weight" for each step that supports weights, also of
    nested pipelines; for another estimator ["sample_weight"], or [] if its `fit` does not take it.
    model: a pipeline or another estimator.
    """
    if isinstance(model, Pipeline):
        return [
            f"{name}__{inner}"
            for name, step in model.steps
            for inner in _list_weight_parameters(step)
        ]
    return ["sample_weight"] if has_fit_parameter(model, "sample_weight") else []


def _fit_model(template: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None) -> Any:
    model = clone(template)
    if weight is None:
        return model.fit(X, y)
    # The steps are named here; scikit-learn's routing would have each of them ask for weights first.
    with config_context(enable_metadata_routing=False):
        return model.fit(X, y, **dict.fromkeys(_list_weight_parameters(model), weight))


class DecoratedTreeClassifier(DecoratedTree, TreeVoteClassifier):
    """A pruned tree with a classifier in each leaf.

    Parameters
    ----------
    leaf_estimator : classifier or None, default=None
        The classifier that is fitted in each leaf, such as ``SVC(kernel="poly", degree=2,
        coef0=1)``; None: logistic regression. If it has no ``predict_proba``, its predicted class
        has probability 1.
    grower : {"kd", "cart", "dyadic"}, grower or scikit-learn decision tree, default="kd"
        How the tree is grown. "cart": splits of the largest decrease of impurity; "kd": splits at
        medians; "dyadic": splits at midpoints; or a grower object. Splits at medians ("kd") leave
        more for the models to learn than the greedy splits of "cart", which make pure nodes. A name
        stands for a grower with ``min_samples_split=51``.
    min_samples_model : int, default=50
        A node with fewer rows, or with a single class, predicts its class frequencies.
    scale : bool, default=True
        Whether features are standardised in each leaf.
    rule : {"cross-validated", "polynomial"} or Polynomial, default="cross-validated"
        How the tree is pruned. "cross-validated": to the smallest validation loss of its leaves.
        "polynomial": to the smallest sum of the training errors of the leaves and the penalty of
        `polynomial_penalised`. That penalty assumes that the classifiers in the leaves are
        polynomials of a degree r, and that the boundary between the classes has the Hoelder
        exponent r + 1. "polynomial" has r = 1; use ``Polynomial(smoothness=3)`` for r = 2.
        ``make_pipeline(PolynomialFeatures(r), LogisticRegression())`` and ``SVC(kernel="poly",
        degree=r, coef0=1)`` have degree r. With ``Dyadic(resolution="paper")`` or ``Grid(box,
        resolution="paper")`` the tree is that of the rule's theorem.
    alpha : float or None, default=None
        Factor of the penalty of "polynomial"; 1 in the publication. None: chosen by
        cross-validation.
    scoring : {"error", "log_loss"}, default="error"
        Validation loss by which nodes are compared, or alpha is chosen.
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation. An integer is the number of random folds, stratified by
        class; otherwise as in scikit-learn; None: 5 folds. Not used if alpha is set.
    max_depth : int, "log", None or "auto", default="auto"
        Largest depth of the tree; "auto" is 7, or that of the grower's resolution. "log": p times
        floor(log n), for n training rows of p features. None: no limit. Each node takes `cv` fits;
        with "polynomial" one more, or only one if alpha is set.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which features are categorical. "from_dtype": columns with a category, string or object
        dtype; otherwise a boolean mask, indices or names; None: no feature. See
        `PACBayesTreeClassifier`. The models in the leaves get category codes, in the order of the
        names.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the grower.
    n_jobs : int or None, default=None
        Number of threads for growth, and for fits of nodes; None means 1, -1 all.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, sorted. The models in the leaves know them as 0, ..., K - 1.
    sample_hashes_ : ndarray of uint64
        Hashes of the training rows, by which `certify` refuses to certify the model with these
        rows.
    leaf_estimators_ : dict from int to classifier
        The fitted model of each leaf of `tree_` that has one, by node number.
    tree_ : Tree
        The pruned tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    best_params_ : dict
        `alpha`, as set or chosen; empty for "cross-validated".
    n_features_in_ : int
        Number of features, p.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features; only if X had column names that are all strings.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, Section 4 and equation (3). Kohavi, "Scaling up the accuracy of naive-Bayes classifiers: a
    decision-tree hybrid", KDD 1996, for the cross-validation of nodes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        **DecoratedTree._parameter_constraints,
        "rule": [StrOptions({"cross-validated", "polynomial"}), Polynomial],
        "alpha": [POSITIVE, None],
    }

    def __init__(
        self,
        leaf_estimator: Any = None,
        *,
        grower: Any = "kd",
        min_samples_model: int = 50,
        scale: bool = True,
        rule: str | Polynomial = "cross-validated",
        alpha: float | None = None,
        scoring: Any = "error",
        cv: Any = 3,
        max_depth: MaxDepth | Literal["auto"] = "auto",
        categorical_features: Any = "from_dtype",
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _make_default_leaf(self) -> Any:
        return LogisticRegression(max_iter=1000)

    def _get_string_converters(self) -> dict[str, Callable[[Any], Any]]:
        return {**super()._get_string_converters(), "rule": self._resolve_rule}

    def _resolve_rule(self, value: str | Polynomial) -> Polynomial | None:
        """Return the pruning rule that a value of the parameter `rule` stands for.

        value: "cross-validated", for which None is returned; "polynomial", which stands for
        ``Polynomial()``; or a `Polynomial` object, which is returned itself.
        """
        if isinstance(value, str):
            return Polynomial() if value == "polynomial" else None
        return value

    def _fit(self, training: Training) -> None:
        rule = self._resolve_rule(self.rule)
        if rule is None and self.alpha is not None:
            raise ValueError(
                f"alpha must be None with rule={self.rule!r}, got {self.alpha!r}: use "
                'rule="polynomial"'
            )
        super()._fit(training)

    def _get_grower(self) -> Grower:
        grower, rule = super()._get_grower(), self._resolve_rule(self.rule)
        return grower if rule is None else rule.match_grower(grower, self._n_encoded)[1]

    def _prune(
        self, grown: _GrownTree, random_state: np.random.RandomState
    ) -> tuple[NodeWeights, dict[int, Any]]:
        if self._resolve_rule(self.rule) is None:
            return super()._prune(grown, random_state)
        every = np.arange(len(grown.rows.y))
        prunings, _, models = self._fit_nodes(grown, Fold(every, every[:0]))
        alpha = self.alpha
        if alpha is None:
            folds = self._make_folds(grown, random_state)
            validated = [self._fit_nodes(grown, fold)[:2] for fold in folds]
            (alpha,) = tune(_AlphaLoss(validated), [None])
        self.best_params_ = {"alpha": float(alpha)}
        return prunings.solve(alpha), models

    def _fit_nodes(
        self, grown: _GrownTree, fold: Fold
    ) -> tuple[FragmentPrunings, Float64, dict[int, Any]]:
        """Fit each node to the training rows of a fold, and compute its validation loss.

        A node predicts a constant (its most frequent class), or its model if that has fewer
        training errors. Nodes without enough rows for a model predict the constant. A pruning is
        the tree with some nodes turned into leaves.

        Parameters
        ----------
        grown : _GrownTree
            The grown tree, its training rows by node, and the unfitted model of a leaf.
        fold : Fold
            Training and validation rows. Without validation rows the validation losses are 0.

        Returns
        -------
        prunings : FragmentPrunings
            For every alpha, the pruning with the smallest sum of training errors and alpha times
            the penalty of `rule`.
        loss : ndarray of float64, shape (m,)
            Validation loss of each node as a leaf: weighted errors or log losses (nats), as
            `scoring` says.
        models : dict from int to classifier
            The fitted model of each node that has one, by node number.
        """
        summary = self._summarise_fold(grown, fold)
        values = summary.stats.averages(grown.tree, _SMOOTHING)
        cost = compute_leaf_losses(ValidationStatistics(None, values, summary.stats.table), "error")
        loss = compute_leaf_losses(
            ValidationStatistics(None, values, summary.validation), self.scoring
        )
        modelled = [node for node in grown.nodes if node.is_modelled]
        models = {}
        for node, (model, errors, left_out) in zip(
            modelled, self._run_parallel(self._fit_and_validate, grown, modelled, fold), strict=True
        ):
            v = node.number
            if errors < cost[v]:
                cost[v], loss[v], models[v] = errors, left_out, model
        rule = self._resolve_rule(self.rule) or Polynomial()
        family, _ = rule.match_grower(super()._get_grower(), self._n_encoded)
        n = float(len(grown.rows.y))
        return family(grown.tree, summary.stats, cost=cost, n_grown=n), loss, models

    def _fit_and_validate(
        self, grown: _GrownTree, node: _NodeRows, whole: Fold
    ) -> tuple[Any, float, float]:
        """Fit the model of a node to the training rows of a fold, and score it.

        grown: the tree and its rows; node: the node and its rows; whole: the fold, of all rows.
        Return the model, the weight of the training rows that it predicts wrongly, and its
        validation loss (weighted errors or log losses, as `scoring` says), which is 0 without
        validation rows. If no model can be fitted, return None and two infinities.
        """
        fold = node.restrict_fold(whole, len(grown.rows.y))
        model = grown.fit_model(fold.train)
        if model is None:
            return None, np.inf, np.inf
        errors = _count_errors(model, *grown.select_rows(fold.train))
        if not len(fold.validation):
            return model, errors, 0.0
        return model, errors, self._compute_loss(model, *grown.select_rows(fold.validation))

    def _compute_loss(
        self, model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None
    ) -> float:
        if self.scoring == "error":
            return _count_errors(model, X, y, weight)
        row_weight = np.ones(len(y)) if weight is None else weight
        probabilities = _predict_probabilities(model, X, max(2, self.n_classes_))[
            np.arange(len(y)), y
        ]
        return float(-(row_weight @ np.log(np.maximum(probabilities, np.finfo(np.float64).eps))))

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Predict class probabilities by the model of the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of `classes_`; rows sum to 1. A leaf without a model predicts
            its class frequencies.
        """
        rows, leaf, groups = self._group_by_leaf(X)
        probabilities = self.vote_.score[leaf]
        for v, indices in groups:
            probabilities[indices] = _predict_probabilities(
                self.leaf_estimators_[v], rows[indices], probabilities.shape[1]
            )
        if self.n_classes_ == 1:
            return np.ones((len(rows), 1))  # smoothing has given a second class its share
        return probabilities

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class by the model of the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            The predicted class of each row; a leaf without a model predicts its most frequent
            class.
        """
        rows, leaf, groups = self._group_by_leaf(X)
        codes = self.vote_.label[leaf].copy()
        for v, indices in groups:
            codes[indices] = self.leaf_estimators_[v].predict(rows[indices])
        return self.classes_.take(codes)


def _count_errors(model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None) -> float:
    """Return the total weight of the rows that a fitted classifier `model` predicts wrongly.

    X, y, weight: features (k, p), class codes (k,) and weights (k,); weight=None: 1 each.
    """
    wrong = model.predict(X) != y
    return float(wrong.sum() if weight is None else weight @ wrong)


def _predict_probabilities(model: Any, X: NDArray[Any], n_classes: int) -> Float64:
    """Predict probabilities of all classes by a classifier that was fitted to some of them.

    model: a fitted classifier, whose classes are codes below n_classes, some of which it may lack
    (probability 0); X: rows, (k, p). Return probabilities, (k, n_classes). If it has no
    `predict_proba`, its predicted class has probability 1.
    """
    probabilities = np.zeros((len(X), n_classes))
    if hasattr(model, "predict_proba"):
        probabilities[:, model.classes_] = model.predict_proba(X)
    else:
        probabilities[np.arange(len(X)), model.predict(X)] = 1.0
    return probabilities


@copy_descriptions_from(DecoratedTreeClassifier)
class DecoratedTreeRegressor(DecoratedTree, TreeVoteRegressor):
    """A pruned tree with a regressor in each leaf.

    Parameters
    ----------
    leaf_estimator : regressor or None, default=None
        The regressor that is fitted in each leaf; None: ridge regression.
    grower : {"kd", "cart", "dyadic"}, grower or scikit-learn decision tree, default="kd"
        How the tree is grown. "kd": splits at medians; "cart": splits of the largest decrease of
        the sum of squares; "dyadic": splits at midpoints; or a grower object. A name stands for a
        grower with ``min_samples_split=51``.
    min_samples_model : int, default=50
        A node with fewer rows predicts its mean.
    {scale}
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation, which compares nodes by squared error. An integer is the
        number of random folds; otherwise as in scikit-learn; None: 5 folds.
    max_depth : int, "log", None or "auto", default="auto"
        Largest depth of the tree; "auto" is 7, or that of the grower's resolution. "log": p times
        floor(log n), for n training rows of p features. None: no limit. Each node takes `cv` fits.
    {categorical_features} {random_state} {n_jobs}

    Attributes
    ----------
    leaf_estimators_ : dict from int to regressor
        The fitted model of each leaf of `tree_` that has one, by node number.
    {tree_}
    stats_ : TargetStats
        Moments of the target in its nodes.
    {n_features_in_} {feature_names_in_}

    References
    ----------
    Quinlan, "Learning with continuous classes", AI 1992, for linear models in leaves.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = DecoratedTree._parameter_constraints

    def __init__(
        self,
        leaf_estimator: Any = None,
        *,
        grower: Any = "kd",
        min_samples_model: int = 50,
        scale: bool = True,
        cv: Any = 3,
        max_depth: MaxDepth | Literal["auto"] = "auto",
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _make_default_leaf(self) -> Any:
        return Ridge()

    def _compute_loss(
        self, model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None
    ) -> float:
        row_weight = np.ones(len(y)) if weight is None else weight
        return float(row_weight @ (model.predict(X) - y) ** 2)

    @snapshot_method
    def predict(self, X: ArrayLike) -> Float64:
        """Predict the target by the model of the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Predictions, in units of the target; a leaf without a model predicts its mean.
        """
        rows, leaf, groups = self._group_by_leaf(X)
        predicted: Float64 = self.vote_.score[leaf, 0]
        for v, indices in groups:
            predicted[indices] = self.leaf_estimators_[v].predict(rows[indices])
        return predicted
