"""Is PostgreSQL the same store?  The scenarios show the same rows, and the explorer sees the same graph, state by state
and answer by answer.  (test_replay has its runs on every store.)"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobslab.contract import Contract
from jobslab.lab.explore import MOST, searched
from jobslab.lab.memo import Fact, Memo
from jobslab.lab.place import here
from jobslab.lab.postgres import a_store
from jobslab.lab.properties import properties
from jobslab.lab.scenarios import SCENARIOS, Scenario, Variant, lines, play
from jobslab.lab.world import World
from jobslab.settings import LAB
from jobslab.stores import Store, open_store
from tests import postgres

VARIANTS = [(scenario, variant) for scenario in SCENARIOS for variant in scenario.variants]

# In a short run the full contract alone.
CONTRACTS = [
    pytest.param(contract, marks=[pytest.mark.long] * (contract != Contract()), id=str(contract))
    for contract in Contract.all()
]


def titled(pair: tuple[Scenario, Variant]) -> str:
    return f"{pair[0].name}, {pair[1].name}"


@pytest.mark.parametrize("pair", VARIANTS, ids=titled)
def test_every_row_is_as_expected(pair: tuple[Scenario, Variant], tmp_path: Path) -> None:
    with a_store(postgres.server_url(), postgres.schema_name(tmp_path), pair[1].contract) as url:
        rows = play(*pair, here, url)
    for line in lines(*pair, rows):
        assert line.seen == line.expected, line.step
    assert rows == play(*pair)


@contextmanager
def both(contract: Contract, folder: Path) -> Iterator[tuple[Store, Store]]:
    """Two stores under this contract, in lab time: SQLite's and PostgreSQL's."""
    with (
        a_store(postgres.server_url(), postgres.schema_name(folder), contract) as url,
        open_store(contract, settings=LAB) as one,
        open_store(contract, url, settings=LAB) as other,
    ):
        yield one, other


def graph(store: Store) -> tuple[int, int, dict[str, str], list[Fact]]:
    """States, steps, what holds, and every question that was asked of the store, with its answer and its journal."""
    memo = Memo(store)
    world = World(memo, alike=True)
    result = searched(world, properties(world), MOST, False, None)
    assert result.exhausted
    answers = {name: verdict.answer for name, verdict in result.verdicts.items()}
    return result.states, result.steps, answers, memo.facts


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_explorer_sees_the_same_graph(contract: Contract, tmp_path: Path) -> None:
    with both(contract, tmp_path) as (one, other):
        assert graph(one) == graph(other)
