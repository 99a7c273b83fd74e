"""Asking a model about rows: what it predicts, how well it does, what holds of its error."""

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
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
from certree.cli.rows import DuplicateRows, ModelFile, RowsFile, Target, read_judged_rows, read_rows
from certree.estimators.tree_vote import TreeVoteEstimator, TreeVoteRegressor
from certree.files import models, tables
from certree.files.places import expect_writable
from certree.interface.whole import write_whole
from certree.interface.words import counted
from certree.show.page.judged import Judged
from certree.show.page.scores import scores_of

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


@command(MODELS)
def predict(model_file: ModelFile, file: RowsFile, output: Output = None) -> None:
    """Predict every row of a table, with the probabilities of the classes.

    A number is predicted, by a single tree, with its variance between the prunings and within their
    leaves, and by a certified model with the band that holds nine tenths of new targets.
    """
    tables.expect_table_place(output)
    model, X = read_rows(model_file, file)
    beside: dict[str, Any] = {}
    if is_classifier(model):
        shares = model.predict_proba(X)
        beside = {f"probability_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
    elif isinstance(model, TreeVoteRegressor):
        beside = dict(zip(("between", "within"), model.predict_std(X).T, strict=True))
    if isinstance(model, CertifiedNumbers) and len(model.certificates_) > 1:
        beside |= dict(zip(("lower", "upper"), model.predict_interval(X).T, strict=True))
    tables.write(pa.table({"prediction": pa.array(model.predict(X)), **beside}), output)


@command(MODELS)
def evaluate(
    model_file: ModelFile,
    file: RowsFile,
    target: Target,
    json_file: Annotated[
        Path | None, file_to_write("--json", help="Write the scores to this file.")
    ] = None,
) -> None:
    """Score a model on the rows of a table, with 95 % intervals."""
    expect_writable(json_file)
    judged = Judged.of(*read_judged_rows(model_file, file, target))
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
    threshold_cost: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            help="Costs of a missed row of the second class and of a false alarm, fixed before the "
            "rows are seen: certify every threshold of its probability, and choose one.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        file_to_write(help="Draw what holds at every threshold to this file (.png, .svg, .pdf)."),
    ] = None,
) -> None:
    """Certify the error of a model by rows that were never used."""
    expect_to_draw(plot)
    costs = _costs(threshold_cost)
    if plot is not None and costs is None:
        raise ValueError("expected --threshold-cost: --plot draws what holds at every threshold")
    model, X, truth = read_judged_rows(model_file, file, target)
    if not is_classifier(model):
        raise ValueError(f"{model_file} predicts numbers; only errors of classes are certified")
    word: Any = duplicates.value
    if costs is None:
        say(str(certify_rows(model, X, truth, delta, look=look, duplicates=word)))
        return
    guarantees = Guarantees.by_rows(model, X, truth, delta, duplicates=word)
    found = guarantees.thresholds(costs=costs, share=share_of_look(look))
    say(f"{found}\n{found.lowest_cost(*costs)}")
    if plot is not None:
        draw_to(plot, lambda: show.plot_thresholds(found, *costs))


def _costs(text: str | None) -> tuple[float, float] | None:
    """Two costs with a colon between them."""
    if text is None:
        return None
    try:
        of_miss, of_alarm = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"expected --threshold-cost such as 5:1, got {text}") from None
    return of_miss, of_alarm


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
