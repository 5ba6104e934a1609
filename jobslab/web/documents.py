"""What does an answer say of a job, of a page of jobs, of the contract?  The models are what /openapi.json publishes.

The documents are built as plain values and not through the models: a test compares the two.
"""

import json
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from jobslab import stage
from jobslab.cause import CAUSES, Verdict
from jobslab.contract import FLAGS, RULES, Contract
from jobslab.job import STATES, TERMINAL, Job, State
from jobslab.settings import KEY_LENGTH
from jobslab.stores import Store

UNKNOWN_STATE = "a state that is not listed here is not done; where `done` is there, it decides"


class Error(BaseModel):
    """Why a job is over without a result."""

    model_config = ConfigDict(extra="forbid")
    type: str = Field(description="stable, for programs")
    message: str = Field(description="for people")


class Links(BaseModel):
    """Where to go from here, in the job's state."""

    model_config = ConfigDict(extra="forbid")
    self: str
    cancel: str | None = Field(None, description="only while the job is not done")
    result: str | None = Field(None, description="only once it has succeeded")


class JobDocument(BaseModel):
    """The status of a job."""

    model_config = ConfigDict(extra="forbid")
    id: str
    kind: str
    state: State = Field(description=UNKNOWN_STATE)
    done: bool = Field(description="whether the state will never change again")
    attempt: int = Field(description="how often a worker has begun; it never falls")
    max_attempts: int
    progress: float | None = Field(description="0 to 1 within this attempt; 1 only when it has succeeded")
    cancel_requested: bool
    created_at: str = Field(description="times are in UTC, as RFC 3339 writes them")
    started_at: str | None = Field(description="of the last attempt")
    finished_at: str | None
    expires_at: str | None = Field(description="when a job that is done is forgotten, and its result with it")
    correlation_id: str | None = Field(description="the trace of the request that submitted the job")
    links: Links
    result: Any = Field(None, description="only once the job has succeeded")
    error: Error | None = Field(None, description="only once the job has failed or is cancelled")


class PageDocument(BaseModel):
    """Some of the caller's own jobs, newest first."""

    model_config = ConfigDict(extra="forbid")
    jobs: list[JobDocument]
    next: str | None = Field(description="the address of the next page; null: this was the last")


class ContractDocument(BaseModel):
    """What this service promises."""

    model_config = ConfigDict(extra="forbid")
    contract: str
    flags: dict[str, bool]
    states: dict[str, dict[str, Any]]
    terminal: list[str]
    unknown_state: str
    kinds: list[str]
    idempotency_key: dict[str, Any]
    limits: dict[str, float]


class Answered(BaseModel):
    """A question, its answer in a word, and in a few more."""

    model_config = ConfigDict(extra="forbid")
    question: str
    answer: str = Field(description="for programs; UNKNOWN where the service can't know")
    says: str = Field(description="for people")


class Reached(BaseModel):
    """One stage of a job, and whether this one has reached it."""

    model_config = ConfigDict(extra="forbid")
    stage: Literal[*stage.NAMES]  # type: ignore[valid-type]
    reached: Literal["YES", "NO", "UNKNOWN", "-"] = Field(description="`-`: this service has no such stage")
    told_by: str = Field(description="which answer, or which line of the journal, tells it")
    proves: str
    does_not_prove: str


class Change(BaseModel):
    """One line of the journal."""

    model_config = ConfigDict(extra="forbid")
    at: str
    verb: str
    attempt: int | None
    accepted: bool
    refused_by: str | None = Field(description="the rule of the contract; null where it was accepted")
    state_before: State | None
    state_after: State | None


class TraceDocument(BaseModel):
    """Where a job is: what is known, what is not, what to do next."""

    model_config = ConfigDict(extra="forbid")
    id: str
    cause: str = Field(description=f"stable, for programs: {', '.join(cause.name for cause in CAUSES)}")
    verdict: Literal[*Verdict] = Field(description="WELL: to wait is enough")  # type: ignore[valid-type]
    means: str
    answers: list[Answered] = Field(description="the five questions, in their order")
    questions: list[Answered] = Field(description="reliably accepted? which step? final business result?")
    stages: list[Reached]
    again: str | None = Field(description="the id of the job that does it again")
    known: str
    not_known: str
    next: str = Field(description="what the caller does next")
    sentence: str = Field(description="the three above in one")
    journal: list[Change] = Field(description="each change of the job, and each refused one, oldest first")


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")
    type: str = Field(description="an address that explains the problem; stable, for programs")
    title: str
    status: int
    detail: str = Field(description="for people; it may change")


