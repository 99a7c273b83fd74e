"""Hashes of the rows of a fit, and certificates that refuse these rows."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certree
import reference
from certree import (
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
)
from certree.certificates.certificate import Matches
from certree.rows.hashes import compute_fit_hashes, find_known_rows, hash_samples, merge_hashes

CLASSIFIERS = [
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeClassifier(preprocessor=StandardScaler(), random_state=0),
    PACBayesTreeClassifier(random_state=0),
    PrunedTreeClassifier(random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    DecoratedTreeClassifier(min_samples_model=30, random_state=0),
    NaiveBayesClassifier(),
]
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=str)


def coins(n=200, seed=0):
    """Rows of noise with labels of fair coins: no classifier errs on fewer than half."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n)


@given(
    arrays(
        st.sampled_from([np.float64, np.float32]),
        array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(width=32) | st.sampled_from([0.0, -0.0, np.nan, -np.nan, np.inf]),
    )
)
def test_hashes_are_those_of_the_reference(X):
    np.testing.assert_array_equal(hash_samples(X), [reference.hash_row(row) for row in X])
    rounded = [reference.hash_row(row, rounded=True) for row in X]
    np.testing.assert_array_equal(hash_samples(X, rounded=True), rounded)
    np.testing.assert_array_equal(hash_samples(np.asfortranarray(X)), hash_samples(X))


@pytest.mark.parametrize("width", [1, 7, 255, 256, 700])
@pytest.mark.parametrize("kind", ["float32", "float64", "int16", "in columns", "in records"])
def test_columns_of_any_type_and_place_have_the_hashes_of_the_reference(width, kind):
    rng = np.random.default_rng(width)
    X = rng.integers(-3, 4, (40, width)) * (
        rng.random((40, width)) < np.linspace(0, 1, 40)[:, None]
    )
    table, y = X.astype(kind if hasattr(np, kind) else float), rng.normal(size=40)
    if kind == "in columns":
        table = np.asfortranarray(table)[::2][::-1]
        X, y = X[::2][::-1], y[::2][::-1]
    if kind == "in records":  # with a stride that is no multiple of eight bytes
        records = np.empty(40, [("a", "i1"), ("y", float)])
        records["y"] = y
        y = records["y"]
    order = rng.permutation(width).astype(np.int32)
    for rounded in (False, True):
        expected = [reference.hash_row([*row, one], rounded) for row, one in zip(X, y, strict=True)]
        np.testing.assert_array_equal(hash_samples(table, y, rounded=rounded), expected)
        in_order = [*zip(X[:, order], y, strict=True)]
        expected = [reference.hash_row([*row, one], rounded) for row, one in in_order]
        np.testing.assert_array_equal(
            hash_samples(table, y, rounded=rounded, order=order), expected
        )


def test_hashes_of_many_rows_do_not_depend_on_blocks():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    whole = hash_samples(X)
    np.testing.assert_array_equal(np.append(hash_samples(X[:9001]), hash_samples(X[9001:])), whole)


def test_what_is_equal_has_equal_hashes():
    payload = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    X = np.array([[0.0, np.nan], [-0.0, payload[0]], [0.0, payload[1]]])
    assert len(set(hash_samples(X))) == 1
    whole = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(hash_samples(whole.astype(np.float32)), hash_samples(whole))
    np.testing.assert_array_equal(hash_samples(whole.astype(int)), hash_samples(whole))


def test_a_million_different_rows_have_different_hashes():
    every = np.stack(np.meshgrid(*3 * [np.arange(100.0)]), axis=-1).reshape(-1, 3)
    assert len(merge_hashes(hash_samples(every))) == 10**6
    known, rounded = find_known_rows(every[:5], merge_hashes(hash_samples(every[2:])))
    assert known.tolist() == [False, False, True, True, True]
    assert not rounded.any()


@pytest.mark.slow
def test_hashes_are_the_same_in_another_process():
    code = "import numpy as np; from certree.rows.hashes import hash_samples\n"
    code += "print(*hash_samples(np.arange(6.0).reshape(3, 2)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = hash_samples(np.arange(6.0).reshape(3, 2))
    assert [int(one) for one in out.stdout.split()] == expected.tolist()


@every_classifier
def test_rows_of_the_fit_certify_nothing(model, tmp_path):
    X, y = coins()
    model = clone(model).fit(X, y)
    message = r"also occur among those of the fit.*pass new rows"
    with pytest.raises(ValueError, match=f"200 of 200 rows {message}$"):
        certree.certify(model, X, y)
    with pytest.raises(ValueError, match="the rows are the table of the fit"):
        certree.certify(model, X[::-1], y[::-1], duplicates="genuine")
    with pytest.raises(
        ValueError, match="100 of 100 rows match rows of the fit, where at most 22 new"
    ):
        certree.certify(model, X[::2], y[::2], duplicates="genuine")
    message += r'\. Do equal rows mean the same .* give duplicates="genuine"'
    X_new, y_new = coins(seed=1)
    with pytest.raises(ValueError, match=f"5 of 205 rows {message}"):
        certree.certify(model, np.vstack([X_new, X[:5]]), np.append(y_new, y[:5]))
    certificate = certree.certify(model, X_new, y_new)
    assert certificate.repeats == 0
    assert "of the 200 calibration rows" in str(certificate)
    assert certificate.bound > 0.5


