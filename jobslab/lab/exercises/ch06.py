"""The exercises of chapter 06, whose RUNNING is it."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, happens, is_enough

# In two lines, each set in as the code block of a task.
ITS_OWN = """client submits / A claims next / A sends succeed / 11 units pass / sweep
    A claims next / A succeeds late job-1 attempt 1"""
LEFT_BEHIND = """client submits / A claims next / A sends progress 90% / A crashes / 11 units pass / sweep
    B claims next / A progresses 90% late"""

EXERCISES = (
    Exercise(
        number="06.1",
        title="The same worker once more",
        kind="predict",
        minutes=3,
        task=f"""The full contract is in force. A stalls, loses its job, and is itself the next to claim it. Then its
first report arrives. What becomes of it?

    {ITS_OWN}

- `"a"`  attempt 1 accepted
- `"b"`  ✗ attempt 1 refused: unfinished
- `"c"`  ✗ attempt 1 refused: current""",
        judge=happens(
            ITS_OWN,
            "all",
            {
                "a": "attempt 1 accepted",
                "b": "✗ attempt 1 refused: unfinished",
                "c": "✗ attempt 1 refused: current",
            },
        ),
        right="c",
        because="The fence is the attempt, not the worker. A guard `worker = :worker` would have let this report pass: "
        "it is A's job, and yet the report is of other work.",
        hints=("Which attempt is A in now, and for which one does the report speak?", "The job is RUNNING."),
        wrong=(
            Wrong("a", "The worker is the same, the attempt is not: this report is of the work that was given up."),
            Wrong("b", "The job is RUNNING again, so the guard on the state lets it pass."),
        ),
    ),
    Exercise(
        number="06.2",
        title="What is needed",
        kind="complete",
        minutes=4,
        task=f"""Write the smallest contract under which this schedule breaks neither *every accepted job reaches a
terminal state* nor *only the current attempt's report counts*: the flags that must be on, with commas between them.

    {LEFT_BEHIND}""",
        judge=is_enough(
            LEFT_BEHIND, ["every accepted job reaches a terminal state", "only the current attempt's report counts"]
        ),
        right="leases, attempt_fencing",
        because="The lease gives the job of the dead worker to B, and so makes the stale report possible; the fence "
        "refuses it. Who has leases needs fencing.",
        hints=("Without which flag does B never get the job?", "B's job is RUNNING when A's report arrives."),
        wrong=(
            Wrong("attempt_fencing", "Nobody may take the job from A, and A is dead."),
            Wrong("leases, conditional_updates", "The job is RUNNING, so a guard on the state lets A's report pass."),
            Wrong("leases, conditional_updates, attempt_fencing", "The guard on the state refuses nothing here."),
        ),
    ),
    Exercise(
        number="06.3",
        title="Two leases",
        kind="break it",
        minutes=8,
        task="""Fencing is off, all else is on. Write a schedule that breaks *one live claim per job*: two workers on
one job, each with a lease that is good by its own count.""",
        judge=breaks("one live claim per job", "all but attempt_fencing", longest=9),
        right="client submits / A claims next / 11 units pass / sweep / B claims next / A renews",
        because="The renewal is a report like any other. The job is RUNNING, so A's renewal lands on B's attempt; A "
        "is told that its lease is good, and works on.",
        hints=(
            "A must have lost its job without knowing. Its old lease is over; it needs a new one.",
            "Which report gives a worker a new lease?",
        ),
        wrong=(
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / B claims next",
                "Two are at work, but A's lease is over, and A can know that by its own clock.",
            ),
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / B claims next / A progresses 50%",
                "That breaks another promise. Progress lands on B's row, but gives A no lease.",
            ),
            Wrong(
                "client submits / A claims next / 11 units pass / A renews / sweep / B claims next",
                "Renewed before the sweep, A keeps the job: B gets nothing.",
            ),
        ),
    ),
)
