"""Explanations: the contribution of each feature of a row to its prediction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certree.explain.value_formatting import format_value
from certree.interface.arrays import Float64
from certree.interface.extras import import_extra
from certree.interface.formatting import align_columns
from certree.interface.notebook import make_html_table
from certree.interface.positive_class import find_positive_class

Scale = Literal["probability", "raw score", "target"]

# Features of a row that are named in print; the others are summed up.
_MAX_FEATURES_SHOWN = 10
_MAX_ROWS_SHOWN = 5
# Columns of a printed table that still fit beside each other.
_MAX_OUTPUTS_SHOWN = 3


def build_explanation_fields(
    base: Float64, contributions: Float64, classes: NDArray[Any] | None, link: str
) -> dict[str, Any]:
    """Return the arguments of `Explanation` that depend on the target.

    Parameters
    ----------
    base : ndarray of float64, shape (n_outputs,)
        Output before any feature is taken into account, for instance the mean output.
    contributions : ndarray of float64, shape (n, n_outputs, p)
        Contributions of features to the outputs.
    classes : ndarray of shape (n_classes,), or None
        Classes of the target, ascending; None: it is numeric.
    link : str
        The function that turns the sum into a prediction: "logistic" or "softmax" (the outputs are
        raw scores of classes), "shares" (of forests) or "identity" (the outputs are probabilities),
        and for numbers "identity", "sorted" (several quantiles) or "exp".

    Returns
    -------
    dict
        "base", (K,); "contributions", (n, K, p); "output_names", K classes, or for numbers
        "prediction", or "y[0]", "y[1]", ... if there are several; and "scale", the unit of the
        output: "probability", "raw score" (of a class, or for the link "exp") or "target" (that of
        the target). If the only output is the probability of the second of two classes, an output
        for the first class is added, which makes K = 2.
    """
    if classes is not None and link in ("logistic", "softmax"):
        names: list[Any] = _list_scored_classes(classes)
        scale: Scale = "raw score"
    elif classes is not None:
        return _build_probability_fields(base, contributions, classes)
    else:
        names = ["prediction"] if len(base) == 1 else [f"y[{k}]" for k in range(len(base))]
        scale = "raw score" if link == "exp" else "target"
    return {"base": base, "contributions": contributions, "output_names": names, "scale": scale}


def select_positive_class(
    explanation: Explanation, classes: NDArray[Any] | None, pos_label: Any
) -> Explanation:
    """Return the explanation of the positive one of two classes alone.

    Parameters
    ----------
    explanation : Explanation
        Its outputs are both classes, or the raw score of the second class only.
    classes : ndarray of shape (K,), or None
        Classes of the target; None: it is numeric.
    pos_label : object or None
        The positive class; None: return the explanation unchanged.

    Returns
    -------
    Explanation
        With one output, the positive class. The raw score of the first class is minus that of the
        second.

    Raises
    ------
    ValueError
        If `pos_label` is not None and not one of two classes.
    """
    if pos_label is None:
        return explanation
    positive = find_positive_class(classes, pos_label)
    assert classes is not None  # find_positive_class has refused other targets.
    if len(explanation.output_names) == 2:
        base = explanation.base[positive : positive + 1]
        contributions = explanation.contributions[:, positive : positive + 1]
    else:
        sign = 1.0 if positive else -1.0
        base, contributions = sign * explanation.base, sign * explanation.contributions
    names = classes.tolist()[positive : positive + 1]
    return replace(explanation, base=base, contributions=contributions, output_names=names)


def _list_scored_classes(classes: NDArray[Any]) -> list[Any]:
    """Return the classes that have a raw score: the second of two classes, otherwise all.

    classes: sorted classes of the target, (K,).
    """
    return classes.tolist()[1:] if len(classes) == 2 else classes.tolist()


def _build_probability_fields(
    base: Float64, contributions: Float64, classes: NDArray[Any]
) -> dict[str, Any]:
    """Return the arguments of `Explanation` that depend on the target, for class probabilities.

    Parameters
    ----------
    base : ndarray of float64, shape (n_outputs,)
        Probabilities before any contribution: of all K classes, or of the second of two classes
        only.
    contributions : ndarray of float64, shape (n, n_outputs, p)
        Contributions of features to these probabilities.
    classes : ndarray of shape (K,)
        Classes of the target.

    Returns
    -------
    dict
        "base" and "contributions" with an output for each class, "output_names", which are the
        classes, and "scale", which is "probability".
    """
    k = len(classes)
    if k == 1:  # The only class has probability 1, whatever the output is.
        base, contributions = np.ones(1), np.zeros((len(contributions), 1, contributions.shape[2]))
    elif len(base) == 1:  # Only the second of two classes has an output.
        base = np.append(1 - base, base)
        contributions = np.concatenate([-contributions, contributions], axis=1)
    names = classes.tolist()
    return {
        "base": base[:k],
        "contributions": contributions[:, :k],
        "output_names": names,
        "scale": "probability",
    }


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Contributions of features to the predictions of some rows.

    The prediction of row i is `base`, which is equal for all rows, plus the contributions of all
    features::

        prediction[i, k] == base[k] + contributions[i, k].sum()

    Banzhaf values are not additive: they do not sum to the prediction. ``explanation[i]`` is the
    explanation of row i alone; ``explanation[3:7]`` and ``explanation[mask]`` select several rows.

    Parameters
    ----------
    base : ndarray of float64, shape (K,)
        Prediction before any feature is taken into account.
    contributions : ndarray of float64, shape (n, K, p)
        Contribution of each feature to each of the K outputs.
    feature_names : sequence of str, length p
        Names of the features; "x[0]", "x[1]", ... if the table of the fit had no names.
    output_names : sequence, length K
        Classes, or names of the outputs of a regressor.
    values : ndarray of shape (n, p)
        The features of the rows as the caller passed them, categories by their names.
    scale : {"probability", "raw score", "target"}
        Unit of the contributions: probabilities of classes; scores, from which a link function
        makes probabilities or numbers; or units of the target.
    additive : bool, default=True
        Whether base and contributions sum to the prediction.
    rules : sequence of (str or None), length n, or None
        The rule that each row satisfies, with its number, such as "R3: age > 40"; None for a row
        that satisfies no rule. None instead of the sequence: the rules of the model have no
        numbers (see `rules` of single trees).
    calendar_parts : mapping from int to sequence of str, length n, or None
        Calendar parts that the model reads beside dates, such as "Thu", by index of the feature; ""
        for a missing date. Printed explanations show them behind the date. None: there are none.

    Raises
    ------
    ValueError
        If shapes do not match, or the scale is unknown.
    """

    base: Float64
    contributions: Float64
    feature_names: Sequence[str]
    output_names: Sequence[Hashable]
    values: NDArray[Any]
    scale: Scale
    additive: bool = True
    rules: Sequence[str | None] | None = None
    calendar_parts: Mapping[int, Sequence[str]] | None = None

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise ValueError(f"scale must be one of {get_args(Scale)}, got {self.scale!r}")
        for name in ("feature_names", "output_names"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        n_outputs, p = len(self.output_names), len(self.feature_names)
        for name, shape in (
            ("base", (n_outputs,)),
            ("contributions", (len(self.contributions), n_outputs, p)),
            ("values", (len(self.contributions), p)),
        ):
            # A view is read-only, while the caller's array stays writable.
            array = np.asarray(getattr(self, name)).view()
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.rules is not None and len(self.rules) != len(self):
            raise ValueError(f"rules must have length {len(self)}, got {len(self.rules)}")
        for j, texts in (self.calendar_parts or {}).items():
            if not 0 <= j < p or len(texts) != len(self):
                raise ValueError(
                    f"calendar_parts must hold {len(self)} texts for features in 0 .. {p - 1}, got "
                    f"{len(texts)} for feature {j}"
                )

    def __len__(self) -> int:
        return len(self.contributions)

    def __getitem__(self, rows: Any) -> Explanation:
        """Return the explanation of selected rows: an integer, slice, mask, or list of integers.

        An integer gives an explanation of one row, whose arrays keep their first axis.
        """
        if isinstance(rows, int | np.integer):
            row = range(len(self))[rows]
            rows = slice(row, row + 1)

        def select(texts: Sequence[str | None]) -> Any:
            """Select the texts of some rows, and return them as a list.

            texts: one text, or None, for each row; the indices `rows` are those of the enclosing
            method.
            """
            return np.array([*texts], dtype=object)[rows].tolist()

        parts = self.calendar_parts
        return Explanation(
            self.base,
            self.contributions[rows],
            self.feature_names,
            self.output_names,
            self.values[rows],
            self.scale,
            self.additive,
            None if self.rules is None else select(self.rules),
            None if parts is None else {j: select(texts) for j, texts in parts.items()},
        )

    def format_values(self, i: int) -> list[str]:
        """Return the p feature values of row i as text, as a list of str.

        Calendar parts that the model reads follow a date in parentheses. i: index of the row.
        """
        parts = self.calendar_parts or {}
        return [
            format_value(value, parts[j][i] if j in parts else "")
            for j, value in enumerate(self.values[i].tolist())
        ]

    @property
    def prediction(self) -> Float64:
        """Prediction of each row and output, (n, K): the base plus the contributions of all features.

        Raises
        ------
        ValueError
            If the explanation is not additive, as that by Banzhaf values.
        """
        if not self.additive:
            raise ValueError(
                "prediction needs an additive explanation, but Banzhaf values do not sum to the "
                "prediction: call the model's predict or predict_proba"
            )
        return self._sum

    @property
    def _sum(self) -> Float64:
        """Base plus the contributions of all features, for each row and output, (n, K).

        Unlike `prediction` it exists for Banzhaf values, too, where it is not the prediction.
        """
        total: Float64 = self.base + self.contributions.sum(axis=2)
        return total

    def to_frame(self) -> Any:
        """Convert the explanation to a data frame with a line for each row, output and feature.

        Returns
        -------
        pandas.DataFrame
            Columns "row", "output", "feature", "value" (of the feature) and "contribution". Each
            row and output has first a line with the feature "base", whose value is None, then one
            line for each feature.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        n, n_outputs, p = self.contributions.shape
        values = np.full((n, n_outputs, p + 1), None, dtype=object)
        values[:, :, 1:] = self.values[:, None]
        base = np.broadcast_to(self.base[:, None], (n, n_outputs, 1))
        row, output, feature = np.indices(values.shape).reshape(3, -1)
        names = np.array(["base", *self.feature_names], dtype=object)
        frame = {
            "row": row,
            "output": [self.output_names[k] for k in output],
            "feature": names[feature],
            "value": values.ravel(),
            "contribution": np.concatenate([base, self.contributions], axis=2).ravel(),
        }
        return import_extra("pandas", "frames").DataFrame(frame)

    def __str__(self) -> str:
        tables = [
            "\n".join([*align_columns(self._make_table(i)[0]), *self._name_rule(i)])
            for i in self._shown_rows
        ]
        return "\n\n".join([*tables, *self._footer])

    def _repr_html_(self) -> str:
        tables = []
        for i in self._shown_rows:
            (head, *lines), strengths = self._make_table(i)
            largest = max(map(abs, strengths), default=0.0) or 1.0
            bars = [0.0, *(strength / largest for strength in strengths), *[0.0] * self.additive]
            tables.append(make_html_table("", head, lines, bars))
            tables += (f"<p>{escape(line)}</p>" for line in self._name_rule(i))
        return "".join([*tables, *(f"<p>{line}</p>" for line in self._footer)])

    def _name_rule(self, i: int) -> list[str]:
        """Return a list of one line that names the rule which row i satisfies.

        The line is, for instance, "rule R3: age > 40". The list is empty if rules have no numbers,
        or the row satisfies none. i: index of the row.
        """
        rule = None if self.rules is None else self.rules[i]
        return [] if rule is None else [f"rule {rule}"]

    @property
    def _shown_rows(self) -> range:
        """Indices of the rows that are printed: the first five, or all if there are fewer."""
        return range(min(len(self), _MAX_ROWS_SHOWN))

    @property
    def _footer(self) -> list[str]:
        """Lines below printed tables: one with the number of rows not shown, none if all are."""
        n = len(self) - len(self._shown_rows)
        return [f"... and {n:,} more rows"] if n else []

    def _make_table(self, i: int) -> tuple[list[list[str]], list[float]]:
        """Return the printed table of row i, and the numbers that bars in its HTML form show.

        Features are sorted by their largest contribution to an output that is shown, in absolute
        value. Those that would print as 0 are not named, but belong to "other features".

        Returns
        -------
        lines : list of list of str
            Text cells, line by line: the heading, "base", the features with the largest
            contributions (at most ten), one line for all other features, and "prediction" if the
            explanation is additive. There is a column for each output that is shown.
        strengths : list of float
            Contribution to the first shown output of each line between base and prediction, with
            its sign.
        """
        added, predicted = self.contributions[i], self._sum[i]
        outputs = self._select_outputs(predicted)
        strength = np.abs(added[outputs]).max(axis=0)
        order = np.argsort(-strength, kind="stable")
        n_named = min(int((strength >= self._smallest_shown).sum()), _MAX_FEATURES_SHOWN)
        named, others = order[:n_named], order[n_named : (strength > 0).sum()]
        values = self.format_values(i)
        terms = [
            (f"{self.feature_names[j]} = {values[j]}", added[outputs, j]) for j in named.tolist()
        ]
        if len(others):
            label = "1 other feature" if len(others) == 1 else f"{len(others)} other features"
            terms.append((label, added[outputs][:, others].sum(axis=1)))
        head = [f"row {i}" if len(self) > 1 else "", *map(self._make_title, outputs)]
        lines = [["base", *self._format_numbers(self.base[outputs])]]
        lines += [[label, *self._format_numbers(numbers, "+")] for label, numbers in terms]
        if self.additive:
            lines.append(["prediction", *self._format_numbers(predicted[outputs])])
        return [head, *lines], [float(numbers[0]) for _, numbers in terms]

    def _select_outputs(self, predicted: Float64) -> list[int]:
        """Return the indices of the outputs that are shown for a row.

        predicted: the row's prediction, (K,). All outputs if they are numbers of the target's
        scale; the second of two classes, so that all rows have the same; otherwise the three
        largest, largest first.
        """
        if self.scale == "target":
            return [*range(len(predicted))]
        if len(predicted) == 2 and self.scale == "probability":  # The other class mirrors it.
            return [1]
        return np.argsort(-predicted, kind="stable")[:_MAX_OUTPUTS_SHOWN].tolist()

    @property
    def _smallest_shown(self) -> float:
        """Smallest absolute contribution that does not print as 0: 0.0005 for three decimals.

        In units of the target, which print with five digits, any contribution but 0.
        """
        return np.finfo(np.float64).tiny if self.scale == "target" else 0.0005

    def _format_numbers(self, numbers: Float64, sign: str = "") -> list[str]:
        """Format numbers, (k,), for a printed table.

        Five digits if they are in units of the target, else three decimals.
        sign: "+" to print the sign of positive numbers, or "".
        """
        digits = ".5g" if self.scale == "target" else ".3f"
        return [f"{number:{sign}{digits}}" for number in numbers]

    def _make_title(self, k: int) -> str:
        """Return the heading of the printed column of output k.

        "P(cat)" for the probability of the class cat, "score of cat" for its raw score, and the
        output's name for numbers in units of the target.
        """
        name = self.output_names[k]
        return {"probability": f"P({name})", "raw score": f"score of {name}"}.get(
            self.scale, str(name)
        )
