"""Who may ask for a job?  One API behind four doors: its ids counted or random, its callers asked who they are or not.

Alice has a job that is done and one that waits; Bob has made one before hers and one after, and tries to come by hers.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from jobslab.api import create_app
from jobslab.client import Answer, JobClient
from jobslab.clock import ManualClock, counted, unguessable
from jobslab.lab.transport import InProcess
from jobslab.settings import LAB
from jobslab.stores import open_store
from jobslab.web.tokens import Tokens, hashed

if TYPE_CHECKING:
    import pandas as pd

PEOPLE = ("Alice", "Bob")
TOKENS = {name: f"the-token-of-{name}-in-the-lab" for name in PEOPLE}
OWNERS = Tokens(tuple((hashed(token), name) for name, token in TOKENS.items()))
COUNTED = "job-"
FAR = 5  # places after a job that was just made there is none
SECRET = "Alice's customers"  # what her finished job has as its result


class Door(NamedTuple):
    """How ids are made, and who is known.  `owners=None`: nobody is asked who he is."""

    ids: Callable[[], Callable[[], str]]
    owners: Tokens | None


DOORS = {
    "counted ids": Door(counted, None),
    "random ids": Door(lambda: unguessable, None),
    "counted ids, owners": Door(counted, OWNERS),
    "random ids, owners": Door(lambda: unguessable, OWNERS),
}


class House(NamedTuple):
    """An API with four jobs, as Bob meets it."""

    bob: JobClient
    his: str  # the ids, in the order in which they were made
    hers: str  # of the job that is done
    waiting: str
    his_last: str


@contextmanager
def house(door: Door) -> Iterator[House]:
    clock = ManualClock()
    with closing(open_store(settings=LAB)) as store:
        app = create_app(store, clock, door.ids(), tokens=door.owners, traces=lambda: "lab")
        transport = InProcess(app)
        alice, bob = (JobClient("http://lab", transport=transport, token=TOKENS[name]) for name in PEOPLE)
        ids = [str(who.submit_once("export").body["id"]) for who in (bob, alice, alice, bob)]
        store.claim(ids[1], "A", now=clock.now())
        store.succeed(ids[1], 1, "A", SECRET, now=clock.now())
        with closing(transport):
            yield House(bob, *ids)


def number(id: str) -> int:
    """The id as a number: job-7 is 7, and a random id is a number too, a long one in hex."""
    return int(id.removeprefix(COUNTED), 10 if id.startswith(COUNTED) else 16)


def shifted(id: str, by: int) -> str:
    """The id that comes so many places later, if ids are numbers."""
    later = number(id) + by
    return f"{COUNTED}{later}" if id.startswith(COUNTED) else f"{later % 2**128:032x}"


def in_words(answer: Answer) -> str:
    if answer.status >= 400:
        return f"{answer.status} {answer.body['type'].rpartition('/')[2]}"
    return f"{answer.status} {answer.body['state'] if isinstance(answer.body, dict) else answer.body}"


def told_apart(bob: JobClient, id: str) -> str:
    """Does the answer for this id differ, in status, headers or body, from that for an id of nobody's?"""
    none = shifted(id, FAR)
    hers, nobodys = (str(bob.get(one)).replace(one, "ID") for one in (id, none))
    return "no: alike to the byte" if hers == nobodys else "yes"


def counts(house: House) -> str:
    """How many jobs did others make between his two?  By his own ids alone."""
    between = number(house.his_last) - number(house.his) - 1
    return f"{between} jobs" if 0 <= between < 1000 else "he can't tell"


# What Bob tries, in this order
TRIES: dict[str, Callable[[House], str]] = {
    "his own job": lambda house: in_words(house.bob.get(house.his)),
    "the id after his own": lambda house: in_words(house.bob.get(shifted(house.his, 1))),
    "her id, which stood in a log": lambda house: in_words(house.bob.get(house.hers)),
    "the result behind that id": lambda house: in_words(house.bob.ask("GET", f"/jobs/{house.hers}/result")),
    "a cancel of her other job": lambda house: in_words(house.bob.cancel(house.waiting)),
    "an id of nobody's": lambda house: in_words(house.bob.get(shifted(house.hers, FAR))),
    "can he tell hers from nobody's?": lambda house: told_apart(house.bob, house.hers),
    "how many jobs do others make?": counts,
}


def knocks(door: str) -> dict[str, str]:
    """What Bob is answered at this door of DOORS, by what he tries."""
    with house(DOORS[door]) as inside:
        return {what: attempt(inside) for what, attempt in TRIES.items()}


def doors(*names: str) -> "pd.DataFrame":
    """What Bob is answered: a line for each try, a column for each of these doors of DOORS."""
    import pandas as pd

    return pd.DataFrame({name: knocks(name) for name in names}, index=[*TRIES])
