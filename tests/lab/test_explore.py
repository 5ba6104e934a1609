"""Does the explorer say for all 32 contracts what breaks and how soon, and of a rule of one's own whether it will do?

What it finds is pinned: the matrix in `breaks_in`, and how much there was to see in STATES.
"""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from jobslab.commands import explore as command
from jobslab.contract import FLAGS, Contract
from jobslab.lab import figures, properties
from jobslab.lab.checker import BROKEN, HOLDS, NOT_EXHAUSTED, Count
from jobslab.lab.explore import (
    HOLDS_HERE,
    BadBounds,
    BadRule,
    Exploration,
    UnknownProperty,
    bounds_of,
    count,
    enough,
    explore,
    matrix,
    named,
    table,
)
from jobslab.lab.properties import NAMES, SOMETIMES
from jobslab.lab.world import Bounds

JOBSLAB = str(Path(sys.executable).parent / "jobslab")

# The flags that are enough for each promise, whatever else is on or off.
ENOUGH = {
    properties.ONE_JOB: [("idempotency_key",)],
    properties.KEPT: [("persistence",)],
    properties.ENDS: [("leases",)],
    properties.LIVE: [("conditional_updates", "attempt_fencing")],
    properties.FINAL: [("conditional_updates",)],
    properties.SWEEP: [("conditional_updates",)],
    properties.CURRENT: [("attempt_fencing",)],
    properties.PROGRESS: [("conditional_updates",)],
    properties.CANCELLED: [("conditional_updates",)],
    properties.ASKED: [("conditional_updates",)],
    properties.CEILING: [("conditional_updates",)],
    properties.DEADLINE: [()],
}

STATES = {  # at the default bounds: states that are not alike, and steps out of them
    "all": (583, 4867),
    "all but attempt_fencing": (2316, 20522),
    "all but conditional_updates": (4247, 32895),
    "all but conditional_updates, attempt_fencing": (4528, 31351),
    "all but leases": (82, 410),
    "all but leases, attempt_fencing": (107, 549),
    "all but leases, conditional_updates": (628, 3697),
    "idempotency_key, persistence": (1266, 7522),
    "all but persistence": (585, 4869),
    "all but persistence, attempt_fencing": (2318, 20524),
    "all but persistence, conditional_updates": (4249, 32897),
    "idempotency_key, leases": (4530, 31353),
    "all but persistence, leases": (84, 412),
    "idempotency_key, conditional_updates": (109, 551),
    "idempotency_key, attempt_fencing": (630, 3699),
    "idempotency_key": (1268, 7524),
    "all but idempotency_key": (3621, 35723),
    "all but idempotency_key, attempt_fencing": (4660, 44111),
    "all but idempotency_key, conditional_updates": (87322, 700713),
    "persistence, leases": (95379, 722746),
    "all but idempotency_key, leases": (297, 1813),
    "persistence, conditional_updates": (446, 2756),
    "persistence, attempt_fencing": (4390, 24557),
    "persistence": (4257, 21349),
    "all but idempotency_key, persistence": (3623, 35725),
    "leases, conditional_updates": (4662, 44113),
    "leases, attempt_fencing": (87324, 700715),
    "leases": (95381, 722748),
    "conditional_updates, attempt_fencing": (299, 1815),
    "conditional_updates": (448, 2758),
    "attempt_fencing": (4392, 24559),
    "none": (4259, 21351),
}
LARGEST = [name for name, (states, _) in STATES.items() if states > 50_000]


def breaks_in(contract: Contract) -> dict[str, int]:
    """In how many steps each promise breaks under this contract: the whole matrix, in a few lines."""
    off = contract.off
    steps: dict[str, int] = {}
    if "idempotency_key" in off:
        steps[properties.ONE_JOB] = 2
    if "persistence" in off:
        steps[properties.KEPT] = 2
    if "leases" in off:
        steps[properties.ENDS] = 4
    if "attempt_fencing" in off:
        steps[properties.CURRENT] = 6 if "conditional_updates" in off else 8
        if contract.leases:
            steps[properties.LIVE] = 9
    if "conditional_updates" in off:
        steps |= {properties.LIVE: 5, properties.FINAL: 4, properties.PROGRESS: 5, properties.CANCELLED: 4}
        steps |= {properties.ASKED: 4, properties.CEILING: 8}
        if contract.leases:
            steps[properties.SWEEP] = 7
    return steps


