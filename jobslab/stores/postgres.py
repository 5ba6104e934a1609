"""What is particular to PostgreSQL?  Many writers at once, a clock of its own, and a connection that can be lost.

The statements are the same; `FOR UPDATE SKIP LOCKED` lets each of many workers pick a job that no other is picking,
and the row that a guarded write asks about is locked until it is written.  Every time is the server's, so that a
worker whose clock is wrong harms nobody.

A connection may be lost at any moment.  Before the commit was asked for, nothing was kept; while it was asked for,
nobody here can know, and the caller is told so (OutcomeUnknown).  Only a connection that nothing was asked of yet is
replaced in silence.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from jobslab.errors import IdTaken, OutcomeUnknown, SecondServer, StoreError
from jobslab.stores.database import Connection, Cursor

IDLE_CONNECTIONS = 8  # kept open for the next caller; more are closed after use
OLDEST = 15  # the first version that is supported

# Unless the URL says otherwise: a peer that is gone is noticed within a minute, and not after TCP's two hours.
CONNECTING: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "application_name": "jobslab",
}

# Advisory locks are the whole database's; the second half of each is the schema or the table that is meant.
SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(8201, hashtext(current_schema()))"
SERVER_LOCK = "SELECT pg_try_advisory_lock(8202, 'jobs'::regclass::oid::int)"

CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"

# Whatever the server's defaults are: under a stricter level a claim that meets another fails instead of passing it by.
BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED; {CLOCK}"

# What goes wrong while a database is used, and is not a mistake of this program.
TROUBLES = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.ProgrammingError,
    psycopg.InternalError,
    psycopg.DataError,
)


@cache
def translated(sql: str) -> str:
    """The statement with :name written as psycopg wants it; `::type` stays."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql)


def address_of(url: str) -> dict[str, Any]:
    """The parts of the URL.  Raises StoreError, whose text must not repeat them: one is the password."""
    with suppress(psycopg.ProgrammingError):
        address = conninfo_to_dict(url)
        if "@" not in f"{address.get('host')}{address.get('dbname')}":  # else a / in the password has ended the host
            return address
    raise StoreError(
        "the address of the PostgreSQL database can't be read; it is postgresql://USER:PASSWORD@HOST/DATABASE, "
        "with any / : @ ? # % in the password written as % and two hex digits"
    )


