"""How do the stored outputs come about?  Every chapter is run from top to bottom and written in one normal form.

    python tools/notebooks.py                   all chapters
    python tools/notebooks.py notebooks/04*     these

Normal form: fixed metadata, ids of cells that stay, counts from 1, no times, no traceback; so that a diff shows what a
learner would see changed, and nothing else.  A cell that raises without saying so in its tags ends the run.
"""

import copy
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET = "application/vnd.jupyter.widget-view+json"
CELL_SECONDS = 60
GOOD_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f-]{27})?")


def main(arguments: list[str]) -> None:
    for path in [Path(name) for name in arguments] or sorted(FOLDER.glob("*.ipynb")):
        before = path.read_text(encoding="utf-8")
        after = normal_text(executed(nbformat.reads(before, as_version=4), path.parent))
        path.write_text(after, encoding="utf-8", newline="\n")
        print(f"{path.name}: {'the same' if after == before else 'changed'}")


def executed(notebook: Any, folder: Path, env: dict[str, str] | None = None, allow_errors: bool = False) -> Any:
    """The notebook run in this environment's kernel.  Raises CellExecutionError, and CellTimeoutError; where errors are
    allowed, a cell that does not end is interrupted instead."""
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        allow_errors=allow_errors,
        interrupt_on_timeout=allow_errors,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute(env={**os.environ, **(env or {})})


def normal_text(notebook: Any) -> str:
    """The normal form as text; the notebook itself is left as it is."""
    return str(nbformat.writes(normal(copy.deepcopy(notebook)), version=4)) + "\n"


def normal(notebook: Any) -> Any:
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    taken: set[str] = set()
    count = 0
    for cell in notebook.cells:
        cell.id = stable_id(cell.get("id", ""), taken)
        cell.metadata = nbformat.from_dict({"tags": cell.metadata.tags} if cell.metadata.get("tags") else {})
        cell.pop("attachments", None)
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [normal_output(output, count) for output in joined(cell.outputs)]
    return notebook


def stable_id(id: str, taken: set[str]) -> str:
    """The same id if it is a word and nobody's yet, else the next free number."""
    if id in taken or not GOOD_ID.fullmatch(id) or RANDOM_ID.fullmatch(id):
        id = next(f"cell-{n:02}" for n in range(1, 1000) if f"cell-{n:02}" not in taken)
    taken.add(id)
    return id


def joined(outputs: list[Any]) -> list[Any]:
    """Streams of one name that follow each other are one: how a kernel cuts them is chance."""
    whole: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and whole and whole[-1].get("name") == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


def normal_output(output: Any, count: int) -> Any:
    if output.output_type == "execute_result":
        output.execution_count = count
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    output.pop("transient", None)
    output.get("data", {}).pop(WIDGET, None)  # names a model of a kernel that is gone; its picture and text stay
    return output


if __name__ == "__main__":
    main(sys.argv[1:])
