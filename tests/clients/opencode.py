"""Sessions of opencode: tools, failures, a subagent, resuming, compaction, an interruption."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.clients.client import Client, Run
from tests.clients.conversation import Exchange
from tests.clients.project import CANARY
from tests.upstream import Call, Fault, ModelReply, Scene, Thought

WINDOW_TOKENS = 100_000
FULL_WINDOW_TOKENS = 95_000
"""More than opencode lets a window hold beside the 8,000 tokens of an answer."""

SETTINGS = (
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_SHARE", "1"),
    ("npm_config_offline", "true"),
)

TITLE = "You are a title generator"
SUMMARY = "You are a context summarization agent"
FIX = "Please look at src/dates.py, run it and mend it. The bucket key is " + CANARY + "."
FAIL = "Now print the file notes/plan.txt and rename parse_date."
DELEGATE = "Let a subagent count the functions in src."
ERRAND = "Count the functions below src and report the number."
RESUMED = "We decided to keep day first everywhere; what is still open?"
FILL = "Read everything you can until the window is full."
CONTINUE = (
    "Continue if you have next steps, or stop and ask for clarification "
    "if you are unsure how to proceed."
)
"""What opencode says in the person's place after it has emptied the window."""

AFTER = "After the summary: which file did we mend?"
FORKED = "In this branch of the talk, call the module calendar instead."
SLOW = "Tell me slowly about leap years."
REWORD = "Stop, say it in one sentence."
BUSY = "Is the provider awake?"
BROKEN = "Ask something the provider refuses."


def scenes(project: Path) -> tuple[Scene, ...]:
    """Write the script of all sessions for a project folder."""
    dates = str(project / "src" / "dates.py")
    edit = {
        "filePath": dates,
        "oldString": "return int(month), int(day), int(year)",
        "newString": "return int(day), int(month), int(year)",
    }
    fix = (
        ModelReply(
            Thought("The order of day and month looks swapped. First read."),
            "I will read the file and run it.",
            Call("read", {"filePath": dates}),
            Call("bash", {"command": "python3 src/dates.py; echo ran", "description": "Run"}),
        ),
        ModelReply(
            Thought("Month and day are swapped in the return."),
            Call("edit", edit),
            Call("read", {"filePath": str(project / "pixel.png")}),
        ),
        ModelReply("Mended: parse_day now returns day, month, year."),
    )
    fail = (
        ModelReply(
            "I will print the plan.",
            Call("bash", {"command": "cat notes/plan.txt", "description": "Print the plan"}),
            Call("read", {"filePath": str(project / "notes" / "plan.txt")}),
        ),
        ModelReply(
            Call("edit", {**edit, "oldString": "def parse_date", "newString": "def x"}),
            Call("no_such_tool", {"depth": 3}),
        ),
        ModelReply("There is no plan, and no parse_date either."),
    )
    errand = {"description": "Count functions", "subagent_type": "general", "prompt": ERRAND}
    delegate = (
        ModelReply("A subagent will count.", Call("task", errand)),
        ModelReply("The subagent counted one function."),
    )
    count = Call("bash", {"command": "grep -c 'def ' src/dates.py", "description": "Count"})
    refused = Fault(status=400, times=99, message="this is refused")
    return (
        Scene(TITLE, (ModelReply("Days and months"),), "client", "system"),
        Scene(
            SUMMARY,
            (ModelReply("## Goal\n- We mended parse_day in src/dates.py: day first."),),
            "client",
            "system",
        ),
        Scene(CONTINUE, (ModelReply("Nothing is left to do."),), "agent"),
        Scene(FIX, fix),
        Scene(FAIL, fail),
        Scene(DELEGATE, delegate),
        Scene(ERRAND, (ModelReply(Thought("Use grep."), count), ModelReply("One.")), "agent"),
        Scene(RESUMED, (ModelReply(Thought("What is left?"), "Open: tests for parse_day."),)),
        Scene(FILL, (ModelReply("Nearly full.", input_tokens=FULL_WINDOW_TOKENS),)),
        Scene(AFTER, (ModelReply("We mended src/dates.py."),)),
        Scene(FORKED, (ModelReply("In this branch it is called calendar."),)),
        Scene(SLOW, (ModelReply("A leap year has one day more. " * 40, pause_s=0.05),)),
        Scene(REWORD, (ModelReply("Every fourth year, but not every hundredth."),)),
        Scene(BUSY, (ModelReply("Awake now.", fault=Fault(status=500)),)),
        Scene(BROKEN, (ModelReply("Never said.", fault=refused),)),
    )


def prepare(home: Path, upstream_url: str) -> tuple[tuple[str, str], ...]:
    """Write the configuration that leads opencode to the scripted upstream."""
    limit = {"context": WINDOW_TOKENS, "output": 8_000}
    model = {"name": "script-1", "tool_call": True, "reasoning": True, "limit": limit}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{upstream_url}/v1", "apiKey": "dummy-key-for-loopback"},
        "models": {"script-1": model},
    }
    config = {
        "model": "scripted/script-1",
        "small_model": "scripted/script-1",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"},
        "provider": {"scripted": provider},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(config))
    return SETTINGS


def play(client: Client) -> list[Run]:
    """Run all sessions, the long one first."""
    runs: list[Run] = []

    def say(prompt: str, *words: str) -> str:
        runs.append(client.run("run", "--format", "json", *words, input=prompt))
        return session_in(runs[-1].stdout)

    session = say(FIX)
    say(FAIL, "--session", session)
    say(DELEGATE, "--session", session)
    say(RESUMED, "--continue")
    say(FILL, "--session", session)
    say(AFTER, "--session", session)
    say(FORKED, "--session", session, "--fork")
    interrupt(client)
    say(REWORD, "--continue")
    faulty = say(BUSY)
    say(BROKEN, "--session", faulty)
    return runs


def session_in(stdout: str) -> str:
    for line in stdout.splitlines():
        event = json.loads(line)
        if "sessionID" in event:
            return str(event["sessionID"])
    raise ValueError(stdout)


def interrupt(client: Client) -> None:
    """Interrupt a reply in the middle."""
    with client.start("run", "--format", "json") as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(SLOW)
        running.stdin.close()
        client.wait_for_answer(SLOW)
        running.send_signal(signal.SIGINT)
        running.stdout.read()


def session_of(exchange: Exchange) -> tuple[str, str]:
    """Tell the session, and the subagent where it has a parent."""
    session = exchange.headers["x-session-id"]
    parent = exchange.headers.get("x-parent-session-id")
    return (parent, session) if parent else (session, "")


def transcripts(home: Path) -> list[Path]:
    """List the files of the database that opencode writes its sessions to."""
    return sorted((home / ".local" / "share" / "opencode").glob("opencode.db*"))
