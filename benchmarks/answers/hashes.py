"""Hashes of the arrays that stages and models consist of."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from certree import NodeStats, NodeWeights, Tree

Parts = dict[str, Any]
Case = Callable[[], Parts]


def case(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the arguments of `compute`, and returns a case that calls it."""
    return lambda *args, **options: partial(compute, *args, **options)


def digest(*values: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of arrays, numbers or texts."""
    sha = hashlib.sha256()
    for value in values:
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.nan, array + 0.0).astype(array.dtype)
        texts = array.dtype.kind in "OUST"
        kind = "text" if texts else array.dtype.str
        sha.update(f"{kind} {array.shape} ".encode())
        sha.update(repr(array.tolist()).encode() if texts else array.tobytes())
    return sha.hexdigest()[:16]


def tree_parts(tree: Tree) -> Parts:
    """Return the columns of a tree."""
    columns = ("feature", "threshold", "left", "chain", "missing_left")
    sets = (tree.category_start, tree.categories)
    sets += (tree.unseen_left,) if len(tree.categories) else ()
    optimal = str(tree.optimal_splits)
    return {"tree": (*(getattr(tree, name) for name in columns), *sets), "optimal splits": optimal}


def trees_parts(trees: Any) -> Parts:
    """Return the columns of several trees, with the values of their nodes."""
    columns = ("feature", "threshold", "left", "missing_left", "category_start", "categories")
    unseen_left = (trees.unseen_left,) if len(trees.categories) else ()
    return {
        "trees": (*(getattr(trees, name) for name in columns), trees.root, *unseen_left),
        "values": trees.value,
    }


def weights_parts(posterior: NodeWeights) -> Parts:
    """Return the columns of a posterior over prunings."""
    chains = (posterior.log_evidence, posterior.chain_entropy, posterior.chain_mode)
    return {
        "weight": posterior.weight,
        "log odds": posterior.log_odds,
        "evidence and chains": chains,
    }


def stats_columns(stats: Any) -> tuple[Any, ...]:
    """Return the columns of class counts, or of the moments of a number."""
    if isinstance(stats, NodeStats):
        return stats.counts, stats.label
    return stats.rows, stats.mean, stats.sse, stats.unit


def numbers(certificate: Any) -> tuple[Any, ...]:
    """Return the numbers of a certificate."""
    names = ("bound", "risk", "n", "complexity", "delta", "share")
    return tuple(getattr(certificate, name) for name in names)


def certificate_parts(certificate: Any) -> Parts:
    """Return the numbers of a certificate, and those computed from it."""
    shown = certificate.parts
    needed = [certificate.n_samples_needed(target) or -1 for target in (0.02, 0.1, 0.3, 0.5)]
    return {
        "certificate": (*numbers(certificate), *certificate.observed),
        "method": certificate.method,
        "parts of the bound": (shown.observed, shown.complexity, shown.confidence),
        "rows needed": needed,
    }


def selective_parts(found: Any) -> Parts:
    """Return margins, coverages and certificates of votes that abstain."""
    return {
        "margins": [(one.margin, one.coverage) for one in found],
        "selective": [numbers(one.certificate) for one in found],
    }
