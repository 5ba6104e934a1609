"""Where are the jobs kept?  `open_store(contract, url)` answers with a Store, whose verbs are each one transaction.

A store is the same `SQLStore` on every database; what a database does differently is in the module of its name.
"""

from collections.abc import Collection

from jobslab.contract import Contract
from jobslab.errors import StoreError
from jobslab.job import KINDS
from jobslab.settings import SERVICE, Settings
from jobslab.stores.database import Database
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
    if url and url.startswith(("postgresql:", "postgres:")):
        return SQLStore(postgresql(url), contract, settings=settings, kinds=kinds)
    return SQLStore(SQLite(url), contract, settings=settings, kinds=kinds)


def postgresql(url: str) -> Database:
    try:
        from jobslab.stores.postgres import PostgreSQL
    except ImportError as wrong:
        raise StoreError("PostgreSQL needs psycopg; install jobslab with its extra: jobslab[postgres]") from wrong
    return PostgreSQL(url)


__all__ = ["Store", "open_store"]
