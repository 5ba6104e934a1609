"""What is particular to SQLite?  Connecting, one writer at a time, and saying in a sentence what is wrong with a file.

A file is opened with WAL and `synchronous=FULL`: a 202 promises a kept job, so a commit must be on the disk.  Without
a file the database is SQLite's memdb, which all connections of this process share under a name of its own;
`:memory:` would give each connection its own, and shared-cache locks ignore the busy timeout.
"""

import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from jobslab.contract import PLAIN_SLOTS
from jobslab.errors import IdTaken, SecondServer, StoreError
from jobslab.stores.database import Connection

BUSY_SECONDS = 10  # how long a writer waits for its turn
IDLE_CONNECTIONS = 8  # kept open for the next caller; more are closed after use


class Line(sqlite3.Connection):
    """Here nothing is won by sending a statement later: it goes nowhere."""

    later = sqlite3.Connection.execute


class SQLite:
    """One database: its connections, its transactions, its clock."""

    slots = PLAIN_SLOTS
    place = "file"
    migrated = False

    def __init__(self, path: str | None = None, synchronous: str = "FULL", busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self.synchronous = synchronous
        self.busy_seconds = busy_seconds
        self._idle: deque[Line] = deque()
        self._closed = False
        self._server_lock: sqlite3.Connection | None = None
        name = quote(str(Path(path).absolute())) if path else f"/jobslab-{secrets.token_hex(8)}?vfs=memdb"
        self._uri = f"file:{name}"
        try:
            self._first = self._connect()  # keeps a database without a file alive until `close`
        except sqlite3.DatabaseError as wrong:
            raise StoreError(explain(str(wrong), self)) from wrong

    def __str__(self) -> str:
        return self.path or "the store in memory"

    def now(self, db: Connection) -> float:
        """The database's own time: SQLite has none but the machine's."""
        return time.time()

    @contextmanager
    def read(self) -> Iterator[Line]:
        """A connection for statements that only read."""
        db = None
        try:
            db = self._take()
            yield db
        except sqlite3.IntegrityError as wrong:
            if "UNIQUE constraint failed: jobs.id" not in str(wrong):
                raise
            raise IdTaken("a job with this id is there already") from wrong
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.DatabaseError as wrong:
            raise StoreError(explain(str(wrong), self)) from wrong
        finally:
            if db is not None:
                self._give_back(db)

    @contextmanager
    def write(self) -> Iterator[Line]:
        """A connection inside one transaction, which is kept, or undone when the body raises.

        IMMEDIATE: a plain BEGIN that reads first and writes later fails at once when another has written in between,
        whatever the busy timeout.
        """
        with self.read() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def lock_schema(self, db: Connection) -> None:
        """A transaction that writes is alone already."""

    def is_empty(self, db: Connection) -> bool:
        """Is nothing in this database, so that it may become a store?"""
        return db.execute("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0] == 1

    def has_table(self, db: Connection, name: str) -> bool:
        found = db.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": name}
        ).fetchone()
        return found is not None

    def lock_server(self) -> None:
        """Be the only server of this database until `close`, or until the process ends, however it ends.

        Raises SecondServer.  The lock is SQLite's own, on a file beside: it needs no cleaning up after a SIGKILL.
        """
        if self.path is None or self._server_lock is not None:
            return
        db, beside = None, f"{self.path}-server"
        try:
            db = sqlite3.connect(beside, isolation_level=None, check_same_thread=False, timeout=0)
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as wrong:
            if db is not None:
                db.close()
            if "locked" not in str(wrong):
                raise StoreError(explain(str(wrong), beside)) from wrong
            raise SecondServer(
                f"{self} is a store with persistence off and has a server already; stop that one first"
            ) from wrong
        self._server_lock = db

    def close(self) -> None:
        """Close every connection; a database without a file is gone.  One that another thread is using is closed by
        that thread: SQLite does not bear both at once."""
        self._closed = True
        while (db := self._next_idle()) is not None:
            db.close()
        for kept in (self._first, self._server_lock):
            if kept is not None:
                kept.close()
        self._server_lock = None

    def _connect(self) -> Line:
        db = sqlite3.connect(
            self._uri, factory=Line, uri=True, isolation_level=None, check_same_thread=False, timeout=self.busy_seconds
        )
        try:
            if self.path:
                self._use_wal(db)
                db.execute(f"PRAGMA synchronous = {self.synchronous}")
        except BaseException:
            db.close()
            raise
        return db

    def _use_wal(self, db: Line) -> None:
        """Turn WAL on, which ignores the busy timeout while another connection is doing the same.

        Only in an empty database: a store has it already, and a database of something else is not ours to change.
        """
        give_up = time.monotonic() + self.busy_seconds
        while True:
            try:
                if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and self.is_empty(db):
                    db.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as wrong:
                if "locked" not in str(wrong) or time.monotonic() >= give_up:
                    raise
                time.sleep(0.01)

    def _take(self) -> Line:
        if self._closed:
            raise StoreError(f"{self} is closed already")
        return self._next_idle() or self._connect()

    def _next_idle(self) -> Line | None:
        """One that no other thread can get as well."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give_back(self, db: Line) -> None:
        if self._closed or len(self._idle) >= IDLE_CONNECTIONS:
            db.close()
        else:
            self._idle.append(db)


# What SQLite says, and what that means to the person who named the file.
EXPLANATIONS = {
    "locked": "{store} is locked by another program; close that one, or try again",
    "readonly": "{store} can't be written; check the permissions of the file and of its directory",
    "unable to open": "{store} can't be opened; check that its directory is there and may be written",
    "not a database": "{store} is not an SQLite database; name another file",
    "malformed": "{store} is damaged ({said}); restore it from a copy, or name another file",
    "full": "there is no room left for {store}; nothing of this change was kept",
    "disk I/O": "{store} can't be read or written ({said}); check the disk and the directory",
}


def explain(said: str, store: object) -> str:
    """One sentence for people on what is wrong with a database."""
    for part, sentence in EXPLANATIONS.items():
        if part in said:
            return sentence.format(store=store, said=said)
    return f"{store} can't be used: {said}"
