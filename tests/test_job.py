"""Does the one table of states say what the statements do, and is a Job what lies in the database?"""

from collections.abc import Iterator

import pytest

from jobslab import Contract, open_store
from jobslab.job import STATES, TERMINAL, Event, Expired, Job, State, queued
from jobslab.stores import Store
from tests.stores.test_contracts import QUICK, walk

MADE = queued("job-1", "wait", "{}", "ann", "k1", "f", 3, 5, None, None, 4)


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(Contract(), settings=QUICK) as store:
        yield store


def test_a_state_without_successors_is_terminal() -> None:
    assert set(STATES) == set(State)
    assert {"SUCCEEDED", "FAILED", "CANCELLED"} == TERMINAL


def test_every_state_can_be_reached() -> None:
    reached = {State.QUEUED}
    for _ in State:
        reached |= {successor for state in reached for successor in STATES[state].successors}
    assert reached == set(State)


def test_each_state_tells_the_caller_something_of_its_own() -> None:
    assert len({meaning.says for meaning in STATES.values()}) == len(State)


def test_the_statements_make_the_transitions_of_the_table_and_no_others(store: Store) -> None:
    told = {event for _ in walk(store, "transitions", 500) for event in store.events() if event.accepted}
    pairs = {(event.state_before, event.state_after) for event in told if event.verb not in ("submit", "purge")}
    seen = {(before, after) for before, after in pairs if before != after}
    assert seen == {(state, successor) for state, meaning in STATES.items() for successor in meaning.successors}


@pytest.mark.parametrize(("table", "row"), [("jobs", Job), ("events", Event), ("expired", Expired)])
def test_a_row_is_its_table_column_for_column(store: Store, table: str, row: type) -> None:
    with store.database.read() as db:
        assert [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")] == list(row._fields)


@pytest.mark.parametrize("state", State)
def test_a_job_is_done_when_its_state_never_changes_again(state: State) -> None:
    assert MADE._replace(state=state.value).done == (state in TERMINAL)


def test_a_new_job_waits_and_nothing_has_happened_to_it() -> None:
    assert (MADE.state, MADE.attempt, MADE.run_at, MADE.created_at, MADE.updated_at) == ("QUEUED", 0, 5, 4, 4)
    assert {MADE.lease_until, MADE.worker, MADE.progress, MADE.result, MADE.error} == {None}
    assert {MADE.started_at, MADE.finished_at, MADE.expires_at} == {None}
