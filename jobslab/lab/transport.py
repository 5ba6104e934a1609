"""How does a client talk to an app that has no socket, and how is an answer lost?  Two transports for httpx2.

A schedule says that a response is lost, not that the network is bad: so the request is carried out, the transaction
is committed, and only then is the answer thrown away.  That is the case which makes a retry dangerous.
"""

from typing import Any

import httpx2
from starlette.testclient import TestClient


class InProcess(httpx2.BaseTransport):
    """Runs the app in this process.  Entered, Starlette's test client keeps one event loop for all requests instead
    of starting one for each."""

    def __init__(self, app: Any) -> None:
        self._app = TestClient(app)
        self._app.__enter__()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._app.send(request)
        return httpx2.Response(response.status_code, headers=response.headers, content=response.content)

    def close(self) -> None:
        self._app.__exit__(None, None, None)


class Losing(httpx2.BaseTransport):
    """Another transport, whose next answer is lost after `lose_next` was set to True."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self.inner = inner
        self.lose_next = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self.inner.handle_request(request)
        if self.lose_next:
            self.lose_next = False
            raise httpx2.ReadTimeout("the answer was lost", request=request)
        return response

    def close(self) -> None:
        self.inner.close()
