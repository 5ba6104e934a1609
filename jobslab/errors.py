"""What can go wrong that a caller should hear of, each with a name and one sentence that says what to do?

Every error here is somebody's to act on: a command prints its sentence and exits with 2, the API turns it into a
problem document.  A *refused* write is none of these: it is a result (`job.Reply`), since refusing is the contract's
daily work.
"""


class JobslabError(Exception):
    """The parent of all named errors; its text is one sentence for people."""


class BadSubmission(JobslabError):
    """The job that was handed in can't be one; nothing was stored."""


class UnknownKind(BadSubmission):
    """No task is known by this kind."""


class BadParams(BadSubmission):
    """The params are no JSON object."""


class BadKey(BadSubmission):
    """The idempotency key is not 1 to 255 visible ASCII characters."""


class BadNumber(JobslabError, ValueError):
    """A time, a duration, a progress or a count that can't be: negative, not finite, out of its range."""


class KeyReused(JobslabError):
    """The key belongs to a job with another kind or other params; that first job is untouched."""


class IdTaken(JobslabError):
    """A job with this id is there already."""


class UnknownFlag(JobslabError):
    """A contract was asked for by a flag that it does not have."""


class StoreError(JobslabError):
    """The database can't be used as it is."""


class OutcomeUnknown(StoreError):
    """The connection was lost during a commit: the change may have been kept, or not."""


class ContractMismatch(StoreError):
    """The store was made under another contract."""


class SecondServer(StoreError):
    """A store whose jobs die with their server has a server already."""


class SourceError(JobslabError):
    """The file that an export is to read can't be read as a table."""
