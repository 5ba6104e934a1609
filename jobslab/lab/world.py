"""What can happen next?  Clients, workers, sweepers and reports under way, and everything that may go wrong with them.

Each actor is the package's own value (`Worker` with decide / deliver / observe, `Sweeper`, the client's `outcome`), and
asks the real store, through `Memo`.  What an actor may do depends on the table and on itself alone, so its moves are
worked out once for each such pair, and `enabled` only puts numbers together.

All faults share one budget and recovery has none: a bound must never block a step, or it fakes a job that never ends.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

from jobslab import sweeper as sweeping
from jobslab import worker as working
from jobslab.client import Answer, Outcome, outcome
from jobslab.job import Error, Reply
from jobslab.lab.memo import Memo, Numbered
from jobslab.sweeper import Sweeper
from jobslab.worker import News, Request, Worker


class Bounds(NamedTuple):
    """How much may happen; within the bounds everything does, in every order."""

    jobs: int = 1  # intents, each of a client of its own
    sends: int = 2  # so often a client sends its submit, with one key
    cancels: int = 1  # so often it cancels the job that it was told of, and then it has lost interest
    workers: int = 2
    sweepers: int = 2
    faults: int = 1  # in all: answers lost, workers crashed, servers restarted, reports that arrive twice
    under_way: int = 1  # reports that were sent and may yet arrive
    attempts: int = 2  # max_attempts of every job
    reports: tuple[str, ...] = ("renew", "progress", "succeed", "retry")  # what a worker may have to tell
    late: tuple[str, ...] = ("progress",)  # which of its reports may be under way


class Client(NamedTuple):
    """One intent: how often it was sent in vain; the job that its client was told of; how often it cancelled that."""

    sent: int = 0
    job: str | None = None
    cancelled: int = 0


class Claim(NamedTuple):
    """A worker, and how much of its lease is left by its own count."""

    worker: Worker
    left: int = 0


class Said(NamedTuple):
    """What a client says of its job, and what it knew then."""

    at_deadline: bool
    seen: str | None  # the state that it saw last
    verdict: str | None  # None: it asks again


class Move(NamedTuple):
    """What one actor may do next, in the words of schedules, and what comes of it."""

    verb: str
    table: int
    actor: int  # what the actor is now
    fact: int | None = None  # what the store says
    says: Said | None = None  # what the client says
    message: int | None = None  # what is under way now
    cost: int = 0  # faults
    sure: bool = True  # whether one may count on it


class Turn(NamedTuple):
    """A move of the n-th of a crowd, and the crowd after it."""

    action: "Action"
    crowd: int


class Action(NamedTuple):
    """Who does what."""

    kind: str  # client, worker, sweeper, report, server, time
    n: int  # which of its kind; of a report: its number
    move: Move


# (table, clients, workers, sweepers, late, faults left).  A crowd is a number for a tuple of numbers of actors, in the
# order of their names.  A plain tuple of plain numbers, since hundreds of thousands are made.
State = tuple[int, int, int, int, int, int]
# As a checker.Step: the action, whether nobody may count on it, the state, and the fact or what a client says.
Step = tuple[Action, bool, State, int | Said | None]

LEASE = 1  # what a claim is good for; a unit is enough to tell "before it is over" from "after"
ERROR = Error("not this time", "the task failed")
NEWS = {
    "renew": News("renew"),
    "progress": News("progress", (("progress", 0.5),)),
    "succeed": News("succeed"),
    "fail": News("fail", (("error", ERROR),)),
    "retry": News("retry", (("error", ERROR),)),
    "stop": News("stop"),
}


class Table:
    """A table of the memo in a store's place: whoever calls its verbs gets the real store's answers."""

    def __init__(self, memo: Memo, number: int) -> None:
        self.memo, self.number = memo, number
        self.fact: int | None = None

    def __getattr__(self, verb: str) -> Any:
        return partial(self._ask, verb)

    def _ask(self, verb: str, *unnamed: Any, now: float = 0, **named: Any) -> Any:
        arguments = (*zip(("id", "attempt", "sweeper"), unnamed), *named.items())
        self.number, self.fact = self.memo.ask(self.number, verb, arguments)
        return self.memo.facts[self.fact].answer


class World:
    """All that can happen on the memo's store, within these bounds."""

    def __init__(self, memo: Memo, bounds: Bounds = Bounds(), alike: bool = False) -> None:
        """`alike`: the search goes by `Alike.canon`, so that of two alike actors in one state one may act for both."""
        self.memo, self.bounds, self.alike = memo, bounds, alike
        self.stand_ins: dict[frozenset[str], Any] = {}  # what stands for its states, by the promises that are asked
        self.expiring = memo.store.contract.leases  # else a claim never runs out
        self.named = "worker" in memo.kept  # a rule asks who it is: then workers are no longer interchangeable
        self.actors, self.crowds = Numbered[Any](), Numbered[tuple[int, ...]]()
        names = NAMES["worker"] if self.named else [WORKER] * bounds.workers
        idle = [Claim(Worker(names[n], lease_seconds=LEASE)) for n in range(bounds.workers)]
        self.workers, self.sweepers = self.crowd(idle), self.crowd([Sweeper()] * bounds.sweepers)
        self.nothing = self.crowd(())
        self.client_turns, self.worker_turns = cache(self._client_turns), cache(self._worker_turns)
        self.sweeper_turns, self.arrivals = cache(self._sweeper_turns), cache(self._arrivals)
        self.client_actions, self.worker_actions = cache(self._client_actions), cache(self._worker_actions)
        self.sweeper_actions = cache(self._sweeper_actions)
        self.worker_moves, self.arrival = cache(self._worker_moves), cache(self._arrival)
        self.under_way, self.older = cache(self._under_way), cache(self._older)
        self.highest, self.is_submitting = cache(self._highest), cache(self._is_submitting)

    @property
    def start(self) -> State:
        clients = self.crowd([Client()] * self.bounds.jobs)
        return self.memo.empty, clients, self.workers, self.sweepers, self.nothing, self.bounds.faults

    def crowd(self, actors: Iterable[Any]) -> int:
        """The number of these clients, claims, sweepers or requests."""
        return self.crowds(tuple([self.actors(actor) for actor in actors]))

    def members(self, crowd: int) -> list[Any]:
        """The actors of the crowd with this number."""
        return [self.actors[n] for n in self.crowds[crowd]]

    def enabled(self, state: State) -> list[Step]:
        """Everything that can happen next.  The hot loop: it looks up and puts together, and decides nothing."""
        table, clients, workers, sweepers, late, left = state
        steps: list[Step] = []
        fresh = self.fresh(state) if self.is_submitting(clients) else None
        for action, crowd in self.client_turns(table, clients, fresh):
            _, then, _, fact, says, _, cost, sure = action[2]
            if cost <= left:
                after = (then, crowd, workers, sweepers, late, left - cost)
                steps.append((action, not sure, after, fact if says is None else says))
        for action, crowd in self.worker_turns(table, workers):
            _, then, _, fact, _, message, cost, sure = action[2]
            if message is not None:
                for now_late in self.under_way(late, message):
                    steps.append((action, False, (then, clients, crowd, sweepers, now_late, left), fact))
            elif cost <= left:
                steps.append((action, not sure, (then, clients, crowd, sweepers, late, left - cost), fact))
        for action, crowd in self.sweeper_turns(table, sweepers):
            move = action[2]
            steps.append((action, False, (move.table, clients, workers, crowd, late, left), move.fact))
        for action, rest in self.arrivals(table, late):
            move = action[2]
            if move.cost <= left:
                after = (move.table, clients, workers, sweepers, rest, left - move.cost)
                steps.append((action, not move.sure, after, move.fact))
        if left:
            then, fact = self.memo.ask(table, "restart")
            ended = (then, clients, self.workers, self.sweepers, late, left - 1)
            steps.append((RESTART, True, ended, fact))
        later, older = self.memo.tick(table), self.older(workers)
        if later != table or older != workers:
            steps.append((PASS, False, (later, clients, older, sweepers, late, left), None))
        return steps

    # Crowds

    def _turns(self, crowd: int, actions: Callable[[int, int], Iterable[Action]]) -> tuple[Turn, ...]:
        """Every action of every member, and the crowd after it.  Of two that are alike, one will do."""
        members = self.crowds[crowd]
        return tuple(
            Turn(action, self.crowds((*members[:n], action.move.actor, *members[n + 1 :])))
            for n, actor in enumerate(members)
            if not (self.alike and actor in members[:n])
            for action in actions(n, actor)
        )

    def _client_turns(self, table: int, crowd: int, fresh: str | None) -> tuple[Turn, ...]:
        return self._turns(crowd, lambda n, client: self.client_actions(table, client, n, fresh))

    def _worker_turns(self, table: int, crowd: int) -> tuple[Turn, ...]:
        return self._turns(crowd, lambda n, worker: self.worker_actions(table, worker, n))

    def _sweeper_turns(self, table: int, crowd: int) -> tuple[Turn, ...]:
        return self._turns(crowd, lambda n, sweeper: self.sweeper_actions(table, sweeper, n))

    def _client_actions(self, table: int, client: int, n: int, fresh: str | None) -> list[Action]:
        return [Action("client", n, move) for move in self._client_moves(table, client, n, fresh)]

    def _worker_actions(self, table: int, worker: int, n: int) -> list[Action]:
        return [Action("worker", n, move) for move in self.worker_moves(table, worker)]

    def _sweeper_actions(self, table: int, sweeper: int, n: int) -> list[Action]:
        return [Action("sweeper", n, move) for move in self._sweeper_moves(table, sweeper)]

    def _arrivals(self, table: int, late: int) -> tuple[Turn, ...]:
        """A report that was under way arrives; as a fault, a copy of it stays under way."""
        requests, turns = self.crowds[late], []
        for n, request in enumerate(requests):
            move = self.arrival(table, request)
            turns.append(Turn(Action("report", request, move), self.crowds((*requests[:n], *requests[n + 1 :]))))
            turns.append(Turn(Action("report", request, move._replace(cost=1, sure=False)), late))
        return tuple(turns)

    def _under_way(self, late: int, message: int) -> tuple[int, ...]:
        """With this report under way too; where that is one too many, one of the others never arrives."""
        requests = self.crowds[late]
        if len(requests) < self.bounds.under_way:
            return (self.crowds(tuple(sorted((*requests, message)))),)
        fewer = [(*requests[:n], *requests[n + 1 :]) for n in range(len(requests))]
        return tuple(dict.fromkeys(self.crowds(tuple(sorted((*rest, message)))) for rest in fewer))

    def _older(self, crowd: int) -> int:
        """The workers one unit of time later, by their own counts."""
        if not self.expiring:
            return crowd
        return self.crowd([claim._replace(left=max(0, claim.left - 1)) for claim in self.members(crowd)])

    # Ids

    def fresh(self, state: State) -> str:
        """An id that nobody has heard of."""
        table, *crowds, _ = state
        taken = [number_of(job.id) for job in self.memo.tables[table]]
        return f"job-{1 + max([0, *taken, *map(self.highest, crowds)])}"

    def _highest(self, crowd: int) -> int:
        return max((number_of(id) for actor in self.members(crowd) if (id := job_of(actor))), default=0)

    def _is_submitting(self, crowd: int) -> bool:
        return any(client.job is None and client.sent < self.bounds.sends for client in self.members(crowd))

    # What one actor may do next, given the table

    def _at(self, table: int) -> Any:
        """This table, in a store's place."""
        return Table(self.memo, table)

    def _client_moves(self, table: int, number: int, n: int, fresh: str | None) -> Iterator[Move]:
        client: Client = self.actors[number]
        if client.job is not None:
            yield from self._cancels(table, client)
            yield self._asks(table, number, client.job)
        elif client.sent < self.bounds.sends:
            store = self._at(table)
            request = {"kind": "export", "params": PARAMS, "key": f"k{n + 1}", "max_attempts": self.bounds.attempts}
            told = store.submit(id=fresh, **request)
            yield Move("submit", store.number, self.actors(Client(job=told.job.id)), store.fact)
            in_vain = self.actors(Client(sent=client.sent + 1))
            yield Move("submit lost", store.number, in_vain, store.fact, cost=1, sure=False)
            yield Move("give up", table, number, says=Said(True, None, verdict(outcome(None, deadline_over=True))))

    def _cancels(self, table: int, client: Client) -> Iterator[Move]:
        """A client that has cancelled its last time is as one that gave up long ago."""
        if client.cancelled < self.bounds.cancels:
            store = self._at(table)
            store.cancel(id=client.job)
            more = client.cancelled + 1 < self.bounds.cancels
            after = client._replace(cancelled=client.cancelled + 1) if more else Client(sent=self.bounds.sends)
            yield Move("cancel", store.number, self.actors(after), store.fact, sure=False)

    def _asks(self, table: int, number: int, id: str) -> Move:
        """The client polls; if its job is not over it gives up, by what it saw."""
        job = next((job for job in self.memo.tables[table] if job.id == id), None)
        answer = Answer(404, {}, None) if job is None else Answer(200, {}, {"state": job.state, "done": job.done})
        seen = job.state if job is not None else None
        if outcome(answer) is not None:
            return Move("poll", table, number, says=Said(False, seen, verdict(outcome(answer))))
        return Move("give up", table, number, says=Said(True, seen, verdict(outcome(answer, deadline_over=True))))

    def _worker_moves(self, table: int, number: int) -> tuple[Move, ...]:
        claim: Claim = self.actors[number]
        worker = claim.worker
        idle = self.actors(Claim(working.idle(worker)))
        told = [claim._replace(worker=each) for each in self._told(worker)]
        moves = [move for each in told for move in self._asks_the_store(table, each)]
        if worker.working or worker.picked is not None:
            moves.append(Move("crash", table, idle, cost=1, sure=False))
        return tuple(moves)

    def _told(self, worker: Worker) -> Iterable[Worker]:
        """The worker with what it may have to ask or to tell; one that has picked may also pick again."""
        if not worker.working:
            return [worker] if worker.picked is None else [worker, working.idle(worker)]
        if worker.news is not None:
            return [worker]
        told = [working.tell(worker, NEWS[report]) for report in self.bounds.reports]
        return dict.fromkeys([working.tell(worker, NEWS["renew"]), *told] if worker.asked_to_stop else told)

    def _asks_the_store(self, table: int, claim: Claim) -> Iterator[Move]:
        """The worker decides, its request is delivered, it observes the answer; or its report goes under way."""
        worker = claim.worker
        request = working.decide(worker)
        assert request is not None, "a worker that has nothing to ask is not told to"
        store = self._at(table)
        reply = working.deliver(store, request)
        if reply is not None:
            anew = request.verb in ("claim", "renew") and reply.accepted
            after = self._claim(working.observe(worker, request, reply), LEASE if anew else claim.left)
            yield Move(request.verb, store.number, after, store.fact)
        if request.verb in self.bounds.late and self.bounds.under_way:
            # It goes on as if it had been accepted, but it can't count on a longer lease.
            on = working.observe(worker, request, Reply(True, None, None, worker.attempt, False))
            yield Move(f"send {request.verb}", table, self._claim(on, claim.left), message=self.actors(request))

    def _claim(self, worker: Worker, left: int) -> int:
        return self.actors(Claim(worker, left if worker.working else 0))

    def _sweeper_moves(self, table: int, number: int) -> Iterator[Move]:
        """It deals with what it saw; or it looks, at one job, and forgets what it saw before."""
        sweeper: Sweeper = self.actors[number]
        write, store = sweeping.decide(sweeper), self._at(table)
        if write is not None:
            sweeping.deliver(store, sweeper, write)
            yield Move("requeue", store.number, self.actors(sweeping.observe(sweeper)), store.fact)
        before = self._at(table)
        for stuck in sweeping.look(before, Sweeper()).seen:
            if sweeper.seen != (stuck,):
                yield Move("look", table, self.actors(Sweeper(seen=(stuck,))), before.fact)

    def _arrival(self, table: int, number: int) -> Move:
        request: Request = self.actors[number]
        store = self._at(table)
        working.deliver(store, request)
        return Move(f"{request.verb} late", store.number, number, store.fact)


WORKER = "worker"  # the name of all workers, where none is asked for: in a crowd, the place is the name
NAMES = {"client": ("client", "client2", "client3"), "worker": "ABCDEFGH", "sweeper": "STUVWXYZ"}
NOWHERE = Move("", -1, -1, cost=1, sure=False)
RESTART, PASS = Action("server", 0, NOWHERE), Action("time", 0, Move("", -1, -1))


class Params(dict[str, Any]):
    """The params of every job: an empty object that can be part of a question."""

    def __hash__(self) -> int:  # type: ignore[override]
        return 0


PARAMS = Params()


def verdict(said: Outcome | None) -> str | None:
    return None if said is None else said.verdict


def job_of(actor: Any) -> str | None:
    """The job that a client, a claim, a sweeper or a request is about."""
    if isinstance(actor, Client):
        return actor.job
    if isinstance(actor, Claim):
        return actor.worker.picked or actor.worker.job_id
    if isinstance(actor, Sweeper):
        return actor.seen[0].id if actor.seen else None
    return str(actor.argument("id"))


def number_of(id: str) -> int:
    """The n of job-n."""
    return int(id.removeprefix("job-"))
