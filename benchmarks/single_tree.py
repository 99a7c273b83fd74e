"""One tree against one tree: the default fit, its tuning included, on six public tables.

The peers are scikit-learn's DecisionTreeClassifier, pruned by cost-complexity with 30 values of
ccp_alpha and five folds of GridSearchCV, and the single tree of WildWood, by the figures of its paper.
70 % of the rows train; strings are categories, to scikit-learn numbers in the order of their names. All
figures are means over ten splits: errors of three differ by more than the methods do. A fit of ours is
the median of five, the peer fits once; both have one thread. The targets are a hundredth of the peer's
time, and errors and log losses that are not above the peers'. Needs CERTREE_DATA; the peer takes a
quarter of an hour.
"""

import os
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.defaults import Data, judge, pruned_cart, tables
from benchmarks.timing import Row, median, report
from certree import PACBayesTreeClassifier

# Gaiffas, Merad and Yu, "WildWood: a new random forest algorithm": error and log loss of one tree.
WILDWOOD = {
    "adult": (0.152, 0.329),
    "bank_marketing": (0.103, 0.234),
    "credit_default": (0.188, 0.445),
    "spam": (0.109, 0.287),
    "satimage": (0.180, 0.518),
    "letter": (0.244, 1.05),
}
FIGURES = ("error", "log_loss", "seconds")
SPLITS = 10


def measured(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Error, log loss and seconds of ours and of the peer, means over the splits."""
    ours, theirs = [], []
    for split in range(SPLITS):
        parts = train_test_split(data.X, data.y, test_size=0.3, random_state=split, stratify=data.y)
        model = PACBayesTreeClassifier(categorical_features=data.categorical, random_state=0)
        figures = judge(model, parts)
        figures["seconds"] = median(lambda: model.fit(parts[0], parts[2]), 5)  # noqa: B023
        ours.append(list(map(figures.get, FIGURES)))
        theirs.append(list(map(judge(pruned_cart(parts[0], parts[2]), parts).get, FIGURES)))
    return np.mean(ours, axis=0), np.mean(theirs, axis=0)


def compared(name: str, data: Data) -> list[Row]:
    """Time, error and log loss on one table."""
    ours, theirs = measured(data)
    rows = [Row(f"{name}, fit", ours[2], "GridSearchCV", theirs[2], 0.01)]
    for peer, figures in (("GridSearchCV", theirs), ("WildWood", WILDWOOD[name])):
        rows.append(Row(name, None, peer, None, figures[0], ours[0], "error"))
        rows.append(Row(name, None, peer, None, figures[1], ours[1], "log loss"))
    return rows


def main() -> None:
    """Measure all tables."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("single_tree: skipped, CERTREE_DATA names no directory of tables")
        return
    found = tables(Path(directory))
    report("single_tree", [row for name in WILDWOOD for row in compared(name, found[name])])


if __name__ == "__main__":
    main()
