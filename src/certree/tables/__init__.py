"""Reading of tables in CSV, Parquet and Arrow files, by the same rules for fits and predictions."""

from certree.tables.reader import read_table
from certree.tables.table import ColumnDescription, Table, TableDescription
from certree.tables.table_source import TableSource

__all__ = ["ColumnDescription", "Table", "TableDescription", "TableSource", "read_table"]
