"""What happens when a schedule is run?  `run` carries out its steps one by one and tells each as a Row.

Nothing here decides what is right: clients ask over HTTP, workers and sweepers write to the store, and a row says
what they were answered.  A step that can't happen, since an earlier one went otherwise, is *not exercised*: neither an
error nor a pass.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from jobslab import sweeper as sweeping
from jobslab.client import UNKNOWN, Answer, JobClient, outcome
from jobslab.job import REPORTS, TERMINAL, Error, Job, Reply
from jobslab.lab.schedule import Step
from jobslab.stores import Store
from jobslab.sweeper import Sweeper
from jobslab.worker import News, Worker, decide, deliver, idle, observe, tell


class Place(Protocol):
    """What a run needs of the place where it happens; `place` offers two."""

    @property
    def store(self) -> Store:
        """Where workers and sweepers write.  A restart may replace it."""

    @property
    def client(self) -> JobClient:
        """What clients ask with."""

    def now(self) -> float:
        """Lab time, in units."""

    def advance(self, units: float) -> None: ...

    def lose(self, exchange: Callable[[JobClient], Answer]) -> None:
        """Carry out one exchange whose answer is lost after the server has committed."""

    def restart(self) -> None:
        """End the server and start another on the same store."""


# What can become of a step
ACCEPTED = "accepted"  # the write landed
REFUSED = "refused"  # it did not, and `refused_by` says why
ANSWERED = "answered"  # a question, and its answer
NOTHING = "nothing"  # there was nothing to take
LOST = "lost"  # it was carried out, and the client does not know
UNDER_WAY = "under way"  # it was sent, and has not arrived
HAPPENED = "happened"  # time, crashes, restarts: nobody is asked
NOT_EXERCISED = "not exercised"  # it could not happen
OUTCOMES = (ACCEPTED, REFUSED, ANSWERED, NOTHING, LOST, UNDER_WAY, HAPPENED, NOT_EXERCISED)


class Seen(NamedTuple):
    """A job as it stands after a step."""

    id: str
    state: str
    attempt: int
    worker: str | None
    progress: float | None
    lease_until: float | None
    cancel_requested: bool


class Row(NamedTuple):
    """What became of one step."""

    n: int  # from 1
    at: float  # lab time, after the step
    actor: str
    verb: str
    step: str  # as text, without its label
    label: str | None
    answer: str  # in a few words, as data/expected.csv has it
    outcome: str  # one of the words above
    refused_by: str | None  # the rule, or the problem that the API names
    note: str | None  # why it was not exercised
    job: str | None  # which job it was about
    names: int | None  # the attempt that a claim made or that a report names
    jobs: tuple[Seen, ...]  # all jobs, by id

    @property
    def seen(self) -> Seen | None:
        """The job that the step was about, as it stands after it."""
        return next((seen for seen in self.jobs if seen.id == self.job), None)

    @property
    def state(self) -> str | None:
        return self.seen and self.seen.state

    @property
    def attempt(self) -> int | None:
        return self.seen and self.seen.attempt


class Told(NamedTuple):
    """The part of a row that the actor knows."""

    answer: str
    outcome: str
    refused_by: str | None = None
    note: str | None = None
    job: str | None = None
    names: int | None = None


class Caller(NamedTuple):
    """What a client knows."""

    request: Mapping[str, Any] | None = None  # its last submit
    job_id: str | None = None  # of its last submit that was answered
    answer: Answer | None = None  # to its last request; None: there was none
    document: dict[str, Any] | None = None  # the last status document that it saw


class Cast(NamedTuple):
    """Everybody in a run, by name, and what they believe.  Only the store knows how things are."""

    clients: Mapping[str, Caller] = {}
    workers: Mapping[str, Worker] = {}
    sweepers: Mapping[str, Sweeper] = {}
    claims: Mapping[str, tuple[str, int]] = {}  # the last (job, attempt) of each worker: it outlives the worker

    def client(self, name: str) -> Caller:
        return self.clients.get(name, Caller())

    def worker(self, name: str) -> Worker:
        return self.workers.get(name, Worker(name))

    def sweeper(self, name: str) -> Sweeper:
        return self.sweepers.get(name, Sweeper(name))

    def with_client(self, name: str, caller: Caller) -> "Cast":
        return self._replace(clients={**self.clients, name: caller})

    def with_worker(self, worker: Worker) -> "Cast":
        return self._replace(workers={**self.workers, worker.name: worker})

    def with_sweeper(self, sweeper: Sweeper) -> "Cast":
        return self._replace(sweepers={**self.sweepers, sweeper.name: sweeper})


After = tuple[Cast, Told]


def run(schedule: Iterable[Step], place: Place) -> list[Row]:
    """The rows of a schedule that is run here, one for each step."""
    return list(rows(schedule, place))


def rows(schedule: Iterable[Step], place: Place) -> Iterator[Row]:
    """The same, each row as it happens."""
    cast = Cast()
    for n, step in enumerate(schedule, start=1):
        cast, told = VERBS[step.verb](cast, place, step)
        jobs = tuple(seen(job) for job in place.store.rows())
        yield Row(n, place.now(), step.actor, step.verb, str(step), step.label, *told, jobs)


def seen(job: Job) -> Seen:
    return Seen(job.id, job.state, job.attempt, job.worker, job.progress, job.lease_until, bool(job.cancel_requested))


def not_exercised(note: str) -> Told:
    return Told(NOT_EXERCISED, NOT_EXERCISED, note=note)


# Clients


def submit(cast: Cast, place: Place, step: Step) -> After:
    kind = step.argument("kind", "export")
    table = step.argument("table", "orders" if kind == "export" else None)
    request = {"kind": kind, "params": {"table": table} if table else {}, "key": step.argument("key")}
    return post(cast, place, step, request)


def submit_again(cast: Cast, place: Place, step: Step) -> After:
    request = cast.client(step.actor).request
    if request is None:
        return cast, not_exercised(f"{step.actor} has submitted nothing")
    return post(cast, place, step, request)


def post(cast: Cast, place: Place, step: Step, request: Mapping[str, Any]) -> After:
    cast = cast.with_client(step.actor, cast.client(step.actor)._replace(request=request))
    return ask(cast, place, step, lambda client: client.submit_once(**request), show=("id",))


def poll(cast: Cast, place: Place, step: Step) -> After:
    return about_a_job(cast, place, step, JobClient.get)


def cancel(cast: Cast, place: Place, step: Step) -> After:
    return about_a_job(cast, place, step, JobClient.cancel)


def about_a_job(cast: Cast, place: Place, step: Step, ask_for: Callable[[JobClient, str], Answer]) -> After:
    id = step.argument("job") or cast.client(step.actor).job_id
    if id is None:
        return cast, not_exercised(f"{step.actor} knows of no job")
    cast, told = ask(cast, place, step, lambda client: ask_for(client, id), show=("state", "attempt", "error"))
    return cast, told._replace(job=id)


def count_jobs(cast: Cast, place: Place, step: Step) -> After:
    if step.argument("lost"):
        return ask(cast, place, step, JobClient.list, show=())
    return cast, Told(str(len(place.client.list().body["jobs"])), ANSWERED)


def ask(cast: Cast, place: Place, step: Step, exchange: Callable[[JobClient], Answer], show: tuple[str, ...]) -> After:
    """One exchange with the server, whose answer the client remembers."""
    if step.argument("lost"):
        place.lose(exchange)
        return cast.with_client(step.actor, cast.client(step.actor)._replace(answer=None)), Told("client timeout", LOST)
    answer = exchange(place.client)
    caller = heard(cast.client(step.actor), answer)
    return cast.with_client(step.actor, caller), in_words(answer, step.argument("show", show))


def heard(caller: Caller, answer: Answer) -> Caller:
    if answer.status >= 400:
        return caller._replace(answer=answer)
    return caller._replace(answer=answer, document=answer.body, job_id=answer.body["id"])


# What an answer shows, by the words of show=
PARTS: dict[str, Callable[[Answer], Any]] = {
    "location": lambda answer: answer.headers.get("location"),
    "id": lambda answer: answer.body.get("id"),
    "state": lambda answer: answer.body.get("state"),
    "done": lambda answer: str(answer.body.get("done")).lower(),
    "attempt": lambda answer: answer.body.get("attempt"),
    "progress": lambda answer: answer.body.get("progress"),
    "cancel_requested": lambda answer: str(answer.body.get("cancel_requested")).lower(),
    "result": lambda answer: answer.body.get("result"),
    "error": lambda answer: (answer.body.get("error") or {}).get("type"),
}
PART_NAMES = {"location": "Location", "cancel_requested": "cancel requested"}

SPEAKS_FOR_ITSELF = (404, 410)


def in_words(answer: Answer, show: Iterable[str]) -> Told:
    """An answer in a few words: "202; id job-1"; of a problem its status and, where that is not enough, its name."""
    if answer.status in SPEAKS_FOR_ITSELF:
        return Told(str(answer.status), ANSWERED)
    if answer.status >= 400:
        problem = answer.body["type"].rpartition("/")[2]
        return Told(f"{answer.status}; {problem}", REFUSED, problem)
    parts = [(PART_NAMES.get(name, name), PARTS[name](answer)) for name in show]
    words = [str(answer.status), *(f"{name} {value}" for name, value in parts if value is not None)]
    return Told("; ".join(words), ACCEPTED if answer.status == 202 else ANSWERED, job=answer.body.get("id"))


def give_up(cast: Cast, place: Place, step: Step) -> After:
    """The client's deadline is over: what may it say?"""
    caller = cast.client(step.actor)
    verdict = outcome(caller.answer, deadline_over=True, seen=caller.document)
    assert verdict is not None, "at its deadline a client has something to say"
    words = verdict.verdict + (f"; last seen {verdict.state}" if verdict.verdict == UNKNOWN and verdict.state else "")
    return cast, Told(words, ANSWERED, job=caller.job_id)


