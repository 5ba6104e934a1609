"""What can still become of a job, given who may still ask something about it?  The store answers, for one job alone.

A job's row changes when somebody asks: a worker that has picked it claims, one that has claimed it reports, a sweeper
that saw it stuck writes, a client cancels.  `asks` says who may, as bits of a number; a claim or a look adds to them,
and nothing is ever taken back.  So there are few pairs of a row and its asks, and what follows from each is a small
graph.  No rule of the contract is written here: the graph is drawn by asking.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from jobslab import sweeper as sweeping
from jobslab import worker as working
from jobslab.job import Job, Stuck
from jobslab.lab.memo import Fact
from jobslab.lab.world import NEWS, Claim, Client, World
from jobslab.sweeper import Sweeper
from jobslab.worker import Request, Worker

ALONE = "job-1"  # what a job is called while it is looked at alone

CLAIM, CANCEL = 1, 2  # bits of `asks`; then two for each attempt: a worker's reports of it, and a sweeper's write


def report(attempt: int) -> int:
    return 1 << 2 * attempt


def sweep(attempt: int) -> int:
    return 2 << 2 * attempt


Ask = tuple[str, int]  # a verb, and the attempt that it names or 0
SWEEPS = ("requeue", "exhaust")
AGAIN: Ask = ("queued", 0)  # stands among the asks that may land where the job may be queued, now or later
ANYTHING: Ask = ("anything", 0)  # ... and this where nobody has looked any further


class Answered(NamedTuple):
    """What comes of an ask: the row, whether it landed, what the asker now believes, which promises it broke."""

    row: int
    landed: bool
    learned: Any
    tells: Any


class Later(NamedTuple):
    """A row and its asks after something happened, and what that was."""

    happened: Any
    row: int
    asks: int


class Futures:
    """The future of each job; a row is the number of the table that holds it alone."""

    def __init__(self, world: World, tells: Callable[[Fact], Any]) -> None:
        """`tells` says of a fact all that a promise has to say about it."""
        self.world, self.memo, self._of_fact = world, world.memo, tells
        self.most = world.bounds.attempts + world.bounds.workers
        self.width = 2 * (self.most + 2)  # bits of `asks`: two for claim and cancel, then two for each attempt
        self.worker: Worker = world.members(world.workers)[0].worker
        self.later, self.answered, self.tells = cache(self._later), cache(self._answered), cache(self._tells)
        self.plainest, self.first_attempt = cache(self._plainest), cache(self._first_attempt)
        self.rows = cache(self._rows)
        self._landing: dict[tuple[int, int], set[Ask]] = {}

    def alone(self, job: Job) -> int:
        """The number of the table that holds this job alone."""
        return self.memo.tables((job._replace(id=ALONE),))

    def job(self, row: int) -> Job:
        return self.memo.tables[row][0]

    # What follows

    def _later(self, row: int, asks: int) -> tuple[Later, ...]:
        return tuple(self._follows(row, asks))

    def _follows(self, row: int, asks: int) -> Iterator[Later]:
        """All that can happen next to the row."""
        job = self.job(row)
        if job.attempt > self.most:
            yield Later(row, row, asks)  # no world gets here; it is like no other
            return
        yield Later("time", self.memo.tick(row), asks)
        if self._says(row, "pick") is not None:
            yield Later("picked", row, asks | CLAIM)
        for stuck in self._says(row, "stuck") if self.world.expiring else ():
            yield Later(stuck, row, asks | sweep(job.attempt))
        for ask in asked(asks, job.attempt):
            then = self.answered(row, ask)
            claimed = ask[0] == "claim" and then.landed
            more = report(self.job(then.row).attempt) if claimed else 0
            yield Later((ask, *then[1:]), then.row, asks | more)

    def _says(self, row: int, verb: str) -> Any:
        return self.memo.facts[self.memo.ask(row, verb)[1]].answer

    def _answered(self, row: int, ask: Ask) -> Answered:
        request, worker = self._request(ask)
        then, number = self.memo.ask(row, request.verb, request.arguments)
        reply = self.memo.facts[number].answer
        learned = worker and working.observe(worker, request, reply)
        if learned and ask[0] != "claim" and learned.working:
            learned = learned._replace(attempt=None)  # its own, as before
        return Answered(then, reply.accepted, learned, self.tells(number))

    def _tells(self, fact: int) -> Any:
        return self._of_fact(self.memo.facts[fact])

    def _request(self, ask: Ask) -> tuple[Request, Worker | None]:
        """The request as its asker makes it; and the worker, if it is one."""
        verb, attempt = ask
        if verb == "cancel":
            return Request("cancel", (("id", ALONE),)), None
        if verb in SWEEPS:
            write = sweeping.decide(Sweeper(seen=(Stuck(ALONE, attempt, verb == "requeue"),)))
            assert write is not None
            return Request(write.verb, (("id", write.id), ("attempt", write.attempt), ("sweeper", "sweeper"))), None
        claims = verb == "claim"
        named = {"picked": ALONE} if claims else {"job_id": ALONE, "attempt": attempt, "news": NEWS[verb]}
        worker = self.worker._replace(**named)
        request = working.decide(worker)
        assert request is not None
        return request, worker

    # What may still land

    def may_land(self, row: int, asks: int) -> set[Ask]:
        """The asks that the store may still accept, now or later; and AGAIN."""
        if (row, asks) not in self._landing:
            self._settle(row, asks)
        return self._landing[row, asks]

    def _settle(self, row: int, asks: int) -> None:
        """Works it out for this node and all that follow from it: what may land later may still land now."""
        before: dict[tuple[int, int], list[tuple[int, int]]] = {}
        todo = [(row, asks)]
        while todo:
            node = todo.pop()
            if node in self._landing:  # by now, or since an earlier call
                continue
            self._landing[node] = self._lands_now(*node)
            for _, *then in self.later(*node):
                todo.append((then[0], then[1]))
                before.setdefault((then[0], then[1]), []).append(node)
        todo = list(before)
        while todo:
            node = todo.pop()
            for earlier in before.get(node, ()):
                if not self._landing[node] <= self._landing[earlier]:
                    self._landing[earlier] |= self._landing[node]
                    todo.append(earlier)

    def _lands_now(self, row: int, asks: int) -> set[Ask]:
        job = self.job(row)
        if job.attempt > self.most:
            return {ANYTHING, AGAIN}
        landing = {ask for ask in asked(asks, job.attempt) if self.answered(row, ask).landed}
        return landing | {AGAIN} if self._says(row, "pick") is not None else landing

    # What comes to the same

    def _plainest(self, row: int, asks: int) -> int:
        """The plainest row with the same future: whatever is asked, nobody can tell the two apart."""
        return next(plain for plain in self._plainer(row) if plain == row or self._same(row, plain, asks))

    def _plainer(self, row: int) -> Iterator[int]:
        job = self.job(row)
        left: dict[str, Any] = {} if job.lease_until is None else {"lease_until": 0}
        if job.done:
            yield self.alone(job._replace(state="SUCCEEDED", attempt=1, cancel_requested=0, **left))
            yield self.alone(job._replace(state="SUCCEEDED", cancel_requested=0, **left))
            yield self.alone(job._replace(state="SUCCEEDED", cancel_requested=0))
        yield self.alone(job._replace(cancel_requested=0, **left))
        yield self.alone(job._replace(**left))
        yield self.alone(job._replace(cancel_requested=0))
        yield row

    def _same(self, row: int, other: int, asks: int) -> bool:
        """Whether all that can follow from the two is pairwise alike."""
        seen = {(row, other, asks)}
        todo = [(row, other, asks)]
        while todo:
            row, other, asks = todo.pop()
            mine, its = self.later(row, asks), self.later(other, asks)
            alike = [(a.happened, a.asks) for a in mine] == [(b.happened, b.asks) for b in its]
            if not alike or self.job(row).done != self.job(other).done:
                return False
            pairs = {(a.row, b.row, a.asks) for a, b in zip(mine, its) if a.row != b.row} - seen
            seen |= pairs
            todo.extend(pairs)
        return True

    def _first_attempt(self, row: int, asks: int, verbs: tuple[str, ...], attempt: int) -> int:
        """The lowest attempt that comes to the same, for one who may ask these verbs: now stale, for ever stale."""
        rows = self.rows(row, asks)

        def same(lower: int) -> bool:
            return all(self.answered(r, (v, lower)) == self.answered(r, (v, attempt)) for r in rows for v in verbs)

        return next((lower for lower in range(1, attempt) if same(lower)), attempt)

    def _rows(self, row: int, asks: int) -> frozenset[int]:
        """All rows that this one can become."""
        found, todo = {(row, asks)}, [(row, asks)]
        while todo:
            after = {(later.row, later.asks) for later in self.later(*todo.pop())} - found
            found |= after
            todo.extend(after)
        return frozenset(row for row, _ in found)


def asked(asks: int, attempts: int) -> Iterator[Ask]:
    """What the bits stand for."""
    if asks & CLAIM:
        yield "claim", 0
    if asks & CANCEL:
        yield "cancel", 0
    for attempt in range(1, attempts + 1):
        if asks & report(attempt):
            yield from ((verb, attempt) for verb in NEWS)
        if asks & sweep(attempt):
            yield from ((verb, attempt) for verb in SWEEPS)


def asks_of(actor: Any, cancels: int) -> int:
    """The bits for what this actor may still ask about its job."""
    if isinstance(actor, Client):
        return CANCEL if actor.job and actor.cancelled < cancels else 0
    if isinstance(actor, Claim):
        worker = actor.worker
        return CLAIM if worker.picked else report(worker.attempt) if worker.attempt else 0
    if isinstance(actor, Sweeper):
        return sweep(actor.seen[0].attempt) if actor.seen else 0
    return report(actor.argument("attempt"))


def verbs_of(actor: Any) -> tuple[str, ...]:
    """What this claim, sweeper or request may still ask."""
    if isinstance(actor, Claim):
        worker = actor.worker
        return ("claim",) if worker.picked else (worker.news.verb,) if worker.news else tuple(NEWS)
    if isinstance(actor, Sweeper):
        write = sweeping.decide(actor)
        return (write.verb,) if write else ()
    return (actor.verb,)
