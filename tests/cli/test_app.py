import collections
import hashlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import urllib.error
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import sklearn.datasets
from typer.main import get_group
from typer.testing import CliRunner

import certree
from certree import (
    BoostedTreesClassifier,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
)
from certree.certificates import Guarantees
from certree.cli.app import _COMMANDS, _loaded_commands, app, list_commands
from certree.cli.demo_command import _print_scores
from certree.cli.method_comparison import METHODS as COMPARED_METHODS
from certree.cli.method_comparison import MethodScores
from certree.cli.table_input import parse_positive
from certree.explain import interaction_fractions, shapley_values
from certree.files.tables import DATA_VARIABLE
from certree.interface.formatting import format_file_size
from certree.paper import rates
from certree.paper.figure2 import FRACTIONS
from certree.paper.protocol import GROWERS, PRUNING, run
from certree.paper.table2 import METHODS

# The oldest click mixes what the command prints with its messages unless it is told not to.
APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
KINDS = {b"\x89PNG\r\n\x1a\n": ".png", b"<?xml": ".svg", b"%PDF": ".pdf"}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Set wide lines and no colours; hide data sets of this machine and the network."""
    for name, value in {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)

    def fetch_openml(**_):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)


def call(*arguments):
    return CliRunner(**APART).invoke(app, [str(argument) for argument in arguments])


def succeeds(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, (result.exception, result.stderr)
    return result.stdout


def fails(*arguments):
    """Check that a command exits with 1 and prints only an error; return the message.

    Before it, a fit may have printed how it has read the columns.
    """
    result = call(*arguments)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    assert result.stdout == ""
    _, start, message = f"\n{result.stderr}".partition("\nerror: ")
    assert start
    assert "Traceback" not in result.stderr
    return f"error: {message}"


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def strict_json(path):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def kind_of(path):
    content = path.read_bytes()
    return next(suffix for magic, suffix in KINDS.items() if content.startswith(magic))


@pytest.fixture
def iris():
    frame = sklearn.datasets.load_iris(as_frame=True).frame
    frame.columns = ["sepal length", "sepal width", "petal length", "petal width", "kind"]
    frame["kind"] = np.array(["setosa", "versicolor", "virginica"])[frame["kind"]]
    return frame


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_feather(path)
    return path


def read(path):
    if path.suffix == ".csv":
        # That of pandas is off by some last digits in its older versions.
        return pyarrow.csv.read_csv(path).to_pandas()
    return pd.read_parquet(path)


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "certify", "report"])
def test_help_says_what_groups_are(command):
    text = " ".join(re.sub("[│|]", " ", succeeds(command, "--help")).split())
    meanings = "groups to compare", "depend on each other"
    assert all(meaning in text for meaning in meanings)


def test_help_lists_the_commands():
    text = succeeds("--help")
    for command in (
        *("fit", "predict", "evaluate", "certify", "monitor", "info", "explain", "rules", "report"),
        *("plot", "table1", "table2", "figure2", "rates"),
    ):
        assert re.search(rf"\b{command}\b", text)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("table1", ["--data", "--datasets", "--json"]),
        ("table2", ["--data", "--datasets", "--growers", "--repeats", "--jobs", "--json"]),
        ("figure2", ["--data", "--datasets", "--growers", "--repeats", "--jobs", "--plot"]),
        (
            "rates",
            ["--dimensions", "--sizes", "--repeats", "--noise", "--jobs", "--json", "--plot"],
        ),
        ("fit", ["--target", "--output", "--model", "--grower", "--seed", "--quiet"]),
        ("evaluate", ["--target", "--json", "MODEL", "FILE"]),
        ("explain", ["--row", "--rows", "--output", "--plot"]),
        ("rules", ["--max-leaves", "--positive", "--json"]),
        ("report", ["--target", "--output"]),
        ("plot", ["WHAT", "--target", "--output", "calibration"]),
        ("predict", ["--output", "MODEL", "FILE"]),
        ("monitor", ["--target", "--state", "--batch", "--block", "--plot", "MODEL", "FILE"]),
    ],
)
def test_the_help_of_every_command_lists_its_options(command, options):
    text = succeeds(command, "--help")
    for option in options:
        assert option in text


def list_options():
    """Return the options of each command by its name, with those of the group under ""."""
    commands = list_commands() | {"": get_group(app)}
    return {
        name: {one for p in command.params for one in p.opts} for name, command in commands.items()
    }


def test_the_manual_names_every_command_and_no_other_option():
    guide = Path(__file__).parents[2] / "docs" / "guide"
    pages = guide / "command_line.md", guide / "command_line_json.md"
    text, options = "".join(page.read_text(encoding="utf-8") for page in pages), list_options()
    assert all(f"`{name}`" in text for name in _COMMANDS)
    named = set(re.findall(r"(?<![-\w])--[a-z][a-z-]*", text))
    assert named <= set().union(*options.values(), {"--help"})
    for line in re.findall(r"^\$ certree (.*)$", text, re.M):
        name, used = line.split()[0], set(re.findall(r" (--?[a-z][a-z-]*)", line))
        assert used <= options[name]
    for name in ("fit", "predict", "certify"):
        section = text.partition(
            {"fit": "## Fit", "predict": "## Pred", "certify": "## Cert"}[name]
        )[2]
        rows = re.findall(r"^\| (`--.*?) \|", section.partition("\n## ")[0], re.M)
        assert rows
        assert set(re.findall(r"--[a-z-]+", "".join(rows))) <= options[name]


def test_unknown_commands_and_options_are_refused():
    for arguments in (["grow"], ["table2", "--no-such"], ["table2", "--repeats", "0"]):
        result = call(*arguments)
        assert result.exit_code == 2
        assert result.stdout == ""


# -- experiments -----------------------------------------------------------------------------------


def test_table1_prints_and_writes_sizes_and_those_of_the_paper(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 12)), columns=list("abcdefghijkl"))
    frame["label"] = np.arange(60) % 7
    frame.to_parquet(tmp_path / "wine.parquet")
    json_file = tmp_path / "table1.json"
    text = succeeds("table1", "--data", tmp_path, "--datasets", "wine,iris", "--json", json_file)
    rows = [line.split() for line in text.splitlines() if line.split()[:1] in (["wine"], ["iris"])]
    assert rows == [
        ["wine", "12", "7", "(11)", "40", "(4497)", "20"],
        ["iris", "4", "3", "100", "50"],
    ]
    content = strict_json(json_file)
    for note in content["notes"]:
        assert " ".join(note.split()) in " ".join(text.split())
    assert [line["dataset"] for line in content["table"]] == ["wine", "iris"]


def test_table2_prints_and_writes_the_results_of_the_experiment(tmp_path):
    json_file, picture = tmp_path / "table2.json", tmp_path / "table2.png"
    text = succeeds(
        *("table2", "--datasets", "iris", "--repeats", 1, "--quiet", "--jobs", 1),
        *("--json", json_file, "--plot", picture),
    )
    outcomes = run(["iris"], list(GROWERS), 1)
    content = json.loads(json_file.read_text())
    assert content["experiment"] == "table2"
    assert [outcome["errors"] for outcome in content["outcomes"]] == [o.errors for o in outcomes]
    assert [line["grower"] for line in content["table"]] == list(GROWERS)
    for line, outcome in zip(content["table"], outcomes, strict=True):
        assert line["dataset"] == "iris"
        for method, error in outcome.errors.items():
            assert line["errors"][method]["value"] == pytest.approx(error)
            ratio = line["ratios"][method]["value"]
            assert ratio == pytest.approx(error / outcome.errors[PRUNING])
            assert content["mean_ratios"][line["grower"]][method] == pytest.approx(ratio)
    rows = [line.split() for line in text.splitlines() if line.split()[:1] == ["iris"]]
    shown = [method for method in METHODS if method in outcomes[0].errors and method != PRUNING]
    assert rows == [
        ["iris", f"{outcome.errors[PRUNING]:.3f}"]
        + [f"{outcome.errors[method] / outcome.errors[PRUNING]:.3f}" for method in shown]
        for outcome in outcomes
    ]
    for grower in GROWERS:
        assert f"{grower} tree, 1 repetitions" in text
    for note in content["notes"]:
        assert " ".join(note.split()) in " ".join(text.split())
    assert kind_of(picture) == ".png"
    assert names(tmp_path) == ["table2.json", "table2.png"]


def test_quiet_commands_write_nothing_on_standard_error():
    for command in ("table2", "figure2"):
        result = call(command, "--datasets", "iris", "--growers", "kd", "--repeats", 1, "--quiet")
        assert result.exit_code == 0
        assert result.stderr == ""


def test_progress_does_not_mix_with_the_table():
    arguments = ["table2", "--datasets", "iris", "--growers", "kd", "--repeats", 1]
    assert succeeds(*arguments) == succeeds(*arguments, "--quiet")


def test_the_paper_s_numbers_are_shown_next_to_ours(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["label"] = (frame["a"] + rng.normal(size=60) > 0).astype(int)
    for name in ("wine", "spam"):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    json_file = tmp_path / "table2.json"
    text = succeeds(
        *("table2", "--data", tmp_path, "--datasets", "wine,spam", "--growers", "kd"),
        *("--repeats", 2, "--quiet", "--json", json_file),
    )
    assert "…" not in text
    assert "(1.010)" in text  # SN-pruning
    assert text.count("(1.075)") == 2  # both readings of Helmbold and Schapire's vote
    assert text.count("(0.997)") == 2  # both searches of the PAC-Bayes tree
    for cell in strict_json(json_file)["far_from_paper"]:
        assert f"{cell['paper']:.3f}" in text
        assert cell["reason"] in text
    assert "±" in text
    assert "spam, wine: some test rows equal training rows" in text


def test_the_directory_may_come_from_the_environment(tmp_path, monkeypatch, iris):
    iris.iloc[::2].to_parquet(tmp_path / "mine.parquet")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    text = succeeds("table2", "--datasets", "mine", "--growers", "kd", "--repeats", 1, "--quiet")
    assert "mine" in text


@pytest.mark.parametrize("given", [["kd,dyadic"], ["kd", "dyadic"], [" kd , dyadic,"]])
def test_lists_are_given_with_commas_or_repeated(given):
    arguments = [part for value in given for part in ("--growers", value)]
    text = succeeds("table2", "--datasets", "iris", *arguments, "--repeats", 1, "--quiet")
    assert re.findall(r"^(\S+) tree, ", text, re.MULTILINE) == ["dyadic", "kd"]


@pytest.mark.parametrize("command", ["table2", "figure2"])
def test_files_of_one_repetition_are_strict_json(tmp_path, command):
    path = tmp_path / "out.json"
    succeeds(
        *(command, "--datasets", "iris", "--growers", "kd", "--repeats", 1, "--quiet"),
        *("--json", path),
    )
    assert strict_json(path)["experiment"] == command


def test_figure2_prints_and_writes_the_results_of_the_experiment(tmp_path):
    json_file, picture = tmp_path / "figure2.json", tmp_path / "figure2.svg"
    text = succeeds(
        *("figure2", "--datasets", "iris", "--repeats", 1, "--quiet"),
        *("--json", json_file, "--plot", picture),
    )
    outcomes = run(["iris"], ["dyadic", "kd"], 1, fractions=FRACTIONS)
    content = json.loads(json_file.read_text())
    assert content["experiment"] == "figure2"
    assert [outcome["errors"] for outcome in content["outcomes"]] == [o.errors for o in outcomes]
    sizes = sorted({outcome.n_train for outcome in outcomes})
    assert (len(sizes), sizes[-1]) == (5, 100)
    for curve in content["curves"]:
        assert curve["rows"] == sizes
        for n, error in zip(sizes, curve["errors"], strict=True):
            (expected,) = [
                outcome.errors[curve["method"]]
                for outcome in outcomes
                if (outcome.grower, outcome.n_train) == (curve["grower"], n)
            ]
            assert error["value"] == expected
    for grower in ("dyadic", "kd"):
        assert f"iris, {grower} tree: test error" in text
    heads = [line.split() for line in text.splitlines() if line.split()[:1] == ["training"]]
    assert heads == [["training", "rows", *map(str, sizes)]] * 2
    first = next(line.split() for line in text.splitlines() if line.split()[:1] == [PRUNING])
    assert first[1:] == [
        f"{outcome.errors[PRUNING]:.3f}" for outcome in outcomes if outcome.grower == "dyadic"
    ]
    assert kind_of(picture) == ".svg"


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG", ""])
def test_the_suffix_sets_the_format_of_a_figure(tmp_path, suffix):
    picture = tmp_path / f"picture{suffix}"
    succeeds(
        *("table2", "--datasets", "iris", "--growers", "kd", "--repeats", 1, "--quiet"),
        *("--plot", picture),
    )
    assert kind_of(picture) == (suffix.lower() or ".png")


@pytest.mark.parametrize("command", ["table2", "figure2"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "no-such-set"], "'no-such-set'"),
        (["--datasets", "iris,wine"], "could not be downloaded"),
        (["--datasets", "iris", "--growers", "rp-tree"], "growers must be some of"),
        (["--datasets", "iris", "--growers", ","], "growers must be some of"),
    ],
    ids=["unknown set", "no download", "unknown grower", "no grower"],
)
def test_experiments_that_cannot_run_leave_no_file(tmp_path, command, arguments, message):
    stderr = fails(
        *(command, "--repeats", 1, "--quiet", *arguments),
        *("--json", tmp_path / "out.json", "--plot", tmp_path / "out.png"),
    )
    assert message in stderr
    assert names(tmp_path) == []


def test_a_missing_set_names_the_file_wanted(tmp_path):
    stderr = fails("table2", "--data", tmp_path, "--datasets", "wine", "--quiet")
    assert str(tmp_path / "wine.parquet") in stderr


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_an_output_that_cannot_be_written_is_an_error(tmp_path, option):
    result = call(
        *("table2", "--datasets", "iris", "--growers", "kd", "--repeats", 1, "--quiet"),
        *(option, tmp_path / "missing" / "file.png"),
    )
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "missing" in result.stderr


def test_an_unknown_figure_format_leaves_no_file(tmp_path):
    result = call(
        *("table2", "--datasets", "iris", "--growers", "kd", "--repeats", 1, "--quiet"),
        *("--plot", tmp_path / "picture.xyz"),
    )
    assert result.exit_code == 1
    assert "xyz" in result.stderr
    assert names(tmp_path) == []


@pytest.mark.slow
def test_rates_prints_and_writes_the_results_of_the_simulation(tmp_path):
    json_file, picture = tmp_path / "rates.json", tmp_path / "rates.png"
    text = succeeds(
        *("rates", "--dimensions", 2, "--sizes", "128,256", "--sizes", 512, "--sizes", 1024),
        *("--repeats", 1, "--jobs", 1, "--quiet", "--json", json_file, "--plot", picture),
    )
    trials = rates.simulate([2], [128, 256, 512, 1024], 1)
    content = strict_json(json_file)
    assert content["experiment"] == "rates"
    assert [trial["excess"] for trial in content["trials"]] == [trial.excess for trial in trials]
    found = rates.summarise_trials(trials)
    for boundary in ("Lipschitz", "smooth"):
        assert f"{boundary} boundary, 2 features: excess error" in text
    row = next(line.split() for line in text.splitlines() if line.split()[:1] == ["1024"])
    assert row[1:] == [f"{rate.excess[-1].value:.2g}" for rate in found[:4]]
    row = next(line.split() for line in text.splitlines() if line.split()[:1] == ["exponent"])
    assert row[1:] == [f"{rate.fitted.value:.2f}" for rate in found[:4]]
    row = next(line.split() for line in text.splitlines() if line.split()[:2] == ["in", "theory"])
    assert row[2:] == ["0.33", "0.50", "-", "0.50"]
    assert kind_of(picture) == ".png"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dimensions", "1"], "dimensions must be at least one integer, each at least 2"),
        (["--dimensions", "two"], "--dimensions must be non-negative integers, got two"),
        (["--sizes", "256,2^9"], "--sizes must be non-negative integers, got 256, 2^9"),
        (["--sizes", ","], "sizes must have at least one number of rows"),
        (["--sizes", "4"], "are too few to halve"),
        (["--noise", "0.7"], "noise must be at least 0 and less than 0.5"),
    ],
)
def test_rates_that_cannot_be_simulated_leave_no_file(tmp_path, arguments, message):
    files = ("--json", tmp_path / "out.json", "--plot", tmp_path / "out.png")
    assert message in fails("rates", "--quiet", *arguments, *files)
    assert names(tmp_path) == []


# -- fit and predict -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("output", [".csv", ".parquet", None])
def test_predictions_equal_those_of_the_estimator(tmp_path, iris, suffix, output):
    table = write(iris, tmp_path / f"table{suffix}")
    model_file = tmp_path / "model.certree"
    text = succeeds("fit", table, "--target", "kind", "-o", model_file, "--quiet")
    assert "150 rows, 4 features, 3 classes" in text
    assert str(model_file) in text
    features = iris.drop(columns="kind")
    model = PACBayesTreeClassifier(random_state=0).fit(features, iris["kind"])
    assert certree.load(model_file).best_params_ == model.best_params_
    rows = write(features, tmp_path / f"rows{suffix}")
    if output is None:
        text = succeeds("predict", model_file, rows)
        (tmp_path / "printed.csv").write_text(text)
        predicted = read(tmp_path / "printed.csv")
    else:
        place = tmp_path / f"predicted{output}"
        text = succeeds("predict", model_file, rows, "--output", place)
        numbers = [f"{c} {np.sum(model.predict(features) == c)}" for c in model.classes_]
        assert text.strip() == f"150 rows written to {place}: predicted {', '.join(numbers)}"
        predicted = read(place)
    assert list(predicted) == ["prediction", *(f"probability_{c}" for c in model.classes_)]
    np.testing.assert_array_equal(predicted["prediction"], model.predict(features))
    np.testing.assert_allclose(
        predicted.iloc[:, 1:], model.predict_proba(features), rtol=1e-14, atol=1e-300
    )


@pytest.mark.parametrize("grower", ["kd", "dyadic"])
@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        ("tree", PACBayesTreeClassifier),
        ("pruned", PrunedTreeClassifier),
        ("helmbold-schapire", HelmboldSchapireTreeClassifier),
    ],
)
def test_every_method_and_grower_can_be_fitted(tmp_path, iris, method, estimator, grower):
    two = iris[iris["kind"] != "setosa"]
    table = write(two, tmp_path / "table.parquet")
    model_file, place = tmp_path / "model", tmp_path / "predicted.parquet"
    succeeds(
        *("fit", table, "--target", "kind", "-o", model_file, "--quiet", "--seed", 5),
        *("--model", method, "--grower", grower),
    )
    succeeds("predict", model_file, table, "-o", place)
    features = two.drop(columns="kind")
    model = estimator(grower, random_state=5).fit(features, two["kind"])
    loaded = certree.load(model_file)
    assert type(loaded) is estimator
    assert (loaded.grower, loaded.random_state) == (grower, 5)
    shares = read(place)[[f"probability_{c}" for c in model.classes_]].to_numpy()
    np.testing.assert_array_equal(shares, model.predict_proba(features))
    np.testing.assert_array_equal(read(place)["prediction"], model.predict(features))


@pytest.mark.parametrize(
    "labels", [[0, 1], [True, False], [1.0, 2.0]], ids=["int", "bool", "float"]
)
def test_classes_other_than_strings_keep_their_type(tmp_path, iris, labels):
    two = iris[iris["kind"] != "setosa"].copy()
    two["kind"] = np.where(two["kind"] == "virginica", labels[0], labels[1])
    table = write(two, tmp_path / "table.parquet")
    succeeds("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    succeeds("predict", tmp_path / "model", table, "-o", tmp_path / "predicted.parquet")
    predicted = read(tmp_path / "predicted.parquet")
    assert predicted["prediction"].dtype == two["kind"].dtype
    assert list(predicted)[1:] == [f"probability_{label}" for label in sorted(labels)]
    assert (predicted["prediction"].to_numpy() == two["kind"].to_numpy()).mean() > 0.9


def test_columns_are_found_by_name_in_any_order_among_others(tmp_path, iris):
    table = write(iris, tmp_path / "table.csv")
    succeeds("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    mixed = iris[["petal width", "kind", "sepal width", "sepal length", "petal length"]].copy()
    mixed.insert(2, "name of the flower", "?")
    other = write(mixed, tmp_path / "mixed.csv")
    assert succeeds("predict", tmp_path / "model", other) == succeeds(
        "predict", tmp_path / "model", table
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_values_are_fitted_and_predicted(tmp_path, iris, suffix):
    iris.loc[::7, "petal width"] = np.nan
    table = write(iris, tmp_path / f"table{suffix}")
    succeeds("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    features = iris.drop(columns="kind")
    model = PACBayesTreeClassifier(random_state=0).fit(features, iris["kind"])
    # One row alone, whose column of petal widths holds nothing at all.
    for rows in (features, features.iloc[[7]]):
        path = write(rows.reset_index(drop=True), tmp_path / f"rows{suffix}")
        predicted = pd.read_csv(io.StringIO(succeeds("predict", tmp_path / "model", path)))
        np.testing.assert_array_equal(predicted["prediction"], model.predict(rows))


def test_a_model_without_feature_names_predicts_or_explains_why_not(tmp_path, iris):
    features = iris.drop(columns="kind")
    model = PACBayesTreeClassifier(random_state=0).fit(features.to_numpy(), iris["kind"])
    certree.save(model, tmp_path / "model")
    rows = write(features, tmp_path / "rows.csv")
    result = call("predict", tmp_path / "model", rows)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 0:
        predicted = pd.read_csv(io.StringIO(result.stdout))
        np.testing.assert_array_equal(predicted["prediction"], model.predict(features.to_numpy()))
    else:
        assert "names" in result.stderr


def test_fit_prints_chosen_settings_and_the_size_of_the_tree(tmp_path, iris):
    table = write(iris, tmp_path / "table.csv")
    arguments = ("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    text = succeeds(*arguments)
    model = certree.load(tmp_path / "model")
    assert f"tree of {model.get_n_leaves()} leaves" in text
    assert "3 classes (setosa 33.3 %, versicolor 33.3 %, virginica 33.3 %)" in text
    assert "lambda_error" not in text
    text = succeeds(*arguments, "--verbose")
    posteriors = [
        *zip(
            model.mixture_weights_,
            model.best_params_["lambda_error"],
            model.posteriors_,
            strict=True,
        )
    ]
    for share, value, family in sorted(posteriors, key=lambda posterior: -posterior[0])[:3]:
        assert f"{share:.1%} with lambda_error {value:.4g}, lambda_penalty 0 ({family})" in text
    assert f"{len(posteriors) - 3} more with smaller weights" in text


def test_fit_replaces_an_older_model(tmp_path, iris):
    table = write(iris, tmp_path / "table.csv")
    (tmp_path / "model").write_text("old")
    succeeds("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    assert names(tmp_path) == ["model", "table.csv"]
    certree.load(tmp_path / "model")


@pytest.mark.parametrize("old", [None, "an older model"], ids=["new", "older"])
@pytest.mark.parametrize(
    ("change", "target", "message"),
    [
        (lambda frame: frame, "label", "no column 'label'"),
        (lambda frame: frame[["kind"]], "kind", "must have a feature column"),
        (lambda frame: frame.drop(columns="kind"), "petal width", "--regression"),
        (lambda frame: frame.replace(5.1, np.inf), "kind", "infinity"),
        (lambda frame: frame.iloc[:0].astype({"kind": str}), "kind", "has a header and no rows"),
        (
            lambda frame: frame.assign(kind=frame["kind"].where(frame.index > 0)),
            "kind",
            "must have no missing values, got 1",
        ),
    ],
    ids=[
        "no target",
        "no features",
        "continuous",
        "infinite",
        "no rows",
        "missing class",
    ],
)
def test_tables_that_cannot_be_fitted_leave_the_model_file_alone(
    tmp_path, iris, change, target, message, old
):
    table = write(change(iris), tmp_path / "table.parquet")
    if old is not None:
        (tmp_path / "model").write_text(old)
    stderr = fails("fit", table, "--target", target, "-o", tmp_path / "model", "--quiet")
    assert message in stderr
    assert names(tmp_path) == (["model"] if old else []) + ["table.parquet"]
    if old is not None:
        assert (tmp_path / "model").read_text() == old


def test_three_classes_are_too_many_for_helmbold_schapire(tmp_path, iris):
    table = write(iris, tmp_path / "table.csv")
    stderr = fails(
        *("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet"),
        *("--model", "helmbold-schapire"),
    )
    assert "binary" in stderr
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.xlsx"])
def test_a_missing_table_is_named(tmp_path, name):
    stderr = fails("fit", tmp_path / name, "--target", "kind", "-o", tmp_path / "model")
    assert str(tmp_path / name) in stderr
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["table.parquet", "table.feather", "table.csv", "table.txt"])
def test_a_damaged_table_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2,3\n")
    stderr = fails("fit", tmp_path / name, "--target", "kind", "-o", tmp_path / "model")
    assert str(tmp_path / name) in stderr
    assert names(tmp_path) == [name]


def test_a_table_with_two_columns_of_one_name_is_refused(tmp_path):
    (tmp_path / "table.csv").write_text("a,a,kind\n1,2,x\n3,4,y\n")
    fails("fit", tmp_path / "table.csv", "--target", "kind", "-o", tmp_path / "model")
    assert names(tmp_path) == ["table.csv"]


def test_a_model_file_that_cannot_be_written_is_an_error(tmp_path, iris):
    table = write(iris, tmp_path / "table.csv")
    stderr = fails(
        "fit", table, "--target", "kind", "-o", tmp_path / "missing" / "model", "--quiet"
    )
    assert "missing" in stderr


def test_a_fit_and_new_rows_give_certificates(tmp_path, iris):
    shuffled = iris.drop_duplicates().sample(frac=1, random_state=0)
    old, new = (
        write(shuffled[:100], tmp_path / "old.csv"),
        write(shuffled[100:], tmp_path / "new.csv"),
    )
    model_file = tmp_path / "model"
    arguments = ("fit", old, "--target", "kind", "-o", model_file, "--quiet")
    certified = ("--model", "certified", "--train-size", 0.4, "--delta", 0.1)
    text = succeeds(*arguments, *certified, "--verbose")
    model = certree.load(model_file)
    assert str(model.certificate_) in text
    assert "With probability at least 90 %" in text
    assert (model.certificate_.method, model.train_size_) == ("occam_vote", 0.4)
    assert "lambda_error" in text
    text = succeeds("certify", model_file, new, "--target", "kind")
    rows = shuffled[100:]
    expected = certree.certify(model, rows.drop(columns="kind"), rows["kind"])
    assert text.strip() == str(expected)
    succeeds(*arguments)
    assert "With probability" not in succeeds(*arguments)


def test_every_threshold_is_certified_for_costs(tmp_path, iris):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=400)})
    rows["side"] = np.where(rows["x"] + rng.normal(size=400) > 0, "up", "down")
    old, new = write(rows[:200], tmp_path / "old.csv"), write(rows[200:], tmp_path / "new.csv")
    model_file, picture = tmp_path / "model", tmp_path / "curves.png"
    succeeds("fit", old, "--target", "side", "-o", model_file, "--quiet")
    certify = ("certify", model_file, new, "--target", "side")
    text = succeeds(*certify, "--threshold-cost", "5:1", "--plot", picture)
    labelled_rows = (rows[200:][["x"]], rows["side"][200:])
    thresholds = Guarantees.by_rows(certree.load(model_file), *labelled_rows).thresholds(
        costs=(5, 1)
    )
    assert text.startswith(f"{thresholds}\n{thresholds.lowest_cost(5, 1)}\n")
    assert picture.stat().st_size > 10_000
    second_look = succeeds(*certify, "--threshold-cost", "5:1", "--look", 2)
    assert second_look != text
    assert "such as 5:1, got '5'" in fails(*certify, "--threshold-cost", "5")
    assert "not both 0" in fails(*certify, "--threshold-cost", "0:0")
    assert "give --threshold-cost as well" in fails(*certify, "--plot", picture)
    fit = ("fit", write(iris, tmp_path / "iris.csv"), "--target", "kind", "--quiet")
    succeeds(*fit, "-o", model_file)
    new = iris.select_dtypes("number").sample(frac=1, random_state=0).round(0) + 0.25
    new["kind"] = iris["kind"].to_numpy()
    certify = ("certify", model_file, write(new, tmp_path / "other.csv"), "--target", "kind")
    message = fails(*certify, "--duplicates", "genuine", "--threshold-cost", "5:1")
    assert "thresholds need a classifier with 2 classes, got 3 classes" in message


def test_invalid_certified_fits_and_regressors_are_refused(tmp_path, iris):
    table, model_file = write(iris, tmp_path / "table.csv"), tmp_path / "model"
    arguments = ("fit", table, "--target", "kind", "-o", model_file, "--quiet")
    for option in (("--train-size", 0.4), ("--delta", 0.1)):
        message = fails(*arguments, *option, "--model", "pruned")
        assert f"{option[0]} is not for --model pruned" in message
    certified = (*arguments, "--model", "certified")
    assert "'train_size' parameter" in fails(*certified, "--train-size", 2)
    numbers = write(iris.drop(columns="kind"), tmp_path / "numbers.csv")
    succeeds("fit", numbers, "--target", "petal width", "-o", model_file, "--regression", "--quiet")
    message = fails("certify", model_file, numbers, "--target", "petal width")
    assert "predicts numbers" in message


@pytest.mark.parametrize("method", ["tree", "pruned"])
def test_numbers_are_fitted_and_predicted(tmp_path, iris, method):
    table = write(iris.drop(columns="kind"), tmp_path / "table.parquet")
    model_file, place = tmp_path / "model", tmp_path / "predicted.csv"
    arguments = ("fit", table, "--target", "petal width", "-o", model_file, "--model", method)
    assert "classes" not in succeeds(*arguments, "--regression", "--quiet")
    succeeds("predict", model_file, table, "-o", place)
    predicted = pd.read_csv(place)
    assert list(predicted.columns) == ["prediction", "between", "within"]
    assert np.abs(predicted["prediction"] - iris["petal width"]).mean() < 0.2
    features = iris.drop(columns=["kind", "petal width"])
    spread = certree.load(model_file).predict_std(features)
    np.testing.assert_allclose(predicted[["between", "within"]], spread)


def test_boosted_trees_write_standard_errors_if_they_have_them(tmp_path, iris):
    table, model_file = write(iris, tmp_path / "table.parquet"), tmp_path / "model"
    for target, columns in (
        ("petal width", ["prediction", "std"]),
        ("kind", None),
    ):
        arguments = ("fit", table, "--target", target, "-o", model_file, "--model", "boosted")
        settings = ("--set", "standard_errors=True", "--set", "max_iter=3")
        succeeds(*arguments, *settings, *(["--regression"] if columns else []), "--quiet")
        succeeds("predict", model_file, table, "-o", tmp_path / "predicted.csv")
        predicted = pd.read_csv(tmp_path / "predicted.csv")
        names = [
            f"{prefix}_{c}" for prefix in ("probability", "std") for c in iris["kind"].unique()
        ]
        assert list(predicted.columns) == (columns or ["prediction", *names])
        std = certree.load(model_file).predict_std(iris.drop(columns=target))
        found = predicted[[name for name in predicted.columns if name.startswith("std")]]
        np.testing.assert_allclose(found.to_numpy().reshape(std.shape), std)


@pytest.mark.parametrize("method", ["helmbold-schapire", "naive-bayes"])
def test_classifiers_refuse_regression(tmp_path, iris, method):
    table = write(iris.drop(columns="kind"), tmp_path / "table.csv")
    arguments = ("--target", "petal width", "-o", tmp_path / "model", "--regression")
    stderr = fails("fit", table, *arguments, "--model", method)
    assert f"--regression is not for --model {method}" in stderr
    assert names(tmp_path) == ["table.csv"]


def test_naive_bayes_is_fitted_and_predicts(tmp_path, iris):
    words = iris.assign(size=np.where(iris["petal width"] > 1.7, "large", "small"))
    words.loc[::7, "size"] = None
    table, model_file = write(words, tmp_path / "table.csv"), tmp_path / "model"
    arguments = ("fit", table, "--target", "kind", "-o", model_file, "--model", "naive-bayes")
    text = succeeds(*arguments, "--verbose")
    features = words.drop(columns="kind")
    model = NaiveBayesClassifier().fit(features, words["kind"])
    assert "150 rows, 5 features, 3 classes" in text
    assert "chosen settings: densities: 4 normal, 1 categorical; " in text
    assert f"power {model.power_:.3g}\n" in text
    assert f"written to {model_file}" in text
    rows = write(features[["size", *iris.columns[:4]]], tmp_path / "rows.csv")
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model_file, rows)))
    assert list(predicted) == ["prediction", *(f"probability_{c}" for c in model.classes_)]
    np.testing.assert_array_equal(predicted["prediction"], model.predict(features))
    np.testing.assert_allclose(
        predicted.iloc[:, 1:], model.predict_proba(features), rtol=1e-9, atol=1e-300
    )
    wrong = write(features.assign(**{"petal width": "wide"}), tmp_path / "wrong.csv")
    assert "'petal width' must hold numbers" in fails("predict", model_file, wrong)


@pytest.mark.parametrize("option", [("--train-size", 0.4), ("--grower", "cart")])
def test_options_of_trees_are_refused_for_naive_bayes(tmp_path, iris, option):
    table = write(iris, tmp_path / "table.csv")
    arguments = ("fit", table, "--target", "kind", "-o", tmp_path / "model")
    stderr = fails(*arguments, "--model", "naive-bayes", *option)
    assert f"{option[0]} is not for --model naive-bayes" in stderr
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("method", ["tree", "pruned", "naive-bayes"])
def test_every_classifier_is_certified_by_new_rows(tmp_path, iris, method):
    shuffled = iris.drop_duplicates().sample(frac=1, random_state=0)
    old, new = shuffled[:100], shuffled[100:]
    model_file = tmp_path / "model"
    table = write(old, tmp_path / "old.csv")
    succeeds(*("fit", table, "--target", "kind", "-o", model_file, "--quiet", "--model", method))
    text = succeeds("certify", model_file, write(new, tmp_path / "new.csv"), "--target", "kind")
    expected = certree.certify(
        certree.load(model_file), new.drop(columns="kind"), new["kind"].to_numpy()
    )
    assert text.strip() == str(expected)


@pytest.mark.parametrize("method", ["tree", "pruned", "helmbold-schapire", "naive-bayes"])
def test_rows_of_the_fit_are_not_used_for_certificates(tmp_path, method):
    rng = np.random.default_rng(0)
    coins = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    coins["side"] = rng.choice(["head", "tail"], 120)
    table, model_file = write(coins, tmp_path / "coins.csv"), tmp_path / "model"
    arguments = ("fit", table, "--target", "side", "-o", model_file, "--quiet", "--model", method)
    certify = ("certify", model_file, table, "--target", "side")
    succeeds(*arguments)
    message = fails(*certify)
    assert "120 of 120 rows also occur among those of the fit" in message
    assert "--duplicates genuine" not in message
    assert "the rows are the table of the fit" in fails(*certify, "--duplicates", "genuine")
    other = coins.assign(a=coins["a"] + 1)
    paid = succeeds(
        "certify", model_file, write(other, tmp_path / "new.csv"), "--target", "side", "--look", 2
    )
    expected = certree.certify(
        certree.load(model_file), other[["a", "b"]], other["side"].to_numpy(), look=2
    )
    assert paid.strip() == str(expected)
    succeeds(*arguments, "--no-sample-hashes")
    assert "saved without hashes" in fails(*certify)


def test_fit_leaves_calibration_samples_out_of_the_file_on_request(tmp_path, iris):
    table, path = write(iris, tmp_path / "iris.csv"), tmp_path / "iris.certree"
    arguments = "fit", table, "--target", "kind", "--model", "certified", "-o", path
    succeeds(*arguments)
    assert certree.load(path).guarantees_ is not None
    succeeds(*arguments, "--no-calibration-samples")
    assert certree.load(path).guarantees_ is None


@pytest.mark.parametrize(
    "arguments",
    [["--model", "bush"], ["--grower", "rp"], ["--seed", "-1"], ["--no-such"]],
    ids=lambda arguments: arguments[0],
)
def test_options_of_fit_are_checked(tmp_path, iris, arguments):
    table = write(iris, tmp_path / "table.csv")
    result = call("fit", table, "--target", "kind", "-o", tmp_path / "model", *arguments)
    assert result.exit_code == 2
    assert names(tmp_path) == ["table.csv"]


@pytest.fixture
def model_file(tmp_path, iris):
    path = tmp_path / "model"
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1)
    certree.save(model.fit(iris.drop(columns="kind"), iris["kind"]), path)
    return path


def test_missing_columns_are_named(tmp_path, iris, model_file):
    rows = write(iris.drop(columns=["petal width", "sepal length"]), tmp_path / "rows.csv")
    stderr = fails("predict", model_file, rows, "-o", tmp_path / "predicted.csv")
    assert "'sepal length', 'petal width'" in stderr
    assert names(tmp_path) == ["model", "rows.csv"]


def test_strings_are_categories_of_a_fit(tmp_path, iris):
    words = iris.assign(size=np.where(iris["petal width"] > 1.7, "large", "small"))
    words = words[["sepal length", "size", "kind"]]
    table, model_file = write(words, tmp_path / "table.csv"), tmp_path / "model"
    succeeds("fit", table, "--target", "kind", "-o", model_file, "--quiet", "--seed", 5)
    succeeds("predict", model_file, table, "-o", tmp_path / "predicted.parquet")
    features = words.drop(columns="kind")
    model = PACBayesTreeClassifier(random_state=5).fit(features, words["kind"])
    predicted = read(tmp_path / "predicted.parquet")
    np.testing.assert_array_equal(predicted["prediction"], model.predict(features))
    assert sorted(certree.load(model_file).categories_.names[1]) == ["large", "small"]


def test_a_column_of_strings_in_place_of_numbers_is_named(tmp_path, iris, model_file):
    iris["petal width"] = "wide"
    rows = write(iris, tmp_path / "rows.csv")
    stderr = fails("predict", model_file, rows, "-o", tmp_path / "predicted.csv")
    assert "'petal width' must hold numbers" in stderr
    assert names(tmp_path) == ["model", "rows.csv"]


def test_files_to_predict_that_are_missing_are_named(tmp_path, iris, model_file):
    rows = write(iris, tmp_path / "rows.csv")
    out = tmp_path / "predicted.csv"
    assert "no such file" in fails("predict", model_file, tmp_path / "none.csv", "-o", out)
    assert str(tmp_path / "none") in fails("predict", tmp_path / "none", rows, "-o", out)
    assert names(tmp_path) == ["model", "rows.csv"]


@pytest.mark.parametrize("content", [b"", b"no model", b"PK\x05\x06" + b"\0" * 18])
def test_files_that_are_not_model_files_are_refused(tmp_path, iris, content):
    rows = write(iris, tmp_path / "rows.csv")
    (tmp_path / "model").write_bytes(content)
    stderr = fails("predict", tmp_path / "model", rows, "-o", tmp_path / "predicted.csv")
    assert str(tmp_path / "model") in stderr
    assert names(tmp_path) == ["model", "rows.csv"]


@pytest.mark.parametrize("name", ["predicted.xlsx", "predicted"])
def test_an_unknown_output_format_is_refused(tmp_path, iris, model_file, name):
    rows = write(iris, tmp_path / "rows.csv")
    stderr = fails("predict", model_file, rows, "-o", tmp_path / name)
    assert "must end in .csv, .csv.gz, .tsv or .parquet" in stderr
    assert names(tmp_path) == ["model", "rows.csv"]


def test_an_output_to_a_missing_directory_is_an_error(tmp_path, iris, model_file):
    rows = write(iris, tmp_path / "rows.csv")
    assert "missing" in fails("predict", model_file, rows, "-o", tmp_path / "missing" / "p.csv")


def test_a_failing_write_leaves_the_older_output(tmp_path, iris, model_file, monkeypatch):
    rows = write(iris, tmp_path / "rows.csv")
    out = tmp_path / "predicted.csv"
    out.write_text("old")

    def writer(file, *_, **__):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pa.csv, "CSVWriter", writer)
    assert "disk full" in fails("predict", model_file, rows, "-o", out)
    assert out.read_text() == "old"
    assert names(tmp_path) == ["model", "predicted.csv", "rows.csv"]


@pytest.mark.parametrize("name", ["[old].csv", "[/old].csv", "[red]rows[/red].csv"])
def test_messages_show_names_with_brackets_as_they_are(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[").mkdir()  # for the name with a slash
    assert name in fails("fit", name, "--target", "kind", "-o", "model")


@pytest.mark.parametrize("column", ["length [cm]", "length [/cm]"])
def test_messages_show_columns_with_units_as_they_are(tmp_path, iris, column):
    renamed = iris.rename(columns={"petal length": column})
    table = write(renamed, tmp_path / "table.csv")
    succeeds("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    rows = write(renamed.drop(columns=column), tmp_path / "rows.csv")
    assert repr(column) in fails("predict", tmp_path / "model", rows)


@pytest.mark.parametrize("name", ["[new]", "[bold]model[/bold]", "model[/]"])
def test_fit_prints_the_path_of_the_model_file(tmp_path, monkeypatch, iris, name):
    monkeypatch.chdir(tmp_path)
    table = write(iris, tmp_path / "table.csv")
    place = name.replace("/", "%")
    assert f"written to {place}" in succeeds(
        "fit", table, "--target", "kind", "-o", place, "--quiet"
    )


@pytest.mark.parametrize(
    "dates", [("2020-01-01", "2021-05-06"), ("2020-01-01 10:00", "2021-05-06 11:01")]
)
def test_all_commands_accept_a_target_of_dates(dates, tmp_path):
    rows, model = tmp_path / "rows.csv", tmp_path / "model"
    x = np.arange(60) % 7
    pd.DataFrame({"x": x, "when": np.array(dates)[(x > 3).astype(int)]}).to_csv(rows, index=False)
    succeeds("fit", rows, "--target", "when", "--output", model, "--quiet")
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model, rows)))
    assert [day[:10] for day in predicted["prediction"].unique()] == [date[:10] for date in dates]
    pd.read_csv(rows).iloc[1:].to_csv(rows, index=False)  # the whole table is refused
    again = ("certify", model, rows, "--target", "when", "--duplicates", "genuine")
    assert "observed on them: 0.0 %" in succeeds(*again)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_all_commands_accept_features_of_dates(name, tmp_path):
    rng = np.random.default_rng(0)
    start = np.datetime64("2020-01-01T00:00", "s")
    opened = start + rng.integers(0, 10**8, 200).astype("timedelta64[s]")
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=200).round(2),
            "opened": pd.to_datetime(opened).tz_localize("UTC"),
            "day": [one.astype("M8[D]").item() for one in opened],
            "town": rng.choice(["a", "b"], 200),
            "kind": np.where(opened > start + np.timedelta64(5 * 10**7, "s"), "new", "old"),
        }
    )
    frame.loc[::9, "opened"] = None
    rows, model_file = write_as(frame, tmp_path / name), tmp_path / "model"
    succeeds("fit", rows, "--target", "kind", "--model", "certified", "-o", model_file)
    model = certree.load(model_file)
    assert {j: one.kind for j, one in model.dates_.items()} == {1: "datetime", 2: "date"}
    features = frame.drop(columns="kind")
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model_file, rows)))
    assert predicted["prediction"].tolist() == model.predict(features).tolist()
    score = f"Error {100 * (1 - model.score(features, frame['kind'])):.1f} %"
    assert score in succeeds("evaluate", model_file, rows, "--target", "kind")
    new = frame.assign(size=frame["size"] + 0.001)
    new_rows = write_as(new, tmp_path / f"new_{name}")
    assert "at most" in succeeds("certify", model_file, new_rows, "--target", "kind")
    first = model.explain(features.head(1))
    assert re.search("(opened|day) = 20", succeeds("explain", model_file, rows))
    assert str(first).split()[:3] == succeeds("explain", model_file, rows).split()[:3]
    page = tmp_path / "page.html"
    succeeds("report", model_file, rows, "--target", "kind", "-o", page)
    assert "after the last training date of opened (2023-" in page.read_text()
    wrong = write_as(new.assign(day="soon"), tmp_path / f"wrong_{name}")
    assert "feature 'day' must hold dates as in the fit, got 'soon'" in fails(
        "predict", model_file, wrong
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    write_as(frame.iloc[:90], folder / f"a_{name}")
    write_as(frame.iloc[90:], folder / f"b_{name}")
    succeeds("fit", folder, "--target", "kind", "--model", "boosted", "-o", model_file)
    boosted = certree.load(model_file)
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model_file, folder)))
    assert predicted["prediction"].tolist() == boosted.predict(features).tolist()


def test_a_target_that_ends_in_nul_is_refused(tmp_path):
    rows = tmp_path / "rows.parquet"
    target = pa.array(["a", "a\0"] * 20)
    pa.parquet.write_table(pa.table({"x": np.arange(40.0), "kind": target}), rows)
    assert "'kind' must not have values that end in NUL" in fails(
        "fit", rows, "--target", "kind", "-o", "m"
    )


# -- columns of the types that they had in the fit ------------------------------------------------


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """A model with a feature of codes, most of which look like numbers, and its table."""
    directory = tmp_path_factory.mktemp("coded")
    codes = np.array(["1", "01", "1.0", "2", "3A", "true"])
    frame = pd.DataFrame({"code": np.tile(codes, 40), "size": np.arange(240) % 7})
    frame["kind"] = np.tile(["1", "01", "1", "2", "x", "2"], 40)
    table, model_file = write(frame, directory / "table.csv"), directory / "model"
    succeeds("fit", table, "--target", "kind", "-o", model_file, "--quiet", "--test-size", 0)
    return model_file, frame


def write_as(frame, path):
    """Write a table in any format; strings stay strings in typed formats."""
    frame = frame.reset_index(drop=True)
    if path.suffix in (".csv", ".parquet", ".arrow"):
        return write(frame, path)
    frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


TABLES = ["rows.csv", "rows.csv.gz", "rows.tsv", "rows.tsv.gz", "rows.parquet", "rows.arrow"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("codes", [["1", "2"], ["01", "1.0"], ["true", None]])
def test_codes_that_look_like_numbers_are_strings_as_in_the_fit(tmp_path, coded, name, codes):
    model_file, frame = coded
    some = frame[frame["code"].isin(codes)].copy()
    if None in codes:
        some.loc[some.index[::2], "code"] = None
    rows = write_as(some, tmp_path / name)
    model = certree.load(model_file)
    expected = model.predict(some[["code", "size"]])
    predicted = tmp_path / "predicted.parquet"
    succeeds("predict", model_file, rows, "-o", predicted)
    np.testing.assert_array_equal(read(predicted)["prediction"], expected)
    error = np.mean(expected != some["kind"])
    text = succeeds("evaluate", model_file, rows, "--target", "kind")
    assert f"Error {100 * error:.1f} %" in text
    text = succeeds("certify", model_file, rows, "--target", "kind", "--duplicates", "genuine")
    assert f"observed on them: {100 * error:.1f} %" in text
    first = model.explain(some[["code", "size"]].head(1))
    assert succeeds("explain", model_file, rows).strip() == str(first).strip()


def test_codes_from_standard_input_are_strings_as_in_the_fit(coded):
    model_file, frame = coded
    some = frame[frame["code"].isin(["1", "2"])]
    content = some.to_csv(index=False)
    result = CliRunner(**APART).invoke(app, ["predict", str(model_file), "-"], input=content)
    predicted = pd.read_csv(io.StringIO(result.stdout), dtype={"prediction": str})
    assert predicted["prediction"].tolist() == some["kind"].tolist()
    arguments = ["evaluate", str(model_file), "-", "--target", "kind"]
    assert "Error 0.0 %" in CliRunner(**APART).invoke(app, arguments, input=content).stdout


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_integers_of_typed_files_are_strings_if_the_fit_had_strings(tmp_path, coded, name):
    model_file, frame = coded
    some = frame[frame["code"].isin(["1", "2"])].copy()
    some[["code", "kind"]] = some[["code", "kind"]].astype(int)
    rows = write_as(some, tmp_path / name)
    assert "Error 0.0 %" in succeeds("evaluate", model_file, rows, "--target", "kind")
    # How 1.0 would be written as a word nobody knows.
    rows = write_as(some.astype({"code": float}), tmp_path / name)
    assert "feature 'code' must hold strings as in the fit, got 1.0" in fails(
        "predict", model_file, rows
    )


def test_models_without_feature_names_have_types_of_columns(tmp_path):
    X = np.array([["1", 0.5], ["2", 1.5], ["3A", 0.5], ["2", 2.5]] * 20, dtype=object)
    y = X[:, 0].astype(str)
    model = PACBayesTreeClassifier(lambda_error=9.0, lambda_penalty=0.1).fit(X, y)
    certree.save(model, tmp_path / "model")
    rows = write(pd.DataFrame({"a": ["1", "2"], "b": [1, 2]}), tmp_path / "rows.csv")
    predicted = succeeds("predict", tmp_path / "model", rows)
    assert [line.split(",")[0] for line in predicted.splitlines()[1:]] == ['"1"', '"2"']
    labelled = pd.DataFrame({"y": ["1", "2"], "a": ["1", "2"], "b": [1, 2]})
    rows = write(labelled, tmp_path / "rows.csv")
    text = succeeds("evaluate", tmp_path / "model", rows, "--target", "y")
    assert "Error 0.0 %" in text


@pytest.mark.parametrize("name", TABLES)
def test_strings_in_a_numeric_feature_are_refused(tmp_path, coded, name):
    model_file, frame = coded
    rows = write_as(frame.assign(size=["1", "9", "3A"] * 80), tmp_path / name)
    message = fails("predict", model_file, rows)
    assert "feature 'size' must hold numbers as in the fit, got '3A'" in message


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("command", ["evaluate", "certify", "report"])
def test_a_target_of_unknown_classes_is_refused(tmp_path, coded, name, command):
    model_file, frame = coded
    rows = write_as(frame.assign(kind=7), tmp_path / name)
    message = fails(command, model_file, rows, "--target", "kind")
    assert "the target 'kind' must hold classes among ['01', '1', '2', 'x'], got ['7'" in message
    # One misspelt label in a thousand must not count as an error of the model.
    rows = write_as(frame.assign(kind=[*frame["kind"][:-1], "X"]), tmp_path / name)
    message = fails(command, model_file, rows, "--target", "kind")
    assert "must hold classes among ['01', '1', '2', 'x'], got ['X']: correct these" in message
    if name.endswith((".parquet", ".arrow")):
        rows = write_as(frame.assign(kind=1.0), tmp_path / name)
        message = fails(command, model_file, rows, "--target", "kind")
        assert "the target 'kind' must hold classes of the same type as ['01', '1'" in message


@pytest.mark.parametrize(
    ("fitted", "came"),
    [
        ([1, 2], [1.0, 2.0]),
        ([1.0, 2.0], [1, 2]),
        ([True, False], [True, False]),
        ([True, False], [1, 0]),
        ([0, 1], [False, True]),
        (["2020-01-01", "2021-01-01"], ["2020-01-01", "2021-01-01"]),
        (["10:00", "11:30"], ["10:00", "11:30"]),
        (["2020-01-01 10:00", "2021-01-01"], ["2020-01-01 10:00", "2021-01-01"]),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_classes_may_be_written_in_another_type(tmp_path, fitted, came, suffix):
    x = np.arange(80) % 2
    table = pd.DataFrame({"x": x, "kind": np.array(fitted)[x]})
    rows = pd.DataFrame({"x": x, "kind": np.array(came)[x]}).iloc[1:]
    model_file = tmp_path / "model"
    table = write(table, tmp_path / f"table{suffix}")
    succeeds("fit", table, "--target", "kind", "-o", model_file, "--quiet", "--test-size", 0)
    for some in (rows, rows[rows["x"] == 1]):
        file = write_as(some, tmp_path / f"rows{suffix}")
        assert "Error 0.0 %" in succeeds("evaluate", model_file, file, "--target", "kind")
        text = succeeds("certify", model_file, file, "--target", "kind", "--duplicates", "genuine")
        assert "observed on them: 0.0 %" in text


def test_numbered_categories_that_pandas_wrote_stay_numbers(tmp_path):
    frame = pd.DataFrame({"a": pd.Categorical(np.arange(60) % 3), "b": np.arange(60.0)})
    y = (frame["a"] == 1).to_numpy()
    model = PACBayesTreeClassifier(lambda_error=9.0, lambda_penalty=0.1).fit(frame, y)
    certree.save(model, tmp_path / "model")
    for suffix in (".parquet", ".arrow", ".csv"):
        rows = write(frame.assign(y=y), tmp_path / f"rows{suffix}")
        assert "Error 0.0 %" in succeeds("evaluate", tmp_path / "model", rows, "--target", "y")
    wrong = write(frame.assign(a="many"), tmp_path / "wrong.csv")
    assert "feature 'a' must hold numbers" in fails("predict", tmp_path / "model", wrong)


def test_a_target_of_strings_is_refused_by_a_regressor(tmp_path, iris):
    table, model_file = write(iris.drop(columns="kind"), tmp_path / "table.csv"), tmp_path / "model"
    arguments = ("--target", "petal width", "--regression", "-o", model_file, "--quiet")
    succeeds("fit", table, *arguments)
    wrong = write(iris.assign(**{"petal width": "wide"}), tmp_path / "wrong.csv")
    message = fails("evaluate", model_file, wrong, "--target", "petal width")
    assert "the target 'petal width' must hold numbers as in the fit, got 'wide'" in message


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_test_set_may_have_classes_that_the_training_set_lacks(tmp_path):
    table = pd.DataFrame({"x": np.arange(40), "kind": [f"kind {i}" for i in range(40)]})
    rows = write(table, tmp_path / "rows.csv")
    text = succeeds("fit", rows, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    assert "Error 100.0 %" in text


# -- names and bytes that nobody expects ------------------------------------------------------------


def test_a_feature_called_base_keeps_its_column(tmp_path, iris):
    renamed = iris.rename(columns={"sepal length": "base", "sepal width": "base_"})
    for frame, target in ((renamed, "kind"), (renamed.drop(columns="kind"), "petal width")):
        table, model_file = write(frame, tmp_path / "table.csv"), tmp_path / "model"
        place = tmp_path / "contributions.parquet"
        kind = ["--regression"] if target == "petal width" else []
        arguments = ("--target", target, "-o", model_file, "--quiet", "--test-size", 0)
        succeeds("fit", table, *arguments, *kind)
        succeeds("explain", model_file, table, "-o", place)
        explanation = certree.load(model_file).explain(frame.drop(columns=target))
        columns = pd.read_parquet(place)
        p, n_outputs = len(explanation.feature_names), len(explanation.output_names)
        n_first = 3 + (n_outputs if target == "kind" else 0)  # row, prediction, unit, probabilities
        assert columns.shape == (150, n_first + n_outputs * (p + 1))
        for k, output in enumerate(explanation.output_names):
            prefix = "" if n_outputs == 1 else f"{output}: "
            assert set(columns[f"{prefix}base__"]) == {explanation.base[k]}
            for j, name in enumerate(explanation.feature_names):
                expected = explanation.contributions[:, k, j]
                np.testing.assert_array_equal(columns[f"{prefix}{name}"], expected)


def test_contributions_that_would_have_one_name_are_refused(tmp_path):
    x = np.arange(60) % 3
    frame = pd.DataFrame({"b: c": x, "c": x, "y": np.array(["a", "a: b", "z"])[x]})
    table, model_file = write(frame, tmp_path / "table.csv"), tmp_path / "model"
    succeeds("fit", table, "--target", "y", "-o", model_file, "--quiet", "--test-size", 0)
    message = fails("explain", model_file, table, "-o", tmp_path / "contributions.csv")
    assert "must be distinct, but a: b: c occurs more than once" in message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data.2023.csv", "data.2023.certree"),
        ("data.2023.csv.gz", "data.2023.certree"),
        ("data.tsv", "data.certree"),
        ("v1.2.DATA.CSV", "v1.2.DATA.certree"),
        (".hidden.csv", ".hidden.certree"),
    ],
)
def test_a_model_is_named_after_the_whole_name_of_its_table(
    tmp_path, monkeypatch, iris, name, expected
):
    monkeypatch.chdir(tmp_path)
    iris.to_csv(name, index=False, sep="\t" if "tsv" in name else ",")
    succeeds("fit", name, "--target", "kind", "--quiet", "--test-size", 0)
    assert names(tmp_path) == sorted([name, expected])


HOSTILE = "a\x1b[31m\x07\r\u202eb\x00"


def test_messages_contain_no_control_characters(tmp_path, iris, model_file):
    def is_plain(text):
        return all(letter.isprintable() or letter == "\n" for letter in text)

    def is_one_line(message):
        return is_plain(message) and message.count("\n") == 1

    pa.parquet.write_table(pa.table({HOSTILE: [1.0], "b\nc": ["x"]}), tmp_path / "rows.parquet")
    for arguments in (
        ("fit", tmp_path / "rows.parquet", "--target", "kind", "-o", tmp_path / "m"),
        ("predict", model_file, tmp_path / "rows.parquet"),
    ):
        assert is_one_line(fails(*arguments))
    (tmp_path / "rows.csv").write_bytes(b"a,b,c\n\x1b[31m\x9b\x8f\n")
    assert is_one_line(fails("fit", tmp_path / "rows.csv", "--target", "a", "-o", tmp_path / "m"))
    assert is_one_line(fails("predict", model_file, f"none{HOSTILE[:-1]}\n.csv"))
    renamed = iris.rename(columns={"petal length": HOSTILE}).replace("setosa", "\x1b[2J")
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1)
    certree.save(model.fit(renamed.drop(columns="kind"), renamed["kind"]), model_file)
    rows = write(renamed, tmp_path / "rows.parquet")
    assert is_plain(succeeds("info", model_file))
    assert is_plain(succeeds("explain", model_file, rows))


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(tmp_path, iris):
    iris["name"] = [f"flower {i}" for i in range(150)]
    table = write(iris, tmp_path / "table.csv")
    arguments = ("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    result = call(*arguments, "--test-size", 0)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: feature 'name' has 150 categories in 150 rows")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "MODEL", "ROWS", "-o", "full.csv"),
        ("explain", "MODEL", "ROWS", "-o", "full.csv"),
        ("export", "MODEL", "-o", "full.onnx"),
        ("fit", "ROWS", "--target", "kind", "-o", "/dev/full", "--quiet", "--test-size", 0),
        ("plot", "tree", "MODEL", "-o", "/dev/full"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_full_device_is_named(tmp_path, monkeypatch, iris, model_file, arguments):
    monkeypatch.chdir(tmp_path)
    for suffix in (".csv", ".onnx"):
        (tmp_path / f"full{suffix}").symlink_to("/dev/full")
    paths = {"MODEL": model_file, "ROWS": write(iris, tmp_path / "rows.csv")}
    place = next(str(one) for one in arguments if "full" in str(one))
    message = fails(*(paths.get(one, one) for one in arguments))
    assert message == f"error: {place}: No space left on device\n"


@contextmanager
def ordinary_user():
    """Drop the permissions of root in the body; other users stay who they are."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="there is nobody else to be")
