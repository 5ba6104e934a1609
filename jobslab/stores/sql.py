"""How does each verb become one transaction, and how is it told in the journal?

The verbs hold no rule: they fill the statements of `contract`, run them, and write down what happened.  Every verb
takes `now`; None means the database's own clock, which is what a service passes.  Nothing in a verb reads another
clock or a random source, so a verb is a function of (rows, verb, arguments).
"""

import hashlib
import json
import math
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from typing import Any

from jobslab.contract import GUARDED, Contract, render, statements, why
from jobslab.errors import BadKey, BadNumber, BadParams, KeyReused, UnknownKind
from jobslab.job import KINDS, NO_SUCH_JOB, REPORTS, Error, Event, Expired, Job, Reply, Stuck, Submitted, queued
from jobslab.settings import KEY_LENGTH, MOST_ATTEMPTS, SERVICE, Settings
from jobslab.stores.database import Connection, Database
from jobslab.stores.schema import open_schema

VISIBLE = re.compile(rf"[\x21-\x7e]{{1,{KEY_LENGTH}}}\Z")

CANCELLED = Error("cancelled", "cancelled on request")

INSERT = f"INSERT INTO jobs VALUES ({', '.join(f':{column}' for column in Job._fields)})"

EVENT = """INSERT INTO events (at, job_id, actor, verb, attempt, accepted, refused_by, state_before, state_after,
                    correlation_id)
VALUES (:at, :job_id, :actor, :verb, :attempt, :accepted, :refused_by, :state_before, :state_after, :correlation_id)"""

# An id may expire twice: counted ids begin anew when a purge has emptied the table.
REMEMBER = """INSERT INTO expired (id, owner, expired_at)
VALUES (:id, :owner, :expired_at)
    ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, expired_at = excluded.expired_at"""


