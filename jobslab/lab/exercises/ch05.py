"""The exercises of chapter 05, only forward."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, final_state, happens, is_enough

ASKED = "client submits / A claims next / client cancels / A succeeds"
CAME_BACK = "client submits / A claims next / A sends progress 50% / A succeeds / A progresses 50% late"

EXERCISES = (
    Exercise(
        number="05.1",
        title="A cancel that comes in time",
        kind="predict",
        minutes=2,
        task=f"""The full contract is in force. A is at work when the client cancels, and A's next report is its
success. What does the job look like at the end?

    {ASKED}

- `"a"`  job-1 CANCELLED attempt 1
- `"b"`  job-1 SUCCEEDED attempt 1
- `"c"`  job-1 RUNNING attempt 1""",
        judge=happens(
            ASKED,
            "all",
            {"a": "job-1 CANCELLED attempt 1", "b": "job-1 SUCCEEDED attempt 1", "c": "job-1 RUNNING attempt 1"},
            of=final_state,
        ),
        right="b",
        because="A running job is asked to stop, and its worker stops it. This one was through before it heard of it: "
        "the file is there, and the job says so. Whoever cancels has to look how it ended.",
        hints=(
            "`cancel` writes CANCELLED only where the state is QUEUED; on a running job it leaves a request.",
            "A's success is guarded by `state = 'RUNNING'`. Is the job RUNNING when it arrives?",
        ),
        wrong=(
            Wrong("a", "Nobody may write CANCELLED over work that is going on: only its worker knows how far it is."),
            Wrong("c", "A request to stop takes nothing from the worker: its report lands."),
        ),
    ),
    Exercise(
        number="05.2",
        title="Which flag is it?",
        kind="complete",
        minutes=3,
        task=f"""Write the smallest contract under which this schedule breaks neither *a terminal state is final* nor
*no progress report lands on a terminal row*: the flags that must be on, with commas between them.

    {CAME_BACK}""",
        judge=is_enough(CAME_BACK, ["a terminal state is final", "no progress report lands on a terminal row"]),
        right="conditional_updates",
        because="The late report is of the current attempt, and nobody has lost a lease: all that is wrong is that the "
        "job is over. Only a guard on the state sees that.",
        hints=(
            "Which attempt does the late report name, and which one stands in the row?",
            "One flag is enough.",
        ),
        wrong=(
            Wrong("attempt_fencing", "There was only one attempt, and the report names it."),
            Wrong("leases", "No lease has run out, and nobody looks at leases when a report arrives."),
            Wrong("conditional_updates, attempt_fencing", "The second flag refuses nothing here."),
        ),
    ),
    Exercise(
        number="05.3",
        title="Cancelled, and at work",
        kind="break it",
        minutes=5,
        task="""Conditional updates are off, all else is on. Write a schedule that breaks *a cancelled queued job
never runs*: the client cancels while the job waits, is told that it is CANCELLED, and yet a worker runs it.""",
        judge=breaks("a cancelled queued job never runs", "all but conditional_updates", longest=8),
        right="client submits / A picks / client cancels / A claims",
        because="A picked a job that was QUEUED, and claimed by its id alone. The claim wrote RUNNING over CANCELLED: "
        "the double claim once more, with a client in place of the second worker.",
        hints=(
            "Somebody must have looked before the cancel, and write after it.",
            "`A claims next` is pick and claim in one: take them apart.",
        ),
        wrong=(
            Wrong("client submits / client cancels / A claims next", "A looks after the cancel, and finds nothing."),
            Wrong(
                "client submits / A claims next / client cancels / A succeeds",
                "The job was running, not queued, when the cancel came.",
            ),
            Wrong("client submits / A picks / A claims / client cancels", "The claim was first here."),
        ),
    ),
)
