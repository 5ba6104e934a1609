"""How does a caller use the API without lying to itself?  A 202 means submitted; only the job's state means more.

A submit whose answer was lost is sent again with the same key, never with a new one.  Polling ends when the state is
terminal or when the deadline is over; at the deadline the outcome is UNKNOWN, which is not FAILED.
"""

import random
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2

from jobslab.clock import Clock, SystemClock
from jobslab.errors import JobslabError
from jobslab.job import TERMINAL

EXPIRED = "EXPIRED"
UNKNOWN = "UNKNOWN"


class Answer(NamedTuple):
    """One answer of the server: headers by their names in lower case, and the JSON of the body or None."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Outcome(NamedTuple):
    """How waiting ended."""

    verdict: str  # SUCCEEDED, FAILED, CANCELLED, EXPIRED or UNKNOWN
    state: str | None = None  # the last one seen
    job: dict[str, Any] | None = None  # the last status document seen
    polls: int = 0
    seconds: float = 0  # waited


class Failure(NamedTuple):
    """One way in which a request can go without an answer."""

    error: type[Exception]
    definite: bool  # it surely did not happen: the server can't have seen the whole request
    says: str


# In this order, the first that fits: subclasses stand before their parents.
FAILURES = (
    Failure(httpx2.ConnectError, True, "no connection could be made"),
    Failure(httpx2.ConnectTimeout, True, "no connection was made in time"),
    Failure(httpx2.PoolTimeout, True, "no connection was free in time"),
    Failure(httpx2.UnsupportedProtocol, True, "the address is neither http nor https"),
    Failure(httpx2.LocalProtocolError, True, "the request can't be written as HTTP"),
    Failure(httpx2.InvalidURL, True, "the address can't be read"),
    Failure(httpx2.WriteTimeout, False, "the request could not be sent in time"),
    Failure(httpx2.WriteError, False, "the connection broke while the request was sent"),
    Failure(httpx2.ReadTimeout, False, "no answer came in time"),
    Failure(httpx2.ReadError, False, "the connection broke before the answer"),
    Failure(httpx2.RemoteProtocolError, False, "the connection was closed before a whole answer"),
    Failure(httpx2.RequestError, False, "no answer could be read"),
)


class NoAnswer(JobslabError):
    """A request without an answer; `definite`: it surely did not happen."""

    def __init__(self, method: str, url: str, failure: Failure) -> None:
        super().__init__(f"{method} {url}: {failure.says}")
        self.definite = failure.definite


def failure_of(error: Exception) -> Failure:
    """The row of FAILURES for what httpx2 raised."""
    return next(failure for failure in FAILURES if isinstance(error, failure.error))


class JobClient:
    """A caller of the API at `url`.  Safe to use from one thread; `close` it, or use `with`."""

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
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=url, transport=transport, timeout=timeout_seconds, headers=headers)
        self.clock = clock or SystemClock()
        self.rng = rng or random.Random()

    def __enter__(self) -> "JobClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def ask(self, method: str, path: str, *, json: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One HTTP exchange, whatever its status.  Raises NoAnswer."""
        try:
            response = self.http.request(method, path, json=json, headers=headers)
        except (httpx2.RequestError, httpx2.InvalidURL) as wrong:
            raise NoAnswer(method, path, failure_of(wrong)) from wrong
        return Answer(response.status_code, {k.lower(): v for k, v in response.headers.items()}, body_of(response))

    def submit_once(self, kind: str, params: dict[str, Any] | None = None, key: str | None = None) -> Answer:
        """POST the job, once.  Raises NoAnswer, after which the job may be there or not: see its `definite`."""
        headers = {"Idempotency-Key": key} if key is not None else {}
        return self.ask("POST", "/jobs", json={"kind": kind, "params": params or {}}, headers=headers)

    def submit(self, kind: str, params: dict[str, Any] | None = None, key: str | None = None) -> Answer:
        """POST the job with a key, and with the same key again while there is no answer."""
        key = key or secrets.token_hex(16)
        for _ in range(3):
            try:
                return self.submit_once(kind, params, key)
            except NoAnswer as wrong:
                lost = wrong
        raise lost

    def get(self, id: str) -> Answer:
        return self.ask("GET", f"/jobs/{id}")

    def cancel(self, id: str) -> Answer:
        return self.ask("POST", f"/jobs/{id}/cancel")

    def list(self) -> Answer:
        """The first page of the caller's jobs, newest first."""
        return self.ask("GET", "/jobs")


def body_of(response: httpx2.Response) -> Any:
    """The JSON of the body, or None."""
    try:
        return response.json()
    except ValueError:
        return None


def outcome(last: Answer | None, deadline_over: bool = False, seen: dict[str, Any] | None = None) -> Outcome | None:
    """What the client may say after its last poll; None: poll again.

    `last` is None where there was no answer, `seen` is the status document that an earlier answer carried.  HTTP's 200
    tells that the status could be read, never that the job went well; `done` decides where it is said, and a state
    that is not known is not done.
    """
    news = last.body if last and last.status in (200, 202) and isinstance(last.body, dict) else None
    job = news or seen
    state = job.get("state") if job else None
    if news and news.get("done", state in TERMINAL):
        return Outcome(state if state in TERMINAL else UNKNOWN, state, job)
    if last and last.status == 410:
        return Outcome(EXPIRED, state, job)
    if deadline_over or (last and last.status == 404):
        return Outcome(UNKNOWN, state, job)
    return None
