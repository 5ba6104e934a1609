"""Which states are alike, so that one may stand for all?  Those that differ in names, or in what can't matter any more.

    names    workers, sweepers and clients have none, and a job is called by its place in the order of `pick`
    order    a job that can't be queued again has no place in it, and comes first
    gone     whoever can only be refused is as one whose job is gone, or who has nothing in hand
    rows     rows with the same future are one; so are attempts that come to the same

What can still happen is asked of the store (see `futures`).  A state and the one that stands for it have the same steps
up to those names, but for refusals that change nothing.  So they have the same verdicts, in traces of the same length,
on every promise that is not about a refusal; tests compare both with the plain search.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from jobslab.lab.futures import AGAIN, ANYTHING, WIDTH, Futures, asks_of, verbs_of
from jobslab.lab.memo import Fact
from jobslab.lab.world import Claim, Client, State, World, job_of, number_of
from jobslab.sweeper import Sweeper
from jobslab.worker import Request, idle

GONE = "job-0"  # the name of every job that is not there, or not for this actor
NOBODY = -1  # the number of the job of an actor that is about none


class Lookup(dict[int, int]):
    """A function of a number, remembered; a dict, since looking up must cost next to nothing."""

    def __init__(self, work: Callable[[int], int]) -> None:
        self.work = work

    def __missing__(self, number: int) -> int:
        value = self[number] = self.work(number)
        return value


class Place(NamedTuple):
    """What stands for a table, and for the crowds beside it."""

    table: int
    clients: Lookup
    others: Lookup


class Known(NamedTuple):
    """A job in its table: its number, its row alone and what may still be asked about it, its key, its order."""

    n: int
    row: int
    asks: int
    key: str
    order: tuple[Any, ...]


class Alike:
    """`canon` gives the one state that stands for all that are like it."""

    def __init__(self, world: World, tells: Callable[[Fact], Any]) -> None:
        """`tells` says of a fact all that a promise has to say about it."""
        self.world = world
        self.futures = Futures(world, tells)
        self.no_report = world.actors(NO_REPORT)
        self.asks, self.about = Lookup(self._asks), Lookup(self._about)
        self.gone, self.as_it_is = Lookup(lambda n: world.actors(gone(world.actors[n]))), Lookup(lambda n: n)
        self.places: dict[tuple[int, int], Place] = {}
        self.alone, self.order = cache(self._alone), cache(self._order)
        self.table, self.renames = cache(self._table), cache(self._renames)

    def canon(self, state: State) -> State:
        table, clients, workers, sweepers, late, left = state
        of = self.asks
        asks = of[clients] | of[workers] | of[sweepers] | of[late]
        place = self.places.get((table, asks))
        if place is None:
            place = self.places[table, asks] = self._place(table, asks)
        then, in_order, others = place
        return then, in_order[clients], others[workers], others[sweepers], others[late], left

    def _asks(self, crowd: int) -> int:
        """What the members of this crowd may still ask, in bits: WIDTH of them for each job."""
        asks = 0
        for number in self.world.crowds[crowd]:
            if self.about[number] > 0:
                asks |= asks_of(self.world.actors[number], self.world.bounds.cancels) << WIDTH * self.about[number]
        return asks

    def _about(self, number: int) -> int:
        """The n of job-n that this actor is about; NOBODY for none."""
        id = job_of(self.world.actors[number])
        return NOBODY if id is None else number_of(id)

    # Tables

    def _place(self, table: int, asks: int) -> Place:
        """The jobs of the table in their order, each by its plainest row, and how the actors beside it call them."""
        bits = [asks >> WIDTH * n & (1 << WIDTH) - 1 for n, _, _ in self.alone(table)]
        jobs = [Known(n, row, of, key, self.order(row, of)) for (n, row, key), of in zip(self.alone(table), bits)]
        jobs.sort(key=lambda job: job.order)
        keys = {key: f"k{n}" for n, key in enumerate(dict.fromkeys(job.key for job in jobs), start=1)}
        plain = tuple([(self.futures.plainest(job.row, job.asks), keys[job.key]) for job in jobs])
        names = {job.n: self.renames(f"job-{n}", job.row, job.asks) for n, job in enumerate(jobs, start=1)}
        names[NOBODY] = self.as_it_is
        clients, others = partial(self._clients, names, keys), partial(self._others, names)
        return Place(self.table(plain), Lookup(clients), Lookup(others))

    def _alone(self, table: int) -> list[tuple[int, int, str]]:
        """For each job: its number, its row alone, its key."""
        jobs = self.world.memo.tables[table]
        return [(number_of(job.id), self.futures.alone(job), str(job.idempotency_key)) for job in jobs]

    def _order(self, row: int, asks: int) -> tuple[Any, ...]:
        """First those that can't be queued again, by what they are; then the others as they were."""
        if AGAIN in self.futures.may_land(row, asks):
            return (1,)
        return 0, self.futures.plainest(row, asks), asks

    def _table(self, plain: tuple[tuple[int, str], ...]) -> int:
        jobs = [self.futures.job(row)._replace(idempotency_key=key) for row, key in plain]
        return self.world.memo.tables(tuple(job._replace(id=f"job-{n}") for n, job in enumerate(jobs, start=1)))

    # Crowds

    def _clients(self, names: dict[int, Lookup], keys: dict[str, str], crowd: int) -> int:
        """The clients in the order of their jobs; those without one come last."""
        clients = [self._renamed(names, number) for number in self.world.crowds[crowd]]
        first = [int(key.removeprefix("k")) - 1 for key in keys]
        rest = sorted(client for n, client in enumerate(clients) if n not in first)
        return self.world.crowds((*[clients[n] for n in first], *rest))

    def _others(self, names: dict[int, Lookup], crowd: int) -> int:
        members = sorted([self._renamed(names, number) for number in self.world.crowds[crowd]])
        return self.world.crowds(tuple([number for number in members if number != self.no_report]))

    def _renamed(self, names: dict[int, Lookup], number: int) -> int:
        return names.get(self.about[number], self.gone)[number]

    def _renames(self, name: str, row: int, asks: int) -> Lookup:
        """What stands for an actor about this job, which is now called by that name."""
        return Lookup(lambda number: self.world.actors(self._rename(self.world.actors[number], name, row, asks)))

    def _rename(self, actor: Any, name: str, row: int, asks: int) -> Any:
        """The actor with its job's new name, and with the lowest attempt that comes to the same."""
        if isinstance(actor, Client):
            return actor._replace(job=name)
        live = isinstance(actor, Claim) and actor.left > 0
        if not live and not self._may_land(actor, row, asks):
            return gone(actor)
        if isinstance(actor, Claim) and actor.worker.picked:
            return actor._replace(worker=actor.worker._replace(picked=name))
        return called(actor, name, self.futures.first_attempt(row, asks, verbs_of(actor), attempt_of(actor)))

    def _may_land(self, actor: Any, row: int, asks: int) -> bool:
        landing = self.futures.may_land(row, asks)
        return ANYTHING in landing or any((verb, attempt_of(actor)) in landing for verb in verbs_of(actor))


