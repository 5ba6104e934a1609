"""Which promises does a broker make, and which are left to us?  NATS with JetStream, behind a handful of plain calls.

    with a_broker() as broker:
        broker.publish("job-1")          Confirmed: it is on the broker's disk; NotConfirmed: it may be, or not
        delivery = broker.fetch()        a message in hand, or None
        broker.ack(delivery)             done with it; nak(delivery): bring it again, at once or later
        broker.depth(), broker.dead()    what waits, what is in hand, how old; what was delivered too often

Nothing here imitates a broker: each answer is read from the server.  Its own promises are

    a message that was confirmed is kept when the broker is killed
    a message that is not acknowledged within `ack_wait_seconds` is delivered again, whoever is to blame
    no message is delivered more than `max_deliver` times; then an advisory says so, and a second stream keeps it
    two publishes with one `once` within `window_seconds` are one message

and these are not among them: that work is done once; that a count of deliveries outlives a kill (the broker writes it
down a moment later, and a dead letter may come to life); that a redelivery comes in its turn (it comes first).

Another broker makes other promises.  RabbitMQ delivers again when the consumer's connection is gone, and moves a dead
letter to a queue that one names; here it stays where it was, and the advisory has its number.  A stream of Redis counts
deliveries and has no limit.  SQS has a limit, and knows a publish again for five minutes, on its FIFO queues alone.
"""

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jobslab.lab.brokerprocess import HOW_TO_GET_IT, BrokerError, BrokerProcess, NoBroker

T = TypeVar("T")

JOBS, DEAD, WORKERS = "JOBS", "DEAD", "workers"  # two streams, and the consumer that all workers share
SUBJECT = "jobs"
ADVISORY = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{JOBS}.{WORKERS}"
NEXT = f"$JS.API.CONSUMER.MSG.NEXT.{JOBS}.{WORKERS}"
ANSWER_SECONDS = 10.0  # for an answer of the broker, on a busy machine


class NotConfirmed(BrokerError):
    """The broker did not say that it has the message: it may have it, or not."""


class Limits(NamedTuple):
    """What the broker is told about its consumers and publishers."""

    ack_wait_seconds: float = 60  # how long a message may be in hand without a word
    max_deliver: int = 3  # -1: no limit
    window_seconds: float = 120  # within which it knows a publish again


class Confirmed(NamedTuple):
    """The broker has it, under this number; `duplicate`: it had it already."""

    number: int
    duplicate: bool


class Message(NamedTuple):
    """What is sent: which job there is something to do for, and when that was said."""

    job: str
    at: float


class Delivery(NamedTuple):
    """A message in hand."""

    message: Message
    number: int
    deliveries: int  # this one included
    reply: str  # where to say what became of it


class Depth(NamedTuple):
    """How much there is to do, as the broker counts it."""

    waiting: int  # not delivered yet
    in_hand: int  # delivered, and not acknowledged or brought back
    oldest: Message | None  # of those: not done, and not dead


class Dead(NamedTuple):
    """A message that was delivered as often as is allowed, and never acknowledged."""

    message: Message
    number: int
    deliveries: int
    advisory: int  # its number in the stream of the dead


class Seen(NamedTuple):
    """Where the messages are, by their numbers."""

    numbers: list[int]  # all that there are
    delivered: int  # up to here each was delivered once at least
    in_hand: int  # how many of those are in somebody's hand, or will be again

    @property
    def waiting(self) -> list[int]:
        return [number for number in self.numbers if number > self.delivered]

    @property
    def given_up(self) -> int:
        """How many are neither waiting nor in hand; which ones, the advisories say."""
        return len(self.numbers) - len(self.waiting) - self.in_hand


