"""Where do time and ids come from?  From an argument, so that a lab can hand in both.

The store does not read these clocks: its verbs take `now`, and None means the database's own time.  A clock here is
for those who wait: the client, the worker's loop, the lab.
"""

import itertools
import secrets
import time
from collections.abc import Callable, Iterable


class SystemClock:
    """The machine's time, in seconds."""

    def now(self) -> float:
        """Seconds since 1970, for comparing with dates."""
        return time.time()

    def elapsed(self) -> float:
        """Seconds since some fixed moment, for measuring: it never jumps."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """Lab time: it stands still until somebody advances it, and sleeping is advancing."""

    def __init__(self, now: float = 0) -> None:
        self._now = float(now)

    def now(self) -> float:
        return self._now

    def elapsed(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds} seconds")
        self._now += seconds


Clock = SystemClock | ManualClock


def unguessable() -> str:
    """A new id for service: 128 random bits in hex.  It tells nothing of its age or its neighbours, and it is no
    permission either: every endpoint checks the owner (RFC 9562, section 8)."""
    return secrets.token_hex(16)


def counted(taken: Iterable[str] = (), prefix: str = "job") -> Callable[[], str]:
    """A maker of lab ids: job-1, job-2 and so on, going on after the highest of `taken`, so that a restarted lab
    server does not hand out an id twice."""
    used = [int(id.removeprefix(f"{prefix}-")) for id in taken if id.removeprefix(f"{prefix}-").isdecimal()]
    numbers = itertools.count(max(used, default=0) + 1)
    return lambda: f"{prefix}-{next(numbers)}"
