"""What does a 202 cost while others poll as fast as they may?

One server process and one worker process on one file, one client process that submits 50 jobs a second for 30 seconds,
and one whose four threads poll the running job without a pause.  The time of a 202 counts from the moment when its
submit was due, so that a server that falls behind can't hide it.
"""

import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import httpx2

RATE, SECONDS = 50, 30
SUBMITTERS, POLLERS = 8, 4
JOBSLAB = [sys.executable, "-c", "from jobslab.cli import main; main()"]
LONG = {"kind": "wait", "params": {"seconds": 600, "chunks": 600}}  # what is polled
QUICK = {"kind": "wait", "params": {"seconds": 0}}


@contextmanager
def started(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen([*JOBSLAB, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def service(folder: str) -> Iterator[str]:
    """The address of a service with one worker."""
    store = str(Path(folder, "jobs.db"))
    with ExitStack() as stack:
        server = stack.enter_context(started("serve", "--port", "0", "--store", store))
        assert server.stdout
        address = re.search(r"http://[^ ]+", server.stdout.readline())
        assert address
        worker = stack.enter_context(started("work", "--store", store))
        stack.callback(worker.kill)  # it has a job of ten minutes in hand
        yield address[0]


def client(url: str) -> httpx2.Client:
    return httpx2.Client(base_url=url, timeout=30, trust_env=False)


def poll(url: str, job: str, stop: Event, told: Any) -> None:
    """Poll until told to stop; tells how many polls there were and how many went wrong."""

    def one(_: int) -> tuple[int, int]:
        polls = wrong = 0
        with client(url) as http:
            while not stop.is_set():
                polls += 1
                wrong += http.get(job).status_code != 200
        return polls, wrong

    with ThreadPoolExecutor(POLLERS) as pool:
        told.put([sum(column) for column in zip(*pool.map(one, range(POLLERS)))])


def submit(url: str) -> tuple[list[float], int]:
    """Milliseconds from when each submit was due to its 202, and how many were no 202."""
    local = threading.local()
    began = time.perf_counter()

    def one(n: int) -> tuple[float, int]:
        if not hasattr(local, "http"):
            local.http = client(url)
        due = began + n / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        status = local.http.post("/jobs", json=QUICK, headers={"Idempotency-Key": f"n-{n}"}).status_code
        return (time.perf_counter() - due) * 1000, int(status != 202)

    with ThreadPoolExecutor(SUBMITTERS) as pool:
        times, wrong = zip(*pool.map(one, range(RATE * SECONDS)))
    return list(times), sum(wrong)


def measured(url: str, polled: bool) -> tuple[list[float], int, int, int]:
    """The times of the 202s in milliseconds, how many submits failed, how many polls there were, how many failed."""
    with client(url) as http:
        job = http.post("/jobs", json=LONG).headers["Location"]
        while http.get(job).json()["state"] != "RUNNING":
            time.sleep(0.05)
    spawn = multiprocessing.get_context("spawn")
    stop, told = spawn.Event(), spawn.Queue()
    process = spawn.Process(target=poll, args=(url, job, stop, told))
    if polled:
        process.start()
    times, failed = submit(url)
    stop.set()
    polls, wrong = told.get() if polled else (0, 0)
    if polled:
        process.join()
    return times, failed, polls, wrong


def main() -> None:
    print(f"\nHTTP: {RATE} submits a second for {SECONDS} s beside {POLLERS} pollers without a pause")
    for polled in (False, True):
        with tempfile.TemporaryDirectory() as folder, service(folder) as url:
            times, failed, polls, wrong = measured(url, polled)
        cuts = statistics.quantiles(times, n=100)
        print(
            f"  {'polled ' if polled else 'alone  '} 202 after p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, "
            f"errors {failed} of {len(times)}; {polls / SECONDS:.0f} polls a second, errors {wrong}"
        )


if __name__ == "__main__":
    main()
