"""How is a timeline drawn?  Time runs downwards; each run has a lane for every actor and a band for every job.

Nothing is told by colour alone: a mark has its word, a band its state.  Columns are as wide as what stands in them, so
that a page of a notebook holds two runs, and three.  All measures are in inches, y downwards.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.lab.picture import Picture, draw
from jobslab.lab.running import HAPPENED, LOST, NOT_EXERCISED, REFUSED, UNDER_WAY, Row
from jobslab.lab.timeline import Side, alt, first_difference, hands, lanes, longest, route, stretches, twin, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def timeline(title: str, sides: Sequence[Side]) -> Picture:
    """The runs side by side as a Picture; its text has one line a step and run."""
    return draw(figure(title, sides), alt(title, sides), twin(title, sides))


INK, GREY, PALE = "#1a1a1a", "#595959", "#d9d9d9"
BLUE, DARK_VERMILLION, ORANGE = "#0072B2", "#A03C00", "#E69F00"  # Okabe and Ito's, one darkened
BANDS = {  # the palette's sky blue, orange, green, vermillion and purple, each mixed with white
    "QUEUED": "#BBDFF5",
    "RUNNING": "#F7DFA6",
    "SUCCEEDED": "#A6DDCB",
    "FAILED": "#F2BF99",
    "CANCELLED": "#EBC9DD",
}
MARKED = "#FFF8D6"  # behind the first step that differs

LINE = 0.155  # a line of text
PAD = 0.08  # above and below what a step says
BAND = 0.78  # a job's
TIME = 0.5  # the column of times
GAP = 0.14  # between two columns
MARGIN = 0.1
HEAD = 1.02  # title, names of the runs, names of the lanes
FOOT = 0.3  # the key to what is drawn
BIG, NORMAL, SMALL = 10.5, 8.5, 7.5  # points


class Layout(NamedTuple):
    """Where everything is."""

    lanes: list[str]
    step: float  # from one lane to the next
    jobs: list[list[str]]  # of each side
    said_wide: float  # the width of each column of answers
    lefts: list[float]  # of each side
    tops: list[float]  # of each step, and the bottom of the last
    width: float

    def lane(self, side: int, name: str) -> float:
        return self.lefts[side] + self.step * (self.lanes.index(name) + 0.75)

    def said(self, side: int) -> float:
        return self.lefts[side] + self.step * (len(self.lanes) + 0.4)

    def band(self, side: int, job: int = 0) -> float:
        return self.said(side) + self.said_wide + BAND * job

    @property
    def height(self) -> float:
        return self.tops[-1] + FOOT


@lru_cache
def font(size: float, bold: bool = False) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")


@lru_cache(maxsize=4096)
def width(text: str, size: float) -> float:
    """How wide a line of text is.  Measured, since the letters of one count differ by half."""
    return ruler().get_text_width_height_descent(text, font(size), False)[0] / 160


@lru_cache
def ruler() -> Any:
    from matplotlib.backends.backend_agg import RendererAgg

    return RendererAgg(1, 1, 160)


def broken(text: str, wide: float, size: float = NORMAL) -> list[str]:
    """The text in lines that are not wider than this, as far as its words allow.  What belongs together, like
    "attempt 2", stays together."""
    found: list[str] = []
    for word in kept_together(text):
        if found and width(f"{found[-1]} {word}", size) <= wide:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def kept_together(text: str) -> list[str]:
    return re.sub(r"\b(state|attempt|id|key|t) (?=\S)", "\\1\u00a0", text).split(" ")


def steps_column(sides: Sequence[Side], wide: float) -> list[list[str]]:
    """What stands at the left of each step: its text, and its label under it."""
    at = first_difference(sides)
    return [
        broken(row.step, wide)
        + (broken(f"“{row.label}”", wide, SMALL) if row.label else [])
        + (["◆ first difference"] if n == at else [])
        for n, row in enumerate(longest(sides))
    ]


def answers_column(side: Side, sides: Sequence[Side], wide: float) -> list[list[str]]:
    """What was answered to each step; with the step where the runs do not have the same."""

    def same(n: int) -> bool:
        return len({other.rows[n].step for other in sides if n < len(other.rows)}) == 1

    return [broken(words(row) if same(n) else f"{row.step} → {words(row)}", wide) for n, row in enumerate(side.rows)]


def widest(columns: Iterable[list[str]]) -> float:
    return max(width(line, NORMAL) for lines in columns for line in lines)


def layout(sides: Sequence[Side]) -> Layout:
    """Columns are as wide as what they say, up to a limit that is lower where three runs stand side by side."""
    few = len(sides) < 3
    steps = steps_column(sides, 1.8 if few else 1.4)
    answers = [answers_column(side, sides, 1.6 if few else 1.15) for side in sides]
    said_wide = max(widest(column) for column in answers) + GAP
    names, step = lanes(sides), 0.25 if few else 0.22
    jobs = [sorted({job.id for row in side.rows for job in row.jobs}) or ["no job"] for side in sides]
    lefts = [MARGIN + TIME + max(1.2, widest(steps)) + GAP]
    for ids in jobs:
        lefts.append(lefts[-1] + step * (len(names) + 0.4) + said_wide + BAND * len(ids) + GAP)
    tops = [HEAD]
    for n, left in enumerate(steps):
        said = [len(column[n]) for column in answers if n < len(column)]
        tops.append(tops[-1] + 2 * PAD + LINE * max(2, len(left), *said))
    return Layout(names, step, jobs, said_wide, lefts, tops, lefts[-1] - GAP + MARGIN)


def figure(title: str, sides: Sequence[Side]) -> Any:
    """The timeline as a matplotlib Figure (no pyplot: no global state, and a second faster to import)."""
    from matplotlib.figure import Figure

    place = layout(sides)
    made = Figure(figsize=(place.width, place.height), facecolor="white")
    axes = made.add_axes((0, 0, 1, 1), xlim=(0, place.width), ylim=(place.height, 0))
    axes.set_axis_off()
    write(axes, MARGIN, 0.22, title, BIG, bold=True)
    draw_steps(axes, place, sides)
    write(axes, MARGIN, place.tops[-1] + 0.15, key(sides), SMALL, GREY)
    for n, side in enumerate(sides):
        draw_head(axes, place, n, side)
        draw_bands(axes, place, n, side)
        draw_lanes(axes, place, n, side)
        for row, said in zip(side.rows, answers_column(side, sides, place.said_wide - GAP + 0.01)):
            draw_step(axes, place, n, row, said)
    return made


SIGNS = {
    REFUSED: "✗ refused",
    NOT_EXERCISED: "○ not exercised",
    UNDER_WAY: "◁ sent, not arrived",
    LOST: "⋯✖ answer lost",
    HAPPENED: "■ crash or restart",  # time happens too, and has no mark
}


def key(sides: Sequence[Side]) -> str:
    """What the marks in this picture mean: those alone that are in it."""
    found = {row.outcome for side in sides for row in side.rows if route(row)}
    busy = ["thick line: believes that it runs the job"] if any(any(hands(side.rows)) for side in sides) else []
    return "   ".join(["● done or answered", *(sign for outcome, sign in SIGNS.items() if outcome in found), *busy])


def write(
    axes: "Axes", x: float, y: float, text: str, size: float = NORMAL, colour: str = INK, bold: bool = False,
    centre: bool = False,
) -> None:  # fmt: skip
    axes.text(
        x, y, text, fontproperties=font(size, bold), color=colour, ha="center" if centre else "left", va="center",
        parse_math=False,
    )  # fmt: skip


def line_at(top: float, n: int) -> float:
    """The height of the n-th line of text below this top."""
    return top + PAD + LINE * (n + 0.5)


def draw_steps(axes: "Axes", place: Layout, sides: Sequence[Side]) -> None:
    """The axis of steps: a line between two steps, the first difference on a ground of its own, time at the left."""
    differs = first_difference(sides)
    before = None
    wide = place.lefts[0] - MARGIN - TIME - GAP + 0.01
    for n, (row, told) in enumerate(zip(longest(sides), steps_column(sides, wide))):
        top, bottom = place.tops[n], place.tops[n + 1]
        if n == differs:
            axes.axhspan(top, bottom, color=MARKED, linewidth=0, zorder=0)
        axes.plot([MARGIN, place.width - MARGIN], [top, top], color=PALE, linewidth=0.6, zorder=1)
        if row.at != before:
            write(axes, MARGIN, line_at(top, 0), f"t={row.at:g}", NORMAL, GREY)
        before = row.at
        for k, text in enumerate(told):
            draw_step_line(axes, line_at(top, k), text)


def draw_step_line(axes: "Axes", y: float, text: str) -> None:
    x = MARGIN + TIME
    if text.startswith("◆"):
        write(axes, x, y, text, NORMAL, DARK_VERMILLION, bold=True)
    elif text.startswith("“") or text.endswith("”"):
        write(axes, x, y, text, SMALL, GREY)
    else:
        write(axes, x, y, text)


def draw_head(axes: "Axes", place: Layout, n: int, side: Side) -> None:
    """The run's name, its contract, and the names of its lanes, every other one a line lower."""
    x = place.lefts[n] + 0.06
    if side.name != side.contract:
        write(axes, x, 0.42, side.name, NORMAL, bold=True)
    write(axes, x, 0.58, f"contract: {side.contract}", SMALL, GREY)
    for k, name in enumerate(place.lanes):
        write(axes, place.lane(n, name), HEAD - 0.22 + 0.12 * (k % 2), name, SMALL, centre=True)
    for k, job in enumerate(place.jobs[n]):
        write(axes, place.band(n, k) + BAND / 2, HEAD - 0.1, job, SMALL, centre=True)


