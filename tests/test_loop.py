"""What is promised of a process that does jobs: it renews while it works, ends as it is asked to, and outlives its
database.

A test waits for an event or for a state of the store, never for a time that it hopes is enough.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobslab.errors import OutcomeUnknown, StoreError
from jobslab.job import Job
from jobslab.loop import work
from jobslab.settings import SERVICE, Settings
from jobslab.stores import Store, open_store
from jobslab.worker import Permanent, Task, Transient

PATIENT = replace(SERVICE, poll_seconds=0.01, retry_base_seconds=0)  # a lease that no test outlives
LATER = 10**12  # when every lease is over
LIMIT = 60  # seconds, after which a test waits in vain


@pytest.fixture
def open_it(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    opened: list[Store] = []

    def open_it(settings: Settings = PATIENT) -> Store:
        opened.append(open_store(None, str(tmp_path / "jobs.db"), settings=settings, kinds=["task"]))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_it: Callable[..., Store]) -> Store:
    return open_it()


def queued(store: Store, *ids: str, **options: Any) -> None:
    for id in ids:
        store.submit(id, "task", {}, **options)


def row(store: Store, id: str = "job-1") -> Job:
    return next(job for job in store.rows() if job.id == id)


def states(store: Store) -> list[str]:
    return [job.state for job in store.rows()]


def unfinished(store: Store) -> bool:
    return any(not job.done for job in store.rows())


def until_done(store: Store, task: Task, **options: Any) -> list[Job]:
    """Work until every job is over."""
    return list(work(store, "A", {"task": task}, stop=limited(lambda: not unfinished(store)), **options))


def wait_for(what: Callable[[], object]) -> None:
    """Until it is true."""
    what = limited(what)
    while not what():
        time.sleep(0.002)


def limited(what: Callable[[], object]) -> Callable[[], bool]:
    """The same question, for a minute.  The limit is none of the promise: it ends a test that waits in vain."""
    enough = time.monotonic() + LIMIT

    def ask() -> bool:
        assert time.monotonic() < enough, "waited in vain"
        return bool(what())

    return ask


class Held:
    """A task that waits in its first chunk until it is let go, and notes how it ended."""

    def __init__(self) -> None:
        self.begun, self.go, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.chunks = 0

    def __call__(self, job: Job) -> Generator[float, None, Any]:
        try:
            self.begun.set()
            self.go.wait()
            yield 0.5
            self.chunks += 1
            return f"attempt {job.attempt}"
        finally:
            self.ended.set()


@contextmanager
def working(store: Store, task: Task, **options: Any) -> Iterator[threading.Event]:
    """A worker in a thread; setting what comes out asks it to end, and it has ended after the block."""
    stop = threading.Event()
    done = work(store, "A", {"task": task}, stop=stop.is_set, **options)
    thread = threading.Thread(target=list, args=(done,), daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(LIMIT)
        assert not thread.is_alive(), "it does not end"


def at_once(job: Job) -> Generator[float, None, Any]:
    yield 0.5
    return job.id


# Jobs


def test_jobs_are_done_and_told(store: Store) -> None:
    queued(store, "job-1", "job-2", "job-3")
    done = until_done(store, at_once)
    assert [job.id for job in done] == ["job-1", "job-2", "job-3"]
    assert states(store) == ["SUCCEEDED"] * 3
    assert row(store, "job-2").result == '"job-2"'


def test_a_report_and_the_next_claim_share_a_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    queued(store, "job-1", "job-2", "job-3")
    begun = []
    write = store.database.write
    monkeypatch.setattr(store.database, "write", lambda: begun.append(threading.current_thread().name) or write())

    def without_chunks(job: Job) -> Generator[float, None, Any]:
        return job.id
        yield

    until_done(store, without_chunks)
    assert begun.count("A") == 4  # the first claim, two reports with a claim, the last report


def test_so_many_jobs_are_in_hand_at_once(store: Store) -> None:
    queued(store, "job-1", "job-2", "job-3")
    together = threading.Barrier(3, timeout=LIMIT)

    def meet(job: Job) -> Generator[float, None, Any]:
        yield together.wait() / 3
        return None

    until_done(store, meet, concurrency=3)
    assert {job.worker for job in store.rows()} == {"A.1", "A.2", "A.3"}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(Permanent("broken", "it is"), "broken"), (Transient("away", "it is"), "away"), (KeyError("x"), "internal error")],
)
def test_a_task_that_fails_ends_its_job_and_not_the_worker(store: Store, wrong: Exception, error: str) -> None:
    queued(store, "job-1", "job-2", max_attempts=2)

    def failing(job: Job) -> Generator[float, None, Any]:
        yield 0
        raise wrong

    until_done(store, failing)
    assert states(store) == ["FAILED"] * 2
    assert f'"{error}"' in str(row(store).error)
    assert row(store).attempt == (2 if isinstance(wrong, Transient) else 1)


@pytest.mark.parametrize("progress", [-1, 2, float("nan"), None, "half"])
def test_a_progress_that_cannot_be_fails_the_job_and_not_the_worker(store: Store, progress: Any) -> None:
    def odd(job: Job) -> Generator[float, None, Any]:
        yield progress

    queued(store, "job-1")
    until_done(store, odd)
    assert states(store) == ["FAILED"]


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), b"bytes", object()])
def test_a_result_that_json_cannot_say_fails_the_job_and_not_the_worker(store: Store, result: Any) -> None:
    queued(store, "job-1")

    def odd(job: Job) -> Generator[float, None, Any]:
        yield 0
        return result

    until_done(store, odd)
    assert states(store) == ["FAILED"]


def test_what_is_no_generator_fails_the_job_and_not_the_worker(store: Store) -> None:
    queued(store, "job-1")
    until_done(store, lambda job: 1 / 0)
    assert states(store) == ["FAILED"]


def test_a_kind_without_a_task_is_left_to_others(store: Store) -> None:
    queued(store, "job-1", max_attempts=1)
    list(work(store, "A", {}, stop=limited(lambda: not unfinished(store))))
    assert "unknown kind" in str(row(store).error)


def tried(store: Store) -> bool:
    return all(job.attempt and job.state == "QUEUED" for job in store.rows())


def test_a_failed_try_waits_before_the_next_by_full_jitter(open_it: Callable[..., Store]) -> None:
    store = open_it(replace(PATIENT, retry_base_seconds=10**6, retry_cap_seconds=10**9))
    queued(store, "job-1", "job-2", "job-3", max_attempts=9)

    def failing(job: Job) -> Generator[float, None, Any]:
        yield 0
        raise Transient("away", "it is")

    list(work(store, "A", {"task": failing}, stop=limited(lambda: tried(store)), rng=random.Random(1)))
    waits = [job.run_at - job.updated_at for job in store.rows()]
    assert all(0 <= wait <= 2 * 10**6 for wait in waits)
    assert len({round(wait) for wait in waits}) == 3


def idle(store: Store) -> bool:
    return "RUNNING" not in states(store)


# Leases


def test_a_lease_is_renewed_while_the_task_is_in_a_long_chunk(open_it: Callable[..., Store]) -> None:
    store = open_it(replace(PATIENT, lease_seconds=3, renewals_per_lease=300))
    queued(store, "job-1")
    task = Held()
    with working(store, task):
        task.begun.wait()
        claimed = row(store)
        wait_for(lambda: row(store).lease_until > claimed.lease_until + 0.05)
        assert row(store).progress == 0
        task.go.set()
        wait_for(lambda: not unfinished(store))
    assert (row(store).state, row(store).attempt) == ("SUCCEEDED", 1)


def test_a_lost_lease_ends_the_task_at_its_next_report_and_its_result_is_not_written(store: Store) -> None:
    queued(store, "job-1")
    task = Held()
    with working(store, task) as stop:
        task.begun.wait()
        stop.set()  # so that it is not this worker which takes the job again
        assert store.requeue("job-1", 1, now=LATER).accepted
        taken = store.claim("job-1", "B").job
        task.go.set()
        task.ended.wait()
    assert task.chunks == 0
    assert row(store) == taken
    assert [event.refused_by for event in store.events() if event.actor == "A"] == [None, "current"]


def test_what_the_heartbeat_was_refused_ends_the_task_too(open_it: Callable[..., Store]) -> None:
    store = open_it(replace(PATIENT, lease_seconds=3, renewals_per_lease=300))
    queued(store, "job-1")
    task = Held()
    with working(store, task) as stop:
        task.begun.wait()
        stop.set()
        assert store.requeue("job-1", 1, now=LATER).accepted
        taken = store.claim("job-1", "B", LATER).job
        wait_for(lambda: store.events()[-1].refused_by == "current")
        task.go.set()
        task.ended.wait()
    assert "progress" not in [event.verb for event in store.events()]
    assert row(store) == taken


def test_a_worker_sweeps_what_others_left(store: Store) -> None:
    queued(store, "job-1")
    store.claim("job-1", "dead", 0)
    until_done(store, at_once)
    assert (row(store).state, row(store).attempt, row(store).worker) == ("SUCCEEDED", 2, "A")


def test_a_job_that_is_asked_to_stop_is_stopped_after_its_chunk(store: Store) -> None:
    queued(store, "job-1")
    task = Held()
    with working(store, task):
        task.begun.wait()
        assert store.cancel("job-1").cancel_requested
        task.go.set()
        wait_for(lambda: not unfinished(store))
    assert (row(store).state, task.chunks) == ("CANCELLED", 0)


def test_a_job_that_is_asked_to_stop_is_renewed_until_its_task_has_stopped(open_it: Callable[..., Store]) -> None:
    store = open_it(replace(PATIENT, lease_seconds=3, renewals_per_lease=300))
    queued(store, "job-1")
    task = Held()
    with working(store, task):
        task.begun.wait()
        store.cancel("job-1")
        asked = row(store)
        wait_for(lambda: row(store).lease_until > asked.lease_until + 0.05)
        assert row(store).state == "RUNNING"
        task.go.set()
        wait_for(lambda: not unfinished(store))
    assert (row(store).state, task.chunks) == ("CANCELLED", 0)


# The end


def test_asked_to_end_a_worker_finishes_what_it_has_and_claims_no_more(store: Store) -> None:
    queued(store, "job-1", "job-2")
    task = Held()
    with working(store, task) as stop:
        task.begun.wait()
        stop.set()
        task.go.set()
    assert states(store) == ["SUCCEEDED", "QUEUED"]
    assert row(store, "job-2").attempt == 0


def test_what_is_in_hand_has_its_time_to_finish(store: Store) -> None:
    queued(store, "job-1")
    task, asked, stopping = Held(), [], threading.Event()

    def stop() -> bool:
        asked.extend([1] * stopping.is_set())
        return stopping.is_set()

    done = work(store, "A", {"task": task}, stop=stop, grace_seconds=LIMIT)
    thread = threading.Thread(target=list, args=(done,), daemon=True)
    thread.start()
    task.begun.wait()
    stopping.set()
    wait_for(lambda: asked)
    assert thread.is_alive()
    task.go.set()
    thread.join()
    assert (row(store).state, row(store).attempt) == ("SUCCEEDED", 1)


def test_what_is_not_finished_in_time_is_given_back_at_once(store: Store) -> None:
    queued(store, "job-1", "job-2")
    task = Held()
    with working(store, task, grace_seconds=0) as stop:
        task.begun.wait()
        stop.set()
    given_back = row(store)
    assert (given_back.state, given_back.attempt, given_back.run_at) == ("QUEUED", 1, given_back.updated_at)
    assert "worker stopped" in str(given_back.error)
    taken = store.claim_next("B").job
    assert (taken.id, taken.attempt) == ("job-2", 1)  # that has waited longer
    taken = store.claim_next("B").job
    task.go.set()
    task.ended.wait()
    wait_for(lambda: store.events()[-1].refused_by == "current")  # what the task still has to say
    assert row(store) == taken


def test_what_cannot_be_given_back_has_failed(store: Store) -> None:
    queued(store, "job-1", max_attempts=1)
    task = Held()
    with working(store, task, grace_seconds=0) as stop:
        task.begun.wait()
        stop.set()
    assert row(store).state == "FAILED"
    assert "worker stopped" in str(row(store).error)
    task.go.set()


def test_a_task_that_ends_the_process_ends_the_loop_and_its_job_is_given_back(store: Store) -> None:
    queued(store, "job-1")

    def leaving(job: Job) -> Generator[float, None, Any]:
        yield 0
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        until_done(store, leaving)
    assert (row(store).state, row(store).attempt) == ("QUEUED", 1)


def test_a_caller_that_has_enough_leaves_nothing_running(store: Store) -> None:
    queued(store, "job-1", "job-2", "job-3")
    task = Held()

    def second_is_held(job: Job) -> Generator[float, None, Any]:
        return (yield from (task(job) if job.id == "job-2" else at_once(job)))

    for job in work(store, "A", {"task": second_is_held}, stop=lambda: False):
        assert job.id == "job-1"
        task.begun.wait()
        break
    assert (row(store, "job-2").state, row(store, "job-2").attempt) == ("QUEUED", 1)
    task.go.set()
    wait_for(lambda: "A" not in [thread.name for thread in threading.enumerate()])
    assert states(store) == ["SUCCEEDED", "QUEUED", "QUEUED"]


# A database that is away for a while


def away(store: Store, monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> list[Exception | None]:
    """The next transactions of the worker end like this; None: well.  What is left of them."""
    left, write = list(outcomes), store.database.write

    @contextmanager
    def broken() -> Iterator[Any]:
        wrong = left.pop(0) if left and threading.current_thread().name == "A" else None
        if wrong is not None and not isinstance(wrong, OutcomeUnknown):
            raise wrong
        with write() as db:
            yield db
        if wrong is not None:
            raise wrong

    monkeypatch.setattr(store.database, "write", broken)
    return left


GONE, UNKNOWN = StoreError("the connection was lost"), OutcomeUnknown("the connection was lost during a commit")


@pytest.mark.parametrize("outcomes", [[GONE], [None, GONE], [None, None, GONE, GONE]], ids=str)
def test_a_worker_asks_again_while_its_database_is_away(
    store: Store, monkeypatch: pytest.MonkeyPatch, outcomes: list[Exception | None], caplog: pytest.LogCaptureFixture
) -> None:
    queued(store, "job-1")
    left = away(store, monkeypatch, *outcomes)
    with caplog.at_level(logging.WARNING, "jobslab.loop"):
        until_done(store, at_once)
    assert (row(store).state, row(store).attempt, left) == ("SUCCEEDED", 1, [])
    assert caplog.text.count("trying again") == outcomes.count(GONE)


@pytest.mark.parametrize("outcomes", [[None, UNKNOWN], [None, None, UNKNOWN, UNKNOWN]], ids=str)
def test_a_report_whose_outcome_is_unknown_is_made_again_and_counts_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, outcomes: list[Exception | None]
) -> None:
    queued(store, "job-1")
    left = away(store, monkeypatch, *outcomes)
    until_done(store, at_once)
    assert (row(store).state, row(store).attempt, left) == ("SUCCEEDED", 1, [])
    accepted = [event.verb for event in store.events() if event.accepted]
    assert accepted.count("succeed") == 1


def test_a_claim_whose_outcome_is_unknown_is_freed_by_its_lease(
    open_it: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_it(replace(PATIENT, lease_seconds=0.3))
    queued(store, "job-1")
    left = away(store, monkeypatch, UNKNOWN)
    until_done(store, at_once)
    assert (row(store).state, row(store).attempt, left) == ("SUCCEEDED", 2, [])


def test_asked_to_end_while_its_database_is_away_a_worker_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away(store, monkeypatch, *[GONE] * 10**6)
    with caplog.at_level(logging.WARNING, "jobslab.loop"), working(store, at_once, grace_seconds=10 * LIMIT):
        wait_for(lambda: caplog.text.count(str(GONE)) > 2)
