"""Does every run that the explorer tells go the same way on a real store, and as a schedule?"""

from functools import cache
from pathlib import Path

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.lab.checker import BROKEN
from jobslab.lab.explore import Exploration, explore
from jobslab.lab.place import here
from jobslab.lab.properties import NAMES
from jobslab.lab.replay import replay
from jobslab.lab.running import NOT_EXERCISED, run
from jobslab.lab.schedule import parse
from jobslab.lab.trace import Happening, schedule
from jobslab.lab.world import Bounds
from jobslab.settings import LAB
from jobslab.stores import open_store
from jobslab.stores.sql import SQLStore
from tests.stores.ways import WAYS


@cache
def found(contract: Contract) -> Exploration:
    """All shortest runs are seen early: a search cut short finds the same."""
    return explore(contract, limit=3000)


def traces(contract: Contract) -> dict[str, tuple[Happening, ...]]:
    return {name: one.trace for name, one in found(contract).findings.items() if one.trace}


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_every_run_of_the_matrix_has_the_same_answers_on_a_store(contract: Contract, tmp_path: Path) -> None:
    go_the_same_way(contract, "without a file", tmp_path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("contract", [Contract(), *(Contract().without(flag) for flag in FLAGS)], ids=str)
def test_and_on_every_kind_of_store_without_a_flag(contract: Contract, way: str, tmp_path: Path) -> None:
    go_the_same_way(contract, way, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_and_on_every_kind_of_store_under_every_contract(contract: Contract, way: str, tmp_path: Path) -> None:
    go_the_same_way(contract, way, tmp_path)


def go_the_same_way(contract: Contract, way: str, tmp_path: Path) -> None:
    with SQLStore(WAYS[way](tmp_path), contract, settings=LAB) as store:
        for name, trace in traces(contract).items():
            store.load(())
            assert replay(trace, store) == [], name


def test_the_search_that_was_cut_short_has_every_promise_that_the_whole_matrix_breaks() -> None:
    """As many as tests/lab/test_explore.py pins for the exhausted matrix."""
    broken = [name for contract in Contract.all() for name in NAMES if found(contract).findings[name].answer == BROKEN]
    assert len(broken) == 172


@pytest.mark.parametrize("contract", [*(Contract().without(flag) for flag in FLAGS), Contract.none()], ids=str)
def test_a_run_that_breaks_a_promise_can_be_run_as_a_schedule_and_every_step_of_it_happens(contract: Contract) -> None:
    happens_as_a_schedule(contract)


@pytest.mark.long
@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_and_so_it_can_under_every_contract(contract: Contract) -> None:
    happens_as_a_schedule(contract)


def happens_as_a_schedule(contract: Contract) -> None:
    for name, one in found(contract).broken.items():
        with here(contract) as place:
            rows = run(parse(one.schedule), place)
        assert [row.step for row in rows] == [str(step) for step in schedule(one.trace)], name
        assert not [row.step for row in rows if row.outcome == NOT_EXERCISED], name
        ends = {(job.id, job.state, job.attempt, bool(job.cancel_requested)) for job in one.trace[-1].rows}
        assert {(job.id, job.state, job.attempt, job.cancel_requested) for job in rows[-1].jobs} == ends, name


def test_a_store_that_answers_otherwise_is_found_out_and_the_step_is_named() -> None:
    late = traces(Contract().without("attempt_fencing"))["only the current attempt's report counts"]
    with open_store(Contract(), settings=LAB) as store:
        first, *_ = replay(late, store)
    assert (first.n, first.step) == (8, "A progresses late")
    assert str(first).startswith("step 8, 'A progresses late': the explorer says (Reply(accepted=True")


def test_rows_are_compared_after_every_step() -> None:
    (first, *rest) = traces(Contract())["a later attempt succeeds"]
    other = first._replace(rows=tuple(job._replace(attempt=7) for job in first.rows))
    with open_store(Contract(), settings=LAB) as store:
        assert [difference.n for difference in replay([other, *rest], store)] == [1]


def test_two_jobs_are_queued_in_the_order_in_which_they_were_queued_last() -> None:
    """In the world the order of the rows stands for it; on a store it is a matter of time."""
    bounds = Bounds(jobs=2, workers=1, sweepers=0, faults=0, under_way=0, cancels=0, reports=("retry",), attempts=3)
    again = explore(Contract(), bounds, names=["a job may run twice"]).findings["a job may run twice"]
    with open_store(Contract(), settings=LAB) as store:
        assert replay(again.trace, store) == []