def test_missing_write_permission_is_an_error(iris, model_file):
    # Folders of pytest are closed to others.
    with TemporaryDirectory() as name:
        directory = Path(name)
        rows, kept = write(iris, directory / "rows.csv"), directory / "kept.csv"
        model = directory / "model"
        model.write_bytes(model_file.read_bytes())
        kept.write_text("old")
        kept.chmod(0o400)
        succeeds("predict", model, rows)  # imports what a library in a closed folder has
        directory.chmod(0o555)
        try:
            with ordinary_user():
                for place in ("new.csv", "kept.csv"):
                    message = fails("predict", model, rows, "-o", directory / place)
                    assert f"{place} cannot be written: no permission to write to" in message
        finally:
            directory.chmod(0o755)
        assert names(directory) == ["kept.csv", "model", "rows.csv"]


def test_a_table_without_rows_is_named(tmp_path, iris, model_file):
    rows = tmp_path / "rows.csv"
    rows.write_text(",".join(iris.columns) + "\n")
    assert f"FILE must have at least one row to explain, but {rows} has none" in fails(
        "explain", model_file, rows
    )
    for command in ("evaluate", "certify", "report"):
        message = fails(command, model_file, rows, "--target", "kind")
        assert f"FILE must have at least one row, but {rows} has no rows: pass a table" in message
    (tmp_path / "folder").mkdir()
    for name in "ab":
        (tmp_path / "folder" / f"{name}.csv").write_text(rows.read_text())
    for command in ("evaluate", "certify"):
        message = fails(command, model_file, tmp_path / "folder", "--target", "kind")
        assert "FILE must have at least one row, but" in message


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_separator_is_announced(tmp_path, separator):
    lines = [f"{i % 7}.5{separator}{'xy'[i % 2]}\n" for i in range(40)]
    (tmp_path / "rows.csv").write_text(f"a{separator}kind\n" + "".join(lines))
    arguments = ("fit", tmp_path / "rows.csv", "--target", "kind", "-o", tmp_path / "model")
    result = call(
        *arguments, "--test-size", 0, "--set", "lambda_error=1", "--set", "lambda_penalty=1"
    )
    assert "rows.csv: separated by " in result.stderr
    assert "a: number" in result.stderr