def check(found: Exploration) -> None:
    name = str(found.contract)
    assert found.exhausted, name
    assert (found.states, found.steps) == STATES[name], name
    assert {promise: len(one.trace) for promise, one in found.broken.items()} == breaks_in(found.contract), name
    assert all(found.findings[promise].answer in (HOLDS, BROKEN) for promise in NAMES), name


# All contracts


@cache
def most() -> list[Exploration]:
    """All contracts but the four that take most time."""
    return matrix(contracts=[each for each in Contract.all() if str(each) not in LARGEST], processes=1)


def test_the_matrix_says_of_every_cell_whether_the_promise_holds_or_in_how_many_steps_it_breaks() -> None:
    for found in most():
        check(found)


@pytest.mark.long
def test_and_so_it_does_of_all_32_contracts_in_two_processes() -> None:
    found = matrix()
    assert [each.contract for each in found] == Contract.all()
    for each in found:
        check(each)
    assert enough(found) == ENOUGH
    assert sum(len(each.broken) for each in found) == 172


def test_which_flags_are_enough_is_computed_and_not_which_contracts_happen_to_hold() -> None:
    """Without leases no sweeper ever writes, so that its promise holds; but no one would say that it needs no flag."""
    cut_short = [explore(contract, limit=3000) for contract in Contract.all() if str(contract) in LARGEST]
    assumed = [each._replace(findings=held(each)) for each in cut_short]
    assert enough([*most(), *assumed]) == ENOUGH


def held(found: Exploration) -> dict:
    """What was not broken, taken to hold: the long test shows that it does."""
    unsettled = {name: one for name, one in found.findings.items() if one.answer == NOT_EXHAUSTED}
    return found.findings | {name: one._replace(answer=HOLDS) for name, one in unsettled.items()}


def test_two_processes_find_what_one_finds() -> None:
    few = [Contract(), Contract().without("leases"), Contract().without("persistence")]
    done: list[int] = []
    found = matrix(contracts=few, processes=2, progress=done.append)
    assert found == matrix(contracts=few, processes=1)
    assert done == [1, 2, 3]


@pytest.mark.parametrize("off", [(), ("leases",), ("conditional_updates",)], ids=str)
def test_contracts_that_share_all_answers_but_to_a_restart_find_what_each_finds_alone(off: tuple[str, ...]) -> None:
    kept = Contract().without(*off)
    pair = [kept, kept.without("persistence")]
    assert matrix(contracts=pair, processes=1) == [explore(contract) for contract in pair]


def test_a_search_that_is_cut_short_never_says_holds() -> None:
    found = explore(limit=50)
    assert not found.exhausted
    assert HOLDS not in {one.answer for one in found.findings.values()}
    assert found.answer == "not exhausted: nothing broke in 83 states"


def test_the_table_is_a_frame_of_words() -> None:
    frame = table(most())
    assert list(frame.columns) == [*NAMES, *SOMETIMES]
    assert frame.loc["all", properties.ENDS] == "holds"
    assert frame.loc["all but leases", properties.ENDS] == "broken in 4 steps"
    assert frame.loc["all", properties.TWICE] == "reached in 6 steps"


