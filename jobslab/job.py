"""What is a job, which states can it be in, and what does the engine answer?  The values that everything else passes
around: frozen, and without a rule of their own (the rules are in `contract`)."""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Meaning(NamedTuple):
    """What a state tells the caller, and which states may follow it under the full contract."""

    says: str
    successors: tuple[State, ...]


# A rerun is a new job and a cancel that was asked for is a field, so that five states are enough.  RUNNING goes back
# to QUEUED only by a requeue or a retry, and keeps its attempt.
STATES: dict[State, Meaning] = {
    State.QUEUED: Meaning("registered, and waiting for a worker or for its time", (State.RUNNING, State.CANCELLED)),
    State.RUNNING: Meaning(
        "claimed by a worker, which holds a lease on it",
        (State.QUEUED, State.SUCCEEDED, State.FAILED, State.CANCELLED),
    ),
    State.SUCCEEDED: Meaning("done, and its result is there", ()),
    State.FAILED: Meaning("over without a result; its error says why", ()),
    State.CANCELLED: Meaning("over because somebody asked for it; the work has stopped", ()),
}

TERMINAL = frozenset(state for state, meaning in STATES.items() if not meaning.successors)

# What a worker may tell of its attempt.
REPORTS = ("renew", "progress", "succeed", "fail", "retry", "stop")

# What the package's own tasks do (see tasks.py); a team that brings its own tasks opens its store with its own kinds.
KINDS = ("export", "wait", "flaky", "fail")


class Job(NamedTuple):
    """One row of the table `jobs`, column for column.  Times are seconds; params, result and error are JSON texts."""

    id: str
    kind: str  # which task does it
    params: str
    owner: str
    idempotency_key: str | None
    fingerprint: str  # of kind and params: is a repeated key the same request?
    state: str
    attempt: int  # how often it was claimed; it never falls, and fences the reports of older claims
    max_attempts: int
    run_at: float  # not before this time
    lease_until: float | None  # never cleared: see contract.STATEMENTS
    worker: str | None  # who claimed it last
    progress: float | None  # 0 to 1 within this attempt; 1 only when it has succeeded
    cancel_requested: int  # 1: the worker is to stop
    result: str | None
    error: str | None  # {"type": stable name, "message": for people}
    correlation_id: str | None  # follows the job through journal, logs and responses
    rerun_of: str | None  # the job that this one does again
    created_at: float
    started_at: float | None  # of the last attempt
    updated_at: float
    finished_at: float | None
    expires_at: float | None  # when a finished job may be forgotten

    @property
    def done(self) -> bool:
        """Will the state never change again?  The one question that a polling client has."""
        return self.state in TERMINAL


def queued(
    id: str, kind: str, params: str, owner: str, idempotency_key: str | None, fingerprint: str, max_attempts: int,
    run_at: float, correlation_id: str | None, rerun_of: str | None, now: float,
) -> Job:  # fmt: skip
    """The row of a job that is registered now, and is waiting."""
    return Job(
        id, kind, params, owner, idempotency_key, fingerprint, state=State.QUEUED.value, attempt=0,
        max_attempts=max_attempts, run_at=run_at, lease_until=None, worker=None, progress=None, cancel_requested=0,
        result=None, error=None, correlation_id=correlation_id, rerun_of=rerun_of, created_at=now, started_at=None,
        updated_at=now, finished_at=None, expires_at=None,
    )  # fmt: skip


class Event(NamedTuple):
    """One row of the journal, written in the transaction of the change that it tells, refusals too."""

    n: int
    at: float
    job_id: str
    actor: str | None  # the worker, the sweeper, or the owner who submits and cancels
    verb: str
    attempt: int | None  # for a report: the attempt that it names
    accepted: int
    refused_by: str | None  # the rule
    state_before: str | None
    state_after: str | None
    correlation_id: str | None


class Error(NamedTuple):
    """Why a job is over without a result: `type` is stable and for programs, `message` is for people."""

    type: str
    message: str


class Submitted(NamedTuple):
    """The answer to `submit`: the job, and whether an earlier submit with the same key had made it."""

    job: Job
    replayed: bool


class Reply(NamedTuple):
    """The answer to a guarded write: did it land, and if not, which rule refused it?

    `state`, `attempt` and `cancel_requested` are the row's after the write; `job` is the whole row, for `claim` only.
    """

    accepted: bool
    refused_by: str | None
    state: str | None
    attempt: int | None
    cancel_requested: bool
    job: Job | None = None


class Stuck(NamedTuple):
    """What a sweeper sees of a running job whose lease is over: enough to requeue it or to give it up."""

    id: str
    attempt: int
    attempts_left: bool


class Expired(NamedTuple):
    """A finished job whose time of retention is over: its id is still known, everything else is gone."""

    id: str
    owner: str
    expired_at: float


NO_SUCH_JOB = "no such job"  # stands in `refused_by` where there is no row to ask a rule about
