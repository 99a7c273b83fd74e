"""Commands that explain, draw or export a model: explain, rules, report, plot and export."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import joblib
import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree import show
from certree.cli.app import command, output_file_option, print_note, print_text
from certree.cli.contribution_table import tabulate_contributions, write_contributions
from certree.cli.figure_output import expect_figure_path, save_figure
from certree.cli.group_draw import (
    GroupColumns,
    Independent,
    OnePerGroup,
    choose_groups,
    draw_rows,
)
from certree.cli.json_output import AsJson, describe_rules, print_json
from certree.cli.read_options import takes_source
from certree.cli.table_input import (
    Groups,
    Keep,
    ModelFile,
    Positive,
    PositiveOfExplanations,
    PositiveOfRules,
    TableFile,
    Target,
    Threshold,
    ThresholdCost,
    expect_option_of_positive,
    find_default_positive,
    load_estimator,
    load_model,
    parse_costs,
    parse_positive,
    parse_rows,
    read_features,
    read_labelled_rows,
)
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain import Explanation, interaction_fractions, shapley_values
from certree.export.sql import COMMENT
from certree.files import tables
from certree.files.output_paths import expect_writable
from certree.files.pipelines import name_model_features, transform_rows
from certree.files.predictions import predict_columns
from certree.interface.atomic_write import write_atomically
from certree.interface.formatting import format_file_size, format_quantity
from certree.interface.positive_class import expect_threshold
from certree.rows.columns import take_rows
from certree.show.page.model_card import expect_card_path
from certree.show.page.report_page import expect_page_path
from certree.tables.table_source import TableSource

# Rows of the table that Shapley values take as background.
_N_BACKGROUND_ROWS = 100
# Most rules that are printed of a tree whose rules have no numbers.
_N_RULES = 16

OptionalRows = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="Table of rows: for calibration, certificate, loss and ranking."
    ),
]
OptionalTarget = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the target: for calibration, certificate, loss and ranking.",
    ),
]


@command
@takes_source(TableFile)
def explain(
    model_file: ModelFile,
    source: TableSource,
    row: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Number of the row to explain, from 0.", show_default="0"
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            help="Rows to explain instead of one: numbers and ranges such as 0-9 or 3,7,20-29, or "
            "all.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Rows to explain instead of one: those with a value in a column, such as "
            "loan=L100003; if repeated, those with all these values.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_file_option(
            "--output",
            "-o",
            help="Table to write with predictions and contributions: .csv, .csv.gz, .tsv or .parquet. "
            "It has the rows of --rows, else all rows.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, output_file_option(help="Draw a figure to this file (.png, .svg, .pdf).")
    ] = None,
    shapley: Annotated[
        bool,
        typer.Option(
            "--shapley", help="Use Shapley values, with 100 random rows of the table as background."
        ),
    ] = False,
    interactions: Annotated[
        bool,
        typer.Option(
            "--interactions",
            help="Print which fraction of the variance is due to features and pairs.",
        ),
    ] = False,
    keep: Keep = None,
    positive: PositiveOfExplanations = None,
    as_json: AsJson = False,
) -> None:
    """Print how much each feature adds to the prediction of a row.

    With two classes all rows explain the probability or score of the positive class. Below a score is
    the probability that belongs to it. --rows and --key explain several rows; with
    --output they are written to a table, which has the number of the row, the columns of --keep, the
    prediction, probabilities, the unit of the contributions, and base and contributions. Without
    --rows, --output writes all rows. With --json the rows of this table are printed. --plot draws the
    single row. With --interactions, print (and draw) which fraction of the variance of the
    predictions for all rows is due to each feature and each pair of features instead.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    source : TableSource
        The table; "-" is CSV from standard input.
    row : int or None
        Index of the row to explain, from 0; None: the first, unless `rows` is set.
    rows : str or None
        Rows to explain, as `parse_rows` reads them; None: only `row`.
    key : list of str or None
        "COLUMN=VALUE": rows with all these values are explained; None: `rows` or `row`.
    output : Path or None
        Table of the contributions to write, for `rows` or else for all rows; None: none.
    plot : Path or None
        Figure to write; None: none is drawn.
    shapley : bool
        Whether contributions are Shapley values instead of differences along paths.
    interactions : bool
        Whether to print fractions of variance instead of contributions.
    keep : list of str or None
        Columns of the input to copy to the output.
    positive : str or None
        The positive one of two classes, whose probability or score is explained; None: the second.
        It does not change the fractions of variance, which are equal for both.
    as_json : bool
        Whether to print a JSON document.
    """
    tables.expect_table_place(output)
    expect_figure_path(plot)
    others = {"--row": row is not None, "--plot": plot, "--interactions": interactions}
    _expect_unused_by_rows(others, rows, key, as_json=as_json)
    conditions = [_parse_key(text) for text in key or ()]
    option = "--row" if rows is None else "--rows"
    ranges = [range(row or 0, (row or 0) + 1)] if rows is None else parse_rows(rows)
    model = load_model(model_file)
    copied = {"--keep": keep or [], "--key": [column for column, _ in conditions]}
    read, keys = read_features(model, source, copied)
    model, X = transform_rows(model, read)
    _expect_explained(model)
    if interactions:
        _print_interactions(model, X, plot)
        return
    is_single = rows is None and not conditions
    shown = (
        _find_rows(keys, conditions) if conditions else _choose_rows(ranges, option, len(X), source)
    )
    written = np.arange(len(X)) if is_single and output is not None else shown
    explain_rows = _choose_method(model, X, shapley, positive)
    explanation = explain_rows(take_rows(X, shown))
    if output is not None or as_json:
        table = tabulate_contributions(
            explanation if written is shown else explain_rows(X),
            *(written, keys, predict_columns(model, take_rows(X, written))),
        )
        if output is not None:
            write_contributions(table, [*keys], output)
        if as_json:
            place = {"explanations": table.to_pylist()} if output is None else {"output": output}
            print_json({"model": type(model).__name__, "rows": len(table), **place})
            return
    if not is_single and output is not None:
        print_text(f"{format_quantity(len(written), 'row')} written to {output}")
        return
    is_scored = is_classifier(model) and explanation.scale == "raw score"
    predictions = predict_columns(model, take_rows(X, shown)) if is_scored else {}
    _print_explanations(explanation, shown, keys, predictions, has_headings=not is_single)
    if plot is not None:
        save_figure(plot, lambda: show.plot_explanation(explanation))


def _expect_explained(model: Any) -> None:
    """Raise a ValueError if a model has no method `explain`."""
    if not hasattr(model, "explain"):
        raise ValueError(
            "MODEL must be a tree, forest, boosted trees, AdaBoost or naive Bayes to be explained, "
            f"got {type(model).__name__}: pass a model of another kind"
        )


def _expect_unused(option: str, others: dict[str, Any]) -> None:
    """Raise a ValueError if two options that exclude each other are both used.

    option: name of an option that is used. others: options that it excludes, each with its value,
    which is false if the option is not used.
    """
    for other, value in others.items():
        if value:
            raise ValueError(f"{option} and {other} exclude each other: give one")


def _expect_unused_by_rows(
    others: dict[str, Any], rows: str | None, key: list[str] | None, *, as_json: bool
) -> None:
    """Raise a ValueError if --rows, --key or --json is used with an option that it excludes.

    Options of a single row, or of all rows, exclude options of several rows. others: --row, --plot
    and --interactions with their values, which are false if the option is not used. rows, key,
    as_json: values of --rows, --key and --json.
    """
    _expect_unused("--rows", others if rows is not None else {})
    _expect_unused("--key", {**others, "--rows": rows} if key else {})
    _expect_unused("--json", {**others, "--row": False} if as_json else {})


def _choose_rows(
    ranges: list[range] | None, option: str, n: int, source: TableSource
) -> NDArray[np.intp]:
    """Return the indices of the rows to explain, (r,).

    ranges: ranges of rows from --row or --rows, in their order; None: all rows. option: name of the
    option that they are from, for messages. n: number of rows of the table. source: the table, for
    messages. Raise a ValueError if the table has no rows, or a row does not exist.
    """
    if not n:
        raise ValueError(
            f"FILE must have at least one row to explain, but {source} has none: pass another table"
        )
    if ranges is None:
        return np.arange(n)
    for one in ranges:
        if one[-1] >= n:
            raise ValueError(f"{option} must be below {n}, the number of rows, got {one[-1]}")
    return np.concatenate([np.arange(one.start, one.stop) for one in ranges])


def _parse_key(text: str) -> tuple[str, str]:
    """Split the value of --key, "COLUMN=VALUE", into column and value.

    text: the value; it is split at the first "=". Raise a ValueError if it has none.
    """
    column, mark, value = text.partition("=")
    if not mark:
        raise ValueError(f"--key must be COLUMN=VALUE, such as loan=L100003, got {text!r}")
    return column, value


def _find_rows(columns: dict[str, Any], conditions: list[tuple[str, str]]) -> NDArray[np.intp]:
    """Return the indices of the rows that have the wanted values in all named columns, ascending.

    columns: columns of the table, pyarrow.ChunkedArray, by name; their values are compared as
    texts. conditions: pairs of a column and the wanted value, as text. Raise a ValueError if there
    is no such row.
    """
    names = list(dict.fromkeys(column for column, _ in conditions))
    texts = {name: [str(value) for value in columns[name].to_pylist()] for name in names}
    meets = [np.array([text == value for text in texts[name]]) for name, value in conditions]
    found = np.flatnonzero(np.all(meets, axis=0))
    if not len(found):
        examples = ", ".join(
            f"{name}={texts[name][i]}"
            for i in range(min(3, len(texts[names[0]])))
            for name in names
        )
        wanted = " and ".join(f"{name}={value}" for name, value in conditions)
        raise ValueError(
            f"--key must name values of a row, but no row has {wanted}: values are such as {examples}"
        )
    return found


def _choose_method(
    model: Any, X: Any, shapley: bool, positive: str | None
) -> Callable[[Any], Explanation]:
    """Return the function that explains rows: path contributions or Shapley values of one class.

    The function takes rows, (r, p), and returns their contributions as an `Explanation`. model: the
    fitted model. X: rows of the table, some of which are the background of Shapley values. shapley:
    whether to use Shapley values. positive: text of the class that is explained; None: the second
    of two classes.
    """
    text = find_default_positive(model) if positive is None else positive
    pos_label = parse_positive(model, text)
    if shapley:
        return partial(shapley_values, model, background=_sample_background(X), pos_label=pos_label)
    return partial(model.explain, pos_label=pos_label)


def _print_explanations(
    explanation: Explanation,
    rows: NDArray[np.intp],
    keys: dict[str, Any],
    predictions: dict[str, Any],
    *,
    has_headings: bool,
) -> None:
    """Print the explanations of rows, each below the number of the row and its values in key columns.

    explanation: contributions for the r rows. rows: indices of these rows in the table, (r,). keys:
    columns of --keep with all rows of the table, by name. predictions: output columns for the r
    rows by name, of which "probability_CLASS" is printed for each explained class; may be empty.
    has_headings: whether to print the number of the row also if there are no keys.
    """
    texts = []
    shown = {one: predictions.get(f"probability_{one}") for one in explanation.output_names}
    for i, row in enumerate(rows.tolist()):
        named = "".join(f", {name} = {column[row].as_py()}" for name, column in keys.items())
        heading = f"row {row}{named}\n" if keys or has_headings else ""
        lines = [
            f"probability of {one}: {values[i]:.3f}"
            for one, values in shown.items()
            if values is not None
        ]
        texts.append("\n".join([f"{heading}{explanation[i]}", *lines]))
    print_text("\n\n".join(texts))


def _print_interactions(model: Any, X: NDArray[Any], plot: Path | None) -> None:
    """Print the fractions of the variance of predictions that features and pairs of features explain.

    The variance is that of the predictions for the rows of X. model: fitted trees. X: rows, (n, p).
    plot: file to which a figure is drawn, or None.
    """
    fractions = interaction_fractions(model, X)
    print_text(str(fractions))
    if plot is not None:
        save_figure(plot, lambda: show.plot_interactions(fractions))


def _sample_background(X: Any) -> Any:
    """Return the background rows of Shapley values: X, (n, p), or 100 random rows of it if n > 100.

    Features that are not in a coalition take their values from these rows. The sample is the same
    in each call.
    """
    if len(X) <= _N_BACKGROUND_ROWS:
        return X
    return take_rows(X, np.random.default_rng(0).choice(len(X), _N_BACKGROUND_ROWS, replace=False))


@command
def rules(
    model_file: ModelFile,
    max_leaves: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Most rules to print: those of the leaves that matter most.",
            show_default="all rules of a small tree, else 16",
        ),
    ] = None,
    positive: PositiveOfRules = None,
    as_json: AsJson = False,
) -> None:
    """Print the rules of a single tree: conditions, prediction, rows and error bounds.

    The rules of a tree that predicts alone and has at most 64 leaves are numbered from left to
    right: R1, R2, ... A certified tree has an upper bound on the error of each rule. With
    --positive, each rule has the probability of this class instead of that of the predicted
    class.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model: a single tree, or a pipeline that ends in one.
    max_leaves : int or None
        Largest number of rules; None: all if rules have numbers, else 16.
    positive : str or None
        The positive one of two classes, whose probability the rules have; None: the predicted one.
    as_json : bool
        Whether to print a JSON document.
    """
    model = name_model_features(load_model(model_file))
    if not isinstance(model, TreeVoteEstimator) or not hasattr(model, "rules"):
        raise ValueError(
            f"MODEL must be a single tree to have rules, got {type(model).__name__}: fit a tree with "
            "--model pruned, tree or certified"
        )
    n_leaves = model.get_n_leaves()
    if max_leaves is None:
        # One rule is enough to see whether rules have numbers.
        max_leaves = n_leaves if model.rules(1)[0].number else _N_RULES
    found = model.rules(max_leaves, pos_label=parse_positive(model, positive))
    if as_json:
        print_json({"model": type(model).__name__, "leaves": n_leaves, **describe_rules(found)})
        return
    print_text(str(found))
    if len(found) < n_leaves:
        print_note(f"the tree has {n_leaves:,} leaves: --max-leaves {n_leaves} prints all rules")


@command
@takes_source(TableFile)
def report(
    model_file: ModelFile,
    source: TableSource,
    target: Target,
    output: Annotated[
        Path, output_file_option("--output", "-o", help="HTML page to write.")
    ] = Path("report.html"),
    groups: Groups = None,
    threshold: Threshold = None,
    threshold_cost: ThresholdCost = None,
    positive: Positive = None,
    one_per_group: OnePerGroup = None,
    independent: Independent = False,
    card: Annotated[
        bool,
        typer.Option(
            "--card",
            help="Write a short model card instead, as HTML or, if --output ends in .md, as Markdown.",
        ),
    ] = False,
) -> None:
    """Write an HTML page about a model and its scores on the rows of a table.

    With --groups the page compares groups; with --threshold-cost it has the certified threshold of
    lowest cost. With --threshold, error, recall, precision and confusion matrix are those of the
    classes that the threshold predicts. Intervals and guarantees hold for independent rows: use
    --one-per-group if several rows belong to one customer, patient or shop. For a model that was
    fitted with --groups, this is done by the same column.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    source : TableSource
        The table; "-" is CSV from standard input.
    target : str
        Column of the target.
    output : Path
        HTML page to write, or with `card` also a file of Markdown.
    groups : str or None
        Column of each row's group; None if there are no groups.
    threshold : float or None
        Probability from which the positive class is predicted; None: the more probable class.
    threshold_cost : str or None
        "A:B", the cost of a missed row of the positive class and of a false alarm; None: no costs.
    positive : str or None
        The positive one of two classes; None: the second.
    one_per_group : str or None
        Column of groups, of each of which one row is used; None: rows are independent, or the model's
        column of groups is used.
    independent : bool
        Whether rows are independent, although the model was fitted with groups.
    card : bool
        Whether to write a model card instead.
    """
    others = {"--threshold": threshold, "--threshold-cost": threshold_cost}
    _expect_unused("--card", others if card else {})
    (expect_card_path if card else expect_page_path)(output)
    expect_threshold(threshold)
    costs = parse_costs(threshold_cost)
    model = load_model(model_file)
    chosen = choose_groups(
        *(model, source, target, GroupColumns(one_per_group=one_per_group)),
        is_independent=independent,
        needs_draw=True,
    )
    draw = draw_rows(model, source, target, chosen.one_per_group)
    rows, y, group_labels, _ = read_labelled_rows(model, source, target, groups, draw)
    pos_label = parse_positive(model, positive)
    if card:
        notes = None if draw is None else {"Choice of rows": f"{draw}."}
        show.model_card(
            model, rows, y, output, groups=group_labels, notes=notes, pos_label=pos_label
        )
        print_text(f"written to {output}")
        return
    model, X = transform_rows(model, rows)
    show.report(
        *(model, X, y, output),
        title=None if draw is None else f"{type(model).__name__} on {draw.phrase}",
        groups=group_labels,
        costs=costs,
        threshold=threshold,
        pos_label=pos_label,
    )
    print_text(f"written to {output}")


class PictureName(StrEnum):
    """Values of the argument WHAT of the command plot: names of figures.

    Attributes
    ----------
    tree : structure of a single tree
    importance : importance of each feature
    calibration : frequency against probability; needs rows
    certificate : test error and its bound against the number of rows; needs rows
    ranking : ROC curve, precision and recall of two classes; needs rows
    selective : certified error against coverage with abstention
    loss : loss after each boosting round; needs rows
    """

    tree = "tree"
    importance = "importance"
    calibration = "calibration"
    certificate = "certificate"
    ranking = "ranking"
    selective = "selective"
    loss = "loss"


# Figures of a model alone, and figures of a model, rows and their targets.
_MODEL_PLOTS: dict[PictureName, Callable[[Any], Any]] = {
    PictureName.tree: show.plot_tree,
    PictureName.importance: show.plot_importance,
    PictureName.selective: show.plot_selective,
}
_ROW_PLOTS: dict[PictureName, Callable[..., Any]] = {
    PictureName.calibration: show.plot_calibration,
    PictureName.certificate: show.plot_certificate,
    PictureName.loss: show.plot_loss,
    PictureName.ranking: show.plot_ranking,
}


@command
@takes_source(OptionalRows)
def plot(
    picture: Annotated[PictureName, typer.Argument(metavar="WHAT", help=", ".join(PictureName))],
    model_file: ModelFile,
    source: TableSource | None = None,
    target: OptionalTarget = None,
    output: Annotated[
        Path | None,
        output_file_option(
            "--output", "-o", help="Figure to write (.png, .svg, .pdf).", show_default="WHAT.png"
        ),
    ] = None,
    positive: Positive = None,
) -> None:
    """Draw a figure of a model: tree, importance, calibration, ranking, loss, and others.

    The figures calibration, certificate, loss and ranking need FILE and --target: rows and their
    targets.\f

    Parameters
    ----------
    picture : PictureName
        Which figure to draw.
    model_file : Path
        File of the fitted model.
    source : TableSource or None
        Table of rows, if the figure needs rows.
    target : str or None
        Column of the target in that table.
    output : Path or None
        Figure to write; None: WHAT.png.
    positive : str or None
        The positive one of two classes, for calibration and ranking; None: the second.
    """
    path = Path(f"{picture}.png") if output is None else output
    expect_figure_path(path)
    if positive is not None and picture not in (PictureName.calibration, PictureName.ranking):
        raise ValueError(
            f"--positive is for plot calibration and plot ranking, not for plot {picture}: leave "
            "it out"
        )
    if picture in _MODEL_PLOTS:
        model = name_model_features(load_model(model_file))
        save_figure(path, lambda: _MODEL_PLOTS[picture](model))
    elif source is None or target is None:
        raise ValueError(
            f"FILE and --target must be given for plot {picture}, which needs rows and their "
            "targets"
        )
    else:
        model = load_model(model_file)
        rows, y, *_ = read_labelled_rows(model, source, target)
        model, X = transform_rows(model, rows)
        pos_label = parse_positive(model, positive)
        chosen = {} if pos_label is None else {"pos_label": pos_label}
        save_figure(path, lambda: _ROW_PLOTS[picture](model, X, y, **chosen))
    print_text(f"written to {path}")


class GraphInputs(StrEnum):
    """Values of the option --inputs: the inputs of an ONNX graph.

    Attributes
    ----------
    matrix : one tensor of all features, with codes of categories
    named : one tensor for each feature, with texts and dates
    """

    matrix = "matrix"
    named = "named"


@dataclass(frozen=True, slots=True)
class _ExportOptions:
    """The options of the command export; each format uses some of them.

    Attributes
    ----------
    name : str
        Stem of the output file, which becomes the name of C functions or of a Java class.
    table : str
        Table that an SQL statement reads.
    keep : list of str
        Columns of that table that the statement selects besides the predictions.
    inputs : GraphInputs or None
        Inputs of an ONNX graph; None: "named" for a model of dates, else "matrix".
    threshold : float or None
        Probability from which an SQL statement predicts the positive class; None: it predicts the
        more probable class.
    pos_label : object or None
        The positive one of two classes, for an SQL statement with a threshold and the metadata of
        an ONNX graph; None: the second.
    """

    name: str
    table: str
    keep: list[str]
    inputs: GraphInputs | None
    threshold: float | None
    pos_label: Any


def _to_onnx(model: Any, options: _ExportOptions) -> bytes:
    """Return a fitted model as bytes of an ONNX file.

    model: fitted trees; options: of these, the inputs of the graph and the positive class are used.
    """
    inputs = options.inputs or (GraphInputs.named if model.dates_ else GraphInputs.matrix)
    named = inputs is GraphInputs.named
    dtype: Any = "auto" if named else "float32"
    graph = model.to_onnx(dtype, inputs=inputs.value, pos_label=options.pos_label)
    return bytes(graph.SerializeToString())


def _to_json(model: Any, _: _ExportOptions) -> bytes:
    """Return the JSON text of `model.to_dict()`, as bytes; the options are not used.

    model: fitted trees, which `to_dict` describes by features, thresholds and values of leaves.
    """
    return json.dumps(model.to_dict(), allow_nan=False).encode()


def _to_sql(model: Any, options: _ExportOptions) -> bytes:
    """Return an SQL statement, as bytes, that predicts the rows of a table by a model.

    model: fitted trees; options: the table, whose columns are the features, columns to keep, and
    the threshold of the positive class.
    """
    rule = {"threshold": options.threshold, "pos_label": options.pos_label}
    return model.to_sql(options.table, keep=options.keep, **rule).encode() + b"\n"


def _to_joblib(model: Any, _: _ExportOptions) -> bytes:
    """Return a scikit-learn estimator with the predictions of a model, as bytes written by joblib.

    model: fitted trees of certree; the options are not used.
    """
    file = io.BytesIO()
    joblib.dump(model.to_sklearn(), file)
    return file.getvalue()


def _make_code_writer(language: Any) -> Callable[[Any, _ExportOptions], bytes]:
    """Return a function of a model and `_ExportOptions` that returns source code as bytes.

    The name in the options becomes the prefix of functions, or the name of the class. language:
    "c", "java" or "javascript".
    """

    def write(model: Any, options: _ExportOptions) -> bytes:
        """Return the source code of a model as bytes; options: `name` is used, not for JavaScript."""
        names = {} if language == "javascript" else {"name": options.name}
        return bytes(model.to_code(language, **names).encode())

    return write


# By suffix: a function of model and options that returns the file's content.
_FORMATS: dict[str, Callable[[Any, _ExportOptions], bytes]] = {
    ".onnx": _to_onnx,
    ".sql": _to_sql,
    ".json": _to_json,
    ".c": _make_code_writer("c"),
    ".java": _make_code_writer("java"),
    ".js": _make_code_writer("javascript"),
    ".mjs": _make_code_writer("javascript"),
    ".joblib": _to_joblib,
}


@command
def export(
    model_file: ModelFile,
    output: Annotated[
        Path,
        output_file_option(
            *("--output", "-o"),
            metavar="FILE",
            help=f"File to write: {', '.join(_FORMATS)}. The last holds a scikit-learn estimator.",
        ),
    ],
    table: Annotated[
        str, typer.Option(metavar="NAME", help="Table that the SQL statement reads.")
    ] = "rows",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the table, such as a key, that the SQL statement selects as well; "
            "repeat for more.",
        ),
    ] = None,
    inputs: Annotated[
        GraphInputs | None,
        typer.Option(
            metavar="WORD",
            help="Inputs of the ONNX graph: matrix (one tensor, with codes of categories) or named "
            "(one for each feature, with texts and dates).",
            show_default="named for a model of dates, else matrix",
        ),
    ] = None,
    threshold: Threshold = None,
    positive: Positive = None,
) -> None:
    """Export a model to a file of ONNX, SQL, JSON, C, Java, JavaScript or scikit-learn.

    The suffix of the file decides. Models that consist of trees can be exported. The name of a C
    file becomes the prefix of its functions. That of a Java file becomes the name of the class, so
    it begins with a capital letter. With --threshold, an SQL statement predicts as certree predict
    does.\f

    Parameters
    ----------
    model_file : Path
        File of the fitted model.
    output : Path
        File to write; its suffix is a key of `_FORMATS`.
    table : str
        Name of the table that an SQL statement reads.
    keep : list of str or None
        Columns of the table that the statement selects besides the predictions; None: none.
    inputs : GraphInputs or None
        Inputs of an ONNX graph; None: "named" for a model of dates, else "matrix".
    threshold : float or None
        Probability from which an SQL statement predicts the positive class; None: the more
        probable class.
    positive : str or None
        The positive one of two classes, for an SQL statement with `threshold` or the metadata of an
        ONNX graph; None: the second.
    """
    expect_writable(output)
    suffix = output.suffix.lower()
    to_content = _FORMATS.get(suffix)
    if to_content is None:
        raise ValueError(f"--output must end in one of {', '.join(_FORMATS)}, got {output}")
    for option, value, suffixes in (
        ("--keep", keep, [".sql"]),
        ("--threshold", threshold, [".sql"]),
        ("--inputs", inputs, [".onnx"]),
        ("--positive", positive, [".sql", ".onnx"]),
    ):
        if value is not None and suffix not in suffixes:
            raise ValueError(
                f"{option} needs an --output that ends in {' or '.join(suffixes)}, got {output}: "
                f"leave {option} out, or write such a file"
            )
    if keep is not None and not all(keep):
        raise ValueError("--keep must name a column of the table, got an empty text: leave it out")
    if suffix == ".sql":
        expect_option_of_positive("--threshold", threshold, positive)
    expect_threshold(threshold)
    model = load_estimator(model_file, "exported")
    if not hasattr(model, "to_dict"):
        raise ValueError(
            f"MODEL must consist of trees to be exported, got {type(model).__name__}: fit a tree, "
            "a forest or boosted trees"
        )
    pos_label = parse_positive(model, positive)
    options = _ExportOptions(output.stem, table, keep or [], inputs, threshold, pos_label)
    content = to_content(model, options)
    write_atomically(output, lambda stream: stream.write(content))
    if suffix == ".sql":
        for line in takewhile(lambda one: one.startswith(COMMENT), content.decode().split("\n")):
            print_note(line.removeprefix(COMMENT))
    print_text(f"written to {output} ({format_file_size(len(content))})")
