"""What is on the other side when a schedule runs over HTTP?  The API in a process of its own, and a remote control.

    python -m jobslab.lab.server

It reads one line of JSON from its input (contract, path, now), prints its port, and serves until its input ends, so
that it never outlives the lab.  It neither works nor sweeps: those steps are the schedule's.  Under /lab/ its clock is
advanced, and its next answer is made late.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import Message, Receive, Scope, Send

from jobslab.api import create_app
from jobslab.clock import ManualClock, counted
from jobslab.contract import Contract
from jobslab.settings import LAB
from jobslab.stores import Store, open_store

LATE_SECONDS = 0.6  # three times as long as the lab's client waits


class LateAnswer:
    """An app whose next answer leaves late once that is asked for: it is there, committed, and held back."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.late_next = False
        self.held = 0  # answers that were held back so far

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        late, self.late_next = self.late_next, False

        async def held(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.held += 1
                await asyncio.sleep(LATE_SECONDS)
            await send(message)

        await self.app(scope, receive, held if late else send)


def lab_api(store: Store, clock: ManualClock) -> FastAPI:
    """The API as the lab starts it: in lab time, and nothing in it is random.  Ids go on where the table ends."""
    store.start_server()
    ids = counted(job.id for job in store.rows())
    traces = counted((event.correlation_id for event in store.events() if event.correlation_id), "trace")
    return create_app(store, clock, ids, traces=traces)


def remote_controlled(contract: Contract, path: str, now: float) -> Starlette:
    """The API on the store at `path`, and what the lab needs beside it."""
    clock = ManualClock(now)
    api = LateAnswer(lab_api(open_store(contract, path, settings=LAB), clock))

    async def advance(request: Request) -> JSONResponse:
        clock.advance((await request.json())["units"])
        return JSONResponse({"now": clock.now()})

    async def late(request: Request) -> JSONResponse:
        if request.method == "POST":
            api.late_next = True
        return JSONResponse({"held": api.held})

    control = [Route("/lab/advance", advance, methods=["POST"]), Route("/lab/late", late, methods=["GET", "POST"])]
    return Starlette(routes=[*control, Mount("/", api)])


def listening() -> socket.socket:
    """A socket on a free port.  Its protocol is named: else asyncio does not set TCP_NODELAY, and a request takes
    44 ms."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    made.listen()
    return made


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    import uvicorn  # here, since a run in one process needs the rest of this file and not this

    what = json.loads(sys.stdin.readline() or "null")
    if what is None:
        return
    app = remote_controlled(Contract.parse(what["contract"]), what["path"], what["now"])
    threading.Thread(target=end_with_input, daemon=True).start()
    at = listening()
    print(at.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off")).run(sockets=[at])


if __name__ == "__main__":
    main()
