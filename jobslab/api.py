"""What does the service promise over HTTP?  `create_app` answers with the app; an endpoint decides a status, no rule.

Every endpoint that takes an id checks the owner.  A GET changes nothing: sweeping and purging are the server's.
The rules, and the sources that they come from, have one test each in tests/http.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Annotated, Any

from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from pydantic.json_schema import SkipJsonSchema
from starlette.background import BackgroundTask
from starlette.routing import Match

from jobslab.clock import Clock, unguessable
from jobslab.errors import BadKey, BadSubmission, KeyReused, StoreError
from jobslab.job import Expired, Job, State
from jobslab.problems import PROBLEMS, Refused, explanation, response
from jobslab.stores import Store
from jobslab.telling import document
from jobslab.web import documents, intake
from jobslab.web.envelope import Envelope
from jobslab.web.openapi import OPERATIONS, add, finished
from jobslab.web.page import page
from jobslab.web.tokens import Tokens
from jobslab.where import where

log = logging.getLogger("jobslab.http")

POLL_SECONDS = 1  # what Retry-After asks of a client that waits
PAGE = 50  # jobs of a list, where the caller does not say
LONGEST_PAGE = 200
CHUNK_BYTES = 256 * 1024  # of a result on its way

RETRY_LATER = {"Retry-After": str(POLL_SECONDS)}
NO_RESULT = {
    State.QUEUED: ("result-not-ready", "is queued"),
    State.RUNNING: ("result-not-ready", "is running"),
    State.FAILED: ("job-failed", "failed"),
    State.CANCELLED: ("job-cancelled", "was cancelled"),
}


def create_app(
    store: Store,
    clock: Clock | None = None,
    ids: Callable[[], str] = unguessable,
    *,
    tokens: Tokens | None = None,
    results: Path | None = None,
    traces: Callable[[], str] = unguessable,
) -> FastAPI:
    """The app over this store.

    `clock=None`: the store's own time, as in service.  `tokens=None`: the lab's one owner, without a token.  `results`
    is the directory of the tasks' files.  `ids` and `traces` make the ids of jobs and of traces.
    """
    service = Service(store, clock, ids, results)
    about: Any = {"title": "jobslab", "version": "1", "description": documents.description(store)}
    app = FastAPI(**about, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.tokens = tokens
    app.state.body_bytes = store.settings.body_bytes
    for operation in OPERATIONS:
        add(app, operation, getattr(service, operation.endpoint), store.kinds)
    document = cache(lambda: finished(get_openapi(**about, routes=app.routes)))
    app.openapi = document  # type: ignore[method-assign]
    app.add_api_route("/docs", lambda: HTMLResponse(page(document())), include_in_schema=False)
    for error, handler in HANDLERS.items():
        app.add_exception_handler(error, handler)
    app.add_middleware(Envelope, make=traces)
    return app


# What every request is asked


async def owner(request: Request) -> str:
    """Who asks.  Without tokens there is one owner, the lab's."""
    tokens: Tokens | None = request.app.state.tokens
    if tokens is None:
        return "lab"
    headers = request.headers.getlist("authorization")
    told = tokens.owner(headers)
    if told is None:
        # RFC 6750, section 3: an error code only where a token was sent.
        error = ', error="invalid_token"' if headers else ""
        challenge = {"WWW-Authenticate": f'Bearer realm="jobslab"{error}'}
        raise Refused("unauthorized", "a bearer token that this service knows is needed", challenge)
    return told


OptionalText = str | SkipJsonSchema[None]  # a text that may be left out; it is never null

Owner = Annotated[str, Depends(owner)]


async def body(request: Request, owner: Owner) -> bytes:
    """The body, after its sender is known."""
    return await intake.body(request, request.app.state.body_bytes)


async def key(
    request: Request,
    idempotency_key: Annotated[
        OptionalText,
        Header(
            description="1 to 255 visible ASCII characters, in double quotes or bare; makes a repeated POST safe",
            json_schema_extra={"pattern": intake.KEY_PATTERN},
        ),
    ] = None,
) -> str | None:
    return intake.idempotency_key(request.headers.getlist("idempotency-key"))


