"""Does `jobslab reconcile` tell an operator what differs, what it did, and what is left?"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from jobslab import open_store
from jobslab.cli import app
from jobslab.errors import JobslabError
from jobslab.stores import Store

LONG_AGO = 3600.0


class Shop(NamedTuple):
    store: Store
    path: Path
    results: Path

    def run(self, *words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["reconcile", *words, "--store", str(self.path)])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    path, results = tmp_path / "jobs.db", tmp_path / "jobs.db-results"
    results.mkdir()
    with open_store(None, str(path)) as store:
        then = time.time() - LONG_AGO
        store.submit("job-1", "export", {"table": "orders"}, now=then)
        store.claim("job-1", "A", now=then)
        (results / "job-1.1.csv").write_bytes(b"a\r\n1\r\n")
        yield Shop(store, path, results)


def test_a_dry_run_says_what_would_be_done_and_the_real_one_does_it(shop: Shop) -> None:
    found = "job-1: job-1.1.csv is there, and the job, RUNNING, does not say so\n  "
    act = "report for the worker that is gone"
    assert shop.run("--dry-run") == (1, f"{found}would {act}\n1 did not agree, 1 of them still do not\n")
    assert shop.store.rows()[0].state == "RUNNING"
    assert shop.run() == (0, f"{found}{act}: it is SUCCEEDED now\n1 did not agree, 0 of them still do not\n")
    assert shop.store.rows()[0].state == "SUCCEEDED"
    assert shop.run() == (0, "all jobs and files agree\n")


def test_what_takes_a_person_is_exit_code_1(shop: Shop) -> None:
    shop.store.submit("job-2", "export", {"table": "orders"})
    shop.store.claim("job-2", "A")
    shop.store.succeed("job-2", 1, "A", {"file": "job-2.1.csv", "rows": 1})
    code, said = shop.run()
    assert code == 0
    assert "job-2.1.csv is there, and it is not" in said
    assert "do it again, as a new job: " in said
    again = shop.store.rows()[-1] if shop.store.rows()[-1].rerun_of else shop.store.rows()[0]
    shop.store.cancel(again.id)
    code, said = shop.run()
    assert (code, "a person decides" in said) == (1, True)


def test_another_directory_can_be_named(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert shop.run("--results", str(tmp_path / "elsewhere")) == (0, "all jobs and files agree\n")


def test_a_store_or_a_directory_that_is_not_there_is_one_sentence_and_nothing_is_made(
    shop: Shop, tmp_path: Path
) -> None:
    with pytest.raises(JobslabError, match="there is no store .*no.db; name the file that the service uses"):
        shop._replace(path=tmp_path / "no.db").run()
    with pytest.raises(JobslabError, match="there is no directory .*nowhere, so nothing can be compared; give --res"):
        shop.run("--results", str(tmp_path / "nowhere"))
    assert sorted(path.name for path in tmp_path.iterdir() if "jobs.db" not in path.name) == []


WORKER = """
import json, sys
from pathlib import Path
from jobslab import open_store
from jobslab.source import as_database, sample
from jobslab.tasks import tasks
from jobslab.worker import begun

store, results, folder = sys.argv[1:]
with open_store(None, store) as jobs:
    job = jobs.claim_next("A", lease_seconds=0.001).job
    for _ in begun(tasks(as_database(sample(), folder), Path(results))[job.kind], job):
        pass
    print("written", flush=True)
    sys.stdin.read()
"""


def test_the_report_of_a_worker_that_was_really_killed_is_made(tmp_path: Path) -> None:
    path, results = tmp_path / "jobs.db", tmp_path / "jobs.db-results"
    with open_store(None, str(path)) as store:
        store.submit("job-1", "export", {"table": "orders"})
        command = [sys.executable, "-c", WORKER, str(path), str(results), str(tmp_path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "written\n"
            worker.kill()
        assert store.rows()[0].state == "RUNNING"
        assert Shop(store, path, results).run()[0] == 0
        assert store.rows()[0].state == "SUCCEEDED"
        assert json.loads(str(store.rows()[0].result))["rows"] == 4000
