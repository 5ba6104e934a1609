"""Which faults, and when?  Drawn from a seed and nothing else, so that a run can be had again."""

import random
from typing import NamedTuple

WORKERS = 4
LONGEST_SECONDS = 0.4  # of a job: so that most of a worker's time is spent in the middle of one


class Fault(NamedTuple):
    """Something that is done to a process once so many jobs were accepted."""

    after: int
    what: str
    who: int = 0  # which worker


class Intent(NamedTuple):
    """One job as a client means it, however often it has to ask for it."""

    number: int
    key: str
    seconds: float  # that its work takes
    unread: bool  # its first answer is never read, and it asks again


KILL_WORKER, KILL_SERVER, STOP_WORKER = "kill a worker", "kill the server", "stop a worker for longer than its lease"
CUT_DATABASE, CRASH_DATABASE = "restart the database", "crash the database"


def faults(seed: int, jobs: int, kills: int, with_database: bool) -> tuple[Fault, ...]:
    """The faults of a run in their order: `kills` SIGKILLs, one in ten of them the server's, and the others beside."""
    rng = random.Random(f"faults of {seed}")
    servers = max(1, kills // 10) if kills > 1 else 0
    whats = [KILL_WORKER] * (kills - servers) + [KILL_SERVER] * servers + [STOP_WORKER] * (2 + kills // 10)
    if with_database:
        whats += [CUT_DATABASE, CRASH_DATABASE] * (1 + kills // 40)
    rng.shuffle(whats)
    when = sorted(rng.randrange(jobs) for _ in whats)
    return tuple(Fault(after, what, rng.randrange(WORKERS)) for after, what in zip(when, whats))


def intent(seed: int, number: int) -> Intent:
    """What a client wants; of one in twenty the first answer goes unread."""
    rng = random.Random(f"intent {number} of {seed}")
    return Intent(number, f"{seed}-{number}", rng.uniform(0, LONGEST_SECONDS), rng.random() < 0.05)
