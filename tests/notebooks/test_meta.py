"""Do the chapters keep what `pytest --nbval` can't see?  And would each check see it, if one did not?"""

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.notebooks import complaints
from tests.notebooks.complaints import CHECKS, SETUP, Check, Notebook
from tools.notebooks import METADATA, executed, normal, normal_text

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
OFFLINE = str(Path(__file__).resolve().parent / "offline")

every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def read(path: Path) -> Notebook:
    return nbformat.read(path, as_version=4)


def chapter(number: str) -> Path:
    return next(path for path in CHAPTERS if path.stem.startswith(number))


@every_chapter
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_to_be_said_of(check: Check, path: Path) -> None:
    assert check(read(path)) == []


@every_chapter
def test_a_chapter_is_stored_in_its_normal_form(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == normal_text(read(path)), "run make notebooks"


# Each check is tried on a notebook that is bad in one way, and on one that is good


def shown(text: str, **metadata: Any) -> Any:
    return new_output("execute_result", {"text/plain": text}, metadata=metadata)


def picture(alt: str | None, text: str) -> Any:
    metadata = {"image/png": {"alt": alt}} if alt is not None else {}
    return new_output("execute_result", {"image/png": "aGVsbG8=", "text/plain": text}, metadata=metadata)


GOOD_PICTURE = picture("Timeline of x: 3 steps. It ends well.", "x: 3 steps\n\nall\n  t=0  1  client submits")


def good() -> Notebook:
    """A small notebook of which nothing is to be said."""
    cells = [
        new_markdown_cell("# 99 A chapter\n\n25 minutes."),
        new_markdown_cell("## Set-up\n\n*No module named 'jobslab'* means another kernel."),
        new_code_cell(SETUP),
        new_markdown_cell("## The damage\n\nIt makes **2** jobs in 3 steps; `99 steps` is code, and 404 is no claim."),
        new_code_cell("1 + 1", outputs=[shown("2 of 3; location /jobs/job-1")]),
        new_code_cell("timeline(x)", outputs=[GOOD_PICTURE]),
    ]
    notebook = normal(new_notebook(cells=cells))
    return nbformat.from_dict(notebook)


def with_output(output: Any) -> Callable[[Notebook], None]:
    def change(notebook: Notebook) -> None:
        notebook.cells[4].outputs = [output]

    return change


def with_prose(text: str) -> Callable[[Notebook], None]:
    def change(notebook: Notebook) -> None:
        notebook.cells[3].source += "\n\n" + text

    return change


def with_code(text: str, cell: int = 4) -> Callable[[Notebook], None]:
    def change(notebook: Notebook) -> None:
        notebook.cells[cell].source = text

    return change


def with_tag(notebook: Notebook) -> None:
    notebook.cells[4].metadata["tags"] = ["raises-exception"]


def stripped(notebook: Notebook) -> None:
    for cell in complaints.code_cells(notebook):
        cell.outputs, cell.execution_count = [], None


def run_out_of_order(notebook: Notebook) -> None:
    notebook.cells[4].execution_count, notebook.cells[5].execution_count = 3, 2


def without_title(notebook: Notebook) -> None:
    notebook.cells[0].source = "A chapter"


def without_help(notebook: Notebook) -> None:
    notebook.cells[1].source = "## Set-up"


def very_long(notebook: Notebook) -> None:
    notebook.cells += [new_markdown_cell("word") for _ in range(40)]


STDERR = new_output("stream", name="stderr", text="UserWarning: x")
ERROR = new_output("error", ename="ValueError", evalue="no", traceback=[])

BAD = [
    (complaints.every_cell_was_run_in_order, stripped, "[None, None, None]"),
    (complaints.every_cell_was_run_in_order, run_out_of_order, "[1, 3, 2]"),
    (complaints.nothing_on_stderr, with_output(STDERR), "UserWarning"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown("in /tmp/x/jobs.db")), "a file-system path: /tmp/"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown(r"C:\Users\me")), "a file-system path"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown(f"{ROOT}")), "a file-system path"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown("<object at 0x7f00aa11>")), "a memory address"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown("since 2026-11-29")), "a date"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown("at 12:30:01")), "a time of day"),
    (complaints.nothing_of_this_machine_or_day, with_output(shown("a" * 32)), "a random id"),
    (
        complaints.nothing_of_this_machine_or_day,
        with_output(shown("0b5e5f3c-1111-4222-8333-aaaaaaaaaaaa")),
        "a random id",
    ),
    (complaints.errors_only_where_announced, with_output(ERROR), "no tag says so"),
    (complaints.errors_only_where_announced, with_tag, "and it did not"),
    (complaints.every_image_has_its_words, with_output(picture(None, "x\ny\nz")), "without alternative text"),
    (complaints.every_image_has_its_words, with_output(picture("A picture of many words.", "<Figure>")), "its text"),
    (
        complaints.every_image_has_its_words,
        with_output(picture("Timeline of x: 3 steps. It ends.", "y: 4 steps\n\nall\n  t=0")),
        "of something else",
    ),
    (complaints.headings_make_a_table_of_contents, without_title, "first-level heading"),
    (complaints.headings_make_a_table_of_contents, with_prose("# Another title"), "first-level heading"),
    (complaints.headings_make_a_table_of_contents, with_prose("## The damage"), "'The damage' is there twice"),
    (complaints.headings_make_a_table_of_contents, with_prose("#### Deep"), "'Deep' skips a level"),
    (complaints.numbers_in_prose_come_from_an_output, with_prose("fails in **17** of them"), "no output shows 17"),
    (complaints.numbers_in_prose_come_from_an_output, with_prose("in 1,234 schedules"), "no output shows 1,234"),
    (complaints.numbers_in_prose_come_from_an_output, with_prose("after 40 units"), "no output shows 40"),
    (complaints.numbers_in_prose_come_from_an_output, with_prose("in 9% of cases"), "no output shows 9"),
    (
        complaints.it_is_set_up_by_one_line_and_says_what_to_do_when_that_fails,
        with_code("import jobslab", 2),
        "first code cell",
    ),
    (complaints.it_is_set_up_by_one_line_and_says_what_to_do_when_that_fails, without_help, "wrong kernel"),
    (complaints.it_is_of_a_size_to_be_taught, with_code("1\n" * 16), "more than 15 lines"),
    (complaints.it_is_of_a_size_to_be_taught, very_long, "46 cells"),
    (complaints.links_lead_somewhere, with_prose("[next](99-nowhere.ipynb)"), "there is no 99-nowhere.ipynb"),
    (complaints.it_uses_nothing_that_differs_from_run_to_run, with_code("%timeit 1"), "'%' has no place"),
    (complaints.it_uses_nothing_that_differs_from_run_to_run, with_code("import time"), "'import time'"),
]


