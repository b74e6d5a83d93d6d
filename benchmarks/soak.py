"""What becomes of a daemon that works for long: does it grow, lose anything, or count wrongly?

A real `lore up` in a home of its own stands before a scripted upstream in another process. For
some minutes five agents talk through its gateway, one of them with hooks and a transcript; others
use MCP, REST, the command line and transcripts alone; a session is forgotten, one is amnesic, and
a budget is spent and raised. Connections are lost and the upstream fails meanwhile. A row is
printed every minute, and at the end what grew, whether each message is stored exactly once, and
whether the ledger says what the upstream billed. It takes about 40 % of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from daemon import LORE, cpu_s, environment, wait_until
from lore.proxy.address import Address, find_address
from soak_agents import Agent, Book, ClaudeCode, Stage, agents
from soak_figures import (
    FAULTS,
    HEAD,
    PRICES,
    Row,
    added_ms,
    billed,
    check_ledger,
    check_store,
    growth,
    look,
    stored_marks,
)
from soak_material import SESSION, load_steps
from soak_wires import Messages

STARTING_S = 120.0
SETTLING_S = 20.0
"""What was appended last is captured by then."""

MINUTE_S = 60.0
MOST_CPU_S, LEAST_CPU_S = 24.0, 14.0
"""Processor time of all processes in a minute; agents wait longer, or less, to keep to it."""

BUDGET_AT = 0.4
"""Of the time: then the budget is spent for a while."""

SPENT_S = 15.0
ROOMY = "100000"

CONFIG = """[server]
port = 0
[capture]
poll_interval_s = 3
[distill]
idle_s = 30
[curate]
idle_s = 60
[consolidate]
interval_s = 300
[context]
max_layer0_tokens = 20000
[inject]
threshold = 1.0
"""


def settings_of(upstream: int) -> dict[str, str]:
    """Return what the daemon is told by its environment."""
    url = f"http://127.0.0.1:{upstream}"
    prices = [
        " ".join([model, *(f"{name}={usd}" for name, usd in price.items()), "window=200000"])
        for model, price in PRICES.items()
    ]
    return {
        "LORE_GATEWAY_ANTHROPIC_URL": url,
        "LORE_GATEWAY_OPENAI_URL": url,
        "LORE_PRICES": json.dumps(prices),
    }


class Others:
    """Those who do not talk through the gateway."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = random.Random(99)
        self._headers = {
            "authorization": f"Bearer {stage.key}",
            "accept": "application/json, text/event-stream",
        }

    def question(self) -> str:
        """Return something that was said."""
        words = self._chance.choice(self._stage.steps).words.split()
        return " ".join(words[:10]) or "upgrade"

    async def _call(self, method: str, path: str, kind: str, **more: Any) -> Any:
        stage = self._stage
        async with stage.client.request(
            method, stage.url + path, headers={**self._headers, **more.pop("headers", {})}, **more
        ) as got:
            answer = await got.read()
            stage.book.done[kind] += 1
            if got.status >= 400 or b'"isError":true' in answer:
                stage.book.errors[f"{kind} {got.status}"] += 1
            return json.loads(answer) if answer else None

    async def use_mcp(self) -> None:
        """Begin a session of MCP, use some tools, and end it."""
        version = {"mcp-protocol-version": "2025-06-18"}

        async def say(method: str, number: int | None, **params: Any) -> None:
            told: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
            told |= {} if number is None else {"id": number}
            await self._call("POST", "/mcp", "mcp", json=told, headers=version)

        client = {"name": "soak", "version": "1"}
        await say("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        await say("notifications/initialized", None)
        await say("tools/list", 1)
        stored = f"{self.question()} {self._chance.random()}"
        tools: tuple[tuple[str, dict[str, str]], ...] = (
            ("recall", {"query": self.question()}),
            ("search", {"query": self.question()}),
            ("store", {"content": f"We decided: {stored}"}),
        )
        for number, (name, arguments) in enumerate(tools, 2):
            await say("tools/call", number, name=name, arguments=arguments)

    async def read(self) -> None:
        """Read by REST what an explorer shows."""
        for path in ("sessions", "fragments", "projects", "spend"):
            await self._call("GET", f"/api/v1/{path}?limit=20", "rest")
        for path in ("/status", "/metrics", "/health"):
            async with self._stage.client.get(self._stage.url + path, headers=self._headers) as got:
                await got.read()
                self._stage.book.done["rest"] += 1

    async def recall(self) -> None:
        """Ask from the command line."""
        await lore(self._stage, "recall", self.question())

    async def spend_budget(self) -> None:
        """Set a budget that is spent already, and raise it."""
        await asyncio.sleep((self._stage.ends_s - time.monotonic()) * BUDGET_AT)
        await lore(self._stage, "config", "daily_budget", "0.001")
        await asyncio.sleep(SPENT_S)
        await lore(self._stage, "config", "daily_budget", ROOMY)

    async def forget(self) -> None:
        """Have a session forgotten that has ended."""
        book = self._stage.book
        while not book.finished and not self._stage.is_over:
            await asyncio.sleep(1)
        await asyncio.sleep(SETTLING_S)
        if book.finished:
            session, marks = book.finished[0]
            await lore(self._stage, "forget", "--session", session, "--yes")
            book.never |= set(marks)
            book.once -= set(marks)
            book.perhaps -= set(marks)

    async def often(self, what: Any, every_s: float) -> None:
        """Do something again and again."""
        while not self._stage.is_over:
            await asyncio.sleep(every_s * self._chance.uniform(0.5, 1.5))
            await what()


class Writer(ClaudeCode):
    """An agent that does without the gateway: only its hooks and its transcript tell of it."""

    async def _turn(self) -> None:
        step = self._stage.steps[self._step % len(self._stage.steps)]
        self._step += 1
        mark = f"{self._mark()}.said"
        content = [{"type": "text", "text": f"{mark} {step.words}"}]
        self.wire.history.append({"role": "assistant", "content": content})
        self.wire.last_id = f"msg_{self._mark()}"  # type: ignore[union-attr]  # it speaks Messages
        self._wrote("assistant", self.wire.history[-1])
        self._expect(mark)
        await self._answer((), "")


class Amnesic(ClaudeCode):
    """An agent whose sessions are not to be stored."""

    async def play(self) -> None:
        """Talk a while, now and then."""
        while not self._stage.is_over:
            await self._stage.rest(self._chance, 10.0)
            await self.play_session(12, amnesic=True)


async def lore(stage: Stage, *arguments: str) -> str:
    """Run a command."""
    process = await asyncio.create_subprocess_exec(
        *LORE,
        *arguments,
        env=environment(stage.home),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, wrong = await process.communicate()
    stage.book.done["cli"] += 1
    if process.returncode:
        stage.book.errors[f"lore {arguments[0]}: {wrong.decode()[-200:].strip()}"] += 1
    return told.decode()


class Watching:
    """Prints a row every minute, and keeps all processes together within their share."""

    def __init__(self, stage: Stage, log: Path, pids: tuple[int, int]) -> None:
        self._stage = stage
        self._log = log
        self._daemon, self._upstream = pids
        self.rows: list[Row] = []

    def _spent_s(self) -> float:
        told = os.times()
        own = told.user + told.system + told.children_user + told.children_system
        return own + cpu_s(self._daemon) + cpu_s(self._upstream)

    async def watch(self) -> None:
        """Print until it is over."""
        print(HEAD, flush=True)
        seen, done, spent = 0, 0, self._spent_s()
        errors: Counter[str] = Counter()
        before = look(self._daemon, self._stage.home)
        while not self._stage.is_over:
            await asyncio.sleep(MINUTE_S)
            now, rows = look(self._daemon, self._stage.home), billed(self._log)
            book = self._stage.book
            row = Row(
                len(self.rows) + 1,
                **{**now, "cpu_s": now["cpu_s"] - before["cpu_s"]},  # type: ignore[arg-type]  # counts are whole
                done=book.done.total() - done,
                added_ms=added_ms(book, rows[seen:]),
                errors=dict(book.errors - errors),
            )
            self.rows.append(row)
            took = self._spent_s() - spent
            self._adapt(took)
            print(f"{row}  all {took:.0f} s, pause {self._stage.pause_s:.1f} s", flush=True)
            seen, done, errors, before = len(rows), book.done.total(), book.errors.copy(), now
            spent = self._spent_s()

    def _adapt(self, took_s: float) -> None:
        if took_s > MOST_CPU_S:
            self._stage.pause_s = min(20.0, self._stage.pause_s * min(2.0, took_s / MOST_CPU_S))
        elif took_s < LEAST_CPU_S:
            self._stage.pause_s = max(0.5, self._stage.pause_s * 0.8)


@asynccontextmanager
async def processes(home: Path, log: Path) -> AsyncIterator[tuple[Address, tuple[int, int]]]:
    """Run the upstream and the daemon."""
    root = Path(__file__).parents[1]
    upstream = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("soak_upstream.py")), str(log)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert upstream.stdout
    port = int(upstream.stdout.readline())
    (home / ".lore").mkdir(mode=0o700, parents=True)
    (home / ".lore" / "config.toml").write_text(CONFIG)
    with (home / "up.log").open("w") as told:
        daemon = subprocess.Popen(
            [*LORE, "up"], env={**environment(home), **settings_of(port)}, stdout=told, stderr=told
        )
    try:
        wait_until(lambda: find_address(str(home / ".lore")) is not None, STARTING_S)
        address = find_address(str(home / ".lore"))
        assert address
        yield address, (daemon.pid, upstream.pid)
    finally:
        daemon.terminate()
        daemon.wait(60)
        upstream.communicate()


async def soak(home: Path, minutes: float) -> dict[str, Any]:
    """Play for some minutes, and return what came of it."""
    log, book = home / "upstream.jsonl", Book()
    no_limit = aiohttp.ClientTimeout(total=180)
    async with (
        processes(home, log) as (address, pids),
        aiohttp.ClientSession(timeout=no_limit, connector=aiohttp.TCPConnector(limit=0)) as client,
    ):
        stage = Stage(address.url, address.key, home, load_steps(), client, book)
        stage.ends_s = time.monotonic() + minutes * MINUTE_S
        others, watching = Others(stage), Watching(stage, log, pids)
        playing: list[Agent] = [*agents(stage), Writer(stage, 7), Amnesic(stage, 8)]
        parts: list[Coroutine[Any, Any, None]] = [
            watching.watch(),
            *(agent.play() for agent in playing),
            Agent(stage, 9, Messages).play_session(4),
            others.often(others.use_mcp, 7),
            others.often(others.read, 10),
            others.often(others.recall, 40),
            others.spend_budget(),
            others.forget(),
        ]
        await asyncio.gather(*parts)
        await asyncio.sleep(SETTLING_S)
        doctor = json.loads(await lore(stage, "doctor", "--json"))
        latest = look(pids[0], home)
    return {
        "growth": growth(watching.rows[1:]),
        "done": dict(book.done),
        "went wrong as scripted": dict(book.expected),
        "errors": dict(book.errors),
        "store": check_store(book, stored_marks(home)),
        "ledger": check_ledger(home, billed(log), book),
        "doctor": [one for one in doctor if one["state"] != "ok"],
        "integrity": integrity(home),
        "at the end": {name: round(value, 1) for name, value in latest.items()},
    }


def integrity(home: Path) -> str:
    """Return what SQLite says of the file."""
    import apsw

    return str(
        apsw
        .Connection(str(home / ".lore" / "memory.db"))
        .execute("PRAGMA integrity_check")
        .fetchall()[0][0]
    )


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--home", type=Path, help="an empty folder that is kept afterwards")
    given = parser.parse_args()
    if not SESSION.exists():
        print(f"{SESSION.name} is missing: nothing to play")
        return
    with tempfile.TemporaryDirectory() as folder:
        home = given.home or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        told = asyncio.run(soak(home, given.minutes))
    print(json.dumps(told, indent=2))
    if told["integrity"] != "ok" or any(told["store"][name][0] for name in FAULTS):
        sys.exit(1)


if __name__ == "__main__":
    main()
