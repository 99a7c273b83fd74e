"""Growers as objects: what they are called, what they grow, and how estimators take them."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import certree
from certree import (
    KD,
    Cart,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    Grid,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    grow_cart,
    grow_dyadic,
    grow_kd,
)
from certree.grow import SklearnTree, TrainingSamples, dyadic_grid
from certree.grow.grower import GROWERS, resolve_grower
from certree.grow.threshold_placement import place_thresholds
from certree.prunings import Polynomial
from certree.prunings.rule_names import RULES, resolve_rule
from certree.tree import Tree

FUNCTIONS = {Cart: grow_cart, KD: grow_kd, Dyadic: grow_dyadic}
BOX = [[-4.0, -4, -4], [4, 4, 4]]
SWITCHED = [
    Cart("gini"),
    Cart("misclassification", min_samples_split=9),
    Cart(max_leaf_nodes=7),
    Cart(min_impurity_decrease=0.01),
    KD("cycle"),
    KD(min_samples_split=12),
    KD(stop_when_pure=False),
    Dyadic(min_samples_split=12),
    Dyadic(stop_when_pure=False),
    Dyadic(expand=True),
    Dyadic(resolution="paper", exponent=0.9),
]
ESTIMATORS = [
    PACBayesTreeClassifier(lambda_error=0.5, lambda_penalty=0.1),
    PACBayesTreeRegressor(lambda_error=0.5),
    PrunedTreeClassifier(alpha=0.5),
    PrunedTreeRegressor(alpha=0.5),
    HelmboldSchapireTreeClassifier(inverse_temperature=0.3),
    DecoratedTreeClassifier(min_samples_model=20),
    DecoratedTreeRegressor(min_samples_model=20),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def two_classes(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)


def same_tree(a, b):
    for name in ("feature", "threshold", "left", "chain", "missing_left", "categories"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def switches_of(grower):
    """Parameters that differ from their defaults."""
    default = type(grower)().get_params()
    return {k: value for k, value in grower.get_params().items() if value != default[k]}


# -- objects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("grower", [*SWITCHED, Cart(), KD(), Dyadic(), Grid(BOX)], ids=repr)
def test_a_grower_is_cloned_and_written_like_an_estimator(grower):
    again = clone(grower)
    assert again is not grower
    assert again.get_params() == grower.get_params()
    names = {"Cart": Cart, "KD": KD, "Dyadic": Dyadic, "Grid": Grid}
    assert eval(repr(grower), names).get_params() == grower.get_params()
    assert type(grower)(**grower.get_params()).get_params() == grower.get_params()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_cloned_and_written_like_an_estimator(rule):
    assert repr(rule()) == f"{rule.__name__}()"
    changed = {"confidence": 0.1, "free_splits": True, "smoothness": 3, "cost": "gini"}
    given = {name: changed.get(name, True) for name in rule().get_params()}
    again = clone(rule(**given))
    assert again.get_params() == given
    assert all(f"{name}={value!r}" in repr(again) for name, value in given.items())


@pytest.mark.parametrize("grower", SWITCHED, ids=repr)
def test_a_grower_grows_what_its_function_grows(grower):
    X, y = two_classes()
    tree = FUNCTIONS[type(grower)](X, y, **switches_of(grower))
    same_tree(tree, grower.grow(TrainingSamples.from_arrays(X, y)))
    # The switch changes something.
    plain = FUNCTIONS[type(grower)](X, y)
    if switches_of(grower) != {"expand": True}:
        assert tree.n_nodes != plain.n_nodes or (tree.feature != plain.feature).any()
    model = PACBayesTreeClassifier(grower, lambda_error=1.0, lambda_penalty=0.0).fit(X, y)
    same_tree(model.tree_, tree)


@pytest.mark.parametrize("kind", FUNCTIONS, ids=lambda kind: kind.__name__)
def test_switches_stand_in_one_place_with_one_default(kind):
    """A function takes what its grower takes, and nothing besides but what it says itself."""
    X, y = two_classes(n=40)
    own = set(inspect.signature(FUNCTIONS[kind]).parameters) - {"switches"}
    assert not own & set(kind().get_params())
    same_tree(FUNCTIONS[kind](X, y, **kind().get_params()), FUNCTIONS[kind](X, y))
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_leaves'"):
        FUNCTIONS[kind](X, y, max_leaves=3)
    for parameter in inspect.signature(kind).parameters.values():
        assert parameter.default is not parameter.empty


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("name", GROWERS)
def test_functions_shorthands_objects_and_estimators_have_the_same_defaults(name, numeric):
    X, y = two_classes()
    y = X[:, 0] + y if numeric else y
    estimator = PACBayesTreeRegressor if numeric else PACBayesTreeClassifier
    expected = FUNCTIONS[GROWERS[name]](X, y)
    for given in (name, GROWERS[name]()):
        model = estimator(given, lambda_error=1.0, lambda_penalty=0.0).fit(X, y)
        same_tree(model.tree_, expected)
        assert model.grower is given


@every_estimator
def test_fitting_leaves_grower_and_rule_as_they_are(estimator):
    X, y = two_classes()
    grower = Dyadic(resolution="paper") if hasattr(estimator, "rule") else Cart(max_features=2)
    rule = {"rule": "square-root"} if isinstance(estimator.get_params().get("alpha"), float) else {}
    if isinstance(estimator, DecoratedTreeClassifier):
        rule = {"rule": Polynomial(smoothness=1)}
    before = grower.get_params()
    model = clone(estimator).set_params(grower=grower, max_depth=None, **rule, random_state=0)
    model.fit(X, y)
    assert model.grower is grower
    assert grower.get_params() == before
    assert not [name for name in vars(grower) if name.endswith("_")]


def test_a_tree_of_scikit_learn_is_cloned_and_fitted():
    X, y = two_classes()
    given = DecisionTreeClassifier(max_leaf_nodes=9, random_state=0)
    model = PACBayesTreeClassifier(given, lambda_error=1.0, lambda_penalty=0.0)
    tree = model.fit(X, y).tree_
    assert not hasattr(given, "tree_")
    read = certree.grow.from_sklearn(clone(given).fit(X, y))
    same_tree(tree, place_thresholds(read, X, at_middle=False))
    same_tree(tree, clone(model).set_params(grower=SklearnTree(given)).fit(X, y).tree_)
    numbers = DecisionTreeRegressor(max_depth=3, random_state=0)
    tree = PACBayesTreeRegressor(numbers, lambda_error=1.0).fit(X, X[:, 0]).tree_
    read = certree.grow.from_sklearn(clone(numbers).fit(X, X[:, 0]))
    same_tree(tree, place_thresholds(read, X, at_middle=False))


def test_a_random_tree_of_scikit_learn_has_the_randomness_of_the_fit_unless_its_own():
    X, y = two_classes()
    for own, varies in ((None, True), (1, False)):
        grower = ExtraTreeClassifier(random_state=own)
        fitted = [
            PACBayesTreeClassifier(
                grower, lambda_error=1.0, lambda_penalty=0.0, random_state=seed
            ).fit(X, y)
            for seed in (0, 0, 1)
        ]
        same_tree(fitted[0].tree_, fitted[1].tree_)
        thresholds = [model.tree_.threshold.tolist() for model in fitted]
        assert (thresholds[0] != thresholds[2]) == varies


class Halves(BaseEstimator):
    """A grower of one's own: two halves of a feature."""

    depends_on_rows = True
    supports_monotonic_cst = False

    def __init__(self, feature=0):
        self.feature = feature

    def grow(self, rows):
        middle = np.median(rows.X[:, self.feature])
        j = self.feature
        return certree.Tree([j, 0, 0], [middle, 0, 0], [1, -1, -1], [1] * 3, rows.X.shape[1])


