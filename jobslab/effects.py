"""What becomes of an effect whose job is done twice?  Nothing worse than once, in one of these ways.

Leases promise that a job is done at least once, and no clause promises *once*: a worker may be given up and go on all
the same.  So the effect itself has to bear it.  A file is staged, and gets its name in one step when it is whole.
Anything that can be kept as a row is written into a ledger whose key is the job: of several tries the first counts.
An effect in somebody else's system needs the same of that system: send it the job's id as its idempotency key.

A job of several steps writes down each that it has done, so that a second run goes on where the first stopped; and if
one fails for good, those before it are undone, the last first.  A step may be done and not written down: so each still
has to bear being done twice, the undoing too.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

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

ENTRIES = "SELECT job_id, attempt, effect, at, tries FROM effects"


class Ledger:
    """The effects of jobs in one SQLite file, one for each job.  Safe to share between threads and processes."""

    def __init__(self, path: Path | None) -> None:
        """None: without a file, and gone when closed.  Raises StoreError where the file can't be used."""
        self._database = SQLite(None if path is None else str(path))
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
            return tuple(Entry(*row) for row in db.execute(f"{ENTRIES} ORDER BY job_id"))

    def of(self, job_id: str) -> Entry | None:
        """The effect of this job, if it was done."""
        with self._database.read() as db:
            row = db.execute(f"{ENTRIES} WHERE job_id = :job_id", {"job_id": job_id}).fetchone()
            return row and Entry(*row)

    def close(self) -> None:
        self._database.close()


# Jobs of several steps

STEPS = """CREATE TABLE IF NOT EXISTS steps (
  job_id TEXT NOT NULL,
  step TEXT NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (job_id, step)
)"""

RECORD = """INSERT INTO steps (job_id, step, result)
VALUES (:job_id, :step, :result)
    ON CONFLICT (job_id, step) DO NOTHING"""

RECORDED = "SELECT result FROM steps WHERE job_id = :job_id AND step = :step"


class Checkpoints:
    """The steps that jobs have done, in one SQLite file.  Safe to share between threads and processes."""

    def __init__(self, path: Path | None) -> None:
        """None: without a file, and gone when closed.  Raises StoreError where the file can't be used."""
        self._database = SQLite(None if path is None else str(path))
        with self._database.write() as db:
            db.execute(STEPS)

    def once(self, job_id: str, step: str, do: Callable[[], Any]) -> Any:
        """What the step gave (anything that JSON can say), when it was first written down.

        It is done unless it is written down: at least once, and again if the worker ends between the two.
        """
        if not self.has(job_id, step):
            row = {"job_id": job_id, "step": step, "result": json.dumps(do())}
            with self._database.write() as db:
                db.execute(RECORD, row)
        with self._database.read() as db:
            return json.loads(db.execute(RECORDED, {"job_id": job_id, "step": step}).fetchone()[0])

    def has(self, job_id: str, step: str) -> bool:
        """Is this step written down as done?"""
        with self._database.read() as db:
            return db.execute(RECORDED, {"job_id": job_id, "step": step}).fetchone() is not None

    def close(self) -> None:
        self._database.close()


class Step(NamedTuple):
    """One step of a saga, and what takes it back.  Both have to bear being done twice."""

    name: str
    do: Callable[[], Any]
    undo: Callable[[], Any]


class Undone(Exception):
    """A step failed for good, and those before it are undone; its text is the step's error."""


GIVEN_UP = "given up"


def saga(done: Checkpoints, job_id: str, steps: Sequence[Step], for_good: type[Exception]) -> list[Any]:
    """Do all steps, or none that lasts; what each gave.

    When one raises `for_good`, those before it are undone, the last first, and Undone is raised.  A second run goes on
    where the first stopped, in the undoing too: that it gave up is the first thing to be written down, so that it
    never goes forward again.  Any other exception leaves things as they are, for a second run.
    """
    if not done.has(job_id, GIVEN_UP):
        try:
            return [done.once(job_id, step.name, step.do) for step in steps]
        except for_good as wrong:
            why = str(wrong)
            done.once(job_id, GIVEN_UP, lambda: why)
    for step in reversed(steps):
        if done.has(job_id, step.name):
            done.once(job_id, f"undo {step.name}", step.undo)
    raise Undone(done.once(job_id, GIVEN_UP, str))