def test_integers_beyond_float64_are_refused(tmp_path):
    ids = 2**53 + np.arange(60)
    for suffix in (".csv", ".parquet"):
        table = pd.DataFrame({"account": ids, "kind": np.arange(60) % 2})
        rows = write(table, tmp_path / f"rows{suffix}")
        message = fails("fit", rows, "--target", "kind", "-o", tmp_path / "model")
        assert "feature 'account' must hold numbers that float64 represents exactly" in message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("has_mark", [True, False], ids=["mark", "no mark"])
def test_text_in_unicode_is_read(tmp_path, iris, encoding, has_mark):
    mark = "\ufeff" if has_mark and encoding in ("utf-16-le", "utf-16-be") else ""
    content = (mark + iris.to_csv(index=False)).encode(encoding)
    (tmp_path / "rows.csv").write_bytes(content)
    arguments = ("fit", tmp_path / "rows.csv", "--target", "kind", "-o", tmp_path / "model")
    assert "150 rows, 4 features" in succeeds(*arguments, "--quiet")


# -- the other models, files and answers -----------------------------------------------------------


def test_the_version_is_printed():
    assert succeeds("--version").strip() == f"certree {certree.__version__}"


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_large_package(option):
    code = (
        "import sys; from certree.__main__ import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, option], capture_output=True, text=True, check=True
    )
    assert "certree.cli.app" in done.stderr.split()
    assert not {"sklearn", "pandas", "scipy.stats", "matplotlib"} & {*done.stderr.split()}


