"""Random trees, statistics and rows for Hypothesis."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from certree import NodeStats, TargetStats, Tree


@st.composite
def trees(draw, max_inner=5, max_chain=3, n_features=3, sets=False):
    """Draw a tree of at most max_inner splits, grown at random.

    max_chain: largest number of nested regions of a node; sets: whether some splits compare sets of
    categories.
    """
    left, chain = [-1], [draw(st.integers(1, max_chain))]
    leaves = [0]
    for _ in range(draw(st.integers(0, max_inner))):
        v = leaves[draw(st.integers(0, len(leaves) - 1))]
        child = len(left)
        # Children must come after parents: any leaf may be split next.
        left[v] = child
        left += [-1, -1]
        chain += [draw(st.integers(1, max_chain)) for _ in range(2)]
        leaves.remove(v)
        leaves += [child, child + 1]
    m = len(left)
    inner = np.array(left) >= 0
    feature = np.where(
        inner, draw(hnp.arrays(np.int32, m, elements=st.integers(0, n_features - 1))), 0
    )
    threshold = np.where(inner, draw(hnp.arrays(np.float64, m, elements=st.integers(-3, 3))), 0)
    plain = Tree(feature, threshold, np.array(left), np.array(chain), n_features)
    if not sets:
        return plain
    compared = [
        sorted(draw(st.sets(st.integers(0, 4), max_size=3))) if is_inner else []
        for is_inner in inner
    ]
    has_set = np.array([len(subset) > 0 for subset in compared])
    return replace(
        plain,
        missing_left=draw(hnp.arrays(np.bool_, m)) & inner,
        unseen_left=draw(hnp.arrays(np.bool_, m)) & has_set,
        category_start=np.cumsum([0] + [len(subset) for subset in compared]),
        categories=np.array([c for subset in compared for c in subset], dtype=np.int32),
    )


def sum_leaves(tree, leaf_values):
    """Return values of all nodes, (m, ...), where a node has the sum of its leaves' values."""
    values = np.array(leaf_values, dtype=np.float64)
    for v in range(len(tree.left) - 1, -1, -1):
        if tree.left[v] >= 0:
            values[v] = values[tree.left[v]] + values[tree.left[v] + 1]
    return values


@st.composite
def trees_and_stats(draw, n_classes=None, largest=10**9, labels=("majority", "any"), **tree):
    """Draw a tree with class counts up to `largest`, and labels of the majority, or any."""
    t = draw(trees(**tree))
    k = draw(st.integers(1, 4)) if n_classes is None else n_classes
    size = draw(st.sampled_from([3, 30, largest]))
    table = draw(hnp.arrays(np.int64, (t.n_nodes, k), elements=st.integers(0, size)))
    counts = sum_leaves(t, table)
    if draw(st.sampled_from(labels)) == "majority":
        label = counts.argmax(axis=1)
    else:
        label = draw(hnp.arrays(np.int32, t.n_nodes, elements=st.integers(0, k - 1)))
    return t, NodeStats(counts, label)


@st.composite
def trees_and_targets(draw, **tree):
    """Draw a tree with the moments of numbers in its leaves; some leaves have no numbers."""
    t = draw(trees(**tree))
    n_rows = draw(hnp.arrays(np.int64, t.n_nodes, elements=st.integers(0, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    far = draw(st.sampled_from([0.0, 1e6]))
    values = [[] for _ in range(t.n_nodes)]
    for v in range(t.n_nodes - 1, -1, -1):
        if t.left[v] < 0:
            values[v] = list(far + rng.normal(size=n_rows[v]).round(2))
        else:
            values[v] = values[t.left[v]] + values[t.left[v] + 1]
    mean = [np.mean(inside) if inside else far for inside in values]
    sse = [((np.array(inside) - m) ** 2).sum() for inside, m in zip(values, mean, strict=True)]
    return t, TargetStats([float(len(inside)) for inside in values], mean, sse, 0.5)


def temperatures(largest=1e6):
    """Draw non-negative temperatures of all sizes."""
    powers = st.floats(-10, np.log10(largest)).map(lambda power: 10.0**power)
    return st.one_of(st.just(0.0), st.sampled_from([0.25, 1.0, 3.0, largest]), powers)


@st.composite
def categorical_rows(draw, max_rows=24, n_categories=5, n_classes=3):
    """Draw rows of three columns of category codes, some missing, and their classes."""
    n = draw(st.integers(1, max_rows))
    values = st.one_of(st.integers(0, n_categories - 1).map(float), st.just(float("nan")))
    X = draw(hnp.arrays(np.float64, (n, 3), elements=values))
    y = draw(hnp.arrays(np.int32, n, elements=st.integers(0, n_classes - 1)))
    return X, y


@st.composite
def rows(draw, max_rows=24, max_features=3, missing=True):
    """Draw rows with ties, duplicates, constant features and perhaps NaN, and their classes."""
    n, p = draw(st.integers(1, max_rows)), draw(st.integers(1, max_features))
    values = st.one_of(
        st.integers(-4, 4).map(float),
        st.floats(-10, 10, allow_subnormal=False),
        st.sampled_from([1e300, -1e300, 1e-300, 0.1]),
        *([st.just(float("nan"))] if missing else []),
    )
    X = draw(hnp.arrays(np.float64, (n, p), elements=values))
    y = draw(hnp.arrays(np.int32, n, elements=st.integers(0, 2)))
    return X, y


@st.composite
def bit_trees(draw, n_bits=5, n_outputs=2, largest=1.0, **tree):
    """Draw a tree over bits, which may test a bit twice on a path, and values of all its nodes."""
    t = draw(trees(n_features=n_bits, max_chain=1, **tree))
    t = replace(t, threshold=np.where(t.is_leaf, 0.0, 0.5))
    numbers = st.floats(-largest, largest, width=32)
    return t, draw(hnp.arrays(np.float64, (t.n_nodes, n_outputs), elements=numbers))


def make_complete_tree(rng, n_bits, depth):
    """Make a complete tree with leaf values -1 or 1, which tests no bit twice on a path; return it
    and the values.
    """
    m = 2 ** (depth + 1) - 1
    number = np.arange(m)
    inner = number < 2**depth - 1
    feature = np.zeros(m, dtype=int)
    for v in number[inner]:
        above, u = [], v
        while u:
            u = (u - 1) // 2
            above.append(feature[u])
        feature[v] = rng.choice(np.setdiff1d(np.arange(n_bits), above))
    value = np.where(inner, 0.0, rng.choice([-1.0, 1.0], m))[:, None]
    left = np.where(inner, 2 * number + 1, -1)
    return Tree(feature, np.where(inner, 0.5, 0), left, np.ones(m, int), n_bits), value


def make_function(tree):
    """Return a tree with its values as a function of rows, which does not use its spectrum."""
    nodes, value = tree
    return lambda X: value[nodes.apply(X), 0]


def draw_examples(tree, n, seed, noise=0.0):
    """Draw rows of independent, balanced bits and the tree's values at them; a fraction `noise` of
    signs is flipped.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, tree[0].n_features)).astype(float)
    return X, make_function(tree)(X) * np.where(rng.random(n) < noise, -1, 1)
