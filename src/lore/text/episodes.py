"""Episodes: what a session set out to do, did and reached, extracted without a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lore.records import (
    TRUST,
    UNASKED_TRUST,
    Action,
    Episode,
    EpisodeError,
    Message,
    Outcome,
    Part,
    Task,
)
from lore.text import call_text, goals, sentences, tokens
from lore.text.call_text import Call, Verdict
from lore.text.message_features import is_spoken_part, part_origin
from lore.text.regex import PatternFile

_re = PatternFile("episodes")

_LAST_CHARS = 1_500
"""Characters at the beginning and the end of the last message that are read."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The state at the end of a session."""

    person: str = ""
    assistant: str = ""
    interrupted: bool = False
    answered: bool = False
    """The assistant spoke last, after the last user message and the last call."""
    unanswered: bool = False
    """The person spoke last."""
    worked_since: bool = False
    """Something was changed or run after the last user message."""
    checked: bool | None = None
    """The result of the last test, lint or build; None without one."""
    check: str = ""
    changed_since: bool = False
    """Files were changed after that check."""
    changed: bool = False
    landed: bool = False
    """A commit, push or pull request came after the last failed check."""
    open_end: str = ""
    """The call at which the session breaks off."""


_Rule = tuple[object, Outcome, str]
"""A condition and its outcome."""


def judge_outcome(end: Ending) -> tuple[Outcome, str]:
    """Return how a session ended, and the sign: the first rule that matches.

    A success needs evidence: a check that passed after the last change, a commit, push or merge
    after the work, or the person's word. That the assistant says so is none.
    """
    person, reply = end.person[:_LAST_CHARS], _ends(end.assistant)
    if not reply and not end.worked_since and not end.changed:
        return "unknown", "nothing was answered or done"
    for holds, outcome, reason in (*_bad_signs(end, person, reply), *_signs(end, person, reply)):
        if holds:
            return outcome, reason
    return "unknown", "no sign of how it ended"


def _bad_signs(end: Ending, person: str, reply: str) -> tuple[_Rule, ...]:
    good = end.checked or end.landed
    done, gave_up = _re.done.search(reply), _re.gave_up.search(reply)
    unhappy = _re.unhappy.search(person) and not good and not done
    failed = end.checked is False and not end.landed
    claimed = failed and done and not gave_up
    fails = _re.fails.match(reply) and not done and not good and not _re.question.search(person)
    content = claimed and _re.happy.search(person)
    return (
        (end.interrupted, "failure", "the person interrupted it"),
        (unhappy, "failure", "the person's last words say that it does not work"),
        (content, "success", "the person is content"),
        (claimed and end.answered, "partial", f"called done, but the last {end.check} failed"),
        (failed, "failure", f"the last {end.check} failed"),
        (fails, "failure", "the assistant's last words say that it fails"),
        (gave_up and not good, "failure", "the assistant's last words say that it did not succeed"),
    )


def _signs(end: Ending, person: str, reply: str) -> tuple[_Rule, ...]:
    passed = end.checked and not end.changed_since
    done = _re.done.search(reply)
    content = (
        _re.happy.search(person)
        and not _re.unhappy.search(person)
        and not goals.is_request(person)  # who asks for more is content with what was before
    )
    announced = end.answered and _re.begins.match(reply) and not done
    admits = end.answered and _re.admits.search(reply) and reply.rstrip().endswith("?")
    waits = end.answered and _is_waiting(end, person, reply)
    unanswered = end.unanswered and not content and not goals.asks_to_land(person)
    return (
        (end.open_end and passed, "success", f"the last {end.check} passed"),
        (end.open_end, "partial", f"it breaks off at: {end.open_end}"),
        (unanswered, "partial", "the person's last words were not answered"),
        (end.landed, "success", "it ended in a commit or a pull request"),
        (admits, "partial", "the assistant's last words name what still fails"),
        (waits, "partial", "it ends with a question to the person"),
        (passed, "success", f"the last {end.check} passed"),
        (content, "success", "the person is content"),
        (announced, "partial", "it ends with work announced"),
        (end.changed and end.answered and done, "unknown", "called done, and nothing confirms it"),
        (end.answered and not end.changed, "unknown", "answered, and nobody confirmed it"),
        (end.changed, "partial", "files were changed, and nothing says that it works"),
    )


