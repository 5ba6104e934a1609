"""How is a run through the world told?  In the steps of schedules, each with the question to the store and its answer.

What is told stands on its own: true names and lab time, no numbers of a world.  So it can be printed, run as a schedule
under any contract (`jobslab run --schedule`), and replayed on any store (see `replay`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobslab.job import Job, Reply, Submitted
from jobslab.lab import checker
from jobslab.lab.memo import Arguments, Fact, Rows
from jobslab.lab.schedule import Step
from jobslab.lab.world import NAMES, Action, Said, State, World
from jobslab.settings import LAB

UNIT = round(LAB.lease_seconds)  # of lab time, for one unit of the world's: in both a lease is good for that long


class Happening(NamedTuple):
    """One step of a run."""

    step: Step  # as a schedule has it
    fault: bool
    verb: str | None  # the question to the store; None: nobody asked it
    arguments: Arguments
    answer: Any  # blurred: see `memo`
    said: str  # the answer, in a word or two
    rows: Rows  # the table afterwards, blurred, in the order of `pick`

    def __str__(self) -> str:
        return str(self.step)


def schedule(trace: Sequence[Happening]) -> tuple[Step, ...]:
    """The run as a schedule."""
    return tuple(happening.step for happening in trace)


def tell(world: World, trace: checker.Trace) -> tuple[Happening, ...]:
    """The trace, told."""
    return tuple(happenings(world, trace.start, trace.steps))


def happenings(world: World, before: State, steps: Sequence[checker.Step]) -> Iterator[Happening]:
    claims: dict[str, tuple[str, int]] = {}  # of each worker: what it claimed last
    senders: dict[int, str] = {}  # of each request: who sent it last
    for step in steps:
        action: Action = step.action
        actor = who(action, senders)
        fact = world.memo.facts[step.info] if isinstance(step.info, int) else None
        yield Happening(
            scheduled(world, action, actor, claims),
            action.move.cost > 0,
            fact and fact.verb,
            asked_by(actor, fact.arguments) if fact else (),
            fact and fact.answer,
            said(step.info, fact),
            world.memo.tables[step.state[0]],
        )
        if action.move.message is not None:
            senders[action.move.message] = actor
        if fact and fact.verb == "claim" and fact.answer.job:
            claims[actor] = (fact.answer.job.id, fact.answer.job.attempt)


def who(action: Action, senders: Mapping[int, str]) -> str:
    """The actor's name: its place in its crowd; of a report that arrives, its sender's."""
    if action.kind == "report":
        return senders[action.n]
    return NAMES[action.kind][action.n] if action.kind in NAMES else action.kind


def asked_by(actor: str, arguments: Arguments) -> Arguments:
    """The question as it is asked under a true name, and in lab time."""
    true = {"worker": actor, "sweeper": actor, "lease_seconds": UNIT}
    return tuple((name, true.get(name, value)) for name, value in arguments)


def scheduled(world: World, action: Action, actor: str, claims: Mapping[str, tuple[str, int]]) -> Step:
    """The step as a schedule has it."""
    verb = action.move.verb
    if action.kind == "server":
        return Step(actor, "restart")
    if action.kind == "time":
        return Step(actor, "pass", (("units", UNIT),))
    if action.kind == "report":
        request = world.actors[action.n]
        job, attempt = request.argument("id"), request.argument("attempt")
        return Step(actor, verb, () if claims.get(actor) == (job, attempt) else (("job", job), ("attempt", attempt)))
    if verb == "look":
        return Step(actor, verb, (("job", world.actors[action.move.actor].seen[0].id),))
    if verb.startswith("submit"):
        lost = (("lost", True),) if verb == "submit lost" else ()
        return Step(actor, "submit", (("key", f"k{action.n + 1}"), *lost))
    return Step(actor, verb)


def said(info: Any, fact: Fact | None) -> str:
    """The answer, in a word or two."""
    if isinstance(info, Said):
        return info.verdict or "asks again"
    if fact is None or fact.answer is None:
        return ""
    return in_words(fact.verb, fact.answer)


def in_words(verb: str, answer: Any) -> str:
    if isinstance(answer, Submitted):
        return f"{answer.job.id}{', as before' if answer.replayed else ''}"
    if isinstance(answer, Job):
        return answer.id
    if isinstance(answer, Reply):
        if answer.job:
            return f"{answer.job.id} attempt {answer.job.attempt}"
        if verb == "cancel" and answer.cancel_requested and not answer.accepted:
            return "asked to stop"
        return "accepted" if answer.accepted else f"refused: {answer.refused_by}"
    return ", ".join(f"{stuck.id} attempt {stuck.attempt}" for stuck in answer)
