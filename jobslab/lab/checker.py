"""What can happen, in every order, and does any of it break a promise?

A system says where it starts and what can happen next; `check` opens every state that can be reached, breadth first,
so that the first sight of anything ends a shortest run.  Nothing here knows of jobs: states and actions are hashable
values of the caller's.  Each property waits for one sight: *always* is broken by it, *sometimes* is reached by it, and
*ends* is broken by the sight of a state that has no way left to a goal.
"""

import gc
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Any  # hashable; equal values are one state
Numbers: TypeAlias = "array[int]"  # quoted: Python 3.11 cannot subscript it

HOLDS, BROKEN, REACHED, NEVER_REACHED, NOT_EXHAUSTED = "holds", "broken", "reached", "never reached", "not exhausted"
SEEN = {"always": BROKEN, "ends": BROKEN, "sometimes": REACHED}
UNSEEN = {"always": HOLDS, "ends": HOLDS, "sometimes": NEVER_REACHED}
SELDOM = 50_000  # opened states from one call of `progress` to the next


class Step(NamedTuple):
    """One thing that can happen, and the state it leads to."""

    action: Any
    fault: bool  # something goes wrong: it may happen, and nobody may count on it
    state: State
    info: Any = None  # what a property needs to know and the states do not tell


StateTest: TypeAlias = Callable[[State], bool]
StepTest: TypeAlias = Callable[[State, Step], bool]  # the state before, and the step
InfoTest: TypeAlias = Callable[[Any], bool]  # the info of a step that has one
Progress: TypeAlias = Callable[[int], None]


class System(NamedTuple):
    """The states it may start in, what can happen next, and which states differ by names alone.

    `enabled` lists the same steps in the same order whenever it is asked; among equals the one listed first wins.  It
    may give plain tuples of the fields of a Step, which cost less.
    `canon` gives one and the same of them for all states that are renamings of each other.  It is sound if a renamed
    state has the renamed steps, and if no property cares for the names.
    """

    init: Sequence[State]
    enabled: Callable[[State], Iterable[tuple[Any, bool, State, Any]]]
    canon: Callable[[State], State] | None = None

    def steps(self, state: State) -> list[Step]:
        return [Step(*step) for step in self.enabled(state)]

    def representative(self, state: State) -> State:
        return self.canon(state) if self.canon else state


class Property(NamedTuple):
    """A promise with a name and a sentence; `always`, `sometimes` and `ends` make one."""

    kind: Literal["always", "sometimes", "ends"]
    name: str
    sentence: str
    state: StateTest | None = None
    step: StepTest | None = None
    info: InfoTest | None = None

    @property
    def usual(self) -> bool:
        """The answer of a test that is no sight: if `(not test(...)) is usual`, something is seen."""
        return self.kind == "always"

    def seen_in(self, state: State) -> bool:
        return self.state is not None and (not self.state(state)) is self.usual

    def seen_at(self, before: State, step: Step) -> bool:
        """Whether the step, or the state it leads to, is a sight."""
        shown = self.step is not None and (not self.step(before, step)) is self.usual
        return shown or self.told_by(step.info) or self.seen_in(step.state)

    def told_by(self, info: Any) -> bool:
        return self.info is not None and info is not None and (not self.info(info)) is self.usual


def always(
    name: str,
    sentence: str,
    *,
    state: StateTest | None = None,
    step: StepTest | None = None,
    info: InfoTest | None = None,
) -> Property:
    """Every reachable state satisfies `state`, every step out of one satisfies `step(before, step)`, and whatever a
    step tells as its info satisfies `info`.

    Ask it of steps where a step does the harm: a finished job that runs again looks like any running job.  Where the
    info tells all there is to know, ask it of that: equal infos are asked about once.
    """
    return Property("always", name, sentence, state, step, info)


def sometimes(
    name: str,
    sentence: str,
    *,
    state: StateTest | None = None,
    step: StepTest | None = None,
    info: InfoTest | None = None,
) -> Property:
    """Some reachable state, step, or info of a step satisfies it: the guard against a system that is safe since nothing
    happens."""
    return Property("sometimes", name, sentence, state, step, info)