def _is_waiting(end: Ending, person: str, reply: str) -> bool:
    """Return whether the work waits for the user; an offer after an answer does not count."""
    if end.changed and end.worked_since:
        return False
    if _re.asks.search(reply):
        return True
    return bool(_re.offers.search(reply)) and not _re.question.search(person)


def _ends(text: str) -> str:
    if len(text) <= 2 * _LAST_CHARS:
        return text
    return f"{text[:_LAST_CHARS]}\n{text[-_LAST_CHARS:]}"


MOST_ERRORS, MOST_FILES = 20, 60
_STEPS_OF_A_FIX = 3
_FIX_LOOKBACK = 40
"""Calls before a successful retry in which its fix is searched for."""

_RETRY_DISTANCE = 10
"""Calls within which another try at the same program or file counts as a retry."""

_MAX_REQUESTS = 40


@dataclass(slots=True)
class CallRecord:
    """One call and its result."""

    call: Call
    message: Message
    result: Verdict | Literal["none"] = "none"


@dataclass(slots=True)
class SessionActivity:
    """Requests, calls, errors and replies of a session, collected message by message."""

    calls: list[CallRecord] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)
    queue: deque[int] = field(default_factory=deque)
    requests: list[tuple[str, str]] = field(default_factory=list)
    person: str = ""
    person_at: int = 0
    interrupted: bool = False
    asked_memory: bool = False
    """Lore's own tools were called; such calls are not recorded."""
    assistant: str = ""
    last_word: str = ""
    errors: list[tuple[EpisodeError, Message]] = field(default_factory=list)
    open_errors: dict[str, tuple[int, int]] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    commits: dict[str, None] = field(default_factory=dict)
    checks: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """The last test, lint and build: its place, and whether it passed."""
    changed_at: int = -1
    landed_at: int = -1


def collect_activity(messages: Iterable[Message]) -> SessionActivity:
    """Collect the activity of messages, in their order."""
    activity = SessionActivity()
    for message in messages:
        for part in message.parts:
            _collect_part(activity, message, part)
    return activity


def _collect_part(activity: SessionActivity, message: Message, part: Part) -> None:
    if part.kind in ("tool_call", "tool_result") and call_text.is_lore_tool(part.name):
        activity.asked_memory = True
    elif part.kind == "tool_call":
        if TRUST[part_origin(part, message.origin)] >= UNASKED_TRUST:
            _add_call(activity, message, part)
    elif part.kind == "tool_result":
        _add_result(activity, message, part)
    elif not is_spoken_part(part) or not part.text.strip():
        return
    elif message.role == "user" and part_origin(part, message.origin) == "user":
        _add_user_text(activity, message, part.text)
    elif message.role == "assistant":
        activity.assistant = part.text
        activity.last_word = "assistant"


def _add_user_text(activity: SessionActivity, message: Message, text: str) -> None:
    activity.interrupted = bool(_re.interrupted.match(text))
    request = goals.parse_request(text)
    if len(activity.requests) < _MAX_REQUESTS:
        activity.requests.append((text, message.id))
    if request is not None and not request.command:
        activity.person, activity.person_at = request.text, len(activity.calls)
        activity.last_word = "person"


def _add_call(activity: SessionActivity, message: Message, part: Part) -> None:
    call = call_text.read_call(part.name, part.text)
    place = len(activity.calls)
    activity.calls.append(CallRecord(call, message))
    activity.last_word = "call"
    activity.interrupted = False
    if part.call_id:
        activity.waiting[part.call_id] = place
    else:
        activity.queue.append(place)


