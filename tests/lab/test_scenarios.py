"""Do the scenarios show what data/expected.csv says, and can any of them be run under any contract?"""

import pytest

from jobslab import contract as rules
from jobslab.contract import Contract
from jobslab.job import State
from jobslab.lab import running, scenarios, trial
from jobslab.lab.extra import MissingExtra
from jobslab.lab.place import here
from jobslab.lab.running import NOT_EXERCISED, OUTCOMES, Row
from jobslab.lab.scenarios import (
    ENACTED,
    EVERY,
    SCENARIOS,
    Enact,
    Expected,
    HasNoSchedule,
    Scenario,
    UnknownScenario,
    Variant,
    answers,
    awaited,
    expected,
    lines,
    play,
    scenario,
    under,
)  # fmt: skip
from jobslab.lab.schedule import parse, text

VARIANTS = [(scenario, variant) for scenario in SCENARIOS for variant in scenario.variants]
only = Contract.only

# Contracts as small as the failure and its remedy need, in the order of the scenario's variants.
SMALLER = {
    "accepted": [Contract.none()],
    "submit again": [only("idempotency_key"), Contract.none(), only("idempotency_key")],
    "when is it over": [Contract.none(), Contract.none()],
    "restart": [Contract.none(), only("persistence"), only("persistence", "leases")],
    "late progress": [Contract.none(), only("conditional_updates")],
    "stale worker": [only("leases", "conditional_updates"), only("leases", "conditional_updates", "attempt_fencing")],
    "double claim": [Contract.none(), only("conditional_updates")],
    "sweeper on a snapshot": [only("leases"), only("leases", "conditional_updates")],
}


def titled(pair: tuple[Scenario, Variant]) -> str:
    return f"{pair[0].name}, {pair[1].name}"


@pytest.mark.parametrize("pair", VARIANTS, ids=titled)
def test_every_row_is_as_expected(pair: tuple[Scenario, Variant]) -> None:
    for line in lines(*pair, play(*pair)):
        assert line.seen == line.expected, line.step


def test_the_rows_are_just_those_of_expected_csv_in_their_order() -> None:
    every = [(scenario, variant) for scenario in EVERY for variant in scenario.variants]
    seen = [(*line[:4], pair[1].switches) for pair in every for line in lines(*pair, play(*pair))]
    assert seen == [(*line[:4], line.switches) for line in expected()]


def test_the_five_flags_have_the_first_fifty_rows_to_themselves_and_the_switches_all_others() -> None:
    told = expected()
    assert {line.switches for line in told[:50]} == {""}
    assert {line.scenario for line in told[:50]} == {scenario.name for scenario in SCENARIOS}
    assert {line.flags_on for line in told[50:]} <= {"all"}
    assert {line.scenario for line in told[50:]} == {scenario.name for scenario in ENACTED}


