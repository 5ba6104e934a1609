"""`jobslab serve` and `jobslab work`: how does the engine become a service on one machine?

`serve` answers HTTP, sweeps and purges; workers are processes of their own on the same store, as many as one likes, on
PostgreSQL on as many machines.  Everything that can be refused is refused before the store is touched.
"""

import contextlib
import ipaddress
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from jobslab.commands.options import With, Without, contract_of
from jobslab.contract import Contract
from jobslab.errors import BadNumber, JobslabError, StoreError
from jobslab.job import Job
from jobslab.settings import SERVICE, Settings
from jobslab.stores import Store, is_postgresql, open_store

log = logging.getLogger("jobslab.service")

GRACE_SECONDS = int(SERVICE.grace_seconds) + 5  # what workers have to end in, who give back what they do not finish
HEADER_LIMIT = 256 * 1024  # beyond this even the parser gives up; the API refuses earlier, and in words

StoreUrl = Annotated[
    str,
    typer.Option("--store", metavar="FILE|URL", help="The SQLite file that holds the jobs, or postgresql://..."),
]
Results = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the files of results are; FILE-results by default. PostgreSQL needs it."),
]
Data = Annotated[Path | None, typer.Option(help="What exports read: a CSV or SQLite file; the sample by default.")]
Lease = Annotated[float, typer.Option(help="How long a worker may be silent before its job is given to another.")]


class ServeError(JobslabError):
    """The service can't be started like this; nothing was changed."""


