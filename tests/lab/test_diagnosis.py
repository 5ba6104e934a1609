"""Does a chapter show an operator's evidence as it is, without the answer, and leave nothing behind?"""

import re
import tempfile
from pathlib import Path

import pytest

from jobslab import stage
from jobslab.cause import BY_NAME
from jobslab.lab import faulty
from jobslab.lab.diagnosis import Broken, Incident, found, proofs, repaired, to_choose_from
from jobslab.lab.exercises import exercise
from jobslab.lab.exercises.answer import RIGHT, WRONG
from jobslab.lab.faulty import FAULTS
from jobslab.lab.reached import SIGNS

EIGHT = Broken(seed=152, size=8)


def test_the_evidence_names_no_cause(tmp_path: Path) -> None:
    for one in faulty.broken(2026, 12, tmp_path):
        told = " ".join(found(one).values())
        assert one.cause not in told
        assert one.diagnosed().cause.means not in told


def test_the_evidence_tells_each_cause_from_all_others(tmp_path: Path) -> None:
    """With the numbers that a seed draws left out, no two of the twelve look alike."""
    facts = [found(one) for one in faulty.broken(2026, 12, tmp_path)]
    seen = [re.sub(r"\d+", "n", " ".join(fact.values())) for fact in facts]
    assert len(set(seen)) == 12


def test_all_words_of_a_ward_are_of_the_same_installations() -> None:
    assert str(EIGHT) == repr(EIGHT)
    assert EIGHT.causes() == {name: told.cause.name for name, told in EIGHT.told().items()}
    assert list(EIGHT.evidence().index) == list(EIGHT.causes())
    assert "[unreported]" in str(EIGHT.where(1))
    assert [*EIGHT.journal(1)["verb"]] == [event.verb for event in EIGHT.told()["1"].events]


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    EIGHT.evidence()
    Incident(faulty.the_worker_dies, 1).over_http()
    assert list(tmp_path.iterdir()) == []


def test_the_picture_and_its_text_say_how_far_each_came() -> None:
    picture = EIGHT.how_far()
    told = EIGHT.told()
    lines = picture.text.splitlines()
    for (number, one), line in zip(told.items(), lines[3:]):
        assert line.startswith(f"{number}  {one.id}")
        signs = [sign for sign in line.split() if sign in SIGNS.values()]
        assert signs == [SIGNS[each.answer] for each in one.stages]
    assert picture.text.splitlines()[0] in picture.alt
    assert picture.png.startswith(b"\x89PNG")


def test_who_reconciles_first_saves_what_a_sweep_gives_up() -> None:
    table = repaired(seed=1)
    died = table.loc["the worker dies before it tells"]
    assert [*died] == ["unreported", "unreported", "landed"]
    assert [*table["as found"]] == [*FAULTS.values()]
    assert [*table.loc["the worker dies"]] == ["lease-over", "waiting", "waiting"]


def test_the_tables_are_those_of_the_engine() -> None:
    assert [*proofs().index] == [*stage.NAMES]
    assert [*to_choose_from()["means"]] == [BY_NAME[name].means for name in FAULTS.values()]


def test_the_owner_of_a_damaged_result_is_answered_as_if_all_were_well() -> None:
    asked = Incident(faulty.the_file_is_cut_short, seed=12).asked()
    assert [status for status, _ in asked.values()] == [200, 200]


def test_eight_diagnoses_say_which_to_look_at_again() -> None:
    right = exercise("12.2").right
    assert exercise("12.2").check({str(number): cause for number, cause in right.items()}).outcome == RIGHT
    told = exercise("12.2").check(right | {3: "no-task", 7: "gave-up"})
    assert (told.outcome, told.says) == (WRONG, "6 of 8. Look again at 3, 7; first at 3:")
    assert "row: export QUEUED, attempt 1 of 3" in told.schedule
