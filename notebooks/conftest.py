"""What holds while `pytest --nbval` runs the chapters?  Their kernels reach this machine and no other; and a system
without the signals of one chapter leaves it out."""

import os
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

# The signals of chapter 09 are POSIX's.
collect_ignore = [] if os.name == "posix" else ["09-kill-it-for-real.ipynb"]

OFFLINE = str(Path(__file__).resolve().parents[1] / "tests" / "notebooks" / "offline")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A notebook's kernel starts with its first cell, and takes the environment from here."""
    if not isinstance(item, IPyNbCell):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [OFFLINE, os.environ.get("PYTHONPATH")])))
        return (yield)
