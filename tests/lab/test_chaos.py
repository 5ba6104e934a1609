"""Does a run of chaos find what it is for?  The plan and the audit by themselves; then short runs with real processes,
under the full contract and with a flag off."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobslab import Contract, open_store
from jobslab.effects import Ledger
from jobslab.job import Error
from jobslab.lab.chaos.audit import Audit, audit
from jobslab.lab.chaos.clients import Record, accepted
from jobslab.lab.chaos.plan import CRASH_DATABASE, CUT_DATABASE, KILL_SERVER, KILL_WORKER, STOP_WORKER, faults, intent
from jobslab.lab.chaos.run import Run, run
from jobslab.stores import Store

posix = pytest.mark.skipif(os.name != "posix", reason="the signals are POSIX's")

# The plan


def test_a_seed_gives_the_same_faults_and_the_same_intents() -> None:
    assert faults(7, 2000, 100, True) == faults(7, 2000, 100, True) != faults(8, 2000, 100, True)
    assert [intent(7, n) for n in range(50)] == [intent(7, n) for n in range(50)] != [intent(8, n) for n in range(50)]


@pytest.mark.parametrize("kills", [1, 2, 10, 100])
def test_so_many_are_killed_and_the_server_among_them(kills: int) -> None:
    counts = Counter(fault.what for fault in faults(7, 2000, kills, False))
    assert counts[KILL_WORKER] + counts[KILL_SERVER] == kills
    assert counts[KILL_WORKER] >= 1
    assert counts[KILL_SERVER] >= (kills > 1)
    assert counts[STOP_WORKER] >= 2


def test_a_database_that_has_a_server_is_cut_off_and_crashed() -> None:
    with_it = Counter(fault.what for fault in faults(7, 2000, 100, True))
    assert with_it - Counter(fault.what for fault in faults(7, 2000, 100, False)) == {
        CUT_DATABASE: 3,
        CRASH_DATABASE: 3,
    }


def test_faults_come_in_their_order_and_while_there_are_jobs() -> None:
    when = [fault.after for fault in faults(7, 300, 100, True)]
    assert when == sorted(when)
    assert 0 <= when[0] < when[-1] < 300


def test_of_one_intent_in_twenty_the_first_answer_goes_unread() -> None:
    assert 0.03 < sum(intent(7, n).unread for n in range(2000)) / 2000 < 0.07
    assert len({intent(7, n).key for n in range(2000)}) == 2000


# The audit


class Books:
    """What an audit reads, for one story."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.record, self.ledger = store, Record(folder / "record"), Ledger(folder / "effects.db")

    def promise(self, n: int, id: str | None = None) -> None:
        self.store.submit(id or f"job-{n}", "wait", {"intent": n}, key=f"key-{n}", now=0)
        self.record.note(intent=n, key=f"key-{n}", status=202, id=id or f"job-{n}")

    def done(self, n: int, attempt: int = 1) -> None:
        job = self.store.claim(f"job-{n}", "A", 10, now=0).job
        self.ledger.once(job, str(n), now=0)
        self.store.succeed(f"job-{n}", attempt, "A", now=0)

    def found(self) -> dict[str, int]:
        """The counts that are not 0."""
        found = audit(accepted(self.record.path), self.store.rows(), self.store.events(), self.ledger.entries())
        return {name: count for name, count in found._asdict().items() if count}


