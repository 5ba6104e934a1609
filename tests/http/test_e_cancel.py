"""Rules E1 to E8: what a cancel does, and what it does not.  E6 is also in test_races."""

from pathlib import Path

import pytest

from jobslab import Contract
from jobslab.job import STATES, TERMINAL, State
from jobslab.sweeper import sweep
from tests.http.room import Room, problem, room

EVERY_STATE = pytest.mark.parametrize("state", STATES)


def test_e1_a_cancel_is_a_post_and_delete_is_not_offered(lab: Room) -> None:
    id = lab.submitted()
    response = lab.http.delete(f"/jobs/{id}")
    assert (problem(response), response.headers["allow"]) == ("method-not-allowed", "GET, HEAD")
    assert lab.get(id).json()["state"] == State.QUEUED
    assert lab.cancel(id).json()["state"] == lab.get(id).json()["state"] == State.CANCELLED


def test_e2_a_running_job_is_cancelled_when_its_work_has_stopped(lab: Room) -> None:
    id = lab.submitted()
    lab.claim()
    told = lab.cancel(id)
    assert (told.status_code, told.json()["state"], told.json()["cancel_requested"]) == (200, State.RUNNING, True)
    lab.report("stop", id)
    assert lab.get(id).json()["state"] == State.CANCELLED
    assert lab.get(id).json()["error"]["type"] == "cancelled"


def test_e3_a_job_that_is_cancelled_in_the_queue_never_runs(lab: Room) -> None:
    id = lab.submitted()
    lab.cancel(id)
    assert lab.work() == []
    assert lab.get(id).json()["attempt"] == 0
    assert not list(lab.results.glob(f"{id}*"))


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_e4_a_cancel_of_what_is_done_is_200_and_changes_nothing(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    before = lab.get(id)
    after = lab.cancel(id)
    assert (after.status_code, after.content) == (200, before.content)


@EVERY_STATE
def test_e5_a_cancel_may_be_repeated(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    once, twice = lab.cancel(id), lab.cancel(id)
    assert (once.status_code, once.content) == (twice.status_code, twice.content) == (200, lab.get(id).content)


@pytest.mark.parametrize("contract", [Contract(), Contract().without("conditional_updates")], ids=str)
@pytest.mark.parametrize("cancel_first", [True, False])
def test_e6_cancel_and_success_have_one_winner(tmp_path: Path, contract: Contract, cancel_first: bool) -> None:
    with room(tmp_path, contract=contract) as lab:
        id = lab.submitted()
        lab.claim()
        steps = [lambda: lab.cancel(id), lambda: lab.report("succeed", id, {})]
        seen = set()
        for step in steps if cancel_first else reversed(steps):
            step()
            seen.add(lab.get(id).json()["state"])
        assert (len(seen & TERMINAL) == 1) == contract.conditional_updates
        has_result = lab.result(id).status_code == 200
        assert has_result == (lab.get(id).json()["state"] == State.SUCCEEDED)


@EVERY_STATE
def test_e7_a_cancel_leads_to_an_end_from_every_state(lab: Room, state: str) -> None:
    """Also where the worker that was to stop is dead."""
    id = lab.in_state(state)
    lab.cancel(id)
    lab.clock.advance(lab.store.settings.lease_seconds)
    sweep(lab.store, now=lab.clock.now())
    assert lab.get(id).json()["done"]


def test_e7_a_job_that_was_asked_to_stop_is_not_started_again_by_its_retry(lab: Room) -> None:
    id = lab.submitted({"kind": "flaky", "params": {"failures": 1}})
    lab.claim()
    lab.cancel(id)
    lab.clock.advance(lab.store.settings.lease_seconds)
    sweep(lab.store, now=lab.clock.now())
    assert lab.work() == []
    assert lab.get(id).json()["state"] == State.CANCELLED


def test_e8_a_cancelled_job_can_be_read(lab: Room) -> None:
    id = lab.in_state(State.CANCELLED)
    assert (lab.get(id).status_code, problem(lab.result(id))) == (200, "job-cancelled")
    assert [job["id"] for job in lab.http.get("/jobs").json()["jobs"]] == [id]
