"""Explanations: what each feature of a row adds to its prediction."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certree.explain.values import value_in_words
from certree.interface.arrays import Float64
from certree.interface.extras import import_extra
from certree.interface.formatting import align_columns
from certree.interface.notebook import make_html_table

Scale = Literal["probability", "raw score", "target"]

# So many features of a row are named, the rest is summed up, and so many rows are shown.
_FEATURES, _ROWS = 10, 5
# So many classes beside each other can be read.
_OUTPUTS = 3


def parts_of(
    base: Float64, added: Float64, classes: NDArray[Any] | None, link: str
) -> dict[str, Any]:
    """The fields of an explanation that speak of the target, of what is added up before a link."""
    if classes is not None and link in ("logistic", "softmax"):
        names: list[Any] = _scored_classes(classes)
        scale: Scale = "raw score"
    elif classes is not None:
        return _parts_of_shares(base, added, classes)
    else:
        names = ["prediction"] if len(base) == 1 else [f"y[{k}]" for k in range(len(base))]
        scale = "raw score" if link == "exp" else "target"
    return {"base": base, "contributions": added, "output_names": names, "scale": scale}


def _scored_classes(classes: NDArray[Any]) -> list[Any]:
    """Classes that have a score of their own: of two the second, whose score is for it."""
    return classes.tolist()[1:] if len(classes) == 2 else classes.tolist()


def _parts_of_shares(base: Float64, added: Float64, classes: NDArray[Any]) -> dict[str, Any]:
    """The same of probabilities of classes."""
    k = len(classes)
    if k == 1:  # it has all, whatever a second one would have
        base, added = np.ones(1), np.zeros((len(added), 1, added.shape[2]))
    elif len(base) == 1:  # only the second of two classes has an output
        base = np.append(1 - base, base)
        added = np.concatenate([-added, added], axis=1)
    names = classes.tolist()
    return {
        "base": base[:k],
        "contributions": added[:, :k],
        "output_names": names,
        "scale": "probability",
    }


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What each feature of some rows adds to what is predicted of them.

    A prediction is `base`, which is the same for all rows, and one contribution of each feature::

        prediction[i, k] == base[k] + contributions[i, k].sum()

    Values that are not additive, as those of Banzhaf, have no such sum, and tell no prediction.
    ``explanation[i]`` is the explanation of row i alone, ``explanation[3:7]`` and
    ``explanation[mask]`` are those of several.

    Parameters
    ----------
    base : ndarray of float64, shape (K,)
        What is predicted before any feature is looked at.
    contributions : ndarray of float64, shape (n, K, p)
        What each feature adds to each of the K outputs.
    feature_names : sequence of str, length p
        Names of the features; "x[0]", "x[1]", ... where the rows of the fit had none.
    output_names : sequence, length K
        Classes, or names of what is predicted.
    values : ndarray of shape (n, p)
        The features of the rows as they were given, categories by their names.
    scale : {"probability", "raw score", "target"}
        What is added up: shares of the vote; scores, from which probabilities or numbers are made;
        or numbers in units of the target.
    additive : bool, default=True
        Whether base and contributions sum to the prediction.

    Raises
    ------
    ValueError
        If shapes do not go together, or the scale is unknown.
    """

    base: Float64
    contributions: Float64
    feature_names: Sequence[str]
    output_names: Sequence[Hashable]
    values: NDArray[Any]
    scale: Scale
    additive: bool = True

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
            # A view, so that who has made the array may still write it.
            array = np.asarray(getattr(self, name)).view()
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.contributions)

    def __getitem__(self, rows: Any) -> Explanation:
        """The explanations of one row or of several."""
        if isinstance(rows, int | np.integer):
            row = range(len(self))[rows]
            rows = slice(row, row + 1)
        return Explanation(
            self.base,
            self.contributions[rows],
            self.feature_names,
            self.output_names,
            self.values[rows],
            self.scale,
            self.additive,
        )

    @property
    def prediction(self) -> Float64:
        """What is predicted of each row, (n, K): the base and all contributions.

        Raises
        ------
        ValueError
            If they do not sum to it.
        """
        if not self.additive:
            raise ValueError("these values do not sum to the prediction: ask the model for it")
        return self._sum

    @property
    def _sum(self) -> Float64:
        total: Float64 = self.base + self.contributions.sum(axis=2)
        return total

    def to_frame(self) -> Any:
        """Give all numbers as a data frame.

        Returns
        -------
        pandas.DataFrame
            Columns "row", "output", "feature", "value" and "contribution"; of each row and output
            first the line "base", whose value is None, then one line for each feature.

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
        shown = ["\n".join(align_columns(self._table(i)[0])) for i in self._rows]
        return "\n\n".join([*shown, *self._more])

    def _repr_html_(self) -> str:
        shown = []
        for i in self._rows:
            (head, *lines), strengths = self._table(i)
            largest = max(map(abs, strengths), default=0.0) or 1.0
            bars = [0.0, *(one / largest for one in strengths), *[0.0] * self.additive]
            shown.append(make_html_table("", head, lines, bars))
        return "".join([*shown, *(f"<p>{more}</p>" for more in self._more)])

    @property
    def _rows(self) -> range:
        return range(min(len(self), _ROWS))

    @property
    def _more(self) -> list[str]:
        """What is said of rows that are not shown."""
        n = len(self) - len(self._rows)
        return [f"... and {n:,} more rows"] if n else []

    def _table(self, i: int) -> tuple[list[list[str]], list[float]]:
        """A row as a table of words, and how much its features add to the first output."""
        added, predicted = self.contributions[i], self._sum[i]
        outputs = self._outputs(predicted)
        strength = np.abs(added[outputs]).max(axis=0)
        order = np.argsort(-strength, kind="stable")
        n_named = min(int((strength >= self._least).sum()), _FEATURES)
        named, others = order[:n_named], order[n_named : (strength > 0).sum()]
        values = [value_in_words(value) for value in self.values[i, named].tolist()]
        parts = [
            (f"{self.feature_names[j]} = {value}", added[outputs, j])
            for j, value in zip(named, values, strict=True)
        ]
        if len(others):
            words = "1 other feature" if len(others) == 1 else f"{len(others)} other features"
            parts.append((words, added[outputs][:, others].sum(axis=1)))
        lines = [[words, *(f"{one:+{self._form}}" for one in part)] for words, part in parts]
        head = [f"row {i}" if len(self) > 1 else "", *map(self._title, outputs)]
        first = ["base", *(f"{one:{self._form}}" for one in self.base[outputs])]
        if self.additive:
            lines.append(["prediction", *(f"{one:{self._form}}" for one in predicted[outputs])])
        return [head, first, *lines], [float(part[0]) for _, part in parts]

    def _outputs(self, predicted: Float64) -> list[int]:
        """Which outputs of a row are shown: of classes those that are likeliest."""
        if self.scale == "target":
            return [*range(len(predicted))]
        if len(predicted) == 2 and self.scale == "probability":  # the other one mirrors it
            return [int(predicted.argmax())]
        return np.argsort(-predicted, kind="stable")[:_OUTPUTS].tolist()

    @property
    def _least(self) -> float:
        """What is less would be written as 0."""
        return np.finfo(np.float64).tiny if self.scale == "target" else 0.0005

    @property
    def _form(self) -> str:
        return ".5g" if self.scale == "target" else ".3f"

    def _title(self, k: int) -> str:
        name = self.output_names[k]
        return {"probability": f"P({name})", "raw score": f"score of {name}"}.get(
            self.scale, str(name)
        )
