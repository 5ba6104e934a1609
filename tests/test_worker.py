"""Does a worker decide and observe by what it believes alone, and does the loop do a job, leave it, or let it fail?"""

import json
import logging
import random
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Any

import pytest

from jobslab import open_store
from jobslab.clock import ManualClock
from jobslab.errors import StoreError
from jobslab.job import Error, Job, Reply, queued
from jobslab.settings import LAB, Settings
from jobslab.stores import Store
from jobslab.worker import (
    News,
    Permanent,
    Request,
    Task,
    Transient,
    Worker,
    decide,
    deliver,
    idle,
    next_news,
    observe,
    perform,
    report,
    retry_wait,
    run,
    step,
    tell,
)
from tests.stores.steps import BROKEN, LEASE

JOB = queued("job-1", "wait", "{}", "lab", None, "", 3, 0, None, None, 0)._replace(state="RUNNING", attempt=2)
IDLE = Worker("A", lease_seconds=7)
WORKING = IDLE._replace(job_id="job-1", attempt=2)
MINE = (("id", "job-1"), ("attempt", 2), ("worker", "A"))


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(settings=LAB) as store:
        yield store


def reply(**changes: Any) -> Reply:
    return Reply(True, None, "RUNNING", 2, False)._replace(**changes)


def refused(rule: str) -> Reply:
    return reply(accepted=False, refused_by=rule)


# decide: a function of the worker


@pytest.mark.parametrize(
    ("worker", "request_"),
    [
        (IDLE, Request("pick", ())),
        (IDLE._replace(in_one=True), Request("claim_next", (("worker", "A"), ("lease_seconds", 7)))),
        (IDLE._replace(picked="job-1"), Request("claim", (("id", "job-1"), ("worker", "A"), ("lease_seconds", 7)))),
        (WORKING, None),
        (WORKING._replace(news=News("renew")), Request("renew", (*MINE, ("lease_seconds", 7)))),
        (
            WORKING._replace(news=News("progress", (("progress", 0.5),))),
            Request("progress", (*MINE, ("progress", 0.5))),
        ),
        (WORKING._replace(news=News("succeed", (("result", 3),))), Request("succeed", (*MINE, ("result", 3)))),
        (WORKING._replace(news=News("fail", (("error", BROKEN),))), Request("fail", (*MINE, ("error", BROKEN)))),
        (WORKING._replace(news=News("stop")), Request("stop", MINE)),
    ],
)
def test_what_a_worker_asks_next_follows_from_what_it_believes(worker: Worker, request_: Request | None) -> None:
    assert decide(worker) == decide(worker) == request_


def test_one_that_was_asked_to_stop_says_that_it_has_instead_of_going_on() -> None:
    asked = WORKING._replace(asked_to_stop=True)
    assert tell(asked, News("progress", (("progress", 0.5),))).news == News("stop")
    assert tell(asked, News("renew")).news == News("stop")
    for last_word in (News("succeed", (("result", 3),)), News("fail"), News("retry")):
        assert tell(asked, last_word).news == last_word
        assert tell(WORKING, last_word).news == last_word
    assert tell(WORKING, News("renew")).news == News("renew")


# observe: a function of the worker, its request and the reply


def after(worker: Worker, answer: Any) -> Worker:
    request = decide(worker)
    assert request is not None
    return observe(worker, request, answer)


def test_what_it_picked_it_will_claim() -> None:
    assert after(IDLE, JOB) == IDLE._replace(picked="job-1")
    assert after(IDLE, None) == IDLE


@pytest.mark.parametrize("asking", [IDLE._replace(picked="job-1"), IDLE._replace(in_one=True)])
def test_a_claim_that_landed_gives_it_the_job_and_one_that_did_not_nothing(asking: Worker) -> None:
    free = asking._replace(picked=None)
    assert after(asking, reply(job=JOB)) == free._replace(job_id="job-1", attempt=2)
    assert after(asking, refused("still_claimable")) == free
    assert after(free._replace(in_one=True), None) == free._replace(in_one=True)


@pytest.mark.parametrize("verb", ["renew", "progress"])
def test_a_worker_whose_report_counted_goes_on(verb: str) -> None:
    told = WORKING._replace(news=News(verb))
    assert after(told, reply()) == WORKING
    assert after(told, reply(cancel_requested=True)) == WORKING._replace(asked_to_stop=True)


