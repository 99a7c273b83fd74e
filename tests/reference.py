"""Slow, literal versions ("twins") of the library's routines, with which tests compare its results.

Prunings are enumerated one by one, with the regions of chains expanded; sums are taken in decimals
of 80 digits or in fractions, so that nothing is lost by rounding. Arguments are as in the library:
X is (n, p), y (n,), tree a `Tree` of m nodes, masses are probabilities of prunings, and weights
belong to rows.
"""

import datetime
import math
import operator
import statistics
import struct
import sys
import zoneinfo
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise, product

import numpy as np
import scipy.optimize
from scipy.special import expit, logsumexp, xlogy
from scipy.stats import norm

DIGITS = 80
LEAF = -1

# A region is (node, position in its chain); a pruning is the tuple of its leaf regions.


# -- the tree --------------------------------------------------------------------------------------


def apply(tree, X):
    """Return the leaf of each row, (n,), by walking down the tree."""
    leaves = []
    for x in X:
        v = 0
        while tree.left[v] != LEAF:
            v = int(tree.left[v]) + (0 if goes_left(tree, v, x) else 1)
        leaves.append(v)
    return np.array(leaves, dtype=np.int32)


def goes_left(tree, v, x):
    """Return whether a row x, (p,), goes to the left child of node v.

    A split on categories sends its listed categories to the child where unseen categories do not go,
    and all other categories with the unseen ones.
    """
    value = x[tree.feature[v]]
    members = tree.categories[tree.category_start[v] : tree.category_start[v + 1]].tolist()
    if math.isnan(value):
        return bool(tree.missing_left[v])
    if members:
        return bool(tree.unseen_left[v]) != (value in members)
    return bool(value <= tree.threshold[v])


def find_path(tree, leaf):
    """Return the nodes from the root to a node, both included."""
    nodes = [leaf]
    while nodes[-1] != 0:
        v = nodes[-1]
        nodes.append(
            next(u for u in range(v) if tree.left[u] != LEAF and v - tree.left[u] in (0, 1))
        )
    return nodes[::-1]


def compute_depth(tree, v):
    """Return the number of splits above node v, with all splits of chains."""
    return sum(int(tree.chain[u]) for u in find_path(tree, v)[:-1])


def find_largest_nodes_of_one_label(tree, label, v=0):
    """Return the largest nodes below v all of whose leaves have one label, by recursion."""
    inside = [u for u in range(tree.n_nodes) if tree.is_leaf[u] and v in find_path(tree, u)]
    if len({label[u] for u in inside}) == 1:
        return [v]
    left = int(tree.left[v])
    return [
        u for child in (left, left + 1) for u in find_largest_nodes_of_one_label(tree, label, child)
    ]


def count_classes(tree, X, y, n_classes, weight=None):
    """Return the (weighted) number of rows of each class in each node, (m, n_classes)."""
    table = np.zeros((len(tree.left), n_classes))
    for i, leaf in enumerate(apply(tree, X)):
        for v in find_path(tree, leaf):
            table[v, y[i]] += 1.0 if weight is None else weight[i]
    return table


def label_nodes(tree, table):
    """Return the label of each node, (m,): the most frequent class; of its parent if it has no
    rows.
    """
    labels = []
    for v in range(len(table)):
        u = v
        while u != 0 and table[u].sum() == 0:
            u = find_path(tree, u)[-2]
        # Sums that differ by rounding are tied.
        labels.append(int(np.argmax(table[u] >= table[u].max() * (1 - 1e-12))))
    return np.array(labels)


def count_unknown_rows(known, given):
    """Return how many rows, with target and weight, are not among known rows, or not as often.

    known, given: sequences of rows, of targets and of weights.
    """
    left = [*zip(*known, strict=True)]
    n_unknown = 0
    for x, y, weight in zip(*given, strict=True):
        for place, (other, target, heavy) in enumerate(left):
            if np.array_equal(x, other, equal_nan=True) and (y, weight) == (target, heavy):
                del left[place]
                break
        else:
            n_unknown += 1
    return n_unknown


def hash_row(row, rounded=False):
    """Return the 64-bit hash of a row: splitmix64 of the bits of each number in turn, in Python
    integers.

    A run of 256 zeros or more is one word, 2^64 - 1 minus its length. rounded: hash the row as
    float32, with another start.
    """
    h = 0x9E3779B97F4A7C15 if rounded else 0
    with np.errstate(over="ignore"):
        values = np.float32(row) if rounded else row
    words = []
    for is_zero, run in groupby(values, lambda value: value == 0):
        numbers = [math.nan if math.isnan(value) else float(value) + 0.0 for value in run]
        if is_zero and len(numbers) >= 256:
            words.append(2**64 - 1 - len(numbers))
        else:
            words += [struct.unpack("<Q", struct.pack("<d", one))[0] for one in numbers]
    for bits in words:
        h = ((h ^ bits) + 0x9E3779B97F4A7C15) % 2**64
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        h = (h ^ (h >> 27)) * 0x94D049BB133111EB % 2**64
        h ^= h >> 31
    return h


def mix_word(word):
    """Return Stafford's thirteenth mix of a 64-bit word."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def hash_target(targets):
    """Return a hash of a row's targets: of class codes, or of sign and digits of numbers without
    exponent.

    The largest hash of several targets counts.
    """
    words = []
    for y in targets:
        if isinstance(y, int):
            bits = y
        else:
            digits = 0.0 if y == 0 else math.copysign(2 * abs(math.frexp(y)[0]), y)
            bits = struct.unpack("<Q", struct.pack("<d", digits))[0]
        words.append(mix_word((bits + 1) % 2**64))
    return max(words)


def sum_columns(X, y, n_categories):
    """Compute sums of each column by which `order_columns` sorts columns, whatever their order.

    n_categories: number of categories of each column, None for a column of numbers. Return a sum of
    products for each column of numbers, (p,), and for each column of categories the number of rows
    and the sum of hashes by category; None stands for missing values.
    """
    numbers, by_category = [0] * len(n_categories), [{} for _ in n_categories]
    for row, targets in zip(X, y, strict=True):
        words = []
        for value in row:
            known = math.nan if math.isnan(value) else float(value) + 0.0
            words.append(mix_word(struct.unpack("<Q", struct.pack("<d", known))[0]))
        hashed = zip(words, n_categories, strict=True)
        total = sum(word for word, n in hashed if n is None) + hash_target(targets)
        of_row = mix_word(total % 2**64)
        for j, n in enumerate(n_categories):
            if n is None:
                numbers[j] = (numbers[j] + words[j] * of_row) % 2**64
                continue
            category = int(row[j]) if row[j] in range(n) else None
            n_rows, words_of = by_category[j].get(category, (0, 0))
            by_category[j][category] = n_rows + 1, (words_of + of_row) % 2**64
    return numbers, by_category


def order_columns(numbers, by_category):
    """Return the column numbers sorted by the sums of `sum_columns`, whatever names categories
    have.
    """
    keys = []
    for number, known in zip(numbers, by_category, strict=True):
        key = number
        for category, (n_rows, words) in known.items():
            mark = mix_word(2 * n_rows + (category is None))
            key += mix_word((words + mark) % 2**64)
        keys.append(key % 2**64)
    return sorted(range(len(keys)), key=lambda j: keys[j])


def number_categories(known, n):
    """Return the number of each of n categories: the category with the most rows is number 0.

    known: number of rows and sum of hashes of each category, from `sum_columns`.
    """
    totals = [known.get(category, (0, 0)) for category in range(n)]
    order = sorted(range(n), key=lambda category: (-totals[category][0], totals[category][1]))
    return [order.index(category) for category in range(n)]


def find_first_copies(rows, y):
    """Return for each row the first row that is a copy of it, directly or through another copy.

    Copies are equal rows, or rows of which one is the other in float32; their targets are equal,
    too.
    """
    n = len(rows)
    linked = [
        [
            are_copies(rows[i], rows[j]) and _round_target(y[i]) == _round_target(y[j])
            for j in range(n)
        ]
        for i in range(n)
    ]
    first = [*range(n)]
    for _ in range(n):
        first = [min(first[j] for j in range(n) if linked[i][j]) for i in range(n)]
    return first


def _round_target(value):
    """Return a target as float32 holds it, if it is not an integer."""
    return float(np.float32(value)) if _is_fraction(value) else value


def _is_fraction(value):
    return isinstance(value, float) and math.isfinite(value) and value != math.floor(value)


def are_copies(*rows):
    """Return whether two rows are equal, None like NaN, or one of them is the other in float32."""
    plain = [[None if value is None or value != value else value for value in row] for row in rows]
    if plain[0] == plain[1]:
        return True
    rounded = [[_as_float32(value) for value in row] for row in plain]
    if rounded[0] != rounded[1]:
        return False
    pairs = [[*zip(row, held, strict=True)] for row, held in zip(plain, rounded, strict=True)]
    exact = [all(value == held for value, held in row) for row in pairs]
    fractional = [
        any(_is_fraction(value) and value != held for value, held in row) for row in pairs
    ]
    return (exact[0] and fractional[1]) or (exact[1] and fractional[0])


def _as_float32(value):
    if value is None or isinstance(value, str):
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def find_identifiers(columns):
    """Return the columns of text or integers without equal or missing values, {column: whether it
    is a key}.

    Integers are a key if they fill less than twice the number of rows.
    """
    found = {}
    for j, column in enumerate(columns):
        n, values = len(column), [None if value != value else value for value in column]
        if n < 2 or len({*values}) < n or None in values:
            continue
        if all(isinstance(value, str) for value in values):
            found[j] = True
        elif not any(isinstance(value, str) or value != round(value) for value in values):
            found[j] = max(values) - min(values) < 2 * n
    return found


def halve_at_gaps(values, bins):
    """Return the ranks at which bins of ascending values start; each bin is halved near its middle.

    It is halved at the widest gap between values near its middle, until there are `bins` bins.
    """

    def gap(rank):
        if not 0 < rank < len(values) or values[rank - 1] == values[rank]:
            return 0.0
        return min(values[rank] - values[rank - 1], sys.float_info.max)

    starts = [0, len(values)]
    while len(starts) <= bins:
        finer = []
        for low, high in pairwise(starts):
            middle, reach = (low + high) // 2, min(16, (high - low) // 4)
            finer += [low, max(range(middle - reach, middle + reach + 1), key=gap)]
        starts = [*finer, len(values)]
    return starts


def find_near_copies(
    columns, beside, train, calibration, groups=None, keys=None, all_rows=8192, some=4096
):
    """Compare calibration rows with training rows that are nearly equal.

    columns: p columns of numbers; beside: other values that near copies must have in common; keys:
    hashes of the rows. Return the number of calibration groups, the number of bins, the fraction of
    groups with neighbours in the same bin of all columns, and the fraction of these neighbours that
    bins of half the width keep.
    """
    n = len(columns[0])
    values = [[math.inf if value != value else float(value) for value in one] for one in columns]
    ranked = [i for i in range(n) if n <= all_rows or keys[i] < (all_rows << 64) // n] or range(n)
    n_values = [len({one[i] for i in ranked}) for one in values]
    chosen = sorted(sorted(range(len(values)), key=lambda j: -n_values[j])[:8])
    ordered = {j: sorted(values[j][i] for i in ranked) for j in chosen}
    rank = {j: [sum(other < value for other in ordered[j]) for value in values[j]] for j in chosen}
    compared, first, fewest = range(n), 16, 3
    if n > all_rows:
        first, fewest, m = 64, 12, len(ranked)
        widest = max(chosen, key=lambda j: n_values[j])
        starts = halve_at_gaps(ordered[widest], first)
        picked, n_picked = set(), max(3, round(some * first / n))
        for i in range(n_picked):
            middle = (2 * i + 1) * m // (2 * n_picked)
            picked |= {(low, high) for low, high in pairwise(starts) if low <= middle < high}
        compared = [
            i for i in compared if any(low <= rank[widest][i] < high for low, high in picked)
        ]
    else:
        while first > 1 and 2 * first > len(ranked) // fewest:
            first //= 2
    group = range(n) if groups is None else groups
    if not train or not calibration:
        train = [i for i in range(n) if keys[i] % 2 == 0]
        calibration = [i for i in range(n) if keys[i] % 2 == 1]
    calibration_rows = [i for i in compared if i in set(calibration)]
    training_rows = [i for i in compared if i in set(train)]
    n_calibration = len({group[i] for i in calibration_rows})

    @cache
    def codes(bins):
        starts = {j: halve_at_gaps(ordered[j], bins) for j in chosen}
        return [
            [beside[i], *(sum(start <= rank[j][i] for start in starts[j]) for j in chosen)]
            for i in range(n)
        ]

    def neighbours(i, bins):
        return [k for k in training_rows if codes(bins)[i] == codes(bins)[k]]

    def is_exact(i, k):
        return beside[i] == beside[k] and all(values[j][i] == values[j][k] for j in chosen)

    calibration_rows = [
        i
        for i in calibration_rows
        if neighbours(i, first) and not any(is_exact(i, k) for k in training_rows)
    ]
    bins, found = first, []
    units = {group[i] for i in calibration_rows}
    start = (bins, len(units) / max(n_calibration, 1), 0.0)
    while len(units) > 0.05 * n_calibration and 2 * bins <= len(ranked) // fewest:
        kept = {
            i: len(neighbours(i, 2 * bins)) / len(neighbours(i, bins)) for i in calibration_rows
        }
        means = [
            statistics.fmean(kept[i] for i in calibration_rows if group[i] == one) for one in units
        ]
        mean, m = statistics.fmean(means), len(units)
        found.append((mean - 0.65 - 1.5 / math.sqrt(m), (bins, m / n_calibration, mean)))
        calibration_rows, bins = [i for i in calibration_rows if kept[i] > 0], 2 * bins
        units = {group[i] for i in calibration_rows}
    return n_calibration, *(max(found, key=lambda one: one[0])[1] if found else start)


def compute_moments(tree, X, y, weight=None):
    """Return rows, mean and sum of squared distances from it, for the rows of every node, (3, m).

    Sums are exact: numbers far from 0 would lose their small distances from the mean.
    """
    weight = np.ones(len(X)) if weight is None else weight
    exact = [Fraction(float(number)) for number in y]
    inside = [[] for _ in range(len(tree.left))]
    for i, leaf in enumerate(apply(tree, X)):
        for v in find_path(tree, leaf):
            inside[v].append(i)
    rows = [weight[i].sum() for i in inside]
    table = []
    for v in range(len(inside)):
        u = next((u for u in reversed(find_path(tree, v)) if rows[u] > 0), None)
        mean = Fraction(0) if u is None else average_exactly(exact, weight, inside[u])
        squares = (Fraction(float(weight[i])) * (exact[i] - mean) ** 2 for i in inside[v])
        table.append((rows[v], to_float(mean), to_float(sum(squares, Fraction(0)))))
    return np.array(table).T


def average_exactly(numbers, weight, rows):
    """Return the weighted mean of some rows' numbers, which are fractions, as a fraction."""
    weights = [Fraction(float(weight[i])) for i in rows]
    return sum(numbers[i] * w for i, w in zip(rows, weights, strict=True)) / sum(weights)


def to_float(fraction):
    """Return a fraction as the nearest float, infinite beyond the largest one."""
    try:
        return float(fraction)
    except OverflowError:
        return math.copysign(math.inf, fraction)


def compute_mean_loss(tree, X, targets, weight=None, units=None):
    """Return the mean loss over several targets of every node as a leaf, (m,), and the mean log
    loss.

    targets: (n, q); class codes have errors and log losses (nats), numbers sums of squares divided
    by the unit of each. The second result is None if all targets are numbers.
    """
    losses, nats = [], []
    for k, y in enumerate(targets.T):
        if y.dtype == np.float64:
            losses.append(compute_moments(tree, X, y, weight)[2] / units[k])
            continue
        table = count_classes(tree, X, y, y.max() + 1, weight)
        label = label_nodes(tree, table)
        losses.append([row.sum() - row[k] for row, k in zip(table, label, strict=True)])
        nats.append([-sum(c * math.log(c / row.sum()) for c in row if c > 0) for row in table])
    return np.mean(losses, axis=0), np.mean(nats, axis=0) if nats else None


# -- prunings --------------------------------------------------------------------------------------


