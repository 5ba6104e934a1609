"""Is the world the engine's own, and may its states be looked at as they are: blurred, in parts, one for all alike?"""

import random
import re
from pathlib import Path

import pytest

from jobslab.contract import Contract
from jobslab.job import Error
from jobslab.lab import checker
from jobslab.lab.futures import Futures, report, sweep
from jobslab.lab.memo import BLURRED, Memo, whole
from jobslab.lab.properties import NAMES, SOMETIMES, properties, telling
from jobslab.lab.world import Bounds, Claim, World, job_of
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from tests.lab.worlds import worlds
from tests.stores.ways import WAYS

SINGLES = [Contract(), *(Contract().without(flag) for flag in Contract().on), Contract.none()]
APART = [Contract(), Contract().without("leases"), Contract.none()]
SMALL = Bounds(sweepers=1, under_way=0, reports=("renew", "succeed", "retry"))
SMALLEST = SMALL._replace(cancels=0, reports=("renew", "succeed"))


def searched(store: Store, bounds: Bounds = Bounds(), alike: bool = True) -> tuple[World, checker.Result]:
    world, system = worlds(store, bounds, alike=alike)
    return world, checker.check(system, properties(world))


def verdicts(result: checker.Result) -> dict[str, tuple[str, int | None]]:
    """What was found, and in how many steps."""
    return {name: (one.answer, one.trace and len(one.trace.steps)) for name, one in result.verdicts.items()}


# The memo

USED = ("submit", "find", "pick", "claim", "renew", "progress", "succeed", "fail", "retry", "stop", "stuck", "requeue")
USED += ("exhaust", "cancel", "ask_to_stop", "restart")

READING = r"(?s)\bWHERE\b.*?(?=\bSET\b|\bRETURNING\b|$)|\bORDER BY\b.*?$|\bCASE\b.*?\bEND\b|^SELECT (?!\*).*?\bFROM\b"


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_no_where_case_or_order_by_reads_a_column_that_is_blurred(contract: Contract) -> None:
    with open_store(contract) as store:
        blurred = set(Memo(store).blurred)
        for verb in USED:
            reads = " ".join(re.findall(READING, store.sql[verb]))
            read = blurred & {word for word in re.findall(r"[:\w]+", reads) if not word.startswith(":")}
            # The order of the rows stands for run_at and created_at, and progress is read to write progress alone.
            assert read <= ({"run_at", "created_at"} if verb in ("pick", "claim") else {"progress"}), verb


def test_the_reader_of_statements_would_see_such_a_column() -> None:
    statement = (
        "UPDATE jobs SET state = CASE WHEN worker = 'A' THEN 1 END, error = NULL WHERE id = :id AND progress < 1"
    )
    assert {"worker", "progress"} <= set(re.findall(r"\w+", " ".join(re.findall(READING, statement))))
    assert "error" not in " ".join(re.findall(READING, statement))


SCRAMBLED = {"worker": "Z", "progress": 0.3, "result": '"x"', "error": '{"type": "x", "message": "y"}'}
SCRAMBLED |= {"started_at": 3.0, "updated_at": 4.0}


@pytest.mark.parametrize("contract", APART, ids=str)
def test_what_stands_in_blurred_columns_changes_no_answer(contract: Contract) -> None:
    with open_store(contract, settings=LAB) as store:
        world, _ = searched(store)
        memo = world.memo
        scrambled = {column: value for column, value in SCRAMBLED.items() if column in memo.blurred}
        if "lease_until" in memo.blurred:
            scrambled["lease_until"] = -7.0
        original = store.load
        store.load = lambda rows: original([job._replace(**scrambled) for job in rows])  # type: ignore[method-assign]
        for (part, verb, arguments), (number, rows) in memo._known.items():
            said = memo._execute(rows, part, verb, arguments)
            assert said == memo.facts[number], f"{verb} reads a blurred column"


@pytest.mark.parametrize("contract", APART, ids=str)
def test_a_fresh_store_answers_as_the_memo_remembers(contract: Contract) -> None:
    with open_store(contract, settings=LAB) as store, open_store(contract, settings=LAB) as fresh:
        world, _ = searched(store)
        assert world.memo.audit(fresh, share=1) == len(world.memo.facts)


