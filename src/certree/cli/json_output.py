"""Print JSON documents of commands on standard output: the option --json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from certree.certificates import Certificate, Monitor
from certree.certificates.subsets.families import CertificateFamily
from certree.certificates.thresholds import Limits, OperatingPoint, ThresholdGuarantees
from certree.cli.threshold_choice import ThresholdChoice
from certree.explain.rules import Rules
from certree.show.page.scores import Score

if TYPE_CHECKING:
    import pyarrow as pa

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of the other output.")
]

# Fields of `Rule` that a document has under the same names.
_RULE_FIELDS = ("probability", "training_rows", "calibration_rows", "error_at_most")
# Fields of `Certificate` that a document has under the same names.
_CERTIFICATE_FIELDS = (
    "method",
    "bound",
    "delta",
    "share",
    "n",
    "risk",
    "unit",
    "grouped",
    "repeats",
)
# Properties of `Monitor` that a document has under the same names.
_MONITOR_FIELDS = (
    "broken",
    "first_alarm",
    "likely_change",
    "rows",
    "mean_loss",
    "bound",
    "unit",
    "e_value",
    "alpha",
    "delta",
    "false_alarm_probability",
    "block",
    "model_hash",
    "grouped",
    "loss",
)


def print_json(document: dict[str, Any]) -> None:
    """Print a document as strict JSON on standard output.

    Numbers that JSON lacks (NaN and infinities) become null, and values of other types, such as
    dates, become text.
    """
    typer.echo(_to_json(document, indent=1))


def print_predictions(model: Any, tables: Iterator[pa.Table]) -> None:
    """Print predictions as one JSON document, batch by batch.

    Its keys are "model" (name of the class), "predictions" (a list) and "rows" (number of rows).
    Nothing is printed before the first batch has been predicted.

    Parameters
    ----------
    model : fitted estimator
        The model, whose class is named.
    tables : iterator of pyarrow.Table
        Output tables of the batches, with the same columns. Each row becomes an object.
    """
    n_rows, separator = 0, f'{{"model": {json.dumps(type(model).__name__)}, "predictions": [\n'
    for table in tables:
        rows = ",\n".join(map(_to_json, table.to_pylist()))
        typer.echo(separator + rows, nl=False)
        n_rows, separator = n_rows + len(table), ",\n"
    typer.echo(f'\n], "rows": {n_rows}}}')


def _to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as strict JSON text, in ASCII.

    NaN and infinities become null, and values of types that JSON lacks become their `str`. indent:
    spaces for each level; None: the text has one line.
    """
    return json.dumps(_replace_nonfinite(value), indent=indent, default=str, allow_nan=False)