def test_the_help_page_shows_the_first_paragraph_of_each_command():
    for name, (module, _, summary) in _COMMANDS.items():
        function = getattr(import_module(f"certree.cli.{module}"), name)
        assert " ".join(inspect.getdoc(function).split("\n\n")[0].split()) == summary
    assert [*_COMMANDS] == [*get_group(app).commands]
    loaded = {command.callback.__name__ for command in _loaded_commands.registered_commands}
    assert loaded == {*_COMMANDS}


@pytest.mark.parametrize(
    "name", ["boosted", "forest", "certified-forest", "certified", "certified-boosted"]
)
def test_ensembles_are_fitted_and_predict(tmp_path, iris, name):
    table, model_file = write(iris, tmp_path / "table.csv"), tmp_path / "model"
    arguments = ("fit", table, "--target", "kind", "-o", model_file, "--quiet", "--test-size", 0)
    text = succeeds(*arguments, "--model", name)
    model = certree.load(model_file)
    if name != "certified":
        assert f"{len(model.trees_)} trees with " in text
    if "certified" in name:
        assert str(model.certificate_) in text
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model_file, table)))
    expected = model.predict_proba(iris.drop(columns="kind"))
    np.testing.assert_allclose(predicted.iloc[:, 1:], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["boosted", "forest"])
def test_ensembles_predict_numbers(tmp_path, iris, name):
    table, model_file = write(iris.drop(columns="kind"), tmp_path / "table.csv"), tmp_path / "model"
    arguments = ("--target", "petal width", "--regression", "-o", model_file, "--quiet")
    text = succeeds("fit", table, *arguments, "--model", name)
    assert "Root mean squared error" in text
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model_file, table)))
    assert list(predicted) == ["prediction"]
    assert np.abs(predicted["prediction"] - iris["petal width"]).mean() < 0.2


@pytest.mark.parametrize("name", ["certified", "certified-boosted"])
def test_certified_regressors_write_intervals(tmp_path, iris, name):
    table, model_file = write(iris.drop(columns="kind"), tmp_path / "table.csv"), tmp_path / "model"
    arguments = ("--target", "petal width", "--regression", "-o", model_file, "--quiet")
    fit = ("fit", table, *arguments, "--model", name)
    assert "repeat other rows, target included" in fails(*fit, "--duplicates", "refuse")
    text = succeeds(*fit, "--duplicates", "genuine")
    model = certree.load(model_file)
    assert str(model.certificate_) in text
    predicted = pd.read_csv(io.StringIO(succeeds("predict", model_file, table)))
    band = model.predict_interval(iris.drop(columns=["kind", "petal width"]))
    np.testing.assert_allclose(predicted[["lower", "upper"]], band, rtol=1e-12)


