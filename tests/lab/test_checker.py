"""The checker gives the answers that are known from elsewhere: published counts, brute force, graphs drawn by hand.

**Two threads and a counter.**  Each thread reads the counter into a local, then writes the local plus one.  All that
can happen, thirteen states in all:

1.      nobody has begun, the counter shows 0;
2, 3.   one thread (either of the two) has read 0;
4, 5.   it has written 1, and the other has not begun;
6, 7.   the other has read 1;
8, 9.   the other has written 2: both are done, and the counter shows it;
10.     after 2 or 3, the other has read 0 as well;
11, 12. one of them has written 1, and the other still holds the 0 it read;
13.     the other has written 1 too: both are done, the counter shows 1, and an update is lost.

**Two-phase commit** (Gray and Lamport, "Consensus on Transaction Commit").  Managers prepare, or abort on their own;
the coordinator commits when it has heard from all, or aborts at any time; messages are never lost and never leave.
"""

import gc
import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobslab.lab import checker
from jobslab.lab.checker import (
    BROKEN,
    HOLDS,
    NEVER_REACHED,
    NOT_EXHAUSTED,
    REACHED,
    Property,
    Result,
    State,
    Step,
    System,
    Trace,
    always,
    check,
    count_schedules,
    ends,
    sometimes,
)

# --- the models -------------------------------------------------------------------------------------------------------


def put(values: tuple, n: int, value: object) -> tuple:
    return (*values[:n], value, *values[n + 1 :])


def threads(count: int) -> System:
    """A state is (counter, threads), a thread is (next instruction, local)."""

    def enabled(state):
        counter, each = state
        for n, (instruction, local) in enumerate(each):
            if instruction == "read":
                yield Step(("read", n), False, (counter, put(each, n, ("write", counter))))
            if instruction == "write":
                yield Step(("write", n), False, (local + 1, put(each, n, ("done", local))))

    return System([(0, (("read", 0),) * count)], enabled)


def by_progress(state):
    """Threads differ by their numbers alone."""
    counter, each = state
    return counter, tuple(sorted(each))


COUNTED = always(
    "no update is lost",
    "The counter shows how many threads are done.",
    state=lambda state: state[0] == sum(instruction == "done" for instruction, _ in state[1]),
)


def two_phase(managers: int) -> System:
    """A state is (managers, coordinator, who is known to be prepared, messages)."""

    def enabled(state):
        each, coordinator, known, messages = state
        undecided = coordinator == "undecided"
        if undecided and all(known):
            yield Step("decide commit", False, (each, "committed", known, messages | {"commit"}))
        if undecided:
            yield Step("decide abort", False, (each, "aborted", known, messages | {"abort"}))
        for n, manager in enumerate(each):
            if undecided and n in messages:
                yield Step(("hear", n), False, (each, coordinator, put(known, n, True), messages))
            if manager == "working":
                yield Step(("prepare", n), False, (put(each, n, "prepared"), coordinator, known, messages | {n}))
                yield Step(("give up", n), False, (put(each, n, "aborted"), coordinator, known, messages))
            if "commit" in messages:
                yield Step(("commit", n), False, (put(each, n, "committed"), coordinator, known, messages))
            if "abort" in messages:
                yield Step(("abort", n), False, (put(each, n, "aborted"), coordinator, known, messages))

    return System([(("working",) * managers, "undecided", (False,) * managers, frozenset())], enabled)


RANK = ["working", "prepared", "committed", "aborted"]


def reorder(state, order):
    """The state in which manager order[0] is called 0, and so on."""
    each, coordinator, known, messages = state
    called = {old: new for new, old in enumerate(order)}
    return (
        tuple(each[n] for n in order),
        coordinator,
        tuple(known[n] for n in order),
        frozenset(called.get(message, message) for message in messages),
    )


def by_all_there_is(state):
    each, _, known, messages = state
    return reorder(state, sorted(range(len(each)), key=lambda n: (RANK.index(each[n]), known[n], n in messages)))


