"""How does a client wait while the world goes on?  The real client and the real API, on a clock that tells a story.

A story is a schedule of what workers do, with `3 units pass` in between.  It goes on while the client sleeps, and the
client sleeps in lab time: nobody waits, and every run is the same.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from jobslab.client import JobClient, Outcome
from jobslab.clock import ManualClock
from jobslab.contract import Contract
from jobslab.job import State
from jobslab.lab.place import here
from jobslab.lab.running import JUDGEMENTS, Place, rows
from jobslab.lab.schedule import Schedule, Step, parse

if TYPE_CHECKING:
    import pandas as pd

RULES = {
    "not RUNNING": JUDGEMENTS["not RUNNING"],
    "neither QUEUED nor RUNNING": lambda state: state not in ("QUEUED", "RUNNING"),
    "terminal set": JUDGEMENTS["terminal set"],
}

GOES_ON = "polls on"


def rules(*unheard_of: str) -> "pd.DataFrame":
    """What each rule makes of each state, and of these that no client has heard of: a line a rule, a column a state."""
    import pandas as pd

    states = [*State, *unheard_of]
    told = {state: ["over" if over(state) else GOES_ON for over in RULES.values()] for state in states}
    return pd.DataFrame(told, index=[*RULES])


class Due(NamedTuple):
    """A step of a story, and when it happens."""

    at: float
    step: Step


def timetable(story: Schedule) -> Iterator[Due]:
    """The steps with their times, which `... units pass` tells."""
    at = 0.0
    for step in story:
        if step.verb == "pass":
            at += step.argument("units")
        else:
            yield Due(at, step)


class Story(ManualClock):
    """Lab time; whoever sleeps on this clock lets the story go on."""

    def __init__(self, story: str, place: Place) -> None:
        super().__init__(place.now())
        self.place = place
        self.due = list(timetable(parse(story)))
        self.told = rows([due.step for due in self.due], place)

    def sleep(self, seconds: float) -> None:
        until = self.now() + seconds
        while self.due and self.due[0].at <= until:
            self.advance_to(self.due.pop(0).at)
            next(self.told)
        self.advance_to(until)

    def advance_to(self, moment: float) -> None:
        later = max(0.0, moment - self.now())
        self.place.advance(later)
        self.advance(later)


class Poll(NamedTuple):
    """When a client asked, what it saw, and what it does then."""

    at: float
    saw: str
    then: str = ""


def asks_until(rule: str, story: str) -> "pd.DataFrame":
    """A client that polls every unit until this rule of RULES says that the job is over, and then wants its result."""
    with here(Contract()) as place:
        clock, id = Story(story, place), submitted(place.client)
        polls = []
        while True:
            state = place.client.get(id).body["state"]
            if RULES[rule](state):
                break
            polls.append(Poll(clock.now(), state, GOES_ON))
            clock.sleep(1)
        answer = place.client.ask("GET", f"/jobs/{id}/result")
        wrong = f"; {answer.body['type'].rpartition('/')[2]}" if answer.status >= 400 else ""
        took_it = Poll(clock.now(), state, "takes it for over")
        return table([*polls, took_it, Poll(clock.now(), f"the result: {answer.status}{wrong}")])


def waits(story: str, *deadlines: float, seed: int = 1) -> "pd.DataFrame":
    """`JobClient.wait` on one job, with a deadline in units and then, for each deadline more, taken up again.

    A line a poll; columns: when, what the client saw, and how long it waits then or what it says at the end.
    """
    with here(Contract()) as place:
        client = place.client
        client.clock, client.rng = Story(story, place), random.Random(seed)
        id = submitted(client)
        return table([poll for deadline in deadlines for poll in one_wait(client, id, deadline)])


def one_wait(client: JobClient, id: str, deadline: float) -> list[Poll]:
    polls: list[Poll] = []
    told = client.wait(id, deadline, lambda job: polls.append(Poll(client.clock.now(), job["state"])))
    return [*waited(polls), polls[-1]._replace(then=in_words(told))]


def submitted(client: JobClient) -> str:
    return client.submit("export", {"table": "orders"}, key="k1").id


def waited(polls: Sequence[Poll]) -> list[Poll]:
    """All polls but the last, each with the time until the next."""
    return [poll._replace(then=f"waits {after.at - poll.at:.1f}") for poll, after in pairwise(polls)]


def in_words(told: Outcome) -> str:
    return f"says {told.verdict}" + (f", last seen {told.state}" if told.verdict == "UNKNOWN" else "")


def table(polls: Sequence[Poll]) -> "pd.DataFrame":
    import pandas as pd

    cells = [(f"{round(poll.at, 1):g}", poll.saw, poll.then) for poll in polls]
    return pd.DataFrame(cells, columns=["t", "the client sees", "and then it"], index=range(1, len(cells) + 1))
