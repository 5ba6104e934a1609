"""What does each clause buy?  Every order of events within the bounds: under one contract, under all 32, or with a
rule replaced by a predicate of your own.

    explore(Contract().without("leases"))                          one contract
    explore(rules={"unfinished": "state <> 'FAILED'"}).answer      a shortest schedule that breaks a promise, as text
    table(matrix())                                                all 32, as a DataFrame
    enough(matrix())                                               which flags each promise needs
"""

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import accumulate, chain, combinations
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.contract import FLAGS, GUARDED, RULES, STATEMENTS, Contract, why
from jobslab.errors import JobslabError, StoreError
from jobslab.lab import checker
from jobslab.lab.alike import Alike
from jobslab.lab.checker import BROKEN, HOLDS, NOT_EXHAUSTED, Count
from jobslab.lab.memo import Memo
from jobslab.lab.properties import ENDS, FACTS, LIVE, NAMES, SOMETIMES, properties, telling
from jobslab.lab.schedule import text
from jobslab.lab.trace import Happening, schedule, tell
from jobslab.lab.world import NEWS, Bounds, World
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from jobslab.stores.sql import SQLStore
from jobslab.stores.sqlite import SQLite

if TYPE_CHECKING:
    import pandas as pd

MOST = 1_000_000  # states opened before a search is given up as not exhausted: some 500 MiB
HOLDS_HERE = "holds at these bounds"


class UnknownProperty(JobslabError):
    """No promise has this name."""


class BadBounds(JobslabError):
    """Bounds that can't be read, or under which nothing could happen."""


class BadRule(JobslabError):
    """A predicate that can't stand in for a rule; its sentence says what the database says."""


class NoSuchSchedule(JobslabError):
    """No schedule breaks this promise, or none of a given length can."""


class Finding(NamedTuple):
    """What was found about a property, in the checker's words, and a shortest run to it if it was seen."""

    answer: str
    trace: tuple[Happening, ...] = ()

    @property
    def schedule(self) -> str:
        """The run as a schedule, as text."""
        return text(schedule(self.trace))

    def __str__(self) -> str:
        return f"{self.answer} in {len(self.trace)} steps" if self.trace else self.answer


class Exploration(NamedTuple):
    """All that was found under one contract."""

    contract: Contract
    bounds: Bounds
    states: int
    steps: int
    exhausted: bool
    findings: dict[str, Finding]

    @property
    def broken(self) -> dict[str, Finding]:
        """The promises that break, with their runs, shortest first."""
        broken = [(name, found) for name, found in self.findings.items() if found.answer == BROKEN]
        return dict(sorted(broken, key=lambda item: len(item[1].trace)))

    @property
    def answer(self) -> str:
        """The shortest schedule that breaks a promise, as text; or that all hold, or that not all was seen."""
        for found in self.broken.values():
            return found.schedule
        return HOLDS_HERE if self.exhausted else f"{NOT_EXHAUSTED}: nothing broke in {self.states} states"


# One contract


