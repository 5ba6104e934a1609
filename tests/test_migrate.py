"""What is promised of `jobslab migrate`: the tables are made once, only forwards, all or nothing, and jobs are kept."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobslab import Contract, open_store
from jobslab.cli import main
from jobslab.contract import MIGRATIONS, OVER, render, sql_list
from jobslab.errors import StoreError
from jobslab.job import State
from jobslab.stores import schema
from jobslab.stores.postgres import PostgreSQL
from tests import postgres
from tests.stores.steps import queued

Typed = Callable[..., tuple[int, str, str]]
NEXT = "ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An empty schema."""
    return postgres.schema_url(tmp_path)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """What a user gets who types a command: the exit code, what is said, and what is said to be wrong."""

    def typed(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jobslab", *arguments])
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return typed


def brought_to(url: str, *migrations: str) -> schema.Migrated:
    database = PostgreSQL(url)
    try:
        return schema.migrate(database, None, migrations)
    finally:
        database.close()


def tables(url: str) -> list[str]:
    database = PostgreSQL(url)
    with database.read() as db:
        found = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1").fetchall()
    database.close()
    return [name for (name,) in found]


def test_the_tables_are_made_and_then_are_there(url: str, typed: Typed) -> None:
    code, said, _ = typed("migrate", url)
    assert (code, said.split(": ")[1]) == (0, "tables of version 1 made, under the contract 'all'\n")
    assert tables(url) == ["events", "expired", "jobs", "jobslab"]
    assert "already there" in typed("migrate", url)[1]


def test_the_contract_is_named_once_and_then_adopted(url: str, typed: Typed) -> None:
    assert "'all but leases'" in typed("migrate", url, "--without", "leases")[1]
    assert "'all but leases'" in typed("migrate", url)[1]
    with open_store(None, url) as store:
        assert store.contract == Contract().without("leases")
    code, _, wrong = typed("migrate", url, "--with", "leases")
    assert code == 2
    assert "was made under the contract 'all but leases' and can't be opened under 'leases'" in wrong


def test_without_its_tables_a_store_is_not_opened_and_not_made(url: str) -> None:
    with pytest.raises(StoreError, match="no tables of jobslab yet; make them with `jobslab migrate URL`"):
        open_store(None, url)
    assert tables(url) == []


def test_an_older_store_is_not_opened_and_migrating_keeps_its_jobs(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    brought_to(url, *MIGRATIONS)
    with open_store(None, url) as store:
        job = queued(store)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
    with pytest.raises(
        StoreError, match="version 1 and this jobslab reads version 2; bring it .* `jobslab migrate URL`"
    ):
        open_store(None, url)
    assert brought_to(url, *MIGRATIONS, NEXT)[1:3] == (1, 2)
    with open_store(None, url) as store, store.database.read() as db:
        assert db.execute("SELECT id, priority FROM jobs").fetchall() == [(job.id, 0)]


def test_a_newer_store_is_neither_opened_nor_migrated(url: str, typed: Typed) -> None:
    brought_to(url, *MIGRATIONS, NEXT)
    says = "has a schema of version 2 and this jobslab reads version 1; open it with the jobslab that made it"
    with pytest.raises(StoreError, match=says):
        open_store(None, url)
    code, _, wrong = typed("migrate", url)
    assert code == 2
    assert says in wrong


def test_a_migration_that_fails_leaves_everything_as_it_was(url: str) -> None:
    brought_to(url, *MIGRATIONS)
    with pytest.raises(StoreError):
        brought_to(url, *MIGRATIONS, NEXT, "CREATE TABLE more (a INTEGER); ALTER TABLE nothing ADD COLUMN b INTEGER")
    assert brought_to(url, *MIGRATIONS)[1:3] == (1, 1)
    assert "more" not in tables(url)


def test_many_that_migrate_at_once_make_one_store(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: brought_to(url, *MIGRATIONS), range(6)))
    assert sorted(str(one.before) for one in done) == ["1"] * 5 + ["None"]


def test_a_schema_of_something_else_is_left_as_it_is(url: str, typed: Typed) -> None:
    database = PostgreSQL(url)
    with database.write() as db:
        db.execute("CREATE TABLE customers (id INTEGER)")
    database.close()
    code, _, wrong = typed("migrate", url)
    assert code == 2
    assert "is a database of something else; name another schema or database for the store" in wrong
    assert tables(url) == ["customers"]


def test_a_schema_that_is_not_there_is_named_as_the_trouble(url: str, typed: Typed) -> None:
    code, _, wrong = typed("migrate", url.replace("jobslab_test_", "no_such_"))
    assert code == 2
    assert "has no schema to put tables into; create the one that the URL names" in wrong


@pytest.mark.parametrize("arguments", [["jobs.db"], ["mysql://localhost/jobs"]])
def test_only_postgresql_is_migrated(typed: Typed, arguments: list[str], tmp_path: Path) -> None:
    code, _, wrong = typed("migrate", *arguments)
    assert code == 2
    assert "only a postgresql:// address is migrated" in wrong
    assert not (tmp_path / "jobs.db").exists()


@pytest.mark.parametrize("wrong", ["--without=lease", "--with=leases --without=persistence"])
def test_a_flag_that_is_none_is_refused_before_anything_is_made(url: str, typed: Typed, wrong: str) -> None:
    assert typed("migrate", url, *wrong.split())[0] == 2
    assert tables(url) == []


def test_the_tables_know_the_states_of_a_job() -> None:
    """A migration is history and repeats their names; they must be the same as long as it is the only one."""
    text = render(MIGRATIONS[0], Contract())
    assert f"CHECK (state IN {sql_list(State)})" in text
    assert f"CHECK (state NOT IN {OVER} OR" in text