def _replace_nonfinite(value: Any) -> Any:
    """Return a copy of a value with None for each NaN and infinity in its dicts and lists.

    Keys become texts, and tuples lists, as in JSON.
    """
    if isinstance(value, dict):
        return {str(key): _replace_nonfinite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def describe_scores(scores: list[Score]) -> dict[str, Any]:
    """Return scores as a JSON object, by their keys, such as "error" and "log_loss".

    Each entry has "value", "low" and "high" (the ends of its 95 % interval), and "baseline": an
    object with "name" and "value" of a constant prediction's score, or None if there is none.
    """
    return {
        score.key: {
            "value": score.value,
            "low": score.low,
            "high": score.high,
            "baseline": _describe_baseline(score.baseline),
        }
        for score in scores
    }


def _describe_baseline(baseline: Any) -> dict[str, Any] | None:
    """Convert the score of a constant prediction to a JSON object with "name" and "value".

    baseline: a `Baseline`, or None, which is returned unchanged.
    """
    return None if baseline is None else {"name": baseline.name, "value": baseline.value}


def describe_monitor(monitor: Monitor) -> dict[str, Any]:
    """Return the state of a monitor as a JSON object.

    It has the sentence "statement", "batches" (a list of the names of the batches), and properties
    of `Monitor` under their names: "broken" (whether an alarm was raised), "first_alarm" and
    "likely_change" (numbers of rows), "rows", "mean_loss", "bound", "unit", "e_value", "alpha",
    "delta", "false_alarm_probability", "block", "model_hash", "grouped" and "loss".
    """
    properties = {name: getattr(monitor, name) for name in _MONITOR_FIELDS}
    return {"statement": str(monitor), **properties, "batches": list(monitor.batches)}


def describe_certificate(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as a JSON object.

    It has the sentence "statement", the fields "method", "bound", "delta", "share", "n", "risk",
    "unit", "grouped" and "repeats" of `Certificate`, "subset" (the part of the rows that the bound
    is about; empty: all), "baseline" (name and error of a constant prediction, or None),
    "is_below_baseline" and "assumptions" (a list of sentences).
    """
    return {
        "statement": str(certificate),
        **{name: getattr(certificate, name) for name in _CERTIFICATE_FIELDS},
        "subset": certificate.part,
        "baseline": _describe_baseline(certificate.baseline),
        "is_below_baseline": certificate.is_below_baseline,
        "assumptions": list(certificate.assumptions),
    }


def describe_family(family: CertificateFamily) -> list[dict[str, Any]]:
    """Return all certificates of a family as a list of objects of `describe_certificate`.

    A family has certificates of one kind, such as one for each group, that hold together with
    probability 1 - delta.
    """
    return [describe_certificate(certificate) for certificate in family.values()]


def describe_rules(rules: Rules) -> dict[str, Any]:
    """Return the rules of a tree as a JSON object.

    It has "statement" (what holds for the error bounds, or why there are none; "": the tree is not
    certified), "delta", "positive" (the class of the probabilities; None: the predicted class of
    each rule), and the list "rules". Each rule has "number", "statement" (its sentence),
    "conditions" (a list of texts), "prediction", "probability", "training_rows",
    "calibration_rows" and "error_at_most", as in `Rule`.
    """
    return {
        "statement": rules.title,
        "delta": rules.delta,
        "positive": None if rules[0].pos_label is None else str(rules[0].pos_label),
        "rules": [
            {
                "number": rule.number,
                "statement": str(rule),
                "conditions": [str(condition) for condition in rule.conditions],
                "prediction": get_plain(rule.prediction),
                **{name: get_plain(getattr(rule, name)) for name in _RULE_FIELDS},
            }
            for rule in rules
        ],
    }


def get_plain(value: Any) -> Any:
    """Return the value of a field as an object that JSON has.

    NumPy scalars and arrays become Python objects with the same values. Values of types that JSON
    lacks, such as growers, are left to `print_json`, which writes them as text.
    """
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def describe_thresholds(guarantees: ThresholdGuarantees, choice: ThresholdChoice) -> dict[str, Any]:
    """Return the chosen decision thresholds as a JSON object, for all rows and for each group.

    The object has "statement"; an entry for each criterion in `choice`, such as "lowest_cost", the
    chosen threshold as `_describe_point` describes it; "table", a list of the thresholds that the
    option --threshold names, described likewise, if it is used; and "groups": by name of the group an
    object with the same entries except "statement" and "groups". A choice that is not possible in a
    group is None there.

    guarantees: limits of the rates at all thresholds. choice: the criteria by which thresholds are
    chosen, and the thresholds of the option.
    """
    return {
        "statement": guarantees.title,
        **_describe_choice(guarantees, choice, choice.find_points(guarantees)),
        "groups": {
            name: _describe_choice(group, choice, choice.find_points_or_reasons(group))
            for name, group in guarantees.groups.items()
        },
    }


def _describe_choice(
    guarantees: ThresholdGuarantees,
    choice: ThresholdChoice,
    found: Mapping[str, OperatingPoint | str],
) -> dict[str, Any]:
    """Return chosen thresholds, and the thresholds of the option --threshold, as a JSON object.

    It has an entry for each name in `found`. If the user passed --threshold, it also has "table",
    a list with the thresholds that the option names. A threshold is an object with its limits; see
    `_describe_point`.

    guarantees: limits of the rates at all thresholds. choice: its `thresholds` are those of the
    option, empty if it is not used. found: by criterion, such as "lowest_cost", the threshold that
    it chooses, or the reason why there is none, which becomes None.
    """
    described: dict[str, Any] = {
        name: _describe_point(one) if isinstance(one, OperatingPoint) else None
        for name, one in found.items()
    }
    if choice.thresholds:
        described["table"] = [_describe_point(guarantees.at(one)) for one in choice.thresholds]
    return described


def _describe_point(point: OperatingPoint) -> dict[str, Any]:
    """Convert a threshold, the confidence limits of its rates, and its certified cost to a JSON object.

    point: the threshold. The keys are "statement", "positive" (a class), "threshold", the rates
    "recall", "false_positive_rate", "precision" and "predicted_positive_rate" (an object with
    "observed", "lowest" and "highest" each), and "cost", a certificate of the mean cost, or None.
    """
    rates = ("recall", "false_positive_rate", "precision", "predicted_positive_rate")
    certificate = point.certificate
    return {
        "statement": str(point),
        "positive": str(point.positive),
        "threshold": point.threshold,
        **{rate: _describe_limits(getattr(point, rate)) for rate in rates},
        "cost": None if certificate is None else describe_certificate(certificate),
    }


def _describe_limits(limits: Limits) -> dict[str, float]:
    """Return a rate as an object with "observed" (calibration rows), "lowest" and "highest".

    The last two are its confidence limits on new rows.
    """
    return {name: float(value) for name, value in limits._asdict().items()}
