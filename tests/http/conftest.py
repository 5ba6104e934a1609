"""The service that most tests of the HTTP contract ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.room import TWO, Room, room


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Room]:
    """One owner, no token."""
    with room(tmp_path) as made:
        yield made


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Room]:
    """Two owners with a token each."""
    with room(tmp_path, tokens=TWO) as made:
        yield made
