"""The programs of the page "Deploy", compiled and run here where their runtimes are installed.

Node.js and the browser are in tests/browser/test_deploy_in_javascript.py.
"""

import json
import os
import re
import runpy
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from certree.cli.app import app
from certree.show import model_card
from deploy_programs import ORDERS, PROGRAMS, check_lines, write_model

PAGE = PROGRAMS.with_suffix(".md")
# A release of onnxruntime for C++: its folders include and lib.
ONNXRUNTIME = os.environ.get("CERTREE_ONNXRUNTIME")
FEATURES = ["ordered", "weight", "country"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with the programs and the files of train.py, and the model."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, write_model(folder)


@pytest.fixture
def model(trained, tmp_path, monkeypatch):
    """The model, whose files and programs are copied to the working directory of the test."""
    folder, fitted = trained
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return fitted


def run(*command, **settings):
    """Run a command, and return what it prints."""
    settings |= {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(command, check=True, **settings).stdout


def read_new_orders():
    orders = pd.read_parquet("new.parquet")
    assert len(orders) == 1000
    assert orders[FEATURES].isna().any().all()
    return orders


def check_predictions(found, model):
    """Check the columns id, prediction and probability_late of predictions of the new orders."""
    orders, found = read_new_orders(), found.sort_values("id")
    assert found["id"].tolist() == orders["id"].tolist()
    assert found["prediction"].tolist() == model.predict(orders[FEATURES]).tolist()
    expected = model.predict_proba(orders[FEATURES])[:, 0]
    np.testing.assert_allclose(found["probability_late"].astype(float), expected, rtol=1e-12)


def test_the_page_includes_every_program():
    text = PAGE.read_text(encoding="utf-8")
    for program in PROGRAMS.iterdir():
        if program.is_file():
            assert f"```{{literalinclude}} deploy/{program.name}\n" in text
            assert f"[{program.name}](deploy/{program.name})" in text


def test_the_page_states_predictions_and_size_of_the_model(model):
    """The program in C++ prints six digits of the predictions, which no other test compares here."""
    text = PAGE.read_text(encoding="utf-8")
    late = model.predict_proba(ORDERS)[:, 0]
    printed = zip(model.predict(ORDERS), late, strict=True)
    assert "".join(f"    {label} {share:.6g}\n" for label, share in printed) in text
    size = len(model.to_sql("orders", keep=["id"]))
    assert f"in this example, it has {10 * round(size / 1e4)} KB" in text


# -- the service and its log -----------------------------------------------------------------------


@pytest.fixture
def client(model):
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    testclient = pytest.importorskip(
        "fastapi.testclient", reason="httpx2 is not installed", exc_type=(ImportError, RuntimeError)
    )
    service = runpy.run_path("service.py")
    yield testclient.TestClient(service["app"])
    for handler in service["log"].handlers[:]:
        service["log"].removeHandler(handler)
        handler.close()


def to_json(orders):
    return json.loads(orders.to_json(orient="records", date_format="iso"))


def read_log():
    return [json.loads(line) for line in Path("predictions.jsonl").read_text().splitlines()]


def test_the_service_predicts_and_logs_with_the_hash_of_the_card(client, model):
    body = to_json(ORDERS.assign(id=[7, 8]))
    answer = client.post("/predictions", json=body)
    assert answer.status_code == 200
    expected = [
        {"id": 7 + k, "label": model.predict(ORDERS)[k], "late": model.predict_proba(ORDERS)[k, 0]}
        for k in range(2)
    ]
    assert answer.json() == expected
    log = read_log()
    assert [{key: row[key] for key in expected[0]} for row in log] == expected
    assert [row["weight"] for row in log] == [12.5, None]
    assert [row["ordered"] for row in log] == ["2026-09-14T09:30:00Z", None]
    card = model_card(model, ORDERS, model.predict(ORDERS))
    assert {row["model"] for row in log} == {sha256(Path("late.certree").read_bytes()).hexdigest()}
    assert log[0]["model"] in card


@pytest.mark.parametrize(
    "change",
    [
        {"weight": "heavy"},
        {"weight": ...},
        {"ordered": "2026-09-14T09:30:00"},
        {"ordered": "soon"},
        {"country": 5},
    ],
    ids=str,
)
def test_the_service_refuses_other_orders(client, change):
    order = to_json(ORDERS.assign(id=[7, 8]))[0] | change
    body = [{key: value for key, value in order.items() if value is not ...}]
    assert client.post("/predictions", json=body).status_code == 422
    assert not read_log()


def test_the_service_refuses_requests_without_orders(client):
    assert client.post("/predictions", json=[]).status_code == 422


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"', '"inf"'])
@pytest.mark.parametrize("field", ["weight", "ordered", "country"])
def test_the_service_refuses_numbers_that_json_lacks(client, field, number):
    if field == "country" and number.startswith('"'):
        pytest.skip("a country may have any name")
    order = to_json(ORDERS.assign(id=[7, 8]))[0] | {field: "?"}
    answer = client.post(
        "/predictions",
        content=json.dumps([order]).replace('"?"', number),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 422
    (error,) = json.loads(answer.text, parse_constant=pytest.fail)["detail"]
    assert error["loc"] == ["body", 0, field]
    assert not read_log()


def test_the_service_takes_offsets_nulls_and_unknown_countries(client, model):
    moments = ["2026-03-01T01:00:00+02:00", "2026-02-28T23:00:00Z"]
    body = [{"id": 1, "ordered": text, "weight": 9.5, "country": "NO"} for text in moments]
    body += [{"id": 2, "ordered": None, "weight": None, "country": "SE"}]
    answer = client.post("/predictions", json=body)
    table = pd.DataFrame(
        {
            "ordered": pd.to_datetime([moments[1], moments[1], None]),
            "weight": [9.5, 9.5, np.nan],
            "country": ["NO", "NO", "SE"],
        }
    )
    late = [prediction["late"] for prediction in answer.json()]
    assert late == model.predict_proba(table)[:, 0].tolist()


def test_the_monitor_sees_broken_guarantees_and_drift(client, capsys, monkeypatch):
    def run_monitor(labels, name):
        labels.to_csv(name, index=False)
        monkeypatch.setattr("sys.argv", ["monitor.py", name])
        runpy.run_path("monitor.py")
        return capsys.readouterr().out

    orders = read_new_orders()
    client.post("/predictions", json=to_json(orders[[*FEATURES, "id"]]))
    printed = run_monitor(orders[["id", "status"]], "october.csv")
    assert printed.startswith("1,000 of 1,000 labels belong to logged predictions of this model.")
    assert "On 1,000 new rows it is " in printed
    assert "No alarm: the new rows do not contradict the certificate (e-value" in printed
    assert "1,000 logged rows were compared with 1,000 training rows, by weight and " in printed
    assert "No drift was found" in printed
    with pytest.raises(ValueError, match=r"batch must be new, but 'october\.csv' was added before"):
        run_monitor(orders[["id", "status"]], "october.csv")

    changed = {"status": orders["status"].where(orders.index % 2 > 0, "punctual")}
    log = pd.DataFrame(read_log())
    log.assign(weight=log["weight"] * 1.5).to_json(
        "predictions.jsonl", orient="records", lines=True
    )
    printed = run_monitor(orders.assign(**changed)[["id", "status"]], "november.csv")
    assert re.search(r"Alarm after row 1,[0-9]+ \(batch 'november\.csv'\): the losses", printed)
    assert re.search("an error of at most [0-9]+%; guesses err in 50 %. The column weight", printed)


# -- C++ and Java ----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not ONNXRUNTIME or shutil.which("g++") is None,
    reason="CERTREE_ONNXRUNTIME names no release of onnxruntime for C++, or there is no g++",
)
def test_the_program_in_cpp_predicts_as_the_model(model):
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-Wl,-rpath,{ONNXRUNTIME}/lib"]
    folders = ["-isystem", f"{ONNXRUNTIME}/include", f"-L{ONNXRUNTIME}/lib"]
    run("g++", *flags, "predict.cpp", *folders, "-lonnxruntime", "-o", "predict")
    printed = run("./predict")
    check_lines(printed, model, rtol=1e-5)
    assert "".join(f"    {line}\n" for line in printed.splitlines()) in PAGE.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no javac")
def test_the_program_in_java_predicts_as_the_model(model):
    run("javac", "-Xlint:all", "-Werror", "Late.java", "Predict.java")
    check_lines(run("java", "Predict"), model, rtol=1e-10)


# -- warehouses and batches ------------------------------------------------------------------------


def test_the_view_in_duckdb_predicts_as_the_model(model):
    duckdb = pytest.importorskip("duckdb")
    runpy.run_path("warehouse.py")
    with duckdb.connect("warehouse.duckdb") as warehouse:
        found = warehouse.sql("FROM predictions").df()
    check_predictions(found, model)
    assert set(found["model"]) == {sha256(Path("late.certree").read_bytes()).hexdigest()}


def test_the_statement_in_sqlite_predicts_as_the_model(model):
    orders = read_new_orders()
    orders["ordered"] = orders["ordered"].dt.strftime("%Y-%m-%d %H:%M:%S")
    with closing(sqlite3.connect(":memory:")) as warehouse:
        orders.to_sql("orders", warehouse, index=False)
        warehouse.execute(f"CREATE VIEW predictions AS {model.to_sql('orders', keep=['id'])}")
        found = pd.read_sql("SELECT * FROM predictions", warehouse)
    check_predictions(found, model)


def find_postgres():
    """Return the folder of PostgreSQL's programs and the user who may run them, or None."""
    if os.name != "posix":
        return None
    import pwd

    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    users = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    return (folders[-1], user) if folders and user in users else None


POSTGRES = find_postgres()


@pytest.mark.skipif(POSTGRES is None, reason="there is no PostgreSQL")
def test_the_statement_in_postgresql_predicts_as_the_model(model):
    programs, user = POSTGRES
    columns = "id int, ordered timestamptz, weight double precision, country text, status text"
    with tempfile.TemporaryDirectory() as folder:
        read_new_orders().to_csv(f"{folder}/orders.csv", index=False)
        Path(folder).chmod(0o755)
        Path(folder, "data").mkdir()
        shutil.chown(f"{folder}/data", user)
        settings = {"cwd": folder} | ({"user": user} if os.getuid() == 0 else {})
        data = f"{folder}/data/database"
        run(programs / "initdb", "--no-sync", "-D", data, **settings)
        statements = [
            f"CREATE TABLE orders ({columns})",
            f"COPY orders FROM '{folder}/orders.csv' CSV HEADER",
            f"CREATE VIEW predictions AS {model.to_sql('orders', keep=['id'])}",
            f"COPY (SELECT * FROM predictions) TO '{folder}/data/predictions.csv' CSV HEADER",
        ]
        # A single process without a server, which reads statements that end in ";" and two breaks.
        server = [programs / "postgres", "--single", "-j", "-F", "-D", data, "postgres"]
        run(*server, input=";\n\n".join([*statements, ""]), **settings)
        found = pd.read_csv(f"{folder}/data/predictions.csv")
    check_predictions(found, model)


def test_the_commands_of_the_page_run(model):
    commands = [
        line.split()[1:]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("    certree ")
    ]
    printed = {}
    for command in commands:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.output)
        printed[command[0]] = result.output
    assert [*printed] == ["export", "predict", "monitor", "evaluate", "certify"]
    assert "No alarm" in printed["monitor"]
    check_predictions(pd.read_parquet("predictions.parquet"), model)
    assert Path("late.sql").read_text().strip() == model.to_sql("orders", keep=["id"])
    assert "Error 18.5 %" in printed["evaluate"]
    assert "With probability at least 95 %" in printed["certify"]
