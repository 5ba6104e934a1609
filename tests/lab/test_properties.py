"""Does each promise say yes to what keeps it and no to what breaks it, and does each flag answer for its own?"""

from collections.abc import Callable

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.job import Job, Reply, queued
from jobslab.lab import checker, properties
from jobslab.lab.explore import explore
from jobslab.lab.memo import Fact
from jobslab.lab.properties import FACTS, NAMES, SOMETIMES, says_what_it_knows
from jobslab.lab.world import Bounds, Said

QUEUED = queued("job-1", "export", "{}", "lab", "k1", "f", 2, 0, None, None, 0)
RUNNING = QUEUED._replace(state="RUNNING", attempt=1, lease_until=1)
OVERDUE = RUNNING._replace(lease_until=0)
SUCCEEDED = RUNNING._replace(state="SUCCEEDED")
CANCELLED = QUEUED._replace(state="CANCELLED", cancel_requested=1)
ASKED = RUNNING._replace(cancel_requested=1)
ANOTHER = QUEUED._replace(id="job-2")


def fact(verb: str, before: list[Job], after: list[Job], accepted: bool = True, **arguments: object) -> Fact:
    """A fact about one job: what was asked, and what it was before and after."""
    reply = Reply(accepted, None if accepted else "unfinished", None, None, False)
    return Fact(tuple(before), verb, (("id", "job-1"), *arguments.items()), reply, (), tuple(after), False)


# Of each promise: a fact that keeps it by a hair, and one that breaks it.
EXAMPLES: dict[str, tuple[Fact, Fact]] = {
    properties.ONE_JOB: (
        fact("submit", [QUEUED], [QUEUED, ANOTHER._replace(idempotency_key="k2")]),
        fact("submit", [QUEUED], [QUEUED, ANOTHER]),
    ),
    properties.FINAL: (
        fact("succeed", [SUCCEEDED], [SUCCEEDED], accepted=False, attempt=1),
        fact("succeed", [SUCCEEDED], [SUCCEEDED], attempt=1),
    ),
    properties.SWEEP: (
        fact("requeue", [OVERDUE], [QUEUED], attempt=1),
        fact("requeue", [RUNNING], [QUEUED], attempt=1),
    ),
    properties.CURRENT: (
        fact("renew", [RUNNING], [RUNNING], attempt=1),
        fact("renew", [RUNNING._replace(attempt=2)], [RUNNING._replace(attempt=2)], attempt=1),
    ),
    properties.PROGRESS: (
        fact("progress", [SUCCEEDED], [SUCCEEDED], accepted=False, attempt=1),
        fact("progress", [SUCCEEDED], [RUNNING], attempt=1),
    ),
    properties.CANCELLED: (
        fact("claim", [CANCELLED], [CANCELLED], accepted=False),
        fact("claim", [CANCELLED], [RUNNING]),
    ),
    properties.ASKED: (
        fact("claim", [ASKED], [ASKED], accepted=False),
        fact("claim", [ASKED], [ASKED._replace(attempt=2)]),
    ),
    properties.CEILING: (
        fact("claim", [QUEUED._replace(attempt=1)], [RUNNING._replace(attempt=2)]),
        fact("claim", [QUEUED._replace(attempt=2)], [RUNNING._replace(attempt=3)]),
    ),
}


@pytest.mark.parametrize("promise", [each for each in FACTS if each.kind == "always"], ids=lambda each: each.name)
def test_a_promise_tells_what_keeps_it_from_what_breaks_it(promise: properties.Promise) -> None:
    keeps, breaks = EXAMPLES[promise.name]
    assert promise.test(keeps)
    assert not promise.test(breaks)


POSSIBLE: dict[str, tuple[Fact, Fact]] = {
    properties.TWICE: (fact("claim", [QUEUED], [RUNNING]), fact("claim", [QUEUED], [RUNNING._replace(attempt=2)])),
    "a later attempt succeeds": (
        fact("succeed", [RUNNING], [SUCCEEDED]),
        fact("succeed", [RUNNING._replace(attempt=2)], [SUCCEEDED._replace(attempt=2)]),
    ),
    "a job is given up": (
        fact("requeue", [OVERDUE], [QUEUED]),
        fact("exhaust", [OVERDUE], [RUNNING._replace(state="FAILED")]),
    ),
    "a job is stopped": (fact("stop", [ASKED], [ASKED], accepted=False), fact("stop", [ASKED], [CANCELLED])),
}


