"""How is a run through the world told?  In the steps of schedules, each with the question to the store and its answer.

What is told stands on its own: true names, no numbers of a world, so that it can be printed, run as a schedule under
any contract (`jobslab run --schedule`), and replayed on any store (see `replay`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jobslab.job import Job
from jobslab.lab import checker
from jobslab.lab.memo import Arguments, Rows
from jobslab.lab.schedule import Step
from jobslab.lab.world import NAMES, Action, Client, Said, World
from jobslab.settings import LAB


class Happening(NamedTuple):
    """One step of a run."""

    step: Step  # as a schedule has it
    fault: bool
    verb: str | None  # the question to the store, with true names; None: nobody asked it
    arguments: Arguments
    answer: Any  # blurred, see `memo`
    said: str  # the answer in a word or two
    rows: Rows  # the table afterwards, blurred

    def __str__(self) -> str:
        return str(self.step)


UNIT = LAB.lease_seconds  # of lab time, for a lease of one unit of the world's


def tell(world: World, trace: checker.Trace) -> tuple[Happening, ...]:
    """The trace, told."""
    return tuple(happenings(world, trace.start, trace.steps))


def happenings(world: World, state: Any, steps: Sequence[checker.Step]) -> Iterator[Happening]:
    claims: dict[str, tuple[str, int]] = {}  # of each worker: what it claimed last
    senders: dict[int, str] = {}  # of each request: who sent it last
    for step in steps:
        action: Action = step.action
        move, after = action.move, step.state
        actor = who(action, senders)
        if move.message is not None:
            senders[move.message] = actor
        fact = world.memo.facts[step.info] if isinstance(step.info, int) else None
        asks = fact is not None and action.kind != "time"
        arguments = with_names(fact.arguments, actor) if fact else ()
        yield Happening(
            schedule_step(world, action, actor, state, after, claims),
            step.fault and move.verb != "cancel",
            fact.verb if fact and asks else None,
            arguments,
            fact.answer if fact else None,
            said(step.info, fact),
            world.memo.tables[after[0]],
        )
        if move.verb == "claim" and fact and fact.answer.job:
            claims[actor] = (fact.answer.job.id, fact.answer.job.attempt)
        state = after


def who(action: Action, senders: dict[int, str]) -> str:
    if action.kind == "report":
        return senders[action.n]
    return NAMES[action.kind][action.n] if action.kind in NAMES else action.kind


def with_names(arguments: Arguments, actor: str) -> Arguments:
    """The question as its asker would make it in a lab, where a unit of time is LAB's lease."""
    names = {"worker": actor, "sweeper": actor}
    scaled = {"lease_seconds": lambda units: units * UNIT}
    return tuple((name, names.get(name, scaled.get(name, lambda value: value)(value))) for name, value in arguments)


def schedule_step(world: World, action: Action, actor: str, state: Any, after: Any, claims: Any) -> Step:
    verb = action.move.verb
    if action.kind == "server":
        return Step("server", "restart")
    if action.kind == "time":
        return Step("time", "pass", (("units", round(UNIT)),))
    if verb.startswith("submit"):
        lost = (("lost", True),) if verb == "submit lost" else ()
        return Step(actor, "submit", (("key", f"k{action.n + 1}"), *lost))
    if verb == "look":
        (stuck,) = world.actors[action.move.actor].seen
        return Step(actor, "look", (("job", stuck.id),))
    if action.kind == "report":
        request = world.actors[action.n]
        named = request.argument("id"), request.argument("attempt")
        return Step(actor, verb, () if claims.get(actor) == named else (("job", named[0]), ("attempt", named[1])))
    return Step(actor, verb)


def said(info: Any, fact: Any) -> str:
    """The answer, in a word or two."""
    if isinstance(info, Said):
        return info.verdict or "nothing"
    if fact is None:
        return ""
    answer = fact.answer
    if hasattr(answer, "accepted"):
        if answer.accepted:
            return f"{answer.job.id} attempt {answer.job.attempt}" if answer.job else "accepted"
        return "asked to stop" if fact.verb == "cancel" and answer.cancel_requested else f"refused: {answer.refused_by}"
    if fact.verb == "submit":
        return f"{answer.job.id}{', as before' if answer.replayed else ''}"
    if fact.verb == "stuck":
        return ", ".join(f"{stuck.id} attempt {stuck.attempt}" for stuck in answer)
    return answer.id if isinstance(answer, Job) else ""


def schedule(trace: Sequence[Happening]) -> tuple[Step, ...]:
    return tuple(happening.step for happening in trace)


__all__ = ["UNIT", "Client", "Happening", "schedule", "tell"]
