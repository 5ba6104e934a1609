"""How is a process stopped where it stands, without stopping all others with it?  Not in the middle of a write.

A process that is stopped inside a transaction keeps the lock that it has: on SQLite nobody else writes until it is
woken, on PostgreSQL nobody touches that row.  That is a fault too (`jobslab chaos` lets it happen), but it is another
lesson than a worker that outlives its lease.
"""

import os
import signal
import time
from subprocess import Popen
from typing import Any

from jobslab.errors import StoreError
from jobslab.lab.child import LabError
from jobslab.stores import is_postgresql, postgresql
from jobslab.stores.sqlite import SQLite

PATIENCE_SECONDS = 0.3  # another process is done with its write by then; shorter than any lease here
ON_SECONDS = 0.02  # for the process to go on: stopped again at once, it would not move at all
TRIES = 100


def stop_between_writes(process: "Popen[Any]", url: str) -> None:
    """SIGSTOP to a child of ours that uses the store at `url`.  Raises LabError where that can't be done."""
    for _ in range(TRIES):
        process.send_signal(signal.SIGSTOP)
        if process.poll() is not None or not stands_still(process.pid):
            raise LabError(f"process {process.pid} can't be stopped: it has ended; start another one")
        if others_can_write(url):
            return
        process.send_signal(signal.SIGCONT)
        time.sleep(ON_SECONDS)
    raise LabError(f"process {process.pid} is not met between two writes: see whether the store can be written at all")


def stands_still(pid: int) -> bool:
    """Wait for it: the signal is sent, and the process has yet to heed it.  False: it has ended instead."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    return os.WIFSTOPPED(status)


def others_can_write(url: str) -> bool:
    """Is the lock that every write needs free, or soon so?"""
    database = postgresql(url) if is_postgresql(url) else SQLite(url, busy_seconds=PATIENCE_SECONDS)
    try:
        with database.write() as db:
            if is_postgresql(url):
                db.execute(f"SET LOCAL lock_timeout = {PATIENCE_SECONDS * 1000:.0f}")
                db.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
            return True
    except StoreError:
        return False
    finally:
        database.close()
