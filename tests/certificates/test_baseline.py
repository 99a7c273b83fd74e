"""Losses of constant predictions, and what certificates say of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree.certificates import Guarantees, hold_out
from certree.certificates.baseline import (
    Baseline,
    compute_class_baseline,
    compute_median_baseline,
    find_most_frequent,
)
from model_files import expect_refusal, read_header, rewrite, save_and_load

CLASSES = np.array(["no", "maybe", "yes"])
VERDICT = "The bound does not show that the model is better than this constant."


@st.composite
def weighted(draw, values):
    """A list of values, and weights that are fractions as those of rows in groups."""
    found = draw(st.lists(values, min_size=1, max_size=30))
    sizes = draw(st.lists(st.integers(1, 7), min_size=len(found), max_size=len(found)))
    return found, draw(st.sampled_from([[1.0] * len(found), [1 / size for size in sizes]]))


@given(weighted(st.integers(0, 2)), st.randoms())
def test_the_most_frequent_class_is_that_of_the_reference(rows, random):
    codes, weight = rows
    given = None if set(weight) == {1.0} else np.array(weight)
    found = compute_class_baseline(np.array(codes), CLASSES, given)
    label, error = reference.compute_class_baseline(CLASSES[codes].tolist(), weight)
    assert found.value == pytest.approx(error, abs=1e-12)
    if given is None:  # Sums of fractions may tie up to rounding.
        assert found.name == f"always {label}"
    order = random.sample(range(len(codes)), len(codes))
    shuffled = None if given is None else given[order]
    assert compute_class_baseline(np.array(codes)[order], CLASSES, shuffled) == found


@given(weighted(st.integers(-5, 5).map(float)), st.floats(0.5, 20), st.randoms())
def test_the_error_of_the_median_is_that_of_the_reference(rows, limit, random):
    y, weight = rows
    found = compute_median_baseline(np.array(y), limit, np.array(weight))
    if set(weight) == {1.0}:  # Sums of fractions may tie up to rounding.
        expected = reference.compute_median_baseline(y, limit, weight)
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert compute_median_baseline(np.array(y), limit) == found
    order = random.sample(range(len(y)), len(y))
    again = compute_median_baseline(np.array(y)[order], limit, np.array(weight)[order])
    assert again.value == pytest.approx(found.value, rel=1e-9)


def test_rows_of_classes_that_cannot_be_predicted_are_errors_of_the_constant():
    found = compute_class_baseline(np.array([3, 3, 3, 1]), CLASSES)
    assert found == Baseline("always maybe", 0.75)
    assert find_most_frequent({"a": 2, "b": 1}, 4) == Baseline("always a", 0.5)
    with pytest.raises(ValueError, match="value must be finite and at least 0"):
        Baseline("always a", -0.1)


def test_a_certificate_compares_its_bound_with_the_constant():
    plain = hold_out(errors=30, n=1000)
    assert plain.is_below_baseline is None
    assert "always" not in str(plain)
    better = replace(plain, baseline=Baseline("always No", 0.2))
    assert better.is_below_baseline
    assert str(better) == str(plain).replace("3.0 %;", "3.0 %, always No: 20.0 %;")
    worse = replace(plain, baseline=Baseline("always No", 0.035))
    assert not worse.is_below_baseline
    assert not replace(plain, baseline=Baseline("always No", plain.bound)).is_below_baseline
    assert str(worse).endswith(
        f"(observed on them: 3.0 %, always No: 3.5 %; method: hold_out). {VERDICT}"
    )
    assert worse._repr_html_().count(VERDICT) == 1
    assert "observed error, always No</td>" in worse._repr_html_()
    # The certificate says the same of the model with or without a constant beside it.
    assert worse == better == plain
    assert worse.at(0.01).baseline == worse.baseline
    with pytest.raises(ValueError, match=r"baseline must lie in 0 \.\. 1, got 1.5"):
        replace(plain, baseline=Baseline("always No", 1.5))


def test_rows_of_another_source_have_no_constant():
    certificate = replace(hold_out(errors=30, n=1000), baseline=Baseline("always No", 0.2))
    assert certificate.nearby(kl=0.01).baseline is None


def draw(n=800, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, np.where(X[:, 0] + random.normal(size=n) > 0.8, "yes", "no")


FITS = [
    (certree.CertifiedTreeClassifier, {}),
    (certree.CertifiedTreeClassifier, {"max_leaf_nodes": 3}),
    (certree.CertifiedTreeClassifier, {"grower": certree.Grid([[-6, -6], [6, 6]])}),
    (certree.CertifiedBoostedTreesClassifier, {"quality": "fast"}),
    (certree.ensembles.CertifiedForestClassifier, {"n_estimators": 10}),
]


@pytest.mark.parametrize(("estimator", "parameters"), FITS)
def test_certified_classifiers_count_the_classes_of_their_calibration_rows(
    estimator, parameters, tmp_path
):
    X, y = draw()
    known = {"classes": ["no", "yes"]} if "grower" in parameters else {}
    model = estimator(random_state=0, **parameters).fit(X, y, **known)
    rows = getattr(model, "calibration_", None)
    used = y if rows is None else y[rows.given]
    assert model.certificate_.baseline == Baseline("always no", float(np.mean(used == "yes")))
    assert {one.baseline for one in model.certificates_} == {model.certificate_.baseline}
    full = getattr(model, "full_certificate_", None)
    assert full is None or full.baseline == model.certificate_.baseline
    assert any(one is model.certificate_ for one in model.certificates_)
    loaded = save_and_load(model, tmp_path / "model")
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.certificate_.baseline == model.certificate_.baseline


def test_groups_count_equally():
    X, y = draw()
    groups = np.sort(np.random.default_rng(0).integers(0, 200, len(y)))
    model = certree.CertifiedTreeClassifier(random_state=0).fit(X, y, groups=groups)
    used = model.calibration_.given
    means = [np.mean(y[used][groups[used] == one] == "yes") for one in np.unique(groups[used])]
    assert model.certificate_.baseline.value == pytest.approx(np.mean(means), abs=1e-12)


def test_a_class_that_no_training_row_has_is_named():
    X, y = draw(400)
    y = np.where(np.arange(400) < 200, "rare", y)
    model = certree.CertifiedTreeClassifier(random_state=0, train_size=0.5)
    model.fit(X, y, groups=np.r_[np.zeros(200), np.arange(1, 201)].astype(int))
    rows = model.calibration_
    labels, counts = np.unique(y[rows.given], return_counts=True)
    if rows.weight is not None:
        counts = [rows.weight[y[rows.given] == label].sum() for label in labels]
    assert model.certificate_.baseline.name == f"always {labels[np.argmax(counts)]}"


@pytest.mark.parametrize(
    "estimator", [certree.CertifiedTreeRegressor, certree.CertifiedBoostedTreesRegressor]
)
def test_certified_regressors_are_compared_with_the_median(estimator, tmp_path):
    X, _ = draw()
    y = 3 * X[:, 0] + np.random.default_rng(1).normal(size=len(X))
    parameters = {} if estimator is certree.CertifiedTreeRegressor else {"quality": "fast"}
    model = estimator(random_state=0, **parameters).fit(X, y)
    certificate = model.certificate_
    assert certificate.is_below_baseline
    assert ", always the median: " in str(certificate)
    assert all(one.baseline is None for one in model.certificates_[1:])
    loaded = save_and_load(model, tmp_path / "model")
    assert loaded.certificate_.baseline == certificate.baseline
    new = np.random.default_rng(2).normal(size=(300, 2))
    found = model.certify(new, new[:, 0])
    errors = np.minimum(
        np.abs(new[:, 0] - np.quantile(new[:, 0], 0.5, method="inverted_cdf")), found.unit
    )
    assert found.baseline.value == pytest.approx(errors.mean())


def test_a_model_of_noise_does_not_beat_the_constant():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(600, 2)), random.random(600) < 0.2
    certificate = certree.CertifiedTreeClassifier(random_state=0).fit(X, y).certificate_
    assert not certificate.is_below_baseline
    assert str(certificate).endswith(VERDICT)


def test_new_rows_have_a_constant_in_memory_and_in_batches():
    X, y = draw()
    new, truth = draw(500, 1)
    model = certree.PrunedTreeClassifier().fit(X, y)
    expected = Baseline("always no", float(np.mean(truth == "yes")))
    assert certree.certify(model, new, truth).baseline == expected
    batches = [(new[:200], truth[:200]), (new[200:], truth[200:])]
    assert Guarantees.by_rows(model, new, truth).certificate.baseline == expected
    assert Guarantees.by_batches(model, batches).certificate.baseline == expected
    assert certree.certificates.batches.certify_batches(model, batches, 0.05).baseline == expected
    copies = np.r_[np.arange(500), np.flatnonzero(truth == "yes")]
    found = certree.certify(model, new[copies], truth[copies], duplicates="copies")
    assert found.baseline == expected


def test_files_without_a_constant_load_and_wrong_ones_are_refused(tmp_path):
    X, y = draw(300)
    model = certree.CertifiedTreeClassifier(random_state=0).fit(X, y)
    path = tmp_path / "model"
    certree.save(model, path)
    certificates = read_header(path)["certificates"]
    for certificate in certificates:
        assert certificate.pop("baseline")
    rewrite(path, certificates=certificates)
    loaded = certree.load(path)
    assert loaded.certificate_ == model.certificate_
    assert loaded.certificate_.baseline is None
    assert "always" not in str(loaded.certificate_)
    for wrong in (
        {"name": "always no", "value": 7.0},
        {"name": 3, "value": 0.1},
        {"name": "a"},
        "a",
    ):
        certificates[0]["baseline"] = wrong
        rewrite(path, certificates=certificates)
        expect_refusal(path)
