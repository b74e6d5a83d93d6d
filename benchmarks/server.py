"""What does the way over HTTP cost: recalls in a second and processor time, against the library?

A real daemon with the real model serves a home with many messages (their vectors are drawn). The
same questions are asked in one process by the library, then over REST by one client and by
several, in the same run. The questions are the same ones again and again, so that the model, which
costs the same on either way, is asked for each only once. Resident memory is the daemon's with
every door open. `owners.py` measures a server of many memories.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import threading
import time
from pathlib import Path

from daemon import cpu_s, fill, lore, resident, sentence, wait_until
from lore.daemon.daemon_lock import find_holder
from lore.memory import Memory
from lore.proxy.address import find_address
from lore.settings import load

QUESTIONS = 40
UNBOUNDED = "0"
QUIET_S = 600.0


def ask_library(config_home: Path, questions: list[str], rounds: int) -> dict[str, float]:
    """Ask by the library and return how many answers came in a second."""
    with Memory.open(config=load({}, home=config_home).settings) as memory:
        for question in questions:
            memory.recall(question)
        started, spent = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            for question in questions:
                memory.recall(question)
        took_s, cpu = time.perf_counter() - started, time.process_time() - spent
    count = rounds * len(questions)
    return {"per_s": round(count / took_s, 1), "cpu_ms": round(cpu / count * 1000, 2)}


def ask_server(home: Path, questions: list[str], rounds: int, clients: int) -> dict[str, float]:
    """Ask over REST and return the same, with the processor time of the daemon."""
    found, holder = find_address(str(home)), find_holder(home)
    assert found
    assert holder
    key = (home / "access.key").read_text().strip()
    headers = {"x-lore-key": key, "content-type": "application/json"}

    def ask(path: str, times: int) -> None:
        connection = http.client.HTTPConnection(found.host, found.port, timeout=60)
        for _ in range(times):
            for question in questions:
                body = json.dumps({"query": question})
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                response.read()
                assert response.status == http.HTTPStatus.OK
        connection.close()

    ask("/api/v1/retrieve", 1)
    started, spent = time.perf_counter(), cpu_s(holder.pid)
    threads = [
        threading.Thread(target=ask, args=("/api/v1/retrieve", rounds)) for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s, cpu = time.perf_counter() - started, cpu_s(holder.pid) - spent
    count = rounds * len(questions) * clients
    return {"per_s": round(count / took_s, 1), "cpu_ms": round(cpu / count * 1000, 2)}


def is_idle(person: Path) -> bool:
    """Tell whether the chores have nothing to do: what they take is not what is measured."""
    told = json.loads(lore(person, "status", "--json"))
    ran = all(chore["last_run"] for chore in told["chores"])
    return bool(ran and told["state"] == "idle" and not told["jobs_pending"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        person = Path(folder)
        home = person / ".lore"
        config = load({}, home=home).settings
        fill(config, options.messages)
        lore(person, "config", "server.port", "0")
        lore(person, "config", "server.requests_per_minute", UNBOUNDED)
        for setting in ("distill.idle_s", "curate.idle_s"):
            lore(person, "config", setting, "86400")
        rng = random.Random(3)
        questions = [sentence(rng, 6) for _ in range(QUESTIONS)]
        library = ask_library(home, questions, options.rounds)
        lore(person, "up", "--detach")
        try:
            holder = find_holder(home)
            assert holder
            wait_until(lambda: is_idle(person), QUIET_S)
            fresh = resident(holder.pid)["resident_mb"]
            one = ask_server(home, questions, options.rounds, 1)
            several = ask_server(home, questions, options.rounds, 4)
            after = resident(holder.pid)
        finally:
            lore(person, "down")
    figures = {
        "messages": options.messages,
        "library": library,
        "rest, 1 client": one,
        "rest, 4 clients": several,
        "rest_to_library": round(one["per_s"] / library["per_s"], 3),
        "resident_mb": {"started": fresh, **after},
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
