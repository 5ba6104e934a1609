"""Rules C1 to C16: what a GET says of a job, from its first moment to its last."""

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jobslab import Contract
from jobslab.errors import StoreError
from jobslab.job import STATES, TERMINAL, State
from jobslab.sweeper import sweep
from tests.http.room import BROKEN, EXPORT, WAIT, Room, problem, room

EVERY_STATE = pytest.mark.parametrize("state", STATES)


@EVERY_STATE
def test_c1_a_status_is_200_in_every_state(lab: Room, state: str) -> None:
    response = lab.get(lab.in_state(state))
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json()["state"] == state


def test_c2_looking_changes_nothing(lab: Room) -> None:
    for state in STATES:
        lab.in_state(state)
    before = (lab.store.rows(), lab.store.events())
    lab.clock.advance(lab.store.settings.lease_seconds * 2)  # so that a sweep would have something to do
    for row in lab.store.rows():
        for address in (f"/jobs/{row.id}", f"/jobs/{row.id}/result", f"/jobs/{row.id}/trace", "/jobs", "/contract"):
            lab.http.get(address)
            lab.http.head(address)
    assert (lab.store.rows(), lab.store.events()) == before


def test_c2_a_job_that_is_polled_much_ends_like_one_that_is_not(lab: Room) -> None:
    polled, left_alone = lab.submitted(), lab.submitted()
    for _ in range(100):
        lab.get(polled)
    lab.work()
    one, other = lab.get(polled).json(), lab.get(left_alone).json()
    assert [one[name] for name in ("state", "attempt")] == [other[name] for name in ("state", "attempt")]


@EVERY_STATE
def test_c3_each_state_is_published_and_done_says_whether_it_ends_there(lab: Room, state: str) -> None:
    told, published = lab.get(lab.in_state(state)).json(), lab.http.get("/contract").json()
    assert told["done"] is published["states"][state]["done"] is (state in TERMINAL)
    assert sorted(published["terminal"]) == sorted(TERMINAL)
    assert "not done" in published["unknown_state"]


def life(lab: Room, id: str) -> list[tuple[str, int]]:
    """State and attempt of a job that loses its worker once, is retried once, and succeeds, as polls see them."""
    seen = []

    def look() -> None:
        told = lab.get(id).json()
        seen.append((told["state"], told["attempt"]))

    look()
    lab.claim()
    look()
    lab.clock.advance(lab.store.settings.lease_seconds)
    sweep(lab.store, now=lab.clock.now())
    look()
    lab.claim()
    look()
    lab.report("retry", id, BROKEN)
    look()
    lab.claim()
    look()
    lab.report("succeed", id, {})
    look()
    return seen


def test_c4_a_job_goes_back_only_by_a_requeue_or_a_retry_and_its_attempt_never_falls(lab: Room) -> None:
    seen = life(lab, lab.submitted())
    assert [attempt for _, attempt in seen] == [0, 1, 1, 2, 2, 3, 3]
    assert [state for state, _ in seen] == ["QUEUED", "RUNNING"] * 3 + ["SUCCEEDED"]
    for (before, _), (after, _) in pairwise(seen):
        assert after in STATES[State(before)].successors


