"""Do the four doors let in whom they should, and tell a stranger what they should?"""

import pytest

from jobslab.lab.doors import DOORS, SECRET, TRIES, doors, knocks, number, shifted

HERS = ["her id, which stood in a log", "the result behind that id", "a cancel of her other job"]
TOLD_APART, COUNTS = "can he tell hers from nobody's?", "how many jobs do others make?"


def test_counted_ids_are_guessed_where_nobody_is_asked() -> None:
    told = knocks("counted ids")
    assert told["the id after his own"] == "200 SUCCEEDED"
    assert told["the result behind that id"] == f"200 {SECRET}"


def test_random_ids_are_not_guessed_and_are_no_permission() -> None:
    told = knocks("random ids")
    assert told["the id after his own"] == "404 no-such-job"
    assert [told[what] for what in HERS] == ["200 SUCCEEDED", f"200 {SECRET}", "200 CANCELLED"]


@pytest.mark.parametrize("door", ["counted ids, owners", "random ids, owners"])
def test_an_owners_job_is_to_a_stranger_as_if_it_were_not_there(door: str) -> None:
    told = knocks(door)
    assert {told[what] for what in (*HERS, "the id after his own", "an id of nobody's")} == {"404 no-such-job"}
    assert told[TOLD_APART] == "no: alike to the byte"


@pytest.mark.parametrize("door", DOORS)
def test_at_every_door_he_has_his_own_job_and_finds_nothing_where_nothing_is(door: str) -> None:
    told = knocks(door)
    assert told["his own job"] == "200 QUEUED"
    assert told["an id of nobody's"] == "404 no-such-job"
    assert told[COUNTS] == ("2 jobs" if door.startswith("counted") else "he can't tell")


def test_ids_are_numbers_and_the_next_one_looks_alike() -> None:
    assert (number("job-17"), number("00ff")) == (17, 255)
    assert (shifted("job-9", 1), shifted("f" * 32, 1)) == ("job-10", "0" * 32)


def test_the_table_is_the_same_whenever_it_is_made() -> None:
    table = doors(*DOORS)
    assert table.equals(doors(*DOORS))
    assert [*table.index] == [*TRIES]
