"""The regressor whose fit certifies: some rows grow the tree, the others say how far it is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.calibration_set import HeldOutNumbers, compute_group_weights
from certree.certificates.certificate import (
    Certificate,
    get_sampling_facts,
    restore_certificates,
    restore_full_certificate,
    serialize_certificates,
)
from certree.certificates.certified_regression import (
    LEAST_SCALE,
    CertifiedRegressorMixin,
    compute_error_limit,
)
from certree.certificates.occam import absolute_error, absolute_error_pruning
from certree.certificates.priors import pruning_prior
from certree.certificates.subsets.coverage import (
    PredictionIntervals,
    Scores,
    merge_leaves_into_regions,
)
from certree.estimators.certified_on_parts import CertifiedFitOfParts, JudgedErrors
from certree.estimators.compact import FittedVote, map_to_smaller_tree
from certree.estimators.pac_bayes import PACBayesPosteriors, PACBayesTree
from certree.estimators.small_tree import choose_small_alpha, find_small_pruning, shrink_tree
from certree.estimators.tree_vote import TreeVoteRegressor
from certree.estimators.tune import GrownFold, Mixture
from certree.grow.grower import grow_trees
from certree.grow.training_samples import MaxDepth
from certree.interface.arrays import Float64, Int32
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import NONNEGATIVE
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads
from certree.parts.executors import Executor
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.folds import Fold
from certree.rows.out_of_core import is_out_of_core
from certree.rows.split import TrainCalibrationSplit, TrainCalibrationSplitter
from certree.rows.training import WeightedTarget
from certree.stats import Stats, TargetStats
from certree.stats.exact_leaf_sums import measure_exactly, reduce_in_memory
from certree.tree import Tree
from certree.votes import Voting, vote
from certree.weights.node_weights import NodeWeights, map_pruning

Widths = Literal["scaled", "one", "leaf"]

# The posterior is chosen by cross-validation.
_POSTERIORS = PACBayesPosteriors(search="mixture")
# Rows with the errors of its parent that every cell is given.
_SMOOTHING = 20.0


def collect_validation_errors(
    folds: list[Fold],
    leaves: list[Int32],
    leaf: Int32,
    rows: WeightedTarget,
    said: list[Float64],
    own: Int32,
) -> JudgedErrors:
    """How far the rows that folds judge lie off.

    Parameters
    ----------
    folds : list of Fold
        The folds.
    leaves : list of ndarray of shape (n,)
        Leaf of each row in the tree of each fold.
    leaf : ndarray of int32, shape (n,)
        Its leaf in the tree of all.
    rows : WeighedTarget
        Their targets and weights.
    said : list of ndarray
        What each fold predicts in its nodes.
    own : ndarray of int32
        Where the nodes of the tree of all are in the one that predicts.
    """
    y = rows.y
    weights = np.ones(len(y)) if rows.weight is None else rows.weight
    parts = [(leaf[:0], y[:0], y[:0])]
    for fold, inside, values in zip(folds, leaves, said, strict=True):
        off = np.abs(y[fold.validation] - values[inside[fold.validation]])
        parts.append((own[leaf[fold.validation]], off, weights[fold.validation]))
    cells, off, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    largest, ends = float(off.max(initial=0.0)), (float(y.min()), float(y.max()))
    return JudgedErrors(
        len(off) > 0,
        largest,
        ends,
        lambda limit: reduce_in_memory(cells, off / limit, weight),
        rows.weight_unit,
    )


class CertifiedTreeRegressor(CertifiedRegressorMixin, PACBayesTree, TreeVoteRegressor):
    """A tree with bands that hold new numbers, and a certificate on its mean absolute error.

    Some of the rows grow the tree and fit the vote of its prunings, as `PACBayesTreeRegressor` does;
    the others certify it. Given the fit, with probability ``1 - delta`` over the draw of the rows that
    certify and whatever their distribution is,

    * a share `coverage` of all new rows lies in the bands of `predict_interval`;
    * the mean absolute error on new rows is at most ``certificate_.bound``, in units of the target,
      where no error counts as more than ``certificate_.unit``. A mean of errors without a limit cannot
      be bounded by any number of rows, as rare ones may be as large as they like.

    Each promise holds by itself. They speak of all new rows, not of every kind of them; with
    ``widths="leaf"`` that of the bands holds in every region of the tree.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeRegressor`.
    train_size : float, default=0.5
        Share of the rows, or groups, that grow the tree and fit the vote.
    coverage : float, default=0.9
        Share of new rows that bands are to hold.
    delta : float, default=0.05
        Probability with which a promise may fail.
    widths : {"scaled", "one", "leaf"}, default="scaled"
        Where bands are how wide. "scaled": in proportion to the absolute errors there in a
        cross-validation on the training samples. "one": the same everywhere. "leaf": every region of
        the tree has a width and keeps the promise for itself, all at once; regions are the leaves of
        the likeliest pruning as far as they have training samples enough, and each has its share of
        delta.
    smoothing : float, default=2
        Rows with the value of its parent that every cell is given; see `Voting`.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation among the training samples; see `PACBayesTreeRegressor`.
    preprocessor : transformer or None, default=None
        FittedVote on the rows that grow the tree, and applied to all, before anything else.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        What rows are that are alike, target included; see `CertifiedTreeClassifier`.
    max_leaf_nodes : int or None, default=None
        If given, what predicts is one tree of at most so many leaves, a pruning of the tree that was
        grown, which the training samples choose by cost-complexity and sums of squares, and its price
        of a leaf by cross-validation. None: all prunings of the whole tree vote.
        ``grower__max_leaf_nodes`` limits growth instead.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories, learned from the training samples; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        Constraints on features; see `PACBayesTreeRegressor`.
    random_state : int, RandomState or None, default=None
        Decides which rows grow, the folds, random cuts and features.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    certificate_ : Certificate
        What is promised of the mean absolute error; its ``unit`` is the limit of an error, the largest
        of the cross-validation among the training samples.
    certificates_ : tuple of Certificate
        The same, and that of the bands at `coverage` and `delta`, if it is one and the rows are enough
        for it; see `certify_interval`.
    full_certificate_ : Certificate or None
        What is promised, by itself, of the vote of all prunings of the whole tree, if `max_leaf_nodes`
        has put one of at most so many leaves in its place; else None. Its limit of an error is that of
        `certificate_`.
    intervals_ : Bands
        Where bands are how wide.
    conformity_scores_ : Scores
        How far the calibration samples lie off.
    held_out_ : HeldOutNumbers or None
        The rows that certify; None if loaded from a file.
    best_params_ : dict
        See `PACBayesTreeRegressor`.
    posteriors_ : list of str
        See `PACBayesTreeRegressor`; ["pruning"] if `max_leaf_nodes` is given.
    mixture_weights_ : list of float
        Share of each posterior in the prediction.
    tree_ : Tree
        The tree.
    stats_ : TargetStats
        Moments of the training samples in its nodes.
    weights_ : NodeWeights
        The distribution over its prunings.
    vote_ : Vote
        The prediction in every cell.
    preprocessor_ : transformer or None
        The fitted preprocessor.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    See Also
    --------
    PACBayesTreeRegressor : The same on all rows, without promises.
    certree.ensembles.ConformalBandRegressor : Bands around quantiles of any regressor.

    References
    ----------
    Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical
    Statistics 1941; Vovk, "Conditional validity of inductive conformal predictors", ACML 2012; Lei,
    G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for regression",
    JASA 2018, for errors in units of a scale.

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

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Grow the tree and fit its vote on some of the rows, and certify by the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value and goes where the grower sends it. They may lie
            elsewhere, as those of `PACBayesTreeClassifier` may.
        y : array-like of shape (n,)
            Numbers.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the tree and the vote, relative to the mean weight. A certificate
            counts every row of positive weight once; a row of weight zero is as if absent.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Whole
            groups grow or certify, and the certificate is about new groups. There are no bands then.
            Groups are dealt by their order, which is that of their values: of categories, too, and
            wherever rows lie.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if is_out_of_core(X):
            few = self._fit_out_of_core(X, y, sample_weight, groups)
            if few is None:
                return self
            X, y, sample_weight, groups = few
        random_state = check_random_state(self.random_state)
        training = self._prepare_training(
            X,
            y,
            sample_weight,
            groups=groups,
            row_splitter=TrainCalibrationSplitter(
                self.train_size, random_state, self._splits_by_content()
            ),
        )
        growing = training.train_subset or training
        rows = self._make_training_samples(growing, random_state)
        target, folds = growing.target, growing.split_folds(self.cv, random_state)
        with self._show_progress(folds) as advance:
            *trees, tree = grow_trees(self._get_grower(), rows, [*folds, None], advance)
            leaves = [one.route(rows.X, get_n_threads(self.n_jobs)) for one in trees]
            grown = self._compute_fold_stats(folds, trees, leaves, target)
            posteriors = self._tune(grown, advance)
        leaf, sides = tree.route(training.X, get_n_threads(self.n_jobs)), training.split
        stats: Any = self._compute_node_stats(tree, leaf[sides.train], *target)
        judged = partial(collect_validation_errors, folds, leaves, leaf[sides.train], target)
        certifying = sides, leaf[sides.calibration], training.y[sides.calibration], None
        self._set_certified_fit(tree, stats, posteriors, grown, judged, lambda: certifying)
        return self

    def _fit_blocks(self, parts: Executor) -> None:
        random_state = check_random_state(self.random_state)
        dealt = CertifiedFitOfParts.of(self, parts)
        grown = dealt.grown(self.train_size, random_state, random_state)
        stats: Any = grown.stats
        # The parts of those that grow are asked before those that certify take their place.
        self._set_certified_fit(
            grown.tree,
            stats,
            grown.posteriors,
            grown.folds,
            grown.judged_errors,
            lambda: dealt.certifying(grown),
        )

    def _set_certified_fit(
        self,
        tree: Tree,
        stats: TargetStats,
        posteriors: Mixture,
        grown: list[GrownFold],
        judged: Callable[[list[Float64], Int32], JudgedErrors],
        certifying: Callable[[], tuple[TrainCalibrationSplit, Int32, Float64, Any]],
    ) -> None:
        """Set what the training samples have fitted, and what the others say of it."""
        posterior: Callable[..., NodeWeights] = partial(
            posteriors.compute_posterior, self._get_candidates()
        )
        weights = posterior(tree, stats)
        whole = tree, stats, weights, vote(tree, stats, weights, self._get_voting())
        fitted: FittedVote = whole
        if self.max_leaf_nodes is not None:
            posteriors = Mixture.from_single("pruning", [0.0, 0.0])
            alpha = choose_small_alpha(grown, get_n_threads(self.n_jobs))
            fitted = shrink_tree(tree, stats, self.max_leaf_nodes, alpha, self._get_voting())
            posterior = partial(find_small_pruning, n_leaves=self.max_leaf_nodes, alpha=alpha)
        self._set_posteriors(posteriors)
        self._set_fitted(*fitted)
        own = map_to_smaller_tree(self.tree_, tree)
        limit, scale = self._estimate_scale(
            judged([self._predict_fold(one, posterior) for one in grown], own)
        )
        sides, leaf, y, _ = certifying()
        self._set_certificates(
            self._make_held_out(self.tree_, self.stats_, sides, y, own[leaf], limit), scale
        )
        self.full_certificate_ = None
        if fitted is not whole:
            held = self._make_held_out(tree, stats, sides, y, leaf, limit)
            self.full_certificate_ = absolute_error(held, whole[-1].score[:, 0], self.delta)

    def _predict_fold(
        self, fold: GrownFold, posterior: Callable[[Tree, Stats], NodeWeights]
    ) -> Float64:
        """What the vote of a fold predicts in its cells, (m,)."""
        weights = posterior(fold.tree, fold.stats)
        return vote(fold.tree, fold.stats, weights, self._get_voting()).score[:, 0]

    def _estimate_scale(self, judged: JudgedErrors) -> tuple[float, Float64]:
        """The largest absolute error of the cross-validation, and what it is about in every cell.

        The same prunings that predict the target predict how far it lies off, with the same weights.
        """
        limit = compute_error_limit(judged.largest, *judged.ends)
        if not judged.has_any:
            return limit, np.full(self.tree_.n_nodes, limit)
        stats = measure_exactly(self.tree_, judged.asking(limit), judged.weight_unit)
        ballots = Voting("mean", _SMOOTHING).ballots(self.tree_, stats)
        about = ballots.cast(self.tree_, self.weights_).score[:, 0]
        return limit, limit * np.maximum(about, LEAST_SCALE * float(stats.mean[0]) or 1.0)

    def _set_certificates(self, held: HeldOutNumbers, scale: Float64) -> None:
        """Set what the rows that certify say of the fitted vote."""
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
            off = np.abs(y - value[leaf])
        if held.is_worst is not None:
            off[held.is_worst] = np.inf
        self.conformity_scores_ = self.intervals_.scores(leaf, off, mass)
        self.held_out_: HeldOutNumbers | None = held
        self.certificate_ = absolute_error(held, value, self.delta)
        of_all = not held.grouped and self.widths != "leaf"
        bands = self._certify_intervals(self.coverage, self.delta) if of_all else ()
        self.certificates_ = (self.certificate_, *filter(None, bands))

    def _make_held_out(
        self,
        tree: Tree,
        stats: TargetStats,
        sides: TrainCalibrationSplit,
        y: Float64,
        leaf: Int32,
        limit: float,
    ) -> HeldOutNumbers:
        """The rows that certify a tree, by targets and leaves."""
        weigh, groups = sides.calibration, sides.groups
        weight, n = np.ones(len(weigh)), len(weigh)
        if groups is not None:
            weight, n = compute_group_weights(groups, sides.train, weigh)
        about = (
            groups is not None,
            sides.repeats,
            sides.distinct,
            sides.is_worst,
            sides.near_copies,
        )
        return HeldOutNumbers(tree, stats, leaf, y, weight, limit, n, *about)

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit: of the rows that certify it, how far they lie off."""
        certified = serialize_certificates(self.certificates_, self.certificate_)
        bands = {"bands": self.intervals_, "scores": self.conformity_scores_}
        full = self.full_certificate_
        beside = {} if full is None else {"full_certificate": asdict(full)}
        return {**super().__stored__(), **bands, **certified, **beside}

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        self.held_out_ = None
        self.intervals_ = PredictionIntervals.from_stored(stored.get_section("bands")).check_tree(
            self.tree_
        )
        self.conformity_scores_ = Scores.from_stored(stored.get_section("scores"))
        if self.intervals_.region.max() >= len(self.conformity_scores_.mass):
            raise ValueError("the bands have regions that no scores are of")
        self.certificates_, self.certificate_ = restore_certificates(stored)
        self.full_certificate_ = restore_full_certificate(stored)

    def _predict_with_half_width(self, X: ArrayLike, reach: Float64) -> tuple[Float64, Float64]:
        leaf = self._find_leaves(X)
        return self.vote_.score[leaf, 0], self.intervals_.half_width(leaf, reach)

    @snapshot_method
    def certify_pruning(self, pruning: NodeWeights, delta: float | None = None) -> Certificate:
        """Certify any pruning of the tree with the means of the training samples, edited by hand, too.

        All prunings are covered at once, so that the lowest bound of any number of them holds.

        Parameters
        ----------
        pruning : NodeWeights
            Weights 0 and 1 over the nodes of `tree_`, such as ``map_pruning(tree_, weights_)``, which
            the prior expects.
        delta : float or None
            Probability with which any of these promises may fail, apart from that of the fit; None:
            `delta` of the fit.

        Returns
        -------
        Certificate
            On the mean absolute error, like `certificate_`.

        Raises
        ------
        TypeError
            If `pruning` holds no weights of nodes.
        ValueError
            If the weights are not 0 and 1, or the model was loaded from a file.
        """
        check_is_fitted(self)
        if self.held_out_ is None:
            raise ValueError(
                "A model file does not keep the rows of the fit. Certify before saving"
            )
        if not isinstance(pruning, NodeWeights):
            raise TypeError(f"pruning must be NodeWeights, got {pruning!r}")
        prior = pruning_prior(self.tree_, map_pruning(self.tree_, self.weights_))
        level = self.delta if delta is None else delta
        return absolute_error_pruning(
            self.held_out_, pruning, prior, level, voting=self._get_voting()
        )

    def _certify_intervals(self, coverage: float, delta: float) -> tuple[Certificate | None, ...]:
        if self.widths != "leaf":
            return super()._certify_intervals(coverage, delta)
        scores, drawn = self.conformity_scores_, get_sampling_facts(self.certificate_)
        regions = [*map(str, range(len(scores.mass)))]
        return scores.certificates("leaf_band", coverage, delta, regions, **drawn)
