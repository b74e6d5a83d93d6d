"""Commit messages in commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.commit_message import parse_commit_message

HEREDOC = """cd /code && git add -A && git commit -m "$(cat <<'EOF'
fix(tokens): let review tokens live for 120 s

The hook of the client is slow, so that tokens of
30 s ran out before it answered.

- TokenStore sweeps every minute
- the renderer prefers the id of the database
  over the uuid of the file

Co-Authored-By: Somebody <somebody@example.org>
EOF
)" && git push 2>&1"""


def test_a_here_document_is_read_without_type_width_and_trailers():
    assert parse_commit_message(HEREDOC) == (
        "let review tokens live for 120 s\n\n"
        "The hook of the client is slow, so that tokens of 30 s ran out before it answered.\n\n"
        "- TokenStore sweeps every minute\n"
        "- the renderer prefers the id of the database over the uuid of the file"
    )


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('git commit -m "Use \\"uv\\" here"', 'Use "uv" here'),
        (
            "git -C sub commit -am 'Pin numpy' -m 'Newer ones fail.'",
            "Pin numpy\n\nNewer ones fail.",
        ),
        ('git commit --message="Drop Python 3.9"', "Drop Python 3.9"),
        ("git commit --amend --no-edit", ""),
        ("git log --grep commit -m 'x'; echo -m 'no'", ""),
        ("echo 'git commit it later'", ""),
        ("git commit -m \"$(cat <<'EOF'\nSubject\n\nThe body is cut o", "Subject"),
        ("pytest -m 'slow'", ""),
    ],
)
def test_messages_of_commands(command: str, expected: str):
    assert parse_commit_message(command) == expected


@given(st.text())
def test_any_command_can_be_read(command: str):
    assert isinstance(parse_commit_message(f"git commit {command}"), str)
