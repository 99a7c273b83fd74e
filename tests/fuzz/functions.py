"""Cases that call public functions with arguments some of which are replaced by hostile values."""

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import numpy as np

from certree.certificates import Monitor
from fuzz.hostile import spoilt, spoilt_column
from fuzz.twins import TWINS
from fuzz.world import World, plausible

PACKAGES = ["certree", *(f"certree.{package}" for package in ("rows", "grow", "stats", "weights"))]
PACKAGES += [f"certree.{package}" for package in ("prunings", "votes", "certificates", "boolean")]
PACKAGES += [
    f"certree.{package}"
    for package in ("certificates.inequalities", "certificates.subsets", "paper")
]
Attempt = Callable[[], None]

# Of one world, which takes longer to make than a call.
_CALLS = 8
# Estimators and files have cases of their own; pictures of the experiments take what these make.
_ELSEWHERE = {
    "save",
    "load",
    "predict_files",
    "read_table",
    "resources",
    "training_rows",
    "plot_figure2",
    "plot_rates",
    "plot_table2",
}


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return every public function, by name."""
    seen = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value) and value not in seen and name not in _ELSEWHERE:
                seen.add(value)
                yield name, value


def monitor(bound: float, alpha: float, losses: Any) -> Monitor:
    """Watch a bound on losses; the result must not depend on how many losses come at a time."""
    watched = Monitor(bound, alpha).update(losses)
    assert str(watched)
    assert watched._repr_html_()
    apart = Monitor(bound, alpha)
    for loss in np.atleast_1d(losses):
        apart.update(loss)
    assert (watched.rows, watched.first_alarm) == (apart.rows, apart.first_alarm)
    np.testing.assert_allclose(watched.log_e_value, apart.log_e_value, 1e-9, 1e-9)
    return watched


FUNCTIONS = dict(public()) | {"monitor": monitor}


def call(random: Random) -> Iterator[Attempt]:
    """Yield calls of functions with arguments of one world, which fit together."""
    world = World(random)
    for _ in range(_CALLS):
        yield partial(_call_one, random, world)


def _call_one(random: Random, world: World) -> None:
    """Call a function, in most cases with one or two of its arguments replaced by hostile
    values.
    """
    name = random.choice([*FUNCTIONS])
    function = FUNCTIONS[name]
    given = arguments(world, name, function)
    spoils = random.random() < 0.6
    if spoils:
        for _ in range(random.choice([1, 1, 1, 2])):
            key = random.choice([*given])
            is_rest = key == "*"
            given[key] = [spoilt(random, *given[key])] if is_rest else spoilt(random, given[key])
    if any(_is_many(given.get(count)) for count in ("n", "n_classes")):
        return  # they would be dealt, or counted, as long as memory lasts
    positional = given.pop("*", ())
    answer = function(*positional, **given)
    if not spoils and name in TWINS:
        TWINS[name](world, answer, **given)


def arguments(world: World, name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return plausible arguments of a function by name; those without a name as a list under
    "*".
    """
    given: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue  # switches of growth, which the estimators' cases draw
        if parameter.kind is parameter.VAR_POSITIONAL:
            given["*"] = [plausible(world, name, parameter.name)]
        elif parameter.default is parameter.empty or world.random.random() < 0.5:
            given[parameter.name] = plausible(world, name, parameter.name)
    return given


def change_columns(random: Random) -> Iterator[Attempt]:
    """Replace a field of an object that functions exchange, and call functions with it if it is
    accepted.
    """
    world = World(random)
    yield partial(_spoil_one, random, world)
    for name in random.sample([*FUNCTIONS], _CALLS):
        yield partial(_call_plainly, world, name)


def _spoil_one(random: Random, world: World) -> None:
    noun = random.choice(["tree", "stats", "target_stats", "posterior", "ballot", "held", "prior"])
    setattr(world, noun, spoilt_column(random, getattr(world, noun)))
    if noun == "tree":
        world.tree.route(world.X, 1)


def _is_many(value: Any) -> bool:
    return isinstance(value, int) and 10**6 < value < 2**40


def _call_plainly(world: World, name: str) -> None:
    given = arguments(world, name, FUNCTIONS[name])
    FUNCTIONS[name](*given.pop("*", ()), **given)
