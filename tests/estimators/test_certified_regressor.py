"""Regressors whose fit certifies: bands, bounds on the mean error, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import certree
import reference
from certree import Cart, CertifiedTreeRegressor, Grid, PACBayesTreeRegressor, Voting
from certree.certificates import (
    HeldOutNumbers,
    absolute_error,
    absolute_error_pruning,
    pruning_prior,
)
from certree.certificates.inequalities import bounds
from certree.certificates.subsets import PredictionIntervals
from certree.rows.split import train_calibration_split
from certree.weights import map_pruning
from sklearn_checks import copies_differ, expect_checks

WIDTHS = ["scaled", "one", "leaf"]
every_width = pytest.mark.parametrize("widths", WIDTHS)


def test_parameters_of_the_posterior_are_no_attributes():
    for name in ("prior", "lambda_error", "lambda_penalty", "search"):
        assert not hasattr(CertifiedTreeRegressor(), name)


def noisy(n=800, seed=0):
    return make_friedman1(n, 6, noise=1.0, random_state=seed)


def uneven(n, seed=0):
    """A step, and noise that is ten times as wide on one side."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.where(X[:, 0] > 0.5, 3.0, 0.0) + rng.normal(size=n) * np.where(X[:, 0] > 0.5, 1.0, 0.1)
    return X, y


def fitted(n=800, **switches):
    X, y = noisy(n)
    return CertifiedTreeRegressor(random_state=0, **switches).fit(X, y), X, y


def weighing(n, train_size=0.5):
    return train_calibration_split(n, train_size, np.random.RandomState(0)).calibration


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.* rows that certify repeat other rows:UserWarning")
@every_width
def test_certified_regressors_pass_the_checks_of_scikit_learn(widths):
    expected = copies_differ("rows are dealt by their numbers")
    expect_checks(CertifiedTreeRegressor(widths=widths), expected)


def test_the_vote_is_that_of_the_growing_rows_alone():
    X, y = noisy(400)
    sides = train_calibration_split(400, 0.5, np.random.RandomState(0))
    model = CertifiedTreeRegressor(random_state=0).fit(X, y)
    changed = y.copy()
    changed[sides.calibration] = (
        np.random.default_rng(0).permutation(changed[sides.calibration]) - 7
    )
    other = CertifiedTreeRegressor(random_state=0).fit(X, changed)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_array_equal(model.intervals_.scale, other.intervals_.scale)
    assert model.certificate_.unit == other.certificate_.unit
    assert model.certificate_.bound != other.certificate_.bound
    plain = PACBayesTreeRegressor(cv=[(np.arange(150), np.arange(150, 200))], lambda_error=0.5)
    given = clone(model).set_params(cv=plain.cv)
    alone = clone(plain).set_params(lambda_error=None).fit(X[sides.train], y[sides.train])
    np.testing.assert_allclose(given.fit(X, y).predict(X), alone.predict(X), rtol=1e-12)


@every_width
@pytest.mark.parametrize(("coverage", "delta"), [(0.9, 0.05), (0.5, 0.2)])
def test_bands_are_those_of_the_definition(widths, coverage, delta):
    model, X, y = fitted(widths=widths)
    weigh = weighing(len(y))
    leaf = reference.apply(model.tree_, X[weigh])
    off = np.abs(y[weigh] - model.vote_.score[leaf, 0])
    mass, reach = model.conformity_scores_.mass, []
    for region in range(len(mass)):
        own = model.intervals_.region[leaf] == region
        scores = np.sort(off[own] / model.intervals_.scale[leaf[own]])
        place = reference.find_covering_rank(len(scores), coverage, delta * mass[region])
        reach.append(np.append(scores, np.inf)[place - 1])
    found = model.predict_interval(X[:50], coverage, delta)
    for x, band in zip(X[:50], found, strict=True):
        columns = model.vote_.score[:, 0], model.intervals_.scale, model.intervals_.region
        expected = reference.compute_interval(model.tree_, *columns, reach, x)
        np.testing.assert_allclose(band, expected, rtol=1e-12)
        assert band[0] <= expected[0] <= expected[1] <= band[1]
    made = model.certify_interval(coverage, delta)
    assert len(made) == len(mass)
    for certificate, far in zip(made, reach, strict=True):
        assert (certificate is None) == (far == np.inf)
        if certificate is not None:
            assert certificate.bound <= (1 - coverage) * (1 + 1e-12)


