"""The lines of docs/compare/other_tools.md, each run with its tool, if the tool is installed.

Prints which lines work, with the version of the tool.
"""

import contextlib
import io
import tempfile
import warnings
from importlib.metadata import version

import matplotlib as mpl
import typer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline

import certree
from certree.explain import shap_trees

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_numbers, y_numbers = load_diabetes(return_X_y=True, as_frame=True)
FEATURES, CLASSES = list(X), ["malignant", "benign"]

tree = certree.PrunedTreeClassifier(random_state=0).fit(X, y)
forest = certree.TreeForestClassifier(n_estimators=10, leaves="plain", random_state=0).fit(X, y)
boosted = certree.BoostedTreesClassifier(max_iter=20, random_state=0).fit(X, y)


def use_dtreeviz() -> None:
    import dtreeviz

    for one in (tree.to_sklearn(), forest.to_sklearn().estimators_[0]):
        names = {"feature_names": FEATURES, "target_name": "class", "class_names": CLASSES}
        dtreeviz.model(one, X, y, **names).leaf_sizes()


def use_supertree() -> None:
    from supertree import SuperTree

    for model in (tree, forest, boosted):
        page = SuperTree(model.to_sklearn(), X, y, FEATURES, CLASSES)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            page.save_html(f"{folder}/tree.html")


def use_eli5() -> None:
    import eli5
    from eli5.sklearn import PermutationImportance

    for model in (tree, forest):
        eli5.explain_weights(model.to_sklearn(), feature_names=FEATURES)
    eli5.explain_prediction(tree.to_sklearn(), X.iloc[0])
    PermutationImportance(boosted, random_state=0).fit(X, y)


def use_shap() -> None:
    import shap

    for model in (tree, forest, boosted):
        shap.TreeExplainer(shap_trees(model, X[:50]), X[:50]).shap_values(X[:5])
        shap.TreeExplainer(model.to_sklearn(), X[:50]).shap_values(X[:5])


def use_yellowbrick() -> None:
    from yellowbrick.classifier import ClassificationReport
    from yellowbrick.model_selection import FeatureImportances
    from yellowbrick.regressor import ResidualsPlot

    FeatureImportances(boosted).fit(X, y)
    ClassificationReport(boosted, classes=CLASSES, force_model=True).fit(X, y).score(X, y)
    numbers = certree.BoostedTreesRegressor(max_iter=20)
    ResidualsPlot(numbers, hist=False, force_model=True).fit(X_numbers, y_numbers)


def use_interpret_core() -> None:
    from interpret.blackbox import PartialDependence

    PartialDependence(boosted, X).explain_global().data(0)


def use_mapie() -> None:
    from mapie.regression import ConformalizedQuantileRegressor

    models = [
        certree.BoostedTreesRegressor(loss="quantile", quantile=quantile, max_iter=20)
        for quantile in (0.05, 0.95, 0.5)
    ]
    fits = [model.fit(X_numbers[:200], y_numbers[:200]) for model in models]
    bands = ConformalizedQuantileRegressor(fits, confidence_level=0.9, prefit=True)
    bands.conformalize(X_numbers[200:350], y_numbers[200:350])
    bands.predict_interval(X_numbers[350:])


def use_skrub() -> None:
    from skrub import TableVectorizer, ToCategorical, tabular_pipeline

    model = certree.BoostedTreesClassifier(max_iter=20)
    make_pipeline(TableVectorizer(low_cardinality=ToCategorical()), model).fit(X, y).score(X, y)
    tabular_pipeline(model).fit(X, y).score(X, y)


def use_mlflow_skinny() -> None:
    import mlflow.sklearn
    import skops.io

    trusted = skops.io.get_untrusted_types(data=skops.io.dumps(boosted))
    with tempfile.TemporaryDirectory() as folder:
        mlflow.sklearn.save_model(boosted, f"{folder}/model", skops_trusted_types=trusted)
        mlflow.sklearn.load_model(f"{folder}/model").predict(X)


TOOLS = {
    name.removeprefix("use_").replace("_", "-"): use
    for name, use in [*globals().items()]
    if name.startswith("use_")
}


def main(only: str = ",".join(TOOLS)) -> None:
    """Run the lines of all tools; only: names of tools, separated by commas."""
    mpl.use("Agg")
    warnings.simplefilter("ignore")  # of the tools
    for tool in only.split(","):
        try:
            TOOLS[tool]()
        except ModuleNotFoundError as error:
            print(f"{tool:15s} not tried: {error}")
        except Exception as error:  # noqa: BLE001 -- the errors of tools are results
            print(f"{tool:15s} {version(tool):8s} fails: {type(error).__name__}: {error}")
        else:
            print(f"{tool:15s} {version(tool):8s} works")


if __name__ == "__main__":
    typer.run(main)
