"""What does a store remember of how it was made, who may open it, and what does a restart of the server leave?"""

from collections.abc import Callable
from pathlib import Path

import pytest

from jobslab import Contract
from jobslab.errors import ContractMismatch, SecondServer, StoreError
from jobslab.stores import Store
from jobslab.stores.sql import SQLStore
from tests.stores.steps import RETENTION, queued, running, succeeded
from tests.stores.ways import SHARED, WAYS

in_memory = Contract().without("persistence")
on_shared_stores = pytest.mark.parametrize("way", SHARED, indirect=True)


def test_a_new_store_gets_the_full_contract(open_it: Callable[..., Store]) -> None:
    assert open_it(None).contract == Contract()


@on_shared_stores
@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_the_contract_is_stored_with_the_store_and_adopted(open_it: Callable[..., Store], contract: Contract) -> None:
    open_it(contract).close()
    assert open_it(None).contract == open_it(contract).contract == contract


@on_shared_stores
def test_another_contract_is_refused_with_both_named(open_it: Callable[..., Store]) -> None:
    made = open_it(Contract().without("leases"))
    job = queued(made)
    with pytest.raises(ContractMismatch, match=r"'all but leases'.*'leases, persistence'|'persistence, leases'"):
        open_it(Contract.only("leases", "persistence"))
    assert made.rows() == open_it(None).rows() == (job,)


@on_shared_stores
def test_another_version_of_the_schema_is_refused(open_it: Callable[..., Store]) -> None:
    with open_it().database.write() as db:
        db.execute("UPDATE jobslab SET schema_version = 99")
    with pytest.raises(StoreError, match="version 99"):
        open_it()


@on_shared_stores
def test_a_database_of_something_else_is_refused(way: str, tmp_path: Path, open_it: Callable[..., Store]) -> None:
    with WAYS[way](tmp_path).write() as db:
        db.execute("CREATE TABLE customers (id INTEGER)")
    with pytest.raises(StoreError, match="something else"):
        open_it()


@on_shared_stores
def test_what_was_accepted_is_there_when_the_store_is_opened_again(open_it: Callable[..., Store]) -> None:
    first = open_it()
    succeeded(first)
    rows, events = first.rows(), first.events()
    first.close()
    assert (open_it().rows(), open_it().events()) == (rows, events)


@on_shared_stores
def test_two_stores_on_one_database_see_the_same_jobs(open_it: Callable[..., Store]) -> None:
    first, second = open_it(), open_it()
    queued(first)
    assert second.claim_next("B", now=0).accepted
    assert first.claim("job-1", "A", now=0).refused_by == "still_claimable"


# The server


def filled(store: Store) -> Store:
    succeeded(store, "job-1")
    store.purge(now=RETENTION)
    running(store, "job-2", now=RETENTION)
    return store


def test_a_restart_keeps_everything(store: Store) -> None:
    rows, events = filled(store).rows(), store.events()
    store.start_server()
    assert (store.rows(), store.events()) == (rows, events)
    assert store.get("job-1", now=RETENTION) is not None


def test_with_persistence_off_a_restart_leaves_nothing(open_it: Callable[..., Store]) -> None:
    store = filled(open_it(in_memory))
    store.start_server()
    assert store.rows() == store.events() == ()
    assert store.get("job-1", now=RETENTION) is None


def test_with_persistence_off_jobs_live_as_long_as_the_server(open_it: Callable[..., Store]) -> None:
    store = open_it(in_memory)
    store.start_server()
    job = queued(store)
    assert store.rows() == (job,)


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_a_restart_asks_no_other_flag(open_it: Callable[..., Store], contract: Contract) -> None:
    store = open_it(contract)
    queued(store)
    store.restart()
    assert len(store.rows()) == contract.persistence


def test_a_server_empties_its_own_store_alone(open_it: Callable[..., Store], way: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with SQLStore(WAYS[way](other), in_memory) as neighbour:
        job = queued(neighbour)
        open_it(in_memory).start_server()
        assert neighbour.rows() == (job,)


@on_shared_stores
def test_no_server_empties_a_store_that_was_made_to_last(open_it: Callable[..., Store]) -> None:
    made = open_it()
    job = queued(made)
    with pytest.raises(ContractMismatch):
        open_it(in_memory)
    open_it(None).start_server()
    assert made.rows() == (job,)


@on_shared_stores
def test_with_persistence_off_a_second_server_is_refused_until_the_first_is_closed(
    open_it: Callable[..., Store],
) -> None:
    first, second = open_it(in_memory), open_it(in_memory)
    first.start_server()
    job = queued(first)
    with pytest.raises(SecondServer, match="server already"):
        second.start_server()
    assert second.rows() == (job,)
    first.close()
    second.start_server()
    assert second.rows() == ()


@on_shared_stores
def test_with_persistence_on_there_may_be_many_servers(open_it: Callable[..., Store]) -> None:
    first, second = open_it(), open_it()
    first.start_server()
    second.start_server()


def test_a_server_may_start_again_on_its_own_store(open_it: Callable[..., Store]) -> None:
    store = open_it(in_memory)
    store.start_server()
    queued(store)
    store.start_server()
    assert store.rows() == ()


# The table as a value


def test_rows_that_are_loaded_are_the_whole_table(store: Store) -> None:
    filled(store)
    rows = store.rows()
    store.submit("job-3", "wait", {}, now=RETENTION)
    store.load(rows)
    assert store.rows() == rows
    assert store.events() == ()
    assert store.get("job-1", now=RETENTION) is None
