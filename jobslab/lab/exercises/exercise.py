"""What is an exercise, and what does it tell a learner?  A task, hints, a solution, and a judge that runs the answer.

There is no hidden constant to compare with: a judge runs what the learner wrote, and what it says is what it saw.  A
misconception is an answer like any other; it is listed with what to say to it, and run like all.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from jobslab.lab.exercises.answer import NOT_ATTEMPTED, WRONG, Feedback, is_blank, raised
from jobslab.lab.text import Text


class NotAttempted(Exception):
    """A judge found the placeholder inside the answer, in what a function returned say."""


class Wrong(NamedTuple):
    """A tempting answer, and what is wrong with it."""

    answer: Any
    says: str


Judge = Callable[[Any], Feedback]


class Exercise(NamedTuple):
    number: str  # of the chapter and in it: "04.2"
    title: str
    kind: str  # predict, complete, break it
    minutes: int
    task: str
    judge: Judge
    right: Any  # the answer that `solution` shows
    because: str
    hints: tuple[str, ...]
    wrong: tuple[Wrong, ...]

    def __str__(self) -> str:
        return f"Exercise {self.number}, {self.kind} ({self.minutes} min): {self.title}\n\n{self.task}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return f"**Exercise {self.number}, {self.kind} ({self.minutes} min): {self.title}**\n\n{self.task}"

    def check(self, answer: Any) -> Feedback:
        """What becomes of the answer when it is run."""
        if is_blank(answer):
            return self.not_attempted()
        try:
            told = self.judge(answer)
        except NotAttempted:
            return self.not_attempted()
        except Exception as wrong:
            return raised(wrong)
        known = next((wrong.says for wrong in self.wrong if same(wrong.answer, answer)), None)
        return told._replace(says=f"{known} {told.says}") if known and told.outcome == WRONG else told

    def not_attempted(self) -> Feedback:
        return Feedback(NOT_ATTEMPTED, f"write your answer in place of ___ ({len(self.hints)} hints: .hint(1) ...)")

    def hint(self, n: int = 1) -> Text:
        """The n-th hint; each says more than the one before."""
        n = min(max(n, 1), len(self.hints))
        return Text(f"hint {n} of {len(self.hints)}: {self.hints[n - 1]}")

    def solution(self) -> Text:
        """One right answer, as text, and why it is right.  Nothing is assigned or run."""
        return Text(f"{written(self.right)}\n\n{self.because}")


def same(known: Any, answer: Any) -> bool:
    """Is it this answer?  Blanks and line breaks do not matter."""
    if isinstance(known, str) and isinstance(answer, str):
        return known.split() == answer.split()
    return bool(known == answer)


def written(answer: Any) -> str:
    return inspect.getsource(answer).rstrip() if callable(answer) else str(answer)
