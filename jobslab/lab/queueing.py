"""Where does an accepted job get lost, when a broker stands beside the table?  Three stories, each enacted and counted.

    two_writes(order)       the process that accepts dies at every point, the broker is killed, the consumer is quick
    acknowledging(when)     the consumer dies at every point
    poison(way)             a message that no consumer can do anything with

Each answers for its steps, in words.  The broker is real and so is what it does; time in the table is handed in.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.clock import counted
from jobslab.errors import JobslabError
from jobslab.job import Error, Job
from jobslab.lab.broker import Broker, Dead, Limits, NotConfirmed, a_broker
from jobslab.lab.outbox import (
    AFTER,
    AT_ONCE,
    AT_THE_END,
    BEFORE,
    BETWEEN,
    POINTS,
    WHEN_CLAIMED,
    Desk,
    Way,
    carried_out,
    consume,
    message_first,
    relay,
    row_and_line,
    row_first,
    with_outbox,
)
from jobslab.lab.properties import ENDS, KEPT
from jobslab.rerun import CanNotRerun, rerun
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from jobslab.sweeper import sweep

if TYPE_CHECKING:
    import pandas as pd

KEY = "k1"
LATE = LAB.lease_seconds + 1  # when everybody comes who recovers something: every lease is over
PATIENCE_SECONDS = 20  # for a redelivery, on a slow machine
AGAIN_SECONDS = 0.05  # how long the broker waits for a consumer that has died


class UnknownWay(JobslabError):
    """A story can't be told in this way."""


def known(how: str, names: Iterable[str]) -> None:
    """Is it one of these names?  Raises UnknownWay, which lists them."""
    names = tuple(names)
    if how not in names:
        raise UnknownWay(f"there is no {how!r} here; choose one of: {', '.join(map(repr, names))}")


class Scene:
    """One table and one broker with nothing in them, and what was done with them so far."""

    def __init__(self, broker: Broker, has_outbox: bool) -> None:
        self.store: Store = open_store(settings=LAB)
        if has_outbox:
            with_outbox(self.store)
        self.has_outbox = has_outbox
        self.broker = broker
        self.desk = Desk(self.store, broker, counted())
        self.done: list[str] = []  # the id of the job, each time that its work was done
        self.told: list[str] = []  # what became of each message

    def work(self, job: Job) -> None:
        self.done.append(job.id)

    def consume(self, now: float, dies: str = "", acknowledges: str = AT_THE_END) -> None:
        """A consumer does all there is to do, or dies with the first message."""
        while (delivery := self.broker.fetch(PATIENCE_SECONDS if self.waits() else 0)) is not None:
            process = consume(self.store, self.broker, delivery, self.work, now, acknowledges)
            self.told.append(carried_out(process, dies) or f"{delivery.message.job}: {dies}, and dies")
            if dies:
                return

    def waits(self) -> bool:
        """Is there a message that is not dead, in somebody's hand or in nobody's?"""
        return self.broker.depth().oldest is not None

    def recover(self) -> None:
        """Later everybody comes who mends something: a sweeper, the relay, a consumer that does not die."""
        sweep(self.store, now=LATE)
        self.relay(LATE)
        self.consume(LATE)

    def relay(self, now: float) -> None:
        if self.has_outbox:
            carried_out(relay(self.store, self.broker, now))

    def ended(self, id: str | None) -> str:
        """What the client sees at the end, and how often the work was done."""
        return f"{state(self.store, id)}, done {times(self.done.count(str(id)))}"

    def messages(self, id: str | None) -> str:
        """What is to be said of the messages that were too many."""
        mine = sum(told.startswith(f"{id}: ") for told in self.told)
        twice = f", told {times(mine)}" if mine > 1 else ""
        return twice + (", and a message of no job" if len(self.told) > mine else "")


def state(store: Store, id: str | None) -> str:
    job = None if id is None else store.get(id, now=LATE)
    return job.state if isinstance(job, Job) else "404"


def times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


@contextmanager
def a_scene(broker: Broker, has_outbox: bool) -> Iterator[Scene]:
    scene = Scene(broker, has_outbox)
    with closing(scene.store):
        yield scene


# Two writes

ORDERS: dict[str, Way] = {"row first": row_first, "message first": message_first, "outbox": row_and_line}
NO_FAULT, QUICK, DEAD_BROKER = "no fault", "the consumer comes in between", "the broker is dead for a while"


