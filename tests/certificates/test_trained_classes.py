"""Certified fits list classes that calibration samples alone have, and never predict them.

The twin is the same fit that is given the classes of the training samples as ``classes=``: it knows of
others only that their rows are errors.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks

from certree import (
    Cart,
    CertifiedBoostedTreesClassifier,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    Grid,
    Voting,
    load,
    save,
)
from certree.certificates.trained_classes import TrainedClasses
from certree.export.comparison import check_export
from certree.out_of_core import sources
from certree.stats import NodeStats
from same_models import expect_same_tree, write_files

N = 400
TREE = CertifiedTreeClassifier(train_size=0.5, random_state=0)
BOOSTED = CertifiedBoostedTreesClassifier(
    train_size=0.5, max_iter=12, max_leaf_nodes=4, quality="fast", random_state=0, n_jobs=1
)
MODELS = [
    TREE,
    clone(TREE).set_params(selection="vote", vote=Voting("mean", 1.0)),
    clone(TREE).set_params(vote="majority", selection="vote", posteriors="cv"),
    clone(TREE).set_params(max_leaf_nodes=3, class_weight="balanced"),
    clone(BOOSTED),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)


def table(n_classes, seed=0):
    """Rows and classes "b", "d", "f", ..., which are shuffled in one of ten rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    code = (X[:, :2] > [0.0, 0.7]).sum(axis=1) % n_classes
    code = np.where(rng.random(N) < 0.1, rng.integers(n_classes, size=N), code)
    return X, np.array(["b", "d", "f"])[code]


def with_rare(model, X, y):
    """Classes of which calibration samples alone have "a" and "c"."""
    places = clone(model).fit(X, y).calibration_.given
    rare = y.copy()
    rare[places[:6]], rare[places[6:9]] = "a", "c"
    return rare, places


def fitted(model, n_classes):
    """A fit with classes that calibration samples alone have, its twin, and the rows."""
    X, y = table(n_classes)
    rare, places = with_rare(model, X, y)
    twin = clone(model).fit(X, rare, classes=np.unique(y))
    return clone(model).fit(X, rare), twin, X, rare, places


@every_model
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_all_classes_are_listed_and_only_trained_ones_predicted(model, n_classes, tmp_path):
    one, twin, X, y, places = fitted(model, n_classes)
    assert one.classes_.tolist() == np.unique(y).tolist()
    assert one.n_classes_ == len(one.classes_)
    assert one.certificate_ == twin.certificate_
    assert one.certificates_ == twin.certificates_
    assert one.certificate_.risk == pytest.approx(
        np.mean(one.predict(X) != y, where=np.isin(np.arange(N), places))
    )
    np.testing.assert_array_equal(one.predict(X), twin.predict(X))
    shares, trained = one.predict_proba(X), np.isin(one.classes_, twin.classes_)
    assert (shares[:, ~trained] == 0).all()
    np.testing.assert_allclose(shares[:, trained], twin.predict_proba(X), rtol=1e-12)
    save(one, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), shares)
    assert again.certificates_ == one.certificates_
    for how in ({}, {"per_class": True}):
        np.testing.assert_array_equal(
            again.predict_set(X, 0.8, **how), one.predict_set(X, 0.8, **how)
        )
    assert str(again.conditional_guarantees()) == str(one.conditional_guarantees())


