"""The exercises of chapter 06, whose RUNNING is it."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, happens

STALE = "client submits / A claims next / 11 units pass / sweep / B claims next / A progresses 90%"

EXERCISES = (
    Exercise(
        number="06.1",
        title="A stale report of progress",
        kind="predict",
        minutes=3,
        task=f"""Fencing is off, all else is on. What becomes of A's report?

    {STALE}

- `"a"`  attempt 1 accepted
- `"b"`  ✗ attempt 1 refused: unfinished
- `"c"`  ✗ attempt 1 refused: current""",
        judge=happens(
            STALE,
            "all but attempt_fencing",
            {
                "a": "attempt 1 accepted",
                "b": "✗ attempt 1 refused: unfinished",
                "c": "✗ attempt 1 refused: current",
            },
        ),
        right="a",
        because="The job is RUNNING, so the guard on the state lets it pass. That it is B's RUNNING is what no one "
        "asks.",
        hints=("Which guard is still on?", "What is the job's state when the report arrives?"),
        wrong=(
            Wrong("b", "The guard on the state asks whether the job is RUNNING. It is: B runs it."),
            Wrong("c", "That is the rule of the flag that is off."),
        ),
    ),
    Exercise(
        number="06.3",
        title="A's word for B's work",
        kind="break it",
        minutes=6,
        task="""Fencing is off, all else is on. Write a schedule that breaks *only the current attempt's report
counts*.""",
        judge=breaks("only the current attempt's report counts", "all but attempt_fencing", longest=10),
        right="client submits / A claims next / 11 units pass / sweep / B claims next / A succeeds",
        because="Whatever A reports now, it reports on B's attempt: a result, a failure, or a renewal of B's lease.",
        hints=("A must have lost its job without knowing.", "Then let A report anything, while B runs."),
        wrong=(
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / B claims next / B succeeds / A succeeds",
                "What is over stays over: the guard on the state refuses A.",
            ),
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / A succeeds",
                "A's attempt is still the latest one: nobody has claimed since.",
            ),
            Wrong("client submits / A claims next / A succeeds / A succeeds late", "It is the current attempt twice."),
        ),
    ),
)
