"""The demo command: certree and scikit-learn compared on a table, a certificate, and a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from certree.certificates import Certificate
from certree.cli.app import Quiet, command, output_file_option, print_text
from certree.cli.method_comparison import TEST_SIZE, MethodScores, compare_methods
from certree.estimators import CertifiedTreeClassifier, PACBayesTreeClassifier
from certree.interface.progress import show_progress
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.markup import Html, table, tag
from certree.show.page.report_page import build_sections, expect_page_path, write_page
from certree.show.page.section import Section

HEADINGS = ("method, default settings", "error", "log loss", "calibration error", "fit time")


@command
def demo(
    output: Annotated[
        Path,
        output_file_option("--output", "-o", metavar="FILE", help="HTML page to write."),
    ] = Path("demo.html"),
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of random train/test splits.")
    ] = 10,
    quiet: Quiet = False,
) -> None:
    """Compare certree with scikit-learn on a built-in data set and write an HTML page.

    Print the scores of all methods, a certificate, and the explanation of one prediction. The page
    has these and a tree to explore.\f

    Parameters
    ----------
    output : Path
        HTML page to write.
    repeats : int
        Number of random train/test splits.
    quiet : bool
        Whether to show no progress bar.
    """
    expect_page_path(output)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    with show_progress(not quiet, repeats, "demo") as advance:
        scores = compare_methods(X.to_numpy(), y.to_numpy(), repeats, advance)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=TEST_SIZE, random_state=0, stratify=y
    )
    certified = CertifiedTreeClassifier(random_state=0).fit(X_train, y_train)
    model = PACBayesTreeClassifier(random_state=0).fit(X_train, y_train)
    _print_scores(scores, repeats)
    print_text(f"\n{certified.certificate_}")
    print_text(f"\nExplanation of the prediction for one row:\n{model.explain(X_test[:1])}")
    sections = [
        _build_comparison_section(scores, repeats, len(X)),
        _build_certificate_section(certified.certificate_),
        *build_sections(EvaluatedModel.from_rows(model, X_test, y_test)),
    ]
    write_page("certree demo", sections, output)
    print_text(f"\nwritten to {output}, with the tree to explore in a browser")


def _format_row(scores: MethodScores) -> tuple[str, ...]:
    """Return the cells of a table row from the scores of a method, as texts.

    The cells are: name, error ("4.2 %"), log loss (nats), calibration error (in %) and time of a
    fit ("0.31 s"). The calibration error is the mean distance between the probability of the
    predicted class and the frequency of this class.
    """
    return (
        scores.name,
        f"{100 * scores.error:.1f} %",
        f"{scores.log_loss:.3f}",
        f"{100 * scores.calibration:.1f} %",
        f"{scores.seconds:.2f} s",
    )


def _print_scores(all_scores: Sequence[MethodScores], repeats: int) -> None:
    """Print the scores of all methods as a table on standard output, a row for each method.

    The columns are method, error (in %), log loss (nats), calibration error (in %) and seconds of a
    fit. all_scores: scores of each method; repeats: number of random train/test splits, for the
    title.
    """
    title = f"Wisconsin breast cancer, {repeats} splits"
    grid = Table(title=title, box=SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        is_first = heading == HEADINGS[0]
        # Headings of numbers have two lines if the terminal is narrow.
        grid.add_column(heading, justify="left" if is_first else "right", no_wrap=is_first)
    for scores in all_scores:
        grid.add_row(*_format_row(scores))
    Console().print(grid)


def _build_comparison_section(
    all_scores: Sequence[MethodScores], repeats: int, n_rows: int
) -> Section:
    """Return the section of the page that compares the methods; the lowest scores are bold.

    The result has an id, a heading and HTML: a text and a table with a row for each method.
    all_scores: scores of each method; repeats: number of random train/test splits; n_rows: number
    of rows of the data set.
    """
    text = (
        f"Wisconsin breast cancer data, {n_rows} rows: means over {repeats} random splits. Each model "
        "is fitted to 70 % of the rows and scored on the others. The calibration error is the mean "
        "distance between the probability of the predicted class and its frequency."
    )
    lowest = [min(column) for column in zip(*map(_score_values, all_scores), strict=True)]
    rows = [_highlight_row(scores, lowest) for scores in all_scores]
    content = tag("p", text) + table(HEADINGS, rows, "certree and scikit-learn")
    return Section("comparison", "Comparison with scikit-learn", content)


def _highlight_row(scores: MethodScores, lowest: Sequence[float]) -> tuple[Html | str, ...]:
    """Return the cells of a table row from the scores of a method; the lowest scores are bold.

    scores: name and mean scores of the method; lowest: lowest error, log loss, calibration error
    and seconds of all methods. The name is a str; the other cells are str, or HTML if bold.
    """
    name, *cells = _format_row(scores)
    values = _score_values(scores)
    return (
        name,
        *(
            tag("b", cell) if value == low else cell
            for cell, value, low in zip(cells, values, lowest, strict=True)
        ),
    )


def _score_values(scores: MethodScores) -> tuple[float, ...]:
    """Return error, log loss, calibration error and seconds of a fit of one method.

    These are four numbers: fractions, nats, fractions and seconds, averaged over train/test splits.
    scores: name and mean scores of the method.
    """
    return scores.error, scores.log_loss, scores.calibration, scores.seconds


def _build_certificate_section(certificate: Certificate) -> Section:
    """Return the section of the page with the certificate of a certified tree.

    The result has an id, a heading and HTML. certificate: the bound on the error of the tree.
    """
    text = (
        "The tree was grown on the training set. The calibration set chose the weights of its "
        "prunings and bounds its error. The bound is a guarantee; a test score is an estimate."
    )
    content = tag("p", text) + tag("p", certificate)
    return Section("certified-tree", "A certified tree", content)
