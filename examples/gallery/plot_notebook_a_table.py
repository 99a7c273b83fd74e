"""
Notebook: from a table with missing values to a model
=====================================================

A longer example to download as a notebook and change: a table of loans with categories and missing
values is inspected, fitted, compared and explained.
"""

# %%
# The table
# ---------
#
# The table is simulated, so the truth is known: defaults are likelier with debts, less likely
# with age, and for the self-employed debts count twice. One value in ten is missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 4000
loans = pd.DataFrame(
    {
        "age": rng.integers(20, 75, n).astype(float),
        "debts": rng.lognormal(1, 0.7, n).round(1),
        "work": pd.Categorical(rng.choice(["employed", "self-employed", "retired"], n)),
        "branch": pd.Categorical(rng.choice([f"branch {k}" for k in range(40)], n)),
    }
)
odds = -2.5 + 0.25 * loans["debts"] * np.where(loans["work"] == "self-employed", 2, 1)
odds -= 0.03 * (loans["age"] - 45)
y = pd.Series(np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "default", "paid"))
for column in ("age", "debts", "work"):
    loans.loc[rng.random(n) < 0.1, column] = None
print(loans.head())
print(y.value_counts(normalize=True).round(3))

# %%
# A first tree
# ------------
#
# Nothing is encoded or imputed. The branch has no influence, and the tree finds that out.

from sklearn.model_selection import train_test_split

from certree import PACBayesTreeClassifier
from certree.show import plot_tree

X_train, X_test, y_train, y_test = train_test_split(loans, y, random_state=0, stratify=y)
tree = PACBayesTreeClassifier(random_state=0).fit(X_train, y_train)
shares = dict(zip(loans, tree.feature_importances_.round(3).tolist(), strict=True))
print(shares)
figure = plot_tree(tree, max_leaves=6)

# %%
# Other models
# ------------
#
# No model can have a lower log loss than the true probabilities.

from sklearn.metrics import log_loss

from certree import BoostedTreesClassifier, NaiveBayesClassifier, TreeForestClassifier

losses = {}
for model in (
    NaiveBayesClassifier(),
    tree,
    TreeForestClassifier(random_state=0),
    BoostedTreesClassifier(random_state=0),
):
    model.fit(X_train, y_train)
    losses[type(model).__name__] = log_loss(y_test, model.predict_proba(X_test))
truth = 1 / (1 + np.exp(odds[X_test.index]))
losses["the truth, without holes"] = log_loss(y_test, truth)

_, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.barh(list(losses), list(losses.values()), color="#0072B2")
ax.bar_label(ax.containers[0], fmt="%.3f", padding=3)
ax.set(xlim=(0, 0.7), xlabel="log loss on test rows")
ax.invert_yaxis()

# %%
# One prediction explained
# ------------------------
#
# Boosted trees explain one row.

from certree.show import plot_explanation

boosted = model
why = boosted.explain(X_test[:20])
picture = plot_explanation(why, row=3)
