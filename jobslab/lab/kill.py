"""What do real processes leave, when the learner kills one, or stops one and wakes it?  A run, and its story.

    story = really(handling, "all but leases")      the handling is a function that is given the Service

A Service is the API as `jobslab serve` runs it and workers as processes of their own, on one store.  When a thing
happens is chance here; a handling waits for what must have happened, and a Story keeps what is the same each time: no
renewals, no times, and of several late reports of one attempt the first.

    python -m jobslab.lab.kill {"url": ..., ...}    is one of these workers
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.client import JobClient
from jobslab.contract import Contract
from jobslab.job import REPORTS, Event, Job, State
from jobslab.lab.chaos.audit import audit
from jobslab.lab.chaos.cluster import ChaosError, address, start_server
from jobslab.lab.chaos.run import a_new_store
from jobslab.lab.chaos.worker import KIND, end_with, settings
from jobslab.lab.postgres import a_store
from jobslab.lab.stop import stop_between_writes
from jobslab.lab.text import tabular
from jobslab.loop import work
from jobslab.stores import Store, open_store
from jobslab.sweeper import sweep

if TYPE_CHECKING:
    import pandas as pd

LEASE_SECONDS = 1.2  # short, and longer than a busy machine keeps a heartbeat waiting
PATIENCE_SECONDS = 40  # for what must happen, on a slow machine
LOOK_SECONDS = 0.05

SIGNPOSTS = BEGINS, MAY_FINISH = "begins", "may finish"


# A worker, seen from the learner's cell


class Worker:
    """A worker process that has begun to import, and asks for work after `begin`."""

    def __init__(self, name: str, url: str, store: Store, folder: Path) -> None:
        self.name, self.url, self.store, self.folder = name, url, store, folder
        self.since = len(store.events())  # what stands in the journal before is not of this process
        for says in SIGNPOSTS:
            signpost(folder, name, says).unlink(missing_ok=True)
        told = {"url": url, "name": name, "folder": str(folder), "parent": os.getpid()}
        command = [sys.executable, "-P", "-m", "jobslab.lab.kill", json.dumps(told)]
        # A process group of its own: if the kernel dies while this one is stopped, the system wakes it to hang up.
        self.process = subprocess.Popen(command, process_group=0)

    def begin(self) -> None:
        """Ask for work from now on."""
        signpost(self.folder, self.name, BEGINS).touch()

    def may_finish(self) -> None:
        """Let its job be done, and all that follow."""
        signpost(self.folder, self.name, MAY_FINISH).touch()

    def has(self, job: str) -> None:
        """Wait until it runs this job."""
        until(lambda: self.is_at(job, State.RUNNING), f"worker {self.name} did not get the job {job!r}")

    def ends(self, job: str) -> None:
        """Wait until it has done this job."""
        until(lambda: self.is_at(job, State.SUCCEEDED), f"worker {self.name} did not do the job {job!r}")

    def is_answered(self) -> None:
        """Wait until it has reported a success that was accepted, or anything that was refused."""
        until(
            lambda: any(map(self.final, self.store.events()[self.since :])),
            f"worker {self.name} had no answer to a report",
        )

    def send(self, number: signal.Signals) -> None:
        """A signal, as `kill` sends it; SIGSTOP at a moment when nobody but this worker is stopped by it."""
        if number == signal.SIGSTOP:
            stop_between_writes(self.process, self.url)
        else:
            self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()

    def is_at(self, job: str, state: State) -> bool:
        """Is the job in this state, and was it this worker who claimed it last?"""
        sought = job, self.name, state
        return any((row.idempotency_key, row.worker, row.state) == sought for row in self.store.rows())

    def final(self, event: Event) -> bool:
        mine = event.actor == self.name and event.verb in REPORTS
        return mine and (event.verb == "succeed" or not event.accepted)

    def close(self) -> None:
        self.process.kill()  # a stopped one, too
        self.process.wait()


def until(seen: Callable[[], bool], otherwise: str) -> None:
    """Wait for it.  Raises ChaosError when it does not come."""
    enough = time.monotonic() + PATIENCE_SECONDS
    while not seen():
        if time.monotonic() > enough:
            raise ChaosError(f"{otherwise}, within {PATIENCE_SECONDS} seconds")
        time.sleep(LOOK_SECONDS)


def signpost(folder: Path, name: str, says: str) -> Path:
    """A file that tells a worker something by being there."""
    return folder / f"{name} {says}"


# The service


class Service:
    """A server, and its workers so far; `close` ends all of them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.store: Store = open_store(None, url, settings=settings(LEASE_SECONDS))
        self.log = (folder / "log").open("w", encoding="utf-8")
        self.server = start_server(url, folder, self.log, LEASE_SECONDS)
        self._workers: list[Worker] = []
        self._client: JobClient | None = None

    def workers(self, *names: str) -> list[Worker]:
        """New worker processes of these names; those that there were have ended."""
        self.end_workers()
        for name in names:
            self._workers.append(Worker(name, self.url, self.store, self.folder))
        return [*self._workers]

    def end_workers(self) -> None:
        while self._workers:
            self._workers.pop().close()

    @property
    def client(self) -> JobClient:
        """A client of the server, which is waited for at first.  Raises ChaosError if it does not start."""
        if self._client is None:
            self._client = JobClient(address(self.server, self.folder), timeout_seconds=10)
        return self._client

    def submit(self, job: str) -> None:
        """A POST, with this name as its idempotency key."""
        self.client.submit(KIND, {"name": job}, job, deadline_seconds=PATIENCE_SECONDS)

    def a_lease_passes(self) -> None:
        """Wait for as long as a claim is good, by the database's clock; then look for stuck jobs, as all do."""
        over = self.now() + LEASE_SECONDS
        until(lambda: self.now() > over, "the database's clock stands still")
        sweep(self.store)

    def now(self) -> float:
        with self.store.database.read() as db:
            return self.store.database.now(db)

    def polled(self, row: Job) -> str:
        """What a client's GET shows."""
        shown = self.client.get(row.id).body
        return f"{shown['state']}; attempt {shown['attempt']}"

    def close(self) -> None:
        self.end_workers()
        self.server.kill()
        self.server.wait()
        if self._client is not None:
            self._client.close()
        if self.server.stdout is not None:
            self.server.stdout.close()
        self.log.close()
        self.store.close()


