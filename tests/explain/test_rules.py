"""One small tree has the same rules in every view: numbers, conditions, rows and bounds."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest

import reference
from certree import (
    Cart,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    load,
    save,
)
from certree.explain import shapley_values
from certree.interface.formatting import format_bound
from certree.show import model_card, plot_tree, report


def people(n=900, seed=0, kinds="cls"):
    """Rows with text columns and missing values, and a target that depends on all of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["clerk", "nurse", "pilot", None], n),
            "hours": rng.normal(40, 8, n).round(1),
        }
    )
    X.loc[rng.random(n) < 0.15, "age"] = np.nan
    score = (X["age"].fillna(60) > 45) * 2.0 - (X["job"] == "clerk") + 2 * (X["hours"] > 48)
    if kinds == "numbers":
        return X, score.to_numpy() + rng.normal(0, 0.1, n)
    labels = np.array(["low", "middle", "high"]) if kinds == "three" else np.array(["low", "high"])
    codes = np.digitize(score + rng.normal(0, 0.5, n), [0.5, 2.5] if kinds == "three" else [1])
    return X, labels[codes]


def fitted(name):
    """A model by name, with its rows and targets."""
    estimator, kinds = {
        "certified": (CertifiedTreeClassifier(max_leaf_nodes=7), "two"),
        "certified, three classes": (CertifiedTreeClassifier(max_leaf_nodes=7), "three"),
        "certified, numbers": (CertifiedTreeRegressor(max_leaf_nodes=7), "numbers"),
        "pruned": (PrunedTreeClassifier(alpha=4.0), "two"),
        "pruned, kd": (PrunedTreeClassifier("kd", max_depth=4, alpha=0.0), "three"),
        "pruned, numbers": (PrunedTreeRegressor(Cart(max_leaf_nodes=6), alpha=0.0), "numbers"),
    }[name]
    if hasattr(estimator, "duplicates"):
        estimator.set_params(duplicates="genuine")
    X, y = people(kinds=kinds)
    return estimator.set_params(random_state=0).fit(X, y), X, y


NAMES = [
    "certified",
    "certified, three classes",
    "certified, numbers",
    "pruned",
    "pruned, kd",
    "pruned, numbers",
]
CERTIFIED = NAMES[:2]


@pytest.fixture(scope="module", params=NAMES)
def small(request):
    return fitted(request.param)


def read_condition(text):
    """A function of a row, from the text of a condition."""
    text, takes_missing = re.subn(r" \(or missing\)$", "", text)
    if match := re.fullmatch(r"(\w+) is (not )?missing", text):
        return lambda row: pd.isna(row[match[1]]) != bool(match[2])
    if match := re.fullmatch(r"(\w+) (not )?in {(.*)}", text):
        name, excluded, names = match[1], bool(match[2]), match[3].split(", ")
        return lambda row: (
            bool(takes_missing) if pd.isna(row[name]) else (row[name] in names) != excluded
        )
    if match := re.fullmatch(r"(\S+) < (\w+) <= (\S+)", text):
        name, low, high = match[2], float(match[1]), float(match[3])
    elif match := re.fullmatch(r"(\w+) <= (\S+)", text):
        name, low, high = match[1], -np.inf, float(match[2])
    else:
        match = re.fullmatch(r"(\w+) > (\S+)", text)
        name, low, high = match[1], float(match[2]), np.inf
    return lambda row: bool(takes_missing) if pd.isna(row[name]) else low < row[name] <= high


def satisfies(text, row):
    return text == "all rows" or all(read_condition(part)(row) for part in text.split(" and "))


def find_by_text(rules, X):
    """The number of the rule that each row satisfies by the text of its conditions."""
    found = []
    for _, row in X.iterrows():
        names = [rule.number for rule in rules if satisfies(rule.condition, row)]
        assert len(names) <= 1
        found.append(names[0] if names else None)
    return found


def lack_a_value(X):
    """The rows again, and rows in which one value or all of them are missing."""
    frames = [X[:60]]
    for column in [[name] for name in X] + [[*X]]:
        frame = X[:30].astype(object)
        frame.loc[:, column] = None
        frames.append(frame.astype({"age": float, "hours": float}))
    return pd.concat(frames, ignore_index=True)


def find_in_printed_tree(text, row):
    """The number of the rule that a row reaches in `export_text`, by way of the printed tests."""
    depth, has_title = 0, not text.startswith("all rows")
    for line in text.splitlines()[has_title + 1 :]:
        level = line.count("|")
        rest = line.replace("|   ", "").removeprefix("|-- ")
        match = re.match(r"(?:(R\d+): )?([^:]+): ", rest)
        if level == depth + 1 and satisfies(match[2], row):
            depth, number = level, match[1]
            if number:
                return number
        elif level <= depth:  # The row fits neither child of its node.
            return None
    return None


def test_numbers_run_from_left_to_right(small):
    model, _, _ = small
    rules = model.rules(64)
    assert len(rules) == model.get_n_leaves() > 3
    assert [rule.number for rule in rules] == [f"R{k + 1}" for k in range(len(rules))]
    assert [rule.node for rule in rules] == reference.list_leaves_in_order(model.tree_)
    printed = re.findall(r"(R\d+): ", model.export_text(64))
    assert printed == [rule.number for rule in rules]


