"""The command line: parses, calls, prints. Commands stand in the order in which they are imported."""

from certree.cli import fitting, using, demo, seeing, paper  # noqa: F401, I001 -- each adds its commands
from certree.cli.app import app

__all__ = ["app"]
