"""What happens when many were refused at one moment, and all of them try again?  Calls counted, unit by unit.

Forty clients call a service that is down for a while.  It can serve ten calls a unit; to refuse one costs it a quarter
of that, which is why more calls than it can serve are worse than useless.  A client that was refused waits, by its
policy, and calls again.  Nothing here is left to luck: time is counted, and the random source is seeded.
"""

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from jobslab.lab.charts import bars
from jobslab.lab.picture import Picture
from jobslab.lab.queueing import known

CLIENTS = 40
CAPACITY = 10  # calls that it serves in a unit, if it has none to refuse
REFUSAL = 0.25  # what a refusal costs, where serving a call costs 1
DOWN = 8  # units
END = 60  # units that we look at
SHOWN = 32  # of them in the picture
CAP = 32  # no wait is longer

Wait = Callable[[int, random.Random], float]  # after so many refusals, from 1: how many units


def fixed(refusals: int, rng: random.Random) -> float:
    return 1


def doubling(refusals: int, rng: random.Random) -> float:
    return float(min(CAP, 2 ** (refusals - 1)))


def jitter(refusals: int, rng: random.Random) -> float:
    """Full jitter: anything from nothing to twice what doubling gives, so that the mean is the same."""
    return rng.uniform(0, min(CAP, 2**refusals))


class Policy(NamedTuple):
    wait: Wait
    limit: int | None = None  # after so many refusals a client gives up


POLICIES = {
    "after 1 unit": Policy(fixed),
    "after 1 unit, 5 calls at most": Policy(fixed, 5),
    "doubling": Policy(doubling),
    "doubling, with jitter": Policy(jitter),
}


class Storm(NamedTuple):
    """What the service saw: of each unit how many called, and how many of them were served."""

    name: str
    calls: tuple[int, ...]
    served: tuple[int, ...]

    @property
    def all_served_at(self) -> int | None:
        """The unit in which the last client was served; None: not while we looked."""
        total = 0
        for unit, served in enumerate(self.served):
            total += served
            if total == CLIENTS:
                return unit
        return None


def storm(name: str, policy: Policy, seed: int = 1) -> Storm:
    """Let them all call at 0, and then by this policy."""
    rng = random.Random(seed)
    due, refusals = [0] * CLIENTS, [0] * CLIENTS
    calls, served = [], []
    for unit in range(END):
        callers = [n for n, at in enumerate(due) if at == unit]
        lucky = can_serve(len(callers)) if unit >= DOWN else 0
        for n in callers[lucky:]:
            refusals[n] += 1
            gives_up = policy.limit is not None and refusals[n] >= policy.limit
            due[n] = END if gives_up else unit + max(1, round(policy.wait(refusals[n], rng)))
        calls.append(len(callers))
        served.append(lucky)
    return Storm(name, tuple(calls), tuple(served))


def can_serve(callers: int) -> int:
    """How many of so many calls are served: the most for which serving and refusing together fit into the unit."""
    fits = [n for n in range(callers + 1) if n + REFUSAL * (callers - n) <= CAPACITY]
    return max(fits, default=0)


def answers(policy: str) -> Mapping[str, str]:
    """The storm of this policy in words, step by step.  Raises UnknownWay."""
    known(policy, POLICIES)
    seen = storm(policy, POLICIES[policy])
    at = seen.all_served_at
    return {
        "calls while it is down": str(sum(seen.calls[:DOWN])),
        "most calls in a unit after that": str(max(seen.calls[DOWN:])),
        f"served by unit {END}": f"{sum(seen.served)} of {CLIENTS}",
        "the last one is served": "never" if at is None else f"in unit {at}",
    }


def storms() -> Picture:
    """The calls under each policy as a Picture."""
    seen = [storm(name, policy) for name, policy in POLICIES.items()]
    title = f"{CLIENTS} clients try again; the service is down for {DOWN} units, then serves {CAPACITY} calls a unit"
    return bars(title, "unit", {one.name: one.calls[:SHOWN] for one in seen}, "calls")
