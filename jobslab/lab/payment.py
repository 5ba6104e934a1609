"""What is an outside system to a worker?  A payment service: a process of its own, with a ledger of its own.

    python -m jobslab.lab.payment LEDGER.db [--ignore-keys]

It prints its port, and serves until its input ends, so that it never outlives the lab.  Every request that moves money
is a row of its ledger, and what the worker knows of it is the answer, if there is one.

    POST /payments, /refunds {account, reference, amount}   201, or 402 above the limit; with Idempotency-Key a repeated
                                                            request is answered 200 and moves nothing
    POST /mails {account, reference, amount}                201: a mail is gone, whatever the header says
    GET /movements?account=                                 all of it, in order
"""

import atexit
import itertools
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx2

from jobslab.errors import JobslabError
from jobslab.lab import child
from jobslab.lab.child import PATIENT_SECONDS

LIMIT = 1000  # a payment above it is declined
KEY = "Idempotency-Key"
ANONYMOUS = ""  # for SQLite a temporary file of its own, which the system removes even after a SIGKILL

KINDS = {"/payments": "payment", "/refunds": "refund", "/mails": "mail"}

LEDGER = """CREATE TABLE IF NOT EXISTS movements (
  n INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  account TEXT NOT NULL,
  reference TEXT NOT NULL,
  amount INTEGER NOT NULL,
  key TEXT,
  UNIQUE (account, key)
)"""

MOVE = """INSERT INTO movements (kind, account, reference, amount, key)
VALUES (:kind, :account, :reference, :amount, :key)
    ON CONFLICT (account, key) DO NOTHING
RETURNING *"""

FOUND = "SELECT * FROM movements WHERE account = :account AND key = :key"

ALL = "SELECT * FROM movements WHERE account = :account ORDER BY n"


class Movement(NamedTuple):
    """One row of the service's ledger."""

    n: int
    kind: str
    account: str
    reference: str  # whatever the caller calls it by
    amount: int
    key: str | None


class Declined(JobslabError):
    """The service refuses this payment, and will again."""


class PaymentError(JobslabError):
    """The payment service does not do what it is for."""


# The service


class Books:
    """The service's ledger.  Safe to share between threads."""

    def __init__(self, path: str, honours_keys: bool) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(LEDGER)
        self._lock = threading.Lock()
        self._honours_keys = honours_keys

    def move(self, kind: str, asked: dict[str, Any], key: str | None) -> tuple[int, Any]:
        """Status and body of the answer."""
        if kind == "payment" and asked["amount"] > LIMIT:
            return 402, {"declined": f"more than {LIMIT}"}
        key = key if self._honours_keys and kind != "mail" else None
        row = {name: asked[name] for name in ("account", "reference", "amount")} | {"kind": kind, "key": key}
        with self._lock:
            made = self._db.execute(MOVE, row).fetchone()
            found = made or self._db.execute(FOUND, row).fetchone()
        if Movement(*found)._replace(n=0) != Movement(0, **row):
            return 422, {"key": "it belongs to another request"}
        return 201 if made else 200, found

    def all(self, asked: dict[str, str]) -> list[Any]:
        with self._lock:
            return self._db.execute(ALL, asked).fetchall()


def handler(books: Books) -> type[BaseHTTPRequestHandler]:
    """What answers the requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body waits 40 ms for an acknowledgement of the head

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(*books.move(KINDS[self.path], asked, self.headers[KEY]))

        def do_GET(self) -> None:
            self.answer(200, books.all(dict(parse_qsl(urlsplit(self.path).query))))

        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing: its ledger is what it has to tell."""

    return Handler


def main(path: str, *options: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(Books(path, "--ignore-keys" not in options))) as server:
        server.daemon_threads = True
        print(server.server_port, flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()  # until the lab is gone, however it went
        server.shutdown()


# Seen from a worker


class Account(NamedTuple):
    """One customer of the service.  Each call is one request; httpx2's errors mean that nobody knows."""

    http: httpx2.Client
    name: str

    def pay(self, reference: str, amount: int = 100, key: str | None = None) -> Movement:
        """The payment, made now or by an earlier request with this key.  Raises Declined."""
        return self._move("/payments", reference, amount, key)

    def refund(self, reference: str, amount: int = 100, key: str | None = None) -> Movement:
        return self._move("/refunds", reference, amount, key)

    def mail(self, reference: str, key: str | None = None) -> Movement:
        """A mail to the customer.  There is no way to ask whether one was sent before."""
        return self._move("/mails", reference, 0, key)

    def _move(self, path: str, reference: str, amount: int, key: str | None) -> Movement:
        asked = {"account": self.name, "reference": reference, "amount": amount}
        answer = self.http.post(path, json=asked, headers={KEY: key} if key else {})
        if answer.status_code == 402:
            raise Declined(f"the payment of {amount} is declined: {answer.json()['declined']}")
        if answer.status_code not in (200, 201):
            raise PaymentError(f"the payment service answers {answer.status_code}: {answer.text}")
        return Movement(*answer.json())

    def movements(self, kind: str = "payment") -> list[Movement]:
        """What the service has in its ledger, of this kind."""
        return [movement for movement in self._all() if movement.kind == kind]

    def _all(self) -> list[Movement]:
        return [Movement(*row) for row in self.http.get("/movements", params={"account": self.name}).json()]

    def paid(self, reference: str) -> bool:
        """Does the service know of a payment by this reference?"""
        return any(movement.reference == reference for movement in self.movements())

    @property
    def balance(self) -> int:
        """What the customer has paid and not got back."""
        return sum(-one.amount if one.kind == "refund" else one.amount for one in self._all())


class Service:
    """A payment service that was started here; `close` ends it."""

    def __init__(self, ledger: Path | None, *options: str) -> None:
        """With this ledger, or with one that is gone with the service, however that ends.  Raises LabError if it does
        not start."""
        self._process = child.start("jobslab.lab.payment", str(ledger or ANONYMOUS), *options)
        self.url = child.address(self._process, "the payment service")
        self.http = httpx2.Client(base_url=self.url, timeout=PATIENT_SECONDS)
        self._names = map("customer-{}".format, itertools.count(1))

    def account(self, name: str | None = None) -> Account:
        """The account of this name; else a new one, so that the runs of a lab do not meet."""
        return Account(self.http, name or next(self._names))

    def close(self) -> None:
        self.http.close()
        child.let_go(self._process)


@contextmanager
def service(*options: str) -> Iterator[Service]:
    """A service on a new ledger, which is gone afterwards."""
    with closing(Service(None, *options)) as made:
        yield made


@cache
def shared() -> Service:
    """The one that all runs of this process use: starting it takes longer than a run.  It ends with the process."""
    context = service()
    made = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return made


if __name__ == "__main__":
    main(*sys.argv[1:])
