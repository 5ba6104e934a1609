"""Does `where` say what is the matter, what is known and what is not, for each thing that can be the matter?"""

from collections.abc import Callable, Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from jobslab import Contract, open_store, stage
from jobslab.cause import BY_NAME, CAUSES
from jobslab.effects import Entry
from jobslab.errors import StoreError
from jobslab.job import Error, State
from jobslab.lab.outbox import cross_off, outbox, with_outbox
from jobslab.lab.stages import life, with_refunds
from jobslab.landing import file_name
from jobslab.rerun import rerun
from jobslab.seen import NO, ids
from jobslab.settings import LAB
from jobslab.source import as_database, sample
from jobslab.stores import Store
from jobslab.telling import document
from jobslab.where import Where, where

LEASE = LAB.lease_seconds
RESULT = {"file": "job-1.1.csv", "rows": 2}
WHOLE = "a\r\n1\r\n2\r\n"


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(settings=LAB) as store:
        yield store


@pytest.fixture
def results(tmp_path: Path) -> Path:
    directory = tmp_path / "results"
    directory.mkdir()
    return directory


def submit(store: Store, **rest: Any) -> None:
    store.submit("job-1", "export", {"table": "orders"}, **({"now": 0} | rest))


def claim(store: Store, now: float = 1) -> None:
    submit(store)
    store.claim("job-1", "A", now=now)


def succeed(store: Store, result: Any = RESULT) -> None:
    claim(store)
    store.succeed("job-1", 1, "A", result, now=2)


def fail(store: Store, type: str = "broken") -> None:
    claim(store)
    store.fail("job-1", 1, "A", Error(type, "it broke"), now=2)


def retry(store: Store, type: str = "broken", wait_seconds: float = 5) -> None:
    claim(store)
    store.retry("job-1", 1, "A", Error(type, "it broke"), wait_seconds, now=2)


def silent(store: Store) -> None:
    """Each of its workers falls silent."""
    submit(store, max_attempts=2)
    for attempt in (1, 2):
        store.claim("job-1", "A", now=attempt * 20)
        (store.requeue if attempt == 1 else store.exhaust)("job-1", attempt, now=attempt * 20 + LEASE)


def purged(store: Store) -> None:
    succeed(store)
    store.purge(now=2 + LAB.retention_seconds)


def deleted(store: Store, what: str = "FROM jobs") -> None:
    claim(store)
    with store.database.write() as db:
        db.execute(f"DELETE {what}")


def in_turn(store: Store) -> None:
    """It is due for long, and others come before it."""
    store.submit("job-0", "export", {}, now=0)
    submit(store)
    store.claim("job-0", "A", now=30)


def busy(store: Store) -> None:
    """It is due for long, and the one worker renews the lease of another job."""
    in_turn(store)
    store.renew("job-0", 1, "A", now=39)


def given_back(store: Store) -> None:
    """A sweep came long after its worker had died."""
    claim(store)
    store.requeue("job-1", 1, now=40)


def to_stop(store: Store) -> None:
    """Its owner has asked it to stop, and its worker is gone."""
    claim(store)
    store.cancel("job-1", now=2)


NOBODY = "no row, and no line of the journal has this id"
EXPIRED_AT = 2 + LAB.retention_seconds

