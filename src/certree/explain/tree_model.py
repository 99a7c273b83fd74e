"""Base class of models that are sums of trees: explanations, importances and exports."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certree.certificates.thresholds import OperatingPoint, read_threshold
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.explanation import (
    Explanation,
    build_explanation_fields,
    select_positive_class,
)
from certree.explain.output_groups import OutputGroups
from certree.explain.several_targets import build_multioutput_explanation_fields
from certree.export.formula import Formula, Kind, Link, expect_no_parts, make_constant_tree
from certree.export.nodes_frame import make_nodes_frame
from certree.export.onnx_graph import make_onnx_model
from certree.export.plain_dict import make_plain_dict
from certree.export.source_code import Language, write_source
from certree.export.sql import make_sql_statement
from certree.interface.arrays import Float64
from certree.interface.fitted_state import (
    available_if,
    check_one_target,
    get_snapshot,
    snapshot_method,
)
from certree.interface.stored_fields import StoredField, get_shape
from certree.interface.stored_state import StoredState
from certree.interface.threads import get_n_threads
from certree.rows.calendar_parts import describe_parts, list_parts, name_parts
from certree.rows.training import RowInputMixin
from certree.tables.fitted_types import get_model_format
from certree.tree import Trees
from certree.weights.rule_numbers import RuleNumbers

AnyTrees = TypeVar("AnyTrees", bound=Trees)


def has_numeric_leaves(model: TreeModel) -> bool:
    """Return whether the leaves of a fitted model have probabilities or numbers, and not fitted models.

    It is the condition of scikit-learn's `available_if`, which hides explanations and exports from
    models whose leaves have fitted models.
    """
    return get_snapshot(model)._has_numeric_leaves()


def declare_trees(
    attribute: str,
    n_outputs: str | int = "_output_groups.n_outputs",
    least: float = -np.inf,
    most: float = np.inf,
) -> StoredField:
    """Describe how model files store an attribute that holds `Trees` with values at all nodes.

    attribute: name of the attribute; n_outputs: number of columns of the values, or the attribute
    of the model that has this number; least, most: smallest and largest value that is allowed. The
    `StoredField` reads the trees of a file after checks.
    """

    def read(stored: StoredState, name: str, model: TreeModel) -> Trees:
        shape = get_shape(model, (None, n_outputs))
        value = stored.get_numbers(f"{name}.value", shape, least, most)
        return model._restore_trees(Trees, stored.get_section(name), value=value)

    return StoredField(attribute, read)


class TreeModel(RowInputMixin, BaseEstimator, metaclass=ABCMeta):
    """Abstract base of models whose prediction is a function of a constant plus leaf values of trees.

    A subclass gives the trees by `_get_additive_trees`, the function by `_link`, and a description
    of the whole model by `_build_formula`. This class adds explanations, importances and exports.
    It has no constructor: `n_jobs` is a parameter of the subclass, and its `fit` sets the rest.

    Attributes
    ----------
    trees_ : Trees
        The fitted trees.
    start_ : ndarray of float64, shape (n_outputs,)
        The constant.
    n_jobs : int or None
        Number of threads; None is one, -1 all.
    """

    trees_: Any
    start_: Float64
    n_jobs: int | None
    _importances: Float64

    # -- the sum of trees --------------------------------------------------------------------------

    @abstractmethod
    def _link(self) -> Link:
        """Return the name of the function from sums of leaf values to predictions.

        "logistic" and "softmax" make probabilities from raw scores, "shares" from leaf
        probabilities; "identity" leaves probabilities or numbers as they are; "exp" and "sorted"
        (in ascending order, for quantiles) make numbers.
        """

    def _has_numeric_leaves(self) -> bool:
        """Return True: leaves have numbers. A subclass with models in its leaves returns False."""
        return True

    @available_if(has_numeric_leaves)
    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """Return the fitted model as a constant, `start_`, plus the leaf values of `trees_`.

        `AdditiveTrees` also has the function that turns contributions of features into an
        `Explanation`. Here it lacks the numbers of training rows in the nodes (None); subclasses
        that keep them override this. Raise NotFittedError if the model is not fitted.
        """
        check_is_fitted(self)
        return AdditiveTrees(self.trees_, self.start_, None, self._build_explanation_fields)

    @abstractmethod
    def _build_formula(self) -> Formula:
        """Return the description of the fitted model for exports; subclasses define it.

        A `Formula` holds the trees, how their leaf values are combined (value, mean or sum), the
        link function to predictions, the classes, and the names of features and categories.
        """

    def _compute_contributions(self, rows: NDArray[Any]) -> tuple[Float64, Float64]:
        """Divide the outputs of rows among the features by the splits on their paths.

        rows: numeric rows, (n, p), categories as codes. Inner nodes have values, too. Return the
        base, (n_outputs,), which is the constant plus the values of all roots, and the
        contributions, (n, n_outputs, p): for each feature, the sum of the changes of the node value
        at its splits, over all trees. The output of a row is the base plus the contributions of all
        features.
        """
        model = self._get_additive_trees()
        base = model.start + model.trees.root_value
        return base, model.trees.compute_contributions(rows, get_n_threads(self.n_jobs))

    def _build_explanation_fields(self, base: Float64, contributions: Float64) -> dict[str, Any]:
        """Return the arguments of `Explanation` that depend on the target of this model.

        `Explanation` holds the contributions of features to predictions. base: the model's output
        (a sum of leaf values) before any contribution, (n_outputs,); contributions: what each of p
        features adds to the outputs of n rows, (n, n_outputs, p). Classes of the target and link
        function are those of the fitted model. Return a dictionary: "base", (K,), and
        "contributions", (n, K, p), as passed, except that probabilities of two classes, of which
        the model stores the second only, get an output for the first class; "output_names", K
        classes, or names such as "y[0]=cat" (several targets) or "prediction" (a number); and
        "scale", the unit: "probability", "raw score" or "target" (that of the target).
        """
        classes = getattr(self, "classes_", None)
        if classes is not None and self._has_several_targets():
            return build_multioutput_explanation_fields(
                base, contributions, classes, self._output_groups, self._link()
            )
        return build_explanation_fields(base, contributions, classes, self._link())

    @property
    def _output_groups(self) -> OutputGroups:
        """Number of outputs of each target of this classifier.

        It is one for at most two classes, else one for each class. Outputs are columns of leaf
        values. The numbers of classes come from `n_classes_`.
        """
        return OutputGroups.for_classes(np.atleast_1d(self.n_classes_).tolist())

    def _restore_trees(self, kind: type[AnyTrees], stored: StoredState, **fields: Any) -> AnyTrees:
        """Build the trees of a model file, for this model's number of features.

        `n_features_in_` and `categories_` of this model must be set. Raise ValueError if a split is
        on categories that a feature of this model does not have.

        Parameters
        ----------
        kind : type
            Class of the trees, `Trees` or a subclass.
        stored : StoredState
            The section of the file with the columns of the trees.
        **fields
            Further constructor arguments of `kind`, which are not in the columns of the file.

        Returns
        -------
        Trees
            Of class `kind`.
        """
        model: Any = self
        categories = model._get_encoded_categories()
        names = None if categories is None else categories.names
        return kind.from_stored(stored, n_features=model._n_encoded, **fields).check_categories(
            names
        )

    # -- explanations ------------------------------------------------------------------------------

    @available_if(has_numeric_leaves)
    @snapshot_method
    def explain(self, X: ArrayLike, *, pos_label: Any = None) -> Explanation:
        """Compute how much each feature adds to the prediction of each row.

        A prediction is the value of the roots plus the changes at the splits on the path of the
        row. The change at a split is the value of the child minus that of the node, times the
        probability that a pruning makes the split; it belongs to the feature of the split. Sums are
        exact. They are not Shapley values: a feature gets less if another feature that carries the
        same information is split first. A pruning is the tree with some nodes turned into leaves.

        X: rows, (n, p). Return an `Explanation` with contributions to the probabilities of the
        classes or to the predicted number (for `TreeForestClassifier`, to the averages of its
        trees' probabilities, before it raises them to the power ``leaves_.power``); for boosted
        trees and AdaBoost, to the score: the log odds of the second of two classes (half of them for
        AdaBoost), a score for each of more classes, or the number, of which "poisson", "gamma" and
        "tweedie" have the logarithm. Several numbers are outputs "y[0]", "y[1]", ...; several
        quantiles are not sorted. pos_label: the positive one of two classes, which is then the only
        output, by its probability or log odds; None: the outputs as above. Raise ValueError if it
        is not one of two classes.
        """
        if pos_label is not None:
            check_one_target("pos_label", self)
        rows, values = self._encode_with_raw_values(X)
        base, contributions = self._compute_contributions(rows)
        fields = self._build_explanation_fields(base, self._fold_parts(contributions))
        explanation = Explanation(
            feature_names=self._feature_names(),
            values=values,
            rules=self._describe_rules(rows),
            calendar_parts=describe_parts(rows, self.n_features_in_, self.dates_),
            **fields,
        )
        return select_positive_class(explanation, getattr(self, "classes_", None), pos_label)

    def _describe_rules(self, rows: NDArray[Any]) -> list[str | None] | None:  # noqa: ARG002 -- no numbers
        """Return the numbered rule that each row satisfies; None: rules have no numbers, as here.

        rows: numeric rows, (n, p), categories as codes. An entry is a text such as "R3: age > 40",
        or None for a row that satisfies no rule.
        """
        return None

    # -- importances -------------------------------------------------------------------------------

    def _compute_importances(self) -> Float64:
        """Return the importance of each feature that the fit stored, (p,), not scaled to sum 1.

        It is the attribute `_importances`, summed over trees: for forests the fraction of the
        tree's decrease of impurity that splits on the feature make; for boosted trees the squared
        changes of scores at these splits.
        """
        return self._importances

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Importance of each feature, (p,), with sum 1; all 0 if no split changes anything.

        In a single tree, the importance of a split is the decrease of impurity (Gini's, or the sum
        of squares), times the probability that a pruning drawn from the posterior makes it. In a
        forest it is the fraction of a tree's decrease of impurity, averaged over trees. In boosted
        trees it is the sum of squared changes of the scores of rows. A pruning is the tree with
        some nodes turned into leaves.
        """
        check_is_fitted(self)
        importances = self._fold_parts(self._compute_importances())
        total = importances.sum()
        return importances / (total if total > 0 else 1.0)

    # -- exports -----------------------------------------------------------------------------------

    def _make_formula(
        self,
        trees: Trees,
        kind: Kind,
        link: Link,
        *,
        rows: Float64 | None = None,
        start: Float64 | None = None,
        power: float = 1.0,
        numbers: RuleNumbers | None = None,
    ) -> Formula:
        """Return the description of this model for exports, with its features and classes.

        A classifier of one class, and a model without trees, get one tree of a single leaf.

        Parameters
        ----------
        trees : Trees
            The trees, of M nodes together; the values of leaves are used.
        kind : {"tree", "forest", "boosted"}
            How leaf values are combined to outputs: the value of the only tree, the mean, or
            `start` plus the sum.
        link : str
            The function from outputs to predictions: "logistic" or "softmax" of raw scores,
            "shares" (probabilities to the power `power`, scaled to sum 1), "identity"
            (probabilities or numbers), or "exp" or "sorted" for numbers.
        rows : ndarray of float64, shape (M,), or None
            Training rows in each node; None if the model does not keep them.
        start : ndarray of float64, shape (n_outputs,), or None
            The constant to which boosted trees are added; None: 0.
        power : float
            Power to which a forest raises its mean probabilities.
        numbers : RuleNumbers or None
            The numbers of the rules of the only tree; None: they have none.

        Returns
        -------
        Formula
            The description, from which all exports are written.

        Raises
        ------
        ValueError
            If a tree splits on a feature whose category names are not known.
        """
        model: Any = self
        self._check_category_names(trees)
        classes = getattr(model, "classes_", None)
        names = getattr(model, "feature_names_in_", None)
        if names is None and list_parts(model.dates_):
            names = [f"x{j}" for j in range(model.n_features_in_)]
        names = None if names is None else name_parts(names, model.dates_)
        if classes is not None and len(classes) == 1:
            only = np.ones((1, 1))
            trees, kind, link = make_constant_tree(model._n_encoded, only), "tree", "identity"
            rows, start, numbers = None, None, None
        elif not len(trees):  # The model predicts the constant.
            trees = make_constant_tree(model._n_encoded, np.zeros((1, trees.value.shape[1])))
        return Formula(
            (*trees,),
            None if rows is None else np.split(rows, trees.root[1:]),
            kind,
            link,
            np.zeros(trees.value.shape[1]) if start is None else start,
            classes,
            None if names is None else [str(name) for name in names],
            model._get_encoded_categories(),
            power,
            model.dates_,
            numbers,
            tuple(list_parts(model.dates_)),
        )

    def _check_category_names(self, trees: Trees) -> None:
        """Raise ValueError if trees split on a feature whose category names are only known as hashes.

        The names are those of this model's `categories_`; exports need them.
        A model file leaves out the names of a feature that no tree splits on. Trees that are added
        to the loaded model with warm_start=True may split on it.
        """
        hashed = [] if self.categories_ is None else [*self.categories_.digested]
        unnamed = np.intersect1d(trees.feature[~trees.is_leaf], hashed)
        if len(unnamed):
            raise ValueError(
                f"categories must have names to export, but those of the feature "
                f"{self._feature_names()[unnamed[0]]!r} are unknown: the "
                "model file left them out, as no tree used the feature when it was saved. Fit the "
                "model again to export it"
            )

    @snapshot_method
    def to_sklearn(self) -> Any:
        """Copy the model into an estimator of scikit-learn.

        A tree becomes a DecisionTreeClassifier, a forest a RandomForestClassifier, and boosted
        trees a HistGradientBoostingClassifier, or the regressor; boosted trees of several numbers
        become a MultiOutputRegressor. The copy works with `sklearn.tree.plot_tree`,
        ``shap.TreeExplainer`` and the like. A vote becomes one tree, whose leaves hold the outcome.
        Rows are numbers; categories are codes, as returned by ``categories_.encode(X)``, and dates
        are days since 1970, UTC, which float32 rounds to minutes.

        Predictions are equal for rows of float32; a warning names features that need float64. If no
        training row lacked a value at a split, a single tree of scikit-learn sends rows that lack
        it to the child with more rows, while this model averages over both children.

        Raises
        ------
        TypeError
            If leaves hold models.
        ValueError
            If a forest raises its mean probabilities to a power (see `Leaves`), the model predicts
            several quantiles, splits on categories would need more than 2**17 nodes, or the model
            contains a preprocessor or learners that are not trees of certree.
        """
        # Ensembles of scikit-learn take a while to import.
        from certree.export.sklearn_model import make_sklearn_model

        return make_sklearn_model(self._build_formula())

    @snapshot_method
    def to_onnx(
        self,
        dtype: Literal["float32", "float64", "auto"] = "float32",
        *,
        inputs: Literal["matrix", "named"] = "matrix",
        pos_label: Any = None,
    ) -> Any:
        """Convert the model to an ``onnx.ModelProto`` of opset 18 and ``ai.onnx.ml`` 5.

        Needs ``certree[onnx]``. The input ``X``, (n, p), holds numbers, NaN for missing values, and
        codes of categories as returned by ``categories_.encode(X)``; the metadata of the graph has
        their names. Outputs are ``label`` and ``probabilities``, (n, K), or ``variable``, (n, 1)
        or, for several numbers, (n, q), as those of skl2onnx.

        Parameters
        ----------
        dtype : {"float32", "float64", "auto"}
            Type of the rows, and of probabilities or predictions. "auto" means float64 if some
            feature needs it or predictions may exceed float32, and float32 otherwise. With
            "float64" all rows reach the same leaves as in this model. With "float32" they do, too,
            unless a threshold separates values that are equal in float32, such as Unix times; a
            warning names the features.
        inputs : {"matrix", "named"}
            "named" replaces ``X`` by an input (n, 1) for each feature, with its name: texts for
            categories that are texts, and int64 microseconds for dates (since 1970, UTC) and time
            spans, with -2^63, NumPy's NaT, for missing ones. Texts that are no category of the fit
            are missing values. A model of dates needs "named", and "auto" or "float64" as dtype.
        pos_label : object or None
            The positive one of two classes, which the metadata name as "pos_label" (JSON); the
            outputs do not change. None: no such entry.

        Raises
        ------
        TypeError, ValueError
            If leaves hold models, the model contains a preprocessor or learners that are not trees
            of certree, dtype="float32" cannot hold the predictions or the dates, or `pos_label` is
            not one of two classes.
        """
        return make_onnx_model(self._build_formula(), dtype, inputs, pos_label)

    @snapshot_method
    def to_dict(self) -> dict[str, Any]:
        """Convert the model to dictionaries, lists, numbers and strings.

        ``json.dumps`` writes it as text with all digits. ``docs/model.schema.json`` documents the
        format: a reader does not need certree. Raise TypeError or ValueError if leaves hold models,
        or the model contains a preprocessor or learners that are not trees of certree.
        """
        return make_plain_dict(self._build_formula())

    @snapshot_method
    def to_code(self, language: Language, name: str = "CertreeModel") -> str:
        """Write the model as source code, for programs without Python and ONNX.

        The code needs nothing beside the standard library of its language.

        Parameters
        ----------
        language : {"c", "java", "javascript"}
            The language: C99, Java 11, or an ECMAScript module.
        name : str, default="CertreeModel"
            Prefix of the functions in C, and name of the class in Java.

        Returns
        -------
        str
            The source code; a comment at its head says how to call it. Its predictions equal those
            of the model up to rounding: probabilities of all classes, or predicted numbers.

        Raises
        ------
        TypeError, ValueError
            If leaves hold models, the model contains a preprocessor or learners that are not trees
            of certree, or `name` is no identifier of C, or for Java does not begin with a capital
            letter.

        Examples
        --------
        >>> from certree import BoostedTreesRegressor
        >>> model = BoostedTreesRegressor(max_iter=2).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> model.to_code("c").splitlines()[0]
        '/* A certree model of 3 trees'
        """
        formula = self._build_formula()
        expect_no_parts(formula, "to_code()")
        return write_source(make_plain_dict(formula), language, name)

    @snapshot_method
    def trees_to_dataframe(self) -> Any:
        """Convert the trees to a pandas data frame, a row for each node; needs ``certree[frames]``.

        Columns are those of LightGBM: "tree_index"; "node_depth", 1 for roots; "node_index", such
        as "3-S0" for a split and "3-L2" for a leaf of tree 3, with the numbers that `apply`
        returns; "left_child", "right_child", "parent_index"; "split_feature"; "threshold", the
        largest value that goes left ("decision_type" "<="), or the categories that go left ("=="),
        separated by ||; "missing_direction", "both" if rows that lack the value go to both
        children; "missing_type"; "value" of a leaf, or "value_0", "value_1", ... for several
        outputs; and "count", the training rows in the node, NaN if the model does not keep them.
        "split_gain" and "weight" are always NaN. A prediction is `start_` plus the sum of the
        values of one leaf of each tree, or their mean in a forest. Raise TypeError or ValueError if
        leaves hold models, or the model contains a preprocessor or learners that are not trees of
        certree.
        """
        return make_nodes_frame(self._build_formula())

    @snapshot_method
    def to_sql(
        self,
        table: str | Sequence[str],
        *,
        keep: Sequence[str] = (),
        threshold: float | OperatingPoint | None = None,
        pos_label: Any = None,
    ) -> str:
        """Write the model as a SQL statement that predicts the rows of a table.

        DuckDB, PostgreSQL and SQLite run it. NULL and NaN are missing values. Categories that the
        fit did not have go where the model sends them. Columns of dates hold DATE, TIMESTAMP (with
        a time zone if the fit had one), or text, which is compared as it is. Text must be written
        as "YYYY-MM-DD HH:MM:SS" with a space, in UTC if the fit had a time zone, or as "YYYY-MM-DD"
        if the fit had no times. With "T", "Z" or another offset, predictions can be wrong without
        an error. Time spans are numbers of days. Return a SELECT with the columns `keep`,
        "prediction" and, for a classifier, ``probability_`` followed by each class (for several
        numbers ``prediction_0``, ...). If rules have numbers (see `rules` of single trees), the
        last column is "rule", which is NULL for rows that satisfy no rule. If the fit converted
        text such as "1.234,50 €" or "31.12.2024" in CSV files, comments above the statement list
        these columns. The table must hold them as numbers and dates. Other comments list texts
        such as "k.A." that the fit read as missing values. The table must hold NULL in their place.

        Parameters
        ----------
        table : str or sequence of str
            Name of the table, also with its schema or database, as in "schema.table". Pass a
            sequence, such as ("schema", "table"), if a name contains a point. Columns of the table
            must have the names of the features: x0, x1, ... if the fit had no names.
        keep : sequence of str
            Columns of the table that the statement selects besides the predictions.
        threshold : float, OperatingPoint or None
            Predict the positive one of two classes if its probability is at least this; None:
            predict the most probable class. The database computes the probability to rounding.
        pos_label : object or None
            The positive class, which needs `threshold`; None: that of the operating point, or else
            the second of ``classes_``.

        Raises
        ------
        TypeError, ValueError
            If leaves hold models, the model contains a preprocessor or learners that are not trees
            of certree, it predicts several quantiles, names of columns differ by case only, are
            empty or contain a NUL, or `threshold` or `pos_label` does not suit the model.
        """
        rule = read_threshold(threshold, pos_label)
        table_format = get_model_format(self)
        return make_sql_statement(self._build_formula(), table, keep, *rule, table_format)
