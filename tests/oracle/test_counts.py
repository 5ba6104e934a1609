"""Has the explorer's world as many states as the same world written for Spin?

Spin's numbers are pinned; `make oracle` counts again where Spin is installed.
"""

import shutil

import pytest

from jobslab.contract import Contract
from tests.oracle.counts import PAIR, SIZES, Size, by_spin, by_the_explorer

SMALL = [size for size in SIZES if sum(size.states) < 60_000]
FEW = [Contract(), Contract().without("persistence"), Contract.none()]


@pytest.mark.parametrize("size", SMALL, ids=lambda size: size.name)
def test_the_explorer_counts_the_states_that_spin_counted(size: Size) -> None:
    assert tuple(by_the_explorer(contract, size.bounds) for contract in Contract.all()) == size.states


@pytest.mark.long
@pytest.mark.parametrize("size", [size for size in SIZES if size not in SMALL], ids=lambda size: size.name)
def test_and_those_of_the_larger_world(size: Size) -> None:
    assert tuple(by_the_explorer(contract, size.bounds) for contract in Contract.all()) == size.states


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("spin") and shutil.which("gcc")), reason="needs spin and gcc")
@pytest.mark.parametrize("contract", FEW, ids=str)
def test_spin_counts_them_again_where_it_is_installed(contract: Contract) -> None:
    (pinned,) = [size.states for size in SIZES if size.bounds == PAIR]
    assert by_spin(contract, PAIR) == pinned[Contract.all().index(contract)]
