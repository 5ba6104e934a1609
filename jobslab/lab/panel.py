"""What if that flag were off?  Five switches and a scenario; the outcome and the timeline follow.

`flip` is the plain function; `panel` is the same with switches to click on.  The widgets carry values alone: no
`interact` and no Output widget, whose messages strict nbval does not know.
"""

import base64
from html import escape
from typing import Any, NamedTuple

from jobslab.contract import FLAGS, Contract
from jobslab.lab.drawing import timeline
from jobslab.lab.extra import need
from jobslab.lab.picture import Picture
from jobslab.lab.scenarios import SCENARIOS, scenario
from jobslab.lab.trial import Trial, run
from jobslab.lab.verdicts import HOLDS, VIOLATED, faults, judged

WIDGET = "application/vnd.jupyter.widget-view+json"


def flip(name: str, **flags: bool) -> Picture:
    """The scenario under the full contract with these flags on or off: `flip("restart", leases=False)`.

    Raises UnknownScenario, UnknownFlag, and MissingExtra without matplotlib.
    """
    need("matplotlib", "it draws the timelines")
    scene = scenario(name)
    trial = run(scene, Contract().without(*(flag for flag, on in flags.items() if not on)))
    said = outcome(trial)
    picture = timeline(scene.name, [trial.side])
    text = f"{scene.question}\n{said}\n\n{picture.text}"
    return picture._replace(text=text, alt=f"{scene.question} {said}. {picture.alt}")


def outcome(trial: Trial) -> str:
    """In one line: which promises broke, which held, and what went wrong on the way."""
    told = judged(trial)
    broken = [name for name, one in told.items() if one.verdict == VIOLATED]
    held = [name for name, one in told.items() if one.verdict == HOLDS]
    parts = [f"✗ broken: {'; '.join(broken)}" if broken else "✓ nothing broken", f"held: {'; '.join(held) or 'none'}"]
    return ". ".join([*parts, f"the fault: {'; '.join(faults(trial)) or 'none fired'}"])


class Panel(NamedTuple):
    """Switches to click on; where there is no live kernel, the picture and its text."""

    box: Any
    picture: Picture

    def __repr__(self) -> str:
        return repr(self.picture)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = self.picture._repr_mimebundle_()
        return {**data, WIDGET: self.box._repr_mimebundle_()[WIDGET]}, metadata


def panel(name: str = "restart", **flags: bool) -> Panel:
    """Switches for the five flags and a choice of scenarios, set like this at first.

    Raises as `flip` does, and MissingExtra without ipywidgets; `flip` needs none.
    """
    widgets = need("ipywidgets", "it makes the switches; flip('restart', leases=False) does the same without")
    first = flip(name, **flags)
    choice = widgets.Dropdown(options=[scene.name for scene in SCENARIOS], value=name, description="scenario")
    switches = {flag: widgets.Checkbox(value=flags.get(flag, True), description=flag, indent=False) for flag in FLAGS}
    shown = widgets.HTML(value=as_html(first))

    def follow(_: Any) -> None:
        shown.value = as_html(flip(choice.value, **{flag: switch.value for flag, switch in switches.items()}))

    for widget in (choice, *switches.values()):
        widget.observe(follow, names="value")
    return Panel(widgets.VBox([choice, widgets.HBox([*switches.values()]), shown]), first)


def as_html(picture: Picture) -> str:
    """What the panel shows: question and outcome, the picture with its alternative text, and the text to unfold."""
    question, said, *_ = picture.text.splitlines()
    image = base64.b64encode(picture.png).decode()
    return (
        f"<p>{escape(question)}</p><p><b>{escape(said)}</b></p>"
        f'<img src="data:image/png;base64,{image}" alt="{escape(picture.alt)}" width="{picture.shown_width}">'
        f"{picture.unfolds}"
    )
