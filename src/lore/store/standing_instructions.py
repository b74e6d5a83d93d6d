"""Standing instructions: what the user said once and wants applied always.

A sentence that may be a rule is suggested until it is confirmed: by a person, or by being said
again in another session. A rejected one stays rejected when it is said again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from lore.records import TRUST, InstructionState, Origin
from lore.store import items, replacements
from lore.store.codec import unpack_json
from lore.store.overview import is_known_empty
from lore.store.sql_connection import Connection, Row, among, int_array, json_field
from lore.text import instructions, words
from lore.text.instructions import RuleContent

T = TypeVar("T")

_MAX_READ = 1_000
"""At most this many are read, newest first; a withdrawal is newer than what it withdraws."""


State = InstructionState | Literal["passing"]
"""A `passing` sentence only withdraws others."""

SHOWN: tuple[State, ...] = ("stands", "confirmed")
"""The states in which an instruction is given to agents."""


class Instruction(NamedTuple):
    """One instruction, verbatim, with the message or fragment that it comes from."""

    n: int
    item_n: int
    text: str
    created_at: int
    fragment_origin: Origin | None = None
    """The origin of a fragment; a message is always the user's own."""

    project_id: str | None = None
    """The project it applies to; None means all, or none if it was said in a session."""

    session_id: str | None = None
    state: State = "stands"

    @property
    def scope(self) -> str | None:
        """The project it applies to, '' for sessions without one, and None for all projects."""
        return self.project_id or (None if self.session_id is None else "")


def add(
    db: Connection,
    item_n: int,
    project_n: int | None,
    text: str,
    created_at: int,
    state: State = "stands",
    *,
    confirms: bool = True,
) -> None:
    """Store an instruction; of repeated ones, only the newest is shown.

    If it may be the words of others (not `confirms`), its repetition confirms nothing.
    """
    digest = hashlib.sha256(" ".join(words.split(text)).encode()).hexdigest()[:16]
    withdraws = int(instructions.find_withdrawal(text) is not None)
    source = {"item_n": item_n, "project_n": project_n, "created_at": created_at}
    if state != "passing":
        scope = items.scopes_of(db, [item_n]).get(item_n) if project_n is None else project_n
        state = _settle(db, item_n, scope, text, state, confirms=confirms)
    db.insert("standing", text=text, digest=digest, withdraws=withdraws, state=state, **source)
    replacements.count_change(db)


def replace(
    db: Connection,
    item_n: int,
    project_n: int | None,
    text: str,
    created_at: int,
    state: State,
    *,
    confirms: bool = True,
) -> None:
    """Store the instruction of an item in place of the former one; a decision on it stays."""
    decided: list[State] = db.column(
        "SELECT state FROM standing WHERE item_n = :n AND text = :text"
        " AND state IN ('confirmed', 'rejected')",
        n=item_n,
        text=text,
    )
    remove(db, [item_n])
    state = decided[0] if decided else state
    add(db, item_n, project_n, text, created_at, state, confirms=confirms)


class _SameRule(NamedTuple):
    n: int
    state: State
    session_n: int | None


def _settle(
    db: Connection, item_n: int, scope: int | None, text: str, state: State, *, confirms: bool
) -> State:
    """Return the state of a new instruction, given those that say the same.

    A rule that was said in another session is confirmed, and so is that one. One that shares most
    words with a rejected one is only suggested.
    """
    if state in ("confirmed", "rejected"):
        return state
    if _resembles_rejected(db, scope, text) and state == "stands":
        state = "suggested"
    same = _find_same(db, scope, text)
    if not same:
        return state
    if any(one.state == "rejected" for one in same):
        return "rejected"
    if not confirms:
        return state
    session_n = db.value("SELECT session_n FROM items WHERE n = :n", n=item_n)
    elsewhere = [one for one in same if one.session_n is None or one.session_n != session_n]
    if not elsewhere:
        return state
    _set_state(db, [one.n for one in elsewhere if one.state == "suggested"], "confirmed")
    return "confirmed" if state == "suggested" else state


_RESEMBLES = 0.5
"""Share of common words from which a rule may be a rejected one, reworded."""


_SCOPE = f"coalesce(s.project_n, {items.scope_sql('i')})"
"""The scope of an instruction: its project, otherwise the scope of its item."""

_APPLIES = f"({_SCOPE} IS NULL OR {_SCOPE} = :scope)"