def _add_result(activity: SessionActivity, message: Message, part: Part) -> None:
    place = activity.waiting.pop(part.call_id, -1) if part.call_id else -1
    if place < 0 and activity.queue:
        place = activity.queue.popleft()
    if place < 0:
        return
    record = activity.calls[place]
    record.result = call_text.classify_result(record.call, part.text, failed=part.failed)
    if record.result == "failed":
        _add_failure(activity, record, place, message, part.text)
    elif record.result == "ok":
        _add_success(activity, record, place, message, part.text)


def _add_failure(
    activity: SessionActivity, record: CallRecord, place: int, message: Message, text: str
) -> None:
    if record.call.check:
        activity.checks[record.call.check] = (place, False)
    key = record.call.keys[0]
    if key in activity.open_errors or len(activity.errors) >= MOST_ERRORS:
        return
    error = call_text.error_line(text)
    if error:
        activity.open_errors[key] = (len(activity.errors), place)
        what = record.call.check or record.call.action
        command = call_text.shown_command(record.call.command)
        activity.errors.append((EpisodeError(what, error, command=command), message))


def _add_success(
    activity: SessionActivity, record: CallRecord, place: int, message: Message, text: str
) -> None:
    call = record.call
    for check in call.checks:
        activity.checks[check] = (place, True)
    for key in _resolved_errors(activity, call, place):
        which, since = activity.open_errors.pop(key)
        error, where = activity.errors[which]
        activity.errors[which] = (
            replace(
                error,
                resolution=_describe_fix(activity, since, place),
                retry=call_text.shown_command(call.command) if error.command else "",
            ),
            where,
        )
    for file in call.read[:MOST_FILES]:
        activity.read.setdefault(file)
    for file in call.created:
        if file not in activity.changed and file not in activity.read:
            activity.artifacts.setdefault(file, "")
    for file in call.changed:
        activity.changed.setdefault(file)
        activity.changed_at = place
    if call.command:
        _add_artifacts(activity, call, place, message, text)


def _resolved_errors(activity: SessionActivity, call: Call, place: int) -> list[str]:
    """Return the errors that a call resolves: its own, and a related one shortly before."""
    return [
        key
        for key, (_, since) in activity.open_errors.items()
        if key in call.keys
        or (
            place - since <= _RETRY_DISTANCE
            and not call.related_keys.isdisjoint(activity.calls[since].call.related_keys)
        )
    ]


def _add_artifacts(
    activity: SessionActivity, call: Call, place: int, message: Message, text: str
) -> None:
    """Record the artifacts of a command: commits, branches, pull requests."""
    if _re.landing.search(call.command):
        activity.landed_at = place
    if _re.git_commit.search(call.command):
        for commit in _re.committed.findall(text[:2_000]):
            activity.commits.setdefault(commit)
    if _re.opened.search(call.command):
        for page in _re.page.findall(text[:2_000]):
            activity.artifacts.setdefault(page, message.id)


def _describe_fix(activity: SessionActivity, since: int, until: int) -> str:
    """Return what was done between a failure and the successful retry."""
    between = activity.calls[max(since + 1, until - _FIX_LOOKBACK) : until]
    edits = [d for d in between if d.call.changed and d.result != "failed"]
    tries = [d for d in between if d.call.action == "run" and not d.call.check and d.result == "ok"]
    steps = [f"{d.call.tool} {short_name(d.call.target)}" for d in edits or tries]
    steps = list(dict.fromkeys(steps))[-_STEPS_OF_A_FIX:]
    first, then = activity.calls[since].call, activity.calls[until].call
    again = (
        "tried again" if first.target == then.target else f"{then.tool} {short_name(then.target)}"
    )
    return sentences.one_line("; ".join(steps) or again, call_text.MESSAGE_CHARS)


def short_name(target: str) -> str:
    """Return a path by its last two names, and anything else in a few words."""
    if target.startswith(("/", "~", ".")) and " " not in target:
        return "/".join(target.rstrip("/").rsplit("/", 2)[-2:])
    return sentences.one_line(target, 60)


