"""What if a job is a row here and a message there?  Two writes are no transaction; an outbox makes them one.

Who writes the row first and then tells the broker may die in between, and nobody ever runs the job.  Who tells the
broker first may die too, and there is a message of no job; so consumers throw such messages away, and then one that was
quicker than its row is thrown away as well.  An outbox is a table beside `jobs`: the job's row, and a line that says
*tell the broker*, are written in one transaction, here by a trigger; a relay tells the broker afterwards.

A relay may die after the broker's confirmation and before it crosses the line off; then the message is sent twice.
So a message does not tell a consumer to do a job.  It says that there may be one to claim, and the claim lets one in.

The three ways to accept a job, the relay and the consumer are generators: each yields at each point where its process
may die, and `carried_out` runs it, up to there or to its end.  The triggers are SQLite's.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import NamedTuple, TypeVar, cast

from jobslab.errors import StoreError
from jobslab.job import Job, State
from jobslab.lab.again import NotReached
from jobslab.lab.broker import Broker, Delivery, NotConfirmed
from jobslab.stores import Store

T = TypeVar("T")

# Whatever makes a job QUEUED writes a line: a submit, a retry with its wait, a sweeper.  `due` is the job's own time.
OUTBOX = (
    """CREATE TABLE IF NOT EXISTS outbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL,
  due DOUBLE PRECISION NOT NULL
)""",
    """CREATE TRIGGER IF NOT EXISTS tell_of_a_submit AFTER INSERT ON jobs
WHEN NEW.state = 'QUEUED'
BEGIN
  INSERT INTO outbox (job_id, due) VALUES (NEW.id, NEW.run_at);
END""",
    """CREATE TRIGGER IF NOT EXISTS tell_of_a_requeue AFTER UPDATE OF state ON jobs
WHEN NEW.state = 'QUEUED' AND OLD.state <> 'QUEUED'
BEGIN
  INSERT INTO outbox (job_id, due) VALUES (NEW.id, NEW.run_at);
END""",
)


class Line(NamedTuple):
    """One line of the outbox: the broker is to be told of this job, not before it is due."""

    n: int
    job: str
    due: float


def with_outbox(store: Store) -> Store:
    """The store, which has an outbox from now on.  Raises StoreError where it is not SQLite's."""
    if store.database.migrated:
        raise StoreError("this outbox is made for SQLite; on PostgreSQL write its triggers into a migration")
    with store.database.write() as db:
        for statement in OUTBOX:
            db.execute(statement)
    return store


def outbox(store: Store) -> tuple[Line, ...]:
    """What the broker is still to be told, in order."""
    with store.database.read() as db:
        return tuple(Line(*row) for row in db.execute("SELECT n, job_id, due FROM outbox ORDER BY n"))


def cross_off(store: Store, line: Line) -> None:
    with store.database.write() as db:
        db.execute("DELETE FROM outbox WHERE n = :n", {"n": line.n})


# Accepting a job: three ways

BEFORE, BETWEEN, AFTER = "before both", "between the two writes", "after both, before the answer"


class Desk(NamedTuple):
    """Where jobs are accepted: a table, a broker beside it, and ids."""

    store: Store
    broker: Broker
    next_id: Callable[[], str]

    def submit(self, id: str, key: str) -> tuple[str, bool]:
        """The row is written, or found by its key; the job's id, and whether it is new."""
        submitted = self.store.submit(id, "export", {"table": "orders"}, key=key, now=0)
        return submitted.job.id, not submitted.replayed


Accepting = Generator[str, None, str]  # returns the id that the client is told with its 202
Way = Callable[[Desk, str], Accepting]


def row_first(desk: Desk, key: str) -> Accepting:
    yield BEFORE
    id, new = desk.submit(desk.next_id(), key)
    yield BETWEEN
    if new:
        desk.broker.publish(id)
    yield AFTER
    return id


def message_first(desk: Desk, key: str) -> Accepting:
    yield BEFORE
    id = desk.next_id()
    desk.broker.publish(id)
    yield BETWEEN
    id, _ = desk.submit(id, key)
    yield AFTER
    return id


def row_and_line(desk: Desk, key: str) -> Accepting:
    """With an outbox: one write, whose transaction has both; what comes after it may fail, or never come."""
    yield BEFORE
    id, _ = desk.submit(desk.next_id(), key)
    yield BETWEEN
    with suppress(NotConfirmed):  # the line stays, and the relay comes again
        yield from relay(desk.store, desk.broker, 0)
    return id


def relay(store: Store, broker: Broker, now: float) -> Generator[str, None, int]:
    """Tell the broker of what is due, and cross off what it has confirmed: how many lines.  Raises NotConfirmed."""
    due = [line for line in outbox(store) if line.due <= now]
    for line in due:
        broker.publish(line.job, now)
        yield AFTER
        cross_off(store, line)
    return len(due)


# Doing a job that a message tells of

HAS_MESSAGE, HAS_CLAIMED, HAS_DONE, HAS_REPORTED = POINTS = (
    "it has the message",
    "it has claimed the job",
    "it has done the work",
    "it has reported",
)
AT_ONCE, WHEN_CLAIMED, AT_THE_END = "at once", "when claimed", "at the end"

NOT_DUE_SECONDS = 1  # after which a message comes again whose job was not due

Work = Callable[[Job], None]


def consume(
    store: Store, broker: Broker, delivery: Delivery, work: Work, now: float, acknowledges: str = AT_THE_END
) -> Generator[str, None, str]:
    """Do what the message in hand asks for; what became of it, in words.

    A claim that is refused ends it: the job is done, or another's, or not there.  To throw the message away is safe,
    since whatever puts a job back into the queue writes a new line into the outbox.  But a job that is QUEUED and not
    due, by a clock that is behind the relay's, has no other message."""
    id = delivery.message.job
    if acknowledges == AT_ONCE:
        broker.ack(delivery)
    yield HAS_MESSAGE
    reply = store.claim(id, "consumer", now=now)
    if reply.state == State.QUEUED and acknowledges != AT_ONCE:
        broker.nak(delivery, NOT_DUE_SECONDS)
        return f"{id}: given back, not due yet"
    if acknowledges == WHEN_CLAIMED or (not reply.accepted and acknowledges == AT_THE_END):
        broker.ack(delivery)
    if reply.job is None:
        return f"{id}: thrown away, {'no such job' if reply.state is None else f'it is {reply.state}'}"
    yield HAS_CLAIMED
    work(reply.job)
    yield HAS_DONE
    store.succeed(reply.job.id, reply.job.attempt, "consumer", now=now)
    yield HAS_REPORTED
    if acknowledges == AT_THE_END:
        broker.ack(delivery)
    return f"{id}: done"


# Processes that die


def carried_out(process: Generator[str, None, T], dies: str = "") -> T | None:
    """What the process returns; None where it dies, at this point.  Raises NotReached if it never comes there."""
    while True:
        try:
            point = next(process)
        except StopIteration as end:
            if dies:
                raise NotReached(f"the process never came to this point: {dies}") from None
            return cast(T, end.value)
        if point == dies:
            process.close()
            return None
