"""Is a job that is done twice done twice by the engine's own rules, and does the fault really happen?"""

import pytest

from jobslab.job import Job
from jobslab.lab.again import Crash, Fault, NotReached, Work, done
from jobslab.worker import Permanent

came: list[str] = []


def two_points(job: Job) -> Work:
    came.append(f"{job.attempt} begins")
    yield "one"
    came.append(f"{job.attempt} between")
    yield "two"
    came.append(f"{job.attempt} ends")
    return job.attempt


def told(work, fault: Fault = Fault()) -> list[tuple[str, str, str]]:
    came.clear()
    return [(line.who, line.does, line.state) for line in done(work, fault, lambda: {"came": str(len(came))}).lines]


def test_without_a_fault_there_is_one_worker() -> None:
    assert told(two_points) == [
        ("A", "takes it, attempt 1", "RUNNING"),
        ("A", "one", "RUNNING"),
        ("A", "two", "RUNNING"),
        ("A", "reports success", "SUCCEEDED"),
    ]


def test_nothing_after_the_point_of_a_crash_runs_and_a_second_worker_does_all_of_it() -> None:
    lines = told(two_points, Fault("crash", "one"))
    assert came == ["1 begins", "2 begins", "2 between", "2 ends"]
    assert lines[1:3] == [("A", "one: is gone", "RUNNING"), ("B", "takes it, attempt 2", "RUNNING")]
    assert lines[-1] == ("B", "reports success", "SUCCEEDED")


def test_a_slow_worker_goes_on_when_the_second_has_done_everything_and_its_report_is_refused() -> None:
    lines = told(two_points, Fault("slow", "one"))
    assert came == ["1 begins", "2 begins", "2 between", "2 ends", "1 between", "1 ends"]
    assert lines[1] == ("A", "one: stands still", "RUNNING")
    assert lines[-2:] == [("A", "wakes, two", "SUCCEEDED"), ("A", "reports success, refused: unfinished", "SUCCEEDED")]


def test_a_crash_inside_of_a_step_is_seen_by_no_handler_of_exceptions() -> None:
    def crashes(job: Job) -> Work:
        yield "one"
        try:
            if job.attempt == 1:
                raise Crash
        except Exception:
            came.append("handled")

    assert told(crashes, Fault("crash", "in it"))[2] == ("A", "in it: is gone", "RUNNING")
    assert came == []


def test_a_failure_for_good_is_reported_as_one() -> None:
    def fails(job: Job) -> Work:
        yield "one"
        raise Permanent("declined", "it is too much")

    assert told(fails)[-1] == ("A", "reports failure", "FAILED")
    assert told(fails, Fault("crash", "one"))[-1] == ("B", "reports failure", "FAILED")


def test_a_fault_that_did_not_happen_is_no_story() -> None:
    with pytest.raises(NotReached, match="the work has no point 'three'"):
        told(two_points, Fault("crash", "three"))


def test_a_story_shows_what_was_looked_at_at_each_point() -> None:
    came.clear()
    story = done(two_points, Fault(), lambda: {"came": str(len(came))})
    assert list(story.frame()["came"]) == ["0", "1", "2", "3"]
    assert story.seen == {"came": "3"}
    assert story.state == "SUCCEEDED"