class SQLStore:
    """The job table of one database under one contract.  Safe to share between threads; `close` it, or use `with`."""

    def __init__(
        self,
        database: Database,
        contract: Contract | None = None,
        *,
        settings: Settings = SERVICE,
        kinds: Collection[str] = KINDS,
        journal: bool = True,  # off only to measure what it costs
    ) -> None:
        self.database = database
        self.settings = settings
        self.kinds = tuple(kinds)
        self.journal = journal
        self._joined = threading.local()
        try:
            self.contract = open_schema(database, contract)
        except BaseException:
            database.close()
            raise
        self.sql = statements(self.contract, database.slots)
        self._why = {verb: render(why(verb), self.contract, database.slots) for verb in GUARDED}
        self._constants = {"cancelled": as_json(CANCELLED), "retention_seconds": settings.retention_seconds}

    def __enter__(self) -> "SQLStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database; a store without a file is gone."""
        self.database.close()

    # Accepting a job

    def submit(
        self,
        id: str,
        kind: str,
        params: dict[str, Any],
        owner: str = "lab",
        key: str | None = None,
        *,
        max_attempts: int | None = None,
        run_at: float | None = None,
        correlation_id: str | None = None,
        rerun_of: str | None = None,
        now: float | None = None,
    ) -> Submitted:
        """Register a job, or find the one that this owner's key has made already, in one statement.

        Raises BadSubmission (nothing is stored), KeyReused (same key, other kind or params; the first job is
        untouched), IdTaken.  The key of a job whose retention is over makes a new job.
        """
        max_attempts = self.settings.max_attempts if max_attempts is None else max_attempts
        self._check_submission(kind, params, key, max_attempts)
        text = canonical(params)
        fingerprint = hashlib.sha256(f"{kind} {text}".encode()).hexdigest()
        with self._writing() as db:
            now = self._time(db, now)
            run_at = now if run_at is None else not_negative("run_at", run_at)
            job = queued(id, kind, text, owner, key, fingerprint, max_attempts, run_at, correlation_id, rerun_of, now)
            submitted = self._insert_or_find(db, job)
            job = submitted.job
            same = job.fingerprint == fingerprint
            before = job.state if submitted.replayed else None
            refused_by = None if same else "fingerprint"
            self._tell(db, now, job.id, owner, "submit", job.attempt, refused_by, before, job.state, job.correlation_id)
        if not same:
            raise KeyReused(f"the idempotency key {key!r} belongs to a job with another kind or other params")
        return submitted

    def find(self, owner: str, key: str, *, now: float | None = None) -> Job | None:
        """The job that this owner's key stands for, if the contract knows keys and the job is not expired."""
        with self._reading() as db:
            job = self._job(db, "find", {"owner": owner, "idempotency_key": key})
            return None if job is None or is_expired(job, self._time(db, now)) else job

    def submit_many(self, jobs: Iterable[Mapping[str, Any]], *, now: float | None = None) -> tuple[Submitted, ...]:
        """Submit many jobs, each as the arguments of `submit`, in one transaction: all are stored, or when it raises
        none.  The answers are in the order of the jobs."""
        numbered = list(enumerate(jobs))
        # In the order of their keys, so that of two callers with the same keys neither waits for the other in a circle.
        numbered.sort(key=lambda job: (job[1].get("owner", ""), job[1].get("key") or ""))
        with self.transaction():
            submitted = {n: self.submit(**job, now=now) for n, job in numbered}
        return tuple(submitted[n] for n in sorted(submitted))

    # Looking at jobs

    def get(self, id: str, *, now: float | None = None) -> Job | Expired | None:
        """The job; or that it is expired, judged by the clock and not by when a purge ran; or None for no such job."""
        with self._reading() as db:
            now = self._time(db, now)
            job = one(Job, db.execute("SELECT * FROM jobs WHERE id = :id", {"id": id}))
            if job is not None and not is_expired(job, now):
                return job
            gone = one(Expired, db.execute("SELECT * FROM expired WHERE id = :id", {"id": id}))
            if job is not None:  # a purge has still to come, and makes no difference
                gone = Expired(job.id, job.owner, job.expires_at)
            return gone if gone and now < gone.expired_at + self.settings.expired_seconds else None

    def list(
        self, owner: str, *, limit: int = 50, before: tuple[float, str] | None = None, now: float | None = None
    ) -> list[Job]:
        """This owner's jobs that are not expired, newest first; `before` is the (created_at, id) of the last one of
        the page before."""
        created_at, id = before or (math.inf, "")
        with self._reading() as db:
            now = self._time(db, now)
            rows = db.execute(
                """SELECT * FROM jobs
                    WHERE owner = :owner AND (created_at, id) < (:created_at, :id)
                      AND (expires_at IS NULL OR expires_at > :now OR state IN ('QUEUED', 'RUNNING'))
                    ORDER BY created_at DESC, id DESC LIMIT :limit""",
                {"owner": owner, "created_at": created_at, "id": id, "limit": limit, "now": now},
            )
            return [Job(*row) for row in rows]

    def waiting(self) -> int:
        """How many jobs are queued."""
        with self._reading() as db:
            return int(db.execute("SELECT count(*) FROM jobs WHERE state = 'QUEUED'").fetchone()[0])

    def events_of(self, id: str) -> tuple[Event, ...]:
        """The journal's lines of one job, oldest first.  It is read from end to end, a tenth of a second for a million
        lines: an index would cost every write what is asked for rarely."""
        with self._reading() as db:
            rows = db.execute("SELECT * FROM events WHERE job_id = :id ORDER BY n", {"id": id})
            return tuple(Event(*row) for row in rows)

    def traced(self, correlation_id: str) -> tuple[str, ...]:
        """The ids of the jobs with this correlation id, of those too that only the journal still knows."""
        with self._reading() as db:
            rows = db.execute(
                """SELECT id FROM jobs WHERE correlation_id = :correlation_id
                    UNION SELECT job_id FROM events WHERE correlation_id = :correlation_id
                    ORDER BY 1""",
                {"correlation_id": correlation_id},
            )
            return tuple(id for (id,) in rows)

    def ahead(self, job: Job) -> int:
        """How many waiting jobs are picked before this one, when all are due."""
        with self._reading() as db:
            rows = db.execute(
                """SELECT count(*) FROM jobs
                    WHERE state = 'QUEUED' AND (run_at, created_at, id) < (:run_at, :created_at, :id)""",
                {"run_at": job.run_at, "created_at": job.created_at, "id": job.id},
            )
            return int(rows.fetchone()[0])

    def last_word(self) -> float | None:
        """When any worker's claim or report was accepted last, as far back as the journal goes."""
        with self._reading() as db:
            row = db.execute(
                f"SELECT at FROM events WHERE verb IN {('claim', *REPORTS)} AND accepted = 1 ORDER BY n DESC LIMIT 1"
            ).fetchone()
            return None if row is None else float(row[0])

    def done_again_by(self, id: str) -> str | None:
        """The id of the newest job that does this one again.  The jobs are read from end to end, for the same reason
        as the journal in `events_of`."""
        with self._reading() as db:
            row = db.execute(
                "SELECT id FROM jobs WHERE rerun_of = :id ORDER BY created_at DESC, id DESC LIMIT 1", {"id": id}
            ).fetchone()
            return None if row is None else str(row[0])

    # Claiming a job

    def pick(self, *, now: float | None = None) -> Job | None:
        """The job that is due first, or None.  Nothing is written: another may pick the same one."""
        with self._reading() as db:
            return self._job(db, "pick", {"now": self._time(db, now)})

    def claim(self, id: str, worker: str, lease_seconds: float | None = None, *, now: float | None = None) -> Reply:
        """Take a picked job: a new attempt with a new lease.  The reply carries the job where it landed."""
        with self._writing() as db:
            return self._claim(db, id, worker, lease_seconds, self._time(db, now))

    def claim_next(self, worker: str, lease_seconds: float | None = None, *, now: float | None = None) -> Reply | None:
        """Pick and claim in one transaction: what a real worker does.  None: nothing is due."""
        with self._writing() as db:
            now = self._time(db, now)
            picked = self._job(db, "pick", {"now": now})
            return picked and self._claim(db, picked.id, worker, lease_seconds, now)

    def claim_many(
        self, worker: str, most: int, lease_seconds: float | None = None, *, now: float | None = None
    ) -> tuple[Job, ...]:
        """Claim the jobs that are due first, `most` of them or as many as there are, in one transaction."""
        if most < 1:
            raise BadNumber(f"one claims at least 1 job, not {most}")
        with self.transaction():
            replies = iter(lambda: self.claim_next(worker, lease_seconds, now=now), None)
            return tuple(reply.job for reply in islice(replies, most) if reply.job)

    # A worker's reports: each names its attempt, and each may be refused

    def renew(
        self, id: str, attempt: int, worker: str, lease_seconds: float | None = None, *, now: float | None = None
    ) -> Reply:
        """Still at it: the lease starts anew.  The reply says whether the worker is asked to stop."""
        return self._write("renew", id, worker, now, attempt=attempt, lease_seconds=self._lease(lease_seconds))

    def progress(self, id: str, attempt: int, worker: str, progress: float, *, now: float | None = None) -> Reply:
        """So much of it is done, from 0 to just under 1: the whole is done only when it has succeeded."""
        if not 0 <= progress < 1:
            raise BadNumber(f"progress is from 0 to just under 1, not {progress}")
        return self._write("progress", id, worker, now, attempt=attempt, progress=progress)

    def succeed(self, id: str, attempt: int, worker: str, result: Any = None, *, now: float | None = None) -> Reply:
        """Done; `result` is anything that JSON can say."""
        return self._write("succeed", id, worker, now, attempt=attempt, result=json.dumps(result))

    def fail(self, id: str, attempt: int, worker: str, error: Error, *, now: float | None = None) -> Reply:
        """Over for good, without a result."""
        return self._write("fail", id, worker, now, attempt=attempt, error=as_json(error))

    def retry(
        self, id: str, attempt: int, worker: str, error: Error, wait_seconds: float = 0,
        *, now: float | None = None,
    ) -> Reply:  # fmt: skip
        """This attempt failed and the next may not: back to the queue, not before `wait_seconds` from now.  Refused
        by `attempts_left` after the last attempt, where `fail` is what remains to be said."""
        not_negative("wait_seconds", wait_seconds)
        return self._write("retry", id, worker, now, attempt=attempt, error=as_json(error), wait_seconds=wait_seconds)

    def stop(self, id: str, attempt: int, worker: str, *, now: float | None = None) -> Reply:
        """The work has stopped because a cancel asked for it."""
        return self._write("stop", id, worker, now, attempt=attempt)

    # The sweeper

    def stuck(self, *, now: float | None = None) -> tuple[Stuck, ...]:
        """The running jobs whose lease is over.  Nothing is written."""
        with self._reading() as db:
            rows = db.execute(self.sql["stuck"], {"now": self._time(db, now)})
            return tuple(Stuck(id, attempt, bool(left)) for id, attempt, left in rows)

    def requeue(self, id: str, attempt: int, sweeper: str = "sweeper", *, now: float | None = None) -> Reply:
        """Back to the queue, with its attempt kept; CANCELLED where it was asked to stop."""
        return self._write("requeue", id, sweeper, now, attempt=attempt)

    def exhaust(self, id: str, attempt: int, sweeper: str = "sweeper", *, now: float | None = None) -> Reply:
        """No attempt is left: FAILED."""
        gave_up = Error("gave up", f"gave up after {attempt} attempts")
        return self._write("exhaust", id, sweeper, now, attempt=attempt, error=as_json(gave_up))

    # The caller's other verb, retention and the server's start

    def cancel(self, id: str, actor: str = "lab", *, now: float | None = None) -> Reply:
        """A waiting job is CANCELLED at once; a running one is asked to stop, in the same transaction, and the reply's
        `cancel_requested` says so; a finished one does not change."""
        with self._writing() as db:
            now = self._time(db, now)
            reply = self._guarded(db, "cancel", id, actor, now, {})
            if reply.accepted or reply.refused_by == NO_SUCH_JOB:
                return reply
            asked = one(tuple, db.execute(self.sql["ask_to_stop"], {"id": id, "now": now}))
            if asked is None:
                return reply
            state, attempt, cancel_requested = asked
            self._tell(db, now, id, actor, "ask_to_stop", attempt, None, state, state, self._correlation(db, id))
            return reply._replace(state=state, attempt=attempt, cancel_requested=bool(cancel_requested))

    def purge(self, *, now: float | None = None) -> int:
        """Delete the finished jobs whose retention is over and remember their ids; forget the ids, and the journal,
        that are older than `settings.expired_seconds`.  Returns how many jobs were deleted."""
        with self._writing() as db:
            return self._purge(db, self._time(db, now))

    def start_server(self) -> None:
        """What a server does first: with persistence off, be the only one (raises SecondServer), and `restart`."""
        if not self.contract.persistence:
            self.database.lock_server()
        self.restart()

    def restart(self) -> None:
        """Leave what a restart of the server leaves: everything, or with persistence off nothing."""
        with self._writing() as db:
            for statement in self.sql["restart"].split(";"):
                db.execute(statement)

    # Several verbs in one transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make one transaction of all verbs that this thread calls inside: all of them are kept, or none when the body
        raises.  Whoever needs two answers or none, or saves a commit, uses it."""
        with self._writing() as db:
            before, self._joined.db = self._connection(), db
            try:
                yield
            finally:
                self._joined.db = before

    # The whole table as a value, for the lab, the tests and the explorer

    def rows(self) -> tuple[Job, ...]:
        """All jobs, by id."""
        with self._reading() as db:
            return tuple(Job(*row) for row in db.execute("SELECT * FROM jobs ORDER BY id"))

    def events(self) -> tuple[Event, ...]:
        """The journal, oldest first."""
        with self._reading() as db:
            return tuple(Event(*row) for row in db.execute("SELECT * FROM events ORDER BY n"))

    def load(self, rows: Iterable[Job]) -> None:
        """Make the table hold just these jobs, with an empty journal."""
        with self._writing() as db:
            for table in ("jobs", "events", "expired"):
                db.execute(f"DELETE FROM {table}")
            for row in rows:
                db.execute(INSERT, row._asdict())

    # How a verb is carried out

    def _connection(self) -> Connection | None:
        """That of the transaction which this thread is in, if any."""
        return getattr(self._joined, "db", None)

    def _writing(self) -> AbstractContextManager[Connection]:
        db = self._connection()
        return self.database.write() if db is None else nullcontext(db)

    def _reading(self) -> AbstractContextManager[Connection]:
        db = self._connection()
        return self.database.read() if db is None else nullcontext(db)

    def _write(self, verb: str, id: str, actor: str, now: float | None, **p: Any) -> Reply:
        with self._writing() as db:
            return self._guarded(db, verb, id, actor, self._time(db, now), p)

    def _guarded(self, db: Connection, verb: str, id: str, actor: str, now: float, p: dict[str, Any]) -> Reply:
        """One guarded write and its line in the journal.

        The rule that refuses is asked for before the write, always: the journal must know the state before, and a
        rule that is asked only after a refusal could be asked of another row.
        """
        p = {**self._constants, "id": id, "worker": actor, "now": now, **p}
        if "wait_seconds" in p:
            p["run_at"] = now + p["wait_seconds"]
        stands = db.later(self._why[verb], p)
        wrote = db.execute(self.sql[verb], p).fetchall()  # all of it: a half-read RETURNING makes COMMIT fail
        before = stands.fetchone()
        state_before, attempt, asked, correlation_id, refused_by = before or (None, None, 0, None, NO_SUCH_JOB)
        assert (refused_by is None) == bool(wrote), f"{verb}: refused by {refused_by}, and yet {len(wrote)} rows landed"
        job = Job(*wrote[0]) if wrote and verb == "claim" else None
        state = state_before
        if job is not None:
            state, attempt, asked = job.state, job.attempt, job.cancel_requested
        elif wrote:
            state, attempt, asked = wrote[0]
        named = p.get("attempt", attempt)
        self._tell(db, now, id, actor, verb, named, refused_by, state_before, state, correlation_id)
        return Reply(refused_by is None, refused_by, state, attempt, bool(asked), job)

    def _claim(self, db: Connection, id: str, worker: str, lease_seconds: float | None, now: float) -> Reply:
        p = {"worker": worker, "lease_seconds": self._lease(lease_seconds)}
        return self._guarded(db, "claim", id, worker, now, p)

    def _insert_or_find(self, db: Connection, job: Job) -> Submitted:
        row = job._asdict()
        if db.execute(self.sql["submit"], row).rowcount == 1:
            return Submitted(job, replayed=False)
        found = self._job(db, "find", row)
        if found is not None and not is_expired(found, job.created_at):
            return Submitted(found, replayed=True)
        # The key's job is expired; or on a database with many writers, it was purged since the insert met it.
        self._purge(db, job.created_at)
        return self._insert_or_find(db, job)

    def _purge(self, db: Connection, now: float) -> int:
        gone = db.execute(self.sql["purge"], {"now": now}).fetchall()
        forgotten = now - self.settings.expired_seconds
        for id, owner, state, attempt, expires_at, correlation_id in gone:
            if expires_at > forgotten:
                db.execute(REMEMBER, Expired(id, owner, expires_at)._asdict())
            self._tell(db, now, id, "purge", "purge", attempt, None, state, None, correlation_id)
        db.execute("DELETE FROM expired WHERE expired_at <= :forgotten", {"forgotten": forgotten})
        self._cut_journal(db, forgotten - self.settings.retention_seconds)
        return len(gone)

    def _cut_journal(self, db: Connection, before: float) -> None:
        """Delete the journal's oldest lines, some at a time: it has no index but its order, which is that of time."""
        oldest = db.execute("SELECT n, at FROM events ORDER BY n LIMIT 1000").fetchall()
        last = max((n for n, at in oldest if at <= before), default=0)
        db.execute("DELETE FROM events WHERE n <= :last", {"last": last})

    def _tell(
        self, db: Connection, at: float, job_id: str, actor: str | None, verb: str, attempt: int | None,
        refused_by: str | None, state_before: str | None, state_after: str | None, correlation_id: str | None,
    ) -> None:  # fmt: skip
        if self.journal:
            db.later(
                EVENT,
                {
                    "at": at,
                    "job_id": job_id,
                    "actor": actor,
                    "verb": verb,
                    "attempt": attempt,
                    "accepted": int(refused_by is None),
                    "refused_by": refused_by,
                    "state_before": state_before,
                    "state_after": state_after,
                    "correlation_id": correlation_id,
                },
            )

    def _job(self, db: Connection, verb: str, p: dict[str, Any]) -> Job | None:
        return one(Job, db.execute(self.sql[verb], p))

    def _correlation(self, db: Connection, id: str) -> str | None:
        return db.execute("SELECT correlation_id FROM jobs WHERE id = :id", {"id": id}).fetchone()[0]

    def _time(self, db: Connection, now: float | None) -> float:
        return self.database.now(db) if now is None else not_negative("now", now)

    def _lease(self, lease_seconds: float | None) -> float:
        return self.settings.lease_seconds if lease_seconds is None else not_negative("lease_seconds", lease_seconds)

    def _check_submission(self, kind: str, params: object, key: str | None, max_attempts: int) -> None:
        if kind not in self.kinds:
            raise UnknownKind(f"there is no kind of job {kind!r}; the kinds are {', '.join(self.kinds)}")
        if not isinstance(params, dict):
            raise BadParams(f"params are a JSON object, not {type(params).__name__}")
        if key is not None and not VISIBLE.match(key):
            raise BadKey(f"an idempotency key is 1 to {KEY_LENGTH} visible ASCII characters; this one has {len(key)}")
        if not isinstance(max_attempts, int) or not 1 <= max_attempts <= MOST_ATTEMPTS:
            raise BadNumber(f"max_attempts is a whole number from 1 to {MOST_ATTEMPTS}, not {max_attempts}")


def one(kind: Any, rows: Iterable[tuple[Any, ...]]) -> Any:
    """The only row as a value of this kind, or None.  All rows are read: see SQLStore._guarded."""
    found = list(rows)
    if not found:
        return None
    return tuple(found[0]) if kind is tuple else kind(*found[0])


def is_expired(job: Job, now: float) -> bool:
    """Is the job finished and its retention over?  A running job never expires."""
    return job.done and job.expires_at is not None and job.expires_at <= now


def as_json(error: Error) -> str:
    return json.dumps(error._asdict())


def canonical(params: dict[str, Any]) -> str:
    """Params as one text, whatever their order and white space were.  Raises BadParams."""
    try:
        return json.dumps(params, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise BadParams(f"params are a JSON object, and this can't be written as JSON: {wrong}") from wrong


def not_negative(name: str, value: float) -> float:
    """The same number.  Raises BadNumber where it is negative or not finite."""
    if not (math.isfinite(value) and value >= 0):
        raise BadNumber(f"{name} is a number of seconds from 0 up, not {value}")
    return float(value)
