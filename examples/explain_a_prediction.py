"""Why a vote says what it says: contributions, the cells around one row, rules, and a picture.

The picture goes to tree.png in the current directory.
"""

import pyarrow as pa
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

from certree import PACBayesTreeClassifier
from certree.show.tree_picture import plot_tree

ASKED = 40


def main() -> None:
    bunch = load_breast_cancer()
    names = map(str, bunch.feature_names)
    # Any table with column names will do; without names, features are called x[0], x[1], ...
    X = pa.table(dict(zip(names, bunch.data.T, strict=True)))
    y = bunch.target_names[bunch.target]

    # The rows from 100 on are learnt from; the row that is asked about is none of them.
    cart = DecisionTreeClassifier(min_samples_leaf=3)
    model = PACBayesTreeClassifier(cart, cv=5, random_state=0).fit(X.slice(100), y[100:])

    row = X.slice(ASKED, 1)
    print(f"Row {ASKED} is {y[ASKED]}, the vote says {model.predict(row)[0]}. Why:\n")
    print(model.explain(row))

    print("\nWho voted:\n")
    for cell in model.path(row):
        print(f"  {cell}")

    print("\nThe part of the tree that matters most to the vote:\n")
    print(model.rules(max_leaves=6))

    plot_tree(model, max_leaves=6).savefig("tree.png", dpi=100)
    print("\nThe same as a picture: tree.png")


if __name__ == "__main__":
    main()
