"""A first look: ours and scikit-learn's on a real table, a certificate, and a tree to walk through."""

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
from certree.cli.app import MODELS, Quiet, command, file_to_write, say
from certree.cli.side_by_side import TEST_SIZE, Compared, side_by_side
from certree.estimators import CertifiedTreeClassifier, PACBayesTreeClassifier
from certree.files.places import expect_writable
from certree.interface.progress import show_progress
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, table, tag
from certree.show.page.section import Section
from certree.show.page.writing import sections_of, write_page

HEAD = ("as it comes", "error", "log loss", "calibration", "fit")


@command(MODELS)
def demo(
    output: Annotated[
        Path,
        file_to_write("--output", "-o", metavar="FILE", help="Page to write, one HTML file."),
    ] = Path("demo.html"),
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Splits of the rows.")] = 10,
    quiet: Quiet = False,
) -> None:
    """Compare with scikit-learn on a table that it brings along; write a page."""
    expect_writable(output)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    with show_progress(not quiet, repeats, "demo") as advance:
        compared = side_by_side(X.to_numpy(), y.to_numpy(), repeats, advance)
    parts = train_test_split(X, y, test_size=TEST_SIZE, random_state=0, stratify=y)
    X_grow, X_judge, y_grow, y_judge = parts
    certified = CertifiedTreeClassifier(random_state=0).fit(X_grow, y_grow)
    model = PACBayesTreeClassifier(random_state=0).fit(X_grow, y_grow)
    _print(compared, repeats)
    say(f"\n{certified.certificate_}")
    say(f"\nWhy one row is predicted as it is:\n{model.explain(X_judge[:1])}")
    sections = [
        _comparison(compared, repeats, len(X)),
        _promise(certified.certificate_),
        *sections_of(Judged.of(model, X_judge, y_judge)),
    ]
    write_page("certree at a glance", sections, output)
    say(f"\nwritten to {output}: the same with a tree to walk through")


def _cells(one: Compared) -> tuple[str, ...]:
    return (
        one.name,
        f"{100 * one.error:.1f} %",
        f"{one.log_loss:.3f}",
        f"{100 * one.calibration:.1f} %",
        f"{one.seconds:.2f} s",
    )


def _print(compared: Sequence[Compared], repeats: int) -> None:
    title = f"Wisconsin breast cancer, {repeats} splits"
    grid = Table(title=title, box=SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
    for heading in HEAD:
        grid.add_column(heading, justify="left" if heading == HEAD[0] else "right", no_wrap=True)
    for one in compared:
        grid.add_row(*_cells(one))
    Console().print(grid)


def _comparison(compared: Sequence[Compared], repeats: int, n: int) -> Section:
    words = (
        f"Wisconsin breast cancer, {n} rows: means over {repeats} splits, seven tenths of the rows in "
        "each fit. Calibration is how far predicted probabilities are from how often they come true."
    )
    lowest = [min(values) for values in zip(*map(_figures, compared), strict=True)]
    lines = [
        (
            name,
            *(
                _marked(cell, value == low)
                for cell, value, low in zip(cells, figures, lowest, strict=True)
            ),
        )
        for (name, *cells), figures in ((_cells(one), _figures(one)) for one in compared)
    ]
    content = tag("p", words) + table(HEAD, lines, "Ours and scikit-learn's")
    return Section("comparison", "Side by side", content)


def _figures(one: Compared) -> tuple[float, ...]:
    return one.error, one.log_loss, one.calibration, one.seconds


def _marked(cell: str, is_lowest: bool) -> Html | str:
    return tag("b", cell) if is_lowest else cell


def _promise(certificate: Certificate) -> Section:
    words = (
        "A tree grown on some of the rows, its prunings weighed by the others, which bound its error: "
        "a promise, where a test score is an estimate."
    )
    return Section("promise", "A tree with a promise", tag("p", words) + tag("p", certificate))
