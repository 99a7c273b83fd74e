"""One repetition of the paper's experiment: draw rows, grow, tune and judge every method.

Nguyen and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, Section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from certree.estimators.tune import Candidate, GrownFold, Objective, OneLaw, tune
from certree.files.tables import Table, load
from certree.grow.dyadic import Dyadic
from certree.grow.grower import Grower, grow_trees
from certree.grow.growing import TrainingSamples
from certree.grow.kd import KD
from certree.interface.arrays import Int32
from certree.interface.progress import show_progress
from certree.prunings.penalties import CostComplexity, DepthPenalised
from certree.rows.folds import Fold, content_folds
from certree.stats import count
from certree.stats.nodes import counted
from certree.tree import Tree
from certree.votes import Voting, vote
from certree.weights.helmbold_schapire_posteriors import helmbold_schapire_family, label_family
from certree.weights.pac_bayes_posteriors import pac_bayes_family

PAPER_SETS = ("spam", "eeg", "epileptic", "crowd", "wine", "digit", "letter")
TEST_ROWS = 2000
# UCI's training file; the rows after it have another class mix.
FIRST_ROWS = {"crowd": 10545}

# The dyadic tree to the letter: every cell in a node of its own, without rows too.
EXPANDED = "dyadic-expanded"
GROWERS: dict[str, Grower] = {
    "dyadic": Dyadic(),
    EXPANDED: Dyadic(expand=True),
    "kd": KD("cycle"),
    "kd-spread": KD(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Contestant:
    """A method of the experiment.

    Parameters
    ----------
    name : str
        What tables call it.
    candidate : Candidate
        The posteriors it chooses from.
    n_temperatures : int
        How many temperatures it chooses.
    search : {"joint", "error-first"}
        How.
    two_classes : bool
        Whether it takes two classes only.
    """

    name: str
    candidate: Candidate
    n_temperatures: int = 1
    search: OneLaw = "joint"
    two_classes: bool = False


PRUNING, HS_MEAN, HS_LABEL = "pruning", "HS-vote", "HS-vote label"
CONTESTANTS = (
    Contestant(PRUNING, Candidate(CostComplexity().family, Voting("majority"))),
    Contestant("SN-pruning", Candidate(DepthPenalised().family, Voting("majority"))),
    Contestant("PAC-Bayes joint", Candidate(pac_bayes_family, Voting("majority")), 2, "joint"),
    Contestant(
        "PAC-Bayes error-first", Candidate(pac_bayes_family, Voting("majority")), 2, "error-first"
    ),
    # The paper does not say what a node of theirs predicts: a share of the classes, or a label.
    Contestant(HS_MEAN, Candidate(helmbold_schapire_family, Voting("mean")), two_classes=True),
    Contestant(HS_LABEL, Candidate(label_family, Voting("majority")), two_classes=True),
)
UNPRUNED, GIBBS = "unpruned", "Gibbs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of one grower in one repetition.

    Parameters
    ----------
    dataset, grower : str
        Names.
    repeat : int
        Number of the repetition.
    n_train, n_test : int
        Rows.
    errors : dict
        Share of test rows that each method got wrong.
    temperatures : dict
        What each method chose.
    n_nodes : int
        Nodes of the tree.
    outside : float or None
        Share of test rows in no cell that holds training rows; None if not looked at.
    """

    dataset: str
    grower: str
    repeat: int
    n_train: int
    n_test: int
    errors: dict[str, float]
    temperatures: dict[str, tuple[float, ...]]
    n_nodes: int
    outside: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows of one repetition; classes are 0 .. n_classes - 1."""

    X: NDArray[np.float64]
    y: Int32
    X_test: NDArray[np.float64]
    y_test: Int32
    n_classes: int


def draw(dataset: str, table: Table, repeat: int, share: float = 1.0) -> Sample:
    """Draw the training and test rows of a repetition; `share` of the training rows are kept."""
    X, y = table.X, table.y
    if y is None:
        raise ValueError(f"data set {dataset!r} has no target")
    rows = min(FIRST_ROWS.get(dataset, len(X)), len(X))
    classes, codes = np.unique(y[:rows], return_inverse=True)
    order = np.random.default_rng([repeat, 2018]).permutation(rows)
    n_test = TEST_ROWS if rows >= 2 * TEST_ROWS else rows // 3
    test, train = order[:n_test], order[n_test:]
    train = train[: round(share * len(train))]
    label = codes.astype(np.int32)
    return Sample(X[train], label[train], X[test], label[test], len(classes))


def judge(
    dataset: str,
    sample: Sample,
    grower: str,
    repeat: int,
    contestants: Sequence[Contestant] = CONTESTANTS,
) -> Outcome:
    """Run all methods on one grower of one sample."""
    cells = GROWERS[grower]
    X, y, n_classes = sample.X, sample.y, sample.n_classes
    rng = np.random.RandomState(repeat)
    rows = TrainingSamples(X, y, max_depth="log")
    dealt = list(content_folds(X, y, 2, rng))
    *trees, tree = grow_trees(cells, rows, [*dealt, None])

    def fold_of(fold: Fold, tree: Tree) -> GrownFold:
        leaf = tree.route(X, 1)
        sides = (fold.grow, fold.judge)
        stats, judging = (counted(tree, leaf[one], y[one], None, n_classes) for one in sides)
        return GrownFold(tree, stats, judging.table)

    folds = [fold_of(*pair) for pair in zip(dealt, trees, strict=True)]
    stats = count(tree, X, y, n_classes)
    leaf = tree.apply(sample.X_test)
    errors = {UNPRUNED: float(np.mean(stats.label[leaf] != sample.y_test))}
    temperatures = {}
    for contestant in contestants:
        if contestant.two_classes and n_classes != 2:
            continue
        chosen = _tuned(contestant, folds)
        weights = contestant.candidate.family(tree, stats).at(*chosen)
        ballot = vote(tree, stats, weights, contestant.candidate.voting)
        errors[contestant.name] = float(np.mean(ballot.label[leaf] != sample.y_test))
        temperatures[contestant.name] = chosen
        if contestant.name == "PAC-Bayes joint":
            errors[GIBBS] = float(np.mean(1 - ballot.score[leaf, sample.y_test]))
    return Outcome(
        dataset=dataset,
        grower=grower,
        repeat=repeat,
        n_train=len(y),
        n_test=len(sample.y_test),
        errors=errors,
        temperatures=temperatures,
        n_nodes=tree.n_nodes,
        outside=float(np.mean(stats.n[leaf] == 0)) if grower == EXPANDED else None,
    )


def _tuned(contestant: Contestant, folds: Sequence[GrownFold]) -> tuple[float, ...]:
    objective = Objective.of(folds, contestant.candidate, "error")
    return tune(objective, [None] * contestant.n_temperatures, contestant.search)


def run(
    datasets: Sequence[str],
    growers: Sequence[str],
    repeats: int,
    directory: str | None = None,
    shares: Sequence[float] = (1.0,),
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Outcome]:
    """Run the experiment.

    Parameters
    ----------
    datasets : sequence of str
        Names that `certree.files.tables.load` knows.
    growers : sequence of str
        Some of `GROWERS`. "dyadic-expanded" may take as many nodes as rows times the depth: too
        many for very wide tables.
    repeats : int
        Number of repetitions.
    directory : str or None
        Where the data sets are.
    shares : sequence of float
        Shares of the training rows to train on.
    n_jobs : int or None
        Number of threads, one per repetition; the outcomes do not depend on it.
    verbose : bool
        Whether a progress bar is shown.

    Returns
    -------
    list of Outcome
        In the order of `datasets`, repetitions, shares and growers.

    Raises
    ------
    ValueError
        If a grower is unknown or there is nothing to run.
    FileNotFoundError
        If a data set is missing.
    """
    unknown = set(growers) - set(GROWERS)
    if unknown or not growers:
        raise ValueError(f"growers must be some of {', '.join(GROWERS)}, got {growers}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    tables = {name: load(name, directory) for name in datasets}
    tasks = [
        (name, repeat, share) for name in datasets for repeat in range(repeats) for share in shares
    ]

    def task(name: str, repeat: int, share: float) -> list[Outcome]:
        sample = draw(name, tables[name], repeat, share)
        return [judge(name, sample, grower, repeat) for grower in growers]

    with show_progress(verbose, len(tasks), "repetitions") as advance:
        workers = 1 if n_jobs is None else effective_n_jobs(n_jobs)
        results = Parallel(n_jobs=workers, prefer="threads", return_as="generator")(
            delayed(task)(*arguments) for arguments in tasks
        )
        outcomes: list[Outcome] = []
        for result in results:
            outcomes += result
            advance()
    return outcomes