def test_a_row_has_one_rule_in_every_view(small, tmp_path):
    model, X, y = small
    rows = lack_a_value(X)
    numbers = model.find_rules(rows).tolist()
    rules = model.rules(64)
    assert find_by_text(rules, rows) == numbers
    leaves = {rule.number: rule.node for rule in rules}
    described = model.explain(rows).rules
    shapley = shapley_values(model, rows, background=X[:5]).rules
    text = model.export_text(64)
    assert described == shapley
    for i, (number, leaf) in enumerate(zip(numbers, model.apply(rows).tolist(), strict=True)):
        assert number is None or leaves[number] == leaf
        (rule,) = [rule for rule in rules if rule.number == number] or [None]
        assert described[i] == (None if rule is None else f"{number}: {rule.condition}")
        assert find_in_printed_tree(text, rows.iloc[i]) == number
        *above, last = model.path(rows[i : i + 1])
        assert number is None or last.number == number
        assert {cell.number for cell in above} <= {None}
    database = sqlite3.connect(":memory:")
    rows.to_sql("people", database, index=False)
    answer = pd.read_sql(model.to_sql("people"), database)
    assert (answer.columns[0], answer.columns[-1]) == ("prediction", "rule")
    assert [None if pd.isna(name) else name for name in answer["rule"]] == numbers
    card = model_card(model, X[:50], y[:50])
    for line in rules.table()[1]:
        escaped = [re.sub(r"([{}<>])", r"\\\1", cell) for cell in line]
        assert f"| {' | '.join(escaped)} |" in card
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree")
    assert again.find_rules(rows).tolist() == numbers
    assert [rule.number for rule in again.rules(64)] == [rule.number for rule in rules]


def test_rows_of_a_rule_are_those_of_the_fit(small):
    model, X, _ = small
    rules = model.rules(64)
    counts = pd.Series(model.find_rules(X)).value_counts()
    for rule in rules:
        assert rule.training_rows + (rule.calibration_rows or 0) == counts[rule.number]
    calibration = getattr(model, "calibration_", getattr(model, "held_out_", None))
    if calibration is not None:
        assert [rule.calibration_rows for rule in rules] == [
            (calibration.leaf == rule.node).sum() for rule in rules
        ]


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_rule_has_one_bound_in_every_view(name, tmp_path):
    model, X, y = fitted(name)
    rules, families = model.rules(64), model.conditional_guarantees()
    assert "cells" not in families
    assert [*families.leaves] == [rule.number for rule in rules]
    assert "for all rules at once" in families.leaves.title
    page = report(model, X[:60], y[:60], tmp_path / "page.html").read_text().replace("\xa0", " ")
    figure = plot_tree(model, 64)
    drawn = [text.get_text() for text in figure.axes[0].texts]
    bounds = [families.leaves[rule.number].bound for rule in rules]
    assert [rule.error_at_most for rule in rules] == bounds
    text = model.export_text(64)
    for rule, bound in zip(rules, bounds, strict=True):
        (line,) = [line for line in text.splitlines() if f" {rule.number}: " in line]
        counts = (
            f"{rule.training_rows:,.0f} training rows, {rule.calibration_rows:,} calibration rows"
        )
        assert line.endswith(f"{counts}), error at most {format_bound(bound)}")
        place = next(i for i, words in enumerate(drawn) if words.startswith(f"{rule.number}: "))
        assert drawn[place + 1].startswith(f"{rule.prediction}: ")
        assert drawn[place + 2].startswith(f"error <= {format_bound(bound)} · ")
        assert re.search(f">{rule.number}</th>.*?<td>{format_bound(bound)}</td></tr>", page)
    # A node that stands for several rules has the largest of their bounds.
    (whole,) = model.rules(1)
    assert (whole.number, whole.error_at_most) == (f"R1-R{len(rules)}", max(bounds))
    assert whole.calibration_rows == sum(rule.calibration_rows for rule in rules)
    for part in model.rules(3):
        first, _, last = part.number.replace("R", "").partition("-")
        assert part.error_at_most == max(bounds[int(first) - 1 : int(last or first)])


def test_rules_without_bounds_say_why(small):
    model, _, _ = small
    rules = model.rules()
    if rules.delta is None:
        is_certified = hasattr(model, "certificate_")
        reason = "the certificate bounds the mean absolute error over all rows"
        title = f"Rules have no error bounds of their own: {reason}." if is_certified else ""
        assert rules.title == title
        assert model.export_text().startswith(title or "all rows")
    else:
        assert all(rule.error_at_most is not None for rule in rules)


def test_votes_and_large_trees_have_no_numbers():
    X, y = people(3000)
    for model in (
        PACBayesTreeClassifier(random_state=0).fit(X, y),
        PrunedTreeClassifier(alpha=0.0).fit(X, y),
    ):
        rules = model.rules(4)
        assert {rule.number for rule in rules} == {None}
        assert model.explain(X[:3]).rules is None
        assert '"rule"' not in model.to_sql("people")
        with pytest.raises(ValueError, match="find_rules needs a single tree of at most 64 leaves"):
            model.find_rules(X)


def test_a_column_of_the_name_of_the_rules_is_refused():
    model, _, _ = fitted("pruned")
    with pytest.raises(ValueError, match="keep must hold names that differ"):
        model.to_sql("people", keep=["Rule"])
