"""What does `jobslab run` print, and with which exit code, for every option and every mistake?"""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobslab import contract as rules
from jobslab.cli import main
from jobslab.commands import run as command
from jobslab.commands.tables import filled
from jobslab.contract import FLAGS, Contract
from jobslab.lab.extra import MissingExtra
from jobslab.lab.scenarios import EVERY, SCENARIOS, Scenario, Variant, expected
from jobslab.stores import open_store

ONLY = ["--scenario", "double claim"]


class Ran(NamedTuple):
    code: object
    out: str
    err: str


Jobslab = Callable[..., Ran]

# What is enacted starts services and brokers.  How that is printed is asked here, and once is enough to print it often.
ENACTED_ONCE = tuple(each._replace(enact=cache(each.enact)) if each.enact else each for each in EVERY)


@pytest.fixture(autouse=True)
def enacted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.lab.scenarios.EVERY", ENACTED_ONCE)


@pytest.fixture
def jobslab(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Jobslab:
    """The command, as the console script runs it."""
    monkeypatch.setenv("COLUMNS", "80")

    def ran(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["jobslab", "run", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ran(ended.value.code, *capsys.readouterr())

    return ran


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, with all that it printed."""
    start = [sys.executable, "-c", "from jobslab.cli import main; main()", "run", *arguments]
    return subprocess.run(start, env={**os.environ, "COLUMNS": "80", **environment}, capture_output=True, check=False)


@contextmanager
def a_rule_without_effect(slot: str) -> Iterator[None]:
    before = rules.RULES
    rules.RULES = tuple(rule._replace(sql="TRUE") if rule.slot == slot else rule for rule in before)
    try:
        yield
    finally:
        rules.RULES = before


# The whole


def test_the_whole_run_shows_every_scenario_as_expected_and_the_real_export(jobslab: Jobslab) -> None:
    ran = jobslab()
    assert (ran.code, ran.err) == (0, "")
    for scenario in EVERY:
        assert scenario.question.split()[0] in ran.out
        assert re.search(rf"^{scenario.name} ─+$", ran.out, re.MULTILINE)
        assert all(variant.says.split()[0] in ran.out for variant in scenario.variants)
    assert ran.out.count("✓") == len(expected()) + 1  # and the one that explains the mark
    rows = len(expected())
    assert ran.out.endswith(
        f"\n{rows} rows, {rows} as expected\norders: 4,000 rows in the table, 4,000 in the file\n",
    )


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("arguments", [[], ["--scenario", "restart"], ["--with", ""]], ids=" ".join)
def test_no_line_is_wider_than_the_terminal_and_none_ends_in_blanks_or_has_colour_in_it(
    columns: int, arguments: list[str], jobslab: Jobslab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = jobslab(*arguments).out.splitlines()
    assert max(map(len, lines)) in (range(75, 81) if columns == 80 else range(81, columns + 1))
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)


def test_on_a_terminal_there_is_a_bar_and_colour() -> None:
    ours, theirs = pty.openpty()
    start = [sys.executable, "-c", "from jobslab.cli import main; main()", "run", *ONLY]
    with subprocess.Popen(start, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as running:
        os.close(theirs)
        shown = b""
        while part := read(ours):
            shown += part
        assert running.wait() == 0
    os.close(ours)
    text = shown.decode()
    assert "━" in text  # the bar; what it says beside may be gone before it is drawn
    assert "\x1b[32m" in text
    assert "6 rows, 6 as expected" in text


def read(file: int) -> bytes:
    try:
        return os.read(file, 65536)
    except OSError:  # how Linux says that the other end of a terminal is closed
        return b""


def test_where_the_output_can_not_hold_the_marks_words_stand_for_them() -> None:
    ran = process(*ONLY, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert b"ok refused" in ran.stdout
    assert ran.stdout.isascii()


def test_a_reader_who_has_had_enough_is_no_error() -> None:
    start = f'"{sys.executable}" -c "from jobslab.cli import main; main()" run --scenario restart | head -n 1'
    ran = subprocess.run(start, shell=True, capture_output=True, check=False)
    assert b"Traceback" not in ran.stderr
    assert b"Exception" not in ran.stderr


def test_neither_pandas_nor_matplotlib_nor_jupyter_is_needed(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(['pandas', 'matplotlib', 'IPython', 'ipywidgets']))"
    start = [sys.executable, "-c", f"{blocked}; from jobslab.cli import main; main()", "run"]
    ran = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"{len(expected())} rows, {len(expected())} as expected" in ran.stdout


# What differs


def test_a_row_that_differs_is_marked_and_named_and_the_exit_code_is_1(jobslab: Jobslab) -> None:
    with a_rule_without_effect("still_claimable"):
        ran = jobslab(*ONLY)
    assert ran.code == 1
    assert "✗ job-1 attempt 2" in ran.out
    assert "expected: refused" in ran.out
    said = " ".join(ran.out.split())
    assert "conditional, B claims what it picked: expected 'refused', seen 'job-1 attempt 2'" in said
    assert ran.out.endswith("\n6 rows, 4 as expected\n")


def test_an_export_that_is_not_whole_is_exit_code_1(jobslab: Jobslab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.lab.export.rows_in", lambda file: 3999)
    ran = jobslab(*ONLY, "--data", sample())
    assert ran.code == 1
    assert ran.out.endswith("orders: 4,000 rows in the table, 3,999 in the file\n")


def sample() -> Path:
    return Path(__file__).parents[1] / "data" / "orders.csv"


# One's own contract, scenario, schedule


def test_one_scenario_is_shown_step_by_step(jobslab: Jobslab) -> None:
    out = jobslab("--scenario", "restart").out
    assert [line.split(". ")[0] for line in out.splitlines() if re.match(r"\d+\. ", line)] == list("123456789")
    assert "not exercised" in out
    assert "(B has no job" in out
    assert "→ RUNNING" in out
    assert "orders" not in out  # the export belongs to the whole


@pytest.mark.parametrize(
    "arguments", [["--without", "leases"], ["--with", "persistence, attempt_fencing"], ["--with", ""]]
)
def test_under_a_contract_of_ones_own_there_is_no_verdict(arguments: list[str], jobslab: Jobslab) -> None:
    ran = jobslab(*arguments)
    assert ran.code == 0
    assert "✓" not in ran.out
    assert "✗" not in ran.out
    assert "outcomes, no verdict" in ran.out


def test_under_a_contract_of_ones_own_it_is_that_contract_that_runs(jobslab: Jobslab) -> None:
    assert "not exercised" in jobslab("--scenario", "sweeper on a snapshot", "--without", "leases").out
    assert "still_claimable" in jobslab(*ONLY, "--with", "conditional_updates").out
    assert "still_claimable" not in jobslab(*ONLY, "--without", "conditional_updates").out


def test_a_schedule_of_ones_own_runs_beside_the_full_contract(jobslab: Jobslab, tmp_path: Path) -> None:
    text = "client submits / A claims next / A crashes / 100 units pass / sweep / end: client polls"
    ran = jobslab("--schedule", text, "--without", "leases")
    assert ran.code == 0
    assert re.search(r"^flags on +all but leases +all$", ran.out, re.MULTILINE)
    assert re.search(r"^5\. sweep +nothing +job-1 requeued$", ran.out, re.MULTILINE)
    file = tmp_path / "schedule.txt"
    file.write_text(text.replace(" / ", "\n"))
    assert jobslab("--schedule", file, "--without", "leases") == ran
    assert "flags on" in jobslab("--schedule", text).out


# SQL


def test_sql_shows_the_lines_that_a_flag_changes_and_the_statements_that_ran(jobslab: Jobslab) -> None:
    out = jobslab("--scenario", "stale worker", "--sql").out
    assert "from 'all but attempt_fencing' to 'all':\n  renew, progress, succeed" in out
    assert "    -    AND TRUE\n    +    AND attempt = :attempt\n" in out
    assert [line for line in out.splitlines() if line.startswith("-- ")] == [
        f"-- {verb}" for verb in ("submit", "find", "pick", "claim", "succeed", "stuck", "requeue", "exhaust")
    ]


def test_sql_shows_the_statements_of_the_contract_that_was_asked_for(jobslab: Jobslab) -> None:
    out = jobslab("--scenario", "restart", "--without", "persistence", "--sql").out
    assert out.count("What changes in the SQL, from 'all but persistence' to 'all':\n  restart\n") == 1
    assert "the statements in force, flags on: all but persistence" in out
    assert "DELETE FROM jobs WHERE NOT FALSE" in out


def test_sql_shows_what_a_flag_changes_once_however_many_scenarios_run(jobslab: Jobslab) -> None:
    out = jobslab("--without", "attempt_fencing", "--sql").out
    assert out.count("What changes in the SQL, from 'all but attempt_fencing' to 'all':") == 1


# JSON


def test_json_has_the_rows_the_steps_and_the_export(jobslab: Jobslab) -> None:
    ran = jobslab("--json")
    told = json.loads(ran.out)
    assert (ran.code, told["ok"], told["rows"], told["held"]) == (0, True, len(expected()), len(expected()))
    rows = [
        (
            shown["scenario"],
            *(variant[name] for name in ("variant", "flags_on")),
            row["step"],
            row["expected"],
            variant["switches"],
        )
        for shown in told["scenarios"]
        for variant in shown["variants"]
        for row in variant["rows"]
    ]
    assert rows == expected()
    assert told["export"][0] | {"job": ""} == {
        "table": "orders", "job": "", "state": "SUCCEEDED", "rows_in_table": 4000, "rows_in_file": 4000, "error": None,
    }  # fmt: skip


def test_json_is_what_the_module_says_it_is(jobslab: Jobslab) -> None:
    told = json.loads(jobslab(*ONLY, "--json", "--sql").out)
    documented = set(re.findall(r"\w+", str(command.__doc__).partition("`--json`")[2]))
    assert keys(told) - {"all", "all but conditional_updates"} - set(rules.STATEMENTS) <= documented
    assert set(told) == {"ok", "rows", "held", "scenarios", "export", "sql"}
    assert told["export"] is None
    assert "AND TRUE" in told["sql"]["all but conditional_updates"]["claim"]


def keys(value: Any) -> set[str]:
    """All names in a JSON value."""
    if isinstance(value, list):
        return {key for one in value for key in keys(one)}
    return set(value) | {key for one in value.values() for key in keys(one)} if isinstance(value, dict) else set()


def test_json_says_what_differs_and_has_no_verdict_under_ones_own_contract(jobslab: Jobslab) -> None:
    with a_rule_without_effect("still_claimable"):
        ran = jobslab(*ONLY, "--json")
    assert (ran.code, json.loads(ran.out)["ok"], json.loads(ran.out)["held"]) == (1, False, 4)
    own = json.loads(jobslab(*ONLY, "--json", "--without", "leases").out)
    assert (own["ok"], own["rows"], own["held"]) == (True, 0, 0)
    assert own["scenarios"][0]["variants"][0]["rows"][0]["held"] is None


# What is enacted


def lacking(switches: str) -> dict[str, str]:
    raise MissingExtra("a broker is missing: pip install 'jobslab[queue]'")


def enacted(**enact: Any) -> Scenario:
    """In the place of "double claim", so that it has expectations."""
    variants = (Variant("select then update", Contract().without("conditional_updates"), "both run it"),)
    return Scenario("double claim", "How many?", "somebody does something.", variants, **enact)


def test_what_could_not_be_tried_is_said_once_and_is_no_failure(
    jobslab: Jobslab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobslab.lab.scenarios.EVERY", [enacted(enact=lacking)])
    ran = jobslab(*ONLY)
    assert ran.code == 0
    assert ran.out.count("not exercised") == 3 + 1
    assert ran.out.endswith("\n3 rows were not exercised: a broker is missing: pip install 'jobslab[queue]'\n")
    told = json.loads(jobslab(*ONLY, "--json").out)
    assert (told["ok"], told["rows"]) == (True, 0)
    assert (
        told["scenarios"][0]["variants"][0]["rows"][0]["lacks"] == "a broker is missing: pip install 'jobslab[queue]'"
    )


def test_what_is_enacted_shows_its_words_and_keeps_no_file(
    jobslab: Jobslab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = {line.step: line.expected for line in expected() if line[1] == "select then update"}
    monkeypatch.setattr("jobslab.lab.scenarios.EVERY", [enacted(enact=lambda switches: seen)])
    ran = jobslab(*ONLY, "--keep", tmp_path / "kept")
    assert ran.out.endswith("\n3 rows, 3 as expected\n")
    assert not list((tmp_path / "kept").glob("*"))
    assert json.loads(jobslab(*ONLY, "--json").out)["scenarios"][0]["variants"][0]["schedule"] is None


def test_what_is_enacted_has_no_flags_to_switch(jobslab: Jobslab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobslab.lab.scenarios.EVERY", [enacted(enact=lacking)])
    sentence = "the scenario 'double claim' has no schedule and no flags to switch; run it as it is"
    assert jobslab(*ONLY, "--without", "leases") == Ran(2, "", f"jobslab: {sentence}\n")


# Files


def test_keep_leaves_a_database_for_each_variant_and_names_it(jobslab: Jobslab, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "kept"
    ran = jobslab(*ONLY, "--keep", directory)
    assert ran.code == 0
    assert sorted(os.listdir(directory)) == ["double-claim--conditional.db", "double-claim--select-then-update.db"]
    assert f"kept: {directory / 'double-claim--conditional.db'}" in ran.out
    with open_store(None, str(directory / "double-claim--select-then-update.db")) as store:
        assert store.contract == Contract().without("conditional_updates")
        assert [event.actor for event in store.events()] == ["lab", "A", "B"]


def test_keep_never_overwrites_a_file_and_leaves_nothing_half_written(jobslab: Jobslab, tmp_path: Path) -> None:
    mine = tmp_path / "double-claim--conditional.db"
    mine.write_text("mine")
    ran = jobslab(*ONLY, "--keep", tmp_path)
    assert ran == Ran(2, "", f"jobslab: {mine} is there already; remove it, or name another directory\n")
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]
    assert mine.read_text() == "mine"


def test_a_run_that_fails_keeps_nothing(jobslab: Jobslab, tmp_path: Path) -> None:
    assert jobslab(*ONLY, "--keep", tmp_path / "kept", "--data", tmp_path / "no").code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_all_variants_have_different_names() -> None:
    names = [command.file_name(scenario, variant) for scenario in SCENARIOS for variant in scenario.variants]
    assert len(set(names)) == len(names) == 17
    assert all(re.fullmatch(r"[a-z0-9-]+\.db", name) for name in names)


@pytest.mark.parametrize("suffix", ["csv", "db"])
def test_data_exports_a_file_of_ones_own(suffix: str, jobslab: Jobslab, tmp_path: Path) -> None:
    file = tmp_path / f"people.{suffix}"
    if suffix == "csv":
        file.write_text("name,age\nAda,36\nAlan,41\n")
    else:
        make(file, "CREATE TABLE people (name)", "INSERT INTO people VALUES ('Ada'), ('Alan')")
    before = file.read_bytes()
    ran = jobslab(*ONLY, "--data", file)
    assert ran.code == 0
    assert ran.out.endswith("6 rows, 6 as expected\npeople: 2 rows in the table, 2 in the file\n")
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def make(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path


def test_over_http_shows_the_same(jobslab: Jobslab) -> None:
    shown = jobslab("--scenario", "submit again")
    assert jobslab("--scenario", "submit again", "--over-http") == shown


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scenario", "double"], "there is no scenario 'double'; the scenarios are: accepted, submit again, "),
        (["--with", "leases,lease"], "there is no flag 'lease'; the five flags are " + ", ".join(FLAGS)),
        (["--without", "all"], "there is no flag 'all'; the five flags are "),
        (["--with", "leases", "--without", "leases"], "give --with or --without, not both"),
        ([*ONLY, "--schedule", "restart"], "give --scenario or --schedule, not both"),
        (["--schedule", "no-such-file"], "there is no file 'no-such-file', and it is no schedule: a step is what "),
        (["--schedule", "A picks / A clams"], "line 1: 'A clams' is no step; did you mean 'A claims'?"),
        (["--data", "no-such-file.csv"], "there is no file no-such-file.csv; name a CSV file or an SQLite database"),
        (["--data", "."], ". is not a file; name a CSV file or an SQLite database"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], sentence: str, jobslab: Jobslab) -> None:
    ran = jobslab(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"jobslab: {sentence}")
    assert ran.err.count("\n") == 1


def a_csv_that_is_none(path: Path) -> Path:
    path.write_bytes(b"\x00\x01\x02\xff" * 100)
    return path


def damaged(path: Path) -> Path:
    make(path, "CREATE TABLE t (x)", *["INSERT INTO t VALUES (randomblob(5000))"] * 20)
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 60_000)
    return path


@pytest.mark.parametrize("file", [a_csv_that_is_none, damaged], ids=lambda make: make.__name__)
def test_a_file_that_can_not_be_exported_is_one_sentence(
    file: Callable[[Path], Path], jobslab: Jobslab, tmp_path: Path
) -> None:
    ran = jobslab(*ONLY, "--data", file(tmp_path / "x"))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"jobslab: {tmp_path / 'x'} ")


def test_a_locked_database_is_one_sentence(jobslab: Jobslab, tmp_path: Path) -> None:
    file = make(tmp_path / "x", "CREATE TABLE t (x)")
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        ran = jobslab(*ONLY, "--data", file)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"jobslab: {file} is locked by another program; close that one, or try again\n"


def test_a_directory_that_can_not_be_written_is_one_sentence(jobslab: Jobslab, tmp_path: Path) -> None:
    """Below a regular file, since no permission binds the superuser that tests may run as."""
    file = tmp_path / "file"
    file.write_text("")
    assert jobslab(*ONLY, "--keep", file) == Ran(2, "", f"jobslab: {file} is a file; name a directory\n")
    ran = jobslab(*ONLY, "--keep", file / "below")
    sentence = f"nothing can be kept in {file / 'below'} (Not a directory); name another directory"
    assert ran == Ran(2, "", f"jobslab: {sentence}\n")


def test_a_machine_without_room_for_files_is_one_sentence(jobslab: Jobslab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/no")
    ran = jobslab(*ONLY)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("jobslab: the lab can't work on this machine: ")


# How lines are filled


@pytest.mark.parametrize(
    ("parts", "wide", "lines"),
    [
        (["200"], 10, ["200"]),
        (["202", "id job-1"], 13, ["202; id job-1"]),
        (["202", "id job-1"], 12, ["202;", "id job-1"]),
        (["a", "b", "c"], 5, ["a; b;", "c"]),
        (["longer than that", "b"], 5, ["longer than that;", "b"]),
    ],
)
def test_parts_stay_whole_and_lines_are_no_longer_than_they_may(parts: list[str], wide: int, lines: list[str]) -> None:
    assert filled(parts, "; ", wide) == lines
