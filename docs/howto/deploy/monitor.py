"""Compare logged predictions of the current model with new labels, and new orders with old ones."""

import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

import certree

model = certree.load("late.certree")
digest = sha256(Path("late.certree").read_bytes()).hexdigest()
log = pd.read_json("predictions.jsonl", lines=True).drop_duplicates("id")
log = log[log["model"] == digest]

# The state of the monitor is kept between batches of labels.
state = Path("late.monitor")
if not state.exists():
    certree.save(model.certificate_.monitor(model_hash=digest), state)
monitor = certree.load(state)
labels = Path(sys.argv[1])
statuses = pd.read_csv(labels)
labelled = statuses.merge(log, on="id")
print(f"{len(labelled):,} of {len(statuses):,} labels belong to logged predictions of this model.")
wrong = labelled["label"] != labelled["status"]
monitor.update(wrong, batch=labels.name, model_hash=digest)
certree.save(monitor, state)
print(monitor)

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
