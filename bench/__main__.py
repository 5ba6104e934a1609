"""`python -m bench [PART ...]`: all measurements, or the parts that are named."""

import importlib
import os
import platform
import sqlite3
import sys
from pathlib import Path

PARTS = [path.stem for path in sorted(Path(__file__).parent.glob("[!_]*.py"))]


def machine() -> str:
    """The machine, as it has to stand beside every figure."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":")[1] for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].strip() if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}"
    )


def main(wanted: list[str]) -> int:
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        print(f"bench: there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print(machine())
    for part in wanted or PARTS:
        importlib.import_module(f"bench.{part}").main()
    return 0


sys.exit(main(sys.argv[1:]))
