"""Was anything lost or doubled?  What the clients were promised, against the store, its journal and the effects.

Nothing here asks how the run went; it reads what is left of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jobslab.effects import Entry
from jobslab.job import REPORTS, TERMINAL, Event, Job, State

SWEPT = ("requeue", "exhaust")


class Audit(NamedTuple):
    """What was found; of the counts the first five must be 0, and `stale_refused` must not where it was provoked."""

    lost: int  # accepted, and not there, or not over
    duplicates: int  # jobs of an intent beyond its first
    stale_accepted: int  # reports of workers that had been given up, and that were accepted all the same
    done_twice: int  # effects of an intent beyond its first
    undone: int  # jobs that succeeded without their effect
    accepted: int  # intents with a 202
    terminal: int  # of them, those whose job is over
    given_up: int  # of these, those that failed after their last attempt
    stale_refused: int  # reports of workers that had been given up, and that were refused
    requeued: int  # attempts that were swept
    tried_again: int  # effects that were tried more than once


def audit(
    accepted: Mapping[int, set[str]], rows: Iterable[Job], events: Iterable[Event], effects: Iterable[Entry]
) -> Audit:
    """The findings, from the intents' ids by number, the table, the journal and the ledger."""
    jobs, ledger, journal = {job.id: job for job in rows}, list(effects), list(events)
    over = [ids for ids in accepted.values() if all(id in jobs and jobs[id].state in TERMINAL for id in ids)]
    per_key = Counter(job.idempotency_key for job in jobs.values())
    done = {entry.job_id for entry in ledger}
    stale = Counter(event.accepted for event in stale_reports(journal))
    return Audit(
        lost=len(accepted) - len(over),
        duplicates=beyond_first(per_key),
        stale_accepted=stale[1],
        done_twice=beyond_first(Counter(entry.effect for entry in ledger)),
        undone=sum(job.state == State.SUCCEEDED and job.id not in done for job in jobs.values()),
        accepted=len(accepted),
        terminal=len(over),
        given_up=sum(job.state == State.FAILED for job in jobs.values()),
        stale_refused=stale[0],
        requeued=sum(event.verb in SWEPT and event.accepted for event in journal),
        tried_again=sum(entry.tries > 1 for entry in ledger),
    )


def beyond_first(counts: "Counter[str | None]") -> int:
    return sum(count - 1 for count in counts.values())


def stale_reports(journal: Iterable[Event]) -> list[Event]:
    """The reports that name an attempt which had been swept before."""
    swept: set[tuple[str, int | None]] = set()
    found = []
    for event in journal:
        named = event.job_id, event.attempt
        if event.verb in SWEPT and event.accepted:
            swept.add(named)
        elif event.verb in REPORTS and named in swept:
            found.append(event)
    return found
