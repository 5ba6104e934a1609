"""The exercises of chapter 03, submit again safely."""

from jobslab.lab.exercises.exercise import Exercise, Wrong
from jobslab.lab.exercises.judges import happens, is_enough, reaches, two_jobs_of_one_client

AFTER_A_FAILURE = "client submits key=k1 / A claims next / A fails / client submits again"
LOST = "client submits key=k1 / response lost / restart / client submits again / client counts jobs"

EXERCISES = (
    Exercise(
        number="03.1",
        title="Once more, please",
        kind="predict",
        minutes=2,
        task=f"""The export failed, and somebody has put its table right since. The client sends the same request with
the same key. What is it answered?

    {AFTER_A_FAILURE}

- `"a"`  202; id job-1
- `"b"`  202; id job-2
- `"c"`  ✗ 422; key-reused""",
        judge=happens(AFTER_A_FAILURE, "all", {"a": "202; id job-1", "b": "202; id job-2", "c": "✗ 422; key-reused"}),
        right="a",
        because="The key stands for an intent, and that one has its job, which is over. To try again is a new "
        "intent: it takes a new key.",
        hints=("Does the server ask how the first job ended?", "What would a late copy of the first request do?"),
        wrong=(
            Wrong("b", "Then a late copy of the first request would start a second export too."),
            Wrong("c", "The request is the same to the letter; 422 is for another one under the same key."),
        ),
    ),
    Exercise(
        number="03.2",
        title="As little as possible",
        kind="complete",
        minutes=6,
        task=f"""The answer is lost, the server restarts, and the client tries again:

    {LOST}

Name the smallest contract under which neither *one job per intent* nor *an accepted job is kept* is broken:
flags with commas between them.""",
        judge=is_enough(LOST, ["one job per intent", "an accepted job is kept"]),
        right="idempotency_key, persistence",
        because="The key finds the first job, and only if the first job is still there.",
        hints=("Two flags.", "One finds the first job; what must be true so that there is something to find?"),
        wrong=(
            Wrong("idempotency_key", "The key is a column of the job's row, and the row is gone."),
            Wrong("persistence", "The first job is there, and nobody looks for it."),
            Wrong("idempotency_key, persistence, leases", "Nobody has claimed anything."),
        ),
    ),
    Exercise(
        number="03.3",
        title="Twice in spite of the key",
        kind="break it",
        minutes=6,
        task="""The full contract is in force. Still, a client whose answer is lost ends up with two jobs. Write
the schedule.""",
        judge=reaches("one client has two jobs for one intent", "all", two_jobs_of_one_client, longest=8),
        right="client submits key=k1 / response lost / client submits key=k2",
        because="A key that is made anew for the retry is no key. Who knows what is *one* intent? The caller: it "
        "chooses "
        "the key, before the first try, and keeps it until there is an answer.",
        hints=("What does the server compare?", "Look at the client: which key does its retry carry?"),
        wrong=(
            Wrong("client submits key=k1 / response lost / client submits again", "The same key: it finds job-1."),
            Wrong("client submits key=k1 / client submits key=k2", "No answer was lost: these are two intents."),
            Wrong("client submits key=k1 / response lost / restart / client submits again", "job-1 is still there."),
        ),
    ),
)
