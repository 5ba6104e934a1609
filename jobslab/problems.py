"""Which problems can an answer tell of?  One table: a name for programs, and an explanation for people.

A problem goes out as `application/problem+json` (RFC 9457).  Its `type` is `/problems/NAME`, which never changes and
can be fetched; `detail` is for people and may change.  No document here carries a stack, SQL, a path or a secret.
"""

import json
from typing import Any, NamedTuple

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 500  # characters


class Problem(NamedTuple):
    """One type of problem: its HTTP status, its title, what it means, and what the caller is to do."""

    status: int
    title: str
    means: str
    do: str


# fmt: off
PROBLEMS: dict[str, Problem] = {
    "bad-json": Problem(
        400, "The body can't be read as JSON",
        "The body is no JSON of RFC 8259 in UTF-8, or it has what some readers of JSON take otherwise than others: a "
        "name twice in one object, NaN, a number out of range, a NUL character, half of a surrogate pair, or a nesting "
        "that is too deep.",
        "Mend the body; nothing was stored, and the key is free."),
    "bad-query": Problem(
        400, "The query can't be read",
        "A parameter after the question mark is not what the operation takes.",
        "Follow the link `next` of a page as it is; `limit` is a whole number in the range that the OpenAPI document "
        "states."),
    "bad-idempotency-key": Problem(
        400, "The idempotency key can't be used",
        "`Idempotency-Key` is sent once and holds 1 to 255 visible ASCII characters, in double quotes or bare.",
        "Make a random key, such as a UUID, for each job that you mean; nothing was stored."),
    "unauthorized": Problem(
        401, "Who are you?",
        "The request carries no bearer token, or one that this service does not know.",
        "Send `Authorization: Bearer TOKEN`."),
    "not-found": Problem(
        404, "There is nothing at this address",
        "No operation of this API has this address.",
        "Look at /docs, or at /openapi.json."),
    "no-such-job": Problem(
        404, "No such job",
        "There is no job with this id, or it is not yours, or it is over for so long that its id is forgotten.",
        "Check the id, and the token that you sent."),
    "method-not-allowed": Problem(
        405, "The address does not take this method",
        "The address is there; the header `Allow` tells which methods it takes.",
        "Use one of those. To cancel a job, POST to its /cancel: DELETE is not offered, since it means cancel to "
        "some services and forget to others."),
    "result-not-ready": Problem(
        409, "The job has no result yet",
        "The job is queued or running; a result is there once its state is SUCCEEDED.",
        "Poll the job, not sooner than its `Retry-After` says, until `done` is true."),
    "job-failed": Problem(
        409, "The job failed and has no result",
        "The job is over; its `error` says why.",
        "Mend what the error tells of, and submit a new job with a new key."),
    "job-cancelled": Problem(
        409, "The job was cancelled and has no result",
        "The job is over because somebody asked for it.",
        "Submit a new job with a new key, if you want it after all."),
    "job-expired": Problem(
        410, "The job's time of retention is over",
        "The job was over, was kept for the time that GET /contract states, and is gone with its result.",
        "Fetch results before `expires_at`; submit a new job if you need it again."),
    "body-too-large": Problem(
        413, "The body is too large",
        "GET /contract states how many bytes a body may have.",
        "Send less: params name the work, they do not carry the data. Nothing was stored."),
    "unsupported-media-type": Problem(
        415, "The body is not declared as JSON",
        "A job is posted with `Content-Type: application/json`, in UTF-8 and without a content coding.",
        "Set the header; nothing was stored."),
    "invalid-job": Problem(
        422, "The body is JSON, and no job",
        "A job is an object with `kind`, one of those that GET /contract lists, with `params`, an object, and with "
        "nothing else.",
        "Mend the body; nothing was stored, and the key is free."),
    "key-reused": Problem(
        422, "The idempotency key belongs to another job",
        "The same key came with another kind or other params before. That first job is untouched.",
        "Use a new key for a new job; with the first job's kind and params the key finds the first job."),
    "headers-too-large": Problem(
        431, "The headers are too large",
        "The headers of the request are longer than this service reads.",
        "Send fewer or shorter ones; nothing was stored."),
    "internal-error": Problem(
        500, "Something went wrong here",
        "This is a fault of the service. It is in its log under the correlation id of this answer.",
        "Try again with the same idempotency key; tell the operator the correlation id if it stays."),
    "result-missing": Problem(
        500, "The result is not there",
        "The job succeeded, and the file of its result is gone. This is a fault of the service.",
        "Tell the operator the job's id; submit a new job with a new key to have the work done again."),
    "queue-full": Problem(
        503, "Too many jobs are waiting",
        "The queue is bounded, so that an accepted job is one that will be done. This one was not accepted.",
        "Try again after `Retry-After`, with the same idempotency key."),
    "store-unavailable": Problem(
        503, "The jobs can't be reached",
        "The service can't use its database just now. It says nothing about any job.",
        "Try again after `Retry-After`, with the same idempotency key."),
}
# fmt: on


class Refused(Exception):
    """A request that is answered with a problem: its name in PROBLEMS, what went wrong this time, more headers."""

    def __init__(self, name: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.name = name
        self.detail = detail
        self.headers = headers or {}


def document(name: str, detail: str) -> dict[str, Any]:
    """The problem as RFC 9457, section 3.1, writes it."""
    problem = PROBLEMS[name]
    return {"type": f"/problems/{name}", "title": problem.title, "status": problem.status, "detail": detail}


def response(refused: Refused) -> Response:
    """The problem as an answer.  A detail may quote what the caller sent, so it is cut."""
    body = json.dumps(document(refused.name, refused.detail[:LONGEST_DETAIL]))
    headers = {"Cache-Control": "no-store"} | refused.headers
    return Response(body, PROBLEMS[refused.name].status, headers, MEDIA_TYPE)


def explanation(name: str) -> str:
    """What GET /problems/NAME says, as plain text for people."""
    problem = PROBLEMS[name]
    return f"{name} ({problem.status})\n\n{problem.title}.\n\n{problem.means}\n\n{problem.do}\n"
