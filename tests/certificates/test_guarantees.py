"""Guarantees as an object: of a fit, of any classifier by rows kept apart, and from a file."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import certree
import reference
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedTreeClassifier,
    Grid,
    TreeForestClassifier,
    certify,
)
from certree.certificates import (
    Guarantees,
    allow_abstention,
    conditional_guarantees,
    tree_calibration,
)
from certree.certificates.inequalities import bounds
from model_files import expect_same_bits, read_arrays, rewrite

GROWING = 400


def rows(n=900, n_classes=3):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.15, random_state=0
    )
    return X, np.array(["a", "b", "c"])[y]


CLASSIFIERS = [
    BoostedTreesClassifier(max_iter=8, random_state=0),
    TreeForestClassifier(8, random_state=0),
    LogisticRegression(),
]


def judged(classifier, n_classes=3):
    """Return a classifier, its guarantees and their calibration rows."""
    X, y = rows(n_classes=n_classes)
    model = classifier.fit(X[:GROWING], y[:GROWING])
    X, y = X[GROWING:], y[GROWING:]
    return model, Guarantees.by_rows(model, X, y), X, y


# -- any classifier --------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_one_object_says_what_the_functions_say(classifier):
    model, guarantees, X, y = judged(classifier)
    assert guarantees.certificate == certify(model, X, y)
    groups = np.arange(len(y)) % 3
    for asked in ({}, {"groups": groups}, {"delta": 0.2, "jointly": True}):
        ours, theirs = (
            guarantees.conditional_guarantees(**asked),
            conditional_guarantees(model, X, y, **asked),
        )
        assert dict(ours.items()) == dict(theirs.items())
    assert guarantees.nearby(kl=0.01) == guarantees.certificate.nearby(kl=0.01)
    shares = {"a": 0.2, "c": 0.8}
    assert guarantees.mix(shares) == guarantees.conditional_guarantees("recall").mix(shares)
    assert guarantees.mix(shares, 0.2).delta == 0.2
    assert guarantees.monitor().bound == guarantees.certificate.bound
    with pytest.raises(ValueError, match="must not include 'leaves' without a certified tree"):
        guarantees.conditional_guarantees("leaves")


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_sets_are_those_of_the_definition(classifier):
    model, guarantees, X, y = judged(classifier)
    shares, code = model.predict_proba(X), np.searchsorted(model.classes_, y)
    expected = reference.compute_prediction_sets(shares, code, shares, 0.8, 0.05)
    found = guarantees.predict_set(X, 0.8, allow_empty=True)
    np.testing.assert_array_equal(found, expected)
    (certificate,) = guarantees.certify_set(0.8)
    lacking = 1 - found[np.arange(len(y)), code].mean()
    assert certificate.risk == pytest.approx(lacking)
    assert certificate.bound <= 0.2 + 1e-12
    assert certificate.repeats == guarantees.certificate.repeats
    for k, one in enumerate(guarantees.certify_set(0.7, per_class=True)):
        assert one.n == (code == k).sum()
        sets = guarantees.predict_set(X[code == k], 0.7, per_class=True, allow_empty=True)
        held = sets[:, k]
        assert one.risk == pytest.approx(1 - held.mean())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_silence_is_certified_at_margins_that_no_row_has_chosen(classifier, n_classes):
    _, guarantees, X, y = judged(classifier, n_classes)
    found = guarantees.selective_certificates()
    assert [each.margin for each in found] == [i / 20 for i in range(len(found))]
    for each in found:
        label, answered = guarantees.predict_selective(X, each.margin)
        wrong = int((label != y)[answered].sum())
        certificate = each.certificate
        assert certificate.n == answered.sum()
        assert each.coverage == pytest.approx(answered.mean())
        assert round(certificate.risk * certificate.n) == wrong
        log_delta = np.log(0.05 / 20)
        assert certificate.bound == pytest.approx(
            bounds.binomial_upper(wrong, certificate.n, log_delta)
        )
    assert found[0].coverage == 1
    assert found[0].certificate.bound > guarantees.certificate.bound
    strict = guarantees.selective_certificates(0.01)
    assert strict[0].certificate.bound > found[0].certificate.bound


@pytest.mark.parametrize(
    "evaluate",
    [certify, Guarantees.by_rows, conditional_guarantees],
    ids=["certify", "by_rows", "conditional"],
)
def test_a_class_that_the_fit_did_not_have_is_refused_by_name(evaluate):
    model, _, X, y = judged(CLASSIFIERS[0])
    misspelt = y.astype("<U8")
    misspelt[[7, 9]] = "B"
    message = (
        r"y must hold classes among \['a', 'b', 'c'\], got \['B'\]: correct these labels, or drop"
    )
    with pytest.raises(ValueError, match=message):
        evaluate(model, X, misspelt)


def test_a_classifier_without_probabilities_has_promises_alone():
    model, guarantees, X, y = judged(LinearSVC())
    assert guarantees.conditional_guarantees().error == conditional_guarantees(model, X, y).error
    for ask in (
        guarantees.certify_set,
        guarantees.selective_certificates,
        lambda: guarantees.predict_set(X),
        lambda: guarantees.predict_selective(X, 0.1),
    ):
        with pytest.raises(TypeError, match="the classifier must have predict_proba and classes_"):
            ask()


def test_rows_of_the_fit_guarantee_nothing():
    X, y = rows()
    model = CLASSIFIERS[0].fit(X, y)
    with pytest.raises(ValueError, match="rows also occur among those of the fit"):
        Guarantees.by_rows(model, X[:100], y[:100])
    with pytest.raises(ValueError, match="100 of 100 rows match rows of the fit"):
        Guarantees.by_rows(model, X[:100], y[:100], duplicates="genuine")
    mixed = np.vstack([X[:12], X[12:100] + 1]), y[:100]
    known = Guarantees.by_rows(model, *mixed, duplicates="genuine")
    assert known.certificate.repeats == known.conditional_guarantees().recall.worst.repeats == 12
    assert known.selective_certificates()[0].certificate.matches.found == 12
    assert known.certify_set(0.5)[0].matches.found == 12


def grouped_rows(seed, n_groups=60):
    """Rows in groups of 1 to 4, in a random order: features, classes and groups."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(n_groups), rng.integers(1, 5, n_groups)))
    X = rng.normal(size=(len(group), 2))
    return X, X[:, 0] + rng.normal(size=n_groups)[group] > 0, group


