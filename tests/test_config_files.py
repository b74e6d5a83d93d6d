from __future__ import annotations

import os
from pathlib import Path

import pytest

from lore import config_files


def make() -> bytes:
    return os.urandom(32)


def is_sound(key: bytes) -> bool:
    return len(key) == 32


def test_a_key_is_created_once_and_private(tmp_path: Path):
    path = tmp_path / "home" / "some.key"
    made = config_files.ensure_key(path, make=make, is_sound=is_sound)
    assert config_files.ensure_key(path, make=make, is_sound=is_sound) == made == path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_an_invalid_key_is_replaced(tmp_path: Path, content: bytes):
    path = tmp_path / "some.key"
    path.write_bytes(content)
    made = config_files.ensure_key(path, make=make, is_sound=is_sound)
    assert is_sound(made)
    assert path.read_bytes() == made
