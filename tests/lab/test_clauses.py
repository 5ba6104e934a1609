"""Is every clause of the list where it says, held by what it says, and seen to make a difference?"""

import re
from pathlib import Path

import pytest

from jobslab.contract import FLAGS
from jobslab.lab.clauses import ALWAYS, CALLER, SERVER, Clause, clauses

ROOT = Path(__file__).parents[2]
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "http").glob("test_*.py"))

each_clause = pytest.mark.parametrize("clause", [*SERVER, *CALLER], ids=lambda clause: clause.says)


@each_clause
def test_a_clause_stands_where_it_says(clause: Clause) -> None:
    file, name = clause.where.split(": ")
    assert re.search(rf"\b{name}\b", (ROOT / "jobslab" / file).read_text(encoding="utf-8"))


@each_clause
def test_a_clause_is_held_by_a_flag_or_by_tests_of_its_name(clause: Clause) -> None:
    rule = clause.held_by.lower()
    assert rule in (*FLAGS, ALWAYS) or f"def test_{rule}_" in TESTS


@each_clause
def test_a_clause_makes_the_difference_that_it_is_for(clause: Clause) -> None:
    assert clause.with_it()
    assert clause.without_it is None or clause.without_it() != clause.with_it()


def test_every_flag_is_a_clause_of_the_server() -> None:
    assert {clause.held_by for clause in SERVER} >= set(FLAGS)
    assert all(clause.without_it for clause in SERVER if clause.held_by in FLAGS)


def test_each_list_is_a_table_with_a_line_a_clause() -> None:
    assert [*clauses("server").index] == [clause.says for clause in SERVER]
    assert clauses("caller")["with it"].tolist() == [clause.with_it() for clause in CALLER]