def find_ending(activity: SessionActivity) -> Ending:
    """Return the state at the end of a session."""
    last = activity.calls[-1] if activity.calls else None
    breaks_off = last is not None and last.result == "none" and activity.last_word == "call"
    worked_since = any(
        d.call.action in ("run", "edit", "write") for d in activity.calls[activity.person_at :]
    )
    # What was confirmed before the last request says nothing about the work on that request.
    confirmed_from = activity.person_at if worked_since else 0
    check, checked_at, checked = _last_check(activity, confirmed_from)
    failed_at = checked_at if checked is False else -1
    landed = activity.landed_at >= max(confirmed_from, failed_at + 1, activity.changed_at, 0)
    landed = landed and not breaks_off
    if breaks_off and last is not None and _re.landing.search(last.call.command):
        landed, breaks_off = True, False
    return Ending(
        person=activity.person,
        assistant=activity.assistant,
        interrupted=activity.interrupted,
        answered=activity.last_word == "assistant",
        unanswered=activity.last_word == "person",
        worked_since=worked_since,
        checked=checked,
        check=check,
        changed_since=activity.changed_at > checked_at,
        changed=bool(activity.changed),
        landed=landed,
        open_end=short_name(last.call.target) or last.call.tool if breaks_off and last else "",
    )


def _last_check(activity: SessionActivity, confirmed_from: int) -> tuple[str, int, bool | None]:
    """Return the check that counts at the end, its place, and whether it passed; None without one.

    A failure counts until the same check passes, whatever other checks say; one before the last
    request is a separate matter.
    """
    failed = [(at, name) for name, (at, passed) in activity.checks.items() if not passed]
    passed = [(at, name) for name, (at, passed) in activity.checks.items() if passed]
    if failed and max(failed)[0] >= activity.person_at:
        return max(failed)[1], max(failed)[0], False
    if passed and max(passed)[0] >= confirmed_from:
        return max(passed)[1], max(passed)[0], True
    return "", -1, None


CONTENT_TOKENS = 150
"""Recall returns the content; the payload of an episode holds the rest."""

MOST_ACTIONS, MOST_ARTIFACTS, MOST_COMMITS, MOST_TASKS = 200, 20, 20, 20
MOST_SOURCES = 48
_TASKS_SHOWN = 4
_TASK_CHARS = 100
"""Characters of each goal, which leaves room for the rest of the content."""


