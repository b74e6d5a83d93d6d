"""Agents' commands as chats: scripts in their place, and what each of them prints."""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from lore.errors import PromptTooLong, ProviderError, ProviderUnavailable, RateLimited
from lore.llm.agent_cli import AgentCliChat
from lore.llm.chat import ChatMessage, ChatRequest, ChatResponse, Usage
from lore.llm.command_table import AGENT_COMMANDS, CommandCall, Invocation
from lore.llm.structured_output import EMPTY, REFUSED, TRUNCATED

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


def command(tmp_path: Path, script: str, name: str = "claude") -> Path:
    """Write an executable that is asked in place of an agent's command."""
    path = tmp_path / name
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o700)
    return path


def open_chat(path: Path, timeout_s: float = 60.0, provider: str = "claude-cli") -> AgentCliChat:
    agent = AGENT_COMMANDS[provider]
    folder = path.parent / "work"
    return AgentCliChat(agent, path, model="m", folder=folder, timeout_s=timeout_s)


def printing(tmp_path: Path, result: Any) -> AgentCliChat:
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
    assert Path(told["cwd"]) == (tmp_path / "work" / "claude").resolve()
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


@pytest.mark.parametrize("taken", ["work", "work/lock/", "work/claude"])
def test_a_folder_that_cannot_be_used_is_unavailable(tmp_path, taken):
    chat = printing(tmp_path, GOOD)
    place = tmp_path / taken
    place.parent.mkdir(exist_ok=True)
    place.mkdir() if taken.endswith("/") else place.write_text("")
    with pytest.raises(ProviderUnavailable):
        chat.complete(PLAIN)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("API Error: 429", RateLimited),
        ("status=529, retry", RateLimited),
        ("request 14290 failed", ProviderUnavailable),
        ("file 0x5291 is missing", ProviderUnavailable),
    ],
)
def test_a_number_means_a_limit_only_as_a_whole(tmp_path, message, kind):
    chat = printing(tmp_path, {**GOOD, "is_error": True, "result": message})
    with pytest.raises(ProviderError) as raised:
        chat.complete(PLAIN)
    assert type(raised.value) is kind


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


