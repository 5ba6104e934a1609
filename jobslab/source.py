"""Which data does an export read?  The sample that travels with the package, or a CSV or SQLite file of the user's own.

An export reads tables of an SQLite database.  A CSV file becomes one first: a table of the file's name, the types of
its columns detected by sqlite-utils.  A database of the user's is read where it lies, and never written.
"""

import csv
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jobslab.errors import SourceError

MAGIC = b"SQLite format 3\0"  # how every SQLite file begins (https://sqlite.org/fileformat2.html, section 1.3)
BUSY_SECONDS = 5  # how long a read waits for somebody else's lock

# A number that the database gives back as the same: 01234 is a postal code, and nineteen digits are an id.
NUMBER = re.compile(r"-?(?=[\d.]{1,15}\Z)(0|[1-9]\d*)(\.\d+)?\Z", re.ASCII)


def sample() -> Path:
    """orders.csv: the table that is exported when nobody names another."""
    return _data("orders.csv")


def expected() -> Path:
    """expected.csv: what each scenario must show."""
    return _data("expected.csv")


def _data(name: str) -> Path:
    """The file in the wheel, or in the repository beside the package.  Raises SourceError."""
    for directory in (Path(__file__).parent / "data", Path(__file__).parents[1] / "data"):
        if (directory / name).is_file():
            return directory / name
    raise SourceError(f"{name} did not come with this jobslab; install it again")


def as_database(path: Path | str, directory: Path | str) -> Path:
    """An SQLite database with the tables of a CSV file (loaded into `directory`) or of an SQLite file (`path` itself).

    Raises SourceError where the file is neither, or can't be read, or `directory` can't be written; then nothing is
    left behind.
    """
    path, directory = Path(path), Path(directory)
    start = _start_of(path)
    if not start.strip():
        raise SourceError(f"{path} is empty; name a CSV file with a line of column names, or an SQLite database")
    if start.startswith(MAGIC):
        _check(path)
        return path
    return _load(path, directory)


def connect(path: Path) -> sqlite3.Connection:
    """A connection that can't write; the caller closes it.  Raises sqlite3.OperationalError."""
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)


def table_names(db: sqlite3.Connection) -> list[str]:
    """The tables and views that can be exported."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'")
    return [name for (name,) in rows]


def _start_of(path: Path) -> bytes:
    if not path.exists():
        raise SourceError(f"there is no file {path}; name a CSV file or an SQLite database")
    if not path.is_file():
        raise SourceError(f"{path} is not a file; name a CSV file or an SQLite database")
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except OSError as wrong:
        raise SourceError(f"{path} can't be read ({wrong.strerror}); check its permissions") from wrong


# SQLite


def _check(path: Path) -> None:
    """Raises SourceError unless the database is sound and holds a table."""
    try:
        with closing(connect(path)) as db:
            tables = table_names(db)
            said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as wrong:
        raise SourceError(_unreadable(path, str(wrong))) from wrong
    if said != "ok":
        raise SourceError(_unreadable(path, f"damaged: {said.splitlines()[-1]}"))
    if not tables:
        raise SourceError(f"{path} is an SQLite database without a table; name one that has something to export")


def _unreadable(path: Path, said: str) -> str:
    if "locked" in said:
        return f"{path} is locked by another program; close that one, or try again"
    return f"{path} can't be read as an SQLite database ({said}); restore it from a copy, or name another file"


# CSV


def _load(path: Path, directory: Path) -> Path:
    """The CSV file as a database, which appears under its name only when it is whole."""
    target = directory / f"{path.name}.sqlite"
    with _staged(directory) as staged, path.open(newline="", encoding="utf-8-sig") as file:
        try:
            _fill(staged, path.stem, _rows(path, file))
        except UnicodeDecodeError as wrong:
            raise SourceError(f"{path} is not text in UTF-8; save it as CSV in UTF-8") from wrong
        except csv.Error as wrong:
            raise SourceError(f"{path} is not a CSV file ({wrong}); save it as CSV in UTF-8") from wrong
        except (sqlite3.Error, ValueError) as wrong:
            raise SourceError(f"{path} can't be loaded as a table ({wrong}); change its name or columns") from wrong
        os.replace(staged, target)
    return target


@contextmanager
def _staged(directory: Path) -> Iterator[Path]:
    """A path in `directory` to write to first; whatever still lies there afterwards is removed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".loading-", dir=directory) as inside:
            yield Path(inside) / "staged.sqlite"
    except OSError as wrong:
        raise SourceError(f"{directory} can't be written ({wrong.strerror}); name another directory") from wrong


def _rows(path: Path, file: Iterable[str]) -> Iterator[dict[str, str]]:
    """First the column names, as keys of an empty row, then the rows.  Raises SourceError, csv.Error."""
    lines = iter(_text(path, file))
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), strict=True, delimiter=max(",;\t", key=first.count))
    header = _header(path, next(reader))
    yield dict.fromkeys(header, "")
    for row in reader:
        if len(row) != len(header) and row:
            raise SourceError(
                f"{path} has {len(header)} columns, but {len(row)} in line {reader.line_num}; mend that line"
            )
        if row:
            yield dict(zip(header, row))


def _text(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise SourceError(f"{path} is not text; name a CSV file or an SQLite database")
        yield line


def _header(path: Path, names: list[str]) -> list[str]:
    """The names of the columns.  Raises SourceError where the first line can't be one of names."""
    twice = len({name.lower() for name in names}) < len(names)
    if twice or not all(name.strip() for name in names) or all(NUMBER.match(name) for name in names):
        raise SourceError(f"{path} has no header; write a name for each column, all different, into its first line")
    return names


def _fill(database: Path, table: str, rows: Iterator[dict[str, str]]) -> None:
    from sqlite_utils import Database  # takes long to import, and few need it
    from sqlite_utils.utils import TypeTracker

    header, tracker, texts = next(rows), TypeTracker(), set[str]()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # it is loaded again at the next start
        made: Any = Database(connection)[table]
        made.create(dict.fromkeys(header, str))
        made.insert_all(tracker.wrap(_watched(rows, texts)))
        numbers = {column: type for column, type in tracker.types.items() if column not in texts}
        made.transform(types=numbers)


def _watched(rows: Iterable[dict[str, str]], texts: set[str]) -> Iterator[dict[str, str]]:
    """The same rows; `texts` gathers the columns with a value that only a text keeps as it is."""
    for row in rows:
        texts |= {column for column, value in row.items() if value and not NUMBER.match(value)}
        yield row
