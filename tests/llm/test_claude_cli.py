"""`claude -p`: a script in its place, and where it is installed the command itself."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.llm.chat import ChatMessage, ChatRequest, Usage
from lore.llm.claude_cli import ClaudeCliChat
from lore.llm.structured_output import EMPTY, REFUSED, TRUNCATED
from tests.clients.claude_code import SETTINGS
from tests.clients.client import PREFIX_VARIABLE, find_command
from tests.upstream import ModelReply, Scene, SceneScript, running_upstream

PLAIN = ChatRequest("Be brief.", (ChatMessage("user", "How many?"),), 50)
GOOD = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Three.",
    "stop_reason": "end_turn",
    "total_cost_usd": 0.25,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 30,
        "output_tokens": 5,
    },
}
NOTES = """
import json, os, pathlib, sys
told = {"words": sys.argv[1:], "given": sys.stdin.read(), "cwd": os.getcwd()}
pathlib.Path(__file__ + ".told").write_text(json.dumps(told))
"""


class Number(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    n: int


def command(tmp_path: Path, script: str) -> Path:
    """Write an executable that is asked in place of claude."""
    path = tmp_path / "claude"
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o700)
    return path


def open_chat(path: Path, timeout_s: float = 60.0) -> ClaudeCliChat:
    return ClaudeCliChat(path, model="haiku", folder=path.parent / "work", timeout_s=timeout_s)


def printing(tmp_path: Path, result: Any) -> ClaudeCliChat:
    """Return a chat whose command prints something, whatever it is asked."""
    said = result if isinstance(result, str) else json.dumps(result)
    return open_chat(command(tmp_path, f"{NOTES}\nsys.stdout.write({said!r})"))


def test_a_response_reports_its_usage(tmp_path):
    reply = printing(tmp_path, GOOD).complete(PLAIN)
    assert (reply.text, reply.problem) == ("Three.", "")
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.usd) == (60, 5, 0.25)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (30, 20)


def test_the_command_gets_no_tools_no_settings_and_no_session(tmp_path):
    printing(tmp_path, GOOD).complete(PLAIN)
    told = json.loads((tmp_path / "claude.told").read_text())
    words = told["words"]
    assert words[words.index("--tools") + 1] == ""
    assert words[words.index("--setting-sources") + 1] == ""
    assert {"-p", "--no-session-persistence", "--safe-mode", "--strict-mcp-config"} <= set(words)
    assert words[words.index("--system-prompt") + 1] == "Be brief."
    assert told["given"] == "How many?"
    assert Path(told["cwd"]) == (tmp_path / "work").resolve()
    assert "How many?" not in words


def test_a_schema_is_sent_as_text_and_the_value_validated(tmp_path):
    chat = printing(tmp_path, {**GOOD, "result": '```json\n{"n": 3}\n```'})
    ask = ChatRequest("Be brief.", (ChatMessage("user", "How many?"),), 50, Number)
    assert chat.complete(ask).value == Number(n=3)
    told = json.loads((tmp_path / "claude.told").read_text())
    assert "JSON schema" in told["words"][-1]


def test_the_previous_problem_is_sent_in_one_prompt(tmp_path):
    messages = (ChatMessage("user", "A"), ChatMessage("assistant", "B"), ChatMessage("user", "C"))
    printing(tmp_path, GOOD).complete(ChatRequest("s", messages, 50))
    given = json.loads((tmp_path / "claude.told").read_text())["given"]
    assert given.index("A") < given.index("B") < given.index("C")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"stop_reason": "max_tokens"}, TRUNCATED),
        (
            {"is_error": True, "result": "API Error: exceeded the 50 output token maximum"},
            TRUNCATED,
        ),
        ({"stop_reason": "refusal"}, REFUSED),
        ({"result": ""}, EMPTY),
    ],
)
def test_an_unusable_answer_has_a_problem(tmp_path, changed, problem):
    assert printing(tmp_path, {**GOOD, **changed}).complete(PLAIN).problem == problem


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({**GOOD, "is_error": True, "result": "Invalid API key"}, ProviderUnavailable),
        ({**GOOD, "is_error": True, "result": "Claude AI usage limit reached|17"}, RateLimited),
        ({**GOOD, "is_error": True, "result": "API Error: 529 Overloaded"}, RateLimited),
        ({**GOOD, "is_error": True, "result": "Prompt is too long"}, PromptTooLong),
        ({**GOOD, "is_error": True, "result": ""}, ProviderUnavailable),
        ({**GOOD, "type": "system"}, ProviderUnavailable),
        ({**GOOD, "usage": {"input_tokens": -1}}, ProviderUnavailable),
        ("", ProviderUnavailable),
        ("not json", ProviderUnavailable),
        ("[1]", ProviderUnavailable),
    ],
)
def test_every_failure_raises_a_provider_error(tmp_path, result, kind):
    with pytest.raises(kind) as caught:
        printing(tmp_path, result).complete(PLAIN)
    assert type(caught.value) is kind


def test_a_missing_command_is_unavailable(tmp_path):
    with pytest.raises(ProviderUnavailable):
        open_chat(tmp_path / "claude").complete(PLAIN)
    (tmp_path / "claude").write_text("no program")
    with pytest.raises(ProviderUnavailable):
        open_chat(tmp_path / "claude").complete(PLAIN)


def test_too_much_output_kills_the_command(tmp_path):
    script = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    with pytest.raises(ProviderUnavailable):
        open_chat(command(tmp_path, script)).complete(PLAIN)


FAMILY = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
path = pathlib.Path(__file__ + ".pids")
path.with_suffix(".part").write_text(f"{os.getpid()} {child.pid}")
path.with_suffix(".part").rename(path)
time.sleep(600)
"""
"""A command that starts another and never ends."""


