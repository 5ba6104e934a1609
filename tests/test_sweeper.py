"""Does a sweeper do what it saw, one job after the other, and undo nothing that happened since?"""

from collections.abc import Iterator

import pytest

from jobslab import Contract, open_store
from jobslab.job import Stuck
from jobslab.settings import LAB
from jobslab.stores import Store
from jobslab.sweeper import Sweeper, Write, decide, deliver, look, observe, sweep
from tests.stores.steps import LEASE, report, row, running

SEEN = (Stuck("job-1", 1, True), Stuck("job-2", 3, False))


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(Contract(), settings=LAB) as store:
        yield store


def test_a_sweeper_that_saw_nothing_has_nothing_to_do() -> None:
    assert decide(Sweeper()) is None


def test_a_job_with_attempts_left_is_requeued_and_one_without_is_given_up() -> None:
    assert decide(Sweeper("S", SEEN)) == Write("requeue", "job-1", 1)
    assert decide(Sweeper("S", SEEN[1:])) == Write("exhaust", "job-2", 3)


def test_what_is_dealt_with_is_not_dealt_with_again() -> None:
    assert observe(Sweeper("S", SEEN)) == Sweeper("S", SEEN[1:])
    assert observe(Sweeper("S", SEEN[1:])) == Sweeper("S", ())


def test_looking_sees_what_is_stuck_now(store: Store) -> None:
    running(store)
    assert look(store, Sweeper("S", SEEN), LEASE - 1) == Sweeper("S", ())
    assert look(store, Sweeper("S"), LEASE) == Sweeper("S", (Stuck("job-1", 1, True),))


def test_a_write_is_told_under_the_sweepers_name(store: Store) -> None:
    running(store)
    assert deliver(store, Sweeper("S"), Write("requeue", "job-1", 1), LEASE).accepted
    assert store.events()[-1][2:5] == ("job-1", "S", "requeue")


def test_a_sweep_deals_with_all_that_is_stuck(store: Store) -> None:
    running(store, "job-1")
    running(store, "job-2", max_attempts=1)
    running(store, "job-3", now=1)
    assert [reply.state for reply in sweep(store, "S", LEASE)] == ["QUEUED", "FAILED"]
    assert [job.state for job in store.rows()] == ["QUEUED", "FAILED", "RUNNING"]
    assert sweep(store, "S", LEASE) == []


def test_of_two_sweepers_that_saw_the_same_one_writes(store: Store) -> None:
    running(store)
    first, second = look(store, Sweeper("S"), LEASE), look(store, Sweeper("T"), LEASE)
    assert deliver(store, first, decide(first), LEASE).accepted
    store.claim("job-1", "B", now=LEASE)
    job = row(store)
    assert not deliver(store, second, decide(second), LEASE).accepted
    assert store.rows() == (job,)


def test_what_was_reported_since_the_look_is_not_undone(store: Store) -> None:
    running(store)
    sweeper = look(store, Sweeper("S"), LEASE)
    report(store, "succeed", now=LEASE)
    job = row(store)
    assert deliver(store, sweeper, decide(sweeper), LEASE).refused_by == "still_expired"
    assert store.rows() == (job,)
