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
old = pd.read_parquet("train.parquet")
n = min(len(old), len(log))
both = pd.concat([old.sample(n, random_state=0), log.sample(n, random_state=0)])
source = np.repeat(["old", "new"], n)
drift = certree.CertifiedBoostedTreesClassifier(duplicates="genuine", random_state=0)
drift.fit(both[["weight", "country"]], source)
print("The rows differ." if drift.certificate_.bound < 0.5 else "No difference was found.")
