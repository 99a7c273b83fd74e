"""How low the certificates of a fit are, what the rule gains over a hold-out, and what a split costs.

Six public tables, delta .05, means over ten draws of training rows of breast cancer and three of the
others; the other rows give the test error. Every fit is made with three shares of growing rows and both
kinds of votes. "vote" is the bound on the vote by its prior mass with delta in full, "rule" the
certificate of what is deployed, for which each candidate has half of delta. The goals are one half or
less of bounds on forests that were at hand when they were set, and stand for one split of each table.

The peer is scikit-learn's tree on the same growing rows, pruned by cost-complexity with 15 prices of
its own path, whose places from the root on are spaced geometrically, and three folds; strings are
categories, to scikit-learn numbers in the order of their names. Its hold-out is the exact binomial
bound by the same weighing rows: with half of delta against the rule at the same split, and with delta
in full, each at the split of its lowest mean. The time is that of a certified fit over that of one
without. All tables but the first need CERTREE_DATA; takes some minutes.
"""

import math
import os
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier

from benchmarks.defaults import Data, tables
from benchmarks.timing import Row, alternate, report
from certree import CertifiedTreeClassifier, PACBayesTreeClassifier
from certree.certificates.certificate import Certificate, inequality_of
from certree.certificates.hold_out import hold_out
from certree.rows.deal import deal

DELTA = 0.05
SPLITS = (0.2, 0.35, 0.5)
KINDS = ("majority", "mean")
PRICES, FOLDS = 15, 3
TIME_RATIO = 2.0


class Case(NamedTuple):
    """Training rows, repetitions, and goals of the majority vote at one split."""

    train: float
    repeats: int
    split: float
    vote: float | None = None
    rule: float | None = None
    error: float | None = None


CASES = {
    "breast_cancer": Case(400, 10, 0.35, vote=0.145, rule=0.130, error=0.095),
    "spam": Case(0.8, 3, 0.2, vote=0.135, error=0.11),
    "adult": Case(0.7, 3, 0.35, vote=0.2135),
    "bank_marketing": Case(0.7, 3, 0.35, vote=0.145),
    "credit_default": Case(0.7, 3, 0.35, vote=0.295),
    "letter": Case(0.7, 3, 0.5, vote=0.185),
}


class Fitted(NamedTuple):
    """Figures of one fit; `won` says whether the vote was deployed."""

    kind: str
    split: float
    vote: float
    rule: float
    own_hold_out: float
    vote_error: float
    error: float
    won: bool


class Peer(NamedTuple):
    """The peer on the same rows: its hold-out with delta in full and halved, and its test error."""

    split: float
    full: float
    half: float
    error: float


def model_of(data: Data, seed: int, **options: Any) -> CertifiedTreeClassifier:
    return CertifiedTreeClassifier(
        categorical_features=data.categorical, delta=DELTA, random_state=seed, **options
    )


def in_full(certificate: Certificate) -> float:
    """The bound of a certificate if it had delta to itself."""
    inequality = inequality_of(certificate.method)
    log_delta = math.log(certificate.delta)
    return inequality.bound(*certificate.observed, certificate.n, certificate.complexity, log_delta)


def fitted(data: Data, parts: list[np.ndarray], kind: str, split: float, seed: int) -> Fitted:
    """Fit by the rule, and once more with the vote deployed in any case."""
    X, X_test, y, y_test = parts
    by_rule = model_of(data, seed, vote=kind, grow_size=split).fit(X, y)
    by_vote = model_of(data, seed, vote=kind, grow_size=split, deploy="vote").fit(X, y)
    held_out, voted = by_rule.certificates_[:2]
    assert by_vote.certificate_ == voted
    assert by_rule.certificate_.bound <= held_out.bound
    return Fitted(
        kind,
        split,
        in_full(voted),
        by_rule.certificate_.bound,
        held_out.bound,
        1 - by_vote.score(X_test, y_test),
        1 - by_rule.score(X_test, y_test),
        by_rule.certificate_ is voted,
    )


