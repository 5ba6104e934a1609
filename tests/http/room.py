"""What does a test of the HTTP contract need?  A service in this process, in lab time, with somebody to do its jobs."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from jobslab import Contract
from jobslab.api import create_app
from jobslab.client import JobClient
from jobslab.clock import ManualClock
from jobslab.job import Error, State
from jobslab.lab.transport import InProcess
from jobslab.settings import LAB, Settings
from jobslab.stores import Store, open_store
from jobslab.tasks import CHUNK_ROWS, tasks
from jobslab.web.tokens import Tokens, hashed
from jobslab.worker import Worker, perform

ALICE, BOB = "alice-0123456789abcdef", "bob-0123456789abcdefgh"
TWO = Tokens(((hashed(ALICE), "alice"), (hashed(BOB), "bob")))
EXPORT = {"kind": "export", "params": {"table": "orders"}}
WAIT = {"kind": "wait", "params": {"seconds": 10}}
BROKEN = Error("broken", "it broke")


class Room:
    """A service: `http` asks it anything, `client` asks it well, `store` and `clock` are its inside."""

    def __init__(self, store: Store, results: Path, tokens: Tokens | None) -> None:
        self.store, self.results, self.clock = store, results, ManualClock(1_000_000)
        store.database.now = lambda db: self.clock.now()  # for workers and the sweeper, who ask the database
        self.app = create_app(store, self.clock, tokens=tokens, results=results)
        self.transport = InProcess(self.app)
        self.http = httpx2.Client(transport=self.transport, base_url="http://lab")

    def client(self, **options: Any) -> JobClient:
        return JobClient(
            "http://lab", **{"transport": self.transport, "clock": self.clock, "rng": Random(8202)} | options
        )

    def post(self, job: Any = EXPORT, key: str | None = None, **headers: str) -> httpx2.Response:
        return self.http.post(
            "/jobs", json=job, headers=headers | ({"Idempotency-Key": key} if key is not None else {})
        )

    def submitted(self, job: Any = EXPORT, **headers: str) -> str:
        """The id of a new job."""
        return self.post(job, **headers).raise_for_status().json()["id"]

    def get(self, id: str, **headers: str) -> httpx2.Response:
        return self.http.get(f"/jobs/{id}", headers=headers)

    def cancel(self, id: str, **headers: str) -> httpx2.Response:
        return self.http.post(f"/jobs/{id}/cancel", headers=headers)

    def result(self, id: str, **headers: str) -> httpx2.Response:
        return self.http.get(f"/jobs/{id}/result", headers=headers)

    def claim(self) -> str:
        """The id of the job that worker A has claimed now."""
        reply = self.store.claim_next("A", now=self.clock.now())
        assert reply
        assert reply.job
        return reply.job.id

    def report(self, verb: str, id: str, *arguments: Any) -> bool:
        """Did the report of A's attempt land?"""
        attempt = self.get(id).json()["attempt"]
        return getattr(self.store, verb)(id, attempt, "A", *arguments, now=self.clock.now()).accepted

    def in_state(self, state: str, **headers: str) -> str:
        """The id of a new job that is in this state now."""
        id = self.submitted(**headers)
        if state == State.CANCELLED:
            self.cancel(id, **headers)
        elif state != State.QUEUED:
            self.store.claim(id, "A", now=self.clock.now())
        if state == State.SUCCEEDED:
            self.store.succeed(id, 1, "A", {"rows": 3}, now=self.clock.now())
        if state == State.FAILED:
            self.store.fail(id, 1, "A", BROKEN, now=self.clock.now())
        return id

    def work(self) -> list[str]:
        """The ids of all waiting jobs, which are done by their real tasks now."""
        source = orders(self.results / "source.sqlite")
        every, done = tasks(source, self.results, self.clock), []
        while reply := self.store.claim_next("A", now=self.clock.now()):
            assert reply.job
            worker = Worker("A", in_one=True, job_id=reply.job.id, attempt=reply.job.attempt)
            perform(self.store, worker, reply.job, every[reply.job.kind], self.clock, Random(8202))
            done.append(reply.job.id)
        return done


@contextmanager
def room(
    folder: Path,
    *,
    contract: Contract | None = None,
    tokens: Tokens | None = None,
    settings: Settings = LAB,
    path: str | None = None,
) -> Iterator[Room]:
    """A room over a new store, or over the one at `path`."""
    with open_store(contract, path, settings=settings) as store:
        made = Room(store, folder / "results", tokens)
        made.results.mkdir(exist_ok=True)
        store.start_server()
        try:
            yield made
        finally:
            made.http.close()


def orders(path: Path) -> Path:
    """A database with a table of as many rows as take an export three chunks."""
    if not path.exists():
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE orders (n INTEGER, item TEXT)")
            db.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"item {n}") for n in range(2 * CHUNK_ROWS + 1)])
    return path


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def problem(response: httpx2.Response) -> str:
    """The name of the problem that this answer is; fails unless it is one as RFC 9457 writes it."""
    assert response.headers["content-type"] == "application/problem+json"
    told = json.loads(response.content)
    assert told["status"] == response.status_code
    assert set(told) == {"type", "title", "status", "detail"}
    return told["type"].removeprefix("/problems/")