@pytest.mark.parametrize("pair", VARIANTS, ids=titled)
def test_the_rows_are_alike_with_a_file(pair: tuple[Scenario, Variant], tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert play(*pair, here, str(tmp_path / "jobs.db")) == play(*pair)


@pytest.mark.parametrize("pair", VARIANTS, ids=titled)
def test_the_rows_are_alike_under_a_smaller_contract(pair: tuple[Scenario, Variant]) -> None:
    scenario, variant = pair
    smaller = SMALLER[scenario.name][scenario.variants.index(variant)]
    assert answers(play(scenario, variant._replace(contract=smaller))) == answers(play(scenario, variant))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_variants_differ_in_one_flag_or_in_one_line_of_the_client(scenario: Scenario) -> None:
    mended = scenario.variants[-1]
    for variant in scenario.variants[:-1]:
        steps = [step for step, other in zip(scenario.schedule(variant), scenario.schedule(mended)) if step != other]
        assert len(steps) + len(variant.contract.off) == 1
        assert all(step.actor == "client" for step in steps)
        assert mended.contract == Contract()


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_any_scenario_runs_under_any_contract(contract: Contract) -> None:
    for one in SCENARIOS:
        for variant in under(one, contract).variants:
            for row in play(one, variant):
                assert row.answer
                assert row.outcome in OUTCOMES
                assert (row.outcome == NOT_EXERCISED) == (row.answer == NOT_EXERCISED) == (row.note is not None)


def test_another_contract_keeps_the_clients_of_the_variants() -> None:
    none = Contract.none()
    assert [v.name for v in under(scenario("submit again"), none).variants] == ["no key", "same key"]
    assert [v.name for v in under(scenario("restart"), none).variants] == ["none"]
    assert (
        answers(play(scenario("submit again"), under(scenario("submit again"), none).variants[0]))["jobs registered"]
        == "2"
    )


def test_what_can_not_happen_under_a_contract_is_not_exercised() -> None:
    restart = scenario("restart")
    rows = play(restart, restart.variant("durable, no lease"))
    assert (rows[7].step, rows[7].answer, rows[7].note) == ("B succeeds", NOT_EXERCISED, "B has no job in hand")
    snapshot = under(scenario("sweeper on a snapshot"), Contract().without("leases"))
    assert answers(play(snapshot, snapshot.variants[0]))["the sweeper requeues what it saw"] == NOT_EXERCISED


def test_a_step_that_was_not_exercised_is_never_as_expected() -> None:
    snapshot = scenario("sweeper on a snapshot")
    mended = snapshot.variant("conditional")
    rows = play(snapshot, mended._replace(contract=mended.contract.without("leases")))
    requeued = next(line for line in lines(snapshot, mended, rows) if line.step == "the sweeper requeues what it saw")
    assert (requeued.expected, requeued.seen, requeued.held) == ("refused", NOT_EXERCISED, False)


def test_a_spoilt_rule_shows_in_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    spoilt = tuple(rule._replace(sql="TRUE") if rule.slot == "current" else rule for rule in rules.RULES)
    monkeypatch.setattr(rules, "RULES", spoilt)
    stale = scenario("stale worker")
    mended = stale.variants[-1]
    assert [line.step for line in lines(stale, mended, play(stale, mended)) if not line.held] == [
        "the old worker's completion",
        "GET",
        "the current worker's completion",
    ]


# What is enacted


def doubled(switches: str) -> dict[str, str]:
    return {"paid": "1 time" if switches == "ledger" else "2 times"}


def without_a_broker(switches: str) -> dict[str, str]:
    raise MissingExtra("a broker is missing: pip install it")


def enacted(enact: Enact = doubled) -> Scenario:
    variants = (Variant("naive", Contract(), "twice"), Variant("a ledger", Contract(), "once", switches="ledger"))
    return Scenario("paying", "How often?", "pay, crash, pay", variants, enact=enact)


@pytest.fixture
def awaits_one(monkeypatch: pytest.MonkeyPatch) -> None:
    must = [
        Expected("paying", name, "all", "paid", "1 time", on) for name, on in (("naive", ""), ("a ledger", "ledger"))
    ]
    monkeypatch.setattr(scenarios, "expected", lambda: must)


@pytest.mark.usefixtures("awaits_one")
def test_an_enacted_scenario_answers_by_its_switches_and_is_held_against_what_is_expected() -> None:
    told = [line for variant in enacted().variants for line in lines(enacted(), variant, play(enacted(), variant))]
    assert [(line.step, line.seen, line.held) for line in told] == [
        ("paid", "2 times", False),
        ("paid", "1 time", True),
    ]


@pytest.mark.usefixtures("awaits_one")
def test_a_row_is_expected_of_the_switches_that_it_names() -> None:
    other = Variant("a ledger", Contract(), "", switches="check")
    assert [line.expected for line in lines(enacted(), other, play(enacted(), other))] == [None]


@pytest.mark.usefixtures("awaits_one")
def test_where_a_package_is_missing_the_rows_that_were_awaited_are_not_exercised_and_nothing_is_judged() -> None:
    scenario = enacted(without_a_broker)
    [line] = lines(scenario, scenario.variants[1], play(scenario, scenario.variants[1]))
    assert (line.step, line.expected, line.seen, line.held) == ("paid", "1 time", NOT_EXERCISED, None)
    assert line.lacks == "a broker is missing: pip install it"


def test_an_enacted_scenario_has_no_schedule_and_runs_under_no_other_contract() -> None:
    sentence = "the scenario 'paying' has no schedule and no flags to switch; run it as it is"
    for ask in (lambda: under(enacted(), Contract.none()), lambda: trial.run(enacted(), "naive")):
        with pytest.raises(HasNoSchedule, match=sentence):
            ask()


def test_every_enacted_scenario_says_what_is_to_be_seen_and_has_other_switches_in_each_variant() -> None:
    for one in ENACTED:
        assert one.enact is not None
        assert all(variant.says and variant.contract == Contract() for variant in one.variants)
        assert len({variant.switches for variant in one.variants}) == len(one.variants)


@pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)
def test_all_variants_answer_the_same_steps_since_they_are_printed_side_by_side(scenario: Scenario) -> None:
    first, *others = [[line.step for line in awaited(scenario, variant)] for variant in scenario.variants]
    assert all(steps == first for steps in others)


