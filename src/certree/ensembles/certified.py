"""The forest whose fit certifies: trees grow on samples of the rows, and the others weigh and judge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from certree.arrays import Float64, Int32
from certree.certificates.certificate import Certificate
from certree.certificates.certified import Certified
from certree.certificates.divergence import kl_divergence
from certree.certificates.ensemble import OF_ENSEMBLES, OF_PAIRS, Overlaps, blocks, shared_rows
from certree.certificates.priors import count_prior, gibbs_family
from certree.ensembles.forest import ForestClassifier, MaxFeatures
from certree.ensembles.forest_rows import whole_weights
from certree.ensembles.trees import Trees
from certree.fitted import replaces_state
from certree.grow.binned import BinnedGrower
from certree.grow.bins import Bins
from certree.progress import progress
from certree.rows.folds import Indices
from certree.rows.training import Training, other_class, training_rows
from certree.signatures import ROUNDS
from certree.stats import NodeStats
from certree.stats.nodes import counted
from certree.tree import Tree, threads
from certree.votes import Voting, stopped_outcomes
from certree.weights.node_weights import NodeWeights

# Shares of the rows that grow a tree. Few are best where labels are noisy and rows out of both samples
# of a pair many; many where trees are the better the more rows they have.
SAMPLE_SIZES = (0.2, 0.6)
# Growing rows at which the prior of prunings splits a cell as often as not.
_PRIOR_ROWS = 30.0
# Weights of an error (nats); the best ones lie between.
_PATH = (0.06, 0.12, 0.25, 0.5)
# Prior share of the trees as they have grown, and of the law over their prunings.
_LOG_SHARE = float(np.log(0.5))


@dataclass(frozen=True, eq=False)
class SampledTrees:
    """Trees that grew and were labelled by samples of the rows, and what the other rows say of them.

    Parameters
    ----------
    trees : tuple of Tree
        The trees.
    training : Training
        All rows.
    samples : tuple of ndarray of intp
        Rows that grew each of them.
    n_classes : int
        Number of classes, two at least.
    n_threads : int
        Number of threads.
    """

    trees: tuple[Tree, ...]
    training: Training
    samples: tuple[Indices, ...]
    n_classes: int
    n_threads: int

    @cached_property
    def joined(self) -> Trees:
        """The trees as one set of columns, which say nothing."""
        nothing = [np.zeros((tree.n_nodes, 0)) for tree in self.trees]
        return Trees.of(self.trees, nothing, self.training.X.shape[1], 0)

    @cached_property
    def leaf(self) -> Int32:
        """Leaf of each row in each tree, numbered among all nodes, (T, n)."""
        return self.joined.leaves(self.training.X, self.n_threads)

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """Whether each row is out of each sample, (T, n)."""
        out = np.ones((len(self.trees), len(self.training.y)), dtype=bool)
        for row, sample in zip(out, self.samples, strict=True):
            row[sample] = False
        return out

    @cached_property
    def stats(self) -> tuple[tuple[NodeStats, NodeStats], ...]:
        """Counts of the rows that grew each tree and label it, and of the others, which weigh it."""
        y, weight = self.training.y, self.training.weight
        both = []
        for number, (tree, judged) in enumerate(zip(self.trees, self.judged, strict=True)):
            leaf = self.leaf[number] - int(self.joined.root[number])
            grown, others = (
                counted(tree, leaf[rows], y[rows], _part(weight, rows), self.n_classes)
                for rows in (~judged, judged)
            )
            both.append((grown, replace(others, label=grown.label)))
        return tuple(both)

    def laws(self) -> Iterator[tuple[list[NodeWeights], float]]:
        """The trees as they are, and laws over their prunings, with their divergences (nats)."""
        yield [_whole(tree) for tree in self.trees], -_LOG_SHARE
        priors = [
            count_prior(tree, grown, _PRIOR_ROWS).laws[0]
            for tree, (grown, _) in zip(self.trees, self.stats, strict=True)
        ]
        families = [
            gibbs_family(tree, others, prior)
            for tree, (_, others), prior in zip(self.trees, self.stats, priors, strict=True)
        ]
        for value in _PATH:
            laws = [family.at(value, 0.0) for family in families]
            nats = map(kl_divergence, self.trees, laws, priors)
            yield laws, float(np.mean(list(nats))) - _LOG_SHARE

    def shares(self, laws: list[NodeWeights]) -> Float64:
        """Share of each class in the vote of each tree, as if what comes so far stopped there."""
        shares = []
        for tree, (grown, _), law in zip(self.trees, self.stats, laws, strict=True):
            ballots = Voting("majority").ballots(tree, grown)
            every = np.arange(tree.n_nodes)
            shares.append(stopped_outcomes(tree, law, ballots.cast(tree, law), ballots, every))
        return np.concatenate(shares)

    def overlaps(self, shares: Float64) -> Overlaps:
        """What rows out of samples say of trees that vote so."""
        parts = (self._judge(shares, part) for part in blocks(len(self.training.y)))
        return Overlaps.over(self._shared, parts)

    @cached_property
    def _shared(self) -> Float64:
        """Number of rows that each pair of trees is judged by, whatever they vote."""
        return shared_rows(self.judged)

    def _judge(self, shares: Float64, part: slice) -> tuple[Float64, Float64]:
        out = self.judged[:, part]
        right = np.clip(shares[self.leaf[:, part], self.training.y[part]], 0.0, 1.0)
        return np.where(out, 1 - right, 0.0), out.astype(np.float64)

    def risk(self, shares: Float64) -> float:
        """Error of the vote of those trees that each row is out of; of rows that are in all, none."""
        said = np.zeros((len(self.training.y), self.n_classes))
        for leaf, out in zip(self.leaf, self.judged, strict=True):
            said[out] += shares[leaf[out]]
        known = self.judged.any(axis=0)
        return float(np.mean(said.argmax(axis=1)[known] != self.training.y[known]))


def _part(weight: Float64 | None, rows: NDArray[Any]) -> Float64 | None:
    """The weights of some rows, if there are any."""
    return None if weight is None else weight[rows]


def _whole(tree: Tree) -> NodeWeights:
    """The law that prunes nothing."""
    nothing = np.zeros(tree.n_nodes)
    leaf = tree.is_leaf
    return NodeWeights(
        leaf.astype(np.float64), np.where(leaf, -np.inf, np.inf), 0.0, nothing, nothing
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """Trees, how their prunings vote, and what certifies the vote."""

    sampled: SampledTrees
    shares: Float64
    overlaps: Overlaps
    complexity: float

    def certificates(
        self, delta: float, share: float, risk: float = 0.0
    ) -> tuple[Certificate, ...]:
        """Those that hold together, each with the same share of delta."""
        weight = np.full(len(self.sampled.trees), 1 / len(self.sampled.trees))
        methods = [m for m in OF_ENSEMBLES if m not in OF_PAIRS or self.overlaps.n_of_pairs]
        return tuple(
            self.overlaps.certificate(method, weight, self.complexity, risk, delta, share)
            for method in methods
        )

    def bound(self, delta: float, share: float) -> float:
        """The lowest of them."""
        return min(one.bound for one in self.certificates(delta, share))


class CertifiedForestClassifier(Certified, ForestClassifier):
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
        Number of threads; None is one, -1 all.
    verbose : int, default=0
        Whether a progress bar is shown.

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
    row_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
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
    }

    row_hashes_: Any

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_samples: float | Literal["auto"] = "auto",
        delta: float = 0.05,
        criterion: Literal["gini", "entropy", "log_loss"] = "gini",
        max_depth: int | None = None,
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
    ) -> None:
        self._store(locals())

    @_fit_context(prefer_skip_nested_validation=True)
    @replaces_state
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow trees on samples of the rows, let the others weigh and judge them, and certify.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            How many rows each row counts as where it grows, labels and weighs trees. A certificate
            counts every row of positive weight once; a row of weight zero is as if absent.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        training = training_rows(self, X, y, sample_weight)
        random_state = check_random_state(self.random_state)
        sizes = SAMPLE_SIZES if self.max_samples == "auto" else (self.max_samples,)
        share = 1 / (len(OF_ENSEMBLES) * len(sizes))
        with progress(self.verbose > 0, len(sizes), type(self).__name__) as advance:
            candidates = self._candidates(training, sizes, random_state, advance)
            best = min(candidates, key=lambda one: one.bound(self.delta, share))
        self._deploy(best, share)
        return self

    def _candidates(
        self,
        training: Training,
        sizes: Sequence[float],
        random_state: np.random.RandomState,
        advance: Callable[[], None],
    ) -> Iterator[_Candidate]:
        """Forests of samples of each size, voting by each law."""
        for size in sizes:
            sampled = self._sampled(training, float(size), random_state)
            for laws, complexity in sampled.laws():
                shares = sampled.shares(laws)
                yield _Candidate(sampled, shares, sampled.overlaps(shares), complexity)
            advance()

    def _sampled(
        self, training: Training, size: float, random_state: np.random.RandomState
    ) -> SampledTrees:
        """Grow all trees, each on a sample that is drawn whatever the rows hold."""
        n, p = training.X.shape
        n_drawn = min(max(round(size * n), 1), n - 1)
        if n_drawn < 1:
            raise ValueError(f"expected two rows at least, of which one judges, got n_samples={n}")
        growth = self._growth(n_drawn, p)
        drawn = [
            (np.sort(random_state.permutation(n)[:n_drawn]), int(random_state.randint(2**31 - 1)))
            for _ in range(self.n_estimators)
        ]
        n_threads = threads(self.n_jobs)
        trees: Any = Parallel(n_jobs=n_threads, prefer="threads")(
            delayed(self._tree)(training, sample, seed, growth) for sample, seed in drawn
        )
        samples = tuple(sample for sample, _ in drawn)
        return SampledTrees(tuple(trees), training, samples, other_class(self), n_threads)

    def _tree(self, training: Training, sample: Indices, seed: int, growth: dict[str, Any]) -> Tree:
        """Grow one tree, of which no other row may decide anything, the edges of bins included."""
        mask = None if self.categories_ is None else self.categories_.mask
        bins = Bins.of(training.X[sample], mask, fine_ends=True)
        weight = _part(training.weight, sample)
        criterion: Any = "gini" if self.criterion == "gini" else "entropy"
        return (
            BinnedGrower(bins, seed=seed, **growth)
            .grow_classes(
                training.y[sample],
                other_class(self),
                1,
                criterion=criterion,
                sample_weight=None if weight is None else whole_weights(weight),
            )
            .tree(0)
        )

    def _deploy(self, best: _Candidate, share: float) -> None:
        """Set the fitted attributes."""
        trees, shares = best.sampled.joined, best.shares
        said = shares if self._n_outputs > 1 else shares[:, 1:2]
        self.trees_ = replace(trees, value=np.ascontiguousarray(said))
        self.certificates_ = best.certificates(self.delta, share, best.sampled.risk(shares))
        self.certificate_ = min(self.certificates_, key=lambda one: one.bound)

    @property
    def _power(self) -> float:
        return 1.0