def test_an_audit_finds_an_answer_that_was_remembered_wrongly() -> None:
    with open_store(settings=LAB) as store, open_store(settings=LAB) as fresh:
        world, _ = searched(store, SMALL)
        memo = world.memo
        memo.facts[:] = [fact._replace(answer=None) if fact.verb == "succeed" else fact for fact in memo.facts]
        with pytest.raises(AssertionError, match="a fresh store says"):
            memo.audit(fresh, share=1)


def test_two_stores_share_what_is_remembered_only_where_their_statements_are_the_same() -> None:
    said = pytest.raises(AssertionError, match="the two stores differ in exhaust, requeue, stuck, and not in restart")
    with open_store(settings=LAB) as store, open_store(Contract().without("leases"), settings=LAB) as other, said:
        Memo(store).ask_anew(other, "restart")


def test_an_audit_asks_a_share_of_the_questions() -> None:
    with open_store(settings=LAB) as store, open_store(settings=LAB) as fresh:
        world, _ = searched(store, SMALL)
        assert 1 <= world.memo.audit(fresh) <= len(world.memo.facts) // 50


def test_a_verb_that_writes_more_than_the_row_it_names_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(Contract().without("idempotency_key"), settings=LAB) as store:
        store.sql["claim"] = store.sql["claim"].replace("WHERE id = :id\n   AND", "WHERE")
        with pytest.raises(AssertionError, match="wrote more rows"):
            searched(store)


def test_a_verb_on_one_job_leaves_the_others_where_they_are_in_the_queue() -> None:
    with open_store(settings=LAB) as store:
        memo = Memo(store)
        table = memo.empty
        for n in (1, 2):
            request = {"id": f"job-{n}", "kind": "export", "params": NoParams(), "key": f"k{n}"}
            table, _ = memo.ask(table, "submit", tuple(request.items()))
        table, _ = memo.ask(table, "claim", (("id", "job-1"), ("worker", "A"), ("lease_seconds", 1)))
        retry = (("id", "job-1"), ("attempt", 1), ("worker", "A"), ("error", Error("x", "y")))
        table, _ = memo.ask(table, "retry", retry)
        assert [job.id for job in memo.tables[table]] == ["job-2", "job-1"]
        store.load(whole(memo.tables[table], 0))
        assert store.pick(now=0).id == "job-2"


class NoParams(dict):
    def __hash__(self) -> int:  # type: ignore[override]
        return 0


def test_time_passes_for_leases_until_they_are_over() -> None:
    with open_store(settings=LAB) as store:
        memo = Memo(store)
        store.submit("job-1", "export", {}, now=0)
        store.claim("job-1", "A", 2, now=0)
        now = memo.tables(tuple(memo.blur(job) for job in store.rows()))
        left = [now]
        while (later := memo.tick(left[-1])) != left[-1]:
            left.append(later)
        assert [memo.tables[table][0].lease_until for table in left] == [2, 1, 0]


def test_without_leases_time_changes_nothing() -> None:
    with open_store(Contract().without("leases"), settings=LAB) as store:
        world, _ = searched(store, SMALL)
        assert "lease_until" in world.memo.blurred
        assert all(world.memo.tick(table) == table for table in range(len(world.memo.tables)))


@pytest.mark.parametrize("contract", SINGLES, ids=str)
def test_postgresql_answers_every_question_of_the_world_as_sqlite_does(contract: Contract, tmp_path: Path) -> None:
    """The same questions, the same answers: then both have the same graph."""
    from jobslab.stores.sql import SQLStore

    with open_store(contract, settings=LAB) as store:
        world, _ = searched(store, SMALLEST)
        with SQLStore(WAYS["PostgreSQL"](tmp_path), contract, settings=LAB) as fresh:
            assert world.memo.audit(fresh, share=1) == len(world.memo.facts)


