"""The exercises of chapter 07, every interleaving."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import breaks, lacks

PICKED = "client submits / A claims next / 11 units pass / S looks / A succeeds / S requeues"

EXERCISES = (
    Exercise(
        number="07.1",
        title="Which flag is missing?",
        kind="predict",
        minutes=4,
        task=f"""One flag is off, and this schedule breaks *a sweep undoes no report*. Which one?

    {PICKED}

- `"a"`  leases
- `"b"`  conditional_updates
- `"c"`  attempt_fencing""",
        judge=lacks(
            PICKED,
            "a sweep undoes no report",
            {"a": "leases", "b": "conditional_updates", "c": "attempt_fencing"},
        ),
        right="b",
        because="The sweeper writes by what it saw. Fencing does not help: the attempt is still the one that it saw.",
        hints=("Would the sweeper see anything, if that flag were off?", "Which attempt does the sweeper name?"),
        wrong=(
            Wrong("a", "Without leases no lease is ever over, and the sweeper sees nothing."),
            Wrong("c", "Fencing asks for the attempt, and that is the same all the time."),
        ),
    ),
    Exercise(
        number="07.3",
        title="The shortest one",
        kind="break it",
        minutes=8,
        task="""Leases and persistence are on, nothing else. Write a schedule of at most four steps that breaks
*a terminal state is final*.""",
        judge=breaks("a terminal state is final", "persistence, leases", longest=4),
        right="client submits / A picks / client cancels / A claims",
        because="A claim too is a write by what was seen. The explorer finds such schedules because it tries them all.",
        hints=(
            "Which is the quickest way into a terminal state?",
            "A cancelled job is over. Who could still start it?",
        ),
        wrong=(
            Wrong("client submits / client cancels / A claims next", "A cancelled job is not picked."),
            Wrong("client submits / A claims next / A succeeds / B claims next", "A finished job is not picked."),
            Wrong(
                "client submits / A picks / B picks / A claims",
                "Nothing was over here, so nothing was brought back.",
            ),
        ),
    ),
)
