"""How is an answer judged?  By running it: an option against a run, a schedule on a store, a contract under a schedule,
a poll rule on real status documents, a predicate by the explorer.  Each function here makes one judge."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jobslab.contract import Contract
from jobslab.lab.exercises.answer import RIGHT, WRONG, Feedback, is_blank
from jobslab.lab.exercises.exercise import Judge, NotAttempted
from jobslab.lab.explore import explore
from jobslab.lab.place import here
from jobslab.lab.properties import LATER, NAMES
from jobslab.lab.running import LOST
from jobslab.lab.running import run as run_here
from jobslab.lab.schedule import parse
from jobslab.lab.timeline import hands, states, words
from jobslab.lab.trial import Trial, run
from jobslab.lab.verdicts import VIOLATED, judged, violated


def steps(trial: Trial) -> tuple[str, ...]:
    return tuple(str(step) for step in trial.schedule)


# An option, for exercises that ask what will happen


class Shown(NamedTuple):
    """What a run shows, in the words of an option, and its steps."""

    says: str
    steps: tuple[str, ...]


def chosen(options: Mapping[str, str], shows: Callable[[], Shown]) -> Judge:
    """The letter of the option that is shown, by a run that is made when somebody answers."""

    def judge(letter: Any) -> Feedback:
        if letter not in options:
            raise ValueError(f"the answer is one of {', '.join(options)}")
        shown = shows()
        if shown.says not in options.values():
            raise ValueError(f"the run showed {shown.says!r}, which is none of the options")
        if options[letter] == shown.says:
            return Feedback(RIGHT, f"the run shows it: {shown.says}", schedule=shown.steps)
        return Feedback(WRONG, f"The run shows something else: {shown.says}", schedule=shown.steps)

    return judge


def happens(schedule: str, how: str, options: Mapping[str, str], of: Callable[[Trial], str] | None = None) -> Judge:
    """The letter of what the schedule's last step shows: what was answered, or what `of` reads off the run."""

    def shows() -> Shown:
        trial = run(schedule, how)
        return Shown(of(trial) if of else words(trial.last), steps(trial))

    return chosen(options, shows)


def final_state(trial: Trial) -> str:
    """How the jobs stand at the end."""
    return states(trial.last)


# A schedule, for exercises that ask to break something


def breaks(promise: str, how: str, longest: int = 20) -> Judge:
    """A schedule that breaks this promise under this contract."""
    return reaches(f"it breaks “{promise}”", how, lambda trial: promise in violated(trial), promise, longest)


def reaches(
    goal: str, how: str, reached: Callable[[Trial], bool], promise: str | None = None, longest: int = 20
) -> Judge:
    """A schedule after which `reached` is true of the run; `goal` says so: "two workers are at work"."""

    def judge(schedule: Any) -> Feedback:
        trial = run(str(schedule), how)
        if len(trial.rows) > longest:
            return Feedback(WRONG, f"That is {len(trial.rows)} steps; {longest} are enough.", schedule=steps(trial))
        if reached(trial):
            return Feedback(RIGHT, f"{goal}, in {len(trial.rows)} steps", promise, steps(trial))
        return Feedback(WRONG, f"Not reached. {what_held(trial)}", schedule=told(trial))

    return judge


def what_held(trial: Trial) -> str:
    held = [name for name, told in judged(trial).items() if told.tried and told.verdict != VIOLATED]
    return f"At the end: {states(trial.last)}. Tried and kept: {', '.join(held) or 'nothing'}."


def told(trial: Trial) -> tuple[str, ...]:
    """Each step with what was answered."""
    return tuple(f"{row.step} → {words(row)}" for row in trial.rows)


# A predicate, for exercises that ask for a rule


def guard(rule: str) -> Judge:
    """An SQL predicate in the place of this rule, under the full contract, in every order of events within the
    explorer's bounds.  It must break nothing, and not by refusing everything: some job must succeed."""

    def judge(predicate: Any) -> Feedback:
        found = explore(rules={rule: str(predicate)}, names=NAMES, first=True)
        for promise, seen in found.broken.items():
            shortest = tuple(seen.schedule.splitlines())
            return Feedback(WRONG, "With this rule a promise breaks, and no schedule is shorter.", promise, shortest)
        done = explore(rules={rule: str(predicate)}, names=[LATER], first=True).findings[LATER]
        if not done.trace:
            return Feedback(WRONG, "No promise breaks, but a job that is tried again never succeeds.", None, NEVER)
        return Feedback(RIGHT, f"no promise breaks, in any order of events; {found.states} states were looked at")

    return judge


NEVER = ("client submits", "A claims next", "A succeeds, and is refused")


# A contract, for exercises that ask which flags are needed


