"""Edit JSON with comments in place: change one member and keep the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lore.errors import InvalidInput

_GAP = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_INDENT = re.compile(r"\n([ \t]+)\S")

_DEEPEST = 200
"""Deeper nesting would exceed the recursion limit; settings have a handful of levels."""
_USUAL_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: where its name begins, and its value."""

    name: str
    start: int
    value: Node


@dataclass(frozen=True, slots=True)
class Node:
    """The position of a value in a text, and its members if it is an object."""

    start: int
    end: int
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()
    kind: str = field(default="scalar")

    def find(self, name: str) -> Member | None:
        """Return the last member of this name, which is the one that counts."""
        return next((m for m in reversed(self.members) if m.name == name), None)


def parse(text: str) -> Node:
    """Return the positions of all values; trailing commas are allowed."""
    node = _value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, node.end)
    return node


def read(text: str, path: Sequence[str] = ()) -> Any:
    """Return the value at a path, or None."""
    node = _find(text, path)
    return None if node is None else _plain(text, node)


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value at a path; missing objects are created."""
    if not text.strip():
        text = "{}\n"
    node, depth = parse(text), 0
    while True:
        if node.kind != "object":
            raise InvalidInput(f"'{'.'.join(path[:depth]) or 'The file'}' is not an object.")
        member = node.find(path[depth])
        if member is None:
            return _insert(text, node, path[depth], _nested(path[depth + 1 :], value), depth)
        if depth == len(path) - 1:
            if _plain(text, member.value) == value:
                return text
            written = _written(value, _unit(text), depth + 1)
            return _replaced(text, member.value.start, member.value.end, written)
        node, depth = member.value, depth + 1


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at a path, and without objects that become empty."""
    if not text.strip():
        return text
    node, trail = parse(text), list[tuple[Node, Member]]()
    for name in path:
        member = node.find(name)
        if member is None:
            return text
        trail.append((node, member))
        node = member.value
    while len(trail) > 1 and len(trail[-1][0].members) == 1:
        trail.pop()
    owner, member = trail[-1]
    return _remove(text, owner, member)


def restore(text: str, path: Sequence[str], former: str) -> str:
    """Return the text with the value that a former text had at a path, or without one."""
    now, then = _find(text, path), _find(former, path)
    if now is None or then is None:
        return drop(text, path)
    return _replaced(text, now.start, now.end, former[then.start : then.end])


def append(text: str, path: Sequence[str], item: Any) -> str:
    """Return the text with an item appended to the list at a path, which is created if missing."""
    present = read(text, path)
    if present is None:
        return put(text, path, [item])
    if not isinstance(present, list):
        raise InvalidInput(f"'{'.'.join(path)}' is not a list.")
    if item in present:
        return text
    node = _at(text, path)
    unit, depth = _unit(text), len(path)
    pad = unit * (depth + 1)
    written = _written(item, unit, depth + 1)
    if not node.items:
        return _replaced(text, node.start, node.end, f"[\n{pad}{written}\n{unit * depth}]")
    return _insert_after(text, node.items[-1].end, node.end - 1, pad + written)


def drop_items(text: str, path: Sequence[str], is_ours: Callable[[Any], bool]) -> str:
    """Return the text without some items of a list, and without the list if it becomes empty."""
    present = read(text, path)
    if not isinstance(present, list) or not any(map(is_ours, present)):
        return text
    if all(map(is_ours, present)):
        return drop(text, path)
    node = _at(text, path)
    place = next(i for i, item in enumerate(present) if is_ours(item))
    if place:
        shorter = _remove_value(text, node.items[place - 1].end, node.items[place], node.end - 1)
    else:
        shorter = text[: node.items[0].start] + text[node.items[1].start :]
    return drop_items(shorter, path, is_ours)


def _at(text: str, path: Sequence[str]) -> Node:
    node = _find(text, path)
    assert node
    return node


def _find(text: str, path: Sequence[str]) -> Node | None:
    node = parse(text) if text.strip() else None
    for name in path:
        member = node.find(name) if node else None
        node = member.value if member else None
    return node


def _insert(text: str, owner: Node, name: str, value: Any, depth: int) -> str:
    unit = _unit(text)
    pad = unit * (depth + 1)
    written = f"{json.dumps(name)}: {_written(value, unit, depth + 1)}"
    if not owner.members:
        inside = text[owner.start + 1 : owner.end - 1]
        if inside.strip():  # only comments
            end = len(text[: owner.end - 1].rstrip())
            return _replaced(text, end, owner.end - 1, f"\n{pad}{written}\n{unit * depth}")
        return _replaced(text, owner.start, owner.end, f"{{\n{pad}{written}\n{unit * depth}}}")
    return _insert_after(text, owner.members[-1].value.end, owner.end - 1, pad + written)


