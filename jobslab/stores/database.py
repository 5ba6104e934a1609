"""What must a database offer so that the same store runs on it?  Two small protocols; `sqlite` and `postgres` are the
two answers, and all that differs between them."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Cursor(Protocol):
    """The rows of one statement, as tuples."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Runs statements, with :named parameters, in the order in which they are given."""

    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> Cursor: ...

    def later(self, sql: str, parameters: Mapping[str, Any], /) -> Cursor:
        """Runs the statement not later than the next one that is executed, or the end of the transaction; only then
        is its answer there."""
        ...


class Database(Protocol):
    """One database: its connections, its transactions, its clock.  Its `str` names it to people.

    All methods raise StoreError, in a sentence that says what to do, where the database can't be used.
    """

    slots: dict[str, str]  # what it adds to the statements: see contract.PLAIN_SLOTS
    place: str  # what a user names to say where it is
    migrated: bool  # are its tables made by `jobslab migrate`, and not by opening it?

    def read(self) -> AbstractContextManager[Connection]:
        """A connection for statements that only read."""
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """A connection inside one transaction, which is kept, or undone when the body raises."""
        ...

    def now(self, db: Connection) -> float:
        """The database's own time, in seconds since 1970."""
        ...

    def has_table(self, db: Connection, name: str) -> bool: ...

    def lock_schema(self, db: Connection) -> None:
        """Let no other transaction make or change the tables until this one has ended."""
        ...

    def is_empty(self, db: Connection) -> bool:
        """Is nothing in this database, so that it may become a store?"""
        ...

    def lock_server(self) -> None:
        """Be the only server of this database until `close`, or until the process ends, however it ends.

        Raises SecondServer."""
        ...

    def close(self) -> None: ...
