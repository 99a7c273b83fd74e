"""Each option that a command names in its output must be its own, or that of a command it names."""

import re
from importlib import import_module

import pytest

from certree.cli.app import _COMMANDS, list_commands

# The package has the Typer application under the name of this module.
cli = import_module("certree.cli.app")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def find_strange_options(text, running):
    """Return the options in a text that neither the running command nor a named one has."""
    commands = list_commands()
    named = {name for name in _COMMANDS if re.search(rf"(?<![\w-]){name}(?!\w)", text)}
    known = {
        option
        for name in {running, *named} & {*commands}
        for parameter in commands[name].params
        for option in parameter.opts
    }
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
