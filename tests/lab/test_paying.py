"""How often is paid, what is in the file, how many mails go, and what is paid back, at every point of every way?

What the scenarios show is in data/expected.csv, row by row; here is what must be true of all rows.
"""

import inspect
import re
from itertools import product

import pytest

from jobslab.lab import mailing, paying, undoing, writing
from jobslab.lab.again import Fault, NotReached, change, title
from jobslab.lab.coins import coins
from jobslab.lab.paying import AFTER, BEFORE, BETWEEN, FAULTS, WAYS, key_and_record, naive, pay, record_then_call
from jobslab.lab.payment import service

KEYED = [way for switches, way in WAYS.items() if "key" in switches]


def paid(way, fault: Fault = Fault()) -> int:
    return int(pay(way, fault).seen["paid"])


@pytest.mark.parametrize("way", WAYS.values(), ids=title)
def test_the_points_of_a_way_are_all_there_and_each_is_a_crash(way) -> None:
    points = re.findall(r"yield (\w+)", inspect.getsource(way))
    assert points == ["BEFORE", "BETWEEN", "AFTER"]
    assert {fault.at for fault in FAULTS if fault.what == "crash"} == {BEFORE, BETWEEN, AFTER}


@pytest.mark.parametrize("way", WAYS.values(), ids=title)
def test_without_a_fault_every_way_pays_once(way) -> None:
    assert paid(way) == 1


@pytest.mark.parametrize("way", KEYED, ids=title)
def test_with_the_jobs_id_as_key_is_paid_once_at_every_point(way) -> None:
    assert {paid(way, fault) for fault in FAULTS} == {1}


def test_each_other_way_has_a_point_at_which_it_does_not_pay_once() -> None:
    others = [way for way in WAYS.values() if way not in KEYED]
    assert all({paid(way, fault) for fault in FAULTS} != {1} for way in others)


def test_the_key_is_worth_what_the_service_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with service("--ignore-keys") as other:
        monkeypatch.setattr(paying, "shared", lambda: other)
        assert [paid(key_and_record, Fault("crash", point)) for point in (BEFORE, BETWEEN, AFTER)] == [1, 2, 2]


def test_whoever_writes_it_down_first_says_done_of_what_was_never_paid() -> None:
    story = pay(record_then_call, Fault("crash", BETWEEN))
    assert (story.state, story.seen) == ("SUCCEEDED", {"paid": "0", "in the ledger": "1"})


@pytest.mark.parametrize(("way", "point"), [(naive, BETWEEN), (key_and_record, BETWEEN), (record_then_call, BETWEEN)])
def test_a_process_that_is_killed_leaves_what_a_crash_leaves(way, point) -> None:
    killed = paying.kill(way, point)
    assert killed.lines[0].does == f"{point}: is killed"
    assert (killed.state, killed.seen) == (pay(way, Fault("crash", point)).state, pay(way, Fault("crash", point)).seen)


def test_only_a_point_that_the_way_has_can_be_killed_at() -> None:
    with pytest.raises(NotReached, match="the work has no point 'typo'"):
        paying.kill(naive, "typo")


def test_only_a_way_that_has_a_name_can_be_sent_to_another_process() -> None:
    with pytest.raises(paying.NotSent, match="only these ways can be sent to another process: naive, asks first, "):
        paying.kill(lambda till: naive(till), BETWEEN)


@pytest.mark.long
@pytest.mark.parametrize(("way", "point"), [*product(WAYS.values(), paying.POINTS)])
def test_a_killed_process_leaves_at_every_point_what_a_crash_leaves(way, point) -> None:
    assert paying.kill(way, point).seen == pay(way, Fault("crash", point)).seen


def test_the_verdicts_count_the_faults_under_which_a_promise_breaks() -> None:
    table = paying.promises(naive, record_then_call, key_and_record)
    assert list(table.loc["a customer pays at most once"]) == ["VIOLATED in 4 of 6", "holds", "holds"]
    assert list(table.loc["a job that is SUCCEEDED was paid"]) == ["holds", "VIOLATED in 1 of 6", "holds"]


# Files


def test_a_staged_file_is_whole_or_not_there_at_every_moment() -> None:
    for fault in writing.FAULTS:
        for line in writing.write(writing.stages, fault).lines:
            assert dict(line.seen)["a reader finds"] in ("no file", "the whole file")


