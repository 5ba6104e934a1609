"""How long is a job kept, and who decides that?  A job that is done and one that runs, asked for again much later.

By the clock, and not by when somebody tidies up: the same questions are asked of a store that nobody purges, and of one
that is purged before each question.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jobslab.client import Answer
from jobslab.contract import Contract
from jobslab.lab.place import here
from jobslab.lab.running import Place, run
from jobslab.lab.schedule import parse

if TYPE_CHECKING:
    import pandas as pd

TWO_JOBS = "client submits / A claims next / A succeeds / client submits / B claims next"
DONE, RUNS = "job-1", "job-2"


def keeping(*moments: float) -> "pd.DataFrame":
    """What is answered at these moments, in units after the job was done: a line a moment.

    Columns: the status and the result of the job that is done, its status in a store that is purged before each
    question, and the status of the job that runs.
    """
    import pandas as pd

    kept, purged = (list(asked(moments, purging)) for purging in (False, True))
    cells = [(done, result, tidied, runs) for (done, result, runs), (tidied, _, _) in zip(kept, purged)]
    columns = ["its status", "its result", "its status, if purged", "a job that runs"]
    return pd.DataFrame(cells, columns=columns, index=[f"{moment:,.0f}" for moment in moments])


def asked(moments: Sequence[float], purging: bool) -> Iterator[tuple[str, str, str]]:
    """At each moment: the status and the result of the job that is done, and the status of the one that runs."""
    with here(Contract()) as place:
        run(parse(TWO_JOBS), place)
        for moment in moments:
            place.advance(moment - place.now())
            if purging:
                place.store.purge(now=place.now())
            yield status(place, DONE), said(place.client.ask("GET", f"/jobs/{DONE}/result")), status(place, RUNS)


def status(place: Place, id: str) -> str:
    answer = place.client.get(id)
    return said(answer) if answer.status >= 400 else f"{answer.status} {answer.body['state']}"


def said(answer: Answer) -> str:
    """The status, and the name of the problem if it is one."""
    return f"{answer.status} {answer.body['type'].rpartition('/')[2]}" if answer.status >= 400 else str(answer.status)