def test_each_group_counts_once():
    X, y, group = grouped_rows(0)
    model = LogisticRegression().fit(*grouped_rows(1)[:2])
    found = certree.certify(model, X, y, 0.1, groups=group.astype(str), look=2)
    assert found.grouped
    assert (found.n, found.repeats) == (60, None)
    means = [np.mean(model.predict(X[group == k]) != y[group == k]) for k in range(60)]
    assert found.risk == pytest.approx(np.mean(means), abs=1e-15)
    expected = certree.certificates.hold_out_mean(found.risk, 60, 0.1, 6 / (2 * np.pi) ** 2)
    assert found.bound == expected.bound
    counts = np.array([[np.mean(y[group == k] == one) for k in range(60)] for one in (False, True)])
    assert found.baseline.value == pytest.approx(1 - counts.mean(axis=1).max(), abs=1e-12)
    assert "60 groups of rows given, which were not compared" in str(found)
    assert any("certify does not check it" in one for one in found.assumptions)
    rows = Guarantees.by_rows(model, X, y, 0.1, groups=group)
    assert rows.certificate == certree.certify(model, X, y, 0.1, groups=group)
    for asked in (
        rows.thresholds,
        rows.conditional_guarantees,
        rows.selective_certificates,
        rows.certify_set,
        lambda: rows.predict_set(X),
        lambda: rows.predict_threshold(X, 0.5),
        lambda: rows.predict_selective(X, 0.5),
    ):
        with pytest.raises(ValueError, match="calibration rows came in groups"):
            asked()


def test_groups_certify_as_a_certified_fit_does():
    """The certificate of a fit, from the calibration rows that it held out."""
    X, y, group = grouped_rows(2, 200)
    for duplicates in ("auto", "copies"):
        model = certree.CertifiedBoostedTreesClassifier(
            max_iter=3, train_size=0.5, duplicates=duplicates, random_state=0
        ).fit(X, y, groups=group)
        held = model.calibration_.given
        new = X[held] + 1e-12  # other rows for the hashes, the same for the trees
        found = model.certify(new, y[held], groups=group[held], duplicates=duplicates)
        assert (found.bound, found.n) == (model.certificate_.bound, model.certificate_.n)
        assert found.baseline.value == model.certificate_.baseline.value


