"""What does a broken installation look like?  A small shop whose jobs all went well, and then one thing went wrong.

Each fault is done for real, to a store in a file, a directory of results, a ledger: by the engine's own verbs where a
process died or a clock was wrong, and by hand where somebody meddled.  Which fault it is, and all its details, come
from a seed.  `where` is told the place and the job, and nothing of the fault.
"""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from jobslab.clock import counted
from jobslab.effects import Entry, Ledger
from jobslab.job import KINDS, Job
from jobslab.lab.outbox import cross_off, outbox, with_outbox
from jobslab.landing import file_name
from jobslab.settings import LAB
from jobslab.stores import Store
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite
from jobslab.sweeper import sweep
from jobslab.tasks import export
from jobslab.where import Where, where
from jobslab.worker import News, begun, next_news, task_for

PAY = "pay"
DAY = 24 * 3600
WAIT = 5  # before the next try, seconds


class Shop:
    """An installation while it is made: its places, and its clock."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.results, self.ledger = folder / "results", Ledger(folder / "ledger.db")
        self.results.mkdir()
        self.store = self.opened()
        self.source = source(folder, rng.randint(20, 60))
        self.next_id = counted()
        self.now = 0.0

    def opened(self) -> Store:
        return opened(self.folder)

    def passes(self, seconds: float) -> None:
        self.now += seconds

    def submit(self, kind: str = "export", **rest: Any) -> str:
        """The id of a new job."""
        params = {"table": "orders"} if kind == "export" else {}
        return self.store.submit(self.next_id(), kind, params, now=self.now, **rest).job.id

    def claim(self, id: str) -> Job:
        job = self.store.claim(id, self.worker(), now=self.now).job
        assert job is not None
        self.passes(1)
        return job

    def worker(self) -> str:
        return self.rng.choice("ABC")

    def work(self, job: Job) -> Any:
        """Do all of the work of this attempt, and tell nobody: the job's result."""
        if job.kind == PAY:
            return {"paid": self.ledger.once(job, "paid 100", now=self.now).effect}
        return dict(last_word(export(self.source, self.results, job)).arguments)["result"]

    def well(self, kind: str = "export") -> str:
        """The id of a job that has gone well."""
        job = self.claim(self.submit(kind))
        self.store.succeed(job.id, job.attempt, str(job.worker), self.work(job), now=self.now)
        self.relay()
        self.passes(self.rng.randint(1, 5))
        return job.id

    def relay(self) -> None:
        """The relay tells the broker of all there is, where there is a broker."""
        if self.has("outbox"):
            for line in outbox(self.store):
                cross_off(self.store, line)

    def has(self, table: str) -> bool:
        with self.store.database.read() as db:
            return self.store.database.has_table(db, table)

    def by_hand(self, sql: str, **values: Any) -> None:
        with self.store.database.write() as db:
            db.execute(sql, values)

    def close(self) -> None:
        self.store.close()
        self.ledger.close()


def opened(folder: Path) -> Store:
    """The store of an installation.  Nobody pulls the plug here, so that a commit need not wait for the disk."""
    return SQLStore(SQLite(str(folder / "jobs.db"), synchronous="OFF"), settings=LAB, kinds=(*KINDS, PAY))


def last_word(chunks: Iterator[float]) -> News:
    """How the task ended; its progress is not told."""
    while (news := next_news(chunks, lambda: WAIT)).verb == "progress":
        pass
    return news


def source(folder: Path, rows: int) -> Path:
    """A database with a table of so many orders."""
    path = folder / "source.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("CREATE TABLE orders (id INTEGER, item TEXT)")
        db.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"item {n}") for n in range(rows)])
    return path


# What goes wrong.  Each makes the job that somebody will ask for, and answers with its id.

Fault = Callable[[Shop], str]


