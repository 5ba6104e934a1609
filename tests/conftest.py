"""What holds for every test?  Hypothesis draws the same examples at every run, and waits for no slow machine."""

from hypothesis import settings

settings.register_profile("jobslab", deadline=None, derandomize=True, database=None)
settings.load_profile("jobslab")