def test_equal_rows_of_one_group_are_one_repeated_row():
    X, y, group = grouped_rows(3)
    model = LogisticRegression().fit(*grouped_rows(1)[:2])
    tree = certree.PrunedTreeClassifier(random_state=0).fit(*grouped_rows(1)[:2])
    inside = np.argsort(group, kind="stable")[[-1, -1, -1]]  # three copies in their own group
    rows = np.concatenate([np.arange(len(y)), inside])
    found = certree.certify(tree, X[rows], y[rows], groups=group[rows])
    assert found.repeats == 0
    strange = group[rows].copy()
    strange[-2:] = 0  # two copies in another group, where they are one
    found = certree.certify(tree, X[rows], y[rows], groups=strange)
    assert found.repeats == 1
    assert "where 1 repeat other rows" in str(found)
    with pytest.raises(ValueError, match="equal rows in several groups"):
        certree.certify(model, X[rows], y[rows], groups=strange, duplicates="copies")
    merged = certree.certify(model, X[rows], y[rows], groups=group[rows], duplicates="copies")
    assert merged.bound == certree.certify(model, X, y, groups=group).bound


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (np.zeros(3), ValueError, r"groups must have shape \(\d+,\), got \(3,\)"),
        (lambda group: [None, *group[1:]], ValueError, "got none for 1 of"),
        (
            lambda group: np.array(["a", *group[1:].tolist()], dtype=object),
            TypeError,
            "groups must hold values that can",
        ),
    ],
)
def test_groups_that_name_none_of_a_row_are_refused(groups, error, message):
    X, y, group = grouped_rows(0)
    model = LogisticRegression().fit(*grouped_rows(1)[:2])
    with pytest.raises(error, match=message):
        certree.certify(model, X, y, groups=groups(group) if callable(groups) else groups)
    with pytest.raises(ValueError, match="groups and independent describe new rows"):
        certree.CertifiedTreeClassifier(random_state=0).fit(X, y).certify(groups=group)


def test_numbers_are_certified_by_groups():
    X, _, group = grouped_rows(4, 200)
    y = X[:, 0] + np.random.default_rng(0).normal(size=200)[group]
    model = certree.CertifiedTreeRegressor(random_state=0).fit(X, y, groups=group)
    X_new, _, new = grouped_rows(5)
    found = model.certify(X_new, X_new[:, 0], groups=new)
    limit = model.certificate_.unit
    errors = np.minimum(abs(model.predict(X_new) - X_new[:, 0]), limit)
    means = [errors[new == k].mean() for k in range(60)]
    assert found.grouped
    assert found.n == 60
    assert found.risk == pytest.approx(np.mean(means))
    assert (
        found.bound
        > model.certify(X_new, X_new[:, 0], duplicates="genuine", groups=range(len(new))).risk
    )
    with pytest.raises(ValueError, match="duplicates, groups and independent describe new"):
        model.certify(groups=new)


def test_no_rows_certify_nothing():
    X, y, _ = grouped_rows(0)
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    number = certree.CertifiedTreeRegressor(random_state=0).fit(X, X[:, 0])
    message = "X and y must hold at least one row to certify a model, got 0 rows: pass rows"
    for asked in (
        lambda: certree.certify(model, X[:0], y[:0]),
        lambda: certree.certify(model, X[:0], [], groups=[]),
        lambda: model.certify(X[:0], y[:0]),
        lambda: number.certify(X[:0], y[:0]),
        lambda: Guarantees.by_rows(model, X[:0], y[:0]),
        lambda: Guarantees.by_batches(model, []),
        lambda: Guarantees.by_batches(model, [(X[:0], y[:0])]),
        lambda: certree.certificates.conditional_guarantees(model, X[:0], y[:0]),
    ):
        with pytest.raises(ValueError, match=message):
            asked()
    new = X + 0.1
    batches = [(new[:0], y[:0]), (new, y), (new[:0], y[:0])]
    assert Guarantees.by_batches(model, batches).certificate == certree.certify(model, new, y)
    with pytest.raises(ValueError, match="at least one row to evaluate a model, got 0 rows"):
        certree.show.report(model, X[:0], y[:0], "none.html")


def test_guarantees_are_of_the_classifier_as_it_was():
    model, guarantees, X, y = judged(CLASSIFIERS[0])
    expected = guarantees.predict_set(X, 0.8)
    model.fit(X, y[::-1])
    np.testing.assert_array_equal(guarantees.predict_set(X, 0.8), expected)


