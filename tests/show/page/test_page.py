"""Contents of the report, read by Python; tests/browser opens it in a browser."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    log_loss,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

import certree
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
    load,
    save,
)
from certree.certificates import Guarantees
from certree.ensembles import ConformalBandRegressor
from certree.show import report
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.explorer_section import encode_tree
from certree.show.page.scores import compute_scores, describe_verdict
from certree.show.tree_summary import summarize_tree

NASTY = "</script><script>alert(1)</script>"
ELSEWHERE = re.compile(
    r"""(src|href)=["'](?!#|data:,)|url\((?!#)|@import|https?://(?!www\.w3\.org)"""
)


def mixed(n=500, seed=0):
    """Return a table of numbers and categories with missing values and hostile names, and scores."""
    rng = np.random.default_rng(seed)
    size, town = rng.normal(size=n), rng.choice(["Bern", "<b>", 'a"b', "雪"], n)
    frame = pd.DataFrame({"size": size, NASTY: pd.Categorical(town), "age": rng.integers(0, 90, n)})
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    odds = 3 * np.nan_to_num(size) + 2.0 * (town == "雪") + frame["age"] / 45
    return frame, odds.to_numpy() + rng.normal(size=n)


X, SCORE = mixed()
TWO = np.where(SCORE > 1.5, "<yes>", "no")
THREE = np.digitize(SCORE, [0.0, 2.0])
FIT, NEW = slice(0, 300), slice(300, 500)

MODELS = {
    "tree": (PACBayesTreeClassifier(random_state=0), TWO),
    "three": (PACBayesTreeClassifier(random_state=0), THREE),
    "dyadic": (PACBayesTreeClassifier("dyadic", random_state=0), THREE),
    "numbers": (PACBayesTreeRegressor(random_state=0), SCORE),
    "certified": (CertifiedTreeClassifier(random_state=0), TWO),
    "certified numbers": (CertifiedTreeRegressor(random_state=0), SCORE),
    "certified boosted": (CertifiedBoostedTreesClassifier(max_iter=5, random_state=0), THREE),
    "certified boosted numbers": (
        CertifiedBoostedTreesRegressor(max_iter=5, random_state=0),
        SCORE,
    ),
    "certified forest": (CertifiedForestClassifier(4, random_state=0), TWO),
    "decorated": (DecoratedTreeClassifier(NaiveBayesClassifier(), random_state=0), TWO),
    "boosted": (BoostedTreesClassifier(max_iter=5, random_state=0), THREE),
    "boosted numbers": (BoostedTreesRegressor(max_iter=5, random_state=0), SCORE),
    "forest": (TreeForestClassifier(4, random_state=0), TWO),
    "forest of numbers": (TreeForestRegressor(4, random_state=0), SCORE),
    "adaboost": (AdaBoostTreeClassifier(n_estimators=4), TWO),
    "naive Bayes": (NaiveBayesClassifier(), TWO),
}
TREES = [name for name in MODELS if name not in ("naive Bayes", "decorated")]


def fitted(name):
    model, y = MODELS[name]
    rows = X.drop(columns=NASTY) if name == "dyadic" else X
    if name in ("dyadic", "decorated"):
        rows = rows.fillna(dict.fromkeys(rows.select_dtypes("number"), 0.0))
    return model.fit(rows[FIT], y[FIT]), rows[NEW], y[NEW]