@pytest.mark.parametrize("verb", ["succeed", "fail", "retry", "stop"])
def test_a_worker_that_had_the_last_word_is_idle(verb: str) -> None:
    assert after(WORKING._replace(news=News(verb)), reply()) == IDLE


@pytest.mark.parametrize("verb", ["renew", "progress", "succeed", "fail", "retry", "stop"])
@pytest.mark.parametrize("rule", ["unfinished", "current", "no such job"])
def test_a_worker_whose_report_is_refused_lets_go_of_the_job(verb: str, rule: str) -> None:
    assert after(WORKING._replace(news=News(verb), asked_to_stop=True), refused(rule)) == IDLE


def test_a_retry_without_attempts_left_becomes_the_failure() -> None:
    told = WORKING._replace(news=News("retry", (("error", BROKEN), ("wait_seconds", 3))))
    assert after(told, refused("attempts_left")) == WORKING._replace(news=News("fail", (("error", BROKEN),)))


def test_an_answer_to_a_report_of_an_earlier_attempt_changes_nothing() -> None:
    late = decide(WORKING._replace(news=News("succeed", (("result", 3),))))
    for now in (WORKING._replace(attempt=3), WORKING._replace(job_id="job-2"), IDLE):
        assert observe(now, late, reply()) == now


# The three together


def test_a_job_from_pick_to_success_by_single_steps(store: Store) -> None:
    store.submit("job-1", "wait", {}, now=0)
    worker = step(store, step(store, Worker("A"), now=0), now=0)
    assert worker == Worker("A", job_id="job-1", attempt=1)
    assert step(store, worker, now=1) == worker
    worker = step(store, tell(worker, News("progress", (("progress", 0.5),))), now=2)
    assert step(store, tell(worker, News("succeed", (("result", {"rows": 3}),))), now=3) == Worker("A")
    assert store.rows()[0].result == '{"rows": 3}'
    assert [(event.verb, event.at) for event in store.events()] == [
        ("submit", 0),
        ("claim", 0),
        ("progress", 2),
        ("succeed", 3),
    ]


def test_a_report_may_be_delivered_late_and_twice(store: Store) -> None:
    store.submit("job-1", "wait", {}, now=0)
    worker = step(store, Worker("A", in_one=True), now=0)
    request = decide(tell(worker, News("succeed", (("result", 3),))))
    assert [deliver(store, request, now).accepted for now in (5, 6)] == [True, False]


@pytest.mark.parametrize(("max_attempts", "states"), [(1, ["FAILED"]), (2, ["QUEUED", "FAILED"])])
def test_a_try_that_failed_is_tried_again_and_fails_when_no_attempts_are_left(
    store: Store, max_attempts: int, states: list[str]
) -> None:
    store.submit("job-1", "wait", {}, max_attempts=max_attempts)
    seen = []
    for _ in states:
        worker = step(store, Worker("A", in_one=True))
        assert report(store, worker, News("retry", (("error", BROKEN),))) == Worker("A", in_one=True)
        seen.append(store.rows()[0].state)
    assert seen == states
    assert json.loads(store.rows()[0].error) == BROKEN._asdict()


# What a task has to tell


def told_by(task: Callable[[], Generator[float, None, Any]]) -> News:
    return next_news(task(), lambda: 7)


def failing(wrong: Exception) -> Callable[[], Generator[float, None, Any]]:
    def task() -> Generator[float, None, Any]:
        raise wrong
        yield 0

    return task


def yielding(progress: Any) -> Callable[[], Generator[Any, None, Any]]:
    def task() -> Generator[Any, None, Any]:
        yield progress

    return task


def returning(result: Any) -> Callable[[], Generator[float, None, Any]]:
    def task() -> Generator[float, None, Any]:
        return result
        yield 0

    return task


INTERNAL = News("fail", (("error", Error("internal error", "the task ended in an error that it does not name")),))


def test_a_chunk_tells_its_progress_which_is_never_the_whole() -> None:
    assert told_by(yielding(0.5)) == News("progress", (("progress", 0.5),))
    assert told_by(yielding(0)) == News("progress", (("progress", 0),))
    assert told_by(yielding(1)).arguments[0][1] < 1


def test_a_task_that_returns_has_succeeded() -> None:
    assert told_by(returning({"rows": 3})) == News("succeed", (("result", {"rows": 3}),))
    assert told_by(returning(None)) == News("succeed", (("result", None),))


