"""`jobslab lab` and `jobslab doctor`: how does a learner get to the notebooks, and is this machine fit for them?

`doctor` asks before the class what would fail in it: each check is one line that says what to do, and `--json` is for
the instructor who collects them.
"""

import json
import platform
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from jobslab.errors import JobslabError, StoreError
from jobslab.stores import open_store

CHECKOUT = Path(__file__).resolve().parents[2]
FIRST = "00-start-here.ipynb"
NEEDED = ("jupyterlab", "ipykernel", "ipywidgets", "pandas", "matplotlib", "sqlite-utils", "nbval")
INSTALL = "in the checkout say make install, or pip install -c constraints.txt -e '.[lab,test]'"
KERNEL_SECONDS = 60


class NoNotebooks(JobslabError):
    """The lab can't be opened from here."""


def lab(context: typer.Context) -> None:
    """Open JupyterLab at the first chapter. What follows `--` goes to JupyterLab: jobslab lab -- --no-browser."""
    chapter = CHECKOUT / "notebooks" / FIRST
    if not chapter.is_file():
        raise NoNotebooks("the notebooks come with the repository, not with the package: clone it and say make lab")
    if find_spec("jupyterlab") is None:
        raise NoNotebooks(f"JupyterLab is not installed: {INSTALL}")
    raise typer.Exit(subprocess.call([sys.executable, "-m", "jupyterlab", str(chapter), *context.args]))


class Finding(NamedTuple):
    """What one check says."""

    check: str
    ok: bool
    says: str

    def __str__(self) -> str:
        return f"{'ok     ' if self.ok else 'PROBLEM'}  {self.check:<12}  {self.says}"


AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for whoever collects them.")]


def doctor(as_json: AsJson = False) -> None:
    """Is this machine fit for the lab? One line a check; exit code 1 where something is to be done."""
    findings = []
    for check in CHECKS:
        findings.append(found(check))
        if not as_json:
            typer.echo(str(findings[-1]))
    if as_json:
        machine = {"system": platform.system(), "machine": platform.machine(), "python": platform.python_version()}
        typer.echo(json.dumps({**machine, "checks": [finding._asdict() for finding in findings]}))
    raise typer.Exit(int(not all(finding.ok for finding in findings)))


Check = Callable[[], str]


class Problem(Exception):
    """What is wrong, and what to do."""


def found(check: Check) -> Finding:
    name = check.__name__.replace("_", " ")
    try:
        return Finding(name, True, check())
    except Problem as wrong:
        return Finding(name, False, str(wrong))


def interpreter() -> str:
    """An older Python than 3.11 never comes here: the package can't be installed into it."""
    return f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def packages() -> str:
    missing = [name for name in NEEDED if version(name) is None]
    if missing:
        raise Problem(f"not installed: {', '.join(missing)}; {INSTALL}")
    return f"{len(NEEDED)} of {len(NEEDED)} are here: {', '.join(NEEDED)}"


def versions() -> str:
    """Stored outputs are compared with those of the pinned versions."""
    if not (CHECKOUT / "constraints.txt").is_file():
        return "not compared: this is no checkout, so there are no pinned versions"
    others = [f"{name} {here} (pinned {pin})" for name, pin in pins() if (here := version(name)) not in (None, pin)]
    if others:
        raise Problem(f"other than pinned: {', '.join(others)}; outputs may differ, {INSTALL}")
    return f"as pinned, {sum(version(name) is not None for name, _ in pins())} packages"


def pins() -> Iterator[tuple[str, str]]:
    for line in (CHECKOUT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, _, pin = line.partition("==")
        yield name, pin


def version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def kernel() -> str:
    """The kernel that JupyterLab will start: does it have jobslab, and the words of a chapter?"""
    try:
        from jupyter_client.manager import run_kernel
    except ImportError as missing:
        raise Problem(f"no kernel can be started, jupyter_client is not installed; {INSTALL}") from missing
    line = "from jobslab.lab.notebook import *"
    try:
        with run_kernel(kernel_name="python3", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            client: Any = started  # its methods are made from those of an asynchronous one, which types do not see
            reply = client.execute_interactive(line, timeout=KERNEL_SECONDS, output_hook=lambda _: None)["content"]
    except Exception as wrong:
        raise Problem(f"the kernel python3 does not start ({type(wrong).__name__}); {INSTALL}") from wrong
    if reply["status"] != "ok":
        raise Problem(f"the kernel python3 can't run a chapter: {plain(reply['evalue'])}; {INSTALL}")
    return "python3 starts, and runs a chapter's first line"


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def write_access() -> str:
    """Chapters make a database file in the folder for temporary files; JupyterLab saves where the notebooks are."""
    folders = [folder for folder in (Path(tempfile.gettempdir()), CHECKOUT / "notebooks") if folder.is_dir()]
    for folder in folders:
        try:
            with tempfile.TemporaryDirectory(dir=folder) as inside:
                open_store(None, str(Path(inside) / "try.db")).close()
        except (OSError, StoreError) as wrong:
            raise Problem(f"{folder} can't be written ({wrong}): change its permissions") from wrong
    return f"{' and '.join(map(str, folders))} can be written"


def loopback() -> str:
    """Real servers in the lab listen on this machine alone."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
            return "a server on 127.0.0.1 can be reached"
    except OSError as wrong:
        raise Problem(f"no server on 127.0.0.1 can be reached ({wrong}): look at the firewall") from wrong


def broker() -> str:
    """Chapter 11 starts one."""
    from jobslab.lab.broker import BrokerError, a_broker

    try:
        with a_broker() as started:
            started.publish("job-1")
    except BrokerError as wrong:
        raise Problem(f"chapter 11 can't run, all others can: {wrong}") from wrong
    return "one starts, and confirms a message"


CHECKS: tuple[Check, ...] = (interpreter, packages, versions, kernel, write_access, loopback, broker)
