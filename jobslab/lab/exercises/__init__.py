"""The learner's part: predictions, and exercises with check, hint and solution.  One table a chapter: ch00 to ch12."""

from importlib import import_module

from jobslab.errors import JobslabError
from jobslab.lab.exercises.answer import ___
from jobslab.lab.exercises.exercise import Exercise
from jobslab.lab.exercises.prediction import predict

CHAPTERS = ("00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12")


class UnknownExercise(JobslabError):
    """There is no exercise of this number."""


def chapter(number: str) -> tuple[Exercise, ...]:
    """The exercises of one chapter."""
    exercises: tuple[Exercise, ...] = import_module(f"jobslab.lab.exercises.ch{number}").EXERCISES
    return exercises


def exercise(number: str) -> Exercise:
    """The exercise of this number, like "04.2".  Raises UnknownExercise."""
    known = [one for name in CHAPTERS if number.startswith(f"{name}.") for one in chapter(name)]
    found = [one for one in known if one.number == number]
    if not found:
        raise UnknownExercise(f"there is no exercise {number!r}; they are numbered by chapter, like '04.1'")
    return found[0]


__all__ = ["CHAPTERS", "___", "chapter", "exercise", "predict"]
