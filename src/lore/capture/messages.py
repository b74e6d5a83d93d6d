"""Messages on their way in: everything that is derived from them, computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lore import clock, projects
from lore.checking import check_origin
from lore.errors import InvalidInput
from lore.projects import Projects
from lore.records import (
    PART_KINDS,
    ROLES,
    Channel,
    NewMessage,
    Origin,
    Part,
    Role,
)
from lore.redaction import UNKEPT
from lore.store import claims, echoes, messages, session_states, sessions
from lore.store.db import Connection, Database
from lore.store.messages import PreparedMessage
from lore.store.places import Place
from lore.text import digests, parts, tokens, words
from lore.text.secrets import Redactor
from lore.text.traits import traits_of
from lore.text.typed import standing_in
from lore.text.withdrawals import is_only

_ORIGINS: dict[Role, Origin] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "system": "tool",
}

_LOOKED_AT = 64
"""Messages in which secrets are looked for at once: few have any, and then halves are looked at.

Each rule has an automaton of its own, so with fewer of them more time goes into changing rules.
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


def capture(
    database: Database,
    conversation: Conversation,
    new: Sequence[NewMessage],
    *,
    redactor: Redactor = UNKEPT,
    told: int = 0,
) -> list[str]:
    """Store messages of a conversation, each once, and return their ids in order.

    So many of them as are `told` were said before, be it elsewhere in the talk.
    """
    if not conversation.session.strip():
        msg = "A session needs a name."
        raise InvalidInput(msg)
    if not new:
        return []
    for message in new:
        check(message)
    keyed = _keyed(_all_cleaned(new, redactor))
    prepared = [_derive(message, clock.new_id(message.created_at)) for message in keyed]
    named = _cleaned_place(conversation, redactor)
    place = Projects().find(named.project)
    before = frozenset(message.id for message in prepared[:told])
    return database.write(
        lambda db: _store(db, named, place, prepared, now=database.now(), before=before)
    )


def _cleaned_place(conversation: Conversation, redactor: Redactor) -> Conversation:
    def clean(text: str) -> str:
        return redactor.redact(words.clean(text))

    return Conversation(
        session=clean(conversation.session),
        agent=clean(conversation.agent),
        project=clean(conversation.project),
        title=clean(conversation.title),
        branch=clean(conversation.branch),
        parent=clean(conversation.parent),
        files=tuple(clean(file) for file in conversation.files),
        channel=conversation.channel,
    )


def _store(
    db: Connection,
    conversation: Conversation,
    place: Place | None,
    prepared: Sequence[PreparedMessage],
    *,
    now: datetime,
    before: Collection[str] = (),
) -> list[str]:
    """Write messages of a conversation, in the transaction of the caller."""
    if conversation.channel == "gateway":
        prepared = echoes.unforgotten(db, prepared)
        if not prepared:
            return []
    session_n = sessions.find_number(db, conversation.session, agent=conversation.agent)
    if session_n is None:
        session_n = _new_session(db, conversation, place, prepared[0].new.created_at, now)
    elif conversation.project:
        _note_other_project(db, session_n, conversation.project, place, now)
    if conversation.title or conversation.files:
        sessions.describe(db, session_n, title=conversation.title, files=conversation.files)
    told = [(message.key, message.digest) for message in prepared if message.id in before]
    if told:
        claims.recognise(db, session_n, conversation.channel, told)
    return messages.add(db, session_n, prepared, now=now, channel=conversation.channel)


def _new_session(
    db: Connection,
    conversation: Conversation,
    place: Place | None,
    started_at: datetime,
    now: datetime,
) -> int:
    project_n = projects.ensure(db, conversation.project, place, now=now)
    parent_n = sessions.get_number(db, conversation.parent) if conversation.parent else None
    if project_n is None and parent_n is not None:
        project_n = sessions.project_number(db, parent_n)
    return sessions.ensure_session(
        db,
        conversation.session,
        agent=conversation.agent,
        project_n=project_n,
        started_at=started_at,
        branch=conversation.branch,
        parent_n=parent_n,
    )


def _note_other_project(
    db: Connection, session_n: int, project: str, place: Place | None, now: datetime
) -> None:
    """A session stays in its first project; that another was named is noted for doctor."""
    named = projects.find(db, project, place)
    if named is None or named != sessions.project_number(db, session_n):
        session_states.put(db, session_n, "other_project", value=True, now=now)


def _keyed(new: Sequence[NewMessage]) -> list[NewMessage]:
    """Give every message a key: its own, or one made of what it says and how often before."""
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


def prepare(message: NewMessage, *, id: str = "", redactor: Redactor = UNKEPT) -> PreparedMessage:
    """Redact a message and derive all that the store keeps beside it."""
    check(message)
    cleaned = _changed(_with_origin(message), words.clean)
    (redacted,) = _redacted((cleaned,), _texts((cleaned,)), redactor)
    return _derive(redacted, id or clock.new_id(message.created_at))