# Is a job in this state over?  Two clients, and one of them is wrong.
JUDGEMENTS: dict[str, Callable[[str], bool]] = {
    "not RUNNING": lambda state: state != "RUNNING",
    "terminal set": lambda state: state in TERMINAL,
}


def judge(cast: Cast, place: Place, step: Step) -> After:
    caller = cast.client(step.actor)
    if caller.document is None:
        return cast, not_exercised(f"{step.actor} has seen no job")
    over = JUDGEMENTS[step.argument("rule")](caller.document["state"])
    return cast, Told(str(over).lower(), ANSWERED, job=caller.job_id)


# Workers


def pick(cast: Cast, place: Place, step: Step) -> After:
    worker = cast.worker(step.actor)
    if worker.working:
        return cast, not_exercised(f"{worker.name} has a job in hand")
    worker, job = deliver_and_observe(idle(worker), place)
    return cast.with_worker(worker), Told(job.id, ANSWERED, job=job.id) if job else Told(NOTHING, NOTHING)


def claim(cast: Cast, place: Place, step: Step) -> After:
    worker = cast.worker(step.actor)
    if worker.picked is None:
        return cast, not_exercised(f"{worker.name} has picked no job")
    id = worker.picked
    worker, reply = deliver_and_observe(worker, place)
    words = f"{id} attempt {reply.attempt}" if reply.accepted else REFUSED
    return claimed(cast, worker), replied(reply, id, worker.attempt)._replace(answer=words)


