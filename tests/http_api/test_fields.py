from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from lore.http import fields
from lore.memory.listing import MOST_ON_A_PAGE


@pytest.mark.parametrize(
    ("kind", "most"),
    [(fields.Name, 4_096), (fields.Short, 400), (fields.Id, 400), (fields.Text, 4_000_000)],
)
def test_a_text_has_an_end(kind: Any, most: int):
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    assert len(adapter.validate_python("x" * most)) == most
    with pytest.raises(ValidationError):
        adapter.validate_python("x" * (most + 1))


def test_an_id_says_something_and_a_page_is_as_large_as_the_memory_gives():
    with pytest.raises(ValidationError):
        TypeAdapter(fields.Id).validate_python("")
    with pytest.raises(ValidationError):
        TypeAdapter(fields.Limit).validate_python(MOST_ON_A_PAGE + 1)
    with pytest.raises(ValidationError):
        fields.Nothing.model_validate({"x": 1})
