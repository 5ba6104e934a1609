"""How much of a bare database's speed is left with guards and journal on?

A cycle is a job's life in three durable transactions: submit, claim, succeed.  *Bare* is hand-written SQL on the same
table and the same indexes, without guards and without the journal.  *Minimal* is what one might begin with: five
columns, one index.  All four write to a file with WAL; FULL waits for the disk at every commit, NORMAL does not.
"""

import json
import secrets
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import told
from bench._bare import Bare
from jobslab.contract import SCHEMA, Contract, render
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite

CYCLES = 2_500  # the first thousand pages of a WAL cost three times as much: a shorter run measures those
ROUNDS = 3
WAITING = (10, 10_000, 1_000_000)

PARAMS = {"table": "orders"}
RESULT = {"attempt": 1}

Cycle = Callable[[], None]


def ours(path: Path, synchronous: str, journal: bool = True) -> Cycle:
    store = SQLStore(SQLite(str(path), synchronous), journal=journal, kinds=["task"])

    def cycle() -> None:
        store.submit(secrets.token_hex(16), "task", PARAMS, key=secrets.token_hex(8))
        reply = store.claim_next("A")
        store.succeed(reply.job.id, reply.job.attempt, "A", RESULT)

    return cycle


def connected(path: Path, synchronous: str, schema: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL").fetchone()
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.executescript(schema)
    return db


def bare(path: Path, synchronous: str) -> Cycle:
    db = connected(path, synchronous, render(SCHEMA, Contract()))
    return Bare(lambda: db, "BEGIN IMMEDIATE").cycle


MINIMAL = """CREATE TABLE jobs (id TEXT PRIMARY KEY, params TEXT, state TEXT, attempt INTEGER, result TEXT);
CREATE INDEX waiting ON jobs (id) WHERE state = 'QUEUED'"""


def minimal(path: Path, synchronous: str) -> Cycle:
    db = connected(path, synchronous, MINIMAL)

    def transaction(sql: str, *p: str) -> list[tuple[str]]:
        db.execute("BEGIN IMMEDIATE")
        rows = db.execute(sql, p).fetchall()
        db.execute("COMMIT")
        return rows

    def cycle() -> None:
        transaction("INSERT INTO jobs VALUES (?, ?, 'QUEUED', 0, NULL)", secrets.token_hex(16), json.dumps(PARAMS))
        [(id,)] = transaction(
            "UPDATE jobs SET state = 'RUNNING', attempt = attempt + 1"
            " WHERE id = (SELECT id FROM jobs WHERE state = 'QUEUED' LIMIT 1) RETURNING id"
        )
        transaction("UPDATE jobs SET state = 'SUCCEEDED', result = ? WHERE id = ?", json.dumps(RESULT), id)

    return cycle


SIDES: dict[str, Callable[[Path, str], Cycle]] = {
    "minimal": minimal,
    "bare": bare,
    "jobslab": ours,
    "jobslab without journal": lambda path, synchronous: ours(path, synchronous, journal=False),
}


def per_second(cycle: Cycle, cycles: int = CYCLES) -> float:
    started = time.perf_counter()
    for _ in range(cycles):
        cycle()
    return cycles / (time.perf_counter() - started)


def cycles_per_second(synchronous: str) -> dict[str, float]:
    """Jobs per second of each side: the median of rounds in which the sides take turns."""
    seen: dict[str, list[float]] = {side: [] for side in SIDES}
    for side, make in told([*SIDES.items()] * ROUNDS, f"synchronous={synchronous}"):
        with tempfile.TemporaryDirectory() as directory:
            seen[side].append(per_second(make(Path(directory) / "jobs.db", synchronous)))
    return {side: statistics.median(rates) for side, rates in seen.items()}


def claim_milliseconds(waiting: int, claims: int = 500) -> tuple[float, str]:
    """The median time of a claim with so many jobs waiting, and the plan by which the job is picked."""
    with tempfile.TemporaryDirectory() as directory:
        store = SQLStore(SQLite(str(Path(directory) / "jobs.db"), "NORMAL"))
        for first in range(0, waiting + claims, 10_000):
            fill(store, first, min(first + 10_000, waiting + claims))
        times = []
        for _ in range(claims):
            started = time.perf_counter()
            reply = store.claim_next("A")
            times.append(time.perf_counter() - started)
            assert reply is not None
            assert reply.accepted
        with store.database.read() as db:
            plan = db.execute("EXPLAIN QUERY PLAN " + store.sql["pick"], {"now": 0}).fetchall()[0][3]
        store.close()
    return statistics.median(times) * 1000, plan


def fill(store: SQLStore, first: int, last: int) -> None:
    """Many waiting jobs in one transaction, without their journal."""
    with store.database.write() as db:
        db.executemany(
            "INSERT INTO jobs (id, kind, params, owner, fingerprint, state, attempt, max_attempts, run_at, created_at,"
            " updated_at) VALUES (?, 'export', '{}', 'lab', '', 'QUEUED', 0, 3, ?, ?, ?)",
            [(secrets.token_hex(16), n, n, n) for n in range(first, last)],
        )


def main() -> None:
    print(f"\njobs per second, a job = submit + claim + succeed, {CYCLES:,} jobs, median of {ROUNDS} rounds")
    for synchronous in ("FULL", "NORMAL"):
        rates = cycles_per_second(synchronous)
        print(f"  synchronous={synchronous}")
        for side, rate in rates.items():
            print(f"    {side:24} {rate:8,.0f}   {rate / rates['bare']:5.2f} of bare")
    print("\nmilliseconds a claim, by the number of jobs waiting (synchronous=NORMAL, median of 500)")
    times = {waiting: claim_milliseconds(waiting) for waiting in told(WAITING, "claims among many")}
    for waiting, (milliseconds, plan) in times.items():
        print(f"    {waiting:9,} {milliseconds:8.3f}   {plan}")
    print(f"    ratio of {WAITING[-1]:,} to {WAITING[0]:,}: {times[WAITING[-1]][0] / times[WAITING[0]][0]:.2f}")
