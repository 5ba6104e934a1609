"""Who submits, and what were they told?  Clients that ask again with the same key until they have their 202.

What they wanted and what they were answered is written into a file of their own: it is what the run is judged by, and
no fault of the store can change it.
"""

import itertools
import json
import socket
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from jobslab.client import JobClient
from jobslab.lab.chaos.plan import Intent, intent
from jobslab.lab.chaos.worker import KIND

CLIENTS = 2
PATIENCE_SECONDS = 120  # of a client, for one intent


class Record:
    """One line of JSON for what a client is about to ask, and one for what it was answered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def note(self, **line: object) -> None:
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()


def accepted(path: Path) -> dict[int, set[str]]:
    """Of each intent that was answered with a 202, by its number, the ids that it was told."""
    ids: dict[int, set[str]] = defaultdict(set)
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if "id" in line:
            ids[line["intent"]].add(line["id"])
    return dict(ids)


class Clients:
    """Some clients, each in a thread of its own, who together mean at least `jobs` jobs, and more until `enough`."""

    def __init__(self, url: str, seed: int, jobs: int, record: Record, turn: Callable[[], None]) -> None:
        self.url, self.seed, self.jobs, self.record, self.turn = url, seed, jobs, record, turn
        self.enough = False
        self.accepted = 0
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._working = [self._pool.submit(self._submit_all) for _ in range(CLIENTS)]

    def check(self) -> None:
        """Raises what a client could not get over."""
        for one in self._working:
            if one.done():
                one.result()

    def end(self) -> None:
        """Let them come to an end, and wait for it."""
        self.enough = True
        self._pool.shutdown()

    def _next(self) -> Intent | None:
        with self._lock:
            number = next(self._numbers)
        return None if self.enough and number >= self.jobs else intent(self.seed, number)

    def _submit_all(self) -> None:
        with JobClient(self.url, timeout_seconds=10) as client:
            while (wanted := self._next()) is not None:
                self.turn()
                self._submit(client, wanted)

    def _submit(self, client: JobClient, wanted: Intent) -> None:
        """Until it has its 202."""
        params: dict[str, Any] = {"intent": wanted.number, "seconds": wanted.seconds}
        self.record.note(intent=wanted.number, key=wanted.key)
        if wanted.unread:
            submit_and_look_away(self.url, params, wanted.key)
        told = client.submit(KIND, params, wanted.key, deadline_seconds=PATIENCE_SECONDS)
        self.record.note(intent=wanted.number, key=wanted.key, status=202, id=told.id)
        with self._lock:
            self.accepted += 1


def submit_and_look_away(url: str, params: dict[str, Any], key: str) -> None:
    """Send the request, see that an answer has come, and never read it."""
    address = urlsplit(url)
    body = json.dumps({"kind": KIND, "params": params}).encode()
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        f'Idempotency-Key: "{key}"\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n'
    )
    try:
        with socket.create_connection((str(address.hostname), int(address.port or 80)), timeout=10) as line:
            line.sendall(head.encode() + body)
            line.recv(1, socket.MSG_PEEK)
    except OSError:
        return  # the server is down just now, or was killed meanwhile: then too nobody has read an answer
