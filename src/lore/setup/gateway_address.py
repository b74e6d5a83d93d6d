"""The gateway's address in the configuration of agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lore.errors import InvalidInput
from lore.setup.agents import Edit, editor_of
from lore.setup.launch import BASE_URL, OPENCODE_PATHS


@dataclass(frozen=True, slots=True)
class AddressKey:
    """A key in a file of an agent that holds an address, and the path after the address."""

    stem: str
    place: tuple[str, ...]
    below: str = ""


ADDRESS_KEYS = {
    "claude-code": (AddressKey("settings", ("env", BASE_URL)),),
    "codex": (AddressKey("config", ("openai_base_url",), "/v1"),),
    "opencode": tuple(
        AddressKey("opencode", ("provider", name, "options", "baseURL"), below)
        for name, below in OPENCODE_PATHS.items()
    ),
}
"""The keys by agent; agents that are not listed have no file that is certain to work."""


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """The gateway's address, and former ones that setup wrote: those may be removed."""

    url: str = ""
    former: tuple[str, ...] = ()

    def is_ours(self, value: Any, spot: AddressKey) -> bool:
        """Return whether a value is an address that setup has written."""
        urls = filter(None, (self.url, *self.former))
        return any(value == url + spot.below for url in urls)


def with_gateway(
    name: str, edits: Sequence[Edit], address: GatewayAddress, *, puts: bool, memory: bool = True
) -> tuple[Edit, ...]:
    """Return edits that also handle the addresses of an agent.

    Addresses are always removed with the rest, and added if `puts`. Without `memory` nothing else
    is added: a plugin does that.
    """
    looked_after = []
    for edit in edits:
        spots = [spot for spot in ADDRESS_KEYS.get(name, ()) if spot.stem == edit.path.stem]
        if memory:
            looked_after.append(_also(edit, spots, address, puts=puts))
        elif spots:
            nothing = replace(edit, put=lambda text: text)
            looked_after.append(_also(nothing, spots, address, puts=puts))
    return tuple(looked_after)


def _also(edit: Edit, spots: Sequence[AddressKey], address: GatewayAddress, *, puts: bool) -> Edit:
    editor = editor_of(edit.path)

    def put(text: str) -> str:
        text = edit.put(text)
        for spot in spots if puts else ():
            value = editor.read(text, spot.place)
            if value is not None and not address.is_ours(value, spot):
                raise _taken(value)
            text = editor.put(text, spot.place, address.url + spot.below)
        return text

    def drop(text: str) -> str:
        text = edit.drop(text)
        for spot in spots:
            if address.is_ours(editor.read(text, spot.place), spot):
                text = editor.drop(text, spot.place)
        return text

    def give_back(text: str, former: str) -> str:
        text = edit.give_back(text, former)
        for spot in spots:
            if address.is_ours(editor.read(text, spot.place), spot):
                text = editor.restore(text, spot.place, former)
        return text

    return replace(edit, put=put, drop=drop, give_back=give_back)


def _taken(value: Any) -> InvalidInput:
    msg = f"The agent is sent to {value} already."
    hint = "Take that out; 'lore config gateway.anthropic_url' (or openai_url) leads on to it."
    return InvalidInput(msg, hint=hint)


def find_stored_address(name: str, path: Path, text: str, urls: Sequence[str]) -> str:
    """Return which of these addresses a file of an agent contains, or ''."""
    for spot in ADDRESS_KEYS.get(name, ()):
        if text and spot.stem == path.stem:
            value = editor_of(path).read(text, spot.place)
            return next((url for url in urls if value == url + spot.below), "")
    return ""
