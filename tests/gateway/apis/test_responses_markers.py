"""Markers in histories of OpenAI's Responses, in the forms that clients keep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway.apis import markers, openai_responses
from lore.gateway.apis.markers import Marker
from tests.gateway.apis.rewriter_driver import RECALL, make_ids
from tests.upstream.apis import check_request
from tests.upstream.openai_responses import remember_items
from tests.upstream.script import History, sign

Json = dict[str, Any]
ID = "ab" * 8
SIGN = markers.marker_text(ID)
CALL: Json = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "recall",
    "arguments": "{}",
    "status": "completed",
}
CALLED = {name: value for name, value in CALL.items() if name != "id"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
STORED = {ID: Marker(CALL, "found", ID).to_json()}
ASKED = {"role": "user", "content": "Where is it?"}
REASONED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sign("")}


def spoken(said: str, **more: object) -> Json:
    part = {"type": "output_text", "text": said, "annotations": []}
    return {"type": "message", "role": "assistant", **more, "content": [part]}


def expanded(*items: Json, history: History | None = None) -> list[Json]:
    """Return what is sent of a history, which the service takes."""
    document = {"model": "gpt-test", "store": False, "input": [*items, ASKED]}
    request = openai_responses.parse_request(json.dumps(document).encode())
    made = openai_responses.expand_markers(request, STORED.get).document
    check_request("responses", made, history)
    return list(made["input"][:-1])


def test_an_answer_that_is_kept_as_a_text_becomes_texts_around_the_call():
    said = {"role": "assistant", "content": f"Let me look.{SIGN}It is there."}
    other = {"role": "assistant", "content": "As I said."}
    assert expanded(ASKED, said, ASKED, other) == [
        ASKED,
        {"role": "assistant", "content": "Let me look."},
        CALLED,
        OUTPUT,
        {"role": "assistant", "content": "It is there."},
        ASKED,
        other,
    ]


@pytest.mark.parametrize("said", ["As I said.", "[memory searched: lore-recall-0011223344556677]"])
def test_what_names_no_call_that_is_known_stays_as_it_is(said):
    body = json.dumps({
        "model": "gpt-test",
        "input": [
            {"role": "user", "content": "What is lore-recall-0011223344556677?"},
            {"role": "assistant", "content": said},
            ASKED,
        ],
    }).encode()
    request = openai_responses.parse_request(body)
    assert openai_responses.expand_markers(request, STORED.get) is request


def test_a_call_is_put_back_without_the_id_that_binds_it_to_a_thought():
    history = History()
    remember_items([REASONED, CALL], history)
    kept = expanded(ASKED, REASONED, spoken(SIGN, id="msg_1"), history=history)
    assert kept == [ASKED, REASONED, CALLED, OUTPUT]
    dropped = expanded(ASKED, {"role": "assistant", "content": SIGN}, history=history)
    assert dropped == [ASKED, CALLED, OUTPUT]


def test_an_answer_without_words_stays_behind_its_thought():
    empty = spoken("", id="msg_1")
    later = spoken(SIGN, id="msg_2")
    assert expanded(ASKED, REASONED, empty, ASKED, later)[2] == empty


def test_texts_that_a_client_has_joined_have_the_id_of_their_item_once():
    joined = spoken(f"Let me look.{SIGN}It is there.", id="msg_1")
    made = expanded(ASKED, joined)
    assert [one.get("id") for one in made] == [None, "msg_1", None, None, None]
    assert made[4] == spoken("It is there.")


def test_what_is_cited_in_a_text_is_not_cited_in_its_pieces():
    cited = {"type": "url_citation", "start_index": 0, "end_index": 40, "url": "u", "title": "t"}
    item = spoken(f"Let me look.{SIGN}It is there.")
    item["content"][0]["annotations"] = [cited]
    assert [one["content"][0]["annotations"] for one in expanded(item) if "content" in one] == [
        [],
        [],
    ]


@pytest.mark.parametrize(
    "hidden", [{}, {"encrypted_content": None}, {"encrypted_content": sign("")}]
)
def test_a_thought_that_the_provider_did_not_keep_is_not_sent_to_it(hidden):
    body = json.dumps({"model": "gpt-test", "store": False, "input": [ASKED]}).encode()
    request = openai_responses.parse_request(body)
    rewriter = openai_responses.open_rewriter(request, body, RECALL, make_ids())
    reasoned = {"type": "reasoning", "id": "rs_1", "summary": [], **hidden}
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    output = [reasoned, searched, spoken("Let me look.", id="msg_1"), CALL]
    rewriter.feed(json.dumps({"id": "resp_1", "status": "completed", "output": output}).encode())
    rewriter.end_response()
    rewriter.add_results({"call_1": "found"})
    sent = json.loads(rewriter.follow_up_body())
    history = History()
    remember_items(output, history)
    check_request("responses", sent, history)
    if hidden.get("encrypted_content"):
        assert sent["input"] == [ASKED, *output[:3], CALLED, OUTPUT]
    else:
        assert sent["input"] == [ASKED, spoken("Let me look."), CALLED, OUTPUT]