def test_an_error_that_the_task_names_is_told_as_it_is() -> None:
    error = Error("broken", "it broke")
    assert told_by(failing(Permanent(*error))) == News("fail", (("error", error),))
    assert told_by(failing(Transient(*error))) == News("retry", (("error", error), ("wait_seconds", 7)))


@pytest.mark.parametrize(
    "task",
    [
        failing(ZeroDivisionError("secret")),
        failing(StopIteration("secret")),
        yielding(-0.1),
        yielding(1.5),
        yielding(float("nan")),
        yielding("half"),
        yielding(None),
        returning({1, 2}),
        returning(float("nan")),
    ],
)
def test_an_error_that_it_does_not_name_is_called_internal_and_logged(
    task: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL, "jobslab.worker"):
        assert told_by(task) == INTERNAL
    with caplog.at_level(logging.ERROR, "jobslab.worker"):
        told_by(task)
    assert [record.exc_info is not None for record in caplog.records] == [True]


# perform: one claimed job


class Calls(list[str]):
    """What happened to a task: a line for each chunk, and one when it was closed."""

    def task(self, chunks: int, between: Callable[[int], Any] = lambda chunk: None, result: Any = "done") -> Task:
        def task(job: Job) -> Generator[float, None, Any]:
            try:
                for chunk in range(chunks):
                    between(chunk)
                    self.append(f"chunk {chunk}")
                    yield chunk / chunks
                return result
            finally:
                self.append("closed")

        return task


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def work(store: Store, clock: ManualClock) -> Callable[[Task], Worker]:
    """Submits job-1, claims it as A and performs it with this task."""

    def work(task: Task) -> Worker:
        store.submit("job-1", "wait", {})
        claimed = step(store, Worker("A", in_one=True))
        return perform(store, claimed, store.rows()[0], task, clock, random.Random(1))

    return work


def verbs(store: Store) -> list[str]:
    return [event.verb for event in store.events()][2:]  # after submit and claim


def test_a_task_is_carried_out_and_its_result_written(
    store: Store, work: Callable[[Task], Worker], calls: Calls
) -> None:
    assert work(calls.task(2)) == Worker("A", in_one=True)
    assert calls == ["chunk 0", "chunk 1", "closed"]
    assert verbs(store) == ["progress", "progress", "succeed"]
    assert (store.rows()[0].state, store.rows()[0].result) == ("SUCCEEDED", '"done"')


def test_a_lost_lease_ends_the_task_at_its_next_report_and_its_result_is_not_written(
    store: Store, work: Callable[[Task], Worker], calls: Calls
) -> None:
    def lose(chunk: int) -> None:
        if chunk == 1:
            (row,) = store.rows()
            store.requeue("job-1", 1, now=row.lease_until)
            store.claim("job-1", "B", now=row.lease_until)

    assert work(calls.task(5, lose)) == Worker("A", in_one=True)
    assert calls == ["chunk 0", "chunk 1", "closed"]
    (row,) = store.rows()
    assert (row.state, row.worker, row.attempt, row.result) == ("RUNNING", "B", 2, None)
    assert store.events()[-1][4:8] == ("progress", 1, 0, "current")


def test_a_result_of_a_lost_lease_is_refused(store: Store, work: Callable[[Task], Worker], calls: Calls) -> None:
    def task(job: Job) -> Generator[float, None, Any]:
        yield 0.5
        store.requeue("job-1", 1, now=store.rows()[0].lease_until)
        return "late"

    assert work(task) == Worker("A", in_one=True)
    assert (store.rows()[0].state, store.rows()[0].result) == ("QUEUED", None)


def test_asked_to_stop_the_task_is_closed_and_the_job_cancelled(
    store: Store, work: Callable[[Task], Worker], calls: Calls
) -> None:
    work(calls.task(5, lambda chunk: chunk == 1 and store.cancel("job-1")))
    assert calls == ["chunk 0", "chunk 1", "closed"]
    assert store.rows()[0].state == "CANCELLED"
    assert verbs(store) == ["progress", "cancel", "ask_to_stop", "progress", "stop"]


def test_a_traceback_stays_in_the_log(
    store: Store, work: Callable[[Task], Worker], caplog: pytest.LogCaptureFixture
) -> None:
    def task(job: Job) -> Generator[float, None, Any]:
        yield 0.1
        raise ValueError("a secret of the task")

    work(task)
    (row,) = store.rows()
    assert (row.state, json.loads(row.error)["type"]) == ("FAILED", "internal error")
    assert not any(word in str(row) for word in ("secret", "Traceback", "ValueError"))
    assert "a secret of the task" in caplog.text