def by_manager_alone(state):
    """Ties keep their names, so one class has several representatives: sound to search with, yet no symmetry."""
    return reorder(state, sorted(range(len(state[0])), key=lambda n: RANK.index(state[0][n])))


AGREED = always(
    "the managers agree",
    "No manager commits while another aborts.",
    state=lambda state: not {"committed", "aborted"} <= set(state[0]),
)
FINAL = always(
    "a decision is final",
    "The coordinator decides once.",
    step=lambda before, step: before[1] in ("undecided", step.state[1]),
)
DECIDED = ends(
    "every manager learns it",
    "Every manager commits or aborts.",
    lambda state: set(state[0]) <= {"committed", "aborted"},
)
ALL_COMMIT = sometimes("all commit", "A commit is possible.", state=lambda state: set(state[0]) == {"committed"})
TWO_PHASE = [AGREED, FINAL, DECIDED, ALL_COMMIT]


def drawn(start: str, *arrows: str) -> System:
    """A system from arrows: "a -> b", or "a ~> b" where the step is a fault.  Its action is the arrow."""
    steps: dict[str, list[Step]] = {}
    for arrow in arrows:
        before, kind, after = arrow.split()
        steps.setdefault(before, []).append(Step(arrow, kind == "~>", after))
    return System(list(start), lambda state: steps.get(state, []))


def never(*bad: str) -> Property:
    return always("never", "It never gets there.", state=lambda state: state not in bad)


def once(*good: str) -> Property:
    return sometimes("once", "It can get there.", state=lambda state: state in good)


GOAL = ends("ends", "It always can get to the goal.", lambda state: state == "goal")


def verdict(system: System, asked: Property, **how):
    return check(system, [asked], **how).verdicts[asked.name]


def reachable(system: System) -> set[State]:
    """By brute force: add what can happen next until nothing is new."""
    known = set(system.init)
    while more := {step.state for state in known for step in system.enabled(state)} - known:
        known |= more
    return known


def is_a_run(system: System, trace: Trace) -> bool:
    before = [trace.start, *(step.state for step in trace.steps)]
    return trace.start in system.init and all(
        step in list(system.enabled(state)) for state, step in zip(before, trace.steps)
    )


def gist(result: Result) -> dict[str, tuple]:
    """What must not depend on names: each answer, and the trace's length and faults."""
    return {
        name: (answer, trace and (len(trace.steps), trace.faults)) for name, (answer, trace) in result.verdicts.items()
    }


# --- known answers ----------------------------------------------------------------------------------------------------


def test_two_threads_have_thirteen_states_and_lose_an_update_in_four_steps():
    result = check(threads(2), [COUNTED])
    assert (result.states, result.depth, result.exhausted) == (13, 4, True)
    answer, trace = result.verdicts["no update is lost"]
    assert answer == BROKEN
    assert trace.actions == (("read", 0), ("read", 1), ("write", 0), ("write", 1))
    assert trace.steps[-1].state[0] == 1


def interleavings(count: int) -> set[tuple[int, ...]]:
    return set(itertools.permutations([n for n in range(count) for _ in range(2)]))


def walk(order: tuple[int, ...]) -> list[State]:
    """The states of one interleaving, computed without the model: thread n reads when first named, then writes."""
    counter, each = 0, [("read", 0)] * (max(order) + 1)
    seen = [(counter, tuple(each))]
    for n in order:
        if each[n][0] == "read":
            each[n] = ("write", counter)
        else:
            counter = each[n][1] + 1
            each[n] = ("done", each[n][1])
        seen.append((counter, tuple(each)))
    return seen


def test_three_threads_have_the_states_of_their_ninety_interleavings():
    runs = [walk(order) for order in interleavings(3)]
    assert len(runs) == 90
    states = {state for run in runs for state in run}
    steps = {step for run in runs for step in itertools.pairwise(run)}
    result = check(threads(3), [COUNTED])
    assert (result.states, result.steps, result.depth) == (len(states), len(steps), 6)


