"""B14, D1, D2: what is left when a process is killed with SIGKILL, and what is not where the clause is off."""

import sys
from pathlib import Path

import pytest

from jobslab import open_store
from jobslab.client import NoAnswer
from tests.http.real import Server, serving, working
from tests.http.test_races import wait_until

pytestmark = pytest.mark.long

# `jobslab serve` that kills itself when the answer to a POST is about to leave: what it has committed is committed.
DYING = """
import os, signal
from jobslab import api

def dying(*arguments, make=api.create_app, **options):
    app = make(*arguments, **options)

    async def served(scope, receive, send):
        async def last_word(message):
            if scope.get("method") == "POST":
                os.kill(os.getpid(), signal.SIGKILL)
            await send(message)

        await app(scope, receive, last_word)

    return served

api.create_app = dying
from jobslab.cli import main
main()
"""


def killed_at_its_answer(folder: Path, *options: str) -> str:
    """The id of the job that a server has committed and not told of."""
    with serving(folder, *options, command=[sys.executable, "-c", DYING]) as server:
        with server.client() as client, pytest.raises(NoAnswer) as lost:
            client.submit_once("export", {"table": "orders"}, "k")
        assert not lost.value.definite
        assert server.process.wait(60) == -9
    with open_store(None, str(server.file)) as store:
        (job,) = store.rows()
    return job.id


def test_b14_the_key_finds_the_job_of_a_server_that_was_killed_before_its_answer(tmp_path: Path) -> None:
    first = killed_at_its_answer(tmp_path)
    with serving(tmp_path) as server, server.client() as client:
        accepted = client.submit("export", {"table": "orders"}, "k")
        assert (accepted.id, accepted.replayed) == (first, True)
        assert len(client.list().body["jobs"]) == 1


def test_b14_without_the_key_there_are_two_jobs(tmp_path: Path) -> None:
    first = killed_at_its_answer(tmp_path, "--without", "idempotency_key")
    with serving(tmp_path) as server, server.client() as client:
        accepted = client.submit("export", {"table": "orders"}, "k")
        assert {job["id"] for job in client.list().body["jobs"]} == {first, accepted.id}
        assert first != accepted.id


def test_b14_without_persistence_the_first_job_is_gone(tmp_path: Path) -> None:
    first = killed_at_its_answer(tmp_path, "--without", "persistence")
    with serving(tmp_path) as server, server.client() as client:
        accepted = client.submit("export", {"table": "orders"}, "k")
        assert (accepted.id != first, accepted.replayed) == (True, False)
        assert client.get(first).status == 404


@pytest.mark.parametrize(("options", "status"), [([], 200), (["--without", "persistence"], 404)])
def test_d2_a_job_is_there_after_its_server_was_killed(tmp_path: Path, options: list[str], status: int) -> None:
    with serving(tmp_path, *options) as server, server.client() as client:
        id = client.submit("export", {"table": "orders"}).id
        server.kill()
    with serving(tmp_path) as server, server.client() as client:
        assert client.get(id).status == status


def state_of(server: Server, id: str) -> str:
    with server.client() as client:
        return client.get(id).body["state"]


@pytest.mark.parametrize(("options", "verdict"), [([], "SUCCEEDED"), (["--without", "leases"], "UNKNOWN")])
def test_d1_the_job_of_a_worker_that_was_killed_is_done_by_another(
    tmp_path: Path, options: list[str], verdict: str
) -> None:
    lease = ["--lease-seconds", "1"]
    with serving(tmp_path, *lease, *options) as server, server.client() as client:
        with working(tmp_path, *lease) as first:
            id = client.submit("wait", {"seconds": 2, "chunks": 20}).id
            wait_until(lambda: state_of(server, id) == "RUNNING")
            first.kill()
        with working(tmp_path, *lease):
            outcome = client.wait(id, 60 if verdict == "SUCCEEDED" else 5)
        assert outcome.verdict == verdict
        assert outcome.job
        assert outcome.job["attempt"] == (2 if verdict == "SUCCEEDED" else 1)


def test_the_workers_beside_a_server_that_was_killed_end_too(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "1") as server:
        log = tmp_path / "server.log"
        wait_until(lambda: "takes jobs from" in log.read_text())
        server.kill()
        wait_until(lambda: "has ended" in log.read_text())