def enumerate_prunings(tree, v=0) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield all prunings of the subtree at v, as tuples of (node, position in its chain) for each
    leaf.

    A pruning stops at one of the regions of a node's chain, or continues below it.
    """
    for j in range(int(tree.chain[v])):
        yield ((v, j),)
    if tree.left[v] != LEAF:
        left = int(tree.left[v])
        for below_left, below_right in product(
            enumerate_prunings(tree, left), enumerate_prunings(tree, left + 1)
        ):
            yield below_left + below_right


def find_split_regions(tree, pruning):
    """Return the regions, as (node, position in its chain), that a pruning splits."""
    cells = set()
    for v, j in pruning:
        cells.update((v, i) for i in range(j))
        cells.update((u, i) for u in find_path(tree, v)[:-1] for i in range(int(tree.chain[u])))
    return cells


def compute_posterior(tree, log_weight):
    """Return all prunings, their probabilities, and the log of the sum of their weights.

    log_weight: takes a pruning, returns the log of its weight as a Decimal.
    """
    with localcontext() as context:
        context.prec = DIGITS
        context.Emin, context.Emax = -(10**18) + 1, 10**18 - 1
        every = list(enumerate_prunings(tree))
        logs = [log_weight(pruning) for pruning in every]
        top = max(logs)
        # Beyond e^-1000 a pruning does not matter to anything that is compared.
        masses = [(log - top).exp() if log - top > -1000 else Decimal(0) for log in logs]
        total = sum(masses)
        return every, [mass / total for mass in masses], top + total.ln()


def compute_leaf_weights(tree, every, masses):
    """Return the probability of each node to be a leaf of a drawn pruning, (m,)."""
    weight = [Decimal(0)] * len(tree.left)
    for pruning, mass in zip(every, masses, strict=True):
        for v, _ in pruning:
            weight[v] += mass
    return np.array([float(w) for w in weight])


def decimal_sqrt(n):
    return Decimal(float(n)).sqrt()


def average_prunings(tree, own, split):
    """Return the posterior whose log weights are sums over leaves and over splits of a pruning.

    own: log weight of each node as a leaf, (m,); split: log weight of each split region of a node,
    (m,).
    """

    def log_weight(pruning):
        total = sum((Decimal(float(own[v])) for v, _ in pruning), Decimal(0))
        return total + sum(Decimal(float(split[v])) for v, _ in find_split_regions(tree, pruning))

    return compute_posterior(tree, log_weight)


def compute_losses_from_means(tree, stats):
    """Return losses of nodes for a numeric target: that of the root minus the gains of splits,
    (m,).

    Gains follow from distances of means, in fractions. Rounded means far from 0 and sums of squares
    would give other gains.
    """
    n, mean = ([Fraction(float(one)) for one in column] for column in (stats.rows, stats.mean))
    loss = [Fraction(float(one)) / Fraction(stats.unit) for one in stats.sse]
    for v, left in enumerate(tree.left.tolist()):
        if left == LEAF:
            continue
        right = left + 1
        gain = n[left] * n[right] * (mean[left] - mean[right]) ** 2 / Fraction(stats.unit)
        loss[right] = loss[v] - gain / ((n[left] + n[right]) or 1) - loss[left]
    return [float(one) for one in loss]


def compute_pac_bayes_posterior(
    tree, n, errors, lambda_error, lambda_penalty, prior="leaves", stop=0.5
):
    """Return prunings, masses and log normaliser of the PAC-Bayes posterior.

    n, errors: rows and errors in each node, (m,); stop: probability that a node stops in the
    branching prior.
    """
    stops, goes_on = Decimal(stop).ln(), (1 - Decimal(stop)).ln()

    def log_weight(pruning):
        total = Decimal(0)
        for v, j in pruning:
            total -= Decimal(lambda_error) * Decimal(float(errors[v]))
            total -= Decimal(lambda_penalty) * decimal_sqrt(n[v])
            if prior == "leaves":
                total -= int(n[v] > 0)
            elif tree.left[v] != LEAF or j < tree.chain[v] - 1:
                total += stops
        if prior == "branching":
            total += len(find_split_regions(tree, pruning)) * goes_on
        return total

    with localcontext() as context:
        context.prec = DIGITS
        return compute_posterior(tree, log_weight)


def compute_theorem_posterior(tree, n, errors, lambda_error, delta):
    """Return prunings, masses and log normaliser of the posterior of the paper's Theorem 1."""
    n_cells = int(np.sum(tree.chain))
    depth = max(compute_depth(tree, v) + int(tree.chain[v]) - 1 for v in range(len(tree.left)))

    def log_weight(pruning):
        total = Decimal(0)
        for v, _ in pruning:
            deviation = (2 * Decimal(float(n[v])) * (Decimal(n_cells) / Decimal(delta)).ln()).sqrt()
            loss = Decimal(float(errors[v])) + deviation
            total -= Decimal(lambda_error) * loss + 3 * depth
        return total

    with localcontext() as context:
        context.prec = DIGITS
        return compute_posterior(tree, log_weight)


def compute_helmbold_schapire_posterior(tree, table, inverse_temperature):
    """Return prunings, masses and log normaliser of the posterior of Helmbold and Schapire."""

    def log_weight(pruning):
        total = Decimal(0)
        could_split = len(find_split_regions(tree, pruning))
        for v, j in pruning:
            a, b = Decimal(float(table[v, 0])), Decimal(float(table[v, 1]))
            total -= Decimal(inverse_temperature) * (2 * a * b / (a + b) if a + b > 0 else 0)
            could_split += int(tree.left[v] != LEAF or j < tree.chain[v] - 1)
        return total - could_split * Decimal(2).ln()

    with localcontext() as context:
        context.prec = DIGITS
        return compute_posterior(tree, log_weight)


def compute_entropy(masses):
    return -sum(float(p) * math.log(float(p)) for p in masses if p > Decimal("1e-300"))


def find_smallest_cost(tree, cost):
    """Return the smallest total cost of a pruning, exactly, and the fewest leaves of prunings that
    have it.
    """
    totals = {}
    for pruning in enumerate_prunings(tree):
        total = sum(Fraction(float(cost[v])) for v, _ in pruning)
        totals[total] = min(len(pruning), totals.get(total, len(pruning)))
    best = min(totals)
    return best, totals[best]


def find_regions_above(tree, cell):
    """Return the regions that contain a region, itself included, as (node, position in its
    chain).
    """
    v, j = cell
    above = [(u, i) for u in find_path(tree, v)[:-1] for i in range(int(tree.chain[u]))]
    return above + [(v, i) for i in range(j + 1)]


def count_leaves_inside(tree, pruning, cell, n, count_empty):
    """Return how many leaves of a pruning lie in a region: those with rows, or all.

    A region that is split inside a chain has a leaf without rows beside the chain.
    """
    inside = [v for v, j in pruning if cell in find_regions_above(tree, (v, j))]
    if not count_empty:
        return sum(int(n[v] > 0) for v in inside)
    split = [(v, j) for v, j in find_split_regions(tree, pruning) if j < tree.chain[v] - 1]
    return len(inside) + sum(cell in find_regions_above(tree, (v, j)) for v, j in split)


def count_leaves(tree, pruning, n, count_empty):
    """Return how many leaves a pruning has: those with rows, or all."""
    return count_leaves_inside(tree, pruning, (0, 0), n, count_empty)


def enumerate_root_fragments(tree, pruning):
    """Return all prunings of a pruning."""
    split = find_split_regions(tree, pruning)
    return [other for other in enumerate_prunings(tree) if find_split_regions(tree, other) <= split]


def compute_fragment_penalty(tree, pruning, fragment, n, size_penalty, cell_penalty, count_empty):
    """Return the sum of the penalties of the leaves of a root fragment; those beside a chain have
    no rows.
    """
    return sum(
        size_penalty[v] * math.sqrt(count_leaves_inside(tree, pruning, (v, j), n, count_empty))
        + cell_penalty[v]
        for v, j in fragment
    )


def enumerate_smallest_fragment_cost(tree, cost, n, size_penalty, cell_penalty, count_empty):
    """Return the smallest cost plus penalty over all prunings and all their root fragments, by
    enumeration.
    """
    return min(
        sum(cost[v] for v, _ in pruning)
        + compute_fragment_penalty(
            tree, pruning, fragment, n, size_penalty, cell_penalty, count_empty
        )
        for pruning in enumerate_prunings(tree)
        for fragment in enumerate_root_fragments(tree, pruning)
    )


def compute_costs_by_size(tree, cost, n, count_empty):
    """Return for every node and number of leaves the smallest cost of a pruning that splits the
    node.

    The splits inside the node's own chain do not count. Also return the same for all prunings below
    the node, with its chain.
    """
    split, every = {}, {}
    for v in range(len(tree.left) - 1, -1, -1):
        split[v], every[v] = {}, {1 if count_empty else int(n[v] > 0): float(cost[v])}
        if tree.left[v] == LEAF:
            continue
        beside = int(tree.chain[v]) - 1 if count_empty else 0
        left = int(tree.left[v])
        for (a, x), (b, y) in product(every[left].items(), every[left + 1].items()):
            split[v][a + b] = min(x + y, split[v].get(a + b, math.inf))
        for leaves, total in split[v].items():
            every[v][leaves + beside] = min(total, every[v].get(leaves + beside, math.inf))
    return split, every


def find_smallest_fragment_cost(tree, cost, n, size_penalty, cell_penalty, count_empty):
    """Return the smallest cost plus penalty of a pruning and its root fragment, over all numbers of
    leaves.
    """
    split, _ = compute_costs_by_size(tree, cost, n, count_empty)
    best = {}
    for v in range(len(tree.left) - 1, -1, -1):
        ways = [cost[v] + size_penalty[v] + cell_penalty[v]]
        for leaves, total in split[v].items():
            ways.append(total + size_penalty[v] * math.sqrt(leaves) + cell_penalty[v])
        if tree.left[v] != LEAF:
            ways.append(best[tree.left[v]] + best[tree.left[v] + 1])
        best[v] = min(ways)
    return best[0]


def compute_resolvability(tree, pruning, n, errors, m, delta):
    """Return the bound of Lemma 1 of Scott and Nowak for one pruning: the smallest over its root
    fragments.
    """
    nats = tree.n_features * math.log(m) + math.log(3 / delta)
    bounds = []
    for fragment in enumerate_root_fragments(tree, pruning):
        total = 0.0
        for v, j in fragment:
            leaves = count_leaves_inside(tree, pruning, (v, j), n, True)
            total += math.sqrt(48 * n[v] * leaves * math.log(2 * n[0]))
            total += math.sqrt(24 * n[v] * nats) + 2 * nats
        bounds.append(sum(errors[v] for v, _ in pruning) / n[0] + total / n[0])
    return min(bounds)


def order_merges(tree, rise):
    """Return the inner nodes in the order in which they become leaves when alpha rises.

    Of all nodes above two leaves, that of the smallest rise is next; of equal ones that of the
    lowest number.
    """
    inner = {int(v) for v in np.flatnonzero(tree.left != LEAF)}
    order = []
    while inner:
        mergeable = [v for v in inner if not inner & {int(tree.left[v]), int(tree.left[v]) + 1}]
        v = min(mergeable, key=lambda v: (rise[v], v))
        inner.remove(v)
        order.append(v)
    return order


def compute_critical_values(tree, rise):
    """Return the largest rise at a node or below it, at least 0, (m,); -1 at leaves."""
    critical = [-1.0] * len(tree.left)
    for v in range(len(tree.left) - 1, -1, -1):
        if tree.left[v] != LEAF:
            below = critical[tree.left[v]], critical[tree.left[v] + 1]
            critical[v] = max(float(rise[v]), *below, 0.0)
    return critical


# -- the vote --------------------------------------------------------------------------------------


def smooth_frequencies(tree, table, smoothing):
    """Return class frequencies of each node, shrunk to those of its parent, (m, K)."""
    rows = []
    for v in range(len(table)):
        share = np.full(table.shape[1], 1 / table.shape[1])
        for u in find_path(tree, v):
            share = (table[u] + smoothing * share) / (table[u].sum() + smoothing)
        rows.append(share)
    return np.array(rows)


def smooth_means(tree, n, mean, smoothing):
    """Return the mean of each node, shrunk to that of its parent, (m,)."""
    values = []
    for v in range(len(n)):
        value = mean[0]
        for u in find_path(tree, v):
            if n[u] + smoothing > 0:
                value = (n[u] * mean[u] + smoothing * value) / (n[u] + smoothing)
        values.append(value)
    return np.array(values)


def compute_frequencies(tree, table):
    """Return class frequencies of each node, those of its parent if it has no rows, (m, K)."""
    rows = []
    for v in range(len(table)):
        u = v
        while u != 0 and table[u].sum() == 0:
            u = find_path(tree, u)[-2]
        total = table[u].sum()
        rows.append(table[u] / total if total > 0 else np.full(table.shape[1], 1 / table.shape[1]))
    return np.array(rows)


def vote(tree, every, masses, value):
    """Return the outcome of every leaf: the value of the region that contains it, averaged over
    prunings.
    """
    outcome = {}
    for leaf in np.flatnonzero(tree.left == LEAF):
        on_path = set(find_path(tree, leaf))
        outcome[leaf] = sum(
            float(mass) * value[next(v for v, _ in pruning if v in on_path)]
            for pruning, mass in zip(every, masses, strict=True)
        )
    return outcome


def fit_mixture(rows, shares, n_steps):
    """Return proportions of a mixture of distributions by the EM algorithm, and the log loss of the
    mixture.

    rows: weight of each row; shares: probability of each row under each distribution.
    """
    n_laws = len(shares[0])
    proportion = [1 / n_laws] * n_laws
    for _ in range(n_steps):
        credit = [0.0] * n_laws
        for weight, share in zip(rows, shares, strict=True):
            mixed = sum(p * s for p, s in zip(proportion, share, strict=True))
            for i in range(n_laws):
                credit[i] += weight * proportion[i] * share[i] / mixed
        proportion = [c / sum(rows) for c in credit]
    loss = 0.0
    for weight, share in zip(rows, shares, strict=True):
        loss -= weight * math.log(sum(p * s for p, s in zip(proportion, share, strict=True)))
    return np.array(proportion), loss


def find_grid_region(low, high, depth, x):
    """Return the region of a box, halved `depth` times, that contains x: its lower and upper
    corner.
    """
    low, high = list(low), list(high)
    for level in range(depth):
        j = level % len(low)
        middle = (low[j] + high[j]) / 2
        (high if x[j] <= middle else low)[j] = middle
    return low, high


# -- divergences, moments and prior masses ---------------------------------------------------------


def group_by_nodes(every, masses):
    """Return masses of prunings by tuples of nodes; regions of one chain have the same rows."""
    merged = {}
    for pruning, mass in zip(every, masses, strict=True):
        nodes = tuple(sorted(v for v, _ in pruning))
        merged[nodes] = merged.get(nodes, Decimal(0)) + mass
    return merged


def compute_branching_masses(tree, stop):
    """Return the mass of every pruning if a reached node stops with probability stop[v], leaves
    always.
    """
    masses = {}
    for pruning in enumerate_prunings(tree):
        nodes = tuple(sorted(v for v, _ in pruning))
        mass = Decimal(1)
        for v in nodes:
            mass *= 1 if tree.left[v] == LEAF else stop[v]
        for u in {u for v in nodes for u in find_path(tree, v)[:-1]}:
            mass *= 1 - stop[u]
        masses[nodes] = mass
    return masses


def compute_masses_from_log_odds(tree, log_odds):
    """Return the mass of every pruning for log odds of splitting each node, (m,), in many
    digits.
    """
    with localcontext() as context:
        context.prec = DIGITS
        return compute_branching_masses(tree, [1 / (1 + Decimal(float(x)).exp()) for x in log_odds])


def compute_kl_divergence(law_masses, prior_masses):
    """Return the sum of q log(q / p), for masses by pruning."""
    with localcontext() as context:
        context.prec = DIGITS
        terms = [q * (q / prior_masses[key]).ln() for key, q in law_masses.items() if q > 0]
        return float(sum(terms))


def compute_renyi_divergence(law_masses, prior_masses, order):
    """Return the Renyi divergence of an order, for masses by pruning."""
    with localcontext() as context:
        context.prec = DIGITS
        order = Decimal(order)
        logs = [
            (order * q.ln() + (1 - order) * prior_masses[key].ln()).exp()
            for key, q in law_masses.items()
            if q > 0
        ]
        return float(sum(logs).ln() / (order - 1))


def compute_gibbs_bound(risk, nats, n, delta, lam):
    """Return the bound of Proposition 1 of Nguyen and Kpotufe, term by term."""
    complexity = (nats + math.log(2 * math.sqrt(n) / delta)) / (lam * (1 - lam / 2) * n)
    return risk / (1 - lam / 2) + complexity


def bound_excess_over_prunings(excess, penalty, nats, n, delta, lam, n_classes, mean=False):
    """Return the bound of Proposition 2, or equation (14) with delta = 1 / n: the smallest over
    prunings.

    excess, penalty, nats: by pruning.
    """
    chance = math.log(2 * math.sqrt(n) / delta) + lam * math.sqrt(2 * n * math.log(1 / delta))
    chance += 4 * lam if mean else 0
    least = min(excess[h] + penalty[h] + nats[h] / (lam * n) for h in excess)
    return n_classes / (1 - lam / 2) * (least + chance / (lam * n))


def compute_theorem_bound(tree, mass, errors, n, bayes_risk, delta, lam, n_classes, mean=False):
    """Return the bound of Theorem 1; mass, errors: probability of each node, and of errors in
    it.
    """
    n_cells = int(np.sum(tree.chain))
    depth = max(compute_depth(tree, v) + int(tree.chain[v]) - 1 for v in range(len(tree.left)))
    length = (2 + math.log(tree.n_features)) * depth + math.log(1 / delta)
    excess, penalty, nats = {}, {}, {}
    for pruning in enumerate_prunings(tree):
        excess[pruning] = sum(errors[v] for v, _ in pruning) - bayes_risk
        penalty[pruning] = sum(
            math.sqrt(8 * max(mass[v], length / n) * math.log(n_cells / delta) / n)
            for v, _ in pruning
        )
        nats[pruning] = 3 * depth * len(pruning)
    return bound_excess_over_prunings(excess, penalty, nats, n, delta, lam, n_classes, mean)


def find_pruning_leaf(tree, nodes, leaf):
    """Return the leaf of a pruning that contains a leaf of the tree."""
    return next(v for v in find_path(tree, leaf) if v in nodes)


def enumerate_labelled_prunings(masses, label_prior):
    """Yield all prunings with all labels for their leaves, as (dict from node to label, mass)."""
    for nodes, mass in masses.items():
        for labels in product(range(label_prior.shape[1]), repeat=len(nodes)):
            named = dict(zip(nodes, labels, strict=True))
            weight = math.prod((Decimal(float(label_prior[v, k])) for v, k in named.items()))
            yield named, mass * weight


def compute_mass_of_labelling(tree, masses, label_prior, label):
    """Return the mass of the labelled prunings that predict `label` in all leaves of the tree."""
    leaves = np.flatnonzero(tree.left == LEAF)
    return float(
        sum(
            mass
            for named, mass in enumerate_labelled_prunings(masses, label_prior)
            if all(named[find_pruning_leaf(tree, named, leaf)] == label[leaf] for leaf in leaves)
        )
    )


def compute_tuple_risk(tree, masses, table, label, n_draws, n_wrong):
    """Return the expected fraction of rows that at least n_wrong of n_draws prunings get wrong."""
    total = 0.0
    for leaf in np.flatnonzero(tree.left == LEAF):
        for drawn in product(masses.items(), repeat=n_draws):
            mass = math.prod(float(mass) for _, mass in drawn)
            labels = [label[find_pruning_leaf(tree, nodes, leaf)] for nodes, _ in drawn]
            for k, rows in enumerate(table[leaf]):
                total += rows * mass * (sum(label != k for label in labels) >= n_wrong)
    return total / table[0].sum()


