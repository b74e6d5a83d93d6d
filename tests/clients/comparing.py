"""What was said against what was kept of it."""

from __future__ import annotations

from tests.clients.said import Event, Kind, Talk

TEXT_KINDS: tuple[Kind, ...] = ("prompt", "thinking", "text")


def differences(said: Talk, kept: Talk, *, copied: bool = False) -> list[str]:
    """List what was not kept, kept otherwise, or kept and never said.

    A fork may begin with a copy of the talk that it comes from.
    """
    found: list[str] = []
    for kind in TEXT_KINDS:
        expected = [event for event in said.events if event.kind == kind]
        found += text_differences(expected, kept.texts(kind), copied=copied)
    found += call_differences(said, kept, copied=copied)
    found += result_differences(said, kept, copied=copied)
    return [f"{said.session} {said.agent}: {difference}" for difference in found]


def text_differences(expected: list[Event], texts: list[str], *, copied: bool) -> list[str]:
    """Compare from the end, so that a copied beginning is what is left over."""
    found = []
    left = list(texts)
    for event in reversed(expected):
        if event.complete and left and left[-1] == event.text:
            left.pop()
        elif event.complete:
            found.append(f"{event.kind} not kept: {event.text[:80]!r}")
        elif left and event.text.startswith(left[-1]):
            left.pop()
    if left and not copied:
        found.append(f"kept and never said: {left}")
    return found


def call_differences(said: Talk, kept: Talk, *, copied: bool) -> list[str]:
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


def result_differences(said: Talk, kept: Talk, *, copied: bool) -> list[str]:
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
