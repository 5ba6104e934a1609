"""What do the statements do while a flag is off?  What the flag prevents, and nothing that no flag could mean.

Each flag's witness is among the scenarios; here are the parts of a statement that only a broken contract makes visible.
"""

from collections.abc import Callable

import pytest

from jobslab import Contract
from jobslab.stores import Store
from tests.stores.steps import LEASE, changed, queued, report, row, running, succeeded


def test_without_conditional_updates_late_progress_brings_a_finished_job_back(open_it: Callable[..., Store]) -> None:
    store = open_it(Contract().without("conditional_updates"))
    before = succeeded(store)
    assert report(store, "progress").state == "RUNNING"
    assert changed(before, row(store)) == {"state": "RUNNING", "updated_at": 1}


@pytest.mark.parametrize("verb", ["fail", "stop", "cancel", "exhaust"])
def test_without_conditional_updates_the_last_word_leaves_no_result_beside_its_error(
    open_it: Callable[..., Store], verb: str
) -> None:
    store = open_it(Contract().without("conditional_updates"))
    succeeded(store, max_attempts=1)
    say = {"cancel": lambda: store.cancel("job-1", now=1), "exhaust": lambda: store.exhaust("job-1", 1, now=1)}
    assert say.get(verb, lambda: report(store, verb))().accepted
    assert (row(store).result, row(store).error is None) == (None, False)


def test_without_leases_no_job_is_ever_stuck(open_it: Callable[..., Store]) -> None:
    store = open_it(Contract().without("leases"))
    job = running(store)
    assert store.stuck(now=100 * LEASE) == ()
    assert store.requeue("job-1", 1, now=100 * LEASE).refused_by == "still_expired"
    assert store.rows() == (job,)


def test_without_fencing_a_late_report_counts_while_the_job_runs(open_it: Callable[..., Store]) -> None:
    store = open_it(Contract().without("attempt_fencing"))
    running(store)
    store.requeue("job-1", 1, now=LEASE)
    assert report(store, "succeed", now=LEASE).refused_by == "unfinished"
    store.claim("job-1", "B", now=LEASE)
    assert report(store, "succeed", now=LEASE).accepted
    assert store.events()[-1].attempt == 1 != row(store).attempt


def test_without_persistence_and_guards_a_late_report_takes_the_job_that_has_its_id_now(
    open_it: Callable[..., Store],
) -> None:
    store = open_it(Contract.only("idempotency_key", "leases"))
    running(store)
    store.restart()
    queued(store)
    assert report(store, "progress").state == "RUNNING"
    assert (row(store).attempt, row(store).lease_until) == (0, None)
