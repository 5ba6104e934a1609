"""What is promised to a worker that asks for work: the job that is due first, and to itself alone."""

import pytest

from jobslab.errors import BadNumber
from jobslab.job import TERMINAL, Reply, State
from jobslab.stores import Store
from tests.stores.steps import IN_STATE, LEASE, changed, failed, queued, report, row, running, told


def test_the_job_that_is_due_first_is_picked(store: Store) -> None:
    queued(store, "job-4", now=1)
    queued(store, "job-3", now=1)
    queued(store, "job-2", now=2, run_at=1)
    queued(store, "job-1", now=2, run_at=0)
    order = []
    for _ in range(4):
        picked = store.pick(now=9)
        order.append(picked.id)
        store.claim(picked.id, "A", now=9)
    assert order == ["job-1", "job-3", "job-4", "job-2"]


def test_picking_writes_nothing(store: Store) -> None:
    job = queued(store)
    assert store.pick(now=0) == store.pick(now=0) == job
    assert store.rows() == (job,)
    assert len(store.events()) == 1


def test_a_job_is_not_picked_before_its_time(store: Store) -> None:
    queued(store, run_at=30)
    assert store.pick(now=29) is None
    assert store.pick(now=30) is not None


@pytest.mark.parametrize("state", sorted({State.RUNNING, *TERMINAL}))
def test_only_a_queued_job_is_picked(store: Store, state: State) -> None:
    IN_STATE[state](store)
    assert store.pick(now=9) is None
    assert store.claim_next("B", now=9) is None


def test_a_claim_starts_an_attempt_with_a_lease(store: Store) -> None:
    before = queued(store, correlation_id="trace")
    reply = store.claim("job-1", "A", now=5)
    job = row(store)
    assert reply == Reply(True, None, "RUNNING", 1, False, job)
    assert changed(before, job) == {
        "state": "RUNNING", "attempt": 1, "worker": "A", "lease_until": 5 + LEASE, "progress": 0,
        "started_at": 5, "updated_at": 5,
    }  # fmt: skip


def test_a_claim_is_told_in_the_journal(store: Store) -> None:
    queued(store, correlation_id="trace")
    store.claim("job-1", "A", now=5)
    assert store.events()[1][1:] == (5, "job-1", "A", "claim", 1, 1, None, "QUEUED", "RUNNING", "trace")


def test_of_two_workers_that_picked_the_same_job_one_gets_it(store: Store) -> None:
    queued(store)
    assert store.claim("job-1", "A", now=0).accepted
    job = row(store)
    assert store.claim("job-1", "B", now=1) == Reply(False, "still_claimable", "RUNNING", 1, False)
    assert store.rows() == (job,)
    assert told(store)[2:] == [("claim", "still_claimable", "RUNNING", "RUNNING")]


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_finished_job_is_not_claimed(store: Store, state: State) -> None:
    job = IN_STATE[state](store)
    assert store.claim("job-1", "B", now=9).refused_by == "still_claimable"
    assert store.rows() == (job,)


def test_a_job_is_not_claimed_before_its_time(store: Store) -> None:
    queued(store, run_at=30)
    assert store.claim("job-1", "A", now=29).refused_by == "still_claimable"
    assert store.claim("job-1", "A", now=30).accepted


def test_a_claim_touches_no_other_job(store: Store) -> None:
    other = queued(store, "job-2")
    running(store, "job-1")
    assert row(store, "job-2") == other


def test_a_job_that_is_not_there_cannot_be_claimed(store: Store) -> None:
    assert store.claim("job-1", "A", now=0) == Reply(False, "no such job", None, None, False)
    assert told(store) == [("claim", "no such job", None, None)]


def test_each_claim_is_a_new_attempt_whose_progress_starts_anew(store: Store) -> None:
    running(store)
    report(store, "progress")
    report(store, "retry", now=2)
    again = store.claim("job-1", "B", now=4).job
    assert (again.attempt, again.progress, again.worker, again.started_at) == (2, 0, "B", 4)


def test_a_worker_may_ask_for_its_own_lease(store: Store) -> None:
    queued(store)
    assert store.claim("job-1", "A", 3, now=5).job.lease_until == 8
    queued(store, "job-2")
    assert store.claim_next("A", 4, now=5).job.lease_until == 9
    assert store.renew("job-2", 1, "A", 5, now=6).accepted
    assert row(store, "job-2").lease_until == 11


@pytest.mark.parametrize("lease", [-1, float("nan"), float("inf")])
def test_a_lease_that_cannot_be_is_refused_by_name(store: Store, lease: float) -> None:
    job = queued(store)
    for ask in (lambda: store.claim("job-1", "A", lease, now=0), lambda: store.claim_next("A", lease, now=0)):
        with pytest.raises(BadNumber, match="lease_seconds"):
            ask()
    assert store.rows() == (job,)


def test_claim_next_picks_and_claims_in_one(store: Store) -> None:
    queued(store, "job-2", now=1)
    queued(store, "job-1", now=0)
    reply = store.claim_next("A", now=5)
    assert reply == Reply(True, None, "RUNNING", 1, False, row(store, "job-1"))
    assert [event.verb for event in store.events()] == ["submit", "submit", "claim"]


def test_claim_next_with_nothing_due_tells_nothing(store: Store) -> None:
    failed(store)
    lines = len(store.events())
    assert store.claim_next("A", now=5) is None
    assert len(store.events()) == lines
