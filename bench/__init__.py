"""How fast is it, as ratios measured in one run?  `make bench`; never a test."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def told(things: Iterable[T], what: str) -> Iterator[T]:
    """The same, with a bar on stderr while they are gone through; it is gone when the figures come."""
    everything = list(things)
    yield from track(everything, what, console=Console(stderr=True), transient=True)
