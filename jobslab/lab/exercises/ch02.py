"""The exercises of chapter 02, when is it over."""

from typing import Any

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import happens, judged_over_and_was_not, poll_rule, reaches

GAVE_UP = "client submits / A claims next / client polls / A succeeds / client polls / response lost / client gives up"


def is_over(document: dict[str, Any]) -> bool:
    return document["state"] in ("SUCCEEDED", "FAILED", "CANCELLED")


def not_running(document: dict[str, Any]) -> bool:
    return bool(document["state"] != "RUNNING")


def succeeded_or_failed(document: dict[str, Any]) -> bool:
    return document["state"] in ("SUCCEEDED", "FAILED")


def neither_queued_nor_running(document: dict[str, Any]) -> bool:
    return document["state"] not in ("QUEUED", "RUNNING")


EXERCISES = (
    Exercise(
        number="02.1",
        title="At the deadline",
        kind="predict",
        minutes=2,
        task=f"""The job succeeds, the answer to the client's last poll is lost, and then its deadline is over.
What may it say?

    {GAVE_UP}

- `"a"`  SUCCEEDED
- `"b"`  FAILED
- `"c"`  UNKNOWN; last seen RUNNING""",
        judge=happens(GAVE_UP, "all", {"a": "SUCCEEDED", "b": "FAILED", "c": "UNKNOWN; last seen RUNNING"}),
        right="c",
        because="A client may say what it has seen, and no more. It saw RUNNING; a poll without an answer tells "
        "nothing of the job. Asked again later, by the job's id, the server says SUCCEEDED.",
        hints=("What is the last state that this client was told?", "You know more than the client does."),
        wrong=(
            Wrong("a", "That is how it is, and the client has not seen it: the answer was lost."),
            Wrong("b", "Nobody has seen it fail. A caller that believes this submits again, and has two exports."),
        ),
    ),
    Exercise(
        number="02.2",
        title="A poll rule",
        kind="complete",
        minutes=6,
        task="""Write the rule by which a client stops polling. It is given the status document, a dict with
`state` and `done` among others, and returns True when the job is over.

    def is_over(document):
        return ___""",
        judge=poll_rule(),
        right=is_over,
        because="Name the states that end it. What is not known is not done; `document['done']` says the same here.",
        hints=("Which states never change again?", "What does your rule say of a state that is added next year?"),
        wrong=(
            Wrong(not_running, "A job that waits is not running either."),
            Wrong(succeeded_or_failed, "A cancelled job is over too."),
            Wrong(neither_queued_nor_running, "Today that is the same."),
        ),
    ),
    Exercise(
        number="02.3",
        title="Stop too early, later",
        kind="break it",
        minutes=6,
        task="""A job has run, and is to run again; the client, which takes *not RUNNING* for *over*, stops
there. Write the schedule, under the full contract: it ends with `client polls` and `client judges "not
RUNNING"`.""",
        judge=reaches("the client stopped, and the job runs again", "all", judged_over_and_was_not, longest=12),
        right='client submits / A claims next / A retries / client polls / client judges "not RUNNING"',
        because="RUNNING is left for QUEUED by a retry, or by the sweep after a crash: both are on the way, not at "
        "the end.",
        hints=("How does a job get from RUNNING back to QUEUED?", "`A retries` says: not this time."),
        wrong=(
            Wrong('client submits / client polls / client judges "not RUNNING"', "Too early, but it had not run yet."),
            Wrong(
                'client submits / A claims next / client polls / client judges "not RUNNING"',
                "While it runs, this rule is right.",
            ),
            Wrong(
                'client submits / A claims next / A fails / client polls / client judges "not RUNNING"',
                "This job is over.",
            ),
        ),
    ),
)
