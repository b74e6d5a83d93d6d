"""Every error has a status, a code and a sentence, and quotes nothing."""

from __future__ import annotations

import json

from starlette.exceptions import HTTPException

from lore import errors
from lore.errors import CycleRunning, LoreError, NotFound, RateLimited, StoreFull
from lore.http import error_responses as problems


def test_every_error_of_lore_has_a_status():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, LoreError)
        assert 400 <= problems.status_code(kind) <= 599


def test_an_error_is_told_by_its_name_with_its_hint():
    response = problems.lore_error_response(NotFound("Nothing there.", hint="Look elsewhere."))
    assert response.status_code == 404
    assert response.media_type == problems.PROBLEM_JSON
    told = json.loads(bytes(response.body))
    assert (told["code"], told["detail"], told["hint"]) == (
        "NotFound", "Nothing there.", "Look elsewhere.",
    )  # fmt: skip
    assert problems.lore_error_response(StoreFull("Full.")).status_code == 507
    assert problems.lore_error_response(CycleRunning("It runs.")).status_code == 503


def test_who_has_to_wait_is_told_for_how_many_whole_seconds():
    response = problems.lore_error_response(RateLimited("Later.", retry_after_s=1.2))
    assert response.headers["retry-after"] == "2"
    assert "retry-after" not in problems.lore_error_response(RateLimited("Later.")).headers


def test_a_refusal_of_http_keeps_its_headers():
    refused = HTTPException(405, "Not that way.", {"allow": "GET"})
    response = problems.http_error_response(
        refused, {"type": "http", "method": "GET", "headers": []}
    )
    assert response.headers["allow"] == "GET"
    assert json.loads(bytes(response.body))["code"] == "MethodNotAllowed"


def test_an_accident_says_nothing_of_itself():
    told = json.loads(bytes(problems.internal_error_response().body))
    assert told["status"] == 500
    assert told["hint"] == "'lore logs' has more."
