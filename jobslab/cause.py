"""What can be the matter with a job, and what does one do about it?  One table: names for programs, words for people.

Each says three things: what is known, what is not, and what to do next.  The operator has the store, the workers and
the directory of results at hand; the owner has the API.  {Slots} are filled with the job's facts, see `where.facts`.
"""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    WELL = "WELL"  # nothing is to be done, or to wait is enough
    WRONG = "WRONG"  # somebody has to do something
    UNKNOWN = "UNKNOWN"  # somebody has to look elsewhere


class Cause(NamedTuple):
    """One thing that can be the matter."""

    name: str  # stable, for programs
    verdict: Verdict
    means: str  # in a few words
    known: str
    unknown: str
    operator: str  # what the operator does next
    owner: str  # what the owner does next


WELL, WRONG, UNKNOWN = Verdict

TELL = "wait, the job is kept; tell the operator its id if it stays so"
AGAIN = "tell the operator its id, or submit a new job with a new key"
RERUN = "mend what stopped it, and run it again as a new job (`jobslab rerun {id}`)"

# fmt: off
CAUSES = (
    Cause("landed", WELL, "it is done, and its result is there",
          "it is SUCCEEDED, and {landing}", "whether these rows are the right ones",
          "nothing", "fetch the result before {expires}"),
    Cause("working", WELL, "a worker has it in hand",
          "attempt {attempt} of {max} runs, and its lease is good for {lease} more", "how much of it is done for good",
          "wait until the lease is over, and ask again", "wait, and ask again"),
    Cause("waiting", WELL, "it waits for its turn",
          "it is QUEUED, due since {due}, with {ahead} before it", "when a worker comes to it",
          "wait; start another worker (`jobslab work`) if the queue grows", "wait, and ask again"),
    Cause("backing-off", WELL, "it waits for the time of its next try",
          "it is QUEUED, and not due for {until} more; {last_error}", "whether the next try goes better",
          "wait, or mend what its error tells of", "wait, and ask again"),
    Cause("cancelled", WELL, "somebody asked for its end",
          "it is CANCELLED", "whether its owner knows", "nothing", "submit a new job if you want it after all"),
    Cause("failed", WRONG, "the work itself failed",
          "it is FAILED after {attempt} of {max} attempts; {last_error}", "what was done before it failed",
          RERUN, "mend what the error tells of, and submit a new job with a new key"),
    Cause("never-was", WRONG, "nothing here tells of such a job",
          "no row, and no line of the journal has this id", "{forgotten}",
          "ask for the 202 that named it, and whether it came from this store",
          "check the id and the token; submit again with the same idempotency key"),
    Cause("expired", WRONG, "its time of retention is over",
          "it was over, and expired {expired} ago; {was}", "what its result held",
          "nothing; have the owner submit a new job", "submit a new job with a new key, and fetch its result in time"),
    Cause("another-owners", WRONG, "it belongs to somebody else",
          "it is there, and is not {asker}'s: over HTTP {asker} is told that there is no such job",
          "how {asker} came by its id", "ask {asker} for the id of a job of their own, and tell nothing of this one",
          "check the id and the token"),
    Cause("lost", WRONG, "it was accepted, and its row is gone",
          "the journal has its submit, {born} ago, and no purge, and there is no row",
          "who deleted the row, and whether the work was done",
          "look for a deletion by hand or an old copy of the store; restore it, or submit the job again",
          "submit again with the same idempotency key"),
    Cause("journal", UNKNOWN, "its journal does not tell one story",
          "the row is {state}; of the journal: {complaint}", "which of the two is true, and so which step it is at",
          "trust neither: compare with a backup, and look for who wrote to the store by hand", TELL),
    Cause("no-worker", WRONG, "no worker asks for jobs",
          "it is QUEUED, due since {due}, and for {quiet} no worker has claimed or reported anything",
          "whether a worker runs at all: one that asks elsewhere leaves no line here",
          "start a worker (`jobslab work`), or see which store those that run are asking", TELL),
    Cause("no-task", WRONG, "the workers have no task of its kind",
          "attempt {attempt} of {max} was begun, and its worker said that it knows no task {kind!r}",
          "whether any other worker knows it", "start workers that know it; if it is FAILED: " + RERUN, TELL),
    Cause("far-future", WRONG, "its time is too far ahead",
          "it is QUEUED and not due for {until} more, and no retry waits for longer than {cap}",
          "whose clock was wrong when this time was written",
          "compare the machines' clocks; cancel it, and run it again as a new job (`jobslab rerun {id}`)", TELL),
    Cause("unpublished", WRONG, "the broker was never told of it",
          "it is QUEUED since {born}, and the broker has not confirmed a message of it",
          "whether the message was sent and the answer lost",
          "start the relay of the outbox; a message that comes twice does no harm", TELL),
    Cause("lease-over", WRONG, "its worker went silent, and nobody sweeps",
          "it is RUNNING, and the lease of attempt {attempt} of {max} is over since {over}",
          "whether the worker is dead or slow, and what it has done",
          "`jobslab sweep` gives it back to the queue, or gives it up; see why `jobslab serve` does not sweep", TELL),
    Cause("no-lease", WRONG, "its worker went silent, and the contract has no leases",
          "it is RUNNING since {started}, and its worker was last heard of {silent} ago; without leases nobody takes "
          "it back", "whether the worker is dead or slow, and what it has done",
          "see whether its worker lives; if not, `jobslab rerun {id} --anyway` does it again as a new job", AGAIN),
    Cause("gave-up", WRONG, "every attempt ended in silence",
          "it is FAILED: {attempt} of {max} attempts were begun, and the last one's lease ran out",
          "what kills its workers, and what each of them had done",
          "look at its params and at the workers' logs before anything else; then " + RERUN, AGAIN),
    Cause("unreported", WRONG, "its result is there, and the report is not",
          "{landing}", "whether the report was lost, or came and was refused",
          "of a file, `jobslab reconcile --dry-run` says what can be mended, and without it that is mended; of an "
          "entry in the ledger, ask who wrote it", AGAIN),
    Cause("result-gone", WRONG, "its result was there, and is not",
          "{landing}", "who took it away, and whether the owner had fetched it before",
          "restore it from a backup, or let `jobslab reconcile` have it made again by a new job", AGAIN),
    Cause("no-entry", WRONG, "it is done, and its effect is not in the ledger",
          "{landing}", "whether it was never done, or was and its entry is lost",
          "ask the system in which the effect is; then write the entry by hand, or do it again as a new job "
          "(`jobslab rerun {id} --anyway`)", AGAIN),
    Cause("result-damaged", WRONG, "its result is there, and not whole",
          "it is SUCCEEDED, and yet {landing}", "who has fetched it like this",
          "restore it from a backup, or let `jobslab reconcile` have it made again by a new job", AGAIN),
    Cause("result-unknown", UNKNOWN, "it is done, and its result can't be looked at",
          "it is {state}", "whether its result is there: {landing}",
          "ask again with --results DIR, or --ledger FILE", "fetch the result"),
)
# fmt: on

BY_NAME = {cause.name: cause for cause in CAUSES}