NO_REPORT = Request("succeed", (("id", GONE), ("attempt", 1)))  # one that will be refused: as if there were none


def gone(actor: Any) -> Any:
    """What stands for an actor whose job is gone, or who can only be refused."""
    if isinstance(actor, Client):
        return actor._replace(job=GONE)
    if isinstance(actor, Claim):
        worker = idle(actor.worker)
        return Claim(worker if actor.worker.picked else worker._replace(job_id=GONE, attempt=1))
    return Sweeper() if isinstance(actor, Sweeper) else NO_REPORT


def attempt_of(actor: Any) -> int:
    """The attempt that a claim, a sweeper or a request names; 0 for one that has only picked."""
    if isinstance(actor, Claim):
        return actor.worker.attempt or 0
    return actor.seen[0].attempt if isinstance(actor, Sweeper) else int(actor.argument("attempt"))


def called(actor: Any, name: str, attempt: int) -> Any:
    """The actor, with its job called by this name and its attempt by this number."""
    if isinstance(actor, Claim):
        return actor._replace(worker=actor.worker._replace(job_id=name, attempt=attempt))
    if isinstance(actor, Sweeper):
        return Sweeper(seen=(actor.seen[0]._replace(id=name, attempt=attempt),))
    new = {"id": name, "attempt": attempt}
    return Request(actor.verb, tuple((key, new.get(key, value)) for key, value in actor.arguments))
