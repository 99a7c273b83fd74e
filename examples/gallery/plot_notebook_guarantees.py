"""
Notebook: what can be guaranteed
================================

A longer example to download as a notebook and change: one fit, and all guarantees that its calibration
set gives.
"""

# %%
# One fit
# -------
#
# Points above and below a line, three in a hundred on the wrong side. No classifier errs on less
# than that.

import matplotlib.pyplot as plt
import numpy as np

from certree import CertifiedBoostedTreesClassifier, CertifiedTreeClassifier


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 2))
    side = X.sum(axis=1) > 11
    return X, np.where(side ^ (rng.random(n) < 0.03), "above", "below")


X, y = draw(3000, seed=0)
X_new, y_new = draw(50_000, seed=1)
model = CertifiedTreeClassifier(random_state=0).fit(X, y)
print(model.certificate_)
print(f"true error: {1 - model.score(X_new, y_new):.3f}")

# %%
# What the bound is made of
# -------------------------

parts = model.certificate_.parts
boosted = CertifiedBoostedTreesClassifier(random_state=0).fit(X, y)
of_boosted = boosted.certificate_.parts

_, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
start = np.zeros(2)
for name, colour in (
    ("observed", "#0072B2"),
    ("complexity", "#E69F00"),
    ("confidence", "#CC79A7"),
):
    width = [getattr(each, name) for each in (parts, of_boosted)]
    ax.barh(["one tree", "boosted trees"], width, left=start, color=colour, label=name)
    start += width
ax.set(xlabel="bound on the error")
ax.set_title(f"at most {start[0]:.1%} by one tree, {start[1]:.1%} by boosted trees")
ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.35))

# %%
# For each class
# --------------

print(model.conditional_guarantees("recall").recall)

# %%
# Sets of classes
# ---------------
#
# Where the model is unsure, the set holds both classes. For at least 95 % of new rows the set holds
# the true class.

sets = model.predict_set(X_new, coverage=0.95)
held = sets[np.arange(len(y_new)), np.searchsorted(model.classes_, y_new)]
print(f"held: {held.mean():.3f}, two classes: {np.mean(sets.sum(axis=1) == 2):.3f}")

_, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
both = sets.sum(axis=1) == 2
ax.plot(*X_new[:3000][~both[:3000]].T, ".", ms=3, color="#56B4E9", label="one class")
ax.plot(*X_new[:3000][both[:3000]].T, ".", ms=3, color="#D55E00", label="both")
ax.legend(loc="upper right")
ax.set_title(f"sets with both classes: {both.mean():.0%} of the rows")

# %%
# Another source
# --------------
#
# If new rows come from a source that is a little different, the guarantee gets weaker accordingly:

for distance in (0.0, 0.01, 0.05):
    bound = model.certificate_.nearby(total_variation=distance).bound if distance else start[0]
    print(f"total variation {distance:.2f}: at most {bound:.3f}")
