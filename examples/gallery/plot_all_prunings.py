"""
All prunings beat the best one
==============================

A large tree overfits, a small one misses structure. Usually one of the prunings between them has to be
chosen. Here all of them vote, and the vote has a lower log loss than the best single pruning.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss

from certree import PACBayesTreeClassifier, PrunedTreeClassifier

X, y = make_moons(1000, noise=0.35, random_state=0)
X_new, y_new = make_moons(20_000, noise=0.35, random_state=1)

# %%
# One pruning for each of some alphas, from the whole tree to a stump, and the vote of all:

leaves, losses = [], []
for alpha in np.geomspace(0.3, 60, 25):
    one = PrunedTreeClassifier(alpha=alpha, random_state=0).fit(X, y)
    leaves.append(one.get_n_leaves())
    losses.append(log_loss(y_new, one.predict_proba(X_new)))
vote = PACBayesTreeClassifier(random_state=0).fit(X, y)
of_vote = log_loss(y_new, vote.predict_proba(X_new))

_, ax = plt.subplots(layout="constrained")
ax.plot(leaves, losses, "o-", color="#0072B2", label="one pruning")
ax.axhline(of_vote, color="#D55E00", label="all prunings")
ax.set(xscale="log", xlabel="leaves of the pruning", ylabel="log loss on new rows", ylim=(0, 2))
ax.set_title(f"the best pruning has {min(losses):.2f}, all together {of_vote:.2f}")
ax.legend()
