"""What is promised?  Each promise has a name, a sentence, and a test of what the store does.

Most are judged by facts: what a row was, what was asked, what it is now.  A look at the states alone would miss what a
step does: a finished job that runs again looks like any running job.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Literal, NamedTuple

from jobslab.client import UNKNOWN
from jobslab.job import REPORTS, Job
from jobslab.lab import checker
from jobslab.lab.checker import Property
from jobslab.lab.memo import Fact
from jobslab.lab.world import Claim, Said, State, World


class Promise(NamedTuple):
    """A promise that is judged by one fact at a time."""

    kind: Literal["always", "sometimes"]
    name: str
    sentence: str
    test: Callable[[Fact], bool]


# Tests of one fact


def landed(fact: Fact) -> bool:
    return bool(getattr(fact.answer, "accepted", False))


def changed(fact: Fact) -> list[tuple[Job, Job]]:
    """The rows that were there before and are there after."""
    after = {job.id: job for job in fact.after}
    return [(job, after[job.id]) for job in fact.before if job.id in after]


def one_job_per_intent(fact: Fact) -> bool:
    intents = [(job.owner, job.idempotency_key) for job in fact.after]
    return len(intents) == len(set(intents))


def terminal_is_final(fact: Fact) -> bool:
    return not any(before.done and (landed(fact) or before != after) for before, after in changed(fact))


def sweep_undoes_nothing(fact: Fact) -> bool:
    stuck = all(job.state == "RUNNING" and (job.lease_until or 0) <= 0 for job in fact.before)
    return stuck or not (fact.verb in ("requeue", "exhaust") and landed(fact))


def only_the_current_attempt(fact: Fact) -> bool:
    current = all(job.attempt == fact.argument("attempt") for job in fact.before)
    return current or not (fact.verb in REPORTS and landed(fact))


def no_progress_when_over(fact: Fact) -> bool:
    return not (fact.verb == "progress" and landed(fact) and any(job.done for job in fact.before))


def cancelled_never_runs(fact: Fact) -> bool:
    return not any((before.state, after.state) == ("CANCELLED", "RUNNING") for before, after in changed(fact))


def asked_to_stop_is_not_started(fact: Fact) -> bool:
    return not (fact.verb == "claim" and landed(fact) and any(job.cancel_requested for job in fact.before))


def attempts_have_a_ceiling(fact: Fact) -> bool:
    return all(job.attempt <= job.max_attempts for job in fact.after)


def runs_again(fact: Fact) -> bool:
    return fact.verb == "claim" and landed(fact) and any(job.attempt > 1 for job in fact.after)


def lands_as(fact: Fact, verb: str, state: str) -> bool:
    return fact.verb == verb and landed(fact) and all(job.state == state for job in fact.after)


def succeeds_later(fact: Fact) -> bool:
    return lands_as(fact, "succeed", "SUCCEEDED") and any(job.attempt > 1 for job in fact.before)


def given_up(fact: Fact) -> bool:
    return lands_as(fact, "exhaust", "FAILED")


def stops(fact: Fact) -> bool:
    return lands_as(fact, "stop", "CANCELLED")


ONE_JOB = "one job per intent"
KEPT = "an accepted job is kept"
ENDS = "every accepted job reaches a terminal state"
FINAL = "a terminal state is final"
LIVE = "one live claim per job"
SWEEP = "a sweep undoes no report"
CURRENT = "only the current attempt's report counts"
PROGRESS = "no progress report lands on a terminal row"
CANCELLED = "a cancelled queued job never runs"
ASKED = "a job asked to stop is not started again"
CEILING = "attempts never exceed the maximum"
DEADLINE = "a client that stops at its deadline says UNKNOWN"
TWICE = "a job may run twice"
LATER = "a later attempt succeeds"

FACTS = (
    Promise("always", ONE_JOB, "However often a submit is sent, its key stands for one job.", one_job_per_intent),
    Promise("always", FINAL, "A job that is over never changes again.", terminal_is_final),
    Promise("always", SWEEP, "A sweeper writes where a lease is over, or not at all.", sweep_undoes_nothing),
    Promise("always", CURRENT, "A report that lands speaks for the attempt that is running.", only_the_current_attempt),
    Promise("always", PROGRESS, "A job that is over makes no progress.", no_progress_when_over),
    Promise("always", CANCELLED, "No step leads from CANCELLED to RUNNING.", cancelled_never_runs),
    Promise("always", ASKED, "No worker claims a job that was asked to stop.", asked_to_stop_is_not_started),
    Promise("always", CEILING, "No job is claimed more often than its max_attempts.", attempts_have_a_ceiling),
    Promise("sometimes", TWICE, "A job is claimed a second time: no contract here promises once.", runs_again),
    Promise("sometimes", LATER, "Trying again is worth something.", succeeds_later),
    Promise("sometimes", "a job is given up", "A job is out of attempts, and the sweeper says so.", given_up),
    Promise("sometimes", "a job is stopped", "Its worker was asked to, and says that it has.", stops),
)

# The order of the matrix: first what each flag must answer for, then the others, then what is only possible.
NAMES = (ONE_JOB, KEPT, ENDS, LIVE, FINAL, SWEEP, CURRENT, PROGRESS, CANCELLED, ASKED, CEILING, DEADLINE)
SOMETIMES = tuple(promise.name for promise in FACTS if promise.kind == "sometimes")


def properties(world: World) -> list[Property]:
    """All promises, in this world, for the checker."""
    by_name = {each.name: each for each in [*(of_facts(world, promise) for promise in FACTS), *of_states(world)]}
    return [by_name[name] for name in (*NAMES, *SOMETIMES)]


def of_facts(world: World, promise: Promise) -> Property:
    make = checker.always if promise.kind == "always" else checker.sometimes
    silent = promise.kind == "always"

    def test(info: int | Said) -> bool:
        return promise.test(world.memo.facts[info]) if isinstance(info, int) else silent

    return make(promise.name, promise.sentence, info=test)


def of_states(world: World) -> list[Property]:
    """The promises that no single fact tells of."""
    kept, live, over = cache(world_keeps(world)), cache(live_claims(world)), cache(all_over(world))

    def one_live_claim(state: State) -> bool:
        twice = live(state[2])
        return not twice or not any(job.id in twice for job in world.memo.tables[state[0]])

    return [
        checker.always(KEPT, "A client that was told of a job finds it.", state=lambda state: kept(state[0], state[1])),
        checker.ends(ENDS, "From anywhere, every job can still get to its end.", lambda state: over(state[0])),
        checker.always(LIVE, "No two workers run a job, both in time by their own counts.", state=one_live_claim),
        checker.always(DEADLINE, "Not knowing is not failing.", info=says_what_it_knows),
    ]


def world_keeps(world: World) -> Callable[[int, int], bool]:
    def kept(table: int, clients: int) -> bool:
        there = {job.id for job in world.memo.tables[table]}
        return all(client.job is None or client.job in there for client in world.members(clients))

    return kept


def live_claims(world: World) -> Callable[[int], frozenset[str]]:
    """The jobs that two workers of a crowd run, both with time left."""

    def live(workers: int) -> frozenset[str]:
        claims: Sequence[Claim] = world.members(workers)
        jobs = [claim.worker.job_id for claim in claims if claim.worker.job_id is not None and claim.left > 0]
        return frozenset(job for job in jobs if jobs.count(job) > 1)

    return live


def all_over(world: World) -> Callable[[int], bool]:
    return lambda table: all(job.done for job in world.memo.tables[table])


def says_what_it_knows(info: int | Said) -> bool:
    """At its deadline UNKNOWN, and before that the terminal state that it saw."""
    if not isinstance(info, Said):
        return True
    return info.verdict == (UNKNOWN if info.at_deadline or info.seen is None else info.seen)


def telling(names: Collection[str]) -> Callable[[Fact], tuple[str, ...]]:
    """All that the promises with these names have to say about a fact, for `Alike`."""
    asked = [promise for promise in FACTS if promise.name in names]

    def tells(fact: Fact) -> tuple[str, ...]:
        return tuple(promise.name for promise in asked if promise.test(fact) is (promise.kind == "sometimes"))

    return tells
