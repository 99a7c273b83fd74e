"""Rows that a table holds more than once: what is assumed of them, and what holds then."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    KFold,
    ShuffleSplit,
    TunedThresholdClassifierCV,
    train_test_split,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certree
import reference
from certree import (
    BoostedTreesClassifier,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    Grid,
)
from certree.certificates import Guarantees
from certree.certificates.batches import certify_batches
from certree.rows.duplicates import (
    RowHasher,
    count_repeats,
    decide_worst_case,
    find_first_equal_keys,
    find_first_equal_rows,
    get_allowed_repeats,
    mark_repeats,
    merge_copies,
)
from certree.rows.hashes import RowHashes, compute_fit_hashes, find_known_rows
from certree.weights.node_weights import map_pruning
from run_length import LONG

DATA = os.environ.get("CERTREE_DATA")
DRAWS = 300 if LONG else 20
DELTA = 0.2


def coins(n=240, seed=0):
    """Rows of noise with labels of fair coins: every classifier errs on half of the new rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(0, 2, n)


def oversampled(X, y):
    """Rows of the rarer class copied at random until classes are even, as oversamplers do."""
    rng = np.random.default_rng(len(y))
    kept = np.flatnonzero((y == 0) | (np.arange(len(y)) % 4 == 0))
    X, y = X[kept], y[kept]
    few = np.flatnonzero(y == 1)
    again = rng.choice(few, max(0, len(y) - 2 * len(few)))
    return np.vstack([X, X[again]]), np.append(y, y[again])


def joined(X, y):
    """Each row as often as another table has lines for it, 1 to 3 times."""
    row = np.repeat(np.arange(len(y)), np.random.default_rng(1).integers(1, 4, len(y)))
    return X[row], y[row]


COPIED = {
    "oversampled": oversampled,
    "doubled": lambda X, y: (np.vstack([X, X]), np.append(y, y)),
    "tripled": lambda X, y: (np.vstack([X, X, X]), np.tile(y, 3)),
    "float32": lambda X, y: (np.vstack([X, X.astype(np.float32)]), np.append(y, y)),
    "joined": joined,
}
every_copy = pytest.mark.parametrize("copied", COPIED)
every_classifier = pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeClassifier(train_size=0.5, cv=2, delta=DELTA),
        CertifiedForestClassifier(6, delta=DELTA),
    ],
    ids=lambda one: type(one).__name__,
)


# -- which rows are alike --------------------------------------------------------------------------

VALUES = st.sampled_from(
    [0.0, -0.0, 1.0, 0.1, float(np.float32(0.1)), np.nan, None, "a", "b", "0.1"]
)
# Numbers that float32 merges: integers, which stay different, and fractions, which may be copies.
MERGED = st.sampled_from(
    [
        *(
            0.1,
            float(np.float32(0.1)),
            np.nextafter(0.1, 1),
            0.5,
            np.nan,
            np.inf,
            1e300,
            1e-60,
            0.0,
        ),
        *(2.0**24, 2.0**24 + 1, 1.7e9, 1.7e9 + 1, float(np.float32(1.7e9 + 0.3)), 1.7e9 + 0.3),
    ]
)


@given(st.lists(st.tuples(VALUES, VALUES, st.integers(0, 1)), min_size=1, max_size=12))
def test_rows_that_are_alike_are_those_of_the_reference(rows):
    X = np.empty((len(rows), 2), dtype=object)
    X[:] = [row[:2] for row in rows]
    y = np.array([row[2] for row in rows])
    expected = reference.find_first_copies(X.tolist(), y.tolist())
    assert find_first_equal_rows(X, y).tolist() == expected
    assert find_first_equal_rows(X.tolist(), y).tolist() == expected
    assert find_first_equal_rows(pd.DataFrame(X), y).tolist() == expected


