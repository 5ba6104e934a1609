"""The exercises of chapter 05, only forward."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, final_state, guard, happens

ASKED = "client submits / A claims next / client cancels / A succeeds"

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
        title="Not in these states",
        kind="complete",
        minutes=4,
        task="""A report lands where `state = 'RUNNING'`. Write the same rule the other way round, as an SQL predicate
that lists the states in which no report may land: `"state NOT IN (...)"`. The five states are QUEUED, RUNNING,
SUCCEEDED, FAILED and CANCELLED. Your rule is tried in every order of events.""",
        judge=guard("unfinished"),
        right="state NOT IN ('QUEUED', 'SUCCEEDED', 'FAILED', 'CANCELLED')",
        because="Not over is not enough: a job that is QUEUED again has been taken from its worker. And a list of what "
        "is forbidden grows with every new state; `state = 'RUNNING'` says what the writer expects.",
        hints=(
            "What may a worker still say of a job that the sweeper has put back?",
            "RUNNING is the only state that may be missing from the list.",
        ),
        wrong=(
            Wrong(
                "state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')",
                "These are the terminal states. But a queued job is nobody's, and here a worker that has lost it "
                "renews its lease.",
            ),
            Wrong("state <> 'SUCCEEDED'", "A job may also be over in another way."),
            Wrong("finished_at IS NULL", "That is true of a queued job too, and nobody runs it."),
        ),
    ),
    Exercise(
        number="05.3",
        title="Cancelled, and at work",
        kind="break it",
        minutes=4,
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
