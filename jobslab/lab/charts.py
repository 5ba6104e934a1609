"""How is a count drawn that changes with time?  A row of bars for each series, all on one axis of time, figures on top.

The text twin is the same as a table: a line for each moment, a column for each series.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobslab.lab.picture import Picture, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, GREY, BLUE, PALE = "#1a1a1a", "#595959", "#0072B2", "#d9d9d9"  # the blue is Okabe and Ito's
WIDTH, HEIGHT, HEAD, FOOT = 8.6, 1.4, 0.2, 0.45  # inches
SMALL, NORMAL, BIG = 6.5, 8.5, 10.5  # points

Series = Mapping[str, Sequence[int]]


def bars(title: str, moment: str, series: Series, what: str) -> Picture:
    """The series as a Picture; `moment` names the axis of time, `what` what is counted."""
    return draw(figure(title, moment, series, what), alt(title, moment, series), twin(title, moment, series))


def twin(title: str, moment: str, series: Series) -> str:
    wide = [max(len(name), 4) for name in series]
    head = f"{moment:>6}  " + "  ".join(f"{name:>{w}}" for name, w in zip(series, wide))
    rows = [
        f"{n:>6}  " + "  ".join(f"{count:>{w}}" for count, w in zip(counts, wide))
        for n, counts in enumerate(zip(*series.values()))
    ]
    return "\n".join([title, "", head, *rows])


def alt(title: str, moment: str, series: Series) -> str:
    most = [f"{name}: at most {max(of)}, in {moment} {list(of).index(max(of))}, at the end {of[-1]}"
            for name, of in series.items()]  # fmt: skip
    return f"{title}. {'; '.join(most)}."


def figure(title: str, moment: str, series: Series, what: str) -> Any:
    from matplotlib.figure import Figure

    height = HEAD + HEIGHT * len(series) + FOOT
    made = Figure(figsize=(WIDTH, height), facecolor="white")
    made.text(0.1 / WIDTH, 1 - 0.2 / height, title, size=BIG, weight="bold", color=INK, va="center")
    for n, (name, counts) in enumerate(series.items()):
        bottom = FOOT + HEIGHT * (len(series) - 1 - n)
        axes = made.add_axes((0.5 / WIDTH, bottom / height, 1 - 0.65 / WIDTH, (HEIGHT - 0.5) / height))
        row(axes, name, counts)
    axes.set_xlabel(f"{moment}; the bars: {what}", size=NORMAL, color=GREY)
    return made


def row(axes: "Axes", name: str, counts: Sequence[int]) -> None:
    """One series: its name above it, each bar's figure on top."""
    axes.bar(range(len(counts)), counts, width=0.8, color=BLUE)
    axes.set_title(name, size=NORMAL, color=INK, loc="left", pad=12)
    top = max([*counts, 1])
    axes.set_xlim(-0.6, len(counts) - 0.4)
    axes.set_ylim(0, top)
    for n, count in enumerate(counts):
        if count:
            axes.text(n, count + top * 0.03, str(count), size=SMALL, color=INK, ha="center", va="bottom")
    axes.tick_params(labelsize=SMALL, colors=GREY, length=2)
    axes.set_yticks([0, top])
    axes.set_xticks(range(0, len(counts), 2 if len(counts) <= 40 else 5))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
