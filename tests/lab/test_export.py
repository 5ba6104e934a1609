"""Does the real work get done, for the sample and for files of the user's own?"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jobslab.contract import Contract
from jobslab.errors import SourceError
from jobslab.lab.export import Exported, export, rows_in
from jobslab.source import sample
from jobslab.stores import open_store


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path


def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_the_sample_goes_through_the_whole_path_and_all_its_rows_arrive(tmp_path: Path) -> None:
    (orders,) = export(sample(), tmp_path)
    assert (orders.table, orders.state, orders.rows_in_table, orders.rows_in_file) == (
        "orders",
        "SUCCEEDED",
        4000,
        4000,
    )
    assert orders.whole
    with open_store(None, str(tmp_path / "export.db")) as store:
        assert [event.verb for event in store.events()][:2] == ["submit", "claim"]
        assert [event.verb for event in store.events()][-1] == "succeed"


@pytest.mark.parametrize("contract", [Contract(), Contract.none(), Contract().without("persistence")], ids=str)
def test_the_work_is_done_under_any_contract_when_nothing_goes_wrong(contract: Contract, tmp_path: Path) -> None:
    assert export(sample(), tmp_path, contract)[0].whole


def test_every_table_of_a_database_is_exported_whatever_it_is_called(tmp_path: Path) -> None:
    source = database(
        tmp_path / "mine.db",
        "CREATE TABLE empty (x)",
        'CREATE TABLE "odd ""name""" (x)',
        "INSERT INTO \"odd \"\"name\"\"\" VALUES ('with a\nline break'), (NULL)",
        "CREATE VIEW some AS SELECT x FROM \"odd \"\"name\"\"\" WHERE x IS NULL",
    )  # fmt: skip
    found = export(source, work(tmp_path))
    assert [(one.table, one.rows_in_table, one.rows_in_file) for one in found] == [
        ("empty", 0, 0),
        ('odd "name"', 2, 2),
        ("some", 1, 1),
    ]


def test_a_view_that_can_not_be_read_is_a_named_error(tmp_path: Path) -> None:
    source = database(tmp_path / "mine.db", "CREATE TABLE t (x)", "CREATE VIEW v AS SELECT x FROM t", "DROP TABLE t")
    with pytest.raises(SourceError, match="has a table that can't be read"):
        export(source, work(tmp_path))


def test_a_file_with_a_row_less_is_not_whole() -> None:
    assert not Exported("orders", "job-1", "SUCCEEDED", 4000, 3999, None).whole
    assert not Exported("orders", "job-1", "FAILED", 4000, None, "it broke").whole


def test_an_export_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is there when it is counted and gone when the worker comes."""
    source = database(tmp_path / "mine.db", "CREATE TABLE t (x)")
    monkeypatch.setattr("jobslab.lab.export.counts", lambda source: {"gone": 7})
    (gone,) = export(source, work(tmp_path))
    assert (gone.state, gone.rows_in_file) == ("FAILED", None)
    assert "'gone'" in str(gone.error)


def test_rows_are_counted_as_csv_and_not_as_lines(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text('a,b\n1,"two\nlines"\n3,4\n')
    assert rows_in(file) == 2