@every_model
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_guarantees_are_those_of_the_trained_classes(model, n_classes):
    one, twin, X, y, places = fitted(model, n_classes)
    trained = np.isin(one.classes_, twin.classes_)
    held = one.predict_set(X, 0.8)
    np.testing.assert_array_equal(held[:, trained], twin.predict_set(X, 0.8))
    assert not held[:, ~trained].any()
    assert one.certify_set(0.8) == twin.certify_set(0.8)
    # Sets of every class hold those of which nothing is known.
    held = one.predict_set(X, 0.7, per_class=True)
    np.testing.assert_array_equal(held[:, trained], twin.predict_set(X, 0.7, per_class=True))
    assert held[:, ~trained].all()
    certified = np.array(one.certify_set(0.7, per_class=True), dtype=object)
    assert tuple(certified[trained]) == twin.certify_set(0.7, per_class=True)
    assert all(found is None for found in certified[~trained])
    assert one.selective_certificates() == twin.selective_certificates()
    for found, expected in zip(
        one.predict_selective(X, 0.3), twin.predict_selective(X, 0.3), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    promised = one.conditional_guarantees()
    assert [*promised.recall] == one.classes_.tolist()
    assert {name: part.n for name, part in promised.recall.items()} == {
        name: int((y[places] == name).sum()) for name in one.classes_.tolist()
    }
    assert promised.recall["a"].bound == promised.recall["c"].bound == 1
    with pytest.raises(ValueError, match="thresholds need"):
        one.guarantees_.thresholds()
    assert "thresholds()" not in one.report()


@every_model
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_exports_and_explanations_agree(model, n_classes):
    one, _, X, *_ = fitted(model, n_classes)
    report = check_export(one, X[:60])
    assert report.all_agree, report
    said = one.explain(X[:20])
    assert [*said.output_names] == one.classes_.tolist()
    total = np.asarray(said.base) + said.contributions.sum(axis=-1)
    if model.__class__ is CertifiedTreeClassifier:
        np.testing.assert_allclose(total, one.predict_proba(X[:20]), atol=1e-9)
        return
    np.testing.assert_allclose(total, one.decision_function(X[:20]), atol=1e-9)
    stages = [*one.staged_predict_proba(X[:20])]
    np.testing.assert_array_equal(stages[-1], one.predict_proba(X[:20]))
    assert all((stage[:, [0, 2][: len(stage[0]) - n_classes]].sum() == 0) for stage in stages)


def test_a_class_beside_a_single_trained_one():
    """Of two classes the scores are log odds of the second, whichever is trained."""
    X = np.random.default_rng(0).normal(size=(N, 2))
    for model in (TREE, BOOSTED):
        for name, place in (("a", 1), ("c", 0)):
            y = np.full(N, "b")
            y[clone(model).fit(X, y).calibration_.given[:5]] = name
            one = clone(model).fit(X, y)
            assert one.classes_.tolist() == sorted(["b", name])
            expected = np.zeros((N, 2))
            expected[:, place] = 1
            np.testing.assert_array_equal(one.predict_proba(X), expected)
            assert (one.predict(X) == "b").all()
            assert one.certificate_.risk == pytest.approx(5 / one.certificate_.n)
            assert check_export(one, X[:30]).all_agree
            with pytest.raises(
                ValueError, match="thresholds need a classifier with 2 classes, got 1"
            ):
                one.guarantees_.thresholds()


def test_monotone_votes_of_two_trained_classes():
    X, y = table(2)
    for model in (
        clone(TREE).set_params(monotonic_cst=[1, 0, 0, 0]),
        clone(BOOSTED).set_params(monotonic_cst=[1, 0, 0, 0]),
    ):
        rare, _ = with_rare(model, X, y)
        one = clone(model).fit(X, rare)
        line = np.column_stack([np.linspace(-3, 3, 50), *np.zeros((3, 50))])
        assert (np.diff(one.predict_proba(line)[:, -1]) >= -1e-12).all()
        assert one.explain(X[:2]).contributions.shape == (2, 4, 4)


def test_classes_that_are_given_are_those_listed():
    X, y = table(2)
    box = CertifiedTreeClassifier(Grid([X.min(axis=0) - 1, X.max(axis=0) + 1]), max_depth=4)
    rare = np.where(np.arange(N) < 4, "a", y)
    assert box.fit(X, rare, classes=["b", "d"]).classes_.tolist() == ["b", "d"]
    # A fit without rare classes forgets those of the fit before.
    model = clone(TREE)
    assert model.fit(X, with_rare(model, X, y)[0]).predict_proba(X).shape == (N, 4)
    assert model.fit(X, y).predict_proba(X).shape == (N, 2)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_files_list_them_like_memory(n_classes, tmp_path, monkeypatch):
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", 90)
    pa = pytest.importorskip("pyarrow")
    X, y = table(n_classes)
    model = CertifiedTreeClassifier(
        Cart(max_bins=255), train_size=0.5, class_weight="balanced", random_state=0
    )
    rare, _ = with_rare(model, X, y)
    frame = pd.DataFrame(X, columns=[*"pqrs"])
    rows = pa.Table.from_pandas(frame.assign(y=rare), preserve_index=False)
    files = write_files(tmp_path, rows, (0, 130, 300, N))
    here, there = clone(model).fit(frame, rare.astype(object)), clone(model).fit(files, "y")
    assert there.classes_.tolist() == here.classes_.tolist() == np.unique(rare).tolist()
    np.testing.assert_array_equal(there.predict_proba(frame), here.predict_proba(frame))
    assert there.certificates_ == here.certificates_
    expect_same_tree(here, there, tmp_path)
    for name in ("given", "leaf", "y"):
        pair = [getattr(one.calibration_, name) for one in (here, there)]
        np.testing.assert_array_equal(*pair)


def test_every_certified_classifier_lists_every_class():
    """A third of the draws leave a class of few rows without a training sample."""
    X, y = table(2)
    y[:2] = "z"
    for seed in range(6):
        for model in (
            CertifiedTreeClassifier(random_state=seed),
            CertifiedBoostedTreesClassifier(max_iter=2, quality="fast", random_state=seed),
            CertifiedForestClassifier(5, random_state=seed),
        ):
            model.fit(X, y)
            assert model.classes_.tolist() == ["b", "d", "z"]
            assert model.predict_proba(X).shape == (N, 3)


@pytest.mark.parametrize("seed", [1, 13])
def test_the_sparse_check_of_scikit_learn_passes_by_any_chance(seed):
    """It has 40 rows of four classes, and the draws of these seeds train no row of one."""
    state = np.random.get_state()  # noqa: NPY002 -- what estimators without a seed draw from
    np.random.seed(seed)  # noqa: NPY002 -- likewise
    try:
        model = CertifiedBoostedTreesClassifier()
        estimator_checks.check_estimator_sparse_matrix(type(model).__name__, model)
    finally:
        np.random.set_state(state)  # noqa: NPY002 -- likewise


@pytest.mark.parametrize("is_trained", [[0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0, 1, 0]])
def test_columns_are_spread_and_taken_back(is_trained):
    trained = TrainedClasses(np.array(is_trained, dtype=bool))
    n, rng = sum(is_trained), np.random.default_rng(0)
    counts = rng.integers(1, 9, (3, max(2, n))).astype(float)
    counts[:, n:] = 0
    counts[0] = counts[1:].sum(axis=0)
    stats = NodeStats(counts, counts.argmax(axis=1))
    spread = trained.expand_stats(stats)
    for row, all_of_row in zip(counts, spread.counts, strict=True):
        left = iter(row)
        assert all_of_row.tolist() == [next(left) if one else 0 for one in is_trained]
    back = trained.collapse_stats(spread)
    np.testing.assert_array_equal(back.counts, stats.counts)
    np.testing.assert_array_equal(back.label, stats.label)
    names = [k for k, one in enumerate(is_trained) if one]
    others = [k for k, one in enumerate(is_trained) if not one]
    unused = [0] * (max(2, n) - n)
    assert trained.class_positions.tolist() == [*names, *unused, *others]
    assert trained.n_codes == max(2, n)


def test_classes_are_merged_in_order():
    classes, trained = TrainedClasses.merge_classes(np.array(["b", "d"]), np.array(["a", "ccc"]))
    assert classes.tolist() == ["a", "b", "ccc", "d"]
    assert trained.is_trained.tolist() == [False, True, False, True]
    known = np.array([1, 2])
    assert TrainedClasses.merge_classes(known, known[:0]) == (known, None)


@every_model
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_the_table_of_the_fit_is_known_with_its_other_classes(model, n_classes):
    X, y = table(n_classes)
    rare, _ = with_rare(model, X, y)
    fitted = clone(model).fit(X, rare)
    order = np.random.default_rng(1).permutation(N)
    with pytest.raises(ValueError, match="the rows are the table of the fit"):
        fitted.certify(X[order], rare[order], duplicates="genuine")


@pytest.mark.parametrize("is_trained", [[0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0, 1, 0]])
def test_codes_number_trained_classes_first(is_trained):
    trained = TrainedClasses(np.array(is_trained, dtype=bool))
    places = np.arange(len(is_trained) + 1)
    codes = trained.encode_positions(places)
    np.testing.assert_array_equal(trained.class_positions[codes[:-1]], places[:-1])
    assert len(set(codes)) == len(codes)
