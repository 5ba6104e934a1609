"""Do RULES, STATEMENTS and the five flags fit together, for each of the 32 contracts?"""

import csv
import re
from itertools import combinations
from pathlib import Path
from string import Formatter

import pytest

from jobslab import Contract
from jobslab.contract import (
    FLAGS,
    GUARDED,
    PLAIN_SLOTS,
    RULES,
    SCHEMA,
    STATEMENTS,
    answers,
    changed_lines,
    guards,
    render,
    statements,
    why,
)
from jobslab.errors import UnknownFlag
from jobslab.source import expected

PACKAGE = Path(__file__).parents[1] / "jobslab"
TEXTS = {"schema": SCHEMA, **STATEMENTS}
SLOTS = {rule.slot for rule in RULES}


def slots(text: str) -> list[str]:
    return [slot for _, slot, _, _ in Formatter().parse(text) if slot]


# Contracts


def test_the_five_flags_are_in_their_order() -> None:
    assert FLAGS == ("idempotency_key", "persistence", "leases", "conditional_updates", "attempt_fencing")


def test_there_are_32_contracts_from_full_to_none() -> None:
    contracts = Contract.all()
    assert len(set(contracts)) == 32
    assert (contracts[0], contracts[-1]) == (Contract(), Contract.none())
    assert (contracts[0].off, contracts[-1].on) == ((), ())


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_a_contract_is_read_as_it_is_written(contract: Contract) -> None:
    assert Contract.parse(str(contract)) == contract
    assert Contract.only(*contract.on) == Contract().without(*contract.off) == contract
    assert contract.on + contract.off == tuple(
        sorted(FLAGS, key=lambda flag: (flag in contract.off, FLAGS.index(flag)))
    )


def test_a_contract_is_written_as_the_expected_outcomes_have_it() -> None:
    with expected().open(newline="") as file:
        written = {row["flags_on"] for row in csv.DictReader(file)}
    assert {str(Contract.parse(text)) for text in written} == written
    assert str(Contract.only("persistence", "leases")) == "persistence, leases"
    assert str(Contract.none()) == "none"


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Contract.only("lease"),
        lambda: Contract().without("leases", "fencing"),
        lambda: Contract.parse("all but lease"),
        lambda: Contract.parse("persistence, lease"),
    ],
)
def test_an_unknown_flag_is_refused_with_the_five_named(ask: object) -> None:
    with pytest.raises(UnknownFlag, match=", ".join(FLAGS)):
        ask()


# Rules


def test_every_rule_has_a_slot_of_its_own_and_every_flag_a_rule() -> None:
    assert len(SLOTS) == len(RULES)
    assert {rule.flag for rule in RULES} == {*FLAGS, None}


def test_while_its_flag_is_off_a_guard_says_yes_and_a_permission_says_no() -> None:
    assert {rule.slot: rule.off for rule in RULES if rule.flag} == {
        "deduplicated": False,
        "survives": False,
        "expired": False,
        "still_claimable": True,
        "still_expired": True,
        "unfinished": True,
        "cancellable": True,
        "current": True,
    }
    assert [rule.off for rule in RULES if not rule.flag] == [None, None]


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_a_flag_switches_its_own_rules_and_no_others(contract: Contract) -> None:
    in_force = answers(contract)
    for rule in RULES:
        on = rule.flag is None or rule.flag in contract.on
        assert in_force[rule.slot] == (rule.sql if on else str(rule.off).upper())


def test_every_slot_is_a_rule_or_what_a_database_adds() -> None:
    nested = [slot for rule in RULES for slot in slots(rule.sql)]
    used = {slot for text in TEXTS.values() for slot in slots(text)} | set(nested)
    assert used == SLOTS | set(PLAIN_SLOTS) - {"for_update"}


USED_BY = {
    "deduplicated": "schema submit find",
    "survives": "restart",
    "expired": "stuck",
    "claimable": "pick",
    "attempts_left": "stuck requeue exhaust retry",
    "still_claimable": "claim",
    "still_expired": "requeue exhaust",
    "unfinished": "renew progress succeed fail retry stop",
    "cancellable": "cancel",
    "current": "renew progress succeed fail retry stop requeue exhaust",
}
IN_WORDS = {
    "schema": "unique index",
    "submit": "unique index",
    **dict.fromkeys(USED_BY["unfinished"].split(), "report"),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slot)
