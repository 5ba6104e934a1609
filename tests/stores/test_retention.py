"""What is promised about the past: a finished job is kept for its time, then its id is known, then it is forgotten."""

from collections.abc import Callable

import pytest

from jobslab.errors import BadNumber
from jobslab.job import Expired, State
from jobslab.settings import Settings
from jobslab.stores import Store
from tests.stores.steps import (
    EXPIRED,
    FINISHED,
    LEASE,
    RETENTION,
    cancelled,
    failed,
    queued,
    report,
    row,
    running,
    succeeded,
)  # fmt: skip

FORGOTTEN = RETENTION + EXPIRED


@pytest.fixture(params=["purged", "not purged"])
def purged(request: pytest.FixtureRequest) -> bool:
    return request.param == "purged"


def test_get_gives_the_job_as_it_stands(store: Store) -> None:
    assert store.get("job-1", now=0) is None
    job = queued(store)
    assert store.get("job-1", now=0) == job
    running(store, "job-2")
    assert store.get("job-2", now=RETENTION * 9) == row(store, "job-2")


@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_job_is_known_for_its_time_then_expired_then_forgotten(
    store: Store, state: State, purged: bool
) -> None:
    job = FINISHED[state](store)

    def seen(now: float) -> object:
        if purged:
            store.purge(now=now)
        return store.get("job-1", now=now)

    assert seen(RETENTION - 1) == job
    assert seen(RETENTION) == Expired("job-1", "lab", RETENTION)
    assert seen(FORGOTTEN - 1) == Expired("job-1", "lab", RETENTION)
    assert seen(FORGOTTEN) is None


@pytest.mark.parametrize("how", [queued, running])
def test_a_job_that_is_not_over_never_expires(store: Store, how: Callable[[Store], object]) -> None:
    job = how(store)
    assert store.purge(now=FORGOTTEN * 9) == 0
    assert store.get("job-1", now=FORGOTTEN * 9) == job


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_finished_job_that_a_broken_contract_brought_back_does_not_expire(store: Store, state: State) -> None:
    job = succeeded(store)._replace(state=state.value)
    store.load([job])
    assert store.purge(now=FORGOTTEN) == 0
    assert store.get("job-1", now=FORGOTTEN) == job
    assert store.list("lab", now=FORGOTTEN) == [job]


def test_purge_counts_what_it_deleted_and_tells_it(store: Store) -> None:
    succeeded(store, "job-1", correlation_id="trace")
    failed(store, "job-2")
    cancelled(store, "job-3", now=1)
    queued(store, "job-4")
    assert store.purge(now=RETENTION) == 2
    assert [job.id for job in store.rows()] == ["job-3", "job-4"]
    assert sorted(event[1:] for event in store.events() if event.verb == "purge") == [
        (RETENTION, "job-1", "purge", "purge", 1, 1, None, "SUCCEEDED", None, "trace"),
        (RETENTION, "job-2", "purge", "purge", 1, 1, None, "FAILED", None, None),
    ]
    assert store.purge(now=RETENTION) == 0


def test_a_purge_that_comes_very_late_remembers_nothing(store: Store) -> None:
    succeeded(store)
    assert store.purge(now=FORGOTTEN) == 1
    assert store.get("job-1", now=0) is None


def test_an_id_that_is_used_again_can_expire_again(store: Store) -> None:
    succeeded(store)
    store.purge(now=RETENTION)
    succeeded(store, now=RETENTION)
    assert store.purge(now=2 * RETENTION) == 1
    assert store.get("job-1", now=2 * RETENTION) == Expired("job-1", "lab", 2 * RETENTION)


def test_the_journal_is_cut_when_its_jobs_are_forgotten(store: Store) -> None:
    succeeded(store, "job-1", now=0)
    succeeded(store, "job-2", now=5)
    store.purge(now=FORGOTTEN - 1)
    assert store.events()[0].job_id == "job-1"
    store.purge(now=FORGOTTEN)
    assert store.events()[0].job_id == "job-2"
    assert [event.verb for event in store.events() if event.job_id == "job-1"] == ["purge"]


def test_the_settings_say_how_long(open_it: Callable[..., Store]) -> None:
    store = open_it(settings=Settings(retention_seconds=5, expired_seconds=3, lease_seconds=2, max_attempts=1))
    running(store)
    assert (row(store).lease_until, row(store).max_attempts) == (2, 1)
    report(store, "succeed", now=1)
    assert row(store).expires_at == 6
    assert isinstance(store.get("job-1", now=8), Expired)
    assert store.get("job-1", now=9) is None


@pytest.mark.parametrize("now", [-1, float("nan"), float("inf")])
def test_a_time_that_cannot_be_is_refused_by_name(store: Store, now: float) -> None:
    job = succeeded(store)
    for ask in (store.purge, store.pick, store.stuck, lambda now: store.get("job-1", now=now)):
        with pytest.raises(BadNumber, match="now"):
            ask(now=now)
    assert store.rows() == (job,)


# Pages


def ids(store: Store, owner: str = "lab", **options: object) -> list[str]:
    return [job.id for job in store.list(owner, **{"now": 9, **options})]


def test_an_owner_sees_its_own_jobs_newest_first(store: Store) -> None:
    for n, (owner, now) in enumerate([("ann", 1), ("ann", 3), ("bob", 2), ("ann", 3)]):
        queued(store, f"job-{n}", now=now, owner=owner)
    assert ids(store, "ann") == ["job-3", "job-1", "job-0"]
    assert ids(store, "bob") == ["job-2"]
    assert ids(store, "eve") == []


def test_pages_follow_each_other_without_a_gap(store: Store) -> None:
    for n in range(7):
        queued(store, f"job-{n}", now=n // 3)
    pages, before = [], None
    for n in range(4):
        page = store.list("lab", limit=2, before=before, now=9)
        pages.append([job.id for job in page])
        before = (page[-1].created_at, page[-1].id)
        queued(store, f"new-{n}", now=9)
    assert pages == [["job-6", "job-5"], ["job-4", "job-3"], ["job-2", "job-1"], ["job-0"]]
    assert store.list("lab", limit=2, before=before, now=9) == []


def test_expired_jobs_are_on_no_page(store: Store) -> None:
    succeeded(store, "job-1", now=0)
    succeeded(store, "job-2", now=1)
    running(store, "job-3", now=0)
    assert ids(store, now=RETENTION - 1) == ["job-2", "job-3", "job-1"]
    assert ids(store, now=RETENTION) == ["job-2", "job-3"]
    assert ids(store, now=RETENTION + 1) == ["job-3"]


def test_waiting_counts_the_queued_jobs(store: Store) -> None:
    assert store.waiting() == 0
    queued(store, "job-1")
    queued(store, "job-2", run_at=RETENTION)
    running(store, "job-3")
    succeeded(store, "job-4")
    assert store.waiting() == 2
    store.requeue("job-3", 1, now=LEASE)
    assert store.waiting() == 3
