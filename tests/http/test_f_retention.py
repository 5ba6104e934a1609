"""Rules F1 to F5: how long a job is kept, and what is told of it afterwards."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jobslab.commands.service import remove_results
from jobslab.job import TERMINAL, State
from jobslab.landing import file_name
from jobslab.settings import LAB, SERVICE
from tests.http.room import EXPORT, Room, problem, room


def pass_retention(lab: Room, *, but_seconds: float = 0) -> None:
    lab.clock.advance(LAB.retention_seconds - but_seconds)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_f1_a_job_is_kept_for_a_day_after_it_is_done_and_says_until_when(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    told = lab.get(id).json()
    kept = datetime.fromisoformat(told["expires_at"]) - datetime.fromisoformat(told["finished_at"])
    published = lab.http.get("/contract").json()["limits"]["retention_seconds"]
    assert kept.total_seconds() == published == SERVICE.retention_seconds == 24 * 3600
    pass_retention(lab, but_seconds=1)
    assert lab.get(id).status_code == 200
    lab.clock.advance(1)
    assert problem(lab.get(id)) == "job-expired"


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_f2_a_job_that_is_not_done_never_expires(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    lab.clock.advance(100 * LAB.retention_seconds)
    lab.store.purge(now=lab.clock.now())
    told = lab.get(id).json()
    assert (told["state"], told["expires_at"]) == (state, None)


@pytest.mark.parametrize("purges", [False, True])
def test_f3_an_expired_job_is_410_while_it_is_remembered_and_then_404(lab: Room, purges: bool) -> None:
    """Judged by the clock, whether or not anybody has purged."""
    id = lab.in_state(State.SUCCEEDED)
    addresses = [("GET", f"/jobs/{id}"), ("GET", f"/jobs/{id}/result"), ("POST", f"/jobs/{id}/cancel")]
    addresses += [("GET", f"/jobs/{id}/trace")]

    def problems() -> set[str]:
        if purges:
            lab.store.purge(now=lab.clock.now())
        return {problem(lab.http.request(*address)) for address in addresses}

    pass_retention(lab)
    assert problems() == {"job-expired"}
    assert lab.http.get("/jobs").json()["jobs"] == []
    lab.clock.advance(LAB.expired_seconds - 1)
    assert problems() == {"job-expired"}
    lab.clock.advance(1)
    if purges:  # what is not purged is not forgotten either
        assert problems() == {"no-such-job"}


def test_f4_a_replay_after_expiry_is_a_new_job_and_no_dangling_address(lab: Room) -> None:
    first = lab.post(key="k").json()["id"]
    lab.work()
    pass_retention(lab)
    again = lab.post(key="k")
    assert again.status_code == 202
    assert lab.http.get(again.headers["location"]).json()["state"] == State.QUEUED
    assert lab.work() == [again.json()["id"]] != [first]
    assert problem(lab.get(first)) == "job-expired"


async def download(lab: Room, address: str, during: Any) -> tuple[int, bytes]:
    """Status and body of a download in whose midst, after the head of the answer, something else happens."""
    told: dict[str, Any] = {"body": b""}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            told["status"], told["headers"] = message["status"], dict(message["headers"])
            during()
        else:
            told["body"] += message.get("body", b"")

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}, "http_version": "1.1", "method": "GET", "path": address}
    await lab.app(scope | {"raw_path": address.encode(), "query_string": b"", "headers": []}, receive, send)
    assert int(told["headers"][b"content-length"]) == len(told["body"])
    return told["status"], told["body"]


def test_f5_a_download_that_has_begun_is_not_cut_off_by_a_purge(lab: Room) -> None:
    id = lab.submitted()
    lab.work()
    whole = lab.result(id).content

    def expire() -> None:
        pass_retention(lab)
        assert lab.store.purge(now=lab.clock.now()) == 1
        remove_results(lab.store, lab.results)
        assert not list(lab.results.glob("*.csv"))

    assert asyncio.run(download(lab, f"/jobs/{id}/result", expire)) == (200, whole)
    assert problem(lab.result(id)) == "job-expired"


def test_f5_the_results_of_jobs_that_are_kept_are_kept(lab: Room) -> None:
    kept = lab.submitted()
    lab.work()
    named = [lab.results / file_name(id, 1) for id in ("order 7", "a.b", ".c")]  # whatever ids an embedder gives
    for path, id in zip(named, ("order 7", "a.b", ".c")):
        lab.store.submit(id, "export", {"table": "orders"}, now=lab.clock.now())
        path.touch()
    id = lab.submitted()
    lab.work()
    gone = lab.get(id).json()["result"]["file"]
    with lab.store.database.write() as db:
        db.execute("DELETE FROM jobs WHERE id = :id", {"id": id})
    left_by_a_killed_worker = lab.results / f".{gone}.part"
    left_by_a_killed_worker.touch()
    somebody_elses = lab.results / "notes.csv"
    somebody_elses.touch()
    remove_results(lab.store, lab.results)
    assert not (lab.results / gone).exists()
    assert not left_by_a_killed_worker.exists()
    assert somebody_elses.exists()
    assert all(path.exists() for path in named)
    with lab.store.database.write() as db:
        db.execute("DELETE FROM jobs WHERE id IN ('order 7', 'a.b', '.c')")
    remove_results(lab.store, lab.results)
    assert not any(path.exists() for path in named)
    assert lab.result(kept).status_code == 200


def test_a_result_whose_job_expires_while_it_is_looked_for_is_410(tmp_path: Path, monkeypatch: Any) -> None:
    with room(tmp_path) as lab:
        id = lab.submitted(EXPORT)
        lab.work()
        get, looks = lab.store.get, []

        def purged_after_the_first_look(*arguments: Any, **options: Any) -> Any:
            found = get(*arguments, **options)
            if not looks:
                pass_retention(lab)
                lab.store.purge(now=lab.clock.now())
                for file in lab.results.glob("*.csv"):
                    file.unlink()
            looks.append(found)
            return found

        monkeypatch.setattr(lab.store, "get", purged_after_the_first_look)
        assert problem(lab.result(id)) == "job-expired"
