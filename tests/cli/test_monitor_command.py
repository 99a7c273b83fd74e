"""The command monitor: batches that are added to a state file, alarms, and refused batches."""

import json

import numpy as np
import pandas as pd
import pytest

import certree
from cli.test_app import call, fails, names, succeeds


def draw_loans(n, seed, flipped=0.1):
    """Loans with an income, a customer with two loans, an amount, and a class that noise flips."""
    rng = np.random.default_rng(seed)
    loans = pd.DataFrame({"income": rng.normal(40, 12, n).round(6)})
    loans["customer"] = [f"C{i // 2}" for i in range(n)]
    loans["amount"] = (2 * loans["income"] + rng.normal(size=n)).round(6)
    loans["late"] = np.where((loans["income"] < 30) ^ (rng.random(n) < flipped), "yes", "no")
    return loans


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with models of the loans: certified, of groups, a regressor, and one without bound."""
    folder = tmp_path_factory.mktemp("models")
    loans = draw_loans(2000, 0)
    X, y = loans[["income"]], loans["late"]
    certified = certree.CertifiedTreeClassifier(random_state=0)
    certree.save(certified.fit(X, y), folder / "certified")
    certree.save(certified.fit(X, y, groups=loans["customer"]), folder / "groups")
    regressor = certree.CertifiedTreeRegressor(random_state=0).fit(X, loans["amount"])
    certree.save(regressor, folder / "numbers")
    certree.save(certree.PrunedTreeClassifier(random_state=0).fit(X, y), folder / "plain")
    return folder


@pytest.fixture
def batches(tmp_path):
    """The paths of two batches, of which the second has more errors."""
    for name, seed, flipped in (("may.csv", 1, 0.1), ("june.csv", 2, 0.35)):
        draw_loans(300, seed, flipped).to_csv(tmp_path / name, index=False)
    return tmp_path / "may.csv", tmp_path / "june.csv"


def watch(models, name, tmp_path, *arguments, target="late"):
    return ("monitor", models / name, *arguments, "--target", target, "--state", tmp_path / "state")


def test_batches_are_added_until_the_alarm(models, batches, tmp_path):
    may, june = batches
    model = certree.load(models / "certified")
    text = succeeds(*watch(models, "certified", tmp_path, may))
    digest = certree.load(tmp_path / "state").model_hash
    assert digest in succeeds("info", models / "certified")
    expected = model.certificate_.monitor(model_hash=digest)

    def add(path):
        rows = pd.read_csv(path)
        losses = model.predict(rows[["income"]]) != rows["late"]
        return str(expected.update(losses, batch=path.name, model_hash=digest))

    assert text.strip() == add(may)
    picture = tmp_path / "losses.svg"
    result = call(*watch(models, "certified", tmp_path, june, "--plot", picture))
    assert result.exit_code == 3
    assert result.stdout.strip() == add(june)
    assert "Alarm after row" in result.stdout
    assert "(batch 'june.csv')" in result.stdout
    assert "any alarm would be at most 10 %" in result.stdout
    assert picture.stat().st_size > 1000
    assert repr(certree.load(tmp_path / "state")) == repr(expected)


def test_a_batch_that_is_sent_twice_changes_nothing(models, batches, tmp_path):
    may, _ = batches
    succeeds(*watch(models, "certified", tmp_path, may))
    before = (tmp_path / "state").read_bytes()
    message = fails(*watch(models, "certified", tmp_path, may))
    assert "batch must be new, but 'may.csv' was added before, as rows 1 to 300" in message
    assert (tmp_path / "state").read_bytes() == before
    succeeds(*watch(models, "certified", tmp_path, may, "--batch", "may, again"))
    assert certree.load(tmp_path / "state").batches == ("may.csv", "may, again")


def test_a_state_belongs_to_one_model_file(models, batches, tmp_path):
    may, june = batches
    succeeds(*watch(models, "certified", tmp_path, may))
    message = fails(*watch(models, "groups", tmp_path, june, "--dependent", "customer"))
    assert "--state must belong to this model, but" in message
    assert certree.load(tmp_path / "state").model_hash in message
    assert "give each model a state file of its own" in message
    for command in ("predict", "info", "export"):
        more = {"predict": [june], "info": [], "export": ["-o", tmp_path / "x.sql"]}[command]
        assert "holds a monitor" in fails(command, tmp_path / "state", *more)
    other = ("--target", "late", "--state", models / "plain")
    message = fails("monitor", models / "certified", june, *other)
    assert "--state must be a file that certree monitor has written" in message


def test_settings_are_those_of_the_first_batch(models, batches, tmp_path):
    may, june = batches
    settings = ("--alpha", 0.01, "--block", 10, "--bound", 0.13, "--delta", 0.02)
    succeeds(*watch(models, "plain", tmp_path, may, *settings))
    monitor = certree.load(tmp_path / "state")
    found = (monitor.alpha, monitor.block, monitor.bound, monitor.delta)
    assert found == (0.01, 10, 0.13, 0.02)
    message = fails(*watch(models, "plain", tmp_path, june, "--alpha", 0.05))
    assert "--alpha must be the alpha of the state, 0.01, got 0.05: leave out --alpha" in message
    document = json.loads(call(*watch(models, "plain", tmp_path, june, "--json")).stdout)
    assert (document["model"], document["rows"]) == ("PrunedTreeClassifier", 600)
    assert document["batches"] == ["may.csv", "june.csv"]
    assert document["broken"] is True
    assert document["false_alarm_probability"] == pytest.approx(0.03)


def test_a_monitor_needs_a_certificate(models, batches, tmp_path):
    may, _ = batches
    for arguments, message in (
        ([], "MODEL must have a certificate, but"),
        (["--delta", 0.1], "give --bound, too"),
        (["--bound", 1.5], "bound must lie between 0 and 1, got 1.5"),
        (["--bound", 0.2, "--alpha", 0], "alpha must lie between 0 and 1, got 0"),
        (["--bound", 0.2, "--batch", ""], "batch must be printable text"),
        (["--bound", 0.2, "--plot", tmp_path / "x.doc"], "the name of a figure must end in"),
        (["--bound", 0.2, "--dependent", "branch"], "no column 'branch'"),
    ):
        assert message in fails(*watch(models, "plain", tmp_path, may, *arguments))
    standard_input = watch(models, "plain", tmp_path, "-", "--bound", 0.2)
    assert "--batch must name the batch" in fails(*standard_input)
    assert sorted(names(tmp_path)) == ["june.csv", "may.csv"]


def test_groups_count_as_one_row(models, batches, tmp_path):
    may, _ = batches
    renamed = tmp_path / "renamed.csv"
    pd.read_csv(may).rename(columns={"customer": "client"}).to_csv(renamed, index=False)
    message = fails(*watch(models, "groups", tmp_path, renamed))
    assert "--dependent must name the column of groups" in message
    assert "groups of 'customer', which" in message
    # The column of the fit is used without an option.
    result = call(*watch(models, "groups", tmp_path, may))
    assert "--dependent customer: the model was fitted with these groups" in result.stderr
    assert "On 150 new groups it is" in result.stdout
    state = tmp_path / "state"
    other = (*watch(models, "groups", tmp_path, may)[:-1], tmp_path / "independent")
    assert "On 300 new rows it is" in succeeds(*other, "--independent")
    message = fails(*watch(models, "groups", tmp_path, may, "--independent", "--batch", "June"))
    assert "--dependent must be used for all batches or for none" in message
    assert certree.load(state).grouped
    monitor, rows = certree.load(tmp_path / "state"), pd.read_csv(may)
    wrong = certree.load(models / "groups").predict(rows[["income"]]) != rows["late"]
    assert monitor.rows == 150
    assert monitor.mean_loss == pytest.approx(wrong.mean())
    expected = [wrong[i : i + 2].mean() for i in range(0, 300, 2)]
    window, means = monitor.window_means
    assert (means[:10] * window).tolist() == [
        sum(expected[i : i + window]) for i in range(0, 10 * window, window)
    ]


def test_absolute_errors_are_monitored_in_units_of_the_target(models, batches, tmp_path):
    may, _ = batches
    text = succeeds(*watch(models, "numbers", tmp_path, may, target="amount"))
    model, rows = certree.load(models / "numbers"), pd.read_csv(may)
    errors = np.abs(model.predict(rows[["income"]]) - rows["amount"])
    unit = model.certificate_.unit
    assert certree.load(tmp_path / "state").unit == unit
    assert f"it is {np.minimum(errors, unit).mean():.4g}. No alarm" in text
    other = (*watch(models, "numbers", tmp_path, may, target="amount")[:-1], tmp_path / "other")
    assert "--bound is for errors of classifiers" in fails(*other, "--bound", 0.2)


def test_decisions_at_a_threshold_are_monitored(models, batches, tmp_path):
    may, june = batches
    decision = ("--threshold", 0.3, "--threshold-cost", "4:1", "--positive", "yes")
    settings = (*decision, "--bound", 2.0)
    text = succeeds(*watch(models, "plain", tmp_path, may, *settings))
    model, rows = certree.load(models / "plain"), pd.read_csv(may)
    is_late = model.predict_proba(rows[["income"]])[:, 1] >= 0.3
    losses = np.where(rows["late"] == "yes", 4 * ~is_late, is_late) / 4
    monitor = certree.load(tmp_path / "state")
    assert monitor.mean_loss == pytest.approx(losses.mean())
    assert (monitor.bound, monitor.unit) == (0.5, 4)
    assert text.startswith("A mean loss (costs 4:1 of predicting yes from 0.3 on) of at most 2 was")
    for options, message in (
        ((), "--threshold, --positive and --threshold-cost must be those of the state"),
        (("--threshold", 0.3, "--bound", 0.4), "got predicting yes from 0.3 on: give the same"),
        ((*decision, "--bound", 1.0), "--bound must be the bound of the state, 2, got 1.0"),
        ((*decision[:2], "--positive", "maybe"), "--positive must be one of two classes"),
        (decision[2:4], "--threshold-cost is about the decisions at a threshold"),
        (decision[4:], "--positive yes changes --threshold only"),
    ):
        assert message in fails(*watch(models, "plain", tmp_path, june, *options))
    found = call(*watch(models, "plain", tmp_path, june, *decision))
    assert "On 600 new rows" in found.stdout
    # The errors of the decisions, without costs; a bound must be given.
    other = (*watch(models, "plain", tmp_path, may)[:-1], tmp_path / "errors", "--threshold", 0.3)
    assert "--bound must be given with --threshold" in fails(*other)
    wrong = is_late != (rows["late"] == "yes")
    assert f"it is {100 * wrong.mean():.1f} %" in succeeds(*other, "--bound", 0.5)
