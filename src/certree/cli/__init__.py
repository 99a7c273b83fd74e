"""The command line; `certree.cli.app` lists its commands."""

from certree.cli.app import app

__all__ = ["app"]
