"""Workers that ask each other tell what one with all parts would, and each change is made once."""

import pickle
import threading
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from certree.parts import links, on_worker
from certree.parts.links import Unlinked
from certree.parts.on_worker import Below, Leader, OnWorker

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("distributed")


class Workerless:
    """In the place of a worker of Dask."""

    class state:  # noqa: N801 # as Dask has it
        nthreads = 1

    get_worker = classmethod(lambda cls: cls)


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    here = "127.0.0.1"
    monkeypatch.setattr(links, "_of_worker", lambda *_: (None, here, here))
    for module in (links, on_worker):
        monkeypatch.setattr(module, "needed", lambda *_: Workerless)


@dataclass(frozen=True)
class Number:
    """In the place of a part."""

    value: int


def value_of(part):
    return np.array([part.value])


def times(part, by, own=0):
    part = replace(part, value=part.value * by + own)
    return part, value_of(part)


def refuse(part):
    raise ValueError(f"no {part.value}")


def tree(values):
    """Workers that are linked as those of a cluster are, with a part each."""
    made = [OnWorker((i,), (Number(value), None)) for i, value in enumerate(values)]
    below = {}
    for place in reversed(range(len(made))):
        own = [below.pop(one) for one in (2 * place + 1, 2 * place + 2) if one in below]
        address = made[place]._meet(own)
        below[place] = Below(address, (place, *(i for one in own for i in one.numbers)))
    return made


@pytest.mark.parametrize("n", [1, 2, 3, 6, 10])
def test_all_parts_are_asked(n):
    values = np.arange(1, n + 1)
    made = tree(values.tolist())
    leader = Leader(made[0], 0)
    assert leader.collect(value_of) == values.sum()
    own = np.arange(n) ** 2
    assert leader.change(times, 3, own=dict(enumerate(own.tolist()))) == (3 * values + own).sum()
    assert [one._parts[0].value for one in made] == (3 * values + own).tolist()
    assert [one.change for one in leader.changes] == [0]


def test_a_change_that_is_asked_for_again_is_not_made_again():
    made = tree([1, 2, 3])
    first = Leader(made[0], 0)
    assert first.change(times, 2) == 12
    again = Leader(made[0], 0)
    assert again.change(times, 2) == 12
    assert [one._parts[0].value for one in made] == [2, 4, 6]
    assert again.change(times, 2) == 24
    late = OnWorker((2,), (Number(3), None))
    late.change_again([pickle.dumps(again.changes)])
    assert late._parts[0].value == made[2]._parts[0].value == 12
    assert late.told(again.changes[1]) == 12


def test_an_error_below_is_raised_at_the_top_and_others_go_on():
    made = tree([5, 5, 7, 8])
    leader = Leader(made[0], 0)
    with pytest.raises(ValueError, match=r"no [578]"):
        leader.collect(refuse)
    assert leader.collect(value_of) == 25
    with pytest.raises(ValueError, match="no 5"):
        Leader(made[1], 0).collect(refuse)


def test_a_lost_worker_is_noticed_at_the_top():
    made = tree([1, 2, 3, 4])
    leader = Leader(made[0], 0)
    assert leader.collect(value_of) == 10
    on_worker._close(made[3]._ends)
    with pytest.raises(Unlinked):
        leader.collect(value_of)


def test_a_tree_that_is_forgotten_leaves_no_threads():
    before = {*threading.enumerate()}
    made = tree([1, 2, 3])
    serving = [one for one in threading.enumerate() if one not in before]
    assert len(serving) == 3
    del made
    for one in serving:
        one.join(20)
        assert not one.is_alive()