def test_every_run_says_the_same_whatever_the_hash_seed() -> None:
    program = (
        "from jobslab.lab.explore import explore; from jobslab.contract import Contract;"
        "found = explore(Contract().without('attempt_fencing'));"
        "print(found.states, found.steps, [one.schedule for one in found.broken.values()])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_what_is_found_at_a_glance_is_found_in_the_whole_search_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that begins anew for the promises that are still open says of all what one search says."""
    for contract in (Contract(), Contract().without("conditional_updates"), Contract().without("attempt_fencing")):
        whole = explore(contract)
        monkeypatch.setattr("jobslab.lab.explore.GLANCE", 100)
        anew = explore(contract)
        monkeypatch.undo()
        assert {name: str(one) for name, one in anew.findings.items()} == {
            name: str(one) for name, one in whole.findings.items()
        }


# A rule of one's own


def test_a_rule_that_will_do_holds_at_these_bounds() -> None:
    assert (
        explore(rules={"unfinished": "state NOT IN ('QUEUED', 'SUCCEEDED', 'FAILED', 'CANCELLED')"}).answer
        == HOLDS_HERE
    )


NOT_ENOUGH = [
    ("unfinished", "state <> 'FAILED'", properties.FINAL, "A progresses late"),
    ("unfinished", "finished_at IS NULL", properties.LIVE, "B claims"),
    ("unfinished", "progress < 1", properties.FINAL, "A progresses late"),
    ("current", "attempt >= :attempt", properties.CURRENT, "A progresses late"),
    ("current", "worker = :worker", properties.CURRENT, "A progresses late job-1 attempt 1"),
    ("current", "lease_until > :now", properties.ENDS, "10 units pass"),
    ("still_claimable", "started_at IS NULL", properties.FINAL, "A claims"),
    ("still_expired", "state = 'RUNNING'", properties.SWEEP, "S requeues"),
    ("attempts_left", "TRUE", properties.CEILING, "B claims"),
    ("deduplicated", "state = 'QUEUED'", properties.ONE_JOB, "client submits key=k1"),
]


@pytest.mark.parametrize(("slot", "predicate", "promise", "last"), NOT_ENOUGH)
def test_a_rule_that_will_not_do_is_answered_with_a_shortest_schedule(
    slot: str, predicate: str, promise: str, last: str
) -> None:
    found = explore(rules={slot: predicate}, names=NAMES, first=True)
    assert next(iter(found.broken)) == promise
    assert found.answer.splitlines()[-1] == last


def test_a_rule_that_asks_since_when_a_lease_is_over_is_taken_at_its_word() -> None:
    """`<` for `<=` is one instant later, which no promise minds."""
    assert explore(rules={"expired": "lease_until < :now"}).answer == HOLDS_HERE


NO_RULES = [
    ({"unfinished": "stat = 'RUNNING'"}, "no such column: stat; it read: unfinished: stat = 'RUNNING'"),
    ({"current": "attempt = :a"}, "You did not supply a value for binding parameter :a"),
    ({"current": "attempt ="}, "syntax error"),
    ({"current": "TRUE) OR (TRUE"}, "a rule is one SQL predicate"),
    ({"survives": "state <> 'RUNNING'"}, "no such column: state"),  # the journal has no such column
    ({"unfinnished": "TRUE"}, "there is no rule 'unfinnished'; the rules are deduplicated, survives"),
    ({"unfinished": " "}, "a rule is one SQL predicate, like \"state = 'RUNNING'\", and not ' '"),
    ({"unfinished": "TRUE; DROP TABLE jobs"}, "a rule is one SQL predicate"),
    ({"unfinished": "{current}"}, "a rule is one SQL predicate"),
    ({"unfinished": "TRUE -- all"}, "a rule is one SQL predicate"),
    ({"current": "(SELECT count(*) FROM jobs) = 1"}, "a rule asks about one row"),
    ({"current": "random() > 0"}, "a rule asks about one row"),
    ({"deduplicated": "1 = ?"}, "this can't be a rule"),
]


@pytest.mark.parametrize(("rules", "says"), NO_RULES, ids=lambda value: str(value)[:40])
def test_what_is_no_rule_is_refused_in_one_sentence(rules: dict[str, str], says: str) -> None:
    with pytest.raises(BadRule, match=re.escape(says)) as refused:
        explore(rules=rules)
    assert "\n" not in str(refused.value)


def test_a_rule_is_tried_and_forgotten() -> None:
    explore(rules={"current": "TRUE"}, names=[properties.CURRENT])
    assert explore(names=[properties.CURRENT]).findings[properties.CURRENT].answer == HOLDS


# How many schedules fail

RACE = Bounds(workers=2, sweepers=0, faults=0, under_way=0, cancels=0, reports=("succeed",))


def test_schedules_that_fail_are_counted() -> None:
    without = count(Contract().without("conditional_updates"), "one live claim", 6, RACE)
    with_all = count(Contract(), "one live claim", 6, RACE)
    assert without.seen > 0
    assert with_all == Count(0, with_all.total)


def test_of_all_schedules_of_one_length_the_same_fail_that_a_walk_through_them_finds() -> None:
    from jobslab.lab import checker
    from jobslab.lab.properties import properties as all_of
    from jobslab.settings import LAB
    from jobslab.stores import open_store
    from tests.lab.worlds import worlds

    with open_store(Contract().without("conditional_updates"), settings=LAB) as store:
        world, system = worlds(store, RACE, alike=False)
        (asked,) = [each for each in all_of(world) if each.name == properties.LIVE]

        def walk(state, seen: bool, left: int) -> Count:
            if left == 0:
                return Count(int(seen), 1)
            steps = [checker.Step(*step) for step in world.enabled(state)]
            ends = [walk(step.state, seen or asked.seen_at(state, step), left - 1) for step in steps]
            return Count(sum(end.seen for end in ends), sum(end.total for end in ends))

        assert walk(world.start, False, 5) == checker.count_schedules(system, asked, 5)


# Names and bounds


def test_a_promise_is_named_by_words_that_only_it_has() -> None:
    assert named("live claim") == properties.LIVE
    assert named("a job may run twice") == properties.TWICE
    with pytest.raises(UnknownProperty, match="'job' is in the names of 9 promises; name one of: one job per intent; "):
        named("job")
    with pytest.raises(UnknownProperty, match="there is no promise 'once'; name one of: "):
        named("once")


def test_bounds_are_read_from_text() -> None:
    assert bounds_of("") == Bounds()
    assert bounds_of("jobs=2, faults=3 ,late=progress+succeed") == Bounds(
        jobs=2, faults=3, late=("progress", "succeed")
    )
    assert bounds_of("late=").late == ()


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("job=2", "there is no bound 'job'; the bounds are jobs, sends"),
        ("jobs", "jobs= is a whole number from 0 up, and not ''"),
        ("jobs=-1", "jobs= is a whole number from 0 up, and not '-1'"),
        ("workers=0", "workers= is at least 1: with less nothing happens"),
        ("workers=9", "workers= is at most 8: with more no search would end"),
        ("late=pick", "late= has reports with + between them, of renew, progress, succeed, fail, retry, stop; and not"),
    ],
)
def test_bounds_that_can_not_be_are_refused_in_one_sentence(written: str, says: str) -> None:
    with pytest.raises(BadBounds, match=re.escape(says)):
        bounds_of(written)


