"""What is lost when a broker stands beside the table, and does the outbox keep it?  On a real broker."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jobslab import open_store
from jobslab.cli import main
from jobslab.clock import counted
from jobslab.errors import BadNumber, StoreError
from jobslab.job import Error, Job
from jobslab.lab import backlog, outbox, queueing, storm
from jobslab.lab.again import NotReached
from jobslab.lab.broker import Broker, Limits, NoBroker, NotConfirmed, a_broker
from jobslab.lab.charts import bars
from jobslab.lab.outbox import carried_out, consume, relay, with_outbox
from jobslab.lab.queueing import KEY, LATE, Scene, UnknownWay, bury
from jobslab.settings import LAB
from jobslab.stores import Store
from jobslab.stores.schema import SCHEMA_VERSION
from jobslab.sweeper import sweep
from tests.broker import needs_broker

DONE, LOST = "SUCCEEDED, done once", "QUEUED, done 0 times"


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(settings=LAB) as store:
        yield with_outbox(store)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with a_broker() as broker:
        yield broker


@pytest.fixture
def scene(broker: Broker) -> Iterator[Scene]:
    scene = Scene(broker, has_outbox=True)
    with closing(scene.store):
        yield scene


def told_of(store: Store) -> list[tuple[str, float]]:
    return [(line.job, line.due) for line in outbox.outbox(store)]


# The outbox: a line in the transaction of whatever makes a job QUEUED


def test_a_submit_writes_its_line_and_a_repeated_submit_writes_none(store: Store) -> None:
    for id in ("job-1", "job-2"):
        store.submit(id, "export", {"table": "x"}, key="k1", now=0)
    assert told_of(store) == [("job-1", 0)]


def test_the_row_and_its_line_are_one_transaction(store: Store) -> None:
    two = ({"id": id, "kind": "export", "params": {}, "run_at": at} for id, at in (("job-1", 0), ("job-2", -1)))
    with pytest.raises(BadNumber):
        store.submit_many(two, now=0)
    assert (store.rows(), told_of(store)) == ((), [])


def test_where_the_line_cannot_be_written_the_job_is_not_accepted(store: Store) -> None:
    with store.database.write() as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT RAISE(FAIL, 'full'); END")
    with pytest.raises(Exception, match="full"):
        store.submit("job-1", "export", {"table": "x"}, now=0)
    assert store.rows() == ()


@needs_broker
def test_a_retry_writes_a_line_that_is_due_after_its_wait_and_the_relay_waits_for_it(
    store: Store, broker: Broker
) -> None:
    store.submit("job-1", "export", {"table": "x"}, now=0)
    carried_out(relay(store, broker, 0))
    store.claim("job-1", "A", now=0)
    store.retry("job-1", 1, "A", Error("busy", "try later"), wait_seconds=4, now=1)
    assert told_of(store) == [("job-1", 5)]
    assert [carried_out(relay(store, broker, now)) for now in (4.9, 5, 6)] == [0, 1, 0]
    assert broker.messages() == 2


def test_a_sweeper_that_gives_a_job_back_writes_a_line_and_one_that_gives_it_up_writes_none(store: Store) -> None:
    store.submit("job-1", "export", {"table": "x"}, max_attempts=2, now=0)
    for claimed in (0, 20):
        store.claim("job-1", "A", now=claimed)
        sweep(store, now=claimed + LATE)
    assert [row.state for row in store.rows()] == ["FAILED"]
    assert told_of(store) == [("job-1", 0), ("job-1", 0)]


def test_nothing_else_that_happens_to_a_job_writes_a_line(store: Store) -> None:
    store.submit("job-1", "export", {"table": "x"}, now=0)
    store.claim("job-1", "A", now=0)
    store.renew("job-1", 1, "A", now=1)
    store.progress("job-1", 1, "A", 0.5, now=1)
    store.succeed("job-1", 1, "A", now=1)
    store.submit("job-2", "export", {"table": "x"}, now=0)
    store.cancel("job-2", now=1)
    assert told_of(store) == [("job-1", 0), ("job-2", 0)]


def test_an_outbox_is_made_once_and_the_store_is_what_it_was(tmp_path: Path) -> None:
    url = str(tmp_path / "jobs.db")
    for id in ("job-1", "job-2"):
        with open_store(None, url, settings=LAB) as store:
            with_outbox(store).submit(id, "export", {"table": "x"}, now=0)
    with open_store(None, url) as store, store.database.read() as db:
        assert db.execute("SELECT schema_version FROM jobslab").fetchone() == (SCHEMA_VERSION,)
        assert told_of(store) == [("job-1", 0), ("job-2", 0)]


def test_on_another_database_the_outbox_says_what_to_do(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.database, "migrated", True, raising=False)
    with pytest.raises(StoreError, match="write its triggers into a migration"):
        with_outbox(store)


# The relay


@needs_broker
def test_a_line_is_crossed_off_only_when_the_broker_has_confirmed_it(scene: Scene) -> None:
    scene.store.submit("job-1", "export", {"table": "x"}, now=0)
    scene.broker.kill()
    with pytest.raises(NotConfirmed):
        scene.relay(0)
    assert told_of(scene.store) == [("job-1", 0)]
    scene.broker.restart()
    scene.relay(0)
    assert (told_of(scene.store), scene.broker.messages()) == ([], 1)


@needs_broker
def test_a_relay_that_dies_before_it_crosses_off_sends_twice_and_the_work_is_done_once(scene: Scene) -> None:
    scene.store.submit("job-1", "export", {"table": "x"}, now=0)
    carried_out(relay(scene.store, scene.broker, 0), outbox.AFTER)
    scene.relay(0)
    assert scene.broker.messages() == 2
    scene.consume(0)
    assert (scene.told, scene.done) == (["job-1: done", "job-1: thrown away, it is SUCCEEDED"], ["job-1"])
    assert scene.broker.messages() == 0


# The consumer


@needs_broker
def test_a_message_whose_job_is_not_due_by_the_consumers_clock_is_given_back_and_not_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "NOT_DUE_SECONDS", 0.1)
    scene.store.submit("job-1", "export", {"table": "x"}, run_at=5, now=0)
    scene.relay(5)
    delivery = scene.broker.fetch()
    assert delivery is not None
    early = consume(scene.store, scene.broker, delivery, scene.work, 4)
    assert carried_out(early) == "job-1: given back, not due yet"
    scene.consume(5)
    assert scene.told == ["job-1: done"]


@needs_broker
def test_a_message_that_comes_while_a_dead_workers_lease_is_good_is_thrown_away_and_the_sweepers_line_brings_another(
    scene: Scene,
) -> None:
    scene.store.submit("job-1", "export", {"table": "x"}, now=0)
    scene.relay(0)
    scene.store.claim("job-1", "dies", now=0)
    scene.consume(1)
    assert (scene.told, scene.broker.messages()) == (["job-1: thrown away, it is RUNNING"], 0)
    scene.recover()
    assert (scene.told[1:], scene.ended("job-1")) == (["job-1: done"], DONE)


@needs_broker
def test_a_message_of_no_job_is_thrown_away(scene: Scene) -> None:
    scene.broker.publish("job-9")
    scene.consume(0)
    assert (scene.told, scene.broker.messages()) == (["job-9: thrown away, no such job"], 0)


def test_a_process_that_never_comes_to_its_point_is_no_crash() -> None:
    def process() -> Generator[str, None, str]:
        yield "a point"
        return "the end"

    assert [carried_out(process(), "a point"), carried_out(process())] == [None, "the end"]
    with pytest.raises(NotReached, match="never came to this point: another"):
        carried_out(process(), "another")


# The stories


@pytest.mark.parametrize(
    ("story", "wrong", "names"),
    [
        (queueing.two_writes, "rows first", queueing.ORDERS),
        (queueing.acknowledging, "at the beginning", queueing.WHEN),
        (queueing.poison, "no limit", queueing.CARE),
        (backlog.answers, "slow", backlog.STORIES),
        (storm.answers, "jitter", storm.POLICIES),
    ],
)
def test_a_story_in_a_way_that_there_is_not_lists_those_that_there_are(
    story: Callable[[str], object], wrong: str, names: Iterable[str]
) -> None:
    with pytest.raises(UnknownWay) as refused:
        story(wrong)
    listed = ", ".join(map(repr, names))
    assert str(refused.value) == f"there is no {wrong!r} here; choose one of: {listed}"


@needs_broker
def test_only_who_buries_the_dead_letter_ends_its_job() -> None:
    told = {way: queueing.poison(way)["the job of the poison"] for way in ("limit", "limit, buried")}
    assert told == {"limit": "QUEUED; attempt 0", "limit, buried": "FAILED; attempt 1; dead letter"}


@needs_broker
def test_who_writes_the_row_first_loses_the_job_in_between_and_with_a_dead_broker() -> None:
    told = queueing.two_writes("row first")
    assert {name for name, seen in told.items() if seen == LOST} == {
        "crash: between the two writes",
        "the broker is dead for a while",
    }
    assert set(told.values()) == {LOST, DONE}


@needs_broker
def test_who_sends_the_message_first_has_a_message_of_no_job_and_loses_to_a_quick_consumer() -> None:
    told = queueing.two_writes("message first")
    assert told["crash: between the two writes"] == f"{DONE}, and a message of no job"
    assert [name for name, seen in told.items() if seen == LOST] == ["the consumer comes in between"]


@needs_broker
def test_with_an_outbox_the_work_is_done_once_whatever_happens() -> None:
    told = queueing.two_writes("outbox")
    assert all(seen.startswith(DONE) for seen in told.values())
    assert [name for name, seen in told.items() if seen != DONE] == ["crash: after both, before the answer"]


@needs_broker
def test_the_promises_are_counted_over_all_faults() -> None:
    kept = queueing.promises("row first", "message first", "outbox")
    assert kept.to_numpy().tolist() == [
        ["holds", "holds", "holds"],
        ["VIOLATED in 2 of 6", "VIOLATED in 1 of 6", "holds"],
        ["holds", "VIOLATED in 2 of 6", "holds"],
    ]


@needs_broker
def test_only_who_acknowledges_before_the_claim_loses_the_job() -> None:
    told = {when: queueing.acknowledging(when) for when in queueing.WHEN}
    lost = [(when, name) for when, seen in told.items() for name, answer in seen.items() if answer == LOST]
    assert lost == [("at once", "crash: it has the message")]
    twice = {name for seen in told.values() for name, answer in seen.items() if "2 times" in answer}
    assert twice == {"crash: it has done the work"}, "at least once, whoever acknowledges when"


@needs_broker
def test_a_wait_lets_the_others_pass_and_only_a_limit_makes_an_end() -> None:
    told = {switches: queueing.poison(switches) for switches in ("for ever", "wait", "limit")}
    assert [seen["deliveries of the poison"] for seen in told.values()] == ["12", "1", "3"]
    assert [seen["dead letters"] for seen in told.values()] == ["0", "0", "1"]
    behind = [seen["the two jobs behind it"] for seen in told.values()]
    assert behind == ["QUEUED, QUEUED", "SUCCEEDED, SUCCEEDED", "SUCCEEDED, SUCCEEDED"]


@needs_broker
def test_a_dead_letter_says_nothing_to_who_polls_until_its_job_is_ended(scene: Scene) -> None:
    [poisoned, *_] = queueing.submitted(scene)
    queueing.deliver(scene, 0, is_new=False)
    assert queueing.seen(scene.store, poisoned) == "QUEUED; attempt 0"
    bury(scene.store, scene.broker.dead(), LATE)
    job = scene.store.get(poisoned, now=LATE)
    assert isinstance(job, Job)
    assert job.error == '{"type": "dead letter", "message": "no consumer acknowledged it in 3 deliveries"}'
    assert len(scene.broker.dead()) == 1, "it is still there to be looked at"


@needs_broker
def test_a_second_burial_and_one_of_a_job_that_is_over_change_nothing(scene: Scene) -> None:
    queueing.submitted(scene)
    queueing.deliver(scene, 0, is_new=False)
    for now in (LATE, LATE + 1):
        bury(scene.store, scene.broker.dead(), now)
    assert [row.attempt for row in scene.store.rows()] == [1, 1, 1]


# Backlog and storm


@needs_broker
def test_a_queue_that_was_down_recovers_and_one_that_is_too_slow_does_not() -> None:
    down, slow = backlog.backlog("down for 6 units"), backlog.backlog("too slow")
    assert (max(down.waiting), down.waiting[-1], max(down.age), down.age[-1]) == (12, 0, 5, 0)
    assert slow.waiting == tuple(range(1, 25))
    assert slow.age[-1] == max(slow.age) == 11


@needs_broker
def test_a_limit_at_the_door_bounds_the_wait_and_counts_whom_it_refuses() -> None:
    seen = backlog.backlog("too slow, and a limit of 8")
    assert max(seen.waiting) < 8
    assert seen.refused + seen.waiting[-1] + backlog.END == backlog.ARRIVE * backlog.END


def test_a_service_that_refuses_forty_serves_none_and_with_few_it_serves_all() -> None:
    assert [storm.can_serve(n) for n in (0, 1, 10, 11, 20, 40, 100)] == [0, 1, 10, 9, 6, 0, 0]


def test_a_storm_ends_by_jitter_and_by_nothing_else() -> None:
    seen = {name: storm.storm(name, policy) for name, policy in storm.POLICIES.items()}
    assert [name for name, one in seen.items() if one.all_served_at is not None] == ["doubling, with jitter"]
    assert sum(seen["after 1 unit, 5 calls at most"].calls) == 5 * storm.CLIENTS
    assert set(seen["doubling"].calls) == {0, storm.CLIENTS}, "without jitter they stay together"


def test_jitter_ends_the_storm_whatever_the_seed() -> None:
    policy = storm.POLICIES["doubling, with jitter"]
    assert all(storm.storm("", policy, seed).all_served_at is not None for seed in range(50))


def test_a_chart_says_as_text_what_it_shows() -> None:
    picture = bars("two series", "unit", {"a": [0, 3, 1], "b": [5, 0, 0]}, "jobs")
    assert picture.text.splitlines() == [
        "two series",
        "",
        "  unit     a     b",
        "     0     0     5",
        "     1     3     0",
        "     2     1     0",
    ]
    assert picture.alt == "two series. a: at most 3, in unit 1, at the end 1; b: at most 5, in unit 0, at the end 0."


# Where the broker is missing


def test_where_the_broker_is_missing_a_story_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    for story in (lambda: queueing.two_writes("outbox"), lambda: backlog.answers("too slow")):
        with pytest.raises(NoBroker, match="pip install 'jobslab\\[queue\\]'"):
            story()


@needs_broker
def test_the_key_of_the_client_is_the_same_at_every_try() -> None:
    with a_broker(Limits()) as broker, closing(open_store(settings=LAB)) as store:
        desk = outbox.Desk(store, broker, counted())
        for way in (outbox.row_first, outbox.message_first):
            carried_out(way(desk, KEY))
        assert len(store.rows()) == 1


def test_jobslab_run_shows_rows_that_were_not_exercised_and_its_exit_code_is_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "argv", ["jobslab", "run", "--scenario", "poison"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert said.count("not exercised") == 21
    assert "20 rows were not exercised: the broker is not installed: pip install 'jobslab[queue]'" in " ".join(
        said.split()
    )
