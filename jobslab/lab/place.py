"""Where does a schedule run?  In this process, or against a real server process on a real port and a real file.

Both places offer the same few things, so that the same steps give the same rows.  Clients go through HTTP in both;
workers and sweepers write to the store.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from jobslab.api import create_app
from jobslab.client import Answer, JobClient, NoAnswer
from jobslab.clock import ManualClock, counted
from jobslab.contract import Contract
from jobslab.lab.running import Place
from jobslab.lab.transport import InProcess, Losing
from jobslab.settings import LAB
from jobslab.stores import Store, open_store

Opens = Callable[[Contract, str | None], AbstractContextManager[Place]]


class Here:
    """The server in this process."""

    def __init__(self, contract: Contract, path: str | None) -> None:
        self._contract, self._path, self._clock = contract, path, ManualClock()
        self.store = self._open()
        self._serve()

    def _open(self) -> Store:
        return open_store(self._contract, self._path, settings=LAB)

    def _serve(self) -> None:
        self.store.start_server()
        app = create_app(self.store, self._clock, counted(job.id for job in self.store.rows()))
        self._transport = Losing(InProcess(app))
        self.client = JobClient("http://lab", transport=self._transport)

    def now(self) -> float:
        return self._clock.now()

    def advance(self, units: float) -> None:
        self._clock.advance(units)

    def lose(self, exchange: Callable[[JobClient], Answer]) -> None:
        self._transport.lose_next = True
        try:
            exchange(self.client)
        except NoAnswer:
            return
        raise AssertionError("an answer that was to be lost has come")

    def restart(self) -> None:
        self.client.close()
        if self._path:  # without a file the jobs would be gone whatever the contract; `start_server` asks the contract
            self.store.close()
            self.store = self._open()
        self._serve()

    def close(self) -> None:
        self.client.close()
        self.store.close()


@contextmanager
def here(contract: Contract, path: str | None = None) -> Iterator[Place]:
    """A place in this process, on a new store in the file `path`, or without a file.  Raises StoreError."""
    place = Here(contract, path)
    try:
        yield place
    finally:
        place.close()
