"""
Monotonic predictions
=====================

A price should rise with the size of a home, although noise hides it. ``monotonic_cst`` enforces that.
"""

import matplotlib.pyplot as plt
import numpy as np

from certree import PACBayesTreeRegressor

rng = np.random.default_rng(0)
size = rng.uniform(20, 200, 200)
price = 50 + 100 * np.sqrt(size) + rng.normal(0, 300, 200)
line = np.linspace(20, 200, 400)[:, None]

_, ax = plt.subplots(layout="constrained")
ax.plot(size, price, ".", color="#AAAAAA")
falls = {}
for slope, label, colour in ((0, "free", "#0072B2"), (1, "monotonic_cst=[1]", "#D55E00")):
    model = PACBayesTreeRegressor(monotonic_cst=[slope], random_state=0).fit(size[:, None], price)
    told = model.predict(line)
    falls[slope] = int((np.diff(told) < 0).sum())
    ax.plot(line, told, color=colour, label=label)
ax.set(xlabel="size", ylabel="price")
ax.set_title(f"free predictions fall {falls[0]} times, constrained ones {falls[1]} times")
ax.legend()
