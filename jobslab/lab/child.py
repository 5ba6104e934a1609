"""How does the lab start one of its own modules as a process, so that it never outlives the lab?

The module prints one line when it is ready, and ends with its input, which the system closes however the lab ended.
"""

import sys
from subprocess import PIPE, Popen

from jobslab.errors import JobslabError

PATIENT_SECONDS = 30  # for what is to come soon, on a slow machine


class LabError(JobslabError):
    """A process of the lab does not do what it is for."""


def start(module: str, *arguments: str) -> Popen[str]:
    """The module as a process, which reads and writes text."""
    # -P: a module in the user's directory must not stand in for one of ours.  A session of its own: Ctrl-C is for this
    # process, and that one ends with its input.
    command = [sys.executable, "-P", "-m", module, *arguments]
    return Popen(command, stdin=PIPE, stdout=PIPE, text=True, start_new_session=True)


def line(child: Popen[str]) -> str:
    """The next line that it prints; nothing: it has ended."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def address(child: Popen[str], name: str) -> str:
    """Where it serves, when it has printed its port.  Raises LabError where it ends instead."""
    port = line(child)
    if not port:
        let_go(child)
        raise LabError(f"{name} did not start; what it says of itself stands above")
    return f"http://127.0.0.1:{port}"


def let_go(child: Popen[str]) -> None:
    """Close its input, which ends it, and wait for that.  Raises subprocess.TimeoutExpired."""
    child.communicate(timeout=PATIENT_SECONDS)
