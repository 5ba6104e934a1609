"""What does each clause of the contract change?  Five flags, the rules that they switch, the SQL that the rules fill.

All five flags are yes/no questions about one row of the table `jobs`.  So no code of the engine asks for a flag: each
question is a rule in RULES, written once, in SQL; each statement names the rules that it needs in {slots}; `render`
puts the two together for one contract.  Turn a flag off and print a statement again: the line that changed is what
the clause is.

Slots are filled from literals of this module (and the few that a database adds, see `stores`); values are always
bound parameters.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from string import Formatter
from typing import NamedTuple

from jobslab.errors import UnknownFlag
from jobslab.job import TERMINAL, Job, State


@dataclass(frozen=True)
class Contract:
    """Which of the five clauses are in force; `Contract()` is the full contract."""

    idempotency_key: bool = True  # a repeated submit finds the first job
    persistence: bool = True  # accepted jobs outlive the server
    leases: bool = True  # the claim of a dead worker runs out
    conditional_updates: bool = True  # a write says what it expects to find
    attempt_fencing: bool = True  # a report says for which attempt it speaks

    @classmethod
    def none(cls) -> "Contract":
        """The contract with all five off."""
        return cls(*[False] * len(FLAGS))

    @classmethod
    def only(cls, *flags: str) -> "Contract":
        """The contract with just these on.  Raises UnknownFlag."""
        return replace(cls.none(), **dict.fromkeys(known(flags), True))

    def without(self, *flags: str) -> "Contract":
        """This contract with these off.  Raises UnknownFlag."""
        return replace(self, **dict.fromkeys(known(flags), False))

    @classmethod
    def all(cls) -> "list[Contract]":
        """The 32 contracts, the full one first."""
        return [cls(*bits) for bits in product([True, False], repeat=len(FLAGS))]

    @classmethod
    def parse(cls, text: str) -> "Contract":
        """The contract that `str` writes as this text.  Raises UnknownFlag."""
        if text in ("all", "none"):
            return cls() if text == "all" else cls.none()
        if text.startswith("all but "):
            return cls().without(*split(text.removeprefix("all but ")))
        return cls.only(*split(text))

    @property
    def on(self) -> tuple[str, ...]:
        return tuple(flag for flag in FLAGS if getattr(self, flag))

    @property
    def off(self) -> tuple[str, ...]:
        return tuple(flag for flag in FLAGS if not getattr(self, flag))

    def __str__(self) -> str:
        if not self.off or not self.on:
            return "all" if self.on else "none"
        return f"all but {', '.join(self.off)}" if len(self.off) < len(self.on) else ", ".join(self.on)


FLAGS = tuple(field.name for field in fields(Contract))


def split(text: str) -> list[str]:
    """The flags of a list with commas."""
    return [flag.strip() for flag in text.split(",") if flag.strip()]


def known(flags: Iterable[str]) -> list[str]:
    """The same flags.  Raises UnknownFlag for the first that is none."""
    flags = list(flags)
    for flag in flags:
        if flag not in FLAGS:
            raise UnknownFlag(f"there is no flag {flag!r}; the five flags are {', '.join(FLAGS)}")
    return flags


class Rule(NamedTuple):
    """One question about a row: the slot that it fills, the flag that turns it on, its answer while that is off."""

    slot: str
    flag: str | None  # None: always on
    off: bool | None  # TRUE for a guard, FALSE for a permission
    sql: str
    used_by: str
    why: str


# fmt: off
RULES = (
    Rule("deduplicated", "idempotency_key", False, "TRUE",
         "the unique index, find",
         "a repeated POST finds the first job; it does not make a second"),
    Rule("survives", "persistence", False, "TRUE",
         "restart",
         "an accepted job outlives the process that accepted it"),
    Rule("expired", "leases", False, "lease_until <= :now",
         "stuck",
         "the job of a worker that died can be given to another"),
    Rule("claimable", None, None, "(state = 'QUEUED' AND run_at <= :now)",
         "pick",
         "waiting, and due"),
    Rule("attempts_left", None, None, "attempt < max_attempts",
         "stuck, requeue, exhaust (negated), retry",
         "nothing runs for ever"),
    Rule("still_claimable", "conditional_updates", True, "{claimable}",
         "claim",
         "of two workers that picked the same job, one gets it"),
    Rule("still_expired", "conditional_updates", True, "(state = 'RUNNING' AND {expired})",
         "requeue, exhaust",
         "the sweeper may not undo what happened since it looked"),
    Rule("unfinished", "conditional_updates", True, "state = 'RUNNING'",
         "every report",
         "a terminal state never changes"),
    Rule("cancellable", "conditional_updates", True, "state = 'QUEUED'",
         "cancel",
         "a cancel may not undo what happened since it looked"),
    Rule("current", "attempt_fencing", True, "attempt = :attempt",
         "every report, and the sweeper for the attempt that it saw",
         "a worker whose job was given to another can no longer write"),
)
# fmt: on


def sql_list(values: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


OVER = sql_list(state for state in State if state in TERMINAL)

# The tables are plain SQL with the same slots, one file for each version; a store of version n has run the first n.
FILES = sorted(Path(__file__).parent.glob("stores/migrations/*.sql"))
MIGRATIONS = tuple(file.read_text(encoding="utf-8") for file in FILES)
SCHEMA = "\n".join(MIGRATIONS)

# A worker's reports differ in what they set and have the same two guards.
REPORT = """
 WHERE id = :id
   AND {unfinished}
   AND {current}"""

# What every guarded write says of the row that it wrote: enough for the worker and for the journal.
WROTE = """
RETURNING state, attempt, cancel_requested"""

# A job that was asked to stop must not be started again by the retry or the requeue that finds it.
BACK_TO_THE_QUEUE = """
       state = CASE WHEN cancel_requested = 1 THEN 'CANCELLED' ELSE 'QUEUED' END,
       finished_at = CASE WHEN cancel_requested = 1 THEN :now END,
       expires_at = CASE WHEN cancel_requested = 1 THEN :now + :retention_seconds END,
       updated_at = :now"""

FINISHED = """
       updated_at = :now,
       finished_at = :now,
       expires_at = :now + :retention_seconds"""

# `lease_until` is never cleared: a finished row that a broken contract brings back to RUNNING would have a lease that
# can't run out, and one flag would break another flag's promise.
STATEMENTS = {
    # The new row is a value of job.queued.  The conflict target is named, so that a clash of ids is no replay.
    "submit": f"""INSERT INTO jobs ({", ".join(Job._fields)})
