"""How often has the customer paid when a job is done twice?  Six ways to pay, every point at which a worker can stop.

A way is the work of one attempt; what it yields are the points (see `again`).  The service is a real one, over HTTP
(see `payment`), and it alone says how often it was paid.  What the shop believes is in a ledger of its own.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx2

from jobslab.contract import Contract
from jobslab.effects import Ledger
from jobslab.errors import JobslabError
from jobslab.job import Job
from jobslab.lab import child
from jobslab.lab.again import KIND, Attempt, Fault, NotReached, Scene, Story, Work, again, done, title
from jobslab.lab.child import PATIENT_SECONDS
from jobslab.lab.payment import Account, shared
from jobslab.settings import LAB
from jobslab.stores import open_store

if TYPE_CHECKING:
    import pandas as pd

# What the chapter takes
__all__ = [
    "AFTER",
    "BEFORE",
    "BETWEEN",
    "asks_first",
    "call_then_record",
    "how_often",
    "key_and_record",
    "kill",
    "naive",
    "pay",
    "promises",
    "record_then_call",
    "with_key",
]

BEFORE, BETWEEN, AFTER = "before both", "between call and record", "after both, before the report"
POINTS = (BEFORE, BETWEEN, AFTER)

# Who stops after both and is slow has nothing left to do but to report, which is the contract's matter.
FAULTS = (
    Fault(),
    *(Fault("crash", point) for point in POINTS),
    *(Fault("slow", point) for point in POINTS[:-1]),
)


class Till(NamedTuple):
    """What an attempt has at hand."""

    job: Job
    account: Account  # of the customer, at the payment service
    ledger: Ledger  # of the shop


# The ways


def naive(till: Till) -> Work:
    """Pay."""
    yield BEFORE
    till.account.pay(till.job.id)
    yield BETWEEN
    yield AFTER


def asks_first(till: Till) -> Work:
    """Ask the service whether it was paid; pay if not."""
    paid = till.account.paid(till.job.id)
    yield BEFORE
    if not paid:
        till.account.pay(till.job.id)
    yield BETWEEN
    yield AFTER


def with_key(till: Till) -> Work:
    """Pay, with the job's id as idempotency key."""
    yield BEFORE
    till.account.pay(till.job.id, key=till.job.id)
    yield BETWEEN
    yield AFTER


def call_then_record(till: Till) -> Work:
    """Pay unless the ledger has it; then write it down."""
    known = till.ledger.of(till.job.id)
    yield BEFORE
    if known is None:
        till.account.pay(till.job.id)
    yield BETWEEN
    till.ledger.once(till.job, "paid")
    yield AFTER


def record_then_call(till: Till) -> Work:
    """Write it down; pay if nobody had before."""
    yield BEFORE
    entry = till.ledger.once(till.job, "paid")
    yield BETWEEN
    if entry.tries == 1:
        till.account.pay(till.job.id)
    yield AFTER


def key_and_record(till: Till) -> Work:
    """Pay, with the job's id as idempotency key; then write it down."""
    yield BEFORE
    till.account.pay(till.job.id, key=till.job.id)
    yield BETWEEN
    till.ledger.once(till.job, "paid")
    yield AFTER


Way = Callable[[Till], Work]

WAYS: dict[str, Way] = {
    "": naive,
    "check": asks_first,
    "key": with_key,
    "ledger after": call_then_record,
    "ledger before": record_then_call,
    "key, ledger after": key_and_record,
}


# A way under a fault


def pay(way: Way, fault: Fault = Fault()) -> Story:
    """The story of one job that is to pay once; it shows what the service and the shop's ledger have."""
    account = shared().account()
    with closing(Ledger(None)) as ledger:
        return done(work(way, account, ledger), fault, partial(books, account, ledger))


def pay_two_jobs(way: Way) -> None:
    """Two jobs of one customer, without a fault.  Raises PaymentError where both send one key."""
    account = shared().account()
    with closing(Ledger(None)) as ledger:
        for id in ("job-1", "job-2"):
            done(work(way, account, ledger), Fault(), dict, id)


