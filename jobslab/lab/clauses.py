"""What is the whole contract?  One list of clauses for those who serve jobs, and one for those who call.

A clause says where it stands in the code, what holds it (a flag, or a rule of the HTTP contract whose tests carry its
name), which chapter is about it, and what is seen with it and without it.  What is seen is not written here: it is run.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from httpx2 import URL

from jobslab.api import create_app
from jobslab.client import JobClient
from jobslab.contract import FLAGS
from jobslab.job import State
from jobslab.lab.doors import in_words, knocks
from jobslab.lab.screens import Screen, by_code, by_state, screens
from jobslab.lab.timeline import words
from jobslab.lab.transport import InProcess
from jobslab.lab.trial import run
from jobslab.lab.waiting import asks_until, rules, waits
from jobslab.settings import LAB
from jobslab.stores import open_store

if TYPE_CHECKING:
    import pandas as pd

Sees = Callable[[], str]
ALWAYS = "always"  # a rule of the engine that no flag turns off


class Clause(NamedTuple):
    """One clause.  `with_it` and `without_it` run something and say what was seen."""

    says: str
    where: str  # a file of the package, and a name in it
    held_by: str  # a flag, ALWAYS, or a rule: tests/http has tests of its name
    chapter: str
    with_it: Sees
    without_it: Sees | None = None  # None: nothing here takes it away


# What is seen


def sees(schedule: str, how: str = "all") -> Sees:
    """What the last step of a schedule is answered under a contract."""
    return lambda: words(run(schedule, how).last)


def flag(says: str, where: str, name: str, chapter: str, schedule: str) -> Clause:
    """A clause that a flag turns off."""
    return Clause(says, where, name, chapter, sees(schedule), sees(schedule, f"all but {name}"))


def bob(tries: str, door: str) -> Sees:
    """What a stranger is answered (see `doors`)."""
    return lambda: knocks(door)[tries]


def user(screen: Screen) -> Sees:
    """What a user reads whose export has failed (see `screens`)."""
    return lambda: str(screens("A claims next / A fails error=broken", screen)[screen.__name__].iloc[-1])


def poller(rule: str) -> Sees:
    """What a poll rule makes of a job that waits (see `waiting`)."""
    return lambda: str(rules().loc[rule, "QUEUED"])


def polls(waiting: "Callable[[], pd.DataFrame]") -> Sees:
    """How often a client has asked (see `waiting`)."""
    return lambda: f"{waiting()['the client sees'].isin([*State]).sum()} polls"


def one_too_many() -> str:
    """What the second job is answered in a service where one may wait."""
    with closing(open_store(settings=replace(LAB, queue_limit=1))) as store:
        client = JobClient("http://lab", transport=InProcess(create_app(store)))
        with client:
            client.submit_once("export")
            return in_words(client.submit_once("export"))


def sent_elsewhere() -> str:
    """What a client shows of itself to another server, to which an address has led it."""
    with JobClient("http://lab", token="secret") as client:
        headers = client.identified(URL("http://elsewhere/jobs/job-1"), None)
        return "it sends its token" if "secret" in str(headers) else "it sends no token"


# The two lists, and the schedules that are too long for a line of them

LATE = "client submits / A claims next / A sends progress 50% / A succeeds / A progresses 50% late / client polls"
CRASH = "A claims next / A crashes / 11 units pass / sweep"
STALE = "client submits / A claims next / 11 units pass / sweep / B claims next / A succeeds / client polls"
LONG = "A claims next / 60 units pass / A succeeds"
LOG = "her id, which stood in a log"
COUNT = "how many jobs do others make?"

# fmt: off
SERVER = (
    Clause("what is surely wrong is refused at once", "web/intake.py: new_job", "A7", "01",
           sees("client submits kind=report")),
    Clause("what is too much is refused, not dropped", "api.py: check_queue", "A9", "08", one_too_many),
    flag("a 202 is sent when the job is kept", "contract.py: survives", "persistence", "04",
         "client submits / restart / client polls show=state"),
    flag("a submit that is sent again finds its job", "contract.py: deduplicated", "idempotency_key", "03",
         "client submits key=k1 / response lost / client submits again"),
    flag("a key with other params is refused", "stores/sql.py: KeyReused", "idempotency_key", "08",
         "client submits key=k1 / client submits key=k1 table=refunds"),
    Clause("the status says whether it is over, and why", "web/documents.py: of_job", "C3", "02",
           sees("client submits / A claims next / A fails error=broken / client polls show=done,error")),
    flag("of two workers that picked a job, one gets it", "contract.py: still_claimable", "conditional_updates", "05",
         "client submits / A picks / B picks / A claims / B claims"),
    flag("what is over does not change", "contract.py: unfinished", "conditional_updates", "05", f"{LATE} show=state"),
    flag("the job of a worker that died is done", "contract.py: expired", "leases", "04",
         f"client submits / {CRASH} / B claims next / B succeeds / client polls show=state"),
    flag("a worker that lost its job can't report", "contract.py: current", "attempt_fencing", "06",
         f"{STALE} show=state"),
    Clause("nothing is tried for ever", "contract.py: attempts_left", ALWAYS, "08",
           sees(f"client submits / {CRASH} / {CRASH} / {CRASH} / client polls show=error")),
    Clause("who does not own a job is told of none", "api.py: mine", "G3", "08",
           bob(LOG, "random ids, owners"), bob(LOG, "random ids")),
    Clause("an id can't be guessed", "clock.py: unguessable", "G4", "08",
           bob(COUNT, "random ids, owners"), bob(COUNT, "counted ids, owners")),
    Clause("what is over is kept, then known to be gone", "settings.py: retention_seconds", "F3", "08",
           sees("client submits / A claims next / A succeeds / 86400 units pass / client polls")),
)
CALLER = (
    Clause("a 202 means submitted; the state says the rest", "client.py: outcome", "J6", "01",
           user(by_state), user(by_code)),
    Clause("one key for one intent, until there is an answer", "client.py: submit", "J3", "03",
           sees("client submits key=k1 / response lost / client submits again"),
           sees("client submits key=k1 / response lost / client submits key=k2")),
    Clause("another intent, another key", "client.py: submit", "J3", "08",
           sees("client submits key=k1 / client submits key=k2 table=refunds"),
           sees("client submits key=k1 / client submits key=k1 table=refunds")),
    Clause("only a terminal state is an end", "client.py: is_done", "J4", "02",
           poller("terminal set"), poller("not RUNNING")),
    Clause("each wait is longer, above Retry-After", "client.py: wait", "J1", "02",
           polls(lambda: waits(LONG, 100)), polls(lambda: asks_until("terminal set", LONG))),
    Clause("at the deadline: UNKNOWN, and the id is kept", "client.py: UNKNOWN", "J2", "02",
           sees("client submits / A claims next / client polls / client gives up")),
    Clause("what has expired is neither done nor failed", "client.py: EXPIRED", "J5", "08",
           sees("client submits / A claims next / A succeeds / 86400 units pass / client polls / client gives up")),
    Clause("the token goes to this server alone", "client.py: identified", "J8", "08", sent_elsewhere),
)
# fmt: on
LISTS = {"server": SERVER, "caller": CALLER}


def clauses(side: str) -> "pd.DataFrame":
    """The list of the "server" or of the "caller", with what is seen now: a line a clause."""
    import pandas as pd

    columns = ["where in the code", "flag or test", "chapter", "with it", "without it"]
    lines = [
        (clause.where, held(clause), clause.chapter, clause.with_it(), clause.without_it() if clause.without_it else "")
        for clause in LISTS[side]
    ]
    return pd.DataFrame(lines, columns=columns, index=[clause.says for clause in LISTS[side]])


def held(clause: Clause) -> str:
    return clause.held_by if clause.held_by in (*FLAGS, ALWAYS) else f"test {clause.held_by}"
