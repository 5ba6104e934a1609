"""Does README say what the code does?"""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def tool():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "tools" / "readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_readme_are_those_of_the_code():
    assert tool().rendered(README) == README, "README.md is behind the code: run `make readme`"


def test_every_file_that_readme_names_is_there():
    named = set(re.findall(r"\]\(([^)#]+)\)", README)) | set(
        re.findall(r"`((?:jobslab|tests|data|notebooks|bench)/[\w./-]+)`", README)
    )
    named = {name for name in named if "://" not in name}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_dependency_has_its_row_and_every_row_is_a_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {*project["dependencies"]}.union(*project["optional-dependencies"].values())
    needed = {re.split(r"[\[<>=!~ ]", name)[0].lower() for name in needed}
    table = README.split("## What it stands on")[1].split("\n## ")[0]
    rows = {
        name.lower()
        for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
        for name in re.findall(r"`([\w-]+)`", row)
    }
    assert rows == needed


def test_every_command_that_readme_shows_is_a_command():
    shown = set(re.findall(r"^\$? ?jobslab (\w+)", README, re.MULTILINE))
    assert "run" in shown
    for command in sorted(shown):
        done = subprocess.run(
            [sys.executable, "-c", "from jobslab.cli import main; main()", command, "--help"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
