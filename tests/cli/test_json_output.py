"""The option --json: one strict JSON document on standard output, and nothing else."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import certree
from certree.certificates.baseline import Baseline
from certree.cli.app import app
from certree.cli.json_output import describe_certificate, print_json
from certree.files.predictions import predict_columns

# The oldest click mixes what the command prints with its messages unless it is told not to.
APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


def run(*arguments):
    """Run the command `certree` in this process, and return its exit code, stdout and stderr."""
    done = CliRunner(**APART).invoke(app, [*map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def run_apart(*arguments):
    """Do as `run` in a process of its own, which takes seconds to start.

    What it writes to its standard output holds all that libraries write there, too.
    """
    command = [sys.executable, "-m", "certree", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout, done.stderr


def parse(text):
    """Return a document of strict JSON, which lacks NaN and infinities."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def get_document(*arguments, run=run):
    """Run a command with --json, and return its document and what it has written to stderr."""
    code, output, messages = run(*arguments, "--json")
    assert code == 0, messages
    return parse(output), messages


def draw(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": random.normal(size=n).round(9), "town": random.choice(["Köln", "Oslo"], n)}
    )
    frame["late"] = np.where(frame["a"] + random.normal(size=n) > 0.5, "yes", "no")
    frame["cost"] = (100 * frame["a"] + random.normal(size=n)).round(2)
    return frame


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with new rows, a classifier and a regressor."""
    folder = tmp_path_factory.mktemp("json")
    draw(300, 0).to_csv(folder / "old.csv", index=False)
    draw(200, 1).to_csv(folder / "new.csv", index=False)
    fit = ("fit", folder / "old.csv", "--quiet", "--test-size", 0, "-o")
    chosen = ("--regression", "--model", "certified", "--drop", "late")
    for target, *options in (("late", "--drop", "cost"), ("cost", *chosen)):
        code, _, messages = run(*fit, folder / target, "--target", target, *options)
        assert code == 0, messages
    return folder


@pytest.mark.slow
def test_predictions_are_those_of_the_model(place):
    document, messages = get_document(
        "predict", place / "late", place / "new.csv", "--keep", "town", run=run_apart
    )
    new = draw(200, 1)
    expected = predict_columns(certree.load(place / "late"), new[["a", "town"]])
    assert document.keys() == {"model", "predictions", "rows"}
    assert (document["model"], document["rows"]) == ("PACBayesTreeClassifier", 200)
    found = pd.DataFrame(document["predictions"])
    assert [*found.columns] == ["town", *expected]
    assert found["town"].tolist() == new["town"].tolist()
    for name, values in expected.items():
        assert found[name].tolist() == values.tolist()
    assert messages == ""


def test_predictions_in_a_file_leave_their_number(place, tmp_path):
    path = tmp_path / "out.csv"
    document, _ = get_document("predict", place / "cost", place / "new.csv", "-o", path)
    expected = {"model": "CertifiedTreeRegressor", "output": str(path), "rows": 200}
    assert document == expected
    document, _ = get_document("predict", place / "late", place / "new.csv", "-o", path)
    predicted = pd.read_csv(path)["prediction"].value_counts()
    assert document["classes"] == {"no": predicted["no"], "yes": predicted["yes"]}
    get_document("predict", place / "cost", place / "new.csv", "-o", path)
    assert len(pd.read_csv(path)) == 200


@pytest.mark.slow
def test_warnings_do_not_mix_with_the_document(place, tmp_path):
    draw(5, 1).assign(town="Rome").to_csv(tmp_path / "new.csv", index=False)
    document, messages = get_document(
        "predict", place / "late", tmp_path / "new.csv", run=run_apart
    )
    assert document["rows"] == 5
    assert messages.startswith("warning: ")
    assert "Rome" in messages


def test_infinite_numbers_are_null(capsys):
    print_json({"a": [float("inf"), 1.5], "b": {"c": float("nan")}})
    assert parse(capsys.readouterr().out) == {"a": [None, 1.5], "b": {"c": None}}


def test_scores_have_intervals_and_baselines(place):
    document, _ = get_document("evaluate", place / "late", place / "new.csv", "--target", "late")
    new = draw(200, 1)
    model = certree.load(place / "late")
    error = np.mean(model.predict(new[["a", "town"]]) != new["late"])
    assert document["rows"] == 200
    assert document["known_rows"] == 0
    assert document["verdict"] is None
    assert document["positive"] == "yes"
    assert document["scores"].keys() == {"error", "log_loss", "recall", "precision", "roc_auc"}
    found = document["scores"]["error"]
    assert found["value"] == pytest.approx(error)
    assert found["low"] < error < found["high"]
    always = {"name": "always no", "value": pytest.approx(np.mean(new["late"] == "yes"))}
    assert found["baseline"] == always
    numbers = place / "cost", place / "new.csv", "--target", "cost"
    document, _ = get_document("evaluate", *numbers)
    assert document["positive"] is None
    assert document["scores"].keys() == {"root_mean_squared_error", "r2"}
    assert document["scores"]["r2"]["baseline"] is None


def test_a_model_that_is_no_better_than_a_constant_has_a_verdict(place, tmp_path):
    draw(300, 2).assign(late="yes").iloc[:-1].to_csv(tmp_path / "new.csv", index=False)
    frame = pd.read_csv(tmp_path / "new.csv")
    frame.loc[:9, "late"] = "no"
    frame.to_csv(tmp_path / "new.csv", index=False)
    document, _ = get_document("evaluate", place / "late", tmp_path / "new.csv", "--target", "late")
    assert document["verdict"] == "the model is no better than a constant in error and log loss"


@pytest.mark.slow
def test_a_certificate_has_its_fields_and_sentence(place):
    rows = place / "late", place / "new.csv", "--target", "late"
    document, _ = get_document("certify", *rows, run=run_apart)
    new = draw(200, 1)
    expected = certree.certify(certree.load(place / "late"), new[["a", "town"]], new["late"])
    assert document == {
        "model": "PACBayesTreeClassifier",
        "certificate": parse(json.dumps(describe_certificate(expected))),
    }
    found = document["certificate"]
    assert found["statement"] == str(expected) == run("certify", *rows)[1].rstrip("\n")
    assert found["bound"] == expected.bound
    assert found["baseline"]["name"] == "always no"
    assert found["is_below_baseline"] == (expected.bound < expected.baseline.value)
    assert found["assumptions"] == [*expected.assumptions]
    worse = replace(expected, baseline=Baseline("always no", 0.01))
    assert describe_certificate(worse)["is_below_baseline"] is False


def test_a_folder_is_certified_alike(place, tmp_path):
    (tmp_path / "rows").mkdir()
    draw(200, 1).to_csv(tmp_path / "rows" / "new.csv", index=False)
    found, expected = (
        get_document("certify", place / "late", rows, "--target", "late")[0]
        for rows in (tmp_path / "rows", place / "new.csv")
    )
    assert found == expected


def test_guarantees_of_groups_and_thresholds_are_documents(place):
    rows = place / "late", place / "new.csv", "--target", "late", "--groups", "town"
    document, _ = get_document("certify", *rows)
    assert document.keys() == {"model", "families"}
    assert document["families"].keys() == {"groups", "gaps"}
    assert [one["subset"] for one in document["families"]["groups"]] == ["Köln", "Oslo"]
    assert all(one["baseline"] is None for one in document["families"]["groups"])
    document, _ = get_document("certify", *rows, "--threshold-cost", "5:1")
    thresholds = document["thresholds"]
    assert thresholds.keys() == {"statement", "lowest_cost", "groups"}
    assert thresholds["groups"].keys() == {"Köln", "Oslo"}
    assert thresholds["groups"]["Oslo"].keys() == {"lowest_cost"}
    recall = thresholds["lowest_cost"]["recall"]
    assert recall["lowest"] <= recall["observed"] <= recall["highest"]
    assert thresholds["lowest_cost"]["cost"]["bound"] > 0


def list_keys(document):
    """Return the names of all fields of a document, but those of rows, scores and groups."""
    if isinstance(document, list):
        return set().union(*map(list_keys, document))
    if not isinstance(document, dict):
        return set()
    free = ("predictions", "groups", "explanations", "parameters")
    is_free = {
        key: key in free and (isinstance(value, dict) or key == "explanations")
        for key, value in document.items()
    }
    inner = (value for key, value in document.items() if not is_free[key])
    return {*document}.union(*(list_keys(value) for value in inner))


def test_the_manual_lists_all_fields(place):
    page = Path(__file__).parents[2] / "docs" / "guide" / "command_line_json.md"
    listed = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    rows = place / "late", place / "new.csv", "--target", "late"
    commands = [
        *(("evaluate", *rows), ("evaluate", place / "cost", place / "new.csv", "--target", "cost")),
        *(("certify", *rows), ("certify", *rows, "--groups", "town")),
        ("certify", *rows, "--groups", "town", "--threshold-cost", "5:1"),
        ("certify", *rows, "--recall", "0.1", "--threshold", "0.5"),
        ("certify", *rows, "--precision", "0.1"),
        ("monitor", *rows, "--bound", "0.6", "--state", place / "late.monitor"),
        ("rules", place / "late"),
        ("info", place / "late"),
        ("explain", place / "late", place / "new.csv"),
        ("evaluate", *rows, "--one-per-group", "town"),
    ]
    found = set().union(*(list_keys(get_document(*command)[0]) for command in commands))
    assert {"statement", "bound", "lowest_cost", "gaps", "r2", "verdict"} <= found
    assert found <= listed
    assert listed - found <= {
        *("predict", "evaluate", "certify", "monitor", "info", "explain"),
        *("predictions", "output", "null", "row", "prediction", "unit", "base", "input_columns"),
    }


FAILING = [
    (["predict", "none", "new.csv"], 1),
    (["predict", "late", "new.csv", "--threshold", "high"], 2),
    (["certify", "late", "old.csv", "--target", "late"], 1),
    (["certify", "cost", "new.csv", "--target", "cost"], 1),
    (["evaluate", "late", "none.csv", "--target", "late"], 1),
    (["predict", "late", "new.csv", "--threshold", "2"], 1),
    (["certify", "late", "new.csv"], 2),
    (["evaluate", "late", "new.csv", "--target", "late", "scores.json"], 2),
]


@pytest.mark.parametrize(
    ("run", "arguments", "code"),
    [*((run_apart, *case) for case in FAILING[:2]), *((run, *case) for case in FAILING)],
)
def test_a_failing_command_prints_no_document(run, arguments, code, place, monkeypatch):
    monkeypatch.chdir(place)
    found, output, messages = run(*arguments, "--json")
    assert found == code
    assert output == ""
    assert ("error: " in messages) == (code == 1)
    assert "Traceback" not in messages
