"""What tool calls show by their structure: commands that work, that fail, and that go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lore.llm.offline.sentence_rules import Finding, parse_tool_calls
from lore.records import ROLES, MessageText
from lore.text import call_text
from lore.text.call_text import Call
from lore.text.regex import PatternFile

_re = PatternFile("tool_evidence")

IMPORTANCE, LOW_IMPORTANCE, SCORE = 0.5, 0.35, 0.7
"""Commands are worth a medium importance; they rank behind what was said with certainty."""

_PURPOSES = {
    "test": "run the tests of this project",
    "lint": "lint this project",
    "build": "build this project",
}
_MAX_COMMAND_CHARS = 80
_MIN_REPEATS = 2
"""A sequence of commands is a habit from the second time on."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command of the project that an agent ran, and whether it succeeded."""

    message: MessageText
    call: Call
    command: str
    succeeded: bool
    edits: int


def find_evidence(
    messages: Sequence[MessageText], later: Sequence[MessageText] = ()
) -> Iterator[Finding]:
    """Yield what the commands of an exchange show; `later` shows which ones recur."""
    runs = list(_runs(messages))
    times = Counter(run.command for run in (*runs, *_runs(later)))
    yield from _successful_checks(runs, times)
    yield from _failed_attempts(runs)
    yield from _repeated_sequences(runs)


def is_work_session(messages: Sequence[MessageText]) -> bool:
    """Return whether an agent works on a project here, rather than answers a question.

    Some agents record no tool traffic; then code in the text tells.
    """
    return any(
        one.voice == "tool" or "`" in one.text or _re.at_work.search(one.text)
        for one in messages
        if one.voice in ROLES
    )


def find_error(messages: Sequence[MessageText], before: int) -> tuple[str, str]:
    """Return the last error of a tool before an ordinal, and the id of its message."""
    for one in reversed(messages):
        if one.ordinal < before and one.voice == "tool":
            if _re.tool_failed.search(one.text[:4_000]):
                return call_text.error_line(one.text), one.id
        elif one.ordinal < before and one.voice == "user":
            break
    return "", ""


def _runs(messages: Sequence[MessageText]) -> Iterator[CommandRun]:
    """Yield the commands of the project with their outcome, in order."""
    edits = 0
    pending: tuple[MessageText, Call] | None = None
    for one in messages:
        if one.voice == "tool":
            if pending is not None:
                call = pending[1]
                ok = call_text.classify_result(call, one.text, failed=False) == "ok"
                command = call_text.bare_command(call.command)
                yield CommandRun(pending[0], call, command, ok, edits)
            pending = None
        elif one.voice == "assistant":
            calls = [call_text.read_call(*call) for call in parse_tool_calls(one.text)]
            edits += sum(call.action in ("edit", "write") for call in calls)
            is_single = len(calls) == 1 and calls[0].command
            pending = (one, calls[0]) if is_single else None


def _successful_checks(runs: Sequence[CommandRun], times: Counter[str]) -> Iterator[Finding]:
    """Yield each successful check of the project once, by its call and not by its output."""
    reported: set[str] = set()
    for run in runs:
        if not (run.call.check and run.succeeded) or run.command in reported:
            continue
        is_variant = _re.option.search(run.command) and times[run.command] < _MIN_REPEATS
        if is_variant or not _is_general(run):
            continue
        reported.add(run.command)
        purpose = _PURPOSES[run.call.check]
        payload = {"command": run.command, "trigger": f"to {purpose}"}
        text = f"To {purpose}, `{run.command}` works."
        yield Finding(text, "workflow", IMPORTANCE, SCORE, (run.message.id,), payload)


def _failed_attempts(runs: Sequence[CommandRun]) -> Iterator[Finding]:
    """Yield commands that failed where another one for the same purpose worked, without an edit."""
    for failed in runs:
        if failed.succeeded or not failed.call.check or not _is_general(failed):
            continue
        if any(run.succeeded and run.command == failed.command for run in runs):
            continue
        instead = next(
            (
                run
                for run in runs
                if run.succeeded
                and run.message.ordinal > failed.message.ordinal
                and run.edits == failed.edits
                and run.call.check == failed.call.check
                and _is_general(run)
            ),
            None,
        )
        if instead is not None:
            text = f"`{failed.command}` fails in this project; `{instead.command}` works instead."
            sources = (failed.message.id, instead.message.id)
            yield Finding(text, "anti_pattern", IMPORTANCE, SCORE, sources)


def _repeated_sequences(runs: Sequence[CommandRun]) -> Iterator[Finding]:
    """Yield the checks that are run one after the other, several times, as one habit."""
    chains: Counter[tuple[str, ...]] = Counter()
    sources: dict[tuple[str, ...], str] = {}
    chain: list[str] = []
    for run in (*runs, None):
        if run is not None and run.succeeded and run.call.check and _is_general(run):
            if run.command not in chain:
                chain.append(run.command)
            continue
        if len(chain) > 1 and run is not None:
            chains[tuple(chain)] += 1
            sources.setdefault(tuple(chain), run.message.id)
        chain = []
    for commands, count in chains.items():
        if count >= _MIN_REPEATS:
            listed = ", then ".join(f"`{command}`" for command in commands)
            text = f"The checks of this project are run together: {listed}."
            payload = {"command": " && ".join(commands)}
            yield Finding(text, "skill", LOW_IMPORTANCE, SCORE, (sources[commands],), payload)


def _is_general(run: CommandRun) -> bool:
    return bool(
        len(run.command) <= _MAX_COMMAND_CHARS
        and _re.of_the_project.match(run.command)
        and not _re.narrow.search(run.command)
        and not _re.probe.search(run.call.command)
    )
