"""The work was done, and the one who should have told is dead.  What finds that out, and what mends it?

Three things that lie in a shop in the morning: a file that was written and never reported; a payment that the service
has and the shop's own database does not; a job that is done, and whose file somebody has deleted.  The worker of each
had its last attempt, so that a sweep gives it up.
"""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobslab.clock import counted
from jobslab.contract import Contract
from jobslab.effects import Ledger
from jobslab.job import Job, State
from jobslab.lab.again import LATER
from jobslab.lab.payment import Account, shared
from jobslab.landing import Landed, Landing
from jobslab.reconcile import Finding, Found, Probe, files, reconcile
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from jobslab.sweeper import sweep
from jobslab.tasks import export
from jobslab.worker import begun

if TYPE_CHECKING:
    import pandas as pd

FILE, PAYMENT, LOST = "file-job", "pay-job", "lost-job"  # the ids of the three


class Shop(NamedTuple):
    """A store, and where its jobs have their effects."""

    store: Store
    results: Path
    account: Account  # of the customer, at the payment service
    ledger: Ledger  # of the shop

    def reconcile(self, *, dry_run: bool = False) -> list[Finding]:
        """Files, and then payments, compared and repaired when every lease is over."""
        ids = counted(row.id for row in self.store.rows())
        return [
            finding
            for probe in (only("export", files(self.results)), only("work", payments(self)))
            for finding in reconcile(self.store, probe, dry_run=dry_run, ids=ids, now=LATER)
        ]

    def compared(self, *, dry_run: bool = False) -> "pd.DataFrame":
        """The same as a table: a line a job that does not agree."""
        import pandas as pd

        findings = self.reconcile(dry_run=dry_run)
        rows = [(one.id, one.landing.says, str(one.action), one.done or "") for one in findings]
        return pd.DataFrame(rows, columns=["job", "found", "what follows", "done"], index=range(1, len(rows) + 1))

    def sweep(self) -> None:
        sweep(self.store, now=LATER)

    def states(self) -> dict[str, str]:
        return {row.id: row.state for row in self.store.rows()}

    def books(self) -> str:
        return f"paid {len(self.account.movements())}, in the ledger {len(self.ledger.entries())}"

    def lying(self) -> str:
        """How many files there are."""
        return f"{len(list(self.results.glob('*.csv')))} files"


@contextmanager
def shop() -> Iterator[Shop]:
    """A shop in the morning after all that."""
    with (
        tempfile.TemporaryDirectory(prefix="jobslab-") as folder,
        open_store(Contract(), settings=LAB, kinds=("export", "work")) as store,
        closing(Ledger(None)) as ledger,
    ):
        made = Shop(store, Path(folder) / "results", shared().account(), ledger)
        source = orders(Path(folder) / "source.db")
        writes(made, source, FILE)
        pays(made, PAYMENT)
        told = writes(made, source, LOST)
        store.succeed(LOST, 1, "A", told, now=0)
        next(made.results.glob(f"{LOST}.*")).unlink()
        yield made


def orders(path: Path) -> Path:
    """A small database to export."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE orders (id INTEGER, total INTEGER)")
        db.executemany("INSERT INTO orders VALUES (?, ?)", [(1, 30), (2, 45), (3, 12)])
        db.commit()
    return path


def claimed(shop: Shop, id: str, kind: str) -> Job:
    """A new job, in the hands of worker A, for the first and last time."""
    shop.store.submit(id, kind, {"table": "orders"} if kind == "export" else {}, max_attempts=1, now=0)
    reply = shop.store.claim_next("A", now=0)
    assert reply is not None
    assert reply.job is not None
    return reply.job


def writes(shop: Shop, source: Path, id: str) -> object:
    """The whole export, up to the report that it would make."""
    chunks = begun(lambda job: export(source, shop.results, job), claimed(shop, id, "export"))
    while True:
        try:
            next(chunks)
        except StopIteration as end:
            return end.value


def pays(shop: Shop, id: str) -> None:
    """The payment, up to the record of it that the shop would make."""
    shop.account.pay(claimed(shop, id, "work").id, key=id)


# Asking the service


def only(kind: str, probe: Probe) -> Probe:
    """The probe for jobs of one kind; all others are none of its business."""
    agrees = Found(Landing(Landed.NOT_DUE, "another probe asks"))
    return lambda job: probe(job) if job.kind == kind else agrees


def payments(shop: Shop) -> Probe:
    """Asks the payment service about each job, by the job's id: whoever sends no reference can't be asked about."""

    def found(job: Job) -> Found:
        times = sum(movement.reference == job.id for movement in shop.account.movements())
        return compared(job, times, shop.ledger.of(job.id) is not None, *mends(job))

    def mends(job: Job) -> tuple[Callable[[], object], Callable[[], object]]:
        return lambda: shop.ledger.once(job, "paid"), lambda: shop.account.pay(job.id, key=job.id)

    return found


def compared(job: Job, times: int, recorded: bool, record: Callable[[], object], pay: Callable[[], object]) -> Found:
    """What the service says of a job, beside what the ledger says.  Both mends may be done twice: the ledger has its
    unique key, and the service its own."""
    done = job.state == State.SUCCEEDED
    if times > 1:
        return Found(Landing(Landed.DAMAGED, f"the service was paid {times} times"))
    if times == 0:
        absent = Landing(Landed.ABSENT, "the job says it is done, and the service was never paid")
        return Found(absent, mend=pay) if done else Found(Landing(Landed.NOT_DUE, "the service was not paid"))
    missing = "" if recorded else ", and the ledger does not know"
    landed = Landing(Landed.LANDED if done else Landed.UNREPORTED, f"the service was paid{missing}")
    return Found(landed, {"paid": 1}, mend=None if recorded else record)


# The scenario


def reconciled(switches: str) -> dict[str, str]:
    """How the three stand after a sweep, alone or after a reconciliation: the scenario's rows."""
    with shop() as made:
        if switches == "reconcile":
            made.reconcile()
        made.sweep()
        states = made.states()
        lost = next((row for row in made.store.rows() if row.rerun_of == LOST), None)
        return {
            "file written, no report: the job": states[FILE],
            "paid, not recorded: the job": states[PAYMENT],
            "paid, not recorded: the books": made.books(),
            "done, and the file is lost": f"{lost.state}, as a new job" if lost else "nobody knows",
            "what does not agree now": str(len(made.reconcile(dry_run=True))),
        }
