"""A tree classifier with a certificate: an upper bound on its error on new rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import astuple, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.baseline import compute_class_baseline
from certree.certificates.certificate import (
    CERTIFICATE_FIELDS,
    FULL_CERTIFICATE_FIELD,
    Certificate,
)
from certree.certificates.guarantees import (
    Guarantees,
    TreeGuarantees,
    certify_fitted,
    delegate_to_guarantees,
)
from certree.certificates.model_selection import (
    PILOT,
    CurvePoint,
    Deploy,
    LabelledSelection,
    ModelSelection,
    SelectedModel,
    choose_train_fraction,
    get_fixed_train_size,
    select_labelled,
    select_model,
)
from certree.certificates.occam import compute_node_margins
from certree.certificates.row_order import compute_class_residuals, note_row_order
from certree.certificates.subsets.node_bounds import NodeBounds
from certree.certificates.trained_classes import TRAINED_CLASSES_FIELD, TrainedClasses
from certree.certificates.tree_calibration import TreeCalibrationSet
from certree.estimators.compact import map_to_smaller_tree
from certree.estimators.out_of_core_certified_trees import OutOfCoreCertifiedFit
from certree.estimators.out_of_core_trees import fit_out_of_core
from certree.estimators.pac_bayes import (
    PACBayesPosteriors,
    PACBayesTree,
    PACBayesTreeClassifier,
    make_voting,
)
from certree.estimators.small_tree import choose_small_alpha, shrink_tree
from certree.estimators.tree_vote import TreeVoteClassifier
from certree.estimators.tune import Candidate, GrownFold, Mixture, Objective, find_best_loss
from certree.grow.grower import grow_trees
from certree.grow.training_samples import MaxDepth
from certree.interface.arrays import Float64, Int32, check_nonnegative
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.formatting import format_bound
from certree.interface.formatting import format_quantity as format_quantity
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import get_n_threads
from certree.out_of_core.executors import Executor
from certree.out_of_core.time_split import TimeArguments
from certree.prunings.penalties import CostComplexity
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.folds import Indices
from certree.rows.out_of_core import is_out_of_core
from certree.rows.split import TrainCalibrationSplit, TrainCalibrationSplitter
from certree.rows.time_order import expect_no_row_times, has_dependent_rows
from certree.rows.training import Training, compute_mean_weight
from certree.stats import NodeStats
from certree.tree import Tree
from certree.votes import Kind, NodePredictions, Vote, Voting
from certree.weights.family import Scoring
from certree.weights.node_weights import NodeWeights

# Folds of the learning curve of the pilot; trees grow on two folds or, with the sets exchanged, on one.
_PILOT_FOLDS = 3
# Largest number below 1.
_MAX_TRAIN_SIZE = 1 - 2.0**-53
# How the training set chooses a posterior by default.
_POSTERIORS = PACBayesPosteriors()


def compute_learning_curve(
    folds: Iterable[tuple[list[GrownFold], list[tuple[int, int]]]], n: int
) -> list[CurvePoint]:
    """Compute the cross-validation error of pruned trees for training sets of several sizes.

    The trees are pruned by cost-complexity: a pruning (the tree after some nodes have become
    leaves) minimises the weight of its wrongly predicted training rows plus alpha, the price of a
    leaf, times its leaves. All folds of one size have the same alpha: the one with the smallest
    error on their validation rows.

    Parameters
    ----------
    folds : iterable of (list of GrownFold, list of (int, int))
        For each size of the training set: the tree and node statistics of each cross-validation
        fold, and the numbers of training and validation rows of each fold. A size without folds is
        skipped.
    n : int
        Number of rows of the whole fit.

    Returns
    -------
    list of CurvePoint
        For each size: the mean number of training rows of a fold as a fraction of n; the weight of
        the wrongly predicted validation rows as a fraction of the weight of all validation rows;
        and the number of validation rows of all folds together.
    """
    prunings, curve = Candidate(CostComplexity().family, Voting("mean")), []
    for grown, sizes in folds:
        if not grown:
            continue
        wrong = find_best_loss(Objective.for_candidate(grown, prunings, "error"))
        total = sum([float(fold.validation[0].sum()) for fold in grown])
        n_train, n_validation = map(sum, zip(*sizes, strict=True))
        curve.append(CurvePoint(n_train / len(sizes) / n, wrong / total, n_validation))
    return curve


def _sum_sample_weights(
    rows: TreeCalibrationSet, sample_weight: Float64 | None
) -> NodeStats | None:
    """Sum up the sample weights of the calibration rows by node and class, to choose a posterior.

    The certificate does not use these sums: it counts every row, or group, once. rows: leaf and
    class of each calibration row in a tree; sample_weight: weight of each of these rows, (n,); in a
    group it is divided by the group's number of rows. Return the sums as `NodeStats`, whose unit of
    weight is the mean weight of a row (or of a group); None if `sample_weight` is None, so that
    numbers of rows serve.
    """
    if sample_weight is None:
        return None
    weight = sample_weight if rows.weight is None else sample_weight * rows.weight
    unit = math.fsum(weight) / rows.n
    return rows.sum_by_class(rows.tree, rows.grown, rows.leaf, weight, unit)


def _read_calibration(
    stored: StoredState, name: str, model: CertifiedTreeClassifier
) -> TreeCalibrationSet:
    """Return the calibration set that a model file holds; it is not compared with the model yet.

    stored, name: the content of the file, and its section of the calibration set. model: the model
    that is restored, with its tree and certificate.
    """
    return TreeCalibrationSet.from_stored(
        stored.get_section(name),
        tree=model.tree_,
        grown=NodeStats.from_stored(stored.get_section("grown")),
        near_copies=model.certificate_.near_copies,
        period=model.certificate_.period,
    )


@copy_descriptions_from(PACBayesTreeClassifier)
class CertifiedTreeClassifier(PACBayesTree, TreeVoteClassifier):
    """A tree classifier with a certificate: an upper bound on its error on new rows.

    The rows are split at random into a training set and a calibration set. The tree is grown on the
    training set. A pruning is this tree after some of its nodes have become leaves; all prunings
    vote, with posterior weights, as in `PACBayesTreeClassifier`. The calibration set bounds the
    error of that vote, or of another vote whose weights it chooses. The bound holds with
    probability ``1 - delta`` over the draw of the rows, for every distribution. It needs no test
    set and no assumption about the model.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of impurity; "kd": splits at
        medians; "dyadic": splits at midpoints; or a grower object. A `Grid` halves a box that is
        given without the rows, so there is no training set: all rows are calibration rows. They
        choose the posterior over all prunings with all labels of their leaves, and certify its
        vote.
    train_size : "auto" or float, default="auto"
        Fraction of the rows, or groups, in the training set. "auto": one of 35, 50, 65, 75 and 85
        %, for which a learning curve predicts the lowest bound; it comes from cross-validation in a
        first training set of 35 % of the rows. Not used with `Grid`.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    selection : {"best", "training", "vote"}, default="best"
        Which vote predicts. "best": the vote with posterior weights by the training set or the one
        with weights by the calibration set, whichever has the lower bound. "training": always the
        one by the training set, whose decision thresholds can be certified. "vote": always the one
        by the calibration set. A `Grid` has no training set, and its only vote predicts.
    posteriors : {"bound", "cv"} or PACBayesPosteriors, default="bound"
        How the posterior by the calibration set is chosen. "bound": of all weights ``prior *
        exp(-lambda * errors)``, those of the lambda with the lowest bound. "cv": with the inverse
        temperatures that cross-validation in the training set chooses. A `PACBayesPosteriors`
        object sets the cross-validation for both votes.
    vote : {"mean", "majority"} or Voting, default="mean"
        How a pruning votes: "mean" by the class frequencies of the leaf that a row reaches,
        "majority" for its most frequent class; see `PACBayesTreeClassifier`.
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation in the training set. An integer is the number of random folds,
        stratified by class; otherwise as in scikit-learn; None: 5 folds.
    preprocessor : transformer or None, default=None
        A transformer that is fitted on the training set and then applied to all rows.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        How rows with equal features and class are treated. "genuine": they are independent draws,
        and each counts. "copies": they are copies of one draw, as oversampling or a join produces;
        they count once in the certificate and have the sum of their weights in the tree. "refuse":
        raise an error. "auto": of n calibration rows, up to ``sqrt(n) / 4`` repeated rows count as
        genuine; up to 2 % of n count as errors whatever is predicted; more raise an error (for
        fewer than 40 rows a warning). The certificate states the assumption.
    max_leaf_nodes : int or None, default=None
        If it is set, a single tree with at most this number of leaves predicts instead of the vote.
        It is a pruning of the grown tree by cost-complexity with Gini impurity; cross-validation in
        the training set chooses alpha, the price of a leaf. The calibration set certifies it and,
        as `selection` says, may choose the classes of its leaves. None: all prunings of the tree
        vote. To limit growth instead, pass ``grower=Cart(max_leaf_nodes=64)``, or call
        ``set_params(grower__max_leaf_nodes=64)``, which turns the name of a grower into its object.
    {max_depth}
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features are categorical. "from_dtype": columns with a category, string or object
        dtype; otherwise a boolean mask, indices or names; None: no feature. See
        `PACBayesTreeClassifier`. Categories are those of the training set.
    {monotonic_cst}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; "balanced" counts the training set. The
        certificate ignores them.
    random_state : int, RandomState or None, default=None
        Seed of the train/calibration split, of the folds, and of random splits and features.
    {n_jobs} {verbose}

    Attributes
    ----------
    certificate_ : Certificate
        The bound on the error of this model on new rows.
    certificates_ : tuple of Certificate
        First the bounds of the vote by the training set and of the best vote by the calibration
        set, which hold together with probability ``1 - delta``; then further bounds on the latter
        vote, each of which holds by itself.
    full_certificate_ : Certificate or None
        If `max_leaf_nodes` has replaced the vote of all prunings by a single small tree, the bound
        of that vote, which holds by itself; else None.
    train_size_ : float
        Fraction of the rows, or groups, in the training set; 0 for a `Grid`.
    classes_ : ndarray of shape (K,)
        The classes, sorted: `classes` of `fit`, or those in y. A class that only occurs in the
        calibration set has probability 0 and is never predicted, as the calibration set must not
        choose the classes.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` recognises them among new rows; None if
        the model was loaded from a file that was saved without them.
    best_params_ : dict
        The inverse temperatures (factors of errors and of size in the log weight of a pruning),
        `lambda_error` and `lambda_penalty`, as set or chosen; a list if the posteriors of a mixture
        differ in the value.
    posteriors_ : list of str
        Names of the posteriors; see `PACBayesTreeClassifier`. ["bound"] for the vote by the
        calibration set with posteriors="bound", ["pruning"] with `max_leaf_nodes`.
    {mixture_weights_}
    tree_ : Tree
        The grown tree, or the single small tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    {weights_}
    vote_ : Vote
        Class probabilities by the vote, in the leaves of `tree_`; at its splits, the part of them
        by prunings that stop there or above.
    model_selection_ : ModelSelection, LabelledSelection or None
        The calibration set and the candidates for prediction that it can certify; None if the model
        was loaded from a file.
    calibration_ : TreeCalibrationSet or None
        The leaf and class of each calibration row, and class counts of the training set; None if
        the model was loaded from a file that was saved without them.
    guarantees_ : TreeGuarantees or None
        Guarantees that the calibration set gives beyond the certificate: for subsets of the rows,
        for prediction sets and for predictions with abstention. None if `calibration_` is None.
    preprocessor_ : transformer or None
        The fitted preprocessor.
    {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005. Nguyen and
    Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree import CertifiedTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    >>> model.train_size_, model.certificate_.n
    (0.5, 285)
    """

    stats_: NodeStats
    vote_: Vote
    certificate_: Certificate
    certificates_: tuple[Certificate, ...]
    full_certificate_: Certificate | None
    calibration_: TreeCalibrationSet | None
    # Classes that only the calibration set has; and which classes the training set has (None: all).
    _calibration_classes: NDArray[Any]
    _trained: TrainedClasses | None = None
    _takes_blocks = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        "train_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "selection": [StrOptions(set(get_args(Deploy)))],
        "posteriors": [StrOptions({"bound", "cv"}), PACBayesPosteriors],
        "vote": [StrOptions({"majority", "mean"}), Voting],
        "preprocessor": [HasMethods(["fit", "transform"]), None],
        "duplicates": [StrOptions(set(DUPLICATES))],
        "max_leaf_nodes": [Interval(Integral, 1, None, closed="left"), None],
    }
    del _parameter_constraints["scoring"]

    def __init__(
        self,
        grower: Any = "cart",
        *,
        train_size: Literal["auto"] | float = "auto",
        delta: float = 0.05,
        selection: Deploy = "best",
        posteriors: Literal["bound", "cv"] | PACBayesPosteriors = "bound",
        vote: Voting | Kind = "mean",
        cv: Any = 3,
        preprocessor: Any = None,
        duplicates: Duplicates = "auto",
        max_leaf_nodes: int | None = None,
        max_depth: MaxDepth = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        time: Any = None,
        gap: Any = 0,
        independent: bool = False,
    ) -> Self:
        """Grow the tree on the training set, and certify its vote by the calibration set.

        Each pruning votes, the tree after some nodes have become leaves, with its posterior weight.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value, and the grower decides where it goes. X may be out-of-core
            or distributed, as in `PACBayesTreeClassifier.fit`.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the tree and the vote; None: 1. Only ratios of weights matter,
            separately in the training and the calibration set. The certificate counts every row of
            positive weight once; rows of weight zero are left out.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, if rows of one group depend on each other. All
            rows of a group are in the training set or all in the calibration set, and the
            certificate is about new groups. Groups must have an order, such as numbers or strings.
        classes : array-like of shape (K,), or None
            The classes that may be predicted, if they are known without the rows; required with
            grower=Grid(...). None: the classes of the training set. A calibration row of another
            class counts as an error whatever is predicted.
        time : array-like of shape (n,), str or None
            Time of each row, numbers or dates with or without a time zone, or the name of such a
            column of X, which stays a feature. The latest rows are then the calibration set, as a
            fraction 1 - `train_size` of all (35 % with train_size="auto"). Rows of one time stay
            together, and a group counts by its latest row. Posteriors, penalties and rounds are
            chosen by the latest fifth of the training set. The certificate is about later rows.
            For files the name of a column; for Dask collections it may be a collection, too. None:
            rows have no times.
        gap : int or timedelta
            Rows to leave out between training and calibration set, and before the rows that
            validate, such as those whose labels would not be known yet: their number, as in
            scikit-learn's `TimeSeriesSplit`, or the time that they span. Only used with `time`.
        independent : bool
            True: calibration rows (or groups) are independent draws from one source, so that the
            usual guarantees hold. False: they may depend on earlier rows, and only the mean error
            is bounded, by a martingale. Only used with `time`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if is_out_of_core(X):
            order = TimeArguments.read(X, time, gap, independent)
            fit_blocks = partial(self._fit_blocks, classes=classes)
            arrays = fit_out_of_core(self, X, y, sample_weight, groups, order, fit_blocks)
            if arrays is None:
                return self
            X, y, sample_weight, groups, time = arrays
        random_state = check_random_state(self.random_state)
        depends_on_rows = self._get_grower().depends_on_rows
        if not depends_on_rows:
            self._check_grid(classes)
            expect_no_row_times(time, gap, what=f"grower={self.grower!r}")
        shuffled = deepcopy(random_state)

        def take_rows(train_size: float, is_pilot: bool = False) -> Training:
            # The random order is the same for every size: a larger training set contains a smaller one.
            return self._prepare_training(
                X,
                y,
                sample_weight,
                groups=groups,
                time=time,
                gap=gap,
                independent=independent,
                row_splitter=TrainCalibrationSplitter(
                    train_size, deepcopy(shuffled), self._splits_by_content(), is_pilot
                ),
                classes=classes,
            )

        if depends_on_rows:
            training = self._choose_training_set(take_rows, random_state, time is not None)
            self._fit_and_select(training, random_state)
        else:
            self.train_size_ = 0.0
            self._fit_labelled(take_rows(0.0), random_state)
        return self

    def _check_grid(self, classes: ArrayLike | None) -> None:
        """Raise ValueError if `classes` is None, or `max_leaf_nodes` is not, with a `Grid`.

        With grower=Grid(box) all rows are calibration rows, and there is no training set to find
        the classes or to choose a small tree. classes: the argument of `fit`.
        """
        if classes is None:
            raise ValueError(
                f"classes must be passed to fit with grower={self.grower!r}, got None: all "
                "rows are calibration rows, which must not choose the classes that may be predicted"
            )
        if self.max_leaf_nodes is not None:
            raise ValueError(
                f"max_leaf_nodes must be None with grower={self.grower!r}, which has no training set "
                "to choose the pruning: use another grower"
            )

    def _fit_blocks(
        self,
        executor: Executor,
        order: TimeArguments | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        random_state = check_random_state(self.random_state)
        fit, shuffled = (
            OutOfCoreCertifiedFit.from_executor(self, executor, order, classes),
            deepcopy(random_state),
        )
        train_size = get_fixed_train_size(self.train_size, order is not None)
        if train_size is None:
            pilot, pilot_split = fit.grow_pilot(PILOT, deepcopy(shuffled), random_state)
            curve, grouped = compute_learning_curve(*pilot), pilot_split.n_groups is not None
            train_size = choose_train_fraction(curve, pilot_split.n_units, self.delta, grouped)
        self.train_size_ = float(train_size)
        grown = fit.grow(self.train_size_, shuffled, random_state)
        stats: Any = grown.stats
        split, leaf, y, sample_weight = fit.route_calibration_set(grown)
        rows, units = TreeCalibrationSet.from_fit(split, grown.tree, stats, leaf, y), split.units
        del split, leaf, y  # the calibration set has copies
        self._select_and_certify(grown.posteriors, grown.folds, rows, sample_weight)
        self._note_row_order(units)

    def _choose_training_set(
        self,
        take_rows: Callable[..., Training],
        random_state: np.random.RandomState,
        has_times: bool,
    ) -> Training:
        """Choose the size of the training set, set `train_size_`, and split the rows by it.

        With train_size="auto" the rows are first split with a training set of 35 % of them (the
        pilot). A learning curve by cross-validation in it predicts the bound for 35, 50, 65, 75 and
        85 %, and the fraction with the lowest bound is chosen; see `choose_train_fraction` in
        `certificates.model_selection`.

        Parameters
        ----------
        take_rows : callable
            ``take_rows(train_size, is_pilot=False)`` splits the rows of the fit with this fraction
            in the training set, and returns them as `Training`. `is_pilot`: whether the rows will
            be split again, so that no search for near copies (calibration rows that almost equal
            training rows) is needed.
        random_state : RandomState
            Source of the folds of the learning curve, and of the seed of their trees.
        has_times : bool
            Whether rows are split by time, so that no error may choose the size.

        Returns
        -------
        Training
            All encoded rows of the fit; the attribute `split` has the indices of the training and
            of the calibration rows.
        """
        fixed = get_fixed_train_size(self.train_size, has_times)
        if fixed is not None:
            self.train_size_ = fixed
            return take_rows(fixed)
        pilot = take_rows(PILOT, is_pilot=True)
        curve = self._compute_pilot_curve(pilot, random_state)
        units = pilot.split.n_units
        self.train_size_ = choose_train_fraction(curve, units, self.delta, pilot.split.grouped)
        if self.train_size_ != PILOT:
            return take_rows(self.train_size_)
        return pilot.expect_few_near_copies(self.duplicates)

    def _compute_pilot_curve(
        self, training: Training, random_state: np.random.RandomState
    ) -> list[CurvePoint]:
        """Compute the learning curve of pruned trees by 3-fold cross-validation in a training set.

        Trees are grown on two of three folds, and on one of three.

        Parameters
        ----------
        training : Training
            All encoded rows of the fit, with their train/calibration split; only the training rows
            are used.
        random_state : RandomState
            Source of the folds, and of the seed of the trees.

        Returns
        -------
        list of CurvePoint
            The errors on the other fold or folds: for trees of one third, then of two thirds, of
            the training rows. Each point has the number of rows that a tree was grown on, as a
            fraction of all rows of the fit, the fraction of the validation rows that are wrong, and
            their number.
        """
        growing = training.train_subset or training
        rows = self._make_ranked_samples(growing, random_state)
        target, two_thirds = growing.target, growing.split_folds(_PILOT_FOLDS, random_state)
        sizes, n = [(len(fold.train), len(fold.validation)) for fold in two_thirds], len(two_thirds)
        one_third = [fold.swap() for fold in two_thirds]
        trees = grow_trees(self._get_grower(), rows, [*one_third, *two_thirds])
        leaves = [tree.find_leaves() for tree in trees]
        grown = self._compute_fold_stats([*one_third, *two_thirds], trees, leaves, target)
        exchanged = [(n_validation, n_train) for n_train, n_validation in sizes]
        folds = (grown[:n], exchanged), (grown[n:], sizes)
        return compute_learning_curve(folds, len(training.y))

    def _fit_and_select(self, training: Training, random_state: np.random.RandomState) -> None:
        """Grow the tree on the training set, certify by the calibration set, and set fitted attributes.

        A pruning is the tree with some nodes turned into leaves. training: features, class codes
        and weights of all rows, with their train/calibration split; random_state: source of the
        cross-validation folds, which choose the posterior over prunings in the training set, and of
        the grower's seed.
        """
        grown, posteriors, folds = self._grow_and_tune(
            training.train_subset or training, random_state
        )
        tree, n_threads = grown.encoded_tree, get_n_threads(self.n_jobs)
        leaf = tree.route(training.X, n_threads)
        leaf = grown.replace_training_leaves(tree, leaf, training.split.train)
        rows, sample_weight = self._collect_calibration_set(
            tree, leaf, training.y, training.weight, training.split
        )
        self._select_and_certify(posteriors, folds, rows, sample_weight)
        self._note_row_order(training.split.units)

    def _collect_calibration_set(
        self,
        tree: Tree,
        leaf: Int32,
        y: Int32,
        weight: Float64 | None,
        split: TrainCalibrationSplit,
    ) -> tuple[TreeCalibrationSet, Float64 | None]:
        """Collect the calibration set of a tree that was grown on the training set.

        Parameters
        ----------
        tree : Tree
            The tree that was grown on the training rows.
        leaf, y : ndarray of int32, shape (n,)
            Node number of the leaf that each of all n rows reaches, and class code of the row.
        weight : ndarray of float64, shape (n,), or None
            Weight of each row; None: 1.
        split : TrainCalibrationSplit
            Indices of the training and of the calibration rows among the n rows.

        Returns
        -------
        rows : TreeCalibrationSet
            Leaf and class code of the calibration rows, and the weighted class counts of the
            training rows in all nodes, which are 0 if there are no training rows.
        sample_weight : ndarray of float64, shape (n_calibration,), or None
            Weight of each calibration row; None: 1.
        """
        grown, calibration = (
            (leaf[rows], y[rows], None if weight is None else weight[rows])
            for rows in (split.train, split.calibration)
        )
        # Without training rows nothing is counted, and any unit will do.
        unit = compute_mean_weight(grown[2]) if len(split.train) else 1.0
        stats: Any = self._compute_node_stats(tree, *grown, unit)
        leaf, y, sample_weight = calibration
        return TreeCalibrationSet.from_fit(split, tree, stats, leaf, y), sample_weight

    def _select_and_certify(
        self,
        posteriors: Mixture,
        folds: list[GrownFold],
        rows: TreeCalibrationSet,
        sample_weight: Float64 | None,
    ) -> None:
        """Choose what predicts, certify it by the calibration rows, and set all fitted attributes.

        A vote of all prunings predicts, or a single pruning if `max_leaf_nodes` is set. A pruning
        is the tree after some of its nodes have become leaves.

        Parameters
        ----------
        posteriors : Mixture
            The inverse temperatures that cross-validation has chosen: the factors by which errors
            and size lower the weight of a pruning.
        folds : list of GrownFold
            The cross-validation folds of the training set. They choose alpha, the price of a leaf,
            if `max_leaf_nodes` is set.
        rows : TreeCalibrationSet
            The calibration set in the tree that was grown on the training set.
        sample_weight : ndarray of float64, shape (n,), or None
            Weight of each calibration row. It is used only to choose posteriors (distributions over
            the prunings), as certificates count each row once; None: 1.
        """
        tree = rows.tree
        posterior = partial(posteriors.compute_posterior, self._get_candidates(), tree)
        by_bound = isinstance(self.posteriors, str) and self.posteriors == "bound"
        standing = self._make_selection(posterior, rows, sample_weight)
        selected = select_model(
            standing, [] if by_bound else [posterior(standing.stats)], self.selection
        )
        if self.max_leaf_nodes is None:
            self._set_selected(
                tree, selected, posteriors if selected.lambda_error is None else None
            )
            return
        full, alpha = selected.certificate, choose_small_alpha(folds, get_n_threads(self.n_jobs))
        small, counts, pruning, _ = shrink_tree(
            tree, rows.grown, self.max_leaf_nodes, alpha, self._get_voting()
        )
        grown: Any = counts
        below = rows.move_to_tree(small, grown, map_to_smaller_tree(small, tree))
        standing = self._make_selection(lambda _: pruning, below, sample_weight)
        selected = select_model(standing, [pruning], self.selection)
        self._set_selected(small, selected, Mixture.from_single("pruning", [0.0, 0.0]), full)

    def _needs_cross_validation(self) -> bool:
        """Return whether the fit needs cross-validation folds in the training set.

        The folds choose the inverse temperatures that are None, and, if `max_leaf_nodes` is set,
        alpha, the price of a leaf. Inverse temperatures are the parameters that multiply the errors
        and the size of a pruning (the tree with some nodes turned into leaves) in its log weight.
        """
        return super()._needs_cross_validation() or self.max_leaf_nodes is not None

    def _make_selection(
        self,
        posterior: Callable[[NodeStats], NodeWeights],
        rows: TreeCalibrationSet,
        sample_weight: Float64 | None,
    ) -> ModelSelection:
        """Collect the calibration rows and the parameters of the votes that may predict.

        `select_model` takes the result, computes bounds on the errors of these votes, and chooses
        one. Also set `model_selection_` to the result, and `calibration_` to the calibration rows.

        Parameters
        ----------
        posterior : callable
            Takes class counts of the training rows in the nodes (NodeStats). Returns the weights of
            the prunings that the training set has chosen: a posterior over all of them, or weight 1
            for a single one.
        rows : TreeCalibrationSet
            The calibration rows in the tree, and the class counts of the training rows.
        sample_weight : ndarray of float64, shape (n,), or None
            Weight with which each calibration row shapes posteriors; None: 1.

        Returns
        -------
        ModelSelection
            The calibration rows, the posterior by the training set, and the parameters of the votes
            by the calibration set, such as delta and the way of voting.
        """
        standing = ModelSelection(
            rows.held,
            posterior(rows.grown),
            self.delta,
            self._get_voting(),
            _sum_sample_weights(rows, sample_weight),
        )
        self.model_selection_: ModelSelection | LabelledSelection | None = standing
        self.calibration_ = rows.with_selection(standing)
        return standing

    def _fit_labelled(self, training: Training, random_state: np.random.RandomState) -> None:
        """Fit to rows that are all calibration rows, with a tree that does not depend on them.

        The rows choose the posterior over all prunings (the tree after some nodes have become
        leaves) with all class labels of their leaves, and certify its vote. Fitted attributes are
        set, except `train_size_`, which the caller sets, and those that `_prepare_training` has set.

        The grower is a `Grid`, which halves a box that was given without the rows. training:
        features, class codes and weights of the rows of the fit; random_state: source of the
        grower's seed.
        """
        tree = self._get_grower().grow(self._make_training_samples(training, random_state))
        leaf = tree.route(training.X, get_n_threads(self.n_jobs))
        rows, sample_weight = self._collect_calibration_set(
            tree, leaf, training.y, training.weight, training.split
        )
        weighted = _sum_sample_weights(rows, sample_weight)
        self.model_selection_ = LabelledSelection(rows.held, self.delta, weighted)
        self.calibration_ = rows.with_selection(self.model_selection_)
        self._set_selected(tree, select_labelled(self.model_selection_), None)
        self._note_row_order(training.split.units)

    def _validate_params(self) -> None:
        super()._validate_params()
        self._get_posterior_parameters()._validate_params()

    def _get_posterior_parameters(self) -> PACBayesPosteriors:
        return _POSTERIORS if isinstance(self.posteriors, str) else self.posteriors

    def _get_scoring(self) -> Scoring:
        return self._get_posterior_parameters().scoring

    def _get_string_converters(self) -> dict[str, Callable[[Any], Any]]:
        return {**super()._get_string_converters(), "posteriors": {"cv": PACBayesPosteriors()}.get}

    def _get_voting(self) -> Voting:
        return make_voting(self.vote, self._get_monotonic_signs())

    def _set_selected(
        self,
        tree: Tree,
        selected: SelectedModel,
        posteriors: Mixture | None,
        full: Certificate | None = None,
    ) -> None:
        """Set the fitted attributes from the selected predictor.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        tree : Tree
            The tree that predicts: the grown one, or a small one.
        selected : SelectedModel
            The vote or pruning that was selected: its class counts and weights of the nodes, its
            vote in each node, the bound on its error, and those of the votes that it was selected
            from.
        posteriors : Mixture or None
            The inverse temperatures (factors of errors and of size in the log weight of a pruning)
            that cross-validation has chosen. None: the single one with the lowest bound,
            `selected.lambda_error`.
        full : Certificate or None
            If `tree` is a small tree, the bound of the vote of all prunings of the grown tree; else
            None.
        """
        if posteriors is None:
            posteriors = Mixture.from_single("bound", [selected.lambda_error or 0.0, 0.0])
        self._set_posteriors(posteriors)
        stats, ballot = selected.stats, selected.ballot
        self.classes_, self._trained = TrainedClasses.merge_classes(
            self.classes_, self._calibration_classes
        )
        if self._trained is not None:
            self.n_classes_ = len(self.classes_)
            stats = self._trained.expand_stats(stats)
            ballot = Vote(self._trained.expand_columns(ballot.score))
        self._set_fitted(tree, stats, selected.weights, ballot)
        self._set_certificates(selected, full)

    def _set_certificates(self, selected: SelectedModel, full: Certificate | None) -> None:
        """Set `certificate_`, `certificates_` and `full_certificate_`.

        Each also gets the error of always predicting the most frequent class of the calibration
        set, `calibration_`. A pruning is the tree with some nodes turned into leaves. selected: the
        vote or pruning that was selected, with its certificate and those of its alternatives; full:
        the certificate of the vote of all prunings, if a single small tree predicts instead, or
        None.
        """
        rows, codes = self._get_calibration_classes()
        baseline = compute_class_baseline(codes, self.classes_, rows.weight)
        alternatives = [
            replace(one, is_single_tree=full is not None) for one in selected.alternatives
        ]
        place = [one is selected.certificate for one in selected.alternatives].index(True)
        self.certificates_ = tuple(
            replace(one, baseline=baseline) for one in (*alternatives, *selected.others)
        )
        self.certificate_ = self.certificates_[place]
        self.full_certificate_ = None if full is None else replace(full, baseline=baseline)

    def _get_calibration_classes(self) -> tuple[TreeCalibrationSet, Int32]:
        """Return the calibration set of the fit, and the class of each calibration row, (n,) int32.

        A class is its index in `classes_`.
        """
        rows, trained = self.calibration_, self._trained
        assert rows is not None  # The fit has just collected them.
        return rows, rows.y if trained is None else trained.class_positions[rows.y]

    def _note_row_order(self, units: Indices | None) -> None:
        """Test whether errors depend on the order of the rows, and note it in the certificates.

        units: number of the unit of each calibration row in the order of the table, (n,); None: the
        order is not known. A unit is a group, or a set of equal rows.
        """
        rows, codes = self._get_calibration_classes()
        score, leaf = self.vote_.score, rows.leaf
        note_row_order(
            self,
            units,
            score.shape[1],
            lambda some: compute_class_residuals(codes[some], score[leaf[some]]),
        )

    def _predict_nodes(self, tree: Tree, stats: Any) -> Any:
        trained = self._trained
        if trained is None:
            return super()._predict_nodes(tree, stats)
        # Smoothing and monotonic constraints are about the classes of the training set alone.
        node_predictions: Any = super()._predict_nodes(tree, trained.collapse_stats(stats))
        label = (
            None
            if node_predictions.label is None
            else trained.class_positions[node_predictions.label]
        )
        values = (
            None
            if node_predictions.values is None
            else trained.expand_columns(node_predictions.values)
        )
        return NodePredictions(label, values, self._output_groups.sizes[0])

    def _get_trained_vote(self) -> Vote:
        """Return `vote_` without the columns of classes that only the calibration set has.

        Those columns are zeros. The result holds scores, (m, K'), for the m nodes of `tree_` and
        the K' classes of the training set, in the order of `classes_`. It is `vote_` itself if
        there are no such classes.
        """
        trained = self._trained
        return self.vote_ if trained is None else Vote(trained.collapse_columns(self.vote_.score))

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        **PACBayesTree._stored_fields,
        **CERTIFICATE_FIELDS,
        "full_certificate": FULL_CERTIFICATE_FIELD,
        "is_trained": TRAINED_CLASSES_FIELD,
        "train_size": StoredField.value("train_size_", float, 0, _MAX_TRAIN_SIZE),
        "calibration": StoredField("calibration_", _read_calibration, default=None),
    }

    def __stored__(self) -> dict[str, Any]:
        """Return what a model file holds of the fit, as entries by name.

        They are those of a tree vote without certificate (its tree, weights, vote and classes), and
        the certificates, "train_size", "calibration" and "grown" (class counts of the training
        rows): arrays, records with a method `to_stored`, numbers and lists.
        """
        rows, stored = self.calibration_, super().__stored__()
        return stored if rows is None else {**stored, "grown": rows.grown}

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the calibration set against the certificate and the vote.

        Raise ValueError if they do not fit together. stored: the content of the model file.
        """
        super()._finish_restore(stored)
        self.model_selection_ = None
        rows, trained, certificate = self.calibration_, self._trained, self.certificate_
        if rows is None:
            return
        held, label = rows.held, self._get_trained_vote().label
        n_codes = self._output_groups.sizes[0] if trained is None else trained.n_codes
        if rows.grown.n_classes != n_codes:
            raise DamagedModelError(
                f"the model file's grown must count {n_codes} classes, got {rows.grown.n_classes}"
            )
        if trained is not None and n_codes + rows.n_others != len(trained.class_positions):
            raise DamagedModelError(
                f"the model file's is_trained must have {n_codes + rows.n_others} entries, one for "
                f"each class of training and calibration set, got {len(trained.class_positions)}"
            )
        is_same_set = (held.grouped, held.n) == (certificate.grouped, certificate.n)
        if not is_same_set or not math.isclose(
            held.compute_error(label), certificate.risk, abs_tol=1e-9
        ):
            raise DamagedModelError(
                "the model file's calibration set must have the number of rows (or groups) and the "
                f"error of its certificate, {certificate.n} and {certificate.risk:g}, got {held.n} and "
                f"{held.compute_error(label):g}"
            )
        if not math.isfinite(rows.structure.log_mass(label)):
            raise DamagedModelError(
                "the model file's grown and calibration.splits must give the labels of the tree's "
                "leaves a positive prior probability"
            )

    @property
    @snapshot_method
    def guarantees_(self) -> TreeGuarantees | None:
        """Guarantees that the calibration set gives beyond the certificate.

        They are for subsets of the rows (by class, group or leaf), for prediction sets, and for
        predictions with abstention. None if the model was loaded from a file that was saved without
        its calibration set.
        """
        check_is_fitted(self)
        rows = self.calibration_
        if rows is None:
            return None
        return TreeGuarantees(
            classifier=self,
            certificate=self.certificate_,
            y=rows.y if self._trained is None else self._trained.class_positions[rows.y],
            predicted=self.vote_.label[rows.leaf],
            given=rows.given,
            n_given=rows.n_given,
            is_worst=rows.is_worst,
            rows=rows,
            ballot=self._get_trained_vote(),
            fixed=rows.splits is not None and self.certificate_ is self.certificates_[0],
            numbers=self._number_rules(),
        )

    certify = certify_fitted
    conditional_guarantees = delegate_to_guarantees(TreeGuarantees.conditional_guarantees)
    predict_set = delegate_to_guarantees(TreeGuarantees.predict_set)
    certify_set = delegate_to_guarantees(TreeGuarantees.certify_set)
    selective_certificates = delegate_to_guarantees(Guarantees.selective_certificates)
    certify_pruning = delegate_to_guarantees(TreeGuarantees.certify_pruning)
    draw_pruning = delegate_to_guarantees(TreeGuarantees.draw_pruning)

    def _predicts_by_one_pruning(self) -> bool:
        return self.full_certificate_ is not None

    def _bound_nodes(self) -> NodeBounds:
        """Bound the error on new rows in each node of `tree_`.

        The error in a node is that of `predict` on the new rows that reach it. The bounds hold
        together with probability 1 - `delta`. The result has the reason instead if there are none:
        the model was loaded from a file without its calibration set, the fit had groups, or there
        are fewer than 10 calibration rows.
        """
        guarantees = self.guarantees_
        if guarantees is None:
            reason = "the model file does not hold the calibration set"
            return NodeBounds(None, self._number_rules(), reason)
        return guarantees.bound_nodes()

    @snapshot_method
    def predict_selective(
        self, X: ArrayLike, margin: float
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Predict, and decide for which rows the vote is clear enough not to abstain.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.
        margin : float
            Smallest difference between the probabilities of the first and the second class of a row
            with which the model does not abstain.

        Returns
        -------
        label : ndarray of shape (n,)
            Predicted class of each row, also where the model abstains.
        answered : ndarray of bool, shape (n,)
            False where the model abstains.

        Raises
        ------
        ValueError
            If the margin is negative or not finite.
        """
        check_is_fitted(self)
        smallest = check_nonnegative("margin", margin)
        leaf = self._find_leaves(X)
        label: NDArray[Any] = self.classes_.take(self.vote_.label.take(leaf))
        return label, compute_node_margins(self.vote_)[leaf] >= smallest

    @snapshot_method
    def report(self) -> str:
        """Describe the fitted tree and its certificate in sentences.

        Returns
        -------
        str
            The size of the tree, the certificate, and the three terms of the bound: observed error,
            complexity and confidence.
        """
        check_is_fitted(self)
        size = self._describe_size()
        if not self._get_grower().depends_on_rows:
            size += " It halves the given box, and is the same whatever the rows are."
        parts = self.certificate_.parts
        named = zip(("observed error", "complexity", "confidence"), astuple(parts), strict=True)
        terms = ", ".join(f"{100 * value:.1f} % {name}" for name, value in named)
        text = f"{size} {self.certificate_} The bound is made of {terms}."
        return f"{text}{self._describe_full_certificate()}{self._describe_thresholds()}"

    def _describe_size(self) -> str:
        """Return a sentence about the number of leaves of `tree_`, such as "A tree of 90 leaves".

        If all prunings vote, the sentence also has the mean of their numbers of leaves, weighted by
        their posterior weights. A pruning is the tree with some nodes turned into leaves.
        """
        leaves = self.get_n_leaves()
        if self.full_certificate_ is not None:
            return f"One tree of {format_quantity(leaves, 'leaf', 'leaves')}."
        mean = self.weights_.expected_leaves
        return f"A tree of {leaves:,} leaves; its prunings have {mean:,.1f} leaves on average."

    def _describe_full_certificate(self) -> str:
        """Return a sentence that compares the error bounds of a small tree and of the full vote.

        They are those of `certificate_` and `full_certificate_`. The full vote is that of all
        prunings of the grown tree (the tree with some nodes turned into leaves). The sentence
        begins with a space. Return "" if `max_leaf_nodes` is None, so that all prunings vote.
        """
        full, small = self.full_certificate_, self.certificate_
        if full is None:
            return ""
        observed, bound = 100 * (small.risk - full.risk), 100 * (small.bound - full.bound)
        return (
            f" The vote of all prunings of the whole tree errs on at most {format_bound(full.bound)} "
            f"(observed: {100 * full.risk:.1f} %): one small tree costs {observed:.1f} points of the "
            f"observed error and {bound:.1f} of the bound."
        )

    def _describe_thresholds(self) -> str:
        """Return a sentence that recommends `guarantees_.thresholds()` if costs differ by class.

        The sentence begins with a space. A threshold is the least probability of the second class
        for which it is predicted. Return "" if thresholds cannot be certified: with more than two
        classes, with groups, without a calibration set, or if it has chosen the vote.
        """
        if len(self.classes_) != 2 or self._trained is not None:
            return ""
        guarantees = self.guarantees_
        if guarantees is None or not guarantees.fixed or has_dependent_rows(self.certificate_):
            return ""
        return (
            " If errors of the two classes cost differently, guarantees_.thresholds() certifies every "
            "threshold and finds the cheapest."
        )
