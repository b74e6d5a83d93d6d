"""The OpenAPI document describes all that is served, with scopes and results."""

from __future__ import annotations

from typing import Any

import pytest

from lore.http import hooks, openapi, read_endpoints, write_endpoints
from lore.http.endpoint import Endpoint


@pytest.fixture(scope="module")
def described() -> openapi.Tree:
    endpoints: list[Endpoint[Any]] = [
        *read_endpoints.READ_ENDPOINTS,
        *write_endpoints.write_endpoints(lambda: False),
    ]
    endpoints += hooks.hook_endpoints()
    return openapi.describe_api(endpoints, cookie="lore_1")


def test_every_endpoint_says_what_access_it_needs(described: openapi.Tree):
    operations = [one for path in described["paths"].values() for one in path.values()]
    # four that act, one hook, and the event stream
    assert len(operations) == 6 + len(read_endpoints.READ_ENDPOINTS)
    assert {one["x-lore-scope"] for one in operations} == {"read", "write", "push", "admin"}
    assert len({one["operationId"] for one in operations}) == len(operations)


def test_every_reference_leads_to_a_schema(described: openapi.Tree):
    def references(tree: object) -> list[str]:
        if isinstance(tree, dict):
            own = [tree["$ref"]] if isinstance(tree.get("$ref"), str) else []
            return own + [one for value in tree.values() for one in references(value)]
        return (
            [one for value in tree for one in references(value)] if isinstance(tree, list) else []
        )

    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert set(references(described)) <= known


def test_what_stands_in_a_path_is_not_asked_for_in_the_body(described: openapi.Tree):
    hook = described["paths"]["/api/v1/hooks/{event}"]["post"]
    assert [(one["name"], one["in"]) for one in hook["parameters"]] == [("event", "path")]
    body = hook["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert "event" not in body
    assert "session_id" in body


def test_a_page_is_described_with_its_items_and_the_way_on(described: openapi.Tree):
    answer = described["paths"]["/api/v1/fragments"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    assert schema["required"] == ["items", "next"]
    assert schema["properties"]["items"]["items"] == {"$ref": "#/components/schemas/Fragment"}
