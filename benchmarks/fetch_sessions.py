"""Fetch the coding sessions on which the questions in `benchmarks/data` were asked.

    uv run python benchmarks/fetch_sessions.py --out SESSIONS
    uv run python benchmarks/fetch_sessions.py --check SESSIONS

The sessions belong to eight public projects and are not copied here. Each is cloned from GitHub, or
read from a local git directory (`--git nimbus=PATH`), at a fixed commit, and written as one file of
`coding-sessions*.jsonl.gz`: a session a line, its turns as `[role, text, time]`. The number of
sessions and turns and a checksum of the turns say whether the questions were asked on the same.
`--check` looks up every turn that a question names as evidence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

QUESTIONS = Path(__file__).parent / "data"

BRANCH = "entire/checkpoints/v1"
"""The branch on which Entire stores the transcripts of a project's sessions."""

MAX_TRANSCRIPT_BYTES = 4 * 1024 * 1024 - 1
"""The questions were written over transcripts of less than 4 MiB: larger ones are left out."""

PROSE_CHARS = 4_000
"""Characters of a message that are kept of a Claude Code transcript."""

ARGUMENT_CHARS = 300
"""Characters of a tool's main argument that are kept of a Claude Code transcript."""

TOOL_CHARS = 600
"""Characters of a tool call that are kept of an OpenCode transcript."""

RESULT_CHARS = 300
"""Characters of a tool result that are kept."""

MAIN_ARGUMENTS = ("file_path", "command", "pattern", "description")
"""The first of these arguments that a tool of Claude Code has is kept."""

HISTORY = ".specstory/history"
"""The folder in which SpecStory stores Cursor's sessions as Markdown."""

SPECSTORY_RESULTS = ("### Rule:", "```", "<details", "**File")
"""What a part of an assistant's turn starts with if it quotes a rule, a file or a tool."""

Raw = dict[str, Any]
Turn = list[str | None]
"""Role, text and time of a turn."""


class FetchError(Exception):
    """A project's sessions cannot be read."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One stored state of a session: its metadata, and its transcript if that can be read."""

    metadata: Raw
    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class GitDirectory:
    """A git directory from which files are read at one commit."""

    path: Path
    commit: str

    def paths(self, folder: str = "") -> dict[str, str]:
        """Return the path and blob of every file in a folder."""
        listing = self._run("ls-tree", "-r", "-z", self.commit, *([folder] if folder else []))
        entries = (line.partition("\t") for line in listing.decode().split("\0") if line)
        return {path: head.split()[2] for head, _, path in entries}

    def sizes(self, blobs: Sequence[str]) -> dict[str, int]:
        """Return the sizes of blobs, without those that the directory lacks."""
        listing = self._run("cat-file", "--batch-check", stdin="\n".join(blobs))
        entries = (line.split() for line in listing.decode().splitlines())
        return {entry[0]: int(entry[2]) for entry in entries if entry[1] == "blob"}

    def read(self, blob: str) -> str:
        """Return the text of a blob."""
        return self._run("cat-file", "blob", blob).decode()

    def _run(self, *arguments: str, stdin: str = "") -> bytes:
        return run_git("--git-dir", str(self.path), *arguments, stdin=stdin)


def run_git(*arguments: str, stdin: str = "") -> bytes:
    """Run git and return its output."""
    command = [shutil.which("git") or "git", *arguments]
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        msg = f"git {' '.join(arguments)} failed: {reason}"
        raise FetchError(msg)
    return done.stdout


def read_checkpoints(git: GitDirectory) -> list[list[Checkpoint]]:
    """Return the checkpoints of each session."""
    blobs = git.paths()
    # <2 digits>/<10 digits>/<number>/metadata.json; one level up is that of the whole checkpoint.
    metadata = {path: blob for path, blob in blobs.items() if _is_metadata(path)}
    transcripts = {path: blobs.get(_transcript_of(path), "") for path in metadata}
    sizes = git.sizes([blob for blob in transcripts.values() if blob])
    by_session: dict[str, list[Checkpoint]] = {}
    for path, blob in metadata.items():
        transcript = transcripts[path]
        checkpoint = Checkpoint(json.loads(git.read(blob)), transcript, sizes.get(transcript, 0))
        by_session.setdefault(checkpoint.metadata["session_id"], []).append(checkpoint)
    return list(by_session.values())