@pytest.mark.parametrize(
    "text", ["jobs=2,sends=1,sweepers=0", "under_way=0", "faults=0", "sweepers=0", "cancels=0,sends=1"]
)
def test_every_bound_may_be_narrow(text: str) -> None:
    found = explore(bounds=bounds_of(text), names=[properties.ONE_JOB, properties.FINAL])
    assert {one.answer for one in found.findings.values()} == {HOLDS}


def test_without_a_sweeper_the_job_of_a_worker_that_crashed_never_ends() -> None:
    assert explore(bounds=Bounds(sweepers=0)).findings[properties.ENDS].answer == BROKEN


# As text and as a picture


def test_the_matrix_as_text_fits_a_terminal_and_tells_every_cell() -> None:
    lines = figures.as_text([only_promises(each) for each in most()]).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["flags", "on", *map(str, range(1, 13))]
    told = {line[:45].strip(): line[45:].split() for line in lines[1 : len(most()) + 1]}
    assert told["all"] == ["·"] * 12
    assert told["all but leases"] == ["·", "·", "4", *["·"] * 9]


def only_promises(found: Exploration) -> Exploration:
    return found._replace(findings={name: found.findings[name] for name in NAMES})


def test_what_was_not_exhausted_has_a_sign_of_its_own() -> None:
    assert figures.cell(explore(limit=50).findings[properties.ENDS]) == "?"


def test_the_picture_says_in_words_what_it_shows() -> None:
    picture = figures.matrix([only_promises(each) for each in most()[:4]])
    assert picture.png.startswith(b"\x89PNG")
    assert picture.alt.startswith("A matrix of 4 contracts and 12 promises: in 17 cells a promise breaks")
    assert "Under the full contract nothing breaks" in picture.alt
    assert str(picture) == figures.as_text([only_promises(each) for each in most()[:4]])