def derive_episode(
    messages: Sequence[Message], *, agent: str = "", title: str = ""
) -> Episode | None:
    """Derive an episode from a session; None if nothing was asked or done in it."""
    if not messages:
        return None
    activity = collect_activity(messages)
    goal, goal_sources = _goal(activity, title=title)
    if not goal and not activity.calls:
        return None
    outcome, reason = judge_outcome(find_ending(activity))
    tasks, sources = _tasks(messages, activity, title=title) if goal else ((), ())
    shown = (
        activity.calls[: MOST_ACTIONS // 2]
        + activity.calls[MOST_ACTIONS // 2 :][-MOST_ACTIONS // 2 :]
    )
    return Episode(
        goal=goal,
        outcome=outcome,
        reason=reason,
        agent=agent,
        calls=len(activity.calls),
        actions=tuple(_action(record, messages[0]) for record in shown),
        errors=tuple(error for error, _ in activity.errors),
        files_read=tuple(activity.read)[:MOST_FILES],
        files_changed=tuple(activity.changed)[:MOST_FILES],
        artifacts=tuple(activity.artifacts)[:MOST_ARTIFACTS],
        commits=tuple(activity.commits)[:MOST_COMMITS],
        tasks=tasks,
        duration_s=_seconds(messages[0], messages[-1]),
        tokens=sum(message.tokens for message in messages),
        sources=tuple(dict.fromkeys((*goal_sources, *sources, *_sources(activity))))[:MOST_SOURCES],
        titled=bool(title) and goal != _goal(activity)[0],
    )


def _goal(activity: SessionActivity, *, title: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the goal of a session, and the message that states it."""
    goal, place = goals.find_goal((text for text, _ in activity.requests), title=title)
    return goal, (activity.requests[place][1],) if place >= 0 else ()


def _tasks(
    messages: Sequence[Message], session: SessionActivity, *, title: str
) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Return the tasks of a session, and the messages that ask for them.

    Errors are those of the whole session: a later task may resolve one.
    """
    tasks: list[Task] = []
    sources: list[str] = []
    spans = goals.split_tasks(messages)
    for span in spans[:MOST_TASKS]:
        activity = collect_activity(span) if len(spans) > 1 else session
        goal, goal_sources = _goal(activity, title="" if len(spans) > 1 else title)
        outcome, reason = judge_outcome(find_ending(activity))
        first, last = span[0].ordinal, span[-1].ordinal
        tasks.append(
            Task(
                goal,
                outcome,
                reason,
                first,
                last,
                calls=len(activity.calls),
                errors=tuple(e for e, reply in session.errors if first <= reply.ordinal <= last),
                files_read=tuple(activity.read)[:MOST_FILES],
                files_changed=tuple(activity.changed)[:MOST_FILES],
            )
        )
        sources += goal_sources
    return tuple(tasks), tuple(sources)


def _action(record: CallRecord, first: Message) -> Action:
    return Action(
        _seconds(first, record.message), record.call.tool, record.call.target, record.result
    )


def _seconds(since: Message, until: Message) -> int:
    return max(0, round((until.created_at - since.created_at).total_seconds()))


def _sources(activity: SessionActivity) -> Iterator[str]:
    """Return the messages to cite: errors, artifacts, and the last step."""
    yield from (reply.id for _, reply in activity.errors)
    yield from (id_ for id_ in activity.artifacts.values() if id_)
    yield from (record.message.id for record in activity.calls[-MOST_SOURCES:])


def format_episode(episode: Episode) -> str:
    """Return an episode as a short text: goal, outcome, steps, errors, files."""
    lines = [*_format_goals(episode), *_format_steps(episode)]
    if episode.files_changed:
        lines.append(
            f"Changed: {', '.join(short_name(name) for name in episode.files_changed[:5])}"
        )
    fixed = [error for error in episode.errors if error.resolution]
    open_ = [error for error in episode.errors if not error.resolution]
    lines += [f"Error: {sentences.one_line(e.message, 100)} → {e.resolution}" for e in fixed[:2]]
    if open_ and not fixed:
        lines.append(f"Error: {sentences.one_line(open_[-1].message, 100)}")
    return tokens.clip("\n".join(lines), CONTENT_TOKENS)


def _format_goals(episode: Episode) -> Iterator[str]:
    """Yield the goals: one in full, or each in short with its outcome."""
    if len(episode.tasks) < 2:
        yield f"Goal: {episode.goal or 'not said'}"
        return
    for place, task in enumerate(episode.tasks[:_TASKS_SHOWN]):
        goal = sentences.one_line(task.goal, _TASK_CHARS)
        yield f"{'Then' if place else 'Goal'}: {goal} ({task.outcome})"
    if len(episode.tasks) > _TASKS_SHOWN:
        yield f"And {len(episode.tasks) - _TASKS_SHOWN} more"


def _format_steps(episode: Episode) -> Iterator[str]:
    """Yield the outcome and the steps; nothing for a conversation without any."""
    is_known = episode.outcome in ("failure", "partial")
    if is_known or (episode.calls and episode.outcome == "success"):
        yield f"Outcome: {episode.outcome} ({episode.reason})"
    if episode.calls:
        span = f" in {_span(episode.duration_s)}" if episode.duration_s else ""
        commits = f"; commits {', '.join(episode.commits[:3])}" if episode.commits else ""
        yield f"Did: {_counts(episode)}{span}{commits}"


def _counts(episode: Episode) -> str:
    failed = sum(action.result == "failed" for action in episode.actions)
    counted = f"{episode.calls} tool call{'' if episode.calls == 1 else 's'}"
    return f"{counted}, {failed} failed" if failed else counted


def _span(seconds: int) -> str:
    if seconds < 90:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
