"""Workers that ask each other tell what one with all parts would, and each change is made once."""

import asyncio
import pickle
import threading
import time
import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from certree.out_of_core import worker_actor
from certree.out_of_core.worker_actor import ChildWorker, Leader, WorkerActor
from certree.out_of_core.worker_links import LinkLost

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("distributed")


class Home:
    """In the place of a worker of Dask: one for all parts, whose messages stay here."""

    address = "home"
    state = SimpleNamespace(nthreads=1)

    def __init__(self):
        self.actors, self.hanging = {}, set()
        self.extensions, self.handlers = {}, {}
        self.loop = SimpleNamespace(asyncio_loop=asyncio.new_event_loop())
        self.thread = threading.Thread(target=self.loop.asyncio_loop.run_forever, daemon=True)
        self.thread.start()

    def rpc(self, address):
        assert address == self.address
        return self

    async def actor_execute(self, function, actor, args):
        """As the workers of Dask answer each other."""
        if actor in self.hanging:
            await asyncio.sleep(60)
        if actor not in self.actors:
            raise OSError("nobody is there")
        try:
            told = await getattr(self.actors[actor], function)(*(one.data for one in args))
        except Exception as error:  # noqa: BLE001 # it is told
            return {"status": "error", "exception": error}
        return {"status": "OK", "result": told}

    def done(self, coroutine):
        """What a coroutine gives that Dask would run."""
        loop = self.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(30)

    def end(self):
        """Leave no thread and no loop."""
        loop = self.loop.asyncio_loop
        loop.call_soon_threadsafe(loop.stop)
        self.thread.join()
        for one in asyncio.all_tasks(loop):
            one.cancel()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.fixture(autouse=True)
def home(monkeypatch):
    made = Home()
    before = worker_actor.import_extra
    at_home = SimpleNamespace(get_worker=lambda: made)
    monkeypatch.setattr(
        worker_actor,
        "import_extra",
        lambda name, extra: at_home if name == "distributed" else before(name, extra),
    )
    yield made
    made.end()


@dataclass(frozen=True)
class Number:
    """In the place of a block."""

    value: int


def value_of(block):
    return np.array([block.value])


def times(block, by, own=0):
    block = replace(block, value=block.value * by + own)
    return block, value_of(block)


def refuse(block):
    raise ValueError(f"no {block.value}")


def tree(home, values):
    """Workers that know those below them as those of a cluster do, with a block each."""
    made = [WorkerActor((i,), (Number(value), None)) for i, value in enumerate(values)]
    home.actors |= {str(i): one for i, one in enumerate(made)}
    below = {}
    for place in reversed(range(len(made))):
        own = [below.pop(one) for one in (2 * place + 1, 2 * place + 2) if one in below]
        address = home.done(made[place].set_children(own))
        numbers = place, *(i for one in own for i in one.numbers)
        below[place] = ChildWorker(address, str(place), numbers)
    return made


@pytest.mark.parametrize("n", [1, 2, 3, 6, 10])
def test_all_parts_are_asked(n, home):
    values = np.arange(1, n + 1)
    made = tree(home, values.tolist())
    leader = Leader(made[0], 0)
    assert leader.reduce(value_of) == values.sum()
    own = np.arange(n) ** 2
    assert (
        leader.replace_blocks(times, 3, per_block=dict(enumerate(own.tolist())))
        == (3 * values + own).sum()
    )
    assert [one._blocks[0].value for one in made] == (3 * values + own).tolist()
    assert [one.replacement for one in leader.replacements] == [0]


def test_a_change_that_is_asked_for_again_is_not_made_again(home):
    made = tree(home, [1, 2, 3])
    first = Leader(made[0], 0)
    assert first.replace_blocks(times, 2) == 12
    again = Leader(made[0], 0)
    assert again.replace_blocks(times, 2) == 12
    assert [one._blocks[0].value for one in made] == [2, 4, 6]
    assert again.replace_blocks(times, 2) == 24
    late = WorkerActor((2,), (Number(3), None))
    home.done(late.repeat_replacements([pickle.dumps(again.replacements)]))
    assert late._blocks[0].value == made[2]._blocks[0].value == 12
    assert late.process(again.replacements[1]) == 12


def test_an_error_below_is_raised_at_the_top_and_others_go_on(home):
    made = tree(home, [5, 5, 7, 8])
    leader = Leader(made[0], 0)
    with pytest.raises(ValueError, match=r"no [578]"):
        leader.reduce(refuse)
    assert leader.reduce(value_of) == 25
    with pytest.raises(ValueError, match="no 5"):
        Leader(made[1], 0).reduce(refuse)


def test_a_lost_worker_is_noticed_at_the_top(home):
    leader = Leader(tree(home, [1, 2, 3, 4])[0], 0)
    assert leader.reduce(value_of) == 10
    del home.actors["3"]
    with pytest.raises(LinkLost):
        leader.reduce(value_of)


def test_who_waits_for_a_worker_that_says_nothing_is_told_to_stop(home):
    made = tree(home, [1, 2, 3])
    leader, failed = Leader(made[0], 0), []
    home.hanging.add("2")

    def ask():
        with pytest.raises(LinkLost):
            leader.reduce(value_of)
        failed.append(True)

    asking = threading.Thread(target=ask)
    asking.start()
    while not made[0]._answers or not made[0]._answers[0].done():
        time.sleep(0.01)
    home.done(made[0].set_children([ChildWorker(home.address, "1", (1,))]))
    asking.join(30)
    assert failed
    assert Leader(made[0], 0).reduce(value_of) == 3


@pytest.mark.parametrize("n", [0, 10, 100_000])
def test_what_is_told_is_the_same_once_packed(n):
    told = {"sums": np.arange(n), "few": np.arange(3.0), "number": n}
    *large, rest = worker_actor.pack(told)
    assert len(large) == (8 * n >= 2**14)
    assert len(rest) < 2**14
    odd = [np.append(np.uint8(0), one)[1:] for one in large]  # as Dask may lay it
    again = worker_actor.unpack([*odd, rest])
    assert again["number"] == n
    assert again["sums"].tobytes() == told["sums"].tobytes()
    assert again["few"].tobytes() == told["few"].tobytes()
    assert all(one.flags.aligned for one in (again["sums"], again["few"]))
