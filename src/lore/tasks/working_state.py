"""Working state: what a session is doing, has decided and done, what stops it, and what is next.

It is derived from the messages of the session's current task, and holds words of the person and the
agent only: output of tools is never quoted, because the state is given to agents unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lore.records import TRUST, UNASKED_TRUST, Message, Outcome, Part
from lore.tasks import agent_task_list
from lore.tasks.agent_task_list import ListedTask
from lore.text import commit_message, episodes, goals, sentences
from lore.text.episodes import Ending, SessionActivity
from lore.text.message_features import is_spoken_part, part_origin
from lore.text.regex import PatternFile
from lore.text.statements import Statement, split_statements

_re = PatternFile("working_state")

MOST_NEXT = 5
"""From the specification."""

MOST_DECISIONS, MOST_PROGRESS, MOST_BLOCKERS, MOST_FILES = 8, 12, 4, 12
"""A page that a colleague reads in a minute."""

NOTE_CHARS, _COMMIT_CHARS = 220, 100
"""A long sentence, and the subject of a commit."""

_MOST_REPORTED, _MOST_FINISHED = 3, 4
"""Sentences of the last report, and earlier tasks of the session."""

_FEWEST_WORDS = 4
"""A shorter sentence of a report ("Done.", "Yes, agreed.") says nothing to another reader."""


@dataclass(frozen=True, slots=True)
class Note:
    """One entry of a state, and the message that it comes from."""

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class WorkContext:
    """Where the work stands: files, checks, commits."""

    files: tuple[str, ...] = ()
    """Changed files, the last one first."""
    uncommitted: tuple[str, ...] = ()
    commits: tuple[Note, ...] = ()
    pages: tuple[str, ...] = ()
    check: str = ""
    """The last test, lint or build, and how it ended."""
    branch: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class PersonEdits:
    """What a person added to sections of a state and removed from them, after a review."""

    added: dict[str, tuple[str, ...]] = field(default_factory=dict)
    removed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def joined(self, later: PersonEdits) -> PersonEdits:
        """Return both edits; the later one wins where they contradict each other."""
        added, removed = dict(self.added), dict(self.removed)
        for texts, own, other in (
            (later.added, added, removed), (later.removed, removed, added),
        ):  # fmt: skip
            for section, new in texts.items():
                other[section] = tuple(one for one in other.get(section, ()) if one not in new)
                own[section] = tuple(dict.fromkeys((*own.get(section, ()), *new)))
        return PersonEdits(
            {name: texts for name, texts in added.items() if texts},
            {name: texts for name, texts in removed.items() if texts},
        )


@dataclass(frozen=True, slots=True)
class TrackedState:
    """The working state of a session with its sources.

    `read_to` and `task_from` are ordinals of its messages.
    """

    task: Note = Note("")
    request: Note = Note("")
    """The person's last request, if it is another than the task."""
    decisions: tuple[Note, ...] = ()
    progress: tuple[Note, ...] = ()
    blockers: tuple[Note, ...] = ()
    next: tuple[Note, ...] = ()
    context: WorkContext = WorkContext()
    outcome: Outcome = "unknown"
    reason: str = ""
    finished: tuple[Note, ...] = ()
    """Earlier tasks of the session, each with its outcome."""
    listed: tuple[ListedTask, ...] = ()
    edits: PersonEdits = PersonEdits()
    ended: bool = False
    """The session was ended after its last message."""
    read_to: int = -1
    task_from: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether something is left to do."""
        return bool(self.task.text) and (
            bool(self.next or self.blockers) or self.outcome in ("partial", "failure")
        )


@dataclass(frozen=True, slots=True)
class StateDelta:
    """What one turn changed in a state, by section."""

    added: dict[str, tuple[str, ...]] = field(default_factory=dict)
    removed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return bool(self.added or self.removed)


SECTIONS = ("decisions", "progress", "blockers", "next")


def diff_states(before: TrackedState, after: TrackedState) -> StateDelta:
    """Return what changed between two states."""
    added: dict[str, tuple[str, ...]] = {}
    removed: dict[str, tuple[str, ...]] = {}
    for name in ("task", *SECTIONS):
        was, now = _texts(before, name), _texts(after, name)
        if new := tuple(text for text in now if text not in was):
            added[name] = new
        if gone := tuple(text for text in was if text not in now):
            removed[name] = gone
    return StateDelta(added, removed)


def _texts(state: TrackedState, name: str) -> list[str]:
    value = getattr(state, name)
    notes = (value,) if isinstance(value, Note) else value
    return [note.text for note in notes if note.text]


def advance(
    state: TrackedState,
    messages: Sequence[Message],
    *,
    decisions: Iterable[Note] = (),
    folder: str = "",
    branch: str = "",
    agent: str = "",
) -> TrackedState:
    """Return a state after a turn.

    `messages` are those of the session from `state.task_from` on; `decisions` are what the messages
    after `state.read_to` decided. Paths below `folder` are shown relative to it.
    """
    if not messages:
        return state
    *ended, current = goals.split_tasks(messages)
    finished = [*state.finished, *filter(None, map(_finished, ended))][-_MOST_FINISHED:]
    activity = episodes.collect_activity(current)
    ending = episodes.find_ending(activity)
    outcome, reason = episodes.judge_outcome(ending)
    listed = _listed_tasks(state.listed, messages, after=state.read_to)
    if ended and all(task.status == "completed" for task in listed):
        listed = ()  # the list of a task that is over
    report = _report(current)
    task, request = _task(activity, state)
    context = _context(activity, ending, folder)
    commits = [replace(note, text=f"Committed {note.text}") for note in context.commits]
    advanced = TrackedState(
        task=task,
        request=request,
        decisions=tuple(_unique((*state.decisions, *decisions))[-MOST_DECISIONS:]),
        progress=_progress([*finished, *commits], listed, report, ending),
        blockers=_blockers(ending, report, reason),
        next=_next_steps(listed, report, ending, activity, outcome),
        context=replace(context, branch=branch or state.context.branch, agent=agent),
        outcome=outcome,
        reason=reason,
        finished=tuple(finished),
        listed=listed,
        edits=state.edits,
        read_to=messages[-1].ordinal,
        task_from=current[0].ordinal,
    )
    return with_edits(advanced)


def with_edits(state: TrackedState) -> TrackedState:
    """Return a state with a person's edits; a step of theirs is gone once it is done."""
    edits = state.edits
    if not edits.added and not edits.removed:
        return state
    done = {_key(note.text) for note in state.progress}
    sections: dict[str, tuple[Note, ...]] = {}
    for name in SECTIONS:
        removed = edits.removed.get(name, ())
        own = [
            Note(text)
            for text in edits.added.get(name, ())
            if name == "progress" or _key(text) not in done
        ]
        derived = [note for note in getattr(state, name) if note.text not in removed]
        sections[name] = tuple(_unique([*own, *derived]))
    task = edits.added.get("task", ())
    return replace(
        state,
        task=Note(task[-1]) if task else state.task,
        decisions=sections["decisions"],
        progress=sections["progress"],
        blockers=sections["blockers"],
        next=sections["next"][:MOST_NEXT],
    )