class Loop:
    """An event loop in a thread of its own, so that what is asynchronous can be called plainly."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Broker:
    """A server and one connection to it.  `close` it, or use `a_broker`."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        """Raises NoBroker, BrokerError."""
        try:
            import nats
        except ImportError as wrong:
            raise NoBroker(HOW_TO_GET_IT) from wrong
        self._nats = nats
        self.limits = limits or Limits()
        self.process = BrokerProcess(folder)
        self._loop = Loop()
        self._connection: Any = None
        try:
            self._connect()
            self._run(self._declare())
        except BaseException:
            self.close()
            raise

    # For who publishes

    def publish(self, job: str, at: float = 0, once: str | None = None) -> Confirmed:
        """Send it and wait until the broker has it on its disk.  `once`: a name by which the broker knows a second
        publish of the same within its window.  Raises NotConfirmed."""
        headers = {"Nats-Msg-Id": once} if once is not None else None
        try:
            told = self._run(self._publish(json.dumps(Message(job, at)).encode(), headers))
        except BrokerError as wrong:
            raise NotConfirmed(f"the broker did not confirm the message of {job}: it may have it, or not") from wrong
        return Confirmed(told.seq, bool(told.duplicate))

    # For who consumes

    def fetch(self, wait_seconds: float = 0) -> Delivery | None:
        """The next message, which is in hand then; None where none comes within this time."""
        if not wait_seconds and self._seen().waiting:  # the consumer hears of a message a moment after its publisher
            wait_seconds = ANSWER_SECONDS
        wish = {"batch": 1, **({"expires": round(wait_seconds * 1e9)} if wait_seconds else {"no_wait": True})}
        told = self._ask(NEXT, wish, ANSWER_SECONDS + wait_seconds)
        if told.headers and "Status" in told.headers:  # a word of the broker's, and no message
            return None
        seen = told.metadata
        return Delivery(message_of(told.data), seen.sequence.stream, seen.num_delivered, told.reply)

    def ack(self, delivery: Delivery) -> None:
        """Done with it: the broker forgets it.  It has when this returns."""
        self._ask(delivery.reply, b"+ACK")

    def nak(self, delivery: Delivery, wait_seconds: float = 0) -> None:
        """Not done: bring it again, before everything that waits, or after some time."""
        wait = b' {"delay": %d}' % round(wait_seconds * 1e9) if wait_seconds else b""
        self._ask(delivery.reply, b"-NAK" + wait)

    # For who looks

    def depth(self) -> Depth:
        """How much there is to do.  What is dead is not."""
        seen = self._seen()
        dead = {letter.number for letter in self._dead(seen)}
        oldest = next((number for number in seen.numbers if number not in dead), None)
        return Depth(len(seen.waiting), seen.in_hand, None if oldest is None else message_of(self._get(JOBS, oldest)))

    def messages(self) -> int:
        """How many messages the broker has, dead ones included."""
        return len(self._seen().numbers)

    def dead(self) -> tuple[Dead, ...]:
        """The dead letters, by the broker's own advisories, oldest first; those that were taken away are no more."""
        return self._dead(self._seen())

    def take_away(self, dead: Dead) -> None:
        """Remove a dead letter, and its advisory: somebody has seen to it."""
        self._run(self._jetstream.delete_msg(JOBS, dead.number))
        self._run(self._jetstream.delete_msg(DEAD, dead.advisory))

    # The server's life

    def kill(self) -> None:
        """The server dies.  Until `restart` nothing is confirmed and nothing comes."""
        self.process.kill()
        self._disconnect()

    def restart(self) -> None:
        """The server is started again on what it has kept."""
        self._disconnect()
        self.process.stop()
        self.process.start()
        self._connect()

    def close(self) -> None:
        """The end of it; what it has kept is nobody's any more, so that there is nothing to end in order."""
        self._disconnect()
        self.process.kill()
        self._loop.close()

    # How it is done

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What comes of it.  Raises BrokerError, whatever the client and the system call it."""
        try:
            return self._loop.run(coroutine)
        except (self._nats.errors.Error, OSError) as wrong:
            raise BrokerError(f"the broker did not do what it was asked to ({wrong}); is it running?") from wrong

    def _connect(self) -> None:
        async def quiet(wrong: Exception) -> None:
            """Who calls is told; a second word on stderr helps nobody."""

        # One try, and another: a server that listens answers, and the client by itself would try for two minutes.
        tries = {"max_reconnect_attempts": 1, "reconnect_time_wait": 0.1, "allow_reconnect": False}
        self._connection = self._run(
            self._nats.connect(
                self.process.url, token=self.process.token, error_cb=quiet, connect_timeout=ANSWER_SECONDS, **tries
            )
        )
        self._jetstream = self._connection.jetstream(timeout=ANSWER_SECONDS)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._run(self._connection.close())

    async def _declare(self) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy

        queue = RetentionPolicy.WORK_QUEUE  # what is acknowledged is forgotten
        window = self.limits.window_seconds
        await self._jetstream.add_stream(name=JOBS, subjects=[SUBJECT], retention=queue, duplicate_window=window)
        await self._jetstream.add_stream(name=DEAD, subjects=[ADVISORY])
        consumer = ConsumerConfig(
            durable_name=WORKERS,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self.limits.ack_wait_seconds,
            max_deliver=self.limits.max_deliver,
        )
        await self._jetstream.add_consumer(JOBS, consumer)

    async def _publish(self, body: bytes, headers: dict[str, str] | None) -> Any:
        return await self._jetstream.publish(SUBJECT, body, headers=headers)

    def _get(self, stream: str, number: int) -> bytes:
        return bytes(self._run(self._jetstream.get_msg(stream, number)).data or b"")

    def _ask(self, subject: str, body: bytes | dict[str, Any] = b"", seconds: float = ANSWER_SECONDS) -> Any:
        """What the broker answers.  Raises BrokerError where it does not."""
        said = body if isinstance(body, bytes) else json.dumps(body).encode()
        # "Old style" is an inbox for this one answer: a message keeps its subject, by which no shared one knows it.
        return self._run(self._connection.request(subject, said, timeout=seconds, old_style=True))

    def _seen(self) -> "Seen":
        """Both streams' messages by number.  The broker's own count of what waits lags behind what it has confirmed."""
        told = json.loads(self._ask(f"$JS.API.CONSUMER.INFO.{JOBS}.{WORKERS}").data)
        return Seen(self._numbers(JOBS), told["delivered"]["stream_seq"], told["num_ack_pending"])

    def _dead(self, seen: "Seen") -> tuple[Dead, ...]:
        """An advisory comes a moment after its message is given up: those that must come are waited for."""
        enough = time.monotonic() + ANSWER_SECONDS
        while len(found := self._letters(seen)) < seen.given_up and time.monotonic() < enough:
            time.sleep(0.005)
        return tuple(found.values())

    def _letters(self, seen: "Seen") -> dict[int, Dead]:
        """By their numbers; one that came to life when the broker was killed may have died twice."""
        found = {}
        for advisory in self._numbers(DEAD):
            told = json.loads(self._get(DEAD, advisory))
            number = told["stream_seq"]
            if number in seen.numbers:
                found[number] = Dead(message_of(self._get(JOBS, number)), number, told["deliveries"], advisory)
        return found

    def _numbers(self, stream: str) -> list[int]:
        """The numbers of the messages that this stream has."""
        state = json.loads(self._ask(f"$JS.API.STREAM.INFO.{stream}", {"deleted_details": True}).data)["state"]
        gone = set(state.get("deleted") or ())  # an empty stream's first number is that of the next message
        return [n for n in range(state["first_seq"], state["last_seq"] + 1) if n not in gone]


def message_of(body: bytes) -> Message:
    return Message(*json.loads(body))


@contextmanager
def a_broker(limits: Limits | None = None) -> Iterator[Broker]:
    """A new broker, gone with its messages at the end.  Raises NoBroker, BrokerError."""
    with tempfile.TemporaryDirectory(prefix="jobslab-") as folder:
        broker = Broker(Path(folder), limits)
        try:
            yield broker
        finally:
            broker.close()
