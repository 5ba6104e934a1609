"""What was done and never told, or told and is not there?  Reconciliation asks the outside, compares, and repairs.

Between an effect and the row that tells of it a worker can always die; so the two differ now and then, and no clause
prevents it.  A probe says how a job's effect stands outside; `decide` what follows from that; and what follows goes
through the same guarded verbs as a worker's report: a row that has changed since we looked refuses it.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jobslab import landing
from jobslab.clock import unguessable
from jobslab.errors import KeyReused
from jobslab.job import Job, Reply, State
from jobslab.landing import Landed, Landing
from jobslab.rerun import rerun
from jobslab.stores import Store

ACTOR = "reconcile"  # in the journal


class Found(NamedTuple):
    """How a job's effect stands, asked where it is."""

    landing: Landing
    result: Any = None  # what the job's result is, if it was never told
    mend: Callable[[], object] | None = None  # makes the two sides agree outside of the store; may be done twice
    again: bool = False  # may the whole job be done again, as a new one?


Probe = Callable[[Job], Found]


class Action(StrEnum):
    """What follows."""

    REPORT = "report for the worker that is gone"
    TAKE = "claim it, and report"
    MEND = "mend the other side"
    AGAIN = "do it again, as a new job"
    WAIT = "left to its worker, or to a sweep"
    PERSON = "a person decides"


class Finding(NamedTuple):
    """One job that does not agree with its effect, and what became of it."""

    id: str
    state: str
    landing: Landing
    action: Action
    done: str | None = None  # None: nothing was done
    refused_by: str | None = None  # the rule, where the row has changed since it was looked at

    @property
    def open(self) -> bool:
        """Does it still not agree, so that somebody has to look again?"""
        return self.action != Action.WAIT and (self.done is None or self.refused_by is not None)


# What follows


def decide(job: Job, found: Found, gone: bool, leases: bool = True) -> Action | None:
    """None: the two agree.  `gone`: its lease is over; without leases nobody can say that of a worker."""
    landed = found.landing.landed
    agreed = found.mend is None and landed in (Landed.LANDED, Landed.NOT_DUE)
    if agreed or job.state == State.CANCELLED:
        return None
    if job.state == State.RUNNING and (job.cancel_requested or not gone):
        return Action.WAIT if leases else Action.PERSON
    if landed == Landed.UNREPORTED and job.state in (State.RUNNING, State.QUEUED):
        return Action.REPORT if job.state == State.RUNNING else Action.TAKE
    if found.mend is not None:
        return Action.MEND
    return Action.AGAIN if found.again and landed in (Landed.ABSENT, Landed.DAMAGED) else Action.PERSON


def look(store: Store, probe: Probe, now: float | None = None) -> Iterator[tuple[Job, Found, Action]]:
    """The jobs that do not agree with their effects, and what follows.  Nothing is written."""
    rows = store.rows()
    gone = {(stuck.id, stuck.attempt) for stuck in store.stuck(now=now)}
    reruns = {row.rerun_of: row for row in rows}
    for job in rows:
        found = probe(job)
        action = decide(job, found, (job.id, job.attempt) in gone, store.contract.leases)
        if action == Action.AGAIN and job.id in reruns:
            action = Action.PERSON if reruns[job.id].state in (State.FAILED, State.CANCELLED) else None
        if action is not None and isinstance(store.get(job.id, now=now), Job):  # of an expired one nothing is kept
            yield job, found, action


# Repairing


def reconcile(
    store: Store,
    probe: Probe,
    *,
    dry_run: bool = False,
    ids: Callable[[], str] = unguessable,
    now: float | None = None,
) -> list[Finding]:
    """Look at every job and repair what can be repaired; with `dry_run` only look."""
    findings = []
    for job, found, action in list(look(store, probe, now)):
        done = (None, None) if dry_run else repair(store, job, found, action, ids, now)
        findings.append(Finding(job.id, job.state, found.landing, action, *done))
    return findings


def repair(
    store: Store, job: Job, found: Found, action: Action, ids: Callable[[], str], now: float | None
) -> tuple[str | None, str | None]:
    """What was done, and by which rule it was refused."""
    if action in (Action.WAIT, Action.PERSON):
        return None, None
    if found.mend is not None:
        found.mend()
    if action == Action.MEND:
        return "the other side is mended", None
    if action == Action.AGAIN:
        # A row that is over stays over.  One new job for all who reconcile at once, and for who reruns it by hand.
        try:
            return f"{rerun(store, job.id, ids(), anyway=True, now=now).job.id} does it again", None
        except KeyReused:  # the owner has used the key of the new job for something else
            return "nothing", "fingerprint"
    reply = (take if action == Action.TAKE else report)(store, job, found.result, now)
    return f"it is {reply.state} now" if reply.accepted else "nothing", reply.refused_by


def report(store: Store, job: Job, result: Any, now: float | None) -> Reply:
    """The report that the worker could not make any more, for the attempt that it had."""
    return store.succeed(job.id, job.attempt, ACTOR, result, now=now)


def take(store: Store, job: Job, result: Any, now: float | None) -> Reply:
    """Claim a waiting job and report at once, in one transaction: nobody else begins it meanwhile."""
    with store.transaction():
        reply = store.claim(job.id, ACTOR, now=now)
        return report(store, reply.job, result, now) if reply.job else reply


# Probes


def files(results: Path) -> Probe:
    """Looks at the files of exports, in this directory."""
    return partial(file_found, results)


def file_found(results: Path, job: Job) -> Found:
    seen = landing.file(job, results)
    if seen.landed == Landed.UNREPORTED and seen.name:
        try:
            return Found(seen, {"file": seen.name, **landing.measured(results / seen.name)})
        except OSError as wrong:
            return Found(Landing(Landed.UNKNOWN, f"{seen.name} can't be read just now: {wrong.strerror}", seen.name))
    return Found(seen, again=True)  # the file of another attempt has another name, so that nothing is lost by it