@every_estimator
def test_a_grower_of_one_s_own_is_any_object_that_grows(estimator):
    X, y = two_classes()
    model = clone(estimator).set_params(grower=Halves(), grower__feature=2).fit(X, y)
    assert model.grower.feature == 2
    assert model.tree_.n_leaves <= 2
    if model.tree_.n_leaves == 2:
        assert model.tree_.feature[0] == 2
    assert len(model.predict(X)) == len(X)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grower", "message"),
    [
        (Cart("deviance"), 'criterion must be None or "gini" or "entropy" .* got \'deviance\''),
        (Cart(splitter="worst"), 'splitter must be "best" or "random", got \'worst\''),
        (Cart(max_leaf_nodes=0), "max_leaf_nodes must be None or an integer >= 1, got 0"),
        (Cart(max_leaf_nodes="9"), "max_leaf_nodes must be None or an integer, got '9'"),
        (Cart(min_impurity_decrease=-1), "min_impurity_decrease must be a finite number >= 0"),
        (Cart(min_impurity_decrease="x"), "min_impurity_decrease must be .* got 'x'"),
        (Cart(max_features=9), r"max_features must be None, .* 1 \.\. 3 or a fraction .* got 9"),
        (
            Cart(min_samples_split=1),
            "min_samples_split must be a number >= 2, or",
        ),
        (Cart(min_samples_split="x"), "min_samples_split must be a number, got 'x'"),
        (KD("widest"), 'axis must be "cycle" or "spread", got \'widest\''),
        (KD(min_samples_split=None), "min_samples_split must be a number, got None"),
        (KD(min_samples_split=np.nan), "min_samples_split must be at least 2, got nan"),
        (Dyadic(min_samples_split=0), "min_samples_split must be at least 2, got 0"),
        (Dyadic(resolution="fine"), "resolution must be None or \"paper\", got 'fine'"),
        (
            Dyadic(resolution="paper", exponent=-1),
            "exponent must be a finite number >= 0, .* got -1",
        ),
        (
            Dyadic(resolution="paper", exponent=0),
            "(120|80) rows .*are too few to halve each of 3 features",
        ),
        (Grid([[0], [1]]), r"box must have shape \(2, 3\), got \(2, 1\)"),
        (Grid([[0, 0, 0], [1, 1, 0]]), "low < high in every feature"),
        (Grid([[0, 0, 0], [1, 1, np.inf]]), "must be finite"),
        (Grid([["a"] * 3] * 2), "box must convert to float64 without loss"),
    ],
    ids=str,
)
def test_bad_switches_are_refused_in_clear_words(grower, message):
    X, y = two_classes()
    error = TypeError if "without loss" in message else ValueError
    with pytest.raises(error, match=message):
        grower.grow(TrainingSamples.from_arrays(X, y))
    with pytest.raises(error, match=message):
        PACBayesTreeClassifier(grower).fit(X, y)