@given(
    st.lists(
        st.tuples(MERGED, MERGED, st.sampled_from([0.0, 0.1, float(np.float32(0.1)), 2.0**24 + 1])),
        min_size=1,
        max_size=10,
    )
)
def test_copies_that_have_passed_through_float32_are_those_of_the_reference(rows):
    X, y = np.array([row[:2] for row in rows]), np.array([row[2] for row in rows])
    expected = reference.find_first_copies(X.tolist(), y.tolist())
    assert find_first_equal_rows(X, y).tolist() == expected
    assert find_first_equal_rows(scipy.sparse.csr_array(X), y).tolist() == expected
    ends = range(0, len(X) + 3, 3)
    alike = RowHasher()
    parts = [alike.hash_rows(X[i : i + 3], y[i : i + 3]) for i in ends if len(X[i : i + 3])]
    assert find_first_equal_keys(RowHashes.concatenate(parts).keys).tolist() == expected
    seen = X[: -(-len(X) // 2)]
    known, rounded = find_known_rows(X, compute_fit_hashes(seen))
    for row, is_known in zip(X.tolist(), known | rounded, strict=True):
        assert is_known == any(reference.are_copies(row, other) for other in seen.tolist())


def large_numbers(name, n=4000):
    """Tables whose rows differ only beyond float32, by numbers with gaps, as row numbers have none."""
    rng = np.random.default_rng(3)
    seconds = 1.7e9 + 5.0 * np.arange(n)
    return {
        "seconds": np.column_stack([seconds, np.zeros(n)]),
        "seconds and decimals": np.column_stack([seconds, rng.integers(0, 9, n) / 10]),
        "ids": np.column_stack([2.0**25 + 5 * rng.permutation(n), rng.integers(0, 3, n)]),
        "ids as integers": np.column_stack([2**25 + 5 * rng.permutation(n), rng.integers(0, 3, n)]),
        "nanoseconds": np.column_stack([1.7e18 + 1024.0 * np.arange(n), np.ones(n)]),
    }[name]


@pytest.mark.filterwarnings("ignore::certree.NearCopiesWarning")
@pytest.mark.parametrize(
    "name", ["seconds", "seconds and decimals", "ids", "ids as integers", "nanoseconds"]
)
def test_rows_that_differ_only_beyond_float32_are_no_copies(name):
    X, y = large_numbers(name), np.arange(4000) % 2
    assert (find_first_equal_rows(X, y) == np.arange(4000)).all()
    model = CertifiedTreeClassifier(random_state=0).fit(X[:2000], y[:2000])
    assert model.certificate_.repeats == 0
    assert model.certify(X[2000:], y[2000:]).repeats == 0
    kept = CertifiedTreeClassifier(duplicates="copies", random_state=0).fit(X[:2000], y[:2000])
    assert kept.certificate_.n == model.certificate_.n


@pytest.mark.parametrize("as_float32", ["fit", "new rows"])
def test_rows_that_have_passed_through_float32_are_known(as_float32, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 50, 400) / 10, np.arange(400.0)])
    y, rounded = rng.integers(0, 2, 400), X.astype(np.float32)
    fit, new = (rounded, X) if as_float32 == "fit" else (X, rounded)
    model = BoostedTreesClassifier(max_iter=2, random_state=0).fit(fit, y)
    certree.save(model, tmp_path / "model")
    for one in (model, certree.load(tmp_path / "model")):
        with pytest.raises(
            ValueError, match=r"400 of 400 rows .*\(400 of them as float32 holds them"
        ):
            certree.certify(one, new, y)
    # One copy of each row, wherever it stands.
    found = find_first_equal_rows(np.vstack([fit, new]), np.append(y, y))
    assert (found[400:] == np.arange(400)).all()


