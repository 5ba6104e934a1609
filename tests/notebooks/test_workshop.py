"""Does the workshop guide fit the chapters: its minutes add up, its links lead there, its wrong answers are wrong?"""

import re
from collections.abc import Iterator

import nbformat
import pytest

from jobslab.lab.exercises import exercise
from tests.notebooks.complaints import ROOT

NOTEBOOKS = ROOT / "notebooks"
GUIDE = (NOTEBOOKS / "workshop.md").read_text(encoding="utf-8")
CHAPTERS = {path.stem[:2]: path for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))}


def section(heading: str) -> str:
    """What stands under this heading, to the next of its level or a higher one."""
    level = len(heading.partition(" ")[0])
    return re.split(rf"(?m)^#{{1,{level}}} ", GUIDE.partition(f"\n{heading}\n")[2])[0]


def table(text: str, first: str) -> list[list[str]]:
    """The cells of the lines of the table whose first column has this name."""
    lines = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def minutes(cell: str) -> int:
    return int(cell or 0)


def chapter_parts(name: str) -> str:
    heading = re.search(rf"(?m)^### {name} .+$", GUIDE)
    assert heading, name
    return section(heading[0])


WHOLE = {"## 90 minutes": 90, "## Half a day": 240, "## A second half day": 195}


@pytest.mark.parametrize(("plan", "whole"), WHOLE.items())
def test_a_plan_adds_up(plan: str, whole: int) -> None:
    clock = 0
    for at, _, *parts in table(section(plan), "at"):
        hours, past = at.split(":")
        assert int(hours) * 60 + int(past) == clock, at
        clock += sum(map(minutes, parts))
    assert clock == whole


def test_the_parts_of_a_chapter_are_its_minutes_of_the_half_days() -> None:
    days = [line for day in ("## Half a day", "## A second half day") for line in table(section(day), "at")]
    plan = {name[1:3]: parts[:2] for _, name, *parts in days if name.startswith("[")}
    assert [*plan] == [*CHAPTERS]
    for name, parts in plan.items():
        rows = table(chapter_parts(name), "part")
        assert [sum(minutes(row[n]) for row in rows) for n in (1, 2)] == [*map(minutes, parts)], name


def test_its_links_lead_somewhere_and_its_exercises_are_there() -> None:
    assert all((NOTEBOOKS / link).exists() for link in re.findall(r"\]\(([^)]+)\)", GUIDE))
    assert all(exercise(number) for number in re.findall(r"\b\d\d\.\d\b", GUIDE))


def quoted() -> Iterator[tuple[str, str, str]]:
    """Each wrong answer that is expected: the chapter, "predict" or the exercise, the answer."""
    for name in CHAPTERS:
        for cell, _ in table(chapter_parts(name), "answers"):
            what, _, answer = cell.partition(" ")
            yield name, what, answer.strip("`")


@pytest.mark.parametrize(("chapter", "what", "answer"), [*quoted()])
def test_an_expected_wrong_answer_is_one_that_the_lab_knows(chapter: str, what: str, answer: str) -> None:
    if what != "predict":
        assert what.startswith(f"{chapter}.")
        assert answer in [getattr(wrong.answer, "__name__", wrong.answer) for wrong in exercise(what).wrong]
        return
    cells = nbformat.read(CHAPTERS[chapter], 4).cells
    asked = next(cell.source for cell in cells if "predict(" in cell.source)
    shown = re.search(r"the run shows (\w)", "".join(str(cell.get("outputs")) for cell in cells))
    assert shown
    assert answer in re.findall(r'(?m)^        "(\w)":', asked)
    assert answer != shown[1]
