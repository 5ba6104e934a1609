"""How does a report look on a terminal, and in a pipe?  Tables side by side, as wide as the terminal, readable at 80.

Colour says nothing that a word or a mark does not say too; where the output is no terminal there is none.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from jobslab.contract import Contract, changed_lines
from jobslab.lab.export import Exported
from jobslab.lab.report import Column, Report, Shown, sql
from jobslab.lab.running import REFUSED, Row, Seen
from jobslab.lab.scenarios import Line, Scenario
from jobslab.lab.schedule import parse

WIDEST = 100  # characters of the whole: longer lines are hard to read
WIDEST_COLUMN, NARROWEST_COLUMN = 44, 12
MARK = 2
BETWEEN = MARK + 2  # what a variant needs besides its answers: the box has a blank on each side of the mark

ABOUT = """HTTP 202 says "accepted"; what must hold until the work is done? Each failure stands beside the clause of \
the contract that prevents it: the same steps in every column, and one flag, or one line of the client, that differs. \
{held} is an answer as data/expected.csv expects it."""

OUTCOMES = "Under a contract, or with a schedule, of your own: outcomes, no verdict."

GO_ON = """Switch a clause off yourself:   jobslab run --scenario restart --without leases
See the SQL that it changes:    jobslab run --scenario "stale worker" --sql
Against a real, killed server:  jobslab run --over-http"""


def print_report(report: Report, contract: Contract, *, every_step: bool, with_sql: bool) -> None:
    """Print it to stdout."""
    console = Console(highlight=False)
    console.width = min(console.width, WIDEST)
    with console.capture() as captured:
        for part in parts(report, contract, Page(console, every_step), with_sql):
            console.print(part, crop=False)
    # Rich fills lines up with spaces, which nobody wants in a file.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


class Page:
    """How wide it is, which marks it can print, and whether every step is a row."""

    def __init__(self, console: Console, every_step: bool) -> None:
        self.width = console.width
        self.every_step = every_step
        unicode = console.encoding.lower().startswith("utf")
        self.held, self.missed, self.becomes = ("✓", "✗", "→") if unicode else ("ok", "NO", "->")
        self.box = SIMPLE_HEAD if unicode else Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True)


def parts(report: Report, contract: Contract, page: Page, with_sql: bool) -> Iterator[RenderableType]:
    if not page.every_step and report.judged:
        yield Text(ABOUT.format(held=page.held))
    for shown in report.shown:
        yield from scenario(shown, page)
        if with_sql:
            yield sql_changes(shown)
    if with_sql:
        if report.contracts == [contract] != [Contract()]:
            yield difference(contract, Contract())
        yield from sql_in_force(report, contract)
    if report.source:
        yield rule("the work itself")
        yield Text(f"{report.source}, for real: POST /jobs, a worker, GET until it is done, download, and count.")
    yield Text("" if page.every_step else f"\n{GO_ON}\n", style="dim")
    yield from summary(report)


def rule(title: str) -> RenderableType:
    return Padding(Rule(Text(title, style="bold"), align="left", style="dim"), (1, 0, 0, 0))


# A scenario


def scenario(shown: Shown, page: Page) -> Iterator[RenderableType]:
    """Its question, its steps, and its variants side by side."""
    yield rule(shown.scenario.name)
    if shown.scenario.question:
        yield Text(shown.scenario.question)
    if not page.every_step or shown.scenario.enact:
        yield Text("\n".join(filled(*done(shown.scenario), page.width)), style="dim")
    yield ""
    yield side_by_side(shown, page)
    for one in shown.columns:
        if one.file:
            yield unwrapped(f"kept: {one.file}")


def done(scenario: Scenario) -> tuple[list[str], str]:
    """What is done in it, and what stands between the parts: steps, or of one that is enacted the words."""
    if scenario.enact:
        return scenario.text.split(), " "
    return [str(step) for step in parse(scenario.text)], " / "


def side_by_side(shown: Shown, page: Page) -> Table:
    """Two columns a variant, the mark and the answer; a row a labelled step, or a row a step."""
    columns = shown.columns
    steps = [step_name(row, page) for row in columns[-1].rows if page.every_step or row.label]
    longest = max(len(line) for step in steps for line in step.plain.splitlines())
    first = min(longest, 22 if len(columns) > 2 else 30)
    wide = max(NARROWEST_COLUMN, min(WIDEST_COLUMN, (page.width - first) // len(columns) - BETWEEN))
    table = empty_table(columns, page, first, wide)
    for step, *found in zip(steps, *(answers(one, page, wide) for one in columns)):
        table.add_row(step, *(cell for pair in found for cell in pair))
    if any(one.variant.says for one in columns):
        table.add_row()
        table.add_row("so", *unmarked((one.variant.says for one in columns), "italic"))
    return table


def empty_table(columns: Sequence[Column], page: Page, first: int, wide: int) -> Table:
    """The table with its head: which flags are on, which switches, and which line of the client a variant has for
    itself."""
    by_contract = all(one.variant.name == str(one.variant.contract) for one in columns)
    table = Table(box=page.box, show_edge=False, padding=0, header_style="bold")
    table.add_column("flags on" if by_contract else "", width=first)
    for one in columns:
        table.add_column("", width=MARK, justify="right")
        table.add_column(one.variant.name, width=wide)
    if not by_contract and columns[0].schedule is not None:
        table.add_row("flags on", *unmarked((str(one.variant.contract) for one in columns), "cyan"))
    if any(one.variant.switches for one in columns):
        table.add_row("switches", *unmarked((one.variant.switches or "none" for one in columns), "cyan"))
    if any(one.variant.client for one in columns):
        own = (one.variant.client.partition(": ")[2] for one in columns)
        table.add_row("the client's own line", *unmarked(own, "cyan"))
    if table.row_count:
        table.add_row()
    return table


def unmarked(texts: Iterable[str], style: str) -> Iterator[Text]:
    """The cells of texts that have no mark."""
    for text in texts:
        yield Text()
        yield Text(text, style)


def step_name(row: Row, page: Page) -> Text:
    if not page.every_step or row.step == row.label:
        return Text(str(row.label))
    step = Text(f"{row.n}. {row.step}")
    return Text("\n").join([step, Text(row.label, style="bold")]) if row.label else step


def answers(one: Column, page: Page, wide: int) -> Iterator[tuple[Text, Text]]:
    """Mark and answer of each step that is shown; where every step is, also what it changed."""
    lines = iter(one.lines)
    before: tuple[Seen, ...] = ()
    for row in one.rows:
        line = next(lines) if row.label else None
        told = answer(row, line, wide)
        if page.every_step:
            told += [Text(f"{page.becomes} {change}", style="dim") for change in changes(before, row.jobs)]
        if page.every_step or line:
            yield mark(line, page), Text("\n").join(told)
        before = row.jobs


def answer(row: Row, line: Line | None, wide: int) -> list[Text]:
    """The lines of an answer: the rule that refused or the reason why nothing happened, and what was expected."""
    why = row.refused_by if row.answer == REFUSED else None if line and line.lacks else row.note
    told = [Text(part) for part in filled(row.answer.split("; "), "; ", wide)]
    told[-1].append(f" ({why})" if why else "", style="dim")
    return [*told, Text(f"expected: {line.expected}", "red")] if line and line.held is False else told


def mark(line: Line | None, page: Page) -> Text:
    if line is None or line.held is None:
        return Text()
    return Text(page.held, "green") if line.held else Text(page.missed, "bold red")


def filled(parts: Sequence[str], separator: str, wide: int) -> list[str]:
    """The parts in lines of no more than this many characters, each part whole; one that is longer has its own."""
    end = separator.rstrip()
    lines = [""]
    for part in [*(part + end for part in parts[:-1]), parts[-1]]:
        longer = f"{lines[-1]} {part}".lstrip()
        lines[-1:] = [longer] if len(longer) <= wide or not lines[-1] else [lines[-1], part]
    return lines


def changes(before: Sequence[Seen], after: Sequence[Seen]) -> Iterator[str]:
    """How the jobs stand that a step has changed; a single one needs no name."""
    was = {job.id: (job.state, job.attempt) for job in before}
    now = {job.id: (job.state, job.attempt) for job in after}
    for id in sorted({*was, *now}):
        (_, last), (state, attempt) = was.get(id, ("", 0)), now.get(id, ("gone", 0))
        if (state, attempt) != was.get(id):
            name = f"{id} " if len({*was, *now}) > 1 else ""
            yield name + state + (f", attempt {attempt}" if attempt > last else "")


# SQL


def sql_changes(shown: Shown) -> RenderableType:
    """The lines of SQL in which the variants' contracts differ from the last one's; nothing where they do not."""
    last = shown.columns[-1].variant.contract
    others = list(dict.fromkeys(one.variant.contract for one in shown.columns if one.variant.contract != last))
    return Group(*(difference(other, last) for other in others))


def difference(before: Contract, after: Contract) -> Text:
    """The lines that differ, each once, with the statements that have it."""
    verbs_of: dict[tuple[str, ...], list[str]] = {}
    for verb, changed in changed_lines(before, after):
        verbs_of.setdefault(tuple(changed), []).append(verb)
    told = Text(f"\nWhat changes in the SQL, from '{before}' to '{after}':")
    for lines, verbs in verbs_of.items():
        told.append(f"\n  {', '.join(verbs)}", style="bold")
        for line in lines:
            told.append(f"\n    {line}", style="red" if line.startswith("-") else "green")
    return told


def sql_in_force(report: Report, contract: Contract) -> Iterator[RenderableType]:
    """The statements of these runs, as they stand under one contract; their lines are not wrapped."""
    yield rule(f"the statements in force, flags on: {contract}")
    for verb, statement in sql(report, contract).items():
        yield unwrapped((f"-- {verb}\n", "dim"), statement, "\n")


def unwrapped(*parts: str | tuple[str, str]) -> RenderableType:
    """Lines as long as they are, for copying; in a group, or rich forgets that they may not be wrapped."""
    return Group(Text.assemble(*parts, no_wrap=True, overflow="ignore"))


# The last lines


def summary(report: Report) -> Iterator[Text]:
    """Did all hold, and did the real work get done?"""
    for line in report.missed:
        where = f"{line.scenario}, {line.variant}, {line.step}"
        yield Text(f"{where}: expected '{line.expected}', seen '{line.seen}'", style="red")
    if report.judged:
        held = f"{len(report.judged)} rows, {len(report.judged) - len(report.missed)} as expected"
        yield Text(held, style="bold red" if report.missed else "bold green")
    else:
        yield Text(OUTCOMES)
    for lacks in dict.fromkeys(line.lacks for line in report.lacking):
        yield Text(f"{sum(line.lacks == lacks for line in report.lacking)} rows were not exercised: {lacks}")
    for one in report.exported:
        yield exported(one)


def exported(one: Exported) -> Text:
    if one.rows_in_file is None:
        return Text(f"{one.table}: the export is {one.state}: {one.error}", style="bold red")
    words = f"{one.table}: {one.rows_in_table:,} rows in the table, {one.rows_in_file:,} in the file"
    return Text(words, style="bold green" if one.whole else "bold red")
