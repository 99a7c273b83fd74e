"""Asking a model about rows: what it predicts, how well it does, what holds of its error."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree import show
from certree.certificates import Guarantees
from certree.certificates import certify as certify_rows
from certree.certificates.batches import certify_batches
from certree.certificates.hold_out import share_of_look
from certree.cli.app import (
    MODELS,
    Delta,
    Quiet,
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
    RowsPlace,
    Target,
    ThresholdCost,
    column_beside,
    costs_of,
    read_judged_rows,
)
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.files import models, tables
from certree.files.places import expect_writable
from certree.files.predictions import (
    BATCH,
    by_threshold,
    predict_files,
    rows_of_files,
    shown_batches,
)
from certree.files.rows_of_models import expect_known, rows_for
from certree.interface.atomic_write import write_atomically
from certree.interface.formatting import format_quantity
from certree.show.page.judged import Judged
from certree.show.page.scores import Told

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
    model_file: ModelFile,
    file: RowsPlace,
    output: Output = None,
    threshold: Threshold = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Write this column, too, such as a key; again for more."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Predict every row of a table, with the probabilities of the classes.

    Rows are read and written batch by batch, those of a folder in the order of its files' names.

    A number is predicted, by a single tree, with its variance between the prunings and within their
    leaves, and by a certified model with the band that holds nine tenths of new targets. Boosted trees
    that were fitted with standard_errors tell these of numbers and probabilities.
    """
    tables.expect_table_place(output)
    place = tables.STANDARD_STREAM if output is None else output
    model = models.load(model_file)
    predict_files(model, file, place, keep=keep or [], threshold=threshold, verbose=int(not quiet))


@command(MODELS)
def evaluate(
    model_file: ModelFile,
    file: RowsPlace,
    target: Target,
    json_file: Annotated[
        Path | None, file_to_write("--json", help="Write the scores to this file.")
    ] = None,
    threshold: Threshold = None,
    quiet: Quiet = False,
) -> None:
    """Score a model on the rows of a table, or of a folder of them, with 95 % intervals."""
    expect_writable(json_file)
    model = models.load(model_file)
    told = _told(model, file, target, threshold, quiet)
    scores, n = told.scores(), len(told.losses)
    say(f"{type(model).__name__} on {format_quantity(n, 'row')}")
    for score in scores:
        say(str(score))
    if told.n_repeated:
        say(
            f"{format_quantity(told.n_repeated, 'row')} also occur among those of the fit: too kind"
        )
    if json_file is not None:
        content = {score.name: [score.value, score.low, score.high] for score in scores}
        text = json.dumps({"rows": n, **content}, indent=1) + "\n"
        write_atomically(json_file, lambda file: file.write(text.encode()))


def _told(model: Any, file: Path, target: str, threshold: float | None, quiet: bool) -> Told:
    """How far off a model is on the rows of files, batch by batch."""
    told: list[Told] = []
    labels: NDArray[Any] | None = None
    name = f"the target {target!r}"
    for rows, truth in _rows_and_truth(model, file, target, "judging", quiet):
        found = np.unique(truth)
        labels = found if labels is None else np.unique(np.concatenate([labels, found]))
        # Others may be known in later batches.
        known = model.classes_[:1] if is_classifier(model) else labels[:0]
        expect_known(model, np.concatenate([labels, known]), name)
        judged = Judged.of(model, rows, truth)
        if threshold is not None:
            shares = {} if judged.shares is None else dict(enumerate(judged.shares.T))
            judged = replace(judged, predicted=by_threshold(model, shares, threshold))
        told.append(Told.of(judged))
    assert labels is not None  # Judged has refused no rows
    expect_known(model, labels, name)
    return Told.joined(told)


def _rows_and_truth(
    model: Any,
    file: Path,
    target: str,
    what: str,
    quiet: bool,
    groups: str | None = None,
    kinds: list[NDArray[Any]] | None = None,
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """What a model reads of the rows of files and their targets, batch by batch, if only of no rows.

    groups, kinds: a column beside these, and where its values are put.
    """
    has_any, beside = False, [] if groups is None else [groups]
    read = rows_of_files(model, file, target, beside=beside, n_rows=BATCH)
    with closing(shown_batches(what, read, not quiet)) as batches:
        for batch in batches:
            truth = tables.target_of(batch.table, target)
            if not len(truth) and (has_any or not batch.is_last):
                continue
            has_any, rows = True, batch.table
            if getattr(model, "feature_names_in_", None) is None:
                rows = rows.drop_columns([target, *beside])
            if groups is not None and kinds is not None:
                kinds.append(column_beside(batch.table, groups, target))
            yield rows_for(model, rows, batch.where), truth


def _guarantees_of_folder(
    model: Any, folder: Path, target: str, groups: str | None, delta: float, duplicates: Any
) -> tuple[Guarantees, NDArray[Any] | None]:
    """What the rows of a folder guarantee, which are never held together; and their groups."""
    kinds: list[NDArray[Any]] = []
    batches = _rows_and_truth(model, folder, target, "certifying", True, groups, kinds)
    found = Guarantees.by_batches(model, batches, delta, duplicates=duplicates)
    return found, None if groups is None else np.concatenate(kinds)


def _expect_classes(model: Any, model_file: Path) -> None:
    if not is_classifier(model):
        raise ValueError(f"{model_file} predicts numbers; only errors of classes are certified")


@command(MODELS)
def certify(
    model_file: ModelFile,
    file: RowsPlace,
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
    word: Any = duplicates.value
    asks_error = costs is None and groups is None
    if file.is_dir():
        model = models.load(model_file)
        _expect_classes(model, model_file)
        if asks_error:
            batches = _rows_and_truth(model, file, target, "certifying", quiet=True)
            say(str(certify_batches(model, batches, delta, look=look, duplicates=word)))
            return
        guarantees, kinds = _guarantees_of_folder(model, file, target, groups, delta, word)
    else:
        model, X, truth, kinds = read_judged_rows(model_file, file, target, groups)
        _expect_classes(model, model_file)
        if asks_error:
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