@dataclass(frozen=True)
class Service:
    """The endpoints, over one store."""

    store: Store
    clock: Clock | None
    ids: Callable[[], str]
    results: Path | None

    def now(self) -> float | None:
        return None if self.clock is None else self.clock.now()

    def mine(self, id: str, owner: str) -> Job:
        """The job, if there is one with this id and it is the caller's; else refused alike, to the byte but the id."""
        found = self.store.get(id, now=self.now()) if intake.ID.match(id) else None
        if found is None or found.owner != owner:
            raise Refused("no-such-job", f"there is no job {id!r}, or it is not yours")
        if isinstance(found, Expired):
            raise Refused("job-expired", f"the job {id!r} expired at {documents.moment(found.expired_at)}")
        return found

    def submit(
        self,
        request: Request,
        owner: Owner,
        key: Annotated[str | None, Depends(key)],
        raw: Annotated[bytes, Depends(body)],
    ) -> Response:
        """Accept a job, or find the one that the caller's idempotency key has made already.

        202 always, also when the work is trivial: what came of the job is told by its status alone.
        """
        new = intake.new_job(request, raw)
        self.check_queue(owner, key)
        trace = request.state.correlation_id
        try:
            submitted = self.store.submit(
                self.ids(), new.kind, new.params, owner, key, correlation_id=trace, now=self.now()
            )
        except BadKey as wrong:
            raise Refused("bad-idempotency-key", str(wrong)) from wrong
        except BadSubmission as wrong:
            raise Refused("invalid-job", str(wrong)) from wrong
        except KeyReused as wrong:
            raise Refused("key-reused", str(wrong)) from wrong
        address = f"/jobs/{submitted.job.id}"
        replayed = {"Idempotency-Replayed": "true"} if submitted.replayed else {}
        return status(submitted.job, 202, {"Location": address, "Content-Location": address} | replayed)

    def check_queue(self, owner: str, key: str | None) -> None:
        """Raises Refused where too many jobs wait, unless the key has a job: a replay adds nothing to the queue."""
        limit = self.store.settings.queue_limit
        if self.store.waiting() < limit:
            return
        if key is None or self.store.find(owner, key, now=self.now()) is None:
            raise Refused("queue-full", f"{limit} jobs are waiting", RETRY_LATER)

    def jobs(
        self,
        owner: Owner,
        limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="jobs of a page")] = PAGE,
        before: Annotated[
            OptionalText,
            Query(
                description="where the page begins, as `next` says it",
                json_schema_extra={"pattern": intake.POSITION.pattern},
            ),
        ] = None,
    ) -> Response:
        """The caller's own jobs, newest first, in pages."""
        found = self.store.list(owner, limit=limit + 1, before=intake.position(before), now=self.now())
        return as_json(documents.of_page(found, limit))

    def job(
        self,
        request: Request,
        id: str,
        owner: Owner,
        if_none_match: Annotated[
            OptionalText, Header(description="an `ETag`: 304 while the status is the same")
        ] = None,
    ) -> Response:
        """The job's status: 200 in every state, failed included."""
        told = status(self.mine(id, owner))
        if {told.headers["ETag"], "*"} & tags(request.headers.getlist("if-none-match")):
            kept = {
                name: told.headers[name] for name in ("etag", "cache-control", "retry-after") if name in told.headers
            }
            return Response(None, 304, kept)
        return told

    def result(self, id: str, owner: Owner) -> Response:
        """The result, whole: the file that the job made, or what it said in JSON where it made none."""
        job = self.mine(id, owner)
        if job.state != State.SUCCEEDED:
            problem, said = NO_RESULT[State(job.state)]
            raise Refused(problem, f"the job {id!r} {said}", {} if job.done else RETRY_LATER)
        told = json.loads(job.result or "null")
        name = told.get("file") if isinstance(told, dict) else None
        return as_json(told) if name is None else self.file(job, name, owner)

    def file(self, job: Job, name: str, owner: str) -> Response:
        """The file as a stream.  It is open before the answer begins, so that a purge can't cut it off."""
        file = opened(self.results, name)
        if file is None:
            self.mine(job.id, owner)  # the job may have expired in between
            log.error("the result of the job %s is gone", job.id)
            raise Refused("result-missing", f"the file of the job {job.id!r} is gone")
        headers = {
            "Content-Length": str(os.fstat(file.fileno()).st_size),
            "Content-Disposition": f'attachment; filename="{Path(name).name}"',
            "Cache-Control": "no-store",
        }
        return StreamingResponse(chunks(file), 200, headers, "text/csv; charset=utf-8", BackgroundTask(file.close))

    def trace(self, id: str, owner: Owner) -> Response:
        """Where the job is: what is known of it, what is not, and what to do next.

        It looks at the result itself too: whether its file is there, whole, and of as many rows as the job says.
        """
        self.mine(id, owner)
        told = where(self.store, id, self.results, asker=owner, now=self.now())
        if told.job is None:
            self.mine(id, owner)  # it has expired in between
        return as_json(documents.of_trace(document(told, owner=True)))

    def cancel(self, id: str, owner: Owner) -> Response:
        """Ask the job to stop.

        A queued job is CANCELLED at once and never runs; a running one is when its work has stopped; one that is done
        does not change. May be repeated.
        """
        self.mine(id, owner)
        self.store.cancel(id, owner, now=self.now())
        return status(self.mine(id, owner))

    def contract(self) -> Response:
        """The states, the flags in force, how long jobs and keys are kept, and the limits."""
        return as_json(documents.of_contract(self.store))

    def healthz(self) -> Response:
        """Whether the service can reach its jobs."""
        self.store.waiting()
        return as_json({"status": "ok"})

    def problem(self, name: Annotated[str, InPath(json_schema_extra={"enum": list(PROBLEMS)})]) -> Response:
        """What a type of problem means and what to do about it, as text."""
        if name not in PROBLEMS:
            raise Refused("not-found", "there is no problem of this name")
        return PlainTextResponse(explanation(name))


