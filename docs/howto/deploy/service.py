"""Serve a model of late orders; start it by `uvicorn service:app`."""

import json
import logging
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import pandas as pd
from fastapi import FastAPI
from pydantic import AwareDatetime, BaseModel, Field

import certree

model = certree.load("late.certree")
late = list(model.classes_).index("late")
versions = {
    "model": sha256(Path("late.certree").read_bytes()).hexdigest(),
    "certree": certree.__version__,
}
log = logging.getLogger("predictions")
log.setLevel(logging.INFO)
log.addHandler(logging.FileHandler("predictions.jsonl", encoding="utf-8"))
app = FastAPI()


class Order(BaseModel):
    """An order; null is a missing value."""

    id: int
    ordered: AwareDatetime | None
    weight: float | None
    country: str | None


@app.post("/predictions")
def predict(orders: Annotated[list[Order], Field(min_length=1)]) -> list[dict]:
    """Predict orders, and log each prediction with its order and the versions."""
    table = pd.DataFrame([order.model_dump() for order in orders])[model.feature_names_in_]
    labels = model.predict(table).tolist()
    probabilities = model.predict_proba(table)[:, late].tolist()
    answers = []
    for order, label, probability in zip(orders, labels, probabilities, strict=True):
        answers.append({"id": order.id, "label": label, "late": probability})
        time = {"time": datetime.now(UTC).isoformat()}
        log.info(json.dumps(time | order.model_dump(mode="json") | answers[-1] | versions))
    return answers