def work(way: Way, account: Account, ledger: Ledger) -> Callable[[Job], Work]:
    return lambda job: way(Till(job, account, ledger))


def books(account: Account, ledger: Ledger) -> dict[str, str]:
    return {"paid": str(len(account.movements())), "in the ledger": str(len(ledger.entries()))}


def paid(switches: str) -> dict[str, str]:
    """How often was paid, under every fault: the scenario's rows."""
    return {str(fault): how_often(pay(WAYS[switches], fault)) for fault in FAULTS}


def how_often(story: Story) -> str:
    """How often was paid in the end."""
    count = story.seen["paid"]
    return f"paid {count} time{'' if count == '1' else 's'}"


def promises(*ways: Way) -> "pd.DataFrame":
    """The two halves of *once*, under all faults: a line a promise, a column a way; in how many of them it broke."""
    import pandas as pd

    def judged(way: Way) -> list[str]:
        counts = [int(pay(way, fault).seen["paid"]) for fault in FAULTS]
        broken = [sum(count > 1 for count in counts), sum(count < 1 for count in counts)]
        return [f"VIOLATED in {n} of {len(counts)}" if n else "holds" for n in broken]

    rows = ["a customer pays at most once", "a job that is SUCCEEDED was paid"]
    return pd.DataFrame({title(way): judged(way) for way in ways}, index=rows)


# The same with a process that is really killed


class NotSent(JobslabError):
    """Another process can't be told of this way: it has no name there."""


def kill(way: Way, point: str) -> Story:
    """Worker A as a process of its own, killed by SIGKILL at this point; worker B does the job again, here.

    Raises NotReached where the way has no such point, and NotSent for a way that is not in WAYS.
    """
    switches, account = name_of(way), shared().account()
    with (
        tempfile.TemporaryDirectory(prefix="jobslab-") as folder,
        open_store(Contract(), f"{folder}/jobs.db", settings=LAB, kinds=(KIND,)) as store,
        closing(Ledger(Path(folder) / "ledger.db")) as ledger,
    ):
        store.submit("job-1", KIND, {}, now=0)
        victim = {"folder": folder, "url": shared().url, "account": account.name, "switches": switches, "point": point}
        kill_a_worker(victim)
        scene = Scene(store, work(way, account, ledger), partial(books, account, ledger))
        return Story(Fault("killed", point), (scene.line("A", f"{point}: is killed"), *again(scene)))


def name_of(way: Way) -> str:
    """The switches by which the other process finds it."""
    for switches, other in WAYS.items():
        if other is way:
            return switches
    raise NotSent(f"only these ways can be sent to another process: {', '.join(map(title, WAYS.values()))}")


def kill_a_worker(told: dict[str, str]) -> None:
    """Start it, wait until it says that it has come to its point, and kill it."""
    with child.start("jobslab.lab.paying", json.dumps(told)) as worker:
        if came_to := child.line(worker):
            worker.kill()
    if worker.returncode == 0:  # it has gone all the way
        raise NotReached(told["point"])
    assert came_to == told["point"], "the worker ended before it could be killed; what it says of itself stands above"


def main(folder: str, url: str, account: str, switches: str, point: str) -> None:
    """The worker: it works up to its point, says so, and waits there for ever."""
    with (
        httpx2.Client(base_url=url, timeout=PATIENT_SECONDS) as http,
        open_store(None, f"{folder}/jobs.db", settings=LAB, kinds=(KIND,)) as store,
        closing(Ledger(Path(folder) / "ledger.db")) as ledger,
    ):
        customer = Account(http, account)
        first = Attempt(Scene(store, work(WAYS[switches], customer, ledger), dict), "A", 0)
        while (now := first.goes_on()) is not None:
            if now == point:
                print(point, flush=True)
                sys.stdin.read()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