def claim_next(cast: Cast, place: Place, step: Step) -> After:
    worker = cast.worker(step.actor)
    if worker.working:
        return cast, not_exercised(f"{worker.name} has a job in hand")
    worker, reply = deliver_and_observe(idle(worker)._replace(in_one=True), place)
    worker = worker._replace(in_one=False)
    if worker.job_id is None:
        return cast.with_worker(worker), Told(NOTHING, NOTHING)
    words = worker.job_id
    return claimed(cast, worker), replied(reply, worker.job_id, worker.attempt)._replace(answer=words)


def claimed(cast: Cast, worker: Worker) -> Cast:
    cast = cast.with_worker(worker)
    if worker.job_id is None or worker.attempt is None:
        return cast
    return cast._replace(claims={**cast.claims, worker.name: (worker.job_id, worker.attempt)})


def deliver_and_observe(worker: Worker, place: Place) -> tuple[Worker, Any]:
    """The worker after its next request, and the store's answer to it."""
    request = decide(worker)
    assert request is not None
    reply = deliver(place.store, request, place.now())
    return observe(worker, request, reply), reply


def replied(reply: Reply, id: str | None, names: int | None = None) -> Told:
    word = ACCEPTED if reply.accepted else REFUSED
    return Told(word, word, reply.refused_by, job=id, names=names)