def peer(parts: list[np.ndarray], split: float, seed: int) -> Peer:
    """Prune scikit-learn's tree on the rows that grow ours and hold out those that weigh."""
    X, X_test, y, y_test = parts
    grow, weigh = deal(len(X), split, np.random.RandomState(seed))
    path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X[grow], y[grow])
    # The few large prices at the end of a long path are those that matter on noisy tables.
    place = len(path.ccp_alphas) - np.geomspace(1, len(path.ccp_alphas), PRICES).round().astype(int)
    prices = {"ccp_alpha": np.unique(np.clip(path.ccp_alphas[place], 0, None))}
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), prices, cv=FOLDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds
        search.fit(X[grow], y[grow])
    errors = int(np.sum(search.predict(X[weigh]) != y[weigh]))
    bounds = [hold_out(errors, len(weigh), DELTA, share).bound for share in (1.0, 0.5)]
    return Peer(split, *bounds, 1 - search.score(X_test, y_test))


def measured(data: Data, case: Case) -> tuple[list[Fitted], list[Peer]]:
    """All fits of one table: ours by kind, split and seed, the peer's by split and seed."""
    ours, theirs = [], []
    for seed in range(case.repeats):
        parts = train_test_split(
            data.X, data.y, train_size=case.train, random_state=seed, stratify=data.y
        )
        for split in SPLITS:
            theirs.append(peer(parts, split, seed))
            ours += [fitted(data, parts, kind, split, seed) for kind in KINDS]
    return ours, theirs


def mean(rows: list[Any], figure: str) -> float:
    return float(np.mean([getattr(row, figure) for row in rows]))


def lines(name: str, data: Data, case: Case) -> Iterator[Row]:
    """What is reported of one table."""
    ours, theirs = measured(data, case)
    for kind in KINDS:
        for split in SPLITS:
            chosen = [row for row in ours if (row.kind, row.split) == (kind, split)]
            held_out = [row for row in theirs if row.split == split]
            label = f"{name}, {kind}, split {split:g}"
            at_goal = (kind, split) == (KINDS[0], case.split)
            goals = case if at_goal else Case(case.train, case.repeats, case.split)
            figures = [(figure, mean(chosen, figure)) for figure in ("vote", "rule")]
            for figure, value in figures:
                target = getattr(goals, figure)
                yield Row(label, None, "", None, target, value, f"{figure}'s bound")
            yield Row(label, None, "", None, goals.error, mean(chosen, "error"), "test error")
            yield Row(label, None, "", None, None, mean(chosen, "vote_error"), "vote's test error")
            yield Row(label, None, "", None, None, mean(chosen, "own_hold_out"), "own hold-out")
            yield Row(label, None, "", None, None, mean(chosen, "won"), "share won by the vote")
            below = [a.rule <= b.half for a, b in zip(chosen, held_out, strict=True)]
            yield Row(label, None, "hold-out", None, None, float(np.mean(below)), "share below it")
    by_split = {split: [row for row in theirs if row.split == split] for split in SPLITS}
    for split, rows in by_split.items():
        for figure, unit in (
            ("full", "hold-out"),
            ("half", "hold-out, delta/2"),
            ("error", "test error"),
        ):
            label = f"{name}, scikit-learn, split {split:g}"
            yield Row(label, None, "", None, None, mean(rows, figure), unit)
    of_rule = [[row for row in ours if (row.kind, row.split) == (KINDS[0], s)] for s in SPLITS]
    lowest = min(mean(rows, "rule") for rows in of_rule)
    excess = lowest - min(mean(rows, "full") for rows in by_split.values())
    yield Row(f"{name}, rule", None, "hold-out", None, None, excess, "above it, best splits")
    plain = PACBayesTreeClassifier(
        vote=KINDS[0], categorical_features=data.categorical, random_state=0
    )
    times = alternate(
        partial(model_of(data, 0, vote=KINDS[0], grow_size=case.split).fit, data.X, data.y),
        partial(plain.fit, data.X, data.y),
        5,
    )
    yield Row(f"{name}, fit", times[0], "no certificate", times[1], TIME_RATIO)


def main() -> None:
    """Measure all tables."""
    X, y = load_breast_cancer(return_X_y=True)
    found = {"breast_cancer": Data(X, y, np.zeros(X.shape[1], dtype=bool))}
    directory = os.environ.get("CERTREE_DATA")
    if directory:
        found.update(tables(Path(directory)))
    else:
        print("certificates: breast_cancer only, CERTREE_DATA names no directory of tables")
    cases = {name: case for name, case in CASES.items() if name in found}
    report("certificates", [row for name in cases for row in lines(name, found[name], cases[name])])


if __name__ == "__main__":
    main()