def test_fit_prints_test_scores_of_a_first_fit(tmp_path, iris, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(iris, tmp_path / "table.csv")
    arguments = ("fit", "table.csv", "--target", "kind", "--quiet")
    text = succeeds(*arguments, "--test-size", 0.4)
    test, train = np.split(np.random.default_rng(0).permutation(150), [60])
    features, kinds = iris.drop(columns="kind").to_numpy(), iris["kind"].to_numpy()
    first = PACBayesTreeClassifier(random_state=0).fit(features[train], kinds[train])
    error = np.mean(first.predict(features[test]) != kinds[test])
    assert f"on 60 test rows, held out from a first fit:\n  Error {100 * error:.1f} %" in text
    counts = collections.Counter(kinds[test])
    most = counts.most_common()[0][0]
    assert f"%), always {most} {100 * np.mean(kinds[test] != most):.1f} %\n" in text
    entropy = -sum(count / 60 * np.log(count / 60) for count in counts.values())
    assert f"), class frequencies {entropy:.4g}\n" in text
    assert "no better" not in text
    numbers = ("fit", "table.csv", "--target", "petal width", "--quiet", "--regression")
    width = iris["petal width"].to_numpy()
    test, train = np.split(np.random.default_rng(0).permutation(150), [30])
    error_of_mean = np.sqrt(np.mean((width[test] - width[test].mean()) ** 2))
    assert f"), always the mean {error_of_mean:.4g}\n" in succeeds(*numbers)
    assert "next: certree predict table.certree NEW.csv" in text
    assert names(tmp_path) == ["table.certree", "table.csv"]
    assert "held out" not in succeeds(*arguments, "--test-size", 0)
    assert "--test-size must lie in" in fails(*arguments, "--test-size", 1)
    assert "exclude each other" in fails(*arguments, "--regression", "--classification")


def test_fit_prints_that_a_table_has_one_class(tmp_path, iris):
    table = write(iris[iris["kind"] == "setosa"], tmp_path / "table.csv")
    text = succeeds("fit", table, "--target", "kind", "-o", tmp_path / "model", "--quiet")
    assert "a single class, setosa 100.0 %: nothing else can be predicted; tree of 1 leaf" in text


@pytest.mark.parametrize("model", ["boosted", "forest", "naive-bayes", "certified-boosted"])
def test_chosen_settings_are_printed_on_request(tmp_path, iris, model):
    table = write(iris.drop_duplicates(), tmp_path / "table.csv")
    arguments = ("fit", table, "--target", "kind", "-o", tmp_path / "model", "--model", model)
    assert "chosen settings:" not in succeeds(*arguments, "--quiet")
    (line,) = re.findall("chosen settings: (.*)", succeeds(*arguments, "--quiet", "--verbose"))
    fitted = certree.load(tmp_path / "model")
    if model in ("boosted", "certified-boosted"):
        assert f"n_iter {fitted.n_iter_}, max_leaf_nodes {fitted.max_leaf_nodes_}" in line
    elif model == "forest":
        assert line == "none, as all settings were given"
    else:
        assert line.endswith(f"power {fitted.power_:.3g}")


@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv", ".tsv.gz"])
def test_compressed_tables_and_those_with_tabs_are_read(tmp_path, iris, suffix):
    table, model_file = tmp_path / f"table{suffix}", tmp_path / "model"
    iris.to_csv(table, index=False, sep="\t" if "tsv" in suffix else ",")
    succeeds("fit", table, "--target", "kind", "-o", model_file, "--quiet")
    expected = certree.load(model_file).predict(iris.drop(columns="kind"))
    for place in (tmp_path / "out.csv.gz", tmp_path / "out.tsv"):
        succeeds("predict", model_file, table, "-o", place)
        out = pd.read_csv(place, sep="\t" if place.suffix == ".tsv" else ",")
        np.testing.assert_array_equal(out["prediction"], expected)


def test_a_table_may_come_from_standard_input_and_go_to_standard_output(iris, model_file):
    content = iris.drop(columns="kind").to_csv(index=False)
    arguments = ["predict", str(model_file), "-", "-o", "-"]
    result = CliRunner(**APART).invoke(app, arguments, input=content)
    assert result.exit_code == 0
    predicted = pd.read_csv(io.StringIO(result.stdout))
    expected = certree.load(model_file).predict(iris.drop(columns="kind"))
    np.testing.assert_array_equal(predicted["prediction"], expected)
    result = CliRunner(**APART).invoke(app, ["fit", "-", "--target", "kind"], input=content)
    assert "--output must name the model file" in result.stderr


def test_evaluate_scores_a_model_and_reports_rows_of_its_fit(tmp_path, iris):
    old, new = iris[::2], iris[1::2].drop_duplicates().merge(iris[::2], how="left", indicator=True)
    new = new[new["_merge"] == "left_only"].drop(columns="_merge")
    model_file = tmp_path / "model"
    table = write(old, tmp_path / "old.csv")
    succeeds("fit", table, "--target", "kind", "-o", model_file, "--quiet")
    rows = write(new, tmp_path / "new.csv")
    text = succeeds("evaluate", model_file, rows, "--target", "kind")
    predicted = certree.load(model_file).predict(new.drop(columns="kind"))
    error = np.mean(predicted != new["kind"])
    assert f"PACBayesTreeClassifier on {len(new)} rows" in text
    assert f"Error {100 * error:.1f} %" in text
    assert "also occur" not in text
    counts = new["kind"].value_counts()
    assert f", always {counts.index[0]} {100 * (1 - counts.iloc[0] / len(new)):.1f} %" in text
    text = succeeds("evaluate", model_file, table, "--target", "kind")
    assert "75 rows also occur among the rows of the fit" in text
    known = write(pd.concat([old[:1], new]), tmp_path / "known.csv")
    text = succeeds("evaluate", model_file, known, "--target", "kind")
    assert "1 row also occurs among the rows of the fit" in text


def test_info_prints_the_contents_of_a_model_file(tmp_path, iris, model_file):
    text = succeeds("info", model_file)
    assert "PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1)" in text
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    assert "\n".join(["4 features:", *(f"  {name}: number" for name in names)]) in text
    assert "classes: setosa, versicolor, virginica" in text
    assert certree.load(model_file).export_text(max_leaves=8) in text
    document = json.loads(succeeds("info", model_file, "--json"))
    assert document["classes"] == ["setosa", "versicolor", "virginica"]
    assert document["positive"] is None
    assert document["features"] == [{"name": name, "type": "number"} for name in names]
    assert document["sha256"] == hashlib.sha256(model_file.read_bytes()).hexdigest()
    assert document["parameters"]["lambda_error"] == 1.0
    assert document["certificate"] is None


def test_the_positive_class_is_named_and_explained_in_all_rows(tmp_path, loans):
    _, printed = fit_loans(tmp_path, "--test-size", "0")
    place, new, out = tmp_path / "m.certree", tmp_path / "new.csv", tmp_path / "out.csv"
    share = 100 * np.mean(loans["default"][:800] == "yes")
    assert f"2 classes (no {100 - share:.1f} %, yes {share:.1f} %)" in printed
    for text in (printed, succeeds("info", place)):
        line = "positive class: yes (evaluate, certify and other commands choose another by --positive)"
        assert f"\n{line}\n" in text
    document = json.loads(succeeds("info", place, "--json"))
    assert (document["positive"], document["rows"]) == ("yes", 800)
    model = certree.load(place)
    X = loans[800:][list(model.feature_names_in_)]
    assert len(set(model.predict(X[:20]))) == 2
    text = succeeds("explain", place, new, "--rows", "0-19")
    assert (text.count("P(yes)"), text.count("P(no)")) == (20, 0)
    for positive, options in (("yes", []), ("no", ["--positive", "no"])):
        succeeds("explain", place, new, "--rows", "0-19", *options, "-o", out)
        table = pd.read_csv(out)
        assert set(table["unit"]) == {f"probability of {positive}"}
        sums = table["base"] + table[list(model.feature_names_in_)].sum(axis=1)
        np.testing.assert_allclose(sums, table[f"probability_{positive}"], atol=1e-9)
        assert table["prediction"].tolist() == model.predict(X[:20]).tolist()


def test_explained_rows_have_their_keys(tmp_path, loans):
    fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=5", "--drop", "branch")
    place, new, out = tmp_path / "m.certree", tmp_path / "new.csv", tmp_path / "out.parquet"
    frame = loans[800:].assign(key=np.arange(400) + 7, code=[f"{i:05d}" for i in range(400)])
    frame["code"] = [*frame["code"][:-1], "NA"]
    frame.to_csv(new, index=False)
    keep = ["--keep", "key", "--keep", "code"]
    assert "row 3, key = 10, code = 00003\n" in succeeds("explain", place, new, "--row", 3, *keep)
    assert "\nrow 2, code = 00002\n" in succeeds(
        "explain", place, new, "--rows", "1-2", "--keep", "code"
    )
    document = json.loads(succeeds("explain", place, new, "--rows", "5,1", *keep, "--json"))
    assert (document["model"], document["rows"]) == ("BoostedTreesClassifier", 2)
    rows = document["explanations"]
    assert [(row["row"], row["key"], row["code"]) for row in rows] == [
        (5, "12", "00005"),
        (1, "8", "00001"),
    ]
    assert {row["unit"] for row in rows} == {"raw score of yes"}
    document = json.loads(succeeds("explain", place, new, *keep, "-o", out, "--json"))
    assert document == {"model": "BoostedTreesClassifier", "rows": 400, "output": str(out)}
    table = pd.read_parquet(out)
    assert table["key"].tolist() == (np.arange(400) + 7).tolist()
    assert table["code"].tolist() == frame["code"].tolist()
    assert "must not name a feature" in fails("explain", place, new, "--keep", "income", "-o", out)
    assert "there is no column 'nix'" in fails("explain", place, new, "--keep", "nix")
    assert "--json and --plot" in fails("explain", place, new, "--json", "--plot", "a.png")


def test_keys_that_are_integers_stay_integers_in_parquet(tmp_path, loans):
    fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=5")
    keys = {
        "key": [*map(str, range(400))],
        "code": [f"{i:05d}" for i in range(400)],
        "some": ["" if i % 2 else str(-i) for i in range(400)],
        "none": [""] * 400,
        "long": [str(10**30 + i) for i in range(400)],
    }
    (tmp_path / "parts").mkdir()
    frame = loans[800:].assign(**keys)
    frame[:300].to_csv(tmp_path / "parts" / "1.csv", index=False)
    frame[300:].assign(late="x").to_csv(tmp_path / "parts" / "2.csv", index=False)
    keep = [word for name in keys for word in ("--keep", name)]
    for suffix in (".parquet", ".csv"):
        place = tmp_path / f"out{suffix}"
        succeeds("predict", tmp_path / "m.certree", tmp_path / "parts", *keep, "-o", place)
    schema = pyarrow.parquet.read_schema(tmp_path / "out.parquet")
    types = {name: str(schema.field(name).type) for name in keys}
    string = dict.fromkeys(["code", "none", "long"], "string")
    assert types == {"key": "int64", "some": "int64"} | string
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert table["key"].tolist() == [*range(400)]
    assert table["some"].isna().sum() == 200
    printed = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert all(printed[name].tolist() == values for name, values in keys.items())
    write(frame.assign(key=keys["key"]), tmp_path / "typed.parquet")
    place = tmp_path / "again.parquet"
    succeeds(
        *("predict", tmp_path / "m.certree", tmp_path / "typed.parquet"),
        *("--keep", "key", "-o", place),
    )
    assert str(pyarrow.parquet.read_schema(place).field("key").type) in ("string", "large_string")


def test_fit_and_info_name_the_calendar_parts_that_a_model_reads(tmp_path):
    rng = np.random.default_rng(0)
    opened = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 10**7, 900), unit="s")
    is_late = (opened.day_of_week >= 5) ^ (rng.random(900) < 0.05)
    weekly = {
        "opened": opened,
        "town": rng.choice(["a", "b"], 900),
        "late": np.where(is_late, "y", "n"),
    }
    table, model_file = tmp_path / "rows.csv", tmp_path / "model"
    fit = ("fit", table, "--target", "late", "--model", "boosted", "-o", model_file)
    pd.DataFrame(weekly).to_csv(table, index=False, date_format="%d.%m.%Y %H:%M:%S")
    line = "opened: date, dd/mm/yyyy with time; the model reads its weekday"
    assert line in succeeds(*fit).splitlines()
    text = succeeds("info", model_file)
    assert f"2 features:\n  {line}\n  town: category\n" in text
    # Without parts the fit has no such line; other files have no format, but time zones.
    plain = {
        **weekly,
        "opened": opened.tz_localize("Europe/Zurich", ambiguous=True),
        "late": opened > opened[0],
    }
    table = write_as(pd.DataFrame(plain), tmp_path / "rows.parquet")
    assert "the model reads" not in succeeds(fit[0], table, *fit[2:], "--set", "max_iter=3")
    text = succeeds("info", model_file)
    assert "  opened: date with time, time zone Europe/Zurich\n" in text


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_evaluate_lists_the_columns_of_the_file_if_the_target_is_missing(
    tmp_path, iris, model_file, name
):
    rows = write_as(iris.assign(other=1).rename(columns={"kind": "species"}), tmp_path / name)
    message = fails("evaluate", model_file, rows, "--target", "nokind")
    assert "nokind" in message
    assert name in message
    assert "species" in message
    assert "other" in message


def test_predict_names_a_file_without_rows(tmp_path, iris, model_file):
    rows = write(iris[:0], tmp_path / "empty.csv")
    assert f"{rows} holds no rows" in fails("predict", model_file, rows)


def test_info_prints_size_rows_and_hash(tmp_path, iris):
    X, y = iris.drop(columns="kind"), iris["kind"]
    place = tmp_path / "model"
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    n_leaves = int((model.trees_.left < 0).sum())
    certree.save(model, place)
    lines = succeeds("info", place).splitlines()
    size = f"size: {len(model.trees_)} trees with {n_leaves} leaves in total, in 3 rounds of "
    size += "at most 31 leaves, with learning rate 0.1, and 6 drawn thresholds"
    assert f"{size}, fitted to 150 rows" in lines
    assert lines[-1] == f"SHA-256 of the file: {hashlib.sha256(place.read_bytes()).hexdigest()}"
    card = certree.show.model_card(model, X, y)
    assert lines[-1].removeprefix("SHA-256 of the file: ") in card
    # Without hashes of the rows their number is not known.
    certree.save(model, place, sample_hashes=False)
    lines = succeeds("info", place).splitlines()
    assert size in lines


def test_info_lists_twelve_features(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 14)))
    model = PrunedTreeClassifier(random_state=0).fit(X.add_prefix("x").to_numpy(), X[0] > 0)
    certree.save(model, tmp_path / "model")
    lines = succeeds("info", tmp_path / "model").splitlines()
    start = lines.index("14 features:")
    assert lines[start + 12 : start + 14] == ["  x[11]: number", "  and 2 more"]


def test_a_row_is_explained_and_all_contributions_are_written(tmp_path, iris, model_file):
    rows, place = write(iris, tmp_path / "rows.csv"), tmp_path / "contributions.parquet"
    picture = tmp_path / "row.png"
    text = succeeds("explain", model_file, rows, "--row", 70, "-o", place, "--plot", picture)
    features = iris.drop(columns="kind")
    explanation = certree.load(model_file).explain(features)
    assert text.strip() == str(explanation[70]).strip()
    columns = pd.read_parquet(place)
    names = [f"probability_{name}" for name in ("setosa", "versicolor", "virginica")]
    assert list(columns)[:6] == ["row", "prediction", *names, "unit"]
    assert columns["row"].tolist() == [*range(150)]
    assert set(columns["unit"]) == {"probability"}
    np.testing.assert_array_equal(columns["prediction"], certree.load(model_file).predict(features))
    np.testing.assert_array_equal(columns[names], certree.load(model_file).predict_proba(features))
    columns = columns.iloc[:, 6:]
    assert columns.shape == (150, 3 * 5)
    assert list(columns)[:2] == ["setosa: base", "setosa: sepal length"]
    sums = columns.to_numpy().reshape(150, 3, 5).sum(axis=2)
    np.testing.assert_allclose(sums, explanation.prediction, atol=1e-12)
    assert kind_of(picture) == ".png"
    assert "--row must be below 150" in fails("explain", model_file, rows, "--row", 150)


def test_several_rows_are_explained(tmp_path, iris, model_file):
    rows, place = write(iris, tmp_path / "rows.csv"), tmp_path / "contributions.csv"
    explanation = certree.load(model_file).explain(iris.drop(columns="kind"))
    text = succeeds("explain", model_file, rows, "--rows", "0-1, 149")
    expected = "\n\n".join(f"row {i}\n{explanation[i]}" for i in (0, 1, 149))
    assert " ".join(text.split()) == " ".join(expected.split())
    options = {"0-9": range(10), "149,3-5,3": [149, 3, 4, 5, 3], "all": range(150)}
    for asked, indices in options.items():
        printed = succeeds("explain", model_file, rows, "--rows", asked, "-o", place)
        assert printed.strip() == f"{len(indices)} rows written to {place}"
        table = pd.read_csv(place)
        assert table["row"].tolist() == [*indices]
        assert list(table)[6:8] == ["setosa: base", "setosa: sepal length"]
        sums = table.iloc[:, 6:].to_numpy().reshape(len(indices), 3, 5).sum(axis=2)
        np.testing.assert_allclose(sums, explanation.prediction[[*indices]], atol=1e-12)
    renamed = write(iris.rename(columns={"sepal length": "row"}), tmp_path / "named.csv")
    fit = ("fit", renamed, "--target", "petal width", "--regression", "--drop", "kind")
    succeeds(*fit, "--quiet", "--test-size", 0, "-o", tmp_path / "named")
    succeeds("explain", tmp_path / "named", renamed, "--rows", "7", "--shapley", "-o", place)
    assert list(pd.read_csv(place))[:5] == ["row_", "prediction", "unit", "base", "row"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "3-1"], "--rows must be numbers of rows such as 3, 0-9, 3,7,20-29 or all, got"),
        (["--rows", "-1"], "got '-1'"),
        (["--rows", "1,,2"], "got '1,,2'"),
        (["--rows", "²"], "got '²'"),
        (["--rows", "7,150"], "--rows must be below 150, the number of rows, got 150"),
        (["--rows", "1", "--row", "0"], "--rows and --row exclude each other"),
        (["--rows", "1", "--plot", "a.png"], "--rows and --plot exclude each other"),
        (["--rows", "1", "--interactions"], "--rows and --interactions exclude each other"),
    ],
)
def test_rows_that_cannot_be_explained_are_named(tmp_path, iris, model_file, options, message):
    rows, place = write(iris, tmp_path / "rows.csv"), tmp_path / "contributions.csv"
    assert message in " ".join(fails("explain", model_file, rows, *options, "-o", place).split())
    assert not place.exists()


