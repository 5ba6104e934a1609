"""What do jobs do?  Export a table to a file; and for the lab: take their time, fail a few times, fail.

A task is a generator: it yields its progress after each chunk and returns the result.  The file of an export carries
the job's attempt in its name, so that the effect is fenced like the report: of two workers that export the same job
each writes its own file, and the result that is accepted names one of them.
"""

import csv
import hashlib
import json
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from jobslab.clock import Clock, SystemClock
from jobslab.effects import staged
from jobslab.job import Job
from jobslab.landing import file_name
from jobslab.source import connect, table_names
from jobslab.worker import Permanent, Task, Transient

CHUNK_ROWS = 500  # between two reports of an export
LONGEST_SECONDS = 24 * 3600
MOST = 10_000  # chunks, failures

Chunks = Generator[float, None, dict[str, Any]]


def tasks(source: Path, results: Path, clock: Clock | None = None) -> dict[str, Task]:
    """The task of each of job.KINDS.  `source` is the SQLite database that is exported, `results` the directory where
    the files go, and `clock` is what `wait` sleeps by."""
    return {
        "export": partial(export, source, results),
        "wait": partial(wait, clock or SystemClock()),
        "flaky": flaky,
        "fail": fail,
    }


def export(source: Path, results: Path, job: Job) -> Chunks:
    """Write the table of params["table"] as CSV into `results`; {"file", "rows", "bytes", "sha256"}, the file as its
    name there.

    Raises Permanent where there is no such table, Transient where the source or the directory can't be used now.
    """
    table = text(job, "table")
    name = file_name(job.id, job.attempt)
    with reading(source) as db, written(results, name) as file:
        if table not in table_names(db):
            raise Permanent("source table missing", f"the source has no table {table!r}")
        rows = 0
        for rows, total in copied(db, table, file):
            yield rows / (total + 1)  # the file is not in its place yet
        size, sha256 = measured(file)
    return {"file": name, "rows": rows, "bytes": size, "sha256": sha256}


def copied(db: sqlite3.Connection, table: str, file: IO[str]) -> Iterator[tuple[int, int]]:
    """Write the table's header and rows; yields, after each chunk, (rows written, rows in all)."""
    quoted = '"' + table.replace('"', '""') + '"'
    writer = csv.writer(file)
    db.execute("BEGIN")  # the count and the rows are of one moment, whoever writes meanwhile
    total = db.execute(f"SELECT count(*) FROM {quoted}").fetchone()[0]
    rows = db.execute(f"SELECT * FROM {quoted}")
    writer.writerow([column[0] for column in rows.description])
    written = 0
    while chunk := rows.fetchmany(CHUNK_ROWS):
        writer.writerows([[plain(value) for value in row] for row in chunk])
        written += len(chunk)
        yield written, total


def plain(value: Any) -> Any:
    """The value as CSV can hold it: bytes in hex."""
    return value.hex() if isinstance(value, bytes) else value


@contextmanager
def reading(source: Path) -> Iterator[sqlite3.Connection]:
    """The source, whose troubles become the task's: a lock passes, a damage does not."""
    try:
        with closing(connect(source)) as db:
            yield db
    except sqlite3.OperationalError as wrong:
        if any(part in str(wrong) for part in ("locked", "busy", "unable to open", "disk I/O")):
            raise Transient("source unavailable", f"the source can't be read just now: {wrong}") from wrong
        raise Permanent("source unreadable", f"the table can't be read: {wrong}") from wrong
    except sqlite3.DatabaseError as wrong:
        raise Permanent("source unreadable", f"the source can't be read: {wrong}") from wrong


@contextmanager
def written(results: Path, name: str) -> Iterator[IO[str]]:
    """The file of the result; what is wrong with the disk may pass."""
    try:
        with staged(results, name) as file:
            yield file
    except OSError as wrong:
        raise Transient("results unavailable", f"the result can't be written just now: {wrong.strerror}") from wrong


def measured(file: IO[str]) -> tuple[int, str]:
    """What is written so far: its size in bytes, and its SHA-256 in hex."""
    file.flush()
    with open(file.name, "rb") as written:
        sha256 = hashlib.file_digest(written, "sha256").hexdigest()
        return written.tell(), sha256


def wait(clock: Clock, job: Job) -> Chunks:
    """Take params["seconds"] of time, in params["chunks"] (1 where it is not said)."""
    seconds = number(job, "seconds", 0, LONGEST_SECONDS)
    chunks = number(job, "chunks", 1, MOST, whole=True, default=1)
    for chunk in range(1, chunks + 1):
        clock.sleep(seconds / chunks)
        yield chunk / (chunks + 1)
    return {"seconds": seconds, "chunks": chunks}


def flaky(job: Job) -> Chunks:
    """Fail in the first params["failures"] attempts, and then be done."""
    failures = number(job, "failures", 0, MOST, whole=True)
    yield 0
    if job.attempt <= failures:
        raise Transient("flaky", f"attempt {job.attempt} fails, as the first {failures} do")
    return {"attempt": job.attempt}


def fail(job: Job) -> Chunks:
    """Fail for good, with params["type"] and params["message"]."""
    type, message = text(job, "type"), text(job, "message")
    yield 0
    raise Permanent(type, message)


# Params: what a caller wrote, so anything may be in them


def text(job: Job, name: str) -> str:
    """The param, a text that is not empty.  Raises Permanent."""
    value = json.loads(job.params).get(name)
    return value if isinstance(value, str) and value else bad(job, name, "a text that is not empty")


def number(job: Job, name: str, low: float, high: float, *, whole: bool = False, default: float | None = None) -> Any:
    """The param, a number from `low` to `high`.  Raises Permanent."""
    value = json.loads(job.params).get(name, default)
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if is_number and low <= value <= high:
        return value
    return bad(job, name, f"a {'whole ' * whole}number from {low} to {high}")


def bad(job: Job, name: str, wanted: str) -> Any:
    raise Permanent("bad params", f"{job.kind} needs params.{name}: {wanted}")
