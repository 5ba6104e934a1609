"""What is promised for the job of a worker that died: another gets it while attempts are left; nothing is undone."""

import json

import pytest

from jobslab.job import Reply, Stuck
from jobslab.stores import Store
from tests.stores.steps import FINISHED, LEASE, RETENTION, changed, queued, report, row, running, told

CANCELLED_JSON = {"type": "cancelled", "message": "cancelled on request"}


def test_a_job_is_stuck_when_its_lease_is_over_and_not_before(store: Store) -> None:
    running(store, now=0)
    assert store.stuck(now=LEASE - 1) == ()
    assert store.stuck(now=LEASE) == (Stuck("job-1", 1, True),)


def test_a_renewed_lease_runs_from_its_renewal(store: Store) -> None:
    running(store, now=0)
    report(store, "renew", now=4)
    assert store.stuck(now=LEASE + 3) == ()
    assert store.stuck(now=LEASE + 4) != ()


def test_only_running_jobs_are_stuck(store: Store) -> None:
    queued(store, "job-0")
    for n, finish in enumerate(FINISHED.values(), 1):
        finish(store, f"job-{n}")
    running(store, "job-5")
    running(store, "job-4")
    store.requeue("job-5", 1, now=LEASE)
    assert [stuck.id for stuck in store.stuck(now=LEASE)] == ["job-4"]


def test_what_is_stuck_is_seen_by_id(store: Store) -> None:
    running(store, "job-2", now=0)
    running(store, "job-3", now=1)
    running(store, "job-1", now=2)
    assert [stuck.id for stuck in store.stuck(now=2 * LEASE)] == ["job-1", "job-2", "job-3"]


def test_looking_writes_nothing(store: Store) -> None:
    job = running(store)
    store.stuck(now=LEASE)
    assert store.rows() == (job,)
    assert len(store.events()) == 2


def test_a_stuck_job_goes_back_to_the_queue_with_its_attempt(store: Store) -> None:
    before = running(store, correlation_id="trace")
    report(store, "progress", now=0)
    assert store.requeue("job-1", 1, "S", now=LEASE) == Reply(True, None, "QUEUED", 1, False)
    assert changed(before, row(store)) == {"state": "QUEUED", "progress": 0.5, "updated_at": LEASE}
    assert store.events()[-1][1:] == (LEASE, "job-1", "S", "requeue", 1, 1, None, "RUNNING", "QUEUED", "trace")
    assert store.pick(now=LEASE).attempt == 1


def test_a_job_that_was_asked_to_stop_is_cancelled_instead_of_requeued(store: Store) -> None:
    running(store)
    store.cancel("job-1", now=1)
    assert store.requeue("job-1", 1, now=LEASE).state == "CANCELLED"
    job = row(store)
    assert (json.loads(job.error), job.finished_at, job.expires_at) == (CANCELLED_JSON, LEASE, LEASE + RETENTION)
    assert store.pick(now=LEASE) is None


def test_a_job_without_attempts_left_is_given_up(store: Store) -> None:
    before = running(store, max_attempts=1, correlation_id="trace")
    assert store.stuck(now=LEASE) == (Stuck("job-1", 1, False),)
    assert store.requeue("job-1", 1, "S", now=LEASE).refused_by == "attempts_left"
    assert store.rows() == (before,)
    assert store.exhaust("job-1", 1, "S", now=LEASE) == Reply(True, None, "FAILED", 1, False)
    after = changed(before, row(store))
    assert json.loads(after.pop("error")) == {"type": "gave up", "message": "gave up after 1 attempts"}
    assert after == {
        "state": "FAILED", "updated_at": LEASE, "finished_at": LEASE, "expires_at": LEASE + RETENTION,
    }  # fmt: skip
    assert store.events()[-1][1:] == (LEASE, "job-1", "S", "exhaust", 1, 1, None, "RUNNING", "FAILED", "trace")


def test_a_job_with_attempts_left_is_not_given_up(store: Store) -> None:
    job = running(store)
    assert store.exhaust("job-1", 1, now=LEASE).refused_by == "not attempts_left"
    assert store.rows() == (job,)


@pytest.mark.parametrize("max_attempts", [1, 2, 3])
def test_a_job_is_claimed_as_often_as_it_has_attempts(store: Store, max_attempts: int) -> None:
    queued(store, max_attempts=max_attempts)
    for attempt in range(1, max_attempts + 1):
        assert store.claim_next("A", now=attempt * LEASE).attempt == attempt
        (stuck,) = store.stuck(now=(attempt + 1) * LEASE)
        verb = store.requeue if stuck.attempts_left else store.exhaust
        assert verb(stuck.id, stuck.attempt, now=(attempt + 1) * LEASE).accepted
    assert store.claim_next("A", now=9 * LEASE) is None
    assert row(store).state == "FAILED"


# A sweeper writes by what it saw; what happened since is not undone

SWEEPS = {"requeue": 3, "exhaust": 1}  # with so many attempts the write would be right


@pytest.mark.parametrize("verb", SWEEPS)
@pytest.mark.parametrize("state", FINISHED)
def test_a_sweep_undoes_no_report(store: Store, state: str, verb: str) -> None:
    FINISHED[state](store)
    store.load([row(store)._replace(max_attempts=SWEEPS[verb])])
    job = row(store)
    assert getattr(store, verb)("job-1", 1, now=LEASE) == Reply(False, "still_expired", state, 1, False)
    assert store.rows() == (job,)
    assert told(store) == [(verb, "still_expired", state, state)]


@pytest.mark.parametrize("verb", SWEEPS)
def test_a_sweep_takes_no_job_whose_lease_was_renewed(store: Store, verb: str) -> None:
    running(store, max_attempts=SWEEPS[verb])
    report(store, "renew", now=LEASE)
    job = row(store)
    assert getattr(store, verb)("job-1", 1, now=LEASE + 1).refused_by == "still_expired"
    assert store.rows() == (job,)


@pytest.mark.parametrize("verb", SWEEPS)
def test_a_sweep_takes_no_later_attempt_than_it_saw(store: Store, verb: str) -> None:
    running(store, max_attempts=2 * SWEEPS[verb])
    store.requeue("job-1", 1, now=LEASE)
    store.claim("job-1", "B", now=LEASE)
    job = row(store)
    assert getattr(store, verb)("job-1", 1, now=3 * LEASE).refused_by == "current"
    assert store.rows() == (job,)


@pytest.mark.parametrize("verb", SWEEPS)
def test_a_sweep_of_a_job_that_is_not_there_is_refused(store: Store, verb: str) -> None:
    assert getattr(store, verb)("job-1", 1, now=0) == Reply(False, "no such job", None, None, False)


@pytest.mark.parametrize("verb", SWEEPS)
def test_a_sweep_touches_no_other_job(store: Store, verb: str) -> None:
    running(store, "job-1", max_attempts=SWEEPS[verb])
    other = running(store, "job-2", max_attempts=SWEEPS[verb])
    assert getattr(store, verb)("job-1", 1, now=LEASE).accepted
    assert row(store, "job-2") == other
