"""Which rows does the database itself refuse?  Those that no contract can mean (see test_contracts for all others)."""

from typing import Any

import pytest

from jobslab.job import TERMINAL, State
from jobslab.stores import Store
from tests.stores.steps import IN_STATE, queued, row, succeeded

IMPOSSIBLE: list[tuple[Any, dict[str, Any]]] = [
    (queued, {"state": "WAITING"}),
    (queued, {"state": "queued"}),
    (queued, {"attempt": -1}),
    (queued, {"max_attempts": 0}),
    (queued, {"progress": -0.1}),
    (queued, {"progress": 1.1}),
    (queued, {"cancel_requested": 2}),
    (queued, {"owner": None}),
    (queued, {"id": None}),
    *[(succeeded, {"state": state, "finished_at": None}) for state in sorted(TERMINAL)],
    *[(succeeded, {"state": state, "expires_at": None}) for state in sorted(TERMINAL)],
]


@pytest.mark.parametrize(("how", "wrong"), IMPOSSIBLE, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_an_impossible_row_is_refused(store: Store, how: Any, wrong: dict[str, Any]) -> None:
    job = how(store)
    with pytest.raises(Exception, match=r"(?i)constraint"):
        store.load([job._replace(**wrong)])
    assert store.rows() == (job,)


@pytest.mark.parametrize("state", State)
def test_a_finished_job_brought_back_is_a_row_like_any_other(store: Store, state: State) -> None:
    """What a broken contract writes is admitted, else the database would teach another lesson than the flag."""
    IN_STATE[state](store, "job-2")
    job = succeeded(store)._replace(state=state)
    store.load([job])
    assert row(store) == job