def test_rows_are_alike_whatever_holds_them():
    numbers = np.array([[1.5, 0.0], [0.1, 2.0], [1.5, 0.0], [0.1, 2.0], [1.5, 2.0]])
    y, expected = [0, 1, 0, 0, 0], [0, 1, 0, 3, 4]
    frame = pd.DataFrame({"a": numbers[:, 0], "b": pd.Categorical(numbers[:, 1].astype(int))})
    held = [
        numbers,
        numbers.tolist(),
        frame,
        pl.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1]}),
    ]
    held += [scipy.sparse.csr_array(numbers), numbers.reshape(5, 2, 1)]
    for X in held:
        assert find_first_equal_rows(X, y).tolist() == expected
    texts = ["one", "two", "one", "two", "three"]
    assert find_first_equal_rows(texts, y).tolist() == expected
    assert find_first_equal_rows(numbers[:0], y[:0]).tolist() == []


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 2)), min_size=1, max_size=10
    ),
    st.booleans(),
)
def test_repeats_are_rows_that_judge_and_have_been_met_before(rows, grouped):
    kinds, grows, groups = ([*column] for column in zip(*rows, strict=True))
    first = np.array([kinds.index(kind) for kind in kinds])
    grow, weigh = np.flatnonzero(grows), np.flatnonzero(~np.array(grows))
    met = {kinds[i] for i in grow} if len(weigh) else set()
    expected, units = 0, set()
    for i in weigh if len(weigh) else grow:
        unit = kinds[i], groups[i] if grouped else i
        expected += unit not in units and kinds[i] in met
        units.add(unit)
        met.add(kinds[i])
    given_groups = np.array(groups) if grouped else None
    assert count_repeats(first, grow, weigh, given_groups) == expected
    # The rows themselves: of those that are alike one is none, or those of the first group.
    repeats = []
    for i in weigh if len(weigh) else grow:
        alike = [j for j in weigh if kinds[j] == kinds[i]]
        if not len(weigh):
            repeats.append(kinds.count(kinds[i]) > 1)
        elif grouped:
            repeats.append(
                kinds[i] in {kinds[j] for j in grow} or groups[i] > min(groups[j] for j in alike)
            )
        else:
            repeats.append(kinds[i] in {kinds[j] for j in grow} or i > min(alike))
    assert mark_repeats(first, grow, weigh, given_groups).tolist() == repeats


# -- copies ----------------------------------------------------------------------------------------


@every_copy
@every_classifier
def test_copies_certify_nothing_without_a_word(copied, model):
    model = clone(model)
    X, y = COPIED[copied](*coins())
    message = "rows that certify repeat other rows, target included.*copies.*genuine"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        certree.certify(LogisticRegression().fit(X, y), X, y)


@every_copy
@every_classifier
def test_certificates_hold_where_rows_are_said_to_be_copies(copied, model):
    """New rows come as the originals did, in which the rarer class stays rare."""
    model = clone(model)
    n, missed = 120, 0
    model.set_params(duplicates="copies")
    for seed in range(DRAWS):
        X, y = COPIED[copied](*coins(n, seed))
        model.set_params(random_state=seed).fit(X, y)
        new, labels = coins(2000, 10**6 + seed)
        if copied == "oversampled":  # drawn as the rows were, before they were copied
            kept = (labels == 0) | (np.arange(2000) % 4 == 0)
            new, labels = new[kept], labels[kept]
        missed += np.mean(model.predict(new) != labels) > model.certificate_.bound + 0.02
        assert model.certificate_.distinct
    assert missed <= binom.ppf(0.999, DRAWS, DELTA)


@every_classifier
def test_copies_taken_for_draws_break_the_promise(model):
    model = clone(model)
    model.set_params(duplicates="genuine")
    missed = 0
    for seed in range(DRAWS):
        X, y = COPIED["tripled"](*coins(120, seed))
        missed += model.set_params(random_state=seed).fit(X, y).certificate_.bound < 0.5
    # What duplicates="copies" is for: the same rows, taken for draws.
    assert missed > binom.ppf(0.999, DRAWS, DELTA)


@every_classifier
def test_copies_are_weights(model):
    model = clone(model)
    X, y = coins()
    model.set_params(duplicates="copies", random_state=0)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    row = np.repeat(np.arange(len(y)), times)
    one = model.fit(X[row], y[row]).certificates_
    grown = model.predict_proba(X)
    other = model.fit(X, y, times.astype(float)).certificates_
    assert one == other
    np.testing.assert_array_equal(model.predict_proba(X), grown)


def test_a_table_without_copies_is_fitted_as_it_is():
    X, y = coins()
    for model in (
        CertifiedTreeClassifier(random_state=0),
        CertifiedForestClassifier(6, random_state=0),
    ):
        auto = model.fit(X, y).certificate_
        copies = model.set_params(duplicates="copies").fit(X, y).certificate_
        assert not auto.distinct
        assert (auto.bound, auto.n, auto.repeats) == (copies.bound, copies.n, 0)
        assert "distinct" in copies.assumptions[0]


