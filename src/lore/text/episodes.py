"""Episodes: what a session set out to do, did and reached, told without a model."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lore.records import TRUST, UNASKED_TRUST, Action, Episode, Message, Mishap, Part
from lore.text import calls, goals, lines, outcomes, results, tokens
from lore.text.calls import Call
from lore.text.parts import is_said, origin_of
from lore.text.results import Verdict

CONTENT_TOKENS = 150
"""An episode is found by recall and read in passing; its payload holds the rest."""

MOST_ACTIONS, MOST_ERRORS, MOST_FILES, MOST_ARTIFACTS, MOST_COMMITS = 200, 20, 60, 20, 20
MOST_SOURCES = 48
_STEPS_OF_A_FIX = 3
_LOOKED_BACK = 40
"""A fix stands near the try that went well."""

_REQUESTS_LOOKED_AT = 40
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200}?\b([0-9a-f]{7,40})\]", re.MULTILINE)
_GIT_COMMIT = re.compile(r"\bgit\b[^\n|;]{0,300}\b(?:commit|cherry-pick|merge|revert)\b")
_LANDING = re.compile(
    r"\bgit\b[^\n|;]{0,300}?\b(?:commit|push)\b|\bgh pr (?:create|merge)\b|\bglab mr (?:create"
    r"|merge)\b"
)
_OPENED = re.compile(r"\b(?:gh|glab) (?:pr|issue|mr|release) create\b")
_PAGE = re.compile(
    r"https://[\w.-]{3,80}/[\w./-]{1,120}?/(?:pull|issues|merge_requests|releases/tag)/[\w.-]{1,40}"
)
_INTERRUPTED = re.compile(r"\s*\[Request interrupted|\s*<turn_aborted>")


@dataclass(slots=True)
class _Deed:
    """One call with what became of it."""

    call: Call
    t: int
    message_id: str
    result: Verdict | Literal["none"] = "none"


@dataclass(slots=True)
class _Story:
    """What has been told of a session so far."""

    deeds: list[_Deed] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)
    queue: deque[int] = field(default_factory=deque)
    requests: list[tuple[str, str]] = field(default_factory=list)
    person: str = ""
    person_at: int = 0
    interrupted: bool = False
    assistant: str = ""
    last_word: str = ""
    errors: list[tuple[Mishap, str]] = field(default_factory=list)
    open_errors: dict[str, tuple[int, int]] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    commits: dict[str, None] = field(default_factory=dict)
    check_at: int = -1
    failed_check_at: int = -1
    changed_at: int = -1
    landed_at: int = -1


def derive(messages: Sequence[Message], *, agent: str = "", title: str = "") -> Episode | None:
    """Tell a session as an episode; None if nothing was asked or done in it."""
    if not messages:
        return None
    story = _Story()
    started_at = messages[0].created_at
    for message in messages:
        t = max(0, round((message.created_at - started_at).total_seconds()))
        for part in message.parts:
            _tell(story, message, part, t)
    goal, place = goals.find_goal((text for text, _ in story.requests), title=title)
    if not goal and not story.deeds:
        return None
    outcome, reason = outcomes.judge(_ending(story))
    asked = (story.requests[place][1],) if place >= 0 else ()
    kept = story.deeds[: MOST_ACTIONS // 2] + story.deeds[MOST_ACTIONS // 2 :][-MOST_ACTIONS // 2 :]
    return Episode(
        goal=goal,
        outcome=outcome,
        reason=reason,
        agent=agent,
        calls=len(story.deeds),
        actions=tuple(Action(d.t, d.call.tool, d.call.target, d.result) for d in kept),
        errors=tuple(error for error, _ in story.errors),
        files_read=tuple(story.read)[:MOST_FILES],
        files_changed=tuple(story.changed)[:MOST_FILES],
        artifacts=tuple(story.artifacts)[:MOST_ARTIFACTS],
        commits=tuple(story.commits)[:MOST_COMMITS],
        duration_s=max(0, round((messages[-1].created_at - started_at).total_seconds())),
        tokens=sum(message.tokens for message in messages),
        sources=tuple(dict.fromkeys((*asked, *_sources(story))))[:MOST_SOURCES],
    )


def _sources(story: _Story) -> Iterator[str]:
    """Return the messages that are quoted: errors, artifacts, and what was done last."""
    yield from (id_ for _, id_ in story.errors)
    yield from (id_ for id_ in story.artifacts.values() if id_)
    yield from (deed.message_id for deed in story.deeds[-MOST_SOURCES:])


def _tell(story: _Story, message: Message, part: Part, t: int) -> None:
    if part.kind == "tool_call":
        if TRUST[origin_of(part, message.origin)] >= UNASKED_TRUST:
            _call(story, message, part, t)
    elif part.kind == "tool_result":
        _result(story, message, part)
    elif not is_said(part) or not part.text.strip():
        return
    elif message.role == "user" and origin_of(part, message.origin) == "user":
        _person(story, message, part.text)
    elif message.role == "assistant":
        story.assistant = part.text
        story.last_word = "assistant"


def _person(story: _Story, message: Message, text: str) -> None:
    story.interrupted = bool(_INTERRUPTED.match(text))
    request = goals.request_of(text)
    if len(story.requests) < _REQUESTS_LOOKED_AT:
        story.requests.append((text, message.id))
    if request is not None and not request.command:
        story.person, story.person_at = request.text, len(story.deeds)
        story.last_word = "person"


def _call(story: _Story, message: Message, part: Part, t: int) -> None:
    call = calls.read_call(part.name, part.text)
    place = len(story.deeds)
    story.deeds.append(_Deed(call, t, message.id))
    story.last_word = "call"
    story.interrupted = False
    if part.call_id:
        story.waiting[part.call_id] = place
    else:
        story.queue.append(place)


def _result(story: _Story, message: Message, part: Part) -> None:
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


def _failed(story: _Story, deed: _Deed, place: int, message: Message, text: str) -> None:
    if deed.call.check:
        story.check_at = story.failed_check_at = place
    key = deed.call.key
    if key in story.open_errors or len(story.errors) >= MOST_ERRORS:
        return
    told = results.message_of(text)
    if told:
        story.open_errors[key] = (len(story.errors), place)
        what = deed.call.check or deed.call.deed
        story.errors.append((Mishap(what, told), message.id))


def _went_well(story: _Story, deed: _Deed, place: int, message: Message, text: str) -> None:
    call = deed.call
    if call.check:
        story.check_at = max(story.check_at, place)
    if call.key in story.open_errors:
        which, since = story.open_errors.pop(call.key)
        error, id_ = story.errors[which]
        story.errors[which] = (replace(error, resolution=_fix(story, since, place)), id_)
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


def _ran(story: _Story, call: Call, place: int, message: Message, text: str) -> None:
    """Take from a command what it brought into the world."""
    if _LANDING.search(call.command):
        story.landed_at = place
    if _GIT_COMMIT.search(call.command):
        for commit in _COMMITTED.findall(text[:2_000]):
            story.commits.setdefault(commit)
    if _OPENED.search(call.command):
        for page in _PAGE.findall(text[:2_000]):
            story.artifacts.setdefault(page, message.id)


def _fix(story: _Story, since: int, until: int) -> str:
    """Say what was done between a failure and the try that went well."""
    between = story.deeds[max(since + 1, until - _LOOKED_BACK) : until]
    edits = [d for d in between if d.call.changed and d.result != "failed"]
    tries = [d for d in between if d.call.deed == "run" and not d.call.check and d.result == "ok"]
    steps = [f"{d.call.tool} {short(d.call.target)}" for d in edits or tries]
    steps = list(dict.fromkeys(steps))[-_STEPS_OF_A_FIX:]
    return lines.one_line("; ".join(steps) or "tried again", results.MESSAGE_CHARS)


def short(target: str) -> str:
    """Return a path by its last two names, and anything else in a few words."""
    if target.startswith(("/", "~", ".")) and " " not in target:
        return "/".join(target.rstrip("/").rsplit("/", 2)[-2:])
    return lines.one_line(target, 60)


def _ending(story: _Story) -> outcomes.Ending:
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


def readable(episode: Episode) -> str:
    """Return an episode as a short text: goal, outcome, what was done, errors, files."""
    told = [f"Goal: {episode.goal or 'not said'}", f"Outcome: {episode.outcome} ({episode.reason})"]
    told.append(f"Did: {_counts(episode)} in {_span(episode.duration_s)}")
    if episode.commits:
        told[-1] += f"; commits {', '.join(episode.commits[:3])}"
    if episode.files_changed:
        told.append(f"Changed: {', '.join(short(name) for name in episode.files_changed[:5])}")
    fixed = [error for error in episode.errors if error.resolution]
    open_ = [error for error in episode.errors if not error.resolution]
    told += [f"Error: {lines.one_line(e.message, 100)} → {e.resolution}" for e in fixed[:2]]
    if open_ and not fixed:
        told.append(f"Error: {lines.one_line(open_[-1].message, 100)}")
    return tokens.clip("\n".join(told), CONTENT_TOKENS)


def _counts(episode: Episode) -> str:
    failed = sum(action.result == "failed" for action in episode.actions)
    counted = f"{episode.calls} tool call{'' if episode.calls == 1 else 's'}"
    return f"{counted}, {failed} failed" if failed else counted


def _span(seconds: int) -> str:
    if seconds < 90:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
