"""`jobslab rerun`: how is a job done again that failed, when what stopped it is mended?  As a new job.

It has the old one's kind, params, owner and correlation id, names it in `rerun_of`, and begins with no attempt.  Asked
twice, it is the same new job.
"""

from typing import Annotated

import typer

from jobslab.commands.service import StoreUrl
from jobslab.commands.where import must_be_there
from jobslab.stores import open_store

Anyway = Annotated[bool, typer.Option("--anyway", help="Though it succeeded, or is not over: it may be done twice.")]


def rerun(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of the job that is to be done again.")],
    store: StoreUrl = "jobslab.db",
    anyway: Anyway = False,
) -> None:
    """Run a job again that is over without a result, as a new job."""
    from jobslab.clock import unguessable
    from jobslab.rerun import rerun as again

    must_be_there(store, "store")
    with open_store(None, store) as jobs:
        submitted = again(jobs, id, unguessable(), anyway=anyway)
    job = submitted.job
    was = f"{id} was run again before, as" if submitted.replayed else f"{id} is run again, as"
    print(f"{was} {job.id}, which is {job.state}; to follow it: jobslab where {job.id}")
