"""Trees whose leaves hold a model: pruned by what the models would lose on rows they have not seen."""

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
from certree.interface.fitted_state import snapshot_method
from certree.interface.signatures import POSITIVE
from certree.interface.threads import get_n_threads
from certree.prunings.paths import compute_leaf_losses, round_to_scale
from certree.prunings.penalties import prune
from certree.prunings.scott_nowak import FragmentPrunings, Polynomial
from certree.rows.features import DenseFeatures
from certree.rows.folds import Fold, Indices
from certree.rows.relative_weights import compute_relative_weights
from certree.rows.training import Training
from certree.tree import LEAF, Tree
from certree.votes import Voting
from certree.weights.family import ValidationVotes
from certree.weights.node_weights import NodeWeights

# Rows like its parent's that a cell without a model is given.
_SMOOTHING = 1.0
# Of a grower that is given by its name.
_MIN_SAMPLES_SPLIT = 51
_DEPTH = 7


@dataclass(frozen=True, slots=True, eq=False)
class _NodeRows:
    """The rows of a node, and whether they are enough for a model."""

    number: int
    rows: Indices
    is_modelled: bool

    def part(self, fold: Fold, n: int) -> Fold:
        """What a fold of all rows is in this node."""
        inside = np.zeros(n, dtype=bool)
        inside[self.rows] = True
        grow, judge = inside[fold.train], inside[fold.validation]
        return Fold(fold.train[grow], fold.validation[judge])


def _list_node_rows(tree: Tree, leaf: Int32) -> list[Indices]:
    """Indices of the rows in each node, ascending."""
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
    """The tree, the rows of its nodes, and the model to fit in them."""

    rows: Training
    tree: Tree
    leaf: Int32
    nodes: list[_NodeRows]
    template: Any

    def model(self, inside: Indices) -> Any:
        """The model of some rows; None where there is nothing to model."""
        X, y, weight = self.at(inside)
        if not len(y) or not _is_varying(y):
            return None
        # Regularised models read weights as numbers of rows.
        relative = None if weight is None else weight / self.rows.weight_unit
        return _fit_model(self.template, X, y, relative)

    def at(self, inside: Indices) -> tuple[NDArray[Any], NDArray[Any], Float64 | None]:
        """Features, targets and weights of some rows."""
        weight = None if self.rows.weight is None else self.rows.weight[inside]
        return self.rows.X[inside], self.rows.y[inside], weight


@dataclass(frozen=True, slots=True, eq=False)
class _AlphaLoss:
    """Loss of a rule's prunings on validation samples; see `TunableLoss`.

    Each fold has the rule on its training samples and the loss of every node on the others, (m,).
    """

    families: Sequence[tuple[FragmentPrunings, Float64]]

    def compute_losses(self, temperatures: Float64) -> Float64:
        """Loss of each alpha, (g, 1) -> (g,)."""
        return np.sum(
            [rule.compute_totals(loss, temperatures) for rule, loss in self.families], axis=0
        )


