"""The model card."""

import hashlib
import re

import numpy as np
import pandas as pd
import pytest

import certree
from certree.show import model_card


def draw(n=600):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.normal(size=n),
            "de|bt": rng.random(n),
            "town": rng.choice(["north", "s<b>outh"], n),
        }
    )
    return X, np.where(X["income"] + rng.normal(size=n) > 0.5, "yes", "no")


def section_of(card, title):
    return card.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_a_card_has_scores_certificate_groups_and_the_hash_of_the_file(tmp_path):
    X, y = draw()
    model = certree.CertifiedTreeClassifier(random_state=0).fit(X[:400], y[:400])
    card = model_card(model, X[400:], y[400:], groups=X["town"][400:])
    predicted = model.predict(X[400:])
    wrong = predicted != y[400:]
    assert f"| Error | {100 * wrong.mean():.1f} % |" in section_of(card, "Scores")
    assert f"{100 * (y[400:] == 'yes').mean():.1f} % (always no)" in section_of(card, "Scores")
    assert all(text in section_of(card, "Certificate") for text in model.certificate_.assumptions)
    groups = section_of(card, "Groups")
    for name in ("north", "s<b>outh"):
        of_group = X["town"][400:].to_numpy() == name
        shown = name.replace("<", r"\<").replace(">", r"\>")
        assert f"| {shown} | {of_group.sum()} | {100 * wrong[of_group].mean():.1f} % (" in groups
    assert r"income (number), de\|bt (number), town (category)" in section_of(card, "Model")
    certree.save(model, tmp_path / "model")
    digest = hashlib.sha256((tmp_path / "model").read_bytes()).hexdigest()
    assert digest in section_of(card, "Versions")
    assert f"certree {certree.__version__}" in card


def test_a_card_is_written_in_the_format_of_its_suffix(tmp_path):
    X, y = draw()
    model = certree.BoostedTreesClassifier(max_iter=5).fit(X[:400], y[:400])
    notes = {"Intended use": "Decide *nothing* <at all>."}
    text = model_card(model, X[400:], y[400:], tmp_path / "card.md", notes=notes)
    assert (tmp_path / "card.md").read_text() == text
    assert section_of(text, "Intended use").strip() == r"Decide \*nothing\* \<at all\>."
    page = model_card(model, X[400:], y[400:], tmp_path / "card.html", notes=notes)
    assert (tmp_path / "card.html").read_text() == page
    assert model_card(model, X[400:], y[400:], tmp_path / "card.HTM", notes=notes) == page
    with pytest.raises(ValueError, match=r"card must end in one of \.html, .*, got .*card\.pdf"):
        model_card(model, None, None, tmp_path / "card.pdf")
    assert "Decide *nothing* &lt;at all&gt;." in page
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings == ["Intended use", "Model", "Test data", "Scores", "Versions"]
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", page) == headings


def test_a_card_of_a_regressor_says_that_it_is_no_better_than_the_mean():
    X, _ = draw()
    y = np.random.default_rng(5).normal(size=600)
    model = certree.TreeForestRegressor(n_estimators=5, random_state=0).fit(X[:400], y[:400])
    card = model_card(model, X[400:], y[400:])
    scores = section_of(card, "Scores")
    assert f"{np.std(y[400:]):.4g} (always the mean)" in scores
    low, median, high = np.quantile(y[400:], [0, 0.5, 1])
    assert f"runs from {low:.4g} to {high:.4g}, with median {median:.4g}." in section_of(
        card, "Test data"
    )
    assert "no better than a constant in root mean squared error" in scores


def test_a_card_counts_what_it_does_not_list():
    X = np.random.default_rng(0).normal(size=(68, 52))
    y = np.array([f"c{i % 22}" for i in range(66)] + ["c21", "c21"])
    model = certree.PrunedTreeClassifier().fit(X, y)
    groups = np.array([f"g{min(i, 32)}" for i in range(68)])
    card = model_card(model, X, y, groups=groups)
    assert r"x\[49\] (number) and 2 more." in section_of(card, "Model")
    assert "c21 7 %, c0 4 %, " in section_of(card, "Test data")
    assert "c18 4 % and 2 more." in section_of(card, "Test data")
    shown = section_of(card, "Groups")
    assert shown.count("| g") == 1 + 30  # with the heading
    assert "| g32 | 36 |" in shown
    assert "\n3 smaller groups are not shown." in shown


def test_a_model_that_cannot_be_saved_has_no_hash():
    X, y = draw()
    X = X[["income", "de|bt"]]
    model = certree.DecoratedTreeClassifier().fit(X[:400], y[:400])
    assert "There is no hash of a model file: " in model_card(model, X[400:], y[400:])


def test_wrong_rows_are_refused():
    X, y = draw()
    model = certree.PACBayesTreeClassifier().fit(X[:400], y[:400])
    with pytest.raises(ValueError, match="inconsistent"):
        model_card(model, X[400:], y[:10])
    misspelt = np.array([*y[400:-1], "misspelt"])
    with pytest.raises(ValueError, match=r"y must hold classes among .* got \['misspelt'\]"):
        model_card(model, X[400:], misspelt)
    with pytest.raises(TypeError, match="model must be a tree"):
        model_card(object(), X[400:], y[400:])


def test_a_card_names_features_of_dates():
    X, y = draw(200)
    X["opened"] = pd.date_range("2020-01-01", periods=200).date
    X["seen"] = pd.date_range("2020-01-01", periods=200, tz="UTC")
    X["held"] = pd.to_timedelta(np.arange(200), unit="D")
    model = certree.PrunedTreeClassifier().fit(X, y)
    described = section_of(model_card(model, X, y), "Model")
    assert (
        "town (category), opened (date), seen (date with time, time zone UTC), held (time span)."
        in described
    )
    assert "income (number)" in described


def test_rules_of_a_card_have_the_probability_of_the_positive_class():
    X, y = draw()
    model = certree.CertifiedTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X[:400], y[:400])
    for pos_label in (None, "no"):
        head, lines = model.rules(model.get_n_leaves(), pos_label=pos_label).table()
        rules = section_of(model_card(model, X[400:], y[400:], pos_label=pos_label), "Rules")
        assert f"| {' | '.join(head)} |" in rules
        at = head.index("probability" if pos_label is None else "probability of no")
        shown = [line.split(" | ")[at] for line in rules.splitlines() if line.startswith("| R")]
        assert shown == [line[at] for line in lines]
