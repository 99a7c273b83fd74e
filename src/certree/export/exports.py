"""A method for each format, for all estimators whose predictions are a formula."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from certree.arrays import Float64
from certree.export.formula import Formula, Kind, Link, constant_tree
from certree.export.onnx_graph import onnx_model
from certree.fitted import reads_state
from certree.tree import Tree


class Exports:
    """Models that can be written in the words of others."""

    @abstractmethod
    def _formula(self) -> Formula:
        """What the fitted model computes."""

    def _formula_of(
        self,
        trees: Sequence[tuple[Tree, Float64]],
        kind: Kind,
        link: Link,
        *,
        rows: Sequence[Float64] | None = None,
        start: Float64 | None = None,
        power: float = 1.0,
    ) -> Formula:
        """A formula with what this model knows of its features and classes."""
        model: Any = self
        classes = getattr(model, "classes_", None)
        names = getattr(model, "feature_names_in_", None)
        if classes is not None and len(classes) == 1:
            tree, _ = constant_tree(model.n_features_in_, 1)
            trees, rows, kind, link, start = [(tree, np.ones((1, 1)))], None, "tree", "identity", None
        elif not trees:
            n_outputs = 1 if start is None else len(start)
            trees = [constant_tree(model.n_features_in_, n_outputs)]
        return Formula(
            trees,
            rows,
            kind,
            link,
            np.zeros(trees[0][1].shape[1]) if start is None else start,
            classes,
            None if names is None else [str(name) for name in names],
            model.categories_,
            power,
        )

    @reads_state
    def to_sklearn(self) -> Any:
        """x."""
        from certree.export.sklearn_model import sklearn_model

        return sklearn_model(self._formula())

    @reads_state
    def to_onnx(self, dtype: Any = "float32") -> Any:
        """x."""
        return onnx_model(self._formula(), dtype)
