"""Rules D1, D2 and D4: an accepted job comes to an end.  With processes that are really killed: test_killed."""

from pathlib import Path

import pytest

from jobslab import Contract
from jobslab.job import State
from jobslab.sweeper import sweep
from tests.http.room import Room, room


def crash_until_over(lab: Room, id: str, most: int = 10) -> int:
    """Let each worker that claims the job die; how often one did until the job was done, or `most`."""
    for crashes in range(most):
        if lab.get(id).json()["done"]:
            return crashes
        lab.store.claim(id, f"worker {crashes}", now=lab.clock.now())
        lab.clock.advance(lab.store.settings.lease_seconds)
        sweep(lab.store, now=lab.clock.now())
    return most


def test_d1_the_job_of_a_worker_that_died_is_done_by_another(lab: Room) -> None:
    id = lab.submitted()
    lab.claim()
    lab.clock.advance(lab.store.settings.lease_seconds)
    sweep(lab.store, now=lab.clock.now())
    assert lab.work() == [id]
    assert lab.get(id).json()["state"] == State.SUCCEEDED


def test_d1_without_leases_it_stays_as_it_is(tmp_path: Path) -> None:
    with room(tmp_path, contract=Contract().without("leases")) as broken:
        id = broken.submitted()
        broken.claim()
        broken.clock.advance(1_000_000)
        sweep(broken.store, now=broken.clock.now())
        assert broken.work() == []
        assert broken.get(id).json()["state"] == State.RUNNING


@pytest.mark.parametrize("contract", [Contract(), Contract().without("persistence")], ids=str)
def test_d2_an_accepted_job_outlives_the_server(tmp_path: Path, contract: Contract) -> None:
    path = str(tmp_path / "jobs.db")
    with room(tmp_path, contract=contract, path=path) as before:
        id = before.submitted()
    with room(tmp_path, contract=contract, path=path) as after:
        assert after.get(id).status_code == (200 if contract.persistence else 404)


def test_d4_a_job_that_kills_its_workers_is_given_up(lab: Room) -> None:
    id = lab.submitted()
    assert crash_until_over(lab, id) == lab.store.settings.max_attempts
    told = lab.get(id).json()
    assert (told["state"], told["attempt"], told["max_attempts"]) == (State.FAILED, 3, 3)
    assert told["error"] == {"type": "gave up", "message": "gave up after 3 attempts"}
