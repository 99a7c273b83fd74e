"""Profiles of Hypothesis, the option for a part of the cases, and what several test files draw."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from run_length import select_drawn, split_cases

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=15, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("sanitize", max_examples=15, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("long", max_examples=300, deadline=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser):
    """Add the option --cases, which chooses a part of the tests and of their cases."""
    parser.addoption(
        "--cases",
        choices=["all", "few", "others", "drawn"],
        default="all",
        help="cases of parametrized tests: all, a few of each test, or those that `few` leaves out; "
        "drawn: all, but only of tests that draw more cases in long runs",
    )


@pytest.hookimpl(tryfirst=True)  # before other plugins shuffle the tests
def pytest_collection_modifyitems(config, items):
    """Keep the part of the tests that the option --cases chooses."""
    part = config.getoption("cases")
    if part == "all":
        return
    kept, dropped = select_drawn(items) if part == "drawn" else split_cases(items)
    if part == "others":
        kept, dropped = dropped, kept
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


@pytest.fixture
def left_nothing(monkeypatch, tmp_path):
    """The folder of scratch files, which is empty in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())
