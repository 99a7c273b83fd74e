"""
Why copies break a certificate
==============================

Each row occurs three times in the table. With ``duplicates="genuine"`` most certificates
are below the true error. With ``duplicates="copies"`` they hold.
"""

import matplotlib.pyplot as plt
import numpy as np

from certree import CertifiedTreeClassifier


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] > 0) ^ (rng.random(n) < 0.25)


X_new, y_new = draw(20_000, seed=99)
over = {"genuine": [], "copies": []}
for seed in range(20):
    X, y = (np.repeat(part, 3, axis=0) for part in draw(150, seed))
    shuffled = np.random.default_rng(seed).permutation(450)
    for duplicates, found in over.items():
        model = CertifiedTreeClassifier(duplicates=duplicates, train_size=0.5, random_state=seed)
        model.fit(X[shuffled], y[shuffled])
        found.append(1 - model.score(X_new, y_new) - model.certificate_.bound)

_, ax = plt.subplots(layout="constrained")
for place, found in enumerate(over.values()):
    broken = np.array(found) > 0
    jitter = place + np.linspace(-0.15, 0.15, 20)
    ax.scatter(jitter, found, c=np.where(broken, "#D55E00", "#0072B2"))
ax.axhline(0, color="#777777")
ax.set_xticks([0, 1], [f'duplicates="{one}"' for one in over])
ax.set(ylabel="error on new rows less the bound")
broken = {one: np.mean(np.array(found) > 0) for one, found in over.items()}
ax.set_title(f"failed certificates: {broken['genuine']:.0%} and {broken['copies']:.0%}")