def compute_disagreement(tree, masses, table, label):
    """Return the expected fraction of rows for which two drawn prunings predict different
    labels.
    """
    total = 0.0
    for leaf in np.flatnonzero(tree.left == LEAF):
        for (one, p), (other, q) in product(masses.items(), repeat=2):
            labels = (
                label[find_pruning_leaf(tree, one, leaf)],
                label[find_pruning_leaf(tree, other, leaf)],
            )
            total += table[leaf].sum() * float(p * q) * (labels[0] != labels[1])
    return total / table[0].sum()


def compute_moments_of_leaf_sum(masses, value):
    """Return mean and variance of the sum of a value over the leaves of a drawn pruning."""
    sums = [(mass, sum(Decimal(float(value[v])) for v in nodes)) for nodes, mass in masses.items()]
    mean = sum(mass * total for mass, total in sums)
    return float(mean), float(sum(mass * (total - mean) ** 2 for mass, total in sums))


# -- bounds ----------------------------------------------------------------------------------------


def compute_binomial_tail(errors, n, p):
    """Return the probability of at most `errors` errors among n rows, as a fraction."""
    p = Fraction(p)
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(errors + 1))


def compute_log(fraction):
    """Return the natural logarithm of a positive fraction, in decimals."""
    with localcontext() as context:
        context.prec = DIGITS
        return float((Decimal(fraction.numerator) / Decimal(fraction.denominator)).ln())


def compute_xi(n):
    """Return Maurer's sum for n rows, as a fraction."""
    return sum(
        math.comb(n, k) * Fraction(k, n) ** k * Fraction(n - k, n) ** (n - k) for k in range(n + 1)
    )


def compute_order_probability(lower, upper):
    """Return the probability that sorted uniform draws lie between two boundaries, as a fraction
    (Steck 1971).
    """
    lower, upper = ([Fraction(end) for end in ends] for ends in (lower, upper))
    n = len(lower)
    table = [
        [
            max(upper[i] - lower[j], Fraction(0)) ** (j - i + 1) / math.factorial(j - i + 1)
            if j >= i - 1
            else Fraction(0)
            for j in range(n)
        ]
        for i in range(n)
    ]
    return math.factorial(n) * compute_determinant(table)


def compute_determinant(table):
    """Return the determinant, by expansion along the first column."""
    if not table:
        return Fraction(1)
    rest = [row[1:] for row in table]
    return sum(
        (-1) ** i * row[0] * compute_determinant(rest[:i] + rest[i + 1 :])
        for i, row in enumerate(table)
        if row[0]
    )


def rank_outcomes_of_two_errors(n, weights, level):
    """Return numbers of errors of two kinds among n rows, with the key that orders them in the
    bound.
    """
    spread = max(norm.isf(level), 0.0)
    one, other = weights
    return {
        (i, j): one * i + other * j + spread * math.sqrt(one**2 * (i + 1) + other**2 * (j + 1))
        for i in range(n + 1)
        for j in range(n + 1 - i)
    }


def compute_probability_of_two_errors(n, numbers, p, q):
    """Return the probability of some pairs of numbers of errors, which have probabilities p and q
    in a row.
    """
    return sum(
        math.comb(n, i) * math.comb(n - i, j) * p**i * q**j * max(1 - p - q, 0.0) ** (n - i - j)
        for i, j in numbers
    )


def find_highest_mean_cost(errors, n, weights, level, steps, limits=(1, 1)):
    """Return the highest cost on a grid of probabilities, up to `limits`, at which outcomes as low
    have probability `level`.
    """
    places = rank_outcomes_of_two_errors(n, weights, level)
    low = [one for one, place in places.items() if place <= places[errors] * (1 + 1e-12)]
    grid = [k / steps for k in range(steps + 1)]
    return max(
        weights[0] * p + weights[1] * q
        for p in grid
        for q in grid
        if p + q <= 1 and p <= limits[0] and q <= limits[1]
        if compute_probability_of_two_errors(n, low, p, q) >= level
    )


def draw_row_per_group(groups):
    """The first row of each group in a random order of all rows, ascending."""
    order = np.random.default_rng(0).permutation(len(groups)).tolist()
    first = {}
    for i in order:
        first.setdefault(groups[i], i)
    return sorted(first.values())


def compute_rates_at_threshold(score, is_positive, threshold):
    """Return false positive rate and recall of the rows whose score is at least the threshold."""
    taken = [value >= threshold for value in score]
    pairs = list(zip(taken, is_positive, strict=True))
    return [
        sum(took for took, own in pairs if own == which)
        / max(sum(own == which for _, own in pairs), 1)
        for which in (False, True)
    ]


def find_largest_risk(errors, n, level):
    """Return the largest risk at which so few errors have at least probability `level`, by
    bisection.
    """
    inside, outside = 0.0, 1.0
    for _ in range(60):
        p = (inside + outside) / 2
        tail = math.fsum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(errors + 1))
        inside, outside = (p, outside) if tail >= level else (inside, p)
    return outside


