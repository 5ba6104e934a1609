"""What can one do about an effect that can't be done once?  A mail has no key, and nobody can ask whether it went.

What is left is a choice: perhaps twice, perhaps never, or a person who decides.  Each under every fault.
"""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from jobslab.effects import Checkpoints, Ledger
from jobslab.job import Job
from jobslab.lab.again import Fault, NotReached, Story, Work, done, title
from jobslab.lab.paying import AFTER, BEFORE
from jobslab.lab.payment import Account, shared

if TYPE_CHECKING:
    import pandas as pd

BETWEEN = "between mail and record"
INTENDED = "between intent and mail"  # a point of one way alone
POINTS = (BEFORE, INTENDED, BETWEEN, AFTER)
FAULTS = (
    Fault(),
    *(Fault("crash", point) for point in POINTS),
    *(Fault("slow", point) for point in POINTS[:-1]),
)

SENT = "sent"
ASK = "a person is asked"
NO_POINT = "no such point"


class Desk(NamedTuple):
    """What an attempt has at hand."""

    job: Job
    customer: Account
    ledger: Ledger  # who writes first, sends
    book: Checkpoints  # what was sent for certain


# The ways


def record_after(desk: Desk) -> Work:
    """Send, then write it down."""
    known = desk.book.has(desk.job.id, SENT)
    yield BEFORE
    if not known:
        desk.customer.mail(desk.job.id)
    yield BETWEEN
    desk.book.once(desk.job.id, SENT, str)
    yield AFTER


def record_before(desk: Desk) -> Work:
    """Write it down, then send."""
    yield BEFORE
    entry = desk.ledger.once(desk.job, "mail")
    yield BETWEEN
    if entry.tries == 1:
        desk.customer.mail(desk.job.id)
    yield AFTER


def intent_and_record(desk: Desk) -> Work:
    """Write down the intent, send, write down that it went; who finds the one without the other does not guess."""
    yield BEFORE
    intent = desk.ledger.once(desk.job, "about to send")
    yield INTENDED
    if intent.tries == 1:
        desk.customer.mail(desk.job.id)
        yield BETWEEN
        desk.book.once(desk.job.id, SENT, str)
    elif not desk.book.has(desk.job.id, SENT):
        return ASK
    yield AFTER
    return SENT


Way = Callable[[Desk], Work]

WAYS: dict[str, Way] = {
    "record after": record_after,
    "record before": record_before,
    "intent, record after": intent_and_record,
}


# A way under a fault


def send(way: Way, fault: Fault = Fault()) -> Story:
    """The story of one job that is to send one mail; it shows how many went, and who was asked."""
    customer = shared().account()
    asked: set[str] = set()  # the second attempt's result, which is where the doubt is told

    def work(job: Job) -> Work:
        said = yield from way(Desk(job, customer, ledger, book))
        asked.update([said] if said == ASK else [])
        return said

    with closing(Ledger(None)) as ledger, closing(Checkpoints(None)) as book:
        return done(work, fault, lambda: {"mails": mails(customer), "in doubt": "".join(asked)})


def mails(customer: Account) -> str:
    count = len(customer.movements("mail"))
    return f"{count} mail{'' if count == 1 else 's'}"


def outcome(story: Story) -> str:
    """How many mails went, and whether somebody is asked to look."""
    return "; ".join(word for word in story.seen.values() if word)


def mailed(switches: str) -> dict[str, str]:
    """What came of it, under every fault: the scenario's rows."""
    return outcomes(WAYS[switches])


def outcomes(way: Way) -> dict[str, str]:
    """What came of it, under every fault; a point that this way does not have is a line too, since the ways stand side
    by side."""
    return {str(fault): came_of(way, fault) for fault in FAULTS}


def came_of(way: Way, fault: Fault) -> str:
    try:
        return outcome(send(way, fault))
    except NotReached:
        return NO_POINT


def table(*ways: Way) -> "pd.DataFrame":
    """The same: a line a fault, a column a way."""
    import pandas as pd

    return pd.DataFrame({title(way): outcomes(way) for way in ways})
