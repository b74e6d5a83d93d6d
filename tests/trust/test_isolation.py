"""No byte of one owner reaches another: generated attempts over every route, tool and trick."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.daemon.log_file import LineFormatter
from lore.gateway.request_head import Upstreams
from lore.proxy.address import API_PREFIX
from tests.server.attempts import ENDPOINTS, Attempt, Handles, Harvest, make_attempts
from tests.server.served import Reply, Served, serving
from tests.upstream import running_upstream

ATTEMPTS = int(os.environ.get("LORE_ISOLATION_ATTEMPTS", "6000"))
"""A minute's worth on two cores; LORE_ISOLATION_ATTEMPTS=20000 before a release."""

OWNERS = ("ann", "ben", "cy")
AT_ONCE = 8


class Lines(logging.Handler):
    """Collects the lines of the log as they would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def canary(owner: str, place: str) -> str:
    """Return a text that only one owner stores, in one place."""
    return f"kanari{owner}{place}{secrets.token_hex(6)}"


def seed(served: Served, owner: str, key: str) -> None:
    """Store canaries of an owner in every field that the API takes."""

    def post(path: str, tree: object, **headers: str) -> Reply:
        reply = served.post(f"{API_PREFIX}{path}", tree, key, **headers)
        assert reply.status == 200, (path, reply.body)
        return reply

    project, session = f"/code/{owner}-harbor", f"{owner}-session"
    here = {"x_lore_project": project, "x_lore_session": session}
    messages = [
        {"role": role, "text": f"harbor {canary(owner, 'said')} gate", "key": f"{owner}-{i}",
         "speaker": canary(owner, "by"), "model": canary(owner, "model")}
        for i, role in enumerate(("user", "assistant") * 4)
    ]  # fmt: skip
    post("/capture", {
        "session": session, "messages": messages, "project": project, "agent": "codex",
        "title": canary(owner, "title"), "branch": canary(owner, "branch"),
        "files": [f"{project}/{canary(owner, 'file')}.py"],
    })  # fmt: skip
    ids = [
        post("/tools/store", {"content": f"harbor {canary(owner, kind)} gate", "kind": kind,
                              "summary": f"harbor {canary(owner, 'summary')}"}, **here).json
        for kind in ("fact", "decision", "preference", "workflow", "bug_fix")
    ]  # fmt: skip
    first, second = (one["data"]["id"] for one in ids[:2])
    post("/tools/link", {"source": first, "target": second, "kind": "supports"})
    post("/tools/update", {"id": first, "content": f"harbor {canary(owner, 'update')}"})
    post("/tools/before_task", {"goal": f"harbor {canary(owner, 'goal')}"}, **here)
    post("/tools/after_task", {"outcome": "success"}, **here)
    post("/tools/handoff_write", {"to_agent": "codex", "what_was_done": canary(owner, "did"),
                                  "next_steps": [canary(owner, "next")]}, **here)  # fmt: skip
    post("/tools/checkpoint", {"agent": "codex", "current_task": canary(owner, "task")}, **here)
    page = f"---\nname: {owner}-skill\ndescription: d\n---\n## Steps\n1. {canary(owner, 'skill')}\n"
    post("/tools/skill_write", {"page": page}, **here)
    post("/retrieve", {"query": f"harbor {canary(owner, 'query')}"}, **here)
    hook = {"session_id": session, "cwd": project, "prompt": f"harbor {canary(owner, 'prompt')}"}
    post("/hooks/UserPromptSubmit", hook)
    served.registry.add_team(f"{owner}-team", quorum=1)
    served.registry.add_member(f"{owner}-team", owner)
    post(f"/teams/{owner}-team/publications", {"id": second})
    post("/fragments/" + second + "/delete", {})
    served.registry.set_provider_key(f"{owner}-team", "openai", canary(owner, "provider"))


def harvest(served: Served, owner: str, key: str) -> Handles:
    """Return the handles of an owner that an attacker might come to know."""
    found = Harvest()
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET" and "{" not in endpoint.path:
            limit = "?limit=2" if "limit" in endpoint.arguments.model_fields else ""
            reply = served.get(f"{API_PREFIX}{endpoint.path}{limit}", key)
            found.read(reply.body, reply.header("etag"))
    listed = served.get(f"{API_PREFIX}/teams/{owner}-team/publications", key)
    found.read(listed.body, listed.header("etag"))
    login = served.get(served.post(f"{API_PREFIX}/logins", {}, key).json["path"])
    record = served.registry.find_key(key)
    assert record is not None
    ids = sorted(found.ids)
    rng = random.Random(owner)
    return Handles(
        tuple(rng.sample(ids, min(12, len(ids)))),
        (f"{owner}-session", f"/code/{owner}-harbor", f"{owner}-team", f"{owner}-skill", "codex"),
        tuple(sorted(found.cursors)),
        tuple(sorted(found.tags))[:10],
        # The cookie itself opens the memory; a thief of it is not kept out by isolation.
        login.header("set-cookie").partition(";")[0][:-4],
        record.owner,
        record.prefix,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("isolation")


@pytest.fixture(scope="module")
def log() -> Iterator[Lines]:
    lines, logger = Lines(), logging.getLogger("lore")
    level = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG)
    yield lines
    logger.removeHandler(lines)
    logger.setLevel(level)


def state_of(served: Served, key: str) -> list[object]:
    """Return what an owner has, to see that nobody else changed it."""
    paths = ("/fragments?limit=500", "/sessions?limit=500", "/edges?limit=500", "/handoffs",
             "/projects?limit=500", "/teams")  # fmt: skip
    return [served.get(f"{API_PREFIX}{path}", key).json for path in paths]


async def try_all(served: Served, key: str, attempts: list[Attempt], other: str) -> list[str]:
    """Send all attempts of an owner; return those that brought a foreign byte, or a 5xx."""
    leaks: list[str] = []
    queue = iter(attempts)

    async def work() -> None:
        for attempt in queue:
            headers = [*attempt.headers]
            if not any(name == "x-lore-key" for name, _ in headers):
                headers.append(("authorization", f"Bearer {key}"))
            reply = await served.ask(attempt.method, attempt.path, headers, attempt.body)
            if re.search(other.encode(), reply.bytes) or reply.status >= 500:
                leaks.append(f"{reply.status} {attempt.trick} {attempt.method} {attempt.path}")

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return leaks


def test_no_attempt_brings_a_byte_of_another_owner(home: Path, log: Lines):
    with serving(home) as served:
        keys = {owner: served.add(owner) for owner in OWNERS}
        for owner, key in keys.items():
            seed(served, owner, key)
        handles = {owner: harvest(served, owner, keys[owner]) for owner in OWNERS}
        assert all(len(one.ids) >= 8 and one.cursors and one.tags for one in handles.values())
        before = {owner: state_of(served, key) for owner, key in keys.items()}
        assert all(f"kanari{owner}" in json.dumps(before[owner]) for owner in OWNERS)
        operator, _ = served.registry.create_key("operator", scopes=("read",))
        pairs = [(a, v) for a in ("ann", "ben") for v in OWNERS if a != v]
        sent: Counter[str] = Counter()
        for i, (attacker, victim) in enumerate(pairs):
            each = -(-(ATTEMPTS - sent.total()) // (len(pairs) - i))
            attempts = make_attempts(handles[victim], random.Random(i), each)
            sent.update(one.route for one in attempts)
            others = "|".join(f"kanari{owner}" for owner in OWNERS if owner != attacker)
            work = try_all(served, keys[attacker], attempts, others)
            found = asyncio.run_coroutine_threadsafe(work, served.loop).result(1_800)
            assert found == []
        assert sent.total() >= ATTEMPTS
        assert {one.path for one in ENDPOINTS if one.path != "/status"} - set(sent) == set()
        # Nothing of the third owner, whom nobody was, has changed; nobody changed another's things.
        assert state_of(served, keys["cy"]) == before["cy"]
        for path in ("/metrics", "/status"):
            assert b"kanari" not in served.get(path, operator).bytes
            assert b"kanariann" not in served.get(path, keys["ben"]).bytes
    text = "\n".join(log.lines)
    assert "kanari" not in text
    assert not any(key in text or key.split("_", 2)[2] in text for key in keys.values())
    check_files(home)


def check_files(home: Path) -> None:
    """Search every file of each owner for the canaries of others."""
    by_owner = {path.name: path for path in (home / "owners").iterdir()}
    assert len(by_owner) == len(OWNERS)
    for folder in by_owner.values():
        content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        seen = {owner for owner in OWNERS if f"kanari{owner}".encode() in content}
        assert len(seen) == 1, folder
    registry = b"".join(path.read_bytes() for path in home.glob("server.db*"))
    assert not re.search(rb"kanari\w+provider", registry)


def test_a_foreign_id_answers_like_one_that_does_not_exist(tmp_path: Path):
    with serving(tmp_path) as served:
        keys = {owner: served.add(owner) for owner in ("ann", "ben")}
        for owner, key in keys.items():
            seed(served, owner, key)
        foreign = harvest(served, "ann", keys["ann"]).ids
        missing = [f"{id_[:9]}{secrets.token_hex(2)}-7{id_[15:]}" for id_ in foreign]
        for endpoint in (one for one in ENDPOINTS if "{id}" in one.path):
            for ids in zip(foreign, missing, strict=True):
                replies = [_ask_for(served, keys["ben"], endpoint.method, endpoint.path, id_)
                           for id_ in ids]  # fmt: skip
                shown = [reply.body.replace(id_.encode(), b"ID")
                         for reply, id_ in zip(replies, ids, strict=True)]  # fmt: skip
                assert replies[0].status == replies[1].status, endpoint.path
                assert shown[0] == shown[1], endpoint.path


def _ask_for(served: Served, key: str, method: str, path: str, id_: str) -> Reply:
    filled = f"{API_PREFIX}{path}".replace("{id}", id_).replace("{team}", "ben-team")
    if method == "GET":
        return served.get(filled, key)
    body = {"content": "x"} if path.endswith(("/update", "/supersede")) else {}
    if path.startswith("/review"):
        body = {"decision": "approve"}
    return served.post(filled, json.loads(json.dumps(body)), key)


def test_the_gateway_puts_nothing_of_another_owner_into_a_prompt(tmp_path: Path):
    with (
        running_upstream() as up,
        serving(tmp_path, upstreams=Upstreams(up.url, up.url, up.url)) as served,
    ):
        keys = {owner: served.add(owner) for owner in ("ann", "ben")}
        for owner, key in keys.items():
            seed(served, owner, key)
        names = ["ann-session", "/code/ann-harbor", *harvest(served, "ann", keys["ann"]).ids[:4]]
        headers = ("x-claude-code-session-id", "x-session-id", "session-id", "thread-id",
                   "x-lore-project", "x-lore-session", "x-parent-session-id")  # fmt: skip
        for header in headers:
            for name in names:
                for path, body in _prompts(name):
                    sent = [(header, name), ("x-lore-key", keys["ben"]), ("x-api-key", "sk-x"),
                            ("authorization", "Bearer sk-x"),
                            ("content-type", "application/json")]  # fmt: skip
                    reply = served.run(served.ask("POST", path, sent, body))
                    assert b"kanariann" not in reply.bytes, (header, path)
        assert len(up.model_requests) >= len(headers) * len(names)
        for request in up.requests:
            assert b"kanariann" not in request.body
            assert "kanariann" not in str(request.headers)
            assert keys["ben"] not in str(request.headers)


def _prompts(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield requests to models that name a foreign session in their bodies, too."""
    said = [{"role": "user", "content": "What do you know about the harbor gate?"}]
    named = {"metadata": {"user_id": f"user_x_account_y_session_{name}"}}
    yield (
        "/v1/messages",
        json.dumps({"model": "m", "max_tokens": 9, "messages": said, **named}).encode(),
    )
    yield (
        "/v1/chat/completions",
        json.dumps({"model": "m", "messages": said, "user": name}).encode(),
    )