def ends(name: str, sentence: str, goal: StateTest) -> Property:
    """From every reachable state a goal can still be reached by steps that are no faults.

    So every run reaches a goal if faults stop one day and no step is passed over for ever: a step that is possible
    again and again is taken in the end (strong fairness).  A loop with a way out therefore passes; a dead end does
    not, nor does a loop that only a fault leaves.
    """
    return Property("ends", name, sentence, goal)


@dataclass(frozen=True)
class Trace:
    """A run: the state it starts in, and its steps."""

    start: State
    steps: tuple[Step, ...]

    @property
    def actions(self) -> tuple[Any, ...]:
        return tuple(step.action for step in self.steps)

    @property
    def faults(self) -> int:
        return sum(step.fault for step in self.steps)


class Verdict(NamedTuple):
    """HOLDS or BROKEN, REACHED or NEVER_REACHED, or NOT_EXHAUSTED; and the trace to the sight, if there was one."""

    answer: str
    trace: Trace | None = None


class Result(NamedTuple):
    """How much there was to see, and the verdict on each property under its name."""

    states: int
    steps: int
    depth: int  # steps from a start to the farthest state
    exhausted: bool
    verdicts: dict[str, Verdict]


def check(
    system: System,
    properties: Sequence[Property],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
    first: bool = False,
) -> Result:
    """Looks at every reachable state and judges each property, with a shortest trace to what was seen.

    Among shortest traces one with the fewest faults is taken, then the one found first.  At most `limit` states are
    opened.  If others are left, what was not seen is NOT_EXHAUSTED; what was seen stays seen, though the trace of an
    *ends* need not be the shortest then, nor the faults of any the fewest.  `progress` is told now and then how many
    states are known.
    `first`: look no further when an *always* is broken, or when everything that was asked for is seen.

    Raises ValueError if there is no start, if two properties share a name, or if one tests nothing.
    """
    refuse_the_unclear(system, properties)
    with gc_paused():
        graph = explore(system, properties, limit, progress, first)
        look_for_dead_ends(graph, properties)
        verdicts = {each.name: judge(system, graph, each) for each in properties}
    return Result(len(graph.states), graph.steps, len(graph.levels) - 1, graph.exhausted, verdicts)


def refuse_the_unclear(system: System, properties: Sequence[Property]) -> None:
    if not system.init:
        raise ValueError("the system has no state to start in: give `init` at least one")
    names = [each.name for each in properties]
    if len(set(names)) < len(names):
        raise ValueError(f"each property needs a name of its own, and one of these is given twice: {', '.join(names)}")
    for each in properties:
        if each.state is None and each.step is None and each.info is None:
            raise ValueError(f"the property {each.name!r} tests nothing: give it `state`, `step` or `info`")


