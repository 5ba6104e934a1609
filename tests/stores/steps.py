"""How does a test bring a job to where its story begins?  In lab time, with job-1 and worker A unless it says so."""

from collections.abc import Callable
from typing import Any

from jobslab.job import Error, Job, Reply, State
from jobslab.settings import LAB
from jobslab.stores import Store

LEASE = LAB.lease_seconds
RETENTION = LAB.retention_seconds
EXPIRED = LAB.expired_seconds

BROKEN = Error("broken", "it broke")

# Every report of a worker, with arguments that are right.
REPORTS: dict[str, tuple[Any, ...]] = {
    "renew": (),
    "progress": (0.5,),
    "succeed": ({"rows": 3},),
    "fail": (BROKEN,),
    "retry": (BROKEN,),
    "stop": (),
}


def report(store: Store, verb: str, attempt: int = 1, *, id: str = "job-1", now: float = 1) -> Reply:
    return getattr(store, verb)(id, attempt, "A", *REPORTS[verb], now=now)


def queued(store: Store, id: str = "job-1", *, now: float = 0, **options: Any) -> Job:
    return store.submit(id, "export", {"table": "orders"}, now=now, **options).job


def running(store: Store, id: str = "job-1", *, now: float = 0, **options: Any) -> Job:
    queued(store, id, now=now, **options)
    claimed = store.claim(id, "A", now=now).job
    assert claimed is not None
    return claimed


def succeeded(store: Store, id: str = "job-1", *, now: float = 0, **options: Any) -> Job:
    running(store, id, now=now, **options)
    store.succeed(id, 1, "A", {"rows": 3}, now=now)
    return row(store, id)


def failed(store: Store, id: str = "job-1", *, now: float = 0) -> Job:
    running(store, id, now=now)
    store.fail(id, 1, "A", BROKEN, now=now)
    return row(store, id)


def cancelled(store: Store, id: str = "job-1", *, now: float = 0) -> Job:
    running(store, id, now=now)
    store.stop(id, 1, "A", now=now)
    return row(store, id)


FINISHED: dict[State, Callable[..., Job]] = {
    State.SUCCEEDED: succeeded,
    State.FAILED: failed,
    State.CANCELLED: cancelled,
}

IN_STATE: dict[State, Callable[..., Job]] = {State.QUEUED: queued, State.RUNNING: running, **FINISHED}


def row(store: Store, id: str = "job-1") -> Job:
    return {job.id: job for job in store.rows()}[id]


def told(store: Store) -> list[tuple[str, str | None, str | None, str | None]]:
    """The journal in short: verb, the rule that refused, state before, state after."""
    return [(event.verb, event.refused_by, event.state_before, event.state_after) for event in store.events()]


def changed(before: Job, after: Job) -> dict[str, Any]:
    """The columns in which two states of a row differ, as they are after."""
    return {name: new for name, old, new in zip(Job._fields, before, after) if old != new}
