"""What does the service take from a request, and what does it refuse?  Each function reads one part, or raises Refused.

JSON is read as RFC 8259 with the restrictions of I-JSON (RFC 7493), since what two readers of one text understand
differently is no promise: a name twice, NaN, half of a surrogate pair.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from fastapi import Request

from jobslab.problems import Refused

DEEPEST = 64  # objects and arrays within each other
HEADER_BYTES = 32 * 1024  # of all names and values together

ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
POSITION = re.compile(r"^([0-9]{1,15}(?:\.[0-9]{1,20})?),([A-Za-z0-9_-]{1,64})$")
UNREADABLE = re.compile("[\x00\ud800-\udfff]")

# RFC 9651, section 3.3.3: visible characters and spaces in double quotes, a backslash before a quote or a backslash.
QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"\Z')

# What /openapi.json says of a key, in either form; the store has the last word.
KEY_PATTERN = r"""^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$"""

# https://www.w3.org/TR/trace-context/#traceparent-header: version 00 has four fields, a later one may have more.
TRACEPARENT = re.compile(
    r"(?!ff|00-.{52}.)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?\Z"
)


class NewJob(NamedTuple):
    """What a caller wants done; whether there is such a kind is the store's to say."""

    kind: str
    params: dict[str, Any]


async def body(request: Request, limit: int) -> bytes:
    """The body, read no further than `limit` bytes."""
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and len(declared) < 19 and int(declared) > limit:
        too_large(limit)
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > limit:
            too_large(limit)
    return bytes(read)


def too_large(limit: int) -> NoReturn:
    raise Refused("body-too-large", f"a body has at most {limit} bytes")


def new_job(request: Request, raw: bytes) -> NewJob:
    """The job that the body describes."""
    check_media_type(request)
    told = parsed(raw)
    if not isinstance(told, dict):
        raise Refused("invalid-job", "the body is a JSON object with kind and params")
    for name in told.keys() - {"kind", "params"}:
        raise Refused("invalid-job", f"the body has no field {name!r}; it has kind and params")
    kind, params = told.get("kind"), told.get("params", {})
    if not isinstance(kind, str):
        raise Refused("invalid-job", "kind is needed, and it is a text")
    return NewJob(kind, params)


def check_media_type(request: Request) -> None:
    """Raises Refused unless the body is declared as JSON in UTF-8 without a content coding."""
    media_type, *parameters = request.headers.get("content-type", "").lower().split(";")
    charsets = [p.strip() for p in parameters if p.strip().startswith("charset=")]
    coding = request.headers.get("content-encoding", "identity").lower()
    if media_type.strip() != "application/json" or coding != "identity":
        raise Refused("unsupported-media-type", "post the job as Content-Type: application/json", ACCEPTS)
    if not set(charsets) <= {"charset=utf-8", 'charset="utf-8"'}:
        raise Refused("unsupported-media-type", "post the job in UTF-8", ACCEPTS)


ACCEPTS = {"Accept": "application/json"}  # RFC 9110, section 12.5.1: in a 415 it says what would have been taken


def parsed(raw: bytes) -> Any:
    """The JSON value of the body."""
    try:
        value = json.loads(
            raw.decode(), object_pairs_hook=unique, parse_constant=no_number, parse_float=finite, parse_int=whole
        )
    except RecursionError:
        too_deep()
    except ValueError as wrong:  # of json, and of the decoding
        raise Refused("bad-json", str(wrong)) from wrong
    check_texts(value)
    return value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object.  Raises ValueError where a name comes twice, of which some readers take the first, some the last."""
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} is twice in one object")
    return told


def no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def finite(text: str) -> float:
    """The number.  Raises ValueError where a double can't hold it."""
    value = float(text)
    if value in (float("inf"), -float("inf")):
        raise ValueError("a number is out of range")
    return value


def whole(text: str) -> int:
    """The whole number.  Raises ValueError where a double can't hold it, not even nearly."""
    finite(text)
    return int(text)


def check_texts(value: Any, depth: int = 0) -> None:
    """Raises Refused where a text in here can't be stored as it is, or where the nesting is too deep."""
    if isinstance(value, str) and UNREADABLE.search(value):
        raise Refused("bad-json", "a text holds a NUL character or half of a surrogate pair")
    if isinstance(value, dict | list):
        if depth == DEEPEST:
            too_deep()
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        for part in inside:
            check_texts(part, depth + 1)


def too_deep() -> NoReturn:
    raise Refused("bad-json", f"objects and arrays are nested at most {DEEPEST} deep")


def idempotency_key(values: Sequence[str]) -> str | None:
    """The key of the headers with that name; the form in quotes and the bare one are the same key.

    Which characters a key may have, and how many, is the store's rule.
    """
    if len(values) > 1:
        raise Refused("bad-idempotency-key", "the header is there more than once")
    if not values or not values[0].startswith('"'):
        return values[0] if values else None
    quoted = QUOTED.match(values[0])
    if quoted is None:
        raise Refused("bad-idempotency-key", "the key begins with a double quote and is no string of RFC 9651")
    return re.sub(r"\\(.)", r"\1", quoted[1])


def correlation_id(values: Sequence[str], make: Callable[[], str]) -> str:
    """The trace that `traceparent` names, or a new id where there is no such header, or none that can be read."""
    told = TRACEPARENT.match(values[0]) if len(values) == 1 else None
    return told[1] if told else make()


def position(text: str | None) -> tuple[float, str] | None:
    """Where a page begins: (created_at, id) of the last job of the page before."""
    if text is None:
        return None
    told = POSITION.match(text)
    if told is None:
        raise Refused("bad-query", "before is what the link `next` of a page says")
    return float(told[1]), told[2]