def pids_of(tmp_path: Path) -> list[int]:
    path = tmp_path / "claude.pids"
    while not path.exists():
        time.sleep(0.01)
    return [int(pid) for pid in path.read_text().split()]


def is_running(pid: int) -> bool:
    """Tell whether a process lives; one that nobody waited for does not."""
    with suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at")
def test_a_timeout_kills_the_command_and_its_children(tmp_path):
    with pytest.raises(ProviderUnavailable) as caught:
        open_chat(command(tmp_path, FAMILY), timeout_s=3).complete(PLAIN)
    assert caught.value.billed
    for pid in pids_of(tmp_path):
        while is_running(pid):
            time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at")
def test_close_kills_the_command_and_its_children(tmp_path):
    chat = open_chat(command(tmp_path, FAMILY), timeout_s=600)
    caught: list[ProviderError] = []

    def wait() -> None:
        try:
            chat.complete(PLAIN)
        except ProviderError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    pids = pids_of(tmp_path)
    chat.close()
    thread.join()
    assert caught
    for pid in pids:
        while is_running(pid):
            time.sleep(0.01)


@pytest.fixture
def clean_environment(monkeypatch, tmp_path):
    """Leave nothing in the environment but what the command may know."""
    for name in set(os.environ) - {"PATH", PREFIX_VARIABLE}:
        monkeypatch.delenv(name)
    for name, value in SETTINGS:
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return monkeypatch


def test_the_command_itself_answers_without_tools_and_leaves_no_session(
    clean_environment, tmp_path
):
    claude = find_command("claude")
    if claude is None:
        pytest.skip(f"claude is not installed: name its npm prefix in {PREFIX_VARIABLE}")
    with running_upstream(
        SceneScript((Scene("How many?", (ModelReply('{"n": 3}'),)),))
    ) as upstream:
        clean_environment.setenv("ANTHROPIC_BASE_URL", upstream.url)
        clean_environment.setenv("HTTPS_PROXY", upstream.url)
        clean_environment.setenv("NO_PROXY", "127.0.0.1,localhost")
        chat = ClaudeCliChat(claude, model="haiku", folder=tmp_path / "work", timeout_s=120)
        ask = ChatRequest("Be brief.", (ChatMessage("user", "How many?"),), 50, Number)
        assert chat.complete(ask).value == Number(n=3)
        (asked,) = [one for one in upstream.requests if one.json]
    assert asked.json["tools"] == []
    assert asked.json["max_tokens"] == 50
    assert "Be brief." in json.dumps(asked.json["system"])
    assert not list((tmp_path / "home").rglob("*.jsonl"))


def test_a_failure_reports_its_usage(tmp_path):
    failed = {**GOOD, "is_error": True, "result": "API Error: 500"}
    with pytest.raises(ProviderUnavailable) as caught:
        printing(tmp_path, failed).complete(PLAIN)
    assert caught.value.usage == Usage(60, 5, 30, 20, 0.25)
    free = {**failed, "usage": {}, "total_cost_usd": 0}
    with pytest.raises(ProviderUnavailable) as caught:
        printing(tmp_path, free).complete(PLAIN)
    assert caught.value.usage is None
