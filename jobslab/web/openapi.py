"""Which operations are there, and what may each answer?  One table; the routes and /openapi.json are made from it.

What is not in this table is never answered: a fuzzer that reads /openapi.json holds the service to it.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from fastapi import FastAPI, Response, Security
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from jobslab.problems import MEDIA_TYPE, PROBLEMS
from jobslab.web.documents import ContractDocument, JobDocument, PageDocument, ProblemDocument, TraceDocument
from jobslab.web.envelope import CORRELATION


class Operation(NamedTuple):
    """One operation: its endpoint by name, what it answers when all is well, and the problems that it may have."""

    method: str
    path: str
    endpoint: str
    code: int
    says: str
    body: Any  # a model, or the media types of what is no model
    problems: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    owned: bool = True  # only the owner's own
    reads: bool = True  # the store


OF_A_JOB = ("no-such-job", "job-expired")
STATUS = ("Retry-After", "ETag")

# fmt: off
OPERATIONS = (
    Operation("POST", "/jobs", "submit", 202, "the job is kept; this is its status", JobDocument,
              ("bad-json", "bad-idempotency-key", "body-too-large", "unsupported-media-type", "invalid-job",
               "key-reused", "queue-full"),
              ("Location", "Content-Location", *STATUS, "Idempotency-Replayed")),
    Operation("GET", "/jobs", "jobs", 200, "a page of jobs", PageDocument, ("bad-query",)),
    Operation("GET", "/jobs/{id}", "job", 200, "the job's status", JobDocument, OF_A_JOB, STATUS),
    Operation("GET", "/jobs/{id}/result", "result", 200, "the result", ("text/csv", "application/json"),
              (*OF_A_JOB, "result-not-ready", "job-failed", "job-cancelled", "result-missing")),
    Operation("GET", "/jobs/{id}/trace", "trace", 200, "where the job is", TraceDocument, OF_A_JOB),
    Operation("POST", "/jobs/{id}/cancel", "cancel", 200, "the job's status afterwards", JobDocument, OF_A_JOB, STATUS),
    Operation("GET", "/contract", "contract", 200, "the contract", ContractDocument, owned=False, reads=False),
    Operation("GET", "/healthz", "healthz", 200, "the jobs can be reached", ("application/json",), owned=False),
    Operation("GET", "/problems/{name}", "problem", 200, "the explanation", ("text/plain",), ("not-found",),
              owned=False, reads=False),
)
# fmt: on

HEADERS = {
    "Location": "the address of the job's status",
    "Content-Location": "the same: the body is that status",
    "Retry-After": "seconds to wait before asking again; only while the job is not done",
    "ETag": "equal tags are equal documents",
    "Idempotency-Replayed": "`true` where an earlier request with this key has made the job",
    CORRELATION: "the trace of this exchange, as it stands in the service's log",
}

# OpenAPI's way to say that the id in the body of a 202 is the id of these.
FOLLOWED_BY = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/id"}}
    for name in ("job", "cancel", "result", "trace")
}


def add(app: FastAPI, operation: Operation, endpoint: Callable[..., Response], kinds: Collection[str]) -> None:
    """Let the app answer this operation by `endpoint`, and say so in its OpenAPI document."""
    responses: dict[int | str, dict[str, Any]] = {operation.code: good(operation), **bad(app, operation)}
    if operation.endpoint == "job":
        responses[304] = {"description": "the status is still the one that `If-None-Match` names"}
    app.add_api_route(
        operation.path,
        endpoint,
        methods=[operation.method],
        operation_id=operation.endpoint,
        status_code=operation.code,
        response_model=None,
        response_class=PlainTextResponse if operation.body == ("text/plain",) else Response,
        responses=responses,
        dependencies=[Security(HTTPBearer(auto_error=False))] if operation.owned and app.state.tokens else [],
        openapi_extra=takes(kinds) if operation.endpoint == "submit" else None,
    )


def good(operation: Operation) -> dict[str, Any]:
    """The answer when all is well."""
    told: dict[str, Any] = {"description": operation.says, "headers": headers((*operation.headers, CORRELATION))}
    if operation.code == 202:
        told["links"] = FOLLOWED_BY
    if isinstance(operation.body, tuple):
        return told | {"content": {media_type: {} for media_type in operation.body}}
    return told | {"content": {"application/json": {"schema": schema(operation.body)}}}


def bad(app: FastAPI, operation: Operation) -> dict[int | str, dict[str, Any]]:
    """The problems by their status, each with a link to its explanation."""
    names = ["headers-too-large", "internal-error", *operation.problems]
    names += ["store-unavailable"] * operation.reads + ["unauthorized"] * bool(operation.owned and app.state.tokens)
    told: dict[int | str, dict[str, Any]] = {}
    for status in sorted({PROBLEMS[name].status for name in names}):
        these = [f"[{name}](/problems/{name})" for name in names if PROBLEMS[name].status == status]
        told[status] = {
            "description": ", ".join(dict.fromkeys(these)),
            "headers": headers((CORRELATION,)),
            "content": {MEDIA_TYPE: {"schema": schema(ProblemDocument)}},
        }
    return told


def headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"description": HEADERS[name], "schema": {"type": "string"}} for name in names}


def schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def takes(kinds: Collection[str]) -> dict[str, Any]:
    """The body of a submit."""
    job = {
        "type": "object",
        "required": ["kind"],
        "properties": {
            "kind": {"type": "string", "enum": list(kinds)},
            "params": {"type": "object", "default": {}, "description": "what this kind of job needs to know"},
        },
        "additionalProperties": False,
    }
    example = {"kind": "export", "params": {"table": "orders"}}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": job, "example": example}}}}


def finished(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's document with our models, and without the 422 that it writes down for every operation with a parameter:
    ours are refused otherwise, and those of a path can't be."""
    for methods in document["paths"].values():
        for operation in methods.values():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in (ContractDocument, JobDocument, PageDocument, ProblemDocument, TraceDocument):
        told = model.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
        schemas |= told.pop("$defs", {}) | {model.__name__: told}
    return document
