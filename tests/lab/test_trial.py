"""Is a trial what it says, and are its tables and its database file those of that run?"""

import pytest

from jobslab.contract import FLAGS, Contract
from jobslab.errors import UnknownFlag
from jobslab.lab.clause import UnknownStatement, diff, sql
from jobslab.lab.scenarios import SCENARIOS, play
from jobslab.lab.schedule import BadSchedule
from jobslab.lab.trial import database, frame, jobs, journal, run, side_by_side, variants


def test_a_scenario_runs_as_one_of_its_variants_or_under_any_contract() -> None:
    assert run("restart").name == "in memory"
    assert str(run("restart", "durable, no lease").contract) == "all but leases"
    other = run("restart", "persistence")
    assert (other.name, other.title) == ("persistence", "restart")
    assert other.last.answer == "200; state RUNNING; attempt 1"
    assert run("restart", Contract.only("persistence")) == other


def test_a_schedule_runs_under_the_full_contract_if_nothing_else_is_said() -> None:
    assert run("client submits / restart").contract == Contract()
    assert run("client submits / restart", "none").last.answer == "nothing kept"


@pytest.mark.parametrize("scene", SCENARIOS, ids=lambda scene: scene.name)
def test_the_variants_are_those_of_the_scenario(scene) -> None:
    trials = variants(scene.name)
    assert [(t.name, list(t.rows)) for t in trials] == [(v.name, play(scene, v)) for v in scene.variants]


def test_a_mistake_is_a_sentence() -> None:
    with pytest.raises(BadSchedule, match="'restat' is no step"):
        run("restat")
    with pytest.raises(UnknownFlag, match="there is no flag 'lease'"):
        run("restart", "all but lease")


def test_side_by_side_has_a_line_a_labelled_step_and_a_column_a_trial() -> None:
    table = side_by_side(*variants("late progress"))
    assert list(table.columns) == ["unconditional", "only forward"]
    assert list(table.index) == ["the late report", "GET", "a second completion", "GET at the end"]
    assert table.loc["the late report", "only forward"] == "✗ attempt 1 refused: unfinished"
    unlabelled = side_by_side(run("client submits / client polls"))
    assert list(unlabelled.index) == ["1 client submits", "2 client polls"]


def test_the_rows_are_a_table_with_a_line_a_step() -> None:
    table = frame(run("client submits / 2.5 units pass"))
    assert list(table.columns) == ["t", "step", "answer", "jobs"]
    assert table.to_numpy().tolist()[1] == ["2.5", "2.5 units pass", "now 2.5", "job-1 QUEUED attempt 0"]


def test_the_database_file_holds_what_the_run_left_and_is_gone_afterwards() -> None:
    trial = run("stale worker", "checks the attempt")
    with database(trial) as db:
        assert [(row["id"], row["state"]) for row in db["jobs"].rows] == [("job-1", "SUCCEEDED")]
    table = jobs(trial, "idempotency_key")
    assert table.loc[1, "state"] == "SUCCEEDED"
    assert table.loc[1, "idempotency_key"] == ""
    told = journal(trial)
    assert list(told["verb"]) == ["submit", "claim", "requeue", "claim", "succeed", "succeed"]
    assert list(told["refused_by"]) == ["", "", "", "", "current", ""]
    assert list(told["at"]) == ["0", "0", "100", "100", "100", "100"]


def test_a_table_is_set_from_the_left() -> None:
    html = run("client submits")._repr_html_()
    assert '<td style="text-align: left">client submits</td>' in html
    assert "text-align: right" not in html


def test_the_diff_of_two_contracts_is_the_lines_that_change() -> None:
    assert str(diff("all but leases", "all", "stuck")) == (
        "--- all but leases\n+++ all\n\nstuck:\n-    AND FALSE\n+    AND lease_until <= :now"
    )


@pytest.mark.parametrize("flag", FLAGS)
def test_one_flag_changes_at_most_six_lines_of_a_statement(flag: str) -> None:
    from jobslab.contract import changed_lines

    for verb, _ in changed_lines(Contract().without(flag), Contract()):
        assert str(diff(Contract().without(flag), "all", verb)).count("\n+ ") >= 1


def test_too_much_to_look_at_or_nothing_is_refused_in_a_sentence() -> None:
    with pytest.raises(UnknownStatement, match="that is more than 6 lines; name fewer statements of: claim, renew"):
        diff("all but conditional_updates", "all")
    with pytest.raises(UnknownStatement, match="'claim' is the same under both; these differ: stuck, requeue, exhaust"):
        diff("all but leases", "all", "claim")
    with pytest.raises(UnknownStatement, match="there is no statement 'clam'; the statements are: submit, find"):
        sql("clam")
    assert str(sql("pick")).startswith("SELECT *\n  FROM jobs\n WHERE (state = 'QUEUED' AND run_at <= :now)")
