"""On which databases does the suite run, and how does a test get at one?"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobslab import Contract, open_store
from jobslab.settings import LAB
from jobslab.stores import Store
from tests.stores.ways import WAYS


@pytest.fixture(params=WAYS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Where the store of this test is; None: it has no file, and another `open_it` opens another one."""
    return WAYS[request.param](tmp_path)


@pytest.fixture
def open_it(url: str | None) -> Iterator[Callable[..., Store]]:
    """Opens the store at `url`, again and again if need be; each is closed at the end."""
    with ExitStack() as opened:

        def open_it(contract: Contract | None = None, **options: object) -> Store:
            return opened.enter_context(open_store(contract, url, **{"settings": LAB, **options}))

        yield open_it


@pytest.fixture
def store(open_it: Callable[..., Store]) -> Store:
    """A new store under the full contract, in lab time."""
    return open_it(Contract())