def test_the_certificate_is_on_the_truncated_error():
    model, X, y = fitted()
    weigh = weighing(len(y))
    certificate = model.certificate_
    observed = reference.compute_truncated_error(
        model.tree_, model.vote_.score[:, 0], X[weigh], y[weigh], certificate.unit
    )
    assert certificate.risk == pytest.approx(observed)
    share = certificate.observed[0]
    assert share * certificate.unit == pytest.approx(observed)
    expected = certificate.unit * bounds.occam_mean(share, len(weigh), 0.0, np.log(0.05))
    assert certificate.bound == expected
    assert "this regressor's mean absolute error (one beyond" in str(certificate)
    printed = float(str(certificate).split("at most ")[1].split(" ")[0])
    assert certificate.bound <= printed < certificate.bound * 1.001
    assert certificate.at(0.01).unit == certificate.unit
    assert model.certificates_[0] is certificate
    assert [one.method for one in model.certificates_] == ["absolute_error", "band"]


def test_the_page_of_a_certificate_is_in_units_of_the_target():
    model, _, _ = fitted()
    page = model.certificate_._repr_html_()
    printed = str(model.certificate_).split("at most ")[1].split(" ")[0]
    assert f">{printed}<" in page
    parts = model.certificate_.parts
    assert f"{parts.confidence:.4g}" in page


def test_printed_bounds_are_rounded_up():
    model, _, _ = fitted()
    for delta in (0.3, 0.1, 0.05, 0.01, 1e-6):
        certificate = model.certificate_.at(delta)
        printed = float(str(certificate).split("at most ")[1].split(" ")[0])
        assert certificate.bound <= printed * (1 + 1e-12)
        assert printed <= 1.001 * certificate.bound


def test_prunings_are_certified_at_once_by_their_mass():
    model, X, y = fitted()
    weigh = weighing(len(y))
    likeliest = map_pruning(model.tree_, model.weights_)
    prior = pruning_prior(model.tree_, likeliest)
    for pruning in (likeliest, certree.prunings.cost_complexity(model.tree_, model.stats_, 3.0)):
        certificate = model.certify_pruning(pruning)
        value = (
            Voting("mean", 2.0)
            .ballots(model.tree_, model.stats_)
            .compute_vote(model.tree_, pruning)
        )
        observed = reference.compute_truncated_error(
            model.tree_, value.score[:, 0], X[weigh], y[weigh], certificate.unit
        )
        assert certificate.risk == pytest.approx(observed)
        mass = prior.log_mass_of_pruning(pruning)
        assert certificate.complexity == pytest.approx(-mass)
        assert certificate.method == "absolute_error_pruning"
    assert 0 < model.certify_pruning(likeliest).complexity < 10


@every_width
def test_a_small_tree_has_the_certificate_of_the_full_vote_too(widths, tmp_path):
    model, X, y = fitted(widths=widths, max_leaf_nodes=5)
    assert 1 < model.get_n_leaves() <= 5
    assert len(np.unique(model.predict(X))) == model.get_n_leaves()
    weigh, one, full = weighing(len(y)), model.certificate_, model.full_certificate_
    observed = np.minimum(np.abs(y - model.predict(X))[weigh], one.unit).mean()
    assert one.risk == pytest.approx(observed)
    whole = fitted(widths=widths)[0]
    beside = np.minimum(np.abs(y - whole.predict(X))[weigh], one.unit).mean()
    assert (full.risk, full.unit) == (pytest.approx(beside), one.unit)
    assert whole.full_certificate_ is None
    inside = model.predict_interval(X[weigh]).T
    assert ((inside[0] <= y[weigh]) & (y[weigh] <= inside[1])).mean() > 0.85
    certree.save(model, tmp_path / "small.certree")
    loaded = certree.load(tmp_path / "small.certree")
    assert loaded.full_certificate_ == full
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_the_prior_of_prunings_sums_to_one():
    X, y = noisy(30)
    tree = certree.grow_cart(X, y, max_leaf_nodes=5)
    posterior = certree.pac_bayes(tree, certree.measure(tree, X, y), 1.0, 0.0)
    prior = pruning_prior(tree, map_pruning(tree, posterior))
    total = 0.0
    for pruning in reference.enumerate_prunings(tree):
        weight = np.zeros(tree.n_nodes)
        weight[[cell[0] for cell in pruning]] = 1
        splits = (reference_reached(tree, weight)) & (weight == 0)
        total += np.exp(
            prior.log_mass_of_pruning(certree.weights.node_weights.make_pruning(tree, splits))
        )
    assert total == pytest.approx(1)


def reference_reached(tree, weight):
    """Nodes that no leaf of a pruning lies above."""
    above = np.zeros(tree.n_nodes, dtype=bool)
    for node in range(1, tree.n_nodes):
        parent = reference.find_path(tree, node)[-2]
        above[node] = above[parent] or weight[parent] == 1
    return ~above


