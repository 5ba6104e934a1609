"""What becomes of an effect whose job is done twice?  Nothing worse than once, in one of two ways.

Leases promise that a job is done at least once, and no clause promises *once*: a worker may be given up and go on all
the same.  So the effect itself has to bear it.  A file is staged, and gets its name in one step when it is whole.
Anything that can be kept as a row is written into a ledger whose key is the job: of several tries the first counts.
An effect in somebody else's system needs the same of that system: send it the job's id as its idempotency key.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from jobslab.job import Job
from jobslab.stores.sqlite import SQLite


@contextmanager
def staged(directory: Path, name: str) -> Iterator[IO[str]]:
    """A file that gets its name when it is whole and on the disk; an unfinished one is removed, whatever ended it.
    Raises OSError."""
    unfinished = directory / f".{name}.part"
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with unfinished.open("w", newline="", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, directory / name)
        keep_names(directory)
    finally:
        with suppress(OSError):  # what went wrong before is what matters
            unfinished.unlink(missing_ok=True)


def keep_names(directory: Path) -> None:
    """The name too must be on the disk before anybody says that the file is there.  Windows has no such call."""
    if os.name == "posix":
        names = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(names)
        finally:
            os.close(names)


class Entry(NamedTuple):
    """One effect: done by the first try, and how often it was tried."""

    job_id: str
    attempt: int  # of the job, by which it was done
    effect: str
    at: float  # seconds since 1970
    tries: int


LEDGER = """CREATE TABLE IF NOT EXISTS effects (
  job_id TEXT PRIMARY KEY NOT NULL,
  attempt INTEGER NOT NULL,
  effect TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  tries INTEGER NOT NULL
)"""

ONCE = """INSERT INTO effects (job_id, attempt, effect, at, tries)
VALUES (:job_id, :attempt, :effect, :at, 1)
    ON CONFLICT (job_id) DO UPDATE SET tries = tries + 1
RETURNING job_id, attempt, effect, at, tries"""


class Ledger:
    """The effects of jobs in one SQLite file, one for each job.  Safe to share between threads and processes."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError where the file can't be used."""
        self._database = SQLite(str(path))
        with self._database.write() as db:
            db.execute(LEDGER)

    def once(self, job: Job, effect: str, now: float | None = None) -> Entry:
        """Do the effect, unless an earlier try has done it; the entry says which.  Raises StoreError."""
        row = {"job_id": job.id, "attempt": job.attempt, "effect": effect, "at": time.time() if now is None else now}
        with self._database.write() as db:
            [entry] = db.execute(ONCE, row).fetchall()
        return Entry(*entry)

    def entries(self) -> tuple[Entry, ...]:
        """All effects, by job."""
        with self._database.read() as db:
            rows = db.execute("SELECT job_id, attempt, effect, at, tries FROM effects ORDER BY job_id")
            return tuple(Entry(*row) for row in rows)

    def close(self) -> None:
        self._database.close()
