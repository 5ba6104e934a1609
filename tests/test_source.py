"""Is what an export reads a database with the user's table, and is everything else refused in one sentence?"""

import csv
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils.db import quote_identifier

from jobslab.errors import SourceError
from jobslab.source import as_database, connect, expected, sample, table_names

SHOP = "id,customer,total\n1,ann,3.50\n2,bob,12\n"


def tables(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(connect(database)) as db:
        return {name: db.execute(f"SELECT * FROM {quote_identifier(name)}").fetchall() for name in table_names(db)}


def types(database: Path, table: str) -> dict[str, str]:
    with closing(connect(database)) as db:
        return {name: type for _, name, type, *_ in db.execute(f'PRAGMA table_info("{table}")')}


def written(folder: Path, text: str, name: str = "shop.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def sqlite_file(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path


# What travels with the package


def test_the_sample_has_a_header_and_some_thousand_orders(tmp_path: Path) -> None:
    (name, orders), *others = tables(as_database(sample(), tmp_path)).items()
    assert (name, others) == ("orders", [])
    with sample().open(newline="") as file:
        assert len(orders) == len(list(csv.reader(file))) - 1 > 2000


def test_the_expected_outcomes_are_found() -> None:
    with expected().open(newline="") as file:
        assert next(csv.reader(file)) == ["scenario", "variant", "flags_on", "step", "expected", "switches"]


def test_in_a_wheel_the_data_lies_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "site-packages" / "jobslab" / "data"
    inside.mkdir(parents=True)
    (inside / "orders.csv").write_text(SHOP)
    monkeypatch.setattr("jobslab.source.__file__", str(inside.parent / "source.py"))
    assert sample() == inside / "orders.csv"
    with pytest.raises(SourceError, match=r"expected.csv .* install it again"):
        expected()


# A CSV file becomes a database


def test_a_csv_file_becomes_a_table_of_its_name(tmp_path: Path) -> None:
    database = as_database(written(tmp_path, SHOP), tmp_path / "made" / "here")
    assert database.parent == tmp_path / "made" / "here"
    assert tables(database) == {"shop": [(1, "ann", 3.5), (2, "bob", 12.0)]}
    assert [file.name for file in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize(
    ("values", "type", "loaded"),
    [
        ("1 2 -3", "INTEGER", [1, 2, -3]),
        ("1.5 2 0.25", "REAL", [1.5, 2.0, 0.25]),
        ("1 two 3", "TEXT", ["1", "two", "3"]),
        ("01234 00001 99999", "TEXT", ["01234", "00001", "99999"]),
        ("+1 2 3", "TEXT", ["+1", "2", "3"]),
        ("1_000 2 3", "TEXT", ["1_000", "2", "3"]),
        ("9007199254740993123 1 2", "TEXT", ["9007199254740993123", "1", "2"]),
        ("1234567890.123456789 1 2", "TEXT", ["1234567890.123456789", "1", "2"]),
        ("\u0661 1 2", "TEXT", ["\u0661", "1", "2"]),
        ("nan inf 1", "TEXT", ["nan", "inf", "1"]),
        ("1e3 2 3", "TEXT", ["1e3", "2", "3"]),
    ],
)
def test_a_column_is_of_numbers_where_they_stay_what_they_are(
    tmp_path: Path, values: str, type: str, loaded: list[Any]
) -> None:
    file = written(tmp_path, "\n".join(["value,x", *[f"{value},x" for value in values.split()]]))
    database = as_database(file, tmp_path)
    assert types(database, "shop")["value"] == type
    assert [value for value, _ in tables(database)["shop"]] == loaded


def test_an_empty_field_among_numbers_is_null(tmp_path: Path) -> None:
    database = as_database(written(tmp_path, "a,b\n1,x\n,y\n3,\n"), tmp_path)
    assert tables(database) == {"shop": [(1, "x"), (None, "y"), (3, "")]}


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1;x\n",
        "a\tb\n1\tx\n",
        "a,b\r\n1,x\r\n",
        "\ufeffa,b\n1,x\n",
        'a,b\n"1","x"\n',
        "a,b\n1,x\n\n",
    ],
    ids=["semicolons", "tabs", "CRLF", "byte order mark", "quotes", "a blank line"],
)
def test_a_csv_file_may_be_written_in_other_ways(tmp_path: Path, text: str) -> None:
    assert tables(as_database(written(tmp_path, text), tmp_path)) == {"shop": [(1, "x")]}


def test_a_field_may_hold_line_breaks_and_quotes(tmp_path: Path) -> None:
    file = written(tmp_path, 'a,b\n1,"two\nlines, and a ""quote"""\n')
    assert tables(as_database(file, tmp_path)) == {"shop": [(1, 'two\nlines, and a "quote"')]}


def test_a_header_alone_is_an_empty_table(tmp_path: Path) -> None:
    database = as_database(written(tmp_path, "a,b\n"), tmp_path)
    assert tables(database) == {"shop": []}
    assert list(types(database, "shop")) == ["a", "b"]


@pytest.mark.parametrize("name", ['we"ird]name.csv', "drop table x;--.csv", "ünï.2024.csv", "select.csv"])
def test_a_table_may_have_any_name_that_a_file_has(tmp_path: Path, name: str) -> None:
    assert list(tables(as_database(written(tmp_path, SHOP, name), tmp_path))) == [name.removesuffix(".csv")]


def test_a_file_that_is_loaded_again_replaces_its_database(tmp_path: Path) -> None:
    as_database(written(tmp_path, SHOP), tmp_path)
    database = as_database(written(tmp_path, "a,b\n7,x\n"), tmp_path)
    assert tables(database) == {"shop": [(7, "x")]}


# An SQLite file is used as it is


def test_an_sqlite_file_is_used_where_it_lies_and_not_written(tmp_path: Path) -> None:
    file = sqlite_file(tmp_path / "shop.db", "CREATE TABLE a (x)", "CREATE VIEW b AS SELECT 1 AS y")
    before = file.read_bytes()
    assert as_database(file, tmp_path / "elsewhere") == file
    assert tables(file) == {"a": [], "b": [(1,)]}
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["shop.db"]


def test_a_connection_to_the_source_cannot_write(tmp_path: Path) -> None:
    file = sqlite_file(tmp_path / "why? 100%.db", "CREATE TABLE a (x)")
    with closing(connect(file)) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("INSERT INTO a VALUES (1)")


# Bad input: one sentence, and nothing left behind


def refused(path: Path, said: str) -> None:
    folder = path.parent / "target"
    with pytest.raises(SourceError, match=said) as error:
        as_database(path, folder)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "has no header"),
        (b"\n\na,b\n1,2\n", "has no header"),
        (b"1,2\n3,4\n", "has no header"),
        (b"a,,c\n1,2,3\n", "has no header"),
        (b"a,b,A\n1,2,3\n", "has no header"),
        (b"a,b\n1,2\n3\n", "but 1 in line 3"),
        (b"a,b\n1,2,3\n", "has 2 columns, but 3 in line 2"),
        (b'a,b\n1,"open\n2,x\n', "is not a CSV file"),
        (b'a,b\n1,"x"y\n', "is not a CSV file"),
        (b"a,b\n1,\xff\xfe\n", "is not text in UTF-8"),
        (b"a,b\n1,\0\n", "is not text"),
        (bytes(range(256)) * 20, "is not text"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is not text"),
        (b"a,b\n1," + b"x" * 200_000, "is not a CSV file"),
        (",".join(f"c{n}" for n in range(1200)).encode() + b"\n" + b",".join([b"1"] * 1200), "can't be loaded"),
    ],
)
def test_what_is_no_csv_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "shop.csv").write_bytes(content)
    refused(tmp_path / "shop.csv", said)


