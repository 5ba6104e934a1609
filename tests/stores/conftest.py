"""On which databases does the suite run, and how does a test get at one?"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jobslab import Contract
from jobslab.settings import LAB
from jobslab.stores import Store
from jobslab.stores.sql import SQLStore
from tests.stores.ways import WAYS


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How the store of this test is kept."""
    return request.param


@pytest.fixture
def open_it(way: str, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Opens the store of this test, again and again where it is shared; each is closed at the end."""
    with ExitStack() as opened:

        def open_it(contract: Contract | None = None, **options: Any) -> Store:
            return opened.enter_context(SQLStore(WAYS[way](tmp_path), contract, **{"settings": LAB, **options}))

        yield open_it


@pytest.fixture
def store(open_it: Callable[..., Store]) -> Store:
    """A new store under the full contract, in lab time."""
    return open_it(Contract())
