"""What runs, and how is each fault done to it?  One server and some workers as processes, on one store.

A worker is killed or stopped while it has a job in hand; the store says when.  What was killed is started again at
once, as whoever runs a service would have it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from jobslab.errors import JobslabError, StoreError
from jobslab.lab.chaos.plan import CRASH_DATABASE, CUT_DATABASE, KILL_SERVER, KILL_WORKER, STOP_WORKER, WORKERS, Fault
from jobslab.lab.postgres import Server
from jobslab.stores import Store, is_postgresql, open_store

LEASE_SECONDS = 2
PATIENCE_SECONDS = 60  # until a process is up, or a worker has a job in hand
QUIET_SECONDS = 5 * LEASE_SECONDS  # without any change: then there will be none
TRIES = 20  # to stop a worker in the middle of a job
ONE_HOUR = 3600

# `jobslab serve`, as a user starts it; and it ends when this process does.
SERVE = "from jobslab.lab.chaos.worker import end_with; end_with({parent}); from jobslab.cli import main; main()"


class ChaosError(JobslabError):
    """The run could not be carried through; it says nothing about the contract."""


def start_server(url: str, folder: Path, log: IO[str], lease_seconds: float, port: int = 0) -> "subprocess.Popen[str]":
    """`jobslab serve` on this store, its results and its log in the folder; `address` waits until it listens."""
    options = {"store": url, "results": folder, "port": port, "lease-seconds": lease_seconds}
    command = [sys.executable, "-P", "-c", SERVE.format(parent=os.getpid()), "serve"]
    command += [f"--{name}={value}" for name, value in options.items()]
    # What it leaves of itself when it is killed goes with the folder.
    env = os.environ | {"TMPDIR": str(folder)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, process_group=0, env=env)


def address(server: "subprocess.Popen[str]", folder: Path) -> str:
    """Where it listens, as soon as it does.  Raises ChaosError if it does not start."""
    assert server.stdout is not None
    banner = server.stdout.readline()
    if "http://" not in banner:
        raise ChaosError(f"the server does not start; its log says: {last_words(folder)}")
    return "http://" + banner.split("http://")[1].split()[0]


def last_words(folder: Path) -> str:
    lines = (folder / "log").read_text(encoding="utf-8").splitlines()
    return lines[-1] if lines else "nothing"


class Cluster:
    """The processes of one run; `end` them, whatever happens."""

    def __init__(self, url: str, folder: Path, database: Server | None) -> None:
        self.url, self.folder, self.database = url, folder, database
        self.ledger = folder / "effects.db"
        self.store: Store = open_store(None, url)
        self.port = 0
        self.starts = [0] * WORKERS
        self._started: list[subprocess.Popen[str]] = []
        self._log: IO[str] = (folder / "log").open("w", encoding="utf-8")
        try:
            self.server = self._serve()
            self.workers = [self._work(who) for who in range(WORKERS)]
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        for process in self._started:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._started:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()
        self._log.close()
        self.store.close()

    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # Starting

    def _serve(self) -> "subprocess.Popen[str]":
        """The server, again at the port that it had, when it listens."""
        process = start_server(self.url, self.folder, self._log, LEASE_SECONDS, self.port)
        self._started.append(process)
        self.port = int(address(process, self.folder).rsplit(":", 1)[1])
        return process

    def _work(self, who: int) -> "subprocess.Popen[str]":
        """A worker with a name of its own; on PostgreSQL the first one's clock is an hour off."""
        self.starts[who] += 1
        told = {
            "url": self.url,
            "name": self.name(who),
            "lease_seconds": LEASE_SECONDS,
            "ledger": str(self.ledger),
            "parent": os.getpid(),
            "clock_off": ONE_HOUR if who == 0 and is_postgresql(self.url) else 0,
        }
        command = [sys.executable, "-P", "-m", "jobslab.lab.chaos.worker", json.dumps(told)]
        process = subprocess.Popen(command, stderr=self._log, text=True)
        self._started.append(process)
        return process

    def name(self, who: int) -> str:
        return f"worker {who}, start {self.starts[who]}"

    # Faults: each says whether it was done as it was meant

    def do(self, fault: Fault) -> bool:
        return FAULTS[fault.what](self, fault)

    def kill_worker(self, fault: Fault) -> bool:
        held = self.in_hand(fault.who)
        self.workers[fault.who].kill()
        killed = self.workers[fault.who].wait() == -signal.SIGKILL
        self.workers[fault.who] = self._work(fault.who)
        return killed and held is not None

    def kill_server(self, fault: Fault) -> bool:
        self.server.kill()
        killed = self.server.wait() == -signal.SIGKILL
        self.server = self._serve()
        return killed

    def stop_worker(self, fault: Fault) -> bool:
        """Until another has its job in hand, or for long enough that this could have been."""
        held, worker = self.stopped_at_work(fault.who), self.workers[fault.who]
        began = time.monotonic()
        while held and time.monotonic() < began + 4 * LEASE_SECONDS and not self.taken_over(*held):
            time.sleep(0.02)
        worker.send_signal(signal.SIGCONT)
        return held is not None

    def stopped_at_work(self, who: int) -> tuple[str, int] | None:
        """The job that the worker has in hand now that it is stopped; None: it is never met at work."""
        for _ in range(TRIES):
            held = self.in_hand(who)
            self.workers[who].send_signal(signal.SIGSTOP)
            if held and not self.taken_over(*held):
                return held
            self.workers[who].send_signal(signal.SIGCONT)  # it was just done with it
        return None

    def cut_database(self, fault: Fault) -> bool:
        assert self.database is not None
        self.database.stop()
        self.database.start()
        return True

    def crash_database(self, fault: Fault) -> bool:
        assert self.database is not None
        self.database.crash()
        self.database.start()
        return True

    # What the store says

    def in_hand(self, who: int) -> tuple[str, int] | None:
        """The job and the attempt that this worker has in hand, as soon as it has one; None: it gets none."""
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE_SECONDS:
            if self.workers[who].poll() is not None:  # it found no database when it started
                self.workers[who] = self._work(who)
            rows = self.ask(
                "SELECT id, attempt FROM jobs WHERE state = 'RUNNING' AND worker = :worker", worker=self.name(who)
            )
            if rows:
                return rows[0]
            time.sleep(0.02)
        return None

    def taken_over(self, id: str, attempt: int) -> bool:
        """Is this attempt over, and not since it went back to the queue?"""
        row = self.ask("SELECT state, attempt FROM jobs WHERE id = :id", id=id)
        return not row or row[0] not in (("QUEUED", attempt), ("RUNNING", attempt))

    def waiting(self) -> int:
        return int(self.ask("SELECT count(*) FROM jobs WHERE state = 'QUEUED'")[0][0])

    def settle(self) -> None:
        """Wait until no job is left to do, or until nothing changes any more."""
        before, changed = None, time.monotonic()
        while time.monotonic() < changed + QUIET_SECONDS:
            [now] = self.ask(
                "SELECT (SELECT count(*) FROM jobs WHERE state = 'QUEUED' OR state = 'RUNNING'), max(n) FROM events"
            )
            if not now[0]:
                return
            if now != before:
                before, changed = now, time.monotonic()
            time.sleep(0.1)

    def ask(self, sql: str, **p: object) -> list[tuple]:
        """The rows, asked for again while the database is away."""
        began = time.monotonic()
        while True:
            try:
                with self.store.database.read() as db:
                    return [tuple(row) for row in db.execute(sql, p)]
            except StoreError:
                if time.monotonic() > began + PATIENCE_SECONDS:
                    raise
                time.sleep(0.1)


FAULTS: dict[str, Callable[[Cluster, Fault], bool]] = {
    KILL_WORKER: Cluster.kill_worker,
    KILL_SERVER: Cluster.kill_server,
    STOP_WORKER: Cluster.stop_worker,
    CUT_DATABASE: Cluster.cut_database,
    CRASH_DATABASE: Cluster.crash_database,
}
