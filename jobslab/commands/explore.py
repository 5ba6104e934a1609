"""`jobslab explore`: what can happen, in every order, and which promise does it break?

Exit code 0: the search ended, whatever it found; 1: a real store answered otherwise than the explorer says, which is a
bug of jobslab; 2: a mistake to be mended.

`--json` prints one object:

    bounds      how much may happen
    contracts   [{contract, states, steps, exhausted, findings: {promise: {answer, length, schedule,
                   steps: [{n, step, fault, said, jobs: [{id, state, attempt, cancel_requested}]}]}}}]
    enough      without flags: {promise: [[flag, ...], ...]}, the smallest sets of flags that are enough
    replayed    with --replay: {traces, differences: [sentence, ...]}
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobslab.commands.options import With, Without, contract_of
from jobslab.contract import Contract
from jobslab.errors import JobslabError

if TYPE_CHECKING:
    from jobslab.lab.explore import Exploration
    from jobslab.lab.replay import Difference
    from jobslab.lab.trace import Happening
    from jobslab.lab.world import Bounds


class BadReplay(JobslabError):
    """There is no such kind of store to replay on."""


# Told how much is done, of how much (None: nobody knows).
Progress = Callable[[int, int | None], None]


def explore(
    only: With = None,
    without: Without = None,
    promise: Annotated[
        str | None, typer.Option("--property", metavar="WORDS", help="Only the promise with these words in its name.")
    ] = None,
    bounds: Annotated[
        str, typer.Option(metavar="NAME=N,...", help="How much may happen: jobs=2,workers=2,sweepers=2,faults=3,...")
    ] = "",
    replay: Annotated[str | None, typer.Option(metavar="sqlite", help="Run each trace on a real store too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Try every order of events, faults included: which promise breaks, and by which shortest schedule?

    Without flags: all 32 contracts, a line each. With a contract, its traces too:  jobslab explore --without leases

    A trace is a schedule that can be run:  jobslab run --without leases --schedule "..."
    """
    from jobslab.lab.explore import bounds_of, named

    contract, within = contract_of(only, without), bounds_of(bounds)
    names = [named(promise)] if promise else None
    if replay not in (None, "sqlite"):
        raise BadReplay(f"there is no replay on {replay!r}: say --replay sqlite")
    with progress() as tell:
        found = explored(contract, within, names, tell)
    differences = [each for one in found for each in replayed(one)] if replay else []
    if as_json:
        print(json.dumps(document(found, within, contract, differences if replay else None), indent=2))
    else:
        print("\n".join(report(found, contract, differences if replay else None)))
    raise typer.Exit(1 if differences else 0)


def explored(
    contract: Contract | None, bounds: "Bounds", names: list[str] | None, tell: Progress
) -> "list[Exploration]":
    from jobslab.lab import explore
    from jobslab.lab.properties import NAMES, SOMETIMES

    asked = names or list(NAMES if contract is None else (*NAMES, *SOMETIMES))
    if contract is None:
        return explore.matrix(bounds, names=asked, progress=lambda done: tell(done, len(Contract.all())))
    return [explore.explore(contract, bounds, names=asked, progress=lambda states: tell(states, None))]


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar on stderr while something runs; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("exploring", total=None)

        def tell(done: int, total: int | None) -> None:
            what = f"{done:,} states" if total is None else f"{done} of {total} contracts"
            bar.update(task, total=total, completed=done, description=what)

        yield tell


# Replaying


def replayed(exploration: "Exploration") -> "Iterator[Difference]":
    """Where a store in memory, or in a file, answers otherwise than the explorer says."""
    from jobslab.lab.replay import replay
    from jobslab.settings import LAB
    from jobslab.stores import open_store

    for found in exploration.findings.values():
        for in_file in (False, True) if found.trace else ():
            with tempfile.TemporaryDirectory() as directory:
                path = f"{directory}/jobs.db" if in_file else None
                with open_store(exploration.contract, path, settings=LAB) as store:
                    yield from replay(found.trace, store)


# As text


def report(
    found: "list[Exploration]", contract: Contract | None, differences: "Sequence[Difference] | None"
) -> Iterator[str]:
    from jobslab.lab.figures import as_text, enough_as_text

    if contract is None:
        yield from (as_text(found), "", "The flags that are enough, whatever else is on or off:", "")
        yield enough_as_text(found)
    else:
        yield from alone(found[0])
    if differences is not None:
        traces = sum(bool(one.trace) for each in found for one in each.findings.values())
        yield f"\n{traces} traces replayed, in memory and in a file: " + (
            "every answer as the explorer says." if not differences else "\n".join(map(str, differences))
        )


def alone(found: "Exploration") -> Iterator[str]:
    """What was found under one contract, and how each promise breaks."""
    wide = max(map(len, found.findings))
    seen = "every state" if found.exhausted else "not exhausted"
    yield f"flags on: {found.contract}"
    yield f"{found.states:,} states, {found.steps:,} steps, {seen}; {in_words(found.bounds)}"
    yield ""
    yield from (f"{name:<{wide}}  {one}" for name, one in found.findings.items())
    for name, one in found.broken.items():
        yield from ("", name, *timeline(one.trace), f"  as a schedule: {one.schedule.replace(chr(10), ' / ')}")


def in_words(bounds: "Bounds") -> str:
    written = bounds._asdict().items()
    return ", ".join(f"{name}={'+'.join(value) if isinstance(value, tuple) else value}" for name, value in written)


def timeline(trace: "Sequence[Happening]") -> list[str]:
    """A line a step: what happens, what was answered, how the jobs stand; a fault is marked."""
    cells = [(f"{n}", marked(one), one.said, jobs(one)) for n, one in enumerate(trace, start=1)]
    wide = [max(len(cell[column]) for cell in cells) for column in range(3)]
    return [f"  {n:>{wide[0]}}  {step:<{wide[1]}}  {said:<{wide[2]}}  {rows}" for n, step, said, rows in cells]


def marked(one: "Happening") -> str:
    return f"{one.step} (fault)" if one.fault else str(one.step)


def jobs(one: "Happening") -> str:
    return "; ".join(f"{job.id} {job.state} attempt {job.attempt}" for job in one.rows) or "no job"


# As JSON


def document(
    found: "list[Exploration]", bounds: "Bounds", contract: Contract | None, differences: "Sequence[Difference] | None"
) -> dict[str, Any]:
    from jobslab.lab.explore import enough

    written: dict[str, Any] = {"bounds": bounds._asdict(), "contracts": [contract_document(each) for each in found]}
    if contract is None:
        written["enough"] = enough(found)
    if differences is not None:
        traces = sum(bool(one.trace) for each in found for one in each.findings.values())
        written["replayed"] = {"traces": traces, "differences": [str(each) for each in differences]}
    return written


def contract_document(found: "Exploration") -> dict[str, Any]:
    findings = {
        name: {
            "answer": one.answer,
            "length": len(one.trace) or None,
            "schedule": one.schedule or None,
            "steps": [step_document(n, happening) for n, happening in enumerate(one.trace, start=1)],
        }
        for name, one in found.findings.items()
    }
    return {
        "contract": str(found.contract),
        "states": found.states,
        "steps": found.steps,
        "exhausted": found.exhausted,
        "findings": findings,
    }


def step_document(n: int, one: "Happening") -> dict[str, Any]:
    rows = [{key: getattr(job, key) for key in ("id", "state", "attempt", "cancel_requested")} for job in one.rows]
    return {"n": n, "step": str(one.step), "fault": one.fault, "said": one.said, "jobs": rows}
