"""A fuzzer that reads /openapi.json holds the running service to it: no fault, and no answer that is not documented."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.http.real import serving
from tests.http.room import ALICE, BOB

pytestmark = pytest.mark.long

REQUESTS = 5000

# A request that is right by its schema may still be refused: for a key that another job has, or for a NUL in a text.
ACCEPTED = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "400", "401", "404", "409", "410", "422"]
"""


def test_5000_requests_bring_no_fault_and_nothing_that_is_not_documented(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(ACCEPTED)
    (tmp_path / "tokens").write_text(f"alice {ALICE}\nbob {BOB}\n")
    (tmp_path / "tokens").chmod(0o600)
    with serving(tmp_path, "--workers", "1", "--tokens", str(tmp_path / "tokens")) as server:
        options = [
            "--header",
            f"Authorization: Bearer {ALICE}",
            "--seed",
            "8202",
            "--max-examples",
            "800",
            "--no-shrink",
        ]
        fuzzer = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.url}/openapi.json", *options]
        done = subprocess.run(fuzzer, cwd=tmp_path, capture_output=True, text=True, timeout=900)
        with server.http(headers={"Authorization": f"Bearer {ALICE}"}) as http:
            assert http.get("/healthz").status_code == 200
    log = (tmp_path / "server.log").read_text()
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in log
    assert " 500 " not in log
    assert log.count(" ms correlation ") > REQUESTS, done.stdout
