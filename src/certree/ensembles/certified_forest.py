"""The forest whose fit returns a certificate: out-of-sample rows of each tree bound the error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from certree.certificates.baseline import compute_class_baseline
from certree.certificates.certificate import (
    CERTIFICATE_FIELDS,
    Certificate,
    get_sampling_facts,
)
from certree.certificates.guarantees import certify_fitted
from certree.certificates.hold_out import certify_row_errors
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.certificates.majority import (
    ENSEMBLE_METHODS,
    PAIR_METHODS,
    PairErrors,
    count_shared_rows,
    iterate_blocks,
)
from certree.certificates.posteriors import make_gibbs_family
from certree.certificates.priors import make_count_decisions
from certree.certificates.row_order import compute_class_residuals, note_row_order
from certree.ensembles.forest import ForestClassifier, MaxFeatures, TreeForestClassifier
from certree.ensembles.forest_importances import add_normalized_gains
from certree.estimators.certified_classifier import CertifiedTreeClassifier
from certree.explain.tree_model import declare_trees
from certree.grow.binned_grower import grow_on_samples
from certree.interface.arrays import Float64, Int32, to_row_order
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import fit_method
from certree.interface.progress import show_progress
from certree.interface.signatures import ROUNDS
from certree.interface.stored_fields import UNSET, StoredField
from certree.interface.threads import get_n_threads_or_all
from certree.rows.duplicates import DUPLICATES, Duplicates
from certree.rows.folds import Indices, shuffle_by_content
from certree.rows.hashes import hash_samples
from certree.rows.split import TrainCalibrationSplitter
from certree.rows.training import Training, get_first_untrained_code
from certree.stats import NodeStats
from certree.stats.nodes import count_by_leaf
from certree.tree import Trees
from certree.votes import Voting, stopped_outcomes
from certree.weights.family import compute_gains
from certree.weights.node_weights import NodeWeights, make_pruning, reached

# Fractions of the rows that grow a tree. A small one is best for noisy labels, as more rows are out
# of the samples of both trees of a pair; a large one if trees improve with more rows.
SAMPLE_SIZES = (0.2, 0.6)
# Number of sample rows at which the prior of prunings splits a node with probability 1/2.
_PRIOR_ROWS = 30.0
# Inverse temperatures of the posteriors that are tried; the best ones lie between.
_INVERSE_TEMPERATURES = (0.06, 0.12, 0.25, 0.5)
# Number of posteriors over prunings that are tried: these, and that of the fully grown trees.
_N_POSTERIORS = 1 + len(_INVERSE_TEMPERATURES)
# Fraction of rows in time order that grow trees; the others calibrate.
_TRAIN_SIZE = 0.65
# Log of the prior probability of the fully grown trees, and of that of posteriors over prunings.
_LOG_HALF = float(np.log(0.5))
# Probabilities are sums, which may lie outside [0, 1] by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SampledTrees:
    """Trees that were each grown and labelled on a sample of the training rows.

    A sample is drawn without replacement. The rows out of a tree's sample estimate its error; this
    class computes the statistics for that. T is the number of trees, M the number of all their
    nodes, n the number of training rows, and K the number of classes.

    Parameters
    ----------
    trees : Trees
        The T trees.
    training : Training
        All n encoded rows, with class codes and weights.
    samples : ndarray of int32, shape (T, n_drawn)
        Indices of the rows that each tree was grown on.
    n_classes : int
        Number of classes, K, at least 2.
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
        """Leaf of each of n rows in each of T trees, (T, n): its index among the nodes of all trees.

        Rows are those of `training`, rows of the tree's sample included.
        """
        return self.trees.find_leaves(self.training.X, self.n_threads)

    @cached_property
    def is_out_of_sample(self) -> NDArray[np.bool_]:
        """Mask, (T, n): for each tree True for the rows that are not in the sample that it grew on."""
        out = np.ones((len(self.trees), len(self.training.y)), dtype=bool)
        for row, sample in zip(out, self.samples, strict=True):
            row[sample] = False
        return out

    @cached_property
    def node_statistics(self) -> tuple[NodeStats, NodeStats]:
        """Weighted class counts of all M nodes, from in-sample and from out-of-sample rows.

        A tuple of two `NodeStats` with `counts`, (M, K), and `label`, (M,): first of the rows in
        the sample of each tree, then of the rows out of it. The label of a node, the most frequent
        class of its in-sample rows, is the same in both.
        """
        y, weight = self.training.y, self.training.weight
        sample, others = (
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
        return sample, replace(others, label=sample.label)

    def iterate_posteriors(self) -> Iterator[tuple[NodeWeights, float]]:
        """Yield five posteriors over the prunings of each tree, each with its complexity.

        A pruning is a subtree with the same root; a posterior gives each pruning a probability.

        The first puts all weight on the fully grown trees. The others are Gibbs posteriors: they
        weight each pruning by its prior probability times exp(-lambda * number of errors on
        out-of-sample rows), with inverse temperatures lambda of 0.06, 0.12, 0.25 and 0.5. In the
        prior each node that is reached is a leaf with probability 30 / (30 + n), where n is the
        number of its in-sample rows.

        Yields
        ------
        posterior : NodeWeights
            For each of the M nodes the probability that a pruning of its tree has a leaf there.
        complexity : float
            Mean over trees of the divergence of the posterior from the prior, in nats (0 for the
            fully grown trees), plus ln 2 for the choice between these trees and Gibbs posteriors.
        """
        trees, (sample, others) = self.trees, self.node_statistics
        yield make_pruning(trees, ~trees.is_leaf), -_LOG_HALF
        prior = make_count_decisions(trees, sample, _PRIOR_ROWS)
        family = make_gibbs_family(trees, others, prior)
        for value in _INVERSE_TEMPERATURES:
            posterior = family.solve(value, 0.0)
            yield posterior, kl_divergence(trees, posterior, prior) / len(trees) - _LOG_HALF

    def compute_class_fractions(self, posterior: NodeWeights) -> Float64:
        """Compute the vote of each tree at each of the M nodes, (M, K): a fraction for each class.

        The fraction is the probability that a pruning, drawn from `posterior`, predicts the class
        for a row that reaches the node, if no pruning (subtree with the same root) goes below the
        node. A leaf of a pruning predicts the most frequent class of its in-sample rows. posterior:
        for each node the probability that a pruning has a leaf there.
        """
        node_predictions = Voting("majority").ballots(self.trees, self.node_statistics[0])
        nodes = np.arange(self.trees.n_nodes)
        vote = node_predictions.compute_vote(self.trees, posterior)
        return stopped_outcomes(self.trees, posterior, vote, node_predictions, nodes)

    def compute_pair_errors(self, fractions: Float64) -> PairErrors:
        """Sum up the errors of trees, and of pairs of trees, over their out-of-sample rows.

        fractions: vote at each of the M nodes of all trees, (M, K): a fraction for each class, from
        `compute_class_fractions`. The vote of a tree on a row is that at its leaf, and its error
        the fraction of the vote that is not for the row's class in `training`. Return three arrays
        (T, T): for each pair of trees the number of rows out of both samples (`rows`), and two sums
        over them, of the error of the tree of axis 0 (`first_wrong`), and of the product of both
        errors (`both_wrong`).
        """
        errors = (
            self._compute_errors(fractions, rows) for rows in iterate_blocks(len(self.training.y))
        )
        return PairErrors.sum_blocks(self._n_shared_rows, errors)

    @cached_property
    def _n_shared_rows(self) -> Float64:
        """Number of rows that are in the sample of neither tree, for each pair of trees, (T, T)."""
        return count_shared_rows(self.is_out_of_sample)

    def _compute_errors(self, fractions: Float64, rows: slice) -> tuple[Float64, Float64]:
        """Compute the error of each of the T trees on a block of b rows.

        Parameters
        ----------
        fractions : ndarray of shape (M, K)
            Vote at each of the nodes of all trees: a fraction for each class, from
            `compute_class_fractions`.
        rows : slice
            Indices of the b rows of the block.

        Returns
        -------
        error : ndarray of shape (T, b)
            Fraction of the tree's vote that is not for the row's class. It is 0 for rows in the
            tree's sample, and else 1 for repeated rows that ``training.split.is_worst`` marks, as
            they count as errors whatever is predicted.
        is_out : ndarray of shape (T, b)
            1 for rows out of the tree's sample, else 0.
        """
        out = self.is_out_of_sample[:, rows]
        right = np.clip(fractions[self.leaf[:, rows], self.training.y[rows]], 0.0, 1.0)
        if self.training.split.is_worst is not None:
            right[:, self.training.split.is_worst[rows]] = 0.0
        return np.where(out, 1 - right, 0.0), out.astype(np.float64)

    def compute_importances(self, posterior: NodeWeights) -> Float64:
        """Compute the importance of each feature in the prunings of all trees, (p,).

        A pruning is a subtree with the same root.

        A split counts by how much it lowers the Gini index of its in-sample rows, times their
        weight, times the probability that a pruning, drawn from `posterior`, makes the split. The
        importances of each tree sum up to 1, or are 0 if no split is made.
        """
        trees, sample = self.trees, self.node_statistics[0]
        inner = np.flatnonzero(~trees.is_leaf)
        decrease = np.maximum(-compute_gains(trees, sample.impurity), 0.0)
        split_probability = np.maximum(reached(trees, posterior) - posterior.weight, 0.0)
        gain = (decrease * split_probability)[inner]
        return add_normalized_gains(trees, inner, gain, np.zeros(trees.n_features))

    def add_votes(self, fractions: Float64) -> Float64:
        """Sum up the votes on each row of the trees of whose samples it is out, (n, K).

        fractions: vote at each of the M nodes of all trees, (M, K): a fraction for each class, from
        `compute_class_fractions`. A tree votes on a row by the fractions at its leaf. Votes on rows
        that are in all samples are 0.
        """
        votes = np.zeros((len(self.training.y), self.n_classes))
        for leaf, out in zip(self.leaf, self.is_out_of_sample, strict=True):
            votes[out] += fractions[leaf[out]]
        return votes

    def compute_risk(self, votes: Float64) -> float:
        """Compute the error of the vote on out-of-sample rows, a fraction of the rows.

        Rows in all samples are left out. votes: sums of the votes of trees on each row, from
        `add_votes`, (n, K). The class of a row is that in `training`. Repeated rows that
        ``training.split.is_worst`` marks count as errors whatever is predicted.
        """
        has_vote = self.is_out_of_sample.any(axis=0)
        is_wrong = votes.argmax(axis=1) != self.training.y
        if self.training.split.is_worst is not None:
            is_wrong |= self.training.split.is_worst
        return float(np.mean(is_wrong[has_vote]))

    def compute_residuals(self, votes: Float64, rows: Indices) -> Float64:
        """Compute class indicators of some rows minus the fractions of the vote, (m, K).

        With two classes only the second column is returned, (m, 1). votes: sums of the votes of
        trees on all rows, from `add_votes`, (n, K); rows: indices, (m,). Residuals of rows in all
        samples are 0.
        """
        n_votes = self.is_out_of_sample[:, rows].sum(axis=0)[:, None]
        probabilities = votes[rows] / np.maximum(n_votes, 1)
        return np.where(
            n_votes > 0, compute_class_residuals(self.training.y[rows], probabilities), 0.0
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A forest, and the weights by which the prunings of its trees vote; a fit keeps the best one.

    A pruning is a subtree with the same root. The weights are a posterior, a probability of each
    pruning.

    Parameters
    ----------
    sampled : SampledTrees
        The trees, with M nodes.
    posterior : NodeWeights
        For each node the probability that a pruning of its tree has a leaf there.
    fractions : ndarray of shape (M, K)
        Vote at each node: the fraction of the prunings, by their weight, that predict each class.
    pair_errors : PairErrors
        Errors of trees, and joint errors of pairs of trees, on their out-of-sample rows.
    complexity : float
        Divergence term of the bounds, in nats: the mean over trees of the Kullback-Leibler
        divergence of the posterior from the prior over prunings, plus ln 2. The prior gives half of
        its weight to prunings and half to fully grown trees, for which the term is ln 2.
    """

    sampled: SampledTrees
    posterior: NodeWeights
    fractions: Float64
    pair_errors: PairErrors
    complexity: float

    def certify(self, delta: float, fraction: float, risk: float = 0.0) -> tuple[Certificate, ...]:
        """Bound the probability that the vote of all trees errs on a new row, by three methods.

        All trees have equal weight. "ensemble_first_order" uses the errors of single trees;
        "ensemble_tandem" and "ensemble_either_wrong" use those of pairs of trees, and are left out
        unless each pair shares out-of-sample rows.

        Parameters
        ----------
        delta : float
            Probability with which any certificate of the fit may fail.
        fraction : float
            Fraction of delta that each certificate gets: it fails with a probability of at most
            ``delta * fraction``.
        risk : float
            Error of the out-of-sample vote, which the certificates report. No bound depends on it.

        Returns
        -------
        tuple of Certificate
            One for each method: three, or one if two trees share no out-of-sample row.
        """
        weight = np.full(len(self.sampled.trees), 1 / len(self.sampled.trees))
        methods = [
            m for m in ENSEMBLE_METHODS if m not in PAIR_METHODS or self.pair_errors.min_pair_rows
        ]
        assumptions = get_sampling_facts(self.sampled.training.split)
        certificates = (
            self.pair_errors.certificate(method, weight, self.complexity, risk, delta, fraction)
            for method in methods
        )
        return tuple(replace(certificate, **assumptions) for certificate in certificates)

    def compute_bound(self, delta: float, fraction: float) -> float:
        """Return the lowest of the bounds that `certify` computes by up to three methods.

        Each bounds from above the error, on new rows, of the vote of this candidate's trees. delta:
        probability with which any certificate of the fit may fail; fraction: fraction of it that
        each certificate gets.
        """
        return min(certificate.bound for certificate in self.certify(delta, fraction))


@copy_descriptions_from(TreeForestClassifier)
class CertifiedForestClassifier(ForestClassifier):
    """A random forest with a certificate on its error on new rows, without a calibration set.

    Each tree grows on a sample of the rows; the rows out of its sample estimate its error. So all
    rows are used for both, but none for both in the same tree. The error of the majority vote of
    all trees is bounded with probability ``1 - delta`` over the draw of the rows, for every
    distribution. The trees vote fully grown, or all prunings of each tree (subtrees with the same
    root) vote, weighted by the out-of-sample rows, whichever has the lower bound. Every tree has
    the same weight. The whole vote of a leaf goes to the most frequent class among its rows of the
    sample.

    If rows have times, see `fit`, the latest rows certify the vote instead.

    The hold-out bound, `certify` with a fifth of the rows that were kept out of the fit, is often
    much lower, as is the bound of a `CertifiedTreeClassifier`. Use this class if no rows can be
    spared.

    Parameters
    ----------
    {n_estimators}
    max_samples : float or "auto", default="auto"
        Fraction of the rows that each tree grows on. "auto": grow one forest with 0.2 and one with
        0.6, each certified with half of `delta`, and keep the one with the lower bound.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    {criterion} {max_depth} {max_leaf_nodes}
    min_samples_split : int or float, default=2
        Smallest number of rows of a node that is split; a float is a fraction of the sample.
    min_samples_leaf : int or float, default=1
        Smallest number of rows of each child of a split; a float is a fraction of the sample.
    max_features : int, float, "sqrt", "log2" or None, default=0.5
        Number of features that are tried in a node, drawn for each node: an integer, a fraction of
        all features, the square root or the binary logarithm of their number; None: all. A larger
        number improves single trees, which lowers the bound, but makes their vote worse.
    {max_features_per_tree} {min_impurity_decrease}
    splitter : {"best", "random"}, default="best"
        "random": draw one split of each feature, and make the best of these.
    {categorical_features}
    random_state : int, RandomState or None, default=None
        Draws the samples and the features.
    {n_jobs} {verbose}
    duplicates : {"auto", "genuine", "copies", "refuse"}, default="auto"
        How rows count that are equal, class included. "genuine": as separate draws; "copies": as
        copies of one draw, which count once; "refuse": raise an error; "auto": decide by their
        number, see `CertifiedTreeClassifier`.

    Attributes
    ----------
    certificate_ : Certificate
        The guarantee on the error on new rows: the lowest of `certificates_`.
    certificates_ : tuple of Certificate
        Up to three bounds on the error of the vote, by three methods, which hold together: all with
        probability ``1 - delta``. The error that they report is that of the trees of whose samples
        a row is out. A single bound if rows have times.
    trees_ : Trees
        The trees. The value of a leaf is its vote: a fraction for each class, or for the second of
        two classes. The value of an inner node is the vote if all prunings that reach it stopped
        there.
    classes_ : ndarray of shape (K,)
        The classes, ascending.
    {sample_hashes_} {n_features_in_} {categories_} {dates_}
    feature_importances_ : ndarray of shape (p,)
        Mean over trees of the fraction of the decrease of the Gini index that belongs to each
        feature. A split counts by its decrease times the probability that a pruning, drawn by its
        weight, makes it.
    {is_categorical_} {feature_names_in_}

    References
    ----------
    Lorenzen, Igel and Seldin, "On PAC-Bayesian bounds for random forests", Machine Learning 2019;
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.

    Examples
    --------
    >>> from certree.ensembles import CertifiedForestClassifier
    >>> model = CertifiedForestClassifier().fit([[k] for k in range(400)], 200 * [0] + 200 * [1])
    >>> model.certificate_.bound < 0.5
    True

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
        return False  # each sample encodes its own categories, as all other rows estimate the error

    @copy_descriptions_from(CertifiedTreeClassifier.fit)
    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        time: Any = None,
        gap: Any = 0,
        independent: bool = False,
    ) -> Self:
        """Grow trees on samples of the rows, choose how they vote, and certify the vote.

        The rows out of a tree's sample estimate its error, from which the vote is certified. They are
        not later than those in the sample, so with `time` the latest 35 % of the rows certify the
        vote instead, and grow no tree.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in growing and labelling trees, and in the weights with which the
            prunings of a tree (subtrees with the same root) vote; only ratios matter. A certificate
            counts every row of positive weight once. Rows of weight zero are ignored.
        {time} {gap} {independent}

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are fewer than two rows; if `time` misses a time, all times are equal, or the
            earlier or the latest rows have a single class.
        """
        random_state = check_random_state(self.random_state)
        row_splitter = None if time is None else TrainCalibrationSplitter(_TRAIN_SIZE, random_state)
        order: dict[str, Any] = {"time": time, "gap": gap, "independent": independent}
        training = self._prepare_training(X, y, sample_weight, **order, row_splitter=row_splitter)
        sizes = SAMPLE_SIZES if self.max_samples == "auto" else (self.max_samples,)
        if time is not None:
            self._fit_to_earlier_rows(training, sizes, random_state)
            return self
        fraction = 1 / (len(ENSEMBLE_METHODS) * len(sizes))
        with show_progress(self.verbose > 0, len(sizes), type(self).__name__) as advance:
            candidates = self._iterate_candidates(training, sizes, random_state, advance)
            best = min(
                candidates, key=lambda candidate: candidate.compute_bound(self.delta, fraction)
            )
        self._set_vote(best.sampled, best.posterior, best.fractions)
        self._certify_out_of_sample(best, fraction)
        return self

    def _fit_to_earlier_rows(
        self, training: Training, sizes: Sequence[float], random_state: np.random.RandomState
    ) -> None:
        """Grow trees on the training set of rows in time order, and certify by the calibration set.

        The latest fifth of the training set chooses between the sample sizes, and between the
        posteriors (weights of the prunings, subtrees with the same root), by the error of the vote.
        The chosen one is then fitted to the whole training set. Sets `trees_`, `_importances`,
        `certificates_` and `certificate_`.

        training: the encoded rows, of which the latest are the calibration set; sizes: fractions of
        the rows that each tree may grow on; random_state: draws samples and seeds.
        """
        earlier = training.take(training.split.train)
        hashes = hash_samples(*earlier.features.tables, earlier.y, order=earlier.draw_order)
        earlier = earlier.take(shuffle_by_content(hashes, earlier.weight, random_state))
        fold = earlier.split_folds(None, random_state)[0]
        first, validation = earlier.take(fold.train), earlier.features.take_matrix(fold.validation)
        n_wrong, choices = [], [(size, k) for size in sizes for k in range(_N_POSTERIORS)]
        with show_progress(self.verbose > 0, len(sizes) + 1, type(self).__name__) as advance:
            for size in sizes:
                for vote in self._iterate_votes(first, size, random_state):
                    self._set_vote(*vote)
                    wrong = self._predict_codes(validation) != earlier.y[fold.validation]
                    n_wrong.append(int(wrong.sum()))
                advance()
            size, k = choices[int(np.argmin(n_wrong))]
            self._set_vote(*next(islice(self._iterate_votes(earlier, size, random_state), k, None)))
            advance()
        self._certify_period(training)

    def _predict_codes(self, rows: NDArray[Any]) -> Indices:
        """Return the code of the class that the vote of all trees predicts for each row, (n,).

        rows: encoded rows, numbers and category codes, (n, p).
        """
        mean = to_row_order(self._sum_trees(rows)) / len(self.trees_)
        return self._compute_probabilities(mean, self._power).argmax(axis=1)

    def _certify_period(self, training: Training) -> None:
        """Set `certificates_` and `certificate_` from the calibration set of rows in time order.

        training: the encoded rows, of which the latest are the calibration set. They have grown no
        tree and chosen nothing, so that the bound is that of a fixed classifier.
        """
        split = training.split
        y = training.y[split.calibration]
        rows = training.features.take_matrix(split.calibration)
        wrong = self._predict_codes(rows) != y
        if split.is_worst is not None:
            wrong |= split.is_worst
        certificate = certify_row_errors(wrong, None, self.delta, period=split.period)
        facts = get_sampling_facts(split)
        baseline = compute_class_baseline(y, self.classes_)
        self.certificate_ = replace(certificate, baseline=baseline, **facts)
        self.certificates_ = (self.certificate_,)

    def _iterate_candidates(
        self,
        training: Training,
        sizes: Sequence[float],
        random_state: np.random.RandomState,
        advance: Callable[[], None],
    ) -> Iterator[_Candidate]:
        """Grow a forest for each sample size; yield it with each of five posteriors over prunings.

        A posterior gives each pruning (subtree with the same root) the weight of its vote.

        Parameters
        ----------
        training : Training
            The encoded rows.
        sizes : sequence of float
            Fractions of the rows that each tree grows on.
        random_state : numpy.random.RandomState
            Draws samples and seeds; its state changes.
        advance : callable
            Called without arguments after the candidates of each size.
        """
        for size in sizes:
            sampled = self._grow_on_samples(training, float(size), random_state)
            for posterior, complexity in sampled.iterate_posteriors():
                fractions = sampled.compute_class_fractions(posterior)
                pair_errors = sampled.compute_pair_errors(fractions)
                yield _Candidate(sampled, posterior, fractions, pair_errors, complexity)
            advance()

    def _iterate_votes(
        self, training: Training, size: float, random_state: np.random.RandomState
    ) -> Iterator[tuple[SampledTrees, NodeWeights, Float64]]:
        """Grow a forest on samples; yield it with each of five posteriors and its vote at each node.

        A posterior gives each pruning (subtree with the same root) the weight of its vote.
        training: the encoded rows; size: fraction of the rows that each tree grows on;
        random_state: draws samples and seeds, its state changes. Yield the trees, the posterior,
        and the vote at each of their M nodes, (M, K).
        """
        sampled = self._grow_on_samples(training, float(size), random_state)
        for posterior, _ in sampled.iterate_posteriors():
            yield sampled, posterior, sampled.compute_class_fractions(posterior)

    def _grow_on_samples(
        self, training: Training, size: float, random_state: np.random.RandomState
    ) -> SampledTrees:
        """Grow all trees, each on a random sample of the rows, and return them with their samples.

        training: the n encoded rows; size: fraction of the rows that is drawn for each sample,
        without replacement, between 1 and n - 1 rows; random_state: draws samples and seeds, its
        state changes. Raise ValueError if there are fewer than two rows.
        """
        n, p = training.X.shape
        n_drawn = min(max(round(size * n), 1), n - 1)
        if n_drawn < 1:
            raise ValueError(
                "X must have at least two rows, one of which estimates the error, got "
                f"n_samples={n}: pass more rows"
            )
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

    def _set_vote(self, sampled: SampledTrees, posterior: NodeWeights, fractions: Float64) -> None:
        """Set `trees_`, whose node values are votes, and the feature importances `_importances`.

        sampled: the trees, with M nodes; posterior: weights of their prunings (subtrees with the
        same root); fractions: vote at each node for each of K classes, (M, K). Node values are this
        vote, or, for two classes, the vote for the second class, (M, 1).
        """
        value = fractions if self.n_classes_ > 2 else fractions[:, 1:2]
        self.trees_ = sampled.trees.with_value(value)
        self._importances = sampled.compute_importances(posterior)

    def _certify_out_of_sample(self, best: _Candidate, fraction: float) -> None:
        """Set `certificates_` and `certificate_` from the errors on out-of-sample rows.

        `certificates_` are the bounds of up to three methods, `certificate_` is the lowest. best:
        the chosen trees and weights of prunings; fraction: fraction of the parameter `delta` that
        each certificate gets. Warn if errors depend on the order of the rows and a feature holds
        dates.
        """
        votes = best.sampled.add_votes(best.fractions)
        risk = best.sampled.compute_risk(votes)
        baseline = compute_class_baseline(best.sampled.training.y, self.classes_)
        self.certificates_ = tuple(
            replace(certificate, baseline=baseline)
            for certificate in best.certify(self.delta, fraction, risk)
        )
        self.certificate_ = min(self.certificates_, key=lambda certificate: certificate.bound)
        units = best.sampled.training.split.units
        compute_residuals = partial(best.sampled.compute_residuals, votes)
        note_row_order(self, units, best.sampled.n_classes, compute_residuals)

    certify = certify_fitted

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        **CERTIFICATE_FIELDS,
        "trees": declare_trees("trees_", least=-_ROUNDING, most=1 + _ROUNDING),
        # Files of earlier versions lack the importances.
        "importances": StoredField.numbers("_importances", ("_n_encoded",), 0, default=UNSET),
    }

    @property
    def _power(self) -> float:
        """Exponent to which `predict_proba` raises the mean vote of the trees before it normalises it.

        It is 1, as the plain vote is certified.
        """
        return 1.0

    def _compute_importances(self) -> Float64:
        if "_importances" not in self.__dict__:
            raise AttributeError(
                f"this {type(self).__name__} has no feature_importances_, as an earlier version "
                "wrote its file: fit the model again, or use sklearn.inspection.permutation_importance"
            )
        return self._importances
