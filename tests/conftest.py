"""Profiles of Hypothesis, and what several test files draw."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=15, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("sanitize", max_examples=15, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("long", max_examples=1500, deadline=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def left_nothing(monkeypatch, tmp_path):
    """The folder of scratch files, which is empty in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())
