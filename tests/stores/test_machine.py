"""Does the full contract keep its promises whatever is done in which order?  Hypothesis looks for the order that breaks
one, with stale workers and stale sweepers, on an SQLite file in lab time.

Claims and looks are kept, and come back later: a report of each claim may arrive at any time, and again.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, multiple, rule, run_state_machine_as_test

from jobslab import TERMINAL, Contract
from jobslab.errors import KeyReused
from jobslab.job import Reply, Stuck
from jobslab.settings import Settings
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite
from tests.stores.promises import Watch
from tests.stores.steps import BROKEN

QUICK = Settings(lease_seconds=10, retention_seconds=40, expired_seconds=30)
UNITS = st.sampled_from([1, 5, 10, 60])


class Walk(RuleBasedStateMachine):
    """Every rule is one step of somebody; after each the rows and the journal are looked at."""

    jobs = Bundle("jobs")  # ids
    claims = Bundle("claims")  # (id, attempt, worker) of an accepted claim
    looks = Bundle("looks")  # what a sweeper saw

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        database = SQLite(str(Path(self.folder.name) / "jobs.db"), synchronous="OFF")
        self.store = SQLStore(database, Contract(), settings=QUICK)
        self.watch = Watch(self.store)
        self.now, self.submitted = 0.0, 0

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def looked(self, reply: Reply | None = None) -> None:
        assert self.watch.broken() == []
        if reply is not None:
            assert reply.accepted == (reply.refused_by is None)
            assert reply.state == self.store.events()[-1].state_after

    @rule(units=UNITS)
    def time_passes(self, units: int) -> None:
        self.now += units

    @rule(
        target=jobs,
        key=st.sampled_from([None, "k1", "k2"]),
        owner=st.sampled_from(["ann", "bob"]),
        seconds=st.sampled_from([0, 0, 1]),
        max_attempts=st.integers(1, 3),
        later=st.sampled_from([0, 0, 5]),
    )
    def submit(self, key: str | None, owner: str, seconds: int, max_attempts: int, later: int) -> object:
        self.submitted += 1
        id, run_at = f"job-{self.submitted}", self.now + later
        with suppress(KeyReused):
            submitted = self.store.submit(
                id, "wait", {"seconds": seconds}, owner, key, max_attempts=max_attempts, run_at=run_at, now=self.now
            )
            self.looked()
            assert submitted.replayed == (submitted.job.id != id)
            return submitted.job.id
        self.looked()
        return multiple()

    def claimed(self, reply: Reply | None, worker: str) -> object:
        self.looked(reply)
        return (reply.job.id, reply.job.attempt, worker) if reply and reply.job else multiple()

    @rule(target=claims, id=jobs, worker=st.sampled_from("AB"))
    def claim_what_it_picked_some_time_ago(self, id: str, worker: str) -> object:
        return self.claimed(self.store.claim(id, worker, now=self.now), worker)

    @rule(target=claims, worker=st.sampled_from("AB"))
    def claim_next(self, worker: str) -> object:
        return self.claimed(self.store.claim_next(worker, now=self.now), worker)

    @rule(claim=claims)
    def renew(self, claim: tuple[str, int, str]) -> None:
        self.looked(self.store.renew(*claim, now=self.now))

    @rule(claim=claims, progress=st.floats(0, 1, exclude_max=True))
    def progress(self, claim: tuple[str, int, str], progress: float) -> None:
        self.looked(self.store.progress(*claim, progress, now=self.now))

    @rule(claim=claims, result=st.sampled_from([None, 3, {"rows": 1}]))
    def succeed(self, claim: tuple[str, int, str], result: object) -> None:
        self.looked(self.store.succeed(*claim, result, now=self.now))

    @rule(claim=claims)
    def fail(self, claim: tuple[str, int, str]) -> None:
        self.looked(self.store.fail(*claim, BROKEN, now=self.now))

    @rule(claim=claims, wait=st.sampled_from([0, 5]))
    def retry(self, claim: tuple[str, int, str], wait: int) -> None:
        self.looked(self.store.retry(*claim, BROKEN, wait, now=self.now))

    @rule(claim=claims)
    def stop(self, claim: tuple[str, int, str]) -> None:
        self.looked(self.store.stop(*claim, now=self.now))

    @rule(target=looks)
    def look(self) -> object:
        return multiple(*self.store.stuck(now=self.now))

    @rule(seen=looks)
    def sweep_what_it_saw_some_time_ago(self, seen: Stuck) -> None:
        verb = self.store.requeue if seen.attempts_left else self.store.exhaust
        self.looked(verb(seen.id, seen.attempt, now=self.now))

    @rule(id=jobs)
    def cancel(self, id: str) -> None:
        reply = self.store.cancel(id, now=self.now)
        self.looked(reply)
        assert reply.state is None or reply.state in TERMINAL or reply.cancel_requested

    @rule()
    def purge(self) -> None:
        known = self.watch.rows
        seen = {id: self.store.get(id, now=self.now) for id in known}
        self.store.purge(now=self.now)
        assert {id: self.store.get(id, now=self.now) for id in known} == seen
        self.looked()

    @rule()
    def restart(self) -> None:
        self.store.start_server()
        self.looked()


def test_no_order_of_steps_breaks_a_promise() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=40, stateful_step_count=60))


@pytest.mark.long
def test_no_order_of_many_more_steps_breaks_a_promise() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=300, stateful_step_count=200))