def _finished(span: Sequence[Message]) -> Note | None:
    activity = episodes.collect_activity(span)
    goal, place = goals.find_goal(text for text, _ in activity.requests)
    if not goal:
        return None
    outcome, _ = episodes.judge_outcome(episodes.find_ending(activity))
    how = f" ({outcome})" if outcome != "unknown" else ""
    source = activity.requests[place][1] if place >= 0 else ""
    return Note(f"{_bare_goal(goal)}{how}", source)


def _task(activity: SessionActivity, state: TrackedState) -> tuple[Note, Note]:
    """Return the goal of the current task, and the last request if that is another one."""
    goal, place = goals.find_goal(text for text, _ in activity.requests)
    if not goal or not _re.letters.search(goal):
        return state.task, state.request
    task = Note(_bare_goal(goal), _source(activity, place))
    for text, id_ in reversed(activity.requests):
        request = goals.parse_request(text)
        if request is not None and request.real and not request.command:
            last = _bare_goal(request.title or request.text)
            return task, Note(last, id_) if last != task.text else Note("")
    return task, Note("")


def _bare_goal(goal: str) -> str:
    """Return a goal without the words that only introduce a plan."""
    return sentences.one_line(_re.plan_opening.sub("", goal) or goal, NOTE_CHARS)


