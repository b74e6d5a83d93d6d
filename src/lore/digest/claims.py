"""Claims: the sentences of messages and fragments that state something, with their context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lore import clock
from lore.digest.pair_judge import Claim, is_settled, is_statement
from lore.records import TRUST, Fragment, Message
from lore.store import fragments, items, messages
from lore.store.database import Connection
from lore.text import call_text, message_features, statements
from lore.text.call_text import ValueChange
from lore.text.instructions import typed_text
from lore.text.message_features import part_origin
from lore.text.pasted_text import find_voices
from lore.text.statements import Statement

SHORTEST, LONGEST = 8, 400
MOST_SENTENCES, MOST_PROSE_SENTENCES, MOST_ANSWER_SENTENCES, READ_CHARS = 8, 24, 3, 2_000
"""A person's message of more sentences is a document that they pasted, unless it is plain prose
without headings and lists; an assistant's is a report, which says too much beside what holds. (Of
six recorded sessions, reports made nine of ten links, nearly all of them wrong.)"""

SHORT_REPLY, MOST_ASKED_CHARS = 60, 160
"""Characters of a reply that needs its question, and of the question or request that is read."""

_TURN_MESSAGES = 40
"""Messages of a turn in which an assistant's edits are looked for."""

_QUOTED_SHARE = 0.5
_QUOTE = re.compile(r"[\"“„«][^\"“”„«»\n]{8,}[\"”»]")


def load_claims(db: Connection, ns: Sequence[int]) -> dict[int, tuple[Claim, ...]]:
    """Return the claims of messages, and of fragments that no message is the source of."""
    by_item = {
        n: tuple(_message_claims(db, n, one)) for n, one in messages.get_messages(db, ns).items()
    }
    for n, one in fragments.by_number(db, ns).items():
        if not one.source_messages and one.kind != "episode" and not one.superseded_by:
            by_item[n] = tuple(_fragment_claims(n, one))
    return by_item


def add_turn(db: Connection, n: int, claims: Sequence[Claim]) -> list[Claim]:
    """Return an item's claims with what its turn says about them, if an assistant ends the turn.

    Its report is read with the person's request, and its edits of a value are claims of their own.
    """
    message = messages.get_messages(db, [n]).get(n)
    if message is None or message.role != "assistant" or message.origin != "assistant":
        return list(claims)
    if not messages.is_last_answer(db, n):
        return list(claims)
    earlier = messages.messages_before(db, n, most=_TURN_MESSAGES)
    place = next((i for i, one in enumerate(earlier) if one.role == "user"), None)
    if place is None:
        return list(claims)
    request = _request(typed_text(earlier[place]))
    request_n = items.numbers_of(db, [earlier[place].id])[earlier[place].id] if request else None
    edits = _find_edits([message, *earlier[:place]])
    return [
        *(one._replace(asked=request, asked_n=request_n) for one in claims),
        *(_edit_claim(db, one, edit) for one, edit in edits),
    ]


def _message_claims(db: Connection, n: int, message: Message) -> Iterator[Claim]:
    if message.role == "user":
        text, trust = typed_text(message), TRUST["user"]
    elif message.role == "assistant" and message.origin == "assistant":
        # A part in which an assistant repeats a page or a tool is not its own word.
        own = (part for part in message.parts if part_origin(part, "assistant") == "assistant")
        text, trust = message_features.spoken_text(own), TRUST["assistant"]
    else:
        return
    stem = Claim(n, "", "", trust, clock.to_us(message.created_at), message.session_id)
    if message.role == "user" and 0 < len(text) <= SHORT_REPLY:
        asked, asked_n = _question_before(db, n)
        stem = stem._replace(asked=asked, asked_n=asked_n)
    yield from _split(stem, text, typed=message.role == "user")


def _fragment_claims(n: int, fragment: Fragment) -> Iterator[Claim]:
    at = clock.to_us(fragment.created_at)
    stem = Claim(n, "", "", fragment.trust, at, fragment.session_id or "", is_kept=True)
    yield from _split(stem, fragment.content, typed=False)


