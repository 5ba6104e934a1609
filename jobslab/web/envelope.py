"""What is around every exchange?  A correlation id, a line in the log, HEAD, and a last resort."""

import logging
import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobslab.problems import Refused, response
from jobslab.web import intake

log = logging.getLogger("jobslab.http")

CORRELATION = "X-Correlation-ID"


class Envelope:
    """The app with this around it; `make` is where a correlation id comes from when the request brings none."""

    def __init__(self, app: ASGIApp, make: Callable[[], str]) -> None:
        self.app = app
        self.make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace = intake.correlation_id(Headers(scope=scope).getlist("traceparent"), self.make)
        scope.setdefault("state", {})["correlation_id"] = trace
        began, status = time.perf_counter(), 0

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[CORRELATION] = trace
            await send(message)

        # HEAD is GET without the body (RFC 9110, section 9.3.2); the server leaves the body out.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self.guarded(inner, receive, marked)
        except ClientDisconnect:
            status = 499  # nobody is there to answer: what nginx logs for it
        except Exception:
            log.exception("an error that has no name, correlation %s", trace)
            if status:
                raise  # too late for another answer: the server breaks the connection off
            await response(Refused("internal-error", "this is ours to mend"))(inner, receive, marked)
        target = scope.get("raw_path", b"")[:200].decode("ascii", "replace")
        milliseconds = (time.perf_counter() - began) * 1000
        log.info("%s %s %d %.1f ms correlation %s", scope["method"], target, status, milliseconds, trace)

    async def guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app's answer, or a refusal where the headers are too large."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > intake.HEADER_BYTES:
            too_large = Refused("headers-too-large", f"the headers have at most {intake.HEADER_BYTES} bytes")
            await response(too_large)(scope, receive, send)
        else:
            await self.app(scope, receive, send)