# How an answer is written


def as_json(value: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """RFC 9110, section 15.1: a 200 may be stored unless it says no, and a stored status would be an old one."""
    headers = {"Cache-Control": "no-store"} | (headers or {})
    return Response(json.dumps(value), code, headers, "application/json")


def status(job: Job, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The status document; its ETag is a hash of its bytes, so that equal tags are equal documents."""
    told = as_json(documents.of_job(job), code, headers)
    told.headers["ETag"] = f'"{hashlib.sha256(told.body).hexdigest()[:32]}"'
    if not job.done:
        told.headers.update(RETRY_LATER)
    return told


def tags(headers: list[str]) -> set[str]:
    """The entity tags of If-None-Match, compared weakly (RFC 9110, section 13.1.2)."""
    return {tag.strip().removeprefix("W/") for header in headers for tag in header.split(",")}


def opened(results: Path | None, name: str) -> IO[bytes] | None:
    """The file of a result, whose name is never a path out of the directory; None: it is not there."""
    try:
        return (results / Path(name).name).open("rb") if results else None
    except OSError:
        return None


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


# What becomes of an error


async def refused(request: Request, wrong: Any) -> Response:
    return response(wrong)


async def bad_query(request: Request, wrong: Any) -> Response:
    first = wrong.errors()[0]
    return response(Refused("bad-query", f"{first['loc'][-1]}: {first['msg']}"))


async def not_found(request: Request, wrong: Any) -> Response:
    return response(Refused("not-found", "nothing is at this address"))


async def not_allowed(request: Request, wrong: Any) -> Response:
    """Starlette names the methods of one route; RFC 9110, section 10.2.1, wants those of the address."""
    methods = {
        m for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE for m in route.methods
    }
    allow = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))
    return response(Refused("method-not-allowed", f"this address takes {allow}", {"Allow": allow}))


async def no_store(request: Request, wrong: Any) -> Response:
    log.error("%s, correlation %s", wrong, request.state.correlation_id)
    return response(Refused("store-unavailable", "the database can't be used just now", RETRY_LATER))


HANDLERS: dict[Any, Any] = {
    Refused: refused,
    RequestValidationError: bad_query,
    404: not_found,
    405: not_allowed,
    StoreError: no_store,
}