def _resembles_rejected(db: Connection, scope: int | None, text: str) -> bool:
    rejected = db.column(
        "SELECT s.text FROM standing s JOIN items i ON i.n = s.item_n WHERE s.state = 'rejected'"
        f" AND {_APPLIES} ORDER BY s.n DESC LIMIT :limit",
        scope=scope,
        limit=_MAX_READ,
    )
    own = instructions.content_words(text) if rejected else frozenset()
    for other in map(instructions.content_words, rejected):
        if len(own & other) >= _RESEMBLES * len(own | other) and own & other:
            return True
    return False


def confirm_repeated(db: Connection) -> None:
    """Confirm the suggested rules that were said in two sessions, as if all were added anew."""
    rows = db.rows(
        f"SELECT s.n, {_SCOPE}, i.session_n, s.state, s.text FROM standing s"
        " JOIN items i ON i.n = s.item_n WHERE s.state <> 'passing' ORDER BY s.created_at, s.n"
    )
    earlier: _RuleIndex[tuple[int, int | None, int | None]] = _RuleIndex()
    repeated: set[int] = set()
    for n, scope, session_n, _, text in rows:
        content = instructions.rule_content(text)
        elsewhere = {
            other_n
            for other_n, other_scope, other_session_n in earlier.find(content)
            if other_scope in (None, scope)
            and (other_session_n is None or other_session_n != session_n)
        }
        repeated |= {n, *elsewhere} if elsewhere else set()
        earlier.add(content, (n, scope, session_n))
    _set_state(
        db, [n for n, *_, state, _ in rows if state == "suggested" and n in repeated], "confirmed"
    )


def _find_same(db: Connection, scope: int | None, text: str) -> list[_SameRule]:
    """Return the instructions that say the same for a scope, or everywhere."""
    rows = db.rows(
        "SELECT s.n, s.state, i.session_n, s.text FROM standing s JOIN items i ON i.n = s.item_n"
        f" WHERE s.state <> 'passing' AND {_APPLIES} ORDER BY s.created_at DESC LIMIT :limit",
        scope=scope,
        limit=_MAX_READ,
    )
    own = instructions.rule_content(text)
    return [_SameRule._make(row) for *row, other in rows if own.is_repeated_by(other)]


class ComparedRule(NamedTuple):
    """A rule that is compared with others."""

    n: int
    scope: int | None
    text: str


_COMPARED, _AFTER = "rejected_compared", " after "


def rules_to_compare(db: Connection) -> tuple[list[ComparedRule], list[ComparedRule]]:
    """Return the rules that stand unconfirmed, and the rejected ones; none if nothing changed.

    A rule that a person stored is left out: they said it on purpose.
    """
    if db.value("SELECT value FROM meta WHERE key = :key", key=_COMPARED) == _compared_state(db):
        return [], []
    rejected = db.rows(
        f"SELECT s.n, {_SCOPE}, s.text FROM standing s JOIN items i ON i.n = s.item_n"
        " WHERE s.state = 'rejected' ORDER BY s.n DESC"
    )
    standing = db.rows(
        f"SELECT s.n, {_SCOPE}, s.text FROM standing s JOIN items i ON i.n = s.item_n"
        " LEFT JOIN fragments f ON f.n = s.item_n"
        " WHERE s.state = 'stands' AND (f.n IS NULL OR f.source_messages <> '[]'"
        f" OR {json_field('f.metadata', 'native_file')} IS NOT NULL) ORDER BY s.n DESC"
    )
    if not rejected:
        return [], []
    return [ComparedRule._make(row) for row in standing], [
        ComparedRule._make(row) for row in rejected
    ]


def last_compared(db: Connection) -> tuple[int, int] | None:
    """Return the last pair that was compared, if others wait and nothing changed since."""
    value = db.value("SELECT value FROM meta WHERE key = :key", key=_COMPARED) or ""
    state, _, pair = value.partition(_AFTER)
    if not pair or state != _compared_state(db):
        return None
    rule_n, rejected_n = map(int, pair.split())
    return rule_n, rejected_n


def mark_compared(
    db: Connection, reworded: Sequence[int], *, last: tuple[int, int] | None = None
) -> None:
    """Suggest rules that reword a rejected one, and record that all were compared.

    `last` is the last pair that was compared, if others wait.
    """
    _set_state(db, reworded, "suggested")
    db.run(
        "INSERT INTO meta (key, value) VALUES (:key, :value)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        key=_COMPARED,
        value=_compared_state(db) + (f"{_AFTER}{last[0]} {last[1]}" if last else ""),
    )


