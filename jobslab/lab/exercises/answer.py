"""What can become of an answer?  Four things: right, wrong, not attempted, raised.

`___` stands in a notebook where the learner is to write.  While it is there nothing is judged, so that an untouched
notebook runs from top to bottom.
"""

from enum import Enum
from typing import Any, Final, NamedTuple


class Placeholder(Enum):
    BLANK = "___"

    def __repr__(self) -> str:
        return self.value

    def __str__(self) -> str:
        return self.value


___: Final = Placeholder.BLANK

RIGHT, WRONG, NOT_ATTEMPTED, RAISED = "right", "wrong", "not attempted", "raised"
SIGNS = {RIGHT: "✓", WRONG: "✗", NOT_ATTEMPTED: "·", RAISED: "!"}


def is_blank(answer: Any) -> bool:
    """Is the placeholder still in it?"""
    return answer is ___ or (isinstance(answer, str) and ___.value in answer)


class Feedback(NamedTuple):
    """What a learner is told: the outcome, why, and the evidence, which is what really ran."""

    outcome: str
    says: str
    promise: str | None = None  # that was broken
    schedule: tuple[str, ...] = ()  # the shortest that shows it, a step a line

    def __str__(self) -> str:
        lines = [f"{SIGNS[self.outcome]} {self.outcome}: {self.says}"]
        if self.promise:
            lines.append(f"  broken: {self.promise}")
        if self.schedule:
            lines.append("  by this schedule:")
            lines += [f"    {n}  {step}" for n, step in enumerate(self.schedule, start=1)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def raised(wrong: Exception) -> Feedback:
    """An answer that could not be judged: what it raised, without a traceback."""
    return Feedback(RAISED, f"your answer raised {type(wrong).__name__}: {wrong}")