def test_an_unknown_scenario_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(UnknownScenario, match="no scenario 'stale'; the scenarios are: accepted, submit again, "):
        scenario("stale")


def test_a_scenario_is_written_in_the_text_form() -> None:
    for one, variant in VARIANTS:
        steps = one.schedule(variant)
        assert parse(text(steps)) == steps


# Rows


def rows_of(schedule: str, contract: Contract = Contract()) -> list[Row]:
    with here(contract) as place:
        return running.run(parse(schedule), place)


@pytest.mark.parametrize(
    ("schedule", "answer"),
    [
        ("client polls", "client knows of no job"),
        ("client submits again", "client has submitted nothing"),
        ('client submits / response lost / client judges "terminal set"', "client has seen no job"),
        ("A claims", "A has picked no job"),
        ("A claims next / A claims", "A has picked no job"),
        ("client submits / A claims next / A picks", "A has a job in hand"),
        ("client submits / A claims next / A claims next", "A has a job in hand"),
        ("A succeeds", "A has no job in hand"),
        ("A sends succeed", "A has no job in hand"),
        ("client submits / A claims next / A sends succeed / A succeeds", "A has no job in hand"),
        ("client submits / A claims next / A crashes / A succeeds", "A has no job in hand"),
        ("client submits / A claims next / restart / A succeeds", "A has no job in hand"),
        ("client submits / A claims next / A stops", "nobody asked A to stop"),
        ("client submits / A claims next / client cancels / A renews / A renews", "A was asked to stop"),
        ("A succeeds late", "A has claimed no job"),
        ("S looks / S requeues", "S has seen no job whose lease is over"),
        ("client submits / A claims next / S looks job-2 / S requeues", "S has seen no job whose lease is over"),
    ],
)
def test_a_step_that_can_not_happen_says_why(schedule: str, answer: str) -> None:
    last = rows_of(schedule)[-1]
    assert (last.outcome, last.answer, last.note) == (NOT_EXERCISED, NOT_EXERCISED, answer)


@pytest.mark.parametrize(
    ("schedule", "answer"),
    [
        ("client submits kind=nonsense", "422; invalid-job"),
        ("client submits key=k table=a / client2 submits key=k table=b", "422; key-reused"),
        ("client submits / client polls show=done,cancel_requested", "200; done false; cancel requested false"),
        ("client submits / client cancels", "200; state CANCELLED; attempt 0; error cancelled"),
        ("client polls job-7", "404"),
        ("client submits / A claims next / A succeeds / 90000 units pass / client polls", "410"),
        ("client submits / A claims next / A succeeds / 90000 units pass / purge", "1 purged"),
        ("client gives up", "UNKNOWN"),
        ("client submits / A claims next / client polls / client gives up", "UNKNOWN; last seen RUNNING"),
        ("client submits / A claims next / A succeeds / client polls / client gives up", "SUCCEEDED"),
        ("client submits / A claims next / A progresses 30% / client polls show=progress", "200; progress 0.3"),
        ("client submits / A claims next / A succeeds / client polls show=result", "200; result A's, attempt 1"),
        ("client submits / A claims next / A fails / client polls", "200; state FAILED; attempt 1; error it broke"),
        ("client submits / A claims next / A retries error=e / client polls", "200; state QUEUED; attempt 1"),
        ("client submits / A claims next / client cancels / A renews / A stops", "accepted"),
        ("client submits / A picks / B claims next / A claims", "refused"),
        ("client submits / A claims next / 100 units pass / sweep", "job-1 requeued"),
        ("client submits / A claims next / client cancels / 100 units pass / sweep", "job-1 cancelled"),
        ("sweep", "nothing"),
        ("client submits / A claims next / 100 units pass / S looks", "job-1"),
        ("client submits / client2 submits / restart", "job-1, job-2 kept"),
        ("restart", "nothing kept"),
        ("0.5 units pass / 2 units pass", "now 2.5"),
        ("A crashes", "gone"),
        ("A picks", "nothing"),
        ("client submits / client counts jobs / response lost", "client timeout"),
    ],
)  # fmt: skip
def test_the_answer_of_a_step_in_a_few_words(schedule: str, answer: str) -> None:
    assert rows_of(schedule)[-1].answer == answer


