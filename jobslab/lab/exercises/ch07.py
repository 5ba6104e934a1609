"""The exercises of chapter 07, every interleaving."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, guard, lacks

CANCELLED = "client submits / A claims next / client cancels / A progresses 50%"

EXERCISES = (
    Exercise(
        number="07.1",
        title="Which flag is missing?",
        kind="predict",
        minutes=3,
        task=f"""One flag is off, and this schedule breaks *no progress report lands on a terminal row*. Which one?

    {CANCELLED}

- `"a"`  leases
- `"b"`  conditional_updates
- `"c"`  attempt_fencing""",
        judge=lacks(
            CANCELLED,
            "no progress report lands on a terminal row",
            {"a": "leases", "b": "conditional_updates", "c": "attempt_fencing"},
        ),
        right="b",
        because="Without it a cancel writes CANCELLED over work that is going on, and the report writes RUNNING over "
        "that. With it the worker is asked to stop, and the row stays RUNNING until it has.",
        hints=("What does the cancel find, and what may it write there?", "How many attempts are there?"),
        wrong=(
            Wrong("a", "Nobody looks at a lease here: no time passes, and nobody sweeps."),
            Wrong("c", "There is one attempt, and the report names it."),
        ),
    ),
    Exercise(
        number="07.2",
        title="What must still be true?",
        kind="complete",
        minutes=8,
        task="""The sweeper looks for jobs whose lease is over, and later puts back those that it saw. In between the
worker may have renewed its lease, given the job back, or finished it. Write what must still be true of the row when
the sweeper writes: an SQL predicate about one row of the table `jobs`, as text. The lease is good until `lease_until`;
the time is `:now`. The rule is tried in every order of events.""",
        judge=guard("still_expired"),
        right="state = 'RUNNING' AND lease_until <= :now",
        because="What the sweeper saw had two halves, and each may have changed: the job ran, and its lease was over. "
        "A write repeats the whole of what the look has seen.",
        hints=(
            'What did the look ask for? See `sql("stuck")`.',
            "Two conditions. Leave one out and look at what happens between look and write.",
        ),
        wrong=(
            Wrong("TRUE", "That is what stands there while the flag is off."),
            Wrong("state = 'RUNNING'", "It still runs, and its worker has just renewed the lease."),
            Wrong("lease_until <= :now", "Its lease is over, and so is the job."),
            Wrong("attempt = :attempt", "The attempt is the one that the sweeper saw, also when it has ended."),
            Wrong("FALSE", "This sweeper undoes nothing, and does nothing."),
        ),
    ),
    Exercise(
        number="07.3",
        title="One attempt too many",
        kind="break it",
        minutes=8,
        task="""Conditional updates are off, all else is on. The explorer says that *attempts never exceed the maximum*
is broken then. Its jobs may be tried twice; those of the lab may be tried three times. Write a schedule that breaks
the promise here, in at most ten steps.""",
        judge=breaks("attempts never exceed the maximum", "all but conditional_updates", longest=10),
        right="client submits / A picks / B claims next / B retries / B claims next / B retries / B claims next / "
        "A claims",
        because="A's pick is from a time when three attempts were left, and without the guard nothing looks again when "
        "it claims. The bounds of a search are small; what it finds is found in larger worlds too.",
        hints=(
            "Who counts attempts up, and who looks at the maximum?",
            "A job that is out of attempts is not queued. Who could still claim it, having picked it before?",
        ),
        wrong=(
            Wrong("client submits / A picks / B claims next / A claims", "That is the second attempt of three."),
            Wrong(
                "client submits / A claims next / A retries / A claims next / A retries / A claims next / A retries / "
                "A claims next",
                "The third retry is refused: no attempt is left, so there is nothing to claim.",
            ),
            Wrong(
                "client submits / A claims next / A retries / A claims next / A retries / A claims next / "
                "11 units pass / sweep / B claims next",
                "The sweeper gives the job up: it is FAILED when B asks.",
            ),
        ),
    ),
)
