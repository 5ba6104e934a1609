"""Does a verdict say what the run shows: holds, VIOLATED, or not exercised, and which fault fired?"""

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.lab.checker import BROKEN
from jobslab.lab.explore import explore
from jobslab.lab.properties import NAMES
from jobslab.lab.scenarios import SCENARIOS
from jobslab.lab.schedule import text
from jobslab.lab.trace import schedule
from jobslab.lab.trial import run, variants
from jobslab.lab.verdicts import FAULT, HOLDS, PROMISES, UNTRIED, VIOLATED, faults, judged, verdicts, violated
from jobslab.lab.world import Bounds
from jobslab.settings import LAB

LEFT = "client submits / A claims next / 11 units pass"
STALE = f"{LEFT} / sweep / B claims next"

UNGUARDED = "all but conditional_updates"

# Of each promise a run that breaks it, and the contract that lets it.
BREAKS = {
    "one job per intent": ("client submits key=k1 / response lost / client submits again", "all but idempotency_key"),
    "an accepted job is kept": ("client submits / restart", "all but persistence"),
    "every accepted job reaches a terminal state": ("client submits / A claims next / A crashes", "all but leases"),
    "a terminal state is final": ("client submits / A picks / client cancels / A claims", UNGUARDED),
    "one live claim per job": ("client submits / A picks / B picks / A claims / B claims", UNGUARDED),
    "a sweep undoes no report": (
        "client submits / A claims next / 11 units pass / S looks / A succeeds / S requeues",
        UNGUARDED,
    ),
    "only the current attempt's report counts": (f"{STALE} / A succeeds", "all but attempt_fencing"),
    "no progress report lands on a terminal row": (
        "client submits / A claims next / A succeeds / A progresses 50% late",
        UNGUARDED,
    ),
    "a cancelled queued job never runs": (
        "client submits / A picks / client cancels / A claims",
        UNGUARDED,
    ),
    "a job asked to stop is not started again": (
        "client submits / A picks / B picks / A claims / client cancels / B claims",
        UNGUARDED,
    ),
    "attempts never exceed the maximum": (
        "client submits / A picks / B picks / C picks / D picks / A claims / B claims / C claims / D claims",
        UNGUARDED,
    ),
}


def test_every_promise_but_the_client_s_own_has_a_run_that_breaks_it() -> None:
    assert tuple(PROMISES) == NAMES
    assert set(PROMISES) - set(BREAKS) == {"a client that stops at its deadline says UNKNOWN"}


@pytest.mark.parametrize("contract", [Contract().without(flag) for flag in FLAGS], ids=str)
def test_a_run_of_the_explorer_s_shortest_schedule_breaks_the_same_promise(contract: Contract) -> None:
    """Two ways of judging, one by the facts of every order, one by the rows of one run: they must not differ."""
    bounds = Bounds(attempts=LAB.max_attempts)
    broken = {name: one.trace for name, one in explore(contract, bounds).findings.items() if one.answer == BROKEN}
    assert broken
    for name, trace in broken.items():
        assert name in violated(run(text(schedule(trace)), contract)), name


@pytest.mark.parametrize("name", BREAKS)
def test_a_run_that_breaks_a_promise_is_seen_and_the_full_contract_keeps_it(name: str) -> None:
    schedule, contract = BREAKS[name]
    assert name in violated(run(schedule, contract))
    assert violated(run(schedule, "all")) == []


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_is_off_breaks_a_promise_of_its_own(flag: str) -> None:
    broken = {name for name, (schedule, _) in BREAKS.items() if name in violated(run(schedule, f"all but {flag}"))}
    assert broken == {name for name, (_, contract) in BREAKS.items() if contract == f"all but {flag}"}


@pytest.mark.parametrize("scene", SCENARIOS, ids=lambda scene: scene.name)
def test_the_variant_that_mends_a_scenario_breaks_nothing(scene) -> None:
    mended = variants(scene.name)[-1]
    assert violated(mended) == []


def test_what_was_never_tried_is_not_exercised() -> None:
    told = judged(run("client submits / A claims next / A succeeds"))
    assert [name for name, one in told.items() if one.verdict != UNTRIED] == [
        "every accepted job reaches a terminal state"
    ]
    assert told["every accepted job reaches a terminal state"].verdict == HOLDS


def test_a_claim_whose_lease_is_over_by_its_worker_s_own_count_is_not_live() -> None:
    assert judged(run(STALE))["one live claim per job"].verdict == HOLDS
    renewed = "client submits / A picks / B picks / A claims / 8 units pass / A renews / 8 units pass / B claims"
    assert judged(run(renewed, "all but conditional_updates"))["one live claim per job"].broken_at == 8


def test_a_client_at_its_deadline_says_unknown_or_what_it_saw() -> None:
    name = "a client that stops at its deadline says UNKNOWN"
    waiting = run("client submits / client polls / client gives up")
    assert judged(waiting)[name].verdict == HOLDS
    done = run("client submits / A claims next / A succeeds / client polls / client gives up")
    assert judged(done)[name].verdict == UNTRIED


def test_two_intents_are_no_repeated_one() -> None:
    assert judged(run("client submits key=k1 / client submits key=k2"))["one job per intent"].verdict == UNTRIED


def test_the_table_has_the_tried_promises_and_the_fault_in_its_last_line() -> None:
    table = verdicts(*variants("restart"))
    assert list(table.columns) == ["in memory", "durable, no lease", "durable, with a lease"]
    assert list(table.index)[-1] == FAULT
    assert list(table.loc[FAULT]) == ["yes: restart"] * 3
    assert list(table.loc["every accepted job reaches a terminal state"]) == [VIOLATED, VIOLATED, HOLDS]
    assert list(table.loc["one live claim per job"]) == [UNTRIED, UNTRIED, HOLDS]
    assert "one job per intent" not in table.index
    assert len(verdicts(run("client submits"), every=True)) == len(PROMISES) + 1


@pytest.mark.parametrize(
    ("schedule", "fired"),
    [
        ("client submits", []),
        ("client submits / response lost", ["response lost"]),
        ("client submits / A claims next / A crashes / B crashes", ["A crashes"]),
        ("client submits / A claims next / A succeeds / A succeeds late", ["A succeeds late"]),
        ("A succeeds late", []),
        ("client submits / A picks / B picks / A claims / B claims", ["B claims what it picked"]),
        (f"{LEFT} / S looks / A succeeds / S requeues", ["S requeues what it saw"]),
        (f"{LEFT} / S looks / S requeues", []),
        ("client submits / A claims next / A fails", ["A fails"]),
    ],
)
def test_only_a_fault_that_happened_has_fired(schedule: str, fired: list[str]) -> None:
    assert faults(run(schedule)) == fired
