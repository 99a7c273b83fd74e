"""
Prediction intervals with guaranteed coverage
=============================================

The noise differs from place to place. The intervals cover at least 90 % of new rows for this fit, with
probability 95 %, and their widths follow the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from certree import CertifiedTreeRegressor


def draw(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n)
    return x[:, None], np.sin(x) + rng.normal(size=n) * np.where(x > 7, 0.5, 0.1)


X, y = draw(3000, seed=0)
model = CertifiedTreeRegressor(widths="scaled", random_state=0).fit(X, y)
X_new, y_new = draw(20_000, seed=1)
low, high = model.predict_interval(X_new).T
held = np.mean((low <= y_new) & (y_new <= high))

_, ax = plt.subplots(layout="constrained")
order = X_new[:, 0].argsort()
ax.fill_between(X_new[order, 0], low[order], high[order], color="#56B4E9", alpha=0.5, lw=0)
ax.plot(X_new[:600, 0], y_new[:600], ".", ms=3, color="#222222")
ax.set(xlabel="x", ylabel="y")
ax.set_title(f"guaranteed: 90 %, covered: {held:.1%} of 20,000 new rows")
