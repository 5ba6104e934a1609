"""What can be wrong with a stored chapter that `pytest --nbval` does not see?  Each check gives its complaints.

nbval compares what a cell gives with what is stored; it does not look at prose, at pictures, or at a notebook whose
outputs were stripped.  A check takes a notebook and answers with a list of sentences, empty where all is well.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.notebooks import normal_text

ROOT = Path(__file__).resolve().parents[2]

Notebook = Any
Check = Callable[[Notebook], list[str]]


def code_cells(notebook: Notebook) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Notebook) -> Iterator[tuple[str, Any]]:
    """Each output with the id of its cell."""
    return ((cell.id, output) for cell in code_cells(notebook) for output in cell.outputs)


def texts(output: Any) -> list[str]:
    """What an output says, in every text form that it has."""
    said = [output.get("text", ""), output.get("ename", ""), output.get("evalue", "")]
    return [text for text in said if text] + [v for key, v in output.get("data", {}).items() if key.startswith("text/")]


def every_cell_was_run_in_order(notebook: Notebook) -> list[str]:
    counts = [cell.execution_count for cell in code_cells(notebook)]
    return [] if counts == list(range(1, len(counts) + 1)) else [f"the counts of its cells are {counts}, not 1 to n"]


def nothing_on_stderr(notebook: Notebook) -> list[str]:
    return [f"{id}: it wrote to stderr: {o.text[:80]}" for id, o in outputs(notebook) if o.get("name") == "stderr"]


FOLDERS = ("home", "root", "tmp", "usr", "var", "opt", "etc", "mnt", "private", "Users", "work", "srv", "proc")
MACHINE = [str(ROOT), sys.prefix, tempfile.gettempdir()]
FORBIDDEN = {
    "a file-system path": rf"(?<![\w/])/(?:{'|'.join(FOLDERS)})/|\b[A-Z]:\\|{'|'.join(map(re.escape, MACHINE))}",
    "a memory address": r"\b0x[0-9a-fA-F]{6,}\b",
    "a date": r"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* \d{4}\b",
    "a time of day": r"\b\d\d:\d\d:\d\d\b",
    "a random id": r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b[0-9a-f]{32}\b",
}


def nothing_of_this_machine_or_day(notebook: Notebook) -> list[str]:
    return [
        f"{id}: it shows {what}: {found[0]}"
        for id, output in outputs(notebook)
        for text in texts(output)
        for what, pattern in FORBIDDEN.items()
        if (found := re.search(pattern, text))
    ]


def errors_only_where_announced(notebook: Notebook) -> list[str]:
    complaints = []
    for cell in code_cells(notebook):
        announced = "raises-exception" in cell.metadata.get("tags", [])
        raised = any(output.output_type == "error" for output in cell.outputs)
        if raised != announced:
            says = "it raised, and no tag says so" if raised else "its tag says that it raises, and it did not"
            complaints.append(f"{cell.id}: {says}")
    return complaints


def every_image_has_its_words(notebook: Notebook) -> list[str]:
    """An alternative text, and a text twin that begins with the same words: both were made from one trace."""
    complaints = []
    for id, output in outputs(notebook):
        for kind in [key for key in output.get("data", {}) if key.startswith("image/")]:
            alt = output.metadata.get(kind, {}).get("alt", "")
            twin = output.data.get("text/plain", "")
            if len(alt) < 20:
                complaints.append(f"{id}: an image without alternative text")
            elif len(twin.splitlines()) < 3:
                complaints.append(f"{id}: an image without its text")
            elif twin.splitlines()[0] not in alt:
                complaints.append(f"{id}: the alternative text is of something else than the text: {alt[:60]}")
    return complaints


def headings(notebook: Notebook) -> list[tuple[int, str]]:
    """(level, words) of every heading, code blocks left out."""
    prose = "\n".join(without_code(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    return [(len(marks), words.strip()) for marks, words in re.findall(r"(?m)^(#{1,6}) +(.+)$", prose)]


def headings_make_a_table_of_contents(notebook: Notebook) -> list[str]:
    found = headings(notebook)
    levels, words = [level for level, _ in found], [text for _, text in found]
    complaints = [f"the heading {text!r} is there twice" for text in sorted({t for t in words if words.count(t) > 1})]
    if levels[:1] != [1] or levels.count(1) != 1:
        complaints.append("it does not begin with its one first-level heading")
    return complaints + [f"{text!r} skips a level" for (a, _), (b, text) in pairwise(found) if b > a + 1]


def without_code(markdown: str) -> str:
    """Prose alone: no code blocks, no code, no addresses of links."""
    return re.sub(r"(?s)```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", markdown)


UNITS = "units? attempts? jobs? schedules? steps? states? workers? flags? rules? contracts? promises? % seconds? ms"
NUMBER = re.compile(rf"\*\*([\d][\d,.]*)\*\*|(?<![\w.,])(\d[\d,]*(?:\.\d+)?) ?(?:{'|'.join(UNITS.split())})(?!\w)")


def numbers_in_prose_come_from_an_output(notebook: Notebook) -> list[str]:
    """A bold number, or one with a unit, is a claim: it must stand in some output of the same chapter."""
    shown = set(re.findall(r"\d[\d,]*(?:\.\d+)?", " ".join(text for _, o in outputs(notebook) for text in texts(o))))
    shown = {number.replace(",", "") for number in shown}
    claims = [
        (cell.id, (bold or plain).strip(".,"))
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for bold, plain in NUMBER.findall(without_code(cell.source))
    ]
    return [f"{id}: no output shows {number}" for id, number in claims if number.replace(",", "") not in shown]


SETUP = "from jobslab.lab.notebook import *"


def it_is_set_up_by_one_line_and_says_what_to_do_when_that_fails(notebook: Notebook) -> list[str]:
    first = next((n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"), None)
    if first is None or notebook.cells[first].source != SETUP:
        return [f"its first code cell is not {SETUP!r}"]
    before = notebook.cells[first - 1].source if first else ""
    return [] if "No module named" in before and "kernel" in before else ["nothing says what to do in a wrong kernel"]


LINES, CELLS, BYTES = 15, 40, 1_000_000


def it_is_of_a_size_to_be_taught(notebook: Notebook) -> list[str]:
    long = [cell.id for cell in code_cells(notebook) if len(cell.source.splitlines()) > LINES]
    complaints = [f"{id}: more than {LINES} lines" for id in long]
    if len(notebook.cells) > CELLS:
        complaints.append(f"{len(notebook.cells)} cells are more than {CELLS}")
    if len(normal_text(notebook)) > BYTES:
        complaints.append(f"it is larger than {BYTES} characters")
    return complaints


def links_lead_somewhere(notebook: Notebook) -> list[str]:
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    local = [link for link in re.findall(r"\]\(([^)#\s]+)", prose) if "://" not in link]
    return [f"there is no {link}" for link in local if not (ROOT / "notebooks" / link).exists()]


NOT_IN_A_CHAPTER = re.compile(r"(?m)^\s*[%!]|\bimport (?:matplotlib|time|random|threading|asyncio)\b|\bid\(")


def it_uses_nothing_that_differs_from_run_to_run(notebook: Notebook) -> list[str]:
    found = [(cell.id, NOT_IN_A_CHAPTER.search(cell.source)) for cell in code_cells(notebook)]
    return [f"{id}: {match[0].strip()!r} has no place in a chapter" for id, match in found if match]


CHECKS: tuple[Check, ...] = (
    every_cell_was_run_in_order,
    nothing_on_stderr,
    nothing_of_this_machine_or_day,
    errors_only_where_announced,
    every_image_has_its_words,
    headings_make_a_table_of_contents,
    numbers_in_prose_come_from_an_output,
    it_is_set_up_by_one_line_and_says_what_to_do_when_that_fails,
    it_is_of_a_size_to_be_taught,
    links_lead_somewhere,
    it_uses_nothing_that_differs_from_run_to_run,
)
