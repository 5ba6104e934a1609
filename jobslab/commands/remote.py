"""`jobslab submit`, `watch`, `cancel`, `jobs`, `download`: how does a person use the API from a shell?

Exit codes: 0 done and well, 1 done and not well, 2 a mistake to be mended, 3 not known: ask again.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobslab.errors import BadParams

if TYPE_CHECKING:
    from jobslab.client import JobClient, Outcome

Url = Annotated[str, typer.Option(envvar="JOBSLAB_URL", help="Where the service is.")]
Token = Annotated[str | None, typer.Option(envvar="JOBSLAB_TOKEN", help="Who asks; better in the environment.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its address.")]

HERE = "http://127.0.0.1:8202"


def client(url: str, token: str | None) -> "JobClient":
    from jobslab.client import JobClient

    return JobClient(url, token=token)


def submit(
    kind: Annotated[str, typer.Argument(help="What to do: export, wait, flaky or fail.")],
    table: Annotated[str | None, typer.Option(help="The table to export.")] = None,
    params: Annotated[str | None, typer.Option(metavar="JSON", help="What the kind of job needs to know.")] = None,
    key: Annotated[str | None, typer.Option(help="The idempotency key; a random one by default.")] = None,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """Submit a job; prints its id and its address."""
    from jobslab.client import RequestFailed

    with client(url, token) as api:
        try:
            accepted = api.submit(kind, params_of(table, params), key)
        except RequestFailed as wrong:
            if wrong.definite:
                raise
            print(f"jobslab: {wrong}", file=sys.stderr)
            raise typer.Exit(3) from wrong
    if accepted.replayed:
        print("this key has made the job before", file=sys.stderr)
    print(accepted.id, accepted.url)


def params_of(table: str | None, params: str | None) -> dict[str, Any]:
    """The params that the options describe.  Raises BadParams."""
    try:
        told = json.loads(params or "{}")
    except (ValueError, RecursionError) as wrong:
        raise BadParams(f"--params is no JSON: {wrong}") from wrong
    if not isinstance(told, dict):
        raise BadParams('--params is a JSON object, such as {"seconds": 5}')
    return told if table is None else told | {"table": table}


def watch(
    id: JobId,
    deadline_seconds: Annotated[float, typer.Option(min=0, help="How long to wait.")] = 600,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """Follow a job until it is done; exit code 0 succeeded, 1 failed, cancelled or expired, 3 not known in time."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with (
        client(url, token) as api,
        Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar,
    ):
        shown = bar.add_task("waiting", total=1)

        def show(job: dict[str, Any]) -> None:
            bar.update(shown, description=told(job), completed=job.get("progress") or 0)

        try:
            check_there(api, id)
            outcome = api.wait(id, deadline_seconds, show)
        except KeyboardInterrupt:
            bar.console.print(f"the job goes on; follow it again with: jobslab watch {id}", soft_wrap=True)
            raise typer.Exit(130) from None
    print(ending(outcome))
    raise typer.Exit({"SUCCEEDED": 0, "UNKNOWN": 3}.get(outcome.verdict, 1))


def check_there(api: "JobClient", id: str) -> None:
    """Raises NoAnswer where there is no service at all: better said now than at the deadline."""
    from jobslab.client import NoAnswer

    try:
        api.get(id)
    except NoAnswer as wrong:
        if wrong.definite:
            raise


def told(job: dict[str, Any]) -> str:
    """The state of a job in a few words."""
    stopping = ", asked to stop" if job.get("cancel_requested") and not job.get("done") else ""
    return f"{job.get('state')} attempt {job.get('attempt')}{stopping}"


def ending(outcome: "Outcome") -> str:
    """How it ended, on one line."""
    error = (outcome.job or {}).get("error")
    why = (
        f": {error['type']}: {error['message']}"
        if isinstance(error, dict) and {"type", "message"} <= set(error)
        else ""
    )
    if outcome.verdict not in ("SUCCEEDED", "FAILED", "CANCELLED"):
        why = f": {outcome.why}; last seen {outcome.state or 'never'}"
    return f"{outcome.verdict}{why} ({outcome.polls} poll{'s' * (outcome.polls != 1)}, {outcome.seconds:.1f} s)"


def cancel(id: JobId, url: Url = HERE, token: Token = None) -> None:
    """Ask a job to stop; prints its state afterwards."""
    from jobslab.client import news, rejected

    with client(url, token) as api:
        answer = api.cancel(id)
    job = news(answer)
    if job is None:
        raise rejected(answer)
    print(told(job))


def jobs(
    all_pages: Annotated[bool, typer.Option("--all", help="Not only the newest 50.")] = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """List your jobs, newest first."""
    from jobslab.client import news, rejected

    row = "{id:<34}{kind:<9}{state:<11}{attempt:>7}{progress:>10}  {created_at}"
    print(row.format(id="ID", kind="KIND", state="STATE", attempt="ATTEMPT", progress="PROGRESS", created_at="CREATED"))
    page: str | None = "/jobs"
    with client(url, token) as api:
        while page:
            answer = api.list(page)
            listed = news(answer)
            if listed is None:
                raise rejected(answer)
            for job in listed["jobs"]:
                print(row.format(**job | {"progress": "-" if job["progress"] is None else f"{job['progress']:.0%}"}))
            page = listed["next"] if all_pages else None


def download(
    id: JobId,
    directory: Annotated[Path, typer.Option(help="Where to put the file.")] = Path(),
    url: Url = HERE,
    token: Token = None,
) -> None:
    """Fetch a job's result into a file; prints its path."""
    from jobslab.errors import JobslabError

    try:
        with client(url, token) as api:
            print(api.download(id, directory))
    except OSError as wrong:
        raise JobslabError(f"{directory} can't be written: {wrong.strerror}") from wrong