def the_workers_go_home(shop: Shop) -> str:
    """Every worker is stopped, and jobs are accepted all the same."""
    id = shop.submit()
    shop.passes(LAB.lease_seconds + shop.rng.randint(1, 200))
    return id


def the_new_workers_lack_a_task(shop: Shop) -> str:
    """The workers are updated, and know the task of this kind no more."""
    id = shop.submit(PAY)
    for _ in range(shop.rng.randint(1, LAB.max_attempts)):
        shop.passes(WAIT)
        job = shop.claim(id)
        not_done(shop, job, last_word(begun(task_for({}, job), job)))
    return id


def not_done(shop: Shop, job: Job, news: News) -> None:
    """Report it, as a worker does: where no attempt is left, the error is final."""
    worker, error = str(job.worker), dict(news.arguments)["error"]
    if not shop.store.retry(job.id, job.attempt, worker, error, WAIT, now=shop.now).accepted:
        shop.store.fail(job.id, job.attempt, worker, error, now=shop.now)


def the_clock_was_wrong(shop: Shop) -> str:
    """The database's clock is days ahead while an attempt fails and is to be tried again; then it is set right."""
    id, right, days = shop.submit(), shop.now, shop.rng.randint(2, 9)
    shop.passes(days * DAY)
    job = shop.claim(id)
    not_done(shop, job, last_word(export(shop.folder / "away.db", shop.results, job)))
    shop.now = right + 2
    return id


def the_relay_stops(shop: Shop) -> str:
    """Nobody tells the broker any more of what stands in the outbox."""
    id = shop.submit()
    shop.passes(shop.rng.randint(1, 200))
    return id


def the_worker_dies(shop: Shop) -> str:
    """The worker dies in the middle of its work, and nobody sweeps."""
    job = shop.claim(shop.submit())
    shop.store.progress(job.id, 1, str(job.worker), shop.rng.random(), now=shop.now)
    shop.passes(LAB.lease_seconds + shop.rng.randint(1, 200))
    return job.id


def the_job_kills_its_workers(shop: Shop) -> str:
    """Every worker that takes this job dies of it."""
    attempts = shop.rng.randint(2, LAB.max_attempts)
    id = shop.submit(max_attempts=attempts)
    for _ in range(attempts):
        shop.claim(id)
        shop.passes(LAB.lease_seconds)
        sweep(shop.store, now=shop.now)
    return id


def the_worker_dies_before_it_tells(shop: Shop) -> str:
    """The work of the last attempt is done, and the worker dies before its report."""
    job = shop.claim(shop.submit(max_attempts=1))
    shop.work(job)
    shop.passes(LAB.lease_seconds + shop.rng.randint(1, 200))
    if shop.rng.random() < 0.5:
        shop.store.exhaust(job.id, 1, now=shop.now)
    return job.id


def the_file_is_deleted(shop: Shop) -> str:
    """Somebody makes room on the disk."""
    id = shop.well()
    (shop.results / file_name(id, 1)).unlink()
    return id


def the_file_is_cut_short(shop: Shop) -> str:
    """A copy of the file to another disk breaks off, and replaces it."""
    id = shop.well()
    file = shop.results / file_name(id, 1)
    whole = file.read_bytes()
    file.write_bytes(whole[: shop.rng.randint(1, len(whole) - 1)])
    return id


def the_entry_is_lost(shop: Shop) -> str:
    """An old copy of the ledger is put back."""
    shop.ledger.close()
    old = shop.folder / "ledger.old"
    shutil.copy(shop.folder / "ledger.db", old)
    shop.ledger = Ledger(shop.folder / "ledger.db")
    id = shop.well(PAY)
    shop.ledger.close()
    shutil.move(old, shop.folder / "ledger.db")
    return id


