from __future__ import annotations

from pathlib import Path

import pytest

from lore.capture.exclusion import is_excluded

HOME = str(Path.home())


@pytest.mark.parametrize(
    ("pattern", "agent", "folder", "excluded"),
    [
        ("/work/secret", "codex", "/work/secret", True),
        ("/work/secret", "codex", "/work/secret/deep/below", True),
        ("/work/secret", "codex", "/work/secrets", False),
        ("/work/*", "codex", "/work/anything", True),
        ("~/clients/*", "codex", f"{HOME}/clients/acme/src", True),
        ("secret-*", "codex", "/work/secret-plan/src", True),
        ("secret-*", "codex", "/work/open", False),
        ("codex:/work", "codex", "/work/a", True),
        ("codex:/work", "claude-code", "/work/a", False),
        ("claude*:secret", "claude-code", "/work/secret", True),
        ("/work", "codex", "", False),
    ],
)
def test_a_glob_excludes_a_folder_and_all_below_it(
    pattern: str, agent: str, folder: str, *, excluded: bool
) -> None:
    assert is_excluded((pattern,), agent, folder) is excluded
