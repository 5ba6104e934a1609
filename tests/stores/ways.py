"""Which ways are there to keep a store?  The one list that the whole suite runs over."""

# From a folder of the test's own to the url that `open_store` takes.  A database that joins needs one line here.
WAYS = {
    "a file": lambda folder: str(folder / "jobs.db"),
    "without a file": lambda folder: None,
}

# Those that a second `open_store`, or a second process, finds again.
SHARED = [way for way in WAYS if way != "without a file"]
