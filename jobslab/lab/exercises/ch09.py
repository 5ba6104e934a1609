"""The exercises of chapter 09, kill it for real."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, happens, is_enough

OVERSLEPT = "client submits / A claims next / 11 units pass / A succeeds late"
BOTH = """client submits key=k1 / A claims next / A crashes / 11 units pass / sweep
    B claims next / 11 units pass / sweep
    C claims next / B succeeds late / C succeeds / client polls"""
PROMISES = ("every accepted job reaches a terminal state", "only the current attempt's report counts")

ACCEPTED, CURRENT, UNFINISHED = "attempt 1 accepted", "✗ attempt 1 refused: current", "✗ attempt 1 refused: unfinished"

EXERCISES = (
    Exercise(
        number="09.1",
        title="Nobody came by",
        kind="predict",
        minutes=3,
        task=f"""A is stopped for longer than its lease, which is good for 10 units. No sweeper looks meanwhile. A wakes
up and reports its success. All five flags are on.

    {OVERSLEPT}

What is A answered?

- `"a"`  {ACCEPTED}
- `"b"`  {CURRENT}
- `"c"`  {UNFINISHED}""",
        judge=happens(OVERSLEPT, "all", {"a": ACCEPTED, "b": CURRENT, "c": UNFINISHED}),
        right="a",
        because="A lease that is over only allows the job to be given away. Nobody has done so, it is still attempt 1, "
        "and the work is done: to refuse it would mean to do it again for nothing.",
        hints=("Which rule of a report asks for the time?", "What has changed in the row since A's claim?"),
        wrong=(
            Wrong("b", "The attempt changes with a claim, and nobody has claimed."),
            Wrong("c", "It is the sweep that takes a job out of RUNNING, and there was none."),
        ),
    ),
    Exercise(
        number="09.2",
        title="One killed, one stopped",
        kind="complete",
        minutes=8,
        task=f"""Both of this chapter's faults, on one job: A is killed, and B is stopped and wakes up late.

    {BOTH}

Name the smallest contract under which it keeps these two promises:

- *{PROMISES[0]}*
- *{PROMISES[1]}*""",
        judge=is_enough(BOTH, PROMISES),
        right="leases, attempt_fencing",
        because="The lease gives the job away, and the fence bears what comes of it: who has the one needs the other.",
        hints=("Which flag answers which fault?", "Turn flags off one by one, and look at the verdicts."),
        wrong=(
            Wrong("all", "It is, and it is more than this schedule needs."),
            Wrong("leases", "Whose report counts?"),
            Wrong("attempt_fencing", "Who finishes A's job?"),
            Wrong("leases, conditional_updates", "When B wakes up, the job is RUNNING: by C."),
        ),
    ),
    Exercise(
        number="09.3",
        title="The night, written down",
        kind="break it",
        minutes=4,
        task=f"""`stop_one` went wrong without attempt fencing. Write what happened there as a schedule that breaks
*{PROMISES[1]}* under "all but attempt_fencing". A worker that is stopped takes no step; a
lease is good for 10 units.""",
        judge=breaks(PROMISES[1], "all but attempt_fencing"),
        right="client submits / A claims next / 11 units pass / sweep / B claims next / A succeeds late",
        because="A bug that was met with real processes is kept as a schedule: it runs in no time, and the same each "
        "time. That is the way back, from a night in production to a test.",
        hints=("SIGSTOP is no step. What happens while A takes none?", "Who has the job when A reports?"),
        wrong=(
            Wrong(OVERSLEPT, "Nobody has given A's job away."),
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / A succeeds late",
                "The job is QUEUED then, and conditional updates are on.",
            ),
            Wrong(
                "client submits / A claims next / 11 units pass / sweep / B claims next / B succeeds / A succeeds late",
                "That is too late even for A: the job is over.",
            ),
        ),
    ),
)
