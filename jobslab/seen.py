"""What is there to be seen of a job, in one moment?  Its row, its journal, its result, and who else works.

Nothing is written, and nothing is concluded: that is `where`, which is a function of what was seen here.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jobslab import journal, landing
from jobslab.contract import Contract
from jobslab.effects import Entry
from jobslab.errors import StoreError
from jobslab.job import Event, Expired, Job, State
from jobslab.landing import Landed, Landing
from jobslab.settings import Settings
from jobslab.stores import Store

YES, NO, UNKNOWN, NONE = "YES", "NO", "UNKNOWN", "-"

LOOKS = 20  # at a job that changes while one looks


class Seen(NamedTuple):
    """All that was looked at."""

    id: str
    now: float
    found: Job | Expired | None
    events: tuple[Event, ...]  # of the job that has the id now
    landings: tuple[Landing, ...]
    last_word: float | None  # of any worker
    ahead: int
    again: str | None  # the job that does it again
    contract: Contract
    settings: Settings
    confirmed: str  # by the broker: YES, NO, UNKNOWN, or NONE where there is no broker
    asker: str | None  # whose question it is; None: the operator's

    @property
    def job(self) -> Job | None:
        return self.found if isinstance(self.found, Job) else None

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is wrong with the journal of a job that is there."""
        kept_seconds = self.settings.retention_seconds + self.settings.expired_seconds
        if self.job is None:
            return ()
        cut = self.job.created_at <= self.now - kept_seconds
        return tuple(journal.complaints(self.job, self.events, cut))

    @property
    def landing(self) -> Landing | None:
        """The one of most concern, by the order of CONCERN."""
        return min(self.landings, key=lambda one: CONCERN.index(one.landed), default=None)


CONCERN = (Landed.DAMAGED, Landed.ABSENT, Landed.UNREPORTED, Landed.UNKNOWN, Landed.NOT_DUE, Landed.LANDED)


def look(
    store: Store,
    id: str,
    results: Path | None = None,
    entries: Iterable[Entry] | None = None,
    *,
    asker: str | None = None,
    now: float | None = None,
) -> Seen:
    """Everything that `explain` needs."""
    now = clock(store) if now is None else now
    found, events = together(store, id, now)
    job = found if isinstance(found, Job) else None
    landings = () if job is None else landed(job, results, entries)
    ahead = 0 if job is None or job.state != State.QUEUED else store.ahead(job)
    last, again, told = store.last_word(), store.done_again_by(id), confirmed(store, job)
    return Seen(id, now, found, events, landings, last, ahead, again, store.contract, store.settings, told, asker)


def confirmed(store: Store, job: Job | None) -> str:
    """Has the broker confirmed the last message of this job?  Where there is one, a table `outbox` holds the ids of the
    jobs that it is still to be told of (see lab.outbox)."""
    with store.database.read() as db:
        if not store.database.has_table(db, "outbox"):
            return NONE
        if job is None:
            return UNKNOWN
        left = db.execute("SELECT count(*) FROM outbox WHERE job_id = :id", {"id": job.id}).fetchone()[0]
        return NO if left else YES


def clock(store: Store) -> float:
    """The database's time."""
    with store.database.read() as db:
        return store.database.now(db)


def together(store: Store, id: str, now: float) -> tuple[Job | Expired | None, tuple[Event, ...]]:
    """The row and its journal, of one moment: the row was the same before and after.  A transaction of the store would
    keep all writers waiting for somebody who only looks.  Raises StoreError."""
    for _ in range(LOOKS):
        found = store.get(id, now=now)
        events = store.events_of(id)
        if store.get(id, now=now) == found:
            return found, journal.life(events)
    raise StoreError(f"the job {id!r} changes faster than one can look at it; ask again")


def landed(job: Job, results: Path | None, entries: Iterable[Entry] | None) -> tuple[Landing, ...]:
    """Whether its file landed; and where it promised none, and there is a ledger, whether its entry did."""
    file = landing.file(job, results)
    if entries is None or (job.state == State.SUCCEEDED and file.name):
        return (file,)
    entry = landing.entry(job, entries)
    return (entry,) if results is None else (entry, file)


def ids(store: Store, asked: str) -> tuple[str, ...]:
    """The ids of what is asked for: of a job, or of a correlation id's jobs; or what was asked, if it is neither."""
    if store.get(asked) is not None or store.events_of(asked):
        return (asked,)
    return store.traced(asked) or (asked,)
