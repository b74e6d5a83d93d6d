from __future__ import annotations

from dataclasses import dataclass

import pytest
from starlette.requests import Request

from lore.errors import InvalidInput
from lore.http import endpoint
from lore.records import Page
from lore.tools.tool import Arguments, Outcome, Result
from tests.http_api.live_server import Served


class Wish(Arguments):
    text: str
    often: int = 1


class Told(Result):
    said: str


@dataclass(frozen=True)
class Strange:
    what: object


def request(**headers: str) -> Request:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "headers": pairs})


def test_what_does_not_fit_is_told_without_quoting_it():
    assert endpoint.validate(Wish, {"text": "peace"}).often == 1
    with pytest.raises(InvalidInput, match=r"'often': .* integer") as refused:
        endpoint.validate(Wish, {"text": "x", "often": "private words"})
    assert "private" not in str(refused.value)
    with pytest.raises(InvalidInput, match=r"\(2 in all\)"):
        endpoint.validate(Wish, {"often": "x"})


def test_records_and_models_become_json():
    assert endpoint.to_json(Outcome("a", Told(said="b"))) == b'{"text":"a","data":{"said":"b"}}'
    assert endpoint.to_json(Page((1, 2), None)) == b'{"items":[1,2],"next":null}'
    assert endpoint.to_json({"a": frozenset({1})}) == b'{"a":[1]}'


def test_what_has_no_json_is_an_accident():
    with pytest.raises(TypeError):
        endpoint.to_json(Strange(object()))


def test_a_reader_who_has_it_already_gets_nothing_again():
    first = endpoint.etag_response(request(), b"{}")
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = endpoint.etag_response(request(if_none_match=known), b"{}")
        assert (again.status_code, again.body) == (304, b"")
    assert endpoint.etag_response(request(if_none_match=tag), b"[]").status_code == 200


def test_what_stands_in_the_path_stands_nowhere_else(served: Served):
    reply = served.get("/api/v1/fragments/01a1e003-d3de?id=x")
    assert reply.status == 422
    assert "only be given in the path" in reply.json["detail"]
    assert served.get("/api/v1/fragments?limit=1&limit=2").status == 422
