"""How does a worker turn a queued job into reports?  A worker is a frozen value and three functions.

    decide(worker)                   what it asks of the store next           pure
    deliver(store, request, now)     the request as one transaction           the only step that touches anything
    observe(worker, request, reply)  what it knows after the reply            pure

`run`, a notebook's "next step" and the explorer compose the same three.  Because deciding and delivering are apart, a
report can be late, lost or delivered twice without a second model of the worker.
"""

import json
import logging
import random
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, NamedTuple

from jobslab.clock import Clock, SystemClock
from jobslab.job import Error, Job, Reply
from jobslab.settings import Settings
from jobslab.stores import Store
from jobslab.sweeper import sweep

log = logging.getLogger(__name__)


class Request(NamedTuple):
    """A verb of the store with its arguments, not yet carried out: a message that can be late."""

    verb: str
    arguments: tuple[tuple[str, Any], ...]

    def argument(self, name: str) -> Any:
        return dict(self.arguments)[name]


class News(NamedTuple):
    """What the task has to tell: the verb of a report, and what goes with it."""

    verb: str
    arguments: tuple[tuple[str, Any], ...] = ()


class Worker(NamedTuple):
    """What one worker believes.  The store may know better; that is what fencing is for."""

    name: str
    lease_seconds: float | None = None  # None: the store's setting
    in_one: bool = False  # pick and claim in one transaction, as a real worker does
    picked: str | None = None  # the job that it looked at and has not claimed yet
    job_id: str | None = None  # the job that it believes to run ...
    attempt: int | None = None  # ... and as which attempt
    news: News | None = None  # what it has to report and has not yet
    asked_to_stop: bool = False

    @property
    def working(self) -> bool:
        return self.job_id is not None


def idle(worker: Worker) -> Worker:
    """The same worker, with nothing in hand."""
    return Worker(worker.name, worker.lease_seconds, worker.in_one)


def tell(worker: Worker, news: News) -> Worker:
    """The worker with something to report.  One that was asked to stop says that it has, instead of going on."""
    going_on = news.verb in ("renew", "progress")
    return worker._replace(news=News("stop") if worker.asked_to_stop and going_on else news)


def decide(worker: Worker) -> Request | None:
    """What the worker asks of the store next; None: it works, and has nothing to say yet."""
    lease = ("lease_seconds", worker.lease_seconds)
    if worker.news is not None:
        mine = (("id", worker.job_id), ("attempt", worker.attempt), ("worker", worker.name))
        renewal = (lease,) if worker.news.verb == "renew" else ()
        return Request(worker.news.verb, mine + renewal + worker.news.arguments)
    if worker.working:
        return None
    if worker.picked is not None:
        return Request("claim", (("id", worker.picked), ("worker", worker.name), lease))
    return Request("claim_next", (("worker", worker.name), lease)) if worker.in_one else Request("pick", ())


def deliver(store: Store, request: Request, now: float | None = None) -> Any:
    """The store's answer: a Job or None for `pick`, a Reply (None: nothing is due) for all others."""
    return getattr(store, request.verb)(**dict(request.arguments), now=now)


def observe(worker: Worker, request: Request, reply: Any) -> Worker:
    """The worker after the answer to its request."""
    if request.verb == "pick":
        return worker._replace(picked=reply and reply.id)
    if request.verb in ("claim", "claim_next"):
        return claimed(worker, reply)
    if (request.argument("id"), request.argument("attempt")) != (worker.job_id, worker.attempt):
        return worker  # the answer to a report of an attempt that it no longer believes in
    return reported(worker, request, reply)


def claimed(worker: Worker, reply: Reply | None) -> Worker:
    if reply is None or reply.job is None:
        return idle(worker)
    return idle(worker)._replace(job_id=reply.job.id, attempt=reply.job.attempt)


def reported(worker: Worker, request: Request, reply: Reply) -> Worker:
    if reply.accepted and request.verb in ("renew", "progress"):
        return worker._replace(news=None, asked_to_stop=reply.cancel_requested)
    if reply.refused_by == "attempts_left":
        # Whether another attempt is left is the store's to say: this was the last one, and so the error is final.
        return worker._replace(news=News("fail", (("error", request.argument("error")),)))
    return idle(worker)


def step(store: Store, worker: Worker, now: float | None = None) -> Worker:
    """Decide, deliver, observe, once; a worker with nothing to say stays as it is."""
    request = decide(worker)
    return worker if request is None else observe(worker, request, deliver(store, request, now))


def claim(store: Store, worker: Worker) -> tuple[Worker, Job | None]:
    """The worker, idle so far, after it has asked for work, and the job that it has in hand now."""
    request = decide(worker)
    assert request is not None, "an idle worker asks for work"
    reply = deliver(store, request)
    return observe(worker, request, reply), reply and reply.job


# What tasks raise, and what a task is


class Permanent(Exception):
    """The task can't be done, and trying again will not help: the job fails with this type and message."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.error = Error(type, message)


class Transient(Exception):
    """The task could not be done this time: the job is tried again while attempts are left."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.error = Error(type, message)


# A task works in chunks: it yields its progress after each and returns the job's result.  Between two chunks the
# worker reports, renews its lease, and ends the task when the job is no longer its own.
Task = Callable[[Job], Generator[float, None, Any]]


