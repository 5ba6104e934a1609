"""D3, D5: what a worker process can still do when its job was given to another, or is over."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobslab import open_store
from jobslab.effects import Ledger
from jobslab.job import Event, State
from jobslab.lab.stop import stop_between_writes
from tests.http.real import serving
from tests.http.test_races import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.name != "posix", reason="the signals are POSIX's")]

# A worker that writes a line, and reports, again and again; in the folder lies a file `go` when it may finish, and then
# it has an effect.
WORKER = """
import sys, time
from dataclasses import replace
from pathlib import Path
from jobslab import open_store
from jobslab.effects import Ledger
from jobslab.loop import work
from jobslab.settings import SERVICE

folder, name = Path(sys.argv[1]), sys.argv[2]
ledger = Ledger(folder / "effects.db")

def export(job):
    while not (folder / "go").exists():
        with (folder / "lines").open("a") as lines:
            print(name, job.id, time.time(), file=lines)
        time.sleep(0.02)
        yield 0.5
    ledger.once(job, name)
    return {"made by": name}

with open_store(None, str(folder / "jobs.db"), settings=replace(SERVICE, lease_seconds=1)) as store:
    for _ in work(store, name, {"export": export}, stop=lambda: False):
        pass
"""


@contextmanager
def working(folder: Path, name: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The worker of this name; it is killed in the end."""
    process = subprocess.Popen([sys.executable, "-c", WORKER, str(folder), name])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def journal(folder: Path, id: str) -> list[Event]:
    with open_store(None, str(folder / "jobs.db")) as store:
        return [event for event in store.events() if event.job_id == id]


def lines(folder: Path, of: str) -> int:
    """How many lines this worker has written, or the workers of this job."""
    file = folder / "lines"
    return file.read_text().split().count(of) if file.exists() else 0


def test_d3_a_worker_that_slept_overwrites_nothing_and_its_effect_is_not_done_again(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "--lease-seconds", "1") as server,
        server.client() as client,
        working(tmp_path, "A") as first,
    ):
        id = client.submit("export", {"table": "orders"}).id
        wait_until(lambda: lines(tmp_path, "A") > 0)
        stop_between_writes(first, str(tmp_path / "jobs.db"))
        with working(tmp_path, "B"):
            wait_until(lambda: lines(tmp_path, "B") > 0)
            (tmp_path / "go").touch()
            assert client.wait(id, 60).verdict == "SUCCEEDED"
        before = client.get(id).body
        first.send_signal(signal.SIGCONT)
        wait_until(lambda: any(event.actor == "A" and not event.accepted for event in journal(tmp_path, id)))
        assert client.get(id).body == before
    over = [event for event in journal(tmp_path, id) if event.accepted and event.state_after == State.SUCCEEDED]
    assert [(event.actor, event.state_before, event.attempt) for event in over] == [("B", State.RUNNING, 2)]
    assert [entry[1:3] for entry in Ledger(tmp_path / "effects.db").entries()] == [(2, "B")]


def test_d5_where_a_job_is_over_its_work_has_stopped(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.client() as client, working(tmp_path, "A"):
        id = client.submit("export", {"table": "orders"}).id
        wait_until(lambda: lines(tmp_path, id) > 5)
        client.cancel(id)
        assert client.wait(id, 60).verdict == "CANCELLED"
        other = client.submit("export", {"table": "orders"}).id
        wait_until(lambda: lines(tmp_path, other) > 5)  # the worker lives, and has had time to do what it should not
    with open_store(None, str(tmp_path / "jobs.db")) as store:
        over = {row.id: row.finished_at for row in store.rows()}[id]
    written = [line.split() for line in (tmp_path / "lines").read_text().splitlines()]
    last = max(float(at) for _, job, at in written if job == id)
    assert last <= over + MILLISECOND


MILLISECOND = 0.001  # the database's clock is no finer
