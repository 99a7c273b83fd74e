"""Fields of model files are stored, checked and restored by the tables that classes declare."""

from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Literal, NamedTuple

import numpy as np
import pytest

from certree.interface.stored_fields import (
    UNSET,
    StoredField,
    restore_fields,
    restore_value,
    store_fields,
)
from certree.interface.stored_state import DamagedModelError, StoredState


class Pair(NamedTuple):
    name: Literal["a", "b"] = "a"
    size: float = 1.0


@dataclass(frozen=True)
class Part:
    kind: str
    most: float


@dataclass(frozen=True)
class Whole:
    n: int
    part: Part | None
    names: tuple[str, ...]
    extra: int = field(default=7, metadata={"is_added": True})


TABLE = {
    "seed": StoredField.value("seed_", int),
    "rate": StoredField.value("rate_", float, 0, 1),
    "sizes": StoredField.value("sizes_", tuple[int | None, ...], 1),
    "means": StoredField.numbers("means_", ("n_", None), -1),
    "first": StoredField("first_", default=None),
    "later": StoredField.value("later_", int, default=UNSET),
}
MODEL = {"n_": 2, "seed_": 3, "rate_": np.float32(0.5), "sizes_": (4, None)}
MODEL |= {"means_": np.zeros((2, 3)), "first_": None}


def restore(entries, arrays):
    model = SimpleNamespace(n_=2)
    restore_fields(model, TABLE, StoredState(entries, arrays))
    return model


def test_what_a_table_stores_is_restored():
    stored = store_fields(SimpleNamespace(**MODEL), TABLE)
    assert [*stored] == ["seed", "rate", "sizes", "means"]
    assert type(stored["rate"]) is float
    arrays = {"means": stored.pop("means")}
    model = restore({**stored, "sizes": [4, None]}, arrays)
    assert (model.seed_, model.rate_, model.sizes_, model.first_) == (3, 0.5, (4, None), None)
    np.testing.assert_array_equal(model.means_, MODEL["means_"])
    assert not hasattr(model, "later_")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": -1}, "seed must be of type int in 0"),
        ({"seed": True}, "seed must be"),
        ({"seed": 2**64}, "seed must be"),
        ({"rate": 1.5}, "rate must be of type float in 0 .. 1, got 1.5"),
        ({"sizes": [0]}, "sizes must be"),
        ({"sizes": 4}, "sizes must be"),
        ({"means": np.zeros((3, 3))}, r"means must have shape \(2, any\)"),
        ({"means": np.full((2, 1), -2.0)}, "means must hold finite numbers in -1"),
        ({"means": np.full((2, 1), np.nan)}, "means must hold finite numbers"),
        ({"later": "x"}, "later must be"),
    ],
)
def test_other_values_are_refused(changed, message):
    entries = {"seed": 3, "rate": 0.5, "sizes": [4], "means": np.zeros((2, 3)), **changed}
    with pytest.raises(ValueError, match=message):
        restore(entries, {})


def test_a_required_field_must_be_there():
    with pytest.raises(DamagedModelError, match="the model file lacks seed"):
        restore({"rate": 0.5}, {})


def test_values_of_a_header_become_their_types():
    whole = Whole(2, Part("x", 0.5), ("a", "b"))
    entries = {**asdict(whole), "names": ["a", "b"]}
    assert restore_value("whole", Whole, entries) == whole
    del entries["extra"]  # files of earlier versions lack it
    assert restore_value("whole", Whole, entries) == whole
    assert restore_value("whole", Whole, {**entries, "part": None}).part is None
    assert restore_value("pair", Pair, ["b", 2.0]) == Pair("b", 2.0)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 1.0),
        (float, "1"),
        (float, float("inf")),
        (int | None, True),
        (tuple[str, ...], "ab"),
        (tuple[str, ...], ["a", 1]),
        (Pair, ["c", 1.0]),
        (Pair, ["a"]),
        (Pair, {"name": "a", "size": 1.0}),
        (Part, {"kind": "x"}),
        (Part, {"kind": "x", "most": 1.0, "more": 1}),
        (Part, {"kind": "x", "most": None}),
        (Whole, {"n": 1, "part": {"kind": 1, "most": 1.0}, "names": []}),
        (Part | None, []),
    ],
    ids=str,
)
def test_values_of_other_types_are_refused(kind, value):
    with pytest.raises(ValueError, match=r"must|argument"):
        restore_value("value", kind, value)
