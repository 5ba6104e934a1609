"""A run of chaos: clients submit, processes are killed as planned, and when all is quiet the books are audited."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jobslab.contract import Contract
from jobslab.effects import Ledger
from jobslab.lab.chaos.audit import Audit, audit
from jobslab.lab.chaos.clients import Clients, Record, accepted
from jobslab.lab.chaos.cluster import Cluster
from jobslab.lab.chaos.plan import STOP_WORKER, Fault, faults
from jobslab.lab.postgres import Server, a_server
from jobslab.stores import migrate, open_store

BACKLOG = 8  # jobs that wait: so that every worker has one, and no more

STORES = ("sqlite", "postgresql")

Seen = Callable[..., None]  # called with how many jobs were accepted, and faults=: how many were done


class Run(NamedTuple):
    """What was asked for, what was done, and what was found."""

    store: str
    contract: str
    seed: int
    jobs: int
    planned: dict[str, int]  # faults, by what
    done: dict[str, int]  # of them, those that were done as they were meant
    audit: Audit
    seconds: float

    @property
    def wrong(self) -> list[str]:
        """In sentences; none: the promise was kept, and the faults were there to break it."""
        found = self.audit
        sentences = {
            f"{found.lost} accepted jobs are lost": found.lost,
            f"{found.duplicates} jobs are duplicates of an intent": found.duplicates,
            f"{found.stale_accepted} reports of workers that had been given up were accepted": found.stale_accepted,
            f"{found.done_twice} effects were done twice": found.done_twice,
            f"{found.undone} jobs succeeded without their effect": found.undone,
            f"{self.jobs - found.accepted} intents were never answered": max(0, self.jobs - found.accepted),
            "no report of a stopped worker was refused, so none was made": self.unprovoked,
        }
        missed = Counter(self.planned) - Counter(self.done)
        return [said for said, how_many in sentences.items() if how_many] + [
            f"{count} times it did not come to this: {what}" for what, count in missed.items()
        ]

    @property
    def unprovoked(self) -> bool:
        return STOP_WORKER in self.planned and not self.audit.stale_refused + self.audit.stale_accepted


def run(
    store: str, contract: Contract, seed: int, jobs: int, kills: int, seen: Seen = lambda jobs, faults: None
) -> Run:
    """One run on a new store of this kind.  Raises ChaosError where it could not be carried through."""
    began = time.monotonic()
    planned = faults(seed, jobs, kills, with_database=store == "postgresql")
    with tempfile.TemporaryDirectory(prefix="jobslab-chaos-") as directory:
        folder = Path(directory)
        with a_new_store(store, contract, folder) as (url, database):
            done = carried_out(url, folder, database, seed, jobs, planned, seen)
            found = audited(url, folder)
    return Run(
        store, str(contract), seed, jobs, Counter(fault.what for fault in planned),
        Counter(fault.what for fault in done), found, time.monotonic() - began,
    )  # fmt: skip


@contextmanager
def a_new_store(store: str, contract: Contract, folder: Path) -> Iterator[tuple[str, Server | None]]:
    """The URL of a store under this contract, and the server of its database where it has one."""
    if store == "sqlite":
        open_store(contract, str(folder / "jobs.db")).close()
        yield str(folder / "jobs.db"), None
        return
    with a_server() as server:
        migrate(contract, server.url)
        yield server.url, server


def carried_out(
    url: str, folder: Path, database: Server | None, seed: int, jobs: int, planned: tuple[Fault, ...], seen: Seen
) -> list[Fault]:
    """Let clients submit while the faults are done; those that were done as they were meant, when all is quiet."""
    record, cluster = Record(folder / "record"), Cluster(url, folder, database)
    clients = Clients(cluster.address(), seed, jobs, record, partial(while_many_wait, cluster))
    try:
        done = []
        for n, fault in enumerate(planned):
            wait_until(fault.after + 1, clients, partial(seen, faults=n))
            done += [fault] if cluster.do(fault) else []
        clients.enough = True
        wait_until(jobs, clients, partial(seen, faults=len(planned)))
        clients.end()
        cluster.settle()
        return done
    finally:
        clients.end()
        cluster.end()
        record.close()


def while_many_wait(cluster: Cluster) -> None:
    """Workers should have work, and none should be left when the last fault is done."""
    while cluster.waiting() >= BACKLOG:
        time.sleep(0.05)


def wait_until(accepted: int, clients: Clients, seen: Seen) -> None:
    """Until so many jobs were accepted.  Raises what a client could not get over."""
    while clients.accepted < accepted:
        clients.check()
        seen(clients.accepted)
        time.sleep(0.1)


def audited(url: str, folder: Path) -> Audit:
    ledger = Ledger(folder / "effects.db")
    try:
        with open_store(None, url) as store:
            return audit(accepted(folder / "record"), store.rows(), store.events(), ledger.entries())
    finally:
        ledger.close()