def test_parts_that_do_not_go_together_are_refused():
    _, guarantees, X, _ = judged(LogisticRegression())
    for changed, message in (
        (
            {"predicted": guarantees.predicted[:3]},
            r"y and predicted must have one dimension and equal lengths",
        ),
        ({"shares": guarantees.shares[:3]}, "shares must have 500 rows, as y has, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(guarantees, **changed)
    with pytest.raises(TypeError, match=r"certificate must be a Certificate, got 0\.1"):
        replace(guarantees, certificate=0.1)

    class Odd(LogisticRegression):
        def predict_proba(self, X):
            return np.full((len(X), self.width), np.nan)

    odd = Odd().fit(*rows(GROWING))
    for odd.width, message in ((2, "predict_proba must have shape"), (3, "got NaN")):
        with pytest.raises(ValueError, match=message):
            Guarantees.by_rows(odd, X, guarantees.y)


# -- of a fit --------------------------------------------------------------------------------------


def fitted(**switches):
    X, y = rows()
    return CertifiedTreeClassifier(**{"random_state": 0, **switches}).fit(X, y), X, y


@pytest.mark.parametrize("selection", ["best", "vote"])
def test_a_fit_is_asked_through_its_guarantees(selection):
    model, X, y = fitted(selection=selection)
    guarantees = model.guarantees_
    assert guarantees.certificate is model.certificate_
    assert dict(guarantees.conditional_guarantees().items()) == dict(
        model.conditional_guarantees().items()
    )
    np.testing.assert_array_equal(guarantees.predict_set(X, 0.8), model.predict_set(X, 0.8))
    assert guarantees.certify_set(0.8) == model.certify_set(0.8)
    assert guarantees.selective_certificates() == model.selective_certificates()
    for ours, theirs in zip(
        guarantees.predict_selective(X, 0.3), model.predict_selective(X, 0.3), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    weigh = model.model_selection_.held.weigh
    np.testing.assert_array_equal(guarantees.wrong, model.predict(X[weigh]) != y[weigh])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [None, np.arange(900) // 3])
def test_calibration_samples_know_what_the_election_knows(groups, weighted):
    X, y = rows()
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    model = CertifiedTreeClassifier(random_state=0).fit(X, y, sample_weight=weight, groups=groups)
    model_selection, judging = model.model_selection_, model.calibration_
    assert judging.held is model_selection.held
    assert judging.structure is model_selection.structure
    judging = pickle.loads(pickle.dumps(judging))  # which counts again
    np.testing.assert_array_equal(judging.held.stats.counts, model_selection.held.stats.counts)
    assert (judging.held.n, judging.held.grouped) == (
        model_selection.held.n,
        model_selection.held.grouped,
    )
    label = model.vote_.label
    assert judging.structure.log_mass(label) == model_selection.structure.log_mass(label)
    assert judging.n_given == len(y)
    np.testing.assert_array_equal(model.apply(X[judging.given]), judging.leaf)
    silent = allow_abstention(judging.structure)
    assert silent.log_mass(label) == allow_abstention(model_selection.structure).log_mass(label)


def saved_and_loaded(model, path, **switches):
    certree.save(model, path, **switches)
    return certree.load(path)


@pytest.mark.parametrize("selection", ["best", "vote"])
@pytest.mark.parametrize("groups", [None, np.arange(900) // 3])
@pytest.mark.parametrize("box", [False, True])
def test_a_model_file_keeps_all_guarantees(box, groups, selection, tmp_path):
    X, y = rows()
    grower = Grid([X.min(axis=0) - 1, X.max(axis=0) + 1]) if box else "cart"
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = CertifiedTreeClassifier(grower, max_depth=6, selection=selection, random_state=0)
    model.fit(X, y, weight, groups=groups, classes=np.unique(y) if box else None)
    loaded = saved_and_loaded(model, tmp_path / "model")
    assert loaded.calibration_.held.n == model.certificate_.n
    assert loaded.guarantees_.fixed == model.guarantees_.fixed
    assert (
        loaded.guarantees_.explain_missing_guarantees()
        == model.guarantees_.explain_missing_guarantees()
    )
    if groups is None:
        of = np.arange(len(y)) % 3
        asked = {"groups": of, "weights": 1 + of, "max_weight": 3}
        ours, theirs = loaded.conditional_guarantees(**asked), model.conditional_guarantees(**asked)
        assert dict(ours.items()) == dict(theirs.items())
        assert loaded.selective_certificates() == model.selective_certificates()
    if not (box or groups is not None):
        np.testing.assert_array_equal(loaded.predict_set(X, 0.8), model.predict_set(X, 0.8))
        assert loaded.certify_set(0.8) == model.certify_set(0.8)
        likeliest = certree.weights.map_pruning(loaded.tree_, loaded.weights_)
        assert loaded.certify_pruning(likeliest) == model.certify_pruning(likeliest)
        assert loaded.draw_pruning(0).certificate == model.draw_pruning(0).certificate
    certree.save(loaded, tmp_path / "again")
    for name, values in read_arrays(tmp_path / "model").items():
        expect_same_bits(read_arrays(tmp_path / "again")[name], values)


def test_a_class_that_no_row_grew_and_a_row_of_weight_zero_stay_in_a_file(tmp_path):
    X, y = rows()
    y[CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, y).calibration_.given[:7]] = 9
    model = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, y)
    loaded = saved_and_loaded(model, tmp_path / "model")
    assert 9 not in loaded.classes_.tolist()
    assert dict(loaded.conditional_guarantees().items()) == dict(
        model.conditional_guarantees().items()
    )


def test_a_file_without_calibration_samples_has_the_certificates_alone(tmp_path):
    model, X, _ = fitted()
    loaded = saved_and_loaded(model, tmp_path / "model", calibration_samples=False)
    assert not [name for name in read_arrays(tmp_path / "model") if name.startswith("calibration")]
    assert loaded.calibration_ is loaded.guarantees_ is None
    assert loaded.certificates_ == model.certificates_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"without its calibration rows.*calibration_samples=True"):
        loaded.conditional_guarantees()
    assert model.guarantees_ is not None


def test_of_equal_rivals_a_file_knows_which_one_is_deployed(tmp_path):
    model, _, _ = fitted(selection="vote")
    model.certificates_ = (replace(model.certificate_), *model.certificates_[1:])
    assert model.certificates_[0] == model.certificate_
    assert not model.guarantees_.fixed
    assert not saved_and_loaded(model, tmp_path / "model").guarantees_.fixed


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("calibration.leaf", lambda leaf: leaf * 0, "leaf must hold numbers of leaves"),
        ("calibration.leaf", lambda leaf: leaf + 10**6, "leaf must lie in"),
        ("calibration.leaf", lambda leaf: leaf[1:], "leaf must have shape"),
        (
            "calibration.leaf",
            lambda leaf: np.roll(leaf, 1),
            "calibration set must have the number of rows",
        ),
        ("calibration.leaf", lambda leaf: leaf.astype(np.int64), "leaf must have dtype int32"),
        ("calibration.y", lambda y: y + 9, "y must lie in"),
        ("calibration.y", lambda y: 2 - y, "calibration set must have the number of rows"),
        ("calibration.given", lambda given: given * 0, "must hold each row index at most once"),
        ("calibration.given", lambda given: given - 10**4, "given must lie in"),
        ("calibration.splits", lambda splits: splits[1:], "splits must have shape"),
        ("grown.counts", lambda counts: -counts, "counts must be finite"),
        ("grown.counts", lambda counts: counts[1:], "label must"),
        ("grown.label", lambda label: label + 9, "label must lie in"),
    ],
)
def test_calibration_samples_of_a_damaged_file_are_refused(name, change, message, tmp_path):
    model, _, _ = fitted()
    certree.save(model, tmp_path / "model")
    rewrite(tmp_path / "model", {name: change(read_arrays(tmp_path / "model")[name])})
    with pytest.raises(ValueError, match=f"(or is damaged|cannot be loaded): .*{message}"):
        certree.load(tmp_path / "model")


@pytest.mark.parametrize("weight", [np.nan, np.inf, 0.0, -1.0, 1.0])
def test_weights_of_groups_that_are_none_are_refused(weight, tmp_path):
    X, y = rows()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y, groups=np.arange(900) // 3)
    certree.save(model, tmp_path / "model")
    rewrite(tmp_path / "model", {"calibration.weight": np.full(len(model.calibration_.y), weight)})
    with pytest.raises(
        ValueError,
        match=r"weights of the calibration rows must|calibration set must have the number of rows",
    ):
        certree.load(tmp_path / "model")


@pytest.mark.parametrize(
    "without",
    [
        "calibration.leaf",
        "calibration.y",
        "calibration.given",
        "calibration.splits",
        "grown.counts",
    ],
)
def test_a_file_that_lacks_a_column_of_the_calibration_samples_is_refused(without, tmp_path):
    certree.save(fitted()[0], tmp_path / "model")
    rewrite(tmp_path / "model", without=[without])
    with pytest.raises(ValueError, match=f"lacks {without}"):
        certree.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"given": [-1] * 10}, "given must lie in"),
        ({"n_given": 3}, r"given must lie in 0 \.\. 2"),
        ({"leaf": np.full(10, 10**6)}, "leaf must lie in"),
        ({"y": np.full(10, 9)}, "y must lie in"),
        ({"y": [0]}, "y must have shape"),
        ({"splits": [True]}, "splits must have shape"),
        ({"weight": [1.0]}, "weight must have shape"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(changed, message):
    judging = fitted()[0].calibration_
    ten = {name: getattr(judging, name)[:10] for name in ("given", "leaf", "y")}
    with pytest.raises(ValueError, match=message):
        replace(judging, **{**ten, **changed})


def test_guarantees_outlive_a_pickle():
    model, X, _ = fitted()
    for again in (
        pickle.loads(pickle.dumps(model)).guarantees_,
        pickle.loads(pickle.dumps(model.guarantees_)),
    ):
        assert again.selective_certificates() == model.selective_certificates()
        np.testing.assert_array_equal(again.predict_set(X), model.predict_set(X))


def test_what_is_asked_twice_is_computed_once_and_is_in_no_pickle(monkeypatch):
    model, X, y = fitted()
    before = pickle.dumps(model.calibration_)
    calls = []
    scores = tree_calibration.compute_class_scores
    monkeypatch.setattr(
        tree_calibration, "compute_class_scores", lambda held: calls.append(held) or scores(held)
    )
    for _ in range(3):
        sets = model.set_params(n_jobs=2).predict_set(X, 0.8)
    assert len(calls) == 1
    assert pickle.dumps(model.calibration_) == before
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_set(X, 0.8), sets)
    model.fit(X[::2], y[::2])
    fresh = CertifiedTreeClassifier(random_state=0).fit(X[::2], y[::2])
    np.testing.assert_array_equal(model.predict_set(X, 0.8), fresh.predict_set(X, 0.8))
    assert len(calls) == 4


