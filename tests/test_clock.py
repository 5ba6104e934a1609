"""Does lab time stand still until somebody advances it, and does no id come twice?"""

import re
import time

import pytest

from jobslab.clock import ManualClock, SystemClock, counted, unguessable


def test_lab_time_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock(5)
    assert (clock.now(), clock.now(), clock.elapsed()) == (5, 5, 5)
    clock.advance(2.5)
    assert (clock.now(), clock.elapsed()) == (7.5, 7.5)


def test_sleeping_in_lab_time_is_advancing() -> None:
    clock = ManualClock()
    clock.sleep(3)
    assert clock.now() == 3


def test_lab_time_does_not_run_backwards() -> None:
    clock = ManualClock(5)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
    assert clock.now() == 5


def test_the_machines_time_is_the_machines() -> None:
    clock = SystemClock()
    before, now, after = time.time(), clock.now(), time.time()
    assert before <= now <= after
    before, elapsed, after = time.monotonic(), clock.elapsed(), time.monotonic()
    assert before <= elapsed <= after


def test_the_machine_sleeps_at_least_as_long_as_it_is_told() -> None:
    clock = SystemClock()
    before = clock.elapsed()
    clock.sleep(0.01)
    assert clock.elapsed() - before >= 0.01


def test_an_id_of_the_service_is_128_random_bits() -> None:
    ids = {unguessable() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)
    assert len({id[0] for id in ids}) == len({id[-1] for id in ids}) == 16


def test_an_id_of_the_lab_is_counted() -> None:
    new = counted()
    assert [new(), new(), new()] == ["job-1", "job-2", "job-3"]


@pytest.mark.parametrize(
    ("taken", "first"),
    [
        ([], "job-1"),
        (["job-7", "job-3"], "job-8"),
        (["job-9", "job-10"], "job-11"),
        (["task-4", "job-x", "x"], "job-1"),
    ],
)
def test_counting_goes_on_after_the_highest_id_that_is_taken(taken: list[str], first: str) -> None:
    assert counted(taken)() == first


def test_what_is_counted_has_a_name_of_its_own() -> None:
    assert counted(["order-2", "job-9"], prefix="order")() == "order-3"