def explore(
    contract: Contract = Contract(),
    bounds: Bounds = Bounds(),
    *,
    names: Sequence[str] = (*NAMES, *SOMETIMES),
    rules: Mapping[str, str] | None = None,
    limit: int | None = MOST,
    first: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Everything that can happen under this contract, judged by the promises with these names.

    `rules` are predicates by their slots, to be tried instead of the contract's own.  `first`: stop where the first
    promise breaks; then nothing is known of the others.  `progress` is told now and then how many states are known.
    Raises UnknownProperty, BadRule.
    """
    with checker.gc_paused(), tried(contract, rules or {}) as store, worlds(Memo(store, rules), bounds) as world:
        return explored(world, names, limit, first, progress)


@contextmanager
def worlds(memo: Memo, bounds: Bounds) -> Iterator[World]:
    """A world to be searched, and emptied then: its parts hold each other in circles, and Python's collector would have
    to look through all of them."""
    world = World(memo, bounds, alike=True)
    try:
        yield world
    finally:
        for alike in world.stand_ins.values():
            for owner in (alike.futures, alike):
                vars(owner).clear()
        vars(world).clear()


def explored(
    world: World,
    names: Sequence[str],
    limit: int | None = MOST,
    first: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """What is found in this world, by its store's contract."""
    asked = [named(name) for name in names]
    chosen = [each for each in properties(world) if each.name in asked]
    result = searched(world, chosen, limit, first, progress)
    findings = {name: finding(world, verdict) for name, verdict in result.verdicts.items()}
    contract = world.memo.store.contract
    return Exploration(contract, world.bounds, result.states, result.steps, result.exhausted, findings)


def searched(
    world: World,
    chosen: Sequence[checker.Property],
    limit: int | None,
    first: bool,
    progress: Callable[[int], None] | None,
) -> checker.Result:
    """What the checker finds, in one look or two.

    What breaks at all breaks early.  So after a glance the search begins anew for the promises that are still open:
    many more states are alike to those alone.
    """

    def look(asked: Sequence[checker.Property], at_most: int | None) -> checker.Result:
        alike = standing_for_all(world, [each.name for each in asked])
        system = checker.System([world.start], world.enabled, alike.canon if alike else None)
        return checker.check(system, asked, limit=at_most, progress=progress, first=first)

    at_most = GLANCE if limit is None else min(GLANCE, limit)
    glance = look(chosen, at_most)
    answers = {each.name: glance.verdicts[each.name].answer for each in chosen}
    still = [each for each in chosen if answers[each.name] == NOT_EXHAUSTED]
    if glance.exhausted or not still or at_most == limit or (first and BROKEN in answers.values()):
        return glance
    rest = look(still, limit)
    verdicts = glance.verdicts | rest.verdicts
    return rest._replace(verdicts={each.name: verdicts[each.name] for each in chosen})


GLANCE = 5_000  # states


def standing_for_all(world: World, names: Collection[str]) -> Alike | None:
    """Which states are alike as far as these promises go; None where a rule tells them apart by their names."""
    if not world.alike or world.memo.kept & NAMING:
        return None
    about = frozenset(names) & {LIVE, *(promise.name for promise in FACTS)}
    if about not in world.stand_ins:
        world.stand_ins[about] = Alike(world, telling(names), counting=LIVE in names)
    return world.stand_ins[about]


# A rule that reads one of these tells apart what else differs by its name alone.
NAMING = frozenset(["id", "idempotency_key", "worker", "correlation_id"])


def finding(world: World, verdict: checker.Verdict) -> Finding:
    return Finding(verdict.answer, tell(world, verdict.trace) if verdict.trace else ())


def count(contract: Contract, name: str, length: int, bounds: Bounds, rules: Mapping[str, str] | None = None) -> Count:
    """How many of all schedules of this length break a promise, or reach a possibility: "k of n".

    Every step counts, questions too, so give narrow bounds.  Raises UnknownProperty, BadRule, NoSuchSchedule for the
    promise that every job ends.
    """
    if named(name) == ENDS:
        raise NoSuchSchedule(f"{ENDS!r} can't be counted: a schedule that stops proves nothing")
    with tried(contract, rules or {}) as store:
        world = World(Memo(store, rules), bounds)
        asked = next(each for each in properties(world) if each.name == named(name))
        return checker.count_schedules(checker.System([world.start], world.enabled), asked, length)


def named(part: str) -> str:
    """The promise with this name, or the only one with these words in its name.  Raises UnknownProperty."""
    every = (*NAMES, *SOMETIMES)
    fits = [name for name in every if part == name] or [name for name in every if part.lower() in name.lower()]
    if len(fits) == 1:
        return fits[0]
    said = f"{part!r} is in the names of {len(fits)} promises" if fits else f"there is no promise {part!r}"
    raise UnknownProperty(f"{said}; name one of: {'; '.join(fits or every)}")


# Rules of one's own


@contextmanager
def tried(contract: Contract, rules: Mapping[str, str]) -> Iterator[Store]:
    """A new store in memory whose statements have these predicates in the place of the contract's.  Raises BadRule."""
    if not rules:
        with open_store(contract, settings=LAB) as store:
            yield store
        return
    for slot, predicate in rules.items():
        refuse_what_is_no_rule(slot, predicate)
    database = SQLite()
    database.slots = {**database.slots, **{slot: f"({predicate})" for slot, predicate in rules.items()}}
    try:
        store = SQLStore(database, contract, settings=LAB)
        for slot in rules:
            try_out(store, slot)
    except (StoreError, sqlite3.Error) as wrong:
        database.close()
        said = wrong.__cause__ if isinstance(wrong, StoreError) else wrong
        raise BadRule(f"this can't be a rule, says the database: {said}; it read: {in_words(rules)}") from wrong
    with store:
        yield store


def is_whole(predicate: str) -> bool:
    """Whether no parenthesis closes what the predicate did not open."""
    depths = list(accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in predicate))
    return min(depths) >= 0 and depths[-1] == 0


