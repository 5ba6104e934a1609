"""Would the explorer notice?  One clause is dropped or spoilt at a time, and a promise has to break.

A mutant is caught if a promise breaks that held (under the full contract, or without one flag), if something possible
is no longer reached, or if the store or the memo itself protests.  Those that survive are named, with the reason.
"""

import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest

from jobslab import contract as contracts
from jobslab import sweeper as sweeping
from jobslab import worker as working
from jobslab.client import Outcome
from jobslab.contract import Contract
from jobslab.errors import StoreError
from jobslab.job import TERMINAL
from jobslab.lab import checker, world
from jobslab.lab.checker import BROKEN, HOLDS, NEVER_REACHED, REACHED
from jobslab.lab.explore import explore
from jobslab.lab.properties import properties
from jobslab.lab.world import Bounds
from jobslab.settings import LAB
from jobslab.stores import open_store
from jobslab.worker import News
from tests.lab.worlds import worlds

Patch = Callable[[pytest.MonkeyPatch], None]


class Mutant(NamedTuple):
    """In the SQL it is tried under several contracts.  In the code it is tried under the full one, and every state is
    looked at: which are alike, is known of actors that do as they should."""

    name: str
    patch: Patch | None = None
    rules: dict[str, str] | None = None  # predicates instead of the contract's
    in_code: bool = False

    def __str__(self) -> str:
        return self.name


def rule(slot: str, predicate: str) -> Mutant:
    return Mutant(f"{slot}: {predicate}", rules={slot: predicate})


def statement(verb: str, old: str, new: str) -> Mutant:
    """The statement with one piece of its text replaced; `why` is derived from the same text."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        text = contracts.STATEMENTS[verb]
        assert old in text, f"{old!r} is not in {verb}"
        monkeypatch.setitem(contracts.STATEMENTS, verb, text.replace(old, new))

    return Mutant(f"{verb}: {' '.join(old.split())} -> {' '.join(new.split()) or 'nothing'}", patch)


def code(name: str, module: object, attribute: str, spoil: Callable[[Callable], Callable]) -> Mutant:
    """A function of the package, spoilt."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, attribute, spoil(getattr(module, attribute)))

    return Mutant(f"{attribute}: {name}", patch, in_code=True)


REQUEUED = "state = CASE WHEN cancel_requested = 1 THEN 'CANCELLED' ELSE 'QUEUED' END"

STATEMENTS = [
    statement("claim", "attempt = attempt + 1", "attempt = CASE WHEN attempt = 0 THEN 1 ELSE attempt END"),
    statement("claim", "attempt = attempt + 1", "attempt = attempt + 2"),
    statement("claim", "lease_until = :now + :lease_seconds", "lease_until = :now"),
    statement("claim", "state = 'RUNNING'", "state = state"),
    statement("renew", "lease_until = :now + :lease_seconds", "lease_until = lease_until"),
    statement("renew", "\n   AND {current}", ""),
    statement("renew", "\n   AND {unfinished}", ""),
    statement("progress", "state = 'RUNNING'", "state = 'QUEUED'"),
    statement("progress", "\n   AND {current}", ""),
    statement("progress", "\n   AND {unfinished}", ""),
    statement("succeed", "state = 'SUCCEEDED'", "state = 'RUNNING'"),
    statement("succeed", "\n   AND {current}", ""),
    statement("succeed", "\n   AND {unfinished}", ""),
    statement("fail", "state = 'FAILED'", "state = 'QUEUED'"),
    statement("retry", "\n   AND {attempts_left}", ""),
    statement("retry", "\n   AND {current}", ""),
    statement("retry", REQUEUED, "state = 'QUEUED'"),
    statement("stop", "state = 'CANCELLED'", "state = 'QUEUED'"),
    statement("stuck", "\n   AND {expired}", ""),
    statement("stuck", "state = 'RUNNING'", "state = 'QUEUED'"),
    statement("requeue", REQUEUED, "state = 'QUEUED'"),
    statement("requeue", "\n   AND {still_expired}", ""),
    statement("requeue", "\n   AND {attempts_left}", ""),
    statement("requeue", "\n   AND {current}", ""),
    statement("requeue", "updated_at = :now", "updated_at = :now, attempt = 0"),
    statement("exhaust", "state = 'FAILED'", "state = 'QUEUED'"),
    statement("exhaust", "\n   AND {still_expired}", ""),
    statement("cancel", "state = 'CANCELLED'", "state = 'QUEUED'"),
    statement("ask_to_stop", "\n   AND state = 'RUNNING'", ""),
    statement("ask_to_stop", "cancel_requested = 1", "cancel_requested = 0"),
    statement("restart", "DELETE FROM jobs WHERE NOT {survives}", "DELETE FROM jobs WHERE state = 'RUNNING'"),
    statement("submit", "ON CONFLICT (owner, idempotency_key) WHERE {deduplicated} DO NOTHING", ""),
]

RULES = [
    rule("deduplicated", "state = 'QUEUED'"),
    rule("expired", "TRUE"),
    rule("claimable", "state IN ('QUEUED', 'FAILED')"),
    rule("claimable", "state IN ('QUEUED', 'RUNNING')"),
    rule("attempts_left", "attempt <= max_attempts"),
    rule("attempts_left", "FALSE"),
    rule("still_claimable", "TRUE"),
    rule("still_claimable", "state <> 'RUNNING'"),
    rule("still_expired", "state = 'RUNNING'"),
    rule("still_expired", "lease_until <= :now"),
    rule("unfinished", "state <> 'FAILED'"),
    rule("unfinished", "state IN ('QUEUED', 'RUNNING')"),
    rule("cancellable", "state <> 'SUCCEEDED'"),
    rule("current", "attempt >= :attempt"),
    rule("current", "attempt <= :attempt"),
]


