"""
Categories without encoding
===========================

Towns have no order. One split divides them into two sets. The numbers of an ordinal encoder need one
split for each run of similar towns, and the result is hard to read.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from certree import PrunedTreeClassifier, RepeatedRowsWarning

# Rows of one feature repeat each other; each was drawn by itself.
warnings.filterwarnings("ignore", category=RepeatedRowsWarning)


def leaves(n_towns, as_categories):
    rng = np.random.default_rng(n_towns)
    dear = rng.random(n_towns) < 0.5
    town = rng.integers(0, n_towns, 3000)
    y = np.where(dear[town] ^ (rng.random(3000) < 0.15), "dear", "cheap")
    names = np.char.add("town ", town.astype(str)).astype(object)
    frame = pd.DataFrame({"town": names if as_categories else town})
    return PrunedTreeClassifier(random_state=0).fit(frame, y).get_n_leaves()


towns = [4, 8, 16, 32, 64]
of_names = [leaves(n, as_categories=True) for n in towns]
of_codes = [leaves(n, as_categories=False) for n in towns]

_, ax = plt.subplots(layout="constrained")
ax.plot(towns, of_codes, "o-", color="#0072B2", label="numbers")
ax.plot(towns, of_names, "o-", color="#D55E00", label="categories")
ax.set(xscale="log", xlabel="towns", ylabel="leaves of the pruned tree")
ax.set_xticks(towns, towns)
ax.minorticks_off()
ax.set_title(f"64 towns: {of_names[-1]} leaves as categories, {of_codes[-1]} as numbers")
ax.legend()
