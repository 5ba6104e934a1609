"""What is particular to PostgreSQL?  Many writers at once, a clock of its own, and a connection that can be lost.

The statements are the same; `FOR UPDATE SKIP LOCKED` lets each of many workers pick a job that no other is picking,
and the row that a guarded write asks about is locked until it is written.  Every time is the server's, so that a
worker whose clock is wrong harms nobody.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from jobslab.errors import IdTaken, OutcomeUnknown, SecondServer, StoreError
from jobslab.stores.database import Connection, Cursor

IDLE_CONNECTIONS = 8  # kept open for the next caller; more are closed after use
CONNECT_SECONDS = 10
SERVER_LOCK = 8202  # the advisory lock of the only server of a store with persistence off

CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"


@cache
def translated(sql: str) -> str:
    """The statement with :name written as psycopg wants it; `::type` stays."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql)


class Session:
    """One connection, and the server's time at the beginning of the transaction that it is in."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.began: float | None = None

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, /) -> Cursor:
        # Without parameters a statement is sent as it is: % and : are then only characters.
        return self.raw.execute(translated(sql), parameters) if parameters else self.raw.execute(sql.encode())

    def begin(self) -> None:
        """Begin, and learn the time, in one trip to the server."""
        cursor = self.raw.execute(f"BEGIN; {CLOCK}")
        cursor.nextset()
        row = cursor.fetchone()
        assert row is not None
        self.began = row[0]

    def end(self, how: str) -> None:
        self.began = None
        self.raw.execute(how.encode())


class PostgreSQL:
    """One database of a PostgreSQL server, version 15 or later, by its URL."""

    slots = {  # noqa: RUF012, a protocol's attribute
        "skip_locked": "\n   FOR UPDATE SKIP LOCKED",
        "for_update": "\n   FOR UPDATE",
        "generated": " GENERATED ALWAYS AS IDENTITY",
    }

    def __init__(self, url: str) -> None:
        self.url = url
        self._idle: deque[Session] = deque()
        self._server_lock: Session | None = None
        with self._explained():
            self._idle.append(self._connect())

    def __str__(self) -> str:
        """The database without its password."""
        try:
            parts = conninfo_to_dict(self.url)
        except psycopg.ProgrammingError:
            return "the PostgreSQL database"
        return f"PostgreSQL database {parts.get('dbname', '')!r} at {parts.get('host', 'localhost')}"

    def now(self, db: Connection) -> float:
        session = cast(Session, db)
        return session.began if session.began is not None else float(db.execute(CLOCK).fetchone()[0])

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._explained(), self._session() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction.  Raises OutcomeUnknown where the connection is lost while it is committed: it may have
        been kept, and only the caller knows whether doing it again is safe."""
        with self._explained(), self._session(begun=True) as session:
            try:
                yield session
            except BaseException:
                if not session.raw.closed:
                    session.end("ROLLBACK")
                raise
            try:
                session.end("COMMIT")
            except psycopg.OperationalError as wrong:
                raise OutcomeUnknown(
                    f"the connection to {self} was lost during a commit; the change may have been kept or not"
                ) from wrong

    def has_table(self, db: Connection, name: str) -> bool:
        return bool(db.execute("SELECT to_regclass(:name) IS NOT NULL", {"name": name}).fetchone()[0])

    def is_empty(self, db: Connection) -> bool:
        """Is there no table in the schema where ours would be made?  Called before making them, so it also takes the
        lock that keeps a second maker waiting until the first is done."""
        db.execute("SELECT pg_advisory_xact_lock(:key)", {"key": SERVER_LOCK + 1})
        found = db.execute("SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())")
        return not found.fetchone()[0]

    def lock_server(self) -> None:
        if self._server_lock is not None:
            return
        with self._explained():
            session = self._connect()
            if session.execute("SELECT pg_try_advisory_lock(:key)", {"key": SERVER_LOCK}).fetchone()[0]:
                self._server_lock = session
                return
            session.raw.close()
        raise SecondServer(f"{self} is a store with persistence off and has a server already; stop that one first")

    def close(self) -> None:
        for session in [*self._idle, self._server_lock]:
            if session is not None:
                session.raw.close()
        self._idle.clear()
        self._server_lock = None

    def _connect(self) -> Session:
        return Session(psycopg.connect(self.url, autocommit=True, connect_timeout=CONNECT_SECONDS))

    @contextmanager
    def _session(self, begun: bool = False) -> Iterator[Session]:
        session = self._take(begun)
        try:
            yield session
        finally:
            if session.raw.closed or len(self._idle) >= IDLE_CONNECTIONS:
                session.raw.close()
            else:
                self._idle.append(session)

    def _take(self, begun: bool) -> Session:
        """A session that works.  An idle one may have died with its server, and shows it at its first statement:
        nothing was asked of it yet, so a new one may take its place."""
        while self._idle:
            try:
                session = self._idle.pop()
            except IndexError:
                break  # another thread was faster
            try:
                session.begin() if begun else session.execute("SELECT 1")
                return session
            except psycopg.OperationalError:
                session.raw.close()
        session = self._connect()
        if begun:
            session.begin()
        return session

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """PostgreSQL's errors as ours, in a sentence that says what to do."""
        try:
            yield
        except errors.UniqueViolation as wrong:
            if wrong.diag.constraint_name != "jobs_pkey":
                raise
            raise IdTaken("a job with this id is there already") from wrong
        except (psycopg.OperationalError, psycopg.ProgrammingError, errors.InternalError_) as wrong:
            raise StoreError(explain(wrong, self)) from wrong


# What the server or its library says, and what that means to the person who gave the address.
EXPLANATIONS = {
    "password authentication failed": "{store} refuses the user or the password; check the URL",
    "does not exist": "{store} can't be used: {said}; create it, or check the URL",
    "permission denied": "{store} can't be used: {said}; ask its owner for the right to use it",
    "No space left": "there is no room left for {store}; nothing of this change was kept",
    "connection failed": "{store} can't be reached; check the URL and that the server is up",
    "could not translate host name": "{store} can't be found; check the host name in the URL",
    "timeout": "{store} did not answer in time; check the URL and that the server is up",
    "server closed the connection": "the connection to {store} was lost; nothing of this change was kept",
    "terminating connection": "the connection to {store} was lost; nothing of this change was kept",
}


def explain(wrong: psycopg.Error, store: object) -> str:
    """One sentence for people on what is wrong with a database."""
    said = str(wrong).strip() or type(wrong).__name__
    for part, sentence in EXPLANATIONS.items():
        if part in said:
            return sentence.format(store=store, said=said.splitlines()[0])
    return f"{store} can't be used: {said.splitlines()[0]}"
