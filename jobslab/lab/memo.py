"""What does the store answer when it is asked the same thing a million times?  It is asked once.

A verb is a function of (rows, verb, arguments), so `Memo(store)` runs each distinct question on the real store, once,
and gives every table a small number.  Three things keep the questions few:

    now is 0         a lease is the time that is left of it, and `tick` lets time pass
    blurred rows     a column that no WHERE, CASE or ORDER BY reads has one value for all
    a part           a verb that names a job reads and writes that row alone, so only that row is part of the question

Each is a claim about the SQL, and tests hold all three; `audit` asks again, of whole tables on a fresh store.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from jobslab.contract import answers, statements
from jobslab.job import Event, Job
from jobslab.stores import Store

Rows = tuple[Job, ...]  # in the order in which `pick` would take them
Arguments = tuple[tuple[str, Any], ...]
Value = TypeVar("Value")

# What a blurred row says in the columns that nothing reads, or nothing but what is blurred itself: `progress` is read
# to write `progress`.  The ORDER BY of `pick` reads run_at and created_at: the order of the rows stands for them, as if
# no two jobs were queued in the same instant.
BLURRED = {
    "run_at": 0,
    "lease_until": 0,
    "worker": None,
    "progress": None,
    "result": None,
    "error": None,
    "created_at": 0,
    "started_at": None,
    "updated_at": 0,
    "finished_at": None,
    "expires_at": None,
}
PAST = (
    "created_at",
    "started_at",
    "updated_at",
    "finished_at",
)  # moments that are now or over; how long ago, no one asks


class Numbered(Generic[Value]):
    """Values and their numbers, from 0 up: a small number is quick to compare, and to look up by."""

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._numbers: dict[Value, int] = {}

    def __call__(self, value: Value) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def __getitem__(self, number: int) -> Value:
        return self._values[number]

    def __len__(self) -> int:
        return len(self._values)


class Fact(NamedTuple):
    """A question and its answer: the rows that it is about, what was asked, what the store and its journal said."""

    before: Rows
    verb: str
    arguments: Arguments
    answer: Any
    entries: tuple[Event, ...]
    after: Rows
    last: bool  # whether the row that was written is now the last that `pick` would take

    def argument(self, name: str) -> Any:
        return dict(self.arguments).get(name)


class Memo:
    """The verbs of one store, each distinct question asked once, of tables that are numbers."""

    def __init__(self, store: Store, rules: Mapping[str, str] | None = None) -> None:
        """`rules` are those that the store was given instead of the contract's own: what they read is kept."""
        self.store = store
        self.kept = columns_in((answers(store.contract) | dict(rules or {})).values())
        # The contract's own rule is content with "over or not"; another may ask for less than that.
        self.least = -1 if "lease_until" in columns_in((rules or {}).values()) else 0
        self.blurred: dict[str, Any] = {column: value for column, value in BLURRED.items() if column not in self.kept}
        self.tables = Numbered[Rows]()
        self.facts: list[Fact] = []
        self._known: dict[tuple[Rows, str, Arguments], tuple[int, Rows]] = {}  # the fact's number, the whole table
        self._later: dict[int, int] = {}
        self.empty = self.tables(())

    def ask(self, table: int, verb: str, arguments: Arguments = ()) -> tuple[int, int]:
        """The numbers of the table after this verb, and of the fact that tells of it."""
        rows = self.tables[table]
        part = concerned(rows, verb, arguments)
        known = self._known.get((part, verb, arguments))
        if known is None:
            known = self._known[part, verb, arguments] = len(self.facts), rows
            self.facts.append(self._execute(rows, part, verb, arguments))
        fact = self.facts[known[0]]
        same = fact.after == fact.before and not fact.last
        return (table if same else self.tables(put_back(rows, fact))), known[0]

    def tick(self, table: int) -> int:
        """The number of the table one unit of time later."""
        if table not in self._later:
            self._later[table] = self.tables(tuple(self._older(job) for job in self.tables[table]))
        return self._later[table]

    def ask_anew(self, store: Store, verb: str) -> None:
        """Goes on with a store whose contract differs from the other's in this verb's statement alone."""
        mine, its = statements(self.store.contract), statements(store.contract)
        differ = {name for name in mine if mine[name] != its[name]}
        assert differ <= {verb}, f"the two stores differ in {', '.join(sorted(differ))}, and not in {verb} alone"
        self.store = store
        self._known = {asked: known for asked, known in self._known.items() if asked[1] != verb}

    def audit(self, fresh: Store, share: float = 0.01, seed: int = 0) -> int:
        """Asks a random share of the questions again, of a fresh store; how many.  Raises AssertionError where an
        answer differs."""
        questions = random.Random(seed).sample(list(self._known), max(1, int(share * len(self._known))))
        again = Memo(fresh)
        again.kept, again.blurred, again.least = self.kept, self.blurred, self.least
        for part, verb, arguments in questions:
            number, rows = self._known[part, verb, arguments]
            said = again._execute(rows, part, verb, arguments)
            assert said == self.facts[number], f"remembered {self.facts[number]}, and a fresh store says {said}"
        return len(questions)

    def blur(self, job: Job) -> Job:
        """The row without what nothing reads.  How long a lease has been over, nobody asks."""
        blurred = job._replace(**self.blurred)
        over = "lease_until" in self.kept and job.lease_until is not None and job.lease_until < self.least
        return blurred._replace(lease_until=self.least) if over else blurred

    def blur_answer(self, answer: Any) -> Any:
        """The answer, with a row in it blurred."""
        if isinstance(answer, Job):
            return self.blur(answer)
        job = getattr(answer, "job", None)
        return answer if job is None else answer._replace(job=self.blur(job))

    def _execute(self, rows: Rows, part: Rows, verb: str, arguments: Arguments) -> Fact:
        """What the real store says.  Raises AssertionError if it writes a row that the question is not about."""
        self.store.load(whole(rows, self.store.settings.retention_seconds))
        now = {} if verb == "restart" else {"now": 0}
        answer = getattr(self.store, verb)(**dict(arguments), **now)
        written = in_order(self.store)
        others = {job.id for job in rows} - {job.id for job in part}
        untouched = [self.blur(job) for job in written if job.id in others]
        assert untouched == [job for job in rows if job.id in others], f"{verb} wrote more rows than {arguments} names"
        mine = [job for job in written if job.id not in others]
        entries = tuple(event._replace(n=0) for event in self.store.events())
        after, last = tuple(self.blur(job) for job in mine), any(job.run_at == 0 for job in mine)
        return Fact(part, verb, arguments, self.blur_answer(answer), entries, after, last)

    def _older(self, job: Job) -> Job:
        runs = "lease_until" in self.kept and job.lease_until is not None and job.lease_until > self.least
        older = job._replace(lease_until=job.lease_until - 1) if runs and job.lease_until is not None else job
        past: dict[str, Any] = {name: -1 for name in PAST if name in self.kept and getattr(job, name) is not None}
        return older._replace(**past) if past else older