def serve(
    host: Annotated[str, typer.Option(help="Another address than this machine's own needs --tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8202,
    store: StoreUrl = "jobslab.db",
    data: Data = None,
    results: Results = None,
    tokens: Annotated[Path | None, typer.Option(help="A file with one `owner token` a line.")] = None,
    workers: Annotated[int, typer.Option(min=0, max=64, help="Worker processes to start beside.")] = 0,
    lease_seconds: Lease = SERVICE.lease_seconds,
    only: With = None,
    without: Without = None,
) -> None:
    """Serve the API: accept jobs, tell their state, sweep. Workers do the jobs: --workers N, or `jobslab work`."""
    from jobslab.web.tokens import read_tokens

    start_logging()
    wanted, settings = contract_of(only, without), settings_with(lease_seconds)
    files, known = results_of(store, results), read_tokens(tokens) if tokens else None
    check_reach(host, known is not None)
    with ExitStack() as stack:
        source = stack.enter_context(loaded(data))
        listening = stack.enter_context(listen(host, port))
        jobs = stack.enter_context(open_store(wanted, store, settings=settings))
        jobs.start_server()
        # uvicorn ends gracefully at the first signal and then raises it again; from here on that ends `with` blocks.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        stack.enter_context(house_keeping(jobs, files))
        stack.enter_context(beside(workers, store, files, source, lease_seconds))
        name = str(jobs.database)  # without the password
        callers, options = known and len(known.owners), same_place(store, results)
        print(banner(listening.getsockname(), name, jobs.contract, callers, workers, options), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            answer(jobs, known, files, listening)


def work(
    store: StoreUrl = "jobslab.db",
    data: Data = None,
    results: Results = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Jobs at a time, in threads of this process.")] = 1,
    lease_seconds: Lease = SERVICE.lease_seconds,
    parent: Annotated[int | None, typer.Option(hidden=True, help="End when this process is gone.")] = None,
) -> None:
    """Do the jobs of a store until Ctrl-C; many of these may run."""
    from jobslab import loop
    from jobslab.tasks import tasks

    start_logging()
    settings, files = settings_with(lease_seconds), results_of(store, results)
    name = f"{socket.gethostname()}-{os.getpid()}"
    with loaded(data) as source, open_store(None, store, settings=settings) as jobs:
        log.info("worker %s takes jobs from %s", name, jobs.database)
        for job in loop.work(jobs, name, tasks(source, files), stop=stopping(parent), concurrency=concurrency):
            state = state_of(jobs, job.id)
            log.info("job %s attempt %d: %s, correlation %s", job.id, job.attempt, state, job.correlation_id)
        log.info("worker %s has ended", name)


# What both need


def start_logging() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)


def settings_with(lease_seconds: float) -> Settings:
    if not 0.1 <= lease_seconds <= 24 * 3600:
        raise BadNumber(f"--lease-seconds is from 0.1 to 86400, not {lease_seconds}")
    return replace(SERVICE, lease_seconds=lease_seconds)


def results_of(store: str, results: Path | None) -> Path:
    """The directory where the files of results are: beside the store's file, if it is one.  Raises ServeError."""
    if results is None and is_postgresql(store):
        raise ServeError("on PostgreSQL give --results DIR, for this store alone and shared by all its workers")
    if results is not None and results.exists() and not results.is_dir():
        raise ServeError(f"{results} is no directory; give --results DIR, for the files of results")
    return results or Path(f"{store}-results")


def same_place(store: str, results: Path | None) -> str:
    """The options of a worker on this store, to be shown: without the password in a URL."""
    where = f"--store {'URL' if is_postgresql(store) else store}"
    return where if results is None else f"{where} --results {results}"


@contextlib.contextmanager
def loaded(data: Path | None) -> Iterator[Path]:
    """The database that exports read.  Raises SourceError."""
    from jobslab.source import as_database, sample

    with tempfile.TemporaryDirectory(prefix="jobslab-") as directory:
        yield as_database(data or sample(), directory)


# serve


def check_reach(host: str, has_tokens: bool) -> None:
    """Raises ServeError where others could reach a service that asks nobody who they are."""
    if not has_tokens and not is_loopback(host):
        raise ServeError(
            f"without --tokens anybody could use the service at {host}; give --tokens, or --host 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.  Its protocol is named: else asyncio does not set TCP_NODELAY, and a request takes 44 ms."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as wrong:
        raise ServeError(f"the address {host} can't be used: {wrong.strerror}") from wrong
    try:
        if os.name == "posix":  # elsewhere this would let two servers share a port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()
    except OSError as wrong:
        made.close()
        raise ServeError(f"can't listen on {host}:{port} ({wrong.strerror}); choose another --port") from wrong
    return made


def answer(store: Store, tokens: Any, results: Path, listening: socket.socket) -> None:
    """Answer HTTP until a signal ends it."""
    import uvicorn

    from jobslab.api import create_app

    app = create_app(store, tokens=tokens, results=results)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=HEADER_LIMIT,
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    uvicorn.Server(config).run(sockets=[listening])


@contextlib.contextmanager
def house_keeping(store: Store, results: Path) -> Iterator[None]:
    """Sweep and purge in a thread of its own while the body runs."""
    stopped = threading.Event()
    thread = threading.Thread(target=keep_house, args=(store, results, stopped.wait), name="house keeping")
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def keep_house(store: Store, results: Path, wait: Callable[[float], bool]) -> None:
    """At a third of the lease give up what is stuck and forget what is expired, until `wait` says True."""
    from jobslab.sweeper import sweep

    purged = True  # when the service starts, files may have been left behind
    while True:
        try:
            sweep(store, "serve")
            purged = bool(store.purge()) or purged
            if purged:
                remove_results(store, results)
                purged = False
        except (StoreError, OSError) as wrong:
            log.error("sweeping: %s", wrong)
        if wait(store.settings.renew_seconds):
            return


def remove_results(store: Store, results: Path) -> None:
    """Remove the files of jobs that are gone."""
    from jobslab.landing import id_in

    for file in results.iterdir() if results.is_dir() else ():
        id = id_in(file.name)
        if id is not None and not isinstance(store.get(id), Job):
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def beside(workers: int, store: str, results: Path, source: Path, lease_seconds: float) -> Iterator[None]:
    """`workers` processes that work while the body runs.

    They are in sessions of their own: Ctrl-C is for the service, which then tells them.  If it is killed they see that
    it is gone, and end too.
    """
    options = {"--store": store, "--results": results, "--data": source, "--lease-seconds": lease_seconds}
    options["--parent"] = os.getpid()
    command = [sys.executable, "-P", "-c", "from jobslab.cli import main; main()", "work"]
    command += [str(part) for option in options.items() for part in option]
    started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) for _ in range(workers)]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a worker to finish its job, and not for ever."""
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        log.info("worker %d has not finished its job; the job's lease will free it", process.pid)
        process.kill()
        process.wait()


def banner(
    address: tuple[Any, ...], store: str, contract: Contract, tokens: int | None, workers: int, options: str
) -> str:
    """What is served, where, and under which contract; `options` are those of a worker on the same store."""
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    lines = [
        f"jobslab serves http://{host}:{address[1]} (in a browser: /docs)",
        f"store     {store}",
        f"callers   {f'{tokens} bearer tokens' if tokens else 'one owner, lab, without a token'}",
        f"workers   {workers or 'none beside; start some with: jobslab work ' + options}",
        f"contract  {'all five clauses are in force' if not contract.off else 'BROKEN ON PURPOSE:'}",
    ]
    from jobslab.web.documents import missing

    return "\n".join([*lines, *(f"!!!       {line}" for line in missing(contract))])


# work


def state_of(store: Store, id: str) -> str:
    """For the log: by now it may be another worker's, or the database away."""
    try:
        told = store.get(id)
    except StoreError:
        return "not known"
    return told.state if isinstance(told, Job) else "gone"


def stopping(parent: int | None) -> Callable[[], bool]:
    """Says True once a signal has asked the worker to end, or once its parent is gone.  A second signal ends it at
    once, and the leases free what it has in hand."""
    asked = threading.Event()

    def ask(number: int, _: object) -> None:
        asked.set()
        signal.signal(number, signal.SIG_DFL)
        log.info("ending with the jobs in hand; once more to end at once")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    return lambda: asked.is_set() or (parent is not None and os.getppid() != parent)
