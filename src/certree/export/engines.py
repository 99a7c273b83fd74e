"""Run exported models: statements of SQL in SQLite and DuckDB, graphs of ONNX in onnxruntime.

Nothing here knows the model that was exported. An engine that is not installed raises an ImportError
that says what to install; an error of an engine reaches the caller as it is.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

from certree.interface.extras import import_extra

# Name of the table, its columns by name, and the statement.
RunSQL = Callable[[str, Mapping[str, Sequence[Any]], str], list[Any]]


def _engine(module: str) -> Any:
    """Import an engine, which no extra of certree brings."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        message = f"{module} is not installed: pip install {module}"
        raise ImportError(message, name=module) from error


def quoted(name: str) -> str:
    """Quote the name of a column or a table."""
    return '"' + name.replace('"', '""') + '"'


def run_in_sqlite(table: str, columns: Mapping[str, Sequence[Any]], statement: str) -> list[Any]:
    """Run a statement in SQLite on a table that exists for it alone.

    Parameters
    ----------
    table : str
        Name of the table.
    columns : mapping of str to sequence
        Its columns, one at least: numbers, strings, and None for a missing value.
    statement : str
        A SELECT.

    Returns
    -------
    list of tuple
        The rows that it selects.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join(map(quoted, columns))
        connection.execute(f"CREATE TABLE {quoted(table)} ({names})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", rows)
        return connection.execute(statement).fetchall()


def run_in_duckdb(table: str, columns: Mapping[str, Sequence[Any]], statement: str) -> list[Any]:
    """Run a statement in DuckDB as `run_in_sqlite` does; needs duckdb and ``certree[files]``."""
    duckdb, pa = _engine("duckdb"), import_extra("pyarrow", "files")
    given = pa.table({f"c{k}": pa.array(values) for k, values in enumerate(columns.values())})
    named = ", ".join(f"c{k} AS {quoted(name)}" for k, name in enumerate(columns))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("given", given)
        connection.execute(f"CREATE TEMP TABLE {quoted(table)} AS SELECT {named} FROM given")
        rows: list[Any] = connection.execute(statement).fetchall()
        return rows


def run_in_onnxruntime(graph: Any, rows: Any) -> list[Any]:
    """Compute the outputs of a graph for rows (n, p) of the type that it takes; needs onnxruntime."""
    session = _engine("onnxruntime").InferenceSession(graph.SerializeToString())
    outputs: list[Any] = session.run(None, {session.get_inputs()[0].name: rows})
    return outputs
