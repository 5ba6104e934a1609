"""Rules H1, H2, H4 and H5: each error is a problem document that tells what to do and gives nothing away.

H3 (429) waits for rate limits.  Here is also what /openapi.json, /contract and /docs say, and that it is true.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jobslab import Contract
from jobslab.contract import FLAGS, RULES
from jobslab.errors import StoreError
from jobslab.job import KINDS, STATES, State
from jobslab.problems import PROBLEMS
from jobslab.settings import LAB
from jobslab.web.documents import ContractDocument, JobDocument, PageDocument
from jobslab.web.openapi import OPERATIONS
from tests.http.room import ALICE, BROKEN, EXPORT, WAIT, Room, bearer, problem, room

SECRET = "/var/secret/jobs.db"


def raises(wrong: Exception) -> Callable[..., Any]:
    def raising(*_: Any, **__: Any) -> Any:
        raise wrong

    return raising


def gone(lab: Room) -> httpx2.Response:
    id = lab.submitted()
    lab.work()
    for file in lab.results.glob("*.csv"):
        file.unlink()
    return lab.result(id)


def expired(lab: Room) -> httpx2.Response:
    id = lab.in_state(State.SUCCEEDED)
    lab.clock.advance(LAB.retention_seconds)
    return lab.get(id)


def reused(lab: Room) -> httpx2.Response:
    lab.post(EXPORT, key="k")
    return lab.post(WAIT, key="k")


def full(lab: Room) -> httpx2.Response:
    lab.store.settings = replace(LAB, queue_limit=0)
    return lab.post()


def broken_store(lab: Room) -> httpx2.Response:
    lab.store.get = raises(StoreError(f"{SECRET} is locked"))
    return lab.get("a" * 32)


def broken(lab: Room) -> httpx2.Response:
    lab.store.get = raises(RuntimeError(f"SELECT * FROM {SECRET}"))
    return lab.get("a" * 32)


# How each problem is come by.
COME_BY: dict[str, Callable[[Room], httpx2.Response]] = {
    "bad-json": lambda lab: lab.http.post("/jobs", content=b"{", headers={"Content-Type": "application/json"}),
    "bad-query": lambda lab: lab.http.get("/jobs?limit=0"),
    "bad-idempotency-key": lambda lab: lab.post(key='"'),
    "not-found": lambda lab: lab.http.get("/nothing/here"),
    "no-such-job": lambda lab: lab.get("a" * 32),
    "method-not-allowed": lambda lab: lab.http.put("/jobs"),
    "result-not-ready": lambda lab: lab.result(lab.submitted()),
    "job-failed": lambda lab: lab.result(lab.in_state(State.FAILED)),
    "job-cancelled": lambda lab: lab.result(lab.in_state(State.CANCELLED)),
    "job-expired": expired,
    "body-too-large": lambda lab: lab.http.post("/jobs", content=b"x" * (LAB.body_bytes + 1)),
    "unsupported-media-type": lambda lab: lab.http.post("/jobs", content=b"{}"),
    "invalid-job": lambda lab: lab.post({}),
    "key-reused": reused,
    "headers-too-large": lambda lab: lab.http.get("/jobs", headers={"X-Long": "x" * 64 * 1024}),
    "internal-error": broken,
    "result-missing": gone,
    "queue-full": full,
    "store-unavailable": broken_store,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_h1_each_problem_is_a_document_whose_type_is_explained(lab: Room, two: Room, name: str) -> None:
    response = two.http.get("/jobs") if name == "unauthorized" else COME_BY[name](lab)
    assert problem(response) == name
    told = response.json()
    assert (told["status"], told["title"]) == (PROBLEMS[name].status, PROBLEMS[name].title)
    assert response.headers["cache-control"] == "no-store"
    explained = lab.http.get(told["type"])
    assert (explained.status_code, explained.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert all(part in explained.text for part in (name, PROBLEMS[name].title, PROBLEMS[name].means, PROBLEMS[name].do))


def test_h1_a_type_that_is_none_is_not_explained(lab: Room) -> None:
    assert {problem(lab.http.get(f"/problems/{name}")) for name in ("nothing", "..%2f", "%00")} == {"not-found"}


@pytest.mark.parametrize("name", ["internal-error", "result-missing", "store-unavailable"])
def test_h2_a_fault_of_the_service_gives_nothing_away(lab: Room, name: str, caplog: pytest.LogCaptureFixture) -> None:
    response = COME_BY[name](lab)
    assert response.status_code >= 500
    assert not re.search(r"secret|SELECT|Traceback|\.py|/(tmp|var|home)|RuntimeError", response.text)
    trace = response.headers["x-correlation-id"]
    if name != "result-missing":
        assert trace in caplog.text  # there the operator finds what the caller was not told
        assert SECRET in caplog.text


def test_h2_the_error_of_a_job_whose_task_broke_gives_nothing_away(lab: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.tasks.table_names", raises(RuntimeError(f"SELECT * FROM {SECRET}")))
    id = lab.submitted()
    lab.work()
    told = lab.get(id)
    assert told.json()["state"] == State.FAILED
    assert not re.search(r"secret|SELECT|Traceback|\.py|RuntimeError", told.text)


# Dots alone never leave this client: test_service sends them.
TRICKS = ["%2e%2e", "..%2f..%2fetc%2fpasswd", "%00", "a%00b", "%0a", "a'--", "1%20OR%201=1", "%ff%fe", "%F0%9F%92%A9"]
TRICKS += ["a" * 65, "a" * 10_000, "*", "{id}", "%7Bid%7D", "-", "0", "null"]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick[:20])
def test_h4_an_id_that_can_not_be_one_is_404(lab: Room, trick: str) -> None:
    lab.submitted()
    before = lab.store.rows()
    for method, address in (("GET", ""), ("GET", "/result"), ("POST", "/cancel")):
        url = httpx2.URL("http://lab", raw_path=f"/jobs/{trick}{address}".encode())
        assert problem(lab.http.request(method, url)) in ("no-such-job", "not-found")
    assert lab.store.rows() == before


def test_h4_what_can_not_be_an_id_never_reaches_the_database(lab: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL takes no NUL in a text, and nobody has to read ids of a megabyte."""
    monkeypatch.setattr(lab.store, "get", raises(AssertionError("it was asked")))
    for id in ("%00", "a%00b", "%0a", "a%20b", "a'b", "%2e%2e", "a" * 65):
        assert problem(lab.get(id)) == "no-such-job"


