"""What must be so after each single step of a store?  Every promise is a sentence, the flag that it needs, and a check
that reads the rows before, the rows after, and the journal lines written in between."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from jobslab import TERMINAL, Contract
from jobslab.job import Event, Job
from jobslab.stores import Store

REPORTS = ("renew", "progress", "succeed", "fail", "retry", "stop")


class Step(NamedTuple):
    before: dict[str, Job]
    after: dict[str, Job]
    told: list[Event]  # in this step

    @property
    def kept(self) -> list[tuple[Job, Job]]:
        """Each row that was there and still is: as it was, as it is."""
        return [(job, self.after[id]) for id, job in self.before.items() if id in self.after]

    def accepted(self, *verbs: str) -> list[Event]:
        return [event for event in self.told if event.accepted and event.verb in verbs]


class Promise(NamedTuple):
    needs: str | None  # the flag without which it is not promised
    holds: Callable[[Step], bool]


def in_order(*times: float | None) -> bool:
    known = [time for time in times if time is not None]
    return known == sorted(known)


def keys(jobs: Iterable[Job]) -> list[tuple[str, str]]:
    return [(job.owner, job.idempotency_key) for job in jobs if job.idempotency_key is not None]


def told_as_it_is(step: Step) -> bool:
    """Has each row that changed an accepted line, the last of which names the state that it is in?"""
    last = {event.job_id: event.state_after for event in step.told if event.accepted}
    changed = {id for id in step.before | step.after if step.before.get(id) != step.after.get(id)}
    return changed <= set(last) and all(
        (step.after[id].state if id in step.after else None) == state for id, state in last.items()
    )


PROMISES: dict[str, Promise] = {
    "a finished job never changes": Promise(
        "conditional_updates", lambda step: all(a == b for a, b in step.kept if a.state in TERMINAL)
    ),
    "the attempt never falls": Promise(None, lambda step: all(a.attempt <= b.attempt for a, b in step.kept)),
    "no job has more attempts than it may": Promise(
        "conditional_updates", lambda step: all(job.attempt <= job.max_attempts for job in step.after.values())
    ),
    "one job for each owner and key": Promise(
        "idempotency_key", lambda step: len(set(keys(step.after.values()))) == len(keys(step.after.values()))
    ),
    "a running job goes back to the queue by a requeue or a retry alone": Promise(
        None,
        lambda step: (
            {b.id for a, b in step.kept if (a.state, b.state) == ("RUNNING", "QUEUED")}
            <= {event.job_id for event in step.accepted("requeue", "retry")}
        ),
    ),
    "a lease only moves forward": Promise(
        None, lambda step: all((a.lease_until or 0) <= (b.lease_until or 0) for a, b in step.kept)
    ),
    "progress never falls within an attempt": Promise(
        None, lambda step: all(a.attempt < b.attempt or (a.progress or 0) <= (b.progress or 0) for a, b in step.kept)
    ),
    "the journal tells each change as it is": Promise(None, told_as_it_is),
    "a line is of an accepted write or names the rule": Promise(
        None, lambda step: all(event.accepted == (event.refused_by is None) for event in step.told)
    ),
    "times follow each other": Promise(
        "conditional_updates",
        lambda step: all(
            in_order(job.created_at, job.started_at, job.finished_at, job.expires_at) for job in step.after.values()
        ),
    ),
    "a job that was asked to stop is not claimed again": Promise(
        "conditional_updates",
        lambda step: not any(step.before[event.job_id].cancel_requested for event in step.accepted("claim")),
    ),
    "only a running job takes a report": Promise(
        "conditional_updates", lambda step: all(event.state_before == "RUNNING" for event in step.accepted(*REPORTS))
    ),
    "only the current attempt's report counts": Promise(
        "attempt_fencing",
        lambda step: all(step.before[event.job_id].attempt == event.attempt for event in step.accepted(*REPORTS)),
    ),
    "only a job whose lease is over is swept": Promise(
        "conditional_updates",
        lambda step: all(
            (step.before[event.job_id].lease_until or 0) <= event.at for event in step.accepted("requeue", "exhaust")
        ),
    ),
}


def broken(step: Step, contract: Contract) -> list[str]:
    """The promises of this contract that the step breaks."""
    made = {name: promise for name, promise in PROMISES.items() if not promise.needs or promise.needs in contract.on}
    return [name for name, promise in made.items() if not promise.holds(step)]


class Watch:
    """Looks at a store after each step, and says which promises of a contract (the store's own) the step broke."""

    def __init__(self, store: Store, contract: Contract | None = None) -> None:
        self.store, self.contract = store, contract or store.contract
        self.rows, self.told = self._look()

    def broken(self) -> list[str]:
        rows, told = self._look()
        step = Step(self.rows, rows, [event for n, event in told.items() if self.told.get(n) != event])
        self.rows, self.told = rows, told
        return broken(step, self.contract)

    def _look(self) -> tuple[dict[str, Job], dict[int, Event]]:
        return {job.id: job for job in self.store.rows()}, {event.n: event for event in self.store.events()}