def test_two_threads_that_may_swap_names_have_eight_states():
    assert check(threads(2)._replace(canon=by_progress), []).states == 8


@pytest.mark.parametrize(("managers", "states"), [(3, 288), (5, 8832)])
def test_two_phase_commit_has_the_published_number_of_states_and_keeps_its_promises(managers, states):
    result = check(two_phase(managers), TWO_PHASE)
    assert result.states == states
    assert [each.answer for each in result.verdicts.values()] == [HOLDS, HOLDS, HOLDS, REACHED]
    assert len(result.verdicts["all commit"].trace.steps) == 3 * managers + 1


@pytest.mark.parametrize(("managers", "classes"), [(3, 80), (5, 314)])
def test_a_full_symmetry_leaves_one_state_of_each_class(managers, classes):
    def nameless(state):
        each, coordinator, known, messages = state
        rest = messages - set(range(managers))
        return coordinator, rest, tuple(sorted((each[n], known[n], n in messages) for n in range(managers)))

    assert len({nameless(state) for state in reachable(two_phase(managers))}) == classes
    assert check(two_phase(managers)._replace(canon=by_all_there_is), []).states == classes


def test_the_published_665_is_neither_the_number_of_classes_nor_of_representatives():
    """Stateright publishes 665 for five managers "with symmetry".  It sorts by the managers' states alone, so that a
    class has several representatives, and searches depth first through real states, so that which of them it meets
    depends on the order.  Done that way this model gives 665 too; breadth first through representatives, 1,092."""
    system = two_phase(5)
    met, todo = {by_manager_alone(system.init[0])}, list(system.init)
    while todo:
        for step in system.enabled(todo.pop()):
            if by_manager_alone(step.state) not in met:
                met.add(by_manager_alone(step.state))
                todo.append(step.state)
    assert len(met) == 665
    assert check(system._replace(canon=by_manager_alone), []).states == 1092


# --- always, sometimes ------------------------------------------------------------------------------------------------


def test_a_property_of_steps_sees_what_no_state_shows():
    system = drawn("a", "a -> done", "done -> a")
    reopened = always("final", "Done stays done.", step=lambda before, step: before != "done" or step.state == "done")
    answer, trace = verdict(system, reopened)
    assert (answer, trace.actions) == (BROKEN, ("a -> done", "done -> a"))


def test_a_property_of_steps_is_told_action_fault_and_info():
    system = System(["a"], lambda state: [Step("act", True, "b", "the info")] if state == "a" else [])
    told = []
    check(system, [always("told", "It is told.", step=lambda before, step: told.append((before, step)) or True)])
    assert told == [("a", ("act", True, "b", "the info"))]


def test_a_property_of_states_and_steps_is_broken_by_either():
    both = always("both", "Neither.", state=lambda s: s != "c", step=lambda before, step: step.action != "a -> b")
    assert verdict(drawn("a", "a -> b", "b -> c"), both).trace.actions == ("a -> b",)
    assert verdict(drawn("a", "a -> x", "x -> c"), both).trace.actions == ("a -> x", "x -> c")


def test_a_start_may_break_a_property():
    assert verdict(drawn("a", "a -> b"), never("a")) == (BROKEN, Trace("a", ()))


def test_every_start_is_searched_and_the_trace_names_its_own():
    assert verdict(drawn("ab", "b -> c"), never("c")).trace.start == "b"


def test_sometimes_is_reached_by_a_state_or_by_a_step():
    system = drawn("a", "a -> b", "b -> c", "a -> d", "d -> c")
    assert verdict(system, once("c")) == (REACHED, Trace("a", (Step("a -> b", False, "b"), Step("b -> c", False, "c"))))
    by_step = sometimes("once", "That step.", step=lambda before, step: step.action == "d -> c")
    assert verdict(system, by_step).trace.actions == ("a -> d", "d -> c")


