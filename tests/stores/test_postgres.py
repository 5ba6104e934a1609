"""What is promised of PostgreSQL: its clock is the clock, its troubles are one sentence, and a connection that is lost
in the middle of a change leaves nothing behind, or says that it does not know."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from jobslab import Contract
from jobslab.errors import OutcomeUnknown, StoreError
from jobslab.lab.postgres import VARIABLE, Server, a_server, a_store, execute
from jobslab.settings import LAB, SERVICE
from jobslab.stores import Store, open_store
from jobslab.stores.postgres import PostgreSQL, Session
from jobslab.stores.sql import SQLStore
from tests import postgres
from tests.stores.steps import queued, row, running

ours_alone = pytest.mark.skipif(VARIABLE in os.environ, reason="the server is not the tests' own")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with SQLStore(postgres.database(tmp_path), Contract(), settings=SERVICE) as store:
        yield store


def url_of(address: dict[str, Any]) -> str:
    return "postgresql://?" + "&".join(f"{name}={quote(str(value))}" for name, value in address.items())


def cut(store: Store) -> int:
    """Cut the connections that this store holds, as an administrator may; when they are gone, how many it were."""
    database: Any = store.database
    held = [*database._idle, *([store._connection()] if store._connection() else [])]
    with psycopg.connect(postgres.server_url()) as stranger:
        pids = [session.raw.info.backend_pid for session in held]
        stranger.execute("SELECT pg_terminate_backend(pid, 10000) FROM unnest(%s::int[]) AS pid", [pids])
    return len(held)


# Time, isolation, durability


def test_the_servers_clock_judges_and_not_the_workers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.submit("job-1", "export", {})
    right = row(store).created_at
    monkeypatch.setattr(time, "time", lambda: right + 3600)
    claimed = store.claim_next("A").job
    assert claimed.started_at - right < 600
    assert store.stuck() == ()
    assert store.renew("job-1", 1, "A").accepted


def test_one_transaction_has_one_time(store: Store) -> None:
    with store.transaction():
        store.submit("job-1", "export", {})
        store.submit("job-2", "export", {})
    assert row(store, "job-1").created_at == row(store, "job-2").created_at


DEFAULTS = {
    "default_transaction_isolation": "serializable",
    "synchronous_commit": "off",
    "timezone": "Asia/Kathmandu",
    "extra_float_digits": "-15",
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Store]:
    """A store on a server whose defaults are not ours."""
    options = " ".join(f"-c{name}={value}" for name, value in DEFAULTS.items())
    address = conninfo_to_dict(postgres.schema_url(tmp_path))
    database = PostgreSQL(url_of(address | {"options": f"{address['options']} {options}"}))
    database.migrated = False
    with SQLStore(database, settings=LAB) as store:
        yield store


def test_a_commit_is_durable_whatever_the_servers_default_is(elsewhere: Store) -> None:
    with elsewhere.database.write() as db:
        assert db.execute("SHOW synchronous_commit").fetchone()[0] == "on"


def test_claims_pass_each_other_by_whatever_the_servers_default_is(elsewhere: Store) -> None:
    with elsewhere.transaction():
        queued(elsewhere, "job-1")
        queued(elsewhere, "job-2")
    start = threading.Barrier(2)

    def claim(name: str) -> str:
        with elsewhere.transaction():
            elsewhere.waiting()  # from here on a stricter level of isolation would have a view of its own
            start.wait()
            return elsewhere.claim_next(name, now=1).job.id

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(claim, "AB")) == ["job-1", "job-2"]


def test_a_worker_passes_by_a_job_that_another_is_claiming(store: Store) -> None:
    queued(store, "job-1")
    queued(store, "job-2", now=1)
    with ThreadPoolExecutor(1) as another, store.transaction():
        assert store.claim_next("A", now=2).job.id == "job-1"
        assert another.submit(store.claim_next, "B", now=2).result().job.id == "job-2"
        assert another.submit(store.claim_next, "B", now=2).result() is None


def test_two_batches_with_the_same_keys_do_not_wait_for_each_other_in_a_circle(store: Store) -> None:
    start = threading.Barrier(2)
    keys = [f"k{n}" for n in range(200)]

    def submit(name: str, keys: list[str]) -> int:
        start.wait()
        jobs = [{"id": f"{name}-{key}", "kind": "export", "params": {}, "key": key} for key in keys]
        return sum(not submitted.replayed for submitted in store.submit_many(jobs, now=0))

    with ThreadPoolExecutor(2) as pool:
        made = pool.map(submit, "AB", [keys, keys[::-1]])
        assert sum(made) == len(keys) == len(store.rows())


def test_ids_are_ordered_as_bytes(store: Store) -> None:
    for id in ("job-10", "Job-2", "job_1", "job-2", "a", "B"):
        queued(store, id)
    assert [job.id for job in store.rows()] == ["B", "Job-2", "a", "job-10", "job-2", "job_1"]
    assert store.pick(now=0).id == "B"
    with store.database.read() as db:  # since this server may be one whose language does so anyway
        assert db.execute("SELECT pg_collation_for(id) FROM jobs LIMIT 1").fetchone()[0] == '"C"'


def test_a_server_of_one_schema_does_not_keep_that_of_another_from_starting(tmp_path: Path) -> None:
    contract = Contract().without("persistence")
    with (
        a_store(postgres.server_url(), f"{tmp_path.name}_a", contract) as one,
        a_store(postgres.server_url(), f"{tmp_path.name}_b", contract) as other,
        open_store(None, one) as first,
        open_store(None, other) as second,
    ):
        first.start_server()
        second.start_server()


# Addresses


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("postgresql://postgres:secret@127.0.0.1:1/jobs", "'jobs' at 127.0.0.1 can't be reached; check the URL and"),
        ("postgresql://postgres:secret@localhost:1/jobs", "'jobs' at localhost can't be reached; check the URL and"),
        ("postgresql://postgres:secret@no-such-host.invalid/jobs", "'jobs' at no-such-host.invalid can't be found"),
        ("postgresql://postgres:sec/ret@127.0.0.1/jobs", "the address of the PostgreSQL database can't be read"),
        ("postgresql://postgres:secret@127.0.0.1:port/jobs", "can't be used: .*invalid integer value .port."),
        ("postgresql://postgres:secret@127.0.0.1/jobs?colour=red", "the address of the PostgreSQL database can't be r"),
    ],
)
def test_an_address_where_nobody_answers_is_named_without_its_password(address: str, says: str) -> None:
    with pytest.raises(StoreError, match=says) as wrong:
        open_store(None, address)
    assert "sec" not in str(wrong.value).replace("USER:PASSWORD", "")
    assert "\n" not in str(wrong.value)


def test_a_server_that_accepts_and_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://postgres:secret@127.0.0.1:{silent.getsockname()[1]}/jobs?connect_timeout=2"
        with pytest.raises(StoreError, match="can't be reached|did not answer in time"):
            open_store(None, address)


def test_a_database_that_is_not_there_is_named() -> None:
    with pytest.raises(StoreError, match='"no_such" does not exist; create it, or check the URL'):
        open_store(None, url_of(conninfo_to_dict(postgres.server_url()) | {"dbname": "no_such"}))


@ours_alone
@pytest.mark.parametrize(
    ("password", "says"), [("wrong", "refuses the user or the password"), ("", "wants a password")]
)
def test_a_wrong_password_is_refused_and_not_repeated(password: str, says: str) -> None:
    with role("locked", "LOGIN PASSWORD 'right'") as name, asked_for_a_password(name):
        address = conninfo_to_dict(postgres.server_url()) | {"user": name, "password": password}
        with pytest.raises(StoreError, match=says) as wrong:
            open_store(None, url_of(address))
        assert "wrong" not in str(wrong.value)


@contextmanager
def role(kind: str, options: str) -> Iterator[str]:
    """The name of a user that is there for a while; several processes share the server."""
    name = f"{kind}_{os.getpid()}"
    execute(postgres.server_url(), f"CREATE ROLE {name} {options}")
    try:
        yield name
    finally:
        execute(postgres.server_url(), f"DROP ROLE {name}")


@contextmanager
def asked_for_a_password(role: str) -> Iterator[None]:
    """The server trusts everybody on its socket, but for this one."""
    stranger = PostgreSQL(postgres.server_url())
    with stranger.read() as db:
        file = Path(db.execute("SHOW hba_file").fetchone()[0])
        line = f"local all {role} scram-sha-256\n"
        file.write_text(line + file.read_text())
        try:
            db.execute("SELECT pg_reload_conf()")
            wait_for(lambda: is_asked(role))
            yield
        finally:
            file.write_text(file.read_text().replace(line, ""))
            db.execute("SELECT pg_reload_conf()")
    stranger.close()


def is_asked(role: str) -> bool:
    """Has the server heard of it?"""
    try:
        psycopg.connect(postgres.server_url(), user=role).close()
    except psycopg.OperationalError:
        return True
    return False


def wait_for(what: Callable[[], object]) -> None:
    """Until it is true.  The limit is none of the promise: it ends a test that waits in vain."""
    enough = time.monotonic() + 60
    while not what():
        assert time.monotonic() < enough, "waited in vain"
        time.sleep(0.01)


def test_a_user_without_the_right_is_told_what_is_missing(store: Store, tmp_path: Path) -> None:
    schema = postgres.schema_name(tmp_path)
    with role("guest", "LOGIN") as name:
        for right in (f"USAGE ON SCHEMA {schema}", f"SELECT ON ALL TABLES IN SCHEMA {schema}"):
            execute(postgres.server_url(), f"GRANT {right} TO {name}")
        with open_store(None, url_of(conninfo_to_dict(postgres.schema_url(tmp_path)) | {"user": name})) as guest:
            with pytest.raises(StoreError, match="permission denied for table jobs; ask its owner for the right"):
                guest.submit("job-1", "export", {})
            assert guest.rows() == ()
        execute(postgres.server_url(), f"DROP OWNED BY {name}")


def test_what_a_text_of_postgresql_cannot_hold_is_refused_and_nothing_is_stored(store: Store) -> None:
    with pytest.raises(StoreError, match="NUL"):
        store.submit("job-1", "export", {}, owner="a\x00b")
    store.submit("job-2", "export", {"table": "a\x00b"})
    assert [job.id for job in store.rows()] == ["job-2"]


# A connection that is lost


def test_connections_that_were_lost_while_nobody_used_them_are_replaced_in_silence(store: Store) -> None:
    queued(store)
    store.claim_next("A")
    assert cut(store) == 1
    assert store.succeed("job-1", 1, "A").accepted
    assert cut(store) == 1
    assert row(store).state == "SUCCEEDED"


def test_a_connection_lost_in_the_middle_of_a_claim_leaves_the_job_waiting(store: Store) -> None:
    job = queued(store)
    with pytest.raises(StoreError, match="was lost; nothing of this change was kept") as wrong:
        claim_and_lose(store, lambda: store.renew("job-1", 1, "A"))
    assert not isinstance(wrong.value, OutcomeUnknown)
    assert store.rows() == (job,)
    assert store.claim_next("A").accepted


def test_a_connection_lost_in_the_middle_of_a_report_leaves_the_job_running(store: Store) -> None:
    job = running(store)
    lines = store.events()
    with pytest.raises(StoreError, match="nothing of this change was kept"):
        report_and_lose(store)
    assert (store.rows(), store.events()) == ((job,), lines)
    assert store.succeed("job-1", 1, "A").accepted


def test_a_connection_lost_before_a_commit_arrives_is_unknown_to_the_caller(store: Store) -> None:
    job = queued(store)
    with pytest.raises(OutcomeUnknown, match="may have been kept or not"):
        claim_and_lose(store, lambda: None)
    assert store.rows() == (job,)


def claim_and_lose(store: Store, then: Callable[[], object]) -> None:
    with store.transaction():
        store.claim_next("A")
        cut(store)
        then()


def report_and_lose(store: Store) -> None:
    with store.transaction():
        store.succeed("job-1", 1, "A")
        cut(store)
        store.claim_next("A")


class Proxy:
    """A line to the server that is cut after the next COMMIT was carried out, and before its answer has come back."""

    def __init__(self, server: str) -> None:
        self._server, self.cut_next = server, False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, server = self._listening.accept()[0], socket.socket(socket.AF_UNIX)
                self._open += [client, server]
                server.connect(self._server)
                cut = threading.Event()
                for way in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(*way, cut), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if cut.is_set() and one.family == socket.AF_UNIX:
                    break  # it comes from the server: this is the answer
                if self.cut_next and b"COMMIT\0" in data:
                    self.cut_next = False
                    cut.set()
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for end in self._open:
            end.close()


@pytest.fixture
def line(tmp_path: Path, store: Store) -> Iterator[tuple[Proxy, Store]]:
    address = conninfo_to_dict(postgres.schema_url(tmp_path))
    proxy = Proxy(f"{address['host']}/.s.PGSQL.{address.get('port', 5432)}")
    through = address | {"host": "127.0.0.1", "port": proxy.port}
    with open_store(None, url_of(through), settings=SERVICE) as far:
        yield proxy, far
    proxy.close()


@ours_alone
def test_a_commit_whose_answer_is_lost_is_unknown_and_doing_it_again_is_safe(
    line: tuple[Proxy, Store], store: Store
) -> None:
    proxy, far = line
    proxy.cut_next = True
    with pytest.raises(OutcomeUnknown):
        far.submit("job-1", "export", {}, key="k")
    assert far.submit("job-2", "export", {}, key="k").replayed  # it was kept: the key tells
    proxy.cut_next = True
    with pytest.raises(OutcomeUnknown):
        far.claim_next("A")
    assert (row(store).state, row(store).attempt) == ("RUNNING", 1)  # and nobody knows it but the lease
    proxy.cut_next = True
    with pytest.raises(OutcomeUnknown):
        far.succeed("job-1", 1, "A", "mine")
    again = far.succeed("job-1", 1, "A", "mine")
    assert (again.refused_by, again.state) == ("unfinished", "SUCCEEDED")
    assert [event.verb for event in store.events() if event.accepted] == ["submit", "submit", "claim", "succeed"]


def test_a_commit_that_the_server_refuses_is_known_not_to_be_kept(store: Store) -> None:
    with store.database.write() as db:
        db.execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$")
        db.execute(
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON jobs DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(StoreError, match="refused") as wrong:
        queued(store)
    assert not isinstance(wrong.value, OutcomeUnknown)
    assert store.rows() == ()


def test_a_connection_that_was_left_in_a_transaction_is_not_given_to_the_next_caller(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Session.execute

    def interrupted(session: Session, sql: str, *p: Any) -> Any:
        if sql == "COMMIT":
            raise KeyboardInterrupt
        return execute(session, sql, *p)

    monkeypatch.setattr(Session, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queued(store, "job-9")
    monkeypatch.undo()
    assert queued(store).id == "job-1"
    assert [job.id for job in store.rows()] == ["job-1"]


# A server that is stopped, and a disk that is full


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    with a_server() as server:
        yield server


@pytest.mark.long
def test_a_server_that_is_stopped_is_said_to_be_away_and_nothing_is_lost(own_server: Server) -> None:
    with a_store(own_server.url, "stopped") as url, open_store(None, url) as store:
        queued(store)
        store.claim_next("A")
        own_server.stop()
        for ask in (store.rows, lambda: store.succeed("job-1", 1, "A"), lambda: open_store(None, url)):
            with pytest.raises(StoreError, match="can't be reached|was lost; nothing"):
                ask()
        own_server.start()
        assert store.succeed("job-1", 1, "A").accepted
        assert [(job.id, job.state) for job in store.rows()] == [("job-1", "SUCCEEDED")]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of two megabytes, where the server's user may go too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        command = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "tmpfs", folder]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("only root may mount a small disk")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.long
def test_a_full_disk_is_named_and_keeps_whole_changes_alone(own_server: Server, small_disk: Path) -> None:
    place = small_disk / "space"
    place.mkdir()
    shutil.chown(place, "pgserver")
    execute(own_server.url, f"CREATE TABLESPACE small LOCATION '{place}'", in_transaction=False)
    with a_store(own_server.url, "full") as url:
        execute(url, "ALTER TABLE jobs SET TABLESPACE small")
        with open_store(None, url) as store:
            accepted: list[str] = []
            with pytest.raises(StoreError, match="there is no room left for .*; nothing of this change was kept"):
                fill(store, accepted)
            assert sorted(job.id for job in store.rows()) == sorted(accepted)
            assert len(accepted) == len(store.events()) > 10
    execute(own_server.url, "DROP TABLESPACE small", in_transaction=False)


def fill(store: Store, accepted: list[str]) -> None:
    for n in range(1000):
        store.submit(f"job-{n}", "export", {"table": os.urandom(20_000).hex()})
        accepted.append(f"job-{n}")


OWNER = """
import sys, time
from pathlib import Path
from jobslab.lab.postgres import Server
print(Server(Path(sys.argv[1])).url, flush=True)
time.sleep(1000)
"""


@pytest.mark.long
@ours_alone
@pytest.mark.skipif(os.name != "posix", reason="who is killed can't be guarded elsewhere")
def test_a_server_of_the_wheel_ends_with_the_last_of_its_owners_even_if_they_are_killed() -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "postgres"
        owners = [
            subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        urls = {owner.stdout.readline().strip() for owner in owners}
        assert len(urls) == 1
        owners[0].kill()
        owners[0].communicate()
        time.sleep(0.5)  # in which nothing should happen
        execute(*urls, "SELECT 1")
        owners[1].kill()
        owners[1].communicate()
        wait_for(lambda: list(Path(parent).iterdir()) == [])
        with pytest.raises(StoreError, match="can't be reached"):
            open_store(None, *urls)