@pytest.mark.parametrize("promise", [each for each in FACTS if each.kind == "sometimes"], ids=lambda each: each.name)
def test_a_possibility_is_seen_where_it_is_and_only_there(promise: properties.Promise) -> None:
    not_yet, seen = POSSIBLE[promise.name]
    assert not promise.test(not_yet)
    assert promise.test(seen)


@pytest.mark.parametrize(
    ("said", "honest"),
    [
        (Said(True, "RUNNING", "UNKNOWN"), True),
        (Said(True, "RUNNING", "FAILED"), False),
        (Said(True, None, "UNKNOWN"), True),
        (Said(True, None, None), False),
        (Said(False, "SUCCEEDED", "SUCCEEDED"), True),
        (Said(False, "SUCCEEDED", "FAILED"), False),
        (Said(False, None, "UNKNOWN"), True),
    ],
)
def test_a_client_may_say_what_it_knows_and_no_more(said: Said, honest: bool) -> None:
    assert says_what_it_knows(said) is honest


def test_every_promise_has_a_sentence_and_a_name_of_its_own() -> None:
    assert len(set(NAMES + SOMETIMES)) == len(NAMES + SOMETIMES)
    assert all(promise.sentence.endswith(".") for promise in FACTS)


# What each flag answers for

OWN = {
    "idempotency_key": {properties.ONE_JOB: 2},
    "persistence": {properties.KEPT: 2},
    "leases": {properties.ENDS: 4},
    "conditional_updates": {
        properties.LIVE: 5,
        properties.FINAL: 4,
        properties.SWEEP: 7,
        properties.PROGRESS: 5,
        properties.CANCELLED: 4,
        properties.ASKED: 4,
        properties.CEILING: 8,
    },
    "attempt_fencing": {properties.CURRENT: 8, properties.LIVE: 9},
}


def test_the_full_contract_breaks_nothing_and_everything_that_is_possible_happens() -> None:
    found = explore()
    assert found.exhausted
    assert {name: found.findings[name].answer for name in NAMES} == dict.fromkeys(NAMES, checker.HOLDS)
    assert {name: found.findings[name].answer for name in SOMETIMES} == dict.fromkeys(SOMETIMES, checker.REACHED)


@pytest.mark.parametrize("flag", FLAGS)
def test_without_a_flag_its_own_promises_break_and_no_others(flag: str) -> None:
    found = explore(Contract().without(flag))
    assert found.exhausted
    assert {name: len(one.trace) for name, one in found.broken.items()} == OWN[flag]


def test_a_job_may_run_twice_under_the_full_contract() -> None:
    found = explore().findings[properties.TWICE]
    assert found.schedule.splitlines() == [
        "client submits key=k1",
        "A picks",
        "B picks",
        "A claims",
        "A retries",
        "B claims",
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("bounds", "states", "steps"),
    [
        (Bounds(jobs=2, faults=3), 107315, 1295026),
        (Bounds(sends=3, workers=3, faults=2, cancels=2, attempts=3), 3165, 32433),
    ],
    ids=["two jobs, three faults", "three of each"],
)
def test_the_full_contract_keeps_its_promises_in_larger_worlds(bounds: Bounds, states: int, steps: int) -> None:
    found = explore(bounds=bounds)
    assert found.exhausted
    assert {name: found.findings[name].answer for name in NAMES} == dict.fromkeys(NAMES, checker.HOLDS)
    assert {name: found.findings[name].answer for name in SOMETIMES} == dict.fromkeys(SOMETIMES, checker.REACHED)
    assert (found.states, found.steps) == (states, steps)


def test_no_promise_holds_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is broken under some contract (see OWN), but for the client's own; and that by a client that lies."""
    broken = {name for own in OWN.values() for name in own}
    assert set(NAMES) - broken == {properties.DEADLINE}
    told = lies(lambda last, deadline_over=False: "FAILED" if deadline_over else None, monkeypatch)
    assert told.findings[properties.DEADLINE].answer == checker.BROKEN


def lies(verdict: Callable[..., str | None], monkeypatch: pytest.MonkeyPatch):
    """The full contract with a client that says this."""
    from jobslab.client import Outcome
    from jobslab.lab import world

    def outcome(last, deadline_over=False):
        said = verdict(last, deadline_over)
        return None if said is None else Outcome(said)

    monkeypatch.setattr(world, "outcome", outcome)
    return explore(names=[properties.DEADLINE])