def compute_binary_kl(q, p):
    """Return kl(q, p) of two probabilities, in decimals."""
    with localcontext() as context:
        context.prec = DIGITS
        q, p = Decimal(q), Decimal(p)
        pairs = [(a, b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0]
        return (
            Decimal("Infinity")
            if any(b == 0 for _, b in pairs)
            else sum(a * (a / b).ln() for a, b in pairs)
        )


def invert_binary_kl(q, nats, end):
    """Return the p between q and `end` at which kl(q, p) passes `nats`, by bisection in
    decimals.
    """
    with localcontext() as context:
        context.prec = DIGITS
        inside, outside = Decimal(q), Decimal(end)
        for _ in range(120):
            middle = (inside + outside) / 2
            inside, outside = (
                (middle, outside) if compute_binary_kl(q, middle) <= nats else (inside, middle)
            )
        return float(outside)


def compute_martingale_bound(risk, n, nats):
    """Return the largest mean conditional risk that the mixture over tilts does not contradict.

    By bisection in decimals; risk: mean loss of n rows; nats: log of 1/delta.
    """
    tilts = [math.sqrt(8 * nats / n)]
    while tilts[-1] < 2:
        tilts.append(2 * tilts[-1])
    with localcontext() as context:
        context.prec = DIGITS

        def compute_mixture(p):
            factors = [(-Decimal(t)).exp() for t in tilts]
            terms = [
                f ** (Decimal(risk) * n) / (1 - (1 - f) * p) ** n if (1 - f) * p < 1 else math.inf
                for f in factors
            ]
            terms.append((1 - p) ** -n if risk == 0 else Decimal(0))
            return sum(terms) / len(terms)

        inside, outside = Decimal(risk), Decimal(1)
        for _ in range(100):
            middle = (inside + outside) / 2
            contradicts = compute_mixture(middle) > Decimal(nats).exp()
            inside, outside = (inside, middle) if contradicts else (middle, outside)
        return float(outside)


def split_latest(times, groups, n_latest, gap):
    """Return which rows are earlier and which are latest, by loops; times are sorted by value."""
    units = [*range(len(times))] if groups is None else list(groups)
    latest = {
        unit: max(t for t, u in zip(times, units, strict=True) if u == unit) for unit in units
    }
    time = [latest[unit] for unit in units]
    wanted, best = len(latest) - n_latest, None
    for cut in sorted(set(latest.values()))[1:]:
        before = sum(value < cut for value in latest.values())
        if best is None or abs(before - wanted) < best[0]:
            best = abs(before - wanted), cut
    cut = best[1]
    return find_rows_before(time, cut, gap), [t >= cut for t in time]


def find_rows_before(time, cut, gap):
    """Return which rows are before a time, without the latest `gap` of them and their ties."""
    left_out, earlier = set(), sorted((t for t in time if t < cut), reverse=True)
    for t in earlier[:gap]:
        left_out.add(t)
    return [t < cut and t not in left_out for t in time]


def number_time_blocks(times, groups, n_blocks, gap):
    """Return the block of time of each row, and for each block the earliest one it must not know."""
    units = [*range(len(times))] if groups is None else list(groups)
    latest = {
        unit: max(t for t, u in zip(times, units, strict=True) if u == unit) for unit in units
    }
    time, number_of = [latest[unit] for unit in units], {}
    for value in sorted(set(latest.values())):
        before = sum(one < value for one in latest.values())
        same = sum(one == value for one in latest.values())
        number_of[value] = math.floor((before + (same - 1) / 2) * n_blocks / len(latest))
    numbers = sorted(set(number_of.values()))
    block = [numbers.index(number_of[t]) for t in time]
    first_excluded = []
    for b in range(len(numbers)):
        start = min(t for t, one in zip(time, block, strict=True) if one == b)
        is_known = find_rows_before(time, start, gap)
        first_excluded.append(
            min(one for one, known in zip(block, is_known, strict=True) if not known)
        )
    return block, first_excluded


def find_rows_after_bags(draws, block, first_excluded, n_scored):
    """Return whether each tree predicts each row in time order, by the rows that it has drawn."""
    last = max(block) - n_scored
    return [
        [
            block[i] > last
            and all(block[j] < first_excluded[block[i]] for j, k in enumerate(count) if k)
            for i in range(len(block))
        ]
        for count in draws
    ]


def compute_radius(n, complexity, log_delta):
    """Return the nats per row by which observed and true risk may differ in Maurer's bound."""
    return (complexity + compute_log(compute_xi(n)) - log_delta) / n


def compute_vote_bounds(risk, one_wrong, differing, n, complexity, log_delta):
    """Return bounds on a majority vote of two classes by their theorems, {name: bound}.

    risk: of a drawn pruning; one_wrong: probability that one of two drawn prunings errs; differing:
    that they disagree.
    """

    def above(observed, draws=1, fraction=1.0):
        nats = compute_radius(n, draws * complexity, log_delta + math.log(fraction))
        return invert_binary_kl(observed, nats, 1)

    def below(observed):
        return invert_binary_kl(
            observed, compute_radius(n, 2 * complexity, log_delta + math.log(0.5)), 0
        )

    half = above(risk, fraction=0.5)
    first, second = 1 - 2 * half, 1 - 2 * below(one_wrong)
    both = risk - one_wrong / 2
    return {
        "pac_bayes_kl": above(risk),
        "first_order": 2 * above(risk),
        "first_order_range": (above(risk) - 0.01) / (0.7 - 0.01),
        "tandem": 4 * above(both, 2),
        "either_wrong": 4 / 3 * above(both + one_wrong, 2),
        "c_bound": 1 - first**2 / second if first > 0 and second > 0 else 1.0,
        "disagreement": 4 * half - 2 * below(differing),
    }


# -- growing ---------------------------------------------------------------------------------------


def grow_dyadic(X, y=None, min_samples_split=2, max_depth=None, stop_when_pure=True):
    """Grow a dyadic tree as nested tuples ("leaf", chain, rows) or ("split", chain, feature,
    threshold, left, right).

    Halve the box by one feature after the other. Successive regions with one child that has rows
    become one node. Nodes are lists of rows; thresholds are the midpoints of exact fractions of the
    box.
    """
    n, p = X.shape
    low = [np.nanmin(X[:, j]) if not np.isnan(X[:, j]).all() else 0.0 for j in range(p)]
    high = [np.nanmax(X[:, j]) if not np.isnan(X[:, j]).all() else 0.0 for j in range(p)]

    def threshold(j, share):
        half = high[j] / 2 - low[j] / 2
        return (low[j] + half * float(share)) + half * float(share)

    def grow(rows, box, depth):
        start = depth
        if len(rows) < min_samples_split or (
            stop_when_pure and y is not None and len(set(y[rows])) == 1
        ):
            return ("leaf", 1, rows)
        while depth // p < 48:
            j = depth % p
            a, b = box[j]
            middle = (a + b) / 2
            split = threshold(j, middle)
            left = [i for i in rows if X[i, j] <= split]
            right = [i for i in rows if not X[i, j] <= split]
            lower, upper = {**box, j: (a, middle)}, {**box, j: (middle, b)}
            if left and right and max_depth is not None and depth >= max_depth:
                return ("leaf", max_depth - start + 1, rows)
            depth += 1
            if left and right:
                below = grow(left, lower, depth), grow(right, upper, depth)
                split = place_threshold(X[:, j], split, at_middle=False)
                return ("split", depth - start, j, split, *below)
            box = lower if left else upper
        return ("leaf", 1, rows)  # no split ever separates these rows

    everywhere = {j: (Fraction(0), Fraction(1)) for j in range(p)}
    return grow(list(range(n)), everywhere, 0)


def grow_kd(
    X, y=None, axis="spread", min_samples_split=2, max_depth=None, stop_when_pure=True, weight=None
):
    """Grow a tree with splits at medians as nested tuples, as `grow_dyadic`; NaN is above every
    number.
    """
    n, p = X.shape
    Z = np.where(np.isnan(X), np.inf, X)
    w = np.ones(n) if weight is None else weight

    def deviation(j):
        seen = ~np.isnan(X[:, j])
        copies = np.repeat(X[seen, j], w[seen].astype(int))
        return copies.std() if len(copies) else 0.0

    scale = [deviation(j) for j in range(p)]

    def spread(rows, j):
        values = [X[i, j] for i in rows if not np.isnan(X[i, j])]
        return (max(values) - min(values)) / scale[j] if scale[j] > 0 else 0.0

    def grow(rows, cursor, depth):
        pure = stop_when_pure and y is not None and len(set(y[rows])) == 1
        if len(rows) < min_samples_split or pure or depth == max_depth:
            return ("leaf", 1, rows)
        varying = [j % p for j in range(cursor, cursor + p) if len({Z[i, j % p] for i in rows}) > 1]
        if not varying:
            return ("leaf", 1, rows)
        if axis == "cycle":
            j = varying[0]
        else:
            widths = {j: spread(rows, j) for j in sorted(varying)}
            j = max(widths, key=widths.get)
        split = find_median_split(Z[rows, j], w[rows])
        left = [i for i in rows if Z[i, j] <= split]
        right = [i for i in rows if Z[i, j] > split]
        below = [grow(part, (j + 1) % p, depth + 1) for part in (left, right)]
        return ("split", 1, j, place_threshold(X[:, j], split), *below)

    return grow(list(range(n)), 0, 0)


def find_median_split(z, w):
    """Return the threshold between two values below which the weight is nearest to half; the upper
    on ties.
    """
    values = sorted(set(z))
    gap = min(
        range(len(values) - 1),
        key=lambda g: (abs(2 * sum(w[z <= values[g]]) - sum(w)), -g),
    )
    low, high = values[gap], values[gap + 1]
    middle = low / 2 + high / 2
    return middle if low <= middle < high and np.isfinite(high) else low


def nest_tree(tree, X, v=0, rows=None):
    """Convert a `Tree` to the nested tuples of `grow_dyadic`."""
    rows = list(range(len(X))) if rows is None else rows
    if tree.left[v] == LEAF:
        return ("leaf", int(tree.chain[v]), rows)
    j, split, left = int(tree.feature[v]), float(tree.threshold[v]), int(tree.left[v])
    below = [i for i in rows if X[i, j] <= split]
    above = [i for i in rows if not X[i, j] <= split]
    return (
        "split",
        int(tree.chain[v]),
        j,
        split,
        nest_tree(tree, X, left, below),
        nest_tree(tree, X, left + 1, above),
    )


def compute_impurity(y, w, criterion):
    """Return the impurity of a node's rows times their weight; for several targets the mean of
    theirs.
    """
    if y.ndim == 2:
        return sum(compute_impurity(one, w, criterion) for one in y.T) / y.shape[1]
    total = w.sum()
    if criterion == "squared":
        return float((w * (y - (w * y).sum() / total) ** 2).sum())
    if criterion == "absolute_error":
        return min(float((w * abs(y - middle)).sum()) for middle in y)
    if criterion == "poisson":
        mean = (w * y).sum() / total
        return sum(float(b * a * math.log(a / mean)) for a, b in zip(y, w, strict=True) if a > 0)
    shares = np.array([w[y == k].sum() for k in np.unique(y)]) / total
    if criterion == "gini":
        return float(total * (1 - (shares**2).sum()))
    if criterion == "entropy":
        return float(-total * (shares * np.log(shares)).sum())
    return float(total * (1 - shares.max()))


def iterate_cart_splits(X, y, w, criterion):
    """Yield every split of a node as (decrease, feature, threshold, missing_left, which rows go
    left).
    """
    for j in range(X.shape[1]):
        x = X[:, j]
        values = np.unique(x[~np.isnan(x)])
        gaps = [compute_middle(a, b) for a, b in pairwise(values)]
        sides = [False, True] if np.isnan(x).any() else [False]
        for missing_left in sides:
            last = [] if missing_left or not np.isnan(x).any() or not len(values) else [values[-1]]
            for split in gaps + last:
                left = np.where(np.isnan(x), missing_left, x <= split)
                if is_proper(y, left, criterion):
                    yield compute_decrease(y, w, left, criterion), j, split, missing_left, left


def iterate_category_splits(x, y, w, criterion):
    """Yield every division of a node's categories in two, as (decrease, which rows go left).

    Missing values are one more category. The last category stays on the right.
    """
    values = np.where(np.isnan(x), np.inf, x)
    present = np.unique(values)
    for sides in product([False, True], repeat=len(present) - 1):
        if any(sides):
            left = np.isin(values, present[:-1][list(sides)])
            if is_proper(y, left, criterion):
                yield compute_decrease(y, w, left, criterion), left


def list_target_columns(y):
    """Return columns of numbers, or for each class whether a row has it, of one target or
    several.
    """
    of_each = [*np.atleast_2d(y.T)]
    return (
        of_each if y.dtype == np.float64 else [one == k for one in of_each for k in np.unique(one)]
    )


def differs_beyond_chance(x, y, w, free=6, deviations=3):
    """Return whether categories differ by more than they would if y were assigned to the rows at
    random.
    """
    groups = np.unique(np.where(np.isnan(x), np.inf, x), return_inverse=True)[1]
    d = groups.max() + 1 - free
    if d <= 0:
        return True
    total = between = 0.0
    for column in list_target_columns(y):
        mean = np.average(column, weights=w)
        total += sum(w * (column - mean) ** 2)
        for g in range(groups.max() + 1):
            rows = groups == g
            between += w[rows].sum() * (np.average(column[rows], weights=w[rows]) - mean) ** 2
    row = sum(w**2) / sum(w)
    chance = (d + deviations * math.sqrt(2 * d)) * row * total / (sum(w) - row)
    return between > chance * (1 + 1e-9)


def iterate_prefix_splits(x, y, w, criterion, scores):
    """Yield the divisions of a node's categories into those of lower and of higher scores."""
    order = sorted(scores, key=scores.get)
    for i in range(1, len(order)):
        left = np.isin(x, order[:i])
        if is_proper(y, left, criterion):
            yield compute_decrease(y, w, left, criterion), left


def compute_principal_scores(x, y, w):
    """Return a score for each category: the projection of its class frequencies, or means, on the
    first principal component.
    """
    share = {
        c: np.array([w[x == c] @ column[x == c] for column in list_target_columns(y)])
        / w[x == c].sum()
        for c in np.unique(x)
    }
    mean = sum(w[x == c].sum() * share[c] for c in share) / w.sum()
    covariance = sum(w[x == c].sum() * np.outer(share[c] - mean, share[c] - mean) for c in share)
    axis = np.linalg.eigh(covariance)[1][:, -1]
    axis *= np.sign(axis[np.argmax(np.diag(covariance))]) or 1.0
    return {c: share[c] @ axis for c in share}


def compute_decrease(y, w, left, criterion):
    """Return how much a split lowers the impurity of a node, times its weight."""
    parts = sum(compute_impurity(y[side], w[side], criterion) for side in (left, ~left))
    return compute_impurity(y, w, criterion) - parts


def is_proper(y, left, criterion):
    """Return whether no child of a split predicts 0 under Poisson's deviance."""
    return criterion != "poisson" or min(y[left].max(), y[~left].max()) > 0


def is_enough(w, left, min_rows, min_weight):
    """Return whether both children have enough rows, each counted as one at least, and enough
    weight.
    """
    rows = min(side.sum() for side in (left, ~left))
    return rows >= min_rows - 1e-9 and min(w[left].sum(), w[~left].sum()) >= min_weight - 1e-9


def has_ordered_means(y, w, left, slope, lower, upper, slack):
    """Return whether the means of both children lie within bounds and differ in the constrained
    direction.
    """
    means = [(w[side] * y[side]).sum() / w[side].sum() for side in (left, ~left)]
    within = lower - slack <= min(means) and max(means) <= upper + slack
    return within and slope * (means[1] - means[0]) >= 0


# -- naive Bayes ------------------------------------------------------------------------------------


def compute_information(prior, masses):
    """Return the mutual information (nats) of a class and a draw; masses (K, B) of each class sum
    to 1.
    """
    mixture = [
        sum(p * row[b] for p, row in zip(prior, masses, strict=True)) for b in range(len(masses[0]))
    ]
    return sum(
        p * row[b] * math.log(row[b] / mixture[b])
        for p, row in zip(prior, masses, strict=True)
        for b in range(len(row))
        if p * row[b] > 0
    )


# -- random draws: splitmix64 in Python integers ------------------------------------------------------

GAMMA, WORD = 0x9E3779B97F4A7C15, 2**64


def mix_bits(x):
    """Return the finaliser of splitmix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def derive_key(key, i):
    """Return the key of number i among those derived from a key."""
    return mix_bits((mix_bits((key + GAMMA) % WORD) + (i + 1) * GAMMA) % WORD)


def iterate_random_bits(key):
    """Yield 64-bit words of splitmix64, one after the other."""
    while True:
        key = (key + GAMMA) % WORD
        yield mix_bits(key)


def compute_node_keys(tree, key):
    """Return the random key of each node, derived from that of its parent."""
    keys = {0: key}
    for v in range(tree.n_nodes):
        if tree.left[v] != LEAF:
            for side in (0, 1):
                keys[int(tree.left[v]) + side] = derive_key(keys[v], side)
    return keys


def draw_features(key, X, max_features):
    """Draw features of a node that may be split; features that are constant in it do not count."""
    features, drawn = list(range(X.shape[1])), []
    bits = iterate_random_bits(key)
    for n in range(len(features), 0, -1):
        if len(drawn) == max_features:
            break
        i = int((next(bits) >> 11) * 2.0**-53 * n)
        features[i], features[n - 1] = features[n - 1], features[i]
        if len(set(np.where(np.isnan(X), np.inf, X)[:, features[n - 1]])) > 1:
            drawn.append(features[n - 1])
    return drawn


def iterate_random_splits(key, j, x, y, w, criterion, is_categorical):
    """Yield the random split of a feature, with missing values on either side, as
    `iterate_cart_splits` does.
    """
    bits, seen = iterate_random_bits(derive_key(key, j)), np.unique(x[~np.isnan(x)])
    if is_categorical:
        sides = [next(bits) >> 63 for _ in seen]
        while sum(sides) == 0 or (sum(sides) == len(sides) > 1):
            sides = [next(bits) >> 63 for _ in seen]
        below = np.isin(x, seen[np.array(sides, dtype=bool)])
        threshold = 0.0
    else:
        share = (next(bits) >> 11) * 2.0**-53
        drawn = seen[0] * (1.0 - share) + seen[-1] * share
        threshold = drawn if seen[0] <= drawn < seen[-1] else seen[0]
        below = x <= threshold
    for missing_left in [False, True] if np.isnan(x).any() else [False]:
        left = np.where(np.isnan(x), missing_left, below)
        if 0 < left.sum() < len(left) and is_proper(y, left, criterion):
            yield compute_decrease(y, w, left, criterion), j, threshold, missing_left, left


def compute_middle(low, high):
    middle = low * 0.5 + high * 0.5
    return middle if low <= middle < high else low


def round_to_float32(x):
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def find_last_rounded_to(number):
    """Return the largest float64 that rounds to a float32 number, by bisection over its bits."""

    def place(x):  # float64 in order as integers
        bits = struct.unpack("<q", struct.pack("<d", x + 0.0))[0]
        return bits if bits >= 0 else -(bits & (2**63 - 1))

    def at(k):
        return math.copysign(struct.unpack("<d", struct.pack("<q", abs(k)))[0], k)

    low, high = place(number), place(math.inf)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if round_to_float32(at(middle)) <= number else (low, middle)
    return at(low)


def round_threshold(threshold, low, high):
    """The roundest date within a quarter of a gap, or anywhere in it, in days."""
    quarter = (high - low) / 4
    if np.float32(low) != np.float32(high):
        low, high = max(low, float(np.float32(low))), min(high, float(np.float32(high)))

    def find(per_day, reach):
        first, last = math.floor(low * per_day), math.ceil(high * per_day)
        if last - first > 10**4:  # those near the threshold are enough
            first = math.floor(threshold * per_day) - 2
            last = first + 5
        dates = [k / per_day for k in range(first, last + 1)]
        dates = [one for one in dates if low < one < high and abs(one - threshold) < reach]
        return min(dates, key=lambda one: (abs(one - threshold), one), default=None)

    per_day = [1, 24, 144, 1440, 86_400, 86_400_000]
    tried = [(one, quarter) for one in per_day[:4]] + [(one, math.inf) for one in per_day]
    found = (find(*one) for one in tried)
    return next((one for one in found if one is not None), threshold)


def find_gap(column, threshold):
    """Return the largest value of a column not above a threshold, and the smallest one above it."""
    values = [float(x) for x in column if not math.isnan(x)]
    low = max((x for x in values if x <= threshold), default=-math.inf)
    return low, min((x for x in values if x > threshold), default=math.inf)


def place_threshold(column, threshold, at_middle=True):
    """Return a threshold in its gap between values of a column that separates both in
    float32, too.
    """
    low, high = find_gap(column, threshold)
    wanted = compute_middle(low, high) if at_middle else float(threshold)
    below, above = round_to_float32(low), round_to_float32(high)
    if below == above:
        if round_to_float32(wanted) != wanted:
            return wanted
        return compute_middle(low, high) if below == low else low
    if round_to_float32(wanted) == wanted and wanted < above:
        return wanted
    end = find_last_rounded_to(round_to_float32(wanted))
    if end < high:
        return end
    with np.errstate(over="ignore"):
        before = np.nextafter(np.float32(round_to_float32(wanted)), np.float32(-np.inf))
    return find_last_rounded_to(float(before))


# -- growing by integer sums -------------------------------------------------------------------------


def convert_to_units(values, rows, n):
    """Return integer multiples of a power of two, ties to even, by number of row; and its
    exponent.
    """
    largest = max(abs(values[i]) for i in rows)
    exponent = math.frexp(largest)[1] - min(40, 62 - (n - 1).bit_length())
    unit = Fraction(2) ** exponent
    return {i: round(Fraction(float(values[i])) / unit) for i in rows}, exponent


def scale_by_power(value, exponent):
    """Return a float times a power of two, which may be infinite."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf


def compute_fine_bin_size(n_below, n, most):
    """Return how many values a bin has that begins above n_below of n values, if bins are fine at
    both ends.
    """
    return max(1, min(most, int(min(0.2 * n_below, 0.2 / 1.2 * (n - n_below)))))


def find_fine_size_bound(n_below, n, n_bins):
    """Return the smallest bound of bin sizes with which n_bins bins suffice, bin by bin."""
    for most in range(1, n + 1):
        at = n_below
        for _ in range(n_bins):
            at += compute_fine_bin_size(at, n, most) if at < n else 0
        if at >= n:
            return most
    return 1


def assign_bins(values, fine_ends, max_bins=255):
    """Return the bin of each value; a bin ends where its size is nearest to the planned size."""
    n, distinct = len(values), sorted(set(values))
    if len(distinct) <= max_bins:
        return [distinct.index(x) for x in values]
    bin_of, bins, inside, below = {}, 0, 0, 0
    most, wanted = find_fine_size_bound(0, n, max_bins), 1
    share = wanted if fine_ends else Fraction(n, max_bins)
    for x, following in zip(distinct, [*distinct[1:], None], strict=True):
        bin_of[x] = bins
        inside += values.count(x)
        if following is None or bins == max_bins - 1:
            continue
        if 2 * inside + values.count(following) < 2 * share:
            continue
        bins, below = bins + 1, below + inside
        share = Fraction(n - below, max_bins - bins)
        if fine_ends:
            if inside != wanted:
                most = find_fine_size_bound(below, n, max_bins - bins)
            share = wanted = compute_fine_bin_size(below, n, most)
        inside = 0
    return [bin_of[x] for x in values]


def merge_bins(n_bins, n_edges, key, feature):
    """Return for each bin of a numeric feature the number of the wider bin that it becomes a part
    of.
    """
    if n_bins <= max(32, n_edges + 1):
        return list(range(n_bins))
    bits, into, left = iterate_random_bits(derive_key(key, feature)), [0], n_edges
    for n_behind in range(n_bins - 1, 0, -1):  # Knuth's algorithm S
        edge = int((next(bits) >> 11) * 2.0**-53 * n_behind) < left
        left -= edge
        into.append(into[-1] + edge)
    return into


class GradientSums:
    """Integer sums of gradients and Hessians of rows, and the gain of nodes and splits by them."""

    def __init__(self, gradient, hessian, rows, l2=0.0, min_hessian=0.0, min_gain=0.0):
        self.g, self.g_unit = convert_to_units(gradient, rows, len(rows))
        self.h, self.h_unit = convert_to_units(hessian, rows, len(rows))
        self.l2, self.min_hessian = (
            scale_by_power(l2, -self.h_unit),
            scale_by_power(min_hessian, -self.h_unit),
        )
        self.min_gain = scale_by_power(min_gain, self.h_unit - 2 * self.g_unit)

    def sums(self, rows):
        return sum(self.g[i] for i in rows), sum(self.h[i] for i in rows)

    def value(self, rows):
        g, h = (float(one) for one in self.sums(rows))
        return g * g / (h + self.l2) if h + self.l2 > 0 else 0.0

    def enough(self, rows):
        h = float(self.sums(rows)[1])
        return h >= self.min_hessian and h + self.l2 > 0

    def response(self, rows):
        g, h = (float(one) for one in self.sums(rows))
        return -g / (h + self.l2) if h + self.l2 > 0 else 0.0

    def scores(self, groups, cell):
        own = self.l2 * -self.response(cell)
        sums = [self.sums(rows) for rows in groups]
        return [(float(g) + own) / (float(max(h, 1)) + self.l2) for g, h in sums]

    def beyond_chance(self, groups, cell, free=6, deviations=3):
        (g, h), n, d = self.sums(cell), len(cell), len(groups) - free
        sums = [(one, max(weight, 1)) for one, weight in map(self.sums, groups)]
        h = sum(weight for _, weight in sums)
        spread = sum((one - weight * Fraction(g, h)) ** 2 / weight for one, weight in sums)
        variation = sum(self.g[i] ** 2 for i in cell) - Fraction(g * g, n)
        unit = variation * Fraction(n, (n - 1) * h)
        return spread > (d + deviations * math.sqrt(2 * d)) * unit * Fraction(1 + 1e-9)

    def numbers(self, rows):
        g, h = self.sums(rows)
        return (
            scale_by_power(float(g), self.g_unit),
            scale_by_power(float(h), self.h_unit),
            float(len(rows)),
        )


class ClassSums:
    """Integer weights of classes, and the gain of nodes and splits by them, with the methods of
    GradientSums.
    """

    def __init__(self, y, n_classes, weight, rows, criterion="gini", min_weight=0.0):
        self.y, self.n_classes, self.criterion = y, n_classes, criterion
        weight = np.ones(len(y)) if weight is None else weight
        self.w, self.unit = convert_to_units(weight, rows, len(rows))
        self.min_weight, self.min_gain = scale_by_power(min_weight, -self.unit), 0.0

    def sums(self, rows):
        return [sum(self.w[i] for i in rows if self.y[i] == k) for k in range(self.n_classes)]

    def value(self, rows):
        parts = [float(one) for one in self.sums(rows)]
        total = sum(parts)
        if self.criterion == "gini":
            return sum(one * one for one in parts) / (total or 1.0)
        logs = sum(one * math.log(one / total) for one in parts if one)
        return total * math.log(self.n_classes) + logs

    def enough(self, rows):
        total = sum(self.sums(rows))
        return total > 0 and total >= self.min_weight

    def response(self, rows):
        return float(self.sums(rows)[-1]) / (float(sum(self.sums(rows))) or 1.0)

    def scores(self, groups, _):
        """Fractions of the last class."""
        return [
            float(self.sums(rows)[-1]) / max(float(sum(self.sums(rows))), 1.0) for rows in groups
        ]

    def beyond_chance(self, groups, _):
        x = np.array([k for k, rows in enumerate(groups) for _ in rows], dtype=float)
        return differs_beyond_chance(
            x, np.array([self.y[i] for rows in groups for i in rows]), np.ones(len(x))
        )

    def numbers(self, rows):
        return *(scale_by_power(float(one), self.unit) for one in self.sums(rows)), float(len(rows))


def iterate_threshold_splits(X, cell, j):
    """Yield splits of a node between values: (feature, threshold, missing_left, rows left)."""
    column = {i: float(X[i, j]) for i in cell}
    values = sorted({v for v in column.values() if not math.isnan(v)})
    lacking = {i for i in cell if math.isnan(column[i])}
    for missing_left in [False, True] if lacking else [False]:
        for low, high in pairwise([*values, math.inf]):
            left = [i for i in cell if column[i] <= low or (i in lacking and missing_left)]
            side = missing_left if lacking else 2 * len(left) >= len(cell)
            yield j, compute_middle(low, high), side, left


def iterate_sorted_category_splits(X, cell, target, j):
    """Yield splits of a node by categories, as `iterate_threshold_splits`, sorted by their scores.

    There are none if more than six categories differ by no more than chance explains.
    """
    column = {i: math.inf if math.isnan(X[i, j]) else float(X[i, j]) for i in cell}
    levels = sorted(set(column.values()))
    groups = [[i for i in cell if column[i] == level] for level in levels]
    if len(groups) > 6 and not target.beyond_chance(groups, cell):
        return
    scores = target.scores(groups, cell)
    order = sorted(range(len(groups)), key=lambda k: (scores[k], k))
    for n_left in range(1, len(order)):
        on_left = {levels[k] for k in order[:n_left]}
        left = [i for i in cell if column[i] in on_left]
        side = math.inf in on_left if math.inf in levels else 2 * len(left) >= len(cell)
        yield j, 0.0, side, left


def describe_category_split(X, cell, left, j, weigh):
    """Return what a node says of a split on categories: threshold, unseen_left, categories.

    Categories without rows in the node go to the child of the greater weight, ties left. Listed are
    the categories that go to the other child; if there are none, a threshold sends all of them to
    one child.
    """
    seen = {float(X[i, j]) for i in cell if not math.isnan(X[i, j])}
    on_left = {float(X[i, j]) for i in left if not math.isnan(X[i, j])}
    unseen_left = weigh(left) >= weigh([i for i in cell if i not in left])
    categories = sorted(seen - on_left if unseen_left else on_left)
    if categories:
        return {"threshold": 0.0, "unseen_left": unseen_left, "categories": categories}
    threshold = sys.float_info.max if unseen_left else -2.0
    return {"threshold": threshold, "unseen_left": False, "categories": []}


def iterate_binned_splits(X, cell, target, options):
    """Yield every split of a node that is allowed, in order: its value, then the split."""
    for j in options["features"]:
        if options["groups"] and not any(j in group for group in cell["groups"]):
            continue
        sets = j in options["categorical"]
        splits = (
            iterate_sorted_category_splits(X, cell["rows"], target, j)
            if sets
            else iterate_threshold_splits(X, cell["rows"], j)
        )
        for split in splits:
            left, right = split[3], [i for i in cell["rows"] if i not in split[3]]
            if min(len(left), len(right)) < max(options["min_rows"], 1):
                continue
            if not (target.enough(left) and target.enough(right)):
                continue
            responses = target.response(left), target.response(right)
            slope = options["slopes"][j]
            if options["constrained"] and not (
                min(responses) >= cell["lower"]
                and max(responses) <= cell["upper"]
                and slope * (responses[1] - responses[0]) >= 0
            ):
                continue
            yield target.value(left) + target.value(right), *split


def make_binned_children(cell, target, split, options):
    """Yield the two children that a split makes of a node."""
    _, j, _, _, left = split
    right = [i for i in cell["rows"] if i not in left]
    groups = [group for group in cell["groups"] if j in group]
    bounds = [(cell["lower"], cell["upper"])] * 2
    slope = options["slopes"][j]
    if slope != 0:
        middle = (target.response(left) + target.response(right)) / 2
        below, above = (cell["lower"], middle), (middle, cell["upper"])
        bounds = [below, above] if slope > 0 else [above, below]
    for rows, (lower, upper) in zip((left, right), bounds, strict=True):
        yield {
            "rows": rows,
            "depth": cell["depth"] + 1,
            "groups": groups,
            "lower": lower,
            "upper": upper,
        }


def grow_binned(X, target, rows, max_leaves, max_depth=None, best_first=True, **given):
    """Grow a tree by gradient sums or class sums; return its nodes as dictionaries, the root
    first.
    """
    p = X.shape[1]
    options = {"features": range(p), "min_rows": 1, "categorical": [], "groups": [], **given}
    options["constrained"] = "slopes" in given
    options.setdefault("slopes", [0] * p)

    def find_best_split(cell):
        if cell["depth"] == max_depth:
            return None
        best = None
        for split in iterate_binned_splits(X, cell, target, options):
            if best is None or split[0] > best[0]:
                best = split
        if best is None:
            return None
        gain = best[0] - target.value(cell["rows"])
        return (gain, best) if gain > 2.0**-46 * best[0] and gain >= target.min_gain else None

    root = {"rows": list(rows), "depth": 0, "groups": options["groups"]}
    nodes = [root | {"lower": -math.inf, "upper": math.inf}]
    waiting = {0: find_best_split(nodes[0])}
    for _ in range(max_leaves - 1):
        waiting = {v: split for v, split in waiting.items() if split is not None}
        if not waiting:
            break
        v = min(waiting, key=lambda v: (-waiting[v][0] if best_first else 0, v))
        _, split = waiting.pop(v)
        children = list(make_binned_children(nodes[v], target, split, options))
        _, j, threshold, missing_left, left = split
        nodes[v] |= {"feature": j, "missing_left": missing_left, "left": len(nodes)}
        if j in options["categorical"]:
            nodes[v] |= describe_category_split(X, nodes[v]["rows"], left, j, len)
        else:
            threshold = place_threshold(X[:, j], threshold)
            nodes[v] |= {"threshold": threshold, "unseen_left": False, "categories": []}
        for cell in children:
            nodes.append(cell)
            waiting[len(nodes) - 1] = find_best_split(cell)
    return nodes


# -- forests ----------------------------------------------------------------------------------------


def draw_rows(n, bootstrap, n_draws, seed, tree):
    """Return how often each of n rows is drawn for a tree, in the order of their keys."""
    bits, count = iterate_random_bits(derive_key(derive_key(seed, tree), 0)), [0] * n
    if not bootstrap and n_draws == n:
        return [1] * n
    if bootstrap:
        for _ in range(n_draws):
            count[int((next(bits) >> 11) * 2.0**-53 * n)] += 1
        return count
    for i in range(n):
        wanted = n_draws - sum(count)
        count[i] = int(int((next(bits) >> 11) * 2.0**-53 * (n - i)) < wanted)
    return count


class ForestSums:
    """Weights of rows, by class or times their number, and the gain of splits by them."""

    def __init__(self, y, weight, n_classes=None, criterion="gini"):
        self.y, self.w, self.n_classes, self.criterion = y, weight, n_classes, criterion

    def weight(self, rows):
        return sum(int(self.w[i]) for i in rows)

    def sums(self, rows):
        """Return the weight of each class, or one weighted sum of numbers."""
        if self.n_classes is None:
            return [sum(int(self.w[i]) * Fraction(float(self.y[i])) for i in rows)]
        return [self.weight(i for i in rows if self.y[i] == k) for k in range(self.n_classes)]

    def impurity(self, rows):
        """Return the impurity times the weight of the rows."""
        n, sums = self.weight(rows), self.sums(rows)
        if self.n_classes is None:
            if self.criterion == "poisson":
                return -float(sums[0]) * math.log(sums[0] / n) if sums[0] else 0.0
            squares = sum(int(self.w[i]) * Fraction(float(self.y[i])) ** 2 for i in rows)
            return squares - sums[0] ** 2 / n
        if self.criterion == "gini":
            return n - sum(Fraction(one * one, n) for one in sums)
        return -sum(one * math.log(one / n) for one in sums if one)

    def is_pure(self, rows):
        return len({self.y[i] for i in rows}) == 1

    def is_proper(self, rows, left):
        """Return whether no child predicts 0 under Poisson's deviance."""
        sides = left, [i for i in rows if i not in left]
        return self.criterion != "poisson" or all(self.sums(side)[0] > 0 for side in sides)

    def decrease(self, rows, left):
        right = [i for i in rows if i not in left]
        return self.impurity(rows) - (self.impurity(left) + self.impurity(right))

    def scores(self, groups, _):
        shares = [[one / self.weight(rows) for one in self.sums(rows)] for rows in groups]
        if self.n_classes is None:
            return [share[0] for share in shares]
        present = [k for k in range(self.n_classes) if any(share[k] for share in shares)]
        if len(present) == 2:
            return [share[present[1]] for share in shares]
        x = np.array([k for k, rows in enumerate(groups) for _ in rows], dtype=float)
        rows = [i for rows in groups for i in rows]
        scores = compute_principal_scores(x, np.asarray(self.y)[rows], np.asarray(self.w)[rows])
        return [scores[float(k)] for k in range(len(groups))]

    def beyond_chance(self, groups, _):
        x = np.array([k for k, rows in enumerate(groups) for _ in rows], dtype=float)
        rows = [i for rows in groups for i in rows]
        return differs_beyond_chance(
            x, np.asarray(self.y)[rows], np.asarray(self.w, dtype=float)[rows]
        )

    def numbers(self, rows):
        """Return weights of the classes that occur; or the weight, and the sum."""
        sums = self.sums(rows)
        if self.n_classes is None:
            return {0: self.weight(rows), 1: float(sums[0])}
        return {k: one for k, one in enumerate(sums) if one}


class ForestColumns:
    """ForestSums of several targets: the gain of a split is the sum of those of all targets, times
    fractions.
    """

    def __init__(self, y, weight, n_classes=None, shares=None, criterion="gini"):
        q = y.shape[1]
        self.w, self.shares = weight, shares or [Fraction(1, q)] * q
        self.of_each = [
            ForestSums(y[:, k], weight, None if n_classes is None else n_classes[k], criterion)
            for k in range(q)
        ]

    def weight(self, rows):
        return self.of_each[0].weight(rows)

    def is_pure(self, rows):
        return all(one.is_pure(rows) for one in self.of_each)

    def is_proper(self, rows, left):
        return all(one.is_proper(rows, left) for one in self.of_each)

    def decrease(self, rows, left):
        pairs = zip(self.shares, self.of_each, strict=True)
        return sum(share * one.decrease(rows, left) for share, one in pairs)

    def scaled(self, rows):
        """Return columns (n, outputs) whose squared distances are the gain of a split."""
        found = []
        for share, one in zip(self.shares, self.of_each, strict=True):
            y, k = np.asarray(one.y)[rows], one.n_classes
            if k is None:
                found.append(math.sqrt(share) * y)
            elif k < 3:
                found.append(math.sqrt(2 * share) * (y == 1))
            else:
                found += [math.sqrt(share) * (y == c) for c in range(k)]
        return np.column_stack(found).astype(float)

    def _apply_to_columns(self, function, groups):
        x = np.array([k for k, rows in enumerate(groups) for _ in rows], dtype=float)
        rows = [i for rows in groups for i in rows]
        return function(x, self.scaled(rows), np.asarray(self.w, dtype=float)[rows])

    def scores(self, groups, _):
        scores = self._apply_to_columns(compute_principal_scores, groups)
        return [scores[float(k)] for k in range(len(groups))]

    def beyond_chance(self, groups, _):
        return self._apply_to_columns(differs_beyond_chance, groups)

    def numbers(self, rows):
        """Return the weight, and sums of numbers, of the second of two classes, or of each of
        more.
        """
        found = [self.weight(rows)]
        for one in self.of_each:
            sums = [float(each) for each in one.sums(rows)]
            if one.n_classes is None or one.n_classes > 2:
                found += sums
            else:
                found.append(sums[1] if one.n_classes == 2 else 0.0)
        return dict(enumerate(found))


def iterate_random_feature_splits(X, cell, j, key, is_categorical):
    """Yield the random split of a feature, missing values on either side, as
    `iterate_threshold_splits`.
    """
    x = X[cell, j]
    for _, _, threshold, missing_left, left in iterate_random_splits(
        key, j, x, np.zeros(len(x)), np.ones(len(x)), "squared", is_categorical
    ):
        side = missing_left if np.isnan(x).any() else bool(2 * left.sum() >= len(cell))
        rows = [i for i, goes_left in zip(cell, left, strict=True) if goes_left]
        yield j, 0.0 if is_categorical else threshold, side, rows


def iterate_forest_splits(X, cell, key, target, features, options):
    """Yield every split of a node by features that are drawn, in order."""
    drawn = draw_features(key, X[np.ix_(cell, features)], options["max_features"])
    for j in options.get("in_order") or (features[k] for k in drawn):
        sets = j in options["categorical"]
        if options["random_cuts"]:
            splits = iterate_random_feature_splits(X, cell, j, key, sets)
        else:
            splits = (
                iterate_sorted_category_splits(X, cell, target, j)
                if sets
                else iterate_threshold_splits(X, cell, j)
            )
        for split in splits:
            n_left = len(split[3])
            is_large = 0 < n_left < len(cell)
            is_large &= options["min_leaf"] <= min(n_left, len(cell) - n_left)
            if is_large and target.is_proper(cell, split[3]):
                yield split


def grow_forest_tree(X, target, seed, tree, **given):
    """Grow a tree of a forest; return nodes as dictionaries, the root first. Its rows are all with
    a weight.
    """
    p = X.shape[1]
    options = {"max_features": p, "max_features_per_tree": p, "categorical": [], "max_depth": None}
    options |= {"random_cuts": False, "min_leaf": 1, "min_split": 2, "min_decrease": 0}
    options |= {"max_leaves": None, **given}
    features, bits = list(range(p)), iterate_random_bits(derive_key(derive_key(seed, tree), 1))
    if options["max_features_per_tree"] < p:
        for n in range(p, p - options["max_features_per_tree"], -1):
            i = int((next(bits) >> 11) * 2.0**-53 * n)
            features[i], features[n - 1] = features[n - 1], features[i]
        features = sorted(features[p - options["max_features_per_tree"] :])
    rows = [i for i in range(len(X)) if target.w[i] > 0]
    nodes = [{"rows": rows, "depth": 0, "key": derive_key(derive_key(seed, tree), 2)}]
    if options.pop("ties_by_root", False):
        root, worth = nodes[0], [-math.inf] * p
        for split in iterate_forest_splits(X, rows, root["key"], target, range(p), options):
            worth[split[0]] = max(worth[split[0]], target.decrease(rows, split[3]))
        options["in_order"] = sorted(range(p), key=lambda j: -worth[j])

    def find_best_split(node):
        """Return the gain of the best split of a node, and the split; None if it is a leaf."""
        cell = node["rows"]
        if len(cell) < options["min_split"] or target.is_pure(cell):
            return None
        if node["depth"] == options["max_depth"]:
            return None
        splits = list(iterate_forest_splits(X, cell, node["key"], target, features, options))
        gains = [target.decrease(cell, split[3]) for split in splits]
        if not splits or max(gains) < options["min_decrease"] * target.weight(rows):
            return None
        return max(gains), splits[gains.index(max(gains))]

    waiting = {0: find_best_split(nodes[0])}
    while waiting := {v: split for v, split in waiting.items() if split is not None}:
        if options["max_leaves"] is None:
            v = max(
                waiting, key=lambda v: (nodes[v]["depth"], -v)
            )  # descendants of a node come first
        elif len(nodes) // 2 + 1 == options["max_leaves"]:
            break
        else:
            v = min(waiting, key=lambda v: (-waiting[v][0], v))
        (gain, (j, threshold, missing_left, left)), node = waiting.pop(v), nodes[v]
        if j in options["categorical"]:
            node |= describe_category_split(X, node["rows"], left, j, target.weight)
        else:
            values = {x for x in X[node["rows"], j] if not math.isnan(x)}
            at_middle = not options["random_cuts"] or len(values) == 1
            threshold = place_threshold(X[:, j], threshold, at_middle)
            node |= {"threshold": threshold, "unseen_left": False, "categories": []}
        node |= {"feature": j, "missing_left": missing_left, "left": len(nodes), "gain": gain}
        for side, part in enumerate((left, [i for i in node["rows"] if i not in left])):
            key = derive_key(node["key"], side)
            nodes.append({"rows": part, "depth": node["depth"] + 1, "key": key})
        waiting |= {v: find_best_split(nodes[v]) for v in (len(nodes) - 2, len(nodes) - 1)}
    return nodes


def find_weight_unit(weight):
    """Return the largest number of which all weights are multiples, up to 1e-12 of the largest.

    It is 0 if there is none of at least 2^-16 of the largest weight.
    """
    largest, n_units = max(weight), 1
    for one in weight:
        share = Fraction(one / largest)
        fraction = share.limit_denominator(2**16)
        if not fraction or abs(share - fraction) > 1e-12:
            return 0.0
        n_units = math.lcm(n_units, fraction.denominator)
    return largest / n_units if n_units <= 2**16 else 0.0


def convert_weights_to_integers(weight):
    """Return weights as multiples of their unit; without one, of 2^-16 of the largest, rounded, at
    least 1.
    """
    unit = find_weight_unit(weight) or max(weight) / 2**16
    return [max(round(one / unit), 1) for one in weight]


def balance_in_bag_weights(count, weight, y):
    """Return integer weights of drawn rows by which all classes of each target have equal weight;
    else 0.
    """
    drawn = [i for i in range(len(count)) if count[i] > 0]
    relative = {i: float(weight[i]) for i in drawn}
    for column in np.transpose(y):
        total = {}
        for i in drawn:
            total[column[i]] = total.get(column[i], 0) + int(count[i] * weight[i])
        relative = {i: relative[i] / total[column[i]] for i in drawn}
    whole = dict(zip(drawn, convert_weights_to_integers([*relative.values()]), strict=True))
    return [whole.get(i, 0) for i in range(len(count))]


def reorder_columns(X, y, categorical):
    """Return rows with columns and categories in the order of `order_columns` and
    `number_categories`.

    Also return the order of the columns, and the original category of each new number, by column.
    """
    p = X.shape[1]
    sizes = [
        int(np.nanmax(X[:, j], initial=-1)) + 1 if j in categorical else None for j in range(p)
    ]
    numbers, known = sum_columns(X, [[int(one)] for one in y], sizes)
    made, names = X.copy(), [[]] * p
    for j in categorical:
        number = number_categories(known[j], sizes[j])
        made[:, j] = [value if math.isnan(value) else number[int(value)] for value in X[:, j]]
        names[j] = [number.index(k) for k in range(sizes[j])]
    order = order_columns(numbers, known)
    return made[:, order], order, [names[j] for j in order]


def grow_on_samples(X, y, n_classes, samples, seeds, weight, categorical=(), **given):
    """Yield sums and nodes of trees that each depend on the rows of a sample only."""
    for sample, seed in zip(samples, seeds, strict=True):
        own = [1] * len(sample) if weight is None else convert_weights_to_integers(weight[sample])
        target = ForestSums(y[sample], own, n_classes)
        rows, order, names = reorder_columns(X[sample], y[sample], categorical)
        given["categorical"] = [order.index(j) for j in categorical]
        nodes = grow_forest_tree(rows, target, int(seed), 0, **given)
        for node in nodes:
            if "feature" in node:
                j = node["feature"]
                node["feature"] = order[j]
                node["categories"] = sorted(names[j][int(k)] for k in node["categories"])
        yield target, nodes


def compute_refilled_leaf(tree, leaf_of, i, y, inside, outside, shrinkage, n_lanes):
    """Return the prediction of a tree for row i from copies of rows in each node of its path; None
    without any.

    inside, outside: weight of each row in the bag and out of it, with the weight of row i as it
    shall count. n_lanes: for each target 1 if its numbers are averaged, else its number of classes.
    """
    predicted, n_outputs = None, sum(n_lanes)
    for v in find_path(tree, leaf_of[i]):
        cell = [j for j in range(len(y)) if v in find_path(tree, leaf_of[j])]
        weight = [inside[j] + outside[j] for j in cell]
        whole = sum(weight) + (0 if predicted is None else shrinkage)
        if whole == 0:
            if predicted is None:
                return None
            continue
        sums = []
        for k, n in enumerate(n_lanes):
            pairs = [(w, y[j, k]) for w, j in zip(weight, cell, strict=True)]
            if n == 1:
                sums.append(sum(w * one for w, one in pairs))
            else:
                sums += [sum(w for w, one in pairs if one == c) for c in range(n)]
        drawn = [0.0] * n_outputs if predicted is None else [shrinkage * one for one in predicted]
        predicted = [(one + other) / whole for one, other in zip(sums, drawn, strict=True)]
    return predicted


def sum_out_of_bag_predictions(
    trees, X, y, weight, draws, filled_by, shrinkage, n_lanes, predicts=None
):
    """Return sums of predictions of trees for rows out of their bags, with the row left out, and
    their number. predicts: whether each tree predicts each row; None: if it is out of the bag.
    """
    total, n_trees = np.zeros((len(y), sum(n_lanes))), np.zeros(len(y), dtype=int)
    predicts = draws == 0 if predicts is None else predicts
    for tree, count, is_predicted in zip(trees, draws, predicts, strict=True):
        leaf_of = apply(tree, X)
        for i in np.flatnonzero(is_predicted):
            inside = count * weight * (filled_by != "out_of_bag")
            outside = (count == 0) * weight * (filled_by != "in_bag")
            if filled_by == "out_of_bag" and not outside.any():
                inside = count * weight
            outside = np.where(np.arange(len(y)) == i, 0, outside)
            predicted = compute_refilled_leaf(
                tree, leaf_of, i, y, inside, outside, shrinkage, n_lanes
            )
            if predicted is not None:
                total[i] += predicted
                n_trees[i] += 1
    return total, n_trees


# -- naive Bayes -----------------------------------------------------------------------------------


def compute_log_normal_density(value, mean, variance):
    return -0.5 * math.log(2 * math.pi * variance) - (value - mean) ** 2 / (2 * variance)


def compute_mean_and_variance(values):
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((v - mean) ** 2 for v in values) / len(values)


def compute_normal_log_density(value, x, y, k, added):
    """Return the log density at a value, for the rows of class k, or for all if it has none."""
    if math.isnan(value):
        return 0.0
    present = [v for v in x if not math.isnan(v)]
    own = [v for v, label in zip(x, y, strict=True) if label == k and not math.isnan(v)]
    if not present:
        return compute_log_normal_density(value, 0.0, 1.0)
    mean, variance = compute_mean_and_variance(own or present)
    return compute_log_normal_density(value, mean, variance + added)


def compute_table_log_probability(value, x, y, k, n_categories, alpha):
    if math.isnan(value):
        return 0.0
    own = [v for v, label in zip(x, y, strict=True) if label == k and not math.isnan(v)]
    return math.log((own.count(value) + alpha) / (len(own) + alpha * n_categories))


def find_bin(value, edges):
    """Return the last bin that begins at or below a value; the first one for values below all."""
    if math.isnan(value):
        return math.nan
    return max([b for b in range(len(edges) - 1) if edges[b] <= value], default=0)


def compute_histogram_log_density(value, x, y, k, edges, alpha):
    if math.isnan(value):
        return 0.0
    bins, b = [find_bin(v, edges) for v in x], find_bin(value, edges)
    width = edges[b + 1] - edges[b] or 1.0
    return compute_table_log_probability(b, bins, y, k, len(edges) - 1, alpha) - math.log(width)


def compute_product_posterior(row, X, y, n_classes, log_density):
    """Return the prior times the density of every feature, scaled to sum 1, for one row.

    log_density: takes value, column, y and class.
    """
    products = []
    for k in range(n_classes):
        product = list(y).count(k) / len(y)
        for value, column in zip(row, zip(*X, strict=True), strict=True):
            product *= math.exp(log_density(value, column, y, k))
        products.append(product)
    return [product / sum(products) for product in products]


def compute_leave_one_out(x, y, times, log_density):
    """Return for each row log_density(value, other rows, their classes, class); None without others
    of the class.

    times: how often each row occurs; all its copies are left out.
    """
    result = []
    for i, (value, k) in enumerate(zip(x, y, strict=True)):
        others = [j for j in range(len(x)) if j != i for _ in range(times[j])]
        alone = not any(y[j] == k and not math.isnan(x[j]) for j in others)
        result.append(
            None if alone else log_density(value, [x[j] for j in others], [y[j] for j in others], k)
        )
    return result


def compute_log_losses(counts):
    """Return the log loss of the rows of each node under its frequencies, in nats."""
    return np.array([sum(-c * np.log(c / sum(row)) for c in row if c > 0) for row in counts], float)


def find_label_strata(y, times):
    """Return for each row, (n, q), its classes as (number of rows with them, which rows), the
    rarest first.
    """
    found = []
    for one in y:
        classes = []
        for k, label in enumerate(one):
            have = [i for i in range(len(y)) if y[i, k] == label]
            classes.append((sum(times[i] for i in have), tuple(have)))
        found.append(tuple(sorted(classes)))
    return found


# -- sums over ranks -------------------------------------------------------------------------------


def sum_over_ranks(values_of_ranks):
    """Return the sum of the numbers of all ranks, as the float64 number that is nearest to it."""
    return float(sum(Fraction(value) for values in values_of_ranks for value in values))


# -- boosting --------------------------------------------------------------------------------------


def compute_loss_scale(name, parameter, y, scores):
    """Return the number of a loss that depends on all rows; 1 if there is none."""
    if name == "quantile":
        return np.abs(y - scores).mean()
    if name == "huber":
        return np.quantile(np.abs(y - scores), parameter)
    return np.mean(np.exp(scores) ** (2 - parameter)) if name == "tweedie" else 1.0


def compute_scale_of_terms(terms, quantile=None):
    """Return the mean of positive numbers, or one of their quantiles, as fits in blocks compute it.

    For the mean, the numbers are rounded to multiples of a power of two, ties to even, so that
    their sum is exact: of 2^40 multiples the largest number has at most all, and the sum of n
    numbers has at most 2^62.
    """
    n, ordered = len(terms), sorted(terms)
    if quantile is not None:
        place = quantile * (n - 1)
        below, above = ordered[int(place)], ordered[min(int(place) + 1, n - 1)]
        return below + (above - below) * (place - int(place))
    if math.isinf(ordered[-1]):
        return math.inf
    unit = math.frexp(ordered[-1])[1] - min(40, 62 - (n - 1).bit_length())
    total = sum(round(Fraction(term) / Fraction(2) ** unit) for term in terms)
    return float(Fraction(total) * Fraction(2) ** unit) / n


def compute_gradients(name, parameter, y, scores, least=1e-7):
    """Return gradients and Hessians, (n_outputs, n) each; the parameter is a quantile or a
    power.
    """
    quantile = parameter
    if name == "classes":
        return compute_log_loss_gradients(y, scores, least)
    error = scores - y
    if name == "squared_error":
        return error, np.ones_like(error)
    if name == "quantile":
        unit = compute_loss_scale(name, quantile, y, scores)
        if unit == 0:
            return np.zeros_like(error), np.ones_like(error)
        way = np.where(error < 0, -quantile, np.where(error > 0, 1 - quantile, 0.0))
        return 2 * unit * way, unit / np.maximum(np.abs(error), 0.1 * unit)
    if name == "huber":
        bend = compute_loss_scale(name, quantile, y, scores)
        hessian = bend / np.maximum(np.abs(error), bend) if bend > 0 else 1.0 * (error == 0)
        return np.clip(error, -bend, bend), np.maximum(hessian, least)
    if name == "poisson":
        return np.exp(scores) - y, np.maximum(np.exp(scores), least)
    if name == "tweedie":
        mean, unit = np.exp(scores), compute_loss_scale(name, parameter, y, scores)
        score = (mean - y) * mean ** (1 - parameter)
        information = (2 - parameter) * mean ** (2 - parameter)
        information += (parameter - 1) * y * mean ** (1 - parameter)
        return score / unit, np.maximum(information / unit, least)
    return 1 - y * np.exp(-scores), np.maximum(y * np.exp(-scores), least)


def compute_losses(name, parameter, y, scores):
    """Return the loss of each row."""
    quantile = parameter
    if name == "classes":
        every = np.vstack([np.zeros_like(scores), scores]) if len(scores) == 1 else scores
        return logsumexp(every, axis=0) - every[y.astype(int), np.arange(len(y))]
    error = y - scores[0]
    if name == "squared_error":
        return error**2 / 2
    if name == "quantile":
        return np.maximum(quantile * error, (quantile - 1) * error)
    if name == "huber":
        bend = compute_loss_scale(name, quantile, y, scores)
        near = np.minimum(np.abs(error), bend)
        return near * (np.abs(error) - near / 2)
    if name == "poisson":
        return xlogy(y, y) - y - y * scores[0] + np.exp(scores[0])
    if name == "tweedie":  # half of the deviance, by its definition
        mean, power = np.exp(scores[0]), parameter
        best = y ** (2 - power) * (1 / (1 - power) - 1 / (2 - power))
        return best - y * mean ** (1 - power) / (1 - power) + mean ** (2 - power) / (2 - power)
    ratio = y * np.exp(-scores[0])
    return ratio - 1 - np.log(ratio)


def compute_dispersion(name, quantile, y, scores, weight):
    if name in ("classes", "poisson", "gamma"):
        return 1.0
    if name == "tweedie":
        gradient, hessian = compute_gradients(name, quantile, y, scores)
        weights = np.ones(len(y)) if weight is None else weight
        ratio = (weights * gradient**2).sum() / (weights * hessian).sum()
        return ratio if ratio > 0 else 1.0
    mean = np.average(compute_losses(name, quantile, y, scores), weights=weight)
    scale = mean if mean > 0 else 1.0
    if name != "quantile":
        return 2 * scale
    unit = compute_loss_scale(name, quantile, y, scores)
    return scale * 2 * unit if unit > 0 else 1.0


def compute_log_loss_gradients(y, scores, least):
    """Return gradients and Hessians of log loss, (n_outputs, n) each; one output: log odds of class
    1.
    """
    every = np.vstack([np.zeros_like(scores), scores]) if len(scores) == 1 else scores
    powers = np.exp(every - every.max(axis=0))
    share = powers / powers.sum(axis=0)
    rest = np.stack([np.delete(powers, k, axis=0).sum(axis=0) for k in range(len(every))])
    variance = np.maximum(share * (rest / powers.sum(axis=0)), least)
    gradient = share - (y == np.arange(len(every))[:, None])
    if len(scores) == 1:
        return gradient[1:], variance[1:]
    return gradient, variance * len(scores) / (len(scores) - 1)


def compute_multi_column_log_loss(y, scores, lanes, least=1e-7):
    """Return the loss of each row (n,), gradients and Hessians (n_scores, n), for several targets y
    (q, n).

    Each target has its scores, one behind the other: log odds of the second of two classes, or one
    for each of more. lanes: number of scores of each target.
    """
    loss, gradient, hessian = np.zeros(y.shape[1]), np.zeros(scores.shape), np.zeros(scores.shape)
    for i in range(y.shape[1]):
        first = 0
        for k, width in enumerate(lanes):
            own = list(scores[first : first + width, i])
            every = [0.0, *own] if width == 1 else own
            largest = max(every)
            powers = [math.exp(one - largest) for one in every]
            total, truth = math.fsum(powers), int(y[k, i])
            loss[i] += math.log(total) + largest - every[truth]
            for j in range(width):
                code = 1 if width == 1 else j
                rest = math.fsum(powers[:code] + powers[code + 1 :])
                variance = max(powers[code] / total * rest / total, least)
                factor = 1.0 if width == 1 else width / (width - 1)
                gradient[first + j, i] = powers[code] / total - (truth == code)
                hessian[first + j, i] = factor * variance
            first += width
    return loss, gradient, hessian


# -- ranking


def find_ranking_pairs(query, truncation, y, scores):
    """Return (better, worse, weight) of all pairs of documents that count, by the scores."""
    pairs = []
    for number in np.unique(query):
        rows = [i for i in range(len(y)) if query[i] == number]
        ideal = sorted((2.0 ** y[i] - 1 for i in rows), reverse=True)[:truncation]
        best = sum(gain / math.log2(2 + rank) for rank, gain in enumerate(ideal))
        order = sorted(rows, key=lambda i: (-scores[i], i))
        for first, i in enumerate(order[:truncation]):
            for second in range(first + 1, len(order)):
                j = order[second]
                if y[i] == y[j]:
                    continue
                gain = abs(2.0 ** y[i] - 2.0 ** y[j]) / best
                worth = gain * (1 / math.log2(2 + first) - 1 / math.log2(2 + second) + 1)
                pairs.append((i, j, worth) if y[i] > y[j] else (j, i, worth))
    return pairs


def sum_ranking_gradients(pairs, n, scores, weight, least=1e-7):
    """Return gradients and Hessians of the rows, in the unit of the pairs."""
    gradient, hessian = np.zeros(n), np.zeros(n)
    for i, j, worth in pairs:
        wrong, factor = expit(scores[j] - scores[i]), 1.0 if weight is None else weight[i]
        gradient[[i, j]] += factor * worth * wrong * np.array([-1, 1])
        hessian[[i, j]] += factor * worth * max(wrong * (1 - wrong), least)
    return gradient, hessian


def compute_ranking_unit(pairs, scores, weight, query):
    """Return the factor that makes the mean Hessian 1."""
    hessian = sum_ranking_gradients(pairs, len(query), scores, weight)[1]
    mean = hessian.sum() / (len(query) if weight is None else weight.sum())
    return mean if mean > 0 else 1.0


def compute_ranking_gradients(query, truncation, y, scores, weight, least=1e-7):
    """Return gradients and Hessians, (n,) each, by all pairs."""
    pairs = find_ranking_pairs(query, truncation, y, scores)
    gradient, hessian = sum_ranking_gradients(pairs, len(y), scores, weight)
    unit = compute_ranking_unit(pairs, scores, weight, query)
    return gradient / unit, np.maximum(hessian / unit, least)


def compute_ranking_dispersion(gradient, hessian, weight):
    squares = gradient**2 if weight is None else gradient**2 / weight
    return squares.sum() / hessian.sum() or 1.0


def compute_mean_ranking_loss(query, at, y, scores, weight):
    """Return the mean of 1 - NDCG; documents of equal score take the average of their places."""
    losses, weights = [], []
    for number in np.unique(query):
        rows = [i for i in range(len(y)) if query[i] == number]
        order, n = sorted(rows, key=lambda i: -scores[i]), at or len(rows)
        discounts = [1 / math.log2(2 + rank) if rank < n else 0.0 for rank in range(len(rows))]
        gains = sorted((2.0 ** y[i] - 1 for i in rows), reverse=True)
        best, found = sum(map(operator.mul, gains, discounts)), 0.0
        for i in rows:
            places = [rank for rank, j in enumerate(order) if scores[j] == scores[i]]
            found += (2.0 ** y[i] - 1) * sum(discounts[rank] for rank in places) / len(places)
        losses.append(1 - found / best if best > 0 else 0.0)
        weights.append(1 if weight is None else weight[rows[0]])
    return np.average(losses, weights=weights)


def draw_round_rows(bits, keys, subsample):
    """Return which rows are in the bag of a round, and the weight of each row in growth."""
    odd, other_odd = next(bits) | 1, next(bits) | 1
    if subsample == 1:
        return np.ones(len(keys), dtype=bool), np.ones(len(keys))
    assigned = [int(key) * odd % WORD for key in keys]
    grows = np.array([one < int(subsample * 2.0**64) for one in assigned])
    if not grows.any():
        grows = np.array([one == min(assigned) for one in assigned])
    levels = [(int(key) * other_odd % WORD) >> 56 for key in keys]
    return grows, np.array([-math.log((level + 0.5) / 256) for level in levels])


def draw_mixture(bits, n_outputs):
    """Return random factors of the outputs: sums of twelve uniform numbers are nearly normal."""
    if n_outputs == 1:
        return [1.0]
    return [sum((next(bits) >> 11) * 2.0**-53 for _ in range(12)) - 6 for _ in range(n_outputs)]


def draw_round_features(bits, order, n_drawn):
    p, key, left, drawn = len(order), next(bits), list(order), []
    if n_drawn >= p:
        return sorted(left)
    bits = iterate_random_bits(key)
    for n in range(p, p - n_drawn, -1):
        i = int((next(bits) >> 11) * 2.0**-53 * n)
        left[i], left[n - 1] = left[n - 1], left[i]
        drawn.append(left[n - 1])
    return sorted(drawn)


def list_output_groups(loss, y, scores):
    """Return for each output group its outputs, (name, parameter, target, scores), and its factor
    in the loss.
    """
    found, targets = [], np.atleast_2d(y)
    for parameter, share, first, n_outputs, target in loss.list_groups():
        outputs = list(range(first, first + n_outputs))
        found.append(
            (outputs, (loss.core_name, parameter, targets[target], scores[outputs]), share)
        )
    return found


def run_boosting_rounds(run, first, last, round_steps):
    """Return scores after some rounds, [(tree, steps, in-bag rows by node)], and losses of the
    validation rows.
    """
    settings, loss, n = run.settings, run.settings.loss, len(run.keys)
    scores, rounds, validation_losses, n_all = run.scores.copy(), [], [], run.scores.shape[1]
    weight = None if run.weight is None else run.weight[:n]
    for number in range(first, last):
        bits = iterate_random_bits(derive_key(run.seed, number))
        grows, counts_as = draw_round_rows(bits, run.keys, settings.subsample)
        gradient, hessian, groups = np.zeros((len(scores), n)), np.zeros((len(scores), n)), []
        for outputs, given, _ in list_output_groups(loss, run.y[..., :n], scores[:, :n]):
            if run.query is None:
                gradients = compute_gradients(*given)
                gradients = [one * (1.0 if weight is None else weight) for one in gradients]
                spread = compute_dispersion(*given, weight)
            else:
                ranked = run.query[:n], loss.cutoffs[0], run.y[:n], scores[0, :n], weight
                gradients = compute_ranking_gradients(*ranked)
                spread = compute_ranking_dispersion(*(one[None] for one in gradients), weight)
            gradient[outputs], hessian[outputs] = gradients
            groups.append((outputs[0], len(outputs), 1 / spread))
        # One tree serves all groups of a classifier; groups of a regressor take turns.
        own = groups if loss.core_name == "classes" else [groups[number % len(groups)]]
        grown_for = [k for begin, n_outputs, _ in own for k in range(begin, begin + n_outputs)]
        factors = draw_mixture(bits, len(grown_for))
        turn, p = (
            settings.feature_fractions[number % len(settings.feature_fractions)],
            len(run.bins.codes),
        )
        order = run.grower.checked_feature_order
        every = range(p) if order is None else order.tolist()
        features = draw_round_features(bits, every, max(1, round(turn * p)))
        edges = run.thresholds[number // len(settings.feature_fractions) % len(run.thresholds)]
        bins = run.bins if edges is None else run.bins.coarsen(edges, next(bits), order)
        target = [
            sum(f**power * one[k] for k, f in zip(grown_for, factors, strict=True)) * counts_as
            for power, one in ((1, gradient), (2, hessian))
        ]
        tree, leaf, sums = run.grower.grow_gradients(
            *(np.append(one, np.zeros(n_all - n)) for one in target),
            rows=np.flatnonzero(grows),
            others=np.append(np.flatnonzero(~grows), np.arange(n, n_all)),
            features=features,
            bins=bins,
        )
        steps, *_ = round_steps(
            *(tree.left, leaf[:n]),
            *(np.flatnonzero(side).astype(np.int32) for side in (grows, ~grows)),
            *(np.ascontiguousarray(one) for one in (gradient, hessian)),
            settings.l2_regularization,
            groups,
            0.1,
            0.5,
            np.array([0.02, 0.1, 0.5] if settings.votes else []),
            *(tree.feature, run.grower.gradient_options[1]),
        )
        steps = settings.learning_rate * steps
        scores = scores + steps[leaf].T
        rounds.append((tree, steps, sums[:, 2]))
        of_rows = np.zeros(n_all - n)
        if n < n_all and run.query is None:
            for _, given, share in list_output_groups(loss, run.y[..., n:], scores[:, n:]):
                of_rows += share * compute_losses(*given)
        validation_losses.append(
            of_rows.sum() if run.weight is None else (of_rows * run.weight[n:]).sum()
        )
    return scores, rounds, validation_losses


def stop_early(score, most, n_iter_no_change, tol):
    """Return scores before the first round and after each one that is made, and how many rounds are
    kept.

    score: takes a number of rounds and returns their score; larger is better.
    """
    scores = [score(0)]
    best, since = scores[0], 0
    while len(scores) <= most and since < n_iter_no_change:
        scores.append(score(len(scores)))
        if scores[-1] > best + tol:
            best, since = scores[-1], 0
        else:
            since += 1
    kept = max(range(1, len(scores)), key=lambda t: (scores[t], -t))
    return scores, kept


def compute_newton_steps(tree, leaf, gradient, hessian, shrinkage):
    """Return the Newton step of each node by its rows, shrunk to that of its parent."""
    steps = []
    for v in range(tree.n_nodes):
        inside = [v in find_path(tree, u) for u in leaf]
        g, h = gradient[inside].sum(), hessian[inside].sum()
        if v == 0:
            steps.append(-g / h if h > 0 else 0.0)
            continue
        above = steps[find_path(tree, v)[-2]]
        total = h + shrinkage
        steps.append((shrinkage * above - g) / total if total > 0 else above)
    return np.array(steps)


def average_boosting_steps(
    tree, leaf, grew, gradient, hessian, shrinkage, voters, others, curvature, stops
):
    """Return the average step of every leaf over all prunings, the standard deviation of the steps
    of single prunings, {leaf: (n_outputs,)} each, and the log evidence.

    voters: (first output, number of outputs, inverse temperature) of each group; others: factor
    with which a group counts the losses of other groups.
    """
    every = [tuple(v for v, _ in pruning) for pruning in enumerate_prunings(tree)]
    pairs = list(zip(gradient, hessian, strict=True))
    grown = [compute_newton_steps(tree, leaf[grew], g[grew], h[grew], shrinkage) for g, h in pairs]
    steps = [compute_newton_steps(tree, leaf, g, h, shrinkage) for g, h in pairs]
    own = np.zeros((len(voters), tree.n_nodes))
    for v in range(tree.n_nodes):
        out_of_bag = [i for i in range(len(leaf)) if not grew[i] and v in find_path(tree, leaf[i])]
        for number, (first, n_outputs, inverse_temperature) in enumerate(voters):
            for k in range(first, first + n_outputs):
                (g, h), step = pairs[k], grown[k][v]
                change = sum(g[i] * step + 0.5 * curvature * h[i] * step**2 for i in out_of_bag)
                own[number, v] -= inverse_temperature * change
    found = {int(u): [0.0] * len(steps) for u in np.flatnonzero(tree.left == LEAF)}
    deviations, evidence = {u: [0.0] * len(steps) for u in found}, 0.0
    for number, (first, n_outputs, _) in enumerate(voters):
        log_weight = own[number] + others * np.delete(own, number, axis=0).sum(axis=0)
        weight = np.array([compute_pruning_prior(tree, one, stops) for one in every])
        weight *= np.exp([log_weight[list(pruning)].sum() for pruning in every])
        evidence += float(np.log(weight.sum()))
        for u, predicted in found.items():
            cells = [next(v for v in pruning if v in find_path(tree, u)) for pruning in every]
            for k in range(first, first + n_outputs):
                predicted[k] = float(weight @ steps[k][cells] / weight.sum())
                off = steps[k][cells] - predicted[k]
                deviations[u][k] = math.sqrt(weight @ off**2 / weight.sum())
    return found, deviations, evidence


def compute_pruning_prior(tree, pruning, stops):
    """Return the mean probability of a pruning by branching priors of several stop
    probabilities.
    """
    inner = len({u for v in pruning for u in find_path(tree, v)[:-1]})
    early = sum(tree.left[v] != LEAF for v in pruning)
    return np.mean([(1 - stop) ** inner * stop**early for stop in stops])


def compute_standard_errors(fits, own, scores, deviations, weight):
    """Return standard errors (n, n_outputs) of scores from three fits, [{row: prediction}], to own
    rows each.

    Every row is predicted by the fits without it, and by the model, whose scores are (n, K).
    """
    n, n_outputs = scores.shape
    errors = np.zeros((n, n_outputs))
    for k in range(n_outputs):
        squares = spread = total = 0.0
        for i in range(n):
            predicted = [fit[i][k] for fit, rows in zip(fits, own, strict=True) if i not in rows]
            one, other, model = *predicted, scores[i, k]
            pairs = (one - other) ** 2 + (one - model) ** 2 + (other - model) ** 2
            spread += weight[i] * pairs / 4
            squares += weight[i] * deviations[i, k] ** 2
            total += weight[i]
        for i in range(n):
            factor = deviations[i, k] / math.sqrt(squares / total) if squares > 0 else 1.0
            errors[i, k] = factor * math.sqrt(spread / total)
    return errors


# -- smaller trees ---------------------------------------------------------------------------------


def compact_leaves(tree, weight, values, tolerance):
    """Return the leaves of the smallest tree whose outcomes are near those of the vote: {node:
    outcome}.
    """

    def outcome(node):
        nodes = find_path(tree, node)
        above = sum((weight[v] * values[v] for v in nodes[:-1]), np.zeros(values.shape[1]))
        return above + (1 - sum(weight[v] for v in nodes[:-1])) * values[node]

    def leaves_below(node):
        if tree.left[node] < 0:
            return [node]
        return leaves_below(tree.left[node]) + leaves_below(tree.left[node] + 1)

    def voted(leaf):
        return sum(weight[v] * values[v] for v in find_path(tree, leaf))

    def visit(node):
        split = outcome(node)
        if tree.left[node] < 0 or all(
            np.abs(voted(leaf) - split).max() <= tolerance for leaf in leaves_below(node)
        ):
            return {node: split}
        return visit(tree.left[node]) | visit(tree.left[node] + 1)

    return visit(0)


# -- rows that lack values -------------------------------------------------------------------------


def find_next_nodes(tree, rows, node, x):
    """Return the children to which a row goes, with the fraction of it that does: [(child,
    fraction)].
    """
    left = tree.left[node]
    if tree.missing_both[node] and np.isnan(x[tree.feature[node]]):
        total = rows[left] + rows[left + 1]
        share = rows[left] / total if total > 0 else 0.5
        return [(left, share), (left + 1, 1 - share)]
    return [(left + (not goes_left(tree, node, x)), 1.0)]


def find_fractional_leaves(tree, rows, x):
    """Return the leaves that a row reaches, with the fraction of it that does: [(leaf,
    fraction)].
    """

    def visit(node, part):
        if tree.left[node] < 0:
            return [(node, part)]
        steps = find_next_nodes(tree, rows, node, x)
        return [leaf for child, share in steps for leaf in visit(child, part * share)]

    return visit(0, 1.0)


def compute_contributions(tree, every, masses, value, rows, x):
    """Return the contribution of each feature to the values of a row: mean changes at the splits of
    prunings.
    """
    added = np.zeros((value.shape[1], tree.n_features))

    def walk(stops, node, part):
        if node in stops:
            return
        for child, share in find_next_nodes(tree, rows, node, x):
            change = value[child] - value[node]
            added[:, tree.feature[node]] += part * share * change
            walk(stops, child, part * share)

    for pruning, mass in zip(every, masses, strict=True):
        walk({v for v, _ in pruning}, 0, float(mass))
    return added


def compute_outcome_below(tree, outcome, rows, node):
    """Return the mean outcome of the leaves below a node, each weighted by its rows."""
    leaves = [leaf for leaf in np.flatnonzero(tree.left == LEAF) if node in find_path(tree, leaf)]
    weight = [rows[leaf] for leaf in leaves]
    weight = weight if sum(weight) > 0 else [1.0] * len(leaves)
    return sum(w * outcome[leaf] for w, leaf in zip(weight, leaves, strict=True)) / sum(weight)


def find_nodes_with_missing(tree, X):
    """Return whether some row that reaches a node has NaN in the feature on which the node splits,
    (m,).
    """
    lacks = np.zeros(tree.n_nodes, dtype=bool)
    for x in X:
        node = 0
        while tree.left[node] >= 0:
            lacks[node] |= np.isnan(x[tree.feature[node]])
            node = tree.left[node] + (not goes_left(tree, node, x))
    return lacks


# -- games of features -----------------------------------------------------------------------------


def predict_by_path(tree, rows, value, x, known):
    """Return the value of a tree for a row with only some features known; at others it goes to both
    children.
    """

    def visit(node):
        left = tree.left[node]
        if left < 0:
            return value[node]
        if tree.feature[node] in known:
            steps = find_next_nodes(tree, rows, node, x)
        else:
            total = rows[left] + rows[left + 1]
            share = rows[left] / total if total > 0 else 0.5
            steps = [(left, share), (left + 1, 1 - share)]
        return sum(part * visit(child) for child, part in steps)

    return visit(0)


def predict_by_background(tree, rows, value, x, background, known):
    """Return the mean value of a tree for a row whose unknown features are those of background
    rows.
    """
    mixed = [[x[j] if j in known else z[j] for j in range(len(x))] for z in background]
    predicted = [
        sum(q * value[leaf] for leaf, q in find_fractional_leaves(tree, rows, z)) for z in mixed
    ]
    return sum(predicted) / len(predicted)


def compute_power_indices(predict, p):
    """Return Shapley and Banzhaf values of p players, by all coalitions; says(known) is what they
    win.
    """
    shapley, banzhaf = [0.0] * p, [0.0] * p
    for j in range(p):
        others = [i for i in range(p) if i != j]
        for chosen in product([False, True], repeat=p - 1):
            known = {i for i, is_known in zip(others, chosen, strict=True) if is_known}
            change = predict(known | {j}) - predict(known)
            n = len(known)
            share = math.factorial(n) * math.factorial(p - n - 1) / math.factorial(p)
            shapley[j] = shapley[j] + share * change
            banzhaf[j] = banzhaf[j] + change / 2 ** (p - 1)
    return np.array(shapley), np.array(banzhaf)


def analyse_variance(predict, cells):
    """Return the variance due to each set of features, by enumeration of all bins: {frozenset:
    variance}.

    cells: values and probabilities of the bins of each feature, [(value, mass), ...]; says(x):
    output at a row.
    """
    p = len(cells)
    every = [*product(*[range(len(own)) for own in cells])]
    predicted = {at: predict([cells[j][c][0] for j, c in enumerate(at)]) for at in every}

    def mean(features, at):
        """Return the mean output if the bins of some features are known."""
        total = 0.0
        for other in every:
            if all(other[j] == at[j] for j in features):
                free = [cells[j][other[j]][1] for j in range(p) if j not in features]
                total += math.prod(free) * predicted[other]
        return total

    found = {}
    for chosen in product([False, True], repeat=p):
        features = frozenset(j for j, is_chosen in enumerate(chosen) if is_chosen)
        if not features:
            continue
        total = 0.0
        for at in product(*[range(len(cells[j])) for j in sorted(features)]):
            place = dict(zip(sorted(features), at, strict=True))
            part = 0.0
            for inside in product([False, True], repeat=len(place)):
                known = {j for j, is_in in zip(place, inside, strict=True) if is_in}
                part += (-1) ** (len(place) - len(known)) * mean(known, place)
            total += math.prod(cells[j][c][1] for j, c in place.items()) * part**2
        found[features] = total
    return found


# -- AdaBoost --------------------------------------------------------------------------------------


def run_adaboost(predict, y, start, n_rounds):
    """Run AdaBoost of two classes -1, 1 over learners given by their predictions, best first.

    Each round takes the learner with the smallest weighted error. Return for each round (learner,
    alpha, eps, Z, weights of the rows after it, training error), in decimals.
    """
    with localcontext() as context:
        context.prec = DIGITS
        weights = [Decimal(w) / sum(map(Decimal, start)) for w in start]
        first, scores, rounds = weights, [Decimal(0)] * len(y), []
        for _ in range(n_rounds):
            errors = [
                sum(
                    (w for w, h, c in zip(weights, predicted, y, strict=True) if h != c), Decimal(0)
                )
                for predicted in predict
            ]
            best = min(range(len(predict)), key=errors.__getitem__)
            eps, predicted = errors[best], predict[best]
            if eps == 0 or eps >= Decimal("0.5"):
                break
            alpha = ((1 - eps) / eps).ln() / 2
            moved = [
                w * (-alpha * c * h).exp() for w, h, c in zip(weights, predicted, y, strict=True)
            ]
            z = sum(moved)
            weights = [w / z for w in moved]
            scores = [f + alpha * h for f, h in zip(scores, predicted, strict=True)]
            wrong = sum(w for w, f, c in zip(first, scores, y, strict=True) if (f > 0) != (c > 0))
            rounds.append((best, alpha, eps, z, weights, wrong))
        return rounds


def run_adaboost_of_classes(predict, y, start, n_classes):
    """Run AdaBoost of classes 0 .. K - 1 over learners, given by their predictions, in their order.

    Return for each round (alpha, eps, Z, weights of the rows after it, training error, smallest
    difference of the largest two votes of a row), in decimals.
    """
    with localcontext() as context:
        context.prec = DIGITS
        weights = [Decimal(w) / sum(map(Decimal, start)) for w in start]
        first, rounds = weights, []
        votes = [[Decimal(0)] * n_classes for _ in y]
        for predicted in predict:
            is_missed = [h != c for h, c in zip(predicted, y, strict=True)]
            eps = sum((w for w, m in zip(weights, is_missed, strict=True) if m), Decimal(0))
            if eps == 0 or eps >= 1 - 1 / Decimal(n_classes):
                break
            alpha = (((1 - eps) / eps).ln() + Decimal(n_classes - 1).ln()) / 2
            moved = [
                w * (alpha if m else -alpha).exp() for w, m in zip(weights, is_missed, strict=True)
            ]
            z = sum(moved)
            weights = [w / z for w in moved]
            for row, h in zip(votes, predicted, strict=True):
                row[h] += alpha
            gap = min(sorted(row)[-1] - sorted(row)[-2] for row in votes)
            wrong = sum(
                w for w, row, c in zip(first, votes, y, strict=True) if row.index(max(row)) != c
            )
            rounds.append((alpha, eps, z, weights, wrong, gap))
        return rounds


def compute_ensemble_risks(wrong, is_out_of_bag, weight):
    """Return the risk of one voter, of two at once and of either, pair by pair and row by row.

    wrong, is_out_of_bag: whether each voter errs on each row, and whether the row is out of its
    bag.
    """
    n_voters, n = len(wrong), len(wrong[0])
    one = both = either = 0.0
    for a in range(n_voters):
        own = [wrong[a][i] for i in range(n) if is_out_of_bag[a][i]]
        one += weight[a] * sum(own) / len(own)
        for b in range(n_voters):
            pairs = [
                (wrong[a][i], wrong[b][i])
                for i in range(n)
                if is_out_of_bag[a][i] and is_out_of_bag[b][i]
            ]
            share = weight[a] * weight[b] / len(pairs)
            both += share * sum(p * q for p, q in pairs)
            either += share * sum(1 - (1 - p) * (1 - q) for p, q in pairs)
    return one, both, either


# -- polynomials over bits -------------------------------------------------------------------------


def enumerate_bits(n):
    """Return all choices of n bits; bit j of a row's number is its bit j."""
    return [[(u >> j) & 1 for j in range(n)] for u in range(2**n)]


def compute_character(subset, bits, mean):
    """Return the product over a set of phi_j = (x_j - mean_j) / sqrt(1 - mean_j^2), with x_j =
    (-1)^b_j.
    """
    value = 1.0
    for j in subset:
        value *= ((-1) ** bits[j] - mean[j]) / math.sqrt(1 - mean[j] ** 2)
    return value


def compute_probability(bits, mean):
    return math.prod((1 + (-1) ** b * mu) / 2 for b, mu in zip(bits, mean, strict=True))


def compute_coefficients(values, mean):
    """Return the coefficient of every set, numbered by its bits, as an expectation over all choices
    of bits.
    """
    n = len(mean)
    found = []
    for subset in enumerate_bits(n):
        inside = [j for j in range(n) if subset[j]]
        terms = (
            compute_probability(bits, mean) * value * compute_character(inside, bits, mean)
            for bits, value in zip(enumerate_bits(n), values, strict=True)
        )
        found.append(math.fsum(terms))
    return found


def sum_paths(tree, values, X):
    """Return the sum of the values (m, K) of all nodes that contain each row."""
    parent = {}
    for v in range(len(tree.left)):
        if tree.left[v] != LEAF:
            parent[int(tree.left[v])] = parent[int(tree.left[v]) + 1] = v
    sums = []
    for leaf in apply(tree, X).tolist():
        path = [leaf]
        while path[-1] in parent:
            path.append(parent[path[-1]])
        sums.append(sum(values[v] for v in path))
    return np.array(sums)


def find_large_sets(values, n, theta):
    """Return the sets with |coefficient| >= theta, by Kushilevitz and Mansour's recursion with
    exact E f_alpha^2.

    f_alpha is the sum of all terms whose set agrees with alpha, a choice for the first variables.
    """
    every = compute_coefficients(values, [0.0] * n)

    def below(alpha):
        agree = [u for u in range(2**n) if all((u >> j) & 1 == a for j, a in enumerate(alpha))]
        if sum(every[u] ** 2 for u in agree) < theta**2:
            return []
        if len(alpha) == n:
            return [tuple(j for j in range(n) if alpha[j])]
        return below([*alpha, 0]) + below([*alpha, 1])

    return below([])


def compute_prefix_weight(values, n, alpha):
    """Return E f(y, z) f(y', z) chi_alpha(y) chi_alpha(y') by loops over all y, y' and z."""
    k, total = len(alpha), 0.0
    members = [j for j in range(k) if alpha[j]]
    for z in range(2 ** (n - k)):
        for y in range(2**k):
            for other in range(2**k):
                odd = sum(((y ^ other) >> j) & 1 for j in members) % 2
                total += (-1) ** odd * values[y + (z << k)] * values[other + (z << k)]
    return total / 2 ** (n + k)


def compute_mean_of_products(X, y, subset):
    """Return the mean of y times the product of -1 and 1 for the 1s and 0s of some features."""
    return math.fsum(
        value * math.prod(1 - 2 * int(row[j]) for j in subset)
        for row, value in zip(X, y, strict=True)
    ) / len(y)


def fit_power_law(curve):
    """Return level and exponent of the likeliest power law, by a search over exponents.

    curve: (fraction of the rows, error, number of validation rows) at each point.
    """
    share, error, is_out_of_bag = (
        np.array(column, dtype=float) for column in zip(*curve, strict=True)
    )
    error = (error * is_out_of_bag + 0.5) / (is_out_of_bag + 1)
    certainty = is_out_of_bag * error / (1 - error)

    def cost(exponent):
        residual = np.log(error) + exponent * np.log(share)
        level = np.average(residual, weights=certainty)
        return (certainty * (residual - level) ** 2).sum() + ((exponent - 0.15) / 0.15) ** 2, level

    exponent = scipy.optimize.minimize_scalar(
        lambda b: cost(b)[0], bounds=(-50, 50), method="bounded", options={"xatol": 1e-9}
    ).x
    exponent = min(max(exponent, 0.0), 0.7)
    return np.exp(cost(exponent)[1]), exponent


# -- coverage by order statistics ------------------------------------------------------------------


def compute_undercoverage_probability(n, place, coverage):
    """Return the probability that the place-th smallest of n draws covers less than `coverage` of
    new draws.

    At least `place` of the n are below the quantile then.
    """
    with localcontext() as context:
        context.prec = DIGITS
        q = Decimal(coverage)
        return sum(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(place, n + 1))


def find_covering_rank(n, coverage, delta):
    """Return the first rank that covers too little with probability delta at most; n + 1: there is
    none.
    """
    place = n + 1
    while place > 1 and compute_undercoverage_probability(n, place - 1, coverage) <= Decimal(delta):
        place -= 1
    return place


def compute_failure_probability(probability, n, place, coverage):
    """Return the probability of undercoverage for numbers 0, 1, ... of known probabilities, over
    all samples of n.
    """
    fails = 0.0
    for sample in product(range(len(probability)), repeat=n):
        reach = sorted(sample)[place - 1]
        if sum(probability[: reach + 1]) < coverage - 1e-12:
            fails += math.prod(probability[i] for i in sample)
    return fails


def compute_interval(tree, score, scale, region, reach, x):
    """Return lower and upper end of the prediction interval of one row, before outward rounding."""
    leaf = apply(tree, x[None])[0]
    half = reach[region[leaf]] * scale[leaf]
    return score[leaf] - half, score[leaf] + half


def compute_truncated_error(tree, value, X, y, limit):
    """Return the mean absolute error, where each error counts as `limit` at most."""
    off = [min(abs(t - value[leaf]), limit) for t, leaf in zip(y, apply(tree, X), strict=True)]
    return sum(off) / len(off)


def compute_prediction_sets(shares, truth, new, coverage, delta):
    """Return for each new row which classes are in its set; a truth of None is a class without
    probability.
    """
    scores = sorted(
        math.inf if c is None else 1 - row[c] for row, c in zip(shares, truth, strict=True)
    )
    reach = scores[find_covering_rank(len(scores), coverage, delta) - 1]
    return [[1 - share <= reach for share in row] for row in new]


def fill_empty_sets(sets, probabilities):
    """Return the sets, where an empty one has the first of the most probable classes."""
    return [
        list(held) if any(held) else [c == list(row).index(max(row)) for c in range(len(row))]
        for held, row in zip(sets, probabilities, strict=True)
    ]


def compute_ridge_terms(run):
    """Return the term of each feature in a ridge regression, (p, n); rows have weights."""
    codes, bins, n = run.bins.codes, run.bins, len(run.y)
    weight = [1.0] * n if run.weight is None else [float(w) for w in run.weight]
    owner, columns = [], []
    for j, column in enumerate(codes):
        found = sorted({int(code) for code in column})
        if bins.is_categorical[j]:
            given = [[float(code == level) for code in column] for level in found]
        else:
            low, high = bins.bin_ranges(j)
            middle = {k: (low[k] + high[k]) / 2 for k in found if k != 255}
            known = [i for i in range(n) if column[i] != 255]
            total = sum(weight[i] for i in known)
            mean = sum(weight[i] * middle[column[i]] for i in known) / total if known else 0.0
            given = [
                [mean if code == 255 else middle[code] for code in column],
                [float(code == 255) for code in column],
            ]
            given = given if len(middle) > 1 else given[1:]
        for values in given:
            if len(set(values)) > 1:
                owner.append(j)
                columns.append(_standardize(values, weight))
    terms = np.zeros((len(codes), n))
    if columns:
        design = np.array(columns).T
        slopes = _fit_best_ridge(design, run.y, np.array(weight))
        for j, column, slope in zip(owner, columns, slopes, strict=True):
            terms[j] += slope * np.array(column)
    return terms


def _standardize(values, weight):
    mean = sum(w * x for w, x in zip(weight, values, strict=True)) / sum(weight)
    square = sum(w * (x - mean) ** 2 for w, x in zip(weight, values, strict=True)) / sum(weight)
    return [(x - mean) / square**0.5 for x in values]


def _fit_best_ridge(design, y, weight):
    """Return the ridge coefficients of the penalty with the smallest generalised cross-validation
    error.
    """
    n, q = design.shape
    mean = np.ones((n, n)) * weight / weight.sum()
    found = []
    for step in range(28):
        penalty = 10 ** (-3 + step / 3)
        solve = np.linalg.solve(
            design.T @ (weight[:, None] * design) + penalty * np.eye(q), design.T * weight
        )
        hat = mean + design @ solve @ (np.eye(n) - mean)
        errors = weight @ (y - hat @ y) ** 2
        found.append((errors / (n - np.trace(hat)) ** 2, solve @ (y - mean @ y)))
    least = min(loss for loss, _ in found)
    return [slopes for loss, slopes in found if loss <= least * (1 + 1e-6)][-1]


def compute_category_means(place, n_levels, target, weight, keys):
    """Return the mean of each category minus the mean of all rows, from all rows and from other
    folds.

    In units of the largest target. A category number of n_levels stands for missing values. Also
    return, for each training row, the mean of its category in the rows of other folds.
    """
    n = len(keys)
    fold = [mix_bits(int(key) ^ 0x6C6576656C730000) % 5 for key in keys]
    unit = max(abs(Fraction(one)) for one in target) or 1
    weight, target = [Fraction(w) for w in weight], [Fraction(one) / unit for one in target]
    mean = sum(w * t for w, t in zip(weight, target, strict=True)) / sum(weight)

    def of(level, left_out):
        rows = [i for i in range(n) if place[i] == level and fold[i] != left_out]
        total = sum(weight[i] * (target[i] - mean) for i in rows)
        return float(total / (sum(weight[i] for i in rows) + 10))

    means = [of(level, None) for level in range(n_levels)]
    seen = [
        math.nan if level == n_levels else of(level, fold[i]) for i, level in enumerate(place[:n])
    ]
    return means, seen


def do_categories_differ(place, target, weight):
    """Return whether means of categories differ by two standard deviations more than those of
    random targets.
    """
    weight, target = [Fraction(w) for w in weight], [Fraction(one) for one in target]
    total = sum(weight)
    mean = sum(w * t for w, t in zip(weight, target, strict=True)) / total
    between = 0
    for level in set(place):
        rows = [i for i in range(len(place)) if place[i] == level]
        moved = sum(weight[i] * (target[i] - mean) for i in rows)
        between += moved**2 / sum(weight[i] for i in rows)
    spread = sum(w * (t - mean) ** 2 for w, t in zip(weight, target, strict=True))
    row, degrees = sum(w * w for w in weight) / total, len(set(place)) - 1
    by_chance = row * spread / (total - row)
    return between > (degrees + 2 * math.sqrt(2 * degrees)) * by_chance


def does_category_go_left(level, means, threshold):
    """Return whether a category goes left at a split by means; None: a category without rows, whose
    mean is that of all rows, 0.

    If the means of all rows are on one side, the category nearest to the other side goes there
    alone.
    """
    if level is None:
        return threshold >= 0
    ranked = sorted(range(len(means)), key=lambda one: (means[one], one))
    n_left = sum(mean <= threshold for mean in means)
    return ranked.index(level) < min(max(n_left, 1), len(means) - 1)


def list_leaves_in_order(tree, node=0):
    """Node numbers of the leaves below a node, from left to right."""
    if tree.left[node] < 0:
        return [node]
    left = int(tree.left[node])
    return list_leaves_in_order(tree, left) + list_leaves_in_order(tree, left + 1)


def compute_class_baseline(labels, weight):
    """Return the most frequent label by weight, the first by its text of several, and its error."""
    total = sum(map(Fraction, weight))
    best, error = None, None
    for label in sorted(set(labels), key=str):
        wrong = sum(Fraction(w) for one, w in zip(labels, weight, strict=True) if one != label)
        if error is None or wrong / total < error:
            best, error = label, wrong / total
    return best, float(error)


def compute_median_baseline(y, limit, weight):
    """Return the lowest mean absolute error, clipped at limit or not, of a constant among the targets.

    The constant minimises the mean error without clipping; of several the smallest is taken.
    """
    total = sum(map(Fraction, weight))

    def compute_mean(constant, most):
        errors = [min(abs(Fraction(one) - Fraction(constant)), most) for one in y]
        return sum(Fraction(w) * e for w, e in zip(weight, errors, strict=True)) / total

    spread = Fraction(max(y)) - Fraction(min(y))
    constant = min(sorted(y), key=lambda one: compute_mean(one, spread))
    return float(compute_mean(constant, Fraction(limit)))


# -- calendar parts of dates -----------------------------------------------------------------------


def read_calendar_part(moment, zone, part):
    """Return the month, day, weekday (1: Monday) or hour of a moment in a time zone.

    moment: datetime in UTC, without a zone; None: the result is NaN. zone: name of a time zone, an
    offset of the form "+05:30", or None: the part is that of the moment itself.
    """
    if moment is None:
        return math.nan
    if zone is not None:
        moment = moment.replace(tzinfo=datetime.UTC)
        if zone[0] in "+-":
            offset = datetime.datetime.strptime(zone, "%z").tzinfo
        else:
            offset = zoneinfo.ZoneInfo(zone)
        moment = moment.astimezone(offset)
    parts = {
        "month": moment.month,
        "day": moment.day,
        "weekday": moment.isoweekday(),
        "hour": moment.hour,
    }
    return float(parts[part])


def choose_calendar_parts(days, codes, y, weight, n_bins=(4, 16, 64, 256)):
    """Return the calendar parts that lower the loss of the simple model, in the order of choice.

    days: dates, in the order in which every fifth row is in the same fold. codes: values of each
    part that may be chosen, by its name. y: classes 0, 1, ... (integers, each an indicator) or
    numbers (floats, of which ranks are taken). weight: of each row.
    """
    n = len(days)
    weight = [one * n / sum(weight) for one in weight]
    if isinstance(y[0], float):
        targets = [[(sum(a < b for a in y) + sum(a <= b for a in y)) / (2 * n) for b in y]]
    else:
        targets = [[float(one == k) for one in y] for k in sorted(set(y))]
    ordered = sorted(days)

    def find_bin(day, number):
        edges = {_interpolate(ordered, k / number) for k in range(1, number)}
        return sum(edge < day for edge in edges)

    def subtract_means(rest, code, fitted):
        means = {}
        for value in set(code):
            rows = [i for i in fitted if code[i] == value]
            total = sum(weight[i] * rest[i] for i in rows)
            means[value] = total / (sum(weight[i] for i in rows) + 1)
        return [one - means[value] for one, value in zip(rest, code, strict=True)]

    bins = [[find_bin(day, number) for day in days] for number in n_bins]

    def measure(parts):
        losses = [[0.0] * n for _ in bins]
        for fold in range(5):
            fitted = [i for i in range(n) if i % 5 != fold]
            for target in targets:
                total = sum(weight[i] for i in fitted)
                mean_day = sum(weight[i] * days[i] for i in fitted) / total
                mean = sum(weight[i] * target[i] for i in fitted) / total
                spread = sum(weight[i] * (days[i] - mean_day) ** 2 for i in fitted)
                slope = (
                    sum(weight[i] * (days[i] - mean_day) * (target[i] - mean) for i in fitted)
                    / spread
                )
                rest = [
                    one - mean - slope * (day - mean_day)
                    for one, day in zip(target, days, strict=True)
                ]
                for loss, code in zip(losses, bins, strict=True):
                    rest = subtract_means(rest, code, fitted)
                    left = rest
                    for part in parts:
                        left = subtract_means(left, codes[part], fitted)
                    for i in range(fold, n, 5):
                        loss[i] += weight[i] * left[i] ** 2
        return min(losses, key=sum)

    variance = 0.0
    for target in targets:
        mean = sum(w * one for w, one in zip(weight, target, strict=True)) / n
        variance += sum(w * (one - mean) ** 2 for w, one in zip(weight, target, strict=True)) / n
    chosen, loss = [], measure([])
    while len(chosen) < len(codes):
        best, best_ratio = None, 2.0
        for part in codes:
            if part in chosen:
                continue
            other = measure([*chosen, part])
            gain = [one - new for one, new in zip(loss, other, strict=True)]
            mean, error = statistics.fmean(gain), statistics.pstdev(gain) / math.sqrt(n)
            if mean > best_ratio * error and mean >= 0.002 * variance:
                best, best_ratio, best_loss = part, mean / error, other
        if best is None:
            break
        chosen.append(best)
        loss = best_loss
    return chosen


def _interpolate(ordered, fraction):
    """Return a quantile of sorted numbers, linear between two of them."""
    place = fraction * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def draw_scored_rows(keys, classes, seed, n_scored):
    """Return the indices of the training rows that a scorer gets, by sorting all of them.

    Rows are sorted by class, then by their key mixed with the seed. A class with entries a, ..., b
    - 1 of n gets round(b n_scored / n) - round(a n_scored / n) rows, its first ones.
    """
    n, drawn, last = len(keys), [], 0
    if n <= n_scored:
        return list(range(n))
    for label in range(max(classes) + 1):
        rows = [i for i in range(n) if classes[i] == label]
        rows.sort(key=lambda i: mix_word(int(keys[i]) ^ seed))
        begin, end = (
            math.floor(Fraction(k * n_scored, n) + Fraction(n // 2, n))
            for k in (last, last + len(rows))
        )
        drawn += rows[: end - begin]
        last += len(rows)
    return sorted(drawn)


# -- monitors --------------------------------------------------------------------------------------


def watch_losses(losses, bound, alpha, block=1):
    """Return evidence after each time step, first alarm and likely change, all starts written out.

    The alarm and the change are numbers of rows, or None.
    """
    steps = [
        math.fsum(losses[i : i + block]) / block for i in range(0, len(losses) - block + 1, block)
    ]

    def later(time):
        return 1 / (1 + math.log(1 + time / 20) / 4)

    smallest, largest = 0.25 / max(bound, 1 - bound), 0.8 / bound
    stakes = [smallest * (largest / smallest) ** (k / 7) for k in range(8)]
    evidence, alarm, change = [1.0], None, None
    for time in range(1, len(steps) + 1):
        capital = {
            (stake, start): (later(start - 1) - later(start))
            * math.prod(1 + stake * (loss - bound) for loss in steps[start - 1 : time])
            for stake in stakes
            for start in range(1, time + 1)
        }
        evidence.append(math.fsum(capital.values()) / 8 + later(time))
        if alarm is None and evidence[-1] >= 1 / alpha:
            alarm = time * block
            change = (max(capital, key=capital.get)[1] - 1) * block + 1
    return evidence, alarm, change


# -- row order -------------------------------------------------------------------------------------


def sum_products_by_distance(rows):
    """Sum the products of all pairs of rows, each divided by the distance of their places."""
    return math.fsum(
        math.fsum(a * b for a, b in zip(rows[i], rows[j], strict=True)) / (j - i)
        for j in range(len(rows))
        for i in range(j)
    )


def scale_units(values, units):
    """Return the mean values of each unit, centred and divided by the root of their sum of squares."""
    members = [[i for i, unit in enumerate(units) if unit == u] for u in range(max(units) + 1)]
    means = [
        [math.fsum(column) / len(rows) for column in zip(*(values[i] for i in rows), strict=True)]
        for rows in members
    ]
    centre = [math.fsum(column) / len(means) for column in zip(*means, strict=True)]
    means = [[value - c for value, c in zip(row, centre, strict=True)] for row in means]
    size = math.sqrt(math.fsum(value**2 for row in means for value in row))
    return [[value / size if size > 1e-9 else 0.0 for value in row] for row in means]


def rank_units(keys, places, drawn):
    """Return the place of the unit of each row; `drawn` holds the index of one row of each unit."""
    in_order = [keys[i] for i in sorted(drawn, key=lambda i: places[i])]
    return [in_order.index(key) for key in keys]


# -- adaptive intervals ----------------------------------------------------------------------------


def adapt_width(batches, coverage, step):
    """Return the factor of widths after batches of distances from the centre, in half widths."""
    factor = 1.0
    for distances in batches:
        missed = sum(distance > factor for distance in distances) / len(distances)
        factor *= math.exp(step * min(len(distances), 10) * (missed - 1 + coverage))
    return factor
