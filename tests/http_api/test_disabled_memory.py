from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from lore.errors import StoreDamaged
from lore.http.middleware import DisabledMemoryMiddleware, reject_stored_keys


def client() -> TestClient:
    why = StoreDamaged("It is damaged.", hint="Mend it.")
    return TestClient(DisabledMemoryMiddleware(PlainTextResponse("well"), lambda: why))


def test_a_shut_server_is_well_and_says_what_is_wrong():
    asked = client()
    assert asked.get("/health").text == "well"
    told = asked.get("/api/v1/stats")
    assert told.status_code == 503
    assert told.json()["code"] == "StoreDamaged"
    assert told.json()["hint"] == "Mend it."


def test_a_key_that_cannot_be_checked_opens_nothing():
    with pytest.raises(HTTPException) as refused:
        reject_stored_keys("lore_rw_x")
    assert refused.value.status_code == 503
