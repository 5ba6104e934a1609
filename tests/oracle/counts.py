"""How many states has the world, by Spin's count and by the explorer's?

    python -m tests.oracle.counts

Needs `spin` and a C compiler (Debian: apt-get install spin gcc).  The explorer looks at every state here, and puts no
two that are alike together; tests/oracle/test_counts.py pins the numbers, and needs no Spin.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from jobslab.contract import FLAGS, Contract
from jobslab.lab import checker
from jobslab.lab.memo import Memo
from jobslab.lab.world import Bounds, World
from jobslab.settings import LAB
from jobslab.stores import open_store

MODEL = Path(__file__).with_name("world.pml")
LETTERS = dict(zip("KPLCF", FLAGS))


class Size(NamedTuple):
    """One size of the world, and how many states it has under each of the 32 contracts, in their order."""

    name: str
    bounds: Bounds
    states: tuple[int, ...]


ALONE = Bounds(workers=1, sweepers=1)
PAIR = Bounds(workers=2, sweepers=1, under_way=0, cancels=0, reports=("renew", "succeed"))
STOPPED = Bounds(workers=2, sweepers=1, under_way=0, reports=("succeed", "retry"))

# fmt: off
SIZES = (
    Size("one worker, all that it can do", ALONE, (
        864, 864, 1034, 1036, 160, 160, 189, 189, 870, 870, 1040, 1042, 166, 166, 195, 195,
        7911, 7911, 16520, 16522, 659, 659, 955, 955, 7917, 7917, 16526, 16528, 665, 665, 961, 961,
    )),
    Size("two workers that renew", PAIR, (
        319, 399, 666, 898, 38, 38, 62, 68, 320, 400, 667, 899, 39, 39, 63, 69,
        1954, 2434, 6216, 8274, 71, 71, 138, 156, 1955, 2435, 6217, 8275, 72, 72, 139, 157,
    )),
    Size("two workers that retry, and a cancel", STOPPED, (
        923, 1247, 2489, 3325, 177, 177, 399, 535, 925, 1249, 2491, 3327, 179, 179, 401, 537,
        15290, 20322, 54785, 73717, 1224, 1224, 3197, 4491, 15292, 20324, 54787, 73719, 1226, 1226, 3199, 4493,
    )),
)
# fmt: on


def by_the_explorer(contract: Contract, bounds: Bounds) -> int:
    """How many states the explorer finds."""
    with open_store(contract, settings=LAB) as store:
        world = World(Memo(store), bounds)
        return checker.check(checker.System([world.start], world.enabled), []).states


def by_spin(contract: Contract, bounds: Bounds) -> int:
    """How many states Spin stores for the model.  Raises CalledProcessError, and ValueError if it says no number."""
    defined = [f"-D{letter}={int(getattr(contract, flag))}" for letter, flag in LETTERS.items()]
    defined += [f"-D{name}={value}" for name, value in switches(bounds).items()]
    with tempfile.TemporaryDirectory() as folder:
        run(["spin", "-a", *defined, str(MODEL)], folder)
        run(["gcc", "-w", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"], folder)
        said = run(["./pan", "-E", "-n", "-m1000000"], folder)
    stored = re.search(r"(\d+) states, stored", said)
    if stored is None or "errors: 0" not in said or "max search depth too small" in said:
        raise ValueError(f"Spin did not look at every state: {said}")
    return int(stored[1])


def switches(bounds: Bounds) -> dict[str, int]:
    reports = {report.upper(): int(report in bounds.reports) for report in ("renew", "progress", "retry")}
    late = int(bounds.under_way > 0 and "progress" in bounds.late)
    return {"WORKERS": bounds.workers, "FAULTS": bounds.faults, "CANCELS": bounds.cancels, "LATE": late, **reports}


def run(command: list[str], folder: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Prints both counts for every contract; 1 where they differ from each other or from those that are pinned."""
    differ = 0
    for size in SIZES:
        print(f"{size.name}: {'Spin':>10} {'explorer':>10}")
        for contract, pinned in zip(Contract.all(), size.states):
            spin, ours = by_spin(contract, size.bounds), by_the_explorer(contract, size.bounds)
            same = spin == ours == pinned
            differ += not same
            print(
                f"  {contract!s:<46} {spin:>8} {ours:>8}{'' if same else f'   differs: {pinned} is pinned'}", flush=True
            )
    print("the same everywhere" if not differ else f"{differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
