"""`jobslab run`: what is each flag for?"""


def run() -> None:
    """The scenarios, side by side."""
