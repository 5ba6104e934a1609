"""What if many workers take thousands of short jobs?  Each is claimed once, none is left, nobody hears of a lock."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobslab.lab.postgres import a_store
from jobslab.stores import Store, open_store
from tests import postgres, worker_process

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the workers are ended by a signal")


@contextmanager
def workers(url: str, processes: int, threads: int, log: Path) -> Iterator[None]:
    """Worker processes, each with so many threads; at the end they are asked to end, and do."""
    command = [sys.executable, worker_process.__file__, url, "60", str(threads)]
    with log.open("w") as err:
        started = [subprocess.Popen(command, stderr=err) for _ in range(processes)]
        try:
            yield
            for process in started:
                process.terminate()
            assert [process.wait(60) for process in started] == [0] * processes
        finally:
            for process in started:
                process.kill()
                process.wait()


def submitted(store: Store, jobs: int, name: str = "job") -> None:
    for first in range(0, jobs, 500):
        last = min(first + 500, jobs)
        store.submit_many([{"id": f"{name}-{n}", "kind": "quick", "params": {}} for n in range(first, last)])


def wait_until_none_is_left(store: Store) -> None:
    """As long as something goes on."""
    left, seen = -1, time.monotonic()
    while (now := unfinished(store)) > 0:
        if now != left:
            left, seen = now, time.monotonic()
        assert time.monotonic() < seen + 60, f"{left} jobs are left, and nothing goes on"
        time.sleep(0.5)


def unfinished(store: Store) -> int:
    with store.database.read() as db:
        return int(db.execute("SELECT count(*) FROM jobs WHERE state = 'QUEUED' OR state = 'RUNNING'").fetchone()[0])


def each_was_claimed_once(store: Store, jobs: int) -> None:
    assert Counter((job.state, job.attempt) for job in store.rows()) == {("SUCCEEDED", 1): jobs}
    told = Counter((event.verb, event.accepted) for event in store.events())
    assert told == {("submit", 1): jobs, ("claim", 1): jobs, ("succeed", 1): jobs}
    claims = Counter(event.job_id for event in store.events() if event.verb == "claim")
    assert set(claims.values()) == {1}


@pytest.mark.long
def test_twenty_workers_on_one_postgresql_claim_each_of_twenty_thousand_jobs_once(tmp_path: Path) -> None:
    jobs = 20_000
    with (
        a_store(postgres.server_url(), f"load_{tmp_path.name}"[:60]) as url,
        open_store(None, url, kinds=["quick"]) as store,
    ):
        submitted(store, jobs // 2, "early")
        with workers(url, 4, 5, tmp_path / "log"):
            submitted(store, jobs // 2, "late")
            wait_until_none_is_left(store)
        each_was_claimed_once(store, jobs)
        assert len({job.worker for job in store.rows()}) == 20, "some of them never got a job"
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("jobs", [300, pytest.param(4000, marks=pytest.mark.long)])
def test_eight_processes_that_write_one_file_hear_of_no_lock(tmp_path: Path, jobs: int) -> None:
    path = str(tmp_path / "jobs.db")
    with open_store(None, path, kinds=["quick"]) as store:
        with workers(path, 8, 1, tmp_path / "log"):
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda name: one_by_one(store, jobs // 2, name), ("a", "b")))
            wait_until_none_is_left(store)
        each_was_claimed_once(store, jobs)
    assert (tmp_path / "log").read_text() == "", "a warning of a worker would be here"


def one_by_one(store: Store, jobs: int, name: str) -> None:
    for n in range(jobs):
        store.submit(f"{name}-{n}", "quick", {})
