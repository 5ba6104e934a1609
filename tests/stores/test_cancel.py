"""What is promised to the one who cancels: a waiting job is over at once, a running one is asked to stop."""

import json

import pytest

from jobslab.job import Reply, State
from jobslab.stores import Store
from tests.stores.steps import FINISHED, LEASE, RETENTION, changed, queued, row, running, told


def test_a_waiting_job_is_cancelled_at_once(store: Store) -> None:
    before = queued(store, correlation_id="trace")
    assert store.cancel("job-1", "ann", now=5) == Reply(True, None, "CANCELLED", 0, True)
    after = changed(before, row(store))
    assert json.loads(after.pop("error")) == {"type": "cancelled", "message": "cancelled on request"}
    assert after == {
        "state": "CANCELLED", "cancel_requested": 1, "updated_at": 5, "finished_at": 5, "expires_at": 5 + RETENTION,
    }  # fmt: skip
    assert store.events()[1][1:] == (5, "job-1", "ann", "cancel", 0, 1, None, "QUEUED", "CANCELLED", "trace")


def test_a_running_job_is_asked_to_stop(store: Store) -> None:
    before = running(store, correlation_id="trace")
    assert store.cancel("job-1", "ann", now=5) == Reply(False, "cancellable", "RUNNING", 1, True)
    assert changed(before, row(store)) == {"cancel_requested": 1, "updated_at": 5}
    assert [event[1:] for event in store.events()[2:]] == [
        (5, "job-1", "ann", "cancel", 1, 0, "cancellable", "RUNNING", "RUNNING", "trace"),
        (5, "job-1", "ann", "ask_to_stop", 1, 1, None, "RUNNING", "RUNNING", "trace"),
    ]


def test_asking_twice_to_stop_is_asking_once(store: Store) -> None:
    running(store)
    assert store.cancel("job-1", now=5) == store.cancel("job-1", now=6)
    assert row(store).cancel_requested == 1


@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_job_cannot_be_cancelled(store: Store, state: State) -> None:
    job = FINISHED[state](store)
    assert store.cancel("job-1", now=5) == Reply(False, "cancellable", state, 1, False)
    assert store.rows() == (job,)
    assert told(store)[3:] == [("cancel", "cancellable", state, state)]


def test_a_job_that_is_not_there_cannot_be_cancelled(store: Store) -> None:
    assert store.cancel("job-1", now=5) == Reply(False, "no such job", None, None, False)
    assert told(store) == [("cancel", "no such job", None, None)]


def test_a_job_between_two_attempts_is_cancelled_at_once(store: Store) -> None:
    running(store)
    store.requeue("job-1", 1, now=LEASE)
    assert store.cancel("job-1", now=LEASE).state == "CANCELLED"


@pytest.mark.parametrize("how", [queued, running])
def test_a_cancel_touches_no_other_job(store: Store, how: object) -> None:
    other = how(store, "job-2")
    how(store, "job-1")
    store.cancel("job-1", now=5)
    assert row(store, "job-2") == other


def test_a_cancelled_job_is_not_picked(store: Store) -> None:
    queued(store)
    store.cancel("job-1", now=5)
    assert store.pick(now=5) is None
