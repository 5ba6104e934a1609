"""How does a test get at a real PostgreSQL?  JOBSLAB_POSTGRES_URL, or one server out of the wheel for the whole run.

Each folder of a test has a schema of its own.  What a crash of the machine would leave is not asked here, hence no
fsync.
"""

import atexit
import hashlib
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from jobslab.errors import StoreError
from jobslab.lab.postgres import VARIABLE, Server, execute, with_schema
from jobslab.stores.postgres import PostgreSQL


@cache
def server_url() -> str:
    """The database that all tests of this run share, those of other processes too."""
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE]
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    server = Server(Path(tempfile.gettempdir()) / f"jobslab-tests-{run[:12]}")
    with suppress(StoreError):  # two processes may say it at once
        for sql in ("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"):
            execute(server.url, sql, in_transaction=False)
    return server.url


def schema_name(folder: Path) -> str:
    return f"jobslab_test_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"


@cache
def schema_url(folder: Path) -> str:
    """The URL of this folder's schema, made when it is first asked for."""
    name = schema_name(folder)
    execute(server_url(), f"DROP SCHEMA IF EXISTS {name} CASCADE")
    execute(server_url(), f"CREATE SCHEMA {name}")
    if VARIABLE in os.environ:
        atexit.register(execute, server_url(), f"DROP SCHEMA IF EXISTS {name} CASCADE")
    return with_schema(server_url(), name)


def database(folder: Path) -> PostgreSQL:
    """This folder's database, which makes its own tables when it is opened, as a file does."""
    made = PostgreSQL(schema_url(folder))
    made.migrated = False
    atexit.register(made.close)  # a test may leave it open, as it may a file
    return made
