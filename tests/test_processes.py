"""What is promised when workers are real processes, and some of them are killed, stopped or asked to end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobslab.job import Job
from jobslab.lab.stop import stop_between_writes
from jobslab.stores import Store, open_store
from jobslab.sweeper import sweep
from tests import worker_process

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are POSIX's")

LATER = 10**12  # when every lease is over


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "jobs.db")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with open_store(None, path, kinds=worker_process.KINDS) as store:
        yield store


@contextmanager
def worker(path: str, lease_seconds: float = 30) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, worker_process.__file__, path, str(lease_seconds)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def submitted(store: Store, tmp_path: Path, kind: str, **options: Any) -> None:
    params = {"at": str(tmp_path), **options.pop("params", {})}
    store.submit("job-1", kind, params, **options)


def job(store: Store) -> Job:
    return store.rows()[0]


def wait_for(what: Callable[[], object]) -> None:
    """Until it is true.  The limit is none of the promise: it ends a test that waits in vain."""
    enough = time.monotonic() + 60
    while not what():
        assert time.monotonic() < enough, "waited in vain"
        time.sleep(0.01)


def test_a_task_that_never_waits_does_not_keep_its_worker_from_renewing(
    store: Store, path: str, tmp_path: Path
) -> None:
    lease = 1.5
    submitted(store, tmp_path, "busy", params={"seconds": 2.5 * lease})
    with worker(path, lease):
        while not job(store).done:
            assert sweep(store) == [], "its lease ran out"
            time.sleep(0.05)
    assert (job(store).state, job(store).attempt) == ("SUCCEEDED", 1)
    verbs = [event.verb for event in store.events()]
    assert verbs.count("renew") >= 5


def test_the_job_of_a_killed_worker_is_done_by_another(store: Store, path: str, tmp_path: Path) -> None:
    submitted(store, tmp_path, "held")
    with worker(path) as killed:
        wait_for((tmp_path / "begun-1").exists)
        killed.kill()
        killed.wait()
    assert job(store).state == "RUNNING"
    assert store.requeue("job-1", 1, now=LATER).accepted
    (tmp_path / "go").touch()
    with worker(path):
        wait_for(lambda: job(store).done)
    assert (job(store).state, job(store).attempt, job(store).result) == ("SUCCEEDED", 2, "2")


def test_a_job_that_kills_each_worker_fails_after_its_last_attempt(store: Store, path: str, tmp_path: Path) -> None:
    submitted(store, tmp_path, "poison", max_attempts=3)
    for attempt in (1, 2, 3):
        with worker(path) as poisoned:
            assert poisoned.wait() == -signal.SIGKILL
        assert (job(store).state, job(store).attempt) == ("RUNNING", attempt)
        sweep(store, now=LATER)
    assert job(store).state == "FAILED"
    assert "gave up after 3 attempts" in str(job(store).error)


def test_asked_to_end_a_process_finishes_its_job_and_ends_well(store: Store, path: str, tmp_path: Path) -> None:
    submitted(store, tmp_path, "held")
    store.submit("job-2", "held", {"at": str(tmp_path)})
    with worker(path) as asked:
        wait_for((tmp_path / "begun-1").exists)
        (tmp_path / "go").touch()
        asked.terminate()
        assert asked.wait() == 0
    assert job(store).state == "SUCCEEDED"


def test_asked_to_end_a_process_gives_back_what_it_does_not_finish(store: Store, path: str, tmp_path: Path) -> None:
    submitted(store, tmp_path, "held")
    with worker(path) as asked:
        wait_for((tmp_path / "begun-1").exists)
        asked.terminate()
        assert asked.wait() == 0
    assert (job(store).state, job(store).attempt) == ("QUEUED", 1)
    assert job(store).run_at == job(store).updated_at, "at once, and not when its lease is over"


def test_a_worker_that_slept_through_its_lease_writes_no_result(store: Store, path: str, tmp_path: Path) -> None:
    submitted(store, tmp_path, "held")
    with worker(path) as stopped:
        wait_for((tmp_path / "begun-1").exists)
        stop_between_writes(stopped, path)
        assert store.requeue("job-1", 1, now=LATER).accepted
        taken = store.claim("job-1", "B").job
        (tmp_path / "go").touch()
        stopped.send_signal(signal.SIGCONT)
        wait_for(lambda: store.events()[-1].refused_by == "current")
    assert job(store) == taken
