"""
Notice that a guarantee is broken
=================================

Labels of new rows arrive day by day, and after 1000 rows the source changes. The monitor raises an
alarm and estimates the row of the change. While every row comes from the certified source, the
probability of any alarm is at most 10 %, however often one looks.
"""

import numpy as np

from certree import CertifiedTreeClassifier
from certree.show import plot_monitor

rng = np.random.default_rng(0)


def draw(n, flipped=0.1):
    X = rng.uniform(0, 10, (n, 2))
    return X, (X.sum(axis=1) > 10) ^ (rng.random(n) < flipped)


model = CertifiedTreeClassifier(random_state=0).fit(*draw(2000))
monitor = model.guarantees_.monitor()
for day in range(40):
    X, y = draw(50, flipped=0.1 if day < 20 else 0.3)
    monitor.update(model.predict(X) != y, batch=f"day {day + 1}")

figure = plot_monitor(monitor)
print(monitor)
