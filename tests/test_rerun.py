"""Is a job that is run again a new one, with its counts fresh, and once?"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobslab import Contract, open_store
from jobslab.job import Error, Job
from jobslab.rerun import CanNotRerun, rerun
from jobslab.settings import LAB
from jobslab.stores import Store

BIN = Path(sys.executable).parent


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(settings=LAB) as store:
        yield store


def failed(store: Store, now: float = 0) -> Job:
    """A job that has used up its two attempts."""
    store.submit("job-1", "export", {"table": "x"}, "ann", "k1", max_attempts=2, correlation_id="c1", now=now)
    store.claim("job-1", "A", now=now)
    store.retry("job-1", 1, "A", Error("busy", "try later"), now=now)
    store.claim("job-1", "A", now=now)
    store.fail("job-1", 2, "A", Error("busy", "try later"), now=now)
    job = store.get("job-1", now=now)
    assert isinstance(job, Job)
    return job


def test_a_job_that_is_run_again_is_a_new_one_whose_counts_are_fresh(store: Store) -> None:
    old = failed(store)
    new = rerun(store, "job-1", "job-2", now=5).job
    assert (new.id, new.rerun_of, new.state, new.attempt, new.max_attempts) == ("job-2", "job-1", "QUEUED", 0, 2)
    assert (new.kind, json.loads(new.params), new.owner) == ("export", {"table": "x"}, "ann")
    assert (new.correlation_id, new.created_at, new.run_at) == ("c1", 5, 5)
    assert store.get("job-1", now=5) == old, "what is over stays as it is"
    assert store.claim("job-2", "A", now=5).accepted


def test_asked_twice_it_is_one_new_job(store: Store) -> None:
    failed(store)
    assert [rerun(store, "job-1", id, now=1).replayed for id in ("job-2", "job-3")] == [False, True]
    assert [job.id for job in store.rows()] == ["job-1", "job-2"]


def test_what_was_run_again_may_be_run_again_itself(store: Store) -> None:
    failed(store)
    rerun(store, "job-1", "job-2", now=1)
    store.cancel("job-2", now=1)
    assert rerun(store, "job-2", "job-3", now=2).job.rerun_of == "job-2"


def test_a_job_that_is_not_over_or_has_its_result_is_not_run_again_by_mistake(store: Store) -> None:
    store.submit("job-1", "export", {"table": "x"}, now=0)
    with pytest.raises(CanNotRerun, match="the job job-1 is QUEUED: it is not over"):
        rerun(store, "job-1", "job-2", now=0)
    store.claim("job-1", "A", now=0)
    with pytest.raises(CanNotRerun, match="is RUNNING: it is not over"):
        rerun(store, "job-1", "job-2", now=0)
    store.succeed("job-1", 1, "A", now=0)
    with pytest.raises(CanNotRerun, match="is SUCCEEDED: its work is done"):
        rerun(store, "job-1", "job-2", now=0)
    assert len(store.rows()) == 1
    assert rerun(store, "job-1", "job-2", anyway=True, now=0).job.rerun_of == "job-1"


def test_a_cancelled_job_is_run_again(store: Store) -> None:
    store.submit("job-1", "export", {"table": "x"}, now=0)
    store.cancel("job-1", now=0)
    assert rerun(store, "job-1", "job-2", now=0).job.state == "QUEUED"


def test_a_job_that_never_was_or_is_expired_is_not_run_again(store: Store) -> None:
    with pytest.raises(CanNotRerun, match="there is no job job-1"):
        rerun(store, "job-1", "job-2", now=0)
    failed(store)
    with pytest.raises(CanNotRerun, match="is expired, and its params are gone"):
        rerun(store, "job-1", "job-2", anyway=True, now=LAB.retention_seconds + 1)


def test_a_store_that_knows_no_keys_runs_it_again_all_the_same() -> None:
    with open_store(Contract().without("idempotency_key"), settings=LAB) as store:
        failed(store)
        assert rerun(store, "job-1", "job-2", now=1).job.rerun_of == "job-1"


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / "jobslab", "rerun", *words], capture_output=True, text=True)


def test_the_command_says_which_job_it_is_now(tmp_path: Path) -> None:
    url = str(tmp_path / "jobs.db")
    with open_store(None, url) as store:
        store.submit("job-1", "export", {"table": "x"})
        store.cancel("job-1")
    first, second = command("job-1", "--store", url), command("job-1", "--store", url)
    with open_store(None, url) as store:
        [new] = [job for job in store.rows() if job.id != "job-1"]
    assert first.stdout == f"job-1 is run again, as {new.id}, which is QUEUED; to follow it: jobslab where {new.id}\n"
    assert second.stdout.startswith(f"job-1 was run again before, as {new.id}, which is QUEUED")
    assert (first.returncode, second.returncode, first.stderr) == (0, 0, "")


def test_the_command_answers_a_mistake_with_one_sentence_and_makes_nothing(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    told = command("job-1", "--store", str(missing))
    assert (told.returncode, told.stdout, missing.exists()) == (2, "", False)
    assert told.stderr == f"jobslab: there is no store {missing}; name the file that the service uses\n"
    with open_store(None, str(missing)):
        pass
    told = command("job-1", "--store", str(missing))
    assert told.returncode == 2
    assert told.stderr == "jobslab: there is no job job-1; check the id, and that this is its store\n"