VALUES ({", ".join(f":{column}" for column in Job._fields)})
    ON CONFLICT (owner, idempotency_key) WHERE {{deduplicated}} DO NOTHING""",
    "find": """SELECT *
  FROM jobs
 WHERE {deduplicated}
   AND owner = :owner
   AND idempotency_key = :idempotency_key""",
    # Picking and claiming are two statements under every contract, so that the race between them stays visible;
    # `claim_next` runs the same two in one transaction, which is what one ships.
    "pick": """SELECT *
  FROM jobs
 WHERE {claimable}
 ORDER BY run_at, created_at, id
 LIMIT 1{skip_locked}""",
    "claim": """UPDATE jobs
   SET state = 'RUNNING',
       attempt = attempt + 1,
       worker = :worker,
       lease_until = :now + :lease_seconds,
       progress = 0,
       started_at = :now,
       updated_at = :now
 WHERE id = :id
   AND {still_claimable}
RETURNING *""",
    # A lease that ran out and was not swept yet may still be renewed: nobody else has the job.
    "renew": f"""UPDATE jobs
   SET lease_until = :now + :lease_seconds,
       updated_at = :now{REPORT}{WROTE}""",
    # A worker tells the row as it sees it, running: which is just how a late one brings a finished job back.
    "progress": f"""UPDATE jobs
   SET state = 'RUNNING',
       progress = CASE WHEN progress > :progress THEN progress ELSE :progress END,
       updated_at = :now{REPORT}{WROTE}""",
    "succeed": f"""UPDATE jobs
   SET state = 'SUCCEEDED',
       result = :result,
       error = NULL,
       progress = 1,{FINISHED}{REPORT}{WROTE}""",
    "fail": f"""UPDATE jobs
   SET state = 'FAILED',
       result = NULL,
       error = :error,{FINISHED}{REPORT}{WROTE}""",
    "retry": f"""UPDATE jobs
   SET run_at = :run_at,
       error = CASE WHEN cancel_requested = 1 THEN :cancelled ELSE :error END,{BACK_TO_THE_QUEUE}{REPORT}
   AND {{attempts_left}}{WROTE}""",
    "stop": f"""UPDATE jobs
   SET state = 'CANCELLED',
       result = NULL,
       error = :cancelled,{FINISHED}{REPORT}{WROTE}""",
    # The sweeper is two steps too: it looks, and then it writes by what it saw.
    "stuck": """SELECT id, attempt, {attempts_left} AS attempts_left
  FROM jobs
 WHERE state = 'RUNNING'
   AND {expired}
 ORDER BY id""",
    "requeue": f"""UPDATE jobs
   SET error = CASE WHEN cancel_requested = 1 THEN :cancelled END,{BACK_TO_THE_QUEUE}
 WHERE id = :id
   AND {{still_expired}}
   AND {{current}}
   AND {{attempts_left}}{WROTE}""",
    "exhaust": f"""UPDATE jobs
   SET state = 'FAILED',
       result = NULL,
       error = :error,{FINISHED}
 WHERE id = :id
   AND {{still_expired}}
   AND {{current}}
   AND NOT {{attempts_left}}{WROTE}""",
    "cancel": f"""UPDATE jobs
   SET state = 'CANCELLED',
       cancel_requested = 1,
       result = NULL,
       error = :cancelled,{FINISHED}
 WHERE id = :id
   AND {{cancellable}}{WROTE}""",
    # In the transaction of a cancel that was refused: a running job is asked, and its worker stops it.
    "ask_to_stop": f"""UPDATE jobs
   SET cancel_requested = 1,
       updated_at = :now
 WHERE id = :id
   AND state = 'RUNNING'{WROTE}""",
    "purge": f"""DELETE FROM jobs
 WHERE id IN (
       SELECT id
         FROM jobs
        WHERE state IN {OVER}
          AND expires_at <= :now{{skip_locked}})