def test_sometimes_says_when_it_is_never_reached():
    assert verdict(drawn("a", "a -> b"), once("c")) == (NEVER_REACHED, None)


def test_a_test_may_answer_with_any_truthy_or_falsy_value():
    assert verdict(drawn("a", "a -> b"), always("truthy", "Yes.", state=lambda state: [state])).answer == HOLDS
    assert verdict(drawn("a", "a -> b"), sometimes("falsy", "No.", state=lambda state: [])).answer == NEVER_REACHED
    assert verdict(drawn("a", "a -> b"), always("truthy", "Yes.", step=lambda *_: "yes")).answer == HOLDS
    assert verdict(drawn("a", "a -> b"), sometimes("falsy", "No.", step=lambda *_: None)).answer == NEVER_REACHED


# --- ends -------------------------------------------------------------------------------------------------------------


def test_ends_is_broken_by_a_dead_end_though_only_a_fault_leads_there():
    answer, trace = verdict(drawn("a", "a -> b", "b ~> dead", "b -> goal"), GOAL)
    assert (answer, trace.actions, trace.faults) == (BROKEN, ("a -> b", "b ~> dead"), 1)


def test_ends_is_broken_by_a_loop_that_nothing_leaves():
    answer, trace = verdict(drawn("a", "a -> b", "a -> goal", "b -> c", "c -> b"), GOAL)
    assert (answer, trace.actions) == (BROKEN, ("a -> b",))


def test_ends_holds_for_a_loop_with_a_way_out_since_fairness_takes_it_in_the_end():
    assert verdict(drawn("a", "a -> b", "b -> a", "b -> goal"), GOAL) == (HOLDS, None)


def test_ends_does_not_count_on_a_fault_to_leave_a_loop():
    assert verdict(drawn("a", "a -> b", "b -> a", "b ~> goal"), GOAL) == (BROKEN, Trace("a", ()))


def test_ends_may_pass_through_the_goal_and_leave_it_if_a_way_back_remains():
    assert verdict(drawn("a", "a -> goal", "goal -> a"), GOAL).answer == HOLDS
    assert verdict(drawn("a", "a -> goal", "goal -> dead"), GOAL).trace.actions == ("a -> goal", "goal -> dead")


def test_the_trace_of_ends_has_fewest_faults_among_the_shortest():
    system = drawn("a", "a ~> dead1", "a -> dead2", "a -> goal")
    assert verdict(system, GOAL).trace.actions == ("a -> dead2",)


def test_each_ends_has_its_own_goal():
    other = ends("other", "It can get to b.", lambda state: state == "b")
    verdicts = check(drawn("a", "a -> goal", "a -> b", "b -> goal"), [GOAL, other]).verdicts
    assert [each.answer for each in verdicts.values()] == [HOLDS, BROKEN]


# --- the limit --------------------------------------------------------------------------------------------------------

CHAIN = drawn("a", "a -> b", "b -> c", "c -> d", "d -> goal")


@pytest.mark.parametrize("asked", [never("x"), once("goal"), GOAL], ids=lambda each: each.kind)
@pytest.mark.parametrize("limit", range(5))
def test_under_a_limit_nothing_holds_and_nothing_is_never_reached(asked, limit):
    answer = verdict(CHAIN, asked, limit=limit).answer
    assert answer == (REACHED if asked.kind == "sometimes" and limit == 4 else NOT_EXHAUSTED)


def test_a_limit_that_suffices_changes_nothing():
    for asked in never("x"), once("x"), GOAL:
        assert check(CHAIN, [asked], limit=5) == check(CHAIN, [asked])


def test_the_limit_counts_the_states_that_are_opened():
    opened = []
    system = System(["a"], lambda state: opened.append(state) or CHAIN.enabled(state))
    result = check(system, [], limit=3)
    assert opened == ["a", "b", "c"]
    assert (result.states, result.steps, result.exhausted) == (4, 3, False)


