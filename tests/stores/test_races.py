"""What if many do it at the same moment?  Under the full contract every job is done once, and nobody sees a lock.

The leases are long and the racers live, so that no sweep may take a job: each is done at its first attempt.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from jobslab import open_store
from jobslab.settings import SERVICE
from jobslab.stores import Store
from tests.stores.racer import race

THREADS, PROCESSES = 8, 4


def together(*racers: Callable[[], list[str]]) -> list[str]:
    """What all racers did, each in a thread of its own, begun at the same moment."""
    start = Barrier(len(racers))

    def run(racer: Callable[[], list[str]]) -> list[str]:
        start.wait()
        return racer()

    with ThreadPoolExecutor(len(racers)) as pool:
        return [id for did in pool.map(run, racers) for id in did]


def every_job_was_done_once(store: Store, did: list[str], keys: int) -> None:
    rows = store.rows()
    assert sorted(job.idempotency_key for job in rows) == sorted(f"k{n}" for n in range(keys))
    assert {(job.state, job.attempt) for job in rows} == {("SUCCEEDED", 1)}
    assert Counter(did) == Counter(job.id for job in rows)
    told = Counter((event.job_id, event.verb) for event in store.events() if event.accepted and event.verb != "submit")
    assert told == Counter((job.id, verb) for job in rows for verb in ("claim", "succeed"))


def test_eight_threads_on_one_store_do_every_job_once(open_it: Callable[..., Store]) -> None:
    store, keys = open_it(settings=SERVICE), 25
    did = together(*[lambda name=f"thread{n}": race(store, name, keys) for n in range(THREADS)])
    every_job_was_done_once(store, did, keys)
    assert len(store.events()) == keys * (THREADS + 2)


def racing_process(file: str, name: str, keys: int) -> Callable[[], list[str]]:
    """A process that has imported all it needs and waits for its start."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.stores.racer", file, name, str(keys)],
        cwd=Path(__file__).parents[2], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip

    def run() -> list[str]:
        out, err = process.communicate("go\n")
        assert (process.returncode, err) == (0, ""), err
        return json.loads(out)

    return run


def racing_thread(file: str, name: str, keys: int) -> Callable[[], list[str]]:
    def run() -> list[str]:
        with open_store(None, file) as store:
            return race(store, name, keys)

    return run


def threads_and_processes(file: str, keys: int) -> None:
    """All at once, from the making of the store on."""
    processes = [racing_process(file, f"process{n}", keys) for n in range(PROCESSES)]
    threads = [racing_thread(file, f"thread{n}", keys) for n in range(THREADS)]
    did = together(*processes, *threads)
    with open_store(None, file) as store:
        every_job_was_done_once(store, did, keys)
        assert len(store.events()) == keys * (THREADS + PROCESSES + 2)


def test_eight_threads_and_four_processes_make_one_store_and_do_every_job_once(tmp_path: Path) -> None:
    threads_and_processes(str(tmp_path / "jobs.db"), keys=20)


@pytest.mark.long
@pytest.mark.parametrize("round", range(5))
def test_they_do_so_again_and_again(tmp_path: Path, round: int) -> None:
    threads_and_processes(str(tmp_path / "jobs.db"), keys=100)


@pytest.mark.parametrize("round", range(5))
def test_many_that_make_the_store_at_the_same_moment_make_one(tmp_path: Path, round: int) -> None:
    file = str(tmp_path / "jobs.db")
    did = together(*[racing_thread(file, f"thread{n}", 1) for n in range(THREADS)])
    with open_store(None, file) as store:
        every_job_was_done_once(store, did, 1)