@pytest.fixture
def books(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    with open_store(getattr(request, "param", Contract())) as store:
        books = Books(store, tmp_path)
        yield books
        books.record.close()
        books.ledger.close()


without = lambda flag: pytest.mark.parametrize("books", [Contract().without(flag)], indirect=True)  # noqa: E731


def test_what_went_well_is_counted(books: Books) -> None:
    books.promise(1)
    books.done(1)
    assert books.found() == {"accepted": 1, "terminal": 1}


def test_a_job_that_is_not_over_is_lost(books: Books) -> None:
    books.promise(1)
    books.promise(2)
    books.store.claim("job-2", "A", now=0)
    assert books.found() == {"accepted": 2, "lost": 2}


@without("persistence")
def test_a_job_that_is_not_there_is_lost(books: Books) -> None:
    books.promise(1)
    books.done(1)
    books.store.restart()
    assert books.found() == {"accepted": 1, "lost": 1}


@without("idempotency_key")
def test_a_second_job_of_an_intent_is_a_duplicate_and_its_effect_done_twice(books: Books) -> None:
    books.store.submit("unread", "wait", {"intent": 1}, key="key-1", now=0)
    books.promise(1)
    books.done(1)
    job = books.store.claim("unread", "A", now=0).job
    books.ledger.once(job, "1")
    books.store.succeed("unread", 1, "A", now=0)
    assert books.found() == {"accepted": 1, "terminal": 1, "duplicates": 1, "done_twice": 1}


def test_the_report_of_a_worker_that_was_given_up_is_found_refused(books: Books) -> None:
    books.promise(1)
    books.store.claim("job-1", "A", 10, now=0)
    books.store.requeue("job-1", 1, now=10)
    books.store.renew("job-1", 1, "A", now=10)
    books.store.claim("job-1", "B", 10, now=10)
    books.store.succeed("job-1", 1, "A", now=10)
    books.store.fail("job-1", 2, "B", Error("broken", "it is"), now=10)
    assert books.found() == {"accepted": 1, "terminal": 1, "given_up": 1, "requeued": 1, "stale_refused": 2}


@without("attempt_fencing")
def test_the_report_of_a_worker_that_was_given_up_is_found_accepted(books: Books) -> None:
    books.promise(1)
    books.store.claim("job-1", "A", 10, now=0)
    books.store.requeue("job-1", 1, now=10)
    job = books.store.claim("job-1", "B", 10, now=10).job
    books.ledger.once(job, "1")
    books.store.succeed("job-1", 1, "A", now=10)
    assert books.found() == {"accepted": 1, "terminal": 1, "requeued": 1, "stale_accepted": 1}


def test_a_success_without_its_effect_is_found(books: Books) -> None:
    books.promise(1)
    books.store.claim("job-1", "A", now=0)
    books.store.succeed("job-1", 1, "A", now=0)
    assert books.found() == {"accepted": 1, "terminal": 1, "undone": 1}


def test_an_effect_that_was_tried_twice_is_done_once(books: Books) -> None:
    books.promise(1)
    books.done(1)
    books.ledger.once(books.store.rows()[0]._replace(attempt=2), "1")
    assert books.found() == {"accepted": 1, "terminal": 1, "tried_again": 1}


GOOD = Audit(0, 0, 0, 0, 0, accepted=10, terminal=10, given_up=0, stale_refused=1, requeued=1, tried_again=1)
AS_PLANNED = {KILL_WORKER: 3, STOP_WORKER: 1}


@pytest.mark.parametrize(
    ("audit", "done", "says"),
    [
        (GOOD, AS_PLANNED, []),
        (GOOD._replace(lost=2), AS_PLANNED, ["2 accepted jobs are lost"]),
        (GOOD._replace(duplicates=1), AS_PLANNED, ["1 jobs are duplicates of an intent"]),
        (GOOD._replace(done_twice=1), AS_PLANNED, ["1 effects were done twice"]),
        (GOOD._replace(undone=1), AS_PLANNED, ["1 jobs succeeded without their effect"]),
        (GOOD._replace(accepted=9), AS_PLANNED, ["1 intents were never answered"]),
        (
            GOOD._replace(stale_accepted=1),
            AS_PLANNED,
            ["1 reports of workers that had been given up were accepted"],
        ),
        (
            GOOD._replace(stale_refused=0),
            AS_PLANNED,
            ["no report of a stopped worker was refused, so none was made"],
        ),
        (GOOD, {KILL_WORKER: 2, STOP_WORKER: 1}, ["1 times it did not come to this: kill a worker"]),
    ],
)
def test_the_verdict_names_each_thing_that_is_wrong(audit: Audit, done: dict[str, int], says: list[str]) -> None:
    assert Run("sqlite", "all", 1, 10, AS_PLANNED, done, audit, 0).wrong == says


# Runs


def chaos(*options: str) -> tuple[int, str, str]:
    command = [sys.executable, "-W", "error", "-c", "from jobslab.cli import main; main()", "chaos", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@posix
def test_a_short_run_on_a_file_keeps_its_promise() -> None:
    done = run("sqlite", Contract(), 1, 10, 2)
    assert done.wrong == []
    assert done.audit.accepted >= 10
    assert done.audit.requeued >= 2
    assert done.audit.stale_refused >= 1


LONGER = ["--jobs", "200", "--kills", "12", "--seed", "8202", "--json"]  # `make chaos` has 2,000 and 100
SHORT = ["--jobs", "40", "--kills", "4", "--seed", "8202", "--json"]


@posix
@pytest.mark.long
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_longer_run_loses_nothing(store: str) -> None:
    code, said, wrong = chaos("--store", store, *LONGER)
    report = json.loads(said)
    assert (code, report["wrong"], wrong) == (0, [], "")
    assert report["audit"]["accepted"] >= 200
    assert report["done"] == report["planned"]
    assert sum(report["done"][what] for what in (KILL_WORKER, KILL_SERVER)) == 12


FINDS = {
    "idempotency_key": "duplicates",
    "persistence": "lost",
    "leases": "lost",
    "attempt_fencing": "stale_accepted",
}


@posix
@pytest.mark.long
@pytest.mark.parametrize(
    ("store", "flag", "finds"),
    [
        *[("sqlite", *case) for case in FINDS.items()],
        *[("postgresql", *case) for case in FINDS.items() if case[0] != "idempotency_key"],
    ],
)
def test_without_a_flag_the_same_run_finds_the_loss(store: str, flag: str, finds: str) -> None:
    code, said, _ = chaos("--store", store, "--without", flag, *SHORT)
    assert code == 1
    assert json.loads(said)["audit"][finds] > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--store", "jobs.db"], "--store is sqlite or postgresql, not 'jobs.db'"),
        (["--kills", "0"], "--kills is at least 1, not 0"),
        (["--jobs", "-1"], "--jobs is at least 1, not -1"),
        (["--without", "lease"], "there is no flag 'lease'"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(options: list[str], says: str) -> None:
    code, said, wrong = chaos(*options)
    assert (code, said) == (2, "")
    assert wrong.startswith(f"jobslab: {says}")
    assert wrong.count("\n") == 1
