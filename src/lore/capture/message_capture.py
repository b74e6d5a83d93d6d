"""Prepare messages for the store: redact them, derive their features, and store each only once.

Duplicates from two channels (file, gateway, push) are detected by `lore.store.message_dedup`,
copies that a forked session has of another one by `lore.store.fork_dedup`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

from lore import clock, projects, telemetry
from lore.capture import quotes
from lore.capture.adapter_protocol import Context
from lore.capture.adapters import injected_text
from lore.errors import InvalidInput
from lore.lazy_dataclass import dataclass
from lore.projects import ProjectFinder
from lore.records import PART_KINDS, ROLES, Channel, NewMessage, Origin, Part, Role
from lore.redaction.redactor import EPHEMERAL_REDACTOR, Redactor
from lore.store import forgotten_names, fork_dedup, message_dedup, messages, sessions
from lore.store.database import Connection, Database
from lore.store.messages import PreparedMessage
from lore.store.project_rows import ProjectLocation
from lore.text import memory_tags, message_features, tokens, words
from lore.text.instructions import typed_instructions
from lore.text.message_features import compute_features
from lore.text.private_text import hide_private
from lore.validation import check_origin

_ORIGINS: dict[Role, Origin] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "system": "tool",
}

_REDACTION_BATCH = 256
"""Messages that are searched for secrets at once.

Each rule has an automaton of its own: with fewer messages more time goes into switching rules, with
more of them a secret makes more messages be searched again.
"""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where messages belong: one session of one agent, in a project or none."""

    session: str
    agent: str = "library"
    project: str = ""
    title: str = ""
    branch: str = ""
    parent: str = ""
    files: tuple[str, ...] = ()
    channel: Channel = "push"


R = TypeVar("R", Conversation, Context)


def redact_fields(record: R, redactor: Redactor) -> R:
    """Return a record with the texts in its fields cleaned and redacted."""

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return redactor.redact(hide_private(words.clean(value)))
        if isinstance(value, dict):
            return {redact(key): redact(each) for key, each in value.items()}
        return tuple(map(redact, value)) if isinstance(value, tuple) else value

    return replace(
        record, **{each.name: redact(getattr(record, each.name)) for each in fields(record)}
    )


def capture(
    database: Database,
    conversation: Conversation,
    new: Sequence[NewMessage],
    *,
    redactor: Redactor = EPHEMERAL_REDACTOR,
    repeated: int = 0,
) -> list[str]:
    """Store the messages of a conversation without duplicates and return their ids in order.

    The first `repeated` of them were sent before, possibly elsewhere in the conversation.
    """
    if not conversation.session.strip():
        msg = "The session needs a name."
        raise InvalidInput(msg)
    cleaned = redact_fields(conversation, redactor)
    return capture_into(database, cleaned, new, redactor=redactor, repeated=repeated)


def capture_into(
    database: Database,
    conversation: Conversation,
    new: Sequence[NewMessage],
    *,
    redactor: Redactor,
    repeated: int = 0,
) -> list[str]:
    """Store messages as `capture` does, in a conversation whose fields are redacted."""
    if not new:
        return []
    attributes = {"lore.messages": len(new), "lore.channel": conversation.channel}
    with telemetry.span("capture", attributes) as span:
        ids = _capture(database, conversation, new, redactor, repeated)
        span.set("lore.stored", len(ids))
    return ids


def _capture(
    database: Database,
    conversation: Conversation,
    new: Sequence[NewMessage],
    redactor: Redactor,
    repeated: int,
) -> list[str]:
    for message in new:
        check_message(message)
    if conversation.channel == "push":
        new = [_split_pushed(message) for message in new]
    keyed = _assign_keys(_clean_all(new, redactor))
    prepared = [_derive(message, clock.new_id(message.created_at)) for message in keyed]
    location = ProjectFinder().find(conversation.project)
    before = frozenset(message.id for message in prepared[:repeated])
    return database.write(
        lambda db: _store(db, conversation, location, prepared, now=database.now(), before=before)
    )


def _split_pushed(message: NewMessage) -> NewMessage:
    """Return a pushed message with text that was attached or injected as parts of their own.

    Whoever pushes a conversation of an agent pushes the notices of its program too.
    """
    if message.role != "user":
        return message
    parts = [
        piece
        for part in message.parts
        for piece in (_split_part(part) if part.kind == "text" else [part])
    ]
    if parts == [*message.parts]:
        return message
    return injected_text.user_or_system_message(message, parts)


def _split_part(part: Part) -> Sequence[Part]:
    pieces = injected_text.split_typed(part.text, part.origin)
    has_notice = any(piece.kind == "aside" for piece in pieces)
    return pieces if has_notice else injected_text.split_attached(part)


