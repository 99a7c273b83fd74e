"""The option --one-per-group: scores and guarantees from one row of each group."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import certree
import reference
from certree.certificates import Guarantees
from certree.cli.app import app
from certree.cli.group_draw import draw_rows
from certree.interface.fitted_state import find_drawn_groups_column
from certree.rows.split import draw_row_per_group
from certree.tables.table_source import TableSource

# The oldest click mixes what the command prints with its messages unless it is told not to.
APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
FEATURES = ["town", "income"]


def run(*arguments):
    """Run the command `certree` in this process, and return its exit code, stdout and stderr."""
    done = CliRunner(**APART).invoke(app, [*map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def draw(n_customers, seed):
    """Loans of customers, one to five each; those of a customer share a risk."""
    random = np.random.default_rng(seed)
    customer = np.repeat(np.arange(n_customers), random.integers(1, 6, n_customers))
    frame = pd.DataFrame(
        {"customer": customer, "town": random.choice(["Lima", "Oslo"], len(customer))}
    )
    frame["income"] = (
        random.normal(size=n_customers)[customer] + random.normal(size=len(customer))
    ).round(6)
    frame["late"] = np.where(
        frame["income"] < random.normal(size=n_customers)[customer] / 2, "yes", "no"
    )
    return frame.sample(frac=1, random_state=seed, ignore_index=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, a table of new rows, and a folder of two tables with the same rows."""
    folder = tmp_path_factory.mktemp("groups")
    draw(300, 0).to_csv(folder / "old.csv", index=False)
    new = draw(200, 1)
    new.to_csv(folder / "new.csv", index=False)
    (folder / "tables").mkdir()
    new[:250].to_csv(folder / "tables" / "1.csv", index=False)
    new[250:].to_csv(folder / "tables" / "2.csv", index=False)
    fit = (
        "fit",
        folder / "old.csv",
        "--target",
        "late",
        "--drop",
        "customer",
        "--model",
        "boosted",
    )
    code, _, messages = run(*fit, "--quiet", "--test-size", 0, "-o", folder / "m")
    assert code == 0, messages
    return folder


@pytest.fixture(name="drawn")
def drawn_rows(place):
    """The model, and the rows that the option draws of the table of new rows."""
    new = pd.read_csv(place / "new.csv")
    rows = new.iloc[draw_row_per_group(new["customer"].to_numpy().astype(str))]
    return certree.load(place / "m"), rows


@pytest.mark.parametrize("name", ["new.csv", "tables"])
def test_one_row_of_each_group_is_drawn_from_files(place, name):
    new = pd.read_csv(place / "new.csv")
    model = certree.load(place / "m")
    found = draw_rows(model, TableSource(place / name), "late", "customer")
    assert found.n_rows == len(new)
    expected = reference.draw_row_per_group(new["customer"].astype(str).tolist())
    assert found.rows.tolist() == expected
    assert draw_rows(model, TableSource(place / name), "late", None) is None


@pytest.mark.parametrize("name", ["new.csv", "tables"])
def test_commands_use_the_drawn_rows(place, name, drawn):
    model, rows = drawn
    command = (place / "m", place / name, "--target", "late", "--one-per-group", "customer")
    code, output, _ = run("evaluate", *command, "--json")
    document = json.loads(output)
    assert code == 0
    assert document["rows"] == 200
    error = np.mean(model.predict(rows[FEATURES]) != rows["late"])
    assert document["scores"]["error"]["value"] == pytest.approx(error)
    assert (
        "200 of 627 rows, one drawn at random from each group of 'customer'"
        in (document["one_per_group"])
    )
    assert "must be new" in document["one_per_group"]
    guarantees = Guarantees.by_rows(model, rows[FEATURES], rows["late"])
    code, output, messages = run("certify", *command)
    assert output.splitlines()[1] == str(guarantees.certificate)
    assert output.startswith("200 of 627 rows, one drawn at random")
    assert messages.startswith("Not checked: the groups of 'customer' must be new")
    code, output, _ = run("certify", *command, "--recall", ".5", "--groups", "town")
    curves = guarantees.thresholds(groups=rows["town"])
    assert f"\n{curves}\n{curves.highest_threshold(0.5)}\n" in output