def _split(stem: Claim, text: str, *, typed: bool) -> list[Claim]:
    if len(text) > READ_CHARS:
        return []
    split = statements.split_statements(text, by_line=typed)
    if len(split) > _most_sentences(split, typed=typed):
        return []
    voices = find_voices(text, [one.text for one in split]) if typed else ["own"] * len(split)
    stated = [
        (one, voice)
        for one, voice in zip(split, voices, strict=True)
        if len(one.text) + len(stem.asked) >= SHORTEST
        and len(one.text) <= LONGEST
        and is_statement(one.text)
        and voice != "pasted"
        and not (typed and _quotes_another(one.text))
    ]
    # what may be pasted is not the person's own word
    trust = {"own": stem.trust, "doubtful": min(stem.trust, TRUST["assistant"])}
    return [
        stem._replace(text=one.text, before=one.before, statements=len(stated), trust=trust[voice])
        for one, voice in stated
    ]


def _most_sentences(split: Sequence[Statement], *, typed: bool) -> int:
    if not typed:
        return MOST_ANSWER_SENTENCES
    is_prose = not any(one.is_item or one.heading or one.code for one in split)
    return MOST_PROSE_SENTENCES if is_prose else MOST_SENTENCES


def _quotes_another(text: str) -> bool:
    """Return whether a person's sentence mostly quotes what someone else said or wrote."""
    quoted = sum(len(match.group()) for match in _QUOTE.finditer(text))
    return quoted > _QUOTED_SHARE * len(text)


def _question_before(db: Connection, n: int) -> tuple[str, int | None]:
    """Return the question with which an assistant ended the message just before one, and that."""
    before = messages.messages_before(db, n, most=1)
    if not before or before[0].role != "assistant" or before[0].origin != "assistant":
        return "", None
    split = statements.split_statements(message_features.spoken_text(before[0].parts))
    last = split[-1].text if split else ""
    if not last.endswith("?") or len(last) > MOST_ASKED_CHARS:
        return "", None
    return last, items.numbers_of(db, [before[0].id])[before[0].id]


def _request(text: str) -> str:
    """Return what a person asked for or stated: a short message, or its last sentence."""
    if len(text) > READ_CHARS:
        return ""
    split = [one.text for one in statements.split_statements(text, by_line=True)]
    whole = " ".join(split)
    request = whole if len(whole) <= MOST_ASKED_CHARS else split[-1]
    is_usable = len(request) <= MOST_ASKED_CHARS and is_statement(request) and is_settled(request)
    return request if is_usable else ""


def _find_edits(turn: Sequence[Message]) -> list[tuple[Message, ValueChange]]:
    """Return the values that an assistant's successful edits changed in a turn, last first.

    What was tried and taken back in the same turn is left out.
    """
    calls = [(one, part) for one in reversed(turn) for part in one.parts]
    results = {part.call_id: part for _, part in calls if part.kind == "tool_result"}
    net: dict[tuple[str, str], tuple[Message, ValueChange]] = {}
    for message, part in calls:
        if part.kind != "tool_call" or part_origin(part, message.origin) != "assistant":
            continue
        result = results.get(part.call_id) if part.call_id else None
        call = call_text.read_call(part.name, part.text)
        if result and call_text.classify_result(call, result.text, failed=result.failed) != "ok":
            continue
        if call_text.discards_edits(call):
            net.clear()
        for change in call_text.find_value_changes(part.name, part.text):
            _, first = net.pop((change.file, change.old), (message, change))
            if first.old != change.new:
                net[change.file, change.new] = message, change._replace(old=first.old)
    return list(reversed(net.values()))


def _edit_claim(db: Connection, message: Message, edit: ValueChange) -> Claim:
    where = f"{edit.file}: " if edit.file else ""
    n, at = items.numbers_of(db, [message.id])[message.id], clock.to_us(message.created_at)
    text = f"{where}{edit.new}"[:LONGEST]
    return Claim(n, text, "", TRUST["assistant"], at, message.session_id, was=edit.old)
