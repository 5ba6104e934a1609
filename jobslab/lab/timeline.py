"""What happened, in which order, and where do two contracts part?  The rows of runs in words, lanes and bands.

A timeline has a line for each step, a lane for every actor, and a band with the state of each job; runs of one schedule
stand side by side, and the first step that went otherwise is marked.  All that a picture shows is worked out here, from
the rows alone; `drawing` puts it on paper, so that picture and text can't say two things.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from jobslab.job import REPORTS
from jobslab.lab.running import ACCEPTED, LOST, NOT_EXERCISED, REFUSED, UNDER_WAY, Row


class Side(NamedTuple):
    """One run of the schedule: what it is called, under which contract it ran, and its rows."""

    name: str
    contract: str
    rows: Sequence[Row]


# In words


SIGNS = {REFUSED: "✗ ", NOT_EXERCISED: "○ ", LOST: "⚡ "}


def words(row: Row) -> str:
    """What became of the step: a sign where something went wrong, and words that say the same."""
    about = f"attempt {row.names} " if row.names is not None and base(row.verb) in REPORTS else ""
    why = row.refused_by if row.answer == REFUSED else row.note
    return SIGNS.get(row.outcome, "") + about + row.answer + (f": {why}" if why else "")


def states(row: Row) -> str:
    """How the jobs stand after the step."""
    jobs = (f"{job.id} {job.state} attempt {job.attempt}" for job in row.jobs)
    return "; ".join(jobs) or "no job"


def at_work(busy: dict[str, int]) -> str:
    """Which workers believe to run a job."""
    return " | at work: " + ", ".join(f"{worker} (attempt {busy[worker]})" for worker in sorted(busy)) if busy else ""


def twin(title: str, sides: Sequence[Side]) -> str:
    """The timeline as text."""
    blocks = [headline(title, sides)]
    blocks += ["\n".join([full_name(side), *lines(side.rows)]) for side in sides]
    return "\n\n".join([*blocks, *difference_in_words(sides)])


def full_name(side: Side) -> str:
    return side.name if side.name == side.contract else f"{side.name} [{side.contract}]"


def lines(rows: Sequence[Row]) -> list[str]:
    cells = [
        (f"t={row.at:g}", f"{row.n}", step_and_label(row), words(row), states(row) + at_work(busy))
        for row, busy in zip(rows, hands(rows))
    ]
    wide = [max((len(cell[column]) for cell in cells), default=0) for column in range(4)]
    return [
        f"  {at:<{wide[0]}}  {n:>{wide[1]}}  {step:<{wide[2]}}  {said:<{wide[3]}}  {jobs}"
        for at, n, step, said, jobs in cells
    ]


def step_and_label(row: Row) -> str:
    return f"{row.step} ({row.label})" if row.label else row.step


def headline(title: str, sides: Sequence[Side]) -> str:
    runs = f", {len(sides)} runs" if len(sides) > 1 else ""
    return f"{title}: {len(longest(sides))} steps{runs}"


def longest(sides: Sequence[Side]) -> Sequence[Row]:
    return max((side.rows for side in sides), key=len)


def first_difference(sides: Sequence[Side]) -> int | None:
    """Where the runs part: the index of the first step whose outcome is not the same in all, or None."""
    for n, rows in enumerate(zip_longest(*(side.rows for side in sides))):
        if len({row and (words(row), row.jobs) for row in rows}) > 1:
            return n
    return None


def difference_in_words(sides: Sequence[Side]) -> Iterator[str]:
    at = first_difference(sides)
    if at is not None:
        here = [side.rows[at] for side in sides if at < len(side.rows)]
        yield f"first difference at step {at + 1}, {step_and_label(here[0])}: {' | '.join(words(row) for row in here)}"
    elif len(sides) > 1:
        yield "no difference"


def alt(title: str, sides: Sequence[Side]) -> str:
    """The timeline in a few sentences, for the image's alternative text."""
    ends = (f"{full_name(side)} ends with {states(side.rows[-1])}" for side in sides if side.rows)
    parts = ["Timeline of " + headline(title, sides), *difference_in_words(sides), "; ".join(ends)]
    return ". ".join(parts) + "."


# Who does what, and to whom


def base(verb: str) -> str:
    """The report inside "send succeed" and "succeed late"."""
    return verb.removeprefix("send ").removesuffix(" late")


SWEEPS = ("look", "requeue", "sweep")
WORKS = ("pick", "claim", "claim next", "crash")
ASKS = ("submit", "submit again", "poll", "cancel", "count jobs")
ON_ITS_OWN = ("give up", "judge", "crash")  # nobody is asked


def kind_of_lane(row: Row) -> int | None:
    """0 a client, 1 the server, 3 a worker, 4 a sweeper; 2 is the store; None: nobody's, like time."""
    if row.actor.startswith("client"):
        return 0
    if row.verb in ("restart", "purge"):
        return 1
    if row.verb in SWEEPS:
        return 4
    return 3 if row.verb in WORKS or base(row.verb) in REPORTS else None


def lanes(sides: Sequence[Side]) -> list[str]:
    """The lanes of a run, from left to right: clients, server, store, workers, sweepers; who never acts has none."""
    found = {(kind, row.actor) for side in sides for row in side.rows if (kind := kind_of_lane(row)) is not None}
    asked = {(2, "store")} | ({(1, "server")} if any(kind == 0 for kind, _ in found) else set())
    return [actor for _, actor in sorted(found | asked)]


def route(row: Row) -> list[str]:
    """The lanes that a step passes, the first one its actor's."""
    if kind_of_lane(row) is None:
        return []
    if row.outcome in (NOT_EXERCISED, UNDER_WAY) or row.verb in ON_ITS_OWN or kind_of_lane(row) == 1:
        return [row.actor]
    return [row.actor, "server", "store"] if row.verb in ASKS else [row.actor, "store"]


LAST_REPORTS = ("succeed", "fail", "retry", "stop")


def hands(rows: Iterable[Row]) -> list[dict[str, int]]:
    """After each step, which workers believe to run a job, and as which attempt."""
    busy: dict[str, int] = {}
    told = []
    for row in rows:
        busy = after(busy, row)
        told.append(busy)
    return told


def after(busy: dict[str, int], row: Row) -> dict[str, int]:
    if row.verb == "restart":
        return {}
    if row.verb in ("claim", "claim next") and row.outcome == ACCEPTED and row.names is not None:
        return {**busy, row.actor: row.names}
    return {worker: attempt for worker, attempt in busy.items() if worker != row.actor or not lets_go(row)}


def lets_go(row: Row) -> bool:
    """Does this step of a worker end its belief?  A late report does not: nobody waits for the answer."""
    if row.verb == "crash":
        return True
    if row.verb.endswith(" late") or row.outcome == NOT_EXERCISED or row.refused_by == "attempts_left":
        return False
    return base(row.verb) in LAST_REPORTS or (base(row.verb) in REPORTS and row.outcome == REFUSED)


def stretches(rows: Sequence[Row], id: str) -> Iterator[tuple[int, int, str, int | None]]:
    """Where the job keeps its state and attempt: (first step, last step, state, attempt), counted from 0.  A job that
    was there and is no more is "gone"."""
    told: list[tuple[str, int | None] | None] = []
    for row in rows:
        job = next((job for job in row.jobs if job.id == id), None)
        was_there = any(told)
        told.append((job.state, job.attempt) if job else ("gone", None) if was_there else None)
    first = 0
    for n, now in enumerate(told):
        if n + 1 == len(told) or told[n + 1] != now:
            if now is not None:
                yield first, n, *now
            first = n + 1
