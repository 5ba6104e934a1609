"""Does the suite see it when a rule is wrong?  Faults are planted, one at a time, and a test of the suite turns red.

First in RULES: a guard that says yes, a permission that says no, and both for the rules that are always on.  Then in
STATEMENTS: a clause of a WHERE that holds always, an assignment that is left out, an order that is lost.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from inspect import signature
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from jobslab import Contract, contract, open_store
from jobslab.contract import RULES, STATEMENTS, Rule, statements
from jobslab.job import State
from jobslab.settings import LAB
from jobslab.stores import Store
from tests.stores import (
    test_cancel,
    test_claim,
    test_clauses,
    test_opening,
    test_reports,
    test_retention,
    test_submit,
    test_sweep,
)
from tests.stores.test_contracts import QUICK, walk

Check = Callable[..., None]


def new_store() -> Store:
    return open_store(Contract(), settings=LAB)


def is_red(check: Check, *arguments: Any) -> bool:
    """Does this test of the suite fail, as an assertion does, on a new store?"""
    with new_store() as store:
        try:
            check(store, *arguments)
        except AssertionError:
            return True
        return False


# Rules


def plant(patch: pytest.MonkeyPatch, slot: str, answer: str) -> None:
    assert slot in {rule.slot for rule in RULES}
    patch.setattr(contract, "RULES", tuple(r._replace(sql=answer) if r.slot == slot else r for r in RULES))


class Fault(NamedTuple):
    slot: str
    answer: str
    check: Check
    arguments: tuple[Any, ...] = ()


FAULTS = [
    Fault("deduplicated", "FALSE", test_submit.test_a_repeated_submit_makes_one_job),
    Fault("survives", "FALSE", test_opening.test_a_restart_keeps_everything),
    Fault("expired", "FALSE", test_sweep.test_a_job_is_stuck_when_its_lease_is_over_and_not_before),
    Fault("expired", "TRUE", test_sweep.test_a_job_is_stuck_when_its_lease_is_over_and_not_before),
    Fault("claimable", "FALSE", test_claim.test_a_job_is_not_picked_before_its_time),
    Fault("claimable", "TRUE", test_claim.test_a_job_is_not_picked_before_its_time),
    Fault("attempts_left", "FALSE", test_sweep.test_a_stuck_job_goes_back_to_the_queue_with_its_attempt),
    Fault("attempts_left", "TRUE", test_sweep.test_a_job_without_attempts_left_is_given_up),
    Fault("still_claimable", "FALSE", test_claim.test_a_claim_starts_an_attempt_with_a_lease),
    Fault("still_claimable", "TRUE", test_claim.test_of_two_workers_that_picked_the_same_job_one_gets_it),
    Fault("still_expired", "FALSE", test_sweep.test_a_stuck_job_goes_back_to_the_queue_with_its_attempt),
    Fault("still_expired", "TRUE", test_sweep.test_a_sweep_undoes_no_report, (State.SUCCEEDED, "requeue")),
    Fault("unfinished", "FALSE", test_reports.test_a_report_of_the_current_attempt_counts, ("succeed",)),
    Fault("unfinished", "TRUE", test_reports.test_a_finished_job_never_changes, (State.SUCCEEDED, "progress")),
    Fault("cancellable", "FALSE", test_cancel.test_a_waiting_job_is_cancelled_at_once),
    Fault("cancellable", "TRUE", test_cancel.test_a_finished_job_cannot_be_cancelled, (State.SUCCEEDED,)),
    Fault("current", "FALSE", test_reports.test_a_report_of_the_current_attempt_counts, ("succeed",)),
    Fault("current", "TRUE", test_reports.test_a_late_report_is_refused, ("succeed",)),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.slot} says {fault.answer}")
def test_a_rule_that_answers_wrongly_turns_this_test_red(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    assert not is_red(fault.check, *fault.arguments)
    plant(monkeypatch, fault.slot, fault.answer)
    assert is_red(fault.check, *fault.arguments)


def test_every_rule_was_spoilt_in_every_way_that_it_can_be() -> None:
    wrong = {rule.slot: {"TRUE", "FALSE"} - {rule.sql} for rule in RULES}
    assert {(fault.slot, fault.answer) for fault in FAULTS} == {(slot, says) for slot in wrong for says in wrong[slot]}


# What a rule that says yes too often breaks in a random walk under the full contract.
BREAKS = {
    ("deduplicated", "FALSE"): "one job for each owner and key",
    ("expired", "TRUE"): "only a job whose lease is over is swept",
    ("claimable", "TRUE"): "a finished job never changes",
    ("attempts_left", "TRUE"): "no job has more attempts than it may",
    ("still_claimable", "TRUE"): "a job that was asked to stop is not claimed again",
    ("still_expired", "TRUE"): "only a job whose lease is over is swept",
    ("unfinished", "TRUE"): "only a running job takes a report",
    ("cancellable", "TRUE"): "a finished job never changes",
    ("current", "TRUE"): "only the current attempt's report counts",
}


@pytest.mark.parametrize("slot_and_answer", BREAKS, ids=" says ".join)
def test_a_rule_that_says_yes_too_often_breaks_this_promise(
    monkeypatch: pytest.MonkeyPatch, slot_and_answer: tuple[str, str]
) -> None:
    plant(monkeypatch, *slot_and_answer)
    with open_store(Contract(), settings=QUICK) as store:
        assert any(BREAKS[slot_and_answer] in moved.broken for moved in walk(store, "faults", 1500))


# Statements

YES = Rule("yes", None, None, "TRUE", "", "a guard that holds always")
CLAUSE = re.compile(r"^ *(?:WHERE|AND) (?P<spoilt>.+?)(?:\{skip_locked\}\))?$", re.MULTILINE)
ASSIGNMENT = re.compile(r"^(?:   SET|      ) (?P<column>\w+) = (?P<spoilt>.+?),?$", re.MULTILINE)
ORDER = re.compile(r"(?<=ORDER BY )(?P<spoilt>.+?)(?= *$)", re.MULTILINE)


class Mutant(NamedTuple):
    verb: str
    spoilt: str  # the part of the statement that is not there any more
    sql: str

    def __str__(self) -> str:
        return f"{self.verb} without {self.spoilt}"


def mutants() -> Iterator[Mutant]:
    for verb, sql in STATEMENTS.items():
        for pattern in (CLAUSE, ASSIGNMENT, ORDER):
            for match in pattern.finditer(sql):
                start, end = match.span("spoilt")
                for spoilt, instead in spoilings(pattern, match):
                    yield Mutant(verb, spoilt, sql[:start] + instead + sql[end:])
    for part in STATEMENTS["restart"].split(";"):
        yield Mutant("restart", part.strip(), STATEMENTS["restart"].replace(part, "SELECT 1"))
    target = "(owner, idempotency_key) WHERE {deduplicated} "
    yield Mutant("submit", f"its target {target}", STATEMENTS["submit"].replace(target, ""))


def spoilings(pattern: re.Pattern[str], match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """What can be taken out of this part of a statement, and what stands there then."""
    text = match["spoilt"]
    if pattern is CLAUSE and not text.endswith("("):
        yield text, "{yes}"
    elif pattern is ASSIGNMENT:
        yield f"{match['column']} = {text}", match["column"]
    elif pattern is ORDER:
        keys = text.split(", ")
        yield from ((key, ", ".join(other for other in keys if other != key) or "NULL") for key in keys)


MUTANTS = list(mutants())

WATCHED_BY: dict[str, ModuleType] = {
    **dict.fromkeys(["submit", "find"], test_submit),
    **dict.fromkeys(["pick", "claim"], test_claim),
    **dict.fromkeys(["renew", "progress", "succeed", "fail", "retry", "stop"], test_reports),
    **dict.fromkeys(["stuck", "requeue", "exhaust"], test_sweep),
    **dict.fromkeys(["cancel", "ask_to_stop"], test_cancel),
    "purge": test_retention,
    "restart": test_opening,
}
MODULES = list(dict.fromkeys([*WATCHED_BY.values(), test_clauses]))

# Mutants that no test can see, and why.
EQUIVALENT = {"pick without id": "the index that serves `pick` has the id in it, and gives it in this order anyway"}


def runs(module: ModuleType) -> Iterator[tuple[str, Callable[[], None]]]:
    """The tests of a module that need no more than a store, with each of their parameters."""
    for name, check in vars(module).items():
        if name.startswith("test_"):
            marks = [mark for mark in getattr(check, "pytestmark", []) if mark.name == "parametrize"]
            given = {"store", "open_it"}.union(*[names(mark) for mark in marks])
            shared = any(mark.kwargs.get("indirect") for mark in marks)  # it opens one database twice
            if set(signature(check).parameters) <= given and not shared:
                for chosen in product(*[rows(mark) for mark in marks]):
                    yield name, partial(alone, check, dict(ChainMap(*chosen)))


def names(mark: pytest.Mark) -> list[str]:
    return [mark.args[0]] if isinstance(mark.args[0], str) else list(mark.args[0])


def rows(mark: pytest.Mark) -> list[dict[str, Any]]:
    """The values of a parametrize, each as arguments."""
    single = len(names(mark)) == 1
    return [dict(zip(names(mark), [values] if single else values)) for values in mark.args[1]]


def alone(check: Check, arguments: dict[str, Any]) -> None:
    """Run one test of the suite on a new store without a file."""
    with ExitStack() as opened:

        def open_it(contract: Contract | None = None, **options: Any) -> Store:
            return opened.enter_context(open_store(contract, **{"settings": LAB, **options}))

        fixtures = {"open_it": lambda: open_it, "store": lambda: open_it(Contract())}
        wanted = {name: make() for name, make in fixtures.items() if name in signature(check).parameters}
        check(**wanted, **arguments)


def caught_by(module: ModuleType) -> str | None:
    """The first test of the module that fails, or None."""
    for name, run in runs(module):
        try:
            run()
        except (Exception, pytest.fail.Exception):
            return name
    return None


def compiles(store: Store, sql: str) -> None:
    with store.database.read() as db:
        for statement in sql.split(";"):
            db.execute(f"EXPLAIN {statement}", dict.fromkeys(re.findall(r":(\w+)", statement)))


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_statement_that_lacks_a_part_is_caught(monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    monkeypatch.setattr(contract, "RULES", (*RULES, YES))
    monkeypatch.setitem(STATEMENTS, mutant.verb, mutant.sql)
    with new_store() as store:
        compiles(store, statements(Contract())[mutant.verb])
    caught = caught_by(WATCHED_BY[mutant.verb]) or caught_by(test_clauses)
    assert bool(caught) != (str(mutant) in EQUIVALENT), EQUIVALENT.get(str(mutant), "no test sees it")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_without_a_fault_nothing_is_red(module: ModuleType) -> None:
    assert len(list(runs(module))) > 5
    assert caught_by(module) is None


def test_every_statement_has_parts_that_were_taken_out() -> None:
    assert {mutant.verb for mutant in MUTANTS} == set(STATEMENTS)
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS) > 90
    assert set(EQUIVALENT) <= {str(mutant) for mutant in MUTANTS}
