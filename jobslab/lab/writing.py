"""What is in the file when the job that writes it is done twice?  Appended line by line, or staged and renamed.

Each line is on the disk before the next point, so that a worker that stops leaves just what a killed one would leave.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jobslab.effects import staged
from jobslab.job import Job
from jobslab.lab.again import Fault, Story, Work, done, title

if TYPE_CHECKING:
    import pandas as pd

BEFORE, HALF, WHOLE = "before the first line", "half of the lines written", "all written, before the report"
POINTS = (BEFORE, HALF, WHOLE)
FAULTS = (Fault(), *(Fault("crash", point) for point in POINTS))

LINES = ("order,total", "1,30", "2,45", "3,12")
FILE = "orders.csv"


def appends(folder: Path, job: Job) -> Work:
    """Open the file for appending, and write line by line."""
    yield BEFORE
    with (folder / FILE).open("a", encoding="utf-8", buffering=1) as file:
        for n, line in enumerate(LINES):
            file.write(f"{line}\n")
            if n == len(LINES) // 2 - 1:
                yield HALF
    yield WHOLE


def stages(folder: Path, job: Job) -> Work:
    """Write under another name; when all is written the file gets its name, in one step."""
    yield BEFORE
    with staged(folder, FILE) as file:
        for n, line in enumerate(LINES):
            file.write(f"{line}\n")
            if n == len(LINES) // 2 - 1:
                file.flush()
                os.fsync(file.fileno())
                yield HALF
    yield WHOLE


Way = Callable[[Path, Job], Work]

WAYS: dict[str, Way] = {"": appends, "staged": stages}


def write(way: Way, fault: Fault = Fault()) -> Story:
    """The story of one job that writes the file; it shows what a reader of the file finds."""
    with tempfile.TemporaryDirectory(prefix="jobslab-") as folder:
        return done(partial(way, Path(folder)), fault, lambda: {"a reader finds": found(Path(folder) / FILE)})


def found(file: Path) -> str:
    """What is in the file, in a few words."""
    if not file.exists():
        return "no file"
    lines = file.read_text(encoding="utf-8").splitlines()
    return "the whole file" if len(lines) == len(LINES) else f"{len(lines)} lines, not {len(LINES)}"


def written(switches: str) -> dict[str, str]:
    """What a reader finds: the scenario's rows."""
    return outcomes(WAYS[switches])


def outcomes(way: Way) -> dict[str, str]:
    """What a reader finds: while the worker is half-way, and at the end under every fault."""
    half_way = next(line for line in write(way).lines if line.does == HALF)
    return {
        "a reader comes half-way": dict(half_way.seen)["a reader finds"],
        **{str(fault): write(way, fault).seen["a reader finds"] for fault in FAULTS},
    }


def table(*ways: Way) -> "pd.DataFrame":
    """The same: a line a moment, a column a way."""
    import pandas as pd

    return pd.DataFrame({title(way): outcomes(way) for way in ways})
