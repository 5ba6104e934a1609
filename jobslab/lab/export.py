"""Does the real work get done?  Every table of a file, exported through the whole path: a POST, a worker, a download.

Nothing is staged here: the clock is the machine's, the ids are unguessable, the worker is the one that `jobslab work`
runs, and the rows are counted in the file that came back over HTTP.
"""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from jobslab.api import create_app
from jobslab.client import Accepted, JobClient
from jobslab.contract import Contract
from jobslab.errors import SourceError
from jobslab.lab.transport import InProcess
from jobslab.source import as_database, connect, table_names
from jobslab.stores import Store, open_store
from jobslab.tasks import tasks
from jobslab.worker import run


class Exported(NamedTuple):
    """What became of one table."""

    table: str
    job: str
    state: str
    rows_in_table: int
    rows_in_file: int | None  # None: there is no file
    error: str | None

    @property
    def whole(self) -> bool:
        return self.rows_in_file == self.rows_in_table


def export(data: Path, directory: Path, contract: Contract = Contract()) -> list[Exported]:
    """Export each table of a CSV or SQLite file; store, results and downloads lie in `directory`.

    Raises SourceError where the file is neither, StoreError.
    """
    source = as_database(data, directory)
    rows = counts(source)
    results = directory / "results"
    with closing(open_store(contract, str(directory / "export.db"))) as store:
        store.start_server()
        with JobClient("http://lab", transport=InProcess(create_app(store, results=results))) as client:
            accepted = {table: client.submit("export", {"table": table}) for table in rows}
            work(store, source, results)
            return [exported(client, table, accepted[table], rows[table], directory) for table in rows]


def work(store: Store, source: Path, results: Path) -> None:
    """Be the worker, until no job is waiting."""
    for _ in run(store, "worker-1", tasks(source, results), stop=lambda: store.waiting() == 0):
        pass


def counts(source: Path) -> dict[str, int]:
    """How many rows each table has.  Raises SourceError."""
    with closing(connect(source)) as db:
        try:
            return {name: db.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] for name in table_names(db)}
        except sqlite3.Error as wrong:
            raise SourceError(
                f"{source} has a table that can't be read ({wrong}); mend it, or name another file"
            ) from wrong


def quoted(name: str) -> str:
    """A name of a table as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def exported(client: JobClient, table: str, accepted: Accepted, rows: int, directory: Path) -> Exported:
    """The table beside what came of it."""
    job = client.get(accepted.id).body
    if job["state"] != "SUCCEEDED":
        error = (job.get("error") or {}).get("message")
        return Exported(table, job["id"], job["state"], rows, None, error)
    return Exported(table, job["id"], job["state"], rows, rows_in(client.download(accepted.id, directory)), None)


def rows_in(file: Path) -> int:
    """The rows of a CSV file under its header."""
    with file.open(newline="", encoding="utf-8") as lines:
        return sum(1 for _ in csv.reader(lines)) - 1
