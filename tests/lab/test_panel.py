"""Do the outcome and the timeline follow the switches, and does the plain call show the same?"""

import builtins
import subprocess
import sys

import pytest

from jobslab.contract import FLAGS
from jobslab.errors import UnknownFlag
from jobslab.lab.extra import MissingExtra
from jobslab.lab.panel import WIDGET, as_html, flip, panel
from jobslab.lab.scenarios import SCENARIOS, UnknownScenario


def parts(shown):
    choice, row, html = shown.box.children
    return choice, dict(zip(FLAGS, row.children)), html


def test_a_switch_changes_the_outcome_and_the_timeline() -> None:
    choice, switches, html = parts(panel("restart"))
    assert "✓ nothing broken" in html.value
    switches["leases"].value = False
    assert html.value == as_html(flip("restart", leases=False))
    assert "✗ broken: every accepted job reaches a terminal state" in html.value
    choice.value = "late progress"
    assert html.value == as_html(flip("late progress", leases=False))


def test_there_is_a_switch_for_each_flag_in_their_order_and_a_choice_of_all_scenarios() -> None:
    choice, switches, _ = parts(panel("restart", leases=False))
    assert [switch.description for switch in switches.values()] == list(FLAGS)
    assert [flag for flag, switch in switches.items() if not switch.value] == ["leases"]
    assert list(choice.options) == [scene.name for scene in SCENARIOS]


def test_without_a_live_kernel_the_picture_and_its_text_remain() -> None:
    data, metadata = panel("restart", leases=False)._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain", WIDGET}
    assert data["text/plain"] == repr(flip("restart", leases=False))
    assert data["text/plain"].splitlines()[0] in metadata["image/png"]["alt"]


def test_what_the_panel_shows_can_be_read_without_seeing_it() -> None:
    html = as_html(flip("restart", persistence=False))
    assert 'alt="The server is restarted while a job runs.' in html
    assert "<summary>the same as text</summary>" in html


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownScenario, match="there is no scenario 'restarted'"):
        flip("restarted")
    with pytest.raises(UnknownFlag, match="there is no flag 'lease'"):
        flip("restart", lease=False)


def test_without_ipywidgets_one_sentence_names_the_plain_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(MissingExtra) as told:
        panel("restart")
    assert str(told.value) == (
        "ipywidgets is missing in this kernel (it makes the switches; flip('restart', leases=False) does the same "
        "without): pip install 'jobslab[lab]', or choose the kernel where you did"
    )
    assert "✓ nothing broken" in repr(flip("restart"))


WITHOUT = """
import sys
sys.modules[{package!r}] = None
try:
    from jobslab.lab.notebook import *
    timeline(run("restart"))
except ImportError as told:
    print(f"{{type(told).__name__}}: {{told}}")
"""


DOES = [("pandas", "it makes the tables"), ("matplotlib", "it draws the timelines")]


@pytest.mark.parametrize(("package", "why"), DOES)
def test_a_chapter_in_a_kernel_that_lacks_a_package_says_one_sentence(package: str, why: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(package=package)], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        f"MissingExtra: {package} is missing in this kernel ({why}): pip install 'jobslab[lab]', or choose the kernel "
        "where you did\n"
    )
    assert done.stderr == ""


def test_the_words_of_a_chapter_hide_no_builtin() -> None:
    import jobslab.lab.notebook as notebook

    assert [name for name in notebook.__all__ if hasattr(builtins, name)] == []
    assert all(hasattr(notebook, name) for name in notebook.__all__)