Handling = Callable[[Service], None]


def really(handling: Handling, how: str = "all", at: str | None = None) -> "Story":
    """Do it to real processes under this contract, on a new SQLite file or in the PostgreSQL at this URL.

    Raises ChaosError where something does not happen that must, and on a system without POSIX signals.
    """
    if os.name != "posix":
        raise ChaosError("this chapter needs the signals of Linux or macOS; all others run here")
    with (
        tempfile.TemporaryDirectory(prefix="jobslab-") as directory,
        a_store_for(how, at, Path(directory)) as url,
        closing(Service(url, Path(directory))) as service,
    ):
        handling(service)
        return story(how, service)


@contextmanager
def a_store_for(how: str, at: str | None, folder: Path) -> Iterator[str]:
    contract = Contract.parse(how)
    if at is not None:
        with a_store(at, f"jobslab_{token_hex(4)}", contract) as url:
            yield url
    else:
        with a_new_store("sqlite", contract, folder) as (url, _):
            yield url


# What is left of it


class Line(NamedTuple):
    """One write that the journal tells of."""

    job: str
    who: str
    does: str
    attempt: str
    answer: str
    state: str  # the row's, afterwards


@tabular
class Story(NamedTuple):
    """What was the same each time: the journal's lines by job, what a client sees at the end, and the findings."""

    name: str
    lines: tuple[Line, ...]
    polls: tuple[tuple[str, str], ...]  # of each job: what the last GET shows
    results: tuple[tuple[str, str], ...]  # ... and whose result it is
    found: tuple[tuple[str, str], ...]  # of the audit

    def poll(self, job: str) -> str:
        """What the client's last GET shows of this job.  Raises KeyError."""
        return dict(self.polls)[job]

    def result(self, job: str) -> str:
        """Whose result the job has.  Raises KeyError."""
        return dict(self.results)[job]

    def frame(self) -> "pd.DataFrame":
        """The lines as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.lines), columns=list(Line._fields), index=range(1, len(self.lines) + 1))


def story(name: str, service: Service) -> Story:
    """What the store and the server tell of the run, now."""
    rows, events = service.store.rows(), service.store.events()
    keys = {row.id: str(row.idempotency_key) for row in rows}
    rows = tuple(sorted(rows, key=lambda row: row.created_at))
    order = [row.id for row in rows]
    told = sorted(kept(events), key=lambda event: order.index(event.job_id))
    return Story(
        name,
        tuple(line(event, keys[event.job_id]) for event in told),
        tuple((keys[row.id], service.polled(row)) for row in rows),
        tuple((keys[row.id], whose(row)) for row in rows),
        found(rows, events),
    )


def whose(row: Job) -> str:
    return f"{json.loads(row.result)['made by']}'s" if row.result else "nobody's"


def kept(events: Sequence[Event]) -> Iterator[Event]:
    """Of the journal what chance can't change: of each attempt the claim, its end, and the first refusal."""
    answered: set[tuple[str, str | None, int | None]] = set()
    for event in events:
        attempt = event.job_id, event.actor, event.attempt
        if event.verb in ("submit", "claim", "requeue"):
            if event.accepted:
                yield event
        elif event.verb in REPORTS and attempt not in answered and (event.verb == "succeed" or not event.accepted):
            answered.add(attempt)
            yield event


