"""`jobslab reconcile`: what lies in the directory of results and was never told, or was told and does not lie there?

Exit codes: 0 all agree, or do so now; 1 something does not, with --dry-run or because it takes a person; 2 a mistake to
be mended.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from jobslab.commands.service import Results, StoreUrl, results_of
from jobslab.commands.sweep import DryRun
from jobslab.commands.where import NoSuchFile, must_be_there
from jobslab.stores import open_store

if TYPE_CHECKING:
    from jobslab.reconcile import Finding


def reconcile(store: StoreUrl = "jobslab.db", results: Results = None, dry_run: DryRun = False) -> None:
    """Compare the jobs with the files that they made, and repair what differs, by the contract's own verbs.

    A file that was never told of is reported, for the worker that is gone; one that is missing or damaged is made
    again by a new job. A job that a worker has is left to it.
    """
    from jobslab.reconcile import files
    from jobslab.reconcile import reconcile as compare

    directory = results_of(store, results)
    must_be_there(store, "store")
    if not directory.is_dir():
        raise NoSuchFile(f"there is no directory {directory}, so nothing can be compared; give --results DIR")
    with open_store(None, store) as jobs:
        findings = compare(jobs, files(directory), dry_run=dry_run)
    print("\n".join(lines(findings, dry_run)))
    raise typer.Exit(1 if any(finding.open for finding in findings) else 0)


def lines(findings: "list[Finding]", dry_run: bool) -> Iterator[str]:
    """A line for each job that does not agree, and one for all."""
    from jobslab.reconcile import Action

    for one in findings:
        yield f"{one.id}: {one.landing.says}"
        refused = f" (refused by {one.refused_by}: the job has changed meanwhile)" if one.refused_by else ""
        would = "would " if dry_run and one.action not in (Action.WAIT, Action.PERSON) else ""
        yield f"  {would}{one.action}" + (f": {one.done}{refused}" if one.done else "")
    still = sum(one.open for one in findings)
    yield f"{len(findings)} did not agree, {still} of them still do not" if findings else "all jobs and files agree"
