"""What will happen?  A prediction is made before the run, and compared with what the run really showed.

The outcome is never stored here: `compare` is handed what a run answered, and looks for the option that says so.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jobslab.errors import JobslabError
from jobslab.lab.exercises.answer import NOT_ATTEMPTED, RIGHT, SIGNS, WRONG, Feedback, is_blank


class BadPrediction(JobslabError):
    """The answer is none of the options, or the run showed none of them."""


class Prediction(NamedTuple):
    """A question with options by letter, each the outcome in the words of the run, and the learner's letter."""

    question: str
    options: Mapping[str, str]
    answer: Any
    why: Mapping[str, str]  # what is wrong with an option that tempts, by letter

    def __str__(self) -> str:
        mine = "no prediction yet: write one of the letters in place of ___" if self.open else f"you say {self.answer}"
        lines = [f"  {letter}  {outcome}" for letter, outcome in self.options.items()]
        return "\n".join([self.question, *lines, f"{SIGNS[NOT_ATTEMPTED]} {mine}"])

    def __repr__(self) -> str:
        return str(self)

    @property
    def open(self) -> bool:
        return is_blank(self.answer)

    def compare(self, outcome: str) -> Feedback:
        """The prediction beside what a run showed.  Raises BadPrediction if no option says that."""
        shown = [letter for letter, text in self.options.items() if text == outcome]
        if not shown:
            raise BadPrediction(f"the run showed {outcome!r}, and no option says that: {dict(self.options)}")
        fact = f"the run shows {shown[0]}: {outcome}"
        if self.open:
            return Feedback(NOT_ATTEMPTED, f"no prediction; {fact}")
        if self.answer == shown[0]:
            return Feedback(RIGHT, fact)
        because = self.why.get(self.answer)
        return Feedback(WRONG, f"you said {self.answer}, {fact}" + (f". {because}" if because else ""))


def predict(question: str, options: Mapping[str, str], answer: Any, why: Mapping[str, str] | None = None) -> Prediction:
    """A prediction to be compared with a run.  Raises BadPrediction for an answer that is none of the letters."""
    if not is_blank(answer) and answer not in options:
        raise BadPrediction(f"the answer is one of {', '.join(options)}, not {answer!r}")
    return Prediction(question, dict(options), answer, dict(why or {}))