def test_copies_stay_in_one_group():
    X, y = coins()
    X, y, groups = np.vstack([X, X]), np.append(y, y), np.tile(np.arange(240) // 4, 2)
    model = CertifiedTreeClassifier(random_state=0, duplicates="copies")
    assert model.fit(X, y, groups=groups).certificate_.grouped
    # Within a group rows depend on each other as it is.
    assert (
        CertifiedTreeClassifier(random_state=0).fit(X, y, groups=groups).certificate_.repeats == 0
    )
    other = np.arange(480) // 4
    with pytest.raises(ValueError, match="groups must be the same for copies of a row"):
        model.fit(X, y, groups=other)
    with pytest.raises(ValueError, match="repeat other rows"):
        CertifiedTreeClassifier(random_state=0).fit(X, y, groups=other)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=10))
def test_distinct_rows_have_the_weights_of_their_copies(rows):
    kinds, weight = [kind for kind, _ in rows], np.array([float(w) for _, w in rows])
    first = np.array([kinds.index(kind) for kind in kinds])
    kept, total = merge_copies(first, weight)
    assert kept.tolist() == sorted({kinds.index(kind) for kind in kinds})
    expected = [sum(w for kind, w in rows if kind == kinds[i]) for i in kept]
    assert (weight if total is None else total).tolist() == expected


# -- draws that are alike --------------------------------------------------------------------------


def drawn(name, n):
    """Rows of a table of the paper, whose last column is the class."""
    table = pd.read_parquet(Path(DATA) / f"{name}.parquet").sample(n, random_state=0)
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="CERTREE_DATA names no directory")
@pytest.mark.parametrize("name", ["wine", "spam", "letter"])
def test_genuine_repeats_count_as_draws(name):
    X, y = drawn(name, 3000)
    model = CertifiedTreeClassifier(train_size=0.5, duplicates="genuine", random_state=0).fit(X, y)
    one = model.certificate_
    assert one.n == 1500
    assert one.repeats > 0
    assert "are independent draws, not copies" in one.assumptions[1]
    assert f"of which {one.repeats:,} repeat other rows and count as independent draws," in str(one)


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="CERTREE_DATA names no directory")
def test_no_row_of_a_full_design_repeats_another():
    X, y = drawn("more/nursery", 3000)
    assert CertifiedTreeClassifier(random_state=0).fit(X, y).certificate_.repeats == 0


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="CERTREE_DATA names no directory")
@pytest.mark.parametrize("name", ["adult", "credit_default", "electricity", "magic04"])
def test_ordinary_splits_of_tables_with_some_equal_rows_are_certified(name):
    table = pd.read_parquet(Path(DATA) / "more" / f"{name}.parquet")
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
    for seed in range(5 if LONG else 1):
        fit, new, labels, truth = train_test_split(X, y, test_size=0.3, random_state=seed)
        model = BoostedTreesClassifier(max_iter=1, random_state=0).fit(fit, labels)
        one = certree.certify(model, new, truth)
        in_fit = set(pd.util.hash_pandas_object(fit, index=False))
        known = pd.util.hash_pandas_object(new, index=False).isin(in_fit)
        assert one.matches.found == known.sum() > 0
        few, most = get_allowed_repeats(len(new), "auto")
        assert one.worst == (one.repeats if one.repeats > few else 0) <= most
        assert any("rows match rows of the fit, where about" in each for each in one.assumptions)
        # What is expected is about right.
        assert abs(one.matches.found - one.matches.expected) <= 8 * np.sqrt(one.matches.found)


@every_classifier
def test_genuine_draws_of_few_values_keep_the_promise(model):
    """A source of 12 points: nearly all rows are alike, and bounds are as if they were not."""
    model = clone(model)
    chance = np.linspace(0.05, 0.6, 12)
    missed = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        point = rng.integers(0, 12, 200)
        X, y = point[:, None].astype(float), (rng.random(200) < chance[point]).astype(int)
        model.set_params(duplicates="genuine", random_state=seed).fit(X, y)
        said = model.predict(np.arange(12.0)[:, None])
        risk = np.mean(np.where(said == 1, 1 - chance, chance))
        missed += risk > model.certificate_.bound
    assert missed <= binom.ppf(0.999, DRAWS, DELTA)


