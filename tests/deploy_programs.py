"""The programs of the page "Deploy", and the model that they read."""

import os
import runpy
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd

import certree

PROGRAMS = Path(__file__).parent.parent / "docs" / "howto" / "deploy"
# The two orders that every program predicts: one with all values, and one without any.
ORDERS = pd.DataFrame(
    {
        "ordered": pd.to_datetime(["2026-09-14T09:30:00Z", None]),
        "weight": [12.5, np.nan],
        "country": ["NO", None],
    }
)


def write_model(folder):
    """Copy the programs to a folder, and let train.py fit and write the model there."""
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    with chdir(folder):
        runpy.run_path("train.py")
    return certree.load(folder / "late.certree")


def check_lines(text, model, rtol):
    """Check the printed predictions of the two orders: a label and a probability in each line."""
    labels, probabilities = zip(
        *(line.split() for line in text.split(os.linesep) if line), strict=True
    )
    assert [*labels] == model.predict(ORDERS).tolist()
    expected = model.predict_proba(ORDERS)[:, 0]
    np.testing.assert_allclose([*map(float, probabilities)], expected, rtol=rtol)
