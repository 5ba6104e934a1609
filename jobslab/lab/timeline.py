"""What happened, in which order, and where do two contracts part?  The rows of runs as a timeline, and as its text.

Time runs downwards, a line a step; each run has a swimlane for every actor and a band with the state of each job.  Runs
of one schedule stand side by side on the one axis of steps, and the first step that went otherwise is marked.  Nothing
is told by colour alone: a mark has its word, a band its state.  Picture and text are made from the same rows.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from jobslab.lab.picture import Picture, draw
from jobslab.lab.running import ACCEPTED, HAPPENED, LOST, NOT_EXERCISED, REFUSED, UNDER_WAY, Row
from jobslab.lab.schedule import REPORTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Side(NamedTuple):
    """One run of the schedule: what it is called, under which contract it ran, and its rows."""

    name: str
    contract: str
    rows: Sequence[Row]


def timeline(title: str, sides: Sequence[Side]) -> Picture:
    """The runs side by side as a Picture; its text has one line a step and run."""
    return draw(figure(title, sides), alt(title, sides), twin(title, sides))


# In words


SIGNS = {REFUSED: "✗ ", NOT_EXERCISED: "○ ", LOST: "⚡ "}


def words(row: Row) -> str:
    """What became of the step: a sign where something went wrong, and words that say the same."""
    about = f"attempt {row.names} " if row.names is not None and base(row.verb) in REPORTS else ""
    why = row.refused_by if row.answer == REFUSED else row.note
    return SIGNS.get(row.outcome, "") + about + row.answer + (f": {why}" if why else "")


def states(row: Row) -> str:
    """How the jobs stand after the step."""
    jobs = (f"{job.id} {job.state} attempt {job.attempt}" for job in row.jobs)
    return "; ".join(jobs) or "no job"


def at_work(busy: dict[str, int]) -> str:
    """Which workers believe to run a job."""
    return " | at work: " + ", ".join(f"{worker} (attempt {busy[worker]})" for worker in sorted(busy)) if busy else ""


def twin(title: str, sides: Sequence[Side]) -> str:
    """The timeline as text."""
    blocks = [headline(title, sides)]
    blocks += ["\n".join([full_name(side), *lines(side.rows)]) for side in sides]
    return "\n\n".join([*blocks, *difference_in_words(sides)])


def full_name(side: Side) -> str:
    return side.name if side.name == side.contract else f"{side.name} [{side.contract}]"


def lines(rows: Sequence[Row]) -> list[str]:
    cells = [
        (f"t={row.at:g}", f"{row.n}", step_and_label(row), words(row), states(row) + at_work(busy))
        for row, busy in zip(rows, hands(rows))
    ]
    wide = [max((len(cell[column]) for cell in cells), default=0) for column in range(4)]
    return [
        f"  {at:<{wide[0]}}  {n:>{wide[1]}}  {step:<{wide[2]}}  {said:<{wide[3]}}  {jobs}"
        for at, n, step, said, jobs in cells
    ]


def step_and_label(row: Row) -> str:
    return f"{row.step} ({row.label})" if row.label else row.step


def headline(title: str, sides: Sequence[Side]) -> str:
    runs = f", {len(sides)} runs" if len(sides) > 1 else ""
    return f"{title}: {len(longest(sides))} steps{runs}"


def first_difference(sides: Sequence[Side]) -> int | None:
    """Where the runs part: the index of the first step whose outcome is not the same in all, or None."""
    for n, rows in enumerate(zip_longest(*(side.rows for side in sides))):
        if len({row and (words(row), row.jobs) for row in rows}) > 1:
            return n
    return None


def difference_in_words(sides: Sequence[Side]) -> Iterator[str]:
    at = first_difference(sides)
    if at is not None:
        here = [side.rows[at] for side in sides if at < len(side.rows)]
        yield f"first difference at step {at + 1}, {step_and_label(here[0])}: {' | '.join(words(row) for row in here)}"
    elif len(sides) > 1:
        yield "no difference"


def alt(title: str, sides: Sequence[Side]) -> str:
    """The timeline in a few sentences, for the image's alternative text."""
    ends = (f"{full_name(side)} ends with {states(side.rows[-1])}" for side in sides if side.rows)
    parts = ["Timeline of " + headline(title, sides), *difference_in_words(sides), "; ".join(ends)]
    return ". ".join(parts) + "."


# Who does what, and to whom


def base(verb: str) -> str:
    """The report inside "send succeed" and "succeed late"."""
    return verb.removeprefix("send ").removesuffix(" late")


