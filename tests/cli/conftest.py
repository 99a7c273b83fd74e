"""Each option that a command names in its output must be its own, or that of a command it names."""

import re
from functools import cache
from importlib import import_module

import pytest

from certree.cli.app import _COMMANDS, list_commands

# The package has the Typer application under the name of this module.
cli = import_module("certree.cli.app")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


@cache  # it takes most of a second to make all commands, and each command prints several texts
def list_options():
    """Return the options of each command, by its name."""
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in list_commands().items()
    }


def find_strange_options(text, running):
    """Return the options in a text that neither the running command nor a named one has."""
    options = list_options()
    named = {name for name in _COMMANDS if re.search(rf"(?<![\w-]){name}(?!\w)", text)}
    known = set().union(*(options[name] for name in {running, *named} & {*options}))
    return [option for option in _OPTION.findall(text) if option not in known]


@pytest.fixture(autouse=True)
def options_of_messages(monkeypatch):
    """Check all notes, warnings and errors that commands print in the tests of this folder."""

    class CheckedConsole(cli.Console):
        def print(self, text, *arguments, **options):
            running = cli._running_command.get()
            strange = find_strange_options(text, running)
            assert not strange, f"{running} has no option {strange[0]}: {text}"
            return super().print(text, *arguments, **options)

    monkeypatch.setattr(cli, "Console", CheckedConsole)
