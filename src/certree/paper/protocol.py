"""The paper's experiment: draw rows, grow trees, tune all methods and measure their test errors.

Nguyen and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, Section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from certree.estimators.tune import Candidate, GrownFold, Objective, SingleSearch, tune
from certree.files.tables import load
from certree.grow.dyadic import Dyadic
from certree.grow.grower import Grower, GrownTree, grow_trees
from certree.grow.kd import KD
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Int32
from certree.interface.progress import show_progress
from certree.prunings.penalties import CostComplexity, DepthPenalised
from certree.rows.folds import Fold, content_folds
from certree.stats import count
from certree.stats.nodes import count_by_leaf
from certree.tables.table import Table
from certree.votes import Voting, vote
from certree.weights.helmbold_schapire_posteriors import helmbold_schapire_family, label_family
from certree.weights.pac_bayes_posteriors import pac_bayes_family

PAPER_SETS = ("spam", "eeg", "epileptic", "crowd", "wine", "digit", "letter")
TEST_ROWS = 2000
# UCI's training file; the rows after it have another class mix.
FIRST_ROWS = {"crowd": 10545}

# The dyadic tree of the paper, with a node for every region, also those without rows.
EXPANDED = "dyadic-expanded"
GROWERS: dict[str, Grower] = {
    "dyadic": Dyadic(),
    EXPANDED: Dyadic(expand=True),
    "kd": KD("cycle"),
    "kd-spread": KD(),
}


@dataclass(frozen=True, slots=True, eq=False)
class ExperimentMethod:
    """A method of the experiment: a family of posteriors over prunings, and how they are tuned.

    A pruning is a tree with some nodes turned into leaves; a posterior is a weight for each
    pruning.

    Parameters
    ----------
    name : str
        Name of the method in tables of results.
    candidate : Candidate
        Two things: `family`, a callable that takes a tree and the class counts of its nodes and
        returns the posteriors, one for each value of the inverse temperatures; and `voting`, how
        prunings vote: by majority label or by smoothed means.
    n_temperatures : int
        Number of inverse temperatures to tune.
    search : {"joint", "error-first"}
        "joint" tunes all inverse temperatures together. "error-first" tunes the first, the factor
        of the errors, with the others at 1, and then each other one with those before it fixed.
    two_classes : bool
        Whether the method is for two classes only.
    """

    name: str
    candidate: Candidate
    n_temperatures: int = 1
    search: SingleSearch = "joint"
    two_classes: bool = False


PRUNING, HS_MEAN, HS_LABEL = "pruning", "HS-vote", "HS-vote label"
EXPERIMENT_METHODS = (
    ExperimentMethod(PRUNING, Candidate(CostComplexity().family, Voting("majority"))),
    ExperimentMethod("SN-pruning", Candidate(DepthPenalised().family, Voting("majority"))),
    ExperimentMethod(
        "PAC-Bayes joint", Candidate(pac_bayes_family, Voting("majority")), 2, "joint"
    ),
    ExperimentMethod(
        "PAC-Bayes error-first", Candidate(pac_bayes_family, Voting("majority")), 2, "error-first"
    ),
    # The paper does not state whether nodes of HS-vote predict class frequencies or labels.
    ExperimentMethod(
        HS_MEAN, Candidate(helmbold_schapire_family, Voting("mean")), two_classes=True
    ),
    ExperimentMethod(HS_LABEL, Candidate(label_family, Voting("majority")), two_classes=True),
)
UNPRUNED, GIBBS = "unpruned", "Gibbs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Test errors of all methods of the experiment on one tree: one data set, grower and repetition.

    A method prunes the tree, or lets its prunings (subtrees with the same root) vote by posterior
    weights.

    Parameters
    ----------
    dataset, grower : str
        Name of the data set, and name of the grower (the algorithm that grew the tree).
    repeat : int
        Number of the repetition, from 0; each has other training and test rows.
    n_train, n_test : int
        Numbers of training and test rows.
    errors : dict of float
        Fraction of the test rows that each method misclassified, by its name; also for the
        "unpruned" tree and for "Gibbs", a pruning drawn from the posterior "PAC-Bayes joint".
    temperatures : dict of tuple of float
        Inverse temperatures (factors of errors and penalties in the posterior) that
        cross-validation chose for each method, by its name.
    n_nodes : int
        Number of nodes of the tree.
    outside : float or None
        Fraction of the test rows in leaves without training rows; None for other growers than
        "dyadic-expanded".
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
    """The training and test rows of one repetition of the experiment, with their classes.

    Parameters
    ----------
    X : ndarray of float64, shape (n_train, p)
        Training rows.
    y : ndarray of int32, shape (n_train,)
        Classes of the training rows, 0 .. n_classes - 1.
    X_test : ndarray of float64, shape (n_test, p)
        Test rows.
    y_test : ndarray of int32, shape (n_test,)
        Classes of the test rows.
    n_classes : int
        Number of classes of the data set.
    """

    X: NDArray[np.float64]
    y: Int32
    X_test: NDArray[np.float64]
    y_test: Int32
    n_classes: int


def draw(dataset: str, table: Table, repeat: int, fraction: float = 1.0) -> Sample:
    """Draw the training and test rows of a repetition from a data set, without replacement.

    There are 2000 test rows, or a third of the rows if these are fewer than 4000. Only the first
    10545 rows of "crowd" are used.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    table : Table
        Rows of the data set, and their target.
    repeat : int
        Number of the repetition, which determines the draw.
    fraction : float
        Fraction of the training rows to keep.

    Returns
    -------
    Sample
        Disjoint training and test rows, with class codes in sorted order of the classes.

    Raises
    ------
    ValueError
        If the table has no target.
    """
    X, y = table.X, table.y
    if y is None:
        raise ValueError(
            f"table must have a target, but that of data set {dataset!r} has none: load it with "
            "its target column"
        )
    rows = min(FIRST_ROWS.get(dataset, len(X)), len(X))
    classes, codes = np.unique(y[:rows], return_inverse=True)
    order = np.random.default_rng([repeat, 2018]).permutation(rows)
    n_test = TEST_ROWS if rows >= 2 * TEST_ROWS else rows // 3
    test, train = order[:n_test], order[n_test:]
    train = train[: round(fraction * len(train))]
    label = codes.astype(np.int32)
    return Sample(X[train], label[train], X[test], label[test], len(classes))


def evaluate_methods(
    dataset: str,
    sample: Sample,
    grower: str,
    repeat: int,
    methods: Sequence[ExperimentMethod] = EXPERIMENT_METHODS,
) -> Outcome:
    """Tune all methods on the training rows with one grower, and measure their errors on the test rows.

    A grower is an algorithm that grows a tree. A method prunes the tree, or lets its prunings
    (subtrees with the same root) vote. The inverse temperatures of a method (factors of errors and
    penalties) are tuned by two-fold cross-validation. The final tree is grown on all training rows.

    Parameters
    ----------
    dataset : str
        Name of the data set, for the outcome.
    sample : Sample
        Training and test rows.
    grower : str
        Name of the grower. "dyadic": halves features in turn, and keeps regions with training rows
        only; "dyadic-expanded": also those without. "kd": splits features in turn near their
        medians; "kd-spread": splits the feature with the largest range, in units of its standard
        deviation.
    repeat : int
        Number of the repetition, which determines the folds.
    methods : sequence of ExperimentMethod
        The methods; those for two classes are left out if there are more.

    Returns
    -------
    Outcome
        Errors of the methods, of the unpruned tree and of the Gibbs classifier (a pruning drawn by
        the weights that the method "PAC-Bayes joint" gives them).
    """
    X, y, n_classes = sample.X, sample.y, sample.n_classes
    rng = np.random.RandomState(repeat)
    rows = TrainingSamples(X, y, max_depth="log")
    folds = list(content_folds(X, y, 2, rng))
    *grown, (tree, _) = grow_trees(GROWERS[grower], rows, [*folds, None])

    def summarise_fold(fold: Fold, grown: GrownTree) -> GrownFold:
        tree, leaf = grown.tree, grown.find_leaves()
        stats, validation = (
            count_by_leaf(tree, leaf[rows], y[rows], None, n_classes)
            for rows in (fold.train, fold.validation)
        )
        return GrownFold(tree, stats, validation.table)

    grown_folds = [summarise_fold(*pair) for pair in zip(folds, grown, strict=True)]
    stats = count(tree, X, y, n_classes)
    leaf = tree.apply(sample.X_test)
    errors = {UNPRUNED: float(np.mean(stats.label[leaf] != sample.y_test))}
    temperatures = {}
    for method in methods:
        if method.two_classes and n_classes != 2:
            continue
        tuned = _tune(method, grown_folds)
        weights = method.candidate.family(tree, stats).solve(*tuned)
        ballot = vote(tree, stats, weights, method.candidate.voting)
        errors[method.name] = float(np.mean(ballot.label[leaf] != sample.y_test))
        temperatures[method.name] = tuned
        if method.name == "PAC-Bayes joint":
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


def _tune(method: ExperimentMethod, folds: Sequence[GrownFold]) -> tuple[float, ...]:
    """Choose the inverse temperatures of a method that give the fewest cross-validation errors.

    Inverse temperatures are factors of errors and penalties in the posterior weight of a pruning, a
    tree with some nodes turned into leaves. method: the method; folds: for each fold the tree grown
    on its training rows, with the class counts of its training rows and of its validation rows in
    each node. The errors are those of the vote of the tree's prunings on the validation rows, over
    all folds. Return `method.n_temperatures` numbers, each from a log grid of ten values from 2^-8
    to 2^6 and then ten values around the best.
    """
    objective = Objective.for_candidate(folds, method.candidate, "error")
    return tune(objective, [None] * method.n_temperatures, method.search)


def run(
    datasets: Sequence[str],
    growers: Sequence[str],
    repeats: int,
    directory: str | None = None,
    fractions: Sequence[float] = (1.0,),
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Outcome]:
    """Run the paper's experiment: tune all methods on repeated draws, and measure their test errors.

    Parameters
    ----------
    datasets : sequence of str
        Names of data sets: those of the paper are "spam", "eeg", "epileptic", "crowd", "wine",
        "digit" and "letter". `certree.files.tables.load` finds or downloads them.
    growers : sequence of str
        Names of algorithms that grow trees, from "dyadic", "dyadic-expanded" (also regions without
        rows), "kd" (splits features in turn near their medians) and "kd-spread" (splits the feature
        with the largest range, in units of its standard deviation). "dyadic-expanded" may grow as
        many nodes as rows times the depth, which are too many for very wide tables.
    repeats : int
        Number of repetitions.
    directory : str or None
        Directory of Parquet files with the data sets; None: the value of the environment variable
        CERTREE_DATA.
    fractions : sequence of float
        Fractions of the training rows to train on, each in a separate run.
    n_jobs : int or None
        Number of threads, one per repetition; the outcomes do not depend on it.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    list of Outcome
        In the order of `datasets`, repetitions, `fractions` and `growers`.

    Raises
    ------
    ValueError
        If a grower is unknown, none is passed, or `repeats` is less than 1.
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
        (name, repeat, fraction)
        for name in datasets
        for repeat in range(repeats)
        for fraction in fractions
    ]

    def task(name: str, repeat: int, fraction: float) -> list[Outcome]:
        """Draw the rows of one repetition of a data set; return the test errors for each grower.

        name: name of the data set; repeat: number of the repetition, from 0; fraction: fraction of
        the training rows to use. The growers, names of algorithms that grow trees, are those of the
        enclosing call.
        """
        sample = draw(name, tables[name], repeat, fraction)
        return [evaluate_methods(name, sample, grower, repeat) for grower in growers]

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
