"""How does a caller use the API without lying to itself?  A 202 means submitted; only the job's state means more.

A submit whose answer was lost is sent again with the same key, never with a new one.  Polling ends when the job is
done, by what its status says and not by HTTP's own code, or when the deadline is over; then the outcome is UNKNOWN,
which is not FAILED: ask again later, from any machine, by the job's id.
"""

import os
import random
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2

from jobslab.clock import Clock, SystemClock
from jobslab.errors import JobslabError
from jobslab.job import TERMINAL

EXPIRED = "EXPIRED"
UNKNOWN = "UNKNOWN"

BASE_SECONDS = 0.25  # the wait before try n + 1 is drawn from 0 to base * 2 ** n (full jitter) ...
CAP_SECONDS = 30  # ... and is never longer than this; what the server asks for with Retry-After comes on top
LAST_TRY_SECONDS = 1  # what a poll may take at least, though the deadline be nearer


class Answer(NamedTuple):
    """One answer of the server: headers by their names in lower case, and the JSON of the body or None."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Accepted(NamedTuple):
    """A job that the server has accepted."""

    id: str
    url: str
    key: str
    replayed: bool  # an earlier try, or somebody else with this key, had made it
    job: dict[str, Any]  # its status document


class Outcome(NamedTuple):
    """How waiting ended."""

    verdict: str  # SUCCEEDED, FAILED, CANCELLED, EXPIRED or UNKNOWN
    state: str | None = None  # the last one seen
    job: dict[str, Any] | None = None  # the last status document seen
    why: str = ""  # for people
    polls: int = 0
    seconds: float = 0  # waited


# The ways in which a request can fail


class Failure(NamedTuple):
    """One way: what httpx2 raises or the statuses that the server answers with, and what follows from it."""

    sign: type[Exception] | range
    definite: bool  # it surely did not happen: the server had no whole request, or says that it refused it
    again: bool  # the same request may succeed later
    says: str


# The first row that fits holds: subclasses stand before their parents, one status before its class.
# fmt: off
FAILURES = (
    Failure(httpx2.ConnectError, True, True, "no connection could be made"),
    Failure(httpx2.ConnectTimeout, True, True, "no connection was made in time"),
    Failure(httpx2.PoolTimeout, True, True, "no connection was free in time"),
    Failure(httpx2.UnsupportedProtocol, True, False, "the address is neither http:// nor https://"),
    Failure(httpx2.InvalidURL, True, False, "the address can't be read"),
    Failure(httpx2.LocalProtocolError, True, False, "the request can't be written as HTTP"),
    Failure(httpx2.WriteTimeout, False, True, "the request could not be sent in time"),
    Failure(httpx2.WriteError, False, True, "the connection broke while the request was sent"),
    Failure(httpx2.ReadTimeout, False, True, "no answer came in time"),
    Failure(httpx2.ReadError, False, True, "the connection broke before the answer"),
    Failure(httpx2.RemoteProtocolError, False, True, "the connection ended before a whole answer"),
    Failure(httpx2.RequestError, False, True, "no answer could be read"),
    Failure(range(300, 400), True, False, "the server points elsewhere, which is not followed"),
    Failure(range(408, 409), True, True, "the server did not get the whole request in time"),
    Failure(range(425, 426), True, True, "the server takes no early requests"),
    Failure(range(429, 430), True, True, "the server wants fewer requests"),
    Failure(range(400, 500), True, False, "the server refused the request"),
    Failure(range(500, 600), False, True, "the server has a fault"),
    Failure(range(100, 1000), False, False, "the server gave an answer that this client does not know"),
)
# fmt: on


def failure_of(sign: Exception | int) -> Failure:
    """The row for what httpx2 raised, or for a status."""

    def fits(row: Failure) -> bool:
        if isinstance(row.sign, range):
            return isinstance(sign, int) and sign in row.sign
        return isinstance(sign, row.sign)

    return next(row for row in FAILURES if fits(row))


class RequestFailed(JobslabError):
    """A request without the answer that it was for.  `definite`: it surely did not happen."""

    def __init__(self, says: str, definite: bool, again: bool = False, answer: Answer | None = None) -> None:
        super().__init__(says)
        self.definite = definite
        self.again = again
        self.answer = answer


class NoAnswer(RequestFailed):
    """A request without any answer."""


class Rejected(RequestFailed):
    """A request that was answered with something else than it was for."""


def no_answer(method: str, url: httpx2.URL, wrong: Exception) -> NoAnswer:
    row = failure_of(wrong)
    return NoAnswer(f"{method} {url}: {row.says}", row.definite, row.again)


def rejected(answer: Answer) -> Rejected:
    """What the server's answer says went wrong, in one sentence."""
    row, problem = failure_of(answer.status), answer.body if isinstance(answer.body, dict) else {}
    title, detail = (str(problem.get(name, "")) for name in ("title", "detail"))
    said = ": ".join(part for part in (title, detail) if part) or row.says
    return Rejected(f"{said} (HTTP {answer.status})", row.definite, row.again, answer)


