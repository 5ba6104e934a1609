"""What is left of a job of three steps when the third fails for good?  A trip: hotel and flight are paid, the car is
declined, and so both are paid back, the last first.  A worker may crash at any point, in the undoing too.

The saga is the one of `effects`, with its checkpoints.  What differs between the ways is how the steps are undone.
"""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from jobslab.effects import Checkpoints, Step, Undone, saga
from jobslab.job import Job
from jobslab.lab.again import Crash, Fault, Story, Work, done, title
from jobslab.lab.payment import LIMIT, Account, Declined, shared
from jobslab.worker import Permanent

if TYPE_CHECKING:
    import pandas as pd

TRIP = {"hotel": 300, "flight": 200, "car": LIMIT + 1}
PAID = ("hotel", "flight")

UNDONE = "all is paid back, before the report"

# Every point: before a call, and after it but before its checkpoint.  After the checkpoint is before the next call.
POINTS = (
    *(f"{when} {what} is paid" for what in PAID for when in ("before", "after")),
    "before car is declined",
    "after car is declined",
    *(f"{when} {what} is paid back" for what in reversed(PAID) for when in ("before", "after")),
    UNDONE,
)
FAULTS = (Fault(), *(Fault("crash", point) for point in POINTS))


class Trap:
    """Crashes the process that first comes to its point; and it keeps what the worker at work has called."""

    def __init__(self, point: str) -> None:
        self.point, self.sprung = point, False
        self.calls: list[str] = []

    def at(self, point: str) -> None:
        if point == self.point and not self.sprung:
            self.sprung = True
            raise Crash(point)

    def around(self, what: str, called: str, call: Callable[[], Any]) -> Any:
        self.at(f"before {what}")
        self.calls.append(called)
        try:
            return call()
        finally:
            self.at(f"after {what}")


Back = Callable[[Account, str, int], Any]


def pays_back(account: Account, reference: str, amount: int) -> Any:
    """Pay it back."""
    return account.refund(reference, amount)


def pays_back_once(account: Account, reference: str, amount: int) -> Any:
    """Pay it back, with a key that is the same in every attempt."""
    return account.refund(reference, amount, key=f"undo {reference}")


WAYS: dict[str, Back] = {"checkpoints": pays_back, "checkpoints, key": pays_back_once}


def trip(job: Job, account: Account, back: Back, trap: Trap) -> list[Step]:
    """The three steps.  Paying has its key under both ways: a payment that is made twice is another lesson."""

    def step(what: str, amount: int) -> Step:
        reference = f"{job.id} {what}"
        becomes = "paid" if what in PAID else "declined"
        return Step(
            what,
            lambda: trap.around(f"{what} is {becomes}", what, lambda: account.pay(reference, amount, key=reference)),
            lambda: trap.around(f"{what} is paid back", f"{what} back", lambda: back(account, reference, amount)),
        )

    return [step(what, amount) for what, amount in TRIP.items()]


def travel(back: Back, fault: Fault = Fault()) -> Story:
    """The story of one trip; it shows the calls of the worker at work, and what the customer has paid and not got
    back."""
    account, trap = shared().account(), Trap(fault.at)

    def work(job: Job) -> Work:
        trap.calls.clear()
        return steps(job)

    def steps(job: Job) -> Work:
        yield "begins"
        try:
            return saga(book, job.id, trip(job, account, back, trap), Declined)
        except Undone as wrong:
            trap.at(UNDONE)
            raise Permanent("declined", str(wrong)) from wrong

    with closing(Checkpoints(None)) as book:
        return done(
            work, fault, lambda: {"calls": ", ".join(trap.calls), "the customer has paid": str(account.balance)}
        )


def undone(switches: str) -> dict[str, str]:
    """What the customer has paid in the end, under every fault: the scenario's rows."""
    return outcomes(WAYS[switches])


def outcomes(back: Back) -> dict[str, str]:
    return {str(fault): outcome(travel(back, fault)) for fault in FAULTS}


def outcome(story: Story) -> str:
    return f"{story.state}; paid {story.seen['the customer has paid']}"


def table(*ways: Back) -> "pd.DataFrame":
    """The same: a line a fault, a column a way."""
    import pandas as pd

    return pd.DataFrame({title(way): outcomes(way) for way in ways})
