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
from functools import cache
from typing import Any, NamedTuple, TypeVar

from jobslab.job import Job
from jobslab.lab.futures import AGAIN, ANYTHING, Futures, asks_of, verbs_of
from jobslab.lab.memo import Fact
from jobslab.lab.world import Claim, Client, State, World, job_of, number_of
from jobslab.sweeper import Sweeper
from jobslab.worker import Request, idle

GONE = "job-0"  # the name of every job that is not there, or not for this actor
Key = TypeVar("Key")
NOBODY = -1  # the number of the job of an actor that is about none


class Lookup(dict[Key, Key]):
    """A function, remembered; a dict, since looking up must cost next to nothing."""

    __slots__ = ("work",)

    def __init__(self, work: Callable[[Key], Key]) -> None:
        self.work = work

    def __missing__(self, key: Key) -> Key:
        value = self[key] = self.work(key)
        return value


class Place(dict[int, int]):
    """What stands for a table, and, looked up by their numbers, for the crowds beside it."""

    __slots__ = ("alike", "first", "names", "table")

    def __init__(self, alike: "Alike", table: int, names: dict[int, Lookup[int]], first: tuple[int, ...]) -> None:
        self.alike = alike
        self.table = table
        self.names = names  # by the number of a job: what stands for an actor that is about it
        self.first = first  # the clients of the jobs, in the order of the jobs

    def __missing__(self, crowd: int) -> int:
        value = self[crowd] = self.alike.crowd(self, crowd)
        return value


class Known(NamedTuple):
    """A job in its table: its number, its row alone and what may still be asked about it, its client, its order."""

    n: int
    row: int
    asks: int
    client: int
    order: tuple[Any, ...]


class Alike:
    """`canon` gives the one state that stands for all that are like it."""

    def __init__(self, world: World, tells: Callable[[Fact], Any], counting: bool = True) -> None:
        """`tells` says of a fact all that a promise has to say about it; `counting`: whether a promise asks for the
        leases as the workers count them."""
        self.world, self.counting = world, counting
        self.futures = Futures(world, tells)
        self.no_report = world.actors(NO_REPORT)
        self.asks, self.about = Lookup(self._asks), Lookup(self._about)
        self.gone, self.as_it_is = Lookup(lambda n: world.actors(gone(world.actors[n]))), Lookup[int](lambda n: n)
        self.places: dict[tuple[int, int], Place] = {}
        self.canon: Callable[[State], State] = Lookup(self._stand_in).__getitem__
        self.alone, self.order = cache(self._alone), cache(self._order)
        self.table, self.renames = cache(self._table), cache(self._renames)

    def _stand_in(self, state: State) -> State:
        """Where attempts have lower numbers and some actors are gone, rows may be plainer still: so again, until
        nothing changes."""
        once = self._once(state)
        return once if once == state else self.canon(once)

    def _once(self, state: State) -> State:
        table, clients, workers, sweepers, late, left = state
        of = self.asks
        asks = of[clients] | of[workers] | of[sweepers] | of[late]
        place = self.places.get((table, asks))
        if place is None:
            place = self.places[table, asks] = self._place(table, asks)
        return place.table, place[clients], place[workers], place[sweepers], place[late], left

    def _asks(self, crowd: int) -> int:
        """What the members of this crowd may still ask, in bits: so many of them for each job."""
        asks, width = 0, self.futures.width
        for number in self.world.crowds[crowd]:
            if self.about[number] > 0:
                asks |= asks_of(self.world.actors[number], self.world.bounds.cancels) << width * self.about[number]
        return asks

    def _about(self, number: int) -> int:
        """The n of job-n that this actor is about; NOBODY for none."""
        id = job_of(self.world.actors[number])
        return NOBODY if id is None else number_of(id)

    # Tables

    def _place(self, table: int, asks: int) -> Place:
        """The jobs of the table in their order, each by its plainest row, and how the actors beside it call them."""
        width = self.futures.width
        bits = [asks >> width * n & (1 << width) - 1 for n, _, _ in self.alone(table)]
        jobs = [Known(n, row, of, client, self.order(row, of)) for (n, row, client), of in zip(self.alone(table), bits)]
        jobs.sort(key=lambda job: job.order)
        first = tuple(dict.fromkeys([job.client for job in jobs]))
        plain = tuple([(self.futures.plainest(job.row, job.asks), first.index(job.client)) for job in jobs])
        names = {job.n: self.renames(n, job.row, job.asks) for n, job in enumerate(jobs, start=1)}
        names[NOBODY] = self.as_it_is
        return Place(self, self.table(plain), names, first)

    def _alone(self, table: int) -> list[tuple[int, int, int]]:
        """For each job: its number, its row alone, its client."""
        jobs = self.world.memo.tables[table]
        return [(number_of(job.id), self.futures.alone(job), client_of(job)) for job in jobs]

    def _order(self, row: int, asks: int) -> tuple[Any, ...]:
        """First those that can't be queued again, by what they are; then the others as they were."""
        if AGAIN in self.futures.may_land(row, asks):
            return (1,)
        return 0, self.futures.plainest(row, asks), asks

    def _table(self, plain: tuple[tuple[int, int], ...]) -> int:
        jobs = [self.futures.job(row)._replace(idempotency_key=key_of(client)) for row, client in plain]
        return self.world.memo.tables(tuple(job._replace(id=f"job-{n}") for n, job in enumerate(jobs, start=1)))

    # Crowds

    def crowd(self, place: Place, crowd: int) -> int:
        """What stands for this crowd: in order, but for clients, who go by the order of their jobs."""
        names, about = place.names, self.about
        numbers = self.world.crowds[crowd]
        members = [names.get(about[number], self.gone)[number] for number in numbers]
        if numbers and isinstance(self.world.actors[numbers[0]], Client):
            rest = sorted([member for n, member in enumerate(members) if n not in place.first])
            return self.world.crowds((*[members[n] for n in place.first], *rest))
        members.sort()
        return self.world.crowds(tuple([member for member in members if member != self.no_report]))

    def _renames(self, n: int, row: int, asks: int) -> Lookup[int]:
        """What stands for an actor about this job, which is now job-n."""
        return Lookup(lambda number: self.world.actors(self._rename(self.world.actors[number], f"job-{n}", row, asks)))

    def _rename(self, actor: Any, name: str, row: int, asks: int) -> Any:
        """The actor with its job's new name, and with the lowest attempt that comes to the same."""
        if isinstance(actor, Client):
            return actor._replace(job=name)
        if isinstance(actor, Claim) and not self.counting:
            actor = actor._replace(left=0)
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


def client_of(job: Job) -> int:
    """Which client sent it: k1 is the key of the first."""
    return int(str(job.idempotency_key).removeprefix("k")) - 1


def key_of(client: int) -> str:
    return f"k{client + 1}"


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
