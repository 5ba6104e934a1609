"""What does one racer do?  Submit every key, then claim and finish what there is, until all is done.

python -m tests.stores.racer FILE NAME KEYS      waits for a line on stdin, and prints the ids of the jobs it did
"""

import json
import sys

from jobslab import TERMINAL, open_store
from jobslab.stores import Store
from jobslab.sweeper import sweep

ROUNDS = 10_000  # far more than are needed: a fault ends the race instead of keeping it up


def race(store: Store, name: str, keys: int) -> list[str]:
    """The ids of the jobs that this racer was the one to finish."""
    for n in range(keys):
        store.submit(f"{name}-{n}", "wait", {"seconds": n}, key=f"k{n}")
    did: list[str] = []
    for _ in range(ROUNDS):
        if all(job.state in TERMINAL for job in store.rows()):
            break
        sweep(store, name)
        reply = store.claim_next(name)
        if reply is not None and store.succeed(reply.job.id, reply.attempt, name, {"by": name}).accepted:
            did.append(reply.job.id)
    return did


def main(file: str, name: str, keys: str) -> None:
    sys.stdin.readline()
    with open_store(None, file) as store:
        print(json.dumps(race(store, name, int(keys))))


if __name__ == "__main__":
    main(*sys.argv[1:])