def draw_bands(axes: "Axes", place: Layout, n: int, side: Side) -> None:
    """A band for each job: its state after each step, in words wherever it changes."""
    from matplotlib.patches import Rectangle

    for k, id in enumerate(place.jobs[n]):
        for first, last, state, attempt in stretches(side.rows, id):
            x, top, bottom = place.band(n, k), place.tops[first], place.tops[last + 1]
            colour = BANDS.get(state, "white")
            dashes = "dashed" if state not in BANDS else "solid"
            axes.add_patch(
                Rectangle((x + 0.03, top + 0.02), BAND - 0.06, bottom - top - 0.04, facecolor=colour, edgecolor=GREY,
                          linewidth=0.6, linestyle=dashes, zorder=2)
            )  # fmt: skip
            write(axes, x + BAND / 2, line_at(top, 0), state, SMALL, centre=True)
            if attempt is not None:
                write(axes, x + BAND / 2, line_at(top, 1), f"attempt {attempt}", SMALL, centre=True)


def draw_lanes(axes: "Axes", place: Layout, n: int, side: Side) -> None:
    """A thin line for each actor, and a thick one where a worker believes to run a job."""
    if not side.rows:
        return
    bottom = place.tops[len(side.rows)]
    for name in place.lanes:
        axes.plot([place.lane(n, name)] * 2, [HEAD, bottom], color="#a6a6a6", linewidth=0.8, zorder=1)
    busy = [{}, *hands(side.rows)]
    for k, (before, now) in enumerate(pairwise(busy)):
        for worker in before.keys() | now.keys():
            top = place.tops[k] if worker in before else line_at(place.tops[k], 0)
            end = place.tops[k + 1] if worker in now else line_at(place.tops[k], 0)
            x = place.lane(n, worker)
            axes.plot([x, x], [top, end], color=ORANGE, linewidth=5, solid_capstyle="butt", zorder=2)


