"""Is a scenario over HTTP real, and does it give the same rows?  A real server process, a real port, a real file."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from jobslab.contract import Contract
from jobslab.lab import place as places
from jobslab.lab.place import LabError, Opens, OverHTTP, Process, Spare, here, on_a_server, over_http
from jobslab.lab.running import run
from jobslab.lab.scenarios import SCENARIOS, Scenario, Variant, expected, lines, play
from jobslab.lab.schedule import parse
from jobslab.lab.server import LATE_SECONDS

VARIANTS = [(scenario, variant) for scenario in SCENARIOS for variant in scenario.variants]


@pytest.fixture(scope="module")
def http() -> Iterator[Opens]:
    with over_http() as place:
        yield place


@pytest.mark.parametrize("pair", VARIANTS, ids=lambda pair: f"{pair[0].name}, {pair[1].name}")
def test_the_rows_over_http_are_the_rows_in_process(pair: tuple[Scenario, Variant], http: Opens) -> None:
    rows = play(*pair, http)
    assert rows == play(*pair, here)
    shown = lines(*pair, rows)
    assert all(line.held for line in shown)
    assert len(shown) == len([line for line in expected() if line[:2] == (pair[0].name, pair[1].name)])


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def opened(place: object) -> OverHTTP:
    assert isinstance(place, OverHTTP)
    return place


def test_a_restart_kills_the_process_and_starts_another(http: Opens) -> None:
    with http(Contract(), None) as place:
        first = opened(place).process
        place.restart()
        assert first.ended_by == -9
        assert opened(place).process.pid != first.pid
        assert not is_there(first.pid)


def test_the_lost_answer_comes_after_the_commit_and_after_the_client_gave_up(http: Opens) -> None:
    """The client gives up first, so the answer was not there; the job is, so it was committed."""
    with http(Contract(), None) as place:
        began = time.monotonic()
        run(parse("client submits / response lost"), place)
        assert time.monotonic() - began >= places.GIVES_UP_SECONDS
        assert [job.id for job in place.store.rows()] == ["job-1"]


def test_the_next_step_waits_for_the_commit_however_early_the_client_gives_up(
    http: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "GIVES_UP_SECONDS", 0.001)
    for _ in range(3):
        with http(Contract(), None) as place:
            assert [job.id for job in run(parse("client submits / response lost"), place)[0].jobs] == ["job-1"]


def test_a_client_that_waits_gets_the_late_answer(http: Opens) -> None:
    with http(Contract(), None) as place:
        place.client.ask("POST", "/lab/late")
        began = time.monotonic()
        assert place.client.submit_once("export", {"table": "orders"}).status == 202
        assert time.monotonic() - began >= LATE_SECONDS
        assert place.client.get("job-1").status == 200


def test_a_restarted_server_goes_on_in_lab_time_and_with_the_ids(http: Opens) -> None:
    schedule = parse("client submits / 7 units pass / restart / client submits / A claims next / client counts jobs")
    with http(Contract(), None) as place:
        rows = run(schedule, place)
        assert [row.answer for row in rows[3:]] == ["202; id job-2", "job-1", "2"]
        assert [job.created_at for job in place.store.rows()] == [0, 7]


def test_the_processes_end_when_the_run_fails() -> None:
    with pytest.raises(ZeroDivisionError), over_http() as http, http(Contract(), None) as place:  # noqa: PT012
        process = opened(place).process
        assert is_there(process.pid)
        raise ZeroDivisionError
    assert not is_there(process.pid)


def test_a_server_ends_when_the_lab_is_gone(tmp_path: Path) -> None:
    """However the lab ended: its end of the pipe is closed by the system."""
    process = Process()
    address = process.serve(Contract(), str(tmp_path / "jobs.db"), 0)
    assert httpx2.get(f"{address}/jobs").status_code == 200
    process.let_go()
    assert process.ended_by == 0


def test_a_process_in_reserve_ends_too() -> None:
    spare = Spare()
    taken = spare.take()
    taken.kill()
    spare.close()
    assert not is_there(taken.pid)


def test_a_server_that_does_not_start_is_a_named_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    process = Process()
    with pytest.raises(LabError, match="the lab's server did not start"):
        process.serve(Contract(), str(tmp_path / "no" / "such" / "directory"), 0)
    process.kill()
    assert "StoreError" in capfd.readouterr().err


def test_the_file_is_where_it_was_asked_for(tmp_path: Path, http: Opens) -> None:
    path = tmp_path / "jobs.db"
    with http(Contract(), str(path)) as place:
        run(parse("client submits"), place)
    assert path.is_file()


def test_a_place_that_can_not_be_opened_starts_no_process(tmp_path: Path) -> None:
    spare = Spare()
    try:
        with (
            pytest.raises(Exception, match="can't be opened"),
            on_a_server(spare, Contract(), str(tmp_path / "no" / "x")),
        ):
            pass
    finally:
        spare.close()
