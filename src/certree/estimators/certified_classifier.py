"""The classifier whose fit certifies: some rows grow the tree, the others weigh and bound the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import asdict, astuple, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.certificates.calibration_set import CertifyingRows, HeldOut, count_calibration_rows
from certree.certificates.certificate import (
    Certificate,
    restore_certificates,
    restore_full_certificate,
    serialize_certificates,
)
from certree.certificates.guarantees import (
    CalibrationSamples,
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
    select_labelled,
    select_model,
)
from certree.certificates.occam import compute_node_margins
from certree.certificates.subsets.families import CertificateFamily
from certree.certificates.trained_classes import TrainedClasses
from certree.estimators.certified_on_parts import CertifiedFitOfParts
from certree.estimators.compact import map_to_smaller_tree
from certree.estimators.pac_bayes import PACBayesPosteriors, PACBayesTree, make_voting
from certree.estimators.small_tree import choose_small_alpha, shrink_tree
from certree.estimators.tree_vote import TreeVoteClassifier
from certree.estimators.tune import Candidate, GrownFold, Mixture, Objective, find_best_loss
from certree.grow.grower import grow_trees
from certree.grow.training_samples import MaxDepth
from certree.interface.arrays import Float64, Int32, check_nonnegative
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.formatting import format_bound
from certree.interface.formatting import format_quantity as format_quantity
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads
from certree.parts.executors import Executor
from certree.prunings.penalties import CostComplexity
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.out_of_core import is_out_of_core
from certree.rows.split import TrainCalibrationSplit, TrainCalibrationSplitter
from certree.rows.training import Training, compute_mean_weight
from certree.stats import NodeStats
from certree.tree import Tree
from certree.votes import Ballots, Kind, Vote, Voting
from certree.weights.family import Scoring
from certree.weights.node_weights import NodeWeights

# Of the learning curve of the pilot; at a third of its rows each fold grows alone.
_PILOT_FOLDS = 3
# Less than all rows.
_MOST_GROW = 1 - 2.0**-53
# How the training samples choose a posterior where nothing else is said.
_POSTERIORS = PACBayesPosteriors()


def compute_learning_curve(
    folds: Iterable[tuple[list[GrownFold], list[tuple[int, int]]]], n: int
) -> list[CurvePoint]:
    """Errors of prunings by folds of several sizes, of some of n rows.

    folds: those of a size, and how many rows have grown and judge each.
    """
    prunings, curve = Candidate(CostComplexity().family, Voting("mean")), []
    for grown, sizes in folds:
        if not grown:
            continue
        wrong = find_best_loss(Objective.for_candidate(grown, prunings, "error"))
        total = sum([float(fold.validation[0].sum()) for fold in grown])
        grew, judged = map(sum, zip(*sizes, strict=True))
        curve.append(CurvePoint(grew / len(sizes) / n, wrong / total, judged))
    return curve


class CertifiedTreeClassifier(PACBayesTree, TreeVoteClassifier):
    """A tree with a certificate on its error on new rows.

    Some of the rows grow the tree and let its prunings vote, as in `PACBayesTreeClassifier`; the others
    bound the error of that vote, or of another one by which they improve on it. The bound holds with
    probability ``1 - delta`` over the draw of the rows, whatever their distribution is: it needs no
    test set and no assumption on the model.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeClassifier`. With `Grid` no rows grow it: all of them
        weigh labelled prunings and certify the vote.
    train_size : "auto" or float, default="auto"
        Share of the rows, or groups, that grow and label the tree. "auto": as many as the learning
        curve of a pilot of 35 % of them lets expect the lowest bound from, at most 85 %. `Grid` does
        not read it.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    selection : {"best", "vote"}, default="best"
        What predicts: the vote of the training samples or one by the calibration samples, whichever has
        the lower bound, or the latter in any case.
    posteriors : {"bound", "cv"} or PACBayesPosteriors, default="bound"
        How the posterior over prunings of the calibration samples is chosen: by the bound along the
        path of Gibbs posteriors; by cross-validation on the training samples, like theirs; or so with
        temperatures of one's own, for both.
    vote : {"mean", "majority"} or Voting, default="mean"
        How a pruning votes; see `PACBayesTreeClassifier`.
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation among the training samples; see `PACBayesTreeClassifier`.
    preprocessor : transformer or None, default=None
        FittedVote on the rows that grow the tree, and applied to all, before anything else.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        What rows are that are alike, class included. "genuine": draws of their own, each of which
        counts. "copies": made of one row, by oversampling or a join: one draw, which has the sum of
        their weights in the tree, and counts once where it certifies. "auto": of n calibration samples
        up to ``sqrt(n) / 4`` that repeat other rows are taken for draws. Up to 2 % of n count as
        the worst case, an error whatever is predicted. More are refused; of fewer than 40 rows it warns
        instead. "refuse" refuses any. The certificate says what is assumed.
    max_leaf_nodes : int or None, default=None
        If given, what predicts is one tree of at most so many leaves, a pruning of the tree that was
        grown. The training samples choose it by cost-complexity and Gini impurity, and its price of a
        leaf by cross-validation; the calibration samples certify it, and may name its leaves anew, as
        `selection` says. None: all prunings of the whole tree vote. ``grower__max_leaf_nodes`` limits
        growth instead.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories, learned from the training samples; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        Constraints on features; see `PACBayesTreeClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; "balanced" by the training samples. A certificate
        does not read them.
    random_state : int, RandomState or None, default=None
        Decides the order of the rows, of which the first grow, the folds, random cuts and features.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    certificate_ : Certificate
        What is promised about the error on new rows.
    certificates_ : tuple of Certificate
        That of the vote of the training samples and the lowest of one by the calibration samples, which
        hold together, and further ones of the latter, each by itself.
    full_certificate_ : Certificate or None
        What is promised, by itself, of the vote of all prunings of the whole tree, if `max_leaf_nodes`
        has put one of at most so many leaves in its place; else None.
    train_size_ : float
        Share of the rows, or groups, that have grown the tree; 0 in a `Grid`.
    classes_ : ndarray of shape (K,)
        The classes: those given, or all that y has. One that only calibration samples have has
        probability 0 and is never predicted, as calibration samples must not choose what may be.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them; None if loaded from a file that
        was saved without.
    best_params_ : dict
        `lambda_error` and `lambda_penalty`, given or chosen; a list if it is not the same in all
        posteriors of a mixture.
    posteriors_ : list of str
        See `PACBayesTreeClassifier`; ["bound"] if the bound chose a vote by the calibration samples,
        ["pruning"] if `max_leaf_nodes` is given.
    mixture_weights_ : list of float
        Share of each posterior in the vote; 1 for a single one.
    tree_ : Tree
        The tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        The distribution over its prunings that predicts.
    vote_ : Vote
        The outcome of the vote in every cell.
    model_selection_ : ModelSelection, LabelledSelection or None
        The rows that certify, and what may be certified by them, by the classes that may be predicted;
        None if loaded from a file.
    calibration_ : CalibrationSamples or None
        The calibration samples one by one, and what the training samples said; None if loaded from a
        file that was saved without.
    guarantees_ : TreeGuarantees or None
        All that these rows guarantee, which the methods below ask; None if there are none.
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
    calibration_: CalibrationSamples | None
    # Classes that calibration samples alone have; and which ones training samples have, None: all.
    _calibration_classes: NDArray[Any]
    _trained: TrainedClasses | None = None
    _takes_blocks = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        "train_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "selection": [StrOptions({"best", "vote"})],
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
    ) -> Self:
        """Grow the tree on some of the rows, let its prunings vote by the others, and certify.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value and goes where the grower sends it. They may lie
            elsewhere, as those of `PACBayesTreeClassifier` may.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in the tree and the vote, relative to the mean weight of those that grow
            the tree, or of those that weigh its prunings. A certificate counts every row of positive
            weight once; a row of weight zero is as if absent.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Whole
            groups grow or weigh, and the certificate is about new groups. They are dealt by their
            order, which is that of their values: of categories, too, and wherever rows lie.
        classes : array-like of shape (K,), or None
            The classes that may be predicted, known without the rows; needed with a `Grid`. None:
            those of the training samples. A calibration sample of another class is an error whatever
            is predicted.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if is_out_of_core(X):
            if classes is not None:
                raise ValueError("classes takes rows in memory, got X that lies elsewhere")
            few = self._fit_out_of_core(X, y, sample_weight, groups)
            if few is None:
                return self
            X, y, sample_weight, groups = few
        random_state = check_random_state(self.random_state)
        depends_on_rows = self._get_grower().depends_on_rows
        if classes is None and not depends_on_rows:
            raise ValueError(
                "fit must be given classes= where no row grows the tree, as rows that certify "
                "must not choose what may be predicted"
            )
        if self.max_leaf_nodes is not None and not depends_on_rows:
            raise ValueError(
                "max_leaf_nodes takes a grower whose rows choose the pruning, got "
                f"grower={self.grower!r}"
            )
        shuffled = deepcopy(random_state)

        def dealt(share: float, is_pilot: bool = False) -> Training:
            # The same order for every share: more training samples are those of fewer, and others.
            return self._prepare_training(
                X,
                y,
                sample_weight,
                groups=groups,
                row_splitter=TrainCalibrationSplitter(
                    share, deepcopy(shuffled), self._splits_by_content(), is_pilot
                ),
                classes=classes,
            )

        if depends_on_rows:
            self._fit_and_select(self._choose_training_set(dealt, random_state), random_state)
        else:
            self.train_size_ = 0.0
            self._fit_labelled(dealt(0.0), random_state)
        return self

    def _fit_blocks(self, parts: Executor) -> None:
        random_state = check_random_state(self.random_state)
        dealt, shuffled = CertifiedFitOfParts.of(self, parts), deepcopy(random_state)
        if isinstance(self.train_size, str):
            told, sides = dealt.pilot(PILOT, deepcopy(shuffled), random_state)
            curve, grouped = compute_learning_curve(*told), sides.n_groups is not None
            share = choose_train_fraction(curve, sides.n_units, self.delta, grouped)
        else:
            share = self.train_size
        self.train_size_ = float(share)
        grown = dealt.grown(self.train_size_, shuffled, random_state)
        stats: Any = grown.stats
        rows = CertifyingRows(*dealt.certifying(grown), grown=stats)
        self._select_and_certify(grown.tree, grown.posteriors, grown.folds, rows)

    def _choose_training_set(
        self, dealt: Callable[..., Training], random_state: np.random.RandomState
    ) -> Training:
        """Reveal rows to the tree until it is time to stop; see `certificates.model_selection`."""
        if not isinstance(self.train_size, str):
            self.train_size_ = float(self.train_size)
            return dealt(self.train_size_)
        pilot = dealt(PILOT, is_pilot=True)
        curve = self._compute_pilot_curve(pilot, random_state)
        units = pilot.split.n_units
        self.train_size_ = choose_train_fraction(curve, units, self.delta, pilot.split.grouped)
        if self.train_size_ != PILOT:
            return dealt(self.train_size_)
        return pilot.expect_few_near_copies(self.duplicates)

    def _compute_pilot_curve(
        self, training: Training, random_state: np.random.RandomState
    ) -> list[CurvePoint]:
        """Errors of the training samples' prunings at one and two thirds of these rows."""
        growing = training.train_subset or training
        rows = self._make_training_samples(growing, random_state)
        target, two_thirds = growing.target, growing.split_folds(_PILOT_FOLDS, random_state)
        sizes, n = [(len(one.train), len(one.validation)) for one in two_thirds], len(two_thirds)
        one_third = [fold.swap() for fold in two_thirds]
        trees = grow_trees(self._get_grower(), rows, [*one_third, *two_thirds])
        n_threads = get_n_threads(self.n_jobs)
        leaves = [tree.route(rows.X, n_threads) for tree in trees]
        every = self._compute_fold_stats([*one_third, *two_thirds], trees, leaves, target)
        turned = [(judged, grew) for grew, judged in sizes]
        folds = (every[:n], turned), (every[n:], sizes)
        return compute_learning_curve(folds, len(training.y))

    def _fit_and_select(self, training: Training, random_state: np.random.RandomState) -> None:
        """Grow and propose on one side, weigh and certify on the other."""
        tree, posteriors, folds = self._grow_and_tune(
            training.train_subset or training, random_state
        )
        leaf = tree.route(training.X, get_n_threads(self.n_jobs))
        rows = self._make_certifying_rows(tree, leaf, training.y, training.weight, training.split)
        self._select_and_certify(tree, posteriors, folds, rows)

    def _make_certifying_rows(
        self,
        tree: Tree,
        leaf: Int32,
        y: Int32,
        weight: Float64 | None,
        sides: TrainCalibrationSplit,
    ) -> CertifyingRows:
        """The rows that certify, and counts of those that grow, in the leaves of a tree."""
        grown, certifying = (
            (leaf[rows], y[rows], None if weight is None else weight[rows])
            for rows in (sides.train, sides.calibration)
        )
        # Where no row grows the tree nothing is counted, whatever the unit.
        unit = compute_mean_weight(grown[2]) if len(sides.train) else 1.0
        stats: Any = self._compute_node_stats(tree, *grown, unit)
        return CertifyingRows(sides, *certifying, stats)

    def _select_and_certify(
        self, tree: Tree, posteriors: Mixture, folds: list[GrownFold], rows: CertifyingRows
    ) -> None:
        """Let what the training samples have chosen stand for election, and set what wins."""
        posterior = partial(posteriors.compute_posterior, self._get_candidates(), tree)
        by_bound = isinstance(self.posteriors, str) and self.posteriors == "bound"
        standing = self._make_selection(tree, posterior, rows)
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
        below = replace(rows, leaf=map_to_smaller_tree(small, tree)[rows.leaf], grown=grown)
        standing = self._make_selection(small, lambda _: pruning, below)
        selected = select_model(standing, [pruning], self.selection)
        self._set_selected(small, selected, Mixture.from_single("pruning", [0.0, 0.0]), full)

    def _needs_cross_validation(self) -> bool:
        """Folds are judged also where a price of a leaf is left to choose."""
        return super()._needs_cross_validation() or self.max_leaf_nodes is not None

    def _make_selection(
        self,
        tree: Tree,
        posterior: Callable[[NodeStats], NodeWeights],
        rows: CertifyingRows,
    ) -> ModelSelection:
        """What certifies the prunings of a tree, of which training samples propose a posterior."""
        held = rows.held_out(tree)
        weighing = self._count_weighted_calibration(tree, rows, held)
        standing = ModelSelection(
            held, posterior(held.grown), self.delta, self._get_voting(), weighing
        )
        self.model_selection_: ModelSelection | LabelledSelection | None = standing
        self.calibration_ = CalibrationSamples.from_selection(standing, rows)
        return standing

    def _count_weighted_calibration(
        self, tree: Tree, rows: CertifyingRows, held: HeldOut
    ) -> NodeStats | None:
        """What the rows that certify weigh; None: each counts once, as it does in the certificate."""
        weight = rows.weights()
        if weight is None:
            return None
        # A row, or a group of rows, counts as one on average.
        unit = math.fsum(weight) / held.n
        return count_calibration_rows(
            tree, rows.leaf, rows.effective_classes, weight, rows.grown, unit
        )

    def _fit_labelled(self, training: Training, random_state: np.random.RandomState) -> None:
        """Let all rows weigh and certify a tree in which none of them has had a part."""
        tree = self._get_grower().grow(self._make_training_samples(training, random_state))
        leaf = tree.route(training.X, get_n_threads(self.n_jobs))
        rows = self._make_certifying_rows(tree, leaf, training.y, training.weight, training.split)
        held = rows.held_out(tree)
        weighing = self._count_weighted_calibration(tree, rows, held)
        self.model_selection_ = LabelledSelection(held, self.delta, weighing)
        self.calibration_ = CalibrationSamples.from_selection(self.model_selection_, rows)
        self._set_selected(tree, select_labelled(self.model_selection_), None)

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
        """Set the fitted attributes."""
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
        self.certificate_ = selected.certificate
        self.certificates_ = (*selected.alternatives, *selected.others)
        self.full_certificate_ = full

    def _compute_ballots(self, tree: Tree, stats: Any) -> Any:
        trained = self._trained
        if trained is None:
            return super()._compute_ballots(tree, stats)
        # Smoothing and slopes know the trained classes alone.
        ballots: Any = super()._compute_ballots(tree, trained.collapse_stats(stats))
        label = None if ballots.label is None else trained.class_positions[ballots.label]
        values = None if ballots.values is None else trained.expand_columns(ballots.values)
        return Ballots(label, values, self._output_groups.sizes[0])

    def _get_trained_vote(self) -> Vote:
        """The vote by the codes that calibration samples have."""
        trained = self._trained
        return self.vote_ if trained is None else Vote(trained.collapse_columns(self.vote_.score))

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit: of the rows that certify it leaves and classes."""
        certified = serialize_certificates(self.certificates_, self.certificate_)
        rows = self.calibration_
        judging = {} if rows is None else {"calibration": rows, "grown": rows.grown}
        full = self.full_certificate_
        beside: dict[str, Any] = {} if full is None else {"full_certificate": asdict(full)}
        if self._trained is not None:
            beside["is_trained"] = self._trained.is_trained
        return {
            **super().__stored__(),
            **certified,
            **beside,
            "train_size": float(self.train_size_),
            **judging,
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        self._trained = TrainedClasses.from_stored(stored)
        super().__restore__(stored)
        self.model_selection_ = None
        self.train_size_ = stored.get_number("train_size", 0, _MOST_GROW)
        self.certificates_, self.certificate_ = restore_certificates(stored)
        self.full_certificate_ = restore_full_certificate(stored)
        self.calibration_ = (
            self._restore_calibration(stored) if "calibration.n_given" in stored else None
        )

    def _restore_calibration(self, stored: StoredState) -> CalibrationSamples:
        """The rows that certify, which must say what the certificate says that they do."""
        grown, label = (
            NodeStats.from_stored(stored.get_section("grown")),
            self._get_trained_vote().label,
        )
        n_codes = self._output_groups.sizes[0] if self._trained is None else self._trained.n_codes
        if grown.n_classes != n_codes:
            raise ValueError(f"grown must be of {n_codes} classes, got {grown.n_classes}")
        known = {"grown": grown, "near_copies": self.certificate_.near_copies}
        rows = CalibrationSamples.from_stored(
            stored.get_section("calibration"), tree=self.tree_, **known
        )
        if self._trained is not None and n_codes + rows.n_others != len(
            self._trained.class_positions
        ):
            raise ValueError("the calibration samples are of other classes than the tree")
        seen = rows.held.grouped, rows.held.n, rows.held.compute_error(label)
        one = self.certificate_
        if seen[:2] != (one.grouped, one.n) or not math.isclose(seen[2], one.risk, abs_tol=1e-9):
            raise ValueError("the calibration samples are not those that the certificate is of")
        if not math.isfinite(rows.structure.log_mass(label)):
            raise ValueError("grown and splits must give every labelling some mass")
        return rows

    @property
    @snapshot_method
    def guarantees_(self) -> TreeGuarantees | None:
        """All that calibration samples guarantee: of parts of the rows, of sets, and of silence."""
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
        )

    certify = certify_fitted
    conditional_guarantees = delegate_to_guarantees(TreeGuarantees.conditional_guarantees)
    predict_set = delegate_to_guarantees(TreeGuarantees.predict_set)
    certify_set = delegate_to_guarantees(TreeGuarantees.certify_set)
    selective_certificates = delegate_to_guarantees(Guarantees.selective_certificates)
    certify_pruning = delegate_to_guarantees(TreeGuarantees.certify_pruning)
    draw_pruning = delegate_to_guarantees(TreeGuarantees.draw_pruning)

    def _certify_nodes(self) -> CertificateFamily | None:
        """Certificates of all nodes of the tree, at the delta of the fit."""
        guarantees = self.guarantees_
        return None if guarantees is None else guarantees.cells()

    @snapshot_method
    def predict_selective(
        self, X: ArrayLike, margin: float
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Predict, and say where the vote is sure enough to answer.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        margin : float
            The vote answers where its first class is at least so far before the second.

        Returns
        -------
        label : ndarray of shape (n,)
            Predicted classes, also where the vote does not answer.
        answered : ndarray of bool, shape (n,)
            Whether it does.

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
        """Say what was fitted and what is certified.

        Returns
        -------
        str
            Some sentences.
        """
        check_is_fitted(self)
        size = self._describe_size()
        if not self._get_grower().depends_on_rows:
            size += " It halves the given box, and is the same whatever the rows are."
        parts = self.certificate_.parts
        named = zip(("observed error", "complexity", "confidence"), astuple(parts), strict=True)
        shares = ", ".join(f"{100 * value:.1f} % {name}" for name, value in named)
        said = f"{size} {self.certificate_} The bound is made of {shares}."
        return f"{said}{self._describe_full_certificate()}{self._describe_thresholds()}"

    def _describe_size(self) -> str:
        """How large the tree is, in a sentence."""
        leaves = self.get_n_leaves()
        if self.full_certificate_ is not None:
            return f"One tree of {format_quantity(leaves, 'leaf', 'leaves')}."
        mean = self.weights_.expected_leaves
        return f"A tree of {leaves:,} leaves; its prunings have {mean:,.1f} leaves on average."

    def _describe_full_certificate(self) -> str:
        """What the vote of the whole tree would promise, after a blank; empty: it is what predicts."""
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
        """Where a cost of errors is said, after a blank; empty: there is no threshold to choose."""
        if len(self.classes_) != 2 or self._trained is not None:
            return ""
        if self.certificate_.grouped or self.guarantees_ is None:
            return ""
        return (
            " If errors of the two classes cost differently, guarantees_.thresholds() certifies every "
            "threshold and finds the cheapest."
        )
