"""How does one see that jobs wait, before the callers say so?  By two figures of the broker: how many, and how old.

Two jobs arrive in each unit.  What the consumers can do in a unit differs from story to story, and so does what waits.
The messages are real and so are the counts; only time is counted: each message says in which unit it was sent.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from jobslab.lab.broker import Broker, a_broker
from jobslab.lab.charts import bars
from jobslab.lab.picture import Picture
from jobslab.lab.queueing import known

ARRIVE = 2  # jobs in each unit
END = 24  # units


class Consumers(NamedTuple):
    """How many messages are done in this unit, and how many may wait before a new one is refused."""

    can_do: Callable[[int], int]
    limit: int | None = None


STORIES = {
    "quick enough": Consumers(lambda unit: 3),
    "down for 6 units": Consumers(lambda unit: 0 if 4 <= unit < 10 else 3),
    "too slow": Consumers(lambda unit: 1),
    "too slow, and a limit of 8": Consumers(lambda unit: 1, limit=8),
}


class Backlog(NamedTuple):
    """What the broker said at the end of each unit."""

    name: str
    waiting: tuple[int, ...]
    age: tuple[int, ...]  # of the oldest, in units
    refused: int  # in all: each was told so at once


def backlog(name: str) -> Backlog:
    """The story from its beginning.  Raises UnknownWay, NoBroker."""
    known(name, STORIES)
    with a_broker() as broker:
        units = [one_unit(broker, STORIES[name], unit) for unit in range(END)]
    waiting, age, refused = zip(*units)
    return Backlog(name, waiting, age, sum(refused))


def one_unit(broker: Broker, consumers: Consumers, unit: int) -> tuple[int, int, int]:
    """Jobs arrive, some are done; then how many wait, how old the oldest is, and how many were refused."""
    refused = 0
    for n in range(ARRIVE):
        if consumers.limit is None or broker.messages() < consumers.limit:
            broker.publish(f"job {unit}.{n}", at=unit)
        else:
            refused += 1
    for _ in range(consumers.can_do(unit)):
        if (delivery := broker.fetch()) is not None:
            broker.ack(delivery)
    seen = broker.depth()
    return seen.waiting, int(unit - seen.oldest.at) if seen.oldest else 0, refused


def answers(name: str) -> Mapping[str, str]:
    """The story in words, step by step."""
    seen = backlog(name)
    return {
        "most that wait": str(max(seen.waiting)),
        "the oldest waits at most": f"{max(seen.age)} units",
        "wait at the end": f"{seen.waiting[-1]}, the oldest for {seen.age[-1]} units",
        "refused at the door": str(seen.refused),
    }


def backlogs(*names: str) -> Picture:
    """Depth and age of these stories as a Picture."""
    seen = [backlog(name) for name in names]
    rows = {f"{one.name}: {what}": getattr(one, field) for one in seen for what, field in FIGURES.items()}
    return bars(f"{ARRIVE} jobs arrive in each unit: how many wait, and for how long", "unit", rows, "jobs, or units")


FIGURES = {"waiting": "waiting", "age of the oldest": "age"}
