"""Where is my job?  Five questions in their order, and one sentence: what is known, what is not, what to do next.

    does it exist?  did it enter execution?  where did it stop?  did the business result land?  can it recover?

`explain` is a pure function of what was seen.  What the store can't know is told as UNKNOWN: that is an answer too, and
says where to ask instead.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jobslab import stage
from jobslab.cause import BY_NAME, WRONG, Cause
from jobslab.effects import Entry
from jobslab.job import Event, Expired, Job, State
from jobslab.journal import is_birth
from jobslab.landing import Landed
from jobslab.seen import NO, NONE, UNKNOWN, YES, Seen, look
from jobslab.stores import Store


class Answer(NamedTuple):
    """A question, its answer in a word, and in a few more."""

    question: str
    answer: str
    says: str


class Where(NamedTuple):
    """Where one job is."""

    id: str
    job: Job | None
    cause: Cause
    answers: tuple[Answer, ...]  # the five questions
    three: tuple[Answer, ...]  # reliably accepted? which step? final business result?
    stages: tuple[Answer, ...]  # how far it has come, by `stage.STAGES`
    again: str | None  # the job that does it again
    known: str
    unknown: str
    next: str  # for the operator
    owner_next: str
    events: tuple[Event, ...]

    def sentence(self, owner: bool = False) -> str:
        """What is known, what is not, and what to do next."""
        return f"Known: {self.known}; not known: {self.unknown}; next: {self.owner_next if owner else self.next}."


def where(
    store: Store,
    id: str,
    results: Path | None = None,
    entries: Iterable[Entry] | None = None,
    *,
    asker: str | None = None,
    now: float | None = None,
) -> Where:
    """Where the job is.  `results` is the directory of the results' files, `entries` are the ledger's; None: not known.

    Raises StoreError.
    """
    return explain(look(store, id, results, entries, asker=asker, now=now))


# Explaining


def explain(seen: Seen) -> Where:
    """The answers to what was seen."""
    cause = BY_NAME[cause_of(seen)]
    slots = facts(seen)
    known, unknown, operator, owner = (
        text.format(**slots) for text in (cause.known, cause.unknown, cause.operator, cause.owner)
    )
    if is_followed(seen, cause):
        operator = owner = f"follow {seen.again}, which does it again"
    answers = (exists(seen), entered(seen), stopped(seen), landing_of(seen), recovers(seen))
    three = (accepted(seen), answers[2]._replace(question="which step?"), business_result(seen))
    return Where(
        seen.id,
        seen.job,
        cause,
        answers,
        three,
        tuple(reached(seen)),
        seen.again,
        known,
        unknown,
        operator,
        owner,
        seen.events,
    )


def is_followed(seen: Seen, cause: Cause) -> bool:
    """Is it over, in a way that is wrong, and done again by another job?"""
    ours = cause.verdict == WRONG and cause.name != "another-owners"
    return seen.again is not None and seen.job is not None and seen.job.done and ours


def cause_of(seen: Seen) -> str:
    """The name of what is the matter, in this order: is it there, can it be trusted, and how does it stand?"""
    job = seen.job
    owner = seen.found.owner if seen.found else None
    if seen.asker is not None and owner not in (None, seen.asker):
        return "another-owners"
    if job is None:
        return "expired" if seen.found else absent(seen)
    if seen.complaints:
        return "journal"
    by_state = {State.QUEUED: queued, State.RUNNING: running, State.SUCCEEDED: succeeded, State.FAILED: failed}
    return by_state[State(job.state)](job, seen) if job.state in by_state else over(seen, "cancelled")


def absent(seen: Seen) -> str:
    """There is no row: was there one?  A purge says in the journal that it takes one."""
    if not seen.events:
        return "never-was"
    return "expired" if seen.events[-1].verb == "purge" else "lost"


def queued(job: Job, seen: Seen) -> str:
    if is_error(job, "unknown kind"):
        return "no-task"
    if job.run_at > seen.now:
        far = job.attempt and job.run_at - seen.now > seen.settings.retry_cap_seconds
        return "far-future" if far else "backing-off"
    if seen.confirmed == NO:
        return "unpublished"
    return "no-worker" if seen.now - heard(job, seen) > seen.settings.lease_seconds else "waiting"


def heard(job: Job, seen: Seen) -> float:
    """Since when no worker has said a word, and the job is in line and due: one at work renews at a third of its
    lease."""
    return max(job.run_at, job.updated_at, seen.last_word or 0)


def running(job: Job, seen: Seen) -> str:
    if job.lease_until is not None and job.lease_until > seen.now:
        return "working"
    if is_landed(seen, Landed.UNREPORTED) and not job.cancel_requested:
        return "unreported"
    return "lease-over" if seen.contract.leases else "no-lease"


def succeeded(job: Job, seen: Seen) -> str:
    told = seen.landing
    if told is None or told.landed is Landed.UNKNOWN:
        return "result-unknown"
    gone = "no-entry" if told.name is None else "result-gone"
    return {Landed.ABSENT: gone, Landed.DAMAGED: "result-damaged"}.get(told.landed, "landed")


def failed(job: Job, seen: Seen) -> str:
    if is_error(job, "gave up"):
        return over(seen, "gave-up")
    return over(seen, "no-task" if is_error(job, "unknown kind") else "failed")


def over(seen: Seen, otherwise: str) -> str:
    """Over without a result, by the row; is there one all the same?"""
    return "unreported" if is_landed(seen, Landed.UNREPORTED) else otherwise


def is_landed(seen: Seen, landed: Landed) -> bool:
    return seen.landing is not None and seen.landing.landed is landed


def is_error(job: Job, type: str) -> bool:
    return bool(error(job).get("type") == type)


def error(job: Job) -> dict[str, Any]:
    """The row's error; empty where there is none, or none that can be read."""
    try:
        told = json.loads(job.error or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


# The five questions


def exists(seen: Seen) -> Answer:
    question = "does it exist?"
    if seen.job:
        return Answer(question, YES, f"registered {when(seen.now - seen.job.created_at)}, by {seen.job.owner}")
    if seen.found:
        return Answer(question, "EXPIRED", f"it was {seen.found.owner}'s; its retention is over")
    says = {"never-was": "there is no row, and no line of the journal", "lost": "the journal knows it; its row is gone"}
    return Answer(question, NO, says.get(absent(seen), "it expired, and its row was purged"))


def entered(seen: Seen) -> Answer:
    question = "did it enter execution?"
    job, claims = seen.job, [event for event in seen.events if event.verb == "claim" and event.accepted]
    by_journal = (claims[-1].attempt or 0) if claims else 0
    if job and bool(by_journal) != bool(job.attempt) and seen.complaints:
        return Answer(question, UNKNOWN, f"the row is at attempt {job.attempt}, and the journal at {by_journal}")
    if attempt := job.attempt if job else by_journal:
        of = f" of {job.max_attempts}" if job else ""
        return Answer(question, YES, f"attempt {attempt}{of} began{began(seen, claims)}")
    if job is None and not seen.events:
        return Answer(question, UNKNOWN, "nothing here tells of it")
    return Answer(question, NO, "no worker has claimed it")


def began(seen: Seen, claims: list[Event]) -> str:
    at = seen.job.started_at if seen.job else claims[-1].at
    return "" if at is None else f" {when(seen.now - at)}"


def stopped(seen: Seen) -> Answer:
    """The stage that it is at, and the journal's last line."""
    question = "where did it stop?"
    if seen.complaints:
        return Answer(question, UNKNOWN, f"the journal and the row do not agree: {seen.complaints[0]}")
    if not seen.found and not seen.events:
        return Answer(question, UNKNOWN, "nothing here tells of it")
    return Answer(question, stage_of(seen), last_word(seen))


def stage_of(seen: Seen) -> str:
    """The stage at which the row is, or was by the journal's last word of it."""
    states = [event.state_after for event in seen.events if event.state_after]
    state = seen.job.state if seen.job else states[-1] if states else None
    if state == State.QUEUED:
        return "registered" if seen.confirmed == NO else "queued"
    if state == State.RUNNING:
        return "running"
    return "landed" if state == State.SUCCEEDED and is_landed(seen, Landed.LANDED) else "done"


def last_word(seen: Seen) -> str:
    """A repeated submit is the caller's word, and finds the job where it is."""
    steps = [event for event in seen.events if event.verb != "submit" or is_birth(event)]
    if not steps:
        return "the journal has no line of it any more"
    event = steps[-1]
    told = f"refused by {event.refused_by}" if event.refused_by else "accepted"
    attempt = f" of attempt {event.attempt}" if event.attempt else ""
    return f"the last word is {event.verb}{attempt}, {told}, {when(seen.now - event.at)}"


def landing_of(seen: Seen) -> Answer:
    question = "did the business result land?"
    if seen.landing:
        return Answer(question, seen.landing.landed, seen.landing.says)
    if seen.found:
        return Answer(question, UNKNOWN, "a result goes when its job expires")
    return Answer(question, UNKNOWN, "without its row nobody knows what was promised")


def recovers(seen: Seen) -> Answer:
    question = "can it recover?"
    job = seen.job
    if job is None:
        return Answer(question, NO, "there is nothing here to recover; a new job has to be submitted")
    left = job.max_attempts - job.attempt
    if job.state == State.QUEUED:
        return Answer(question, YES, f"a worker that asks in time gets it; {left} of {job.max_attempts} attempts left")
    if job.state == State.RUNNING:
        return Answer(question, *recovers_running(seen, job, left))
    if job.state == State.SUCCEEDED and is_landed(seen, Landed.LANDED):
        return Answer(question, NONE, "there is nothing to recover")
    again = f"{seen.again} does it again" if seen.again else "what is needed again is run as a new job"
    return Answer(question, NO, f"{job.state} is terminal; {again}")


def recovers_running(seen: Seen, job: Job, left: int) -> tuple[str, str]:
    if not seen.contract.leases:
        return NO, "without leases nobody takes it from a worker that is dead"
    if left <= 0:
        return NO, "this was the last attempt: if the worker is dead, a sweep makes it FAILED, a dead letter"
    good = (job.lease_until or 0) - seen.now
    when = f"in {ago(good)}, when its lease is over," if good > 0 else "now"
    return YES, f"a sweep {when} gives it back to the queue; {left} of {job.max_attempts} attempts left"


# The three questions


def accepted(seen: Seen) -> Answer:
    question = "reliably accepted?"
    if not seen.contract.persistence:
        there = "it is there, and" if seen.job else "it is not there;"
        return Answer(question, NO if seen.job else UNKNOWN, f"{there} this store forgets all jobs with its server")
    if seen.found:
        return Answer(question, YES, "its row was committed")
    answer, says = ACCEPTED[absent(seen)]
    return Answer(question, answer, says)


ACCEPTED = {
    "never-was": (UNKNOWN, "nothing of this id is here: it was never kept, or was over and is forgotten"),
    "lost": (NO, "it was accepted, and it was not kept"),
    "expired": (YES, "it was kept, for as long as was promised"),
}


def business_result(seen: Seen) -> Answer:
    question = "final business result?"
    if seen.landing is None:
        return Answer(question, UNKNOWN, landing_of(seen).says)
    if seen.landing.landed is Landed.NOT_DUE:
        done = seen.job is not None and seen.job.done
        return Answer(question, "NONE" if done else "NOT YET", seen.landing.says)
    return Answer(question, seen.landing.landed, seen.landing.says)


# The stages


def reached(seen: Seen) -> Iterable[Answer]:
    """For each stage whether it was reached, and what tells so."""
    known = {"validated": was(seen), "registered": was(seen), "confirmed by the broker": seen.confirmed}
    known["queued"] = was(seen)
    known["running"] = entered(seen).answer
    known["done"] = done(seen)
    known["landed"] = in_hand(seen)
    for one in stage.STAGES:
        says = "no broker: workers ask the table" if known[one.name] == NONE else one.told_by
        yield Answer(one.name, known[one.name], says)


def was(seen: Seen) -> str:
    """Was there ever such a job?"""
    return YES if seen.found or seen.events else UNKNOWN


def done(seen: Seen) -> str:
    if seen.complaints:
        return UNKNOWN
    if seen.job:
        return YES if seen.job.done else NO
    if seen.found or (seen.events and seen.events[-1].verb == "purge"):
        return YES
    return UNKNOWN


def in_hand(seen: Seen) -> str:
    """Is a result there, whatever the row says of it?"""
    if seen.landing is None or seen.landing.landed is Landed.UNKNOWN:
        return UNKNOWN
    return YES if seen.landing.landed in (Landed.LANDED, Landed.UNREPORTED) else NO


# The facts that the sentences are made of


def facts(seen: Seen) -> dict[str, Any]:
    """What fills the slots of `cause.CAUSES`."""
    told = {"id": seen.id, "asker": seen.asker, "landing": seen.landing.says if seen.landing else "nothing is known"}
    told |= {"complaint": next(iter(seen.complaints), ""), "cap": ago(seen.settings.retry_cap_seconds)}
    told |= {"born": ago(seen.now - seen.events[0].at) if seen.events else "", "forgotten": forgotten(seen)}
    if not seen.job:
        return told | expired_facts(seen)
    return told | job_facts(seen, seen.job)


def forgotten(seen: Seen) -> str:
    """What may have been all the same, when nothing tells of it."""
    if not seen.contract.persistence:
        return "whether it was there before a restart: this store forgets all jobs with its server"
    return f"whether it was over and forgotten: that takes {ago(seen.settings.expired_seconds)} after it has expired"


def expired_facts(seen: Seen) -> dict[str, Any]:
    at = seen.found.expired_at if isinstance(seen.found, Expired) else seen.events[-1].at if seen.events else seen.now
    states = [event.state_after for event in seen.events if event.state_after]
    was = f"it was {states[-1]}" if states else "the journal does not tell any more how it ended"
    return {"expired": ago(seen.now - at), "was": was}


def job_facts(seen: Seen, job: Job) -> dict[str, Any]:
    ahead = f"{seen.ahead} {'job' if seen.ahead == 1 else 'jobs'}"
    told = error(job)
    moments = {"due": job.run_at, "over": job.lease_until, "started": job.started_at, "silent": job.updated_at}
    told_ago = {name: "" if at is None else ago(seen.now - at) for name, at in moments.items()}
    ahead_of = {"until": job.run_at, "lease": job.lease_until or seen.now, "expires": job.expires_at or seen.now}
    told_until = {name: ago(at - seen.now) for name, at in ahead_of.items()}
    return {
        **told_ago,
        **told_until,
        "expires": f"{told_until['expires']} have passed",
        "state": job.state,
        "kind": job.kind,
        "attempt": job.attempt,
        "max": job.max_attempts,
        "ahead": ahead,
        "quiet": ago(seen.now - heard(job, seen)),
        "born": ago(seen.now - job.created_at),
        "last_error": f"its error: {told.get('message')}" if told else "it has no error",
    }


def ago(seconds: float) -> str:
    """A duration for people, in the unit that fits."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def when(seconds: float) -> str:
    """How long ago that is; a clock that was wrong has written of times to come."""
    return f"{ago(seconds)} ago" if seconds >= 0 else f"{ago(-seconds)} from now"
