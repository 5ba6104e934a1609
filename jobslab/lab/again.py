"""What does a job leave that is done twice?  Its first worker stops at one point, and a second one does it again.

The work is written as a generator that yields the name of each point at which its worker may stop.  A crash is a
generator that nobody asks to go on, or a Crash that is raised inside of a step: nothing after that point runs.  (That
is what a SIGKILL leaves too; `paying.kill` does it to a process.)  A worker that is only slow goes on after the second
has done everything.  Store, leases, sweep and reports are the engine's own.
"""

import difflib
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.contract import Contract
from jobslab.errors import JobslabError
from jobslab.job import Error, Job
from jobslab.lab.text import Text, tabular
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from jobslab.sweeper import sweep
from jobslab.worker import Permanent

if TYPE_CHECKING:
    import pandas as pd

KIND = "work"
LATER = LAB.lease_seconds + 1  # when the first worker's lease is over

# What one attempt does: it yields each point at which a worker may stop, and returns the job's result.
Work = Generator[str, None, Any]


class Crash(BaseException):
    """The process is gone, in the middle of a step.  No handler of Exception may see it."""


class NotReached(JobslabError):
    """The work never comes to the point of the fault, so the fault did not happen."""

    def __init__(self, point: str) -> None:
        super().__init__(f"the fault did not happen, since the work has no point {point!r}")


class Fault(NamedTuple):
    """What happens to the first worker, and at which point."""

    what: str = ""  # "crash" or "slow"; nothing: it does its job, and there is no second
    at: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.at}" if self.what else "no fault"


class Line(NamedTuple):
    """What one worker has come to, and how things are there."""

    who: str
    does: str
    state: str  # of the job
    seen: tuple[tuple[str, str], ...]  # whatever the lab looked at


@tabular
class Story(NamedTuple):
    """All that became of one job."""

    fault: Fault
    lines: tuple[Line, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """Who came to what, a text a line."""
        return tuple(f"{line.who}: {line.does}" for line in self.lines)

    @property
    def state(self) -> str:
        """The job's, at the end."""
        return self.lines[-1].state

    @property
    def seen(self) -> dict[str, str]:
        """What the lab looked at, at the end."""
        return dict(self.lines[-1].seen)

    def frame(self) -> "pd.DataFrame":
        """The lines as a DataFrame: a line a point, who was there, the job's state, and what was looked at."""
        import pandas as pd

        rows = [{"who": line.who, "does": line.does, "job": line.state, **dict(line.seen)} for line in self.lines]
        return pd.DataFrame(rows, index=range(1, len(rows) + 1))


def title(way: Callable[..., Any]) -> str:
    """The name of a way, in words."""
    return way.__name__.replace("_", " ")


def change(before: Callable[..., Any], after: Callable[..., Any]) -> Text:
    """The lines of code in which two ways differ, `-` before and `+` after; names and docstrings left out."""
    a, b = (body(way) for way in (before, after))
    lines = [line.rstrip() for line in difflib.ndiff(a, b) if line[0] in "-+"]
    return Text("\n".join([f"--- {before.__name__}", f"+++ {after.__name__}", *lines]))


def body(way: Callable[..., Any]) -> list[str]:
    """The lines of a function after its head and its docstring."""
    source = inspect.getsource(way)
    return source.partition('"""')[2].partition('"""\n')[2].splitlines()


class Scene(NamedTuple):
    """One job in its store, the work that it is, and what the lab looks at after each point: a ledger, a file."""

    store: Store
    work: Callable[[Job], Work]
    look: Callable[[], Mapping[str, str]]

    def line(self, who: str, does: str) -> Line:
        return Line(who, does, self.store.rows()[0].state, tuple(self.look().items()))


def done(work: Callable[[Job], Work], fault: Fault, look: Callable[[], Mapping[str, str]], id: str = "job-1") -> Story:
    """The story of one job under the full contract: worker A meets the fault, worker B does the job again."""
    with open_store(Contract(), settings=LAB, kinds=(KIND,)) as store:
        store.submit(id, KIND, {}, now=0)
        return Story(fault, tuple(told(Scene(store, work, look), fault)))


def told(scene: Scene, fault: Fault) -> Iterator[Line]:
    first = Attempt(scene, "A", 0)
    yield scene.line("A", "takes it, attempt 1")
    while (point := first.goes_on()) is not None and (not fault.what or point != fault.at):
        yield scene.line("A", point)
    if not fault.what:
        yield scene.line("A", first.reports(0))
        return
    if point is None and not first.crashed:
        raise NotReached(fault.at)
    yield scene.line("A", f"{fault.at}: {'is gone' if fault.what == 'crash' else 'stands still'}")
    yield from again(scene)
    if fault.what == "slow":
        while (point := first.goes_on()) is not None:
            yield scene.line("A", f"wakes, {point}")
        yield scene.line("A", first.reports(LATER))
    first.work.close()


def again(scene: Scene) -> Iterator[Line]:
    """The first worker's lease is over, and B does the job from the beginning to the end."""
    sweep(scene.store, now=LATER)
    second = Attempt(scene, "B", LATER)
    yield scene.line("B", "takes it, attempt 2")
    while (point := second.goes_on()) is not None:
        yield scene.line("B", point)
    yield scene.line("B", second.reports(LATER))


class Attempt:
    """One worker with the job in hand."""

    def __init__(self, scene: Scene, name: str, now: float) -> None:
        reply = scene.store.claim_next(name, now=now)
        assert reply is not None
        assert reply.job is not None
        self.store, self.name, self.job = scene.store, name, reply.job
        self.work = scene.work(self.job)
        self.result: Any = None
        self.error: Error | None = None
        self.crashed = False

    def goes_on(self) -> str | None:
        """The next point that it comes to; None: it is through, or gone."""
        try:
            return next(self.work)
        except StopIteration as end:
            self.result = end.value
        except Permanent as wrong:
            self.error = wrong.error
        except Crash:
            self.crashed = True
        return None

    def reports(self, now: float) -> str:
        """Tell the store; what was told, and whether it counted."""
        job = self.job.id, self.job.attempt, self.name
        reply = (
            self.store.fail(*job, self.error, now=now) if self.error else self.store.succeed(*job, self.result, now=now)
        )
        told = "failure" if self.error else "success"
        return f"reports {told}" + ("" if reply.accepted else f", refused: {reply.refused_by}")