def test_what_was_broken_before_the_limit_stays_broken():
    assert verdict(CHAIN, never("c"), limit=2) == (BROKEN, verdict(CHAIN, never("c")).trace)
    no_step = always("no step to c", "Never.", step=lambda before, step: step.state != "c")
    assert verdict(CHAIN, no_step, limit=2).answer == BROKEN


def test_under_a_limit_ends_is_broken_only_by_what_is_certainly_lost():
    system = drawn("a", "a -> dead", "a -> b", "b -> c", "c -> goal")
    assert verdict(system, GOAL, limit=1) == (NOT_EXHAUSTED, None)
    assert verdict(system, GOAL, limit=2).trace.actions == ("a -> dead",)
    assert verdict(drawn("a", "a -> b", "b -> c", "c -> goal"), GOAL, limit=2) == (NOT_EXHAUSTED, None)


def test_no_state_is_opened_beyond_the_limit_however_many_are_found():
    opened = []
    wide = drawn("a", "a -> b", "a -> c", "b -> d", "b -> e", "b -> f")
    check(System(["a"], lambda state: opened.append(state) or wide.enabled(state)), [], limit=2)
    assert opened == ["a", "b"]


def test_a_level_cut_short_by_the_limit_still_gives_shortest_traces():
    system = drawn("a", "a -> b", "a ~> c", "b -> c")
    assert verdict(system, never("c"), limit=2).trace.actions == ("a ~> c",)


# --- traces -----------------------------------------------------------------------------------------------------------


NO_STEP_TO_BAD = always("step", "Never.", step=lambda before, step: not step.state.startswith("bad"))


def test_among_shortest_traces_the_one_with_fewest_faults_wins():
    late = drawn("a", "a ~> b", "a -> c", "b -> d", "c -> d", "d -> bad")
    assert verdict(late, never("bad")).trace.actions == ("a -> c", "c -> d", "d -> bad")
    two_ends = drawn("a", "a ~> bad1", "a -> bad2")
    assert verdict(two_ends, never("bad1", "bad2")).trace.actions == ("a -> bad2",)
    assert verdict(two_ends, NO_STEP_TO_BAD).trace.actions == ("a -> bad2",)


@pytest.mark.parametrize("asked", [never("bad", "bad2"), NO_STEP_TO_BAD], ids=["state", "step"])
def test_a_shorter_trace_wins_over_one_with_fewer_faults(asked):
    assert verdict(drawn("a", "a ~> bad", "a -> b", "b -> bad"), asked).trace.actions == ("a ~> bad",)
    assert verdict(drawn("a", "a ~> bad", "a -> b", "b -> bad2"), asked).trace.actions == ("a ~> bad",)


def test_two_steps_to_one_state_are_told_apart():
    twins = System(["a"], lambda state: [Step("slip", True, "b"), Step("go", False, "b")] if state == "a" else [])
    assert verdict(twins, never("b")).trace.actions == ("go",)
    only_slips = always("no slip", "Nobody slips.", step=lambda before, step: step.action != "slip")
    assert verdict(twins, only_slips).trace.actions == ("slip",)


def test_among_equals_the_step_listed_first_wins():
    three = drawn("a", "a -> bad1", "a ~> bad2", "a -> bad3", "a -> goal")
    for asked in never("bad1", "bad2", "bad3"), NO_STEP_TO_BAD, GOAL:
        assert verdict(three, asked).trace.actions == ("a -> bad1",)
    assert verdict(drawn("a", "a -> c", "a -> b", "b -> d", "c -> d"), never("d")).trace.actions == ("a -> c", "c -> d")
    assert verdict(drawn("a", "a -> b", "a -> c", "b -> d", "c -> d"), never("d")).trace.actions == ("a -> b", "b -> d")


def test_with_a_symmetry_the_trace_is_a_run_under_real_names():
    alike = [
        (threads(3)._replace(canon=by_progress), COUNTED),
        (two_phase(3)._replace(canon=by_all_there_is), ALL_COMMIT),
    ]
    for system, asked in alike:
        trace = verdict(system, asked).trace
        assert is_a_run(system, trace)
        assert asked.seen_in(trace.steps[-1].state)