def _compared_state(db: Connection) -> str:
    changes = "SELECT value FROM meta WHERE key = 'standing_changes'"
    return f"{db.value('SELECT max(n) FROM standing')} {db.value(changes)}"


def decide(db: Connection, n: int, state: Literal["confirmed", "rejected"]) -> None:
    """Confirm or reject an instruction, and those that say the same where it applies."""
    sql = f"SELECT s.text, {_SCOPE} FROM standing s JOIN items i ON i.n = s.item_n WHERE s.n = :n"
    text, scope = db.rows(sql, n=n)[0]
    _set_state(db, [n, *(one.n for one in _find_same(db, scope, text))], state)


def load_decision(
    db: Connection, item_n: int, digest: str, state: Literal["confirmed", "rejected"]
) -> bool:
    """Set the decided state of an item's instruction; return whether that changed anything.

    A rejection also counts against a confirmation: a rule that is said twice is confirmed anew
    while a memory is imported, and what a person rejected stays so.
    """
    ns = db.column(
        "SELECT n FROM standing WHERE item_n = :item_n AND digest = :digest"
        " AND state NOT IN ('passing', 'rejected', :state)",
        item_n=item_n,
        digest=digest,
        state=state,
    )
    _set_state(db, ns, state)
    return bool(ns)


def put_state(
    db: Connection,
    item_n: int,
    digest: str,
    state: State | None,
    rule: Mapping[str, Any] | None,
    *,
    is_gone: bool,
) -> None:
    """Store the state of an item's instruction as another machine has it, and its text if given.

    None for either leaves it as it is. One that is gone there is removed, if it is of a message.
    """
    same = "FROM standing WHERE item_n = :item_n AND digest = :digest"
    ns = db.column(f"SELECT n {same}", item_n=item_n, digest=digest)
    is_message = db.find("SELECT 1 FROM messages WHERE n = :n", n=item_n) is not None
    if is_gone and is_message:
        db.run(f"DELETE {same}", item_n=item_n, digest=digest)
        replacements.count_change(db)
    elif not ns and rule is not None and state is not None and is_message:
        project_n = db.number("SELECT project_n FROM items WHERE n = :n", n=item_n)
        withdraws = int(instructions.find_withdrawal(rule["text"]) is not None)
        db.insert(
            "standing", item_n=item_n, project_n=project_n, digest=digest, withdraws=withdraws,
            state=state, **rule,
        )  # fmt: skip
        replacements.count_change(db)
    elif ns:
        for n in ns:
            if rule is not None:
                db.update("standing", n, **rule)
        if state is not None:
            _set_state(db, ns, state)


def _set_state(db: Connection, ns: Sequence[int], state: State) -> None:
    if ns:
        db.run(
            f"UPDATE standing SET state = :state WHERE {among('n', 'ns')}",
            state=state,
            ns=int_array(ns),
        )
        replacements.count_change(db)


class RuleState(NamedTuple):
    """The number of an instruction, its state, and the item it comes from."""

    n: int
    state: State
    item_n: int


DECIDABLE: tuple[State, ...] = ("stands", "confirmed", "suggested", "rejected")
"""The states between which a person decides."""


def rule_states(db: Connection) -> dict[int, RuleState]:
    """Return the states of all instructions by number, without those that only withdraw."""
    rows = db.rows("SELECT n, state, item_n FROM standing WHERE state <> 'passing'")
    return {row[0]: RuleState(*row) for row in rows}


def set_rule_state(db: Connection, rule: RuleState) -> None:
    """Set the state of one instruction: an earlier decision is undone."""
    _set_state(db, [rule.n], rule.state)


def numbers_of_item(db: Connection, item_n: int) -> list[int]:
    """Return the numbers of the instructions of an item, without those that only withdraw."""
    return db.column(
        "SELECT n FROM standing WHERE item_n = :n AND state <> 'passing' ORDER BY n", n=item_n
    )


def states_of_items(db: Connection, item_ns: Sequence[int]) -> list[tuple[str, State]]:
    """Return the instructions that come from some items, with their states."""
    rows = db.rows(
        f"SELECT text, state FROM standing WHERE {among('item_n', 'ns')}", ns=int_array(item_ns)
    )
    return [(text, state) for text, state in rows]


def texts_of_items(db: Connection, item_ns: Sequence[int]) -> list[str]:
    """Return the instructions that come from some items."""
    return db.column(
        f"SELECT text FROM standing WHERE {among('item_n', 'ns')} ORDER BY n", ns=int_array(item_ns)
    )


