"""The tutorial: its commands run as they stand there, on a home with one session in it."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capture.adapters.samples import SESSION, claude_line
from tests.cli.conftest import Outcome, run_process
from tests.house.source import ROOT

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ lore (.+)$", PAGE, re.MULTILINE)


def call(id_: str, tool: str, **given: str) -> tuple[str, Any]:
    return "assistant", [{"type": "tool_use", "id": id_, "name": tool, "input": given}]


def result(id_: str, said: str, *, failed: bool = False) -> tuple[str, Any]:
    told = {"type": "tool_result", "tool_use_id": id_, "content": said, "is_error": failed}
    return "user", [told]


TALK = (
    ("user", "The timezone test fails only in the evening. Please fix it."),
    call("t1", "Bash", command="pytest tests/test_tides.py"),
    result("t1", "1 failed: expected 2026-03-02, got 2026-03-01", failed=True),
    call("t2", "Edit", file_path="/code/harbor/tides.py"),
    result("t2", "The file has been updated."),
    call("t3", "Bash", command="pytest tests/test_tides.py"),
    result("t3", "4 passed in 0.31s"),
    ("assistant", "Fixed: tides.py took the local date, and the station speaks UTC."),
    ("user", "The client is Okapi Holdings; the login is OKAPI_PASSWORD=hV7-kq2Lm9xTz."),
    ("user", "Great, that works. From now on use UTC everywhere in this repository."),
)


def write_transcript(person: Path) -> None:
    """Write a session as Claude Code does."""
    lines = [
        claude_line(
            kind, content, uuid=f"u{i}", cwd="/code/harbor", gitBranch="main",
            timestamp=f"2026-11-12T09:{i:02}:00.000Z",
        )
        for i, (kind, content) in enumerate(TALK)
    ]  # fmt: skip
    path = person / ".claude" / "projects" / "-code-harbor" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[dict[str, Outcome]]:
    write_transcript(tmp_path)

    def run(command: str) -> Outcome:
        words = shlex.split(command, comments=True)
        return run_process(*words, env={"HOME": str(tmp_path)}, cwd=tmp_path)

    try:
        yield {command: run(command) for command in COMMANDS}
    finally:
        run("down")


def test_every_command_of_the_tutorial_does_what_it_says(ran: dict[str, Outcome]):
    def out(beginning: str) -> str:
        return "\n".join(one.out for name, one in ran.items() if name.startswith(beginning))

    assert [name for name, one in ran.items() if one.code] == []
    assert "10 messages stored, 0 known, in 1 session of 1 file." in out("capture")
    assert "Fixed: tides.py took the local date" in out("recall").split("\n2. ")[0]
    assert "From now on use UTC everywhere in this repository." in out("standing")
    assert "Lore is up" in out("up --detach")
    assert out("status").startswith("running")
    # The daemon may have condensed the session already: then its log goes too.
    assert re.search(r"^\d records? would be deleted for good\.$", out("forget"), re.MULTILINE)
    assert re.search(r"^\d records? deleted for good\.$", out("forget"), re.MULTILINE)
    assert "Lore has stopped" in out("down")


def test_the_readme_leads_to_the_tutorial():
    assert "(docs/tutorial.md)" in (ROOT / "README.md").read_text("utf-8")