@pytest.mark.long
@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_sqlite_and_postgresql_have_the_same_graph(contract: Contract, tmp_path: Path) -> None:
    from jobslab.stores.sql import SQLStore

    with open_store(contract, settings=LAB) as store:
        world, _ = searched(store, SMALL)
        with SQLStore(WAYS["PostgreSQL"](tmp_path), contract, settings=LAB) as fresh:
            assert world.memo.audit(fresh, share=1) == len(world.memo.facts)


# Which states are alike


@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_one_of_all_states_that_are_alike_gives_the_verdicts_of_all(contract: Contract) -> None:
    """The same answers, in traces of the same length."""
    gives_the_verdicts_of_all(contract, SMALLEST)


@pytest.mark.long
@pytest.mark.parametrize("contract", Contract.all(), ids=str)
def test_and_so_it_does_in_a_larger_world(contract: Contract) -> None:
    gives_the_verdicts_of_all(contract, SMALL)


def gives_the_verdicts_of_all(contract: Contract, bounds: Bounds) -> None:
    with open_store(contract, settings=LAB) as store:
        _, every = searched(store, bounds, alike=False)
        _, one = searched(store, bounds)
        assert verdicts(one) == verdicts(every)
        assert one.states < every.states


WIDER = [
    (Contract(), Bounds(faults=2, late=("progress", "succeed"), sweepers=1, reports=("renew", "progress", "succeed"))),
    (Contract(), SMALL._replace(jobs=2, workers=1, cancels=0, reports=("succeed", "retry"))),
    (Contract().without("attempt_fencing"), Bounds(faults=0)),
    (Contract().without("conditional_updates"), Bounds(faults=0, sweepers=1)),
    (Contract.only("persistence", "leases"), Bounds(sends=2, workers=1, sweepers=1, under_way=1, cancels=0)),
    (Contract().without("persistence"), SMALL._replace(jobs=2, workers=1, sweepers=0, faults=2, cancels=0)),
]


@pytest.mark.parametrize(("contract", "bounds"), WIDER, ids=lambda value: str(value)[:60])
def test_and_so_it_does_with_more_of_each(contract: Contract, bounds: Bounds) -> None:
    gives_the_verdicts_of_all(contract, bounds)


def renamed(world: World, state, workers: list[int], sweepers: list[int]):
    """The same state with its workers and sweepers in another order."""
    table, clients, some_workers, some_sweepers, late, left = state
    shuffled = [
        [world.crowds[crowd][n] for n in order] for crowd, order in ((some_workers, workers), (some_sweepers, sweepers))
    ]
    return table, clients, *(world.crowds(tuple(crowd)) for crowd in shuffled), late, left


@pytest.mark.parametrize(("attempts", "workers"), [(1, 1), (2, 2), (8, 8)])
def test_what_may_be_asked_of_one_job_never_reaches_into_the_bits_of_the_next(attempts: int, workers: int) -> None:
    with open_store(settings=LAB) as store:
        futures = Futures(World(Memo(store), Bounds(attempts=attempts, workers=workers)), str)
        assert report(futures.most) | sweep(futures.most) < 1 << futures.width


def test_the_names_of_workers_and_sweepers_do_not_matter() -> None:
    draw = random.Random(0)
    with open_store(settings=LAB) as store:
        world, system = worlds(store, Bounds())
        state = world.start
        for _ in range(300):
            state = draw.choice(world.enabled(state) or [(None, None, world.start)])[2]
            assert system.canon(renamed(world, state, [1, 0], [1, 0])) == system.canon(state)


def test_a_search_by_what_is_alike_is_as_long_as_it_says_under_true_names() -> None:
    """`check` rebuilds each trace step by step from a real start, and would raise if no run fitted."""
    with open_store(Contract().without("attempt_fencing"), settings=LAB) as store:
        _, result = searched(store)
        trace = result.verdicts["one live claim per job"].trace
        assert len({step.action.n for step in trace.steps if step.action.kind == "worker"}) == 2


# The world


