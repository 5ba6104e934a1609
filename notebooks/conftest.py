"""What holds while `pytest --nbval` runs the chapters?  Their kernels reach this machine and no other."""

import os
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

OFFLINE = str(Path(__file__).resolve().parents[1] / "tests" / "notebooks" / "offline")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A notebook's kernel starts with its first cell, and takes the environment from here."""
    if not isinstance(item, IPyNbCell):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [OFFLINE, os.environ.get("PYTHONPATH")])))
        return (yield)
