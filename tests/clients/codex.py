"""Sessions of Codex: tools, failures, a subagent, resuming, compaction, an interruption."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.clients.client import Client, Run
from tests.clients.conversation import Exchange
from tests.clients.project import CANARY
from tests.upstream import Call, Fault, ModelReply, Result, Scene, Thought

MODEL = "gpt-5.5"
"""One that Codex has the description of, so that it offers all its tools."""

PLAIN = """\
model = "{model}"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
apps = false
plugins = false
remote_plugin = false
"""
"""Codex as a person has it: it goes to OpenAI, and tries a WebSocket first."""

COMPACT_LIMIT_TOKENS = 60_000
CONFIG = f"""\
model_provider = "scripted"
model_auto_compact_token_limit = {{limit}}
{PLAIN}
[model_providers.scripted]
name = "scripted"
base_url = "{{url}}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 3
stream_max_retries = 2
"""

FIX = "Please look at src/dates.py, run it and mend it. The bucket key is " + CANARY + "."
FAIL = "Now print the file notes/plan.txt and rename parse_date."
DELEGATE = "Let a subagent count the functions in src."
ERRAND = "Count the functions below src and report the number."
RESUMED = "We decided to keep day first everywhere; what is still open?"
FILL = "Read everything you can until the window is full."
COMPACT = "CONTEXT CHECKPOINT COMPACTION"
AFTER = "After the summary: which file did we mend?"
FORKED = "In this branch of the talk, call the module calendar instead."
SLOW = "Tell me slowly about leap years."
REWORD = "Stop, say it in one sentence."
BUSY = "Is the provider awake?"
CUT = "Say something while the line breaks."
BROKEN = "Ask something the provider refuses."

PATCH = """\
*** Begin Patch
*** Update File: src/dates.py
@@
-    return int(month), int(day), int(year)
+    return int(day), int(month), int(year)
*** End Patch
"""
BAD_PATCH = PATCH.replace("return int", "return float")
AGENTS = "multi_agent_v1"


def scenes(project: Path) -> tuple[Scene, ...]:
    """Write the script of all sessions for a project folder."""
    fix = (
        ModelReply(
            Thought("The order of day and month looks swapped. First read."),
            "I will read the file and run it.",
            Call("exec_command", {"cmd": "cat src/dates.py"}),
            Call("exec_command", {"cmd": "python3 src/dates.py; echo ran"}),
        ),
        ModelReply(
            Thought("Month and day are swapped in the return."),
            Call("apply_patch", freeform=PATCH),
            Call("view_image", {"path": str(project / "pixel.png")}),
        ),
        ModelReply("Mended: parse_day now returns day, month, year."),
    )
    fail = (
        ModelReply(
            "I will print the plan.",
            Call("exec_command", {"cmd": "cat notes/plan.txt"}),
        ),
        ModelReply(
            Call("apply_patch", freeform=BAD_PATCH),
            Call("no_such_tool", {"depth": 3}),
        ),
        ModelReply("There is no plan, and no parse_date either."),
    )
    delegate = (
        ModelReply(
            "A subagent will count.",
            Call("spawn_agent", {"message": ERRAND}, namespace=AGENTS),
        ),
        wait_for_agent,
        ModelReply("The subagent counted one function."),
    )
    count = Call("exec_command", {"cmd": "grep -c 'def ' src/dates.py"})
    refused = Fault(status=400, times=99, message="this is refused")
    return (
        Scene(COMPACT, (ModelReply("We mended parse_day in src/dates.py: day first."),), "client"),
        Scene(FIX, fix),
        Scene(FAIL, fail),
        Scene(DELEGATE, delegate),
        Scene(ERRAND, (ModelReply(Thought("Use grep."), count), ModelReply("One.")), "agent"),
        Scene(RESUMED, (ModelReply(Thought("What is left?"), "Open: tests for parse_day."),)),
        Scene(
            FILL,
            (ModelReply("The window is nearly full.", input_tokens=COMPACT_LIMIT_TOKENS + 5_000),),
        ),
        Scene(AFTER, (ModelReply("We mended src/dates.py."),)),
        Scene(FORKED, (ModelReply("In this branch it is called calendar."),)),
        Scene(SLOW, (ModelReply("A leap year has one day more. " * 40, pause_s=0.05),)),
        Scene(REWORD, (ModelReply("Every fourth year, but not every hundredth."),)),
        Scene(BUSY, (ModelReply("Awake now.", fault=Fault(status=500, times=2)),)),
        Scene(CUT, (ModelReply("Said in one piece.", fault=Fault(cut_after_events=6)),)),
        Scene(BROKEN, (ModelReply("Never said.", fault=refused),)),
    )


def wait_for_agent(results: tuple[Result, ...]) -> ModelReply:
    """Wait for the subagent whose id the first result tells."""
    told = json.loads(results[0].text) if results else {}
    targets = {"targets": [told.get("agent_id", "")]}
    return ModelReply(Call("wait_agent", targets, namespace=AGENTS))


def prepare(home: Path, upstream_url: str) -> tuple[tuple[str, str], ...]:
    """Write the configuration that leads Codex to the scripted upstream."""
    folder = home / ".codex"
    folder.mkdir(parents=True)
    text = CONFIG.format(url=upstream_url, model=MODEL, limit=COMPACT_LIMIT_TOKENS)
    (folder / "config.toml").write_text(text)
    return (("OPENAI_API_KEY", "dummy-key-for-loopback"),)


def play(client: Client) -> list[Run]:
    """Run all sessions, the long one first."""
    runs: list[Run] = []

    def say(prompt: str, *words: str) -> str:
        runs.append(client.run("exec", *words, "--json", "-", input=prompt))
        return thread_of(runs[-1].stdout)

    session = say(FIX)
    say(FAIL, "resume", session)
    say(DELEGATE, "resume", session)
    say(RESUMED, "resume", "--last")
    say(FILL, "resume", session)
    say(AFTER, "resume", session)
    say(FORKED, "fork", session)
    interrupted = interrupt(client)
    say(REWORD, "resume", interrupted)
    faulty = say(BUSY)
    say(CUT, "resume", faulty)
    say(BROKEN, "resume", faulty)
    return runs


def thread_of(stdout: str) -> str:
    for line in stdout.splitlines():
        event = json.loads(line)
        if event["type"] == "thread.started":
            return str(event["thread_id"])
    raise ValueError(stdout)


def interrupt(client: Client) -> str:
    """Interrupt a reply in the middle; return the session."""
    with client.start("exec", "--json", SLOW) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.close()
        lines = []
        for line in running.stdout:
            lines.append(line)
            if "turn.started" in line:
                break
        client.wait_for_answer(SLOW)
        running.send_signal(signal.SIGINT)
        running.stdout.read()
    return thread_of("".join(lines))


def session_of(exchange: Exchange) -> tuple[str, str]:
    """Tell the session, and the subagent where the thread is not the session's own."""
    session, thread = exchange.headers["session-id"], exchange.headers["thread-id"]
    return session, "" if thread == session else thread


def transcripts(home: Path) -> list[Path]:
    """List what Codex wrote about its sessions."""
    return sorted((home / ".codex" / "sessions").rglob("*.jsonl"))
