"""Where are the jobs kept?  `open_store(contract, url)` answers with a Store, whose verbs are each one transaction.

A store is the same `SQLStore` on every database; what a database does differently is in the module of its name.
"""

from collections.abc import Collection

from jobslab.contract import Contract
from jobslab.errors import StoreError
from jobslab.job import KINDS
from jobslab.settings import SERVICE, Settings
from jobslab.stores import schema
from jobslab.stores.database import Database
from jobslab.stores.schema import Migrated
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite

Store = SQLStore


def open_store(
    contract: Contract | None = None,
    url: str | None = None,
    *,
    settings: Settings = SERVICE,
    kinds: Collection[str] = KINDS,
) -> Store:
    """The store at `url`: a file's path, a postgresql:// address, or None for one without a file, gone when closed.

    The contract is stored with the store.  `contract=None` adopts it (a new store gets the full one); another than
    the store was made with raises ContractMismatch.  Raises StoreError where the database can't be used.
    """
    database = postgresql(url) if url and is_postgresql(url) else SQLite(url)
    return SQLStore(database, contract, settings=settings, kinds=kinds)


def migrate(contract: Contract | None, url: str) -> Migrated:
    """Make the tables of a store on PostgreSQL, or bring them up to date; `contract` as for `open_store`.

    Raises StoreError, also for a file, which makes its own tables; ContractMismatch."""
    if not is_postgresql(url):
        raise StoreError("only a postgresql:// address is migrated; a file makes its own tables when it is opened")
    database = postgresql(url)
    try:
        return schema.migrate(database, contract)
    finally:
        database.close()


def is_postgresql(url: str) -> bool:
    return url.startswith(("postgresql:", "postgres:"))


def postgresql(url: str) -> Database:
    try:
        from jobslab.stores.postgres import PostgreSQL
    except ImportError as wrong:
        raise StoreError("PostgreSQL needs psycopg; install jobslab with its extra: jobslab[postgres]") from wrong
    return PostgreSQL(url)


__all__ = ["Store", "is_postgresql", "migrate", "open_store"]
