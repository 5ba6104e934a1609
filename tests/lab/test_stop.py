"""Is a process that is stopped never in the middle of a write?"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobslab.contract import Contract
from jobslab.lab import stop
from jobslab.lab.chaos.run import a_new_store
from jobslab.lab.child import LabError
from jobslab.lab.postgres import a_store
from jobslab.lab.stop import others_can_write, stop_between_writes
from tests import postgres

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are POSIX's")

# It is in the middle of a write until it is woken once.
WRITER = """
import signal, sys, time
from jobslab.stores import open_store
woken = []
signal.signal(signal.SIGCONT, lambda *_: woken.append(True))
with open_store(None, sys.argv[1]) as store:
    with store.database.write() as db:
        db.execute("UPDATE jobs SET state = state")
        print("writing", flush=True)
        while not woken:
            time.sleep(0.001)
    signal.pause()
"""


def state_of(process: "subprocess.Popen[Any]") -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(process.pid)], capture_output=True, text=True).stdout


def is_stopped_between_writes(url: str) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == "writing\n"
        assert not others_can_write(url)
        stop_between_writes(writer, url)
        assert others_can_write(url)
        assert state_of(writer).startswith("T")
    finally:
        writer.kill()
        writer.communicate()


def test_a_process_that_writes_is_stopped_when_it_has_written(tmp_path: Path) -> None:
    with a_new_store("sqlite", Contract(), tmp_path) as (url, _):
        is_stopped_between_writes(url)


def test_so_is_one_that_writes_to_postgresql(tmp_path: Path) -> None:
    with a_store(postgres.server_url(), postgres.schema_name(tmp_path), Contract()) as url:
        is_stopped_between_writes(url)


def test_a_process_that_has_ended_is_not_stopped(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(LabError, match="it has ended"):
        stop_between_writes(ended, str(tmp_path / "jobs.db"))


def test_one_that_is_always_met_in_a_write_is_given_up_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "TRIES", 2)
    monkeypatch.setattr(stop, "others_can_write", lambda url: False)
    writer = subprocess.Popen(["sleep", "1000"])
    try:
        with pytest.raises(LabError, match="see whether the store can be written"):
            stop_between_writes(writer, str(tmp_path / "jobs.db"))
        assert not state_of(writer).startswith("T")
    finally:
        writer.kill()
        writer.wait()
