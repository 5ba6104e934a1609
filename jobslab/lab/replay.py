"""Does a run through the world go the same way on a real store?  Step by step, with every answer compared.

The world asks the store at time 0, of blurred rows, with one name for all workers, and may ask it out of memory.  Here
time passes, rows are whole and names are true, so a replay puts all of that to the test, on any database.
"""

from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

from jobslab.job import Job, Reply, Submitted
from jobslab.lab.memo import Memo, in_order
from jobslab.lab.trace import UNIT, Happening
from jobslab.stores import Store

INSTANT = 0.001  # between two steps: as in the world, no two jobs are queued in the same instant


class Difference(NamedTuple):
    """Where a store went another way."""

    n: int  # the step, from 1
    step: str
    expected: Any  # the answer and the rows, as the world has them
    found: Any

    def __str__(self) -> str:
        return f"step {self.n}, {self.step!r}: the explorer says {self.expected}, and the store {self.found}"


def replay(trace: Iterable[Happening], store: Store) -> list[Difference]:
    """Runs the trace on a new store under the same contract; where that store went another way."""
    memo, now = Memo(store), 0.0
    differences = []
    for n, happening in enumerate(trace, start=1):
        now += UNIT if happening.step.verb == "pass" else INSTANT
        answer = memo.blur_answer(in_units(asked(store, happening, now), now))
        rows = tuple(memo.blur(in_units(job, now)) for job in in_order(store))
        expected, found = (happening.answer, happening.rows), (answer, rows)
        if expected != found:
            differences.append(Difference(n, str(happening.step), expected, found))
    return differences


def asked(store: Store, happening: Happening, now: float) -> Any:
    """The store's answer; None where nobody asks."""
    if happening.verb is None:
        return None
    time = {} if happening.verb == "restart" else {"now": now}
    return getattr(store, happening.verb)(**dict(happening.arguments), **time)


def in_units(answer: Any, now: float) -> Any:
    """The answer or row with its lease as the world has it: in units of the time that is left."""
    if isinstance(answer, Job) and answer.lease_until is not None:
        return answer._replace(lease_until=ceil((answer.lease_until - now) / UNIT))
    if isinstance(answer, Reply | Submitted) and answer.job is not None:
        return answer._replace(job=in_units(answer.job, now))
    return answer