def test_widths_follow_the_noise():
    X, y = uneven(2000)
    new, target = uneven(20_000, seed=1)
    wide = new[:, 0] > 0.5
    width = {}
    for widths in WIDTHS:
        model = CertifiedTreeRegressor(widths=widths, random_state=0).fit(X, y)
        low, high = model.predict_interval(new).T
        inside = (low <= target) & (target <= high)
        assert 0.9 < inside.mean() < 0.96
        if widths == "leaf":
            assert len(model.conformity_scores_.mass) >= 2
            assert min(inside[wide].mean(), inside[~wide].mean()) > 0.9
        width[widths] = high - low
    assert np.ptp(width["one"]) < 1e-9
    for local in ("scaled", "leaf"):
        assert width[local].mean() < 0.9 * width["one"].mean()
        assert width[local][wide].mean() > 3 * width[local][~wide].mean()


def test_repeated_targets_stay_in_their_interval():
    """Of whole numbers many are equally far off: rounding must not put all of them outside."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (3000, 1)).astype(float)
    y = X[:, 0] * 0.1 + rng.integers(0, 10, 3000) * 0.7
    for widths in WIDTHS:
        model = CertifiedTreeRegressor(widths=widths, duplicates="genuine", random_state=0).fit(
            X, y
        )
        weigh = weighing(3000)
        for coverage in np.linspace(0.05, 0.95, 19):
            low, high = model.predict_interval(X[weigh], coverage).T
            inside = np.mean((low <= y[weigh]) & (y[weigh] <= high))
            # The reach is a score of one of these rows: no fewer than up to its place are inside.
            assert inside >= coverage


def test_a_constant_target_and_one_row_per_set_have_intervals_and_bounds():
    X = np.arange(100.0)[:, None]
    model = CertifiedTreeRegressor(random_state=0).fit(X, np.full(100, 3.0))
    np.testing.assert_allclose(model.predict_interval(X), 3.0, rtol=1e-12)
    assert model.certificate_.risk == pytest.approx(0, abs=1e-12)
    model = CertifiedTreeRegressor(random_state=0).fit(X[:2], [1.0, 2.0])
    assert model.certificate_.bound > 0.9
    assert model.certificates_ == (model.certificate_,)
    with pytest.raises(ValueError, match="needs at least 29 calibration rows, got 1"):
        model.predict_interval(X)


@every_width
def test_targets_that_are_endlessly_far_off_leave_endless_bands(widths):
    X, y = noisy(200)
    weigh = weighing(200)
    y[weigh[:50]], y[weigh[50:60]] = 1.7e308, -1.7e308
    model = CertifiedTreeRegressor(widths=widths, random_state=0).fit(X, y)
    assert (np.abs(model.predict_interval(X)) > 1e307).all()
    one = model.certificate_
    assert 0.6 < one.risk / one.unit < one.bound / one.unit < 1


def test_weights_shape_the_vote_and_rows_count_once():
    X, y = noisy(400)
    weight = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    model = CertifiedTreeRegressor(random_state=0).fit(X, y, sample_weight=weight)
    positive = weight > 0
    same = CertifiedTreeRegressor(random_state=0).fit(X[positive], y[positive], weight[positive])
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.certificates_ == same.certificates_
    assert model.certificate_.n == positive.sum() - round(0.5 * positive.sum())
    plain = CertifiedTreeRegressor(random_state=0).fit(X[positive], y[positive])
    assert not np.array_equal(plain.predict(X), model.predict(X))


def test_groups_are_what_the_mean_error_counts():
    X, y = noisy(400)
    groups = np.arange(400) // 4
    model = CertifiedTreeRegressor(random_state=0).fit(X, y, groups=groups)
    assert model.certificate_.n == 50
    assert model.certificate_.grouped
    assert "the mean over groups of each group's mean," in str(model.certificate_)
    for ask in (model.predict_interval, lambda _: model.certify_interval()):
        with pytest.raises(ValueError, match="keep one row of each group and fit without"):
            ask(X)


def test_frames_categories_and_preprocessors_serve():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.assign(kind=pd.Categorical(np.where(X["age"] > 0, "old", "young")))
    model = CertifiedTreeRegressor(coverage=0.8, random_state=0).fit(X, y)
    assert model.predict_interval(X).shape == (442, 2)
    numbers = X.drop(columns="kind").to_numpy()
    scaled = CertifiedTreeRegressor(preprocessor=StandardScaler(), random_state=0).fit(numbers, y)
    grow = train_calibration_split(442, 0.5, np.random.RandomState(0)).train
    np.testing.assert_allclose(scaled.preprocessor_.mean_, numbers[grow].mean(axis=0))
    assert np.isfinite(scaled.predict_interval(numbers)).all()
    holes = numbers.copy()
    holes[::3, 2] = np.nan
    assert np.isfinite(scaled.fit(holes, y).predict_interval(holes)).all()
    box = Grid((numbers.min(axis=0), numbers.max(axis=0)))
    boxed = CertifiedTreeRegressor(box, max_depth=4, random_state=0).fit(numbers, y)
    assert np.isfinite(boxed.predict_interval(numbers)).all()


def test_bands_come_back_from_a_file(tmp_path):
    for widths in WIDTHS:
        model, X, _ = fitted(widths=widths)
        certree.save(model, tmp_path / "model")
        loaded = certree.load(tmp_path / "model")
        for promise in ((None, None), (0.5, 0.3)):
            np.testing.assert_array_equal(
                loaded.predict_interval(X, *promise), model.predict_interval(X, *promise)
            )
            assert loaded.certify_interval(*promise) == model.certify_interval(*promise)
        assert loaded.certificates_ == model.certificates_
        with pytest.raises(ValueError, match="needs the calibration rows"):
            loaded.certify_pruning(map_pruning(loaded.tree_, loaded.weights_))


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"coverage": 1.0}, "'coverage' parameter"),
        ({"delta": 0.0}, "'delta' parameter"),
        ({"widths": "narrow"}, "'widths' parameter"),
        ({"train_size": 1.0}, "'train_size' parameter"),
        ({"smoothing": -1.0}, "'smoothing' parameter"),
        ({"preprocessor": 3}, "'preprocessor' parameter"),
        ({"grower": "tree"}, "'grower' parameter"),
    ],
)
def test_bad_settings_are_refused(switches, message):
    X, y = noisy(40)
    with pytest.raises(ValueError, match=message):
        CertifiedTreeRegressor(**switches).fit(X, y)


def test_bad_questions_say_what_was_expected():
    model, X, y = fitted(100)
    with pytest.raises(NotFittedError):
        CertifiedTreeRegressor().predict_interval(X)
    with pytest.raises(NotFittedError):
        CertifiedTreeRegressor().certify_interval()
    with pytest.raises(
        ValueError, match=r"coverage=0.99 with delta=0.05 needs at least 299 calibration rows"
    ):
        model.predict_interval(X, 0.99)
    with pytest.raises(ValueError, match=r"needs at least 1,497 calibration rows, got 50"):
        model.certify_interval(0.998)
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1, got 2"):
        model.predict_interval(X, 2)
    with pytest.raises(ValueError, match=r"delta must lie between 0 and 1, got 0\.0"):
        model.predict_interval(X, 0.5, 0.0)
    with pytest.raises(TypeError, match="pruning must be NodeWeights"):
        model.certify_pruning("likeliest")
    with pytest.raises(ValueError, match="weights 0 and 1"):
        model.certify_pruning(model.weights_)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        CertifiedTreeRegressor().fit(X, np.where(np.arange(100) == 3, np.nan, y))
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict_interval(X[:, :2])


def test_held_out_numbers_that_do_not_go_together_are_refused():
    model, X, _ = fitted(100)
    held = model.held_out_
    given = {name: getattr(held, name) for name in HeldOutNumbers.__dataclass_fields__}
    for changed, message in (
        ({"limit": 0.0}, "limit > 0"),
        ({"limit": np.inf}, "limit > 0"),
        ({"y": np.full(50, np.nan)}, "y and limit must be finite"),
        ({"n": 49}, "weight must sum to n = 49"),
        ({"leaf": np.full(50, held.tree.n_nodes)}, "leaf"),
        ({"weight": np.ones(49)}, "weight must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            HeldOutNumbers(**{**given, **changed})
    with pytest.raises(ValueError, match="value must have shape"):
        absolute_error(held, np.zeros(2))
    elsewhere = certree.grow_cart(X, X[:, 0])
    stats = certree.measure(elsewhere, X, X[:, 0])
    prior = pruning_prior(elsewhere, certree.prunings.cost_complexity(elsewhere, stats, 1.0))
    with pytest.raises(ValueError, match="prior must be over the prunings"):
        absolute_error_pruning(held, map_pruning(held.tree, model.weights_), prior)
    for scale, region, message in (
        ([0.0], [0], "scale must hold finite numbers"),
        ([np.inf], [0], "scale must hold finite numbers"),
        ([1.0], [1], "region"),
        ([1.0], [0, 0], "region"),
    ):
        with pytest.raises(ValueError, match=message):
            PredictionIntervals(scale, region)


def test_trees_of_any_growth_serve():
    X, y = noisy(300)
    for grower in ("kd", "dyadic", Cart(max_leaf_nodes=4)):
        model = CertifiedTreeRegressor(grower, random_state=0).fit(X, y)
        assert np.isfinite(model.predict_interval(X)).all()
