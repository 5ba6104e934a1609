"""What is *bare*?  Hand-written SQL on the same table and indexes, without guards and journal; for both benches that
compare with it."""

import contextlib
import json
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jobslab.settings import SERVICE

NEW = (
    "INSERT INTO jobs (id, kind, params, owner, idempotency_key, fingerprint, state, attempt, max_attempts, run_at,"
    " created_at, updated_at) VALUES (?, 'task', ?, 'lab', ?, ?, 'QUEUED', 0, 3, ?, ?, ?)"
)
PICK = "SELECT id, params FROM jobs WHERE state = 'QUEUED' AND run_at <= ? ORDER BY run_at, created_at, id LIMIT 1"
CLAIM = (
    "UPDATE jobs SET state = 'RUNNING', attempt = attempt + 1, worker = 'A', lease_until = ?, progress = 0,"
    " started_at = ?, updated_at = ? WHERE id = ?"
)
FINISH = (
    "UPDATE jobs SET state = 'SUCCEEDED', result = ?, progress = 1, updated_at = ?, finished_at = ?, expires_at = ?"
    " WHERE id = ?"
)


class Bare:
    """The same three transactions, on sqlite3 or on psycopg, each worker with a connection of its own."""

    def __init__(self, connect: Callable[[], Any], begin: str, skip_locked: str = "", mark: str = "?") -> None:
        self.connect, self.begin = connect, begin
        self.new, self.pick, self.claim, self.finish = (
            sql.replace("?", mark) for sql in (NEW, PICK + skip_locked, CLAIM, FINISH)
        )
        self.db = connect()

    def submit(self) -> None:
        now, id = time.time(), secrets.token_hex(16)
        params, key, fingerprint = json.dumps({"table": "orders"}), secrets.token_hex(8), secrets.token_hex(32)
        self.db.execute(self.begin)
        self.db.execute(self.new, (id, params, key, fingerprint, now, now, now))
        self.db.execute("COMMIT")

    def one(self, db: Any) -> bool:
        """Claim a job and finish it; False: there is none."""
        now = time.time()
        db.execute(self.begin)
        job = db.execute(self.pick, (now,)).fetchone()
        if job is not None:
            db.execute(self.claim, (now + SERVICE.lease_seconds, now, now, job[0]))
        db.execute("COMMIT")
        if job is None:
            return False
        now = time.time()
        db.execute(self.begin)
        db.execute(self.finish, ('{"attempt": 1}', now, now, now + SERVICE.retention_seconds, job[0]))
        db.execute("COMMIT")
        return True

    def cycle(self) -> None:
        self.submit()
        self.one(self.db)

    def work_off(self, jobs: int, workers: int) -> None:
        def until_none_is_left(_: int) -> None:
            with contextlib.closing(self.connect()) as db:
                while self.one(db):
                    pass

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(until_none_is_left, range(workers)))
