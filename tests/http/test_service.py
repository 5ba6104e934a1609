"""The commands as a user meets them: what is refused in one sentence, and a whole life of a service and its jobs."""

import re
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from jobslab import Contract, open_store
from jobslab.cli import main
from jobslab.commands.service import ServeError, banner, check_reach, listen, results_of, same_place
from jobslab.contract import FLAGS
from tests.http.real import Server, serving
from tests.http.room import ALICE, BOB, bearer

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """One service for this file, with a worker and two owners."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "tokens").write_text(f"alice {ALICE}\nbob {BOB}\n")
    (folder / "tokens").chmod(0o600)
    with serving(folder, "--workers", "1", "--tokens", str(folder / "tokens")) as running:
        yield running


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """What a user gets who types a command in an empty folder: the exit code, what is said, and of what is wrong."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jobslab", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return command


REFUSED = {
    "a port in use": (["--port", "PORT"], r"can't listen on 127\.0\.0\.1:\d+ \(Address already in use\); choose"),
    "the world without tokens": (["--host", "0.0.0.0"], "without --tokens anybody could use the service at 0.0.0.0"),
    "a name without tokens": (["--host", "example.com"], "without --tokens anybody"),
    "no token file": (["--tokens", "nothing.txt"], "the file of tokens nothing.txt can't be read: No such file"),
    "a token file for all": (["--tokens", "open.txt"], "chmod 600 open.txt"),
    "PostgreSQL without a place": (["--store", "postgresql://localhost/jobs"], "on PostgreSQL give --results DIR"),
    "no PostgreSQL": (["--store", "postgresql://me:pw@127.0.0.1:1/a", "--results", "r"], r"'a' at 127.0.0.1 can't be"),
    "an unknown flag": (["--without", "lease"], "there is no flag 'lease'; the five flags are idempotency_key"),
    "no data": (["--data", "nothing.csv"], "there is no file nothing.csv"),
    "a lease of no time": (["--lease-seconds", "0"], "--lease-seconds is from 0.1 to 86400, not 0.0"),
    "a lease that is no number": (["--lease-seconds", "nan"], "--lease-seconds is from 0.1 to 86400, not nan"),
    "another database": (["--store", "other.db"], "is a database of something else"),
    "another contract": (["--store", "made.db", "--without", "leases"], "was made under the contract 'all'"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_not_be_served_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, server: Server, typed: Command, what: str
) -> None:
    (tmp_path / "open.txt").write_text(f"alice {ALICE}\n")
    (tmp_path / "open.txt").chmod(0o644)
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE something (a)")
    open_store(Contract(), str(tmp_path / "made.db")).close()
    before = sorted(path.name for path in tmp_path.iterdir())
    options, says = REFUSED[what]
    code, said, wrong = typed("serve", "--port", "0", *[o.replace("PORT", str(server.port)) for o in options])
    assert (code, said) == (2, "")
    assert re.search(rf"\Ajobslab: [^\n]*{says}[^\n]*\n\Z", wrong)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_loopback_address_needs_no_tokens_and_any_other_does() -> None:
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        check_reach(host, has_tokens=False)
    for host in ("0.0.0.0", "::", "192.168.0.1", "example.com", "", "127.0.0.1.example.com"):
        check_reach(host, has_tokens=True)
        with pytest.raises(ServeError, match="anybody could use"):
            check_reach(host, has_tokens=False)


def test_the_listening_socket_is_named_tcp_so_that_answers_are_not_delayed() -> None:
    """asyncio sets TCP_NODELAY on what is accepted only where the protocol is named."""
    with listen("127.0.0.1", 0) as made:
        assert made.proto == socket.IPPROTO_TCP


def test_a_host_that_is_none_is_refused_in_a_sentence() -> None:
    with pytest.raises(ServeError, match="can't be used"):
        listen("no such host", 0)
    with pytest.raises(ServeError, match="can't listen on 198"):
        listen("198.51.100.1", 0)  # RFC 5737: an address of nobody


def test_the_options_of_another_worker_name_the_same_place_and_no_password() -> None:
    assert same_place("a.db", None) == "--store a.db"
    assert same_place("a.db", Path("out")) == "--store a.db --results out"
    assert same_place("postgresql://u:secret@h/d", Path("out")) == "--store URL --results out"


def test_a_directory_of_results_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with pytest.raises(ServeError, match="plain is no directory"):
        results_of("a.db", tmp_path / "plain")


def test_the_banner_tells_which_contract_is_in_force() -> None:
    whole = banner(("127.0.0.1", 8202), "jobs.db", Contract(), None, 0, "--store jobs.db --results out")
    assert "http://127.0.0.1:8202" in whole
    assert "all five clauses are in force" in whole
    assert "jobslab work --store jobs.db --results out" in whole
    assert "!!!" not in whole
    for flag in FLAGS:
        broken = banner(("::1", 8202, 0, 0), "jobs.db", Contract().without(flag), 2, 1, "")
        assert f"!!!       without {flag}: " in broken
        assert "BROKEN ON PURPOSE" in broken
        assert "http://[::1]:8202" in broken


@pytest.fixture
def alice(server: Server, typed: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, for one who has named the service and her token in the environment."""
    monkeypatch.setenv("JOBSLAB_URL", server.url)
    monkeypatch.setenv("JOBSLAB_TOKEN", ALICE)
    return typed


def test_a_life_of_a_job_in_a_shell(server: Server, alice: Command, tmp_path: Path) -> None:
    code, said, _ = alice("submit", "export", "--table", "orders", "--key", "k1")
    id, url = said.split()
    assert (code, url) == (0, f"{server.url}/jobs/{id}")
    code, said, _ = alice("watch", id)
    assert (code, said.split()[0]) == (0, "SUCCEEDED")
    code, said, noted = alice("submit", "export", "--table", "orders", "--key", "k1")
    assert (code, said, noted) == (0, f"{id} {url}\n", "this key has made the job before\n")
    assert alice("download", url) == (0, f"{id}.csv\n", "")
    assert len((tmp_path / f"{id}.csv").read_text().splitlines()) > 4000
    assert alice("cancel", id) == (0, "SUCCEEDED attempt 1\n", "")
    assert re.search(rf"(?m)^{id}  export +SUCCEEDED +1 +100%  2", alice("jobs", "--all")[1])
    code, said, wrong = alice("submit", "export", "--table", "other", "--key", "k1")
    assert (code, said, "belongs to another job" in wrong) == (2, "", True)


def test_a_watch_of_a_failure_is_1_and_of_what_is_not_known_in_time_3(alice: Command) -> None:
    failing = alice("submit", "export", "--table", "nosuch")[1].split()[0]
    code, told, _ = alice("watch", failing)
    assert (code, told.split(" (")[0]) == (1, "FAILED: source table missing: the source has no table 'nosuch'")
    slow = alice("submit", "wait", "--params", '{"seconds": 600, "chunks": 6000}')[1].split()[0]
    code, told, _ = alice("watch", slow, "--deadline-seconds", "0")
    assert (code, "UNKNOWN: the deadline was over before the job was; last seen " in told) == (3, True)
    assert alice("cancel", slow)[0] == 0
    code, told, _ = alice("watch", slow)
    assert (code, told.split(" (")[0]) == (1, "CANCELLED: cancelled: cancelled on request")


MISTAKES = {
    "an unknown job": (["watch", "nosuch"], "No such job: there is no job 'nosuch', or it is not yours (HTTP 404)"),
    "no JSON": (["submit", "wait", "--params", "{"], "--params is no JSON"),
    "no object": (["submit", "wait", "--params", "[]"], "--params is a JSON object"),
    "an unknown kind": (["submit", "nuke"], "there is no kind of job 'nuke'"),
    "no service": (["jobs", "--url", "http://127.0.0.1:9"], "http://127.0.0.1:9/jobs: no connection could be made"),
    "no service to watch": (["watch", "x", "--url", "http://127.0.0.1:9"], "no connection could be made"),
    "a wrong token": (["jobs", "--token", "x" * 20], "Who are you?"),
    "a wrong address": (["cancel", "x", "--url", "http://lab:port"], "the address can't be read"),
    "no result yet": (["download", "x"], "No such job"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_one_sentence_and_exit_2(alice: Command, what: str) -> None:
    arguments, says = MISTAKES[what]
    code, _, wrong = alice(*arguments)
    (sentence,) = [line for line in wrong.splitlines() if line.startswith("jobslab:")]
    assert (code, says in sentence, "Traceback" in wrong) == (2, True, False)


def test_a_directory_that_can_not_be_written_is_a_mistake_too(alice: Command) -> None:
    id = alice("submit", "wait", "--params", '{"seconds": 0}')[1].split()[0]
    alice("watch", id)
    code, _, wrong = alice("download", id, "--directory", "/nothing/here")
    assert (code, wrong) == (2, "jobslab: /nothing/here can't be written: No such file or directory\n")


def test_what_no_client_would_send_is_answered_in_words(server: Server) -> None:
    auth = f"Authorization: Bearer {ALICE}\r\n"
    host = f"Host: lab\r\nConnection: close\r\n{auth}"
    with server.http(headers=bearer(ALICE)) as http:
        before = http.get("/jobs").json()
        for request, status in {
            f"GET /jobs/../jobs HTTP/1.1\r\n{host}\r\n": 404,
            f"GET /jobs/. HTTP/1.1\r\n{host}\r\n": 404,
            f"GET /jobs/%2e%2e/contract HTTP/1.1\r\n{host}\r\n": 404,
            f"GET /jobs HTTP/1.1\r\n{host}X-Long: {'x' * 64 * 1024}\r\n\r\n": 431,
            f"GET /{'x' * 100_000} HTTP/1.1\r\n{host}\r\n": 404,
            "garbage\r\n\r\n": 400,
            f"POST /jobs HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\n": 400,
            f"POST /jobs HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n": 400,
            f"POST /jobs HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n": 413,
        }.items():
            answer = server.raw(request.encode())
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
            assert b"Traceback" not in answer
        assert http.get("/jobs").json() == before


@pytest.mark.parametrize("megabytes", [2, 20])
def test_a_body_that_is_too_large_is_answered_though_it_is_not_read_to_its_end(server: Server, megabytes: int) -> None:
    with server.http(headers=bearer(ALICE) | {"Content-Type": "application/json"}) as http:
        for content in (b" " * megabytes * 1024 * 1024, iter([b" " * 65536] * megabytes * 16)):
            assert http.post("/jobs", content=content).status_code == 413
        assert http.get("/jobs").status_code == 200


@pytest.mark.long
def test_serve_ends_gracefully_with_its_workers_and_frees_its_port(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as first:
        with first.client() as client:
            id = client.submit("export", {"table": "orders"}).id
            assert client.wait(id, 60).verdict == "SUCCEEDED"
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(60) == 0
        log = (tmp_path / "server.log").read_text()
        assert log.count("has ended") == 2
        assert "Traceback" not in log
    with serving(tmp_path, port=first.port) as second:
        with second.client() as client:
            assert client.get(id).body["state"] == "SUCCEEDED"
        second.process.send_signal(signal.SIGINT)  # Ctrl-C
        assert second.process.wait(60) == 0
