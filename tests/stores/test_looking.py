"""What one looks at to say where a job is, on every database: its lines, its trace, its turn, the last word."""

import pytest

from jobslab.job import REPORTS, Error, Job
from jobslab.settings import LAB
from jobslab.stores import Store
from jobslab.where import where
from tests.stores.steps import report, running


def test_the_lines_of_one_job_are_its_own_in_their_order(store: Store) -> None:
    for id in ("job-1", "job-2"):
        store.submit(id, "export", {}, now=0)
    store.claim("job-2", "A", now=1)
    store.claim("job-1", "A", now=2)
    store.claim("job-1", "B", now=3)
    lines = store.events_of("job-1")
    assert [(line.verb, line.actor, line.accepted) for line in lines] == [
        ("submit", "lab", 1),
        ("claim", "A", 1),
        ("claim", "B", 0),
    ]
    assert lines == tuple(line for line in store.events() if line.job_id == "job-1")
    assert store.events_of("job-3") == ()


def test_a_correlation_id_finds_its_jobs_once_and_those_that_are_gone(store: Store) -> None:
    for id, trace in (("job-1", "t"), ("job-2", "t"), ("job-3", "u")):
        store.submit(id, "export", {}, correlation_id=trace, now=0)
    store.claim("job-1", "A", now=1)
    store.succeed("job-1", 1, "A", now=2)
    store.purge(now=2 + LAB.retention_seconds)
    assert store.traced("t") == ("job-1", "job-2")
    assert store.traced("nothing") == ()


def test_who_is_before_a_job_is_who_is_picked_before_it(store: Store) -> None:
    for n, run_at in enumerate((5, 3, 4, 4)):
        store.submit(f"job-{n}", "export", {}, run_at=run_at, now=0)
    waiting = {row.id: row for row in store.rows()}
    ahead = {id: store.ahead(row) for id, row in waiting.items()}
    assert ahead == {"job-0": 3, "job-1": 0, "job-2": 1, "job-3": 2}
    picked = []
    while (job := store.pick(now=9)) is not None:
        store.claim(job.id, "A", now=9)
        picked.append(job.id)
    assert picked == sorted(ahead, key=lambda id: ahead[id])


def test_the_last_word_of_any_worker_is_a_claim_or_a_report_that_was_accepted(store: Store) -> None:
    assert store.last_word() is None
    store.submit("job-1", "export", {}, now=0)
    assert store.last_word() is None
    store.claim("job-1", "A", now=2)
    store.claim("job-1", "B", now=3)
    assert store.last_word() == 2
    store.renew("job-1", 1, "A", now=4)
    store.cancel("job-1", now=5)
    assert store.last_word() == 4


@pytest.mark.parametrize("verb", REPORTS)
def test_each_report_of_a_worker_is_a_word(store: Store, verb: str) -> None:
    running(store)
    assert report(store, verb, now=7).accepted
    assert store.last_word() == 7


def test_the_job_that_does_another_again_is_the_newest_that_names_it(store: Store) -> None:
    store.submit("job-1", "export", {}, now=0)
    assert store.done_again_by("job-1") is None
    for n in (2, 3):
        store.submit(f"job-{n}", "export", {}, rerun_of="job-1", now=n)
    assert (store.done_again_by("job-1"), store.done_again_by("job-3")) == ("job-3", None)


def test_where_says_the_same_on_every_database(store: Store) -> None:
    store.submit("job-1", "export", {}, now=0)
    store.claim("job-1", "A", now=1)
    store.retry("job-1", 1, "A", Error("broken", "it broke"), now=2)
    found = store.get("job-1", now=3)
    assert isinstance(found, Job)
    told = where(store, "job-1", now=3)
    assert told.cause.name == "waiting"
    assert [answer.answer for answer in told.three] == ["YES", "queued", "UNKNOWN"]
    assert [one.answer for one in told.stages] == ["YES", "YES", "-", "YES", "YES", "NO", "UNKNOWN"]
    assert where(store, "job-2", now=3).cause.name == "never-was"
    assert where(store, "job-1").cause.name == "no-worker"  # by the database's own clock it is 1970 no more
