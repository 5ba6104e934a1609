"""`jobslab sweep`: which jobs have lost their worker?  They go back to the queue, or are given up.

`jobslab serve` does the same at a third of the lease.  This is for when it does not run, and `--dry-run` is for before.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from jobslab.commands.service import StoreUrl
from jobslab.commands.where import must_be_there
from jobslab.stores import Store, open_store

if TYPE_CHECKING:
    from jobslab.sweeper import Sweeper, Write

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]

WOULD = {
    "requeue": "goes back to the queue, or is over if it was asked to stop",
    "exhaust": "is given up: no attempt is left",
}


def sweep(store: StoreUrl = "jobslab.db", dry_run: DryRun = False) -> None:
    """Give back to the queue, or give up, the jobs whose lease is over."""
    must_be_there(store, "store")
    with open_store(None, store) as jobs:
        lines = list(told(jobs, dry_run))
        if not jobs.contract.leases:
            lines.append("this store's contract has no leases: a sweep never finds anything in it")
    print("\n".join(lines or ["no running job's lease is over"]))


def told(store: Store, dry_run: bool) -> Iterator[str]:
    """What a sweep would do, or what it did, a line a job."""
    from jobslab.sweeper import Sweeper, decide, look, observe

    sweeper = look(store, Sweeper("sweep"))
    while (write := decide(sweeper)) is not None:
        says = WOULD[write.verb] if dry_run else done(store, sweeper, write)
        yield f"{write.id}: the lease of attempt {write.attempt} is over; it {says}"
        sweeper = observe(sweeper)


def done(store: Store, sweeper: "Sweeper", write: "Write") -> str:
    """Do it, and say what became of it; a write that was refused says by which rule."""
    from jobslab.sweeper import deliver

    reply = deliver(store, sweeper, write)
    return f"is {reply.state} now" if reply.accepted else f"has changed meanwhile (refused by {reply.refused_by})"
