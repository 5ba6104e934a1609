"""Which promises did this run put to the test, and which did it break?  Read off the rows of one trial.

A promise that a run never tried is *not exercised*, which is neither a pass nor a failure; and the last line of the
table says which fault really fired, or the table would prove nothing.  What may happen in *every* order is asked of the
explorer; its properties have the same names.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobslab.client import UNKNOWN
from jobslab.job import REPORTS, TERMINAL
from jobslab.lab import properties
from jobslab.lab.running import ACCEPTED, LOST, NOT_EXERCISED, Row, Seen
from jobslab.lab.schedule import Schedule, parse
from jobslab.lab.timeline import base, hands
from jobslab.lab.trial import Trial, rerun
from jobslab.settings import LAB

if TYPE_CHECKING:
    import pandas as pd

HOLDS, VIOLATED, UNTRIED = "holds", "VIOLATED", "not exercised"


class Moment(NamedTuple):
    """One step of a run, with what was before it."""

    before: tuple[Seen, ...]
    row: Row
    busy: dict[str, int]  # who believes to run a job after it, as which attempt

    def was(self, id: str | None) -> Seen | None:
        return next((job for job in self.before if job.id == id), None)

    def now(self, id: str | None) -> Seen | None:
        return next((job for job in self.row.jobs if job.id == id), None)

    @property
    def target(self) -> Seen | None:
        """The job that the step is about, as it stood before it."""
        return self.was(self.row.job)

    @property
    def landed(self) -> bool:
        return self.row.outcome == ACCEPTED

    @property
    def arrives(self) -> bool:
        """Is it a worker's report that reaches the store, in time or late?"""
        return base(self.row.verb) in REPORTS and not self.row.verb.startswith("send ") and self.happens

    @property
    def sweeps(self) -> bool:
        return self.row.verb in ("sweep", "requeue") and self.happens and self.row.job is not None

    @property
    def happens(self) -> bool:
        return self.row.outcome != NOT_EXERCISED


def moments(rows: Sequence[Row]) -> list[Moment]:
    befores = [(), *(row.jobs for row in rows)]
    return [Moment(before, row, busy) for before, row, busy in zip(befores, rows, hands(rows))]


class Told(NamedTuple):
    """What a run tells of one promise: was it ever at stake, and at which step was it broken?"""

    tried: bool
    broken_at: int | None = None

    @property
    def verdict(self) -> str:
        return VIOLATED if self.broken_at is not None else HOLDS if self.tried else UNTRIED


def at_stake(tried: Sequence[Moment], broken: Callable[[Moment], bool]) -> Told:
    """What these moments, in which a promise was at stake, tell of it."""
    return Told(bool(tried), next((moment.row.n for moment in tried if broken(moment)), None))


# The promises, one function each: their names are in PROMISES below.


def one_job_per_intent(run: list[Moment]) -> Told:
    """An intent is a client's submit, each time that it is sent again, and each submit of that client with its key."""
    made: dict[tuple[str, str | int], set[str]] = {}  # by client and key; without a key each submit is an intent
    last: dict[str, tuple[str, str | int]] = {}
    tried, broken = False, None
    for moment in run:
        if moment.row.verb in ("submit", "submit again") and moment.happens:
            actor, key = moment.row.actor, parse(moment.row.step)[0].argument("key", moment.row.n)
            intent = last[actor] if moment.row.verb == "submit again" else (actor, key)
            last[actor], tried = intent, tried or intent in made
            new = {job.id for job in moment.row.jobs} - {job.id for job in moment.before}
            made[intent] = made.get(intent, set()) | new
        there = {job.id for job in moment.row.jobs}
        if any(len(ids & there) > 1 for ids in made.values()):
            broken = broken or moment.row.n
    return Told(tried, broken)


def is_kept(run: list[Moment]) -> Told:
    restarts = [moment for moment in run if moment.row.verb == "restart" and moment.before]
    return at_stake(restarts, lambda moment: any(moment.now(job.id) is None for job in moment.before))


def is_final(run: list[Moment]) -> Told:
    tried = [m for m in run if (m.arrives or m.sweeps or m.row.verb in ("cancel", "claim")) and over(m.target)]
    return at_stake(tried, lambda m: (now := m.now(m.row.job)) is None or now.state != (m.target and m.target.state))


def over(job: Seen | None) -> bool:
    return job is not None and job.state in TERMINAL


def one_live_claim(run: list[Moment]) -> Told:
    """Live: by the worker's own count its lease has not run out."""
    claims = [m for m in run if m.row.verb in ("claim", "claim next") and m.happens and m.target is not None]
    again = [m for m in claims if m.target is not None and m.target.attempt > 0]
    ends = leases(run)
    two = [m for m in run if len([w for w in m.busy if ends.get((w, m.busy[w]), m.row.at + 1) > m.row.at]) > 1]
    return Told(bool(again), two[0].row.n if two else None)


def leases(run: list[Moment]) -> dict[tuple[str, int], float]:
    """Until when each claim is good, by the worker's own count: (worker, attempt) -> time."""
    ends: dict[tuple[str, int], float] = {}
    for moment in run:
        job = moment.now(moment.row.job)
        if moment.landed and moment.row.verb in ("claim", "claim next", "renew") and job and moment.row.names:
            ends[moment.row.actor, moment.row.names] = job.lease_until or 0
    return ends


def sweeps_undo_nothing(run: list[Moment]) -> Told:
    def undone(moment: Moment) -> bool:
        was = moment.target
        return moment.landed and was is not None and (was.state != "RUNNING" or (was.lease_until or 0) > moment.row.at)

    return at_stake([moment for moment in run if moment.sweeps], undone)


