"""Time of explanations: 100,000 rows of adult, by one tree whose prunings vote.

Rows of the table are repeated, with their categories as text. Needs `more/adult.parquet` in the
directory that CERTREE_DATA names. Target: at most one second, with one thread, reading the rows and
giving their values back included.
"""

import os
from pathlib import Path

import pandas as pd

from benchmarks.timing import Row, median, report
from certree import PACBayesTreeClassifier

ROWS, TARGET, REPEATS = 100_000, 1.0, 5


def main() -> None:
    """Measure predictions and explanations."""
    table = pd.read_parquet(Path(os.environ["CERTREE_DATA"]) / "more" / "adult.parquet")
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    # Temperatures near those that a fit chooses; any law has the same nodes.
    posterior = PACBayesTreeClassifier(lambda_error=0.5, lambda_penalty=0.05, prior="leaves")
    model = posterior.fit(X, y)
    many = pd.concat([X] * (ROWS // len(X) + 1), ignore_index=True)[:ROWS]
    time = median(lambda: model.explain(many), REPEATS)
    rows = [
        Row("explain", time, target=TARGET, figure=time, unit="s"),
        Row("predict_proba", median(lambda: model.predict_proba(many), REPEATS)),
    ]
    report("explain", rows)


if __name__ == "__main__":
    main()