def test_groups_may_be_a_feature_with_a_category_such_as_na(tmp_path):
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"town": ["NA", "Oslo", "Lima"] * 40, "income": random.normal(size=120)})
    target = np.where(rows["town"] == "NA", "yes", "no")
    certree.save(certree.PrunedTreeClassifier(random_state=0).fit(rows, target), tmp_path / "m")
    rows.assign(late=target).to_csv(tmp_path / "new.csv", index=False)
    command = ("evaluate", tmp_path / "m", tmp_path / "new.csv", "--target", "late")
    code, output, messages = run(*command, "--one-per-group", "town")
    assert (code, output.split(",")[0]) == (0, "PrunedTreeClassifier on 3 of 120 rows"), messages


def test_a_report_is_about_the_drawn_rows(place, tmp_path):
    path = tmp_path / "page.html"
    command = ("report", place / "m", place / "new.csv", "--target", "late", "-o", path)
    assert run(*command, "--one-per-group", "customer")[0] == 0
    page = path.read_text("utf-8")
    assert "on 200 rows, one drawn at random from each group of &#x27;customer&#x27;" in page
    assert "Measured on the 200 rows of this page." in page


def test_a_card_says_that_rows_were_drawn(place, tmp_path):
    path = tmp_path / "card.md"
    command = ("report", place / "m", place / "new.csv", "--target", "late", "-o", path, "--card")
    assert run(*command)[0] == 0
    assert "one drawn at random" not in path.read_text("utf-8")
    assert run(*command, "--one-per-group", "customer")[0] == 0
    card = path.read_text("utf-8")
    assert (
        "200 of 627 rows, one drawn at random from each group of 'customer': here, a new row"
        in card
    )
    assert "The scores are of 200 rows." in card


def test_options_that_do_not_go_together_are_refused(place):
    command = (place / "m", place / "new.csv", "--target", "late")
    for message, name, *options in (
        ("no column 'nix' beside the target", "evaluate", "--one-per-group", "nix"),
        ("no column 'late' beside the target", "report", "--one-per-group", "late"),
        ("no column '' beside the target", "certify", "--dependent", ""),
        (
            "use --one-per-group customer instead",
            *("certify", "--dependent", "customer", "--recall", ".5"),
        ),
        ("exclude", "certify", "--dependent", "customer", "--one-per-group", "customer"),
        ("--drop customer", "certify", "--one-per-group", "customer", "--drop", "customer"),
    ):
        code, output, messages = run(name, *command, *options)
        assert (code, output) == (1, "")
        assert message in messages
    code, _, messages = run(
        "evaluate", place / "m", "-", *command[2:], "--one-per-group", "customer"
    )
    assert code == 1
    assert "pass a file instead of standard input" in messages


def test_models_remember_that_one_row_of_each_group_was_drawn(place, tmp_path):
    file = tmp_path / "m"
    fit = ("fit", place / "old.csv", "--target", "late", "--one-per-group", "customer")
    fit += ("--test-size", 0, "--max-leaf-nodes", 4, "--quiet", "-o", file)
    code, _, messages = run(*fit)
    assert code == 0, messages
    model = certree.load(file)
    assert find_drawn_groups_column(model) == "customer"
    assert "fitted to 300 rows, one of each group of 'customer'" in run("info", file)[1]
    assert json.loads(run("info", file, "--json")[1])["one_per_group"] == "customer"
    command = (file, place / "new.csv", "--target", "late")
    remark = "fitted to one row of each group of 'customer'"
    for name, option in (("evaluate", "--one-per-group"), ("certify", "--dependent")):
        found = run(name, *command)[2]
        assert f"the model was {remark}, a column of this table, too" in found
        assert f"give {option} customer, or --independent" in found
        for options in ((option, "customer"), ("--independent",), ("--drop", "customer")):
            code, _, messages = run(name, *command, *options)
            assert (code, remark in messages) == (0, False), messages
    for page, further in ((tmp_path / "page.html", ()), (tmp_path / "card.md", ("--card",))):
        assert run("report", *command, "-o", page, *further)[0] == 0
        assert remark in page.read_text("utf-8").replace("&#x27;", "'")
    old = pd.read_csv(place / "old.csv")
    assert find_drawn_groups_column(model.fit(old[FEATURES], old["late"])) is None


def test_models_of_all_rows_remember_no_drawn_groups(place):
    assert find_drawn_groups_column(certree.load(place / "m")) is None
    assert json.loads(run("info", place / "m", "--json")[1])["one_per_group"] is None
    command = ("evaluate", place / "m", place / "new.csv", "--target", "late")
    code, _, messages = run(*command)
    assert (code, "one row of each" in messages) == (0, False), messages