class DecoratedTree(TreeVoteEstimator):
    """What model trees share: a small tree, judged models in its nodes, the best pruning.

    Unless a rule says otherwise, every node of the tree is judged as a leaf once: by the loss of its
    model on rows that were left out of its fit, or of the majority or mean where that is less. The
    pruning with the smallest sum is kept, and models are fitted in its leaves.
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
            f"{type(self).__name__} holds estimators of scikit-learn, and reading them back means "
            "executing code, which no model file of certree asks for: write it with joblib or skops"
        )

    def _resolve_grower(self, value: Any) -> Grower:
        # A few large cells are all that is needed.
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
        """The model of a leaf, if none is given."""

    @abstractmethod
    def _compute_loss(
        self, model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None
    ) -> float:
        """Loss of a model on rows that it has not seen."""

    def _get_candidates(self) -> dict[str, Candidate]:
        return {}  # models are judged, not posteriors

    def _get_voting(self) -> Voting:
        return Voting("mean", _SMOOTHING)

    def _compute_leaf_values(self) -> Float64:
        raise TypeError(
            f"{type(self).__name__} has models in its leaves, and exports take leaves that predict "
            "the same for all their rows"
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
            raise ValueError(f"leaf_estimator {_get_last_step(template)!r} takes no sample_weight")
        tree = self._get_grower().grow(self._make_training_samples(rows, random_state))
        leaf = tree.route(rows.X, get_n_threads(self.n_jobs))
        # Iterative models turn a last digit of the weights into another model.
        judged = rows
        if rows.weight is not None:
            judged = replace(rows, weight=compute_relative_weights(rows.weight))
        grown = _GrownTree(judged, tree, leaf, self._list_nodes(tree, leaf, rows), template)
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
                inside,
                len(inside) >= self.min_samples_model and _is_varying(rows.y[inside]),
            )
            for number, inside in enumerate(_list_node_rows(tree, leaf))
        ]

    def _prune(
        self, grown: _GrownTree, random_state: np.random.RandomState
    ) -> tuple[NodeWeights, dict[int, Any]]:
        """The best pruning, and models by number of their node: of its leaves that need one."""
        folds = self._make_folds(grown, random_state)
        constant = self._compute_constant_losses(grown, folds)
        losses = self._compute_leaf_losses(grown, constant, folds)
        largest = float(constant.max())
        if 0 < largest < np.inf:
            losses, constant = (round_to_scale(one, largest) for one in (losses, constant))
        pruning = prune(grown.tree, losses)
        kept = [grown.nodes[v] for v in np.flatnonzero(pruning.weight) if losses[v] < constant[v]]
        fitted = self._run_parallel(self._fit_node_model, grown, kept)
        return pruning, {node.number: model for node, model in zip(kept, fitted, strict=True)}

    def _make_folds(self, grown: _GrownTree, random_state: np.random.RandomState) -> list[Fold]:
        return grown.rows.split_folds(self.cv, random_state)

    def _summarise_fold(self, grown: _GrownTree, fold: Fold) -> GrownFold:
        """The statistics of the two sides of a fold."""
        return GrownFold.from_rows(
            fold, grown.tree, self._compute_node_stats, grown.leaf, grown.rows.target
        )

    def _compute_constant_losses(self, grown: _GrownTree, folds: list[Fold]) -> Float64:
        """Loss of every node without a model on rows left out, (m,)."""
        losses = np.zeros(grown.tree.n_nodes)
        for fold in folds:
            sides = self._summarise_fold(grown, fold)
            values = sides.stats.averages(grown.tree, _SMOOTHING)
            losses += compute_leaf_losses(
                ValidationVotes(None, values, sides.validation), self.scoring
            )
        return losses

    def _compute_leaf_losses(
        self, grown: _GrownTree, constant: Float64, folds: list[Fold]
    ) -> Float64:
        """Loss of every node as a leaf, by its model or by a constant, whichever is better, (m,)."""
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
        """Loss of models of a node on rows left out; infinite where they cannot be fitted."""
        rows = grown.rows
        loss = 0.0 if folds else np.inf
        for whole in folds:
            fold = node.part(whole, len(rows.y))
            if not len(fold.validation):
                continue
            model = grown.model(fold.train)
            if model is None:
                return np.inf
            loss += self._compute_loss(model, *grown.at(fold.validation))
        return loss

    def _fit_node_model(self, grown: _GrownTree, node: _NodeRows) -> Any:
        return grown.model(node.rows)

    def _group_by_leaf(self, X: ArrayLike) -> tuple[NDArray[Any], Int32, list[tuple[int, Indices]]]:
        """New rows, their leaves, and those of each leaf with a model."""
        rows = self._encode_new_rows(X).astype(np.float64, copy=False)
        self._check_missing_values(rows)
        leaf = self.tree_.route(rows, get_n_threads(self.n_jobs))
        order = np.argsort(leaf, kind="stable")
        starts = np.searchsorted(leaf[order], np.arange(self.tree_.n_nodes + 1))
        groups = [
            (v, order[starts[v] : starts[v + 1]])
            for v in self.leaf_estimators_
            if starts[v] < starts[v + 1]
        ]
        return rows, leaf, groups


def _is_varying(y: NDArray[Any]) -> bool:
    """Whether there is anything to model."""
    return bool(y.min() < y.max())


def _get_last_step(template: Any) -> Any:
    return _get_last_step(template.steps[-1][1]) if isinstance(template, Pipeline) else template


def _list_weight_parameters(model: Any) -> list[str]:
    """Under which names the steps of a model take the weights of rows, also those of its steps."""
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
        What is fitted in the leaves, such as ``SVC(kernel="poly", degree=2, coef0=1)`` or a naive
        Bayes; None: logistic regression. Without ``predict_proba`` its predictions have the
        probability 1.
    grower : {"kd", "cart", "dyadic"}, grower or scikit-learn decision tree, default="kd"
        How the tree is grown; see `PACBayesTreeClassifier`. Greedy cuts look for cells that need no
        model, so that medians leave better ones to the models. A name means that no cell of fewer
        than 51 rows is cut, as in ``KD(min_samples_split=51)``.
    min_samples_model : int, default=50
        A cell with fewer rows, or of one class, predicts its class frequencies.
    scale : bool, default=True
        Whether the features are standardised in each leaf.
    rule : {"cross-validated", "polynomial"} or Polynomial, default="cross-validated"
        How the tree is pruned. "cross-validated": to the smallest loss of its leaves on rows that
        were left out of their fits. "polynomial": by the errors of the leaves on all their rows and
        the penalty of `polynomial_penalised`, of polynomials of the largest degree r below the
        smoothness in the leaves, whatever model is in them: ``make_pipeline(PolynomialFeatures(r),
        LogisticRegression())`` and ``SVC(kernel="poly", degree=r, coef0=1)`` have degree r, the default
        1; ``Polynomial(smoothness=3)`` is for degree 2. With ``Dyadic(resolution="paper")`` or
        ``Grid(box, resolution="paper")`` the tree is that of the rule's theorem.
    alpha : float or None, default=None
        For "polynomial": factor of the penalty, 1 as published; None: chosen by cross-validation.
    scoring : {"error", "log_loss"}, default="error"
        Loss by which nodes, or alphas, are judged on rows left out.
    cv : int, splitter, iterable or None, default=3
        Folds on which the models of all nodes are judged; see `PACBayesTreeClassifier`. A given
        alpha needs none.
    max_depth : int, "log", None or "auto", default="auto"
        Depth at which cells are leaves; "auto" is 7, or what the resolution of the grower says.
        Every node costs `cv` fits, by "polynomial" one more, or one alone if alpha is given.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`. The models of the leaves see
        them as numbers in the order of their names.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds.
    n_jobs : int or None, default=None
        Number of threads, of growth and over the nodes.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them; None if loaded from a file that
        was saved without.
    leaf_estimators_ : dict
        The fitted model of each leaf of `tree_` that has one, by number.
    tree_ : Tree
        The pruned tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    best_params_ : dict
        `alpha`, given or chosen; empty for "cross-validated".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS 2003,
    Section 4 and equation (3). Kohavi, "Scaling up the accuracy of naive-Bayes classifiers: a
    decision-tree hybrid", KDD 1996, for judging nodes by cross-validation.
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
        """The rule that a name or an object means; None: cross-validation."""
        if isinstance(value, str):
            return Polynomial() if value == "polynomial" else None
        return value

    def _fit(self, training: Training) -> None:
        rule = self._resolve_rule(self.rule)
        if rule is None and self.alpha is not None:
            raise ValueError(f"rule={self.rule!r} takes no alpha, got alpha={self.alpha!r}")
        super()._fit(training)

    def _get_grower(self) -> Grower:
        grower, rule = super()._get_grower(), self._resolve_rule(self.rule)
        return grower if rule is None else rule.match_grower(grower, self.n_features_in_)[1]

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
            judged = [self._fit_nodes(grown, fold)[:2] for fold in folds]
            (alpha,) = tune(_AlphaLoss(judged), [None])
        self.best_params_ = {"alpha": float(alpha)}
        return prunings.solve(alpha), models

    def _fit_nodes(
        self, grown: _GrownTree, fold: Fold
    ) -> tuple[FragmentPrunings, Float64, dict[int, Any]]:
        """Fit every node to one side of a fold: a model or a constant, whichever errs less there.

        The rule prunes by these errors. Beside it come the losses of all nodes on the other side, and
        the models by number of their node.
        """
        sides = self._summarise_fold(grown, fold)
        values = sides.stats.averages(grown.tree, _SMOOTHING)
        cost = compute_leaf_losses(ValidationVotes(None, values, sides.stats.table), "error")
        loss = compute_leaf_losses(ValidationVotes(None, values, sides.validation), self.scoring)
        modelled = [node for node in grown.nodes if node.is_modelled]
        models = {}
        for node, (model, errors, left_out) in zip(
            modelled, self._run_parallel(self._fit_and_validate, grown, modelled, fold), strict=True
        ):
            v = node.number
            if errors < cost[v]:
                cost[v], loss[v], models[v] = errors, left_out, model
        rule = self._resolve_rule(self.rule) or Polynomial()
        family, _ = rule.match_grower(super()._get_grower(), self.n_features_in_)
        n = float(len(grown.rows.y))
        return family(grown.tree, sides.stats, cost=cost, n_grown=n), loss, models

    def _fit_and_validate(
        self, grown: _GrownTree, node: _NodeRows, whole: Fold
    ) -> tuple[Any, float, float]:
        """A node's model, its errors on the rows it is fitted to, and its loss on those left out."""
        fold = node.part(whole, len(grown.rows.y))
        model = grown.model(fold.train)
        if model is None:
            return None, np.inf, np.inf
        errors = _count_errors(model, *grown.at(fold.train))
        if not len(fold.validation):
            return model, errors, 0.0
        return model, errors, self._compute_loss(model, *grown.at(fold.validation))

    def _compute_loss(
        self, model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None
    ) -> float:
        if self.scoring == "error":
            return _count_errors(model, X, y, weight)
        one = np.ones(len(y)) if weight is None else weight
        shares = _predict_probabilities(model, X, max(2, self.n_classes_))[np.arange(len(y)), y]
        return float(-(one @ np.log(np.maximum(shares, np.finfo(np.float64).eps))))

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Predict the probability of each class by the model of the leaf.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            In the order of `classes_`; rows sum to 1.
        """
        rows, leaf, groups = self._group_by_leaf(X)
        shares = self.vote_.score[leaf]
        for v, inside in groups:
            shares[inside] = _predict_probabilities(
                self.leaf_estimators_[v], rows[inside], shares.shape[1]
            )
        if self.n_classes_ == 1:
            return np.ones((len(rows), 1))  # smoothing has given a second class its share
        return shares

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class that the model of the leaf predicts.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        rows, leaf, groups = self._group_by_leaf(X)
        codes = self.vote_.label[leaf].copy()
        for v, inside in groups:
            codes[inside] = self.leaf_estimators_[v].predict(rows[inside])
        return self.classes_.take(codes)


def _count_errors(model: Any, X: NDArray[Any], y: NDArray[Any], weight: Float64 | None) -> float:
    """How many rows a model gets wrong."""
    wrong = model.predict(X) != y
    return float(wrong.sum() if weight is None else weight @ wrong)


def _predict_probabilities(model: Any, X: NDArray[Any], n_classes: int) -> Float64:
    """Probabilities of all classes; 1 for what a model without probabilities predicts."""
    shares = np.zeros((len(X), n_classes))
    if hasattr(model, "predict_proba"):
        shares[:, model.classes_] = model.predict_proba(X)
    else:
        shares[np.arange(len(X)), model.predict(X)] = 1.0
    return shares


class DecoratedTreeRegressor(DecoratedTree, TreeVoteRegressor):
    """A pruned tree with a regressor in each leaf.

    Parameters
    ----------
    leaf_estimator : regressor or None, default=None
        What is fitted in the leaves; None: ridge regression.
    grower : {"kd", "cart", "dyadic"}, grower or scikit-learn decision tree, default="kd"
        How the tree is grown; see `DecoratedTreeClassifier`.
    min_samples_model : int, default=50
        A cell with fewer rows predicts its mean.
    scale : bool, default=True
        Whether the features are standardised in each leaf.
    cv : int, splitter, iterable or None, default=3
        Folds on which the models of all nodes are judged, by squared error.
    max_depth : int, "log", None or "auto", default="auto"
        Depth at which cells are leaves; "auto" is 7, or what the resolution of the grower says.
        Every node costs `cv` fits.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`. The models of the leaves see
        them as numbers in the order of their names.
    random_state : int, RandomState or None, default=None
        Decides the folds.
    n_jobs : int or None, default=None
        Number of threads, of growth and over the nodes.

    Attributes
    ----------
    leaf_estimators_ : dict
        The fitted model of each leaf of `tree_` that has one, by number.
    tree_ : Tree
        The pruned tree.
    stats_ : TargetStats
        Moments of the target in its nodes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

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
        one = np.ones(len(y)) if weight is None else weight
        return float(one @ (model.predict(X) - y) ** 2)

    @snapshot_method
    def predict(self, X: ArrayLike) -> Float64:
        """Predict by the model of the leaf.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Predictions, in units of the target.
        """
        rows, leaf, groups = self._group_by_leaf(X)
        predicted: Float64 = self.vote_.score[leaf, 0]
        for v, inside in groups:
            predicted[inside] = self.leaf_estimators_[v].predict(rows[inside])
        return predicted