@contextmanager
def gc_paused() -> Iterator[None]:
    """Python's cycle collector would walk millions of live states again and again, and find nothing to free."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# --- forwards: what can be reached ------------------------------------------------------------------------------------


class Sight(NamedTuple):
    """Where a property was first seen: in the state numbered `at`, or at a step from there to the state in `beyond`."""

    faults: int
    at: int
    beyond: tuple[State, ...] = ()


@dataclass
class Graph:
    """What the search knows.  A state is its number, in order of discovery; a column is an array, to be lean."""

    states: list[State]
    parent: Numbers  # -1 for a start
    faults: Numbers  # the fewest on a shortest way here
    levels: list[range] = field(default_factory=list)  # the states of each depth
    source: Numbers = field(default_factory=lambda: array("I"))  # with `target`: the steps that are no faults
    target: Numbers = field(default_factory=lambda: array("I"))
    sights: dict[str, Sight] = field(default_factory=dict)  # by the property's name
    steps: int = 0
    opened: int = 0

    @property
    def exhausted(self) -> bool:
        return self.opened == len(self.states)

    def note(self, name: str, sight: Sight) -> None:
        """Keeps the sight with the fewest faults; what is noted under one name all lies equally deep."""
        if name not in self.sights or sight.faults < self.sights[name].faults:
            self.sights[name] = sight

    def note_the_best(self, name: str, seen: Sequence[int]) -> None:
        """Notes one of these states, all of one level, if there are any."""
        if seen:
            at = min(seen, key=self.faults.__getitem__)
            self.note(name, Sight(self.faults[at], at))


def explore(
    system: System, properties: Sequence[Property], limit: int | None, progress: Progress | None, first: bool
) -> Graph:
    """The graph of all that can be reached, level by level, with the first sight of each *always* and *sometimes*."""
    states = list(dict.fromkeys(map(system.representative, system.init)))
    number = {state: n for n, state in enumerate(states)}
    graph = Graph(states, array("i", [-1]) * len(states), array("i", [0]) * len(states))
    unseen = [each for each in properties if each.kind != "ends"]
    level = range(len(states))
    while level and not (first and settled(graph, properties)):
        graph.levels.append(level)
        for each in unseen:
            look_through(graph, level, each)
        unseen = [each for each in unseen if each.name not in graph.sights]
        to_open = level if limit is None else level[: max(0, limit - level.start)]
        expand(system, graph, number, to_open, unseen, progress)
        level = range(level.stop, len(states))
    return graph


def settled(graph: Graph, properties: Sequence[Property]) -> bool:
    """Whether a promise is broken, or everything that was asked for is seen."""
    return all(each.name in graph.sights for each in properties) or any(
        each.kind == "always" and each.name in graph.sights for each in properties
    )


def look_through(graph: Graph, level: range, asked: Property) -> None:
    """Tests the states of a level once it is complete: only then is it known by how few faults each is reached."""
    test, usual, states = asked.state, asked.usual, graph.states
    if test:
        graph.note_the_best(asked.name, [n for n in level if (not test(states[n])) is usual])


def expand(
    system: System,
    graph: Graph,
    number: dict[State, int],
    to_open: range,
    unseen: Sequence[Property],
    progress: Progress | None,
) -> None:
    """Takes every step out of these states.  The one hot loop: hence local names, and calls of the caller's alone."""
    enabled, canon, states = system.enabled, system.canon, graph.states
    parent, faults, source, target = graph.parent, graph.faults, graph.source, graph.target
    tests = [(each.name, each.step, each.usual) for each in unseen if each.step]
    told: dict[Any, list[str]] = {}  # an info -> the properties to which it is a sight
    fresh = size = len(states)
    for n in to_open:
        before, faults_before = states[n], faults[n]
        for step in enabled(before):
            _, fault, after, info = step
            graph.steps += 1
            if canon and after != before:
                after = canon(after)
            for name, test, usual in tests:
                if (not test(before, Step(*step))) is usual:
                    graph.note(name, Sight(faults_before + fault, n, (after,)))
            if info is not None:
                if info not in told:
                    told[info] = [each.name for each in unseen if each.told_by(info)]
                for name in told[info]:
                    graph.note(name, Sight(faults_before + fault, n, (after,)))
            k = number.setdefault(after, size)
            if k == size:
                size += 1
                states.append(after)
                parent.append(n)
                faults.append(faults_before + fault)
            elif k >= fresh and faults_before + fault < faults[k]:
                parent[k], faults[k] = n, faults_before + fault
            if not fault:
                source.append(n)
                target.append(k)
        graph.opened += 1
        if progress and graph.opened % SELDOM == 0:
            progress(size)


# --- backwards: which states have no way left to a goal ---------------------------------------------------------------


def look_for_dead_ends(graph: Graph, properties: Sequence[Property]) -> None:
    """Notes, for each *ends*, a state with no way left to a goal: of the least depth, then of the fewest faults."""
    for name, goal in [(each.name, each.state) for each in properties if each.kind == "ends" and each.state]:
        saved = can_reach(graph, goal)
        lost = ([n for n in level if not saved[n]] for level in graph.levels)
        graph.note_the_best(name, next(filter(None, lost), []))