def two_writes(order: str) -> Mapping[str, str]:
    """What became of the one job that a client submits, again with the same key until it is answered; by fault.
    Raises UnknownWay, NoBroker."""
    known(order, ORDERS)
    with a_broker() as broker:
        faults: dict[str, Callable[[Scene, Way], str | None]] = {
            NO_FAULT: lambda scene, way: accepted(scene, way),
            f"crash: {BEFORE}": lambda scene, way: accepted(scene, way, BEFORE),
            f"crash: {BETWEEN}": lambda scene, way: accepted(scene, way, BETWEEN),
            f"crash: {AFTER}": lambda scene, way: accepted(scene, way, AFTER),
            QUICK: quick_consumer,
            DEAD_BROKER: dead_broker,
        }
        return {name: one_job(broker, order, fault) for name, fault in faults.items()}


def one_job(broker: Broker, order: str, fault: Callable[[Scene, Way], str | None]) -> str:
    with a_scene(broker, order == "outbox") as scene:
        id = fault(scene, ORDERS[order])
        scene.recover()
        return scene.ended(id) + scene.messages(id)


def accepted(scene: Scene, way: Way, dies: str = "") -> str | None:
    """The id that the client is told: at the second POST, where the process dies at the first."""
    return carried_out(way(scene.desk, KEY), dies) or carried_out(way(scene.desk, KEY))


def quick_consumer(scene: Scene, way: Way) -> str | None:
    """Nobody dies; a consumer comes by between the two writes."""
    process = way(scene.desk, KEY)
    while next(process) != BETWEEN:
        pass
    scene.consume(0)
    return carried_out(process)


def dead_broker(scene: Scene, way: Way) -> str | None:
    """The broker is killed, and comes back after the first POST."""
    scene.broker.kill()
    try:
        told = carried_out(way(scene.desk, KEY))
    except NotConfirmed:
        told = None
    scene.broker.restart()
    return told or carried_out(way(scene.desk, KEY))


# Acknowledging

WHEN = (AT_ONCE, WHEN_CLAIMED, AT_THE_END)


def acknowledging(when: str) -> Mapping[str, str]:
    """What became of the job whose first consumer dies at each point, having acknowledged at this moment or not yet.
    Raises UnknownWay, NoBroker."""
    known(when, WHEN)
    with a_broker(Limits(ack_wait_seconds=AGAIN_SECONDS)) as broker:
        return {f"crash: {point}" if point else NO_FAULT: died(broker, when, point) for point in ("", *POINTS)}


def died(broker: Broker, when: str, point: str) -> str:
    with a_scene(broker, has_outbox=True) as scene:
        id = accepted(scene, row_and_line)
        scene.consume(0, point, when)
        scene.recover()
        return scene.ended(id)


# Poison

FETCHES = 12  # after which we stop looking
UNREADABLE = {"table": "orders", "format": "new"}


class Unreadable(Exception):
    """The consumer is older than who wrote the job, and does not understand it."""


class Care(NamedTuple):
    """What is done about a message that every consumer gives back."""

    max_deliver: int = -1  # no limit
    wait_seconds: float = 0  # until the broker is to bring it again
    buries: bool = False  # is a dead letter's job ended?


CARE = {
    "for ever": Care(),
    "wait": Care(wait_seconds=60),  # longer than we look
    "limit": Care(max_deliver=3),
    "limit, buried": Care(max_deliver=3, buries=True),
}


def poison(way: str) -> Mapping[str, str]:
    """A job that the consumer can't read, before two that it can.  Raises UnknownWay, NoBroker."""
    known(way, CARE)
    care = CARE[way]
    with a_broker(Limits(max_deliver=care.max_deliver)) as broker, a_scene(broker, has_outbox=True) as scene:
        poisoned, *good = submitted(scene)
        deliveries = deliver(scene, 0, is_new=False, wait_seconds=care.wait_seconds)
        told = {
            "deliveries of the poison": str(deliveries[poisoned]),
            "the two jobs behind it": ", ".join(state(scene.store, id) for id in good),
            "dead letters": str(len(broker.dead())),
        }
        if care.buries:
            bury(scene.store, broker.dead(), LATE)
        told["the job of the poison"] = seen(scene.store, poisoned)
        told["run again, when the consumer is mended"] = run_again(scene, poisoned)
        return told


