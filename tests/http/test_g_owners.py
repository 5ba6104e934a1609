"""Rules G1 to G6: who may see what.  A foreign id is answered like one that does not exist."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jobslab.clock import unguessable
from jobslab.job import STATES, State
from jobslab.web.tokens import SHORTEST, Tokens, TokensError, hashed, read_tokens
from tests.http.room import ALICE, BOB, EXPORT, Room, bearer, problem, room

TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}

OWNED = {
    "submit": ("POST", "/jobs"),
    "list": ("GET", "/jobs"),
    "status": ("GET", "/jobs/{id}"),
    "result": ("GET", "/jobs/{id}/result"),
    "cancel": ("POST", "/jobs/{id}/cancel"),
    "trace": ("GET", "/jobs/{id}/trace"),
}
BY_ID = [name for name, (_, path) in OWNED.items() if "{id}" in path]


def ask(two: Room, name: str, id: str, headers: Any) -> httpx2.Response:
    method, path = OWNED[name]
    body = EXPORT if name == "submit" else None
    return two.http.request(method, path.format(id=id), json=body, headers=headers)


WRONG = {
    "nothing": {},
    "another scheme": {"Authorization": "Basic YTpi"},
    "an unknown token": bearer("x" * 32),
    "half a token": bearer(ALICE[:-1]),
    "a token and more": bearer(ALICE + "x"),
    "an empty token": {"Authorization": "Bearer "},
    "two headers": [("Authorization", f"Bearer {ALICE}"), ("Authorization", f"Bearer {BOB}")],
    "a token in the query": {},
}


@pytest.mark.parametrize("name", OWNED)
@pytest.mark.parametrize("what", WRONG)
def test_g1_without_a_token_every_endpoint_is_401_and_says_what_it_wants(two: Room, name: str, what: str) -> None:
    id = two.in_state(State.SUCCEEDED, **bearer(ALICE))
    before = two.store.rows()
    response = ask(two, name, id, WRONG[what])
    assert problem(response) == "unauthorized"
    challenge = response.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="jobslab"')
    assert ("invalid_token" in challenge) == bool(WRONG[what])
    assert two.store.rows() == before


def test_g1_a_body_is_not_read_before_its_sender_is_known(two: Room) -> None:
    def never() -> Any:
        pytest.fail("the body was read")
        yield b""

    assert problem(two.http.post("/jobs", content=b"x" * 2_000_000)) == "unauthorized"
    assert problem(two.http.post("/jobs", content=b"{", headers=bearer("x" * 32))) == "unauthorized"


@pytest.mark.parametrize("header", [f"bearer {ALICE}", f"BEARER {ALICE}", f"Bearer   {ALICE}"])
def test_g1_the_scheme_is_read_in_any_case(two: Room, header: str) -> None:
    assert two.http.get("/jobs", headers={"Authorization": header}).status_code == 200


@pytest.mark.parametrize("address", ["/contract", "/healthz", "/docs", "/openapi.json", "/problems/no-such-job"])
def test_g1_what_belongs_to_nobody_needs_no_token(two: Room, address: str) -> None:
    assert two.http.get(address).status_code == 200


@pytest.mark.parametrize("name", BY_ID)
@pytest.mark.parametrize("state", STATES)
def test_g2_another_owners_job_is_404_and_stays_as_it_is(two: Room, name: str, state: str) -> None:
    id = two.in_state(state, **bearer(ALICE))
    before = (two.store.rows(), two.store.events())
    assert problem(ask(two, name, id, bearer(BOB))) == "no-such-job"
    assert (two.store.rows(), two.store.events()) == before


@pytest.mark.parametrize("name", BY_ID)
@pytest.mark.parametrize("state", [*STATES, "EXPIRED"])
def test_g3_a_foreign_id_is_like_a_random_one_to_the_byte(two: Room, name: str, state: str) -> None:
    foreign = two.in_state(State.SUCCEEDED if state == "EXPIRED" else state, **bearer(ALICE))
    if state == "EXPIRED":
        two.clock.advance(two.store.settings.retention_seconds)
    random = unguessable()
    answers = [ask(two, name, id, bearer(BOB) | TRACE) for id in (foreign, random)]
    one, other = ((a.status_code, str(a.headers), a.text.replace(foreign, random)) for a in answers)
    assert one == other
    assert problem(answers[0]) == "no-such-job"


def test_g4_ids_are_random_and_of_no_order() -> None:
    ids = [unguessable() for _ in range(1000)]
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)
    assert len(set(ids)) == 1000
    rising = sum(a < b for a, b in pairwise(ids))
    assert 350 < rising < 650  # 500 of 999 where there is no order; all of them in a sequence
    assert min(len({id[place] for id in ids}) for place in range(32)) == 16  # no place stands still


def test_g4_the_service_names_jobs_so(lab: Room) -> None:
    assert re.fullmatch("[0-9a-f]{32}", lab.submitted())


def test_g5_a_list_has_only_the_callers_jobs_newest_first(two: Room) -> None:
    made: dict[str, list[str]] = {ALICE: [], BOB: []}
    for n in range(10):
        token = (ALICE, BOB)[n % 2]
        made[token].insert(0, two.submitted(**bearer(token)))
        two.clock.advance(1)
    for token, ids in made.items():
        assert [job["id"] for job in two.http.get("/jobs", headers=bearer(token)).json()["jobs"]] == ids


@pytest.mark.parametrize("limit", [1, 3, 7, 8, 200])
def test_g5_its_pages_hold_each_job_once(lab: Room, limit: int) -> None:
    """Also where many were made in one moment, and while more are made."""
    ids = {lab.submitted() for _ in range(7)}
    lab.clock.advance(0.1)
    page, seen = f"/jobs?limit={limit}", []
    while page:
        told = lab.http.get(page).json()
        assert len(told["jobs"]) <= limit
        seen += [job["id"] for job in told["jobs"]]
        page = told["next"]
        lab.submitted()
    assert sorted(seen) == sorted(ids)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=-1", "limit=a", "limit=1e9", "before=", "before=x", "before=1,a/b", "before=nan,a"],
)
def test_g5_a_query_that_can_not_be_read_is_400(lab: Room, query: str) -> None:
    assert problem(lab.http.get(f"/jobs?{query}")) == "bad-query"


def test_g5_a_page_that_begins_at_anothers_job_shows_nothing_of_it(two: Room) -> None:
    foreign = two.submitted(**bearer(ALICE))
    told = two.http.get(f"/jobs?before={two.clock.now() + 1},{foreign}", headers=bearer(BOB)).json()
    assert told == {"jobs": [], "next": None}


def test_g6_who_can_start_a_job_can_track_it(two: Room) -> None:
    id = two.submitted(**bearer(ALICE))
    two.work()
    for name in OWNED:
        assert ask(two, name, id, bearer(ALICE)).status_code in (200, 202)


# The file of tokens


def token_file(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_file_of_tokens_names_owners(tmp_path: Path) -> None:
    text = f"# who may come\n\nalice {ALICE}\n  bob\t{BOB}  \nalice {'a' * SHORTEST}\n"
    tokens = read_tokens(token_file(tmp_path, text))
    owners = [tokens.owner([f"Bearer {token}"]) for token in (ALICE, BOB, "a" * SHORTEST, "b" * SHORTEST)]
    assert owners == ["alice", "bob", "alice", None]


def test_no_token_is_kept_as_it_is(tmp_path: Path) -> None:
    tokens = read_tokens(token_file(tmp_path, f"alice {ALICE}\n"))
    assert tokens == Tokens(((hashed(ALICE), "alice"),))
    assert ALICE not in repr(tokens)


BAD_FILES = {
    "short": (f"alice {'x' * (SHORTEST - 1)}\n", "line 1 of .* is not `owner token`"),
    "no token": ("alice\n", "line 1 of"),
    "three words": (f"# a line\nalice {ALICE} more\n", "line 2 of"),
    "nothing": ("\n# nobody\n", "holds no token"),
    "one twice": (f"alice {ALICE}\nbob {ALICE}\n", "one token twice"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_of_tokens_that_can_not_be_read_is_refused_in_a_sentence(tmp_path: Path, what: str) -> None:
    text, says = BAD_FILES[what]
    with pytest.raises(TokensError, match=says) as refused:
        read_tokens(token_file(tmp_path, text))
    assert not [word for word in text.split() if len(word) > 8 and word in str(refused.value)]  # no secret


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o666])
def test_a_file_of_tokens_that_all_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(TokensError, match="chmod 600"):
        read_tokens(token_file(tmp_path, f"alice {ALICE}\n", mode))


def test_a_file_of_tokens_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokensError, match="No such file"):
        read_tokens(tmp_path / "tokens")
    with pytest.raises(TokensError, match="Is a directory"):
        read_tokens(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "binary").chmod(0o600)
    with pytest.raises(TokensError, match="UTF-8"):
        read_tokens(tmp_path / "binary")


def test_all_tokens_are_compared_whichever_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In constant time each, and without an end at the first that fits."""
    from jobslab.web import tokens as module

    compared: list[bytes] = []
    real = module.hmac.compare_digest
    monkeypatch.setattr(module.hmac, "compare_digest", lambda a, b: (compared.append(a), real(a, b))[1])
    with room(tmp_path, tokens=read_tokens(token_file(tmp_path, f"alice {ALICE}\nbob {BOB}\n"))) as two:
        for token in (ALICE, BOB, "x" * 32):
            compared.clear()
            two.http.get("/jobs", headers=bearer(token))
            assert compared == [hashed(ALICE), hashed(BOB)]