def test_a_few_repeats_are_named_and_more_are_refused():
    X, y = coins(400)
    X[:4], y[:4] = X[200:204], y[200:204]
    model = CertifiedForestClassifier(6, random_state=0)
    assert model.fit(X, y).certificate_.repeats == 4
    with pytest.raises(ValueError, match="4 of 400 rows that certify"):
        model.set_params(duplicates="refuse").fit(X, y)
    X[:9], y[:9] = X[200:209], y[200:209]
    with pytest.raises(ValueError, match="9 of 400 rows that certify"):
        model.set_params(duplicates="auto").fit(X, y)
    with pytest.warns(UserWarning, match="31 of 39 rows that certify"):
        model.fit(np.repeat(X[:9], 5, axis=0)[:39], np.repeat(y[:9], 5)[:39])
    with pytest.raises(ValueError, match="'duplicates' parameter"):
        model.set_params(duplicates="drop").fit(X, y)


def test_the_rule_counts_repeats_as_draws_then_as_the_worst_case_and_then_asks():
    n = 10_000
    assert get_allowed_repeats(n, "auto") == (25, 200)
    assert not decide_worst_case(25, n, "auto")
    assert decide_worst_case(26, n, "auto")
    assert decide_worst_case(200, n, "auto")
    with pytest.raises(ValueError, match=r"201 of 10,000 rows.*same customer.*copies.*genuine"):
        decide_worst_case(201, n, "auto")
    # Of few rows a quarter of the square root is more.
    assert get_allowed_repeats(100, "auto") == (2.5, 2.5)
    assert not decide_worst_case(9000, n, "genuine")
    assert decide_worst_case(1, n, "copies")
    with pytest.raises(ValueError, match="1 of 10,000 rows"):
        decide_worst_case(1, n, "refuse")


