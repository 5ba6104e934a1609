"""Which ways are there to keep a store?  The one list that the whole suite runs over."""

from collections.abc import Callable
from pathlib import Path

from jobslab.stores.database import Database
from jobslab.stores.sqlite import SQLite
from tests import postgres

# From a folder of the test's own to a database: the same one whenever it is asked again, where there is a file.
# A database that joins needs one line here.  What is asked is not whether the disk keeps it, hence OFF.
WAYS: dict[str, Callable[[Path], Database]] = {
    "a file": lambda folder: SQLite(str(folder / "jobs.db"), synchronous="OFF"),
    "without a file": lambda folder: SQLite(),
    "PostgreSQL": postgres.database,
}

# Those that a second store finds again.
SHARED = [way for way in WAYS if way != "without a file"]