def sort_by_target(graph: Graph) -> tuple[Numbers, Numbers]:
    """A counting sort of the steps that are no faults: those into n come from sources[begin[n] : begin[n + 1]]."""
    begin = array("I", [0]) * (len(graph.states) + 2)
    for after in graph.target:
        begin[after + 2] += 1
    begin = array("I", accumulate(begin))
    sources = array("I", [0]) * len(graph.target)
    for before, after in zip(graph.source, graph.target):
        sources[begin[after + 1]] = before  # begin[n + 1] moves from where n begins to where it ends
        begin[after + 1] += 1
    return begin, sources


def can_reach(graph: Graph, goal: StateTest) -> bytearray:
    """Marks the states from which a goal can be reached.  A state that was not opened may lead anywhere: marked too."""
    begin, sources = sort_by_target(graph)
    saved = bytearray(n >= graph.opened or bool(goal(state)) for n, state in enumerate(graph.states))
    todo = [n for n, mark in enumerate(saved) if mark]
    while todo:
        n = todo.pop()
        for before in sources[begin[n] : begin[n + 1]]:
            if not saved[before]:
                saved[before] = True
                todo.append(before)
    return saved


# --- from a sight to a run --------------------------------------------------------------------------------------------


def judge(system: System, graph: Graph, asked: Property) -> Verdict:
    sight = graph.sights.get(asked.name)
    if sight is None:
        return Verdict(UNSEEN[asked.kind] if graph.exhausted else NOT_EXHAUSTED)
    shows = None if asked.kind == "ends" else asked.seen_at
    return Verdict(SEEN[asked.kind], replay(system, [*way_to(graph, sight.at), *sight.beyond], shows))


def way_to(graph: Graph, n: int) -> list[State]:
    way = []
    while n >= 0:
        way.append(graph.states[n])
        n = graph.parent[n]
    return way[::-1]


def replay(system: System, way: Sequence[State], shows: StepTest | None = None) -> Trace:
    """The run from a real start that passes through these representatives, and whose last step `shows` its point.

    The representatives alone are no run: the worker who is A in one may be B in the next.  Raises ValueError if no
    run fits; then `canon` is no symmetry, or `enabled` does not answer twice alike.
    """
    state = start = next(each for each in system.init if system.representative(each) == way[0])
    taken: list[Step] = []
    for after in way[1:]:
        fits = [step for step in system.steps(state) if system.representative(step.state) == after]
        if shows and len(taken) == len(way) - 2:
            fits = [step for step in fits if shows(state, step)]
        if not fits:
            raise ValueError(f"no run leads from {state!r} to {after!r}: `canon` or a property cares for names")
        taken.append(min(fits, key=lambda step: step.fault))
        state = taken[-1].state
    return Trace(start, tuple(taken))


# --- how often --------------------------------------------------------------------------------------------------------


class Count(NamedTuple):
    """Of `total` schedules, `seen` break the *always* (or reach the *sometimes*) that was asked for."""

    seen: int
    total: int


def count_schedules(system: System, asked: Property, length: int) -> Count:
    """How many schedules break an *always* or reach a *sometimes*: "fails in k of n schedules".

    A schedule is a run from a start of exactly `length` steps, or a shorter one after which nothing can happen; two
    differ if they take different steps, be it in names alone.  So the number is finite in a system with loops too, and
    `canon` makes it quicker to find, not smaller.  Runs are not walked but counted, all those at once that are in one
    state and have seen it, or have not.

    Raises ValueError for an *ends*: a schedule that stops early is no proof against it.
    """
    if asked.kind == "ends":
        raise ValueError(f"{asked.name!r} is about what can still be reached; schedules count for the other kinds only")
    runs = Counter((system.representative(state), asked.seen_in(state)) for state in system.init)
    finished = Counter[bool]()
    for _ in range(length):
        longer: Counter[tuple[State, bool]] = Counter()
        for (before, seen), times in runs.items():
            steps = system.steps(before)
            for step in steps:
                longer[system.representative(step.state), seen or asked.seen_at(before, step)] += times
            if not steps:
                finished[seen] += times
        runs = longer
    for (_, seen), times in runs.items():
        finished[seen] += times
    return Count(finished[True], finished.total())
