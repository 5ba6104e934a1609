"""Are the holes of a submit in several transactions where the lab says, and is the engine's own without one?"""

import pytest

from jobslab.lab.naive import WAYS, all_crashes, crash, crashes, every_race, race, races


def breaks(way: str) -> dict[str, str]:
    return {crash.after: crash.breaks for crash in all_crashes() if crash.way == way}


def test_a_crash_between_job_and_key_makes_a_second_job() -> None:
    assert breaks("job, then key") == {
        "looks for the key": "",
        "makes the job": "one job per intent",
        "keeps the key": "",
    }


def test_a_crash_between_key_and_job_loses_the_job_and_answers_with_its_id() -> None:
    assert breaks("key, then job") == {
        "looks for the key": "",
        "keeps the key": "an accepted job is kept",
        "makes the job": "",
    }
    found = crash("key, then job", 2)
    assert found is not None
    assert (found.told, found.jobs) == ("job-1", ())


def test_one_statement_has_no_place_to_crash_in() -> None:
    assert breaks("one statement") == {"makes the job with its key": ""}
    assert crash("one statement", 2) is None


@pytest.mark.parametrize(
    ("way", "bad", "orders"), [("job, then key", 18, 20), ("key, then job", 0, 12), ("one statement", 0, 2)]
)
def test_so_many_orders_of_two_requests_make_two_jobs(way: str, bad: int, orders: int) -> None:
    all_of_them = list(every_race(way))
    assert len({race.order for race in all_of_them}) == len(all_of_them) == orders
    assert sum(len(race.jobs) > 1 for race in all_of_them) == bad
    assert all(race.jobs for race in all_of_them)


def test_a_request_that_comes_after_the_other_has_kept_the_key_finds_its_job() -> None:
    assert race("job, then key", (0, 0, 0, 1)).jobs == ("job-1",)
    assert race("job, then key", (0, 0, 1, 0, 1)).jobs == ("job-1", "job-2")


def test_without_the_rule_one_statement_makes_two_jobs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    off = WAYS["one statement"]._replace(contract=WAYS["job, then key"].contract)
    monkeypatch.setitem(WAYS, "one statement", off)
    assert breaks("one statement") == {"makes the job with its key": "one job per intent"}


def test_the_tables_have_a_line_for_every_crash_and_every_way() -> None:
    assert crashes()["this breaks"].tolist().count("nothing") == 5
    assert races()["orders with two jobs"].tolist() == ["18 of 20", "0 of 12", "0 of 2"]
