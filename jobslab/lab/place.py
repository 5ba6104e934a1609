"""Where does a schedule run?  In this process, or against a real server process on a real port and a real file.

Both places offer what a run needs (see `running.Place`), so that the same steps give the same rows.  Clients go
through HTTP in both; workers and sweepers write to the store.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial

from jobslab.client import Answer, JobClient, NoAnswer
from jobslab.clock import ManualClock
from jobslab.contract import Contract
from jobslab.lab import child
from jobslab.lab.child import PATIENT_SECONDS, LabError
from jobslab.lab.running import Place
from jobslab.lab.server import lab_api
from jobslab.lab.transport import InProcess, Losing
from jobslab.settings import LAB
from jobslab.stores import open_store

# What opens a place: the contract, and the path of a new file for the store (None: the place's own choice).
Opens = Callable[[Contract, str | None], AbstractContextManager[Place]]


class Here:
    """The server in this process."""

    def __init__(self, contract: Contract, path: str | None) -> None:
        self._contract, self._path = contract, path
        self._clock = ManualClock()
        self._server = ExitStack()  # what ends with the server
        self.store = open_store(contract, path, settings=LAB)

    def serve(self) -> None:
        self._transport = Losing(InProcess(lab_api(self.store, self._clock)))
        self.client = self._server.enter_context(JobClient("http://lab", transport=self._transport))

    def now(self) -> float:
        return self._clock.now()

    def advance(self, units: float) -> None:
        self._clock.advance(units)

    def lose(self, exchange: Callable[[JobClient], Answer]) -> None:
        self._transport.lose_next = True
        lost(exchange, self.client)

    def restart(self) -> None:
        self._server.close()
        if self._path:  # a store without a file would be gone under every contract, so that one stays open
            self.store.close()
            self.store = open_store(self._contract, self._path, settings=LAB)
        self.serve()

    def close(self) -> None:
        self._server.close()
        self.store.close()


@contextmanager
def here(contract: Contract, path: str | None = None) -> Iterator[Place]:
    """A place in this process, on a new store in this file, or without a file.  Raises StoreError."""
    with closing(Here(contract, path)) as place:
        place.serve()
        yield place


def lost(exchange: Callable[[JobClient], Answer], client: JobClient) -> None:
    """An exchange without an answer, which the server carries out all the same."""
    try:
        exchange(client)
    except NoAnswer as wrong:
        if wrong.definite:
            raise
    else:
        raise AssertionError("an answer came that was to be lost")


# Over HTTP

GIVES_UP_SECONDS = 0.2  # the client whose answer is lost; the late answer takes three times as long


class Process:
    """One lab server in a process of its own (see `server`), which warms up until it is told what to serve."""

    def __init__(self) -> None:
        self._popen = child.start("jobslab.lab.server")

    def serve(self, contract: Contract, path: str, now: float) -> str:
        """Start serving; where.  Raises LabError."""
        told = {"contract": str(contract), "path": path, "now": now}
        print(json.dumps(told), file=self._popen.stdin, flush=True)
        return child.address(self._popen, "the lab's server")

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended_by(self) -> int | None:
        """Its exit status, or the negative number of the signal that ended it; None: it runs."""
        return self._popen.poll()

    def kill(self) -> None:
        """SIGKILL: it has no time to tidy up."""
        self._popen.kill()
        self.let_go()

    def let_go(self) -> None:
        """Close its input, which ends it, and wait for that.  Raises subprocess.TimeoutExpired."""
        child.let_go(self._popen)


class Spare:
    """A process in reserve, warming up while the one before it serves."""

    def __init__(self) -> None:
        self._next = Process()

    def take(self) -> Process:
        taken, self._next = self._next, Process()
        return taken

    def close(self) -> None:
        self._next.kill()


class OverHTTP:
    """The server in another process, and a file that it shares with the workers and sweepers of this one."""

    def __init__(self, spare: Spare, contract: Contract, path: str) -> None:
        self._spare, self._contract, self._path = spare, contract, path
        self._clock = ManualClock()
        self._server = ExitStack()  # what ends with the server
        self.store = open_store(contract, path, settings=LAB)

    def serve(self) -> None:
        self.process = self._spare.take()
        self._server.callback(self.process.kill)
        self._address = self.process.serve(self._contract, self._path, self.now())
        self.client = self._asking(PATIENT_SECONDS)
        self._impatient = self._asking(GIVES_UP_SECONDS)

    def _asking(self, timeout_seconds: float) -> JobClient:
        """A client that is connected: the first request pays for that and for imports, and must not be timed."""
        client = self._server.enter_context(JobClient(self._address, timeout_seconds=timeout_seconds))
        client.ask("GET", "/jobs", timeout_seconds=PATIENT_SECONDS)
        return client

    def now(self) -> float:
        return self._clock.now()

    def advance(self, units: float) -> None:
        self._clock.advance(units)
        self.client.ask("POST", "/lab/advance", json={"units": units})

    def lose(self, exchange: Callable[[JobClient], Answer]) -> None:
        held = self.client.ask("POST", "/lab/late").body["held"]
        lost(exchange, self._impatient)
        give_up = time.monotonic() + PATIENT_SECONDS
        while self.client.ask("GET", "/lab/late").body["held"] == held:  # not committed yet: a retry would come first
            if time.monotonic() > give_up:
                raise LabError("the lab's server has not carried out a request whose answer was to be lost")
            time.sleep(0.01)

    def restart(self) -> None:
        self._server.close()
        self.serve()

    def close(self) -> None:
        self._server.close()
        self.store.close()


@contextmanager
def over_http() -> Iterator[Opens]:
    """Opens places that are server processes, each on a new file.  Whatever happens inside, the processes end."""
    with closing(Spare()) as spare:
        yield partial(on_a_server, spare)


@contextmanager
def on_a_server(spare: Spare, contract: Contract, path: str | None = None) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as own, closing(OverHTTP(spare, contract, path or f"{own}/jobs.db")) as place:
        place.serve()
        yield place