def _source(activity: SessionActivity, place: int) -> str:
    return activity.requests[place][1] if place >= 0 else ""


def _listed_tasks(
    tasks: tuple[ListedTask, ...], messages: Iterable[Message], *, after: int
) -> tuple[ListedTask, ...]:
    """Return the agent's task list after the calls of the new messages."""
    waiting: dict[str, Part] = {}
    for message in messages:
        if message.ordinal <= after:
            continue
        for part in message.parts:
            if part.kind == "tool_call" and agent_task_list.is_task_tool(part.name):
                if TRUST[part_origin(part, message.origin)] < UNASKED_TRUST:
                    continue
                if part.call_id:
                    waiting[part.call_id] = part
                else:
                    tasks = agent_task_list.apply_call(tasks, part.name, part.text)
            elif part.kind == "tool_result" and part.call_id in waiting:
                call = waiting.pop(part.call_id)
                if not part.failed:
                    tasks = agent_task_list.apply_call(tasks, call.name, call.text, part.text)
    for call in waiting.values():
        tasks = agent_task_list.apply_call(tasks, call.name, call.text)
    return tasks


@dataclass(frozen=True, slots=True)
class _Report:
    """The last words of the assistant, by what they are."""

    done: tuple[Note, ...] = ()
    open: tuple[Note, ...] = ()
    blocked: tuple[Note, ...] = ()
    question: Note = Note("")


def _report(messages: Sequence[Message]) -> _Report:
    """Read what the assistant last reported.

    What is open, and a question, count only if the person has not spoken since. What was done also
    comes from earlier exchanges of the task, if the last one only landed the work.
    """
    latest = _Report()
    done: list[Note] = []
    is_final, is_last = True, True
    for message in reversed(messages):
        if message.role == "user" and message.origin == "user":
            is_final, is_last = True, False
        if message.role != "assistant" or TRUST[message.origin] < UNASKED_TRUST:
            continue
        text = "\n".join(part.text for part in message.parts if is_spoken_part(part)).strip()
        calls = any(part.kind == "tool_call" for part in message.parts)
        if text and is_final and not calls:
            report = _read_report(text, message.id)
            latest = report if is_last else latest
            done[:0] = report.done
        if text or calls:
            is_final = False  # what was said before a call announces it
        if len(done) >= _MOST_REPORTED:
            break
    return replace(latest, done=tuple(done[-_MOST_REPORTED:]))


def _read_report(text: str, source: str) -> _Report:
    done: list[Note] = []
    left: list[Note] = []
    blocked: list[Note] = []
    question = ""
    for one in split_statements(text):
        sentence = sentences.one_line(one.text, NOTE_CHARS)
        note = Note(sentence, source)
        if sentence.endswith(":"):
            continue  # it introduces what follows
        if _re.asks_person.search(sentence):
            question = sentence
        elif _re.nothing_left.search(sentence) or _re.offer.search(sentence):
            continue
        elif _is_open(one):
            left.append(note)
        elif _re.blocked.search(sentence):
            blocked.append(note)
        elif not _says_nothing(sentence):
            done.append(note)
    return _Report(
        tuple(done[:_MOST_REPORTED]),
        tuple(sorted(_unique(left), key=lambda note: not _re.next_sentence.match(note.text))),
        tuple(blocked[:2]),
        Note(question, source) if question else Note(""),
    )


def _says_nothing(sentence: str) -> bool:
    return len(sentence.split()) < _FEWEST_WORDS or bool(
        _re.narration.match(sentence) or _re.landed.match(sentence)
    )


