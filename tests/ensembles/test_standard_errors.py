"""Standard errors of boosted predictions: their parts, and what users rely on."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError

import reference
from certree import BoostedTreesClassifier, BoostedTreesRegressor, load, save
from certree.ensembles import BoostedTreesRanker, CertifiedBoostedTreesRegressor, CustomLoss
from certree.ensembles.standard_errors import ThirdFits
from weight_units import expect_no_unit

SHORT = {"max_iter": 8, "standard_errors": True, "random_state": 0}


def numbers(n=240, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, X[:, 0] + np.abs(X[:, 1]) + random.normal(size=n) * 0.5


def classes(n=240, n_classes=2):
    X, y = numbers(n)
    return X, np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))


def models():
    return [
        (BoostedTreesRegressor(**SHORT), numbers()),
        (BoostedTreesRegressor(quality="best", **SHORT), numbers()),
        (BoostedTreesRegressor("poisson", **SHORT), (numbers()[0], np.abs(numbers()[1]))),
        (BoostedTreesClassifier(**SHORT), classes()),
        (BoostedTreesClassifier(**SHORT), classes(n_classes=4)),
    ]


@pytest.fixture
def kept(monkeypatch):
    """The thirds that fits have compared."""
    found, told = [], ThirdFits.compute_standard_errors

    def errors(self, *rest):
        found.append((self, rest))
        return told(self, *rest)

    monkeypatch.setattr(ThirdFits, "compute_standard_errors", errors)
    return found


@pytest.mark.parametrize(("model", "table"), models())
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_what_the_reference_says(model, table, weighted, kept):
    X, y = table
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model.fit(X, y, sample_weight=weight if weighted else None)
    ((thirds, (deviation, said, scores, _)),) = kept
    n_members = 4 if model.quality == "best" else 1
    assert [len(runs) for runs in thirds.runs] == [n_members] * 3
    fits = []
    for fold, runs in zip(thirds.folds, thirds.runs, strict=True):
        assert len(runs[0].trees()) == model.n_iter_
        mean = sum(run.scores for run in runs) / len(runs)
        rows = [*fold.train, *fold.validation]
        assert sorted(rows) == list(range(len(y)))
        fits.append({i: mean[:, place] for place, i in enumerate(rows)})
    own = [[*fold.train] for fold in thirds.folds]
    assert {len(rows) for rows in own} == {len(y) // 3}
    told = reference.compute_standard_errors(fits, own, scores.T, said.T, weight)
    found = said.T * model._errors.scale + model._errors.constant
    np.testing.assert_allclose(found, told, rtol=1e-9)
    # What is added up are deviations of the leaves that rows reach.
    leaf = model.apply(X) + model.trees_.root
    np.testing.assert_allclose(said.T, deviation[leaf].sum(axis=1), rtol=1e-9, atol=1e-12)


def test_standard_errors_of_probabilities_follow_from_those_of_scores():
    X, y = classes(n_classes=3)
    model = BoostedTreesClassifier(**SHORT).fit(X, y)
    random = np.random.default_rng(0)
    scores, errors = random.normal(size=(3, 5)), 1e-4 * random.uniform(0.5, 2, (3, 5))
    # Normal numbers whose correlation is -1/2, as the sum of three of the same size is 0.
    drawn = random.normal(size=(3, 100_000))
    drawn = (drawn - drawn.mean(axis=0)) * np.sqrt(1.5)
    for i in range(5):
        moved = model._compute_probabilities(scores[:, i, None] + errors[:, i, None] * drawn)
        told = model._convert_errors(scores, errors)[i]
        np.testing.assert_allclose(told, moved.std(axis=0), rtol=0.02)
    wide = model._convert_errors(scores, np.full((3, 5), 100.0))
    assert wide.max() == 0.5
    two = BoostedTreesClassifier(**SHORT).fit(*classes())
    np.testing.assert_allclose(
        two._convert_errors(np.array([[0.3]]), np.array([[0.01]])),
        np.full((1, 2), 0.01 * expit(0.3) * expit(-0.3)),
    )


@pytest.mark.parametrize("n", [400, 1200])
def test_they_hold_about_nine_tenths_of_the_true_means(n):
    X, y = make_friedman1(n, noise=2, random_state=0)
    new, truth = make_friedman1(2000, noise=0, random_state=1)
    model = BoostedTreesRegressor(standard_errors=True, random_state=0).fit(X, y)
    told = model.predict_std(new)
    held = (np.abs(model.predict(new) - truth) <= 1.645 * told).mean()
    assert 0.85 < held < 0.99
    assert told.max() < 0.6 * y.std()  # no deviation of single targets
    assert told.std() > 0.05 * told.mean()


def test_more_rows_and_less_noise_make_them_smaller():
    def told(n, noise):
        X, y = make_friedman1(n, noise=noise, random_state=0)
        model = BoostedTreesRegressor(max_iter=100, standard_errors=True, random_state=0)
        return model.fit(X, y).predict_std(X[:200]).mean()

    assert told(4000, 2) < 0.8 * told(500, 2)
    assert told(1000, 0.1) < 0.8 * told(1000, 4)


@pytest.mark.parametrize(("model", "table"), models())
def test_rows_alone_threads_orders_and_units_of_weights_change_nothing(model, table):
    X, y = table
    told = model.fit(X, y).predict_std(X)
    assert told.shape == ((len(X),) if told.ndim == 1 else (len(X), len(model.classes_)))
    assert (told > 0).all()
    for i in (0, 7):
        np.testing.assert_array_equal(model.predict_std(X[i : i + 1])[0], told[i])
    np.testing.assert_array_equal(model.set_params(n_jobs=2).fit(X, y).predict_std(X), told)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(model.fit(X[order], y[order]).predict_std(X), told)
    weight = np.tile([1.0, 2.0], len(y) // 2)
    weighted = model.fit(X, y, sample_weight=weight).predict_std(X)
    turned = model.fit(X[order], y[order], sample_weight=weight[order]).predict_std(X)
    np.testing.assert_array_equal(turned, weighted)
    expect_no_unit(lambda one: model.fit(X, y, sample_weight=one).predict_std(X), weight)


@pytest.mark.parametrize(("model", "table"), models())
def test_the_model_is_that_without_them(model, table):
    X, y = table
    told = model.fit(X, y).predict(X)
    plain = type(model)(**{**model.get_params(), "standard_errors": False}).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), told)
    assert not hasattr(plain, "predict_std")
    # It is the fit that has them, whatever is set after it.
    model.set_params(standard_errors=False)
    assert model.predict_std(X).min() > 0
    plain.set_params(standard_errors=True)
    assert not hasattr(plain, "predict_std")


@pytest.mark.parametrize(("model", "table"), models())
def test_files_hold_them(model, table, tmp_path):
    X, y = table
    save(model.fit(X, y), tmp_path / "model.certree")
    loaded = load(tmp_path / "model.certree")
    np.testing.assert_array_equal(loaded.predict_std(X), model.predict_std(X))


def test_a_warm_start_is_one_longer_fit(tmp_path):
    for model, (X, y) in models():
        if model.quality == "best":
            continue
        whole = model.fit(X, y).predict_std(X)
        model.set_params(max_iter=3, warm_start=True)
        model.__dict__.pop("trees_")
        save(model.fit(X, y), tmp_path / "model.certree")
        for one in (model, load(tmp_path / "model.certree")):
            told = one.set_params(max_iter=8).fit(X, y).predict_std(X)
            np.testing.assert_allclose(told, whole, rtol=1e-12)
        with pytest.raises(ValueError, match="standard_errors must be True, as in the fit"):
            model.set_params(standard_errors=False).fit(X, y)


def test_offsets_move_scores_and_not_their_errors():
    X, y = numbers()
    exposure = np.random.default_rng(0).uniform(0.1, 1, len(y))
    model = BoostedTreesRegressor("poisson", **SHORT)
    model.fit(X, np.abs(y) * exposure, offset=np.log(exposure))
    doubled = model.predict_std(X, offset=np.full(len(X), np.log(2)))
    np.testing.assert_allclose(doubled, 2 * model.predict_std(X))
    offset = np.random.default_rng(1).normal(size=len(y)) * 1000
    told = [
        BoostedTreesRegressor(**SHORT).fit(X, y + beside, offset=beside).predict_std(X)
        for beside in (0 * offset, offset)
    ]
    assert 0.5 < np.median(told[1]) / np.median(told[0]) < 2
    with pytest.raises(ValueError, match="offset must have shape"):
        model.predict_std(X, offset=[0.0])


def test_no_group_is_in_two_thirds(kept):
    X, y = numbers()
    groups = np.arange(len(y)) // 12
    model = BoostedTreesRegressor(**SHORT).fit(X, y, groups=groups)
    assert model.predict_std(X).min() > 0
    for fold in kept[0][0].folds:
        assert not {*groups[fold.train]} & {*groups[fold.validation]}


def test_few_rows_start_from_the_line_in_thirds_too(kept):
    X, y = numbers()
    BoostedTreesRegressor(**SHORT).fit(X, y)
    short = [runs[0].scores.std() for runs in kept[0][0].runs]
    BoostedTreesRegressor(**{**SHORT, "max_iter": 1, "learning_rate": 1e-9}).fit(X, y)
    # After next to no step the fits say what they start from: of thirds of 240 rows a line, too.
    assert min(runs[0].scores.std() for runs in kept[1][0].runs) > 0.3 * min(short)
    X, y = numbers(1500)
    BoostedTreesRegressor(**{**SHORT, "max_iter": 1, "learning_rate": 1e-9}).fit(X, y)
    assert max(runs[0].scores.std() for runs in kept[2][0].runs) < 1e-6


def test_categories_missing_values_losses_and_early_stopping(monkeypatch):
    random = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame({"a": random.normal(size=n), "level": random.integers(0, 60, n)})
    frame["level"] = frame["level"].map("v{}".format).astype("category")
    y = frame["a"].to_numpy() + frame["level"].cat.codes.to_numpy() / 20
    y = y + random.normal(size=n)
    frame.loc[::7, "a"] = np.nan
    loss = CustomLoss(lambda y, s: (s - y, np.ones(len(y))), lambda y, s: (s - y) ** 2 / 2)
    walked = []

    def first_trees(self, run):
        made = first(self, run)
        walked.append(made[0].n_features)
        return made

    first = BoostedTreesRegressor._make_initial_trees
    monkeypatch.setattr(BoostedTreesRegressor, "_make_initial_trees", first_trees)
    for given in ({}, {"early_stopping": True}, {"loss": loss}, {"loss": "quantile"}):
        model = BoostedTreesRegressor(**{**SHORT, **given}).fit(frame, y)
        told = model.predict_std(frame)
        assert np.isfinite(told).all()
        assert (told > 0).all()
    # Rows have no columns for what is known of levels.
    assert {*walked} == {2}


def test_what_nobody_disagrees_on_has_one_error():
    X = np.zeros((60, 1))  # no cut, so no pruning
    y = np.random.default_rng(0).normal(size=60)
    told = BoostedTreesRegressor(**SHORT).fit(X, y).predict_std(X)
    assert told.min() == told.max()
    # That of a mean of a third of them, or so.
    assert 0.02 < told[0] < 1
    whole = BoostedTreesRegressor(prunings="none", **SHORT).fit(*numbers())
    assert len(np.unique(whole.predict_std(numbers()[0]))) == 1
    constant = BoostedTreesRegressor(**SHORT).fit(X, np.ones(60))
    assert constant.predict_std(X).max() == 0
    one = BoostedTreesClassifier(**SHORT).fit(X, np.ones(60, dtype=int))
    np.testing.assert_array_equal(one.predict_std(X), np.zeros((60, 1)))


def test_large_targets_have_large_errors():
    X, y = numbers()
    told = BoostedTreesRegressor(**SHORT).fit(X, y).predict_std(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        large = BoostedTreesRegressor(**SHORT).fit(X, np.ldexp(y, 300)).predict_std(X)
    # Rounds draw by what rows hold, so it is another fit.
    assert 0.5 < np.median(np.ldexp(large, -300)) / np.median(told) < 2


def test_what_is_refused():
    X, y = numbers(30)
    with pytest.raises(ValueError, match="at least three rows, or three groups"):
        BoostedTreesRegressor(**SHORT).fit(X[:2], y[:2])
    with pytest.raises(ValueError, match="at least three rows, or three groups"):
        BoostedTreesRegressor(**SHORT).fit(X, y, groups=np.arange(30) % 2)
    with pytest.raises(ValueError, match="'standard_errors' parameter"):
        BoostedTreesRegressor(standard_errors="yes").fit(X, y)
    with pytest.raises(NotFittedError):
        BoostedTreesRegressor(**SHORT).predict_std(X)
    with pytest.raises(AttributeError, match="predict_std"):
        BoostedTreesRegressor().predict_std(X)
    for model in (BoostedTreesRanker(), CertifiedBoostedTreesRegressor()):
        assert "standard_errors" not in model.get_params()
        assert not hasattr(model, "predict_std")


def test_errors_of_several_numbers_and_quantiles_stand_in_their_columns():
    X, y = numbers()
    both = BoostedTreesRegressor(**SHORT).fit(X, np.column_stack([y, 1000 * y]))
    told = both.predict_std(X)
    assert told.shape == (len(X), 2)
    assert (told[:, 1] > 100 * told[:, 0]).mean() > 0.95
    ends = BoostedTreesRegressor("quantile", quantile=[0.4, 0.5], **SHORT).fit(X, y)
    scores, errors = np.array([[1.0, 3.0], [2.0, 1.0]]), np.array([[10.0, 30.0], [20.0, 11.0]])
    # Sorted predictions take their errors along.
    assert ends._convert_errors(scores, errors).tolist() == [[10.0, 20.0], [11.0, 30.0]]
