"""Stories: what was asked, done and said in a run of messages, told in one pass."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from lore.records import TRUST, UNASKED_TRUST, Message, Mishap, Part
from lore.text import calls, goals, lines, outcomes, own_tools, results
from lore.text.calls import Call
from lore.text.later import compile_later
from lore.text.parts import is_said, origin_of
from lore.text.results import Verdict

MOST_ERRORS, MOST_FILES = 20, 60
_STEPS_OF_A_FIX = 3
_LOOKED_BACK = 40
"""A fix stands near the try that went well."""

_NEAR = 10
"""Within so many calls, another try at the same program or file is meant for the same thing."""

_REQUESTS_LOOKED_AT = 40
_COMMITTED = compile_later(r"^\[[^\]\n]{1,200}?\b([0-9a-f]{7,40})\]", re.MULTILINE)
_GIT_COMMIT = compile_later(r"\bgit\b[^\n|;]{0,300}\b(?:commit|cherry-pick|merge|revert)\b")
_LANDING = compile_later(
    r"\bgit\b[^\n|;]{0,300}?\b(?:commit|push)\b|\bgh pr (?:create|merge)\b|\bglab mr (?:create"
    r"|merge)\b"
)
_OPENED = compile_later(r"\b(?:gh|glab) (?:pr|issue|mr|release) create\b")
_PAGE = compile_later(
    r"https://[\w.-]{3,80}/[\w./-]{1,120}?/(?:pull|issues|merge_requests|releases/tag)/[\w.-]{1,40}"
)
_INTERRUPTED = compile_later(r"\s*\[Request interrupted|\s*<turn_aborted>")


@dataclass(slots=True)
class Deed:
    """One call with what became of it."""

    call: Call
    message: Message
    result: Verdict | Literal["none"] = "none"


@dataclass(slots=True)
class Story:
    """What has been told of a session so far."""

    deeds: list[Deed] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)
    queue: deque[int] = field(default_factory=deque)
    requests: list[tuple[str, str]] = field(default_factory=list)
    person: str = ""
    person_at: int = 0
    interrupted: bool = False
    asked_memory: bool = False
    """Lore's own tools were called; that is no deed."""
    assistant: str = ""
    last_word: str = ""
    errors: list[tuple[Mishap, Message]] = field(default_factory=list)
    open_errors: dict[str, tuple[int, int]] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    commits: dict[str, None] = field(default_factory=dict)
    check_at: int = -1
    failed_check_at: int = -1
    changed_at: int = -1
    landed_at: int = -1


def tell(messages: Iterable[Message]) -> Story:
    """Tell what happens in messages, in their order."""
    story = Story()
    for message in messages:
        for part in message.parts:
            _tell(story, message, part)
    return story


def _tell(story: Story, message: Message, part: Part) -> None:
    if part.kind in ("tool_call", "tool_result") and own_tools.is_own(part.name):
        story.asked_memory = True
    elif part.kind == "tool_call":
        if TRUST[origin_of(part, message.origin)] >= UNASKED_TRUST:
            _call(story, message, part)
    elif part.kind == "tool_result":
        _result(story, message, part)
    elif not is_said(part) or not part.text.strip():
        return
    elif message.role == "user" and origin_of(part, message.origin) == "user":
        _person(story, message, part.text)
    elif message.role == "assistant":
        story.assistant = part.text
        story.last_word = "assistant"


def _person(story: Story, message: Message, text: str) -> None:
    story.interrupted = bool(_INTERRUPTED.match(text))
    request = goals.request_of(text)
    if len(story.requests) < _REQUESTS_LOOKED_AT:
        story.requests.append((text, message.id))
    if request is not None and not request.command:
        story.person, story.person_at = request.text, len(story.deeds)
        story.last_word = "person"


def _call(story: Story, message: Message, part: Part) -> None:
    call = calls.read_call(part.name, part.text)
    place = len(story.deeds)
    story.deeds.append(Deed(call, message))
    story.last_word = "call"
    story.interrupted = False
    if part.call_id:
        story.waiting[part.call_id] = place
    else:
        story.queue.append(place)


def _result(story: Story, message: Message, part: Part) -> None:
    place = story.waiting.pop(part.call_id, -1) if part.call_id else -1
    if place < 0 and story.queue:
        place = story.queue.popleft()
    if place < 0:
        return
    deed = story.deeds[place]
    deed.result = results.verdict_of(deed.call, part.text, failed=part.failed)
    if deed.result == "failed":
        _failed(story, deed, place, message, part.text)
    elif deed.result == "ok":
        _went_well(story, deed, place, message, part.text)


