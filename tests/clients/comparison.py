"""What was said against what was kept of it."""

from __future__ import annotations

from difflib import SequenceMatcher

from tests.clients.conversation import Conversation, Event, Kind

TEXT_KINDS: tuple[Kind, ...] = ("prompt", "thinking", "text")


def differences(said: Conversation, kept: Conversation, *, copied: bool = False) -> list[str]:
    """List what was not kept, kept otherwise, or kept and never said.

    A fork may begin with a copy of the conversation that it comes from.
    """
    found: list[str] = []
    for kind in TEXT_KINDS:
        expected = [event for event in said.events if event.kind == kind]
        found += text_differences(expected, kept.texts(kind), copied=copied)
    found += call_differences(said, kept, copied=copied)
    found += result_differences(said, kept, copied=copied)
    return [f"{said.session} {said.agent}: {difference}" for difference in found]


def order_differences(said: Conversation, kept: Conversation) -> list[str]:
    """Compare the order of everything: a result stands anywhere between its call and a prompt."""
    whole = [name_of(event) for event in said.events if event.complete]
    names = [name for event in kept.events if (name := name_of(event)) in whole]
    found = []
    spoken = [name for name in whole if name[0] != "result"]
    if spoken != [name for name in names if name[0] != "result"]:
        found.append(f"{said.session} {said.agent}: {spoken} kept in the order {names}")
    for i, (kind, call_id) in enumerate(names):
        if kind == "result" and ("call", call_id) not in names[:i]:
            found.append(f"{said.session} {said.agent}: the result of {call_id} is before its call")
    if turns_of(names) != turns_of(whole):
        found.append(f"{said.session} {said.agent}: results in other turns {turns_of(names)}")
    return found


def name_of(event: Event) -> tuple[Kind, str]:
    return event.kind, event.call_id or event.text


def turns_of(names: list[tuple[Kind, str]]) -> list[set[str]]:
    """Return the results that came in each turn."""
    turns: list[set[str]] = [set()]
    for kind, name in names:
        if kind == "prompt":
            turns.append(set())
        elif kind == "result":
            turns[-1].add(name)
    return turns


def text_differences(expected: list[Event], texts: list[str], *, copied: bool) -> list[str]:
    """Compare texts in their order; what was broken off may be there in part."""
    whole = [event.text for event in expected if event.complete]
    left = list(texts)
    for event in expected:
        parts = [text for text in left if event.text.startswith(text) and text not in whole]
        if not event.complete and parts:
            left.remove(parts[0])
    found = []
    matcher = SequenceMatcher(None, whole, left, autojunk=False)
    for tag, start, end, kept_start, kept_end in matcher.get_opcodes():
        if tag in ("delete", "replace"):
            found.append(f"not kept: {whole[start:end]}")
        if tag in ("insert", "replace") and not (copied and kept_start == 0):
            found.append(f"kept and never said: {left[kept_start:kept_end]}")
    return found


def call_differences(said: Conversation, kept: Conversation, *, copied: bool) -> list[str]:
    made = [event.call_id for event in said.calls()]
    known = {event.call_id: event for event in kept.calls()}
    found = []
    if not copied and made != [event.call_id for event in kept.calls()]:
        found.append(f"calls {made} kept as {list(known)}")
    for event in said.calls():
        other = known.get(event.call_id)
        if other and (other.name != event.name or not has_input(other.input, event.input)):
            found.append(f"call {event.name} {event.input} kept as {other.name} {other.input}")
    return found


def has_input(kept: object, said: object) -> bool:
    """Tell whether an input was kept; clients write out the defaults that a call left away."""
    if isinstance(kept, dict) and isinstance(said, dict):
        return said.items() <= kept.items()
    return kept is None or kept == said


def result_differences(said: Conversation, kept: Conversation, *, copied: bool) -> list[str]:
    """Compare by the call: parallel results are kept in the order in which they came."""
    told = {event.call_id: event for event in said.results()}
    known = {event.call_id: event for event in kept.results()}
    found = []
    if not copied and told.keys() != known.keys():
        found.append(f"results of {sorted(told)} kept as of {sorted(known)}")
    for call_id in told.keys() & known.keys():
        one, other = told[call_id], known[call_id]
        flags = {one.failed, other.failed} - {None}
        if one.text != other.text or len(flags) > 1:
            found.append(f"result {one.text[:80]!r} kept as {other.text[:80]!r}")
    return found
