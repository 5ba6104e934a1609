"""`jobslab sweep`: which jobs have lost their worker?  They go back to the queue, or are given up.

`jobslab serve` does the same at a third of the lease.  This is for when it does not run, and `--dry-run` is for before.
"""

from collections.abc import Iterator
from typing import Annotated

import typer

from jobslab.commands.service import StoreUrl
from jobslab.commands.where import must_be_there
from jobslab.stores import Store, open_store

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]

WOULD = {"requeue": "goes back to the queue", "exhaust": "is given up: no attempt is left"}


def sweep(store: StoreUrl = "jobslab.db", dry_run: DryRun = False) -> None:
    """Give back to the queue, or give up, the jobs whose lease is over."""
    must_be_there(store, "store")
    with open_store(None, store) as jobs:
        lines = list(planned(jobs) if dry_run else done(jobs))
        if not jobs.contract.leases:
            lines.append("this store's contract has no leases: a sweep never finds anything in it")
    print("\n".join(lines or ["no running job's lease is over"]))


def planned(store: Store) -> Iterator[str]:
    """What a sweep would do, a line a job."""
    from jobslab.sweeper import Sweeper, decide, look, observe

    sweeper = look(store, Sweeper("sweep"))
    while (write := decide(sweeper)) is not None:
        yield f"{write.id}: the lease of attempt {write.attempt} is over; it {WOULD[write.verb]}"
        sweeper = observe(sweeper)


def done(store: Store) -> Iterator[str]:
    """The same, and do it; a write that was refused says by which rule."""
    from jobslab.sweeper import Sweeper, decide, deliver, look, observe

    sweeper = look(store, Sweeper("sweep"))
    while (write := decide(sweeper)) is not None:
        reply = deliver(store, sweeper, write)
        said = f"it is {reply.state} now" if reply.accepted else f"somebody was faster (refused by {reply.refused_by})"
        yield f"{write.id}: the lease of attempt {write.attempt} is over; {said}"
        sweeper = observe(sweeper)
