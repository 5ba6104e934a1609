"""Did the business result land?  SUCCEEDED is a row that says so; this looks at the result itself.

A file has to be there, whole, and of as many rows as the job's own result says; an entry has to be in the ledger.  The
answer is one of six words, and where it can't be known it is UNKNOWN, never a guess.  Nothing is written.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from jobslab.effects import Entry
from jobslab.job import Job, State


class Landed(StrEnum):
    LANDED = "LANDED"  # the job says it is done, and its result is there as it says
    ABSENT = "ABSENT"  # the job says it is done, and its result is not there
    DAMAGED = "DAMAGED"  # the job says it is done, and what is there is not what it says
    UNREPORTED = "UNREPORTED"  # a result is there, and the job does not say so
    NOT_DUE = "NOT DUE"  # no result is there, and the job promises none (yet)
    UNKNOWN = "UNKNOWN"  # it can't be known from here


class Landing(NamedTuple):
    """Whether one result landed, in a word and in a sentence."""

    landed: Landed
    says: str
    name: str | None = None  # the file that was looked for or found, or the effect of the ledger's entry


def file_name(id: str, attempt: int) -> str:
    """What the file of a job's attempt is called: fenced like a report, and never a path out of its directory."""
    return f"{quote(id, safe='')}.{attempt}.csv"


FILE = re.compile(r"(.+)\.\d+\.csv|\.(.+)\.\d+\.csv\.part")  # a worker that was killed leaves a part (effects.staged)


def id_in(name: str) -> str | None:
    """Whose file this is by its name, whole or unfinished; None for a file that is none of ours."""
    named = FILE.fullmatch(name)
    return unquote(named[1] or named[2]) if named else None


# A file


def file(job: Job, results: Path | None) -> Landing:
    """Whether the file of this job is in `results`, the directory of all such files; None: nobody says where it is."""
    if job.state != State.SUCCEEDED:
        return unreported(job, results)
    try:
        promised = json.loads(job.result or "null")
    except ValueError:
        return Landing(Landed.UNKNOWN, "the job's result can't be read, so nobody knows which file it promised")
    if not isinstance(promised, dict) or "file" not in promised:
        return Landing(Landed.LANDED, "the job promised no file; its result is in its row")
    name = Path(str(promised["file"])).name
    if results is None:
        return Landing(Landed.UNKNOWN, f"nobody says in which directory {name} should be", name)
    return kept_promise(results / name, promised)


def kept_promise(path: Path, promised: dict[str, Any]) -> Landing:
    """Whether this file is what the job's result says of it: bytes, rows, SHA-256, as far as the result has them."""
    if not path.parent.is_dir():
        return Landing(Landed.UNKNOWN, "the directory of the results is not there, or not the one", path.name)
    try:
        found = measured(path)
    except FileNotFoundError:
        return Landing(Landed.ABSENT, f"the job says that {path.name} is there, and it is not", path.name)
    except OSError as wrong:
        return Landing(Landed.UNKNOWN, f"{path.name} can't be read just now: {wrong.strerror}", path.name)
    counts = [
        f"{found[what]} {what} of {promised[what]}" for what in ("rows", "bytes") if differs(what, promised, found)
    ]
    if counts:
        return Landing(Landed.DAMAGED, f"{path.name} has {' and '.join(counts)}", path.name)
    if differs("sha256", promised, found):
        says = f"{path.name} is as long as it should be, and its content is not what was written"
        return Landing(Landed.DAMAGED, says, path.name)
    says = f"{path.name} is there, whole, with {found['rows']} rows"
    return Landing(Landed.LANDED, says, path.name)


def differs(what: str, promised: dict[str, Any], found: dict[str, Any]) -> bool:
    return what in promised and promised[what] != found[what]


def measured(path: Path) -> dict[str, Any]:
    """The file's whole rows without its header, its bytes, and its SHA-256 in hex.  Raises OSError.

    A row is over at the end of a line that is not inside of quotes.  (The module csv would refuse a long field.)
    """
    rows, size, within, sha256 = -1, 0, False, hashlib.sha256()
    with path.open("rb") as lines:
        for line in lines:
            sha256.update(line)
            size += len(line)
            within ^= line.count(b'"') % 2 == 1
            rows += line.endswith(b"\n") and not within
    return {"rows": max(rows, 0), "bytes": size, "sha256": sha256.hexdigest()}


def unreported(job: Job, results: Path | None) -> Landing:
    """What lies in `results` of a job that has not succeeded: a file gets its name when it is whole, so a name that is
    there is a result that was made and never told, or told and refused."""
    if results is None or not results.is_dir():
        return Landing(Landed.UNKNOWN, "nobody says in which directory a file could be")
    for attempt in range(job.attempt, 0, -1):
        name = file_name(job.id, attempt)
        if (results / name).is_file():
            return Landing(Landed.UNREPORTED, f"{name} is there, and the job, {job.state}, does not say so", name)
    return Landing(Landed.NOT_DUE, f"no file is there, and the job, {job.state}, promises none")


# An entry of a ledger


def entry(job: Job, entries: Iterable[Entry]) -> Landing:
    """Whether the ledger has this job's effect.  It speaks for this ledger alone: what was done in somebody else's
    system and not written down here has to be asked there."""
    found = next((entry for entry in entries if entry.job_id == job.id), None)
    done = job.state == State.SUCCEEDED
    if found is None:
        absent = "the job says that it is done, and the ledger has no entry of it"
        not_due = f"the ledger has no entry, and the job, {job.state}, promises none"
        return Landing(Landed.ABSENT, absent) if done else Landing(Landed.NOT_DUE, not_due)
    told = f"the ledger has {found.effect!r}, done by attempt {found.attempt}"
    if done:
        return Landing(Landed.LANDED, told, found.effect)
    return Landing(Landed.UNREPORTED, f"{told}, and the job, {job.state}, does not say so", found.effect)
