"""Where do the files stay that a user wants to look into?  In the directory that was named, whole and under new names.

Every name is taken before anything runs, so that no file of somebody else's is ever overwritten; the files are made
beside, and get their names when all is well.  If it is not, the directory is as it was.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jobslab.errors import JobslabError


class CanNotKeep(JobslabError):
    """The directory can't take the files."""


@contextmanager
def keeping(directory: Path, names: Iterable[str]) -> Iterator[Path]:
    """Where to make files of these names; those that are made are in `directory` afterwards.  Raises CanNotKeep."""
    taken: list[Path] = []
    new = not directory.exists()
    if not new and not directory.is_dir():
        raise CanNotKeep(f"{directory} is a file; name a directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".jobslab-", dir=directory) as beside:
            for name in names:
                (directory / name).open("x").close()
                taken.append(directory / name)
            yield Path(beside)
            for path in [path for path in taken if (Path(beside) / path.name).exists()]:
                os.replace(Path(beside) / path.name, path)
                taken.remove(path)
    except FileExistsError as wrong:
        raise CanNotKeep(f"{wrong.filename} is there already; remove it, or name another directory") from wrong
    except OSError as wrong:
        raise CanNotKeep(f"nothing can be kept in {directory} ({wrong.strerror}); name another directory") from wrong
    finally:
        for path in taken:
            path.unlink(missing_ok=True)
        if new:
            with suppress(OSError):  # it holds what was kept
                directory.rmdir()