LATE_REPORTS: dict[str, tuple[Any, ...]] = {
    "progress": (0.5,),
    "succeed": ({"rows": 99},),
    "fail": (BROKEN,),
    "retry": (BROKEN,),
    "stop": (),
    "renew": (),
}


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_c5_what_is_done_never_changes(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    first = lab.get(id)
    for verb, arguments in LATE_REPORTS.items():
        assert not lab.report(verb, id, *arguments)
        lab.cancel(id)
        lab.clock.advance(1000)
        sweep(lab.store, now=lab.clock.now())
        lab.store.restart()
        again = lab.get(id)
        assert again.content == first.content
        assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("verb", LATE_REPORTS)
def test_c5_without_conditional_updates_a_late_report_changes_what_was_done(tmp_path: Path, verb: str) -> None:
    with room(tmp_path, contract=Contract().without("conditional_updates")) as broken:
        id = broken.in_state(State.FAILED if verb == "succeed" else State.SUCCEEDED)
        before = broken.get(id).headers["etag"]
        assert broken.report(verb, id, *LATE_REPORTS[verb])
        assert (broken.get(id).headers["etag"] != before) == (verb != "renew")


@EVERY_STATE
def test_c6_there_is_one_of_result_and_error_when_it_is_done_and_neither_before(lab: Room, state: str) -> None:
    expected = {"SUCCEEDED": {"result"}, "FAILED": {"error"}, "CANCELLED": {"error"}}.get(state, set())
    told = lab.get(lab.in_state(state)).json()
    assert set(told) & {"result", "error"} == expected
    if "error" in told:
        assert set(told["error"]) == {"type", "message"}


def test_c6_the_error_of_an_attempt_that_is_retried_is_not_the_jobs(lab: Room) -> None:
    id = lab.submitted()
    lab.claim()
    lab.report("retry", id, BROKEN)
    assert "error" not in lab.get(id).json()


@EVERY_STATE
def test_c7_retry_after_is_there_only_while_it_is_not_done(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    for response in (lab.get(id), lab.cancel(id)):
        assert ("retry-after" in response.headers) == (not response.json()["done"])


def test_c8_nobody_is_limited_for_polling(lab: Room) -> None:
    id = lab.submitted()
    assert {lab.get(id).status_code for _ in range(200)} == {200}


@EVERY_STATE
def test_c9_no_status_may_be_stored_on_its_way(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    addresses = (f"/jobs/{id}", f"/jobs/{id}/result", "/jobs", "/jobs/unknown", "/contract", "/healthz")
    assert {lab.http.get(address).headers["cache-control"] for address in addresses} == {"no-store"}


def test_c9_equal_tags_are_equal_documents_and_304_says_so(lab: Room) -> None:
    id = lab.submitted()
    first = lab.get(id)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    for header in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        same = lab.get(id, **{"If-None-Match": header})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        assert same.headers["retry-after"] == first.headers["retry-after"]
    lab.claim()
    changed = lab.get(id, **{"If-None-Match": tag})
    assert (changed.status_code, changed.headers["etag"] == tag) == (200, False)


@EVERY_STATE
def test_c10_the_times_are_in_order(lab: Room, state: str) -> None:
    id = lab.submitted()
    lab.clock.advance(1)
    if state != State.QUEUED:
        lab.claim()
        lab.clock.advance(0.5)
    if state in TERMINAL:
        lab.report({"SUCCEEDED": "succeed", "FAILED": "fail", "CANCELLED": "stop"}[state], id, *LAST_WORDS[state])
    told = lab.get(id).json()
    times = [told[name] for name in ("created_at", "started_at", "finished_at", "expires_at")]
    there = [time for time in times if time is not None]
    assert there == sorted(there)
    assert len(set(there)) == {"QUEUED": 1, "RUNNING": 2}.get(state, 4)
    assert all(time.endswith("Z") and len(time) == len("1970-01-01T00:00:00.000000Z") for time in there)


LAST_WORDS: dict[str, tuple[Any, ...]] = {"SUCCEEDED": ({},), "FAILED": (BROKEN,), "CANCELLED": ()}


def watched(lab: Room, monkeypatch: pytest.MonkeyPatch, id: str) -> list[dict[str, Any]]:
    """The status as it is after each report of progress of a job that is done now, and when it is over."""
    seen, progress = [lab.get(id).json()], lab.store.progress

    def report(*arguments: Any, **now: Any) -> Any:
        reply = progress(*arguments, **now)
        seen.append(lab.get(id).json())
        return reply

    with monkeypatch.context() as patched:
        patched.setattr(lab.store, "progress", report)
        lab.work()
    return [*seen, lab.get(id).json()]


def test_c11_the_progress_of_an_export_grows_and_is_whole_only_when_it_is_done(
    lab: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [told["progress"] for told in watched(lab, monkeypatch, lab.submitted())]
    assert seen[0] is None
    assert seen[1:] == sorted(seen[1:])
    assert len(set(seen)) == 5  # nothing yet, three chunks, done
    assert [progress == 1 for progress in seen] == [False] * (len(seen) - 1) + [True]


def test_c11_progress_never_falls_within_an_attempt_and_starts_anew_in_the_next(lab: Room) -> None:
    id = lab.submitted()
    lab.claim()
    lab.report("progress", id, 0.5)
    lab.report("progress", id, 0.2)
    assert lab.get(id).json()["progress"] == 0.5
    lab.report("retry", id, BROKEN)
    lab.claim()
    assert lab.get(id).json()["progress"] == 0


def test_c12_a_result_is_there_only_after_success(lab: Room) -> None:
    expected = {
        State.QUEUED: "result-not-ready",
        State.RUNNING: "result-not-ready",
        State.FAILED: "job-failed",
        State.CANCELLED: "job-cancelled",
    }
    for state, name in expected.items():
        response = lab.result(lab.in_state(state))
        assert (response.status_code, problem(response)) == (409, name)
        assert ("retry-after" in response.headers) == (name == "result-not-ready")


def test_c13_once_success_is_told_the_whole_result_is_there(lab: Room) -> None:
    id = lab.submitted()
    lab.work()
    told = lab.get(id).json()
    response = lab.http.get(told["links"]["result"])
    assert (response.status_code, response.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    assert int(response.headers["content-length"]) == len(response.content) == told["result"]["bytes"]
    assert hashlib.sha256(response.content).hexdigest() == told["result"]["sha256"]
    assert len(response.text.splitlines()) == told["result"]["rows"] + 1


def test_c13_a_job_that_makes_no_file_has_what_it_said_as_its_result(lab: Room) -> None:
    id = lab.submitted(WAIT)
    lab.work()
    assert lab.result(id).json() == lab.get(id).json()["result"] == {"seconds": 10, "chunks": 1}


def test_c13_a_result_whose_file_is_gone_is_not_sent_in_part(lab: Room) -> None:
    id = lab.submitted()
    lab.work()
    (lab.results / lab.get(id).json()["result"]["file"]).unlink()
    assert problem(lab.result(id)) == "result-missing"


@pytest.mark.parametrize("name", ["../secret.csv", "/etc/hostname", "a/../../secret.csv", ".."])
def test_c13_a_result_never_leads_out_of_its_directory(lab: Room, name: str) -> None:
    """Whoever wrote that into the row."""
    (lab.results.parent / "secret.csv").write_text("secret")
    id = lab.submitted()
    lab.claim()
    lab.report("succeed", id, {"file": name})
    assert problem(lab.result(id)) == "result-missing"


def test_c14_a_failed_job_is_told_with_200_and_a_typed_error(lab: Room) -> None:
    id = lab.submitted({"kind": "export", "params": {"table": "nosuch"}})
    lab.work()
    response = lab.get(id)
    assert (response.status_code, response.json()["state"]) == (200, State.FAILED)
    assert response.json()["error"]["type"] == "source table missing"


def test_c14_a_status_that_can_not_be_read_is_a_503_and_no_failed_job(
    lab: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = lab.submitted()

    def broken(*_: Any, **__: Any) -> Any:
        raise StoreError("/var/secret/jobs.db is locked")

    monkeypatch.setattr(lab.store, "get", broken)
    response = lab.get(id)
    assert (problem(response), response.headers["retry-after"]) == ("store-unavailable", "1")
    assert "secret" not in response.text


@EVERY_STATE
def test_c15_nothing_redirects(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    addresses = (f"/jobs/{id}", f"/jobs/{id}/", f"/jobs/{id}/result", "/jobs/", "/jobs", "/", "/docs/")
    assert not [address for address in addresses if 300 <= lab.http.get(address).status_code < 400]


def test_c16_all_readers_see_one_truth(lab: Room) -> None:
    id = lab.submitted()
    for step in (lambda: None, lab.claim, lambda: lab.report("progress", id, 0.5), lambda: lab.report("succeed", id)):
        step()
        assert len({lab.get(id).headers["etag"] for _ in range(5)}) == 1
    assert lab.http.get("/jobs").json()["jobs"] == [lab.get(id).json()]


def test_a_head_is_a_get_without_its_body(lab: Room) -> None:
    id = lab.submitted(EXPORT)
    for address in (f"/jobs/{id}", "/jobs", "/contract", "/docs", f"/jobs/{id}/result", "/jobs/unknown"):
        head, get = lab.http.head(address), lab.http.get(address)
        assert head.status_code == get.status_code
        assert {**head.headers, "x-correlation-id": ""} == {**get.headers, "x-correlation-id": ""}
