"""One tree against one tree: the default fit, with its tuning, on six public tables.

The other tree is scikit-learn's, pruned by cost-complexity with 30 values of ccp_alpha and five folds
of GridSearchCV. 70 % of the rows train; means over ten splits; our fit is the median of five. One
thread. The targets are a hundredth of the time, and no larger error and log loss.
"""

import time

import numpy as np
import typer
from sklearn.tree import DecisionTreeClassifier

from benchmarks.peers import measure_fit, search_alpha
from benchmarks.results import Row, report
from benchmarks.tables import load_tables, split_fraction
from benchmarks.timing import measure_median
from certree import PACBayesTreeClassifier

TABLES = "adult,bank_marketing,credit_default,spam,satimage,letter"
PEER = "GridSearchCV"


def main(only: str = TABLES, splits: int = 10) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    rows = []
    for name, data in load_tables(only).items():
        found = []
        for seed in range(splits):
            X, y, *_ = split = split_fraction(data, seed)
            model = PACBayesTreeClassifier(categorical_features=data.categorical, random_state=0)
            ours = measure_fit(model, split, time.perf_counter)
            ours["seconds"] = measure_median(lambda: model.fit(X, y), 5)  # noqa: B023
            search = search_alpha(DecisionTreeClassifier(random_state=0), X, y)
            peer = measure_fit(search, split, time.perf_counter)
            found.append(
                [[one[k] for k in ("error", "log_loss", "seconds")] for one in (ours, peer)]
            )
        ours, peer = np.mean(found, axis=0)
        rows.append(Row(f"{name}, fit", ours[2], PEER, peer[2], 0.01))
        rows.append(Row(name, None, PEER, None, peer[0], ours[0], "error"))
        rows.append(Row(name, None, PEER, None, peer[1], ours[1], "log loss"))
    report("single_tree", rows)


if __name__ == "__main__":
    typer.run(main)
