"""The certified forest: which rows estimate the error of which tree, certificates, and the API."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import rel_entr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import RFE
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from certree import CertifiedForestClassifier, load, save
from certree.certificates import METHODS, certify_ensemble
from certree.certificates.inequalities import bounds
from certree.certificates.majority import ENSEMBLE_METHODS, iterate_blocks
from certree.ensembles.certified_forest import SampledTrees
from model_files import rewrite

# Rows of whole numbers are often alike.
SHORT = {"n_estimators": 6, "random_state": 0, "duplicates": "genuine"}
BOUND = {
    "ensemble_first_order": bounds.first_order,
    "ensemble_tandem": bounds.tandem,
    "ensemble_either_wrong": bounds.either_wrong,
}


def noisy(n=240, n_classes=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.integers(0, 9, size=(n, 3)).astype(float)
    y = (X[:, 0] > 4).astype(int) + (n_classes > 2) * (X[:, 1] > 6)
    flipped = random.random(n) < 0.2
    return X, np.where(flipped, random.integers(0, n_classes, n), y)


def voters(seed, n_voters=4, n=15, whole=False):
    random = np.random.default_rng(seed)
    wrong = random.integers(0, 2, (n_voters, n)) if whole else random.random((n_voters, n))
    judged = random.random((n_voters, n)) < 0.7
    weight = random.dirichlet(np.ones(n_voters))
    return wrong, judged, weight


# -- the bound -------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), whole=st.booleans(), nats=st.floats(0, 3))
def test_certificates_of_ensembles_observe_what_a_count_of_pairs_does(seed, whole, nats):
    wrong, judged, weight = voters(seed, whole=whole)
    overlap = judged.astype(int) @ judged.T
    assume(overlap.min() > 0)
    risks = reference.compute_ensemble_risks(wrong, judged, weight)
    divergence = sum(rel_entr(weight, 1 / len(weight))) + nats
    for method, observed in zip(ENSEMBLE_METHODS, risks, strict=True):
        found = certify_ensemble(wrong, judged, weight, method=method, complexity=nats)
        n = overlap.diagonal().min() if method == "ensemble_first_order" else overlap.min()
        assert found.n == n
        assert found.observed[0] == pytest.approx(observed, abs=1e-12)
        assert found.complexity == pytest.approx(divergence, abs=1e-12)
        expected = BOUND[method](observed, n, divergence, np.log(0.05))
        assert found.bound == pytest.approx(expected, abs=1e-9)


def test_rows_are_summed_block_by_block(monkeypatch):
    wrong, judged, weight = voters(0, n=50)
    whole = certify_ensemble(wrong, judged, weight)
    monkeypatch.setattr("certree.certificates.majority._BLOCK", 7)
    assert [part.start for part in iterate_blocks(15)] == [0, 7, 14]
    parts = certify_ensemble(wrong, judged, weight)
    assert parts.observed == pytest.approx(whole.observed)
    assert replace(parts, observed=whole.observed, bound=whole.bound) == whole


def test_what_is_shown_of_an_ensemble_is_how_often_half_of_its_votes_are_wrong():
    wrong = np.array([[1, 1, 0, 1], [0, 1, 0, 1], [0, 1, 1, 1]])
    judged = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    assert certify_ensemble(wrong, judged).risk == pytest.approx(1 / 3)
    # Votes without weight do not count, and a tie may be an error.
    assert certify_ensemble(wrong, judged, [0.5, 0.5, 0]).risk == pytest.approx(2 / 3)
    assert certify_ensemble(wrong, judged, risk=0.25).risk == 0.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "vote_tandem"}, "method must be one of ensemble_first_order"),
        ({"judged": np.ones((4, 15))}, "judged must be a boolean array"),
        ({"judged": np.ones((0, 15), dtype=bool)}, "judged must be a boolean array"),
        ({"wrong": np.ones((4, 14))}, "wrong must hold numbers of shape"),
        ({"wrong": np.full((4, 15), 1.5)}, "wrong must lie in 0 .. 1"),
        ({"wrong": np.full((4, 15), np.nan)}, "wrong must lie in 0 .. 1"),
        ({"weight": [0.5, 0.5]}, r"weight must have shape \(4\), got \(2,\)"),
        ({"weight": np.full(4, 0.25 + 0j)}, "weight must convert to float64 without loss"),
        ({"weight": [10**400, 0, 0, 0]}, "weight must convert to float64 without loss"),
        ({"weight": [0.5, 0.5, 0.5, -0.5]}, "weight must hold 4 numbers"),
        ({"weight": [0.5, 0.5, 0.5, 0.5]}, "weight must hold 4 numbers"),
        ({"complexity": -1.0}, "complexity"),
        ({"delta": 1.0}, "delta must lie between 0 and 1"),
    ],
    ids=str,
)
def test_what_is_no_ensemble_is_refused(change, message):
    wrong, judged, weight = voters(1)
    with pytest.raises((ValueError, TypeError), match=message):
        certify_ensemble(**{"wrong": wrong, "judged": judged, "weight": weight, **change})


def test_voters_without_out_of_sample_rows_are_refused():
    apart = np.eye(2, dtype=bool)
    with pytest.raises(ValueError, match="at least one row for every pair of voters"):
        certify_ensemble(~apart, apart)
    alone = certify_ensemble(~apart, apart, method="ensemble_first_order")
    assert (alone.n, alone.observed) == (1, (0.0,))
    apart[1] = False
    with pytest.raises(ValueError, match="at least one row for every voter"):
        certify_ensemble(~apart, apart, method="ensemble_first_order")


# -- the fit ---------------------------------------------------------------------------------------


def sampled(X, y, weight=None, size=0.4, **switches) -> SampledTrees:
    model = CertifiedForestClassifier(**SHORT, **switches)
    training = model._prepare_training(X, y, weight)
    return model._grow_on_samples(training, size, np.random.RandomState(0))


def test_a_tree_does_not_depend_on_its_out_of_sample_rows():
    X, y = noisy()
    before = sampled(X, y)
    for number in range(len(before.trees)):
        other, named = X.copy(), y.copy()
        out = before.is_out_of_sample[number]
        other[out], named[out] = 1e6 - 7 * other[out], 1 - named[out]
        after = sampled(other, named)
        for field in ("feature", "threshold", "left", "missing_left"):
            np.testing.assert_array_equal(
                getattr(after.trees.tree(number), field), getattr(before.trees.tree(number), field)
            )
        labels = (
            np.split(one.node_statistics[0].label, one.trees.root[1:])[number]
            for one in (before, after)
        )
        np.testing.assert_array_equal(*labels)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_posteriors_vote_and_err_as_a_loop_over_all_rows_finds(n_classes):
    X, y = noisy(60, n_classes)
    trees = sampled(X, y, max_depth=3)
    for posterior, nats in trees.iterate_posteriors():
        shares = trees.compute_class_fractions(posterior)
        wrong = np.zeros(trees.is_out_of_sample.shape)
        for number, (tree, first) in enumerate(zip(trees.trees, trees.trees.root, strict=True)):
            label, weight = trees.node_statistics[0].label[first:], posterior.weight[first:]
            for i, leaf in enumerate(tree.apply(X)):
                node = int(leaf)
                while node >= 0:
                    wrong[number, i] += weight[node] * (label[node] != y[i])
                    node = int(tree.parent[node])
        found = trees.compute_pair_errors(shares)
        one, both, either = reference.compute_ensemble_risks(
            wrong, trees.is_out_of_sample, np.full(6, 1 / 6)
        )
        weight = np.full(6, 1 / 6)
        assert found.compute_risk(weight) == pytest.approx(one)
        assert found.compute_tandem_risk(weight) == pytest.approx(both)
        assert found.compute_either_risk(weight) == pytest.approx(either)
        assert nats >= np.log(2) - 1e-12


def test_the_certificate_is_about_what_predicts():
    X, y = noisy(400)
    model = CertifiedForestClassifier(
        n_estimators=9, max_samples=0.3, random_state=1, duplicates="genuine"
    ).fit(X, y)
    training = clone(model)._prepare_training(X, y)
    trees = model._grow_on_samples(training, 0.3, np.random.RandomState(1))
    share = model.trees_.value[model.trees_.find_leaves(X, 1), 0]  # of the second class
    np.testing.assert_array_equal(model.predict(X), share.mean(axis=0) > 0.5)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], share.mean(axis=0), atol=1e-12)
    wrong = np.where(y == 1, 1 - share, share)
    shown = [
        share[trees.is_out_of_sample[:, i], i].mean() > 0.5
        for i in range(len(y))
        if trees.is_out_of_sample[:, i].any()
    ]
    known = trees.is_out_of_sample.any(axis=0)
    for certificate in model.certificates_:
        again = certify_ensemble(
            wrong,
            trees.is_out_of_sample,
            share=1 / 3,
            method=certificate.method,
            complexity=certificate.complexity,
        )
        assert certificate.bound == pytest.approx(again.bound, abs=1e-12)
        assert certificate.risk == pytest.approx(np.mean(shown != y[known]))
    assert model.certificate_ == min(model.certificates_, key=lambda one: one.bound)


def test_two_sizes_of_samples_share_delta():
    X, y = noisy()
    model = CertifiedForestClassifier(**SHORT).fit(X, y)
    assert [one.method for one in model.certificates_] == list(ENSEMBLE_METHODS)
    assert sum(one.share for one in model.certificates_) == pytest.approx(1 / 2)
    single = CertifiedForestClassifier(max_samples=0.2, **SHORT).fit(X, y)
    assert sum(one.share for one in single.certificates_) == pytest.approx(1)
    assert "out of" in str(model.certificate_)
    assert METHODS[model.certificate_.method].needs in model.certificate_.assumptions


def test_prunings_vote_where_labels_are_noisy_and_whole_trees_where_they_are_not():
    X, y = noisy(800)
    pruned = CertifiedForestClassifier(**SHORT).fit(X, y)
    assert pruned.certificate_.complexity > np.log(2) + 1e-6
    assert not np.isin(pruned.trees_.value[pruned.trees_.left < 0], (0, 1)).all()
    clean = (X[:, 0] > 4).astype(int)
    whole = CertifiedForestClassifier(**SHORT).fit(X, clean)
    assert whole.certificate_.complexity == pytest.approx(np.log(2))
    assert np.isin(whole.trees_.value[whole.trees_.left < 0], (0, 1)).all()


def test_weights_grow_and_label_and_certify_nothing():
    X, y = noisy()
    weight = np.where(y == 1, 0.5, 20.0)
    trees = sampled(X, y, weight)
    grown, others = (stats.n[trees.trees.root] for stats in trees.node_statistics)
    np.testing.assert_allclose(grown, [weight[~out].sum() for out in trees.is_out_of_sample])
    np.testing.assert_allclose(others, [weight[out].sum() for out in trees.is_out_of_sample])
    model = CertifiedForestClassifier(**SHORT, max_depth=2)
    plain, weighted = (model.fit(X, y, given).predict(X).mean() for given in (None, weight))
    assert weighted < plain / 2


def test_rows_of_weight_zero_are_as_if_absent():
    X, y = noisy()
    some = np.arange(len(y)) % 3 > 0
    with_them = CertifiedForestClassifier(**SHORT).fit(X, y, some.astype(float))
    without = CertifiedForestClassifier(**SHORT).fit(X[some], y[some], np.ones(some.sum()))
    np.testing.assert_array_equal(with_them.predict_proba(X), without.predict_proba(X))
    assert with_them.certificates_ == without.certificates_


def test_threads_change_nothing():
    X, y = noisy(n_classes=3)
    one, two = (CertifiedForestClassifier(**SHORT, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.certificates_ == two.certificates_


def test_categories_and_missing_values():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    town = random.choice(["Bern", "Biel", "Thun", "Visp"], 300)
    frame = pandas.DataFrame({"town": town, "size": random.random(300)})
    frame.loc[::7, "size"] = np.nan
    y = np.isin(town, ["Bern", "Thun"])
    model = CertifiedForestClassifier(20, random_state=0, duplicates="genuine").fit(frame, y)
    assert model.score(frame, y) > 0.95
    assert model.certificate_.bound < 0.3


# -- few rows, one class ---------------------------------------------------------------------------


def test_few_rows_are_certified_as_far_as_they_go():
    X, y = np.arange(8.0).reshape(-1, 2), np.array([0, 0, 1, 1])
    for n in (2, 3, 4):
        model = CertifiedForestClassifier(3, random_state=0, duplicates="genuine").fit(X[:n], y[:n])
        assert model.certificate_.bound > 0.9
        assert {one.n for one in model.certificates_} <= {1, 2, 3}
    with pytest.raises(ValueError, match=r"at least two rows.*n_samples=1"):
        CertifiedForestClassifier().fit(X[:1], y[:1])


def test_pairs_without_shared_rows_give_no_certificate():
    X, y = np.arange(10.0).reshape(-1, 1), np.arange(10) % 2
    model = CertifiedForestClassifier(8, max_samples=0.9, random_state=0, duplicates="genuine").fit(
        X, y
    )
    assert [one.method for one in model.certificates_] == ["ensemble_first_order"]


def test_one_class_and_one_tree():
    X, _ = noisy()
    model = CertifiedForestClassifier(1, random_state=0, duplicates="genuine").fit(
        X, np.full(len(X), "only")
    )
    assert set(model.predict(X)) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(X), 1)
    assert model.certificate_.bound < 0.1
    assert model.certificate_.risk == 0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_samples", 0.0),
        ("max_samples", 1.0),
        ("max_samples", "all"),
        ("delta", 0.0),
        ("n_estimators", 0),
        ("criterion", "error"),
        ("max_features", 0),
    ],
)
def test_bad_parameters_are_refused(parameter, value):
    X, y = noisy()
    with pytest.raises(ValueError, match=parameter):
        CertifiedForestClassifier(**{parameter: value}).fit(X, y)


# -- what users rely on ----------------------------------------------------------------------------


def expected_failures(_):
    return {
        "check_sample_weight_equivalence_on_dense_data": "which rows grow a tree is drawn by position",
    }


@pytest.mark.filterwarnings("ignore:.* rows that certify repeat other rows:UserWarning")
@parametrize_with_checks([CertifiedForestClassifier(5)], expected_failed_checks=expected_failures)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_new_rows_certify_and_known_ones_do_not():
    X, y = load_breast_cancer(return_X_y=True)
    model = CertifiedForestClassifier(20, random_state=0, duplicates="genuine").fit(
        X[:400], y[:400]
    )
    fresh = model.certify(X[400:], y[400:])
    assert fresh.method == "hold_out"
    assert fresh.n == 169
    assert model.certify() == model.certificate_
    assert model.certify(delta=0.01) == model.certificate_.at(0.01)
    with pytest.raises(ValueError, match="also occur among those of the fit"):
        model.certify(X[300:], y[300:])
    with pytest.raises(ValueError, match="X and y must be passed"):
        model.certify(X[400:])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_forest_comes_back_with_its_certificates(n_classes, tmp_path):
    X, y = noisy(n_classes=n_classes)
    model = CertifiedForestClassifier(**SHORT).fit(X, y)
    save(model, tmp_path / "forest")
    for again in (load(tmp_path / "forest"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.apply(X), model.apply(X))
        assert again.certificates_ == model.certificates_
        assert again.certificate_ == model.certificate_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_explanations_sum_to_the_vote(n_classes):
    X, y = noisy(n_classes=n_classes)
    model = CertifiedForestClassifier(**SHORT).fit(X, y)
    explanation = model.explain(X)
    np.testing.assert_allclose(explanation.prediction, model.predict_proba(X), atol=1e-12)
    assert np.abs(explanation.contributions[:, :, 0]).mean() > 0.1


def test_proximity_counts_shared_leaves():
    X, y = load_iris(return_X_y=True)
    model = CertifiedForestClassifier(**SHORT).fit(X, y)
    leaves, pairs = model.apply(X), np.array([[0, 1], [3, 120]])
    expected = (leaves[pairs[:, 0]] == leaves[pairs[:, 1]]).mean(axis=1)
    np.testing.assert_allclose(model.proximity(X, pairs), expected)


@pytest.mark.parametrize("max_samples", [0.3, "auto"])
def test_importances_are_those_of_splits_that_prunings_make(max_samples):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=len(X))])
    made = []

    class Watched(CertifiedForestClassifier):
        def _certify_out_of_sample(self, best, share):
            made.append(best)
            super()._certify_out_of_sample(best, share)

    model = Watched(max_samples=max_samples, n_estimators=6, random_state=0, duplicates="genuine")
    model.fit(X, y)
    best, expected = made[0], np.zeros(5)
    trees, posterior = best.sampled.trees, best.posterior
    for number, sample in enumerate(best.sampled.samples):
        tree, first = trees.tree(number), trees.root[number]
        counts = reference.count_classes(tree, X[sample], y[sample], 3, np.ones(len(sample)))
        n = counts.sum(axis=1)
        gini = n - (counts**2).sum(axis=1) / n
        made_by = {0: 1.0}  # probability that a pruning reaches a node
        worth = np.zeros(5)
        for v in np.flatnonzero(tree.left >= 0):
            made_by[v] -= posterior.weight[first + v]
            left = tree.left[v]
            worth[tree.feature[v]] += made_by[v] * (gini[v] - gini[left] - gini[left + 1])
            made_by[left] = made_by[left + 1] = made_by[v]
        expected += worth / worth.sum()
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), atol=1e-9)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {2, 3}
    found = RFE(clone(model).set_params(n_estimators=40), n_features_to_select=2).fit(X, y)
    assert found.support_.tolist() == [False, False, True, True, False]


def test_files_keep_importances_and_those_without_say_so(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = CertifiedForestClassifier(**SHORT).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.feature_importances_, model.feature_importances_)
    rewrite(tmp_path / "model", without=["importances"])  # as files of earlier builds
    again = load(tmp_path / "model")
    assert not hasattr(again, "feature_importances_")
    with pytest.raises(AttributeError, match="as an earlier version wrote its"):
        _ = again.feature_importances_