def test_after_its_last_attempt_a_worker_that_may_not_retry_can_only_say_that_it_failed() -> None:
    lose = "A claims next / A retries error=e / "
    rows = rows_of(f"client submits / {lose * 3}A succeeds / A fails / client polls")
    refused, instead, failed, polled = rows[-4:]
    assert (refused.answer, refused.refused_by) == ("refused", "attempts_left")
    assert instead.note == "A has failed and says so"
    assert (failed.answer, polled.answer) == ("accepted", "200; state FAILED; attempt 3; error e")


def test_a_job_without_attempts_left_is_given_up_by_the_sweeper() -> None:
    rows = rows_of("client submits" + " / A claims next / A crashes / 100 units pass / sweep" * 3)
    assert rows[-1].answer == "job-1 given up"
    rows = rows_of("client submits" + " / A claims next / A crashes / 100 units pass / S looks / S requeues" * 3)
    assert (rows[-1].answer, rows[-1].state) == ("accepted", State.FAILED)


def test_a_row_tells_who_did_what_to_which_job_and_how_the_jobs_stand_after_it() -> None:
    submitted, claimed, waited, reported = rows_of("client submits / A claims next / 3 units pass / x: A succeeds late")
    assert (submitted.n, submitted.at, submitted.actor, submitted.outcome) == (1, 0, "client", "accepted")
    assert (claimed.job, claimed.names, claimed.state, claimed.attempt) == ("job-1", 1, "RUNNING", 1)
    assert claimed.jobs == (running.Seen("job-1", "RUNNING", 1, "A", 0, 10, False),)
    assert (waited.job, waited.state, waited.jobs) == (None, None, claimed.jobs)
    assert (reported.at, reported.label, reported.step, reported.names) == (3, "x", "A succeeds late", 1)
    assert (reported.outcome, reported.refused_by, reported.state) == ("accepted", None, "SUCCEEDED")


def test_a_refusal_names_the_rule() -> None:
    twice = rows_of("client submits / A claims next / A succeeds / A progresses late")[-1]
    assert (twice.outcome, twice.refused_by) == ("refused", "unfinished")


def test_a_late_report_can_arrive_again_and_again_and_outlives_its_worker() -> None:
    rows = rows_of("client submits / A claims next / A crashes / A succeeds late / A succeeds late")
    assert [row.answer for row in rows[-2:]] == ["accepted", "refused"]


def test_a_worker_goes_on_after_it_has_sent_progress_and_has_nothing_in_hand_after_it_has_sent_the_end() -> None:
    rows = rows_of("client submits / A claims next / A sends progress / A sends succeed / count workers running job-1")
    assert [row.outcome for row in rows[-3:]] == ["under way", "under way", "answered"]
    assert (rows[-1].answer, rows[-1].state) == ("0", "RUNNING")


def test_a_lost_response_was_carried_out_and_the_client_knows_of_no_job() -> None:
    lost, polled = rows_of("client submits / response lost / client polls")
    assert (lost.answer, lost.outcome, lost.jobs[0].id) == ("client timeout", "lost", "job-1")
    assert polled.outcome == NOT_EXERCISED


def test_a_client_that_saw_no_answer_to_its_last_poll_still_knows_the_state_before() -> None:
    rows = rows_of("client submits / client polls / response lost / client gives up")
    assert rows[-1].answer == "UNKNOWN; last seen QUEUED"
