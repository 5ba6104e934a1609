"""Is each fault done for real, different each time, and told by its cause: eight of one seed, twelve of another?"""

from pathlib import Path

import pytest

from jobslab.cause import BY_NAME
from jobslab.lab.faulty import FAULTS, broken

SEED, OTHER = 152, 2026  # the first is chapter 12's


def test_eight_installations_are_diagnosed_right(tmp_path: Path) -> None:
    eight = broken(SEED, 8, tmp_path)
    assert [one.diagnosed().cause.name for one in eight] == [one.cause for one in eight]
    assert len({one.cause for one in eight}) == 8


def test_twelve_more_of_another_seed_are_diagnosed_right(tmp_path: Path) -> None:
    twelve = broken(OTHER, 12, tmp_path)
    assert [one.diagnosed().cause.name for one in twelve] == [one.cause for one in twelve]
    assert len({one.cause for one in twelve}) == 12


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
def test_any_seed_s_twelve_are_diagnosed_right(tmp_path: Path, seed: int) -> None:
    twelve = broken(seed, 12, tmp_path)
    assert {one.fault.__name__: one.diagnosed().cause.name for one in twelve} == {
        one.fault.__name__: one.cause for one in twelve
    }


def test_no_more_than_one_job_is_complained_of(tmp_path: Path) -> None:
    """Nobody cries wolf: all others are well; where a ledger's old copy is put back, it has their entries."""
    for one in broken(OTHER, 12, tmp_path):
        assert {one.diagnosed(id).cause.name for id in one.well} == {"landed"}, one.fault


def test_each_fault_has_a_cause_of_its_own_of_which_where_knows() -> None:
    assert len(set(FAULTS.values())) == len(FAULTS) == 12
    assert set(FAULTS.values()) < set(BY_NAME)
    assert all(fault.__doc__ for fault in FAULTS)


def look(folder: Path, seed: int) -> list[object]:
    return [(one.fault, one.id, one.now, one.diagnosed().known) for one in broken(seed, 6, folder)]


def test_a_seed_makes_the_same_faults_and_another_seed_makes_others(tmp_path: Path) -> None:
    one, again, other = (look(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 3)))
    assert one == again
    assert len(set(map(str, one)) & set(map(str, other))) < 3