def remove(db: Connection, item_ns: Sequence[int]) -> list[int]:
    """Delete the instructions that come from some items; return which items had any."""
    rows = db.rows(
        f"DELETE FROM standing WHERE {among('item_n', 'ns')} RETURNING item_n",
        ns=int_array(item_ns),
    )
    return sorted({row[0] for row in rows})


class InstructionSize(NamedTuple):
    """The number of an instruction, that of its item, and the characters of its text."""

    n: int
    item_n: int
    chars: int


def current_instructions(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[Instruction]:
    """Return the instructions that apply to a project, or to any, newest first, each once.

    Instructions are left out if the user withdrew them later or reworded the fragment made of them,
    and so are sentences that only withdraw. A less trusted origin withdraws nothing.
    """
    return load(db, _current(db, project_n, SHOWN, everywhere=everywhere)[:limit])


def rejected(
    db: Connection, project_n: int | None, *, everywhere: bool = False
) -> list[Instruction]:
    """Return what a person rejected, newest first."""
    return load(db, _current(db, project_n, ("rejected",), everywhere=everywhere))


def current_suggestions(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[Instruction]:
    """Return what may be a rule and is neither confirmed nor rejected, newest first."""
    return load(db, _current(db, project_n, ("suggested",), everywhere=everywhere)[:limit])


def current_sizes(
    db: Connection, project_n: int | None, *, everywhere: bool = False, limit: int = 200
) -> list[InstructionSize]:
    """Return the sizes of the instructions that apply to a project, or to any, newest first."""
    if is_known_empty(db, "standing"):
        return []

    def compute() -> tuple[InstructionSize, ...]:
        ns = _current(db, project_n, SHOWN, everywhere=everywhere)
        sql = f"SELECT n, item_n, length(text) FROM standing WHERE {among('n', 'ns')}"
        by_n = {row[0]: InstructionSize._make(row) for row in db.rows(sql, ns=int_array(ns))}
        return tuple(by_n[n] for n in ns)

    return list(_computed_once(db, ("sizes", project_n, everywhere), compute)[:limit])


def _current(
    db: Connection, project_n: int | None, states: Sequence[State], *, everywhere: bool
) -> tuple[int, ...]:
    """Return the numbers of the instructions in some states that apply, newest first."""

    def compute() -> tuple[int, ...]:
        rows = _newest(db, project_n, everywhere=everywhere)
        hidden = _compute_outcome(db, rows, everywhere=everywhere).hidden
        ns = [n for n, *_, state in rows if state in states and n not in hidden]
        return tuple(_without_duplicates(db, ns))

    return _computed_once(db, ("current", project_n, tuple(states), everywhere), compute)


def _without_duplicates(db: Connection, ns: Sequence[int]) -> list[int]:
    """Return the numbers of instructions without older ones that say the same.

    Among them are messages and the fragments made of them.
    """
    unique: list[int] = []
    newer: _RuleIndex[str | None] = _RuleIndex()
    for n, one in zip(ns, load(db, ns), strict=True):
        content = instructions.rule_content(one.text)
        if not any(scope in (None, one.scope) for scope in newer.find(content)):
            unique.append(n)
            newer.add(content, one.scope)
    return unique


class _RuleIndex(Generic[T]):
    """Rules by what they say; those that say the same share a word, unless neither has any."""

    def __init__(self) -> None:
        self._rules: list[tuple[RuleContent, T]] = []
        self._places: dict[tuple[Any, ...], list[int]] = {}

    def add(self, content: RuleContent, value: T) -> None:
        for key in self._keys(content):
            self._places.setdefault(key, []).append(len(self._rules))
        self._rules.append((content, value))

    def find(self, content: RuleContent) -> Iterator[T]:
        """Yield the values of rules that say the same, in no order."""
        keys = self._keys(content)
        for place in {place for key in keys for place in self._places.get(key, ())}:
            other, value = self._rules[place]
            if other.repeats(content):
                yield value

    @staticmethod
    def _keys(content: RuleContent) -> list[tuple[Any, ...]]:
        return [(*content[:2], stem) for stem in content.stems or ("",)]


_computed: dict[tuple[Any, ...], Any] = {}
"""What was computed of the instructions of a store: they seldom change, and matching them with
withdrawals would take most of the time of a recall. No text is cached."""

_MAX_COMPUTED = 64


def _computed_once(db: Connection, key: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """Return a cached value, computed again once an instruction was added, moved or removed."""
    state = db.once("standing", lambda: db.find(_STATE))
    whole_key = (db.cache_key, state, *key)
    if whole_key in _computed:
        with suppress(KeyError):  # another thread may clear it meanwhile
            known: T = _computed[whole_key]
            return known
    if len(_computed) >= _MAX_COMPUTED:
        _computed.clear()
    value = _computed[whole_key] = compute()
    return value


_STATE = (
    "SELECT count(*), max(n), sum(n), sum(n * coalesce(project_n, 0)),"
    " sum(created_at & 4294967295), (SELECT value FROM meta WHERE key = 'standing_changes')"
    " FROM standing"
)
"""What changes with every instruction that is added, moved, edited or removed."""


def has_any_since(db: Connection, at_us: int) -> bool:
    """Return whether any instruction was stored after a moment."""
    return bool(db.value("SELECT 1 FROM standing WHERE created_at > :at LIMIT 1", at=at_us))


def withdrawn_items(db: Connection, item_ns: Sequence[int]) -> set[int]:
    """Return those of the items all of whose instructions the user withdrew later."""
    if is_known_empty(db, "standing"):
        return set()
    own = db.rows(
        f"SELECT s.item_n, {_SCOPE}, s.digest, s.n FROM standing s JOIN items i ON i.n = s.item_n"
        f" WHERE {among('s.item_n', 'ns')}",
        ns=int_array(item_ns),
    )
    if not _may_be_withdrawn(db, [n for *_, n in own]):
        return set()
    # Only the newest of repeated instructions was judged; its result holds for all of them.
    withdrawn = _computed_once(db, ("withdrawn",), lambda: _find_all_withdrawn(db))
    return {n for n, *statement, _ in own if tuple(statement) in withdrawn} - {
        n for n, *statement, _ in own if tuple(statement) not in withdrawn
    }


def _find_all_withdrawn(db: Connection) -> frozenset[tuple[int | None, str]]:
    return _compute_outcome(db, _newest(db, None, everywhere=True), everywhere=True).withdrawn


def _may_be_withdrawn(db: Connection, ns: Sequence[int]) -> bool:
    """Return whether a withdrawal has the words of an instruction; most memories have few."""
    if not ns:
        return False
    judged = _computed_once(db, ("may be withdrawn",), dict[int, bool])
    if unknown := [n for n in ns if n not in judged]:
        withdrawn = _computed_once(db, ("withdrawn words",), lambda: _withdrawn_words(db))
        sql = f"SELECT n, text FROM standing WHERE {among('n', 'ns')}"
        for n, rule in db.rows(sql, ns=int_array(unknown)) if withdrawn else ():
            content = _hashes(instructions.content_words(rule))
            judged[n] = any(meant <= content for meant in withdrawn)
    return any(judged.get(n, False) for n in ns)


def _withdrawn_words(db: Connection) -> list[frozenset[int]]:
    """Return for each withdrawal the words of what it withdraws."""
    sentences = db.column("SELECT text FROM standing WHERE withdraws = 1")
    withdrawals = [one for text in sentences if (one := instructions.find_withdrawal(text))]
    return [_hashes(instructions.content_words(one.withdrawn)) for one in withdrawals]


def _hashes(some_words: Iterable[str]) -> frozenset[int]:
    return frozenset(map(hash, some_words))


def _newest(db: Connection, project_n: int | None, *, everywhere: bool) -> list[Row]:
    """Return what identifies instructions, newest first, each once for every scope.

    Without a project it is of sessions without one. A text is never changed in place.
    """
    newer = f"coalesce(o.project_n, {items.scope_sql('newer')})"
    return db.rows(
        f"SELECT s.n, s.item_n, {_SCOPE}, s.digest, s.created_at, s.withdraws, s.state"
        f" FROM standing s JOIN items i ON i.n = s.item_n WHERE (:everywhere OR {_APPLIES})"
        " AND NOT EXISTS (SELECT 1 FROM standing o JOIN items newer ON newer.n = o.item_n"
        " WHERE o.digest = s.digest AND (o.created_at, o.n) > (s.created_at, s.n)"
        f" AND ({newer} IS NULL"
        f" OR {newer} = CASE WHEN :everywhere THEN {_SCOPE} ELSE :scope END))"
        " ORDER BY s.created_at DESC, s.n DESC LIMIT :limit",
        scope=project_n or items.NO_PROJECT,
        everywhere=everywhere,
        limit=_MAX_READ,
    )


def load(db: Connection, ns: Sequence[int]) -> list[Instruction]:
    """Return the instructions with these numbers, in their order."""
    rows = db.rows(
        "SELECT s.n, s.item_n, s.text, s.created_at, f.origin, p.id, t.id, s.state"
        " FROM standing s"
        " JOIN items i ON i.n = s.item_n LEFT JOIN fragments f ON f.n = s.item_n"
        f" LEFT JOIN projects p ON p.n = {_SCOPE} LEFT JOIN sessions t ON t.n = i.session_n"
        f" WHERE {among('s.n', 'ns')}",
        ns=int_array(ns),
    )
    by_n = {row[0]: Instruction._make(row) for row in rows}
    return [by_n[n] for n in ns]


def _former_words(db: Connection, candidates: Sequence[Instruction]) -> dict[int, list[str]]:
    """Return for messages the former texts of the fragments made of them."""
    rows = db.rows(
        "SELECT f.source_messages, v.content FROM fragment_versions v"
        f" JOIN fragments f ON f.n = v.fragment_n WHERE {among('f.n', 'ns')}",
        ns=int_array([one.item_n for one in candidates if one.fragment_origin]),
    )
    former: dict[int, list[str]] = {}
    for packed, content in rows:
        for n in items.numbers_of(db, unpack_json(packed)).values():
            former.setdefault(n, []).append(content)
    return former


class _Outcome(NamedTuple):
    """Which of some instructions no longer apply."""

    hidden: frozenset[int]
    """The numbers of those that are not shown: withdrawn, reworded, or only withdrawals."""

    withdrawn: frozenset[tuple[int | None, str]]
    """The scopes and digests of the withdrawn ones."""


def _compute_outcome(db: Connection, rows: Sequence[Row], *, everywhere: bool) -> _Outcome:
    ns, _, scopes, digests, _, withdraws, _ = zip(*rows, strict=True) if rows else ((),) * 7
    candidates = load(db, ns)
    former = _former_words(db, candidates)
    withdrawals = {
        place: withdrawal
        for place, one in enumerate(candidates)
        if withdraws[place] and (withdrawal := instructions.find_withdrawal(one.text))
    }
    reworded = {
        place
        for place, one in enumerate(candidates)
        if any(instructions.is_same_rule(one.text, text) for text in former.get(one.item_n, ()))
    }
    replaced = _find_replaced(db, candidates)
    withdrawn = replaced | _find_withdrawn(candidates, withdrawals, set(), everywhere=everywhere)
    hidden = replaced | reworded
    hidden |= _find_withdrawn(candidates, withdrawals, reworded, everywhere=everywhere)
    hidden |= {
        place for place in withdrawals if instructions.is_only_withdrawal(candidates[place].text)
    }
    return _Outcome(
        frozenset(ns[place] for place in hidden),
        frozenset((scopes[place], digests[place]) for place in withdrawn),
    )


def _find_replaced(db: Connection, candidates: Sequence[Instruction]) -> set[int]:
    """Return the positions of the instructions that a newer statement replaced."""
    texts = replacements.replaced_texts(db, sorted({one.item_n for one in candidates}))
    return {
        place
        for place, one in enumerate(candidates)
        if any(replacements.is_same_statement(one.text, text) for text in texts.get(one.item_n, ()))
    }


def _find_withdrawn(
    candidates: Sequence[Instruction],
    withdrawals: Mapping[int, instructions.Withdrawal],
    ignored: Set[int],
    *,
    everywhere: bool,
) -> set[int]:
    """Return the positions of the withdrawn instructions, without those to ignore."""
    withdrawn: set[int] = set()
    for place, withdrawal in withdrawals.items():
        one = candidates[place]
        if place in withdrawn or place in ignored:
            continue
        older = [
            i
            for i in range(place + 1, len(candidates))
            if i not in ignored
            and _trust(candidates[i]) <= _trust(one)
            and _applies_to(one, candidates[i], everywhere=everywhere)
        ]
        withdrawn |= {
            older[i]
            for i in instructions.match_rules(withdrawal, [candidates[i].text for i in older])
        }
    return withdrawn


def _applies_to(newer: Instruction, older: Instruction, *, everywhere: bool) -> bool:
    return not everywhere or newer.scope in (None, older.scope)


def _trust(one: Instruction) -> int:
    return TRUST[one.fragment_origin or "user"]
