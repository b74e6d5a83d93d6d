"""The secrets and the benign lines of the fifth corpus, and how its groups are weighed."""

from __future__ import annotations

from collections.abc import Iterator

from fifth.draw import Kind, draw, read_page, share
from fifth.vendors import read_vendors

__all__ = ["BENIGN", "SECRETS", "benign", "read_kinds", "secrets"]

SECRETS: dict[str, int] = {
    "vendor": 1200,
    "config": 1050,
    "chat": 640,
    "code": 600,
    "wire": 500,
    "shell": 360,
    "traces": 320,
    "material": 130,
}
"""Lines of each group: an estimate of how often a user of coding agents shows a secret there.

Keys of vendors and assignments in files are the commonest, what is typed and code are next."""

BENIGN: dict[str, int] = {
    "source": 1600,
    "listing": 1500,
    "records": 1100,
    "reports": 900,
    "prose": 800,
    "blank": 800,
    "settings": 700,
    "dialects": 600,
}
"""Lines of each group; most of a transcript is code, files and the output of commands."""


def read_kinds(group: str) -> list[Kind]:
    """Return the kinds of a group."""
    return read_vendors() if group == "vendor" else read_page(group)


def secrets(seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield a kind, a line (or lines) of it, and the secret that must not survive."""
    for group, lines in SECRETS.items():
        for kind, count in share(read_kinds(group), lines):
            for line in draw(kind, count, seed):
                for secret in line.secrets:
                    yield kind.name, line.text, secret


def benign(seed: int) -> Iterator[tuple[str, str]]:
    """Yield a kind and a line (or lines) of it that holds nothing to hide."""
    for group, lines in BENIGN.items():
        for kind, count in share(read_kinds(group), lines):
            for line in draw(kind, count, seed):
                yield kind.name, line.text
