"""Does reconciliation find what differs, repair it by the contract's own verbs, and leave alone what is in hand?"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobslab.clock import counted
from jobslab.contract import Contract
from jobslab.job import Error, Job
from jobslab.lab.postgres import a_store
from jobslab.landing import Landed, Landing
from jobslab.reconcile import Action, Finding, Found, files, reconcile
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from tests import postgres

NOW, LATER = 5.0, 11.0  # within A's lease, and after it


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(Contract(), settings=LAB) as store:
        yield store


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def claimed(store: Store, **options: Any) -> Job:
    """job-1, which A has had since 0."""
    store.submit("job-1", "export", {"table": "orders"}, now=0, **options)
    reply = store.claim_next("A", now=0)
    assert reply is not None
    assert reply.job is not None
    return reply.job


def written(results: Path, name: str = "job-1.1.csv") -> Path:
    (results / name).write_bytes(b"a\r\n1\r\n2\r\n")
    return results / name


def compare(store: Store, results: Path, now: float = LATER, **options: Any) -> list[Finding]:
    return reconcile(store, files(results), ids=counted(["job-1"]), now=now, **options)


def verbs(store: Store) -> list[tuple[str, str | None, int]]:
    return [(event.verb, event.actor, event.accepted) for event in store.events()]


# A result that was never told


def test_the_file_of_a_dead_worker_is_reported_for_its_attempt(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    [finding] = compare(store, results)
    assert (finding.action, finding.done, finding.open) == (Action.REPORT, "it is SUCCEEDED now", False)
    told = json.loads(str(store.rows()[0].result))
    assert (told["file"], told["rows"], told["bytes"], len(told["sha256"])) == ("job-1.1.csv", 2, 9, 64)
    assert verbs(store)[-1] == ("succeed", "reconcile", 1)
    assert store.rows()[0].attempt == 1
    assert compare(store, results) == []


def test_the_last_attempt_is_no_hindrance(store: Store, results: Path) -> None:
    claimed(store, max_attempts=1)
    written(results)
    compare(store, results)
    assert store.rows()[0].state == "SUCCEEDED"


def test_a_job_that_a_worker_has_is_left_to_it(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    [finding] = compare(store, results, NOW)
    assert (finding.action, finding.done, finding.open) == (Action.WAIT, None, False)
    assert len(store.events()) == 2


def test_a_job_that_is_back_in_the_queue_is_claimed_and_reported_at_once(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    store.requeue("job-1", 1, now=LATER)
    [finding] = compare(store, results)
    assert (finding.action, finding.done) == (Action.TAKE, "it is SUCCEEDED now")
    assert (store.rows()[0].attempt, json.loads(str(store.rows()[0].result))["file"]) == (2, "job-1.1.csv")
    assert verbs(store)[-2:] == [("claim", "reconcile", 1), ("succeed", "reconcile", 1)]


def test_the_file_of_an_older_attempt_will_do_when_the_last_one_died_too(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    store.requeue("job-1", 1, now=LATER)
    store.claim("job-1", "B", now=LATER)
    compare(store, results, now=2 * LATER)
    assert json.loads(str(store.rows()[0].result))["file"] == "job-1.1.csv"
    assert store.rows()[0].attempt == 2


def test_a_job_that_changes_between_the_look_and_the_write_refuses_it(store: Store, results: Path) -> None:
    claimed(store)
    written(results)

    def slowly(job: Job) -> Found:
        """When it answers the job is B's."""
        found = files(results)(job)
        store.requeue("job-1", 1, now=LATER)
        store.claim("job-1", "B", now=LATER)
        return found

    [finding] = reconcile(store, slowly, now=LATER)
    assert (finding.action, finding.done, finding.refused_by, finding.open) == (
        Action.REPORT,
        "nothing",
        "current",
        True,
    )
    assert (store.rows()[0].state, store.rows()[0].worker) == ("RUNNING", "B")


