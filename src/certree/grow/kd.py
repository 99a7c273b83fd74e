"""The grower KD: each node is split near the median of one feature, whatever the target."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from certree._core import grow_kd as core_grow_kd
from certree.grow.threshold_placement import place_thresholds
from certree.grow.training_samples import MaxDepth, TrainingSamples
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.threads import get_n_threads
from certree.tree import Tree

Axis = Literal["cycle", "spread"]


class KD(BaseEstimator):
    """Grower that splits each node near the median of one feature, whatever the target is.

    A node is split between two distinct values of one feature, at the gap nearest to the median of
    its rows (the upper of two equally near gaps). The threshold is the middle of the gap. A feature
    that is constant in the node is skipped; a node in which all features are constant is a leaf.
    NaN counts as larger than every number. Monotonic constraints and categorical features are not
    supported.

    Parameters
    ----------
    axis : {"spread", "cycle"}, default="spread"
        Feature that splits a node. "spread": the feature with the largest range in the node, in
        units of its standard deviation over all rows. "cycle": the feature after that of the
        parent.
    min_samples_split : float, default=2
        A node of fewer rows is a leaf. A number of rows, at least 2, not a fraction of them; each row
        counts once, whatever its weight.
    stop_when_pure : bool, default=True
        Whether a node is a leaf if all its rows have the same class or the same target value.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, Section 5. Bentley, "Multidimensional binary
    search trees used for associative searching", Communications of the ACM 1975.

    Examples
    --------
    >>> from certree import KD, PACBayesTreeClassifier
    >>> PACBayesTreeClassifier(KD(axis="cycle"))
    PACBayesTreeClassifier(grower=KD(axis='cycle'))
    """

    depends_on_rows = True
    supports_monotonic_cst = False

    def __init__(
        self, axis: Axis = "spread", *, min_samples_split: float = 2, stop_when_pure: bool = True
    ) -> None:
        self.axis: Axis = axis
        self.min_samples_split = min_samples_split
        self.stop_when_pure = stop_when_pure

    def grow(self, rows: TrainingSamples) -> Tree:
        """Grow a KD tree and return it.

        Each node is split near the median of one feature. The tree has no leaf values. rows: the
        training samples. Their target is read only if `stop_when_pure`, and None is allowed.
        Medians and standard deviations use the row weights. Raise ValueError if a parameter of the
        grower is out of range.
        """
        validate_settings(self)
        if self.axis not in ("cycle", "spread"):
            raise ValueError(
                'axis must be "cycle" (the feature after that of the parent node) or "spread" (the '
                f"feature with the largest range in the node), got {self.axis!r}"
            )
        columns = core_grow_kd(
            rows.X,
            y=rows.target_codes if self.stop_when_pure else None,
            weight=rows.relative_weight,
            **rows.stopping_options(self.min_samples_split),
            spread=self.axis == "spread",
            n_threads=get_n_threads(rows.n_jobs),
        )
        return place_thresholds(
            Tree.from_grower_columns(columns, rows.X.shape[1]),
            rows.X,
            at_middle=True,
            dates=rows.dates,
            n_threads=get_n_threads(rows.n_jobs),
        )


@validate_arguments
def grow_kd(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    max_depth: MaxDepth = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    **parameters: Any,
) -> Tree:
    """Grow a tree whose nodes are split near the median of one feature; see `KD`.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows, float64 or float32; NaN where a value is missing.
    y : array-like of shape (n,), or None
        Class of each row, or a number; read only if `stop_when_pure`.
    max_depth : int, "log" or None
        Nodes at this depth are leaves; "log" is p times the integer part of ln n, None no limit.
    sample_weight : array-like of shape (n,), or None
        Weight of each row in medians and standard deviations; None: 1. `min_samples_split` and the
        depth "log" count each row once. Rows of weight 0 are left out.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The tree does not depend on it.
    **parameters
        Constructor parameters of `KD`.

    Returns
    -------
    Tree
        The tree, without leaf values: `count` or `measure` computes statistics of its nodes.

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range, or a parameter is unknown or out of range.

    Examples
    --------
    >>> from certree import grow_kd
    >>> float(grow_kd([[0.0], [1.0], [5.0], [6.0]], max_depth=1).threshold[0])
    3.0
    """
    rows = TrainingSamples.from_arrays(X, y, sample_weight, max_depth=max_depth, n_jobs=n_jobs)
    return KD(**parameters).grow(rows)