class JobClient:
    """A caller of the API at `url`.  For one thread; `close` it, or use `with`."""

    def __init__(
        self,
        url: str,
        *,
        transport: httpx2.BaseTransport | None = None,
        token: str | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        timeout_seconds: float = 10,
    ) -> None:
        try:
            self.base = httpx2.URL(url.rstrip("/"))
        except httpx2.InvalidURL as wrong:
            raise no_answer("GET", httpx2.URL(), wrong) from wrong
        # A proxy that is set for the outside world knows no server of this machine.
        outside = self.base.host not in ("127.0.0.1", "localhost", "::1")
        self.http = httpx2.Client(transport=transport, timeout=timeout_seconds, trust_env=outside)
        self.timeout_seconds = timeout_seconds
        self.token = token
        self.clock = clock or SystemClock()
        self.rng = rng or random.Random()

    def __enter__(self) -> "JobClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    # One exchange each

    def ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """One HTTP exchange, whatever its status; `path` may be a whole address.  Raises NoAnswer."""
        url, timeout = self.address(path), timeout_seconds or self.timeout_seconds
        told = self.identified(url, headers)
        try:
            return answer_of(self.http.request(method, url, json=json, headers=told, timeout=timeout))
        except (httpx2.RequestError, httpx2.InvalidURL) as wrong:
            raise no_answer(method, url, wrong) from wrong

    def submit_once(self, kind: str, params: dict[str, Any] | None = None, key: str | None = None) -> Answer:
        """POST the job, once.  Raises NoAnswer, after which the job may be there or not: see its `definite`."""
        headers = {"Idempotency-Key": quoted(key)} if key is not None else {}
        return self.ask("POST", "/jobs", json={"kind": kind, "params": params or {}}, headers=headers)

    def get(self, job: str) -> Answer:
        """The status of a job, by its id or its address."""
        return self.ask("GET", path_of(job))

    def cancel(self, job: str) -> Answer:
        return self.ask("POST", f"{path_of(job)}/cancel")

    def list(self, page: str = "/jobs") -> Answer:
        """A page of the caller's jobs, newest first; `page` is what the page before says as `next`."""
        return self.ask("GET", page)

    # What takes more than one

    def submit(
        self, kind: str, params: dict[str, Any] | None = None, key: str | None = None, *, deadline_seconds: float = 60
    ) -> Accepted:
        """The accepted job.  While no answer comes, the same request is sent again with the same key.

        Raises Rejected, or at the deadline NoAnswer; `definite` then speaks of all tries together.
        """
        key = key or secrets.token_hex(16)
        began, tries, definite = self.clock.elapsed(), 0, True
        while True:
            tries += 1
            try:
                answer = self.submit_once(kind, params, key)
                if answer.status in (200, 201, 202):
                    return self.accepted(answer, key)
                wrong: RequestFailed = rejected(answer)
            except NoAnswer as lost:
                wrong = lost
            definite = definite and wrong.definite
            pause = self.pause(tries, wrong.answer, deadline_seconds - (self.clock.elapsed() - began))
            if not wrong.again or pause is None:
                raise type(wrong)(submit_failed(str(wrong), definite, key), definite, wrong.again, wrong.answer)
            self.clock.sleep(pause)

    def wait(
        self,
        job: str | Accepted,
        deadline_seconds: float = 600,
        seen: Callable[[dict[str, Any]], None] = lambda job: None,
    ) -> Outcome:
        """Poll until the job is done or the deadline is over; `seen` is told each status document.

        `job` is what `submit` returned, or an id or an address: waiting can be taken up anywhere.  Raises Rejected
        where the server refuses the question itself: a wrong token, or an id that it does not know at the first poll.
        """
        address, document = (job.url, job.job) if isinstance(job, Accepted) else (path_of(job), None)
        began, polls = self.clock.elapsed(), 0
        while True:
            left = deadline_seconds - (self.clock.elapsed() - began)
            last = self.poll(address, document, max(left, LAST_TRY_SECONDS))
            polls += 1
            waited = self.clock.elapsed() - began
            document = news(last) or document
            if news(last) and document:
                seen(document)
            pause = self.pause(polls, last, deadline_seconds - waited)
            told = outcome(last, pause is None, document)
            if told:
                return told._replace(polls=polls, seconds=waited)
            self.clock.sleep(pause or 0)

    def download(self, job: str, directory: Path = Path()) -> Path:
        """The path of the job's result, which is there whole or not at all.  Raises Rejected, NoAnswer, OSError."""
        url = self.address(f"{path_of(job)}/result")
        try:
            with self.http.stream("GET", url, headers=self.identified(url)) as response:
                if response.status_code != 200:
                    response.read()
                    raise rejected(answer_of(response))
                suffix = ".json" if response.headers.get("content-type") == "application/json" else ".csv"
                return saved(response, directory / f"{path_of(job).rsplit('/', 1)[1]}{suffix}")
        except httpx2.RequestError as wrong:
            raise no_answer("GET", url, wrong) from wrong

    # How

    def poll(self, address: str, document: dict[str, Any] | None, left_seconds: float) -> Answer | None:
        """The answer; None: there was none this time.  A fault of the server or of the line says nothing of the job."""
        try:
            answer = self.ask("GET", address, timeout_seconds=min(left_seconds, self.timeout_seconds))
        except NoAnswer as wrong:
            if not wrong.again:
                raise
            return None
        if answer.status < 300 or answer.status == 410 or failure_of(answer.status).again:
            return answer
        if answer.status == 404 and document:
            return answer
        raise rejected(answer)

    def pause(self, tries: int, last: Answer | None, left_seconds: float) -> float | None:
        """Seconds until the next try: what the server asks for at least, and full jitter above it, so that many
        clients who were told the same do not come back together.  None: there is no time for another try."""
        asked = retry_after(last.headers.get("retry-after"), self.clock.now()) if last else None
        floor = asked or 0
        if floor >= left_seconds:
            return None
        jitter = self.rng.uniform(0, min(CAP_SECONDS, BASE_SECONDS * 2 ** min(tries, 16)))
        return floor + min(jitter, left_seconds - floor)

    def accepted(self, answer: Answer, key: str) -> Accepted:
        """What the answer to a submit says of the job."""
        job = answer.body if isinstance(answer.body, dict) else {}
        location = answer.headers.get("location", "")
        id = str(job.get("id") or location.rstrip("/").rsplit("/", 1)[-1])
        if not id:
            raise Rejected("the server accepted the job and does not say which it is", False, answer=answer)
        url = self.address("/jobs").join(location or f"/jobs/{quote(id, safe='')}")
        return Accepted(id, str(url), key, "idempotency-replayed" in answer.headers, job)

    def address(self, path: str) -> httpx2.URL:
        """The whole address.  Raises NoAnswer."""
        try:
            return httpx2.URL(path) if "://" in path else httpx2.URL(f"{self.base}{path}")
        except httpx2.InvalidURL as wrong:
            raise no_answer("GET", self.base, wrong) from wrong

    def identified(self, url: httpx2.URL, headers: Mapping[str, str] | None = None) -> dict[str, str]:
        """The headers with the token, if the address is of this client's own server: a Location may name another."""
        ours = (url.scheme, url.host, url.port) == (self.base.scheme, self.base.host, self.base.port)
        return {**(headers or {}), **({"Authorization": f"Bearer {self.token}"} if self.token and ours else {})}


