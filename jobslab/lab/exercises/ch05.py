"""The exercises of chapter 05, only forward."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, happens

TOO_LATE = "client submits / A claims next / A succeeds / client cancels"

EXERCISES = (
    Exercise(
        number="05.1",
        title="A cancel that comes late",
        kind="predict",
        minutes=2,
        task=f"""The full contract is in force. What is the client's cancel answered?

    {TOO_LATE}

- `"a"`  200; state CANCELLED; attempt 1; error cancelled
- `"b"`  200; state SUCCEEDED; attempt 1
- `"c"`  200; state RUNNING; attempt 1""",
        judge=happens(
            TOO_LATE,
            "all",
            {
                "a": "200; state CANCELLED; attempt 1; error cancelled",
                "b": "200; state SUCCEEDED; attempt 1",
                "c": "200; state RUNNING; attempt 1",
            },
        ),
        right="b",
        because="A cancel asks; what is over stays over, and the answer says how it ended.",
        hints=("Is SUCCEEDED a terminal state?", "What would the owner of the finished export say?"),
        wrong=(
            Wrong("a", "Then the export would be there and the job would say that it is not."),
            Wrong("c", "A worker that runs is asked to stop; this one has reported and is gone."),
        ),
    ),
    Exercise(
        number="05.3",
        title="Two of them",
        kind="break it",
        minutes=6,
        task="""Conditional updates are off, all else is on. Write a schedule of at most five steps that breaks
*one live claim per job*.""",
        judge=breaks("one live claim per job", "all but conditional_updates", longest=5),
        right="client submits / A picks / B picks / A claims / B claims",
        because="Between the pick and the claim the world moves on, and the claim does not say what it expects to "
        "find.",
        hints=("`A claims next` is pick and claim in one: take them apart.", "Both must pick before one claims."),
        wrong=(
            Wrong("client submits / A claims next / B claims next", "B picks after A's claim: it finds nothing."),
            Wrong(
                "client submits / A picks / A claims / B picks / B claims",
                "Taken apart, but not woven: B picks when A has claimed.",
            ),
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / B claims next",
                "Two at work, but A's lease is over: it is no live claim.",
            ),
        ),
    ),
)