def test_guarantees_are_those_of_the_fit_that_was_asked():
    model, X, y = fitted()
    before = model.guarantees_
    expected = before.conditional_guarantees().error
    model.fit(X[::2], y[::2])
    assert before.conditional_guarantees().error == expected
    assert model.guarantees_.certificate == model.certificate_ != before.certificate


def test_a_model_without_a_fit_has_none():
    with pytest.raises(NotFittedError):
        _ = CertifiedTreeClassifier().guarantees_
    assert not hasattr(CertifiedTreeClassifier(), "guarantees_")


def test_methods_that_ask_have_the_signature_and_the_words_of_the_answer():
    for name in ("conditional_guarantees", "predict_set", "certify_set", "selective_certificates"):
        method = getattr(CertifiedTreeClassifier, name)
        assert method.__doc__ == getattr(Guarantees, name).__doc__
        assert method.__name__ == name


def test_one_class_and_a_class_that_no_row_grew_are_told_apart():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = np.zeros(80, dtype=int)
    model = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, y)
    y[model.calibration_.given[:4]] = 1
    model.fit(X, y)
    assert model.classes_.tolist() == [0, 1]
    promised = model.conditional_guarantees()
    assert promised.error.worst.risk == pytest.approx(4 / 40)
    assert promised.recall[0].n == 36
    assert (promised.recall[1].n, promised.recall[1].bound) == (4, 1)
    assert model.certify_set(0.5)[0].risk == pytest.approx(4 / 40)


# -- regressors ------------------------------------------------------------------------------------


class ForeignRegressor:
    """A regressor of another library, which is no estimator of scikit-learn."""

    _estimator_type = "regressor"

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        make_pipeline(StandardScaler(), LinearRegression()),
        BoostedTreesRegressor(max_iter=3, random_state=0),
        ForeignRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_certificates_of_errors_refuse_regressors(model):
    X, y = np.random.default_rng(0).normal(size=(200, 2)).T[:, :, None]
    if hasattr(model, "fit"):
        model.fit(X[:100], y[:100, 0])
    ways = [
        lambda: certify(model, X[100:], y[100:, 0]),
        lambda: Guarantees.by_rows(model, X[100:], y[100:, 0]),
        lambda: Guarantees.by_batches(model, [(X[100:], y[100:, 0])]),
        lambda: conditional_guarantees(model, X[100:], y[100:, 0]),
    ]
    for certify_errors in ways:
        with pytest.raises(TypeError, match=r"got the regressor .*CertifiedBoostedTreesRegressor"):
            certify_errors()
