"""What does the service promise over HTTP?  `create_app` answers with the app; an endpoint decides a status, no rule.

Every endpoint that takes an id checks the owner.  A GET changes nothing: sweeping and purging are the server's.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response

from jobslab import problems
from jobslab.clock import Clock, unguessable
from jobslab.errors import KeyReused
from jobslab.job import Job, State
from jobslab.problems import Refused
from jobslab.stores import Store

POLL_SECONDS = "1"  # what Retry-After asks of a client that waits


def create_app(
    store: Store, clock: Clock | None = None, ids: Callable[[], str] = unguessable, *, results: Path | None = None
) -> FastAPI:
    """The app over this store.  `clock=None`: the store's own time, as in service."""
    app = FastAPI(title="jobslab")
    owner = "lab"

    def now() -> float | None:
        return None if clock is None else clock.now()

    @app.exception_handler(Refused)
    async def refused(request: Request, wrong: Refused) -> Response:
        body = json.dumps(problems.document(wrong.name, wrong.detail))
        return Response(body, problems.PROBLEMS[wrong.name].status, wrong.headers, problems.MEDIA_TYPE)

    @app.post("/jobs", status_code=202)
    def submit(new: dict[str, Any], request: Request) -> Response:
        key = request.headers.get("idempotency-key")
        try:
            submitted = store.submit(ids(), new["kind"], new.get("params", {}), owner, key, now=now())
        except KeyReused as wrong:
            raise Refused("key-reused", str(wrong)) from wrong
        job = submitted.job
        headers = {"Location": f"/jobs/{job.id}", "Content-Location": f"/jobs/{job.id}"}
        if submitted.replayed:
            headers["Idempotency-Replayed"] = "true"
        return status(job, 202, headers)

    def mine(id: str) -> Job:
        job = store.get(id, now=now())
        if job is None or job.owner != owner:
            raise Refused("no-such-job", f"there is no job {id}")
        if not isinstance(job, Job):
            raise Refused("job-expired", f"the job {id} is expired")
        return job

    @app.get("/jobs/{id}")
    def get(id: str) -> Response:
        return status(mine(id))

    @app.post("/jobs/{id}/cancel")
    def cancel(id: str) -> Response:
        mine(id)
        store.cancel(id, owner, now=now())
        return status(mine(id))

    @app.get("/jobs")
    def jobs() -> Response:
        page = [document(job) for job in store.list(owner, now=now())]
        return Response(json.dumps({"jobs": page}), media_type="application/json")

    return app


def document(job: Job) -> dict[str, Any]:
    """The status document of a job; `result` only once it has succeeded, `error` only once it is over without one."""
    told: dict[str, Any] = {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "progress": job.progress,
        "cancel_requested": bool(job.cancel_requested),
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "finished_at": moment(job.finished_at),
        "expires_at": moment(job.expires_at),
        "correlation_id": job.correlation_id,
        "links": links(job),
    }
    if job.state == State.SUCCEEDED:
        told["result"] = json.loads(job.result or "null")
    if job.state in (State.FAILED, State.CANCELLED):
        told["error"] = json.loads(job.error or "null")
    return told


def links(job: Job) -> dict[str, str]:
    """Where to go from here, in the job's state."""
    address = f"/jobs/{job.id}"
    told = {"self": address}
    if not job.done:
        told["cancel"] = f"{address}/cancel"
    if job.state == State.SUCCEEDED:
        told["result"] = f"{address}/result"
    return told


def moment(seconds: float | None) -> str | None:
    """The time as RFC 3339 writes it, in UTC with microseconds, so that the texts sort like the times."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def status(job: Job, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The status document as an answer; its ETag is a hash of its bytes, so equal tags mean equal documents."""
    body = json.dumps(document(job)).encode()
    headers = (headers or {}) | {"Cache-Control": "no-store", "ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"'}
    if not job.done:
        headers["Retry-After"] = POLL_SECONDS
    return Response(body, code, headers, "application/json")