# What the client knows, and what it may say


def outcome(last: Answer | None, deadline_over: bool = False, seen: dict[str, Any] | None = None) -> Outcome | None:
    """What may be said after a poll; None: poll again.

    `last` is None where there was no answer, `seen` is the status document that was seen last.
    """
    job = news(last) or seen
    state = str(job["state"]) if job and "state" in job else None
    if news(last) and job and is_done(job):
        why = "the job is done" if state in TERMINAL else "the job is done, in a state that this client does not know"
        return Outcome(state if state in TERMINAL else UNKNOWN, state, job, why)
    if last and last.status == 410:
        return Outcome(EXPIRED, state, job, "the job was over, and its time of retention is over too")
    if last and last.status == 404:
        return Outcome(UNKNOWN, state, job, "the server does not know the job any more")
    if deadline_over:
        return Outcome(UNKNOWN, state, job, "the deadline was over before the job was")
    return None


def news(last: Answer | None) -> dict[str, Any] | None:
    """The status document, if the answer has one.  200 and 202 are both what services answer while a job is alive."""
    told = last.body if last and last.status in (200, 202) else None
    return told if isinstance(told, dict) else None


def is_done(job: dict[str, Any]) -> bool:
    """`done` decides where it is said; where it is not, a state that is not known is not done."""
    done = job.get("done")
    return done if isinstance(done, bool) else str(job.get("state")) in TERMINAL


def retry_after(text: str | None, now: float) -> float | None:
    """Seconds that the server asks to wait, of either form (RFC 9110, section 10.2.3); None: none that can be read."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    return None


def path_of(job: str) -> str:
    """The address of a job by its id; an address stays as it is."""
    return job.rstrip("/") if "/" in job else f"/jobs/{quote(job, safe='')}"


def quoted(key: str) -> str:
    """The key as a string of RFC 9651, which is what the header's draft asks for."""
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def answer_of(response: httpx2.Response) -> Answer:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


def saved(response: httpx2.Response, path: Path) -> Path:
    """The path, once all of the body is in the file: it gets its name last."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def submit_failed(says: str, definite: bool, key: str) -> str:
    if definite:
        return f"{says}; no job was made"
    return f"{says}; the job may be there or not: submit it again with the key {key}, which can't make a second one"
