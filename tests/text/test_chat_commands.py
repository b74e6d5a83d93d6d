"""Chat commands in every form that agents pass on."""

from __future__ import annotations

import pytest

from lore.text import chat_commands


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["/lore:status"], "lore:status"),
        ([" lore:amnesia on\n"], "lore:amnesia on"),
        (["<system-reminder>x</system-reminder>", "lore:remember two\nlines"],
         "lore:remember two\nlines"),
        (['"/lore:amnesia on"\n'], "lore:amnesia on"),
        (['"/lore:status" is what you type'], ""),
        (['"'], ""),
        (["lore: the old tale of the harbour"], ""),
        (["What does /lore:status do?"], ""),
        (["lore:status", "and something else"], ""),
        ([], ""),
    ],
)  # fmt: skip
def test_only_a_command_typed_alone_is_recognised(texts, found):
    assert chat_commands.find_command(texts) == found
