"""`jobslab COMMAND`: which commands are there, and what does a user see when something is wrong?

A named error is one sentence on stderr and exit code 2.  Each command lives in `commands/`, and imports what it needs
when it runs: asking for help must not load a web framework or pandas.
"""

import os
import re
import sys

import typer

from jobslab.commands import chaos, explore, lab, migrate, reconcile, remote, rerun, run, service, sweep, where
from jobslab.errors import JobslabError

app = typer.Typer(
    help="The contract behind 202 Accepted: see each clause's failure, and the clause that prevents it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("lab", context_settings={"allow_extra_args": True})(lab.lab)
app.command("doctor")(lab.doctor)
app.command("serve")(service.serve)
app.command("work")(service.work)
app.command("where")(where.where)
app.command("sweep")(sweep.sweep)
app.command("reconcile")(reconcile.reconcile)
app.command("rerun")(rerun.rerun)
app.command("migrate")(migrate.migrate)
app.command("explore")(explore.explore)
app.command("chaos")(chaos.chaos)
app.command("submit")(remote.submit)
app.command("watch")(remote.watch)
app.command("cancel")(remote.cancel)
app.command("jobs")(remote.jobs)
app.command("download")(remote.download)


@app.callback()
def callback() -> None:
    """Makes `run` a command by its name even while it is the only one."""


class NoText(JobslabError):
    """An argument is no text."""


def refuse_what_is_no_text(arguments: list[str]) -> None:
    """Bytes that are no UTF-8 come as lone surrogates, which no database and no terminal takes.  Raises NoText."""
    for argument in arguments:
        if not argument.isascii() and re.search("[\ud800-\udfff]", argument):
            raise NoText(f"{argument!a} is not text in UTF-8; write it anew")


def main() -> None:
    """The console script."""
    try:
        refuse_what_is_no_text(sys.argv[1:])
        app()
    except JobslabError as wrong:
        print(f"jobslab: {wrong}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has had enough (`jobslab run | head`); Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
