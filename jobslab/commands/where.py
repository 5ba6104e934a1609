"""`jobslab where`: where is this job?  The answer to "where is my file?", read off the store by its operator.

Exit codes: 0 it is well, or waiting is enough; 1 something is wrong, and the last line says what to do; 2 a mistake to
be mended; 3 not known from here.

`--json` prints one object:

    asked   what was asked for
    jobs    [{id, cause, verdict, means, again, known, not_known, next, sentence,
              answers, questions: [{question, answer, says}],
              stages: [{stage, reached, told_by, proves, does_not_prove}],
              journal: [{n, at, job_id, actor, verb, attempt, accepted, refused_by, state_before, state_after,
                         correlation_id}]}]; more than one where a correlation id has more
"""

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobslab.commands.service import Results, StoreUrl, results_of
from jobslab.errors import JobslabError
from jobslab.stores import is_postgresql, open_store

if TYPE_CHECKING:
    from jobslab.effects import Entry


class NoSuchFile(JobslabError):
    """What is to be looked into is not there; nothing was made."""


def where(
    asked: Annotated[str, typer.Argument(metavar="ID|CORRELATION-ID", help="Of the job, or of a request's jobs.")],
    store: StoreUrl = "jobslab.db",
    results: Results = None,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="The ledger of the jobs' effects.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who asks; the operator by default, who may see all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say where a job is: what is known of it, what is not, and what to do next."""
    from jobslab.seen import ids
    from jobslab.telling import document, text
    from jobslab.where import where as ask

    files = results_of(store, results)
    must_be_there(store, "store")
    entries = None if ledger is None else entries_of(ledger)
    with open_store(None, store) as jobs:
        told = [ask(jobs, id, files, entries, asker=owner) for id in ids(jobs, asked)]
    if as_json:
        print(json.dumps({"asked": asked, "jobs": [document(one) for one in told]}, indent=2))
    else:
        print("\n\n".join(text(one) for one in told))
    verdicts = {one.cause.verdict for one in told}
    raise typer.Exit(next(code for verdict, code in CODES.items() if verdict in verdicts))


CODES = {"WRONG": 1, "UNKNOWN": 3, "WELL": 0}  # of several jobs the first here decides


def must_be_there(path: str, what: str) -> None:
    """Raises NoSuchFile.  Whoever only looks must not make a new store by a slip of the pen, nor of an empty file."""
    if not is_postgresql(path) and not (Path(path).is_file() and Path(path).stat().st_size):
        raise NoSuchFile(f"there is no {what} {path}; name the file that the service uses")


def entries_of(ledger: Path) -> "tuple[Entry, ...]":
    """What the ledger holds.  Raises NoSuchFile, StoreError."""
    from jobslab.effects import Ledger
    from jobslab.stores.sqlite import SQLite

    must_be_there(str(ledger), "ledger")
    with closing(SQLite(str(ledger))) as database, database.read() as db:
        if not database.has_table(db, "effects"):
            raise NoSuchFile(f"{ledger} is no ledger: it has no table of effects; name the file that the workers use")
    with closing(Ledger(ledger)) as opened:
        return opened.entries()
