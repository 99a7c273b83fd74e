"""
Boosting that does not overfit
==============================

Boosting overfits if it goes on for too long. If the prunings of every tree vote, a tree that fits noise
hardly changes the scores, and too many rounds cost little.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from certree import BoostedTreesClassifier

X, y = make_moons(1000, noise=0.5, random_state=0)
X_new, y_new = make_moons(10_000, noise=0.5, random_state=1)

_, ax = plt.subplots(layout="constrained")
last = {}
colours = {"vote": "#D55E00", "none": "#0072B2"}
for prunings, label in (("none", "whole trees"), ("vote", "all prunings vote")):
    model = BoostedTreesClassifier(prunings=prunings, max_iter=400, random_state=0).fit(X, y)
    losses = model.staged_loss(X_new, y_new)
    last[prunings] = losses[-1]
    ax.plot(losses, color=colours[prunings], label=label)
ax.set(xlabel="round", ylabel="log loss on new rows", ylim=(0.38, 0.6))
ax.set_title(f"after 400 rounds: {last['vote']:.2f} by votes, {last['none']:.2f} by whole trees")
ax.legend()
