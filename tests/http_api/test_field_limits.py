from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from lore.http import endpoint
from lore.memory.context import MAX_PAGE_SIZE


@pytest.mark.parametrize(
    ("kind", "most"),
    [(endpoint.Name, 4_096), (endpoint.Short, 400), (endpoint.Id, 400), (endpoint.Text, 4_000_000)],
)
def test_a_text_has_an_end(kind: Any, most: int):
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    assert len(adapter.validate_python("x" * most)) == most
    with pytest.raises(ValidationError):
        adapter.validate_python("x" * (most + 1))


def test_an_id_says_something_and_a_page_is_as_large_as_the_memory_gives():
    with pytest.raises(ValidationError):
        TypeAdapter(endpoint.Id).validate_python("")
    with pytest.raises(ValidationError):
        TypeAdapter(endpoint.Limit).validate_python(MAX_PAGE_SIZE + 1)
    with pytest.raises(ValidationError):
        endpoint.NoArguments.model_validate({"x": 1})
