"""What is promised of an SQLite file: a commit is on the disk, and whatever is wrong is said in one sentence."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from jobslab import Contract, open_store
from jobslab.errors import SecondServer, StoreError
from jobslab.stores import Store
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite, explain
from tests.stores.steps import queued, row, succeeded

IMPATIENT = 0.05  # seconds that a test waits for a lock


def impatient(path: Path) -> Store:
    return SQLStore(SQLite(str(path), busy_seconds=IMPATIENT))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with one finished job."""
    with open_store(None, str(tmp_path / "jobs.db")) as store:
        succeeded(store)
    return tmp_path / "jobs.db"


def test_a_commit_is_on_the_disk_before_it_is_answered(path: Path) -> None:
    with open_store(None, str(path)) as store, store.database.read() as db:
        modes = [db.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("journal_mode", "synchronous")]
    assert modes == ["wal", 2]


@pytest.mark.parametrize("name", ["two words.db", "100%.db", "why?.db", "#1.db", "file:x?mode=memory", "über.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    with open_store(None, str(tmp_path / name)) as store:
        queued(store)
        assert (tmp_path / name).is_file()
    with open_store(None, str(tmp_path / name)) as store:
        assert row(store).id == "job-1"


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").touch()
    with open_store(None, str(tmp_path / "jobs.db")) as store:
        queued(store)


def test_stores_without_a_file_do_not_meet() -> None:
    with open_store() as one, open_store() as other:
        queued(one)
        assert other.rows() == ()


# Files that are no store


def refused(path: Path, said: str) -> None:
    """The file can't be opened, the sentence says so and names it, and the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=said) as error:
        impatient(path)
    assert str(path) in str(error.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_database_of_something_else_is_left_as_it_was(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        db.execute("CREATE TABLE customers (id INTEGER)")
    refused(tmp_path / "shop.db", "something else")
    assert [file.name for file in tmp_path.iterdir()] == ["shop.db"]


def test_a_database_with_a_table_of_our_name_is_left_as_it_was(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        db.execute("CREATE TABLE jobslab (id INTEGER)")
    refused(tmp_path / "shop.db", "can't be used")


def test_a_file_that_is_no_database_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database at all\n" * 100)
    refused(tmp_path / "notes.txt", "is not an SQLite database")


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    refused(tmp_path, "can't be opened")


def test_a_store_in_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    refused(tmp_path / "missing" / "jobs.db", "check that its directory is there")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_called_damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200:] = b"\xff" * (len(content) - 200)
    path.write_bytes(content)
    refused(path, "is damaged")


def test_damage_that_shows_late_is_called_damaged_too(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        page, size = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").fetchone()[0], 4096
        assert db.execute("PRAGMA page_size").fetchone()[0] == size
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    with open_store(None, str(path)) as store, pytest.raises(StoreError, match="is damaged"):
        queued(store, "job-2")


# Files that can't be used now


def test_a_locked_store_says_so_and_works_again_afterwards(path: Path) -> None:
    with impatient(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another program"):
            queued(store, "job-2")
        assert [job.id for job in store.rows()] == ["job-1"]
        other.execute("ROLLBACK")
        queued(store, "job-2")


def test_a_new_store_in_a_locked_file_is_not_made(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused(tmp_path / "jobs.db", "is locked by another program")


def test_a_new_store_waits_for_another_that_is_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turning WAL on fails at once while another writes, whatever the busy timeout: it has to be tried again."""
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waits = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if other.in_transaction:
                other.execute("COMMIT")

        monkeypatch.setattr("jobslab.stores.sqlite.time.sleep", wait)
        with open_store(None, str(tmp_path / "jobs.db")) as store:
            queued(store)
    assert len(waits) > 0


@contextmanager
def nobody() -> Iterator[None]:
    """Without the rights of root, which no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked_away() -> Iterator[Path]:
    """A store in a directory that everybody may read and nobody may write."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "jobs.db"
        with open_store(None, str(file)) as store:
            succeeded(store)
        file.chmod(0o444)
        Path(folder).chmod(0o555)
        yield file
        Path(folder).chmod(0o755)


def test_a_store_that_may_not_be_written_says_so(locked_away: Path) -> None:
    with nobody():
        refused(locked_away, "check")
        refused(locked_away.with_name("new.db"), "can't be opened; check that its directory is there and may be")
    assert [file.name for file in locked_away.parent.iterdir()] == ["jobs.db"]


def test_a_file_that_may_not_be_written_is_read_and_says_so(locked_away: Path) -> None:
    locked_away.parent.chmod(0o777)
    with nobody(), impatient(locked_away) as store:
        assert row(store).state == "SUCCEEDED"
        with pytest.raises(StoreError, match="can't be written; check the permissions"):
            queued(store, "job-2")


def test_a_full_store_keeps_whole_changes_alone(path: Path) -> None:
    with open_store(None, str(path)) as store:
        with store.database.read() as db:  # the one connection, which is used again
            db.execute("PRAGMA max_page_count = 40")
        accepted = ["job-1"]

        def fill() -> None:
            for n in range(2, 1000):
                store.submit(f"job-{n}", "wait", {"text": "x" * 1000})
                accepted.append(f"job-{n}")

        with pytest.raises(StoreError, match="no room left"):
            fill()
        assert len(accepted) > 1
        assert {job.id for job in store.rows()} == {event.job_id for event in store.events()} == set(accepted)


@pytest.mark.parametrize("said", ["disk I/O error", "database is locked", "something new"])
def test_whatever_sqlite_says_becomes_a_sentence_that_names_the_file(said: str) -> None:
    assert explain(said, "jobs.db").count("jobs.db") == 1


# The only server, across processes

SERVER = """
import sys
from jobslab import open_store
store = open_store(None, sys.argv[1])
store.start_server()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def server(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has started its server, and ends with the test at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_server_is_refused_from_another_process_until_the_first_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with open_store(Contract().without("persistence"), str(path)) as store, server(path) as process:
        job = queued(store)
        with pytest.raises(SecondServer, match="server already"):
            store.start_server()
        assert store.rows() == (job,)
        process.send_signal(signal.SIGKILL)
        process.wait()
        store.start_server()
        assert store.rows() == ()


def test_a_lock_that_cannot_be_taken_is_not_called_a_server(tmp_path: Path) -> None:
    with open_store(Contract().without("persistence"), str(tmp_path / "jobs.db")) as store:
        (tmp_path / "jobs.db-server").mkdir()
        with pytest.raises(StoreError, match="can't be opened") as error:
            store.start_server()
    assert not isinstance(error.value, SecondServer)