RETURNING id, owner, state, attempt, expires_at, correlation_id""",
    # What a restart of the server leaves behind: all of it, or what a table in memory would leave.
    "restart": """DELETE FROM jobs WHERE NOT {survives};
DELETE FROM events WHERE NOT {survives};
DELETE FROM expired WHERE NOT {survives}""",
}


class Guard(NamedTuple):
    """A rule as a guarded statement names it; `exhaust` wants no attempts left, so its rule is negated."""

    rule: str
    negated: bool

    def __str__(self) -> str:
        return f"{'not ' * self.negated}{self.rule}"


def guards(verb: str) -> list[Guard]:
    """The rules that the WHERE of a guarded statement names, in their order, read off its text."""
    parsed = list(Formatter().parse(STATEMENTS[verb]))
    return [Guard(slot, text.endswith("NOT ")) for text, slot, _, _ in parsed if slot]


GUARDED = tuple(verb for verb, text in STATEMENTS.items() if text.startswith("UPDATE") and guards(verb))


def why(verb: str) -> str:
    """The SELECT that tells how the row stands before a guarded write, and the first rule that will refuse it.

    Derived from the statement's own slots, so that it can't ask for another rule than the write does.  IS NOT TRUE,
    since a comparison with NULL is neither true nor false, and refuses.
    """
    cases = "\n".join(
        f"            WHEN ({'NOT ' * guard.negated}{{{guard.rule}}}) IS NOT TRUE THEN '{guard}'"
        for guard in guards(verb)
    )
    return f"""SELECT state, attempt, cancel_requested, correlation_id,
       CASE
{cases}
       END AS refused_by
  FROM jobs
 WHERE id = :id{{for_update}}"""


# What differs from database to database, as SQLite has it.
PLAIN_SLOTS = {"skip_locked": "", "for_update": "", "counted": "INTEGER", "binary": ""}


def answers(contract: Contract) -> dict[str, str]:
    """What fills each rule's slot under this contract."""

    def answer(rule: Rule) -> str:
        on = rule.flag is None or getattr(contract, rule.flag)
        return rule.sql if on else str(rule.off).upper()

    return {rule.slot: answer(rule) for rule in RULES}


def render(text: str, contract: Contract, slots: dict[str, str] = PLAIN_SLOTS) -> str:
    """The SQL in force: `text` with every slot filled.  A rule that is off leaves its TRUE or FALSE standing, so that
    two contracts differ in whole lines.  A rule that `slots` fills itself is tried out instead of the contract's."""
    filling = answers(contract) | slots
    while "{" in text:
        text = text.format(**filling)
    return text


def statements(contract: Contract, slots: dict[str, str] = PLAIN_SLOTS) -> dict[str, str]:
    """All statements in force, by verb."""
    return {verb: render(text, contract, slots) for verb, text in STATEMENTS.items()}


def changed_lines(before: Contract, after: Contract) -> Iterator[tuple[str, list[str]]]:
    """For each statement that differs between two contracts, its verb and the lines, marked - and +; the index of the
    key counts as one (`schema`)."""
    texts = {"schema": SCHEMA.strip(), **STATEMENTS}
    for verb, text in texts.items():
        a, b = (render(text, contract).splitlines() for contract in (before, after))
        lines = [line for line in difflib.ndiff(a, b) if line[0] in "-+"]
        if lines:
            yield verb, lines
