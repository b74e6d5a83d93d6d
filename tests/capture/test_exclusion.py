from __future__ import annotations

from pathlib import Path

import pytest

from lore.capture import exclusion
from lore.capture.exclusion import covers_folder

HOME = str(Path.home())


@pytest.mark.parametrize(
    ("pattern", "agent", "folder", "excluded"),
    [
        ("/code/secret", "codex", "/code/secret", True),
        ("/code/secret", "codex", "/code/secret/deep/below", True),
        ("/code/secret", "codex", "/code/secrets", False),
        ("/code/*", "codex", "/code/anything", True),
        ("~/clients/*", "codex", f"{HOME}/clients/acme/src", True),
        ("secret-*", "codex", "/code/secret-plan/src", True),
        ("secret-*", "codex", "/code/open", False),
        ("codex:/code", "codex", "/code/a", True),
        ("codex:/code", "claude-code", "/code/a", False),
        ("claude*:secret", "claude-code", "/code/secret", True),
        ("/code", "codex", "", False),
    ],
)
def test_a_glob_excludes_a_folder_and_all_below_it(
    pattern: str, agent: str, folder: str, *, excluded: bool
) -> None:
    assert covers_folder((pattern,), agent, folder) is excluded


def test_the_folder_of_agents_commands_is_excluded_by_all_its_names(tmp_path):
    home = tmp_path / "lore [1]"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    patterns = exclusion.folder_patterns(tmp_path / "link" / "agent-chats")
    for name in ("link", "lore [1]"):
        folder = tmp_path / name / "agent-chats" / "gemini"
        assert exclusion.covers_folder(patterns, "gemini", str(folder))
    assert not exclusion.covers_folder(patterns, "gemini", str(tmp_path / "lore 1" / "agent-chats"))
