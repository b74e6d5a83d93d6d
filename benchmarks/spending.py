"""What it costs to set money aside for a request and to enter it: CPU us on the way of a request.

    uv run python benchmarks/spending.py [--requests N]

`caller` is the thread that forwards, `all` the whole process with the writer's thread. The price
is found beforehand, as it is from the second request of a model on.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from lore.embed.embedder import NoEmbedder
from lore.memory import Memory
from lore.records import RequestCost, RequestOutcome, TokenUse
from lore.settings import Settings

PRICES = ("m input=3 output=15 cache_read=0.3 cache_write=3.75 window=200000",)
USED = TokenUse(10, 90_000, 1_500, 0, 400)


def measure(home: Path, budget_usd: float | None, requests: int) -> tuple[float, float, float]:
    """Return CPU us of a request in its thread and in all, and ms that it waits."""
    config = replace(Settings(), home=home, prices=PRICES, daily_budget=budget_usd)
    with Memory.open(config=config, embedder=NoEmbedder()) as memory:
        memory.budget.settle_request(memory.budget.reserve_request(RequestCost("m", USED)), USED)
        thread, process, wall = time.thread_time(), time.process_time(), time.perf_counter()
        for _ in range(requests):
            reserved = memory.budget.reserve_request(
                RequestCost("m", USED, session="s", project="/code/app")
            )
            memory.budget.settle_request(reserved, USED, RequestOutcome(1, without=USED))
        took = time.thread_time() - thread, time.perf_counter() - wall
        memory.database.write(lambda _: None)
        whole = time.process_time() - process
    return took[0] / requests * 1e6, whole / requests * 1e6, took[1] / requests * 1e3


def main() -> None:
    """Measure without and with a budget, on an empty day and on a long one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000)
    requests = parser.parse_args().requests
    print("budget   requests   caller CPU us   all CPU us   waits ms")
    for budget_usd in (None, 1e6):
        for count in (requests // 10, requests):
            with tempfile.TemporaryDirectory() as folder:
                caller, whole, wall = measure(Path(folder), budget_usd, count)
            name = "none" if budget_usd is None else "set"
            print(f"{name:<8} {count:>8} {caller:>15.0f} {whole:>12.0f} {wall:>10.2f}")


if __name__ == "__main__":
    main()
