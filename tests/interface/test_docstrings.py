"""Docstrings that take descriptions of parameters from others."""

import inspect
import subprocess
import sys

import pytest

from certree.interface.docstrings import copy_descriptions_from


def fit(X, y, X_val, y_val):
    """Fit.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows:

        * numbers, or
        * categories.
    y : {"a", "b"}
        Target.
    X_val, y_val : array-like
        Validation set.

    Returns
    -------
    y : None
        Nothing.
    """


def read_documented_parameters(documented):
    return inspect.getdoc(documented).split("----------\n")[1]


def test_names_in_braces_become_descriptions():
    class Model:
        @copy_descriptions_from(fit)
        def update(self, X, size, y, X_val, y_val):
            """Update.

            Parameters
            ----------
            {X}
            size : int
                A set {X} of numbers, or {y}.
            {y} {X_val, y_val}
            """

    X, rest = read_documented_parameters(fit).split("    * categories.\n")
    others = rest.split("\n\nReturns")[0]
    own = "size : int\n    A set {X} of numbers, or {y}.\n"
    assert read_documented_parameters(Model.update) == f"{X}    * categories.\n{own}{others}"


def test_the_first_source_that_has_a_name_describes_it():
    def predict(X):
        """Predict.

        Parameters
        ----------
        X : DataFrame
            New rows.
        """

    def score(X, y):
        """Score.

        Parameters
        ----------
        {X} {y}
        """

    copy_descriptions_from(predict, fit)(score)
    expected = 'X : DataFrame\n    New rows.\ny : {"a", "b"}\n    Target.'
    assert read_documented_parameters(score) == expected


def test_a_name_without_description_is_refused():
    def score(z):
        """Score.

        Parameters
        ----------
        {z}
        """

    with pytest.raises(ValueError, match=r"score must name descriptions of fit, got \{z\}"):
        copy_descriptions_from(fit)(score)


@pytest.mark.slow
def test_nothing_happens_without_docstrings():
    def score(X):
        pass

    assert copy_descriptions_from(fit)(score) is score
    assert score.__doc__ is None
    code = "import certree; print(certree.BoostedTreesRegressor.__doc__)"
    command = [sys.executable, "-OO", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "None\n"
