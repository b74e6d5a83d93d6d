"""Google's SDK through the gateway, with memory behind it: nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from tests.gateway.sdk_gateway import Behind, behind
from tests.upstream import Call, ModelError, ModelReply, RawResponse, Text, Thought
from tests.upstream.script import sign
from tests.waiting import eventually

GEMINI = "gemini-2.5-pro"
LONG = "It rains in Kiel, and it will rain until the evening at least."
DECLARED = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="weather",
            parameters=types.Schema(
                type=types.Type.OBJECT,
                properties={"place": types.Schema(type=types.Type.STRING)},
            ),
        )
    ]
)


def weather(place: str) -> str:
    """Tells the weather."""
    return f"rain in {place}"


def sdk(talk: Behind, version: str | None = None) -> genai.Client:
    """Return a client that is told the address as programs tell it."""
    options = types.HttpOptions(base_url=talk.url, api_version=version)
    return genai.Client(api_key="of a client", http_options=options)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Behind]:
    with behind(tmp_path) as held:
        yield held
        assert [one.problem for one in held.up.rejected] == []


@pytest.fixture
def client(talk: Behind) -> Iterator[genai.Client]:
    with sdk(talk, "v1beta") as opened:
        yield opened


def as_json(tree: dict[str, Any]) -> RawResponse:
    return RawResponse(200, {"content-type": "application/json"}, json.dumps(tree).encode())


@pytest.mark.parametrize("version", [None, "v1beta", "v1", "v1alpha"])
def test_complete_response_is_returned_and_recorded(talk, version):
    talk.up.reply_with(ModelReply("We keep ten."))
    with sdk(talk, version) as client:
        told = client.models.generate_content(model=GEMINI, contents="How many?")
    assert told.text == "We keep ten."
    assert told.usage_metadata
    assert told.usage_metadata.prompt_token_count
    assert talk.last.path == f"/{version or 'v1'}/models/{GEMINI}:generateContent"
    assert talk.last.header("x-goog-api-key") == "of a client"
    eventually(lambda: talk.stored() == ["How many?", "We keep ten."])


def test_address_from_the_environment_is_enough(talk, monkeypatch):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", talk.url)
    with genai.Client(api_key="of a client") as client:
        told = client.models.generate_content(model=GEMINI, contents="Hello?")
    assert told.text == "Understood."


def test_response_is_streamed(talk, client):
    talk.up.reply_with(ModelReply(LONG, chunk_bytes=1))
    chunks = list(client.models.generate_content_stream(model=GEMINI, contents="Does it rain?"))
    assert len(chunks) > 1
    assert "".join(chunk.text for chunk in chunks) == LONG
    assert chunks[-1].candidates[0].finish_reason == "STOP"
    eventually(lambda: talk.stored() == ["Does it rain?", LONG])


def test_memory_follows_the_system_instructions(talk, client):
    talk.memory.remember("Staging listens on port 5436", kind="decision")
    client.models.generate_content(
        model=GEMINI,
        contents="Hello?",
        config=types.GenerateContentConfig(system_instruction="Be kind.", temperature=0.5),
    )
    kind, known = (part["text"] for part in talk.last.json["systemInstruction"]["parts"])
    assert kind == "Be kind."
    assert "5436" in known
    assert talk.last.json["generationConfig"] == {"temperature": 0.5}


@pytest.mark.parametrize("streams", [False, True])
def test_sdk_calls_functions_itself(talk, client, streams):
    talk.up.reply_with(
        ModelReply(Thought("It depends on the place."), Call("weather", {"place": "Kiel"})),
        ModelReply(LONG),
        ModelReply(Thought("Once more."), Call("weather", {"place": "Kiel"})),
        ModelReply("As before."),
    )
    config = types.GenerateContentConfig(
        tools=[weather], thinking_config=types.ThinkingConfig(include_thoughts=True)
    )
    chat = client.chats.create(model=GEMINI, config=config)
    for prompt, said in (("Does it rain?", LONG), ("Sure?", "As before.")):
        if streams:
            pieces = [one.candidates[0].content for one in chat.send_message_stream(prompt)]
            shown = [part.text for one in pieces for part in one.parts if not part.thought]
            assert "".join(text for text in shown if text) == said
        else:
            assert chat.send_message(prompt).text == said
    calls = [
        part
        for content in talk.last.json["contents"]
        for part in content["parts"]
        if "functionCall" in part
    ]
    assert [one["thoughtSignature"] for one in calls] == [sign('weather{"place": "Kiel"}')] * 2
    eventually(lambda: talk.stored()[-1:] == ["As before."])
    assert talk.stored() == [
        "Does it rain?", "It depends on the place.", '{"place":"Kiel"}', "rain in Kiel", LONG,
        "Sure?", "Once more.", '{"place":"Kiel"}', "rain in Kiel", "As before.",
    ]  # fmt: skip


def test_calls_reach_the_program(talk, client):
    talk.up.reply_with(
        ModelReply(Call("weather", {"place": "Kiel"}, id="call-1")), ModelReply("It rains.")
    )
    config = types.GenerateContentConfig(tools=[DECLARED])
    asked: list[Any] = [types.Content(role="user", parts=[types.Part(text="Does it rain?")])]
    first = client.models.generate_content(model=GEMINI, contents=asked, config=config)
    (call,) = first.function_calls
    assert (call.id, call.args) == ("call-1", {"place": "Kiel"})
    result = types.FunctionResponse(id=call.id, name=call.name, response={"output": "rain"})
    asked.append(first.candidates[0].content)
    asked.append(types.Content(role="user", parts=[types.Part(function_response=result)]))
    second = client.models.generate_content(model=GEMINI, contents=asked, config=config)
    assert second.text == "It rains."
    eventually(lambda: talk.stored()[-2:] == ["rain", "It rains."])


@pytest.mark.parametrize("streams", [False, True])
def test_recall_is_one_response_and_unchanged_in_the_next_prompt(talk, client, streams):
    talk.memory.remember("The staging port is 5436")
    talk.up.reply_with(
        ModelReply(
            Text("Let me see what we said of it."), Call("recall", {"query": "staging port"})
        ),
        ModelReply("It is 5436, as was said in spring."),
    )
    chat = client.chats.create(model=GEMINI)
    if streams:
        shown = "".join(one.text or "" for one in chat.send_message_stream("Which port?"))
    else:
        shown = chat.send_message("Which port?").text
    assert shown.startswith("Let me see")
    assert shown.endswith("as was said in spring.")
    before = talk.last.json["contents"]
    assert "5436" in json.dumps(before[-1])
    chat.send_message("Thanks.")
    assert talk.last.json["contents"][: len(before)] == before


@pytest.mark.parametrize(
    "config",
    [
        {"tools": [{"google_search": {}}]},
        {"response_mime_type": "application/json"},
        {"candidate_count": 2},
    ],
)
def test_no_function_is_added_for_models_that_refuse_it(talk, client, config):
    client.models.generate_content(model=GEMINI, contents="Hello?", config=config)
    assert "recall" not in json.dumps(talk.last.json.get("tools") or [])


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.ClientError),
        (403, errors.ClientError),
        (404, errors.ClientError),
        (429, errors.ClientError),
        (500, errors.ServerError),
        (503, errors.ServerError),
    ],
)
def test_errors_raise_sdk_exceptions(talk, client, status, error):
    talk.up.reply_with(*[ModelError(status, "an_error", "Because.")] * 2)
    with pytest.raises(error, match="Because") as caught:
        client.models.generate_content(model=GEMINI, contents="Hello?")
    assert caught.value.code == status
    with pytest.raises(error, match="Because"):
        list(client.models.generate_content_stream(model=GEMINI, contents="Hello?"))


def test_too_long_prompt_error_is_forwarded(tmp_path):
    with (
        behind(tmp_path, window_tokens=50) as talk,
        sdk(talk) as client,
        pytest.raises(errors.ClientError, match="exceeds the maximum number of tokens"),
    ):
        client.models.generate_content(model=GEMINI, contents="Hello? " * 200)


def test_auxiliary_request_is_forwarded_and_not_stored(talk, client):
    talk.up.reply_with(
        as_json({"totalTokens": 7}),
        as_json({"embeddings": [{"values": [0.5, 0.25]}]}),
        as_json({"files": [{"name": "files/abc", "mimeType": "text/plain"}]}),
        as_json({"name": "cachedContents/1", "model": f"models/{GEMINI}"}),
    )
    assert client.models.count_tokens(model=GEMINI, contents="Hello?").total_tokens == 7
    told = client.models.embed_content(model="gemini-embedding-001", contents="Hello?")
    assert told.embeddings[0].values == [0.5, 0.25]
    assert [one.name for one in client.files.list()] == ["files/abc"]
    kept = client.caches.create(model=GEMINI, config={"contents": "Hello?"})
    assert kept.name == "cachedContents/1"
    assert [one.path for one in talk.up.requests] == [
        f"/v1beta/models/{GEMINI}:countTokens",
        "/v1beta/models/gemini-embedding-001:batchEmbedContents",
        "/v1beta/files",
        "/v1beta/cachedContents",
    ]
    assert talk.stored() == []


def test_file_is_uploaded_to_the_providers_url(talk, client, tmp_path):
    begun = {"x-goog-upload-url": f"{talk.url}/upload/v1beta/files?upload_id=1"}
    done = {"x-goog-upload-status": "final", "content-type": "application/json"}
    told = {"file": {"name": "files/abc", "uri": "of a file", "mimeType": "text/plain"}}
    talk.up.reply_with(RawResponse(200, begun), RawResponse(200, done, json.dumps(told).encode()))
    path = tmp_path / "tides.txt"
    path.write_text("high at nine")
    assert client.files.upload(file=path, config={"mime_type": "text/plain"}).name == "files/abc"
    assert talk.last.body == b"high at nine"
    assert talk.last.header("x-goog-upload-command") == "upload, finalize"


def test_conversation_in_the_providers_cache_is_unchanged(talk, client):
    config = types.GenerateContentConfig(cached_content="cachedContents/1")
    client.models.generate_content(model=GEMINI, contents="And then?", config=config)
    assert set(talk.last.json) == {"contents", "cachedContent", "generationConfig"}
