"""What did a search see?  What it found, how rare that is, and what a smaller world would have hidden.

The search itself is `explore`; here its findings are told to people.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobslab.contract import FLAGS, Contract
from jobslab.lab import figures
from jobslab.lab.explore import Exploration, bounds_of, count, enough, explore, named
from jobslab.lab.picture import Picture
from jobslab.lab.properties import CURRENT, ENDS, FINAL, KEPT, LIVE, ONE_JOB, SWEEP
from jobslab.lab.text import Text
from jobslab.lab.trial import contract_of
from jobslab.lab.world import Bounds

if TYPE_CHECKING:
    import pandas as pd

ANSWERED_FOR = (ONE_JOB, KEPT, ENDS, LIVE, FINAL, SWEEP, CURRENT)  # each by a flag of its own; the others follow
AS_THEY_ARE = "as above"
STEPS = 5  # on a line


def seen(found: Exploration) -> "pd.DataFrame":
    """What was found under one contract: a line a promise."""
    import pandas as pd

    told = {name: str(one) for name, one in found.findings.items()}
    return pd.DataFrame({f"{found.states:,} states, {found.steps:,} steps": told})


def how_often(promise: str, steps: int, *contracts: str) -> "pd.DataFrame":
    """Of all schedules of so many steps, how many break the promise: a line a contract.

    Raises UnknownProperty, UnknownFlag, NoSuchSchedule.
    """
    import pandas as pd

    counts = [count(contract_of(contract), promise, steps, Bounds()) for contract in contracts]
    cells = [(f"{each.total:,}", f"{each.seen:,}") for each in counts]
    return pd.DataFrame(cells, columns=[f"schedules of {steps} steps", "that break it"], index=[*contracts])


def joined(*searches: Sequence[Exploration]) -> list[Exploration]:
    """Searches that asked for different promises, in worlds of different sizes, as one: contract by contract."""
    return [one_of(each) for each in zip(*searches)]


def one_of(parts: Sequence[Exploration]) -> Exploration:
    """What was found under one contract in several worlds."""
    findings = {name: one for part in parts for name, one in part.findings.items()}
    states, steps = sum(part.states for part in parts), sum(part.steps for part in parts)
    exhausted = all(part.exhausted for part in parts)
    return parts[0]._replace(states=states, steps=steps, exhausted=exhausted, findings=findings)


def picture(found: Sequence[Exploration]) -> Picture:
    """The matrix, its text beginning with what it is a picture of."""
    drawn = figures.matrix(found)
    return drawn._replace(text=f"{drawn.alt}\n\n{drawn.text}")


def flags_for(promise: str, found: Sequence[Exploration]) -> str:
    """The flags that are enough for a promise, whatever else is on or off; `found` are all 32 contracts.

    Raises UnknownProperty.
    """
    return figures.in_words(enough(found)[named(promise)])


def smallest(found: Sequence[Exploration]) -> Text:
    """For each flag the promises that it answers for, and a shortest schedule that breaks each without it."""
    blocks = []
    for flag in FLAGS:
        broken = next(each.broken for each in found if each.contract.off == (flag,))
        for promise in [promise for promise in ANSWERED_FOR if promise in broken]:
            steps = broken[promise].schedule.splitlines()
            lines = [" / ".join(steps[n : n + STEPS]) for n in range(0, len(steps), STEPS)]
            blocks.append("\n    ".join([f"{flag} off, {promise}, {len(steps)} steps:", *lines]))
    return Text("\n\n".join(blocks))


def within(promise: str, contract: str | Contract, *bounds: str) -> "pd.DataFrame":
    """The same question in worlds of several sizes: a line for each of these bounds, as `jobslab explore` reads them.

    Raises UnknownProperty, UnknownFlag, BadBounds.
    """
    import pandas as pd

    name = named(promise)
    found = [explore(contract_of(contract), bounds_of(each), names=[name]) for each in bounds]
    cells = [(str(each.findings[name]), f"{each.states:,}", "yes" if each.exhausted else "no") for each in found]
    return pd.DataFrame(cells, columns=["found", "states", "all seen"], index=[each or AS_THEY_ARE for each in bounds])