def test_every_text_of_the_picture_lies_inside_it_and_none_on_another() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = figures.figure([only_promises(each) for each in most()])
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    texts = drawn.axes[0].texts
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in texts]
    for text, box in zip(texts, boxes):
        assert drawn.bbox.x0 <= box.x0, text.get_text()
        assert box.x1 <= drawn.bbox.x1, text.get_text()
        assert drawn.bbox.y0 <= box.y0, text.get_text()
        assert box.y1 <= drawn.bbox.y1, text.get_text()


# The command


def jobslab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([JOBSLAB, "explore", *arguments], capture_output=True, text=True, timeout=300)


def test_a_trace_is_told_as_a_timeline_and_as_a_schedule_that_runs() -> None:
    shown = jobslab("--without", "leases", "--property", "terminal state", "--replay", "sqlite")
    assert shown.returncode == 2, "two promises have these words"
    shown = jobslab("--without", "leases", "--property", "every accepted", "--replay", "sqlite")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "every accepted job reaches a terminal state  broken in 4 steps" in shown.stdout
    assert "  4  A crashes (fault)                       job-1 RUNNING attempt 1" in shown.stdout
    assert "1 traces replayed, in memory and in a file: every answer as the explorer says." in shown.stdout
    (schedule,) = re.findall(r"as a schedule: (.+)", shown.stdout)
    again = [JOBSLAB, "run", "--without", "leases", "--schedule", schedule]
    assert "A crashes" in subprocess.run(again, capture_output=True, text=True, check=True).stdout


def test_the_command_speaks_json() -> None:
    told = json.loads(jobslab("--with", "", "--property", "live", "--json").stdout)
    (found,) = told["contracts"]
    assert (found["contract"], found["states"], found["exhausted"]) == ("none", 4259, True)
    live = found["findings"][properties.LIVE]
    assert (live["answer"], live["length"]) == ("broken", 5)
    assert live["schedule"].splitlines()[-1] == live["steps"][-1]["step"] == "B claims"
    assert live["steps"][-1]["jobs"] == [{"id": "job-1", "state": "RUNNING", "attempt": 2, "cancel_requested": 0}]


def test_without_flags_the_command_shows_the_matrix_and_which_flags_are_enough() -> None:
    narrow = "sweepers=1,under_way=0,cancels=0,reports=succeed,sends=1"
    shown = jobslab("--bounds", narrow, "--property", "one live")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["flags", "on", "1"]
    assert len([line for line in lines if line[-3:].strip() in ("·", "5")]) == 32
    assert lines[-1] == "one live claim per job  conditional_updates"


def test_the_matrix_as_json_has_every_contract_and_the_flags_that_are_enough() -> None:
    told = command.document([only_promises(each) for each in most()], Bounds(), None, [])
    assert [each["contract"] for each in told["contracts"]] == [str(each.contract) for each in most()]
    assert told["enough"][properties.ENDS] == [("leases",)]
    assert told["replayed"] == {"traces": sum(len(each.broken) for each in most()), "differences": []}
    assert json.loads(json.dumps(told))["bounds"]["workers"] == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--without", "lease"], "there is no flag 'lease'"),
        (["--property", "once"], "there is no promise 'once'"),
        (["--bounds", "jobs=x"], "jobs= is a whole number"),
        (["--with", "leases", "--replay", "mysql"], "there is no replay on 'mysql': say --replay sqlite"),
        (["--with", "leases", "--without", "leases"], "give --with or --without, not both"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], says: str) -> None:
    shown = jobslab(*arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("jobslab: ")
    assert says in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_all_flags_have_a_column_in_the_picture() -> None:
    texts = {text.get_text() for text in figures.figure([only_promises(most()[0])]).axes[0].texts}
    assert set(FLAGS) | set(NAMES) <= texts


def test_looking_for_the_first_that_breaks_finds_that_nothing_does() -> None:
    found = explore(first=True)
    assert (found.exhausted, found.answer) == (True, HOLDS_HERE)
