"""Sessions of Claude Code: tools, failures, a subagent, resuming, compaction, an interruption."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import IO

from tests.clients.client import Client, Run
from tests.clients.conversation import Exchange
from tests.clients.project import CANARY
from tests.upstream import Call, Fault, ModelReply, Scene, Thought

SETTINGS = (
    ("ANTHROPIC_API_KEY", "dummy-key-for-loopback"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
    ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"),
)
ALLOWED = "Bash Read Edit Write Agent Task TodoWrite"
FULL_WINDOW_TOKENS = 75_000
"""Claude Code compacts by itself from 67,000 on when its window is set to 100,000."""

FIX = "Please look at src/dates.py, run it and mend it. The bucket key is " + CANARY + "."
FAIL = "Now print the file notes/plan.txt and rename parse_date."
DELEGATE = "Let a subagent count the functions in src."
ERRAND = "Count the functions below src and report the number."
RESUMED = "We decided to keep day first everywhere; what is still open?"
COMPACT = "CRITICAL: Respond with TEXT ONLY"
AFTER = "After the summary: which file did we mend?"
FORKED = "In this branch of the talk, call the module calendar instead."
SLOW = "Tell me slowly about leap years."
REWORD = "Stop, say it in one sentence."
BUSY = "Is the provider awake?"
BROKEN = "Ask something the provider refuses."
FILL = "Read everything you can until the window is full."
GOES_ON = "Go on where we were."


def scenes(project: Path) -> tuple[Scene, ...]:
    """Write the script of all sessions for a project folder."""
    dates = str(project / "src" / "dates.py")
    edit = {
        "file_path": dates,
        "old_string": "return int(month), int(day), int(year)",
        "new_string": "return int(day), int(month), int(year)",
    }
    fix = (
        ModelReply(
            Thought("The order of day and month looks swapped. First read."),
            "I will read the file and run it.",
            Call("Read", {"file_path": dates}),
            Call("Bash", {"command": "python3 src/dates.py; echo ran", "description": "Run"}),
        ),
        ModelReply(
            Thought("Month and day are swapped in the return."),
            Call("Edit", edit),
            Call("Read", {"file_path": str(project / "pixel.png")}),
        ),
        ModelReply("Mended: parse_day now returns day, month, year."),
    )
    fail = (
        ModelReply(
            "I will print the plan.",
            Call("Bash", {"command": "cat notes/plan.txt", "description": "Print the plan"}),
            Call("Read", {"file_path": str(project / "notes" / "plan.txt")}),
        ),
        ModelReply(
            Call("Edit", {**edit, "old_string": "def parse_date", "new_string": "def x"}),
            Call("WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "What is there?"}),
            Call("NoSuchTool", {"depth": 3}),
        ),
        ModelReply("There is no plan, and no parse_date either."),
    )
    errand = {"description": "Count functions", "subagent_type": "general-purpose"}
    delegate = (
        ModelReply(
            "A subagent will count.",
            Call("Agent", {**errand, "prompt": ERRAND, "run_in_background": False}),
        ),
        ModelReply("The subagent counted one function."),
    )
    count = {"command": "grep -c 'def ' src/dates.py", "description": "Count"}
    summary = "<summary>\nWe mended parse_day in src/dates.py: day first.\n</summary>"
    return (
        Scene(COMPACT, (ModelReply("<analysis>\nShort.\n</analysis>\n" + summary),), "client"),
        Scene(FIX, fix),
        Scene(FAIL, fail),
        Scene(DELEGATE, delegate),
        Scene(
            ERRAND,
            (ModelReply(Thought("Use grep."), Call("Bash", count)), ModelReply("One.")),
            "agent",
        ),
        Scene(RESUMED, (ModelReply(Thought("What is left?"), "Open: tests for parse_day."),)),
        Scene(AFTER, (ModelReply("We mended src/dates.py."),)),
        Scene(FORKED, (ModelReply("In this branch it is called calendar."),)),
        Scene(SLOW, (ModelReply("A leap year has one day more. " * 40, pause_s=0.05),)),
        Scene(REWORD, (ModelReply("Every fourth year, but not every hundredth."),)),
        Scene(
            BUSY,
            (
                ModelReply(
                    "Awake now.",
                    fault=Fault(status=529, times=2, message="Overloaded"),
                ),
            ),
        ),
        Scene(
            BROKEN,
            (
                ModelReply(
                    "Never said.",
                    fault=Fault(status=400, times=99, message="this is refused"),
                ),
            ),
        ),
        Scene(
            FILL,
            (
                ModelReply("Reading.", Call("Read", {"file_path": dates})),
                ModelReply("The window is nearly full.", input_tokens=FULL_WINDOW_TOKENS),
            ),
        ),
        Scene(GOES_ON, (ModelReply("Going on after the window was emptied."),)),
    )


def prepare(home: Path, upstream_url: str) -> tuple[tuple[str, str], ...]:
    """Give the environment that leads Claude Code to the scripted upstream."""
    return (*SETTINGS, ("ANTHROPIC_BASE_URL", upstream_url))


def play(client: Client) -> list[Run]:
    """Run all sessions, the long one first."""
    session = str(uuid.uuid4())
    print_mode = ("-p", "--output-format", "json", "--allowedTools", ALLOWED)
    runs: list[Run] = []

    def say(prompt: str, *words: str) -> None:
        runs.append(client.run(*print_mode, *words, input=prompt))

    say(FIX, "--session-id", session)
    say(FAIL, "--resume", session)
    say(DELEGATE, "--resume", session)
    say(RESUMED, "--continue")
    say("/compact keep what was decided", "--resume", session)
    say(AFTER, "--resume", session)
    say(FORKED, "--resume", session, "--fork-session")
    interrupted = str(uuid.uuid4())
    interrupt(client, interrupted)
    faulty = str(uuid.uuid4())
    say(BUSY, "--session-id", faulty)
    say(BROKEN, "--resume", faulty)
    filled = str(uuid.uuid4())
    say(FILL, "--session-id", filled)
    say(GOES_ON, "--resume", filled)
    return runs


def interrupt(client: Client, session: str) -> None:
    """Interrupt a reply in the middle, and ask something else in the same process."""
    streams = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    partial = ("--include-partial-messages", "--allowedTools", ALLOWED)
    with client.start("-p", *streams, *partial, "--session-id", session) as running:
        assert running.stdin
        assert running.stdout
        tell(running.stdin, user_line(SLOW))
        for line in running.stdout:
            if "text_delta" in line:
                break
        request = {"subtype": "interrupt"}
        tell(
            running.stdin,
            {"type": "control_request", "request_id": "stop-1", "request": request},
        )
        for line in running.stdout:
            if '"type":"result"' in line:
                break
        tell(running.stdin, user_line(REWORD))
        for line in running.stdout:
            if '"type":"result"' in line:
                break
        running.stdin.close()
        running.stdout.read()


def user_line(text: str) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def tell(pipe: IO[str], said: dict[str, object]) -> None:
    pipe.write(json.dumps(said) + "\n")
    pipe.flush()


def session_of(exchange: Exchange) -> tuple[str, str]:
    """Tell session and subagent by the headers that Claude Code sends."""
    headers = exchange.headers
    return headers["x-claude-code-session-id"], headers.get("x-claude-code-agent-id", "")


def transcripts(home: Path) -> list[Path]:
    """List what Claude Code wrote about its sessions."""
    return sorted((home / ".claude" / "projects").rglob("*.json*"))
