"""Who is the caller?  A file of tokens says which bearer token speaks for which owner.

One `owner token` a line; an owner may have several, so that tokens can be changed without a gap.  Only their hashes
stay in memory, and all are compared each time, so that the time of an answer tells nothing of how near a guess was.
"""

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobslab.errors import JobslabError

SHORTEST = 16  # characters of a token

LINE = re.compile(rf"\s*([!-~]{{1,64}})\s+([A-Za-z0-9._~+/-]{{{SHORTEST},}}=*)\s*\Z")  # RFC 6750, section 2.1
BEARER = re.compile(r"bearer +([!-~]+)\Z", re.IGNORECASE)


class TokensError(JobslabError):
    """The file of tokens can't be used."""


class Tokens(NamedTuple):
    """The hash of each token with its owner."""

    owners: tuple[tuple[bytes, str], ...]

    def owner(self, authorization: Sequence[str]) -> str | None:
        """The owner that the headers `Authorization` prove, or None."""
        told = BEARER.match(authorization[0]) if len(authorization) == 1 else None
        given = hashed(told[1] if told else "")
        found = [owner for hash, owner in self.owners if hmac.compare_digest(hash, given)]
        return found[0] if found else None


def hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def read_tokens(path: Path) -> Tokens:
    """The tokens of the file.  Raises TokensError, which never quotes a token."""
    try:
        with path.open(encoding="utf-8") as file:
            check_private(path, os.fstat(file.fileno()).st_mode)
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as wrong:
        said = wrong.strerror if isinstance(wrong, OSError) else "it is not text in UTF-8"
        raise TokensError(f"the file of tokens {path} can't be read: {said}") from wrong
    told = {n: line for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")}
    owners = tuple(owner_of(path, n, line) for n, line in told.items())
    if not owners:
        raise TokensError(f"{path} holds no token; write one `owner token` a line")
    if len({hash for hash, _ in owners}) < len(owners):
        raise TokensError(f"{path} has one token twice; give each line a token of its own")
    return Tokens(owners)


def check_private(path: Path, mode: int) -> None:
    """Raises TokensError where everybody on this machine may read or change the file."""
    if os.name == "posix" and mode & (stat.S_IROTH | stat.S_IWOTH):
        raise TokensError(f"{path} can be read or written by everybody on this machine; say: chmod 600 {path}")


def owner_of(path: Path, n: int, line: str) -> tuple[bytes, str]:
    told = LINE.match(line)
    if told is None:
        raise TokensError(
            f"line {n} of {path} is not `owner token` with a token of {SHORTEST} or more characters; make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return hashed(told[2]), told[1]
