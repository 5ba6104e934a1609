"""Where do the tests get their broker?  From the wheel; where that is missing they are skipped, but never in CI."""

import os

import pytest

from jobslab.lab.broker import NoBroker, a_broker


def is_there() -> bool:
    try:
        with a_broker():
            return True
    except NoBroker:
        return False


def wanted() -> bool:
    """Is a test that needs a broker to run?  In CI always: there its lack is a failure."""
    return os.environ.get("CI") == "true" or is_there()


needs_broker = pytest.mark.skipif(not wanted(), reason="the broker is not installed: pip install 'jobslab[queue]'")
