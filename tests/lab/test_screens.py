"""Does the screen that reads the state tell the user no lie, and the one that trusts HTTP's code tell its own?"""

import pytest

from jobslab.client import Answer
from jobslab.job import State
from jobslab.lab.screens import READY, SAYS, WORKING, by_code, by_state, screens

FAILS = 'A claims next / A fails error="source table missing"'


def test_by_code_says_ready_while_the_job_waits_runs_and_has_failed() -> None:
    table = screens(FAILS, by_code, by_state, table="nowhere")
    assert table["HTTP"].tolist() == ["202", "200", "200"]
    assert table["the job"].tolist() == ["QUEUED", "RUNNING", "FAILED: source table missing"]
    assert table["by_code"].tolist() == [READY] * 3
    assert table["by_state"].tolist()[-1] == "Your export failed: source table missing."


@pytest.mark.parametrize(
    ("work", "says"),
    [
        ("A claims next / A succeeds", READY),
        ("A claims next / A retries", SAYS["QUEUED"]),
        ("A claims next / A crashes", WORKING),
        ("client cancels job-1", SAYS["CANCELLED"]),
    ],
)
def test_by_state_says_ready_only_after_success(work: str, says: str) -> None:
    told = screens(work, by_state)["by_state"].tolist()
    assert told[-1] == says
    assert READY not in told[:-1]


def test_a_state_that_is_new_and_a_status_that_can_t_be_read_are_no_end() -> None:
    assert by_state(Answer(200, {}, {"state": "PAUSED"})) == WORKING
    assert by_state(Answer(503, {}, {"type": "/problems/store-unavailable"})) == WORKING


def test_every_state_has_its_words() -> None:
    assert {by_state(Answer(200, {}, {"state": state})) for state in State} >= {SAYS["QUEUED"], WORKING, READY}
    assert set(SAYS) < set(State)
