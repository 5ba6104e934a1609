"""Do the tasks do what a job asks, and does an export leave a whole file or none?"""

import csv
import hashlib
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobslab import open_store
from jobslab.clock import ManualClock
from jobslab.job import KINDS, Error, Job, queued
from jobslab.source import as_database, connect, sample
from jobslab.tasks import tasks
from jobslab.worker import Permanent, Transient, run

Run = Callable[..., Any]


def job(kind: str, params: dict[str, Any], attempt: int = 1, id: str = "job-1") -> Job:
    new = queued(id, kind, json.dumps(params), "lab", None, "", 3, 0, None, None, 0)
    return new._replace(state="RUNNING", attempt=attempt, lease_until=10)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A database with a small and a large table."""
    with closing(sqlite3.connect(tmp_path / "source.db")) as db:
        db.execute("CREATE TABLE shop (id INTEGER, name TEXT, price REAL, picture BLOB)")
        db.execute("""INSERT INTO shop VALUES (1, 'a, "b"', 1.5, x'00ff'), (2, NULL, NULL, NULL)""")
        db.execute("CREATE TABLE large (n INTEGER)")
        db.executemany("INSERT INTO large VALUES (?)", [(n,) for n in range(1234)])
        db.execute("CREATE TABLE empty (a, b)")
        db.commit()
    return tmp_path / "source.db"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def begin(source: Path, results: Path, clock: ManualClock) -> Run:
    """Begins the task of a job: a generator of its progress."""
    known = tasks(source, results, clock)
    return lambda kind, params, **rest: known[kind](job(kind, params, **rest))


@pytest.fixture
def finish(begin: Run) -> Run:
    """The progress that the task told, and its result."""

    def finish(kind: str, params: dict[str, Any], **rest: Any) -> tuple[list[float], Any]:
        chunks, told = begin(kind, params, **rest), []
        while True:
            try:
                told.append(next(chunks))
            except StopIteration as end:
                return told, end.value

    return finish


def table(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.reader(opened))


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def error_of(act: Callable[[], Any], kind: type[Permanent] | type[Transient] = Permanent) -> Error:
    with pytest.raises(kind) as raised:
        act()
    return raised.value.error


def test_there_is_a_task_for_each_kind(source: Path, results: Path) -> None:
    assert tuple(tasks(source, results)) == KINDS


# Export


def test_an_export_writes_the_table_and_says_what_it_wrote(finish: Run, results: Path) -> None:
    _, result = finish("export", {"table": "shop"})
    content = (results / result["file"]).read_bytes()
    assert result == {
        "file": "job-1.1.csv",
        "rows": 2,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert table(results / result["file"]) == [
        ["id", "name", "price", "picture"],
        ["1", 'a, "b"', "1.5", "00ff"],
        ["2", "", "", ""],
    ]
    assert files(results) == ["job-1.1.csv"]


def test_an_export_tells_its_progress_and_is_never_done_before_the_end(finish: Run, results: Path) -> None:
    told, result = finish("export", {"table": "large"})
    assert len(told) == 3
    assert 0 < told[0] < told[1] < told[2] < 1
    assert result["rows"] == 1234
    assert table(results / result["file"]) == [["n"], *[[str(n)] for n in range(1234)]]


def test_an_empty_table_is_exported_with_its_header(finish: Run, results: Path) -> None:
    assert finish("export", {"table": "empty"})[1]["rows"] == 0
    assert table(results / "job-1.1.csv") == [["a", "b"]]


def test_the_sample_is_exported_whole(tmp_path: Path, results: Path) -> None:
    with open_store() as store:
        store.submit("job-1", "export", {"table": "orders"})
        known = tasks(as_database(sample(), tmp_path / "data"), results)
        for _ in run(store, "A", known, stop=lambda: store.waiting() == 0, rng=random.Random(0)):
            pass
        result = json.loads(store.rows()[0].result)
    assert result["rows"] == len(table(results / result["file"])) - 1 == len(table(sample())) - 1
    assert [row[:3] for row in table(results / result["file"])] == [row[:3] for row in table(sample())]


def test_no_file_has_its_name_before_it_is_whole(begin: Run, results: Path) -> None:
    chunks = begin("export", {"table": "large"})
    for _ in chunks:
        assert files(results) == [".job-1.1.csv.part"]
    assert files(results) == ["job-1.1.csv"]


def test_an_export_that_is_left_early_leaves_nothing(begin: Run, results: Path) -> None:
    chunks = begin("export", {"table": "large"})
    next(chunks)
    chunks.close()
    assert files(results) == []


def test_an_export_that_fails_half_way_leaves_nothing(begin: Run, results: Path, source: Path) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute("INSERT INTO large VALUES (CAST(x'ff' AS TEXT))")  # the last row, and no UTF-8
        db.commit()
    chunks = begin("export", {"table": "large"})
    assert next(chunks) > 0
    assert error_of(lambda: list(chunks)).type == "source unreadable"
    assert files(results) == []


def test_two_attempts_write_two_files_so_that_the_accepted_one_is_named(begin: Run, results: Path) -> None:
    stale, current = (begin("export", {"table": "large"}, attempt=attempt) for attempt in (1, 2))
    next(stale)
    next(current)
    list(stale)
    first = (results / "job-1.1.csv").read_bytes()
    list(current)
    assert files(results) == ["job-1.1.csv", "job-1.2.csv"]
    assert (results / "job-1.1.csv").read_bytes() == first


def test_an_export_is_of_one_moment_whoever_writes_meanwhile(begin: Run, results: Path, source: Path) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        chunks = begin("export", {"table": "large"})
        next(chunks)
        db.execute("DELETE FROM large WHERE n > 600")
        db.commit()
        list(chunks)
    assert len(table(results / "job-1.1.csv")) == 1235


def test_the_rows_are_those_that_were_counted(
    begin: Run, results: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute("PRAGMA journal_mode = WAL")

        def connect_and_be_disturbed(path: Path) -> sqlite3.Connection:
            reader = connect(path)

            def disturb(sql: str) -> None:
                if sql.startswith("SELECT * FROM"):
                    db.execute("INSERT INTO large VALUES (-1)")
                    db.commit()

            reader.set_trace_callback(disturb)
            return reader

        monkeypatch.setattr("jobslab.tasks.connect", connect_and_be_disturbed)
        list(begin("export", {"table": "large"}))
        assert db.execute("SELECT count(*) FROM large").fetchone()[0] == 1235
    assert len(table(results / "job-1.1.csv")) == 1235  # 1234, and the header


def test_the_source_is_not_written(finish: Run, source: Path) -> None:
    before = source.read_bytes()
    finish("export", {"table": "shop"})
    assert source.read_bytes() == before


def test_a_table_that_is_not_there_is_a_permanent_failure_that_names_it(begin: Run, results: Path) -> None:
    error = error_of(lambda: next(begin("export", {"table": "orders"})))
    assert error == Error("source table missing", "the source has no table 'orders'")
    assert files(results) == []


@pytest.mark.parametrize(
    "name",
    ['shop"; DROP TABLE shop; --', "shop'; DROP TABLE shop; --", "shop WHERE 1", '"shop"', "sqlite_master", "\ud800"],
)
def test_a_name_that_is_no_table_is_never_run_as_sql(begin: Run, source: Path, name: str) -> None:
    before = source.read_bytes()
    assert error_of(lambda: next(begin("export", {"table": name}))).type == "source table missing"
    assert source.read_bytes() == before


@pytest.mark.parametrize("name", ['a "quoted" one', "semi;colon", "it's", "select", "ünï code", "a]b[c`d", "--"])
def test_a_table_of_any_name_is_exported(finish: Run, source: Path, results: Path, name: str) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute('CREATE TABLE "{}" AS SELECT 7 AS x'.format(name.replace('"', '""')))
        db.commit()
    finish("export", {"table": name})
    assert table(results / "job-1.1.csv") == [["x"], ["7"]]


def test_an_id_cannot_point_out_of_the_directory(finish: Run, results: Path) -> None:
    finish("export", {"table": "shop"}, id="../../up")
    assert files(results) == ["..%2F..%2Fup.1.csv"]
    assert not (results.parent / "up.1.csv").exists()


def test_a_locked_source_may_be_free_next_time(
    begin: Run, results: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobslab.source.BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(source, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert error_of(lambda: next(begin("export", {"table": "shop"})), Transient).type == "source unavailable"
    assert files(results) == []


def test_a_source_that_is_not_there_may_be_there_next_time(begin: Run, source: Path) -> None:
    source.unlink()
    assert error_of(lambda: next(begin("export", {"table": "shop"})), Transient).type == "source unavailable"


def test_a_damaged_source_will_not_mend_itself(begin: Run, source: Path) -> None:
    source.write_bytes(b"not a database" * 1000)
    assert error_of(lambda: next(begin("export", {"table": "shop"}))).type == "source unreadable"


def test_a_view_that_cannot_be_read_is_a_permanent_failure(begin: Run, source: Path) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute("CREATE VIEW broken AS SELECT x FROM missing")
    assert error_of(lambda: next(begin("export", {"table": "broken"}))).type == "source unreadable"


def test_results_that_cannot_be_written_now_may_be_next_time(begin: Run, results: Path) -> None:
    results.touch()  # where the directory should be
    error = error_of(lambda: next(begin("export", {"table": "shop"})), Transient)
    assert error.type == "results unavailable"
    assert str(results) not in error.message


# The lab's own


def test_wait_takes_its_time_in_chunks(begin: Run, clock: ManualClock) -> None:
    chunks, told = begin("wait", {"seconds": 12, "chunks": 3}), []
    for progress in chunks:
        told.append((clock.now(), progress))
    assert told == [(4, 0.25), (8, 0.5), (12, 0.75)]


def test_wait_says_how_long_it_took(finish: Run) -> None:
    assert finish("wait", {"seconds": 0}) == ([0.5], {"seconds": 0, "chunks": 1})


@pytest.mark.parametrize(("failures", "attempts"), [(0, 1), (1, 2), (2, 3)])
def test_flaky_fails_so_often_and_then_is_done(finish: Run, failures: int, attempts: int) -> None:
    for attempt in range(1, attempts):
        error = error_of(partial(finish, "flaky", {"failures": failures}, attempt=attempt), Transient)
        assert error == Error("flaky", f"attempt {attempt} fails, as the first {failures} do")
    assert finish("flaky", {"failures": failures}, attempt=attempts)[1] == {"attempt": attempts}


def test_fail_fails_as_it_is_told(finish: Run) -> None:
    params = {"type": "broken", "message": "it broke"}
    assert error_of(lambda: finish("fail", params)) == Error("broken", "it broke")


@pytest.mark.parametrize(
    ("kind", "params", "named"),
    [
        ("export", {}, "table"),
        ("export", {"table": ""}, "table"),
        ("export", {"table": 3}, "table"),
        ("export", {"table": ["shop"]}, "table"),
        ("wait", {}, "seconds"),
        ("wait", {"seconds": "1"}, "seconds"),
        ("wait", {"seconds": True}, "seconds"),
        ("wait", {"seconds": -1}, "seconds"),
        ("wait", {"seconds": 1e300}, "seconds"),
        ("wait", {"seconds": 1, "chunks": 0}, "chunks"),
        ("wait", {"seconds": 1, "chunks": 1.5}, "chunks"),
        ("wait", {"seconds": 1, "chunks": 10**400}, "chunks"),
        ("flaky", {}, "failures"),
        ("flaky", {"failures": -1}, "failures"),
        ("fail", {"type": "broken"}, "message"),
        ("fail", {"message": "it broke"}, "type"),
    ],
)
def test_bad_params_are_a_permanent_failure_that_names_them(
    finish: Run, results: Path, kind: str, params: dict[str, Any], named: str
) -> None:
    error = error_of(lambda: finish(kind, params))
    assert (error.type, f"{kind} needs params.{named}: " in error.message) == ("bad params", True)
    assert files(results) == []
