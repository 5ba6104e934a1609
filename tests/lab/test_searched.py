"""Is what a search saw told as it was seen?"""

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.lab.exercises.judges import lacks
from jobslab.lab.explore import Exploration, UnknownProperty, count, explore
from jobslab.lab.properties import LIVE, NAMES
from jobslab.lab.searched import (
    ANSWERED_FOR,
    AS_THEY_ARE,
    flags_for,
    how_often,
    joined,
    picture,
    seen,
    smallest,
    within,
)
from jobslab.lab.trial import run
from jobslab.lab.verdicts import violated
from jobslab.lab.world import Bounds

UNFENCED = "all but attempt_fencing"
SMALL = Bounds(sweepers=1, under_way=0)


@pytest.fixture(scope="module")
def one_off() -> list[Exploration]:
    """The full contract, and those with one flag off."""
    contracts = [Contract(), *(Contract().without(flag) for flag in FLAGS)]
    return [explore(contract, SMALL, names=NAMES) for contract in contracts]


def test_what_was_found_is_a_line_a_promise(one_off: list[Exploration]) -> None:
    told = seen(one_off[-1])
    assert [*told.index] == [*NAMES]
    assert told.loc[LIVE].tolist() == ["broken in 9 steps"]
    assert [*told.columns] == [f"{one_off[-1].states:,} states, {one_off[-1].steps:,} steps"]


def test_how_often_is_what_was_counted() -> None:
    told = how_often("live claim", 5, UNFENCED, "all but conditional_updates", "all")
    broken, total = count(Contract.parse("all but conditional_updates"), LIVE, 5, Bounds())
    assert told["that break it"].tolist() == ["0", f"{broken:,}", "0"]
    assert told["schedules of 5 steps"].tolist()[1] == f"{total:,}"
    assert 0 < broken < total


def test_the_smallest_are_runs_that_break_what_they_are_said_to(one_off: list[Exploration]) -> None:
    blocks = [block.split("\n", 1) for block in str(smallest(one_off)).split("\n\n")]
    told = [(*head.split(", ")[:2], schedule) for head, schedule in blocks]
    assert {flag for flag, _, _ in told} == {f"{flag} off" for flag in FLAGS}
    assert {promise for _, promise, _ in told} == {*ANSWERED_FOR}
    for flag, promise, schedule in told:
        assert promise in violated(run(schedule, f"all but {flag.removesuffix(' off')}"))
        assert violated(run(schedule, "all")) == []


def test_a_smaller_world_hides_what_a_larger_one_shows() -> None:
    told = within("live claim", UNFENCED, "attempts=1", "")
    assert told["found"].tolist() == ["holds", "broken in 9 steps"]
    assert told["all seen"].tolist() == ["yes", "yes"]
    assert [*told.index] == ["attempts=1", AS_THEY_ARE]


def test_searches_in_several_worlds_are_one_and_find_what_one_search_finds(one_off: list[Exploration]) -> None:
    contracts = [each.contract for each in one_off]
    again = [explore(contract, Bounds(workers=1, sweepers=0, cancels=0), names=NAMES[:1]) for contract in contracts]
    once = [explore(contract, SMALL._replace(sends=1), names=NAMES[1:]) for contract in contracts]
    for alone, each, *parts in zip(one_off, joined(again, once), again, once):
        assert {name: str(one) for name, one in each.findings.items()} == {
            name: str(one) for name, one in alone.findings.items()
        }
        assert each.contract == alone.contract
        assert each.states == sum(part.states for part in parts)


def test_the_picture_says_what_it_is_before_it_says_more(one_off: list[Exploration]) -> None:
    drawn = picture(one_off)
    assert drawn.text.splitlines()[0] == drawn.alt


def test_which_flags_are_enough(one_off: list[Exploration]) -> None:
    """Of these six contracts; of all 32 the explorer's own tests tell."""
    assert flags_for("accepted job is kept", one_off) == "persistence"
    with pytest.raises(UnknownProperty):
        flags_for("once", one_off)


def test_a_schedule_that_was_found_lacks_the_flag_that_was_off(one_off: list[Exploration]) -> None:
    schedule = one_off[-1].broken[LIVE].schedule
    judge = lacks(schedule, LIVE, {"a": "leases", "b": "attempt_fencing"})
    assert [judge(letter).outcome for letter in "ab"] == ["wrong", "right"]