def _is_open(one: Statement) -> bool:
    """Return whether a statement says what is left to do."""
    if one.is_item and (_re.open_heading.match(one.heading) or _re.open_lead.search(one.lead)):
        return True
    if one.is_item and _re.open_heading.match(one.lead):
        return True
    return bool(_re.next_sentence.match(one.text))


def _progress(
    finished: Sequence[Note], listed: Sequence[ListedTask], report: _Report, ending: Ending
) -> tuple[Note, ...]:
    done = [Note(task.subject) for task in listed if task.status == "completed"]
    check = (
        [Note(f"The last {ending.check} passed")]
        if ending.checked and not ending.changed_since
        else []
    )
    room = MOST_PROGRESS - len(finished) - len(report.done) - len(check)
    return tuple(_unique([*finished, *done[-max(room, 3) :], *report.done, *check]))


def _blockers(ending: Ending, report: _Report, reason: str) -> tuple[Note, ...]:
    blockers: list[Note] = []
    if ending.interrupted:
        blockers.append(Note("The person interrupted the last step"))
    if ending.checked is False and not ending.landed:
        blockers.append(Note(f"The last {ending.check} failed"))
    blockers += report.blocked
    if report.question.text and "question to the person" in reason:
        blockers.append(replace(report.question, text=f"Asked the person: {report.question.text}"))
    return tuple(_unique(blockers)[:MOST_BLOCKERS])


def _next_steps(
    listed: Sequence[ListedTask],
    report: _Report,
    ending: Ending,
    activity: SessionActivity,
    outcome: Outcome,
) -> tuple[Note, ...]:
    steps = [Note(f"{task.subject} (begun)") for task in listed if task.status == "in_progress"]
    steps += [Note(task.subject) for task in listed if task.status == "pending"]
    if ending.unanswered and outcome != "success":
        asked = sentences.one_line(ending.person, NOTE_CHARS)
        steps.insert(0, Note(f"Answer the person: {asked}", activity.requests[-1][1]))
    if ending.open_end:
        steps.insert(0, Note(f"Finish what broke off: {ending.open_end}"))
    return tuple(_unique([*steps, *report.open])[:MOST_NEXT])


def _context(activity: SessionActivity, ending: Ending, folder: str) -> WorkContext:
    relative = [_relative(name, folder) for name in activity.changed]
    changed = [name for name in relative if not _re.scratch.search(name)]
    commits: list[Note] = []
    last_commit = -1
    for place, record in enumerate(activity.calls):
        message = commit_message.parse_commit_message(record.call.command)
        if message and record.result == "ok":
            subject = sentences.one_line(message.split("\n", 1)[0], _COMMIT_CHARS)
            commits.append(Note(subject, record.message.id))
            last_commit = place
    hashes = list(activity.commits)
    if len(hashes) == len(commits):
        commits = [
            replace(note, text=f"{commit[:8]} {note.text}")
            for commit, note in zip(hashes, commits, strict=True)
        ]
    since = {
        _relative(name, folder)
        for record in activity.calls[last_commit + 1 :]
        if record.result == "ok"
        for name in record.call.changed
    }
    check = ""
    if ending.checked is not None:
        how = "passed" if ending.checked else "failed"
        check = f"{ending.check} {how}" + (", files changed since" if ending.changed_since else "")
    return WorkContext(
        files=tuple(reversed(changed[-MOST_FILES:])),
        uncommitted=tuple(name for name in reversed(changed) if name in since)[:MOST_FILES],
        commits=tuple(commits[-3:]),
        pages=tuple(name for name in activity.artifacts if name.startswith("https://"))[-3:],
        check=check,
    )


def _relative(name: str, folder: str) -> str:
    return name.removeprefix(folder.rstrip("/") + "/") if folder else name


def _unique(notes: Iterable[Note]) -> list[Note]:
    """Return notes without those whose words another one has; the last wording stays."""
    by_words: dict[str, Note] = {}
    for note in notes:
        key = _key(note.text)
        by_words.pop(key, None)
        by_words[key] = note
    return list(by_words.values())


def _key(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")
