"""Model files hold digests in place of long categories that no split uses."""

import numpy as np
import pandas as pd
import pytest

import certree
from certree import (
    BoostedTreesClassifier,
    CertifiedTreeClassifier,
    Grid,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
    certify,
    load,
    save,
)
from certree.export import check_export
from certree.rows.categories import Categories
from model_files import encode_header, expect_refusal, read_header, rewrite, save_and_load

MODELS = [
    PACBayesTreeClassifier(max_depth=2, random_state=0),
    CertifiedTreeClassifier(max_depth=2, random_state=0),
    BoostedTreesClassifier(max_iter=3, max_leaf_nodes=3, random_state=0),
    PrunedTreeRegressor(max_depth=2, random_state=0),
    TreeForestRegressor(3, max_depth=1, max_features=None, random_state=0),
]
LONG = 200


def table(n=300):
    """A number that decides, a town, and notes that are all different."""
    rng = np.random.default_rng(0)
    notes = [f"{k} ".ljust(LONG, "é") for k in range(n)]
    town = rng.choice(["Athens", "Bern", None], n)
    X = pd.DataFrame({"note": notes, "town": town, "x": rng.normal(size=n)})
    return X, (X["x"] > 0.3).astype(int)


def fitted(model, y=None):
    X, truth = table()
    with pytest.warns(UserWarning, match="nearly is an identifier"):
        model.fit(X, truth if y is None else y)
    return model, X, truth


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_texts_that_no_split_uses_are_not_in_the_file(model, tmp_path):
    model, X, _ = fitted(model)
    loaded = save_and_load(model, tmp_path / "model")
    assert model.categories_.digested == ()  # the model itself keeps its texts
    assert loaded.categories_.digested == (0,)
    assert max(map(len, loaded.categories_.names[0])) == 16
    assert {*loaded.categories_.names[1]} == {"Athens", "Bern"}  # shorter than digests
    assert "é" * 9 not in str(read_header(tmp_path / "model"))
    new = X.assign(note=X["note"].to_numpy()[::-1]).replace({"note": {X["note"][3]: "new"}})
    for rows in (X, new, X.assign(note=None)):
        for method in ("predict", "predict_proba", "apply"):
            if hasattr(model, method):
                answers = getattr(model, method)(rows), getattr(loaded, method)(rows)
                assert answers[0].tobytes() == answers[1].tobytes()
        codes = model.categories_.encode(rows)
        assert codes.tobytes() == loaded.categories_.encode(rows).tobytes()
        as_objects = rows.to_numpy(dtype=object)
        assert codes.tobytes() == loaded.categories_.encode(as_objects).tobytes()
    with pytest.raises(ValueError, match=r"'note' must have categories that are text.*got numbers"):
        loaded.predict(X.assign(note=1.0))
    save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    report = check_export(loaded, X.assign(x=X["x"].astype(np.float32)))
    assert report.all_agree
    assert not report.skipped
    assert loaded.to_dict()["features"][0] == {"name": "note", "categories": []}
    assert loaded.to_dict()["trees"] == model.to_dict()["trees"]


def test_rows_of_the_fit_are_known_after_loading(tmp_path):
    model, X, y = fitted(MODELS[0])
    loaded = save_and_load(model, tmp_path / "model")
    with pytest.raises(ValueError, match="300 of 300 rows also occur among those of the fit"):
        certify(loaded, X, y)
    others = X.assign(note=X["note"].to_numpy()[::-1])
    assert certify(loaded, others, y) == certify(model, others, y)


def test_texts_that_a_split_uses_are_kept(tmp_path):
    X = pd.DataFrame({"note": [f"{k % 7} ".ljust(LONG, "é") for k in range(300)]})
    model = PACBayesTreeClassifier(random_state=0).fit(X, np.arange(300) % 7 < 3)
    loaded = save_and_load(model, tmp_path / "model")
    assert loaded.categories_.names == model.categories_.names
    assert loaded.to_dict() == model.to_dict()


def test_naive_bayes_keeps_all_texts(tmp_path):
    model = NaiveBayesClassifier().fit(*table())
    assert save_and_load(model, tmp_path / "model").categories_.names == model.categories_.names


