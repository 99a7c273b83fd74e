"""Ranking documents of queries: gradients of pairs, NDCG, and independence of the order of rows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupKFold, cross_val_score

import reference
from certree import BoostedTreesRanker, _core, load, save
from certree.ensembles.rounds import advance
from certree.explain import shapley_values
from certree.export import check_export
from certree.rows.queries import number_queries
from weight_units import expect_no_unit

FAST = {"max_iter": 12, "random_state": 0}


def worlds(n_queries=40, seed=0, p=4):
    """Documents of queries of 1 to 12 each, and their queries."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 13, size=n_queries)
    qid = np.repeat(np.arange(n_queries), group)
    X = rng.normal(size=(len(qid), p))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(qid)), [0.0, 1.0, 2.0])
    return X, y.astype(float), group, qid


@st.composite
def ranked(draw):
    """Queries, relevances, scores, of which some are equal, weights or none, and depths."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    query = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    y = rng.integers(0, draw(st.integers(1, 5)), size=len(query)).astype(float)
    score = rng.normal(size=len(query)).round(draw(st.integers(0, 3))) * draw(
        st.sampled_from([0.0, 1.0, 30.0])
    )
    weight = rng.uniform(0.5, 3, size=len(sizes))[query] if draw(st.booleans()) else None
    return query, y, score, weight, draw(st.integers(1, 10)), draw(st.integers(0, 10))


@given(ranked())
def test_gradients_are_those_of_the_literal_loops_over_pairs(world):
    query, y, score, weight, truncation, at = world
    found = _core.compute_ranking_gradients((query, truncation, at), y, score, weight, 1)
    expected = reference.compute_ranking_gradients(query, truncation, y, score, weight)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.abs(other).max())
    spread = reference.compute_ranking_dispersion(*expected, weight)
    assert _core.estimate_gradient_dispersion(*found, weight) == pytest.approx(spread, rel=1e-9)


@given(ranked())
def test_gradients_of_a_query_sum_to_nothing(world):
    query, y, score, weight, truncation, at = world
    gradient, hessian = _core.compute_ranking_gradients(
        (query, truncation, at), y, score, weight, 1
    )
    largest = np.abs(gradient).max() + 1
    np.testing.assert_allclose(np.bincount(query, gradient) / largest, 0, atol=1e-12)
    assert (hessian > 0).all()
    for number in np.unique(query):  # nothing to tell apart, or nothing beside it
        if len(set(y[query == number])) == 1:
            assert (gradient[query == number] == 0).all()


@given(ranked(), st.integers(0, 2**32 - 1))
def test_gradients_are_those_of_the_pairs_losses_whose_worth_stays(world, seed):
    query, y, score, weight, truncation, _ = world
    pairs = reference.find_ranking_pairs(query, truncation, y, score)
    unit = reference.compute_ranking_unit(pairs, score, weight, query)

    def loss(scores):
        of_pair = [
            worth * (1 if weight is None else weight[i]) * np.logaddexp(0, scores[j] - scores[i])
            for i, j, worth in pairs
        ]
        return sum(of_pair) / unit

    gradient, _ = _core.compute_ranking_gradients((query, truncation, 0), y, score, weight, 1)
    way = np.random.default_rng(seed).normal(size=len(y))
    step = 1e-5
    slope = (loss(score + step * way) - loss(score - step * way)) / (2 * step)
    assert gradient @ way == pytest.approx(slope, rel=1e-4, abs=1e-5 * np.abs(gradient).max())


@given(ranked())
def test_ndcg_is_that_of_scikit_learn(world):
    query, y, score, weight, truncation, at = world
    found = 1 - _core.compute_mean_ranking_loss((query, truncation, at), y, score, weight)
    told, weights = [], []
    for number in np.unique(query):
        mine = query == number
        gains = 2 ** y[mine] - 1
        known = (
            ndcg_score([gains], [score[mine]], k=at or None)
            if mine.sum() > 1 and gains.any()
            else 1.0
        )
        told.append(known)
        weights.append(1 if weight is None else weight[mine][0])
    assert found == pytest.approx(np.average(told, weights=weights))
    expected = 1 - reference.compute_mean_ranking_loss(query, at, y, score, weight)
    assert found == pytest.approx(expected)


def test_gradients_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(1500, dtype=np.int32), rng.integers(1, 25, size=1500))
    y, score = rng.integers(0, 5, len(query)).astype(float), rng.normal(size=len(query))
    alone = _core.compute_ranking_gradients((query, 30, 10), y, score, None, 1)
    for n_threads in (2, 3, 8):
        many = _core.compute_ranking_gradients((query, 30, 10), y, score, None, n_threads)
        for one, other in zip(alone, many, strict=True):
            np.testing.assert_array_equal(one, other)


def test_scores_beyond_float64_rank_last_and_stop_nothing():
    query, y = np.zeros(4, dtype=np.int32), np.array([3.0, 0.0, 1.0, 2.0])
    score = np.array([np.nan, np.inf, -np.inf, 1.0])
    gradient, hessian = _core.compute_ranking_gradients((query, 30, 0), y, score, None, 1)
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert 0 < _core.compute_mean_ranking_loss((query, 30, 0), y, score, None) < 1


@pytest.mark.parametrize(
    "given",
    [
        (np.zeros(3, dtype=np.int32), 30, 10),
        (np.zeros(4, dtype=np.int32), 0, 10),
        (np.zeros(4, dtype=np.int32), 30, -1),
    ],
)
def test_the_core_refuses_queries_that_do_not_fit(given):
    with pytest.raises(ValueError, match=r"query|number of documents"):
        _core.compute_ranking_gradients(given, np.zeros(4), np.zeros(4), None, 1)


def same(one, other, X):
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    for name in ("feature", "threshold", "left", "value"):
        np.testing.assert_array_equal(getattr(one.trees_, name), getattr(other.trees_, name))


@pytest.mark.parametrize("prunings", ["vote", "none"])
def test_neither_order_nor_names_nor_threads_change_the_model(prunings):
    X, y, group, qid = worlds()
    model = BoostedTreesRanker(**FAST, prunings=prunings, n_jobs=1).fit(X, y, group=group)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))  # within queries, and of queries, which need not be runs
        names = np.array([f"q{k}" for k in rng.permutation(len(group))])[qid]
        other = clone(model).set_params(n_jobs=2).fit(X[order], y[order], qid=names[order])
        same(model, other, X)
    other = clone(model).fit(X, y, qid=names.astype(object))
    same(model, other, X)


def test_rows_and_queries_that_are_alike_change_places_unseen():
    X, y, _, qid = worlds(12)
    X, y = X.round(0), np.minimum(y, 1)
    X, y = np.concatenate([X, X, X]), np.concatenate([y, y, y])
    qid = np.concatenate([qid, qid + 100, qid + 200])
    model = BoostedTreesRanker(**FAST).fit(X, y, qid=qid)
    order = np.random.default_rng(1).permutation(len(y))
    same(model, clone(model).fit(X[order], y[order], qid=-qid[order]), X)


def test_a_query_is_one_draw_whatever_it_weighs(monkeypatch):
    X, y, group, qid = worlds(20)
    weight = np.random.default_rng(0).integers(1, 4, size=len(group))[qid].astype(float)
    runs = []
    monkeypatch.setattr(
        "certree.ensembles.evaluation.advance",
        lambda made, *how: runs.append(made[0]) or advance(made, *how),
    )
    model = BoostedTreesRanker(**FAST)
    for weights in (None, weight):
        model.fit(X, y, weights, group=group)
    plain, weighed = runs[0], runs[-1]
    assert len(weighed.keys) == len(y)
    assert len(np.unique(weighed.keys)) == len(group)
    # Nothing that draws queries knows their weights.
    np.testing.assert_array_equal(np.sort(plain.keys), np.sort(weighed.keys))


def test_a_score_takes_a_weight_of_two_as_a_query_twice():
    X, y, group, qid = worlds(20)
    weight = np.random.default_rng(0).integers(0, 4, size=len(group))[qid]
    copies = np.concatenate([np.flatnonzero(weight > k) for k in range(3)])
    of_copy = np.concatenate([qid[weight > k] + 100 * k for k in range(3)])
    model = BoostedTreesRanker(**FAST).fit(X, y, group=group)
    score = model.score(X, y, weight, qid=qid)
    assert score == pytest.approx(model.score(X[copies], y[copies], qid=of_copy))


def test_fractional_weights_count():
    X, y, group, qid = worlds(20)
    weight = np.random.default_rng(0).uniform(0.1, 3, size=len(group))[qid]
    model = BoostedTreesRanker(**FAST).fit(X, y, weight, group=group)
    plain = clone(model).fit(X, y, group=group)
    assert (model.predict(X) != plain.predict(X)).any()
    expect_no_unit(lambda one: clone(model).fit(X, y, one, group=group).predict(X), weight)


def test_rounds_are_those_of_the_literal_twin(monkeypatch):
    X, y, _, qid = worlds(15)
    runs = []
    monkeypatch.setattr(
        "certree.ensembles.evaluation.advance",
        lambda made, *how: runs.append((made[0].copy_without_trees(), how)) or advance(made, *how),
    )
    model = BoostedTreesRanker(max_iter=4, subsample=0.6, random_state=3, max_thresholds=None)
    model.fit(X, y, np.linspace(0.5, 1.5, 15)[qid], qid=qid)
    run = runs[0][0]
    scores, made, _ = reference.run_boosting_rounds(run, 0, 4, _core.compute_round_steps)
    steps = np.concatenate([one for _, one, _ in made])
    np.testing.assert_allclose(model.trees_.value, steps, rtol=1e-7, atol=1e-9)
    at = model._make_loss()
    assert at.compute_query_loss(run.y, scores[0], run.weight, run.query) == pytest.approx(
        reference.compute_mean_ranking_loss(run.query, 10, run.y, scores[0], run.weight)
    )
    drawn = [len(set(run.keys[run.query == number])) for number in np.unique(run.query)]
    assert set(drawn) == {1}


def test_it_learns_to_rank():
    X, y, group, _ = worlds(300)
    new, known, _, qid = worlds(300, seed=1)
    model = BoostedTreesRanker(random_state=0, max_iter=60).fit(X, y, group=group)
    chance = np.mean(
        [
            1 - reference.compute_mean_ranking_loss(qid, 10, known, rng.normal(size=len(qid)), None)
            for rng in map(np.random.default_rng, range(3))
        ]
    )
    assert model.score(new, known, qid=qid) > chance + 0.1
    loss = model.staged_loss(new, known, qid=qid)
    assert loss.shape == (60,)
    assert loss[-1] == pytest.approx(1 - model.score(new, known, qid=qid))
    assert loss[-1] < loss[0]
    assert model.feature_importances_.argmin() == 3


def test_lists_may_be_named_longer_than_any():
    X, y, _, query = worlds()
    whole = BoostedTreesRanker(max_iter=2, truncation_level=10**6, random_state=0)
    longer = clone(whole).set_params(truncation_level=2**64, ndcg_at=2**64, early_stopping=True)
    longer.fit(X, y, qid=query, X_val=X, y_val=y, qid_val=query)
    same(longer, whole.fit(X, y, qid=query), X)


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [30], [1, 2, 1]])
def test_few_documents_break_nothing(sizes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(sum(sizes), 2)), rng.integers(0, 3, sum(sizes))
    for target in (y, np.zeros(len(y)), np.ones(len(y))):
        model = BoostedTreesRanker(max_iter=5, random_state=0).fit(X, target, group=sizes)
        scores = model.predict(X)
        assert np.isfinite(scores).all()
        if len(set(target)) == 1 or max(sizes) == 1:
            assert (scores == 0).all()
            assert model.score(X, target, group=sizes) == 1


@pytest.mark.parametrize("how", [{}, {"validation_fraction": None}])
def test_early_stopping_holds_out_whole_queries(how):
    X, y, group, _ = worlds(60)
    model = BoostedTreesRanker(early_stopping=True, n_iter_no_change=4, random_state=0, **how)
    model.fit(X, y, group=group)
    scores = model.train_score_ if how else model.validation_score_
    assert model.n_iter_ == 1 + np.argmax(scores[1:])
    assert ((scores >= -1) & (scores <= 0)).all()


def test_a_validation_set_is_scored_by_its_queries():
    X, y, group, qid = worlds(60)
    new, known, group_val, qid_val = worlds(30, seed=1)
    stops = {"early_stopping": True, "n_iter_no_change": 5, "random_state": 0}
    model = BoostedTreesRanker(**stops)
    model.fit(X, y, group=group, X_val=new, y_val=known, group_val=group_val)
    assert model.validation_score_[model.n_iter_] == pytest.approx(
        model.score(new, known, qid=qid_val) - 1
    )
    assert model.validation_score_.max() == model.validation_score_[model.n_iter_]
    order = np.random.default_rng(0).permutation(len(known))
    again = clone(model).fit(
        X, y, qid=qid, X_val=new[order], y_val=known[order], qid_val=qid_val[order]
    )
    same(model, again, X)
    best = clone(model).set_params(quality="best", max_iter=20)
    best.fit(X, y, group=group, X_val=new, y_val=known, group_val=group_val)
    assert best.validation_score_[best.n_iter_] == pytest.approx(
        best.score(new, known, qid=qid_val) - 1
    )


def test_a_warm_start_goes_on_where_the_fit_ended():
    X, y, group, _ = worlds()
    model = BoostedTreesRanker(max_iter=5, warm_start=True, random_state=0)
    model.fit(X, y, group=group).set_params(max_iter=12).fit(X, y, group=group)
    same(model, BoostedTreesRanker(**FAST).fit(X, y, group=group), X)


def test_callbacks_see_each_round():
    X, y, group, _ = worlds()
    seen = []
    model = BoostedTreesRanker(**FAST)
    model.fit(X, y, group=group, callbacks=[lambda now: seen.append(now.n_iter) or len(seen) == 3])
    assert seen == [1, 2, 3]
    assert model.n_iter_ == 3


def test_what_explains_exports_and_stores(tmp_path):
    X, y, group, qid = worlds()
    X[::7, 1] = np.nan
    model = BoostedTreesRanker(**FAST).fit(X, y, group=group)
    scores = model.predict(X)
    np.testing.assert_allclose(model.explain(X).prediction[:, 0], scores, atol=1e-12)
    np.testing.assert_allclose(shapley_values(model, X[:5], X).prediction[:, 0], scores[:5])
    assert check_export(model, X, exports=["dict", "onnx_float64", "sklearn", "sqlite"]).all_agree
    assert model.to_dict()["link"] == "identity"
    save(model, tmp_path / "ranker.certree")
    for other in (load(tmp_path / "ranker.certree"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), scores)
        assert other.score(X, y, qid=qid) == model.score(X, y, qid=qid)
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, scores)
    for i in (0, 5):
        np.testing.assert_array_equal(model.predict(X[[i]]), scores[[i]])


def test_scores_use_the_parameters_of_the_fit():
    X, y, group, _ = worlds()
    model = BoostedTreesRanker(**FAST, ndcg_at=3).fit(X, y, group=group)
    score = model.score(X, y, group=group)
    model.set_params(ndcg_at=None)
    assert model.score(X, y, group=group) == score
    whole = BoostedTreesRanker(**FAST, ndcg_at=None).fit(X, y, group=group)
    assert whole.score(X, y, group=group) != score


def test_queries_are_routed_through_cross_validation():
    X, y, _, qid = worlds(60)
    with config_context(enable_metadata_routing=True):
        model = BoostedTreesRanker(**FAST)
        model.set_fit_request(qid=True).set_score_request(qid=True)
        found = cross_val_score(model, X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    assert ((found > 0.3) & (found <= 1)).all()


X4, Y4 = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 2])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "either group, the sizes of queries, or qid.*neither"),
        ({"group": [4], "qid": [0] * 4}, "must be passed, got both"),
        ({"group": [3]}, "group must sum to the number of rows, 4, got 3"),
        ({"group": [4, 0]}, "integers >= 1"),
        ({"group": [2.0, 2.0]}, "integers >= 1"),
        ({"group": [[4]]}, "sizes of queries"),
        ({"qid": [0, 0, 1]}, r"qid must have shape \(4,\), got \(3,\)"),
        ({"qid": [0, 0, 1, np.nan]}, "must give each row a query, got none for 1 of 4"),
        ({"group": [4], "sample_weight": [1, 1, 2, 1]}, "the same for all rows of a query"),
        ({"group": [4], "sample_weight": [1, 1, 0, 1]}, "the same for all rows of a query"),
        ({"group": [4], "X_val": X4, "y_val": Y4}, "group_val.*qid_val.*neither"),
        ({"group": [4], "X_val": X4, "y_val": Y4, "qid_val": [0]}, "qid_val must have shape"),
        ({"group": [4], "group_val": [4]}, "group_val takes X_val and y_val"),
        ({"group": [4], "X_val": X4}, "must be given together"),
    ],
)
def test_queries_that_do_not_fit_are_refused(how, words):
    model = BoostedTreesRanker(max_iter=2)
    with pytest.raises(ValueError, match=words):
        model.fit(X4, Y4, **how)
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize("y", [[0, 1, 0, -1], [0, 1, 0, 32]])
def test_invalid_relevances_are_refused(y):
    with pytest.raises(ValueError, match=r"relevances in 0 \.\. 31"):
        BoostedTreesRanker(max_iter=2).fit(X4, y, group=[4])
    model = BoostedTreesRanker(max_iter=2, random_state=0).fit(X4, Y4, group=[4])
    with pytest.raises(ValueError, match=r"relevances in 0 \.\. 31"):
        model.score(X4, y, group=[4])
    with pytest.raises(ValueError, match="neither"):
        model.score(X4, Y4)
    with pytest.raises(ValueError, match="same for all rows"):
        model.score(X4, Y4, [1, 2, 1, 1], group=[4])


@given(st.lists(st.sampled_from(["a", "b", 1, (1, 2)]), min_size=1, max_size=9))
def test_names_of_queries_may_be_of_any_kind(names):
    given_names = np.empty(len(names), dtype=object)
    given_names[:] = names
    number = number_queries(len(names), None, given_names)
    for i, one in enumerate(names):
        assert [one == other for other in names] == (number == number[i]).tolist()


def test_permutations_know_no_queries():
    X, y, group, _ = worlds()
    model = BoostedTreesRanker(**FAST).fit(X, y, group=group)
    assert model.importance("gain").sum() > 0
    with pytest.raises(ValueError, match="is not supported for rankings"):
        model.importance("permutation", X, y)
