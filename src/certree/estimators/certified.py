"""A fit that certifies: some rows grow and label the tree, the others weigh and bound the error."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from certree.arrays import Float64, Int32, nonnegative
from certree.certificates.certificate import Certificate
from certree.certificates.election import (
    Deploy,
    Deployed,
    Election,
    LabelledElection,
    elect,
    elect_labelled,
)
from certree.certificates.hold_out import certify
from certree.certificates.occam import Drawn, occam_pruning, single_draw
from certree.certificates.selective import Selective, margins, selective_certificates
from certree.certificates.weighing import held_out
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.grow.dyadic import DEEPEST_GRID, dyadic_grid
from certree.prunings.penalties import cost_complexity_family
from certree.rows.categories import categories_of
from certree.rows.deal import deal
from certree.rows.training import _Training, checked_rows
from certree.stats import NodeStats
from certree.tree import Tree, threads
from certree.tune import Candidate, Mixture, Objective, tune
from certree.votes import Voting
from certree.weights.node_weights import NodeWeights

Tune = Literal["cv", "bound"] | None


_NO_CERTIFICATE = (
    "There is no certificate: all rows have grown, labelled and weighed the tree. Fit with a split, "
    "such as split=0.35, or with a box on the dyadic partition, which no rows grow; or call "
    "certify(X, y) with rows that were never used"
)


class CertifiedVote(TreeVoteEstimator):
    """Classifiers whose fit may keep rows apart that certify what they weigh."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "box": ["array-like", None],
        "split": [Interval(Real, 0, 1, closed="neither"), None],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "deploy": [StrOptions({"best", "vote"})],
        "tune": [StrOptions({"cv", "bound"}), None],
        "preprocessor": [HasMethods(["fit", "transform"]), None],
    }

    box: Any
    split: float | None
    delta: float
    deploy: Deploy
    tune: Tune
    preprocessor: Any
    n_classes_: int

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Grow the tree, choose the laws, let the prunings vote and, with a split, certify.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value and goes where the partition sends it.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            How many rows each row counts as. A row of weight w is treated like w copies of it; a
            certificate counts every row once.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. A
            split deals whole groups, and the certificate is about rows of new groups.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._unchanged_by_failure():
            if self.box is not None:
                self._fit_box(X, y, sample_weight, groups)
            elif self.split is None:
                if groups is not None or self.tune == "bound":
                    what = "groups" if groups is not None else 'tune="bound"'
                    raise ValueError(f"{what} takes a split, got split=None")
                every_row = np.arange(_num_samples(X))
                rows = self._preprocessed(X, y, every_row)
                self._fit(self._training_rows(rows, y, sample_weight))
                self.election_: Election | LabelledElection | None = None
                self.certificate_: Certificate | None = None
                self.certificates_: tuple[Certificate, ...] = ()
            else:
                self._fit_certified(X, y, sample_weight, groups)
        return self

    def _preprocessed(self, X: ArrayLike, y: ArrayLike, seen: NDArray[np.intp]) -> ArrayLike:
        """Fit the preprocessor on some rows and transform all of them."""
        self.preprocessor_ = None
        if self.preprocessor is None:
            return X
        step = clone(self.preprocessor)
        self.preprocessor_ = step.fit(_safe_indexing(X, seen), _safe_indexing(y, seen))
        transformed: ArrayLike = self.preprocessor_.transform(X)
        return transformed

    def _fit_certified(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> None:
        random_state = check_random_state(self.random_state)
        grow, weigh = deal(_num_samples(X), float(self.split or 0), random_state, groups)
        table = self._preprocessed(X, y, grow)
        self.categories_ = categories_of(table, self.categorical_features)
        if self.categories_ is not None:  # those of the growing rows alone
            seen = _safe_indexing(table, grow)
            self.categories_ = categories_of(seen, self.categorical_features)
        rows, target = checked_rows(self, table, y)
        weight = self._row_weights(rows, target, sample_weight)
        classes = self._coded(target)
        growing = _Training(
            np.ascontiguousarray(rows[grow]),
            classes[grow],
            None if weight is None else weight[grow],
            None,
        )
        tree, pruning, laws = self._grown(growing, random_state)
        n_classes = max(2, self.n_classes_)
        held = held_out(
            tree,
            rows,
            classes,
            n_classes,
            grow=grow,
            weigh=weigh,
            groups=groups,
            n_jobs=self.n_jobs,
        )
        weighing = None
        if weight is not None:
            leaf = tree.route(rows, threads(self.n_jobs))
            grown = self._counted(tree, leaf[grow], classes[grow], weight[grow])
            counts = self._counted(tree, leaf[weigh], classes[weigh], weight[weigh]).counts
            weighing = NodeStats(counts, grown.label)
            held = replace(held, grown=grown, stats=NodeStats(held.stats.counts, grown.label))
        method = self._methods()[0]
        election = Election(held, pruning, self.delta, method.voting, weighing)
        chosen = [] if laws is None else [laws[1].law(laws[0].family(tree, election.stats))]
        self.election_ = election
        self._deploy(tree, elect(election, chosen, self.deploy), laws)

    def _fit_box(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> None:
        """Let all rows weigh and certify a tree in which none of them has had a part."""
        wanted = {
            "partition": (self.partition == "dyadic", '"dyadic"'),
            "split": (self.split is None, "None"),
            "preprocessor": (self.preprocessor is None, "None: it would see the rows"),
            "class_weight": (self.class_weight is None, "None"),
            "sample_weight": (sample_weight is None, "None"),
            "groups": (groups is None, "None"),
        }
        for name, (holds, value) in wanted.items():
            if not holds:
                raise ValueError(f"with a box, {name} must be {value}")
        self.preprocessor_ = self.categories_ = None
        rows, target = checked_rows(self, X, y)
        classes = self._coded(target)
        depth = int(np.log2(len(rows))) if self.max_depth is None else self.max_depth
        if isinstance(depth, str):
            raise ValueError(f"with a box, max_depth must be a whole number or None, got {depth!r}")
        low, high = np.asarray(self.box, dtype=np.float64)
        tree = dyadic_grid(low, high, min(depth, DEEPEST_GRID))
        every = np.arange(len(rows))
        held = held_out(
            tree, rows, classes, max(2, self.n_classes_), grow=[], weigh=every, n_jobs=self.n_jobs
        )
        self.election_ = LabelledElection(held, self.delta)
        self._deploy(tree, elect_labelled(self.election_), None)

    def _counted(
        self, tree: Tree, leaf: Int32, y: NDArray[Any], weight: Float64 | None
    ) -> NodeStats:
        stats = self._summarise(tree, leaf, y, weight)
        assert isinstance(stats, NodeStats)  # of classes
        return stats

    def _grown(
        self, growing: _Training, random_state: np.random.RandomState
    ) -> tuple[Tree, NodeWeights, tuple[Candidate, Mixture] | None]:
        """Tree and cross-validated pruning of the growing rows and, if asked for, their laws."""
        grower = self._grower(int(random_state.randint(2**31 - 1))).on(growing.X)
        tree = grower(growing.X, growing.y, growing.weight)
        folds = self._grown_folds(growing, growing.folds(self.cv, random_state, True), grower)
        objective = Objective.of(folds, Candidate(cost_complexity_family, Voting("mean")), "error")
        (price,) = tune(objective, [None])
        leaf = tree.route(growing.X, threads(self.n_jobs))
        stats = self._summarise(tree, leaf, growing.y, growing.weight)
        pruning = cost_complexity_family(tree, stats).at(price)
        given = any(getattr(self, name) is not None for name in self._temperatures)
        by_bound = self.tune == "bound" or (self.tune is None and not given)
        return tree, pruning, None if by_bound else self._tuned(folds)

    def _deploy(
        self, tree: Tree, deployed: Deployed, laws: tuple[Candidate, Mixture] | None
    ) -> None:
        """Set the fitted attributes."""
        temperatures = [0.0 if deployed.lambda_error is None else deployed.lambda_error, 0.0]
        self._set_laws(Mixture.of_one(temperatures) if laws is None else laws[1])
        self._set_fitted(tree, deployed.stats, deployed.weights, deployed.ballot)
        self.certificate_ = deployed.certificate
        self.certificates_ = (*deployed.rivals, *deployed.others)

    def _leaves(self, X: ArrayLike) -> Int32:
        step = getattr(self, "preprocessor_", None)
        return super()._leaves(X if step is None else step.transform(X))

    def certify(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, delta: float | None = None
    ) -> Certificate:
        """Certify the fitted model by rows that were never used.

        Parameters
        ----------
        X : array-like of shape (n, p), or None
            Rows that no step of the fit or of a search has seen; None: the certificate of the fit.
        y : array-like of shape (n,), or None
            Their classes.
        delta : float or None
            Probability with which the promise may fail; None: the estimator's `delta`.

        Returns
        -------
        Certificate
            The exact binomial bound, or `certificate_`.

        Raises
        ------
        ValueError
            If there are neither rows nor a certificate of the fit.
        """
        check_is_fitted(self)
        if X is not None and y is not None:
            return certify(self, X, y, self._delta(delta))
        if (X is None) != (y is None):
            raise ValueError("certify takes both X and y, or neither")
        if self.certificate_ is None:
            raise ValueError(_NO_CERTIFICATE)
        return self.certificate_

    def selective_certificates(self, delta: float | None = None) -> tuple[Selective, ...]:
        """Certify the fitted vote where it answers, for several margins below which it is silent.

        Parameters
        ----------
        delta : float or None
            Probability with which any of these promises may fail, apart from that of the fit; None:
            the estimator's `delta`.

        Returns
        -------
        tuple of Selective
            By rising margin; take any of them, such as the first whose bound is low enough, and its
            margin for `predict_selective`.

        Raises
        ------
        ValueError
            If the model was fitted without a split or a box, by groups, or was loaded from a file.
        """
        election = self._elected()
        return selective_certificates(
            election.held, self.vote_, election.prior, self._delta(delta)
        )

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
        smallest = nonnegative("margin", margin)
        leaf = self._leaves(X)
        label: NDArray[Any] = self.classes_.take(self._label.take(leaf))
        return label, margins(self.vote_)[leaf] >= smallest

    def certify_pruning(self, pruning: NodeWeights, delta: float | None = None) -> Certificate:
        """Certify any pruning of the tree with the labels of the growing rows, edited by hand, too.

        All prunings are covered at once, so that the lowest bound of any number of them holds.

        Parameters
        ----------
        pruning : NodeWeights
            Weights 0 and 1 over the nodes of `tree_`, such as ``map_pruning(tree_, weights_)``.
        delta : float or None
            As in `selective_certificates`.

        Returns
        -------
        Certificate

        Raises
        ------
        TypeError
            If `pruning` holds no weights of nodes.
        ValueError
            As in `selective_certificates`, if the weights are not 0 and 1, or with a box: labels are
            weighed there, and a pruning has none of its own.
        """
        election = self._of_growing_rows()
        if not isinstance(pruning, NodeWeights):
            raise TypeError(f"pruning must be NodeWeights, got {pruning!r}")
        return occam_pruning(election.held, pruning, election.prior, self._delta(delta))

    def draw_pruning(self, random_state: Any = None, delta: float | None = None) -> Drawn:
        """Draw a single pruning from the law of the fit, once, and certify it.

        To draw again and keep the better one breaks the promise; see `single_draw`.

        Parameters
        ----------
        random_state : int, RandomState or None
            Source of the draw, which must not depend on the rows.
        delta : float or None
            As in `selective_certificates`.

        Returns
        -------
        Drawn
            The pruning and its certificate.

        Raises
        ------
        ValueError
            As in `certify_pruning`.
        """
        election = self._of_growing_rows()
        seed = check_random_state(random_state).randint(2**31 - 1)
        return single_draw(
            election.held, self.weights_, election.prior, self._delta(delta), rng=seed
        )

    def _delta(self, given: float | None) -> float:
        return self.delta if given is None else given

    def _elected(self) -> Election | LabelledElection:
        check_is_fitted(self)
        if self.certificate_ is None:
            raise ValueError(_NO_CERTIFICATE)
        if self.election_ is None:
            raise ValueError(
                "A model file does not keep the rows of the fit. Certify before saving"
            )
        return self.election_

    def _of_growing_rows(self) -> Election:
        election = self._elected()
        if not isinstance(election, Election):
            raise ValueError("with a box no growing rows label the prunings: expected a split")
        return election

    def report(self) -> str:
        """Say what was fitted and what is certified.

        Returns
        -------
        str
            Some sentences.
        """
        check_is_fitted(self)
        leaves = self.weights_.expected_leaves
        size = (
            f"A tree of {self.get_n_leaves():,} leaves; its prunings have {leaves:,.1f} leaves on "
            "average."
        )
        if self.certificate_ is None:
            return f"{size} {_NO_CERTIFICATE}."
        if self.box is not None:
            size += " It halves the given box, and is the same whatever the rows are."
        parts = self.certificate_.parts
        shares = ", ".join(
            f"{100 * value:.1f} % {name}"
            for name, value in (
                ("observed error", parts.observed),
                ("complexity", parts.complexity),
                ("confidence", parts.confidence),
            )
        )
        return f"{size} {self.certificate_} The bound is made of {shares}."
