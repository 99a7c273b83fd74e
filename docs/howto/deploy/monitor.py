"""Compare logged predictions of the current model with labels, and their orders with old ones."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

import certree

model = certree.load("late.certree")
log = pd.read_json("predictions.jsonl", lines=True).drop_duplicates("id")
log = log[log["model"] == sha256(Path("late.certree").read_bytes()).hexdigest()]

# Rows in the order in which their labels arrived.
labelled = pd.read_csv("labels.csv").merge(log, on="id")
monitor = model.certificate_.monitor(alpha=0.05)
print(monitor.update(labelled["label"] != labelled["status"]))

# A classifier that distinguishes new rows from old ones shows that they differ. Dates always do.
features = ["weight", "country"]
old = pd.read_parquet("train.parquet")
n = min(len(old), len(log))
both = pd.concat([old.sample(n, random_state=0), log.sample(n, random_state=0)])
source = np.repeat(["old", "new"], n)
drift = certree.CertifiedBoostedTreesClassifier(duplicates="genuine", random_state=0)
drift.fit(both[features], source)
bound = drift.certificate_.bound
print(f"{n:,} logged rows were compared with {n:,} training rows, by {' and '.join(features)}.")
if bound < 0.5:
    changed = features[drift.feature_importances_.argmax()]
    print(
        f"Drift: with probability 95 %, a classifier tells them apart with an error of at most "
        f"{bound:.0%}; guesses err in 50 %. The column {changed} differs most: look for the cause, and "
        "certify again as soon as labels arrive."
    )
else:
    print(
        "No drift was found: no classifier certifiably beats guesses. Small drifts may be missed."
    )
