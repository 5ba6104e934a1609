"""What is true at which stage, from a POST to a file in the caller's hands?  Real exports, stopped at every stage.

The worker is taken by the hand: it claims, works, and reports in three steps, so that one can look in between.  Of the
tables of the source `orders` is the sample, `refunds` has the same columns and no row, and others are not there.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jobslab.api import create_app
from jobslab.client import JobClient, Rejected
from jobslab.clock import counted
from jobslab.contract import Contract
from jobslab.job import Job
from jobslab.lab.export import rows_in
from jobslab.lab.transport import InProcess
from jobslab.source import as_database, sample
from jobslab.stores import open_store
from jobslab.tasks import tasks
from jobslab.worker import News, Worker, begun, claim, labour, report

if TYPE_CHECKING:
    import pandas as pd


def stages(*tables: str) -> "pd.DataFrame":
    """What is to be seen at each stage: a line a stage, a column for the export of each table."""
    import pandas as pd

    with TemporaryDirectory() as folder:
        source = with_refunds(as_database(sample(), folder))
        return pd.DataFrame({table: life(table, source, Path(folder) / table) for table in tables})


def life(table: str, source: Path, directory: Path) -> dict[str, str]:
    """One export, stage by stage; what it makes lies in this directory."""
    results = directory / "results"
    with closing(open_store(Contract())) as store:
        transport = InProcess(create_app(store, ids=counted(), results=results))
        with JobClient("http://lab", transport=transport) as client:
            posted = client.submit_once("export", {"table": table})
            seen = {"accepted": f"{posted.status}, {state(client)}"}
            worker, job = claim(store, Worker("A", in_one=True))
            seen["claimed"] = state(client)
            worker, last_word = work(worker, job, source, results)
            seen["the work is done"] = f"{state(client)}, {lying_in(results)}"
            report(store, worker, last_word)
            seen["reported"] = state(client)
            seen["delivered"] = delivered(client, directory)
            return seen


def with_refunds(source: Path) -> Path:
    """The source with a second table, which is empty."""
    with closing(sqlite3.connect(source)) as db:
        db.execute("CREATE TABLE refunds AS SELECT * FROM orders WHERE FALSE")
        db.commit()
    return source


def work(worker: Worker, job: Job | None, source: Path, results: Path) -> tuple[Worker, News]:
    """The worker after all of its work, with what it has to report and has not yet."""
    assert job is not None
    chunks = begun(tasks(source, results)[job.kind], job)
    worker, last_word = labour(worker, chunks, lambda: 0, lambda worker, news: worker)
    assert last_word is not None
    return worker, last_word


def state(client: JobClient) -> str:
    """What the API says of the job."""
    told = client.get("job-1").body
    return f"{told['state']}: {told['error']['type']}" if "error" in told else str(told["state"])


def lying_in(results: Path) -> str:
    """Which files the work has left."""
    files = sorted(results.glob("*.csv"))
    return f"a file of {rows_in(files[0])} rows" if files else "no file"


def delivered(client: JobClient, directory: Path) -> str:
    """What the caller has in hands after GET /jobs/job-1/result."""
    directory.mkdir(exist_ok=True)
    try:
        return f"{rows_in(client.download('job-1', directory))} rows"
    except Rejected as wrong:
        return str(wrong)