def only_the_current_counts(run: list[Moment]) -> Told:
    return at_stake(
        [m for m in run if m.arrives and m.target is not None and m.row.names != m.target.attempt],
        lambda moment: moment.landed,
    )


def progress_spares_what_is_over(run: list[Moment]) -> Told:
    return at_stake(
        [m for m in run if m.arrives and base(m.row.verb) == "progress" and over(m.target)],
        lambda moment: moment.landed,
    )


def cancelled_never_runs(run: list[Moment]) -> Told:
    cancelled = {m.row.job for m in run if m.row.verb == "cancel" and m.target and m.target.state == "QUEUED"}
    broken = [m.row.n for m in run if any(job.id in cancelled and job.state == "RUNNING" for job in m.row.jobs)]
    return Told(bool(cancelled), broken[0] if broken else None)


def asked_to_stop_is_not_started(run: list[Moment]) -> Told:
    claims = [m for m in run if m.row.verb in ("claim", "claim next") and m.target and m.target.cancel_requested]
    asked = [m for m in run if any(job.cancel_requested and not over(job) for job in m.before)]
    return Told(bool(claims or asked), next((moment.row.n for moment in claims if moment.landed), None))


def attempts_have_a_ceiling(run: list[Moment]) -> Told:
    tried = [m for m in run if any(job.attempt >= LAB.max_attempts for job in m.row.jobs)]
    return at_stake(tried, lambda moment: any(job.attempt > LAB.max_attempts for job in moment.row.jobs))


def deadline_says_unknown(run: list[Moment]) -> Told:
    tried = [m for m in run if m.row.verb == "give up" and not over(m.target)]
    return at_stake(tried, lambda moment: not moment.row.answer.startswith(UNKNOWN))


def reaches_an_end(run: list[Moment]) -> Told:
    """To be asked of a run that was given time to recover: see RECOVERY."""
    accepted = {job.id for moment in run for job in moment.row.jobs}
    last = run[-1]
    lost = [id for id in accepted if not over(last.now(id))]
    return Told(bool(accepted), last.row.n if lost else None)


# Under the names that the explorer's properties have, in their order.
PROMISES: dict[str, Callable[[list[Moment]], Told]] = {
    properties.ONE_JOB: one_job_per_intent,
    properties.KEPT: is_kept,
    properties.ENDS: reaches_an_end,
    properties.LIVE: one_live_claim,
    properties.FINAL: is_final,
    properties.SWEEP: sweeps_undo_nothing,
    properties.CURRENT: only_the_current_counts,
    properties.PROGRESS: progress_spares_what_is_over,
    properties.CANCELLED: cancelled_never_runs,
    properties.ASKED: asked_to_stop_is_not_started,
    properties.CEILING: attempts_have_a_ceiling,
    properties.DEADLINE: deadline_says_unknown,
}

FAULT = "the fault fired"


def judged(trial: Trial) -> dict[str, Told]:
    """What the trial tells of each promise, by name."""
    run = moments(trial.rows)
    recovered = moments(rerun(trial, (*trial.schedule, *recovery(trial))).rows)
    return {name: told(recovered if name == properties.ENDS else run) for name, told in PROMISES.items()}


def recovery(trial: Trial) -> Schedule:
    """What is done after a run to see whether its jobs can still end: who is at work finishes, and then so often as a
    job may be tried, time passes, somebody sweeps, and a fresh worker takes what is there."""
    busy = hands(trial.rows)[-1] if trial.rows else {}
    rounds = max(1, len(trial.rows[-1].jobs)) * LAB.max_attempts if trial.rows else 1
    finish = [f"{worker} succeeds" for worker in sorted(busy)]
    again = ["1000 units pass", "sweep", "Z claims next", "Z succeeds"] * rounds
    return parse(" / ".join([*finish, *again]))


def faults(trial: Trial) -> list[str]:
    """What went wrong on the way, or came late, and really happened: in the words of the schedule."""
    return list(dict.fromkeys(words for moment in moments(trial.rows) for words in fault(moment)))


def fault(moment: Moment) -> Iterator[str]:
    row, was = moment.row, moment.target
    if row.outcome == LOST:
        yield "response lost"
    if row.verb == "restart" or (row.verb == "crash" and row.job is not None):
        yield row.step
    if row.verb.endswith(" late") and moment.happens:
        yield row.step
    if row.verb == "claim" and moment.happens and was is not None and was.state != "QUEUED":
        yield f"{row.step} what it picked"
    if row.verb == "requeue" and moment.happens and was is not None and was.state != "RUNNING":
        yield f"{row.step} what it saw"
    if row.verb in ("fail", "retry") and moment.arrives:
        yield row.step


def verdicts(*trials: Trial, every: bool = False) -> "pd.DataFrame":
    """A line for each promise that some trial put to the test (`every`: for each), a column a trial; the last line
    says which fault fired."""
    import pandas as pd

    told = {trial.name: judged(trial) for trial in trials}
    names = [name for name in PROMISES if every or any(told[trial.name][name].tried for trial in trials)]
    columns = {trial.name: [told[trial.name][name].verdict for name in names] for trial in trials}
    for trial in trials:
        columns[trial.name].append("yes: " + "; ".join(faults(trial)) if faults(trial) else "no")
    return pd.DataFrame(columns, index=[*names, FAULT])


def violated(trial: Trial) -> list[str]:
    """The promises that this run broke."""
    return [name for name, told in judged(trial).items() if told.verdict == VIOLATED]
