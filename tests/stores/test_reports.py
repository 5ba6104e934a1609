"""What is promised to a worker that reports: the current attempt of a running job counts, and nothing else does."""

import json
from typing import Any

import pytest

from jobslab.errors import BadNumber
from jobslab.job import Reply, State
from jobslab.stores import Store
from tests.stores.steps import (
    BROKEN,
    FINISHED,
    LEASE,
    REPORTS,
    RETENTION,
    changed,
    queued,
    report,
    row,
    running,
    told,
)  # fmt: skip

BROKEN_JSON = {"type": "broken", "message": "it broke"}
CANCELLED_JSON = {"type": "cancelled", "message": "cancelled on request"}
OVER = {"updated_at": 1, "finished_at": 1, "expires_at": 1 + RETENTION}

# What each report changes in the row of a running job, but for `error`, which is compared as JSON.
CHANGES: dict[str, dict[str, Any]] = {
    "renew": {"lease_until": 1 + LEASE, "updated_at": 1},
    "progress": {"progress": 0.5, "updated_at": 1},
    "succeed": {"state": "SUCCEEDED", "result": '{"rows": 3}', "progress": 1, **OVER},
    "fail": {"state": "FAILED", "error": BROKEN_JSON, **OVER},
    "retry": {"state": "QUEUED", "error": BROKEN_JSON, "run_at": 1, "updated_at": 1},
    "stop": {"state": "CANCELLED", "error": CANCELLED_JSON, **OVER},
}


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_of_the_current_attempt_counts(store: Store, verb: str) -> None:
    before = running(store)
    reply = report(store, verb)
    after = changed(before, row(store))
    after |= {"error": json.loads(after["error"])} if "error" in after else {}
    assert after == CHANGES[verb]
    assert reply == Reply(True, None, after.get("state", "RUNNING"), 1, False)


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_is_told_in_the_journal(store: Store, verb: str) -> None:
    running(store, correlation_id="trace")
    report(store, verb)
    state = CHANGES[verb].get("state", "RUNNING")
    assert store.events()[2][1:] == (1, "job-1", "A", verb, 1, 1, None, "RUNNING", state, "trace")


@pytest.mark.parametrize("verb", REPORTS)
def test_a_late_report_is_refused(store: Store, verb: str) -> None:
    running(store)
    store.requeue("job-1", 1, now=LEASE)
    job = store.claim("job-1", "B", now=LEASE).job
    assert report(store, verb, 1, now=LEASE + 1) == Reply(False, "current", "RUNNING", 2, False)
    assert store.rows() == (job,)
    assert store.events()[-1][4:9] == (verb, 1, 0, "current", "RUNNING")


@pytest.mark.parametrize("verb", REPORTS)
@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_job_never_changes(store: Store, state: State, verb: str) -> None:
    job = FINISHED[state](store)
    assert report(store, verb) == Reply(False, "unfinished", state, 1, False)
    assert store.rows() == (job,)
    assert told(store)[-1] == (verb, "unfinished", state, state)


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_on_a_job_that_went_back_to_the_queue_is_refused(store: Store, verb: str) -> None:
    running(store)
    store.requeue("job-1", 1, now=LEASE)
    job = row(store)
    assert report(store, verb, now=LEASE).refused_by == "unfinished"
    assert store.rows() == (job,)


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_on_no_job_is_refused(store: Store, verb: str) -> None:
    queued(store, "job-2")
    assert report(store, verb) == Reply(False, "no such job", None, None, False)
    assert told(store)[-1] == (verb, "no such job", None, None)


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_touches_no_other_job(store: Store, verb: str) -> None:
    running(store, "job-1")
    other = running(store, "job-2")
    report(store, verb, id="job-1")
    assert row(store, "job-2") == other


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_at_a_time_that_cannot_be_is_refused_by_name(store: Store, verb: str) -> None:
    job = running(store)
    with pytest.raises(BadNumber, match="now"):
        report(store, verb, now=-1)
    assert store.rows() == (job,)


@pytest.mark.parametrize("verb", ["renew", "progress"])
def test_the_reply_to_a_worker_that_goes_on_says_that_it_is_asked_to_stop(store: Store, verb: str) -> None:
    running(store)
    store.cancel("job-1", now=1)
    assert report(store, verb).cancel_requested


@pytest.mark.parametrize("verb", REPORTS)
def test_no_report_clears_the_lease(store: Store, verb: str) -> None:
    running(store)
    report(store, verb)
    assert row(store).lease_until is not None


def test_a_lease_that_ran_out_may_be_renewed_until_the_sweep(store: Store) -> None:
    running(store)
    assert store.renew("job-1", 1, "A", now=LEASE + 5).accepted
    assert store.stuck(now=LEASE + 5) == ()
    store.requeue("job-1", 1, now=2 * LEASE + 5)
    assert store.renew("job-1", 1, "A", now=2 * LEASE + 5).refused_by == "unfinished"


def test_progress_never_falls_within_an_attempt(store: Store) -> None:
    running(store)
    assert [
        (store.progress("job-1", 1, "A", said, now=1).accepted, row(store).progress) for said in (0.4, 0.2, 0.6)
    ] == [(True, 0.4), (True, 0.4), (True, 0.6)]


@pytest.mark.parametrize("said", [1, 1.5, -0.1, -1, float("nan")])
def test_a_progress_that_cannot_be_is_refused_by_name(store: Store, said: float) -> None:
    job = running(store)
    with pytest.raises(BadNumber, match="progress"):
        store.progress("job-1", 1, "A", said, now=1)
    assert store.rows() == (job,)


def test_success_clears_the_error_of_an_earlier_attempt(store: Store) -> None:
    running(store)
    report(store, "retry")
    store.claim("job-1", "A", now=2)
    assert row(store).error is not None
    report(store, "succeed", 2, now=3)
    assert row(store).error is None


@pytest.mark.parametrize("result", [None, 3, "text", [1, 2], {"a": {"b": None}}])
def test_a_result_is_what_json_can_say(store: Store, result: Any) -> None:
    running(store)
    store.succeed("job-1", 1, "A", result, now=1)
    assert json.loads(row(store).result) == result


def test_a_retried_job_waits_for_its_time(store: Store) -> None:
    running(store)
    store.retry("job-1", 1, "A", BROKEN, 5, now=1)
    assert store.pick(now=5) is None
    assert store.pick(now=6).attempt == 1


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf")])
def test_a_wait_that_cannot_be_is_refused_by_name(store: Store, wait: float) -> None:
    job = running(store)
    with pytest.raises(BadNumber, match="wait_seconds"):
        store.retry("job-1", 1, "A", BROKEN, wait, now=1)
    assert store.rows() == (job,)


def test_after_the_last_attempt_a_retry_is_refused_and_a_failure_is_not(store: Store) -> None:
    job = running(store, max_attempts=1)
    assert report(store, "retry") == Reply(False, "attempts_left", "RUNNING", 1, False)
    assert store.rows() == (job,)
    assert report(store, "fail").accepted


def test_a_job_that_was_asked_to_stop_is_cancelled_by_its_retry(store: Store) -> None:
    running(store)
    store.cancel("job-1", now=1)
    assert report(store, "retry", now=2).state == "CANCELLED"
    job = row(store)
    assert (json.loads(job.error), job.finished_at, job.expires_at) == (CANCELLED_JSON, 2, 2 + RETENTION)
    assert store.pick(now=9) is None


def test_a_job_that_is_done_before_it_could_stop_has_succeeded(store: Store) -> None:
    running(store)
    store.cancel("job-1", now=1)
    assert report(store, "succeed", now=2).state == "SUCCEEDED"
