"""What happens if this schedule runs under that contract?  A Trial: a schedule, a contract, and the rows of the run.

The notebooks' `run` makes one from a scenario's variant, or from a schedule of the learner's own.  Everything else that
a chapter shows (table, timeline, verdicts, the database file) is made from trials.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.contract import Contract
from jobslab.lab.place import here
from jobslab.lab.running import Row
from jobslab.lab.running import run as run_here
from jobslab.lab.scenarios import EVERY, Scenario, scenario
from jobslab.lab.schedule import Schedule, parse
from jobslab.lab.text import as_html
from jobslab.lab.timeline import Side, states, step_and_label, twin, words

if TYPE_CHECKING:
    import pandas as pd
    import sqlite_utils


class Trial(NamedTuple):
    """One run: of what, what it is called, which contract was in force, what was done and what came of it."""

    title: str
    name: str
    contract: Contract
    schedule: Schedule
    rows: tuple[Row, ...]

    @property
    def side(self) -> Side:
        return Side(self.name, str(self.contract), self.rows)

    @property
    def last(self) -> Row:
        """What became of the last step."""
        return self.rows[-1]

    def answer(self, label: str) -> str:
        """What the step with this label was answered.  Raises KeyError."""
        return {row.label: row.answer for row in self.rows if row.label}[label]

    def __str__(self) -> str:
        return twin(self.title, [self.side])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return as_html(frame(self))


def run(what: str | Scenario, how: str | Contract | None = None) -> Trial:
    """Run a scenario or a schedule in this process, on a new store.

    `what` is a scenario's name or a schedule as text; `how` a variant of the scenario, or a contract: a Contract or its
    text ("all but leases").  Left out: the scenario's first variant, or the full contract.  Raises BadSchedule,
    UnknownFlag, HasNoSchedule.
    """
    trial = plan(what, how)
    return rerun(trial, trial.schedule)


def rerun(trial: Trial, schedule: Schedule) -> Trial:
    """The trial with another schedule, run anew."""
    with here(trial.contract) as place:
        return trial._replace(schedule=schedule, rows=tuple(run_here(schedule, place)))


def plan(what: str | Scenario, how: str | Contract | None = None) -> Trial:
    """The trial that is not run yet: no rows."""
    scene = what if isinstance(what, Scenario) else next((s for s in EVERY if s.name == what), None)
    if scene is None:
        contract = contract_of(how if how is not None else "all")
        return Trial("one schedule", str(contract), contract, parse(str(what)), ())
    for variant in scene.variants:
        if how is None or how == variant.name:
            return Trial(scene.name, variant.name, variant.contract, scene.schedule(variant), ())
    contract = contract_of(how)
    return Trial(scene.name, str(contract), contract, scene.schedule(scene.variants[-1]), ())


def contract_of(how: str | Contract | None) -> Contract:
    return how if isinstance(how, Contract) else Contract.parse(str(how))


def variants(name: str) -> list[Trial]:
    """All variants of a scenario, run.  Raises UnknownScenario."""
    return [run(name, variant.name) for variant in scenario(name).variants]


@contextmanager
def database(trial: Trial) -> "Iterator[sqlite_utils.Database]":
    """The database file that the trial leaves, opened with sqlite-utils; the file is gone afterwards.

    The schedule is run once more, on a file: the same steps leave the same rows.
    """
    import sqlite_utils

    with TemporaryDirectory() as folder:
        file = Path(folder) / "jobs.db"
        with here(trial.contract, str(file)) as place:
            run_here(trial.schedule, place)
        db = sqlite_utils.Database(file)
        try:
            yield db
        finally:
            db.close()


def frame(trial: Trial) -> "pd.DataFrame":
    """The rows as a DataFrame: a line a step; columns t, step, answer, jobs."""
    import pandas as pd

    cells = [(f"{row.at:g}", step_and_label(row), words(row), states(row)) for row in trial.rows]
    return pd.DataFrame(cells, columns=["t", "step", "answer", "jobs"], index=[row.n for row in trial.rows])


def side_by_side(*trials: Trial) -> "pd.DataFrame":
    """The answers as a DataFrame: a line a step that has a label (or every step, if none has), a column a trial."""
    import pandas as pd

    labelled = any(row.label for trial in trials for row in trial.rows)
    columns = {trial.name: answers(trial.rows, labelled) for trial in trials}
    steps = list(dict.fromkeys(step for column in columns.values() for step in column))
    table = {name: [column.get(step, "") for step in steps] for name, column in columns.items()}
    return pd.DataFrame(table, index=steps)


def answers(rows: Sequence[Row], labelled: bool) -> dict[str, str]:
    if labelled:
        return {row.label: words(row) for row in rows if row.label}
    return {f"{row.n} {row.step}": words(row) for row in rows}


JOB_COLUMNS = ("id", "state", "attempt", "max_attempts", "worker", "lease_until", "progress", "result", "error")
EVENT_COLUMNS = ("at", "job_id", "actor", "verb", "attempt", "accepted", "refused_by", "state_before", "state_after")


def jobs(trial: Trial, *more: str) -> "pd.DataFrame":
    """The table `jobs` that the trial leaves: its telling columns, and these more."""
    return table(trial, "jobs", (*JOB_COLUMNS, *more))


def journal(trial: Trial) -> "pd.DataFrame":
    """The journal that the trial leaves: one line for each write, refused ones too."""
    return table(trial, "events", EVENT_COLUMNS)


def table(trial: Trial, name: str, columns: Sequence[str]) -> "pd.DataFrame":
    """Columns of one table of the database file, with numbers as people write them and nothing where nothing is."""
    import pandas as pd

    with database(trial) as db:
        rows = [[plain(row[column]) for column in columns] for row in db[name].rows]
    return pd.DataFrame(rows, columns=list(columns), index=range(1, len(rows) + 1))


def plain(value: Any) -> str:
    """10.0 as 10, NULL as nothing."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