@every_classifier
@pytest.mark.parametrize("kept", [False, True])
def test_files_keep_hashes_or_say_that_they_do_not(model, kept, tmp_path):
    if getattr(model, "preprocessor", None) is not None:
        pytest.skip("a preprocessor is not saved")
    if isinstance(model, DecoratedTreeClassifier):
        pytest.skip("a model trees is not saved")
    X, y = coins()
    model = clone(model).fit(X, y)
    certree.save(model, tmp_path / "model", sample_hashes=kept)
    loaded = certree.load(tmp_path / "model")
    with pytest.raises(ValueError, match="200 of 200 rows" if kept else "saved without hashes"):
        certree.certify(loaded, X, y)
    X_new, y_new = coins(seed=1)
    if kept:
        np.testing.assert_array_equal(loaded.sample_hashes_, model.sample_hashes_)
        assert certree.certify(loaded, X_new, y_new) == certree.certify(model, X_new, y_new)
    else:
        assert loaded.sample_hashes_ is None
        with pytest.raises(ValueError, match=r'saved without hashes.*give duplicates="genuine"'):
            certree.certify(loaded, X_new, y_new)
        certificate = certree.certify(loaded, X_new, y_new, duplicates="genuine")
        assert certificate.repeats is None
        assert "200 rows given, which were not compared with those of the fit," in str(certificate)
        # Saved once more, the file still has none.
        certree.save(loaded, tmp_path / "again")
        assert certree.load(tmp_path / "again").sample_hashes_ is None


def test_repeats_that_are_genuine_are_counted():
    X, y = coins()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    X_new, y_new = coins(seed=1)
    X_new[:12] = X[5]
    certificate = model.certify(X_new, y_new, duplicates="genuine")
    assert certificate.repeats == 12
    assert (
        "over the draw of the 200 rows given, of which 12 repeat other rows and count as independent "
        "draws, " in str(certificate)
    )
    assert certificate.at(0.01).repeats == 12
    assert certificate.matches == Matches(12, 0.0)
    told = "12 rows match rows of the fit, where about 0 are expected of new rows"
    assert told in certificate.assumptions
    one = Matches(1, 2.0).statement
    assert one == "1 row matches rows of the fit, where about 2 are expected of new rows"
    # All of them count: to leave them out would bias the bound.
    assert certificate.n == 200
    assert certificate.risk == np.mean(model.predict(X_new) != y_new)
    with pytest.raises(ValueError, match="12 of 200 rows"):
        model.certify(X_new, y_new)
    with pytest.raises(ValueError, match=r"duplicates must be .*, got True"):
        model.certify(X_new, y_new, duplicates=True)
    with pytest.raises(ValueError, match="look, duplicates, time, groups and independent describe"):
        model.certify(duplicates="genuine")


def test_rows_are_known_by_features_alone_and_without_those_of_weight_zero():
    X, y = coins()
    weight = (np.arange(200) >= 50).astype(float)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y, weight)
    np.testing.assert_array_equal(model.sample_hashes_, compute_fit_hashes(X[50:]))
    assert certree.certify(model, X[:50], y[:50]).repeats == 0
    with pytest.raises(ValueError, match="150 of 150 rows"):
        certree.certify(model, X[50:], 1 - y[50:])


def test_rows_of_all_batches_are_known():
    X, y = coins()
    model = NaiveBayesClassifier(densities="normal")
    model.partial_fit(X[:100], y[:100], classes=[0, 1]).partial_fit(X[90:150], y[90:150])
    np.testing.assert_array_equal(model.sample_hashes_, compute_fit_hashes(X[:150]))
    with pytest.raises(ValueError, match="150 of 200 rows"):
        certree.certify(model, X, y)


def test_batches_after_a_file_without_hashes_do_not_pretend_to_know_all(tmp_path):
    X, y = coins()
    model = NaiveBayesClassifier(densities="normal").partial_fit(X[:100], y[:100], classes=[0, 1])
    certree.save(model, tmp_path / "model", sample_hashes=False)
    loaded = certree.load(tmp_path / "model").partial_fit(X[100:], y[100:])
    with pytest.raises(ValueError, match="saved without hashes"):
        certree.certify(loaded, *coins(seed=1))
    np.testing.assert_array_equal(loaded.fit(X, y).sample_hashes_, compute_fit_hashes(X))


def test_categories_are_known_by_their_names():
    X, y = coins()
    frame = pd.DataFrame(X.round(1), columns=list("abc"))
    frame["town"] = pd.Categorical(np.array(["Bern", "Zug", "Ulm"])[np.arange(200) % 3])
    model = CertifiedTreeClassifier(random_state=0).fit(frame, y)
    other = frame.assign(town=pd.Categorical(frame["town"], ["Zug", "Ulm", "Bern", "Aarau"]))
    with pytest.raises(ValueError, match="200 of 200 rows"):
        model.certify(other, y)


def test_searches_and_pipelines_know_the_rows_of_their_model():
    X, y = coins()
    steps = make_pipeline(StandardScaler(), PACBayesTreeClassifier(random_state=0))
    grid = {"pacbayestreeclassifier__vote": ["mean", "majority"]}
    for model in (steps, make_pipeline(NaiveBayesClassifier()), GridSearchCV(steps, grid, cv=2)):
        with pytest.raises(ValueError, match="200 of 200 rows"):
            certree.certify(model.fit(X, y), X, y)
        assert certree.certify(model, *coins(seed=1)).repeats == 0


def test_others_are_not_compared_and_regressors_keep_nothing():
    X, y = coins()
    assert certree.certify(LogisticRegression().fit(X, y), X, y).repeats is None
    assert not hasattr(PACBayesTreeRegressor(random_state=0).fit(X, y), "sample_hashes_")
