"""Rules K1 to K7: what a trace tells the owner, and what it leaves out."""

from pathlib import Path
from typing import Any

import pytest

from jobslab import stage
from jobslab.cause import BY_NAME
from jobslab.job import STATES, State
from jobslab.web.documents import TraceDocument
from tests.http.room import ALICE, BOB, BROKEN, EXPORT, TWO, Room, bearer, problem, room


def trace(lab: Room, id: str, **headers: str) -> dict[str, Any]:
    response = lab.http.get(f"/jobs/{id}/trace", headers=headers)
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    told = response.json()
    assert TraceDocument.model_validate(told).model_dump(mode="json") == told
    return dict(told)


def answers(told: dict[str, Any]) -> list[str]:
    return [answer["answer"] for answer in told["questions"]]


def done(lab: Room) -> tuple[str, Path]:
    """An export that is done, and its file."""
    id = lab.submitted(EXPORT)
    lab.work()
    return id, lab.results / lab.get(id).json()["result"]["file"]


@pytest.mark.parametrize("state", STATES)
def test_k1_a_trace_is_200_in_every_state_and_answers_the_three_questions(lab: Room, state: str) -> None:
    steps = {State.QUEUED: "queued", State.RUNNING: "running", State.SUCCEEDED: "landed"}
    told = trace(lab, lab.in_state(state))
    assert answers(told)[:2] == ["YES", steps.get(State(state), "done")]
    results = {State.SUCCEEDED: "LANDED", State.FAILED: "NONE", State.CANCELLED: "NONE"}
    assert answers(told)[2] == results.get(State(state), "NOT YET")


def test_k1_its_cause_and_its_stages_are_published(lab: Room) -> None:
    told = trace(lab, lab.submitted())
    schemas = lab.app.openapi()["components"]["schemas"]
    assert told["cause"] in BY_NAME
    assert all(name in schemas["TraceDocument"]["properties"]["cause"]["description"] for name in BY_NAME)
    published = schemas["Reached"]["properties"]["stage"]["enum"]
    assert [one["stage"] for one in told["stages"]] == published == list(stage.NAMES)


def test_k2_it_looks_at_the_result_itself(lab: Room) -> None:
    id, file = done(lab)
    assert trace(lab, id)["cause"] == "landed"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    assert trace(lab, id)["cause"] == "result-damaged"
    file.unlink()
    told = trace(lab, id)
    assert (told["cause"], answers(told)) == ("result-gone", ["YES", "done", "ABSENT"])


def test_k3_a_file_that_no_report_tells_of_is_told(lab: Room) -> None:
    id = lab.in_state(State.FAILED)
    (lab.results / f"{id}.1.csv").write_text("a\r\n1\r\n")
    assert trace(lab, id)["cause"] == "unreported"


def test_k4_it_tells_the_owner_what_an_owner_can_do(lab: Room) -> None:
    id = lab.submitted()
    lab.store.claim(id, "A", now=lab.clock.now())
    lab.clock.advance(lab.store.settings.lease_seconds + 1)
    told = trace(lab, id)
    assert told["cause"] == "lease-over"
    assert "jobslab sweep" not in told["sentence"]
    assert told["next"] in told["sentence"]


def test_k5_it_names_no_worker_and_no_place(lab: Room) -> None:
    id = lab.submitted()
    lab.store.claim(id, "worker-on-host-77", now=lab.clock.now())
    lab.store.succeed(id, 1, "worker-on-host-77", {"file": "../../etc/passwd", "rows": 1}, now=lab.clock.now())
    text = lab.http.get(f"/jobs/{id}/trace").text
    assert "host-77" not in text
    assert str(lab.results) not in text
    assert "/etc" not in text


def test_k6_its_journal_has_each_change_and_each_refusal(lab: Room) -> None:
    id = lab.in_state(State.SUCCEEDED)
    assert not lab.report("fail", id, BROKEN)
    lines = trace(lab, id)["journal"]
    assert [(line["verb"], line["accepted"]) for line in lines] == [
        ("submit", True),
        ("claim", True),
        ("succeed", True),
        ("fail", False),
    ]
    assert lines[-1]["refused_by"] == "unfinished"
    assert lines[0]["at"] == lab.get(id).json()["created_at"]


def test_k6_a_journal_that_was_changed_by_hand_is_not_believed(lab: Room) -> None:
    id = lab.in_state(State.SUCCEEDED)
    with lab.store.database.write() as db:
        db.execute("DELETE FROM events WHERE verb = 'claim'")
    told = trace(lab, id)
    assert (told["cause"], told["verdict"]) == ("journal", "UNKNOWN")
    assert answers(told)[1] == "UNKNOWN"


def test_k7_a_job_that_expires_while_one_looks_is_410(lab: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    id = lab.in_state(State.SUCCEEDED)
    events_of = lab.store.events_of

    def purged_meanwhile(id: str) -> Any:
        lab.clock.advance(lab.store.settings.retention_seconds)
        lab.store.purge(now=lab.clock.now())
        return events_of(id)

    monkeypatch.setattr(lab.store, "events_of", purged_meanwhile)
    assert problem(lab.http.get(f"/jobs/{id}/trace")) == "job-expired"


def test_k7_a_trace_of_another_owners_job_is_404_and_names_nobody(tmp_path: Path) -> None:
    with room(tmp_path, tokens=TWO) as two:
        id = two.submitted(**bearer(ALICE))
        response = two.http.get(f"/jobs/{id}/trace", headers=bearer(BOB))
        assert problem(response) == "no-such-job"
        assert "alice" not in response.text
        assert trace(two, id, **bearer(ALICE))["cause"] == "waiting"
