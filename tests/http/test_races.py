"""Races on a real server process, and each again under the contract without the clause that decides it.

B2: one key, many clients.  A4: is a job there once its 202 is?  C13: is its result?  E6: cancel against completion.
"""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from jobslab.job import TERMINAL
from tests.http.real import Server, serving, working
from tests.http.room import EXPORT

pytestmark = pytest.mark.long

CLIENTS = 20


def at_once(server: Server, rounds: int) -> list[set[str]]:
    """For each round the ids that 20 clients were given who posted with one key at one moment."""
    barrier = threading.Barrier(CLIENTS)

    def client(_: int) -> list[str]:
        ids = []
        with server.http() as http:
            for n in range(rounds):
                barrier.wait()
                response = http.post("/jobs", json=EXPORT, headers={"Idempotency-Key": f"round-{n}"})
                assert response.status_code == 202
                ids.append(response.json()["id"])
        return ids

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [set(ids) for ids in zip(*pool.map(client, range(CLIENTS)))]


def test_b2_200_times_20_clients_with_one_key_make_one_job(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        made = at_once(server, 200)
        assert [len(ids) for ids in made] == [1] * 200
        with server.http() as http:
            assert len(http.get("/jobs?limit=200").json()["jobs"]) == 200 == len(set.union(*made))


def test_b2_without_the_key_they_make_20(tmp_path: Path) -> None:
    with serving(tmp_path, "--without", "idempotency_key") as server:
        assert [len(ids) for ids in at_once(server, 10)] == [CLIENTS] * 10


def ask(server: Server, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    """One exchange on a new connection: status and the headers."""
    line = HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        line.request(method, path, body, {"Content-Type": "application/json"})
        answer = line.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        line.close()


def test_a4_200_jobs_are_there_within_a_millisecond_of_their_202_on_new_connections(tmp_path: Path) -> None:
    """Asked of the server that accepted it, and of another one on the same store."""
    late = []
    with serving(tmp_path) as server, serving(tmp_path) as other:
        for n in range(200):
            status, headers = ask(server, "POST", "/jobs", b'{"kind": "export", "params": {"table": "orders"}}')
            accepted = time.perf_counter()
            found, _ = ask(other if n % 2 else server, "GET", headers["Location"])
            late.append(time.perf_counter() - accepted)
            assert (status, found) == (202, 200)
    print(f"the GETs were answered {sorted(late)[100] * 1000:.1f} ms (median) after their 202")


def small_table(tmp_path: Path) -> list[str]:
    (tmp_path / "orders.csv").write_text("n,item\n1,tea\n2,bread\n")
    return ["--data", str(tmp_path / "orders.csv")]


def test_c13_200_results_are_there_once_success_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as server, working(tmp_path, *small_table(tmp_path)), server.http() as http:
        for _ in range(20):
            waiting = [http.post("/jobs", json=EXPORT).headers["Location"] for _ in range(10)]
            while waiting:
                told = http.get(waiting[0]).json()
                if told["done"]:
                    assert told["state"] == "SUCCEEDED"
                    assert http.get(told["links"]["result"]).text.splitlines() == ["n,item", "1,tea", "2,bread"]
                    waiting.pop(0)


def raced(server: Server, seed: int, races: int) -> list[tuple[str, set[str]]]:
    """For each race of a cancel against a job of 20 ms: its address, and the terminal states in which it was seen."""
    rng, seen = random.Random(seed), []
    with server.http() as http:
        for _ in range(races):
            job = http.post("/jobs", json={"kind": "wait", "params": {"seconds": 0.02}}).headers["Location"]
            while http.get(job).json()["state"] == "QUEUED":
                pass
            time.sleep(rng.uniform(0, 0.04))
            states = {http.get(job).json()["state"], http.post(f"{job}/cancel").json()["state"]}
            while not states & TERMINAL:
                states.add(http.get(job).json()["state"])
            seen.append((job, states & TERMINAL))
    return seen


def races_of_cancel(server: Server) -> tuple[list[set[str]], list[bool]]:
    """For each of 100 races the terminal states in which the job was seen, and whether its result agrees at the end."""
    with ThreadPoolExecutor(4) as pool:
        raced_ones = [race for part in pool.map(lambda seed: raced(server, seed, 25), range(4)) for race in part]
    time.sleep(1)  # so that a report that is still under way has arrived
    ends, agrees = [], []
    with server.http() as http:
        for job, states in raced_ones:
            end = http.get(job).json()["state"]
            ends.append(states | ({end} & TERMINAL))
            agrees.append((http.get(f"{job}/result").status_code == 200) == (end == "SUCCEEDED"))
    return ends, agrees


def test_e6_100_races_of_cancel_against_completion_have_one_end_each(tmp_path: Path) -> None:
    with serving(tmp_path) as server, working(tmp_path):
        ends, agrees = races_of_cancel(server)
        assert [len(states) for states in ends] == [1] * 100
        assert all(agrees)
        assert {state for states in ends for state in states} == {"CANCELLED", "SUCCEEDED"}  # both win some


def test_e6_without_conditional_updates_some_have_two(tmp_path: Path) -> None:
    options = ["--without", "conditional_updates"]
    with serving(tmp_path, *options) as server, working(tmp_path):
        ends, _ = races_of_cancel(server)
        assert max(len(states) for states in ends) == 2


def test_c8_and_c16_pollers_in_haste_are_served_and_see_one_story(tmp_path: Path) -> None:
    """Ten who poll without a pause, each on a connection of their own, while jobs are done beside."""
    finished = threading.Event()

    def poll(server: Server, job: str) -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []
        with server.http() as http:
            while not finished.is_set():
                response = http.get(job)
                assert response.status_code == 200
                seen.append((response.json()["attempt"], response.json()["state"]))
        return list(dict.fromkeys(seen))

    with serving(tmp_path) as server, working(tmp_path), server.http() as http, ThreadPoolExecutor(10) as pool:
        job = http.post("/jobs", json={"kind": "wait", "params": {"seconds": 2, "chunks": 20}}).headers["Location"]
        told: list[Any] = [pool.submit(poll, server, job) for _ in range(10)]
        wait_until(lambda: http.get(job).json()["done"])
        finished.set()
        story = [(0, "QUEUED"), (1, "RUNNING"), (1, "SUCCEEDED")]
        for future in told:
            seen = future.result()
            assert seen == [step for step in story if step in seen]


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Fails where it does not become true."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