ADDRESSES = {operation.path for operation in OPERATIONS}


@pytest.mark.parametrize("address", sorted(ADDRESSES))
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FROB"])
def test_h5_another_method_is_405_with_all_that_the_address_takes(lab: Room, address: str, method: str) -> None:
    offered = {operation.method for operation in OPERATIONS if operation.path == address}
    response = lab.http.request(method, address.format(id=lab.submitted(), name="no-such-job"))
    assert problem(response) == "method-not-allowed"
    assert set(response.headers["allow"].split(", ")) == offered | ({"HEAD"} if "GET" in offered else set())


# The correlation id


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_trace_follows_a_job_through_journal_log_and_responses(lab: Room, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    response = lab.post(traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    lab.work()
    assert response.headers["x-correlation-id"] == TRACE
    assert lab.get(response.json()["id"]).json()["correlation_id"] == TRACE
    assert {event.correlation_id for event in lab.store.events()} == {TRACE}
    assert re.search(rf"POST /jobs 202 .* correlation {TRACE}", caplog.text)


PARENT = "00f067aa0ba902b7"
BAD_PARENTS = [None, "", "00-x", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{PARENT}-01"]
BAD_PARENTS += [f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01-more", f"00-{TRACE}-{PARENT}"]


@pytest.mark.parametrize("parent", BAD_PARENTS)
def test_without_a_trace_that_can_be_read_a_job_gets_a_new_one(lab: Room, parent: str | None) -> None:
    told = lab.post(**({} if parent is None else {"traceparent": parent})).json()["correlation_id"]
    assert re.fullmatch("[0-9a-f]{32}", told)
    assert told != TRACE


def test_a_trace_of_a_later_version_is_taken(lab: Room) -> None:
    assert lab.post(traceparent=f"01-{TRACE}-00f067aa0ba902b7-01-more").json()["correlation_id"] == TRACE


def test_a_replay_keeps_the_trace_of_the_first_request(lab: Room) -> None:
    first = lab.post(key="k").json()["correlation_id"]
    assert lab.post(key="k", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01").json()["correlation_id"] == first


# What the service says of itself


@pytest.mark.parametrize("state", STATES)
def test_the_documents_are_what_openapi_publishes(lab: Room, state: str) -> None:
    id = lab.in_state(state)
    JobDocument.model_validate(lab.get(id).json())
    PageDocument.model_validate(lab.http.get("/jobs").json())
    ContractDocument.model_validate(lab.http.get("/contract").json())


@pytest.mark.parametrize(
    "contract", [Contract(), Contract.none(), *[Contract().without(flag) for flag in FLAGS]], ids=str
)
def test_the_contract_in_force_is_told_alike_everywhere(tmp_path: Path, contract: Contract) -> None:
    with room(tmp_path, contract=contract) as lab:
        told, document = lab.http.get("/contract").json(), lab.http.get("/openapi.json").json()
        assert told["contract"] == str(contract)
        assert told["flags"] == {flag: getattr(contract, flag) for flag in FLAGS}
        words = document["info"]["description"]
        for rule in RULES:
            assert (rule.why in words) == (rule.flag in contract.off)
        for state, meaning in STATES.items():
            assert told["states"][state]["means"] == meaning.says
            assert meaning.says in words
        assert document["components"]["schemas"]["State"]["enum"] == list(told["states"])
        schema = document["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["properties"]["kind"]["enum"] == told["kinds"] == list(KINDS)


def test_openapi_says_that_a_token_is_needed_where_one_is(lab: Room, two: Room) -> None:
    def secured(room: Room) -> set[str]:
        paths = room.app.openapi()["paths"]
        return {
            operation["operationId"]
            for path in paths.values()
            for operation in path.values()
            if "security" in operation
        }

    assert secured(lab) == set()
    assert secured(two) == {operation.endpoint for operation in OPERATIONS if operation.owned}


def test_openapi_speaks_of_our_problems_and_of_no_other(lab: Room) -> None:
    text = json.dumps(lab.app.openapi())
    assert "HTTPValidationError" not in text
    assert set(re.findall(r"\]\(/problems/([a-z-]+)\)", text)) == set(PROBLEMS) - {"unauthorized", "method-not-allowed"}


def test_the_page_for_people_needs_no_network_and_lists_every_operation(lab: Room) -> None:
    response = lab.http.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"<script|<link|<img|https?://|@import|url\(", response.text)
    for operation in OPERATIONS:
        assert f"<code>{operation.method} {operation.path}</code>" in response.text
    for address in set(re.findall(r'href="([^"]+)"', response.text)):
        assert lab.http.get(address).status_code == 200


def test_healthz_says_whether_the_jobs_can_be_reached(lab: Room) -> None:
    assert lab.http.get("/healthz").json() == {"status": "ok"}
    lab.store.waiting = raises(StoreError("it is locked"))
    assert problem(lab.http.get("/healthz")) == "store-unavailable"


def test_a_failed_job_may_be_watched_by_its_owner_only(two: Room) -> None:
    id = two.submitted(**bearer(ALICE))
    two.store.claim(id, "A", now=two.clock.now())
    two.store.fail(id, 1, "A", BROKEN, now=two.clock.now())
    assert two.get(id, **bearer(ALICE)).json()["error"] == BROKEN._asdict()
    assert problem(two.get(id)) == "unauthorized"
