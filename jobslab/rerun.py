"""How is a job done again that is over?  As a new job: what is over stays over, and both can be looked at.

The new job has the kind and params of the old one and its owner, names it in `rerun_of`, and begins with no attempt: an
old count would give it up at once.  Its key is made of the old id, so that asked twice it is one job.
"""

import json

from jobslab.errors import JobslabError
from jobslab.job import Expired, State, Submitted
from jobslab.stores import Store


class CanNotRerun(JobslabError):
    """The job can't be run again as it stands; nothing was stored."""


def rerun(store: Store, id: str, new_id: str, *, anyway: bool = False, now: float | None = None) -> Submitted:
    """Submit the job once more; `replayed` where that was done already.  `anyway`: though it has succeeded, or is not
    over, so that its work may be done twice.  Raises CanNotRerun."""
    job = store.get(id, now=now)
    if job is None:
        raise CanNotRerun(f"there is no job {id}; check the id, and that this is its store")
    if isinstance(job, Expired):
        raise CanNotRerun(f"the job {id} is expired, and its params are gone; submit a new job instead")
    if not anyway and (wrong := why_not(job.state)):
        raise CanNotRerun(f"the job {id} is {job.state}: {wrong}, or say that it is to run anyway (--anyway)")
    return store.submit(
        new_id, job.kind, json.loads(job.params), job.owner, key_of(id),
        max_attempts=job.max_attempts, correlation_id=job.correlation_id, rerun_of=id, now=now,
    )  # fmt: skip


def key_of(id: str) -> str:
    return f"rerun-of-{id}"


def why_not(state: str) -> str:
    """What stands against running a job of this state again; nothing for one that ended without a result."""
    if state == State.SUCCEEDED:
        return "its work is done, and would be done twice; fetch its result"
    if state in (State.QUEUED, State.RUNNING):
        return "it is not over, and its work might be done twice; wait for it, or cancel it first"
    return ""
