"""The command line. Help lists the commands in the order in which modules are imported here."""

from certree.cli import (  # noqa: I001 -- importing a module adds its commands
    fit_command as fit_command,
    prediction_commands as prediction_commands,
    demo_command as demo_command,
    explanation_commands as explanation_commands,
    paper_commands as paper_commands,
)
from certree.cli.app import app

__all__ = ["app"]
