"""Does the journal tell one story of a job, and the same one as its row?  Or was something lost, or changed by hand?

Every change writes its line in its own transaction, refusals too.  So each line begins in the state in which the last
one ended, claims count their attempts, and the last line ends where the row is.  Where that does not hold, neither
can be trusted alone.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from jobslab.job import Event, Job


def life(events: Sequence[Event]) -> tuple[Event, ...]:
    """The lines of the job that has the id now: counted ids begin anew when a purge has emptied the table."""
    first = [n for n, event in enumerate(events) if is_birth(event)]
    return tuple(events[first[-1] :] if first else events)


def is_birth(event: Event) -> bool:
    """Did this line make the job?  A replay of its key finds it in a state."""
    return event.verb == "submit" and event.state_before is None


def complaints(job: Job, events: Sequence[Event], cut: bool = False) -> Iterator[str]:
    """What is wrong with this job's lines, in the order in which one meets it; nothing: they tell one story.  `cut`:
    the job is so old that a purge may have taken its oldest lines."""
    if not events:
        yield from () if cut else ("it has no line of the job",)
        return
    if not is_birth(events[0]) and not cut:
        yield "its first lines are missing: none tells of the submit"
    for before, after in pairwise(events):
        if before.state_after != after.state_before:
            yield f"line {after.n} begins in {after.state_before}, and the line before ended in {before.state_after}"
    claims = [event for event in events if event.verb == "claim" and event.accepted]
    for earlier, later in pairwise(claims):
        if later.attempt != (earlier.attempt or 0) + 1:
            yield f"attempt {later.attempt} was claimed right after attempt {earlier.attempt}"
    yield from beside(job, events, claims, cut)


def beside(job: Job, events: Sequence[Event], claims: Sequence[Event], cut: bool) -> Iterator[str]:
    """What the journal's end says otherwise than the row."""
    if events[-1].state_after != job.state:
        yield f"its last line ends in {events[-1].state_after}, and the row is {job.state}"
    attempt = claims[-1].attempt if claims else 0
    if attempt != job.attempt and (claims or not cut):
        yield f"it has claims up to attempt {attempt}, and the row is at attempt {job.attempt}"