MORE_THAN_A_ROW = r"\b(select|random|randomblob|current_time\w*|date|time|datetime|julianday|unixepoch)\b"


def refuse_what_is_no_rule(slot: str, predicate: str) -> None:
    slots = [rule.slot for rule in RULES]
    if slot not in slots:
        raise BadRule(f"there is no rule {slot!r}; the rules are {', '.join(slots)}")
    if not predicate.strip() or re.search(r"[{};]|--|/\*", predicate) or not is_whole(predicate):
        raise BadRule(f"a rule is one SQL predicate, like \"state = 'RUNNING'\", and not {predicate!r}")
    if re.search(MORE_THAN_A_ROW, predicate, re.IGNORECASE):
        raise BadRule(f"a rule asks about one row and its parameters, and not about more: {predicate!r}")


def try_out(store: SQLStore, slot: str) -> None:
    """Let the database read every statement that has this rule.  Raises sqlite3.Error, StoreError."""
    for verb, statement in STATEMENTS.items():
        texts = [statement, why(verb)] if verb in GUARDED else [statement]
        if any(f"{{{slot}}}" in text for text in texts):
            has = dict.fromkeys([*re.findall(r":(\w+)", statement), "id", "worker", "now", *NAMED.get(verb, ())], 0)
            with store.database.read() as db:
                for sql in store.sql[verb].split(";"):
                    db.execute(f"EXPLAIN {sql}", has)


NAMED = dict.fromkeys((*NEWS, "requeue", "exhaust"), ("attempt",))  # what is bound and not in the statement's own text


def in_words(rules: Mapping[str, str]) -> str:
    return "; ".join(f"{slot}: {predicate}" for slot, predicate in rules.items())


# All contracts


def matrix(
    bounds: Bounds = Bounds(),
    *,
    names: Sequence[str] = (*NAMES, *SOMETIMES),
    contracts: Sequence[Contract] | None = None,
    processes: int = 2,
    progress: Callable[[int], None] | None = None,
) -> list[Exploration]:
    """All 32 contracts, the full one first, each explored in one of these processes.  `progress` is told how many are
    done."""
    contracts = Contract.all() if contracts is None else contracts
    found: dict[Contract, Exploration] = {}
    for exploration in chain.from_iterable(in_turn(pairs(contracts), bounds, names, processes)):
        found[exploration.contract] = exploration
        if progress:
            progress(len(found))
    return [found[contract] for contract in contracts]


def pairs(contracts: Collection[Contract]) -> list[list[Contract]]:
    """Those that differ in persistence alone stand together.

    Those with most to explore come first, so that no process is left alone with one of them.
    """

    groups: dict[Contract, list[Contract]] = {}
    for contract in contracts:
        groups.setdefault(replace(contract, persistence=True), []).append(contract)

    def ease(of: Contract) -> tuple[bool, ...]:
        return of.idempotency_key or not of.leases, of.conditional_updates, of.attempt_fencing

    return [groups[contract] for contract in sorted(groups, key=ease)]


