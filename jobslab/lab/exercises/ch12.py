"""The exercises of chapter 12, where is my job."""

from collections.abc import Mapping
from typing import Any

from jobslab.lab.diagnosis import Broken, Incident, found
from jobslab.lab.exercises.answer import RIGHT, WRONG, Feedback, is_blank
from jobslab.lab.exercises.exercise import Exercise, NotAttempted, Wrong
from jobslab.lab.exercises.judges import Shown, chosen
from jobslab.lab.faulty import FAULTS, the_file_is_deleted
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from jobslab.where import Where, where

EIGHT = Broken(seed=152, size=8)

# 12.1


DELETED = Incident(the_file_is_deleted, 7)
ANSWERS = {
    "a": "200, state SUCCEEDED; then 404",
    "b": "200, state SUCCEEDED; then 500",
    "c": "200, state FAILED; then 409",
}


def asked() -> Shown:
    """The two requests are really sent."""
    answers = DELETED.asked()
    (status, state), (result, _) = answers.values()
    steps = tuple(f"{request}: {code}, {says}" for request, (code, says) in answers.items())
    return Shown(f"{status}, {state}; then {result}", steps)


# 12.2


def diagnosed(answer: Any) -> Feedback:
    """Each cause beside what `where` says of the installation, which is told nothing of the fault."""
    if not isinstance(answer, Mapping) or set(map(str, answer)) != set(map(str, range(1, EIGHT.size + 1))):
        raise ValueError(f"the answer is a dict with a cause for each number from 1 to {EIGHT.size}")
    said = {str(number): cause for number, cause in answer.items()}
    if any(map(is_blank, said.values())):
        raise NotAttempted
    if unknown := [cause for cause in said.values() if cause not in FAULTS.values()]:
        raise ValueError(f"there is no cause {unknown[0]!r} among those to choose from")
    told = EIGHT.told()
    wrong = [number for number, one in told.items() if said[number] != one.cause.name]
    if not wrong:
        return Feedback(RIGHT, f"all {EIGHT.size}, and `where` says the same of each")
    again = f"{EIGHT.size - len(wrong)} of {EIGHT.size}. Look again at {', '.join(wrong)}; first at {wrong[0]}:"
    return Feedback(WRONG, again, schedule=facts(int(wrong[0])))


def facts(number: int) -> tuple[str, ...]:
    """What an operator finds there, a line a fact."""
    with EIGHT.opened() as all:
        return tuple(f"{name}: {fact}" for name, fact in found(all[number - 1]).items() if fact)


STATES_ALONE = {
    1: "lease-over", 2: "journal", 3: "no-worker", 4: "never-was",
    5: "no-worker", 6: "result-damaged", 7: "no-worker", 8: "lease-over",
}  # fmt: skip
RIGHT_ONES = STATES_ALONE | {1: "unreported", 3: "far-future", 5: "unpublished"}

# 12.3

LIE = """UPDATE jobs SET state = 'SUCCEEDED', result = 'null', finished_at = 2, expires_at = 99999;
INSERT INTO events (at, job_id, actor, verb, attempt, accepted, state_before, state_after)
VALUES (2, 'job-1', 'A', 'succeed', 1, 1, 'RUNNING', 'SUCCEEDED')"""
HALF_A_LIE = "UPDATE jobs SET state = 'SUCCEEDED', result = 'null', finished_at = 2, expires_at = 99999"


def lied(sql: Any) -> Feedback:
    """The statements are executed, and `where` is asked."""
    with open_store(settings=LAB) as store:
        store.submit("job-1", "wait", {"seconds": 1}, now=0)
        store.claim("job-1", "A", now=1)
        statements = tuple(text.strip() for text in str(sql).split(";") if text.strip())
        told = by_hand(store, statements)
    steps = (*(" ".join(text.split()) for text in statements), f"where job-1: {told.cause.name}, {told.known}")
    if told.cause.name == "landed":
        return Feedback(RIGHT, "`where` says that it is done, and nobody has done it", schedule=steps)
    return Feedback(WRONG, f"`where` is not taken in: {told.cause.means}.", schedule=steps)


def by_hand(store: Store, statements: tuple[str, ...]) -> Where:
    with store.database.write() as db:
        for text in statements:
            db.execute(text)
    return where(store, "job-1", now=60)


EXERCISES = (
    Exercise(
        number="12.1",
        title="The file is gone",
        kind="predict",
        minutes=2,
        task="""An export is done, and then somebody makes room on the disk and deletes its file. The owner asks for the
job's status, and then for its result. What is the owner answered?

"""
        + "\n".join(f'- `"{letter}"`  {says}' for letter, says in ANSWERS.items()),
        judge=chosen(ANSWERS, asked),
        right="b",
        because="The status is the row's, and the row has not changed. That the file is not there is the service's own "
        "fault, so 500: the owner has done nothing wrong. Before anybody downloads it, only who looks can know.",
        hints=("Who tells the row that a file was deleted?", "404 would say that there is no such job."),
        wrong=(
            Wrong("a", "404 is for who asks for what never was, or is not theirs. This result was promised."),
            Wrong("c", "A terminal state never changes, and nobody has told the row anything."),
        ),
    ),
    Exercise(
        number="12.2",
        title="Eight diagnoses",
        kind="complete",
        minutes=10,
        task="""Each of the eight installations is broken in another way. From `eight.evidence()`, and where you need it
from `eight.journal(n)`, say what is the matter with each. The causes have the names of `to_choose_from()`.

    {1: "...", 2: "...", 3: "...", 4: "...", 5: "...", 6: "...", 7: "...", 8: "..."}""",
        judge=diagnosed,
        right=RIGHT_ONES,
        because="Ask in order: does it exist, did it enter execution, where did it stop, did the result land, can it "
        "recover? Two that look alike in their state differ in one of the later answers.",
        hints=(
            "Begin with what the row says, and then look for the witness that says otherwise.",
            "Three are QUEUED. One is not due, one is in the outbox, one has been due for longer than any claim.",
            "Two are RUNNING with a lease that is over. In one of them the work is done.",
        ),
        wrong=(
            Wrong(STATES_ALONE, "The state alone is not enough."),
            Wrong(RIGHT_ONES | {2: "result-gone"}, "Is that file not there?"),
            Wrong(RIGHT_ONES | {4: "unpublished", 5: "never-was"}, "What was never accepted has no line in an outbox."),
        ),
    ),
    Exercise(
        number="12.3",
        title="Fool it",
        kind="break it",
        minutes=8,
        task="""job-1, of the kind `wait`, was claimed by A in attempt 1 at second 1, and then A died. Nobody ever does
the work. You may write to the store by hand. Write SQL, statements separated by `;`, after which `where` says
`landed`. The tables are `jobs` and `events`; chapters 01 and 04 show their columns.""",
        judge=lied,
        right=LIE,
        because="The journal lies in the same database as the row, and who can write one can write both. It finds "
        "accidents, not liars. A witness against those is somewhere else: a file with its hash, a ledger of another "
        "system, a copy of the log that nobody here can write.",
        hints=(
            "A row that is SUCCEEDED needs a result, `finished_at` and `expires_at`.",
            "What does the journal's last line say? Which columns does a line have?",
        ),
        wrong=(
            Wrong(HALF_A_LIE, "The row says one thing and the journal another."),
            Wrong(f"{HALF_A_LIE}; DELETE FROM events", "No journal at all is no alibi."),
        ),
    ),
)
