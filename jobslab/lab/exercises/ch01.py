"""The exercises of chapter 01, accepted is not done."""

from typing import Any

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import ends_as, happens, reaches, shown_to_user

STOPPED = "client submits / client cancels / A claims next / client polls"


def says(document: dict[str, Any]) -> str:
    words = {"SUCCEEDED": "done", "FAILED": "failed", "CANCELLED": "cancelled"}
    return words.get(document["state"], "in progress")


def takes_a_200_for_done(document: dict[str, Any]) -> str:
    return "done"


def takes_done_for_success(document: dict[str, Any]) -> str:
    return "done" if document["done"] else "in progress"


def takes_the_rest_for_failed(document: dict[str, Any]) -> str:
    words = {"SUCCEEDED": "done", "QUEUED": "in progress", "RUNNING": "in progress", "CANCELLED": "cancelled"}
    return words.get(document["state"], "failed")


EXERCISES = (
    Exercise(
        number="01.1",
        title="Another unhappy end",
        kind="predict",
        minutes=2,
        task=f"""The client cancels its job while it waits; then a worker asks for work. What is the poll answered?

    {STOPPED}

- `"a"`  404
- `"b"`  200; state CANCELLED; attempt 0; error cancelled
- `"c"`  200; state RUNNING; attempt 1""",
        judge=happens(
            STOPPED,
            "all",
            {
                "a": "404",
                "b": "200; state CANCELLED; attempt 0; error cancelled",
                "c": "200; state RUNNING; attempt 1",
            },
        ),
        right="b",
        because="The 200 is about the question: the status could be read. That the job is over without a result, "
        "and why, is in the body.",
        hints=("Is the job's row still there?", "CANCELLED is a terminal state. What does a worker get then?"),
        wrong=(
            Wrong("a", "To cancel is not to forget: the row stays, and tells what became of the job."),
            Wrong("c", "Only a QUEUED job is given to a worker, and this one is over."),
        ),
    ),
    Exercise(
        number="01.2",
        title="What the user may read",
        kind="complete",
        minutes=6,
        task="""Write a function that is given a status document, a dict with `state` and `done` among others,
and returns what a user may be shown: `"in progress"`, `"done"`, `"failed"` or `"cancelled"`.

    def says(document):
        return ___""",
        judge=shown_to_user(),
        right=says,
        because="Only SUCCEEDED is good news. What is not known is in progress: a newer server may have more states.",
        hints=("There are five states; three of them are terminal.", "What does it say of a state that is new?"),
        wrong=(
            Wrong(takes_a_200_for_done, "A status that could be read is no success."),
            Wrong(takes_done_for_success, "`done` says that it is over, not that it went well."),
            Wrong(takes_the_rest_for_failed, "What you do not know is not a failure."),
        ),
    ),
    Exercise(
        number="01.3",
        title="Accepted, and then?",
        kind="break it",
        minutes=4,
        task="""Write a schedule after which job-1, which was answered 202, is over without a result: FAILED.
The full contract is in force.""",
        judge=reaches("job-1 was accepted and is FAILED", "all", ends_as("FAILED"), longest=15),
        right="client submits / A claims next / A fails",
        because="Nothing that was validated at the submit can promise that the work will go well.",
        hints=("A worker's report of a failure is `A fails`.", "It must have claimed the job before."),
        wrong=(
            Wrong("client submits / client cancels", "That is CANCELLED: over because somebody asked for it."),
            Wrong("client submits / A claims next / A crashes", "A is gone, and has said nothing: still RUNNING."),
            Wrong("client submits / A claims next / A retries", "This attempt failed; the job waits for the next."),
        ),
    ),
)