def of_job(job: Job) -> dict[str, Any]:
    """The status document; `result` only once the job has succeeded, `error` only once it is over without one."""
    told: dict[str, Any] = {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "progress": job.progress,
        "cancel_requested": bool(job.cancel_requested),
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "finished_at": moment(job.finished_at),
        "expires_at": moment(job.expires_at),
        "correlation_id": job.correlation_id,
        "links": links(job),
    }
    if job.state == State.SUCCEEDED:
        told["result"] = json.loads(job.result or "null")
    if job.state in (State.FAILED, State.CANCELLED):
        told["error"] = json.loads(job.error or "null")
    return told


def links(job: Job) -> dict[str, str]:
    address = f"/jobs/{job.id}"
    told = {"self": address}
    if not job.done:
        told["cancel"] = f"{address}/cancel"
    if job.state == State.SUCCEEDED:
        told["result"] = f"{address}/result"
    return told


def moment(seconds: float | None) -> str | None:
    """The time as RFC 3339 writes it, in UTC and always with microseconds, so that the texts sort like the times."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def of_page(jobs: list[Job], limit: int) -> dict[str, Any]:
    """A page of at most `limit` jobs; `jobs` has one more where there is a next page."""
    page = jobs[:limit]
    query = urlencode({"limit": limit, "before": f"{page[-1].created_at!r},{page[-1].id}"}) if page else ""
    return {"jobs": [of_job(job) for job in page], "next": f"/jobs?{query}" if len(jobs) > limit else None}


def of_trace(told: dict[str, Any]) -> dict[str, Any]:
    """The trace as `telling.document` tells it to an owner, with times as all answers have them."""
    return told | {"journal": [line | {"at": moment(line["at"])} for line in told["journal"]]}


def of_contract(store: Store) -> dict[str, Any]:
    settings = store.settings
    return {
        "contract": str(store.contract),
        "flags": {flag: getattr(store.contract, flag) for flag in FLAGS},
        "states": {
            state: {"means": meaning.says, "may_become": list(meaning.successors), "done": state in TERMINAL}
            for state, meaning in STATES.items()
        },
        "terminal": sorted(TERMINAL),
        "unknown_state": UNKNOWN_STATE,
        "kinds": list(store.kinds),
        "idempotency_key": {
            "characters": KEY_LENGTH,
            "scope": "owner",
            "lives": "until its job expires",
            "same_request": "same kind and same params; the order of names and white space do not matter",
        },
        "limits": {
            "lease_seconds": settings.lease_seconds,
            "max_attempts": settings.max_attempts,
            "retention_seconds": settings.retention_seconds,
            "expired_seconds": settings.expired_seconds,
            "queue_limit": settings.queue_limit,
            "body_bytes": settings.body_bytes,
        },
    }


def missing(contract: Contract) -> list[str]:
    """One line for each flag that is off: what this service does not promise."""
    whys = {flag: [rule.why for rule in RULES if rule.flag == flag] for flag in contract.off}
    return [f"without {flag}: nobody sees to it that {'; '.join(whys[flag])}" for flag in contract.off]


def description(store: Store) -> str:
    """The contract in words, as /openapi.json and /docs begin."""
    settings = store.settings
    lines = [
        "Submit a job, and follow it until `done`. 202 says that the job is kept, not that it went well; that every",
        "accepted job reaches a terminal state is this service's own promise, RFC 9110 makes none.",
        "",
        f"Clauses in force: {', '.join(store.contract.on) or 'none'}.",
        "",
        *[f"**{line[0].upper()}{line[1:]}.**\n" for line in missing(store.contract)],
        *[f"- {state}{' (done)' * (state in TERMINAL)}: {meaning.says}" for state, meaning in STATES.items()],
        "",
        f"{UNKNOWN_STATE.capitalize()}. A job that is done, and its result, is kept for {settings.retention_seconds:g}",
        f"seconds; its id is known to be expired for {settings.expired_seconds:g} more. An idempotency key lives until",
        "its job expires. `traceparent` is taken as the job's correlation id.",
    ]
    return "\n".join(lines)