@pytest.mark.parametrize(("check", "spoil", "says"), BAD)
def test_a_check_sees_a_chapter_that_is_bad_in_one_way(check: Check, spoil: Any, says: str) -> None:
    notebook = good()
    assert check(notebook) == []
    spoil(notebook)
    assert any(says in complaint for complaint in check(notebook)), check(notebook)


def test_every_check_was_tried_on_a_bad_chapter() -> None:
    checks = {f for name, f in inspect.getmembers(complaints, inspect.isfunction) if returns_complaints(f)}
    assert checks == set(CHECKS) == {check for check, _, _ in BAD}


def returns_complaints(function: Any) -> bool:
    signature = inspect.signature(function)
    return signature.return_annotation == list[str] and list(signature.parameters) == ["notebook"]


def test_the_normal_form_is_the_same_for_all_who_run_a_chapter() -> None:
    """Two runs of one notebook, as two editors leave them: other ids, times, metadata, streams cut elsewhere."""
    one, other = good(), good()
    for cell in other.cells:
        cell.metadata["collapsed"] = True
        cell.metadata["execution"] = {"iopub.execute_input": "2026-11-29T00:00:00Z"}
    other.metadata["language_info"]["version"] = "3.14.0"
    one.cells[4].outputs = [new_output("stream", name="stdout", text="ab")]
    other.cells[4].outputs = [new_output("stream", name="stdout", text=part) for part in "ab"]
    other.cells[4].execution_count = 17
    assert normal_text(one) == normal_text(other)
    assert normal(other).metadata == METADATA


def test_ids_of_cells_stay_and_random_ones_are_numbered() -> None:
    notebook = new_notebook(cells=[new_code_cell("1") for _ in range(4)])
    for cell, id in zip(notebook.cells, ("damage", "d94c4cf1", "damage", "3x")):
        cell.id = id
    assert [cell.id for cell in normal(notebook).cells] == ["damage", "cell-01", "cell-02", "cell-03"]


def run_cells(*sources: str, **env: str) -> list[Any]:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    return [cell.outputs for cell in executed(notebook, ROOT, env, allow_errors=True).cells]


def test_a_chapter_that_asks_the_network_turns_red_and_one_that_asks_its_own_machine_does_not() -> None:
    own = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()).close()"
    asks = ["socket.create_connection(('192.0.2.1', 80), 1)", "socket.getaddrinfo('example.org', 80)"]
    first, *others = run_cells(own, *asks, PYTHONPATH=OFFLINE)
    assert first == []
    assert [output[0].evalue for output in others] == [
        "the network is blocked while notebooks run, and '192.0.2.1' is not this machine",
        "the network is blocked while notebooks run, and 'example.org' is not this machine",
    ]


def gate(folder: Path, *cells: Any) -> str:
    """What `pytest --nbval` says of a notebook in a folder with the conftest of the chapters."""
    (folder / "tests" / "notebooks").mkdir(parents=True)
    shutil.copytree(OFFLINE, folder / "tests" / "notebooks" / "offline")
    (folder / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "conftest.py", folder / "notebooks")
    notebook = normal(new_notebook(cells=list(cells)))
    nbformat.write(notebook, folder / "notebooks" / "99-a-chapter.ipynb")
    gate = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-p", "no:cacheprovider"]
    return subprocess.run([*gate, "notebooks"], cwd=folder, capture_output=True, text=True).stdout


