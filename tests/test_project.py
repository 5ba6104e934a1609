"""Does the project keep its own rules: style, types, who imports whom, versions, installing, remade data?"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
NOT_ON_IMPORT = ["pandas", "matplotlib", "fastapi", "starlette", "jobslab.lab"]

# Modules of the design, some of them with nothing behind them but a name; then who may import what, and who may not.
SKELETON = "cli commands/work lab/checker lab/world api client tasks web/intake where worker problems sweeper".split()
SKELETON += "rerun effects source stores/sql contract job clock errors settings".split()
SKELETON += "telling seen landing journal stage cause".split()
PACKAGES = "commands lab web stores".split()
ALLOWED = """
    cli commands.work|commands.work lab.world|commands.work api|commands.work client|commands.work worker|cli -
    commands.work -|commands -|lab.world api|lab.world worker|lab.world stores|lab.world pandas|lab.world matplotlib
    lab pandas|lab.world sqlite3|lab sqlite3|lab.world lab.checker|lab.world -|lab -|api stores.sql|api job|api clock
    api web.intake|api web|api problems|web.intake problems|web.intake stores|client job|client clock|client errors
    client settings|worker stores|worker stores.sql|worker job|worker clock|worker errors|worker settings|worker sweeper
    sweeper stores|where stores|tasks worker|tasks effects|tasks sqlite3|tasks source|source sqlite3|source errors
    effects sqlite_utils|stores contract|stores.sql job|stores.sql clock|stores psycopg|stores.sql psycopg
    stores sqlite3|stores.sql sqlite3|contract job|contract errors|api telling|api where|telling where|where seen
    where cause|seen landing|seen journal|seen stores|landing effects|tasks landing|web.intake cause|lab.world where
    lab nats|lab.world nats|rerun stores
"""
FORBIDDEN = """
    job contract|job clock|job errors|clock job|clock settings|errors job|settings job|job -|lab.checker lab.world
    lab.checker job|lab.checker errors|contract clock|contract settings|contract stores|stores.sql worker|stores.sql api
    stores.sql lab.world|worker contract|worker api|worker client|worker lab.world|worker sqlite3|worker psycopg
    worker tasks|worker web.intake|worker -|sweeper contract|sweeper sqlite_utils|api worker|api client|api tasks
    api lab.world|api sqlite3|web.intake worker|web.intake api|web.intake lab.world|web.intake sqlite3|client api
    client stores.sql|client contract|client lab.world|client worker|client web.intake|client problems|client -
    where lab.world|tasks lab.world|tasks api|effects lab.world|lab.world cli|lab.world commands.work
    commands.work cli|api pandas|worker matplotlib|commands.work pandas|lab.world psycopg|commands.work psycopg
    landing seen|landing journal|seen where|seen web.intake|where telling|where web.intake|web.intake where|where worker
    stage cause|journal landing|where sqlite3|landing sqlite3|telling api
    api psycopg_pool|api sqlite_utils|commands.work sqlite3|contract sqlite3|stores.sql pandas|worker nats|api nats
    commands.work nats|rerun sweeper|rerun sqlite3
"""

# An interpreter, or uv, that only notes how it was called; OLD=1 makes it a Python that is too old.
NOTES_ONLY = """#!/bin/sh
echo "$(basename "$0") $*" >> calls
case "$*" in
    -V) echo Python 3.10.9 ;;
    *version_info*) exit $OLD ;;
    *venv*.venv) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
"""
SAYS_ONCE = "installing into .venv (once, a minute or two) ...\n"


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The finished command, with all that it printed in stdout."""
    pipe, one = subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=one, text=True)


def pairs(table: str) -> list[tuple[str, str]]:
    """(importer, imported) by full names; "-" is the package itself, its front door."""
    ours = [module.replace("/", ".") for module in [*PACKAGES, *SKELETON]]
    names = {module: f"jobslab.{module}" for module in ours} | {"-": "jobslab"}
    words = [pair.split() for line in table.split("\n") for pair in line.split("|") if pair.strip()]
    return [(names[importer], names.get(imported, imported)) for importer, imported in words]