@pytest.mark.parametrize("grower", ["oak", 3, None, Cart, np.arange(3)], ids=str)
@every_estimator
def test_what_is_no_grower_is_refused(estimator, grower):
    X, y = two_classes(n=60)
    with pytest.raises(ValueError, match=r"[gG]rower.* must be"):
        clone(estimator).set_params(grower=grower).fit(X, y)
    with pytest.raises(ValueError, match=r'grower must be "cart", .* an object such as Cart\(\)'):
        resolve_grower(grower)


@pytest.mark.parametrize("grower", ["kd", KD(), Dyadic(), Grid(BOX), DecisionTreeClassifier()])
def test_only_greedy_nodes_keep_to_monotonic_constraints(grower):
    X, y = two_classes()
    model = PACBayesTreeClassifier(grower, monotonic_cst=[1, 0, 0])
    with pytest.raises(ValueError, match="monotonic_cst needs grower to be a Cart, got"):
        model.fit(X, y)
    model.set_params(monotonic_cst=[0, 0, 0]).fit(X, y)


def test_a_resolution_takes_the_place_of_a_depth_limit():
    X, y = two_classes()
    with pytest.raises(ValueError, match='max_depth must be None with resolution="paper", got 3'):
        PACBayesTreeClassifier(Dyadic(resolution="paper"), max_depth=3).fit(X, y)


