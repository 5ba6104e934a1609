"""What does a chapter import?  `from jobslab.lab.notebook import *` gives the words of __all__, and sets what makes its
outputs the same for everybody: the width of tables, and errors that are one sentence.

    run(what, how)            a trial: a scenario's variant, or a schedule of one's own under a contract
    variants(name)            all variants of a scenario
    timeline(*trials)         picture with its text;     side_by_side(*trials), verdicts(*trials)   tables
    fails(promise, *contracts), shortest(promise, contract)   in k of n schedules, and a shortest one, run
    diff(before, after, ...)  the SQL that changes;      sql(verb, contract)                        a whole statement
    jobs(trial), journal(trial), database(trial)         what is in the database file that the trial leaves
    predict(...), exercise("04.1"), ___                  the learner's part
    panel(), flip("restart", leases=False)               switches to play with, and the same as a plain call
"""

from jobslab.contract import FLAGS, Contract
from jobslab.errors import JobslabError
from jobslab.lab import drawing
from jobslab.lab.clause import diff, sql
from jobslab.lab.exercises import ___, exercise, predict
from jobslab.lab.extra import need
from jobslab.lab.odds import fails, shortest
from jobslab.lab.panel import flip, panel
from jobslab.lab.picture import Picture
from jobslab.lab.text import as_html
from jobslab.lab.trial import Trial, database, jobs, journal, run, side_by_side, variants
from jobslab.lab.verdicts import verdicts

WIDTH = 160  # characters of a table, before it is broken in two


def timeline(*trials: Trial, title: str | None = None) -> Picture:
    """The trials side by side as a Picture.  Raises MissingExtra without matplotlib."""
    need("matplotlib", "it draws the timelines")
    return drawing.timeline(title or trials[0].title, [trial.side for trial in trials])


def set_up() -> None:
    """Tables as wide as a page and never cut; a user's mistake is one sentence, not a traceback."""
    pandas = need("pandas", "it makes the tables")
    pandas.set_option("display.width", WIDTH, "display.max_columns", None, "display.max_colwidth", None)
    shell = need("IPython", "it shows the outputs").get_ipython()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(pandas.DataFrame, as_html)
    JobslabError._render_traceback_ = one_sentence  # type: ignore[attr-defined]


def one_sentence(wrong: JobslabError) -> list[str]:
    """What IPython prints of an error that is somebody's to act on."""
    return [f"{type(wrong).__name__}: {wrong}"]


set_up()

__all__ = [
    "FLAGS",
    "Contract",
    "___",
    "database",
    "diff",
    "exercise",
    "fails",
    "flip",
    "jobs",
    "journal",
    "panel",
    "predict",
    "run",
    "shortest",
    "side_by_side",
    "sql",
    "timeline",
    "variants",
    "verdicts",
]