class Reader(HTMLParser):
    """Collect text, ids, tags and data of a page, and check that tags are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.words, self.data, self.tags = [], [], [], "", []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.ids += [value for key, value in attributes if key == "id"]

    def handle_startendtag(self, _, attributes):
        self.ids += [value for key, value in attributes if key == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"] and data.startswith('{"trees"'):
            self.data = data
        elif self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(path):
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    assert reader.open == []
    return reader


@pytest.mark.parametrize("name", MODELS)
def test_a_page_needs_no_other_file_and_escapes_names(name, tmp_path):
    model, rows, y = fitted(name)
    path = report(model, rows, y, tmp_path / "page.html")
    text = path.read_text("utf-8")
    assert path.stat().st_size < 2_000_000
    assert NASTY not in text
    assert not ELSEWHERE.search(re.sub(r"<svg[^>]*>", "", text))
    page = read(path)
    assert page.tags.count("script") == 1 + (name not in ("naive Bayes",))
    assert type(model).__name__ in page.text
    expected = ["model", "scores"]
    if isinstance(y[0], str) or name in ("three", "dyadic", "boosted"):
        expected += ["calibration", "confusion"]
    assert set(expected) <= set(page.ids)
    assert ("certificate" in page.ids) == name.startswith("certified")
    assert ("rounds" in page.ids) == ("boosted" in name or name == "adaboost")
    assert ("tree" in page.ids) == (name != "naive Bayes")
    assert ("rows" in page.ids) == hasattr(model, "explain")
    of_trees = hasattr(model, "explain") and name != "naive Bayes"
    assert ("shapley" in page.ids) == ("interactions" in page.ids) == of_trees


def test_a_page_shows_the_scores_of_its_rows(tmp_path):
    model, rows, y = fitted("three")
    page = read(report(model, rows, y, tmp_path / "page.html", title="A <title>"))
    shares = model.predict_proba(rows)
    assert "A <title>" in page.text
    assert f"{100 * np.mean(model.predict(rows) != y):.1f} %" in page.text
    assert f"{log_loss(y, shares):.4g}" in page.text
    known = set(map(tuple, X[FIT].astype(str).to_numpy()))
    new = np.array([tuple(one) not in known for one in rows.astype(str).to_numpy()])
    new_page = read(report(model, rows[new], y[new], tmp_path / "new.html"))
    assert "None of these rows occurs in the fit." in new_page.text
    counts = confusion_matrix(y, model.predict(rows))
    for k, line in enumerate(counts):
        assert f"{k} {' '.join(map(str, line))} " in page.text
    again = read(report(model, X[FIT], THREE[FIT], tmp_path / "again.html"))
    assert "300 of these rows also occur in the fit" in again.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tree", "boosted", "forest", "certified", "naive Bayes"])
def test_a_page_shows_the_effective_sample_size(name, tmp_path):
    model, y = clone(MODELS[name][0]), MODELS[name][1]
    weight = np.where(np.arange(300) % 3 == 0, 4.0, 1.0)
    model.fit(X[FIT], y[FIT], sample_weight=weight)
    text = read(report(model, X[NEW], y[NEW], tmp_path / "page.html")).text
    size = weight.sum() ** 2 / (weight**2).sum()
    assert f"The effective sample size of the fit is {size:.0f} rows." in text
    del model.effective_sample_size_  # as a model file of earlier versions
    without = read(report(model, X[NEW], y[NEW], tmp_path / "page.html")).text
    assert "effective sample size" not in without


def test_a_page_shows_the_certificate(tmp_path):
    model, rows, y = fitted("certified")
    page = read(report(model, rows, y, tmp_path / "page.html"))
    assert str(model.certificate_) in page.text
    for assumption in model.certificate_.assumptions:
        assert assumption in page.text


@pytest.mark.slow
def test_a_page_shows_guarantees_of_thresholds_on_new_rows(tmp_path):
    model, rows, y = fitted("tree")
    known = set(map(tuple, X[FIT].astype(str).to_numpy()))
    new = np.array([tuple(one) not in known for one in rows.astype(str).to_numpy()])
    page = read(report(model, rows[new], y[new], tmp_path / "page.html"))
    found = Guarantees.by_rows(model, rows[new], y[new]).thresholds()
    assert found.title in page.text
    assert " ".join(found.table()[1][3]) in page.text
    # Not name rows that the model has seen, name few, nor name more classes.
    for name, rows_of_page in (("tree", slice(0, 300)), ("tree", slice(300, 305)), ("three", NEW)):
        model, target = fitted(name)[0], MODELS[name][1]
        again = read(report(model, X[rows_of_page], target[rows_of_page], tmp_path / "again.html"))
        assert "thresholds" not in again.ids


def test_a_page_shows_guarantees_of_classes_and_leaves(tmp_path):
    model, rows, y = fitted("certified")
    page = read(report(model, rows, y, tmp_path / "page.html"))
    families = model.conditional_guarantees(["recall", "precision"])
    for family in (families.recall, families.precision):
        assert family.title in page.text
        for line in family.table()[1]:
            assert " ".join(line) in page.text
    rules = model.rules(24)
    assert f"{rules.title} Rules" in page.text
    places = [page.text.index(" ".join(line)) for line in rules.table()[1]]
    assert places == sorted(places)
    assert "There are no further guarantees" not in page.text
    assert "Use it for planning; it is not a guarantee." in page.text


@pytest.mark.slow
def test_a_page_shows_why_there_are_no_further_guarantees(tmp_path):
    model, rows, y = fitted("certified")
    save(model, tmp_path / "model.certree", calibration_samples=False)
    few = clone(model).set_params(train_size=0.5)
    reasons = {
        "its model file does not hold the calibration set": load(tmp_path / "model.certree"),
        "the rows of the fit came in groups": clone(model).fit(X, TWO, groups=np.arange(500) // 2),
        "the fit has fewer than 10 calibration rows": few.fit(X[:18], TWO[:18]),
    }
    for why, one in reasons.items():
        page = read(report(one, rows, y, tmp_path / "page.html"))
        assert f"There are no further guarantees: {why}" in page.text
        assert str(one.certificate_) in page.text
        assert "for all classes at once" not in page.text
        assert "Use it for planning" not in page.text
    forest, rows, y = fitted("certified forest")
    page = read(report(forest, rows, y, tmp_path / "page.html"))
    assert "There are no further guarantees" not in page.text
    assert "Use it for planning; it is not a guarantee." in page.text


def test_a_page_shows_the_bound_on_the_mean_error_in_units_of_the_target(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = 1000 * X[:, 0] + 300 * rng.normal(size=600)
    model = CertifiedTreeRegressor(random_state=0).fit(X[:500], y[:500])
    text = read(report(model, X[500:], y[500:], tmp_path / "page.html")).text
    assert str(model.certificate_) in text
    assert "Certificate: a bound on the mean error" in text
    observed = model.certificate_.parts.observed
    assert f"The bound is the sum of {observed:.4g} of observed error" in text


def test_the_interval_of_a_mean_loss_uses_its_standard_error():
    model, rows, y = fitted("three")
    _, loss = compute_scores(EvaluatedModel.from_rows(model, rows, y))
    own = [-np.log(shares[k]) for shares, k in zip(model.predict_proba(rows), y, strict=True)]
    error = 1.96 * np.std(own, ddof=1) / np.sqrt(len(own))
    assert (loss.value, loss.low, loss.high) == pytest.approx(
        (np.mean(own), np.mean(own) - error, np.mean(own) + error)
    )


def test_scores_of_regressors_equal_those_of_scikit_learn():
    model, rows, y = fitted("numbers")
    error, explained = compute_scores(EvaluatedModel.from_rows(model, rows, y))
    predicted = model.predict(rows)
    assert error.value == pytest.approx(root_mean_squared_error(y, predicted))
    assert explained.value == pytest.approx(r2_score(y, predicted))
    for score in (error, explained):
        assert score.low < score.value < score.high


def test_scores_are_compared_with_those_of_a_constant():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.where(rng.random(300) < 0.2, "yes", "no")
    y[0] = "no"
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X[:150], y[:150])
    evaluated = EvaluatedModel.from_rows(model, X[150:], y[150:])
    error, loss = compute_scores(evaluated)
    constant = DummyClassifier(strategy="prior").fit(X[150:], y[150:])
    assert error.baseline.name == "always no"
    assert error.baseline.value == pytest.approx(1 - constant.score(X[150:], y[150:]))
    assert loss.baseline.value == pytest.approx(log_loss(y[150:], constant.predict_proba(X[150:])))
    # The target does not depend on the features.
    verdict = describe_verdict([error, loss])
    assert verdict.startswith("the model is no better than a constant in ")
    assert verdict.endswith("log loss")
    better = replace(loss, value=loss.baseline.value - 0.01)
    assert describe_verdict([replace(error, baseline=None), better]) is None


def test_a_table_of_scores_has_baselines_and_a_verdict(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.random.default_rng(1).normal(size=400)
    model = certree.PACBayesTreeRegressor(random_state=0).fit(X[:200], y[:200])
    text = read(report(model, X[200:], y[200:], tmp_path / "page.html")).text
    assert f"{np.std(y[200:]):.4g}" in text
    assert "always the mean" in text
    has_verdict = "On these rows the model is no better than a constant in root" in text
    error = root_mean_squared_error(y[200:], model.predict(X[200:]))
    assert has_verdict == (error >= np.std(y[200:]))


@pytest.mark.parametrize("seed", range(2))
def test_intervals_contain_the_true_score_in_most_draws(seed):
    rng = np.random.default_rng(seed)

    class Coin:
        categories_, n_jobs, classes_ = None, 1, np.array([0, 1])

    shares = np.column_stack([np.full(300, 0.3), np.full(300, 0.7)])
    missed = np.zeros(3)
    for _ in range(200):
        y = (rng.random(300) < 0.7).astype(int)
        evaluated = EvaluatedModel(Coin(), None, None, y, np.ones(300, int), shares)
        error, loss = compute_scores(evaluated)
        entropy = -0.7 * np.log(0.7) - 0.3 * np.log(0.3)
        missed[0] += not error.low <= 0.3 <= error.high
        missed[1] += not loss.low <= entropy <= loss.high
        x = rng.normal(size=300)
        (_, explained) = compute_scores(
            EvaluatedModel(Coin(), None, None, x + rng.normal(size=300), x, None)
        )
        missed[2] += not explained.low <= 0.5 <= explained.high
    assert (missed / 200 < 0.12).all()


# -- the explorer ----------------------------------------------------------------------------------


def follow_row(data, row):
    """Return the node that a row reaches, and whether the model averages over both children."""
    node, is_averaged = 0, False
    while data["left"][node] >= 0:
        value, missing_left = row[data["feature"][node]], bool(data["missingLeft"][node])
        left = data["left"][node]
        codes = data["sets"].get(str(node))
        if value is None:
            is_averaged |= node in data["missingBoth"]
            is_left = missing_left
        elif codes is not None:
            is_left = (value in codes) != (node in data["unseenLeft"])
        else:
            is_left = value <= data["threshold"][node]
        node = left if is_left else left + 1
    return node, is_averaged


@pytest.mark.parametrize("name", TREES)
def test_rows_in_the_explorer_end_in_the_node_of_their_prediction(name, tmp_path):
    model, rows, y = fitted(name)
    page = read(report(model, rows, y, tmp_path / "page.html"))
    data = json.loads(page.data)
    assert data["features"] == list(rows.columns)
    followed = 0
    for title, row in zip(data["titles"], data["rows"], strict=True):
        i = int(title.split(":")[0].removeprefix("row "))
        row_of_table = rows.iloc[[i]]
        for number, tree in enumerate(data["trees"]):
            node, is_averaged = follow_row(tree, row)
            assert str(node) not in tree["hiddenLeaves"]
            if is_averaged:
                continue
            followed += 1
            expected = predicted_outputs(model, row_of_table, number)[tree["output"][node]]
            assert tree["prediction"][node] == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert followed > 5


def predicted_outputs(model, row, number):
    """Return the outputs of the model, or of one of its trees, for a row."""
    if not hasattr(model, "trees_"):
        return model.predict_proba(row)[0] if hasattr(model, "classes_") else model.predict(row)
    tree = model.trees_.tree(number)
    value = tree.value
    coded = row.to_numpy() if model.categories_ is None else model.categories_.encode(row)
    return value[tree.apply(coded, n_jobs=1)[0]]


@pytest.mark.parametrize("name", TREES)
def test_the_columns_of_the_explorer_form_a_tree(name):
    model, rows, _ = fitted(name)
    summary = summarize_tree(model, 0, rows)
    data = json.loads(json.dumps(encode_tree(summary, "a tree")))
    n, left = len(data["left"]), np.array(data["left"])
    inner = left >= 0
    assert sorted([*left[inner], *(left[inner] + 1)]) == list(range(1, n))
    assert (left[inner] > np.flatnonzero(inner)).all()
    sums = np.array(data["rows"])
    np.testing.assert_allclose(sums[inner], sums[left[inner]] + sums[left[inner] + 1])
    assert sums[0] == len(rows)
    assert set(data["open"]) <= set(np.flatnonzero(inner).tolist())
    hidden = sum(data["hiddenLeaves"].values()) - len(data["hiddenLeaves"])
    assert (n + 1) // 2 + hidden == summary.tree.n_leaves


def test_a_large_tree_is_cut_until_it_fits():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2000, 3))
    model = PACBayesTreeRegressor(random_state=0).fit(table, table[:, 0] + rng.normal(size=2000))
    summary = summarize_tree(model)
    data = encode_tree(summary, "a tree", max_characters=20_000)
    assert len(json.dumps(data, separators=(",", ":"))) <= 20_000
    assert data["hiddenLeaves"]
    assert len(encode_tree(summary, "a tree")["left"]) == model.tree_.n_nodes


# -- what is refused -------------------------------------------------------------------------------


def test_other_models_and_invalid_rows_are_refused(tmp_path):
    path = tmp_path / "page.html"
    plain = LogisticRegression().fit(X[["age"]], TWO)
    for model in (None, plain, ConformalBandRegressor()):
        with pytest.raises(TypeError, match="model must be a tree, a forest, boosted trees"):
            report(model, X, TWO, path)
    with pytest.raises(NotFittedError):
        report(PACBayesTreeClassifier(), X, TWO, path)
    model, rows, y = fitted("tree")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        report(model, rows, y[:-1], path)
    with pytest.raises(ValueError, match="feature names should match"):
        report(model, rows.rename(columns={"age": "old"}), y, path)
    with pytest.raises(ValueError, match="at least one row to evaluate a model, got 0 rows"):
        report(model, rows[:0], y[:0], path)
    assert not path.exists()


def test_a_page_can_have_one_row_or_one_class(tmp_path):
    model, rows, y = fitted("tree")
    assert read(report(model, rows[:1], y[:1], tmp_path / "one.html")).text
    one = PACBayesTreeClassifier(random_state=0).fit(X, ["only"] * len(X))
    assert read(report(one, X, ["only"] * len(X), tmp_path / "only.html")).text
    y = y.astype(object)
    y[-1] = "new class"
    with pytest.raises(ValueError, match=r"y must hold classes among .* got \['new class'\]"):
        report(model, rows, y, tmp_path / "new.html")


def fitted_with_new_rows(name):
    """Return a model with rows and targets that do not occur in its fit."""
    model, rows, y = fitted(name)
    known = set(map(tuple, X[FIT].astype(str).to_numpy()))
    new = np.array([tuple(one) not in known for one in rows.astype(str).to_numpy()])
    return model, rows[new], y[new]


@pytest.mark.slow
def test_a_page_shows_the_ranking_of_two_classes(tmp_path):
    model, rows, y = fitted("boosted")
    assert "ranking" not in read(report(model, rows, y, tmp_path / "three.html")).ids
    model, rows, y = fitted("forest")
    page = read(report(model, rows, y, tmp_path / "page.html", costs=(7, 2)))
    second = y == model.classes_[1]
    score = model.predict_proba(rows)[:, 1]
    for value in (roc_auc_score(second, score), average_precision_score(second, score)):
        assert f"{value:.3f}" in page.text
    assert (
        f"Lowest mean cost, with 7 for a missed {model.classes_[1]} and 2 for a false alarm"
        in page.text
    )
    assert "Tenths of the rows" in page.text
    # Rows of one class have no order.
    one = read(report(model, rows[second], y[second], tmp_path / "one.html"))
    assert "ranking" not in one.ids


def test_a_page_is_about_the_positive_class(tmp_path):
    model, rows, y = fitted_with_new_rows("tree")
    asked = {"costs": (5, 1), "pos_label": "<yes>"}
    groups = np.where(np.arange(len(y)) % 2, "odd", "even")
    page = read(report(model, rows, y, tmp_path / "page.html", groups=groups, **asked))
    assert page.text.count("probability of no") == 0
    is_positive = y == "<yes>"
    score = model.predict_proba(rows)[:, 0]
    assert f"Area under the ROC curve {roc_auc_score(is_positive, score):.3f}" in page.text
    assert "Lowest mean cost, with 5 for a missed <yes> and 1 for a false alarm" in page.text
    thresholds = Guarantees.by_rows(model, rows, y).thresholds((5, 1), pos_label="<yes>")
    assert " ".join(str(thresholds.lowest_cost(5, 1)).split()) in page.text
    for title in ("Explanations of selected rows", "Shapley values of selected rows"):
        assert "probability of <yes>" in page.text.split(title)[-1]
    text = " ".join(page.text.split())
    assert text.count("Rows of class <yes> come first, from the best predicted") == 2
    explained = page.text.split("Explanations of selected rows")[-1]
    titles = re.findall(r"row (\d+): (\S+), predicted (\S+) \(<yes> (\S+) %\)", explained)
    assert len(titles) == 6 + 3
    found = [int(title[0]) for title in titles[:6]]
    positives = np.flatnonzero(is_positive)
    ordered = positives[np.argsort(-score[positives], kind="stable")]
    places = [round(q * (len(ordered) - 1)) for q in (0, 0.5, 0.75, 0.9, 0.98, 1)]
    assert found == ordered[places].tolist()
    for i, true, predicted, percent in titles:
        assert (true, predicted) == (y[int(i)], model.predict(rows)[int(i)])
        assert float(percent) == pytest.approx(100 * score[int(i)], abs=0.5)
    with pytest.raises(ValueError, match="pos_label must be one of the classes '<yes>' and 'no'"):
        report(model, rows, y, tmp_path / "bad.html", pos_label="yes")
    model, rows, y = fitted("numbers")
    with pytest.raises(ValueError, match="pos_label='no' and a target without classes"):
        report(model, rows, y, tmp_path / "bad.html", pos_label="no")


def test_rows_of_the_other_class_are_explained_if_there_are_no_others(tmp_path):
    model, rows, y = fitted_with_new_rows("tree")
    other = y == "no"
    page = read(report(model, rows[other], y[other], tmp_path / "page.html", pos_label="<yes>"))
    assert "come first, from the best" not in page.text
    assert re.search(r"row \d+: no, predicted no \(<yes> ", page.text)


def test_costs_determine_the_threshold_of_a_page(tmp_path):
    model, rows, y = fitted_with_new_rows("tree")
    page = read(report(model, rows, y, tmp_path / "page.html", costs=(5, 1)))
    found = Guarantees.by_rows(model, rows, y).thresholds(costs=(5, 1))
    assert " ".join(str(found.lowest_cost(5, 1)).split()) in page.text
    with pytest.raises(ValueError, match="must be finite and >= 0"):
        report(model, rows, y, tmp_path / "bad.html", costs=(-1, 1))


@pytest.mark.slow
def test_a_page_has_the_scores_and_errors_of_a_threshold(tmp_path):
    model, rows, y = fitted_with_new_rows("certified")
    asked = {"pos_label": "<yes>", "threshold": 0.3, "costs": (5, 1)}
    page = read(report(model, rows, y, tmp_path / "page.html", **asked))
    predicted = np.where(model.predict_proba(rows)[:, 0] >= 0.3, "<yes>", "no")
    is_positive, is_predicted = y == "<yes>", predicted == "<yes>"
    hits = np.sum(is_positive & is_predicted)
    for line in (
        f"Error {100 * np.mean(predicted != y):.1f} %",
        f"Recall of <yes> {100 * hits / is_positive.sum():.1f} %",
        f"Precision of <yes> {100 * hits / is_predicted.sum():.1f} %",
    ):
        assert line in page.text
    rule = "The predicted class is <yes> if its probability is at least 0.3, else no."
    assert page.text.count(rule) == 2
    matrix = page.text.split("Confusion matrix")[-1]
    for label, counts in zip(model.classes_, confusion_matrix(y, predicted), strict=True):
        assert f"{label} {' '.join(map(str, counts))} " in matrix
    curves = Guarantees.by_rows(model, rows, y).thresholds((5, 1), pos_label="<yes>")
    for point in (curves.at(0.3), curves.lowest_cost(5, 1)):
        assert " ".join(str(point).split()) in page.text
    assert "All bounds of this section are about the most probable class" in page.text
    for bad, message in ((2, "lie in"), ("a", "threshold")):
        with pytest.raises((TypeError, ValueError), match=message):
            report(model, rows, y, tmp_path / "bad.html", threshold=bad)
    for name in ("three", "numbers"):
        model, rows, y = fitted(name)
        with pytest.raises(ValueError, match="threshold must be None unless"):
            report(model, rows, y, tmp_path / "bad.html", threshold=0.5)


@pytest.mark.slow
def test_a_page_has_one_threshold_and_suggests_the_certified_one(tmp_path):
    model, rows, y = fitted_with_new_rows("tree")
    page = read(report(model, rows, y, tmp_path / "page.html", costs=(9, 1), pos_label="<yes>"))
    curves = Guarantees.by_rows(model, rows, y).thresholds((9, 1), pos_label="<yes>")
    threshold = curves.lowest_cost(9, 1).threshold
    assert page.text.count("Confusion matrix") == page.text.count("The predicted class is the most")
    assert "The predicted class is the most probable one, at threshold 0.5." in page.text
    assert f"Pass threshold={threshold!r} (--threshold {threshold!r})" in page.text
    assert "rows of different groups" not in page.text
    again = read(
        report(model, rows, y, tmp_path / "page.html", pos_label="<yes>", threshold=threshold)
    )
    assert "Pass threshold=" not in again.text


def test_a_page_of_a_model_with_groups_says_what_its_intervals_need(tmp_path):
    model, rows, y = fitted_with_new_rows("tree")
    groups = np.arange(len(y)) // 2
    model = type(model)(random_state=0).fit(rows, y, groups=groups)
    page = read(report(model, rows, y, tmp_path / "page.html"))
    assert "intervals and guarantees of this page need rows of different groups" in page.text


def test_rules_of_a_page_have_the_probability_of_the_positive_class(tmp_path):
    model, rows, y = fitted("certified")
    page = read(report(model, rows, y, tmp_path / "page.html", pos_label="<yes>"))
    head, lines = model.rules(24, pos_label="<yes>").table()
    assert " ".join(head) in page.text
    for line in lines:
        assert " ".join(line) in page.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tree", "three", "numbers"])
def test_a_page_compares_groups(name, tmp_path):
    model, rows, y = fitted_with_new_rows(name)
    groups = np.where(np.arange(len(y)) % 3 == 0, "<north>", "south")
    page = read(report(model, rows, y, tmp_path / "page.html", groups=groups))
    predicted = model.predict(rows)
    for group in ("<north>", "south"):
        in_group = groups == group
        if name == "numbers":
            error = root_mean_squared_error(y[in_group], predicted[in_group])
            line = f"{group} {in_group.sum()} {error:.4g}"
        else:
            error = np.mean(predicted[in_group] != y[in_group])
            line = f"{group} {in_group.sum()} {100 * error:.1f} %"
        assert line in page.text
    assert ("Certified error of each group" in page.text) == (name != "numbers")
    assert "groups" not in read(report(model, rows, y, tmp_path / "none.html")).ids
    if name == "tree":
        found = Guarantees.by_rows(model, rows, y).conditional_guarantees("groups", groups=groups)
        for line in found.groups.table()[1]:
            assert " ".join(line) in page.text
        again = read(report(model, X[FIT], TWO[FIT], tmp_path / "a.html", groups=[*"ab"] * 150))
        assert "There are no guarantees for groups: the model may have seen the rows." in again.text


def test_poorly_calibrated_groups_are_marked(tmp_path):
    model, rows, y = fitted_with_new_rows("tree")
    second = y == model.classes_[1]
    probability = model.predict_proba(rows)[:, 1]
    is_odd = second & (probability < 0.9)
    page = read(
        report(model, rows, y, tmp_path / "page.html", groups=np.where(is_odd, "odd", "even"))
    )
    assert re.search(r"odd \d+ % 100 % [\d.]+ % to 100.0 % too low", page.text)


@pytest.mark.parametrize("groups", [["a"] * 3, ["a"] * 200, [None] + ["a"] * 199])
def test_invalid_groups_are_refused(groups, tmp_path):
    model, rows, y = fitted("tree")
    with pytest.raises(ValueError, match="groups must"):
        report(model, rows, y, tmp_path / "page.html", groups=groups)


def test_only_the_largest_groups_are_shown(tmp_path):
    model, rows, y = fitted("tree")
    groups = np.minimum(np.arange(len(y)), 40)
    page = read(report(model, rows, y, tmp_path / "page.html", groups=groups))
    assert "11 smaller groups are not shown." in page.text


def test_a_page_of_a_small_tree_shows_the_certificate_of_the_whole_tree(tmp_path):
    model = CertifiedTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X[FIT], TWO[FIT])
    page = read(report(model, X[NEW], TWO[NEW], tmp_path / "page.html"))
    assert str(model.full_certificate_) in page.text


def test_waterfalls_of_a_page_share_scale_and_colours(tmp_path):
    model, rows, y = fitted("tree")
    text = report(model, rows, y, tmp_path / "page.html").read_text("utf-8")
    section = text[text.index('id="rows"') : text.index('id="shapley"')]
    bars = re.findall(
        r'class="(up|down)" style="left:[\d.]+%;width:([\d.]+)%".*?number">([-+.\d]+)', section
    )
    assert len(bars) > 10
    ratios = [
        float(width) / abs(float(number)) for _, width, number in bars if abs(float(number)) > 0.1
    ]
    assert max(ratios) < 1.2 * min(ratios)
    assert all((css_class == "up") == number.startswith("+") for css_class, _, number in bars)
    assert section.count("probability of no</th>") > 1  # the second class
    assert "probability of &lt;yes&gt;" not in section


@pytest.mark.slow
def test_the_importances_of_naive_bayes_are_named_by_their_unit(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    for kind, whole, other in (
        (certree.NaiveBayesClassifier, "mutual information", "impurity reduction"),
        (certree.PrunedTreeClassifier, "impurity reduction", "mutual information"),
    ):
        text = read(
            report(kind().fit(X[:300], y[:300]), X[300:], y[300:], tmp_path / "x.html")
        ).text
        assert f"of the {whole}" in text
        assert f"of the {other}" not in text


def test_a_report_checks_its_path_before_it_predicts(tmp_path):
    X, y = np.arange(60.0)[:, None], [0, 1] * 30
    model = certree.PrunedTreeClassifier().fit(X, y)
    with pytest.raises(
        FileNotFoundError, match=r"rep\.html cannot be written: there is no directory"
    ):
        report(model, None, None, tmp_path / "missing" / "rep.html")
    with pytest.raises(ValueError, match=r"must end in one of \.html, \.htm, got .*rep\.pdf"):
        report(model, None, None, tmp_path / "rep.pdf")
    with pytest.raises(TypeError, match=r"call report\(model, X, y, path\)"):
        report(model, tmp_path / "rep.html", X, y)
    with pytest.raises(TypeError, match="path must be a str or a path-like object"):
        report(model, X, y, y)
