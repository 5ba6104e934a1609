"""`jobslab chaos`: is a promise kept while processes are killed?"""

import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobslab.commands.options import With, Without, contract_of
from jobslab.contract import Contract
from jobslab.errors import BadNumber, StoreError

if TYPE_CHECKING:
    from jobslab.lab.chaos.run import Run

Kind = Annotated[str, typer.Option("--store", help="sqlite, or postgresql: a real server out of a wheel.")]
Seed = Annotated[int | None, typer.Option(help="The same seed, the same faults; a new one by default.")]


def chaos(
    jobs: Annotated[int, typer.Option(help="At least so many; clients go on until all faults are done.")] = 2000,
    kills: Annotated[int, typer.Option(help="SIGKILLs; one in ten is the server's.")] = 100,
    seed: Seed = None,
    store: Kind = "sqlite",
    only: With = None,
    without: Without = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole report as JSON.")] = False,
) -> None:
    """Kill and stop real processes while clients submit; then audit. Exit code 1: something was lost or doubled."""
    from jobslab.lab.chaos.cluster import ChaosError
    from jobslab.lab.chaos.run import STORES, run

    if os.name != "posix":
        raise ChaosError("chaos stops processes by signals that this system does not have; run it on Linux or macOS")
    if store not in STORES:
        raise StoreError(f"--store is {' or '.join(STORES)}, not {store!r}; a run makes a new one and removes it")
    for name, value in {"--jobs": jobs, "--kills": kills}.items():
        if value < 1:
            raise BadNumber(f"{name} is at least 1, not {value}")
    seed = random.randrange(10**6) if seed is None else seed
    contract = contract_of(only, without) or Contract()
    if not as_json:
        print(f"chaos on {store} under the contract '{contract}', seed {seed}", flush=True)
    with progress(jobs, as_json) as seen:
        done = run(store, contract, seed, jobs, kills, seen)
    print(json.dumps(as_dict(done), indent=2) if as_json else "\n".join(report(done)))
    sys.exit(1 if done.wrong else 0)


@contextmanager
def progress(jobs: int, quiet: bool) -> Iterator[Any]:
    """A bar on a terminal, and nothing in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.completed:.0f} jobs"), BarColumn(), TextColumn("{task.fields[faults]} faults"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("", total=jobs, faults=0)
        yield lambda accepted, faults: bar.update(task, completed=accepted, faults=faults)


def report(run: "Run") -> Iterator[str]:
    """What was done and what was found, a line each."""
    for what, count in run.planned.items():
        yield f"  {run.done.get(what, 0):6,} of {count:,}  {what}"
    for name, (count, says) in findings(run).items():
        yield f"  {count:6,}  {says or name}"
    yield f"  in {run.seconds:.0f} seconds; the same faults again: --seed {run.seed}"
    yield from (f"WRONG: {sentence}" for sentence in run.wrong)
    yield "kept" if not run.wrong else "NOT kept"


SAYS = {
    "accepted": "intents answered with a 202",
    "terminal": "of them over",
    "lost": "of them lost",
    "duplicates": "jobs that are duplicates of an intent",
    "given_up": "jobs that failed after their last attempt",
    "requeued": "attempts taken away, their lease being over",
    "stale_refused": "reports of workers that had been given up, refused",
    "stale_accepted": "such reports, accepted",
    "tried_again": "effects that were tried more than once",
    "done_twice": "effects that were done twice",
    "undone": "jobs that succeeded without their effect",
}


def findings(run: "Run") -> dict[str, tuple[int, str]]:
    return {name: (getattr(run.audit, name), says) for name, says in SAYS.items()}


def as_dict(run: "Run") -> dict[str, Any]:
    return {**run._asdict(), "audit": run.audit._asdict(), "wrong": run.wrong}
