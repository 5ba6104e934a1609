"""What does each flag answer for?  With just that flag off a promise breaks in a scenario, and with all on it holds."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.job import TERMINAL
from jobslab.lab.running import ACCEPTED, Row
from jobslab.lab.scenarios import play, scenario

REPORTS = ("renew", "progress", "succeed", "fail", "retry", "stop")


def landed(row: Row, *verbs: str) -> bool:
    return row.verb.removesuffix(" late") in verbs and row.outcome == ACCEPTED


def one_job_per_intent(rows: list[Row]) -> bool:
    intents = sum(row.verb == "submit" for row in rows)
    return len(rows[-1].jobs) == intents


def an_accepted_job_is_kept(rows: list[Row]) -> bool:
    accepted = {row.job for row in rows if landed(row, "submit", "submit again")}
    return accepted <= {job.id for job in rows[-1].jobs}


def every_accepted_job_reaches_a_terminal_state(rows: list[Row]) -> bool:
    return all(job.state in TERMINAL for job in rows[-1].jobs)


def one_live_claim_per_job(rows: list[Row]) -> bool:
    """No claim lands on a job while the lease of another's is not over."""
    return not any(
        landed(row, "claim", "claim next") and was.state == "RUNNING" and (was.lease_until or 0) > row.at
        for before, row in pairwise(rows)
        for was in before.jobs
        if was.id == row.job
    )


def a_terminal_state_is_final(rows: list[Row]) -> bool:
    now = [{job.id: job.state for job in row.jobs} for row in rows]
    return all(
        after.get(id) == state for before, after in pairwise(now) for id, state in before.items() if state in TERMINAL
    )


def a_sweep_undoes_no_report(rows: list[Row]) -> bool:
    """Once an attempt has told how it ended, that attempt is not requeued or given up."""
    told = {(row.job, row.names): row.n for row in rows if landed(row, "succeed", "fail", "retry", "stop")}
    return not any(landed(row, "requeue", "sweep") and told.get((row.job, row.names), row.n) < row.n for row in rows)


def only_the_current_attempt_counts(rows: list[Row]) -> bool:
    """A report that lands names the attempt that the job is in."""
    attempts = [{job.id: job.attempt for job in row.jobs} for row in rows]
    return all(
        row.names == before.get(row.job or "") for before, row in zip(attempts, rows[1:]) if landed(row, *REPORTS)
    )


WITNESSES = [
    ("idempotency_key", one_job_per_intent, "submit again"),
    ("persistence", an_accepted_job_is_kept, "restart"),
    ("leases", every_accepted_job_reaches_a_terminal_state, "restart"),
    ("conditional_updates", one_live_claim_per_job, "double claim"),
    ("conditional_updates", a_terminal_state_is_final, "late progress"),
    ("conditional_updates", a_sweep_undoes_no_report, "sweeper on a snapshot"),
    ("attempt_fencing", only_the_current_attempt_counts, "stale worker"),
]


def under(contract: Contract, name: str) -> list[Row]:
    shown = scenario(name)
    return play(shown, shown.variants[-1]._replace(contract=contract))


@pytest.mark.parametrize(("flag", "promise", "name"), WITNESSES, ids=lambda value: getattr(value, "__name__", value))
def test_the_promise_breaks_with_just_this_flag_off(flag: str, promise: Callable[[list[Row]], bool], name: str) -> None:
    assert promise(under(Contract(), name))
    assert not promise(under(Contract().without(flag), name))


@pytest.mark.parametrize(("flag", "promise", "name"), WITNESSES, ids=lambda value: getattr(value, "__name__", value))
def test_no_other_flag_breaks_it_there(flag: str, promise: Callable[[list[Row]], bool], name: str) -> None:
    for other in FLAGS:
        if other != flag:
            assert promise(under(Contract().without(other), name)), other


def test_each_flag_has_a_witness() -> None:
    assert {flag for flag, _, _ in WITNESSES} == set(FLAGS)
