"""Does the store keep what is left of its promises under each of the 32 contracts?  Random walks over all verbs.

The walks also show that the CHECKs of the schema admit every row that a broken contract writes, and that the rule
named by `why` refuses if and only if nothing was written: the engine asserts it at each write.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from jobslab import Contract
from jobslab.errors import KeyReused
from jobslab.job import Event, Reply, queued
from jobslab.settings import Settings
from jobslab.stores import Store
from tests.stores.promises import PROMISES, Step, Watch, broken
from tests.stores.steps import BROKEN

QUICK = Settings(lease_seconds=10, retention_seconds=40, expired_seconds=30)
PASSES = [0, 0, 0, 1, 4, 10, 10, 50]  # units of time between two steps


class Walker(NamedTuple):
    store: Store
    rng: random.Random
    ids: list[str]  # of the jobs that it submitted
    claims: list[tuple[str, int, str]]  # that it was given: job, attempt, worker


def job(walker: Walker) -> str:
    """One of the last jobs, or one that is not there."""
    return walker.rng.choice(["job-0", *walker.ids[-3:]])


def claim(walker: Walker) -> tuple[str, int, str]:
    """One of the last claims, which may be stale, or one of a job that is not there."""
    return walker.rng.choice([("job-0", 1, "A"), *walker.claims[-4:]])


def submit(walker: Walker, now: float) -> Any:
    store, rng, ids, _ = walker
    params = {"seconds": rng.choice([0, 0, 0, 1])}
    owner, key = rng.choice(["ann", "bob"]), rng.choice([None, "k1", "k2"])
    times = {"max_attempts": rng.choice([1, 2, 3]), "run_at": now + rng.choice([0, 0, 5])}
    ids.append(f"job-{len(ids) + 1}")
    return store.submit(ids[-1], "wait", params, owner, key, **times, now=now)


def restart(walker: Walker, now: float) -> None:
    """Of the server, now and then.  Where it leaves nothing, ids begin anew, while reports of old claims still come."""
    if walker.rng.random() < 0.3:
        walker.store.restart()
        if not walker.store.contract.persistence:
            walker.ids.clear()


MOVES: dict[str, Callable[[Walker, float], Any]] = {
    "submit": submit,
    "claim": lambda walker, now: walker.store.claim(job(walker), "A", now=now),
    "claim_next": lambda walker, now: walker.store.claim_next("B", now=now),
    "renew": lambda walker, now: walker.store.renew(*claim(walker), now=now),
    "progress": lambda walker, now: walker.store.progress(*claim(walker), walker.rng.random(), now=now),
    "succeed": lambda walker, now: walker.store.succeed(*claim(walker), {"rows": 1}, now=now),
    "fail": lambda walker, now: walker.store.fail(*claim(walker), BROKEN, now=now),
    "retry": lambda walker, now: walker.store.retry(*claim(walker), BROKEN, walker.rng.choice([0, 5]), now=now),
    "stop": lambda walker, now: walker.store.stop(*claim(walker), now=now),
    "requeue": lambda walker, now: walker.store.requeue(*claim(walker)[:2], now=now),
    "exhaust": lambda walker, now: walker.store.exhaust(*claim(walker)[:2], now=now),
    "cancel": lambda walker, now: walker.store.cancel(job(walker), now=now),
    "purge": lambda walker, now: walker.store.purge(now=now),
    "restart": restart,
}


class Moved(NamedTuple):
    verb: str
    accepted: bool | None  # None: the verb has no such answer
    broken: list[str]  # promises


def walk(store: Store, seed: str, steps: int = 150, contract: Contract | None = None) -> Iterator[Moved]:
    """Make so many random moves; after each, what was broken of the promises of the contract (the store's own)."""
    walker, watch, now = Walker(store, random.Random(seed), [], []), Watch(store, contract), 0.0
    for _ in range(steps):
        now += walker.rng.choice(PASSES)
        verb, reply = walker.rng.choice(list(MOVES)), None
        with suppress(KeyReused):
            reply = MOVES[verb](walker, now)
        accepted = reply.accepted if isinstance(reply, Reply) else None
        if accepted is not None:
            assert (accepted, reply.state) == (reply.refused_by is None, store.events()[-1].state_after)
        if accepted and reply.job:
            walker.claims.append((reply.job.id, reply.job.attempt, "A"))
        if verb == "restart":
            watch = Watch(store, contract)  # the journal went with the jobs
        yield Moved(verb, accepted, watch.broken())


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_a_random_walk_breaks_no_promise_of_its_contract(open_it: Callable[..., Store], contract: Contract) -> None:
    store = open_it(contract, settings=QUICK)
    assert [moved for moved in walk(store, str(contract)) if moved.broken] == []


@pytest.mark.long
@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_nor_does_a_long_one(open_it: Callable[..., Store], contract: Contract) -> None:
    store = open_it(contract, settings=QUICK)
    assert [moved for moved in walk(store, f"long {contract}", 600) if moved.broken] == []


# claim_next finds what is due and is never refused; the others have no such answer.
NEVER = {("claim_next", False), *[(verb, yes) for verb in ("submit", "purge", "restart") for yes in (True, False)]}


def test_the_walks_see_every_verb_accepted_and_refused(open_it: Callable[..., Store]) -> None:
    seen = {(moved.verb, moved.accepted) for moved in walk(open_it(Contract(), settings=QUICK), "seen", 1000)}
    assert {(verb, accepted) for verb in MOVES for accepted in (True, False)} - seen == NEVER


@pytest.mark.parametrize("name", [name for name, promise in PROMISES.items() if promise.needs])
def test_without_its_flag_a_promise_is_broken(open_it: Callable[..., Store], name: str) -> None:
    store = open_it(Contract().without(PROMISES[name].needs), settings=QUICK)
    assert any(name in moved.broken for moved in walk(store, "broken", 2000, Contract()))


JOB = queued("job-1", "wait", "{}", "ann", None, "", 3, 0, None, None, 0)._replace(
    state="RUNNING", attempt=2, lease_until=10, progress=0.5
)
LINE = Event(1, 0, "job-1", "A", "renew", 2, 1, None, "RUNNING", "RUNNING", None)

# For each promise that no flag makes, a step that breaks it: the row after, and what the journal tells of it.
BREAKS = {
    "the attempt never falls": (JOB._replace(attempt=1), LINE),
    "a running job goes back to the queue by a requeue or a retry alone": (
        JOB._replace(state="QUEUED"),
        LINE._replace(state_after="QUEUED"),
    ),
    "a lease only moves forward": (JOB._replace(lease_until=9), LINE),
    "progress never falls within an attempt": (JOB._replace(progress=0.4), LINE),
    "the journal tells each change as it is": (JOB._replace(progress=0.6), LINE._replace(accepted=0, refused_by="-")),
    "a line is of an accepted write or names the rule": (JOB, LINE._replace(accepted=0)),
}


@pytest.mark.parametrize("name", [name for name, promise in PROMISES.items() if not promise.needs])
def test_a_promise_that_no_flag_makes_can_be_broken_too(name: str) -> None:
    after, line = BREAKS[name]
    assert broken(Step({"job-1": JOB}, {"job-1": after}, [line]), Contract()) == [name]
