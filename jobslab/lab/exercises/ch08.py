"""The exercises of chapter 08, the whole contract."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import happens, is_enough, last_answer_is, reaches
from jobslab.lab.trial import Trial

A_DAY_LATER = "client submits key=k1 / A claims next / A succeeds / 86400 units pass / client submits again"
STORM = """client submits key=k1 / response lost / client submits again
    A claims next / A sends progress 90% / restart / 11 units pass / sweep
    B claims next / A progresses 90% late / B succeeds / client polls"""
PROMISES = (
    "one job per intent",
    "an accepted job is kept",
    "every accepted job reaches a terminal state",
    "a terminal state is final",
    "only the current attempt's report counts",
)
LISTED = "\n".join(f"- *{promise}*" for promise in PROMISES)


def untouched_and_expired(trial: Trial) -> bool:
    """Is the last answer 410, and was nothing ever claimed?"""
    return last_answer_is("410")(trial) and not any(row.verb.startswith("claim") and row.job for row in trial.rows)


EXERCISES = (
    Exercise(
        number="08.1",
        title="The same key, a day later",
        kind="predict",
        minutes=3,
        task=f"""A finished job is kept for a day, which is 86,400 units here. Then its client, which had slept,
sends the same request with the same key again. What is it answered?

    {A_DAY_LATER}

- `"a"`  202; id job-1
- `"b"`  202; id job-2
- `"c"`  410""",
        judge=happens(A_DAY_LATER, "all", {"a": "202; id job-1", "b": "202; id job-2", "c": "410"}),
        right="b",
        because="A key lives as long as its job, so a retry that comes a day late is a new job. Both times belong into "
        "the contract: how long a result is kept, and until when a retry is safe. GET /contract states them.",
        hints=("Where does the server keep the key?", "An answer that names a job which is gone helps nobody."),
        wrong=(
            Wrong("a", "The key is a column of the job's row, and that job has expired."),
            Wrong("c", "410 is for who asks by the id. This is a POST, and its key is free again."),
        ),
    ),
    Exercise(
        number="08.2",
        title="One flag can go",
        kind="complete",
        minutes=8,
        task=f"""Much goes wrong here:

    {STORM}

Name the smallest contract under which it keeps all of these promises:

{LISTED}""",
        judge=is_enough(STORM, PROMISES),
        right="idempotency_key, persistence, leases, attempt_fencing",
        because="Each fault has its clause. The one that can go is needed by other schedules: one schedule is no "
        "proof, "
        "which is why chapter 07 tries them all.",
        hints=(
            "Go through the faults: which clause answers each?",
            "Turn them off one by one and look at the verdicts.",
        ),
        wrong=(
            Wrong("all", "It is, and it is more than this schedule needs."),
            Wrong("idempotency_key, persistence, leases", "Whose report counts?"),
            Wrong("persistence, leases, attempt_fencing", "How many exports run?"),
            Wrong("idempotency_key, persistence, attempt_fencing", "Who finishes the job?"),
        ),
    ),
    Exercise(
        number="08.3",
        title="Gone, and nobody had touched it",
        kind="break it",
        minutes=5,
        task="""Write a schedule at whose end the client's poll is answered 410, although no worker has ever had the
job. The full contract is in force.""",
        judge=reaches("410, and no worker has had the job", "all", untouched_and_expired, longest=8),
        right="client submits / client cancels / 86400 units pass / client polls",
        because="Only what is over expires, whatever ended it. A job that waits is kept for as long as it waits: a 202 "
        "that was forgotten would be a promise broken.",
        hints=("Which jobs expire?", "Who, but a worker, can end a job?"),
        wrong=(
            Wrong("client submits / 86400 units pass / client polls", "A job that waits never expires."),
            Wrong(
                "client submits / A claims next / A succeeds / 86400 units pass / client polls",
                "That is 410, and A had it.",
            ),
            Wrong("client submits / client cancels / 100 units pass / client polls", "A day is longer."),
            Wrong(
                "client submits / client cancels / 900000 units pass / client polls",
                "So long after that even the id is forgotten.",
            ),
        ),
    ),
)
