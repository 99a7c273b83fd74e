"""Fit a model of late orders, save it, and write the files that the other programs read."""

from pathlib import Path

import numpy as np
import pandas as pd

import certree

rng, n = np.random.default_rng(0), 4000
minutes = pd.to_timedelta(rng.integers(0, 300 * 24 * 60, n), unit="min")
orders = pd.DataFrame(
    {
        "id": np.arange(n),
        "ordered": pd.Timestamp("2026-01-01", tz="UTC") + minutes,
        "weight": rng.gamma(2, 3, n).round(2),
        "country": rng.choice(["CH", "DE", "NO"], n),
    }
)
delay = 0.5 * orders["weight"] + 3 * (orders["country"] == "NO") + minutes.days / 100
orders["status"] = np.where(delay + rng.logistic(size=n) > 6, "late", "punctual")
for column in ["ordered", "weight", "country"]:
    orders.loc[rng.random(n) < 0.1, column] = None

train, new = orders[:3000], orders[3000:]
features = ["ordered", "weight", "country"]
model = certree.CertifiedBoostedTreesClassifier(random_state=0)
model.fit(train[features], train["status"])

certree.save(model, "late.certree")
graph = model.to_onnx("float64", inputs="named")
Path("late.onnx").write_bytes(graph.SerializeToString())
Path("Late.java").write_text(model.to_code("java", "Late"), encoding="utf-8")
train.to_parquet("train.parquet")
new.to_parquet("new.parquet")