def report(cast: Cast, place: Place, step: Step) -> After:
    """A worker tells the store, and learns the answer."""
    worker = with_news(cast.worker(step.actor), step.verb, step)
    if unable := why_not(worker, step.verb):
        return cast, not_exercised(unable)
    after, reply = deliver_and_observe(worker, place)
    return cast.with_worker(after), replied(reply, worker.job_id, worker.attempt)


def send(cast: Cast, place: Place, step: Step) -> After:
    """A report goes out, and the worker goes on as if it had been accepted."""
    verb = step.verb.removeprefix("send ")
    worker = with_news(cast.worker(step.actor), verb, step)
    if unable := why_not(worker, verb):
        return cast, not_exercised(unable)
    request = decide(worker)
    assert request is not None
    after = observe(worker, request, Reply(True, None, None, worker.attempt, False))
    return cast.with_worker(after), Told(UNDER_WAY, UNDER_WAY, job=worker.job_id, names=worker.attempt)


def late(cast: Cast, place: Place, step: Step) -> After:
    """A report that was under way arrives; nobody waits for its answer any more."""
    verb = step.verb.removesuffix(" late")
    last = cast.claims.get(step.actor, (None, None))
    id, attempt = step.argument("job", last[0]), step.argument("attempt", last[1])
    if id is None:
        return cast, not_exercised(f"{step.actor} has claimed no job")
    sender = Worker(step.actor, job_id=id, attempt=attempt)
    _, reply = deliver_and_observe(sender._replace(news=news(sender, verb, step)), place)
    return cast, replied(reply, id, attempt)


def with_news(worker: Worker, verb: str, step: Step) -> Worker:
    """The worker with this to report, unless it has something to report already."""
    return tell(worker, news(worker, verb, step)) if worker.working and worker.news is None else worker


def why_not(worker: Worker, verb: str) -> str | None:
    """Why this worker can't make this report; None: it can."""
    if worker.news is None:
        return f"{worker.name} has no job in hand"
    if worker.news.verb != verb:
        return f"{worker.name} was asked to stop" if worker.asked_to_stop else f"{worker.name} has failed and says so"
    return f"nobody asked {worker.name} to stop" if verb == "stop" and not worker.asked_to_stop else None


def news(worker: Worker, verb: str, step: Step) -> News:
    """The report with what goes with it: a result tells whose it is."""
    return News(verb, NEWS.get(verb, lambda worker, step: ())(worker, step))


def error(step: Step) -> Error:
    type = step.argument("error", "it broke")
    return Error(type, f"{type}, says {step.actor}")


