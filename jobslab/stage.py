"""Which stages does a job pass, and what does each answer or log line prove?  One table, in chapter 01's words.

No line of it follows from the one above: each is a promise of its own, made by somebody else.  `where` asks how far a
job has come, and answers in these names.
"""

from typing import NamedTuple


class Stage(NamedTuple):
    """One stage: what tells that it is reached, what that proves, and what it does not."""

    name: str
    chapter_01: str  # what chapter 01 calls it
    told_by: str  # the response, or the line in the journal or in a log
    proves: str
    not_proved: str


STAGES = (
    Stage(
        "validated",
        "what can be known before the 202",
        "POST /jobs: no 400, 413, 415 or 422",
        "the request can be read, and is a job of a known kind",
        "that anything was kept; that what the params name is there",
    ),
    Stage(
        "registered",
        "accepted",
        "POST /jobs: 202 with its Location; journal: submit",
        "the row is committed: whoever asks is told, also after a restart",
        "that a worker is there; that it will go well; without the 202, that it is not registered",
    ),
    Stage(
        "confirmed by the broker",
        "accepted (where a broker stands beside the table)",
        "the broker's acknowledgement of the message; the outbox: sent",
        "the broker keeps the message, and delivers it at least once",
        "that there is a row; that anybody consumes; that the message comes only once",
    ),
    Stage(
        "queued",
        "accepted",
        "GET /jobs/{id}: QUEUED; journal: submit, retry or requeue",
        "it is in line: a worker that asks after run_at may get it",
        "that a worker asks; with an attempt above 0, that nothing was done yet",
    ),
    Stage(
        "running",
        "claimed",
        "GET /jobs/{id}: RUNNING; journal: claim",
        "a worker has begun this attempt, and holds a lease on it",
        "that it is still alive; how much is done; that it will be done only once",
    ),
    Stage(
        "done",
        "reported",
        "GET /jobs/{id}: done; journal: succeed, fail, stop, cancel or exhaust; the worker's log",
        "the state never changes again; SUCCEEDED: a worker said that the result is there",
        "that the result is there now; after FAILED, that nothing was done",
    ),
    Stage(
        "landed",
        "the work is done, and delivered",
        "GET /jobs/{id}/result: 200, and whole; `where`: LANDED; the ledger's entry",
        "the file is there, with all its bytes and rows; or the effect is in the ledger",
        "that its rows are the right ones: 0 rows may be right, and may be a lost day",
    ),
)

NAMES = tuple(stage.name for stage in STAGES)

HEAD = ("stage", "in chapter 01", "told by", "proves", "does not prove")


def rows() -> list[dict[str, str]]:
    """The table, a dict a stage, by the words of HEAD."""
    return [dict(zip(HEAD, stage)) for stage in STAGES]


def markdown() -> str:
    """The table as Markdown has it."""
    lines = [HEAD, tuple("---" for _ in HEAD), *STAGES]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
