"""The exercises of chapter 10, done twice, paid once."""

from collections.abc import Callable
from typing import Any

from jobslab.job import Job
from jobslab.lab.again import Fault, Story, Work
from jobslab.lab.exercises.answer import RIGHT, WRONG, Feedback, is_blank
from jobslab.lab.exercises.exercise import Exercise, NotAttempted, Wrong
from jobslab.lab.exercises.judges import Shown, chosen
from jobslab.lab.paying import AFTER, BEFORE, BETWEEN, FAULTS, Till, Way, asks_first, how_often, pay, pay_two_jobs
from jobslab.lab.payment import PaymentError

Key = Callable[[Job], str]


def pays_with(key: Key) -> Way:
    """Pay, with this key."""

    def way(till: Till) -> Work:
        yield BEFORE
        till.account.pay(till.job.id, key=key(till.job))
        yield BETWEEN
        yield AFTER

    return way


def each_attempt(job: Job) -> str:
    return f"{job.id}, attempt {job.attempt}"


def the_job(job: Job) -> str:
    return job.id


def the_kind(job: Job) -> str:
    return job.kind


def the_worker(job: Job) -> str:
    return str(job.worker)


# Judges

OFTEN = {"a": "paid 0 times", "b": "paid 1 time", "c": "paid 2 times"}


def often() -> Shown:
    """How often is paid with a key for each attempt."""
    story = pay(pays_with(each_attempt), Fault("crash", BETWEEN))
    return Shown(how_often(story), story.steps)


def keyed(key: Any) -> Feedback:
    """A function from a job to its key, under every fault, and for two jobs of one customer."""

    def checked(job: Job) -> str:
        made = key(job)
        if made is None or is_blank(made):
            raise NotAttempted
        return str(made)

    for fault in FAULTS:
        story = pay(pays_with(checked), fault)
        if story.seen["paid"] != "1":
            return wrong(fault, story)
    try:
        pay_two_jobs(pays_with(checked))
    except PaymentError as refused:
        says = f"One job is paid once at every point, and the customer's next job is not paid at all: {refused}."
        return Feedback(WRONG, says, schedule=("A: pays for job-1", "A: pays for job-2"))
    return Feedback(RIGHT, f"two jobs, {len(FAULTS)} faults, and each job is paid once")


def wrong(fault: Fault, story: Story) -> Feedback:
    return Feedback(WRONG, f"{fault}: {how_often(story)}.", "a customer pays at most once", story.steps)


def breaks(fault: Any) -> Feedback:
    """A fault under which a customer of `asks_first` pays twice."""
    what, _, at = str(fault).partition(": ")
    if what not in ("crash", "slow") or at not in (BEFORE, BETWEEN, AFTER):
        raise ValueError("a fault is crash or slow, a colon, and one of the three points")
    story = pay(asks_first, Fault(what, at))
    outcome = RIGHT if story.seen["paid"] != "1" else WRONG
    return Feedback(outcome, f"The service says: {how_often(story)}.", schedule=story.steps)


EXERCISES = (
    Exercise(
        number="10.1",
        title="A fresh key each time",
        kind="predict",
        minutes=3,
        task=f"""A colleague has read that every request needs an idempotency key of its own, and sends
`f"{{job.id}}, attempt {{job.attempt}}"`. The first worker crashes after the call, before the report. How often is paid?

- `"a"`  {OFTEN["a"]}
- `"b"`  {OFTEN["b"]}
- `"c"`  {OFTEN["c"]}""",
        judge=chosen(OFTEN, often),
        right="c",
        because="A key says: this is the same intent as before. Each attempt has the intent of its job, so the key is "
        "the job's. A key that is new each time is no key.",
        hints=("What does the service compare?", "What is job.attempt when the second worker calls?"),
        wrong=(
            Wrong("a", "Nothing is written down before the call that could keep anybody from it."),
            Wrong("b", "Would the service know the second request again?"),
        ),
    ),
    Exercise(
        number="10.2",
        title="The key",
        kind="complete",
        minutes=5,
        task="""Write a function that is given a job and returns the idempotency key with which it pays. It is tried
under every fault, and with two jobs of the same customer. A job has an `id`, a `kind`, an `attempt`, a `worker`.

    def key(job):
        return ___""",
        judge=keyed,
        right=the_job,
        because="The same in all attempts of one job, and different in any two jobs. That is what an id is.",
        hints=(
            "What is the same in both attempts?",
            "What is different in two jobs of the same kind, for the same customer?",
        ),
        wrong=(
            Wrong(each_attempt, "The second attempt has another key."),
            Wrong(the_worker, "The second attempt has another worker."),
            Wrong(the_kind, "The next job of this kind has the same key."),
        ),
    ),
    Exercise(
        number="10.3",
        title="We look first",
        kind="break it",
        minutes=5,
        task=f"""`asks_first` asks the service before it pays, and no crash makes it pay twice. Find the fault that
does: `crash` or `slow`, a colon, and one of the points "{BEFORE}", "{BETWEEN}", "{AFTER}".""",
        judge=breaks,
        right=f"slow: {BEFORE}",
        because="Between the look and the act the world goes on. It is the race of chapter 05, in a system that is not "
        "yours: there only the other side can look and act in one step, and the key is how one asks for that.",
        hints=(
            "A crashed worker does not act on what it has seen.",
            "Who acts on an answer that was true when it was given?",
        ),
        wrong=(
            Wrong(f"crash: {BETWEEN}", "The second worker asks, and is told that it was paid."),
            Wrong(f"crash: {BEFORE}", "A crashed worker has asked for nothing."),
            Wrong(f"slow: {BETWEEN}", "The first has paid by then, and the second sees it."),
        ),
    ),
)