def draw_step(axes: "Axes", place: Layout, n: int, row: Row, said: list[str]) -> None:
    """The step in its lanes: from whom to whom, a mark where it ends, and what was said."""
    y = line_at(place.tops[row.n - 1], 0)
    way = [lane for lane in route(row) if lane in place.lanes]
    style = STYLES.get(row.outcome, Style())
    if len(way) > 1:
        start, end = place.lane(n, way[0]), place.lane(n, way[-1])
        axes.plot([start, end], [y, y], color=style.colour, linewidth=1.2, zorder=3)
        axes.plot([start], [y], "|", color=style.colour, markersize=6, zorder=3)
    if way:
        draw_mark(axes, place.lane(n, way[-1]), y, style)
    if row.outcome == LOST:
        draw_loss(axes, place, n, way, y)
    for k, line in enumerate(said):
        write(axes, place.said(n), line_at(place.tops[row.n - 1], k), line, NORMAL, style.words)


class Style(NamedTuple):
    """How an outcome looks: the colour of its line and mark, the mark's shape, size and inside, and its words."""

    colour: str = BLUE
    shape: str = "o"
    size: float = 6
    inside: str = BLUE
    words: str = INK


STYLES = {
    REFUSED: Style(DARK_VERMILLION, "X", 10, DARK_VERMILLION, DARK_VERMILLION),
    NOT_EXERCISED: Style(GREY, "o", 6, "white", GREY),
    UNDER_WAY: Style(BLUE, "<", 7, "white"),
    HAPPENED: Style(INK, "s", 7, INK),
}


def draw_mark(axes: "Axes", x: float, y: float, style: Style) -> None:
    edge = "white" if style.shape == "X" else style.colour
    axes.plot(
        [x], [y], style.shape, markersize=style.size, markerfacecolor=style.inside, markeredgecolor=edge, zorder=4
    )  # fmt: skip


def draw_loss(axes: "Axes", place: Layout, n: int, way: list[str], y: float) -> None:
    """The answer sets out from the server, and does not arrive."""
    start, end = place.lane(n, way[1]), place.lane(n, way[0])
    low, stop = y + LINE, (start + end) / 2
    axes.plot([start, stop], [low, low], color=DARK_VERMILLION, linewidth=1.2, linestyle="dotted", zorder=3)
    axes.plot([stop], [low], "X", color=DARK_VERMILLION, markersize=7, zorder=4)