def prepare_all(new: Sequence[NewMessage], *, redactor: Redactor) -> list[PreparedMessage]:
    """Prepare messages that were checked; together that is quicker than one by one."""
    cleaned = _all_cleaned(new, redactor)
    ids = clock.new_ids([message.created_at for message in cleaned])
    return [_derive(message, id_) for message, id_ in zip(cleaned, ids, strict=True)]


def _all_cleaned(new: Sequence[NewMessage], redactor: Redactor) -> list[NewMessage]:
    """Return messages as they may be stored: texts that can be held, and no secrets in them."""
    cleaned: list[NewMessage] = []
    for start in range(0, len(new), _LOOKED_AT):
        some = [_with_origin(message) for message in new[start : start + _LOOKED_AT]]
        texts = _texts(some)
        if not words.is_clean("\n".join(texts)):
            some = [_changed(message, words.clean) for message in some]
            texts = _texts(some)
        cleaned += _redacted(some, texts, redactor)
    return cleaned


def _redacted(
    some: Sequence[NewMessage], texts: list[str], redactor: Redactor
) -> Sequence[NewMessage]:
    """Return messages without the secrets in their texts; halves are asked where one is."""
    if not redactor.holds_secret(texts):
        return some
    if len(some) == 1:
        return [_changed(some[0], redactor.redact)]
    half = len(some) // 2
    return [
        message
        for part in (some[:half], some[half:])
        for message in _redacted(part, _texts(part), redactor)
    ]


def _texts(messages: Iterable[NewMessage]) -> list[str]:
    """Return every text of messages that somebody else wrote."""
    texts: list[str] = []
    for message in messages:
        texts += (message.key, message.speaker, message.model)
        if not message.usage.keys() <= _USUAL_COUNTS:
            texts += message.usage
        for part in message.parts:
            texts += (part.text, part.name, part.call_id)
    return [text for text in texts if text]


def _derive(message: NewMessage, id_: str) -> PreparedMessage:
    standing = standing_in(message)
    searchable = parts.searchable(message.parts)
    return PreparedMessage(
        new=message,
        id=id_,
        key=message.key,
        tokens=tokens.count(parts.whole(message.parts)),
        embeds=message.role in ("user", "assistant") and parts.says_something(message.parts),
        traits=traits_of(searchable, message.role, standing=not all(map(is_only, standing))),
        standing=standing,
        digest=digests.digest_of(message.role, message.parts),
        searchable=searchable,
    )


def _with_origin(message: NewMessage) -> NewMessage:
    """Return a message of which it is known who said it."""
    if message.origin:
        return message
    return NewMessage(
        message.role,
        message.parts,
        message.created_at,
        message.key,
        message.speaker,
        _ORIGINS[message.role],
        message.model,
        message.usage,
    )


_USUAL_COUNTS = frozenset(
    (
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        "cached_input_tokens", "reasoning_output_tokens", "total_tokens", "prompt_tokens",
        "completion_tokens",
    )
)  # fmt: skip


def _changed(message: NewMessage, change: Callable[[str], str]) -> NewMessage:
    """Return a message with each of its texts changed."""
    return NewMessage(
        role=message.role,
        parts=tuple([_changed_part(part, change) for part in message.parts]),
        created_at=message.created_at,
        key=change(message.key),
        speaker=change(message.speaker),
        origin=message.origin,
        model=change(message.model),
        usage=_changed_names(message.usage, change),
    )


def _changed_names(usage: dict[str, int], change: Callable[[str], str]) -> dict[str, int]:
    """Return counts by their names, changed where a name is not one that providers use."""
    if usage.keys() <= _USUAL_COUNTS:
        return usage
    return {change(name): count for name, count in usage.items()}


def _changed_part(part: Part, change: Callable[[str], str]) -> Part:
    text, name, call_id = change(part.text), change(part.name), change(part.call_id)
    if text is part.text and name is part.name and call_id is part.call_id:
        return part
    return replace(part, text=text, name=name, call_id=call_id)


def check(message: NewMessage) -> None:
    """Refuse a message of a role, kind or origin that there is not."""
    if message.role not in ROLES:
        msg = f"'{message.role}' is no role."
        raise InvalidInput(msg, hint=f"Roles: {', '.join(ROLES)}.")
    if message.origin is not None:
        check_origin(message.origin)
    for part in message.parts:
        if part.kind not in PART_KINDS:
            msg = f"'{part.kind}' is no kind of part."
            raise InvalidInput(msg, hint=f"Kinds: {', '.join(PART_KINDS)}.")
        if part.origin is not None:
            check_origin(part.origin)


def message_of(role: Role, text: str, created_at: datetime) -> NewMessage:
    """Return a plain message of one text."""
    return NewMessage(role, (Part("text", text),), created_at)