def _failed(story: Story, deed: Deed, place: int, message: Message, text: str) -> None:
    if deed.call.check:
        story.check_at = story.failed_check_at = place
    key = deed.call.keys[0]
    if key in story.open_errors or len(story.errors) >= MOST_ERRORS:
        return
    told = results.message_of(text)
    if told:
        story.open_errors[key] = (len(story.errors), place)
        what = deed.call.check or deed.call.deed
        story.errors.append((Mishap(what, told), message))


def _went_well(story: Story, deed: Deed, place: int, message: Message, text: str) -> None:
    call = deed.call
    if call.check:
        story.check_at = max(story.check_at, place)
    for key in _mended(story, call, place):
        which, since = story.open_errors.pop(key)
        error, where = story.errors[which]
        story.errors[which] = (replace(error, resolution=_fix(story, since, place)), where)
    for file in call.read[:MOST_FILES]:
        story.read.setdefault(file)
    for file in call.created:
        if file not in story.changed and file not in story.read:
            story.artifacts.setdefault(file, "")
    for file in call.changed:
        story.changed.setdefault(file)
        story.changed_at = place
    if call.command:
        _ran(story, call, place, message, text)


def _mended(story: Story, call: Call, place: int) -> list[str]:
    """Return the errors that a call puts an end to: its own, and one of its kin shortly before."""
    return [
        key
        for key, (_, since) in story.open_errors.items()
        if key in call.keys
        or (place - since <= _NEAR and not call.kin.isdisjoint(story.deeds[since].call.kin))
    ]


def _ran(story: Story, call: Call, place: int, message: Message, text: str) -> None:
    """Take from a command what it brought into the world."""
    if _LANDING.search(call.command):
        story.landed_at = place
    if _GIT_COMMIT.search(call.command):
        for commit in _COMMITTED.findall(text[:2_000]):
            story.commits.setdefault(commit)
    if _OPENED.search(call.command):
        for page in _PAGE.findall(text[:2_000]):
            story.artifacts.setdefault(page, message.id)


def _fix(story: Story, since: int, until: int) -> str:
    """Say what was done between a failure and the try that went well."""
    between = story.deeds[max(since + 1, until - _LOOKED_BACK) : until]
    edits = [d for d in between if d.call.changed and d.result != "failed"]
    tries = [d for d in between if d.call.deed == "run" and not d.call.check and d.result == "ok"]
    steps = [f"{d.call.tool} {short(d.call.target)}" for d in edits or tries]
    steps = list(dict.fromkeys(steps))[-_STEPS_OF_A_FIX:]
    first, then = story.deeds[since].call, story.deeds[until].call
    again = "tried again" if first.target == then.target else f"{then.tool} {short(then.target)}"
    return lines.one_line("; ".join(steps) or again, results.MESSAGE_CHARS)


def short(target: str) -> str:
    """Return a path by its last two names, and anything else in a few words."""
    if target.startswith(("/", "~", ".")) and " " not in target:
        return "/".join(target.rstrip("/").rsplit("/", 2)[-2:])
    return lines.one_line(target, 60)


def ending(story: Story) -> outcomes.Ending:
    """Return what the end of a story looks like."""
    last = story.deeds[-1] if story.deeds else None
    breaks_off = last is not None and last.result == "none" and story.last_word == "call"
    landed = story.landed_at > story.failed_check_at
    if breaks_off and last is not None and _LANDING.search(last.call.command):
        landed, breaks_off = True, False
    failed = story.check_at == story.failed_check_at
    if failed and story.check_at < story.person_at:
        checked = None  # what the person asked for since then is another matter
    else:
        checked = None if story.check_at < 0 else not failed
    return outcomes.Ending(
        person=story.person,
        assistant=story.assistant,
        interrupted=story.interrupted,
        answered=story.last_word == "assistant",
        worked_since=any(
            d.call.deed in ("run", "edit", "write") for d in story.deeds[story.person_at :]
        ),
        checked=checked,
        check=story.deeds[story.check_at].call.check if story.check_at >= 0 else "",
        changed_since=story.changed_at > story.check_at,
        changed=bool(story.changed),
        landed=landed and story.landed_at >= story.changed_at if not breaks_off else False,
        open_end=short(last.call.target) or last.call.tool if breaks_off and last else "",
    )