def _is_metadata(path: str) -> bool:
    return path.endswith("/metadata.json") and path.count("/") == 3


def _transcript_of(path: str) -> str:
    return path.removesuffix("metadata.json") + "full.jsonl"


def find_largest(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
    """Return the checkpoint with the most complete transcript; the first one of equals."""
    readable = [one for one in checkpoints if 0 < one.size <= MAX_TRANSCRIPT_BYTES]
    return max(readable, key=lambda one: one.size, default=None)


def read_claude_code(git: GitDirectory) -> list[Raw]:
    """Return the sessions of Claude Code in the order of their first checkpoints."""
    sessions = []
    for checkpoints in read_checkpoints(git):
        largest = find_largest(checkpoints)
        turns = list(claude_code_turns(git.read(largest.blob))) if largest else []
        if not largest or not turns:
            continue
        all_metadata = [one.metadata for one in checkpoints]
        sessions.append({
            "sid": largest.metadata["session_id"],
            "created": min(one["created_at"] for one in all_metadata),
            "agent": largest.metadata.get("agent"),
            "files": sorted({file for one in all_metadata for file in one["files_touched"] or ()}),
            "checkpoints": sorted({one["checkpoint_id"] for one in all_metadata}),
            "turns": turns,
        })  # fmt: skip
    return sorted(sessions, key=lambda session: str(session["created"]))


def claude_code_turns(transcript: str) -> Iterator[Turn]:
    """Yield the turns of a Claude Code transcript, without what the client itself added."""
    for line in transcript.split("\n"):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue  # some transcripts have two entries on a line, or are of another agent
        if not isinstance(entry, dict) or entry.get("isMeta"):
            continue
        if entry.get("type") == "summary":
            yield ["summary", entry["summary"], None]
        elif entry.get("type") in ("user", "assistant"):
            content = entry["message"]["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if turn := _claude_code_turn(entry["type"], block):
                    yield [*turn, entry.get("timestamp")]


def _claude_code_turn(role: str, block: Raw) -> tuple[str, str] | None:
    match block["type"]:
        case "text":
            return role, block["text"][:PROSE_CHARS]
        case "tool_use":
            arguments = block["input"]
            main = next((arguments[name] for name in MAIN_ARGUMENTS if arguments.get(name)), "")
            return "tool", f"{block['name']} {str(main)[:ARGUMENT_CHARS]}"
        case "tool_result":
            content = block.get("content") or ""
            if not isinstance(content, str):
                content = " ".join(part.get("text", "") for part in content)
            return "result", content[:RESULT_CHARS]
    return None


def read_opencode(git: GitDirectory) -> list[Raw]:
    """Return the sessions of OpenCode in the order of their first turns."""
    sessions = []
    for checkpoints in read_checkpoints(git):
        largest = find_largest(checkpoints)
        if not largest:
            continue
        transcript = json.loads(git.read(largest.blob))
        sessions.append({
            "sid": largest.metadata["session_id"],
            "created": largest.metadata["created_at"],
            "agent": largest.metadata.get("agent"),
            "title": transcript["info"].get("title"),
            "parent": transcript["info"].get("parentID"),
            "files": largest.metadata["files_touched"] or [],
            "turns": list(opencode_turns(transcript)),
        })  # fmt: skip
    return sorted(sessions, key=lambda one: one["turns"][0][2] if one["turns"] else "")


def opencode_turns(transcript: Raw) -> Iterator[Turn]:
    """Yield the turns of an OpenCode transcript, without what the client itself added."""
    for message in transcript["messages"]:
        role = message["info"]["role"]
        time = _iso_time(message["info"].get("time", {}).get("created"))
        for part in message["parts"]:
            if part["type"] == "text" and part.get("text", "").strip():
                if not part.get("synthetic"):
                    yield [role, part["text"], time]
            elif part["type"] == "tool":
                state = part.get("state", {})
                arguments = state.get("input", {}).values()
                first = next((value for value in arguments if isinstance(value, str)), "")
                yield ["tool", f"{part['tool']} {first}"[:TOOL_CHARS], time]
                if output := state.get("output") or state.get("error"):
                    yield ["result", str(output)[:RESULT_CHARS], time]


def read_codex(git: GitDirectory) -> list[Raw]:
    """Return the sessions of Codex in the order of their first checkpoints."""
    sessions = []
    for checkpoints in read_checkpoints(git):
        largest = find_largest(checkpoints)
        if not largest or largest.metadata.get("agent") != "Codex":
            continue
        sessions.append({
            "sid": largest.metadata["session_id"],
            "created": min(one.metadata["created_at"] for one in checkpoints),
            "agent": "Codex",
            "files": largest.metadata["files_touched"] or [],
            "turns": list(codex_turns(git.read(largest.blob))),
        })  # fmt: skip
    return sorted(sessions, key=lambda session: str(session["created"]))


def codex_turns(transcript: str) -> Iterator[Turn]:
    """Yield the turns of a Codex transcript: what was said, and the tools with their results."""
    for line in filter(None, transcript.split("\n")):
        entry = json.loads(line)
        payload = entry.get("payload") or {}
        match payload.get("type"):
            case "user_message" | "agent_message" as kind if payload.get("message", "").strip():
                role = "user" if kind == "user_message" else "assistant"
                yield [role, payload["message"][:PROSE_CHARS], entry.get("timestamp")]
            case "function_call" | "custom_tool_call":
                arguments = str(payload.get("arguments") or payload.get("input") or "")
                called = f"{payload['name']} {arguments}"
                yield ["tool", called[:TOOL_CHARS], entry.get("timestamp")]
            case "function_call_output" | "custom_tool_call_output":
                output = payload.get("output") or ""
                text = output if isinstance(output, str) else json.dumps(output)
                yield ["result", text[:RESULT_CHARS], entry.get("timestamp")]


def _iso_time(time_ms: int | None) -> str:
    if not time_ms:
        return ""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def read_specstory(git: GitDirectory) -> list[Raw]:
    """Return the sessions that SpecStory stored as Markdown, by their file names."""
    sessions = []
    for path, blob in sorted(git.paths(HISTORY).items()):
        text, name = git.read(blob), Path(path).name.removesuffix(".md")
        head = re.search(r"^# (.*) \((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\)", text, re.MULTILINE)
        time = f"{head[2].replace(' ', 'T')}Z" if head else f"{name[:10]}T12:00:00Z"
        turns = [[role, part, time] for role, part in specstory_turns(text)]
        if path.endswith(".md") and turns:
            title = head[1] if head else name
            sessions.append({
                "sid": name, "created": time, "agent": "Cursor",
                "title": title, "files": [], "turns": turns,
            })  # fmt: skip
    return sessions


def specstory_turns(text: str) -> Iterator[tuple[str, str]]:
    """Yield role and text of the turns on a SpecStory page."""
    _, *pieces = re.split(r"^_\*\*(User|Assistant)\*\*_\s*$", text, flags=re.MULTILINE)
    for speaker, body in zip(pieces[::2], pieces[1::2], strict=True):
        for part in filter(None, map(str.strip, body.split("\n---\n"))):
            if speaker == "Assistant" and part.startswith(SPECSTORY_RESULTS):
                yield "result", part[:RESULT_CHARS]
            else:
                yield speaker.lower(), part


@dataclass(frozen=True, slots=True)
class Contents:
    """How many sessions and turns a file has, and a checksum of the roles and texts."""

    sessions: int
    turns: int
    checksum: str

    def __str__(self) -> str:
        return f"{self.sessions} sessions, {self.turns} turns, checksum {self.checksum}"


def summarize(sessions: Sequence[Raw]) -> Contents:
    """Count the sessions and turns, and compute the checksum."""
    checksum = blake2b(digest_size=16)
    turns = [turn for session in sessions for turn in session["turns"]]
    for role, text, _ in turns:
        checksum.update(f"{role}\0{text}\0".encode("utf-8", "surrogatepass"))
    return Contents(len(sessions), len(turns), checksum.hexdigest())


@dataclass(frozen=True, slots=True)
class Project:
    """A public project: where its sessions are, how to read them, and what must come out."""

    name: str
    repository: str
    commit: str
    branch: str | None
    patterns: tuple[str, ...]
    read: Callable[[GitDirectory], list[Raw]]
    expected: Contents

    @property
    def suffix(self) -> str:
        """Return what the names of the project's files end in."""
        return "" if self.name == "entire" else f"-{self.name}"

    @property
    def file_name(self) -> str:
        """Return the name of the file of sessions."""
        return f"coding-sessions{self.suffix}.jsonl.gz"


TRANSCRIPTS = ("full.jsonl", "metadata.json")

PROJECTS = (
    Project(
        "entire", "entireio/cli", "394f81fab87f71aa8938d91ff7a067c524ff344b",
        BRANCH, TRANSCRIPTS, read_claude_code,
        Contents(284, 50_748, "ca6c481e1cbb8828fb69e10c584ca15a"),
    ),
    Project(
        "ctxeval", "PackmindHub/context-evaluator", "63679d4764ce74bb41f8e5794f6183d43ea9ee88",
        BRANCH, TRANSCRIPTS, read_claude_code,
        Contents(98, 8_336, "5c01f512a85d62cc08bdbdffc34d31b7"),
    ),
    Project(
        "ohmyposh", "JanDeDobbeleer/oh-my-posh", "0d1116c02814bec7231dbe3c3b9661106418a724",
        BRANCH, TRANSCRIPTS, read_claude_code,
        Contents(48, 12_586, "be480fadcc0e230801b7a3e1dff944a7"),
    ),
    Project(
        "nimbus", "dayhaysoos/nimbus", "5e57daf29555c422dd6d397f47bd4067b36e1cde",
        BRANCH, TRANSCRIPTS, read_opencode,
        Contents(438, 22_644, "b24cad3fe50eb08fe35a749ae9764077"),
    ),
    Project(
        # The commit before the one that removed the folder.
        "minsky", "edobry/minsky", "3e54e1f18bbc413643d84619716da64629822a07",
        None, (f"/{HISTORY}/",), read_specstory,
        Contents(60, 7_172, "14f5f3b00427dab99b95a8dbfd665a87"),
    ),
    Project(
        "cipherbox", "FSM1/cipher-box", "e227f1183b594fa6bd5dbe58c75272434067e89b",
        BRANCH, TRANSCRIPTS, read_claude_code,
        Contents(33, 6_753, "2f38e78df8eac2e2ada039001bbe98a3"),
    ),
    Project(
        "agentv", "EntityProcess/agentv", "47dca0eea369e545808f72dd9473c846f66dd79f",
        BRANCH, TRANSCRIPTS, read_codex,
        Contents(20, 10_374, "2d9170ff2e9d19d83175e299bab4d9ba"),
    ),
    Project(
        "polychrome", "MichaelPaulukonis/polychrome.p5", "f809fac068512d829c7a0e9c1f1396e3d4709ce5",
        None, (f"/{HISTORY}/",), read_specstory,
        Contents(44, 506, "aec2289c55321f9befdfee7f76a35f8f"),
    ),
)  # fmt: skip


def clone(project: Project, folder: Path, host: str = "https://github.com") -> Path:
    """Clone what is needed of a project, and return its git directory.

    The clone has no file contents; a sparse checkout then gets those that are needed in one
    request instead of one by one.
    """
    target = folder / project.name
    branch = ("--branch", project.branch) if project.branch else ()
    run_git(
        "clone", "--quiet", "--filter=blob:none", "--no-checkout", "--single-branch", *branch,
        f"{host}/{project.repository}", str(target),
    )  # fmt: skip
    run_git("-C", str(target), "sparse-checkout", "set", "--no-cone", *project.patterns)
    run_git("-C", str(target), "checkout", "--quiet", "--detach", project.commit)
    return target / ".git"


def fetch(project: Project, out: Path, git_dir: Path | None) -> bool:
    """Write the sessions of a project, and report whether they are the expected ones."""
    with tempfile.TemporaryDirectory(prefix="lore-sessions-") as scratch:
        git = GitDirectory(git_dir or clone(project, Path(scratch)), project.commit)
        sessions = project.read(git)
    with gzip.open(out / project.file_name, "wt", encoding="utf-8") as stream:
        for session in sessions:
            stream.write(json.dumps(session) + "\n")
    contents = summarize(sessions)
    print(f"{project.file_name}: {contents}")
    if contents != project.expected:
        print(f"  differs from what the questions were asked on: {project.expected}")
    return contents == project.expected


def read_rows(path: Path) -> list[Raw]:
    """Return the JSON lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def evidence_of(question: Raw) -> list[tuple[str, int]]:
    """Return the session and place of every turn that a question names."""
    turns = [turn for part in question.get("evidence_all") or () for turn in part]
    turns += [[question["session"], place] for place in question.get("evidence") or ()]
    return [(session, place) for session, place in [*turns, *(question.get("also") or ())]]


def check(project: Project, sessions: Path, questions: Path = QUESTIONS) -> bool:
    """Report whether every turn that the questions on a project name has a text."""
    path = sessions / project.file_name
    if not path.exists():
        print(f"{path.name}: missing")
        return False
    rows = read_rows(path)
    texts = {
        (session["sid"], place): turn[1]
        for session in rows
        for place, turn in enumerate(session["turns"])
    }
    asked = read_rows(questions / f"coding-qa{project.suffix}.jsonl.gz")
    named = [(question["id"], turn) for question in asked for turn in evidence_of(question)]
    absent = [(id_, turn) for id_, turn in named if not (texts.get(turn) or "").strip()]
    is_same = summarize(rows) == project.expected
    print(
        f"{path.name}: {len(asked)} questions name {len(named)} turns, {len(absent)} are missing;"
        f" the turns are {'the' if is_same else 'NOT the'} expected ones"
    )
    for id_, (session, place) in absent:
        print(f"  {id_}: turn {place} of {session}")
    return is_same and not absent


def _git_directory(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or name not in {project.name for project in PROJECTS}:
        names = ", ".join(project.name for project in PROJECTS)
        msg = f"must be NAME=PATH with a NAME of {names}, not {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return name, Path(path)


def main() -> int:
    """Fetch or check the sessions; return 1 if they are not the expected ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [project.name for project in PROJECTS]
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--out", type=Path, metavar="FOLDER", help="write the sessions there")
    task.add_argument("--check", type=Path, metavar="FOLDER", help="check the sessions there")
    parser.add_argument(
        "--git", type=_git_directory, action="append", default=[], metavar="NAME=PATH",
        help="read a project from a local git directory instead of GitHub; repeatable",
    )  # fmt: skip
    parser.add_argument("--only", choices=names, action="append", help="one project; repeatable")
    options = parser.parse_args()
    projects = [one for one in PROJECTS if one.name in (options.only or names)]
    if options.check:
        checks = [check(project, options.check) for project in projects]
        return int(not all(checks))
    options.out.mkdir(parents=True, exist_ok=True)
    directories = dict(options.git)
    try:
        results = [fetch(one, options.out, directories.get(one.name)) for one in projects]
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
