"""Engines that run exported models: SQLite and DuckDB for SQL, onnxruntime for ONNX graphs.

An engine that is not installed raises an ImportError with the package to install. Errors of an engine
reach the caller unchanged.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from certree.interface.extras import import_extra

# Takes the name of a table, its columns by name, and a statement. Returns the selected rows.
RunSQL = Callable[[str, Mapping[str, Sequence[Any]], str], list[Any]]


def _import_engine(module: str) -> Any:
    """Import a package that runs exports, such as "duckdb", and return its module.

    Raise ImportError with the command to install it if the package is missing. For packages that an
    extra of certree installs, such as onnx, use `import_extra` instead. module: name of the module,
    which is also that of the package.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        message = f"{module} is not installed: pip install {module}"
        raise ImportError(message, name=module) from error


def quote_name(name: str) -> str:
    """Return the name of a column or a table in double quotes, as SQL needs it."""
    return '"' + name.replace('"', '""') + '"'


def run_in_sqlite(table: str, columns: Mapping[str, Sequence[Any]], statement: str) -> list[Any]:
    """Run a statement in SQLite on a temporary table in memory.

    Parameters
    ----------
    table : str
        Name of the table.
    columns : mapping of str to sequence of length n
        The values of each column by its name: numbers, strings, and None for a missing value. At
        least one column.
    statement : str
        A SELECT that reads the table.

    Returns
    -------
    list of tuple
        The selected rows, with an entry for each selected column.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join(map(quote_name, columns))
        connection.execute(f"CREATE TABLE {quote_name(table)} ({names})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO {quote_name(table)} VALUES ({marks})", rows)
        return connection.execute(statement).fetchall()


def run_in_duckdb(table: str, columns: Mapping[str, Sequence[Any]], statement: str) -> list[Any]:
    """Run a statement in DuckDB on a temporary table.

    Parameters
    ----------
    table : str
        Name of the table.
    columns : mapping of str to sequence of length n
        The values of each column by its name: numbers, strings, and None for a missing value. At
        least one column.
    statement : str
        A SELECT that reads the table.

    Returns
    -------
    list of tuple
        The selected rows, with an entry for each selected column.

    Raises
    ------
    ImportError
        If duckdb, or pyarrow of ``certree[files]``, is not installed.
    """
    duckdb, pa = _import_engine("duckdb"), import_extra("pyarrow", "files")
    data = pa.table({f"c{k}": pa.array(values) for k, values in enumerate(columns.values())})
    named = ", ".join(f"c{k} AS {quote_name(name)}" for k, name in enumerate(columns))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("data", data)
        connection.execute(f"CREATE TEMP TABLE {quote_name(table)} AS SELECT {named} FROM data")
        rows: list[Any] = connection.execute(statement).fetchall()
        return rows


def run_in_onnxruntime(
    graph: Any, rows: NDArray[Any] | Mapping[str, NDArray[Any]]
) -> list[NDArray[Any]]:
    """Run an ONNX model on rows with onnxruntime, and return its outputs.

    Parameters
    ----------
    graph : onnx.ModelProto
        A model with a single input, or with named ones.
    rows : ndarray of shape (n, p), or mapping of str to ndarray of shape (n, 1)
        The rows, in the dtype of the input; or the values of each input by its name.

    Returns
    -------
    list of ndarray
        All outputs, in the order of the model.

    Raises
    ------
    ImportError
        If onnxruntime is not installed.
    """
    session = _import_engine("onnxruntime").InferenceSession(graph.SerializeToString())
    given = rows if isinstance(rows, Mapping) else {session.get_inputs()[0].name: rows}
    outputs: list[NDArray[Any]] = session.run(None, dict(given))
    return outputs
