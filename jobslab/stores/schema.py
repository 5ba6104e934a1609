"""Which tables does a store have, and who makes them?  The SQL files of `migrations`, in their order, never backwards.

A file of SQLite gets its tables when it is first opened.  On PostgreSQL `jobslab migrate` makes and changes them: a
database that others share is not changed because somebody started a worker.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jobslab.contract import MIGRATIONS, Contract, render
from jobslab.errors import ContractMismatch, StoreError
from jobslab.stores.database import Connection, Database

SCHEMA_VERSION = len(MIGRATIONS)


def open_schema(database: Database, contract: Contract | None) -> Contract:
    """The contract that this database was made under.  An empty one becomes a store, unless it has to be migrated.

    Raises StoreError for a schema that this code can't use, ContractMismatch."""
    with database.read() as db:
        found = made(database, db)
    if found is None and not database.migrated:
        with database.write() as db:
            found = made(database, db) or grown(database, db, contract, MIGRATIONS)
    if found is None:
        raise StoreError(f"{database} has no tables of jobslab yet; make them with `jobslab migrate URL`")
    version, made_under = found
    if version != SCHEMA_VERSION:
        raise StoreError(other_version(database, version))
    return agreed(database, made_under, contract)


class Migrated(NamedTuple):
    """What a migration found and left."""

    database: str  # its name, for people
    before: int | None  # the version; None: there was nothing
    after: int
    contract: Contract


def migrate(database: Database, contract: Contract | None, migrations: Sequence[str] = MIGRATIONS) -> Migrated:
    """Bring the tables of this database up to date, in one transaction.

    Raises StoreError for a schema that is newer, or is something else's; ContractMismatch."""
    with database.write() as db:
        database.lock_schema(db)
        found = made(database, db)
        if found is not None:
            agreed(database, found[1], contract)
            if found[0] > len(migrations):
                raise StoreError(other_version(database, found[0]))
        version, made_under = grown(database, db, contract, migrations)
    return Migrated(str(database), found and found[0], version, made_under)


def made(database: Database, db: Connection) -> tuple[int, Contract] | None:
    """The version and the contract of what is there; None: nothing of ours."""
    if not database.has_table(db, "jobslab"):
        return None
    version, contract = db.execute("SELECT schema_version, contract FROM jobslab").fetchone()
    return version, Contract.parse(contract)


def grown(
    database: Database, db: Connection, contract: Contract | None, migrations: Sequence[str]
) -> tuple[int, Contract]:
    """Run the migrations that this database has not had yet."""
    found = made(database, db)
    if found is None and not database.is_empty(db):
        raise StoreError(f"{database} is a database of something else; name another {database.place} for the store")
    version, contract = found or (0, contract or Contract())
    for text in migrations[version:]:
        for statement in render(text, contract, database.slots).split(";"):
            db.execute(statement)
    if found is None:
        db.execute("INSERT INTO jobslab VALUES (0, :contract)", {"contract": str(contract)})
    db.execute("UPDATE jobslab SET schema_version = :version", {"version": len(migrations)})
    return len(migrations), contract


def agreed(database: Database, made_under: Contract, contract: Contract | None) -> Contract:
    """The contract of the store.  Raises ContractMismatch where another one is asked for."""
    if contract is not None and contract != made_under:
        raise ContractMismatch(
            f"{database} was made under the contract '{made_under}' and can't be opened under '{contract}'; "
            f"open it as it was made, or name a new {database.place}"
        )
    return made_under


def other_version(database: Database, version: int) -> str:
    there = f"{database} has a schema of version {version} and this jobslab reads version {SCHEMA_VERSION}"
    if version < SCHEMA_VERSION and database.migrated:
        return f"{there}; bring it up to date with `jobslab migrate URL`"
    return f"{there}; open it with the jobslab that made it"
