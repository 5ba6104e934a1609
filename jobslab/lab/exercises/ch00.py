"""The exercises of chapter 00, start here."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, ends_as, happens, reaches

IN_TIME = "client submits / client cancels / A claims next"

EXERCISES = (
    Exercise(
        number="00.1",
        title="A cancel in time",
        kind="predict",
        minutes=2,
        task=f"""All five flags are on. A client cancels its job while it waits for a worker. Then worker A asks for
work. What does A get?

    {IN_TIME}

- `"a"`  job-1
- `"b"`  nothing
- `"c"`  ✗ refused: still_claimable""",
        judge=happens(IN_TIME, "all", {"a": "job-1", "b": "nothing", "c": "✗ refused: still_claimable"}),
        right="b",
        because="Workers are given what is QUEUED, and this job is CANCELLED: it is over, and stays over.",
        hints=("In which state is the job when A asks?", "In which state must a job be that is given to a worker?"),
        wrong=(
            Wrong("a", "Then the client had been told that its job is cancelled, and it would run all the same."),
            Wrong("c", "A did not look before the cancel: it finds nothing that it could try to claim."),
        ),
    ),
    Exercise(
        number="00.2",
        title="Your first schedule",
        kind="complete",
        minutes=4,
        task="""Write a schedule after which job-1 is SUCCEEDED, under the full contract.

A schedule is text, with ` / ` between the steps. You need three: a client that submits, a worker (a capital
letter) that claims next, and the same worker that succeeds.""",
        judge=reaches("job-1 is SUCCEEDED", "all", ends_as("SUCCEEDED"), longest=8),
        right="client submits / A claims next / A succeeds",
        because="A worker can report only on a job that it has claimed, and it can claim only what is queued.",
        hints=("The client's step is `client submits`.", "The worker's steps are `A claims next` and `A succeeds`."),
        wrong=(
            Wrong("client submits / A succeeds", "A has claimed nothing, so its step can't happen."),
            Wrong("A claims next / client submits / A succeeds", "Nothing was queued when A asked."),
            Wrong("client submits / A claims next", "Claimed is not done: A must say so."),
        ),
    ),
    Exercise(
        number="00.3",
        title="Lose a job",
        kind="break it",
        minutes=4,
        task="""All five flags are off. Write a schedule that breaks the promise *an accepted job is kept*.""",
        judge=breaks("an accepted job is kept", "none", longest=8),
        right="client submits / restart",
        because="Two steps are enough: the shorter a schedule, the easier it is to talk about.",
        hints=("What would a table in memory not survive?", "`restart` ends the server and starts another."),
        wrong=(
            Wrong("client submits / A claims next / A crashes", "A worker that dies takes no row with it."),
            Wrong("restart / client submits", "Nothing was accepted yet when the server ended."),
            Wrong("client submits / response lost", "The answer is lost, and the job is not."),
        ),
    ),
)