def test_what_is_no_task_at_all_fails_the_job(store: Store, work: Callable[[Task], Worker]) -> None:
    work(lambda job: 1 / 0)
    assert json.loads(store.rows()[0].error)["type"] == "internal error"


def test_the_task_is_closed_when_the_store_fails(
    store: Store, work: Callable[[Task], Worker], calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Reply:
        raise StoreError("the store is gone")

    monkeypatch.setattr(store, "progress", fail)
    with pytest.raises(StoreError) as error:  # which keeps the frames: no garbage collector closes it instead
        work(calls.task(5))
    assert calls == ["chunk 0", "closed"]
    assert error.value.args == ("the store is gone",)


def test_a_lease_is_renewed_when_a_third_of_it_has_passed(
    store: Store, work: Callable[[Task], Worker], calls: Calls, clock: ManualClock
) -> None:
    work(calls.task(8, lambda chunk: clock.advance(2)))
    assert verbs(store) == [*["progress", "progress", "renew"] * 4, "succeed"]


# The wait before the next attempt


def test_the_wait_before_a_retry_is_full_jitter_from_zero_to_a_growing_cap() -> None:
    settings = Settings(retry_base_seconds=1, retry_cap_seconds=60)
    for attempt, most in {1: 2, 2: 4, 5: 32, 6: 60, 900: 60}.items():
        waits = [retry_wait(settings, attempt, random.Random(seed)) for seed in range(500)]
        assert 0 <= min(waits) < most / 20
        assert most * 19 / 20 < max(waits) <= most
        assert abs(sum(waits) / len(waits) - most / 2) < most / 20


def test_in_lab_time_a_retry_does_not_wait() -> None:
    assert retry_wait(LAB, 3, random.Random(1)) == 0


# run: the loop


def test_run_does_job_after_job_and_yields_each(store: Store, clock: ManualClock, calls: Calls) -> None:
    for n in (1, 2, 3):
        store.submit(f"job-{n}", "wait", {})
    done = [job.id for job in run(store, "A", {"wait": calls.task(1)}, stop=lambda: store.waiting() == 0, clock=clock)]
    assert done == ["job-1", "job-2", "job-3"]
    assert {(job.state, job.worker) for job in store.rows()} == {("SUCCEEDED", "A")}


def test_run_sweeps_at_a_third_of_the_lease_and_polls_in_between(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept, asked = [], []
    monkeypatch.setattr("jobslab.worker.sweep", lambda store, name: swept.append((name, clock.now())))
    monkeypatch.setattr(store, "claim_next", lambda *_, **__: asked.append(clock.now()))
    assert list(run(store, "A", {}, stop=lambda: clock.now() > LEASE, clock=clock)) == []
    poll, third = LAB.poll_seconds, LEASE / 3
    assert asked == [n * poll for n in range(int(LEASE / poll) + 1)]
    assert {name for name, _ in swept} == {"A"}
    assert len(swept) == 3
    assert all(third <= later - before < third + poll for (_, before), (_, later) in pairwise(swept))


def test_run_gives_the_job_of_a_dead_worker_another_attempt(store: Store, clock: ManualClock, calls: Calls) -> None:
    store.submit("job-1", "wait", {}, now=0)
    store.claim("job-1", "dead", now=0)
    assert [
        job.attempt for job in run(store, "A", {"wait": calls.task(1)}, stop=lambda: "closed" in calls, clock=clock)
    ] == [2]


def test_a_kind_that_this_worker_lacks_is_left_to_others(store: Store, clock: ManualClock) -> None:
    store.submit("job-1", "wait", {})
    next(run(store, "A", {}, stop=lambda: False, clock=clock))
    (row,) = store.rows()
    assert (row.state, json.loads(row.error)["type"]) == ("QUEUED", "unknown kind")


def test_a_worker_that_is_told_to_stop_claims_nothing(store: Store, clock: ManualClock) -> None:
    store.submit("job-1", "wait", {})
    assert list(run(store, "A", {}, stop=lambda: True, clock=clock)) == []
    assert store.rows()[0].state == "QUEUED"


def test_an_idle_worker_keeps_its_name_its_lease_and_its_ways() -> None:
    assert idle(WORKING._replace(in_one=True, asked_to_stop=True)) == Worker("A", 7, True)