def takes_what_was_refused(claimed: Callable) -> Callable:
    def spoilt(worker, reply):
        taken = claimed(worker, reply)
        if reply is None or taken.working or not reply.attempt:
            return taken
        return taken._replace(job_id=worker.picked, attempt=reply.attempt)

    return spoilt


def reports_as_the_first_attempt(decide: Callable) -> Callable:
    return lambda worker: decide(worker._replace(attempt=worker.attempt and 1))


def never_hears_that_it_should_stop(reported: Callable) -> Callable:
    return lambda worker, request, reply: reported(worker, request, reply)._replace(asked_to_stop=False)


def renews_instead(tell: Callable) -> Callable:
    return lambda worker, news: tell(worker, News("renew") if news.verb == "succeed" else news)


def goes_on_when_refused(reported: Callable) -> Callable:
    def spoilt(worker, request, reply):
        return reported(worker, request, reply) if reply.accepted else worker._replace(news=None)

    return spoilt


def says_nothing_when_no_attempt_is_left(reported: Callable) -> Callable:
    def spoilt(worker, request, reply):
        after = reported(worker, request, reply)
        return working.idle(worker) if reply.refused_by == "attempts_left" else after

    return spoilt


def the_other_way_round(decide: Callable) -> Callable:
    def spoilt(sweeper):
        write = decide(sweeper)
        return write and write._replace(verb={"requeue": "exhaust", "exhaust": "requeue"}[write.verb])

    return spoilt


def over_unless_running(outcome: Callable) -> Callable:
    def spoilt(last, deadline_over=False):
        state = last.body["state"] if last and last.body else None
        if state and state not in ("RUNNING", *TERMINAL):
            return Outcome("SUCCEEDED")
        return outcome(last, deadline_over)

    return spoilt


CODE = [
    code("takes what was refused", working, "claimed", takes_what_was_refused),
    code("reports as the first attempt", working, "decide", reports_as_the_first_attempt),
    code("never hears that it should stop", working, "reported", never_hears_that_it_should_stop),
    code("renews instead of succeeding", working, "tell", renews_instead),
    code("goes on when it was refused", working, "reported", goes_on_when_refused),
    code("says nothing when no attempt is left", working, "reported", says_nothing_when_no_attempt_is_left),
    code("requeues and gives up the other way round", sweeping, "decide", the_other_way_round),
    code("sees nothing", sweeping, "look", lambda look: lambda store, sweeper, now=None: sweeper),
    code(
        "FAILED at the deadline", world, "outcome", lambda outcome: lambda last, deadline_over=False: Outcome("FAILED")
    ),
    code("not RUNNING means over", world, "outcome", over_unless_running),
]

MUTANTS = [*STATEMENTS, *RULES, *CODE]

SURVIVORS = {
    "stuck: AND {expired} -> nothing": "A sweeper that sees too much still writes by what it expects to find.",
    "requeue: AND {current} -> nothing": "The lease of the row is over, whichever attempt the sweeper saw.",
    "current: attempt <= :attempt": "No report names an attempt that was not claimed yet: here <= is =.",
    "reported: goes on when it was refused": "It works for nothing: whatever it reports is refused again.",
    "reported: says nothing when no attempt is left": "The lease runs out, and the sweeper says it.",
}

UNDER = [Contract(), *(Contract().without(flag) for flag in ("attempt_fencing", "leases", "conditional_updates"))]
BOUNDS = Bounds(late=("progress", "succeed"), attempts=3)
WORSE = {HOLDS: BROKEN, REACHED: NEVER_REACHED}


def answers(contract: Contract, mutant: Mutant) -> dict[str, str]:
    if not mutant.in_code:
        found = explore(contract, BOUNDS, rules=mutant.rules, limit=20_000)
        return {name: one.answer for name, one in found.findings.items()}
    with open_store(contract, settings=LAB) as store:
        world, system = worlds(store, Bounds(sweepers=1), alike=False)
        result = checker.check(system, properties(world), limit=50_000)
        return {name: one.answer for name, one in result.verdicts.items()}


unspoilt = cache(answers)
NOTHING = Mutant("nothing")


def complaints(mutant: Mutant) -> Iterator[str]:
    """What is found wrong, under one contract after the other."""
    for contract in UNDER[:1] if mutant.in_code else UNDER:
        try:
            found = answers(contract, mutant)
        except (AssertionError, StoreError, sqlite3.IntegrityError) as wrong:
            yield f"{type(wrong).__name__}: {wrong}"
            return
        for name, was in unspoilt(contract, NOTHING).items():
            if found[name] == WORSE.get(was):
                yield f"{name}: {found[name]}"


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_spoilt_clause_is_noticed_or_argued_to_be_harmless(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    for contract in UNDER:
        unspoilt(contract, NOTHING)
    if mutant.patch:
        mutant.patch(monkeypatch)
    first = next(complaints(mutant), None)
    assert (first is None) == (mutant.name in SURVIVORS), first or "nothing was noticed"


def test_at_least_nine_in_ten_mutants_are_caught_and_each_survivor_is_one_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
    assert set(SURVIVORS) <= {mutant.name for mutant in MUTANTS}
    assert len(SURVIVORS) * 10 <= len(MUTANTS)


@pytest.mark.long
def test_the_engine_as_it_is_gives_nothing_to_complain_of() -> None:
    assert list(complaints(NOTHING)) == []
    assert list(complaints(Mutant("nothing", in_code=True))) == []
    assert set(unspoilt(Contract(), NOTHING).values()) == {HOLDS, REACHED}
