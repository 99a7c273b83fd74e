"""Imports of optional packages, the extras of ``pip install "certree[files]"``."""

from importlib import import_module
from typing import Any, Literal

Extra = Literal["files", "frames", "plot", "cli", "onnx", "dask", "pipelines"]


def import_extra(module: str, extra: Extra) -> Any:
    """Import and return a module of an optional package.

    Parameters
    ----------
    module : str
        Full name of the module, such as "pyarrow.parquet".
    extra : {"files", "frames", "plot", "cli", "onnx", "dask", "pipelines"}
        The extra of certree whose installation includes the package: "files" has pyarrow, "frames"
        pandas, "plot" matplotlib, "cli" rich and typer, "onnx" and "dask" the packages of that
        name, "pipelines" skops.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    ImportError
        If the package is not installed; the message has the pip command that installs it.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ImportError(
            f'{package} is not installed: pip install "certree[{extra}]"', name=package
        ) from error


class DelayedModule:
    """A module of an optional package, which is imported when one of its attributes is first read.

    Reading an attribute raises ImportError if the package is not installed.

    Parameters
    ----------
    module : str
        Full name of the module, such as "matplotlib.colors".
    extra : {"files", "frames", "plot", "cli", "onnx", "dask", "pipelines"}
        The extra of certree whose installation includes the package, such as "plot"; the message of
        the error names it.
    """

    def __init__(self, module: str, extra: Extra) -> None:
        self._module, self._extra = module, extra

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself reads these, without any use of the package.
            raise AttributeError(name)
        return getattr(import_extra(self._module, self._extra), name)
