"""The path of an analyst: a table with customers, percents and dates, from the fit to the monitor."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import certree
from certree import BoostedTreesClassifier, PACBayesTreeClassifier, TableSource
from certree.certificates import Guarantees, conditional_guarantees
from certree.interface.fitted_state import find_groups_column, find_time_column
from certree.show import model_card
from cli.conftest import find_strange_options
from cli.test_app import call, fails, succeeds

# Grower of trees that are fitted to files.
CART = certree.Cart(max_bins=16, max_leaf_nodes=10)


def write_loans(path, n_customers, seed, per_customer=2):
    rng = np.random.default_rng(seed)
    wealth = np.repeat(rng.normal(size=n_customers), per_customer)
    n = len(wealth)
    loans = pd.DataFrame({"loan": [f"L{seed}{i:05}" for i in range(n)]})
    loans["customer"] = np.repeat([f"C{seed}{i:04}" for i in range(n_customers)], per_customer)
    loans["rate"] = (12.5 + 5 * wealth + rng.normal(size=n)).round(6)
    loans["job"] = rng.choice(["office", "trade"], n)
    loans["late"] = np.where(rng.random(n) < 1 / (1 + np.exp(2 - 2 * wealth)), "yes", "no")
    loans.to_csv(path, index=False)
    return loans


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """A folder with old loans, a model fitted with their customers, and new loans."""
    folder = tmp_path_factory.mktemp("bank")
    old = write_loans(folder / "old.csv", 400, seed=1)
    write_loans(folder / "new.csv", 300, seed=2)
    model = PACBayesTreeClassifier(random_state=0)
    model.fit(old[["rate", "job"]], old["late"], groups=old["customer"])
    certree.save(model, folder / "model.certree")
    return folder


def run(bank, command, *arguments, file="new.csv"):
    return (command, bank / "model.certree", bank / file, "--target", "late", *arguments)


def test_models_remember_the_column_of_their_groups(bank):
    old = pd.read_csv(bank / "old.csv")
    X, y, customer = old[["rate", "job"]], old["late"], old["customer"]
    assert find_groups_column(certree.load(bank / "model.certree")) == "customer"
    assert "rows, with groups of 'customer'" in succeeds("info", bank / "model.certree")
    assert json.loads(succeeds("info", bank / "model.certree", "--json"))["groups"] == "customer"
    model = PACBayesTreeClassifier(random_state=0)
    assert find_groups_column(model.fit(X, y, groups=customer.to_numpy())) == ""
    assert find_groups_column(model.fit(X, y)) is None
    for name in ("CertifiedTree", "BoostedTrees", "TreeForest", "CertifiedBoostedTrees"):
        estimator = getattr(certree, f"{name}Classifier")(random_state=0)
        assert find_groups_column(estimator.fit(X, y, groups=customer)) == "customer"
    files = BoostedTreesClassifier(max_iter=2, random_state=0)
    files.fit(TableSource(bank / "old.csv", drop=["loan"]), "late", groups="customer")
    assert find_groups_column(files) == ""


def test_rows_of_groups_do_not_certify_in_silence(bank):
    model, new = certree.load(bank / "model.certree"), pd.read_csv(bank / "new.csv")
    X, y, customer = new[["rate", "job"]], new["late"].to_numpy(), new["customer"]
    for certify in (certree.certify, Guarantees.by_rows, conditional_guarantees):
        with pytest.raises(
            ValueError, match=r"groups must be passed, .* with groups of 'customer'"
        ):
            certify(model, X, y)
    certificate = certree.certify(model, X, y, groups=customer)
    assert (certificate.n, certificate.grouped) == (300, True)
    first = ~customer.duplicated()
    one = certree.certify(model, X[first], y[first], groups=customer[first])
    plain = PACBayesTreeClassifier(random_state=0)
    old = pd.read_csv(bank / "old.csv")
    plain.fit(old[["rate", "job"]], old["late"])
    wrong = int((model.predict(X[first]) != y[first]).sum())
    assert (one.n, one.grouped) == (300, False)
    assert one.bound == certree.certificates.hold_out(wrong, 300).bound
    guarantees = Guarantees.by_rows(model, X[first], y[first], groups=range(300))
    assert guarantees.thresholds(pos_label="yes").n == 300
    # A model of rows takes rows.
    assert certree.certify(plain, X, y).n == 600


@pytest.mark.slow
def test_commands_take_the_groups_of_the_fit(bank, tmp_path):
    text = call(*run(bank, "certify"))
    assert "--dependent customer: the model was fitted with these groups" in text.stderr
    assert "300 groups of calibration rows" in text.stdout
    chosen = call(*run(bank, "certify", "--threshold-cost", "5:1", "--positive", "yes"))
    assert "--one-per-group customer" in chosen.stderr
    assert "draw of 300 calibration rows" in chosen.stdout
    assert "always yes: " in chosen.stdout
    scores = call(*run(bank, "evaluate", "--json"))
    assert json.loads(scores.stdout)["rows"] == 300
    page = call(*run(bank, "report", "-o", tmp_path / "report.html"))
    assert "300 rows, one drawn at random" in (tmp_path / "report.html").read_text()
    assert page.exit_code == 0
    assert json.loads(succeeds(*run(bank, "evaluate", "--json", "--independent")))["rows"] == 600
    assert "of the 600 " in succeeds(*run(bank, "certify", "--independent"))
    renamed = pd.read_csv(bank / "new.csv").rename(columns={"customer": "client"})
    renamed.to_csv(bank / "renamed.csv", index=False)
    for command in ("certify", "evaluate"):
        message = fails(*run(bank, command, file="renamed.csv"))
        assert "must name the column of groups, as the model was fitted with groups of" in message
    both = run(bank, "certify", "--independent", "--dependent", "customer")
    assert "--dependent and --independent exclude each other" in fails(*both)


def test_a_folder_is_certified_by_its_groups(bank, tmp_path):
    new = pd.read_csv(bank / "new.csv")
    folder = tmp_path / "rows"
    folder.mkdir()
    for i in range(3):
        new[200 * i : 200 * (i + 1)].to_csv(folder / f"{i}.csv", index=False)
    arguments = ("certify", bank / "model.certree", folder, "--target", "late")
    assert "300 groups of calibration rows" in call(*arguments).stdout
    assert "600 " in succeeds(*arguments, "--independent")
    chosen = call(*arguments, "--recall", 0.3)
    assert "draw of 300 calibration rows" in chosen.stdout


def test_fit_uses_one_row_of_each_group(bank, tmp_path):
    model_file = tmp_path / "one.certree"
    fit = ("fit", bank / "old.csv", "--target", "late", "--drop", "loan", "-o", model_file)
    text = succeeds(*fit, "--one-per-group", "customer", "--quiet")
    assert "400 of 800 rows, one drawn at random from each group of 'customer'" in text
    model = certree.load(model_file)
    assert model.feature_names_in_.tolist() == ["rate", "job"]
    assert find_groups_column(model) is None
    both = (*fit, "--one-per-group", "customer", "--groups", "customer")
    assert "--groups and --one-per-group exclude each other" in fails(*both)
    assert "is not for --model tree" in fails(*fit, "--max-time", 3)
    succeeds(*fit, "--max-time", 300, "--model", "boosted", "--set", "max_iter=5", "--quiet")
    assert certree.load(model_file).max_time == 300


def test_rows_are_explained_by_key_with_their_probability(bank, tmp_path):
    model_file = tmp_path / "boosted.certree"
    old, new = pd.read_csv(bank / "old.csv"), pd.read_csv(bank / "new.csv")
    model = BoostedTreesClassifier(max_iter=10, random_state=0).fit(old[["rate"]], old["late"])
    certree.save(model, model_file)
    explain = ("explain", model_file, bank / "new.csv", "--positive", "yes")
    text = succeeds(*explain, "--key", "customer=C20003")
    assert text.count("customer = C20003") == 2
    for probability in model.predict_proba(new[["rate"]][6:8])[:, 1]:
        assert f"probability of yes: {probability:.3f}" in text
    assert "no row has customer=x: values are such as customer=C20000" in fails(
        *explain, "--key", "customer=x"
    )
    assert "--key must be COLUMN=VALUE" in fails(*explain, "--key", "customer")
    assert "--key must be COLUMN=VALUE" in fails(*explain, "--key", "C20003")
    assert "--key must name columns of" in fails(*explain, "--key", "Customer=C20003")
    assert "--key and --row exclude each other" in fails(
        *explain, "--key", "customer=x", "--row", 1
    )
    document = json.loads(succeeds(*explain, "--key", "loan=L200007", "--json"))
    assert [one["row"] for one in document["explanations"]] == [7]
    both = ("--key", "customer=C20003", "--key", "loan=L200007", "--json")
    document = json.loads(succeeds(*explain, *both))
    assert [one["row"] for one in document["explanations"]] == [7]
    assert "no row has customer=C20003 and loan=L200000" in fails(
        *explain, "--key", "customer=C20003", "--key", "loan=L200000"
    )


def test_a_model_card_has_the_positive_class(bank, tmp_path):
    model, new = certree.load(bank / "model.certree"), pd.read_csv(bank / "new.csv")
    card = model_card(model, new[["rate", "job"]], new["late"], pos_label="no")
    assert "| Recall of no |" in card
    assert "| Recall of yes |" in model_card(model, new[["rate", "job"]], new["late"])
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        model_card(model, new[["rate", "job"]], new["late"], pos_label="maybe")
    output = tmp_path / "card.md"
    succeeds(*run(bank, "report", "--card", "-o", output, "--positive", "no", "--independent"))
    assert output.read_text() == card
    message = fails(*run(bank, "report", "--card", "--threshold", 0.3))
    assert "--card and --threshold exclude each other" in message


def test_files_that_are_no_rows_or_no_state_are_named(bank, tmp_path):
    header = tmp_path / "header.csv"
    header.write_text("rate,job,late\n")
    message = fails("fit", header, "--target", "late")
    assert "FILE must have rows to fit a model to" in message
    state = run(bank, "monitor", "--bound", 0.3, "--state", bank / "new.csv")
    message = call(*state).stderr
    assert "--state must not be a file that is read, but" in message
    export = ("export", bank / "model.certree", "-o", tmp_path / "model.sql", "--keep", "")
    assert "--keep must name a column of the table, got an empty text" in fails(*export)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            ("--dates", "mm/dd"),
            "column 'opened' of .* has 'dd/mm', as in 13/04/2024: state --dates",
        ),
        (("--decimal", "."), "column 'price' of .* has ',', as in 7,5: state --decimal ,"),
        (
            ("--separator", ","),
            "no column 'y': name one of .*; ';' seems to separate its values instead of ',': give "
            "--separator ';', or leave --separator out$",
        ),
    ],
)
def test_options_that_a_column_contradicts_are_refused(tmp_path, option, message):
    lines = ["opened;price;y", *["13/04/2024;7,5;yes", "14/05/2024;8,25;no"] * 10]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    fit = ("fit", tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "m.certree")
    found = " ".join(fails(*fit, *option).split())
    assert re.search(message, found), found


def test_words_for_missing_values_are_announced(tmp_path):
    lines = ["job,y", *["office,1", "k.A.,0", "Keine Angabe,1", "trade,0"] * 10]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    line = certree.read_table(tmp_path / "rows.csv", "y").description.columns[0].notes[0]
    assert '10 "k.A.", 10 "Keine Angabe" kept as categories' in line
    assert '--missing "Keine Angabe"' in line


def test_arguments_that_are_missing_or_of_other_libraries_are_named(bank):
    with pytest.raises(
        TypeError, match=r"Classifier.fit misses y: .*fit\(\"rows.csv\", \"target\"\)"
    ):
        BoostedTreesClassifier().fit(str(bank / "old.csv"))
    with pytest.raises(TypeError, match="TableSource has no argument 'sep': use separator"):
        TableSource("rows.csv", sep=";")


def test_options_of_messages_are_found():
    assert find_strange_options("choose by --positive", "fit") == ["--positive"]
    assert find_strange_options("evaluate and certify take another by --positive", "fit") == []
    assert find_strange_options("--dates dd/mm or --nothing", "fit") == ["--nothing"]


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """A folder with loans of dates, and models fitted in their order and, "plain", without it."""
    folder = tmp_path_factory.mktemp("dated")
    for name, seed, start in (("old", 1, "2025-01-01"), ("new", 2, "2026-01-01")):
        loans = write_loans(folder / f"{name}.csv", 300, seed, per_customer=1)
        loans["day"] = pd.date_range(start, periods=len(loans))
        loans["day"] = loans["day"].dt.strftime("%Y-%m-%d")
        loans.to_csv(folder / f"{name}.csv", index=False)
    fit = (
        "fit",
        folder / "old.csv",
        "--target",
        "late",
        "--drop",
        "loan",
        "--quiet",
        "--test-size",
        0,
    )
    fit = (*fit, "--drop", "customer", "--max-leaf-nodes", 4)
    succeeds(*fit, "-o", folder / "plain.certree")
    succeeds(*fit, "-o", folder / "model.certree", "--time", "day")
    return folder


@pytest.mark.slow
def test_models_remember_the_column_of_their_times(dated, tmp_path):
    assert find_time_column(certree.load(dated / "model.certree")) == "day"
    assert find_time_column(certree.load(dated / "plain.certree")) is None
    assert "rows, in time order of 'day'" in succeeds("info", dated / "model.certree")
    assert json.loads(succeeds("info", dated / "model.certree", "--json"))["time"] == "day"
    old = pd.read_csv(dated / "old.csv", parse_dates=["day"])
    X, y = old[["rate", "day"]], old["late"]
    few = {"random_state": 0, "max_iter": 2}
    for model in (
        certree.CertifiedTreeClassifier(random_state=0),
        certree.TreeForestClassifier(n_estimators=20, random_state=0),
        certree.BoostedTreesClassifier(**few),
        certree.CertifiedBoostedTreesClassifier(**few),
    ):
        assert find_time_column(model.fit(X, y, time="day")) == "day"
        assert find_time_column(model.fit(X, y, time=old["day"].to_numpy())) == ""
        assert find_time_column(model.fit(X, y)) is None
    files = TableSource(dated / "old.csv", drop=["loan", "customer"])
    for model in (
        certree.CertifiedTreeClassifier(CART, random_state=0),
        PACBayesTreeClassifier(CART, random_state=0),
        BoostedTreesClassifier(**few),
        certree.TreeForestClassifier(n_estimators=20, random_state=0),
    ):
        assert find_time_column(model.fit(files, "late", time="day")) == "day"
        assert find_time_column(model.fit(files, "late")) is None
    # Files of before name no column, but the certificate names a period.
    early = certree.CertifiedTreeClassifier(random_state=0).fit(X, y, time="day")
    del early._time_column
    certree.save(early, tmp_path / "early.certree")
    assert find_time_column(certree.load(tmp_path / "early.certree")) == ""


@pytest.mark.slow
@pytest.mark.filterwarnings("always::certree.RowOrderWarning")
def test_bounds_that_cover_no_later_rows_say_so(dated, tmp_path):
    remark = "warning: --time must be passed for a bound on later rows, as it was in the fit of the"
    for model, options, is_remarked in (
        *(("model", (), True), ("model", ("--recall", 0.01, "--positive", "yes"), True)),
        *(("model", ("--time", "day"), False), ("plain", (), False)),
    ):
        file = dated / f"{model}.certree"
        run = call("certify", file, dated / "new.csv", "--target", "late", *options)
        assert run.exit_code == 0, run.output
        assert (remark in run.stderr) == is_remarked
    scored = (dated / "new.csv", "--target", "late")
    for model, is_remarked in (("model", True), ("plain", False)):
        result = call("evaluate", dated / f"{model}.certree", *scored)
        assert result.exit_code == 0, result
        found = result.stderr
        assert ("fitted to rows in time order of 'day': the intervals" in found) == is_remarked
        for page, options in (("page.html", ()), ("card.md", ("--card",))):
            report = (
                "report",
                dated / f"{model}.certree",
                *scored,
                "-o",
                tmp_path / page,
                *options,
            )
            assert "warning" not in call(*report).stderr
            text = (tmp_path / page).read_text()
            assert ("The model was fitted to rows in time order of" in text) == is_remarked
    model = certree.load(dated / "model.certree")
    new = pd.read_csv(dated / "new.csv", parse_dates=["day"])
    with pytest.warns(certree.RowOrderWarning, match=r"time must be passed .*\(column 'day'\)"):
        certree.certify(model, new[["rate", "job", "day"]], new["late"])


@pytest.mark.slow
def test_rows_that_are_declared_independent_do_not_depend_on_each_other(dated, tmp_path):
    fit = ("fit", dated / "old.csv", "--target", "late", "--drop", "loan", "--drop", "customer")
    fit += ("--model", "certified", "--time", "day", "--quiet", "--test-size", 0)
    scored = (dated / "new.csv", "--target", "late")
    for file, options, further, is_declared in (
        (tmp_path / "dependent", (), (), False),
        (tmp_path / "independent", ("--independent",), (), True),
        (dated / "model.certree", None, ("--independent",), True),
    ):
        if options is not None:
            succeeds(*fit, *options, "-o", file)
        found = call("evaluate", file, *scored, *further)
        assert found.exit_code == 0, found.output
        assert ("may depend on each other" in found.stderr) == (not is_declared)
        assert "cover no later period" in found.stderr
        if not further:
            succeeds("report", file, *scored, "-o", tmp_path / "page.html")
            page = (tmp_path / "page.html").read_text()
            assert ("of this page take them as independent, and" in page) == (not is_declared)
            assert "cover no later period" in page


def test_messages_on_columns_name_their_option_and_a_similar_column(bank, tmp_path):
    fit = ("fit", bank / "old.csv", "--target", "late", "-o", tmp_path / "m.certree", "--quiet")
    explain = ("explain", bank / "model.certree", bank / "new.csv")
    folder = tmp_path / "rows"
    folder.mkdir()
    pd.read_csv(bank / "new.csv").to_csv(folder / "0.csv", index=False)
    for message, *command in (
        ("--dependent must", *run(bank, "certify", "--dependent", "custmer")),
        ("--dependent must", *run(bank, "certify", "--dependent", "Customer")),
        ("--groups must", *run(bank, "certify", "--groups", "custmer", "--independent")),
        ("--one-per-group must", *run(bank, "evaluate", "--one-per-group", "customers")),
        ("--time must", *run(bank, "certify", "--time", "customr", "--dependent", "customer")),
        ("--keep must", *explain, "--keep", "custmer"),
        ("--key must", *explain, "--key", "custmer=C20003"),
        ("--keep must", "predict", bank / "model.certree", bank / "new.csv", "--keep", "custmer"),
        ("--drop must", *fit, "--drop", "custmer"),
        ("--keep-text must", *fit, "--keep-text", "custmer"),
        ("--weights must", *fit, "--weights", "custmer"),
        ("--groups must", *fit, "--groups", "custmer"),
        ("--time must", *fit, "--time", "custmer"),
        ("--increasing must", *fit, "--increasing", "custmer"),
        ("the target must", "fit", bank / "old.csv", "--target", "custmer"),
    ):
        found = " ".join(fails(*command).split())
        assert f"error: {message}" in found
        assert "did you mean 'customer'? Or name one of" in found
    found = fails(
        "certify", bank / "model.certree", folder, *run(bank, "", "--dependent", "nix")[3:]
    )
    assert "error: --dependent must name a column, but there is no column 'nix'" in found
    assert "did you mean" not in found


def test_other_groups_than_those_of_the_fit_are_remarked(bank):
    for option, command in (("--dependent", "certify"), ("--one-per-group", "evaluate")):
        assert (
            "fitted with other groups" not in call(*run(bank, command, option, "customer")).stderr
        )
        remark = f"{option} loan: the model was fitted with other groups, those of 'customer'; the"
        assert remark in call(*run(bank, command, option, "loan")).stderr


def test_a_missing_column_of_groups_is_the_only_message(bank):
    for option, command in (("--dependent", "certify"), ("--one-per-group", "evaluate")):
        found = call(*run(bank, command, option, "lown"))
        assert found.exit_code == 1
        assert found.stderr.startswith(
            f"error: {option} must name a column, but there is no column"
        )


def test_a_target_that_is_dropped_is_named(bank, tmp_path):
    message = (
        "error: --target must name a column that is read, but --drop leaves out 'late': remove"
    )
    fit = ("fit", bank / "old.csv", "--target", "late", "-o", tmp_path / "m.certree")
    for command in (fit, run(bank, "certify", "--independent")):
        assert message in " ".join(fails(*command, "--drop", "late").split())


def test_a_single_row_is_no_plural(tmp_path):
    (tmp_path / "tiny.csv").write_text("x,y\n1,a\n")
    printed = succeeds("fit", tmp_path / "tiny.csv", "--target", "y", "-o", tmp_path / "m.certree")
    assert "1 row, 1 feature, and a single class" in printed


def test_columns_of_groups_are_found_with_the_separator_of_the_fit(bank, tmp_path):
    for name in ("old.csv", "new.csv"):
        pd.read_csv(bank / name).to_csv(tmp_path / name, sep="~", index=False)
    fit = ("fit", tmp_path / "old.csv", "--target", "late", "--groups", "customer", "--quiet")
    fit += ("--separator", "~", "--max-leaf-nodes", 4, "--test-size", 0, "--drop", "loan")
    succeeds(*fit, "-o", tmp_path / "m.certree")
    found = call("evaluate", tmp_path / "m.certree", tmp_path / "new.csv", "--target", "late")
    assert "--one-per-group customer: the model was fitted with these groups" in found.stderr


def test_a_decimal_comma_in_an_option_is_explained(bank):
    for command, option, value, point in (
        ("evaluate", "--threshold", "0,17", "0.17"),
        ("certify", "--delta", ",05", ".05"),
    ):
        found = call(*run(bank, command, option, value)).stderr  # in a box
        assert f"write a decimal point, {point}" in re.sub(r"[│\s]+", " ", found)
    assert "decimal point" not in call(*run(bank, "evaluate", "--threshold", "high")).stderr


@pytest.mark.slow
def test_outputs_replace_no_inputs(bank, tmp_path):
    model, table = tmp_path / "m.certree", tmp_path / "new.csv"
    for file, copy in (("model.certree", model), ("new.csv", table)):
        copy.write_bytes((bank / file).read_bytes())
    contents = model.read_bytes(), table.read_bytes()
    known = (model, table, "--target", "late")
    for place in (model, table):
        for name, *command in (
            ("--output", "predict", model, table, "-o", place),
            ("--output", "report", *known, "-o", place),
            ("--output", "explain", model, table, "--rows", "all", "-o", place),
            ("--plot", "explain", model, table, "--plot", place),
            ("--output", "plot", "tree", model, "-o", place),
            ("--plot", "certify", *known, "--threshold-cost", "5:1", "--plot", place),
            ("--plot", "monitor", *known, "--state", tmp_path / "s", "--plot", place),
        ):
            if place == table and command[0] == "plot":
                continue
            assert f"error: {name} must not be a file that is read" in fails(*command)
    assert contents == (model.read_bytes(), table.read_bytes())
    # A shell opens the input, so that only its identity shows that the output is the same file.
    command = [sys.executable, "-m", "certree", "predict", model, "-", "-o", table]
    with table.open() as rows:
        done = subprocess.run(command, stdin=rows, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "--output must not be the file that standard input reads" in done.stderr
    assert table.read_bytes() == contents[1]


def test_a_confidence_is_no_delta(bank):
    message = "delta must be at most 0.5, got 0.95: it is the probability with which"
    found = fails(*run(bank, "certify", "--delta", 0.95))
    assert f"error: --{message}" in found
    fit = ("fit", bank / "old.csv", "--target", "late", "--model", "certified", "--quiet")
    assert f"error: --{message}" in fails(*fit, "--delta", 0.95)
    model, new = certree.load(bank / "model.certree"), pd.read_csv(bank / "new.csv")
    with pytest.raises(ValueError, match=message):
        certree.certify(model, new[["rate", "job"]], new["late"], 0.95, groups=new["customer"])
    for name in ("CertifiedTree", "CertifiedBoostedTrees", "CertifiedForest"):
        estimator = getattr(certree, f"{name}Classifier")(delta=0.95)
        with pytest.raises(ValueError, match=message):
            estimator.fit(None, None)  # before any work
    with pytest.raises(ValueError, match=message):
        certree.certificates.Monitor(0.1, delta=0.95)
