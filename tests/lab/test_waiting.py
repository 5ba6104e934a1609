"""Does a client that waits in lab time see the story as it goes on, and stop when and only when it should?"""

from itertools import pairwise

import pandas as pd
import pytest

from jobslab.contract import Contract
from jobslab.job import TERMINAL, State
from jobslab.lab.place import here
from jobslab.lab.schedule import parse
from jobslab.lab.waiting import RULES, Story, asks_until, rules, submitted, timetable, waits

STORY = "3 units pass / A claims next / 40 units pass / A succeeds"


def seen(table: pd.DataFrame) -> list[str]:
    return table["the client sees"].tolist()


def said(table: pd.DataFrame) -> list[str]:
    return [words for words in table["and then it"] if not words.startswith("waits")]


def test_a_story_tells_its_steps_at_their_times() -> None:
    assert [(due.at, str(due.step)) for due in timetable(parse(STORY))] == [(3, "A claims next"), (43, "A succeeds")]


def test_the_story_goes_on_while_somebody_sleeps_and_not_a_moment_further() -> None:
    with here(Contract()) as place:
        clock, id = Story(STORY, place), submitted(place.client)
        found = []
        for seconds in (2.5, 0.5, 39.5, 0.5):
            clock.sleep(seconds)
            found.append((clock.now(), place.now(), place.client.get(id).body["state"]))
    assert found == [(2.5, 2.5, "QUEUED"), (3, 3, "RUNNING"), (42.5, 42.5, "RUNNING"), (43, 43, "SUCCEEDED")]


def test_the_rules_differ_in_a_waiting_job_and_in_a_state_that_is_new() -> None:
    table = rules("PAUSED")
    assert table["QUEUED"].tolist() == ["over", "polls on", "polls on"]
    assert table["PAUSED"].tolist() == ["over", "over", "polls on"]
    assert table["RUNNING"].tolist() == ["polls on"] * 3


def test_the_terminal_set_is_right_in_every_state_that_there_is() -> None:
    assert {state for state in State if RULES["terminal set"](state)} == set(TERMINAL)


def test_not_running_stops_before_the_work_and_finds_no_result() -> None:
    assert seen(asks_until("not RUNNING", STORY)) == ["QUEUED", "the result: 409; result-not-ready"]


def test_the_terminal_set_stops_when_the_result_is_there() -> None:
    found = seen(asks_until("terminal set", STORY))
    assert (found[0], found[-2:]) == ("QUEUED", ["SUCCEEDED", "the result: 200"])


def test_at_its_deadline_a_client_says_unknown_and_asked_again_it_learns_the_end() -> None:
    assert said(waits(STORY, 30, 30)) == ["says UNKNOWN, last seen RUNNING", "says SUCCEEDED"]
    assert said(waits(STORY, 60)) == ["says SUCCEEDED"]
    assert said(waits("2 units pass / A claims next / A fails", 60)) == ["says FAILED"]


@pytest.mark.parametrize("seed", range(20))
def test_no_poll_comes_sooner_than_the_server_asked_for_and_none_after_the_deadline(seed: int) -> None:
    table = waits("500 units pass / A claims next", 100, seed=seed)
    times = [float(t) for t in table["t"]]
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) >= 0.85  # 1, and times are shown to a tenth
    assert times[-1] <= 100


def test_the_same_seed_gives_the_same_waits_and_another_gives_others() -> None:
    assert waits(STORY, 30).equals(waits(STORY, 30))
    assert not waits(STORY, 30).equals(waits(STORY, 30, seed=2))
