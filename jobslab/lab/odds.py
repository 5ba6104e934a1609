"""In how many orders of events does a promise break?  Counted over all of them, so that nobody has to be lucky.

`fails` counts the schedules of one length, and says what the explorer found where length does not matter; `shortest`
runs a shortest schedule that breaks the promise.
"""

from jobslab.contract import Contract
from jobslab.lab.explore import BROKEN, Finding, NoSuchSchedule, count, explore, named
from jobslab.lab.properties import ENDS
from jobslab.lab.text import Text
from jobslab.lab.trial import Trial, contract_of, run
from jobslab.lab.world import Bounds

# Enough for every promise to be broken under some contract, and little enough to be counted while one waits.
FEW = Bounds(sweepers=1, reports=("progress", "succeed"), late=("progress",))


def fails(promise: str, *contracts: str | Contract, steps: int = 8) -> Text:
    """In k of n schedules of so many steps, for each contract, or the full one; the promise by a part of its name.

    Raises UnknownProperty, UnknownFlag.
    """
    name = named(promise)
    asked = [contract_of(contract) for contract in contracts or ("all",)]
    wide = max(len(str(contract)) for contract in asked)
    lines = [f"  {contract!s:<{wide}}  {counted(name, contract, steps)}; {found(name, contract)}" for contract in asked]
    return Text("\n".join([f"{name}, in all schedules of {steps} steps:", *lines]))


def counted(name: str, contract: Contract, steps: int) -> str:
    if name == ENDS:
        return "not counted, since a schedule that stops proves nothing"
    seen, total = count(contract, name, steps, FEW)
    return f"fails in {seen} of {total}"


def found(name: str, contract: Contract) -> str:
    """What the explorer says, of schedules of any length."""
    exploration = explore(contract, names=[name], first=True)
    finding = exploration.findings[name]
    if finding.answer == BROKEN:
        return f"a shortest one that breaks it has {len(finding.trace)} steps"
    return f"{finding.answer} in every order of events ({exploration.states} states)"


def shortest(promise: str, contract: str | Contract) -> Trial:
    """A run of a shortest schedule that breaks the promise under this contract.  Raises NoSuchSchedule."""
    name, asked = named(promise), contract_of(contract)
    finding: Finding = explore(asked, names=[name]).findings[name]
    if not finding.trace:
        raise NoSuchSchedule(f"no schedule breaks {name!r} under the contract [{asked}]: {finding}")
    return run(finding.schedule, asked)