def test_rules_of_a_tree_are_printed(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--model", "certified", "--set", "max_leaf_nodes=4")
    place, positive = tmp_path / "m.certree", ["--positive", "no"]
    assert succeeds("rules", place).strip() == str(model.rules(4))
    assert "R1: if " in succeeds("rules", place)
    expected = model.rules(2, pos_label="no")
    printed = call("rules", place, *positive, "--max-leaves", 2)
    assert printed.stdout.strip() == str(expected)
    assert f"--max-leaves {model.get_n_leaves()} prints all rules" in printed.stderr
    document = json.loads(succeeds("rules", place, *positive, "--max-leaves", 2, "--json"))
    assert (document["statement"], document["delta"]) == (expected.title, 0.05)
    assert (document["positive"], document["leaves"]) == ("no", model.get_n_leaves())
    for found, rule in zip(document["rules"], expected, strict=True):
        assert found["statement"] == str(rule)
        assert found["conditions"] == [str(condition) for condition in rule.conditions]
        assert (found["number"], found["error_at_most"]) == (rule.number, rule.error_at_most)
        assert (found["prediction"], found["probability"]) == (rule.prediction, rule.probability)
        assert found["training_rows"] == rule.training_rows
        assert found["calibration_rows"] == rule.calibration_rows


def test_rules_of_a_vote_and_of_numbers_are_printed(tmp_path, iris):
    table, place = write(iris, tmp_path / "iris.csv"), tmp_path / "model"
    fit = ("fit", table, "--quiet", "--test-size", 0, "-o", place, "--target")
    succeeds(*fit, "petal width", "--regression", "--model", "tree")
    model = certree.load(place)
    assert model.get_n_leaves() > 16
    printed = call("rules", place)
    assert printed.stdout.strip() == str(model.rules(16))
    assert f"the tree has {model.get_n_leaves()} leaves" in printed.stderr
    document = json.loads(succeeds("rules", place, "--json"))
    assert document["rules"][0]["prediction"] == model.rules(16)[0].prediction
    assert document["rules"][0]["number"] is None
    assert "target has no classes" in fails("rules", place, "--positive", "1")
    succeeds(*fit, "kind", "--model", "boosted", "--set", "max_iter=2")
    assert "MODEL must be a single tree to have rules, got Boosted" in fails("rules", place)


def test_a_row_has_shapley_values_and_features_act_together(tmp_path, iris, model_file):
    rows, picture = write(iris, tmp_path / "rows.csv"), tmp_path / "picture.png"
    features = iris.drop(columns="kind").to_numpy()
    model = certree.load(model_file)
    background = features[np.random.default_rng(0).choice(150, 100, replace=False)]
    text = succeeds("explain", model_file, rows, "--row", 70, "--shapley", "--plot", picture)
    model.__dict__.pop("feature_names_in_")
    expected = shapley_values(model, features[70:71], background)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    expected = replace(expected, feature_names=names)
    assert text.strip() == str(expected).strip()
    assert kind_of(picture) == ".png"
    text = succeeds("explain", model_file, rows, "--interactions", "--plot", picture)
    shares = replace(interaction_fractions(model, features), feature_names=names)
    assert text.strip() == str(shares).strip()


def test_the_report_is_one_page(tmp_path, iris, model_file):
    rows, page = write(iris, tmp_path / "rows.csv"), tmp_path / "page.html"
    succeeds("report", model_file, rows, "--target", "kind", "-o", page)
    content = page.read_text()
    assert content.lower().startswith("<!doctype html>")
    assert "petal length" in content


def test_pages_have_no_suffix_of_another_format(tmp_path):
    # Neither model nor table exists, so that the suffix is checked first.
    report = ("report", tmp_path / "model", tmp_path / "rows.csv", "--target", "y")
    for command in (report, ("demo",)):
        message = fails(*command, "-o", tmp_path / "page.PDF")
        assert "the name of an HTML page must end in one of .html, .htm, got" in message
        assert f"write {tmp_path / 'page.html'} instead" in message
        assert "must end in" in fails(*command, "-o", tmp_path / "page.md")
    card = (*report, "--card", "-o")
    message = "a model card must end in one of .html, .htm, .md, .markdown, .txt, got"
    assert message in fails(*card, tmp_path / "card.pdf")
    for name in ("page", "page.htm"):
        assert "must end in" not in fails(*report, "-o", tmp_path / name)
        assert "must end in" not in fails(*card, tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("what", ["tree", "importance", "calibration"])
def test_figures_are_drawn(tmp_path, iris, model_file, what, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = write(iris, tmp_path / "rows.csv")
    succeeds("plot", what, model_file, rows, "--target", "kind")
    assert kind_of(tmp_path / f"{what}.png") == ".png"


def test_figures_of_rows_need_rows(model_file):
    assert "FILE and --target must be given" in fails("plot", "calibration", model_file)


@pytest.mark.parametrize(
    "suffix", [".onnx", ".sql", ".json", ".c", ".java", ".js", ".mjs", ".joblib"]
)
def test_models_are_exported_by_the_suffix_of_the_file(tmp_path, model_file, suffix):
    place = tmp_path / f"Exported{suffix}"
    printed = succeeds("export", model_file, "-o", place, "--table", "flowers")
    content, model = place.read_bytes(), certree.load(model_file)
    assert f"written to {place} ({format_file_size(len(content))})" in " ".join(printed.split())
    if suffix == ".onnx":
        assert content == model.to_onnx().SerializeToString()
    elif suffix == ".sql":
        assert content.decode().strip() == model.to_sql("flowers")
    elif suffix == ".json":
        assert strict_json(place) == json.loads(json.dumps(model.to_dict()))
    elif suffix in (".c", ".java", ".js", ".mjs"):
        language = {".c": "c", ".java": "java"}.get(suffix, "javascript")
        names = {} if language == "javascript" else {"name": "Exported"}
        assert content.decode() == model.to_code(language, **names)
    else:
        assert joblib.load(place).get_n_leaves() == model.to_sklearn().get_n_leaves()


def test_exports_keep_columns_and_have_named_inputs(tmp_path, model_file):
    model, query, graph = certree.load(model_file), tmp_path / "m.sql", tmp_path / "m.onnx"
    succeeds(*("export", model_file, "-o", query, "--keep", "id", "--keep", "day"))
    assert query.read_text().strip() == model.to_sql("rows", keep=["id", "day"])
    succeeds(*("export", model_file, "-o", graph, "--inputs", "named"))
    assert graph.read_bytes() == model.to_onnx("auto", inputs="named").SerializeToString()
    message = fails("export", model_file, "-o", graph, "--keep", "id")
    assert "--keep needs an --output that ends in .sql" in message
    message = fails("export", model_file, "-o", query, "--inputs", "matrix")
    assert "--inputs needs an --output that ends in .onnx" in message


def test_statements_have_the_threshold_of_a_class(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=5")
    place, query, graph = (tmp_path / name for name in ("m.certree", "m.sql", "m.onnx"))
    positive = ["--positive", "no"]
    succeeds("export", place, "-o", query, "--threshold", "0.7", *positive)
    assert query.read_text().strip() == model.to_sql("rows", threshold=0.7, pos_label="no")
    succeeds("export", place, "-o", graph, *positive)
    assert graph.read_bytes() == model.to_onnx(pos_label="no").SerializeToString()
    for message, output, *options in (
        ("--threshold needs an --output that ends in .sql, got", graph, "--threshold", "0.7"),
        ("--positive needs an --output that ends in .sql or .onnx", tmp_path / "m.c", *positive),
        ("--positive no changes --threshold only: give", query, *positive),
        ("threshold must lie in [0, 1], got 7.0", query, "--threshold", "7"),
    ):
        assert message in " ".join(fails("export", place, "-o", output, *options).split())


def test_models_without_export_are_refused(tmp_path, iris, model_file):
    message = fails("export", model_file, "-o", tmp_path / "model.pmml")
    assert (
        "--output must end in one of .onnx, .sql, .json, .c, .java, .js, .mjs, .joblib" in message
    )
    table = write(iris, tmp_path / "table.csv")
    bayes = tmp_path / "bayes"
    succeeds(*("fit", table, "--target", "kind", "-o", bayes, "--model", "naive-bayes"))
    assert "must consist of trees to be exported" in fails(
        "export", bayes, "-o", tmp_path / "model.json"
    )


@pytest.mark.slow
def test_the_demo_writes_a_comparison_a_certificate_and_a_report(tmp_path, monkeypatch):
    few = {name: COMPARED_METHODS[name] for name in [*COMPARED_METHODS][::3]}
    monkeypatch.setattr("certree.cli.method_comparison.METHODS", few)
    page = tmp_path / "demo.html"
    text = succeeds("demo", "-o", page, "--repeats", 1, "--quiet")
    content = page.read_text()
    for name in few:
        assert name in text
        assert name in content
    assert "With probability at least 95 %" in text
    assert "With probability at least 95 %" in content
    assert "base" in text
    assert 'id="comparison"' in content
    assert 'id="certified-tree"' in content
    assert len(content) < 2e6


def test_the_scores_of_the_demo_fit_in_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    _print_scores([MethodScores(name, 0.1, 0.2, 0.3, 12.5) for name in COMPARED_METHODS], 10)
    text = capsys.readouterr().out
    assert "fit time" in text
    for name in COMPARED_METHODS:
        assert f" {name} " in text


# -- settings, weights, groups, slopes and thresholds -------------------------------------------------


@pytest.fixture(name="loans")
def loans_table(tmp_path):
    """A table of loans with weights and branches, written to two files: for fits and new rows."""
    rng = np.random.default_rng(0)
    n = 1200
    frame = pd.DataFrame({"income": rng.normal(size=n), "debt": rng.normal(size=n)})
    frame["rows"] = rng.integers(1, 4, n)
    frame["branch"] = rng.choice(["north", "south"], n)
    risky = 1 / (1 + np.exp(1.5 + frame["income"] - frame["debt"]))
    frame["default"] = np.where(rng.random(n) < risky, "yes", "no")
    frame[:800].to_csv(tmp_path / "loans.csv", index=False)
    frame[800:].to_csv(tmp_path / "new.csv", index=False)
    return frame


def fit_loans(tmp_path, *options):
    model = tmp_path / "m.certree"
    file = tmp_path / "loans.csv"
    printed = succeeds("fit", file, "--target", "default", "-o", model, "--quiet", *options)
    return certree.load(model), printed


FEATURES = ["income", "debt"]


def test_settings_of_a_fit_are_set(tmp_path, loans):
    settings = ["--set", "learning_rate=.05", "--set", "max_iter=7", "--set", "max_leaf_nodes=4"]
    model, _ = fit_loans(tmp_path, "--model", "boosted", *settings)
    assert (model.learning_rate, model.max_iter, model.max_leaf_nodes) == (0.05, 7, 4)
    model, printed = fit_loans(tmp_path, "--model", "certified", "--set", "max_leaf_nodes=4")
    assert model.get_n_leaves() <= 4
    assert str(model.certificate_) in printed
    model, _ = fit_loans(tmp_path, "--set", "grower__criterion=gini", "--set", "cv=3")
    assert model.grower.criterion == "gini"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "max_depth"], "--set must be NAME=VALUE"),
        (["--set", "=3"], "--set must be NAME=VALUE"),
        (["--set", "cv=3", "--set", "cv=4"], "cv is given twice"),
        (["--set", "n_jobs=2"], "does not take n_jobs: use --jobs"),
        (["--set", "depth=3"], "has no parameter 'depth': use max_depth"),
        (["--set", "speed=3"], "got 'speed': name one of"),
        (["--set", "cv=many"], "'cv' parameter|cv"),
        (["--grower", "kd", "--set", "grower=cart"], "--set grower and --grower set the same"),
        (["--weights", "weight"], "no column 'weight' beside the target"),
        (["--weights", "default"], "no column 'default' beside the target"),
        (
            ["--model", "naive-bayes", "--groups", "branch"],
            "--groups is not for NaiveBayesClassifier",
        ),
        (["--increasing", "age"], "there is no feature 'age': name one of"),
        (["--increasing", "debt", "--decreasing", "debt"], "both name 'debt'"),
        (["--model", "naive-bayes", "--increasing", "debt"], "no monotonic constraints"),
    ],
)
def test_invalid_settings_are_refused(options, message, tmp_path, loans):
    error = fails("fit", tmp_path / "loans.csv", "--target", "default", *options)
    assert re.search(message, error)
    assert not list(tmp_path.glob("*.certree"))


@pytest.mark.parametrize("name", ["tree", "pruned", "certified", "boosted", "forest"])
def test_trees_are_limited_by_options(tmp_path, loans, name):
    limits = ["--max-leaf-nodes", 5, "--max-depth", 3]
    fast = {"boosted": ["--set", "max_iter=2"], "forest": ["--set", "n_estimators=2"]}
    model, _ = fit_loans(tmp_path, "--model", name, *limits, *fast.get(name, []))
    inner = model if hasattr(model, "max_leaf_nodes") else model.grower
    assert (inner.max_leaf_nodes, model.max_depth) == (5, 3)
    trees = getattr(model, "trees_", None)
    n_leaves = model.get_n_leaves() if trees is None else max((one.left < 0).sum() for one in trees)
    assert 1 < n_leaves <= 5


