"""Compare the logged predictions of the current model with labels, and its rows with old rows."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

import certree

model = certree.load("late.certree")
log = pd.read_json("predictions.jsonl", lines=True)
log = log[log["model"] == sha256(Path("late.certree").read_bytes()).hexdigest()]

# Labels arrive later, in a table with the columns id and status.
labelled = log.merge(pd.read_csv("labels.csv"), on="id")
monitor = model.certificate_.monitor(alpha=0.05)
print(monitor.update(labelled["label"] != labelled["status"]))

# A classifier that distinguishes new rows from old ones shows that they differ. Dates always do.
old = pd.read_parquet("train.parquet").sample(len(log), random_state=0)
both = pd.concat([old, log])[["weight", "country"]]
source = np.repeat(["old", "new"], len(log))
drift = certree.CertifiedBoostedTreesClassifier(duplicates="genuine", random_state=0)
drift.fit(both, source)
print("The rows differ." if drift.certificate_.bound < 0.5 else "No difference was found.")