def _store(
    db: Connection,
    conversation: Conversation,
    place: ProjectLocation | None,
    prepared: Sequence[PreparedMessage],
    *,
    now: datetime,
    before: Collection[str] = (),
) -> list[str]:
    if conversation.channel == "gateway":
        prepared = fork_dedup.drop_forgotten_echoes(db, prepared)
        if not prepared:
            return []
    agent, name = conversation.agent, conversation.session
    session_n = sessions.find_session(db, name, agent=agent)
    forgotten: dict[str, str] = {}
    if session_n is None or forgotten_names.stored_name(db, agent, name) != (agent, name):
        forgotten = messages.find_forgotten(db, (agent, name), conversation.channel, prepared)
        if all(message.key in forgotten for message in prepared):
            return [forgotten[message.key] for message in prepared]
    if session_n is None:
        started_at = messages.clamp_time(prepared[0].new.created_at, now)
        session_n = _new_session(db, conversation, place, started_at, now)
    elif conversation.project:
        _note_other_project(db, session_n, conversation.project, place, now)
    names = forgotten_names.visible(
        db, agent, name, title=conversation.title, files=conversation.files
    )
    if names.title or names.files:
        sessions.describe_session(db, session_n, title=names.title, files=names.files)
    repeated = [(message.key, message.digest) for message in prepared if message.id in before]
    if repeated:
        message_dedup.claim_repeated(db, session_n, conversation.channel, repeated)
    own = [message for message in prepared if message.key not in forgotten]
    own = quotes.mark_quotes(db, session_n, own)
    ids = iter(messages.add_messages(db, session_n, own, now=now, channel=conversation.channel))
    return [forgotten.get(message.key) or next(ids) for message in prepared]


def _new_session(
    db: Connection,
    conversation: Conversation,
    place: ProjectLocation | None,
    started_at: datetime,
    now: datetime,
) -> int:
    project_n = projects.ensure_project(db, conversation.project, place, now=now)
    parent_n = sessions.get_session_number(db, conversation.parent) if conversation.parent else None
    if project_n is None and parent_n is not None:
        project_n = sessions.project_of_session(db, parent_n)
    agent, name = conversation.agent, conversation.session
    names = forgotten_names.visible(db, agent, name, branch=conversation.branch)
    return sessions.ensure_session(
        db,
        name,
        agent=agent,
        project_n=project_n,
        started_at=started_at,
        branch=names.branch,
        parent_n=parent_n,
    )


def _note_other_project(
    db: Connection, session_n: int, project: str, place: ProjectLocation | None, now: datetime
) -> None:
    """Record for doctor that another project was named; the session stays in its first one."""
    named = projects.find_project_number(db, project, place)
    if named is None or named != sessions.project_of_session(db, session_n):
        sessions.put_session_state(db, session_n, "other_project", value=True, now=now)


def _assign_keys(new: Sequence[NewMessage]) -> list[NewMessage]:
    """Give every message a dedup key: its own, or a hash of its content with a count."""
    seen: dict[str, int] = {}
    keyed = []
    for message in new:
        key = message.key
        if not key:
            at = clock.to_us(message.created_at)
            body = f"{message.role}\0{message.speaker}\0{at}\0" + "\0".join(
                f"{part.kind}\0{part.name}\0{part.call_id}\0{part.text}" for part in message.parts
            )
            digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:24]
            seen[digest] = seen.get(digest, 0) + 1
            key = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        keyed.append(message if key == message.key else replace(message, key=key))
    return keyed


def prepare(
    message: NewMessage, *, id: str = "", redactor: Redactor = EPHEMERAL_REDACTOR
) -> PreparedMessage:
    """Redact a message and derive everything that the store keeps beside it."""
    check_message(message)
    (cleaned,) = _clean_all([message], redactor)
    return _derive(cleaned, id or clock.new_id(message.created_at))


def prepare_all(new: Sequence[NewMessage], *, redactor: Redactor) -> list[PreparedMessage]:
    """Prepare checked messages; together that is faster than one by one."""
    cleaned = _clean_all(new, redactor)
    ids = clock.new_ids([message.created_at for message in cleaned])
    return [_derive(message, id_) for message, id_ in zip(cleaned, ids, strict=True)]


def _clean_all(new: Sequence[NewMessage], redactor: Redactor) -> list[NewMessage]:
    """Return messages as they may be stored: valid text, without secrets and private text."""
    cleaned: list[NewMessage] = []
    for start in range(0, len(new), _REDACTION_BATCH):
        some = [
            _without_private(message)
            if message.origin
            else _without_private(replace(message, origin=_ORIGINS[message.role]))
            for message in new[start : start + _REDACTION_BATCH]
        ]
        texts = [_texts(message) for message in some]
        if not words.are_clean(chain.from_iterable(texts)):
            for place, own in enumerate(texts):
                if not words.are_clean(own):
                    some[place] = _map_texts(some[place], words.clean)
                    texts[place] = _texts(some[place])
        cleaned += _redact_all(some, texts, redactor)
    return cleaned


