"""What did the runs show, and was it as expected?  The tables of `jobslab run` as values, and as one JSON object."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jobslab.contract import Contract, statements
from jobslab.lab.export import Exported
from jobslab.lab.place import Opens, here
from jobslab.lab.running import Row
from jobslab.lab.scenarios import Line, Scenario, Variant, lines, play
from jobslab.lab.schedule import Schedule, text


class Column(NamedTuple):
    """One variant that was run."""

    variant: Variant
    schedule: Schedule | None  # None: it was enacted
    rows: list[Row]
    lines: list[Line]
    file: str | None  # the database, where it was kept


class Shown(NamedTuple):
    """A scenario with its variants."""

    scenario: Scenario
    columns: tuple[Column, ...]

    @property
    def lines(self) -> list[Line]:
        return [line for column in self.columns for line in column.lines]


def column(
    scenario: Scenario, variant: Variant, place: Opens = here, path: str | None = None, file: str | None = None
) -> Column:
    """The variant, run on a new store at `path`, which is to be named `file`."""
    rows = play(scenario, variant, place, path)
    schedule = None if scenario.enact else scenario.schedule(variant)
    return Column(variant, schedule, rows, lines(scenario, variant, rows), file)


def own(schedule: Schedule, contracts: Iterable[Contract]) -> Scenario:
    """A schedule of the user's as a scenario: a variant for each contract, and nothing expected."""
    variants = tuple(Variant(str(contract), contract, "") for contract in contracts)
    return Scenario("your schedule", "", text(schedule), variants)


class Report(NamedTuple):
    """Everything that one `jobslab run` has run."""

    shown: list[Shown]
    source: str | None = None  # the file that was exported; None: nothing was to be
    exported: Sequence[Exported] = ()

    @property
    def judged(self) -> list[Line]:
        """The rows of which something was expected."""
        return [line for shown in self.shown for line in shown.lines if line.held is not None]

    @property
    def lacking(self) -> list[Line]:
        """The rows that could not be tried, since something is not installed."""
        return [line for shown in self.shown for line in shown.lines if line.lacks]

    @property
    def missed(self) -> list[Line]:
        return [line for line in self.judged if not line.held]

    @property
    def ok(self) -> bool:
        return not self.missed and all(one.whole for one in self.exported)

    @property
    def contracts(self) -> list[Contract]:
        """Those under which something ran, each once."""
        return list(dict.fromkeys(column.variant.contract for shown in self.shown for column in shown.columns))


# Which statements a step may run
RUNS: dict[str, tuple[str, ...]] = {
    "submit": ("submit", "find"),
    "submit again": ("submit", "find"),
    "cancel": ("cancel", "ask_to_stop"),
    "pick": ("pick",),
    "claim": ("claim",),
    "claim next": ("pick", "claim"),
    "look": ("stuck",),
    "requeue": ("requeue", "exhaust"),
    "sweep": ("stuck", "requeue", "exhaust"),
    "restart": ("restart",),
    "purge": ("purge",),
}


def sql(report: Report, contract: Contract) -> dict[str, str]:
    """The statements that the steps of these runs may use, as they stand under a contract."""
    verbs = {row.verb for shown in report.shown for column in shown.columns for row in column.rows}
    used = {statement for verb in verbs for statement in RUNS.get(verb, (verb.removesuffix(" late"),))}
    return {verb: statement for verb, statement in statements(contract).items() if verb in used}


# As JSON


def document(report: Report, with_sql: bool) -> dict[str, Any]:
    """The report as one JSON object; its shape is described in `commands.run`."""
    told: dict[str, Any] = {
        "ok": report.ok,
        "rows": len(report.judged),
        "held": len(report.judged) - len(report.missed),
        "scenarios": [scenario_document(shown) for shown in report.shown],
        "export": [one._asdict() for one in report.exported] if report.source else None,
    }
    return told | ({"sql": {str(contract): sql(report, contract) for contract in report.contracts}} if with_sql else {})


def scenario_document(shown: Shown) -> dict[str, Any]:
    variants = [
        {
            "variant": column.variant.name,
            "flags_on": str(column.variant.contract),
            "switches": column.variant.switches,
            "schedule": None if column.schedule is None else text(column.schedule),
            "file": column.file,
            "rows": [{name: getattr(line, name) for name in ROW} for line in column.lines],
            "steps": [{name: getattr(row, name) for name in STEP} for row in column.rows],
        }
        for column in shown.columns
    ]
    return {"scenario": shown.scenario.name, "question": shown.scenario.question, "variants": variants}


ROW = ("step", "expected", "seen", "held", "lacks")
STEP = "n at actor step label answer outcome refused_by note job state attempt".split()