def _insert_after(text: str, last: int, closing: int, line: str) -> str:
    """Insert a line after the value that ends at `last`; a comment beside it stays there."""
    comma = _comma(text[last:closing])
    at = last if comma is None else last + comma + 1
    remark = _REMARK.match(text, at, closing)
    end = remark.end() if remark else at
    if comma is None:
        return _replaced(text, last, end, f",{text[last:end]}\n{line}")
    return _replaced(text, end, end, f"\n{line},")


def _remove_value(
    text: str, former: int, node: Node, closing: int, start: int | None = None
) -> str:
    """Remove a value, from `start` if it has a name; the value before it ends at `former`."""
    start = node.start if start is None else start
    comma, after = _comma(text[former:start]), _comma(text[node.end : closing])
    assert comma is not None
    if after is None:
        middle = text[former : former + comma] + text[former + comma + 1 : start]
        rest = text[node.end :]
    else:
        middle = text[former:start]
        rest = text[node.end : node.end + after] + text[node.end + after + 1 :]
    return text[:former] + middle.rstrip(" \t").removesuffix("\n").removesuffix("\r") + rest


def _replaced(text: str, start: int, end: int, by: str) -> str:
    """Return the text with a part replaced, with the line endings of the text."""
    return text[:start] + _lines_as(text, by) + text[end:]


def _lines_as(text: str, added: str) -> str:
    if "\r\n" not in text:
        return added
    return added.replace("\r\n", "\n").replace("\n", "\r\n")


def _remove(text: str, owner: Node, member: Member) -> str:
    place = owner.members.index(member)
    if place:
        former = owner.members[place - 1].value.end
        return _remove_value(text, former, member.value, owner.end - 1, member.start)
    end = member.value.end
    comma = _comma(text[end : owner.end - 1])
    end += 0 if comma is None else comma + 1
    if len(owner.members) == 1:
        before = text[owner.start + 1 : member.start]
        after = text[end : owner.end - 1]
        inside = before.rstrip() + after if before.strip() or after.strip() else ""
        return text[: owner.start + 1] + inside + text[owner.end - 1 :]
    return text[: member.start].rstrip() + text[end:]


def _comma(gap: str) -> int | None:
    """Return the position of the comma between two members."""
    at = _GAP.match(gap)
    return at.end() if at and gap[at.end() : at.end() + 1] == "," else None


def _written(value: Any, unit: str, depth: int) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + unit * depth)


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _unit(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match else _USUAL_INDENT


def _plain(text: str, node: Node) -> Any:
    if node.kind == "object":
        return {member.name: _plain(text, member.value) for member in node.members}
    if node.kind == "array":
        return [_plain(text, item) for item in node.items]
    return json.loads(text[node.start : node.end])


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    assert gap
    return gap.end()


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise _wrong(text, at)
    if text[at : at + 1] == "{":
        return _object(text, at, depth)
    if text[at : at + 1] == "[":
        return _array(text, at, depth)
    match = _TEXT.match(text, at) or _SCALAR.match(text, at)
    if not match:
        raise _wrong(text, at)
    return Node(at, match.end())


def _object(text: str, start: int, depth: int) -> Node:
    members, at = list[Member](), _skip(text, start + 1)
    while text[at : at + 1] != "}":
        name = _TEXT.match(text, at)
        colon = _skip(text, name.end()) if name else at
        if not name or text[colon : colon + 1] != ":":
            raise _wrong(text, at)
        value = _value(text, _skip(text, colon + 1), depth + 1)
        members.append(Member(json.loads(name[0]), at, value))
        at = _next(text, value.end, "}")
    return Node(start, at + 1, members=tuple(members), kind="object")


def _array(text: str, start: int, depth: int) -> Node:
    items, at = list[Node](), _skip(text, start + 1)
    while text[at : at + 1] != "]":
        items.append(_value(text, at, depth + 1))
        at = _next(text, items[-1].end, "]")
    return Node(start, at + 1, items=tuple(items), kind="array")


def _next(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _wrong(text, at)
    return at


def _wrong(text: str, at: int) -> InvalidInput:
    line = text.count("\n", 0, at) + 1
    return InvalidInput(f"Line {line} is not JSON.", hint="Nothing was changed.")
