"""The forest whose fit certifies: trees grow on samples of the rows, and the others weigh and judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from certree.certificates.certificate import (
    Certificate,
    get_sampling_facts,
    restore_certificates,
    serialize_certificates,
)
from certree.certificates.guarantees import certify_fitted
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.certificates.majority import (
    ENSEMBLE_METHODS,
    PAIR_METHODS,
    Overlaps,
    blocks,
    count_shared_rows,
)
from certree.certificates.posteriors import make_gibbs_family
from certree.certificates.priors import make_count_decisions
from certree.ensembles.forest import ForestClassifier, MaxFeatures
from certree.ensembles.forest_importances import add_normalized_gains
from certree.grow.binned_grower import grow_on_samples
from certree.interface.arrays import Float64, Int32
from certree.interface.fitted_state import fit_method
from certree.interface.progress import show_progress
from certree.interface.signatures import ROUNDS
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads_or_all
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.training import Training, get_first_untrained_code
from certree.stats import NodeStats
from certree.stats.nodes import count_by_leaf
from certree.tree import Trees
from certree.votes import Voting, stopped_outcomes
from certree.weights.family import compute_gains
from certree.weights.node_weights import NodeWeights, make_pruning, reached

# Shares of the rows that grow a tree. Few are best where labels are noisy and rows out of both samples
# of a pair many; many where trees are the better the more rows they have.
SAMPLE_SIZES = (0.2, 0.6)
# Training samples at which the prior of prunings splits a cell as often as not.
_PRIOR_ROWS = 30.0
# Weights of an error (nats); the best ones lie between.
_PATH = (0.06, 0.12, 0.25, 0.5)
# Prior share of the trees as they have grown, and of the posterior over their prunings.
_LOG_SHARE = float(np.log(0.5))
# Sums of shares, which may lie outside 0 .. 1 by so much.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SampledTrees:
    """Trees that grew and were labelled by samples of the rows, and what the other rows say of them.

    Parameters
    ----------
    trees : Trees
        The trees.
    training : Training
        All rows.
    samples : ndarray of int32, shape (T, n_drawn)
        Rows that grew each of them.
    n_classes : int
        Number of classes, two at least.
    n_threads : int
        Number of threads.
    """

    trees: Trees
    training: Training
    samples: Int32
    n_classes: int
    n_threads: int

    @cached_property
    def leaf(self) -> Int32:
        """Leaf of each row in each tree, numbered among all nodes, (T, n)."""
        return self.trees.find_leaves(self.training.X, self.n_threads)

    @cached_property
    def is_out_of_sample(self) -> NDArray[np.bool_]:
        """Whether each row is out of each sample, (T, n)."""
        out = np.ones((len(self.trees), len(self.training.y)), dtype=bool)
        for row, sample in zip(out, self.samples, strict=True):
            row[sample] = False
        return out

    @cached_property
    def stats(self) -> tuple[NodeStats, NodeStats]:
        """Counts of the rows that grew each tree and label it, and of the others, which weigh it."""
        y, weight = self.training.y, self.training.weight
        grown, others = (
            count_by_leaf(
                self.trees,
                self.leaf[rows],
                np.broadcast_to(y, rows.shape)[rows],
                None if weight is None else np.broadcast_to(weight, rows.shape)[rows],
                self.n_classes,
                self.training.weight_unit,
            )
            for rows in (~self.is_out_of_sample, self.is_out_of_sample)
        )
        return grown, replace(others, label=grown.label)

    def posteriors(self) -> Iterator[tuple[NodeWeights, float]]:
        """The trees as they are, and posteriors over prunings, with their mean divergence (nats)."""
        trees, (grown, others) = self.trees, self.node_statistics
        yield make_pruning(trees, ~trees.is_leaf), -_LOG_SHARE
        prior = make_count_decisions(trees, grown, _PRIOR_ROWS)
        family = make_gibbs_family(trees, others, prior)
        for value in _PATH:
            posterior = family.solve(value, 0.0)
            yield posterior, kl_divergence(trees, posterior, prior) / len(trees) - _LOG_SHARE

    def shares(self, posterior: NodeWeights) -> Float64:
        """Share of each class in the vote of each tree, as if what comes so far stopped there."""
        ballots = Voting("majority").ballots(self.trees, self.node_statistics[0])
        every = np.arange(self.trees.n_nodes)
        vote = ballots.cast(self.trees, posterior)
        return stopped_outcomes(self.trees, posterior, vote, ballots, every)

    def overlaps(self, shares: Float64) -> Overlaps:
        """What rows out of samples say of trees that vote so."""
        parts = (self._judge(shares, part) for part in blocks(len(self.training.y)))
        return Overlaps.sum_blocks(self._shared, parts)

    @cached_property
    def _shared(self) -> Float64:
        """Number of rows that each pair of trees is judged by, whatever they vote."""
        return count_shared_rows(self.is_out_of_sample)

    def _judge(self, shares: Float64, part: slice) -> tuple[Float64, Float64]:
        out = self.is_out_of_sample[:, part]
        right = np.clip(shares[self.leaf[:, part], self.training.y[part]], 0.0, 1.0)
        if self.training.split.is_worst is not None:
            right[:, self.training.split.is_worst[part]] = 0.0
        return np.where(out, 1 - right, 0.0), out.astype(np.float64)

    def importances(self, posterior: NodeWeights) -> Float64:
        """Shares of features in how far cuts lower the Gini index, times how likely they are."""
        trees, grown = self.trees, self.node_statistics[0]
        inner = np.flatnonzero(~trees.is_leaf)
        fallen = np.maximum(-compute_gains(trees, grown.impurity), 0.0)
        made = np.maximum(reached(trees, posterior) - posterior.weight, 0.0)
        return add_normalized_gains(
            trees, inner, (fallen * made)[inner], np.zeros(trees.n_features)
        )

    def risk(self, shares: Float64) -> float:
        """Error of the vote of those trees that each row is out of; of rows that are in all, none."""
        said = np.zeros((len(self.training.y), self.n_classes))
        for leaf, out in zip(self.leaf, self.is_out_of_sample, strict=True):
            said[out] += shares[leaf[out]]
        known, wrong = self.is_out_of_sample.any(axis=0), said.argmax(axis=1) != self.training.y
        if self.training.split.is_worst is not None:
            wrong |= self.training.split.is_worst
        return float(np.mean(wrong[known]))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """Trees, how their prunings vote, and what certifies the vote."""

    sampled: SampledTrees
    posterior: NodeWeights
    shares: Float64
    overlaps: Overlaps
    complexity: float

    def certificates(
        self, delta: float, share: float, risk: float = 0.0
    ) -> tuple[Certificate, ...]:
        """Those that hold together, each with the same share of delta."""
        weight = np.full(len(self.sampled.trees), 1 / len(self.sampled.trees))
        methods = [
            m for m in ENSEMBLE_METHODS if m not in PAIR_METHODS or self.overlaps.min_pair_rows
        ]
        about = get_sampling_facts(self.sampled.training.split)
        made = (
            self.overlaps.certificate(method, weight, self.complexity, risk, delta, share)
            for method in methods
        )
        return tuple(replace(one, **about) for one in made)

    def bound(self, delta: float, share: float) -> float:
        """The lowest of them."""
        return min(one.bound for one in self.certificates(delta, share))


class CertifiedForestClassifier(ForestClassifier):
    """A forest with a certificate on its error on new rows, which needs no rows of its own.

    Each tree grows on a sample of the rows, and the rows out of its sample judge it. So all rows do
    both, but no row does both for one tree, and the error of the majority vote of all trees is bounded
    with probability ``1 - delta`` over the draw of the rows, whatever their distribution is. Trees
    vote as they have grown or, where that certifies less, all prunings of each do, weighed by the
    rows out of its sample; every tree has the same part of the vote, and in each leaf the class that
    most rows of the sample have has all of it.

    A hold-out, `certify` with a fifth of the rows that no fit has seen, often gives a much lower bound,
    as does a `CertifiedTreeClassifier`; this is for those who cannot spare rows.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : float or "auto", default="auto"
        Share of the rows that grow a tree. "auto": a forest for each of 0.2 and 0.6, each with half of
        `delta`, of which the one with the lower bound predicts.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity that cuts lower; "log_loss" is "entropy".
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    max_leaf_nodes : int or None, default=None
        So many leaves a tree at most: the cell whose cut lowers the impurity most is divided first.
    min_samples_split : int or float, default=2
        A cell of fewer rows is a leaf; a float is a share of the sample.
    min_samples_leaf : int or float, default=1
        Rows on either side of a cut, likewise.
    max_features : int, float, "sqrt", "log2" or None, default=0.5
        Features that are looked at in a cell; see `TreeForestClassifier`. More make single trees
        better, by which certificates go, and their vote worse.
    max_features_per_tree : int, float, "sqrt", "log2" or None, default=None
        Features that a tree may compare at all, drawn for each.
    min_impurity_decrease : float, default=0
        A cut is made if it lowers the impurity of its cell, times its share of the tree's rows, by so
        much at least.
    splitter : {"best", "random"}, default="best"
        "random": of each feature one cut is drawn, and the best of these is made.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    random_state : int, RandomState or None, default=None
        Decides samples and features.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        What rows are that are alike, class included; see `CertifiedTreeClassifier`.

    Attributes
    ----------
    certificate_ : Certificate
        What is promised about the error on new rows: the lowest of `certificates_`.
    certificates_ : tuple of Certificate
        Three bounds on the error of the vote, which hold together. What they observe is the error of
        those trees that each row is out of the sample of.
    trees_ : Trees
        The trees. Leaves say shares of the classes in the vote, of two classes that of the second;
        other nodes what they would be if all prunings that come as far stopped there.
    classes_ : ndarray of shape (K,)
        The classes.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_importances_ : ndarray of shape (p,)
        Share of each feature in how far cuts lower the Gini index of the rows that grew them, times the
        probability that a pruning drawn by its weight makes them, on average over trees.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Lorenzen, Igel and Seldin, "On PAC-Bayesian bounds for random forests", Machine Learning 2019;
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from certree import CertifiedForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CertifiedForestClassifier(random_state=0).fit(X, y)
    >>> model.certificate_.method
    'ensemble_first_order'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ForestClassifier._parameter_constraints,
        "n_estimators": [ROUNDS],
        "max_samples": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "criterion": [StrOptions({"gini", "entropy", "log_loss"})],
        "duplicates": [StrOptions(set(DUPLICATES))],
    }

    sample_hashes_: Any
    certificate_: Certificate
    certificates_: tuple[Certificate, ...]

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_samples: float | Literal["auto"] = "auto",
        delta: float = 0.05,
        criterion: Literal["gini", "entropy", "log_loss"] = "gini",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        max_features: MaxFeatures = 0.5,
        max_features_per_tree: MaxFeatures = None,
        min_impurity_decrease: float = 0.0,
        splitter: Literal["best", "random"] = "best",
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        duplicates: Duplicates = "auto",
    ) -> None:
        self._set_parameters(locals())

    def _orders_categories_by_rows(self) -> bool:
        return False  # each sample does so itself, as all other rows judge its tree

    @fit_method
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow trees on samples of the rows, let the others weigh and judge them, and certify.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row where it grows, labels and weighs trees; only ratios count. A certificate
            counts every row of positive weight once; a row of weight zero is as if absent.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        training = self._prepare_training(X, y, sample_weight)
        random_state = check_random_state(self.random_state)
        sizes = SAMPLE_SIZES if self.max_samples == "auto" else (self.max_samples,)
        share = 1 / (len(ENSEMBLE_METHODS) * len(sizes))
        with show_progress(self.verbose > 0, len(sizes), type(self).__name__) as advance:
            candidates = self._candidates(training, sizes, random_state, advance)
            best = min(candidates, key=lambda one: one.bound(self.delta, share))
        self._set_selected(best, share)
        return self

    def _candidates(
        self,
        training: Training,
        sizes: Sequence[float],
        random_state: np.random.RandomState,
        advance: Callable[[], None],
    ) -> Iterator[_Candidate]:
        """Forests of samples of each size, voting by each posterior."""
        for size in sizes:
            sampled = self._sampled(training, float(size), random_state)
            for posterior, complexity in sampled.iterate_posteriors():
                shares = sampled.compute_class_fractions(posterior)
                yield _Candidate(
                    sampled, posterior, shares, sampled.compute_overlaps(shares), complexity
                )
            advance()

    def _sampled(
        self, training: Training, size: float, random_state: np.random.RandomState
    ) -> SampledTrees:
        """Grow all trees, each on a sample that is drawn whatever the rows hold."""
        n, p = training.X.shape
        n_drawn = min(max(round(size * n), 1), n - 1)
        if n_drawn < 1:
            raise ValueError(f"expected two rows at least, of which one judges, got n_samples={n}")
        samples, seeds = np.empty((self.n_estimators, n_drawn), np.int32), []
        for sample in samples:
            sample[:] = np.sort(random_state.permutation(n)[:n_drawn])
            seeds.append(random_state.randint(2**31 - 1))
        n_classes, n_threads = (
            get_first_untrained_code(self.n_classes_),
            get_n_threads_or_all(self.n_jobs),
        )
        grown = grow_on_samples(
            training.X,
            training.y,
            n_classes,
            samples,
            np.array(seeds, dtype=np.uint64),
            categorical=self._category_mask(),
            criterion=self.criterion,
            sample_weight=training.weight,
            n_jobs=n_threads,
            **self._compute_growth_parameters(n_drawn, p),
        )
        return SampledTrees(grown.trees, training, samples, n_classes, n_threads)

    def _set_selected(self, best: _Candidate, share: float) -> None:
        """Set the fitted attributes."""
        trees, shares = best.sampled.trees, best.shares
        said = shares if self.n_classes_ > 2 else shares[:, 1:2]
        self.trees_ = trees.with_value(said)
        self._importances = best.sampled.importances(best.posterior)
        self.certificates_ = best.certificates(self.delta, share, best.sampled.risk(shares))
        self.certificate_ = min(self.certificates_, key=lambda one: one.bound)

    certify = certify_fitted

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit."""
        return {
            **super().__stored__(),
            **serialize_certificates(self.certificates_, self.certificate_),
            "trees": self.trees_,
            "trees.value": self.trees_.value,
            "importances": self._importances,
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        shares = None, self.n_classes_ if self.n_classes_ > 2 else 1
        value = stored.get_numbers("trees.value", shares, -_ROUNDING, 1 + _ROUNDING)
        self.trees_ = self._restore_trees(Trees, stored.get_section("trees"), value=value)
        if not len(self.trees_):
            raise ValueError("a forest has at least one tree, got none")
        # Files of earlier builds hold none.
        if "importances" in stored:
            self._importances = stored.get_numbers("importances", (self.n_features_in_,), 0)
        self.certificates_, self.certificate_ = restore_certificates(stored)

    @property
    def _power(self) -> float:
        return 1.0

    def _compute_importances(self) -> Float64:
        if "_importances" not in self.__dict__:
            raise AttributeError(
                f"this {type(self).__name__} has no feature_importances_: its file is of an earlier "
                "build; fit it again, or shuffle values"
            )
        return self._importances