def test_a_rule_is_used_where_its_table_says(rule: object) -> None:
    used = {verb for verb, text in TEXTS.items() if rule.slot in slots(text)}
    assert used == set(USED_BY[rule.slot].split())
    said = rule.used_by.replace("sweeper", "requeue exhaust")
    assert [verb for verb in used if verb not in said and IN_WORDS.get(verb, verb) not in said] == []


def test_a_rule_with_an_and_carries_its_own_parentheses() -> None:
    assert [rule.slot for rule in RULES if " AND " in rule.sql and not re.fullmatch(r"\(.*\)", rule.sql)] == []


# Statements


def test_a_line_holds_one_guard() -> None:
    lines = [line for text in STATEMENTS.values() for line in text.splitlines()]
    assert [line for line in lines if len(SLOTS & set(slots(line))) > 1] == []


def test_each_guarded_write_names_its_guards() -> None:
    report = ["unfinished", "current"]
    assert {verb: list(map(str, guards(verb))) for verb in GUARDED} == {
        "claim": ["still_claimable"],
        "renew": report,
        "progress": report,
        "succeed": report,
        "fail": report,
        "retry": [*report, "attempts_left"],
        "stop": report,
        "requeue": ["still_expired", "current", "attempts_left"],
        "exhaust": ["still_expired", "current", "not attempts_left"],
        "cancel": ["cancellable"],
    }


@pytest.mark.parametrize("verb", GUARDED)
def test_why_asks_the_rules_of_the_write_in_their_order(verb: str) -> None:
    cases = re.findall(r"WHEN \((NOT )?\{(\w+)\}\) IS NOT TRUE THEN '((?:not )?\w+)'", why(verb))
    assert cases == [("NOT " * guard.negated, guard.rule, str(guard)) for guard in guards(verb)]


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_no_slot_is_left_and_no_line_is_lost(contract: Contract) -> None:
    for verb, sql in statements(contract).items():
        assert "{" not in sql
        assert len(sql.splitlines()) == len(statements(Contract())[verb].splitlines())


def test_what_a_flag_changes_is_whole_lines_that_stay_in_place() -> None:
    assert dict(changed_lines(Contract(), Contract().without("attempt_fencing"))) == {
        verb: ["-    AND attempt = :attempt", "+    AND TRUE"] for verb in USED_BY["current"].split()
    }
    assert dict(changed_lines(Contract(), Contract().without("conditional_updates")))["claim"] == [
        "-    AND (state = 'QUEUED' AND run_at <= :now)",
        "+    AND TRUE",
    ]
    assert "schema" in dict(changed_lines(Contract(), Contract().without("idempotency_key")))


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_changes_the_statements_of_its_rules_alone(flag: str) -> None:
    mine = {rule.slot for rule in RULES if rule.flag == flag}
    nesting = {rule.slot for rule in RULES if mine & set(slots(rule.sql))}
    changed = {verb for verb, _ in changed_lines(Contract(), Contract().without(flag))}
    assert changed == {verb for verb, text in TEXTS.items() if (mine | nesting) & set(slots(text))}


def test_any_two_contracts_differ_and_none_from_itself() -> None:
    in_force = [{verb: render(text, contract) for verb, text in TEXTS.items()} for contract in Contract.all()]
    assert [pair for pair in combinations(in_force, 2) if pair[0] == pair[1]] == []
    assert list(changed_lines(Contract(), Contract())) == []


def test_a_rule_may_name_another_rule() -> None:
    assert render("{still_expired}", Contract()) == "(state = 'RUNNING' AND lease_until <= :now)"
    assert render("{still_expired}", Contract().without("leases")) == "(state = 'RUNNING' AND FALSE)"


def test_no_code_of_the_engine_asks_for_a_flag() -> None:
    """The one question outside of RULES: may there be a second server?"""
    engine = [*PACKAGE.glob("stores/*.py"), *(PACKAGE / f"{name}.py" for name in ("worker", "sweeper", "tasks", "job"))]
    asked = re.compile(rf"\.({'|'.join(FLAGS)})\b(?!\s*[=(])")
    found = [
        f"{file.name}: {line.strip()}"
        for file in engine
        for line in file.read_text().splitlines()
        if asked.search(line)
    ]
    assert [line for line in found if "job.idempotency_key" not in line] == [
        "sql.py: if not self.contract.persistence:"
    ]
