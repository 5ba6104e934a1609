"""What is promised to those who ask for much at once: one transaction, so all of it or nothing."""

import pytest

from jobslab.errors import BadKey, BadNumber, IdTaken, KeyReused
from jobslab.job import Error
from jobslab.stores import Store
from tests.stores.steps import queued, row, running, told


def new(id: str, **options: object) -> dict[str, object]:
    return {"id": id, "kind": "export", "params": {"table": "orders"}, **options}


def test_many_are_submitted_and_answered_in_their_order(store: Store) -> None:
    submitted = store.submit_many([new("job-2", key="b"), new("job-3"), new("job-1", key="a")], now=0)
    assert [(answer.job.id, answer.replayed) for answer in submitted] == [
        ("job-2", False),
        ("job-3", False),
        ("job-1", False),
    ]
    assert [job.id for job in store.rows()] == ["job-1", "job-2", "job-3"]
    assert [verb for verb, *_ in told(store)] == ["submit"] * 3


def test_a_key_finds_its_job_in_the_same_batch_and_in_an_earlier_one(store: Store) -> None:
    store.submit_many([new("job-1", key="a")], now=0)
    submitted = store.submit_many([new("job-2", key="b"), new("job-3", key="b"), new("job-4", key="a")], now=1)
    assert [(answer.job.id, answer.replayed) for answer in submitted] == [
        ("job-2", False),
        ("job-2", True),
        ("job-1", True),
    ]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (new("job-9", key=""), BadKey),
        (new("job-1"), IdTaken),
        ({**new("job-9", key="a"), "params": {"table": "others"}}, KeyReused),
    ],
)
def test_of_a_batch_with_one_that_cannot_be_nothing_is_stored(
    store: Store, bad: dict[str, object], error: type[Exception]
) -> None:
    job = queued(store, key="a")
    with pytest.raises(error):
        store.submit_many([new("job-2", key="0"), bad, new("job-3", key="z")], now=1)
    assert store.rows() == (job,)
    assert told(store) == [("submit", None, None, "QUEUED")]
    assert queued(store, "job-2").id == "job-2"  # and the store goes on


def test_many_are_claimed_in_the_order_in_which_they_are_due(store: Store) -> None:
    for n in (3, 1, 2, 4):
        queued(store, f"job-{n}", now=n)
    assert [(job.id, job.attempt, job.state) for job in store.claim_many("A", 3, now=5)] == [
        ("job-1", 1, "RUNNING"),
        ("job-2", 1, "RUNNING"),
        ("job-3", 1, "RUNNING"),
    ]
    assert [job.id for job in store.claim_many("B", 3, now=5)] == ["job-4"]
    assert store.claim_many("B", 3, now=5) == ()


@pytest.mark.parametrize("most", [0, -1])
def test_claiming_fewer_than_one_is_refused_by_name(store: Store, most: int) -> None:
    with pytest.raises(BadNumber, match="at least 1"):
        store.claim_many("A", most)


def test_a_report_and_the_next_claim_can_be_one_transaction(store: Store) -> None:
    running(store, "job-1")
    queued(store, "job-2")
    with store.transaction():
        assert store.succeed("job-1", 1, "A", now=1).accepted
        assert store.claim_next("A", now=1).job.id == "job-2"
    assert [job.state for job in store.rows()] == ["SUCCEEDED", "RUNNING"]


def report_claim_and_break(store: Store) -> None:
    with store.transaction():
        store.succeed("job-1", 1, "A", now=1)
        store.claim_next("A", now=1)
        raise RuntimeError("the body")


def test_of_a_transaction_that_fails_nothing_is_kept(store: Store) -> None:
    before = running(store, "job-1"), queued(store, "job-2")
    lines = store.events()
    with pytest.raises(RuntimeError, match="the body"):
        report_claim_and_break(store)
    assert (store.rows(), store.events()) == (before, lines)
    assert store.succeed("job-1", 1, "A", now=1).accepted  # the next one stands alone again


def test_a_refusal_inside_a_transaction_undoes_nothing(store: Store) -> None:
    running(store, "job-1")
    queued(store, "job-2")
    with store.transaction():
        assert store.fail("job-1", 7, "A", Error("late", "late"), now=1).refused_by == "current"
        store.claim_next("A", now=1)
    assert row(store, "job-2").state == "RUNNING"
    assert told(store)[-2:] == [("fail", "current", "RUNNING", "RUNNING"), ("claim", None, "QUEUED", "RUNNING")]


def test_what_is_read_inside_a_transaction_is_what_was_written_in_it(store: Store) -> None:
    queued(store)
    with store.transaction(), store.transaction():
        store.claim_next("A", now=1)
        assert row(store).state == "RUNNING"
        assert store.pick(now=1) is None
