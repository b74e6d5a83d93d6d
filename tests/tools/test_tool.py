from __future__ import annotations

import pytest
from pydantic import ValidationError

from lore.tools.catalogue import TOOLS
from lore.tools.tool import Arguments, Caller, Result, Seen


class Wish(Arguments):
    text: str = ""


class Told(Result):
    text: Seen


def test_arguments_are_what_they_name_and_have_an_end():
    with pytest.raises(ValidationError):
        Wish.model_validate({"words": "x"})
    with pytest.raises(ValidationError):
        Wish.model_validate({"text": "x" * 200_001})


def test_what_nobody_sees_does_not_reach_a_model_in_data():
    assert Told(text="Deploy\u200b on Thursdays\u2062").text == "Deploy on Thursdays"


def test_who_says_nothing_of_itself_is_an_assistant():
    assert Caller() == Caller(project="", session="", origin="assistant", within_s=None)


def test_what_changes_nothing_destroys_nothing():
    assert [tool.name for tool in TOOLS if tool.reads_only and tool.destructive] == []
