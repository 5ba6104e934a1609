"""Is what is over kept, and then known to be gone, by the clock alone?"""

from jobslab.lab.keeping import keeping
from jobslab.settings import LAB

OVER = LAB.retention_seconds
FORGOTTEN = OVER + LAB.expired_seconds


def test_a_job_is_there_then_known_to_be_gone_then_forgotten() -> None:
    table = keeping(0, OVER - 1, OVER, FORGOTTEN - 1, FORGOTTEN)
    told = ["200 SUCCEEDED", "200 SUCCEEDED", "410 job-expired", "410 job-expired", "404 no-such-job"]
    assert table["its status"].tolist() == told
    assert table["its status, if purged"].tolist() == told
    assert table["its result"].tolist() == ["200", "200", *told[2:]]


def test_a_job_that_runs_never_expires() -> None:
    assert keeping(0, 100 * FORGOTTEN)["a job that runs"].tolist() == ["200 RUNNING", "200 RUNNING"]
