"""How does the engine compare with bare SQL and with its neighbours, in one run, on one machine, equally durable?

A job does nothing, so what is measured is the engine.  *Submitting* is one transaction a job, one after the other.
*Working off* begins with all jobs waiting, and ends when the last is over; it is each side's own loop with so many
workers in one process.  Every commit waits for the disk on all sides: SQLite with WAL and synchronous=FULL, PostgreSQL
with fsync and synchronous_commit=on.
"""

import asyncio
import contextlib
import logging
import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from importlib.metadata import version
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from bench import told
from bench._bare import Bare
from bench.store import connected, per_second
from jobslab.job import Job
from jobslab.lab.postgres import a_server, a_store
from jobslab.loop import work
from jobslab.stores import Store, open_store

JOBS = 2_500  # the first thousand pages of a WAL cost three times as much: a shorter run measures those
ROUNDS = 3
WORKERS = (1, 2, 4, 8)
WAITING = (10, 1_000, 100_000, 1_000_000)
BATCH = 100
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "peers.png"  # README shows it


class Side(NamedTuple):
    """One way of doing jobs: how to get jobs in, how to work them off, and what it promises."""

    database: str
    name: str
    promises: str
    opened: Callable[[str], Any]  # at a path or URL: a context with submit() and work_off(jobs, workers)


# Ours


class Ours:
    def __init__(self, store: Store) -> None:
        self.store = store

    def submit(self) -> None:
        self.store.submit(secrets.token_hex(16), "task", {"table": "orders"}, key=secrets.token_hex(8))

    def work_off(self, jobs: int, workers: int) -> None:
        done = work(self.store, "A", {"task": nothing}, stop=lambda: False, concurrency=workers)
        assert len(list(islice(done, jobs))) == jobs
        done.close()  # else it would wait for more


def nothing(job: Job) -> Generator[float, None, Any]:
    return {"attempt": job.attempt}
    yield


@contextlib.contextmanager
def ours(where: str) -> Iterator[Ours]:
    with open_store(None, where, kinds=["task"]) as store:
        yield Ours(store)


# Hand-written SQL


@contextlib.contextmanager
def bare_sqlite(where: str) -> Iterator[Bare]:
    def connect() -> sqlite3.Connection:
        db = sqlite3.connect(where, isolation_level=None, check_same_thread=False, timeout=30)
        db.execute("PRAGMA synchronous = FULL")
        return db

    connected(Path(where), "FULL", "").close()
    side = Bare(connect, "BEGIN IMMEDIATE")
    yield side
    side.db.close()


@contextlib.contextmanager
def bare_postgresql(where: str) -> Iterator[Bare]:
    side = Bare(lambda: psycopg.connect(where, autocommit=True), "BEGIN", " FOR UPDATE SKIP LOCKED", "%s")
    yield side
    side.db.close()


# Neighbours


class Hueys:
    def __init__(self, where: str) -> None:
        from huey import SqliteHuey

        self.huey = SqliteHuey(filename=where, fsync=True)
        self.task = self.huey.task()(huey_task)

    def submit(self) -> None:
        self.task({"table": "orders"})

    def work_off(self, jobs: int, workers: int) -> None:
        options = {"initial_delay": 0.001, "max_delay": 0.01, "periodic": False, "check_worker_health": False}
        consumer = self.huey.create_consumer(workers=workers, **options)
        consumer.start()
        while self.huey.result_count() < jobs:
            time.sleep(0.005)
        consumer.stop(graceful=True)


def huey_task(params: dict[str, Any]) -> dict[str, Any]:
    return {"attempt": 1}


@contextlib.contextmanager
def huey(where: str) -> Iterator[Hueys]:
    logging.getLogger("huey").setLevel(logging.ERROR)
    side = Hueys(f"{where}.huey")
    yield side
    side.huey.storage.close()


class Procrastinates:
    def __init__(self, where: str) -> None:
        from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

        self.submitting = App(connector=SyncPsycopgConnector(conninfo=where))
        self.submitting.open()
        self.submitting.schema_manager.apply_schema()
        self.task = self.submitting.task(name="task")(procrastinate_task)
        self.working = App(connector=PsycopgConnector(conninfo=where, max_size=20))
        self.working.task(name="task")(procrastinate_task)

    def submit(self) -> None:
        self.task.defer(table="orders")

    def work_off(self, jobs: int, workers: int) -> None:
        async def run() -> None:
            async with self.working.open_async():
                await self.working.run_worker_async(wait=False, concurrency=workers, install_signal_handlers=False)

        asyncio.run(run())


async def procrastinate_task(table: str) -> dict[str, Any]:
    return {"attempt": 1}


@contextlib.contextmanager
def procrastinate(where: str) -> Iterator[Procrastinates]:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    side = Procrastinates(where)
    yield side
    side.submitting.close()


