"""The lines of docs/compare/other_tools.md, each run with the tool it is for, where that is installed.

It prints which work, and with which versions; there is nothing to time. The tools: dtreeviz, eli5,
interpret, MAPIE, MLflow, shap, skrub, supertree, yellowbrick.
"""

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version

import matplotlib as mpl
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline

from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    PrunedTreeClassifier,
    TreeForestClassifier,
)
from certree.explain import shap_trees

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_numbers, y_numbers = load_diabetes(return_X_y=True, as_frame=True)
FEATURES, CLASSES = list(X), ["malignant", "benign"]

tree = PrunedTreeClassifier(random_state=0).fit(X, y)
forest = TreeForestClassifier(n_estimators=10, leaves="plain", random_state=0).fit(X, y)
boosted = BoostedTreesClassifier(max_iter=20, random_state=0).fit(X, y)


def dtreeviz_of_a_tree() -> None:
    import dtreeviz

    for one in (tree.to_sklearn(), forest.to_sklearn().estimators_[0]):
        names = {"feature_names": FEATURES, "target_name": "class", "class_names": CLASSES}
        dtreeviz.model(one, X, y, **names).leaf_sizes()


def supertree_of_any_model() -> None:
    from supertree import SuperTree

    for model in (tree, forest, boosted):
        page = SuperTree(model.to_sklearn(), X, y, FEATURES, CLASSES)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            page.save_html(os.path.join(folder, "tree.html"))


def eli5_of_a_tree() -> None:
    import eli5
    from eli5.sklearn import PermutationImportance

    for model in (tree, forest):
        eli5.explain_weights(model.to_sklearn(), feature_names=FEATURES)
    eli5.explain_prediction(tree.to_sklearn(), X.iloc[0])
    PermutationImportance(boosted, random_state=0).fit(X, y)


def shap_of_any_model() -> None:
    import shap

    for model in (tree, forest, boosted):
        shap.TreeExplainer(shap_trees(model, X[:50]), X[:50]).shap_values(X[:5])
        shap.TreeExplainer(model.to_sklearn(), X[:50]).shap_values(X[:5])


def yellowbrick_of_a_classifier() -> None:
    from yellowbrick.classifier import ClassificationReport
    from yellowbrick.model_selection import FeatureImportances
    from yellowbrick.regressor import ResidualsPlot

    FeatureImportances(boosted).fit(X, y)
    report = ClassificationReport(boosted, classes=CLASSES, force_model=True)
    report.fit(X, y).score(X, y)
    numbers = BoostedTreesRegressor(max_iter=20)
    ResidualsPlot(numbers, hist=False, force_model=True).fit(X_numbers, y_numbers)


def interpret_of_any_model() -> None:
    from interpret.blackbox import PartialDependence

    PartialDependence(boosted, X).explain_global().data(0)


def mapie_of_quantiles() -> None:
    from mapie.regression import ConformalizedQuantileRegressor

    fits = [
        BoostedTreesRegressor(loss="quantile", quantile=level, max_iter=20).fit(
            X_numbers[:200], y_numbers[:200]
        )
        for level in (0.05, 0.95, 0.5)
    ]
    bands = ConformalizedQuantileRegressor(fits, confidence_level=0.9, prefit=True)
    bands.conformalize(X_numbers[200:350], y_numbers[200:350])
    bands.predict_interval(X_numbers[350:])


def skrub_of_any_estimator() -> None:
    from skrub import TableVectorizer, ToCategorical, tabular_pipeline

    model = BoostedTreesClassifier(max_iter=20)
    make_pipeline(TableVectorizer(low_cardinality=ToCategorical()), model).fit(X, y).score(X, y)
    tabular_pipeline(model).fit(X, y).score(X, y)


def mlflow_by_skops() -> None:
    import mlflow.sklearn
    import skops.io

    trusted = skops.io.get_untrusted_types(data=skops.io.dumps(boosted))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        mlflow.sklearn.save_model(boosted, path, skops_trusted_types=trusted)
        mlflow.sklearn.load_model(path).predict(X)


TOOLS: dict[str, Callable[[], None]] = {
    "dtreeviz": dtreeviz_of_a_tree,
    "eli5": eli5_of_a_tree,
    "interpret-core": interpret_of_any_model,
    "MAPIE": mapie_of_quantiles,
    "mlflow-skinny": mlflow_by_skops,
    "shap": shap_of_any_model,
    "skrub": skrub_of_any_estimator,
    "supertree": supertree_of_any_model,
    "yellowbrick": yellowbrick_of_a_classifier,
}


def main() -> None:
    mpl.use("Agg")
    for tool, lines in TOOLS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the tools' own
                lines()
        except ModuleNotFoundError as error:
            print(f"{tool:15s} not tried: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a tool says is the answer
            print(f"{tool:15s} {version(tool):8s} fails: {type(error).__name__}: {error}")
        else:
            print(f"{tool:15s} {version(tool):8s} works")


if __name__ == "__main__":
    main()