DOES = {"submit": "POST", "claim": "takes it", "requeue": "back to the queue", "succeed": "reports success"}
WHO = {"submit": "client", "requeue": "a sweeper"}  # which sweeper comes first is chance


def line(event: Event, job: str) -> Line:
    does = DOES[event.verb] if event.accepted else "reports"
    answer = "accepted" if event.accepted else f"refused: {event.refused_by}"
    attempt = "" if event.attempt is None or event.verb == "submit" else str(event.attempt)
    return Line(job, WHO.get(event.verb, str(event.actor)), does, attempt, answer, str(event.state_after))


def found(rows: Sequence[Job], events: Sequence[Event]) -> tuple[tuple[str, str], ...]:
    """The audit that `jobslab chaos` makes, in the words of the promises."""
    accepted = {n: {row.id} for n, row in enumerate(rows)}
    books = audit(accepted, rows, events, [])
    late = books.stale_accepted + books.stale_refused
    return (
        ("every accepted job reaches a terminal state", verdict(books.lost)),
        ("only the current attempt's report counts", verdict(books.stale_accepted) if late else "not exercised"),
    )


def verdict(wrong: int) -> str:
    return "VIOLATED" if wrong else "holds"


def beside(*stories: Story) -> "pd.DataFrame":
    """What came of it: the last GET, whose result, who was refused by which rule; and the promises.  A column a run."""
    import pandas as pd

    columns = {told.name: outcome(told) for told in stories}
    lines = list(dict.fromkeys(name for column in columns.values() for name in column))
    return pd.DataFrame({name: [column.get(x, "") for x in lines] for name, column in columns.items()}, index=lines)


def outcome(told: Story) -> dict[str, str]:
    polls = {f"{job}: the last GET": seen for job, seen in told.polls}
    results = {f"{job}: the result is": who for job, who in told.results}
    refused = [f"{x.who}, attempt {x.attempt}, by {x.answer.split(': ')[1]}" for x in told.lines if ": " in x.answer]
    return {**polls, **results, "who was refused": "; ".join(refused) or "nobody", **dict(told.found)}


# The worker process


def task(folder: Path, name: str, job: Job) -> Generator[float, None, Any]:
    """Work until somebody lets it be done; the result says who made it."""
    yield 0.5
    wait_for(signpost(folder, name, MAY_FINISH))
    yield 0.9
    return {"made by": name}


def wait_for(sign: Path) -> None:
    while not sign.exists():
        time.sleep(LOOK_SECONDS)


def main(url: str, name: str, folder: str, parent: int) -> None:
    end_with(parent)
    here = Path(folder)
    with open_store(None, url, settings=settings(LEASE_SECONDS)) as store:
        wait_for(signpost(here, name, BEGINS))
        for _ in work(store, name, {KIND: partial(task, here, name)}, stop=lambda: False):
            pass


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