NEWS: dict[str, Callable[[Worker, Step], tuple[tuple[str, Any], ...]]] = {
    "progress": lambda worker, step: (("progress", step.argument("percent", 50) / 100),),
    "succeed": lambda worker, step: (("result", f"{worker.name}'s, attempt {worker.attempt}"),),
    "fail": lambda worker, step: (("error", error(step)),),
    "retry": lambda worker, step: (("error", error(step)), ("wait_seconds", 0)),
}


def crash(cast: Cast, place: Place, step: Step) -> After:
    """The worker is gone, with all that it believed; a new one of its name may come."""
    gone = cast.worker(step.actor)
    left = {name: worker for name, worker in cast.workers.items() if name != step.actor}
    return cast._replace(workers=left), Told("gone", HAPPENED, job=gone.job_id, names=gone.attempt)


def count_workers(cast: Cast, place: Place, step: Step) -> After:
    job = step.argument("job")
    return cast, Told(str(sum(worker.job_id == job for worker in cast.workers.values())), ANSWERED, job=job)


# Sweepers


def look(cast: Cast, place: Place, step: Step) -> After:
    sweeper = sweeping.look(place.store, Sweeper(step.actor), place.now())
    only = step.argument("job")
    sweeper = sweeper._replace(seen=tuple(stuck for stuck in sweeper.seen if only in (None, stuck.id)))
    cast = cast.with_sweeper(sweeper)
    if not sweeper.seen:
        return cast, Told(NOTHING, NOTHING)
    return cast, Told(", ".join(stuck.id for stuck in sweeper.seen), ANSWERED, job=sweeper.seen[0].id)


def requeue(cast: Cast, place: Place, step: Step) -> After:
    sweeper = cast.sweeper(step.actor)
    write = sweeping.decide(sweeper)
    if write is None:
        return cast, not_exercised(f"{sweeper.name} has seen no job whose lease is over")
    reply = sweeping.deliver(place.store, sweeper, write, place.now())
    return cast.with_sweeper(sweeping.observe(sweeper)), replied(reply, write.id, write.attempt)


# What a job that was swept is now
SWEPT = {"QUEUED": "requeued", "FAILED": "given up", "CANCELLED": "cancelled"}


def sweep(cast: Cast, place: Place, step: Step) -> After:
    stuck = place.store.stuck(now=place.now())
    replies = sweeping.sweep(place.store, step.actor, place.now())
    if not stuck:
        return cast, Told(NOTHING, NOTHING)
    words = "; ".join(f"{was.id} {SWEPT[str(reply.state)]}" for was, reply in zip(stuck, replies))
    return cast, Told(words, ACCEPTED, job=stuck[0].id, names=stuck[0].attempt)


# Time, and the server


def pass_units(cast: Cast, place: Place, step: Step) -> After:
    place.advance(step.argument("units"))
    return cast, Told(f"now {place.now():g}", HAPPENED)


def restart(cast: Cast, place: Place, step: Step) -> After:
    """The server ends and starts again, and the workers inside it are gone."""
    place.restart()
    kept = ", ".join(job.id for job in place.store.rows())
    return cast._replace(workers={}, sweepers={}), Told(f"{kept or NOTHING} kept", HAPPENED)


def purge(cast: Cast, place: Place, step: Step) -> After:
    return cast, Told(f"{place.store.purge(now=place.now())} purged", HAPPENED)


Verb = Callable[[Cast, Place, Step], After]

VERBS: dict[str, Verb] = {
    "submit": submit,
    "submit again": submit_again,
    "poll": poll,
    "cancel": cancel,
    "give up": give_up,
    "count jobs": count_jobs,
    "judge": judge,
    "pick": pick,
    "claim": claim,
    "claim next": claim_next,
    **dict.fromkeys(REPORTS, report),
    **{f"send {verb}": send for verb in REPORTS},
    **{f"{verb} late": late for verb in REPORTS},
    "crash": crash,
    "look": look,
    "requeue": requeue,
    "sweep": sweep,
    "pass": pass_units,
    "restart": restart,
    "purge": purge,
    "count workers": count_workers,
}