def test_under_a_symmetry_a_property_of_steps_sees_both_states_under_the_same_names():
    alone = always(
        "one at a time",
        "A step moves one thread.",
        step=lambda before, step: sum(old != new for old, new in zip(before[1], step.state[1])) == 1,
    )
    assert verdict(threads(3)._replace(canon=by_progress), alone).answer == HOLDS


def test_starts_that_differ_by_names_alone_are_one_and_the_trace_has_the_first():
    swap = System([(1, 0), (0, 1)], lambda state: [Step("both", False, (1, 1))], lambda state: tuple(sorted(state)))
    assert check(swap, []).states == 2
    assert verdict(swap, never((1, 1))).trace.start == (1, 0)


def test_where_the_symmetry_leaves_it_open_the_first_that_can_act_does():
    """Two workers may take one tool, twice in all; a state is (the tool's holders, how often it can be taken)."""

    def enabled(state):
        holders, left = state
        for n, holds in enumerate(holders):
            if holds:
                yield Step(("drop", n), False, (put(holders, n, False), left))
            if left and not any(holders):
                yield Step(("take", n), False, (put(holders, n, True), left - 1))

    system = System([((False, False), 2)], enabled, lambda state: (tuple(sorted(state[0])), state[1]))
    worn = never(((False, False), 0))
    assert [n for _, n in verdict(system, worn).trace.actions] == [0, 0, 0, 0]


def test_a_canon_that_joins_states_with_different_futures_is_refused():
    system = drawn("a", "a -> c", "a -> b", "b -> bad")._replace(canon=lambda state: "b" if state == "c" else state)
    with pytest.raises(ValueError, match="no run leads from 'c' to 'bad'"):
        verdict(system, never("bad"))


def test_a_property_that_cares_for_names_is_refused_under_a_symmetry():
    system = drawn("a", "a -> b")._replace(canon=lambda state: "renamed" if state == "b" else state)
    with pytest.raises(ValueError, match="`canon` or a property cares for names"):
        verdict(system, never("renamed"))


# --- against brute force ----------------------------------------------------------------------------------------------

unhurried = settings(deadline=None)  # a busy machine is no failure
ARROWS = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 4)), max_size=12)
BAD = st.sets(st.integers(0, 4), max_size=3)


def graph_of(arrows) -> System:
    return System([0], lambda state: [Step(arrow, arrow[1], arrow[2]) for arrow in arrows if arrow[0] == state])


def walks(system: System, length: int):
    """Every run of so many steps, or shorter where nothing can follow, one by one."""

    def longer(steps, state, left):
        following = list(system.enabled(state)) if left else []
        if not following:
            yield steps
        for step in following:
            yield from longer([*steps, (state, step)], step.state, left - 1)

    for start in system.init:
        yield from longer([], start, length)


def first_and_fewest(system: System, asked: Property) -> tuple[int, int] | None:
    """The length of the shortest runs to a sight and the fewest faults among them, by walking on without a memory."""
    layer = {(asked.seen_in(start), 0, start) for start in system.init}
    for length in range(9):
        found = [faults for seen, faults, _ in layer if seen]
        if found:
            return length, min(found)
        layer = {
            (asked.seen_at(state, step), faults + step.fault, step.state)
            for _, faults, state in layer
            for step in system.enabled(state)
        }
    return None


@unhurried
@given(ARROWS, BAD, st.sampled_from(["state", "step"]), st.sampled_from([always, sometimes]))
def test_traces_are_shortest_and_of_fewest_faults(arrows, bad, where, kind):
    sight = {
        "state": lambda state: state in bad,
        "step": lambda before, step: before in bad and step.state in bad,
    }[where]
    test = sight if kind is sometimes else lambda *args: not sight(*args)
    system, asked = graph_of(arrows), kind("asked", "Any.", **{where: test})
    answer, trace = verdict(system, asked)
    assert answer in ((BROKEN, REACHED) if trace else (HOLDS, NEVER_REACHED))
    assert (trace and (len(trace.steps), trace.faults)) == first_and_fewest(system, asked)
    assert trace is None or is_a_run(system, trace)


