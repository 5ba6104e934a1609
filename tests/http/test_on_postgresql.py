"""The service as a user runs it on PostgreSQL: migrate, serve, work; and what is said while the database is away."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobslab.lab.postgres import a_server, a_store
from tests import postgres
from tests.http.real import serving


def test_a_job_is_submitted_done_and_downloaded(tmp_path: Path) -> None:
    with a_store(postgres.server_url(), f"http_{tmp_path.name}") as url:
        options = ["--store", url, "--results", str(tmp_path / "results"), "--workers", "1"]
        with serving(tmp_path, *options) as server, server.client() as client:
            job = client.submit("export", {"table": "orders"}, "key")
            assert client.wait(job.id, 60).verdict == "SUCCEEDED"
            downloaded = client.download(job.id, tmp_path)
            assert client.submit("export", {"table": "orders"}, "key").id == job.id
    assert downloaded.read_bytes().count(b"\n") == 4001
    log = (tmp_path / "server.log").read_text()
    assert "Traceback" not in log
    assert "postgresql://" not in log


@pytest.mark.long
def test_while_the_database_is_away_the_service_says_so_and_goes_on_afterwards(tmp_path: Path) -> None:
    with a_server() as own, a_store(own.url, "jobs") as url:
        options = ["--store", url, "--results", str(tmp_path / "results"), "--workers", "2", "--lease-seconds", "1"]
        with serving(tmp_path, *options) as server, server.http() as http, server.client() as client:
            before = client.submit("export", {"table": "orders"}, "before")
            own.stop()
            answer = http.get(f"/jobs/{before.id}")
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems/store-unavailable")
            assert soon(lambda: "trying again" in (tmp_path / "server.log").read_text()), "no worker has met it"
            own.start()
            after = client.submit("export", {"table": "orders"}, "after")
            for job in (before, after):
                assert client.wait(job.id, 120).verdict == "SUCCEEDED"
        assert "Traceback" not in (tmp_path / "server.log").read_text()


def soon(happens: Callable[[], bool]) -> bool:
    """Does it happen within a minute?"""
    give_up = time.monotonic() + 60
    while not happens() and time.monotonic() < give_up:
        time.sleep(0.05)
    return happens()
