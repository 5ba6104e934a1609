"""`make readme`: writes the parts of README.md that are made from the code, between their marks.

A test compares them, so that README can't say another rule than the engine has.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from jobslab.contract import RULES
from jobslab.job import STATES
from jobslab.stage import markdown as stages

README = Path(__file__).parents[1] / "README.md"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def rules() -> str:
    """contract.RULES: each question that a flag answers, and why it is asked."""
    off = {None: "", True: "`TRUE`", False: "`FALSE`"}
    return table(
        ["rule", "flag", "while off", "SQL", "used by", "why"],
        [
            [f"`{r.slot}`", f"`{r.flag}`" if r.flag else "(always)", off[r.off], f"`{r.sql}`", r.used_by, r.why]
            for r in RULES
        ],
    )


def states() -> str:
    """job.STATES: what each state says, and what may follow it."""
    return table(
        ["state", "it says", "it may become"],
        [
            [f"`{s}`", m.says, ", ".join(f"`{n}`" for n in m.successors) or "nothing: terminal"]
            for s, m in STATES.items()
        ],
    )


def run() -> str:
    """What `jobslab run` prints of one scenario, in a terminal of 80 columns."""
    command = ["run", "--scenario", "stale worker"]
    done = subprocess.run(
        [sys.executable, "-c", "from jobslab.cli import main; main()", *command],
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    return f'```\n$ jobslab run --scenario "stale worker"\n\n{told}\n```'


def chapters() -> str:
    """The front card of each notebook: its name, its question, its minutes."""
    rows = []
    for path in sorted(README.parent.glob("notebooks/*.ipynb")):
        card = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title, question = re.search(r"# (\d\d .*)\n\n\*\*(.*)\*\*", card).groups()
        rows.append([f"[{title}](notebooks/{path.name})", question, re.search(r"^(\d+) minutes", card, re.M)[1]])
    return table(["chapter", "its question", "minutes"], rows)


PARTS = {"run": run, "chapters": chapters, "rules": rules, "states": states, "stages": stages}


def rendered(readme: str) -> str:
    """The same text with every part made anew."""
    for name, part in PARTS.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not marked.search(readme):
            sys.exit(f"README.md has no place for {name!r}: <!-- {name} --> ... <!-- /{name} -->")
        readme = marked.sub(lambda found, part=part: f"{found[1]}{part()}\n{found[2]}", readme)
    return readme


if __name__ == "__main__":
    README.write_text(rendered(README.read_text(encoding="utf-8")), encoding="utf-8")