def repeated(n=2000, n_alike=24, *, numbers=False):
    """Rows of which some are alike: more than pass as draws, and less than 2 % of them."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + rng.normal(size=n)
    y = y if numbers else (y > 0).astype(int)
    X[:n_alike], y[:n_alike] = X[n // 2 : n // 2 + n_alike], y[n // 2 : n // 2 + n_alike]
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeClassifier(train_size=0.5, random_state=0),
        CertifiedTreeClassifier(train_size=0.5, max_leaf_nodes=6, random_state=0),
        CertifiedBoostedTreesClassifier(train_size=0.5, max_iter=5, random_state=0),
    ],
    ids=str,
)
def test_repeats_count_as_errors_of_their_class_and_outside_their_set(model, tmp_path):
    X, y = repeated()
    model = clone(model).fit(X, y)
    genuine = clone(model).set_params(duplicates="genuine").fit(X, y)
    one, other = model.certificate_, genuine.certificate_
    assert 0 < one.worst == one.repeats == other.repeats
    assert one.n == other.n
    assert other.risk < one.risk <= other.risk + one.worst / one.n + 0.02
    assert f"of which {one.worst} repeat other rows and count as the worst case" in str(one)
    assert f"{one.worst} rows repeat others and count as the worst case" in one.assumptions[1]
    certree.save(model, tmp_path / "model")
    for found in (model, certree.load(tmp_path / "model")):
        assert found.certificate_ == one
        guarantees = found.guarantees_
        is_worst = guarantees.is_worst
        assert guarantees.wrong[is_worst].all()
        assert is_worst.sum() == one.worst
        assert guarantees.wrong.mean() == pytest.approx(one.risk)
        recall = guarantees.conditional_guarantees("recall").recall
        assert sum(each.n for each in recall.values()) == one.n
        for code, each in enumerate(recall.values()):
            assert each.risk == pytest.approx(guarantees.wrong[guarantees.y == code].mean())
            assert each.worst == one.worst
        for per_class in (False, True):
            scores = guarantees._sort_true_class_scores(per_class)
            assert len(scores.value) == one.n
            assert np.isinf(scores.value).sum() == one.worst
        assert guarantees.selective_certificates()[0].certificate.risk == pytest.approx(one.risk)
        with pytest.raises(ValueError, match="repeat other rows, and thresholds need"):
            guarantees.thresholds()
    with pytest.raises(ValueError, match="is_worst"):
        replace(model.calibration_, is_worst=np.zeros(3, dtype=bool))


def test_repeats_of_a_forest_are_errors_in_both_places():
    X, y = repeated()
    model = CertifiedForestClassifier(6, max_samples=0.5, random_state=0).fit(X, y)
    one = model.certificate_
    # A tree may have grown on either of two rows that are alike while the other judges it.
    assert (one.repeats, one.worst) == (24, 48)
    other = clone(model).set_params(duplicates="genuine").fit(X, y).certificate_
    assert one.risk > other.risk
    assert one.bound > other.bound


@pytest.mark.parametrize(
    "model",
    [
        CertifiedTreeRegressor(random_state=0),
        CertifiedTreeRegressor(max_leaf_nodes=5, random_state=0),
        CertifiedBoostedTreesRegressor(max_iter=5, random_state=0),
    ],
    ids=str,
)
def test_repeats_of_numbers_have_the_largest_error_and_lie_outside_their_band(model, tmp_path):
    X, y = repeated(numbers=True)
    model = clone(model).fit(X, y)
    one, scores = model.certificate_, model.conformity_scores_
    genuine = clone(model).set_params(duplicates="genuine").fit(X, y)
    assert 0 < one.worst == one.repeats
    assert np.isinf(scores.value).sum() == one.worst
    own = genuine.certificate_.risk * one.n
    assert own < one.risk * one.n <= own + one.worst * one.unit
    assert model.certify_interval()[0].worst == one.worst
    certree.save(model, tmp_path / "model")
    assert certree.load(tmp_path / "model").certificates_ == model.certificates_


def test_new_rows_that_occur_in_the_fit_count_as_draws_then_as_errors_and_are_then_refused():
    X, y = coins(4000)
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X[:2000], y[:2000])
    for k, worst in ((11, 0), (12, 12), (40, 40)):
        rows = np.vstack([X[:k], X[2000 : 4000 - k]]), np.append(y[:k], y[2000 : 4000 - k])
        wrong = model.predict(rows[0]) != rows[1]
        one = certree.certify(model, *rows)
        assert (one.n, one.repeats, one.worst, one.matches.found) == (2000, k, worst, k)
        assert one.risk == pytest.approx(np.mean(wrong | (np.arange(2000) < worst)))
        found = Guarantees.by_rows(model, *rows)
        assert found.certificate == one
        batches = [(rows[0][i : i + 700], rows[1][i : i + 700]) for i in range(0, 2000, 700)]
        in_turn = Guarantees.by_batches(model, batches)
        assert in_turn.certificate == one
        assert certify_batches(model, batches, 0.05) == one
        for each in (found, in_turn):
            assert each.certificate.worst == (0 if each.is_worst is None else each.is_worst.sum())
    rows = np.vstack([X[:41], X[2000:3959]]), np.append(y[:41], y[2000:3959])
    # Of a source whose rows all differ so many are no new draws.
    with pytest.raises(ValueError, match=r"41 of 2,000 rows also occur .* pass new rows$"):
        certree.certify(model, *rows)
    with pytest.raises(ValueError, match=r"41 of 2,000 rows also occur"):
        certree.certify(model, *rows, duplicates="refuse")
    copies = certree.certify(model, rows[0][2:], rows[1][2:], duplicates="copies")
    assert (copies.n, copies.repeats, copies.worst) == (1998, 39, 39)
    assert copies.distinct
    # Of one whose rows are often alike they may be, and an analyst knows what equal rows are.
    few = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X[:2000].round(1), y[:2000])
    with pytest.raises(ValueError, match=r"rows also occur .* same customer .* twice.*genuine"):
        certree.certify(few, X[2000:].round(1), y[2000:])
    assert certree.certify(few, X[2000:].round(1), y[2000:], duplicates="genuine").worst == 0


def test_gaps_between_groups_take_the_worst_case_on_both_sides():
    X, y = coins(4000)
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X[:2000], y[:2000])
    rows = np.vstack([X[:30], X[2000:3970]]), np.append(y[:30], y[2000:3970])
    groups = np.arange(2000) % 2
    guarantees = Guarantees.by_rows(model, *rows)
    found = guarantees.conditional_guarantees("gaps", groups=groups).gaps
    wrong, worst = model.predict(rows[0]) != rows[1], np.arange(2000) < 30
    for one, other in ((0, 1), (1, 0)):
        most = np.mean((wrong | worst)[groups == one])
        least = np.mean((wrong & ~worst)[groups == other])
        assert found[one, other].observed[:2] == (pytest.approx(most), pytest.approx(least))


def test_numbers_have_copies_too():
    X, _ = coins(400)
    y = X[:, 0] + np.random.default_rng(1).normal(size=400)
    model = CertifiedTreeRegressor(random_state=0)
    plain = model.fit(X, y).certificates_
    doubled = np.vstack([X, X]), np.append(y, y.astype(np.float32))
    with pytest.raises(ValueError, match="repeat other rows, target included"):
        model.fit(*doubled)
    copies = model.set_params(duplicates="copies").fit(*doubled).certificates_
    assert [one.n for one in copies] == [one.n for one in plain]
    assert all(one.distinct for one in copies)
    genuine = model.set_params(duplicates="genuine").fit(*doubled).certificates_
    assert all(one.repeats and one.n == 400 for one in genuine)


def test_rows_that_all_judge_are_compared_with_each_other():
    X, y = coins()
    model = CertifiedTreeClassifier(Grid([[-5, -5], [5, 5]]), max_depth=4)
    assert model.fit(X, y, classes=[0, 1]).certificate_.repeats == 0
    with pytest.raises(ValueError, match="240 of 480 rows"):
        model.fit(np.vstack([X, X]), np.append(y, y), classes=[0, 1])


def test_what_is_assumed_goes_into_files_and_to_all_guarantees(tmp_path):
    X, y = COPIED["doubled"](*coins(600))
    for word, field in (
        ("copies", {"distinct": True, "repeats": 0}),
        ("genuine", {"distinct": False}),
    ):
        model = CertifiedTreeClassifier(duplicates=word, random_state=0).fit(X, y)
        certree.save(model, tmp_path / word)
        for one in (model, certree.load(tmp_path / word)):
            made = [*one.certificates_, one.certificate_.at(0.1), *one.certify_set()]
            made += [
                one.conditional_guarantees("recall").recall[0],
                one.certificate_.nearby(kl=0.1),
            ]
            made += [each.certificate for each in one.selective_certificates()]
            made.append(one.certify_pruning(map_pruning(one.tree_, one.weights_)))
            for each in made:
                assert {name: getattr(each, name) for name in field} == field
                assert (each.repeats > 0) == (word == "genuine")


# -- rows of the fit, inside other classifiers ------------------------------------------------------

INNER = BoostedTreesClassifier(max_iter=3, random_state=0)
WRAPPED = {
    "bagged pipelines": BaggingClassifier(
        make_pipeline(StandardScaler(), INNER), 3, random_state=0
    ),
    "bagging": BaggingClassifier(INNER, 3, max_features=2, random_state=0),
    "calibrated": CalibratedClassifierCV(INNER, cv=3),
    "fixed threshold": FixedThresholdClassifier(INNER),
    "one against one": OneVsOneClassifier(INNER),
    "one against the rest": OneVsRestClassifier(INNER),
    "pipeline": make_pipeline(StandardScaler(), VotingClassifier([("a", INNER)])),
    "recursive feature elimination": RFE(INNER, n_features_to_select=2),
    "the same by folds": RFECV(INNER, cv=KFold(3)),
    "stacking": StackingClassifier([("a", INNER), ("b", LogisticRegression())], cv=3),
    "stacked pipelines": StackingClassifier([("a", make_pipeline(StandardScaler(), INNER))], cv=3),
    "tuned threshold": TunedThresholdClassifierCV(INNER, cv=3),
    "voting": VotingClassifier([("a", INNER), ("b", LogisticRegression())]),
    "voting of a pipeline and a forest": VotingClassifier(
        [("a", make_pipeline(StandardScaler(), INNER)), ("b", RandomForestClassifier(3))]
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize("as_frame", [False, True])
def test_rows_of_members_are_known(name, as_frame):
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(2, 90, 3))
    y = rng.integers(0, 2, 90)
    if as_frame:
        X, X_new = (pd.DataFrame(rows, columns=list("abc")) for rows in (X, X_new))
    model = clone(WRAPPED[name])
    if name == "bagging":  # a member to copy that made from other statistics
        model.set_params(estimator=clone(INNER).fit(rng.normal(size=(40, 2)), y[:40]))
    model.fit(X, y)
    # Rows that no member of the bag has drawn are as good as new.
    known = r"8\d" if name.startswith("bag") else "90"
    with pytest.raises(ValueError, match=f"{known} of 90 rows also occur among those of the fit"):
        certree.certify(model, X, y)
    assert certree.certify(model, X_new, y).repeats == 0


def test_where_some_rows_of_the_fit_cannot_be_told_nothing_was_compared():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(2, 90, 3))
    y = rng.integers(0, 2, 90)
    before = FrozenEstimator(clone(INNER).fit(X, y))
    for model in (
        CalibratedClassifierCV(before, cv=3),
        StackingClassifier([("a", before)], cv="prefit"),
        TunedThresholdClassifierCV(before, cv="prefit", refit=False),
    ):
        model.fit(X_new, y)
        with pytest.raises(ValueError, match="90 of 90 rows also occur"):
            certree.certify(model, X, y)
        certificate = certree.certify(model, rng.normal(size=(90, 3)), y)
        assert certificate.repeats is None
        assert "were not compared with those of the fit" in str(certificate)


def test_rows_that_a_splitter_keeps_from_all_members_may_have_served():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(2, 90, 3))
    y = rng.integers(0, 2, 90)
    split = ShuffleSplit(1, test_size=0.3, random_state=0)
    model = CalibratedClassifierCV(clone(INNER), cv=split, ensemble=True).fit(X, y)
    with pytest.raises(ValueError, match="63 of 90 rows also occur"):
        certree.certify(model, X, y)
    assert certree.certify(model, X_new, y).repeats is None


def test_rows_that_went_through_float32_are_known():
    X, y = coins()
    model = clone(INNER).fit(X, y)
    rounded = X.astype(np.float32)
    message = r"240 of 240 rows also occur .* \(240 of them as float32 holds them\)"
    with pytest.raises(ValueError, match=message):
        certree.certify(model, rounded, y)
    with pytest.raises(ValueError, match=message):
        certree.certify(clone(INNER).fit(rounded, y), X, y)
    with pytest.raises(ValueError, match=r"occur among those of the fit, which"):
        certree.certify(clone(INNER).fit(rounded, y), rounded.astype(float), y)


def test_frames_are_read_by_the_names_of_their_columns():
    X, y = coins()
    frame = pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(ValueError, match="same order"):
        certree.certify(clone(INNER).fit(frame, y), frame[["b", "a"]], y)


def test_copies_judge_once():
    X, y = coins()
    model = LogisticRegression().fit(*coins(seed=1))
    once = certree.certify(model, X, y)
    X_twice, y_twice = np.vstack([X, X]), np.append(y, y)
    twice = certree.certify(model, X_twice, y_twice, duplicates="copies")
    assert (twice.bound, twice.n, twice.distinct) == (once.bound, once.n, True)
    groups = np.tile(np.arange(240) % 2, 2)
    guarantees = Guarantees.by_rows(model, X_twice, y_twice, duplicates="copies")
    of_groups = guarantees.conditional_guarantees("groups", groups=groups).groups
    assert [of_groups[0].n, of_groups[1].n] == [120, 120]
    assert guarantees.predict_set(X, 0.8).shape == (240, 2)
    known = CertifiedTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="also occur among those of the fit"):
        known.certify(X, y, duplicates="copies")


def test_groups_that_are_missing_are_refused():
    X, y = coins()
    for missing in (np.nan, None):
        groups = np.array([missing, *range(239)], dtype=object)
        with pytest.raises(
            ValueError, match="groups must name a group of every row, got none for 1"
        ):
            CertifiedTreeClassifier().fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="got none for 240 of 240"):
        CertifiedTreeClassifier().fit(X, y, groups=np.full(240, np.nan))
