"""How does a process do jobs for days?  `work`: some threads, each with a job in hand, and a heartbeat beside them.

It is the loop of `worker` for a world in which tasks are slow, the database goes away for a while, and somebody wants
the process to end.  What one does not survive, a SIGKILL, the sweep of the others mends: a job in hand is given to
another when its lease is over, and one that kills each worker that takes it is FAILED after its last attempt.
"""

import logging
import math
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import TypeVar

from jobslab.errors import StoreError
from jobslab.job import Error, Job, Reply
from jobslab.stores import Store
from jobslab.sweeper import sweep
from jobslab.worker import (
    News,
    Request,
    Task,
    Worker,
    begun,
    claim,
    decide,
    deliver,
    idle,
    labour,
    leave,
    observe,
    report,
    report_chunk,
    retry_wait,
    task_for,
)

log = logging.getLogger(__name__)

STOPPED = Error("worker stopped", "the worker was stopped before the job was done")

TICK_SECONDS = 0.1  # how soon the process sees what has happened, and that it is asked to end

T = TypeVar("T")


def work(
    store: Store,
    name: str,
    tasks: Mapping[str, Task],
    *,
    stop: Callable[[], bool],
    concurrency: int = 1,
    grace_seconds: float | None = None,
    rng: random.Random | None = None,
) -> Iterator[Job]:
    """Do jobs, `concurrency` of them at a time, until `stop()`.  Yields each job, as it was claimed, when it is over.

    `stop()` is asked often and from several threads.  Once it says True no job is claimed.  The jobs in hand have
    `grace_seconds` (None: the store's setting) to finish; what is left then is given back by a `retry` without a wait,
    so that another worker has it at once.  A job in its last attempt can't be given back: it ends as FAILED, "worker
    stopped".  The threads of tasks that do not end are left to the end of the process; what they report is refused.
    """
    loop = Loop(store, name, tasks, stop, rng or random.Random())
    slots = [Thread(target=loop.run, args=(slot,), name=slot, daemon=True) for slot in slot_names(name, concurrency)]
    heart = Thread(target=loop.beat, name=f"{name}: heartbeat", daemon=True)
    for thread in (heart, *slots):
        thread.start()
    try:
        yield from loop.finished(slots, store.settings.grace_seconds if grace_seconds is None else grace_seconds)
    finally:
        loop.ended.set()
        loop.give_back()
        heart.join()


def slot_names(name: str, concurrency: int) -> list[str]:
    """A worker for each thread, since each has its own job."""
    return [name] if concurrency == 1 else [f"{name}.{n}" for n in range(1, concurrency + 1)]