def begun(task: Task, job: Job) -> Generator[float, None, Any]:
    """The task at work on this job; whatever is wrong with it shows at its first chunk."""
    return (yield from task(job))


def next_news(chunks: Iterator[float], wait_seconds: Callable[[], float]) -> News:
    """Let the task do its next chunk: its progress, or how it ended.  No traceback leaves the worker."""
    try:
        return chunk(chunks)
    except Permanent as wrong:
        return News("fail", (("error", wrong.error),))
    except Transient as wrong:
        return News("retry", (("error", wrong.error), ("wait_seconds", wait_seconds())))
    except Exception:
        log.exception("a task ended in an error that it does not name")
        return News("fail", (("error", Error("internal error", "the task ended in an error that it does not name")),))


def chunk(chunks: Iterator[float]) -> News:
    """The news of a chunk that went well.  A progress or a result that can't be told is the task's error: it must not
    be the worker's."""
    try:
        done = next(chunks)
    except StopIteration as end:
        json.dumps(end.value, allow_nan=False)
        return News("succeed", (("result", end.value),))
    if not 0 <= done <= 1:
        raise ValueError(f"a progress is from 0 to 1, not {done}")
    return News("progress", (("progress", min(done, ALMOST)),))


def leave(chunks: Generator[float, None, Any]) -> None:
    """End the task where it stands, and let it clean up."""
    try:
        chunks.close()
    except Exception:
        log.exception("a task could not clean up after itself")


ALMOST = 0.999  # the last chunk is done, and the job is not: 100 % is what `succeed` writes


def retry_wait(settings: Settings, attempt: int, rng: random.Random) -> float:
    """Seconds until the next attempt: full jitter, uniform from 0 to base * 2 ** attempt, capped."""
    return rng.uniform(0, min(settings.retry_cap_seconds, settings.retry_base_seconds * 2**attempt))


def report(store: Store, worker: Worker, news: News) -> Worker:
    """The worker after it has told the store its news; a retry without attempts left is followed by the failure."""
    worker = step(store, tell(worker, news))
    return step(store, worker) if worker.news is not None else worker


def report_chunk(store: Store, worker: Worker, news: News) -> Worker:
    """The worker after it has told its progress; one that is asked to stop says at once that it has."""
    worker = report(store, worker, news)
    return report(store, worker, News("renew")) if worker.asked_to_stop else worker  # `tell` makes it a stop


def labour(
    worker: Worker, chunks: Iterator[float], wait_seconds: Callable[[], float], told: Callable[[Worker, News], Worker]
) -> tuple[Worker, News | None]:
    """Let the task work, chunk by chunk; `told` gives the worker after its progress was reported.

    Ends with the task's last word, not reported yet; or with None, when the job is not this worker's any more.
    """
    while worker.working:
        news = next_news(chunks, wait_seconds)
        if news.verb != "progress":
            return worker, news
        worker = told(worker, news)
    return worker, None


def perform(store: Store, worker: Worker, job: Job, task: Task, clock: Clock, rng: random.Random) -> Worker:
    """Carry out the job that this worker has claimed; the worker afterwards, idle.

    Between two chunks it renews when a third of the lease has passed, so a chunk must be shorter than two thirds.  It
    leaves the task as soon as a report is refused: the job is somebody else's, or over.
    """
    renewed = clock.elapsed()

    def told(worker: Worker, news: News) -> Worker:
        nonlocal renewed
        worker = report_chunk(store, worker, news)
        if worker.working and clock.elapsed() - renewed >= store.settings.renew_seconds:
            worker = report(store, worker, News("renew"))
            renewed = clock.elapsed()
        return worker

    chunks = begun(task, job)
    try:
        worker, last_word = labour(worker, chunks, lambda: retry_wait(store.settings, job.attempt, rng), told)
    finally:
        leave(chunks)
    return worker if last_word is None else report(store, worker, last_word)


def run(
    store: Store,
    name: str,
    tasks: Mapping[str, Task],
    *,
    stop: Callable[[], bool],
    clock: Clock | None = None,
    rng: random.Random | None = None,
) -> Iterator[Job]:
    """Work until `stop()`: claim a job, carry it out, report; sweep at a third of the lease.  Yields each job when
    this worker is through with it, so that the caller may count, print or stop."""
    clock, rng = clock or SystemClock(), rng or random.Random()
    worker = Worker(name, in_one=True)
    swept = -float("inf")
    while not stop():
        if clock.elapsed() - swept >= store.settings.renew_seconds:
            sweep(store, name)
            swept = clock.elapsed()
        worker, job = claim(store, worker)
        if job is None:
            clock.sleep(store.settings.poll_seconds)
            continue
        worker = perform(store, worker, job, task_for(tasks, job), clock, rng)
        yield job


def task_for(tasks: Mapping[str, Task], job: Job) -> Task:
    """The task of the job's kind; for a kind that this worker lacks, one that says so and is tried elsewhere."""

    def unknown(job: Job) -> Generator[float, None, Any]:
        yield 0
        raise Transient("unknown kind", f"this worker knows no task {job.kind!r}")

    return tasks.get(job.kind, unknown)