OURS_PROMISES = "at least once; a dead worker's job is given to another; stale reports refused; journal"
SIDES = (
    Side("SQLite", "bare sqlite3", "none of the clauses", bare_sqlite),
    Side("SQLite", "jobslab", OURS_PROMISES, ours),
    Side("SQLite", "Huey", "at most once: a task is deleted when it is taken; results kept", huey),
    Side("PostgreSQL", "bare psycopg", "none of the clauses", bare_postgresql),
    Side("PostgreSQL", "jobslab", OURS_PROMISES, ours),
    Side("PostgreSQL", "Procrastinate", "jobs of dead workers are found by a heartbeat, to be retried by hand or by a"
         " periodic task", procrastinate),
)  # fmt: skip


class Place:
    """New databases, one after the other."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder, self.server, self.made = folder, server, 0

    @contextlib.contextmanager
    def a_new(self, database: str) -> Iterator[str]:
        """The URL of an empty store."""
        self.made += 1
        if database == "PostgreSQL":
            with a_store(self.server, f"bench_{self.made}") as url:
                yield url
            return
        path = str(self.folder / f"{self.made}.db")
        open_store(None, path).close()
        yield path


def three_transactions(place: Place, jobs: int) -> dict[tuple[str, str], float]:
    """Jobs per second of one caller, a job = submit + claim + succeed, each in a transaction of its own.

    All sides are open at once and take turns, BATCH jobs each: a disk is never twice as fast as a minute ago.
    """
    with contextlib.ExitStack() as open_now:
        cycles = {}
        for database, name, opened in CYCLES:
            where = open_now.enter_context(place.a_new(database))
            cycles[database, name] = open_now.enter_context(opened(where))
        turns = told(range(jobs // BATCH), "three transactions a job")
        seen = [{side: per_second(cycle, BATCH) for side, cycle in cycles.items()} for _ in turns]
    return {side: statistics.median(turn[side] for turn in seen) for side in cycles}


@contextlib.contextmanager
def our_cycles(where: str) -> Iterator[Callable[[], None]]:
    with open_store(None, where, kinds=["task"]) as store:

        def cycle() -> None:
            store.submit(secrets.token_hex(16), "task", {"table": "orders"}, key=secrets.token_hex(8))
            reply = store.claim_next("A")
            assert reply is not None
            assert reply.job is not None
            store.succeed(reply.job.id, reply.job.attempt, "A", {"attempt": 1})

        yield cycle


@contextlib.contextmanager
def bare_cycles(opened: Callable[[str], Any], where: str) -> Iterator[Callable[[], None]]:
    with opened(where) as side:
        yield side.cycle


CYCLES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("SQLite", "bare sqlite3", lambda where: bare_cycles(bare_sqlite, where)),
    ("SQLite", "jobslab", our_cycles),
    ("PostgreSQL", "bare psycopg", lambda where: bare_cycles(bare_postgresql, where)),
    ("PostgreSQL", "jobslab", our_cycles),
)


def loops(place: Place, jobs: int, rounds: int) -> dict[tuple[str, str], dict[str, float]]:
    """Of each side the jobs per second: submitted one after the other, and worked off by so many workers."""
    seen: dict[tuple[str, str], dict[str, list[float]]] = {}
    for workers, side in told([*product(WORKERS, SIDES)] * rounds, "the loops"):
        rates = seen.setdefault((side.database, side.name), {})
        with place.a_new(side.database) as where, side.opened(where) as opened:
            rates.setdefault("submitted", []).append(per_second(opened.submit, jobs))
            began = time.perf_counter()
            opened.work_off(jobs, workers)
            rates.setdefault(f"by {workers}", []).append(jobs / (time.perf_counter() - began))
    return {
        side: {what: statistics.median(measured) for what, measured in rates.items()} for side, rates in seen.items()
    }


def claim_times(place: Place, waiting: tuple[int, ...], claims: int = 300) -> dict[tuple[str, int], float]:
    """Milliseconds a claim takes, the median, with so many jobs waiting."""
    found = {}
    for database, count in told(product(("SQLite", "PostgreSQL"), waiting), "claims among many"):
        with place.a_new(database) as where, open_store(None, where, kinds=["task"]) as store:
            fill(store, count + claims)
            times = []
            for _ in range(claims):
                began = time.perf_counter()
                assert store.claim_next("A") is not None
                times.append(time.perf_counter() - began)
        found[database, count] = statistics.median(times) * 1000
    return found


def fill(store: Store, count: int) -> None:
    """Many waiting jobs, without their journal, and with what the database knows of its tables after a while."""
    columns = "id, kind, params, owner, fingerprint, state, attempt, max_attempts, run_at, created_at, updated_at"
    numbers = (
        f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"
        " SELECT 'job-' || n, 'task', '{}', 'lab', '', 'QUEUED', 0, 3, n, n, n FROM numbers"
    )
    with store.database.write() as db:
        db.execute(f"INSERT INTO jobs ({columns}) {numbers}")
    with store.database.read() as db:
        db.execute("ANALYZE")


def batches(place: Place, jobs: int) -> dict[tuple[str, str], float]:
    """Jobs per second: submitted and claimed one by one, and a hundred in a transaction."""
    found = {}
    for database in ("SQLite", "PostgreSQL"):
        with place.a_new(database) as where, open_store(None, where, kinds=["task"]) as store:
            found[database, "submit"] = jobs / seconds(lambda: [store.submit(**new()) for _ in range(jobs)])
            found[database, f"submit_many({BATCH})"] = jobs / seconds(
                lambda: [store.submit_many([new() for _ in range(BATCH)]) for _ in range(jobs // BATCH)]
            )
            found[database, "claim_next"] = jobs / seconds(lambda: [store.claim_next("A") for _ in range(jobs)])
            found[database, f"claim_many({BATCH})"] = jobs / seconds(
                lambda: [store.claim_many("A", BATCH) for _ in range(jobs // BATCH)]
            )
    return found


def new() -> dict[str, Any]:
    return {"id": secrets.token_hex(16), "kind": "task", "params": {"table": "orders"}, "key": secrets.token_hex(8)}


def seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def main(jobs: int = JOBS, rounds: int = ROUNDS, waiting: tuple[int, ...] = WAITING) -> None:
    with tempfile.TemporaryDirectory() as folder, a_server() as server:
        place = Place(Path(folder), server.url)
        print(versions(server.url))
        turns = 2 * jobs // BATCH
        print(f"\nevery commit on the disk; median of {turns} turns, then {jobs:,} jobs, median of {rounds} rounds")
        print_cycles(three_transactions(place, turns * BATCH))
        rates = loops(place, jobs, rounds)
        print_loops(rates)
        draw(rates, FIGURE)
        print("\n| milliseconds a claim | " + " | ".join(f"{count:,} waiting" for count in waiting) + " |")
        print("|---|" + "---:|" * len(waiting))
        times = claim_times(place, waiting)
        for database in ("SQLite", "PostgreSQL"):
            print(f"| {database} | " + " | ".join(f"{times[database, count]:.2f}" for count in waiting) + " |")
        print("\n| jobs per second | SQLite | PostgreSQL |\n|---|---:|---:|")
        many = batches(place, jobs)
        for what in dict.fromkeys(what for _, what in many):
            print(f"| {what} | {many['SQLite', what]:,.0f} | {many['PostgreSQL', what]:,.0f} |")
        print(f"\nthe figure is docs/{FIGURE.name}")


def versions(url: str) -> str:
    with psycopg.connect(url) as db:
        server = db.info.server_version // 10_000
    packages = ", ".join(f"{name} {version(name)}" for name in ("psycopg", "huey", "procrastinate"))
    return f"PostgreSQL {server} on a socket of this machine, {packages}"


def print_cycles(rates: dict[tuple[str, str], float]) -> None:
    print("\n| three transactions a job, one caller | jobs per second | of bare |\n|---|---:|---:|")
    bare = {database: rate for (database, name), rate in rates.items() if name.startswith("bare")}
    for (database, name), rate in rates.items():
        print(f"| {database}, {name} | {rate:,.0f} | {rate / bare[database]:.2f} |")


def print_loops(rates: dict[tuple[str, str], dict[str, float]]) -> None:
    columns = ["submitted", *(f"by {workers}" for workers in WORKERS)]
    print("\n| jobs per second | " + " | ".join(columns) + " | promises |\n|---|" + "---:|" * len(columns) + "---|")
    for side in SIDES:
        measured = rates[side.database, side.name]
        numbers = " | ".join(f"{measured[column]:,.0f}" for column in columns)
        print(f"| {side.database}, {side.name} | {numbers} | {side.promises} |")
    print("\n| jobslab / neighbour | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for side in SIDES:
        if side.name != "jobslab":
            mine = rates[side.database, "jobslab"]
            numbers = " | ".join(f"{mine[column] / rates[side.database, side.name][column]:.2f}" for column in columns)
            print(f"| {side.name} | {numbers} |")


def draw(rates: dict[tuple[str, str], dict[str, float]], path: Path) -> None:
    """Bars, a group for each number of workers: bare, ours, the neighbour's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for axes, database in zip(figure.subplots(1, 2), ("SQLite", "PostgreSQL")):
        for n, side in enumerate(side for side in SIDES if side.database == database):
            heights = [rates[database, side.name][f"by {workers}"] for workers in WORKERS]
            places = [group + (n - 1) * 0.27 for group in range(len(WORKERS))]
            axes.bar(places, heights, width=0.25, label=side.name, color=("0.75", "tab:blue", "0.45")[n])
        axes.set_xticks(range(len(WORKERS)), [str(workers) for workers in WORKERS])
        axes.set(title=database, xlabel="workers in one process", ylabel="jobs worked off per second")
        axes.margins(y=0.2)  # room for the names, above the bars
        axes.legend(frameon=False, ncols=3, loc="upper center", columnspacing=1, handlelength=1)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