# -- nested parameters -----------------------------------------------------------------------------


@every_estimator
def test_parameters_of_a_grower_that_was_given_by_name_can_be_set(estimator):
    model = clone(estimator).set_params(grower="cart", grower__max_leaf_nodes=5)
    assert isinstance(model.grower, Cart)
    assert model.grower.max_leaf_nodes == 5
    model.set_params(grower__criterion="gini")
    assert model.grower.max_leaf_nodes == 5
    assert clone(model).get_params()["grower__criterion"] == "gini"
    model.set_params(grower="kd").set_params(grower__axis="cycle")
    assert isinstance(model.grower, KD)
    assert model.grower.axis == "cycle"
    assert estimator.grower in GROWERS  # the original is as it was
    with pytest.raises(ValueError, match="Invalid parameter 'max_leaf_nodes' for estimator KD"):
        model.set_params(grower__max_leaf_nodes=5)


def test_set_parameters_decide_the_tree():
    X, y = two_classes()
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.0)
    model.set_params(grower__max_leaf_nodes=5).fit(X, y)
    assert model.tree_.n_leaves == 5
    same_tree(model.tree_, grow_cart(X, y, max_leaf_nodes=5))
    model.set_params(grower=DecisionTreeClassifier(), grower__max_leaf_nodes=6).fit(X, y)
    assert model.tree_.n_leaves == 6


def test_the_shorthand_of_decorated_trees_means_few_large_nodes_also_when_it_is_changed():
    model = DecoratedTreeClassifier()
    assert model.grower == "kd"
    model.set_params(grower__axis="cycle")
    assert model.grower.get_params() == KD("cycle", min_samples_split=51).get_params()
    X, _ = two_classes()
    by_name = DecoratedTreeRegressor(min_samples_model=20).fit(X, X[:, 0])
    given = DecoratedTreeRegressor(grower=KD(min_samples_split=51), min_samples_model=20)
    same_tree(by_name.tree_, given.fit(X, X[:, 0]).tree_)


@pytest.mark.parametrize("estimator", [PrunedTreeClassifier, PrunedTreeRegressor])
def test_parameters_of_a_rule_that_was_given_by_name_can_be_set(estimator):
    model = estimator(rule="polynomial").set_params(rule__smoothness=3)
    assert model.rule.get_params() == Polynomial(smoothness=3).get_params()
    model = estimator().set_params(rule="spatially-adaptive", rule__count_empty=True)
    assert model.rule.count_empty
    assert model.grower == "cart"
    with pytest.raises(ValueError, match="Invalid parameter 'smoothness' for estimator"):
        estimator().set_params(rule__smoothness=3)


def test_names_of_rules_and_growers_mean_objects_with_their_defaults():
    for name, kind in RULES.items():
        assert type(resolve_rule(name)) is kind
        assert resolve_rule(name).get_params() == kind().get_params()
    for name, kind in GROWERS.items():
        assert type(resolve_grower(name)) is kind
        assert resolve_grower(name).get_params() == kind().get_params()
    given = Cart("gini")
    assert resolve_grower(given) is given
    tree = DecisionTreeClassifier()
    assert resolve_grower(tree).estimator is tree


def test_a_search_over_leaves_takes_the_grower_by_its_name():
    X, y = two_classes(n=200)
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.0)
    search = GridSearchCV(model, {"grower__max_leaf_nodes": [2, 4, 16]}, cv=3).fit(X, y)
    best = search.best_params_["grower__max_leaf_nodes"]
    assert search.best_estimator_.tree_.n_leaves == best
    assert model.grower == "cart"
    scores = search.cv_results_["mean_test_score"]
    for leaves, score in zip((2, 4, 16), scores, strict=True):
        alone = GridSearchCV(model, {"grower": [Cart(max_leaf_nodes=leaves)]}, cv=3).fit(X, y)
        assert alone.best_score_ == score
    assert len(set(scores)) > 1