@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_earlier_files_with_all_texts_predict_the_same(model, tmp_path):
    model, X, _ = fitted(model)
    save(model, tmp_path / "model")
    header = read_header(tmp_path / "model")
    del header["digested_categories"]
    header["categories"] = [*model.categories_.names]
    rewrite(tmp_path / "model", {"header": encode_header(header)})
    loaded = load(tmp_path / "model")
    assert loaded.categories_.names == model.categories_.names
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("digested", "message"),
    [
        ([2], "indices of features with texts"),  # the numbers
        ([3], "indices of features with texts"),
        ([-1], "indices of features with texts"),
        (["note"], "indices of features with texts"),
        (True, "indices of features with texts"),
        ([1, 0], "ascending and distinct"),
        ([0, 0], "ascending and distinct"),
        ([], "digested_categories"),
    ],
)
def test_damaged_places_of_digests_are_refused(digested, message, tmp_path):
    model, _, _ = fitted(MODELS[0])
    save(model, tmp_path / "model")
    rewrite(tmp_path / "model", digested_categories=digested)
    expect_refusal(tmp_path / "model", message)


def test_trees_with_splits_on_digests_are_not_exported(tmp_path):
    X, y = table()
    X["note"] = [f"{k % 4} ".ljust(LONG, "é") for k in range(300)]
    for seed in range(20):  # until the first tree draws another feature
        model = TreeForestClassifier(
            1, max_depth=1, max_features=1, leaves="plain", warm_start=True, random_state=seed
        )
        loaded = save_and_load(model.fit(X, y), tmp_path / "model")
        if loaded.categories_.digested == (0,):
            break
    twins = [one.set_params(n_estimators=20).fit(X, y) for one in (loaded, model)]
    assert (loaded.trees_.feature[~loaded.trees_.is_leaf] == 0).any()
    np.testing.assert_array_equal(*[one.predict_proba(X) for one in twins])
    with pytest.raises(
        ValueError,
        match=r"categories must have names to export, but those of the feature 'note' .*Fit the",
    ):
        loaded.to_sql("rows")
    assert check_export(model, X, exports=["dict"]).all_agree


def test_fits_in_a_fixed_box_are_continued_after_loading(tmp_path):
    X, y = table()
    X = X[["x", "note"]].assign(note=[f"{k % 5} ".ljust(LONG, "é") for k in range(300)])
    first, last = slice(0, 150), slice(150, 300)
    grower = Grid([[-3.0, 0.0], [3.0, 5.0]])
    fit = [
        PrunedTreeRegressor(grower, rule="cost-complexity", alpha=0.01, max_depth=1)
        for _ in range(3)
    ]
    fit[0].fit(X[first], y[first])
    fit[1].fit(X[last], y[last])
    fit[2].fit(X, y)
    loaded = save_and_load(fit[0], tmp_path / "model")
    assert loaded.categories_.digested == (1,)
    loaded.merge(fit[1])
    np.testing.assert_array_equal(loaded.predict(X), fit[2].predict(X))
    loaded.forget(X[last], y[last]).partial_fit(X[last], y[last])
    np.testing.assert_array_equal(loaded.seen_rows_.hashes, fit[2].seen_rows_.hashes)
    with pytest.raises(ValueError, match="feature 'note' must have categories among"):
        loaded.partial_fit(X[last].assign(note="new".ljust(LONG)), y[last])
    other = fit[1].fit(X[last].assign(note="new".ljust(LONG)), y[last])
    with pytest.raises(ValueError, match="must be a fit with the same categories"):
        loaded.merge(other)


def test_texts_with_one_digest_or_short_ones_are_kept(monkeypatch):
    every = np.ones(1, dtype=bool)
    short = Categories((("a" * 16, "b" * 16),))
    assert short.digest_texts(every).names == short.names
    long = Categories((("a" * 17, "b" * 17),))
    assert long.digest_texts(~every).names == long.names
    assert long.digest_texts(every).digested == (0,)
    assert long.digest_texts(every).digest_texts(every).equals(long)
    assert not long.digest_texts(every).equals(short)
    numbers = Categories(((1.0, 2.0),))
    assert numbers.digest_texts(every).names == numbers.names
    monkeypatch.setattr(certree.rows.categories, "_digest_text", lambda _: "0" * 16)
    assert long.digest_texts(every).names == long.names


def test_digests_of_texts_are_equal_in_every_process():
    known = Categories((("a" * 30, "\ud800" * 30),)).digest_texts(np.ones(1, dtype=bool))
    assert known.names[0] == ("71fab4a212af99bb", "b8c31095e7cb4cdb")
    more = known.add_categories(np.array([["a" * 30], ["c" * 30]], dtype=object))
    assert len(more.names[0]) == 3
    assert more.names[0][:2] == known.names[0]
    assert more.digested == (0,)