def test_one_that_was_asked_to_stop_is_left_to_the_sweeper(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    store.cancel("job-1", now=1)
    assert [finding.action for finding in compare(store, results)] == [Action.WAIT]


def test_without_leases_nobody_can_say_that_a_worker_is_gone(results: Path) -> None:
    with open_store(Contract().without("leases"), settings=LAB) as store:
        claimed(store)
        written(results)
        [finding] = compare(store, results)
    assert (finding.action, finding.done, finding.open) == (Action.PERSON, None, True)


def test_what_is_over_stays_over_and_a_person_decides(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    store.fail("job-1", 1, "A", Error("it broke", "it broke"), now=1)
    before = store.rows()
    [finding] = compare(store, results)
    assert (finding.landing.landed, finding.action, finding.open) == (Landed.UNREPORTED, Action.PERSON, True)
    assert store.rows() == before


def test_of_a_cancelled_job_nobody_wants_the_file(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    store.cancel("job-1", now=1)
    store.stop("job-1", 1, "A", now=1)
    assert compare(store, results) == []


# A result that was told and is not there


def done(store: Store) -> None:
    claimed(store, key="k", correlation_id="trace-1", owner="ann", max_attempts=2)
    store.succeed("job-1", 1, "A", {"file": "job-1.1.csv", "rows": 2, "bytes": 9}, now=1)


def test_what_agrees_is_no_finding(store: Store, results: Path) -> None:
    done(store)
    written(results)
    store.submit("job-2", "export", {"table": "orders"}, now=0)
    assert compare(store, results) == []


@pytest.mark.parametrize("content", [None, b"a\r\n1\r\n"])
def test_a_file_that_is_lost_or_damaged_is_made_again_by_a_new_job(
    store: Store, results: Path, content: bytes | None
) -> None:
    done(store)
    if content:
        written(results).write_bytes(content)
    [finding] = compare(store, results)
    assert (finding.action, finding.done, finding.open) == (Action.AGAIN, "job-2 does it again", False)
    first, again = store.rows()
    assert first.state == "SUCCEEDED"
    assert (again.state, again.rerun_of, again.attempt, again.max_attempts) == ("QUEUED", "job-1", 0, 2)
    assert (again.kind, again.params, again.owner) == (first.kind, first.params, "ann")
    assert again.correlation_id == "trace-1"


def test_it_is_made_again_once_however_often_one_reconciles(store: Store, results: Path) -> None:
    done(store)
    compare(store, results)
    assert compare(store, results) == []
    assert compare(store, results, dry_run=True) == []
    assert len(store.rows()) == 2


def test_a_key_that_its_owner_has_used_for_something_else_hinders_nobody_else(store: Store, results: Path) -> None:
    for n in (1, 2):
        store.submit(f"job-{n}", "export", {"table": "orders"}, now=0)
        store.claim(f"job-{n}", "A", now=0)
        store.succeed(f"job-{n}", 1, "A", {"file": f"job-{n}.1.csv"}, now=1)
    store.submit("job-3", "wait", {}, key="rerun-of-job-1", now=1)
    first, second = reconcile(store, files(results), ids=counted(["job-3"]), now=2)
    assert (first.done, first.refused_by, first.open) == ("nothing", "fingerprint", True)
    assert (second.done, second.open) == ("job-5 does it again", False)


def test_a_file_that_cannot_be_read_takes_a_person(
    store: Store, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed(store)
    written(results)

    def away(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("jobslab.landing.measured", away)
    [finding] = compare(store, results)
    assert (finding.action, finding.open) == (Action.PERSON, True)
    assert finding.landing.says == "job-1.1.csv can't be read just now: Input/output error"


def test_two_who_reconcile_at_once_make_one_new_job(store: Store, results: Path) -> None:
    done(store)

    def probe(job: Job) -> Found:
        if len(store.rows()) == 1 and job.id == "job-1":
            reconcile(store, files(results), ids=lambda: "by another", now=LATER)
        return files(results)(job)

    [finding] = reconcile(store, probe, ids=lambda: "mine", now=LATER)
    assert finding.done == "by another does it again"
    assert [row.id for row in store.rows() if row.rerun_of] == ["by another"]


def test_when_doing_it_again_failed_a_person_decides(store: Store, results: Path) -> None:
    done(store)
    compare(store, results)
    store.claim("job-2", "B", now=LATER)
    store.fail("job-2", 1, "B", Error("it broke", "it broke"), now=LATER)
    assert [finding.action for finding in compare(store, results)] == [Action.PERSON]


def test_an_effect_that_must_not_be_done_again_is_left_to_a_person(store: Store) -> None:
    done(store)
    absent = Found(Landing(Landed.ABSENT, "it is not there"))
    assert [finding.action for finding in reconcile(store, lambda job: absent, now=LATER)] == [Action.PERSON]


def test_of_an_expired_job_nothing_is_missed(store: Store, results: Path) -> None:
    done(store)
    assert compare(store, results, now=LAB.retention_seconds + 2) == []


# The other side


def test_the_other_side_is_mended_before_the_row_is_told(store: Store) -> None:
    claimed(store)
    states: list[str] = []
    landed = Landing(Landed.UNREPORTED, "paid, and not recorded")
    reconcile(store, lambda job: Found(landed, "paid", lambda: states.append(store.rows()[0].state)), now=LATER)
    assert states == ["RUNNING"]
    assert store.rows()[0].state == "SUCCEEDED"


def test_where_only_the_other_side_is_wrong_only_that_is_mended(store: Store) -> None:
    done(store)
    mended: list[int] = []
    found = Found(Landing(Landed.LANDED, "paid, and not recorded"), mend=lambda: mended.append(1))
    [finding] = reconcile(store, lambda job: found, now=LATER)
    assert (finding.action, finding.open, mended) == (Action.MEND, False, [1])
    assert len(store.events()) == 3


# PostgreSQL


def test_on_postgresql_it_is_the_same(results: Path, tmp_path: Path) -> None:
    with (
        a_store(postgres.server_url(), postgres.schema_name(tmp_path), Contract()) as url,
        open_store(None, url, settings=LAB) as store,
    ):
        claimed(store)
        written(results)
        store.requeue("job-1", 1, now=LATER)
        store.submit("job-2", "export", {"table": "orders"}, now=LATER)
        store.claim("job-2", "B", now=LATER)
        written(results, "job-2.1.csv")
        actions = [finding.action for finding in compare(store, results, now=3 * LATER)]
        assert sorted(actions) == sorted([Action.TAKE, Action.REPORT])
        assert {row.state for row in store.rows()} == {"SUCCEEDED"}


# Dry


def test_a_dry_run_finds_the_same_and_changes_nothing(store: Store, results: Path) -> None:
    claimed(store)
    written(results)
    mended: list[int] = []
    before = store.rows(), store.events()
    found = Found(Landing(Landed.UNREPORTED, "x"), mend=lambda: mended.append(1))
    for probe in (files(results), lambda job: found):
        [finding] = reconcile(store, probe, dry_run=True, now=LATER)
        assert (finding.action, finding.done, finding.open) == (Action.REPORT, None, True)
    assert (store.rows(), store.events(), mended) == (*before, [])
