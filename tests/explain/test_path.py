import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from certree import (
    HelmboldSchapireTreeClassifier,
    NodeStats,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    Tree,
    count,
    grow_cart,
    pac_bayes,
)
from certree.explain import NestedCells
from certree.explain.path import Explainer

ESTIMATORS = [PACBayesTreeClassifier, PrunedTreeClassifier, HelmboldSchapireTreeClassifier]
GROWERS = ["kd", "dyadic", "cart", DecisionTreeClassifier(random_state=0)]
RULE = re.compile(r"x\[(\d+)\] (<=|>) (\S+)")


def whole_numbers(n=120, seed=0):
    """Rows of whole numbers, so that thresholds are printed exactly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, size=(n, 3)).astype(float)
    y = (X[:, 0] + rng.integers(0, 5, n) > 5).astype(int)
    return X, y


def holds(rule, X):
    """Which rows a rule lets in."""
    if rule == "all rows":
        return np.ones(len(X), dtype=bool)
    feature, side, threshold = RULE.fullmatch(rule).groups()
    below = X[:, int(feature)] <= float(threshold)
    return below if side == "<=" else ~below


def branches(root):
    """All nodes of a shown tree."""
    stack = [root]
    while stack:
        branch = stack.pop()
        yield branch
        stack.extend(branch.children)


def indents(text):
    """How deep each line of a text stands."""
    return [(len(line) - len(line.lstrip("|- "))) // 4 for line in text.splitlines()]


def text_leaves(text):
    depth = indents(text)
    return sum(here >= below for here, below in zip(depth, [*depth[1:], 0], strict=True))


@pytest.mark.parametrize("grower", GROWERS, ids=["kd", "dyadic", "cart", "sklearn"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_shares_of_the_cells_around_a_row_sum_to_one(estimator, grower):
    X, y = whole_numbers()
    model = estimator(grower, random_state=0).fit(X, y)
    for x in np.vstack([X[:20], X[:5] + 0.3, [[-9.0, 99.0, 3.5]]]):
        shares = [cell.share for cell in model.path(x)]
        assert sum(shares) == pytest.approx(1, abs=1e-9)
        assert min(shares) >= 0


@pytest.mark.parametrize("grower", GROWERS, ids=["kd", "dyadic", "cart", "sklearn"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rules_hold_for_the_row_and_count_the_rows_of_their_cell(estimator, grower):
    X, y = whole_numbers()
    model = estimator(grower, random_state=0).fit(X, y)
    rows = np.vstack([X[:10], [[-9.0, 99.0, 3.25]]])
    for x in rows:
        cells = model.path(x)
        assert cells[0].rule == "all rows"
        assert cells[-1].node == model.apply(x[None])[0]
        inside = np.ones(len(X), dtype=bool)
        for cell in cells:
            assert holds(cell.rule, x[None])[0]
            inside &= holds(cell.rule, X)
            assert cell.rows == inside.sum()
            votes = np.bincount(y[inside], minlength=2)
            assert votes[cell.label] == votes.max()


def test_depth_counts_the_cells_of_chains_too():
    # Two clusters, far apart: halving the box around one of them takes many steps.
    X = np.array([[0.0], [1.0], [1000.0], [1001.0]])
    model = PACBayesTreeClassifier("dyadic", lambda_error=1, lambda_penalty=0)
    model.fit(X, [0, 1, 0, 1])
    for x in X:
        depths = [cell.depth for cell in model.path(x)]
        assert depths == [model.tree_.node_depth[cell.node] for cell in model.path(x)]
        # 1001 / 2^10 < 1: ten halvings part 0 from 1, and the node for them follows the first cut.
        assert depths == [0, 1, 10]


def test_shares_weigh_the_labels_to_the_predicted_probabilities():
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(vote="majority", lambda_error=0.3, lambda_penalty=0.2)
    model.fit(X, y)
    for x in X[:20]:
        votes = np.zeros(2)
        for cell in model.path(x):
            votes[cell.label] += cell.share
        np.testing.assert_allclose(votes, model.predict_proba(x[None])[0], atol=1e-12)


@pytest.mark.parametrize("grower", ["kd", "dyadic"])
def test_a_missing_value_goes_to_the_right(grower):
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(grower, random_state=0).fit(X, y)
    rules = [cell.rule for cell in model.path([np.nan, np.nan, np.nan])[1:]]
    assert rules
    assert all(" > " in rule for rule in rules)


def test_a_missing_value_goes_where_the_grower_has_learned():
    X = np.array([[np.nan], [np.nan], [1.0], [2.0], [5.0], [6.0], [7.0]])
    model = PACBayesTreeClassifier("cart", lambda_error=1.0, lambda_penalty=0.1)
    model.fit(X, [0, 0, 0, 0, 1, 1, 1])
    cells = model.path([np.nan])
    assert [cell.node for cell in cells] == [0, model.apply([[np.nan]])[0]]
    assert cells[-1].label == 0
    assert cells[-1].rows == 4


def test_weighted_rows_are_counted_by_weight():
    X, y = whole_numbers()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = PACBayesTreeClassifier(lambda_error=1, lambda_penalty=0.1).fit(X, y, weight)
    assert model.path(X[0])[0].rows == pytest.approx(weight.sum())


def test_the_words_of_a_small_tree():
    X, y = [[0.0, 7.0], [2.0, 7.0], [4.0, 7.0]], ["no", "no", "yes"]
    model = PrunedTreeClassifier(DecisionTreeClassifier(), alpha=0.0).fit(X, y)
    assert model.export_text() == (
        "all rows: no (probability 0.67, 3 rows)\n"
        "|-- R1: x[0] <= 3: no (probability 1.00, 2 rows)\n"
        "|-- R2: x[0] > 3: yes (probability 1.00, 1 row)"
    )
    root, leaf = model.path([5.0, 0.0])
    assert (root.node, root.depth, root.label, root.share) == (0, 0, "no", 0.0)
    assert (leaf.depth, leaf.rows, leaf.label, leaf.share) == (1, 1.0, "yes", 1.0)
    assert str(leaf) == "R2: x[0] > 3: 1 rows, votes yes with 100.0 %"


@pytest.mark.parametrize("grower", GROWERS, ids=["kd", "dyadic", "cart", "sklearn"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_text_has_at_most_max_leaves_leaves(estimator, grower):
    X, y = whole_numbers()
    model = estimator(grower, random_state=0).fit(X, y)
    n_leaves = model.get_n_leaves()
    for max_leaves in (1, 2, 3, 5, 16, n_leaves, n_leaves + 5):
        text = model.export_text(max_leaves)
        assert text_leaves(text) <= max_leaves
        assert len(text.splitlines()) == 2 * text_leaves(text) - 1
    assert len(model.export_text(1).splitlines()) == 1


def test_text_shows_as_many_leaves_as_it_may():
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(lambda_error=0.5, lambda_penalty=0.1).fit(X, y)
    for max_leaves in (1, 2, 7, 16):
        assert text_leaves(model.export_text(max_leaves)) == max_leaves
    assert text_leaves(model.export_text()) == 16
    everything = model.export_text(10_000)
    assert text_leaves(everything) == model.get_n_leaves()
    assert "..." not in everything


@pytest.mark.parametrize("grower", GROWERS, ids=["kd", "dyadic", "cart", "sklearn"])
def test_dots_mark_exactly_the_shown_cells_that_are_split_further(grower):
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(grower, lambda_error=0.5, lambda_penalty=0.1).fit(X, y)
    for max_leaves in (1, 2, 4, 9, 40):
        shown = list(branches(model._make_explainer().select_subtree(max_leaves)))
        for branch in shown:
            split = not model.tree_.is_leaf[branch.cell.node]
            assert branch.has_hidden_children == (split and not branch.children)
            assert [child.cell.node for child in branch.children] in (
                [],
                [model.tree_.left[branch.cell.node], model.tree_.left[branch.cell.node] + 1],
            )
        lines = model.export_text(max_leaves).splitlines()
        assert sum(line.endswith(" ...") for line in lines) == sum(
            b.has_hidden_children for b in shown
        )


def test_cells_that_no_pruning_opens_stay_closed():
    X, y = whole_numbers()
    # Infinitely dear leaves, nearly: the whole vote stays at the root.
    model = PACBayesTreeClassifier(lambda_error=0, lambda_penalty=1e9).fit(X, y)
    text = model.export_text()
    assert text == f"all rows: 1 (probability {y.mean():.2f}, {len(y)} rows) ..."
    assert len(text.splitlines()) == 1


def test_lines_stand_below_the_cell_that_contains_theirs():
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(lambda_error=0.5, lambda_penalty=0.1).fit(X, y)
    lines = model.export_text(20).splitlines()
    around = []
    for line, depth in zip(lines, indents("\n".join(lines)), strict=True):
        rule, rest = line.lstrip("|- ").split(": ", 1)
        around[depth:] = [rule]
        inside = np.all([holds(outer, X) for outer in around], axis=0)
        rows = "1 row" if inside.sum() == 1 else f"{inside.sum()} rows"
        assert rest.removesuffix(" ...").endswith(f", {rows})")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_names_of_features_are_used(estimator):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = estimator(random_state=0).fit(X, y == 1)
    text = model.export_text()
    assert "x[" not in text
    assert any(name in text for name in X.columns)
    cells = model.path(X.iloc[[7]])
    assert len(cells) > 1
    for cell in cells[1:]:
        name = re.split(" <= | > ", cell.rule)[0]
        assert name in X.columns


def test_path_takes_a_row_in_several_forms():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X.to_numpy(), y)
    expected = model.path(X.to_numpy()[3])
    assert model.path(X.to_numpy()[[3]]) == expected
    assert model.path(list(X.to_numpy()[3])) == expected
    named = PACBayesTreeClassifier(random_state=0).fit(X, y)
    assert [cell.share for cell in named.path(X.iloc[[3]])] == [c.share for c in expected]


def test_path_refuses_anything_but_one_row():
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="x must be a single row, got 2"):
        model.path(X[:2])
    with pytest.raises(ValueError, match="0 sample"):
        model.path(X[:0])
    with pytest.raises(ValueError, match="X has 2 features"):
        model.path(X[0, :2])
    with pytest.raises(ValueError, match="feature names"):
        PACBayesTreeClassifier(random_state=0).fit(pd.DataFrame(X, columns=list("abc")), y).path(
            pd.DataFrame(X[:1], columns=list("abd"))
        )


@pytest.mark.parametrize("max_leaves", [0, -1])
def test_no_leaves_at_all_are_refused(max_leaves):
    X, y = whole_numbers()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="max_leaves must be at least 1"):
        model.export_text(max_leaves)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_is_explained_before_fitting(estimator):
    with pytest.raises(NotFittedError):
        estimator().path([1.0])
    with pytest.raises(NotFittedError):
        estimator().export_text()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_class_is_explained_by_one_cell(estimator):
    model = estimator(random_state=0).fit([[1.0], [2.0], [3.0]], ["only"] * 3)
    (cell,) = model.path([1.5])
    assert (cell.label, cell.share, cell.rows) == ("only", 1.0, 3.0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_tree_of_one_leaf_is_one_line_without_dots(estimator):
    model = estimator(random_state=0).fit([[1.0], [2.0], [3.0]], ["only"] * 3)
    assert model.get_n_leaves() == 1
    number = "R1: " if estimator is PrunedTreeClassifier else ""
    assert model.export_text() == f"{number}all rows: only (probability 1.00, 3 rows)"


def explained(categories, names=None):
    """The rules of the two children of a root that compares a set; missing values go right."""
    m = len(categories)
    tree = Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1, None, [0, m, m, m], categories)
    counts = NodeStats(np.ones((3, 2)), np.zeros(3, dtype=int))
    posterior = pac_bayes(tree, counts, 1.0, 1.0)
    explainer = Explainer(tree, counts.n, posterior, ["colour"], ["no"].__getitem__, names)
    return [explainer.describe_split(1, 0), explainer.describe_split(2, 0)]


def test_rules_name_the_categories_of_a_set():
    colours = [("red", "blue", "green", "grey")]
    assert explained([0, 1], colours) == ["colour in {red, blue}", "colour not in {red, blue}"]
    assert explained([3]) == ["colour in {3}", "colour not in {3}"]
    assert explained([3], [None])[0] == "colour in {3}"
    assert explained([0, 1], [(10000000.0, 0.5)])[0] == "colour in {10000000, 0.5}"


def test_long_sets_are_cut():
    assert explained(range(6))[0] == "colour in {0, 1, 2, 3, 4, 5}"
    assert explained(range(23))[0] == "colour in {0, 1, 2, 3, 4, 5, ... (23)}"


def test_rules_follow_the_side_of_missing_values():
    X = np.array([[0.0], [1], [1], [np.nan]])
    tree = grow_cart(X, [0, 1, 1, 1], categorical_features=[0])
    stats = count(tree, X, np.array([0, 1, 1, 1]), 2)
    posterior = pac_bayes(tree, stats, 1.0, 1.0)
    explainer = Explainer(tree, stats.n, posterior, ["x"], [0, 1].__getitem__)
    rules = {explainer.describe_split(v, 0): stats.counts[v].tolist() for v in (1, 2)}
    assert rules == {"x in {0}": [1, 0], "x not in {0}": [0, 3]}


def test_a_path_is_short_in_a_notebook_and_whole_in_print():
    X, y = make_moons(2000, noise=0.4, random_state=0)
    model = PACBayesTreeClassifier(lambda_error=0.1, lambda_penalty=0.0, random_state=0).fit(X, y)
    path = max((model.path(x) for x in X[:50]), key=len)
    assert len(path) > 12
    assert len(str(path).splitlines()) == len(path)
    title, *lines = repr(path).splitlines()
    shown = sorted(path, key=lambda cell: -cell.share)[:5]
    assert [line.strip() for line in lines] == [str(cell) for cell in path if cell in shown]
    share = 100 * sum(cell.share for cell in shown)
    assert title == f"{len(path)} nested cells, 5 of them with {share:.1f} % of the vote:"
    assert path._repr_html_().count("<tr>") == 13
    assert path[1:3].cells == path.cells[1:3]
    assert path[0] is path.cells[0]
    short = path[:2]
    assert repr(short).splitlines()[0] == "2 nested cells:"
    assert short == NestedCells(path.cells[:2])