def somebody_writes_by_hand(shop: Shop) -> str:
    """Somebody changes the row by hand to have it done again; or deletes a line of the journal."""
    id = shop.well()
    if shop.rng.random() < 0.5:
        shop.by_hand("UPDATE jobs SET state = 'QUEUED', finished_at = NULL, expires_at = NULL WHERE id = :id", id=id)
    else:
        verb = shop.rng.choice(["submit", "claim", "succeed"])
        shop.by_hand("DELETE FROM events WHERE job_id = :id AND verb = :verb", id=id, verb=verb)
    return id


def an_old_copy_is_put_back(shop: Shop) -> str:
    """The store is lost with its disk, and last night's copy is put back."""
    shop.store.close()
    old = shop.folder / "jobs.old"
    shutil.copy(shop.folder / "jobs.db", old)
    shop.store = shop.opened()
    id = shop.submit()
    shop.store.close()
    shutil.move(old, shop.folder / "jobs.db")
    shop.store = shop.opened()
    return id


# What each of them is the cause of
FAULTS: Mapping[Fault, str] = {
    the_workers_go_home: "no-worker",
    the_new_workers_lack_a_task: "no-task",
    the_clock_was_wrong: "far-future",
    the_relay_stops: "unpublished",
    the_worker_dies: "lease-over",
    the_job_kills_its_workers: "gave-up",
    the_worker_dies_before_it_tells: "unreported",
    the_file_is_deleted: "result-gone",
    the_file_is_cut_short: "result-damaged",
    the_entry_is_lost: "no-entry",
    somebody_writes_by_hand: "journal",
    an_old_copy_is_put_back: "never-was",
}


# An installation


class Installation(NamedTuple):
    """One that is broken: where everything is, the job that somebody asks for, and what time it is."""

    name: str
    folder: Path
    id: str
    now: float
    well: tuple[str, ...]  # the jobs of which nobody complains
    fault: Fault

    def __repr__(self) -> str:
        return f"installation {self.name}, where somebody asks for {self.id}"

    @property
    def cause(self) -> str:
        """What is really the matter."""
        return FAULTS[self.fault]

    def diagnosed(self, id: str | None = None) -> Where:
        """What `where` says of the job that is asked for, or of another."""
        with self.store() as store:
            return where(store, id or self.id, self.folder / "results", self.entries(), now=self.now)

    @contextmanager
    def store(self) -> Any:
        with opened(self.folder) as store:
            yield store

    def entries(self) -> tuple[Entry, ...]:
        with closing(Ledger(self.folder / "ledger.db")) as ledger:
            return ledger.entries()


def broken(seed: int, count: int, folder: Path) -> list[Installation]:
    """So many installations, each broken by another fault.  Raises ValueError where there are not so many faults."""
    rng = random.Random(seed)
    faults = rng.sample(list(FAULTS), count)
    return [installation(str(n), fault, folder / str(n), rng) for n, fault in enumerate(faults, start=1)]


def installation(name: str, fault: Fault, folder: Path, rng: random.Random) -> Installation:
    """One, in a new folder."""
    folder.mkdir(parents=True)
    shop = Shop(folder, rng)
    with closing(shop):
        if fault is the_relay_stops:
            with_outbox(shop.store)
        well = tuple(shop.well(kind) for kind in rng.choices(("export", PAY), k=rng.randint(2, 4)))
        id = fault(shop)
        return Installation(name, folder, id, shop.now + 1, well, fault)


# As a scenario

SEED = 1


def astray(switches: str) -> dict[str, str]:
    """For each fault what the user is told who asks for the job: its state, or with "asks in order" its cause."""
    with TemporaryDirectory(prefix="jobslab-") as folder:
        told = {}
        for n, fault in enumerate(FAULTS):
            one = installation(words(fault), fault, Path(folder) / str(n), random.Random(SEED)).diagnosed()
            told[words(fault)] = one.cause.name if switches else state(one)
        return told


def words(fault: Fault) -> str:
    return fault.__name__.replace("_", " ")


def state(told: Where) -> str:
    return told.job.state if told.job else "no such job"
