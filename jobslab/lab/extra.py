"""What is a user told whose kernel lacks a package of an extra?  One sentence that says what to do."""

from importlib import import_module
from typing import Any

from jobslab.errors import JobslabError

SENTENCE = "{package} is missing in this kernel ({why}): pip install 'jobslab[lab]', or choose the kernel where you did"


class MissingExtra(JobslabError, ImportError):
    """A package of an extra is not there."""


def need(package: str, why: str) -> Any:
    """The package, which is one of the extra `lab`, imported.  Raises MissingExtra."""
    try:
        return import_module(package)
    except ImportError as missing:
        raise MissingExtra(SENTENCE.format(package=package, why=why)) from missing
