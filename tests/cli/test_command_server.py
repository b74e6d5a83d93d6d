"""Commands give the same output whether the daemon executes them or a process of their own."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lore import __version__
from lore.cli.command_server import run_command
from lore.daemon import daemon_lock, process
from lore.memory import Memory
from lore.proxy.address import find_address
from lore.proxy.command_client import COMMAND_PATH, COMMANDS
from lore.proxy.daemon_client import DaemonCall
from lore.settings import load
from tests.cli.conftest import Outcome, Seeded, run_process
from tests.cli.test_start import loaded_by, on_terminal
from tests.homes import keep_handshake
from tests.waiting import eventually

SETTINGS = {"LORE_SERVER_PORT": "0", "LORE_EMBED_PROVIDER": "none"}

CASES = (
    ("recall", "which staging server?"),
    ("recall", "which staging server?", "--json"),
    ("recall", "which staging server?", "--explain"),
    ("recall", "nothing of this kind xyzzy"),
    ("recall", "heron", "--scope", "nowhere"),
    ("recall", "heron", "--limit", "0"),
    ("recall", ""),
    ("recall",),
    ("recall", "heron", "--no-such-option"),
    ("ask", "which", "staging", "server?"),
    ("ask", "nothing of this kind xyzzy", "--json"),
    ("ask",),
    ("search", "deploys"),
    ("search", "deploys", "--json"),
    ("search", "deploys", "--since", "no date"),
    ("sessions",),
    ("sessions", "deploys"),
    ("standing",),
    ("read", "zzz"),
    ("read", "00000000-0000"),
    ("explore",),
    ("roots",),
    ("roots", "--json"),
    ("log",),
    ("diff", "00000000-0000"),
    ("timeline", "00000000-0000"),
    ("why", "00000000-0000"),
    ("episodes",),
    ("stats",),
    ("spend",),
    ("spend", "--by", "planet"),
    ("search", "b\udcffd bytes"),
)


@pytest.fixture
def served(seeded: Seeded) -> Iterator[Seeded]:
    """Return a home whose daemon runs."""
    yield seeded
    process.stop(seeded.home, force=True)


def run(home: Path, *arguments: str, stdin: bytes = b"", **env: str) -> Outcome:
    words = [os.fsencode(word) for word in arguments]
    return run_process(*words, home=home, stdin=stdin, env={**SETTINGS, **env})


def start(home: Path) -> None:
    keep_handshake(home)
    run(home, "up", "--detach").works()
    eventually(lambda: find_address(str(home)))


def without_scores(outcome: Outcome) -> Outcome:
    """Return an outcome without its fractions: a score depends on the age of an item."""
    return replace(outcome, out=re.sub(r"-?\d+\.\d+", "#", outcome.out))


def test_the_output_is_the_same_with_and_without_a_daemon(served: Seeded):
    ids = (("read", served.parent), ("diff", served.parent), ("traverse", served.parent))
    cases = (*CASES, *ids)
    alone = {case: without_scores(run(served.home, *case)) for case in cases}
    start(served.home)
    for case, outcome in alone.items():
        assert without_scores(run(served.home, *case)) == outcome, case


def test_the_daemon_executes_the_command_and_the_client_loads_nothing(served: Seeded):
    start(served.home)
    for command in ("roots", "status", "stats"):
        loaded = loaded_by(served.home, command, **SETTINGS)
        assert not {"typer", "lore.memory", "lore.settings", "dataclasses"} & loaded


def test_what_is_remembered_through_the_daemon_is_stored_with_the_folder_of_the_client(
    served: Seeded, tmp_path: Path
):
    repository = tmp_path / "harbor"
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    start(served.home)
    told = run_process(
        "remember", "-", home=served.home, stdin=b"Piers close at nine", env=SETTINGS,
        cwd=repository,
    ).works()  # fmt: skip
    assert "'harbor'" in told.err
    assert "Piers close at nine" in run(served.home, "read", told.out.strip()).works().out
    found = run_process(
        "search", "piers", "--project", ".", home=served.home, env=SETTINGS, cwd=repository
    )
    assert "Piers" in found.works().out


def test_a_terminal_gets_colours_from_the_daemon_too(served: Seeded):
    alone = on_terminal(served.home, "recall", "heron", **SETTINGS)
    start(served.home)
    assert on_terminal(served.home, "recall", "heron", **SETTINGS) == alone
    assert "\x1b[1m" in alone
    assert "\x1b" not in on_terminal(served.home, "recall", "heron", NO_COLOR="1", **SETTINGS)


def test_a_stopped_daemon_is_replaced_by_the_process_itself(served: Seeded):
    alone = run(served.home, "roots").works()
    start(served.home)
    holder = daemon_lock.find_holder(served.home)
    assert holder
    os.kill(holder.pid, signal.SIGKILL)
    eventually(lambda: daemon_lock.find_holder(served.home) is None)
    assert run(served.home, "roots") == alone


def request_of(memory: Memory, **changes: object) -> bytes:
    known = {name: os.environ[name] for name in ("HOME", "TZ") if name in os.environ}
    request = {
        "version": __version__,
        "home": str(memory.settings.home),
        "arguments": ["roots"],
        "folder": "/",
        "environ": {**known, "LORE_EMBED_PROVIDER": "none"},
        "terminals": [False, False],
        "stdin": None,
    }
    return json.dumps({**request, **changes}).encode()


def test_the_daemon_declines_where_its_surroundings_differ(seeded: Seeded, tmp_path: Path):
    (tmp_path / ".lore.json").write_text('{"recall": {"max_hits": 2}}')
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=seeded.home).settings
    with Memory.open(config=config) as memory:
        answer = run_command(memory, request_of(memory))
        assert answer
        assert "Deploys" in json.loads(answer)["output"][0][1]
        differing: tuple[dict[str, object], ...] = (
            {"version": "0.0.1"},
            {"home": str(tmp_path)},
            {"folder": str(tmp_path)},
            {"environ": {"HOME": "/nowhere", "LORE_EMBED_PROVIDER": "none"}},
            {"environ": {**dict(os.environ), "LORE_RECALL_MAX_HITS": "3"}},
            {"arguments": []},
            {"arguments": ["config", "daily_budget", "1"]},
            {"arguments": ["--home", str(tmp_path), "forget", "--match", "Deploys", "--yes"]},
        )
        for changes in differing:
            assert run_command(memory, request_of(memory, **changes)) is None, changes


def test_commands_at_the_same_time_get_their_own_output(served: Seeded):
    start(served.home)
    address = find_address(str(served.home))
    assert address

    def ask(word: str) -> str:
        config = load(SETTINGS, home=served.home).settings
        known = {name: os.environ[name] for name in ("HOME", "TZ") if name in os.environ}
        body = json.dumps({
            "version": __version__, "home": str(config.home), "arguments": ["search", word],
            "folder": "/", "environ": {**known, **SETTINGS}, "terminals": [False, False],
            "stdin": None,
        }).encode()  # fmt: skip
        status, answer = DaemonCall().post(address, COMMAND_PATH, body, {}, 60.0)
        assert status == 200
        return str(json.loads(answer)["output"])

    words = ["deploys", "heron"] * 10
    with ThreadPoolExecutor(6) as pool:
        for word, output in zip(words, pool.map(ask, words), strict=True):
            assert ("heron" in output) is (word == "heron")


def test_only_the_key_of_the_home_may_execute_commands(served: Seeded):
    start(served.home)
    address = find_address(str(served.home))
    assert address
    created = run(served.home, "key", "create", "reader", "--json").works().out
    address.key, address.home = json.loads(created)["key"], ""
    status, _ = DaemonCall().post(address, COMMAND_PATH, b"{}", {}, 20.0)
    assert status == 403


def test_every_forwarded_command_exists_and_asks_nothing():
    from lore.cli import app

    names = {app._name(info) for info in app.app.registered_commands}
    assert names >= COMMANDS
    assert not COMMANDS & {"forget", "revoke", "setup", "up", "down", "run", "import", "export"}


def test_a_foreign_program_on_the_port_gets_nothing(seeded: Seeded):
    alone = run(seeded.home, "roots").works()
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = {"host": "127.0.0.1", "port": other.getsockname()[1], "pid": os.getpid()}
        (seeded.home / "server.json").write_text(json.dumps(server))
        (seeded.home / "access.key").write_text("lore_local_" + "k" * 43)
        assert run(seeded.home, "roots") == alone