class Loop:
    """What the threads of one process share."""

    def __init__(
        self, store: Store, name: str, tasks: Mapping[str, Task], stop: Callable[[], bool], rng: random.Random
    ) -> None:
        self.store, self.name, self.tasks, self.stop, self.rng = store, name, tasks, stop, rng
        self.ended = Event()  # nothing is waited for any more
        self.in_hand: dict[str, Worker] = {}  # the workers that have a job, by name
        self.answers: dict[str, deque[tuple[Request, Reply]]] = defaultdict(deque)  # to the heartbeat, for each of them
        # Looked at now and then: waking the process for each job costs more than a short job itself.
        self.news: deque[Job | BaseException] = deque()
        self.look = Event()

    def over(self) -> bool:
        return self.ended.is_set() or self.stop()

    # A worker, in a thread of its own

    def run(self, name: str) -> None:
        """Do one job after the other."""
        try:
            worker, job = Worker(name, in_one=True), None
            while job is not None or not self.over():
                worker, next_job = self.turn(worker, None) if job is None else self.carry_out(worker, job)
                if job is not None:
                    self.news.append(job)
                elif next_job is None:
                    self.ended.wait(self.store.settings.poll_seconds)
                job = next_job
        except BaseException as wrong:  # a fault of this program, or a task that wants to end the process
            self.news.append(wrong)
        finally:
            self.look.set()

    def carry_out(self, worker: Worker, job: Job) -> tuple[Worker, Job | None]:
        """Do the job in hand; the worker and the job that it has in hand then."""
        chunks = begun(task_for(self.tasks, job), job)
        wait_seconds = partial(retry_wait, self.store.settings, job.attempt, self.rng)
        try:
            worker, last_word = labour(worker, chunks, wait_seconds, self.told)
        finally:
            leave(chunks)
        return self.turn(worker, last_word)

    def told(self, worker: Worker, news: News) -> Worker:
        """The worker after a chunk.  What the heartbeat was answered comes first: a job that is lost is left here."""
        while self.answers[worker.name]:
            worker = observe(worker, *self.answers[worker.name].popleft())
        if not worker.working:
            return worker
        return self.patiently(lambda: report_chunk(self.store, worker, news), self.ended.is_set) or idle(worker)

    def turn(self, worker: Worker, last_word: News | None) -> tuple[Worker, Job | None]:
        """Report how the job in hand ended, and claim the next one, in one transaction: a commit less for each job."""

        def together() -> tuple[Worker, Job | None]:
            with self.store.transaction():
                after = report(self.store, worker, last_word) if last_word else worker
                return (after, None) if self.over() else claim(self.store, after)

        self.in_hand.pop(worker.name, None)
        enough = self.ended.is_set if last_word else self.over
        worker, job = self.patiently(together, enough) or (idle(worker), None)
        if job is not None:
            self.in_hand[worker.name] = worker
            if self.ended.is_set():
                self.give_back()
        return worker, job

    def patiently(self, ask: Callable[[], T], enough: Callable[[], bool]) -> T | None:
        """What the store answers.  It is asked again while it can't be used; None: until it was `enough`.

        Doing it again is safe even where nobody knows whether it was done: a report names its attempt, so that the
        second one is refused; and a job that was claimed without our learning of it is freed by its lease.
        """
        for times in count():
            try:
                return ask()
            except StoreError as wrong:
                if enough():
                    log.warning("%s", wrong)
                    break
                wait = min(retry_wait(self.store.settings, times, self.rng), self.store.settings.renew_seconds)
                log.warning("%s; trying again in %.1f seconds", wrong, wait)
                self.ended.wait(wait)
        return None

    # The heartbeat, in a thread of its own: no task, however busy, keeps it from renewing

    def beat(self) -> None:
        """At a third of the lease renew what is in hand, and sweep."""
        try:
            while True:
                for worker in [*self.in_hand.values()]:
                    self.unless_away(self.renew, worker)
                self.unless_away(sweep, self.store, self.name)
                if self.ended.wait(self.store.settings.renew_seconds):
                    return
        except BaseException as wrong:
            self.news.append(wrong)

    def renew(self, worker: Worker) -> None:
        """Not by `tell`: a worker that is asked to stop has not stopped before its task has."""
        request = decide(worker._replace(news=News("renew")))
        assert request is not None
        self.answers[worker.name].append((request, deliver(self.store, request)))

    def unless_away(self, do: Callable[..., object], *arguments: object) -> None:
        try:
            do(*arguments)
        except StoreError as wrong:
            log.warning("%s", wrong)

    # The process

    def finished(self, slots: list[Thread], grace_seconds: float) -> Iterator[Job]:
        """The jobs that are over, until all workers have ended or the time of grace is over."""
        end = math.inf
        alive = True
        while alive and time.monotonic() < end:
            self.look.wait(TICK_SECONDS)
            self.look.clear()
            alive = any(slot.is_alive() for slot in slots)  # asked first: one that has ended has told all it had to
            while self.news:
                told = self.news.popleft()
                if isinstance(told, BaseException):
                    raise told
                yield told
            if end == math.inf and self.stop():
                end = time.monotonic() + grace_seconds

    def give_back(self) -> None:
        """Put what is in hand back into the queue, for any worker and at once."""
        for worker in [*self.in_hand.values()]:
            log.info("worker %s gives job %s back", worker.name, worker.job_id)
            back = News("retry", (("error", STOPPED), ("wait_seconds", 0)))
            self.unless_away(report, self.store, worker, back)
