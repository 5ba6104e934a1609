"""A worker as a process of its own, for tests that kill it: `python worker_process.py STORE LEASE_SECONDS [THREADS]`.

Its jobs talk to the test through files in the directory of params["at"].
"""

import json
import os
import signal
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobslab.job import Job
from jobslab.loop import work
from jobslab.settings import SERVICE
from jobslab.stores import open_store

KINDS = ("busy", "poison", "held", "quick")


def busy(job: Job) -> Generator[float, None, Any]:
    """Pure Python for so long, in one chunk: it never waits, and so it never gives way of its own will."""
    begun(job)
    end = time.monotonic() + params(job)["seconds"]
    n = 0
    while time.monotonic() < end:
        n += 1
    yield 0.5
    return n


def poison(job: Job) -> Generator[float, None, Any]:
    """End the process as the kernel does when memory is out."""
    os.kill(os.getpid(), signal.SIGKILL)
    yield 0


def held(job: Job) -> Generator[float, None, Any]:
    """Wait for the file `go`."""
    begun(job)
    while not (here(job) / "go").exists():
        time.sleep(0.01)
    yield 0.5
    return job.attempt


def quick(job: Job) -> Generator[float, None, Any]:
    """Nothing: what is left is the engine's own work."""
    return job.attempt
    yield


def begun(job: Job) -> None:
    (here(job) / f"begun-{job.attempt}").touch()


def here(job: Job) -> Path:
    return Path(params(job)["at"])


def params(job: Job) -> dict[str, Any]:
    return json.loads(job.params)


def main(url: str, lease_seconds: str, threads: str = "1") -> None:
    ends: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ends.append(number))
    settings = replace(SERVICE, lease_seconds=float(lease_seconds), poll_seconds=0.05, grace_seconds=0.5)
    with open_store(None, url, settings=settings, kinds=KINDS) as store:
        tasks = {"busy": busy, "poison": poison, "held": held, "quick": quick}
        name = f"worker-{os.getpid()}"
        for _ in work(store, name, tasks, stop=lambda: bool(ends), concurrency=int(threads)):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
