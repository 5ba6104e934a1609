"""Does "fails in k of n schedules" say what the explorer counted, and is the shortest schedule run?"""

import re

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.errors import UnknownFlag
from jobslab.lab.explore import NoSuchSchedule, UnknownProperty, count
from jobslab.lab.odds import FEW, counted, fails, shortest
from jobslab.lab.properties import CEILING, DEADLINE, ENDS, NAMES
from jobslab.lab.searched import how_often
from jobslab.lab.verdicts import violated

MANY = 10  # steps: enough for each promise that can be counted, but for the ceiling of attempts


def test_it_says_in_how_many_schedules_a_promise_breaks_and_that_the_full_contract_keeps_it() -> None:
    seen, total = count(Contract().without("conditional_updates"), "one live claim per job", 8, FEW)
    assert 0 < seen < total
    first, broken, kept = str(fails("live claim", "all but conditional_updates", "all")).splitlines()
    assert first == "one live claim per job, in all schedules of 8 steps:"
    assert broken == (
        f"  all but conditional_updates  fails in {seen} of {total}; a shortest one that breaks it has 5 steps"
    )
    assert re.fullmatch(r"  all  +fails in 0 of \d+; holds in every order of events \(\d+ states\)", kept)


def test_a_promise_about_the_end_is_not_counted() -> None:
    said = str(fails("reaches", "all but leases"))
    assert "not counted, since a schedule that stops proves nothing; a shortest one that breaks it has 4 steps" in said


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (ENDS, DEADLINE, CEILING)])
def test_every_other_promise_fails_in_some_schedule_without_some_flag(name: str) -> None:
    assert any(not counted(name, Contract().without(flag), MANY).startswith("fails in 0 of") for flag in FLAGS)
    assert counted(name, Contract(), MANY).startswith("fails in 0 of")


def test_the_shortest_schedule_is_run_and_breaks_the_promise() -> None:
    trial = shortest("live claim", "all but conditional_updates")
    assert len(trial.rows) == 5
    assert "one live claim per job" in violated(trial)


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownProperty, match="there is no promise 'exactly once'"):
        fails("exactly once", "all")
    with pytest.raises(UnknownFlag):
        fails("live claim", "all but lease")
    with pytest.raises(NoSuchSchedule, match="breaks 'one live claim per job' under the contract .all.: holds"):
        shortest("live claim", "all")
    with pytest.raises(NoSuchSchedule, match="a schedule that stops proves nothing"):
        how_often("every accepted", 3, "all")


def test_without_a_contract_the_full_one_is_asked() -> None:
    assert str(fails("live claim", steps=3)) == str(fails("live claim", "all", steps=3))