def test_a_limit_of_leaves_may_have_its_grower(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--model", "pruned", "--grower", "cart", "--max-leaf-nodes", 4)
    assert repr(model.grower) == "Cart(max_leaf_nodes=4)"
    file = tmp_path / "loans.csv"
    fit = ["fit", file, "--target", "default", "--max-leaf-nodes", 4, "--model"]
    same = "and --max-leaf-nodes set the same parameter: give one"
    for message, *options in (
        ("--max-leaf-nodes is not for --grower kd", "tree", "--grower", "kd"),
        ("--max-leaf-nodes is not for --model naive-bayes", "naive-bayes"),
        (f"--set grower__max_leaf_nodes {same}", "pruned", "--set", "grower__max_leaf_nodes=3"),
        (f"--set grower {same}", "pruned", "--set", "grower=kd"),
        (f"--set max_leaf_nodes {same}", "certified", "--set", "max_leaf_nodes=3"),
    ):
        assert message in " ".join(fails(*fit, *options).split())
    options = ["--max-leaf-nodes", 4, "--set", "grower__max_leaf_nodes=30"]
    model, _ = fit_loans(tmp_path, "--model", "certified", *options)
    assert (model.max_leaf_nodes, model.grower.max_leaf_nodes) == (4, 30)


def test_weights_of_a_fit_are_a_column(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--weights", "rows", "--set", "cv=3")
    assert list(model.feature_names_in_) == ["income", "debt", "branch"]
    assert model.stats_.n[0] == loans["rows"][:800].sum()


def test_groups_of_a_fit_are_a_column(tmp_path, loans):
    model, printed = fit_loans(tmp_path, "--model", "certified", "--groups", "rows")
    assert model.certificate_.grouped
    assert model.certificate_.n < 3
    assert "rows" not in model.feature_names_in_
    assert "groups of calibration rows" in printed


def test_monotonic_constraints_are_set_by_columns(tmp_path, loans):
    slopes = ["--increasing", "debt", "--decreasing", "income"]
    model, _ = fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=20", *slopes)
    assert list(model.monotonic_cst) == [-1, 1, 0, 0]
    rows = pd.DataFrame(
        {"income": 0.0, "debt": np.linspace(-3, 3, 50), "rows": 1, "branch": "north"}
    )
    assert (np.diff(model.predict_proba(rows)[:, 1]) >= 0).all()


def test_a_threshold_changes_predictions_and_scores(tmp_path, loans):
    fit_loans(tmp_path)
    new, out = tmp_path / "new.csv", tmp_path / "predicted.csv"
    succeeds("predict", tmp_path / "m.certree", new, "--threshold", "0.1", "-o", out)
    predicted = pd.read_csv(out)
    np.testing.assert_array_equal(
        predicted["prediction"], np.where(predicted["probability_yes"] >= 0.1, "yes", "no")
    )
    usual = succeeds("evaluate", tmp_path / "m.certree", new, "--target", "default")
    other = succeeds(
        *("evaluate", tmp_path / "m.certree", new, "--target", "default", "--threshold", "0.1")
    )
    wrong = 100 * np.mean(predicted["prediction"] != loans["default"][800:].to_numpy())
    assert f"Error {wrong:.1f} %" in other
    assert usual != other
    message = fails("predict", tmp_path / "m.certree", new, "--threshold", "1.5")
    assert "threshold must lie in [0, 1], got 1.5" in message


@pytest.mark.slow
def test_the_positive_class_can_be_named(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=10")
    place, new, out = tmp_path / "m.certree", tmp_path / "new.csv", tmp_path / "out.csv"
    rows = [new, "--target", "default"]
    X, y = loans[800:][list(model.feature_names_in_)], loans["default"][800:]
    positive = ["--positive", "no"]
    succeeds("predict", place, new, "--threshold", "0.6", *positive, "-o", out)
    predicted = pd.read_csv(out)
    expected = np.where(predicted["probability_no"] >= 0.6, "no", "yes")
    np.testing.assert_array_equal(predicted["prediction"], expected)
    printed = succeeds("evaluate", place, *rows, "--threshold", "0.6", *positive)
    assert f"Error {100 * np.mean(expected != y.to_numpy()):.1f} %" in printed
    hits = np.sum((expected == "no") & (y.to_numpy() == "no"))
    assert f"Recall of no {100 * hits / np.sum(y == 'no'):.1f} %" in printed
    assert f"Precision of no {100 * hits / np.sum(expected == 'no'):.1f} %" in printed
    usual = model.predict(X)
    hits = np.sum((usual == "no") & (y.to_numpy() == "no"))
    printed = succeeds("evaluate", place, *rows, *positive)
    assert f"Precision of no {100 * hits / np.sum(usual == 'no'):.1f} %" in printed
    printed = succeeds("certify", place, *rows, "--threshold-cost", "5:1", *positive)
    curves = Guarantees.by_rows(model, X, y).thresholds(costs=(5, 1), pos_label="no")
    point = curves.lowest_cost(5, 1)
    exact = f"unrounded, as for certree predict: --threshold {point.threshold!r}"
    assert printed.strip() == f"{curves}\n{point}\n{exact}"
    page = tmp_path / "page.html"
    succeeds("report", place, *rows, "--threshold-cost", "5:1", *positive, "-o", page)
    assert "5 for a missed no" in page.read_text("utf-8")
    for picture in ("calibration", "ranking"):
        succeeds("plot", picture, place, *rows, *positive, "-o", tmp_path / f"{picture}.png")
    for options in ([], ["--shapley"]):
        assert "score of no" in succeeds("explain", place, new, *positive, *options)
    unknown = (
        "--positive must be one of two classes, but the model's classes are no, yes; got 'late'"
    )
    for message, *command in (
        (unknown, "report", place, *rows, "--positive", "late"),
        ("give --threshold as well", "predict", place, new, *positive),
        ("give --threshold-cost, --recall, --precision or", "certify", place, *rows, *positive),
        ("--positive is for plot calibration", "plot", "loss", place, *rows, *positive),
    ):
        assert message in " ".join(fails(*command).split())


def test_thresholds_are_chosen_by_recall_or_precision_and_listed(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=10")
    certify = ["certify", tmp_path / "m.certree", tmp_path / "new.csv", "--target", "default"]
    X, y = loans[800:][list(model.feature_names_in_)], loans["default"][800:]
    guarantees = Guarantees.by_rows(model, X, y)
    curves = guarantees.thresholds(pos_label="no")
    options = ["--positive", "no"]
    text = succeeds(*certify, *options, "--recall", "0.6")
    chosen = curves.highest_threshold(0.6)
    assert text.strip() == f"{curves}\n{chosen}"
    text = succeeds(*certify, *options, "--precision", "0.6")
    assert text.startswith(f"{curves}\n{curves.highest_recall(0.6)}\n")
    lines = succeeds(*certify, *options, "--threshold", "0.5", "--threshold", "0.7").splitlines()
    assert lines[0] == curves.title
    assert [line.split() for line in lines[2:]] == [
        " ".join(line).split() for line in curves.table([0.5, 0.7])[1]
    ]
    listed = [*options, "--threshold", "0.5", "--recall", "0.6", "--groups", "branch"]
    text = succeeds(*certify, *listed)
    curves = guarantees.thresholds(pos_label="no", groups=loans["branch"][800:])
    assert str(curves.highest_threshold(0.6)) in text
    document = json.loads(succeeds(*certify, *listed, "--json"))["thresholds"]
    assert document.keys() == {"statement", "highest_threshold", "table", "groups"}
    assert [point["threshold"] for point in document["table"]] == [0.5]
    for name, group in curves.groups.items():
        point = group.highest_threshold(0.6)
        assert f"{name}: {group.at(0.5)}\n{name}: {point}" in text
        found = document["groups"][name]
        assert found["highest_threshold"]["threshold"] == point.threshold
        assert found["table"][0]["recall"]["lowest"] == group.at(0.5).recall.lowest
    for message, *options in (
        ("error: --precision 0.9 is not certified", "--recall", "0.5", "--precision", "0.9"),
        ("--threshold must lie in [0, 1], got 1.5", "--threshold", "1.5"),
        ("recall must lie between 0 and 1, got 1.0", "--recall", "1"),
        ("error: --recall 0.999 is not certified at any threshold", "--recall", "0.999"),
    ):
        assert message in " ".join(fails(*certify, *options).split())


def test_thresholds_that_are_chosen_in_one_run_hold_together(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=10")
    certify = ["certify", tmp_path / "m.certree", tmp_path / "new.csv", "--target", "default"]
    X, y = loans[800:][list(model.feature_names_in_)], loans["default"][800:]
    # Bounds on the costs take half of delta, which the limits of the rates then lack.
    curves = Guarantees.by_rows(model, X, y).thresholds(costs=(5, 1), pos_label="no")
    options = ["--positive", "no", "--threshold-cost", "5:1", "--recall", "0.6"]
    text = succeeds(*certify, *options, "--precision", "0.7")
    assert f"\nlowest cost: {curves.lowest_cost(5, 1)}\n" in text
    assert f"\nhighest threshold: {curves.highest_threshold(0.6)}\n" in text
    assert f"\nhighest recall: {curves.highest_recall(0.7)}\n" in text
    end = "All statements of this run hold together, with the probability above.\n"
    assert f"\n{end}Half of delta is used for the bounds on the named costs: without " in text
    assert end not in succeeds(*certify, "--threshold-cost", "5:1")
    free = Guarantees.by_rows(model, X, y).thresholds(pos_label="no").highest_threshold(0.6)
    assert free.threshold > curves.highest_threshold(0.6).threshold  # what the last line explains
    document = json.loads(succeeds(*certify, *options, "--json"))["thresholds"]
    assert document.keys() == {"statement", "lowest_cost", "highest_threshold", "groups"}
    assert document["highest_threshold"]["threshold"] == curves.highest_threshold(0.6).threshold


def test_a_group_without_a_threshold_does_not_hide_the_others(tmp_path, loans):
    fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=10")
    new = loans[800:].assign(branch=["north"] * 20 + ["south"] * 380)
    write(new, tmp_path / "new.csv")
    certify = ["certify", tmp_path / "m.certree", tmp_path / "new.csv", "--target", "default"]
    options = ["--groups", "branch", "--recall", "0.7"]
    text = succeeds(*certify, *options)
    assert "\nsouth: At threshold" in text
    assert "\nnorth: recall=0.7 is not certified at any threshold: the highest" in text
    document = json.loads(succeeds(*certify, *options, "--json"))["thresholds"]["groups"]
    assert document["north"] == {"highest_threshold": None}
    assert document["south"]["highest_threshold"]["recall"]["lowest"] >= 0.7


def test_a_positive_number_is_named_by_its_text():
    X = [[0.0], [1.0]] * 9
    model = certree.PrunedTreeClassifier().fit(X, [0, 1] * 9)
    assert parse_positive(model, "0") == 0
    assert parse_positive(model, None) is None
    for text in ("0.0", "2"):
        with pytest.raises(ValueError, match=f"classes are 0, 1; got '{text}'"):
            parse_positive(model, text)
    with pytest.raises(ValueError, match="target has no classes; got '1'"):
        parse_positive(certree.PrunedTreeRegressor().fit(X, [0.0, 1.0] * 9), "1")


def test_a_threshold_is_refused_for_three_classes(tmp_path, iris, model_file):
    rows = write(iris, tmp_path / "rows.csv")
    error = fails("predict", model_file, rows, "--threshold", ".5")
    assert "threshold must be None unless the model is" in error


@pytest.mark.parametrize("command", ["fit", "certify", "certify folder", "report"])
def test_a_dropped_column_has_no_groups(tmp_path, loans, command):
    file, model, output = tmp_path / "new.csv", tmp_path / "m.certree", tmp_path / "out"
    if command != "fit":
        fit_loans(tmp_path, "--model", "boosted", "--set", "max_iter=2")
    if command.endswith("folder"):
        (tmp_path / "parts").mkdir()
        file = file.rename(tmp_path / "parts" / "new.csv")
    places = {"fit": [file, "-o", output], "report": [model, file, "-o", output]}
    name = command.split()[0]
    options = ["--target", "default", "--groups", "branch", "--drop", "branch"]
    message = fails(name, *places.get(command, [model, file]), *options)
    assert "--groups must name a column that is read, but --drop leaves out 'branch'" in message


def test_groups_of_dependent_rows_count_once(tmp_path, loans):
    fit_loans(tmp_path, "--model", "boosted")
    place, new = tmp_path / "m.certree", tmp_path / "new.csv"
    frame = loans[800:].assign(customer=np.arange(400) // 3)
    frame.to_csv(new, index=False)
    (tmp_path / "folder").mkdir()
    frame.to_csv(tmp_path / "folder" / "new.csv", index=False)
    for rows in (new, tmp_path / "folder"):
        command = ["certify", place, rows, "--target", "default", "--dependent"]
        printed = succeeds(*command, "customer")
        assert "134 groups of calibration rows" in printed
        assert "'nix' beside the target" in fails(*command, "nix")
        assert "--dependent must name a column that is read" in fails(
            *command, "customer", "--drop", "customer"
        )
        for other in (["--groups", "branch"], ["--threshold-cost", "5:1"]):
            assert "need independent rows" in fails(*command, "customer", *other)


@pytest.fixture
def visits(tmp_path):
    """Write tables of rows in time order: "rows.csv", shuffled, and the later "new.csv"."""
    rng = np.random.default_rng(0)
    day = pd.date_range("2026-01-05 12:00", periods=600, freq="6h")
    frame = pd.DataFrame({"day": day.strftime("%Y-%m-%d %H:%M"), "a": rng.normal(size=600)})
    frame["y"] = np.where(frame["a"] + 0.5 * rng.normal(size=600) > 0, "yes", "no")
    frame[:450].sample(frac=1, random_state=0).to_csv(tmp_path / "rows.csv", index=False)
    frame[450:].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


PERIOD = "of the 158 calibration rows from 19 March 2026 to 27 April 2026, "


def test_fits_in_time_order_test_and_certify_by_the_latest_rows(visits):
    rows, place = visits / "rows.csv", visits / "m.certree"
    command = ["fit", rows, "--target", "y", "--model", "certified-boosted", "-o", place]
    command += ["--set", "max_iter=20", "--time", "day", "--gap", "4"]
    printed = succeeds(*command)
    assert "on 90 test rows from 5 April 2026 to 27 April 2026, the latest, held out" in printed
    assert "the intervals take rows as independent" in printed
    assert f"{PERIOD}which may depend on each other" in printed
    table = certree.read_table(rows, target="y")
    direct = certree.CertifiedBoostedTreesClassifier(max_iter=20, random_state=0)
    direct.fit(table.to_arrow(), table.y, time="day", gap=4)
    assert certree.load(place).certificate_ == direct.certificate_
    printed = succeeds(*command, "--independent")
    assert f"{PERIOD}taken as independent" in printed
    assert "the intervals take rows as independent" not in printed
    assert PERIOD in succeeds("info", place)
    assert "--time must name a feature" in fails(*command[:-4], "--time", "y")
    months = pd.read_csv(command[1])
    months["month"] = months["day"].str[:7]
    months.to_csv(visits / "months.csv", index=False)
    text = ["fit", visits / "months.csv", "--target", "y", "--time", "month"]
    found = fails(*text)
    assert "error: --time must hold numbers or dates, got text such as '2026-0" in found
    assert "in column 'month': write whole dates" in found
    text = ["certify", place, *text[1:]]
    assert "error: --time must hold numbers or dates, got text such as '2026-0" in fails(*text)
    assert "give --time COLUMN as well" in fails(*command[:-4], "--gap", "4")
    assert "give --time COLUMN as well" in fails(*command[:-4], "--independent")
    assert "but --drop leaves out 'day'" in fails(*command, "--drop", "day")
    other = ["fit", rows, "--target", "y", "--model", "naive-bayes", "--time", "day"]
    assert "--time is not for NaiveBayesClassifier" in fails(*other)


def test_folders_are_fitted_in_time_order(visits):
    (visits / "folder").mkdir()
    frame = pd.read_csv(visits / "rows.csv")
    for i in range(3):
        frame[i::3].to_csv(visits / "folder" / f"{i}.csv", index=False)
    command = ["fit", "--target", "y", "--model", "certified", "--time", "day", "--gap", "4"]
    command += ["-o", visits / "m.certree", visits / "folder"]
    assert f"{PERIOD}which may depend on each other" in succeeds(*command)
    found = fails(*command, "--time", "days")
    assert "--time must name a column of X, got 'days': did you mean 'day'? Or name" in found


def test_a_column_of_a_folder_may_be_both_times_and_groups(visits):
    """As in a single table, numbers are not read as text."""
    place, frame = visits / "m.certree", pd.read_csv(visits / "new.csv")
    frame["visit"] = np.arange(len(frame)) // 3
    succeeds("fit", visits / "rows.csv", "--target", "y", "--drop", "day", "-o", place, "--quiet")
    (visits / "folder").mkdir()
    frame.to_csv(visits / "one.csv", index=False)
    for i in range(3):
        frame[50 * i : 50 * (i + 1)].to_csv(visits / "folder" / f"{i}.csv", index=False)
    for option in ("--dependent", "--one-per-group"):
        how = ["--target", "y", "--time", "visit", option, "visit"]
        if option == "--one-per-group":
            how += ["--independent"]
        found = [succeeds("certify", place, visits / name, *how) for name in ("one.csv", "folder")]
        assert found[0] == found[1]
        assert "from 0 to 49" in found[0]


def test_groups_in_time_order_are_tested_by_whole_groups(visits):
    frame = pd.read_csv(visits / "rows.csv")
    frame["shop"] = pd.to_datetime(frame["day"]).dt.day_of_year // 2
    frame.to_csv(visits / "rows.csv", index=False)
    command = ["fit", visits / "rows.csv", "--target", "y", "--model", "certified-forest"]
    assert "--groups is not for CertifiedForestClassifier" in fails(*command, "--groups", "shop")
    command[-1] = "forest"
    printed = succeeds(*command, "--groups", "shop", "--time", "day", "-o", visits / "m.certree")
    latest = "test rows of 11 groups whose latest rows are from 7 April 2026 to 27 April 2026"
    assert latest in printed


def test_models_are_certified_by_a_later_period(visits):
    place, new = visits / "m.certree", visits / "new.csv"
    succeeds("fit", visits / "rows.csv", "--target", "y", "-o", place, "--set", "cv=3")
    command = ["certify", place, new, "--target", "y", "--time", "day"]
    period = "150 calibration rows from 28 April 2026 to 4 June 2026"
    assert f"{period}, which may depend" in succeeds(*command)
    assert f"{period}, taken as independent" in succeeds(*command, "--independent")
    assert "pass --independent with time" in fails(*command, "--recall", ".5")
    assert "At threshold" in succeeds(*command, "--recall", ".5", "--independent")
    assert "give --time COLUMN as well" in fails(*command[:-2], "--independent")
    assert "there is no column 'date' beside the target" in fails(*command[:-1], "date")
    (visits / "folder").mkdir()
    rows = pd.read_csv(new).sample(frac=1, random_state=0)
    rows["week"] = pd.to_datetime(rows["day"]).dt.strftime("%d/%m/%Y")  # is no feature
    rows[:60].to_csv(visits / "folder" / "0.csv", index=False)
    rows[60:].to_csv(visits / "folder" / "1.csv", index=False)
    for further in ([], ["--independent"], ["--recall", ".5", "--independent"]):
        expected = succeeds(*command, *further)
        command[2] = visits / "folder"
        assert succeeds(*command, *further) == expected
        command[2] = new
    command[2] = visits / "folder"
    assert "pass --independent with time" in fails(*command, "--recall", ".5")
    assert period in succeeds(*command[:-1], "week")
    assert "there is no column 'date' beside the target" in fails(*command[:-1], "date")


@pytest.mark.slow
def test_groups_are_certified_and_reported(tmp_path, loans):
    model, _ = fit_loans(tmp_path, "--set", "cv=3")
    place, new = tmp_path / "m.certree", tmp_path / "new.csv"
    frame = loans[800:]
    guarantees = Guarantees.by_rows(model, frame[list(model.feature_names_in_)], frame["default"])
    command = ["certify", place, new, "--target", "default", "--groups", "branch"]
    families = guarantees.conditional_guarantees(["groups", "gaps"], groups=frame["branch"])
    assert succeeds(*command).split() == str(families).split()
    printed = succeeds(*command, "--threshold-cost", "5:1")
    curves = guarantees.thresholds(costs=(5, 1), groups=frame["branch"])
    for name in ("north", "south"):
        assert f"{name}: {curves.groups[name].lowest_cost(5, 1)}" in printed
    page = tmp_path / "page.html"
    options = ["--target", "default", "--groups", "branch", "--threshold-cost", "5:1", "-o", page]
    succeeds("report", place, new, *options)
    text = page.read_text("utf-8")
    assert "Comparison of groups" in text
    assert "5 for a missed yes" in text
    assert "no column 'town'" in fails(
        "report", place, new, "--target", "default", "--groups", "town"
    )


def test_a_ranking_is_drawn(tmp_path, loans):
    fit_loans(tmp_path, "--set", "cv=3")
    place, new, out = tmp_path / "m.certree", tmp_path / "new.csv", tmp_path / "r.png"
    succeeds("plot", "ranking", place, new, "--target", "default", "-o", out)
    assert out.read_bytes()[:4] == b"\x89PNG"


# -- folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of three files with a numeric and a string feature and two classes."""
    directory = tmp_path_factory.mktemp("place") / "rows"
    directory.mkdir()
    rs = np.random.RandomState(0)
    for number in range(3):
        amount, kind = rs.normal(size=600), np.array(["card", "cash"])[rs.randint(0, 2, 600)]
        late = np.array(["no", "yes"])[((amount > 0) & (kind == "card")).astype(int)]
        rows = {"key": np.arange(600), "amount": amount, "kind": kind, "late": late}
        weight = {"w": rs.randint(1, 3, 600)}
        pyarrow.parquet.write_table(pa.table(rows | weight), directory / f"{number}.parquet")
    return directory


def table_of(folder, *without):
    return pyarrow.parquet.read_table(folder).drop_columns([*without])


def test_a_fit_to_a_folder_equals_one_in_memory(tmp_path, folder):
    model = tmp_path / "m.certree"
    how = ("--set", "max_iter=4", "--set", "max_leaf_nodes=5", "--increasing", "amount")
    found = call(
        "fit", folder, "--target", "late", "-o", model, "--weights", "w", *how, "--verbose"
    )
    assert found.exit_code == 0, found.stderr
    assert "1,800 rows in 3 files, 3 features; 4 trees with 14 leaves in total" in found.output
    assert "chosen settings: n_iter 4, max_leaf_nodes 5" in found.output
    rows = table_of(folder, "late", "w")
    y, w = table_of(folder)["late"].to_numpy(False), table_of(folder)["w"].to_numpy()
    same = certree.BoostedTreesClassifier(
        max_iter=4, max_leaf_nodes=5, monotonic_cst={"amount": 1}, random_state=0
    ).fit(rows, y, w)
    np.testing.assert_array_equal(certree.load(model).predict_proba(rows), same.predict_proba(rows))


def test_a_fit_to_a_folder_is_planned_only(tmp_path, folder):
    model, command = tmp_path / "m.certree", ["fit", folder, "--target", "late", "--dry-run"]
    printed = succeeds(*command, "-o", model)
    assert "features are read in 1 block by" in printed
    assert "of temporary files" in printed
    assert not model.exists()
    assert "--dry-run is for a folder" in fails(
        "fit", next(folder.glob("*.parquet")), "--target", "late", "--dry-run"
    )


def test_a_fit_to_a_folder_with_groups_equals_one_in_memory(tmp_path, folder):
    model = tmp_path / "m.certree"
    how = ("--model", "certified", "--groups", "key", "--duplicates", "genuine")
    found = call("fit", folder, "--target", "late", "-o", model, *how)
    assert found.exit_code == 0, found.stderr
    there, rows = certree.load(model), table_of(folder)
    X, y = rows.drop_columns(["late", "key"]), rows["late"].to_numpy(False)
    same = type(there)(**there.get_params(deep=False)).fit(X, y, groups=rows["key"].to_numpy())
    assert there.certificates_ == same.certificates_
    assert "groups of calibration rows" in found.output
    np.testing.assert_array_equal(there.predict_proba(X), same.predict_proba(X))


@pytest.mark.parametrize("name", ["certified", "pruned", "helmbold-schapire", "forest"])
def test_single_trees_and_forests_are_fitted_to_a_folder(name, tmp_path, folder):
    model = tmp_path / "m.certree"
    how = ("--target", "late", "--weights", "w", "--model", name, "-o", model)
    if name == "certified":
        how = (*how, "--delta", "0.1", "--duplicates", "genuine")
    if name == "forest":
        how = (*how, "--set", "n_estimators=3")
    found = call("fit", folder, *how)
    assert found.exit_code == 0, found.stderr
    there, rows = certree.load(model), table_of(folder, "late", "w")
    y, w = table_of(folder)["late"].to_numpy(False), table_of(folder)["w"].to_numpy()
    same = type(there)(**there.get_params(deep=False)).fit(rows, y, w)
    np.testing.assert_array_equal(there.predict_proba(rows), same.predict_proba(rows))
    if name == "certified":
        assert str(same.certificate_) in found.output
        assert there.certificates_ == same.certificates_
        assert same.certificate_.delta == 0.1


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("word", ["auto", "copies"])
def test_the_certificate_of_a_folder_equals_that_of_one_table(
    word, named, tmp_path, folder, monkeypatch
):
    rows, model = table_of(folder, "w"), tmp_path / "m.certree"
    fitted = certree.BoostedTreesClassifier(max_iter=3, random_state=0)
    old = rows.slice(0, 300)
    X = old.drop_columns(["late"])
    if not named:
        X, rows = X.drop_columns(["kind"]).to_pandas().to_numpy(), rows.drop_columns(["kind"])
    fitted.fit(X, old["late"].to_numpy(False))
    certree.files.save(fitted, model)
    # The same words come in another order in each file, and two rows come twice.
    new = [
        rows.slice(300, 700),
        rows.slice(1000, 800).take(np.arange(800)[::-1]),
        rows.slice(400, 2),
    ]
    (tmp_path / "new").mkdir()
    for number, one in enumerate(new):
        pyarrow.parquet.write_table(one, tmp_path / "new" / f"{number}.parquet")
    pyarrow.parquet.write_table(pa.concat_tables(new), tmp_path / "new.parquet")
    monkeypatch.setattr("certree.cli.prediction_commands.ROWS_PER_BATCH", 300)
    rest = ("--target", "late", "--duplicates", word, "--look", "2")
    whole, parts = (call("certify", model, tmp_path / at, *rest) for at in ("new.parquet", "new"))
    assert whole.exit_code == 0, whole.stderr
    assert parts.output == whole.output
    assert ("1,500" if word == "copies" else "1,502") in whole.output
    for at in ("new", "new.parquet"):
        found = certree.certify(fitted, tmp_path / at, "late", look=2, duplicates=word)
        assert str(found) in whole.output
    pyarrow.parquet.write_table(rows.slice(0, 40), tmp_path / "new" / "old.parquet")
    seen = call("certify", model, tmp_path / "new", *rest)
    n_judging = "1,540" if word == "copies" else "1,542"
    assert f"40 of {n_judging} rows also occur among those of the fit" in seen.stderr


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("flags", [("--groups",), ("--threshold-cost",), ("--groups", "--plot")])
def test_guarantees_of_a_folder_equal_those_of_one_table(
    flags, named, tmp_path, folder, monkeypatch
):
    rows, model = table_of(folder, "w"), tmp_path / "m.certree"
    rows = rows.select(["amount", "late"])
    kinds = pa.array(np.array(["south", "north", "west"])[np.arange(len(rows)) % 3])
    old, new = rows.slice(0, 300), rows.append_column("place", kinds).slice(300)
    X = old.drop_columns(["late"])
    if not named:
        X = X["amount"].to_numpy()[:, None]
    fitted = certree.BoostedTreesClassifier(max_iter=3).fit(X, old["late"].to_numpy(False))
    certree.files.save(fitted, model)
    if not named and "--groups" not in flags:
        new = new.drop_columns(["place"])
    (tmp_path / "new").mkdir()
    for number, begin in enumerate((0, 500)):
        part = new.slice(begin, 500 if number == 0 else None)
        pyarrow.parquet.write_table(part, tmp_path / "new" / f"{number}.parquet")
    pyarrow.parquet.write_table(new, tmp_path / "new.parquet")
    monkeypatch.setattr("certree.cli.prediction_commands.ROWS_PER_BATCH", 170)
    rest = ["--target", "late", "--duplicates", "copies", "--look", "2"]
    if "--groups" in flags:
        rest += ["--groups", "place"]
    if flags != ("--groups",):
        rest += ["--threshold-cost", "5:1"]
    outputs, drawn = [], []
    for at in ("new.parquet", "new"):
        more = ["--plot", tmp_path / f"{at}.svg"] if "--plot" in flags else []
        found = call("certify", model, tmp_path / at, *rest, *more)
        assert found.exit_code == 0, found.stderr
        outputs.append(found.output.replace(f"{at}.svg", ""))
        drawn += [one.exists() for one in more[1:]]
    assert outputs[0] == outputs[1]
    assert all(drawn)
    assert ("south" in outputs[0]) == ("--groups" in flags)


def test_invalid_certificates_of_a_folder_are_refused(tmp_path, folder):
    rows, model = table_of(folder, "w"), tmp_path / "m.certree"
    X, y = rows.drop_columns(["late"]), rows["late"].to_numpy(False)
    certree.files.save(certree.BoostedTreesClassifier(max_iter=1).fit(X, y), model)
    lacking = call("certify", model, folder, "--target", "late", "--groups", "nowhere")
    assert lacking.exit_code != 0
    assert "nowhere" in lacking.stderr
    drawn = call("certify", model, folder, "--target", "late", "--plot", tmp_path / "a.svg")
    assert "give --threshold-cost as well" in drawn.stderr
    certree.files.save(
        certree.BoostedTreesRegressor(max_iter=1).fit(X, X["amount"].to_numpy()), model
    )
    assert "predicts numbers" in call("certify", model, folder, "--target", "late").stderr


def test_a_folder_is_predicted_and_evaluated(tmp_path, folder):
    model, predicted = tmp_path / "m.certree", tmp_path / "predicted.csv"
    rest = ("--target", "late", "-o", model, "--set", "max_iter=4", "--quiet")
    assert call("fit", folder, *rest).exit_code == 0
    found = call("predict", model, folder, "-o", predicted, "--keep", "key", "--keep", "late")
    assert found.exit_code == 0, found.stderr
    rows = table_of(folder)
    frame = pd.read_csv(predicted)
    shares = certree.load(model).predict_proba(rows.drop_columns(["late"]))
    assert [*frame.columns] == ["key", "late", "prediction", "probability_no", "probability_yes"]
    np.testing.assert_array_equal(frame["key"], rows["key"].to_numpy())
    np.testing.assert_allclose(frame["probability_yes"], shares[:, 1], rtol=1e-15)
    pyarrow.parquet.write_table(rows, tmp_path / "all.parquet")
    apart, together = (
        call("evaluate", model, one, "--target", "late")
        for one in (folder, tmp_path / "all.parquet")
    )
    assert apart.exit_code == 0, apart.stderr
    assert apart.output == together.output
    assert "1,800 rows" in apart.output
    assert "also occur among the rows of the fit" in apart.output
    documents = [
        succeeds("evaluate", model, one, "--target", "late", "--json")
        for one in (folder, tmp_path / "all.parquet")
    ]
    assert documents[0] == documents[1]


def test_a_regressor_is_evaluated_batch_by_batch(tmp_path, folder, monkeypatch):
    model = tmp_path / "m.certree"
    rest = ("--target", "amount", "-o", model, "--set", "max_iter=4", "--quiet")
    refused = call("fit", folder, *rest)
    assert "give --regression" in refused.stderr
    assert call("fit", folder, *rest, "--regression").exit_code == 0
    whole = call("evaluate", model, folder, "--target", "amount")
    monkeypatch.setattr(certree.cli.prediction_commands, "ROWS_PER_BATCH", 77)
    parts = call("evaluate", model, folder, "--target", "amount")
    assert "R2" in whole.output
    assert parts.output == whole.output


def test_invalid_fits_to_a_folder_are_refused(tmp_path, folder):
    rest = ("--target", "late", "-o", tmp_path / "m.certree")
    for given, message in (
        (
            ("--model", "naive-bayes"),
            "--model must be one of boosted, certified, forest, helmbold-schapire, pruned, tree for "
            "a folder, got NaiveBayesClassifier",
        ),
        (("--model", "tree", "--grower", "kd"), "Cart(max_bins=255)"),
        (("--test-size", "0.2"), "--test-size is for a single table"),
        (("--model", "certified", "--groups", "place"), "error: --groups must name columns of"),
        (("--increasing", "height"), "no feature 'height'"),
        (("--weights", "height"), "error: --weights must name columns of"),
    ):
        found = call("fit", folder, *rest, *given)
        assert found.exit_code == 1
        assert message in found.stderr
    file = folder / "0.parquet"
    found = call("fit", file, *rest, "--scheduler", "tcp://127.0.0.1:1")
    assert "--scheduler is for a folder of files" in found.stderr
    found = call("fit", file, *rest, "--memory-limit", "1GB")
    assert "--memory-limit is for a folder of files" in found.stderr
    both = ("--memory-limit", "1GB", "--scheduler", "tcp://127.0.0.1:1")
    assert (
        "leave out --memory-limit, which is for a fit on this machine"
        in call("fit", folder, *rest, *both).stderr
    )
    assert "must be a number of bytes" in call("fit", folder, *rest, "--memory-limit", "a").stderr
    if sys.platform.startswith("linux"):
        for given in ((), ("--model", "certified")):
            found = call("fit", folder, *rest, "--memory-limit", "1MB", *given)
            assert "--memory-limit 1,000,000 is too little for this fit" in found.stderr
    (tmp_path / "empty").mkdir()
    assert "holds no" in call("fit", tmp_path / "empty", *rest).stderr
    assert not (tmp_path / "m.certree").exists()


def test_workers_of_a_scheduler_read_a_folder(tmp_path, folder):
    distributed = pytest.importorskip("distributed")
    rest = ("--target", "late", "--set", "max_iter=3", "--quiet")
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        found = call("fit", folder, *rest, "--scheduler", address, "-o", tmp_path / "a.certree")
    assert found.exit_code == 0, found.stderr
    assert call("fit", folder, *rest, "-o", tmp_path / "b.certree").exit_code == 0
    one, other = ((tmp_path / f"{name}.certree").read_bytes() for name in "ab")
    assert one == other


# -- messages of Python functions on the command line


@pytest.fixture
def hashes(tmp_path):
    """Return a table whose values # separates, and a model that was fitted to the same table."""
    path, model = tmp_path / "hashes.csv", tmp_path / "model"
    frame = pd.DataFrame({"a": np.arange(60) % 7, "b": np.arange(60) % 3, "y": np.arange(60) % 2})
    frame.to_csv(path, sep="#", index=False)
    certree.save(PrunedTreeClassifier(random_state=0).fit(frame[["a", "b"]], frame["y"]), model)
    return path, model


def test_a_sign_that_seems_to_separate_values_is_named(tmp_path, hashes):
    path, model = hashes
    option = "; if '#' separates its values, state --separator '#'"
    fit = "fit", path, "--target", "y", "-o", tmp_path / "new"
    assert fails(*fit).rstrip().endswith(f"name one of a#b#y{option}")
    lacking = f"{path} must have all features of the model, but lacks 'a', 'b': add these columns"
    for arguments in (["predict", model, path], ["explain", model, path, "--row", 0]):
        assert lacking + option in fails(*arguments)
        succeeds(*arguments, "--separator", "#")
    assert option in fails("evaluate", model, path, "--target", "y")
    # A wrong separator was stated.
    option = r"; '#' seems to separate its values instead of ';': give --separator '#', or leave"
    assert option in fails(*fit, "--separator", ";")
    for command in ("predict", "evaluate --target y", "explain --row 0"):
        name, *options = command.split()
        assert option in fails(name, model, path, *options, "--separator", ";")
    commas = tmp_path / "commas.csv"
    commas.write_text("a sum,b,y\n1,2,0\n")
    assert "; ',' seems to" in fails(*fit[:1], commas, *fit[2:], "--separator", "#")
    assert "seems to" not in fails(*fit[:1], commas, "--target", "z", "--separator", ",")
    # In Python the parameter is named as well.
    with pytest.raises(ValueError, match=r"state separator='#' \(--separator '#'\)$"):
        certree.read_table(path, "y")


def test_messages_name_options_in_place_of_parameters(tmp_path, hashes):
    path, model = hashes
    rows = [model, path, "--separator", "#"]
    (tmp_path / "empty.csv").write_text("a,b\n")
    for arguments, message in (
        (["predict", model, tmp_path / "empty.csv"], "error: FILE must hold rows to predict"),
        (["predict", *rows, "--keep", "z"], "error: --keep must name columns of"),
        (["predict", *rows, "--threshold", 3], "error: --threshold must lie in [0, 1]"),
        (
            ["certify", *rows, "--target", "y", "--threshold-cost", "5:-1"],
            "error: --threshold-cost must be two costs >= 0, not both 0, MISSED:FALSE_ALARM, such as "
            "5:1, got '5:-1'",
        ),
        (
            ["predict", *rows, "--output", tmp_path / "scores.xlsx"],
            "must end in .csv, .csv.gz, .tsv or .parquet, got " + str(tmp_path / "scores.xlsx\n"),
        ),
        (["predict", *rows, "--drop", "z"], "error: --drop must name columns of"),
        (["predict", tmp_path / "model", path, "--separator", "##"], "error: --separator must be"),
        (
            ["predict", model, tmp_path, "-o", tmp_path / "o.csv"],
            "error: --output must lie outside",
        ),
        (["predict", *rows, "-o", path], "error: --output must not be a file that is read"),
        (["explain", *rows, "--rows", "0", "-o", path], "error: --output must not be a file"),
        (["report", *rows, "--target", "y", "-o", path], "error: --output must not be a file"),
        (["fit", path, "--target", "y", "-o", path], "error: --output must not be a file that"),
        (["export", model, "-o", model], "error: --output must not be a file that is read"),
        (["certify", *rows, "--target", "y"], "error: FILE must hold new rows"),
    ):
        content = path.read_bytes()
        assert message in fails(*arguments)
        assert path.read_bytes() == content
    path = write(pd.DataFrame({"c": ["NA", "d"] * 30, "y": [1, 0] * 30}), tmp_path / "rows.csv")
    text = call("fit", path, "--target", "y", "-o", tmp_path / "new").stderr
    assert "c: category, 30 missing (NA); --keep-text 'c' keeps NA as text" in text
    assert "keep_text" not in text
    message = fails("fit", path, "--target", "c", "-o", tmp_path / "new")
    assert "30 in" in message
    assert "or read words such as NA as text by --keep-text 'c'" in message
    text = call("fit", path, "--target", "y", "-o", tmp_path / "new", "--keep-text", "c").stderr
    assert "c: category, NA kept as text" in text


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict MODEL FILE --threshold 3", "--threshold must lie in [0, 1], got 3.0"),
        ("evaluate MODEL FILE --target y --threshold -1", "--threshold must lie in [0, 1], got"),
        ("report MODEL FILE --target y --threshold nan", "--threshold must lie in [0, 1], got"),
        ("report MODEL FILE --target y --threshold-cost 0:0", "two costs >= 0, not both 0, MISSED"),
        ("certify MODEL FILE --target y --delta 2", "--delta must lie between 0 and 1, got 2.0"),
        ("certify MODEL FILE --target y --delta .95", "--delta must be at most 0.5, got 0.95"),
        ("certify MODEL FILE --target y --recall 1", "--recall must lie between 0 and 1, got 1.0"),
        ("certify MODEL FILE --target y --precision 0", "--precision must lie between 0 and 1"),
        ("certify MODEL FILE --target y --threshold 2", "--threshold must lie in [0, 1], got 2.0"),
        ("monitor MODEL FILE --target y --state s --alpha 1", "--alpha must lie between 0 and 1"),
        ("monitor MODEL FILE --target y --state s --bound 1", "--bound must lie between 0 and 1"),
        ("monitor MODEL FILE --target y --state s --delta .9", "--delta must be at most 0.5"),
        ("monitor MODEL FILE --target y --state s --threshold 9", "--threshold must lie in [0, 1]"),
        ("explain MODEL FILE --rows 7-3", "--rows must be numbers of rows such as"),
        ("explain MODEL FILE --key loan", "--key must be COLUMN=VALUE"),
        ("export MODEL -o m.sql --threshold 3", "--threshold must lie in [0, 1], got 3.0"),
        ("fit FILE --target y --model certified --delta 2", "'delta' parameter of Certified"),
        ("fit FILE --target y --model certified --set delta=.9", "--delta must be at most 0.5"),
        ("fit FILE --target y --model certified --train-size 2", "'train_size' parameter of"),
        ("fit FILE --target y --model boosted --set learning_rate=-1", "'learning_rate' parameter"),
        ("fit FILE --target y --jobs 0", "'n_jobs' parameter of"),
        ("fit FILE --target y --gap 5", "--gap describes rows in time order"),
        (
            "fit FILE --target y --model naive-bayes --groups g --time t",
            "--groups is not for Naive",
        ),
    ],
)
def test_options_are_checked_before_files_are_read(tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    places = {"MODEL": "no.certree", "FILE": "no.csv"}  # There are no such files.
    assert message in fails(*(places.get(word, word) for word in command.split()))
    assert names(tmp_path) == []


def test_costs_are_monitored_in_their_own_units(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monitor = ("monitor", "no.certree", "no.csv", "--target", "y", "--state", "s")
    costs = (*monitor, "--threshold", 0.5, "--threshold-cost", "10:1", "--bound")
    assert "no.certree" in fails(*costs, 9)  # There is no such file, but the bound is below 10.
    assert "--bound must lie between 0 and 1, got" in fails(*costs, 10)


def test_names_between_colons_are_no_emojis(tmp_path):
    path = write(pd.DataFrame({"a:b:c": [1.5, 2.5] * 30, "y": [1, 0] * 30}), tmp_path / "rows.csv")
    found = call("fit", path, "--target", "y", "-o", tmp_path / "new")
    assert "a:b:c, y: number" in found.stderr
    assert "a:b:c <= " in succeeds("info", tmp_path / "new")
