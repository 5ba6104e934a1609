"""What is promised of an effect that is done twice, by threads, by processes, or by a worker that was given up."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.pool import ThreadPool
from pathlib import Path
from threading import Barrier

import pytest

from jobslab.effects import Checkpoints, Ledger, Step, Undone, saga, staged
from jobslab.errors import StoreError
from jobslab.job import Job, queued


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "effects.db")
    yield ledger
    ledger.close()


def job(id: str = "job-1", attempt: int = 1) -> Job:
    new = queued(id, "task", "{}", "lab", None, "", 3, 0, None, None, 0)
    return new._replace(state="RUNNING", attempt=attempt)


def test_an_effect_is_done_by_the_first_try(ledger: Ledger) -> None:
    assert ledger.once(job(), "paid", now=5) == ("job-1", 1, "paid", 5, 1)
    assert ledger.once(job(attempt=2), "paid again", now=6) == ("job-1", 1, "paid", 5, 2)
    assert ledger.entries() == (("job-1", 1, "paid", 5, 2),)


def test_jobs_have_effects_of_their_own(ledger: Ledger) -> None:
    for id in ("job-2", "job-1"):
        ledger.once(job(id), "paid")
    assert [(entry.job_id, entry.tries) for entry in ledger.entries()] == [("job-1", 1), ("job-2", 1)]


def test_a_ledger_knows_the_effect_of_a_job_or_none(ledger: Ledger) -> None:
    ledger.once(job(), "paid", now=5)
    assert ledger.of("job-1") == ("job-1", 1, "paid", 5, 1)
    assert ledger.of("job-2") is None


def try_often(path: Path, attempt: int) -> int:
    """How many of these tries did the effect, in a process with a ledger of its own."""
    with closing(Ledger(path)) as ledger:
        return tries(ledger, attempt)


def tries(ledger: Ledger, attempt: int) -> int:
    entries = [ledger.once(job(f"job-{n}", attempt), "paid") for n in range(20)]
    return sum(entry.attempt == attempt for entry in entries)


def test_of_many_processes_one_does_each_effect(tmp_path: Path) -> None:
    path = tmp_path / "effects.db"
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        counts = pool.starmap(try_often, [(path, attempt) for attempt in range(1, 5)])
    ledger = Ledger(path)
    assert sum(counts) == len(ledger.entries()) == 20
    assert {entry.tries for entry in ledger.entries()} == {4}
    ledger.close()


@pytest.mark.parametrize("name", ["effects.db", None], ids=["a file", "no file"])
def test_of_many_threads_with_one_ledger_one_does_each_effect(tmp_path: Path, name: str | None) -> None:
    with closing(Ledger(name and tmp_path / name)) as ledger, ThreadPool(4) as pool:
        counts = pool.starmap(tries, [(ledger, attempt) for attempt in range(1, 5)])
        assert sum(counts) == len(ledger.entries()) == 20
        assert {entry.tries for entry in ledger.entries()} == {4}


def test_a_ledger_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "effects.db").write_text("no database")
    with pytest.raises(StoreError, match="not an SQLite database"):
        Ledger(tmp_path / "effects.db")


def test_a_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    results = tmp_path / "results"
    with staged(results, "a.csv") as file:
        file.write("half")
        assert [path.name for path in results.iterdir()] == [".a.csv.part"]
    assert [(path.name, path.read_text()) for path in results.iterdir()] == [("a.csv", "half")]


def test_a_file_that_is_there_stays_whole_while_another_takes_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old")
    with staged(tmp_path, "a.csv") as file:
        file.write("new")
        file.flush()
        assert (tmp_path / "a.csv").read_text() == "old"
    assert (tmp_path / "a.csv").read_text() == "new"


@pytest.mark.parametrize("wrong", [RuntimeError, GeneratorExit, KeyboardInterrupt])
def test_an_unfinished_file_is_removed_whatever_ended_it(tmp_path: Path, wrong: type[BaseException]) -> None:
    with pytest.raises(wrong):
        unfinished(tmp_path, wrong)
    assert list(tmp_path.iterdir()) == []


def unfinished(directory: Path, wrong: type[BaseException]) -> None:
    with staged(directory, "a.csv") as file:
        file.write("half")
        raise wrong


def test_a_file_and_its_name_are_on_the_disk_before_it_is_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (seen.append(name), real(*args)))
    with staged(tmp_path, "a.csv") as file:
        file.write("whole")
    assert seen == ["fsync", "replace", *["fsync"] * (os.name == "posix")]


# Jobs of several steps


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Checkpoints]:
    book = Checkpoints(tmp_path / "steps.db")
    yield book
    book.close()


class Killed(BaseException):
    """The process is gone."""


class Declined(Exception):
    """For good."""


def test_a_step_that_is_written_down_is_not_done_again_and_gives_what_it_gave(book: Checkpoints) -> None:
    calls: list[int] = []
    for n in (1, 2):
        assert book.once("job-1", "load", lambda n=n: calls.append(n) or {"rows": n}) == {"rows": 1}
    assert calls == [1]
    assert book.once("job-2", "load", lambda: "its own") == "its own"


def test_steps_outlive_the_process_that_has_done_them(book: Checkpoints, tmp_path: Path) -> None:
    book.once("job-1", "load", lambda: 1)
    other = Checkpoints(tmp_path / "steps.db")
    assert other.has("job-1", "load")
    assert not other.has("job-1", "send")
    other.close()


def test_a_step_that_was_done_and_not_written_down_is_done_again(book: Checkpoints) -> None:
    calls: list[str] = []

    def killed() -> None:
        calls.append("done")
        raise Killed

    with pytest.raises(Killed):
        book.once("job-1", "send", killed)
    book.once("job-1", "send", lambda: calls.append("again"))
    assert calls == ["done", "again"]


def test_of_two_who_do_a_step_at_once_the_first_to_write_it_down_counts(book: Checkpoints) -> None:
    def meanwhile() -> str:
        book.once("job-1", "send", lambda: "the other's")
        return "mine"

    assert book.once("job-1", "send", meanwhile) == "the other's"


def test_many_threads_with_one_book_go_by_the_same_first_result(book: Checkpoints) -> None:
    all_do_it = Barrier(4, timeout=30)

    def do(worker: int) -> int:
        all_do_it.wait()
        return worker

    def gave(worker: int) -> list[int]:
        return [book.once("job-1", f"step {n}", lambda: do(worker)) for n in range(20)]

    with ThreadPool(4) as pool:
        first, *others = pool.map(gave, range(4))
    assert others == [first] * 3


def steps(did: list[str], **raises: BaseException) -> list[Step]:
    """Three steps that say what they do; one that is named here raises instead."""

    def act(what: str) -> str:
        did.append(what)
        if what in raises:
            raise raises.pop(what)
        return what

    return [Step(name, lambda n=name: act(n), lambda n=name: act(f"undo_{n}")) for name in ("a", "b", "c")]


def test_a_saga_does_its_steps_in_order_and_gives_what_they_gave(book: Checkpoints) -> None:
    did: list[str] = []
    assert saga(book, "job-1", steps(did), Declined) == did == ["a", "b", "c"]
    assert saga(book, "job-1", steps(did), Declined) == did == ["a", "b", "c"]


def test_when_a_step_fails_for_good_those_before_it_are_undone_the_last_first(book: Checkpoints) -> None:
    did: list[str] = []
    with pytest.raises(Undone, match="too much"):
        saga(book, "job-1", steps(did, c=Declined("too much")), Declined)
    assert did == ["a", "b", "c", "undo_b", "undo_a"]
    with pytest.raises(Undone, match="too much"):
        saga(book, "job-1", steps(did), Declined)
    assert did == ["a", "b", "c", "undo_b", "undo_a"], "it gave up, and never goes forward again"


def test_another_exception_undoes_nothing_and_the_next_run_goes_on_there(book: Checkpoints) -> None:
    did: list[str] = []
    with pytest.raises(TimeoutError):
        saga(book, "job-1", steps(did, b=TimeoutError()), Declined)
    assert saga(book, "job-1", steps(did), Declined) == ["a", "b", "c"]
    assert did == ["a", "b", "b", "c"]


def test_a_worker_that_ends_in_the_undoing_is_followed_by_one_that_undoes_the_rest(book: Checkpoints) -> None:
    did: list[str] = []
    with pytest.raises(Killed):
        saga(book, "job-1", steps(did, c=Declined("too much"), undo_a=Killed()), Declined)
    with pytest.raises(Undone, match="too much"):
        saga(book, "job-1", steps(did), Declined)
    assert did == ["a", "b", "c", "undo_b", "undo_a", "undo_a"]
