"""Is a change without its line in the journal, or a line without its change, ever kept?  Neither, for any verb."""

from collections.abc import Callable
from typing import Any

import pytest

from jobslab.errors import KeyReused, StoreError
from jobslab.stores import Store
from tests.stores.steps import LEASE, REPORTS, RETENTION, failed, queued, report, running, succeeded

Act = Callable[[Store], Any]


def reporting(verb: str) -> Act:
    return lambda store: report(store, verb)


# How the story begins, and the write that is then told; refused writes too.
ACTS: dict[str, tuple[Act, Act]] = {
    "submit": (lambda store: None, queued),
    "a replayed submit": (
        lambda store: queued(store, key="k1"),
        lambda store: queued(store, "job-2", key="k1"),
    ),
    "a submit with the key of an expired job": (
        lambda store: succeeded(store, key="k1"),
        lambda store: queued(store, "job-2", key="k1", now=RETENTION),
    ),
    "claim": (queued, lambda store: store.claim("job-1", "A", now=0)),
    "claim_next": (queued, lambda store: store.claim_next("A", now=0)),
    **{verb: (running, reporting(verb)) for verb in REPORTS},
    **{f"a refused {verb}": (failed, reporting(verb)) for verb in REPORTS},
    "requeue": (running, lambda store: store.requeue("job-1", 1, now=LEASE)),
    "exhaust": (
        lambda store: running(store, max_attempts=1),
        lambda store: store.exhaust("job-1", 1, now=LEASE),
    ),
    "cancel": (queued, lambda store: store.cancel("job-1", now=0)),
    "a cancel that asks to stop": (running, lambda store: store.cancel("job-1", now=0)),
    "purge": (succeeded, lambda store: store.purge(now=RETENTION)),
}


def everything(store: Store) -> list[Any]:
    with store.database.read() as db:
        return [list(db.execute(f"SELECT * FROM {table} ORDER BY 1")) for table in ("jobs", "events", "expired")]


@pytest.mark.parametrize("what", ACTS)
def test_a_change_that_cannot_be_told_is_not_made(store: Store, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    begin, act = ACTS[what]
    begin(store)
    before = everything(store)
    with monkeypatch.context() as broken:
        broken.setattr("jobslab.stores.sql.EVENT", "INSERT INTO nowhere VALUES (:at)")
        with pytest.raises(StoreError):
            act(store)
    assert everything(store) == before
    act(store)
    assert len(everything(store)[1]) > len(before[1])


def test_a_line_is_not_kept_where_what_follows_it_fails(store: Store) -> None:
    running(store)
    before = everything(store)
    store.sql["ask_to_stop"] = "UPDATE nowhere SET state = 'RUNNING'"
    with pytest.raises(StoreError):
        store.cancel("job-1", now=1)
    assert everything(store) == before


def test_a_refused_key_is_told_although_it_is_an_error(store: Store) -> None:
    queued(store, key="k1")
    with pytest.raises(KeyReused):
        store.submit("job-2", "wait", {}, key="k1", now=0)
    assert [event.refused_by for event in store.events()] == [None, "fingerprint"]


def test_the_journal_is_in_the_order_of_the_changes(store: Store) -> None:
    succeeded(store, "job-1")
    queued(store, "job-2")
    assert [(event.job_id, event.verb) for event in store.events()] == [
        ("job-1", "submit"), ("job-1", "claim"), ("job-1", "succeed"), ("job-2", "submit"),
    ]  # fmt: skip
    assert [event.n for event in store.events()] == sorted({event.n for event in store.events()})


def test_without_a_journal_nothing_is_told_and_all_else_is_alike(open_it: Callable[..., Store]) -> None:
    store = open_it(journal=False)
    assert succeeded(store).state == "SUCCEEDED"
    assert store.events() == ()
