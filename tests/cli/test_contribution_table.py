"""The table of contributions: its columns, whose names differ from those of features and keys."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from certree.cli.contribution_table import tabulate_contributions, write_contributions
from certree.explain import Explanation

ROWS = np.array([4, 1])
PREDICTIONS = {
    "prediction": np.array(["yes", "no"]),
    "probability_no": np.array([0.2, 0.9]),
    "probability_yes": np.array([0.8, 0.1]),
    "std_yes": np.zeros(2),
}


def explain(outputs, scale, features=("a", "b")):
    added = np.arange(4.0 * len(outputs)).reshape(2, len(outputs), 2)
    values = np.zeros((2, 2))
    return Explanation(np.ones(len(outputs)), added, features, outputs, values, scale)


def test_a_table_has_keys_predictions_unit_and_contributions():
    keys = {"id": pa.chunked_array([[*"abcdef"]])}
    explanation = explain(["yes"], "probability")
    found = tabulate_contributions(explanation, ROWS, keys, PREDICTIONS).to_pydict()
    assert found == {
        "row": [4, 1],
        "id": ["e", "b"],
        "prediction": ["yes", "no"],
        "probability_yes": [0.8, 0.1],
        "unit": ["probability of yes"] * 2,
        "base": [1.0, 1.0],
        "a": [0.0, 2.0],
        "b": [1.0, 3.0],
    }
    explanation = explain(["no", "yes"], "raw score")
    found = tabulate_contributions(explanation, ROWS, {}, PREDICTIONS)
    assert found.column_names == [
        *("row", "prediction", "probability_no", "probability_yes", "unit"),
        *("no: base", "no: a", "no: b", "yes: base", "yes: a", "yes: b"),
    ]
    assert found["unit"].to_pylist() == ["raw score"] * 2
    numbers = explain(["prediction"], "target", ["unit", "base"])
    found = tabulate_contributions(numbers, ROWS, {}, {"prediction": np.zeros(2)})
    assert found.column_names == ["row", "prediction", "unit_", "base_", "unit", "base"]
    assert found["unit_"].to_pylist() == ["target"] * 2


def test_a_key_with_the_name_of_a_feature_is_refused():
    with pytest.raises(ValueError, match="--keep must not name a feature"):
        tabulate_contributions(
            explain(["yes"], "probability"), ROWS, {"a": pa.chunked_array([[1] * 5])}, PREDICTIONS
        )


def test_integer_keys_are_integers_in_parquet(tmp_path):
    keys = {"id": pa.chunked_array([[*"012345"]]), "code": pa.chunked_array([["01"] * 6])}
    table = tabulate_contributions(explain(["yes"], "probability"), ROWS, keys, PREDICTIONS)
    write_contributions(table, keys, tmp_path / "out.parquet")
    found = pa.parquet.read_table(tmp_path / "out.parquet")
    assert found["id"].to_pylist() == [4, 1]
    assert found["code"].to_pylist() == ["01", "01"]
    write_contributions(table, keys, tmp_path / "out.csv")
    assert '4,"4","01"' in (tmp_path / "out.csv").read_text()
