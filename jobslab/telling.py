"""How is the answer to `where` written?  As text for a terminal and a notebook, as JSON for programs.

The owner's document has the owner's next step, and leaves out what is the operator's: who the workers are.
"""

import textwrap
from collections.abc import Iterator
from typing import Any

from jobslab import stage
from jobslab.job import Event
from jobslab.where import Answer, Where

WIDE = 100  # characters of a line


def text(told: Where) -> str:
    """A line for each of the five questions, one for the three, and the sentence."""
    return "\n".join(lines(told))


def lines(told: Where) -> Iterator[str]:
    job = told.job
    yield f"{told.id}: {f'{job.kind}, {job.state}: ' if job else ''}{told.cause.means}  [{told.cause.name}]"
    yield ""
    for answer in told.answers:
        yield from block(f"  {answer.question:<31} {answer.answer:<11} ", answer.says)
    yield ""
    yield "So: " + "  ".join(f"{answer.question} {answer.answer}." for answer in told.three)
    yield ""
    yield from block("", told.sentence())


def block(head: str, text: str) -> list[str]:
    """The text beside its head, in lines that are not too long."""
    return textwrap.wrap(text, WIDE, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


# As JSON


def document(told: Where, owner: bool = False) -> dict[str, Any]:
    """The answer as one JSON object."""
    return {
        "id": told.id,
        "cause": told.cause.name,
        "verdict": told.cause.verdict.value,
        "means": told.cause.means,
        "answers": [answer._asdict() for answer in told.answers],
        "questions": [answer._asdict() for answer in told.three],
        "stages": [stage_document(one, row) for one, row in zip(told.stages, stage.STAGES)],
        "again": told.again,
        "known": told.known,
        "not_known": told.unknown,
        "next": told.owner_next if owner else told.next,
        "sentence": told.sentence(owner),
        "journal": [event_document(event, owner) for event in told.events],
    }


def stage_document(reached: Answer, row: stage.Stage) -> dict[str, str]:
    proof = {"told_by": reached.says, "proves": row.proves, "does_not_prove": row.not_proved}
    return {"stage": reached.question, "reached": reached.answer, **proof}


def event_document(event: Event, owner: bool) -> dict[str, Any]:
    told = event._asdict() | {"accepted": bool(event.accepted)}
    return {name: value for name, value in told.items() if not owner or name not in OPERATORS}


OPERATORS = ("n", "job_id", "actor", "correlation_id")  # of a line: what is not the owner's, or is told already