def test_the_gate_passes_what_is_as_stored_and_stays_on_this_machine(tmp_path: Path) -> None:
    own = "import socket\nsocket.create_server(('127.0.0.1', 0)).close()\n1 + 1"
    assert "1 passed" in gate(tmp_path, new_code_cell(own, outputs=[shown("2")]))


def test_the_gate_fails_another_output_and_a_kernel_that_asks_the_network(tmp_path: Path) -> None:
    asks = "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)"
    said = gate(tmp_path, new_code_cell("1 + 1", outputs=[shown("3")]), new_code_cell(asks))
    assert "2 failed" in said
    assert "the network is blocked while notebooks run, and '192.0.2.1' is not this machine" in said


def test_the_gate_is_strict(pytestconfig: pytest.Config) -> None:
    """What `pytest --nbval` compares: everything, with no cell and no text left out."""
    assert pytestconfig.option.nbval_current_env
    assert pytestconfig.option.nbval_sanitize_with is None
    assert pytestconfig.option.nbval_cell_timeout == 60
    assert pytestconfig.getini("testpaths") == ["tests", "notebooks"]
    for path in CHAPTERS:
        words = path.read_text(encoding="utf-8")
        assert "nbval-" not in words.lower(), path
        assert "NBVAL_" not in words, path


# The long ones: every chapter is run again, in other ways

ELSEWHERE = [
    {"PYTHONHASHSEED": "0", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4711", "TZ": "America/New_York", "LC_ALL": "C.UTF-8"},
]


@pytest.mark.long
@every_chapter
@pytest.mark.parametrize("env", ELSEWHERE, ids=lambda env: env["TZ"])
def test_a_chapter_gives_the_same_elsewhere(path: Path, env: dict[str, str]) -> None:
    again = executed(read(path), path.parent, {**env, "PYTHONPATH": OFFLINE})
    assert normal_text(again) == path.read_text(encoding="utf-8")


def twice(notebook: Notebook) -> Notebook:
    """Every code cell two times in a row."""
    doubled = [new_code_cell(c.source, metadata=c.metadata) for c in complaints.code_cells(notebook) for _ in range(2)]
    return new_notebook(cells=doubled)


def differing(notebook: Notebook) -> list[str]:
    """The cells of `twice` that gave something else the second time."""
    cells = normal(notebook).cells
    pairs = zip(cells[::2], cells[1::2])
    return [a.source for a, b in pairs if said(a) != said(b)]


def said(cell: Any) -> list[Any]:
    return [
        {key: value for key, value in output.items() if key not in ("execution_count", "traceback", "metadata")}
        for output in cell.outputs
    ]


@pytest.mark.long
@every_chapter
def test_each_cell_can_be_run_twice(path: Path) -> None:
    assert differing(executed(twice(read(path)), path.parent, {"PYTHONPATH": OFFLINE})) == []


def test_a_cell_that_counts_its_runs_is_found() -> None:
    notebook = new_notebook(cells=[new_code_cell("n = [0]"), new_code_cell("n[0] += 1\nn"), new_code_cell("2")])
    assert differing(executed(twice(notebook), ROOT)) == ["n[0] += 1\nn"]


# With a rule neutralised, the chapter that teaches it must turn red

TEACHES = {
    "deduplicated": "03",
    "survives": "04",
    "expired": "04",
    "claimable": "05",
    "attempts_left": "08",
    "still_claimable": "05",
    "still_expired": "05",
    "unfinished": "05",
    "cancellable": "05",
    "current": "06",
}
NEUTRAL = """import jobslab.contract as contract
contract.RULES = tuple(
    rule._replace(sql="FALSE" if rule.off is False else "TRUE") if rule.slot == {rule!r} else rule
    for rule in contract.RULES
)
exec(open({offline!r}).read())
"""


def red_cells(path: Path, rule: str, folder: Path) -> list[str]:
    """The cells that give something else while this rule is neutral.  Those that only print SQL do not count, nor does
    one that did not end (a search of a world without the rule may be endless)."""
    source = NEUTRAL.format(rule=rule, offline=str(Path(OFFLINE) / "sitecustomize.py"))
    (folder / "sitecustomize.py").write_text(source, encoding="utf-8")
    notebook = read(path)
    env = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    spoilt = executed(read(path), path.parent, env, allow_errors=True)
    pairs = zip(complaints.code_cells(notebook), complaints.code_cells(normal(spoilt)))
    return [a.id for a, b in pairs if said(a) != said(b) and ended(b) and not re.search(r"\b(diff|sql)\(", a.source)]


def ended(cell: Any) -> bool:
    return all(output.get("ename") != "KeyboardInterrupt" for output in cell.outputs)


def test_every_rule_has_a_chapter_that_teaches_it() -> None:
    from jobslab.contract import RULES

    assert set(TEACHES) == {rule.slot for rule in RULES}


@pytest.mark.long
@pytest.mark.parametrize("rule", TEACHES)
def test_a_chapter_turns_red_when_its_rule_does_nothing(rule: str, tmp_path: Path) -> None:
    assert red_cells(chapter(TEACHES[rule]), rule, tmp_path) != []
