"""Boosted trees that rank the documents of queries by LambdaMART, and whose prunings vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    column_or_1d,
)

from certree.ensembles.boosting import BoostedTrees, BoostedTreesClassifier, Quality
from certree.ensembles.evaluation import Callback, check_callbacks
from certree.ensembles.losses import RankingLoss
from certree.ensembles.round_schedule import RANKING_SCHEDULE, RoundSchedule
from certree.ensembles.rounds import BoostingRun
from certree.ensembles.time_limit import TimeLimit
from certree.export.formula import Link
from certree.interface.arrays import Float64, Int32, raise_for_zero_weights, to_contiguous
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import fit_method, snapshot_method
from certree.interface.signatures import COUNT
from certree.rows.folds import Indices
from certree.rows.monotonic import MonotonicCst
from certree.rows.out_of_core import expect_in_memory
from certree.rows.queries import (
    expect_equal_weights_in_queries,
    expect_no_queries,
    number_queries,
    sort_by_query,
)
from certree.rows.training import Training, expect_value_per_row

# Largest cutoff: the core has int64.
_MAX_CUTOFF = 2**62


@copy_descriptions_from(BoostedTreesClassifier)
class BoostedTreesRanker(BoostedTrees):
    """Boosted trees that rank the documents of queries, in which all prunings of each tree vote.

    Each row is a document of a query. A round takes the gradients of LambdaMART: the logistic loss
    of the order of two documents of a query with different relevance, times a weight of the pair.
    Whole queries are in-bag, and grow the tree, or out-of-bag, and weight its prunings (subtrees
    with the same root). A document of relevance y at a rank gains ``(2**y - 1) / log2(1 + rank)``,
    as in LightGBM and XGBoost.

    The weight of a pair is the difference between the gains ``2**y`` of its documents, times one
    plus the difference between the discounts ``1 / log2(1 + rank)`` of their ranks. LambdaMART as
    published has no "one plus". With it pairs far down the ranking count, too, which improves
    rankings if there are few queries.

    Parameters
    ----------
    truncation_level : int, default=30
        A pair counts if the better ranked of its documents has at most this rank; LightGBM's
        `lambdarank_truncation_level`.
    ndcg_at : int or None, default=10
        Number of ranks that NDCG counts; None: all ranks.
    quality : {"fast", "default", "best"}, default="default"
        "fast": 200 rounds. "best": 1200 rounds, and the mean of four fits with different seeds,
        stored as one model; not with `warm_start`. Explicit values of other parameters have priority.
    {learning_rate}
    max_iter : int or "auto", default="auto"
        Number of rounds. "auto": 400, or with early stopping at most 1600. Cross-validation is not
        used, as NDCG of few queries is noisy and too many rounds do little harm.
    {max_time}
    max_leaf_nodes : int, "auto" or None, default="auto"
        Largest number of leaves of a tree. "auto": 16 to 1000 rows, 31 from 3000 rows on, and in
        between by interpolation; None: no limit.
    {max_depth} {min_samples_leaf}
    l2_regularization : float, default=5
        Regularization of leaf values: the sum of Hessians with which the value of a node is shrunk
        towards the value of its parent; a row has Hessian 1 on average.
    max_features : float or "auto", default="auto"
        Fraction of the features that a round may split on. "auto": all.
    max_thresholds : int, "auto" or None, default="auto"
        Number of thresholds that are drawn for each tree and each feature with more than 32 values;
        the tree splits at no other thresholds. None: all thresholds. "auto": one for each 500 rows,
        at least 6, and all thresholds, in turn; with quality "fast" never all.
    subsample : float, default=0.7
        Fraction of the queries that are in-bag in a round; the out-of-bag queries weight the prunings.
    {prunings} {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by its name: 1 if scores must not fall if the feature rises, -1 if they
        must not rise, 0 otherwise.
    interaction_cst : list of collections of int, or None, default=None
        Groups of features that may be used together on a path of a tree; None: all features may.
    warm_start : bool, default=False
        Whether a fit adds rounds to those of the previous fit, until there are `max_iter`. Only
        `max_iter`, `max_time`, `n_iter_no_change`, `tol`, `n_jobs`, `verbose` and `warm_start` may
        change between fits.
    early_stopping : bool or "auto", default=False
        Whether a fit stops if new rounds do not improve NDCG on a validation set; rounds after the
        best one are dropped. "auto": True for more than 10,000 rows.
    validation_fraction : float, int or None, default=0.1
        Fraction or number of the queries that early stopping holds out as validation set if `fit`
        gets no `X_val`. None: training queries are scored instead.
    n_iter_no_change : int, default=10
        The fit stops after so many rounds without an improvement on the best NDCG.
    tol : float, default=1e-7
        Smallest improvement that counts.
    random_state : int, RandomState or None, default=None
        Seed of the queries and thresholds that rounds draw. The model does not depend on the order
        of rows or queries, on the names of queries, or on the number of threads.
    {n_jobs} {verbose}

    Attributes
    ----------
    n_iter_ : int
        Number of rounds of each of the fits that are averaged.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        NDCG - 1 of the training and validation queries before the first and after each round; see
        `BoostedTreesClassifier` also for the attributes that are not listed here.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", 2010; Järvelin and Kekäläinen,
    "Cumulated gain-based evaluation of IR techniques", 2002, for NDCG. The vote in every round is
    new here.

    Examples
    --------
    >>> from certree.ensembles import BoostedTreesRanker
    >>> model = BoostedTreesRanker().fit([[k] for k in range(40)], [0, 1] * 20, group=[2] * 20)
    >>> bool(model.predict([[0], [39]]).argmax() == 1)
    True

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
    # Scorers of scikit-learn do not know queries.
    scoring: ClassVar[str] = "loss"

    def __init__(
        self,
        *,
        truncation_level: int = 30,
        ndcg_at: int | None = 10,
        quality: Quality = "default",
        learning_rate: float | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        max_time: float | None = None,
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
    def fit(  # type: ignore[override] # queries instead of groups and offsets
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
        """Fit the trees round by round; each round improves the ranking by the sum of all trees so far.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, each a document of a query; NaN stands for a missing value.
        y : array-like of shape (n,)
            Relevance of each row, in 0 .. 31, usually an integer.
        sample_weight : array-like of shape (n,), or None
            Weight of the query of each row, equal for all rows of a query, relative to the mean
            weight. Whatever its weight, a query is in-bag or
            out-of-bag as a whole. A query of weight zero is ignored.
        group : array-like of int, shape (n_queries,), or None
            Number of rows of each query; rows of a query follow each other, as in LightGBM.
        qid : array-like of shape (n,), or None
            Number or name of the query of each row, in any order, as in XGBoost. Give exactly one
            of `group` and `qid`.
        X_val, y_val : array-like of shape (n_val, p) and (n_val,), or None
            Validation set, which is scored after each round and grows no tree. With
            `early_stopping` it decides the number of rounds.
        sample_weight_val, group_val, qid_val : array-like, or None
            Weights and queries of the validation set, like `sample_weight`, `group` and `qid`.
        callbacks : list of callables, or None
            Functions that are called after each round; see `BoostedTreesClassifier.fit`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If `group` or `qid` does not match the rows, or weights differ within a query; with
            ``warm_start=True``, if a parameter of the previous rounds has changed; if there are too
            few queries for a validation set.
        """
        limit = TimeLimit.start(self.max_time)
        callbacks = check_callbacks(callbacks)
        expect_in_memory(self, X)
        before = self._get_previous_trees()
        query = number_queries(_num_samples(X), group, qid)
        training = sort_by_query(
            self._prepare_training(X, y, sample_weight, reuse_encoding=before is not None), query
        )
        self._has_offset = False
        validation, _ = self._make_validation_set(X_val, y_val, sample_weight_val, None)
        if validation is None:
            expect_no_queries(group_val, qid_val)
        else:
            query = number_queries(_num_samples(X_val), group_val, qid_val, "_val")
            validation = sort_by_query(validation, query)
        self._fit_rounds(training, before, validation, callbacks, limit)
        return self

    def _start_run(self, training: Training, loss: Any) -> tuple[BoostingRun, Float64]:
        run, start = super()._start_run(training, loss)
        query: Any = training.split.groups
        return run.copy_without_trees(query=query), start

    def _make_loss(self) -> RankingLoss:
        cutoffs = self.truncation_level, self.ndcg_at or 0
        return RankingLoss(cutoffs=(min(cutoffs[0], _MAX_CUTOFF), min(cutoffs[1], _MAX_CUTOFF)))

    def _encode_targets(self, y: Any) -> NDArray[Any]:
        return np.asarray(column_or_1d(y), dtype=np.float64)

    def _decode_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _link(self) -> Link:
        return "identity"

    def _predict_from_scores(self, scores: Float64) -> NDArray[Any]:
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
        """Compute the mean NDCG at `ndcg_at` over queries.

        Documents with equal scores share the mean gain of their ranks. A query without relevant
        documents has NDCG 1, as in LightGBM.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Their relevance.
        sample_weight : array-like of shape (n,), or None
            Weight of the query of each row, equal for all rows of a query; None: queries count equally.
        group, qid : array-like, or None
            Queries of the rows, exactly one of both: the number of rows of each query,
            (n_queries,), or the number or name of each row's query, (n,).

        Returns
        -------
        float
            Between 0 and 1.
        """
        rows, relevance, query, order = self._prepare_queries(X, y, group, qid)
        weight = None
        if sample_weight is not None:
            weight = to_contiguous(
                _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
            )
            expect_equal_weights_in_queries(weight, query)
            if not weight.any():
                raise_for_zero_weights()
            weight = weight[order]
        score = self._compute_row_scores(rows)[0, order]
        return 1 - self._make_loss().compute_query_loss(
            relevance[order], score, weight, query[order]
        )

    @snapshot_method
    def staged_loss(  # type: ignore[override] # queries instead of offsets
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Float64:
        """Compute 1 - NDCG at `ndcg_at` after each round, as the unweighted mean over queries.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Their relevance.
        group, qid : array-like, or None
            Queries of the rows, exactly one of both: the number of rows of each query,
            (n_queries,), or the number or name of each row's query, (n,).

        Returns
        -------
        ndarray of shape (`n_iter_`,)
            The mean after 1, 2, ..., `n_iter_` rounds, each between 0 and 1.
        """
        rows, relevance, query, order = self._prepare_queries(X, y, group, qid)
        relevance, query, loss = relevance[order], query[order], self._make_loss()
        return np.array(
            [
                loss.compute_query_loss(relevance, scores[0, order], None, query)
                for scores in self._iterate_scores(rows)
            ]
        )

    def _prepare_queries(
        self, X: Any, y: Any, group: Any, qid: Any
    ) -> tuple[NDArray[Any], Float64, Int32, Indices]:
        """Check and encode rows with queries.

        X: rows, array-like of shape (n, p); y: relevance of each row; group: number of rows of each
        query; qid: query of each row; exactly one of both is not None. Return the encoded rows, (n,
        p); relevance, (n,); number of each row's query, (n,); and an order of the rows in which the
        rows of a query follow each other, (n,).
        """
        rows, relevance = self._encode_new_rows_or_csr(X), self._encode_targets(y)
        expect_value_per_row("y", relevance, rows)
        self._make_loss().check_targets(relevance)
        query = number_queries(rows.shape[0], group, qid)
        return rows, relevance, query, np.argsort(query, kind="stable")