def is_enough(schedule: str, promises: Iterable[str]) -> Judge:
    """The smallest contract under which the schedule breaks none of these promises."""
    asked = tuple(promises)

    def broken(contract: Contract) -> list[str]:
        return [promise for promise in violated(run(schedule, contract)) if promise in asked]

    def judge(answer: Any) -> Feedback:
        contract = answer if isinstance(answer, Contract) else Contract.parse(str(answer))
        if found := broken(contract):
            return Feedback(WRONG, f"Under [{contract}] this breaks.", found[0], steps(run(schedule, contract)))
        fewer = [contract.without(flag) for flag in contract.on if not broken(contract.without(flag))]
        if fewer:
            so = f"It holds, but so it does with less: [{fewer[0]}]."
            return Feedback(WRONG, so, None, steps(run(schedule, contract)))
        return Feedback(RIGHT, f"[{contract}] is enough, and no flag of it can go")

    return judge


# A poll rule, for exercises that ask when a job is over

# The shortest schedules after which a poll shows each state.
SHOWS = {
    "QUEUED": "client submits",
    "RUNNING": "client submits / A claims next",
    "SUCCEEDED": "client submits / A claims next / A succeeds",
    "FAILED": "client submits / A claims next / A fails",
    "CANCELLED": "client submits / client cancels",
}
NEW_STATE = "PAUSED"  # of a server that is newer than the client


def poll_rule() -> Judge:
    """A function that takes a status document and says whether the job is over.  It is shown a real one in each state
    that there is, and one in a state that no client has heard of."""

    def judge(is_over: Any) -> Feedback:
        documents = {schedule: document(schedule) for schedule in SHOWS.values()}
        for schedule, shown in documents.items():
            says = is_over(shown)
            if says is None or is_blank(says):
                raise NotAttempted
            if bool(says) is not shown["done"]:
                so = f"{verdict(says)} while the state is {shown['state']}."
                return Feedback(WRONG, so, None, polled(schedule))
        if is_over({**documents["client submits"], "state": NEW_STATE}):
            return Feedback(WRONG, f"{verdict(True)} in a state that it has never heard of, {NEW_STATE}.")
        return Feedback(RIGHT, "it stops in the three terminal states and in no other, an unknown one included")

    return judge


def document(schedule: str) -> dict[str, Any]:
    """The status document that a client gets after this schedule."""
    with here(Contract()) as place:
        run_here(parse(schedule), place)
        return dict(place.client.get("job-1").body)


def polled(schedule: str) -> tuple[str, ...]:
    return (*schedule.split(" / "), "client polls")


def verdict(said: Any) -> str:
    return "Your rule says that the job is over" if said else "Your rule goes on polling"


# What a user is shown, for exercises that ask what a status means

SHOWN = {"SUCCEEDED": "done", "FAILED": "failed", "CANCELLED": "cancelled"}  # all others: in progress
IN_PROGRESS = "in progress"


def shown_to_user() -> Judge:
    """A function from a status document to one of four words; it is shown a real document in each state, and one in a
    state that no client has heard of."""

    def judge(says: Any) -> Feedback:
        for schedule in SHOWS.values():
            shown = document(schedule)
            word = says(shown)
            if word is None or is_blank(word):
                raise NotAttempted
            if word != SHOWN.get(shown["state"], IN_PROGRESS):
                so = f"It says {word!r} while the state is {shown['state']}."
                return Feedback(WRONG, so, None, polled(schedule))
        word = says({**document("client submits"), "state": NEW_STATE})
        if word != IN_PROGRESS:
            return Feedback(WRONG, f"It says {word!r} in a state that it has never heard of, {NEW_STATE}.")
        return Feedback(RIGHT, "nobody is told that it is done before it is")

    return judge


# The flag that a trace lacks


def lacks(schedule: str, promise: str, letters: Mapping[str, str]) -> Judge:
    """The letter of the flag without which this schedule breaks the promise; each flag is turned off and tried."""

    def judge(letter: Any) -> Feedback:
        flag = letters[letter]
        off = {name: promise in violated(run(schedule, Contract().without(name))) for name in letters.values()}
        if off[flag]:
            others = [name for name, broken in off.items() if broken and name != flag]
            also = f"; so does {', '.join(others)}" if others else "; no other flag does"
            return Feedback(RIGHT, f"turning {flag} off breaks it{also}", promise, steps(run(schedule)))
        return Feedback(WRONG, f"Without {flag} this schedule breaks nothing of the kind.", None, steps(run(schedule)))

    return judge


# What several judges read off a run


def at_work_together(trial: Trial) -> bool:
    """Were two workers at work on one job at once?"""
    return any(len(busy) > 1 for busy in hands(trial.rows))


def ends_as(*wanted: str) -> Callable[[Trial], bool]:
    """Does job-1 end in one of these states?"""
    return lambda trial: trial.last.jobs[:1] != () and trial.last.jobs[0].state in wanted


def two_jobs_of_one_client(trial: Trial) -> bool:
    """Did one client, whose answer was lost, end up with two jobs?"""
    return any(row.outcome == LOST for row in trial.rows) and len(trial.last.jobs) > 1


def judged_over_and_was_not(trial: Trial) -> bool:
    """Did a client take a job for over that had run already and was to run again?"""
    return any(
        row.verb == "judge" and row.answer == "true" and row.state == "QUEUED" and (row.attempt or 0) > 0
        for row in trial.rows
    )


def last_answer_is(*words: str) -> Callable[[Trial], bool]:
    return lambda trial: trial.last.answer in words
