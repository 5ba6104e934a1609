"""How does it look how often was paid?  A line for each fault, a column for each way, and in each cell its coins.

A cell is a number before it is a colour: 1 is right, 2 is a customer who paid twice, 0 a job that is done and unpaid.
Picture and text are made from the same counts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobslab.lab.again import title
from jobslab.lab.paying import FAULTS, Way, pay
from jobslab.lab.picture import Picture, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, PALE = "#1a1a1a", "#595959", "#d9d9d9"
TWICE, NEVER, ONCE = "#F2BF99", "#BBDFF5", "#FFFFFF"  # Okabe and Ito's vermillion and blue, mixed with white
COIN = "#E69F00"  # their orange
FIRST, CELL, ROW, HEAD, EDGE = 2.35, 1.02, 0.36, 0.55, 0.12  # inches
SIZE = 8.5  # points
KEY = "1: as it should be.  2: the customer paid twice.  0: the job says it is done, and nobody paid."


def coins(*ways: Way) -> Picture:
    """How often was paid under every fault, as a Picture."""
    counts = [[int(pay(way, fault).seen["paid"]) for way in ways] for fault in FAULTS]
    names = [title(way) for way in ways]
    return draw(figure(names, counts), alt(names, counts), as_text(names, counts))


def heading(names: Sequence[str]) -> str:
    return f"How often was paid: {len(FAULTS)} faults, {len(names)} ways"


def alt(names: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """Which ways pay once under every fault, in a sentence."""
    right = [name for n, name in enumerate(names) if all(row[n] == 1 for row in counts)]
    return f"{heading(names)}. Paid once under every fault: {', '.join(right) or 'none'}. {KEY}"


def as_text(names: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    wide = max(len(str(fault)) for fault in FAULTS)
    head = " " * wide + "".join(f"  {name}" for name in names)
    lines = [
        f"{fault!s:<{wide}}" + "".join(f"  {count:^{len(name)}}" for name, count in zip(names, row))
        for fault, row in zip(FAULTS, counts)
    ]
    return "\n".join([heading(names), "", head, *lines, "", KEY])


def figure(names: Sequence[str], counts: Sequence[Sequence[int]]) -> "Figure":
    from matplotlib.figure import Figure

    width, height = 2 * EDGE + FIRST + CELL * len(names), HEAD + ROW * (len(counts) + 1) + EDGE
    drawn = Figure(figsize=(max(width, 6.6), height))
    axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, max(width, 6.6)), ylim=(height, 0))
    axes.set_axis_off()
    for n, name in enumerate(names):
        axes.text(EDGE + FIRST + CELL * (n + 0.5), HEAD - 0.08, broken(name), size=SIZE, color=INK, ha="center")
    for line, (fault, row) in enumerate(zip(FAULTS, counts)):
        y = HEAD + ROW * line
        axes.text(EDGE, y + ROW / 2, str(fault), size=SIZE, color=INK, va="center")
        for n, count in enumerate(row):
            cell(axes, EDGE + FIRST + CELL * n, y, count)
    axes.text(EDGE, height - ROW / 2, KEY, size=SIZE, color=GREY, va="center")
    return drawn


def broken(name: str) -> str:
    """The name in two lines, where it has more than two words."""
    words = name.split()
    return "\n".join([" ".join(words[:2]), " ".join(words[2:])]) if len(words) > 2 else name


def cell(axes: "Axes", x: float, y: float, count: int) -> None:
    """The number, and beside it as many coins."""
    from matplotlib.patches import Circle, Rectangle

    colour = NEVER if count == 0 else ONCE if count == 1 else TWICE
    axes.add_patch(Rectangle((x, y), CELL, ROW, facecolor=colour, edgecolor=PALE, linewidth=0.6))
    bold = "normal" if count == 1 else "bold"
    axes.text(x + 0.28, y + ROW / 2, str(count), size=SIZE + 1, color=INK, ha="center", va="center", weight=bold)
    for n in range(count):
        middle = x + 0.52 + 0.2 * n, y + ROW / 2
        axes.add_patch(Circle(middle, 0.075, facecolor=COIN, edgecolor=INK, linewidth=0.6))
