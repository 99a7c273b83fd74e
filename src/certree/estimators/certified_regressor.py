"""A tree regressor with prediction intervals, and a certificate on its mean absolute error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.calibration_set import CalibrationSet, HeldOutNumbers
from certree.certificates.certificate import (
    CERTIFICATE_FIELDS,
    FULL_CERTIFICATE_FIELD,
    Certificate,
    get_sampling_facts,
)
from certree.certificates.certified_regression import (
    LEAST_SCALE,
    CertifiedRegressorMixin,
    compute_error_limit,
)
from certree.certificates.occam import absolute_error, absolute_error_pruning
from certree.certificates.priors import pruning_prior
from certree.certificates.row_order import note_row_order
from certree.certificates.subsets.coverage import (
    PredictionIntervals,
    Scores,
    merge_leaves_into_regions,
)
from certree.certificates.subsets.node_bounds import NodeBounds
from certree.certificates.subsets.row_subsets import count_rows_in_nodes
from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.estimators.compact import FittedVote, map_to_smaller_tree
from certree.estimators.out_of_core_certified_trees import (
    OutOfCoreCertifiedFit,
    ValidationErrorSums,
)
from certree.estimators.pac_bayes import PACBayesPosteriors, PACBayesTree, PACBayesTreeRegressor
from certree.estimators.small_tree import choose_small_alpha, find_small_pruning, shrink_tree
from certree.estimators.tree_vote import TreeVoteRegressor
from certree.estimators.tune import GrownFold, Mixture
from certree.grow.grower import grow_trees
from certree.grow.training_samples import MaxDepth
from certree.interface.arrays import Float64, Int32
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import NONNEGATIVE
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import get_n_threads
from certree.out_of_core.executors import Executor
from certree.out_of_core.time_split import TimeArguments
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.folds import Fold
from certree.rows.out_of_core import is_out_of_core
from certree.rows.split import TrainCalibrationSplit, TrainCalibrationSplitter
from certree.rows.time_order import has_dependent_rows
from certree.rows.training import WeightedTarget
from certree.stats import Stats, TargetStats
from certree.stats.exact_leaf_sums import measure_exactly, reduce_in_memory
from certree.tree import Tree
from certree.votes import Voting, vote
from certree.weights.node_weights import NodeWeights, map_pruning

Widths = Literal["scaled", "one", "leaf"]

# How cross-validation in the training set chooses the posterior.
_POSTERIORS = PACBayesPosteriors(search="mixture")
# Number of rows with the mean error of its parent that are added to each node.
_SMOOTHING = 20.0


def collect_validation_errors(
    folds: list[Fold],
    leaves: list[Int32],
    leaf: Int32,
    rows: WeightedTarget,
    predicted: list[Float64],
    node_map: Int32,
) -> ValidationErrorSums:
    """Collect the absolute errors of the validation rows of all folds, by node of a given tree.

    The errors are those of the trees of the folds; they are summed by node of the tree that will
    predict, which is the tree of all training rows or a pruning of it.

    Parameters
    ----------
    folds : list of Fold
        Indices of the training and validation rows of each fold, among n training rows.
    leaves : list of ndarray of int32, shape (n,)
        For each fold the node number of each row's leaf in the tree of the fold.
    leaf : ndarray of int32, shape (n,)
        Node number of each row's leaf in the tree of all training rows, which has m nodes.
    rows : WeightedTarget
        Targets and weights of the n rows, and the mean weight.
    predicted : list of ndarray of float64
        For each fold, the prediction of each node of its tree.
    node_map : ndarray of int32, shape (m,)
        For each node of the tree of all training rows, the number of the node of the predicting
        tree that contains it.

    Returns
    -------
    ValidationErrorSums
        The largest error (0 if there is no fold), the smallest and the largest target, the mean row
        weight, and a function that takes the limit of an error (the largest one that counts) and
        returns the sums of the errors, divided by the limit, by leaf of the predicting tree.
    """
    y = rows.y
    weights = np.ones(len(y)) if rows.weight is None else rows.weight
    columns = [(leaf[:0], y[:0], y[:0])]
    for fold, fold_leaf, values in zip(folds, leaves, predicted, strict=True):
        error = np.abs(y[fold.validation] - values[fold_leaf[fold.validation]])
        columns.append((node_map[leaf[fold.validation]], error, weights[fold.validation]))
    node, error, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
    largest, ends = float(error.max(initial=0.0)), (float(y.min()), float(y.max()))
    return ValidationErrorSums(
        len(error) > 0,
        largest,
        ends,
        lambda limit: reduce_in_memory(node, error / limit, weight),
        rows.weight_unit,
    )


@copy_descriptions_from(CertifiedTreeClassifier, PACBayesTreeRegressor)
class CertifiedTreeRegressor(CertifiedRegressorMixin, PACBayesTree, TreeVoteRegressor):
    """A tree regressor with prediction intervals, and a certificate on its mean absolute error.

    The rows are split at random into a training set and a calibration set. The tree is grown on the
    training set. A pruning is this tree after some of its nodes have become leaves; the prediction
    is the posterior mean over all prunings, as in `PACBayesTreeRegressor`. The calibration set
    certifies it. Given the fit, with probability ``1 - delta`` over the draw of the calibration
    set, for every distribution,

    * the intervals of `predict_interval` contain the target of a fraction `coverage` of all new rows;
    * the mean absolute error on new rows is at most ``certificate_.bound``, in units of the target,
      where errors above ``certificate_.unit`` count as that. Without such a limit no number of rows
      could bound the mean, as rare errors may be arbitrarily large.

    Each guarantee holds by itself. They are about all new rows together, not about every subset of
    them; with ``widths="leaf"`` the intervals have their coverage in every region of the tree.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of the sum of squares; "kd":
        splits at medians; "dyadic": splits at midpoints; or a grower object, see
        `PACBayesTreeRegressor`.
    train_size : float, default=0.5
        Fraction of the rows, or groups, in the training set; the others are the calibration set.
    coverage : float, default=0.9
        Fraction of new rows whose target the prediction interval must contain.
    delta : float, default=0.05
        Probability with which a guarantee may fail.
    widths : {"scaled", "one", "leaf"}, default="scaled"
        How wide the intervals are in different leaves. "scaled": in proportion to the mean absolute
        error in the leaf, by cross-validation in the training set. "one": equally wide everywhere.
        "leaf": the width is calibrated in every region separately, and all regions keep the
        coverage together with probability ``1 - delta``. Regions are leaves of the pruning with the
        largest posterior weight, or nodes above them that have enough rows.
    {smoothing}
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation in the training set. An integer is the number of random folds;
        otherwise as in scikit-learn; None: 5 folds.
    {preprocessor}
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        How rows with equal features and target are treated. "genuine": each is an independent draw
        and counts; "copies": they are copies of one draw and count once in the certificate;
        "refuse": raise an error; "auto": decide by their number; see `CertifiedTreeClassifier`.
    max_leaf_nodes : int or None, default=None
        If it is set, a single tree with at most this number of leaves predicts instead of all
        prunings together. It is a pruning of the grown tree by cost-complexity with sums of
        squares; cross-validation in the training set chooses alpha, the price of a leaf. None: all
        prunings of the tree predict together. To limit growth instead, pass
        ``grower=Cart(max_leaf_nodes=64)``, or call ``set_params(grower__max_leaf_nodes=64)``, which
        turns the name of a grower into its object.
    {max_depth} {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonic constraint of each feature, or a dictionary by name: 1 if predictions must not
        fall as the feature rises, -1 if they must not rise, 0: none. Only with `Cart`.
    {random_state} {n_jobs} {verbose}

    Attributes
    ----------
    certificate_ : Certificate
        The bound on the mean absolute error. Its ``unit`` is the limit of a single error: the
        largest error of the cross-validation in the training set.
    certificates_ : tuple of Certificate
        `certificate_`; and that of the intervals at `coverage` and `delta`, unless widths="leaf",
        there are groups, or the calibration rows are too few for it.
    full_certificate_ : Certificate or None
        If `max_leaf_nodes` has replaced the vote of all prunings by a single small tree, the bound
        of that vote, which holds by itself and has the same limit of an error; else None.
    intervals_ : PredictionIntervals
        The scale of the interval width in each node, and the region of each node.
    conformity_scores_ : Scores
        Absolute errors of the calibration rows divided by the scale of their leaf in `intervals_`,
        sorted in each region.
    held_out_ : HeldOutNumbers or None
        The calibration rows; None if the model was loaded from a file.
    best_params_ : dict
        The inverse temperatures; see `PACBayesTreeRegressor`.
    posteriors_ : list of str
        Names of the posteriors; see `PACBayesTreeRegressor`. ["pruning"] with `max_leaf_nodes`.
    mixture_weights_ : list of float
        Weight of each posterior in the prediction; they sum to 1.
    {tree_}
    stats_ : TargetStats
        Moments of the target of the training rows in its nodes.
    {weights_}
    vote_ : Vote
        The prediction in the leaves of `tree_`; at its splits, the part of it by prunings that stop
        there or above.
    {preprocessor_} {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

    See Also
    --------
    PACBayesTreeRegressor : The same model fitted to all rows, without guarantees.
    certree.ensembles.ConformalBandRegressor : Intervals around quantiles of any regressor.

    References
    ----------
    Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
    Statistics 1941; Vovk, "Conditional validity of inductive conformal predictors", ACML 2012; Lei,
    G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for
    regression", JASA 2018, for errors in units of a scale.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import CertifiedTreeRegressor
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(0, 0.1, 1000)
    >>> model = CertifiedTreeRegressor(random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3]).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteRegressor._parameter_constraints,
        "train_size": [Interval(Real, 0, 1, closed="neither")],
        "coverage": [Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "widths": [StrOptions({"scaled", "one", "leaf"})],
        "smoothing": [NONNEGATIVE],
        "preprocessor": [HasMethods(["fit", "transform"]), None],
        "duplicates": [StrOptions(set(DUPLICATES))],
        "max_leaf_nodes": [Interval(Integral, 1, None, closed="left"), None],
    }

    stats_: TargetStats
    _takes_blocks = True

    def __init__(
        self,
        grower: Any = "cart",
        *,
        train_size: float = 0.5,
        coverage: float = 0.9,
        delta: float = 0.05,
        widths: Widths = "scaled",
        smoothing: float = 2.0,
        cv: Any = 5,
        preprocessor: Any = None,
        duplicates: Duplicates = "auto",
        max_leaf_nodes: int | None = None,
        max_depth: MaxDepth = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _get_posterior_parameters(self) -> PACBayesPosteriors:
        return _POSTERIORS

    def _get_voting(self) -> Voting:
        return Voting("mean", self.smoothing, self._get_monotonic_signs())

    @copy_descriptions_from(CertifiedTreeClassifier.fit)
    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        time: Any = None,
        gap: Any = 0,
        independent: bool = False,
    ) -> Self:
        """Grow the tree and fit its vote on the training set, and certify by the calibration set.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value, and the grower decides where it goes. X may be out-of-core
            or distributed, as in `PACBayesTreeRegressor.fit`.
        y : array-like of shape (n,)
            Target of each row, a number.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the tree and the vote; None: 1. Only ratios of weights matter. The
            certificate counts every row of positive weight once; rows of weight zero are left out.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, if rows of one group depend on each other. All
            rows of a group are in the training set or all in the calibration set, and the
            certificate is about new groups. With groups there are no prediction intervals. Groups
            must have an order, such as numbers or strings.
        {time} {gap} {independent}

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if is_out_of_core(X):
            order = TimeArguments.read(X, time, gap, independent)
            arrays = self._fit_out_of_core(X, y, sample_weight, groups, order)
            if arrays is None:
                return self
            X, y, sample_weight, groups, time = arrays
        random_state = check_random_state(self.random_state)
        training = self._prepare_training(
            X,
            y,
            sample_weight,
            groups=groups,
            time=time,
            gap=gap,
            independent=independent,
            row_splitter=TrainCalibrationSplitter(
                self.train_size, random_state, self._splits_by_content()
            ),
        )
        growing = training.train_subset or training
        rows = self._make_ranked_samples(growing, random_state)
        target, folds = growing.target, growing.split_folds(self.cv, random_state)
        with self._show_progress(folds) as advance:
            *trees, whole = grow_trees(self._get_grower(), rows, [*folds, None], advance)
            leaves = [tree.find_leaves() for tree in trees]
            grown = self._compute_fold_stats(folds, trees, leaves, target)
            posteriors = self._tune(grown, advance)
        tree, split = whole.encoded_tree, training.split
        leaf = tree.route(training.X, get_n_threads(self.n_jobs))
        leaf = whole.replace_training_leaves(tree, leaf, split.train)
        stats: Any = self._compute_node_stats(tree, leaf[split.train], *target)
        collect = partial(
            collect_validation_errors,
            folds,
            leaves,
            leaf[split.train],
            target,
        )
        calibration = split, leaf[split.calibration], training.y[split.calibration], None
        self._set_certified_fit(tree, stats, posteriors, grown, collect, lambda: calibration)
        return self

    def _fit_blocks(self, executor: Executor, order: TimeArguments | None = None) -> None:
        random_state = check_random_state(self.random_state)
        fit = OutOfCoreCertifiedFit.from_executor(self, executor, order)
        grown = fit.grow(self.train_size, random_state, random_state)
        stats: Any = grown.stats
        self._set_certified_fit(
            grown.tree,
            stats,
            grown.posteriors,
            grown.folds,
            partial(grown.collect_errors, n_threads=get_n_threads(self.n_jobs)),
            lambda: fit.route_calibration_set(grown),
        )

    def _set_certified_fit(
        self,
        tree: Tree,
        stats: TargetStats,
        posteriors: Mixture,
        folds: list[GrownFold],
        collect_errors: Callable[[list[Float64], Int32], ValidationErrorSums],
        get_calibration: Callable[[], tuple[TrainCalibrationSplit, Int32, Float64, Any]],
    ) -> None:
        """Set all fitted attributes from the grown tree, its folds and the calibration rows.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        tree : Tree
            The tree that was grown on the training set, with m nodes.
        stats : TargetStats
            Row weight, mean and sum of squares of the training targets in its nodes.
        posteriors : Mixture
            The inverse temperatures that cross-validation has chosen: the factors by which sums of
            squares and size lower the weight of a pruning.
        folds : list of GrownFold
            The tree and the node statistics of each cross-validation fold of the training set. If
            `max_leaf_nodes` is set, they choose alpha, the price of a leaf.
        collect_errors : callable
            ``collect_errors(predicted, node_map)`` returns the absolute errors of the validation
            rows of all folds, with a function that sums them by node of the predicting tree.
            `predicted`: for each fold, the prediction of each node of its tree; `node_map`: for
            each node of `tree`, the number of the node of the predicting tree that contains it,
            (m,).
        get_calibration : callable
            Takes no arguments. Returns four values: the train/calibration split; then the node
            number of the leaf in `tree`, the target and the weight of each calibration row. The
            weight is not used.
        """
        posterior: Callable[..., NodeWeights] = partial(
            posteriors.compute_posterior, self._get_candidates()
        )
        weights = posterior(tree, stats)
        whole = tree, stats, weights, vote(tree, stats, weights, self._get_voting())
        fitted: FittedVote = whole
        if self.max_leaf_nodes is not None:
            posteriors = Mixture.from_single("pruning", [0.0, 0.0])
            alpha = choose_small_alpha(folds, get_n_threads(self.n_jobs))
            fitted = shrink_tree(tree, stats, self.max_leaf_nodes, alpha, self._get_voting())
            posterior = partial(find_small_pruning, n_leaves=self.max_leaf_nodes, alpha=alpha)
        self._set_posteriors(posteriors)
        self._set_fitted(*fitted)
        node_map = map_to_smaller_tree(self.tree_, tree)
        predicted = [self._predict_fold(fold, posterior) for fold in folds]
        limit, scale = self._estimate_scale(collect_errors(predicted, node_map))
        split, leaf, y = get_calibration()[:3]
        rows = CalibrationSet.from_split(split, y)
        held = rows.hold_targets(self.tree_, self.stats_, node_map[leaf], limit)
        self._set_certificates(held, scale)
        self.full_certificate_ = None
        if fitted is not whole:
            held = rows.hold_targets(tree, stats, leaf, limit)
            self.full_certificate_ = absolute_error(held, whole[-1].score[:, 0], self.delta)
        value, leaf = self.vote_.score[:, 0], node_map[leaf]
        note_row_order(self, split.units, 1, lambda some: y[some] - value[leaf[some]])

    def _predict_fold(
        self, fold: GrownFold, posterior: Callable[[Tree, Stats], NodeWeights]
    ) -> Float64:
        """Return the prediction of all prunings together in each node of the tree of a fold.

        fold: the tree, and the statistics of its training rows; posterior: function that takes a
        tree and its statistics, and returns the weights of its prunings (the tree after some nodes
        have become leaves). The result has shape (m,), for the m nodes of the tree of the fold.
        """
        weights = posterior(fold.tree, fold.stats)
        return vote(fold.tree, fold.stats, weights, self._get_voting()).score[:, 0]

    def _estimate_scale(self, errors: ValidationErrorSums) -> tuple[float, Float64]:
        """Estimate the limit of an error, and the mean absolute error in each node of `tree_`.

        Errors above the limit count as the limit in the certificate. A pruning is the tree with
        some nodes turned into leaves.

        Parameters
        ----------
        errors : ValidationErrorSums
            Absolute errors of the validation rows of all folds: the largest one, the range of the
            targets, and a function that sums the errors by leaf of `tree_`.

        Returns
        -------
        limit : float
            The largest absolute validation error, in units of the target; the range of the targets
            if that is 0, or 1 if the range is 0, too.
        scale : ndarray of float64, shape (m,)
            Mean absolute validation error in each of the m nodes of `tree_`, with 20 rows of the
            mean error of its parent added. It is averaged over prunings with `weights_`, as the
            predictions are, and is at least 30 % of the mean over all rows. If there are no
            validation rows, it is `limit` everywhere.

        Notes
        -----
        `tree_` and `weights_` must have been set.
        """
        limit = compute_error_limit(errors.largest, *errors.ends)
        if not errors.has_any:
            return limit, np.full(self.tree_.n_nodes, limit)
        stats = measure_exactly(self.tree_, errors.reduce_scaled(limit), errors.weight_unit)
        node_predictions = Voting("mean", _SMOOTHING).ballots(self.tree_, stats)
        mean = node_predictions.compute_vote(self.tree_, self.weights_).score[:, 0]
        return limit, limit * np.maximum(mean, LEAST_SCALE * float(stats.mean[0]) or 1.0)

    def _predicts_by_one_pruning(self) -> bool:
        return self.full_certificate_ is not None

    def _bound_nodes(self) -> NodeBounds:
        reason = "the certificate bounds the mean absolute error over all rows"
        held = self.held_out_
        n_rows = None if held is None else count_rows_in_nodes(self.tree_, held.leaf)
        return NodeBounds(None, self._number_rules(), reason, n_rows)

    def _set_certificates(self, held: HeldOutNumbers, scale: Float64) -> None:
        """Set certificates, conformity scores and prediction intervals by the calibration rows.

        The attributes are `intervals_`, `conformity_scores_`, `held_out_`, `certificate_` and
        `certificates_`; `tree_` and `vote_` must have been set.

        held: leaf and target of each calibration row, with the tree and its training statistics;
        scale: mean absolute error in each node, (m,), to which interval widths are proportional
        with widths="scaled"; otherwise it is not used, and the scale is 1 in all nodes. A
        calibration row that repeats others and counts as wrong whatever is predicted has an
        infinite error.
        """
        tree, value = self.tree_, self.vote_.score[:, 0]
        leaf, y, n = held.leaf, held.y, held.n
        region, mass = np.zeros(tree.n_nodes, dtype=np.int32), np.ones(1)
        if self.widths == "leaf":
            likeliest = map_pruning(tree, self.weights_)
            rows = self.stats_.n / self.stats_.weight_unit
            region, mass = merge_leaves_into_regions(
                tree, likeliest, rows, n, self.coverage, self.delta
            )
        self.intervals_ = PredictionIntervals(
            scale if self.widths == "scaled" else np.ones(tree.n_nodes), region
        )
        with np.errstate(over="ignore"):
            error = np.abs(y - value[leaf])
        if held.is_worst is not None:
            error[held.is_worst] = np.inf
        self.conformity_scores_ = self.intervals_.scores(leaf, error, mass)
        self.held_out_: HeldOutNumbers | None = held
        self.certificate_ = absolute_error(held, value, self.delta)
        of_all = not has_dependent_rows(held) and self.widths != "leaf"
        bands = self._certify_intervals(self.coverage, self.delta) if of_all else ()
        self.certificates_ = (self.certificate_, *filter(None, bands))

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        **PACBayesTree._stored_fields,
        "bands": StoredField.record("intervals_", PredictionIntervals),
        "scores": StoredField.record("conformity_scores_", Scores),
        **CERTIFICATE_FIELDS,
        "full_certificate": FULL_CERTIFICATE_FIELD,
    }

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the intervals against the tree and the scores; set `held_out_` to None.

        Raise ValueError if they do not fit together. stored: the content of the model file.
        """
        super()._finish_restore(stored)
        self.held_out_ = None
        n_regions = len(self.conformity_scores_.mass)
        if (largest := self.intervals_.check_tree(self.tree_).region.max()) >= n_regions:
            raise DamagedModelError(
                f"the model file's bands.region must be below {n_regions}, the number of regions with "
                f"conformity scores, got {largest}"
            )

    def _predict_with_half_width(self, X: ArrayLike, reach: Float64) -> tuple[Float64, Float64]:
        leaf = self._find_leaves(X)
        return self.vote_.score[leaf, 0], self.intervals_.half_width(leaf, reach)

    @snapshot_method
    def certify_pruning(self, pruning: NodeWeights, delta: float | None = None) -> Certificate:
        """Certify a pruning of the tree that predicts the means of the training rows in its leaves.

        The pruning may be edited by hand. The guarantee covers all prunings at once, so it also
        holds for the one with the lowest bound among several. A pruning is the tree with some nodes
        turned into leaves.

        Parameters
        ----------
        pruning : NodeWeights
            A single pruning of `tree_`: weight 1 at its leaves, 0 at all other nodes.
            ``map_pruning(tree_, weights_)`` has the largest prior probability, and so the smallest
            bound for a given error.
        delta : float or None
            Probability with which any of these guarantees may fail, apart from those of the fit;
            None: the parameter `delta`.

        Returns
        -------
        Certificate
            A bound on the mean absolute error, in units of the target; errors above its `unit`
            count as that.

        Raises
        ------
        TypeError
            If `pruning` is no `NodeWeights`.
        ValueError
            If its weights are not 0 and 1, or the model was loaded from a file, which lacks the
            calibration rows.
        """
        check_is_fitted(self)
        if self.held_out_ is None:
            raise ValueError(
                "certify_pruning needs the calibration rows, which a model loaded from a file lacks: "
                "call it before saving, or fit the model again"
            )
        if not isinstance(pruning, NodeWeights):
            raise TypeError(
                "pruning must be NodeWeights of a single pruning, such as map_pruning(tree_, "
                "weights_), got "
                f"{pruning!r}"
            )
        prior = pruning_prior(self.tree_, map_pruning(self.tree_, self.weights_))
        level = self.delta if delta is None else delta
        found = absolute_error_pruning(
            self.held_out_, pruning, prior, level, voting=self._get_voting()
        )
        return replace(found, row_order=self.certificate_.row_order)

    def _certify_intervals(self, coverage: float, delta: float) -> tuple[Certificate | None, ...]:
        if self.widths != "leaf":
            return super()._certify_intervals(coverage, delta)
        scores, drawn = self.conformity_scores_, get_sampling_facts(self.certificate_)
        regions = [*map(str, range(len(scores.mass)))]
        return scores.certificates("leaf_band", coverage, delta, regions, **drawn)
