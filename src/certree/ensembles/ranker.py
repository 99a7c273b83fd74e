"""Boosted trees that rank the documents of queries by LambdaMART, and whose prunings vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
    column_or_1d,
)

from certree.ensembles.boosting import BoostedTrees, Quality
from certree.ensembles.evaluation import Callback, checked_callbacks
from certree.ensembles.losses import RankingLoss
from certree.ensembles.round_schedule import RANKING_SCHEDULE, RoundSchedule
from certree.ensembles.rounds import Rounds
from certree.export.formula import Link
from certree.grow.training_samples import MonotonicCst
from certree.interface.arrays import Float64, Int32, to_contiguous
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import COUNT
from certree.rows.folds import Indices
from certree.rows.out_of_core import expect_in_memory
from certree.rows.queries import (
    expect_equal_weights_in_queries,
    expect_no_queries,
    number_queries,
    sort_by_query,
)
from certree.rows.training import Training

# Documents of a query, at most: the core counts them in int64.
_LONGEST_LIST = 2**62


class BoostedTreesRanker(BoostedTrees):
    """Boosted trees that rank the documents of queries, in which every pruning of every tree votes.

    Each round takes slopes of LambdaMART: of pairs of documents of a query whose relevance differs, the
    logistic loss of their order, by what this is worth. Whole queries grow the tree of the round, the
    others weigh its prunings. A document of relevance y gains ``2**y - 1`` by
    ``1 / log2(1 + rank)``, as in LightGBM; XGBoost does so, too, and CatBoost gains y by itself.

    A pair is worth the gains of one document beyond those of the other, times the difference between
    the discounts of their places and one more. Differences alone are LambdaMART as published; pairs
    far down say as much of the features, and few queries rank better with them.

    Parameters
    ----------
    truncation_level : int, default=30
        A pair counts if the better ranked of the two is among so many; LightGBM's
        `lambdarank_truncation_level`.
    ndcg_at : int or None, default=10
        How many of the best ranked documents NDCG looks at, by which queries are judged; None: all.
    quality : {"fast", "default", "best"}, default="default"
        "fast": 200 rounds. "best": 1200, and the average of four fits of different seeds, stored as one
        model; not with `warm_start`. Parameters that are given win.
    learning_rate : float, default=0.1
        Factor of each tree's steps.
    max_iter : int or "auto", default="auto"
        Number of rounds. "auto": 400, with early stopping 1600 at most; more at a smaller
        `learning_rate` than .1, up to twenty times as many. It is not chosen by cross-validation: NDCG
        of few queries says too little, and rounds too many do little harm.
    max_leaf_nodes : int, "auto" or None, default="auto"
        So many leaves a tree at most. "auto": 16 below 3000 rows, else 31.
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    min_samples_leaf : int, default=5
        Training samples in each leaf.
    l2_regularization : float, default=5
        Sum of Hessians by which the step of a cell is drawn to that of its parent; a row has 1 on
        average.
    max_features : float or "auto", default="auto"
        Share of the features that a round looks at. "auto": all of them.
    max_thresholds : int, "auto" or None, default="auto"
        So many thresholds of each feature that has more than 32 values are drawn for each tree, which
        makes no other cuts; None: all. "auto": few and all in turn, but few for "fast".
    subsample : float, default=0.7
        Share of the queries that grow the tree of a round; the others weigh its prunings.
    prunings : {"vote", "none"}, default="vote"
        "none": the whole trees step, for comparison.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if scores must not fall where it rises, -1 if they must not
        rise, 0 otherwise.
    interaction_cst : list of collections of int, or None, default=None
        Groups of features that may act together in a tree.
    warm_start : bool, default=False
        Whether a fit adds rounds, up to `max_iter`, to those of the fit before. Of the parameters only
        `max_iter`, `n_iter_no_change`, `tol`, `n_jobs`, `verbose` and `warm_start` may change between
        them.
    early_stopping : bool or "auto", default=False
        Whether a fit stops once new rounds gain nothing in NDCG on queries that have no part in them,
        and keeps those up to the best one; "auto": from 10,001 rows on.
    validation_fraction : float, int or None, default=0.1
        Share or number of the queries that early stopping holds out if `fit` is given no `X_val`.
        None: those that train judge, too.
    n_iter_no_change : int, default=10
        So many rounds without a gain on the best NDCG before are the last ones.
    tol : float, default=1e-7
        What a gain must exceed.
    random_state : int, RandomState or None, default=None
        Decides queries and thresholds of the rounds. The model depends neither on the order of the rows
        or queries, nor on what these are called, nor on the number of threads.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds, of each of the fits that are averaged.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        NDCG less 1 of the queries that train, and of those that judge; see `BoostedTreesClassifier`,
        whose other attributes the model has, but for those that speak of classes.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", 2010; Järvelin and Kekäläinen,
    "Cumulated gain-based evaluation of IR techniques", 2002, for NDCG. The vote in every round is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.ensembles import BoostedTreesRanker
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(600, 3)), np.full(60, 10)
    >>> y = np.digitize(X[:, 0] + X[:, 1], [0.5, 1.5])
    >>> model = BoostedTreesRanker(max_iter=50, random_state=0).fit(X, y, group=group)
    >>> bool(model.predict(X[:10]).argmax() == (X[:10, 0] + X[:10, 1]).argmax())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedTrees._parameter_constraints,
        "truncation_level": [COUNT],
        "ndcg_at": [COUNT, None],
    }
    # Scorers would have to be told which rows are ranked together.
    scoring: ClassVar[str] = "loss"

    def __init__(
        self,
        *,
        truncation_level: int = 30,
        ndcg_at: int | None = 10,
        quality: Quality = "default",
        learning_rate: float = 0.1,
        max_iter: int | Literal["auto"] = "auto",
        max_leaf_nodes: int | Literal["auto"] | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int = 5,
        l2_regularization: float = 5.0,
        max_features: float | Literal["auto"] = "auto",
        max_thresholds: int | Literal["auto"] | None = "auto",
        subsample: float = 0.7,
        prunings: Literal["vote", "none"] = "vote",
        categorical_features: Any = "from_dtype",
        monotonic_cst: MonotonicCst = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: bool | Literal["auto"] = False,
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    _draws_rows: ClassVar[bool] = False
    _SCHEDULE: ClassVar[RoundSchedule] = RANKING_SCHEDULE

    @fit_method
    def fit(  # type: ignore[override] # rows have queries instead of groups and offsets
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        group_val: ArrayLike | None = None,
        qid_val: ArrayLike | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Grow trees, each of which ranks documents better than those before it.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, each a document of a query; NaN stands for a missing value.
        y : array-like of shape (n,)
            Relevance of each row, in 0 .. 31; whole numbers as a rule.
        sample_weight : array-like of shape (n,), or None
            Weight of each row's query, the same for all its rows, relative to the mean weight. A query
            is one draw whatever it weighs; one of weight zero is as if absent.
        group : array-like of int, shape (n_queries,), or None
            How many rows each query has, one query behind the other, as in LightGBM.
        qid : array-like of shape (n,), or None
            Number or name of each row's query, as in XGBoost; rows of a query need not stand together.
            Exactly one of `group` and `qid` must be given.
        X_val, y_val : array-like of shape (n_val, p) and (n_val,), or None
            Rows that are scored after each round. They grow no tree; with `early_stopping` they say how
            many rounds there are, and without it nothing.
        sample_weight_val, group_val, qid_val : array-like, or None
            Weights of their queries, and which these are.
        callbacks : list of callables, or None
            See `BoostedTreesClassifier.fit`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If queries do not go with the rows, or weights differ within one; with
            ``warm_start=True``, if a parameter has changed that made the rounds before; if queries are
            too few to hold some out.
        """
        callbacks = checked_callbacks(callbacks)
        expect_in_memory(self, X)
        before = self._trees_before()
        query = number_queries(_num_samples(X), group, qid)
        training = sort_by_query(
            self._prepare_training(X, y, sample_weight, reuse_encoding=before is not None), query
        )
        self._has_offset = False
        judges, _ = self._judges(X_val, y_val, sample_weight_val, None)
        if judges is None:
            expect_no_queries(group_val, qid_val)
        else:
            query = number_queries(_num_samples(X_val), group_val, qid_val, "_val")
            judges = sort_by_query(judges, query)
        self._fit_rounds(training, before, judges, callbacks)
        return self

    def _started(self, training: Training, loss: Any) -> tuple[Rounds, Float64]:
        run, start = super()._started(training, loss)
        query: Any = training.split.groups
        return run.anew(query=query), start

    def _loss(self) -> RankingLoss:
        pairs, judged = self.truncation_level, self.ndcg_at or 0
        return RankingLoss(depths=(min(pairs, _LONGEST_LIST), min(judged, _LONGEST_LIST)))

    def _targets(self, y: Any) -> NDArray[Any]:
        return np.asarray(column_or_1d(y), dtype=np.float64)

    def _given_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _link(self) -> Link:
        return "identity"

    def _answers(self, scores: Float64) -> NDArray[Any]:
        return scores[0]

    @snapshot_method
    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> float:
        """Mean NDCG at `ndcg_at` of some queries.

        Documents of equal score share their places; a query without relevant documents has NDCG 1, as
        in LightGBM.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Their relevance.
        sample_weight : array-like of shape (n,), or None
            Weight of each row's query, the same for all its rows.
        group, qid : array-like, or None
            Which rows are ranked together; see `fit`.

        Returns
        -------
        float
            Between 0 and 1.
        """
        rows, known, query, order = self._judged(X, y, group, qid)
        weight = None
        if sample_weight is not None:
            weight = to_contiguous(
                _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
            )
            expect_equal_weights_in_queries(weight, query)
            if not weight.any():
                raise ValueError("sample_weight must be positive for at least one row")
            weight = weight[order]
        score = self._scores_of(rows)[0, order]
        return 1 - self._loss().of_queries(known[order], score, weight, query[order])

    @snapshot_method
    def staged_loss(  # type: ignore[override] # rows have queries instead of offsets
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Float64:
        """1 - NDCG at `ndcg_at` of some queries after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Their relevance.
        group, qid : array-like, or None
            Which rows are ranked together; see `fit`.

        Returns
        -------
        ndarray of shape (T,)
            The mean over the queries.
        """
        rows, known, query, order = self._judged(X, y, group, qid)
        known, query, loss = known[order], query[order], self._loss()
        staged = self._staged(rows)
        return np.array([loss.of_queries(known, one[0, order], None, query) for one in staged])

    def _judged(
        self, X: Any, y: Any, group: Any, qid: Any
    ) -> tuple[NDArray[Any], Float64, Int32, Indices]:
        """Rows, their relevance and queries, and an order in which queries stay together."""
        rows, known = self._encode_new_rows_or_csr(X), self._targets(y)
        check_consistent_length(rows, known)
        self._loss().expect_domain(known)
        query = number_queries(rows.shape[0], group, qid)
        return rows, known, query, np.argsort(query, kind="stable")
