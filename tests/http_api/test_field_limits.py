from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter, ValidationError

from lore.errors import InvalidInput
from lore.http import endpoint
from lore.memory.context import MAX_PAGE_SIZE
from lore.tools.tool import caller_of


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (endpoint.Name, 1_024),
        (endpoint.FilePath, 4_096),
        (endpoint.Short, 400),
        (endpoint.Id, 400),
        (endpoint.Text, 4_000_000),
    ],
)
def test_a_text_has_an_end(kind: Any, most: int):
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    assert len(adapter.validate_python("x" * most)) == most
    with pytest.raises(ValidationError):
        adapter.validate_python("x" * (most + 1))


@pytest.mark.parametrize("kind", [endpoint.Name, endpoint.Short, endpoint.Id])
def test_a_name_has_at_most_as_many_bytes_as_a_database_can_index(kind: Any):
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    assert adapter.validate_python("\N{GRINNING FACE}" * 256)
    with pytest.raises(ValidationError, match="1024 bytes"):
        adapter.validate_python("\N{GRINNING FACE}" * 257)


def test_a_header_that_is_too_long_to_be_stored_is_refused():
    assert caller_of({"x-lore-project": quote("/" + "\N{SNOWMAN}" * 341)}, None).project
    with pytest.raises(InvalidInput, match="x-lore-project has a name of 1027 bytes"):
        caller_of({"x-lore-project": quote("/" + "\N{SNOWMAN}" * 342)}, None)


def test_an_id_says_something_and_a_page_is_as_large_as_the_memory_gives():
    with pytest.raises(ValidationError):
        TypeAdapter(endpoint.Id).validate_python("")
    with pytest.raises(ValidationError):
        TypeAdapter(endpoint.Limit).validate_python(MAX_PAGE_SIZE + 1)
    with pytest.raises(ValidationError):
        endpoint.NoArguments.model_validate({"x": 1})
