"""Do `jobslab where` and `jobslab sweep` answer an operator, each trouble in its own words, and make nothing?"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from jobslab import Contract, open_store
from jobslab.cli import app
from jobslab.effects import Ledger
from jobslab.errors import JobslabError
from jobslab.stores import Store


class Shop(NamedTuple):
    """A store in a file, its results, and a time that is now."""

    store: Store
    path: Path
    results: Path
    now: float

    def run(self, *words: str) -> tuple[int, str]:
        """The exit code and what was printed, in one line; a JobslabError is raised, as `main` gets it."""
        done = CliRunner().invoke(app, [*words, "--store", str(self.path)])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, " ".join(done.stdout.split())

    def succeed(self, id: str = "job-1", **rest: Any) -> Path:
        """A job that is done, and its file."""
        self.store.submit(id, "export", {}, now=self.now - 20, **rest)
        self.store.claim(id, "A", now=self.now - 19)
        self.store.succeed(id, 1, "A", {"file": f"{id}.1.csv", "rows": 2}, now=self.now - 18)
        file = self.results / f"{id}.1.csv"
        file.write_bytes(b"a\r\n1\r\n2\r\n")
        return file


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    results = tmp_path / "jobs.db-results"
    results.mkdir()
    with open_store(None, str(tmp_path / "jobs.db")) as store:
        yield Shop(store, tmp_path / "jobs.db", results, time.time())


def test_a_job_whose_result_is_there_is_well(shop: Shop) -> None:
    shop.succeed()
    code, said = shop.run("where", "job-1")
    assert code == 0
    assert said.startswith("job-1: export, SUCCEEDED: it is done, and its result is there [landed]")
    assert "So: reliably accepted? YES. which step? landed. final business result? LANDED." in said
    assert said.endswith("not known: whether these rows are the right ones; next: nothing.")


def spoilt(shop: Shop, how: str) -> None:
    file = shop.succeed()
    if how == "deleted":
        file.unlink()
    elif how == "cut short":
        file.write_bytes(file.read_bytes()[:5])
    elif how == "expired":
        with shop.store.database.write() as db:
            db.execute("UPDATE jobs SET expires_at = :at", {"at": shop.now - 60})
    elif how == "damaged journal":
        with shop.store.database.write() as db:
            db.execute("DELETE FROM events WHERE verb = 'claim'")
    elif how == "contradicting journal":
        with shop.store.database.write() as db:
            db.execute("UPDATE jobs SET state = 'QUEUED'")


TROUBLES = {
    "deleted": (1, "result-gone", "job-1.1.csv is there, and it is not"),
    "cut short": (1, "result-damaged", "job-1.1.csv has 0 rows of 2"),
    "expired": (1, "expired", "expired 60 s ago; it was SUCCEEDED"),
    "damaged journal": (3, "journal", "begins in RUNNING, and the line before ended in QUEUED"),
    "contradicting journal": (3, "journal", "its last line ends in SUCCEEDED, and the row is QUEUED"),
}


@pytest.mark.parametrize("how", TROUBLES)
def test_each_trouble_has_an_answer_of_its_own(shop: Shop, how: str) -> None:
    spoilt(shop, how)
    code, cause, says = TROUBLES[how]
    seen, said = shop.run("where", "job-1")
    assert (seen, f"[{cause}]" in said, says in said) == (code, True, True), said


def test_an_id_that_never_was_and_one_of_another_owner_are_told_apart(shop: Shop) -> None:
    shop.succeed(owner="alice")
    assert "[never-was]" in shop.run("where", "job-2", "--owner", "bob")[1]
    code, said = shop.run("where", "job-1", "--owner", "bob")
    assert code == 1
    assert "[another-owners]" in said
    assert "[landed]" in shop.run("where", "job-1", "--owner", "alice")[1]


def test_a_correlation_id_shows_all_of_its_jobs_and_the_worst_decides(shop: Shop) -> None:
    shop.succeed("job-1", correlation_id="trace-1")
    shop.succeed("job-2", correlation_id="trace-1").unlink()
    code, said = shop.run("where", "trace-1")
    assert code == 1
    assert "[landed]" in said
    assert "[result-gone]" in said
    with shop.store.database.write() as db:
        db.execute("DELETE FROM events WHERE job_id = 'job-1' AND verb = 'claim'")
    assert shop.run("where", "trace-1")[0] == 1


def test_as_json_it_is_one_object(shop: Shop) -> None:
    shop.succeed()
    code, said = shop.run("where", "job-1", "--json")
    told = json.loads(said)
    assert (code, told["asked"]) == (0, "job-1")
    [job] = told["jobs"]
    assert job["sentence"] == f"Known: {job['known']}; not known: {job['not_known']}; next: {job['next']}."
    assert [line["verb"] for line in job["journal"]] == ["submit", "claim", "succeed"]
    assert [answer["question"] for answer in job["answers"]] == [
        "does it exist?",
        "did it enter execution?",
        "where did it stop?",
        "did the business result land?",
        "can it recover?",
    ]


def test_the_ledger_is_looked_into_where_it_is_named(shop: Shop, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "effects.db")
    shop.store.submit("job-1", "wait", {}, now=shop.now - 2)
    claimed = shop.store.claim("job-1", "A", now=shop.now - 1).job
    assert claimed
    shop.store.succeed("job-1", 1, "A", now=shop.now)
    options = ("where", "job-1", "--ledger", str(tmp_path / "effects.db"))
    assert "[no-entry]" in shop.run(*options)[1]
    ledger.once(claimed, "paid")
    assert "the ledger has 'paid', done by attempt 1" in shop.run(*options)[1]
    ledger.close()


@pytest.mark.parametrize("command", [("where", "job-1"), ("sweep",), ("sweep", "--dry-run")])
def test_a_slip_of_the_pen_makes_no_new_store(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "jbos.db")])
    assert isinstance(done.exception, JobslabError)
    assert "there is no store" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_is_not_there_is_not_made(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(JobslabError, match="there is no ledger"):
        shop.run("where", "job-1", "--ledger", str(tmp_path / "none.db"))
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_ledger_and_one_that_is_empty_are_refused_and_left_as_they_are(
    shop: Shop, tmp_path: Path
) -> None:
    with pytest.raises(JobslabError, match="jobs.db is no ledger"):
        shop.run("where", "job-1", "--ledger", str(shop.path))
    with shop.store.database.read() as db:
        assert not shop.store.database.has_table(db, "effects")
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(JobslabError, match="there is no store"):
        CliRunner().invoke(app, ["where", "job-1", "--store", str(empty)], catch_exceptions=False)
    assert empty.stat().st_size == 0


def test_an_id_that_is_no_text_is_one_sentence() -> None:
    command = [sys.executable, "-c", "from jobslab.cli import main; main()", "where", b"job-\xff"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "jobslab: 'job-\\udcff' is not text in UTF-8; write it anew\n")


# The sweep


def stuck(shop: Shop, id: str, attempts: int) -> None:
    shop.store.submit(id, "export", {}, max_attempts=attempts, now=shop.now - 100)
    shop.store.claim(id, "A", now=shop.now - 90)


def test_a_dry_run_says_what_a_sweep_does_and_does_nothing(shop: Shop) -> None:
    stuck(shop, "job-1", 1)
    stuck(shop, "job-2", 2)
    stuck(shop, "job-3", 2)
    shop.store.cancel("job-3")
    before = shop.store.rows(), shop.store.events()
    assert shop.run("sweep", "--dry-run") == (
        0,
        "job-1: the lease of attempt 1 is over; it is given up: no attempt is left "
        "job-2: the lease of attempt 1 is over; it goes back to the queue, or is over if it was asked to stop "
        "job-3: the lease of attempt 1 is over; it goes back to the queue, or is over if it was asked to stop",
    )
    assert (shop.store.rows(), shop.store.events()) == before
    assert shop.run("sweep")[1] == (
        "job-1: the lease of attempt 1 is over; it is FAILED now "
        "job-2: the lease of attempt 1 is over; it is QUEUED now "
        "job-3: the lease of attempt 1 is over; it is CANCELLED now"
    )
    assert [row.state for row in shop.store.rows()] == ["FAILED", "QUEUED", "CANCELLED"]
    assert shop.run("sweep") == (0, "no running job's lease is over")


def test_a_sweep_that_comes_too_late_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck(shop, "job-1", 2)
    look = Store.stuck

    def finished_meanwhile(store: Store, **options: Any) -> Any:
        seen = look(store, **options)
        shop.store.succeed("job-1", 1, "A")
        return seen

    monkeypatch.setattr(Store, "stuck", finished_meanwhile)
    assert shop.run("sweep")[1].endswith("it has changed meanwhile (refused by still_expired)")


def test_a_sweep_of_a_store_without_leases_says_that_it_is_in_vain(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")
    open_store(Contract().without("leases"), path).close()
    done = CliRunner().invoke(app, ["sweep", "--store", path])
    assert "has no leases: a sweep never finds anything" in done.stdout