def in_order(store: Store) -> Rows:
    """The store's rows, in the order in which `pick` would take them."""
    return tuple(sorted(store.rows(), key=lambda job: (job.run_at, job.created_at, job.id)))


def concerned(rows: Rows, verb: str, arguments: Arguments) -> Rows:
    """The rows that a question is about: the one that it names, or all.  A submit names one that is not there."""
    if verb == "submit" or not arguments or arguments[0][0] != "id":
        return rows
    return tuple([job for job in rows if job.id == arguments[0][1]])


def put_back(rows: Rows, fact: Fact) -> Rows:
    """The whole table, after a fact about a part of it."""
    if len(fact.before) == len(rows):
        return fact.after
    after = {job.id: job for job in fact.after}
    if fact.last:
        return (*[job for job in rows if job.id not in after], *fact.after)
    return tuple(after.get(job.id, job) for job in rows)


def whole(rows: Rows, retention_seconds: float) -> Iterator[Job]:
    """Rows as the table takes them: queued before now in their order, and with what its CHECKs ask for."""
    for n, job in enumerate(rows):
        job = job._replace(run_at=n - len(rows))
        if job.done:
            job = job._replace(finished_at=job.finished_at or 0, expires_at=retention_seconds)
        yield job


def columns_in(predicates: Iterable[str]) -> frozenset[str]:
    """The columns that these predicates name, but for run_at: retries are due at once, so it is always over."""
    words = {word for predicate in predicates for word in re.findall(r"[\w.:]+", predicate)}
    return frozenset(words & set(Job._fields)) - {"run_at"}