def submitted(scene: Scene) -> list[str]:
    """The ids of three jobs, the first of which is poison, and the broker is told of them."""
    all_params: tuple[dict[str, Any], ...] = (UNREADABLE, {"table": "orders"}, {"table": "orders"})
    ids = [scene.desk.next_id() for _ in all_params]
    for id, params in zip(ids, all_params):
        scene.store.submit(id, "export", params, now=0)
    scene.relay(0)
    return ids


def deliver(scene: Scene, now: float, is_new: bool, wait_seconds: float = 0) -> dict[str, int]:
    """Fetch until nothing comes, or we have seen enough; how often each job was delivered.  What the consumer can't
    read it gives back, to be brought again at once or after a wait."""
    count: dict[str, int] = {}
    for _ in range(FETCHES):
        delivery = scene.broker.fetch()
        if delivery is None:
            break
        count[delivery.message.job] = delivery.deliveries
        try:
            read(scene.store, delivery.message.job, now, is_new)
        except Unreadable:
            scene.broker.nak(delivery, wait_seconds)
        else:
            carried_out(consume(scene.store, scene.broker, delivery, scene.work, now))
    return count


def read(store: Store, id: str, now: float, is_new: bool) -> None:
    """Raises Unreadable, as old code does with something new: before it has claimed anything."""
    job = store.get(id, now=now)
    if not is_new and isinstance(job, Job) and '"new"' in job.params:
        raise Unreadable(id)


def bury(store: Store, dead: tuple[Dead, ...], now: float) -> None:
    """End the jobs of dead letters: who polls must hear of it.  Each is claimed like any job; the letter stays."""
    for letter in dead:
        reply = store.claim(letter.message.job, "undertaker", now=now)
        if reply.job is not None:
            error = Error("dead letter", f"no consumer acknowledged it in {letter.deliveries} deliveries")
            store.fail(reply.job.id, reply.job.attempt, "undertaker", error, now=now)


def seen(store: Store, id: str) -> str:
    """What a GET shows of the job."""
    job = store.get(id, now=LATE)
    if not isinstance(job, Job):
        return "404"
    error = f"; {json.loads(job.error)['type']}" if job.error else ""
    return f"{job.state}; attempt {job.attempt}{error}"


def run_again(scene: Scene, id: str) -> str:
    """The job is run again as a new one, by a consumer that can read it, and its dead letter is taken away."""
    try:
        again = rerun(scene.store, id, scene.desk.next_id(), now=LATE).job
    except CanNotRerun:
        return "refused: it is not over"
    for letter in scene.broker.dead():
        scene.broker.take_away(letter)
    scene.relay(LATE)
    deliver(scene, LATE, is_new=True)
    return f"{seen(scene.store, again.id)}; rerun of {again.rerun_of}"


# As tables


def table(story: Callable[[str], Mapping[str, str]], *how: str) -> "pd.DataFrame":
    """The story in each of these ways: a column a way, a row a step."""
    import pandas as pd

    return pd.DataFrame({one: story(one) for one in how})


def promises(*orders: str) -> "pd.DataFrame":
    """What `two_writes` keeps, under all faults: a line a promise, a column an order; in how many of them it broke."""
    import pandas as pd

    def judged(order: str) -> list[str]:
        told = list(two_writes(order).values())
        broken = (
            sum("404" in seen for seen in told),
            sum("SUCCEEDED" not in seen for seen in told),
            sum("no job" in seen for seen in told),
        )
        return [f"VIOLATED in {n} of {len(told)}" if n else "holds" for n in broken]

    rows = [KEPT, ENDS, "every message has its job"]
    return pd.DataFrame({order: judged(order) for order in orders}, index=rows)


def letters() -> "pd.DataFrame":
    """The dead letters that the poison leaves, and what the table says of each one's job: a row a letter."""
    import pandas as pd

    with a_broker() as broker, a_scene(broker, has_outbox=True) as scene:
        submitted(scene)
        deliver(scene, 0, is_new=False)
        rows = [(letter.number, letter.deliveries, *job_of(scene.store, letter)) for letter in broker.dead()]
    columns = ["message", "deliveries", "job", "params", "state", "attempt"]
    return pd.DataFrame(rows, columns=columns, index=range(1, len(rows) + 1))


def job_of(store: Store, letter: Dead) -> tuple[str, str, str, int]:
    job = store.get(letter.message.job, now=LATE)
    assert isinstance(job, Job), "every message here has its job"
    return job.id, job.params, job.state, job.attempt