# What was done, what lies in the results, when one asks: the cause, the three questions, a word of known and unknown
CASES: dict[str, tuple[Callable[[Store], None], str | None, float, str, str, str, str]] = {
    "landed": (succeed, WHOLE, 3, "landed", "YES landed LANDED", "whole, with 2 rows", "the right ones"),
    "in its row": (lambda s: succeed(s, 3), None, 3, "landed", "YES landed LANDED", "in its row", "the right ones"),
    "working": (claim, None, 5, "working", "YES running NOT YET", "good for 6 s more", "how much"),
    "just written": (claim, WHOLE, 5, "working", "YES running UNREPORTED", "attempt 1 of 3", "how much"),
    "new": (submit, None, 5, "waiting", "YES queued NOT YET", "with 0 jobs before", "when a worker"),
    "in turn": (in_turn, None, 35, "waiting", "YES queued NOT YET", "with 0 jobs before", "when a worker"),
    "backing off": (retry, None, 3, "backing-off", "YES queued NOT YET", "4 s more; its error: it broke", "better"),
    "later": (lambda s: submit(s, run_at=900), None, 3, "backing-off", "YES queued NOT YET", "15 min more", "better"),
    "cancelled": (lambda s: (submit(s), s.cancel("job-1", now=1)), None, 3, "cancelled", "YES done NONE", "", "knows"),
    "failed": (fail, None, 3, "failed", "YES done NONE", "after 1 of 3 attempts; its error: it broke", "before it"),
    "never was": (lambda s: None, None, 3, "never-was", "UNKNOWN UNKNOWN UNKNOWN", NOBODY, "over and forgotten"),
    "expired": (succeed, None, EXPIRED_AT + 90, "expired", "YES done UNKNOWN", "90 s ago; it was SUCCEEDED", "held"),
    "purged": (purged, None, EXPIRED_AT + 9, "expired", "YES done UNKNOWN", "it was SUCCEEDED", "held"),
    "forgotten": (purged, None, EXPIRED_AT + LAB.expired_seconds, "expired", "YES done UNKNOWN", "SUCCEEDED", "held"),
    "lost": (deleted, None, 3, "lost", "NO running UNKNOWN", "its submit, 3 s ago, and no purge", "who deleted"),
    "journal": (
        lambda s: deleted(s, "FROM events WHERE verb = 'submit'"), None, 3, "journal", "YES UNKNOWN NOT YET",
        "the row is RUNNING; of the journal: its first lines are missing", "which of the two",
    ),
    "no worker": (submit, None, LEASE + 1, "no-worker", "YES queued NOT YET", "for 11 s no worker", "runs at all"),
    "workers gone": (in_turn, None, 41, "no-worker", "YES queued NOT YET", "for 11 s no worker", "runs at all"),
    "workers busy": (busy, None, 45, "waiting", "YES queued NOT YET", "with 0 jobs before", "when a worker"),
    "given back": (given_back, None, 42, "waiting", "YES queued NOT YET", "with 0 jobs before", "when a worker"),
    "to be stopped": (to_stop, WHOLE, LEASE + 2, "lease-over", "YES running UNREPORTED", "is over", "dead or slow"),
    "no task": (lambda s: retry(s, "unknown kind"), None, 3, "no-task", "YES queued NOT YET", "task 'export'", "other"),
    "no task at last": (lambda s: fail(s, "unknown kind"), None, 3, "no-task", "YES done NONE", "1 of 3 was", "other"),
    "far future": (lambda s: retry(s, wait_seconds=99999), None, 3, "far-future", "YES queued NOT YET", "28 h", "cloc"),
    "lease over": (claim, None, 51, "lease-over", "YES running NOT YET", "1 of 3 is over since 40 s", "dead or slow"),
    "gave up": (silent, None, 99, "gave-up", "YES done NONE", "2 of 2 attempts were begun", "what kills"),
    "died late": (claim, WHOLE, 99, "unreported", "YES running UNREPORTED", "job-1.1.csv is there", "lost, or came"),
    "failed late": (fail, WHOLE, 99, "unreported", "YES done UNREPORTED", "job-1.1.csv is there", "lost, or came"),
    "gone": (succeed, None, 3, "result-gone", "YES done ABSENT", "the job says that job-1.1.csv is there", "who took"),
    "cut": (succeed, WHOLE[:6], 3, "result-damaged", "YES done DAMAGED", "has 1 rows of 2", "who has fetched"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_is_the_matter(store: Store, results: Path, name: str) -> None:
    do, file, now, cause, three, known, unknown = CASES[name]
    do(store)
    if file is not None:
        (results / file_name("job-1", 1)).write_bytes(file.encode())
    told = where(store, "job-1", results, now=now)
    assert (told.cause.name, " ".join(answer.answer for answer in told.three)) == (cause, three)
    assert known in told.known
    assert unknown in told.unknown
    assert told.sentence() == f"Known: {told.known}; not known: {told.unknown}; next: {told.next}."


def test_every_cause_was_met() -> None:
    elsewhere = {"another-owners", "unpublished", "no-lease", "no-entry", "result-unknown"}  # in the tests below
    assert {cause for _, _, _, cause, *_ in CASES.values()} | elsewhere == set(BY_NAME)


def test_causes_have_names_of_their_own_and_all_that_is_to_be_said() -> None:
    assert len(BY_NAME) == len(CAUSES)
    for cause in CAUSES:
        assert all(cause), cause
        assert {slot for _, slot, _, _ in Formatter().parse(cause.means) if slot} == set()


@pytest.mark.parametrize("name", CASES)
def test_looking_writes_nothing(store: Store, results: Path, name: str) -> None:
    CASES[name][0](store)
    before = store.rows(), store.events()
    where(store, "job-1", results, now=CASES[name][2])
    assert (store.rows(), store.events()) == before


def test_another_owners_job_is_told_to_the_operator_as_that(store: Store) -> None:
    submit(store, owner="alice")
    assert where(store, "job-1", asker="alice", now=1).cause.name == "waiting"
    told = where(store, "job-1", asker="bob", now=1)
    assert told.cause.name == "another-owners"
    assert "over HTTP bob is told that there is no such job" in told.known


def test_an_expired_job_of_somebody_else_is_somebody_elses_too(store: Store) -> None:
    succeed(store)
    assert where(store, "job-1", asker="bob", now=EXPIRED_AT).cause.name == "another-owners"


def test_what_the_broker_has_not_confirmed_was_never_published(store: Store) -> None:
    with_outbox(store)
    submit(store)
    told = where(store, "job-1", now=1)
    assert (told.cause.name, told.three[1].answer) == ("unpublished", "registered")
    assert stages(told) == "YES YES NO YES NO NO UNKNOWN"
    [line] = outbox(store)
    cross_off(store, line)
    told = where(store, "job-1", now=1)
    assert (told.cause.name, told.three[1].answer) == ("waiting", "queued")
    assert stages(told) == "YES YES YES YES NO NO UNKNOWN"
    assert stages(where(store, "job-2", now=1)).split()[2] == "UNKNOWN"


def test_the_broker_is_told_of_a_retry_when_it_is_due(store: Store) -> None:
    with_outbox(store)
    retry(store, wait_seconds=5)
    assert where(store, "job-1", now=6).cause.name == "backing-off"
    assert where(store, "job-1", now=8).cause.name == "unpublished"


def test_a_key_that_comes_again_is_no_step_of_the_job(store: Store) -> None:
    submit(store, key="k")
    store.claim("job-1", "A", now=1)
    store.submit("job-2", "export", {"table": "orders"}, key="k", now=3)
    assert where(store, "job-1", now=5).answers[2].says == "the last word is claim of attempt 1, accepted, 4 s ago"


def test_what_a_wrong_clock_wrote_is_told_as_times_to_come(store: Store) -> None:
    days = 3 * 86400
    submit(store)
    store.claim("job-1", "A", now=days)
    store.retry("job-1", 1, "A", Error("broken", "it broke"), 5, now=days)
    told = where(store, "job-1", now=10)
    assert told.cause.name == "far-future"
    assert told.answers[2].says == "the last word is retry of attempt 1, accepted, 3 days from now"


def test_without_leases_a_silent_worker_keeps_its_job(tmp_path: Path) -> None:
    with open_store(Contract().without("leases"), settings=LAB) as store:
        claim(store)
        assert where(store, "job-1", now=5).cause.name == "working"
        told = where(store, "job-1", now=99)
    assert told.cause.name == "no-lease"
    assert told.answers[4][1:] == (NO, "without leases nobody takes it from a worker that is dead")


def test_a_store_that_forgets_with_its_server_accepts_nothing_reliably() -> None:
    with open_store(Contract().without("persistence"), settings=LAB) as store:
        submit(store)
        assert where(store, "job-1", now=1).three[0].answer == NO
        store.restart()
        told = where(store, "job-1", now=1)
    assert told.three[0].answer == "UNKNOWN"
    assert stages(told).startswith("UNKNOWN UNKNOWN - UNKNOWN")
    assert "before a restart" in told.unknown


def test_a_result_that_can_not_be_looked_at_is_unknown(store: Store) -> None:
    succeed(store)
    told = where(store, "job-1", None, now=3)
    assert (told.cause.name, told.three[2].answer) == ("result-unknown", "UNKNOWN")


PAID = Entry("job-1", 1, "paid", 2, 1)


@pytest.mark.parametrize(
    ("do", "entries", "cause"),
    [
        (lambda s: succeed(s, 3), [PAID], "landed"),
        (lambda s: succeed(s, 3), [], "no-entry"),
        (claim, [PAID], "unreported"),
        (claim, [], "lease-over"),
        (fail, [PAID], "unreported"),
    ],
)
def test_the_ledger_tells_of_a_job_without_a_file(store: Store, do: Any, entries: list[Entry], cause: str) -> None:
    do(store)
    assert where(store, "job-1", None, entries, now=99).cause.name == cause


def test_a_job_with_a_file_is_not_looked_for_in_the_ledger(store: Store, results: Path) -> None:
    succeed(store)
    (results / "job-1.1.csv").write_bytes(WHOLE.encode())
    assert where(store, "job-1", results, [], now=3).cause.name == "landed"


def test_of_a_file_and_an_entry_the_one_of_more_concern_is_told(store: Store, results: Path) -> None:
    fail(store)
    (results / "job-1.1.csv").write_bytes(WHOLE.encode())
    assert where(store, "job-1", results, [], now=3).cause.name == "unreported"


def test_where_row_and_journal_do_not_agree_no_step_is_claimed(store: Store) -> None:
    succeed(store)
    with store.database.write() as db:
        db.execute("DELETE FROM events WHERE verb != 'submit'")
    told = where(store, "job-1", now=3)
    assert told.answers[1][1:] == ("UNKNOWN", "the row is at attempt 1, and the journal at 0")
    assert stages(told) == "YES YES - YES UNKNOWN UNKNOWN UNKNOWN"


def test_a_job_that_is_run_again_says_as_which(store: Store) -> None:
    fail(store)
    assert "jobslab rerun job-1" in where(store, "job-1", now=3).next
    rerun(store, "job-1", "job-2", now=4)
    told = where(store, "job-1", now=5)
    assert (told.cause.name, told.again) == ("failed", "job-2")
    assert told.next == told.owner_next == "follow job-2, which does it again"
    assert told.answers[4].says == "FAILED is terminal; job-2 does it again"
    assert where(store, "job-2", now=5).again is None
    assert "tell nothing of this one" in where(store, "job-1", asker="bob", now=5).next


def test_a_job_that_only_has_the_key_of_a_rerun_is_none(store: Store) -> None:
    fail(store)
    store.submit("job-2", "export", {}, key="rerun-of-job-1", now=4)
    assert where(store, "job-1", now=5).again is None


def test_a_job_that_is_well_or_not_over_says_its_own_next_step_though_it_is_run_again(store: Store) -> None:
    succeed(store, 3)
    rerun(store, "job-1", "job-2", anyway=True, now=4)
    told = where(store, "job-1", now=5)
    assert (told.again, told.next) == ("job-2", "nothing")


def test_those_who_are_picked_before_it_are_counted(store: Store) -> None:
    for id in ("job-a", "job-b"):
        store.submit(id, "export", {}, now=0)
    submit(store, now=1)
    assert "with 2 jobs before it" in where(store, "job-1", now=1).known
    store.claim("job-a", "A", now=1)
    assert "with 1 job before it" in where(store, "job-1", now=1).known


def test_an_id_that_is_used_again_is_told_by_its_new_life(store: Store) -> None:
    purged(store)
    later = EXPIRED_AT + 1
    submit(store, now=later)
    store.claim("job-1", "B", now=later)
    told = where(store, "job-1", now=later)
    assert (told.cause.name, len(told.events)) == ("working", 2)


def test_the_last_attempt_does_not_recover_by_a_sweep(store: Store) -> None:
    submit(store, max_attempts=1)
    store.claim("job-1", "A", now=1)
    recovers = where(store, "job-1", now=99).answers[4]
    assert recovers.answer == NO
    assert "a dead letter" in recovers.says


def test_a_correlation_id_stands_for_its_jobs(store: Store) -> None:
    for id in ("job-2", "job-1"):
        store.submit(id, "export", {}, correlation_id="trace-1", now=0)
    assert ids(store, "trace-1") == ("job-1", "job-2")
    assert ids(store, "job-1") == ("job-1",)
    assert ids(store, "nothing") == ("nothing",)
    with store.database.write() as db:
        db.execute("DELETE FROM jobs WHERE id = 'job-1'")
    assert ids(store, "trace-1") == ("job-1", "job-2")
    assert ids(store, "job-1") == ("job-1",)


def test_a_job_that_changes_while_one_looks_is_looked_at_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(store)
    events_of, looks = store.events_of, []

    def claimed_meanwhile(id: str) -> Any:
        events = events_of(id)
        if not looks:
            store.claim("job-1", "A", now=1)
        looks.append(id)
        return events

    monkeypatch.setattr(store, "events_of", claimed_meanwhile)
    assert where(store, "job-1", now=2).cause.name == "working"
    assert len(looks) == 2


def test_a_job_that_never_stands_still_is_given_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(store)
    events_of = store.events_of
    progress = iter(range(1000))

    def at_work(id: str) -> Any:
        store.progress("job-1", 1, "A", next(progress) / 1000, now=2)
        return events_of(id)

    monkeypatch.setattr(store, "events_of", at_work)
    with pytest.raises(StoreError, match="ask again"):
        where(store, "job-1", now=2)


def stages(told: Where) -> str:
    return " ".join(one.answer for one in told.stages)


def test_the_stages_are_reached_one_by_one(store: Store, results: Path) -> None:
    assert stages(where(store, "job-1", results, now=0)) == " ".join(["UNKNOWN UNKNOWN -", *["UNKNOWN"] * 4])
    submit(store)
    assert stages(where(store, "job-1", results, now=0)) == "YES YES - YES NO NO NO"
    store.claim("job-1", "A", now=1)
    assert stages(where(store, "job-1", results, now=1)) == "YES YES - YES YES NO NO"
    (results / "job-1.1.csv").write_bytes(WHOLE.encode())
    assert stages(where(store, "job-1", results, now=1)) == "YES YES - YES YES NO YES"
    store.succeed("job-1", 1, "A", RESULT, now=2)
    assert stages(where(store, "job-1", results, now=2)) == "YES YES - YES YES YES YES"
    (results / "job-1.1.csv").unlink()
    assert stages(where(store, "job-1", results, now=2)) == "YES YES - YES YES YES NO"
    assert stages(where(store, "job-1", results, now=EXPIRED_AT)) == "YES YES - YES YES YES UNKNOWN"


def test_the_stages_are_one_table_in_which_nothing_is_left_open() -> None:
    names = "validated,registered,confirmed by the broker,queued,running,done,landed".split(",")
    assert list(stage.NAMES) == names == [row["stage"] for row in stage.rows()]
    assert all(all(row.values()) for row in stage.rows())
    assert stage.markdown().count("\n") == 2 + len(names)
    assert all(line.count(" | ") == len(stage.HEAD) - 1 for line in stage.markdown().splitlines())


def test_the_stages_have_the_words_of_chapter_01(tmp_path: Path) -> None:
    with_refunds(as_database(sample(), tmp_path))
    seen = life("orders", tmp_path / "orders.csv.sqlite", tmp_path / "run")
    words = " ".join(one.chapter_01 for one in stage.STAGES)
    assert [word for word in seen if word not in words] == []


def test_the_document_of_an_owner_has_no_worker_in_it(store: Store) -> None:
    succeed(store)
    told = where(store, "job-1", now=3)
    assert [line["actor"] for line in document(told)["journal"]] == ["lab", "A", "A"]
    assert all("actor" not in line for line in document(told, owner=True)["journal"])


def test_a_row_that_nobody_can_read_is_told_all_the_same(store: Store, results: Path) -> None:
    fail(store)
    with store.database.write() as db:
        db.execute("UPDATE jobs SET error = '{'")
    told = where(store, "job-1", results, now=3)
    assert (told.cause.name, told.job and told.job.state) == ("failed", State.FAILED)
    assert "it has no error" in told.known