def in_turn(
    groups: Sequence[Sequence[Contract]], bounds: Bounds, names: Sequence[str], processes: int
) -> Iterator[list[Exploration]]:
    if processes == 1:
        yield from (together(group, bounds, names) for group in groups)
        return
    # Spawned, not forked: a caller with threads (a notebook, a progress bar) can't be forked safely.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(together, group, bounds, names) for group in groups]
        yield from (future.result() for future in as_completed(futures))


def together(contracts: Sequence[Contract], bounds: Bounds, names: Sequence[str]) -> list[Exploration]:
    """Contracts that differ in persistence alone: what a restart leaves is asked of each, all else of the first."""
    with checker.gc_paused(), ExitStack() as open_now:
        stores = [open_now.enter_context(open_store(contract, settings=LAB)) for contract in contracts]
        with worlds(Memo(stores[0]), bounds) as world:
            return [explored(restarting(world, store), names) for store in stores]


def restarting(world: World, store: Store) -> World:
    """The world, with this store's answers to a restart."""
    world.memo.ask_anew(store, "restart")
    return world


def table(explorations: Iterable[Exploration]) -> "pd.DataFrame":
    """A row for each contract, a column for each promise; a cell says what was found."""
    import pandas as pd

    found = {str(each.contract): {name: str(one) for name, one in each.findings.items()} for each in explorations}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("contract")


def enough(explorations: Sequence[Exploration]) -> dict[str, list[tuple[str, ...]]]:
    """For each promise that was asked for the smallest sets of flags that are enough: whatever else is on or off, it
    holds.

    Holding is not enough: without leases a sweeper never writes, and so it never undoes a report; yet no one would say
    that this promise needs no flag.
    """
    holds = {
        each.contract: {name for name, one in each.findings.items() if one.answer == HOLDS} for each in explorations
    }
    sets = [flags for size in range(len(FLAGS) + 1) for flags in combinations(FLAGS, size)]

    def suffices(flags: tuple[str, ...], name: str) -> bool:
        return all(name in held for contract, held in holds.items() if set(flags) <= set(contract.on))

    found: dict[str, list[tuple[str, ...]]] = {}
    for name in [name for name in NAMES if name in explorations[0].findings]:
        smallest = found.setdefault(name, [])
        for flags in sets:
            if not any(set(less) <= set(flags) for less in smallest) and suffices(flags, name):
                smallest.append(flags)
    return found


# Bounds as text


def bounds_of(written: str, given: Bounds = Bounds()) -> Bounds:
    """Bounds from text: "jobs=2,faults=3,late=progress+succeed"; what is not named is as given.  Raises BadBounds."""
    for piece in filter(None, (piece.strip() for piece in written.split(","))):
        name, _, value = (part.strip() for part in piece.partition("="))
        if name not in Bounds._fields:
            raise BadBounds(f"there is no bound {name!r}; the bounds are {', '.join(Bounds._fields)}")
        given = given._replace(**{name: bound(name, value)})
    return checked(given)


def bound(name: str, value: str) -> Any:
    if name not in ("reports", "late"):
        if not (value.isascii() and value.isdigit() and len(value) < 4):
            raise BadBounds(f"{name}= is a whole number from 0 up, and not {value!r}")
        return int(value)
    verbs = tuple(verb for verb in value.split("+") if verb)
    for verb in verbs:
        if verb not in NEWS:
            raise BadBounds(f"{name}= has reports with + between them, of {', '.join(NEWS)}; and not {verb!r}")
    return verbs


MOST_OF = {"jobs": 3, "workers": 8, "sweepers": 8, "attempts": 8, "under_way": 8}
AT_LEAST_ONE = ("jobs", "sends", "workers", "attempts")


def checked(bounds: Bounds) -> Bounds:
    """The same bounds.  Raises BadBounds where nothing could happen, or there are no names for so many."""
    for name, value in bounds._asdict().items():
        if name in AT_LEAST_ONE and value < 1:
            raise BadBounds(f"{name}= is at least 1: with less nothing happens")
        if name in MOST_OF and value > MOST_OF[name]:
            raise BadBounds(f"{name}= is at most {MOST_OF[name]}: with more no search would end")
    return bounds
