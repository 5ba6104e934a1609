"""What is promised to the one who submits: registered once, found again by the key, refused with a reason."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from jobslab import Contract
from jobslab.errors import BadKey, BadNumber, BadParams, IdTaken, JobslabError, KeyReused, UnknownKind
from jobslab.job import Event, Expired, State
from jobslab.stores import Store
from tests.stores.steps import IN_STATE, RETENTION, queued, row, succeeded, told


def test_a_submitted_job_waits_with_the_defaults(store: Store) -> None:
    job = store.submit("job-1", "export", {"table": "orders"}, now=5).job
    assert job == row(store)
    assert job._replace(fingerprint="") == job._replace(
        id="job-1", kind="export", params='{"table":"orders"}', owner="lab", idempotency_key=None, fingerprint="",
        state="QUEUED", attempt=0, max_attempts=3, run_at=5, lease_until=None, worker=None, progress=None,
        cancel_requested=0, result=None, error=None, correlation_id=None, rerun_of=None, created_at=5,
        started_at=None, updated_at=5, finished_at=None, expires_at=None,
    )  # fmt: skip


def test_what_the_caller_says_stands_in_the_row(store: Store) -> None:
    said = {"max_attempts": 7, "run_at": 30, "correlation_id": "trace", "rerun_of": "job-0"}
    job = store.submit("job-1", "wait", {}, "ann", "k1", **said, now=5).job
    assert {name: getattr(job, name) for name in said} == said
    assert (job.owner, job.idempotency_key, job.created_at) == ("ann", "k1", 5)


def test_a_submit_is_told_in_the_journal(store: Store) -> None:
    store.submit("job-1", "wait", {}, "ann", correlation_id="trace", now=5)
    assert store.events() == (Event(1, 5, "job-1", "ann", "submit", 0, 1, None, None, "QUEUED", "trace"),)


def test_a_store_asked_without_a_time_takes_the_databases(store: Store) -> None:
    before = time.time()
    job = store.submit("job-1", "wait", {}).job
    assert before <= job.created_at == job.updated_at == job.run_at == store.events()[0].at <= time.time()


# The idempotency key


@pytest.mark.parametrize("state", State)
def test_a_repeated_key_finds_the_first_job_and_changes_nothing(store: Store, state: State) -> None:
    first = IN_STATE[state](store) if state != "QUEUED" else queued(store)
    store.load([first._replace(idempotency_key="k1")])
    again = store.submit("job-2", "export", {"table": "orders"}, key="k1", now=9)
    assert again == (row(store), True)
    assert again.job == first._replace(idempotency_key="k1")
    assert told(store) == [("submit", None, state, state)]


def test_a_repeated_submit_makes_one_job(store: Store) -> None:
    replays = [store.submit(f"job-{n}", "wait", {}, key="k1", now=n).replayed for n in (1, 2, 3)]
    assert replays == [False, True, True]
    assert [job.id for job in store.rows()] == ["job-1"]
    assert [event.job_id for event in store.events()] == ["job-1"] * 3


def test_params_in_another_order_are_the_same_request(store: Store) -> None:
    store.submit("job-1", "wait", {"seconds": 1, "chunks": 2}, key="k1", now=0)
    assert store.submit("job-2", "wait", {"chunks": 2, "seconds": 1}, key="k1", now=0).replayed


@pytest.mark.parametrize(("kind", "params"), [("export", {"table": "others"}), ("wait", {"table": "orders"})])
def test_a_key_with_another_kind_or_other_params_is_refused(store: Store, kind: str, params: dict[str, str]) -> None:
    first = queued(store, key="k1")
    with pytest.raises(KeyReused, match="'k1'"):
        store.submit("job-2", kind, params, key="k1", now=9)
    assert store.rows() == (first,)
    assert told(store)[1:] == [("submit", "fingerprint", "QUEUED", "QUEUED")]


def test_the_keys_of_two_owners_do_not_meet(store: Store) -> None:
    store.submit("job-1", "wait", {}, "ann", "k1", now=0)
    assert not store.submit("job-2", "wait", {"seconds": 1}, "bob", "k1", now=0).replayed
    assert [store.find(owner, "k1", now=0).id for owner in ("ann", "bob")] == ["job-1", "job-2"]


def test_jobs_without_a_key_never_meet(store: Store) -> None:
    assert [store.submit(f"job-{n}", "wait", {}, now=0).replayed for n in (1, 2)] == [False, False]


def test_a_key_lives_until_its_job_expires(store: Store) -> None:
    succeeded(store, key="k1")
    assert store.submit("job-2", "export", {"table": "orders"}, key="k1", now=RETENTION - 1).replayed
    assert not store.submit("job-3", "export", {"table": "others"}, key="k1", now=RETENTION).replayed
    assert [job.id for job in store.rows()] == ["job-3"]
    assert store.get("job-1", now=RETENTION) == Expired("job-1", "lab", RETENTION)


def test_with_the_flag_off_a_key_is_stored_and_ignored(open_it: Callable[..., Store]) -> None:
    store = open_it(Contract().without("idempotency_key"))
    for n in (1, 2):
        assert not store.submit(f"job-{n}", "wait", {}, key="k1", now=0).replayed
    assert [job.idempotency_key for job in store.rows()] == ["k1", "k1"]
    assert store.find("lab", "k1", now=0) is None


def test_find_gives_the_job_that_a_key_stands_for(store: Store) -> None:
    job = succeeded(store, key="k1")
    assert store.find("lab", "k1", now=RETENTION - 1) == job
    assert store.find("lab", "k1", now=RETENTION) is None
    assert store.find("ann", "k1", now=0) is store.find("lab", "k2", now=0) is None


@pytest.mark.parametrize("key", [None, "k2"])
def test_a_clash_of_ids_is_no_replay(store: Store, key: str | None) -> None:
    first = queued(store, key="k1")
    with pytest.raises(IdTaken):
        store.submit("job-1", "export", {"table": "orders"}, key=key, now=9)
    assert store.rows() == (first,)
    assert len(store.events()) == 1


# What can't be a job

CIRCLE: dict[str, Any] = {}
CIRCLE["circle"] = CIRCLE

BAD: list[tuple[type[JobslabError], dict[str, Any]]] = [
    (UnknownKind, {"kind": "exprot"}),
    (UnknownKind, {"kind": None}),
    (BadParams, {"params": []}),
    (BadParams, {"params": "table"}),
    (BadParams, {"params": None}),
    (BadParams, {"params": {"seconds": float("nan")}}),
    (BadParams, {"params": {"seconds": {1, 2}}}),
    (BadParams, {"params": CIRCLE}),
    (BadKey, {"key": ""}),
    (BadKey, {"key": "k" * 256}),
    (BadKey, {"key": "two words"}),
    (BadKey, {"key": "k1\n"}),
    (BadKey, {"key": "schlüssel"}),
    (BadNumber, {"max_attempts": 0}),
    (BadNumber, {"max_attempts": 1.5}),
    (BadNumber, {"max_attempts": float("nan")}),
    (BadNumber, {"max_attempts": 2**63}),
    (BadNumber, {"run_at": -1}),
    (BadNumber, {"run_at": float("nan")}),
    (BadNumber, {"run_at": float("inf")}),
    (BadNumber, {"now": -1}),
    (BadNumber, {"now": float("nan")}),
]


@pytest.mark.parametrize(("error", "wrong"), BAD, ids=lambda value: getattr(value, "__name__", None))
def test_what_cannot_be_a_job_is_refused_by_name_and_not_stored(
    store: Store, error: type[JobslabError], wrong: dict[str, Any]
) -> None:
    with pytest.raises(error):
        store.submit(**{"id": "job-1", "kind": "wait", "params": {}, "now": 0, **wrong})
    assert store.rows() == store.events() == ()


def test_the_longest_key_is_taken(store: Store) -> None:
    assert store.submit("job-1", "wait", {}, key="~" * 255, now=0).job.idempotency_key == "~" * 255


def test_a_store_takes_the_kinds_it_was_opened_with(open_it: Callable[..., Store]) -> None:
    store = open_it(kinds=["bake"])
    assert store.submit("job-1", "bake", {}, now=0).job.kind == "bake"
    with pytest.raises(UnknownKind, match=r"'export'.*bake"):
        store.submit("job-2", "export", {}, now=0)
