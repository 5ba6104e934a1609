"""The exercises of chapter 08, the whole contract."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import happens, is_enough, last_answer_is, reaches

ROUND = "{worker} claims next / {worker} crashes / 11 units pass / sweep"
THRICE = " / ".join(["client submits", *(ROUND.format(worker=worker) for worker in "ABC"), "client polls"])
STORM = (
    "client submits key=k1 / response lost / client submits again / A claims next / A sends progress 90% / restart / "
    "11 units pass / sweep / B claims next / A progresses 90% late / B succeeds / client polls"
)
PROMISES = (
    "one job per intent",
    "an accepted job is kept",
    "every accepted job reaches a terminal state",
    "a terminal state is final",
    "only the current attempt's report counts",
)

EXERCISES = (
    Exercise(
        number="08.1",
        title="Three times unlucky",
        kind="predict",
        minutes=3,
        task="""A job may be tried three times. Three workers claim it, one after the other, and each crashes;
each time its lease runs out and somebody sweeps. What does the client read then?

- `"a"`  200; state QUEUED; attempt 3
- `"b"`  200; state FAILED; attempt 3; error gave up
- `"c"`  200; state RUNNING; attempt 3""",
        judge=happens(
            THRICE,
            "all",
            {
                "a": "200; state QUEUED; attempt 3",
                "b": "200; state FAILED; attempt 3; error gave up",
                "c": "200; state RUNNING; attempt 3",
            },
        ),
        right="b",
        because="A job that kills its workers must not do so for ever: out of attempts, the sweeper fails it, and "
        "says why.",
        hints=("How many attempts are left at the third sweep?", "Nothing runs for ever."),
        wrong=(
            Wrong("a", "There is no fourth attempt, so there is nothing to wait for."),
            Wrong("c", "Its lease is over, and the sweeper was there."),
        ),
    ),
    Exercise(
        number="08.2",
        title="One flag can go",
        kind="complete",
        minutes=8,
        task=f"""Much goes wrong here:

    {STORM}

Name the smallest contract under which these promises are kept by this schedule: {"; ".join(PROMISES)}.""",
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
        title="Gone, and known to be gone",
        kind="break it",
        minutes=5,
        task="""Write a schedule at whose end the client's poll is answered 410: the job is expired. Finished
jobs are kept for a day, which is 86,400 units here. The full contract is in force.""",
        judge=reaches("the poll is answered 410", "all", last_answer_is("410"), longest=10),
        right="client submits / A claims next / A succeeds / 86400 units pass / client polls",
        because="Retention goes by the clock, not by when somebody tidies up; only what is over can expire.",
        hints=("Only a finished job expires.", "Then let a day pass."),
        wrong=(
            Wrong("client submits / 86400 units pass / client polls", "A job that waits never expires."),
            Wrong("client submits / A claims next / A succeeds / 100 units pass / client polls", "A day is longer."),
            Wrong(
                "client submits / A claims next / A succeeds / 900000 units pass / client polls",
                "So long after that even the id is forgotten.",
            ),
        ),
    ),
)
