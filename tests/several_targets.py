"""A table whose rows have several targets."""

import numpy as np


def table(n=300, seed=0):
    """Rows with missing values, three numbers, and classes of them: words, and numbers in words."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[random.random(X.shape) < 0.05] = np.nan
    known = np.nan_to_num(X)
    parts = np.column_stack([known[:, 0] * known[:, 1], np.sin(known[:, 2]), known[:, 3] > 0])
    y = parts @ random.normal(size=(3, 3)) + 0.3 * random.normal(size=(n, 3))
    labels = np.column_stack(
        [np.where(y[:, 0] > 0, "yes", "no"), np.digitize(y[:, 1], [-0.5, 0.5]), y[:, 2] > 0]
    )
    return X, y, labels
