"""Rules A1 to A11: what a POST may answer, and what it may store.  A4 is in test_races."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobslab.job import KINDS, State
from jobslab.settings import LAB
from tests.http.room import EXPORT, WAIT, Room, problem, room

JSON = {"Content-Type": "application/json"}


def deep(levels: int) -> bytes:
    return b'{"kind": "export", "params": {"a": %b%b}}' % (b"[" * levels, b"]" * levels)


# What is wrong with it: the body, its media type, the problem.
BAD: dict[str, tuple[bytes, str, str]] = {
    "no body": (b"", "application/json", "bad-json"),
    "broken JSON": (b'{"kind": "export"', "application/json", "bad-json"),
    "not UTF-8": (b'{"kind": "export", "params": {"a": "\xff"}}', "application/json", "bad-json"),
    "a byte order mark": (b'\xef\xbb\xbf{"kind": "export"}', "application/json", "bad-json"),
    "a key twice": (b'{"kind": "export", "kind": "fail"}', "application/json", "bad-json"),
    "a key twice deep inside": (
        b'{"kind": "export", "params": {"a": {"b": 1, "b": 2}}}',
        "application/json",
        "bad-json",
    ),
    "NaN": (b'{"kind": "export", "params": {"a": NaN}}', "application/json", "bad-json"),
    "Infinity": (b'{"kind": "export", "params": {"a": -Infinity}}', "application/json", "bad-json"),
    "a number out of range": (b'{"kind": "export", "params": {"a": 1e400}}', "application/json", "bad-json"),
    "400 digits": (b'{"kind": "export", "params": {"a": ' + b"9" * 400 + b"}}", "application/json", "bad-json"),
    "100,000 digits": (b'{"kind": "export", "params": {"a": ' + b"9" * 100_000 + b"}}", "application/json", "bad-json"),
    "65 deep": (deep(64), "application/json", "bad-json"),
    "10,000 deep": (deep(10_000), "application/json", "bad-json"),
    "100,000 deep": (deep(100_000), "application/json", "bad-json"),
    "a NUL byte": (b'{"kind": "export\x00"}', "application/json", "bad-json"),
    "an escaped NUL": (b'{"kind": "export", "params": {"a": "\\u0000"}}', "application/json", "bad-json"),
    "a NUL in a name": (b'{"kind": "export", "params": {"\\u0000": 1}}', "application/json", "bad-json"),
    "half a surrogate pair": (b'{"kind": "export", "params": {"a": "\\ud800"}}', "application/json", "bad-json"),
    "half a pair as kind": (b'{"kind": "\\udfff"}', "application/json", "bad-json"),
    "a list": (b"[]", "application/json", "invalid-job"),
    "null": (b"null", "application/json", "invalid-job"),
    "no kind": (b"{}", "application/json", "invalid-job"),
    "an unknown kind": (b'{"kind": "nuke"}', "application/json", "invalid-job"),
    "a kind that is a number": (b'{"kind": 1}', "application/json", "invalid-job"),
    "a kind that is a list": (b'{"kind": ["export"]}', "application/json", "invalid-job"),
    "params that are a list": (b'{"kind": "export", "params": []}', "application/json", "invalid-job"),
    "params that are null": (b'{"kind": "export", "params": null}', "application/json", "invalid-job"),
    "a field too many": (b'{"kind": "export", "parms": {}}', "application/json", "invalid-job"),
    "a very long kind": (b'{"kind": "%b"}' % (b"x" * 500_000), "application/json", "invalid-job"),
    "over 1 MiB": (
        b'{"kind": "export", "params": {"a": "%b"}}' % (b"x" * 1024 * 1024),
        "application/json",
        "body-too-large",
    ),
    "a form": (b"kind=export", "application/x-www-form-urlencoded", "unsupported-media-type"),
    "text": (b'{"kind": "export"}', "text/plain", "unsupported-media-type"),
    "no media type": (b'{"kind": "export"}', "", "unsupported-media-type"),
    "another charset": (b'{"kind": "export"}', "application/json; charset=utf-16", "unsupported-media-type"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a1_a_valid_post_is_202_whatever_the_work(lab: Room, kind: str) -> None:
    statuses = {lab.post({"kind": kind, "params": {"seconds": 0}}).status_code for _ in range(13)}
    lab.work()
    assert statuses | {lab.post({"kind": kind}).status_code} == {202}


def test_a1_a_replay_of_a_job_that_is_done_is_202_too(lab: Room) -> None:
    lab.post(key="k")
    lab.work()
    assert lab.post(key="k").status_code == 202


def test_a2_the_202_names_one_address_of_this_server(lab: Room) -> None:
    response = lab.post()
    (location,) = response.headers.get_list("location")
    assert response.headers.get_list("content-location") == [location]
    assert location.startswith("/jobs/")
    assert lab.http.get(response.url.join(location)).status_code == 200


def test_a3_body_and_address_agree(lab: Room) -> None:
    response = lab.post()
    told = response.json()
    assert response.headers["location"] == f"/jobs/{told['id']}" == told["links"]["self"]
    assert lab.http.get(response.headers["location"]).json() == told


def test_a5_the_answer_does_not_wait_for_the_work(lab: Room) -> None:
    """No worker is there, and the job would take an hour."""
    before = lab.clock.now()
    assert lab.post({"kind": "wait", "params": {"seconds": 3600}}).json()["state"] == State.QUEUED
    assert lab.clock.now() == before


def test_a6_the_202_holds_no_result_while_the_work_is_not_done(lab: Room) -> None:
    told = lab.post(WAIT).json()
    assert (told["state"], told["done"]) == (State.QUEUED, False)
    assert not {"result", "error"} & set(told)
    assert "result" not in told["links"]


@pytest.mark.parametrize("what", BAD)
def test_a7_bad_input_is_refused_now_and_nothing_is_stored(lab: Room, what: str) -> None:
    content, media_type, expected = BAD[what]
    headers = {"Content-Type": media_type} if media_type else {}
    response = lab.http.post("/jobs", content=content, headers=headers)
    assert problem(response) == expected
    assert len(response.content) < 2000  # a long input does not come back
    assert lab.store.rows() == ()
    assert lab.store.events() == ()


def test_a7_a_body_is_read_no_further_than_its_limit(lab: Room) -> None:
    """Sent in chunks, without a length that could be asked before."""
    sent = 0

    def chunks() -> Any:
        nonlocal sent
        for _ in range(64):
            sent += 65536
            yield b" " * 65536

    assert problem(lab.http.post("/jobs", content=chunks(), headers=JSON)) == "body-too-large"
    assert lab.store.rows() == ()


def test_a7_what_is_just_within_the_limits_is_accepted(lab: Room) -> None:
    size = LAB.body_bytes - len(b'{"kind": "export", "params": {"a": ""}}')
    full = b'{"kind": "export", "params": {"a": "%b"}}' % (b"x" * size)
    assert len(full) == LAB.body_bytes
    for content in (
        full,
        deep(62),
        b'{"kind": "export", "params": {"a": 1e308, "b": -0.0, "c": 12345678901234567890}}',
    ):
        assert lab.http.post("/jobs", content=content, headers=JSON).status_code == 202


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
def test_a8_json_in_utf8_is_taken_however_it_is_written(lab: Room, media_type: str) -> None:
    assert (
        lab.http.post("/jobs", content=b'{"kind": "export"}', headers={"Content-Type": media_type}).status_code == 202
    )


def test_a8_another_media_type_is_415_and_says_what_would_be_taken(lab: Room) -> None:
    response = lab.http.post("/jobs", content=b"{}", headers={"Content-Type": "text/json"})
    assert (response.status_code, response.headers["accept"]) == (415, "application/json")
    assert lab.http.post("/jobs", content=b"{}", headers=JSON | {"Content-Encoding": "gzip"}).status_code == 415


def test_a9_a_full_queue_is_503_with_retry_after_and_nothing_is_stored(tmp_path: Path) -> None:
    with room(tmp_path, settings=replace(LAB, queue_limit=3)) as full:
        accepted = [full.submitted() for _ in range(3)]
        response = full.post()
        assert (problem(response), response.headers["retry-after"]) == ("queue-full", "1")
        assert {row.id for row in full.store.rows()} == set(accepted)
        assert sorted(full.work()) == sorted(accepted)  # each 202 was kept
        assert full.post().status_code == 202


def test_a9_a_replay_is_answered_before_the_queue_is_asked(tmp_path: Path) -> None:
    with room(tmp_path, settings=replace(LAB, queue_limit=1)) as full:
        first = full.post(key="k")
        again = full.post(key="k")
        assert (again.status_code, again.headers["location"]) == (202, first.headers["location"])
        assert problem(full.post({"kind": "fail"}, key="k")) == "key-reused"
        assert problem(full.post(key="another")) == "queue-full"


def test_a10_retry_after_is_one_whole_number_of_seconds(lab: Room) -> None:
    (value,) = lab.post().headers.get_list("retry-after")
    assert 1 <= int(value) <= 3600
    assert value == str(int(value))


@pytest.mark.parametrize("prefer", ["respond-async", "wait=1", "respond-async, wait=100000", "made-up; a=b", ""])
def test_a11_a_preference_changes_nothing_and_is_not_said_to_be_applied(lab: Room, prefer: str) -> None:
    response = lab.http.post("/jobs", json=WAIT, headers={"Prefer": prefer})
    assert (response.status_code, response.json()["state"]) == (202, State.QUEUED)
    assert "preference-applied" not in response.headers


def test_a_job_without_params_has_none(lab: Room) -> None:
    assert lab.post({"kind": "export"}).status_code == 202
    assert [row.params for row in lab.store.rows()] == ["{}"]


def test_the_example_of_the_openapi_document_is_accepted(lab: Room) -> None:
    content = lab.app.openapi()["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert content["example"] == EXPORT
    assert lab.post(content["example"]).status_code == 202