def skeleton(folder: Path, imports: list[tuple[str, str]]) -> Path:
    """A package with jobslab's modules, nothing in them but these imports, under jobslab's own table of contracts."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    for module in ["__init__", *(f"{package}/__init__" for package in PACKAGES), *SKELETON]:
        file = folder / "jobslab" / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        name = ".".join(["jobslab", *module.removesuffix("__init__").strip("/").split("/")]).rstrip(".")
        file.write_text("".join(f"import {imported}\n" for importer, imported in imports if importer == name))
    return folder


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(BIN / "lint-imports", "--no-cache", "--no-logo", cwd=folder)


def test_ruff_finds_nothing_to_say() -> None:
    ruff = run(sys.executable, "-m", "ruff", "check", "--quiet", ".")
    assert ruff.returncode == 0, ruff.stdout


def test_mypy_finds_nothing_to_say() -> None:
    mypy = run(sys.executable, "-m", "mypy")
    assert mypy.returncode == 0, mypy.stdout


def test_no_module_imports_what_lies_above_it() -> None:
    linter = lint_imports(ROOT)
    assert linter.returncode == 0, linter.stdout


def test_the_imports_of_the_design_are_allowed(tmp_path: Path) -> None:
    linter = lint_imports(skeleton(tmp_path, pairs(ALLOWED)))
    assert linter.returncode == 0, linter.stdout


def test_each_forbidden_import_is_refused_by_name(tmp_path: Path) -> None:
    linter = lint_imports(skeleton(tmp_path, pairs(FORBIDDEN)))
    found = set(re.findall(r"(?m)^-\s+(\S+) -> (\S+) \(l\.\d+\)$", linter.stdout))
    assert set(pairs(FORBIDDEN)) - found == set(), linter.stdout


def test_a_module_that_no_line_places_is_refused(tmp_path: Path) -> None:
    folder = skeleton(tmp_path, [])
    (folder / "jobslab" / "newcomer.py").touch()
    assert "- jobslab.newcomer" in lint_imports(folder).stdout


def test_constraints_are_names_and_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][a-z0-9.]*", line)] == []
    assert lines == sorted(lines)
    assert len(lines) > 100


def test_importing_jobslab_loads_no_heavy_package() -> None:
    code = f"import jobslab, sys; print([name for name in {NOT_ON_IMPORT} if name in sys.modules])"
    assert run(sys.executable, "-W", "error", "-c", code).stdout == "[]\n"


def test_the_orders_are_what_their_generator_writes(tmp_path: Path) -> None:
    made = run(sys.executable, "data/make_orders.py", tmp_path / "orders.csv")
    assert made.returncode == 0, made.stdout
    assert (tmp_path / "orders.csv").read_bytes() == (ROOT / "data" / "orders.csv").read_bytes()


def make(folder: Path, *tools: str, old: int = 0) -> subprocess.CompletedProcess[str]:
    """`make install` in this folder, with nothing on PATH but the tools that it needs, and stand-ins for these."""
    path = folder / "a bin"
    if not path.exists():
        path.mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        for name in ("basename", "cp", "echo", "mkdir", "touch"):
            (path / name).symlink_to(str(shutil.which(name)))
        for name in tools:
            (path / name).write_text(NOTES_ONLY)
            (path / name).chmod(0o755)
    return run(str(shutil.which("make")), "install", cwd=folder, env={"PATH": str(path), "OLD": str(old)})


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


@pytest.mark.parametrize("tools", [["python3"], ["python3", "uv"]])
def test_make_installs_once_and_says_one_line_in_a_folder_with_spaces(tmp_path: Path, tools: list[str]) -> None:
    folder = tmp_path / "a folder"
    first = make(folder, *tools)
    assert (first.returncode, first.stdout) == (0, SAYS_ONCE)
    installs = [call for call in calls(folder) if "-c constraints.txt -e .[lab,postgres,test,bench]" in call]
    assert [call.split()[0] for call in installs] == ["uv" if "uv" in tools else "python"]
    before = calls(folder)
    assert make(folder, *tools).returncode == 0
    assert calls(folder) == before


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_make_installs_again_when_what_it_installs_has_changed(tmp_path: Path, changed: str) -> None:
    make(tmp_path, "python3")
    later = (tmp_path / ".venv" / "installed").stat().st_mtime + 10
    os.utime(tmp_path / changed, (later, later))
    assert SAYS_ONCE in make(tmp_path, "python3").stdout  # beside a word of make's own: that file is from the future


def test_an_old_python_is_refused_in_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    made = make(tmp_path, "python3", old=1)
    assert made.returncode == 2
    said = "jobslab needs Python 3.11 or newer, and python3 is Python 3.10.9: say make PYTHON=python3.12.\n"
    assert made.stdout.startswith(said)
    assert not (tmp_path / ".venv").exists()


def test_a_missing_python_is_told_in_a_sentence(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert made.returncode == 2
    assert made.stdout.startswith('No interpreter named "python3": say make PYTHON=python3.12 (3.11 or newer).\n')


@pytest.fixture(scope="module", params=["from the checkout", "from the sdist"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder, source = tmp_path_factory.mktemp("dist"), ROOT
    if request.param == "from the sdist":
        assert run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder).returncode == 0
        shutil.unpack_archive(next(folder.glob("*.tar.gz")), folder)
        source = next(path for path in folder.iterdir() if path.is_dir())
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    assert built.returncode == 0, built.stdout
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_the_whole_package_and_its_data(wheel: zipfile.ZipFile) -> None:
    files = {path for path in (ROOT / "jobslab").rglob("*.*") if path.suffix in {".py", ".sql", ".html", ".css", ".js"}}
    expected = {path.relative_to(ROOT).as_posix() for path in files}
    assert expected | {"jobslab/data/orders.csv", "jobslab/data/expected.csv"} <= set(wheel.namelist())
    assert wheel.read("jobslab/data/orders.csv") == (ROOT / "data" / "orders.csv").read_bytes()


def test_the_service_asks_for_neither_jupyter_nor_pandas(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    asked = Parser().parsestr(wheel.read(name).decode()).get_all("Requires-Dist") or []
    core = {requirement for requirement in asked if "extra ==" not in requirement}
    assert core == {"fastapi", "uvicorn", "httpx2", "typer", "rich", "sqlite-utils"}
