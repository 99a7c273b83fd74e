"""Serve a model of late orders; start it by `uvicorn service:app`."""

import json
import logging
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import pandas as pd
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, BaseModel, Field, FiniteFloat

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
    weight: FiniteFloat | None
    country: str | None


@app.exception_handler(RequestValidationError)
def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
    """Answer a wrong request without its values: JSON cannot hold NaN and Infinity."""
    keys = ("type", "loc", "msg")
    return JSONResponse(
        {"detail": [{key: one[key] for key in keys} for one in error.errors()]}, 422
    )


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
        entry = time | order.model_dump(mode="json") | answers[-1] | versions
        log.info(json.dumps(entry, allow_nan=False))
    return answers
