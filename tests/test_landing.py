"""Is it told whether a result landed, and told as UNKNOWN where it can't be known?"""

import json
from pathlib import Path
from typing import Any

import pytest

from jobslab import landing
from jobslab.effects import Entry
from jobslab.job import Job, queued
from jobslab.landing import Landed
from jobslab.source import as_database, sample
from jobslab.tasks import export


def job(state: str, attempt: int = 1, result: Any = None) -> Job:
    new = queued("job-1", "export", '{"table":"orders"}', "lab", None, "", 3, 0, None, None, 0)
    return new._replace(state=state, attempt=attempt, result=json.dumps(result))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def done(tmp_path: Path, results: Path) -> Job:
    """An export that has succeeded, with its file."""
    chunks = export(as_database(sample(), tmp_path), results, job("RUNNING"))
    while True:
        try:
            next(chunks)
        except StopIteration as end:
            return job("SUCCEEDED", result=end.value)


def result_of(done: Job) -> dict[str, Any]:
    return dict(json.loads(done.result or ""))


def test_a_whole_file_has_landed(done: Job, results: Path) -> None:
    found = landing.file(done, results)
    assert found.landed is Landed.LANDED
    assert found.says == f"job-1.1.csv is there, whole, with {result_of(done)['rows']} rows"


def test_a_file_that_somebody_deleted_is_absent(done: Job, results: Path) -> None:
    (results / "job-1.1.csv").unlink()
    found = landing.file(done, results)
    assert (found.landed, found.says) == (Landed.ABSENT, "the job says that job-1.1.csv is there, and it is not")


def test_a_file_that_was_cut_short_says_how_much_is_left(done: Job, results: Path) -> None:
    whole = (results / "job-1.1.csv").read_bytes()
    lines = whole.splitlines(keepends=True)
    (results / "job-1.1.csv").write_bytes(b"".join(lines[:11]) + lines[11][:3])
    found = landing.file(done, results)
    assert found.landed == Landed.DAMAGED
    assert found.says.startswith(f"job-1.1.csv has 10 rows of {len(lines) - 1} and ")


def test_a_file_of_the_right_length_and_other_content_is_damaged(done: Job, results: Path) -> None:
    path = results / "job-1.1.csv"
    path.write_bytes(path.read_bytes()[:-3] + b"#\r\n")
    found = landing.file(done, results)
    assert found.landed is Landed.DAMAGED
    assert "its content is not what was written" in found.says


def test_the_rows_are_counted_by_what_the_result_says(done: Job, results: Path) -> None:
    one_more = done._replace(result=json.dumps({"file": "job-1.1.csv", "rows": result_of(done)["rows"] + 1}))
    assert landing.file(one_more, results).landed is Landed.DAMAGED


def test_a_line_within_quotes_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'a,b\r\n1,"one ""line""\nand another"\r\n2,' + b"x" * 200_000 + b"\r\n")
    assert landing.measured(tmp_path / "a.csv")["rows"] == 2


def test_a_result_never_names_a_file_outside_of_the_directory(tmp_path: Path, results: Path) -> None:
    results.mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    assert landing.file(job("SUCCEEDED", result={"file": "../secret.csv"}), results).landed is Landed.ABSENT


def test_a_job_that_promised_no_file_has_its_result_in_its_row(results: Path) -> None:
    assert landing.file(job("SUCCEEDED", result={"chunks": 1}), results).landed is Landed.LANDED


@pytest.mark.parametrize("where", [None, "elsewhere"])
def test_without_the_directory_nothing_is_known(done: Job, tmp_path: Path, where: str | None) -> None:
    assert landing.file(done, where and tmp_path / where).landed is Landed.UNKNOWN  # type: ignore[arg-type]
    assert landing.file(job("RUNNING"), where and tmp_path / where).landed is Landed.UNKNOWN  # type: ignore[arg-type]


def test_a_result_that_is_no_json_is_unknown(done: Job, results: Path) -> None:
    assert landing.file(done._replace(result="{"), results).landed is Landed.UNKNOWN


@pytest.mark.parametrize("state", ["QUEUED", "RUNNING", "FAILED", "CANCELLED"])
def test_a_file_of_a_job_that_has_not_succeeded_is_unreported(done: Job, results: Path, state: str) -> None:
    found = landing.file(job(state, attempt=2), results)
    assert (found.landed, found.name) == (Landed.UNREPORTED, "job-1.1.csv")


def test_an_unfinished_file_is_none(results: Path) -> None:
    results.mkdir()
    (results / ".job-1.1.csv.part").write_text("a\n1\n")
    assert landing.file(job("RUNNING"), results).landed is Landed.NOT_DUE


def test_the_ledger_tells_of_its_own_jobs_alone() -> None:
    paid, other = Entry("job-1", 1, "paid", 5, 2), Entry("job-2", 1, "paid", 5, 1)
    assert landing.entry(job("SUCCEEDED"), [other, paid]).landed is Landed.LANDED
    assert landing.entry(job("SUCCEEDED"), [other]).landed is Landed.ABSENT
    assert landing.entry(job("RUNNING"), [other, paid]).landed is Landed.UNREPORTED
    assert landing.entry(job("RUNNING"), [other]).landed is Landed.NOT_DUE
