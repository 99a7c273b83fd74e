"""Fits with `time=` against default fits on windows of tables in time order.

Windows of 3,000 rows of eeg, electricity, bike_sharing and taxis_fare (sorted by pickup), at equal
distances, and of simulated rows whose distribution changes slowly, once, or back and forth; the next
1,500 rows are new. For boosted trees and forests: log loss, or root mean squared error, on the new
rows. For certified boosted trees: whether the error of the new rows exceeds the bound ("false"), and
whether the certificate names its dependence on the order ("said"); both are empty if a fit is refused,
as the latest rows have a single class.
"""

import warnings
from typing import Any

import numpy as np
import typer
from sklearn.metrics import log_loss, root_mean_squared_error

import certree
from benchmarks.results import store
from benchmarks.tables import Data, load_tables

WINDOWS = {"eeg": 5, "electricity": 5, "bike_sharing": 5, "taxis_fare": 3}
ROWS, NEW_ROWS = 3000, 1500
# Drawn windows of each kind: half of them with two classes, half with numbers.
DRAWN = 4
DRIFTS = ("slow drift", "one change", "regimes")


def sort_rows(name: str, data: Data) -> Data:
    """Return the rows of a table in time order."""
    if name != "taxis_fare":
        return data
    order = np.argsort(data.X[:, 0], kind="stable")  # its first column is pickup
    return data._replace(X=data.X[order], y=data.y[order])


def draw_drift(kind: str, seed: int) -> Data:
    """Return rows whose target depends on ten features, by coefficients that change with time.

    kind: one of `DRIFTS`; seed: even for two classes, odd for numbers.
    """
    n, rng = ROWS + NEW_ROWS, np.random.default_rng(seed)
    first, last = rng.normal(size=(2, 10))
    time = np.arange(n) / n
    share: np.ndarray = time
    if kind == "one change":
        share = time > rng.uniform(0.2, 0.6)
    elif kind == "regimes":
        share = np.cumsum(rng.random(n) < 1 / 400) % 2
    X = rng.normal(size=(n, 10))
    score = (np.sin(X) * (first + np.outer(share, last - first))).sum(axis=1)
    noisy = score + score.std() * rng.normal(size=n) / 2
    is_regression = seed % 2 == 1
    y = noisy if is_regression else (noisy > 0).astype(int)
    return Data(X, y, np.zeros(10, dtype=bool), is_regression)


def measure_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the loss of a fitted model on new rows."""
    if not hasattr(model, "predict_proba"):
        return float(root_mean_squared_error(y, model.predict(X)))
    probabilities = np.clip(model.predict_proba(X), 1e-3, 1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return float(log_loss(y, probabilities, labels=model.classes_))


def compare(name: str, data: Data, first: int) -> dict[str, Any]:
    """Return the line of one window: losses and certificates of default fits and of fits by time."""
    kind = "Regressor" if data.is_regression else "Classifier"
    old, new = np.split(np.arange(first, first + ROWS + NEW_ROWS), [ROWS])
    X, y = data.X[new], data.y[new]
    where = np.flatnonzero(data.categorical) if data.categorical.any() else None
    line: dict[str, Any] = {"table": name, "first": first}
    for column, make in (("boosted", "BoostedTrees"), ("forest", "TreeForest")):
        for suffix, how in (("", {}), ("_time", {"time": old})):
            model = getattr(certree, f"{make}{kind}")(random_state=0, categorical_features=where)
            model.fit(data.X[old], data.y[old], **how)
            line[column + suffix] = f"{measure_loss(model, X, y):.4f}"
    for suffix, how in (("", {}), ("_time", {"time": old})):
        model = getattr(certree, f"CertifiedBoostedTrees{kind}")(
            random_state=0, categorical_features=where, duplicates="genuine"
        )
        try:
            certificate = model.fit(data.X[old], data.y[old], **how).certificate_
        except ValueError:  # the latest rows have a single class
            line |= {f"false{suffix}": "", f"said{suffix}": ""}
            continue
        risk = model.certify(X, y, duplicates="genuine").risk
        text = str(certificate) + " ".join(certificate.assumptions)
        line[f"false{suffix}"] = int(risk > certificate.bound)
        line[f"said{suffix}"] = int("depend on the order" in text or "later rows" in text)
    return line


def main(only: str = ",".join((*WINDOWS, *DRIFTS))) -> None:
    """Measure all windows; only: names of tables and of drifts, separated by commas."""
    warnings.simplefilter("ignore")
    chosen = only.split(",")
    names, kinds = ([one for one in all_names if one in chosen] for all_names in (WINDOWS, DRIFTS))
    rows = []
    for name, data in load_tables(",".join(names)).items() if names else ():
        ordered = sort_rows(name, data)
        starts = np.linspace(0, len(data.y) - ROWS - NEW_ROWS, WINDOWS[name]).astype(int)
        for first in starts.tolist():
            rows.append(compare(name, ordered, first))
            print(*rows[-1].values(), flush=True)
    for kind in kinds:
        for seed in range(DRAWN):
            rows.append(compare(kind, draw_drift(kind, seed), 0) | {"first": seed})
            print(*rows[-1].values(), flush=True)
    store("time_order", rows)


if __name__ == "__main__":
    typer.run(main)