def test_a_row_that_is_wrong_far_down_leaves_nothing(tmp_path: Path) -> None:
    refused(written(tmp_path, "a,b\n" + "1,2\n" * 5000 + "1\n"), "in line 5002")


def test_a_database_gets_its_name_in_one_step_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = as_database(written(tmp_path, SHOP), tmp_path / "made")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jobslab.source.os.replace", fail)
    with pytest.raises(SourceError, match="No space left"):
        as_database(written(tmp_path, "a,b\n7,x\n"), tmp_path / "made")
    assert tables(database) == {"shop": [(1, "ann", 3.5), (2, "bob", 12.0)]}
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_name_that_sqlite_keeps_for_itself_is_refused(tmp_path: Path) -> None:
    refused(written(tmp_path, SHOP, "sqlite_x.csv"), "change its name")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "missing.csv", "there is no file")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "is not a file")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "is not a file")


def test_a_database_without_a_table_is_refused(tmp_path: Path) -> None:
    refused(sqlite_file(tmp_path / "shop.db", "CREATE TABLE a (x)", "DROP TABLE a"), "without a table")


FILLED = ("CREATE TABLE a (x)", "INSERT INTO a SELECT randomblob(9000)", "INSERT INTO a SELECT randomblob(9000)")


@pytest.mark.parametrize("end", [50, 600, 5000, 14_000])
def test_a_database_that_was_cut_off_is_refused(tmp_path: Path, end: int) -> None:
    file = sqlite_file(tmp_path / "shop.db", *FILLED)
    file.write_bytes(file.read_bytes()[:end])
    refused(file, "can't be read as an SQLite database")


def test_a_database_with_a_damaged_page_is_refused(tmp_path: Path) -> None:
    file = sqlite_file(tmp_path / "shop.db", *FILLED)
    content = bytearray(file.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    file.write_bytes(content)
    refused(file, "can't be read as an SQLite database")


def test_a_database_that_is_locked_is_called_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.source.BUSY_SECONDS", 0.05)
    file = sqlite_file(tmp_path / "shop.db", *FILLED)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused(file, "is locked by another program")


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
def open_folder() -> Iterator[Path]:
    """A folder that anybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_file_that_may_not_be_read_is_refused(open_folder: Path) -> None:
    written(open_folder, SHOP).chmod(0)
    with nobody():
        refused(open_folder / "shop.csv", "check its permissions")


def test_a_directory_that_may_not_be_written_is_refused(open_folder: Path) -> None:
    file = written(open_folder, SHOP)
    open_folder.chmod(0o555)
    with nobody(), pytest.raises(SourceError, match=r"target can't be written .* name another directory"):
        as_database(file, open_folder / "target")
    assert [path.name for path in open_folder.iterdir()] == ["shop.csv"]
