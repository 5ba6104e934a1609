"""One worker of a run, as a process: `python -m jobslab.lab.chaos.worker {"url": ..., ...}`.

It is the engine's own loop with a task of ours, whose effect goes into a ledger.  `clock_off` makes this process
believe in a wrong time, by so many seconds.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jobslab.effects import Ledger
from jobslab.job import Job
from jobslab.loop import work
from jobslab.settings import SERVICE, Settings
from jobslab.stores import open_store

KIND = "wait"  # what the clients ask for; this worker does it in its own way


def settings(lease_seconds: float) -> Settings:
    return replace(SERVICE, lease_seconds=lease_seconds, poll_seconds=0.05, retry_base_seconds=0.1)


def task(ledger: Ledger, job: Job) -> Generator[float, None, Any]:
    """Half of the work, the effect, the other half: it may be killed before the effect, and after it."""
    params = json.loads(job.params)
    yield 0.1
    time.sleep(params["seconds"] / 2)
    ledger.once(job, str(params["intent"]))
    yield 0.6
    time.sleep(params["seconds"] / 2)
    return {"attempt": job.attempt}


def stopping(parent: int) -> Callable[[], bool]:
    """Asked to end by a signal, or by the end of the run's own process."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    return lambda: asked.is_set() or os.getppid() != parent


def end_with(parent: int) -> None:
    """Let this process not outlive the run's own, however that ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(url: str, name: str, lease_seconds: float, ledger: str, parent: int, clock_off: float = 0) -> None:
    if clock_off:
        right = time.time
        time.time = lambda: right() + clock_off
    effects = Ledger(Path(ledger))
    with open_store(None, url, settings=settings(lease_seconds)) as store:
        for _ in work(store, name, {KIND: partial(task, effects)}, stop=stopping(parent), grace_seconds=5):
            pass
    effects.close()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
