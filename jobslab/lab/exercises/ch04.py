"""The exercises of chapter 04, the process died."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import at_work_together, final_state, guard, happens, reaches

EXERCISES = (
    Exercise(
        "04.1",
        "A renewal",
        "predict",
        3,
        """The lease is 10 units. What does the job look like at the end of this schedule, under the full contract?

    client submits / A claims next / 8 units pass / A renews / 8 units pass / sweep

- `"a"`  job-1 QUEUED attempt 1
- `"b"`  job-1 RUNNING attempt 1
- `"c"`  job-1 FAILED attempt 1""",
        happens(
            "client submits / A claims next / 8 units pass / A renews / 8 units pass / sweep",
            "all",
            {"a": "job-1 QUEUED attempt 1", "b": "job-1 RUNNING attempt 1", "c": "job-1 FAILED attempt 1"},
            of=final_state,
        ),
        "b",
        "A renewal makes the lease start anew: it is good until 18, and the sweep looks at 16.",
        ("Write down until when the lease is good, after the claim and after the renewal.", "8 + 10 is more than 16."),
        (
            Wrong("a", "A lease is not counted from the claim: a renewal starts it anew."),
            Wrong("c", "A sweep fails a job only when its lease is over and no attempt is left."),
        ),
    ),
    Exercise(
        "04.2",
        "Whose lease is over?",
        "complete",
        6,
        """Write the rule by which the sweeper finds the jobs of dead workers: an SQL predicate about one row of the
table `jobs`, as text. The lease is good until `lease_until`; the time is `:now`. The rule is tried in every order of
events.""",
        guard("expired"),
        "lease_until <= :now",
        "At the end of the lease it is over, and not before: an earlier sweep takes the job from a live worker, and a "
        "later one is no harm but a longer wait.",
        (
            "Compare `lease_until` with `:now`.",
            "At 12, is a lease that is good until 10 over? And one that is good until 20?",
        ),
        (
            Wrong("FALSE", "That is what stands there while the flag is off."),
            Wrong("TRUE", "Then every running job is taken for a dead worker's."),
            Wrong("lease_until >= :now", "The wrong way round: these are the live ones."),
            Wrong("worker IS NULL", "The dead worker's name stays in the row: it can't take it out."),
        ),
    ),
    Exercise(
        "04.3",
        "Twice at once",
        "break it",
        10,
        """The full contract is in force. Write a schedule after which two workers are at work on one job at once, each
sure that it is the only one. No worker may crash, and no server restart.

Steps are `client submits`, `A claims next`, `20 units pass`, `sweep` and so on, with ` / ` between them.""",
        reaches("two workers are at work on one job", "all", at_work_together, longest=8),
        "client submits / A claims next / 11 units pass / sweep / B claims next",
        "A lease is a promise about time, and A was slower than its lease. It is alive, and knows nothing of B. "
        "That is why the lease must be longer than the longest pause between two renewals, and why no lease, "
        "however long, gives more than *at least once*.",
        (
            "B gets the job only when somebody has put it back into the queue.",
            "The sweeper puts it back when the lease is over, whether A is alive or not.",
        ),
        (
            Wrong("client submits / A claims next / B claims next", "Nothing is queued when B asks: A has the job."),
            Wrong(
                "client submits / A claims next / 5 units pass / sweep / B claims next",
                "The lease is good for 10 units: this sweep finds nothing.",
            ),
            Wrong(
                "client submits / A claims next / A crashes / 11 units pass / sweep / B claims next",
                "A is dead here: B is the only one at work.",
            ),
        ),
    ),
)
