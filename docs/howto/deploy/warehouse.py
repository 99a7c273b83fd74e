"""Predict the rows of a table in DuckDB by a view."""

from hashlib import sha256
from pathlib import Path

import duckdb

import certree

query = certree.load("late.certree").to_sql("orders", keep=["id"])
version = sha256(Path("late.certree").read_bytes()).hexdigest()
with duckdb.connect("warehouse.duckdb") as warehouse:
    warehouse.execute("CREATE OR REPLACE TABLE orders AS FROM 'new.parquet'")
    warehouse.execute(
        f"CREATE OR REPLACE VIEW predictions AS SELECT *, '{version}' AS model FROM ({query})"
    )
    print(warehouse.sql("SELECT id, prediction, probability_late FROM predictions LIMIT 3"))
