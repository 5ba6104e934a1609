"""What does each clause buy?  Every order of events within the bounds, under one contract or under all 32."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from jobslab.contract import Contract
from jobslab.lab import checker
from jobslab.lab.alike import Alike
from jobslab.lab.memo import Memo
from jobslab.lab.properties import NAMES, SOMETIMES, properties, tells
from jobslab.lab.trace import Happening, tell
from jobslab.lab.world import Bounds, World
from jobslab.settings import LAB
from jobslab.stores import Store, open_store


class Finding(NamedTuple):
    """A verdict (the checker's words), and a shortest run to what was seen."""

    answer: str
    trace: tuple[Happening, ...] = ()


class Exploration(NamedTuple):
    contract: Contract
    bounds: Bounds
    states: int
    steps: int
    depth: int
    exhausted: bool
    findings: dict[str, Finding]


def explore(contract: Contract, bounds: Bounds = Bounds(), limit: int | None = None) -> Exploration:
    with open_store(contract, settings=LAB) as store:
        world = World(Memo(store), bounds, alike=True)
        system = checker.System([world.start], world.enabled, Alike(world, tells).canon)
        result = checker.check(system, properties(world), limit=limit)
        findings = {
            name: Finding(verdict.answer, tell(world, verdict.trace) if verdict.trace else ())
            for name, verdict in result.verdicts.items()
        }
    return Exploration(contract, bounds, result.states, result.steps, result.depth, result.exhausted, findings)
