"""What may a user be shown?  Two screens for one export: one goes by HTTP's status code, the other by the job's state.

The page asks the API after everything that happens, as any page does that is kept open.  Both screens get the same
answers; only what they make of them differs.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jobslab.client import Answer
from jobslab.contract import Contract
from jobslab.lab.place import here
from jobslab.lab.running import rows
from jobslab.lab.schedule import parse

if TYPE_CHECKING:
    import pandas as pd

Screen = Callable[[Answer], str]

READY = "Your export is ready."
FAILED = "Your export failed."
WORKING = "Your export is under way."

SAYS = {
    "QUEUED": "Your export is ordered, and waits for its turn.",
    "SUCCEEDED": READY,
    "FAILED": "Your export failed: {why}.",
    "CANCELLED": "Your export was stopped, as you asked.",
}


def by_code(answer: Answer) -> str:
    """The screen that trusts HTTP's own code."""
    return READY if answer.status < 300 else FAILED


def by_state(answer: Answer) -> str:
    """The screen that reads the job's state; one that it does not know, or no state at all, is not an end."""
    job = answer.body if answer.status < 300 else {}
    return SAYS.get(job.get("state", ""), WORKING).format(why=job.get("error", {}).get("type"))


def screens(work: str, *shown: Screen, table: str = "orders") -> "pd.DataFrame":
    """What each screen says after the POST and after each step of `work`, a schedule of what workers do.

    A line a step; columns: HTTP's code, the job's state and its error, and a screen each.  Raises BadSchedule.
    """
    import pandas as pd

    steps = answers(work, table)
    told = {"HTTP": [str(answer.status) for _, answer in steps], "the job": [job(answer) for _, answer in steps]}
    for screen in shown:
        told[screen.__name__] = [screen(answer) for _, answer in steps]
    return pd.DataFrame(told, index=[step for step, _ in steps])


def answers(work: str, table: str) -> list[tuple[str, Answer]]:
    """Each step with what the page is answered after it."""
    with here(Contract()) as place:
        posted = place.client.submit_once("export", {"table": table})
        after = [(row.step, place.client.get(posted.body["id"])) for row in rows(parse(work), place)]
        return [("POST /jobs", posted), *after]


def job(answer: Answer) -> str:
    """The state, and why the job is over without a result."""
    error = answer.body.get("error")
    return answer.body["state"] + (f": {error['type']}" if error else "")
