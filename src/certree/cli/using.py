"""Asking a model about rows: what it predicts, how well it does, what holds of its error."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree import show
from certree.certificates import Guarantees
from certree.certificates import certify as certify_rows
from certree.certificates.certified_numbers import CertifiedNumbers
from certree.certificates.hold_out import share_of_look
from certree.cli.app import (
    MODELS,
    Delta,
    command,
    draw_to,
    expect_to_draw,
    file_to_write,
    say,
)
from certree.cli.rows import (
    DuplicateRows,
    Groups,
    ModelFile,
    RowsFile,
    Target,
    ThresholdCost,
    costs_of,
    read_judged_rows,
    read_rows,
)
from certree.ensembles.boosting import BoostedTrees
from certree.estimators.tree_vote import TreeVoteEstimator, TreeVoteRegressor
from certree.files import models, tables
from certree.files.places import expect_writable
from certree.interface.whole import write_whole
from certree.interface.words import counted
from certree.show.page.judged import Judged
from certree.show.page.scores import scores_of

# What is certified by groups.
_BY_GROUP = ("groups", "gaps")
# Features that are named, and leaves that are shown.
_FEATURES, _LEAVES = 12, 8

Output = Annotated[
    Path | None,
    file_to_write(
        "--output",
        "-o",
        help="Table to write: .csv, .csv.gz, .tsv, .parquet; else CSV is printed.",
    ),
]

Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help="Predict the second class where its probability is at least this.",
        show_default="the likelier class",
    ),
]


@command(MODELS)
def predict(
    model_file: ModelFile, file: RowsFile, output: Output = None, threshold: Threshold = None
) -> None:
    """Predict every row of a table, with the probabilities of the classes.

    A number is predicted, by a single tree, with its variance between the prunings and within their
    leaves, and by a certified model with the band that holds nine tenths of new targets. Boosted trees
    that were fitted with standard_errors tell these of numbers and probabilities.
    """
    tables.expect_table_place(output)
    model, X = read_rows(model_file, file)
    beside: dict[str, Any] = {}
    predicted = model.predict(X) if threshold is None else None
    if is_classifier(model):
        shares = model.predict_proba(X)
        beside = {f"probability_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
    elif isinstance(model, TreeVoteRegressor):
        beside = dict(zip(("between", "within"), model.predict_std(X).T, strict=True))
    if isinstance(model, BoostedTrees) and hasattr(model, "predict_std"):
        names = [name.replace("probability", "std", 1) for name in beside] or ["std"]
        beside |= dict(zip(names, np.atleast_2d(model.predict_std(X).T), strict=True))
    if threshold is not None:
        predicted = _by_threshold(model, beside, threshold)
    if isinstance(model, CertifiedNumbers) and len(model.certificates_) > 1:
        beside |= dict(zip(("lower", "upper"), model.predict_interval(X).T, strict=True))
    tables.write(pa.table({"prediction": pa.array(predicted), **beside}), output)


def _by_threshold(model: Any, shares: dict[Any, Any], threshold: float) -> NDArray[Any]:
    """The second class where its probability is at least a threshold."""
    second = [*shares.values()][-1] if is_classifier(model) and len(model.classes_) == 2 else None
    if second is None:
        raise ValueError("--threshold is for two classes")
    if not 0 <= threshold <= 1:
        raise ValueError(f"--threshold must lie in [0, 1], got {threshold}")
    taken: NDArray[Any] = np.asarray(model.classes_)[(second >= threshold).astype(np.intp)]
    return taken


@command(MODELS)
def evaluate(
    model_file: ModelFile,
    file: RowsFile,
    target: Target,
    json_file: Annotated[
        Path | None, file_to_write("--json", help="Write the scores to this file.")
    ] = None,
    threshold: Threshold = None,
) -> None:
    """Score a model on the rows of a table, with 95 % intervals."""
    expect_writable(json_file)
    judged = Judged.of(*read_judged_rows(model_file, file, target))
    if threshold is not None:
        shares = {} if judged.shares is None else dict(enumerate(judged.shares.T))
        judged = replace(judged, predicted=_by_threshold(judged.model, shares, threshold))
    scores = scores_of(judged)
    say(f"{type(judged.model).__name__} on {counted(judged.n, 'row')}")
    for score in scores:
        say(str(score))
    if judged.n_repeated:
        say(f"{counted(judged.n_repeated, 'row')} also occur among those of the fit: too kind")
    if json_file is not None:
        content = {score.name: [score.value, score.low, score.high] for score in scores}
        text = json.dumps({"rows": judged.n, **content}, indent=1) + "\n"
        write_whole(json_file, lambda file: file.write(text.encode()))


@command(MODELS)
def certify(
    model_file: ModelFile,
    file: RowsFile,
    target: Target,
    delta: Delta = 0.05,
    look: Annotated[
        int | None,
        typer.Option(min=1, help="Which look at rows that come in this is; each is paid for."),
    ] = None,
    duplicates: Annotated[
        DuplicateRows,
        typer.Option(
            metavar="WORD",
            help=f"What rows are that are alike, or like those of the fit: {', '.join(DuplicateRows)}.",
        ),
    ] = DuplicateRows.auto,
    threshold_cost: ThresholdCost = None,
    groups: Groups = None,
    plot: Annotated[
        Path | None,
        file_to_write(help="Draw what holds at every threshold to this file (.png, .svg, .pdf)."),
    ] = None,
) -> None:
    """Certify the error of a model by rows that were never used."""
    expect_to_draw(plot)
    costs = costs_of(threshold_cost)
    if plot is not None and costs is None:
        raise ValueError("expected --threshold-cost: --plot draws what holds at every threshold")
    model, X, truth, kinds = read_judged_rows(model_file, file, target, groups)
    if not is_classifier(model):
        raise ValueError(f"{model_file} predicts numbers; only errors of classes are certified")
    word: Any = duplicates.value
    if costs is None and kinds is None:
        say(str(certify_rows(model, X, truth, delta, look=look, duplicates=word)))
        return
    guarantees = Guarantees.by_rows(model, X, truth, delta, duplicates=word)
    if costs is None:
        at = guarantees.certificate.delta * share_of_look(look)
        say(str(guarantees.conditional_guarantees(_BY_GROUP, groups=kinds, delta=at)))
        return
    found = guarantees.thresholds(costs=costs, groups=kinds, share=share_of_look(look))
    say(f"{found}\n{found.lowest_cost(*costs)}")
    for name, one in found.groups.items():
        say(f"{name}: {one.lowest_cost(*costs)}")
    if plot is not None:
        draw_to(plot, lambda: show.plot_thresholds(found, *costs))


@command(MODELS)
def info(model_file: ModelFile) -> None:
    """Say what a model file holds."""
    model = models.load(model_file)
    names = list(model._feature_names())
    more = f" and {len(names) - _FEATURES} more" if len(names) > _FEATURES else ""
    say(repr(model))
    say(f"features: {', '.join(names[:_FEATURES])}{more}")
    if is_classifier(model):
        say(f"classes: {', '.join(map(str, model.classes_))}")
    if hasattr(model, "certificate_"):
        say(str(model.certificate_))
    if isinstance(model, TreeVoteEstimator):
        say(model.export_text(max_leaves=_LEAVES))
