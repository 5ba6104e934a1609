"""Rules B1 to B14: what a key makes safe.  B2 is in test_races, and here on few threads; B4 and B6 of the draft: a key
is never required, and the order of names and white space do not matter."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobslab import Contract
from jobslab.client import quoted
from jobslab.lab.transport import Losing
from jobslab.settings import LAB
from jobslab.web import intake
from tests.http.room import ALICE, BOB, EXPORT, WAIT, Room, bearer, problem, room

VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))


def ids(room: Room) -> list[str]:
    return [job.id for job in room.store.rows()]


def test_b1_the_same_key_and_the_same_body_are_the_same_job(lab: Room) -> None:
    first, again = lab.post(key="k"), lab.post(key="k")
    assert again.status_code == 202
    assert again.headers["location"] == first.headers["location"]
    assert again.json() == first.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert lab.work() == [first.json()["id"]]


def test_b1_with_the_clause_off_the_same_key_makes_two_jobs(tmp_path: Path) -> None:
    with room(tmp_path, contract=Contract().without("idempotency_key")) as broken:
        assert broken.post(key="k").json()["id"] != broken.post(key="k").json()["id"]
        assert len(broken.work()) == 2


def test_b2_of_many_at_once_with_one_key_one_makes_the_job(lab: Room) -> None:
    barrier, answers = threading.Barrier(8), []

    def post() -> None:
        barrier.wait()
        answers.append(lab.post(key="k"))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {202}
    assert {answer.json()["id"] for answer in answers} == set(ids(lab))
    assert len(ids(lab)) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1


@pytest.mark.parametrize("other", [WAIT, {"kind": "export", "params": {"table": "other"}}, {"kind": "export"}])
def test_b3_the_same_key_with_another_body_is_422_and_the_first_job_is_untouched(lab: Room, other: Any) -> None:
    first = lab.post(key="k").json()
    assert problem(lab.post(other, key="k")) == "key-reused"
    assert lab.get(first["id"]).json() == first
    assert ids(lab) == [first["id"]]


BAD_KEYS = {
    "empty": "",
    "empty in quotes": '""',
    "256 characters": "k" * 256,
    "10,000 characters": "k" * 10_000,
    "a space": "a b",
    "a space in quotes": '"a b"',
    "a tab": "a\tb",
    "an open quote": '"abc',
    "a lone quote": '"',
    "a parameter": '"abc";a=1',
    "a wrong escape": '"a\\b"',
    "Latin-1": "schl\xfcssel",
}


@pytest.mark.parametrize("what", BAD_KEYS)
def test_b5_a_key_that_can_not_be_one_is_400(lab: Room, what: str) -> None:
    response = lab.http.post("/jobs", json=EXPORT, headers=[(b"Idempotency-Key", BAD_KEYS[what].encode("latin-1"))])
    assert problem(response) == "bad-idempotency-key"
    assert ids(lab) == []


def test_b5_the_header_may_be_there_once(lab: Room) -> None:
    twice = [("Idempotency-Key", "k"), ("Idempotency-Key", "k")]
    assert problem(lab.http.post("/jobs", json=EXPORT, headers=twice)) == "bad-idempotency-key"
    assert ids(lab) == []


@pytest.mark.parametrize("key", ["k", "k" * 255, "8e03978e-40d5-43dd-bc93-6894a57f9324", "a,b", "a\\b", 'a"b'])
def test_b5_in_quotes_and_bare_a_key_is_the_same(lab: Room, key: str) -> None:
    assert lab.post(key=key).json()["id"] == lab.post(key=quoted(key)).json()["id"]
    assert [row.idempotency_key for row in lab.store.rows()] == [key]


@given(st.text(alphabet=VISIBLE, min_size=1, max_size=255))
def test_b5_what_the_client_writes_in_quotes_the_service_reads_as_the_key(key: str) -> None:
    assert intake.idempotency_key([quoted(key)]) == key


def test_b6_the_order_of_names_and_white_space_do_not_matter(lab: Room) -> None:
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    bodies = [
        b'{"kind":"export","params":{"table":"orders","deep":{"a":1,"b":[1,2]}}}',
        b'{ "params" : {"deep": {"b": [1, 2],\n "a": 1}, "table": "orders"},\t"kind": "export" }',
        b'{"kind": "\\u0065xport", "params": {"table": "orders", "deep": {"a": 1, "b": [1, 2]}}}',
    ]
    assert len({lab.http.post("/jobs", content=body, headers=headers).json()["id"] for body in bodies}) == 1
    other = b'{"kind":"export","params":{"table":"orders","deep":{"a":1,"b":[2,1]}}}'
    assert problem(lab.http.post("/jobs", content=other, headers=headers)) == "key-reused"


def test_b7_a_replay_of_a_running_job_is_that_job_as_it_stands(lab: Room) -> None:
    id = lab.post(WAIT, key="k").json()["id"]
    lab.claim()
    lab.report("progress", id, 0.5)
    told = lab.post(WAIT, key="k").json()
    assert (told["id"], told["state"], told["progress"]) == (id, "RUNNING", 0.5)


@pytest.mark.parametrize("kind", ["export", "fail"])
def test_b8_a_replay_of_a_job_that_is_done_does_not_run_it_again(lab: Room, kind: str) -> None:
    job = {"kind": kind, "params": {"table": "orders", "type": "broken", "message": "it broke"}}
    id = lab.post(job, key="k").json()["id"]
    lab.work()
    before = lab.get(id).json()
    again = lab.post(job, key="k")
    assert again.json() == before
    assert before["done"]
    assert "retry-after" not in again.headers
    assert lab.work() == []


def test_b9_a_key_is_its_owners(two: Room) -> None:
    hers, his = (two.post(key="k", **bearer(token)) for token in (ALICE, BOB))
    assert hers.json()["id"] != his.json()["id"]
    assert "idempotency-replayed" not in his.headers
    assert two.post(WAIT, key="k2", **bearer(ALICE)).status_code == 202
    assert two.post(EXPORT, key="k2", **bearer(BOB)).status_code == 202


def test_b10_a_refused_request_burns_no_key(lab: Room) -> None:
    for bad in ({"kind": "nuke"}, {"kind": "export", "params": []}, []):
        assert lab.post(bad, key="k").status_code == 422
    accepted = lab.post(key="k")
    assert (accepted.status_code, "idempotency-replayed" in accepted.headers) == (202, False)


def test_b10_an_overload_burns_no_key(lab: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(lab.store, "waiting", lambda: LAB.queue_limit)
        assert problem(lab.post(key="k")) == "queue-full"
    assert "idempotency-replayed" not in lab.post(key="k").headers


def expiry(lab: Room, id: str) -> float:
    """Seconds from now until the job expires, as its row has it."""
    (row,) = [row for row in lab.store.rows() if row.id == id]
    assert row.expires_at
    return row.expires_at - lab.clock.now()


def test_b11_a_key_lives_until_its_job_expires(lab: Room) -> None:
    id = lab.post(key="k").json()["id"]
    lab.work()
    lab.clock.advance(expiry(lab, id) - 1)
    assert lab.post(key="k").json()["id"] == id
    lab.clock.advance(1)
    again = lab.post(key="k")
    assert (again.status_code, again.json()["id"] == id) == (202, False)
    assert "idempotency-replayed" not in again.headers


def test_b11_how_long_a_key_lives_is_published(lab: Room) -> None:
    told = lab.http.get("/contract").json()
    assert told["idempotency_key"]["lives"] == "until its job expires"
    assert told["limits"]["retention_seconds"] == LAB.retention_seconds


@pytest.mark.parametrize(
    ("contract", "remembered"), [(Contract(), True), (Contract().without("persistence"), False)], ids=str
)
def test_b12_keys_survive_a_restart_where_jobs_do(tmp_path: Path, contract: Contract, remembered: bool) -> None:
    path = str(tmp_path / "jobs.db")
    with room(tmp_path, contract=contract, path=path) as before:
        id = before.post(key="k").json()["id"]
    with room(tmp_path, contract=contract, path=path) as after:
        again = after.post(key="k")
        assert ("idempotency-replayed" in again.headers, again.json()["id"] == id) == (remembered, remembered)


def test_b13_other_keys_and_no_key_make_other_jobs(lab: Room) -> None:
    made = {lab.post(key=key).json()["id"] for key in ("a", "b", None, None)}
    assert len(made) == 4


@pytest.mark.parametrize(("contract", "jobs"), [(Contract(), 1), (Contract().without("idempotency_key"), 2)], ids=str)
def test_b14_after_a_lost_answer_the_retry_finds_the_job(tmp_path: Path, contract: Contract, jobs: int) -> None:
    with room(tmp_path, contract=contract) as lossy:
        transport = Losing(lossy.transport)
        transport.lose_next = True
        accepted = lossy.client(transport=transport).submit("export", {"table": "orders"})
        assert accepted.replayed == (jobs == 1)
        assert len(ids(lossy)) == jobs


def test_b5_each_visible_character_is_a_key_and_nothing_else_is(lab: Room) -> None:
    """Alone and bare; a lone double quote is an open string."""

    def accepted(code: int) -> bool:
        job = {"kind": "export", "params": {"code": code}}
        headers = [(b"Idempotency-Key", bytes([code]))]
        return lab.http.post("/jobs", json=job, headers=headers).status_code == 202

    keys = [chr(code) for code in range(1, 0x80) if code not in (10, 13) and accepted(code)]
    assert "".join(keys) == VISIBLE.replace('"', "")