def test_a_search_over_a_rule_takes_it_by_its_name():
    X, y = two_classes(n=200)
    model = PrunedTreeClassifier(rule="pessimistic", alpha=1.0)
    search = GridSearchCV(model, {"rule__confidence": [0.05, 0.75]}, cv=3).fit(X, y)
    assert set(search.best_params_) == {"rule__confidence"}
    leaves = [
        clone(model).set_params(rule__confidence=value).fit(X, y).get_n_leaves()
        for value in (0.05, 0.75)
    ]
    assert leaves[0] < leaves[1]


# -- a box in which no row has a part --------------------------------------------------------------


@pytest.mark.parametrize("max_depth", [None, 0, 4, "log"])
@pytest.mark.parametrize("estimator", [PACBayesTreeClassifier, PACBayesTreeRegressor])
def test_a_grid_is_a_grower_of_any_estimator_and_the_same_for_any_rows(estimator, max_depth):
    low, high = np.array(BOX)
    depth = {None: 6, "log": 3 * int(np.log(120))}.get(max_depth, max_depth)
    expected = dyadic_grid(low, high, depth)
    for seed in (0, 1):
        X, y = two_classes(seed)
        X = X * (1 + seed)
        model = estimator(Grid(BOX), max_depth=max_depth, random_state=0).fit(X, y)
        same_tree(model.tree_, expected)
        np.testing.assert_array_equal(model.apply(X), expected.apply(X))
    assert estimator(Grid(BOX), lambda_error=5.0, lambda_penalty=0.0).fit(X, y).score(X, y) > 0.1


@every_estimator
def test_every_estimator_takes_a_grid(estimator):
    X, y = two_classes()
    model = clone(estimator).set_params(grower=Grid(BOX), max_depth=5).fit(X, y)
    cells = dyadic_grid(*np.array(BOX), 5).apply(X)
    # A pruning of it: rows of one node share a leaf.
    pairs = set(zip(cells, model.apply(X), strict=True))
    assert len(pairs) == len(set(cells))
    assert len(model.predict(X)) == len(X)


def test_weights_do_not_decide_the_depth_of_a_grid():
    X, y = two_classes()
    weight = np.where(y == 1, 50.0, 1)  # they may follow classes, which may not shape the nodes
    for max_depth in (None, "log"):
        trees = [
            Grid(BOX).grow(TrainingSamples.from_arrays(X, y, given, max_depth=max_depth))
            for given in (None, weight)
        ]
        same_tree(*trees)


def test_a_grid_has_a_million_leaves_at_most():
    rows = TrainingSamples.from_arrays(np.zeros((3, 1)), None, max_depth=10**6)
    assert Grid([[0], [1]]).grow(rows).n_leaves == 2**20


def test_only_a_grid_grows_without_the_rows():
    assert not Grid.depends_on_rows
    assert all(kind.depends_on_rows for kind in (Cart, KD, Dyadic, SklearnTree))


def test_growers_of_users_that_break_the_protocol_are_named():
    class Silent(BaseEstimator):
        def grow(self, rows):
            del rows

    class Lost(Silent):
        depends_on_rows = True

    class Wide(Lost):
        def grow(self, rows):
            return Tree(
                feature=np.zeros(1, np.int32),
                threshold=np.zeros(1),
                left=np.array([-1], np.int32),
                n_features=rows.X.shape[1] + 1,
            )

    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    for grower, error, message in [
        (Silent(), TypeError, "grower must have an attribute depends_on_rows"),
        (Lost(), TypeError, r"grow of .* must return a Tree, got NoneType"),
        (Wide(), ValueError, r"grow of .* must return a tree of 1 features, got one of 2"),
    ]:
        with pytest.raises(error, match=message):
            PrunedTreeClassifier(grower, alpha=1.0).fit(X, y)
