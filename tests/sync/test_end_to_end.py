"""Real `lore` processes of three homes: a file, ssh and a server, with kills in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from lore.proxy.address import Address, find_address
from lore.records import AccessScope, NewMessage, Part
from lore.server.registry import Registry
from tests.engines import postgres_url as postgres_url
from tests.fakes import NOON
from tests.server.test_process import running
from tests.store.samples import open_memory
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
LORE = f"{sys.executable} -m lore.cli"
MESSAGES = 600
"""More than two pages."""


class Laptop:
    """A home, and the `lore` of its user."""

    def __init__(self, folder: Path, name: str, **environ: str) -> None:
        self.home = folder / name
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("LORE_")},
            "HOME": str(folder / f"user-{name}"),
            "LORE_HOME": str(self.home),
            "LORE_EMBED_PROVIDER": "none",
            "LORE_SERVER_PORT": "0",
            "LORE_SYNC_SSH": f"{sys.executable} -m tests.sync.dying_ssh",
            "LORE_SYNC_REMOTE": LORE,
            **environ,
        }
        (folder / f"user-{name}").mkdir()

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LORE.split(), *words],
            env=self.environ | environ, cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def do(self, *words: str, **environ: str) -> str:
        done = self.run(*words, **environ)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def sync(self, *words: str, **environ: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.do("sync", *words, "--json", **environ))
        return result

    def hash(self) -> str:
        return self.do("sync", "--hash").strip()

    def files(self) -> bytes:
        return b"".join(f.read_bytes() for f in sorted(self.home.rglob("*")) if f.is_file())

    @contextmanager
    def serve(self) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
        with subprocess.Popen(
            [*LORE.split(), "up"], env=self.environ, cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as server:  # fmt: skip
            try:
                yield eventually(lambda: find_address(str(self.home))), server  # type: ignore[misc]
            finally:
                server.terminate()


def fill(laptop: Laptop) -> None:
    with open_memory(laptop.home) as memory:
        texts = (f"Step {place} went well." for place in range(MESSAGES))
        new = [
            NewMessage("user", (Part("text", text),), NOON + timedelta(seconds=place), key=text)
            for place, text in enumerate(texts)
        ]
        memory.capture("a-long-talk", new, agent="codex", title="A long talk")
        memory.remember("The staging database is called zebrafish.")


def test_two_laptops_by_ssh_survive_kills_of_either_side(tmp_path: Path) -> None:
    one, other = Laptop(tmp_path, "one"), Laptop(tmp_path, "other")
    fill(one)
    other.do("remember", "Deploys go out on Tuesdays only.", "--everywhere")
    reach = {"OTHER_HOME": str(other.home)}
    for place, who in ((2, "remote"), (3, "client"), (4, "remote"), (5, "client")):
        done = one.run("sync", "laptop:", **reach, DIES=f"{who}:{place}")
        assert done.returncode == (18 if who == "remote" else -signal.SIGKILL), done.stderr
    (failed,) = json.loads(one.do("sync", "--status", "--json"))["peers"]
    assert (failed["name"], failed["synced_at"]) == ("laptop:", None)
    assert "ended the connection" in failed["problem"]
    result = one.sync("laptop:", **reach)
    assert result["state_hash"] == result["peer_hash"] == other.hash() == one.hash()
    again = one.sync("laptop:", **reach)
    assert (again["sent"], again["received"], again["changed"]) == (0, 0, 0)
    assert "Tuesdays" in one.do("recall", "when do deploys go out")
    assert "zebrafish" in other.do("recall", "name of the staging database")
    assert one.hash() == other.hash()
    state = json.loads(one.do("sync", "--status", "--json"))
    assert [peer["problem"] for peer in state["peers"]] == [""]
    assert one.run("sync", "laptop:", OTHER_HOME=str(one.home)).returncode == 17


def test_a_file_takes_everything_to_a_paired_machine_and_refuses_others(tmp_path: Path) -> None:
    one, other = Laptop(tmp_path, "one"), Laptop(tmp_path, "other")
    fill(one)
    bundle = tmp_path / "bundle"
    one.do("sync", "--to", str(bundle))
    assert bundle.stat().st_mode & 0o077 == 0
    foreign = other.run("sync", "--from", str(bundle))
    assert (foreign.returncode, "another key" in foreign.stderr) == (17, True)
    other.do("sync", "--join", one.do("sync", "--pair").strip())
    cut_off = tmp_path / "cut-off"
    cut_off.write_bytes(bundle.read_bytes()[:-40])
    half = other.run("sync", "--from", str(cut_off))
    assert (half.returncode, "cut off" in half.stderr) == (17, True)
    assert other.sync("--from", str(bundle))["state_hash"] == one.hash()
    assert other.sync("--from", str(bundle))["changed"] == 0
    text = tmp_path / "text"
    text.write_text("hello")
    assert other.run("sync", "--from", str(text)).returncode == 17


def test_two_laptops_meet_at_a_server_that_is_killed(tmp_path: Path) -> None:
    one, other = Laptop(tmp_path, "one"), Laptop(tmp_path, "other")
    hub = Laptop(tmp_path, "hub")
    fill(one)
    secret = hub.do(
        "key", "create", "laptops", "--scope=read", "--scope=write", "--scope=push"
    ).strip()
    with hub.serve() as (address, server):
        access = {"LORE_SYNC_API_KEY": secret, "LORE_SYNC_TARGET": address.url}
        assert one.sync(**access)["sent"] > MESSAGES
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        offline = other.run("sync", **access)
        assert (offline.returncode, "cannot be reached" in offline.stderr) == (18, True)
    with hub.serve() as (address, _):
        access["LORE_SYNC_TARGET"] = address.url
        wrong = other.run("sync", **access | {"LORE_SYNC_API_KEY": "lore_a_b"})
        assert (wrong.returncode, "access key" in wrong.stderr) == (17, True)
        result = other.sync(**access)
        assert result["state_hash"] == result["peer_hash"] == one.hash()
        hit = json.loads(other.do("search", "staging", "--json"))[0]["id"]
        other.do("forget", hit, "--yes")
        other.do("forget", "--match", "Step 77 went well", "--yes")
        other.sync(**access)
        assert one.sync(**access)["forgotten"] >= 2
        for laptop in (one, other, hub):
            assert b"zebrafish" not in laptop.files()
            assert b"Step 77 went" not in laptop.files()


def test_two_laptops_meet_at_a_team_server_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    one, other, data = Laptop(tmp_path, "one"), Laptop(tmp_path, "other"), tmp_path / "server"
    keys = {}
    with Registry.open(data) as registry:
        for name in ("ann", "ben"):
            registry.add_owner(name)
            scopes: tuple[AccessScope, ...] = ("read", "write", "push")
            keys[name], _ = registry.create_key("laptops", owner=name, scopes=scopes)
    with open_memory(one.home) as memory:
        id_ = memory.remember("The staging database is called zebrafish.").id
        memory.remember("Deploys go out on Tuesdays only.")
    with running(data, url=postgres_url) as server:
        access = {"LORE_SYNC_API_KEY": keys["ann"],
                  "LORE_SYNC_TARGET": f"http://127.0.0.1:{server.port}"}  # fmt: skip
        first, second = one.sync(**access), other.sync(**access)
        assert first["sent"] >= 2
        assert first["state_hash"] == second["state_hash"] == second["peer_hash"]
        other.do("forget", id_, "--yes")
        other.sync(**access)
        assert one.sync(**access)["forgotten"] == 1
        assert server.texts(keys["ann"]) == {"Deploys go out on Tuesdays only."}
        assert server.texts(keys["ben"]) == set()
    assert b"zebrafish" not in one.files()
