"""A memory with example sessions that is served with the built explorer, as by `lore up`."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lore.daemon import daemon_lock
from lore.daemon.http_server import HttpServer
from lore.memory import Memory
from lore.records import InjectedItem, Injection, NewMessage, Part, RequestCost, TokenUse
from lore.settings import load

MODEL = "claude-sonnet-4-5"
"""A model with a price, so that pages show dollars."""

PROJECT = "/demo/harbor"
"""The project of most example sessions."""
RULE = "Always write commit messages in the imperative."
SKILL = """# Add a migration

Use it whenever a table changes.

## Steps
1. Write the migration with `just migration NAME`.
2. Run it on a copy of the database.

## Exit Criteria
- The tests pass on the copy.
"""


@dataclass
class Site:
    """A served memory; the server can be stopped and started again at the same address."""

    memory: Memory
    home: Path
    port: int
    server: HttpServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return (self.home / "access.key").read_text().strip()

    def start(self) -> None:
        """Start the server and wait until it listens."""
        addresses: list[str] = []
        self.server = HttpServer(self.memory, lambda url, notice: addresses.append(url or notice))
        self.server.open()
        assert addresses == [self.url]

    def stop(self) -> None:
        """Stop the server; whoever is connected is cut off."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def call(self, path: str, body: object = None, **headers: str) -> Any:
        """Read something of the API with the local key, or post a body to it."""
        data = None if body is None else json.dumps(body).encode()
        usual = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, {**usual, **headers})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def login_url(self, page: str = "/") -> str:
        """Return an address that logs a browser in once and leads to a page."""
        return f"{self.url}{self.call('/logins', {})['path']}&next={quote(page, safe='')}"


@contextmanager
def serving(home: Path) -> Iterator[Site]:
    """Serve the memory of a home until the block ends."""
    port = _free_port()
    with open_memory(home, server_port=port, server_requests_per_minute=0) as memory:
        lock = daemon_lock.take_lock(home, now=memory.database.now(), version="test")
        site = Site(memory, home, port)
        try:
            site.start()
            yield site
        finally:
            site.stop()
            lock.release()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def open_memory(home: Path, **changes: Any) -> Memory:
    """Open the memory of a home; it finds by keywords, so that filling it takes a second."""
    settings = load({"LORE_EMBED_PROVIDER": "none"}, home=home).settings
    return Memory.open(config=replace(settings, **changes))


def fill(home: Path) -> None:
    """Fill a home with the example sessions of `lore demo`, and with what work with Lore leaves."""
    examples = (resources.files("lore") / "data" / "demo-sessions.jsonl").read_text("utf-8")
    with open_memory(home) as memory:
        for one in map(json.loads, examples.splitlines()):
            memory.capture(
                one["session"], [_message(message) for message in one["messages"]],
                agent=one["agent"], project=one["project"], title=one["title"],
                branch=one["branch"],
            )  # fmt: skip
        memory.digest()
        memory.digest.consolidate()
        _add_live_session(memory)
        _add_work(memory)


def _message(raw: dict[str, Any]) -> NewMessage:
    parts = tuple(Part(**part) for part in raw["parts"])
    return NewMessage(raw["role"], parts, datetime.fromisoformat(raw["at"]))


def _add_work(memory: Memory) -> None:
    """Add tasks, a skill, a handoff, and knowledge that waits for a decision."""
    memory.tasks.add_skill(SKILL, project=PROJECT)
    memory.tasks.start(
        "Move the arrivals query to the new index", session="live", project=PROJECT, agent="codex"
    )
    done = memory.tasks.start("Fix the double SMS", session="live", project=PROJECT, agent="codex")
    error = {
        "type": "TypeError",
        "message": "TypeError: can't compare offset-naive and offset-aware datetimes",
        "resolution": "Make both aware with `tz=UTC`.",
    }
    memory.tasks.end(
        done.task_id, outcome="success", reason="The tests pass.", report={"errors": [error]}
    )
    memory.handoffs.write(
        from_agent="codex", to_agent="claude-code", project=PROJECT, session="live",
        what_was_done="Moved the query to **ix_bookings_marina_starts_id**.",
        next_steps=["Measure it in production"],
    )  # fmt: skip
    memory.handoffs.checkpoint(agent="codex", project=PROJECT, current_task="Measure the query")
    for n in range(35):
        memory.store(f"Berth {n} is {5 + n} m deep", origin="peer", project=PROJECT)
    older = memory.store("The quota is 100 messages a minute", project=PROJECT)
    newer = memory.store("The quota is 250 messages a minute", project=PROJECT)
    memory.knowledge.link(newer, older, "contradicts")


def _add_live_session(memory: Memory) -> None:
    """Capture a session that goes on now, through the gateway, with what it was given."""
    now = memory.database.now()
    usage = {"input_tokens": 2_000, "cache_read_input_tokens": 9_000, "output_tokens": 400}
    new = [
        NewMessage("user", (Part("text", RULE),), now - timedelta(minutes=9), "u0"),
        NewMessage(
            "assistant", (Part("tool_call", '{"command": "just test"}', "bash", "c0"),),
            now - timedelta(minutes=8), "a0", model=MODEL, usage=usage,
        ),
        NewMessage(
            "tool", (Part("tool_result", "1 failed", "bash", "c0", failed=True),),
            now - timedelta(minutes=7), "t0",
        ),
        NewMessage("user", (Part("text", "Which quota holds now?"),), now, "u1"),
    ]  # fmt: skip
    memory.capture(
        "live", new, agent="codex", project=PROJECT, title="Quota of the SMS gateway",
        branch="sms-quota",
    )  # fmt: skip
    for model in (MODEL, MODEL, "claude-haiku-4-5"):
        hold = memory.budget.reserve_request(
            RequestCost(model, TokenUse(12_000, output_tokens=500), session="live")
        )
        memory.budget.settle_request(hold, TokenUse(2_000, 9_000, output_tokens=420))
    known = memory.store("The SMS gateway has a quota", project=PROJECT)
    number = memory.database.write(lambda db: db.number("SELECT max(n) FROM fragments"))
    assert number
    memory.prompts.record_injection(
        "live", Injection(ids=(known,), given=(InjectedItem(number, 7),))
    )
