"""
Notice that a guarantee is broken
=================================

Labels of new rows arrive one by one, and after 1000 of them the source changes. The monitor raises an
alarm. While the guarantee holds, an alarm has probability 5 % at most, however often one looks.
"""

import matplotlib.pyplot as plt
import numpy as np

from certree import CertifiedTreeClassifier

rng = np.random.default_rng(0)


def draw(n, flipped=0.1):
    X = rng.uniform(0, 10, (n, 2))
    return X, (X.sum(axis=1) > 10) ^ (rng.random(n) < flipped)


model = CertifiedTreeClassifier(random_state=0).fit(*draw(2000))
monitor = model.certificate_.monitor(alpha=0.05)
errors, alarm = [], None
for day in range(40):
    X, y = draw(50, flipped=0.1 if day < 20 else 0.3)
    wrong = model.predict(X) != y
    monitor.update(wrong)
    errors.append(wrong.mean())
    if monitor.broken and alarm is None:
        alarm = day

_, ax = plt.subplots(layout="constrained")
ax.bar(range(40), errors, color="#56B4E9", label="error of the day")
ax.axhline(model.certificate_.bound, color="#D55E00", label="certified bound")
ax.axvline(19.5, color="#777777", ls=":", label="the source changes")
ax.axvline(alarm, color="#222222", label="alarm")
ax.set(xlabel="day, 50 labels each", ylabel="error")
ax.set_title(f"the alarm comes {alarm - 19} days after the change")
ax.legend(loc="upper left")