FORKS = """
import os, pathlib, sys, time
EMPTY, ORPHAN, SILENT = {empty}, {orphan}, {silent}
path = pathlib.Path(__file__ + ".pids")
if os.fork() == 0:
    os.setsid()
    if ORPHAN and os.fork():
        os._exit(0)
    if SILENT:
        for number in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    path.with_suffix(".part").write_text(f"{{os.getppid()}} {{os.getpid()}}")
    path.with_suffix(".part").rename(path)
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    os.execve(sleep[0], sleep, {{}} if EMPTY else dict(os.environ))
time.sleep(600)
"""
"""A command whose child starts a session of its own, and never ends."""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at")
@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize(("empty", "orphan"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("ends_by", ["timeout", "close"])
def test_what_left_the_session_of_the_command_is_killed_too(
    tmp_path, ends_by: str, empty: bool, orphan: bool, silent: bool
):
    path = command(tmp_path, FORKS.format(empty=empty, orphan=orphan, silent=silent))
    chat = open_chat(path, timeout_s=3 if ends_by == "timeout" else 600)
    caught: list[ProviderError] = []

    def wait() -> None:
        try:
            chat.complete(PLAIN)
        except ProviderError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    child = pids_of(tmp_path)[1]
    if ends_by == "close":
        chat.close()
    thread.join()
    assert caught
    while is_running(child):
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


def test_a_request_of_a_chat_that_is_closed_before_the_command_starts_is_cancelled(tmp_path):
    claude = AGENT_COMMANDS["claude-cli"]

    def invoke(call: CommandCall) -> Invocation:
        chat.close()
        return claude.invoke(call)

    path, folder = command(tmp_path, NOTES), tmp_path / "work"
    agent = replace(claude, invoke=invoke)
    chat = AgentCliChat(agent, path, model="m", folder=folder, timeout_s=60)
    with pytest.raises(ProviderUnavailable, match="cancelled"):
        chat.complete(PLAIN)
    assert not (tmp_path / "claude.told").exists()


def test_a_failure_reports_its_usage(tmp_path):
    failed = {**GOOD, "is_error": True, "result": "API Error: 500"}
    with pytest.raises(ProviderUnavailable) as caught:
        printing(tmp_path, failed).complete(PLAIN)
    assert caught.value.usage == Usage(60, 5, 30, 20, 0.25)
    free = {**failed, "usage": {}, "total_cost_usd": 0}
    with pytest.raises(ProviderUnavailable) as caught:
        printing(tmp_path, free).complete(PLAIN)
    assert caught.value.usage is None


CODEX_GOOD = """\
{"type":"thread.started","thread_id":"01"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"ignoring a setting"}}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"{\\"n\\": 3}"}}
{"type":"turn.completed","usage":{"input_tokens":60,"cached_input_tokens":30,"output_tokens":5}}
"""
CODEX_FAILED = """\
{"type":"turn.started"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"turn.failed","error":{"message":%s}}
"""
GEMINI_GOOD = """{
  "session_id": "4c4b",
  "response": "{\\"n\\": 3}",
  "stats": {"models": {"flash": {"tokens":
    {"prompt": 60, "candidates": 3, "thoughts": 2, "cached": 30}}}}
}
"""
GEMINI_FAILED = """Error: a stack trace {
  status: 400
}
{
  "session_id": "4c4b",
  "error": {"type": "Error", "message": %s, "code": 41}
}
"""
OPENCODE_GOOD = """\
{"type":"step_start","sessionID":"s","part":{"type":"step-start"}}
{"type":"text","sessionID":"s","part":{"type":"text","text":"{\\"n\\": 3}"}}
{"type":"step_finish","sessionID":"s","part":{"reason":"%s","tokens":{"total":65,"input":30,\
"output":3,"reasoning":2,"cache":{"write":0,"read":30}},"cost":0}}
"""
OPENCODE_FAILED = """\
{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":%s}}}
"""


def ask_command(
    tmp_path: Path, provider: str, printed: str, errors: str = "", ask: ChatRequest = PLAIN
) -> ChatResponse:
    """Ask a command that prints something, whatever it is asked."""
    script = f"{NOTES}\nsys.stdout.write({printed!r})\nsys.stderr.write({errors!r})"
    path = command(tmp_path, script, AGENT_COMMANDS[provider].command)
    return open_chat(path, provider=provider).complete(ask)


def words_of(tmp_path: Path, provider: str) -> list[str]:
    told = json.loads((tmp_path / f"{AGENT_COMMANDS[provider].command}.told").read_text())
    words: list[str] = told["words"]
    return words


STRUCTURED = ChatRequest("Be brief.", (ChatMessage("user", "How many?"),), 50, Number)


@pytest.mark.parametrize(
    ("provider", "printed"),
    [
        ("codex-cli", CODEX_GOOD),
        ("gemini-cli", GEMINI_GOOD),
        ("opencode-cli", OPENCODE_GOOD % "stop"),
    ],
)
def test_every_command_gives_its_answer_and_usage(tmp_path, provider, printed):
    reply = ask_command(tmp_path, provider, printed, ask=STRUCTURED)
    assert reply.value == Number(n=3)
    assert reply.usage == Usage(60, 5, 30)


def test_codex_runs_ephemeral_in_a_read_only_sandbox_and_enforces_the_schema(tmp_path):
    ask_command(tmp_path, "codex-cli", CODEX_GOOD, ask=STRUCTURED)
    words = words_of(tmp_path, "codex-cli")
    assert {"--ephemeral", "--ignore-user-config", "--ignore-rules"} <= set(words)
    assert words[words.index("--sandbox") + 1] == "read-only"
    disabled = {words[i + 1] for i, word in enumerate(words) if word == "--disable"}
    assert {"shell_tool", "unified_exec", "hooks", "plugins", "apps", "multi_agent"} <= disabled
    schema = json.loads(Path(words[words.index("--output-schema") + 1]).read_text())
    assert schema["required"] == ["n"]
    assert "How many?" not in words


def test_gemini_may_call_no_tool_and_runs_no_hook(tmp_path):
    ask_command(tmp_path, "gemini-cli", GEMINI_GOOD)
    words = words_of(tmp_path, "gemini-cli")
    policy = Path(words[words.index("--policy") + 1]).read_text()
    assert 'toolName = "*"' in policy
    assert 'decision = "deny"' in policy
    settings = json.loads((tmp_path / "work/gemini/.gemini/settings.json").read_text())
    assert settings["hooksConfig"] == {"enabled": False}
    assert words[words.index("--allowed-mcp-server-names") + 1] == "none"


def test_opencode_runs_an_agent_without_permissions_and_plugins(tmp_path):
    script = f"{NOTES}\npathlib.Path(__file__ + '.env').write_text(json.dumps(dict(os.environ)))"
    printed = OPENCODE_GOOD % "stop"
    path = command(tmp_path, f"{script}\nsys.stdout.write({printed!r})", "opencode")
    open_chat(path, provider="opencode-cli").complete(PLAIN)
    words = words_of(tmp_path, "opencode-cli")
    assert "--pure" in words
    environ = json.loads((tmp_path / "opencode.env").read_text())
    assert environ["OPENCODE_DB"] == ":memory:"
    agent = json.loads(environ["OPENCODE_CONFIG_CONTENT"])["agent"]
    (own,) = agent.values()
    assert own["permission"] == {"*": "deny"}
    assert own["prompt"] == "Be brief."
    assert words[words.index("--agent") + 1] in agent


def test_a_cut_off_answer_of_opencode_has_a_problem(tmp_path):
    assert ask_command(tmp_path, "opencode-cli", OPENCODE_GOOD % "length").problem == TRUNCATED


FAILURES = [
    ("unexpected status 401 Unauthorized: Incorrect API key provided", ProviderUnavailable),
    ("Not logged in", ProviderUnavailable),
    ("Invalid auth method selected.", ProviderUnavailable),
    ("exceeded retry limit, last status: 429 Too Many Requests", RateLimited),
    ("You exceeded your current quota", RateLimited),
    ("Your input exceeds the context window of this model", PromptTooLong),
    ("The input token count exceeds the maximum", PromptTooLong),
    ("This model's maximum context length is 100 tokens", PromptTooLong),
    ("Model not found", ProviderUnavailable),
]


@pytest.mark.parametrize(("message", "kind"), FAILURES)
@pytest.mark.parametrize(
    ("provider", "form", "to_errors"),
    [
        ("codex-cli", CODEX_FAILED, False),
        ("gemini-cli", GEMINI_FAILED, True),
        ("opencode-cli", OPENCODE_FAILED, False),
    ],
)
def test_the_errors_of_every_command_are_translated(
    tmp_path, provider, form, to_errors, message, kind
):
    document = form % json.dumps(message)
    streams = ("", document) if to_errors else (document, "")
    with pytest.raises(kind) as caught:
        ask_command(tmp_path, provider, *streams)
    assert type(caught.value) is kind
    assert message[:40] in str(caught.value)


@pytest.mark.parametrize("provider", AGENT_COMMANDS)
def test_a_login_that_is_missing_is_named_with_the_agent(tmp_path, provider):
    with pytest.raises(ProviderUnavailable, match="logged in") as caught:
        ask_command(tmp_path, provider, "", "Warning: dumb\nNot logged in · Please run /login\n")
    assert AGENT_COMMANDS[provider].title in caught.value.hint


@pytest.mark.parametrize("provider", AGENT_COMMANDS)
@pytest.mark.parametrize("printed", ["", "{", "[1]", '{"type": 1}', "\0\xff"])
def test_output_that_is_no_answer_is_an_error(tmp_path, provider, printed):
    with pytest.raises(ProviderUnavailable):
        ask_command(tmp_path, provider, printed)


def test_a_command_that_retries_a_rate_limit_for_too_long_is_rate_limited(tmp_path):
    script = (
        "import sys, time\nprint('  status: 429', file=sys.stderr, flush=True)\ntime.sleep(600)"
    )
    path = command(tmp_path, script, "gemini")
    with pytest.raises(RateLimited):
        open_chat(path, 3, "gemini-cli").complete(PLAIN)


@pytest.mark.parametrize("provider", ["claude-cli", "gemini-cli"])
def test_a_path_in_a_conversation_is_no_mention_that_the_command_would_read(tmp_path, provider):
    said = "see @/etc/passwd and mail ada@example.org"
    ask = ChatRequest("Be brief.", (ChatMessage("user", said),), 50)
    echo = "given = sys.stdin.read()\n"
    if provider == "claude-cli":
        echo += f"print(json.dumps({GOOD!r} | {{'result': given}}))"
    else:
        echo += "print(json.dumps({'session_id': 's', 'response': given}, indent=2))"
    script = f"import json, pathlib, sys\n{echo}\npathlib.Path(__file__ + '.in').write_text(given)"
    name = AGENT_COMMANDS[provider].command
    reply = open_chat(command(tmp_path, script, name), provider=provider).complete(ask)
    assert "@" not in (tmp_path / f"{name}.in").read_text()
    assert reply.text.strip() == said


SLOW = """
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
busy = here / "busy"
if busy.exists():
    (here / "two").touch()
busy.touch()
time.sleep(0.2)
busy.unlink()
print(json.dumps(%r))
"""


def test_requests_of_one_home_take_turns(tmp_path):
    path = command(tmp_path, SLOW % (GOOD,))
    threads = [threading.Thread(target=lambda: open_chat(path).complete(PLAIN)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not (tmp_path / "two").exists()


def test_close_also_cancels_the_request_that_waits_for_its_turn(tmp_path):
    first = open_chat(command(tmp_path, FAMILY), timeout_s=600)
    waiting = open_chat(tmp_path / "claude", timeout_s=600)
    caught: list[ProviderError] = []

    def ask(chat: AgentCliChat) -> None:
        try:
            chat.complete(PLAIN)
        except ProviderError as error:
            caught.append(error)

    threads = [threading.Thread(target=ask, args=(first,))]
    threads[0].start()
    pids_of(tmp_path)
    threads.append(threading.Thread(target=ask, args=(waiting,)))
    threads[1].start()
    while threads[1].is_alive():
        waiting.close()
        time.sleep(0.01)
    first.close()
    threads[0].join()
    assert len(caught) == 2