@unhurried
@given(ARROWS, BAD)
def test_ends_agrees_with_asking_every_state_on_its_own(arrows, goals):
    system = graph_of(arrows)
    patient = graph_of([arrow for arrow in arrows if not arrow[1]])
    lost = {state for state in reachable(system) if not reachable(patient._replace(init=[state])) & goals}
    answer, trace = verdict(system, ends("ends", "Some goal.", lambda state: state in goals))
    assert answer == (BROKEN if lost else HOLDS)
    is_lost = sometimes("lost", "A lost state.", state=lambda state: state in lost)
    assert (trace and (len(trace.steps), trace.faults)) == first_and_fewest(system, is_lost)
    assert trace is None or (is_a_run(system, trace) and (trace.steps[-1].state if trace.steps else 0) in lost)


@unhurried
@given(ARROWS, BAD, st.integers(0, 6))
def test_a_limit_never_makes_a_wrong_verdict(arrows, bad, limit):
    system = graph_of(arrows)
    asked = [
        always("always", "Any.", state=lambda state: state not in bad),
        sometimes("sometimes", "Any.", step=lambda before, step: step.state in bad),
        ends("ends", "Any.", lambda state: state in bad),
    ]
    whole, part = check(system, asked), check(system, asked, limit=limit)
    assert part.exhausted == (whole.states <= limit)
    for name, (answer, trace) in part.verdicts.items():
        assert answer == whole.verdicts[name].answer or (answer == NOT_EXHAUSTED and not part.exhausted)
        if trace and name != "ends":
            assert len(trace.steps) == len(whole.verdicts[name].trace.steps)


LOCAL = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans(), st.integers(0, 2), st.integers(0, 1)), max_size=8
)


@unhurried
@given(LOCAL, st.integers(0, 2), st.integers(0, 1))
def test_a_symmetric_search_gives_the_same_verdicts(moves, place, shared):
    """Three alike that each stand somewhere and share a bit; `moves` says from where to where, and what of the bit."""

    def enabled(state):
        places, bit = state
        for n in range(3):
            for move in moves:
                if (places[n], bit) == move[:2]:
                    yield Step((n, move), move[2], (put(places, n, move[3]), move[4]))

    system = System([((0, 0, 0), 0)], enabled)
    alike = system._replace(canon=lambda state: (tuple(sorted(state[0])), state[1]))
    asked = [
        always("apart", "No two stand there.", state=lambda state: state[0].count(place) < 2 or state[1] != shared),
        always("kept", "Nobody comes.", step=lambda before, step: before[0].count(place) >= step.state[0].count(place)),
        sometimes("gathered", "All stand there.", state=lambda state: state[0] == (place,) * 3),
        ends("home", "All can get there.", lambda state: state[0].count(place) == 3),
    ]
    plain, reduced = check(system, asked), check(alike, asked)
    assert gist(reduced) == gist(plain)
    assert reduced.states == len({alike.canon(state) for state in reachable(system)})
    assert reduced.depth == plain.depth
    assert all(is_a_run(system, trace) for _, trace in reduced.verdicts.values() if trace)


# --- counting schedules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "fails", "total"), [(1, 0, 1), (2, 4, 6), (3, 84, 90)])
def test_only_the_schedules_where_threads_take_turns_lose_no_update(count, fails, total):
    lost = sum(walk(order)[-1][0] < count for order in interleavings(count))
    assert count_schedules(threads(count), COUNTED, 2 * count) == (lost, total) == (fails, total)


def test_a_schedule_is_as_long_as_asked_or_ends_where_nothing_can_follow():
    system = drawn("a", "a -> b", "a -> c", "c -> a")
    assert count_schedules(system, once("c"), 0) == (0, 1)
    assert count_schedules(system, once("c"), 1) == (1, 2)
    assert count_schedules(system, once("c"), 3) == (2, 3)


