"""Addressing: where an agent sends its requests, told in its own configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lore.errors import InvalidInput
from lore.setup import jsonc, toml_keys
from lore.setup.agents import Edit
from lore.setup.starting import BASE_URL, OPENCODE_PATHS


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file of an agent's that holds an address, and what stands behind the address."""

    stem: str
    place: tuple[str, ...]
    below: str = ""


SPOTS = {
    "claude-code": (Spot("settings", ("env", BASE_URL)),),
    "codex": (Spot("config", ("openai_base_url",), "/v1"),),
    "opencode": tuple(
        Spot("opencode", ("provider", name, "options", "baseURL"), below)
        for name, below in OPENCODE_PATHS.items()
    ),
}
"""Where agents are told an address; those that are not here have no file that tells it surely."""


@dataclass(frozen=True, slots=True)
class Address:
    """The gateway's address, and those that setup wrote before: they are Lore's to take out."""

    url: str = ""
    former: tuple[str, ...] = ()

    def is_ours(self, value: Any, spot: Spot) -> bool:
        """Tell whether a value is an address that setup has written."""
        known = filter(None, (self.url, *self.former))
        return any(value == url + spot.below for url in known)


def with_gateway(
    name: str, edits: Sequence[Edit], address: Address, *, puts: bool, memory: bool = True
) -> tuple[Edit, ...]:
    """Return edits that also look after the addresses of an agent.

    They are always taken out with the rest, and put in if `puts`. Without `memory` nothing else
    is put in: a plugin has seen to that.
    """
    looked_after = []
    for edit in edits:
        spots = [spot for spot in SPOTS.get(name, ()) if spot.stem == edit.path.stem]
        if memory:
            looked_after.append(_also(edit, spots, address, puts=puts))
        elif spots:
            nothing = replace(edit, put=lambda text: text)
            looked_after.append(_also(nothing, spots, address, puts=puts))
    return tuple(looked_after)


def _also(edit: Edit, spots: Sequence[Spot], address: Address, *, puts: bool) -> Edit:
    path = edit.path

    def put(text: str) -> str:
        text = edit.put(text)
        for spot in spots if puts else ():
            value = find(path, text, spot)
            if value is not None and not address.is_ours(value, spot):
                raise _taken(value)
            text = _put(path, text, spot, address.url + spot.below)
        return text

    def drop(text: str) -> str:
        text = edit.drop(text)
        for spot in spots:
            if address.is_ours(find(path, text, spot), spot):
                text = _drop(path, text, spot)
        return text

    def give_back(text: str, former: str) -> str:
        text = edit.give_back(text, former)
        for spot in spots:
            if address.is_ours(find(path, text, spot), spot):
                text = _give_back(path, text, spot, former)
        return text

    return replace(edit, put=put, drop=drop, give_back=give_back)


def _taken(value: Any) -> InvalidInput:
    msg = f"The agent is sent to {value} already."
    hint = "Take that out; 'lore config gateway.anthropic_url' (or openai_url) leads on to it."
    return InvalidInput(msg, hint=hint)


def find_known(name: str, path: Path, text: str, known: Sequence[str]) -> str:
    """Return which of the known addresses a file of an agent's holds, or ''."""
    for spot in SPOTS.get(name, ()):
        if text and spot.stem == path.stem:
            value = find(path, text, spot)
            return next((url for url in known if value == url + spot.below), "")
    return ""


def find(path: Path, text: str, spot: Spot) -> Any:
    """Return the address that stands in a file, or None."""
    if path.suffix == ".toml":
        return toml_keys.find(text, spot.place[0])
    return jsonc.read(text, spot.place)


def _put(path: Path, text: str, spot: Spot, value: str) -> str:
    if path.suffix == ".toml":
        return toml_keys.put(text, spot.place[0], value)
    return jsonc.put(text, spot.place, value)


def _drop(path: Path, text: str, spot: Spot) -> str:
    if path.suffix == ".toml":
        return toml_keys.drop(text, spot.place[0])
    return jsonc.drop(text, spot.place)


def _give_back(path: Path, text: str, spot: Spot, former: str) -> str:
    if path.suffix == ".toml":
        return toml_keys.give_back(text, spot.place[0], former)
    return jsonc.give_back(text, spot.place, former)
