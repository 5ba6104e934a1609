"""How far did each job come?  A line for each job, a column for each stage; a sign before it is a colour.

Picture and text are made from the same answers.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobslab import stage
from jobslab.lab.picture import Picture, draw
from jobslab.seen import NO, NONE, UNKNOWN, YES
from jobslab.where import Where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGNS = {YES: "●", NO: "○", UNKNOWN: "?", NONE: "-"}
KEY = "● reached   ○ not reached   ? not known   - there is no such stage here"

INK, GREY, WHITE = "#1a1a1a", "#595959", "#ffffff"
FILLS = {YES: "#A6DDCB", NO: WHITE, UNKNOWN: "#F7DFA6", NONE: "#f0f0f0"}  # Okabe and Ito's green and orange, in white
ROW, CELL, NAME, HEAD, EDGE = 0.3, 0.95, 2.3, 0.62, 0.15  # inches
SIZE = 8.5  # points

HEADINGS = {"confirmed by the broker": "confirmed by\nthe broker"}


def picture(told: Mapping[str, Where]) -> Picture:
    """The stages of these jobs as a Picture."""
    return draw(figure(told), alt(told), as_text(told))


def title(told: Mapping[str, Where]) -> str:
    return f"How far {len(told)} jobs came"


def name_of(number: str, one: Where) -> str:
    return f"{number}  {one.id} {one.job.state if one.job else 'no row'}"


def as_text(told: Mapping[str, Where]) -> str:
    """A line a job, a sign a stage."""
    names = [name_of(number, one) for number, one in told.items()]
    wide = max(map(len, names))
    rows = [
        f"{name:<{wide}}" + "".join(f"  {SIGNS[each.answer]:^{len(each.question)}}" for each in one.stages)
        for name, one in zip(names, told.values())
    ]
    head = " " * wide + "".join(f"  {name}" for name in stage.NAMES)
    return "\n".join([title(told), "", head, *rows, "", KEY])


def alt(told: Mapping[str, Where]) -> str:
    counts = ", ".join(
        f"{name} {sum(one.stages[n].answer == YES for one in told.values())}" for n, name in enumerate(stage.NAMES)
    )
    return f"{title(told)}: a line for each job and a column for each stage. Reached: {counts}."


def figure(told: Mapping[str, Where]) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    wide, high = 2 * EDGE + NAME + CELL * len(stage.NAMES), HEAD + ROW * len(told) + 3 * EDGE
    drawn = Figure(figsize=(wide, high))
    axes = drawn.add_axes((0, 0, 1, 1), xlim=(0, wide), ylim=(high, 0))
    axes.set_axis_off()
    for n, name in enumerate(stage.NAMES):
        middle = EDGE + NAME + CELL * (n + 0.5)
        axes.text(middle, HEAD - 0.1, HEADINGS.get(name, name), size=SIZE, color=INK, ha="center", va="bottom")
    for line, (number, one) in enumerate(told.items()):
        top = HEAD + ROW * line
        axes.text(EDGE, top + ROW / 2, name_of(number, one), size=SIZE, color=INK, va="center")
        for n, each in enumerate(one.stages):
            left = EDGE + NAME + CELL * n
            fill = FILLS[each.answer]
            axes.add_patch(Rectangle((left, top), CELL, ROW, facecolor=fill, edgecolor="#d9d9d9", linewidth=0.5))
            sign = SIGNS[each.answer]
            axes.text(left + CELL / 2, top + ROW / 2, sign, size=SIZE + 1, color=INK, ha="center", va="center")
    axes.text(EDGE, high - 1.2 * EDGE, KEY, size=SIZE, color=GREY, va="center")
    return drawn
