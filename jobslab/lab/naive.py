"""What if a submit is more than one transaction?  Three ways to register a key and its job, which can be stopped.

A way is a generator that yields after each of its transactions: there the process may die, and there another request
may come in between.  Nothing is staged with threads or luck: `crashes` stops a submit at every place that there is, and
`races` runs two submits in every order that there is.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count, islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from jobslab.clock import counted
from jobslab.contract import Contract
from jobslab.stores import Store, open_store

if TYPE_CHECKING:
    import pandas as pd

KEY = "k1"


class Server(NamedTuple):
    """A store with a table of keys beside it, and a maker of ids."""

    store: Store
    next_id: Callable[[], str]

    def key_job(self) -> str | None:
        """The job that the key stands for, by the table of keys."""
        with self.store.database.read() as db:
            found = db.execute("SELECT job_id FROM keys WHERE key = :key", {"key": KEY}).fetchone()
            return found and str(found[0])

    def keep_key(self, id: str) -> str:
        """Keep the key for this job, if it is nobody's yet; whose it is now."""
        with self.store.database.write() as db:
            db.execute("INSERT INTO keys VALUES (:key, :id) ON CONFLICT DO NOTHING", {"key": KEY, "id": id})
            return str(db.execute("SELECT job_id FROM keys WHERE key = :key", {"key": KEY}).fetchone()[0])

    def make_job(self, id: str) -> str:
        return self.store.submit(id, "export", {"table": "orders"}, key=KEY, now=0).job.id

    def jobs(self) -> tuple[str, ...]:
        return tuple(job.id for job in self.store.rows())


Submit = Generator[str, None, str]  # yields the name of each transaction, returns the id that the caller is told


def job_then_key(server: Server) -> Submit:
    found = server.key_job()
    yield "looks for the key"
    if found:
        return found
    id = server.make_job(server.next_id())
    yield "makes the job"
    server.keep_key(id)
    yield "keeps the key"
    return id


def key_then_job(server: Server) -> Submit:
    found = server.key_job()
    yield "looks for the key"
    if found:
        return found
    mine = server.next_id()
    id = server.keep_key(mine)
    yield "keeps the key"
    if id == mine:
        server.make_job(id)
        yield "makes the job"
    return id


def one_statement(server: Server) -> Submit:
    """What the engine does: the key is a column of the job's own row."""
    id = server.make_job(server.next_id())
    yield "makes the job with its key"
    return id


class Way(NamedTuple):
    submit: Callable[[Server], Submit]
    contract: Contract  # in force for the table `jobs`


BESIDE = Contract().without("idempotency_key")  # the key is kept beside the job, not with it
WAYS = {
    "job, then key": Way(job_then_key, BESIDE),
    "key, then job": Way(key_then_job, BESIDE),
    "one statement": Way(one_statement, Contract()),
}


@contextmanager
def served(way: Way) -> Iterator[Server]:
    """A new server for this way."""
    with closing(open_store(way.contract)) as store:
        with store.database.write() as db:
            db.execute("CREATE TABLE keys (key TEXT PRIMARY KEY, job_id TEXT NOT NULL)")
        yield Server(store, counted())


def finished(submit: Submit) -> str:
    """Let the submit run to its end; what its caller is told."""
    while True:
        try:
            next(submit)
        except StopIteration as end:
            return str(end.value)


# The process dies


class Crash(NamedTuple):
    """A submit whose process died after a transaction, and the retry that found what it had left."""

    way: str
    after: str
    told: str  # the id that the retry is told
    jobs: tuple[str, ...]

    @property
    def breaks(self) -> str:
        if self.told not in self.jobs:
            return "an accepted job is kept"
        return "one job per intent" if len(self.jobs) > 1 else ""


def crash(name: str, transactions: int) -> Crash | None:
    """What comes of it when the process dies after so many transactions; None: there are not so many."""
    way = WAYS[name]
    with served(way) as server:
        submit = way.submit(server)
        done = list(islice(submit, transactions))
        submit.close()
        if len(done) < transactions:
            return None
        told = finished(way.submit(server))
        return Crash(name, done[-1], told, server.jobs())


def all_crashes() -> list[Crash]:
    return [found for name in WAYS for found in takewhile(bool, (crash(name, n) for n in count(1))) if found]


def crashes() -> "pd.DataFrame":
    """Every way, dying after each of its transactions, and what the retry finds: a line a crash."""
    import pandas as pd

    cells = [
        (crash.way, crash.after, crash.told, ", ".join(crash.jobs) or "none", crash.breaks or "nothing")
        for crash in all_crashes()
    ]
    columns = ["the way", "dies after it", "the retry is told", "jobs in the table", "this breaks"]
    return pd.DataFrame(cells, columns=columns, index=range(1, len(cells) + 1))


# Two requests at once


class Race(NamedTuple):
    """Two submits with one key, in one order of their transactions."""

    order: tuple[str, ...]  # "1 looks for the key", "2 looks for the key" ...
    jobs: tuple[str, ...]
    unfinished: tuple[int, ...]  # who may go on


def race(name: str, turns: Sequence[int]) -> Race:
    """What happens when the two requests, 0 and 1, take these turns; a turn is a transaction."""
    way = WAYS[name]
    with served(way) as server:
        submits = [way.submit(server), way.submit(server)]
        order = [f"{turn + 1} {next(submits[turn])}" for turn in turns]
        jobs = server.jobs()
        # Who may go on is seen by going on; nobody looks at this server afterwards.
        return Race(tuple(order), jobs, tuple(n for n in (0, 1) if next(submits[n], None) is not None))


def every_race(name: str, turns: tuple[int, ...] = ()) -> Iterator[Race]:
    """The races to their ends, in every order."""
    so_far = race(name, turns)
    if not so_far.unfinished:
        yield so_far
    for turn in so_far.unfinished:
        yield from every_race(name, (*turns, turn))


def races() -> "pd.DataFrame":
    """How often two submits at once make two jobs: a line a way, with the first order that does."""
    import pandas as pd

    cells = {}
    for name in WAYS:
        all_of_them = list(every_race(name))
        bad = [race for race in all_of_them if len(race.jobs) > 1]
        cells[name] = (f"{len(bad)} of {len(all_of_them)}", " / ".join(bad[0].order) if bad else "")
    return pd.DataFrame(cells, index=["orders with two jobs", "the first of them"]).T
