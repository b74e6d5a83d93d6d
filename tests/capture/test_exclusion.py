from __future__ import annotations

from pathlib import Path

import pytest

from lore.capture.exclusion import is_excluded

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
    assert is_excluded((pattern,), agent, folder) is excluded