SWEEPS = ("look", "requeue", "sweep")
WORKS = ("pick", "claim", "claim next", "crash")
ASKS = ("submit", "submit again", "poll", "cancel", "count jobs")
ON_ITS_OWN = ("give up", "judge", "crash")  # nobody is asked


def kind_of_lane(row: Row) -> int | None:
    """0 a client, 1 the server, 3 a worker, 4 a sweeper; 2 is the store; None: nobody's, like time."""
    if row.actor.startswith("client"):
        return 0
    if row.verb in ("restart", "purge"):
        return 1
    if row.verb in SWEEPS:
        return 4
    return 3 if row.verb in WORKS or base(row.verb) in REPORTS else None


def lanes(sides: Sequence[Side]) -> list[str]:
    """The lanes of a run, from left to right: clients, server, store, workers, sweepers; who never acts has none."""
    found = {(kind, row.actor) for side in sides for row in side.rows if (kind := kind_of_lane(row)) is not None}
    asked = {(2, "store")} | ({(1, "server")} if any(kind == 0 for kind, _ in found) else set())
    return [actor for _, actor in sorted(found | asked)]


def route(row: Row) -> list[str]:
    """The lanes that a step passes, the first one its actor's."""
    if kind_of_lane(row) is None:
        return []
    if row.outcome in (NOT_EXERCISED, UNDER_WAY) or row.verb in ON_ITS_OWN or kind_of_lane(row) == 1:
        return [row.actor]
    return [row.actor, "server", "store"] if row.verb in ASKS else [row.actor, "store"]


LAST_REPORTS = ("succeed", "fail", "retry", "stop")


def hands(rows: Iterable[Row]) -> list[dict[str, int]]:
    """After each step, which workers believe to run a job, and as which attempt."""
    busy: dict[str, int] = {}
    told = []
    for row in rows:
        busy = after(busy, row)
        told.append(busy)
    return told


def after(busy: dict[str, int], row: Row) -> dict[str, int]:
    if row.verb == "restart":
        return {}
    if row.verb in ("claim", "claim next") and row.outcome == ACCEPTED and row.names is not None:
        return {**busy, row.actor: row.names}
    return {worker: attempt for worker, attempt in busy.items() if worker != row.actor or not lets_go(row)}


def lets_go(row: Row) -> bool:
    """Does this step of a worker end its belief?  A late report does not: nobody waits for the answer."""
    if row.verb == "crash":
        return True
    if row.verb.endswith(" late") or row.outcome == NOT_EXERCISED or row.refused_by == "attempts_left":
        return False
    return base(row.verb) in LAST_REPORTS or (base(row.verb) in REPORTS and row.outcome == REFUSED)


# As a picture: all measures in inches, y downwards

INK, GREY, PALE = "#1a1a1a", "#595959", "#d9d9d9"
BLUE, VERMILLION, DARK_VERMILLION, ORANGE = "#0072B2", "#D55E00", "#A03C00", "#E69F00"  # Okabe and Ito's, one darkened
BANDS = {
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


def longest(sides: Sequence[Side]) -> Sequence[Row]:
    return max((side.rows for side in sides), key=len)


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


def key(sides: Sequence[Side]) -> str:
    """What the marks in this picture mean: those alone that are in it."""
    found = {row.outcome for side in sides for row in side.rows}
    signs = [("✗ refused", REFUSED), ("○ not exercised", NOT_EXERCISED), ("◁ sent, not arrived", UNDER_WAY)]
    if any(row.outcome == HAPPENED and route(row) for side in sides for row in side.rows):
        signs.append(("■ crash or restart", HAPPENED))
    busy = ["thick line: believes that it runs the job"] if any(any(hands(side.rows)) for side in sides) else []
    return "   ".join(["● done or answered", *(sign for sign, outcome in signs if outcome in found), *busy])


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


def stretches(rows: Sequence[Row], id: str) -> Iterator[tuple[int, int, str, int | None]]:
    """Where the job keeps its state and attempt: (first step, last step, state, attempt), counted from 0.  A job that
    was there and is no more is "gone"."""
    told: list[tuple[str, int | None] | None] = []
    for row in rows:
        job = next((job for job in row.jobs if job.id == id), None)
        was_there = any(told)
        told.append((job.state, job.attempt) if job else ("gone", None) if was_there else None)
    first = 0
    for n, now in enumerate(told):
        if n + 1 == len(told) or told[n + 1] != now:
            if now is not None:
                yield first, n, *now
            first = n + 1


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
