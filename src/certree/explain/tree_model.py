"""Models that add up trees: what all can be asked once they say what they add up."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certree.explain.explanation import Explanation, parts_of
from certree.explain.lanes import Lanes
from certree.explain.several_targets import parts_of_columns
from certree.explain.summed import SummedTrees
from certree.export.formula import Formula, Kind, Link, constant_tree
from certree.export.nodes_frame import nodes_frame
from certree.export.onnx_graph import onnx_model
from certree.export.plain_dict import plain_dict
from certree.export.sql import sql_statement
from certree.interface.arrays import Float64
from certree.interface.fitted_state import available_if, get_snapshot, snapshot_method
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads
from certree.rows.training import TakesRows
from certree.tree import Trees

AnyTrees = TypeVar("AnyTrees", bound=Trees)


def adds_up(model: TreeModel) -> bool:
    """Whether leaves say shares or numbers, and not models of their own."""
    return get_snapshot(model)._leaves_say_values()


class TreeModel(TakesRows, BaseEstimator, metaclass=ABCMeta):
    """A model that adds up what the leaves of trees say.

    It says once what that is, by `_summed_trees`, and `_link` leads from there to what is predicted.
    Explanations, Shapley values, importances and exports follow.
    """

    trees_: Any
    start_: Float64
    n_jobs: int | None
    _importances: Float64

    # -- what is added up --------------------------------------------------------------------------

    @abstractmethod
    def _link(self) -> Link:
        """From what is added up to what is predicted."""

    def _leaves_say_values(self) -> bool:
        return True

    @available_if(adds_up)
    @snapshot_method
    def _summed_trees(self) -> SummedTrees:
        """The trees and what they are added to; they may keep no rows of their nodes."""
        check_is_fitted(self)
        return SummedTrees(self.trees_, self.start_, None, self._parts)

    @abstractmethod
    def _formula(self) -> Formula:
        """What the fitted model computes."""

    def _contributions(self, rows: NDArray[Any]) -> tuple[Float64, Float64]:
        """What is said before any feature is known, (n_outputs,), and what each adds to it."""
        summed = self._summed_trees()
        base = summed.start + summed.trees.at_roots
        return base, summed.trees.contributions(rows, get_n_threads(self.n_jobs))

    def _parts(self, base: Float64, added: Float64) -> dict[str, Any]:
        """The fields of an explanation that speak of the target, of what trees add up to."""
        classes = getattr(self, "classes_", None)
        if classes is not None and self._has_several_targets():
            return parts_of_columns(base, added, classes, self._lanes, self._link())
        return parts_of(base, added, classes, self._link())

    @property
    def _lanes(self) -> Lanes:
        """What leaves say of each target; here of classes, of two of them the share of the second."""
        return Lanes.of_classes(np.atleast_1d(self.n_classes_).tolist())

    def _stored_trees(self, kind: type[AnyTrees], stored: StoredState, **known: Any) -> AnyTrees:
        """The trees that a file holds, if they go with what is known of the features."""
        names = None if self.categories_ is None else self.categories_.names
        return kind.from_stored(stored, n_features=self.n_features_in_, **known).among(names)

    # -- explanations ------------------------------------------------------------------------------

    @available_if(adds_up)
    @snapshot_method
    def explain(self, X: ArrayLike) -> Explanation:
        """Say how much each feature adds to the prediction of each row.

        A prediction is what the roots say, and for every cut on the path of the row through a tree the
        change from the cell to the part of it that the row is in, times the probability that a pruning
        makes the cut. The change belongs to the feature that is compared. Sums are exact, and cost
        little more than a prediction. They are no Shapley values: a feature that acts through another
        one which is compared first gets less.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        Explanation
            Contributions to the probabilities of the classes, in forests before their power, or to the
            number. Of boosted trees and AdaBoost to the score: the log odds of the second of two
            classes (of AdaBoost half of them), a score for each of more classes, or the number, for
            "poisson", "gamma" and "tweedie" its logarithm; several numbers are outputs "y[0]" and so
            on, and several quantiles those before they are sorted.
        """
        rows, values = self._rows_and_values(X)
        parts = self._parts(*self._contributions(rows))
        return Explanation(feature_names=self._feature_names(), values=values, **parts)

    # -- importances -------------------------------------------------------------------------------

    def _worth_of_features(self) -> Float64:
        """What cuts by each feature are worth, (p,); here as the fit has kept it."""
        return self._importances

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Share of each feature in what cuts are worth, (p,); all zero if none is worth anything.

        In a tree that votes, that is how far a cut lowers the impurity, Gini's or sums of squares,
        times the probability that a pruning drawn by its weight makes it; in a forest how far cuts
        lower the impurity, on average over trees; in boosted trees how far steps move rows, squared.
        """
        check_is_fitted(self)
        worth = self._worth_of_features()
        total = worth.sum()
        return worth / (total if total > 0 else 1.0)

    # -- exports -----------------------------------------------------------------------------------

    def _formula_of(
        self,
        added: Trees,
        kind: Kind,
        link: Link,
        *,
        rows: Float64 | None = None,
        start: Float64 | None = None,
        power: float = 1.0,
    ) -> Formula:
        """A formula with what this model knows of its features and classes."""
        model: Any = self
        self._expect_texts(added)
        classes = getattr(model, "classes_", None)
        names = getattr(model, "feature_names_in_", None)
        if classes is not None and len(classes) == 1:
            only = np.ones((1, 1))
            added, kind, link = constant_tree(model.n_features_in_, only), "tree", "identity"
            rows, start = None, None
        elif not len(added):  # the start is all that is said
            added = constant_tree(model.n_features_in_, np.zeros((1, added.value.shape[1])))
        return Formula(
            (*added,),
            None if rows is None else np.split(rows, added.root[1:]),
            kind,
            link,
            np.zeros(added.value.shape[1]) if start is None else start,
            classes,
            None if names is None else [str(name) for name in names],
            model.categories_,
            power,
        )

    def _expect_texts(self, trees: Trees) -> None:
        """Refuse to write categories of which a model that was loaded has digests alone.

        Trees compare these where a fit with warm_start=True has added some to a loaded model.
        """
        digested = [] if self.categories_ is None else [*self.categories_.digested]
        compared = np.intersect1d(trees.feature[~trees.is_leaf], digested)
        if len(compared):
            raise ValueError(
                f"feature {self._feature_names()[compared[0]]!r} has categories whose texts its model "
                "file has left out, as no tree compared them then, and some tree does now: fit the "
                "model anew to export it"
            )

    @snapshot_method
    def to_sklearn(self) -> Any:
        """Copy the model into an estimator of scikit-learn.

        For what works on those: `sklearn.tree.plot_tree`, ``shap.TreeExplainer`` and the like. The
        vote is one tree, whose leaves say the outcome. Rows are numbers; categories are codes, as
        ``categories_.encode(X)`` gives them, and a set of them is a chain of cuts.

        Returns
        -------
        DecisionTreeClassifier, RandomForestClassifier, HistGradientBoostingClassifier or regressor
            For a tree, for a forest, and for boosted trees, which have missing values only there; of
            several numbers one HistGradientBoostingRegressor for each, in a MultiOutputRegressor.
            Predictions are equal for rows of float32. The first two round all rows to float32, which
            changes no prediction unless a warning names features that need float64. Where
            no row of the fit lacked a value, a single tree sends rows that lack it to the child with
            more rows, where this model averages over both.

        Raises
        ------
        TypeError
            If leaves hold models.
        ValueError
            If a forest has a power (see `Leaves`), one fit has several quantiles, chains of cuts would
            need more than 2**22 nodes, or a preprocessor or learners that are no trees of certree have
            a part.
        NotFittedError
            If there is no fit.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from certree import PACBayesTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> PACBayesTreeClassifier(random_state=0).fit(X, y).to_sklearn().predict(X[:2])
        array([0, 0])
        """
        # Ensembles of scikit-learn take a while to import.
        from certree.export.sklearn_model import sklearn_model

        return sklearn_model(self._formula())

    @snapshot_method
    def to_onnx(self, dtype: Literal["float32", "float64", "auto"] = "float32") -> Any:
        """Write the model as a graph of ONNX.

        Needs ``certree[onnx]``. The input ``X``, (n, p), holds numbers, NaN where a value is missing,
        and codes of categories as ``categories_.encode(X)`` gives them; their names stand in the
        model's metadata. Outputs are ``label`` and ``probabilities``, (n, K), or ``variable``, (n, 1)
        or of several numbers (n, q), as those of skl2onnx.

        Parameters
        ----------
        dtype : {"float32", "float64", "auto"}
            Of the rows, and of probabilities or predictions. "auto" takes float64 if some feature
            needs it, and float32 otherwise. With "float64" all rows go the same way as here. With
            "float32" they do, too, unless thresholds lie between values that float32 does not tell
            apart, such as Unix times; a warning names the features.

        Returns
        -------
        onnx.ModelProto
            Of opset 18 and ``ai.onnx.ml`` 5.

        Raises
        ------
        ImportError
            If onnx is not installed.
        TypeError, ValueError, NotFittedError
            As in `to_sklearn`, but powers and sets of categories are no matter.
        """
        return onnx_model(self._formula(), dtype)

    @snapshot_method
    def to_dict(self) -> dict[str, Any]:
        """Write the model as plain dictionaries, lists, numbers and strings.

        ``json.dumps`` makes text of it that has all digits, and the form is documented: a reader needs
        nothing of certree.

        Returns
        -------
        dict
            In the form of ``docs/model.schema.json``.

        Raises
        ------
        TypeError, ValueError, NotFittedError
            As in `to_onnx`.
        """
        return plain_dict(self._formula())

    @snapshot_method
    def trees_to_dataframe(self) -> Any:
        """Write the trees as a table, a row for each node.

        Needs ``certree[frames]``. Columns are those of LightGBM: "tree_index"; "node_depth", 1 for
        roots; "node_index", such as "3-S0" for a split and "3-L2" for a leaf of tree 3, with the
        numbers that `apply` gives; "left_child", "right_child", "parent_index"; "split_feature"; the
        "threshold" up to which ("decision_type" "<=") rows go left, or the categories that do ("=="),
        between which || stands; "missing_direction", "both" where rows that lack the value go both
        ways; "missing_type"; "value", what a leaf says, of several outputs "value_0" and so on; and
        "count", the rows of the fit in the node, NaN where the model has not kept them. No model keeps
        "split_gain" and "weight": they are NaN. What leaves say is summed, or averaged in a forest,
        beyond `start_`.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        TypeError, ValueError, NotFittedError
            As in `to_onnx`.
        """
        return nodes_frame(self._formula())

    @snapshot_method
    def to_sql(self, table: str, *, keep: Sequence[str] = ()) -> str:
        """Write the model as a statement of SQL that predicts the rows of a table.

        DuckDB and SQLite run it. Each class has an expression of CASE for each tree. NULL and NaN are
        missing values, as is a category that the fit had not.

        Parameters
        ----------
        table : str
            Name of the table, whose columns are called like the features: x0, x1, ... if the fit had
            no names.
        keep : sequence of str
            Columns of the table that are selected, too.

        Returns
        -------
        str
            A SELECT with the columns `keep`, "prediction" and, of a classifier, ``probability_`` and
            each class; with a number behind it, where classes differ by case only. Of several numbers
            ``prediction_0`` and so on.

        Raises
        ------
        TypeError, ValueError, NotFittedError
            As in `to_onnx`, and if names differ by case only, are empty or hold a NUL, or one fit has
            several quantiles.

        Examples
        --------
        >>> from certree import PACBayesTreeRegressor
        >>> model = PACBayesTreeRegressor(max_depth=0).fit([[1.0], [2.0]], [0.0, 0.0])
        >>> print(model.to_sql("t"))
        SELECT
        0.0e0 AS "prediction"
        FROM "t" AS m_table
        """
        return sql_statement(self._formula(), table, keep)