def _without_private(message: NewMessage) -> NewMessage:
    """Return a person's message without what they marked as private."""
    if message.role != "user":
        return message
    parts = tuple([_map_part_texts(part, hide_private) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _redact_all(
    some: Sequence[NewMessage], texts: Sequence[list[str]], redactor: Redactor
) -> list[NewMessage]:
    """Return messages, given with their texts, without secrets.

    They are scanned together, because few have any. One secret can hide another from the scan, so
    the rest is scanned again without the messages that have one.
    """
    redacted = list(some)
    rest = dict(enumerate(texts))
    while holders := redactor.find_holders(rest):
        for place in holders:
            if redactor.holds_secret(rest.pop(place)):
                redacted[place] = _map_texts(some[place], redactor.redact)
    return redacted


def _texts(message: NewMessage) -> list[str]:
    texts = [message.key, message.speaker, message.model]
    if not message.usage.keys() <= _COMMON_COUNTS:
        texts += message.usage
    for part in message.parts:
        texts += (part.text, part.name, part.call_id)
    return [text for text in texts if text]


def _derive(message: NewMessage, id_: str) -> PreparedMessage:
    standing = typed_instructions(message)
    searchable = message_features.searchable_text(message.parts)
    return PreparedMessage(
        new=message,
        id=id_,
        key=message.key,
        tokens=tokens.count(message_features.full_text(message.parts)),
        embeds=message.role in ("user", "assistant")
        and message_features.has_spoken_text(message.parts),
        traits=compute_features(
            searchable, message.role, standing=any(typed.state != "passing" for typed in standing)
        ),
        standing=standing,
        digest=message_features.message_fingerprint(message.role, message.parts),
        searchable=searchable,
    )


_COMMON_COUNTS = frozenset(
    (
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        "cached_input_tokens", "reasoning_output_tokens", "total_tokens", "prompt_tokens",
        "completion_tokens",
    )
)  # fmt: skip


def _map_texts(message: NewMessage, change: Callable[[str], str]) -> NewMessage:
    usage = message.usage
    if not usage.keys() <= _COMMON_COUNTS:
        usage = {change(name): count for name, count in usage.items()}
    return replace(
        message,
        parts=tuple([_map_part_texts(part, change) for part in message.parts]),
        key=change(message.key),
        speaker=change(message.speaker),
        model=change(message.model),
        usage=usage,
    )


def _map_part_texts(part: Part, change: Callable[[str], str]) -> Part:
    text, name, call_id = change(part.text), change(part.name), change(part.call_id)
    if text is part.text and name is part.name and call_id is part.call_id:
        return part
    return replace(part, text=text, name=name, call_id=call_id)


def check_message(message: NewMessage) -> None:
    """Raise `InvalidInput` for an unknown role, part kind or origin."""
    if message.role not in ROLES:
        msg = f"'{message.role}' is not a role."
        raise InvalidInput(msg, hint=f"Roles: {', '.join(ROLES)}.")
    if message.origin is not None:
        check_origin(message.origin)
    for part in message.parts:
        if part.kind not in PART_KINDS:
            msg = f"'{part.kind}' is not a kind of part."
            raise InvalidInput(msg, hint=f"Kinds: {', '.join(PART_KINDS)}.")
        if part.origin is not None:
            check_origin(part.origin)


def split_at_search_marks(messages: Iterable[NewMessage]) -> Iterator[NewMessage]:
    """Split assistant messages at the markers of memory searches.

    Where the gateway searched memory for a model, the agent's transcript has a marker. The texts
    around it were separate responses, and the gateway captures them as such.
    """
    for message in messages:
        has_markers = message.role == "assistant" and any(
            memory_tags.may_have_search_marks(part.text) for part in message.parts
        )
        if has_markers:
            yield from _split_message(message)
        else:
            yield message


def _split_message(message: NewMessage) -> Iterator[NewMessage]:
    number = 0
    for part in message.parts:
        # Every second piece is the id of a marker.
        pieces = (
            memory_tags.SEARCH_MARK.split(part.text)[::2] if part.kind == "text" else [part.text]
        )
        for piece in pieces:
            if piece.strip():
                key = f"{message.key}:{number}" if number and message.key else message.key
                usage = {} if number else message.usage
                yield replace(message, parts=(replace(part, text=piece),), key=key, usage=usage)
                number += 1
