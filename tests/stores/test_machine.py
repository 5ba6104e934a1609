"""Does the full contract keep its promises whatever is done in which order?  Hypothesis looks for the order that breaks
one, with stale workers and stale sweepers, on an SQLite file in lab time.

Claims and looks are kept, and come back later: a report of each claim may arrive at any time, and again.  There are
few rules with much to draw, since Hypothesis tries them in subsets.
"""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from jobslab import TERMINAL, Contract
from jobslab.errors import KeyReused
from jobslab.job import Reply, Stuck
from jobslab.settings import Settings
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite
from tests.stores.promises import Watch
from tests.stores.steps import BROKEN

QUICK = Settings(lease_seconds=10, retention_seconds=40, expired_seconds=30)

PASSES = st.sampled_from([0, 0, 0, 0, 1, 5, 10, 60])  # units of time before a step
AGO = st.sampled_from([0, 0, 0, 1, 2])  # how many jobs or claims: mostly the last one, sometimes a stale one

SAID: dict[str, tuple[Any, ...]] = {
    "renew": (),
    "progress": (0.2,),
    "progress more": (0.8,),
    "succeed": ({"rows": 1},),
    "fail": (BROKEN,),
    "stop": (),
    "retry": (BROKEN,),
    "retry later": (BROKEN, 5),
}

GOING_ON = list(SAID)[:3]
ENDS = list(SAID)[3:]

has_jobs = precondition(lambda walk: walk.ids)
has_claims = precondition(lambda walk: walk.claims)


class Walk(RuleBasedStateMachine):
    """Every rule is one step of somebody; after each the rows and the journal are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        database = SQLite(str(Path(self.folder.name) / "jobs.db"), synchronous="OFF")
        self.store = SQLStore(database, Contract(), settings=QUICK)
        self.watch = Watch(self.store)
        self.now = 0.0
        self.ids: list[str] = []  # of all jobs
        self.claims: list[tuple[str, int, str]] = []  # that landed: job, attempt, worker
        self.seen: list[Stuck] = []  # by a sweeper, some time ago

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def looked(self, reply: Reply | None = None) -> None:
        """Every promise holds, and the reply says what the journal says."""
        assert self.watch.broken() == []
        if reply is not None:
            assert reply.accepted == (reply.refused_by is None)
            assert reply.state == self.store.events()[-1].state_after

    @rule(
        passes=PASSES,
        key=st.sampled_from([None, "k1", "k2"]),
        owner=st.sampled_from(["ann", "bob"]),
        seconds=st.sampled_from([0, 0, 1]),
        max_attempts=st.integers(1, 3),
        later=st.sampled_from([0, 0, 5]),
    )
    def submit(self, passes: int, key: str | None, owner: str, seconds: int, max_attempts: int, later: int) -> None:
        self.now += passes
        id, run_at = f"job-{len(self.ids) + 1}", self.now + later
        self.ids.append(id)
        with suppress(KeyReused):
            submitted = self.store.submit(
                id, "wait", {"seconds": seconds}, owner, key, max_attempts=max_attempts, run_at=run_at, now=self.now
            )
            assert submitted.replayed == (submitted.job.id != id)
        self.looked()

    @has_jobs
    @rule(passes=PASSES, picked_ago=st.one_of(st.none(), AGO), worker=st.sampled_from("AB"))
    def claim(self, passes: int, picked_ago: int | None, worker: str) -> None:
        """The next job, or one that was picked some time ago."""
        self.now += passes
        if picked_ago is None:
            reply = self.store.claim_next(worker, now=self.now)
        else:
            reply = self.store.claim(self.ids[-1 - picked_ago % len(self.ids)], worker, now=self.now)
        self.looked(reply)
        if reply is not None and reply.job is not None:
            self.claims.append((reply.job.id, reply.job.attempt, worker))

    def say(self, what: str, claim: tuple[str, int, str]) -> None:
        verb = getattr(self.store, what.split()[0])
        self.looked(verb(*claim, *SAID[what], now=self.now))

    @has_claims
    @rule(passes=PASSES, whats=st.lists(st.sampled_from(GOING_ON), min_size=1, max_size=3))
    def report_that_it_goes_on(self, passes: int, whats: list[str]) -> None:
        self.now += passes
        for what in whats:
            self.say(what, self.claims[-1])

    @has_claims
    @rule(passes=PASSES, what=st.sampled_from(ENDS))
    def report_the_end(self, passes: int, what: str) -> None:
        self.now += passes
        self.say(what, self.claims[-1])

    @precondition(lambda walk: len(walk.claims) > 1)
    @rule(passes=PASSES, ago=st.integers(1, 3), what=st.sampled_from(list(SAID)))
    def report_late(self, passes: int, ago: int, what: str) -> None:
        self.now += passes
        self.say(what, self.claims[max(-1 - ago, -len(self.claims))])

    @has_claims
    @rule(passes=PASSES, looks=st.sampled_from([True, True, False]))
    def sweep(self, passes: int, looks: bool) -> None:
        """Write by what is stuck now, or by what was some time ago."""
        self.now += passes
        self.seen = list(self.store.stuck(now=self.now)) or self.seen if looks else self.seen
        for seen in self.seen[:1]:
            verb = self.store.requeue if seen.attempts_left else self.store.exhaust
            self.looked(verb(seen.id, seen.attempt, now=self.now))

    @has_jobs
    @rule(passes=PASSES, ago=AGO)
    def cancel(self, passes: int, ago: int) -> None:
        self.now += passes
        reply = self.store.cancel(self.ids[-1 - ago % len(self.ids)], now=self.now)
        self.looked(reply)
        assert reply.state is None or reply.state in TERMINAL or reply.cancel_requested

    @has_jobs
    @rule(passes=PASSES, restart=st.booleans())
    def keep_house(self, passes: int, restart: bool) -> None:
        """A restart or a purge, neither of which changes what anybody sees."""
        self.now += passes
        seen = {id: self.store.get(id, now=self.now) for id in self.watch.rows}
        self.store.start_server() if restart else self.store.purge(now=self.now)
        assert {id: self.store.get(id, now=self.now) for id in seen} == seen
        self.looked()


def test_no_order_of_steps_breaks_a_promise() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=100, stateful_step_count=60))


@pytest.mark.long
def test_no_order_of_many_more_steps_breaks_a_promise() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=300, stateful_step_count=100))
