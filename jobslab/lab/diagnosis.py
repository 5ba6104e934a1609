"""What does one have to go by, when somebody asks where a job is?  The broken installations, as a chapter shows them.

    ward = Broken(seed=152, size=8)     installations that `faulty` breaks, each in another way
    ward.evidence(), ward.journal(3)   what an operator finds: rows, lines, files
    ward.where(3)                      what `jobslab where` says
    ward.how_far()                     a picture of the stages
    repaired(seed=152)                 what becomes of each fault when one sweeps, and when one reconciles

Every word makes them anew from the seed, looks, and leaves nothing behind.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab import landing, stage
from jobslab.api import create_app
from jobslab.cause import BY_NAME
from jobslab.client import JobClient
from jobslab.clock import ManualClock
from jobslab.job import Job, State
from jobslab.lab import faulty
from jobslab.lab.faulty import FAULTS, Fault, Installation
from jobslab.lab.outbox import outbox
from jobslab.lab.text import Text
from jobslab.lab.transport import InProcess
from jobslab.lab.trial import EVENT_COLUMNS, plain
from jobslab.reconcile import files, reconcile
from jobslab.stores import Store
from jobslab.sweeper import sweep
from jobslab.telling import text
from jobslab.where import Where, error, when

if TYPE_CHECKING:
    import pandas as pd


class Broken(NamedTuple):
    """Installations that are broken, as a seed makes them; they are numbered from 1."""

    seed: int
    size: int

    @contextmanager
    def opened(self) -> Iterator[list[Installation]]:
        """All of them, for as long as the body runs."""
        with TemporaryDirectory(prefix="jobslab-") as folder:
            yield faulty.broken(self.seed, self.size, Path(folder))

    def __str__(self) -> str:
        with self.opened() as all:
            return "\n".join(f"{one.name}  somebody asks for {one.id}" for one in all)

    def __repr__(self) -> str:
        return str(self)

    def told(self) -> dict[str, Where]:
        """What `where` says of each."""
        with self.opened() as all:
            return {one.name: one.diagnosed() for one in all}

    def where(self, number: int) -> Text:
        """What `jobslab where` prints."""
        return Text(text(self.told()[str(number)]))

    def causes(self) -> dict[str, str]:
        """What is really the matter with each."""
        with self.opened() as all:
            return {one.name: one.cause for one in all}

    def evidence(self) -> "pd.DataFrame":
        """What an operator finds: a line an installation."""
        import pandas as pd

        with self.opened() as all:
            return pd.DataFrame([found(one) for one in all], index=[one.name for one in all])

    def journal(self, number: int) -> "pd.DataFrame":
        """The journal of the job that somebody asks for."""
        import pandas as pd

        events = self.told()[str(number)].events
        rows = [[plain(getattr(event, column)) for column in EVENT_COLUMNS] for event in events]
        return pd.DataFrame(rows, columns=list(EVENT_COLUMNS), index=range(1, len(rows) + 1))

    def how_far(self) -> Any:
        """The stages that each job has reached, as a Picture."""
        from jobslab.lab.reached import picture

        return picture(self.told())


def proofs() -> "pd.DataFrame":
    """The table of the stages: what tells each, what that proves, and what it does not."""
    import pandas as pd

    rows = [{name: row[name] for name in stage.HEAD if name not in ("stage", "in chapter 01")} for row in stage.rows()]
    return pd.DataFrame(rows, index=list(stage.NAMES))


def to_choose_from() -> "pd.DataFrame":
    """The causes of all faults that there are, and what each means."""
    import pandas as pd

    return pd.DataFrame({"means": [BY_NAME[name].means for name in FAULTS.values()]}, index=list(FAULTS.values()))


# What an operator finds


def found(one: Installation) -> dict[str, str]:
    """The facts, in words, and no conclusion."""
    with one.store() as store:
        job = store.get(one.id, now=one.now)
        facts = {"asked for": one.id, **(row_facts(job, one.now) if isinstance(job, Job) else NO_ROW)}
        events = store.events_of(one.id)
        last = store.last_word()
        facts["its journal"] = ", ".join(lines(event.verb for event in events)) or "no line"
        facts["in the outbox"] = in_outbox(store, one.id)
    return facts | {
        "last word of any worker": "none" if last is None else exactly(one.now - last),
        "lies in results": lying(one.folder / "results", one.id),
        "in the ledger": ", ".join(entry.effect for entry in one.entries() if entry.job_id == one.id) or "nothing",
    }


NO_ROW = {"row": "no row", "its time": "", "error": "", "result": ""}


def row_facts(job: Job, now: float) -> dict[str, str]:
    times = {State.QUEUED: ("due", job.run_at), State.RUNNING: ("lease over", job.lease_until)}
    what, at = times.get(State(job.state), ("over", job.finished_at))
    result = json.loads(job.result or "{}")
    rows = {"file": f"{result.get('rows')} rows in {result.get('file')}"}
    return {
        "row": f"{job.kind} {job.state}, attempt {job.attempt} of {job.max_attempts}",
        "its time": f"{what} {exactly(now - (at or 0))}",
        "error": str(error(job).get("message", "")),
        "result": rows["file"] if "file" in result else ", ".join(f"{name}: {value}" for name, value in result.items()),
    }


def exactly(seconds: float) -> str:
    """How long ago that is: in seconds, as long as one can compare them."""
    return f"{seconds:g} s ago" if 0 <= seconds < 3600 else when(seconds)


def lines(verbs: Iterator[str]) -> Iterator[str]:
    """The verbs, each run of the same one once."""
    before = None
    for verb in verbs:
        if verb != before:
            yield verb
        before = verb


def in_outbox(store: Store, id: str) -> str:
    with store.database.read() as db:
        if not store.database.has_table(db, "outbox"):
            return "no broker"
    return "a line" if any(line.job == id for line in outbox(store)) else "no line"


def lying(results: Path, id: str) -> str:
    """The files of this job, and how many whole rows each has."""
    there = sorted(results.glob(f"{id}.*.csv"))
    return ", ".join(f"{file.name}: {landing.measured(file)['rows']} rows" for file in there) or "nothing"


# What repairs it

Repair = Callable[[Installation, Store], object]


def swept(one: Installation, store: Store) -> object:
    return sweep(store, now=one.now)


def reconciled(one: Installation, store: Store) -> object:
    return reconcile(store, files(one.folder / "results"), ids=lambda: "job-again", now=one.now)


ORDERS: dict[str, tuple[Repair, ...]] = {
    "sweep, then reconcile": (swept, reconciled),
    "reconcile, then sweep": (reconciled, swept),
}


def repaired(seed: int) -> "pd.DataFrame":
    """What `where` says of each fault that there is: as it was found, and after the two repairs in either order."""
    import pandas as pd

    rows = {faulty.words(fault): told(fault, seed) for fault in FAULTS}
    return pd.DataFrame(list(rows.values()), index=list(rows))


def told(fault: Fault, seed: int) -> dict[str, str]:
    """The same installation, copied for each order."""
    with Incident(fault, seed).opened() as one:
        seen = {"as found": one.diagnosed().cause.name}
        for name, order in ORDERS.items():
            copy = one._replace(folder=Path(shutil.copytree(one.folder, one.folder.parent / name)))
            seen[name] = after(copy, order)
        return seen


def after(one: Installation, order: tuple[Repair, ...]) -> str:
    """What is the matter after these repairs; and whether a new job does it again."""
    with one.store() as store:
        for repair in order:
            repair(one, store)
        again = any(row.rerun_of == one.id for row in store.rows())
    return one.diagnosed().cause.name + ", and a new job" * again


# One fault of which a chapter tells


class Incident(NamedTuple):
    """One installation, broken by this fault."""

    fault: Fault
    seed: int

    @contextmanager
    def opened(self) -> Iterator[Installation]:
        with TemporaryDirectory(prefix="jobslab-") as folder:
            yield faulty.installation("1", self.fault, Path(folder) / "1", Random(self.seed))

    def told(self) -> Where:
        """What `where` says."""
        with self.opened() as one:
            return one.diagnosed()

    def where(self) -> Text:
        """What `jobslab where` prints."""
        return Text(text(self.told()))

    def answer(self, question: str) -> str:
        """Its answer to one of the questions.  Raises KeyError."""
        told = self.told()
        return {one.question: one.answer for one in (*told.answers, *told.three)}[question]

    def over_http(self) -> "pd.DataFrame":
        """What the owner is answered: a line a request."""
        import pandas as pd

        asked = self.asked()
        rows = [{"status": str(status), "says": says} for status, says in asked.values()]
        return pd.DataFrame(rows, index=list(asked))

    def asked(self) -> Mapping[str, tuple[int, str]]:
        """For each request its status, and the state or the size that it tells of."""
        with self.opened() as one, one.store() as store:
            app = create_app(store, ManualClock(one.now), results=one.folder / "results")
            with JobClient("http://lab", transport=InProcess(app)) as client:
                status, result = (client.ask("GET", f"/jobs/{one.id}{part}") for part in ("", "/result"))
        size = result.headers.get("content-length")
        told = f"a file of {size} bytes" if result.status == 200 else str(result.body.get("title"))
        return {
            f"GET /jobs/{one.id}": (status.status, f"state {status.body['state']}"),
            f"GET /jobs/{one.id}/result": (result.status, told),
        }