@pytest.mark.parametrize("contract", [Contract(), Contract().without("attempt_fencing")], ids=str)
def test_no_bound_blocks_a_step_by_which_a_job_would_end(contract: Contract) -> None:
    """Where a job is not over, something that is no fault can happen to it, whatever budget is left."""
    with open_store(contract, settings=LAB) as store:
        world, system = worlds(store, Bounds())
        seen, todo = {world.start}, [world.start]
        while todo:
            state = todo.pop()
            steps = world.enabled(state)
            if any(not job.done for job in world.memo.tables[state[0]]):
                assert any(not fault and after != state for _, fault, after, _ in steps)
            new = {system.canon(after) for _, _, after, _ in steps} - seen
            seen |= new
            todo.extend(new)


def test_all_faults_share_one_budget_and_recovery_has_none() -> None:
    with open_store(settings=LAB) as store:
        world, _ = worlds(store, Bounds(faults=0))
        state = world.start
        draw = random.Random(1)
        for _ in range(500):
            steps = world.enabled(state)
            assert not any(action.move.cost for action, _, _, _ in steps)
            state = draw.choice(steps or [(None, None, world.start, None)])[2]


def test_a_report_under_way_is_never_waited_for() -> None:
    """With one too many under way another of them never arrives."""
    with open_store(settings=LAB) as store:
        world, _ = worlds(store, Bounds(under_way=1))
        state = run(world, ["submit", "pick", "claim", "send progress"])
        assert len(world.members(state[4])) == 1
        again = [step for step in world.enabled(state) if step[0].move.verb == "send progress"]
        assert [len(world.members(step[2][4])) for step in again] == [1]


def run(world: World, verbs: list[str]):
    """The state after these steps, each the first of its kind that is possible."""
    state = world.start
    for verb in verbs:
        state = next(after for action, _, after, _ in world.enabled(state) if (action.move.verb or action.kind) == verb)
    return state


def test_a_worker_goes_by_its_own_count_of_its_lease() -> None:
    with open_store(settings=LAB) as store:
        world, _ = worlds(store, Bounds(), alike=False)
        working = ["submit", "pick", "claim"]
        assert counts(world, working) == [1, 0]
        assert counts(world, [*working, "time"]) == [0, 0]
        assert counts(world, [*working, "time", "renew"]) == [1, 0]
        assert counts(world, [*working, "time", "look", "requeue"]) == [0, 0]


def counts(world: World, verbs: list[str]) -> list[int]:
    claims: list[Claim] = world.members(run(world, verbs)[2])
    return [claim.left for claim in claims]


def test_a_restart_ends_the_workers_and_sweepers_of_the_server_and_loses_what_is_not_kept() -> None:
    for contract, kept in ((Contract(), 1), (Contract().without("persistence"), 0)):
        with open_store(contract, settings=LAB) as store:
            world, _ = worlds(store, Bounds())
            state = run(world, ["submit", "pick", "claim", "time", "look", "server"])
            assert len(world.memo.tables[state[0]]) == kept
            assert (state[2], state[3]) == (world.workers, world.sweepers)


def test_an_id_that_anybody_has_heard_of_is_never_given_again() -> None:
    with open_store(Contract().without("persistence"), settings=LAB) as store:
        world, _ = worlds(store, Bounds(jobs=2), alike=False)
        state = run(world, ["submit", "server"])
        assert not world.memo.tables[state[0]]
        state = next(after for action, _, after, _ in world.enabled(state) if action.move.verb == "submit")
        assert [job.id for job in world.memo.tables[state[0]]] == ["job-2"]
        assert [job_of(client) for client in world.members(state[1])] == ["job-1", "job-2"]


def test_what_a_fact_tells_is_what_the_promises_say_of_it() -> None:
    with open_store(Contract().without("conditional_updates"), settings=LAB) as store:
        world, _ = searched(store, SMALL)
        tells = telling((*NAMES, *SOMETIMES))
        told = {name for fact in world.memo.facts for name in tells(fact)}
        assert {"a terminal state is final", "a job may run twice"} <= told
        assert "one job per intent" not in told


def test_every_blurred_column_is_one_of_the_row() -> None:
    from jobslab.job import Job

    assert set(BLURRED) < set(Job._fields)
