"""`jobslab run`: what is each flag for?  The scenarios, each variant beside the one that mends it.

Exit code 0: every row is as data/expected.csv has it, and every exported file is whole (under a contract of the
user's own there is no verdict, and 0); 1: one is not; 2: a mistake to be mended.  A row that needs something that is
not installed is not exercised, and changes no exit code.

What is enacted (see `lab.scenarios`) starts what it needs by itself, with --over-http as without, and keeps no file;
under a contract of the user's own it is left out.

`--json` prints one object:

    ok           did all hold?
    rows, held   how many rows have something expected of them, and how many of those are as expected
    scenarios    [{scenario, question, variants: [{variant, flags_on, switches, schedule, file,
                   rows:  [{step, expected, seen, held, lacks}],
                   steps: [{n, at, actor, step, label, answer, outcome, refused_by, note, job, state, attempt}]}]}]
                 schedule is null where it is enacted; lacks: what is not installed that the row needs, or null
    export       [{table, job, state, rows_in_table, rows_in_file, error}]; null: nothing was exported
    sql          with --sql: {flags_on: {verb: statement}}, for each contract that was run
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jobslab.commands.options import With, Without, contract_of
from jobslab.contract import Contract
from jobslab.errors import JobslabError

if TYPE_CHECKING:
    from jobslab.lab.place import Opens
    from jobslab.lab.report import Report, Shown
    from jobslab.lab.scenarios import Scenario, Variant


class CanNotRun(JobslabError):
    """Options that do not go together, or a machine on which the lab can't work."""


class Plan(NamedTuple):
    """What is to be run."""

    scenarios: list["Scenario"]
    export: Path | None  # the file whose tables are exported
    contract: Contract  # under which they are
    over_http: bool
    keep: Path | None


# Told what is done next, and how much there is in all.
Progress = Callable[[str, int], None]


def run(
    scenario: Annotated[str | None, typer.Option(metavar="NAME", help="Only this scenario, step by step.")] = None,
    only: With = None,
    without: Without = None,
    schedule: Annotated[str | None, typer.Option(metavar="TEXT-OR-FILE", help="A schedule of your own.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Export this CSV or SQLite file.")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL too, and the lines that a flag changes.")] = False,
    over_http: Annotated[bool, typer.Option("--over-http", help="A real server, really killed.")] = False,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the database files there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """See what each flag is for: every failure beside the clause that prevents it, on the same steps.

    Switch clauses off yourself:  jobslab run --scenario restart --without leases

    Write a schedule:  jobslab run --schedule "client submits / A claims next / restart / client polls"
    """
    contract = contract_of(only, without)
    with progress() as tell:
        plan = planned(scenario, schedule, contract, data)._replace(over_http=over_http, keep=keep)
        report = carried_out(plan, tell)
    if as_json:
        from jobslab.lab.report import document

        print(json.dumps(document(report, sql), indent=2))
    else:
        from jobslab.commands.tables import print_report

        print_report(report, plan.contract, every_step=bool(scenario or schedule), with_sql=sql)
    raise typer.Exit(0 if report.ok else 1)


def planned(name: str | None, schedule: str | None, contract: Contract | None, data: Path | None) -> Plan:
    """What the user asked for.  Raises UnknownScenario, HasNoSchedule, BadSchedule, CanNotRun."""
    from jobslab.lab.report import own
    from jobslab.lab.scenarios import EVERY, SCENARIOS, scenario, under
    from jobslab.lab.schedule import read
    from jobslab.source import sample

    if name is not None and schedule is not None:
        raise CanNotRun("give --scenario or --schedule, not both")
    everything = name is None and schedule is None
    export = data or (sample() if everything else None)
    plan = Plan([], export, contract or Contract(), False, None)
    if schedule is not None:
        beside = dict.fromkeys([contract or Contract(), Contract()])
        return plan._replace(scenarios=[own(read(schedule), beside)])
    if contract is None:
        return plan._replace(scenarios=list(EVERY) if name is None else [scenario(name)])
    chosen = SCENARIOS if name is None else (scenario(name),)
    return plan._replace(scenarios=[under(one, contract) for one in chosen])


# Carrying it out


def carried_out(plan: Plan, tell: Progress) -> "Report":
    """Run all of it.  Raises JobslabError; then nothing is kept."""
    from jobslab.lab import place
    from jobslab.lab.export import export
    from jobslab.lab.report import Report

    total = sum(len(scenario.variants) for scenario in plan.scenarios) + bool(plan.export)
    try:
        with ExitStack() as stack:
            files = stack.enter_context(directory(plan))
            report = Report([])
            if plan.export:
                tell(f"exporting {plan.export.name}", total)
                report = Report([], plan.export.name, export(plan.export, files, plan.contract))
            opens = stack.enter_context(place.over_http()) if plan.over_http else place.here
            shown = [show(scenario, plan, opens, files, lambda what: tell(what, total)) for scenario in plan.scenarios]
            return report._replace(shown=shown)
    except OSError as wrong:
        raise CanNotRun(f"the lab can't work on this machine: {wrong}") from wrong


def show(scenario: "Scenario", plan: Plan, opens: "Opens", files: Path, tell: Callable[[str], None]) -> "Shown":
    """The scenario with all its variants, run."""
    from jobslab.lab.report import Shown, column

    columns = []
    for variant in scenario.variants:
        tell(f"{scenario.name}: {variant.name}")
        name = file_name(scenario, variant)
        kept = (str(files / name), str(plan.keep / name)) if plan.keep and not scenario.enact else (None, None)
        columns.append(column(scenario, variant, opens, *kept))
    return Shown(scenario, tuple(columns))


def directory(plan: Plan) -> AbstractContextManager[Path]:
    """Where files are made: beside those that are kept, or where nothing stays."""
    from jobslab.commands.keep import keeping

    if plan.keep is None:
        return scratch()
    scheduled = [scenario for scenario in plan.scenarios if not scenario.enact]
    names = [file_name(scenario, variant) for scenario in scheduled for variant in scenario.variants]
    return keeping(plan.keep, names + ["export.db"] * bool(plan.export))


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="jobslab-") as path:
        yield Path(path)


def file_name(scenario: "Scenario", variant: "Variant") -> str:
    return "--".join(re.sub(r"[^a-z0-9]+", "-", name.lower()) for name in (scenario.name, variant.name)) + ".db"


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar on stderr while something runs; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda what, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        done = iter(range(1_000_000))
        yield lambda what, total: bar.update(task, description=what, total=total, completed=next(done))
