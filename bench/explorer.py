"""How fast is the explorer, and how does its time grow with jobs, workers and faults?

A state is one of all that are alike; a step is worked out for each of those.  The figures are processor seconds of one
process, but for the matrix, which is timed by the clock on two.
"""

import resource
import time
from collections.abc import Iterator

from jobslab.contract import Contract
from jobslab.lab.explore import explore, matrix
from jobslab.lab.memo import Memo
from jobslab.lab.world import NEWS, Bounds, World
from jobslab.settings import LAB
from jobslab.stores import open_store

GROWTH = [
    Bounds(),
    *(Bounds(faults=faults) for faults in (2, 3, 4)),
    *(Bounds(workers=workers) for workers in (3, 4)),
    *(Bounds(jobs=2, faults=faults) for faults in (1, 2, 3)),
    Bounds(jobs=2, workers=3, faults=2),
    Bounds(jobs=2, faults=3, reports=tuple(NEWS)[:-1], late=tuple(NEWS)),
    Bounds(jobs=2, workers=3, faults=3, reports=tuple(NEWS)[:-1], late=tuple(NEWS)),  # the largest within a minute
]
HARDEST = Contract().without("idempotency_key", "conditional_updates")


def timed(contract: Contract, bounds: Bounds) -> tuple[int, int, float]:
    """States, steps, processor seconds."""
    started = time.process_time()
    found = explore(contract, bounds, limit=None)
    assert found.exhausted
    return found.states, found.steps, time.process_time() - started


def what_grew(bounds: Bounds) -> str:
    """The bounds that are not as by default."""
    default = Bounds()._asdict()
    grown = {name: value for name, value in bounds._asdict().items() if value != default[name]}
    words = {name: str(len(value)) if isinstance(value, tuple) else str(value) for name, value in grown.items()}
    return ", ".join(f"{name}={value}" for name, value in words.items()) or "the default"


def lines() -> Iterator[str]:
    yield from of_all_contracts()
    yield f"{plain_speed():,.0f} steps a second where every state is looked at and none is alike to another"
    yield f"{'the full contract':<44} {'states':>9} {'steps':>10} {'s':>7}"
    for bounds in GROWTH:
        states, steps, seconds = timed(Contract(), bounds)
        yield f"  {what_grew(bounds):<42} {states:>9,} {steps:>10,} {seconds:>7.2f}"
    states, steps, seconds = timed(HARDEST, Bounds())
    yield f"{f'{HARDEST}, the default':<44} {states:>9,} {steps:>10,} {seconds:>7.2f}"


def of_all_contracts() -> Iterator[str]:
    """First: what a process has needed before counts as its children's memory, too."""
    started = time.perf_counter()
    found = matrix()
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    states, steps = sum(each.states for each in found), sum(each.steps for each in found)
    yield f"all 32 contracts, two processes: {states:,} states, {steps:,} steps in {seconds:.1f} s by the clock"
    yield f"the larger of the two: {most:.0f} MiB"


def plain_speed() -> float:
    """Steps a second, of the search alone."""
    with open_store(settings=LAB) as store:
        world = World(Memo(store), Bounds(faults=2))
        seen, todo, steps = {world.start}, [world.start], 0
        started = time.process_time()
        while todo:
            after = [step[2] for step in world.enabled(todo.pop())]
            steps += len(after)
            new = set(after) - seen
            seen |= new
            todo.extend(new)
        return steps / (time.process_time() - started)


def main() -> None:
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
