"""How does the matrix of contracts and promises look?  A line for each contract, a column for each promise.

A cell is a sign before it is a colour: how many steps break the promise, a dot where it holds, a question mark where
the search was not exhausted.  Picture and text are made from the same cells.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobslab.contract import FLAGS
from jobslab.lab.checker import BROKEN, HOLDS, NEVER_REACHED, REACHED
from jobslab.lab.explore import Exploration, Finding, enough
from jobslab.lab.picture import Picture, draw
from jobslab.lab.properties import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOLDING, UNKNOWN = "·", "?"


def cell(finding: Finding) -> str:
    """The steps that it takes, a dot, or a question mark."""
    if finding.answer in (BROKEN, REACHED):
        return str(len(finding.trace))
    return HOLDING if finding.answer in (HOLDS, NEVER_REACHED) else UNKNOWN


def promises(explorations: Sequence[Exploration]) -> list[str]:
    """What was asked of all of them, in the order of the promises."""
    asked = explorations[0].findings
    return [*(name for name in NAMES if name in asked), *(name for name in asked if name not in NAMES)]


# As text

KEY = f"""A number: the fewest steps that break the promise.
{HOLDING} it holds.  {UNKNOWN} the search was not exhausted."""


def as_text(explorations: Sequence[Exploration]) -> str:
    """The matrix in lines of at most 80 characters, for a terminal and for those who can't see the picture."""
    names = promises(explorations)
    wide = max(len(str(each.contract)) for each in explorations)
    head = f"{'flags on':<{wide}}" + "".join(f"{n:>3}" for n in range(1, len(names) + 1))
    lines = [
        f"{each.contract!s:<{wide}}" + "".join(f"{cell(each.findings[name]):>3}" for name in names)
        for each in explorations
    ]
    columns = [f"{n:>2}  {name}" for n, name in enumerate(names, start=1)]
    return "\n".join([head, *lines, "", *columns, "", KEY])


def enough_as_text(explorations: Sequence[Exploration]) -> str:
    """Which flags are enough for each promise, whatever else is on or off."""
    found = enough(explorations)
    wide = max(map(len, found))
    return "\n".join(f"{name:<{wide}}  {in_words(sets)}" for name, sets in found.items())


def in_words(sets: Sequence[tuple[str, ...]]) -> str:
    if not sets:
        return "no contract"
    return "; or ".join(" and ".join(flags) or "no flag" for flags in sets)


# As a picture

INK, GREY, WHITE = "#1a1a1a", "#595959", "#ffffff"
BREAKS, KEEPS, OPEN = "#F2BF99", "#FFFFFF", "#F7DFA6"  # Okabe and Ito's vermillion and orange, mixed with white
ON = "#0072B2"  # their blue
ROW, FLAG, CELL, HEAD, EDGE = 0.2, 0.3, 0.36, 2.95, 0.15  # inches
SIZE = 7.5  # points


class Grid(NamedTuple):
    """What stands where: the flags from the left, then a gap, then the promises."""

    lines: int
    promises: int

    @property
    def width(self) -> float:
        return 2 * EDGE + FLAG * len(FLAGS) + EDGE + CELL * self.promises + 1.55

    @property
    def height(self) -> float:
        return HEAD + ROW * self.lines + 4 * EDGE

    def flag(self, n: int) -> float:
        return EDGE + FLAG * n

    def promise(self, n: int) -> float:
        return 2 * EDGE + FLAG * len(FLAGS) + CELL * n

    def top(self, line: int) -> float:
        return HEAD + ROW * line


def matrix(explorations: Sequence[Exploration]) -> Picture:
    """The matrix as a Picture."""
    return draw(figure(explorations), alt(explorations), f"{as_text(explorations)}")


def alt(explorations: Sequence[Exploration]) -> str:
    full = [each for each in explorations if not each.contract.off]
    columns = len(promises(explorations))
    broken = sum(one.answer == BROKEN for each in explorations for one in each.findings.values())
    first = f" Under the full contract {len(full[0].broken) or 'nothing'} breaks." if full else ""
    return (
        f"A matrix of {len(explorations)} contracts and {columns} promises: in {broken} cells a promise breaks, and "
        f"the cell says in how many steps.{first}"
    )


def figure(explorations: Sequence[Exploration]) -> "Figure":
    from matplotlib.figure import Figure

    names = promises(explorations)
    grid = Grid(len(explorations), len(names))
    drawn = Figure(figsize=(grid.width, grid.height))
    axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, grid.width), ylim=(grid.height, 0))
    axes.set_axis_off()
    for n, flag in enumerate(FLAGS):
        heading(axes, grid.flag(n) + FLAG / 2, flag)
    for n, name in enumerate(names):
        heading(axes, grid.promise(n) + CELL / 2, name)
    for line, each in enumerate(explorations):
        flags(axes, grid, line, each)
        for n, name in enumerate(names):
            found(axes, grid.promise(n), grid.top(line), each.findings[name])
    axes.text(EDGE, grid.height - 2 * EDGE, KEY, size=SIZE, color=GREY, va="center")
    return drawn


def heading(axes: "Axes", x: float, text: str) -> None:
    axes.text(x, HEAD - 0.06, text, size=SIZE, color=INK, rotation=60, rotation_mode="anchor", ha="left", va="bottom")


def flags(axes: "Axes", grid: Grid, line: int, each: Exploration) -> None:
    """Which flags are on: a word, and a mark beside it in blue."""
    for n, flag in enumerate(FLAGS):
        on = flag in each.contract.on
        middle = grid.flag(n) + FLAG / 2, grid.top(line) + ROW / 2
        axes.text(*middle, "on" if on else "off", size=SIZE, color=ON if on else GREY, ha="center", va="center",
                  weight="bold" if on else "normal")  # fmt: skip


def found(axes: "Axes", x: float, y: float, finding: Finding) -> None:
    from matplotlib.patches import Rectangle

    colour = {HOLDING: KEEPS, UNKNOWN: OPEN}.get(cell(finding), BREAKS)
    axes.add_patch(Rectangle((x, y), CELL, ROW, facecolor=colour, edgecolor="#d9d9d9", linewidth=0.5))
    axes.text(x + CELL / 2, y + ROW / 2, cell(finding), size=SIZE, color=INK, ha="center", va="center")
