"""What if a store is closed while others are at work on it, as when a process ends beside a task that does not?"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from jobslab.errors import StoreError
from jobslab.stores import Store
from tests.stores.steps import running

THREADS, ROUNDS = 4, 10


def until_closed(store: Store, start: Barrier) -> str:
    """Reports and looks as fast as it can; what it was told in the end."""
    start.wait()
    try:
        while True:
            assert store.renew("job-1", 1, "A", now=1).accepted
            assert store.get("job-1", now=1) is not None
    except StoreError as wrong:
        return str(wrong)


def test_a_store_that_is_closed_under_others_tells_them_so(open_it: Callable[..., Store]) -> None:
    for _ in range(ROUNDS):
        store, start = open_it(), Barrier(THREADS + 1)
        store.load(())
        running(store)
        with ThreadPoolExecutor(THREADS) as pool:
            told = [pool.submit(until_closed, store, start) for _ in range(THREADS)]
            start.wait()
            store.close()
        assert all("is closed already" in one.result() for one in told)


def test_closing_twice_is_closing_once(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed already"):
        store.rows()