def test_what_was_appended_stays_and_the_second_worker_adds_to_it() -> None:
    assert writing.write(writing.appends, Fault("crash", writing.HALF)).seen == {"a reader finds": "6 lines, not 4"}


# Mails


def test_every_point_of_every_way_to_send_is_a_crash_and_all_but_the_last_are_a_delay() -> None:
    points = {
        getattr(mailing, name)
        for way in mailing.WAYS.values()
        for name in re.findall(r"yield (\w+)", inspect.getsource(way))
    }
    assert {fault.at for fault in mailing.FAULTS if fault.what == "crash"} == points
    assert {fault.at for fault in mailing.FAULTS if fault.what == "slow"} == points - {AFTER}


def test_no_way_sends_just_one_mail_at_every_point_and_only_one_says_so() -> None:
    for way in mailing.WAYS.values():
        assert {*mailing.outcomes(way).values()} - {mailing.NO_POINT} != {"1 mail"}
    in_doubt = [
        mailing.send(mailing.intent_and_record, Fault("crash", at)) for at in (mailing.INTENDED, mailing.BETWEEN)
    ]
    assert [mailing.outcome(story) for story in in_doubt] == ["0 mails; a person is asked", "1 mail; a person is asked"]


def test_of_a_point_that_a_way_does_not_have_it_says_so() -> None:
    table = mailing.table(mailing.intent_and_record, mailing.record_after)
    assert list(table.loc[f"crash: {mailing.INTENDED}"]) == ["0 mails; a person is asked", "no such point"]


# Steps that are taken back


def test_a_trip_without_a_fault_passes_every_point_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[str] = []
    monkeypatch.setattr(undoing.Trap, "at", lambda trap, point: passed.append(point))
    undoing.travel(undoing.pays_back)
    assert tuple(passed) == undoing.POINTS


@pytest.mark.parametrize("fault", undoing.FAULTS, ids=str)
def test_with_a_key_all_is_paid_back_once_wherever_the_worker_stops(fault: Fault) -> None:
    story = undoing.travel(undoing.pays_back_once, fault)
    assert undoing.outcome(story) == "FAILED; paid 0"


def test_the_last_step_is_taken_back_first() -> None:
    half = undoing.travel(undoing.pays_back_once, Fault("crash", "before hotel is paid back")).lines
    assert dict(half[2].seen)["the customer has paid"] == str(undoing.TRIP["hotel"])


def test_a_saga_that_gave_up_never_goes_forward_again() -> None:
    story = undoing.travel(undoing.pays_back_once, Fault("crash", "after flight is paid back"))
    assert story.seen["calls"] == "flight back, hotel back"


def test_the_second_worker_leaves_out_what_is_written_down_and_calls_again_for_what_is_not() -> None:
    story = undoing.travel(undoing.pays_back_once, Fault("crash", "after flight is paid"))
    assert story.seen["calls"] == "flight, car, flight back, hotel back"
    story = undoing.travel(undoing.pays_back_once, Fault("crash", "before flight is paid back"))
    assert story.seen["calls"] == "flight back, hotel back"


# How it looks


def test_a_table_has_the_ways_that_are_asked_for_in_that_order_and_any_way_of_ones_own() -> None:
    def own(account, reference, amount):
        return undoing.pays_back_once(account, reference, amount)

    assert list(undoing.table(own, undoing.pays_back).columns) == ["own", "pays back"]
    assert list(writing.table(writing.stages, writing.appends).columns) == ["stages", "appends"]


def test_the_picture_says_in_words_what_it_shows() -> None:
    drawn = coins(naive, record_then_call, key_and_record)
    rows = {
        line[:36].strip(): line[36:].split()
        for line in drawn.text.splitlines()
        if line[:5] in ("crash", "slow:", "no fa")
    }
    assert rows["crash: between call and record"] == ["2", "0", "1"]
    assert len(rows) == len(FAULTS)
    assert drawn.text.splitlines()[0] in drawn.alt
    assert "Paid once under every fault: key and record." in drawn.alt


def test_the_change_is_the_lines_that_differ() -> None:
    assert str(change(naive, paying.with_key)).splitlines() == [
        "--- naive",
        "+++ with_key",
        "-     till.account.pay(till.job.id)",
        "+     till.account.pay(till.job.id, key=till.job.id)",
    ]
