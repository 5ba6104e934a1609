"""Which failures does the lab show, and which clause of the contract prevents each?

A scenario is one schedule.  Its variants run the same steps and differ in a flag of the contract, or in one line of
the client; the labelled steps are the rows of its table, the variants the columns.  What each must show is in
data/expected.csv.

What belongs to a task or to a queue is no flag and has no schedule.  Such a scenario is enacted: a function of another
module is given the variant's switches, and answers for each step.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from jobslab.contract import Contract
from jobslab.errors import JobslabError
from jobslab.lab.extra import MissingExtra
from jobslab.lab.place import Opens, here
from jobslab.lab.running import ANSWERED, NOT_EXERCISED, Row, run
from jobslab.lab.schedule import Schedule, parse
from jobslab.source import expected as expected_csv


class UnknownScenario(JobslabError):
    """There is no scenario of this name."""


class HasNoSchedule(JobslabError):
    """The scenario is enacted: there are no steps to run under another contract, or to draw."""


class Variant(NamedTuple):
    """The same steps under one contract."""

    name: str
    contract: Contract
    says: str  # what is to be seen, in a few words
    client: str = ""  # the line of the client that replaces the scenario's step of the same label
    switches: str = ""  # what is on of that which belongs to a task or a queue: "ledger", "outbox"


# What an enacted scenario is: the answer to each of its steps, by label, with these switches on.  Raises MissingExtra
# where a package is not installed that it needs.
Enact = Callable[[str], Mapping[str, str]]


class Scenario(NamedTuple):
    name: str
    question: str
    text: str  # the schedule; of one that is enacted, what is done, in words
    variants: tuple[Variant, ...]  # what mends it stands last
    client: str = ""  # what the schedule's own client is called, where a variant has another
    enact: Enact | None = None  # None: it has a schedule

    def variant(self, name: str) -> Variant:
        return next(variant for variant in self.variants if variant.name == name)

    def needs_a_schedule(self) -> None:
        """Raises HasNoSchedule."""
        if self.enact is not None:
            raise HasNoSchedule(f"the scenario {self.name!r} has no schedule and no flags to switch; run it as it is")

    def schedule(self, variant: Variant) -> Schedule:
        """The steps of this variant.  Raises HasNoSchedule."""
        self.needs_a_schedule()
        mine = {step.label: step for step in parse(variant.client)} if variant.client else {}
        return tuple(mine.get(step.label, step) if step.label else step for step in parse(self.text))


ALL = Contract()

SCENARIOS = (
    Scenario(
        "accepted",
        "The answer was 202. Is the work done?",
        """
        POST /jobs: client submits table=nowhere show=location,id,state
        A claims next
        A fails error="source table missing"
        GET after the background run: client polls
        """,
        (Variant("fails after 202", ALL, "202 promised nothing: only the job's state tells that the work failed"),),
    ),
    Scenario(
        "submit again",
        "The answer to a submit was lost, and the client tries again. How many exports run?",
        """
        first submit: client submits key=k1 / response lost
        second submit: client submits again
        jobs registered: client counts jobs
        """,
        (
            Variant("no key", ALL, "two jobs for one intent", "first submit: client submits / response lost"),
            Variant("same key, ignored", ALL.without("idempotency_key"), "two jobs for one intent"),
            Variant("same key, honoured", ALL, "one job, which the retry finds"),
        ),
        client="same key",
    ),
    Scenario(
        "when is it over",
        "The job still waits for a worker. Does the client think that it is over?",
        """
        client submits
        client polls
        judgement while QUEUED: client judges "terminal set"
        """,
        (
            Variant(
                "not RUNNING means done",
                ALL,
                "the client stops polling before the work has begun",
                'judgement while QUEUED: client judges "not RUNNING"',
            ),
            Variant("in the terminal set means done", ALL, "the client goes on polling"),
        ),
        client="in the terminal set means done",
    ),
    Scenario(
        "restart",
        "The server is restarted while a job runs. Who finishes the job?",
        """
        client submits
        A claims next
        restart
        100 units pass
        sweep
        GET after the restart, 100 units and a sweep: client polls
        next claim: B claims next
        B succeeds
        GET at the end: client polls
        """,
        (
            Variant("in memory", ALL.without("persistence"), "the accepted job is gone"),
            Variant("durable, no lease", ALL.without("leases"), "the job is kept, and runs for ever by nobody"),
            Variant("durable, with a lease", ALL, "its lease runs out, and another worker finishes it"),
        ),
    ),
    Scenario(
        "late progress",
        "A report of progress arrives after the job has finished. Does the job run again?",
        """
        client submits
        A claims next
        A sends progress 50%
        A succeeds
        the late report: A progresses 50% late
        GET: client polls
        a second completion: A succeeds late
        GET at the end: client polls
        """,
        (
            Variant("unconditional", ALL.without("conditional_updates"), "a finished job runs again"),
            Variant("only forward", ALL, "what is over stays over"),
        ),
    ),
    Scenario(
        "stale worker",
        "A stalls, its job is given to B, and then A's report arrives. Whose result counts?",
        """
        client submits
        A claims next
        A sends succeed
        100 units pass
        sweep
        B claims next
        the old worker's completion: A succeeds late
        GET: client polls
        the current worker's completion: B succeeds
        GET at the end: client polls
        """,
        (
            Variant("checks the state", ALL.without("attempt_fencing"), "A's old result stands, B's is refused"),
            Variant("checks the attempt", ALL, "A is refused, B's result stands"),
        ),
    ),
    Scenario(
        "double claim",
        "Two workers have picked the same job. How many of them run it?",
        """
        client submits
        A picks
        B picks
        A claims: A claims
        B claims what it picked: B claims
        workers running job-1: count workers running job-1
        """,
        (
            Variant("select then update", ALL.without("conditional_updates"), "both run it"),
            Variant("conditional", ALL, "one of them gets it"),
        ),
    ),
    Scenario(
        "sweeper on a snapshot",
        "The sweeper saw a lease that had run out; meanwhile the worker finished. What does the sweep undo?",
        """
        client submits
        A claims next
        100 units pass
        S looks
        the worker's completion: A succeeds
        the sweeper requeues what it saw: S requeues
        GET: client polls
        """,
        (
            Variant("writes by id", ALL.without("conditional_updates"), "finished work is queued again"),
            Variant("conditional", ALL, "what is over stays over"),
        ),
    ),
)


def enacting(module: str, function: str) -> Enact:
    """This function of a module of the lab, which is imported when it is called."""

    def enact(switches: str) -> Mapping[str, str]:
        told: Mapping[str, str] = getattr(import_module(f"jobslab.lab.{module}"), function)(switches)
        return told

    return enact


ENACTED = (
    Scenario(
        "paid again",
        "The first worker stops at some point, and a second does the job again. How often is paid?",
        "A job pays at a payment service. Its first worker crashes or is slow, at every point there is; when its lease "
        "is over a second worker does the job from the beginning. The service tells how often it was paid.",
        (
            Variant("pays", ALL, "it is paid twice as soon as both have come to the call"),
            Variant("asks first", ALL, "a slow worker has asked long ago", switches="check"),
            Variant("the job's id as key", ALL, "once, wherever the first stops", switches="key"),
        ),
        enact=enacting("paying", "paid"),
    ),
    Scenario(
        "a ledger beside",
        "The shop writes down what it has paid, in a ledger of its own. Is it paid once now?",
        "The same, and an entry in the shop's ledger, under a unique constraint.",
        (
            Variant("call, then record", ALL, "a crash between the two pays twice", switches="ledger after"),
            Variant("record, then call", ALL, "a crash between the two pays never", switches="ledger before"),
            Variant("key, then record", ALL, "once: the key is the service's to keep", switches="key, ledger after"),
        ),
        enact=enacting("paying", "paid"),
    ),
    Scenario(
        "half a file",
        "The worker dies while it writes a file of four lines. What does a reader find?",
        "A job writes a file, line by line. Its first worker crashes at every point; a second does the job again.",
        (
            Variant("appends", ALL, "half a file at first, and lines twice in the end"),
            Variant("staged and renamed", ALL, "no file, or the whole one", switches="staged"),
        ),
        enact=enacting("writing", "written"),
    ),
    Scenario(
        "undo",
        "Hotel and flight are paid, and the car is declined for good. Is all of it paid back, once?",
        "A job of three steps with checkpoints; what is done is undone, the last first. Its worker crashes at every "
        "point, in the undoing too; a second worker goes on.",
        (
            Variant("pays back", ALL, "a crash after it pays back again", switches="checkpoints"),
            Variant("pays back, with a key", ALL, "nothing is left, wherever it stops", switches="checkpoints, key"),
        ),
        enact=enacting("undoing", "undone"),
    ),
    Scenario(
        "a mail has no key",
        "Nobody can ask whether a mail went. What is one to do when a job that sends one is done again?",
        "A job sends a mail. Its first worker crashes or is slow; a second worker does the job again.",
        (
            Variant("send, then record", ALL, "at least once", switches="record after"),
            Variant("record, then send", ALL, "at most once", switches="record before"),
            Variant(
                "intent, send, record",
                ALL,
                "at most once, and who is in doubt says so",
                switches="intent, record after",
            ),
        ),
        enact=enacting("mailing", "mailed"),
    ),
    Scenario(
        "never told",
        "The work was done, and the worker died before it could tell. Who finds out?",
        "In the morning there are a file that was never reported, a payment that only the service knows of, and a job "
        "that is done and whose file is deleted. Each worker had its last attempt; a sweep gives up what is stuck.",
        (
            Variant("sweeps", ALL, "what was done is FAILED, and what is lost nobody misses"),
            Variant("reconciles, then sweeps", ALL, "the outside is asked, and the rows agree", switches="reconcile"),
        ),
        enact=enacting("reconciling", "reconciled"),
    ),
    Scenario(
        "two writes",
        "A job is a row in the table and a message in a broker. What is lost between the two writes?",
        "A client submits a job, and again with the same key until it is answered. The process that accepts it dies at "
        "every point; a consumer comes by in between; the broker is killed, and restarted. Then everybody recovers.",
        (
            Variant("row, then message", ALL, "a crash in between: nobody is told of the job", switches="row first"),
            Variant(
                "message, then row",
                ALL,
                "a message of no job; and a quick consumer throws a job's message away",
                switches="message first",
            ),
            Variant("one write, and a relay", ALL, "it is done once, though it may be told twice", switches="outbox"),
        ),
        enact=enacting("queueing", "two_writes"),
    ),
    Scenario(
        "acknowledged",
        "The consumer dies with a message in hand. When may it have acknowledged?",
        "A consumer dies at every point of its work. The broker delivers again what was not acknowledged; the sweeper "
        "gives back whose lease is over; a second consumer does what there is to do.",
        (
            Variant("at once", ALL, "before the claim nobody else knows of the job", switches="at once"),
            Variant("after the claim", ALL, "from the claim on the lease holds it", switches="when claimed"),
            Variant("at the end", ALL, "it comes back, and the claim is refused", switches="at the end"),
        ),
        enact=enacting("queueing", "acknowledging"),
    ),
    Scenario(
        "poison",
        "A message is such that every consumer gives it back. What becomes of it, and of those behind it?",
        "Three jobs; the consumer can't read the first, and gives it back. We look at twelve deliveries.",
        (
            Variant("no limit", ALL, "it is delivered again and again, before all others", switches="for ever"),
            Variant("a wait", ALL, "the others pass; and it comes again, for ever", switches="wait"),
            Variant("a limit", ALL, "a dead letter, whose job is QUEUED for ever", switches="limit"),
            Variant("a limit, and a burial", ALL, "its job is over, and can be run again", switches="limit, buried"),
        ),
        enact=enacting("queueing", "poison"),
    ),
    Scenario(
        "backlog",
        "Two jobs arrive in each unit of time. How many wait, and how old is the oldest?",
        "What the consumers can do in a unit differs. The broker is asked at the end of each of 24 units.",
        (
            Variant("too slow", ALL, "both figures grow, and nothing else is wrong", switches="too slow"),
            Variant("down for a while", ALL, "they grow, and shrink again", switches="down for 6 units"),
            Variant("a limit at the door", ALL, "who is refused knows it", switches="too slow, and a limit of 8"),
        ),
        enact=enacting("backlog", "answers"),
    ),
    Scenario(
        "retry storm",
        "A service is down, forty clients are refused, and all try again. When are they served?",
        "It is down for 8 units, and then serves ten calls a unit; to refuse a call costs it a quarter of serving one.",
        (
            Variant("after 1 unit", ALL, "it comes back, and is kept busy refusing", switches="after 1 unit"),
            Variant(
                "with a limit", ALL, "the storm ends, and nobody is served", switches="after 1 unit, 5 calls at most"
            ),
            Variant("doubling", ALL, "fewer waves, each as high", switches="doubling"),
            Variant("doubling, with jitter", ALL, "no waves: all are served", switches="doubling, with jitter"),
        ),
        enact=enacting("storm", "answers"),
    ),
    Scenario(
        "where is my job",
        "Twelve jobs have gone astray, each for another reason. What is the user told?",
        "A small shop whose jobs all go well, and then one thing goes wrong with one of them: twelve times another.",
        (
            Variant("reads the state", ALL, "five answers for twelve causes, and SUCCEEDED for four of them"),
            Variant("asks in order", ALL, "twelve causes, and what to do about each", switches="asks in order"),
        ),
        enact=enacting("faulty", "astray"),
    ),
)

EVERY = (*SCENARIOS, *ENACTED)


def scenario(name: str) -> Scenario:
    """The scenario of this name.  Raises UnknownScenario."""
    found = [scenario for scenario in EVERY if scenario.name == name]
    if not found:
        raise UnknownScenario(
            f"there is no scenario {name!r}; the scenarios are: {', '.join(scenario.name for scenario in EVERY)}"
        )
    return found[0]


# Running


def play(scenario: Scenario, variant: Variant, place: Opens = here, path: str | None = None) -> list[Row]:
    """The rows of one variant, run on a new store: in this file, or where the place likes it.  What is enacted finds
    a place for itself."""
    if scenario.enact is not None:
        return list(enacted(scenario.enact, variant, [line.step for line in awaited(scenario, variant)]))
    with place(variant.contract, path) as opened:
        return run(scenario.schedule(variant), opened)


def enacted(enact: Enact, variant: Variant, steps: Iterable[str]) -> Iterable[Row]:
    """A row for each answer; where a package is missing, for each that was awaited, not exercised."""
    try:
        told, outcome, note = enact(variant.switches), ANSWERED, None
    except MissingExtra as missing:
        told, outcome, note = dict.fromkeys(steps, NOT_EXERCISED), NOT_EXERCISED, str(missing)
    for n, (label, answer) in enumerate(told.items(), start=1):
        yield Row(n, 0, "", "", label, label, answer, outcome, None, note, None, None, ())


def under(scenario: Scenario, contract: Contract) -> Scenario:
    """The same scenario with this contract alone: a variant for each client that it has.  Raises HasNoSchedule."""
    scenario.needs_a_schedule()
    clients = [variant for variant in scenario.variants if variant.client]
    own = Variant(scenario.client or str(contract), contract, "")
    return scenario._replace(variants=(*(client._replace(contract=contract, says="") for client in clients), own))


def answers(rows: Iterable[Row]) -> dict[str, str]:
    """The labelled rows, as the table has them."""
    return {row.label: row.answer for row in rows if row.label}


class Line(NamedTuple):
    """One cell of a scenario's table."""

    scenario: str
    variant: str
    flags_on: str
    step: str
    expected: str | None  # None: data/expected.csv does not say
    seen: str
    lacks: str | None = None  # what is not installed here that it needs: a sentence

    @property
    def held(self) -> bool | None:
        """Was it as expected?  A step that was not exercised never was.  None: nothing was expected, or it could not
        be tried on this machine."""
        return None if self.expected is None or self.lacks else self.seen == self.expected


def lines(scenario: Scenario, variant: Variant, rows: Sequence[Row]) -> list[Line]:
    """The labelled rows beside what is expected of them."""
    column = (scenario.name, variant.name, str(variant.contract))
    must = {line.step: line.expected for line in awaited(scenario, variant)}
    lacks = {row.label: row.note for row in rows if scenario.enact is not None}
    return [
        Line(*column, row.label, must.get(row.label), row.answer, lacks.get(row.label)) for row in rows if row.label
    ]


def awaited(scenario: Scenario, variant: Variant) -> "list[Expected]":
    """What data/expected.csv has for this variant."""
    column = (scenario.name, variant.name, str(variant.contract))
    return [line for line in expected() if line[:3] == column and line.switches == variant.switches]


class Expected(NamedTuple):
    """One line of data/expected.csv."""

    scenario: str
    variant: str
    flags_on: str
    step: str
    expected: str
    switches: str


def expected() -> list[Expected]:
    """What every scenario must show."""
    with expected_csv().open(newline="", encoding="utf-8") as file:
        return [Expected(**line) for line in csv.DictReader(file)]
