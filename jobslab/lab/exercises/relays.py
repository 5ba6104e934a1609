"""How is an answer of chapter 11 judged?  A relay, or a consumer, in the learner's order of steps, on a real broker.

It is stopped after each of its steps in turn, and the broker is killed for a while; then everybody recovers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from jobslab.lab.broker import Broker, Delivery, Limits, NotConfirmed, a_broker
from jobslab.lab.exercises.answer import RIGHT, WRONG, Feedback
from jobslab.lab.exercises.exercise import Judge
from jobslab.lab.exercises.judges import Shown, chosen
from jobslab.lab.outbox import AFTER, Line, carried_out, cross_off, outbox, relay
from jobslab.lab.queueing import AGAIN_SECONDS, KEY, Scene, a_scene, times

DONE = "SUCCEEDED, done once"


@contextmanager
def submitted(limits: Limits) -> Iterator[tuple[Scene, str]]:
    """A broker, a table with an outbox, and one job that the broker was not told of."""
    with a_broker(limits) as broker, a_scene(broker, has_outbox=True) as scene:
        id = scene.desk.next_id()
        scene.desk.submit(id, KEY)
        yield scene, id


def steps_of(text: Any, known: tuple[str, ...]) -> list[str]:
    """The steps of an answer.  Raises ValueError for one that is none."""
    steps = [step.strip() for step in str(text).split("/")]
    for step in steps:
        if step not in known:
            raise ValueError(f"{step!r} is no step; the steps are {', '.join(known)}")
    return steps


# How often is it told?


def told_again(dies: int, options: dict[str, str]) -> Judge:
    """The letter of what comes of a relay that dies so often before it crosses its line off."""

    def shows() -> Shown:
        with submitted(Limits()) as (scene, id):
            for _ in range(dies):
                carried_out(relay(scene.store, scene.broker, 0), AFTER)
            scene.relay(0)
            messages = scene.broker.messages()
            scene.consume(0)
        says = f"{messages} message{'s' * (messages > 1)}, done {times(scene.done.count(id))}"
        return Shown(says, tuple(scene.told))

    return chosen(options, shows)


# A relay in the learner's order

RELAY = READ, SEND, WAIT, CROSS = ("read", "send", "wait", "cross off")


def relay_in_this_order() -> Judge:
    """The order in which a relay reads a line, sends, waits for the confirmation and crosses off: no job may be lost,
    wherever it dies, nor when the broker is dead for a while."""

    def judge(answer: Any) -> Feedback:
        steps = steps_of(answer, RELAY)
        with a_broker() as broker:
            for fault in (*range(1, len(steps) + 1), None):
                told = with_fault(broker, steps, fault)
                if told != DONE:
                    says = "dies there" if fault else "and the broker is dead meanwhile"
                    shown = (*(steps[:fault] if fault else steps), says, "everybody recovers", f"the job is {told}")
                    return Feedback(WRONG, f"With this order the job is {told}.", None, shown)
        return Feedback(RIGHT, "the job is done, wherever the relay dies, and when the broker is dead for a while")

    return judge


def with_fault(broker: Broker, steps: list[str], dies_after: int | None) -> str:
    """What becomes of a job whose relay dies after so many steps; None: the broker is dead while it works."""
    with a_scene(broker, has_outbox=True) as scene:
        id = scene.desk.next_id()
        scene.desk.submit(id, KEY)
        if dies_after is None:
            broker.kill()
        try:
            in_order(scene, steps[:dies_after])
        finally:
            if dies_after is None:
                broker.restart()
        in_order(scene, steps)
        scene.consume(0)
        return "told again and again" if outbox(scene.store) else scene.ended(id)


def in_order(scene: Scene, steps: list[str]) -> None:
    """One pass of the relay; a confirmation that does not come ends it, if it is waited for."""
    lines: tuple[Line, ...] = ()
    confirmed = False
    for step in steps:
        if step == READ:
            lines = outbox(scene.store)
        elif step == SEND:
            confirmed = all(map(partial(sent, scene.broker), lines))
        elif step == WAIT and not confirmed:
            return
        elif step == CROSS:
            for line in lines:
                cross_off(scene.store, line)


def sent(broker: Broker, line: Line) -> bool:
    try:
        broker.publish(line.job)
    except NotConfirmed:
        return False
    return True


# A consumer in the learner's order

CONSUMER = ("fetch", "ack", "claim", "work", "report", "dies")


def loses_the_job() -> Judge:
    """What one consumer does, step by step, after which the job is never done though everybody recovers."""

    def judge(answer: Any) -> Feedback:
        steps = steps_of(answer, CONSUMER)
        with submitted(Limits(ack_wait_seconds=AGAIN_SECONDS)) as (scene, id):
            scene.relay(0)
            consumer(scene, id, steps)
            scene.recover()
            seen = scene.ended(id)
        shown = (*steps, "everybody recovers", f"the job is {seen}")
        if id not in scene.done:
            return Feedback(RIGHT, f"the job is {seen}, and nobody will ever come for it", None, shown)
        return Feedback(WRONG, f"The job is {seen}.", None, shown)

    return judge


def consumer(scene: Scene, id: str, steps: list[str]) -> None:
    """Do these steps.  Raises ValueError for one that can't be done yet."""
    delivery: Delivery | None = None
    attempt = 0
    for step in steps:
        if step == "dies":
            return
        if step == "fetch":
            delivery = scene.broker.fetch()
        elif delivery is None:
            raise ValueError(f"{step!r} comes before there is a message: fetch one first")
        elif step == "ack":
            scene.broker.ack(delivery)
        elif step == "claim":
            attempt = scene.store.claim(id, "consumer", now=0).attempt or 0
        elif not attempt:
            raise ValueError(f"{step!r} comes before the job is claimed")
        elif step == "work":
            scene.done.append(id)
        elif step == "report":
            scene.store.succeed(id, attempt, "consumer", now=0)
