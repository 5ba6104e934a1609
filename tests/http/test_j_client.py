"""Rules J1 to J8: the client that never lies to its caller.  What the server answers is a script; time is handed in."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobslab.client import (
    BASE_SECONDS,
    CAP_SECONDS,
    EXPIRED,
    FAILURES,
    UNKNOWN,
    Accepted,
    Answer,
    JobClient,
    NoAnswer,
    Outcome,
    Rejected,
    RequestFailed,
    failure_of,
    outcome,
    retry_after,
)
from jobslab.clock import ManualClock
from jobslab.job import TERMINAL
from tests.http.room import EXPORT, Room

RUNNING = {"id": "job-1", "state": "RUNNING", "done": False, "attempt": 1}
SUCCEEDED = {"id": "job-1", "state": "SUCCEEDED", "done": True, "attempt": 1, "result": {}}


def says(job: Any, status: int = 200, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json=job, headers={name.replace("_", "-"): value for name, value in headers.items()})


class Script(httpx2.BaseTransport):
    """A server that gives these answers, the last one again and again; it notes who asked for what, and when."""

    def __init__(self, clock: ManualClock, *answers: httpx2.Response | Exception) -> None:
        self.clock, self.answers, self.n = clock, answers, 0
        self.asked: list[httpx2.Request] = []
        self.at: list[float] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        self.asked.append(request)
        self.at.append(self.clock.now())
        answer = self.answers[min(self.n, len(self.answers) - 1)]
        self.n += 1
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.at, self.at[1:])]


Make = Callable[..., tuple[JobClient, Script]]


@pytest.fixture
def against() -> Make:
    """A client of a server that answers so, and that server."""

    def make(
        *answers: httpx2.Response | Exception, token: str | None = None, seed: int = 1
    ) -> tuple[JobClient, Script]:
        clock = ManualClock(1_000_000)
        script = Script(clock, *answers)
        return JobClient("http://lab", transport=script, clock=clock, rng=random.Random(seed), token=token), script

    return make


# J1: Retry-After is a floor, then full jitter, a cap, a deadline


def test_j1_retry_after_is_a_floor_and_the_jitter_comes_on_top(against: Make) -> None:
    client, script = against(*[says(RUNNING, retry_after="7")] * 40, says(SUCCEEDED))
    client.wait("job-1", 10_000)
    assert len(script.gaps) == 40
    assert all(7 <= gap <= 7 + CAP_SECONDS for gap in script.gaps)
    assert len({round(gap, 6) for gap in script.gaps}) == 40  # no two clients come back together
    assert max(script.gaps) > 7 + CAP_SECONDS / 2


def test_j1_without_retry_after_the_waits_grow_to_a_cap_and_are_drawn_from_zero_up(against: Make) -> None:
    drawn = []
    for seed in range(50):
        client, script = against(*[says(RUNNING)] * 12, says(SUCCEEDED), seed=seed)
        client.wait("job-1", 10_000)
        drawn.append(script.gaps)
    for n, gaps in enumerate(zip(*drawn), 1):
        ceiling = min(CAP_SECONDS, BASE_SECONDS * 2**n)
        assert all(0 <= gap <= ceiling for gap in gaps)
        assert min(gaps) < ceiling / 4
        assert max(gaps) > ceiling * 3 / 4


@given(st.floats(0, 1000), st.lists(st.sampled_from(["0", "1", "30", None]), min_size=1, max_size=5))
def test_j1_no_wait_goes_beyond_the_deadline(deadline: float, floors: list[str | None]) -> None:
    clock = ManualClock()
    script = Script(clock, *[says(RUNNING, **({"retry_after": floor} if floor else {})) for floor in floors])
    told = JobClient("http://lab", transport=script, clock=clock, rng=random.Random(1)).wait("job-1", deadline)
    assert told.verdict == UNKNOWN
    assert told.seconds == clock.now() <= deadline + 1e-6
    assert told.polls == len(script.asked)


# J2: the deadline is UNKNOWN, which is not FAILED


def test_j2_at_the_deadline_the_outcome_is_unknown_with_what_was_seen(against: Make) -> None:
    client, script = against(says(RUNNING))
    told = client.wait("job-1", 60)
    assert (told.verdict, told.state, told.job) == (UNKNOWN, "RUNNING", RUNNING)
    assert (told.polls, told.seconds) == (len(script.asked), pytest.approx(60))


def test_j2_a_wait_is_taken_up_elsewhere_by_the_id_alone(lab: Room) -> None:
    accepted = lab.client().submit(EXPORT["kind"], EXPORT["params"])
    assert lab.client().wait(accepted, 1).verdict == UNKNOWN
    lab.work()
    for job in (accepted, accepted.id, accepted.url, f"/jobs/{accepted.id}"):
        assert lab.client().wait(job, 1).verdict == "SUCCEEDED"


def test_j2_a_server_that_asks_for_more_than_the_deadline_is_not_waited_for(against: Make) -> None:
    client, script = against(says(RUNNING, retry_after="3600"))
    assert (client.wait("job-1", 60).verdict, script.clock.now(), script.n) == (UNKNOWN, 1_000_000, 1)


# J3: a lost answer to a POST is followed by the same key


LOST = httpx2.ReadTimeout("lost")
ACCEPTED = says(RUNNING, 202, location="/jobs/job-1")


def keys(script: Script) -> list[str]:
    return [request.headers["idempotency-key"] for request in script.asked]


@pytest.mark.parametrize("key", [None, "mine"])
def test_j3_a_lost_answer_is_followed_by_the_same_request_with_the_same_key(against: Make, key: str | None) -> None:
    client, script = against(LOST, LOST, says({}, 503, retry_after="5"), says({}, 500), ACCEPTED)
    accepted = client.submit("export", {"table": "orders"}, key)
    assert (accepted.id, accepted.url) == ("job-1", "http://lab/jobs/job-1")
    assert set(keys(script)) == {f'"{key or accepted.key}"'}
    assert len({request.content for request in script.asked}) == 1
    assert script.n == 5
    assert script.gaps[2] >= 5


def test_j3_two_submits_have_two_keys(against: Make) -> None:
    client, script = against(ACCEPTED)
    client.submit("export")
    client.submit("export")
    assert len(set(keys(script))) == 2


def test_j3_at_the_deadline_the_key_is_told_so_that_it_can_be_used_again(against: Make) -> None:
    client, _ = against(LOST)
    with pytest.raises(NoAnswer, match="may be there or not: submit it again with the key mine") as lost:
        client.submit("export", key="mine", deadline_seconds=30)
    assert not lost.value.definite


def test_j3_what_surely_did_not_happen_is_said_to_be_so(against: Make) -> None:
    client, _ = against(httpx2.ConnectError("no"))
    with pytest.raises(NoAnswer, match="no job was made") as lost:
        client.submit("export", deadline_seconds=30)
    assert lost.value.definite


def test_j3_a_refusal_after_a_lost_answer_does_not_mean_that_nothing_happened(against: Make) -> None:
    client, script = against(LOST, says({"title": "Who are you?"}, 401))
    with pytest.raises(Rejected, match="Who are you") as refused:
        client.submit("export")
    assert (refused.value.definite, script.n) == (False, 2)


def test_j3_a_refusal_is_not_repeated(against: Make) -> None:
    client, script = against(says({"title": "The body is JSON, and no job", "detail": "no kind"}, 422))
    with pytest.raises(Rejected, match=r"no job: no kind \(HTTP 422\); no job was made"):
        client.submit("export")
    assert script.n == 1


# J4: an unknown state


def test_j4_a_state_that_is_not_known_is_not_done(against: Make) -> None:
    client, script = against(says({"state": "PAUSED"}))
    told = client.wait("job-1", 30)
    assert (told.verdict, told.state, told.seconds) == (UNKNOWN, "PAUSED", pytest.approx(30))
    assert script.n > 3


def test_j4_done_decides_where_it_is_said(against: Make) -> None:
    client, script = against(says({"state": "SUCCEEDED", "done": False}), says(SUCCEEDED))
    assert (client.wait("job-1", 30).verdict, script.n) == ("SUCCEEDED", 2)
    client, script = against(says({"state": "ARCHIVED", "done": True}))
    told = client.wait("job-1", 30)
    assert (told.verdict, told.state, script.n) == (UNKNOWN, "ARCHIVED", 1)  # waiting longer would not help


@pytest.mark.parametrize(
    "body", [{}, [], "SUCCEEDED", 1, None, {"done": "yes"}, {"state": 7}, {"state": ["SUCCEEDED"]}]
)
def test_j4_an_answer_that_says_nothing_is_no_end(body: Any) -> None:
    assert outcome(Answer(200, {}, body)) is None


# J5: 404, 410 and 5xx while polling


def test_j5_after_a_good_read_410_is_expired_and_404_is_unknown(against: Make) -> None:
    for status, verdict in ((410, EXPIRED), (404, UNKNOWN)):
        client, script = against(says(RUNNING), says({}, status))
        told = client.wait("job-1", 60)
        assert (told.verdict, told.state, script.n) == (verdict, "RUNNING", 2)


def test_j5_a_good_read_is_also_the_202(against: Make) -> None:
    client, _ = against(says({}, 404))
    told = client.wait(Accepted("job-1", "http://lab/jobs/job-1", "k", False, RUNNING), 60)
    assert (told.verdict, told.state) == (UNKNOWN, "RUNNING")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405])
def test_j5_a_question_that_is_refused_at_once_is_an_error_and_no_outcome(against: Make, status: int) -> None:
    client, script = against(says({"title": "No"}, status))
    with pytest.raises(Rejected, match=rf"No \(HTTP {status}\)"):
        client.wait("job-1", 60)
    assert script.n == 1


NO_ANSWER = (httpx2.ConnectError, httpx2.ReadTimeout, httpx2.RemoteProtocolError, httpx2.ReadError)
TROUBLE = [*(error("no") for error in NO_ANSWER), says({}, 500), says({}, 502), says({}, 429), says("<html>")]
TROUBLE += [says({"state": "FAILED", "done": True}, 503)]


def test_j5_trouble_while_polling_is_no_trouble_of_the_job(against: Make) -> None:
    client, script = against(says(RUNNING), *TROUBLE, says(SUCCEEDED))
    assert client.wait("job-1", 10_000).verdict == "SUCCEEDED"
    assert script.n == len(TROUBLE) + 2


@pytest.mark.parametrize("trouble", TROUBLE, ids=repr)
def test_j5_trouble_until_the_deadline_is_unknown(against: Make, trouble: httpx2.Response | Exception) -> None:
    client, _ = against(says(RUNNING), trouble)
    assert client.wait("job-1", 60)[:2] == (UNKNOWN, "RUNNING")
    client, _ = against(trouble)
    assert client.wait("job-1", 60)[:2] == (UNKNOWN, None)


# J6: 200 is not success


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("status", [200, 202])
def test_j6_the_state_is_read_and_not_http(against: Make, state: str, status: int) -> None:
    client, _ = against(says({"state": state, "done": True}, status))
    assert client.wait("job-1", 60).verdict == state


@pytest.mark.parametrize("status", [201, 203, 204, 206, 301, 400, 404, 410, 418, 500, 503])
def test_j6_no_other_status_brings_news_of_the_state(status: int) -> None:
    told = outcome(Answer(status, {}, SUCCEEDED), deadline_over=True)
    assert told
    assert told.verdict == (EXPIRED if status == 410 else UNKNOWN)


# J7: both forms of Retry-After


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("1", 1), ("007", 7), ("1000000000", 1e9), ("9" * 400, float("inf")),
        (format_datetime(datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC), usegmt=True), 60),
        # RFC 9110, section 5.6.7: a recipient reads all three ways to write a date.
        ("Friday, 02-Jan-26 03:05:05 GMT", 60), ("Fri Jan  2 03:05:05 2026", 60),
        ("Fri, 02 Jan 2015 03:05:05 GMT", 0),
        ("-1", None), ("abc", None), ("", None), ("1.5", None), ("1, 2", None), (" 1", None), ("+1", None),
        ("\N{ARABIC-INDIC DIGIT THREE}", None),
        ("Fri, 99 Jan 2026 03:05:05 GMT", None), ("Fri, 02 Jan 99999 03:05:05 GMT", None), (None, None),
    ],
)  # fmt: skip
def test_j7_both_forms_are_read_and_garbage_is_ignored(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, NOW) == seconds


@given(st.text())
def test_j7_no_text_breaks_it(text: str) -> None:
    told = retry_after(text, NOW)
    assert told is None or told >= 0


# J8: no credentials to another origin


def test_j8_the_token_goes_to_this_server_and_to_no_other(against: Make) -> None:
    elsewhere = [
        "http://other/jobs/job-1",
        "https://lab/jobs/job-1",
        "http://lab:81/jobs/job-1",
        "http://lab.other/j/1",
    ]
    for location in elsewhere:
        client, script = against(says(RUNNING, 202, location=location), says(SUCCEEDED), token="secret-0123456789")
        accepted = client.submit("export")
        assert accepted.url == location
        assert client.wait(accepted, 60).verdict == "SUCCEEDED"
        client.cancel(accepted.url)
        assert ["authorization" in request.headers for request in script.asked] == [True, False, False]


@pytest.mark.parametrize("location", ["/jobs/job-1", "http://lab/jobs/job-1", "jobs/job-1", "http://LAB:80/jobs/job-1"])
def test_j8_to_this_server_it_goes_however_the_address_is_written(against: Make, location: str) -> None:
    client, script = against(says(RUNNING, 202, location=location), says(SUCCEEDED), token="secret-0123456789")
    client.wait(client.submit("export"), 60)
    assert [request.headers.get("authorization") for request in script.asked] == ["Bearer secret-0123456789"] * 2
    assert str(script.asked[1].url) == "http://lab/jobs/job-1"


def test_j8_a_redirect_is_not_followed(against: Make) -> None:
    client, script = against(says({}, 307, location="http://other/jobs"), token="secret-0123456789")
    for ask in (lambda: client.submit("export"), lambda: client.wait("job-1", 60)):
        with pytest.raises(Rejected, match="points elsewhere"):
            ask()
    assert {request.url.host for request in script.asked} == {"lab"}


# The table of failures


REAL_ERRORS = [
    error for name in dir(httpx2) if isinstance(error := getattr(httpx2, name), type)
    and issubclass(error, (httpx2.RequestError, httpx2.InvalidURL))
]  # fmt: skip


@pytest.mark.parametrize("error", REAL_ERRORS, ids=lambda error: error.__name__)
def test_each_error_of_the_transport_has_a_row(error: type[Exception]) -> None:
    assert failure_of(error("so")) in FAILURES


def test_each_status_has_a_row() -> None:
    assert all(failure_of(status) in FAILURES for status in range(100, 1000))


def test_only_what_the_server_can_not_have_seen_or_has_refused_is_definite() -> None:
    definite = {row.sign.__name__ for row in FAILURES if row.definite and isinstance(row.sign, type)}
    assert definite == {
        "ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "InvalidURL", "LocalProtocolError",
    }  # fmt: skip
    assert {status for status in range(300, 600) if failure_of(status).definite} == set(range(300, 500))


def test_no_row_of_the_table_is_hidden_by_an_earlier_one() -> None:
    for row in FAILURES:
        sign = row.sign[0] if isinstance(row.sign, range) else row.sign("so")
        if row.sign != range(100, 1000):
            assert failure_of(sign) == row
    assert failure_of(600).definite is False


# Downloads


def test_a_download_is_the_whole_file_under_the_jobs_name(lab: Room, tmp_path: Path) -> None:
    id = lab.submitted()
    lab.work()
    path = lab.client().download(id, tmp_path)
    assert (path.name, path.read_bytes()) == (f"{id}.csv", lab.result(id).content)


def test_a_download_that_breaks_off_leaves_nothing(against: Make, tmp_path: Path) -> None:
    class Breaking(httpx2.SyncByteStream):
        def __iter__(self) -> Any:
            yield b"n,item\n"
            raise httpx2.ReadError("the line broke")

    client, script = against(says({}))
    script.handle_request = lambda request: httpx2.Response(200, stream=Breaking())  # type: ignore[method-assign]
    with pytest.raises(NoAnswer, match="the connection broke"):
        client.download("job-1", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("id", ["../../etc/passwd", "a/b", ".."])
def test_a_download_writes_into_its_directory_whatever_the_id(against: Make, tmp_path: Path, id: str) -> None:
    client, _ = against(says(SUCCEEDED))
    inside = tmp_path / "inside"
    inside.mkdir()
    path = client.download(id, inside)
    assert path.resolve().parent == inside.resolve()


def test_a_download_before_success_says_why_there_is_none(lab: Room, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="has no result yet"):
        lab.client().download(lab.submitted(), tmp_path)
    assert list(tmp_path.glob("*.csv")) == []


# Addresses


def test_an_address_that_is_none_is_one_sentence() -> None:
    for url in ("http://[", "http://lab:port", "ftp://lab", "lab"):
        with pytest.raises(RequestFailed) as wrong, JobClient(url) as client:
            client.get("job-1")
        assert wrong.value.definite


def test_the_outcome_of_the_202_itself_may_be_an_end() -> None:
    """A replay of a job that is done needs no poll."""
    assert outcome(Answer(202, {}, SUCCEEDED)) == Outcome("SUCCEEDED", "SUCCEEDED", SUCCEEDED, "the job is done")
