"""Does the timeline show what happened, to the eye and in text alike?"""

import itertools
import struct

import pytest

from jobslab.contract import Contract
from jobslab.lab.drawing import figure, key, timeline
from jobslab.lab.place import here
from jobslab.lab.running import Row, run
from jobslab.lab.scenarios import SCENARIOS, play, scenario
from jobslab.lab.schedule import parse
from jobslab.lab.timeline import Side, first_difference, hands, lanes, stretches, twin, words

PICTURES = [
    pytest.param(scene.name, [Side(v.name, str(v.contract), play(scene, v)) for v in scene.variants], id=scene.name)
    for scene in SCENARIOS
]


# Its own title, the names of lanes and marks; "gone" and the arrow stand for "no job" and for a step of its own.
NOT_IN_THE_TEXT = ("a", "title", "server", "store", "sweeper", "◆", "gone", "→", "contract:")


def rows(text: str, contract: str = "all") -> list[Row]:
    with here(Contract.parse(contract)) as place:
        return run(parse(text), place)


def boxes(sides: list[Side]):
    """Every text of the picture with its box in pixels, and the size of the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    made = figure("a title", sides)
    canvas = FigureCanvasAgg(made)
    canvas.draw()
    texts = [text for text in made.axes[0].texts if text.get_text()]
    return [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts], made.bbox


@pytest.mark.parametrize(("name", "sides"), PICTURES)
def test_no_text_lies_on_another_and_none_is_cut(name: str, sides: list[Side]) -> None:
    found, whole = boxes(sides)
    assert len(found) > 10
    for text, box in found:
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1, text
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1, text
    for (one, a), (other, b) in itertools.combinations(found, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5)), (one, other)


@pytest.mark.parametrize(("name", "sides"), PICTURES)
def test_every_word_of_the_picture_is_in_its_text_too(name: str, sides: list[Side]) -> None:
    found, _ = boxes(sides)
    text = twin(name, sides)
    seen = {word.strip("“”") for written, _ in found for word in written.split()}
    for word in seen - set(key(sides).split()):
        assert word in text or word in NOT_IN_THE_TEXT, word


def test_a_refusal_has_its_sign_its_word_and_the_rule_in_picture_and_text() -> None:
    late = "client submits / A claims next / A succeeds / A progresses 50% late"
    sides = [Side("fixed", "all", rows(late))]
    assert "✗ attempt 1 refused: unfinished" in twin("late", sides)
    assert "✗ attempt\u00a01 refused: unfinished" in " ".join(text for text, _ in boxes(sides)[0])


def test_the_first_step_that_went_otherwise_is_the_difference() -> None:
    late = "client submits / A claims next / A succeeds / A progresses 50% late / client polls"
    sides = [Side(text, text, rows(late, text)) for text in ("all but conditional_updates", "all")]
    assert first_difference(sides) == 3
    assert "first difference at step 4, A progresses 50% late" in timeline("late", sides).alt
    assert first_difference(sides[:1]) is None
    assert first_difference([sides[0], sides[0]]) is None
    assert "no difference" in twin("twice the same", [sides[0], sides[0]])


def test_a_run_that_is_longer_differs_where_the_other_has_ended() -> None:
    sides = [Side("short", "all", rows("client submits")), Side("long", "all", rows("client submits / client polls"))]
    assert first_difference(sides) == 1
    assert "first difference at step 2, client polls: 200; state QUEUED; attempt 0" in timeline("x", sides).text


@pytest.mark.parametrize("scene", SCENARIOS, ids=lambda scene: scene.name)
def test_who_is_at_work_is_what_the_lab_counts(scene) -> None:
    """The picture's thick lines are derived from the rows; here the lab itself is asked after every step."""
    for variant in scene.variants:
        steps = [step for step in scene.schedule(variant) if step.verb != "count workers"]
        asked = parse("count workers running job-1")[0]
        with here(variant.contract) as place:
            told = run([one for step in steps for one in (step, asked)], place)
        own, counts = told[::2], [int(row.answer) for row in told[1::2]]
        assert [len(busy) for busy in hands(own)] == counts


def test_a_worker_lets_go_when_it_crashes_reports_or_is_refused_and_not_by_a_late_report() -> None:
    told = rows("client submits / A claims next / A progresses 10% / A crashes / A succeeds late / A succeeds")
    assert hands(told) == [{}, {"A": 1}, {"A": 1}, {}, {}, {}]
    waits = rows("client submits / A claims next / A succeeds late / A progresses 20%")
    assert hands(waits) == [{}, {"A": 1}, {"A": 1}, {}]
    stale = "client submits / A claims next / 100 units pass / sweep / B claims next / A progresses 50% / B renews"
    assert hands(rows(stale))[-3:] == [{"A": 1, "B": 2}, {"B": 2}, {"B": 2}]


def test_lanes_stand_in_one_order_and_only_for_those_who_act() -> None:
    told = rows("client submits / B claims next / A claims next / sweep / client2 polls job-1")
    assert lanes([Side("", "all", told)]) == ["client", "client2", "server", "store", "A", "B", "sweeper"]
    assert lanes([Side("", "all", rows("A claims next"))]) == ["store", "A"]


def test_the_band_says_gone_once_a_job_that_was_there_is_no_more() -> None:
    told = rows("100 units pass / client submits / restart / client polls", "all but persistence")
    assert list(stretches(told, "job-1")) == [(1, 1, "QUEUED", 0), (2, 3, "gone", None)]


def test_a_picture_is_an_image_with_alternative_text_and_a_text_twin() -> None:
    sides = [Side("one", "all", rows("client submits"))]
    picture = timeline("small", sides)
    data, metadata = picture._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == str(picture) == repr(picture) == twin("small", sides).strip()
    assert metadata["image/png"]["alt"] == "Timeline of small: 1 steps. one [all] ends with job-1 QUEUED attempt 0."
    pixels = struct.unpack(">I", picture.png[16:20])[0]
    assert metadata["image/png"]["width"] == round(pixels * 96 / 160)


def test_in_a_notebook_the_text_follows_the_picture_to_be_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **more: shown.append((data, more)))
    picture = timeline("a < b", [Side("one", "all", rows("client submits"))])
    picture._ipython_display_()
    data, metadata = picture._repr_mimebundle_()
    assert shown[0] == (data, {"metadata": metadata, "raw": True})
    assert shown[1][0]["text/html"].startswith("<details><summary>the same as text</summary><pre>a &lt; b: 1 steps\n")


def test_the_same_rows_give_the_same_bytes() -> None:
    scene = scenario("late progress")
    twice = [
        timeline("late", [Side(v.name, str(v.contract), play(scene, v)) for v in scene.variants]) for _ in range(2)
    ]
    assert twice[0] == twice[1]
    assert b"matplotlib" not in twice[0].png


def test_a_lost_response_and_a_step_that_could_not_happen_have_words() -> None:
    told = rows("client submits key=k / response lost / B succeeds")
    assert [words(row) for row in told] == ["⚡ client timeout", "○ not exercised: B has no job in hand"]


def test_the_picture_in_readme_is_what_the_code_draws() -> None:
    """`make figures` draws it.  Another zlib packs the same picture into other bytes, so that pixels are compared."""
    import io

    from PIL import Image, ImageChops

    from tools.figures import TIMELINE, picture

    stored, drawn = (Image.open(io.BytesIO(png)).convert("L") for png in (TIMELINE.read_bytes(), picture().png))
    assert stored.size == drawn.size
    other = ImageChops.difference(stored, drawn).point(lambda value: 255 * (value > 64))
    assert sum(other.histogram()[1:]) < stored.width * stored.height / 1000
