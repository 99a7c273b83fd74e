"""What is installed only if it is asked for: ``pip install "certree[files]"`` and the like."""

from importlib import import_module
from typing import Any, Literal

Extra = Literal["files", "frames", "plot", "cli", "onnx", "dask"]


def import_extra(module: str, extra: Extra) -> Any:
    """Import a module that an extra brings.

    Parameters
    ----------
    module : str
        Name of the module.
    extra : {"files", "frames", "plot", "cli", "onnx", "dask"}
        The extra of certree that it comes with.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If the package of the module is not installed; the message says which extra brings it.
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
