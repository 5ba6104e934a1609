"""Who gives the job of a dead worker to another?  The sweeper: it looks, and then it writes by what it saw.

It too is a frozen value with a pure `decide` and `observe`.  Between the look and the write anything may happen, so
a sweeper whose write does not say what it expects to find is a stale writer like any other.
"""

from typing import NamedTuple

from jobslab.job import Reply, Stuck
from jobslab.stores import Store


class Sweeper(NamedTuple):
    name: str = "sweeper"
    seen: tuple[Stuck, ...] = ()  # what it saw and has not dealt with yet


class Write(NamedTuple):
    """What the sweeper does with one job that it saw: `requeue`, or `exhaust` when no attempt is left."""

    verb: str
    id: str
    attempt: int


def decide(sweeper: Sweeper) -> Write | None:
    """What to do with the first job seen; None: nothing is left, look again."""
    if not sweeper.seen:
        return None
    first = sweeper.seen[0]
    return Write("requeue" if first.attempts_left else "exhaust", first.id, first.attempt)


def look(store: Store, sweeper: Sweeper, now: float | None = None) -> Sweeper:
    """The sweeper with what is stuck now."""
    return sweeper._replace(seen=store.stuck(now=now))


def deliver(store: Store, sweeper: Sweeper, write: Write, now: float | None = None) -> Reply:
    verb = store.requeue if write.verb == "requeue" else store.exhaust
    return verb(write.id, write.attempt, sweeper.name, now=now)


def observe(sweeper: Sweeper) -> Sweeper:
    """The first job is dealt with, whatever the answer was: who lost the race is told by the journal."""
    return sweeper._replace(seen=sweeper.seen[1:])


def sweep(store: Store, name: str = "sweeper", now: float | None = None) -> list[Reply]:
    """Look, and deal with everything seen; what the store answered."""
    sweeper, replies = look(store, Sweeper(name), now), []
    while (write := decide(sweeper)) is not None:
        replies.append(deliver(store, sweeper, write, now))
        sweeper = observe(sweeper)
    return replies