class Session:
    """One connection, and the server's time when it was last taken into use."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.taken_at = 0.0
        self._cursor = raw.cursor()  # one for all: making a cursor is a fifth of the cost of a statement
        self._later: list[Statement] = []

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None, /) -> Cursor:
        if not self._later:
            return sent(self._cursor, sql, parameters)
        later, self._later = self._later, []
        with self.raw.pipeline():
            for statement in later:
                sent(*statement)
            return sent(self._cursor, sql, parameters)

    def later(self, sql: str, parameters: Mapping[str, Any], /) -> Cursor:
        """A trip to the server less: this is sent together with what is executed next."""
        self._later.append((self.raw.cursor(), sql, parameters))
        return self._later[-1][0]

    def take(self, sql: str) -> None:
        """Ask for the time, the last that `sql` selects, in one trip to the server."""
        cursor = self._cursor.execute(sql.encode())
        while cursor.nextset():
            pass
        self.taken_at = cast(tuple[float], cursor.fetchone())[0]

    def undo(self) -> None:
        """End the transaction without keeping it, if the connection is still there."""
        self._later.clear()
        with suppress(psycopg.Error):
            self.execute("ROLLBACK")

    @property
    def reusable(self) -> bool:
        """Alive, and in no transaction."""
        return not self.raw.closed and self.raw.pgconn.transaction_status == TransactionStatus.IDLE


Statement = tuple["psycopg.Cursor[Any]", str, Mapping[str, Any] | None]


def sent(cursor: "psycopg.Cursor[Any]", sql: str, parameters: Mapping[str, Any] | None) -> "psycopg.Cursor[Any]":
    # Without parameters a statement is sent as it is: % and : are then only characters.
    return cursor.execute(translated(sql), parameters) if parameters else cursor.execute(sql.encode())


class PostgreSQL:
    """One database of a PostgreSQL server, by its URL; `?options=-csearch_path%3DNAME` names a schema in it."""

    slots = {  # noqa: RUF012, a protocol's attribute
        "skip_locked": "\n   FOR UPDATE SKIP LOCKED",
        "for_update": "\n   FOR UPDATE",
        "counted": "BIGINT GENERATED ALWAYS AS IDENTITY",
        "binary": ' COLLATE "C"',  # ids are ordered alike on every database and in every language
    }
    place = "schema or database"
    migrated = True

    def __init__(self, url: str) -> None:
        self._address = CONNECTING | address_of(url)
        self._idle: deque[Session] = deque()
        self._closed = False
        self._server_lock: Session | None = None
        self._idle.append(self._connect())

    def __str__(self) -> str:
        """The database without its password."""
        host = self._address.get("host") or self._address.get("hostaddr") or "this machine"
        return f"PostgreSQL database {self._address.get('dbname', '')!r} at {host}"

    def now(self, db: Connection) -> float:
        return cast(Session, db).taken_at

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._explained(), self._session(CLOCK) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction.  Raises OutcomeUnknown where the connection is lost while it is committed: it may have
        been kept, and only the caller knows whether doing it again is safe."""
        with self._explained(), self._session(BEGIN) as session:
            try:
                yield session
            except BaseException:
                session.undo()
                raise
            self._commit(session)

    def _commit(self, session: Session) -> None:
        try:
            session.execute("COMMIT")
        except psycopg.Error as wrong:
            if not session.raw.closed:
                raise  # the server has answered, and has undone it
            raise OutcomeUnknown(
                f"the connection to {self} was lost during a commit; the change may have been kept or not"
            ) from wrong

    def has_table(self, db: Connection, name: str) -> bool:
        return bool(db.execute("SELECT to_regclass(:name) IS NOT NULL", {"name": name}).fetchone()[0])

    def lock_schema(self, db: Connection) -> None:
        db.execute(SCHEMA_LOCK)

    def is_empty(self, db: Connection) -> bool:
        """Is there no table in the schema where ours would be made?"""
        found = db.execute("SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())")
        return not found.fetchone()[0]

    def lock_server(self) -> None:
        """As Database says; the lock ends with the connection too, so with the server that holds it."""
        if self._server_lock is not None:
            return
        with self._explained():
            session = self._connect()
            if session.execute(SERVER_LOCK).fetchone()[0]:
                self._server_lock = session
                return
            session.raw.close()
        raise SecondServer(f"{self} is a store with persistence off and has a server already; stop that one first")

    def close(self) -> None:
        """What another thread is using is closed by that thread."""
        self._closed = True
        while (session := self._next_idle()) is not None:
            session.raw.close()
        if self._server_lock is not None:
            self._server_lock.raw.close()
        self._server_lock = None

    def _connect(self) -> Session:
        try:
            raw = psycopg.connect(**self._address, autocommit=True)
        except psycopg.OperationalError as wrong:
            raise StoreError(explain(wrong, self, "{store} can't be reached; check the URL and the server")) from wrong
        if raw.info.server_version < OLDEST * 10_000:
            raw.close()
            raise StoreError(f"{self} is version {raw.info.server_version // 10_000}; jobslab needs {OLDEST} or later")
        # A 202 promises a kept job, whatever the server's default is; the stricter ones are left as they are.
        raw.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        return Session(raw)

    @contextmanager
    def _session(self, begin: str) -> Iterator[Session]:
        session = self._take(begin)
        try:
            yield session
        finally:
            if session.reusable and not self._closed and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(session)
            else:
                session.raw.close()

    def _take(self, begin: str) -> Session:
        """A session that works, and has begun.  An idle one may have died with its server, and shows it here: nothing
        was asked of it yet, so that another may take its place."""
        if self._closed:
            raise StoreError(f"{self} is closed already")
        while (session := self._next_idle()) is not None:
            try:
                session.take(begin)
                return session
            except psycopg.OperationalError:
                session.raw.close()
        session = self._connect()
        session.take(begin)
        return session

    def _next_idle(self) -> Session | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """PostgreSQL's errors as ours, in a sentence that says what to do."""
        try:
            yield
        except errors.UniqueViolation as wrong:
            if wrong.diag.constraint_name != "jobs_pkey":
                raise
            raise IdTaken("a job with this id is there already") from wrong
        except TROUBLES as wrong:
            raise StoreError(explain(wrong, self, "{store} can't be used: {said}")) from wrong


# What the server or its library says, and what that means to the person who gave the address.
EXPLANATIONS = {
    "password authentication failed": "{store} refuses the user or the password; check the URL",
    "no password supplied": "{store} wants a password; put it into the URL",
    "does not exist": "{store} can't be used: {said}; create it, or check the URL",
    "no schema has been selected": "{store} has no schema to put tables into; create the one that the URL names",
    "permission denied": "{store} can't be used: {said}; ask its owner for the right to use it",
    "read-only transaction": "{store} can only be read; name the server that takes writes",
    "No space left": "there is no room left for {store}; nothing of this change was kept",
    "too many": "{store} has no connection left for us; try again, or raise its max_connections",
    "remaining connection slots": "{store} has no connection left for us; try again, or raise its max_connections",
    "system is": "{store} is starting or stopping; try again",
    "failed to resolve host": "{store} can't be found; check the host name in the URL",
    "connection option": "{store} can't be used: {said}; check the URL",
    "timeout expired": "{store} did not answer in time; check the URL and that the server is up",
    "server closed the connection": "the connection to {store} was lost; nothing of this change was kept",
    "connection is lost": "the connection to {store} was lost; nothing of this change was kept",
    "terminating connection": "the connection to {store} was lost; nothing of this change was kept",
}


def explain(wrong: psycopg.Error, store: object, otherwise: str) -> str:
    """One sentence for people on what is wrong with a database."""
    said = str(wrong).strip() or type(wrong).__name__
    sentence = next((sentence for part, sentence in EXPLANATIONS.items() if part in said), otherwise)
    return sentence.format(store=store, said=said.splitlines()[0])
