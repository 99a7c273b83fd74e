"""Does an installed certree work? `python tests/smoke.py`, with nothing but certree and what it needs.

Wheels are tried by it on every platform, in an environment without tools of developers. It fits every
estimator, compares what a file gives back, and takes the parts that extras bring where they are there.
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

import certree

CLASSIFIERS = (
    certree.PACBayesTreeClassifier(random_state=0),
    certree.PrunedTreeClassifier(random_state=0),
    certree.HelmboldSchapireTreeClassifier(random_state=0),
    certree.CertifiedTreeClassifier(random_state=0),
    certree.BoostedTreesClassifier(max_iter=20, random_state=0),
    certree.CertifiedBoostedTreesClassifier(max_iter=20, random_state=0),
    certree.TreeForestClassifier(10, random_state=0),
    certree.CertifiedForestClassifier(10, random_state=0),
    certree.AdaBoostTreeClassifier(random_state=0),
    certree.NaiveBayesClassifier(),
)
REGRESSORS = (
    certree.PACBayesTreeRegressor(random_state=0),
    certree.PrunedTreeRegressor(random_state=0),
    certree.CertifiedTreeRegressor(random_state=0),
    certree.BoostedTreesRegressor(max_iter=20, random_state=0),
    certree.CertifiedBoostedTreesRegressor(max_iter=20, random_state=0),
    certree.TreeForestRegressor(10, random_state=0),
)


def check(holds: bool, what: str) -> None:
    """Say what does not hold, and stop."""
    if not holds:
        raise SystemExit(f"smoke: {what}")


def there(name: str) -> bool:
    """Whether a module can be imported."""
    return importlib.util.find_spec(name) is not None


def main() -> None:
    """Try everything once."""
    X, y = load_breast_cancer(return_X_y=True)
    X_d, y_d = load_diabetes(return_X_y=True)
    with tempfile.TemporaryDirectory() as place:
        for models, rows, target, least in (
            (CLASSIFIERS, X, y, 0.85),
            (REGRESSORS, X_d, y_d, 0.05),
        ):
            for model in models:
                name = type(model).__name__
                model.fit(rows[::2], target[::2])
                score = model.score(rows[1::2], target[1::2])
                check(score > least, f"{name} scores {score:.2f}")
                file = Path(place) / "model.certree"
                certree.save(model, file)
                same = np.array_equal(certree.load(file).predict(rows), model.predict(rows))
                check(same, f"a file of {name} predicts something else")
        forest = CLASSIFIERS[6]
        check(certree.certify(forest, X[1::2], y[1::2]).bound < 0.2, "a bound is too large")
        if there("matplotlib"):
            certree.show.plot_tree(CLASSIFIERS[0]).savefig(Path(place) / "tree.png")
        if there("onnx"):
            check(len(forest.to_onnx().SerializeToString()) > 1000, "a graph is empty")
    if there("typer"):
        told = subprocess.run(
            [sys.executable, "-m", "certree", "--version"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        check(told.strip() == f"certree {certree.__version__}", f"the command says {told}")
    sys.stdout.write(f"certree {certree.__version__} works with numpy {np.__version__}\n")


if __name__ == "__main__":
    main()