def test_counts_are_exact_where_floats_are_not():
    coin = System([0], lambda state: [Step("heads", False, 0), Step("tails", False, 1)])
    assert count_schedules(coin, once(1), 100) == (2**100 - 1, 2**100)


def test_a_symmetry_makes_no_schedules_one():
    assert count_schedules(threads(3)._replace(canon=by_progress), COUNTED, 6) == (84, 90)


@unhurried
@given(ARROWS, BAD, st.integers(0, 4))
def test_schedules_are_counted_as_if_walked_one_by_one(arrows, bad, length):
    asked = always("never", "Any.", state=lambda state: state not in bad, step=lambda b, s: s.action != (1, True, 2))
    system = graph_of(arrows)
    runs = list(walks(system, length))
    fails = sum(0 in bad or any(asked.seen_at(before, step) for before, step in run) for run in runs)
    assert count_schedules(system, asked, length) == (fails, len(runs))


def test_ends_cannot_be_counted():
    with pytest.raises(ValueError, match="'ends' is about what can still be reached"):
        count_schedules(CHAIN, GOAL, 2)


# --- manners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_rests_during_the_search_and_is_left_as_it_was(was_on):
    during = []
    system = System(["a"], lambda state: during.append(gc.isenabled()) or [])
    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        check(system, [])
        assert (during, gc.isenabled()) == ([False], was_on)
        with pytest.raises(ZeroDivisionError):
            check(System(["a"], lambda state: 1 // 0), [])
        assert gc.isenabled() == was_on
    finally:
        (gc.enable if before else gc.disable)()


def test_progress_is_told_seldom_how_many_states_are_known(monkeypatch):
    monkeypatch.setattr(checker, "SELDOM", 100)
    told: list[int] = []
    check(two_phase(3), [], progress=told.append)
    assert len(told) == 2
    assert 100 <= told[0] <= told[1] <= 288


def test_unclear_questions_are_refused():
    with pytest.raises(ValueError, match="no state to start in"):
        check(System([], lambda state: []), [])
    with pytest.raises(ValueError, match="given twice: never, once, never"):
        check(CHAIN, [never("a"), once("b"), never("c")])
    with pytest.raises(ValueError, match="'idle' tests nothing"):
        check(CHAIN, [always("idle", "Nothing.")])


def findings() -> str:
    """All that the checker says of systems whose states are hashed by their strings."""
    system = two_phase(3)
    result = check(system, [*TWO_PHASE, never(), once("x")], limit=200)
    short = [[step.action for step in trace.steps] for _, trace in result.verdicts.values() if trace]
    alike = check(system._replace(canon=by_all_there_is), TWO_PHASE)
    long = [[step.action for step in trace.steps] for _, trace in alike.verdicts.values() if trace]
    start = verdict(System(["left", "middle", "right"], lambda state: [Step("fall", True, "down")]), never("down"))
    return repr((result[:4], gist(result), short, alike[:4], gist(alike), long, start))


def test_every_run_says_the_same_whatever_the_hash_seed():
    said = {
        subprocess.run(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "2")
    }
    assert said == {findings()}


if __name__ == "__main__":
    print(findings())


def test_a_search_for_the_first_that_breaks_goes_on_past_what_is_only_possible_and_ends_when_all_is_seen() -> None:
    counting = System([0], lambda n: [("up", False, n + 1, None)] if n < 9 else [])
    reached, low = sometimes("reached", "", state=lambda n: n == 2), always("low", "", state=lambda n: n < 5)
    both = check(counting, [reached, low], first=True)
    assert [both.verdicts[name].answer for name in ("reached", "low")] == [REACHED, BROKEN]
    assert (both.states, both.exhausted) == (7, False)
    assert check(counting, [reached], first=True).states == 4
    assert check(counting, [reached, always("held", "", state=lambda n: n < 10)], first=True).exhausted
