"""How does a test get at a service whose processes can be killed?  `serving` starts `jobslab serve` as a user does."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from jobslab.client import JobClient

JOBSLAB = [sys.executable, "-W", "error", "-c", "from jobslab.cli import main; main()"]


class Server:
    """A running service: its address, its process, its store file."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, file: Path) -> None:
        self.process, self.url, self.file = process, url, file

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def http(self, **options: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=30, trust_env=False, **options)

    def client(self, **options: Any) -> JobClient:
        return JobClient(self.url, **options)

    def kill(self) -> None:
        """SIGKILL: it has no time to tidy up."""
        self.process.kill()
        self.process.wait()

    def raw(self, request: bytes) -> bytes:
        """The answer to bytes that no client library would send; they ask for the connection to be closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as line:
            line.sendall(request)
            return b"".join(iter(lambda: line.recv(65536), b""))


def left_in(folder: Path) -> dict[str, str]:
    """The environment of a process whose temporary files are gone with this folder, even if it is killed."""
    return os.environ | {"TMPDIR": str(folder)}


@contextmanager
def serving(folder: Path, *options: str, port: int = 0, command: list[str] = JOBSLAB) -> Iterator[Server]:
    """A service on the store file `jobs.db` of this folder; it is ended, if need be, by SIGTERM."""
    file = folder / "jobs.db"
    arguments = [*command, "serve", "--port", str(port), "--store", str(file), *options]
    log = (folder / "server.log").open("a")
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, env=left_in(folder)
    )
    assert process.stdout
    try:
        banner = process.stdout.readline()
        address = re.search(r"http://[^ ]+", banner)
        assert address, f"no banner: {(folder / 'server.log').read_text()}"
        yield Server(process, address[0], file)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        log.close()


@contextmanager
def working(folder: Path, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker process on the same file."""
    command = [*JOBSLAB, "work", "--store", str(folder / "jobs.db"), *options]
    with (folder / "worker.log").open("a") as log:
        process = subprocess.Popen(command, stderr=log, start_new_session=True, env=left_in(folder))
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
