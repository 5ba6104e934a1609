"""Is what chapter 09 shows of real processes the same each time, and do the processes always end?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobslab.job import Event, queued
from jobslab.lab import kill
from jobslab.lab.chaos.cluster import ChaosError
from jobslab.lab.kill import Service, beside, found, kept, really, until
from jobslab.stores import open_store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are POSIX's")


def event(actor: str, verb: str, attempt: int, refused_by: str | None = None) -> Event:
    return Event(0, 0, "job-1", actor, verb, attempt, int(refused_by is None), refused_by, "RUNNING", "RUNNING", None)


def told(*events: Event) -> list[tuple[str | None, str, int | None]]:
    return [(event.actor, event.verb, event.attempt) for event in kept(events)]


# What is left out


def test_renewals_and_lost_races_of_sweepers_are_left_out() -> None:
    claim, requeue = event("A", "claim", 1), event("B", "requeue", 1)
    assert told(claim, event("A", "renew", 1), event("A", "progress", 1), requeue, event("C", "requeue", 1, "x")) == [
        ("A", "claim", 1),
        ("B", "requeue", 1),
    ]


def test_of_the_refusals_of_one_attempt_the_first_is_told() -> None:
    late = event("A", "renew", 1, "current"), event("A", "renew", 1, "current"), event("A", "progress", 1, "current")
    assert told(*late, event("B", "succeed", 2)) == [("A", "renew", 1), ("B", "succeed", 2)]


def test_a_renewal_that_comes_after_its_workers_success_is_left_out() -> None:
    assert told(event("A", "succeed", 1), event("A", "renew", 1, "unfinished")) == [("A", "succeed", 1)]


@pytest.mark.parametrize(
    ("refused_by", "verdict"), [("current", "holds"), (None, "VIOLATED")], ids=["refused", "accepted"]
)
def test_a_late_report_is_judged(refused_by: str | None, verdict: str) -> None:
    events = event("A", "claim", 1), event("sweeper", "requeue", 1), event("A", "succeed", 1, refused_by)
    assert dict(found([], events))["only the current attempt's report counts"] == verdict


def test_a_job_that_is_not_over_is_found() -> None:
    waiting = queued("job-1", "export", "{}", "lab", "k", "", 3, 0, None, None, 0)
    assert dict(found([waiting], []))["every accepted job reaches a terminal state"] == "VIOLATED"


def test_without_a_late_report_nothing_is_said_of_it() -> None:
    assert dict(found([], [event("A", "succeed", 1)]))["only the current attempt's report counts"] == "not exercised"


# Waiting


def test_what_does_not_come_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill, "PATIENCE_SECONDS", 0)
    with pytest.raises(ChaosError, match="worker A did not get the job 'export'"):
        until(lambda: False, "worker A did not get the job 'export'")


# Processes


def stop_one(service: Service) -> None:
    a, b = service.workers("A", "B")
    a.begin()
    service.submit("invoice")
    a.has("invoice")
    a.send(signal.SIGSTOP)
    b.begin()
    service.a_lease_passes()
    b.has("invoice")
    a.send(signal.SIGCONT)
    a.may_finish()
    a.is_answered()
    b.may_finish()
    b.is_answered()


def test_a_worker_that_slept_is_refused_by_the_fence_and_by_nothing_else() -> None:
    fenced, unfenced = really(stop_one, "all"), really(stop_one, "all but attempt_fencing")
    assert (fenced.result("invoice"), unfenced.result("invoice")) == ("B's", "A's")
    assert fenced.poll("invoice") == unfenced.poll("invoice") == "SUCCEEDED; attempt 2"
    assert list(beside(fenced, unfenced).loc["who was refused"]) == [
        "A, attempt 1, by current",
        "B, attempt 2, by unfinished",
    ]


def test_the_processes_end_when_the_handling_raises() -> None:
    pids: list[int] = []

    def interrupted(service: Service) -> None:
        (worker,) = service.workers("A")
        pids.extend([service.server.pid, worker.process.pid])
        worker.process.send_signal(signal.SIGSTOP)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        really(interrupted)
    assert not any(map(alive, pids))


KERNEL = """
import os, signal, sys
from pathlib import Path
from jobslab.lab.kill import Service
service = Service(sys.argv[1], Path(sys.argv[2]))
service.client
stopped, at_work = service.workers("A", "B")
service.submit("export")
stopped.begin()
stopped.has("export")
stopped.send(signal.SIGSTOP)
print(service.server.pid, stopped.process.pid, at_work.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_processes_end_with_their_kernel_a_stopped_one_too(tmp_path: Path) -> None:
    open_store(None, str(tmp_path / "jobs.db")).close()
    command = [sys.executable, "-c", KERNEL, str(tmp_path / "jobs.db"), str(tmp_path)]
    # a session of its own, as a kernel has
    killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, start_new_session=True)
    pids = [int(pid) for pid in killed.stdout.split()]
    assert (killed.returncode, len(pids)) == (-signal.SIGKILL, 3)
    enough = time.monotonic() + 30
    while any(map(alive, pids)):
        assert time.monotonic() < enough, "they outlive their kernel"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Does it run?  A zombie, which nobody has waited for yet, does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state != "" and not state.startswith("Z")
