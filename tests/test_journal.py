"""Is a journal that was damaged told from one that is whole, under every contract?"""

from collections.abc import Callable

import pytest

from jobslab import Contract, open_store
from jobslab.job import Error, Event, Job
from jobslab.journal import complaints, life
from jobslab.settings import LAB
from jobslab.stores import Store

CONTRACTS = pytest.mark.parametrize("contract", Contract.all(), ids=str)
Told = tuple[Job, tuple[Event, ...]]


def told(store: Store, id: str = "job-1") -> Told:
    job = store.get(id, now=90)
    assert isinstance(job, Job)
    return job, life(store.events_of(id))


def full_life(store: Store) -> Told:
    """A job that is retried, loses a worker, is asked to stop in vain, hears late reports, and is done."""
    store.submit("job-1", "export", {}, key="k", now=0)
    store.submit("job-1b", "export", {}, key="k", now=1)
    store.claim("job-1", "A", now=2)
    store.progress("job-1", 1, "A", 0.5, now=3)
    store.retry("job-1", 1, "A", Error("weather", "rain"), now=4)
    store.claim("job-1", "B", now=5)
    store.renew("job-1", 2, "B", now=6)
    store.requeue("job-1", 2, now=30)
    store.claim("job-1", "C", now=31)
    store.succeed("job-1", 2, "B", "late", now=32)
    store.succeed("job-1", 3, "C", "in time", now=33)
    store.progress("job-1", 3, "C", 0.9, now=34)
    store.cancel("job-1", now=35)
    return told(store)


@CONTRACTS
def test_a_whole_journal_is_not_complained_of_under_any_contract(contract: Contract) -> None:
    """Not even where a broken contract lets a finished job run again: that too is told in the journal."""
    with open_store(contract, settings=LAB) as store:
        job, events = full_life(store)
        assert len(events) > 8
        assert list(complaints(job, events)) == []


def whole() -> Told:
    with open_store(settings=LAB) as store:
        return full_life(store)


def without(verb: str) -> Callable[[Told], Told]:
    def spoil(told: Told) -> Told:
        first = next(event.n for event in told[1] if event.verb == verb and event.accepted)
        return told[0], tuple(event for event in told[1] if event.n != first)

    return spoil


SPOILT: dict[str, tuple[Callable[[Told], Told], str]] = {
    "nothing is left": (lambda told: (told[0], ()), "it has no line of the job"),
    "no submit": (without("submit"), "its first lines are missing"),
    "no claim": (without("claim"), "begins in RUNNING, and the line before ended in QUEUED"),
    "no requeue": (without("requeue"), "begins in QUEUED, and the line before ended in RUNNING"),
    "no end": (lambda told: (told[0], told[1][:-4]), "its last line ends in RUNNING, and the row is SUCCEEDED"),
    "another row": (lambda told: (told[0]._replace(state="QUEUED"), told[1]), "and the row is QUEUED"),
    "another attempt": (lambda told: (told[0]._replace(attempt=7), told[1]), "claims up to attempt 3"),
    "a whole attempt": (
        lambda told: (told[0], tuple(e for e in told[1] if e.attempt != 2 or e.verb in ("submit", "succeed"))),
        "attempt 3 was claimed right after attempt 1",
    ),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_journal_with_a_hole_or_beside_another_row_is_complained_of(how: str) -> None:
    spoil, says = SPOILT[how]
    assert any(says in complaint for complaint in complaints(*spoil(whole()))), list(complaints(*spoil(whole())))


def test_the_oldest_lines_may_be_gone_where_a_purge_takes_them() -> None:
    job, events = whole()
    for first in range(len(events) + 1):
        assert list(complaints(job, events[first:], cut=True)) == []
        assert first == 0 or list(complaints(job, events[first:]))


def test_an_id_that_is_used_again_has_a_life_of_its_own() -> None:
    with open_store(settings=LAB) as store:
        first = full_life(store)[1]
        later = 40 + LAB.retention_seconds
        store.purge(now=later)
        store.submit("job-1", "export", {}, now=later)
        assert len(store.events_of("job-1")) == len(first) + 2
        assert [event.verb for event in life(store.events_of("job-1"))] == ["submit"]
