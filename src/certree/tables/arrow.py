"""The modules of PyArrow, an optional package, which are imported when they are first used."""

from typing import TYPE_CHECKING

from certree.interface.extras import DelayedModule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import compute as pc
    from pyarrow import csv, ipc, parquet
else:
    pa, pc = DelayedModule("pyarrow", "files"), DelayedModule("pyarrow.compute", "files")
    csv, ipc = DelayedModule("pyarrow.csv", "files"), DelayedModule("pyarrow.ipc", "files")
    parquet = DelayedModule("pyarrow.parquet", "files")

__all__ = ["csv", "ipc", "pa", "parquet", "pc"]
